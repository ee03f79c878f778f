#include "runtime/fusion/form_groups.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>

#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/decompositions.h"
#include "codegen/loop/lowering.h"
#include "codegen/loop/pointwise.h"
#include "codegen/loop/views.h"
#include "codegen/loop/writes.h"
#include "core/error.h"
#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/depth.h"
#include "passes/node_traits.h"
#include "passes/write_groups.h"
#include "runtime/fusion/form_loop_graphs.h"
#include "runtime/fusion/outline.h"
#include "runtime/fusion/site_derivative.h"
#include "runtime/fusion/switches.h"
#include "runtime/fusion/walk.h"
#include "runtime/jit_mode.h"

namespace wick {

namespace {

enum class Extent { None, Groups, All };

Extent extentFromEnvironment() {
  const char* text = std::getenv("WICK_FUSION");
  std::string_view extent = text ? text : "groups";
  if (extent == "none") return Extent::None;
  if (extent == "groups") return Extent::Groups;
  if (extent == "all") return Extent::All;
  throw UsageError(fmt::format("WICK_FUSION: expected none, groups or all, got '{}'", extent));
}

std::optional<DType> knownDType(const Value* v) {
  return v->type()->kind() == TypeKind::Tensor
             ? static_cast<const TensorType&>(*v->type()).facts().dtype
             : std::nullopt;
}
// A cast to the dtype that a tensor has anyway gives the tensor itself, which no kernel returns.
FusionKind kindOfCast(const Node* node) {
  const auto from = knownDType(node->input(0));
  const auto to = node->input(1)->type()->kind() == TypeKind::Tensor ? knownDType(node->input(1))
                                                                     : loop::castOf(node, nullptr);
  return from && to && *from != *to ? FusionKind::Pointwise : FusionKind::View;
}

// Whether the operator's arithmetic on floats is long: machine code for the processor at hand gains
// more on it than handing tensors to a kernel costs.
bool isLong(const Node* node) {
  constexpr size_t kLong = 16;
  const auto call = loop::selectPointwise(node, [](const Value* v) {
    const bool is_tensor = v->type()->kind() == TypeKind::Tensor;
    return loop::OperandType{is_tensor, is_tensor ? DType::Float : DType::Double, is_tensor};
  });
  if (!call) return false;
  const ScalarDefinition& definition = *call->definition;
  if (!definition.record || !definition.entry(DType::Float).loop) return false;
  Expression recorded;
  std::array<ScalarExpr, kMaxScalarInputs> inputs;
  for (uint32_t i = 0; i < definition.num_inputs; ++i) {
    const bool is_mask = (definition.mask_inputs >> i & 1) != 0;
    inputs[i] = recorded.input(i, is_mask ? DType::Bool : DType::Float);
  }
  definition.record(ExprBuilder(recorded, DType::Float), inputs.data());
  return recorded.nodes().size() >= kLong;
}

// Whether the operator reads a tensor across the order in which another lies in memory: kernels
// turn blocks around, where the operator goes from line to line.
bool readsTurned(const Node* node) {
  static const std::set<std::string_view> kTurning = {"aten::t", "aten::transpose", "aten::permute",
                                                      "aten::swapaxes", "aten::swapdims"};
  size_t tensors = 0, turned = 0;
  for (const Value* v : node->inputs()) {
    tensors += v->type()->kind() == TypeKind::Tensor;
    turned += kTurning.count(v->node()->kind().qualString());
  }
  return tensors > 1 && turned > 0 && turned < tensors;
}

bool suffices(const Node* node) {
  return isLong(node) || readsTurned(node);
}

// Whether a node may hand on a tensor that it reads, or one that stands for it: whoever asks for
// the gradient of such a tensor must find it on the tape, complete.
bool handsOn(const Node* reader) {
  static const Symbol kCat = Symbol::aten("cat"), kStack = Symbol::aten("stack");
  static const Symbol kDetach = Symbol::aten("detach");
  if (reader->kind() == prim::FusionGroup) return false;
  // A loop that runs no time hands on what it was to carry.
  if (reader->kind() == prim::DifferentiableGraph) return isLoopGraph(reader);
  if (reader->kind() == prim::ListConstruct) {
    constexpr size_t kMaxUses = 16;  // of a list; each question looks at all of them
    const auto& uses = reader->output()->uses();
    return uses.size() > kMaxUses || std::ranges::any_of(uses, [](const Use& use) {
             return use.user->kind() != kCat && use.user->kind() != kStack;
           });
  }
  const Operator* op = reader->maybeOperator();
  if (!op || !reader->blocks().empty()) return true;
  if (reader->kind() == kDetach) return false;
  return op->makesViews() || op->has(kMayReturnArgument) || op->has(kSideEffects) ||
         op->mayWrite(*reader);
}

// Bit i of the attribute: somebody may write to what input i of the group is; of another, to output
// i.
void noteWrites(Block* block, const AliasDb& aliases) {
  const auto written = [&](std::span<Value* const> values) {
    uint64_t mask = 0;
    for (size_t i = 0; i < values.size() && i < 64; ++i) {
      mask |= static_cast<uint64_t>(aliases.hasWriters(values[i])) << i;
    }
    return IValue(static_cast<int64_t>(mask));
  };
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) noteWrites(inner, aliases);
    if (node->kind() != prim::DifferentiableGraph) continue;
    node->setAttribute(SiteDerivative::writtenInputs(), written(node->inputs()));
    node->setAttribute(SiteDerivative::writtenOutputs(), written(node->outputs()));
  }
}

