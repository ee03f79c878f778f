// Reads and writes by index tensors, and positions of elements, on CUDA devices.
//
// One kernel text serves them all: at each point of a shape, the element of a tensor whose position
// is made of the point's own coordinates and of indices that are read there.
#include <fmt/format.h>

#include "codegen/cuda/scalar_text.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

// What happens to the element: it is read into the value, becomes the value, or has it added.
enum class Access { Read, Write, Add };

struct IndexPart {
  Tensor index;      // int64, of the shape's sizes (expanded)
  int64_t size = 0;  // what it may address
  int64_t step = 0;  // in elements of the indexed tensor
};

constexpr const char* kText = R"({preamble}
typedef {type} T;
struct Words {{ long long w[{words}]; }};
__device__ __forceinline__ void add(T* to, T value) {{ {add} }}
extern "C" __global__ void __launch_bounds__(256) indexed(const __grid_constant__ Words p) {{
  const long long total = p.w[0];
  bool bad = false;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    long long rest = i, self = 0, value = 0{index_names};
{coordinates}
    bool inside = true;
{indices}
    if (!inside) {{ bad = true; continue; }}
    T* const element = (T*)p.w[{self_base}] + self;
    T* const other = (T*)p.w[{value_base}] + value;
    {access}
  }}
  if (bad) *(volatile long long*)p.w[{flag}] = p.w[{flag} + 1];
}}
)";

// Elements that are only moved are so many bytes, whatever they mean.
std::string movedType(size_t item) {
  switch (item) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned";
    case 8:
      return "unsigned long long";
    default:
      return "ulonglong2";
  }
}

// Adds to an element that other threads may add to as well.
std::string addText(DType type) {
  switch (type) {
    case DType::Float:
    case DType::Double:
    case DType::Int:
      return "atomicAdd(to, value);";
    case DType::Long:
      return "atomicAdd((unsigned long long*)to, (unsigned long long)value);";
    default:
      break;
  }
  const bool halves = itemSize(type) == 2;
  const DType wide = isReducedFloat(type) ? DType::Float : DType::Long;
  const std::string sum =
      codegen::cudaConvert(fmt::format("({} + {})", codegen::cudaConvert("old", type, wide),
                                       codegen::cudaConvert("value", type, wide)),
                           wide, type);
  // The word around the element is exchanged until nobody was faster.
  return fmt::format(
      "unsigned* const word = (unsigned*)((unsigned long long)to & ~3ull);\n"
      "  const int shift = (int)((unsigned long long)to & 3ull) * 8;\n"
      "  const unsigned mask = {}u << shift;\n"
      "  unsigned seen = *word, expected;\n"
      "  do {{\n"
      "    expected = seen;\n"
      "    {} bits = ({})((expected & mask) >> shift);\n"
      "    T old; *({}*)&old = bits;\n"
      "    const T sum = {};\n"
      "    seen = atomicCAS(word, expected, (expected & ~mask) | ((unsigned)*(const {}*)&sum << "
      "shift));\n"
      "  }} while (seen != expected);",
      halves ? 0xffff : 0xff, movedType(itemSize(type)), movedType(itemSize(type)),
      movedType(itemSize(type)), sum, movedType(itemSize(type)));
}

