#include "autograd/region_graphs.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/formula_graph.h"
#include "autograd/region_composites.h"
#include "autograd/region_plan.h"
#include "ir/shape_facts.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/node_traits.h"
#include "passes/peephole.h"
#include "passes/propagate_types.h"
#include "passes/remove_mutation.h"
#include "passes/unroll_loops.h"

namespace wick::autograd {

namespace {

// Compute new tensors by sums and products over their arguments, or pick rows; none draws random
// numbers. Not here are batch normalization, which writes to its statistics, and group
// normalization, whose own kernels are faster on images than those of groups.
bool isReductionOrProduct(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds = atenSymbols(
      {"sum",        "mean",           "var",         "std",
       "logsumexp",  "softmax",        "log_softmax", "layer_norm",
       "linear",     "matmul",         "mm",          "bmm",
       "addmm",      "baddbmm",        "embedding",   "mse_loss",
       "l1_loss",    "smooth_l1_loss", "huber_loss",  "binary_cross_entropy_with_logits",
       "nll_loss_nd"});
  return kKinds.count(kind) != 0;
}

bool isViewNode(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds =
      atenSymbols({"view", "reshape", "transpose", "permute", "t", "unsqueeze", "squeeze",
                   "flatten", "expand", "select", "slice", "narrow"});
  return kKinds.count(kind) != 0;
}

// Give lists of views.
bool isSplit(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds =
      atenSymbols({"chunk", "split", "split_with_sizes", "unbind"});
  return kKinds.count(kind) != 0;
}

// Make one tensor of a list of them.
bool isJoin(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds = atenSymbols({"cat", "stack"});
  return kKinds.count(kind) != 0;
}

}  // namespace

bool joinsRegions(const wick::Node* node) {
  // The reader may stand in a graph already.
  const auto unpacks = [](const Value* list) {
    if (list->uses().size() != 1) return false;
    const Symbol reader = list->uses()[0].user->kind();
    return reader == prim::ListUnpack || reader == prim::DifferentiableGraph;
  };
  if (node->kind() == prim::ListUnpack) {
    const Value* list = node->input(0);
    return isTensorList(list) && isSplit(list->node()->kind()) && unpacks(list);
  }
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || op->mayWrite(*node) ||
      node->outputs().size() != 1 || node->inputs().size() != op->schema().arguments().size()) {
    return false;
  }
  const bool composite = compositeGraph(*op) != nullptr;
  if (isSplit(node->kind())) {
    if (!isTensorList(node->output()) || !unpacks(node->output())) return false;
  } else if (!isTensor(node->output()) || (!composite && !isReductionOrProduct(node->kind()) &&
                                           !isViewNode(node->kind()) && !isJoin(node->kind()))) {
    return false;
  }
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    const Value* v = node->input(i);
    if (isTensorList(v) && (!isJoin(node->kind()) || v->node()->kind() != prim::ListConstruct)) {
      return false;
    }
    // What may be None at times, and results of another dtype than the arguments.
    if (v->type()->kind() == TypeKind::Optional) return false;
    if (op->schema().arguments()[i].name == "dtype" && v->type()->kind() != TypeKind::None) {
      return false;
    }
  }
  if (composite) return compositeJoins(*node);
  const Rule& rule = ruleOf(*op);
  if (rule.kind() != Rule::Kind::Formula || !rule.hasGradient(0)) return false;
  const uint64_t covered = coveredInputs(rule, node);
  return covered != 0 && gradientsIn(rule.gradients(covered), /*lists=*/true) != nullptr;
}

bool isTensor(const Value* v) {
  return v->type()->kind() == TypeKind::Tensor;
}
bool isConstant(const Value* v) {
  return v->node()->kind() == prim::Constant;
}

bool isView(const wick::Node* node) {
  return isViewNode(node->kind()) || isSplit(node->kind()) || node->kind() == prim::ListUnpack;
}

bool isPointwise(const wick::Node* node) {
  const Operator* op = node->maybeOperator();
  return op && op->record().scalar != nullptr;
}

bool isCheap(const wick::Node* node) {
  return node->kind() == prim::ListConstruct || node->kind() == prim::ListUnpack ||
         isSplit(node->kind()) || isViewNode(node->kind()) || isPointwise(node);
}

