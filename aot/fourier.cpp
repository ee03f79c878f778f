// Fourier transforms on the device "ahead", by the engine's tables and its source (runtime/wick_aot_fourier.h). The dimension that
// is transformed lies last and its elements side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "aot/complex.h"
#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "codegen/cpp/scalar_text.h"
#include "core/error.h"
#include "core/memory_limit.h"
#include "core/parallel.h"
#include "ir/device_kernels.h"
#include "runtime/kernels/fft_passes.h"
#include "runtime/kernels/fft_rows.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

// The engine's plans, whose tables are members that everybody sees here.
#include "aot/fourier_plans.inc"

namespace wick::aot {

namespace {

// Longer ones would be made of rows that are long themselves.
constexpr int64_t kLongest = int64_t{1} << 26;

template <class R>
Tensor constantOf(const R* numbers, int64_t count) {
  return here(Tensor::fromData(numbers, DimVector{count}));
}

// The tables of a plan as constants, in the order in which FourierPlan reads them.
template <class R>
class Written {
 public:
  explicit Written(const fft::opened::Plan<R>& plan) { write(plan); }
  Tensor words() const { return constantOf(words_.data(), static_cast<int64_t>(words_.size())); }
  Tensor numbers() const {
    // Of a length of one nothing is read.
    if (numbers_.empty()) return here(Tensor::zeros(DimVector{1}, kDTypeOf<R>));
    return constantOf(numbers_.data(), static_cast<int64_t>(numbers_.size()));
  }
  // Numbers of a wave that long waves are made of; 0 where there are none.
  int64_t inner() const { return inner_; }

