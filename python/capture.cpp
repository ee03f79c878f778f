// The parts of wick.compile and wick.compiler that are written in C++.
#include <fmt/format.h>

#include "capture/bytecode/frame_hook.h"
#include "capture/compiled_call.h"
#include "capture/evaluate/opaque.h"
#include "capture/open_sizes.h"
#include "core/kernel_choice.h"
#include "ir/function.h"
#include "passes/dead_code_elimination.h"
#include "passes/inline_calls.h"
#include "passes/lower_tuples.h"
#include "python/any_tensors.h"
#include "python/graph_rules.h"
#include "python/module.h"
#include "python/pybind.h"
#include "python/script.h"
#include "python/script_names.h"
#include "python/torch_graph.h"
#include "python/torch_library.h"
#include "python/torch_opaque.h"

namespace wick::python {
namespace {

using capture::Entry;
using capture::Object;
using capture::Region;

py::dict describeEntry(const Entry& entry) {
  py::dict made;
  made["plain"] = entry.plain;
  made["operators"] = entry.graph ? entry.graph->numOperators() : 0;
  made["graph"] = entry.graph ? py::cast(entry.graph->text()) : py::none();
  made["guards"] = entry.guards.lines();
  made["complete"] = !entry.plain && entry.value >= 0;
  made["raises"] = entry.raises;
  made["reason"] = entry.break_reason;
  made["file"] = entry.break_file;
  made["line"] = entry.break_line;
  made["hits"] = entry.hits;
  made["text"] = entry.text();
  made["effects"] = entry.recipe.lines();
  made["changes"] = entry.recipe.changesObjects(entry.guards.numRegisters());
  return made;
}

class RegionObject {
 public:
  RegionObject(bool full_graph, py::object backend, py::object observer, const py::object& dynamic,
               bool measures)
      : region_(std::make_shared<Region>(anyTensors())),
        measures_(measures),
        backend_(std::move(backend)),
        observer_(std::move(observer)) {
    region_->full_graph = full_graph;
    region_->open_sizes = dynamic.is_none()      ? capture::OpenSizes::kAutomatic
                          : dynamic.cast<bool>() ? capture::OpenSizes::kAlways
                                                 : capture::OpenSizes::kNever;
    if (py::isinstance<py::str>(backend_)) {
      region_->backend = [](const auto& graph, const auto&) {
        // Graphs with branches, loops or calls run as script functions do.
        const auto plain = graph->operatorByOperator();
        return plain ? plain : graph;
      };
    } else if (!backend_.is_none()) {
      region_->backend = [this](const auto& graph, const auto& examples) {
        return graph->calling(compiledBy(*graph, examples));
      };
    }
    if (observer_.is_none()) return;
    region_->observer = [this](PyCodeObject* code, const Entry& entry) {
      const py::object of = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(code));
      const Owned result = Owned(PyObject_CallFunctionObjArgs(observer_.ptr(), of.ptr(),
                                                              describeEntry(entry).ptr(), nullptr));
      if (!result) throw capture::PythonError();
    };
  }

  int64_t maxEntries() const { return region_->max_entries; }
  void setMaxEntries(int64_t most) { region_->max_entries = most; }

  py::object call(const py::object& function, const py::tuple& args, const py::dict& kwargs) {
    std::vector<PyObject*> arguments;
    for (const py::handle& each : args) arguments.push_back(each.ptr());
    py::object names;
    if (!kwargs.empty()) {
      names = py::tuple(kwargs.size());
      Py_ssize_t i = 0;
      for (const auto& [key, value] : kwargs) {
        PyTuple_SET_ITEM(names.ptr(), i++, Py_NewRef(key.ptr()));
        arguments.push_back(value.ptr());
      }
    }
    // The region may be given up meanwhile.
    const std::shared_ptr<Region> region = region_;
    const KernelChoiceScope choice(measures_ || measuresKernels());
    try {
      return given(capture::callCaptured(region, function.ptr(), arguments, names.ptr()).leak());
    } catch (const capture::PythonError&) {
      throw PythonError();
    }
  }

