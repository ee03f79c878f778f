// graph(%x : Tensor):
//   %y : Tensor = aten::conv2d(%x, …)
//   %z : Tensor = aten::batch_norm(%y, …)
//   return (%z)
// →
// graph(%x : Tensor):
//   %d : int = aten::dim(%x)
//   %c : bool = aten::eq(%d, %four)
//   %z : Tensor = prim::If(%c)
//     block0():
//       …                                     where foldScales() knows the rank
//     block1():
//       …
//   return (%z)
#include "passes/rank_versions.h"

#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/shape_facts.h"
#include "passes/fold_scales.h"
#include "passes/propagate_types.h"

namespace wick {

namespace {

using RanksOfInputs = std::map<size_t, size_t>;  // by the index of the input

// The inputs that the tensors come from, each by the first inputs of nodes: a layer, an activation or a
// sum keeps the rank of what it reads. Whether that holds will be seen.
RanksOfInputs guessRanks(const Graph& graph, const std::vector<WantedRank>& wanted) {
  RanksOfInputs ranks;
  std::unordered_set<const Value*> seen;
  for (const WantedRank& want : wanted) {
    const Value* v = want.tensor;
    while (v->node() != graph.paramNode() && !v->node()->inputs().empty() &&
           seen.insert(v).second) {
      v = v->node()->input(0);
    }
    if (v->node() != graph.paramNode()) continue;
    const TensorFacts* const facts = factsOf(v);
    if (facts && !facts->dim) ranks.emplace(v->offset(), want.rank);
  }
  return ranks;
}

bool helps(const Graph& graph, const RanksOfInputs& ranks, size_t unknown) {
  const std::shared_ptr<Graph> copy = graph.copy();
  for (const auto& [index, rank] : ranks) {
    Value* const input = copy->inputs()[index];
    TensorFacts facts = *factsOf(input);
    facts.dim = rank;
    input->setType(TensorType::create(std::move(facts)));
  }
  return ranksToFold(*copy).size() < unknown;
}

Value* insertTest(Graph& graph, const RanksOfInputs& ranks) {
  Value* all = nullptr;
  for (const auto& [index, rank] : ranks) {
    Value* const dim = graph.insertNode(graph.create(aten::dim, {graph.inputs()[index]}))->output();
    dim->setType(types::Int());
    Value* const wanted = graph.insertConstant(IValue(static_cast<int64_t>(rank)));
    Value* const same = graph.insertNode(graph.create(aten::eq, {dim, wanted}))->output();
    same->setType(types::Bool());
    if (!all) {
      all = same;
      continue;
    }
    all = graph.insertNode(graph.create(Symbol::aten("__and__"), {all, same}))->output();
    all->setType(types::Bool());
  }
  return all;
}

}  // namespace

bool splitByRank(Graph& graph) {
  const std::vector<WantedRank> wanted = ranksToFold(graph);
  if (wanted.empty()) return false;
  const RanksOfInputs ranks = guessRanks(graph, wanted);
  if (ranks.empty() || !helps(graph, ranks, wanted.size())) return false;

  const std::shared_ptr<Graph> body = graph.copy();
  graph.block()->clear();
  InsertPointGuard end(graph.block());
  Node* const branch = graph.create(prim::If, {insertTest(graph, ranks)}, body->outputs().size());
  graph.insertNode(branch);
  for ([[maybe_unused]] int version : {0, 1}) {
    Block* const block = branch->addBlock();
    InsertPointGuard inside(block);
    for (Value* out : inlineGraph(graph, *body, graph.inputs())) block->registerOutput(out);
  }
  for (size_t i = 0; i < body->outputs().size(); ++i) {
    branch->output(i)->setType(body->outputs()[i]->type());
    graph.registerOutput(branch->output(i));
  }
  return true;
}

}  // namespace wick