// The same for graphs in a body where nobody knows who writes to its arguments and results.
void noteUnknownWrites(Block* block) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) noteUnknownWrites(inner);
    if (node->kind() != prim::DifferentiableGraph) continue;
    node->setAttribute(SiteDerivative::writtenInputs(), IValue(int64_t{-1}));
    node->setAttribute(SiteDerivative::writtenOutputs(), IValue(int64_t{-1}));
  }
}

// Whether the node gives the same whether its argument has a history or not.
bool readsNumbers(const Node* node) {
  static const std::unordered_set<Symbol> kKinds = [] {
    std::unordered_set<Symbol> kinds;
    for (const char* name : {"detach", "item", "Float", "Int", "Bool", "FloatImplicit", "size",
                             "dim", "numel", "argmax"}) {
      kinds.insert(Symbol::aten(name));
    }
    return kinds;
  }();
  return kKinds.count(node->kind()) != 0;
}

bool isNoneOrFalse(const Value* v) {
  const std::optional<IValue> c = constantOf(v);
  return c && (c->isNone() || (c->isBool() && !c->toBool()));
}

// What a call differentiates, when it is one value, and by what.
struct Call {
  Value* loss = nullptr;
  Node* outputs = nullptr;  // the list that holds it; null where there is none
  Node* inputs = nullptr;   // the list of what the gradients are of; null: of all leaves
};

std::optional<Call> readCall(const Node* node) {
  static const Symbol kGrad = Symbol::aten("grad"), kBackward = Symbol::aten("backward");
  const auto& inputs = node->inputs();
  if (node->kind() == kGrad && inputs.size() == 6) {
    Node* outputs = inputs[0]->node();
    Node* wanted = inputs[1]->node();
    const bool fits = outputs->kind() == prim::ListConstruct && outputs->inputs().size() == 1 &&
                      inputs[0]->uses().size() == 1 && wanted->kind() == prim::ListConstruct &&
                      isNoneOrFalse(inputs[2]) && isNoneOrFalse(inputs[3]) &&
                      isNoneOrFalse(inputs[4]) && constantOf(inputs[5]);
    return fits ? std::optional(Call{outputs->input(0), outputs, wanted}) : std::nullopt;
  }
  if (node->kind() == kBackward && inputs.size() == 4 &&
      inputs[0]->type()->kind() == TypeKind::Tensor && isNoneOrFalse(inputs[1]) &&
      isNoneOrFalse(inputs[2]) && isNoneOrFalse(inputs[3])) {
    return Call{inputs[0]};
  }
  return std::nullopt;
}

