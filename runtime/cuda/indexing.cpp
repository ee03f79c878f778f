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
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/reduce_at.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::cuda {

namespace {

using ops::Reduction;
using ops::reductionNamed;

// What happens to the element: it is read into the value; it becomes the value, where the point is the
// last that writes to it; the point's number becomes its mark, unless a later one does; its position
// among the tensor's elements becomes the value, -1 where the index is out of bounds.
enum class Access { Read, Write, Mark, Place };

struct IndexPart {
  Tensor index;      // int64, of the shape's sizes (expanded)
  int64_t size = 0;  // what it may address
  int64_t step = 0;  // in elements of the indexed tensor
};
// The points of a shape, and which element of a tensor each stands for:
// self[sum of coordinates * self_steps + indices].
struct Points {
  Tensor self;
  DimVector sizes;
  DimVector self_steps;
  std::vector<IndexPart> parts;
};

constexpr const char* kText = R"({preamble}
typedef {type} T;
struct Words {{ long long w[{words}]; }};
extern "C" __global__ void __launch_bounds__(256) indexed(const __grid_constant__ Words p) {{
  const long long total = p.w[0];
  bool bad = false;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    long long rest = i, self = 0, value = 0{index_names};
{coordinates}
    bool inside = true;
{indices}
    if (!inside) {{ bad = true; {outside} continue; }}
    T* const element = (T*)p.w[{self_base}] + self;
    T* const other = (T*)p.w[{value_base}] + value;
    {access}
  }}
  if (bad) *(volatile long long*)p.w[{flag}] = p.w[{flag} + 1];
}}
)";

}  // namespace

