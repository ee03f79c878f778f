#include <cstdio>

#include "core/grad_mode.h"
#include "passes/pipeline.h"
#include "runtime/threads.h"
#include "tools/terminal.h"
#include "tools/verbs.h"

namespace wick::cli {

Arguments argumentsFor(const Options& options, const Program& program, GraphFunction& function) {
  if (!options.inputs_file.empty()) return argumentsFromFile(options.inputs_file);
  return argumentsFromInputs(options.inputs, function.schema(), program.numBound(),
                             options.seed.value_or(0));
}

void applyMode(const Options& options, const Program& program) {
  if (!program.isArchive()) {
    if (options.eval) throw CommandLineError("--eval is for archives; a script has no module");
    return;
  }
  if (options.eval) {
    program.module().eval();
  } else if (program.module().isTraining()) {
    std::fflush(stdout);
    std::fputs(paint(stderr, Paint::Dim,
                     "hint: the module is in training mode, in which dropout and batch "
                     "normalization work otherwise; --eval leaves it\n")
                   .c_str(),
               stderr);
  }
}

void applySettings(const Options& options) {
  if (options.seed) defaultGenerator().seed(*options.seed);
  if (options.threads > 0) setNumThreads(options.threads);
  setGradEnabled(options.grad);
  if (options.optimize.empty()) return;
  setOptimizationLevel(options.optimize == "0"   ? OptimizationLevel::None
                       : options.optimize == "1" ? OptimizationLevel::Default
                                                 : OptimizationLevel::Stress);
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  WICK_CHECK(written && std::fflush(stdout) == 0, "standard output cannot be written");
}

}  // namespace wick::cli
