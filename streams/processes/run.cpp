#include "streams/processes/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/budget.h"
#include "core/error.h"
#include "core/thread_context.h"
#include "streams/processes/packet_bytes.h"
#include "streams/schedule/cost.h"

namespace wick::streams {

namespace {

using distributed::Message;
using distributed::Messages;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

// How often who waits looks whether the run must end.
constexpr std::chrono::milliseconds kLook{5};

enum Kind : uint32_t {
  kRound = 1,  // from process 0: a run begins, with this plan
  kItem,       // to the process behind: the values of an item
  kTaken,      // to the process before: items were taken
  kEnd,        // to the process behind: no more items
  kReport,     // to process 0, behind the end
  kOver,       // from process 0: no more runs
};

Json parsed(const Message& message) {
  Json json = Json::parse(message.bytes, nullptr, false);
  WICK_CHECK(json.is_object(), "process {} sent what is not of a pipeline", message.from);
  return json;
}
double numberIn(const Json& json, const char* key) {
  WICK_CHECK(json.contains(key) && json[key].is_number(),
             "a process sent a report without the number \"{}\"", key);
  return json[key].get<double>();
}
int64_t wholeNumberIn(const Json& json, const char* key) {
  WICK_CHECK(json.contains(key) && json[key].is_number_integer(),
             "a process sent a message without the whole number \"{}\"", key);
  return json[key].get<int64_t>();
}

}  // namespace

// Sorts what comes: items for the stages, answers for who sends, and the rest. Thread-safe. Its
// functions look at the calling thread's limits.
class ProcessWire {
 public:
  ProcessWire(Messages& messages, int64_t window) : messages_(messages), window_(window) {}

  // How many items may be on their way to the process behind.
  void setWindow(int64_t window) {
    const std::lock_guard lock(mutex_);
    window_ = window;
  }
  // The next item from the process before; nothing behind the last one of a run.
  std::optional<Packet> next(int64_t index) {
    const Message message = taken(items_);
    if (message.kind == kEnd) return std::nullopt;
    messages_.send(before(), kTaken, "");
    IValue value =
        valueOf(message.bytes, fmt::format("item {} from process {}", index, message.from));
    WICK_CHECK(value.isTuple(), "process {} sent no item", message.from);
    return Packet(value.elements());
  }
  void hand(Packet packet) {
    std::string bytes = valueBytes(IValue(makeTuple(std::move(packet))));
    await([&] {
      if (on_their_way_ >= window_) return false;
      ++on_their_way_;
      return true;
    });
    messages_.send(behind(), kItem, std::move(bytes));
  }
  void end() { messages_.send(behind(), kEnd, ""); }
  // A message of process 0, or a report to it.
  Message other() { return taken(others_); }

 private:
  int before() const { return (messages_.rank() + messages_.size() - 1) % messages_.size(); }
  int behind() const { return (messages_.rank() + 1) % messages_.size(); }

