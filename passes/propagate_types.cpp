// A walk forwards. A loop's body is walked until the types of what it carries stay as they are;
// joining only forgets, so this ends after few rounds, and nests deeper than kMaxPreciseNesting,
// which would repeat each other's rounds, forget what they carry at once.
//
//   graph(%x : Float(SS(-1), 4)):
//   %a : Tensor = aten::relu(%x)             →   %a : Float(SS(-1), 4) = aten::relu(%x)
//   %s : Tensor = aten::sum(%a, %dims, …)        %s : Float(SS(-1)) = aten::sum(%a, %dims, …)
#include "passes/propagate_types.h"

#include <algorithm>
#include <unordered_map>

#include "ir/alias_db.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/pointwise_types.h"

namespace wick {

namespace {

constexpr int kMaxPreciseNesting = 3;
constexpr int kMaxRounds = 8;
// When more nodes than this change metadata, all tensors are uncertain.
constexpr size_t kMaxMetadataWrites = 16;
// Tensors of programs that mean what they say have fewer.
constexpr size_t kMostKnownDims = 64;

bool isTensor(const Value* v) {
  return v->type()->kind() == TypeKind::Tensor;
}

// Results that are given as arguments get the sizes that they need.
bool writesResults(const Operator& op) {
  if (op.form() == Operator::Form::Out) return true;
  const auto& arguments = op.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) {
    return a.kwarg_only && a.alias && a.alias->is_write;
  });
}

// Whether it writes more than numbers.
bool changesMetadata(const Node* n) {
  if (n->kind() == prim::CallFunction || n->kind() == prim::CallMethod || n->kind() == prim::fork) {
    return true;
  }
  if (n->kind() == prim::SetAttr) return n->ivalue(attr::name).toString() == "data";
  const Operator* op = n->maybeOperator();
  return op && (op->has(kChangesMetadata) || writesResults(*op));
}

bool changesDType(const Node* n) {
  static const Symbol kSet = Symbol::aten("set_");
  static const Symbol kSetData = Symbol::aten("set_data");
  return n->kind() == kSet || n->kind() == kSetData || n->kind() == prim::SetAttr ||
         n->kind() == prim::CallFunction || n->kind() == prim::CallMethod ||
         n->kind() == prim::fork;
}

// The argument that result i is, for operators that write to it and return it.
std::optional<size_t> writtenArgument(const FunctionSchema& schema, size_t i) {
  if (i >= schema.returns().size()) return std::nullopt;
  const auto& result = schema.returns()[i].alias;
  if (!result || !result->is_write) return std::nullopt;
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    const auto& alias = schema.arguments()[a].alias;
    if (alias && alias->is_write && alias->before == result->before) return a;
  }
  return std::nullopt;
}

class Propagator {
 public:
  Propagator(Graph& graph, SymbolicSizes& sizes) : graph_(graph), sizes_(sizes) {}

  void run() {
    SymbolicSizes::Scope scope(sizes_);
    forEachNode(graph_.block(), [&](const Node* n) { findMetadataWrites(n); });
    if (!changed_.empty() && changed_.size() <= kMaxMetadataWrites) aliases_.emplace(graph_);
    for (Value* in : graph_.inputs()) {
      without_gradients_ = without_gradients_ && holdsNoGradient(in->type());
      if (isTensor(in)) set(in, in->type());
    }
    block(graph_.block());
  }

 private:
  void findMetadataWrites(const Node* n) {
    if (n->kind() == prim::GetAttr) {
      without_gradients_ = without_gradients_ && holdsNoGradient(n->output()->type());
    } else if (n->kind() == prim::Constant && isTensor(n->output())) {
      std::optional<IValue> c = constantOf(n->output());
      bool requires_grad = c && c->isTensor() && c->toTensor().requiresGrad();
      without_gradients_ = without_gradients_ && !requires_grad;
    } else if (n->kind() == prim::CallFunction || n->kind() == prim::CallMethod ||
               n->kind() == prim::fork || makesLeaf(n)) {
      without_gradients_ = false;
    }
    if (!changesMetadata(n)) return;
    without_gradients_ = false;
    dtypes_change_ = dtypes_change_ || changesDType(n);
    changed_.insert(changed_.end(), n->inputs().begin(), n->inputs().end());
  }

