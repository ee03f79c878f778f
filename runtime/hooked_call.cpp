#include "runtime/hooked_call.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/error.h"
#include "ir/graph.h"

namespace wick {

namespace {

class HookedCall {
 public:
  explicit HookedCall(const Module& module)
      : module_(module), forward_(module.method("forward")), graph_(std::make_shared<Graph>()) {
    forward_.ensureDefined();
    for (const Value* input : forward_.graph()->inputs()) {
      arguments_.push_back(graph_->block()->addInput(input->type()));
    }
    self_ = arguments_.at(0);
    arguments_.erase(arguments_.begin());
  }

  std::shared_ptr<Graph> build() {
    for (Function* hook : module_.type()->forwardPreHooks()) callBefore(*hook);
    std::vector<Value*> inputs = {self_};
    inputs.insert(inputs.end(), arguments_.begin(), arguments_.end());
    Value* result = inlineGraph(*graph_, *forward_.graph(), inputs).at(0);
    for (Function* hook : module_.type()->forwardHooks()) {
      Value* const made = call(*hook, {tupleOfArguments(), result});
      if (!isNone(made)) result = replacement(*hook, made);
    }
    graph_->registerOutput(result);
    return graph_;
  }

 private:
  static bool isNone(const Value* v) { return v->type()->kind() == TypeKind::None; }

  Value* call(Function& hook, const std::vector<Value*>& arguments) {
    hook.ensureDefined();
    const Graph& body = *static_cast<GraphFunction&>(hook).graph();
    if (body.inputs().size() != arguments.size() + 1) {
      throw UsageError(fmt::format("the hook {} takes {} arguments, expected {}", hook.name(),
                                   body.inputs().size(), arguments.size() + 1));
    }
    std::vector<Value*> inputs = {self_};
    for (size_t i = 0; i < arguments.size(); ++i) {
      const TypePtr& expected = body.inputs()[i + 1]->type();
      if (!arguments[i]->type()->isSubtypeOf(*expected)) {
        throw UsageError(fmt::format("the hook {} takes {}, and the module gives {}", hook.name(),
                                     expected->annotation(), arguments[i]->type()->annotation()));
      }
      inputs.push_back(arguments[i]);
    }
    return inlineGraph(*graph_, body, inputs).at(0);
  }

  Value* tupleOfArguments() {
    return graph_->insertNode(graph_->createTuple(arguments_))->output();
  }

  void callBefore(Function& hook) {
    Value* const made = call(hook, {tupleOfArguments()});
    if (isNone(made)) return;
    std::vector<Value*> next = {replacement(hook, made)};
    if (made->type()->kind() == TypeKind::Tuple) {
      const auto parts = graph_->insertNode(graph_->createTupleUnpack(made))->outputs();
      next.assign(parts.begin(), parts.end());
    }
    const auto inputs = forward_.graph()->inputs();
    bool fits = next.size() + 1 == inputs.size();
    for (size_t i = 0; fits && i < next.size(); ++i) {
      fits = next[i]->type()->isSubtypeOf(*inputs[i + 1]->type());
    }
    if (!fits) {
      throw UsageError(fmt::format("the hook {} returns {}, which forward does not take",
                                   hook.name(), made->type()->annotation()));
    }
    arguments_ = std::move(next);
  }

  static Value* replacement(const Function& hook, Value* made) {
    const TypeKind kind = made->type()->kind();
    if (kind == TypeKind::Optional || kind == TypeKind::Union || kind == TypeKind::Any) {
      throw UsageError(
          fmt::format("the hook {} returns {}: whether it replaces anything is known only when it "
                      "runs; let it return None or another type always",
                      hook.name(), made->type()->annotation()));
    }
    return made;
  }

  const Module& module_;
  GraphFunction& forward_;
  std::shared_ptr<Graph> graph_;
  Value* self_;
  std::vector<Value*> arguments_;  // without self; what pre-hooks made of them
};

}  // namespace

std::shared_ptr<GraphFunction> functionWithHooks(const Module& module) {
  std::shared_ptr<Graph> graph = HookedCall(module).build();
  GraphFunction& forward = module.method("forward");
  const FunctionSchema& schema = forward.schema();
  std::vector<Argument> returns = schema.returns();
  returns.at(0).type = graph->outputs()[0]->type();
  std::shared_ptr<GraphFunction> made(new GraphFunction(forward.qualifiedName(), std::move(graph)),
                                      [self = module.object()](GraphFunction* f) { delete f; });
  made->setSchema(
      FunctionSchema(schema.name(), schema.overload(), schema.arguments(), std::move(returns)));
  return made;
}

}  // namespace wick
