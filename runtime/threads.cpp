#include "runtime/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "core/error.h"
#include "core/parallel.h"
#include "core/processors.h"
#include "runtime/thread_pool.h"

namespace wick {
namespace {

// OpenMP ends the process when the system gives it no more threads.
constexpr int kMostThreads = 1024;

// Where nobody says how many, as many as there are processors for the process.
int defaultThreads() {
  const int wanted = std::getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : availableProcessors();
  return std::clamp(wanted, 1, kMostThreads);
}

std::atomic<int> requested{0};  // 0: never set
thread_local int applied = 0;   // OpenMP keeps its setting a thread

}  // namespace

void setNumThreads(int n) {
  if (n < 1 || n > kMostThreads) {
    throw UsageError(
        fmt::format("setNumThreads: expected 1 to {} threads, got {}", kMostThreads, n));
  }
  requested.store(n, std::memory_order_relaxed);
  applyNumThreads();
}

int numThreads() {
  applyNumThreads();
  return teamSize();
}

void applyNumThreads() {
  int n = requested.load(std::memory_order_relaxed);
  if (n == 0) n = applied == 0 ? defaultThreads() : applied;
  if (n != applied) {
    setTeamSize(n);
    applied = n;
  }
  attendTeam();
}

void setNumForkThreads(size_t n) {
  if (!ThreadPool::setGlobalSize(n)) {
    throw UsageError(
        "setNumForkThreads: expected to be called before the first fork, whose threads run "
        "already");
  }
}

size_t numForkThreads() {
  return ThreadPool::global().size();
}

}  // namespace wick
