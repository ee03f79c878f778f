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
#include "runtime/ops/indexing/device_indexing.h"

namespace wick::cuda {

namespace {

using ops::Reach;
using ops::Reduction;

// What happens to the element: it is read into the value; it becomes the value, where the point is the
// last that writes to it; the point's number becomes its mark, unless a later one does; its position
// among the tensor's elements becomes the value, -1 where the index is out of bounds.
enum class Access { Read, Write, Mark, Place };

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
void access(const char* op, Access how, const Reach& reach, const Tensor& value,
            const Tensor& marks = {}) {
  const auto& [self, sizes, self_steps, parts, from_end] = reach;
  const int64_t total = checkedNumel(sizes);
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
    const size_t index = add(wordOf(parts[k].index)), size = add(parts[k].size);
    indices += fmt::format(
        "    {{ long long j = ((const {}*)p.w[{}])[at{}];{}\n"
        "      inside = inside && j >= 0 && j < p.w[{}]; self += j * p.w[{}]; }}\n",
        parts[k].index.dtype() == DType::Int ? "int" : "long long", index, k,
        from_end ? fmt::format(" if (j < 0) j += p.w[{}];", size) : "", size, add(parts[k].step));
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

Tensor asRow(const Tensor& t) {
  return t.reshape(DimVector{-1});
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

// Where one thread writes all, too, the last of several values stays.
void write(const char* op, const Reach& reach, const Tensor& values) {
  const Tensor& self = reach.self;
  const Tensor marks = Tensor::empty(DimVector{spanOf(self)}, DType::Long, self.device());
  ops::fillWith(marks, Scalar(-1));
  access(op, Access::Mark, reach, values, marks);
  access(op, Access::Write, reach, values, marks);
}
void reduce(const char* op, const Reach& reach, const Tensor& values, Reduction how,
            bool include_self) {
  const Tensor places = Tensor::empty(reach.sizes, DType::Long, reach.self.device());
  access(op, Access::Place, reach, places);
  reduceAt(op, reach.self, asRow(places), asRow(values), how, include_self);
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
  const Tensor counts = ops::cumsum(mask.view(DimVector{-1}), int64_t{0});
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
  const Tensor flat = asRow(self.expand(sizes));
  const Tensor places = nonzero(asRow(mask.expand(sizes)));
  return ops::elementsAt("masked_select", flat, asRow(places));
}

Tensor maskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  WICK_CHECK(self.dtype() == source.dtype(),
             "masked_scatter: expected self and source to have same dtypes but got {} and {}",
             scalarTypeName(self.dtype()), scalarTypeName(source.dtype()));
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "masked_scatter: expected BoolTensor for mask, got {}", toString(mask.dtype()));
  const DimVector sizes = broadcastShapes(self.sizes(), mask.sizes());
  const Tensor out = self.expand(sizes).clone(MemoryFormat::Contiguous);
  const Tensor places = asRow(nonzero(asRow(mask.expand(sizes))));
  WICK_CHECK(places.numel() <= source.numel(),
             "Number of elements of source < number of ones in mask");
  if (places.numel() == 0) return out;
  ops::writeElementsAt("masked_scatter", out.view(DimVector{-1}), places,
                       asRow(source).narrow(0, 0, places.numel()));
  return out;
}
std::vector<Tensor> positionsAlong(const char*, const Tensor& mask, Device device) {
  const Tensor places = nonzero(moveTo(mask, device));
  std::vector<Tensor> along;
  for (int64_t d = 0; d < mask.dim(); ++d) along.push_back(places.select(1, d));
  return along;
}

std::vector<Tensor> nonzeroEach(const Tensor& self) {
  return positionsAlong("nonzero", self.dim() == 0 ? self.unsqueeze(0) : self, self.device());
}

const ops::RegisterIndexDevice indexes({
    .type = DeviceType::CUDA,
    .takes_cpu = false,
    .here = moveTo,
    .number = [](const Scalar& value, DType dtype,
                 Device device) { return ops::fillWith(Tensor::empty({}, dtype, device), value); },
    .positionsOfTrue = positionsAlong,
    .read = [](const char* op, const Reach& reach,
               const Tensor& out) { access(op, Access::Read, reach, out); },
    .write = write,
    .reduce = reduce,
});

const DeviceKernel kIndexingKernels[] = {
    {"aten::masked_scatter", WICK_KERNEL(maskedScatter)},
    {"aten::masked_select", WICK_KERNEL(maskedSelect)},
    {"aten::nonzero", WICK_KERNEL(nonzero)},
    {"aten::argwhere", WICK_KERNEL(nonzero)},
    {"aten::nonzero_numpy", WICK_KERNEL(nonzeroEach)},
    {"aten::where", WICK_KERNEL(nonzeroEach)},
};
const RegisterDeviceKernels kIndexingRegistered(DeviceType::CUDA, kIndexingKernels);

}  // namespace

}  // namespace wick::cuda
