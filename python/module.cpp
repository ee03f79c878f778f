// The extension module wick._C.
#include "python/module.h"

#include <fmt/format.h>

#include "core/device_backend.h"
#include "core/dtype.h"
#include "core/grad_mode.h"
#include "core/version.h"
#include "python/autocast.h"
#include "python/interrupts.h"
#include "python/plain_types.h"
#include "python/pybind.h"
#include "runtime/threads.h"

namespace wick::python {
namespace {

PyObject* gradEnabledFunction(PyObject*, PyObject*) {
  return PyBool_FromLong(gradEnabled());
}

PyObject* setGradEnabledFunction(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    const int value = PyObject_IsTrue(on);
    check(value);
    setGradEnabled(value != 0);
    Py_RETURN_NONE;
  });
}

PyObject* setDefault(PyObject*, PyObject* dtype) {
  return guarded([&]() -> PyObject* {
    const auto number = dtypeOf(dtype);
    if (!number || !isFloating(*number))
      raise(PyExc_TypeError, "only floating-point types are supported as the default type");
    setDefaultDType(*number);
    Py_RETURN_NONE;
  });
}

PyObject* getDefault(PyObject*, PyObject*) {
  return guarded([&] { return Py_NewRef(dtypeObject(defaultDType())); });
}

PyObject* setDevice(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject* device = nullptr;
    int for_cpu = 0;
    if (!PyArg_ParseTuple(arguments, "O|p", &device, &for_cpu)) return nullptr;
    setDefaultDevice(deviceOf(device), for_cpu != 0);
    Py_RETURN_NONE;
  });
}

PyObject* getDevice(PyObject*, PyObject*) {
  return guarded([&] { return deviceObject(defaultDevice()); });
}

PyObject* seedFunction(PyObject*, PyObject* seed) {
  return guarded([&]() -> PyObject* {
    defaultGenerator().seed(seedOf(seed));
    return generatorObject(GeneratorRef(&defaultGenerator()));
  });
}

constexpr long kMaxThreads = 1024;  // setNumThreads (runtime/threads.h)

PyObject* setThreads(PyObject*, PyObject* count) {
  return guarded([&]() -> PyObject* {
    const long value = PyLong_AsLong(count);
    if (value == -1 && PyErr_Occurred()) return nullptr;
    if (value < 1 || value > kMaxThreads) {
      raise(PyExc_RuntimeError,
            fmt::format("set_num_threads: expected a number from 1 to {}, got {}", kMaxThreads,
                        value));
    }
    setNumThreads(static_cast<int>(value));
    applyNumThreads();
    Py_RETURN_NONE;
  });
}

PyObject* getThreads(PyObject*, PyObject*) {
  return PyLong_FromLong(numThreads());
}

PyMethodDef functions[] = {
    {"set_num_threads", setThreads, METH_O, "How many threads an operator uses at most."},
    {"get_num_threads", getThreads, METH_NOARGS, nullptr},
    {"is_grad_enabled", gradEnabledFunction, METH_NOARGS, "Whether this thread records gradients."},
    {"_set_grad_enabled", setGradEnabledFunction, METH_O, nullptr},
    {"set_default_dtype", setDefault, METH_O, "The dtype of floats from now on."},
    {"get_default_dtype", getDefault, METH_NOARGS, "The dtype of floats."},
    {"_set_default_device", setDevice, METH_VARARGS, nullptr},
    {"get_default_device", getDevice, METH_NOARGS,
     "Where tensors are made that are told no device."},
    {"manual_seed", seedFunction, METH_O, "Starts the default generator again from a seed."},
    {nullptr, nullptr, 0, nullptr},
};

// Errors within functions that pybind11 calls.
void registerErrors() {
  pybind11::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Error&) {
      setPythonError();
    } catch (const PythonError&) {
      setPythonError();
    }
  });
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "wick._C",
                          "The engine behind wick.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace wick::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C() {
  using namespace wick::python;
  return guarded([] {
    Owned module = checked(PyModule_Create(&definition));
    addErrorClasses(module.get());
    addPlainTypes(module.get());
    addAutocast(module.get());
    addEager(module.get());
    addTensorType(module.get());
    addConstructors(module.get());
    addExchange(module.get());
    registerErrors();
    addAutograd(module.get());
    addFiles(module.get());
    addScript(module.get());
    addTracing(module.get());
    addLazy(module.get());
    addDistributed(module.get());
    addCapture(module.get());
    const Owned generator(generatorObject(wick::GeneratorRef(&wick::defaultGenerator())));
    check(PyModule_AddObjectRef(module.get(), "default_generator", generator.get()));
    check(PyModule_AddStringConstant(module.get(), "__version__", wick::version()));
    watchInterrupts();
    check(watchForks() ? 0 : -1);
    return module.leak();
  });
}
