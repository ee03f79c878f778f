#include "runtime/fusion/form_groups.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string_view>

#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/decompositions.h"
#include "codegen/loop/lowering.h"
#include "codegen/loop/pointwise.h"
#include "codegen/loop/views.h"
#include "codegen/loop/writes.h"
#include "core/error.h"
#include "ir/alias_db.h"
#include "passes/write_groups.h"
#include "runtime/fusion/site_derivative.h"
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
  static const std::set<std::string_view> kJoins = {"aten::cat", "aten::stack"};
  if (reader->kind() == prim::FusionGroup || reader->kind() == prim::DifferentiableGraph) {
    return false;
  }
  if (reader->kind() == prim::ListConstruct) {
    return std::ranges::any_of(reader->output()->uses(), [](const Use& use) {
      return kJoins.count(use.user->kind().qualString()) == 0;
    });
  }
  const Operator* op = reader->maybeOperator();
  if (!op || !reader->blocks().empty()) return true;
  if (reader->kind() == Symbol::aten("detach")) return false;
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

bool holdsGraphs(const Block* block) {
  return std::ranges::any_of(block->nodes(), [](const Node* node) {
    return node->kind() == prim::DifferentiableGraph ||
           std::ranges::any_of(node->blocks(), holdsGraphs);
  });
}

bool differentiatesGraphs() {
  static const bool on = [] {
    const char* text = std::getenv("WICK_GRADIENT_GRAPHS");
    const std::string_view value = text ? text : "on";
    if (value != "on" && value != "off") {
      throw UsageError(fmt::format("WICK_GRADIENT_GRAPHS: expected on or off, got '{}'", value));
    }
    return value == "on";
  }();
  return on;
}

Extent extent() {
  static const Extent from_environment = extentFromEnvironment();
  return from_environment;
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
  options.kind_of = kernelKindOf;
  options.suffices = suffices;
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
    const Operator& op = *node->maybeOperator();
    const bool view = op.makesViews() || op.has(kMayReturnArgument);
    return view ? FusionKind::View : FusionKind::Reduction;
  };
  // So that the arguments can be told apart by bits, and what is saved is not held too long.
  options.max_values = 48;
  options.max_nodes = 100;
  options.suffices = isLong;
  options.exposes = handsOn;
  formFusionGroups(graph, options);
  if (holdsGraphs(graph.block())) noteWrites(graph.block(), AliasDb(graph));
}

}  // namespace wick
