#include "streams/schedule/run.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/budget.h"
#include "core/error.h"
#include "core/thread_context.h"
#include "streams/schedule/cost.h"
#include "streams/schedule/queue.h"

namespace wick::streams {

namespace {

using Clock = std::chrono::steady_clock;

// How often the calling thread looks whether the run must end, while stages wait for each other or
// for the source.
constexpr std::chrono::milliseconds kLook{5};

struct Item {
  int64_t index = 0;
  Clock::time_point begin;
  Packet packet;
  // Where it was computed, on devices: there it is ready behind the mark.
  std::shared_ptr<StageDevices::Place> place{};
  std::shared_ptr<StageDevices::Mark> ready{};
  // What each stage's device did for it lies between these.
  std::vector<std::pair<std::shared_ptr<StageDevices::Mark>, std::shared_ptr<StageDevices::Mark>>>
      spans{};
};

using Queue = BoundedQueue<Item>;

double secondsBetween(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// Names the stage by its filters.
std::string nameOf(const StreamGraph& graph, const Stage& stage) {
  const std::string& first = graph.filters[stage.first].name;
  if (stage.last - stage.first == 1) return "'" + first + "'";
  return fmt::format("'{}' to '{}'", first, graph.filters[stage.last - 1].name);
}

Budget::Bounds boundsFor(const PipelineOptions& options,
                         const std::shared_ptr<std::atomic<bool>>& cancelled) {
  Budget::Bounds bounds;
  bounds.deadline = options.deadline;
  bounds.interrupt = cancelled;
  if (const Budget* outer = currentBudget()) {
    if (const int64_t left = outer->timeLeft(); left != INT64_MAX) {
      const auto end = Clock::now() + std::chrono::nanoseconds(std::max<int64_t>(left, 0));
      bounds.deadline = bounds.deadline ? std::min(*bounds.deadline, end) : end;
    }
    if (outer->memoryLimit() != INT64_MAX) {
      bounds.memory =
          static_cast<size_t>(std::max<int64_t>(outer->memoryLimit() - outer->used(), 1));
    }
  }
  return bounds;
}

}  // namespace

// One run: its threads, its queues and its first error.
class PipelineRun {
 public:
  PipelineRun(const Pipeline& pipeline, const PacketSource& source, const PacketSink& sink,
              const PipelineOptions& options)
      : pipeline_(pipeline),
        source_(source),
        sink_(sink),
        options_(options),
        cancelled_(std::make_shared<std::atomic<bool>>(false)),
        budget_(boundsFor(options, cancelled_)),
        context_(threadContext()) {
    const Plan& plan = pipeline.plan_;
    copies_.push_back(1);  // the thread that reads the source
    const StageRange range = pipeline.range_;
    for (size_t s = range.first; s < range.last; ++s) copies_.push_back(plan.stages[s].replicas);
    copies_.push_back(1);  // the thread that hands results over
    int64_t held = 0;
    for (size_t s = 0; s + 1 < copies_.size(); ++s) {
      queues_.emplace_back();
      for (int64_t k = 0; k < copies_[s] * copies_[s + 1]; ++k) {
        queues_.back().push_back(std::make_unique<Queue>(static_cast<size_t>(plan.queue)));
      }
      held += copies_[s] + std::max(copies_[s], copies_[s + 1]) * plan.queue;
    }
    in_flight_ = plan.in_flight > 0 ? plan.in_flight : held;
    report_.stages.resize(pipeline.codes_.size());
  }

  RunReport run() {
    const ThreadsScope threads(options_.threads_per_stage);
    std::vector<std::thread> running;
    try {
      start(running);
      watch();
    } catch (...) {  // the system has no more threads
      fail(std::current_exception());
    }
    for (std::thread& thread : running) thread.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(report_);
  }

 private:
  void start(std::vector<std::thread>& running) {
    const auto begin = [&](auto body) {
      {
        std::lock_guard lock(mutex_);
        ++running_;
      }
      try {
        running.emplace_back([this, body] {
          const ThreadContextScope context(context_);
          const BudgetScope budget(&budget_);
          try {
            body();
          } catch (...) {
            fail(std::current_exception());
          }
          end();
        });
      } catch (const std::system_error& e) {
        end();
        throwRuntimeError("the pipeline needs {} threads, the system gives {}: {}", threadCount(),
                          running.size(), e.what());
      }
    };
    begin([this] { feed(); });
    for (size_t s = 0; s < pipeline_.codes_.size(); ++s) {
      for (int64_t copy = 0; copy < copies_[s + 1]; ++copy) {
        begin([this, s, copy] { work(s, copy); });
      }
    }
    begin([this] { collect(); });
  }

  int64_t threadCount() const {
    int64_t count = 0;
    for (const int64_t copies : copies_) count += copies;
    return count;
  }

