// Functions of complex numbers, of models that were compiled ahead of time: those of the standard library, which the engine
// calls too. C++17. Complex numbers are pairs of a real and an imaginary part.
#ifndef WICK_AOT_COMPLEX_H
#define WICK_AOT_COMPLEX_H

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace wick_aot {

#define WICK_AOT_OF_COMPLEX(name, value)                  \
  struct name {                                           \
    template <class R>                                    \
    std::complex<R> operator()(std::complex<R> z) const { \
      return value;                                       \
    }                                                     \
  };
WICK_AOT_OF_COMPLEX(ComplexExp, std::exp(z))
WICK_AOT_OF_COMPLEX(ComplexLog, std::log(z))
WICK_AOT_OF_COMPLEX(ComplexLog2, std::log(z) / static_cast<R>(0.6931471805599453094))
WICK_AOT_OF_COMPLEX(ComplexLog10, std::log10(z))
WICK_AOT_OF_COMPLEX(ComplexSqrt, std::sqrt(z))
WICK_AOT_OF_COMPLEX(ComplexRsqrt, R(1) / std::sqrt(z))
WICK_AOT_OF_COMPLEX(ComplexSigmoid, R(1) / (R(1) + std::exp(-z)))
WICK_AOT_OF_COMPLEX(ComplexSin, std::sin(z))
WICK_AOT_OF_COMPLEX(ComplexCos, std::cos(z))
WICK_AOT_OF_COMPLEX(ComplexTan, std::tan(z))
WICK_AOT_OF_COMPLEX(ComplexAsin, std::asin(z))
WICK_AOT_OF_COMPLEX(ComplexAcos, std::acos(z))
WICK_AOT_OF_COMPLEX(ComplexAtan, std::atan(z))
WICK_AOT_OF_COMPLEX(ComplexSinh, std::sinh(z))
WICK_AOT_OF_COMPLEX(ComplexCosh, std::cosh(z))
WICK_AOT_OF_COMPLEX(ComplexTanh, std::tanh(z))
WICK_AOT_OF_COMPLEX(ComplexAsinh, std::asinh(z))
WICK_AOT_OF_COMPLEX(ComplexAcosh, std::acosh(z))
WICK_AOT_OF_COMPLEX(ComplexAtanh, std::atanh(z))
#undef WICK_AOT_OF_COMPLEX

// A number of length one; zero stays.
struct ComplexSign {
  template <class R>
  std::complex<R> operator()(std::complex<R> z) const {
    const R length = std::hypot(z.real(), z.imag());
    if (z == std::complex<R>(0)) return 0;
    return {z.real() / length, z.imag() / length};
  }
};
struct ComplexPower {
  template <class R>
  std::complex<R> operator()(std::complex<R> z, std::complex<R> n) const {
    return std::pow(z, n);
  }
};

// Real numbers of complex ones.
struct ComplexAngle {
  template <class R>
  R operator()(std::complex<R> z) const {
    return std::atan2(z.imag(), z.real());
  }
};
struct ComplexMagnitude {
  double operator()(std::complex<double> z) const { return std::hypot(z.real(), z.imag()); }
  // The squares and their sum neither overflow nor vanish as float64.
  float operator()(std::complex<float> z) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double re = std::fabs(static_cast<double>(z.real()));
    const double im = std::fabs(static_cast<double>(z.imag()));
    const double length = std::sqrt(re * re + im * im);
    // Infinite beside NaN too.
    const bool infinite = (re == kInfinity) | (im == kInfinity);
    return static_cast<float>(infinite ? kInfinity : length);
  }
};

template <class R>
void storeNumber(R* to, int64_t i, R value) {
  to[i] = value;
}
template <class R>
void storeNumber(R* to, int64_t i, std::complex<R> value) {
  to[2 * i] = value.real();
  to[2 * i + 1] = value.imag();
}

// Of n numbers.
template <class F, class R>
void ofComplex(const R* x, R* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    storeNumber(to, i, F()(std::complex<R>(x[2 * i], x[2 * i + 1])));
  }
}
template <class F, class R>
void ofTwoComplex(const R* x, const R* y, R* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    storeNumber(
        to, i,
        F()(std::complex<R>(x[2 * i], x[2 * i + 1]), std::complex<R>(y[2 * i], y[2 * i + 1])));
  }
}