// At each point of `sizes`: element self[sum of coordinates * self_steps + indices] meets
// value[coordinates * value_steps].
void access(const char* op, Access how, const Tensor& self, const DimVector& sizes,
            const DimVector& self_steps, const std::vector<IndexPart>& parts, const Tensor& value,
            const DimVector& value_steps) {
  const int64_t total = checkedNumel(sizes);
  if (total == 0) return;
  CudaDevice& device = enter(self.device());
  std::vector<int64_t> words = {total};
  const auto add = [&](int64_t w) {
    words.push_back(w);
    return words.size() - 1;
  };
  std::string names, coordinates, indices;
  for (size_t k = 0; k < parts.size(); ++k) names += fmt::format(", at{} = 0", k);
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    const size_t size = add(sizes[d]);
    coordinates +=
        fmt::format("    {{ const long long c = rest % p.w[{0}]; rest /= p.w[{0}];\n", size);
    coordinates += fmt::format("      self += c * p.w[{}]; value += c * p.w[{}];\n",
                               add(self_steps[d]), add(value_steps[d]));
    for (size_t k = 0; k < parts.size(); ++k) {
      const int64_t step = parts[k].index.stride(static_cast<int64_t>(d));
      if (step != 0) coordinates += fmt::format("      at{} += c * p.w[{}];\n", k, add(step));
    }
    coordinates += "    }\n";
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    indices += fmt::format(
        "    {{ long long j = ((const long long*)p.w[{0}])[at{1}]; if (j < 0) j += p.w[{2}];\n"
        "      inside = inside && j >= 0 && j < p.w[{2}]; self += j * p.w[{3}]; }}\n",
        add(wordOf(parts[k].index)), k, add(parts[k].size), add(parts[k].step));
  }
  const size_t self_base = add(wordOf(self)), value_base = add(wordOf(value));
  const size_t flag = add(static_cast<int64_t>(device.flagAddress()));
  add(device.complaint(fmt::format("{}: an index is out of bounds", op)));
  const bool adds = how == Access::Add;
  const std::string text = fmt::format(
      fmt::runtime(kText), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
      fmt::arg("type", adds ? codegen::cudaType(self.dtype()) : movedType(self.itemSize())),
      fmt::arg("words", words.size()), fmt::arg("add", adds ? addText(self.dtype()) : ""),
      fmt::arg("index_names", names), fmt::arg("coordinates", coordinates),
      fmt::arg("indices", indices), fmt::arg("self_base", self_base),
      fmt::arg("value_base", value_base), fmt::arg("flag", flag),
      fmt::arg("access", how == Access::Read    ? "*other = *element;"
                         : how == Access::Write ? "*element = *other;"
                                                : "add(element, *other);"));
  launchText(device, text, "indexed", gridFor(total, device), words);
}

// ---- index and index_put ----

// How a tensor is indexed by some of its dimensions: the shape of the result, and how its dimensions
// belong to those of the tensor.
struct Indexing {
  DimVector sizes;
  DimVector self_steps;
  std::vector<IndexPart> parts;
};

Tensor positionsOf(const char* op, const Tensor& index, Device device) {
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "{}: tensors used as indices must be long, int, byte or bool tensors, got {}", op,
             toString(index.dtype()));
  return moveTo(index, device).to(DType::Long);
}

Indexing plan(const char* op, const Tensor& self, const std::vector<Tensor>& given) {
  static const OperatorHandle kNonzero{"aten::nonzero", ""};
  WICK_CHECK(self.device().isCuda(),
             "indices should be either on cpu or on the same device as the indexed tensor ({})",
             self.device().str());
  // Masks become the positions where they are true, one index a dimension.
  std::vector<Tensor> indices;
  for (const Tensor& t : given) {
    if (!t.defined() || (t.dtype() != DType::Bool && t.dtype() != DType::Byte)) {
      indices.push_back(t.defined() ? positionsOf(op, t, self.device()) : t);
      continue;
    }
    for (int64_t d = 0; d < t.dim(); ++d) {
      const auto at = static_cast<int64_t>(indices.size()) + d;
      WICK_CHECK(at < self.dim() && t.size(d) == self.size(at),
                 "The shape of the mask {} at index {} does not match the shape of the indexed "
                 "tensor {} at index {}",
                 formatInts(t.sizes()), d, formatInts(self.sizes()), at);
    }
    const Tensor places = kNonzero(moveTo(t, self.device()));
    for (int64_t d = 0; d < t.dim(); ++d) indices.push_back(places.select(1, d));
  }
  WICK_CHECK(static_cast<int64_t>(indices.size()) <= self.dim(),
             "too many indices for tensor of dimension {} (got {})", self.dim(), indices.size());
  DimVector shape;
  bool any = false;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    shape = any ? broadcastShapes(shape, t.sizes()) : DimVector(t.sizes());
    any = true;
  }
  WICK_CHECK(any, "{}: at least one index must be a tensor", op);
  // Indexed dimensions that are neighbours are replaced where they stand, others come first.
  size_t first = indices.size(), last = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    first = std::min(first, d);
    last = d;
  }
  bool neighbours = true;
  for (size_t d = first; d <= last; ++d) neighbours = neighbours && indices[d].defined();
  const size_t before = neighbours ? first : 0;
  Indexing plan;
  size_t kept = 0;
  const auto addIndexed = [&] {
    for (const int64_t s : shape) {
      plan.sizes.push_back(s);
      plan.self_steps.push_back(0);
    }
  };
  size_t begin = 0;  // where the indices' dimensions stand in the result
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    if (kept == before && begin == 0 && plan.parts.empty() && d >= before) {
      begin = plan.sizes.size();
      addIndexed();
      plan.parts.emplace_back();  // a mark; the parts follow below
    }
    if (d < indices.size() && indices[d].defined()) continue;
    plan.sizes.push_back(self.sizes()[d]);
    plan.self_steps.push_back(self.strides()[d]);
    ++kept;
  }
  plan.parts.clear();
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    Tensor index = indices[d].expand(shape);
    DimVector sizes(plan.sizes), strides(plan.sizes.size(), 0);
    for (size_t i = 0; i < shape.size(); ++i) strides[begin + i] = index.strides()[i];
    plan.parts.push_back(
        {index.asStrided(sizes, strides, index.offset()), self.sizes()[d], self.strides()[d]});
  }
  return plan;
}

