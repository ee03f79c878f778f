// Rules of matrix products, of the layers of neural networks and of indexing.
#include <algorithm>

#include "runtime/ops/shapes/shape_helpers.h"

namespace wick::ops::shapes {

namespace {

Types productOfTensors(const Node& node, std::optional<Sizes> sizes) {
  std::vector<const TensorFacts*> tensors = tensorArguments(node);
  // Factors are of one dtype; what is added to the product need not be of it.
  bool known = true;
  std::optional<DType> dtype;
  for (const TensorFacts* t : tensors) {
    known = known && t->dtype && (!dtype || dtype == t->dtype);
    if (!dtype) dtype = t->dtype;
  }
  for (const Value* v : node.inputs()) {  // beta and alpha
    known =
        known && v->type()->kind() != TypeKind::Complex && v->type()->kind() != TypeKind::Number;
  }
  if (!known) dtype.reset();
  return tensorOf(dtype, std::move(sizes), commonDevice(tensors));
}

// The operands of a product: the last two tensor arguments of those that take an addend first.
std::pair<const TensorFacts*, const TensorFacts*> factors(const Node& node) {
  static constexpr const char* kNames[][2] = {
      {"mat1", "mat2"}, {"batch1", "batch2"}, {"mat", "vec"},  {"vec1", "vec2"},
      {"self", "mat2"}, {"self", "vec2"},     {"self", "vec"}, {"self", "other"}};
  for (const auto& names : kNames) {
    if (argumentOf(node, names[0]) && argumentOf(node, names[1])) {
      return {&tensorArgument(node, names[0]), &tensorArgument(node, names[1])};
    }
  }
  static const TensorFacts none;
  return {&none, &none};
}

Size sizeAt(const TensorFacts& t, size_t i) {
  return t.sizes && i < t.sizes->size() ? (*t.sizes)[i] : std::nullopt;
}

}  // namespace

Types matrixProduct(const Node& node) {
  auto [a, b] = factors(node);
  return productOfTensors(node, Sizes{sizeAt(*a, 0), sizeAt(*b, 1)});
}

Types batchedMatrixProduct(const Node& node) {
  auto [a, b] = factors(node);
  Size batch = sizeAt(*a, 0);
  return productOfTensors(node, Sizes{batch ? batch : sizeAt(*b, 0), sizeAt(*a, 1), sizeAt(*b, 2)});
}

Types matrixVector(const Node& node) {
  return productOfTensors(node, Sizes{sizeAt(*factors(node).first, 0)});
}

Types innerNumber(const Node& node) {
  return productOfTensors(node, Sizes());
}

Types outerProduct(const Node& node) {
  auto [a, b] = factors(node);
  return tensorOf(promotedDType({a, b}), Sizes{sizeAt(*a, 0), sizeAt(*b, 0)}, commonDevice({a, b}));
}

Types matmul(const Node& node) {
  auto [first, second] = factors(node);
  std::optional<Sizes> a = sizesOf(*first);
  std::optional<Sizes> b = sizesOf(*second);
  if (!a || !b || a->empty() || b->empty()) return productOfTensors(node, std::nullopt);
  Sizes batch_a(a->begin(), a->end() - std::min<size_t>(a->size(), 2));
  Sizes batch_b(b->begin(), b->end() - std::min<size_t>(b->size(), 2));
  Sizes out = broadcastSizes(batch_a, batch_b);
  if (a->size() > 1) out.push_back((*a)[a->size() - 2]);
  if (b->size() > 1) out.push_back((*b)[b->size() - 1]);
  return productOfTensors(node, std::move(out));
}

Types linear(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  const TensorFacts& weight = tensorArgument(node, "weight");
  if (!sizes || sizes->empty() || !weight.dim) return productOfTensors(node, std::nullopt);
  sizes->pop_back();
  if (*weight.dim == 2) sizes->push_back(sizeAt(weight, 0));
  if (!isAbsent(node, "bias")) {
    std::optional<Sizes> bias = sizesOf(tensorArgument(node, "bias"));
    if (!bias) return productOfTensors(node, std::nullopt);
    sizes = broadcastSizes(*sizes, *bias);
  }
  return productOfTensors(node, std::move(sizes));
}

Types attention(const Node& node) {
  const TensorFacts& query = tensorArgument(node, "query");
  std::optional<DType> dtype = query.dtype;
  // Other dtypes are refused, unless there is nothing to multiply.
  bool one_dtype =
      dtype == tensorArgument(node, "key").dtype && dtype == tensorArgument(node, "value").dtype;
  if (dtype && (!isFloating(*dtype) || !one_dtype)) dtype.reset();
  std::optional<Sizes> sizes = sizesOf(query);
  std::optional<Sizes> key = sizesOf(tensorArgument(node, "key"));
  std::optional<Sizes> value = sizesOf(tensorArgument(node, "value"));
  bool alike = sizes && key && value && sizes->size() >= 2 && sizes->size() == value->size() &&
               sizes->size() == key->size() && isAbsent(node, "attn_mask");
  for (size_t i = 0; alike && i + 2 < sizes->size(); ++i) {
    alike = (*sizes)[i] && (*sizes)[i] == (*value)[i] && (*sizes)[i] == (*key)[i];
  }
  if (!alike) return tensorOf(dtype, std::nullopt, query.device);
  sizes->back() = value->back();
  return tensorOf(dtype, std::move(sizes), query.device);
}

// ---- recurrent layers ----

Types recurrent(const Node& node) {
  const TensorFacts& input = tensorArgument(node, "input");
  std::vector<const TensorFacts*> states{&tensorArgument(node, "hx")};
  if (node.outputs().size() == 3) {
    const auto list = tensorListArgument(node, "hx");
    static const TensorFacts unknown;
    states = list && list->size() == 2 ? *list : std::vector<const TensorFacts*>(2, &unknown);
  }
  std::optional<DType> dtype = input.dtype;
  // A cell of another batch than the hidden state makes results of another batch.
  bool alike = true;
  for (const TensorFacts* state : states) {
    if (state->dtype != dtype) dtype.reset();
    for (size_t d = 0; d < 2; ++d) {
      const Size size = sizeAt(*state, d);
      alike = alike && size && size == sizeAt(*states[0], d);
    }
  }
  std::optional<Sizes> sizes = sizesOf(input);
  const std::optional<bool> both = boolArgument(node, "bidirectional");
  if (sizes && sizes->size() == 3 && alike) {
    Size last = sizeAt(*states[0], 2);
    int64_t twice = 0;
    if (both != false && last) {
      // Twice a symbol, which is negative, has no name here.
      const bool doubles = both && *last >= 0 && !__builtin_mul_overflow(*last, 2, &twice);
      last = doubles ? Size(twice) : std::nullopt;
    }
    sizes->back() = last;
  } else {
    sizes.reset();
  }
  Types results = tensorOf(dtype, std::move(sizes), input.device);
  for (const TensorFacts* state : states) {
    results.push_back(
        tensorOf(dtype, alike ? sizesOf(*state) : std::nullopt, input.device).front());
  }
  return results;
}

// ---- convolution and pooling ----

namespace {

// (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1, rounded up on demand, when the
// last window must still begin inside.
Size windowCount(Size size, Size kernel, int64_t padding, int64_t dilation, int64_t stride,
                 bool ceil_mode) {
  if (!size || !kernel || *kernel < 0 || stride <= 0) return std::nullopt;
  Size reach = addSizes(size, 2 * padding);
  int64_t covered = dilation * (*kernel - 1) + 1;
  if (padding < 0 || covered < 0) return std::nullopt;
  if (!ceil_mode) return addSizes(divideSizes(subtractSizes(reach, covered), stride), 1);
  if (*size < 0) return std::nullopt;
  int64_t rest = *size + 2 * padding - covered;
  if (rest < 0) return std::nullopt;
  int64_t count = (rest + stride - 1) / stride + 1;
  if ((count - 1) * stride >= *size + padding) --count;
  return count;
}

constexpr int64_t kSmallOption = 1 << 20;

// Small numbers only, so that arithmetic with them cannot overflow.
std::optional<std::vector<int64_t>> options(const Node& node, std::string_view name, size_t n,
                                            int64_t missing) {
  const Value* v = argumentOf(node, name);
  if (!v) return std::vector<int64_t>(n, missing);
  std::optional<std::vector<int64_t>> out = intsOf(v, n);
  if (!out) return std::nullopt;
  for (int64_t i : *out) {
    if (i < 0 || i > kSmallOption) return std::nullopt;
  }
  return out;
}

}  // namespace

Types convolution(const Node& node) {
  const TensorFacts& input = firstTensor(node);
  const TensorFacts& weight = tensorArgument(node, "weight");
  std::optional<Sizes> sizes = sizesOf(input);
  if (!weight.dim || *weight.dim < 3) return tensorOf(input.dtype, std::nullopt, input.device);
  size_t spatial = *weight.dim - 2;
  // Without a batch there is one dimension less.
  if (!sizes || (sizes->size() != spatial + 2 && sizes->size() != spatial + 1)) {
    return tensorOf(input.dtype, std::nullopt, input.device);
  }
  bool batched = sizes->size() == spatial + 2;
  bool transposed = node.kind().name().find("transpose") != std::string_view::npos;
  if (const Value* flag = argumentOf(node, "transposed")) {
    std::optional<bool> known = boolOf(flag);
    if (!known) return tensorOf(input.dtype, Sizes(sizes->size()), input.device);
    transposed = *known;
  }
  Size channels = sizeAt(weight, 0);
  if (transposed) {
    const Value* groups = argumentOf(node, "groups");
    channels = multiplySizes(sizeAt(weight, 1), groups ? sizeValue(groups) : Size(1));
  }
  (*sizes)[batched ? 1 : 0] = channels;
  std::optional<std::vector<int64_t>> stride = options(node, "stride", spatial, 1);
  std::optional<std::vector<int64_t>> padding = options(node, "padding", spatial, 0);
  std::optional<std::vector<int64_t>> dilation = options(node, "dilation", spatial, 1);
  std::optional<std::vector<int64_t>> added = options(node, "output_padding", spatial, 0);
  bool known = stride && padding && dilation && (added || !transposed);
  for (size_t i = 0; i < spatial; ++i) {
    Size& s = (*sizes)[sizes->size() - spatial + i];
    Size kernel = sizeAt(weight, 2 + i);
    if (!known || !kernel || *kernel <= 0 || *kernel > kSmallOption) {
      s.reset();
    } else if (transposed) {
      // (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
      int64_t fixed =
          (*dilation)[i] * (*kernel - 1) + (*added)[i] + 1 - 2 * (*padding)[i] - (*stride)[i];
      s = multiplySizes(s, (*stride)[i]);
      s = fixed >= 0 ? addSizes(s, fixed) : subtractSizes(s, -fixed);
    } else {
      s = windowCount(s, kernel, (*padding)[i], (*dilation)[i], (*stride)[i], false);
    }
  }
  return tensorOf(input.dtype, std::move(sizes), input.device);
}

namespace {

// Of activation(layer + residual).
Types withResidual(const Node& node, Types layer) {
  if (isAbsent(node, "residual") || boolArgument(node, "in_place") == std::optional<bool>(true)) {
    return layer;
  }
  const TensorFacts& before = layer.at(0)->as<TensorType>()->facts();
  const TensorFacts& residual = tensorArgument(node, "residual");
  std::optional<Sizes> sizes = sizesOf(before);
  std::optional<Sizes> added = sizesOf(residual);
  if (sizes && added) {
    sizes = broadcastSizes(*sizes, *added);
  } else {
    sizes.reset();
  }
  return tensorOf(promotedDType({&before, &residual}), std::move(sizes),
                  commonDevice({&before, &residual}));
}

}  // namespace

Types fusedConvolution(const Node& node) {
  return withResidual(node, convolution(node));
}

Types fusedLinear(const Node& node) {
  return withResidual(node, linear(node));
}

namespace {

// "max_pool2d_with_indices" has 2.
std::optional<size_t> spatialDims(const Node& node) {
  std::string_view name = node.kind().name();
  for (size_t n = 1; n <= 3; ++n) {
    if (name.find(static_cast<char>('0' + n) + std::string("d")) != std::string_view::npos)
      return n;
  }
  return std::nullopt;
}

std::optional<Sizes> pooledSizes(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  std::optional<size_t> spatial = spatialDims(node);
  if (!sizes || !spatial || sizes->size() < *spatial) return std::nullopt;
  std::optional<std::vector<int64_t>> kernel = options(node, "kernel_size", *spatial, 1);
  const Value* stride_list = argumentOf(node, "stride");
  std::optional<std::vector<int64_t>> given = stride_list ? intsOf(stride_list) : std::nullopt;
  std::optional<std::vector<int64_t>> stride =
      given && given->empty() ? kernel : options(node, "stride", *spatial, 1);
  std::optional<std::vector<int64_t>> padding = options(node, "padding", *spatial, 0);
  std::optional<std::vector<int64_t>> dilation = options(node, "dilation", *spatial, 1);
  std::optional<bool> ceil_mode = boolArgument(node, "ceil_mode");
  bool known = kernel && stride && padding && dilation && ceil_mode;
  for (size_t i = 0; i < *spatial; ++i) {
    Size& s = (*sizes)[sizes->size() - *spatial + i];
    s = known
            ? windowCount(s, (*kernel)[i], (*padding)[i], (*dilation)[i], (*stride)[i], *ceil_mode)
            : std::nullopt;
  }
  return sizes;
}

std::optional<Sizes> adaptiveSizes(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  std::optional<size_t> spatial = spatialDims(node);
  if (!sizes || !spatial || sizes->size() < *spatial) return std::nullopt;
  std::optional<Sizes> out = sizeList(argumentOf(node, "output_size"));
  if (out && out->size() == 1) out->resize(*spatial, out->front());
  for (size_t i = 0; i < *spatial; ++i) {
    (*sizes)[sizes->size() - *spatial + i] =
        out && out->size() == *spatial ? (*out)[i] : std::nullopt;
  }
  return sizes;
}

Types withIndices(const TensorFacts& self, const std::optional<Sizes>& sizes) {
  return {tensorOf(self.dtype, sizes, self.device)[0],
          tensorOf(DType::Long, sizes, self.device)[0]};
}

}  // namespace

Types pooled(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(self.dtype, pooledSizes(node), self.device);
}

Types pooledWithIndices(const Node& node) {
  return withIndices(firstTensor(node), pooledSizes(node));
}

Types adaptivelyPooled(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(self.dtype, adaptiveSizes(node), self.device);
}

Types adaptivelyPooledWithIndices(const Node& node) {
  return withIndices(firstTensor(node), adaptiveSizes(node));
}

Types normalized(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(self.dtype, sizesOf(self), self.device);
}

// ---- indexing ----

Types embedded(const Node& node) {
  const TensorFacts& weight = tensorArgument(node, "weight");
  std::optional<Sizes> sizes = sizesOf(tensorArgument(node, "indices"));
  if (sizes) sizes->push_back(sizeAt(weight, 1));
  return tensorOf(weight.dtype, std::move(sizes), weight.device);
}

Types indexSelected(const Node& node) {
  const TensorFacts& self = tensorArgument(node, "self");
  std::optional<Sizes> sizes = sizesOf(self);
  const TensorFacts& index = tensorArgument(node, "index");
  std::optional<int64_t> dim = intArgument(node, "dim");
  if (!sizes) return tensorOf(self.dtype, std::nullopt, self.device);
  std::optional<size_t> d = dim ? wrappedDim(*dim, sizes->size()) : std::nullopt;
  if (!d) {
    sizes = Sizes(sizes->size());
  } else if (*d < sizes->size()) {
    // An index without dimensions is one element.
    bool scalar = index.dim == std::optional<size_t>(0);
    (*sizes)[*d] = scalar ? Size(1) : sizeAt(index, 0);
  }
  return tensorOf(self.dtype, std::move(sizes), self.device);
}

// Indices by integers broadcast to one shape, which stands where they do when they are neighbours
// and else in front; masks take several dimensions and give an unknown number of elements.
Types indexed(const Node& node) {
  const TensorFacts& self = tensorArgument(node, "self");
  std::optional<Sizes> sizes = sizesOf(self);
  std::optional<std::vector<Value*>> indices = literalElements(argumentOf(node, "indices"));
  if (!sizes || !indices || indices->size() > sizes->size()) {
    return tensorOf(self.dtype, std::nullopt, self.device);
  }
  Sizes common;
  std::vector<size_t> places;
  for (size_t i = 0; i < indices->size(); ++i) {
    const Value* v = (*indices)[i];
    if (isNoneConstant(v)) continue;
    const TensorFacts* index = factsOf(v);
    std::optional<Sizes> mine = index ? sizesOf(*index) : std::nullopt;
    bool by_number =
        index && index->dtype && *index->dtype != DType::Bool && *index->dtype != DType::Byte;
    if (!mine || !by_number) return tensorOf(self.dtype, std::nullopt, self.device);
    common = broadcastSizes(common, *mine);
    places.push_back(i);
  }
  if (places.empty()) return tensorOf(self.dtype, std::move(sizes), self.device);
  bool neighbours = places.back() - places.front() + 1 == places.size();
  Sizes out;
  if (!neighbours) out = common;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if (neighbours && i == places.front()) out.insert(out.end(), common.begin(), common.end());
    if (std::find(places.begin(), places.end(), i) == places.end()) out.push_back((*sizes)[i]);
  }
  return tensorOf(self.dtype, std::move(out), self.device);
}

Types maskSelected(const Node& node) {
  const TensorFacts& self = tensorArgument(node, "self");
  return tensorOf(self.dtype, Sizes(1), self.device);
}

Types nonzeroPlaces(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  Size rank;
  if (self.dim) rank = static_cast<int64_t>(*self.dim);
  return tensorOf(DType::Long, Sizes{std::nullopt, rank}, self.device);
}

Types topValues(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  std::optional<Sizes> sizes = sizesOf(self);
  std::optional<int64_t> dim = intArgument(node, "dim");
  if (sizes) {
    std::optional<size_t> d = dim ? wrappedDim(*dim, sizes->size()) : std::nullopt;
    if (!d) {
      sizes = Sizes(sizes->size());
    } else if (*d < sizes->size()) {
      (*sizes)[*d] = sizeValue(argumentOf(node, "k"));
    }
  }
  return withIndices(self, sizes);
}

}  // namespace wick::ops::shapes
