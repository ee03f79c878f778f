#include "runtime/fusion/form_groups.h"

#include <cstdlib>
#include <string_view>

#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/lowering.h"
#include "codegen/loop/pointwise.h"
#include "codegen/loop/views.h"
#include "core/error.h"
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

}  // namespace

FusionKind kernelKindOf(const Node* node) {
  if (loop::isView(node)) return FusionKind::View;
  if (loop::isJoin(node)) return FusionKind::Join;
  if (loop::isIndexed(node)) return FusionKind::Indexed;
  if (loop::isPointwise(node)) return FusionKind::Pointwise;
  if (loop::isReduction(node)) return FusionKind::Reduction;
  return FusionKind::None;
}

void formKernelGroups(Graph& graph) {
  static const Extent extent = extentFromEnvironment();
  if (extent == Extent::None || jitMode() == JitMode::Off || !loop::kernelCompiler()) return;
  FusionOptions options;
  options.kind_of = kernelKindOf;
  if (extent == Extent::All) options.min_computing_nodes = 1;
  formFusionGroups(graph, options);
}

}  // namespace wick
