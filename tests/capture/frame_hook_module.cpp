// The module `frame_hook_module`: the frame hook of capture/bytecode/ for tests in Python.
#include <fmt/format.h>

#include <memory>
#include <new>
#include <vector>

#include "capture/bytecode/c_stack.h"
#include "capture/bytecode/frame_hook.h"
#include "capture/bytecode/thread_end.h"

namespace wick::capture {
namespace frame_hook_module {
namespace {

PyObject* hook_error = nullptr;
PyObject* bytecode_error = nullptr;

// Runs C++ for Python. Not noexcept: the interpreter's end unwinds daemon threads.
template <class F>
PyObject* guarded(F&& f) {
  try {
    return f().leak();
  } catch (const PythonError&) {
  } catch (const FrameHookError& error) {
    PyErr_SetString(hook_error, error.what());
  } catch (const BytecodeError& error) {
    PyErr_SetString(bytecode_error, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

Object called(PyObject* function, PyObject* args) {
  return Object::checked(callPython([&] { return PyObject_CallObject(function, args); }));
}

template <class... Args>
void parse(PyObject* args, const char* format, Args... targets) {
  if (!PyArg_ParseTuple(args, format, targets...)) throw PythonError();
}

Object none() {
  return Object::share(Py_None);
}
Object truth(bool value) {
  return Object::own(PyBool_FromLong(value));
}

PyCodeObject* codeOf(PyObject* object) {
  return reinterpret_cast<PyCodeObject*>(object);
}

// Data of a code object: any object.
class Held : public CodeData {
 public:
  explicit Held(PyObject* object) : object_(Object::share(object)) {}
  PyObject* get() const { return object_.get(); }

 private:
  Object object_;
};

// Asks a callable of Python: callback(code, slots, flags) -> NotImplemented for the plain run, or the
// value. Slots that are null are None; flags are a dict of everything else that a frame shows.
std::optional<PyObject*> askPython(void* context, FrameView frame, CodeData* data) {
  const PauseHook pause;
  const int count = frame.slotCount();
  Object slots = Object::checked(PyTuple_New(count));
  for (int i = 0; i < count; ++i) {
    PyObject* slot = frame.slot(i);
    PyTuple_SET_ITEM(slots.get(), i, Object::share(slot ? slot : Py_None).leak());
  }
  const Object flags = Object::checked(Py_BuildValue(
      "{sOsOsOsOsOsOsOsO}", "function", frame.function(), "globals", frame.globals(), "builtins",
      frame.builtins(), "closure", frame.closure() ? frame.closure() : Py_None, "data",
      data ? static_cast<Held*>(data)->get() : Py_None, "has_locals",
      truth(frame.hasLocals()).get(), "generator", truth(frame.ownedByGenerator()).get(), "started",
      truth(frame.started()).get()));
  const Object args =
      Object::checked(Py_BuildValue("(OOO)", frame.code(), slots.get(), flags.get()));
  slots = Object();
  Object value = called(static_cast<PyObject*>(context), args.get());
  if (value.get() == Py_NotImplemented) return std::nullopt;
  return value.leak();
}

// Calls function(*rest) within a scope.
PyObject* callWith(FrameCallback callback, void* context, PyObject* function, PyObject* rest) {
  return guarded([&] {
    const HookScope scope(callback, context);
    return called(function, rest);
  });
}

// run(callback, function, *args) -> what the function returns, within a scope
PyObject* run(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) < 2) return PyErr_Format(PyExc_TypeError, "run(callback, function)");
  const Object rest = Object::own(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
  if (!rest) return nullptr;
  return callWith(askPython, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1), rest.get());
}

long long plain_calls = 0;

// A callback in C++ that answers as its name says.
using Callbacks = std::pair<const char*, FrameCallback>;
const Callbacks kCallbacks[] = {
    {"plain",
     [](void*, FrameView, CodeData*) -> std::optional<PyObject*> {
       ++plain_calls;
       return std::nullopt;
     }},
    {"value",
     [](void*, FrameView, CodeData*) -> std::optional<PyObject*> { return PyLong_FromLong(7); }},
    // Returns the arguments' sum, after it has taken them.
    {"take",
     [](void*, FrameView frame, CodeData*) -> std::optional<PyObject*> {
       if (frame.slotCount() < 2) return std::nullopt;
       const Object left = frame.takeSlot(0), right = frame.takeSlot(1);
       if (!left || !right) throw BytecodeError("no arguments");
       return Object::checked(PyNumber_Add(left.get(), right.get())).leak();
     }},
    // Swaps two arguments for the plain run, and puts others in and out.
    {"swap",
     [](void*, FrameView frame, CodeData*) -> std::optional<PyObject*> {
       if (frame.slotCount() < 2) return std::nullopt;
       Object left = frame.takeSlot(0);
       frame.setSlot(0, frame.takeSlot(1));
       frame.setSlot(1, Object::share(Py_None));
       frame.setSlot(1, left);
       return std::nullopt;
     }},
    {"clear",
     [](void*, FrameView frame, CodeData*) -> std::optional<PyObject*> {
       frame.clearSlots();
       return Object::share(Py_None).leak();
     }},
    {"no slot",
     [](void*, FrameView frame, CodeData*) -> std::optional<PyObject*> {
       return Object::share(frame.slot(frame.slotCount())).leak();
     }},
    {"negative slot",
     [](void*, FrameView frame, CodeData*) -> std::optional<PyObject*> {
       return frame.takeSlot(-1).leak();
     }},
    {"exception",
     [](void*, FrameView, CodeData*) -> std::optional<PyObject*> {
       throw std::runtime_error("thrown by C++");
     }},
    {"memory",
     [](void*, FrameView, CodeData*) -> std::optional<PyObject*> { throw std::bad_alloc(); }},
    {"number", [](void*, FrameView, CodeData*) -> std::optional<PyObject*> { throw 1; }},
    {"python",
     [](void*, FrameView, CodeData*) -> std::optional<PyObject*> {
       PyErr_SetString(PyExc_KeyError, "by Python");
       throw PythonError();
     }},
    {"null", [](void*, FrameView, CodeData*) -> std::optional<PyObject*> { return nullptr; }},
    {"value and exception",
     [](void*, FrameView, CodeData*) -> std::optional<PyObject*> {
       PyErr_SetString(PyExc_KeyError, "by Python");
       return Object::share(Py_None).leak();
     }},
};

// run_by(name, function, *args): as run(), with one of the callbacks above
PyObject* runBy(PyObject*, PyObject* args) {
  if (PyTuple_GET_SIZE(args) < 2) return PyErr_Format(PyExc_TypeError, "run_by(name, function)");
  const Object rest = Object::own(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
  const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 0));
  if (!rest || !name) return nullptr;
  for (const auto& [each, callback] : kCallbacks) {
    if (std::string_view(each) != name) continue;
    return callWith(callback, nullptr, PyTuple_GET_ITEM(args, 1), rest.get());
  }
  return PyErr_Format(PyExc_ValueError, "no callback has this name");
}

// plain_calls() -> how often the callback "plain" was asked
PyObject* plainCalls(PyObject*, PyObject*) {
  return PyLong_FromLongLong(plain_calls);
}

// run_paused(function, *args)
PyObject* runPaused(PyObject*, PyObject* args) {
  return guarded([&] {
    if (PyTuple_GET_SIZE(args) < 1) throw BytecodeError("run_paused(function, *args)");
    const Object rest = Object::checked(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
    const PauseHook pause;
    return called(PyTuple_GET_ITEM(args, 0), rest.get());
  });
}

// Scopes that Python opens and closes by itself, of each thread.
thread_local std::vector<std::pair<Object, std::unique_ptr<HookScope>>>* open_scopes = nullptr;

// begin(callback), end()
PyObject* begin(PyObject*, PyObject* callback) {
  return guarded([&] {
    if (!open_scopes) open_scopes = new std::vector<std::pair<Object, std::unique_ptr<HookScope>>>;
    auto scope = std::make_unique<HookScope>(askPython, callback);
    open_scopes->emplace_back(Object::share(callback), std::move(scope));
    return none();
  });
}

PyObject* end(PyObject*, PyObject*) {
  return guarded([&] {
    if (!open_scopes || open_scopes->empty()) throw BytecodeError("no scope is open");
    auto last = std::move(open_scopes->back());
    open_scopes->pop_back();
    last.second.reset();
    return none();
  });
}

// active(), installed(), other_hook(), remaining_stack()
PyObject* active(PyObject*, PyObject*) {
  return truth(hookActive()).leak();
}
PyObject* installed(PyObject*, PyObject*) {
  return truth(hookInstalled()).leak();
}
PyObject* other(PyObject*, PyObject*) {
  return PyUnicode_FromString(otherHook().c_str());
}
PyObject* remaining(PyObject*, PyObject*) {
  return PyLong_FromSize_t(remainingStack());
}

// set_data(code, object), get_data(code) -> object or None, skip(code, skipped)
PyObject* setData(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *object = nullptr;
    parse(args, "OO", &code, &object);
    auto data = object == Py_None ? nullptr : std::make_unique<Held>(object);
    setCodeData(codeOf(code), std::move(data));
    return none();
  });
}

PyObject* getData(PyObject*, PyObject* code) {
  return guarded([&] {
    const CodeData* data = codeData(codeOf(code));
    return data ? Object::share(static_cast<const Held*>(data)->get()) : none();
  });
}

PyObject* skip(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    int skipped = 0;
    parse(args, "Op", &code, &skipped);
    setSkipped(codeOf(code), skipped);
    return none();
  });
}

