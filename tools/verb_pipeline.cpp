#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/device_backend.h"
#include "core/generator_state.h"
#include "core/output_file.h"
#include "core/processors.h"
#include "distributed/messages/messages.h"
#include "runtime/call.h"
#include "runtime/compile_queue.h"
#include "runtime/inference.h"
#include "runtime/interpreter/slow_paths.h"
#include "serialization/npy.h"
#include "serialization/torch_save.h"
#include "streams/cuda/stage_devices.h"
#include "streams/from_method.h"
#include "streams/linear/merge.h"
#include "streams/picture.h"
#include "streams/processes/kept_items.h"
#include "streams/processes/packet_bytes.h"
#include "streams/processes/run.h"
#include "streams/schedule/plan_picture.h"
#include "streams/schedule/run.h"
#include "streams/schedule/simulate.h"
#include "streams/text.h"
#include "tools/comparison.h"
#include "tools/graphviz.h"
#include "tools/json_text.h"
#include "tools/report.h"
#include "tools/time_pipeline.h"
#include "tools/timing.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

using Json = nlohmann::ordered_json;

// What is run, with its stream graph.
struct Streamed {
  std::shared_ptr<GraphFunction> program;
  streams::StreamGraph graph;
};

// The method prepared for inference, or the function with its calls inlined.
std::shared_ptr<GraphFunction> prepared(const Options& options, const LoadedFile& program,
                                        GraphFunction& function) {
  if (!program.isArchive()) return streams::inlinedFunction(function, nullptr);
  if (const char* reason = program.unpreparable(options)) {
    throw CommandLineError(
        fmt::format("pipeline: {}, so it cannot be prepared for stages{}", reason,
                    program.module().isTraining() ? "; --eval leaves that mode" : ""));
  }
  // Stages are cut between the nodes of one version.
  return program.prepared(options, function, /*for_any_rank=*/false);
}

streams::StreamGraph streamOf(const Options& options, const LoadedFile& program,
                              GraphFunction& function,
                              const std::shared_ptr<GraphFunction>& prepared) {
  streams::Overrides overrides;
  if (!options.pipeline.overrides.empty()) {
    overrides = streams::parseOverrides(readTextFile(options.pipeline.overrides));
  }
  const bool archive = program.isArchive();
  return streams::fromMethod(prepared, archive ? &function : nullptr,
                             archive ? &program.module() : nullptr, overrides);
}

// Before anything runs: whether the end of the path tells what to write.
void checkDrawing(const std::string& path, const char* option, bool may_be_text) {
  const bool text = may_be_text && (path == "-" || path.ends_with(".txt"));
  if (path.empty() || text || path.ends_with(".dot") || path.ends_with(".svg")) return;
  throw CommandLineError(fmt::format("{}: expected a name that ends in {}.dot or .svg, got {}",
                                     option, may_be_text ? ".txt, " : "", path));
}

// The items of --run, or the arguments of --input again and again.
class Items {
 public:
  Items(const Options& options, const LoadedFile& program, GraphFunction& function,
        GraphFunction& prepared)
      : schema_(prepared.schema()) {
    if (options.pipeline.data.empty() || !options.inputs.empty() || !options.inputs_file.empty()) {
      Arguments arguments = argumentsFor(options, program, function);
      example_ =
          bindArguments(schema_, std::move(arguments.positional), std::move(arguments.named));
    }
    if (options.pipeline.data.empty()) return;
    read(options.pipeline.data);
    if (count() == 0) throw CommandLineError("--run: the file has no item");
    if (example_.empty()) example_ = (*this)[0];
  }

  bool areGiven() const { return rows_.defined() || list_.has_value(); }
  int64_t count() const {
    return rows_.defined() ? rows_.size(0)
                           : (list_ ? static_cast<int64_t>(list_->elements().size()) : 0);
  }
  const std::vector<IValue>& example() const { return example_; }
  // The tensor of --run; undefined when it is a list, or not given.
  const Tensor& rows() const { return rows_; }

