#include "tracing/tracer.h"

#include <bit>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "ir/function.h"
#include "passes/dead_code_elimination.h"

namespace wick::tracing {
namespace {

constexpr size_t kMaxDepth = 100;  // of containers among inputs

bool holdsTensors(const IValue& value) {
  switch (value.tag()) {
    case IValue::Tag::Tensor:
      return true;
    case IValue::Tag::List:
    case IValue::Tag::Tuple:
      for (const IValue& element : value.elements()) {
        if (holdsTensors(element)) return true;
      }
      return false;
    case IValue::Tag::Dict:
      for (const auto& [key, element] : value.toDict().items()) {
        if (holdsTensors(element)) return true;
      }
      return false;
    default:
      return false;
  }
}

bool mayHoldTensors(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::Complex:
    case TypeKind::Number:
    case TypeKind::String:
    case TypeKind::None:
    case TypeKind::Device:
      return false;
    case TypeKind::Tensor:
      return true;
    default: {
      if (type.contained().empty()) return true;
      for (const TypePtr& inner : type.contained()) {
        if (mayHoldTensors(*inner)) return true;
      }
      return false;
    }
  }
}

bool holdsVariables(const Type& type) {
  if (type.kind() == TypeKind::Var) return true;
  for (const TypePtr& inner : type.contained()) {
    if (holdsVariables(*inner)) return true;
  }
  return false;
}

const Operator& operatorNamed(const char* name, const char* overload) {
  const Operator* op = OperatorRegistry::instance().find(Symbol::fromQualString(name), overload);
  WICK_ASSERT(op, "no operator {}.{}", name, overload);
  return *op;
}

Tensor otherViewOf(const Tensor& tensor) {
  static const Operator& alias = operatorNamed("aten::alias", "");
  IValue argument(tensor), result;
  alias.call(&argument, 1, &result, 1);
  return result.toTensor();
}

// Numbers that follow from a tensor's sizes, which other inputs may change.
bool readsSizes(Symbol symbol) {
  static const Symbol kSize = Symbol::aten("size");
  static const Symbol kNumel = Symbol::aten("numel");
  return symbol == kSize || symbol == kNumel;
}

}  // namespace

Tracer::Tracer() : graph_(std::make_shared<Graph>()) {}

Tracer* Tracer::findActive() {
  return dynamic_cast<Tracer*>(threadContext().layers[static_cast<size_t>(CallLayerSlot::Trace)]);
}

TraceScope::TraceScope(Tracer& tracer)
    : scope_(CallLayerSlot::Trace,
             Tracer::active() ? throw RuntimeError("Tracing can't be nested") : &tracer) {}

// ---- blocks ----

Value* Tracer::Scope::find(const Tensor& tensor) const {
  const auto known = tensors.find(tensor.impl());
  return known == tensors.end() ? nullptr : known->second;
}

Tracer::Scope Tracer::enter(Block* block) {
  Scope outer;
  outer.insert_before = graph_->insertPoint();
  outer.tensors = tensors_;
  for (size_t i = 0; i < std::size(numbers_); ++i) outer.numbers[i] = numbers_[i];
  outer.objects = object_values_;
  graph_->setInsertPoint(block);
  return outer;
}

Tracer::Scope Tracer::leave(Scope outer) {
  Scope inner;
  inner.insert_before = graph_->insertPoint();
  graph_->setInsertPoint(outer.insert_before);
  for (const auto& [tensor, value] : tensors_) {
    if (value->node() == graph_->paramNode()) {
      outer.tensors.try_emplace(tensor, value);
    }
  }
  inner.tensors = std::exchange(tensors_, std::move(outer.tensors));
  for (size_t i = 0; i < std::size(numbers_); ++i) {
    inner.numbers[i] = std::exchange(numbers_[i], std::move(outer.numbers[i]));
  }
  inner.objects = std::exchange(object_values_, std::move(outer.objects));
  return inner;
}

// ---- inputs ----

void Tracer::noteAttributes(const Object& object) {
  const auto& attributes = object.type()->attributes();
  for (size_t i = 0; i < attributes.size(); ++i) {
    const IValue& value = object.slot(i);
    if (value.isTensor()) {
      attributes_.try_emplace(value.toTensor().impl(), Place{&object, attributes[i].name});
    } else if (value.isObject()) {
      const Object* inner = &value.toObject();
      if (inner->type()->isModule() &&
          objects_.try_emplace(inner, Place{&object, attributes[i].name}).second) {
        noteAttributes(*inner);
      }
    }
  }
}

