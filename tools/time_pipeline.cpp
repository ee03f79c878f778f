#include "tools/time_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/call.h"
#include "runtime/ops/common_calls.h"
#include "serialization/torch_save.h"
#include "streams/picture.h"
#include "streams/text.h"
#include "tools/graphviz.h"
#include "tools/json_text.h"
#include "tools/report.h"
#include "tools/timing.h"
#include "tools/verbs.h"

namespace wick::cli {

double relativeDifference(const Tensor& a, const Tensor& b) {
  if (DimVector(a.sizes()) != DimVector(b.sizes()) || a.numel() == 0) {
    throw UsageError(
        fmt::format("--verify: expected a result like {}, found {}", a.describe(), b.describe()));
  }
  const Tensor x = a.to(DType::Double).contiguous(), y = b.to(DType::Double).contiguous();
  double largest = 0, apart = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    largest = std::max(largest, std::abs(x.data<double>()[i]));
    const double d = std::abs(x.data<double>()[i] - y.data<double>()[i]);
    apart = d <= apart ? apart : d;  // also takes what is not a number
  }
  return apart / std::max(largest, 1e-30);
}

void runOverTime(const Options& options, const std::shared_ptr<GraphFunction>& program,
                 const std::vector<IValue>& example, const Tensor& whole,
                 const streams::TimeStream::PlaceOf& place_of) {
  const PipelineOptions& pipeline = options.pipeline;
  if (!pipeline.plan.empty() || !pipeline.cluster.empty() || !pipeline.picture.empty()) {
    throw CommandLineError("--chunk goes with neither --plan, --simulate nor --picture");
  }
  if (example.empty() || !example[0].isTensor()) {
    throw CommandLineError("--chunk: the model's first argument must be a tensor");
  }
  const Tensor input = whole.defined() ? whole : example[0].toTensor();
  const int64_t axis = pipeline.axis < 0 ? pipeline.axis + input.dim() : pipeline.axis;
  if (axis < 0 || axis >= input.dim()) {
    throw CommandLineError(
        fmt::format("--axis: {} has no dimension {}", input.describe(), pipeline.axis));
  }
  const int64_t length = input.size(axis);
  if (length == 0) throw CommandLineError("--chunk: the input has no time step");
  // What is looked at beforehand need not be all of it.
  constexpr int64_t kShown = 1 << 14, kMostShown = 1 << 17;
  std::vector<IValue> shown = example;
  if (options.inputs.empty() && options.inputs_file.empty()) {
    shown[0] = IValue(input.narrow(axis, 0, std::min(length, kShown)));
  }
  const auto made = [&] {
    try {
      return streams::TimeStream(program, shown, pipeline.axis, place_of);
    } catch (const RuntimeError&) {
      // Some operator found the input too short.
      if (length <= shown[0].toTensor().size(axis)) throw;
      shown[0] = IValue(input.narrow(axis, 0, std::min(length, kMostShown)));
      return streams::TimeStream(program, shown, pipeline.axis, place_of);
    }
  };
  streams::TimeStream stream = made();
  if (!pipeline.stream.empty()) {
    writeDrawing(pipeline.stream, streams::streamDot(stream.graph()),
                 streams::printStream(stream.graph()));
  }
  std::vector<double> times;
  std::vector<Tensor> results;
  const bool keeps = pipeline.verify || !options.output_file.empty();
  int64_t held = 0, steps = 0;
  double resident_before = 0;
  const auto take = [&](const std::optional<Tensor>& piece) {
    if (!piece) return;
    steps += piece->size(stream.resultAxis());
    if (keeps) results.push_back(piece->clone());
  };
  for (int64_t begin = 0; begin < length; begin += pipeline.chunk) {
    const Tensor piece = input.narrow(axis, begin, std::min(pipeline.chunk, length - begin));
    std::optional<Tensor> result;
    times.push_back(timeOnce([&] { result = stream.push(piece); }));
    take(result);
    held = std::max(held, stream.heldElements());
    if (begin <= length / 10) resident_before = residentBytes();
  }
  take(stream.finish());
  constexpr double kMiB = 1024.0 * 1024.0;
  const double resident = residentBytes();
  const Timings timings(times);
  double total = 0;
  for (double t : times) total += t;
  std::optional<double> apart;
  if (keeps) {
    if (results.empty()) throw UsageError("--chunk: the input is too short for a result");
    const Tensor all = ops::cat(results, stream.resultAxis());
    if (!options.output_file.empty()) saveValue(IValue(all), options.output_file);
    if (pipeline.verify) {
      std::vector<IValue> arguments = example;
      arguments[0] = IValue(input);
      apart = relativeDifference(callFunction(*program, arguments).toTensor(), all);
      // Written so that what is not a number does not pass.
      if (!(*apart <= 1e-5)) {
        throw UsageError(fmt::format(
            "--verify: the pieces differ from one call by {:.3g} of the largest number", *apart));
      }
    }
  }
  const double rate = 1e3 * static_cast<double>(length) / std::max(total, 1e-9);
  if (options.json) {
    nlohmann::ordered_json json = {{"model", options.file},
                                   {"filters", stream.graph().filters.size()},
                                   {"pieces", times.size()},
                                   {"steps", length},
                                   {"result_steps", steps},
                                   {"steps_per_s", rate},
                                   {"median_ms", timings.median()},
                                   {"p99_ms", timings.quantile(0.99)},
                                   {"held_elements", held},
                                   {"peak_rss_mb", peakResidentBytes() / kMiB},
                                   {"tenth_rss_mb", resident_before / kMiB},
                                   {"rss_mb", resident / kMiB}};
    if (apart) json["difference"] = *apart;
    print(jsonLine(json));
    return;
  }
  std::string text = fmt::format(
      "{}: {} filters, {} steps in {} pieces of {}\n"
      "results     {} steps\n"
      "throughput  {:.0f} steps a second\n"
      "a piece     median {:.3f} ms, p99 {:.3f} ms\n"
      "kept        {} elements between pieces\n"
      "memory      {:.1f} MB after a tenth of the pieces, {:.1f} MB at the end\n",
      options.file, stream.graph().filters.size(), length, times.size(), pipeline.chunk, steps,
      rate, timings.median(), timings.quantile(0.99), held, resident_before / kMiB,
      resident / kMiB);
  if (apart) text += fmt::format("verified    within {:.2g} of one call\n", *apart);
  print(text);
}

}  // namespace wick::cli