  std::vector<IValue> operator[](int64_t index) const {
    if (rows_.defined()) return bound({IValue(rows_.narrow(0, index, 1))});
    const IValue& item = list_->elements()[static_cast<size_t>(index)];
    return bound(item.isTuple() ? item.elements() : std::vector<IValue>{item});
  }

 private:
  std::vector<IValue> bound(std::vector<IValue> arguments) const {
    return bindArguments(schema_, std::move(arguments), {});
  }
  void read(const std::string& path) {
    IValue value = valueIn(path);
    if (value.isTensor()) {
      rows_ = value.toTensor();
      if (!rows_.defined() || rows_.dim() == 0) {
        throw CommandLineError("--run: expected a tensor with rows, found one without dimensions");
      }
    } else if (value.isList() || value.isTuple()) {
      list_ = std::move(value);
    } else {
      throw CommandLineError(
          fmt::format("--run: expected a tensor or a list of items, found {}", value.tagName()));
    }
  }

  const FunctionSchema schema_;
  std::vector<IValue> example_;
  Tensor rows_;
  std::optional<IValue> list_;
};

int64_t stagesOf(const Options& options) {
  const std::string& text = options.pipeline.stages;
  int64_t stages = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), stages);
  if (error != std::errc() || end != text.data() + text.size() || stages < 1) {
    throw CommandLineError(
        fmt::format("--stages: expected a number from 1 on or auto, got {}", text));
  }
  return stages;
}

// The devices that stages are spread over; none for the CPU. Of several processes on a host each has one.
std::vector<Device> stageDevices(const Options& options) {
  if (options.device.empty()) return {};
  const Device asked = Device::parse(options.device);
  if (asked.isCpu()) return {};
  if (!asked.isCuda()) {
    throw CommandLineError(
        fmt::format("--device: stages run on cpu or cuda, got {}", options.device));
  }
  if (asked.index >= 0) return {placeOf(asked)};
  std::vector<Device> devices;
  for (int i = 0; i < deviceBackend(DeviceType::CUDA).count(); ++i) {
    devices.push_back({DeviceType::CUDA, static_cast<int8_t>(i)});
  }
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"}) {
    const char* const text = std::getenv(name);
    size_t rank = 0;
    if (!text) continue;
    if (std::from_chars(text, text + std::strlen(text), rank).ec != std::errc()) continue;
    return {devices.at(rank % devices.size())};
  }
  return devices;
}

// As many stages of the range on each device, up to one, in order.
streams::Pipeline::OnDevices placeStages(const std::vector<Device>& devices, size_t stages,
                                         streams::StageRange range) {
  streams::Pipeline::OnDevices on;
  if (devices.empty()) return on;
  on.devices = streams::cudaStages();
  on.of_stages.assign(stages, devices[0]);
  const size_t count = range.last - range.first;
  for (size_t s = 0; s < count; ++s) {
    on.of_stages[range.first + s] = devices[s * devices.size() / std::max(count, devices.size())];
  }
  return on;
}

streams::PlaceStages placing(const Options& options) {
  return [devices = stageDevices(options)](size_t stages, streams::StageRange range) {
    return placeStages(devices, stages, range);
  };
}

IValue onDevice(const IValue& value, Device device) {
  streams::Packet one = {value};
  streams::replaceTensors(one, [&](const Tensor& tensor) { return moveTo(tensor, device); });
  return one[0];
}

streams::Plan makePlan(const Options& options, const streams::StreamGraph& graph,
                       const streams::Costs& costs, int processes) {
  const PipelineOptions& pipeline = options.pipeline;
  streams::Plan plan;
  const auto devices = static_cast<int64_t>(stageDevices(options).size());
  if (pipeline.stages == "auto" && (processes > 1 || devices > 0)) {
    plan = streams::partition(graph, costs,
                              std::max<int64_t>(processes, 1) * std::max<int64_t>(devices, 1));
  } else if (pipeline.stages == "auto") {
    const int64_t processors = availableProcessors();
    plan = streams::partitionForThreads(graph, costs, processors,
                                        pipeline.replicas > 0 ? pipeline.replicas : processors);
  } else if (pipeline.replicas > 1) {
    plan = streams::partitionForThreads(graph, costs, stagesOf(options), pipeline.replicas);
  } else {
    plan = streams::partition(graph, costs, stagesOf(options));
  }
  plan.queue = pipeline.queue;
  plan.in_flight = pipeline.in_flight;
  return plan;
}

