// Two rounds. The first replaces numbers, strings and None, after which conditions such as `if
// self.training` fold and dead writes disappear; the second replaces tensors and containers that
// what is left cannot write to.
//
//   %w : Tensor = prim::GetAttr[name="weight"](%self)     →     %w : Tensor =
//   prim::Constant[value=<Tensor>]()
#include "passes/freeze.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/function.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

bool isPlain(const IValue& v) {
  return !v.isCounted() || v.isString() || v.isComplex() || v.isEnum();
}

// The memory of all tensors that a value holds, within containers and objects as well.
class Memories {
 public:
  void add(const IValue& v) {
    if (v.isTensor()) {
      if (v.toTensor().defined()) found_.insert(v.toTensor().storage().get());
    } else if (v.isCounted() && !isPlain(v) && met_.insert(v.rawObject()).second) {
      parts(v, [&](const IValue& part) { add(part); });
    }
  }
  bool meets(const Memories& other) const {
    return std::ranges::any_of(found_,
                               [&](const Storage* s) { return other.found_.count(s) != 0; });
  }
  bool empty() const { return found_.empty(); }

  // Calls f with each value that a container or an object holds.
  template <class F>
  static void parts(const IValue& v, F&& f) {
    if (v.isList() || v.isTuple()) {
      for (const IValue& element : v.elements()) f(element);
    } else if (v.isDict()) {
      for (const IValue& element : v.toDict().values()) f(element);
    } else if (v.isObject()) {
      const Object& object = v.toObject();
      for (size_t i = 0; i < object.type()->attributes().size(); ++i) f(object.slot(i));
    }
  }

 private:
  std::unordered_set<const Storage*> found_;
  std::unordered_set<const RefCounted*> met_;
};

class Freezer {
 public:
  explicit Freezer(Graph& graph) : graph_(graph) {}

  // The module itself becomes a constant.
  void bindSelf(const ObjectRef& self) {
    Value* input = graph_.inputs().at(0);
    InsertPointGuard guard(graph_.returnNode()->next());
    Value* constant = graph_.insertConstant(IValue(self), self->type());
    input->replaceAllUsesWith(constant);
    constant->setDebugName("self");
    graph_.block()->eraseInput(0);
  }

  // Attributes that do not freeze are read from the objects that are constants.
  void run() {
    round(/*plain_only=*/true);
    propagateConstants(graph_);
    eliminateDeadCode(graph_);
    round(/*plain_only=*/false);
    propagateConstants(graph_);
    eliminateDeadCode(graph_);
  }

 private:
  using Slot = std::pair<const Object*, std::string>;

  // A call of a function, or a fork.
  struct Call {
    const Node* node;
    size_t first_argument;  // among the node's inputs
  };

  void round(bool plain_only) {
    written_.clear();
    written_names_.clear();
    anything_written_ = false;
    callers_.clear();
    written_parameters_.clear();
    bodies_ = {graph_.block()};
    for (size_t i = 0; i < bodies_.size(); ++i) {
      forEachNode(bodies_[i], [&](const Node* node) { findWrites(node); });
    }
    findWrittenMemory();
    forEachNode(graph_.block(), [&](Node* node) { replace(node, plain_only); });
  }

  // A write through one attribute is one to all that lie in the same memory.
  void findWrittenMemory() {
    written_memory_ = {};
    for (const auto& [owner, name] : written_) written_memory_.add(owner->attr(name));
    if (!written_names_.empty()) addNamed();
  }

  // The attributes with written names of all objects that the graph reaches.
  void addNamed() {
    std::vector<const Object*> rest;
    std::unordered_set<const Object*> met;
    const auto note = [&](const Node* node) {
      if (node->kind() != prim::Constant) return;
      const std::optional<IValue> c = constantOf(node->output());
      if (c && c->isObject() && met.insert(&c->toObject()).second) rest.push_back(&c->toObject());
    };
    for (const Block* body : bodies_) forEachNode(body, note);
    while (!rest.empty()) {
      const Object& next = *rest.back();
      rest.pop_back();
      const auto& attributes = next.type()->attributes();
      for (size_t i = 0; i < attributes.size(); ++i) {
        const IValue& value = next.slot(i);
        if (written_names_.count(attributes[i].name) != 0) written_memory_.add(value);
        if (value.isObject() && met.insert(&value.toObject()).second) {
          rest.push_back(&value.toObject());
        }
      }
    }
  }

