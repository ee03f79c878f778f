// Operators on CUDA devices whose records' kernels look at elements, but which are made of others here.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/pointwise.h"
#include "runtime/cuda/tables.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/device_composites.h"

namespace wick::cuda {

namespace {

// ---- functions of elements ----

constexpr const char* kFrexp = R"({preamble}
typedef {type} T;
typedef {wide} A;
struct Words {{ const T* x; T* y; int* exponents; long long n; }};
extern "C" __global__ void __launch_bounds__(256) partsOf(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {{
    int power = 0;
    const T e = p.x[i];
    const A v = frexp({load}, &power);
    p.y[i] = {store};
    p.exponents[i] = power;
  }}
}}
)";
Pair frexp(const Tensor& self) {
  WICK_CHECK(isFloating(self.dtype()), "torch.frexp() only supports floating-point dtypes, got {}",
             toString(self.dtype()));
  const Tensor x = self.contiguous();
  const Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  const Tensor powers = Tensor::empty(x.sizes(), DType::Int, x.device());
  if (x.numel() == 0) return {out, powers};
  const std::string text =
      textOf(kFrexp, x.dtype(), fmt::arg("store", narrowedText("v", x.dtype())));
  launchPoints(x.device(), text, "partsOf", x.numel(),
               {wordOf(x), wordOf(out), wordOf(powers), x.numel()});
  return {out, powers};
}

// ---- comparisons ----

Tensor isinTensors(const Tensor& elements, const Tensor& tests, bool, bool invert) {
  const Tensor flat = tests.reshape(DimVector{-1});
  Tensor found = flat.numel() == 0
                     ? Tensor::zeros(elements.sizes(), DType::Bool, elements.device())
                     : ops::anyDim(ops::eq(elements.unsqueeze(-1), flat), int64_t{-1}, false);
  return invert ? ops::logicalNot(found) : found;
}
Tensor isinNumber(const Tensor& elements, const Scalar& test, bool, bool invert) {
  return invert ? ops::neScalar(elements, test) : ops::eqScalar(elements, test);
}

Tensor trace(const Tensor& self) {
  WICK_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim {}", self.dim());
  return ops::sum(ops::diagonal(self));
}

// ---- tensors put together ----

Tensor combinations(const Tensor& self, int64_t r, bool repeat) {
  WICK_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape {}", formatInts(self.sizes()));
  // Which elements, by their numbers.
  const Tensor places = [&] {
    const OnCpuScope here;
    return ops::combinations(ops::arange(self.numel()), r, repeat);
  }();
  if (places.dim() != 2) return Tensor::empty(places.sizes(), self.dtype(), self.device());
  return ops::indexSelect(self, int64_t{0}, tableOn(self.device(), places.reshape(DimVector{-1})))
      .reshape(places.sizes());
}
Tensor embeddingRenorm(const Tensor& self, const Tensor& indices, double max_norm,
                       double norm_type) {
  static const OperatorHandle kUnique{"aten::_unique2", ""}, kCopy{"aten::index_copy", ""};
  ops::checkRenorm(self, indices);
  if (indices.numel() == 0) return self.clone();
  const Tensor places = kUnique.all(indices.to(DType::Long), true, false, false)[0].toTensor();
  const Tensor rows = ops::indexSelect(self, int64_t{0}, places);
  return kCopy(self, int64_t{0}, places, ops::limitedRows(rows, max_norm, norm_type));
}

// ---- histograms: integers are counted, so that it does not matter in which order ----