  Message taken(std::deque<Message>& from) {
    Message message;
    await([&] {
      if (from.empty()) return false;
      message = std::move(from.front());
      from.pop_front();
      return true;
    });
    return message;
  }
  // One of those who wait receives for all.
  template <class Ready>
  void await(const Ready& ready) {
    std::unique_lock lock(mutex_);
    while (!ready()) {
      lock.unlock();
      checkBudget();
      lock.lock();
      if (ready()) return;
      if (receiving_) {
        changed_.wait_for(lock, kLook);
        continue;
      }
      receiving_ = true;
      lock.unlock();
      std::optional<Message> message;
      std::exception_ptr error;
      try {
        message = messages_.receive(kLook);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      receiving_ = false;
      changed_.notify_all();
      if (error) std::rethrow_exception(error);
      if (message) sort(*std::move(message));
    }
  }
  void sort(Message message) {
    switch (message.kind) {
      case kItem:
      case kEnd:
        WICK_CHECK(message.from == before(), "process {} sent an item to process {}", message.from,
                   messages_.rank());
        items_.push_back(std::move(message));
        break;
      case kTaken:
        --on_their_way_;
        break;
      default:
        others_.push_back(std::move(message));
    }
  }

  Messages& messages_;
  int64_t window_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool receiving_ = false;
  std::deque<Message> items_, others_;
  int64_t on_their_way_ = 0;
};

namespace {

std::string reportText(const RunReport& report) {
  Json stages = Json::array();
  for (const StageTimes& times : report.stages) {
    stages.push_back({{"busy", times.busy_seconds},
                      {"in", times.wait_in_seconds},
                      {"out", times.wait_out_seconds},
                      {"items", times.items}});
  }
  return Json{{"stages", std::move(stages)}}.dump();
}

void addReport(RunReport& report, const Message& message, StageRange range) {
  const Json json = parsed(message);
  WICK_CHECK(json.contains("stages") && json["stages"].is_array() &&
                 json["stages"].size() == range.last - range.first,
             "process {} sent a report of other stages", message.from);
  for (size_t s = range.first; s < range.last; ++s) {
    const Json& stage = json["stages"][s - range.first];
    report.stages[s] = {numberIn(stage, "busy"), numberIn(stage, "in"), numberIn(stage, "out"),
                        wholeNumberIn(stage, "items")};
  }
}

// Items that a process may have sent and the next one not yet taken.
int64_t windowOf(const Plan& plan) {
  return std::max<int64_t>(plan.queue, 1);
}

// As many as all queues, stages and ways between processes hold.
int64_t inFlightOf(const Plan& plan, int processes) {
  if (plan.in_flight > 0) return plan.in_flight;
  int64_t held = plan.queue;
  int64_t before = 1;
  for (const Stage& stage : plan.stages) {
    held += stage.replicas + std::max(before, stage.replicas) * plan.queue;
    before = stage.replicas;
  }
  return held + processes * (windowOf(plan) + 2 * plan.queue + 2);
}

// A process's own stages have no limit but their queues.
Plan withoutLimit(Plan plan) {
  plan.in_flight = 0;
  return plan;
}

Pipeline::OnDevices onDevices(const PlaceStages& place, const Plan& plan, StageRange range) {
  return place ? place(plan.stages.size(), range) : Pipeline::OnDevices{};
}

// Process 0's run: one thread feeds the first stages, another takes what comes back.
class FirstProcess {
 public:
  FirstProcess(Messages& messages, Pipeline& here, const StreamGraph& graph, const Plan& plan,
               ProcessWire& wire, const ItemSource& source, const ResultSink& sink,
               const PipelineOptions& options)
      : messages_(messages),
        here_(here),
        graph_(graph),
        plan_(plan),
        source_(source),
        sink_(sink),
        options_(options),
        in_flight_(inFlightOf(plan, messages.size())),
        stopped_(std::make_shared<std::atomic<bool>>(false)),
        wire_(wire) {
    report_.stages.resize(plan.stages.size());
  }

