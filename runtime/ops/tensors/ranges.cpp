// Operators that make tensors from a formula over the index: ranges, identity and triangles,
// windows, grids and combinations.
#include <cmath>
#include <numbers>
#include <tr1/cmath>  // precompiled/engine.h leaves special functions out of <cmath>

#include "core/budget.h"
#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/number_range.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/tensors/pinning.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

// Arithmetic on the elements of a dtype happens in this type.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, int64_t,
                                std::conditional_t<kIsComplex<T>, std::complex<double>, double>>;

// Writes at(i) for every i. Whole pairs of 32-byte vectors are computed as PyTorch's vector code
// does: the first lane is at(i), rounded to T, and the others add multiples of the step to it.
template <class T, class Step, class At>
void fillSteps(T* data, int64_t n, Step step, At at) {
  constexpr int64_t kLanes = std::max<int64_t>(1, 32 / static_cast<int64_t>(sizeof(T)));
  int64_t vectors = n / (2 * kLanes) * (2 * kLanes);
  Pace pace;
  for (int64_t i = 0; i < vectors; i += kLanes) {
    pace.step(kLanes);
    T base = convert<T>(at(i));
    for (int64_t j = 0; j < kLanes; ++j) {
      using Sum = decltype(Step() + Step());
      if constexpr (std::is_integral_v<T> && std::is_integral_v<Step>) {
        data[i + j] = static_cast<T>(static_cast<uint64_t>(base) + static_cast<uint64_t>(step) * j);
      } else {
        data[i + j] = convert<T>(convert<Sum>(base) + Sum(step) * convert<Sum>(j));
      }
    }
  }
  for (int64_t i = vectors; i < n; ++i) data[i] = convert<T>(at(i));
}

void checkFinite(double start, double end) {
  WICK_CHECK(std::isfinite(start) && std::isfinite(end), "unsupported range: {} -> {}", start, end);
}

int64_t checkedSteps(const char* op, double steps) {
  WICK_CHECK(steps >= 0 && steps < 9.2e18, "{}: invalid size, possible overflow?", op);
  return static_cast<int64_t>(steps);
}

int64_t arangeSize(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  double s = step.toDouble();
  WICK_CHECK(s != 0, "step must be nonzero");
  checkFinite(start.toDouble(), end.toDouble());
  WICK_CHECK((s > 0 && end.toDouble() >= start.toDouble()) ||
                 (s < 0 && end.toDouble() <= start.toDouble()),
             "upper bound and larger bound inconsistent with step sign");
  if (dtype != DType::Long) {
    return checkedSteps("arange", std::ceil((end.toDouble() - start.toDouble()) / s));
  }
  int64_t first = start.toInt();
  int64_t last = end.toInt();
  int64_t by = step.toInt();
  WICK_CHECK(by != 0, "step must be nonzero");
  // Unsigned, for the distance may exceed what int64 holds.
  uint64_t distance = by > 0 ? static_cast<uint64_t>(last) - static_cast<uint64_t>(first)
                             : static_cast<uint64_t>(first) - static_cast<uint64_t>(last);
  if (by > 0 ? last < first : last > first) return 0;
  uint64_t stride = by > 0 ? static_cast<uint64_t>(by) : 0 - static_cast<uint64_t>(by);
  uint64_t n = distance / stride + (distance % stride != 0);
  WICK_CHECK(n <= static_cast<uint64_t>(INT64_MAX), "arange: invalid size, possible overflow?");
  return static_cast<int64_t>(n);
}

// A number of a complex kind has no place in an order.
void checkReal(const char* op, std::initializer_list<const Scalar*> numbers) {
  for (const Scalar* s : numbers) {
    WICK_CHECK(!s->isComplex(), "{}: expected real numbers, got a complex one", op);
  }
}

