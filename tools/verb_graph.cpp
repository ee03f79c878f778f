#include <fmt/format.h>

#include "ir/printer.h"
#include "tools/verbs.h"

namespace wick::cli {

void graphVerb(const Options& options) {
  const Program program = Program::load(options.file);
  const std::vector<GraphFunction*> functions = program.functions(options);
  if (options.dot && functions.size() != 1) {
    throw CommandLineError("--dot draws one graph: name it with --method or --function");
  }
  std::string text;
  for (GraphFunction* function : functions) {
    function->ensureDefined();
    if (options.dot) {
      text += printDot(*function->graph());
    } else {
      if (functions.size() > 1) text += fmt::format("# {}\n", function->qualifiedName());
      text += printGraph(*function->graph(), {.source_locations = true});
    }
  }
  print(text);
}

}  // namespace wick::cli