void Tracer::addModule(const ObjectRef& module) {
  object_values_[module.get()] = graph_->addInput("self", module->type());
  modules_.push_back(module);
  objects_.try_emplace(module.get(), Place{nullptr, ""});
  noteAttributes(*module);
}

IValue Tracer::fresh(const IValue& value, size_t depth) {
  if (depth > kMaxDepth) throwRuntimeError("the inputs of a trace are nested too deeply");
  switch (value.tag()) {
    case IValue::Tag::Tensor: {
      const Tensor tensor = value.toTensor();
      const bool known =
          tensors_.count(tensor.impl()) != 0 || attributes_.count(tensor.impl()) != 0;
      const Tensor given = known ? otherViewOf(tensor) : tensor;
      bindTensor(nullptr, given);  // one more occurrence is another view
      return IValue(given);
    }
    case IValue::Tag::List: {
      std::vector<IValue> elements;
      for (const IValue& e : value.elements()) elements.push_back(fresh(e, depth + 1));
      return IValue(makeList(value.toList().element_type, std::move(elements)));
    }
    case IValue::Tag::Tuple: {
      std::vector<IValue> elements;
      for (const IValue& e : value.elements()) elements.push_back(fresh(e, depth + 1));
      return IValue(makeTuple(std::move(elements)));
    }
    case IValue::Tag::Dict: {
      const DictObject& dict = value.toDict();
      const auto copy = makeRef<DictObject>(dict.key_type, dict.value_type);
      for (const auto& [key, element] : dict.items()) copy->set(key, fresh(element, depth + 1));
      return IValue(DictRef(copy));
    }
    default:
      throwRuntimeError(
          "Type '{}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
          "of Tensors can be traced",
          unshapedType(value.type())->annotation());
  }
}

IValue Tracer::addInput(const std::string& name, const IValue& value) {
  const IValue given = fresh(value, 0);
  bind(graph_->addInput(name, unshapedType(given.type())), given);
  return given;
}

// ---- values ----

Value* Tracer::constantFor(const IValue& value) {
  uint64_t bits = 0;
  switch (value.tag()) {
    case IValue::Tag::None:
      break;
    case IValue::Tag::Int:
      bits = static_cast<uint64_t>(value.toInt());
      break;
    case IValue::Tag::Double:
      bits = std::bit_cast<uint64_t>(value.toDouble());
      break;
    case IValue::Tag::Bool:
      bits = value.toBool() ? 1 : 0;
      break;
    case IValue::Tag::String:
    case IValue::Tag::Device:
    case IValue::Tag::Complex:
    case IValue::Tag::Enum:
      return graph_->insertConstant(value);
    default:
      throwRuntimeError("a value of type {} cannot be recorded in a trace",
                        value.type()->annotation());
  }
  Value*& known = numbers_[static_cast<size_t>(value.tag())][bits];
  if (!known) {
    known = value.isNone() ? graph_->insertNode(graph_->createNone())->output()
                           : graph_->insertConstant(value);
  }
  return known;
}

Value* Tracer::objectValue(const Object* object) {
  if (const auto known = object_values_.find(object); known != object_values_.end()) {
    return known->second;
  }
  const auto place = objects_.find(object);
  if (place == objects_.end()) {
    throwRuntimeError(
        "Tried to trace {} but it is not part of the active trace. Modules that are called during "
        "a "
        "trace must be registered as submodules of the thing being traced.",
        object->type()->name());
  }
  Value* owner = objectValue(place->second.owner);
  Value* value = graph_->insertNode(graph_->createGetAttr(owner, place->second.name))->output();
  object_values_[object] = value;
  return value;
}

Value* Tracer::find(const Tensor& tensor) {
  if (const auto known = tensors_.find(tensor.impl()); known != tensors_.end()) {
    return known->second;
  }
  const auto attribute = attributes_.find(tensor.impl());
  if (attribute == attributes_.end()) return nullptr;
  Value* owner = objectValue(attribute->second.owner);
  Value* value = graph_->insertNode(graph_->createGetAttr(owner, attribute->second.name))->output();
  tensors_[tensor.impl()] = value;
  return value;
}

Value* Tracer::tensorValue(const Tensor& tensor) {
  if (Value* known = find(tensor)) return known;
  if (tensor.requiresGrad()) {
    throwRuntimeError(
        "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter "
        "or "
        "input, or detaching the gradient\nTensor: {}",
        tensor.describe());
  }
  Value* value = graph_->insertConstant(IValue(tensor), types::Tensor());
  bindTensor(value, tensor);
  return value;
}