void fillArange(const Tensor& t, const Scalar& start, const Scalar& step) {
  dispatch<kRealNumbers>("arange", t.dtype(), [&]<class T>() -> void {
    using W = Wide<T>;
    W first = start.to<W>();
    W by = step.to<W>();
    fillSteps(t.data<T>(), t.numel(), by, [&](int64_t i) {
      if constexpr (std::is_integral_v<W>) {
        return static_cast<W>(static_cast<uint64_t>(first) + static_cast<uint64_t>(by) * i);
      } else {
        return first + by * static_cast<W>(i);
      }
    });
  });
}

// What was computed on the CPU, where the options ask for it.
Tensor placed(const Tensor& t, const TensorOptions& o) {
  return moveTo(t, deviceFor(o.device));
}

Tensor arangeOf(Scalar start, Scalar end, Scalar step, const TensorOptions& o) {
  checkReal("arange", {&start, &end, &step});
  bool integral = !start.isDouble() && !end.isDouble() && !step.isDouble();
  DType dtype = o.dtypeOr(integral ? DType::Long : defaultDType());
  Tensor t = Tensor::empty(DimVector{arangeSize(start, end, step, dtype)}, dtype);
  fillArange(t, start, step);
  return placed(t, o);
}
Tensor arangeEnd(Scalar end, TensorOptions o) {
  return arangeOf(0, end, 1, o);
}
Tensor arangeStart(Scalar start, Scalar end, TensorOptions o) {
  return arangeOf(start, end, 1, o);
}
Tensor arangeStep(Scalar start, Scalar end, Scalar step, TensorOptions o) {
  return arangeOf(start, end, step, o);
}
Tensor rangeOf(Scalar start, Scalar end, Scalar step, const TensorOptions& o) {
  checkReal("range", {&start, &end, &step});
  double s = step.toDouble();
  double from = start.toDouble();
  double to = end.toDouble();
  WICK_CHECK(s != 0, "step must be nonzero");
  checkFinite(from, to);
  WICK_CHECK((s > 0 && to >= from) || (s < 0 && to <= from),
             "upper bound and lower bound inconsistent with step sign");
  int64_t n = checkedSteps("range", std::floor((to - from) / s + 1));
  Tensor t = Tensor::empty(DimVector{n}, o.dtypeOr(defaultDType()));
  dispatch<kRealNumbers>("range", t.dtype(), [&]<class T>() -> void {
    using W = Wide<T>;
    W first = start.to<W>();
    W by = step.to<W>();
    T* data = t.data<T>();
    Pace pace;
    for (int64_t i = 0; i < n; ++i) {
      pace.step();
      if constexpr (std::is_integral_v<W>) {
        // Wraps around.
        const auto steps = static_cast<uint64_t>(i) * static_cast<uint64_t>(by);
        data[i] = convert<T>(static_cast<W>(static_cast<uint64_t>(first) + steps));
      } else {
        data[i] = convert<T>(first + static_cast<W>(i) * by);
      }
    }
  });
  return placed(t, o);
}
Tensor rangeStep(Scalar start, Scalar end, Scalar step, TensorOptions o) {
  return rangeOf(start, end, step, o);
}
Tensor range(Scalar start, Scalar end, TensorOptions o) {
  return rangeOf(start, end, 1, o);
}
DType spacedDType(const char* op, const Scalar& start, const Scalar& end, const TensorOptions& o) {
  DType fallback =
      start.isComplex() || end.isComplex() ? toComplexType(defaultDType()) : defaultDType();
  DType dtype = o.dtypeOr(fallback);
  WICK_CHECK(isComplex(dtype) || (!start.isComplex() && !end.isComplex()),
             "{}: inferred dtype {} can't be safely cast to passed dtype {}", op,
             toString(fallback), toString(dtype));
  WICK_CHECK(dtype != DType::Bool, "{}: no kernel for dtype bool", op);
  return dtype;
}

