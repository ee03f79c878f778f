#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

#include "core/device_backend.h"
#include "core/output_file.h"
#include "core/source_origin.h"
#include "ir/call_layer.h"
#include "runtime/call.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/observer.h"
#include "runtime/module_paths.h"
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

// Dtypes and sizes of the tensors among the arguments of a call, and of those in lists.
struct Shapes {
  static constexpr size_t kMost = 12;
  std::vector<std::pair<DType, DimVector>> tensors;
  bool more = false;  // than are kept

  void note(std::span<const IValue> values) {
    for (const IValue& v : values) {
      if (v.isList()) {
        if (v.toList().element_type->kind() == TypeKind::Tensor) note(v.elements());
      } else if (v.isTensor() && v.toTensor().defined()) {
        if (tensors.size() == kMost) {
          more = true;
          return;
        }
        const Tensor t = v.toTensor();
        tensors.emplace_back(t.dtype(), DimVector(t.sizes()));
      }
    }
  }
  bool operator==(const Shapes&) const = default;
};

// "float32[1, 3]", each.
std::vector<std::string> describe(const Shapes& shapes) {
  std::vector<std::string> all;
  for (const auto& [dtype, sizes] : shapes.tensors) {
    all.push_back(fmt::format("{}[{}]", toString(dtype), fmt::join(sizes, ", ")));
  }
  if (shapes.more) all.emplace_back("…");
  return all;
}

// "1x3 4xint64": for a column, where float32 goes without saying.
std::string brief(const Shapes& shapes) {
  std::string text;
  for (const auto& [dtype, sizes] : shapes.tensors) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}", fmt::join(sizes, "x"));
    if (sizes.empty()) text += dtype == DType::Float ? "number" : "";
    if (dtype != DType::Float) text += (sizes.empty() ? "" : "x") + std::string(toString(dtype));
  }
  return text + (shapes.more ? " …" : "");
}

struct ProfileRow {
  std::string op;
  std::string module;     // "layer1.0.conv1"; empty: of none that is known
  std::string source;     // the position in the user's own program
  std::string inside;     // of a fused kernel, all its operators in their order
  Shapes shapes;          // of the first call
  bool reshaped = false;  // other calls had other ones
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

// The module, and the position in its source.
std::string locationOf(const ProfileRow& row) {
  if (row.module.empty()) return row.source.empty() ? "?" : row.source;
  return row.source.empty() ? row.module : row.module + " " + row.source;
}

const Graph& groupBody(const Node& group) {
  return *group.subgraph(attr::Subgraph);
}
// Sets the modules and positions of the operators in a group, each once.
void placeGroup(GraphFunction& outermost, const Graph& body, ProfileRow& row) {
  std::set<std::string> modules, sources;
  for (const Node* node : body.nodes()) {
    if (node->kind() == prim::Constant) continue;
    if (const std::string module = modulePathOf(outermost, *node);
        !module.empty() && modules.insert(module).second) {
      row.module += (row.module.empty() ? "" : " ") + module;
    }
    std::string source = userRange(node->range()).location();
    if (source.empty() || !sources.insert(source).second) continue;
    // The file is named once.
    if (!row.source.empty()) source = " " + source.substr(source.rfind('/') + 1);
    row.source += source;
  }
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

// The rows of a map, the most expensive first.
template <class Key>
std::vector<ProfileRow> sorted(const std::map<Key, ProfileRow>& rows) {
  std::vector<ProfileRow> all;
  for (const auto& [key, row] : rows) all.push_back(row);
  std::stable_sort(all.begin(), all.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return a.device_us != b.device_us ? a.device_us > b.device_us : a.us > b.us;
  });
  return all;
}

// The rows added up by operator.
std::vector<ProfileRow> byOperator(const std::vector<ProfileRow>& rows) {
  std::map<std::string, ProfileRow> sums;
  for (const ProfileRow& row : rows) {
    ProfileRow& to = sums[row.op];
    to.op = row.op;
    to.calls += row.calls;
    to.us += row.us;
    to.device_us += row.device_us;
    to.bytes += row.bytes;
  }
  return sorted(sums);
}

class Profile : public OperatorObserver {
 public:
  // `outermost` is the method or function as it was written, also where a prepared form of it runs: its calls
  // tell the modules. `device` may be null, and outlives this.
  Profile(GraphFunction& outermost, bool keep_events, DeviceTimes* device)
      : outermost_(outermost), keep_events_(keep_events), device_(device), started_(Clock::now()) {}