Value* Tracer::listFor(const IValue& value, const TypePtr& type) {
  const ListObject& list = value.toList();
  TypePtr element = list.element_type;
  if (const auto* declared = type ? type->as<ListType>() : nullptr) {
    if (!holdsVariables(*declared)) element = declared->element();
  }
  std::vector<Value*> elements;
  elements.reserve(list.elements.size());
  for (const IValue& e : list.elements) elements.push_back(valueFor(e, element));
  return graph_->insertNode(graph_->createList(unshapedType(element), elements))->output();
}

Value* Tracer::dictFor(const IValue& value) {
  const DictObject& dict = value.toDict();
  std::vector<Value*> keys, values;
  for (const auto& [key, element] : dict.items()) {
    keys.push_back(valueFor(key, dict.key_type));
    values.push_back(valueFor(element, dict.value_type));
  }
  return graph_
      ->insertNode(graph_->createDict(unshapedType(dict.key_type), unshapedType(dict.value_type),
                                      keys, values))
      ->output();
}

Value* Tracer::valueFor(const IValue& value, const TypePtr& type) {
  switch (value.tag()) {
    case IValue::Tag::Tensor:
      return tensorValue(value.toTensor());
    case IValue::Tag::List: {
      const auto* optional = type ? type->as<OptionalType>() : nullptr;
      return listFor(value, optional ? optional->element() : type);
    }
    case IValue::Tag::Dict:
      return dictFor(value);
    case IValue::Tag::Tuple: {
      std::vector<Value*> elements;
      for (const IValue& e : value.elements()) elements.push_back(valueFor(e, nullptr));
      return graph_->insertNode(graph_->createTuple(elements, value.toTuple().named))->output();
    }
    case IValue::Tag::Object:
      return objectValue(&value.toObject());
    default:
      return constantFor(value);
  }
}

Value* Tracer::containerFor(const IValue& value, std::span<Value* const> elements) {
  if (value.isTuple()) return graph_->insertNode(graph_->createTuple(elements))->output();
  const TypePtr element = unshapedType(value.toList().element_type);
  std::vector<Value*> fitting;
  for (Value* e : elements) {
    if (element->kind() == TypeKind::Float && e->type()->kind() == TypeKind::Int) {
      e = graph_->insertNode(graph_->create(Symbol::aten("Float"), {e}))
              ->output()
              ->setType(types::Float());
    }
    fitting.push_back(e);
  }
  return graph_->insertNode(graph_->createList(element, fitting))->output();
}

std::vector<Value*> Tracer::partsOf(Value* container, size_t count) {
  Node* node = container->type()->kind() == TypeKind::Tuple
                   ? graph_->createTupleUnpack(container)
                   : graph_->createListUnpack(container, count);
  return graph_->insertNode(node)->outputs();
}

Value* Tracer::intOf(const Tensor& tensor) {
  Value* value = find(tensor);
  if (!value) return nullptr;
  static const Operator& op = operatorNamed("aten::Int", "Tensor");
  Node* node = graph_->create(op.symbol(), {value}, 0);
  node->addOutput(types::Int());
  node->setOperator(&op);
  return graph_->insertNode(node)->output();
}

std::optional<Tensor> Tracer::firstOn(const Storage* memory) const {
  for (const Tensor& each : kept_) {
    if (each.impl()->storage.get() == memory) return each;
  }
  return std::nullopt;
}

std::optional<Tensor> Tracer::tensorOf(const Value* value) const {
  const auto found = kept_of_.find(value);
  if (found == kept_of_.end()) return std::nullopt;
  for (const size_t each : found->second) {
    const auto known = tensors_.find(kept_[each].impl());
    if (known != tensors_.end() && known->second == value) return kept_[each];
  }
  return std::nullopt;
}

// ---- results ----

void Tracer::bindTensor(Value* value, const Tensor& tensor) {
  const auto [at, added] = tensors_.try_emplace(tensor.impl(), value);
  if (added) {
    index_of_kept_[tensor.impl()] = kept_.size();
    kept_.push_back(tensor);
  } else {
    at->second = value;
  }
  if (const auto kept = index_of_kept_.find(tensor.impl()); kept != index_of_kept_.end()) {
    kept_of_[value].push_back(kept->second);
  }
}