Tensor index(const Tensor& self, const std::vector<Tensor>& indices) {
  const Indexing p = plan("index", self, indices);
  const Tensor out = Tensor::empty(p.sizes, self.dtype(), self.device());
  access("index", Access::Read, self, p.sizes, p.self_steps, p.parts, out,
         DimVector(out.strides()));
  return out;
}

void putInto(const char* op, const Tensor& self, const std::vector<Tensor>& indices,
             const Tensor& values, bool accumulate) {
  WICK_CHECK(values.dtype() == self.dtype(),
             "Index put requires the source and destination dtypes match, got {} for the "
             "destination and {} for the source.",
             toString(self.dtype()), toString(values.dtype()));
  const Indexing p = plan(op, self, indices);
  const Tensor spread = moveTo(values, self.device()).expand(p.sizes);
  access(op, accumulate ? Access::Add : Access::Write, self, p.sizes, p.self_steps, p.parts, spread,
         DimVector(spread.strides()));
}
Tensor indexPut(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                bool accumulate) {
  const Tensor out = self.clone();
  putInto("index_put", out, indices, values, accumulate);
  return out;
}
Tensor indexPutInto(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                    bool accumulate) {
  putInto("index_put_", self, indices, values, accumulate);
  return self;
}
Tensor indexPutImpl(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                    bool accumulate, bool) {
  return indexPut(self, indices, values, accumulate);
}

// ---- along one dimension ----

// The tensor with its dimension replaced by an index of the same shape as what is read or written.
void along(const char* op, Access how, const Tensor& self, int64_t dim, const Tensor& index,
           const Tensor& value) {
  Tensor t = self, at = index;
  if (t.dim() == 0) t = t.unsqueeze(0);
  if (at.dim() == 0) at = at.unsqueeze(0);
  Tensor v = value.dim() == 0 && value.dim() < at.dim() ? value.expand(at.sizes()) : value;
  dim = wrapDim(dim, t.dim());
  WICK_CHECK(at.dim() == t.dim(),
             "{}: index and self must have the same number of dimensions, got "
             "{} and {}",
             op, at.dim(), t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) {
    WICK_CHECK(
        (d == dim || at.size(d) <= t.size(d)) && (v.dim() == at.dim() && at.size(d) <= v.size(d)),
        "{}: expected index {} to be no larger than self {} apart from dimension {} and no "
        "larger than src {}",
        op, formatInts(at.sizes()), formatInts(t.sizes()), dim, formatInts(v.sizes()));
  }
  DimVector steps(t.strides());
  steps[static_cast<size_t>(dim)] = 0;
  access(op, how, t, DimVector(at.sizes()), steps,
         {{positionsOf(op, at, t.device()), t.size(dim), t.stride(dim)}}, v,
         DimVector(v.strides()));
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const Tensor out = Tensor::empty(index.sizes(), self.dtype(), self.device());
  if (out.numel() > 0) along("gather", Access::Read, self, dim, index, out);
  return out;
}
Tensor scatterSource(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Tensor out = self.clone();
  if (index.numel() > 0) along("scatter", Access::Write, out, dim, index, src.to(self.dtype()));
  return out;
}
Tensor scatterValue(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Tensor out = self.clone();
  const Tensor number = moveTo(ops::numberTensor(value, self.dtype()), self.device());
  if (index.numel() > 0)
    along("scatter", Access::Write, out, dim, index, number.expand(index.sizes()));
  return out;
}
Tensor scatterAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Tensor out = self.clone();
  if (index.numel() > 0) along("scatter_add", Access::Add, out, dim, index, src);
  return out;
}

