#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codegen/llvm/jit.h"
#include "core/allocator.h"
#include "core/device_backend.h"
#include "runtime/call.h"
#include "runtime/compile_queue.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/inference.h"
#include "runtime/jit_mode.h"
#include "runtime/threads.h"
#include "tools/device_work.h"
#include "tools/json_text.h"
#include "tools/report.h"
#include "tools/terminal.h"
#include "tools/timing.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

TimingPlan planFor(const Options& options) {
  TimingPlan plan;
  plan.warm_up = options.warm_up;
  plan.iterations = static_cast<size_t>(options.iterations);
  if (options.duration > 0) plan.seconds = options.duration;
  plan.show_progress = !options.json && ProgressLine::hasTerminal();
  return plan;
}

struct Measurement {
  double load_ms;
  double prepare_ms;     // for inference, before the first call; 0 when the program runs as it is
  std::string as_it_is;  // why it does; empty when it is prepared
  double first_ms;
  Timings times;
  double calls_per_s;
  std::optional<Timings> interpreted;  // the same calls without machine code
  codegen::JitStatistics machine_code;
  AllocatorStatistics memory;
  uint64_t system_allocations = 0;  // of one more call, after all others
  size_t calls_between_waits = 1;   // for the device, which calls only queue work for
  struct OnDevice {
    DeviceWork work;
    DeviceLimits limits;
  };
  std::optional<OnDevice> device;  // where that is not the CPU
};

double bytesPerSecond(const Measurement& m) {
  return m.device->work.bytes / m.times.median() * 1e3;
}
double operationsPerSecond(const Measurement& m) {
  return m.device->work.operations / m.times.median() * 1e3;
}

// Lines about compiled code; none without any.
std::optional<Timings> compileTimes(const codegen::JitStatistics& statistics) {
  if (statistics.compile_times.empty()) return std::nullopt;
  return Timings(statistics.compile_times);
}

nlohmann::ordered_json rowOf(const Options& options, const Measurement& m,
                             const GraphExecutor::Statistics& plans) {
  const auto compiles = compileTimes(m.machine_code);
  nlohmann::ordered_json row = {
      {"model", options.file},
      {"threads", numThreads()},
      {"concurrency", options.concurrency},
      {"prepared", m.as_it_is.empty()},
      {"iterations", m.times.count()},
      {"calls_between_waits", m.calls_between_waits},
      {"load_ms", m.load_ms},
      {"prepare_ms", m.prepare_ms},
      {"first_ms", m.first_ms},
      {"median_ms", m.times.median()},
      {"min_ms", m.times.min()},
      {"mean_ms", m.times.mean()},
      {"p50_ms", m.times.median()},
      {"p90_ms", m.times.quantile(0.9)},
      {"p95_ms", m.times.quantile(0.95)},
      {"p99_ms", m.times.quantile(0.99)},
      {"calls_per_s", m.calls_per_s},
      {"peak_rss_mb", peakResidentBytes() / kMiB},
      {"tensor_peak_mb", static_cast<double>(peakAllocatedBytes()) / kMiB},
      {"tensor_system_mb", static_cast<double>(m.memory.system_bytes) / kMiB},
      {"system_allocations", m.system_allocations},
      {"compile_ms", compiles ? compiles->mean() * static_cast<double>(compiles->count()) : 0},
      {"compile_median_ms", compiles ? compiles->median() : 0},
      {"kernels_compiled", m.machine_code.compiled},
      {"kernels_from_disk", m.machine_code.from_disk},
      {"plans", plans.plans},
      {"bail_outs", plans.bail_outs},
  };
  if (m.interpreted) row["interpreter_median_ms"] = m.interpreted->median();
  if (m.device) {
    row["device"] = {{"bytes", m.device->work.bytes},
                     {"operations", m.device->work.operations},
                     {"bytes_per_s", bytesPerSecond(m)},
                     {"operations_per_s", operationsPerSecond(m)},
                     {"copy_bytes_per_s", m.device->limits.bytes_per_s},
                     {"product_operations_per_s", m.device->limits.operations_per_s}};
  }
  return row;
}

