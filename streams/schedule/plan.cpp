#include "streams/schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/budget.h"
#include "core/error_types.h"
#include "streams/parsed_json.h"

namespace wick::streams {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kNever = std::numeric_limits<double>::infinity();
// Filters that partitions are computed for; the time grows with the square.
constexpr size_t kMostFilters = 20000;
constexpr int64_t kMostThreads = 4096;

// Times of runs of filters.
class Runs {
 public:
  Runs(const StreamGraph& graph, const Costs& costs, const Machine& machine)
      : graph_(graph), costs_(costs), machine_(machine) {
    if (graph.filters.empty()) throw UsageError("the model has no filter, so there are no stages");
    if (graph.filters.size() > kMostFilters) {
      throw UsageError(fmt::format("a plan may have at most {} filters, the model has {}",
                                   kMostFilters, graph.filters.size()));
    }
    sums_.push_back(0);
    stateful_.push_back(0);
    for (size_t i = 0; i < graph.filters.size(); ++i) {
      sums_.push_back(sums_.back() + costs.milliseconds[i]);
      stateful_.push_back(stateful_.back() + (graph.filters[i].stateful ? 1 : 0));
    }
  }
  size_t count() const { return graph_.filters.size(); }
  double compute(size_t first, size_t last) const { return sums_[last] - sums_[first]; }
  // Of handing on what is alive at an end of a stage.
  double hop(size_t at) const {
    if (at == 0 || at == count()) return 0;
    const double copies =
        machine_.gigabytes_per_second > 0
            ? static_cast<double>(costs_.bytes[at]) / (machine_.gigabytes_per_second * 1e6)
            : 0;
    return machine_.hop_milliseconds + copies;
  }
  double time(size_t first, size_t last) const { return compute(first, last) + hop(last); }
  // Copies that the stage may have.
  int64_t mostReplicas(size_t first, size_t last, int64_t most) const {
    if (stateful_[last] != stateful_[first]) return 1;
    for (size_t i = first; i < last; ++i) {
      if (graph_.filters[i].most_replicas > 0)
        most = std::min(most, graph_.filters[i].most_replicas);
    }
    return most;
  }
  Stage stage(size_t first, size_t last, int64_t replicas) const {
    return {first, last, replicas, compute(first, last), costs_.bytes[last]};
  }

 private:
  const StreamGraph& graph_;
  const Costs& costs_;
  const Machine machine_;
  std::vector<double> sums_;
  std::vector<size_t> stateful_;
};

// For the time `limit` between two results: the fewest threads, and the stages. Empty when a stage
// that may not have enough copies is slower.
std::vector<Stage> fewestThreads(const Runs& runs, double limit, int64_t most_replicas) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max() / 4;
  const size_t count = runs.count();
  std::vector<int64_t> threads(count + 1, kNone);
  std::vector<std::pair<size_t, int64_t>> from(count + 1);  // begin and copies of the last stage
  threads[0] = 0;
  for (size_t last = 1; last <= count; ++last) {
    checkBudget();
    int64_t most = most_replicas;
    for (size_t first = last; first-- > 0;) {
      most = runs.mostReplicas(first, first + 1, most);
      const double time = runs.time(first, last);
      const double needed = std::max(1.0, std::ceil(time / limit - 1e-9));
      if (needed > static_cast<double>(most)) {
        if (most == 1) break;  // longer ones are slower
        continue;
      }
      const int64_t all = threads[first] + static_cast<int64_t>(needed);
      if (all < threads[last]) {
        threads[last] = all;
        from[last] = {first, static_cast<int64_t>(needed)};
      }
    }
  }
  if (threads[count] >= kNone) return {};
  std::vector<Stage> stages;
  for (size_t last = count; last > 0; last = from[last].first) {
    stages.insert(stages.begin(), runs.stage(from[last].first, last, from[last].second));
  }
  return stages;
}

int64_t threadsOf(const std::vector<Stage>& stages) {
  int64_t threads = 0;
  for (const Stage& stage : stages) threads += stage.replicas;
  return threads;
}

}  // namespace

int64_t Plan::threads() const {
  return threadsOf(stages);
}

double Plan::bottleneck() const {
  double slowest = 0;
  for (const Stage& stage : stages) {
    slowest = std::max(slowest, stage.milliseconds / static_cast<double>(stage.replicas));
  }
  return slowest;
}

Plan partition(const StreamGraph& graph, const Costs& costs, int64_t stages,
               const Machine& machine) {
  const Runs runs(graph, costs, machine);
  const size_t count = runs.count();
  if (stages < 1 || stages > static_cast<int64_t>(count)) {
    throw UsageError(fmt::format(
        "expected 1 to {} stages, for the model has {} filters, found {}; replicas make more",
        count, count, stages));
  }
  const auto wanted = static_cast<size_t>(stages);
  if (wanted > 1024 && wanted * count * count > size_t{1} << 36) {
    throw UsageError(fmt::format("{} stages of {} filters are too many to plan", stages, count));
  }
  struct Best {
    double slowest = kNever;
    double handed_on = kNever;
    size_t from = 0;
    bool operator<(const Best& other) const {
      return slowest != other.slowest ? slowest < other.slowest : handed_on < other.handed_on;
    }
  };
  // Of the first filters in that many stages.
  std::vector<std::vector<Best>> best(wanted + 1, std::vector<Best>(count + 1));
  best[0][0] = {0, 0, 0};
  for (size_t s = 1; s <= wanted; ++s) {
    for (size_t last = s; last + (wanted - s) <= count; ++last) {
      checkBudget();
      for (size_t first = last; first-- >= s;) {
        const double time = runs.time(first, last);
        // Longer ones are slower, up to the last one's hop.
        if (time > best[s][last].slowest) break;
        const Best& before = best[s - 1][first];
        if (before.slowest == kNever) continue;
        const Best candidate{std::max(before.slowest, time),
                             before.handed_on + static_cast<double>(costs.bytes[last]), first};
        if (candidate < best[s][last]) best[s][last] = candidate;
        if (first == 0) break;
      }
    }
  }
  Plan plan;
  size_t last = count;
  for (size_t s = wanted; s > 0; --s) {
    const size_t first = best[s][last].from;
    plan.stages.insert(plan.stages.begin(), runs.stage(first, last, 1));
    last = first;
  }
  return plan;
}

