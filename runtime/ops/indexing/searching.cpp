// Operators that look values up or compare sets of them: searchsorted and bucketize, histograms,
// isin, closeness.
#include <cmath>
#include <limits>
#include <mutex>

#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/paced.h"
#include "core/parallel.h"
#include "runtime/kernels/element_order.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/searched.h"
#include "runtime/ops/promotion.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

const OperatorHandle kPositions{"wick::sorted_positions", ""};

// Whether boundPosition() says the same however the sequence is halved.
template <class T>
bool isSorted(const T* data, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    if (!(data[i - 1] <= data[i])) return false;
  }
  return n == 0 || data[0] == data[0];
}

// boundPosition() in a sorted sequence for several values at once: no step of one waits for a step
// of another, and no branch depends on them.
template <class T, bool kRight>
void boundPositions(const T* data, int64_t n, const T* values, int64_t* out, int64_t count) {
  constexpr int64_t kTogether = 16;
  const auto isBefore = [](T m, T v) { return kRight ? !(m > v) : !(m >= v); };
  for (int64_t begin = 0; begin < count; begin += kTogether) {
    const int64_t some = std::min(kTogether, count - begin);
    T wanted[kTogether] = {};
    std::copy_n(values + begin, some, wanted);
    int32_t low[kTogether] = {};
    auto length = static_cast<int32_t>(n);
    for (; length > 1; length -= length / 2) {
      const int32_t half = length / 2;
      for (int64_t i = 0; i < kTogether; ++i) {
        low[i] += isBefore(data[low[i] + half - 1], wanted[i]) ? half : 0;
      }
    }
    for (int64_t i = 0; i < some; ++i) {
      out[begin + i] = low[i] + (n > 0 && isBefore(data[low[i]], wanted[i]) ? 1 : 0);
    }
  }
}

// Positions of all values in one sequence.
template <class T>
void searchShared(const T* data, const int64_t* order, int64_t n, const T* values, int64_t* out,
                  int64_t count, bool right) {
  const bool together = !order && n < std::numeric_limits<int32_t>::max() && isSorted(data, n);
  // A position takes as long as some elements of a pointwise loop.
  parallelFor(count, kGrainSize / 16, [&](int64_t begin, int64_t end) {
    if (together) {
      (right ? boundPositions<T, true> : boundPositions<T, false>)(data, n, values + begin,
                                                                   out + begin, end - begin);
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      out[i] = order::boundPosition<T>(data, order, n, values[i], right);
    }
  });
}

// Where each value belongs in a sequence, or in the one of its row. Both have one dtype. `order`
// says which element of a sequence stands where, when it is not sorted itself.
Tensor sortedPositions(const Tensor& sequence, const Tensor& values, const Tensor& order,
                       bool right) {
  const char* op = "torch.searchsorted()";
  const int64_t n = checkSearched(op, sequence, values, order);
  const Tensor bounds = sequence.contiguous(), wanted = values.contiguous();
  const Tensor places = order.defined() ? order.contiguous() : order;
  for (int64_t i = 0; places.defined() && i < places.numel(); ++i) {
    const int64_t at = places.data<int64_t>()[i];
    WICK_CHECK(at >= 0 && at < n, "{}: sorter index out of range", op);
  }
  const bool shared = sequence.dim() == 1;
  Tensor out = Tensor::empty(values.sizes(), DType::Long);
  dispatch<kRealNumbers>(op, bounds.dtype(), [&]<class T>() -> void {
    const T* const data = bounds.data<T>();
    const int64_t* const positions = places.defined() ? places.data<int64_t>() : nullptr;
    const T* const sought = wanted.data<T>();
    int64_t* const to = out.data<int64_t>();
    if (shared) {
      searchShared(data, positions, n, sought, to, wanted.numel(), right);
      return;
    }
    const int64_t row = std::max<int64_t>(1, values.sizes().back());
    parallelFor(wanted.numel(), kGrainSize / 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / row * n;
        to[i] = order::boundPosition<T>(data + start, positions ? positions + start : nullptr, n,
                                        sought[i], right);
      }
    });
  });
  return out;
}

