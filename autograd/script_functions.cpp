// Checkpoints and functions with derivatives of their own, as programs write them
// (frontend/emit_gradients.cpp).
#include <algorithm>

#include "autograd/checkpoint.h"
#include "autograd/custom_function.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "ir/function_capsule.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/interpreter/run_owner.h"
#include "runtime/ops/boxing.h"

namespace wick::autograd {

namespace {

// A part of a program that is run later too, when its compilation unit may have no other owner.
class Part {
 public:
  Part(const char* op, const IValue& value) : value_(value), owner_(ownerOfRun()) {
    WICK_CHECK(value.isCapsule() && dynamic_cast<FunctionCapsule*>(&value.toCapsule()),
               "{}: expected a part of a program", op);
  }

  IValue run(std::vector<IValue> arguments) const {
    GraphFunction& function = static_cast<FunctionCapsule&>(value_.toCapsule()).function;
    WICK_CHECK(arguments.size() == function.graph()->inputs().size(),
               "a part of a program takes {} values, got {}", function.graph()->inputs().size(),
               arguments.size());
    const Code& code = GraphExecutor::of(function).codeFor(arguments);
    return runCodeWithin(code, std::move(arguments));
  }

 private:
  IValue value_;
  std::shared_ptr<void> owner_;
};

std::vector<IValue> argumentsFrom(CallFrame& frame, size_t first) {
  return std::vector<IValue>(frame.args + first, frame.args + frame.num_args);
}

void checkpointed(CallFrame& frame) {
  const Part part("checkpoint", frame.args[0]);
  CheckpointOptions options;
  options.preserve_random_state = frame.args[1].toBool();
  frame.results[0] = checkpointValues(
      [part](std::vector<IValue> arguments) { return part.run(std::move(arguments)); },
      argumentsFrom(frame, 2), options);
}

// Of a call of custom_function.
class ScriptFunction : public CustomFunction {
 public:
  ScriptFunction(Part forward, Part backward, std::vector<int64_t> without)
      : forward_(std::move(forward)),
        backward_(std::move(backward)),
        without_(std::move(without)) {}
  std::string name() const override { return "CustomFunctionBackward"; }

  std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs) override {
    const IValue found = forward_.run(inputs);
    const IValue& result = found.elements().at(0);
    std::vector<Tensor> results;
    tuple_ = result.isTuple();
    if (tuple_) {
      for (const IValue& e : result.elements()) results.push_back(e.toTensor());
      named_ = result.toTuple().named;
    } else {
      results.push_back(result.toTensor());
    }
    std::vector<Tensor> off;
    for (const int64_t i : without_) {
      WICK_CHECK(i >= 0 && i < static_cast<int64_t>(results.size()),
                 "custom_function: non_differentiable names result {} of {}", i, results.size());
      off.push_back(results[static_cast<size_t>(i)]);
    }
    ctx.markNonDifferentiable(off);
    // Tensors are saved with their history, whatever else there is as it is.
    saved_ = found.elements().at(1);
    std::vector<Tensor> tensors;
    saved_ = taken(saved_, tensors);
    ctx.saveForBackward(tensors);
    return results;
  }

  std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) override {
    size_t next = 0;
    std::vector<IValue> arguments{given(saved_, ctx.savedTensors(), next)};
    for (const Tensor& g : grads) arguments.emplace_back(g);
    const IValue found = backward_.run(std::move(arguments));
    std::vector<Tensor> out;
    if (found.isTuple()) {
      for (const IValue& e : found.elements()) out.push_back(e.toTensor());
    } else {
      out.push_back(found.toTensor());
    }
    return out;
  }

  // As the program's forward returned it.
  IValue resultOf(std::vector<Tensor> results) const {
    if (!tuple_) return IValue(std::move(results.at(0)));
    std::vector<IValue> elements(results.begin(), results.end());
    return IValue(makeTuple(std::move(elements), named_));
  }

 private:
  // A value with numbers in the place of its tensors, which are appended; lists and tuples are
  // looked into. Anything else is kept as it is.
  static IValue taken(const IValue& value, std::vector<Tensor>& tensors, int depth = 0) {
    constexpr int kMaxDepth = 64;
    WICK_CHECK(depth < kMaxDepth, "custom_function: what is saved is nested too deeply");
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
      return IValue::capsule(makeRef<Place>());
    }
    if (!value.isTuple() && !value.isList()) return value;
    std::vector<IValue> elements;
    for (const IValue& e : value.elements()) elements.push_back(taken(e, tensors, depth + 1));
    if (value.isList()) return IValue(makeList(value.toList().element_type, std::move(elements)));
    return IValue(makeTuple(std::move(elements), value.toTuple().named));
  }
  static IValue given(const IValue& value, const std::vector<Tensor>& tensors, size_t& next) {
    if (value.isCapsule() && dynamic_cast<Place*>(&value.toCapsule())) {
      return IValue(tensors.at(next++));
    }
    if (!value.isTuple() && !value.isList()) return value;
    std::vector<IValue> elements;
    for (const IValue& e : value.elements()) elements.push_back(given(e, tensors, next));
    if (value.isList()) return IValue(makeList(value.toList().element_type, std::move(elements)));
    return IValue(makeTuple(std::move(elements), value.toTuple().named));
  }
  // Where a tensor stood.
  struct Place : RefCounted {};

  const Part forward_, backward_;
  const std::vector<int64_t> without_;
  bool tuple_ = false;
  std::shared_ptr<const TupleType> named_;
  IValue saved_;
};

void customFunction(CallFrame& frame) {
  std::vector<int64_t> without;
  for (const IValue& v : frame.args[2].elements()) without.push_back(v.toInt());
  const auto function =
      std::make_shared<ScriptFunction>(Part("custom_function", frame.args[0]),
                                       Part("custom_function", frame.args[1]), std::move(without));
  std::vector<Tensor> results = applyCustom(function, argumentsFrom(frame, 3));
  frame.results[0] = function->resultOf(std::move(results));
}

constexpr OperatorRecord kScriptFunctionsRecords[] = {
    {"wick::checkpoint(Capsule part, bool preserve_rng_state, ...) -> Any", checkpointed,
     kSideEffects | kNeutralMixed},
    {"wick::custom_function(Capsule forward, Capsule backward, int[] non_differentiable, ...) -> "
     "Any",
     customFunction, kSideEffects | kNeutralMixed},
};
const RegisterOperators kScriptFunctionsRegistered(kScriptFunctionsRecords);

}  // namespace

}  // namespace wick::autograd