  // Whether no tensor that a value of this type is or holds requires a gradient. Lists, dicts and
  // objects of unknown contents may hold any.
  static bool holdsNoGradient(const TypePtr& type) {
    switch (type->kind()) {
      case TypeKind::Tensor:
        return type->as<TensorType>()->facts().requires_grad == std::optional<bool>(false);
      case TypeKind::Any:
      case TypeKind::AnyList:
      case TypeKind::AnyTuple:
      case TypeKind::AnyClass:
      case TypeKind::Interface:
      case TypeKind::Capsule:
        return false;
      case TypeKind::Class:
        // A module's tensors come by prim::GetAttr.
        return type->as<ClassType>()->isModule();
      default:
        return std::all_of(type->contained().begin(), type->contained().end(), holdsNoGradient);
    }
  }

  bool isUncertain(const Value* v) const {
    if (changed_.empty()) return false;
    if (!aliases_) return true;
    return std::any_of(changed_.begin(), changed_.end(),
                       [&](const Value* w) { return aliases_->mayContainAlias(w, v); });
  }

  // Unknown sizes get names, so that what has the same size is seen to.
  TypePtr named(const TypePtr& type) {
    const TensorFacts& facts = type->as<TensorType>()->facts();
    if (!facts.dim) return type;
    if (facts.sizes &&
        std::none_of(facts.sizes->begin(), facts.sizes->end(), [](const Size& s) { return !s; })) {
      return type;
    }
    TensorFacts out = facts;
    if (!out.sizes) out.sizes.emplace(*out.dim);
    for (Size& s : *out.sizes) {
      if (!s) s = sizes_.fresh();
    }
    return TensorType::create(std::move(out));
  }

  TypePtr certain(const Value* v, const TypePtr& type) const {
    if (!isUncertain(v)) return type;
    if (dtypes_change_) return types::Tensor();
    return TensorType::create(sameKind(type->as<TensorType>()->facts()));
  }

  // For a value that has been declared a tensor.
  void set(Value* v, const TypePtr& type) { v->setType(named(certain(v, type))); }

  void block(Block* b) {
    for (Node* n : b->nodes()) node(n);
  }

  void node(Node* n) {
    if (n->kind() == prim::Constant) return constant(n);
    if (n->kind() == prim::If) return branch(n);
    if (n->kind() == prim::Loop) return loop(n);
    if (n->kind() == prim::TupleConstruct) return tuple(n);
    if (n->kind() == prim::TupleUnpack || n->kind() == prim::TupleIndex) return untuple(n);
    if (n->kind() == prim::ListUnpack) return unlist(n);
    if (n->kind() == prim::unchecked_cast || n->kind() == Symbol::aten("_unwrap_optional")) {
      return same(n);
    }
    if (n->kind() == prim::FusionGroup) return group(n);
    for (Block* sub : n->blocks()) block(sub);
    if (n->blocks().empty() && n->maybeOperator()) op(n);
  }

  void constant(Node* n) {
    if (!isTensor(n->output())) return;
    std::optional<IValue> c = constantOf(n->output());
    if (c && c->isTensor() && c->toTensor().defined()) {
      n->output()->setType(certain(n->output(), typeOfTensor(c->toTensor())));
    }
  }

  void same(Node* n) {
    if (isTensor(n->output()) && isTensor(n->input(0))) {
      n->output()->setType(certain(n->output(), n->input(0)->type()));
    }
  }

  void branch(Node* n) {
    for (Block* sub : n->blocks()) block(sub);
    for (size_t i = 0; i < n->outputs().size(); ++i) {
      const Value* a = n->blocks()[0]->outputs()[i];
      const Value* b = n->blocks()[1]->outputs()[i];
      merge(n->output(i), a->type(), b->type());
    }
  }

