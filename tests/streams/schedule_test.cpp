// Plans, queues and predictions, which need no program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "streams/schedule/plan.h"
#include "streams/schedule/plan_picture.h"
#include "streams/schedule/queue.h"
#include "streams/schedule/simulate.h"
#include "tests/error_text.h"

namespace wick::streams::schedule_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;

// A chain of filters with these times; `stateful` names one.
StreamGraph chain(size_t count, size_t stateful = SIZE_MAX) {
  StreamGraph graph;
  graph.name = "chain";
  for (size_t i = 0; i < count; ++i) {
    Filter f;
    f.name = "f" + std::to_string(i);
    f.kind = "f";
    f.stateful = i == stateful;
    graph.filters.push_back(std::move(f));
  }
  return graph;
}

Costs costsOf(std::vector<double> milliseconds, std::vector<int64_t> bytes = {}) {
  Costs costs;
  costs.bytes = bytes.empty() ? std::vector<int64_t>(milliseconds.size() + 1, 100) : bytes;
  costs.milliseconds = std::move(milliseconds);
  return costs;
}

std::vector<size_t> endsOf(const Plan& plan) {
  std::vector<size_t> ends;
  for (const Stage& stage : plan.stages) ends.push_back(stage.last);
  return ends;
}

TEST(PartitionTest, TheSlowestStageIsAsFastAsCanBe) {
  const Plan plan = partition(chain(6), costsOf({4, 1, 1, 5, 2, 2}), 3);
  EXPECT_EQ(endsOf(plan), (std::vector<size_t>{3, 4, 6}));
  EXPECT_DOUBLE_EQ(plan.bottleneck(), 6);
}

// Every partition of short chains, tried one by one.
TEST(PartitionTest, AgreesWithTryingAll) {
  uint64_t state = 7;
  const auto next = [&](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + next(8);
    const size_t stages = 1 + next(count);
    std::vector<double> times;
    for (size_t i = 0; i < count; ++i) times.push_back(static_cast<double>(next(20)));
    Machine machine;
    machine.hop_milliseconds = 0;
    const Plan plan =
        partition(chain(count), costsOf(times), static_cast<int64_t>(stages), machine);
    ASSERT_EQ(plan.stages.size(), stages);
    double best = 1e9;
    for (uint64_t cuts = 0; cuts < uint64_t{1} << (count - 1); ++cuts) {
      if (static_cast<size_t>(__builtin_popcountll(cuts)) != stages - 1) continue;
      double slowest = 0, sum = 0;
      for (size_t i = 0; i < count; ++i) {
        sum += times[i];
        slowest = std::max(slowest, sum);
        if (cuts >> i & 1) sum = 0;
      }
      best = std::min(best, slowest);
    }
    EXPECT_DOUBLE_EQ(plan.bottleneck(), best);
  }
}

TEST(PartitionTest, HandsOnWhatIsSmall) {
  Machine machine;
  machine.gigabytes_per_second = 1;
  const Plan plan = partition(chain(3), costsOf({1, 1, 1}, {0, 50'000'000, 1000, 0}), 2, machine);
  EXPECT_EQ(endsOf(plan), (std::vector<size_t>{2, 3}));
}

TEST(PartitionTest, SlowStagesGetCopiesUnlessTheyHaveState) {
  const Costs costs = costsOf({1, 6, 1});
  const Plan copied = partitionForThreads(chain(3), costs, 4, 4);
  EXPECT_EQ(copied.threads(), 4);
  EXPECT_NEAR(copied.bottleneck(), 2, 0.01);
  const Plan stateful = partitionForThreads(chain(3, 1), costs, 4, 4);
  EXPECT_NEAR(stateful.bottleneck(), 6, 0.01);
  for (const Stage& stage : stateful.stages) {
    if (stage.first <= 1 && stage.last > 1) {
      EXPECT_EQ(stage.replicas, 1);
    }
  }
}

