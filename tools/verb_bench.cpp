#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "runtime/inference.h"
#include "runtime/threads.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Without --iterations, time is spent as long as this on warming up and on measuring.
constexpr auto kWarmUp = std::chrono::milliseconds(300);
constexpr auto kBudget = std::chrono::milliseconds(1500);
constexpr size_t kMinIterations = 5;
constexpr size_t kMaxIterations = 200000;

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// The value below which `fraction` of the sorted times lie.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

double peakResidentMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

}  // namespace

void benchVerb(const Options& options) {
  applySettings(options);
  const auto started = Clock::now();
  const Program program = Program::load(options.file);
  GraphFunction& function = program.function(options);
  const double load_ms = milliseconds(Clock::now() - started);
  const Arguments arguments = argumentsFor(options, program, function);
  // As an application prepares a model that it serves; a program that trains keeps its module.
  std::shared_ptr<GraphFunction> frozen;
  double prepare_ms = 0;
  if (program.isArchive() && !options.grad && !program.module().isTraining() &&
      !program.callsModule(options)) {
    const auto begin = Clock::now();
    frozen = optimizeForInference(program.module().object(), function);
    prepare_ms = milliseconds(Clock::now() - begin);
  }

  const auto once = [&] {
    const auto begin = Clock::now();
    const IValue result =
        frozen ? callFunction(*frozen, arguments.positional, arguments.named)
               : program.call(options, function, arguments.positional, arguments.named);
    return Clock::now() - begin;
  };
  const double first_ms = prepare_ms + milliseconds(once());
  const auto warm_until = Clock::now() + kWarmUp;
  for (size_t i = 0; i < kMinIterations || (options.iterations == 0 && Clock::now() < warm_until);
       ++i) {
    once();
  }
  std::vector<double> times;
  const size_t wanted = static_cast<size_t>(options.iterations);
  const auto end = Clock::now() + kBudget;
  while (wanted ? times.size() < wanted
                : times.size() < kMinIterations ||
                      (Clock::now() < end && times.size() < kMaxIterations)) {
    times.push_back(milliseconds(once()));
  }
  std::sort(times.begin(), times.end());

  const double median = quantile(times, 0.5);
  const double p99 = quantile(times, 0.99);
  if (options.json) {
    const nlohmann::ordered_json row = {
        {"model", options.file},
        {"threads", numThreads()},
        {"iterations", times.size()},
        {"load_ms", load_ms},
        {"first_ms", first_ms},
        {"median_ms", median},
        {"min_ms", times.front()},
        {"p99_ms", p99},
        {"peak_rss_mb", peakResidentMegabytes()},
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
                  "p99     {:10.3f} ms\n"
                  "peak memory {:.1f} MB\n",
                  options.file, numThreads(), times.size(), load_ms, first_ms, median,
                  times.front(), p99, peakResidentMegabytes()));
}

}  // namespace wick::cli