void checkEnds(const Scalar& start, const Scalar& end, int64_t steps, DType dtype) {
  if (steps == 0) return;
  checkFits(start, dtype);
  checkFits(end, dtype);
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, TensorOptions o) {
  WICK_CHECK(steps >= 0, "number of steps must be non-negative");
  DType dtype = spacedDType("linspace", start, end, o);
  Tensor t = Tensor::empty(DimVector{steps}, dtype);
  if (steps == 1) return placed(fillWith(t, start), o);
  checkEnds(start, end, steps, dtype);
  dispatch<kRealNumbers | kComplexes>("linspace", dtype, [&]<class T>() -> void {
    using S = std::conditional_t<std::is_integral_v<T>, double,
                                 std::conditional_t<kIsReducedFloat<T>, float, T>>;
    S first = convert<S>(start.to<T>());
    S last = convert<S>(end.to<T>());
    S step = (last - first) / convert<S>(steps - 1);
    if constexpr (kIsReducedFloat<T>) step = S(T(step));
    int64_t halfway = steps / 2;
    if constexpr (std::is_integral_v<T>) {
      Pace pace;
      for (int64_t i = 0; i < steps; ++i) {
        pace.step(1);
        // What is cut off depends on the last bit, and PyTorch's compiler contracts.
        t.data<T>()[i] = convert<T>(i < halfway ? std::fma(step, convert<S>(i), first)
                                                : std::fma(-step, convert<S>(steps - i - 1), last));
      }
      return;
    }
    fillSteps(t.data<T>(), steps, step, [&](int64_t i) -> S {
      if (i < halfway) return first + step * convert<S>(i);
      return last - step * convert<S>(steps - i - 1);
    });
  });
  return placed(t, o);
}
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, TensorOptions o) {
  WICK_CHECK(steps >= 0, "number of steps must be non-negative");
  DType dtype = spacedDType("logspace", start, end, o);
  checkEnds(start, end, steps, dtype);
  Tensor t = Tensor::empty(DimVector{steps}, dtype);
  dispatch<kRealNumbers | kComplexes>("logspace", dtype, [&]<class T>() -> void {
    using S = std::conditional_t<std::is_integral_v<T>, double,
                                 std::conditional_t<kIsReducedFloat<T>, float, T>>;
    using P = Wide<S>;
    S first = convert<S>(start.to<T>());
    S last = convert<S>(end.to<T>());
    S step = steps > 1 ? (last - first) / convert<S>(steps - 1) : S(0);
    T* data = t.data<T>();
    for (int64_t i = 0; i < steps; ++i) {
      S exponent = i < steps / 2 || steps == 1 ? first + step * convert<S>(i)
                                               : last - step * convert<S>(steps - i - 1);
      data[i] = convert<T>(std::pow(P(base), convert<P>(exponent)));
    }
  });
  return placed(t, o);
}
Tensor eyeOf(int64_t n, int64_t m, const TensorOptions& o) {
  WICK_CHECK(n >= 0, "n must be greater or equal to 0, got {}", n);
  WICK_CHECK(m >= 0, "m must be greater or equal to 0, got {}", m);
  Tensor t = Tensor::zeros(DimVector{n, m}, o.dtypeOr(defaultDType()), deviceFor(o.device));
  fillWith(t.asStrided(DimVector{std::min(n, m)}, DimVector{m + 1}, 0), 1);
  return t;
}
Tensor eye(int64_t n, TensorOptions o) {
  return eyeOf(n, n, o);
}
Tensor eyeM(int64_t n, int64_t m, TensorOptions o) {
  return eyeOf(n, m, o);
}