constexpr const char* kCounts = R"(
typedef {type} T;
struct Words {{ const T* x; unsigned long long* counts; long long n, bins; double low, high; }};
extern "C" __global__ void __launch_bounds__(256) countBins(const __grid_constant__ Words p) {{
  const T low = (T)p.low, high = (T)p.high;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {{
    const T v = p.x[i];
    if (!(v >= low && v <= high)) continue;
    long long at = (long long)((v - low) * (T)p.bins / (high - low));
    at = at < 0 ? 0 : at >= p.bins ? p.bins - 1 : at;
    atomicAdd(p.counts + at, 1ull);
  }}
}}
)";
Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  WICK_CHECK(!min.isComplex() && !max.isComplex(),
             "torch.histc: expected real bounds, got complex ones");
  WICK_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got {} for dimension 0", bins);
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "histc: not available for {} on CUDA devices", toString(self.dtype()));
  double low = min.toDouble(), high = max.toDouble();
  WICK_CHECK(low <= high, "torch.histc: max must be larger than min");
  const Tensor x = self.contiguous();
  if (low == high && x.numel() > 0) {
    low = ops::amin(x).to(DType::Double).item<double>();
    high = ops::amax(x).to(DType::Double).item<double>();
  }
  WICK_CHECK(std::isfinite(low) && std::isfinite(high),
             "torch.histc: range of [{}, {}] is not finite", low, high);
  if (low == high) {
    low -= 1;
    high += 1;
  }
  const Tensor counts = Tensor::zeros(DimVector{bins}, DType::Long, x.device());
  if (x.numel() > 0) {
    const std::string text = textOf(kCounts, x.dtype());
    launchPoints(x.device(), text, "countBins", x.numel(),
                 {wordOf(x), wordOf(counts), x.numel(), bins, std::bit_cast<int64_t>(low),
                  std::bit_cast<int64_t>(high)});
  }
  return counts.to(x.dtype());
}

const DeviceKernel kCompositesKernels[] = {
    {"aten::frexp.Tensor", WICK_KERNEL(frexp)},
    {"aten::isin.Tensor_Tensor", WICK_KERNEL(isinTensors)},
    {"aten::isin.Tensor_Scalar", WICK_KERNEL(isinNumber)},
    {"aten::trace", WICK_KERNEL(trace)},
    {"aten::combinations", WICK_KERNEL(combinations)},
    {"aten::histc", WICK_KERNEL(histc)},
};
// ---- what the engine of pointwise operators has no definition for ----

Tensor exp2(const Tensor& self) {
  if (!isComplex(self.dtype())) return computePointwise(kScalar<scalar::Exp2>, self.device(), self);
  return ops::exp(ops::mulScalar(self, Scalar(std::numbers::ln2)));
}
// Of complex numbers with the care that small ones need (runtime/ops/pointwise/complex_logarithms.h).
Tensor log1p(const Tensor& self) {
  static const OperatorHandle kAtan2{"aten::atan2", ""}, kHypot{"aten::hypot", ""};
  if (!isComplex(self.dtype())) {
    return computePointwise(kScalar<scalar::Log1p>, self.device(), self);
  }
  const Tensor x = ops::real(self), y = ops::imag(self), above = ops::addScalar(x, Scalar(1));
  const Tensor r = ops::add(ops::mul(x, ops::addScalar(x, Scalar(2))), ops::mul(y, y));
  const Tensor few =
      ops::where(ops::eqScalar(r, Scalar(0)), x, ops::mulScalar(ops::log1p(r), Scalar(0.5)));
  const Tensor size =
      ops::where(ops::ltScalar(ops::abs(self), Scalar(0.5)), few, ops::log(kHypot(above, y)));
  return ops::complex(size, kAtan2(y, above));
}
// The number of the larger real part is taken out of the sum.
Tensor logaddexp(const Tensor& self, const Tensor& other) {
  const DType type = promoteTypes(self.dtype(), other.dtype());
  if (!isComplex(type)) {
    return computePointwise(kScalar<scalar::Logaddexp>, self.device(), self, other);
  }
  const DimVector sizes = broadcastShapes(self.sizes(), other.sizes());
  const Tensor a = self.to(type).expand(sizes), b = other.to(type).expand(sizes);
  const Tensor x = ops::real(a), y = ops::real(b), less = ops::lt(x, y);
  const Tensor low = ops::where(less, a, b), high = ops::where(less, b, a);
  const Tensor sum = ops::add(ops::log1p(ops::exp(ops::sub(low, high))), high);
  // Of two infinities the angle of what is nothing means nothing.
  const Tensor plain = ops::log(ops::add(ops::exp(low), ops::exp(high)));
  const Tensor both = ops::logicalAnd(ops::isInf(x), ops::eq(x, y));
  return ops::where(
      both, ops::where(ops::lt(x, Tensor::zeros({}, x.dtype(), x.device())), low, plain), sum);
}