  void end() {
    std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  // Until all threads have ended; ends them when the caller's time is over.
  void watch() {
    const Budget* outer = currentBudget();
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLook, [this] { return running_ == 0; })) {
      const bool interrupted =
          options_.interrupt && options_.interrupt->load(std::memory_order_relaxed);
      if (!interrupted && !budget_.exhausted() && !(outer && outer->exhausted())) continue;
      if (cancelled_->load()) continue;
      lock.unlock();
      try {
        if (outer) outer->check();
        if (interrupted) throw RuntimeError("the run was interrupted", "KeyboardInterrupt");
        budget_.check();
      } catch (...) {
        fail(std::current_exception());
      }
      lock.lock();
    }
  }

  // The first error counts; all threads end.
  void fail(std::exception_ptr error) {
    {
      std::lock_guard lock(mutex_);
      if (!error_ && !cancelled_->load()) error_ = std::move(error);
      cancelled_->store(true);
    }
    for (const auto& between : queues_) {
      for (const auto& queue : between) queue->cancel();
    }
    delivered_signal_.fetch_add(1);
    delivered_signal_.notify_all();
  }

  Queue& queue(size_t after, int64_t from, int64_t to) {
    return *queues_[after][static_cast<size_t>(from * copies_[after + 1] + to)];
  }

  // Waits until fewer items than allowed are under way; false when the run is cancelled.
  bool awaitRoom(int64_t index) {
    for (;;) {
      const uint32_t seen = delivered_signal_.load(std::memory_order_acquire);
      if (cancelled_->load(std::memory_order_relaxed)) return false;
      if (index - delivered_.load(std::memory_order_acquire) < in_flight_) return true;
      delivered_signal_.wait(seen, std::memory_order_acquire);
    }
  }

  void feed() {
    for (int64_t index = 0; awaitRoom(index); ++index) {
      std::optional<Packet> arguments = source_(index);
      if (!arguments) break;
      const StageRange range = pipeline_.range_;
      const size_t expected = pipeline_.alive_[pipeline_.plan_.stages[range.first].first].size();
      if (arguments->size() != expected) {
        throw UsageError(fmt::format("item {}: expected {} arguments, found {}",
                                     options_.first_item + index, expected, arguments->size()));
      }
      if (!queue(0, 0, index % copies_[1]).push(Item{index, Clock::now(), std::move(*arguments)})) {
        return;
      }
    }
    for (int64_t to = 0; to < copies_[1]; ++to) queue(0, 0, to).finish();
  }

  void work(size_t s, int64_t copy) {
    const int64_t before = copies_[s], here = copies_[s + 1], behind = copies_[s + 2];
    StageTimes times;
    std::vector<double> milliseconds;  // of the items of this copy, in their order
    Clock::time_point now = Clock::now();
    const auto lap = [&now](double& into) {
      const Clock::time_point then = std::exchange(now, Clock::now());
      const double seconds = secondsBetween(then, now);
      into += seconds;
      return seconds;
    };
    const std::shared_ptr<StageDevices::Place> place = enterDevice(s, copy);
    Item item;
    for (int64_t index = copy;; index += here) {
      if (!queue(s, index % before, copy).pop(item)) break;
      lap(times.wait_in_seconds);
      if (place) {
        computeOn(place, s, item);
      } else {
        compute(s, item);
      }
      const double seconds = lap(times.busy_seconds);
      if (index < StageTimes::kMostTimed) milliseconds.push_back(1e3 * seconds);
      ++times.items;
      if (!queue(s + 1, copy, index % behind).push(std::move(item))) break;
      lap(times.wait_out_seconds);
    }
    for (int64_t to = 0; to < behind; ++to) queue(s + 1, copy, to).finish();
    std::lock_guard lock(mutex_);
    StageTimes& all = report_.stages[s];
    // A device's time is known when its items have come to the end.
    if (place) {
      times.busy_seconds = 0;
    } else {
      for (size_t i = 0; i < milliseconds.size(); ++i) {
        timed(all, copy + static_cast<int64_t>(i) * here, milliseconds[i]);
      }
    }
    all.busy_seconds += times.busy_seconds;
    all.wait_in_seconds += times.wait_in_seconds;
    all.wait_out_seconds += times.wait_out_seconds;
    all.items += times.items;
  }

  static void timed(StageTimes& times, int64_t index, double milliseconds) {
    if (index >= StageTimes::kMostTimed) return;
    const auto at = static_cast<size_t>(index);
    if (times.milliseconds.size() <= at) times.milliseconds.resize(at + 1);
    times.milliseconds[at] = milliseconds;
  }

