// A thread that is in the engine is counted once, however often it enters. Who forks closes the gate,
// waits until the count is zero and the compile thread rests, forks, and opens it again. It holds
// no GIL meanwhile, because those in the engine may need it to leave. Nothing here is a mutex, which the
// child could not repair, and nobody waits for ever: what programs of Python do before they fork may wait
// for a thread that waits here.
#include "python/fork_gate.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "python/object.h"
#include "runtime/compile_queue.h"

namespace wick::python {

namespace {

using Clock = std::chrono::steady_clock;

// A call of another thread may take as long as it likes, and need not hold a lock for all that.
constexpr std::chrono::seconds kLongestWait{10};
constexpr std::chrono::microseconds kLook{100};

std::atomic<int> inside{0};  // threads
std::atomic<bool> closed{false};
// Of the calling thread: entries that it has not left.
thread_local constinit int depth = 0;
// Whether the calling thread has closed the gate.
thread_local constinit bool closes = false;
// Belongs to who closed it.
std::optional<CompilePause> pause;

// Until the condition holds or the time is over.
template <class Condition>
void waitFor(Clock::time_point end, Condition holds) {
  while (!holds() && Clock::now() < end) std::this_thread::sleep_for(kLook);
}

PyObject* beforeFork(PyObject*, PyObject*) {
  // Others may wait for what a thread in the engine holds, so it does not wait for them.
  if (depth++ > 0) Py_RETURN_NONE;
  PyThreadState* const state = PyEval_SaveThread();
  const Clock::time_point end = Clock::now() + kLongestWait;
  waitFor(end, [] { return closes = !closed.exchange(true); });
  waitFor(end, [] { return inside.load() == 0; });
  if (closes) pause.emplace(end);
  PyEval_RestoreThread(state);
  Py_RETURN_NONE;
}

PyObject* afterForkInParent(PyObject*, PyObject*) {
  --depth;
  if (std::exchange(closes, false)) {
    pause.reset();
    closed.store(false);
  }
  Py_RETURN_NONE;
}

PyObject* afterForkInChild(PyObject*, PyObject*) {
  --depth;
  // The other threads are gone, whether they were in the engine or had closed the gate themselves.
  inside.store(depth > 0 ? 1 : 0);
  closes = false;
  pause.reset();
  closed.store(false);
  Py_RETURN_NONE;
}

}  // namespace

void enterEngine() noexcept {
  if (depth++ > 0) return;
  inside.fetch_add(1);
  if (!closed.load()) return;
  inside.fetch_sub(1);
  bool counted = false;
  waitFor(Clock::now() + kLongestWait, [&] {
    inside.fetch_add(1);
    counted = !closed.load();
    if (!counted) inside.fetch_sub(1);
    return counted;
  });
  if (counted) return;
  // Who forks may wait for this thread, which is not to be held up at every entry.
  closed.store(false);
  inside.fetch_add(1);
}

void leaveEngine() noexcept {
  if (--depth == 0) inside.fetch_sub(1);
}

void continueInPython() noexcept {
  ++depth;
}

void returnFromPython() noexcept {
  --depth;
}

bool watchForks() {
  static PyMethodDef before = {"before_fork", beforeFork, METH_NOARGS, nullptr};
  static PyMethodDef in_parent = {"after_fork_in_parent", afterForkInParent, METH_NOARGS, nullptr};
  static PyMethodDef in_child = {"after_fork_in_child", afterForkInChild, METH_NOARGS, nullptr};
  const Owned os(PyImport_ImportModule("os"));
  const Owned watch(os ? PyObject_GetAttrString(os.get(), "register_at_fork") : nullptr);
  const Owned none(PyTuple_New(0));
  const Owned how(PyDict_New());
  if (!watch || !none || !how) return false;
  for (PyMethodDef* method : {&before, &in_parent, &in_child}) {
    const char* const name = method == &before      ? "before"
                             : method == &in_parent ? "after_in_parent"
                                                    : "after_in_child";
    const Owned function(PyCFunction_New(method, nullptr));
    if (!function || PyDict_SetItemString(how.get(), name, function.get()) != 0) return false;
  }
  return static_cast<bool>(Owned(PyObject_Call(watch.get(), none.get(), how.get())));
}

}  // namespace wick::python
