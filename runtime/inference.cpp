#include "runtime/inference.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/device_backend.h"
#include "core/optimization_limit.h"
#include "core/parallel.h"
#include "ir/alias_db.h"
#include "ir/shape_facts.h"
#include "passes/autocast.h"
#include "passes/common_subexpressions.h"
#include "passes/constant_pooling.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/eval_mode.h"
#include "passes/fold_scales.h"
#include "passes/form_linears.h"
#include "passes/freeze.h"
#include "passes/fuse_epilogues.h"
#include "passes/inline_calls.h"
#include "passes/join_linears.h"
#include "passes/keep_row_major.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/raised_conditions.h"
#include "passes/rank_versions.h"
#include "passes/remove_mutation.h"
#include "passes/restore_operators.h"
#include "passes/stride_uses.h"
#include "passes/unroll_loops.h"
#include "runtime/call.h"
#include "runtime/constants_on_cpu.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/hooked_call.h"
#include "runtime/prepare_layers.h"
#include "runtime/threads.h"

namespace wick {

namespace {

bool isProduct(const Node* n) {
  static const Symbol kMatmul = Symbol::aten("matmul"), kBmm = Symbol::aten("bmm");
  return (n->kind() == kMatmul || n->kind() == kBmm) && n->inputs().size() == 2;
}

// A number, or a constant tensor of one.
std::optional<double> numberOf(const Value* v) {
  if (const std::optional<double> number = floatOf(v)) return number;
  const std::optional<IValue> c = constantOf(v);
  if (!c || !c->isTensor() || !c->toTensor().defined() || c->toTensor().dim() != 0) {
    return std::nullopt;
  }
  const Tensor t = moveTo(c->toTensor(), Device());
  if (!isFloating(t.dtype()) && !isIntegral(t.dtype(), false)) return std::nullopt;
  return t.to(DType::Double).item<double>();
}

// Whether it is a tensor without dimensions that was made of numbers: traces compute with sizes so.
bool isNumberTensor(const Value* v, int depth = 0) {
  static const Symbol kComputed[] = {
      Symbol::aten("pow"),  Symbol::aten("floor_divide"), Symbol::aten("mul"),
      Symbol::aten("div"),  Symbol::aten("add"),          Symbol::aten("sub"),
      Symbol::aten("sqrt"), Symbol::aten("rsqrt"),        Symbol::aten("reciprocal")};
  const Node* n = v->node();
  static const Symbol kNumToTensor = Symbol::prim("NumToTensor");
  if (n->kind() == kNumToTensor || floatOf(v) || numberOf(v)) return true;
  if (depth > 8 || std::ranges::find(kComputed, n->kind()) == std::end(kComputed)) return false;
  return std::ranges::all_of(n->inputs(), [&](const Value* input) {
    return input->type()->kind() != TypeKind::Tensor || isNumberTensor(input, depth + 1);
  });
}

// Whether the tensor has two dimensions or more, as far as one can see.
bool hasRows(const Value* v) {
  static const Symbol kTranspose = Symbol::aten("transpose"), kPermute = Symbol::aten("permute"),
                      kView = Symbol::aten("view"), kReshape = Symbol::aten("reshape");
  const TensorFacts* facts = factsOf(v);
  if (facts && facts->dim) return *facts->dim >= 2;
  const Node* n = v->node();
  if (n->kind() == kTranspose) {
    const std::optional<int64_t> a = intOf(n->input(1)), b = intOf(n->input(2));
    return a && b && *a != *b && std::min(*a, *b) != -1 - std::max(*a, *b);
  }
  if (n->kind() == kPermute || n->kind() == kView || n->kind() == kReshape) {
    const auto sizes = sizeArguments(n->input(1));
    return sizes && sizes->size() >= 2;
  }
  return false;
}

// The parts of one, from its last product.
struct Written {
  std::vector<Node*> nodes;  // in their order
  Value* q = nullptr;
  Value* turned_k = nullptr;
  Value* v = nullptr;
  Value* mask = nullptr;
  double scale = 1;
  // A scale that is computed: what `q` is multiplied by, or divided.
  Value* factor = nullptr;
  Symbol applied;
};

class Finder {
 public:
  explicit Finder(Graph& graph) : aliases_(graph) {}

