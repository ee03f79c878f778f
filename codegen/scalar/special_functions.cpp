#include "codegen/scalar/special_functions.h"

#include <array>
#include <limits>
#include <numbers>

namespace wick::math::detail {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEuler = std::numbers::egamma;
constexpr double kPi = std::numbers::pi;

// I_order(x) e^-x for x >= 0 and order 0 or 1.
double scaledI(int order, double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  if (x <= 20) {
    // The power series: all terms are positive, so nothing cancels.
    double q = x * x / 4;
    double term = order == 0 ? 1 : x / 2;
    double sum = term;
    for (int k = 1; k < 200 && term > sum * 1e-17; ++k) {
      term *= q / (static_cast<double>(k) * (k + order));
      sum += term;
    }
    return sum * std::exp(-x);
  }
  // Hankel's asymptotic series, summed up to its smallest term.
  double mu = 4.0 * order * order;
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 60; ++k) {
    double odd = 2.0 * k - 1;
    double next = term * -(mu - odd * odd) / (k * 8 * x);
    if (std::fabs(next) >= std::fabs(term) || std::fabs(next) < 1e-17) break;
    term = next;
    sum += term;
  }
  return sum / std::sqrt(2 * kPi * x);
}

// K_order(x) e^x for order 0 or 1.
double scaledK(int order, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInf;
  if (std::isinf(x)) return 0;
  if (x <= 1) {
    double q = x * x / 4;
    double lead = std::log(x / 2) + kEuler;
    if (order == 0) {
      double term = 1;
      double harmonic = 0;
      double sum = -lead;
      for (int k = 1; k < 40; ++k) {
        term *= q / (static_cast<double>(k) * k);
        harmonic += 1.0 / k;
        sum += term * (harmonic - lead);
      }
      return sum * std::exp(x);
    }
    // 1/x + ln(x/2) I1(x) - x/4 sum (psi(k+1) + psi(k+2)) q^k / (k! (k+1)!)
    double term = 1;
    double harmonic = 0;
    double sum = 0;
    for (int k = 0; k < 40; ++k) {
      if (k > 0) {
        term *= q / (static_cast<double>(k) * (k + 1));
        harmonic += 1.0 / k;
      }
      double psi_sum = -2 * kEuler + 2 * harmonic + 1.0 / (k + 1);
      sum += term * (std::log(x / 2) - psi_sum / 2);
    }
    return (1 / x + x / 2 * sum) * std::exp(x);
  }
  // The trapezoidal rule for the integral of e^(-x (cosh t - 1)) cosh(order t), which converges
  // geometrically because the integrand dies doubly exponentially. For large x it is a bell of
  // width 1 / sqrt(x), which the step must resolve.
  double step = std::min(1.0 / 16, 0.4 / std::sqrt(x));
  double sum = 0.5;
  for (int i = 1; i < 200; ++i) {
    double t = i * step;
    double s = std::sinh(t / 2);
    double weight = std::exp(-2 * x * s * s);
    if (weight < 1e-18) break;
    sum += order == 0 ? weight : weight * std::cosh(t);
  }
  return sum * step;
}

// Bernoulli numbers B_2k divided by (2k)!.
constexpr std::array<double, 12> kBernoulliOverFactorial = {
    1.0 / 12,
    -1.0 / 720,
    1.0 / 30240,
    -1.0 / 1209600,
    1.0 / 47900160,
    -691.0 / 1307674368000,
    1.0 / 74724249600,
    -3617.0 / 10670622842880000,
    43867.0 / 5109094217170944000,
    -174611.0 / 802857662698291200000.0,
    77683.0 / 14101100039391805440000.0,
    -236364091.0 / 1693824136731743669452800000.0,
};

