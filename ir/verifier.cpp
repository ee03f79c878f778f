#include "ir/verifier.h"

#include <unordered_set>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "ir/depth.h"

namespace wick {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    block(graph_.block());
    // Uses are counted over the whole graph: what the values say must equal what the nodes say.
    for (const auto& [value, count] : seen_uses_) {
      expect(value->uses().size() == count, value->node(),
             "%{} records {} uses, the graph holds {}", value->debugName(), value->uses().size(),
             count);
    }
  }

 private:
  template <class... Args>
  void expect(bool condition, const Node* node, fmt::format_string<Args...> format,
              Args&&... args) {
    if (condition) return;
    throw InternalError(
        __FILE__, __LINE__,
        fmt::format("malformed graph: {}\nat: {}in\n{}",
                    fmt::format(format, std::forward<Args>(args)...), node->str(), graph_.str()));
  }

  void block(const Block* b) {
    std::vector<const Value*> defined;
    define(b->paramNode(), defined);
    const Node* previous = b->returnNode();
    for (const Node* n : b->nodes()) {
      expect(n->block() == b, n, "the node does not know its block");
      expect(n->prev() == previous && previous->next() == n, n, "the list of nodes is broken");
      previous = n;
      inputs(n);
      shape(n);
      for (const Block* sub : n->blocks()) {
        expect(sub->owningNode() == n, n, "a block does not know its node");
        block(sub);
      }
      define(n, defined);
    }
    inputs(b->returnNode());
    // Values leave scope with their block.
    for (const Value* v : defined) scope_.erase(v);
  }

  void define(const Node* n, std::vector<const Value*>& defined) {
    for (size_t i = 0; i < n->outputs().size(); ++i) {
      const Value* v = n->outputs()[i];
      expect(v->node() == n && v->offset() == i, n, "%{} does not know its definition",
             v->debugName());
      expect(v->type() != nullptr, n, "%{} has no type", v->debugName());
      expect(names_.insert(v->debugName()).second, n, "two values are called %{}", v->debugName());
      scope_.insert(v);
      defined.push_back(v);
      seen_uses_.emplace(v, 0);
    }
  }

  void inputs(const Node* n) {
    for (size_t i = 0; i < n->inputs().size(); ++i) {
      const Value* v = n->inputs()[i];
      expect(v->graph() == &graph_, n, "input {} belongs to another graph", i);
      expect(scope_.count(v) == 1, n, "%{} is used outside of its scope", v->debugName());
      ++seen_uses_[v];
    }
    std::unordered_set<const Value*> checked;
    for (const Value* v : n->inputs()) {
      if (!checked.insert(v).second || v->uses().size() > 64) continue;
      for (const Use& use : v->uses()) {
        expect(use.offset < use.user->inputs().size() && use.user->inputs()[use.offset] == v, n,
               "a use of %{} points elsewhere", v->debugName());
      }
    }
  }

  void shape(const Node* n) {
    if (n->kind() == prim::Constant) return constant(n);
    if (n->kind() == prim::If) return branch(n);
    if (n->kind() == prim::Loop) return loop(n);
    if (n->kind().isAten() && n->maybeOperator() == nullptr &&
        !OperatorRegistry::instance().overloads(n->kind()).empty()) {
      n->getOperator();  // throws with the candidates
    }
  }

  void constant(const Node* n) {
    expect(n->inputs().empty() && n->outputs().size() == 1, n,
           "a constant has one output and no inputs");
    if (const AttributeValue* value = n->findAttribute(attr::value)) {
      const IValue* v = std::get_if<IValue>(value);
      expect(v != nullptr, n, "the attribute `value` holds no value");
    }
  }

  // What is known of tensors is no part of it: passes that put a value in the place of an equal one
  // need not know the same of both.
  static bool fits(const TypePtr& from, const TypePtr& to) {
    if (from->kind() == TypeKind::Tensor && to->kind() == TypeKind::Tensor) return true;
    const auto* a = from->as<TupleType>();
    const auto* b = to->as<TupleType>();
    if (!a || !b || a->contained().size() != b->contained().size() || b->isNamed()) {
      return from->isSubtypeOf(to);
    }
    for (size_t i = 0; i < a->contained().size(); ++i) {
      if (!fits(a->contained()[i], b->contained()[i])) return false;
    }
    return true;
  }

  void branch(const Node* n) {
    expect(n->inputs().size() == 1 && n->blocks().size() == 2, n,
           "an If has one input and two blocks");
    expect(n->inputs()[0]->type()->kind() == TypeKind::Bool, n, "an If needs a bool, found {}",
           n->inputs()[0]->type()->str());
    for (const Block* b : n->blocks()) {
      expect(b->inputs().empty(), n, "the blocks of an If take no inputs");
      expect(b->outputs().size() == n->outputs().size(), n, "a block with {} outputs for {}",
             b->outputs().size(), n->outputs().size());
      for (size_t i = 0; i < b->outputs().size(); ++i) {
        expect(fits(b->outputs()[i]->type(), n->outputs()[i]->type()), n,
               "block output {} is {}, not {}", i, b->outputs()[i]->type()->str(),
               n->outputs()[i]->type()->str());
      }
    }
  }

  void loop(const Node* n) {
    expect(n->inputs().size() >= 2 && n->blocks().size() == 1, n,
           "a Loop has a trip count, a condition and one block");
    expect(n->inputs()[0]->type()->kind() == TypeKind::Int, n, "the trip count is no int");
    expect(n->inputs()[1]->type()->kind() == TypeKind::Bool, n, "the condition is no bool");
    const Block* body = n->blocks()[0];
    size_t carried = n->inputs().size() - 2;
    expect(n->outputs().size() == carried && body->inputs().size() == carried + 1 &&
               body->outputs().size() == carried + 1,
           n, "{} carried values, {} outputs, {} block inputs, {} block outputs", carried,
           n->outputs().size(), body->inputs().size(), body->outputs().size());
    expect(body->outputs()[0]->type()->kind() == TypeKind::Bool, n,
           "the continue condition is no bool");
    for (size_t i = 0; i < carried; ++i) {
      const TypePtr& inner = body->inputs()[i + 1]->type();
      expect(fits(n->inputs()[i + 2]->type(), inner), n, "carried value {} enters as {}, not {}", i,
             n->inputs()[i + 2]->type()->str(), inner->str());
      expect(fits(body->outputs()[i + 1]->type(), n->outputs()[i]->type()), n,
             "carried value {} leaves as {}, not {}", i, body->outputs()[i + 1]->type()->str(),
             n->outputs()[i]->type()->str());
    }
  }

  const Graph& graph_;
  std::unordered_set<const Value*> scope_;
  KeyedSet<std::string> names_;
  std::unordered_map<const Value*, size_t> seen_uses_;
};

}  // namespace

void verify(const Graph& graph) {
  withStackFor(graph, [&] { Verifier(graph).run(); });
}

}  // namespace wick