TEST(PartitionTest, WrongNumbersAreErrors) {
  EXPECT_THAT(errorOf([] {
                partition(chain(2), costsOf({1, 1}), 3);
              }),
              HasSubstr("expected 1 to 2 stages"));
  EXPECT_THAT(errorOf([] { partition(chain(0), costsOf({}), 1); }), HasSubstr("no filter"));
  const StreamGraph many = chain(20001);
  EXPECT_THAT(errorOf([&] { partition(many, costsOf(std::vector<double>(20001, 1)), 2); }),
              HasSubstr("a plan may have at most 20000 filters, the model has 20001"));
  const StreamGraph long_chain = chain(9000);
  EXPECT_THAT(errorOf([&] { partition(long_chain, costsOf(std::vector<double>(9000, 1)), 1025); }),
              HasSubstr("1025 stages of 9000 filters are too many to plan"));
  const auto for_threads = [](int64_t threads, int64_t replicas) {
    return errorOf([&] { partitionForThreads(chain(2), costsOf({1, 1}), threads, replicas); });
  };
  EXPECT_THAT(for_threads(0, 1),
              HasSubstr("expected 1 to 4096 threads and at least 1 replica, found 0 and 1"));
  EXPECT_THAT(for_threads(4097, 1), HasSubstr("found 4097 and 1"));
  EXPECT_THAT(for_threads(4, 0), HasSubstr("found 4 and 0"));
}

TEST(PlanTest, ReadsBackAndRefusesOtherModels) {
  const StreamGraph graph = chain(4, 3);
  Plan plan = partition(graph, costsOf({1, 2, 3, 4}), 2);
  plan.stages[0].replicas = 2;
  plan.queue = 7;
  const std::string text = planText(plan, graph);
  const Plan read = parsePlan(text, graph);
  EXPECT_EQ(endsOf(read), endsOf(plan));
  EXPECT_EQ(read.stages[0].replicas, 2);
  EXPECT_EQ(read.queue, 7);
  EXPECT_DOUBLE_EQ(read.stages[1].milliseconds, plan.stages[1].milliseconds);
  StreamGraph other = chain(4);
  other.filters[2].name = "g";
  EXPECT_THAT(errorOf([&] { parsePlan(text, other); }),
              HasSubstr("the plan is for another model: expected filter 3 to be 'g', found 'f2'"));
  EXPECT_THAT(errorOf([&] { parsePlan(text, chain(5)); }), HasSubstr("it ends before filter 'f4'"));
  EXPECT_THAT(errorOf([&] { parsePlan(text, chain(3)); }), HasSubstr("filter 4 to be none"));
  plan.stages[1].replicas = 2;
  EXPECT_THAT(errorOf([&] { parsePlan(planText(plan, graph), graph); }),
              HasSubstr("filter 'f3' has state"));
  StreamGraph few = graph;
  few.filters[1].most_replicas = 2;
  plan.stages[1].replicas = 1;
  plan.stages[0].replicas = 3;
  EXPECT_THAT(errorOf([&] { parsePlan(planText(plan, graph), few); }),
              HasSubstr("plan, stage 1: expected at most 2 replicas, for filter '" +
                        few.filters[1].name + "' allows no more, found 3"));
  plan.stages[0].replicas = 2;
  plan.stages[1].replicas = 2;
  EXPECT_THAT(errorOf([&] { parsePlan("{}", graph); }), HasSubstr("the list \"stages\""));
  EXPECT_THAT(errorOf([&] { parsePlan("nonsense", graph); }), HasSubstr("not JSON"));
  EXPECT_THAT(planDot(graph, plan), HasSubstr("stage 2, 2 copies"));
}

TEST(PlanTest, WrongPlansAreErrors) {
  struct Case {
    const char* text;
    const char* message;
  };
  const std::string deep = R"({"stages": )" + std::string(200, '[');
  for (const Case& c : {
           Case{R"({"stages": [], "queue": 0})",
                "plan: expected a number from 1 to 1048576 for \"queue\", found 0"},
           Case{R"({"stages": [], "in_flight": "all"})",
                "plan: expected a number from 0 to 1073741824 for \"in_flight\", found \"all\""},
           Case{R"({"stages": [{"filters": ["f0"], "replicas": 4097}]})",
                "plan: expected a number from 1 to 4096 for \"replicas\", found 4097"},
           Case{R"({"stages": [{"filters": []}]})",
                "plan, stage 1: expected an object with \"filters\", a list that is not empty"},
           Case{R"({"stages": [{"filters": ["f0"]}, 3]})", "plan, stage 2: expected an object"},
           Case{R"({"stages": [{"filters": ["f0", 1]}]})",
                "plan, stage 1: expected names of filters, found 1"},
           Case{deep.c_str(), "plan: lists or objects nest too deeply"},
       }) {
    EXPECT_THAT(errorOf([&] { parsePlan(c.text, chain(2)); }), HasSubstr(c.message)) << c.text;
  }
}