// Nothing that programs print is seen in the scope.
class Silence {
 public:
  Silence() : before_(setPrintHandler({})) {}
  ~Silence() { setPrintHandler(std::move(before_)); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  PrintHandler before_;
};

// The first filter whose results depend on the calls before; null when there is none.
const streams::Filter* statefulIn(const streams::StreamGraph& graph) {
  const auto found = std::ranges::find_if(graph.filters, &streams::Filter::stateful);
  return found == graph.filters.end() ? nullptr : &*found;
}

void checkState(const Options& options, const streams::StreamGraph& graph) {
  const streams::Filter* const stateful = statefulIn(graph);
  if (!stateful) return;
  const auto refuse = [&](const char* option, const char* because) {
    throw UsageError(fmt::format(
        "{}: filter '{}' writes what outlives a call, draws random numbers or prints, so {}",
        option, stateful->name, because));
  };
  if (!options.pipeline.keep.empty()) refuse("--keep", "no later run could go on behind this one");
  if (options.pipeline.verify) refuse("--verify", "calls beside the pipeline would change results");
}

// A program with state is measured as a copy, so that the first item finds what the file holds.
streams::Costs measured(const Options& options, const LoadedFile& program,
                        const streams::StreamGraph& graph, std::vector<IValue> example) {
  std::optional<LoadedFile> copied;
  Streamed copy;
  if (statefulIn(graph)) {
    copied = program.withModuleOfItsOwn();
    GraphFunction& function = copied->function(options);
    // Calls may write to their arguments.
    const std::string bytes = streams::valueBytes(IValue(makeTuple(std::move(example))));
    example = streams::valueOf(bytes, "example").elements();
    copy.program = prepared(options, *copied, function);
    if (options.pipeline.merge) copy.program = streams::mergeLinear(copy.program, example).first;
    copy.graph = streamOf(options, *copied, function, copy.program);
  }
  streams::MeasureOptions measure;
  if (!stageDevices(options).empty()) {
    for (IValue& value : example) value = onDevice(value, defaultDevice());
    measure.finish = [] { deviceBackend(DeviceType::CUDA).synchronize(defaultDevice()); };
  }
  if (!copied) return streams::measureCosts(graph, example, measure);
  const Silence silence;
  const DefaultGeneratorGuard nothing_drawn(GeneratorState::of(defaultGenerator()));
  return streams::measureCosts(copy.graph, example, measure);
}

struct Outcome {
  const streams::StreamGraph& graph;
  const streams::Plan& plan;
  std::optional<streams::Costs> costs;
  streams::RunReport run;
  std::optional<streams::Prediction> prediction;  // for this machine
  std::vector<streams::Scaling> scaling;
  int64_t verified = 0;
  int processes = 1;
  int64_t kept = 0;  // of the items, by earlier runs
};

// The name of the first filter that makes a tensor: what stands in front of it only checks.
const std::string& firstLayer(const streams::StreamGraph& graph, const streams::Stage& stage) {
  const auto begin = graph.filters.begin() + static_cast<ptrdiff_t>(stage.first);
  const auto end = graph.filters.begin() + static_cast<ptrdiff_t>(stage.last);
  const auto found = std::find_if(begin, end, [](const streams::Filter& filter) {
    return std::ranges::any_of(filter.outputs, [](const streams::Port& port) {
      return port.type.find("Tensor") != std::string::npos;
    });
  });
  return (found == end ? begin : found)->name;
}

std::string stageTable(const Outcome& o) {
  std::string text =
      fmt::format("{:>5}  {:>7}  {:>6}  {:>10}  {:>6}  {:>9}  {:>9}  {}\n", "stage", "filters",
                  "copies", "planned ms", "busy", "waits for", "waits to", "from");
  for (size_t s = 0; s < o.plan.stages.size(); ++s) {
    const streams::Stage& stage = o.plan.stages[s];
    const streams::StageTimes& times = o.run.stages[s];
    const double all =
        std::max(times.busy_seconds + times.wait_in_seconds + times.wait_out_seconds, 1e-12);
    text += fmt::format("{:>5}  {:>7}  {:>6}  {:>10.3f}  {:>5.1f}%  {:>8.1f}%  {:>8.1f}%  {}\n",
                        s + 1, stage.last - stage.first, stage.replicas, stage.milliseconds,
                        100 * times.busy_seconds / all, 100 * times.wait_in_seconds / all,
                        100 * times.wait_out_seconds / all, firstLayer(o.graph, stage));
  }
  return text;
}

std::string scalingTable(const std::vector<streams::Scaling>& scaling) {
  if (scaling.empty()) return "";
  std::string text = fmt::format("{:>7}  {:>6}  {:>8}  {:>12}  {:>10}  {:>10}\n", "threads",
                                 "stages", "machines", "items/s", "p50 ms", "p99 ms");
  for (const streams::Scaling& s : scaling) {
    const streams::Prediction& p = s.prediction;
    text += fmt::format("{:>7}  {:>6}  {:>8}  {:>12.1f}  {:>10.3f}  {:>10.3f}\n", p.threads,
                        p.stages, p.machines, p.items_per_second, p.median_latency_milliseconds,
                        p.p99_latency_milliseconds);
  }
  return text;
}

// Items a second of calls of the model one after the other; 0: they were not timed.
double plainItemsPerSecond(const Outcome& o) {
  return o.costs && o.costs->whole_milliseconds > 0 ? 1e3 / o.costs->whole_milliseconds : 0;
}

// Whether the stages should be slower than such calls.
bool plainIsFaster(const Outcome& o) {
  return o.prediction && o.prediction->items_per_second < plainItemsPerSecond(o);
}

// Where all items were there before, no time is known.
Timings latencyOf(const Outcome& o) {
  return Timings(o.run.items > 0 ? o.run.latency_milliseconds : std::vector<double>{0});
}

std::string tableOf(const Options& options, const Outcome& o) {
  const Timings latency = latencyOf(o);
  std::string text = fmt::format("{}: {}, {}, {}, {}\n", options.file,
                                 counted(static_cast<int64_t>(o.graph.filters.size()), "filter"),
                                 counted(static_cast<int64_t>(o.plan.stages.size()), "stage"),
                                 counted(o.plan.threads(), "thread"), counted(o.run.items, "item"));
  if (o.kept > 0) {
    text += fmt::format("kept                {} of earlier runs\n", counted(o.kept, "item"));
  }
  if (o.processes > 1) text += fmt::format("over                {} processes\n", o.processes);
  if (o.run.items == 0) return text;
  text += stageTable(o);
  if (const double plain = plainItemsPerSecond(o); plain > 0) {
    text += fmt::format("one after the other {:.1f} items a second\n", plain);
  }
  text += fmt::format("throughput          {:.1f} items a second\n", o.run.itemsPerSecond());
  if (o.prediction) {
    text +=
        fmt::format("predicted           {:.1f} items a second\n", o.prediction->items_per_second);
  }
  text +=
      fmt::format("latency             median {} ms, p90 {} ms, p99 {} ms\n",
                  formatMilliseconds(latency.median()), formatMilliseconds(latency.quantile(0.9)),
                  formatMilliseconds(latency.quantile(0.99)));
  if (o.verified > 0) {
    text += fmt::format("verified            {} results, the same bits as calls of the model\n",
                        o.verified);
  }
  if (plainIsFaster(o)) {
    text +=
        "Plain calls, one after the other, are predicted to be faster here than these stages: use "
        "no pipeline "
        "for this model on this machine.\n";
  }
  return text + scalingTable(o.scaling);
}

Json jsonOf(const Options& options, const Outcome& o) {
  const Timings latency = latencyOf(o);
  Json stages = Json::array();
  for (size_t s = 0; s < o.plan.stages.size(); ++s) {
    const streams::Stage& stage = o.plan.stages[s];
    const streams::StageTimes& times = o.run.stages[s];
    stages.push_back({{"first", firstLayer(o.graph, stage)},
                      {"filters", stage.last - stage.first},
                      {"replicas", stage.replicas},
                      {"planned_ms", stage.milliseconds},
                      {"bytes", stage.bytes},
                      {"items", times.items},
                      {"busy_s", times.busy_seconds},
                      {"wait_in_s", times.wait_in_seconds},
                      {"wait_out_s", times.wait_out_seconds}});
  }
  Json json = {{"model", options.file},           {"filters", o.graph.filters.size()},
               {"threads", o.plan.threads()},     {"items", o.run.items},
               {"seconds", o.run.seconds},        {"items_per_s", o.run.itemsPerSecond()},
               {"median_ms", latency.median()},   {"p90_ms", latency.quantile(0.9)},
               {"p99_ms", latency.quantile(0.99)}};
  if (o.costs) json["one_by_one_items_per_s"] = 1e3 / std::max(o.costs->whole_milliseconds, 1e-9);
  if (o.prediction) json["predicted_items_per_s"] = o.prediction->items_per_second;
  if (o.costs && o.prediction) json["plain_calls_are_faster"] = plainIsFaster(o);
  if (o.processes > 1) json["processes"] = o.processes;
  if (o.kept > 0) json["kept"] = o.kept;
  if (o.verified > 0) json["verified"] = o.verified;
  json["stages"] = std::move(stages);
  if (!o.scaling.empty()) {
    Json rows = Json::array();
    for (const streams::Scaling& s : o.scaling) {
      rows.push_back({{"threads", s.prediction.threads},
                      {"stages", s.prediction.stages},
                      {"machines", s.prediction.machines},
                      {"items_per_s", s.prediction.items_per_second},
                      {"median_ms", s.prediction.median_latency_milliseconds},
                      {"p99_ms", s.prediction.p99_latency_milliseconds}});
    }
    json["simulated"] = std::move(rows);
  }
  return json;
}

// What the plan should do on this machine with as many items: by what its stages took beside each other
// before the items came, because they share caches, memory and processors; otherwise by the costs that it
// remembers. Counted as a run counts, with the time in which it fills and empties.
streams::Prediction predictionHere(streams::Plan plan, const streams::RunReport& warm_up,
                                   int64_t processors, int64_t items) {
  constexpr int64_t kMostItems = 100'000;
  std::vector<std::vector<double>> observed;
  const bool is_known = streams::observe(warm_up, plan, observed);
  streams::Cluster here;
  // Times beside each other hold for as many processors as there are threads.
  here.machines.push_back({"here", 1, is_known ? plan.threads() : processors, 1});
  here.queue = plan.queue;
  if (is_known) {
    here.within.latency_milliseconds = streams::latencyOf(warm_up, plan, here, observed);
  }
  here.items = std::clamp<int64_t>(items, 1, kMostItems);
  streams::Prediction prediction = streams::simulate(plan, here, observed);
  if (items <= kMostItems && prediction.milliseconds > 0) {
    prediction.items_per_second = 1e3 * static_cast<double>(items) / prediction.milliseconds;
  }
  return prediction;
}

// What the results in a file of kept items depend on.
streams::KeptItems::Facts factsOf(const Options& options) {
  const PipelineOptions& pipeline = options.pipeline;
  std::string inputs;
  for (const std::string& input : options.inputs) inputs += input + " ";
  if (!options.inputs_file.empty()) inputs += streams::fileMark(options.inputs_file);
  std::string plugins;
  for (const std::string& plugin : options.plugins) {
    // A name alone is looked up where the system has its libraries.
    plugins += (plugin.find('/') == std::string::npos ? plugin : streams::fileMark(plugin)) + " ";
  }
  return {{"model", streams::fileMark(options.file)},
          {"method", options.method.empty() ? options.function : options.method},
          {"--run", pipeline.data.empty() ? "" : streams::fileMark(pipeline.data)},
          {"input", inputs},
          {"--seed", options.seed ? fmt::format("{}", *options.seed) : ""},
          {"--eval", options.eval ? "yes" : "no"},
          {"--merge", pipeline.merge ? "yes" : "no"},
          {"--optimize", options.optimize},
          {"--device", options.device},
          {"--threads", fmt::format("{}", options.threads)},
          {"--plugin", plugins}};
}

// Runs the items and collects what is asked for.
class Runner {
 public:
  // `messages` is null where this process is alone.
  Runner(const Options& options, const Streamed& streamed, const Items& items,
         const streams::Plan& plan, distributed::Messages* messages)
      : options_(options), streamed_(streamed), items_(items), threads_(plan.threads()) {
    if (messages) {
      over_processes_ = std::make_unique<streams::ProcessPipeline>(*messages, streamed.graph, plan,
                                                                   placing(options));
    } else {
      const streams::StageRange all{0, plan.stages.size()};
      pipeline_ = std::make_unique<streams::Pipeline>(streamed.graph, plan, all,
                                                      placing(options)(plan.stages.size(), all));
    }
    run_options_.threads_per_stage = options.threads > 0 ? options.threads : 1;
    if (!options.pipeline.keep.empty()) {
      if (!items.areGiven() && options.pipeline.items == 0) {
        throw CommandLineError("--keep: expected --run or --items, so that the items have an end");
      }
      kept_.emplace(options.pipeline.keep, factsOf(options));
    }
  }

