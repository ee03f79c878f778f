// Loops that compute several elements at a time, beside the same one by one: functions of float32,
// reductions of rows, random numbers.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "codegen/scalar/special_functions.h"
#include "core/mersenne_twister.h"
#include "tests/runtime/op_testing.h"

namespace wick::vectors_test {
namespace {

using testing::call;
using testing::values;

constexpr float kInf = INFINITY;
const float kSpecial[] = {0.0f, -0.0f,      1.0f,     -1.0f,    kInf,          -kInf,
                          NAN,  1e-45f,     -1e-45f,  1e-38f,   3.4028235e38f, -3e38f,
                          2.5f, 8388608.0f, 65536.0f, 70000.0f, 1e10f,         -1e20f};

// All bit patterns alike, with the special ones in front.
std::vector<float> floatsOf(int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<float> v(std::begin(kSpecial), std::end(kSpecial));
  while (static_cast<int64_t>(v.size()) < n) {
    v.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
  }
  return v;
}
Tensor tensorOf(const std::vector<float>& v) {
  return Tensor::fromData(v.data(), DimVector{static_cast<int64_t>(v.size())});
}
bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
// In units of the last place of `want`.
double distance(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  const float near = static_cast<float>(want);
  if (near == 0 || std::isinf(near)) return same(got, near) ? 0 : 1e9;
  const float unit = std::nextafter(std::fabs(near), kInf) - std::fabs(near);
  return std::fabs(got - want) / unit;
}

TEST(Vectors, SineAndCosine) {
  std::vector<float> v = floatsOf(5003, 1);
  std::mt19937 rng(2);
  for (int i = 0; i < 200000; ++i) {
    v.push_back(std::uniform_real_distribution<float>(-70000, 70000)(rng));
    v.push_back(std::uniform_real_distribution<float>(-7, 7)(rng));
    v.push_back(static_cast<float>(i % 40000 * (M_PI / 2)));  // where the result is almost zero
  }
  const Tensor x = tensorOf(v), sine = call("aten::sin", "", x), cosine = call("aten::cos", "", x);
  for (size_t i = 0; i < v.size(); ++i) {
    const float s = sine.data<float>()[i], c = cosine.data<float>()[i];
    ASSERT_TRUE(same(s, math::sin(v[i]))) << v[i];
    ASSERT_TRUE(same(c, math::cos(v[i]))) << v[i];
    ASSERT_LT(distance(s, std::sin(static_cast<double>(v[i]))), 1) << v[i];
    ASSERT_LT(distance(c, std::cos(static_cast<double>(v[i]))), 1) << v[i];
  }
}

// Beside the C library's functions with eleven more bits.
TEST(Vectors, DoubleFunctionsAreWithinOneUnit) {
  using Wide = long double;
  const struct {
    const char* name;
    double (*fast)(double);
    Wide (*exact)(Wide);
  } kFunctions[] = {{"exp", math::exp, std::exp},
                    {"expm1", math::expm1, std::expm1},
                    {"log", math::log, std::log},
                    {"log1p", math::log1p, std::log1p},
                    {"tanh", math::tanh, std::tanh},
                    {"sigmoid", math::sigmoid, [](Wide x) { return 1 / (1 + std::exp(-x)); }},
                    {"sin", math::sin, std::sin},
                    {"cos", math::cos, std::cos}};
  const double limits[] = {0.0,
                           5e-324,
                           1e-310,
                           2.2250738585072014e-308,
                           0.5,
                           1.0,
                           19.06,
                           36.7368005696771,
                           37.43,
                           708.396,
                           709.75,
                           709.782712893384,
                           709.7828,
                           745.1332191019411,
                           745.13322,
                           746.5,
                           0x1p32,
                           4294967297.0,
                           1e22,
                           1.7976931348623157e308,
                           static_cast<double>(INFINITY),
                           static_cast<double>(NAN)};
  std::vector<double> v;
  for (const double x : limits) {
    for (const double y : {x, std::nextafter(x, 0.0), std::nextafter(x, 1e308)}) {
      v.push_back(y);
      v.push_back(-y);
    }
  }
  std::mt19937_64 rng(7);
  for (int i = 0; i < 30000; ++i) {
    v.push_back(std::bit_cast<double>(rng()));
    for (const double most : {1e-8, 1e-3, 0.5, 1.5, 40.0, 750.0, 1e6, 5e9}) {
      v.push_back(std::uniform_real_distribution<double>(-most, most)(rng));
    }
    v.push_back(i * M_PI_2);  // where sine or cosine is almost zero
  }
  for (const auto& f : kFunctions) {
    for (const double x : v) {
      const double got = f.fast(x);
      const Wide exact = f.exact(x);
      const auto near = static_cast<double>(exact);
      if (std::isnan(near) || std::isinf(near) || near == 0) {
        ASSERT_EQ(std::isnan(got), std::isnan(near)) << f.name << " of " << x;
        // Beside the limits the nearest number is one of two.
        const bool close = std::fabs(got) == 1.7976931348623157e308 || std::fabs(got) == 5e-324;
        ASSERT_TRUE(std::isnan(got) || close || got == near) << f.name << " of " << x;
        ASSERT_TRUE(std::isnan(got) || std::signbit(got) == std::signbit(near))
            << f.name << " of " << x;
        continue;
      }
      int exponent;
      std::frexp(near, &exponent);
      const double unit = std::ldexp(1.0, std::max(exponent - 53, -1074));
      ASSERT_LE(std::fabs(got - exact), unit) << f.name << " of " << x << ": " << got;
    }
  }
}

TEST(Vectors, DoubleRemaindersAreExact) {
  std::mt19937_64 rng(8);
  std::vector<double> a, b;
  const double edges[] = {0.0, -0.0, 1.0, -3.5, 5e-324, 1e308, 0x1p52, 0x1p53, INFINITY, NAN};
  for (const double x : edges) {
    for (const double y : edges) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (int i = 0; i < 200000; ++i) {
    b.push_back(i % 2 ? std::bit_cast<double>(rng())
                      : 0.001 * static_cast<double>(1 + rng() % 999));
    const double multiple = b.back() * static_cast<double>(rng() % 100000);
    a.push_back(i % 2   ? std::bit_cast<double>(rng())
                : i % 4 ? multiple
                        : std::nextafter(multiple, 0.0));
  }
  const auto n = static_cast<int64_t>(a.size());
  const Tensor x = Tensor::fromData(a.data(), DimVector{n});
  const Tensor y = Tensor::fromData(b.data(), DimVector{n});
  const Tensor rest = call("aten::fmod", "Tensor", x, y);
  for (size_t i = 0; i < a.size(); ++i) {
    const double want = std::fmod(a[i], b[i]), got = rest.data<double>()[i];
    ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                 : std::bit_cast<uint64_t>(want) == std::bit_cast<uint64_t>(got))
        << a[i] << " " << b[i];
  }
}

TEST(Vectors, Atan2) {
  std::vector<float> a, b;
  for (float p : kSpecial) {
    for (float q : kSpecial) {
      a.push_back(p);
      b.push_back(q);
    }
  }
  std::mt19937 rng(3);
  std::normal_distribution<float> d;
  for (int i = 0; i < 100001; ++i) {
    a.push_back(d(rng));
    b.push_back(i % 3 ? d(rng) : a.back() * (1 + 1e-6f * d(rng)));
  }
  const Tensor r = call("aten::atan2", "", tensorOf(a), tensorOf(b));
  for (size_t i = 0; i < a.size(); ++i) {
    const float got = r.data<float>()[i];
    ASSERT_TRUE(same(got, math::atan2(a[i], b[i])));
    const double want = std::atan2(static_cast<double>(a[i]), static_cast<double>(b[i]));
    if (std::fabs(want) < 1e-37) continue;
    ASSERT_LT(distance(got, want), 2.2) << a[i] << " " << b[i];
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << a[i] << " " << b[i];
  }
}

TEST(Vectors, RemaindersAreExact) {
  std::vector<float> a = floatsOf(20001, 4), b = floatsOf(20001, 5);
  for (float p : kSpecial) {
    for (float q : kSpecial) {
      a.push_back(p);
      b.push_back(q);
    }
  }
  std::mt19937 rng(6);
  std::normal_distribution<float> d;
  for (int i = 0; i < 100000; ++i) {
    b.push_back(d(rng));
    // Also multiples and their neighbours, whose quotient rounds to a whole number.
    const float multiple = b.back() * static_cast<float>(rng() % 1000);
    a.push_back(i % 3 == 0 ? d(rng) * 100 : i % 3 == 1 ? multiple : std::nextafter(multiple, 0.0f));
  }
  const Tensor x = tensorOf(a), y = tensorOf(b), r = call("aten::fmod", "Tensor", x, y),
               m = call("aten::remainder", "Tensor", x, y),
               q = call("aten::floor_divide", "", x, y);
  for (size_t i = 0; i < a.size(); ++i) {
    const float rest = std::fmod(a[i], b[i]);
    ASSERT_TRUE(same(r.data<float>()[i], rest)) << a[i] << " " << b[i];
    const float expected = rest != 0 && (rest < 0) != (b[i] < 0) ? rest + b[i] : rest;
    ASSERT_TRUE(same(m.data<float>()[i], expected)) << a[i] << " " << b[i];
    const double exact = static_cast<double>(a[i]) / b[i];
    if (std::isfinite(exact) && std::isfinite(b[i]) && std::fabs(exact) < 4e6 && rest != 0) {
      ASSERT_EQ(q.data<float>()[i], std::floor(exact)) << a[i] << " " << b[i];
    }
  }
}

TEST(Vectors, ClampPassesNanOn) {
  const double marks[] = {-2, -1, 0, 1, 2, NAN, INFINITY, -INFINITY};
  std::vector<double> x, low, high;
  for (double a : marks) {
    for (double b : marks) {
      for (double c : marks) {
        x.push_back(a);
        low.push_back(b);
        high.push_back(c);
      }
    }
  }
  const auto tensor = [](const std::vector<double>& v, DType dtype) {
    return Tensor::fromData(v.data(), DimVector{static_cast<int64_t>(v.size())}).to(dtype);
  };
  for (DType dtype : {DType::Float, DType::Double}) {
    const auto got = values(
        call("aten::clamp", "Tensor", tensor(x, dtype), tensor(low, dtype), tensor(high, dtype)));
    for (size_t i = 0; i < x.size(); ++i) {
      const bool nan = std::isnan(x[i]) || std::isnan(low[i]) || std::isnan(high[i]);
      const double expected = std::min(std::max(x[i], low[i]), high[i]);
      if (nan) {
        EXPECT_TRUE(std::isnan(got[i])) << x[i] << " " << low[i] << " " << high[i];
      } else {
        EXPECT_EQ(got[i], expected) << x[i] << " " << low[i] << " " << high[i];
      }
    }
  }
}

TEST(Vectors, RowsReduceAsTheirElementsDo) {
  std::mt19937 rng(7);
  std::normal_distribution<float> d;
  for (int64_t n : {7, 8, 9, 31, 32, 33, 40, 63, 64, 100, 1001}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<float> v;
      for (int64_t i = 0; i < n; ++i) v.push_back(d(rng));
      if (kind > 0) v[static_cast<size_t>(rng() % n)] = kind == 1 ? kInf : kind == 2 ? -kInf : NAN;
      double sum = 0, squares = 0, product = 1, some = 0;
      size_t largest = 0, smallest = 0;
      for (size_t i = 0; i < v.size(); ++i) {
        const double x = v[i];
        sum += x;
        squares += x * x;
        product *= x;
        some += std::isnan(x) ? 0 : x;
        if (!std::isnan(v[largest]) && (std::isnan(v[i]) || v[i] > v[largest])) largest = i;
        if (!std::isnan(v[smallest]) && (std::isnan(v[i]) || v[i] < v[smallest])) smallest = i;
      }
      const Tensor x = tensorOf(v).unsqueeze(0).expand(DimVector{3, n}).contiguous();
      const DimVector last{1};
      const auto near = [&](const Tensor& t, double want, const char* what) {
        const double got = values(t)[2];
        EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)) ||
                    std::fabs(got - want) <= 1e-6 * std::fabs(want) + 1e-6)
            << what << " " << n << " " << kind << ": " << got << ", " << want;
      };
      near(call("aten::sum", "dim_IntList", x, last), sum, "sum");
      near(call("aten::nansum", "", x, last), some, "nansum");
      near(call("aten::linalg_vector_norm", "", x, Scalar(2), last), std::sqrt(squares), "norm");
      near(call("aten::prod", "dim_int", x, int64_t{1}), product, "prod");
      near(call("aten::amax", "", x, last), v[largest], "amax");
      near(call("aten::amin", "", x, last), v[smallest], "amin");
      const auto most = testing::callAll("aten::max", "dim", x, int64_t{1});
      near(most[0].toTensor(), v[largest], "max");
      near(most[1].toTensor(), static_cast<double>(largest), "where");
      near(call("aten::argmin", "", x, int64_t{1}), static_cast<double>(smallest), "argmin");
      // Columns, four rows at a time.
      near(call("aten::sum", "dim_IntList", x.transpose(0, 1).contiguous(), DimVector{0}), sum,
           "sum0");
      const Tensor columns = tensorOf(v).unsqueeze(1).expand(DimVector{n, 19}).contiguous();
      near(call("aten::amax", "", columns, DimVector{0}), v[largest], "amax0");
      near(call("aten::amin", "", columns, DimVector{0}).slice(0, 16, 19), v[smallest], "amin0");
    }
  }
}

