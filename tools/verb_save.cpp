#include "core/output_file.h"
#include "runtime/call.h"
#include "runtime/frozen_module.h"
#include "runtime/module_builder.h"
#include "serialization/export.h"
#include "serialization/exported/write.h"
#include "tools/inputs.h"
#include "tools/named_sizes.h"
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

void saveAsExported(const Module& module, const Options& options) {
  const std::vector<aot::Symbol> symbols = namedSizes(options.inputs, options.ranges, {});
  checkNames(options.inputs, options.ranges, {});
  ExportedOptions exported;
  if (!options.method.empty()) exported.method = options.method;
  for (const aot::Symbol& symbol : symbols) {
    exported.sizes.push_back({symbol.name, symbol.minimum, symbol.maximum, symbol.step});
  }
  const FunctionSchema& schema = module.method(exported.method).schema();
  std::vector<ExportExample> examples;
  for (int64_t e = 0; e < (symbols.empty() ? 1 : kExportExamples); ++e) {
    ExportExample example;
    example.sizes = exampleSizes(exported.sizes, e);
    Arguments arguments =
        options.inputs_file.empty()
            ? argumentsFromInputs(withSizes(options.inputs, symbols, example.sizes), schema, 1,
                                  options.seed.value_or(0))
            : argumentsFromFile(options.inputs_file);
    // Up to the last one that is given.
    size_t given = arguments.positional.size();
    for (const auto& [name, value] : arguments.named) {
      const std::optional<size_t> index = schema.argumentIndex(name);
      if (index) given = std::max(given, *index);
    }
    example.arguments =
        bindArguments(schema, std::move(arguments.positional), std::move(arguments.named), 1);
    example.arguments.resize(std::min(given, example.arguments.size()));
    examples.push_back(std::move(example));
  }
  saveExported(module, examples, options.output_file, exported);
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
  if (options.output_file.ends_with(".pt2")) return saveAsExported(module, options);
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
