// Fourier transforms beside sums written out in doubles.
#include <cmath>
#include <complex>
#include <random>

#include "core/parallel.h"
#include "runtime/kernels/fft_plan.h"
#include "tests/runtime/op_testing.h"

namespace wick::fft_test {
namespace {

using testing::call;
using Complex = std::complex<double>;
using Norm = std::optional<std::string>;
using OptInt = std::optional<int64_t>;

Tensor randomTensor(IntSpan sizes, DType dtype, unsigned seed = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> d;
  DimVector parts(sizes);
  const bool complex = isComplex(dtype);
  if (complex) parts.push_back(2);
  Tensor t = Tensor::empty(parts, DType::Double);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = d(rng);
  return complex ? call("aten::view_as_complex", "", t).to(dtype) : t.to(dtype);
}

std::vector<Complex> numbers(const Tensor& t) {
  const Tensor x = t.to(DType::ComplexDouble).contiguous();
  return {x.data<Complex>(), x.data<Complex>() + x.numel()};
}

std::vector<Complex> sums(const std::vector<Complex>& x, bool forward) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<Complex> roots, out;
  for (int64_t k = 0; k < n; ++k) {
    const double angle = 2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
    roots.emplace_back(std::cos(angle), forward ? -std::sin(angle) : std::sin(angle));
  }
  for (int64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      sum += x[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % n)];
    }
    out.push_back(sum);
  }
  return out;
}

// The largest difference, relative to the largest number.
double difference(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0, size = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    if (std::isnan(std::abs(a[i]))) return NAN;
    size = std::max(size, std::abs(b[i]));
  }
  return most / size;
}

double allowed(DType dtype) {
  return toRealType(dtype) == DType::Double ? 1e-14 : 3e-6;
}

const int64_t kLengths[] = {1,   2,   3,    4,    5,    6,    7,    8,    9,   10,  11,  12,  13,
                            14,  15,  16,   17,   18,   20,   22,   24,   25,  27,  30,  32,  35,
                            36,  40,  48,   49,   50,   61,   64,   67,   72,  77,  81,  97,  100,
                            101, 121, 125,  127,  128,  144,  150,  243,  251, 256, 360, 400, 512,
                            521, 625, 1000, 1009, 1024, 1025, 1260, 2000, 2003};

// One row, some and a few more than fill a vector; each row has other numbers.
TEST(Fourier, EveryLengthBothWays) {
  for (DType dtype : {DType::ComplexFloat, DType::ComplexDouble}) {
    for (int64_t n : kLengths) {
      for (int64_t rows : {1, 3, 9}) {
        if (n > 600 && rows == 3) continue;
        const Tensor x = randomTensor(DimVector{rows, n}, dtype, static_cast<unsigned>(n));
        const Tensor there = call("aten::fft_fft", "", x), back = call("aten::fft_ifft", "", there);
        EXPECT_LT(difference(numbers(back), numbers(x)), allowed(dtype)) << n << " " << rows;
        const int64_t row = rows - 1;
        EXPECT_LT(difference(numbers(there.select(0, row)), sums(numbers(x.select(0, row)), true)),
                  allowed(dtype))
            << n << " " << rows;
      }
    }
  }
}

TEST(Fourier, RealRowsOfEveryLength) {
  for (DType dtype : {DType::Float, DType::Double}) {
    for (int64_t n : kLengths) {
      for (int64_t rows : {1, 11}) {
        const Tensor x = randomTensor(DimVector{rows, n}, dtype, static_cast<unsigned>(n));
        const Tensor half = call("aten::fft_rfft", "", x);
        ASSERT_EQ(half.size(1), n / 2 + 1);
        auto expected = sums(numbers(x.select(0, rows - 1)), true);
        EXPECT_LT(difference(numbers(call("aten::fft_fft", "", x).select(0, rows - 1)), expected),
                  allowed(dtype))
            << n;
        expected.resize(static_cast<size_t>(n / 2 + 1));
        EXPECT_LT(difference(numbers(half.select(0, rows - 1)), expected), allowed(dtype)) << n;
        const Tensor back = call("aten::fft_irfft", "", half, OptInt(n));
        EXPECT_EQ(back.dtype(), dtype);
        EXPECT_LT(difference(numbers(back), numbers(x)), allowed(dtype)) << n;
        // The conjugate halves.
        const Tensor other = call("aten::fft_ihfft", "", x, OptInt(), int64_t{-1}, Norm("forward"));
        for (auto& v : expected) v = std::conj(v);
        EXPECT_LT(difference(numbers(other.select(0, rows - 1)), expected), allowed(dtype)) << n;
        EXPECT_LT(difference(numbers(call("aten::fft_hfft", "", other, OptInt(n), int64_t{-1},
                                          Norm("backward"))),
                             numbers(call("aten::mul", "Scalar", x, Scalar(n)))),
                  allowed(dtype))
            << n;
      }
    }
  }
}

