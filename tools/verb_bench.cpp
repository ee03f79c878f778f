#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/executor/graph_executor.h"
#include "runtime/inference.h"
#include "runtime/threads.h"
#include "tools/report.h"
#include "tools/timing.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

TimingPlan planFor(const Options& options) {
  TimingPlan plan;
  plan.warm_up = options.warm_up;
  plan.iterations = static_cast<size_t>(options.iterations);
  if (options.duration > 0) plan.seconds = options.duration;
  plan.show_progress = !options.json && isatty(STDERR_FILENO);
  return plan;
}

}  // namespace

void benchVerb(const Options& options) {
  applySettings(options);
  std::optional<Program> loaded;
  const double load_ms = timeOnce([&] {
    loaded.emplace(Program::load(options.file));
    loaded->function(options);
  });
  const Program& program = *loaded;
  GraphFunction& function = program.function(options);
  const Arguments arguments = argumentsFor(options, program, function);
  // As an application prepares a model that it serves; a program that trains keeps its module.
  std::shared_ptr<GraphFunction> frozen;
  double prepare_ms = 0;
  if (program.isArchive() && !options.grad && !program.module().isTraining() &&
      !program.callsModule(options)) {
    prepare_ms =
        timeOnce([&] { frozen = optimizeForInference(program.module().object(), function); });
  }
  const auto once = [&] {
    if (frozen) {
      callFunction(*frozen, arguments.positional, arguments.named);
    } else {
      program.call(options, function, arguments.positional, arguments.named);
    }
  };
  const double first_ms = prepare_ms + timeOnce(once);
  const Timings times = timeRepeatedly(once, planFor(options));
  const double calls_a_second = 1000 / times.mean();

  const double peak_mb = peakResidentBytes() / (1024.0 * 1024.0);
  GraphFunction& called = frozen ? *frozen : function;
  if (options.json) {
    const GraphExecutor::Statistics plans = GraphExecutor::of(called).statistics();
    const nlohmann::ordered_json row = {
        {"model", options.file},         {"threads", numThreads()},
        {"iterations", times.count()},   {"load_ms", load_ms},
        {"first_ms", first_ms},          {"median_ms", times.median()},
        {"min_ms", times.min()},         {"mean_ms", times.mean()},
        {"p90_ms", times.quantile(0.9)}, {"p99_ms", times.quantile(0.99)},
        {"calls_per_s", calls_a_second}, {"peak_rss_mb", peak_mb},
        {"plans", plans.plans},          {"bail_outs", plans.bail_outs},
    };
    // A path need not be UTF-8.
    print(row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return;
  }
  print(
      fmt::format("{}, {} threads, {} calls\n"
                  "load    {:10.3f} ms\n"
                  "first   {:10.3f} ms\n"
                  "median  {:10.3f} ms\n"
                  "minimum {:10.3f} ms\n"
                  "p90     {:10.3f} ms\n"
                  "p99     {:10.3f} ms\n"
                  "throughput {:.1f} calls a second\n"
                  "peak memory {:.1f} MB\n",
                  options.file, numThreads(), times.count(), load_ms, first_ms, times.median(),
                  times.min(), times.quantile(0.9), times.quantile(0.99), calls_a_second, peak_mb));
  if (std::string plans = describePlans(called); !plans.empty()) print(plans + "\n");
}

}  // namespace wick::cli
