// A thread that is in the engine is counted once, however often it enters. Who forks closes the gate,
// waits until the count is zero and the compile thread rests, forks, and opens it again. It holds
// no GIL meanwhile, because those in the engine may need it to leave. Nothing here is a mutex, which the
// child could not repair.
#include "python/fork_gate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

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
// Belongs to who closed the gate.
std::optional<CompilePause> pause;

void open() noexcept {
  pause.reset();
  closed.store(false);
  closed.notify_all();
}

PyObject* beforeFork(PyObject*, PyObject*) {
  // Others may wait for what a thread in the engine holds, so it does not wait for them.
  if (depth++ > 0) Py_RETURN_NONE;
  PyThreadState* const state = PyEval_SaveThread();
  while (closed.exchange(true)) closed.wait(true);
  const Clock::time_point end = Clock::now() + kLongestWait;
  while (inside.load() > 0 && Clock::now() < end) std::this_thread::sleep_for(kLook);
  pause.emplace(end);
  PyEval_RestoreThread(state);
  Py_RETURN_NONE;
}

PyObject* afterForkInParent(PyObject*, PyObject*) {
  if (--depth == 0) open();
  Py_RETURN_NONE;
}

PyObject* afterForkInChild(PyObject*, PyObject*) {
  --depth;
  // The other threads are gone, whether they were in the engine or had closed the gate themselves.
  inside.store(depth > 0 ? 1 : 0);
  open();
  Py_RETURN_NONE;
}

}  // namespace

void enterEngine() noexcept {
  if (depth++ > 0) return;
  for (;;) {
    inside.fetch_add(1);
    if (!closed.load()) return;
    inside.fetch_sub(1);
    closed.wait(true);
  }
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