TEST(Vectors, TheFirstOfEqualElementsCounts) {
  std::vector<float> v(100, 1.0f);
  v[40] = v[71] = 3.0f;
  EXPECT_EQ(values(call("aten::argmax", "", tensorOf(v), int64_t{0}))[0], 40);
  v[60] = v[80] = NAN;
  EXPECT_EQ(values(call("aten::argmax", "", tensorOf(v), int64_t{0}))[0], 60);
  EXPECT_EQ(values(call("aten::argmin", "", tensorOf(v), int64_t{0}))[0], 60);
}

TEST(Vectors, LogSumExpOfRowsAndColumns) {
  std::mt19937 rng(8);
  std::normal_distribution<float> d(0, 30);
  for (int64_t n : {5, 8, 13, 64, 1000}) {
    Tensor x = Tensor::empty(DimVector{3, n}, DType::Float);
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = d(rng);
    x.data<float>()[n] = kInf;
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) max = std::max<double>(max, x.data<float>()[2 * n + i]);
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x.data<float>()[2 * n + i] - max);
    for (const Tensor& got :
         {call("aten::logsumexp", "", x, DimVector{1}),
          call("aten::logsumexp", "", x.transpose(0, 1), DimVector{0}),
          call("aten::logsumexp", "", x.transpose(0, 1).contiguous(), DimVector{0}, true)
              .squeeze(0)}) {
      ASSERT_EQ(testing::shape(got), testing::Shape{3});
      EXPECT_NEAR(values(got)[2], max + std::log(sum), 1e-5) << n;
      EXPECT_EQ(values(got)[1], INFINITY);
    }
    x.data<float>()[n - 1] = NAN;
    for (int64_t i = 0; i < n; ++i) x.data<float>()[n + i] = -kInf;
    const auto got = values(call("aten::logsumexp", "", x, DimVector{1}));
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_EQ(got[1], -INFINITY);
  }
}

