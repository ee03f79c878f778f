// The thread on which machine code is made while programs run.
#pragma once

#include <chrono>
#include <functional>

namespace wick {

enum class CompileStart {
  AtOnce,
  // After kCompileGrace, and after the CompileHold in which it was submitted: the operators of a
  // call that meets its arguments for the first time pack weights and touch fresh memory, with
  // threads that wait for each other. A thread that compiles meanwhile would hold them up for
  // longer than its code saves.
  Later,
};
inline constexpr std::chrono::milliseconds kCompileGrace{20};

// While it lives, jobs that the calling thread submits with CompileStart::Later wait, but no longer
// than kLongestHold: a call that runs on profits from its code itself. Holds nest; the outermost
// counts. To be destroyed on the thread that made it.
class CompileHold {
 public:
  CompileHold();
  ~CompileHold();
  CompileHold(const CompileHold&) = delete;
  CompileHold& operator=(const CompileHold&) = delete;
};
inline constexpr std::chrono::milliseconds kLongestHold{300};

// While it lives no job begins on the compile thread. Making it waits for the one that runs, but no longer than
// until `end`. The process may be forked meanwhile: no lock of the compiler is taken then.
class CompilePause {
 public:
  explicit CompilePause(std::chrono::steady_clock::time_point end);
  ~CompilePause();
  CompilePause(const CompilePause&) = delete;
  CompilePause& operator=(const CompilePause&) = delete;
};

// Runs `job` on the compile thread; here and now when jitMode() is Sync. Jobs must not throw. Those
// that have not begun when the process ends are dropped; those that have not when its initial
// thread ends and it goes on wait until something else is submitted or waited for. Thread-safe.
//
// The thread has the same priority as those that run programs. With a lower one it does not take
// less time from them, because they wait for each other, and where they keep every processor busy
// it compiles for two to three times as long (docs/performance.md, "First calls").
void submitCompile(std::function<void()> job, CompileStart start = CompileStart::AtOnce);

// Waits until all jobs are done that were submitted before; what should start later starts now.
void waitForCompiles();

}  // namespace wick
