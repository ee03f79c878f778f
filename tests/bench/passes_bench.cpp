// How the time of each pass grows with the graph: straight-line graphs of 1,000, 10,000 and 100,000
// nodes, and the exponent between them (1 is linear).
//   bazel run -c opt //tests/bench:passes_bench
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "ir/alias_db.h"
#include "ir/graph.h"
#include "ir/verifier.h"
#include "passes/erase_shape_computations.h"
#include "passes/eval_mode.h"
#include "passes/fold_scales.h"
#include "passes/fusion_groups.h"
#include "passes/join_linears.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"
#include "passes/remove_mutation.h"
#include "runtime/fusion/form_groups.h"

namespace wick {
namespace {

// Nodes of every sort that passes look at: arithmetic on numbers, tensors, views, writes, lists,
// tuples, constants; each reads something near and something far.
std::shared_ptr<Graph> straightLine(size_t nodes) {
  auto graph = std::make_shared<Graph>();
  Value* x = graph->addInput("x", types::Tensor());
  Value* n = graph->addInput("n", types::Int());
  Value* one = graph->insertConstant(IValue(1));
  std::vector<Value*> tensors{x};
  Value* list = graph->insertNode(graph->createList(types::Tensor(), {}))->output();
  Value* number = n;
  auto op = [&](const char* name, std::vector<Value*> inputs, TypePtr type) {
    Node* node = graph->insertNode(graph->create(Symbol::aten(name), inputs));
    return node->output()->setType(std::move(type));
  };
  for (size_t i = 0; graph->nodeCount() < nodes; ++i) {
    Value* last = tensors.back();
    Value* far = tensors[i * 7919 % tensors.size()];
    Value* sum = op("add", {last, far, graph->insertConstant(IValue(1))}, types::Tensor());
    Value* view = op("t", {sum}, types::Tensor());
    op("relu_", {view}, types::Tensor());
    op("append", {list, sum}, list->type());
    number = op("add", {number, graph->insertConstant(IValue(int64_t(i)))}, types::Int());
    op("mul", {number, one}, types::Int());
    Node* tuple = graph->insertNode(graph->createTuple(std::vector<Value*>{sum, number}));
    Node* parts = graph->insertNode(graph->createTupleUnpack(tuple->output()));
    tensors.push_back(op("relu", {parts->output(0)}, types::Tensor()));
    tensors.push_back(op("relu", {sum}, types::Tensor()));
  }
  graph->registerOutput(tensors.back());
  graph->registerOutput(list);
  graph->registerOutput(number);
  return graph;
}

// Processor time, which other programs on the machine do not change.
double seconds(const std::function<void()>& run) {
  std::clock_t start = std::clock();
  run();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

struct Row {
  std::string name;
  std::vector<double> times;
};

void measure(std::vector<Row>& rows, size_t at, const std::string& name,
             const std::function<void()>& run) {
  if (rows.size() <= at) rows.push_back({name, {}});
  rows[at].times.push_back(seconds(run));
}

}  // namespace
}  // namespace wick

int main() {
  using namespace wick;
  const std::vector<size_t> sizes = {1000, 10000, 100000};
  std::vector<Row> rows;
  Row total{"all passes of the pipeline", {}};
  for (size_t size : sizes) {
    std::shared_ptr<Graph> graph = straightLine(size);
    size_t at = 0;
    measure(rows, at++, "(verify)", [&] { verify(*graph); });
    measure(rows, at++, "(alias analysis)", [&] { AliasDb aliases(*graph); });
    std::shared_ptr<Graph> other = graph->copy();
    measure(rows, at++, "(remove_tensor_mutation)", [&] { removeTensorMutation(*other); });
    TensorType::Facts matrix;
    matrix.dtype = DType::Float;
    matrix.dim = 2;
    other->inputs()[0]->setType(TensorType::create(matrix));
    measure(rows, at++, "(propagate_types)", [&] { propagateTypes(*other); });
    measure(rows, at++, "(erase_shape_computations)", [&] { eraseShapeComputations(*other); });
    measure(rows, at++, "(eval_mode)", [&] { removeDropout(*other); });
    measure(rows, at++, "(fold_scales)", [&] { foldScales(*other); });
    measure(rows, at++, "(join_linears)", [&] { joinLinears(*other); });
    measure(rows, at++, "(fusion_groups)",
            [&] { formFusionGroups(*other, {.kind_of = kernelKindOf}); });
    double sum = 0;
    for (const PipelinePass& pass : pipelinePasses()) {
      measure(rows, at++, pass.name, [&] { pass.run(*graph); });
      sum += rows[at - 1].times.back();
    }
    total.times.push_back(sum);
  }
  rows.push_back(total);
  fmt::print("{:<28} {:>10} {:>10} {:>10}   exponent\n", "processor ms for nodes:", sizes[0],
             sizes[1], sizes[2]);
  for (const Row& row : rows) {
    double exponent = std::log10(row.times[2] / std::max(row.times[1], 1e-9));
    fmt::print("{:<28} {:>10.2f} {:>10.2f} {:>10.2f}   {:.2f}\n", row.name, row.times[0] * 1e3,
               row.times[1] * 1e3, row.times[2] * 1e3, exponent);
  }
}