// The neighbour of x in the direction of y among the numbers of 16 bits.
constexpr const char* kNeighbours = R"({preamble}
typedef {type} T;
struct Words {{ const T* x; const T* y; unsigned short* out; long long n; }};
extern "C" __global__ void __launch_bounds__(256) neighbours(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {{
    T e = p.x[i];
    const float from = {load};
    const unsigned short own = e.bits;
    e = p.y[i];
    const float to = {load};
    if (from != from || to != to) p.out[i] = {nan};
    else if (from == to) p.out[i] = e.bits;
    else if (from == 0) p.out[i] = (unsigned short)((to < 0 ? 0x8000 : 0) | 1);
    else p.out[i] = (unsigned short)((from < to) == (from > 0) ? own + 1 : own - 1);
  }}
}}
)";
Tensor nextafter(const Tensor& self, const Tensor& other) {
  const DType type = promoteTypes(self.dtype(), other.dtype());
  if (!isReducedFloat(type) || !isReducedFloat(self.dtype()) || !isReducedFloat(other.dtype())) {
    return computePointwise(kScalar<scalar::Nextafter>, self.device(), self, other);
  }
  const DimVector sizes = broadcastShapes(self.sizes(), other.sizes());
  const Tensor x = self.to(type).expand(sizes).contiguous();
  const Tensor y = other.to(type).expand(sizes).contiguous();
  const Tensor out = Tensor::empty(sizes, type, x.device());
  if (out.numel() == 0) return out;
  const std::string text =
      textOf(kNeighbours, type, fmt::arg("nan", type == DType::Half ? "0x7e00" : "0x7fc0"));
  launchPoints(x.device(), text, "neighbours", out.numel(),
               {wordOf(x), wordOf(y), wordOf(out), out.numel()});
  return out;
}

// ---- shapes and dtypes that loop forms leave out ----

// One sample without a dimension for it.
Tensor nllLoss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
               int64_t ignore_index) {
  if (self.dim() != 1) throw NotOnDevice();
  WICK_CHECK(target.dim() == 0 || (target.dim() == 1 && target.numel() == 1),
             "nll_loss: expected one target for input {}, got {}", self.describe(),
             target.describe());
  const Tensor loss = ops::nllLoss(self.unsqueeze(0), target.reshape(DimVector{1}), weight,
                                   reduction, ignore_index);
  return loss.reshape(reduction == 0 ? DimVector(target.sizes()) : DimVector{});
}
// Of booleans as of the numbers zero and one.
template <bool kLargest>
Pair extremeTruth(const Tensor& self, int64_t dim, bool keepdim) {
  static const OperatorHandle kMax{"aten::max", "dim"}, kMin{"aten::min", "dim"};
  if (self.dtype() != DType::Bool) throw NotOnDevice();
  const std::vector<IValue> both = (kLargest ? kMax : kMin).all(self.to(DType::Byte), dim, keepdim);
  return {both[0].toTensor().to(DType::Bool), both[1].toTensor()};
}

// What their loop form does not cover.
const DeviceKernel kCompositesLast[] = {
    {"aten::exp2", WICK_KERNEL(exp2)},
    {"aten::log1p", WICK_KERNEL(log1p)},
    {"aten::logaddexp", WICK_KERNEL(logaddexp)},
    {"aten::nextafter", WICK_KERNEL(nextafter)},
    {"aten::nll_loss_nd", WICK_KERNEL(nllLoss)},
    {"aten::max.dim", WICK_KERNEL(extremeTruth<true>)},
    {"aten::min.dim", WICK_KERNEL(extremeTruth<false>)},
    {"aten::embedding_renorm", WICK_KERNEL(embeddingRenorm)},
};
const RegisterDeviceKernels kCompositesRegistered(DeviceType::CUDA, kCompositesKernels);
const RegisterDeviceKernels kCompositesLastRegistered(DeviceType::CUDA, kCompositesLast,
                                                      TableRule::Last);
const ops::RegisterComposites composites(DeviceType::CUDA);

}  // namespace

}  // namespace wick::cuda