// Losses that are differentiated where they are computed: a prim::DifferentiableGraph and the call
// of torch.autograd.grad or backward that differentiates a result of it become one prim::JointGraph.
// Its attribute Subgraph holds both, and what the call needs; its results are those of the graph
// that others read, then those of the call. Nobody else may see that the tape knows the graph's
// results: these are read by the call, and by what asks for their numbers alone; the call wants no
// second walk and no gradients of gradients.
//
//   %loss = prim::DifferentiableGraph_0(%x, %w)
//   %outputs = prim::ListConstruct(%loss)
//   %inputs = prim::ListConstruct(%w)               %loss, %g = prim::JointGraph_0(%x, %w)
//   %g = aten::grad(%outputs, %inputs, …)       →   %n = aten::item(%loss)
//   %n = aten::item(%loss)
class JointGraphs {
 public:
  explicit JointGraphs(Graph& graph) : graph_(graph) {}

  void block(Block* b) {
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      for (Block* sub : node->blocks()) block(sub);
      if (const std::optional<Call> call = readCall(node)) join(node, *call);
    }
  }

 private:
  void join(Node* node, const Call& call) {
    Node* region = call.loss->node();
    if (region->kind() != prim::DifferentiableGraph || region->block() != node->block() ||
        isLoopGraph(region)) {
      return;
    }
    static const Symbol kDetach = Symbol::aten("detach");
    for (const Value* v : region->outputs()) {
      const Value* inside = region->subgraph(attr::Subgraph)->outputs()[v->offset()];
      if (inside->node()->kind() == kDetach) continue;  // has no history anyway
      for (const Use& use : v->uses()) {
        const bool differentiates = use.user == node || use.user == call.outputs;
        if (differentiates ? v != call.loss : !readsNumbers(use.user)) return;
      }
    }
    if (!aliases_) aliases_.emplace(graph_);
    if (call.inputs && aliases_->hasWriters(call.inputs->output())) return;
    if (!WICK_MAY_OPTIMIZE("joins {}", node->str())) return;
    // The list only holds the loss, so it may stand right behind it.
    if (call.outputs) call.outputs->moveAfter(region);
    Node* const behind = call.outputs ? call.outputs : region;
    if (!aliases_->moveAfterTopologicallyValid(node, behind)) return;
    // What the call waits for stands between them now; the region takes its place behind that.
    for (const Node* n = region->next(); n != node; n = n->next()) {
      if (n != call.outputs && !mayPass(region, n)) return;
    }
    // Written memory must be known by the node that writes to it.
    const bool writes = aliases_->writes(region) || aliases_->writes(node);
    replace(region, node, call);
    if (writes) aliases_.reset();
  }

  // Whether the region may run behind the node, which stands behind it.
  bool mayPass(const Node* region, const Node* node) const {
    if (aliases_->writes(node) || aliases_->hasOrderedEffects(node) || !node->blocks().empty()) {
      return false;
    }
    return std::ranges::none_of(node->inputs(),
                                [&](const Value* v) { return v->node() == region; });
  }

  void replace(Node* region, Node* node, const Call& call) {
    Outline joint(graph_, Symbol::prim("JointGraph"), region);
    joint.node->insertAfter(node);
    for (Value* v : region->inputs()) joint.read(v);
    joint.copy(region);
    for (const Node* list : {call.outputs, call.inputs}) {
      if (!list) continue;
      if (list == call.inputs) {
        for (Value* v : list->inputs()) joint.read(v);
      }
      joint.copy(list);
    }
    for (Value* v : node->inputs()) joint.read(v);
    joint.copy(node);
    for (Value* v : region->outputs()) {
      const bool others = std::ranges::any_of(
          v->uses(), [&](const Use& use) { return use.user != node && use.user != call.outputs; });
      if (others) handOut(joint, v);
    }
    for (Value* v : node->outputs()) handOut(joint, v);
    joint.node->setAttribute(attr::Subgraph, joint.body);
    for (Node* gone : {node, call.outputs, region}) {
      if (!gone) continue;
      aliases_->removeNode(gone);
      gone->destroy();
    }
  }

  void handOut(Outline& joint, Value* v) {
    joint.handOut(v);
    aliases_->addAlias(joint.node->outputs().back(), v);
  }

  Graph& graph_;
  std::optional<AliasDb> aliases_;
};

