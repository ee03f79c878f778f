// If no argument takes part in gradients, forward is a function as all others, with gradients off.
// Otherwise forward and backward are evaluated one after the other, each into a function of the graph;
// the recording makes a call of them that has this derivative.
#include "capture/evaluate/own_derivatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/checkpoints.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/context.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr int kMaxNesting = 20;

Object name(const char* text) {
  return Object::checked(PyUnicode_InternFromString(text));
}

bool requiresGradient(Capture& capture, Variable* variable) {
  auto* const tensor = capture.as<TensorVariable>(variable);
  return tensor && capture.recording->requiresGradient(tensor->fake());
}

// Returns whether a container holds a tensor that takes part in gradients.
bool holdsGradient(Capture& capture, Variable* variable, int depth) {
  if (depth > kMaxNesting) breakGraph("arguments are nested too deeply");
  std::vector<Variable*> elements;
  if (auto* sequence = capture.as<SequenceVariable>(variable)) elements = sequence->all(capture);
  if (auto* dict = dynamic_cast<DictVariable*>(variable)) {
    for (const auto& [key, value] : dict->items(capture)) elements.push_back(value);
  }
  return std::ranges::any_of(elements, [&](Variable* each) {
    return requiresGradient(capture, each) || holdsGradient(capture, each, depth + 1);
  });
}

class Application {
 public:
  Application(Capture& capture, const Arguments& given)
      : capture_(capture), arguments_(given.positional.begin() + 1, given.positional.end()) {
    type_ = capture.as<ClassVariable>(given.positional[0]);
    if (!type_ || !given.keywords.empty()) {
      breakGraph("a function with a derivative of its own that is called in another way");
    }
    // PyTorch makes a class of contexts for each of these, and tells forward what arguments require
    // with gradients off, too.
    PyObject* const own_context = findTypeItem(type_->classObject(), name("_backward_cls").get());
    const bool on = capture.recording->gradMode();
    std::vector<bool> told;
    for (Variable* each : arguments_) {
      const bool required = requiresGradient(capture, each);
      needs_.push_back(on && required);
      told.push_back(required && (on || own_context));
      if (holdsGradient(capture, each, 0)) {
        breakGraph(
            "a container with tensors that require gradients is an argument of a function "
            "with a derivative of its own");
      }
    }
    PyObject* const type = own_context ? own_context : libraryObject("wick._C", "FunctionContext");
    if (!PyType_Check(type)) breakGraph("a function with a context that is no class");
    context_ =
        capture.make<ContextVariable>(reinterpret_cast<PyTypeObject*>(type), std::move(told));
  }

  Variable* run() {
    return std::ranges::any_of(needs_, [](bool each) { return each; }) ? differentiated() : plain();
  }

 private:
  Variable* call(const char* method, std::vector<Variable*> rest) {
    rest.insert(rest.begin(), context_);
    return callVariable(capture_, getAttribute(capture_, type_, name(method).get()),
                        {std::move(rest), {}});
  }

  // Returns the tensors that forward gave.
  std::vector<Variable*> tensorsIn(Variable* result) {
    capture_.use(result);
    std::vector<Variable*> all{result};
    if (auto* tuple = dynamic_cast<TupleVariable*>(result)) all = tuple->all(capture_);
    for (Variable* each : all) {
      if (!capture_.as<TensorVariable>(each)) {
        breakGraph("a function with a derivative of its own gives more than tensors");
      }
    }
    return all;
  }

  Variable* resultOf(Variable* result, std::vector<Variable*> tensors) {
    if (!dynamic_cast<TupleVariable*>(result)) return tensors[0];
    return capture_.make<TupleVariable>(std::move(tensors), &PyTuple_Type);
  }

  Variable* plain() {
    Recording& recording = *capture_.recording;
    const bool mode = recording.gradMode();
    recording.setGradMode(false);
    Variable* result = nullptr;
    try {
      result = call("forward", arguments_);
    } catch (const Raised&) {
      recording.setGradMode(mode);
      throw;
    }
    recording.setGradMode(mode);
    const std::vector<Variable*> tensors = tensorsIn(result);
    for (Variable* each : tensors) {
      // The library gives a view without history instead, or not.
      if (requiresGradient(capture_, each)) {
        breakGraph("a function with a derivative of its own gives a tensor that it has not made");
      }
    }
    return resultOf(result, tensors);
  }

  PyObject* fakeOf(Variable* variable) const {
    return dynamic_cast<TensorVariable*>(variable)->fake();
  }