  // Gives `v` the type that both sides agree on, when it is a tensor or a tuple of them.
  void merge(Value* v, const TypePtr& a, const TypePtr& b) {
    if (isTensor(v)) {
      bool both = a->kind() == TypeKind::Tensor && b->kind() == TypeKind::Tensor;
      v->setType(both ? certain(v, joinTensorTypes(a, b)) : types::Tensor());
    } else if (v->type()->kind() == TypeKind::Tuple) {
      v->setType(joinTuples(v->type(), a, b));
    }
  }

  TypePtr joinTuples(const TypePtr& declared, const TypePtr& a, const TypePtr& b) const {
    const auto* tuple = declared->as<TupleType>();
    if (!tuple || tuple->isNamed()) return declared;
    const auto* x = a->as<TupleType>();
    const auto* y = b->as<TupleType>();
    std::vector<TypePtr> elements = tuple->contained();
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i]->kind() == TypeKind::Tuple) {
        bool both = x && y && x->contained().size() > i && y->contained().size() > i;
        if (both) elements[i] = joinTuples(elements[i], x->contained()[i], y->contained()[i]);
        continue;
      }
      if (elements[i]->kind() != TypeKind::Tensor) continue;
      bool both = x && y && x->contained().size() > i && y->contained().size() > i &&
                  x->contained()[i]->kind() == TypeKind::Tensor &&
                  y->contained()[i]->kind() == TypeKind::Tensor;
      elements[i] = both ? joinTensorTypes(x->contained()[i], y->contained()[i]) : types::Tensor();
    }
    return types::Tuple(std::move(elements));
  }

  void loop(Node* n) {
    Block* body = n->blocks()[0];
    size_t carried = n->outputs().size();
    ++nesting_;
    bool precise = nesting_ <= kMaxPreciseNesting;
    for (size_t i = 0; i < carried; ++i) {
      Value* in = body->inputs()[i + 1];
      const TypePtr& type = n->input(i + 2)->type();
      merge(in, precise ? type : types::Tensor(), precise ? type : types::Tensor());
    }
    for (int round = 1;; ++round) {
      block(body);
      if (!precise || !forgetWhatChanges(n, round >= kMaxRounds)) break;
    }
    for (size_t i = 0; i < carried; ++i) {
      merge(n->output(i), body->inputs()[i + 1]->type(), body->outputs()[i + 1]->type());
    }
    --nesting_;
  }

  // Whether what the body carries on is less certain than what it began with; then the block's
  // inputs say so afterwards.
  bool forgetWhatChanges(Node* n, bool all) {
    Block* body = n->blocks()[0];
    bool changed = false;
    for (size_t i = 0; i < n->outputs().size(); ++i) {
      Value* in = body->inputs()[i + 1];
      TypePtr before = in->type();
      merge(in, all ? types::Tensor() : before, body->outputs()[i + 1]->type());
      changed |= !sameType(before, in->type());
    }
    return changed;
  }

  void tuple(Node* n) {
    const auto* type = n->output()->type()->as<TupleType>();
    if (!type || type->isNamed() || type->contained().size() != n->inputs().size()) return;
    std::vector<TypePtr> elements = type->contained();
    for (size_t i = 0; i < elements.size(); ++i) {
      const TypePtr& in = n->input(i)->type();
      bool refines = in->kind() == elements[i]->kind() &&
                     (in->kind() == TypeKind::Tensor || in->kind() == TypeKind::Tuple);
      if (refines) elements[i] = in;
    }
    n->output()->setType(types::Tuple(std::move(elements)));
  }

  void untuple(Node* n) {
    const auto* type = n->input(0)->type()->as<TupleType>();
    if (!type) return;
    auto refine = [&](Value* out, size_t i) {
      if (i >= type->contained().size()) return;
      const TypePtr& element = type->contained()[i];
      if (isTensor(out) && element->kind() == TypeKind::Tensor) {
        out->setType(certain(out, element));
      } else if (out->type()->kind() == TypeKind::Tuple && element->kind() == TypeKind::Tuple) {
        out->setType(element);
      }
    };
    if (n->kind() == prim::TupleUnpack) {
      for (size_t i = 0; i < n->outputs().size(); ++i) refine(n->output(i), i);
    } else if (std::optional<int64_t> i = intOf(n->input(1))) {
      auto size = static_cast<int64_t>(type->contained().size());
      if (*i >= -size && *i < size) refine(n->output(), *i < 0 ? *i + size : *i);
    }
  }

  // Elements of lists that the graph builds, or that an operator gives and says the elements of.
  void unlist(Node* n) {
    if (std::optional<std::vector<Value*>> elements = literalElements(n->input(0))) {
      if (elements->size() != n->outputs().size()) return;
      for (size_t i = 0; i < elements->size(); ++i) {
        if (isTensor(n->output(i)) && isTensor((*elements)[i])) {
          n->output(i)->setType(certain(n->output(i), (*elements)[i]->type()));
        }
      }
      return;
    }
    const TypePtr* element = elementOf(n->input(0));
    for (Value* out : n->outputs()) {
      if (element && isTensor(out)) set(out, *element);
    }
  }

  // What an operator said of the elements of the list that it gave, when nobody changes that.
  const TypePtr* elementOf(const Value* list) const {
    auto it = elements_.find(list);
    return it == elements_.end() || !isOnlyReadList(list) ? nullptr : &it->second;
  }

  void group(Node* n) {
    const std::shared_ptr<Graph>& body = n->subgraph(attr::Subgraph);
    for (size_t i = 0; i < n->inputs().size() && i < body->inputs().size(); ++i) {
      if (isTensor(body->inputs()[i])) body->inputs()[i]->setType(n->input(i)->type());
    }
    block(body->block());
    for (size_t i = 0; i < n->outputs().size() && i < body->outputs().size(); ++i) {
      if (isTensor(n->output(i))) set(n->output(i), body->outputs()[i]->type());
    }
  }

  void op(Node* n) {
    const Operator& op = *n->maybeOperator();
    std::vector<TypePtr> types;
    if (op.form() != Operator::Form::Base) {
      // What the destination is; out= forms give it other sizes, which makes it uncertain.
    } else if (op.record().shape) {
      types = op.record().shape(*n);
    } else if (op.record().scalar) {
      types = pointwiseTypes(*n);
    } else {
      listElement(n);
    }
    for (size_t i = 0; i < n->outputs().size(); ++i) {
      Value* out = n->output(i);
      if (i < types.size() && types[i]->kind() == TypeKind::List) {
        if (out->type()->kind() == TypeKind::List) elements_[out] = types[i]->contained()[0];
        continue;
      }
      if (!isTensor(out)) continue;
      std::optional<size_t> written = writtenArgument(op.schema(), i);
      if (written && isTensor(n->input(*written))) {
        out->setType(certain(out, withGradient(n->input(*written)->type())));
      } else if (i < types.size() && types[i]->kind() == TypeKind::Tensor) {
        set(out, withGradient(types[i]));
      } else if (n->kind() != aten::__getitem__) {
        out->setType(types::Tensor());
      }
    }
  }

  // list[i]
  void listElement(Node* n) {
    if (n->kind() != aten::__getitem__ || !isTensor(n->output())) return;
    TypePtr type = types::Tensor();
    if (std::optional<std::vector<Value*>> elements = literalElements(n->input(0))) {
      std::optional<int64_t> i = intOf(n->input(1));
      auto size = static_cast<int64_t>(elements->size());
      if (i && *i >= -size && *i < size) {
        const Value* element = (*elements)[*i < 0 ? *i + size : *i];
        if (isTensor(element)) type = element->type();
      }
      n->output()->setType(certain(n->output(), type));
    } else if (const TypePtr* element = elementOf(n->input(0))) {
      set(n->output(), *element);
    } else {
      n->output()->setType(type);
    }
  }

  // A result's type: where no tensor requires a gradient, it requires none either. Sizes of many
  // dimensions are forgotten: a row of n `None` in a subscript would keep n * n of them.
  TypePtr withGradient(const TypePtr& type) const {
    TensorFacts facts = type->as<TensorType>()->facts();
    if (facts.dim && *facts.dim > kMostKnownDims) facts = sameKind(facts);
    facts.requires_grad.reset();
    if (without_gradients_) facts.requires_grad = false;
    return TensorType::create(std::move(facts));
  }

  Graph& graph_;
  SymbolicSizes& sizes_;
  std::optional<AliasDb> aliases_;
  std::vector<const Value*> changed_;
  std::unordered_map<const Value*, TypePtr> elements_;  // of lists that operators give
  bool dtypes_change_ = false;                          // of tensors whose metadata may change
  bool without_gradients_ = true;  // no tensor of the graph requires a gradient
  int nesting_ = 0;
};

