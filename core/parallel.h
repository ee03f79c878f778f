// parallelFor: a loop split among the OpenMP threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include "core/budget.h"

namespace wick {

// Elements of a pointwise loop below which a second thread does not pay.
inline constexpr int64_t kGrainSize = 32768;

namespace detail {
inline constinit thread_local int team_threads = 1;   // that were started for this thread
inline constinit thread_local int64_t next_look = 0;  // at its team, in nanoseconds
void startTeam(int threads);
void lookAtTeam(int64_t now);
}  // namespace detail

// Sets how many threads the parallel regions of the calling thread have, unless fewer do better.
void setTeamSize(int threads);
// What was set, or OpenMP's own default.
int teamSize();

// To be called now and then by a thread that begins parallel regions, outside of them. A region
// lasts as long as its slowest thread: when another process keeps one of them from running, all
// others wait for it, which made networks ten times slower on two processors. So the calling thread
// looks, some forty times a second, how long its team was kept waiting for processors (the system
// counts that), and does without as many threads as did not run. From time to time it tries again
// with all. Some nanoseconds.
inline void attendTeam() {
  if (detail::team_threads == 1) return;
  const int64_t now = coarseNow();
  if (now >= detail::next_look) detail::lookAtTeam(now);
}

// To be called before a parallel region of this thread that may have so many threads: sees to it
// that they begin on different processors, where there are as many. Cheap when they are there.
inline void ensureTeam(int threads) {
  if (threads > detail::team_threads) detail::startTeam(threads);
}

namespace detail {

// [begin, end) in pieces of `grain`, until the budget is exhausted.
template <class F>
void inPieces(int64_t begin, int64_t end, int64_t grain, const Budget& budget, F& body) {
  for (; begin < end && !budget.exhausted(); begin += std::min(grain, end - begin)) {
    body(begin, begin + std::min(grain, end - begin));
  }
}

}  // namespace detail

// Calls body(begin, end) for ranges that cover [0, n). A range has at least `grain` iterations
// unless n is smaller; work that is too small, or that already runs on such a thread, stays on the
// caller's. What `body` throws on one thread is thrown when all have ended. When the caller works
// under a budget (core/budget.h), so do all threads, ranges have `grain` iterations, and
// RuntimeError is thrown when it is exhausted before all are done.
template <class F>
void parallelFor(int64_t n, int64_t grain, F&& body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  Budget* const budget = currentBudget();
  if (n > grain) attendTeam();
  int64_t threads = n <= grain || omp_in_parallel()
                        ? 1
                        : std::min<int64_t>(omp_get_max_threads(), (n + grain - 1) / grain);
  if (threads <= 1) {
    if (budget) {
      detail::inPieces(0, n, grain, *budget, body);
      budget->check();
    } else {
      body(int64_t{0}, n);
    }
    return;
  }
  ensureTeam(static_cast<int>(threads));
  std::exception_ptr error;
  std::atomic_flag failed;
#pragma omp parallel num_threads(static_cast <int>(threads))
  try {
    const BudgetScope scope(budget);
    int64_t count = omp_get_num_threads();
    int64_t chunk = (n + count - 1) / count;
    int64_t begin = omp_get_thread_num() * chunk;
    int64_t end = std::min(n, begin + chunk);
    if (budget) {
      detail::inPieces(begin, end, grain, *budget, body);
    } else if (begin < end) {
      body(begin, end);
    }
  } catch (...) {
    if (!failed.test_and_set()) error = std::current_exception();
  }
  if (error) std::rethrow_exception(error);
  if (budget) budget->check();
}

}  // namespace wick