// Keeps the elements on one side of a diagonal.
template <bool kUpper>
Tensor triangle(const Tensor& self, int64_t diagonal, Out out) {
  WICK_CHECK(self.dim() >= 2, "{}: input tensor must have at least 2 dimensions",
             kUpper ? "triu" : "tril");
  if (out && out.tensor->isSame(self) && distinctElements(self).numel() != self.numel()) {
    // An element that stands for several goes when one of them does.
    Tensor all = Tensor::full(self.sizes().subspan(self.sizes().size() - 2), 1, DType::Bool);
    return ops::maskedFillInto(self, ops::logicalNot(triangle<kUpper>(all, diagonal, Out{})),
                               Scalar(0));
  }
  Tensor t = self.clone(MemoryFormat::Contiguous);
  int64_t rows = self.size(-2);
  int64_t cols = self.size(-1);
  if (t.numel() == 0) return t;
  // Beyond these bounds the diagonal is outside the matrix anyway.
  diagonal = std::clamp(diagonal, -rows, cols);
  size_t item = t.itemSize();
  char* row = static_cast<char*>(t.rawData());
  for (int64_t r = 0; r < t.numel() / cols; ++r, row += cols * item) {
    int64_t i = r % rows;
    int64_t split = std::clamp<int64_t>(i + diagonal + (kUpper ? 0 : 1), 0, cols);
    if (kUpper) {
      std::memset(row, 0, split * item);
    } else {
      std::memset(row + split * item, 0, (cols - split) * item);
    }
  }
  return t;
}

template <bool kUpper>
Tensor triangleIndices(int64_t rows, int64_t cols, int64_t offset, TensorOptions o) {
  const char* op = kUpper ? "triu_indices" : "tril_indices";
  WICK_CHECK(rows >= 0, "{}: row must be non-negative, got {}", op, rows);
  WICK_CHECK(cols >= 0, "{}: col must be non-negative, got {}", op, cols);
  DType dtype = o.dtypeOr(DType::Long);
  int64_t cells = 0;
  WICK_CHECK(!__builtin_mul_overflow(rows, cols, &cells), "{}: {} x {} overflows", op, rows, cols);
  if (cells == 0) rows = 0;
  // Row r has the columns from r + offset on, or those up to there. Rows without any are left out,
  // and the others are counted by a formula, since there may be more of them than of elements that
  // memory has room for.
  using Wide = __int128;
  const Wide shift = std::clamp<Wide>(offset, -Wide{rows} - 1, Wide{cols} + 1);
  const auto within = [](Wide v, int64_t most) {
    return static_cast<int64_t>(std::clamp<Wide>(v, 0, most));
  };
  const int64_t first = kUpper ? 0 : within(-shift, rows);
  const int64_t last = kUpper ? within(cols - shift, rows) : rows;
  // The row between those that have all columns and those that have one more or less each time.
  const int64_t bend = std::clamp(within(kUpper ? 1 - shift : cols - shift - 1, rows), first, last);
  const auto split = [&](Wide r) { return within(r + shift + (kUpper ? 0 : 1), cols); };
  const auto length = [&](int64_t r) -> Wide { return kUpper ? cols - split(r) : split(r); };
  const auto slope = [&](int64_t from, int64_t to) -> Wide {
    return from < to ? (length(from) + length(to - 1)) * (to - from) / 2 : 0;
  };
  const Wide count = slope(first, bend) + slope(bend, last);
  WICK_CHECK(count <= kMaxElements, "{}: {} x {} gives too many elements", op, rows, cols);
  const auto n = static_cast<int64_t>(count);
  Tensor t = Tensor::empty(DimVector{2, n}, DType::Long);
  int64_t* data = t.data<int64_t>();
  for (int64_t r = first; r < last; ++r) {
    if (r % 1024 == 0) checkBudget();
    const int64_t begin = kUpper ? split(r) : 0;
    const int64_t end = kUpper ? cols : split(r);
    for (int64_t c = begin; c < end; ++c, ++data) {
      data[0] = r;
      data[n] = c;
    }
  }
  return t.to(dtype);
}