TEST(Vectors, SoftmaxOfColumns) {
  std::mt19937 rng(9);
  std::normal_distribution<float> d(0, 5);
  for (int64_t inner : {2, 7, 8, 9, 63, 64, 65, 130}) {
    Tensor x = Tensor::empty(DimVector{2, 11, inner}, DType::Float);
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = d(rng);
    x.data<float>()[3 * inner] = -kInf;
    x.data<float>()[4 * inner + 1] = NAN;
    const Tensor wide = x.to(DType::Double);
    for (const char* name : {"aten::softmax", "aten::log_softmax"}) {
      const auto got = values(call(name, "int", x, int64_t{1}));
      const auto want = values(call(name, "int", wide, int64_t{1}));
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(std::isnan(got[i]), std::isnan(want[i])) << name << " " << inner << " " << i;
        if (std::isfinite(want[i])) {
          ASSERT_NEAR(got[i], want[i], 4e-6 + 1e-6 * std::fabs(want[i])) << name << " " << inner;
        }
      }
    }
  }
}

TEST(Vectors, TwisterGivesTheStandardNumbers) {
  for (uint32_t seed : {0u, 1u, 5489u, 4294967295u}) {
    std::mt19937 expected(seed);
    MersenneTwister twister(seed);
    std::vector<uint32_t> some(2000);
    for (size_t n : {1, 7, 624, 0, 623, 2000, 3}) {
      twister.fill(some.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(some[i], expected());
      ASSERT_EQ(twister(), expected());
    }
    MersenneTwister copy = twister;
    ASSERT_EQ(copy(), twister());
  }
}

// The draws of a seed in the order in which PyTorch takes them.
TEST(Vectors, RandomOperatorsDrawInOrder) {
  const int64_t n = 2500;
  const auto generator = [] { return IValue(makeRef<GeneratorObject>(uint64_t{42})); };
  const auto empty = [&](DType dtype) { return Tensor::empty(DimVector{n}, dtype); };
  const auto next64 = [](std::mt19937& g) {
    const uint64_t high = g();
    return high << 32 | g();
  };
  std::mt19937 g(42);
  const Tensor floats = call("aten::uniform_", "", empty(DType::Float), 0.0, 1.0, generator());
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(floats.data<float>()[i], static_cast<float>(g() & 0xffffff) * 0x1p-24f);
  }
  g.seed(42);
  const Tensor doubles = call("aten::uniform_", "", empty(DType::Double), 0.0, 1.0, generator());
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = next64(g) & ((uint64_t{1} << 53) - 1);
    ASSERT_EQ(doubles.data<double>()[i], static_cast<double>(bits) * 0x1p-53);
  }
  g.seed(42);
  const Tensor small = call("aten::random_", "from", empty(DType::Long), -3, 1000, generator());
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(small.data<int64_t>()[i], static_cast<int64_t>(g() % 1003) - 3);
  }
  g.seed(42);
  const Tensor wide =
      call("aten::random_", "from", empty(DType::Long), 0, int64_t{1} << 40, generator());
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(wide.data<int64_t>()[i], static_cast<int64_t>(next64(g) % (uint64_t{1} << 40)));
  }
  g.seed(42);
  const Tensor coins = call("aten::bernoulli_", "float", empty(DType::Float), 0.3, generator());
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = next64(g) & ((uint64_t{1} << 53) - 1);
    ASSERT_EQ(coins.data<float>()[i], static_cast<double>(bits) * 0x1p-53 < 0.3 ? 1 : 0);
  }
  g.seed(42);
  const Tensor tossed = call("aten::bernoulli", "", floats, generator());
  for (int64_t i = 0; i < n; ++i) {
    const float u = static_cast<float>(g() & 0xffffff) * 0x1p-24f;
    ASSERT_EQ(tossed.data<float>()[i], u < floats.data<float>()[i] ? 1 : 0);
  }
  EXPECT_THROW(call("aten::bernoulli", "", Tensor::full(DimVector{n}, 1.5, DType::Float)),
               RuntimeError);
  g.seed(42);
  const Tensor order = call("aten::randperm", "generator", n, generator());
  std::vector<int64_t> expected(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) expected[static_cast<size_t>(i)] = i;
  for (int64_t i = 0; i + 1 < n; ++i) {
    std::swap(expected[static_cast<size_t>(i)],
              expected[static_cast<size_t>(i + static_cast<int64_t>(g() % (n - i)))]);
  }
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(order.data<int64_t>()[i], expected[static_cast<size_t>(i)]);
  }
  // Box and Muller on sixteen at a time.
  g.seed(42);
  const Tensor normal = call("aten::normal_", "", empty(DType::Float), 1.0, 2.0, generator());
  for (int64_t i = 0; i + 16 <= n - 16; i += 16) {
    double u[16];
    for (double& v : u) v = static_cast<double>(g() & 0xffffff) * 0x1p-24;
    for (int64_t j = 0; j < 8; ++j) {
      const double radius = std::sqrt(-2 * std::log(1 - u[j])), angle = 2 * M_PI * u[j + 8];
      ASSERT_NEAR(normal.data<float>()[i + j], radius * std::cos(angle) * 2 + 1, 3e-6);
      ASSERT_NEAR(normal.data<float>()[i + j + 8], radius * std::sin(angle) * 2 + 1, 3e-6);
    }
  }
}

}  // namespace
}  // namespace wick::vectors_test