Tensor search(const char* op, const Tensor& sequence, const Tensor& values, bool out_int32,
              bool right, const Tensor& sorter, DType common) {
  WICK_CHECK(sequence.dim() > 0, "{}: boundaries tensor should have positive dimension, but got 0",
             op);
  if (sequence.dim() != 1) {
    WICK_CHECK(sequence.dim() == values.dim() &&
                   std::equal(sequence.sizes().begin(), sequence.sizes().end() - 1,
                              values.sizes().begin()),
               "{}: boundaries tensor should be 1 dimension or the first N-1 dimensions of "
               "boundaries tensor and input value tensor must match, but we got boundaries tensor "
               "{} and input value tensor {}",
               op, formatInts(sequence.sizes()), formatInts(values.sizes()));
  }
  int64_t n = sequence.sizes().back();
  WICK_CHECK(
      !out_int32 || n < std::numeric_limits<int32_t>::max(),
      "{}: the size of boundaries' last dimension should be less than INT_MAX, but we got {}", op,
      n);
  if (sorter.defined()) {
    WICK_CHECK(std::ranges::equal(sorter.sizes(), sequence.sizes()),
               "{}: boundary and sorter must have the same size, but got boundary tensor {} and "
               "got sorter tensor {}",
               op, formatInts(sequence.sizes()), formatInts(sorter.sizes()));
    WICK_CHECK(sorter.dtype() == DType::Long,
               "{}: sorter must be a tensor of long dtype but got dtype {}", op,
               scalarTypeName(sorter.dtype()));
  }
  const Tensor out = kPositions(sequence.to(common), values.to(common), sorter, right);
  return out_int32 ? out.to(DType::Int) : out;
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  WICK_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim({})",
             boundaries.dim());
  return search("bucketize", boundaries, self, out_int32, right, Tensor(),
                commonDType(boundaries, self));
}
Tensor bucketizeNumber(Scalar self, const Tensor& boundaries, bool out_int32, bool right) {
  WICK_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim({})",
             boundaries.dim());
  return search("bucketize", boundaries, moveTo(self.toTensor(), boundaries.device()), out_int32,
                right, Tensor(), commonDType(boundaries, self));
}

bool rightSide(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  WICK_CHECK(*side == "left" || *side == "right",
             "torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side);
  WICK_CHECK(!right || *side == "right",
             "torch.searchsorted(): side and right can't be set to opposites, got side of {} while "
             "right was True",
             *side);
  return *side == "right";
}
Tensor searchsorted(const Tensor& sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string> side, const Tensor& sorter) {
  return search("torch.searchsorted()", sequence, self, out_int32, rightSide(right, side), sorter,
                commonDType(sequence, self));
}
Tensor searchsortedNumber(const Tensor& sequence, Scalar self, bool out_int32, bool right,
                          std::optional<std::string> side, const Tensor& sorter) {
  WICK_CHECK(sequence.dim() == 1,
             "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
             "dimension is 1, but we got boundaries tensor dim({})",
             sequence.dim());
  return search("torch.searchsorted()", sequence, moveTo(self.toTensor(), sequence.device()),
                out_int32, rightSide(right, side), sorter, commonDType(sequence, self));
}

// The least and the largest of n > 0 elements; NaN where one of them is.
template <class T>
std::pair<T, T> extremes(const T* data, int64_t n) {
  std::mutex mutex;
  T low = data[0], high = data[0];
  bool nan = false;
  parallelFor(n, kGrainSize, [&](int64_t begin, int64_t end) {
    // Several at once, for a vector's lanes.
    constexpr int64_t kLanes = 32;
    T least[kLanes], most[kLanes];
    uint32_t odd[kLanes] = {};
    std::fill_n(least, kLanes, data[begin]);
    std::fill_n(most, kLanes, data[begin]);
    const auto take = [&](int64_t lane, T v) {
      least[lane] = v < least[lane] ? v : least[lane];
      most[lane] = v > most[lane] ? v : most[lane];
      odd[lane] |= v != v ? 1 : 0;
    };
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) take(lane, data[i + lane]);
    }
    for (; i < end; ++i) take(0, data[i]);
    const std::lock_guard lock(mutex);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      low = std::min(low, least[lane]);
      high = std::max(high, most[lane]);
      nan |= odd[lane] != 0;
    }
  });
  if (nan) low = high = std::numeric_limits<T>::quiet_NaN();
  return {low, high};
}