  streams::RunReport run() {
    count_ = items_.count();
    std::optional<std::chrono::steady_clock::time_point> end;
    first_ = kept_ ? kept_->count() : 0;
    if (!items_.areGiven()) {
      count_ = options_.pipeline.items == 0 ? INT64_MAX : options_.pipeline.items;
    }
    first_ = std::min(first_, count_);
    // Calls before the first item would change what a program with state gives for it.
    if (first_ < count_ && !statefulIn(streamed_.graph)) warmUp();
    if (count_ == INT64_MAX) {
      const double seconds = options_.duration > 0 ? options_.duration : 2;
      end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                   std::chrono::duration<double>(seconds));
    }
    const bool shows = !options_.json && isatty(STDERR_FILENO);
    const auto source = [&](int64_t number) -> std::optional<std::vector<IValue>> {
      const int64_t index = first_ + number;
      if (index >= count_ || (end && index > 0 && std::chrono::steady_clock::now() >= *end)) {
        return std::nullopt;
      }
      return items_.areGiven() ? items_[index] : items_.example();
    };
    const auto sink = [&](int64_t number, IValue result) {
      const int64_t index = first_ + number;
      if (options_.pipeline.verify) check(index, result);
      if (shows && index % 64 == 0) {
        std::fputs(fmt::format("\r{} items", index + 1).c_str(), stderr);
      }
      if (kept_) {
        kept_->keep(result);
      } else if (!options_.output_file.empty()) {
        results_.push_back(std::move(result));
      }
    };
    run_options_.first_item = first_;
    try {
      streams::RunReport report = runItems(source, sink);
      if (shows) std::fputs("\r               \r", stderr);
      if (kept_) {
        kept_->sync();
        if (!options_.output_file.empty()) results_ = kept_->read(count_);
      }
      write();
      return report;
    } catch (const Error&) {
      // What is finished is kept.
      if (!kept_) write();
      throw;
    }
  }

