#include "streams/schedule/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/budget.h"
#include "core/error_types.h"
#include "streams/parsed_json.h"

namespace wick::streams {

namespace {

using Json = nlohmann::json;

// Visits of items at stages that are followed.
constexpr int64_t kMostVisits = int64_t{1} << 28;

double numberIn(const Json& json, const char* where, const char* key, double least, double most,
                double otherwise) {
  if (!json.contains(key)) return otherwise;
  const Json& value = json[key];
  // Also refuses what is not a number.
  if (!value.is_number() || !(value.get<double>() >= least) || !(value.get<double>() <= most)) {
    throw UsageError(
        fmt::format("cluster, {}: expected a number from {} to {} for \"{}\", found {}", where,
                    least, most, key, shownJson(value)));
  }
  return value.get<double>();
}

void onlyKeys(const Json& json, const char* where, std::initializer_list<const char*> keys) {
  if (!json.is_object()) {
    throw UsageError(
        fmt::format("cluster, {}: expected an object, found {}", where, shownJson(json)));
  }
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find_if(keys, [&, k = std::string_view(key)](const char* known) {
          return k == known;
        }) == keys.end()) {
      throw UsageError(fmt::format("cluster, {}: there is no key \"{}\"; there are {}", where, key,
                                   fmt::join(keys, ", ")));
    }
  }
}

Link linkFrom(const Json& json, const char* where) {
  Link link;
  if (!json.contains(where)) return link;
  onlyKeys(json[where], where, {"latency_us", "gigabytes_per_s"});
  link.latency_milliseconds = numberIn(json[where], where, "latency_us", 0, 1e9, 2) / 1e3;
  link.gigabytes_per_second = numberIn(json[where], where, "gigabytes_per_s", 0, 1e6, 0);
  return link;
}

// One copy of a stage on its machine.
struct Copy {
  int64_t machine = 0;
  double milliseconds = 0;  // of an item
};

// Which machine each copy is on, and what it needs for an item there.
std::vector<std::vector<Copy>> place(const Plan& plan, const Cluster& cluster,
                                     int64_t& machines_used) {
  struct Host {
    int64_t cores;
    double speed;
    int64_t copies = 0;
  };
  std::vector<Host> hosts;
  for (const MachineKind& kind : cluster.machines) {
    for (int64_t i = 0; i < kind.count; ++i) hosts.push_back({kind.cores, kind.speed});
  }
  std::vector<std::vector<Copy>> copies;
  size_t host = 0;
  int64_t taken = 0;
  for (const Stage& stage : plan.stages) {
    copies.emplace_back();
    for (int64_t k = 0; k < stage.replicas; ++k) {
      // Behind the last core the copies begin again at the first machine, and share.
      if (taken == hosts[host].cores) {
        host = host + 1 == hosts.size() ? 0 : host + 1;
        taken = 0;
      }
      ++taken;
      ++hosts[host].copies;
      copies.back().push_back({static_cast<int64_t>(host), stage.milliseconds});
    }
  }
  for (auto& stage : copies) {
    for (Copy& copy : stage) {
      const Host& at = hosts[static_cast<size_t>(copy.machine)];
      const double share =
          std::max(1.0, static_cast<double>(at.copies) / static_cast<double>(at.cores));
      copy.milliseconds *= share / at.speed;
    }
  }
  machines_used = std::ranges::count_if(hosts, [](const Host& h) { return h.copies > 0; });
  return copies;
}

}  // namespace

int64_t Cluster::cores() const {
  int64_t all = 0;
  for (const MachineKind& kind : machines) all += kind.count * kind.cores;
  return all;
}