Plan partitionForThreads(const StreamGraph& graph, const Costs& costs, int64_t threads,
                         int64_t most_replicas, const Machine& machine) {
  const Runs runs(graph, costs, machine);
  if (threads < 1 || threads > kMostThreads || most_replicas < 1) {
    throw UsageError(fmt::format("expected 1 to {} threads and at least 1 replica, found {} and {}",
                                 kMostThreads, threads, most_replicas));
  }
  most_replicas = std::min(most_replicas, threads);
  // All in one stage needs one thread; between that and an equal share lies the answer.
  double enough = runs.time(0, runs.count());
  double too_short = enough / static_cast<double>(threads) / 2;
  if (enough <= 0) enough = 1e-9;
  Plan plan;
  plan.stages = fewestThreads(runs, enough, most_replicas);
  constexpr int kSteps = 50;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = (enough + too_short) / 2;
    if (middle <= 0 || middle >= enough) break;
    std::vector<Stage> stages = fewestThreads(runs, middle, most_replicas);
    if (!stages.empty() && threadsOf(stages) <= threads) {
      enough = middle;
      plan.stages = std::move(stages);
    } else {
      too_short = middle;
    }
  }
  return plan;
}

std::string planText(const Plan& plan, const StreamGraph& graph) {
  Json stages = Json::array();
  for (const Stage& stage : plan.stages) {
    Json names = Json::array();
    for (size_t i = stage.first; i < stage.last; ++i) names.push_back(graph.filters[i].name);
    stages.push_back({{"replicas", stage.replicas},
                      {"milliseconds", stage.milliseconds},
                      {"bytes", stage.bytes},
                      {"filters", std::move(names)}});
  }
  const Json json = {{"model", graph.name},
                     {"queue", plan.queue},
                     {"in_flight", plan.in_flight},
                     {"stages", std::move(stages)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

int64_t countIn(const Json& json, const char* key, int64_t least, int64_t most, int64_t otherwise) {
  if (!json.contains(key)) return otherwise;
  const Json& value = json[key];
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    throw UsageError(fmt::format("plan: expected a number from {} to {} for \"{}\", found {}",
                                 least, most, key, shownJson(value)));
  }
  return value.get<int64_t>();
}

}  // namespace

Plan parsePlan(std::string_view text, const StreamGraph& graph) {
  const Json json = parsedJson<Json>(text, "plan");
  if (!json.is_object() || !json.contains("stages") || !json["stages"].is_array()) {
    throw UsageError("plan: expected an object with the list \"stages\"");
  }
  Plan plan;
  plan.queue = countIn(json, "queue", 1, 1 << 20, plan.queue);
  plan.in_flight = countIn(json, "in_flight", 0, 1 << 30, plan.in_flight);
  size_t next = 0;
  for (const Json& stage : json["stages"]) {
    if (!stage.is_object() || !stage.contains("filters") || !stage["filters"].is_array() ||
        stage["filters"].empty()) {
      throw UsageError(fmt::format(
          "plan, stage {}: expected an object with \"filters\", a list that is not empty",
          plan.stages.size() + 1));
    }
    Stage made;
    made.first = next;
    for (const Json& name : stage["filters"]) {
      if (!name.is_string()) {
        throw UsageError(fmt::format("plan, stage {}: expected names of filters, found {}",
                                     plan.stages.size() + 1, shownJson(name)));
      }
      const std::string found = name.get<std::string>();
      if (next == graph.filters.size() || graph.filters[next].name != found) {
        throw UsageError(fmt::format(
            "the plan is for another model: expected filter {} to be {}, found '{}'", next + 1,
            next == graph.filters.size() ? "none" : "'" + graph.filters[next].name + "'", found));
      }
      ++next;
    }
    made.last = next;
    made.replicas = countIn(stage, "replicas", 1, kMostThreads, 1);
    for (size_t i = made.first; i < made.last; ++i) {
      const Filter& filter = graph.filters[i];
      if (made.replicas == 1) break;
      if (filter.stateful || (filter.most_replicas > 0 && made.replicas > filter.most_replicas)) {
        throw UsageError(fmt::format(
            "plan, stage {}: expected at most {} replicas, for filter '{}' {}, found {}",
            plan.stages.size() + 1, filter.stateful ? 1 : filter.most_replicas, filter.name,
            filter.stateful ? "has state" : "allows no more", made.replicas));
      }
    }
    if (stage.contains("milliseconds") && stage["milliseconds"].is_number()) {
      made.milliseconds = stage["milliseconds"].get<double>();
    }
    made.bytes = countIn(stage, "bytes", 0, std::numeric_limits<int64_t>::max(), 0);
    plan.stages.push_back(made);
  }
  if (next != graph.filters.size()) {
    throw UsageError(fmt::format("the plan is for another model: it ends before filter '{}'",
                                 graph.filters[next].name));
  }
  if (plan.threads() > kMostThreads) {
    throw UsageError(
        fmt::format("plan: expected at most {} threads, found {}", kMostThreads, plan.threads()));
  }
  return plan;
}

}  // namespace wick::streams
