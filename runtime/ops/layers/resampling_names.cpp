// The builtins by which archives of early versions call interpolate and upsample: they choose the
// operator by mode and dimensions when they run.
#include <cmath>

#include "runtime/ops/common_calls.h"

namespace wick::ops {

namespace {

struct Request {
  const char* op;
  Tensor input;
  IValue size;    // int, int[] or None
  IValue factor;  // number, list of numbers or None
  std::string mode;
  std::optional<bool> align_corners;
  bool keeps_factor = true;  // the factor itself, not the ratio of the sizes, places the samples
  bool antialias = false;

  size_t spatial() const { return static_cast<size_t>(std::max<int64_t>(0, input.dim() - 2)); }
};

std::optional<DimVector> sizesOf(const Request& r) {
  if (r.size.isNone()) return std::nullopt;
  if (!r.size.isList()) return DimVector(r.spatial(), r.size.numberToInt());
  DimVector sizes = r.size.toDims();
  WICK_CHECK(sizes.size() == r.spatial(), "{}: expected {} output sizes, got {}", r.op, r.spatial(),
             sizes.size());
  return sizes;
}

std::optional<std::vector<double>> factorsOf(const Request& r) {
  if (r.factor.isNone()) return std::nullopt;
  std::vector<double> factors;
  if (r.factor.isList()) {
    for (const IValue& e : r.factor.elements()) factors.push_back(e.numberToDouble());
  } else {
    factors.assign(r.spatial(), r.factor.numberToDouble());
  }
  WICK_CHECK(factors.size() == r.spatial(), "{}: expected {} scale factors, got {}", r.op,
             r.spatial(), factors.size());
  return factors;
}

DimVector scaledSizes(const Request& r, const std::vector<double>& factors) {
  DimVector sizes;
  for (size_t i = 0; i < factors.size(); ++i) {
    double n =
        std::floor(static_cast<double>(r.input.size(static_cast<int64_t>(2 + i))) * factors[i]);
    WICK_CHECK(n >= 0 && n < 0x1p40, "{}: a scale factor is out of range: {}", r.op, factors[i]);
    sizes.push_back(static_cast<int64_t>(n));
  }
  return sizes;
}

Tensor area(const Request& r, const DimVector& sizes) {
  static const OperatorHandle kPool1("aten::adaptive_avg_pool1d", "");
  static const OperatorHandle kPool2("aten::adaptive_avg_pool2d", "");
  static const OperatorHandle kPool3("aten::adaptive_avg_pool3d", "");
  const OperatorHandle* pools[] = {&kPool1, &kPool2, &kPool3};
  return (*pools[r.spatial() - 1])(r.input, sizes);
}

IValue boxed(const std::optional<DimVector>& sizes) {
  return sizes ? IValue(makeIntList(*sizes)) : IValue();
}
IValue boxed(const std::optional<std::vector<double>>& factors) {
  if (!factors) return IValue();
  return IValue(makeList(types::Float(), {factors->begin(), factors->end()}));
}

Tensor resample(const Request& r) {
  static const OperatorHandle kNearest[] = {{"aten::upsample_nearest1d", "vec"},
                                            {"aten::upsample_nearest2d", "vec"},
                                            {"aten::upsample_nearest3d", "vec"}};
  static const OperatorHandle kLinear("aten::upsample_linear1d", "vec");
  static const OperatorHandle kBilinear("aten::upsample_bilinear2d", "vec");
  static const OperatorHandle kTrilinear("aten::upsample_trilinear3d", "vec");
  static const OperatorHandle kBicubic("aten::upsample_bicubic2d", "vec");
  static const OperatorHandle kBilinearAntialias("aten::_upsample_bilinear2d_aa", "vec");
  static const OperatorHandle kBicubicAntialias("aten::_upsample_bicubic2d_aa", "vec");
  const size_t n = r.spatial();
  WICK_CHECK(n >= 1 && n <= 3, "{}: expected an input of 3 to 5 dimensions, got {}", r.op,
             r.input.describe());
  std::optional<DimVector> sizes = sizesOf(r);
  std::optional<std::vector<double>> factors = factorsOf(r);
  WICK_CHECK(sizes.has_value() != factors.has_value(),
             "{}: only one of size or scale_factor should be defined", r.op);
  if (factors && (!r.keeps_factor || r.mode == "area")) {
    sizes = scaledSizes(r, *factors);
    factors.reset();
  }
  if (r.mode == "nearest" || r.mode == "area") {
    WICK_CHECK(!r.align_corners,
               "{}: align_corners option can only be set with the interpolating modes: linear | "
               "bilinear | bicubic | trilinear",
               r.op);
    return r.mode == "area" ? area(r, *sizes)
                            : kNearest[n - 1](r.input, boxed(sizes), boxed(factors));
  }
  const bool align = r.align_corners.value_or(false);
  const OperatorHandle* chosen =
      r.mode == "linear" && n == 1      ? &kLinear
      : r.mode == "bilinear" && n == 2  ? (r.antialias ? &kBilinearAntialias : &kBilinear)
      : r.mode == "trilinear" && n == 3 ? &kTrilinear
      : r.mode == "bicubic" && n == 2   ? (r.antialias ? &kBicubicAntialias : &kBicubic)
                                        : nullptr;
  WICK_CHECK(chosen, "{}: the mode {} does not suit an input of {} dimensions", r.op, r.mode,
             r.input.dim());
  return (*chosen)(r.input, boxed(sizes), align, boxed(factors));
}

Tensor interpolate(const Tensor& input, const IValue& size, const IValue& factor,
                   const std::string& mode, std::optional<bool> align,
                   std::optional<bool> recompute, bool antialias) {
  return resample(
      {"interpolate", input, size, factor, mode, align, !recompute.value_or(false), antialias});
}
Tensor upsampleByMode(const Tensor& input, const IValue& size, const IValue& factor,
                      const std::string& mode, std::optional<bool> align) {
  return resample({"upsample", input, size, factor, mode, align});
}
Tensor upsampleNearest(const Tensor& input, const IValue& size, const IValue& factor) {
  return resample({"upsample_nearest", input, size, factor, "nearest", std::nullopt});
}
Tensor upsampleBilinear(const Tensor& input, const IValue& size, const IValue& factor) {
  return resample({"upsample_bilinear", input, size, factor, "bilinear", true});
}

#define WICK_INTERPOLATE(overload, size, factor)                                  \
  {                                                                               \
    "aten::__interpolate" overload "(Tensor input, " size "? size=None, " factor  \
    "? scale_factor=None, str mode=\"nearest\", bool? align_corners=None, bool? " \
    "recompute_scale_factor=None, bool antialias=False) -> Tensor",               \
        WICK_KERNEL(interpolate)                                                  \
  }
#define WICK_UPSAMPLE(overload, size)                                                      \
  {                                                                                        \
    "aten::__upsample" overload "(Tensor input, " size                                     \
    "? size=None, int? scale_factor=None, str mode=\"nearest\", bool? align_corners=None)" \
    " -> Tensor",                                                                          \
        WICK_KERNEL(upsampleByMode)                                                        \
  }
#define WICK_UPSAMPLE_TO(name, overload, size, factor, kernel)                      \
  {                                                                                 \
    "aten::__upsample_" name overload "(Tensor input, " size "? size=None, " factor \
    "? scale_factor=None) -> Tensor",                                               \
        WICK_KERNEL(kernel)                                                         \
  }

constexpr OperatorRecord kResamplingNamesRecords[] = {
    WICK_INTERPOLATE("", "int", "float"),
    WICK_INTERPOLATE(".scale_list", "int", "float[]"),
    WICK_INTERPOLATE(".size_list", "int[]", "float"),
    WICK_INTERPOLATE(".size_list_scale_list", "int[]", "float[]"),
    WICK_UPSAMPLE("", "int"),
    WICK_UPSAMPLE(".size_list", "int[]"),
    WICK_UPSAMPLE_TO("nearest", "", "int", "int", upsampleNearest),
    WICK_UPSAMPLE_TO("nearest", ".size_list", "int[]", "int", upsampleNearest),
    WICK_UPSAMPLE_TO("bilinear", "", "int", "int", upsampleBilinear),
    WICK_UPSAMPLE_TO("bilinear", ".scale_list", "int", "int[]", upsampleBilinear),
    WICK_UPSAMPLE_TO("bilinear", ".size_list", "int[]", "int", upsampleBilinear),
    WICK_UPSAMPLE_TO("bilinear", ".size_list_scale_list", "int[]", "int[]", upsampleBilinear),
};

const RegisterOperators kResamplingNamesRegistered(kResamplingNamesRecords);

}  // namespace

}  // namespace wick::ops