// Of planes that the last `n` dimensions are (autograd/kernels_nn_pooling.cpp).
Tensor asRows(const Tensor& t, int64_t n) {
  int64_t pixels = 1;
  for (int64_t d = t.dim() - n; d < t.dim(); ++d) pixels *= t.size(d);
  return t.reshape(DimVector{t.numel() / std::max<int64_t>(1, pixels), pixels});
}
void checkPlanes(const char* op, const Tensor& t, int64_t n) {
  WICK_CHECK(n >= 0 && n <= t.dim(), "{}: expected {} or more dimensions, got {}", op, n,
             t.describe());
}
Tensor planeScatter(const Tensor& values, const Tensor& indices, const DimVector& sizes,
                    int64_t n) {
  checkPlanes("plane_scatter", values, n);
  checkPlanes("plane_scatter", indices, n);
  const Tensor out = Tensor::zeros(sizes, values.dtype(), values.device());
  checkPlanes("plane_scatter", out, n);
  if (values.numel() == 0 || out.numel() == 0) return out;
  along("plane_scatter", Access::Add, asRows(out, n), 1, asRows(indices, n), asRows(values, n));
  return out;
}
Tensor planeGather(const Tensor& self, const Tensor& indices, int64_t n) {
  checkPlanes("plane_gather", self, n);
  checkPlanes("plane_gather", indices, n);
  const Tensor out = Tensor::empty(indices.sizes(), self.dtype(), self.device());
  if (out.numel() > 0) {
    along("plane_gather", Access::Read, asRows(self, n), 1, asRows(indices, n), asRows(out, n));
  }
  return out;
}

// Of an index of one dimension, which counts for all elements of the others.
Tensor spreadIndex(const Tensor& self, int64_t dim, const Tensor& index) {
  DimVector sizes(self.sizes()), shape(static_cast<size_t>(self.dim()), 1);
  sizes[static_cast<size_t>(dim)] = shape[static_cast<size_t>(dim)] = index.numel();
  return index.reshape(shape).expand(sizes);
}
Tensor indexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  if (self.dim() == 0)
    return gather(self.unsqueeze(0), 0, index.reshape(DimVector{-1}), false).reshape(DimVector{});
  dim = wrapDim(dim, self.dim());
  return gather(self, dim, spreadIndex(self, dim, index), false);
}
Tensor indexAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Scalar& alpha) {
  WICK_CHECK(self.dim() > 0, "index_add: expected a tensor of one or more dimensions");
  dim = wrapDim(dim, self.dim());
  const bool plain = !alpha.isComplex() && alpha.toDouble() == 1;
  return scatterAdd(self, dim, spreadIndex(self, dim, index),
                    plain ? source : ops::mulScalar(source, alpha).to(source.dtype()));
}
Tensor indexCopy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  WICK_CHECK(self.dim() > 0, "index_copy: expected a tensor of one or more dimensions");
  dim = wrapDim(dim, self.dim());
  return scatterSource(self, dim, spreadIndex(self, dim, index), source);
}
Tensor indexFill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  WICK_CHECK(self.dim() > 0, "index_fill: expected a tensor of one or more dimensions");
  dim = wrapDim(dim, self.dim());
  return scatterValue(self, dim, spreadIndex(self, dim, index), value);
}
Tensor take(const Tensor& self, const Tensor& index) {
  const Tensor flat = self.contiguous().view(DimVector{-1});
  return gather(flat, 0, index.reshape(DimVector{-1}), false).reshape(index.sizes());
}

// ---- positions of what is true ----

