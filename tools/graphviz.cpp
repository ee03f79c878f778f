#include "tools/graphviz.h"

#include "core/output_file.h"
#include "tools/child_program.h"
#include "tools/verbs.h"

namespace wick::cli {

std::string renderSvg(const std::string& dot_text) {
  std::optional<std::string> svg = outputOf("--svg", {"dot", "-Tsvg"}, dot_text);
  if (svg) return *std::move(svg);
  throw UsageError(
      "--svg needs Graphviz's program dot, which is not installed; --dot prints its input");
}

void writeDrawing(const std::string& path, const std::string& dot, const std::string& text) {
  if (path == "-") return print(text);
  writeFile(path, path.ends_with(".svg") ? renderSvg(dot) : path.ends_with(".dot") ? dot : text);
}

}  // namespace wick::cli