int64_t lowestIn(const TypePtr& type) {
  if (const auto* tensor = type->as<TensorType>()) {
    int64_t lowest = 0;
    if (tensor->facts().sizes) {
      for (const Size& s : *tensor->facts().sizes) lowest = std::min(lowest, s.value_or(0));
    }
    return lowest;
  }
  if (const auto* tuple = type->as<TupleType>()) {
    int64_t lowest = 0;
    for (const TypePtr& element : tuple->contained()) lowest = std::min(lowest, lowestIn(element));
    return lowest;
  }
  return 0;
}

int64_t lowestIn(const Block* b) {
  int64_t lowest = 0;
  for (const Value* v : b->inputs()) lowest = std::min(lowest, lowestIn(v->type()));
  for (const Node* n : b->nodes()) {
    for (const Value* v : n->outputs()) lowest = std::min(lowest, lowestIn(v->type()));
    for (const Block* sub : n->blocks()) lowest = std::min(lowest, lowestIn(sub));
    const AttributeValue* body = n->findAttribute(attr::Subgraph);
    if (body && n->kind() == prim::FusionGroup) {
      lowest = std::min(lowest, lowestIn(std::get<std::shared_ptr<Graph>>(*body)->block()));
    }
  }
  return lowest;
}

}  // namespace

