// What a plan would do on machines that are described, without running it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streams/schedule/plan.h"
#include "streams/schedule/run.h"

namespace wick::streams {

// Machines of one kind beside each other, and the links within and between them.
struct MachineKind {
  std::string name = "machine";
  int64_t count = 1;
  int64_t cores = 1;
  double speed = 1;  // how much faster than the machine that measured the costs
};

struct Link {
  double latency_milliseconds = 0.002;
  double gigabytes_per_second = 0;  // 0: nothing is copied
};

struct Cluster {
  std::vector<MachineKind> machines;
  Link within;   // between threads of one machine
  Link between;  // between machines
  int64_t items = 1000;
  int64_t queue = 4;

  int64_t cores() const;
};

// From JSON:
//   {"machines": [{"name": "node", "count": 4, "cores": 16, "speed": 1.0}],
//    "within":  {"latency_us": 2, "gigabytes_per_s": 0},
//    "between": {"latency_us": 20, "gigabytes_per_s": 12.5},
//    "items": 1000, "queue": 4}
// UsageError for anything else.
Cluster parseCluster(std::string_view text);

struct Prediction {
  int64_t stages = 0;
  int64_t threads = 0;
  int64_t machines = 0;         // that have a thread
  double items_per_second = 0;  // while the stages are full
  double milliseconds = 0;      // from the first item's begin to the last one's end
  double median_latency_milliseconds = 0;
  double p99_latency_milliseconds = 0;
  size_t slowest_stage = 0;  // the busiest
};

// The copies of the stages take the cores of the machines in order. Each item is followed through
// them: a copy begins when the item is there and the item before has left, an item leaves when the
// queue has room, a link carries one packet at a time, and
// whoever waited goes on after the link's latency. A machine with more copies than cores shares
// them among the copies. UsageError when the plan needs more than `items` times stages can follow.
//
// `observed` says, by stage, what some items took one after the other; the items that are followed take as
// long in their order, again and again, scaled to the mean that the plan says. Where times vary, stages wait
// for each other more than where all items are alike. Empty, or empty for a stage: all are alike.
Prediction simulate(const Plan& plan, const Cluster& cluster,
                    const std::vector<std::vector<double>>& observed = {});

// The plan with the times that its stages had in a run, and what its items took, without the first of them,
// with which it filled. False when the run does not tell.
bool observe(const RunReport& run, Plan& plan, std::vector<std::vector<double>>& observed);

// How long it takes until a thread that waited goes on, in milliseconds: so long that the simulation of the
// run, of a plan with its times, takes as long as the run did. Never below the link's own latency.
double latencyOf(const RunReport& run, const Plan& plan, Cluster cluster,
                 const std::vector<std::vector<double>>& observed);

// For 2, 4, 8 … 1,024 threads, as far as the cluster has cores, the plan for it and what it does.
// Stages have as many copies as they need.
struct Scaling {
  Plan plan;
  Prediction prediction;
};
std::vector<Scaling> predictScaling(const StreamGraph& graph, const Costs& costs,
                                    const Cluster& cluster);

}  // namespace wick::streams
