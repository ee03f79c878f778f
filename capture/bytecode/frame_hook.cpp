#include "capture/bytecode/frame_hook.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>

#include <new>
#include <vector>

#include "capture/bytecode/c_stack.h"
#include "capture/bytecode/thread_end.h"

#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace wick::capture {
namespace {

// The state of a thread, which threads do not share. It has no destructor, so that it can be read
// until the thread has ended.
struct HookThread {
  // Whether the callback is asked. `HookState::active` counts the threads where it is true.
  bool active = false;
  // Whether the stack was found short: the hook is passed through where it could not be taken away.
  bool without_stack = false;
  // Whether somebody waits for the hook to be reached; see hookIsBeneath().
  bool probing = false;
  int scopes = 0;
  FrameCallback callback = nullptr;
  void* context = nullptr;
  HookedStack stack;
  bool stack_measured = false;
  // The frame that is being handed to the former hook, which may lead back to ours.
  _PyInterpreterFrame* handed_on = nullptr;
  // The function that callCodeMoving() calls, until its frame starts.
  PyObject* moving_function = nullptr;
  std::span<Object> moving_arguments;
};

constinit thread_local HookThread hook_thread;

// The GIL guards it.
struct HookState {
  int active = 0;         // threads with an active scope
  int without_stack = 0;  // threads that need the interpreter to have no hook of ours
  // The hook beneath ours; null for none. It stays when ours was taken away, because a hook that
  // found ours may call it for ever.
  _PyFrameEvalFunction former = nullptr;
  // A hook that is known not to call ours.
  _PyFrameEvalFunction stranger = nullptr;
};

constinit HookState hook_state;

PyObject* evaluateFrame(PyThreadState* thread, _PyInterpreterFrame* frame, int throws);

_PyFrameEvalFunction currentHook() {
  return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Main());
}

void setHook(_PyFrameEvalFunction hook) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Main(),
                                       hook ? hook : &_PyEval_EvalFrameDefault);
}

// Returns the file and the symbol of the code at an address.
std::string nameOfHook(_PyFrameEvalFunction hook) {
  Dl_info found{};
  if (!dladdr(reinterpret_cast<void*>(hook), &found)) return "an unknown library";
  std::string name = found.dli_fname ? found.dli_fname : "an unknown library";
  if (found.dli_sname) name += fmt::format(" ({})", found.dli_sname);
  return name;
}

// Returns whether a frame that starts now reaches our hook through the one that is set. The frame is
// that of a constant, which has no function.
bool hookIsBeneath() {
  HookThread& here = hook_thread;
  const bool active = std::exchange(here.active, false);
  here.probing = true;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Object code = Object::own(Py_CompileString("None", "<probe>", Py_eval_input));
  Object names = Object::own(PyDict_New());
  if (code && names) Object::own(PyEval_EvalCode(code.get(), names.get(), names.get()));
  PyErr_Restore(type, value, traceback);
  here.active = active;
  return !std::exchange(here.probing, false);
}

// Sets or takes away the hook, as the state asks for it.
void refreshHook() {
  HookState& state = hook_state;
  const bool wanted = state.active > 0 && state.without_stack == 0;
  const _PyFrameEvalFunction current = currentHook();
  if (!wanted) {
    if (current == &evaluateFrame) {
      setHook(state.former);
    } else if (current != &_PyEval_EvalFrameDefault && current != state.former) {
      // It was set over ours, or after our end.
      state.stranger = nullptr;
    }
    return;
  }
  if (current == &evaluateFrame) return;
  if (current == &_PyEval_EvalFrameDefault) {
    state.former = nullptr;
  } else {
    if (current != state.stranger && hookIsBeneath()) return;
    state.former = state.stranger = current;
  }
  setHook(&evaluateFrame);
}

void setActive(HookThread& here, bool active) {
  if (here.active == active) return;
  here.active = active;
  hook_state.active += active ? 1 : -1;
  refreshHook();
}

// Returns whether the thread that ends a scope holds the GIL. pthread_exit() unwinds daemon threads
// without it when the interpreter ends.
bool holdsGil(const PyThreadState* thread) {
  return _PyThreadState_UncheckedGet() == thread;
}

// A child of fork() has the thread that called it, and no other.
void forgetOtherThreads() {
  if (!PyInterpreterState_Main()) return;
  HookThread& here = hook_thread;
  hook_state.active = here.active ? 1 : 0;
  hook_state.without_stack = here.without_stack ? 1 : 0;
  // Only our own hook is taken away here, because nothing else is certain to be allowed.
  if ((!here.active || here.without_stack) && currentHook() == &evaluateFrame) {
    setHook(hook_state.former);
  }
}

// Runs the frame by the former hook.
[[gnu::noinline]] PyObject* runByFormerHook(PyThreadState* thread, _PyInterpreterFrame* frame,
                                            int throws) {
  HookThread& here = hook_thread;
  _PyInterpreterFrame* const around = std::exchange(here.handed_on, frame);
  PyObject* result = hook_state.former(thread, frame, throws);
  here.handed_on = around;
  return result;
}