  // The object that a value is, when it is reached from `self` by attributes alone.
  ObjectRef objectOf(const Value* v) const {
    const Node* node = v->node();
    if (node->kind() == prim::Constant) {
      std::optional<IValue> c = constantOf(v);
      return c && c->isObject() ? ObjectRef(&c->toObject()) : nullptr;
    }
    if (node->kind() != prim::GetAttr) return nullptr;
    ObjectRef owner = objectOf(node->input(0));
    if (!owner || isWritten(owner.get(), node->ivalue(attr::name).toString())) return nullptr;
    const IValue& value = owner->attr(node->ivalue(attr::name).toString());
    return value.isObject() ? ObjectRef(&value.toObject()) : nullptr;
  }

  bool isWritten(const Object* owner, const std::string& name) const {
    return written_names_.count(name) != 0 || written_.count({owner, name}) != 0;
  }

  void findWrites(const Node* node) {
    if (node->kind() == prim::SetAttr) {
      written_names_.insert(node->ivalue(attr::name).toString());
    } else if (const Operator* op = node->maybeOperator()) {
      for (uint64_t rest = op->writtenArguments(*node); rest != 0; rest &= rest - 1) {
        const auto i = static_cast<size_t>(std::countr_zero(rest));
        if (i >= node->inputs().size()) continue;
        writes(node->input(i), 0);
        const auto& alias = op->schema().arguments()[i].alias;
        const bool elements = alias && !alias->contained.empty() && alias->contained[0].is_write;
        if (elements) writesElements(node->input(i));
      }
    } else if (node->kind() == prim::fork) {
      enter({node, 0}, *node->subgraph(attr::Subgraph));
    } else if (GraphFunction* const callee = functionCalledBy(node)) {
      callee->ensureDefined();
      enter({node, 1}, *callee->graph());
    } else if (node->kind() == prim::CallMethod || node->kind() == prim::CallFunction) {
      anything_written_ = true;
    }
  }

  static GraphFunction* functionCalledBy(const Node* node) {
    if (node->kind() != prim::CallFunction) return nullptr;
    const auto* type = node->input(0)->type()->as<FunctionType>();
    return type ? dynamic_cast<GraphFunction*>(type->function()) : nullptr;
  }

