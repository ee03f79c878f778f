#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "core/device_backend.h"
#include "core/output_file.h"
#include "ir/call_layer.h"
#include "runtime/call.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/observer.h"
#include "tools/device_times.h"
#include "tools/json_text.h"
#include "tools/report.h"
#include "tools/timing.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kIterations = 10;
constexpr int kWarmUp = 2;
// Beyond this a trace no longer opens in a viewer.
constexpr size_t kMaxEvents = 2'000'000;

struct Row {
  std::string op;
  std::string location;
  std::string inside;  // of a fused kernel, all its operators in their order
  size_t calls = 0;
  double us = 0;
  double device_us = 0;
  int64_t bytes = 0;
};

struct Event {
  const Node* node;
  double begin_us;
  double us;
  size_t thread;
  int64_t bytes;
};

// The module and the position of the node itself in the source, also when it was inlined.
std::string locationOf(GraphFunction& outermost, const Node& node) {
  std::string location = placeOf(outermost, node);
  return location.empty() ? "?" : location;
}

const Graph& groupBody(const Node& group) {
  return *group.subgraph(attr::Subgraph);
}
// The positions of the operators in a group, each once.
std::string locationsIn(GraphFunction& outermost, const Graph& body) {
  std::string text;
  std::set<std::string> seen;
  for (const Node* node : body.nodes()) {
    std::string location = locationOf(outermost, *node);
    if (node->kind() == prim::Constant || !seen.insert(location).second) continue;
    // The file is named once.
    if (seen.size() > 1) location = " " + location.substr(location.rfind('/') + 1);
    text += location;
  }
  return text;
}

// The operators in a group; its kernel's name says only as much as a symbol can hold.
std::string operatorsIn(const Graph& body) {
  std::string text;
  for (const Node* node : body.nodes()) {
    if (node->kind() == prim::Constant) continue;
    if (!text.empty()) text += " ";
    text += node->kind().qualString();
  }
  return text;
}

class Profile : public OperatorObserver {
 public:
  // `device` may be null, and outlives this.
  Profile(GraphFunction& outermost, bool keep_events, DeviceTimes* device)
      : outermost_(outermost), keep_events_(keep_events), device_(device), started_(Clock::now()) {}

  void called(const OperatorCall& call) override {
    if (device_) device_->called(call);
    std::lock_guard lock(mutex_);
    Row& row = rows_[&call.node];
    if (row.calls == 0) {
      row.op = call.op ? call.op->schema().name() : fusionGroupName(groupBody(call.node));
      row.location = call.op ? locationOf(outermost_, call.node)
                             : locationsIn(outermost_, groupBody(call.node));
      if (!call.op) row.inside = operatorsIn(groupBody(call.node));
    }
    ++row.calls;
    row.us += microseconds(call.end - call.begin);
    row.bytes += call.bytes;
    if (!keep_events_) return;
    if (events_.size() >= kMaxEvents) {
      ++events_left_out_;
      return;
    }
    events_.push_back({&call.node, microseconds(call.begin - started_),
                       microseconds(call.end - call.begin), threadNumber(), call.bytes});
  }

  // By operator and position, the most expensive first.
  std::vector<Row> rows() const {
    std::map<std::tuple<std::string, std::string, std::string>, Row> merged;
    for (const auto& [node, row] : rows_) {
      Row& to = merged[{row.op, row.location, row.inside}];
      to.op = row.op;
      to.location = row.location;
      to.inside = row.inside;
      to.calls += row.calls;
      to.us += row.us;
      if (device_) to.device_us += device_->usOf(node);
      to.bytes += row.bytes;
    }
    std::vector<Row> sorted;
    for (auto& [key, row] : merged) sorted.push_back(std::move(row));
    std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
      return a.device_us != b.device_us ? a.device_us > b.device_us : a.us > b.us;
    });
    return sorted;
  }

  size_t eventsLeftOut() const { return events_left_out_; }

  // The format that chrome://tracing and Perfetto read: complete events, times in microseconds.
  void writeTrace(const std::string& path) const {
    nlohmann::json events = nlohmann::json::array();
    for (const Event& e : events_) {
      const Row& row = rows_.at(e.node);
      events.push_back(
          {{"name", row.op},
           {"cat", "operator"},
           {"ph", "X"},
           {"ts", e.begin_us},
           {"dur", e.us},
           {"pid", getpid()},
           {"tid", e.thread},
           {"args", {{"source", row.location}, {"bytes", e.bytes}, {"inside", row.inside}}}});
    }
    if (device_) addDevices(events);
    writeFile(path,
              jsonLine(nlohmann::json{{"traceEvents", events},
                                      {"displayTimeUnit", "ns"},
                                      {"otherData", {{"events_left_out", events_left_out_}}}}));
  }

 private:
  // A device is another process of the trace, a stream a thread of it.
  void addDevices(nlohmann::json& events) const {
    std::set<uint32_t> named;
    for (const DeviceSpan& span : device_->spans()) {
      const std::string process = fmt::format("cuda:{}", span.device);
      if (named.insert(span.device).second) {
        events.push_back({{"name", "process_name"},
                          {"ph", "M"},
                          {"pid", process},
                          {"args", {{"name", process}}}});
      }
      events.push_back({{"name", span.name},
                        {"cat", "device"},
                        {"ph", "X"},
                        {"ts", microseconds(span.begin - started_)},
                        {"dur", microseconds(span.end - span.begin)},
                        {"pid", process},
                        {"tid", span.stream}});
    }
  }
  size_t threadNumber() {
    return threads_.try_emplace(std::this_thread::get_id(), threads_.size() + 1).first->second;
  }

  GraphFunction& outermost_;
  const bool keep_events_;
  DeviceTimes* const device_;
  const Clock::time_point started_;
  std::mutex mutex_;
  std::map<const Node*, Row> rows_;
  std::vector<Event> events_;
  size_t events_left_out_ = 0;  // the trace holds the first kMaxEvents
  std::map<std::thread::id, size_t> threads_;
};

