// Occurrences are found backwards, from the last node of the pattern: each node of a block is
// compared with it, then their inputs with the pattern's inputs, and so on. All occurrences in a
// block are found before the first one is replaced, so that the aliases are analyzed once.
//
//   before(x):  relu(mul(x, x))        %a = aten::mul(%y, %y)
//   after(x):   square_relu(x)         %b = aten::relu(%a)      →   %b = square_relu(%y)
#include "passes/replace_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <vector>

#include "core/suggestions.h"
#include "ir/alias_db.h"
#include "passes/constant_pooling.h"
#include "passes/dead_code_elimination.h"
#include "passes/inline_calls.h"
#include "passes/node_traits.h"

namespace wick {
namespace {

bool isContainer(const Node* node) {
  return node->kind() == prim::ListConstruct || node->kind() == prim::TupleConstruct;
}

bool isInput(const Value* value) {
  return value->node() == value->node()->graph()->paramNode();
}

bool fitsType(const Value* value, const TypePtr& declared) {
  return unshapedType(value->type())->isSubtypeOf(unshapedType(declared));
}

// ---- checks of functions ----

void checkSignatures(const Graph& before, const Graph& after) {
  const auto list = [](const std::vector<Value*>& values) {
    std::string text;
    for (const Value* each : values) {
      text += (text.empty() ? "" : ", ") + unshapedType(each->type())->str();
    }
    return "(" + text + ")";
  };
  const auto differ = [](const std::vector<Value*>& a, const std::vector<Value*>& b) {
    return !std::ranges::equal(a, b, [](const Value* x, const Value* y) {
      return sameType(unshapedType(x->type()), unshapedType(y->type()));
    });
  };
  if (differ(before.inputs(), after.inputs())) {
    throw UsageError(fmt::format("a pattern takes {}, its replacement takes {}",
                                 list(before.inputs()), list(after.inputs())));
  }
  if (differ(before.outputs(), after.outputs())) {
    throw UsageError(fmt::format("a pattern gives {}, its replacement gives {}",
                                 list(before.outputs()), list(after.outputs())));
  }
}

void checkWritesNothing(Graph& graph, const char* what) {
  const AliasDb aliases(graph);
  if (anyNode(graph.block(), [&](const Node* node) { return aliases.writesOutside(node); })) {
    throw UsageError(fmt::format("{} writes to its arguments", what));
  }
}

// Returns the node that all others of the pattern lead to.
Node* lastNode(const Graph& pattern) {
  Node* last = nullptr;
  for (const Value* each : pattern.outputs()) {
    if (isInput(each) || each->node()->kind() == prim::Constant) {
      throw UsageError("a result of a pattern is a parameter or a constant: it computes nothing");
    }
    if (!last || last->isBefore(each->node())) last = each->node();
  }
  if (!last) throw UsageError("a pattern gives nothing");
  return last;
}

void checkPattern(Graph& pattern) {
  const AliasDb aliases(pattern);
  for (const Node* node : pattern.nodes()) {
    if (!node->blocks().empty()) {
      throw UsageError("a pattern has a branch or a loop, which is not found in graphs");
    }
    if (aliases.writes(node)) throw UsageError("a pattern writes to memory");
  }
  std::unordered_set<const Node*> reached;
  std::vector<const Node*> open{lastNode(pattern)};
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    for (const Value* each : node->inputs()) open.push_back(each->node());
  }
  for (const Node* node : pattern.nodes()) {
    if (reached.count(node) == 0) {
      throw UsageError(
          "the results of a pattern come from computations of their own: they must "
          "lead to one node");
    }
  }
}

// ---- occurrences ----

struct Occurrence {
  std::unordered_map<const Value*, Value*> values;  // of the graph by those of the pattern
  std::unordered_map<const Node*, Node*> nodes;     // without constants
  std::unordered_set<const Node*> taken;
  Node* first = nullptr;
  Node* last = nullptr;
};

class Matcher {
 public:
  Matcher(const Graph& pattern, Block* block) : pattern_(pattern), block_(block) {}

