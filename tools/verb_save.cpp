#include "core/output_file.h"
#include "runtime/frozen_module.h"
#include "runtime/module_builder.h"
#include "serialization/export.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// A module with a method for each function of the script. `forward` is the one that runs when none
// is named.
Module moduleOf(const Options& options, const LoadedFile& program) {
  ModuleBuilder builder("Script");
  bool has_forward = false;
  const std::vector<GraphFunction*> functions = program.functions({});
  for (GraphFunction* function : functions) {
    builder.defineCall(function->name(), *function);
    has_forward = has_forward || function->name() == "forward";
  }
  if (!has_forward && !functions.empty()) {
    GraphFunction* main = functions.size() == 1 ? functions[0] : nullptr;
    for (GraphFunction* function : functions) {
      if (function->name() == "main") main = function;
    }
    if (main != nullptr) builder.defineCall("forward", *main);
  }
  if (functions.empty()) throw UsageError(options.file + ": there are no functions to save");
  builder.keep(std::const_pointer_cast<CompilationUnit>(program.unit().shared_from_this()));
  return builder.build();
}

}  // namespace

void saveVerb(const Options& options) {
  // Whether the file can be written shows before the work.
  { const OutputFile probe(options.output_file); }
  const LoadedFile program = LoadedFile::load(options.file);
  Module module = program.isArchive() ? program.module() : moduleOf(options, program);
  if (!options.weights.empty()) {
    if (!program.isArchive())
      throw CommandLineError("--weights is for archives; a script has no module");
    loadWeights(program, options.weights);
  }
  if (!options.dtype.empty()) module.to(dtypeOf(options.dtype));
  if (options.freeze || options.fold) {
    module.eval();
    FreezeOptions freeze;
    freeze.optimize = options.fold;
    if (!options.method.empty()) freeze.methods = {options.method};
    module = wick::freeze(module, freeze);
  } else if (!options.method.empty()) {
    throw CommandLineError("--method: only a frozen module leaves methods out: --freeze");
  }
  saveModule(module, options.output_file);
}

}  // namespace wick::cli