  RunReport run() {
    const ThreadsScope threads(options_.threads_per_stage);
    const Json round = {{"plan", planText(plan_, graph_)},
                        {"first_item", options_.first_item},
                        {"threads", options_.threads_per_stage}};
    for (int r = 1; r < messages_.size(); ++r) messages_.send(r, kRound, round.dump());
    std::thread taking([this, context = threadContext()] {
      const ThreadContextScope in_context(context);
      Budget::Bounds bounds;
      bounds.interrupt = stopped_;
      Budget budget(bounds);
      const BudgetScope scope(&budget);
      try {
        take();
      } catch (...) {
        fail(std::current_exception());
      }
    });
    try {
      PipelineOptions options = options_;
      options.interrupt = stopped_;
      const RunReport own = here_.runPackets(
          [this](int64_t index) { return feed(index); },
          [this](int64_t, Packet packet) { wire_.hand(std::move(packet)); }, options);
      std::ranges::copy(own.stages, report_.stages.begin());
      wire_.end();
      while (!taken_.load() && !stopped_->load()) {
        if (options_.interrupt && options_.interrupt->load()) {
          throw RuntimeError("the run was interrupted", "KeyboardInterrupt");
        }
        checkBudget();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    } catch (...) {
      fail(std::current_exception());
    }
    taking.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(report_);
  }

 private:
  std::optional<Packet> feed(int64_t index) {
    while (index - delivered_.load() >= in_flight_) {
      checkBudget();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (options_.interrupt && options_.interrupt->load()) {
      throw RuntimeError("the run was interrupted", "KeyboardInterrupt");
    }
    std::optional<Packet> packet = source_(index);
    if (packet) {
      const std::lock_guard lock(mutex_);
      begins_.push_back(Clock::now());
    }
    return packet;
  }
  void take() {
    std::optional<Clock::time_point> begin;
    for (int64_t index = 0;; ++index) {
      std::optional<Packet> packet = wire_.next(options_.first_item + index);
      if (!packet) break;
      const Clock::time_point end = Clock::now();
      Clock::time_point begun;
      {
        const std::lock_guard lock(mutex_);
        begun = begins_.front();
        begins_.pop_front();
      }
      if (!begin) begin = begun;
      report_.latency_milliseconds.push_back(
          std::chrono::duration<double, std::milli>(end - begun).count());
      report_.seconds = std::chrono::duration<double>(end - *begin).count();
      sink_(index, here_.resultOf(*std::move(packet)));
      report_.items = index + 1;
      delivered_.store(index + 1);
    }
    for (int r = 1; r < messages_.size(); ++r) {
      const Message message = wire_.other();
      WICK_CHECK(message.kind == kReport, "process {} sent what is no report", message.from);
      addReport(report_, message,
                stagesOfProcess(plan_.stages.size(), message.from, messages_.size()));
    }
    taken_.store(true);
  }
  // The first error counts.
  void fail(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    stopped_->store(true);
  }

  Messages& messages_;
  Pipeline& here_;
  const StreamGraph& graph_;
  const Plan& plan_;
  const ItemSource& source_;
  const ResultSink& sink_;
  const PipelineOptions& options_;
  const int64_t in_flight_;
  const std::shared_ptr<std::atomic<bool>> stopped_;
  ProcessWire& wire_;
  std::mutex mutex_;
  std::deque<Clock::time_point> begins_;  // of the items under way
  std::atomic<int64_t> delivered_{0};
  std::atomic<bool> taken_{false};
  std::exception_ptr error_;
  RunReport report_;
};

}  // namespace

StageRange stagesOfProcess(size_t stages, int rank, int size) {
  const auto processes = static_cast<size_t>(size), place = static_cast<size_t>(rank);
  if (stages < processes) {
    throw UsageError(fmt::format("expected at least {} stages, one for each process, found {}",
                                 processes, stages));
  }
  return {stages * place / processes, stages * (place + 1) / processes};
}

ProcessPipeline::ProcessPipeline(Messages& messages, const StreamGraph& graph, Plan plan,
                                 const PlaceStages& place)
    : messages_(messages),
      graph_(graph),
      plan_(std::move(plan)),
      range_(stagesOfProcess(plan_.stages.size(), 0, messages.size())),
      here_(graph, withoutLimit(plan_), range_, onDevices(place, plan_, range_)),
      wire_(std::make_unique<ProcessWire>(messages, windowOf(plan_))) {}

ProcessPipeline::~ProcessPipeline() {
  try {
    for (int r = 1; r < messages_.size(); ++r) messages_.send(r, kOver, "");
  } catch (const Error&) {
    // The others know.
  }
}

RunReport ProcessPipeline::run(const ItemSource& source, const ResultSink& sink,
                               const PipelineOptions& options) {
  FirstProcess first(messages_, here_, graph_, plan_, *wire_, source, sink, options);
  try {
    return first.run();
  } catch (const std::exception& e) {
    messages_.fail(e.what());
    throw;
  }
}

void serveProcessPipeline(Messages& messages, const StreamGraph& graph, const PlaceStages& place,
                          const PipelineOptions& options) {
  std::string planned;
  std::unique_ptr<Pipeline> pipeline;
  ProcessWire wire(messages, 1);
  for (;;) {
    const Message message = wire.other();
    if (message.kind == kOver) return;
    WICK_CHECK(message.kind == kRound && message.from == 0, "process {} sent no plan",
               message.from);
    const Json round = parsed(message);
    WICK_CHECK(round.contains("plan") && round["plan"].is_string(), "process 0 sent no plan");
    const std::string text = round["plan"].get<std::string>();
    if (!pipeline || text != planned) {
      const Plan plan = withoutLimit(parsePlan(text, graph));
      const StageRange range =
          stagesOfProcess(plan.stages.size(), messages.rank(), messages.size());
      pipeline = std::make_unique<Pipeline>(graph, plan, range, onDevices(place, plan, range));
      planned = text;
      wire.setWindow(windowOf(plan));
    }
    PipelineOptions now = options;
    now.first_item = wholeNumberIn(round, "first_item");
    now.threads_per_stage =
        static_cast<int>(std::clamp<int64_t>(wholeNumberIn(round, "threads"), 1, 1024));
    const int64_t first_item = now.first_item;
    const RunReport report =
        pipeline->runPackets([&](int64_t index) { return wire.next(first_item + index); },
                             [&](int64_t, Packet packet) { wire.hand(std::move(packet)); }, now);
    wire.end();
    messages.send(0, kReport, reportText(report));
  }
}

}  // namespace wick::streams