  int64_t verified() const { return verified_; }
  // Items that earlier runs had finished.
  int64_t first() const { return first_; }
  // Of the last run before the items; empty when there was none.
  const streams::RunReport& warmUpReport() const { return warm_; }

 private:
  streams::RunReport runItems(const streams::ItemSource& source, const streams::ResultSink& sink) {
    return over_processes_ ? over_processes_->run(source, sink, run_options_)
                           : pipeline_->run(source, sink, run_options_);
  }
  // Until machine code is there: it may round sums otherwise than operators do. The last round goes on for
  // a while, so that it tells what stages take while the others run, too: items with which the pipeline
  // fills count little among its items.
  void warmUp() {
    constexpr int kRounds = 3;
    constexpr std::chrono::milliseconds kSteady(300), kMost(2000);
    for (int round = 0; round < kRounds; ++round) {
      const int64_t items = std::max<int64_t>(threads_, 4);
      const auto begin = std::chrono::steady_clock::now();
      const bool is_last = round + 1 == kRounds;
      const auto goes_on = [&](int64_t index) {
        const auto time = std::chrono::steady_clock::now() - begin;
        return is_last && (time < kSteady || (index < 12 * items && time < kMost));
      };
      warm_ = runItems(
          [&](int64_t index) -> std::optional<std::vector<IValue>> {
            if (index < items || goes_on(index)) return items_.example();
            return std::nullopt;
          },
          [](int64_t, IValue) {});
      if (options_.pipeline.verify) expected(items_.example());
      waitForCompiles();
    }
  }