// Calls that operators make of other operators: kernels in C++, and formulas of gradients. The
// interpreter's own calls are rows of Profile.
class NestedCalls : public CallLayer {
 public:
  struct Row {
    std::string op;
    std::string within;
    size_t calls = 0;
    double us = 0;
  };

  void call(const LayerCall& call) override {
    const Operator* const outer = std::exchange(running(), &call.op);
    const auto begin = Clock::now();
    try {
      callBelow(CallLayerSlot::Observe, call);
    } catch (...) {
      running() = outer;
      throw;
    }
    running() = outer;
    if (outer) add(call.op, *outer, microseconds(Clock::now() - begin));
  }

  // The most expensive first.
  std::vector<Row> rows() const {
    std::vector<Row> sorted;
    for (const auto& [operators, row] : rows_) {
      sorted.push_back(row);
      sorted.back().op = operators.first->schema().name();
      sorted.back().within = operators.second->schema().name();
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Row& a, const Row& b) { return a.us > b.us; });
    return sorted;
  }

 private:
  // The operator whose kernel runs on this thread.
  static const Operator*& running() {
    static thread_local const Operator* op = nullptr;
    return op;
  }
  void add(const Operator& op, const Operator& outer, double us) {
    std::lock_guard lock(mutex_);
    Row& row = rows_[{&op, &outer}];
    ++row.calls;
    row.us += us;
  }

  std::mutex mutex_;
  std::map<std::pair<const Operator*, const Operator*>, Row> rows_;
};

std::string nestedTable(const std::vector<NestedCalls::Row>& rows) {
  if (rows.empty()) return "";
  std::string text = "\nof these, calls that operators make of others:\n";
  text += fmt::format("{:>12}  {:>9}  {:>10}  {:<28} {}\n", "total us", "calls", "us a call",
                      "operator", "within");
  for (const NestedCalls::Row& row : rows) {
    text += fmt::format("{:12.1f}  {:9}  {:10.2f}  {:<28} {}\n", row.us, row.calls,
                        row.us / static_cast<double>(row.calls), row.op, row.within);
  }
  return text;
}

std::string deviceTable(const DeviceTimes& device) {
  const std::vector<DeviceRow> rows = device.rows();
  std::string text;
  if (!rows.empty()) {
    text += fmt::format("\n{:>12}  {:>9}  {:>10}  {:>12}  {}\n", "device us", "calls", "us a call",
                        "bytes copied", "kernel");
  }
  for (const DeviceRow& row : rows) {
    text += fmt::format("{:12.1f}  {:9}  {:10.2f}  {:12}  {}\n", row.us, row.calls,
                        row.us / static_cast<double>(row.calls), row.bytes, row.name);
  }
  return text + device.note() + "\n";
}