// Which of equal parts holds what lies so far above the lower end, as a number whose whole part says it.
// PyTorch 2.11 multiplies first. Where that may overflow the quotient comes first, as in 1.13; what
// has no part then, or is NaN, is in the first one.
template <class T, class Round>
T partOf(T above, T parts, T span, bool overflows, Round round) {
  const T part =
      overflows ? round(round(above / span) * parts) : round(round(above * parts) / span);
  return part > 0 ? part : T(0);
}

// The bin of a part; one beyond the last bin, which may be infinite, is in the last.
template <class T>
int64_t binOf(T part, int64_t bins) {
  return part < static_cast<T>(bins) ? std::min(static_cast<int64_t>(part), bins - 1) : bins - 1;
}

// How many of n elements fall into each of `bins` equal parts of [low, high]; PyTorch counts NaN in
// the first one. Adds to `counts`.
template <class T>
void countInBins(const T* data, int64_t n, T low, T high, int64_t bins, int64_t* counts) {
  const T span = high - low, parts = static_cast<T>(bins);
  const bool overflows = !std::isfinite(span * parts);
  // The arithmetic of a block is a loop without branches.
  constexpr int64_t kBlock = 512;
  T at[kBlock];
  bool inside[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < count; ++i) {
      const T v = data[begin + i];
      inside[i] = !(v < low) & !(v > high);
      at[i] = partOf(v - low, parts, span, overflows, [](T x) { return x; });
    }
    for (int64_t i = 0; i < count; ++i) {
      if (inside[i]) ++counts[binOf(at[i], bins)];
    }
  }
}

// Adds to `counts` how often each bin is met: count(begin, end, own) counts a part of n elements
// by itself. A thread takes what pays for its bins.
template <class F>
void countTogether(int64_t* counts, int64_t bins, int64_t n, F&& count) {
  std::mutex mutex;
  parallelFor(n, std::max(kGrainSize, bins), [&](int64_t begin, int64_t end) {
    if (end - begin == n) return count(begin, end, counts);
    CountedVector<int64_t> own(static_cast<size_t>(bins), 0);
    count(begin, end, own.data());
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < own.size(); ++i) counts[i] += own[i];
  });
}

// The range of a histogram: as given, or that of the data, widened when it is a single point.
template <class T>
std::pair<T, T> histogramRange(const Tensor& flat, double min, double max) {
  T low = static_cast<T>(min);
  T high = static_cast<T>(max);
  if (low == high && flat.numel() > 0) {
    std::tie(low, high) = extremes(flat.data<T>(), flat.numel());
  }
  WICK_CHECK(std::isfinite(low) && std::isfinite(high),
             "torch.histc: range of [{}, {}] is not finite", static_cast<double>(low),
             static_cast<double>(high));
  WICK_CHECK(low <= high, "torch.histc: max must be larger than min");
  if (low == high) {
    low -= 1;
    high += 1;
  }
  return {low, high};
}