  bool match(Node* last, Occurrence& found) const {
    found.last = last;
    return matchNode(lastNode(pattern_), last, found);
  }

 private:
  static bool isSame(const Value* a, const Value* b) {
    if (a == b) return true;
    const auto x = constantOf(a), y = constantOf(b);
    return x && y && sameConstant(*x, *y);
  }

  bool matchValue(const Value* expected, Value* value, Occurrence& found) const {
    if (const auto known = found.values.find(expected); known != found.values.end()) {
      return isSame(known->second, value);
    }
    if (isInput(expected)) {
      if (!fitsType(value, expected->type())) return false;
    } else if (expected->node()->kind() == prim::Constant) {
      if (value->node()->kind() != prim::Constant || !isSame(expected, value)) return false;
    } else {
      if (expected->offset() != value->offset()) return false;
      return matchNode(expected->node(), value->node(), found);
    }
    found.values[expected] = value;
    return true;
  }

  bool matchNode(const Node* expected, Node* node, Occurrence& found) const {
    if (const auto known = found.nodes.find(expected); known != found.nodes.end()) {
      return known->second == node;
    }
    if (node->block() != block_ || node->kind() != expected->kind() || !node->blocks().empty() ||
        node->inputs().size() != expected->inputs().size() ||
        node->outputs().size() != expected->outputs().size() ||
        node->maybeOperator() != expected->maybeOperator() || !sameAttributes(node, expected) ||
        !found.taken.insert(node).second) {
      return false;
    }
    found.nodes[expected] = node;
    if (!found.first || node->isBefore(found.first)) found.first = node;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (!fitsType(node->output(i), expected->output(i)->type())) return false;
      found.values[expected->output(i)] = node->output(i);
    }
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      if (!matchValue(expected->input(i), node->input(i), found)) return false;
    }
    return true;
  }

  const Graph& pattern_;
  Block* const block_;
};

class BlockRewriter {
 public:
  BlockRewriter(const Graph& before, const Graph& after, AliasDb& aliases, Block* block)
      : before_(before), after_(after), aliases_(aliases), block_(block) {
    for (Node* node : block->nodes()) {
      if (aliases_.writes(node) || aliases_.hasOrderedEffects(node) || mayChangeGradMode(node)) {
        effects_.push_back(node);
      }
    }
  }

  void find() {
    const Matcher matcher(before_, block_);
    const Symbol kind = lastNode(before_)->kind();
    for (Node* node : block_->nodes()) {
      if (node->kind() != kind) continue;
      Occurrence found;
      if (!matcher.match(node, found) || !isFree(found) || !mayMove(found)) continue;
      for (const Node* each : found.taken) {
        if (!isContainer(each)) taken_.insert(each);
      }
      all_.push_back(std::move(found));
    }
  }

  size_t replace(Graph& graph) {
    std::unordered_map<Value*, Value*> replaced;
    for (const Occurrence& each : all_) {
      const InsertPointGuard guard(each.last);
      const RangeGuard range(&graph, each.last->range());
      std::vector<Value*> inputs;
      for (const Value* input : before_.inputs()) {
        // A parameter that the pattern does not use is not used by the replacement either.
        const auto found = each.values.find(input);
        Value* value = found == each.values.end() ? graph.insertNode(graph.createNone())->output()
                                                  : found->second;
        if (const auto now = replaced.find(value); now != replaced.end()) value = now->second;
        inputs.push_back(value);
      }
      const std::vector<Value*> results = inlineGraph(graph, after_, inputs);
      for (size_t i = 0; i < results.size(); ++i) {
        Value* const old = each.values.at(before_.outputs()[i]);
        replaced[old] = results[i];
        replaceValue(old, results[i]);
      }
      destroy(each);
    }
    return all_.size();
  }

