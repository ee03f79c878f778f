#include "tools/graphviz.h"

#include "core/error.h"
#include "tools/child_program.h"

namespace wick::cli {

std::string renderSvg(const std::string& dot_text) {
  std::optional<std::string> svg = outputOf("--svg", {"dot", "-Tsvg"}, dot_text);
  if (svg) return *std::move(svg);
  throw UsageError(
      "--svg needs Graphviz's program dot, which is not installed; --dot prints its input");
}

}  // namespace wick::cli
