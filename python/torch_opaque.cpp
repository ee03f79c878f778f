#include "python/torch_opaque.h"

#include <fmt/format.h>

#include "capture/bytecode/frame_hook.h"
#include "python/fake_recording.h"
#include "python/pybind.h"
#include "python/torch_call.h"

namespace wick::python {
namespace {

using capture::Callee;
using capture::Object;

// The recording as the stand-ins see it, for the time of one call.
struct OpaqueCalls {
  OpaqueCalls(FakeRecording& to, const TorchLibrary& of) : recording(&to), library(&of) {}

  FakeRecording* recording;  // null after the call
  const TorchLibrary* library;
  std::string problem;

  [[noreturn]] void refuse(const std::string& reason) {
    if (problem.empty()) problem = reason;
    raise(PyExc_RuntimeError, reason);
  }
  // Puts the gradient mode and the state of autocast that the function has set into the graph.
  void noteState() {
    recording->setGradMode(TorchLibrary::call(library->grad_mode).get() == Py_True);
    const std::optional<AutocastMode> autocast = library->autocast().mode(*library);
    if (!autocast) capture::breakGraph("a state of torch.autocast that Wick does not have");
    recording->setAutocast(*autocast);
  }

  py::object call(const py::object& function, const py::tuple& args, const py::dict& kwargs) {
    return recorded([&] {
      noteState();
      if (!isKnown(function.ptr())) {
        capture::breakGraph(fmt::format("a call of {}", std::string(py::repr(function))));
      }
      std::vector<PyObject*> arguments;
      for (const py::handle& each : args) arguments.push_back(each.ptr());
      Object names;
      if (!kwargs.empty()) {
        names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(kwargs.size())));
        Py_ssize_t i = 0;
        for (const auto& [key, value] : kwargs) {
          PyTuple_SET_ITEM(names.get(), i++, Py_NewRef(key.ptr()));
          arguments.push_back(value.ptr());
        }
      }
      return recording->call(function.ptr(), arguments, names.get());
    });
  }
  py::object attribute(const py::object& fake, const py::str& name) {
    return recorded([&] { return recording->attribute(fake.ptr(), name.ptr()); });
  }
  // Returns the sizes, strides, dtype, and whether it requires a gradient.
  py::tuple layout(const py::object& fake) {
    const Tensor& tensor = givenTensor(fake, "a stand-in");
    const Object dtype = Object::checked(PyObject_GetAttrString(fake.ptr(), "dtype"));
    return py::make_tuple(
        py::tuple(py::cast(std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end()))),
        py::tuple(py::cast(std::vector<int64_t>(tensor.strides().begin(), tensor.strides().end()))),
        given(library->fromOwn(dtype.get()).leak()), tensor.requiresGrad());
  }

 private:
  // Returns whether the recording knows the function: one of PyTorch's operators, or one of Python's
  // that stands for an operator of the language.
  bool isKnown(PyObject* function) const {
    return library->calleeOf(function) == Callee::kOperator || PyCFunction_Check(function);
  }
  template <class F>
  py::object recorded(F&& f) {
    if (!recording) raise(PyExc_RuntimeError, "the function was captured: its tensors are gone");
    try {
      return given(f().leak());
    } catch (const capture::GraphBreak& reason) {
      refuse(reason.reason);
    } catch (const capture::PythonError&) {
      throw PythonError();
    }
  }
};

const Object& runFunction() {
  static const Object& kRun = forever([] {
    const Object module = Object::checked(PyImport_ImportModule("wick._torch_opaque"));
    return Object::checked(PyObject_GetAttrString(module.get(), "run"));
  }());
  return kRun;
}

}  // namespace

Object callTorchOpaque(FakeRecording& recording, const TorchLibrary& library, PyObject* function,
                       const std::vector<PyObject*>& arguments, PyObject* names) {
  const auto calls = std::make_shared<OpaqueCalls>(recording, library);
  const Object shown = Object::own(py::cast(calls).release().ptr());
  const auto named = static_cast<Py_ssize_t>(names ? PyTuple_GET_SIZE(names) : 0);
  const auto plain = static_cast<Py_ssize_t>(arguments.size()) - named;
  const Object args = Object::checked(PyTuple_New(plain));
  const Object kwargs = Object::checked(PyDict_New());
  for (Py_ssize_t i = 0; i < plain + named; ++i) {
    PyObject* const each = arguments[static_cast<size_t>(i)];
    if (i < plain) {
      PyTuple_SET_ITEM(args.get(), i, Py_NewRef(each));
    } else if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i - plain), each) < 0) {
      throw capture::PythonError();
    }
  }
  Object result;
  {
    const TorchGradMode mode(library, recording.gradMode());
    const TorchAutocastScope autocast(library, autocastMode());
    result = Object::own(PyObject_CallFunctionObjArgs(runFunction().get(), shown.get(), function,
                                                      args.get(), kwargs.get(), nullptr));
    if (result && calls->problem.empty()) calls->noteState();
  }
  calls->recording = nullptr;
  const std::string what = nameOfFunction(function);
  if (!calls->problem.empty()) {
    if (!result && !PyErr_ExceptionMatches(PyExc_Exception)) throw capture::PythonError();
    PyErr_Clear();
    capture::breakGraph(fmt::format("{}: {}", what, calls->problem));
  }
  if (!result) breakOnError(what);
  return result;
}

void addTorchOpaque(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<OpaqueCalls, std::shared_ptr<OpaqueCalls>> calls(m, "_TorchOpaqueCalls");
  forbidNew(calls);
  calls.def("call", &OpaqueCalls::call)
      .def("attribute", &OpaqueCalls::attribute)
      .def("layout", &OpaqueCalls::layout)
      .def("knows",
           [](const OpaqueCalls& self, const py::object& function) {
             return self.library->calleeOf(function.ptr()) == Callee::kOperator;
           })
      .def("refuse", &OpaqueCalls::refuse);
}

}  // namespace wick::python
