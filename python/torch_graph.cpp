#include "python/torch_graph.h"

#include <fmt/format.h>

#include <optional>

#include "capture/bytecode/frame_hook.h"
#include "capture/compiled_call.h"
#include "python/pybind.h"
#include "python/script.h"
#include "python/torch_call.h"
#include "python/torch_library.h"
#include "python/torch_replay.h"
#include "python/torch_tape.h"

namespace wick::python {
namespace {

using capture::Object;

// Returns torch.autograd.Function's apply() for graphs.
const Object& applyFunction() {
  static const Object& kApply = forever([] {
    const capture::PauseHook pause;
    const Object module = Object::checked(PyImport_ImportModule("wick._torch_graph"));

    return Object::checked(PyObject_GetAttrString(module.get(), "apply"));
  }());
  return kApply;
}

class TorchGraph : public capture::CapturedGraph {
 public:
  explicit TorchGraph(std::shared_ptr<const TorchRecord> record)
      : record_(std::move(record)), kept_(record_->inputs.size()) {}

  void run(std::span<const Object> inputs, std::vector<Object>& outputs,
           bool& touched) const override {
    std::optional<TorchCallState> call;
    try {
      kept_.sweep();
      call.emplace(*record_, inputs, kept_);
      if (!record_->components.empty()) {
        const TorchGradMode on(*record_->library, true);
        runWithGradients(*call, outputs);
      } else {
        call->run();
        finish(*call, {}, {}, outputs);
      }
    } catch (const capture::PythonError&) {
      touched = call && call->isTouched();
      throw;
    } catch (...) {
      touched = call && call->isTouched();
      throwAsPlainError();
    }
  }
  std::string text() const override { return record_->script.function->graph()->str(); }
  std::string contents() const override { return contentsOf(*record_->script.function->graph()); }
  bool isImpure() const override { return record_->script.impure; }
  bool writes() const override { return record_->script.writes; }
  int64_t numWrongGuesses() const override {
    const auto& guesses = record_->script.guesses;
    return guesses ? guesses->wrong : 0;
  }
  std::vector<int64_t> actualSizes() const override {
    const auto& guesses = record_->script.guesses;
    return guesses ? guesses->actual : std::vector<int64_t>();
  }
  std::vector<int64_t> measured(std::span<const Object> inputs) const override {
    if (!record_->script.guesses) return {};
    try {
      const TorchCallState call(*record_, inputs, kept_);
      return record_->script.guesses->measured(*record_->script.function->graph(), call.tensors());
    } catch (const RuntimeError&) {
      return {};
    }
  }
  int numOperators() const override { return record_->script.num_operators; }
  Object object() const override;
  std::shared_ptr<CapturedGraph> operatorByOperator() const override;
  std::shared_ptr<CapturedGraph> calling(Object function) const override;

 private:
  void runWithGradients(TorchCallState& call, std::vector<Object>& outputs) const {
    const auto state = std::make_shared<TorchRun>(call);
    const Object run = Object::own(py::cast(state).release().ptr());
    std::vector<Object> known;
    for (size_t i = 0; i < record_->components.size(); ++i) {
      const Object index = Object::checked(PyLong_FromSize_t(i));
      std::vector<PyObject*> arguments{run.get(), index.get()};
      for (const size_t leaf : record_->components[i].leaves) {
        arguments.push_back(call.input(leaf));
      }
      const Object given = capture::callPlainly(applyFunction().get(), arguments, nullptr);
      const Object all = Object::checked(PySequence_Fast(given.get(), "results are no sequence"));
      for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(all.get()); ++j) {
        known.push_back(Object::share(PySequence_Fast_GET_ITEM(all.get(), j)));
      }
    }
    if (known.size() != state->results.size()) {
      throw InternalError(__FILE__, __LINE__, "a graph lost results on their way");
    }
    finish(call, state->results, known, outputs);
    state->end();
  }

  // Returns a tensor on new memory. One that does not begin where its memory does is a view there too.
  Object newTensor(const Tensor& result) const {
    const int64_t offset = result.impl()->offset;
    if (offset == 0) return torchTensor(*record_->library, withoutHistory(result));
    const Ref<Storage>& memory = result.impl()->storage;
    const auto elements = static_cast<int64_t>(memory->bytes() / result.itemSize());
    const Tensor whole =
        Tensor::fromStorage(memory, result.dtype(), DimVector{elements}, DimVector{1}, 0);
    return torchView(torchTensor(*record_->library, whole).get(), result, offset);
  }

