// The passes that plans for known types go through (runtime/executor/), again and again while they find
// something: what a branch decided may be what a loop counts.
#include "streams/time/specialize.h"

#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/inline_calls.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/propagate_types.h"
#include "passes/remove_mutation.h"
#include "passes/unroll_loops.h"

namespace wick::streams {

namespace {

// Each iteration of a loop becomes filters of its own, so loops are written out as far as programs go.
constexpr UnrollLimits kUnroll{1024, 4096, 1 << 16};

bool mayBeConstant(const IValue& value) {
  return value.isNone() || value.isNumber() || value.isString();
}

// What is known of the argument; along `axis` any length goes.
TypePtr typeLike(const Tensor& tensor, std::optional<int64_t> axis) {
  TensorType::Facts facts = typeOfTensor(tensor)->as<TensorType>()->facts();
  if (!axis) return TensorType::create(std::move(facts));
  constexpr int64_t kSymbol = -1;
  if (facts.sizes) (*facts.sizes)[static_cast<size_t>(*axis)] = kSymbol;
  facts.strides.reset();
  facts.requires_grad.reset();
  return TensorType::create(std::move(facts));
}

}  // namespace

bool unrollOverTime(Node* loop) {
  return unrollLoop(loop, kUnroll);
}

std::shared_ptr<Graph> specializedOverTime(const GraphFunction& program,
                                           const std::vector<IValue>& example, int64_t axis) {
  std::shared_ptr<Graph> graph = program.graph()->copy();
  for (size_t i = 0; i < example.size(); ++i) {
    Value* const input = graph->inputs()[i];
    if (example[i].isTensor() && example[i].toTensor().defined()) {
      input->setType(typeLike(example[i].toTensor(), i == 0 ? std::optional(axis) : std::nullopt));
    } else if (i > 0 && mayBeConstant(example[i])) {
      const InsertPointGuard guard(*graph->nodes().begin());
      input->replaceAllUsesWith(graph->insertConstant(example[i]));
    }
  }
  inlineCalls(*graph);
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    propagateTypes(*graph);
    bool changed = lowerTuples(*graph);
    changed |= removeListMutation(*graph);
    changed |= removeTypedTensorMutation(*graph);
    changed |= simplifyPeepholes(*graph);
    changed |= propagateConstants(*graph);
    changed |= unrollLoopsWithin(*graph, kUnroll);
    eliminateDeadCode(*graph);
    if (!changed) break;
  }
  return graph;
}

}  // namespace wick::streams