constexpr const char* kPlaces = R"(
struct Words {{ const bool* mask; const long long* counts; long long* out; long long n; long long sizes[{dims}]; }};
extern "C" __global__ void __launch_bounds__(256) places(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {{
    if (!p.mask[i]) continue;
    long long* const to = p.out + (p.counts[i] - 1) * {dims};
    long long rest = i;
    for (int d = {dims} - 1; d >= 0; --d) {{ to[d] = rest % p.sizes[d]; rest /= p.sizes[d]; }}
  }}
}}
)";

Tensor nonzero(const Tensor& self) {
  const Tensor mask = self.to(DType::Bool).contiguous();
  const int64_t n = mask.numel(), dims = mask.dim();
  if (n == 0) return Tensor::empty(DimVector{0, dims}, DType::Long, self.device());
  static const OperatorHandle kCumsum{"aten::cumsum", ""};
  const Tensor counts = kCumsum(mask.view(DimVector{-1}), int64_t{0});
  const int64_t found = counts.select(0, n - 1).item<int64_t>();
  const Tensor out = Tensor::empty(DimVector{found, dims}, DType::Long, self.device());
  if (out.numel() == 0) return out;
  CudaDevice& device = enter(self.device());
  std::vector<int64_t> words = {wordOf(mask), wordOf(counts), wordOf(out), n};
  for (const int64_t size : mask.sizes()) words.push_back(size);
  launchText(device, fmt::format(fmt::runtime(kPlaces), fmt::arg("dims", dims)), "places",
             gridFor(n, device), words);
  return out;
}
Tensor maskedSelect(const Tensor& self, const Tensor& mask) {
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "masked_select: expected BoolTensor for mask, got {}", toString(mask.dtype()));
  const DimVector sizes = broadcastShapes(self.sizes(), mask.sizes());
  const Tensor flat = self.expand(sizes).reshape(DimVector{-1});
  const Tensor places = nonzero(mask.expand(sizes).reshape(DimVector{-1}));
  return gather(flat, 0, places.reshape(DimVector{-1}), false);
}

const DeviceKernel kKernels[] = {
    {"aten::index.Tensor_hacked_twin", WICK_KERNEL(index)},
    {"aten::index_put.hacked_twin", WICK_KERNEL(indexPut)},
    {"aten::_index_put_impl", WICK_KERNEL(indexPutImpl)},
    {"aten::_unsafe_index.Tensor", WICK_KERNEL(index)},
    {"aten::_unsafe_index_put", WICK_KERNEL(indexPut)},
    {"aten::scatter.src", WICK_KERNEL(scatterSource)},
    {"aten::scatter.value", WICK_KERNEL(scatterValue)},
    {"aten::scatter_add", WICK_KERNEL(scatterAdd)},
    {"aten::index_add", WICK_KERNEL(indexAdd)},
    {"aten::index_copy", WICK_KERNEL(indexCopy)},
    {"aten::index_fill.int_Scalar", WICK_KERNEL(indexFill)},
    {"aten::take", WICK_KERNEL(take)},
    {"wick::plane_scatter", WICK_KERNEL(planeScatter)},
    {"wick::plane_gather", WICK_KERNEL(planeGather)},
    {"aten::masked_select", WICK_KERNEL(maskedSelect)},
    {"aten::nonzero", WICK_KERNEL(nonzero)},
    {"aten::argwhere", WICK_KERNEL(nonzero)},
};
// Indices may lie on the CPU, as may values of no dimensions.
const DeviceKernel kMixed[] = {
    {"aten::index.Tensor", WICK_KERNEL(index)},
    {"aten::index_put", WICK_KERNEL(indexPut)},
    {"aten::index_put_", WICK_KERNEL(indexPutInto)},
};

// Of elements that the loop IR does not know.
const DeviceKernel kLast[] = {
    {"aten::gather", WICK_KERNEL(gather)},
    {"aten::index_select", WICK_KERNEL(indexSelect)},
};

const RegisterDeviceKernels last(DeviceType::CUDA, kLast, TableRule::Last);
const RegisterDeviceKernels registered(DeviceType::CUDA, kKernels);
const RegisterDeviceKernels mixed(DeviceType::CUDA, kMixed, TableRule::Mixed);

}  // namespace

}  // namespace wick::cuda
