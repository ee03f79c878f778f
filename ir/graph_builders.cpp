// The create… and insert… functions of Graph: each makes one kind of node with the right attributes
// and types.
#include "core/error.h"
#include "ir/graph.h"

namespace wick {

Node* Graph::createConstant(IValue value) {
  TypePtr type = value.type();
  return createConstant(std::move(value), std::move(type));
}

Node* Graph::createConstant(IValue value, TypePtr type) {
  Node* n = create(prim::Constant);
  if (!value.isNone()) n->setAttribute(attr::value, std::move(value));
  n->output()->setType(std::move(type));
  return n;
}

Node* Graph::createNone() {
  return createConstant(IValue(), types::None());
}

Node* Graph::createUninitialized(TypePtr type) {
  Node* n = create(prim::Uninitialized);
  n->output()->setType(std::move(type));
  return n;
}

Node* Graph::createTuple(std::span<Value* const> elements, std::shared_ptr<const TupleType> named) {
  Node* n = create(prim::TupleConstruct, elements);
  if (named) {
    n->output()->setType(named);
  } else {
    std::vector<TypePtr> element_types;
    for (Value* v : elements) element_types.push_back(v->type());
    n->output()->setType(types::Tuple(std::move(element_types)));
  }
  return n;
}

Node* Graph::createTupleUnpack(Value* tuple) {
  const TupleType* type = tuple->type()->as<TupleType>();
  WICK_ASSERT(type, "unpacking a {}", tuple->type()->str());
  Node* n = create(prim::TupleUnpack, {tuple}, 0);
  for (const TypePtr& t : type->contained()) n->addOutput(t);
  return n;
}

Node* Graph::createTupleIndex(Value* tuple, Value* index, TypePtr type) {
  Node* n = create(prim::TupleIndex, {tuple, index});
  n->output()->setType(std::move(type));
  return n;
}

Node* Graph::createList(TypePtr element_type, std::span<Value* const> elements) {
  Node* n = create(prim::ListConstruct, elements);
  n->output()->setType(types::List(std::move(element_type)));
  return n;
}

Node* Graph::createListUnpack(Value* list, size_t n) {
  const ListType* type = list->type()->as<ListType>();
  WICK_ASSERT(type, "unpacking a {}", list->type()->str());
  Node* node = create(prim::ListUnpack, {list}, 0);
  for (size_t i = 0; i < n; ++i) node->addOutput(type->element());
  return node;
}

Node* Graph::createDict(TypePtr key, TypePtr value, std::span<Value* const> keys,
                        std::span<Value* const> values) {
  WICK_ASSERT(keys.size() == values.size(), "a dict of {} keys and {} values", keys.size(),
              values.size());
  Node* n = create(prim::DictConstruct);
  for (size_t i = 0; i < keys.size(); ++i) n->addInput(keys[i])->addInput(values[i]);
  n->output()->setType(types::Dict(std::move(key), std::move(value)));
  return n;
}

Node* Graph::createObject(ClassTypePtr type) {
  Node* n = create(prim::CreateObject);
  n->output()->setType(std::move(type));
  return n;
}

Node* Graph::createGetAttr(Value* object, const std::string& name) {
  const ClassType* type = object->type()->as<ClassType>();
  WICK_ASSERT(type, "GetAttr of a {}", object->type()->str());
  std::optional<size_t> slot = type->findAttribute(name);
  WICK_ASSERT(slot.has_value(), "{} has no attribute {}", type->name(), name);
  Node* n = create(prim::GetAttr, {object});
  n->setAttribute(attr::name, IValue(name));
  n->output()->setType(type->attributes()[*slot].type);
  return n;
}

Node* Graph::createSetAttr(Value* object, const std::string& name, Value* value) {
  return create(prim::SetAttr, {object, value}, 0)->setAttribute(attr::name, IValue(name));
}

Node* Graph::createLoad(const std::string& name, TypePtr type) {
  Node* n = create(prim::Load);
  n->setAttribute(attr::name, IValue(name));
  n->output()->setType(std::move(type));
  return n;
}

Node* Graph::createStore(const std::string& name, Value* value) {
  return create(prim::Store, {value}, 0)->setAttribute(attr::name, IValue(name));
}

Value* Graph::insertFunction(Function* function) {
  Node* n = create(prim::Constant);
  n->setAttribute(attr::name, IValue(function->name()));
  n->output()->setType(std::make_shared<FunctionType>(function));
  return insertNode(n)->output();
}

Value* Graph::insertCall(Function* function, std::span<Value* const> args) {
  Value* callee = insertFunction(function);
  Node* n = create(prim::CallFunction, {callee});
  for (Value* v : args) n->addInput(v);
  n->output()->setType(function->schema().returns().at(0).type);
  return insertNode(n)->output();
}

Value* Graph::insertMethodCall(Value* object, Function* method, std::span<Value* const> args) {
  Node* n = create(prim::CallMethod, {object});
  n->setAttribute(attr::name, IValue(method->name()));
  for (Value* v : args) n->addInput(v);
  n->output()->setType(method->schema().returns().at(0).type);
  return insertNode(n)->output();
}

}  // namespace wick
