// What Python's numbers and its math module have and PyTorch's operators have not.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "core/budget.h"
#include "runtime/ops/arithmetic.h"
#include "runtime/ops/python/format_spec.h"
#include "runtime/ops/typed.h"
#include "runtime/ops/values/text.h"

namespace wick::ops {

namespace {

using I = int64_t;
using F = double;
using C = Complex;

// ---- int ----

uint64_t magnitude(I v) {
  return v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
}

int digitOf(char c) {
  if (isDigit(c)) return c - '0';
  if (isAlpha(c)) return toLower(c) - 'a' + 10;
  return 99;
}

// Python's int(text, base): base 0 reads the prefix that literals have.
I intOfBase(const std::string& text, I base) {
  if (base != 0 && (base < 2 || base > 36)) failValue("int() base must be >= 2 and <= 36, or 0");
  auto fail = [&] {
    failValue(fmt::format("invalid literal for int() with base {}: {}", base, quoteString(text)));
  };
  std::string_view rest = stripSpace(text);
  bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  I radix = base;
  bool prefixed = false;
  if (rest.size() > 1 && rest[0] == '0') {
    char letter = toLower(rest[1]);
    I named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == 0 || base == named)) {
      radix = named;
      prefixed = true;
      rest.remove_prefix(2);
    }
  }
  if (radix == 0) {
    radix = 10;
    // Python refuses 010, which once was octal.
    if (rest.size() > 1 && rest[0] == '0' && rest.find_first_not_of("0_") != rest.npos) fail();
  }
  uint64_t value = 0;
  bool after_digit = prefixed;  // where an underscore may stand
  bool any = false;
  for (char c : rest) {
    if (c == '_') {
      if (!after_digit) fail();
      after_digit = false;
      continue;
    }
    int digit = digitOf(c);
    if (digit >= radix) fail();
    after_digit = any = true;
    if (__builtin_mul_overflow(value, static_cast<uint64_t>(radix), &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(digit), &value)) {
      throwRuntimeError("int() of {} does not fit into 64 bits", quoteString(text));
    }
  }
  if (!any || !after_digit) fail();
  constexpr uint64_t kLargest = uint64_t{1} << 63;
  WICK_CHECK(value < kLargest || (negative && value == kLargest),
             "int() of {} does not fit into 64 bits", quoteString(text));
  return negative ? static_cast<I>(-value) : static_cast<I>(value);
}

// Halves go to the even neighbour; digits left of the point become zeros.
I roundInt(I a, I digits) {
  if (digits >= 0) return a;
  if (digits < -18) return 0;
  I unit = 1;
  for (I i = 0; i < -digits; ++i) unit *= 10;
  I rest = floorMod(a, unit);
  I down = wrapSub(a, rest);
  bool up = rest > unit - rest || (rest == unit - rest && floorMod(floorDiv(a, unit), I{2}) != 0);
  return up ? wrapAdd(down, unit) : down;
}

// As Python does it: by the decimal digits of the number, which are exact.
F roundFloat(F a, I digits) {
  if (!std::isfinite(a) || digits > 323) return a;
  if (digits < -308) return std::copysign(0.0, a);
  if (digits >= 0) {
    std::string text = fmt::format("{:.{}f}", a, digits);
    return std::strtod(text.c_str(), nullptr);
  }
  F unit = std::pow(10.0, static_cast<F>(-digits));
  F quotient = std::nearbyint(a / unit);
  return quotient * unit;
}

I powerModulo(I a, I b, I modulus) {
  if (modulus == 0) failValue("pow() 3rd argument cannot be 0");
  using Wide = __int128;
  auto reduce = [&](Wide v) {
    Wide r = v % modulus;
    return r != 0 && (r < 0) != (modulus < 0) ? r + modulus : r;
  };
  Wide base = reduce(a);
  uint64_t exponent = magnitude(b);
  if (b < 0) {
    // The inverse, by Euclid's algorithm.
    Wide r0 = modulus < 0 ? -static_cast<Wide>(modulus) : static_cast<Wide>(modulus);
    Wide r1 = base < 0 ? base + r0 : base;
    Wide limit = r0;
    Wide t0 = 0;
    Wide t1 = 1;
    while (r1 != 0) {
      Wide q = r0 / r1;
      std::swap(r0 -= q * r1, r1);
      std::swap(t0 -= q * t1, t1);
    }
    if (r0 != 1) failValue("base is not invertible for the given modulus");
    base = reduce(t0 % limit);
  }
  Wide out = reduce(1);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) out = reduce(out * base);
    base = reduce(base * base);
  }
  return static_cast<I>(out);
}

