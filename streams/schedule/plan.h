// Plans: which filters make a stage, and how many copies of it run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streams/schedule/cost.h"
#include "streams/stream_graph.h"

namespace wick::streams {

struct Stage {
  size_t first = 0;  // of the filters
  size_t last = 0;   // behind it
  int64_t replicas = 1;
  double milliseconds = 0;  // of its filters together, as measured
  int64_t bytes = 0;        // of what it hands on
};

struct Plan {
  std::vector<Stage> stages;
  int64_t queue = 4;      // packets that a queue between two threads holds
  int64_t in_flight = 0;  // items that may be under way; 0: as many as queues and stages hold

  int64_t threads() const;
  // Milliseconds between two results, as the costs say: the slowest stage's time over its replicas.
  double bottleneck() const;
};

// What a machine is like, as far as plans are concerned.
struct Machine {
  double hop_milliseconds = 0.002;  // for handing a packet to another thread
  double gigabytes_per_second = 0;  // of the link between stages; 0: nothing is copied
};

// Exactly `stages` stages of one copy each: those whose slowest, with what it hands on, is fastest;
// among these, that which hands on least. UsageError when there are fewer filters than stages.
Plan partition(const StreamGraph& graph, const Costs& costs, int64_t stages,
               const Machine& machine = {});

// The plan for at most `threads` threads with the shortest time between two results; stages of
// stateless filters may have up to `most_replicas` copies. Uses no more threads than it needs for
// that.
Plan partitionForThreads(const StreamGraph& graph, const Costs& costs, int64_t threads,
                         int64_t most_replicas, const Machine& machine = {});

// As JSON, with the names of the filters; and back. UsageError for what is not a plan, and for a
// plan whose filters are not those of the graph: it names the first that differs.
std::string planText(const Plan& plan, const StreamGraph& graph);
Plan parsePlan(std::string_view text, const StreamGraph& graph);

}  // namespace wick::streams