 private:
  // Returns the function that the backend makes of a graph.
  Object compiledBy(const capture::CapturedGraph& graph,
                    const std::vector<Object>& examples) const {
    const Object tensors = Object::checked(PyList_New(static_cast<Py_ssize_t>(examples.size())));
    for (size_t i = 0; i < examples.size(); ++i) {
      PyList_SET_ITEM(tensors.get(), static_cast<Py_ssize_t>(i), Py_NewRef(examples[i].get()));
    }
    const Object shown = graph.object();
    Object made = Object::checked(
        PyObject_CallFunctionObjArgs(backend_.ptr(), shown.get(), tensors.get(), nullptr));
    if (PyCallable_Check(made.get())) return made;
    PyErr_Format(PyExc_TypeError, "a backend gives a function, got %s",
                 Py_TYPE(made.get())->tp_name);
    throw capture::PythonError();
  }

  std::shared_ptr<Region> region_;
  bool measures_;
  py::object backend_;
  py::object observer_;
};

py::object callPlainly(const py::object& function, const py::args& args, const py::kwargs& kwargs) {
  const capture::PauseHook pause;
  return function(*args, **kwargs);
}

bool isTorchTensor(const py::object& object) {
  const TorchLibrary* const library = TorchLibrary::loaded();
  return library && library->isTensor(object.ptr());
}

void inlineCallsOf(const py::object& function) {
  GraphFunction* const script = scriptFunctionIn(function.ptr());
  if (!script) raise(PyExc_TypeError, "expected a script function");
  const CompileTurn turn;
  script->ensureDefined();
  inlineCalls(*script->graph());
  lowerTuples(*script->graph());
  eliminateDeadCode(*script->graph());
}

void disable(const py::object& function) {
  PyObject* of = function.ptr();
  if (PyMethod_Check(of)) of = PyMethod_GET_FUNCTION(of);
  if (!PyFunction_Check(of)) {
    raise(PyExc_TypeError, fmt::format("disable: expected a function written in Python, got {}",
                                       Py_TYPE(of)->tp_name));
  }
  capture::disableCode(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(of)));
}

// Asked by each call of a compiled function.
PyObject* isCapturing(PyObject*, PyObject*) {
  return PyBool_FromLong(capture::isCapturing());
}

PyMethodDef kCaptureFunctions[] = {
    {"_is_capturing", isCapturing, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void addCapture(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<RegionObject> region(m, "_Region");
  forbidNew(region);
  region.def("call", &RegionObject::call)
      .def_property("max_entries", &RegionObject::maxEntries, &RegionObject::setMaxEntries);
  m.def(
      "_make_region",
      [](bool full_graph, const py::object& backend, const py::object& observer,
         const py::object& dynamic, bool measures) {
        return std::make_unique<RegionObject>(full_graph, backend, observer, dynamic, measures);
      },
      py::arg("full_graph"), py::arg("backend"), py::arg("observer"),
      py::arg("dynamic") = py::none(), py::arg("measures") = false);
  m.def("_mark_sizes", [](const py::object& tensor, const std::vector<int64_t>& dims, bool open) {
    capture::markSizes(tensor.ptr(), dims, open);
  });
  addTorchGraphs(module);
  addTorchOpaque(module);
  addGraphRules(module);
  m.def("_call_plainly", callPlainly);
  m.def("_disable_capture", disable);
  m.def("_allow_in_graph",
        [](const py::object& function) { capture::allowInGraph(function.ptr()); });
  m.def("_is_torch_tensor", isTorchTensor);
  m.def("_inline_calls", inlineCallsOf);
  m.def("_reset_captures", [] { capture::resetCaptures(); });
  m.def("_capture_counters", [] {
    const capture::Counters& all = capture::counters();
    return py::make_tuple(all.graphs, all.operators, all.breaks, all.plain);
  });
  check(PyModule_AddFunctions(module, kCaptureFunctions));
  capture::setCapturingQuestion(py::object(m.attr("_is_capturing")).ptr());
  m.def("_cache_size_limit", [] { return capture::cacheSizeLimit(); });
  m.def("_set_cache_size_limit", [](int64_t limit) {
    if (limit < 1)
      throw UsageError(fmt::format("cache_size_limit: expected at least 1, got {}", limit));
    capture::setCacheSizeLimit(limit);
  });
}

}  // namespace wick::python