// The lower incomplete gamma function, regularized, by its power series (x < a + 1).
double igammaSeries(double a, double x) {
  double term = 1 / a;
  double sum = term;
  for (int n = 1; n < 20000; ++n) {
    term *= x / (a + n);
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return sum * std::exp(a * std::log(x) - x - lgamma(a));
}

// The upper one by Lentz's continued fraction (x >= a + 1).
double igammacFraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double h = d;
  for (int n = 1; n < 20000; ++n) {
    double an = -n * (n - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    double delta = d * c;
    h *= delta;
    if (std::fabs(delta - 1) < 1e-16) break;
  }
  return h * std::exp(a * std::log(x) - x - lgamma(a));
}

// Temme's uniform expansion of the upper function for large a, with its first correction; the next
// term is smaller by a factor of a.
constexpr double kUniformFrom = 1e6;
double igammacUniform(double a, double x) {
  double lambda = x / a;
  double mu = lambda - 1;
  // eta^2 / 2 = mu - log(1 + mu), by its series where that would cancel.
  double half_square = std::fabs(mu) < 1e-3
                           ? mu * mu * (0.5 - mu * (1.0 / 3 - mu * (0.25 - mu / 5)))
                           : mu - std::log1p(mu);
  double eta = std::copysign(std::sqrt(2 * half_square), mu);
  double correction = std::fabs(eta) < 1e-3 ? -1.0 / 3 + eta / 12 : 1 / mu - 1 / eta;
  double value = 0.5 * std::erfc(eta * std::sqrt(a / 2)) +
                 std::exp(-a * half_square) / std::sqrt(2 * kPi * a) * correction;
  return std::min(1.0, std::max(0.0, value));
}

}  // namespace

double lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x < 2) return std::exp(x * x) * std::erfc(x);
  if (x > 1e8) return 1 / (x * std::sqrt(kPi));
  // Laplace's continued fraction, evaluated from its tail.
  double tail = 0;
  for (int k = 120; k >= 1; --k) tail = k / 2.0 / (x + tail);
  return 1 / (std::sqrt(kPi) * (x + tail));
}

double ndtri(double p) {
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  if (!(p > 0 && p < 1)) return kNan;
  double q = std::min(p, 1 - p);
  // A start from the tail's asymptotics or the linear middle, then Halley's method on log ndtr in
  // the tail and on ndtr itself near the middle.
  double x;
  if (q > 0.02) {
    x = (q - 0.5) * std::sqrt(2 * kPi);
    for (int i = 0; i < 60; ++i) {
      double error = 0.5 * std::erfc(-x / std::numbers::sqrt2) - q;
      double density = std::exp(-x * x / 2) / std::sqrt(2 * kPi);
      double step = error / density;
      step /= 1 + step * x / 2;
      x -= step;
      if (std::fabs(step) <= 1e-16 * std::fabs(x) + 1e-300) break;
    }
  } else {
    double target = std::log(q);
    double t = std::sqrt(-2 * target);
    x = -(t - std::log(t * std::sqrt(2 * kPi)) / t);
    for (int i = 0; i < 60; ++i) {
      // d/dx log ndtr(x) = density / ndtr = sqrt(2/pi) / erfcx(-x / sqrt 2).
      double slope = std::sqrt(2 / kPi) / erfcx(-x / std::numbers::sqrt2);
      double step = (logNdtr(x) - target) / slope;
      x -= step;
      if (std::fabs(step) <= 1e-16 * std::fabs(x)) break;
    }
  }
  return p > 0.5 ? -x : x;
}

double logNdtr(double x) {
  double t = x / std::numbers::sqrt2;
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

double erfinv(double y) {
  if (std::fabs(y) == 1) return std::copysign(kInf, y);
  if (!(std::fabs(y) < 1)) return kNan;
  if (std::fabs(y) < 1e-8) return y * std::sqrt(kPi) / 2;
  double a = std::fabs(y);
  // Winitzki's closed approximation, then Halley's method on erf or, near 1, on erfc.
  double l = std::log1p(-a * a);
  double u = 2 / (kPi * 0.147) + l / 2;
  double x = std::sqrt(std::sqrt(u * u - l / 0.147) - u);
  for (int i = 0; i < 20; ++i) {
    double error = a < 0.5 ? std::erf(x) - a : (1 - a) - std::erfc(x);
    double step = error / (2 / std::sqrt(kPi) * std::exp(-x * x));
    step /= 1 + x * step;
    x -= step;
    if (std::fabs(step) <= 1e-16 * x) break;
  }
  return std::copysign(x, y);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (std::isnan(x) || x == -kInf) return kNan;
  double result = 0;
  if (x < 0) {
    if (x == std::trunc(x)) return kNan;
    // Reflection; the fraction first, for tan(pi x) loses it when x is large.
    double whole;
    double fraction = std::modf(x, &whole);
    result = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  if (x > 1e17) return result + std::log(x);
  double z = 1 / (x * x);
  double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNan;
    if (q < -1e6) return kNan;
  }
  if (std::isnan(s) || std::isnan(q)) return kNan;
  if (std::isinf(s)) return q > 1 ? 0 : q == 1 ? 1 : kInf;
  // Euler-Maclaurin from the first point past 9.
  double sum = 0;
  for (; q < 9; q += 1) sum += std::pow(q, -s);
  double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s;
  double scale = power / q;
  for (size_t k = 0; k < kBernoulliOverFactorial.size(); ++k) {
    double term = kBernoulliOverFactorial[k] * factor * scale;
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-17) break;
    double next = s + 2.0 * static_cast<double>(k) + 1;
    factor *= next * (next + 1);
    scale /= q * q;
  }
  return sum;
}