// ---- math ----

I truncated(F a) {
  return exactInt(std::trunc(a));
}

I squareRoot(I n) {
  if (n < 0) failValue("isqrt() argument must be nonnegative");
  I root = static_cast<I>(std::sqrt(static_cast<F>(n)));
  auto square = [](I v) { return static_cast<__int128>(v) * v; };
  while (square(root) > n) --root;
  while (square(root + 1) <= n) ++root;
  return root;
}

I leastMultiple(I a, I b) {
  if (a == 0 || b == 0) return 0;
  uint64_t x = magnitude(a);
  return static_cast<I>(x / std::gcd(x, magnitude(b)) * magnitude(b));
}

void checkCounts(const char* op, I n, I k) {
  if (n < 0) failValue(fmt::format("{}: n must be a non-negative integer", op));
  if (k < 0) failValue(fmt::format("{}: k must be a non-negative integer", op));
}
// The quotient must not wrap on its way, so that a result of more than 64 bits is refused.
I combinations(I n, I k) {
  checkCounts("comb", n, k);
  if (k > n) return 0;
  k = std::min(k, n - k);
  unsigned __int128 out = 1;
  for (I i = 1; i <= k; ++i) {
    unsigned __int128 next = 0;
    WICK_CHECK(!__builtin_mul_overflow(out, static_cast<unsigned __int128>(n - k + i), &next),
               "comb({}, {}) does not fit into 64 bits", n, k);
    out = next / static_cast<unsigned __int128>(i);
  }
  WICK_CHECK(out <= static_cast<unsigned __int128>(std::numeric_limits<I>::max()),
             "comb({}, {}) does not fit into 64 bits", n, k);
  return static_cast<I>(out);
}
I permutations(I n, std::optional<I> chosen) {
  I k = chosen.value_or(n);
  checkCounts("perm", n, k);
  if (k > n) return 0;
  I out = 1;
  for (I i = n; i > n - k; --i) {
    out = wrapMul(out, i);
    if (out == 0) break;
  }
  return out;
}

