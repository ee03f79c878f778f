// Replaces computations in graphs by others that somebody states to be equal.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/operator.h"

namespace wick {

// A computation and the one that replaces it.
class PatternRule {
 public:
  // Takes copies of the graphs of two functions. Throws UsageError if their parameters or results
  // differ, or if `before` cannot be found in graphs: it computes nothing, writes, branches, loops,
  // or its results come from several computations that no single node depends on.
  PatternRule(const Graph& before, const Graph& after);

  // Replaces each occurrence in the graph, inner blocks too; returns how many there were. An
  // occurrence is left if an inner value is used elsewhere, a result is used before all of the
  // computation has run, something between its nodes writes what they read, or types do not fit.
  // Occurrences do not overlap; the first one in the order of the graph wins. Results of
  // replacements are not looked at again.
  size_t apply(Graph& graph) const;

 private:
  std::shared_ptr<Graph> before_, after_;
};

// The parts of operators: graphs that take their arguments and give their results.
using Decompositions = std::unordered_map<const Operator*, std::shared_ptr<const Graph>>;

// Returns the operator that the name ("aten::gelu", "aten::add.Tensor") and the function's
// parameters stand for. Throws UsageError: there is none, several fit, it writes to its arguments or
// gives a view of them, or the function takes or gives anything else.
const Operator& decomposedOperator(const std::string& name, const Graph& function);

// Replaces each node whose operator is in the table, inner blocks too, where the types of its
// inputs fit; returns how many. Within a replacement its own operator stays.
size_t decompose(Graph& graph, const Decompositions& table);

// Returns a copy of a function's graph as the rules above take it: without calls and dead nodes, and
// a tuple that is the result is several results.
std::shared_ptr<Graph> graphForRule(const Graph& graph);

}  // namespace wick
