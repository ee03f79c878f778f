// Layers over nested tensors: products, normalization, softmax, and attention as nn.Transformer's
// fast path calls it. What acts on each row of a sequence takes the rows of all sequences at once;
// attention looks at one sequence at a time.
#include <algorithm>
#include <cmath>

#include "core/budget.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/nested/nested.h"

namespace wick::ops::nested {

namespace {

// ---- products ----

Tensor linear(const Tensor& self, const Tensor& weight, const Tensor& bias) {
  const char* op = "linear";
  WICK_CHECK(!isNested(weight) && !(bias.defined() && isNested(bias)),
             "{}: expected a dense weight and bias", op);
  WICK_CHECK(self.dim() == 3 && weight.dim() == 2,
             "{}: Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor "
             "dim: {}. Dense tensor dim: {}",
             op, self.dim(), weight.dim());
  const Tensor whole = packed(op, self);
  const Tensor rows = rowsOf(op, whole);
  WICK_CHECK(rows.size(1) == weight.size(1),
             "{}: Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) "
             "'last_dim' to equal 'weight.size(1), but got: last_dim = {}, and weight.size(1) = {}",
             op, rows.size(1), weight.size(1));
  return fromRows(wick::linear(rows, weight, bias), nestedFormOf(op, whole));
}

void checkPair(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(isNested(a) && isNested(b),
             "{}: Expected both to be nested, but got a {} self and {} other", op,
             isNested(a) ? "nested" : "non-nested", isNested(b) ? "nested" : "non-nested");
  WICK_CHECK(a.size(0) == b.size(0),
             "{}: Expected size for the 1st dimension of batch2 tensor to be: {} but got: {}.", op,
             a.size(0), b.size(0));
}

template <bool kMatrices>
Tensor product(const Tensor& self, const Tensor& other) {
  const char* op = kMatrices ? "bmm" : "matmul";
  checkPair(op, self, other);
  WICK_CHECK(self.dim() == other.dim() && (kMatrices ? self.dim() == 3 : self.dim() >= 3),
             "{}: expected nested tensors of 3 {}dimensions, got {} and {}", op,
             kMatrices ? "" : "or more ", self.dim(), other.dim());
  const NestedForm& a = nestedFormOf(op, self);
  const NestedForm& b = nestedFormOf(op, other);
  CountedVector<Tensor> parts;
  Pace pace;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    pace.step();
    const Tensor& x = a.parts[i];
    const Tensor& y = b.parts[i];
    WICK_CHECK(x.size(-1) == y.size(-2),
               "{}: {}-th nested matrices in batch cannot be multiplied ({} and {})", op, i,
               formatInts(x.sizes()), formatInts(y.sizes()));
    parts.push_back(matmul(x, y));
  }
  return packed(op, makeNested(std::move(parts), self.dtype(), a.part_dim));
}

// ---- over rows ----

Tensor softmax(const Tensor& self, int64_t d, std::optional<DType> dtype) {
  const int64_t dim = wrapDim(d, self.dim());
  WICK_CHECK(dim != 0, "softmax: Cannot apply softmax across nested dimension 0");
  return packed("softmax", mapParts("softmax", self, [&](const Tensor& part) {
                  return dtype ? ops::softmax(part.to(*dtype), dim - 1)
                               : ops::softmax(part, dim - 1);
                }));
}

// The last dimension of [N, H, T, T] over as many rows and columns as the sequences of `query` have;
// all else becomes 0.
Tensor softmaxWithShape(const Tensor& self, const Tensor& query) {
  const char* op = "_nested_tensor_softmax_with_shape";
  const NestedForm& form = nestedFormOf(op, query);
  WICK_CHECK(self.kind() == TensorKind::Dense && self.dim() == 4 && form.part_dim >= 1 &&
                 self.size(0) == query.size(0),
             "{}: expected a tensor [{}, H, T, T], got {}", op, query.size(0), self.describe());
  Tensor result = Tensor::zeros(self.sizes(), self.dtype());
  Pace pace;
  for (int64_t n = 0; n < self.size(0); ++n) {
    pace.step();
    const int64_t length = form.parts[static_cast<size_t>(n)].size(0);
    WICK_CHECK(length <= self.size(2) && length <= self.size(3),
               "{}: sequence {} is longer than {}", op, n, self.describe());
    const auto of = [&](const Tensor& t) {
      return t.select(0, n).narrow(1, 0, length).narrow(2, 0, length);
    };
    of(result).copyFrom(ops::softmax(of(self), -1));
  }
  return result;
}

Tensor normalized(const Tensor& self, const Tensor& weight, const Tensor& bias, double eps) {
  const char* op = "_nested_tensor_layer_norm";
  const Tensor whole = packed(op, self);
  const Tensor rows = rowsOf(op, whole);
  return fromRows(ops::layerNorm(rows, DimVector{rows.size(1)}, weight, bias, eps),
                  nestedFormOf(op, whole));
}

Tensor layerNorm(const Tensor& self, const DimVector& shape, const Tensor& weight,
                 const Tensor& bias, double eps, bool) {
  WICK_CHECK(shape.size() == 1 && self.dim() == 3,
             "layer_norm: a nested tensor is normalized over its last dimension of 3, got shape {} "
             "and {} dimensions",
             formatInts(shape), self.dim());
  return normalized(self, weight, bias, eps);
}

// ---- attention ----

// Sequences of rows, one behind the other: how long each is.
std::vector<int64_t> lengthsOf(const NestedForm& form) {
  std::vector<int64_t> lengths;
  for (const Tensor& part : form.parts) lengths.push_back(part.size(0));
  return lengths;
}

struct Weights {
  Tensor qkv_weight, qkv_bias, proj_weight, proj_bias;
};

// Attention of each sequence of rows [sum of lengths, E] to itself.
Tensor attend(const char* op, const Tensor& rows, const std::vector<int64_t>& lengths,
              int64_t embed, int64_t heads, const Weights& w) {
  WICK_CHECK(rows.size(1) == embed, "{}: expected sequences of width {}, got {}", op, embed,
             rows.size(1));
  WICK_CHECK(heads > 0 && embed % heads == 0, "{}: {} does not divide {}", op, heads, embed);
  WICK_CHECK(w.qkv_weight.dim() == 2 && w.qkv_weight.size(0) == 3 * embed &&
                 w.qkv_bias.dim() == 1 && w.qkv_bias.size(0) == 3 * embed,
             "{}: expected qkv_weight of {} rows, got {}", op, 3 * embed, w.qkv_weight.describe());
  const Tensor qkv = wick::linear(rows, w.qkv_weight, w.qkv_bias);
  const Tensor mixed = Tensor::empty(DimVector{rows.size(0), embed}, qkv.dtype());
  const int64_t width = embed / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  int64_t first = 0;
  Pace pace;
  for (const int64_t length : lengths) {
    pace.step();
    if (length == 0) continue;
    // [3, heads, length, width]
    const Tensor own = qkv.narrow(0, first, length)
                           .reshape(DimVector{length, 3, heads, width})
                           .permute(DimVector{1, 2, 0, 3});
    const Tensor query = ops::mulScalar(own.select(0, 0), scale);
    const Tensor weights =
        ops::softmax(matmul(query, own.select(0, 1).transpose(-2, -1)), int64_t{-1});
    mixed.narrow(0, first, length)
        .copyFrom(
            matmul(weights, own.select(0, 2)).transpose(0, 1).reshape(DimVector{length, embed}));
    first += length;
  }
  return wick::linear(mixed, w.proj_weight, w.proj_bias);
}

std::tuple<Tensor, Tensor> multiHead(const Tensor& query, const Tensor& key, const Tensor& value,
                                     int64_t embed, int64_t heads, const Tensor& qkv_weight,
                                     const Tensor& qkv_bias, const Tensor& proj_weight,
                                     const Tensor& proj_bias, const Tensor& mask, bool need_weights,
                                     bool, std::optional<int64_t>) {
  const char* op = "_native_multi_head_attention";
  WICK_CHECK(!mask.defined(), "{}: NestedTensor with mask is not supported yet", op);
  WICK_CHECK(!need_weights, "{}: NestedTensor with need_weights==True is not supported", op);
  WICK_CHECK(query.isSame(key) && key.isSame(value),
             "{}: NestedTensor: query, key and value must be the same tensor", op);
  const Tensor whole = packed(op, query);
  const NestedForm& form = nestedFormOf(op, whole);
  return {fromRows(attend(op, rowsOf(op, whole), lengthsOf(form), embed, heads,
                          {qkv_weight, qkv_bias, proj_weight, proj_bias}),
                   form),
          Tensor()};
}

Tensor encoderLayer(const Tensor& src, int64_t embed, int64_t heads, const Tensor& qkv_weight,
                    const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias,
                    bool use_gelu, bool norm_first, double eps, const Tensor& norm_weight_1,
                    const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                    const Tensor& norm_bias_2, const Tensor& ffn_weight_1, const Tensor& ffn_bias_1,
                    const Tensor& ffn_weight_2, const Tensor& ffn_bias_2, const Tensor& mask,
                    std::optional<int64_t>) {
  const char* op = "_transformer_encoder_layer_fwd";
  WICK_CHECK(!mask.defined(), "{}: NestedTensor with mask is not supported yet", op);
  const Tensor whole = packed(op, src);
  const NestedForm& form = nestedFormOf(op, whole);
  const Tensor rows = rowsOf(op, whole);
  const auto norm = [&](const Tensor& t, const Tensor& weight, const Tensor& bias) {
    return ops::layerNorm(t, DimVector{embed}, weight, bias, eps);
  };
  Tensor x = norm_first ? norm(rows, norm_weight_1, norm_bias_1) : rows;
  x = ops::add(
      attend(op, x, lengthsOf(form), embed, heads, {qkv_weight, qkv_bias, proj_weight, proj_bias}),
      rows);
  if (!norm_first) x = norm(x, norm_weight_1, norm_bias_1);
  const Tensor before = x;
  if (norm_first) x = norm(x, norm_weight_2, norm_bias_2);
  const Tensor hidden = wick::linear(x, ffn_weight_1, ffn_bias_1);
  x = wick::linear(use_gelu ? ops::gelu(hidden) : ops::relu(hidden), ffn_weight_2, ffn_bias_2);
  x = ops::add(x, before);
  return fromRows(norm_first ? x : norm(x, norm_weight_2, norm_bias_2), form);
}

constexpr OperatorRecord kLayersRecords[] = {
    {"aten::_nested_tensor_layer_norm(Tensor self, Tensor? weight, Tensor? bias, float eps) -> "
     "Tensor",
     WICK_KERNEL(normalized), kAnyKind},
    {"aten::_nested_tensor_softmax_with_shape(Tensor self, Tensor query) -> Tensor",
     WICK_KERNEL(softmaxWithShape), kAnyKind},
};
const RegisterOperators kLayersRegistered(kLayersRecords);

constexpr KindKernel kLayersKernels[] = {
    {"aten::linear", WICK_KERNEL(linear)},
    {"aten::bmm", WICK_KERNEL(product<true>)},
    {"aten::matmul", WICK_KERNEL(product<false>)},
    {"aten::softmax.int", WICK_KERNEL(softmax)},
    {"aten::layer_norm", WICK_KERNEL(layerNorm)},
    {"aten::_native_multi_head_attention", WICK_KERNEL(multiHead)},
    {"aten::_transformer_encoder_layer_fwd", WICK_KERNEL(encoderLayer)},
};
const RegisterKindKernels kLayersKernelsRegistered(TensorKind::Nested, kLayersKernels);

}  // namespace

}  // namespace wick::ops::nested