std::string table(const std::vector<Row>& rows, double wall_us, int iterations,
                  const DeviceTimes* device) {
  double in_operators = 0;
  for (const Row& row : rows) in_operators += row.us;
  const auto deviceColumn = [&](const std::string& text) {
    return device ? fmt::format("{:>12}  ", text) : std::string();
  };
  std::string text = fmt::format("{:>7}  {:>12}  {}{:>9}  {:>10}  {:>12}  {:<28} {}\n", "share",
                                 "total us", deviceColumn("device us"), "calls", "us a call",
                                 "bytes kept", "operator", "source");
  std::string legend;
  size_t groups = 0;
  for (const Row& row : rows) {
    std::string name = row.op;
    if (!row.inside.empty()) {
      name += fmt::format(" [{}]", ++groups);
      legend += fmt::format("[{}] {}\n", groups, row.inside);
    }
    text += fmt::format("{:6.1f}%  {:12.1f}  {}{:9}  {:10.2f}  {:12}  {:<28} {}\n",
                        wall_us > 0 ? 100 * row.us / wall_us : 0.0, row.us,
                        deviceColumn(fmt::format("{:.1f}", row.device_us)), row.calls,
                        row.us / static_cast<double>(row.calls), row.bytes, name, row.location);
  }
  text += legend;
  if (device) text += deviceTable(*device);
  text += fmt::format(
      "{} calls of the program: {:.1f} us, {:.1f} us of that in operators; peak tensor memory "
      "{}\n",
      iterations, wall_us, in_operators, formatBytes(static_cast<double>(peakAllocatedBytes())));
  return text;
}

}  // namespace

void profileVerb(const Options& options) {
  applySettings(options);
  const LoadedFile program = LoadedFile::load(options.file);
  applyMode(options, program);
  const std::shared_ptr<GraphFunction> chosen = functionFor(options, program);
  GraphFunction& declared = *chosen;
  const Arguments arguments = argumentsFor(options, program, declared);
  placeOnDevice(options, program, arguments);
  const std::shared_ptr<GraphFunction> prepared = preparedFor(options, program, declared);
  GraphFunction& function = prepared ? *prepared : declared;
  const auto once = [&](OperatorObserver* observer) {
    RunOptions run;
    run.observer = observer;
    if (prepared) {
      callFunction(function, arguments.positional, arguments.named, run);
    } else {
      program.call(options, function, arguments.positional, arguments.named, run);
    }
  };
  for (int i = 0; i < kWarmUp; ++i) once(nullptr);
  const int iterations = options.iterations > 0 ? options.iterations : kIterations;
  const Device device = defaultDevice();
  const auto wait = [&] {
    if (!device.isCpu()) deviceBackend(device.type).synchronize(device);
  };
  wait();
  const std::unique_ptr<DeviceTimes> times = DeviceTimes::make(device);
  Profile profile(function, !options.trace_file.empty(), times.get());
  const auto begin = Clock::now();
  NestedCalls nested;
  {
    CallLayerScope scope(CallLayerSlot::Observe, &nested);
    for (int i = 0; i < iterations; ++i) once(&profile);
  }
  wait();
  const double wall_us = microseconds(Clock::now() - begin);
  if (times) times->end();
  if (!options.trace_file.empty()) profile.writeTrace(options.trace_file);
  const std::vector<Row> rows = profile.rows();
  if (!options.json) {
    print(table(rows, wall_us, iterations, times.get()) + nestedTable(nested.rows()));
    if (std::string plans = describePlans(function); !plans.empty()) print(plans + "\n");
    if (profile.eventsLeftOut() > 0) {
      print(fmt::format("the trace leaves out the last {} events\n", profile.eventsLeftOut()));
    }
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    list.push_back({{"operator", row.op},
                    {"source", row.location},
                    {"calls", row.calls},
                    {"us", row.us},
                    {"bytes", row.bytes}});
    if (times) list.back()["device_us"] = row.device_us;
    if (!row.inside.empty()) list.back()["inside"] = row.inside;
  }
  nlohmann::ordered_json inner = nlohmann::ordered_json::array();
  for (const NestedCalls::Row& row : nested.rows()) {
    inner.push_back(
        {{"operator", row.op}, {"within", row.within}, {"calls", row.calls}, {"us", row.us}});
  }
  const GraphExecutor::Statistics plans = GraphExecutor::of(function).statistics();
  nlohmann::ordered_json all = {{"iterations", iterations},
                                {"wall_us", wall_us},
                                {"peak_tensor_bytes", peakAllocatedBytes()},
                                {"peak_rss_bytes", peakResidentBytes()},
                                {"plans", plans.plans},
                                {"bail_outs", plans.bail_outs},
                                {"operators", list},
                                {"nested", inner}};
  if (times) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const DeviceRow& row : times->rows()) {
      kernels.push_back(
          {{"name", row.name}, {"calls", row.calls}, {"us", row.us}, {"bytes", row.bytes}});
    }
    all["device"] = {{"note", times->note()}, {"kernels", kernels}};
  }
  print(jsonLine(all));
}

}  // namespace wick::cli