  // Calls the function again that gives a result as one of several views, unless it is there.
  void addPart(const TorchCallState& call, size_t index, std::vector<Object>& made) const {
    if (made[index]) return;
    const TorchPart& part = record_->parts.at(index);
    if (!part.of_input) addPart(call, part.base, made);
    const TorchGradMode on(*record_->library, true);
    std::vector<PyObject*> arguments{part.of_input ? call.input(part.base) : made[part.base].get()};
    for (size_t i = 1; i < part.call.arguments.size(); ++i) {
      arguments.push_back(part.call.arguments[i].get());
    }
    const Object given =
        capture::callPlainly(part.call.function.get(), arguments, part.call.names.get());
    const Object all = Object::checked(PySequence_Fast(given.get(), "views are no sequence"));
    if (part.index >= PySequence_Fast_GET_SIZE(all.get())) {
      throw InternalError(__FILE__, __LINE__, "a function gives fewer views than it did");
    }
    made[index] = Object::share(PySequence_Fast_GET_ITEM(all.get(), part.index));
  }

  // Returns a view of the tensor that PyTorch knows as one of several, so that a write to it raises.
  Object oneOfSeveral(PyObject* tensor) const {
    const TorchGradMode on(*record_->library, true);
    const Object row = Object::checked(PyObject_CallMethod(tensor, "unsqueeze", "i", 0));
    const Object rows = Object::checked(PyObject_CallMethod(row.get(), "unbind", "i", 0));
    return Object::checked(PySequence_GetItem(rows.get(), 0));
  }

  // Finds results that are an input or another result itself, where a branch decides that.
  void identify(const TorchCallState& call, std::vector<Object>& made) const {
    const std::vector<bool>& joined = record_->script.joined;
    for (size_t i = 0; i < made.size(); ++i) {
      const TensorImpl* const result = call.results[i].impl();
      for (size_t j = 0; joined[i] && j < call.tensors().size(); ++j) {
        if (call.tensors()[j].impl() == result) made[i] = Object::share(call.input(j));
      }
      for (size_t j = 0; j < made.size() && !made[i]; ++j) {
        if (made[j] && (joined[i] || joined[j]) && call.results[j].impl() == result) {
          made[i] = made[j];
        }
      }
    }
  }

  // Appends the outputs; `given` holds those that PyTorch has seen already.
  void finish(const TorchCallState& call, const std::vector<size_t>& known,
              const std::vector<Object>& given, std::vector<Object>& outputs) const {
    const size_t count = call.results.size();
    std::vector<Object> made(count);
    for (size_t i = 0; i < known.size(); ++i) made[known[i]] = given[i];
    for (size_t i = 0; i < count; ++i) {
      if (made[i] || !call.isFresh(i)) continue;
      made[i] = newTensor(call.results[i]);
    }
    if (!record_->script.joined.empty()) identify(call, made);
    const auto isPart = [&](size_t i) {
      return record_->parts.count(i) != 0 && call.needsGradient(i);
    };
    for (size_t i = 0; i < count; ++i) {
      if (!made[i] && !isPart(i)) made[i] = call.viewOf(i, made[call.firstOn(i)].get());
    }
    // The memory of a part may have come first; it is a view all the same.
    for (size_t i = 0; i < record_->num_results; ++i) {
      if (!made[i] || !record_->of_several[i] || !call.needsGradient(i)) continue;
      const auto part = record_->parts.find(i);
      const bool again =
          part != record_->parts.end() && (part->second.of_input || made[part->second.base]);
      made[i] = again ? Object() : oneOfSeveral(made[i].get());
    }
    for (size_t i = 0; i < count; ++i) addPart(call, i, made);
    made.resize(record_->num_results);
    for (Object& each : made) outputs.push_back(std::move(each));
  }

  const std::shared_ptr<const TorchRecord> record_;
  mutable KeptMemory kept_;
};

// A graph as a function of Python.
struct TorchFunction {
  std::shared_ptr<const TorchRecord> record;
  TorchGraph graph;

  explicit TorchFunction(std::shared_ptr<const TorchRecord> of) : record(of), graph(of) {}

