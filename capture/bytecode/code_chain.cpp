#include "capture/bytecode/code_chain.h"

#include <new>

#include "capture/bytecode/frame_hook.h"

#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace wick::capture {
namespace {

// ---- links

// The connection of a chain to the frame that it calls: the documentation of that frame's function,
// which the chain has made for this call alone. No state of the thread is needed, which would be
// wrong where somebody switches C stacks.
struct Link {
  PyObject_HEAD
      // Whether a call is being made.
      bool open;
  // The frame that makes it; never read.
  const _PyInterpreterFrame* caller;
  // Whether `next` was handed over.
  bool pending;
  CodeCall next;
};

void freeLink(PyObject* object) {
  auto* const link = reinterpret_cast<Link*>(object);
  link->next.~CodeCall();
  PyObject_Free(link);
}

PyTypeObject link_type = [] {
  PyTypeObject type{};
  Py_SET_REFCNT(&type, 1);
  type.tp_name = "wick._CodeChain";
  type.tp_basicsize = sizeof(Link);
  type.tp_dealloc = freeLink;
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  return type;
}();

void prepare(PyTypeObject& type) {
  if (!(type.tp_flags & Py_TPFLAGS_READY) && PyType_Ready(&type) < 0) throw PythonError();
}

Object makeLink() {
  prepare(link_type);
  Link* const link = PyObject_New(Link, &link_type);
  if (!link) throw PythonError();
  link->open = link->pending = false;
  link->caller = nullptr;
  new (&link->next) CodeCall();
  return Object::own(reinterpret_cast<PyObject*>(link));
}

const _PyInterpreterFrame* currentFrame() {
  return PyThreadState_Get()->cframe->current_frame;
}

// Returns the link of the chain that has called the frame, or null. `caller` is the frame's.
Link* linkOf(const _PyInterpreterFrame* frame, const _PyInterpreterFrame* caller) {
  PyObject* const about = frame->f_func->func_doc;
  if (!about || Py_TYPE(about) != &link_type) return nullptr;
  auto* const link = reinterpret_cast<Link*>(about);
  return link->open && link->caller == caller ? link : nullptr;
}

// ---- the object that code hands over by

bool tracing(const PyThreadState* thread) {
  return thread->cframe->use_tracing || thread->c_tracefunc || thread->c_profilefunc;
}

// Moves the call out of the tuple, which nobody else has if code of ours has built it.
void takeCall(PyObject* tuple, CodeCall& call) {
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  const bool own = Py_REFCNT(tuple) == 1;
  const auto take = [&](Py_ssize_t i) {
    PyObject*& place = reinterpret_cast<PyTupleObject*>(tuple)->ob_item[i];
    return own ? Object::own(std::exchange(place, nullptr)) : Object::share(place);
  };
  PyObject* const code = PyTuple_GET_ITEM(tuple, 0);
  const Py_ssize_t first = reinterpret_cast<PyCodeObject*>(code)->co_nfreevars > 0 ? 2 : 1;
  call.arguments.resize(static_cast<size_t>(size - first));
  for (Py_ssize_t i = first; i < size; ++i) {
    call.arguments[static_cast<size_t>(i - first)] = take(i);
  }
  call.closure = first == 2 ? take(1) : Object();
  call.code = take(0);
}

bool describesCall(PyObject* object) {
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) < 1) return false;
  PyObject* const code = PyTuple_GET_ITEM(object, 0);
  if (!code || !PyCode_Check(code)) return false;
  if (reinterpret_cast<PyCodeObject*>(code)->co_nfreevars == 0) return true;
  return PyTuple_GET_SIZE(object) > 1 && PyTuple_Check(PyTuple_GET_ITEM(object, 1));
}

// Makes the call from the frame itself.
[[gnu::noinline]] PyObject* callHere(const _PyInterpreterFrame* frame, PyObject* tuple) {
  CodeCall call;
  takeCall(tuple, call);
  const FunctionParts parts{reinterpret_cast<PyCodeObject*>(call.code.get()), frame->f_globals,
                            frame->f_builtins, call.closure.get()};
  return callCodeMoving(parts, call.arguments).leak();
}

PyObject* subscript(PyObject*, PyObject* tuple) {
  const PyThreadState* const thread = PyThreadState_Get();
  const _PyInterpreterFrame* const frame = thread->cframe->current_frame;
  try {
    if (!frame || !describesCall(tuple)) {
      PyErr_SetString(PyExc_TypeError, "this is for code that hands over to other code");
      return nullptr;
    }
    Link* const link = linkOf(frame, frame->previous);
    if (!link || tracing(thread)) return callHere(frame, tuple);
    takeCall(tuple, link->next);
    link->pending = true;
    return Py_NewRef(Py_None);
  } catch (const PythonError&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyMappingMethods hand_over_mapping = {nullptr, subscript, nullptr};

PyTypeObject hand_over_type = [] {
  PyTypeObject type{};
  Py_SET_REFCNT(&type, 1);
  type.tp_name = "wick._HandOver";
  type.tp_basicsize = sizeof(PyObject);
  type.tp_as_mapping = &hand_over_mapping;
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  return type;
}();

}  // namespace

Object callChain(PyObject* globals, PyObject* builtins, CodeCall call) {
  // A link that somebody keeps takes nothing afterwards.
  struct Chain {
    const Object object = makeLink();
    Link& link = *reinterpret_cast<Link*>(object.get());
    Chain() = default;
    Chain(const Chain&) = delete;
    ~Chain() {
      link.open = link.pending = false;
      // Finalizers may run: nothing of the link is used after it.
      const CodeCall dropped = std::exchange(link.next, {});
    }
  } const chain;
  Link& link = chain.link;
  link.caller = currentFrame();
  link.open = true;
  Object function;
  for (;;) {
    makeFunctionAgain(function, {reinterpret_cast<PyCodeObject*>(call.code.get()), globals,
                                 builtins, call.closure.get(), chain.object.get()});
    Object value = callMoving(function.get(), call.arguments);
    if (!link.pending) return value;
    link.pending = false;
    // The vectors are used by turns. The old call is over, and so are its code and its closure.
    std::swap(call, link.next);
    link.next.code = link.next.closure = Object();
  }
}

bool handOver(FrameView frame, CodeCall& next) {
  Link* const link = linkOf(frame.raw(), currentFrame());
  if (!link) return false;
  std::swap(link->next, next);
  link->pending = true;
  return true;
}

Object handOverObject() {
  static PyObject* object = nullptr;
  if (!object) {
    prepare(hand_over_type);
    object = PyObject_New(PyObject, &hand_over_type);
    if (!object) throw PythonError();
  }
  return Object::share(object);
}

}  // namespace wick::capture