  std::optional<Written> at(Node* last) const {
    static const Symbol kSoftmax = Symbol::aten("softmax"), kMul = Symbol::aten("mul"),
                        kDiv = Symbol::aten("div");
    if (!isProduct(last) || !toleratesLongerRows(last->output())) return std::nullopt;
    Written found;
    found.v = last->input(1);
    Node* n = last->input(0)->node();
    if (n->kind() != kSoftmax || n->inputs().size() != 3 || !isNoneConstant(n->input(2)) ||
        intOf(n->input(1)) != -1) {
      return std::nullopt;
    }
    found.nodes = {last, n};
    n = n->input(0)->node();
    if (n->kind() == aten::add && n->inputs().size() == 3 && floatOf(n->input(2)) == 1.0) {
      // A mask of numbers: booleans would be added as 0 and 1.
      const size_t scores = isScores(n->input(0)) ? 0 : 1;
      const TensorFacts* mask = factsOf(n->input(1 - scores));
      if (!mask || !mask->dtype || !isFloating(*mask->dtype)) return std::nullopt;
      found.mask = n->input(1 - scores);
      found.nodes.push_back(n);
      n = n->input(scores)->node();
    }
    if ((n->kind() == kMul || n->kind() == kDiv) && n->inputs().size() == 2) {
      const size_t scores = n->kind() == kMul && isProduct(n->input(1)->node()) ? 1 : 0;
      Value* const by = n->input(1 - scores);
      const std::optional<double> number = numberOf(by);
      if (number && (n->kind() == kMul || *number != 0)) {
        found.scale = n->kind() == kMul ? *number : 1 / *number;
      } else if (!number && by->type()->kind() == TypeKind::Tensor && isNumberTensor(by)) {
        found.factor = by;
        found.applied = n->kind();
      } else {
        return std::nullopt;
      }
      found.nodes.push_back(n);
      n = n->input(scores)->node();
    }
    if (!isProduct(n)) return std::nullopt;
    found.nodes.push_back(n);
    std::ranges::reverse(found.nodes);
    found.q = n->input(0);
    found.turned_k = n->input(1);
    return fits(found) ? std::optional(std::move(found)) : std::nullopt;
  }

 private:
  static bool isScores(const Value* v) {
    const Node* n = v->node();
    if (isProduct(n)) return true;
    return (n->kind() == Symbol::aten("mul") || n->kind() == Symbol::aten("div")) &&
           n->inputs().size() == 2 &&
           (isProduct(n->input(0)->node()) || isProduct(n->input(1)->node()));
  }

  bool fits(const Written& found) const {
    if (!hasRows(found.q) || !hasRows(found.turned_k) || !hasRows(found.v)) return false;
    for (const Node* n : found.nodes) {
      const bool last = n == found.nodes.back();
      if (n->block() != found.nodes[0]->block() || aliases_.writes(n)) return false;
      if (!last && (n->output()->uses().size() != 1 || aliases_.hasWriters(n->output()))) {
        return false;
      }
    }
    const Value* const read[] = {found.q, found.turned_k, found.v};
    return std::ranges::none_of(read, [&](const Value* v) { return aliases_.hasWriters(v); }) &&
           (!found.mask || !aliases_.hasWriters(found.mask));
  }

  AliasDb aliases_;
};

void replace(Graph& graph, const Written& found) {
  Node* const last = found.nodes.back();
  InsertPointGuard guard(last);
  RangeGuard range(&graph, last->range());
  const auto constant = [&](IValue value) { return graph.insertConstant(std::move(value)); };
  Node* k = graph.insertNode(
      graph.create(Symbol::aten("transpose"),
                   {found.turned_k, constant(IValue(int64_t{-2})), constant(IValue(int64_t{-1}))}));
  Value* q = found.q;
  if (found.factor) q = graph.insertNode(graph.create(found.applied, {q, found.factor}))->output();
  Value* const mask = found.mask ? found.mask : graph.insertNode(graph.createNone())->output();
  Value* const no = constant(IValue(false));
  Node* made = graph.insertNode(graph.create(Symbol::aten("scaled_dot_product_attention"),
                                             {q, k->output(), found.v, mask, constant(IValue(0.0)),
                                              no, constant(IValue(found.scale)), no}));
  last->output()->replaceAllUsesWith(made->output());
  for (auto n = found.nodes.rbegin(); n != found.nodes.rend(); ++n) (*n)->destroy();
}

bool holdsFloatsThere(const Block* block) {
  return std::ranges::any_of(block->nodes(), [](const Node* n) {
    if (std::ranges::any_of(n->blocks(), holdsFloatsThere)) return true;
    if (n->kind() != prim::Constant) return false;
    const std::optional<IValue> c = constantOf(n->output());
    if (!c || !c->isTensor() || !c->toTensor().defined()) return false;
    const Tensor& t = c->toTensor();
    return t.device().isCuda() && (isReducedFloat(t.dtype()) || t.dtype() == DType::Float);
  });
}

void productsOf(Block* block, std::vector<Node*>& found) {
  for (Node* n : block->nodes()) {
    for (Block* inner : n->blocks()) productsOf(inner, found);
    if (isProduct(n)) found.push_back(n);
  }
}

// Attention that is written as products becomes the operator, in graphs with constants on CUDA of the
// dtypes for which that is one kernel there (runtime/cuda/attention.cpp):
//
//   %s : Tensor = aten::matmul(%q, %kt)
//   %x : Tensor = aten::mul(%s, %scale)
//   %y : Tensor = aten::add(%x, %mask, %one)
//   %z : Tensor = aten::softmax(%y, %-1, %none)
//   %w : Tensor = aten::matmul(%z, %v)
//
//   %k : Tensor = aten::transpose(%kt, %-2, %-1)
//   %w : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %mask, %0., %false, %scale, %false)
//
// with or without scale and mask. `q` is multiplied by a scale that is computed, as traces do it. Scores
// of reduced floats are not rounded between the steps then. The result may lie otherwise in memory, so
// whoever reads it must not mind. Where the dtypes of arguments turn out to be others, the operator
// computes the same products. Returns how many there were.
size_t formAttention(Graph& graph) {
  if (!holdsFloatsThere(graph.block())) return 0;
  std::vector<Node*> products;
  productsOf(graph.block(), products);
  const Finder finder(graph);
  std::vector<Written> all;
  for (Node* n : products) {
    if (std::optional<Written> found = finder.at(n)) all.push_back(*std::move(found));
  }
  // From behind, so that what others read is still there. The product that one ends in may be the one
  // that another begins with.
  size_t formed = 0;
  std::unordered_set<const Node*> gone;
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    const auto isGone = [&](const Node* n) { return gone.contains(n); };
    if (std::ranges::any_of(found->nodes, isGone) ||
        !WICK_MAY_OPTIMIZE("attention in {}", found->nodes.back()->str())) {
      continue;
    }
    gone.insert(found->nodes.begin(), found->nodes.end());
    replace(graph, *found);
    ++formed;
  }
  return formed;
}

}  // namespace