// The code that was compiled, and which code ran.
std::string detailsOf(const Measurement& m, GraphFunction& called) {
  const auto compiles = compileTimes(m.machine_code);
  std::string text = fmt::format(
      "machine code: {} functions compiled{}, {} taken from the cache on disk\n",
      m.machine_code.compiled,
      compiles ? fmt::format(", {} ms each (median)", formatMilliseconds(compiles->median())) : "",
      m.machine_code.from_disk);
  if (const std::string plans = describePlans(called); !plans.empty()) text += plans + "\n";
  return text;
}

std::string tableOf(const Options& options, const Measurement& m) {
  const bool together = options.concurrency > 1;
  std::string text = fmt::format("{}: {} calls", options.file, m.times.count());
  if (together) text += fmt::format(", {} at the same time", options.concurrency);
  text += fmt::format(", {} {}{}\n", numThreads(), numThreads() == 1 ? "thread" : "threads",
                      together ? " each" : "");
  text += m.as_it_is.empty()
              ? "prepared for inference before the first call (--no-prepare leaves that out)\n"
              : fmt::format("not prepared for inference: {}\n", m.as_it_is);
  const auto line = [&](const char* name, double ms) {
    text += fmt::format("{:<8}{:>12} ms\n", name, formatMilliseconds(ms));
  };
  line("load", m.load_ms);
  if (m.as_it_is.empty()) line("prepare", m.prepare_ms);
  line("first", m.first_ms);
  line("mean", m.times.mean());
  line("minimum", m.times.min());
  line("p50", m.times.median());
  line("p90", m.times.quantile(0.9));
  line("p95", m.times.quantile(0.95));
  line("p99", m.times.quantile(0.99));
  text += fmt::format("throughput {:.1f} calls a second\npeak memory {:.1f} MB\n", m.calls_per_s,
                      peakResidentBytes() / kMiB);
  if (m.interpreted) {
    text += fmt::format("interpreter {} ms (p50), {:.2f} times as long\n",
                        formatMilliseconds(m.interpreted->median()),
                        m.interpreted->median() / m.times.median());
  }
  if (m.device) {
    text += fmt::format(
        "arguments, parameters and results {:.3f} TB/s; a copy on the device {:.3f} TB/s\n"
        "products, convolutions and attention {:.2f} TFLOP/s; a large product {:.2f} TFLOP/s\n",
        bytesPerSecond(m) * 1e-12, m.device->limits.bytes_per_s * 1e-12,
        operationsPerSecond(m) * 1e-12, m.device->limits.operations_per_s * 1e-12);
  }
  return text;
}

// The dtype of the products, as far as arguments and parameters tell.
DType floatsOf(std::span<const IValue> given) {
  for (const IValue& v : given) {
    if (v.isTensor() && v.toTensor().defined() && isFloating(v.toTensor().dtype())) {
      return v.toTensor().dtype();
    }
  }
  return DType::Float;
}

// Calls that only queue work are timed many at a time, as programs make them.
size_t callsBetweenWaits(const std::function<void()>& once) {
  constexpr double kMilliseconds = 50;
  constexpr double kMost = 200;
  double one = timeOnce(once);
  for (int i = 0; i < 3; ++i) one = std::min(one, timeOnce(once));
  return static_cast<size_t>(std::clamp(kMilliseconds / std::max(one, 1e-3), 1.0, kMost));
}

// The program, ready to be called.
struct Subject {
  const Options& options;
  const LoadedFile& program;
  GraphFunction& function;
  std::shared_ptr<GraphFunction> prepared;  // null: it runs as it is
  std::string as_it_is;                     // why
  double prepare_ms = 0;

  GraphFunction& called() const { return prepared ? *prepared : function; }
  IValue call(const Arguments& arguments) const {
    return prepared ? callFunction(*prepared, arguments.positional, arguments.named)
                    : program.call(options, function, arguments.positional, arguments.named);
  }
};

// As an application prepares a model that it serves; a program that trains keeps its module.
void prepare(Subject& subject) {
  const char* reason =
      subject.options.no_prepare ? "--no-prepare" : subject.program.unpreparable(subject.options);
  if (reason) {
    subject.as_it_is = reason;
    return;
  }
  subject.prepare_ms = timeOnce(
      [&] { subject.prepared = subject.program.prepared(subject.options, subject.function); });
}