// Runs the frame as if there were no hook of ours.
inline PyObject* runPlainly(PyThreadState* thread, _PyInterpreterFrame* frame, int throws) {
  if (!hook_state.former) [[likely]] {
    return _PyEval_EvalFrameDefault(thread, frame, throws);
  }
  return runByFormerHook(thread, frame, throws);
}

// Takes the hook away until its end.
class WithoutStack {
 public:
  WithoutStack(HookThread& here, PyThreadState* thread) : here_(here), thread_(thread) {
    here_.without_stack = true;
    ++hook_state.without_stack;
    refreshHook();
  }
  WithoutStack(const WithoutStack&) = delete;
  ~WithoutStack() noexcept(false) {
    here_.without_stack = false;
    if (!holdsGil(thread_)) return;
    --hook_state.without_stack;
    refreshHook();
  }

 private:
  HookThread& here_;
  PyThreadState* thread_;
};

bool onHookedStack(const HookThread& here) {
  const auto at = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return at - here.stack.low < here.stack.span;
}

// Runs a frame outside of the part of the stack where hooks may be, or one of a thread whose stack
// was not measured.
[[gnu::noinline]] PyObject* runWithoutStack(PyThreadState* thread, _PyInterpreterFrame* frame,
                                            int throws) {
  HookThread& here = hook_thread;
  if (!here.stack_measured) {
    here.stack = measureHookedStack();
    here.stack_measured = true;
    if (onHookedStack(here)) return evaluateFrame(thread, frame, throws);
  }
  here.probing = false;
  if (here.without_stack) return runPlainly(thread, frame, throws);
  const WithoutStack without(here, thread);
  return runPlainly(thread, frame, throws);
}

// Gives up the references of the caller: the frame has its own.
[[gnu::noinline]] void giveUpArguments(HookThread& here) {
  here.moving_function = nullptr;
  for (Object& each : std::exchange(here.moving_arguments, {})) each = Object();
}

// Asks the callback.
[[gnu::noinline]] std::optional<PyObject*> askCallback(HookThread& here, PyThreadState* thread,
                                                       _PyInterpreterFrame* frame,
                                                       const CodeSlot* slot) {
  std::optional<PyObject*> answer = nullptr;
  CodeData* const data = CodeSlot::keep(slot ? slot->data() : nullptr);
  try {
    answer = here.callback(here.context, FrameView(frame), data);
  } catch (const abi::__forced_unwind&) {
    stopThread();
  } catch (const PythonError&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "a C++ exception of an unknown type");
  }
  CodeSlot::release(data);
  if (!answer) return answer;
  return _Py_CheckFunctionResult(thread, nullptr, *answer, "a callback of the frame hook");
}

// The hook. All paths that run a frame are tail calls, which need no C stack of their own.
PyObject* evaluateFrame(PyThreadState* thread, _PyInterpreterFrame* frame, int throws) {
  HookThread& here = hook_thread;
  if (!onHookedStack(here)) [[unlikely]] {
    return runWithoutStack(thread, frame, throws);
  }
  if (reinterpret_cast<PyObject*>(frame->f_func) == here.moving_function) [[unlikely]] {
    giveUpArguments(here);
  }
  if (here.handed_on == frame) [[unlikely]] {
    // The former hook was set anew over ours, and calls ours.
    return _PyEval_EvalFrameDefault(thread, frame, throws);
  }
  if (!here.active) {
    here.probing = false;
    return runPlainly(thread, frame, throws);
  }
  if (plainReason(frame, throws) != PlainFrame::kCanBeCaptured || !here.callback ||
      thread->cframe->use_tracing || thread->c_tracefunc || thread->c_profilefunc ||
      thread->recursion_remaining <= 0 || _Py_IsFinalizing()) {
    return runPlainly(thread, frame, throws);
  }
  const CodeSlot* slot = CodeSlot::find(frame->f_code);
  if (slot && slot->skipped()) return runPlainly(thread, frame, throws);
  const std::optional<PyObject*> answer = askCallback(here, thread, frame, slot);
  if (answer) return *answer;
  return runPlainly(thread, frame, throws);
}

void checkOtherHook() {
  const _PyFrameEvalFunction current = currentHook();
  if (current == &_PyEval_EvalFrameDefault || current == &evaluateFrame) return;
  const std::string name = nameOfHook(current);
  if (name.find("pydevd") == std::string::npos) return;
  throw FrameHookError("a debugger has set its frame hook, which must see each frame: " + name);
}

}  // namespace

HookScope::HookScope(FrameCallback callback, void* context) : thread_(PyThreadState_Get()) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    throw FrameHookError("capture works in the main interpreter only");
  }
  prepareCodeData();
  checkOtherHook();
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, forgetOtherThreads);
  HookThread& here = hook_thread;
  callback_ = std::exchange(here.callback, callback);
  context_ = std::exchange(here.context, context);
  active_ = here.active;
  ++here.scopes;
  setActive(here, true);
}

HookScope::~HookScope() noexcept(false) {
  HookThread& here = hook_thread;
  const bool last = --here.scopes == 0;
  here.callback = last ? nullptr : callback_;
  here.context = last ? nullptr : context_;
  if (holdsGil(thread_)) setActive(here, !last && active_);
}