  py::object call(const py::args& tensors) const {
    std::vector<Object> inputs, outputs;
    if (tensors.size() != record->inputs.size()) {
      raise(PyExc_TypeError, fmt::format("the graph takes {} tensors, got {}",
                                         record->inputs.size(), tensors.size()));
    }
    for (const py::handle& each : tensors) {
      if (!record->library->isTensor(each.ptr())) {
        raise(PyExc_TypeError,
              fmt::format("the graph takes tensors, got {}", Py_TYPE(each.ptr())->tp_name));
      }
      checkLayout(each.ptr(), record->inputs[inputs.size()].layout);
      inputs.push_back(Object::share(each.ptr()));
    }
    bool touched = false;
    try {
      graph.run(inputs, outputs, touched);
    } catch (const capture::PythonError&) {
      throw PythonError();
    }
    py::tuple made(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i), outputs[i].leak());
    }
    return made;
  }

 private:
  void checkLayout(PyObject* tensor, const TorchLayout& layout) const {
    if (!hasLayout(*record->library, tensor, layout)) {
      raise(PyExc_ValueError,
            "the graph was captured for tensors of another dtype, sizes or strides");
    }
  }
};

Object TorchGraph::object() const {
  return Object::own(py::cast(std::make_shared<TorchFunction>(record_)).release().ptr());
}

std::shared_ptr<capture::CapturedGraph> TorchGraph::operatorByOperator() const {
  // The calls know nothing of derivatives of the program's own, nor of numbers that elements decide.
  if (record_->own_derivatives) return nullptr;
  for (const auto& [number, known] : record_->numbers) {
    if (record_->sizes.hasDecided(known.second)) return nullptr;
  }
  for (int i = 0; i < record_->sizes.numSymbols(); ++i) {
    if (record_->sizes.isElement(i)) return nullptr;
  }
  return replayedCalls(record_);
}

std::shared_ptr<capture::CapturedGraph> TorchGraph::calling(Object function) const {
  return calledTorchFunction(record_, std::move(function));
}

}  // namespace

std::shared_ptr<capture::CapturedGraph> torchGraph(std::shared_ptr<const TorchRecord> record) {
  return std::make_shared<TorchGraph>(std::move(record));
}

namespace {

// Runs the function; errors of capture's become Python's.
template <class F>
auto asPython(F&& f) {
  try {
    return f();
  } catch (const capture::PythonError&) {
    throw PythonError();
  }
}

}  // namespace

void addTorchGraphs(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<TorchTape, std::shared_ptr<TorchTape>> tape(m, "_TorchTape");
  forbidNew(tape);
  tape.def_property_readonly("saves", &TorchTape::saves);
  tape.def("backward", [](TorchTape& self, const py::tuple& gradients) {
    return asPython([&] { return given(self.backward(gradients.ptr()).leak()); });
  });
  tape.def("recorded_backward", [](TorchTape& self, const py::tuple& gradients) {
    return asPython([&] {
      Object all;
      std::vector<bool> differentiable;
      const auto made = self.recordedBackward(gradients.ptr(), all, differentiable);
      return py::make_tuple(made, given(all.leak()), differentiable);
    });
  });
  py::class_<TorchRun, std::shared_ptr<TorchRun>> run(m, "_TorchRun");
  forbidNew(run);
  run.def("forward", [](TorchRun& self, size_t component) {
    if (self.isOver()) throw UsageError("the run of a graph is over");
    return asPython([&] {
      std::vector<Object> made;
      py::object tape_object = py::cast(self.forward(component, made));
      py::tuple results(made.size());
      for (size_t i = 0; i < made.size(); ++i) {
        PyTuple_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i), made[i].leak());
      }
      return py::make_tuple(tape_object, results);
    });
  });
  py::class_<TorchFunction, std::shared_ptr<TorchFunction>> function(m, "CapturedTorchGraph");
  forbidNew(function);
  function.def("__call__", &TorchFunction::call);
  function.def_property_readonly("graph",
                                 [](const TorchFunction& self) { return self.graph.text(); });
  function.def_property_readonly("script", [](const TorchFunction& self) {
    const ScriptGraph& script = self.record->script;
    return given(scriptFunctionObject(script.function, script.unit));
  });
  function.def("__str__", [](const TorchFunction& self) { return self.graph.text(); });
}

}  // namespace wick::python