// all_data() -> [(code, object or None)], data_count(), reset()
PyObject* allData(PyObject*, PyObject*) {
  return guarded([&] {
    Object list = Object::checked(PyList_New(0));
    forEachCode([&](PyCodeObject* code, CodeData* data) {
      PyObject* held = data ? static_cast<Held*>(data)->get() : Py_None;
      const Object pair = Object::checked(Py_BuildValue("(OO)", code, held));
      if (PyList_Append(list.get(), pair.get()) < 0) throw PythonError();
    });
    return list;
  });
}

PyObject* dataCount(PyObject*, PyObject*) {
  return PyLong_FromSize_t(countCodeData());
}

PyObject* reset(PyObject*, PyObject*) {
  return guarded([] {
    resetCodes();
    return none();
  });
}

// call_code(code, globals, builtins or None, closure or None, args, moves=False); moves empties the
// list of arguments
PyObject* callCodeOf(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code, *globals, *builtins, *closure, *list;
    int moves = 0;
    parse(args, "O!OOOO!|p", &PyCode_Type, &code, &globals, &builtins, &closure, &PyList_Type,
          &list, &moves);
    const FunctionParts parts{codeOf(code), globals, builtins == Py_None ? nullptr : builtins,
                              closure == Py_None ? nullptr : closure};
    std::vector<Object> arguments;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      arguments.push_back(Object::share(PyList_GET_ITEM(list, i)));
    }
    if (moves) {
      if (PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr) < 0) throw PythonError();
      return callCodeMoving(parts, arguments);
    }
    std::vector<PyObject*> borrowed;
    for (const Object& each : arguments) borrowed.push_back(each.get());
    return callCode(parts, borrowed);
  });
}

PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, nullptr},
    {"run_by", runBy, METH_VARARGS, nullptr},
    {"plain_calls", plainCalls, METH_NOARGS, nullptr},
    {"run_paused", runPaused, METH_VARARGS, nullptr},
    {"begin", begin, METH_O, nullptr},
    {"end", end, METH_NOARGS, nullptr},
    {"active", active, METH_NOARGS, nullptr},
    {"installed", installed, METH_NOARGS, nullptr},
    {"other_hook", other, METH_NOARGS, nullptr},
    {"remaining_stack", remaining, METH_NOARGS, nullptr},
    {"set_data", setData, METH_VARARGS, nullptr},
    {"get_data", getData, METH_O, nullptr},
    {"skip", skip, METH_VARARGS, nullptr},
    {"all_data", allData, METH_NOARGS, nullptr},
    {"data_count", dataCount, METH_NOARGS, nullptr},
    {"reset", reset, METH_NOARGS, nullptr},
    {"call_code", callCodeOf, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "frame_hook_module",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace frame_hook_module
}  // namespace wick::capture

PyMODINIT_FUNC PyInit_frame_hook_module() {
  using namespace wick::capture::frame_hook_module;
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  hook_error = PyErr_NewException("frame_hook_module.FrameHookError", PyExc_RuntimeError, nullptr);
  bytecode_error = PyErr_NewException("frame_hook_module.BytecodeError", PyExc_ValueError, nullptr);
  if (!hook_error || !bytecode_error ||
      PyModule_AddObjectRef(module, "FrameHookError", hook_error) < 0 ||
      PyModule_AddObjectRef(module, "BytecodeError", bytecode_error) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
