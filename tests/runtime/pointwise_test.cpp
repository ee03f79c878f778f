#include "runtime/kernels/pointwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "runtime/ops/call.h"
#include "tests/error_text.h"

namespace wick::pointwise_test {
namespace {

using namespace scalar;
using testing_errors::errorOf;

const Tensor* const kNone = nullptr;

Tensor randomTensor(IntSpan sizes, DType dtype, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-9, 9);
  Tensor t = Tensor::empty(sizes, DType::Double);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = value(random);
  return t.to(dtype);
}

void expectSame(const Tensor& a, const Tensor& b, const char* what) {
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  ASSERT_EQ(DimVector(a.sizes()), DimVector(b.sizes())) << what;
  Tensor x = a.contiguous();
  Tensor y = b.contiguous();
  EXPECT_EQ(std::memcmp(x.rawData(), y.rawData(), x.numel() * x.itemSize()), 0) << what;
}

const ScalarDefinition* const kBinary[] = {&kScalar<Add>,     &kScalar<Mul>,     &kScalar<TrueDiv>,
                                           &kScalar<Maximum>, &kScalar<Atan2>,   &kScalar<Lt>,
                                           &kScalar<Eq>,      &kScalar<FloorDiv>};
const DType kSomeDTypes[] = {DType::Byte, DType::Int,   DType::Long,
                             DType::Half, DType::Float, DType::Double};

// Whatever the strides of the operands, the elements are those of contiguous operands.
TEST(Pointwise, StridedEqualsContiguous) {
  for (const ScalarDefinition* def : kBinary) {
    for (DType dtype : kSomeDTypes) {
      Tensor a = randomTensor({6, 5, 4}, dtype, 1).permute({2, 0, 1});
      Tensor b = randomTensor({4, 12, 5}, dtype, 2).slice(1, 0, 12, 2);
      if (def == &kScalar<FloorDiv>) b = pointwise(kScalar<Abs>, kNone, b);
      Tensor one = pointwise(*def, kNone, a, b);
      Tensor two = pointwise(*def, kNone, a.contiguous(), b.contiguous());
      expectSame(one, two, def->name);
    }
  }
}

// -6.3125 / 1.0546875 is -5.985, which bfloat16 rounds to -6: with a number, PyTorch cuts off first.
TEST(Pointwise, HalfPrecisionQuotientsAreRoundedBeforeTheyAreCutOff) {
  static const OperatorHandle kTensors{"aten::div", "Tensor_mode"};
  static const OperatorHandle kNumber{"aten::div", "Scalar_mode"};
  const Tensor a = Tensor::from({-6.3125, 6.0}).to(DType::BFloat16);
  const Tensor b = Tensor::from({1.0546875, 4.0}).to(DType::BFloat16);
  expectSame(kTensors(a, b, std::string("trunc")), Tensor::from({-6.0, 1.0}).to(DType::BFloat16),
             "tensors");
  expectSame(kNumber(a, 1.0546875, std::string("trunc")),
             Tensor::from({-5.0, 5.0}).to(DType::BFloat16), "number");
}

TEST(Pointwise, BroadcastEqualsExpanded) {
  for (const ScalarDefinition* def : kBinary) {
    for (DType dtype : kSomeDTypes) {
      Tensor a = randomTensor({3, 1, 700}, dtype, 3);
      Tensor b = randomTensor({5, 1}, dtype, 4);
      Tensor one = pointwise(*def, kNone, a, b);
      Tensor two = pointwise(*def, kNone, a.expand({3, 5, 700}).contiguous(),
                             b.expand({3, 5, 700}).contiguous());
      expectSame(one, two, def->name);
    }
  }
}

TEST(Pointwise, InPlaceEqualsFunctional) {
  for (DType dtype : kSomeDTypes) {
    Tensor a = randomTensor({40, 30}, dtype, 5);
    Tensor b = randomTensor({30}, dtype, 6);
    Tensor expected = pointwise(kScalar<Mul>, kNone, a, b);
    Tensor columns = a.transpose(0, 1).contiguous().transpose(0, 1);
    pointwise(kScalar<Mul>, &columns, columns, b);
    expectSame(columns, expected, "mul_");
  }
}

TEST(Pointwise, MixedDTypesEqualCastOperands) {
  Tensor i = randomTensor({1000}, DType::Int, 7);
  Tensor f = randomTensor({1000}, DType::Float, 8);
  expectSame(pointwise(kScalar<Sub>, kNone, i, f),
             pointwise(kScalar<Sub>, kNone, i.to(DType::Float), f), "int - float");
}

TEST(Pointwise, FloatAgreesWithDouble) {
  Tensor wide = randomTensor({5000}, DType::Double, 9);
  Tensor x = wide.to(DType::Float);
  wide = x.to(DType::Double);
  for (const ScalarDefinition* def :
       {&kScalar<Exp>, &kScalar<Sigmoid>, &kScalar<Tanh>, &kScalar<Gelu>, &kScalar<Silu>,
        &kScalar<Erf>, &kScalar<Sin>, &kScalar<Mish>, &kScalar<Digamma>}) {
    Tensor narrow = pointwise(*def, kNone, x);
    Tensor reference = pointwise(*def, kNone, wide);
    for (int64_t i = 0; i < x.numel(); ++i) {
      double r = reference.data<double>()[i];
      ASSERT_NEAR(narrow.data<float>()[i], r, 1e-5 * std::max(1e-1, std::fabs(r)))
          << def->name << " of " << x.data<float>()[i];
    }
  }
}

// The vectorized functions and the C library's, over all magnitudes and the special values.
TEST(Pointwise, FloatFunctionsKeepTheirEdges) {
  struct {
    float (*fast)(float);
    double (*exact)(double);
    const char* name;
    double most = 1;  // units in the last place
  } const kFunctions[] = {
      {math::exp, std::exp, "exp"},
      {math::expm1, std::expm1, "expm1", 1.7},
      {math::log, std::log, "log"},
      {math::log1p, std::log1p, "log1p", 1.5},
      {math::tanh, std::tanh, "tanh"},
      {math::erf, std::erf, "erf"},
      {math::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, "sigmoid"},
      {math::rsqrt, [](double x) { return 1 / std::sqrt(x); }, "rsqrt"}};
  auto unitAt = [](double x) {
    int exponent;
    std::frexp(x, &exponent);
    return std::ldexp(1.0, std::max(exponent - 24, -149));
  };
  for (const auto& f : kFunctions) {
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 99991) {
      float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      float got = f.fast(x);
      auto expected = static_cast<float>(f.exact(x));
      if (std::isnan(expected) || std::isinf(expected) || expected == 0) {
        ASSERT_EQ(std::isnan(got), std::isnan(expected)) << f.name << " of " << x;
        ASSERT_TRUE(std::isnan(got) || got == expected) << f.name << " of " << x;
      } else {
        const double exact = f.exact(x);
        ASSERT_LE(std::fabs(got - exact), f.most * unitAt(exact)) << f.name << " of " << x;
      }
    }
    for (float x : {0.0f, -0.0f, INFINITY, -INFINITY, 1.0f, -1.0f}) {
      auto expected = static_cast<float>(f.exact(x));
      float got = f.fast(x);
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got)
                                       : std::fabs(got - expected) < 1e-6 || got == expected)
          << f.name << " of " << x;
      EXPECT_TRUE(std::isnan(got) || std::signbit(got) == std::signbit(expected))
          << f.name << " of " << x;
    }
  }
}

