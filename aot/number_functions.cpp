#include "aot/number_functions.h"

#include <algorithm>
#include <iterator>

#include "aot/runtime/wick_aot_numbers.h"

namespace wick::aot {

namespace {

using Kind = NumberFunction::Kind;

// Calls with operands in a row.
#define WICK_INTS1(f) [](const int64_t* a, int64_t* to) { return wick_aot::f(a[0], *to); }
#define WICK_INTS2(f) [](const int64_t* a, int64_t* to) { return wick_aot::f(a[0], a[1], *to); }
#define WICK_INTS3(f) \
  [](const int64_t* a, int64_t* to) { return wick_aot::f(a[0], a[1], a[2], *to); }
#define WICK_FLOATS1(f, To) \
  [](const double* a, void* to) { return wick_aot::f(a[0], *static_cast<To*>(to)); }
#define WICK_FLOATS2(f, To) \
  [](const double* a, void* to) { return wick_aot::f(a[0], a[1], *static_cast<To*>(to)); }

#define WICK_OF_FLOAT(op, f) \
  { op, 1, #f, Kind::Floats, nullptr, WICK_FLOATS1(f, double) }
#define WICK_OF_FLOATS(op, f) \
  { op, 2, #f, Kind::Floats, nullptr, WICK_FLOATS2(f, double) }
#define WICK_OF_INTS(op, f) \
  { op, 2, #f, Kind::Ints, WICK_INTS2(f), nullptr }
#define WICK_OF_BOTH(op, f) \
  { op, 2, #f, Kind::Wider, WICK_INTS2(f), WICK_FLOATS2(f, double) }

constexpr NumberFunction kFunctions[] = {
    WICK_OF_BOTH("aten::floordiv", floorDivide),
    WICK_OF_BOTH("aten::remainder", floorRemainder),
    WICK_OF_FLOATS("aten::pow", power),
    WICK_OF_INTS("aten::pow", wholePower),
    WICK_OF_INTS("aten::__round_to_zero_floordiv", truncatedQuotient),
    WICK_OF_INTS("aten::__lshift__", shiftLeft),
    WICK_OF_INTS("aten::__rshift__", shiftRight),
    WICK_OF_INTS("aten::gcd", greatestDivisor),
    {"aten::bitwise_not", 1, "invert", Kind::Ints, WICK_INTS1(invert), nullptr},
    {"aten::__range_length", 3, "rangeLength", Kind::Ints, WICK_INTS3(rangeLength), nullptr},
    {"aten::__derive_index", 3, "rangeElement", Kind::Ints, WICK_INTS3(rangeElement), nullptr},
    WICK_OF_INTS("wick::slice_bound", sliceBound),
    WICK_OF_INTS("wick::from_end", fromEnd),
    WICK_OF_INTS("wick::moved_on", movedOn),
    {"wick::at_least_zero", 1, "atLeastZero", Kind::Ints, WICK_INTS1(atLeastZero), nullptr},
    {"aten::floor", 1, "roundDown", Kind::ToInt, WICK_INTS1(roundDown),
     WICK_FLOATS1(roundDown, int64_t)},
    {"aten::ceil", 1, "roundUp", Kind::ToInt, WICK_INTS1(roundUp), WICK_FLOATS1(roundUp, int64_t)},
    WICK_OF_FLOAT("aten::sqrt", squareRoot),
    WICK_OF_FLOAT("aten::exp", exponential),
    WICK_OF_FLOAT("aten::log", logarithm),
    WICK_OF_FLOAT("aten::log10", logarithm10),
    WICK_OF_FLOAT("aten::log2", logarithm2),
    WICK_OF_FLOAT("aten::log1p", logarithm1p),
    WICK_OF_FLOAT("aten::expm1", exponentialM1),
    WICK_OF_FLOAT("aten::sin", sine),
    WICK_OF_FLOAT("aten::cos", cosine),
    WICK_OF_FLOAT("aten::tan", tangent),
    WICK_OF_FLOAT("aten::asin", arcSine),
    WICK_OF_FLOAT("aten::acos", arcCosine),
    WICK_OF_FLOAT("aten::atan", arcTangent),
    WICK_OF_FLOAT("aten::sinh", hyperbolicSine),
    WICK_OF_FLOAT("aten::cosh", hyperbolicCosine),
    WICK_OF_FLOAT("aten::tanh", hyperbolicTangent),
    WICK_OF_FLOAT("aten::asinh", areaSine),
    WICK_OF_FLOAT("aten::acosh", areaCosine),
    WICK_OF_FLOAT("aten::atanh", areaTangent),
    WICK_OF_FLOAT("aten::erf", errorFunction),
    WICK_OF_FLOAT("aten::erfc", errorComplement),
    WICK_OF_FLOAT("aten::gamma", gammaFunction),
    WICK_OF_FLOAT("aten::fabs", absolute),
    WICK_OF_FLOAT("prim::fabs", absolute),
    WICK_OF_FLOAT("aten::degrees", degrees),
    WICK_OF_FLOAT("aten::radians", radians),
    WICK_OF_FLOAT("aten::round", nearest),
    WICK_OF_FLOATS("aten::atan2", angleOf),
    WICK_OF_FLOATS("aten::copysign", withSign),
    WICK_OF_FLOATS("aten::fmod", remainderOf),
    WICK_OF_FLOATS("aten::mathremainder", nearestRemainder),
    WICK_OF_FLOATS("aten::hypot", hypotenuse),
    WICK_OF_FLOATS("aten::log", logarithmTo),
};

}  // namespace

DType NumberFunction::operandType(bool any_float) const {
  if (kind == Kind::Ints) return DType::Long;
  return kind == Kind::Floats || any_float ? DType::Double : DType::Long;
}
DType NumberFunction::resultType(bool any_float) const {
  return kind == Kind::ToInt ? DType::Long : operandType(any_float);
}

const NumberFunction* numberFunction(std::string_view op, size_t operands, bool gives_int) {
  const auto found = std::ranges::find_if(kFunctions, [&](const NumberFunction& f) {
    return f.op == op && f.operands == operands &&
           (op != "aten::pow" || gives_int == (f.kind == Kind::Ints));
  });
  return found == std::end(kFunctions) ? nullptr : &*found;
}
const NumberFunction* numberFunctionNamed(std::string_view name) {
  const auto found =
      std::ranges::find_if(kFunctions, [&](const NumberFunction& f) { return f.name == name; });
  return found == std::end(kFunctions) ? nullptr : &*found;
}

}  // namespace wick::aot
