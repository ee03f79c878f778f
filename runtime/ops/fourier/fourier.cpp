// torch.fft and short-time transforms.
#include <cmath>

#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "runtime/kernels/fft.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/fourier/transforms.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/typed.h"

namespace wick {

namespace ops::fourier {

namespace {

using OptDims = std::optional<DimVector>;

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

// With the last dimension's length another.
void setLast(const char* op, Shape& shape, int64_t size) {
  WICK_CHECK(size >= 1 && size < int64_t{1} << 40,
             "{}: Invalid number of data points ({}) specified", op, size);
  shape.count = checkedNumel(DimVector{shape.count / shape.sizes.back(), size});
  shape.sizes.back() = size;
}

// How transforms are scaled: not at all, by the root of the count, by the count.
enum Normalization : int64_t { kPlain, kByRoot, kByCount };

double scaleOf(int64_t normalization, int64_t count) {
  WICK_CHECK(normalization >= kPlain && normalization <= kByCount, "_fft: unknown normalization {}",
             normalization);
  const auto n = static_cast<double>(count);
  return normalization == kPlain ? 1 : normalization == kByRoot ? 1 / std::sqrt(n) : 1 / n;
}

void checkComplex(const char* op, const Tensor& t) {
  WICK_CHECK(isComplex(t.dtype()), "{} expects a complex input tensor, but got {}", op,
             scalarTypeName(t.dtype()));
}
void checkReal(const char* op, const Tensor& t) {
  WICK_CHECK(!isComplex(t.dtype()), "{} expects a real input tensor, but got {}", op,
             scalarTypeName(t.dtype()));
}
void checkDims(const char* op, const DimVector& dims) {
  WICK_CHECK(!dims.empty(), "{} must transform at least one axis", op);
}

}  // namespace

Transform planComplex(const Tensor& self, const DimVector& dim, int64_t normalization) {
  const Shape s = shapeOf("_fft_c2c", self, std::nullopt, dim);
  checkComplex("_fft_c2c", self);
  return {s.dims, scaleOf(normalization, s.count)};
}
Transform planOfReal(const Tensor& self, const DimVector& dim, int64_t normalization) {
  const Shape s = shapeOf("_fft_r2c", self, std::nullopt, dim);
  checkReal("_fft_r2c", self);
  checkDims("_fft_r2c", s.dims);
  return {s.dims, scaleOf(normalization, s.count)};
}
Transform planToReal(const Tensor& self, const DimVector& dim, int64_t normalization, int64_t n) {
  checkComplex("_fft_c2r", self);
  Shape s = shapeOf("_fft_c2r", self, std::nullopt, dim);
  checkDims("_fft_c2r", s.dims);
  setLast("_fft_c2r", s, n);
  return {s.dims, scaleOf(normalization, s.count)};
}

DimVector overlapSizes(const Tensor& frames, int64_t hop) {
  WICK_CHECK(frames.dim() == 3 && frames.size(1) > 0 && hop > 0,
             "overlap_add: expected frames of three dimensions and a positive hop, got {} and {}",
             frames.describe(), hop);
  checkedNumel(DimVector{frames.size(1), hop});
  return {frames.size(0), frames.size(2) + hop * (frames.size(1) - 1)};
}

Tensor fitted(const char* op, const Tensor& t, int64_t d, int64_t size) {
  static const OperatorHandle kNarrow{"aten::narrow", ""};
  WICK_CHECK(size >= 1, "{}: Invalid number of data points ({}) specified", op, size);
  if (t.size(d) == size) return t;
  if (t.size(d) > size) return kNarrow(t, d, int64_t{0}, size);
  DimVector pad(static_cast<size_t>(2 * (t.dim() - d)), 0);
  pad.back() = size - t.size(d);
  return ops::constantPad(t, pad, Scalar(0));
}

Tensor scaled(const Tensor& t, double scale) {
  if (scale == 1) return t;
  if (!isComplex(t.dtype())) return mulScalar(t, Scalar(scale));
  return ops::viewAsComplex(mulScalar(ops::viewAsReal(t), Scalar(scale)));
}

}  // namespace ops::fourier

namespace {

using namespace ops::fourier;

using OptInt = std::optional<int64_t>;
using Norm = std::optional<std::string>;

// Operators whose calls are recorded for gradients, as all calls are that kernels here make with the tensors they are given.
const OperatorHandle kSqueeze{"aten::squeeze", "dim"}, kNarrow{"aten::narrow", ""};

Tensor converted(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : ops::toDType(t, dtype, false, false, IValue());
}

// Transforms are operators where a device has kernels for them or a gradient is recorded. On the CPU the functions of
// runtime/kernels/fft.h know both signs of the real ones, too.
bool inOperators(const Tensor& x) {
  return !x.device().isCpu() || (x.requiresGrad() && gradEnabled());
}

Tensor ofRealOnCpu(const Tensor& x, IntSpan dims, bool forward, bool onesided, double scale) {
  Tensor out = fft::realToComplex(x, dims.back(), forward, onesided, scale);
  if (dims.size() == 1) return out;
  return fft::complexToComplex(out, dims.first(dims.size() - 1), forward, 1);
}
// The other dimensions first, the halved one last.
Tensor toRealOnCpu(const Tensor& x, IntSpan dims, int64_t n, bool forward, double scale) {
  const IntSpan others = dims.first(dims.size() - 1);
  const Tensor half = others.empty() ? x : fft::complexToComplex(x, others, forward, 1);
  return fft::complexToReal(half, dims.back(), n, forward, scale);
}

// Of real or complex numbers, `count` of them. Onesided (real numbers only): the half that is not
// redundant, along the last of the dimensions.
Tensor transformed(const Tensor& x, const DimVector& dims, int64_t count, bool forward,
                   bool onesided, int64_t normalization) {
  static const OperatorHandle kComplex{"aten::_fft_c2c", ""}, kReal{"aten::_fft_r2c", ""};
  if (dims.empty()) return ops::toDType(x, toComplexType(x.dtype()), false, true, IValue());
  const bool is_complex = isComplex(x.dtype());
  if (!inOperators(x)) {
    const double scale = scaleOf(normalization, count);
    return is_complex ? fft::complexToComplex(x, dims, forward, scale)
                      : ofRealOnCpu(x, dims, forward, onesided, scale);
  }
  if (is_complex) return kComplex(x, dims, normalization, forward);
  const Tensor out = kReal(x, dims, normalization, onesided);
  return forward ? out : Tensor(ops::conj(out));
}
// The real result of a Hermitian input, whose half has n/2 + 1 numbers.
Tensor toReal(const Tensor& x, const DimVector& dims, int64_t count, int64_t n, bool forward,
              int64_t normalization) {
  static const OperatorHandle kTransform{"aten::_fft_c2r", ""};
  if (!inOperators(x)) return toRealOnCpu(x, dims, n, forward, scaleOf(normalization, count));
  return kTransform(forward ? Tensor(ops::conj(x)) : x, dims, normalization, n);
}

int64_t normalizationOf(const char* op, const Norm& norm, bool forward) {
  const std::string name = norm.value_or("backward");
  WICK_CHECK(name == "backward" || name == "forward" || name == "ortho",
             "{}: Invalid normalization mode: \"{}\"", op, name);
  if (name == "ortho") return kByRoot;
  return (name == "forward") == forward ? kByCount : kPlain;
}

// With floating or complex numbers.
Tensor toFloating(const char* op, const Tensor& t) {
  const DType dtype = isIntegral(t.dtype(), true) ? defaultDType() : t.dtype();
  WICK_CHECK(!isReducedFloat(dtype), "{}: Unsupported dtype {}", op, toString(dtype));
  return converted(t, dtype);
}

Tensor fitAll(const char* op, Tensor t, const Shape& s) {
  for (size_t i = 0; i < s.dims.size(); ++i) t = fitted(op, t, s.dims[i], s.sizes[i]);
  return t;
}

Tensor c2c(const char* op, const Tensor& self, const OptDims& s, const OptDims& dim,
           const Norm& norm, bool forward) {
  const Tensor x = toFloating(op, self);
  const Shape shape = shapeOf(op, x, s, dim);
  return transformed(fitAll(op, x, shape), shape.dims, shape.count, forward, false,
                     normalizationOf(op, norm, forward));
}

Tensor r2c(const char* op, const Tensor& self, const OptDims& s, const OptDims& dim,
           const Norm& norm, bool forward) {
  checkReal(op, self);
  const Tensor x = toFloating(op, self);
  const Shape shape = shapeOf(op, x, s, dim);
  checkDims(op, shape.dims);
  return transformed(fitAll(op, x, shape), shape.dims, shape.count, forward, true,
                     normalizationOf(op, norm, forward));
}

Tensor c2r(const char* op, const Tensor& self, const OptDims& s, const OptDims& dim,
           const Norm& norm, bool forward) {
  const Tensor given = toFloating(op, self);
  const Tensor x = converted(given, toComplexType(given.dtype()));
  Shape shape = shapeOf(op, x, s, dim);
  checkDims(op, shape.dims);
  const int64_t n = s && s->back() != -1 ? s->back() : 2 * (x.size(shape.dims.back()) - 1);
  setLast(op, shape, n);
  shape.sizes.back() = n / 2 + 1;
  return toReal(fitAll(op, x, shape), shape.dims, shape.count, n, forward,
                normalizationOf(op, norm, forward));
}

OptDims one(const OptInt& n) {
  WICK_CHECK(!n || *n >= 1, "Invalid number of data points ({}) specified", *n);
  return n ? OptDims(DimVector{*n}) : OptDims();
}

Tensor fftC2c(const Tensor& self, const DimVector& dim, int64_t normalization, bool forward) {
  const Transform plan = planComplex(self, dim, normalization);
  if (plan.dims.empty()) return self.clone(MemoryFormat::Contiguous);
  return fft::complexToComplex(self, plan.dims, forward, plan.scale);
}
Tensor fftR2c(const Tensor& self, const DimVector& dim, int64_t normalization, bool onesided) {
  const Transform plan = planOfReal(self, dim, normalization);
  return ofRealOnCpu(toFloating("_fft_r2c", self), plan.dims, true, onesided, plan.scale);
}
Tensor fftC2r(const Tensor& self, const DimVector& dim, int64_t normalization, int64_t n) {
  const Transform plan = planToReal(self, dim, normalization, n);
  return toRealOnCpu(fitted("_fft_c2r", self, plan.dims.back(), n / 2 + 1), plan.dims, n, false,
                     plan.scale);
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
  Tensor w =
      window.defined() ? window : moveTo(Tensor::full(DimVector{win_length}, 1, dtype), device);
  if (win_length == n_fft) return w;
  const int64_t left = (n_fft - win_length) / 2;
  return ops::constantPad(w, DimVector{left, n_fft - win_length - left}, Scalar(0));
}

Tensor stft(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
            bool normalized, std::optional<bool> onesided_in, std::optional<bool> return_complex,
            std::optional<bool> align_to_window) {
  static const OperatorHandle kUnfold{"aten::unfold", ""};
  const char* op = "stft";
  int64_t hop_length = hop.value_or(n_fft / 4), win_length = win.value_or(n_fft);
  bool complex_in = isComplex(self.dtype()) || (window.defined() && isComplex(window.dtype()));
  WICK_CHECK(
      (isFloating(self.dtype()) || isComplex(self.dtype())) && self.dim() >= 1 && self.dim() <= 2,
      "{}: expected a 1D or 2D tensor of floating or complex values, got {}", op, self.describe());
  const bool single = self.dim() == 1;
  Tensor x = single ? ops::unsqueeze(self, int64_t{0}) : self;
  WICK_CHECK(n_fft > 0 && n_fft <= x.size(1), "{}: expected 0 < n_fft <= {}, but got n_fft={}", op,
             x.size(1), n_fft);
  WICK_CHECK(hop_length > 0, "{}: expected hop_length > 0, but got hop_length={}", op, hop_length);
  if (align_to_window.value_or(false)) {
    // The first window begins with the signal, the last one ends within it. What lies around a window in
    // its frame is multiplied by zeros.
    WICK_CHECK(win_length > 0 && win_length <= n_fft,
               "{}: expected 0 < win_length <= n_fft, but got win_length={}", op, win_length);
    const int64_t left = (n_fft - win_length) / 2;
    x = ops::constantPad(x, DimVector{left, n_fft - win_length - left}, Scalar(0));
  }
  bool onesided = onesided_in.value_or(!complex_in);
  WICK_CHECK(!onesided || !complex_in,
             "{}: Cannot have onesided output if window or input is complex", op);
  Tensor pieces = kUnfold(x, int64_t{1}, n_fft, hop_length);
  // A window of ones changes nothing.
  if (window.defined() || win_length != n_fft) {
    pieces = ops::mul(pieces, paddedWindow(op, window, n_fft, win_length, toRealType(self.dtype()),
                                           self.device()));
  }
  Tensor out = transformed(toFloating(op, pieces), DimVector{2}, n_fft, true, onesided,
                           normalized ? kByRoot : kPlain);
  out = ops::transpose(out, int64_t{1}, int64_t{2});
  if (single) out = kSqueeze(out, int64_t{0});
  return return_complex.value_or(complex_in) ? out : ops::viewAsReal(ops::clone(out, IValue()));
}

Tensor stftCenter(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
                  bool center, const std::string& pad_mode, bool normalized,
                  std::optional<bool> onesided, std::optional<bool> return_complex,
                  std::optional<bool> align_to_window) {
  Tensor x = self;
  if (center) {
    WICK_CHECK(!align_to_window, "stft align_to_window should only be set when center = false.");
    WICK_CHECK(self.dim() >= 1 && self.dim() <= 2, "stft: expected a 1D or 2D tensor, got {}",
               self.describe());
    const int64_t pad = n_fft / 2, added = self.dim() == 1 ? 2 : 1;
    for (int64_t i = 0; i < added; ++i) x = ops::unsqueeze(x, int64_t{0});
    x = ops::pad(x, DimVector{pad, pad}, pad_mode);
    for (int64_t i = 0; i < added; ++i) x = kSqueeze(x, int64_t{0});
  }
  return stft(x, n_fft, hop, win, window, normalized, onesided, return_complex, align_to_window);
}

Tensor overlapAdd(const Tensor& frames, int64_t hop) {
  const int64_t n = frames.size(2);
  const Tensor sum = Tensor::zeros(overlapSizes(frames, hop), frames.dtype(), frames.device());
  for (int64_t f = 0; f < frames.size(1); ++f) {
    const Tensor at = sum.narrow(1, f * hop, n);
    at.copyFrom(ops::add(at, frames.select(1, f)));
  }
  return sum;
}

// Overlapping windowed pieces are added and divided by the sum of the squared windows.
Tensor istft(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
             bool center, bool normalized, std::optional<bool> onesided_in, OptInt length,
             bool return_complex) {
  const char* op = "istft";
  static const OperatorHandle kAdd{"wick::overlap_add", ""}, kCheck{"aten::_assert_async", "msg"};
  int64_t hop_length = hop.value_or(n_fft / 4), win_length = win.value_or(n_fft);
  Tensor x = isComplex(self.dtype()) ? self : ops::viewAsComplex(ops::contiguous(self));
  WICK_CHECK(x.dim() == 2 || x.dim() == 3, "{}: expected a tensor with 2 or 3 dimensions, got {}",
             op, x.describe());
  bool batched = x.dim() == 3;
  if (!batched) x = ops::unsqueeze(x, int64_t{0});
  bool onesided = onesided_in.value_or(x.size(1) != n_fft);
  WICK_CHECK(n_fft > 0 && x.size(1) == (onesided ? n_fft / 2 + 1 : n_fft) && x.size(2) > 0,
             "{}: expected the frequency dimension (3rd to the last) of the input tensor to match "
             "n_fft={} when onesided={}, but got {}",
             op, n_fft, onesided, x.size(1));
  WICK_CHECK(hop_length > 0 && hop_length <= win_length,
             "{}: expected 0 < hop_length <= win_length", op);
  const Tensor w = paddedWindow(op, window, n_fft, win_length, toRealType(x.dtype()), x.device());
  WICK_CHECK(!return_complex || !onesided,
             "{}: Cannot have onesided output if window or input is complex", op);
  WICK_CHECK(return_complex || !isComplex(w.dtype()),
             "{}: Complex windows are incompatible with return_complex=False", op);
  // A real signal follows from one half of the spectrum; the other is not looked at.
  if (!return_complex) x = fitted(op, x, 1, n_fft / 2 + 1);
  const int64_t frames = x.size(2), normalization = normalized ? kByRoot : kByCount;
  x = ops::transpose(x, int64_t{1}, int64_t{2});
  const Tensor pieces = return_complex
                            ? transformed(x, DimVector{2}, n_fft, false, false, normalization)
                            : toReal(x, DimVector{2}, n_fft, n_fft, false, normalization);
  const Tensor sum = kAdd(ops::mul(pieces, w), hop_length);
  const Tensor squares = ops::expand(ops::mul(w, w), DimVector{1, frames, n_fft}, false);
  const Tensor envelope = kSqueeze(kAdd(squares, hop_length), int64_t{0});
  const int64_t total = sum.size(1), start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : center ? total - n_fft / 2 : total;
  const int64_t covered = std::min(end, total);
  WICK_CHECK(start < covered, "{}: the signal has no elements", op);
  const Tensor e = kNarrow(envelope, int64_t{0}, start, covered - start);
  kCheck.all(ops::gtScalar(converted(ops::min(ops::abs(e)), DType::Double), Scalar(1e-11)),
             std::string("istft: window overlap add min: 0"));
  Tensor y = ops::div(kNarrow(sum, int64_t{1}, start, covered - start), e);
  if (end > covered) y = fitted(op, y, 1, end - start);
  return batched ? y : kSqueeze(y, int64_t{0});
}

// A transform along one dimension, along two, and along any.
#define WICK_TRANSFORM(name, transform, forward, rule)                                   \
  {"aten::fft_" name "(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor", \
   WICK_LAMBDA([](const Tensor& x, OptInt n, int64_t dim, const Norm& norm) {            \
     return transform(name, x, one(n), DimVector{dim}, norm, forward);                   \
   }),                                                                                   \
   kOutForm | kNeutral | kEagerCastFull | rule},                                         \
      WICK_TRANSFORM_ALONG(name, "2", "int[1] dim=[-2, -1]", transform, forward, rule),  \
      WICK_TRANSFORM_ALONG(name, "n", "int[1]? dim=None", transform, forward, rule)
#define WICK_TRANSFORM_ALONG(name, rank, dims, transform, forward, rule)                        \
  {                                                                                             \
    "aten::fft_" name rank "(Tensor self, int[1]? s=None, " dims ", str? norm=None) -> Tensor", \
        WICK_LAMBDA([](const Tensor&x, const OptDims&s, const OptDims&dim, const Norm&norm) {   \
          return transform(name "n", x, s, dim, norm, forward);                                 \
        }),                                                                                     \
        kOutForm | kNeutral | kEagerCastFull | rule                                             \
  }
#define WICK_FREQ                                                                              \
  "(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, " \
  "bool? pin_memory=None) -> Tensor"
#define WICK_STFT_HEAD \
  "(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "

constexpr OperatorRecord kFourierRecords[] = {
    WICK_TRANSFORM("fft", c2c, true, kNoFlags),
    WICK_TRANSFORM("ifft", c2c, false, kNoFlags),
    WICK_TRANSFORM("rfft", r2c, true, kNoFlags),
    WICK_TRANSFORM("irfft", c2r, false, kOutReal),
    WICK_TRANSFORM("hfft", c2r, true, kOutReal),
    WICK_TRANSFORM("ihfft", r2c, false, kNoFlags),
    {"aten::_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
     WICK_KERNEL(fftC2c), kOutForm | kOutAny},
    {"aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
     WICK_KERNEL(fftR2c), kOutForm | kOutAny},
    {"aten::_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
     WICK_KERNEL(fftC2r), kOutForm | kOutAny},
    {"aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
     WICK_LAMBDA([](const Tensor& self, const OptDims& dim) { return shift(self, dim, false); }),
     kNeutral},
    {"aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", WICK_KERNEL(fftInverseShift),
     kNeutral},
    {"aten::fft_fftfreq" WICK_FREQ, WICK_KERNEL(fftFreq)},
    {"aten::fft_rfftfreq" WICK_FREQ, WICK_KERNEL(rfftFreq)},
    {"aten::fft_fftfreq.out(int n, float d=1.0, *, Tensor(a!) out) -> Tensor(a!)", &ops::outForm},
    {"aten::fft_rfftfreq.out(int n, float d=1.0, *, Tensor(a!) out) -> Tensor(a!)", &ops::outForm},
    {"aten::stft" WICK_STFT_HEAD
     "bool normalized=False, bool? onesided=None, bool? return_complex=None, "
     "bool? align_to_window=None) -> Tensor",
     WICK_KERNEL(stft), kNeutral | kEagerCastFull},
    {"aten::stft.center" WICK_STFT_HEAD
     "bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, "
     "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     WICK_KERNEL(stftCenter), kNeutral | kEagerCastFull},
    {"aten::istft" WICK_STFT_HEAD
     "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
     "return_complex=False) -> Tensor",
     WICK_KERNEL(istft), kNeutral | kEagerCastFullWithin},
    {"wick::overlap_add(Tensor frames, int hop) -> Tensor", WICK_KERNEL(overlapAdd), kNeutral},
};

const RegisterOperators kFourierRegistered(kFourierRecords);

}  // namespace
}  // namespace wick