 private:
  // Returns whether nobody else needs the nodes, and no other occurrence has them.
  bool isFree(const Occurrence& found) const {
    const auto& results = before_.outputs();
    for (const auto& [expected, node] : found.nodes) {
      if (taken_.count(node) != 0) return false;
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        const bool result = std::ranges::find(results, expected->output(i)) != results.end();
        for (const Use& use : node->output(i)->uses()) {
          if (found.taken.count(use.user) != 0) continue;
          if (result ? !use.user->isAfter(found.last) : !isContainer(node)) return false;
        }
      }
    }
    return true;
  }

  // Returns whether all nodes might as well run where the last one does.
  bool mayMove(const Occurrence& found) const {
    bool ordered = false;
    std::vector<Value*> touched;
    for (const auto& [expected, node] : found.nodes) {
      ordered |= aliases_.hasOrderedEffects(node);
      touched.insert(touched.end(), node->inputs().begin(), node->inputs().end());
      touched.insert(touched.end(), node->outputs().begin(), node->outputs().end());
    }
    for (const Node* other : effects_) {
      if (found.taken.count(other) != 0 || !other->isAfter(found.first) ||
          !other->isBefore(found.last)) {
        continue;
      }
      if (mayChangeGradMode(other) || !other->blocks().empty() || aliases_.writesOutside(other) ||
          (ordered && aliases_.hasOrderedEffects(other))) {
        return false;
      }
      std::vector<Value*> written(other->inputs());
      written.insert(written.end(), other->outputs().begin(), other->outputs().end());
      if (aliases_.writes(other) && aliases_.mayContainAlias(written, touched)) return false;
    }
    return true;
  }

  static void destroy(const Occurrence& found) {
    std::vector<Node*> nodes;
    for (const auto& [expected, node] : found.nodes) nodes.push_back(node);
    std::ranges::sort(nodes, [](const Node* a, const Node* b) { return b->isBefore(a); });
    for (Node* node : nodes) {
      const bool used =
          std::ranges::any_of(node->outputs(), [](const Value* each) { return each->hasUses(); });
      if (!used) node->destroy();
    }
  }

  const Graph& before_;
  const Graph& after_;
  AliasDb& aliases_;
  Block* const block_;
  std::vector<Node*> effects_;
  std::vector<Occurrence> all_;
  std::unordered_set<const Node*> taken_;
};

void collectBlocks(Block* block, std::vector<Block*>& all) {
  all.push_back(block);
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) collectBlocks(inner, all);
  }
}

// ---- operators ----

bool mayFit(const TypePtr& a, const TypePtr& b) {
  const TypePtr x = unshapedType(a), y = unshapedType(b);
  return x->isSubtypeOf(y) || y->isSubtypeOf(x);
}

// Returns why the function cannot stand for the operator; "" if it can.
std::string whyNot(const Operator& op, const Graph& function) {
  const FunctionSchema& schema = op.schema();
  if (schema.isVararg() || schema.isVarret()) return "it takes any number of arguments";
  if (schema.isMutable()) return "it writes to its arguments";
  for (const Argument& each : schema.returns()) {
    if (each.alias) return "it gives views of its arguments";
  }
  const auto fit = [](const std::vector<Argument>& declared, const std::vector<Value*>& values) {
    return std::ranges::equal(declared, values, [](const Argument& a, const Value* v) {
      return mayFit(a.type, v->type());
    });
  };
  if (!fit(schema.arguments(), function.inputs())) return "the function takes other arguments";
  if (!fit(schema.returns(), function.outputs())) return "the function gives other results";
  return "";
}

class Decomposer {
 public:
  Decomposer(Graph& graph, const Decompositions& table) : graph_(graph), table_(table) {}

  // Looks at the nodes from `node` up to the one before `end`.
  size_t run(Node* node, const Node* end) {
    size_t count = 0;
    while (node != end) {
      Node* const next = node->next();
      for (Block* inner : node->blocks()) {
        count += run(inner->returnNode()->next(), inner->returnNode());
      }
      const Operator* const op = node->maybeOperator();
      const auto found = op ? table_.find(op) : table_.end();
      if (found != table_.end() && active_.count(op) == 0 && fits(node, *found->second)) {
        count += 1 + replace(node, op, *found->second);
      }
      node = next;
    }
    return count;
  }

 private:
  static bool fits(const Node* node, const Graph& function) {
    return std::ranges::equal(
        node->inputs(), function.inputs(),
        [](const Value* a, const Value* b) { return fitsType(a, b->type()); });
  }

