// One walk forwards: by the time a node is reached, its inputs are as constant as they will be.
//
//   %2 : int = aten::add(%c1, %c1)          →   %2 : int = prim::Constant[value=2]()
//   %y = prim::If(%true) block0 … block1        (the nodes of block0)
#include "passes/constant_propagation.h"

#include "core/error.h"
#include "core/optimization_limit.h"

namespace wick {

namespace {

// A folded tensor lives as long as the program; larger ones are recomputed instead.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 24;

// Whether a user may write the value, or put it where it may be written later.
bool mayBeWritten(const Value* v) {
  for (const Use& use : v->uses()) {
    const Operator* op = use.user->maybeOperator();
    if (op == nullptr) return true;
    const std::vector<Argument>& arguments = op->schema().arguments();
    if (use.offset >= arguments.size() || arguments[use.offset].alias) return true;
  }
  return false;
}

bool isReference(const IValue& v) {
  return v.isCounted() && !v.isString() && !v.isComplex() && !v.isTuple() && !v.isEnum();
}

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph) {}

  void block(Block* b) {
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      if (node->kind() == prim::If) {
        branch(node, it);
      } else if (node->kind() == prim::Loop) {
        loop(node);
      } else {
        for (Block* sub : node->blocks()) block(sub);
        fold(node);
      }
    }
  }

 private:
  void branch(Node* node, NodeIterator& next) {
    std::optional<IValue> condition = constantOf(node->input(0));
    if (!condition || !WICK_MAY_OPTIMIZE("the condition {} is {}", node->input(0)->debugName(),
                                         condition->toBool())) {
      for (Block* sub : node->blocks()) block(sub);
      return;
    }
    Block* taken = node->blocks()[condition->toBool() ? 0 : 1];
    Node* first = nullptr;
    while (!taken->empty()) {
      Node* moved = *taken->nodes().begin();
      if (!first) first = moved;
      moved->moveBefore(node);
    }
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      node->output(i)->replaceAllUsesWith(taken->outputs()[i]);
    }
    if (first) next = NodeIterator(first);  // the walk goes on with what was moved out
    node->destroy();
  }

  void loop(Node* node) {
    std::optional<IValue> trips = constantOf(node->input(0));
    std::optional<IValue> start = constantOf(node->input(1));
    bool never = (trips && trips->toInt() <= 0) || (start && !start->toBool());
    if (never && WICK_MAY_OPTIMIZE("a loop never runs")) {
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        node->output(i)->replaceAllUsesWith(node->input(i + 2));
      }
      node->destroy();
      return;
    }
    block(node->blocks()[0]);
  }

  void fold(Node* node) {
    if (node->kind() == prim::Constant || node->outputs().empty()) return;
    std::vector<IValue> inputs;
    for (Value* v : node->inputs()) {
      std::optional<IValue> c = constantOf(v);
      if (!c || v->type()->kind() == TypeKind::Function) return;
      inputs.push_back(std::move(*c));
    }
    std::vector<IValue> results(node->outputs().size());
    if (node->kind() == prim::TupleConstruct) {
      results[0] = makeTuple(std::move(inputs), namedTuple(node->output()->type()));
    } else if (node->kind() == prim::TupleUnpack) {
      results = inputs.at(0).elements();
    } else if (node->kind() == prim::ListConstruct) {
      results[0] = makeList(node->output()->type()->as<ListType>()->element(), std::move(inputs));
    } else if (!compute(node, inputs, results)) {
      return;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (isReference(results[i]) && mayBeWritten(node->output(i))) return;
      if (results[i].isTensor() && results[i].toTensor().numel() > kMaxFoldedElements) return;
    }
    if (!WICK_MAY_OPTIMIZE("folds {}", node->str())) return;
    replace(node, results);
  }

  static std::shared_ptr<const TupleType> namedTuple(const TypePtr& type) {
    const TupleType* tuple = type->as<TupleType>();
    return tuple && tuple->isNamed() ? std::static_pointer_cast<const TupleType>(type) : nullptr;
  }

  bool compute(Node* node, std::vector<IValue>& inputs, std::vector<IValue>& results) {
    const Operator* op = node->maybeOperator();
    if (!op || !node->blocks().empty() || node->hasSideEffects() || node->isNondeterministic())
      return false;
    for (const Argument& r : op->schema().returns()) {
      if (r.alias) return false;  // through a view of a constant, writes would reach it
    }
    try {
      op->call(inputs.data(), inputs.size(), results.data(), results.size());
    } catch (const RuntimeError&) {
      return false;
    }
    return true;
  }

  void replace(Node* node, std::vector<IValue>& results) {
    InsertPointGuard guard(node);
    RangeGuard range(&graph_, node->range());
    for (size_t i = 0; i < results.size(); ++i) {
      Value* out = node->output(i);
      Value* constant = graph_.insertConstant(std::move(results[i]), out->type());
      std::string name = out->debugNameBase();
      out->replaceAllUsesWith(constant);
      if (name.empty()) continue;
      out->setDebugName("");
      constant->setDebugName(name);
    }
    node->destroy();
  }

  Graph& graph_;
};

}  // namespace

void propagateConstants(Graph& graph) {
  Folder(graph).block(graph.block());
}

}  // namespace wick