  IValue expected(std::vector<IValue> arguments) {
    if (stageDevices(options_).empty()) {
      return callFunction(*streamed_.program, std::move(arguments));
    }
    for (IValue& argument : arguments) argument = onDevice(argument, defaultDevice());
    return onDevice(callFunction(*streamed_.program, std::move(arguments)), Device());
  }

  void check(int64_t index, const IValue& result) {
    const IValue once = expected(items_.areGiven() ? items_[index] : items_.example());
    const std::vector<std::string> lines = differences(result, once, {}, "result");
    if (!lines.empty()) {
      throw UsageError(
          fmt::format("--verify: item {}: the pipeline's result differs from the model's\n{}",
                      index, fmt::join(lines, "\n")));
    }
    ++verified_;
  }

  void write() {
    if (options_.output_file.empty()) return;
    saveValue(IValue(makeTuple(std::move(results_))), options_.output_file);
    results_.clear();
  }

  const Options& options_;
  const Streamed& streamed_;
  const Items& items_;
  const int64_t threads_;
  std::unique_ptr<streams::Pipeline> pipeline_;
  std::unique_ptr<streams::ProcessPipeline> over_processes_;
  std::optional<streams::KeptItems> kept_;
  streams::PipelineOptions run_options_;
  int64_t first_ = 0;
  int64_t count_ = 0;
  int64_t verified_ = 0;
  streams::RunReport warm_;
  std::vector<IValue> results_;
};

