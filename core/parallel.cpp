// A new thread often begins on the processor of the thread that made it, when the others are busy
// for a moment. Both then wait for each other at every barrier, each spinning away its share of
// time before the other may run, so that an operator takes 8 ms instead of 0.1 until the system
// moves one of them, some tens of milliseconds later.
#include "core/parallel.h"

#include <sched.h>

#include <atomic>
#include <mutex>

namespace wick {

namespace {

// The processors on which the threads of a team were seen.
class Places {
 public:
  Places() { CPU_ZERO(&taken_); }

  // Notes the calling thread's processor, or moves the thread to one that no other has. It may go
  // on to all of its processors from there: this is no binding.
  void settle() {
    const int here = sched_getcpu();
    cpu_set_t allowed;
    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
      return;
    }
    std::lock_guard lock(mutex_);
    int to = here;
    for (int i = 0; i < CPU_SETSIZE && CPU_ISSET(to, &taken_); ++i) {
      do {
        to = (to + 1) % CPU_SETSIZE;
      } while (!CPU_ISSET(to, &allowed));
    }
    if (to != here && !CPU_ISSET(to, &taken_)) {
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(to, &only);
      if (sched_setaffinity(0, sizeof(only), &only) == 0) {
        sched_setaffinity(0, sizeof(allowed), &allowed);
      }
    }
    CPU_SET(to, &taken_);
  }

 private:
  std::mutex mutex_;
  cpu_set_t taken_;
};

}  // namespace

void detail::startTeam(int threads) {
  team_threads = threads;
  // Whoever binds threads has said where they are to run.
  if (omp_in_parallel() || omp_get_proc_bind() != omp_proc_bind_false) return;
  Places places;
  places.settle();
  std::atomic<int> waiting = threads - 1;
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() != 0) {
      places.settle();
      waiting.fetch_sub(1);
      waiting.notify_one();
    } else {
      // Asleep, not at the barrier, so that a thread on this processor gets to move away. The team
      // may be smaller than what was asked for.
      const int missing = threads - omp_get_num_threads();
      for (int left = waiting.load(); left > missing; left = waiting.load()) waiting.wait(left);
    }
  }
}

}  // namespace wick