// Computes f(i) for i in [0, length) of a window; a periodic one is a symmetric one of one more
// sample, which is dropped. Single steps are rounded as whole-tensor operations would.
template <class F>
Tensor window(const char* op, int64_t length, bool periodic, const TensorOptions& o, F&& f) {
  DType dtype = o.dtypeOr(defaultDType());
  WICK_CHECK(isFloating(dtype), "{} expects floating point dtypes, got: {}", op, toString(dtype));
  WICK_CHECK(length >= 0, "{} requires non-negative window_length, got window_length={}", op,
             length);
  Tensor t = Tensor::empty(DimVector{length}, dtype);
  if (length == 1) return placed(fillWith(t, 1), o);
  int64_t samples = periodic ? length + 1 : length;
  dispatch<kAnyFloat>(op, dtype, [&]<class T>() -> void {
    using C = std::conditional_t<kIsReducedFloat<T>, float, T>;
    T* data = t.data<T>();
    Pace pace;
    for (int64_t i = 0; i < length; ++i) {
      pace.step(8);
      data[i] = convert<T>(f(static_cast<C>(i), samples));
    }
  });
  return placed(t, o);
}

Tensor cosineWindow(const char* op, int64_t length, bool periodic, double alpha, double beta,
                    const TensorOptions& o) {
  return window(op, length, periodic, o, [&]<class C>(C i, int64_t n) {
    C angle = i * static_cast<C>(std::numbers::pi * 2 / static_cast<double>(n - 1));
    return std::cos(angle) * static_cast<C>(-beta) + static_cast<C>(alpha);
  });
}
Tensor hannPeriodic(int64_t length, bool periodic, TensorOptions o) {
  return cosineWindow("hann_window", length, periodic, 0.5, 0.5, o);
}
Tensor hammingBeta(int64_t length, bool periodic, double alpha, double beta, TensorOptions o) {
  return cosineWindow("hamming_window", length, periodic, alpha, beta, o);
}
Tensor hammingAlpha(int64_t length, bool periodic, double alpha, TensorOptions o) {
  return hammingBeta(length, periodic, alpha, 0.46, o);
}
Tensor hammingPeriodic(int64_t length, bool periodic, TensorOptions o) {
  return hammingBeta(length, periodic, 0.54, 0.46, o);
}
Tensor bartlettPeriodic(int64_t length, bool periodic, TensorOptions o) {
  return window("bartlett_window", length, periodic, o, []<class C>(C i, int64_t n) {
    C v = i * static_cast<C>(2.0 / static_cast<double>(n - 1));
    return i <= static_cast<C>((n - 1) / 2) ? v : -v + C(2);
  });
}
Tensor blackmanPeriodic(int64_t length, bool periodic, TensorOptions o) {
  return window("blackman_window", length, periodic, o, []<class C>(C i, int64_t n) {
    C angle = i * static_cast<C>(std::numbers::pi / static_cast<double>(n - 1));
    return std::cos(angle * C(4)) * C(0.08) - std::cos(angle * C(2)) * C(0.5) + C(0.42);
  });
}
Tensor kaiserBeta(int64_t length, bool periodic, double beta, TensorOptions o) {
  double peak = std::tr1::cyl_bessel_i(0.0, std::abs(beta));
  return window("kaiser_window", length, periodic, o, [&]<class C>(C i, int64_t n) {
    double alpha = static_cast<double>(n - 1) / 2;
    double x = (static_cast<double>(i) - alpha) / alpha;
    return static_cast<C>(
        std::tr1::cyl_bessel_i(0.0, std::abs(beta) * std::sqrt(std::max(0.0, 1 - x * x))) / peak);
  });
}
Tensor kaiserPeriodic(int64_t length, bool periodic, TensorOptions o) {
  return kaiserBeta(length, periodic, 12.0, o);
}
// The overloads that do not say whether the window is periodic.
template <auto kWindow>
Tensor periodic(int64_t length, TensorOptions o) {
  return kWindow(length, true, o);
}

