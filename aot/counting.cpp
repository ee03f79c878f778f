// Counting, distances and what else goes through elements one by one, on the device "ahead".
#include "aot/counting.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/dtype_promotion.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/quantiles.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/promotion.h"
#include "runtime/ops/values/pairs.h"

namespace wick::aot {

namespace {

// A float64 that is known.
Tensor numberOf(double value) {
  return here(Tensor::scalar(value));
}
Tensor asNumbers(const Tensor& t) {
  return (t.dtype() == DType::Bool ? here(t).to(DType::Byte) : here(t)).contiguous();
}

// ---- repeats ----

// Each position as often as its count says.
Tensor placesOf(const Tensor& repeats, std::optional<int64_t> output_size) {
  const char* op = "repeat_interleave";
  WICK_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  WICK_CHECK(repeats.dtype() == DType::Long || repeats.dtype() == DType::Int,
             "repeats has to be Long or Int tensor");
  const int64_t count = repeats.numel();
  if (count == 0) return integers(0);
  Recording& recording = Recording::current();
  const Tensor known = repeats.device().isCpu() ? repeats : recording.known(repeats);
  if (known.defined()) {
    static const OperatorHandle kRepeat{"aten::repeat_interleave", "Tensor"};
    return here(kRepeat(known, output_size ? IValue(*output_size) : IValue())).to(DType::Long);
  }
  const int64_t most = output_size.value_or(recording.mostElse());
  WICK_CHECK(most >= 0, "{}: expected a size that is not negative, got {}", op, most);
  const Tensor counts = here(repeats).to(DType::Long).contiguous();
  // Often several tensors are repeated by the same counts.
  if (!output_size) {
    const Tensor before = recording.findComputed("repeated", counts);
    if (before.defined()) return before;
  }
  Tensor places = integers(most), found = number();
  addFunction(op, "repeatedPlaces", {reads(counts), writes(places), writes(found)}, {count, most},
              "repeats can not be negative");
  if (!output_size) {
    const Tensor selected = places.narrow(0, 0, recording.size(found, most, op));
    recording.noteComputed("repeated", counts, selected);
    return selected;
  }
  recording.require(ops::eqScalar(found, Scalar(most)),
                    fmt::format("allocated size does not match required size: {}", most));
  return places;
}
Tensor repeatCounts(const Tensor& repeats, std::optional<int64_t> output_size) {
  return placesOf(repeats, output_size).to(repeats.dtype());
}
Tensor repeatRows(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                  std::optional<int64_t> output_size) {
  Tensor input = dim ? here(self) : here(self).reshape(DimVector{-1});
  if (input.dim() == 0) input = input.reshape(DimVector{1});
  const int64_t d = wrapDim(dim.value_or(0), input.dim());
  Tensor counts = here(repeats);
  if (counts.numel() == 1 && counts.dim() <= 1) {
    counts = counts.reshape(DimVector{1}).expand(DimVector{input.size(d)});
  }
  WICK_CHECK(counts.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
  WICK_CHECK(counts.numel() == input.size(d), "repeats must have the same size as input along dim");
  return ops::indexSelect(input, d, placesOf(counts, output_size));
}
// ---- counts ----

}  // namespace

int64_t placesFor(const char* op, const Tensor& at, int64_t least, const std::string& complaint) {
  Recording& recording = Recording::current();
  const Tensor found = number();
  addFunction(op, "placesBeyond", {reads(at), writes(found)}, {at.numel(), least}, complaint);
  return least + recording.size(found, recording.mostElse(), op);
}

namespace {

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  static const OperatorHandle kScatterAdd{"aten::scatter_add", ""};
  WICK_CHECK(minlength >= 0, "minlength should be >= 0");
  constexpr const char* kExpected = "bincount only supports 1-d non-negative integral inputs.";
  const Device device{kAhead, -1};
  if (self.dim() == 1 && self.numel() == 0) {
    return Tensor::zeros(DimVector{minlength}, DType::Long, device);
  }
  WICK_CHECK(isIntegral(self.dtype(), false), "\"bincount\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  WICK_CHECK(self.dim() == 1, kExpected);
  WICK_CHECK(!weights.defined() || (weights.dim() == 1 && weights.numel() == self.numel()),
             "weights should be 1-d and have the same length as input");
  const Tensor at = here(self).to(DType::Long).contiguous();
  const int64_t bins = placesFor("bincount", at, minlength, kExpected);
  const DType dtype = !weights.defined()                ? DType::Long
                      : weights.dtype() == DType::Float ? DType::Float
                                                        : DType::Double;
  Tensor out = Tensor::zeros(DimVector{bins}, dtype, device);
  // In a recording of a size that cannot be there is nothing to count.
  if (bins == 0) return out;
  const Tensor each = weights.defined() ? here(weights).to(dtype)
                                        : Tensor::full(at.sizes(), 1, DType::Long, device);
  return kScatterAdd(out, int64_t{0}, at, each);
}

// ---- members ----

Tensor members(const Tensor& elements, const Tensor& tests, DType common, bool invert) {
  const Tensor wanted = asNumbers(here(elements).to(common));
  const Tensor known = asNumbers(here(tests).to(common)).clone(MemoryFormat::Contiguous);
  Tensor out = Tensor::empty(elements.sizes(), DType::Bool, wanted.device());
  if (out.numel() == 0) return out;
  if (known.numel() == 0) return out.fill(invert ? 1 : 0);
  const bool narrow = isReducedFloat(common);
  const Tensor x = narrow ? wanted.to(DType::Float) : wanted;
  const Tensor set = narrow ? known.to(DType::Float) : known;
  addFunction("isin", fmt::format("membersOf<{}>", elementType("isin", x)),
              {reads(x), changes(set), writes(out)}, {out.numel(), set.numel(), invert ? 1 : 0});
  return out;
}
Tensor isinTensors(const Tensor& elements, const Tensor& tests, bool, bool invert) {
  return members(elements, tests, ops::commonDType(elements, tests), invert);
}
Tensor isinNumber(const Tensor& elements, const Scalar& test, bool, bool invert) {
  return (invert ? ops::neScalar : ops::eqScalar)(elements, test);
}

// ---- quantiles ----

template <bool kIgnoreNan>
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                const std::string& interpolation) {
  constexpr const char* kNames[][2] = {{"linear", "Linear"},
                                       {"lower", "Lower"},
                                       {"higher", "Higher"},
                                       {"midpoint", "Midpoint"},
                                       {"nearest", "Nearest"}};
  const auto* const how =
      std::ranges::find_if(kNames, [&](const auto& pair) { return interpolation == pair[0]; });
  WICK_CHECK(how != std::end(kNames),
             "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
             "but got {}",
             interpolation);
  const Tensor rows = ops::sortedForQuantiles(here(self), q, dim);
  const Tensor fractions = here(q).contiguous();
  const int64_t length = rows.size(-1), count = fractions.numel();
  DimVector sizes(rows.sizes());
  sizes.back() = count;
  const Tensor values = Tensor::empty(sizes, rows.dtype(), rows.device());
  if (values.numel() > 0) {
    addFunction("quantile",
                fmt::format("quantilesOfRows<{}, wick_aot::Between::{}>",
                            elementType("quantile", rows), (*how)[1]),
                {reads(rows), reads(fractions), writes(values)},
                {rows.numel() / length, length, count, kIgnoreNan ? 1 : 0},
                "quantile() q values must be in the range [0, 1]");
  }
  return ops::quantilesFirst(values, self, q, dim, keepdim);
}
template <bool kIgnoreNan>
Tensor quantileNumber(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                      const std::string& interpolation) {
  WICK_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got {}", q);
  return quantile<kIgnoreNan>(self, Tensor::scalar<double>(q).to(self.dtype()), dim, keepdim,
                              interpolation);
}

// ---- distances ----

// By one product: |x|^2 - 2 x y + |y|^2.
Tensor euclideanDist(const Tensor& x1, const Tensor& x2) {
  const auto squares = [](const Tensor& given) {
    const Tensor x = here(given).contiguous();
    DimVector sizes(x.sizes());
    sizes.back() = 1;
    const Tensor sums = Tensor::empty(sizes, x.dtype(), x.device());
    addFunction("cdist", fmt::format("squareSums<{}>", elementType("cdist", x)),
                {reads(x), writes(sums)}, {sums.numel(), x.size(-1)});
    return sums;
  };
  const auto joined = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return ops::cat(makeList(types::Tensor(), std::vector<IValue>{a, b, c}), -1);
  };
  const Tensor norm1 = squares(x1), norm2 = squares(x2);
  const auto ones = [](const Tensor& t) {
    return Tensor::full(t.sizes(), 1, t.dtype(), t.device());
  };
  const Tensor product = ops::matmul(joined(ops::mulScalar(x1, Scalar(-2)), norm1, ones(norm1)),
                                     Tensor(joined(x2, ones(norm2), norm2)).transpose(-2, -1));
  return ops::sqrt(ops::clampMin(product, Scalar(0)));
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  const char* op = "cdist";
  linalg::checkDistances(x1, x2, p);
  const int64_t r = x1.size(-2), s = x2.size(-2), n = x1.size(-1);
  if (linalg::distancesByProduct(p, mode, r, s) && x1.numel() > 0 && x2.numel() > 0) {
    return euclideanDist(widened(here(x1)), widened(here(x2))).to(x1.dtype());
  }
  const auto leading = [](const Tensor& t) {
    return t.sizes().first(static_cast<size_t>(t.dim() - 2));
  };
  const DimVector batch = broadcastShapes(leading(x1), leading(x2));
  const auto rowsOf = [&](const Tensor& t, int64_t rows) {
    DimVector sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(n);
    return widened(here(t)).expand(sizes).contiguous();
  };
  const Tensor a = rowsOf(x1, r), b = rowsOf(x2, s);
  DimVector sizes = batch;
  sizes.push_back(r);
  sizes.push_back(s);
  Tensor out = Tensor::empty(sizes, a.dtype(), a.device());
  if (out.numel() == 0) return out.to(x1.dtype());
  if (n == 0) return out.fill(0).to(x1.dtype());
  addFunction(op, fmt::format("rowDistances<{}>", elementType(op, a)),
              {reads(a), reads(b), reads(numberOf(p)), writes(out)},
              {checkedNumel(batch), r, s, n});
  return out.to(x1.dtype());
}
Tensor pdist(const Tensor& self, double p) {
  const char* op = "pdist";
  WICK_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: {}D", self.dim());
  WICK_CHECK(p >= 0, "pdist only supports non-negative p values");
  const Tensor x = here(self).contiguous();
  const int64_t rows = x.size(0);
  int64_t pairs = 0;
  WICK_CHECK(!__builtin_mul_overflow(rows, rows - 1, &pairs), "{}: {} rows are too many", op, rows);
  Tensor out = Tensor::empty(DimVector{pairs / 2}, x.dtype(), x.device());
  if (out.numel() == 0) return out;
  if (x.size(1) == 0) return out.fill(0);
  addFunction(op, fmt::format("pairDistances<{}>", elementType(op, x)),
              {reads(x), reads(numberOf(p)), writes(out)}, {rows, x.size(1)});
  return out;
}

// ---- elements ----

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  WICK_CHECK(isFloating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
  const Tensor x = widened(here(self)).contiguous();
  const Tensor fractions = Tensor::empty(x.sizes(), x.dtype(), x.device());
  const Tensor powers = Tensor::empty(x.sizes(), DType::Int, x.device());
  if (x.numel() > 0) {
    addFunction("frexp", fmt::format("fractionsAndPowers<{}>", elementType("frexp", x)),
                {reads(x), writes(fractions), writes(powers)}, {x.numel()});
  }
  return {fractions.to(self.dtype()), powers};
}
Tensor trace(const Tensor& self) {
  WICK_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim {}", self.dim());
  const Tensor line = Tensor(ops::diagonal(here(self))).contiguous();
  if (!isFloating(self.dtype()) || line.numel() == 0) return ops::sum(line);
  const Tensor out = Tensor::empty(DimVector{}, line.dtype(), line.device());
  addFunction("trace", fmt::format("sumInOrder<{}>", elementType("trace", line)),
              {reads(line), writes(out)}, {line.numel()});
  return out;
}
Tensor vander(const Tensor& x, std::optional<int64_t> columns, bool increasing) {
  WICK_CHECK(x.dim() == 1, "x must be a one-dimensional tensor, but got {} dims", x.dim());
  const int64_t n = columns.value_or(x.numel());
  WICK_CHECK(n >= 0, "N must be non-negative, but got {}", n);
  const DType dtype = isIntegral(x.dtype(), true) ? DType::Long : x.dtype();
  const Tensor from = here(x).to(dtype).contiguous();
  const Tensor out = Tensor::empty(DimVector{x.numel(), n}, dtype, from.device());
  if (out.numel() > 0) {
    addFunction("vander", fmt::format("powersOf<{}>", elementType("vander", from)),
                {reads(from), writes(out)}, {from.numel(), n, increasing ? 1 : 0});
  }
  return out;
}

const DeviceKernel kCountingKernels[] = {
    {"aten::repeat_interleave.Tensor", WICK_KERNEL(repeatCounts)},
    {"aten::bincount", WICK_KERNEL(bincount)},
    {"aten::quantile", WICK_KERNEL(quantile<false>)},
    {"aten::quantile.scalar", WICK_KERNEL(quantileNumber<false>)},
    {"aten::nanquantile", WICK_KERNEL(quantile<true>)},
    {"aten::nanquantile.scalar", WICK_KERNEL(quantileNumber<true>)},
    {"aten::cdist", WICK_KERNEL(cdist)},
    {"aten::_cdist_forward", WICK_KERNEL(cdist)},
    {"aten::_euclidean_dist", WICK_KERNEL(euclideanDist)},
    {"aten::pdist", WICK_KERNEL(pdist)},
    {"aten::frexp.Tensor", WICK_KERNEL(frexp)},
    {"aten::trace", WICK_KERNEL(trace)},
    {"aten::vander", WICK_KERNEL(vander)},
    {"aten::isin.Tensor_Scalar", WICK_KERNEL(isinNumber)},
};
// Counts and tests may lie on the CPU.
const DeviceKernel kCountingMixed[] = {
    {"aten::repeat_interleave.self_Tensor", WICK_KERNEL(repeatRows)},
    {"aten::isin.Tensor_Tensor", WICK_KERNEL(isinTensors)},
};
const RegisterDeviceKernels kCountingRegistered(kAhead, kCountingKernels);
const RegisterDeviceKernels kCountingMixedRegistered(kAhead, kCountingMixed, TableRule::Mixed);

}  // namespace

}  // namespace wick::aot