std::string movedType(size_t bytes) {
  switch (bytes) {
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

namespace {

// At each point: its element meets that of the value with the same coordinates.
void access(const char* op, Access how, const Points& points, const Tensor& value,
            const Tensor& marks = {}) {
  const auto& [self, sizes, self_steps, parts] = points;
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
                               add(self_steps[d]), add(value.strides()[d]));
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
  const size_t mark = marks.defined() ? add(wordOf(marks)) : 0;
  const bool places = how == Access::Place;
  std::string action;
  switch (how) {
    case Access::Read:
      action = "*other = *element;";
      break;
    case Access::Write:
      action = fmt::format("if (((const long long*)p.w[{}])[self] == i) *element = *other;", mark);
      break;
    case Access::Mark:
      action = fmt::format("atomicMax((long long*)p.w[{}] + self, i);", mark);
      break;
    case Access::Place:
      action = "*(long long*)other = self;";
      break;
  }
  const std::string text = fmt::format(
      fmt::runtime(kText), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
      fmt::arg("type", movedType(places ? sizeof(int64_t) : self.itemSize())),
      fmt::arg("words", words.size()), fmt::arg("index_names", names),
      fmt::arg("coordinates", coordinates), fmt::arg("indices", indices),
      fmt::arg("self_base", self_base), fmt::arg("value_base", value_base), fmt::arg("flag", flag),
      fmt::arg("access", action),
      fmt::arg("outside",
               places ? fmt::format("((long long*)p.w[{}])[value] = -1;", value_base) : ""));
  launchText(device, text, "indexed", gridFor(total, device), words);
}

// How many elements lie between a tensor's first one and its last one, that included.
int64_t spanOf(const Tensor& t) {
  int64_t span = 1;
  for (int64_t d = 0; d < t.dim(); ++d) {
    int64_t far = 0;
    WICK_CHECK(
        t.stride(d) >= 0 &&
            !__builtin_mul_overflow(std::max<int64_t>(0, t.size(d) - 1), t.stride(d), &far) &&
            !__builtin_add_overflow(span, far, &span),
        "index_put: a tensor of strides {} is too large", formatInts(t.strides()));
  }
  return span;
}

// Writes value to element after element; of several for one element the last stays, as it does where
// one thread writes all.
void write(const char* op, const Points& points, const Tensor& value) {
  if (checkedNumel(points.sizes) == 0) return;
  const Tensor& self = points.self;
  const Tensor marks = Tensor::empty(DimVector{spanOf(self)}, DType::Long, self.device());
  ops::fillWith(marks, Scalar(-1));
  access(op, Access::Mark, points, value, marks);
  access(op, Access::Write, points, value, marks);
}

// Reduces value into element after element, in the order of the points.
void reduce(const char* op, const Points& points, const Tensor& value, Reduction how,
            bool include_self) {
  if (checkedNumel(points.sizes) == 0) return;
  const Tensor places = Tensor::empty(points.sizes, DType::Long, points.self.device());
  access(op, Access::Place, points, places);
  reduceAt(op, points.self, places.reshape(DimVector{-1}),
           value.expand(points.sizes).contiguous().reshape(DimVector{-1}), how, include_self);
}

// ---- index and index_put ----

Tensor positionsOf(const char* op, const Tensor& index, Device device) {
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "{}: tensors used as indices must be long, int, byte or bool tensors, got {}", op,
             toString(index.dtype()));
  return moveTo(index, device).to(DType::Long);
}

// The points of the result where a tensor is indexed by some of its dimensions.
Points plan(const char* op, const Tensor& self, const std::vector<Tensor>& given) {
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
  Points plan{self, {}, {}, {}};
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
  const Points points = plan("index", self, indices);
  const Tensor out = Tensor::empty(points.sizes, self.dtype(), self.device());
  access("index", Access::Read, points, out);
  return out;
}

void putInto(const char* op, const Tensor& self, const std::vector<Tensor>& indices,
             const Tensor& values, bool accumulate) {
  WICK_CHECK(values.dtype() == self.dtype(),
             "Index put requires the source and destination dtypes match, got {} for the "
             "destination and {} for the source.",
             toString(self.dtype()), toString(values.dtype()));
  const Points points = plan(op, self, indices);
  const Tensor spread = moveTo(values, self.device()).expand(points.sizes);
  if (accumulate) {
    reduce(op, points, spread, Reduction::Sum, true);
  } else {
    write(op, points, spread);
  }
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

// With an index in one dimension: its points, and what is read or written there.
struct Reach {
  Points points;
  Tensor value;
};
Reach along(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
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
  return {{t,
           DimVector(at.sizes()),
           steps,
           {{positionsOf(op, at, t.device()), t.size(dim), t.stride(dim)}}},
          v};
}
void readAlong(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
               const Tensor& out) {
  const Reach r = along(op, self, dim, index, out);
  access(op, Access::Read, r.points, r.value);
}
void writeAlong(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                const Tensor& value) {
  const Reach r = along(op, self, dim, index, value);
  write(op, r.points, r.value);
}
void reduceAlong(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                 const Tensor& value, Reduction how, bool include_self = true) {
  WICK_CHECK(value.dtype() == self.dtype(), "{}: expected one dtype, got {} and {}", op,
             self.describe(), value.describe());
  const Reach r = along(op, self, dim, index, value);
  // The value may be larger than the index.
  const Tensor used = r.value.asStrided(r.points.sizes, r.value.strides(), r.value.offset());
  reduce(op, r.points, used, how, include_self);
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const Tensor out = Tensor::empty(index.sizes(), self.dtype(), self.device());
  if (out.numel() > 0) readAlong("gather", self, dim, index, out);
  return out;
}
Tensor scatterSource(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Tensor out = self.clone();
  if (index.numel() > 0) writeAlong("scatter", out, dim, index, src.to(self.dtype()));
  return out;
}
Tensor scatterValue(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Tensor out = self.clone();
  const Tensor number = ops::fillWith(Tensor::empty({}, self.dtype(), self.device()), value);
  if (index.numel() > 0) writeAlong("scatter", out, dim, index, number.expand(index.sizes()));
  return out;
}
Tensor scatterAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Tensor out = self.clone();
  if (index.numel() > 0) reduceAlong("scatter_add", out, dim, index, src, Reduction::Sum);
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
  reduceAlong("plane_scatter", asRows(out, n), 1, asRows(indices, n), asRows(values, n),
              Reduction::Sum);
  return out;
}
Tensor planeGather(const Tensor& self, const Tensor& indices, int64_t n) {
  checkPlanes("plane_gather", self, n);
  checkPlanes("plane_gather", indices, n);
  const Tensor out = Tensor::empty(indices.sizes(), self.dtype(), self.device());
  if (out.numel() > 0) {
    readAlong("plane_gather", asRows(self, n), 1, asRows(indices, n), asRows(out, n));
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
Tensor asRow(const Tensor& t) {
  return t.reshape(DimVector{-1});
}
// compute(self, dim, index, source) with the index spread over the other dimensions; of a tensor without
// dimensions what is computed of one dimension.
template <class F>
Tensor alongIndex(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  F&& compute) {
  if (self.dim() == 0) {
    return alongIndex(self.unsqueeze(0), dim, asRow(index), asRow(source), compute)
        .reshape(DimVector{});
  }
  dim = wrapDim(dim, self.dim());
  return compute(self, dim, spreadIndex(self, dim, index), source);
}
Tensor indexAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Scalar& alpha) {
  const bool plain = !alpha.isComplex() && alpha.toDouble() == 1;
  const Tensor added = plain ? source : ops::mulScalar(source, alpha).to(source.dtype());
  return alongIndex(self, dim, index, added, scatterAdd);
}
Tensor indexCopy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  return alongIndex(self, dim, index, source, scatterSource);
}
Tensor indexFillTensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  WICK_CHECK(value.dim() == 0,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
             "dimension(s).",
             value.dim());
  return alongIndex(self, dim, index, moveTo(value, self.device()),
                    [](const Tensor& t, int64_t d, const Tensor& at, const Tensor& from) {
                      return scatterSource(t, d, at, from.expand(at.sizes()));
                    });
}
Tensor indexFill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Tensor number = Tensor::empty({}, self.dtype(), self.device());
  return indexFillTensor(self, dim, index, ops::fillWith(number, value));
}
Tensor scatterReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                     const std::string& reduce, bool include_self) {
  const std::optional<Reduction> how = reductionNamed(reduce);
  WICK_CHECK(how.has_value(), "reduce argument must be either sum, prod, mean, amax or amin.");
  const Tensor out = self.clone();
  if (index.numel() > 0) reduceAlong("scatter_reduce", out, dim, index, src, *how, include_self);
  return out;
}
Tensor scatterMode(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                   const std::string& reduce) {
  WICK_CHECK(reduce == "add" || reduce == "multiply",
             "reduce argument must be either add or multiply.");
  return scatterReduce(self, dim, index, src, reduce == "add" ? "sum" : "prod", true);
}
Tensor scatterValueMode(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                        const std::string& reduce) {
  const Tensor number = ops::fillWith(Tensor::empty({}, self.dtype(), self.device()), value);
  return scatterMode(self, dim, index, number.expand(index.sizes()), reduce);
}
Tensor indexReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const std::string& reduce, bool include_self) {
  WICK_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
             "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.",
             reduce);
  return alongIndex(self, dim, index, source,
                    [&](const Tensor& t, int64_t d, const Tensor& at, const Tensor& from) {
                      return scatterReduce(t, d, at, from, reduce, include_self);
                    });
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
  std::vector<int64_t> words = {wordOf(mask), wordOf(counts), wordOf(out), n};
  for (const int64_t size : mask.sizes()) words.push_back(size);
  launchPoints(self.device(), fmt::format(fmt::runtime(kPlaces), fmt::arg("dims", dims)), "places",
               n, words);
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