void Tracer::bind(Value* value, const IValue& is) {
  if (is.isTensor()) {
    if (value->type()->kind() != TypeKind::Tensor) {
      Node* cast = graph_->create(prim::unchecked_cast, {value});
      cast->output()->setType(types::Tensor());
      value = graph_->insertNode(cast)->output();
    }
    return bindTensor(value, is.toTensor());
  }
  if (!holdsTensors(is)) return;
  const TypeKind kind = value->type()->kind();
  if (kind != TypeKind::List && kind != TypeKind::Tuple && kind != TypeKind::Dict) {
    Node* cast = graph_->create(prim::unchecked_cast, {value});
    cast->output()->setType(unshapedType(is.type()));
    value = graph_->insertNode(cast)->output();
  }
  if (is.isDict()) {
    for (const auto& [key, element] : is.toDict().items()) {
      if (!holdsTensors(element)) continue;
      Node* node = graph_->create(aten::__getitem__, {value, valueFor(key, nullptr)});
      node->output()->setType(value->type()->as<DictType>()->value());
      bind(graph_->insertNode(node)->output(), element);
    }
    return;
  }
  const std::vector<IValue>& elements = is.elements();
  const std::vector<Value*> parts = partsOf(value, elements.size());
  for (size_t i = 0; i < elements.size(); ++i) bind(parts[i], elements[i]);
}

// ---- calls ----

bool Tracer::isRecorded(const Operator& op) const {
  if (readsSizes(op.symbol())) return true;
  const FunctionSchema& schema = op.schema();
  if (schema.returns().empty() || schema.isVarret() || schema.isMutable()) return true;
  for (Value* hint : stash_) {
    if (hint) return true;
  }
  for (const Argument& result : schema.returns()) {
    if (mayHoldTensors(*result.type)) return true;
  }
  return false;
}

template <class TypeOf>
std::vector<Value*> Tracer::argumentValues(std::span<const IValue> arguments,
                                           const TypeOf& typeOf) {
  std::vector<Value*> values;
  values.reserve(arguments.size() + 1);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Value* hint = i < stash_.size() ? stash_[i] : nullptr;
    values.push_back(hint ? hint : valueFor(arguments[i], typeOf(i)));
  }
  stash_.clear();
  return values;
}

void Tracer::call(const LayerCall& call) {
  results_.clear();
  const Operator& op = call.op;
  if (!isRecorded(op)) {
    stash_.clear();
    const PauseTrace pause;
    return around([&] { callBelow(CallLayerSlot::Trace, call); });
  }
  const auto& declared = op.schema().arguments();
  bool followed = readsSizes(op.symbol());
  for (const Value* hint : stash_) followed |= hint != nullptr;
  const std::vector<Value*> inputs =
      argumentValues(std::span(call.args, call.num_args), [&](size_t i) -> const TypePtr& {
        static const TypePtr kNone;
        return i < declared.size() ? declared[i].type : kNone;
      });
  {
    const PauseTrace pause;
    around([&] { callBelow(CallLayerSlot::Trace, call); });
  }
  Node* node = graph_->create(op.symbol(), inputs, 0);
  node->setOperator(&op);
  const auto& returns = op.schema().returns();
  for (size_t i = 0; i < call.num_results; ++i) {
    TypePtr type = i < returns.size() ? returns[i].type : nullptr;
    if (!type || holdsVariables(*type) || type->kind() == TypeKind::Number) {
      type = unshapedType(call.results[i].type());
    }
    node->addOutput(std::move(type));
  }
  graph_->insertNode(node);
  for (size_t i = 0; i < call.num_results; ++i) bind(node->output(i), call.results[i]);
  if (!followed) return;
  for (size_t i = 0; i < call.num_results; ++i) {
    results_.push_back(holdsTensors(call.results[i]) ? nullptr : node->output(i));
  }
}

IValue Tracer::callFunction(GraphFunction& function, std::span<const IValue> arguments,
                            const std::shared_ptr<void>& owner,
                            const std::function<IValue()>& run) {
  results_.clear();
  const FunctionSchema& schema = function.schema();
  const auto& declared = schema.arguments();
  const std::vector<Value*> inputs = argumentValues(
      arguments, [&](size_t i) { return i < declared.size() ? declared[i].type : nullptr; });
  const bool method = !arguments.empty() && arguments[0].isObject() &&
                      arguments[0].toObject().type()->findMethod(function.name()) == &function;
  IValue result;
  {
    const PauseTrace pause;
    around([&] { result = run(); });  // which may take the arguments
  }
  Value* value = method
                     ? graph_->insertMethodCall(inputs[0], &function, std::span(inputs).subspan(1))
                     : graph_->insertCall(&function, inputs);
  if (owner) owners_.push_back(owner);
  bind(value, result);
  if (!holdsTensors(result)) results_ = {value};
  return result;
}

