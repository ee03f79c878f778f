#include "python/interrupts.h"

#include <csignal>
#include <thread>

#include "python/object.h"

namespace wick::python {
namespace {

// Leaked, because a signal may come at any time.
const std::shared_ptr<std::atomic<bool>>& interrupted() {
  static auto* flag =
      new std::shared_ptr<std::atomic<bool>>(std::make_shared<std::atomic<bool>>(false));
  return *flag;
}
std::atomic<bool>* flag = nullptr;
std::thread::id main_thread;
struct sigaction before;

void onSignal(int signal, siginfo_t* info, void* context) {
  flag->store(true, std::memory_order_relaxed);
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

bool onMainThread() {
  thread_local const bool is_main = std::this_thread::get_id() == main_thread;
  return is_main;
}

// What came before belongs to Python alone.
void takeEarlierSignals() {
  if (!flag->load(std::memory_order_relaxed)) return;
  flag->store(false, std::memory_order_relaxed);
  if (PyErr_CheckSignals() != 0) throw PythonError();
}

Budget* budgetOfThread() {
  if (!onMainThread()) return nullptr;
  takeEarlierSignals();
  static auto* budget = new Budget(Budget::Bounds{{}, 0, interrupted()});
  return budget;
}

}  // namespace

Interruptible::Interruptible() : scope_(budgetOfThread()) {}

RunOptions interruptibleRun() {
  RunOptions options;
  if (onMainThread()) {
    takeEarlierSignals();
    options.interrupt = interrupted();
  }
  return options;
}

void watchInterrupts() {
  flag = interrupted().get();
  main_thread = std::this_thread::get_id();
  struct sigaction ours {};
  if (sigaction(SIGINT, nullptr, &before) != 0) return;
  const bool handled = (before.sa_flags & SA_SIGINFO) != 0 ||
                       (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  if (!handled) return;  // the program does not want to be told
  ours.sa_sigaction = onSignal;
  ours.sa_flags = before.sa_flags | SA_SIGINFO;
  ours.sa_mask = before.sa_mask;
  sigaction(SIGINT, &ours, nullptr);
}

}  // namespace wick::python
