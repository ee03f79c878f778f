#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string_view>

#include "core/device_backend.h"
#include "core/generator_state.h"
#include "core/grad_mode.h"
#include "core/product_precision.h"
#include "core/thread_context.h"
#include "ir/device_kernels.h"
#include "lazy/lazy.h"
#include "passes/pipeline.h"
#include "runtime/autocast.h"
#include "runtime/device_moves.h"
#include "runtime/inference.h"
#include "runtime/threads.h"
#include "serialization/file_kind.h"
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
  setDefaultDevice(Device());
  setDeviceFallback(false);
}

namespace {

// "lazy:cuda": lazy tensors with their data there; "lazy": on the CPU.
constexpr std::string_view kOver = "lazy:";

Device deviceIn(const std::string& text) {
  return text.starts_with(kOver) ? Device{kLazy, -1} : Device::parse(text);
}

void chooseDevice(const std::string& text) {
  const Device device = deviceIn(text);
  if (device.type == kLazy) {
    const bool over = text.starts_with(kOver);
    lazy::setDevice(over ? Device::parse(text.substr(kOver.size())) : Device());
  }
  setDefaultDevice(device, /*for_cpu=*/true);
}

}  // namespace

DeviceMap devicesOf(const Options& options) {
  return options.device.empty() ? Device() : deviceIn(options.device);
}

void applySettings(const Options& options) {
  if (options.seed) defaultGenerator().seed(*options.seed);
  if (options.threads > 0) setNumThreads(options.threads);
  setGradEnabled(options.grad);
  if (!options.device.empty()) chooseDevice(options.device);
  setDeviceFallback(options.fallback);
  setAllowedTf32(options.tf32 == "all"            ? Tf32::All
                 : options.tf32 == "convolutions" ? Tf32::Convolutions
                                                  : Tf32::Off);
  if (options.optimize.empty()) return;
  setOptimizationLevel(options.optimize == "0"   ? OptimizationLevel::None
                       : options.optimize == "1" ? OptimizationLevel::Default
                                                 : OptimizationLevel::Stress);
}

void placeOnDevice(const Options& options, const LoadedFile& program, const Arguments& arguments) {
  if (options.device.empty()) return;
  std::vector<IValue> values = arguments.positional;
  for (const auto& [name, value] : arguments.named) values.push_back(value);
  if (program.isArchive()) values.emplace_back(program.module().object());
  moveTensors(values, defaultDevice());
  moveConstants(program.unit(), defaultDevice());
}

std::shared_ptr<GraphFunction> functionFor(const Options& options, const LoadedFile& program) {
  GraphFunction& function = program.function(options);
  // The program keeps it.
  if (options.autocast.empty()) return {std::shared_ptr<void>(), &function};
  if (program.callsModule(options)) {
    throw CommandLineError(
        "--autocast: the module has hooks, which casts would not reach; --method names a method");
  }
  return withAutocast(function, defaultDevice().type,
                      options.autocast == "float16" ? DType::Half : DType::BFloat16);
}

std::shared_ptr<GraphFunction> preparedFor(const Options& options, const LoadedFile& program,
                                           GraphFunction& function) {
  if (!options.prepare) return nullptr;
  if (const char* reason = program.unpreparable(options)) {
    throw CommandLineError(std::string("--prepare: ") + reason);
  }
  return program.prepared(options, function);
}

void fetchResult(const Options& options, const IValue& result) {
  if (options.device.empty() || !deviceBackend(defaultDevice().type).holdsData()) return;
  moveTensors(std::span(&result, 1), Device());
}

void tellFallbacks(const Options& options) {
  if (!options.fallback) return;
  for (const FallbackCount& count : deviceFallbacks()) {
    std::fputs(fmt::format("computed on the CPU: {}, {} calls\n", count.op, count.calls).c_str(),
               stderr);
  }
}

DType dtypeOf(const std::string& name) {
  if (name == "f16") return DType::Half;
  if (name == "bf16") return DType::BFloat16;
  return name == "f64" ? DType::Double : DType::Float;
}

Tolerance toleranceOf(const Options& options) {
  return {options.tolerance, options.atol, options.rtol};
}

bool isArchiveOfModule(const std::string& path) {
  return contentsOf(mapFile(path)).kind == FileKind::Module;
}

NamedTensors tensorsOf(const std::string& path) {
  if (!isArchiveOfModule(path)) return loadTensors(path, {}, Device());
  return namedTensors(LoadedFile::load(path).module().stateDict());
}

void loadWeights(const LoadedFile& program, const std::string& path) {
  auto state = makeRef<DictObject>(types::String(), types::Tensor());
  for (const auto& [name, tensor] : tensorsOf(path)) state->set(IValue(name), IValue(tensor));
  try {
    program.module().loadStateDict(IValue(std::move(state)));
  } catch (const UsageError& error) {
    // The name of a function means nothing at the command line.
    constexpr std::string_view kFunction = "loadStateDict: ";
    std::string_view what = error.what();
    if (what.starts_with(kFunction)) what.remove_prefix(kFunction.size());
    throw UsageError(fmt::format("{}: {}", path, what));
  }
}

void print(const std::string& text) {
  const std::string shown = shownOn(stdout, text);
  const bool written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size();
  WICK_CHECK(written && std::fflush(stdout) == 0, "standard output cannot be written");
}

}  // namespace wick::cli