// Exact: partial sums that do not overlap (Shewchuk), rounded once at the end.
F exactSum(const IValue& list) {
  std::vector<F> partials;
  F special = 0;
  Pace pace;
  for (const IValue& v : list.elements()) {
    pace.step(4);
    F x = v.numberToDouble();
    if (!std::isfinite(x)) {
      special += x;
      continue;
    }
    size_t kept = 0;
    for (F y : partials) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      F high = x + y;
      F low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  if (special != 0 || std::isnan(special)) return special;
  F high = 0;
  size_t n = partials.size();
  if (n == 0) return 0;
  high = partials[--n];
  F low = 0;
  while (n > 0) {
    F x = high;
    F y = partials[--n];
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  // Half a unit in the last place is decided by what follows.
  if (n > 0 && ((low < 0 && partials[n - 1] < 0) || (low > 0 && partials[n - 1] > 0))) {
    F y = low * 2;
    F x = high + y;
    if (y == x - high) high = x;
  }
  return high;
}

F distance(const IValue& p, const IValue& q) {
  const std::vector<IValue>& a = p.elements();
  const std::vector<IValue>& b = q.elements();
  if (a.size() != b.size()) failValue("both points must have the same number of dimensions");
  F out = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    out = std::hypot(out, a[i].numberToDouble() - b[i].numberToDouble());
  }
  return out;
}

I productOfInts(const IValue& list, I start) {
  Pace pace;
  for (const IValue& v : list.elements()) {
    pace.step();
    start = wrapMul(start, v.numberToInt());
  }
  return start;
}
F productOfFloats(const IValue& list, F start) {
  Pace pace;
  for (const IValue& v : list.elements()) {
    pace.step();
    start *= v.numberToDouble();
  }
  return start;
}

bool isClose(F a, F b, F relative, F absolute) {
  if (relative < 0 || absolute < 0) failValue("tolerances must be non-negative");
  if (a == b) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  F difference = std::fabs(a - b);
  return difference <= std::fabs(relative * b) || difference <= std::fabs(relative * a) ||
         difference <= absolute;
}

F unitInLastPlace(F a) {
  if (std::isnan(a)) return a;
  a = std::fabs(a);
  if (std::isinf(a)) return a;
  F next = std::nextafter(a, std::numeric_limits<F>::infinity());
  return std::isinf(next) ? a - std::nextafter(a, 0.0) : next - a;
}

const OperatorRecord kNumbersRecords[] = {
    {"aten::Int.base(str a, int base) -> int", WICK_KERNEL(intOfBase)},
    {"aten::round.digits(float a, int ndigits) -> float", WICK_KERNEL(roundFloat), kSavesNothing},
    {"aten::round.int_digits(int a, int ndigits) -> int", WICK_KERNEL(roundInt), kSavesNothing},
    {"aten::pow.modulus(int a, int b, int mod) -> int", WICK_KERNEL(powerModulo), kCastFull},
    {"aten::bit_length(int self) -> int",
     WICK_LAMBDA([](I a) { return static_cast<I>(std::bit_width(magnitude(a))); })},
    {"aten::bit_count(int self) -> int",
     WICK_LAMBDA([](I a) { return static_cast<I>(std::popcount(magnitude(a))); })},
    {"aten::is_integer(float self) -> bool",
     WICK_LAMBDA([](F a) { return std::isfinite(a) && a == std::trunc(a); })},
    {"aten::conjugate(complex self) -> complex", WICK_LAMBDA([](C a) { return std::conj(a); })},
    {"aten::isnan.int(int a) -> bool", WICK_LAMBDA([](I) { return false; })},
    {"aten::isinf.int(int a) -> bool", WICK_LAMBDA([](I) { return false; })},
    {"aten::isfinite.int(int a) -> bool", WICK_LAMBDA([](I) { return true; })},
    {"prim::math_trunc(float a) -> int", WICK_KERNEL(truncated)},
    {"prim::math_isqrt(int n) -> int", WICK_KERNEL(squareRoot)},
    {"prim::math_lcm(int a, int b) -> int", WICK_KERNEL(leastMultiple)},
    {"prim::math_comb(int n, int k) -> int", WICK_KERNEL(combinations)},
    {"prim::math_perm(int n, int? k=None) -> int", WICK_KERNEL(permutations)},
    {"prim::math_fsum(float[] seq) -> float", WICK_KERNEL(exactSum)},
    {"prim::math_fsum.int(int[] seq) -> float", WICK_KERNEL(exactSum)},
    {"prim::math_dist(float[] p, float[] q) -> float", WICK_KERNEL(distance)},
    {"prim::math_dist.int(int[] p, int[] q) -> float", WICK_KERNEL(distance)},
    {"prim::math_prod.int(int[] iterable, *, int start=1) -> int", WICK_KERNEL(productOfInts)},
    {"prim::math_prod.float(float[] iterable, *, float start=1.) -> float",
     WICK_KERNEL(productOfFloats)},
    {"prim::math_isclose(float a, float b, *, float rel_tol=1e-09, float abs_tol=0.) -> bool",
     WICK_KERNEL(isClose)},
    {"prim::math_nextafter(float a, float b) -> float",
     WICK_LAMBDA([](F a, F b) { return std::nextafter(a, b); })},
    {"prim::math_ulp(float a) -> float", WICK_KERNEL(unitInLastPlace)},
    {"prim::math_exp2(float a) -> float", WICK_LAMBDA([](F a) { return std::exp2(a); })},
    {"prim::math_cbrt(float a) -> float", WICK_LAMBDA([](F a) { return std::cbrt(a); })},
};
const RegisterOperators kNumbersRegistered(kNumbersRecords);

}  // namespace

}  // namespace wick::ops