int64_t lowestSymbol(const Graph& graph) {
  return lowestIn(graph.block());
}

void propagateTypes(Graph& graph) {
  SymbolicSizes sizes(lowestSymbol(graph));
  propagateTypes(graph, sizes);
}

void propagateTypes(Graph& graph, SymbolicSizes& sizes) {
  withStackFor(graph, [&] { Propagator(graph, sizes).run(); });
}

bool mayChangeMetadata(const Graph& graph) {
  bool changes = false;
  withStackFor(graph, [&] { changes = anyNode(graph.block(), changesMetadata); });
  return changes;
}

TypePtr joinTensorTypes(const TypePtr& a, const TypePtr& b) {
  if (a == b) return a;
  const TensorFacts& x = a->as<TensorType>()->facts();
  const TensorFacts& y = b->as<TensorType>()->facts();
  TensorFacts out;
  if (x.dtype == y.dtype) out.dtype = x.dtype;
  if (x.device == y.device) out.device = x.device;
  if (x.requires_grad == y.requires_grad) out.requires_grad = x.requires_grad;
  if (x.dim == y.dim) out.dim = x.dim;
  if (out.dim && x.sizes && y.sizes) {
    out.sizes.emplace(*out.dim);
    for (size_t i = 0; i < *out.dim; ++i) {
      if ((*x.sizes)[i] == (*y.sizes)[i]) (*out.sizes)[i] = (*x.sizes)[i];
    }
    if (x.strides == y.strides) out.strides = x.strides;
  }
  return TensorType::create(std::move(out));
}

TypePtr typeOfTensor(const Tensor& tensor) {
  TensorFacts facts;
  if (tensor.kind() != TensorKind::Dense) return TensorType::create(std::move(facts));
  facts.dtype = tensor.dtype();
  facts.device = tensor.device();
  facts.requires_grad = tensor.requiresGrad();
  facts.sizes = Sizes(tensor.sizes().begin(), tensor.sizes().end());
  facts.strides = std::vector<int64_t>(tensor.strides().begin(), tensor.strides().end());
  return TensorType::create(std::move(facts));
}

}  // namespace wick
