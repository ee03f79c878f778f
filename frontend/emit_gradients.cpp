// The forms that say how something is differentiated:
//
//   torch.utils.checkpoint.checkpoint(f, x, …)               computes f again in the walk back
//   torch.ops.wick.custom_function(forward, backward, x, …)  has a derivative of its own
//
// Both become an operator whose first arguments are functions (ir/function_capsule.h). The
// attribute Subgraph tells analyses what the operator does when it is called.
#include <fmt/format.h>

#include "core/error.h"
#include "frontend/ir_emitter.h"
#include "ir/function_capsule.h"

namespace wick {

namespace {

// A function that calls `callee` with arguments of these types.
Ref<FunctionCapsule> functionThatCalls(const SourceRange& range, const SugaredValuePtr& callee,
                                       const std::string& name, const std::vector<TypePtr>& types) {
  auto made = std::make_shared<Graph>();
  GraphFunction within(name, made);
  std::vector<NamedValue> args;
  for (size_t i = 0; i < types.size(); ++i) {
    args.emplace_back(range, made->addInput(fmt::format("a{}", i), types[i]));
  }
  RangeGuard at(made.get(), range);
  Value* result = callee->call(range, within, std::move(args), {}, 1)->asValue(range, within);
  made->block()->registerOutput(result);
  return makeRef<FunctionCapsule>(name, made);
}

const TupleType* tupleWith(const TypePtr& type, size_t count) {
  const auto* tuple = type->as<TupleType>();
  return tuple && tuple->contained().size() == count ? tuple : nullptr;
}

// What the gradients of a value of this type are, as arguments of the backward function.
std::vector<TypePtr> gradientsFor(const SourceRange& range, const TypePtr& result) {
  if (result->kind() == TypeKind::Tensor) return {types::Tensor()};
  const auto* tuple = result->as<TupleType>();
  const bool tensors = tuple && std::ranges::all_of(tuple->contained(), [](const TypePtr& t) {
                         return t->kind() == TypeKind::Tensor;
                       });
  if (!tensors) {
    throwCompileError(range,
                      "custom_function: forward must return (result, saved), where the result is "
                      "a Tensor or a tuple of Tensors; it is {}",
                      result->annotation());
  }
  return std::vector<TypePtr>(tuple->contained().size(), types::Tensor());
}

// What backward gives is looked at here, so that a mistake is an error of the text.
void checkGradients(const SourceRange& range, const TypePtr& found,
                    const std::vector<TypePtr>& arguments) {
  const auto fits = [](const TypePtr& t) { return t->isSubtypeOf(OptionalType(types::Tensor())); };
  const bool alone = arguments.size() == 1 && fits(found);
  const TupleType* tuple = tupleWith(found, arguments.size());
  if (alone || (tuple && std::ranges::all_of(tuple->contained(), fits))) return;
  throwCompileError(range,
                    "custom_function: backward must return a gradient, a Tensor or None, for each "
                    "of the {} arguments of forward; it returns {}",
                    arguments.size(), found->annotation());
}

}  // namespace

SugaredValuePtr Emitter::emitCheckpoint(const Apply& apply) {
  const SourceRange& range = apply.range();
  if (apply.inputs().empty()) {
    throwCompileError(range, "checkpoint expected a function and its arguments but found nothing");
  }
  Value* preserve = nullptr;
  std::vector<Attribute> others;
  for (const Attribute& a : apply.attributes()) {
    const std::string& name = a.name().name();
    if (name == "preserve_rng_state") {
      preserve = emitExpr(a.value());
      if (preserve->type()->kind() != TypeKind::Bool) {
        throwCompileError(a.range(), "checkpoint: preserve_rng_state must be a bool, found {}",
                          preserve->type()->annotation());
      }
    } else if (name == "use_reentrant") {
      // Both of PyTorch's ways give the same gradients here.
      emitExpr(a.value());
    } else {
      others.push_back(a);
    }
  }
  if (!preserve) preserve = constant(IValue(true));
  const Apply called =
      Apply::create(range, apply.callee(), apply.inputs(), List<Attribute>::create(range, others));
  Value* closure = makeCallClosure(called);
  TypePtr type = closure->node()->blocks()[0]->outputs().at(0)->type();
  Node* n = graph_.insertNode(graph_.create(checkpointKind(), {closure, preserve}));
  n->output()->setType(types::Any());
  return simple(uncheckedCast(n->output(), type));
}

SugaredValuePtr Emitter::emitCustomFunction(const Apply& apply) {
  const SourceRange& range = apply.range();
  if (apply.inputs().size() < 2) {
    throwCompileError(range,
                      "custom_function expected two functions, forward and backward, and the "
                      "arguments of forward");
  }
  Value* without = nullptr;
  for (const Attribute& a : apply.attributes()) {
    if (a.name().name() != "non_differentiable") {
      throwCompileError(a.range(), "custom_function has no parameter '{}'", a.name().name());
    }
    without = emitExpr(a.value(), types::List(types::Int()));
    if (!without->type()->isSubtypeOf(*types::List(types::Int()))) {
      throwCompileError(a.range(),
                        "custom_function: non_differentiable must be a List[int], found {}",
                        without->type()->annotation());
    }
  }
  SugaredValuePtr parts[2];
  for (size_t i = 0; i < 2; ++i) {
    parts[i] = emitSugared(apply.inputs()[i]);
    if (!std::dynamic_pointer_cast<FunctionValue>(parts[i])) {
      throwCompileError(apply.inputs()[i].range(),
                        "custom_function: {} must be a function of the file, found a {}",
                        i == 0 ? "forward" : "backward", parts[i]->kind());
    }
  }
  std::vector<Expr> rest;
  for (size_t i = 2; i < apply.inputs().size(); ++i) rest.push_back(apply.inputs()[i]);
  std::vector<Value*> arguments;
  std::vector<TypePtr> types;
  for (const NamedValue& arg : emitArguments(List<Expr>::create(range, rest))) {
    arguments.push_back(arg.value);
    types.push_back(arg.type());
  }
  const auto forward = functionThatCalls(range, parts[0], "custom_forward", types);
  const TypePtr returned = forward->function.graph()->outputs().at(0)->type();
  const TupleType* pair = tupleWith(returned, 2);
  if (!pair) {
    throwCompileError(range,
                      "custom_function: forward must return (result, saved), what the call gives "
                      "and what backward gets of it; it returns {}",
                      returned->annotation());
  }
  std::vector<TypePtr> given{pair->contained()[1]};
  for (TypePtr& t : gradientsFor(range, pair->contained()[0])) given.push_back(std::move(t));
  const auto backward = functionThatCalls(range, parts[1], "custom_backward", given);
  checkGradients(range, backward->function.graph()->outputs().at(0)->type(), types);

  const auto insert = [&](const Ref<FunctionCapsule>& part) {
    return graph_.insertConstant(IValue::capsule(part), types::Capsule());
  };
  std::vector<Value*> inputs{insert(forward), insert(backward)};
  if (!without) without = constant(IValue(makeIntList(IntSpan())));
  inputs.push_back(without);
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  Node* n = graph_.create(customFunctionKind(), inputs);
  n->setAttribute(attr::Subgraph, forward->function.graph());
  n->output()->setType(types::Any());
  graph_.insertNode(n);
  return simple(uncheckedCast(n->output(), pair->contained()[0]));
}

}  // namespace wick
