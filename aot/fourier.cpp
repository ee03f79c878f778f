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
#include "runtime/ops/fourier/transforms.h"

// The engine's plans, whose tables are members that everybody sees here.
#include "aot/fourier_plans.inc"

namespace wick::aot {

namespace {

using namespace ops::fourier;

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

template <class R>
Tensor turnsOf(const fft::opened::RealPlan<R>& plan) {
  if (!plan.halved()) return {};
  return constantOf(plan.turns_.data(), static_cast<int64_t>(plan.turns_.size()));
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

// Along each of the dimensions, the first one with the scale.
Tensor alongAll(const char* op, Tensor x, IntSpan dims, bool forward, double scale) {
  for (size_t i = 0; i < dims.size(); ++i) {
    x = transformed(op, x, dims[i], forward, i == 0 ? scale : 1);
  }
  return x;
}

Tensor complexToComplex(const Tensor& self, const DimVector& dim, int64_t normalization,
                        bool forward) {
  const Transform plan = planComplex(self, dim, normalization);
  const Tensor x = here(self);
  if (plan.dims.empty() || x.numel() == 0) return x.clone(MemoryFormat::Contiguous);
  return alongAll("_fft_c2c", x, plan.dims, forward, plan.scale).contiguous();
}

Tensor realToComplex(const Tensor& self, const DimVector& dim, int64_t normalization,
                     bool onesided) {
  const char* op = "_fft_r2c";
  const Transform plan = planOfReal(self, dim, normalization);
  const int64_t last = plan.dims.back();
  const Tensor x = withLast(here(self), last);
  const int64_t n = x.size(-1), kept = onesided ? n / 2 + 1 : n;
  DimVector sizes(x.sizes());
  sizes.back() = kept;
  const Tensor out = Tensor::empty(sizes, toComplexType(x.dtype()), x.device());
  if (x.numel() > 0) {
    withParts(op, x.dtype(), [&]<class R>() {
      const auto tables = planOf<fft::opened::RealPlan<R>>(op, n);
      const Common<R> c(tables->inner(), tables->room(), plan.scale);
      const Tensor turns = turnsOf<R>(*tables);
      addFunction(op, named("fourierRowsOfReals", kDTypeOf<R>),
                  {reads(x), reads(c.written.words()), reads(c.written.numbers()), reads(turns),
                   reads(c.scale), writes(out), writes(c.memory)},
                  {x.numel() / n, c.part, c.inner, 1, n, kept});
    });
  }
  const Tensor back = out.transpose(last, x.dim() - 1);
  if (x.numel() == 0) return back.contiguous();
  return alongAll(op, back, plan.others(), true, 1).contiguous();
}

// n real numbers along the last dimension. Of fewer numbers than it takes the others are zeros.
Tensor toReals(const char* op, const Tensor& self, int64_t dim, int64_t n, bool forward,
               double scale) {
  const Tensor x = withLast(fitted(op, self, dim, n / 2 + 1), dim);
  DimVector sizes(x.sizes());
  sizes.back() = n;
  const Tensor out = Tensor::empty(sizes, toRealType(x.dtype()), x.device());
  if (out.numel() > 0) {
    withParts(op, x.dtype(), [&]<class R>() {
      const auto plan = planOf<fft::opened::RealPlan<R>>(op, n);
      const Common<R> c(plan->inner(), plan->room(), scale);
      const Tensor turns = turnsOf<R>(*plan);
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
  const Transform plan = planToReal(self, dim, normalization, n);
  const Tensor others = alongAll(op, here(self), plan.others(), false, 1);
  return toReals(op, others, plan.dims.back(), n, false, plan.scale).contiguous();
}

// ---- short-time transforms back ----

Tensor overlapAdd(const Tensor& frames, int64_t hop) {
  const DimVector sizes = overlapSizes(frames, hop);
  // The squares of a window, which are those of each frame.
  const bool repeats = frames.size(0) == 1 && frames.stride(1) == 0;
  const Tensor x = here(repeats ? frames.narrow(1, 0, 1) : frames).contiguous();
  if (isComplex(frames.dtype())) {
    // Numbers of two parts are twice as many.
    const int64_t numbers = 2 * frames.size(2);
    const Tensor parts = asPairs(x).reshape(DimVector{x.size(0), x.size(1), numbers});
    const Tensor sums =
        overlapAdd(parts.expand(DimVector{x.size(0), frames.size(1), numbers}), 2 * hop);
    return ops::viewAsComplex(sums.reshape(DimVector{sizes[0], sizes[1], 2}));
  }
  const Tensor out = Tensor::empty(sizes, x.dtype(), x.device());
  const int64_t n = frames.size(2);
  addFunction("istft", named("overlapAdd", x.dtype()), {reads(x), writes(out)},
              {sizes[0], frames.size(1), n, hop, repeats ? 0 : n});
  return out;
}

void assertAsync(const Tensor& self, const std::string& message) {
  Recording::current().require(self, message);
}

template <bool kHalf>
Tensor frequenciesInto(int64_t n, double d, const Tensor& out) {
  static const OperatorHandle kMake{kHalf ? "aten::fft_rfftfreq" : "aten::fft_fftfreq", ""};
  const Tensor made = kMake(n, d, IValue(), IValue(), IValue(), IValue());
  ops::resizeTo(out, made.sizes());
  out.copyFrom(here(made));
  return out;
}

const DeviceKernel kFourierKernels[] = {
    {"aten::fft_fftfreq.out", WICK_KERNEL(frequenciesInto<false>)},
    {"aten::fft_rfftfreq.out", WICK_KERNEL(frequenciesInto<true>)},
    {"aten::_fft_c2c", WICK_KERNEL(complexToComplex)},
    {"aten::_fft_r2c", WICK_KERNEL(realToComplex)},
    {"aten::_fft_c2r", WICK_KERNEL(complexToReal)},
    {"wick::overlap_add", WICK_KERNEL(overlapAdd)},
    {"aten::_assert_async.msg", WICK_KERNEL(assertAsync)},
};
const RegisterDeviceKernels kFourierRegistered(kAhead, kFourierKernels);

}  // namespace

}  // namespace wick::aot