 private:
  void add(const std::vector<R>& numbers) {
    words_.push_back(static_cast<int64_t>(numbers_.size()));
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }
  void write(const fft::opened::Plan<R>& plan) {
    words_.push_back(plan.bluestein_ ? 1 : plan.square_ ? 2 : 0);
    words_.push_back(plan.length());
    words_.push_back(plan.room());
    if (plan.bluestein_) {
      add(plan.bluestein_->chirp);
      add(plan.bluestein_->kernel);
      write(plan.bluestein_->inner);
    } else if (plan.square_) {
      const auto& square = *plan.square_;
      words_.push_back(square.rows);
      words_.push_back(square.columns);
      add(square.turns);
      inner_ = std::max(square.down.room(), square.across.room()) * fft::kLanes<R>;
      write(square.down);
      write(square.across);
    } else {
      add(plan.table_);
      words_.push_back(static_cast<int64_t>(plan.steps_.size()));
      for (const auto& s : plan.steps_) {
        words_.insert(words_.end(), {s.p, s.m, s.s, s.twiddles, s.roots});
      }
    }
  }
  std::vector<int64_t> words_;
  std::vector<R> numbers_;
  int64_t inner_ = 0;
};

// What all transforms of a length take: tables, scale, and memory to work in.
template <class R>
struct Common {
  Common(const fft::opened::Plan<R>& plan, int64_t room, double scale_in)
      : written(plan), inner(written.inner()) {
    const bool lanes = plan.room() <= fft::kLongestInLanes;
    part = (room * (lanes ? fft::kLanes<R> : 1) + 15) / 16 * 16;
    scale = here(Tensor::scalar(scale_in));
    memory = Tensor::empty(DimVector{4 * part + 4 * inner}, kDTypeOf<R>, Device{kAhead, -1});
  }
  Written<R> written;
  int64_t inner, part = 0;
  Tensor scale, memory;
};

template <class P>
std::shared_ptr<const P> planOf(const char* op, int64_t n) {
  if (n > kLongest) {
    throw NotAhead(fmt::format("{} of {} numbers is not available ahead of time", op, n));
  }
  return std::make_shared<const P>(n);
}

std::string named(const char* function, DType part) {
  return fmt::format("{}<{}>", function, codegen::cppType(part));
}

// Calls body.operator()<R>() with the type of parts.
template <class F>
void withParts(const char* op, DType dtype, F&& body) {
  if (toRealType(dtype) == DType::Double) {
    body.template operator()<double>();
  } else {
    WICK_CHECK(toRealType(dtype) == DType::Float, "{}: Unsupported dtype {}", op, toString(dtype));
    body.template operator()<float>();
  }
}

// With a dimension moved to the end, dense there; and back.
Tensor withLast(const Tensor& t, int64_t dim) {
  return t.transpose(dim, t.dim() - 1).contiguous();
}

Tensor transformed(const char* op, const Tensor& self, int64_t dim, bool forward, double scale) {
  const Tensor x = withLast(self, dim);
  const Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  withParts(op, x.dtype(), [&]<class R>() {
    const auto plan = planOf<fft::opened::Plan<R>>(op, x.size(-1));
    const Common<R> c(*plan, plan->room(), scale);
    addFunction(op, named("fourierRows", kDTypeOf<R>),
                {reads(x), reads(c.written.words()), reads(c.written.numbers()), reads(c.scale),
                 writes(out), writes(c.memory)},
                {x.numel() / x.size(-1), c.part, c.inner, forward ? 1 : 0});
  });
  return out.transpose(dim, x.dim() - 1);
}

double scaleOf(int64_t normalization, double count) {
  WICK_CHECK(normalization >= 0 && normalization <= 2, "_fft: unknown normalization {}",
             normalization);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
}

// The dimensions, and the product of their lengths.
struct Dims {
  DimVector dims;
  int64_t count = 1;
  Dims(const char* op, const Tensor& t, const DimVector& given) {
    for (const int64_t d : given) {
      const int64_t at = wrapDim(d, t.dim());
      WICK_CHECK(at < t.dim() && std::ranges::find(dims, at) == dims.end(),
                 "{}: FFT dims must be unique", op);
      WICK_CHECK(t.size(at) > 0, "{}: Invalid number of data points (0) specified", op);
      dims.push_back(at);
      count *= t.size(at);
    }
  }
};

// Along each of the dimensions, the first one with the scale.
Tensor alongAll(const char* op, Tensor x, IntSpan dims, bool forward, double scale) {
  for (size_t i = 0; i < dims.size(); ++i) {
    x = transformed(op, x, dims[i], forward, i == 0 ? scale : 1);
  }
  return x;
}

Tensor complexToComplex(const Tensor& self, const DimVector& dim, int64_t normalization,
                        bool forward) {
  const char* op = "_fft_c2c";
  WICK_CHECK(isComplex(self.dtype()), "_fft_c2c expects a complex input tensor, but got {}",
             scalarTypeName(self.dtype()));
  const Tensor x = here(self);
  const Dims d(op, x, dim);
  if (d.dims.empty() || x.numel() == 0) return x.clone(MemoryFormat::Contiguous);
  return alongAll(op, x, d.dims, forward, scaleOf(normalization, static_cast<double>(d.count)))
      .contiguous();
}

Tensor realToComplex(const Tensor& self, const DimVector& dim, int64_t normalization,
                     bool onesided) {
  const char* op = "_fft_r2c";
  const Tensor given = here(self);
  const Dims d(op, given, dim);
  WICK_CHECK(!d.dims.empty(), "{} must transform at least one axis", op);
  const int64_t last = d.dims.back();
  const Tensor x = withLast(given, last);
  const int64_t n = x.size(-1), kept = onesided ? n / 2 + 1 : n;
  DimVector sizes(x.sizes());
  sizes.back() = kept;
  const Tensor out = Tensor::empty(sizes, toComplexType(x.dtype()), x.device());
  if (x.numel() > 0) {
    withParts(op, x.dtype(), [&]<class R>() {
      const auto plan = planOf<fft::opened::RealPlan<R>>(op, n);
      const Common<R> c(plan->inner(), plan->room(),
                        scaleOf(normalization, static_cast<double>(d.count)));
      const Tensor turns = plan->halved() ? constantOf(plan->turns_.data(),
                                                       static_cast<int64_t>(plan->turns_.size()))
                                          : Tensor();
      addFunction(op, named("fourierRowsOfReals", kDTypeOf<R>),
                  {reads(x), reads(c.written.words()), reads(c.written.numbers()), reads(turns),
                   reads(c.scale), writes(out), writes(c.memory)},
                  {x.numel() / n, c.part, c.inner, 1, n, kept});
    });
  }
  const Tensor back = out.transpose(last, x.dim() - 1);
  if (x.numel() == 0) return back.contiguous();
  return alongAll(op, back, IntSpan(d.dims).first(d.dims.size() - 1), true, 1).contiguous();
}

// n real numbers along the last dimension. Of fewer numbers than it takes the others are zeros.
Tensor toReals(const char* op, const Tensor& self, int64_t dim, int64_t n, bool forward,
               double scale) {
  const int64_t given = n / 2 + 1;
  Tensor fitted = self;
  if (self.size(dim) > given) fitted = self.narrow(dim, 0, given);
  if (self.size(dim) < given) {
    DimVector sizes(self.sizes());
    sizes[static_cast<size_t>(dim)] = given;
    fitted = Tensor::zeros(sizes, self.dtype(), self.device());
    fitted.narrow(dim, 0, self.size(dim)).copyFrom(self);
  }
  const Tensor x = withLast(fitted, dim);
  DimVector sizes(x.sizes());
  sizes.back() = n;
  const Tensor out = Tensor::empty(sizes, toRealType(x.dtype()), x.device());
  if (out.numel() > 0) {
    withParts(op, x.dtype(), [&]<class R>() {
      const auto plan = planOf<fft::opened::RealPlan<R>>(op, n);
      const Common<R> c(plan->inner(), plan->room(), scale);
      const Tensor turns = plan->halved() ? constantOf(plan->turns_.data(),
                                                       static_cast<int64_t>(plan->turns_.size()))
                                          : Tensor();
      addFunction(op, named("fourierRowsToReals", kDTypeOf<R>),
                  {reads(x), reads(c.written.words()), reads(c.written.numbers()), reads(turns),
                   reads(c.scale), writes(out), writes(c.memory)},
                  {out.numel() / n, c.part, c.inner, forward ? 1 : 0, n});
    });
  }
  return out.transpose(dim, x.dim() - 1);
}

Tensor complexToReal(const Tensor& self, const DimVector& dim, int64_t normalization, int64_t n) {
  const char* op = "_fft_c2r";
  WICK_CHECK(isComplex(self.dtype()), "{} expects a complex input tensor, but got {}", op,
             scalarTypeName(self.dtype()));
  const Tensor x = here(self);
  const Dims d(op, x, dim);
  WICK_CHECK(!d.dims.empty(), "{} must transform at least one axis", op);
  WICK_CHECK(n >= 1 && n < int64_t{1} << 40, "{}: Invalid number of data points ({}) specified", op,
             n);
  const int64_t count = d.count / x.size(d.dims.back()) * n;
  const Tensor others = alongAll(op, x, IntSpan(d.dims).first(d.dims.size() - 1), false, 1);
  return toReals(op, others, d.dims.back(), n, false,
                 scaleOf(normalization, static_cast<double>(count)))
      .contiguous();
}

// ---- short-time transforms back ----

using OptInt = std::optional<int64_t>;

// The window of the engine: of ones when there is none, in the middle of n_fft elements.
Tensor windowOf(const Tensor& given, int64_t n_fft, int64_t length, DType dtype) {
  const char* op = "istft";
  WICK_CHECK(length > 0 && length <= n_fft,
             "{}: expected 0 < win_length <= n_fft, but got win_length={}", op, length);
  WICK_CHECK(!given.defined() || (given.dim() == 1 && given.size(0) == length),
             "{}: expected a 1D window tensor of size equal to win_length={}, but got window with "
             "size {}",
             op, length, given.defined() ? formatInts(given.sizes()) : "");
  const Tensor window = given.defined() ? given : Tensor::full(DimVector{length}, 1, dtype);
  if (length == n_fft) return here(window);
  const Tensor out = here(Tensor::zeros(DimVector{n_fft}, window.dtype()));
  const Tensor known = window.device().isCpu() ? window : Recording::current().known(window);
  if (known.defined()) {
    const Tensor padded = Tensor::zeros(DimVector{n_fft}, window.dtype());
    padded.narrow(0, (n_fft - length) / 2, length).copyFrom(known);
    return here(padded);
  }
  const Tensor padded = Tensor::zeros(DimVector{n_fft}, window.dtype(), out.device());
  padded.narrow(0, (n_fft - length) / 2, length).copyFrom(window);
  return padded;
}

// Frames that overlap, added up: [batch, frames, n], or one frame that stands for all.
Tensor added(const Tensor& frames, int64_t batches, int64_t count, int64_t n, int64_t hop,
             bool repeats) {
  if (isComplex(frames.dtype())) {
    // Numbers of two parts are twice as many.
    static const OperatorHandle kViewAsComplex{"aten::view_as_complex", ""};
    const Tensor parts = asPairs(frames.contiguous()).reshape(DimVector{-1, 2 * n});
    const Tensor sums = added(parts, batches, count, 2 * n, 2 * hop, repeats);
    return kViewAsComplex(sums.reshape(DimVector{batches, sums.size(1) / 2, 2}));
  }
  const Tensor x = frames.contiguous();
  const Tensor out =
      Tensor::empty(DimVector{batches, n + hop * (count - 1)}, x.dtype(), x.device());
  addFunction("istft", named("overlapAdd", x.dtype()), {reads(x), writes(out)},
              {batches, count, n, hop, repeats ? 0 : n});
  return out;
}

Tensor istft(const Tensor& self, int64_t n_fft, OptInt hop, OptInt win, const Tensor& window,
             bool center, bool normalized, std::optional<bool> onesided_in, OptInt length,
             bool return_complex) {
  const char* op = "istft";
  static const OperatorHandle kViewAsComplex{"aten::view_as_complex", ""}, kMin{"aten::min", ""},
      kAbove{"aten::gt", "Scalar"};
  const int64_t hop_length = hop.value_or(n_fft / 4), win_length = win.value_or(n_fft);
  Tensor x = here(self);
  if (!isComplex(x.dtype())) x = kViewAsComplex(x.contiguous());
  WICK_CHECK(x.dim() == 2 || x.dim() == 3, "{}: expected a tensor with 2 or 3 dimensions, got {}",
             op, x.describe());
  const bool batched = x.dim() == 3;
  if (!batched) x = x.unsqueeze(0);
  const bool onesided = onesided_in.value_or(x.size(1) != n_fft);
  WICK_CHECK(n_fft > 0 && x.size(1) == (onesided ? n_fft / 2 + 1 : n_fft) && x.size(2) > 0,
             "{}: expected the frequency dimension (3rd to the last) of the input tensor to match "
             "n_fft={} when onesided={}, but got {}",
             op, n_fft, onesided, x.size(1));
  WICK_CHECK(hop_length > 0 && hop_length <= win_length,
             "{}: expected 0 < hop_length <= win_length", op);
  const Tensor w = windowOf(window, n_fft, win_length, toRealType(x.dtype()));
  WICK_CHECK(!return_complex || !onesided,
             "{}: Cannot have onesided output if window or input is complex", op);
  WICK_CHECK(return_complex || !isComplex(w.dtype()),
             "{}: Complex windows are incompatible with return_complex=False", op);
  const auto n = static_cast<double>(n_fft);
  const double scale = normalized ? 1 / std::sqrt(n) : 1 / n;
  const Tensor pieces = return_complex ? transformed(op, x.transpose(1, 2), 2, false, scale)
                                       : toReals(op, x.narrow(1, 0, n_fft / 2 + 1).transpose(1, 2),
                                                 2, n_fft, false, scale);
  const int64_t frames = x.size(2), total = n_fft + hop_length * (frames - 1);
  const Tensor sum = added(ops::mul(pieces, w), x.size(0), frames, n_fft, hop_length, false);
  const Tensor envelope =
      added(ops::mul(w, w), 1, frames, n_fft, hop_length, true).reshape(DimVector{total});
  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : center ? total - n_fft / 2 : total;
  const int64_t covered = std::min(end, total);
  WICK_CHECK(start < covered, "{}: the signal has no elements", op);
  const Tensor e = envelope.narrow(0, start, covered - start);
  Recording::current().require(kAbove(kMin(ops::abs(e)).to(DType::Double), Scalar(1e-11)),
                               "istft: window overlap add min: 0");
  Tensor y = ops::div(sum.narrow(1, start, covered - start), e);
  if (end > covered) {
    const Tensor whole = Tensor::zeros(DimVector{y.size(0), end - start}, y.dtype(), y.device());
    whole.narrow(1, 0, covered - start).copyFrom(y);
    y = whole;
  }
  return batched ? y : y.squeeze(0);
}

template <bool kHalf>
Tensor frequenciesInto(int64_t n, double d, const Tensor& out) {
  static const OperatorHandle kMake{kHalf ? "aten::fft_rfftfreq" : "aten::fft_fftfreq", ""};
  const Tensor made = kMake(n, d, IValue(), IValue(), IValue(), IValue());
  ops::resizeTo(out, made.sizes());
  out.copyFrom(here(made));
  return out;
}

const DeviceKernel kKernels[] = {
    {"aten::fft_fftfreq.out", WICK_KERNEL(frequenciesInto<false>)},
    {"aten::fft_rfftfreq.out", WICK_KERNEL(frequenciesInto<true>)},
    {"aten::_fft_c2c", WICK_KERNEL(complexToComplex)},
    {"aten::_fft_r2c", WICK_KERNEL(realToComplex)},
    {"aten::_fft_c2r", WICK_KERNEL(complexToReal)},
    {"aten::istft", WICK_KERNEL(istft)},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

}  // namespace

}  // namespace wick::aot