TEST(QueueTest, KeepsOrderAndWaits) {
  BoundedQueue<int> queue(3);
  constexpr int kCount = 20000;
  std::thread producer([&] {
    for (int i = 0; i < kCount; ++i) EXPECT_TRUE(queue.push(int{i}));
    queue.finish();
  });
  int value = -1;
  int expected = 0;
  while (queue.pop(value)) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, kCount);
  producer.join();
}

TEST(QueueTest, CancelEndsBothSides) {
  BoundedQueue<std::shared_ptr<int>> full(1);
  EXPECT_TRUE(full.push(std::make_shared<int>(1)));
  std::thread producer([&] { EXPECT_FALSE(full.push(std::make_shared<int>(2))); });
  BoundedQueue<int> empty(1);
  std::thread consumer([&] {
    int value = 0;
    EXPECT_FALSE(empty.pop(value));
  });
  full.cancel();
  empty.cancel();
  producer.join();
  consumer.join();
}

Plan planOf(std::vector<double> times, std::vector<int64_t> copies) {
  Plan plan;
  for (size_t i = 0; i < times.size(); ++i)
    plan.stages.push_back({i, i + 1, copies[i], times[i], 1000});
  return plan;
}

TEST(SimulateTest, TheSlowestStageSetsThePace) {
  Cluster cluster;
  cluster.machines = {{"m", 1, 8, 1}};
  cluster.within.latency_milliseconds = 0;
  const Prediction one = simulate(planOf({2, 5, 1}, {1, 1, 1}), cluster);
  EXPECT_NEAR(one.items_per_second, 200, 0.5);
  EXPECT_EQ(one.slowest_stage, 1u);
  const Prediction copies = simulate(planOf({2, 5, 1}, {1, 3, 1}), cluster);
  EXPECT_NEAR(copies.items_per_second, 500, 2);
}

TEST(SimulateTest, ItemsThatVaryHoldUp) {
  Cluster cluster;
  cluster.machines = {{"m", 1, 8, 1}};
  cluster.within.latency_milliseconds = 0;
  cluster.queue = 1;
  const Plan plan = planOf({1, 1}, {1, 1});
  const Prediction alike = simulate(plan, cluster);
  EXPECT_NEAR(alike.items_per_second, 1000, 1);
  // Filled and emptied: one item more than there are.
  EXPECT_NEAR(alike.milliseconds, 1001, 1e-6);
  // Now one waits, now the other. What they take is scaled to the plan's mean.
  const std::vector<double> first = {9, 9, 9, 9, 1, 1, 1, 1}, second = {1, 1, 1, 1, 9, 9, 9, 9};
  const Prediction varied = simulate(plan, cluster, {first, second});
  EXPECT_LT(varied.items_per_second, 900);
  EXPECT_GT(varied.items_per_second, 500);
  // Where one is not known, all its items are alike.
  EXPECT_LT(simulate(plan, cluster, {{}, second}).items_per_second, 990);
  // Longer queues even it out.
  cluster.queue = 16;
  EXPECT_GT(simulate(plan, cluster, {first, second}).items_per_second, 970);
}

TEST(SimulateTest, LatencyIsWhatARunTookLonger) {
  Cluster cluster;
  cluster.machines = {{"m", 1, 8, 1}};
  cluster.within.latency_milliseconds = 0.25;
  cluster.queue = 1;
  cluster.items = 100;
  const Plan plan = planOf({1, 1, 1}, {1, 1, 1});
  const std::vector<std::vector<double>> observed = {{1, 2, 0.5}, {2, 1, 0.5}, {0.1, 3}};
  RunReport run;
  run.items = 100;
  run.seconds = simulate(plan, cluster, observed).milliseconds / 1e3;
  cluster.within.latency_milliseconds = 0;
  EXPECT_NEAR(latencyOf(run, plan, cluster, observed), 0.25, 0.02);
  // A run that was faster than any simulation says nothing.
  run.seconds = 0.001;
  EXPECT_NEAR(latencyOf(run, plan, cluster, observed), 0, 1e-6);
}