double polygamma(double n, double x) {
  // PyTorch's trigamma function has a limit, its other polygamma functions have none.
  if (n == 1 && x == std::numeric_limits<double>::infinity()) return 0;
  if (n == 0) return digamma(x);
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(lgamma(n + 1)) * zeta(n + 1, x);
}

double i0e(double x) {
  return scaledI(0, std::fabs(x));
}
double i1e(double x) {
  return std::copysign(scaledI(1, std::fabs(x)), x);
}
double k0e(double x) {
  return scaledK(0, x);
}
double k1e(double x) {
  return scaledK(1, x);
}

double airyAi(double x) {
  if (std::isnan(x) || std::isinf(x)) return kNan;
  if (x > 106) return 0;
  if (x < -9) {
    // Asymptotic series in 1/zeta of modulus and phase.
    double z = 2.0 / 3 * std::pow(-x, 1.5);
    double term = 1;
    double even = 1;
    double odd = 0;
    for (int k = 1; k < 30; ++k) {
      double next =
          term * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1) * z);
      if (next >= term || next < 1e-17) break;
      term = next;
      double signed_term = (k / 2) % 2 == 0 ? term : -term;
      (k % 2 == 0 ? even : odd) += signed_term;
    }
    return (std::sin(z + kPi / 4) * even - std::cos(z + kPi / 4) * odd) /
           (std::sqrt(kPi) * std::pow(-x, 0.25));
  }
  if (x > 1.5) {
    // Ai(x) = sqrt(x / 3) / pi K_1/3(2/3 x^1.5), the integral by the trapezoidal rule.
    double z = 2.0 / 3 * std::pow(x, 1.5);
    double step = std::min(1.0 / 16, 0.4 / std::sqrt(z));
    double sum = 0.5;
    for (int i = 1; i < 200; ++i) {
      double t = i * step;
      double s = std::sinh(t / 2);
      double weight = std::exp(-2 * z * s * s);
      if (weight < 1e-18) break;
      sum += weight * std::cosh(t / 3);
    }
    return std::sqrt(x / 3) / kPi * sum * step * std::exp(-z);
  }
  // Maclaurin series; extended precision absorbs the cancellation for negative x.
  long double cube = static_cast<long double>(x) * x * x;
  long double f = 1, g = x, tf = 1, tg = x;
  for (int k = 1; k < 120; ++k) {
    tf *= cube / ((3.0L * k - 1) * (3.0L * k));
    tg *= cube / ((3.0L * k) * (3.0L * k + 1));
    f += tf;
    g += tg;
  }
  return static_cast<double>(0.355028053887817239260063186004183L * f -
                             0.258819403792806798405183560189204L * g);
}

double igamma(double a, double x) {
  if (a < 0 || x < 0) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  if (std::isnan(a) || std::isnan(x)) return kNan;
  if (a > kUniformFrom) return 1 - igammacUniform(a, x);
  return x < a + 1 ? igammaSeries(a, x) : 1 - igammacFraction(a, x);
}

double igammac(double a, double x) {
  if (a < 0 || x < 0) return kNan;
  if (a == 0) return x > 0 ? 0 : kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  if (std::isnan(a) || std::isnan(x)) return kNan;
  if (a > kUniformFrom) return igammacUniform(a, x);
  return x < a + 1 ? 1 - igammaSeries(a, x) : igammacFraction(a, x);
}

}  // namespace wick::math::detail
