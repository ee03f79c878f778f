#include "runtime/kernels/lapack_time.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/error.h"
#include "runtime/kernels/lapack.h"

namespace wick::lapack {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kNever = INT64_MAX;
// Nobody waits for less.
constexpr double kFewOperations = 1e6;
// Operations a second that every machine reaches: what is in time at this rate needs no
// measurement.
constexpr double kSlowest = 1e8;
// A measurement this old is repeated before it refuses anything: the machine may have been busy.
constexpr int64_t kFresh = 1'000'000'000;
// Matrices that measurements begin and end with, and how often each is repeated.
constexpr int kFirstSide = 128, kLastSide = 2048, kRepeated = 2;
// Products of large matrices use more of a machine than those that were measured.
constexpr double kGrowth[] = {1.5, 1, 1, 1};

struct Rate {
  std::atomic<double> operations{0};  // a second; 0: not known
  std::atomic<int64_t> measured{0};   // when, of coarseNow()
};

template <class T>
Rate& rateOf(Work work) {
  static std::array<Rate, 4> rates;
  return rates[static_cast<size_t>(work)];
}

double kindOperations(Work work, double n) {
  switch (work) {
    case Work::Products:
      return luOperations(n, n);
    case Work::Bidiagonal:
      return singularOperations('S', n, n);
    case Work::Tridiagonal:
      return symmetricOperations(true, n);
    case Work::Hessenberg:
      return eigenOperations(true, n);
  }
  return 0;
}

// Numbers without any structure, in [-0.5, 0.5).
template <class T>
void fillArbitrarily(CountedVector<T>& values) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (T& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<T>(static_cast<double>(state >> 40) / (1 << 24) - 0.5);
  }
}

template <class T>
int64_t timeOf(Work work, int n) {
  using R = typename Lapack<T>::R;
  using C = std::complex<R>;
  const auto side = static_cast<size_t>(n);
  CountedVector<T> a(side * side);
  fillArbitrarily(a);
  CountedVector<int> pivots(side);
  CountedVector<R> values(side);
  CountedVector<T> u(work == Work::Bidiagonal ? side * side : 0), vt(u.size());
  CountedVector<C> w(work == Work::Hessenberg ? side : 0), v(w.size() * side);
  const auto begin = Clock::now();
  switch (work) {
    case Work::Products:
      Lapack<T>::getrf(n, n, a.data(), pivots.data());
      break;
    case Work::Bidiagonal:
      Lapack<T>::gesdd('S', n, n, a.data(), values.data(), u.data(), vt.data());
      break;
    case Work::Tridiagonal:
      Lapack<T>::syevd('V', 'L', n, a.data(), values.data());
      break;
    case Work::Hessenberg:
      Lapack<T>::geev(n, a.data(), w.data(), v.data());
      break;
  }
  return std::max<int64_t>(1, std::chrono::nanoseconds(Clock::now() - begin).count());
}

template <class T>
bool endsInTime(Work work, double operations, int64_t left) {
  const double rate = rateOf<T>(work).operations.load() * kGrowth[static_cast<size_t>(work)];
  return rate > 0 && operations / rate <= static_cast<double>(left) * 1e-9;
}

// Measures larger and larger matrices until one was so fast that the work would end in time, but
// for no more than about a quarter of `left`. The fastest counts: a measurement may be disturbed,
// the first by the start of the library's threads.
template <class T>
void measure(Work work, double operations, int64_t left) {
  // What is measured is not the run's own.
  const BudgetScope none(nullptr);
  Rate& rate = rateOf<T>(work);
  rate.operations.store(0);
  int64_t spent = 0;
  for (int n = kFirstSide, again = kRepeated;; --again) {
    int64_t took = 0;
    try {
      took = timeOf<T>(work, n);
    } catch (const RuntimeError&) {
      if (n == kFirstSide) throw;
      break;  // the process has no memory for more
    }
    spent += took;
    const double reached = kindOperations(work, n) * 1e9 / static_cast<double>(took);
    rate.operations.store(std::max(rate.operations.load(), reached));
    if (endsInTime<T>(work, operations, left - spent)) break;
    if (again == 0) {
      n *= 2;
      again = kRepeated;
      took *= 8;
    }
    if (n > kLastSide || spent + took > left / 4 || kindOperations(work, n) > operations) break;
  }
  rate.measured.store(coarseNow());
}

}  // namespace

template <class T>
void checkTime(Work work, double operations, const char* what) {
  const Budget* budget = currentBudget();
  if (!budget) return;
  budget->check();
  if (operations <= kFewOperations) return;
  const int64_t left = budget->timeLeft();
  if (left == kNever || operations / kSlowest <= static_cast<double>(left) * 1e-9) return;
  if (endsInTime<T>(work, operations, left)) return;
  if (coarseNow() - rateOf<T>(work).measured.load() > kFresh) {
    measure<T>(work, operations, left);
    budget->check();
    if (endsInTime<T>(work, operations, budget->timeLeft())) return;
  }
  throw RuntimeError(
      fmt::format("the run exceeded its time limit: {} would not end before it", what),
      "TimeoutError");
}

template void checkTime<float>(Work, double, const char*);
template void checkTime<double>(Work, double, const char*);
template void checkTime<std::complex<float>>(Work, double, const char*);
template void checkTime<std::complex<double>>(Work, double, const char*);

double luOperations(double m, double n) {
  const double k = std::min(m, n);
  return 2 * (m * n * k - (m + n) * k * k / 2 + k * k * k / 3);
}

double qrOperations(double m, double n) {
  return 2 * luOperations(m, n);
}

double singularOperations(char job, double m, double n) {
  const double low = std::min(m, n), high = std::max(m, n);
  if (job == 'N') return 4 * high * low * low;
  const double bases = job == 'A' ? 4 * high * high * low : 4 * high * low * low;
  return bases + 18 * low * low * low;
}

double symmetricOperations(bool vectors, double n) {
  return (vectors ? 9.0 : 4.0 / 3) * n * n * n;
}

double eigenOperations(bool vectors, double n) {
  return (vectors ? 25.0 : 10.0) * n * n * n;
}

}  // namespace wick::lapack