TEST(SimulateTest, RunsTellWhatItemsTake) {
  Plan plan = planOf({5, 5}, {1, 1});
  std::vector<std::vector<double>> observed;
  RunReport run;
  EXPECT_FALSE(observe(run, plan, observed));
  run.stages.resize(2);
  EXPECT_FALSE(observe(run, plan, observed));
  for (StageTimes& times : run.stages) times = {.busy_seconds = 0.032, .items = 8};
  // Those with which the stages fill do not count.
  run.stages[1].milliseconds = {100, 100, 2, 3, 4, 2, 3, 4};
  ASSERT_TRUE(observe(run, plan, observed));
  EXPECT_DOUBLE_EQ(plan.stages[0].milliseconds, 4);
  EXPECT_TRUE(observed[0].empty());
  EXPECT_DOUBLE_EQ(plan.stages[1].milliseconds, 3);
  EXPECT_EQ(observed[1], (std::vector<double>{2, 3, 4, 2, 3, 4}));
}

TEST(SimulateTest, CoresAreSharedAndMachinesDiffer) {
  Cluster cluster;
  cluster.machines = {{"m", 1, 1, 1}};
  // Two stages on one core do no more than one after the other.
  EXPECT_NEAR(simulate(planOf({1, 1}, {1, 1}), cluster).items_per_second, 500, 5);
  cluster.machines = {{"m", 2, 1, 2}};
  const Prediction apart = simulate(planOf({1, 1}, {1, 1}), cluster);
  EXPECT_NEAR(apart.items_per_second, 2000, 20);
  EXPECT_EQ(apart.machines, 2);
}

TEST(SimulateTest, SlowLinksHoldUp) {
  Cluster cluster;
  cluster.machines = {{"m", 2, 1, 1}};
  cluster.between = {0.01, 1e-4};  // 1 kB takes 10 ms
  EXPECT_NEAR(simulate(planOf({1, 1}, {1, 1}), cluster).items_per_second, 100, 1);
}

TEST(SimulateTest, ScalesToAThousandThreads) {
  const Cluster cluster = parseCluster(
      R"({"machines": [{"name": "node", "count": 64, "cores": 16}], "items": 5000,
          "between": {"latency_us": 20, "gigabytes_per_s": 12.5}})");
  const std::vector<double> times(60, 1.0);
  const auto scaling = predictScaling(chain(60), costsOf(times), cluster);
  ASSERT_EQ(scaling.size(), 10u);
  for (size_t i = 1; i < scaling.size(); ++i) {
    EXPECT_LE(scaling[i].prediction.threads, 2 << i);
    EXPECT_GE(scaling[i].prediction.items_per_second,
              scaling[i - 1].prediction.items_per_second * 0.99);
  }
}

TEST(SimulateTest, WrongDescriptionsAreErrors) {
  const auto error = [](const char* text) { return errorOf([&] { parseCluster(text); }); };
  EXPECT_THAT(error("{}"), HasSubstr("expected \"machines\""));
  EXPECT_THAT(error(R"({"machines": [{"cores": 0}]})"), HasSubstr("from 1 to 4096 for \"cores\""));
  EXPECT_THAT(error(R"({"machines": [{"core": 1}]})"), HasSubstr("there is no key \"core\""));
  EXPECT_THAT(error(R"({"machines": [{}], "within": 3})"), HasSubstr("within: expected an object"));
  EXPECT_THAT(error("{"), HasSubstr("cluster: not JSON: "));
  EXPECT_THAT(error((R"({"machines": )" + std::string(200, '[')).c_str()),
              HasSubstr("cluster: lists or objects nest too deeply"));
  EXPECT_THAT(error(R"({"machines": [{"count": 65536}, {"count": 2}]})"),
              HasSubstr("cluster: expected at most 65536 machines, found 65538"));
}

}  // namespace
}  // namespace wick::streams::schedule_test
