#include <fmt/format.h>
#include <unistd.h>

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
  plan.show_progress = !options.json && isatty(STDERR_FILENO);
  return plan;
}

struct Measurement {
  double load_ms;
  double prepare_ms;  // for inference, before the first call; 0 when the program runs as it is
  double first_ms;
  Timings times;
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

// Of what was compiled; none when that is nothing.
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
      {"iterations", m.times.count()},
      {"calls_between_waits", m.calls_between_waits},
      {"load_ms", m.load_ms},
      {"prepare_ms", m.prepare_ms},
      {"first_ms", m.first_ms},
      {"median_ms", m.times.median()},
      {"min_ms", m.times.min()},
      {"mean_ms", m.times.mean()},
      {"p90_ms", m.times.quantile(0.9)},
      {"p99_ms", m.times.quantile(0.99)},
      {"calls_per_s", 1000 / m.times.mean()},
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

std::string tableOf(const Options& options, const Measurement& m) {
  const auto compiles = compileTimes(m.machine_code);
  std::string text = fmt::format(
      "{}, {} threads, {} calls\n"
      "load    {:10.3f} ms\n"
      "prepare {:10.3f} ms\n"
      "first   {:10.3f} ms\n"
      "median  {:10.3f} ms\n"
      "minimum {:10.3f} ms\n"
      "p90     {:10.3f} ms\n"
      "p99     {:10.3f} ms\n"
      "throughput {:.1f} calls a second\n"
      "peak memory {:.1f} MB\n"
      "machine code: {} kernels compiled, median {:.0f} ms, {} from disk\n",
      options.file, numThreads(), m.times.count(), m.load_ms, m.prepare_ms, m.first_ms,
      m.times.median(), m.times.min(), m.times.quantile(0.9), m.times.quantile(0.99),
      1000 / m.times.mean(), peakResidentBytes() / kMiB, m.machine_code.compiled,
      compiles ? compiles->median() : 0, m.machine_code.from_disk);
  if (m.interpreted) {
    text += fmt::format("interpreter {:.3f} ms, {:.2f} times as long\n", m.interpreted->median(),
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

}  // namespace

void benchVerb(const Options& options) {
  applySettings(options);
  std::optional<LoadedFile> loaded;
  const double load_ms = timeOnce([&] {
    loaded.emplace(LoadedFile::load(options.file));
    loaded->function(options);
  });
  const LoadedFile& program = *loaded;
  applyMode(options, program);
  const std::shared_ptr<GraphFunction> chosen = functionFor(options, program);
  GraphFunction& function = *chosen;
  const Arguments arguments = argumentsFor(options, program, function);
  placeOnDevice(options, program, arguments);
  // As an application prepares a model that it serves; a program that trains keeps its module.
  std::shared_ptr<GraphFunction> frozen;
  double prepare_ms = 0;
  if (!program.unpreparable(options)) {
    prepare_ms =
        timeOnce([&] { frozen = optimizeForInference(program.module().object(), function); });
  }
  const Device device = defaultDevice();
  TimingPlan plan = planFor(options);
  const auto call = [&] {
    return frozen ? callFunction(*frozen, arguments.positional, arguments.named)
                  : program.call(options, function, arguments.positional, arguments.named);
  };
  const auto repeated = [&](size_t calls) {
    for (size_t i = 0; i < calls; ++i) call();
    // What is only queued took no time yet.
    if (!device.isCpu()) deviceBackend(device.type).synchronize(device);
  };
  const auto once = [&] { repeated(1); };
  const double first_ms = timeOnce(once);
  if (!device.isCpu()) plan.calls = callsBetweenWaits(once);
  const auto timed = [&] { repeated(plan.calls); };
  Measurement measured{load_ms, prepare_ms, first_ms, timeRepeatedly(timed, plan), {}, {}, {},
                       0,       1,          {}};
  measured.calls_between_waits = plan.calls;
  waitForCompiles();
  const uint64_t asked = allocatorStatistics().system_allocations;
  once();
  measured.memory = allocatorStatistics();
  measured.system_allocations = measured.memory.system_allocations - asked;
  measured.machine_code = codegen::jitStatistics();
  if (device.isCuda()) {
    std::vector<IValue> given = arguments.positional;
    for (const auto& [name, value] : arguments.named) given.push_back(value);
    if (program.isArchive()) {
      for (const auto& tensors : {program.module().parameters(), program.module().buffers()}) {
        for (const auto& [name, tensor] : tensors) given.emplace_back(tensor);
      }
    }
    const DeviceWork work = workOf(given, call);
    measured.device = {work, limitsOf(device, floatsOf(given))};
  }
  if (options.compare == "interpreter") {
    setJitMode(JitMode::Off);
    measured.interpreted = timeRepeatedly(timed, plan);
  }

  GraphFunction& called = frozen ? *frozen : function;
  if (options.json) {
    const auto row = rowOf(options, measured, GraphExecutor::of(called).statistics());
    print(jsonLine(row));
    return;
  }
  print(tableOf(options, measured));
  if (std::string plans = describePlans(called); !plans.empty()) print(plans + "\n");
}

}  // namespace wick::cli
