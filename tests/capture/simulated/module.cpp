// A module in the extension module's library that puts a simulated CUDA device in place: for tests of wick.compile on
// machines without one.
#include <Python.h>

#include <exception>

#include "tests/lazy/simulated_device.h"

namespace {

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_simulated", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

// Begins the simulation, which lasts as long as the process.
PyMODINIT_FUNC PyInit__simulated() {
  try {
    static wick::SimulatedDevice& device = *new wick::SimulatedDevice;
    static_cast<void>(device);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  return PyModule_Create(&definition);
}
