// The nodes between a call's begin and end are copied. Attributes and constants are copied where they
// are used, because a trace has each of them once, wherever that was.
#include "tracing/module_calls.h"

#include <unordered_map>
#include <unordered_set>

#include "passes/dead_code_elimination.h"

namespace wick::tracing {
namespace {

class Extraction {
 public:
  explicit Extraction(const ModuleCall& call) : call_(call), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<Graph> run() {
    map_[call_.self] = graph_->addInput("self", call_.self->type());
    for (const auto& [name, value] : call_.arguments) {
      unpack(graph_->addInput(name, unshapedType(value.type())), value);
    }
    for (Node* node = call_.before; node != call_.last && !failed_;) {
      node = node->next();  // behind the list's end is its beginning
      if (!isShared(node)) copy(node);
    }
    next_ = 0;
    Value* result = failed_ ? nullptr : pack(call_.result);
    if (failed_) return nullptr;
    graph_->registerOutput(result);
    eliminateDeadCode(*graph_);
    return graph_;
  }

 private:
  static bool isShared(const Node* node) {
    return node->kind() == prim::GetAttr || node->kind() == prim::Constant;
  }

  void unpack(Value* value, const IValue& is) {
    if (is.isTensor()) {
      if (Value* known = call_.given[next_++]) map_.try_emplace(known, value);
    } else if (is.isDict()) {
      for (const auto& [key, element] : is.toDict().items()) {
        Node* node = graph_->create(aten::__getitem__, {value, graph_->insertConstant(key)});
        node->output()->setType(value->type()->as<DictType>()->value());
        unpack(graph_->insertNode(node)->output(), element);
      }
    } else {
      const std::vector<IValue>& elements = is.elements();
      Node* parts =
          graph_->insertNode(is.isTuple() ? graph_->createTupleUnpack(value)
                                          : graph_->createListUnpack(value, elements.size()));
      for (size_t i = 0; i < elements.size(); ++i) unpack(parts->output(i), elements[i]);
    }
  }

  Value* pack(const IValue& is) {
    if (is.isTensor()) return mapped(call_.results[next_++]);
    if (is.isDict()) {
      std::vector<Value*> keys, values;
      for (const auto& [key, element] : is.toDict().items()) {
        keys.push_back(graph_->insertConstant(key));
        values.push_back(pack(element));
      }
      if (failed_) return nullptr;
      return graph_
          ->insertNode(graph_->createDict(unshapedType(is.toDict().key_type),
                                          unshapedType(is.toDict().value_type), keys, values))
          ->output();
    }
    std::vector<Value*> elements;
    for (const IValue& e : is.elements()) elements.push_back(pack(e));
    if (failed_) return nullptr;
    Node* node = is.isTuple()
                     ? graph_->createTuple(elements, is.toTuple().named)
                     : graph_->createList(unshapedType(is.toList().element_type), elements);
    return graph_->insertNode(node)->output();
  }

  // The module itself, or what it owns.
  bool isOwn(const Value* value) const {
    while (value != call_.self) {
      const Node* node = value->node();
      if (node->kind() != prim::GetAttr) return false;
      value = node->input(0);
    }
    return true;
  }

  Value* mapped(Value* value) {
    if (const auto known = map_.find(value); known != map_.end()) return known->second;
    Node* node = value->node();
    if (node->kind() == prim::Constant || (node->kind() == prim::GetAttr && isOwn(value))) {
      copy(node);
    } else if (value->type()->kind() == TypeKind::Class) {
      failed_ = true;  // a module outside of this one
      return nullptr;
    } else {
      map_[value] = graph_->addInput("", unshapedType(value->type()));
    }
    return map_[value];
  }

  void copy(Node* node) {
    std::unordered_set<const Value*> inside;
    mapInputs(node, inside);
    if (failed_) return;
    Node* made = graph_->insertNode(graph_->createClone(node, map_));
    for (size_t i = 0; i < node->outputs().size(); ++i) map_[node->output(i)] = made->output(i);
  }
  // Of the node, and what its blocks read from outside of it.
  void mapInputs(const Node* node, std::unordered_set<const Value*>& inside) {
    for (Value* v : node->inputs()) {
      if (!inside.contains(v)) mapped(v);
    }
    for (const Block* block : node->blocks()) {
      inside.insert(block->inputs().begin(), block->inputs().end());
      for (const Node* n : block->nodes()) {
        mapInputs(n, inside);
        inside.insert(n->outputs().begin(), n->outputs().end());
      }
      mapInputs(block->returnNode(), inside);
    }
  }

  const ModuleCall& call_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<Value*, Value*> map_;
  size_t next_ = 0;
  bool failed_ = false;
};

}  // namespace

bool collectTensors(const IValue& value, std::vector<Tensor>& into) {
  if (value.isTensor()) {
    into.push_back(value.toTensor());
    return value.toTensor().defined();
  }
  if (value.isDict()) {
    for (const auto& [key, element] : value.toDict().items()) {
      if (!collectTensors(element, into)) return false;
    }
    return true;
  }
  if (!value.isList() && !value.isTuple()) return false;
  for (const IValue& element : value.elements()) {
    if (!collectTensors(element, into)) return false;
  }
  return true;
}

std::shared_ptr<Graph> methodOf(const ModuleCall& call) {
  return Extraction(call).run();
}

}  // namespace wick::tracing
