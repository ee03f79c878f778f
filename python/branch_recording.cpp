#include "python/branch_recording.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "autograd/tape.h"
#include "capture/world.h"
#include "core/grad_mode.h"
#include "ir/operator.h"
#include "runtime/ops/call.h"

namespace wick::python {
namespace {

using capture::breakGraph;

const Storage* memoryOf(const Tensor& fake) {
  return fake.impl()->storage.get();
}

Node* insert(Graph& graph, const char* name, const char* overload, std::vector<Value*> arguments,
             TypePtr type) {
  const Operator* const op = OperatorRegistry::instance().find(Symbol::aten(name), overload);
  if (!op) breakGraph(std::string("aten::") + name + " cannot be recorded");
  Node* const node = graph.create(op->symbol(), arguments, 0);
  node->setOperator(op);
  node->addOutput(std::move(type));
  return graph.insertNode(node);
}

}  // namespace

Value* BranchRecording::truthOf(const Tensor& condition) {
  if (condition.numel() != 1) breakGraph("a branch on a tensor that has not one element");
  Value* const value = tracer_.find(condition);
  if (!value) breakGraph("a branch on a tensor that was made out of sight");
  return insert(tracer_.graph(), "Bool", "Tensor", {value}, types::Bool())->output();
}

void BranchRecording::beginBranch(const Tensor& condition, int64_t step) {
  Graph& graph = tracer_.graph();
  Node* const node = graph.create(prim::If, {truthOf(condition)}, 0);
  graph.insertNode(node);
  node->addBlock();
  node->addBlock();
  open_.push_back({node, step, true, {}, tracer_.enter(node->blocks()[0]), {}});
}

void BranchRecording::beginOtherSide() {
  Open& branch = open_.back();
  branch.first = tracer_.leave(branch.outer);
  branch.outer = tracer_.enter(branch.node->blocks()[1]);
}

std::vector<Tensor> BranchRecording::endBranch(
    const std::vector<std::pair<Tensor, Tensor>>& results) {
  Open branch = std::move(open_.back());
  open_.pop_back();
  std::vector<Value*> made;
  for (const auto& [first, second] : results) {
    Value *const a = branch.first.find(first), *const b = tracer_.find(second);
    if (!a || !b) breakGraph("a side of a branch gives a tensor that was made out of sight");
    branch.node->blocks()[0]->registerOutput(a);
    branch.node->blocks()[1]->registerOutput(b);
    made.push_back(branch.node->addOutput(types::Tensor()));
  }
  for (const Block* block : branch.node->blocks()) checkPure(*block);
  std::vector<Tensor> joined;
  for (const auto& [first, second] : results) {
    joined.push_back(join(first, second));
    joined_.push_back({joined.back(), {memoryOf(first), memoryOf(second)}, branch.step});
  }
  tracer_.leave(branch.outer);
  for (size_t i = 0; i < joined.size(); ++i) tracer_.bindResult(made[i], joined[i]);
  return joined;
}

std::vector<Tensor> BranchRecording::beginLoop(const Tensor& condition, bool again,
                                               const std::vector<Tensor>& carried, int64_t step) {
  Graph& graph = tracer_.graph();
  Value* start = truthOf(condition);
  if (!again) start = insert(graph, "__not__", "", {start}, types::Bool())->output();
  std::vector<Value*> arguments{graph.insertConstant(IValue(std::numeric_limits<int64_t>::max())),
                                start};
  for (const Tensor& each : carried) {
    arguments.push_back(tracer_.find(each));
    if (!arguments.back()) breakGraph("a loop on a tensor that was made out of sight");
  }
  Node* const node = graph.create(prim::Loop, arguments, 0);
  graph.insertNode(node);
  Block* const body = node->addBlock();
  body->addInput(types::Int());
  open_.push_back({node, step, again, carried, tracer_.enter(body), {}});
  std::vector<Tensor> inside;
  for (const Tensor& each : carried) {
    inside.push_back(join(each, each));
    tracer_.bindResult(body->addInput(types::Tensor()), inside.back());
    joined_.push_back({inside.back(), {memoryOf(each)}, step});
  }
  return inside;
}

std::vector<Tensor> BranchRecording::endLoop(const Tensor& condition,
                                             const std::vector<Tensor>& carried) {
  Open loop = std::move(open_.back());
  open_.pop_back();
  Block* const body = loop.node->blocks()[0];
  Value* next = truthOf(condition);
  if (!loop.again) next = insert(tracer_.graph(), "__not__", "", {next}, types::Bool())->output();
  body->registerOutput(next);
  std::vector<Value*> made;
  for (size_t i = 0; i < carried.size(); ++i) {
    Value* const value = tracer_.find(carried[i]);
    if (!value || !canJoin(loop.carried[i], carried[i])) {
      breakGraph("a loop on the value of a tensor that changes the kind of another");
    }
    body->registerOutput(value);
    made.push_back(loop.node->addOutput(types::Tensor()));
  }
  checkPure(*body);
  std::vector<Tensor> results;
  for (size_t i = 0; i < carried.size(); ++i) {
    results.push_back(join(loop.carried[i], carried[i]));
    joined_.push_back(
        {results.back(), {memoryOf(loop.carried[i]), memoryOf(carried[i])}, loop.step});
  }
  tracer_.leave(loop.outer);
  for (size_t i = 0; i < results.size(); ++i) tracer_.bindResult(made[i], results[i]);
  return results;
}

bool BranchRecording::canJoin(const Tensor& a, const Tensor& b) {
  return a.kind() == TensorKind::Dense && b.kind() == TensorKind::Dense && a.dtype() == b.dtype() &&
         a.device() == b.device() && a.impl()->offset == b.impl()->offset &&
         std::ranges::equal(a.sizes(), b.sizes()) && std::ranges::equal(a.strides(), b.strides()) &&
         autograd::requiresGradient(a) == autograd::requiresGradient(b);
}

// Writes in one side only would have to be told to everybody.
void BranchRecording::checkPure(const Block& block) const {
  for (const Node* node : block.nodes()) {
    const FunctionSchema* const schema = node->maybeSchema();
    if (schema && schema->isMutable()) breakGraph("a branch whose sides write to tensors");
    for (const Block* inner : node->blocks()) checkPure(*inner);
  }
}

// Returns a fake that is like both and depends on both.
Tensor BranchRecording::join(const Tensor& a, const Tensor& b) {
  Tensor made = Tensor::emptyStrided(a.sizes(), a.strides(), a.dtype(), a.device());
  if (!autograd::requiresGradient(a)) return made;
  const GradModeGuard recording(true);
  static const OperatorHandle kAdd("aten::add", "Tensor");
  made = kAdd(a, b);
  if (!std::ranges::equal(made.strides(), a.strides())) {
    breakGraph("a branch with a tensor whose elements overlap");
  }
  return made;
}

bool BranchRecording::isJoined(const Tensor& fake) const {
  return std::ranges::any_of(joined_,
                             [&](const Joined& each) { return each.fake.impl() == fake.impl(); });
}

std::unordered_set<const Storage*> BranchRecording::memoriesOf(const Tensor& fake) const {
  std::unordered_set<const Storage*> all{memoryOf(fake)};
  // Results of branches are younger than those of their sides.
  for (auto each = joined_.rbegin(); each != joined_.rend(); ++each) {
    if (all.count(memoryOf(each->fake)) != 0) all.insert(each->may_be.begin(), each->may_be.end());
  }
  return all;
}

void BranchRecording::check(const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& outputs) const {
  for (const Joined& each : joined_) {
    const std::unordered_set<const Storage*> own = memoriesOf(each.fake);
    const auto mayBe = [&](const Tensor& other) { return own.count(memoryOf(other)) != 0; };
    const auto sharesWith = [&](const Tensor& output) {
      return memoryOf(output) != memoryOf(each.fake) &&
             std::ranges::any_of(memoriesOf(output),
                                 [&](const Storage* memory) { return own.count(memory) != 0; });
    };
    const bool is_input = std::ranges::any_of(inputs, mayBe);
    const bool shown =
        autograd::requiresGradient(each.fake) &&
        std::ranges::any_of(
            outputs, [&](const Tensor& out) { return memoryOf(out) == memoryOf(each.fake); }) &&
        (is_input || std::ranges::any_of(outputs, sharesWith));
    const bool written = is_input && memoryOf(each.fake)->version() != 0;
    if (!shown && !written) continue;
    throw capture::GraphBreak{
        "a branch on the value of a tensor, behind which a tensor may be another one or its own",
        {},
        each.step};
  }
}

}  // namespace wick::python