  // Null where the stage computes on the CPU.
  std::shared_ptr<StageDevices::Place> enterDevice(size_t s, int64_t copy) {
    if (!pipeline_.on_.devices) return nullptr;
    const auto& place = pipeline_.places_[s][static_cast<size_t>(copy)];
    pipeline_.on_.devices->enter(*place);
    return place;
  }
  void computeOn(const std::shared_ptr<StageDevices::Place>& place, size_t s, Item& item) {
    StageDevices& devices = *pipeline_.on_.devices;
    devices.bring(*place, item.packet, item.place.get(), item.ready.get());
    item.place = place;
    std::shared_ptr<StageDevices::Mark> begin = devices.mark(*place);
    compute(s, item);
    item.ready = devices.mark(*place);
    item.spans.emplace_back(std::move(begin), item.ready);
  }
  // At the end.
  void bringBack(Item& item) {
    if (!item.place) return;
    StageDevices& devices = *pipeline_.on_.devices;
    devices.bringToCpu(item.packet, *item.place, *item.ready);
    std::lock_guard lock(mutex_);
    for (size_t s = 0; s < item.spans.size(); ++s) {
      const double took = devices.milliseconds(*item.spans[s].first, *item.spans[s].second);
      report_.stages[s].busy_seconds += took / 1e3;
      timed(report_.stages[s], item.index, took);
    }
    item.spans.clear();
    item.place.reset();
  }

  void compute(size_t s, Item& item) {
    const auto where = [&] {
      const size_t stage = pipeline_.range_.first + s;
      return fmt::format("item {}, stage {} ({})", options_.first_item + item.index, stage + 1,
                         nameOf(pipeline_.graph_, pipeline_.plan_.stages[stage]));
    };
    try {
      runStage(pipeline_.codes_[s], item.packet);
    } catch (const RuntimeError& e) {
      // Limits are the run's, not the item's.
      if (budget_.exhausted()) throw;
      RuntimeError named(fmt::format("{}: {}", where(), e.brief()), e.className());
      for (const RuntimeError::Frame& frame : e.frames()) named.addFrame(frame);
      throw named;
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{}: {}", where(), e.message()));
    }
  }

  void collect() {
    const size_t last = queues_.size() - 1;
    Item item;
    std::optional<Clock::time_point> begin;
    for (int64_t index = 0;; ++index) {
      if (!queue(last, index % copies_[last], 0).pop(item)) break;
      bringBack(item);
      const Clock::time_point end = Clock::now();
      if (!begin) begin = item.begin;
      report_.latency_milliseconds.push_back(1e3 * secondsBetween(item.begin, end));
      report_.seconds = secondsBetween(*begin, end);
      sink_(index, std::move(item.packet));
      report_.items = index + 1;
      delivered_.store(index + 1, std::memory_order_release);
      delivered_signal_.fetch_add(1, std::memory_order_acq_rel);
      delivered_signal_.notify_one();
    }
  }

  const Pipeline& pipeline_;
  const PacketSource& source_;
  const PacketSink& sink_;
  const PipelineOptions& options_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  Budget budget_;
  const ThreadContext context_;
  std::vector<int64_t> copies_;  // of the source, of each stage, of the sink
  std::vector<std::vector<std::unique_ptr<Queue>>> queues_;  // behind each of them
  int64_t in_flight_ = 0;
  std::atomic<int64_t> delivered_{0};
  std::atomic<uint32_t> delivered_signal_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0;
  std::exception_ptr error_;
  RunReport report_;
};

Pipeline::Pipeline(const StreamGraph& graph, Plan plan)
    : Pipeline(graph, plan, {0, plan.stages.size()}) {}

Pipeline::Pipeline(const StreamGraph& graph, Plan plan, StageRange range, OnDevices on)
    : graph_(graph),
      plan_(std::move(plan)),
      range_(range),
      alive_(aliveValues(graph)),
      on_(std::move(on)) {
  WICK_ASSERT(!on_.devices || on_.of_stages.size() == plan_.stages.size(),
              "each stage has a device, or none");
  WICK_ASSERT(range.first < range.last && range.last <= plan_.stages.size(),
              "a pipeline needs a stage");
  for (size_t s = range.first; s < range.last; ++s) {
    const Stage& stage = plan_.stages[s];
    codes_.push_back(
        stageCode(graph, alive_, stage.first, stage.last,
                  plan_.stages.size() == 1 ? graph.name : graph.filters[stage.first].name));
    if (!on_.devices) continue;
    moveStageConstants(codes_.back(), on_.of_stages[s]);
    places_.emplace_back();
    for (int64_t copy = 0; copy < stage.replicas; ++copy) {
      places_.back().push_back(on_.devices->open(on_.of_stages[s]));
    }
  }
}

IValue Pipeline::resultOf(Packet packet) const {
  return streams::resultOf(graph_, alive_, std::move(packet));
}

RunReport Pipeline::run(const ItemSource& source, const ResultSink& sink,
                        const PipelineOptions& options) {
  return runPackets(
      source, [&](int64_t index, Packet packet) { sink(index, resultOf(std::move(packet))); },
      options);
}

RunReport Pipeline::runPackets(const PacketSource& source, const PacketSink& sink,
                               const PipelineOptions& options) {
  return PipelineRun(*this, source, sink, options).run();
}

}  // namespace wick::streams