PauseHook::PauseHook() : active_(hook_thread.active), thread_(nullptr) {
  if (!active_) return;
  thread_ = PyThreadState_Get();
  setActive(hook_thread, false);
}

PauseHook::~PauseHook() noexcept(false) {
  HookThread& here = hook_thread;
  if (active_ && here.scopes > 0 && holdsGil(thread_)) setActive(here, true);
}

bool hookActive() {
  return hook_thread.active;
}

bool hookInstalled() {
  return currentHook() == &evaluateFrame;
}

namespace {

// Returns the number of cells in the closure, after checking all parts.
Py_ssize_t checkParts(const FunctionParts& parts) {
  if (!parts.code || !parts.globals || !PyDict_Check(parts.globals)) {
    throw BytecodeError("a function needs code, and a dict of globals");
  }
  const Py_ssize_t cells = parts.closure ? PyTuple_Size(parts.closure) : 0;
  if (cells < 0) throw PythonError();
  if (cells != parts.code->co_nfreevars) {
    throw BytecodeError(fmt::format("{} cells for code with {} free variables", cells,
                                    static_cast<int>(parts.code->co_nfreevars)));
  }
  for (Py_ssize_t i = 0; i < cells; ++i) {
    if (PyCell_Check(PyTuple_GET_ITEM(parts.closure, i))) continue;
    throw BytecodeError(fmt::format("element {} of a closure is no cell", i));
  }
  return cells;
}

void replaceReference(PyObject*& place, PyObject* object) {
  Py_XINCREF(object);
  Py_XSETREF(place, object);
}

}  // namespace

Object makeFunction(const FunctionParts& parts) {
  const Py_ssize_t cells = checkParts(parts);
  PyObject* const code = reinterpret_cast<PyObject*>(parts.code);
  Object result = Object::checked(PyFunction_New(code, parts.globals));
  auto* const function = reinterpret_cast<PyFunctionObject*>(result.get());
  if (parts.builtins) replaceReference(function->func_builtins, parts.builtins);
  if (cells > 0) replaceReference(function->func_closure, parts.closure);
  if (parts.documentation) replaceReference(function->func_doc, parts.documentation);
  return result;
}

void makeFunctionAgain(Object& made, const FunctionParts& parts) {
  auto* const function = reinterpret_cast<PyFunctionObject*>(made.get());
  if (!function || Py_REFCNT(function) != 1 || function->func_globals != parts.globals ||
      function->func_builtins != parts.builtins || function->func_doc != parts.documentation) {
    made = makeFunction(parts);
    return;
  }
  const Py_ssize_t cells = checkParts(parts);
  function->func_version = 0;
  replaceReference(function->func_name, parts.code->co_name);
  replaceReference(function->func_qualname, parts.code->co_qualname);
  replaceReference(function->func_closure, cells > 0 ? parts.closure : nullptr);
  replaceReference(function->func_code, reinterpret_cast<PyObject*>(parts.code));
}

Object callCode(const FunctionParts& parts, std::span<PyObject* const> arguments) {
  const Object function = makeFunction(parts);
  return Object::checked(callPython([&] {
    return PyObject_Vectorcall(function.get(), arguments.data(), arguments.size(), nullptr);
  }));
}

Object callMoving(PyObject* function, std::span<Object> arguments) {
  // Waits for the frame of the function, and lets a call around wait again.
  class Moving {
   public:
    Moving(PyObject* function, std::span<Object> arguments)
        : function_(std::exchange(hook_thread.moving_function, function)),
          arguments_(std::exchange(hook_thread.moving_arguments, arguments)) {}
    Moving(const Moving&) = delete;
    ~Moving() {
      hook_thread.moving_function = function_;
      hook_thread.moving_arguments = arguments_;
    }

   private:
    PyObject* function_;
    std::span<Object> arguments_;
  };
  // Gives up what the frame did not take.
  struct Rest {
    std::span<Object> arguments;
    ~Rest() {
      for (Object& each : arguments) each = Object();
    }
  } const rest{arguments};
  constexpr size_t kFew = 16;
  PyObject* few[kFew];
  std::vector<PyObject*> many;
  PyObject** pointers = few;
  if (arguments.size() > kFew) {
    many.resize(arguments.size());
    pointers = many.data();
  }
  for (size_t i = 0; i < arguments.size(); ++i) pointers[i] = arguments[i].get();
  const Moving moving(function, arguments);
  return Object::checked(callPython(
      [&] { return PyObject_Vectorcall(function, pointers, arguments.size(), nullptr); }));
}

Object callCodeMoving(const FunctionParts& parts, std::span<Object> arguments) {
  Object function;
  try {
    function = makeFunction(parts);
  } catch (...) {
    for (Object& each : arguments) each = Object();
    throw;
  }
  return callMoving(function.get(), arguments);
}

std::string otherHook() {
  const _PyFrameEvalFunction current = currentHook();
  const bool none = current == &_PyEval_EvalFrameDefault || current == &evaluateFrame;
  return none ? std::string() : nameOfHook(current);
}

}  // namespace wick::capture
