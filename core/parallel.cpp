// A new thread often begins on the processor of the thread that made it, when the others are busy
// for a moment. Both then wait for each other at every barrier, each spinning away its share of
// time before the other may run, so that an operator takes 8 ms instead of 0.1 until the system
// moves one of them, some tens of milliseconds later.
#include "core/parallel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

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

using Nanoseconds = int64_t;
// Between two looks at a team.
constexpr Nanoseconds kLook = 25'000'000;
// A look that comes later than this tells nothing of what came before.
constexpr Nanoseconds kForgotten = 10 * kLook;
// For how long a team stays smaller, at first and at most.
constexpr Nanoseconds kFirstRest = 50'000'000, kLongestRest = 1'600'000'000;
// Threads that were not running, on the average, from which on the team is too large. A lone
// process has a hundredth or two.
constexpr double kTooMany = 0.2;

// How long a thread has waited for a processor since it began; -1 when the system does not say.
Nanoseconds waitedFor(pid_t thread) {
  const std::string path = fmt::format("/proc/self/task/{}/schedstat", thread);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[96] = {};
  const ssize_t length = ::read(file, text, sizeof(text) - 1);
  close(file);
  // Time on a processor, time of waiting for one, number of times that it got one.
  long long ran = 0, waited = -1;
  return length > 0 && std::sscanf(text, "%lld %lld", &ran, &waited) == 2 ? waited : -1;
}

// The threads of the calling thread's parallel regions.
class Team {
 public:
  void clear() { members_.clear(); }
  void resize(int threads) { members_.assign(static_cast<size_t>(threads), {}); }
  // Called by each member.
  void join(int number) { members_[static_cast<size_t>(number)].id = gettid(); }

  // Of the members, how many were kept from running since the last look, on the average.
  double keptWaiting(Nanoseconds now) {
    double waited = 0;
    for (Member& m : members_) {
      if (m.id == 0) continue;
      const Nanoseconds total = waitedFor(m.id);
      if (total > m.waited && m.waited >= 0) waited += static_cast<double>(total - m.waited);
      m.waited = total;
    }
    const Nanoseconds since = now - std::exchange(last_look_, now);
    return since > 0 && since < kForgotten ? waited / static_cast<double>(since) : 0;
  }

  int wanted = 0;                 // threads that were set; 0: never
  bool smaller = false;           // fewer are used at present
  Nanoseconds rest = kFirstRest;  // for which the team will be smaller next time

 private:
  struct Member {
    pid_t id = 0;
    Nanoseconds waited = -1;
  };
  std::vector<Member> members_;
  Nanoseconds last_look_ = 0;
};
thread_local Team team;

// Set in a process that was forked by a thread with a team: OpenMP would wait for its threads,
// which the fork does not have, for ever.
std::atomic<bool> forked{false};

void noteFork() {
  if (detail::team_threads == 1) return;
  // A fork that began while fewer threads were used would use one for ever, and others fail.
  if (std::exchange(team.smaller, false)) omp_set_num_threads(team.wanted);
  detail::team_threads = 1;
  forked.store(true);
}

}  // namespace

void setTeamSize(int threads) {
  team.wanted = threads;
  team.smaller = false;
  omp_set_num_threads(threads);
}

int teamSize() {
  return team.wanted > 0 ? team.wanted : omp_get_max_threads();
}

void detail::lookAtTeam(Nanoseconds now) {
  if (omp_in_parallel()) return;
  const double waiting = team.keptWaiting(now);
  next_look = now + kLook;
  if (team.smaller) {
    team.smaller = false;
    omp_set_num_threads(team.wanted);
    return;
  }
  if (team.wanted == 0) team.wanted = omp_get_max_threads();
  if (waiting < kTooMany) {
    team.rest = kFirstRest;
    return;
  }
  const int without = std::max(1, static_cast<int>(std::lround(waiting)));
  team.smaller = true;
  omp_set_num_threads(std::max(1, team.wanted - without));
  next_look = now + team.rest;
  team.rest = std::min(2 * team.rest, kLongestRest);
}

void detail::startTeam(int threads) {
  if (forked.load(std::memory_order_relaxed)) {
    throwRuntimeError(
        "this process was forked after the engine had started threads, which a fork does not have: "
        "call set_num_threads(1) in it, or start it in another way (of Python's multiprocessing "
        "the method \"spawn\")");
  }
  [[maybe_unused]] static const int watched = pthread_atfork(nullptr, nullptr, noteFork);
  team_threads = threads;
  team.clear();
  // Whoever binds threads has said where they are to run.
  if (omp_in_parallel() || omp_get_proc_bind() != omp_proc_bind_false) return;
  Places places;
  places.settle();
  Team* const own = &team;
  own->resize(threads);
  std::atomic<int> waiting = threads - 1;
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() != 0) {
      places.settle();
      own->join(omp_get_thread_num());
      waiting.fetch_sub(1);
      waiting.notify_one();
    } else {
      // Asleep, not at the barrier, so that a thread on this processor gets to move away. The team
      // may be smaller than what was asked for.
      own->join(0);
      const int missing = threads - omp_get_num_threads();
      for (int left = waiting.load(); left > missing; left = waiting.load()) waiting.wait(left);
    }
  }
}

}  // namespace wick
