// torch.fft and short-time transforms.
#include <cmath>

#include "core/device_backend.h"
#include "runtime/kernels/fft.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/typed.h"

namespace wick {
namespace {

using OptDims = std::optional<DimVector>;
using OptInt = std::optional<int64_t>;
using Norm = std::optional<std::string>;

// As transforms on the CPU scale their results: each part by itself, so that zeros keep their signs.
Tensor scaled(const Tensor& t, double scale) {
  static const OperatorHandle kParts("aten::view_as_real", ""), kWhole("aten::view_as_complex", "");
  if (scale == 1) return t;
  if (!isComplex(t.dtype())) return ops::mulScalar(t, Scalar(scale));
  return kWhole(ops::mulScalar(kParts(t), Scalar(scale)));
}

// The transforms of runtime/kernels/fft.h. Those of tensors elsewhere are operators, for which a device
// has kernels; real ones are not scaled, and of one sign.
Tensor complexToComplex(const Tensor& x, IntSpan dims, bool forward, double scale) {
  static const OperatorHandle kTransform{"aten::_fft_c2c", ""};
  if (x.device().isCpu()) return fft::complexToComplex(x, dims, forward, scale);
  // Along several dimensions the first result is scaled, so that kernels that add as the CPU does round as it does, too.
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(x.size(d));
  const int64_t normalization = scale == 1                      ? 0
                                : scale == 1 / std::sqrt(count) ? 1
                                : scale == 1 / count            ? 2
                                                                : 0;
  const Tensor out = kTransform(x, DimVector(dims), normalization, forward);
  return normalization == 0 ? scaled(out, scale) : out;
}
Tensor realToComplex(const Tensor& x, int64_t dim, bool forward, bool onesided, double scale) {
  static const OperatorHandle kTransform{"aten::_fft_r2c", ""};
  if (x.device().isCpu()) return fft::realToComplex(x, dim, forward, onesided, scale);
  Tensor out = kTransform(x, DimVector{dim}, int64_t{0}, onesided);
  if (!forward) out = ops::conj(out);
  return scaled(out, scale);
}
Tensor complexToReal(const Tensor& x, int64_t dim, int64_t n, bool forward, double scale) {
  static const OperatorHandle kTransform{"aten::_fft_c2r", ""};
  if (x.device().isCpu()) return fft::complexToReal(x, dim, n, forward, scale);
  const Tensor out = kTransform(forward ? ops::conj(x) : x, DimVector{dim}, int64_t{0}, n);
  return scaled(out, scale);
}

// What a transform of `count` elements is multiplied by.
double scaleOf(const char* op, const Norm& norm, int64_t count, bool forward) {
  std::string name = norm.value_or("backward");
  WICK_CHECK(name == "backward" || name == "forward" || name == "ortho",
             "{}: Invalid normalization mode: \"{}\"", op, name);
  double n = static_cast<double>(count);
  if (name == "ortho") return 1 / std::sqrt(n);
  return (name == "forward") == forward ? 1 / n : 1;
}

// With floating or complex numbers.
Tensor toFloating(const char* op, const Tensor& t) {
  DType dtype = t.dtype();
  if (isIntegral(dtype, true)) dtype = defaultDType();
  WICK_CHECK(!isReducedFloat(dtype), "{}: Unsupported dtype {}", op, toString(dtype));
  return t.to(dtype);
}

Tensor toComplex(const char* op, const Tensor& t) {
  Tensor x = toFloating(op, t);
  return x.to(toComplexType(x.dtype()));
}

Tensor toReal(const char* op, const Tensor& t) {
  WICK_CHECK(!isComplex(t.dtype()), "{} expects a real input tensor, but got {}", op,
             scalarTypeName(t.dtype()));
  return toFloating(op, t);
}

// Cut or padded with zeros to `size` along a dimension.
Tensor fit(const char* op, const Tensor& t, int64_t d, int64_t size) {
  WICK_CHECK(size >= 1, "{}: Invalid number of data points ({}) specified", op, size);
  if (t.size(d) == size) return t;
  if (t.size(d) > size) return t.narrow(d, 0, size);
  DimVector sizes(t.sizes());
  sizes[static_cast<size_t>(d)] = size;
  Tensor out = Tensor::zeros(sizes, t.dtype(), t.device());
  out.narrow(d, 0, t.size(d)).copyFrom(t);
  return out;
}

struct Shape {
  DimVector dims, sizes;
  int64_t count = 1;
};

// The dimensions and their lengths; a length of -1 or none keeps the tensor's.
Shape shapeOf(const char* op, const Tensor& t, const OptDims& s, const OptDims& dim) {
  Shape r;
  if (dim) {
    for (int64_t d : *dim) r.dims.push_back(wrapDim(d, t.dim()));
  } else {
    int64_t n = s ? static_cast<int64_t>(s->size()) : t.dim();
    WICK_CHECK(n <= t.dim(),
               "{}: Got shape with {} values but input tensor only has {} dimensions.", op, n,
               t.dim());
    for (int64_t d = t.dim() - n; d < t.dim(); ++d) r.dims.push_back(d);
  }
  WICK_CHECK(!s || s->size() == r.dims.size(),
             "{}: When given, dim and shape arguments must have the same length", op);
  std::vector<bool> seen(static_cast<size_t>(t.dim()) + 1);
  for (size_t i = 0; i < r.dims.size(); ++i) {
    WICK_CHECK(r.dims[i] < t.dim() && !seen[static_cast<size_t>(r.dims[i])],
               "{}: FFT dims must be unique", op);
    seen[static_cast<size_t>(r.dims[i])] = true;
    int64_t size = s && (*s)[i] != -1 ? (*s)[i] : t.size(r.dims[i]);
    WICK_CHECK(size >= 1, "{}: Invalid number of data points ({}) specified", op, size);
    r.sizes.push_back(size);
    r.count = checkedNumel(DimVector{r.count, size});
  }
  return r;
}

Tensor fitAll(const char* op, Tensor t, const Shape& s) {
  for (size_t i = 0; i < s.dims.size(); ++i) t = fit(op, t, s.dims[i], s.sizes[i]);
  return t;
}

// Of real or complex numbers. Onesided (real numbers only): the half that is not redundant, along
// the last of the dimensions.
Tensor transformed(const Tensor& t, IntSpan dims, bool forward, bool onesided, double scale) {
  if (dims.empty()) return t.to(toComplexType(t.dtype())).clone(MemoryFormat::Contiguous);
  if (isComplex(t.dtype())) return complexToComplex(t, dims, forward, scale);
  Tensor out = realToComplex(t, dims.back(), forward, onesided, scale);
  if (dims.size() == 1) return out;
  return complexToComplex(out, dims.first(dims.size() - 1), forward, 1);
}

Tensor c2c(const char* op, const Tensor& self, const OptDims& s, const OptDims& dim,
           const Norm& norm, bool forward) {
  Tensor x = toFloating(op, self);
  Shape shape = shapeOf(op, x, s, dim);
  return transformed(fitAll(op, x, shape), shape.dims, forward, false,
                     scaleOf(op, norm, shape.count, forward));
}

Tensor r2c(const char* op, const Tensor& self, const OptDims& s, const OptDims& dim,
           const Norm& norm, bool forward) {
  Tensor x = toReal(op, self);
  Shape shape = shapeOf(op, x, s, dim);
  WICK_CHECK(!shape.dims.empty(), "{} must transform at least one axis", op);
  return transformed(fitAll(op, x, shape), shape.dims, forward, true,
                     scaleOf(op, norm, shape.count, forward));
}

// The real result of a Hermitian input: the other dimensions first, the halved one last.
Tensor c2r(const char* op, const Tensor& self, const OptDims& s, const OptDims& dim,
           const Norm& norm, bool forward) {
  Tensor x = toComplex(op, self);
  Shape shape = shapeOf(op, x, s, dim);
  WICK_CHECK(!shape.dims.empty(), "{} must transform at least one axis", op);
  int64_t last = shape.dims.back();
  int64_t size = s && s->back() != -1 ? s->back() : 2 * (x.size(last) - 1);
  WICK_CHECK(size >= 1, "{}: Invalid number of data points ({}) specified", op, size);
  int64_t count = checkedNumel(DimVector{shape.count / shape.sizes.back(), size});
  shape.sizes.back() = size / 2 + 1;
  x = fitAll(op, x, shape);
  if (shape.dims.size() > 1) {
    IntSpan others = IntSpan(shape.dims).first(shape.dims.size() - 1);
    x = complexToComplex(x, others, forward, 1);
  }
  return complexToReal(x, last, size, forward, scaleOf(op, norm, count, forward));
}

OptDims one(const OptInt& n) {
  WICK_CHECK(!n || *n >= 1, "Invalid number of data points ({}) specified", *n);
  return n ? OptDims(DimVector{*n}) : OptDims();
}

double internalScale(int64_t normalization, double count) {
  WICK_CHECK(normalization >= 0 && normalization <= 2, "_fft: unknown normalization {}",
             normalization);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
}
Tensor fftC2c(const Tensor& self, const DimVector& dim, int64_t normalization, bool forward) {
  Shape s = shapeOf("_fft_c2c", self, std::nullopt, dim);
  WICK_CHECK(isComplex(self.dtype()), "_fft_c2c expects a complex input tensor, but got {}",
             scalarTypeName(self.dtype()));
  return transformed(self, s.dims, forward, false,
                     internalScale(normalization, static_cast<double>(s.count)));
}
Tensor fftR2c(const Tensor& self, const DimVector& dim, int64_t normalization, bool onesided) {
  Shape s = shapeOf("_fft_r2c", self, std::nullopt, dim);
  WICK_CHECK(!s.dims.empty(), "_fft_r2c must transform at least one axis");
  return transformed(toReal("_fft_r2c", self), s.dims, true, onesided,
                     internalScale(normalization, static_cast<double>(s.count)));
}
Tensor fftC2r(const Tensor& self, const DimVector& dim, int64_t normalization, int64_t last) {
  static const Norm kForward("forward");
  WICK_CHECK(isComplex(self.dtype()), "_fft_c2r expects a complex input tensor, but got {}",
             scalarTypeName(self.dtype()));
  DimVector sizes;
  for (int64_t d : dim) sizes.push_back(self.size(d));
  WICK_CHECK(!sizes.empty(), "_fft_c2r must transform at least one axis");
  sizes.back() = last;
  // With this norm the inverse is not scaled, so only the asked factor applies.
  Tensor out = c2r("_fft_c2r", self, sizes, dim, kForward, false);
  double count = static_cast<double>(checkedNumel(sizes));
  return ops::mulScalar(out, internalScale(normalization, count));
}

Tensor shift(const Tensor& self, const OptDims& dim, bool inverse) {
  static const OperatorHandle kRoll("aten::roll", "");
  DimVector dims, shifts;
  if (dim) {
    for (int64_t d : *dim) dims.push_back(wrapDim(d, self.dim()));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  }
  if (self.dim() == 0) return self.clone();
  for (int64_t d : dims) shifts.push_back((self.size(d) + (inverse ? 1 : 0)) / 2);
  return kRoll(self, shifts, dims);
}
Tensor fftInverseShift(const Tensor& self, const OptDims& dim) {
  return shift(self, dim, true);
}

Tensor frequencies(const char* op, int64_t n, double d, const TensorOptions& options, bool half) {
  WICK_CHECK(n >= 0 && n < (int64_t{1} << 40), "{}: Invalid number of data points ({})", op, n);
  const DType dtype = options.dtypeOr(defaultDType());
  WICK_CHECK(isFloating(dtype) || isComplex(dtype), "{} requires a floating point or complex dtype",
             op);
  int64_t count = half ? n / 2 + 1 : n;
  Tensor out = Tensor::empty(DimVector{count}, DType::Double);
  for (int64_t i = 0; i < count; ++i) {
    int64_t k = half || i < (n + 1) / 2 ? i : i - n;
    out.data<double>()[i] = static_cast<double>(k) * (1.0 / (static_cast<double>(n) * d));
  }
  return moveTo(out.to(dtype), deviceFor(options.device));
}
Tensor fftFreq(int64_t n, double d, const TensorOptions& options) {
  return frequencies("fftfreq", n, d, options, false);
}
Tensor rfftFreq(int64_t n, double d, const TensorOptions& options) {
  return frequencies("rfftfreq", n, d, options, true);
}

// A window of win_length elements, centred in n_fft.
Tensor paddedWindow(const char* op, const Tensor& window, int64_t n_fft, int64_t win_length,
                    DType dtype, Device device) {
  WICK_CHECK(win_length > 0 && win_length <= n_fft,
             "{}: expected 0 < win_length <= n_fft, but got "
             "win_length={}",
             op, win_length);
  WICK_CHECK(!window.defined() || (window.dim() == 1 && window.size(0) == win_length),
             "{}: expected a 1D window tensor of size equal to win_length={}, but got window with "
             "size {}",
             op, win_length, window.defined() ? formatInts(window.sizes()) : "");
  Tensor w = window;
  if (!w.defined()) w = moveTo(Tensor::full(DimVector{win_length}, 1, dtype), device);
  if (win_length == n_fft) return w;
  Tensor out = Tensor::zeros(DimVector{n_fft}, w.dtype(), w.device());
  out.narrow(0, (n_fft - win_length) / 2, win_length).copyFrom(w);
  return out;
}

Tensor viewAsReal(const Tensor& t) {
  static const OperatorHandle kViewAsReal("aten::view_as_real", "");
  return kViewAsReal(t);
}

Tensor stft(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
            bool normalized, std::optional<bool> onesided_in, std::optional<bool> return_complex,
            std::optional<bool> align_to_window) {
  const char* op = "stft";
  int64_t hop_length = hop.value_or(n_fft / 4), win_length = win.value_or(n_fft);
  bool complex_in = isComplex(self.dtype()) || (window.defined() && isComplex(window.dtype()));
  WICK_CHECK(
      (isFloating(self.dtype()) || isComplex(self.dtype())) && self.dim() >= 1 && self.dim() <= 2,
      "{}: expected a 1D or 2D tensor of floating or complex values, got {}", op, self.describe());
  Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  WICK_CHECK(n_fft > 0 && n_fft <= x.size(1), "{}: expected 0 < n_fft <= {}, but got n_fft={}", op,
             x.size(1), n_fft);
  WICK_CHECK(hop_length > 0, "{}: expected hop_length > 0, but got hop_length={}", op, hop_length);
  if (align_to_window.value_or(false)) {
    // The first window begins with the signal, the last one ends within it. What lies around a window in
    // its frame is multiplied by zeros.
    WICK_CHECK(win_length > 0 && win_length <= n_fft,
               "{}: expected 0 < win_length <= n_fft, but got win_length={}", op, win_length);
    static const OperatorHandle kPad("aten::constant_pad_nd", "");
    const int64_t left = (n_fft - win_length) / 2;
    x = kPad(x, DimVector{left, n_fft - win_length - left}, Scalar(0));
  }
  bool onesided = onesided_in.value_or(!complex_in);
  WICK_CHECK(!onesided || !complex_in,
             "{}: Cannot have onesided output if window or input is complex", op);
  int64_t frames = 1 + (x.size(1) - n_fft) / hop_length;
  Tensor pieces = x.asStrided(
      DimVector{x.size(0), frames, n_fft},
      DimVector{x.stride(0), steppedStride(x.stride(1), hop_length), x.stride(1)}, x.offset());
  // A window of ones changes nothing.
  if (window.defined() || win_length != n_fft) {
    pieces = ops::mul(pieces, paddedWindow(op, window, n_fft, win_length, toRealType(self.dtype()),
                                           self.device()));
  }
  Tensor out = transformed(toFloating(op, pieces), DimVector{2}, true, onesided,
                           normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1);
  out = out.transpose(1, 2);
  if (self.dim() == 1) out = out.squeeze(0);
  return return_complex.value_or(complex_in) ? out : viewAsReal(out.clone());
}

Tensor stftCenter(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
                  bool center, const std::string& pad_mode, bool normalized,
                  std::optional<bool> onesided, std::optional<bool> return_complex,
                  std::optional<bool> align_to_window) {
  Tensor x = self;
  if (center) {
    WICK_CHECK(!align_to_window, "stft align_to_window should only be set when center = false.");
    static const OperatorHandle kPadNamed("aten::pad", "");
    WICK_CHECK(self.dim() >= 1 && self.dim() <= 2, "stft: expected a 1D or 2D tensor, got {}",
               self.describe());
    int64_t pad = n_fft / 2;
    Tensor wide = self.dim() == 1 ? self.unsqueeze(0).unsqueeze(0) : self.unsqueeze(0);
    Tensor padded = kPadNamed(wide, DimVector{pad, pad}, pad_mode);
    DimVector sizes(self.sizes());
    sizes.back() = padded.size(-1);
    x = padded.view(sizes);
  }
  return stft(x, n_fft, hop, win, window, normalized, onesided, return_complex, align_to_window);
}

// Overlapping windowed pieces are added and divided by the sum of the squared windows.
Tensor istft(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
             bool center, bool normalized, std::optional<bool> onesided_in, OptInt length,
             bool return_complex) {
  const char* op = "istft";
  static const OperatorHandle kViewAsComplex("aten::view_as_complex", "");
  int64_t hop_length = hop.value_or(n_fft / 4), win_length = win.value_or(n_fft);
  Tensor x = isComplex(self.dtype()) ? self : kViewAsComplex(self.contiguous());
  WICK_CHECK(x.dim() == 2 || x.dim() == 3, "{}: expected a tensor with 2 or 3 dimensions, got {}",
             op, x.describe());
  bool batched = x.dim() == 3;
  if (!batched) x = x.unsqueeze(0);
  bool onesided = onesided_in.value_or(x.size(1) != n_fft);
  WICK_CHECK(n_fft > 0 && x.size(1) == (onesided ? n_fft / 2 + 1 : n_fft) && x.size(2) > 0,
             "{}: expected the frequency dimension (3rd to the last) of the input tensor to match "
             "n_fft={} when onesided={}, but got {}",
             op, n_fft, onesided, x.size(1));
  WICK_CHECK(hop_length > 0 && hop_length <= win_length,
             "{}: expected 0 < hop_length <= win_length", op);
  Tensor w = paddedWindow(op, window, n_fft, win_length, toRealType(x.dtype()), x.device());
  double scale =
      normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1 / static_cast<double>(n_fft);
  WICK_CHECK(!return_complex || !onesided,
             "{}: Cannot have onesided output if window or input is complex", op);
  WICK_CHECK(return_complex || !isComplex(w.dtype()),
             "{}: Complex windows are incompatible with return_complex=False", op);
  // A real signal follows from one half of the spectrum; the other is not looked at.
  Tensor pieces = return_complex ? complexToComplex(x.transpose(1, 2), DimVector{2}, false, scale)
                                 : complexToReal(x.narrow(1, 0, n_fft / 2 + 1).transpose(1, 2), 2,
                                                 n_fft, false, scale);
  pieces = ops::mul(pieces, w);
  int64_t frames = x.size(2), total = n_fft + hop_length * (frames - 1);
  Tensor sum = Tensor::zeros(DimVector{x.size(0), total}, pieces.dtype(), x.device());
  Tensor envelope = Tensor::zeros(DimVector{total}, w.dtype(), x.device());
  Tensor squares = ops::mul(w, w);
  for (int64_t f = 0; f < frames; ++f) {
    Tensor at = sum.narrow(1, f * hop_length, n_fft);
    at.copyFrom(ops::add(at, pieces.select(1, f)));
    Tensor e = envelope.narrow(0, f * hop_length, n_fft);
    e.copyFrom(ops::add(e, squares));
  }
  int64_t start = center ? n_fft / 2 : 0;
  int64_t end = length ? start + *length : center ? total - n_fft / 2 : total;
  int64_t covered = std::min(end, total);
  WICK_CHECK(start < covered, "{}: the signal has no elements", op);
  Tensor y = sum.narrow(1, start, covered - start);
  Tensor e = envelope.narrow(0, start, covered - start);
  static const OperatorHandle kMin("aten::min", "");
  WICK_CHECK(kMin(ops::abs(e)).to(DType::Double).item<double>() > 1e-11,
             "{}: window overlap add min: 0", op);
  y = ops::div(y, e);
  if (end > covered) y = fit(op, y, 1, end - start);
  return batched ? y : y.squeeze(0);
}

// A transform along one dimension, along two, and along any.
#define WICK_TRANSFORM(name, transform, forward)                                         \
  {"aten::fft_" name "(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor", \
   WICK_LAMBDA([](const Tensor& x, OptInt n, int64_t dim, const Norm& norm) {            \
     return transform(name, x, one(n), DimVector{dim}, norm, forward);                   \
   }),                                                                                   \
   kOutForm},                                                                            \
      WICK_TRANSFORM_ALONG(name, "2", "int[1] dim=[-2, -1]", transform, forward),        \
      WICK_TRANSFORM_ALONG(name, "n", "int[1]? dim=None", transform, forward)
#define WICK_TRANSFORM_ALONG(name, rank, dims, transform, forward)                              \
  {                                                                                             \
    "aten::fft_" name rank "(Tensor self, int[1]? s=None, " dims ", str? norm=None) -> Tensor", \
        WICK_LAMBDA([](const Tensor&x, const OptDims&s, const OptDims&dim, const Norm&norm) {   \
          return transform(name "n", x, s, dim, norm, forward);                                 \
        }),                                                                                     \
        kOutForm                                                                                \
  }
#define WICK_FREQ                                                                              \
  "(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, " \
  "bool? pin_memory=None) -> Tensor"
#define WICK_STFT_HEAD \
  "(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "

constexpr OperatorRecord kRecords[] = {
    WICK_TRANSFORM("fft", c2c, true),
    WICK_TRANSFORM("ifft", c2c, false),
    WICK_TRANSFORM("rfft", r2c, true),
    WICK_TRANSFORM("irfft", c2r, false),
    WICK_TRANSFORM("hfft", c2r, true),
    WICK_TRANSFORM("ihfft", r2c, false),
    {"aten::_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
     WICK_KERNEL(fftC2c), kOutForm},
    {"aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
     WICK_KERNEL(fftR2c), kOutForm},
    {"aten::_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
     WICK_KERNEL(fftC2r), kOutForm},
    {"aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
     WICK_LAMBDA([](const Tensor& self, const OptDims& dim) { return shift(self, dim, false); })},
    {"aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", WICK_KERNEL(fftInverseShift)},
    {"aten::fft_fftfreq" WICK_FREQ, WICK_KERNEL(fftFreq)},
    {"aten::fft_rfftfreq" WICK_FREQ, WICK_KERNEL(rfftFreq)},
    {"aten::fft_fftfreq.out(int n, float d=1.0, *, Tensor(a!) out) -> Tensor(a!)", &ops::outForm},
    {"aten::fft_rfftfreq.out(int n, float d=1.0, *, Tensor(a!) out) -> Tensor(a!)", &ops::outForm},
    {"aten::stft" WICK_STFT_HEAD
     "bool normalized=False, bool? onesided=None, bool? return_complex=None, "
     "bool? align_to_window=None) -> Tensor",
     WICK_KERNEL(stft)},
    {"aten::stft.center" WICK_STFT_HEAD
     "bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, "
     "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     WICK_KERNEL(stftCenter)},
    {"aten::istft" WICK_STFT_HEAD
     "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
     "return_complex=False) -> Tensor",
     WICK_KERNEL(istft)},
};

const RegisterOperators kRegistered(kRecords);

}  // namespace
}  // namespace wick
