// A pattern is matched backwards from its last node: the node's inputs tell what the pattern's
// inputs must be, and so on. The replacement is inserted where the last node stands, which is
// behind everything that the match reads.
#include "passes/subgraph_rewriter.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/parser.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

Node* lastNode(const Graph& graph) {
  Node* last = nullptr;
  for (Node* node : graph.nodes()) last = node;
  return last;
}

// The pattern's nodes that the last one depends on.
size_t countReachable(const Node* node, std::unordered_set<const Node*>& seen) {
  if (node->kind() == prim::Param || !seen.insert(node).second) return 0;
  size_t count = 1;
  for (const Value* v : node->inputs()) count += countReachable(v->node(), seen);
  return count;
}

void checkRule(const Graph& pattern, const Graph& replacement) {
  const auto refuse = [](const char* why) {
    throw UsageError(fmt::format("SubgraphRewriter: {}", why));
  };
  if (pattern.inputs().size() != replacement.inputs().size() ||
      pattern.outputs().size() != replacement.outputs().size()) {
    refuse("pattern and replacement differ in their numbers of inputs or outputs");
  }
  size_t count = 0;
  for (const Graph* graph : {&pattern, &replacement}) {
    for (const Node* node : graph->nodes()) {
      if (!node->blocks().empty()) refuse("control flow is not a part of a pattern");
      if (graph == &pattern) ++count;
    }
  }
  std::unordered_set<const Node*> seen;
  const Node* last = lastNode(pattern);
  if (!last || last->kind() == prim::Constant) refuse("a pattern needs a node to look for");
  if (countReachable(last, seen) != count) refuse("a node does not lead to the pattern's last one");
  for (const Value* v : pattern.outputs()) {
    if (v->node()->kind() == prim::Param) refuse("an input cannot be an output");
  }
}

}  // namespace

class Matcher {
 public:
  Matcher(const Graph& pattern, Node* anchor) : block_(anchor->block()) {
    match_.pattern_ = &pattern;
    found_ = node(lastNode(pattern), anchor) && isClosed();
  }
  bool found() const { return found_; }
  Match take() {
    std::sort(match_.nodes_.begin(), match_.nodes_.end(),
              [](const Node* a, const Node* b) { return a != b && a->isBefore(b); });
    return std::move(match_);
  }

 private:
  bool value(const Value* pattern, Value* actual) {
    auto [it, added] = match_.values_.emplace(pattern, actual);
    if (!added) return it->second == actual;
    if (pattern->node()->kind() == prim::Param) return true;
    return pattern->offset() == actual->offset() && node(pattern->node(), actual->node());
  }

  bool node(const Node* pattern, Node* actual) {
    auto [it, added] = nodes_.emplace(pattern, actual);
    if (!added) return it->second == actual;
    if (pattern->kind() != actual->kind() || !actual->blocks().empty() ||
        pattern->inputs().size() != actual->inputs().size() ||
        pattern->outputs().size() != actual->outputs().size() || !sameAttributes(pattern, actual)) {
      return false;
    }
    // A constant may stand anywhere, and others may use it; it is not replaced.
    if (actual->kind() == prim::Constant) return true;
    if (actual->block() != block_) return false;
    match_.nodes_.push_back(actual);
    for (size_t i = 0; i < pattern->outputs().size(); ++i) {
      auto [bound, fresh] = match_.values_.emplace(pattern->output(i), actual->output(i));
      if (!fresh && bound->second != actual->output(i)) return false;
    }
    for (size_t i = 0; i < pattern->inputs().size(); ++i) {
      if (!value(pattern->input(i), actual->input(i))) return false;
    }
    return true;
  }

  // Whether only the match uses what its inner nodes give.
  bool isClosed() const {
    std::unordered_set<const Value*> results;
    for (const Value* v : match_.pattern_->outputs()) results.insert(match_.values_.at(v));
    std::unordered_set<const Node*> inside(match_.nodes_.begin(), match_.nodes_.end());
    for (const Node* n : match_.nodes_) {
      for (const Value* v : n->outputs()) {
        if (results.count(v)) continue;
        for (const Use& use : v->uses()) {
          if (!inside.count(use.user)) return false;
        }
      }
    }
    return true;
  }