IValue Tracer::callInlined(const Graph& body, std::span<const IValue> arguments,
                           const std::function<IValue()>& run) {
  results_.clear();
  const std::vector<Value*> inputs =
      argumentValues(arguments, [&](size_t i) { return body.inputs()[i]->type(); });
  IValue result;
  {
    const PauseTrace pause;
    around([&] { result = run(); });
  }
  const std::vector<Value*> outputs = inlineGraph(*graph_, body, inputs);
  if (outputs.size() == 1) bind(outputs[0], result);
  return result;
}

// ---- submodules ----

void Tracer::enterModule(const ObjectRef& module,
                         std::vector<std::pair<std::string, IValue>> arguments) {
  ModuleCall call;
  call.module = module;
  call.self = objectValue(module.get());
  for (auto& [name, value] : arguments) {
    std::vector<Tensor> tensors;
    if (!collectTensors(value, tensors) || tensors.empty()) continue;
    for (const Tensor& t : tensors) call.given.push_back(find(t));
    call.arguments.emplace_back(std::move(name), std::move(value));
  }
  call.before = graph_->returnNode()->prev();
  open_calls_.push_back(std::move(call));
}

void Tracer::leaveModule(const IValue* result) {
  if (open_calls_.empty()) throw UsageError("leaveModule: no call of a module was entered");
  ModuleCall call = std::move(open_calls_.back());
  open_calls_.pop_back();
  std::vector<Tensor> tensors;
  if (!result || !collectTensors(*result, tensors)) return;
  for (const Tensor& t : tensors) {
    Value* known = find(t);
    if (!known) return;
    call.results.push_back(known);
  }
  call.result = *result;
  call.last = graph_->returnNode()->prev();
  module_calls_.push_back(std::move(call));
}

// ---- the end ----

Value* Tracer::outputFor(const IValue& value, size_t number) {
  switch (value.tag()) {
    case IValue::Tag::Tensor: {
      const Tensor tensor = value.toTensor();
      if (Value* known = find(tensor)) return known;
      throwRuntimeError(
          "output {} ({}) of traced region did not have observable data dependence with trace "
          "inputs; this probably indicates your program cannot be understood by the tracer.",
          number, tensor.describe());
    }
    case IValue::Tag::List:
    case IValue::Tag::Tuple: {
      std::vector<Value*> elements;
      for (const IValue& e : value.elements()) elements.push_back(outputFor(e, number));
      if (value.isTuple()) {
        return graph_->insertNode(graph_->createTuple(elements, value.toTuple().named))->output();
      }
      const TypePtr element = unshapedType(value.toList().element_type);
      return graph_->insertNode(graph_->createList(element, elements))->output();
    }
    case IValue::Tag::Dict: {
      const DictObject& dict = value.toDict();
      std::vector<Value*> keys, values;
      for (const auto& [key, element] : dict.items()) {
        keys.push_back(constantFor(key));
        values.push_back(outputFor(element, number));
      }
      return graph_
          ->insertNode(graph_->createDict(unshapedType(dict.key_type),
                                          unshapedType(dict.value_type), keys, values))
          ->output();
    }
    default:
      throwRuntimeError(
          "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from "
          "traced functions; output {} is of type {}",
          number, unshapedType(value.type())->annotation());
  }
}

std::shared_ptr<Graph> Tracer::finish(const IValue& result) {
  setPlace(SourceRange());
  if (result.isTuple()) {
    std::vector<Value*> elements;
    for (size_t i = 0; i < result.elements().size(); ++i) {
      elements.push_back(outputFor(result.elements()[i], i));
    }
    graph_->registerOutput(
        graph_->insertNode(graph_->createTuple(elements, result.toTuple().named))->output());
  } else {
    graph_->registerOutput(outputFor(result, 0));
  }
  // Before dead nodes go: a call may give more than what its caller uses.
  for (const ModuleCall& call : module_calls_) {
    if (auto graph = methodOf(call)) module_methods_.push_back({call.module, std::move(graph)});
  }
  eliminateDeadCode(*graph_);
  return graph_;
}

}  // namespace wick::tracing