// The calls of --concurrency, each thread with arguments of its own: programs may write to them.
TimedTogether timeThreads(const Subject& subject, const TimingPlan& plan) {
  std::vector<std::function<void()>> callers;
  for (int i = 0; i < subject.options.concurrency; ++i) {
    callers.emplace_back(
        [&subject, arguments = argumentsFor(subject.options, subject.program, subject.function)] {
          subject.call(arguments);
        });
  }
  return timeTogether(callers, plan);
}

// What one call does on the device, beside what the device can do.
Measurement::OnDevice deviceShare(const Subject& subject, const Arguments& arguments,
                                  Device device) {
  std::vector<IValue> given = arguments.positional;
  for (const auto& [name, value] : arguments.named) given.push_back(value);
  if (subject.program.isArchive()) {
    const Module& module = subject.program.module();
    for (const auto& tensors : {module.parameters(), module.buffers()}) {
      for (const auto& [name, tensor] : tensors) given.emplace_back(tensor);
    }
  }
  const DeviceWork work = workOf(given, [&] { return subject.call(arguments); });
  return {work, limitsOf(device, floatsOf(given))};
}

}  // namespace

void benchVerb(const Options& options) {
  if (options.concurrency > 1 && !options.device.empty() && options.device != "cpu") {
    throw CommandLineError(
        "--concurrency: calls on one device wait for each other; it is for the CPU");
  }
  applySettings(options);
  std::optional<LoadedFile> loaded;
  const double load_ms = timeOnce([&] {
    loaded.emplace(LoadedFile::load(options.file, devicesOf(options)));
    loaded->function(options);
  });
  const LoadedFile& program = *loaded;
  applyMode(options, program);
  const std::shared_ptr<GraphFunction> chosen = functionFor(options, program);
  const Arguments arguments = argumentsFor(options, program, *chosen);
  placeOnDevice(options, program, arguments);
  Subject subject{options, program, *chosen, nullptr, "", 0};
  prepare(subject);
  const Device device = defaultDevice();
  TimingPlan plan = planFor(options);
  const auto repeated = [&](size_t calls) {
    for (size_t i = 0; i < calls; ++i) subject.call(arguments);
    // What is only queued took no time yet.
    if (!device.isCpu()) deviceBackend(device.type).synchronize(device);
  };
  const auto once = [&] { repeated(1); };
  const double first_ms = timeOnce(once);
  if (!device.isCpu()) plan.calls = callsBetweenWaits(once);
  const auto measure = [&] {
    if (options.concurrency > 1) return timeThreads(subject, plan);
    Timings times = timeRepeatedly([&] { repeated(plan.calls); }, plan);
    const double seconds = times.mean() * static_cast<double>(times.count()) / 1000;
    return TimedTogether{std::move(times), seconds};
  };
  TimedTogether timed = measure();
  const double calls_per_s = static_cast<double>(timed.times.count()) / timed.seconds;
  Measurement measured{load_ms,
                       subject.prepare_ms,
                       subject.as_it_is,
                       first_ms,
                       std::move(timed.times),
                       calls_per_s,
                       {},
                       {},
                       {},
                       0,
                       1,
                       {}};
  measured.calls_between_waits = plan.calls;
  waitForCompiles();
  const uint64_t asked = allocatorStatistics().system_allocations;
  once();
  measured.memory = allocatorStatistics();
  measured.system_allocations = measured.memory.system_allocations - asked;
  measured.machine_code = codegen::jitStatistics();
  if (device.isCuda()) measured.device = deviceShare(subject, arguments, device);
  if (options.compare == "interpreter") {
    setJitMode(JitMode::Off);
    measured.interpreted = measure().times;
  }
  if (options.json) {
    const auto plans = GraphExecutor::of(subject.called()).statistics();
    return print(jsonLine(rowOf(options, measured, plans)));
  }
  print(tableOf(options, measured) +
        (options.verbose ? detailsOf(measured, subject.called()) : ""));
}

}  // namespace wick::cli