Tensor vander(const Tensor& x, std::optional<int64_t> columns, bool increasing) {
  WICK_CHECK(x.dim() == 1, "x must be a one-dimensional tensor, but got {} dims", x.dim());
  int64_t n = columns.value_or(x.numel());
  WICK_CHECK(n >= 0, "N must be non-negative, but got {}", n);
  DType dtype = isIntegral(x.dtype(), true) ? DType::Long : x.dtype();
  Tensor from = x.to(dtype).contiguous();
  Tensor t = Tensor::empty(DimVector{x.numel(), n}, dtype);
  dispatch<kRealNumbers | kComplexes>("vander", dtype, [&]<class T>() -> void {
    Pace pace;
    for (int64_t r = 0; r < x.numel(); ++r) {
      T value = from.data<T>()[r];
      T* row = t.data<T>() + r * n;
      T power = convert<T>(1);
      for (int64_t c = 0; c < n; ++c) {
        pace.step();
        row[increasing ? c : n - 1 - c] = power;
        if constexpr (std::is_integral_v<T>) {
          power = static_cast<T>(static_cast<uint64_t>(power) * static_cast<uint64_t>(value));
        } else {
          power = T(power * value);
        }
      }
    }
  });
  return t;
}

std::vector<Tensor> meshgridOf(const std::vector<Tensor>& tensors, bool swap) {
  WICK_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  DimVector shape;
  for (const Tensor& t : tensors) {
    WICK_CHECK(t.dim() <= 1, "Expected 0D or 1D tensor in the tensor list but got: {}",
               t.describe());
    WICK_CHECK(t.dtype() == tensors[0].dtype(),
               "torch.meshgrid expects all tensors to have the same dtype");
    shape.push_back(t.numel());
  }
  swap = swap && tensors.size() >= 2;
  if (swap) std::swap(shape[0], shape[1]);
  std::vector<Tensor> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t d = swap && i < 2 ? 1 - i : i;
    DimVector view(tensors.size(), 1);
    view[d] = tensors[i].numel();
    Tensor grid = tensors[i].view(view);
    out.push_back(grid.expand(shape));
  }
  return out;
}
std::vector<Tensor> meshgridIndexing(std::vector<Tensor> tensors, std::string indexing) {
  WICK_CHECK(indexing == "ij" || indexing == "xy",
             "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}",
             indexing);
  return meshgridOf(tensors, indexing == "xy");
}