  Block* block_;
  Match match_;
  std::unordered_map<const Node*, Node*> nodes_;
  bool found_ = false;
};

Value* Match::value(std::string_view name) const {
  for (const auto& [pattern, actual] : values_) {
    if (pattern->debugName() == name) return actual;
  }
  WICK_ASSERT(false, "the pattern has no value %{}", name);
}

void SubgraphRewriter::add(std::string_view pattern, std::string_view replacement, Filter filter) {
  Rule rule{parseGraph(pattern), parseGraph(replacement), std::move(filter)};
  checkRule(*rule.pattern, *rule.replacement);
  rules_.push_back(std::move(rule));
}

bool SubgraphRewriter::rewriteAt(Node* node, const Rule& rule, AliasDb& aliases) {
  if (node->kind() != lastNode(*rule.pattern)->kind()) return false;
  Matcher matcher(*rule.pattern, node);
  if (!matcher.found()) return false;
  Match match = matcher.take();
  if (match.anchor() != node) return false;
  for (const Node* n : match.nodes()) {
    if (aliases.writes(n) || aliases.hasWriters(n) || aliases.hasOrderedEffects(n)) return false;
  }
  // Users in between the match's nodes would come before the replacement.
  for (const Value* v : rule.pattern->outputs()) {
    for (const Use& use : match.values_.at(v)->uses()) {
      bool inside =
          std::find(match.nodes().begin(), match.nodes().end(), use.user) != match.nodes().end();
      if (!inside && use.user->isBefore(node)) return false;
    }
  }
  if (rule.filter && !rule.filter(match)) return false;
  if (!WICK_MAY_OPTIMIZE("rewrites {}", node->str())) return false;

  InsertPointGuard guard(node);
  RangeGuard range(node->graph(), node->range());
  std::vector<Value*> inputs;
  for (const Value* v : rule.pattern->inputs()) inputs.push_back(match.values_.at(v));
  Node* before = node->prev();
  std::vector<Value*> results = inlineGraph(*node->graph(), *rule.replacement, inputs);
  for (Node* n = before->next(); n != node; n = n->next()) {
    n->setInlinedFrom(node->inlinedFrom());
    for (const Value* v : n->outputs()) aliases.addFresh(v);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    Value* old = match.values_.at(rule.pattern->outputs()[i]);
    bool is_new = std::find(inputs.begin(), inputs.end(), results[i]) == inputs.end();
    if (is_new) {
      results[i]->setType(old->type());
      if (old->hasDebugName()) results[i]->setDebugName("");  // the program's name is better
    }
    aliases.takesOver(results[i], old);
    replaceValue(old, results[i]);
  }
  for (auto it = match.nodes().rbegin(); it != match.nodes().rend(); ++it) {
    aliases.removeNode(*it);
    (*it)->destroy();
  }
  return true;
}

size_t SubgraphRewriter::run(Graph& graph) {
  // What a rewrite adds is not looked at again, so the analysis stays true for the rest.
  AliasDb aliases(graph);
  std::vector<Node*> nodes;
  std::vector<Block*> blocks = {graph.block()};
  while (!blocks.empty()) {
    Block* block = blocks.back();
    blocks.pop_back();
    for (Node* node : block->nodes()) {
      nodes.push_back(node);
      blocks.insert(blocks.end(), node->blocks().begin(), node->blocks().end());
    }
  }
  size_t count = 0;
  // Destroyed nodes stand before their anchor in the list, so they are never met again.
  for (Node* node : nodes) {
    for (const Rule& rule : rules_) {
      if (!rewriteAt(node, rule, aliases)) continue;
      ++count;
      break;
    }
  }
  return count;
}

}  // namespace wick