TEST(Pointwise, FloatPowersAreCloseAndKeepTheirEdges) {
  const float kSome[] = {0.0f,       -0.0f,       1.0f,   -1.0f,       2.0f,       -2.0f,
                         3.0f,       -3.0f,       0.5f,   -0.5f,       1.5f,       INFINITY,
                         -INFINITY,  NAN,         1e-45f, -1e-45f,     1e-38f,     3.4e38f,
                         4194303.0f, -4194302.0f, 1e9f,   16777215.0f, 0.9999999f, -1e-30f};
  const auto expectEqual = [](float x, float y, float expected) {
    const float got = math::pow(x, y);
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected) << x << "^" << y;
    EXPECT_TRUE(std::isnan(got) || std::signbit(got) == std::signbit(expected)) << x << "^" << y;
  };
  for (float x : kSome) {
    for (float y : {0.0f, -0.0f, 1.0f, INFINITY, -INFINITY, NAN}) expectEqual(x, y, std::pow(x, y));
  }
  for (float x : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f}) {
    for (float y : kSome) expectEqual(x, y, std::pow(x, y));
  }
  // What float32 holds is found to the last bit.
  for (int x = -60; x <= 60; ++x) {
    for (int y = 0; y <= 12; ++y) {
      const double exact = std::pow(x * 0.25, y);
      if (static_cast<double>(static_cast<float>(exact)) != exact) continue;
      expectEqual(static_cast<float>(x) * 0.25f, static_cast<float>(y), static_cast<float>(exact));
    }
  }
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 9973) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    for (float reach : {-149.5f, -20.25f, 1.7f, 127.5f}) {
      const float y = reach == 1.7f ? reach : reach / std::log2(std::fabs(x));
      const double exact = std::pow(static_cast<double>(x), static_cast<double>(y));
      const float got = math::pow(x, y);
      if (!(std::fabs(exact) < 3.4e38)) {
        ASSERT_EQ(std::isnan(got), std::isnan(exact)) << x << "^" << y;
        continue;
      }
      int exponent;
      std::frexp(exact, &exponent);
      ASSERT_LE(std::fabs(got - exact), std::ldexp(1.0, std::max(exponent - 24, -149)))
          << x << "^" << y;
    }
  }
}

