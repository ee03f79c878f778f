#include <algorithm>
#include <cstdio>

#include "core/generator_state.h"
#include "core/grad_mode.h"
#include "core/thread_context.h"
#include "passes/pipeline.h"
#include "runtime/threads.h"
#include "serialization/archive_reader.h"
#include "serialization/tensor_files.h"
#include "tools/terminal.h"
#include "tools/verbs.h"

namespace wick::cli {

Arguments argumentsFor(const Options& options, const LoadedFile& program, GraphFunction& function) {
  if (!options.inputs_file.empty()) return argumentsFromFile(options.inputs_file);
  return argumentsFromInputs(options.inputs, function.schema(), program.numBound(),
                             options.seed.value_or(0));
}

void applyMode(const Options& options, const LoadedFile& program) {
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

void resetSettings() {
  // The first call finds what the environment chose.
  static const int threads = numThreads();
  static const OptimizationLevel level = optimizationLevel();
  static const GeneratorState numbers = GeneratorState::of(defaultGenerator());
  setNumThreads(threads);
  setOptimizationLevel(level);
  numbers.restore(defaultGenerator());
  threadContext() = ThreadContext();
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

bool isArchiveOfModule(const std::string& path) {
  Bytes file = mapFile(path);
  if (!ArchiveReader::looksLikeZip(file.data)) return false;
  const ArchiveReader archive(std::move(file), path, {}, ArchiveReader::Layout::Flat);
  return std::ranges::any_of(archive.records(), [](const std::string& record) {
    return record.ends_with("/constants.pkl");
  });
}

NamedTensors tensorsOf(const std::string& path) {
  if (!isArchiveOfModule(path)) return loadTensors(path);
  return namedTensors(LoadedFile::load(path).module().stateDict());
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  WICK_CHECK(written && std::fflush(stdout) == 0, "standard output cannot be written");
}

}  // namespace wick::cli
