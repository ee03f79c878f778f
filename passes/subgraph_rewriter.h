// Rewriting by example: patterns and replacements as IR text.
//
//   SubgraphRewriter rewriter;
//   rewriter.add(R"(graph(%x, %w, %b, %one):
//                     %y = aten::mm(%x, %w)
//                     %z = aten::add(%y, %b, %one)
//                     return (%z))",
//                R"(graph(%x, %w, %b, %one):
//                     %z = aten::addmm(%b, %x, %w, %one, %one)
//                     return (%z))");
//   rewriter.run(graph);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace wick {

// What a pattern stands for at one place of a graph.
class Match {
 public:
  // The graph's value for the pattern's value %name; InternalError when there is none.
  Value* value(std::string_view name) const;
  const std::vector<Node*>& nodes() const { return nodes_; }  // in the graph's order
  Node* anchor() const { return nodes_.back(); }              // the last one

 private:
  friend class SubgraphRewriter;
  friend class Matcher;
  const Graph* pattern_ = nullptr;
  std::unordered_map<const Value*, Value*> values_;
  std::vector<Node*> nodes_;
};

// Not thread-safe.
class SubgraphRewriter {
 public:
  using Filter = std::function<bool(const Match& match)>;

  // Both texts are graphs without control flow, with equal numbers of inputs and outputs. An input
  // stands for any value, a constant for an equal constant, any other node for a node of the same
  // kind, attributes and overload. All of the pattern's nodes must lead to its last one. The
  // replacement takes the types of its results from the values that it replaces, and must have the
  // pattern's meaning whenever `filter` holds. Throws CompileError for text that is not a graph,
  // UsageError for one that does not obey these rules.
  void add(std::string_view pattern, std::string_view replacement, Filter filter = nullptr);

  // Replaces matches, in the order of the graph and of the rules, until none is left that was there
  // before; returns how many. A match lies in one block, its inner values have no users outside of
  // it, and no node of it reads or writes memory that some node of the graph writes.
  size_t run(Graph& graph);

 private:
  struct Rule {
    std::shared_ptr<Graph> pattern;
    std::shared_ptr<Graph> replacement;
    Filter filter;
  };
  bool rewriteAt(Node* node, const Rule& rule, class AliasDb& aliases);
  std::vector<Rule> rules_;
};

}  // namespace wick