Tensor histc(const Tensor& self, int64_t bins, Scalar min, Scalar max) {
  WICK_CHECK(!min.isComplex() && !max.isComplex(),
             "torch.histc: expected real bounds, got complex ones");
  WICK_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got {} for dimension 0", bins);
  WICK_CHECK(min.toDouble() <= max.toDouble(), "torch.histc: max must be larger than min");
  Tensor out = Tensor::zeros(DimVector{bins}, self.dtype());
  Tensor flat = self.contiguous();
  if (isReducedFloat(self.dtype())) {
    dispatch<kReducedFloats>("histc", self.dtype(), [&]<class T>() -> void {
      const Tensor single = flat.to(DType::Float);
      // Every step is rounded to the dtype, which decides the bin.
      const auto rounded = [](float v) { return static_cast<float>(T(v)); };
      auto [low, high] = histogramRange<float>(single, min.toDouble(), max.toDouble());
      low = rounded(low);
      high = rounded(high);
      const float span = rounded(high - low), parts = rounded(static_cast<float>(bins));
      const bool overflows = !std::isfinite(rounded(span * parts));
      CountedVector<int64_t> counts(static_cast<size_t>(bins), 0);
      for (const float v : single.span<const float>()) {
        if (v < low || v > high) continue;
        const float at = partOf(rounded(v - low), parts, span, overflows, rounded);
        ++counts[binOf(at, bins)];
      }
      for (int64_t i = 0; i < bins; ++i) out.data<T>()[i] = T(static_cast<float>(counts[i]));
    });
    return out;
  }
  dispatch<kFloats>("histc", self.dtype(), [&]<class T>() -> void {
    auto [low, high] = histogramRange<T>(flat, min.toDouble(), max.toDouble());
    CountedVector<int64_t> counts(static_cast<size_t>(bins), 0);
    const T* const data = flat.data<T>();
    countTogether(counts.data(), bins, flat.numel(), [&](int64_t begin, int64_t end, int64_t* own) {
      countInBins(data + begin, end - begin, low, high, bins, own);
    });
    for (int64_t i = 0; i < bins; ++i) out.data<T>()[i] = static_cast<T>(counts[i]);
  });
  return out;
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  WICK_CHECK(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) return Tensor::zeros(DimVector{minlength}, DType::Long);
  if (!isIntegral(self.dtype(), false)) throwUnsupportedDType("bincount", self.dtype());
  constexpr const char* kExpected = "bincount only supports 1-d non-negative integral inputs.";
  WICK_CHECK(self.dim() == 1, kExpected);
  const Tensor index = self.to(DType::Long).contiguous();
  const int64_t* const data = index.data<int64_t>();
  const int64_t n = index.numel();
  int64_t least = data[0], largest = data[0];
  for (int64_t i = 0; i < n; ++i) {
    least = std::min(least, data[i]);
    largest = std::max(largest, data[i]);
  }
  WICK_CHECK(least >= 0, kExpected);
  WICK_CHECK(largest < INT64_MAX, "bincount: the value {} is too large", largest);
  const int64_t bins = std::max(largest + 1, minlength);
  if (!weights.defined()) {
    Tensor out = Tensor::zeros(DimVector{bins}, DType::Long);
    countTogether(out.data<int64_t>(), bins, n, [&](int64_t begin, int64_t end, int64_t* counts) {
      for (int64_t i = begin; i < end; ++i) ++counts[data[i]];
    });
    return out;
  }
  WICK_CHECK(weights.dim() == 1 && weights.numel() == n,
             "weights should be 1-d and have the same length as input");
  DType dtype = weights.dtype() == DType::Float ? DType::Float : DType::Double;
  Tensor w = weights.to(dtype).contiguous();
  Tensor out = Tensor::zeros(DimVector{bins}, dtype);
  dispatch<kFloats>("bincount", dtype, [&]<class T>() -> void {
    T* const sums = out.data<T>();
    const T* const values = w.data<T>();
    for (int64_t i = 0; i < n; ++i) sums[data[i]] += values[i];
  });
  return out;
}