// ---- sums ----

// Sums of complex numbers in the engine's order (runtime/kernels/reduce.h), accumulated in float64. `plan` holds a size, a stride
// of the input and one of the output for each of the `kept` dimensions, and then for each of the `reduced` ones; strides count
// complex numbers. A `divisor` above zero makes means.
template <class R>
class ComplexSums {
 public:
  ComplexSums(const R* in, const int64_t* plan, int64_t kept, int64_t reduced, int64_t count)
      : in_(in), reduced_(plan + 3 * kept), dims_(reduced), count_(count) {}

  // Of one output; `columns` tells whether outputs lie nearer to each other than what is added up.
  std::complex<double> at(int64_t offset, bool columns) const {
    std::complex<double> all = 0;
    if (columns) {
      const int64_t size = reduced_[3 * (dims_ - 1)], stride = reduced_[3 * (dims_ - 1) + 1];
      for (int64_t row = 0; row < count_ / size; ++row) {
        const int64_t from = offset + rowAt(row);
        for (int64_t k = 0; k < size; ++k) all += number(from + k * stride);
      }
      return all;
    }
    constexpr int64_t kChunk = 1 << 16;
    if (count_ <= kChunk) return range(offset, 0, count_);
    for (int64_t begin = 0; begin < count_; begin += kChunk) {
      all += range(offset, begin, begin + kChunk < count_ ? begin + kChunk : count_);
    }
    return all;
  }

 private:
  std::complex<double> number(int64_t i) const {
    return {static_cast<double>(in_[2 * i]), static_cast<double>(in_[2 * i + 1])};
  }
  int64_t rowAt(int64_t row) const {
    int64_t offset = 0;
    for (int64_t d = dims_ - 1; d-- > 0;) {
      offset += row % reduced_[3 * d] * reduced_[3 * d + 1];
      row /= reduced_[3 * d];
    }
    return offset;
  }
  std::complex<double> range(int64_t offset, int64_t begin, int64_t end) const {
    std::complex<double> all = 0;
    if (dims_ == 0) return begin < end ? all + number(offset) : all;
    const int64_t size = reduced_[3 * (dims_ - 1)], stride = reduced_[3 * (dims_ - 1) + 1];
    while (begin < end) {
      const int64_t first = begin % size;
      const int64_t n = size - first < end - begin ? size - first : end - begin;
      addRow(all, offset + rowAt(begin / size) + first * stride, n, stride);
      begin += n;
    }
    return all;
  }
  void addRow(std::complex<double>& all, int64_t from, int64_t n, int64_t stride) const {
    constexpr int64_t kLanes = 8;
    int64_t i = 0;
    if (stride == 1 && n >= 4 * kLanes) {
      std::complex<double> lanes[kLanes] = {};
      for (; i + kLanes <= n; i += kLanes) {
        for (int64_t l = 0; l < kLanes; ++l) lanes[l] += number(from + i + l);
      }
      for (const std::complex<double>& lane : lanes) all += lane;
    }
    for (; i < n; ++i) all += number(from + i * stride);
  }

  const R* in_;
  const int64_t* reduced_;
  int64_t dims_, count_;
};
template <class R>
void complexSums(const R* in, const int64_t* plan, R* to, int64_t kept, int64_t reduced,
                 int64_t outputs, int64_t count, int64_t columns, int64_t divisor) {
  const ComplexSums<R> sums(in, plan, kept, reduced, count);
  for (int64_t i = 0; i < outputs; ++i) {
    int64_t rest = i, from = 0, at = 0;
    for (int64_t d = kept; d-- > 0; rest /= plan[3 * d]) {
      from += rest % plan[3 * d] * plan[3 * d + 1];
      at += rest % plan[3 * d] * plan[3 * d + 2];
    }
    std::complex<double> all = sums.at(from, columns != 0);
    if (divisor > 0) all /= static_cast<double>(divisor);
    to[2 * at] = static_cast<R>(all.real());
    to[2 * at + 1] = static_cast<R>(all.imag());
  }
}

}  // namespace wick_aot

#endif