  // Notes a call. Its body is looked at once, however many calls it has.
  void enter(Call call, const Graph& body) {
    std::vector<Call>& callers = callers_[body.block()];
    callers.push_back(call);
    if (callers.size() == 1) bodies_.push_back(body.block());
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      if (written_parameters_.count({body.block(), i}) != 0) writesArgument(call, i, 0);
    }
  }

  void writesArgument(const Call& call, size_t parameter, int depth) {
    writes(call.node->input(parameter + call.first_argument), depth + 1);
  }

  // A write to a parameter of a body is one to the arguments of its calls.
  void writesParameter(const Block* body, size_t parameter, int depth) {
    const auto callers = callers_.find(body);
    if (callers == callers_.end() || !written_parameters_.emplace(body, parameter).second) return;
    for (const Call& call : callers->second) writesArgument(call, parameter, depth);
  }

  // Of a list of tensors: `_foreach_add_` writes those.
  void writesElements(const Value* list) {
    if (list->node()->kind() != prim::ListConstruct) {
      anything_written_ = true;
      return;
    }
    for (const Value* element : list->node()->inputs()) writes(element, 0);
  }

  // Follows a written value back to the attribute that it may be, or share memory with.
  void writes(const Value* v, int depth) {
    const Node* node = v->node();
    if (depth > 1000) {
      anything_written_ = true;
    } else if (node->kind() == prim::GetAttr) {
      std::string name = node->ivalue(attr::name).toString();
      if (ObjectRef owner = objectOf(node->input(0))) {
        written_.emplace(owner.get(), name);
      } else {
        written_names_.insert(name);
      }
    } else if (node->kind() == prim::If) {
      for (Block* sub : node->blocks()) writes(sub->outputs()[v->offset()], depth + 1);
    } else if (node->kind() == prim::Loop) {
      writes(node->input(v->offset() + 2), depth + 1);
      writes(node->blocks()[0]->outputs()[v->offset() + 1], depth + 1);
    } else if (node->kind() == prim::Param) {
      // Inputs are the caller's. A value carried by a loop comes from its inputs.
      const Node* owner = v->node()->block()->owningNode();
      if (!owner) {
        writesParameter(node->block(), v->offset(), depth);
      } else if (owner->kind() == prim::Loop && v->offset() > 0) {
        writes(owner->input(v->offset() + 1), depth + 1);
      }
    } else if (node->kind() == prim::ListConstruct || node->kind() == prim::TupleConstruct ||
               node->kind() == prim::DictConstruct) {
      // A new container; writing to it does not write to its elements.
    } else if (node->kind() == aten::wait) {
      // A body may return what it was given.
      const Node* const fork = node->input(0)->node();
      if (fork->kind() == prim::fork) {
        writes(fork->subgraph(attr::Subgraph)->outputs()[0], depth + 1);
      } else {
        anything_written_ = true;
      }
    } else if (const Operator* op = node->maybeOperator()) {
      writesThrough(node, *op, v->offset(), depth);
    } else {
      anything_written_ = true;
    }
  }

  void writesThrough(const Node* node, const Operator& op, size_t output, int depth) {
    const auto& returns = op.schema().returns();
    if (output >= returns.size() || !returns[output].alias) return;  // fresh memory
    const AliasInfo& result = *returns[output].alias;
    if (result.isWildcardAfter()) anything_written_ = true;
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].alias) continue;
      for (const std::string& set : arguments[i].alias->before) {
        for (const std::string& mine : result.before) {
          if (set == mine) writes(node->input(i), depth + 1);
        }
      }
    }
  }

  void replace(Node* node, bool plain_only) {
    if (node->kind() != prim::GetAttr) return;
    ObjectRef owner = objectOf(node->input(0));
    std::string name = node->ivalue(attr::name).toString();
    if (!owner || isWritten(owner.get(), name)) return;
    const IValue& attribute = owner->attr(name);
    if (attribute.isObject()) return;  // resolved by its own attributes
    if (!isPlain(attribute) && (plain_only || anything_written_ || isWrittenElsewhere(attribute))) {
      return;
    }
    const IValue value = withoutGradient(attribute);
    InsertPointGuard guard(node);
    Value* out = node->output();
    Value* constant = graph_.insertConstant(value, constantType(value, out->type()));
    std::string debug_name = out->debugNameBase();
    out->replaceAllUsesWith(constant);
    node->destroy();
    if (!debug_name.empty()) constant->setDebugName(debug_name);
  }

  bool isWrittenElsewhere(const IValue& value) const {
    if (written_memory_.empty()) return false;
    Memories memory;
    memory.add(value);
    return memory.meets(written_memory_);
  }

  // Nobody trains what is frozen: a tensor that requires a gradient is replaced by a handle on the
  // same memory that does not, as PyTorch's freezing does, also within containers, which are copied
  // then. One for each, so that identities stay.
  IValue withoutGradient(const IValue& value) {
    if (isPlain(value)) return value;
    if (const auto known = detached_.find(value.rawObject()); known != detached_.end()) {
      return known->second;
    }
    IValue result = value;
    if (value.isTensor()) {
      if (value.toTensor().requiresGrad()) result = IValue(value.toTensor().detach());
    } else if (value.isList() || value.isTuple() || value.isDict()) {
      result = containerWithoutGradient(value);
    }
    detached_.emplace(value.rawObject(), result);
    return result;
  }

  IValue containerWithoutGradient(const IValue& value) {
    std::vector<IValue> elements;
    bool changed = false;
    Memories::parts(value, [&](const IValue& part) {
      elements.push_back(withoutGradient(part));
      changed |= part.isCounted() && elements.back().rawObject() != part.rawObject();
    });
    if (!changed) return value;
    if (value.isList()) {
      return IValue(makeList(value.toList().element_type, std::move(elements)));
    }
    if (value.isTuple()) return IValue(makeTuple(std::move(elements), value.toTuple().named));
    const DictObject& dict = value.toDict();
    auto copy = makeRef<DictObject>(dict.key_type, dict.value_type);
    const std::vector<IValue> keys = dict.keys();
    for (size_t i = 0; i < keys.size(); ++i) copy->set(keys[i], std::move(elements[i]));
    return IValue(DictRef(copy));
  }

  // None is more precise than the attribute's Optional; otherwise the declared type stands.
  static TypePtr constantType(const IValue& value, const TypePtr& declared) {
    return value.isNone() ? types::None() : declared;
  }

  Graph& graph_;
  std::set<Slot> written_;
  std::set<std::string> written_names_;  // on an object that is not known
  bool anything_written_ = false;
  std::vector<const Block*> bodies_;  // the graph's and those of what it calls, without repetition
  std::unordered_map<const Block*, std::vector<Call>> callers_;
  std::set<std::pair<const Block*, size_t>> written_parameters_;  // of called bodies
  Memories written_memory_;
  std::unordered_map<const RefCounted*, IValue> detached_;  // by values of attributes
};

}  // namespace

void freezeModule(Graph& graph, const ObjectRef& self) {
  Freezer freezer(graph);
  freezer.bindSelf(self);
  freezer.run();
}

void freezeConstants(Graph& graph) {
  Freezer(graph).run();
}

}  // namespace wick