void simplifyForInference(Graph& graph, const ObjectRef& self, bool for_any_rank) {
  inlineCalls(graph);
  insertAutocasts(graph);
  freezeModule(graph, self);
  ConstantsOnCpu constants(graph);
  removeDropout(graph);
  lowerTuples(graph);
  removeListMutation(graph);
  removeTensorMutation(graph);
  unrollLoops(graph);
  // The checks of sizes that layers make; all but the first follow from each other.
  eraseShapeComputations(graph);
  eliminateCommonSubexpressions(graph);
  useRaisedConditions(graph);
  propagateConstants(graph);
  simplifyPeepholes(graph);
  eliminateDeadCode(graph);
  formLinears(graph);
  foldScales(graph);
  if (for_any_rank && splitByRank(graph)) foldScales(graph);
  joinLinears(graph);
  constants.giveBack();
}

std::shared_ptr<GraphFunction> optimizeForInference(const ObjectRef& self, GraphFunction& method,
                                                    bool for_any_rank) {
  method.ensureDefined();
  const FunctionSchema& schema = method.schema();
  checkSelf(self, method);
  std::shared_ptr<Graph> graph = method.graph()->copy();
  simplifyForInference(*graph, self, for_any_rank);
  formAttention(*graph);
  const bool ordered = areLayersChannelsLast(*graph);
  fuseEpilogues(*graph);
  if (!ordered) keepRowMajor(*graph);
  poolConstants(*graph);
  eliminateDeadCode(*graph);
  ensureTeam(numThreads());
  prepareLayers(*graph);
  markRewritten(*graph);
  // The graph may call functions of the module's compilation unit, whose owner the object holds.
  std::shared_ptr<GraphFunction> frozen(new GraphFunction(method.qualifiedName(), std::move(graph)),
                                        [self](GraphFunction* f) { delete f; });
  std::vector<Argument> arguments(schema.arguments().begin() + 1, schema.arguments().end());
  frozen->setSchema(
      FunctionSchema(schema.name(), schema.overload(), std::move(arguments), schema.returns()));
  GraphExecutor::of(*frozen).prepare();
  return frozen;
}

IValue PreparedMethod::operator()(std::vector<IValue> arguments, Kwargs kwargs,
                                  const RunOptions& options) const {
  if (!function_) throw UsageError("PreparedMethod: the handle holds no function");
  // Runs and their forks hold the function, and by it the module's code.
  const std::shared_ptr<void> owner = function_;
  return callFunction(*function_, std::move(arguments), std::move(kwargs), options, &owner);
}

PreparedMethod optimizeForInference(const Module& module, const std::string& method) {
  GraphFunction& function = module.method(method);
  if (module.isTraining()) {
    throw UsageError("optimizeForInference: the module is in training mode; call eval() first");
  }
  if (method == "forward" && module.hasHooks()) {
    return PreparedMethod(optimizeForInference(module.object(), *functionWithHooks(module)));
  }
  return PreparedMethod(optimizeForInference(module.object(), function));
}

}  // namespace wick
