#include "python/graph_rules.h"

#include <map>
#include <string>

#include "ir/depth.h"
#include "ir/function.h"
#include "passes/inline_calls.h"
#include "passes/replace_patterns.h"
#include "python/pybind.h"
#include "python/script.h"
#include "python/script_names.h"

namespace wick::python {
namespace {

// Guarded by the GIL.
struct GraphRules {
  Decompositions decompositions;
  std::map<std::string, const Operator*> decomposed;  // by the names that they were registered by
  std::map<int64_t, PatternRule> patterns;
  int64_t last = 0;
};

GraphRules& graphRules() {
  static auto& all = *new GraphRules();
  return all;
}

const Graph& scriptGraphOf(const py::object& object) {
  GraphFunction* const function = scriptFunctionIn(object.ptr());
  if (!function) raise(PyExc_TypeError, "expected a script function");
  const CompileTurn turn;
  function->ensureDefined();
  return *function->graph();
}

void addDecomposition(const std::string& name, const py::object& function) {
  const std::shared_ptr<Graph> graph = graphForRule(scriptGraphOf(function));
  const Operator& op = decomposedOperator(name, *graph);
  graphRules().decompositions[&op] = graph;
  graphRules().decomposed[name] = &op;
}

bool removeDecomposition(const std::string& name) {
  GraphRules& all = graphRules();
  const auto found = all.decomposed.find(name);
  if (found == all.decomposed.end()) return false;
  const Operator* const op = found->second;
  all.decompositions.erase(op);
  std::erase_if(all.decomposed, [&](const auto& each) { return each.second == op; });
  return true;
}

int64_t addPattern(const py::object& before, const py::object& after) {
  PatternRule rule(scriptGraphOf(before), scriptGraphOf(after));
  GraphRules& all = graphRules();
  all.patterns.emplace(++all.last, std::move(rule));
  return all.last;
}

}  // namespace

void applyGraphRules(Graph& graph) {
  const GraphRules& all = graphRules();
  if (all.decompositions.empty() && all.patterns.empty()) return;
  withStackFor(graph, [&] {
    inlineCalls(graph);
    if (!all.decompositions.empty()) decompose(graph, all.decompositions);
    for (const auto& [number, rule] : all.patterns) rule.apply(graph);
  });
}

void addGraphRules(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_add_decomposition", addDecomposition);
  m.def("_remove_decomposition", removeDecomposition);
  m.def("_add_pattern", addPattern);
  m.def("_remove_graph_rule", [](int64_t number) { graphRules().patterns.erase(number); });
  m.def("_reset_graph_rules", [] { graphRules() = GraphRules(); });
}

}  // namespace wick::python