// The loops that run on vectors compute what their definitions do with one number, at every length
// and in place.
template <class Def, class T>
void expectLanesAgree() {
  using Bits = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  constexpr int64_t kCount = 1 << 16;
  std::vector<T> in;
  for (Bits i = 0; i < kCount; ++i) {
    in.push_back(std::bit_cast<T>(i << (8 * sizeof(T) - 16) | i));
  }
  const ScalarLoop loop = kScalar<Def>.entry(kDTypeOf<T>).loop;
  const auto expectEqual = [&](const std::vector<T>& out, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const T x = in[static_cast<size_t>(begin + i)], found = out[static_cast<size_t>(i)];
      const T one = Def::apply(PlainBuilder<T>(), x);
      if (std::isnan(one) && std::isnan(found)) continue;
      ASSERT_EQ(std::bit_cast<Bits>(one), std::bit_cast<Bits>(found)) << Def::kName << x;
    }
  };
  std::vector<T> out = in;
  const void* same[] = {out.data()};
  loop(out.data(), same, kCount);
  expectEqual(out, 0, kCount);
  constexpr int64_t kBegin = 0x3f00;
  for (int64_t n = 0; n < 20; ++n) {
    std::vector<T> some(static_cast<size_t>(n) + 1, 7);
    const void* inputs[] = {in.data() + kBegin};
    loop(some.data(), inputs, n);
    expectEqual(some, kBegin, n);
    EXPECT_EQ(some.back(), 7) << n;
  }
}
// The same of powers.
template <class T>
void expectPowersAgree() {
  constexpr size_t kCount = 1 << 12;
  std::vector<T> x(kCount), y(kCount), out(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    x[i] = static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(i * 0x9e3779b9u)));
    y[i] = static_cast<T>(i % 64) / 2 - 13;
  }
  const void* inputs[] = {x.data(), y.data()};
  kScalar<Pow>.entry(kDTypeOf<T>).loop(out.data(), inputs, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const T one = Pow::apply(PlainBuilder<T>(), x[i], y[i]);
    ASSERT_TRUE(out[i] == one || (std::isnan(out[i]) && std::isnan(one))) << x[i] << "^" << y[i];
  }
}
template <class T>
void expectAllLanesAgree() {
  expectPowersAgree<T>();
  expectLanesAgree<Exp, T>();
  expectLanesAgree<Expm1, T>();
  expectLanesAgree<Log, T>();
  expectLanesAgree<Log1p, T>();
  expectLanesAgree<Tanh, T>();
  expectLanesAgree<Erf, T>();
  expectLanesAgree<Rsqrt, T>();
  expectLanesAgree<Logit, T>();
  expectLanesAgree<Entr, T>();
  expectLanesAgree<Sigmoid, T>();
  expectLanesAgree<Silu, T>();
  expectLanesAgree<Mish, T>();
  expectLanesAgree<Gelu, T>();
  expectLanesAgree<GeluTanh, T>();
  expectLanesAgree<LogSigmoid, T>();
  expectLanesAgree<Tanhshrink, T>();
  expectLanesAgree<Sin, T>();
  expectLanesAgree<Cos, T>();
}
TEST(Pointwise, LanesAgreeWithNumbers) {
  expectAllLanesAgree<float>();
  expectAllLanesAgree<double>();
}

