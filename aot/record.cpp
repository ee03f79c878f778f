#include <fmt/format.h>

#include <unordered_map>

#include "aot/build.h"
#include "aot/device.h"
#include "aot/recording.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ir/function.h"
#include "ir/graph.h"
#include "passes/inline_calls.h"
#include "runtime/call.h"
#include "runtime/executor/execution_plan.h"

namespace wick::aot {

namespace {

// While it lives, tensors that the program makes are made on the device "ahead".
class DefaultDevice {
 public:
  DefaultDevice() : before_(defaultDevice()) { setDefaultDevice(Device{kAhead, -1}, true); }
  ~DefaultDevice() { setDefaultDevice(before_); }
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  const Device before_;
};

// The value with its tensors as constants of the recording; nullopt when it has none. Tensors of no
// dimensions stay: they join others where numbers do, and traced programs compute sizes with them.
std::optional<IValue> ahead(const IValue& value, Recording& recording) {
  if (value.isTensor()) {
    const Tensor t = value.toTensor();
    if (!t.defined() || t.dim() == 0) return std::nullopt;
    if (t.kind() != TensorKind::Dense) {
      throw NotAhead(fmt::format("a constant {} is not available ahead of time", t.describe()));
    }
    return IValue(recording.constant(t));
  }
  if (!value.isList() && !value.isTuple()) return std::nullopt;
  std::vector<IValue> elements;
  bool changed = false;
  for (const IValue& e : value.elements()) {
    std::optional<IValue> moved = ahead(e, recording);
    changed = changed || moved;
    elements.push_back(moved ? *std::move(moved) : e);
  }
  if (!changed) return std::nullopt;
  if (value.isTuple()) return IValue(makeTuple(std::move(elements), value.toTuple().named));
  return IValue(makeList(value.toList().element_type, std::move(elements)));
}

void moveConstants(Block* block, Recording& recording) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) moveConstants(inner, recording);
    if (node->kind() == prim::SetAttr) {
      throw NotAhead(fmt::format(
          "the program sets the attribute '{}'; compiled models keep nothing between calls\n{}",
          node->ivalue(attr::name).toString(), node->range().highlight()));
    }
    if (node->kind() != prim::Constant) continue;
    const std::optional<IValue> value = constantOf(node->output());
    if (!value) continue;
    if (std::optional<IValue> moved = ahead(*value, recording)) {
      // Without what was known of the other one.
      if (moved->isTensor()) node->output()->setType(types::Tensor());
      node->setAttribute(attr::value, *std::move(moved));
    }
  }
}

// Tensors of a result, in order.
void addOutputs(const IValue& value, const std::string& name, Recording& recording) {
  if (value.isTensor() && value.toTensor().defined()) {
    recording.addOutput(name, value.toTensor());
    return;
  }
  if (value.isTuple() || value.isList()) {
    size_t i = 0;
    for (const IValue& e : value.elements()) {
      addOutputs(e, fmt::format("{}{}", name, i++), recording);
    }
    return;
  }
  throw NotAhead(
      fmt::format("the result {} is of type {}; results of compiled models are tensors, and tuples "
                  "and lists of "
                  "them",
                  name, value.tagName()));
}

}  // namespace

Program record(GraphFunction& function, const std::vector<IValue>& arguments) {
  function.ensureDefined();
  std::shared_ptr<Graph> graph = function.graph()->copy();
  inlineCalls(*graph);
  Recording recording;
  const FunctionSchema& schema = function.schema();
  const DefaultDevice scope;
  const bool grad = gradEnabled();
  setGradEnabled(false);
  struct Restore {
    bool grad;
    ~Restore() { setGradEnabled(grad); }
  } restore{grad};
  moveConstants(graph->block(), recording);
  GraphFunction ahead_function(function.qualifiedName(), std::move(graph));
  ahead_function.setSchema(schema);
  IValue result;
  // The first runs find out what plans are made for.
  for (int run = 0; run <= static_cast<int>(ExecutionPlan::kProfiledRuns); ++run) {
    recording.restart();
    std::vector<IValue> given;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const IValue& v = arguments[i];
      const std::string name = i < schema.arguments().size() ? schema.arguments()[i].name : "";
      if (!v.isTensor() || !v.toTensor().defined()) {
        given.push_back(ahead(v, recording).value_or(v));
        continue;
      }
      const Tensor t = v.toTensor();
      if (t.kind() != TensorKind::Dense || !t.isContiguous()) {
        throw NotAhead(fmt::format("argument '{}': expected a dense row-major tensor, got {}", name,
                                   t.describe()));
      }
      given.emplace_back(recording.addInput(name, t));
    }
    result = callFunction(ahead_function, given);
  }
  addOutputs(result, "result", recording);
  return recording.take();
}

}  // namespace wick::aot