std::optional<KnownSizes> knownSizes(const Value* v) {
  if (!isTensor(v)) return std::nullopt;
  const TensorFacts& facts = *factsOf(v);
  if (!facts.sizes || !facts.dtype) return std::nullopt;
  KnownSizes out;
  for (const auto& size : *facts.sizes) {
    if (!size) return std::nullopt;
    out.push_back(*size);
  }
  return out;
}

DType dtypeOf(const Value* v) {
  return *factsOf(v)->dtype;
}

TypePtr tensorType(DType dtype, const KnownSizes& sizes) {
  TensorType::Facts facts;
  facts.dtype = dtype;
  facts.device = Device();
  facts.dim = sizes.size();
  facts.sizes.emplace(sizes.begin(), sizes.end());
  return TensorType::create(std::move(facts));
}

uint64_t wantedInputs(const wick::Node* node,
                      const std::unordered_map<const Value*, bool>& needed) {
  uint64_t wanted = 0;
  for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
    const Value* v = node->input(i);
    if ((isTensor(v) || isTensorList(v)) && needed.count(v) != 0) wanted |= uint64_t{1} << i;
  }
  return wanted;
}

Value* insertTensor(Graph& graph, const char* kind, std::initializer_list<Value*> inputs) {
  wick::Node* node = graph.insertNode(graph.create(Symbol::aten(kind), inputs));
  node->output()->setType(types::Tensor());
  return node->output();
}

void accumulateGradient(Graph& graph, Value*& sum, Value* gradient) {
  Value* one = sum ? graph.insertConstant(IValue(int64_t{1})) : nullptr;
  sum = sum ? insertTensor(graph, "add", {sum, gradient, one}) : gradient;
}

namespace {

// Gradients that have their argument's sizes need no sum, and sums over known dimensions are
// reductions that kernels compute beside others. True when anything changed.
bool simplifySums(Graph& graph) {
  static const Symbol kSumToSize = Symbol::aten("sum_to_size");
  SymbolicSizes symbols(lowestSymbol(graph));
  propagateTypes(graph, symbols);
  const SymbolicSizes::Scope scope(symbols);
  bool changed = false;
  std::vector<wick::Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (wick::Node* node : nodes) {
    if (node->kind() != kSumToSize) continue;
    const std::optional<KnownSizes> from = knownSizes(node->input(0));
    const std::optional<Sizes> list = sizeList(node->input(1));
    if (!from || !list || std::ranges::count(*list, Size()) > 0) continue;
    KnownSizes to;
    for (const Size s : *list) to.push_back(*s);
    if (*from == to) {
      node->output()->replaceAllUsesWith(node->input(0));
      node->destroy();
      changed = true;
      continue;
    }
    if (from->size() < to.size()) continue;
    const size_t more = from->size() - to.size();
    KnownSizes dims;
    bool known = true;
    for (size_t d = 0; d < from->size(); ++d) {
      if (d >= more && to[d - more] == (*from)[d]) continue;
      known = known && (d < more || to[d - more] == 1);
      dims.push_back(static_cast<int64_t>(d));
    }
    if (!known) continue;
    InsertPointGuard guard(node);
    const bool keeps = dims.size() != more;
    Value* sum =
        insertTensor(graph, "sum",
                     {node->input(0),
                      graph.insertConstant(IValue(makeIntList(dims)),
                                           std::make_shared<const ListType>(types::Int())),
                      graph.insertConstant(IValue(keeps)), graph.insertConstant(IValue())});
    if (keeps && more > 0) sum = insertTensor(graph, "reshape", {sum, node->input(1)});
    node->output()->replaceAllUsesWith(sum);
    node->destroy();
    changed = true;
  }
  return changed;
}

}  // namespace

void foldShapes(Graph& graph) {
  constexpr int kMaxRounds = 6;
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    eliminateDeadCode(graph);
    changed = propagateConstants(graph);
    changed |= simplifyPeepholes(graph);
    changed |= unrollLoops(graph);
    changed |= removeListMutation(graph);
    changed |= eraseShapeComputations(graph);
    changed |= simplifySums(graph);
  }
  propagateConstants(graph);
  eliminateDeadCode(graph);
}

}  // namespace wick::autograd