Cluster parseCluster(std::string_view text) {
  const Json json = parsedJson<Json>(text, "cluster");
  onlyKeys(json, "file", {"machines", "within", "between", "items", "queue"});
  if (!json.contains("machines") || !json["machines"].is_array() || json["machines"].empty()) {
    throw UsageError("cluster: expected \"machines\", a list that is not empty");
  }
  constexpr double kMostMachines = 1 << 16;
  Cluster cluster;
  double machines = 0;
  for (const Json& machine : json["machines"]) {
    onlyKeys(machine, "machine", {"name", "count", "cores", "speed"});
    MachineKind kind;
    if (machine.contains("name") && machine["name"].is_string()) {
      kind.name = machine["name"].get<std::string>();
    }
    kind.count = static_cast<int64_t>(numberIn(machine, "machine", "count", 1, kMostMachines, 1));
    kind.cores = static_cast<int64_t>(numberIn(machine, "machine", "cores", 1, 4096, 1));
    kind.speed = numberIn(machine, "machine", "speed", 1e-6, 1e6, 1);
    machines += static_cast<double>(kind.count);
    cluster.machines.push_back(std::move(kind));
  }
  if (machines > kMostMachines) {
    throw UsageError(
        fmt::format("cluster: expected at most {} machines, found {}", kMostMachines, machines));
  }
  cluster.within = linkFrom(json, "within");
  cluster.between = linkFrom(json, "between");
  cluster.items = static_cast<int64_t>(numberIn(json, "file", "items", 1, 1e7, 1000));
  cluster.queue = static_cast<int64_t>(numberIn(json, "file", "queue", 1, 1 << 20, 4));
  return cluster;
}

bool observe(const RunReport& run, Plan& plan, std::vector<std::vector<double>>& observed) {
  if (run.stages.size() != plan.stages.size()) return false;
  for (const StageTimes& times : run.stages) {
    if (times.items == 0) return false;
  }
  observed.assign(plan.stages.size(), {});
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const StageTimes& times = run.stages[s];
    Stage& stage = plan.stages[s];
    stage.milliseconds = 1e3 * times.busy_seconds / static_cast<double>(times.items);
    const size_t count = times.milliseconds.size();
    if (count == 0) continue;
    const size_t filling = std::min(count / 4, 2 * plan.stages.size() + 2);
    observed[s].assign(times.milliseconds.begin() + static_cast<std::ptrdiff_t>(filling),
                       times.milliseconds.end());
    stage.milliseconds = std::accumulate(observed[s].begin(), observed[s].end(), 0.0) /
                         static_cast<double>(observed[s].size());
  }
  return true;
}

double latencyOf(const RunReport& run, const Plan& plan, Cluster cluster,
                 const std::vector<std::vector<double>>& observed) {
  double& latency = cluster.within.latency_milliseconds;
  constexpr int64_t kMostVisitsEach = int64_t{1} << 18;
  constexpr int kHalvings = 30;
  if (run.items < 1 || plan.stages.empty()) return latency;
  cluster.items =
      std::clamp<int64_t>(kMostVisitsEach / static_cast<int64_t>(plan.stages.size()), 1, run.items);
  const double took =
      1e3 * run.seconds * static_cast<double>(cluster.items) / static_cast<double>(run.items);
  double low = latency, high = std::max(took, latency);
  for (int i = 0; i < kHalvings; ++i) {
    latency = (low + high) / 2;
    (simulate(plan, cluster, observed).milliseconds < took ? low : high) = latency;
  }
  return low;
}

