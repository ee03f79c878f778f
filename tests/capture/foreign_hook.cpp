// A hook of another extension (PEP 523), for the tests of ours. Copies of the library are different
// hooks, and the names of their files tell whose they are.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace {

_PyFrameEvalFunction former = nullptr;
long long frames = 0;
bool calls_former = true;

PyObject* countFrame(PyThreadState* thread, struct _PyInterpreterFrame* frame, int throws) {
  ++frames;
  if (calls_former) return former(thread, frame, throws);
  return _PyEval_EvalFrameDefault(thread, frame, throws);
}

// install(calls_former=True): sets the hook over the one that is there.
PyObject* install(PyObject*, PyObject* args) {
  int calls = 1;
  if (!PyArg_ParseTuple(args, "|p", &calls)) return nullptr;
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  calls_former = calls;
  former = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  _PyInterpreterState_SetEvalFrameFunc(interpreter, &countFrame);
  Py_RETURN_NONE;
}

// remove(): restores the hook that install() found.
PyObject* removeHook(PyObject*, PyObject*) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), former);
  Py_RETURN_NONE;
}

// clear(): leaves the interpreter without any hook.
PyObject* clear(PyObject*, PyObject*) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), &_PyEval_EvalFrameDefault);
  Py_RETURN_NONE;
}

// is_set() -> whether it is the interpreter's hook
PyObject* isSet(PyObject*, PyObject*) {
  return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) ==
                         &countFrame);
}

// any_set() -> whether the interpreter has a hook
PyObject* anySet(PyObject*, PyObject*) {
  return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) !=
                         &_PyEval_EvalFrameDefault);
}

// count() -> frames so far
PyObject* count(PyObject*, PyObject*) {
  return PyLong_FromLongLong(frames);
}

PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, nullptr},
    {"remove", removeHook, METH_NOARGS, nullptr},
    {"clear", clear, METH_NOARGS, nullptr},
    {"is_set", isSet, METH_NOARGS, nullptr},
    {"any_set", anySet, METH_NOARGS, nullptr},
    {"count", count, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "foreign_hook",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_foreign_hook() {
  return PyModule_Create(&definition);
}