TEST(Pointwise, SpecialFunctionsFarOut) {
  // Bells too narrow for a fixed step, and series too long to sum.
  EXPECT_NEAR(math::k0e(1e10), 1.2533141372998337e-05, 1e-15);
  EXPECT_NEAR(math::igamma(1e10, 1e10), 0.50000132980760, 1e-9);
  EXPECT_EQ(math::zeta(1.0, std::nan("")), INFINITY);
  Tensor infinite = Tensor::scalar<float>(INFINITY);
  static const OperatorHandle kMvlgamma("aten::mvlgamma", "");
  EXPECT_EQ(kMvlgamma(infinite, 2).item<float>(), INFINITY);
}

TEST(Pointwise, NumbersMustFitTheDType) {
  static const OperatorHandle kThreshold("aten::threshold", "");
  Tensor bytes = Tensor::zeros({2}, DType::Byte);
  EXPECT_NE(errorOf([&] { kThreshold(bytes, Scalar(1), Scalar(300)); }).find("without overflow"),
            std::string::npos);
}

TEST(Pointwise, ComplexQuotients) {
  using C = std::complex<float>;
  auto divide = [](C a, C b) {
    return pointwise(kScalar<TrueDiv>, kNone, Tensor::scalar(a), Tensor::scalar(b)).item<C>();
  };
  EXPECT_EQ(divide({3, 4}, {0, 2}), C(2, -1.5f));
  EXPECT_NEAR(divide({1e30f, 0}, {1e30f, 1e30f}).real(), 0.5f, 1e-6f);
  EXPECT_TRUE(std::isnan(divide({1, 1}, {0, 0}).real()));
}

TEST(Pointwise, PromotionKnowsThreeCategories) {
  auto type = [](const Operand& a, const Operand& b) {
    const Operand list[] = {a, b};
    return resultType(list);
  };
  Tensor ints = Tensor::zeros({2}, DType::Int);
  Tensor halves = Tensor::zeros({2}, DType::Half);
  Tensor zero_dim = Tensor::zeros({}, DType::Double);
  Tensor bools = Tensor::zeros({2}, DType::Bool);
  EXPECT_EQ(type(ints, Scalar(1)), DType::Int);
  EXPECT_EQ(type(ints, Scalar(1.5)), DType::Float);
  EXPECT_EQ(type(halves, zero_dim), DType::Half);
  EXPECT_EQ(type(ints, zero_dim), DType::Double);
  EXPECT_EQ(type(bools, Scalar(3)), DType::Long);
  EXPECT_EQ(type(zero_dim, Scalar(std::complex<double>(0, 1))), DType::ComplexDouble);
  EXPECT_EQ(type(ints, halves), DType::Half);
}

TEST(Pointwise, KeepsTheMemoryOrder) {
  Tensor x = Tensor::empty({2, 3, 4, 5}, DType::Float, {}, MemoryFormat::ChannelsLast);
  x.fill(1);
  Tensor bias = Tensor::full({3, 1, 1}, 2, DType::Float);
  Tensor y = pointwise(kScalar<Add>, kNone, x, bias);
  EXPECT_TRUE(y.isContiguous(MemoryFormat::ChannelsLast));
  Tensor permuted = randomTensor({4, 5, 6}, DType::Float, 10).permute({1, 2, 0});
  Tensor z = pointwise(kScalar<Mul>, kNone, permuted, Scalar(2));
  EXPECT_EQ(DimVector(z.strides()), DimVector(permuted.strides()));
}