// Longer than what is transformed side by side: matrices of rows and columns, also within the
// convolution that lengths with large primes become. The numbers are those of one frequency.
TEST(Fourier, LongRows) {
  for (DType dtype : {DType::ComplexFloat, DType::ComplexDouble}) {
    for (int64_t n : {8192, 8194, 10007, 16384, 20000, 59049, 65536, 102400, 1000003}) {
      for (int64_t rows : {1, 2}) {
        const int64_t frequency = n / 3 + 1;
        Tensor x = Tensor::empty(DimVector{rows, n}, DType::ComplexDouble);
        for (int64_t i = 0; i < rows * n; ++i) {
          const int64_t turns = i % n * frequency % n;
          const double angle = 2 * M_PI * static_cast<double>(turns) / static_cast<double>(n);
          x.data<Complex>()[i] = {std::cos(angle), std::sin(angle)};
        }
        const Tensor y =
            call("aten::fft_fft", "", x.to(dtype), OptInt(), int64_t{-1}, Norm("forward"));
        const auto got = numbers(y.select(0, rows - 1));
        double rest = 0;
        for (int64_t k = 0; k < n; ++k) {
          const Complex v = got[static_cast<size_t>(k)] - (k == frequency ? 1.0 : 0.0);
          rest = std::max(rest, std::abs(v));
        }
        EXPECT_LT(rest, allowed(dtype)) << n << " " << rows;
      }
    }
  }
}

// As the rows and columns of waves of more than 2^26 numbers are transformed.
TEST(Fourier, LongWavesSideBySide) {
  constexpr int kTogether = fft::kLanes<double>;
  constexpr int64_t n = 16384;
  const fft::Plan<double> together(n, true), alone(n);
  std::vector<double> data(2 * n * kTogether), work(data.size());
  std::mt19937 rng(2);
  std::normal_distribution<double> d;
  for (double& v : data) v = d(rng);
  const std::vector<double> given = data;
  const auto wave = [](std::vector<double>& v, int64_t size) {
    return fft::Wave<double>{v.data(), v.data() + size};
  };
  const auto all = together.run<kTogether>(wave(data, n * kTogether), wave(work, n * kTogether));
  for (int64_t lane = 0; lane < kTogether; ++lane) {
    std::vector<double> one(2 * n), space(2 * n);
    for (int64_t i = 0; i < 2 * n; ++i) {
      one[static_cast<size_t>(i)] = given[static_cast<size_t>(i * kTogether + lane)];
    }
    const auto expected = alone.run<1>(wave(one, n), wave(space, n));
    for (int64_t k = 0; k < n; ++k) {
      ASSERT_NEAR(all.re[k * kTogether + lane], expected.re[k], 1e-10) << k;
      ASSERT_NEAR(all.im[k * kTogether + lane], expected.im[k], 1e-10) << k;
    }
  }
}

TEST(Fourier, LongRealRows) {
  for (int64_t n : {16386, 20000, 100003, 1 << 18}) {
    const Tensor x = randomTensor(DimVector{n}, DType::Double);
    const Tensor all = call("aten::fft_fft", "", x.to(DType::ComplexDouble));
    const Tensor half = call("aten::fft_rfft", "", x);
    EXPECT_LT(difference(numbers(half), numbers(all.narrow(0, 0, n / 2 + 1))), 1e-14) << n;
    EXPECT_LT(difference(numbers(call("aten::fft_irfft", "", half, OptInt(n))), numbers(x)), 1e-14);
    EXPECT_LT(difference(numbers(call("aten::fft_rfft", "", x.to(DType::Float))), numbers(half)),
              1e-6);
  }
}

// Rows that lie apart, across or over each other, and results for every dimension.
TEST(Fourier, StridesAndDimensions) {
  const Tensor base = randomTensor(DimVector{12, 10, 18}, DType::ComplexFloat);
  const Tensor views[] = {base, base.transpose(0, 2), base.narrow(2, 1, 9).narrow(1, 2, 5),
                          base.select(0, 1).unsqueeze(0).expand(DimVector{3, 10, 18})};
  for (const Tensor& view : views) {
    for (int64_t d = 0; d < 3; ++d) {
      const Tensor got = call("aten::fft_fft", "", view, OptInt(), d);
      EXPECT_TRUE(got.isContiguous());
      const Tensor x = view.transpose(d, 2).contiguous(), y = got.transpose(d, 2).contiguous();
      for (int64_t i = 0; i < x.size(0); ++i) {
        EXPECT_LT(difference(numbers(y.select(0, i).select(0, 1)),
                             sums(numbers(x.select(0, i).select(0, 1)), true)),
                  3e-6);
      }
      const Tensor real = call("aten::view_as_real", "", view).select(3, 1);
      const Tensor half = call("aten::fft_rfft", "", real, OptInt(), d);
      EXPECT_LT(difference(numbers(half), numbers(call("aten::fft_fft", "",
                                                       real.to(DType::ComplexFloat), OptInt(), d)
                                                      .narrow(d, 0, view.size(d) / 2 + 1))),
                3e-6);
      EXPECT_LT(difference(numbers(call("aten::fft_irfft", "", half, OptInt(view.size(d)), d)),
                           numbers(real)),
                3e-6);
    }
  }
}