// Whether what was merged gives the same numbers, up to rounding.
void checkMerged(GraphFunction& program, GraphFunction& merged,
                 const std::vector<IValue>& arguments) {
  const IValue before = callFunction(program, arguments), after = callFunction(merged, arguments);
  if (!before.isTensor()) return;
  const double apart = relativeDifference(before.toTensor(), after.toTensor());
  // Written so that what is not a number does not pass.
  if (!(apart <= 1e-5)) {
    throw UsageError(
        fmt::format("--verify: merged filters differ by {:.3g} of the largest number", apart));
  }
}

void runPipeline(const Options& options, distributed::Messages* messages) {
  const PipelineOptions& pipeline = options.pipeline;
  const LoadedFile program = LoadedFile::load(options.file, devicesOf(options));
  if (program.isArchive() && options.eval) program.module().eval();
  const std::vector<Device> devices = stageDevices(options);
  if (!devices.empty()) placeOnDevice(options, program, {});
  GraphFunction& function = program.function(options);
  Streamed streamed{prepared(options, program, function), {}};
  // To look at the stream graph needs no input, unless it depends on that.
  const bool only_looks = options.inputs.empty() && options.inputs_file.empty() &&
                          pipeline.data.empty() && !pipeline.stream.empty() && !pipeline.merge &&
                          pipeline.chunk == 0;
  const bool is_first = !messages || messages->rank() == 0;
  if (messages && (only_looks || pipeline.chunk > 0)) {
    throw CommandLineError("several processes: expected items, neither --chunk nor --stream alone");
  }
  std::optional<Items> given;
  if (!only_looks && (is_first || pipeline.merge))
    given.emplace(options, program, function, *streamed.program);
  std::shared_ptr<GraphFunction> unmerged;
  if (pipeline.merge) {
    const auto [merged, report] = streams::mergeLinear(streamed.program, given->example());
    unmerged = std::exchange(streamed.program, merged);
    if (!options.json && is_first) {
      print(fmt::format("{} linear filters merged into {}\n", report.before, report.after));
    }
  }
  if (pipeline.chunk > 0) {
    if (unmerged && pipeline.verify) checkMerged(*unmerged, *streamed.program, given->example());
    if (!devices.empty()) throw CommandLineError("--chunk runs on the CPU");
    return runOverTime(options, streamed.program, given->example(), given->rows(),
                       [&](const Node& node) { return placeOf(function, node); });
  }
  streamed.graph = streamOf(options, program, function, streamed.program);
  const streams::StreamGraph& graph = streamed.graph;
  checkState(options, graph);
  if (unmerged && pipeline.verify) checkMerged(*unmerged, *streamed.program, given->example());
  if (!is_first) return streams::serveProcessPipeline(*messages, graph, placing(options));
  if (!pipeline.stream.empty()) {
    writeDrawing(pipeline.stream, streams::streamDot(graph), streams::printStream(graph));
    if (only_looks) return;
  }
  const Items& items = *given;
  std::optional<streams::Costs> costs;
  streams::Plan plan;
  const bool planned = !pipeline.plan.empty() && std::filesystem::exists(pipeline.plan);
  if (planned) {
    plan = streams::parsePlan(readTextFile(pipeline.plan), graph);
  }
  if (!planned || !pipeline.cluster.empty()) {
    costs = measured(options, program, graph, items.example());
  }
  if (!planned) {
    plan = makePlan(options, graph, *costs, messages ? messages->size() : 1);
    const std::string text = pipeline.plan.empty() ? "" : streams::planText(plan, graph);
    if (pipeline.plan == "-") print(text);
    if (!text.empty() && pipeline.plan != "-") writeFile(pipeline.plan, text);
  }
  Runner runner(options, streamed, items, plan, messages);
  Outcome outcome{graph, plan, costs, runner.run(), std::nullopt, {}};
  outcome.verified = runner.verified();
  outcome.kept = runner.first();
  outcome.processes = messages ? messages->size() : 1;
  outcome.prediction =
      predictionHere(plan, runner.warmUpReport(),
                     devices.empty() ? availableProcessors() : static_cast<int64_t>(devices.size()),
                     outcome.run.items);
  if (!pipeline.cluster.empty()) {
    outcome.scaling = streams::predictScaling(
        graph, *costs, streams::parseCluster(readTextFile(pipeline.cluster)));
  }
  if (!pipeline.picture.empty()) {
    writeDrawing(pipeline.picture, streams::planDot(graph, plan, &outcome.run), "");
  }
  print(options.json ? jsonLine(jsonOf(options, outcome)) : tableOf(options, outcome));
}

}  // namespace

void pipelineVerb(const Options& options) {
  applySettings(options);
  const PipelineOptions& pipeline = options.pipeline;
  if (pipeline.stages != "auto") stagesOf(options);
  checkDrawing(pipeline.stream, "--stream", true);
  checkDrawing(pipeline.picture, "--picture", false);
  if (!options.output_file.empty() && options.output_file.ends_with(".npy")) {
    throw CommandLineError("--output: expected a name that ends in .pt, for the tuple of results");
  }
  const std::unique_ptr<distributed::Messages> messages = distributed::openMessages();
  if (!messages) return runPipeline(options, nullptr);
  try {
    runPipeline(options, messages.get());
  } catch (const std::exception& e) {
    // The others end, too, and say why.
    messages->fail(e.what());
    throw;
  }
}

}  // namespace wick::cli
