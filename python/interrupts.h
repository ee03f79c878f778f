// KeyboardInterrupt ends what runs on Python's main thread.
#pragma once

#include "core/budget.h"
#include "runtime/run_options.h"

namespace wick::python {

// To be made with the GIL held before it is released for a computation. Operators on this thread
// leave off with a KeyboardInterrupt soon after SIGINT. Throws what a signal that came before
// raises.
class Interruptible {
 public:
  Interruptible();
  Interruptible(const Interruptible&) = delete;

 private:
  BudgetScope scope_;
};

// Options for a run of a script function, which ends so.
RunOptions interruptibleRun();

// Stands behind Python's own handler of SIGINT; called once by the module.
void watchInterrupts();

}  // namespace wick::python