// Into the elements of a flat tensor.
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  WICK_CHECK(index.dtype() == DType::Long, "put_(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  WICK_CHECK(self.dtype() == source.dtype() && index.numel() == source.numel(),
             "put_(): Expected source and index to have the same number of elements and one dtype, "
             "got {}, {} and {}",
             self.describe(), index.describe(), source.describe());
  WICK_CHECK(self.numel() > 0 || index.numel() == 0,
             "put_(): tried to put elements into an empty tensor");
  const Tensor out = self.clone(MemoryFormat::Contiguous);
  if (index.numel() == 0) return out;
  const Tensor flat = out.view(DimVector{-1});
  if (accumulate) {
    reduceAlong("put_", flat, 0, asRow(index), asRow(source), Reduction::Sum);
  } else {
    writeAlong("put_", flat, 0, asRow(index), asRow(source));
  }
  return out;
}
Tensor maskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  WICK_CHECK(self.dtype() == source.dtype(),
             "masked_scatter: expected self and source to have same dtypes but got {} and {}",
             scalarTypeName(self.dtype()), scalarTypeName(source.dtype()));
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "masked_scatter: expected BoolTensor for mask, got {}", toString(mask.dtype()));
  const DimVector sizes = broadcastShapes(self.sizes(), mask.sizes());
  const Tensor out = self.expand(sizes).clone(MemoryFormat::Contiguous);
  const Tensor places = nonzero(mask.expand(sizes).reshape(DimVector{-1})).reshape(DimVector{-1});
  WICK_CHECK(places.numel() <= source.numel(),
             "Number of elements of source < number of ones in mask");
  if (places.numel() == 0) return out;
  writeAlong("masked_scatter", out.view(DimVector{-1}), 0, places,
             asRow(source).narrow(0, 0, places.numel()));
  return out;
}
Tensor takeAlongDim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return gather(asRow(self), 0, asRow(indices), false);
  const int64_t d = wrapDim(*dim, self.dim());
  WICK_CHECK(self.dim() == indices.dim(),
             "torch.take_along_dim(): input and indices should have the same number of dimensions, "
             "but got {} dimensions for input, and {} dimensions for indices",
             self.dim(), indices.dim());
  if (self.dim() == 0) return gather(self, d, indices, false);
  // All dimensions broadcast but the one that is indexed.
  DimVector a(self.sizes()), b(indices.sizes());
  const auto at = static_cast<size_t>(d);
  a[at] = b[at] = 1;
  DimVector from = broadcastShapes(a, b), to = from;
  from[at] = self.size(d);
  to[at] = indices.size(d);
  return gather(self.expand(from), d, indices.expand(to), false);
}
// Of planes that the last `n` dimensions are, indices say where each element goes.
Tensor unpooled(const char* op, const Tensor& self, const Tensor& indices, const DimVector& size,
                int64_t n) {
  const DimVector sizes = unpooledSizes(op, self, indices, expandInts(op, "output_size", size, static_cast<size_t>(n)));
  const Tensor out = Tensor::zeros(sizes, self.dtype(), self.device());
  if (self.numel() == 0) return out;
  writeAlong(op, asRows(out, n), 1, asRows(indices, n), asRows(self, n));
  return out;
}
Tensor maxUnpool2d(const Tensor& self, const Tensor& indices, const DimVector& size) {
  return unpooled("max_unpool2d", self, indices, size, 2);
}
Tensor maxUnpool3d(const Tensor& self, const Tensor& indices, const DimVector& size,
                   const DimVector& stride, const DimVector& padding) {
  checkUnpooledWindows(stride, padding);
  return unpooled("max_unpool3d", self, indices, size, 3);
}

const DeviceKernel kKernels[] = {
    {"aten::put", WICK_KERNEL(put)},
    {"aten::masked_scatter", WICK_KERNEL(maskedScatter)},
    {"aten::take_along_dim", WICK_KERNEL(takeAlongDim)},
    {"aten::max_unpool2d", WICK_KERNEL(maxUnpool2d)},
    {"aten::max_unpool3d", WICK_KERNEL(maxUnpool3d)},
    {"aten::scatter_reduce.two", WICK_KERNEL(scatterReduce)},
    {"aten::scatter.reduce", WICK_KERNEL(scatterMode)},
    {"aten::scatter.value_reduce", WICK_KERNEL(scatterValueMode)},
    {"aten::index_reduce", WICK_KERNEL(indexReduce)},
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
    {"aten::index_fill.int_Tensor", WICK_KERNEL(indexFillTensor)},
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
