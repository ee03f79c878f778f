// The arithmetic of complex numbers as that of parts: recorded definitions give what the CPU's kernels
// give.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/complex_recorders.h"
#include "codegen/scalar/evaluate.h"
#include "codegen/scalar/mathematics.h"

namespace wick::complex_test {
namespace {

using Complex = std::complex<double>;

// A double's bits as the evaluator takes and gives them.
uint64_t bitsOf(double v) {
  return std::bit_cast<uint64_t>(v);
}

// The recorded arithmetic on numbers.
Complex recorded(const ScalarDefinition& definition, std::vector<Complex> inputs) {
  const ComplexRecorder* const recorder = complexRecorderOf(definition);
  EXPECT_NE(recorder, nullptr) << definition.name;
  if (!recorder) return {};
  Expression expression;
  std::vector<ComplexParts> parts;
  std::vector<uint64_t> values;
  for (const Complex& z : inputs) {
    const auto i = static_cast<uint32_t>(values.size());
    parts.push_back({expression.input(i, DType::Double), expression.input(i + 1, DType::Double)});
    values.push_back(bitsOf(z.real()));
    values.push_back(bitsOf(z.imag()));
  }
  const ComplexParts result =
      recorder->record(ExprBuilder(expression, DType::Double), parts.data());
  const std::vector<uint64_t> all = evaluate(expression, values);
  const auto valueOf = [&](ScalarExpr e) {
    return e.valid() ? std::bit_cast<double>(all[static_cast<size_t>(e.id)]) : 0;
  };
  return {valueOf(result.re), valueOf(result.im)};
}

template <class Def>
Complex ofCpu(std::vector<Complex> inputs) {
  const ScalarDefinition& definition = kScalar<Def>;
  const auto& entry = definition.entry(DType::ComplexDouble);
  std::array<const void*, kMaxScalarInputs> pointers{};
  for (size_t i = 0; i < inputs.size(); ++i) pointers[i] = &inputs[i];
  Complex out;
  entry.loop(&out, pointers.data(), 1);
  if (!isComplex(entry.result)) return {*reinterpret_cast<const double*>(&out), 0};
  return out;
}

bool agree(Complex a, Complex b) {
  const auto one = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    return std::abs(x - y) <= 1e-11 * std::max(1.0, std::abs(b));
  };
  return one(a.real(), b.real()) && one(a.imag(), b.imag());
}

std::vector<Complex> points() {
  std::vector<Complex> all;
  for (const double x : {-30.0, -2.5, -1.0, -0.3, 0.0, 1e-9, 0.7, 1.0, 3.25, 25.0}) {
    for (const double y : {-12.5, -1.0, -0.4, 0.0, 1e-8, 0.6, 1.0, 7.5}) all.emplace_back(x, y);
  }
  return all;
}

template <class Def>
void compareUnary(const char* name) {
  for (const Complex& z : points()) {
    const Complex got = recorded(kScalar<Def>, {z}), want = ofCpu<Def>({z});
    EXPECT_TRUE(agree(got, want)) << name << " of " << z << ": " << got << " for " << want;
  }
}
template <class Def>
void compareBinary(const char* name, bool exact) {
  for (const Complex& a : points()) {
    for (const Complex& b :
         {Complex(0.5, -1.5), Complex(-2, 0), Complex(0, 3), Complex(1e-3, 2e3)}) {
      const Complex got = recorded(kScalar<Def>, {a, b}), want = ofCpu<Def>({a, b});
      const bool same = exact ? got == want : agree(got, want);
      EXPECT_TRUE(same) << name << " of " << a << " and " << b << ": " << got << " for " << want;
    }
  }
}

TEST(ComplexParts, FunctionsAreThoseOfTheCpu) {
  using namespace scalar;
  compareUnary<Exp>("exp");
  compareUnary<Log>("log");
  compareUnary<Log2>("log2");
  compareUnary<Log10>("log10");
  compareUnary<Sqrt>("sqrt");
  compareUnary<Sin>("sin");
  compareUnary<Cos>("cos");
  compareUnary<Tan>("tan");
  compareUnary<Sinh>("sinh");
  compareUnary<Cosh>("cosh");
  compareUnary<Tanh>("tanh");
  compareUnary<Asinh>("asinh");
  compareUnary<Atan>("atan");
  compareUnary<Sigmoid>("sigmoid");
  compareUnary<Neg>("neg");
  compareUnary<Conj>("conj");
  compareUnary<Abs>("abs");
  compareUnary<Angle>("angle");
  compareUnary<SgnComplex>("sgn");
  compareUnary<Square>("square");
}

// Away from their cuts, on which the sign of zero decides.
TEST(ComplexParts, InverseFunctions) {
  using namespace scalar;
  for (const Complex& z : points()) {
    if (std::abs(z.imag()) < 1e-3) continue;
    EXPECT_TRUE(agree(recorded(kScalar<Asin>, {z}), std::asin(z))) << "asin of " << z;
    EXPECT_TRUE(agree(recorded(kScalar<Acos>, {z}), std::acos(z))) << "acos of " << z;
    EXPECT_TRUE(agree(recorded(kScalar<Acosh>, {z}), std::acosh(z))) << "acosh of " << z;
    EXPECT_TRUE(agree(recorded(kScalar<Atanh>, {z}), std::atanh(z))) << "atanh of " << z;
  }
}

TEST(ComplexParts, ArithmeticHasTheBitsOfTheCpu) {
  using namespace scalar;
  compareBinary<Add>("add", true);
  compareBinary<Sub>("sub", true);
  compareBinary<Mul>("mul", true);
  compareBinary<TrueDiv>("div", true);
}

TEST(ComplexParts, Powers) {
  for (const Complex& a : {Complex(1.5, -0.5), Complex(-2, 1), Complex(0.1, 0.2)}) {
    for (const Complex& b : {Complex(2, 0), Complex(-1.5, 0.5), Complex(0, 0)}) {
      EXPECT_TRUE(agree(recorded(kScalar<scalar::Pow>, {a, b}), std::pow(a, b))) << a << b;
    }
  }
  EXPECT_EQ(recorded(kScalar<scalar::Pow>, {Complex(0, 0), Complex(0, 0)}), Complex(1, 0));
  EXPECT_EQ(recorded(kScalar<scalar::Pow>, {Complex(0, 0), Complex(2, 0)}), Complex(0, 0));
}

}  // namespace
}  // namespace wick::complex_test
