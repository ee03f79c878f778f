// Routines of OpenBLAS, whose library is loaded when the first of them is called.
//
// It is not linked, for loading it starts its threads, which then poll for work for tens of
// milliseconds: in every process, although few programs factorize matrices or multiply doubles,
// and just when the first operators run.
#pragma once

#include <atomic>

namespace wick {

// The address of a function of OpenBLAS. RuntimeError when the library cannot be loaded or lacks
// it. Thread-safe.
void* openBlasFunction(const char* name);

// While one lives OpenBLAS uses the calling thread alone, whatever the process has set. Its threads
// are as many as the machine has processors, not as many as were asked for, and they wait for each
// other by polling: where they do not all run, a factorization of 256 rows takes 100 times as long.
// What is worth it is split among the engine's own threads.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
};

// A function of OpenBLAS, called like one. Thread-safe.
template <class Signature>
class OpenBlasRoutine;
template <class... Arguments>
class OpenBlasRoutine<void(Arguments...)> {
 public:
  // `name` must outlive the routine.
  constexpr explicit OpenBlasRoutine(const char* name) : name_(name) {}
  void operator()(Arguments... arguments) const {
    auto* function = function_.load(std::memory_order_relaxed);
    if (!function) {
      // Several threads may get here; they find the same.
      function = reinterpret_cast<Function*>(openBlasFunction(name_));
      function_.store(function, std::memory_order_relaxed);
    }
    const OneBlasThread alone;
    function(arguments...);
  }

 private:
  using Function = void(Arguments...);
  const char* name_;
  mutable std::atomic<Function*> function_{nullptr};
};

}  // namespace wick