TEST(Fourier, NormsLengthsAndSeveralDimensions) {
  const Tensor x = randomTensor(DimVector{6, 8}, DType::Double);
  const auto plain = numbers(call("aten::fft_fft2", "", x));
  for (const auto& [norm, factor] :
       {std::pair("backward", 1.0), {"ortho", 1 / std::sqrt(48.0)}, {"forward", 1 / 48.0}}) {
    const DimVector dims{-2, -1};
    const Tensor y = call("aten::fft_fft2", "", x, IValue(), dims, Norm(norm));
    auto expected = plain;
    for (Complex& v : expected) v *= factor;
    EXPECT_LT(difference(numbers(y), expected), 1e-14) << norm;
    const Tensor back = call("aten::fft_ifft2", "", y, IValue(), dims, Norm(norm));
    EXPECT_LT(difference(numbers(back), numbers(x)), 1e-14) << norm;
    const Tensor half = call("aten::fft_rfft2", "", x, IValue(), dims, Norm(norm));
    EXPECT_LT(difference(numbers(call("aten::fft_irfft2", "", half, IValue(), dims, Norm(norm))),
                         numbers(x)),
              1e-14)
        << norm;
  }
  // Cut and padded.
  auto row = numbers(x.select(0, 0));
  row.resize(11);
  EXPECT_LT(
      difference(numbers(call("aten::fft_fft", "", x, OptInt(11)).select(0, 0)), sums(row, true)),
      1e-14);
  row.resize(5);
  EXPECT_LT(
      difference(
          numbers(
              call("aten::fft_ifft", "", x, OptInt(5), int64_t{-1}, Norm("forward")).select(0, 0)),
          sums(row, false)),
      1e-14);
}

// What is not finite stays in its row.
TEST(Fourier, RowsDoNotTouchEachOther) {
  Tensor x = randomTensor(DimVector{16, 30}, DType::Float);
  const auto before = numbers(call("aten::fft_rfft", "", x));
  x.data<float>()[5 * 30 + 2] = NAN;
  const auto after = numbers(call("aten::fft_rfft", "", x));
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(std::isnan(std::abs(after[i])), i / 16 == 5);
    if (i / 16 != 5) {
      EXPECT_EQ(before[i], after[i]);
    }
  }
}

TEST(Fourier, EmptyAndWrong) {
  EXPECT_EQ(call("aten::fft_fft", "", Tensor::empty(DimVector{0, 5}, DType::ComplexFloat)).size(1),
            5);
  EXPECT_EQ(call("aten::fft_rfft", "", Tensor::empty(DimVector{0, 5}, DType::Float)).size(1), 3);
  EXPECT_EQ(
      call("aten::fft_irfft", "", Tensor::empty(DimVector{0, 5}, DType::ComplexFloat)).size(1), 8);
  const Tensor x = randomTensor(DimVector{4}, DType::Float);
  EXPECT_THROW(call("aten::fft_fft", "", x, OptInt(0)), RuntimeError);
  EXPECT_THROW(call("aten::fft_fft", "", x, OptInt(), int64_t{-1}, Norm("none")), RuntimeError);
  EXPECT_THROW(call("aten::fft_rfft", "", x.to(DType::ComplexFloat)), RuntimeError);
  EXPECT_THROW(call("aten::fft_fft", "", x.to(DType::Half)), RuntimeError);
}

// The same bits however many threads there are, and the same plan for who asks again.
TEST(Fourier, ThreadsAndPlans) {
  const Tensor x = randomTensor(DimVector{1 << 17}, DType::Float);
  const int before = teamSize();
  setTeamSize(1);
  const auto one = numbers(call("aten::fft_rfft", "", x));
  setTeamSize(3);
  const auto three = numbers(call("aten::fft_rfft", "", x));
  setTeamSize(before);
  EXPECT_EQ(one, three);
  EXPECT_EQ(fft::planFor<float>(60), fft::planFor<float>(60));
  EXPECT_EQ(fft::realPlanFor<double>(60), fft::realPlanFor<double>(60));
}

TEST(Fourier, RootsKeepTheirSymmetry) {
  for (int64_t n : {4, 12, 4096, 8192, 1000000}) {
    const fft::Roots roots(n);
    EXPECT_EQ(roots[0], Complex(1, 0));
    EXPECT_LT(std::abs(roots[n / 4] - Complex(0, -1)), 3e-16);
    EXPECT_LT(std::abs(roots[n / 2] - Complex(-1, 0)), 3e-16);
    for (int64_t k = 1; k < n; k += 1 + n / 50) {
      const double angle = 2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
      EXPECT_LT(std::abs(roots[k] - Complex(std::cos(angle), -std::sin(angle))), 1e-15);
    }
  }
}

}  // namespace
}  // namespace wick::fft_test
