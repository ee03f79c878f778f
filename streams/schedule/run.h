// Running a plan: each copy of a stage is a thread, with bounded queues between them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/ivalue.h"
#include "runtime/run_options.h"
#include "streams/schedule/plan.h"
#include "streams/schedule/stage_code.h"
#include "streams/schedule/stage_devices.h"
#include "streams/stream_graph.h"

namespace wick::streams {

// Gives the arguments of item number `index` as the program takes them, in the order of its
// arguments; nullopt ends the stream. Called on one thread, in order.
using ItemSource = std::function<std::optional<std::vector<IValue>>(int64_t index)>;
// Takes the results, in order, on one thread.
using ResultSink = std::function<void(int64_t index, IValue result)>;
// The same for some of the stages: the values that are alive before the first and behind the last.
using PacketSource = std::function<std::optional<Packet>(int64_t index)>;
using PacketSink = std::function<void(int64_t index, Packet packet)>;

// Stages [first, last) of a plan.
struct StageRange {
  size_t first = 0;
  size_t last = 0;
};

struct StageTimes {
  double busy_seconds = 0;      // of all copies together; of the device's time where there is one
  double wait_in_seconds = 0;   // for the stage before
  double wait_out_seconds = 0;  // for room in front of the stage behind
  int64_t items = 0;
  // What each of the first items took, by item; empty where that is not known.
  std::vector<double> milliseconds{};
  static constexpr int64_t kMostTimed = 1 << 16;
};

struct RunReport {
  int64_t items = 0;
  double seconds = 0;                        // from the first item's begin to the last one's end
  std::vector<double> latency_milliseconds;  // by item, from its begin to its end
  std::vector<StageTimes> stages;
  double itemsPerSecond() const { return seconds > 0 ? static_cast<double>(items) / seconds : 0; }
};

struct PipelineOptions {
  // Threads within an operator, of each copy of a stage.
  int threads_per_stage = 1;
  // `deadline` and `interrupt` end the run; limits of the calling thread's budget hold too.
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  std::shared_ptr<const std::atomic<bool>> interrupt{};
  // The number of the first item, for messages: others went before.
  int64_t first_item = 0;
};

// A plan with the code of its stages, to be run any number of times, one after the other.
class Pipeline {
 public:
  // The graph is one of fromMethod(), and must outlive the pipeline, as the plan is one for it.
  Pipeline(const StreamGraph& graph, Plan plan);
  // With some of its stages, for runPackets(). Not empty. With `devices`, stage s of the plan computes on
  // the device of `of_stages[s]`; items come from the CPU and results go there. The graph's program is on
  // one device of that type.
  struct OnDevices {
    std::shared_ptr<StageDevices> devices;
    std::vector<Device> of_stages;
  };
  Pipeline(const StreamGraph& graph, Plan plan, StageRange range, OnDevices on = {});

  // Runs all items. Item i goes to copy i modulo the number of copies of each stage, so results come
  // in the order of the items and are those of calls one after the other. The items under way are
  // limited; a stage that is ahead waits. Blocks until all is done or something goes wrong: the
  // first error ends the run at once, on all threads. It is thrown here as RuntimeError that names
  // the item and the stage, with the program's call stack; results before it were handed over.
  // Errors of `source` and `sink` are thrown as they are. TimeoutError, MemoryError and
  // KeyboardInterrupt as callFunction() throws them.
  RunReport run(const ItemSource& source, const ResultSink& sink,
                const PipelineOptions& options = {});
  // The same through the stages that the pipeline has. The report is of these.
  RunReport runPackets(const PacketSource& source, const PacketSink& sink,
                       const PipelineOptions& options = {});

  const Plan& plan() const { return plan_; }
  StageRange range() const { return range_; }
  // The program's result, from what the last stage gave.
  IValue resultOf(Packet packet) const;

 private:
  friend class PipelineRun;
  const StreamGraph& graph_;
  Plan plan_;
  StageRange range_;
  std::vector<std::vector<Value*>> alive_;
  std::vector<StageCode> codes_;
  OnDevices on_;
  std::vector<std::vector<std::shared_ptr<StageDevices::Place>>> places_;  // by stage and copy
};

}  // namespace wick::streams