Tensor cartesianProd(std::vector<Tensor> tensors) {
  for (const Tensor& t : tensors) {
    WICK_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape {}", formatInts(t.sizes()));
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> grids = meshgridOf(tensors, false);
  Tensor t = Tensor::empty(DimVector{grids[0].numel(), static_cast<int64_t>(grids.size())},
                           grids[0].dtype(), grids[0].device());
  for (size_t i = 0; i < grids.size(); ++i)
    t.select(1, i).copyFrom(grids[i].reshape(DimVector{-1}));
  return t;
}

Tensor combinations(const Tensor& self, int64_t r, bool repeat) {
  WICK_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape {}", formatInts(self.sizes()));
  WICK_CHECK(r >= 0, "Expect a non-negative number, but got {}", r);
  if (r == 0) return Tensor::empty(DimVector{0}, self.dtype());
  int64_t n = self.numel();
  // As many as there are ways to choose r of n, or of n + r - 1 when elements may repeat.
  WICK_CHECK(!repeat || r <= INT64_MAX - n,
             "combinations: the number of ways to choose {} of {} overflows", r, n);
  int64_t pool = repeat ? n + r - 1 : n;
  int64_t count = n > 0 && r <= pool ? 1 : 0;
  for (int64_t i = 1; i <= std::min(r, pool - r) && count > 0; ++i) {
    WICK_CHECK(!__builtin_mul_overflow(count, pool - i + 1, &count),
               "combinations: the number of ways to choose {} of {} overflows", r, n);
    count /= i;
  }
  Tensor from = self.contiguous();
  Tensor t = Tensor::empty(DimVector{count, r}, self.dtype());
  if (count == 0) return t;
  DimVector pick;
  for (int64_t i = 0; i < r; ++i) pick.push_back(repeat ? 0 : i);
  dispatchItemSize(self.itemSize(), [&]<class Word>() {
    const Word* source = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(t.rawData());
    // Index tuples in lexicographic order.
    Pace pace;
    while (true) {
      pace.step(r);
      for (int64_t i : pick) *to++ = source[i];
      int64_t at = r - 1;
      while (at >= 0 && pick[at] == (repeat ? n - 1 : n - r + at)) --at;
      if (at < 0) break;
      int64_t next = pick[at] + 1;
      for (int64_t i = at; i < r; ++i) pick[i] = repeat ? next : next + i - at;
    }
  });
  return t;
}

Tensor blockDiag(std::vector<Tensor> tensors) {
  if (tensors.empty()) return Tensor::empty(DimVector{1, 0}, defaultDType());
  DType dtype = tensors[0].dtype();
  int64_t rows = 0;
  int64_t cols = 0;
  for (Tensor& t : tensors) {
    WICK_CHECK(t.dim() <= 2,
               "block_diag: Input tensors must have 2 or fewer dimensions. Input has {} dimensions",
               t.dim());
    dtype = promoteTypes(dtype, t.dtype());
    if (t.dim() < 2) t = t.reshape(DimVector{1, t.numel()});
    rows += t.sizes()[0];
    cols += t.sizes()[1];
  }
  Tensor out = Tensor::zeros(DimVector{rows, cols}, dtype, tensors[0].device());
  int64_t r = 0;
  int64_t c = 0;
  for (const Tensor& t : tensors) {
    out.narrow(0, r, t.sizes()[0]).narrow(1, c, t.sizes()[1]).copyFrom(t);
    r += t.sizes()[0];
    c += t.sizes()[1];
  }
  return out;
}

#define WICK_OPTIONS_OF(dtype) \
  "ScalarType? dtype=" dtype ", Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define WICK_OPTIONS WICK_OPTIONS_OF("None")

const OperatorRecord kRangesRecords[] = {
    {"aten::arange(Scalar end, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(arangeEnd)>), kNotDifferentiable | kSavesNothing, shapes::ranged},
    {"aten::arange.start(Scalar start, Scalar end, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(arangeStart)>), kNotDifferentiable | kSavesNothing, shapes::ranged},
    {"aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<6, WICK_KERNEL(arangeStep)>), kNotDifferentiable | kSavesNothing, shapes::ranged},
    {"aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> "
     "Tensor(a!)",
     &outForm, kNotDifferentiable | kNeutralMixed | kSavesNothing},
    {"aten::arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kNotDifferentiable | kNeutralMixed | kSavesNothing},
    {"aten::range.step(Scalar start, Scalar end, Scalar step=1, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<6, WICK_KERNEL(rangeStep)>), kNotDifferentiable},
    {"aten::range(Scalar start, Scalar end, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(range)>), kNotDifferentiable},
    {"aten::range.out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
     &outForm, kNotDifferentiable | kNeutralMixed},
    {"aten::linspace(Scalar start, Scalar end, int steps, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<6, WICK_KERNEL(linspace)>), kNotDifferentiable},
    {"aten::linspace.out(Scalar start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)",
     &outForm, kNotDifferentiable | kNeutralMixed},
    {"aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<7, WICK_KERNEL(logspace)>), kNotDifferentiable},
    {"aten::logspace.out(Scalar start, Scalar end, int steps, float base=10., *, Tensor(a!) out) "
     "-> Tensor(a!)",
     &outForm, kNotDifferentiable | kNeutralMixed},
    {"aten::eye(int n, *, " WICK_OPTIONS ") -> Tensor", (&pinning<4, WICK_KERNEL(eye)>),
     kNotDifferentiable, shapes::identity},
    {"aten::eye.m(int n, int m, *, " WICK_OPTIONS ") -> Tensor", (&pinning<5, WICK_KERNEL(eyeM)>),
     kNotDifferentiable, shapes::identity},
    {"aten::eye.out(int n, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kNotDifferentiable | kNeutralMixed},
    {"aten::eye.m_out(int n, int m, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kNotDifferentiable | kNeutralMixed},
    {"aten::tril(Tensor self, int diagonal=0) -> Tensor", WICK_KERNEL(triangle<false>),
     kInplaceForm | kOutForm | kOutSame | kSavesNothing, shapes::likeFirst},
    {"aten::triu(Tensor self, int diagonal=0) -> Tensor", WICK_KERNEL(triangle<true>),
     kInplaceForm | kOutForm | kOutSame | kSavesNothing, shapes::likeFirst},
    {"aten::tril_indices(int row, int col, int offset=0, *, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<6, WICK_KERNEL(triangleIndices<false>)>), kNotDifferentiable},
    {"aten::triu_indices(int row, int col, int offset=0, *, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<6, WICK_KERNEL(triangleIndices<true>)>), kNotDifferentiable},
    {"aten::hann_window(int window_length, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(periodic<hannPeriodic>)>), kNotDifferentiable},
    {"aten::hann_window.periodic(int window_length, bool periodic, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(hannPeriodic)>), kNotDifferentiable},
    {"aten::hamming_window(int window_length, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(periodic<hammingPeriodic>)>), kNotDifferentiable},
    {"aten::hamming_window.periodic(int window_length, bool periodic, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<5, WICK_KERNEL(hammingPeriodic)>), kNotDifferentiable},
    {"aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, "
     "*, " WICK_OPTIONS ") -> Tensor",
     (&pinning<6, WICK_KERNEL(hammingAlpha)>), kNotDifferentiable},
    {"aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, "
     "float beta, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<7, WICK_KERNEL(hammingBeta)>), kNotDifferentiable},
    {"aten::bartlett_window(int window_length, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(periodic<bartlettPeriodic>)>), kNotDifferentiable},
    {"aten::bartlett_window.periodic(int window_length, bool periodic, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<5, WICK_KERNEL(bartlettPeriodic)>), kNotDifferentiable},
    {"aten::blackman_window(int window_length, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(periodic<blackmanPeriodic>)>), kNotDifferentiable},
    {"aten::blackman_window.periodic(int window_length, bool periodic, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<5, WICK_KERNEL(blackmanPeriodic)>), kNotDifferentiable},
    {"aten::kaiser_window(int window_length, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(periodic<kaiserPeriodic>)>), kNotDifferentiable},
    {"aten::kaiser_window.periodic(int window_length, bool periodic, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<5, WICK_KERNEL(kaiserPeriodic)>), kNotDifferentiable},
    {"aten::kaiser_window.beta(int window_length, bool periodic, float beta, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<6, WICK_KERNEL(kaiserBeta)>), kNotDifferentiable},
    {"aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", WICK_KERNEL(vander)},
    {"aten::meshgrid(Tensor[] tensors) -> Tensor[]",
     WICK_LAMBDA([](std::vector<Tensor> tensors) { return meshgridOf(tensors, false); }),
     kMayReturnArgument | kNeutral},
    {"aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
     WICK_KERNEL(meshgridIndexing), kMayReturnArgument | kNeutral},
    {"aten::cartesian_prod(Tensor[] tensors) -> Tensor", WICK_KERNEL(cartesianProd),
     kMayReturnArgument | kNeutral},
    {"aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
     WICK_KERNEL(combinations)},
    {"aten::block_diag(Tensor[] tensors) -> Tensor", WICK_KERNEL(blockDiag),
     kOutForm | kOutAny | kNeutral | kSavesNothing},
};

const RegisterOperators kRangesRegistered(kRangesRecords);

}  // namespace

}  // namespace wick::ops