  size_t replace(Node* node, const Operator* op, const Graph& function) {
    Node* const before = node->prev();
    {
      const InsertPointGuard guard(node);
      const RangeGuard range(&graph_, node->range());
      const std::vector<Value*> results = inlineGraph(graph_, function, node->inputs());
      for (size_t i = 0; i < results.size(); ++i) replaceValue(node->output(i), results[i]);
    }
    active_.insert(op);
    const size_t count = run(before->next(), node);
    active_.erase(op);
    node->destroy();
    return count;
  }

  Graph& graph_;
  const Decompositions& table_;
  std::unordered_set<const Operator*> active_;  // whose replacements are being looked at
};

}  // namespace

std::shared_ptr<Graph> graphForRule(const Graph& graph) {
  std::shared_ptr<Graph> made = graph.copy();
  inlineCalls(*made);
  if (made->outputs().size() == 1 && made->outputs()[0]->node()->kind() == prim::TupleConstruct) {
    const std::vector<Value*> elements = made->outputs()[0]->node()->inputs();
    made->block()->eraseOutput(0);
    for (Value* each : elements) made->registerOutput(each);
  }
  eliminateDeadCode(*made);
  poolConstants(*made);
  return made;
}

PatternRule::PatternRule(const Graph& before, const Graph& after)
    : before_(graphForRule(before)), after_(graphForRule(after)) {
  checkSignatures(*before_, *after_);
  checkPattern(*before_);
  checkWritesNothing(*after_, "a replacement");
  for (size_t i = 0; i < before_->inputs().size(); ++i) {
    if (!before_->inputs()[i]->hasUses() && after_->inputs()[i]->hasUses()) {
      throw UsageError(fmt::format("the replacement uses the parameter '{}', the pattern does not",
                                   after_->inputs()[i]->debugName()));
    }
  }
}

size_t PatternRule::apply(Graph& graph) const {
  AliasDb aliases(graph);
  std::vector<Block*> blocks;
  collectBlocks(graph.block(), blocks);
  std::vector<BlockRewriter> rewriters;
  rewriters.reserve(blocks.size());
  for (Block* block : blocks) {
    rewriters.emplace_back(*before_, *after_, aliases, block).find();
  }
  size_t count = 0;
  for (BlockRewriter& each : rewriters) count += each.replace(graph);
  return count;
}

const Operator& decomposedOperator(const std::string& name, const Graph& function) {
  OperatorRegistry& registry = OperatorRegistry::instance();
  const size_t dot = name.find('.');
  const std::string base = name.substr(0, dot);
  if (base.find("::") == std::string::npos ||
      registry.overloads(Symbol::fromQualString(base)).empty()) {
    const std::vector<std::string> names = registry.names();
    throw UsageError(fmt::format("there is no operator '{}'{}", base,
                                 didYouMean(base, {names.begin(), names.end()})));
  }
  Graph& graph = const_cast<Graph&>(function);
  checkWritesNothing(graph, "a decomposition");
  std::vector<const Operator*> fitting;
  std::string reasons, fits;
  for (const Operator* op : registry.overloads(Symbol::fromQualString(base))) {
    if (dot != std::string::npos && op->schema().overload() != name.substr(dot + 1)) continue;
    const std::string why = whyNot(*op, function);
    if (why.empty()) {
      fitting.push_back(op);
      fits += "\n  " + op->schema().str();
    } else {
      reasons += "\n  " + op->schema().str() + ": " + why;
    }
  }
  if (fitting.size() == 1) return *fitting[0];
  if (!fitting.empty()) {
    throw UsageError(fmt::format("several overloads of '{}' fit the decomposition:{}", base, fits));
  }
  throw UsageError(reasons.empty() ? fmt::format("there is no overload '{}'", name)
                                   : fmt::format("'{}' has no overload for the decomposition:{}",
                                                 name, reasons));
}

size_t decompose(Graph& graph, const Decompositions& table) {
  return Decomposer(graph, table).run(graph.returnNode()->next(), graph.returnNode());
}

}  // namespace wick