  void calling(std::span<const IValue> arguments) override {
    Shapes& shapes = shapesOfCall();
    shapes = Shapes();
    shapes.note(arguments);
  }

  void called(const OperatorCall& call) override {
    if (device_) device_->called(call);
    std::lock_guard lock(mutex_);
    ProfileRow& row = rows_[&call.node];
    if (row.calls == 0) {
      row.op = call.op ? call.op->schema().name() : fusionGroupName(groupBody(call.node));
      if (call.op) {
        row.module = modulePathOf(outermost_, call.node);
        row.source = userRange(call.node.range()).location();
      } else {
        placeGroup(outermost_, groupBody(call.node), row);
        row.inside = operatorsIn(groupBody(call.node));
      }
      row.shapes = shapesOfCall();
    } else if (!row.reshaped) {
      row.reshaped = !(row.shapes == shapesOfCall());
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
  std::vector<ProfileRow> rows() const {
    std::map<std::tuple<std::string, std::string, std::string>, ProfileRow> merged;
    for (const auto& [node, row] : rows_) {
      const auto [at, is_new] = merged.try_emplace({row.op, locationOf(row), row.inside}, row);
      ProfileRow& to = at->second;
      if (!is_new) {
        to.reshaped = to.reshaped || row.reshaped || !(to.shapes == row.shapes);
        to.calls += row.calls;
        to.us += row.us;
        to.bytes += row.bytes;
      }
      if (device_) to.device_us += device_->usOf(node);
    }
    return sorted(merged);
  }

  size_t eventsLeftOut() const { return events_left_out_; }

  // The format that chrome://tracing and Perfetto read: complete events, times in microseconds.
  void writeTrace(const std::string& path) const {
    nlohmann::json events = nlohmann::json::array();
    for (const Event& e : events_) {
      const ProfileRow& row = rows_.at(e.node);
      nlohmann::json about = {{"module", row.module}, {"source", row.source}, {"bytes", e.bytes}};
      // The shapes of the node's first call; others may have had other ones.
      about[row.reshaped ? "first_arguments" : "arguments"] = describe(row.shapes);
      if (!row.inside.empty()) about["inside"] = row.inside;
      events.push_back({{"name", row.op},
                        {"cat", "operator"},
                        {"ph", "X"},
                        {"ts", e.begin_us},
                        {"dur", e.us},
                        {"pid", getpid()},
                        {"tid", e.thread},
                        {"args", std::move(about)}});
    }
    nameTracks(events);
    if (device_) addDevices(events);
    writeFile(path,
              jsonLine(nlohmann::json{{"traceEvents", events},
                                      {"displayTimeUnit", "ns"},
                                      {"otherData", {{"events_left_out", events_left_out_}}}}));
  }

 private:
  // The tensors of the call that is under way on this thread.
  static Shapes& shapesOfCall() {
    static thread_local Shapes shapes;
    return shapes;
  }
  void nameTracks(nlohmann::json& events) const {
    const auto name = [&](const char* what, size_t thread, const std::string& text) {
      events.push_back({{"name", what},
                        {"ph", "M"},
                        {"pid", getpid()},
                        {"tid", thread},
                        {"args", {{"name", text}}}});
    };
    name("process_name", 0, "torchscript-cli");
    for (const auto& [id, number] : threads_) {
      name("thread_name", number, number == 1 ? "calls" : fmt::format("fork {}", number - 1));
    }
  }
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
  std::map<const Node*, ProfileRow> rows_;
  std::vector<Event> events_;
  size_t events_left_out_ = 0;  // the trace holds the first kMaxEvents
  std::map<std::thread::id, size_t> threads_;
};

// Calls that operators make of other operators: kernels in C++, and formulas of gradients. The
// interpreter's own calls are rows of Profile.
class NestedCalls : public CallLayer {
 public:
  struct ProfileRow {
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
  std::vector<ProfileRow> rows() const {
    std::vector<ProfileRow> sorted;
    for (const auto& [operators, row] : rows_) {
      sorted.push_back(row);
      sorted.back().op = operators.first->schema().name();
      sorted.back().within = operators.second->schema().name();
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const ProfileRow& a, const ProfileRow& b) { return a.us > b.us; });
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
    ProfileRow& row = rows_[{&op, &outer}];
    ++row.calls;
    row.us += us;
  }

  std::mutex mutex_;
  std::map<std::pair<const Operator*, const Operator*>, ProfileRow> rows_;
};

std::string nestedTable(const std::vector<NestedCalls::ProfileRow>& rows) {
  if (rows.empty()) return "";
  std::string text = "\nof these, calls that operators make of others:\n";
  text += fmt::format("{:>12}  {:>9}  {:>10}  {:<28} {}\n", "total us", "calls", "us a call",
                      "operator", "within");
  for (const NestedCalls::ProfileRow& row : rows) {
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

// Cut to this number of characters of UTF-8; then the last one is an ellipsis.
std::string cut(const std::string& text, size_t most) {
  size_t at = 0;
  for (size_t count = 0; at < text.size(); ++count) {
    if (count + 1 == most) {
      const size_t rest = text.size() - at;
      if (rest == 1) break;
      return text.substr(0, at) + "…";
    }
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return text;
}

struct Profiled {
  std::vector<ProfileRow> rows;
  double wall_us;
  int iterations;
  const DeviceTimes* device;  // null: none
  size_t top;                 // rows that are shown; 0: all

  size_t shown() const { return top == 0 ? rows.size() : std::min(top, rows.size()); }
};

// Times of one call of the program, as the line below the table adds them up.
double usOf(std::span<const ProfileRow> rows) {
  double us = 0;
  for (const ProfileRow& row : rows) us += row.us;
  return us;
}

// "[2] aten::add aten::relu" of each group that the table numbers, and its column of names.
std::vector<std::string> namesOf(std::span<const ProfileRow> rows, std::string& legend) {
  std::vector<std::string> names;
  size_t groups = 0;
  for (const ProfileRow& row : rows) {
    names.push_back(row.op);
    if (row.inside.empty()) continue;
    names.back() += fmt::format(" [{}]", ++groups);
    legend += fmt::format("[{}] {}\n", groups, row.inside);
  }
  return names;
}

std::string table(const Profiled& p) {
  constexpr size_t kWidestArguments = 48;
  const std::span<const ProfileRow> shown(p.rows.data(), p.shown());
  const auto deviceColumn = [&](const std::string& text) {
    return p.device ? fmt::format("{:>12}  ", text) : std::string();
  };
  std::string legend;
  const std::vector<std::string> names = namesOf(shown, legend);
  std::vector<std::string> shapes;
  size_t widest_name = std::string("operator").size(),
         widest_shape = std::string("arguments").size();
  for (size_t i = 0; i < shown.size(); ++i) {
    shapes.push_back(
        cut(brief(shown[i].shapes) + (shown[i].reshaped ? " and others" : ""), kWidestArguments));
    widest_name = std::max(widest_name, names[i].size());
    widest_shape = std::max(widest_shape, shapes[i].size());
  }
  std::string text =
      fmt::format("{:>7}  {:>12}  {}{:>9}  {:>10}  {:>12}  {:<{}}  {:<{}}  {}\n", "share",
                  "total us", deviceColumn("device us"), "calls", "us a call", "bytes kept",
                  "operator", widest_name, "arguments", widest_shape, "module and source");
  const auto share = [&](double us) { return p.wall_us > 0 ? 100 * us / p.wall_us : 0.0; };
  for (size_t i = 0; i < shown.size(); ++i) {
    const ProfileRow& row = shown[i];
    text += fmt::format("{:6.1f}%  {:12.1f}  {}{:9}  {:10.2f}  {:12}  {:<{}}  {:<{}}  {}\n",
                        share(row.us), row.us, deviceColumn(fmt::format("{:.1f}", row.device_us)),
                        row.calls, row.us / static_cast<double>(row.calls), row.bytes, names[i],
                        widest_name, shapes[i], widest_shape, locationOf(row));
  }
  if (shown.size() < p.rows.size()) {
    const std::span<const ProfileRow> rest(p.rows.data() + shown.size(),
                                           p.rows.size() - shown.size());
    text += fmt::format("{:6.1f}%  {:12.1f}  in {} more rows (--top)\n", share(usOf(rest)),
                        usOf(rest), rest.size());
  }
  text += legend;
  text += fmt::format("\nby operator:\n{:>7}  {:>12}  {}{:>9}  {}\n", "share", "total us",
                      deviceColumn("device us"), "calls", "operator");
  for (const ProfileRow& row : byOperator(p.rows)) {
    text += fmt::format("{:6.1f}%  {:12.1f}  {}{:9}  {}\n", share(row.us), row.us,
                        deviceColumn(fmt::format("{:.1f}", row.device_us)), row.calls, row.op);
  }
  if (p.device) text += deviceTable(*p.device);
  text += fmt::format(
      "\n{} calls of the program: {:.1f} us, {:.1f} us of that in operators; peak tensor memory "
      "{}\n",
      p.iterations, p.wall_us, usOf(p.rows),
      formatBytes(static_cast<double>(peakAllocatedBytes())));
  return text;
}

nlohmann::ordered_json jsonOf(const Profiled& p, const NestedCalls& nested,
                              GraphFunction& function) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ProfileRow& row : std::span(p.rows).first(p.shown())) {
    list.push_back({{"operator", row.op},
                    {"module", row.module},
                    {"source", row.source},
                    {"arguments", describe(row.shapes)},
                    {"other_arguments", row.reshaped},
                    {"calls", row.calls},
                    {"us", row.us},
                    {"bytes", row.bytes}});
    if (p.device) list.back()["device_us"] = row.device_us;
    if (!row.inside.empty()) list.back()["inside"] = row.inside;
  }
  nlohmann::ordered_json sums = nlohmann::ordered_json::array();
  for (const ProfileRow& row : byOperator(p.rows)) {
    sums.push_back(
        {{"operator", row.op}, {"calls", row.calls}, {"us", row.us}, {"bytes", row.bytes}});
    if (p.device) sums.back()["device_us"] = row.device_us;
  }
  nlohmann::ordered_json inner = nlohmann::ordered_json::array();
  for (const NestedCalls::ProfileRow& row : nested.rows()) {
    inner.push_back(
        {{"operator", row.op}, {"within", row.within}, {"calls", row.calls}, {"us", row.us}});
  }
  const GraphExecutor::Statistics plans = GraphExecutor::of(function).statistics();
  nlohmann::ordered_json all = {{"iterations", p.iterations},
                                {"wall_us", p.wall_us},
                                {"peak_tensor_bytes", peakAllocatedBytes()},
                                {"peak_rss_bytes", peakResidentBytes()},
                                {"plans", plans.plans},
                                {"bail_outs", plans.bail_outs},
                                {"operators", list},
                                {"by_operator", sums},
                                {"nested", inner}};
  if (p.device) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
    for (const DeviceRow& row : p.device->rows()) {
      kernels.push_back(
          {{"name", row.name}, {"calls", row.calls}, {"us", row.us}, {"bytes", row.bytes}});
    }
    all["device"] = {{"note", p.device->note()}, {"kernels", kernels}};
  }
  return all;
}

}  // namespace

void profileVerb(const Options& options) {
  applySettings(options);
  const LoadedFile program = LoadedFile::load(options.file, devicesOf(options));
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
  Profile profile(program.function(options), !options.trace_file.empty(), times.get());
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
  const Profiled profiled{profile.rows(), wall_us, iterations, times.get(),
                          static_cast<size_t>(options.top)};
  if (options.json) return print(jsonLine(jsonOf(profiled, nested, function)));
  print(table(profiled) + nestedTable(nested.rows()));
  if (std::string plans = describePlans(function); !plans.empty()) print(plans + "\n");
  if (profile.eventsLeftOut() > 0) {
    print(fmt::format("the trace leaves out the last {} events\n", profile.eventsLeftOut()));
  }
}

}  // namespace wick::cli