  // Returns the tensors that backward may use: saved ones, and attributes that only forward knows.
  std::vector<PyObject*> savedFor(const std::vector<Variable*>& results, int64_t since) {
    std::vector<PyObject*> all;
    const auto add = [&](Variable* each) {
      PyObject* const fake = fakeOf(each);
      if (std::ranges::find(all, fake) == all.end()) all.push_back(fake);
    };
    for (Variable* each : context_->saved) {
      if (capture_.as<TensorVariable>(each)) {
        add(each);
      } else if (each->constant() != Py_None) {
        breakGraph("save_for_backward() with an object that is no tensor");
      }
    }
    for (const auto& [key, value] : context_->attributes(capture_)->entriesMade()) {
      auto* const tensor = capture_.as<TensorVariable>(value);
      const bool own = tensor && tensor->number >= since && !tensor->source &&
                       std::ranges::find(results, value) == results.end();
      if (own) add(value);
    }
    return all;
  }

  // Returns a fake for the gradient of each tensor among the arguments; null where there is none.
  std::vector<PyObject*> gradientsIn(Variable* result) {
    capture_.use(result);
    std::vector<Variable*> all{result};
    if (auto* tuple = dynamic_cast<TupleVariable*>(result)) all = tuple->all(capture_);
    if (result->constant() && PyTuple_Check(result->constant())) {
      all = elementsOf(capture_, result);
    }
    std::vector<PyObject*> gradients;
    for (size_t i = 0; i < std::max(all.size(), arguments_.size()); ++i) {
      Variable* const given = i < all.size() ? capture_.use(all[i]) : nullptr;
      auto* const tensor = given ? dynamic_cast<TensorVariable*>(given) : nullptr;
      const bool none = given && given->constant() == Py_None;
      const bool wanted = i < arguments_.size() && capture_.as<TensorVariable>(arguments_[i]);
      if (!given || (!tensor && !none) || (tensor && !wanted)) {
        breakGraph("a derivative gives gradients that do not fit the arguments");
      }
      if (wanted) gradients.push_back(tensor && needs_[i] ? tensor->fake() : nullptr);
    }
    return gradients;
  }

  Variable* differentiated() {
    if (capture_.sides_since >= 0) {
      breakGraph("a function with a derivative of its own in a part that may change nothing");
    }
    const int64_t since = capture_.numVariables();
    Recording& recording = *capture_.recording;
    recording.beginFunction();
    Recording::FunctionParts parts;
    Variable* result = nullptr;
    try {
      result = call("forward", arguments_);
      const std::vector<Variable*> tensors = tensorsIn(result);
      for (Variable* each : tensors) {
        parts.results.push_back(fakeOf(each));
        const auto& without = context_->without_gradient;
        parts.differentiable.push_back(std::ranges::find(without, each) == without.end());
      }
      if (!context_->materializes) breakGraph("set_materialize_grads() in a graph with gradients");
      parts.saved = savedFor(tensors, since);
      std::vector<Variable*> gradients;
      for (Object& each : recording.beginDerivative(parts.saved, parts.results)) {
        gradients.push_back(capture_.result(std::move(each)));
      }
      context_->beginBackward();
      parts.gradients = gradientsIn(derivativeOf(std::move(gradients)));
    } catch (const Raised&) {
      breakGraph("a function with a derivative of its own raises an exception");
    }
    for (Variable* each : arguments_) {
      if (capture_.as<TensorVariable>(each)) parts.arguments.push_back(fakeOf(each));
    }
    std::vector<Variable*> results;
    for (Object& each : recording.endFunction(parts, capture_.root_step)) {
      results.push_back(capture_.result(std::move(each)));
    }
    return resultOf(result, std::move(results));
  }

  // Evaluates backward, which runs later: it may change nothing, nor ask what may be otherwise then.
  Variable* derivativeOf(std::vector<Variable*> gradients) {
    capture_.sides_since = capture_.numVariables();
    const Capture::Part before = std::exchange(capture_.part, Capture::Part::kDerivative);
    Variable* const result = call("backward", std::move(gradients));
    capture_.part = before;
    capture_.sides_since = -1;
    return result;
  }

  Capture& capture_;
  ClassVariable* type_ = nullptr;
  const std::vector<Variable*> arguments_;
  std::vector<bool> needs_;
  ContextVariable* context_ = nullptr;
};

}  // namespace

Variable* applyFunction(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) breakGraph("a function with a derivative of its own without class");
  PyObject* const type = capture.use(given.positional[0])->constant();
  if (type && capture.world.calleeOf(type) == Callee::kCheckpoint) {
    return callCheckpoint(
        capture, {{given.positional.begin() + 1, given.positional.end()}, given.keywords}, true);
  }
  return Application(capture, given).run();
}

}  // namespace wick::capture