Tensor isinOf(const Tensor& elements, const Tensor& tests, DType common, bool invert) {
  Tensor wanted = elements.to(common).contiguous();
  Tensor known = tests.to(common).clone(MemoryFormat::Contiguous);
  Tensor out = Tensor::empty(elements.sizes(), DType::Bool);
  dispatch<kRealNumbers | kBool>("isin", common, [&]<class T>() -> void {
    T* set = known.data<T>();
    // NaN equals nothing, so it need not be found.
    T* end = std::remove_if(set, set + known.numel(), [](T v) { return v != v; });
    Pace pace;
    std::sort(set, end, paced(pace, [](T a, T b) { return a < b; }));
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      pace.step(8);
      T v = wanted.data<T>()[i];
      bool found = v == v && std::binary_search(set, end, v);
      out.data<bool>()[i] = found != invert;
    }
  });
  return out;
}
Tensor isinTensors(const Tensor& elements, const Tensor& tests, bool, bool invert) {
  return isinOf(elements, tests, commonDType(elements, tests), invert);
}
Tensor isinTensorNumber(const Tensor& elements, Scalar test, bool, bool invert) {
  return isinOf(elements, test.toTensor(), commonDType(elements, test), invert);
}
Tensor isinNumberTensor(Scalar element, const Tensor& tests, bool, bool invert) {
  return isinOf(element.toTensor(), tests, commonDType(element, tests), invert);
}

// Of operators on every device.
Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  static const OperatorHandle kLe{"aten::le", "Tensor"};
  WICK_CHECK(self.dtype() == other.dtype(), "isclose: {} did not match {}",
             scalarTypeName(self.dtype()), scalarTypeName(other.dtype()));
  WICK_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got {}", rtol);
  WICK_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got {}", atol);
  Tensor close = ops::eq(self, other);
  const bool whole = isIntegral(self.dtype(), true);
  if (equal_nan && !whole)
    close = ops::logicalOr(close, ops::logicalAnd(ops::isNan(self), ops::isNan(other)));
  if (rtol == 0 && atol == 0) return close;
  // Integers are compared in the default dtype, reduced floats in float32.
  const DType type = whole || isReducedFloat(self.dtype()) ? DType::Float : self.dtype();
  const Tensor x = self.to(type), y = other.to(type);
  const Tensor allowed = addScalar(abs(mulScalar(y, Scalar(rtol))), Scalar(atol));
  const Tensor difference = abs(sub(x, y));
  return ops::logicalOr(close,
                        ops::logicalAnd(ops::isFinite(difference), kLe(difference, allowed)));
}
bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return Tensor(ops::all(isclose(self, other, rtol, atol, equal_nan))).item<bool>();
}

constexpr uint64_t kInfo = kNotDifferentiable | kOutForm;

const OperatorRecord kSearchingRecords[] = {
    {"aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool "
     "right=False) -> Tensor",
     WICK_KERNEL(bucketize), kInfo | kOutSame | kNeutral},
    {"aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool "
     "right=False) -> Tensor",
     WICK_KERNEL(bucketizeNumber), kInfo | kOutSame | kNeutral},
    {"aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
     "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     WICK_KERNEL(searchsorted), kInfo | kOutSame | kNeutral},
    {"aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
     "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     WICK_KERNEL(searchsortedNumber), kInfo | kOutSame | kNeutral},
    {"wick::sorted_positions(Tensor sequence, Tensor values, Tensor? order, bool right) -> Tensor",
     WICK_KERNEL(sortedPositions), kNotDifferentiable},
    {"aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
     WICK_KERNEL(histc), kInfo | kOutSame | kRaisesByElements},
    {"aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
     WICK_KERNEL(bincount), kInfo | kOutAny | kRaisesByElements},
    {"aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, "
     "bool invert=False) -> Tensor",
     WICK_KERNEL(isinTensors), kInfo | kOutSame},
    {"aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, "
     "bool invert=False) -> Tensor",
     WICK_KERNEL(isinTensorNumber), kInfo | kOutSame},
    {"aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, "
     "bool invert=False) -> Tensor",
     WICK_KERNEL(isinNumberTensor), kInfo | kOutSame},
    {"aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float "
     "atol=1e-08, bool equal_nan=False) -> Tensor",
     WICK_KERNEL(isclose), kNotDifferentiable | kNeutralMixed, shapes::comparison},
    {"aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float "
     "atol=1e-08, bool equal_nan=False) -> bool",
     WICK_KERNEL(allclose), kNotDifferentiable | kNeutralMixed},
};

const RegisterOperators kSearchingRegistered(kSearchingRecords);

}  // namespace

}  // namespace wick::ops