TEST(Pointwise, RefusesBadDestinations) {
  Tensor row = Tensor::zeros({3}, DType::Long);
  Tensor matrix = Tensor::zeros({2, 3}, DType::Long);
  EXPECT_EQ(errorOf([&] { pointwise(kScalar<Add>, &row, row, matrix); }),
            "output with shape [3] doesn't match the broadcast shape [2, 3]");
  EXPECT_EQ(errorOf([&] { pointwise(kScalar<TrueDiv>, &row, row, Scalar(2)); }),
            "result type Float can't be cast to the desired output type Long");
  Tensor expanded = row.expand({2, 3});
  EXPECT_NE(errorOf([&] {
              pointwise(kScalar<Add>, &expanded, expanded, matrix);
            }).find("single memory location"),
            std::string::npos);
  Tensor head = matrix.view({6}).slice(0, 0, 5);
  Tensor tail = matrix.view({6}).slice(0, 1, 6);
  EXPECT_NE(errorOf([&] { pointwise(kScalar<Add>, &head, head, tail); }).find("memory location"),
            std::string::npos);
}

TEST(Pointwise, OverlapThatCannotBeToldIsCopied) {
  Tensor t = Tensor::empty({3, 4}, DType::Long);
  std::iota(t.data<int64_t>(), t.data<int64_t>() + 12, 0);
  Tensor left = t.slice(1, 0, 3);
  Tensor right = t.slice(1, 1, 4);
  Tensor expected = pointwise(kScalar<Add>, kNone, left, right);
  pointwise(kScalar<Add>, &right, right, left);
  expectSame(right, expected, "overlapping add_");
}

TEST(Pointwise, IntegersWrapAndDivideDownward) {
  auto one = [](const ScalarDefinition& def, int8_t a, int8_t b) {
    return pointwise(def, kNone, Tensor::scalar(a), Tensor::scalar(b)).item<int8_t>();
  };
  EXPECT_EQ(one(kScalar<Add>, 127, 1), -128);
  EXPECT_EQ(one(kScalar<Mul>, 100, 100), 16);
  EXPECT_EQ(one(kScalar<FloorDiv>, -7, 2), -4);
  EXPECT_EQ(one(kScalar<FloorDiv>, -128, -1), -128);
  EXPECT_EQ(one(kScalar<TruncDiv>, -7, 2), -3);
  EXPECT_EQ(one(kScalar<Remainder>, -7, 3), 2);
  EXPECT_EQ(one(kScalar<Fmod>, -7, 3), -1);
  EXPECT_EQ(one(kScalar<Pow>, 2, 7), -128);
  EXPECT_EQ(one(kScalar<Pow>, -1, -3), -1);
}

TEST(Pointwise, NotANumber) {
  float nan = std::nanf("");
  auto two = [](const ScalarDefinition& def, float a, float b) {
    return pointwise(def, kNone, Tensor::scalar(a), Tensor::scalar(b)).item<float>();
  };
  EXPECT_TRUE(std::isnan(two(kScalar<Maximum>, 1, nan)));
  EXPECT_TRUE(std::isnan(two(kScalar<Minimum>, nan, 1)));
  EXPECT_EQ(two(kScalar<Fmax>, 1, nan), 1);
  EXPECT_EQ(two(kScalar<Fmin>, nan, 1), 1);
  EXPECT_TRUE(std::isnan(two(kScalar<ClampMin>, nan, 1)));
  EXPECT_TRUE(std::isnan(pointwise(kScalar<Relu>, kNone, Tensor::scalar(nan)).item<float>()));
  EXPECT_TRUE(std::signbit(two(kScalar<FloorDiv>, -0.0f, 3)));
  EXPECT_EQ(two(kScalar<Remainder>, -1, 3), 2);
}

TEST(Pointwise, LargeTensorsUseEveryPath) {
  Tensor a = randomTensor({300, 401}, DType::Float, 11);
  Tensor b = randomTensor({401, 300}, DType::Half, 12).transpose(0, 1);
  Tensor sum = pointwise(kScalar<Add>, kNone, a, b);
  for (int64_t i : {int64_t{0}, int64_t{299}}) {
    for (int64_t j : {int64_t{0}, int64_t{17}, int64_t{400}}) {
      EXPECT_EQ(
          sum.select(0, i).select(0, j).item<float>(),
          a.select(0, i).select(0, j).item<float>() + b.select(0, i).select(0, j).item<float>());
    }
  }
}

