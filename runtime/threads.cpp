#include "runtime/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "runtime/thread_pool.h"

namespace wick {
namespace {

// OpenMP ends the process when the system gives it no more threads.
constexpr int kMostThreads = 1024;

std::atomic<int> requested{0};  // 0: never set
thread_local int applied = 0;   // OpenMP keeps its setting a thread

}  // namespace

void setNumThreads(int n) {
  requested.store(std::clamp(n, 1, kMostThreads), std::memory_order_relaxed);
  applyNumThreads();
}

int numThreads() {
  applyNumThreads();
  return omp_get_max_threads();
}

void applyNumThreads() {
  int n = requested.load(std::memory_order_relaxed);
  if (n == applied) return;
  omp_set_num_threads(n);
  applied = n;
}

void setNumForkThreads(size_t n) {
  if (!ThreadPool::setGlobalSize(n)) {
    throw UsageError("setNumForkThreads: the thread pool is running already");
  }
}

size_t numForkThreads() {
  return ThreadPool::global().size();
}

}  // namespace wick
