// Lengths whose prime factors are small are split by them (Cooley and Tukey, in Stockham's order;
// fft_passes.h). Any other is made a convolution of a length that has small factors (Bluestein).
// Long waves are written as a matrix whose columns and then rows are transformed, several at once,
// so that each transform stays in the cache.
#include "runtime/kernels/fft_plan.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "core/memory_limit.h"
#include "core/parallel.h"
#include "runtime/kernels/fft_passes.h"
#include "runtime/kernels/fft_rows.h"

namespace wick::fft {

namespace {

using Complex = std::complex<double>;

constexpr int64_t kRootsOneByOne = 4096;

// By the nearest axis or diagonal, so that angles are small and symmetric numbers are alike.
Complex root(int64_t k, int64_t n) {
  const int64_t eighths = 8 * k / n;
  const int64_t base = (eighths + 1) / 2;  // quarter turns to the nearest axis
  const double angle =
      2 * M_PI * static_cast<double>(4 * k - base * n) / (4 * static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  switch (base % 4) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

std::vector<int64_t> primeFactors(int64_t n) {
  std::vector<int64_t> factors;
  Pace pace;  // a large prime takes billions of steps
  for (int64_t p = 2; p <= n / p; ++p) {
    pace.step();
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

// Twos are taken three or two at a time, the longest steps first: what follows them has whole
// vectors side by side.
std::vector<int64_t> stepFactors(const std::vector<int64_t>& primes) {
  const auto twos = std::ranges::count(primes, 2);
  std::vector<int64_t> factors;
  auto eights = twos / 3;
  if (twos % 3 == 1 && eights > 0) --eights;
  factors.assign(static_cast<size_t>(eights), 8);
  const auto rest = twos - 3 * eights;
  factors.insert(factors.end(), static_cast<size_t>(rest / 2), 4);
  factors.insert(factors.end(), static_cast<size_t>(rest % 2), 2);
  for (int64_t p : primes) {
    if (p != 2) factors.push_back(p);
  }
  return factors;
}

// The smallest number from n on whose prime factors are 2, 3 and 5.
int64_t smoothAbove(int64_t n) {
  int64_t best = INT64_MAX;
  for (int64_t five = 1; five < 5 * n; five *= 5) {
    for (int64_t three = five; three < 3 * n; three *= 3) {
      int64_t two = three;
      while (two < n) two *= 2;
      best = std::min(best, two);
    }
  }
  return best;
}

template <class R>
void askFor(int64_t numbers) {
  checkAllocation("fft", static_cast<size_t>(numbers) * sizeof(R));
}

// What compiled models hold too (aot/), where tables are part of the model: C++17.
// --- runs

template <int P, int W, class R>
void runPass(Wave<R> x, Wave<R> y, int64_t m, int64_t s, const R* twiddles) {
  constexpr int kWide = kLanes<R>;
  // What stands side by side in one wave is as good as waves side by side.
  if (W == 1 && s % kWide == 0) {
    pass<P, kWide>(x, y, m, s / kWide, twiddles);
  } else {
    pass<P, W>(x, y, m, s, twiddles);
  }
}

// All passes; `numbers` holds what their `twiddles` and `roots` are positions in.
template <int W, class R, class Step>
Wave<R> runPasses(const Step* steps, int64_t count, const R* numbers, Wave<R> x, Wave<R> y) {
  constexpr int kWide = kLanes<R>;
  for (int64_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    const int64_t m = step.m, s = step.s;
    const R* const twiddles = numbers + step.twiddles;
    const R* const roots = numbers + step.roots;
    if (step.p == 2) {
      runPass<2, W>(x, y, m, s, twiddles);
    } else if (step.p == 3) {
      runPass<3, W>(x, y, m, s, twiddles);
    } else if (step.p == 4) {
      runPass<4, W>(x, y, m, s, twiddles);
    } else if (step.p == 5) {
      runPass<5, W>(x, y, m, s, twiddles);
    } else if (step.p == 8) {
      runPass<8, W>(x, y, m, s, twiddles);
    } else if (W == 1 && s % kWide == 0) {
      passOfAny<kWide>(step.p, x, y, m, s / kWide, twiddles, roots);
    } else {
      passOfAny<W>(step.p, x, y, m, s, twiddles, roots);
    }
    std::swap(x, y);
  }
  return x;
}

// By n numbers: real parts, and imaginary ones.
template <int W, class R>
void multiplyBy(Wave<R> x, const R* re, const R* im, int64_t n) {
  Pace pace;
  for (int64_t k = 0; k < n; ++k) {
    put<W, R>(x, k, product(get<W>(x, k), spread<W>(re[k]), spread<W>(im[k])));
  }
  pace.step(n);
}

// j k = (j^2 + k^2 - (k - j)^2) / 2: x[j] w^(j^2/2) convolved with w^(-j^2/2). `chirp` holds the n real parts of w^(j^2/2) and
// then the imaginary ones, `kernel` the transform of what is convolved with, of `size` numbers; inner(data, work) transforms as
// many.
template <int W, class R, class Inner>
Wave<R> convolve(Wave<R> data, Wave<R> work, int64_t n, int64_t size, const R* chirp,
                 const R* kernel, const Inner& inner) {
  multiplyBy<W>(data, chirp, chirp + n, n);
  std::fill(data.re + n * W, data.re + size * W, R(0));
  std::fill(data.im + n * W, data.im + size * W, R(0));
  const Wave<R> middle = inner(data, work);
  const Wave<R> other = middle.re == data.re ? work : data;
  multiplyBy<W>(middle, kernel, kernel + size, size);
  const Wave<R> end = inner(middle.exchanged(), other.exchanged()).exchanged();
  multiplyBy<W>(end, chirp, chirp + n, n);
  return end;
}

// n = rows columns: number j2 + columns j1 of a wave is that in row j1 and column j2; number
// k1 + rows k2 of the result comes from row k1 after the columns were transformed. First all groups of kLanes columns,
// then all groups of rows back. `turns` holds w_n^(j k) of each column j and row k, by vectors of columns. `lanes` has room for
// kLanes waves, which down(lanes) and across(lanes) transform.
template <class R, class Down>
void squareColumns(int64_t g, Wave<R> from, Wave<R> to, int64_t rows, int64_t columns,
                   const R* turns, Wave<R> lanes, const Down& down) {
  constexpr int W = kLanes<R>;
  const int64_t first = g * W;
  const int64_t here = std::min<int64_t>(W, columns - first);
  for (int64_t j = 0; j < rows; ++j) {
    const int64_t at = j * columns + first;
    if (here == W) {
      put<W, R>(lanes, j, {get<W>(from.re + at), get<W>(from.im + at)});
    } else {
      for (int64_t i = 0; i < W; ++i) {
        lanes.re[j * W + i] = from.re[at + std::min(i, here - 1)];
        lanes.im[j * W + i] = from.im[at + std::min(i, here - 1)];
      }
    }
  }
  const Wave<R> result = down(lanes);
  const R* turn = turns + 2 * first * rows;
  for (int64_t k = 0; k < rows; ++k, turn += 2 * W) {
    const auto v = product(get<W>(result, k), get<W>(turn), get<W>(turn + W));
    const int64_t at = k * columns + first;
    if (here == W) {
      put<W>(to.re + at, v.re);
      put<W>(to.im + at, v.im);
    } else {
      std::memcpy(to.re + at, &v.re, static_cast<size_t>(here) * sizeof(R));
      std::memcpy(to.im + at, &v.im, static_cast<size_t>(here) * sizeof(R));
    }
  }
}
template <class R, class Across>
void squareRows(int64_t g, Wave<R> from, Wave<R> to, int64_t rows, int64_t columns, Wave<R> lanes,
                const Across& across) {
  constexpr int W = kLanes<R>;
  const int64_t first = g * W;
  const int64_t here = std::min<int64_t>(W, rows - first);
  const R *re[W], *im[W];
  for (int64_t i = 0; i < W; ++i) {
    const int64_t at = (first + std::min(i, here - 1)) * columns;
    re[i] = from.re + at;
    im[i] = from.im + at;
  }
  rowsToLanes(re, columns, lanes.re);
  rowsToLanes(im, columns, lanes.im);
  const Wave<R> result = across(lanes);
  for (int64_t k = 0; k < columns; ++k) {
    const size_t bytes = static_cast<size_t>(here) * sizeof(R);
    const int64_t at = first + rows * k;
    if (here == W) {
      put<W>(to.re + at, get<W>(result.re + k * W));
      put<W>(to.im + at, get<W>(result.im + k * W));
    } else {
      std::memcpy(to.re + at, result.re + k * W, bytes);
      std::memcpy(to.im + at, result.im + k * W, bytes);
    }
  }
}

// See RealPlan<R>::unravel(): of n real numbers, with exp(-2 pi i k / n) for k <= n/4.
//
// With Z the transform of the pairs and h = n / 2: E = Z[k] + conj Z[h - k] belongs to the even
// numbers and O = -i (Z[k] - conj Z[h - k]) to the odd ones; 2 X[k] = E + w^k O, and
// 2 conj X[h - k] = E - w^k O.
template <int W, class R>
void unravelPairs(Wave<R> x, int64_t n, const R* turns) {
  using V = Lanes<R, W>;
  const int64_t h = n / 2;
  const auto zero = get<W>(x, 0);
  put<W, R>(x, 0, {zero.re + zero.im, V{}});
  put<W, R>(x, h, {zero.re - zero.im, V{}});
  const V half = spread<W>(R(0.5));
  for (int64_t k = 1; k <= h / 2; ++k) {
    const auto a = get<W>(x, k), b = get<W>(x, h - k);
    const Pair<V> even = {a.re + b.re, a.im - b.im};
    const auto odd = product(turned(Pair<V>{a.re - b.re, a.im + b.im}), spread<W>(turns[2 * k]),
                             spread<W>(turns[2 * k + 1]));
    const auto sum = even + odd, less = even - odd;
    put<W, R>(x, k, {sum.re * half, sum.im * half});
    put<W, R>(x, h - k, {less.re * half, -(less.im * half)});
  }
}
template <int W, class R>
void ravelPairs(Wave<R> x, int64_t n, const R* turns) {
  using V = Lanes<R, W>;
  const int64_t h = n / 2;
  const V first = get<W>(x.re), last = get<W>(x.re + h * W);
  put<W, R>(x, 0, {first + last, first - last});
  for (int64_t k = 1; k <= h / 2; ++k) {
    const auto a = get<W>(x, k), b = get<W>(x, h - k);
    const Pair<V> even = {a.re + b.re, a.im - b.im};
    const auto odd = product(Pair<V>{a.re - b.re, a.im + b.im}, spread<W>(turns[2 * k]),
                             spread<W>(-turns[2 * k + 1]));
    // even + i odd, and conj even + i conj odd.
    put<W, R>(x, k, {even.re - odd.im, even.im + odd.re});
    put<W, R>(x, h - k, {even.re + odd.im, odd.re - even.im});
  }
}

// --- end of runs

}  // namespace

Roots::Roots(int64_t n) : n_(n) {
  if (n <= kRootsOneByOne) return;
  while ((int64_t{1} << (2 * shift_)) < n) ++shift_;
  const int64_t low = int64_t{1} << shift_;
  for (int64_t k = 0; k < low; ++k) low_.push_back(root(k, n));
  for (int64_t k = 0; k < n; k += low) high_.push_back(root(k, n));
}

Complex Roots::operator[](int64_t k) const {
  if (shift_ == 0) return root(k, n_);
  const Complex a = high_[static_cast<size_t>(k >> shift_)],
                b = low_[static_cast<size_t>(k & ((int64_t{1} << shift_) - 1))];
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class R>
struct Plan<R>::Bluestein {
  Bluestein(int64_t n, int64_t room)
      : count(n),
        size(room),
        inner(room),
        chirp(static_cast<size_t>(2 * n)),
        kernel(static_cast<size_t>(2 * room)) {
    const Roots roots(2 * n);
    const Plan<double> exact(size);
    const auto all = static_cast<size_t>(size);
    std::vector<double> memory(4 * all);
    double* const at = memory.data();
    Wave<double> b = {at, at + all};
    const double whole = static_cast<double>(size);
    Pace pace;
    for (int64_t k = 0; k < n; ++k) {
      pace.step(32);
      const Complex c = roots[static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n))];
      chirp[static_cast<size_t>(k)] = static_cast<R>(c.real());
      chirp[static_cast<size_t>(n + k)] = static_cast<R>(c.imag());
      for (int64_t i : {k, (size - k) % size}) {
        b.re[i] = c.real() / whole;
        b.im[i] = -c.imag() / whole;
      }
    }
    b = exact.template run<1>(b, {at + 2 * all, at + 3 * all});
    for (size_t k = 0; k < all; ++k) {
      kernel[k] = static_cast<R>(b.re[k]);
      kernel[all + k] = static_cast<R>(b.im[k]);
    }
  }
  template <int W>
  Wave<R> run(Wave<R> data, Wave<R> work) const {
    return convolve<W>(data, work, count, size, chirp.data(), kernel.data(),
                       [&](Wave<R> x, Wave<R> y) { return inner.template run<W>(x, y); });
  }
  int64_t count, size;
  Plan inner;
  std::vector<R> chirp, kernel;  // all real parts, then all imaginary ones
};

template <class R>
struct Plan<R>::Square {
  static constexpr int W = kLanes<R>;
  Square(int64_t rows_in, int64_t columns_in)
      : rows(rows_in), columns(columns_in), down(rows, true), across(columns, true) {
    const Roots roots(rows * columns);
    groups = (columns + W - 1) / W;
    turns.resize(static_cast<size_t>(2 * groups * W * rows));
    R* to = turns.data();
    Pace pace;
    for (int64_t g = 0; g < groups; ++g) {
      pace.step(rows * W * 8);
      for (int64_t k = 0; k < rows; ++k, to += 2 * W) {
        for (int lane = 0; lane < W; ++lane) {
          const Complex c = roots[std::min(g * W + lane, columns - 1) * k];
          to[lane] = static_cast<R>(c.real());
          to[W + lane] = static_cast<R>(c.imag());
        }
      }
    }
  }

  Wave<R> run(Wave<R> data, Wave<R> work) const {
    const int64_t grain = std::max<int64_t>(1, 16384 / (W * rows));
    parallelFor(groups, grain, [&](int64_t begin, int64_t end) {
      Workspace<R> space(down.room() * W);
      const auto go = [&](Wave<R> x) { return down.template run<W>(x, space.work()); };
      for (int64_t g = begin; g < end; ++g) {
        squareColumns(g, data, work, rows, columns, turns.data(), space.data(), go);
      }
    });
    parallelFor((rows + W - 1) / W, grain, [&](int64_t begin, int64_t end) {
      Workspace<R> space(across.room() * W);
      const auto go = [&](Wave<R> x) { return across.template run<W>(x, space.work()); };
      for (int64_t g = begin; g < end; ++g) {
        squareRows(g, work, data, rows, columns, space.data(), go);
      }
    });
    return data;
  }

  int64_t rows, columns, groups;
  Plan down, across;
  std::vector<R> turns;  // w_n^(j k) of each column j and row k, by vectors of columns
};

template <class R>
Plan<R>::Plan(int64_t n, bool in_lanes) : n_(n), room_(n) {
  const std::vector<int64_t> primes = primeFactors(n);
  if (!primes.empty() && primes.back() > kLargestFactor) {
    room_ = smoothAbove(2 * n - 1);
    askFor<double>(8 * room_);
    bluestein_ = std::make_unique<Bluestein>(n, room_);
    return;
  }
  askFor<R>(4 * n);
  if (n > kLongestInLanes && !in_lanes) {
    int64_t rows = 1, columns = 1;
    for (size_t i = primes.size(); i-- > 0;) (rows < columns ? rows : columns) *= primes[i];
    square_ = std::make_unique<Square>(rows, columns);
  } else {
    makeSteps(stepFactors(primes));
  }
}

template <class R>
Plan<R>::~Plan() = default;

template <class R>
void Plan<R>::makeSteps(const std::vector<int64_t>& factors) {
  const Roots roots(n_);
  const auto add = [&](Complex c) {
    table_.push_back(static_cast<R>(c.real()));
    table_.push_back(static_cast<R>(c.imag()));
  };
  int64_t s = 1;
  for (int64_t p : factors) {
    Step step{p, n_ / s / p, s, 0, 0};
    if (p > 5 && p != 8) {
      step.roots = static_cast<int64_t>(table_.size());
      for (int64_t k = 0; k < p; ++k) add(root(k, p));
    }
    step.twiddles = static_cast<int64_t>(table_.size());
    for (int64_t q = 0; q < step.m; ++q) {
      for (int64_t k = 1; k < p; ++k) add(roots[q * k * s]);
    }
    steps_.push_back(step);
    s *= p;
  }
}

template <class R>
template <int W>
Wave<R> Plan<R>::runSteps(Wave<R> x, Wave<R> work) const {
  return runPasses<W>(steps_.data(), static_cast<int64_t>(steps_.size()), table_.data(), x, work);
}

template <class R>
template <int W>
Wave<R> Plan<R>::run(Wave<R> data, Wave<R> work) const {
  if (bluestein_) return bluestein_->template run<W>(data, work);
  if constexpr (W == 1) {
    if (square_) return square_->run(data, work);
  }
  return runSteps<W>(data, work);
}

template <class R>
int64_t Plan<R>::bytes() const {
  size_t numbers = table_.size();
  int64_t inner = 0;
  if (bluestein_) {
    numbers += bluestein_->chirp.size() + bluestein_->kernel.size();
    inner = bluestein_->inner.bytes();
  }
  if (square_) {
    numbers += square_->turns.size();
    inner = square_->down.bytes() + square_->across.bytes();
  }
  return static_cast<int64_t>(numbers * sizeof(R)) + inner;
}

template <class R>
RealPlan<R>::RealPlan(int64_t n) : n_(n), inner_(planFor<R>(n % 2 == 0 ? n / 2 : n)) {
  if (!halved()) return;
  askFor<R>(n / 2);
  const Roots roots(n);
  for (int64_t k = 0; k <= n / 4; ++k) {
    const Complex c = roots[k];
    turns_.push_back(static_cast<R>(c.real()));
    turns_.push_back(static_cast<R>(c.imag()));
  }
}

template <class R>
int64_t RealPlan<R>::bytes() const {
  return inner_->bytes() + static_cast<int64_t>(turns_.size() * sizeof(R));
}

template <class R>
template <int W>
void RealPlan<R>::unravel(Wave<R> x) const {
  unravelPairs<W>(x, n_, turns_.data());
}
template <class R>
template <int W>
void RealPlan<R>::ravel(Wave<R> x) const {
  ravelPairs<W>(x, n_, turns_.data());
}

namespace {

// The plans that were used last. They belong to no run: other runs use them too.
template <class P>
class Plans {
 public:
  std::shared_ptr<const P> get(int64_t n) {
    {
      std::lock_guard lock(mutex_);
      for (auto it = plans_.begin(); it != plans_.end(); ++it) {
        if ((*it)->length() != n) continue;
        plans_.splice(plans_.begin(), plans_, it);
        return plans_.front();
      }
    }
    auto plan = std::make_shared<const P>(n);
    const int64_t bytes = plan->bytes();
    if (bytes > kMostBytes) return plan;
    std::lock_guard lock(mutex_);
    plans_.push_front(plan);
    bytes_ += bytes;
    while (plans_.size() > kMostPlans || bytes_ > kMostBytes) {
      bytes_ -= plans_.back()->bytes();
      plans_.pop_back();
    }
    return plan;
  }

 private:
  static constexpr size_t kMostPlans = 16;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  std::mutex mutex_;
  std::list<std::shared_ptr<const P>> plans_;  // the latest first
  int64_t bytes_ = 0;
};

// For good: operators may run while the process ends.
template <class P>
Plans<P>& plansOf() {
  static auto* const plans = new Plans<P>;
  return *plans;
}

}  // namespace

template <class R>
std::shared_ptr<const Plan<R>> planFor(int64_t n) {
  return plansOf<Plan<R>>().get(n);
}
template <class R>
std::shared_ptr<const RealPlan<R>> realPlanFor(int64_t n) {
  return plansOf<RealPlan<R>>().get(n);
}

#define WICK_INSTANTIATE(R)                                         \
  template class Plan<R>;                                           \
  template class RealPlan<R>;                                       \
  template Wave<R> Plan<R>::run<1>(Wave<R>, Wave<R>) const;         \
  template Wave<R> Plan<R>::run<kLanes<R>>(Wave<R>, Wave<R>) const; \
  template void RealPlan<R>::unravel<1>(Wave<R>) const;             \
  template void RealPlan<R>::unravel<kLanes<R>>(Wave<R>) const;     \
  template void RealPlan<R>::ravel<1>(Wave<R>) const;               \
  template void RealPlan<R>::ravel<kLanes<R>>(Wave<R>) const;       \
  template std::shared_ptr<const Plan<R>> planFor<R>(int64_t);      \
  template std::shared_ptr<const RealPlan<R>> realPlanFor<R>(int64_t);
WICK_INSTANTIATE(float)
WICK_INSTANTIATE(double)
#undef WICK_INSTANTIATE

}  // namespace wick::fft
