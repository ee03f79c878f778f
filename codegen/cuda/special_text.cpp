#include "codegen/cuda/special_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace wick::codegen {

namespace {

// The parts of the standard library that the sources use, where the compiler has none, and what their
// headers declare. The text is compiled with functions for the device.
constexpr const char* kStandard = R"(
#ifdef __CUDACC_RTC__
typedef long long int64_t;
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
__device__ inline double lgamma_r(double x, int*) { return lgamma(x); }
namespace std {
using ::exp; using ::log; using ::log1p; using ::sqrt; using ::pow; using ::sin; using ::cos;
using ::tan; using ::acos; using ::sinh; using ::cosh; using ::erf; using ::erfc; using ::fabs;
using ::copysign; using ::ceil; using ::floor; using ::trunc; using ::fmod; using ::modf; using ::isnan;
using ::isinf; using ::isfinite; using ::nearbyint; using ::round;
__device__ inline float abs(float x) { return fabsf(x); }
__device__ inline double abs(double x) { return fabs(x); }
template <class T> __device__ const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __device__ const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr bool is_arithmetic_v = true;
template <class T> struct numeric_limits;
template <> struct numeric_limits<double> {
  __device__ static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }
  __device__ static constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000ull); }
};
template <> struct numeric_limits<float> {
  __device__ static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
  __device__ static constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000u); }
};
namespace numbers {
constexpr double pi = 3.141592653589793238462643;
constexpr double egamma = 0.577215664901532860606512;
constexpr double sqrt2 = 1.414213562373095048801689;
}
template <class T, size_t N> struct array {
  T items[N];
  __device__ constexpr const T& operator[](size_t i) const { return items[i]; }
  __device__ constexpr size_t size() const { return N; }
};
struct nullopt_t {};
constexpr nullopt_t nullopt{};
template <class T> struct optional {
  bool has = false;
  T item{};
  __device__ optional(nullopt_t) {}
  __device__ optional(T v) : has(true), item(v) {}
  __device__ bool operator!() const { return !has; }
  __device__ const T& operator*() const { return item; }
};
}
#endif
)";
constexpr const char* kDetail = R"(
namespace wick {
struct Budget {
  __device__ bool exhausted() const { return false; }
};
__device__ inline const Budget* currentBudget() { return nullptr; }
}
namespace wick::math::detail {
double lgamma(double x);
double erfcx(double x);
double ndtri(double p);
double logNdtr(double x);
double digamma(double x);
double zeta(double s, double q);
}
)";

constexpr const char* kFunctions =
#include "codegen/cuda/special_functions.inc"
    ;
constexpr const char* kPolynomials =
#include "codegen/cuda/orthogonal_polynomials.inc"
    ;

// As math::polygamma() of codegen/scalar/special_functions.h, which is a template there.
constexpr const char* kPolygamma = R"(
template <class T> __device__ T wickPolygamma(T n, T x) {
  const double wide = (double)x;
  if (n != (T)1 || !(x < (T)0.5)) return (T)wick::math::detail::polygamma((double)n, wide);
  const T pi = (T)3.141592653589793238;
  const T sine = sin(pi * x);
  return pi * pi / (sine * sine) - (T)wick::math::detail::polygamma(1, 1 - wide);
}
)";

// Those of float64 that the others are rounded from.
bool isDetail(ScalarFunction f) {
  using F = ScalarFunction;
  constexpr F kAll[] = {F::digamma, F::k0e,  F::k1e,    F::airyAi, F::ndtri,
                        F::logNdtr, F::zeta, F::igamma, F::igammac};
  return std::ranges::find(kAll, f) != std::end(kAll);
}

bool isPolynomial(ScalarFunction f) {
  using F = ScalarFunction;
  constexpr F kAll[] = {F::chebyshevT, F::chebyshevU, F::chebyshevV, F::chebyshevW,
                        F::hermiteH,   F::hermiteHe,  F::laguerreL,  F::legendreP};
  return std::ranges::find(kAll, f) != std::end(kAll);
}

}  // namespace

std::string specialCall(ScalarFunction f, const std::string& type, const std::string& arguments) {
  using F = ScalarFunction;
  if (isDetail(f)) {
    return fmt::format("(({})wick::math::detail::{}({}))", type, toString(f), arguments);
  }
  if (isPolynomial(f)) {
    return fmt::format("(wick::math::{}<{}>({}))", toString(f), type, arguments);
  }
  if (f == F::k0 || f == F::k1) {
    return fmt::format("(({0})(wick::math::detail::{1}e((double){2}) * exp(-(double){2})))", type,
                       f == F::k0 ? "k0" : "k1", arguments);
  }
  if (f == F::polygamma) return fmt::format("wickPolygamma<{}>({})", type, arguments);
  return {};
}

std::string specialPreamble(const Expression& expression) {
  using F = ScalarFunction;
  bool functions = false, polynomials = false, polygamma = false;
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op != ScalarOp::Call) continue;
    const F f = node.function;
    polygamma = polygamma || f == F::polygamma;
    functions = functions || isDetail(f) || f == F::k0 || f == F::k1 || f == F::polygamma;
    polynomials = polynomials || isPolynomial(f);
  }
  if (!functions && !polynomials) return {};
  std::string text = std::string(kStandard) + kDetail;
  if (functions) text += kFunctions;
  if (polynomials) text += kPolynomials;
  if (polygamma) text += kPolygamma;
  return text;
}

std::string standardText() {
  return kStandard;
}

}  // namespace wick::codegen