bool holdsGraphs(const Block* block) {
  return std::ranges::any_of(block->nodes(), [](const Node* node) {
    return node->kind() == prim::DifferentiableGraph ||
           std::ranges::any_of(node->blocks(), holdsGraphs);
  });
}

bool differentiatesGraphs() {
  static const bool on = isSwitchedOn("WICK_GRADIENT_GRAPHS", true);
  return on;
}

Extent extent() {
  static const Extent from_environment = extentFromEnvironment();
  return from_environment;
}
// Whether the operator is the largest or smallest of all elements, which decides by their places about the sign of a zero.
bool choosesZero(const Node* node) {
  static const Symbol kMax = Symbol::aten("max"), kMin = Symbol::aten("min");
  return (node->kind() == kMax || node->kind() == kMin) && node->inputs().size() == 1;
}

bool formsGroups() {
  return extent() != Extent::None && jitMode() != JitMode::Off && loop::kernelCompiler();
}

}  // namespace

FusionKind kernelKindOf(const Node* node) {
  if (loop::isCast(node)) return kindOfCast(node);
  if (loop::isComposite(node)) {
    if (loop::updatesArguments(node)) return FusionKind::None;
    return loop::takesSeveralKernels(node) ? FusionKind::Composite : FusionKind::Reduction;
  }
  if (loop::isView(node)) return FusionKind::View;
  if (loop::isJoin(node)) return FusionKind::Join;
  if (loop::isIndexed(node)) return FusionKind::Indexed;
  if (loop::isPointwise(node)) return FusionKind::Pointwise;
  if (loop::isReduction(node)) return FusionKind::Reduction;
  return FusionKind::None;
}

void formKernelGroups(Graph& graph) {
  if (!formsGroups()) return;
  FusionOptions options;
  options.kind_of = [](const Node* node) {
    return choosesZero(node) ? FusionKind::None : kernelKindOf(node);
  };
  options.suffices = suffices;
  // Groups with more would run as operators.
  options.max_values = kMaxAccesses;
  if (extent() == Extent::All) options.min_computing_nodes = 1;
  formFusionGroups(graph, options);
  WriteGroupOptions writes;
  writes.computes = loop::isPointwise;
  writes.writes = loop::isPointwiseWrite;
  writes.updates = [](const Node* node) {
    return loop::isComposite(node) && loop::updatesArguments(node);
  };
  formWriteGroups(graph, writes);
}

void formDifferentiableGraphs(Graph& graph) {
  const SiteDerivative::Factory* factory = SiteDerivative::factory();
  if (!formsGroups() || !factory || !differentiatesGraphs()) return;
  FusionOptions options;
  options.group_kind = prim::DifferentiableGraph;
  options.kind_of = [&](const Node* node) {
    const FusionKind kind = kernelKindOf(node);
    if (kind == FusionKind::Pointwise && !loop::isCast(node)) {
      return factory->differentiable(node) ? kind : FusionKind::None;
    }
    if (!factory->joins_regions(node)) return FusionKind::None;
    if (node->kind() == prim::ListUnpack) return FusionKind::View;
    const Operator& op = *node->maybeOperator();
    const bool view = op.makesViews() || op.has(kMayReturnArgument);
    return view ? FusionKind::View : FusionKind::Reduction;
  };
  // So that the arguments can be told apart by bits, and what is saved is not held too long.
  options.max_values = 48;
  options.max_nodes = 100;
  options.suffices = isLong;
  options.exposes = handsOn;
  options.may_draw = true;
  // Each combination of conditions that a program meets has plans of its own.
  options.max_branches = 3;
  formLoopGraphs(graph, options);
  formFusionGroups(graph, options);
  if (!holdsGraphs(graph.block())) return;
  noteWrites(graph.block(), AliasDb(graph));
  // Where a loop is left to the tape, its body has graphs.
  forEachLoopGraph(graph.block(), [&](Node* loop) {
    Graph& body = *loop->subgraph(attr::Subgraph);
    formFusionGroups(body, options);
    noteUnknownWrites(body.block());
  });
  withStackFor(graph, [&] { JointGraphs(graph).block(graph.block()); });
}

}  // namespace wick
