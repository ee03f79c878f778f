// Lengths whose prime factors are small split recursively by them (Cooley and Tukey); any other is
// turned into a convolution of a power-of-two length (Bluestein).
#include "runtime/kernels/fft.h"

#include <cmath>

#include "core/budget.h"
#include "core/complex_product.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"

namespace wick::fft {

namespace {

using Complex = std::complex<double>;
constexpr int64_t kLargestFactor = 61;

CountedVector<int64_t> primeFactors(int64_t n) {
  CountedVector<int64_t> factors;
  Pace pace;  // a large prime takes billions of steps
  for (int64_t p = 2; p <= n / p; ++p) {
    pace.step();
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

// The angle is reduced before it is multiplied, so that long transforms keep their precision.
Complex root(int64_t k, int64_t n) {
  double angle = -2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace

// k^2 / 2 in place of j k: x[j] w^(j^2/2) convolved with w^(-j^2/2).
struct Plan::Bluestein {
  explicit Bluestein(int64_t n) : size(powerAbove(2 * n - 1)), inner(size), chirp(n), kernel(size) {
    CountedVector<Complex> b(static_cast<size_t>(size));
    Pace pace;
    for (int64_t k = 0; k < n; ++k) {
      pace.step(32);
      chirp[static_cast<size_t>(k)] =
          root(static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n)), 2 * n);
      Complex c = std::conj(chirp[static_cast<size_t>(k)]);
      b[static_cast<size_t>(k)] = c;
      if (k > 0) b[static_cast<size_t>(size - k)] = c;
    }
    inner.run(b.data(), kernel.data(), true);
  }
  static int64_t powerAbove(int64_t n) {
    int64_t p = 1;
    while (p < n) p *= 2;
    return p;
  }
  void run(const Complex* in, Complex* out, bool forward) const {
    size_t n = chirp.size(), m = static_cast<size_t>(size);
    CountedVector<Complex> a(m), b(m);
    // The inverse transform is the conjugate of the transform of the conjugate.
    Pace pace;
    for (size_t k = 0; k < n; ++k) {
      pace.step(4);
      a[k] = complexProduct(forward ? in[k] : std::conj(in[k]), chirp[k]);
    }
    inner.run(a.data(), b.data(), true);
    for (size_t k = 0; k < m; ++k) {
      pace.step(4);
      b[k] = complexProduct(b[k], kernel[k]);
    }
    inner.run(b.data(), a.data(), false);
    for (size_t k = 0; k < n; ++k) {
      pace.step(4);
      Complex v = complexProduct(a[k] / static_cast<double>(size), chirp[k]);
      out[k] = forward ? v : std::conj(v);
    }
  }
  int64_t size;
  Plan inner;
  CountedVector<Complex> chirp, kernel;
};

Plan::Plan(int64_t n) : n_(n), factors_(primeFactors(n)) {
  if (!factors_.empty() && factors_.back() > kLargestFactor) {
    bluestein_ = std::make_unique<Bluestein>(n);
    return;
  }
  Pace pace;
  for (int64_t k = 0; k < n; ++k) {
    pace.step(32);
    twiddles_.push_back(root(k, n));
  }
}

Plan::~Plan() = default;

void Plan::recurse(const Complex* in, int64_t stride, Complex* out, int64_t n, size_t level,
                   bool forward) const {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  int64_t p = factors_[level], m = n / p, step = n_ / n;
  for (int64_t r = 0; r < p; ++r) {
    recurse(in + r * stride, stride * p, out + r * m, m, level + 1, forward);
  }
  auto twiddle = [&](int64_t k) {
    Complex w = twiddles_[static_cast<size_t>(k % n_)];
    return forward ? w : std::conj(w);
  };
  CountedVector<Complex> parts(static_cast<size_t>(p));
  Pace pace;
  for (int64_t k = 0; k < m; ++k) {
    pace.step(p);
    if (p == 2) {
      Complex a = out[k], b = complexProduct(out[k + m], twiddle(k * step));
      out[k] = a + b;
      out[k + m] = a - b;
      continue;
    }
    for (int64_t r = 0; r < p; ++r) {
      parts[static_cast<size_t>(r)] = complexProduct(out[r * m + k], twiddle(r * k * step));
    }
    for (int64_t q = 0; q < p; ++q) {
      Complex sum = parts[0];
      for (int64_t r = 1; r < p; ++r) {
        sum += complexProduct(parts[static_cast<size_t>(r)], twiddle(r * q % p * (n_ / p)));
      }
      out[q * m + k] = sum;
    }
  }
}

void Plan::run(const Complex* in, Complex* out, bool forward) const {
  if (bluestein_) {
    bluestein_->run(in, out, forward);
  } else {
    recurse(in, 1, out, n_, 0, forward);
  }
}

Tensor transform(const Tensor& input, IntSpan dims, bool forward, double scale) {
  Tensor x = input.clone(MemoryFormat::Contiguous);
  if (x.numel() == 0) return x;
  dispatch<kComplexes>("fft", x.dtype(), [&]<class T>() {
    T* data = x.data<T>();
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t n = x.size(dims[i]), inner = 1;
      for (int64_t d = dims[i] + 1; d < x.dim(); ++d) inner *= x.size(d);
      double factor = i == 0 ? scale : 1;
      Plan plan(n);
      parallelFor(x.numel() / n, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
        if constexpr (kIsComplex<T>) {
          CountedVector<Complex> from(static_cast<size_t>(n)), to(static_cast<size_t>(n));
          for (int64_t lane = begin; lane < end; ++lane) {
            T* p = data + lane / inner * n * inner + lane % inner;
            for (int64_t k = 0; k < n; ++k) from[static_cast<size_t>(k)] = Complex(p[k * inner]);
            plan.run(from.data(), to.data(), forward);
            for (int64_t k = 0; k < n; ++k) p[k * inner] = T(to[static_cast<size_t>(k)] * factor);
          }
        }
      });
    }
  });
  return x;
}

}  // namespace wick::fft