TEST(Pointwise, EmptyTensors) {
  Tensor empty = Tensor::empty({0, 3}, DType::Float);
  EXPECT_EQ(DimVector(pointwise(kScalar<Add>, kNone, empty, Scalar(1)).sizes()), (DimVector{0, 3}));
}

TEST(PointwiseOps, ErrorsAreWorded) {
  static const OperatorHandle kFloorDivide("aten::floor_divide", "");
  static const OperatorHandle kSub("aten::sub", "Tensor");
  static const OperatorHandle kBitAnd("aten::bitwise_and", "Tensor");
  Tensor ints = Tensor::zeros({2}, DType::Long);
  Tensor bools = Tensor::zeros({2}, DType::Bool);
  Tensor floats = Tensor::zeros({2}, DType::Float);
  EXPECT_EQ(errorOf([&] { kFloorDivide(ints, ints); }), "ZeroDivisionError");
  EXPECT_EQ(errorOf([&] { kFloorDivide(floats, floats); }), "no error");
  EXPECT_NE(errorOf([&] { kSub(bools, bools); }).find("two bool tensors"), std::string::npos);
  EXPECT_EQ(errorOf([&] { kBitAnd(floats, floats); }),
            "\"bitwise_and_cpu\" not implemented for 'Float'");
}

TEST(PointwiseOps, OutFormsResizeAndAliasesResolve) {
  const Operator* op =
      OperatorRegistry::instance().find(Symbol::fromQualString("aten::multiply"), "out");
  ASSERT_NE(op, nullptr);
  Tensor out = Tensor::empty({0}, DType::Double);
  IValue args[] = {Tensor::full({2, 2}, 3, DType::Float), Tensor::full({2}, 2, DType::Float), out};
  IValue result;
  op->call(args, 3, &result, 1);
  EXPECT_EQ(DimVector(out.sizes()), (DimVector{2, 2}));
  EXPECT_EQ(out.data<double>()[3], 6.0);
}

// Every product and sum of the formulas is rounded by itself, in vectors and in what is left of
// them: what is divided by itself has no imaginary part, and no element depends on its place.
TEST(PointwiseOps, ComplexFormulasAreNotContracted) {
  static const OperatorHandle kMul("aten::mul", "Tensor"), kDiv("aten::div", "Tensor");
  const auto check = [&]<class R>(DType dtype) {
    using C = std::complex<R>;
    const auto product = [](R a, R b) {
      volatile R p = a * b;
      return R(p);
    };
    const Tensor parts = randomTensor({2, 64}, DType::Double, 7);
    const Tensor all = Tensor::empty({64}, dtype);
    for (int64_t i = 0; i < 64; ++i) {
      all.data<C>()[i] =
          C(static_cast<R>(parts.data<double>()[i]), static_cast<R>(parts.data<double>()[64 + i]));
    }
    for (int64_t n = 1; n <= 32; ++n) {
      const Tensor x = all.slice(0, 0, n, 1), y = all.slice(0, 64 - n, 64, 1);
      const Tensor products = kMul(x, y), quotients = kDiv(x, x);
      for (int64_t i = 0; i < n; ++i) {
        const C a = x.data<C>()[i], b = y.data<C>()[i];
        EXPECT_EQ(products.data<C>()[i],
                  C(product(a.real(), b.real()) - product(a.imag(), b.imag()),
                    product(a.real(), b.imag()) + product(a.imag(), b.real())))
            << i << " of " << n;
        EXPECT_EQ(quotients.data<C>()[i].imag(), 0) << i << " of " << n;
      }
    }
  };
  check.operator()<float>(DType::ComplexFloat);
  check.operator()<double>(DType::ComplexDouble);
}

TEST(PointwiseOps, NoPowerOfZeroLosesItsShape) {
  static const OperatorHandle kPow("aten::pow", "Tensor_Scalar");
  Tensor t = Tensor::zeros({2, 3}, DType::Long);
  Tensor ones = kPow(t, Scalar(0));
  EXPECT_EQ(ones.dtype(), DType::Long);
  EXPECT_EQ(ones.data<int64_t>()[5], 1);
  EXPECT_EQ(errorOf([&] { kPow(t, Scalar(-1)); }),
            "Integers to negative integer powers are not allowed.");
}

}  // namespace
}  // namespace wick::pointwise_test
