#include <fmt/format.h>

#include <optional>

#include "autograd/anomaly.h"
#include "core/grad_mode.h"
#include "core/output_file.h"
#include "runtime/call.h"
#include "serialization/npy.h"
#include "serialization/torch_save.h"
#include "tools/inputs.h"
#include "tools/json_text.h"
#include "tools/kept_programs.h"
#include "tools/report.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

void writeResult(const IValue& result, const std::string& path) {
  if (!path.ends_with(".npy")) {
    saveValue(result, path);
    return;
  }
  WICK_CHECK(result.isTensor(),
             "--output {}: a .npy file holds one Tensor, the result is {}; write a .pt file", path,
             result.tagName());
  saveNpy(result.toTensor(), path);
}

// UsageError when they differ, which is told before.
void compareWith(const IValue& expected, const IValue& result, const Options& options) {
  const std::vector<std::string> lines =
      differences(result, expected, toleranceOf(options), "result");
  if (lines.empty()) {
    return print(fmt::format("the result is as {} expects\n", options.expect));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  print(text);
  throw UsageError(fmt::format(
      "the result differs from {} (above: the result, and the expected value)", options.expect));
}

}  // namespace

void runVerb(const Options& options) {
  applySettings(options);
  // Files that cannot be written or read are reported before anything is computed.
  if (!options.output_file.empty()) {
    const OutputFile probe(options.output_file);
  }
  std::optional<IValue> expected;
  if (!options.expect.empty()) expected = valueIn(options.expect);
  // What is prepared belongs to one object.
  const LoadedFile program =
      options.prepare ? LoadedFile::load(options.file, devicesOf(options)) : loadKept(options);
  applyMode(options, program);
  const std::shared_ptr<GraphFunction> chosen = functionFor(options, program);
  GraphFunction& function = *chosen;
  Arguments arguments = argumentsFor(options, program, function);
  placeOnDevice(options, program, arguments);
  RunOptions run;
  std::optional<autograd::AnomalyMode> anomalies;
  if (options.detect_anomaly) {
    setGradEnabled(true);
    run.observer = anomalies.emplace().observer();
  }
  const std::shared_ptr<GraphFunction> prepared = preparedFor(options, program, function);
  const IValue result = prepared ? callFunction(*prepared, std::move(arguments.positional),
                                                std::move(arguments.named), run)
                                 : program.call(options, function, std::move(arguments.positional),
                                                std::move(arguments.named), run);
  fetchResult(options, result);
  tellFallbacks(options);
  if (!options.output_file.empty()) {
    writeResult(result, options.output_file);
  } else if (options.json) {
    print(jsonText(result) + "\n");
  } else if (!expected && !result.isNone()) {
    print(report(result));
  }
  if (options.memory) {
    std::fputs(fmt::format("peak memory: {} of tensors, {} in all\n",
                           formatBytes(static_cast<double>(peakAllocatedBytes())),
                           formatBytes(peakResidentBytes()))
                   .c_str(),
               stderr);
  }
  if (expected) compareWith(*expected, result, options);
}

}  // namespace wick::cli