Prediction simulate(const Plan& plan, const Cluster& cluster,
                    const std::vector<std::vector<double>>& observed) {
  const size_t stages = plan.stages.size();
  const int64_t items = cluster.items;
  if (static_cast<double>(items) * static_cast<double>(stages) > static_cast<double>(kMostVisits)) {
    throw UsageError(
        fmt::format("{} items through {} stages are too many to follow; a cluster may "
                    "ask for fewer \"items\"",
                    items, stages));
  }
  Prediction prediction;
  prediction.stages = static_cast<int64_t>(stages);
  prediction.threads = plan.threads();
  const auto copies = place(plan, cluster, prediction.machines);
  // How much longer or shorter than the mean each item takes.
  std::vector<std::vector<double>> factors(stages);
  for (size_t s = 0; s < std::min(stages, observed.size()); ++s) {
    const double sum = std::accumulate(observed[s].begin(), observed[s].end(), 0.0);
    if (!(sum > 0)) continue;
    factors[s] = observed[s];
    for (double& factor : factors[s]) factor *= static_cast<double>(factors[s].size()) / sum;
  }
  // As many as queues and copies hold, as in a run.
  int64_t in_flight = plan.in_flight;
  if (in_flight == 0) {
    int64_t before = 1;
    in_flight = 0;
    for (size_t s = 0; s <= stages; ++s) {
      const int64_t here = s < stages ? plan.stages[s].replicas : 1;
      in_flight += before + std::max(before, here) * cluster.queue;
      before = here;
    }
  }
  // By stage, for each item: when it was taken from the queue, and when it had left the stage. What
  // lies further back than any queue reaches is not looked at.
  std::vector<std::vector<double>> taken(stages + 1, std::vector<double>(items));
  std::vector<std::vector<double>> link_free(stages);
  std::vector<std::vector<double>> free_at(stages);
  std::vector<double> busy(stages);
  for (size_t s = 0; s < stages; ++s) {
    free_at[s].assign(copies[s].size(), 0);
    link_free[s].assign(copies[s].size(), 0);
  }
  std::vector<double> ends, latencies;
  for (int64_t i = 0; i < items; ++i) {
    if (i % 64 == 0) checkBudget();
    const double begin = i >= in_flight ? ends[static_cast<size_t>(i - in_flight)] : 0;
    double arrives = begin;
    for (size_t s = 0; s < stages; ++s) {
      const auto at = static_cast<size_t>(i) % copies[s].size();
      const Copy& copy = copies[s][at];
      const double start = std::max(arrives, free_at[s][at]);
      taken[s][static_cast<size_t>(i)] = start;
      const double takes =
          factors[s].empty()
              ? copy.milliseconds
              : copy.milliseconds * factors[s][static_cast<size_t>(i) % factors[s].size()];
      double done = start + takes;
      busy[s] += takes / static_cast<double>(copies[s].size());
      if (s + 1 == stages) {
        free_at[s][at] = done;
        arrives = done;
        break;
      }
      // Room in the queue to the copy behind: between the two copies pass items this far apart.
      const auto behind = static_cast<size_t>(i) % copies[s + 1].size();
      const auto apart = static_cast<int64_t>(std::lcm(copies[s].size(), copies[s + 1].size()));
      const int64_t before = i - apart * cluster.queue;
      const Link& link =
          copy.machine == copies[s + 1][behind].machine ? cluster.within : cluster.between;
      if (before >= 0) {
        // Known already: the item before came there earlier in order.
        const double room = taken[s + 1][static_cast<size_t>(before)];
        if (room > done) done = room + link.latency_milliseconds;
      }
      const double carried =
          link.gigabytes_per_second > 0
              ? static_cast<double>(plan.stages[s].bytes) / (link.gigabytes_per_second * 1e6)
              : 0;
      link_free[s][at] = std::max(link_free[s][at], done) + carried;
      free_at[s][at] = done;
      arrives = link_free[s][at] + link.latency_milliseconds;
    }
    ends.push_back(std::max(arrives, ends.empty() ? 0.0 : ends.back()));
    latencies.push_back(ends.back() - begin);
  }
  // Between the middle of the filling and the end, so that filling and draining count little.
  const auto skipped =
      static_cast<size_t>(std::min<int64_t>(items - 1, std::min<int64_t>(in_flight, items / 4)));
  const double time = ends.back() - ends[skipped];
  const auto counted = static_cast<double>(ends.size() - 1 - skipped);
  if (time > 0) {
    prediction.items_per_second = 1e3 * counted / time;
  } else if (ends.back() > 0) {
    prediction.items_per_second = 1e3 * static_cast<double>(items) / ends.back();
  }
  prediction.milliseconds = ends.back();
  std::ranges::sort(latencies);
  const auto quantile = [&](double q) {
    return latencies[static_cast<size_t>(q * static_cast<double>(latencies.size() - 1))];
  };
  prediction.median_latency_milliseconds = quantile(0.5);
  prediction.p99_latency_milliseconds = quantile(0.99);
  prediction.slowest_stage = static_cast<size_t>(std::ranges::max_element(busy) - busy.begin());
  return prediction;
}

std::vector<Scaling> predictScaling(const StreamGraph& graph, const Costs& costs,
                                    const Cluster& cluster) {
  constexpr int64_t kMostThreads = 1024;
  std::vector<Scaling> scalings;
  const Machine machine{cluster.between.latency_milliseconds, cluster.between.gigabytes_per_second};
  const Machine here{cluster.within.latency_milliseconds, cluster.within.gigabytes_per_second};
  const bool one = cluster.machines.size() == 1 && cluster.machines[0].count == 1;
  for (int64_t threads = 2; threads <= std::min(kMostThreads, cluster.cores()); threads *= 2) {
    Scaling scaling;
    scaling.plan = partitionForThreads(graph, costs, threads, threads, one ? here : machine);
    scaling.plan.queue = cluster.queue;
    scaling.prediction = simulate(scaling.plan, cluster);
    scalings.push_back(std::move(scaling));
  }
  return scalings;
}

}  // namespace wick::streams
