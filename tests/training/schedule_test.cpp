// Schedules of learning rates against numbers of PyTorch 1.13, and their states.
#include "training/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serialization/torch_save.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::schedule_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;

double number(const IValue& settings, const char* key, double otherwise) {
  const IValue* v = settings.toDict().find(IValue(key));
  return !v ? otherwise : v->isInt() ? static_cast<double>(v->toInt()) : v->toDouble();
}
int64_t whole(const IValue& settings, const char* key, int64_t otherwise) {
  return static_cast<int64_t>(number(settings, key, static_cast<double>(otherwise)));
}

RateRule ruleOf(const std::string& name, const IValue& s) {
  if (name == "StepLR") return StepLr{whole(s, "step_size", 1), number(s, "gamma", 0.1)};
  if (name == "MultiStepLR") {
    return MultiStepLr{s["milestones"].to<std::vector<int64_t>>(), number(s, "gamma", 0.1)};
  }
  if (name == "ExponentialLR") return ExponentialLr{number(s, "gamma", 0.1)};
  if (name == "CosineAnnealingLR") {
    return CosineAnnealingLr{whole(s, "T_max", 1), number(s, "eta_min", 0)};
  }
  if (name == "LinearLR") {
    return LinearLr{number(s, "start_factor", 1.0 / 3), number(s, "end_factor", 1),
                    whole(s, "total_iters", 5)};
  }
  if (name == "ConstantLR") {
    return ConstantLr{number(s, "factor", 1.0 / 3), whole(s, "total_iters", 5)};
  }
  if (name == "PolynomialLR") {
    return PolynomialLr{whole(s, "total_iters", 5), number(s, "power", 1)};
  }
  OneCycleLr cycle{.max_lr = number(s, "max_lr", 0), .total_steps = whole(s, "total_steps", 1)};
  cycle.pct_start = number(s, "pct_start", 0.3);
  cycle.cosine = !s.toDict().find(IValue("anneal_strategy"));
  cycle.three_phase = s.toDict().find(IValue("three_phase")) != nullptr;
  return cycle;
}

struct Groups {
  Groups() {
    const Tensor a = Tensor::from({1.f, 1.f}), b = Tensor::from({1.f});
    optimizer.emplace(std::vector<Tensor>{a}, Sgd{.lr = 0.1, .momentum = 0.9});
    optimizer->addGroup({b}, Sgd{.lr = 0.5, .momentum = 0.9});
  }
  std::optional<Optimizer> optimizer;
};

// Any of the three classes.
struct AnySchedule {
  AnySchedule(Optimizer& optimizer, const IValue& recorded) {
    std::vector<RateRule> rules;
    for (const IValue& part : recorded["parts"].elements()) {
      rules.push_back(ruleOf(part.elements()[0].to<std::string>(), part.elements()[1]));
    }
    const std::string name = recorded["name"].to<std::string>();
    if (name == "Chained") {
      chained.emplace(optimizer, rules);
    } else if (name == "Sequential") {
      sequential.emplace(optimizer, rules, recorded["milestones"].to<std::vector<int64_t>>());
    } else {
      single.emplace(optimizer, rules[0]);
    }
  }
  template <class F>
  auto visit(F f) {
    return single ? f(*single) : chained ? f(*chained) : f(*sequential);
  }
  std::optional<Scheduler> single;
  std::optional<ChainedScheduler> chained;
  std::optional<SequentialScheduler> sequential;
};

void expectRates(const Optimizer& optimizer, const IValue& recorded, int64_t epoch) {
  const double* expected = recorded["rates"].toTensor().data<double>() + 4 * epoch;
  for (size_t g = 0; g < 2; ++g) {
    const Sgd& sgd = std::get<Sgd>(optimizer.groups()[g].rule);
    EXPECT_EQ(sgd.lr, expected[2 * g]) << recorded["parts"].repr() << " epoch " << epoch;
    EXPECT_EQ(sgd.momentum, expected[2 * g + 1]) << recorded["parts"].repr() << epoch;
  }
}

const std::string kData = "tests/training/data/schedules.pt";

TEST(ScheduleTest, RatesArePyTorchs) {
  const IValue all = loadValue(kData);
  for (const IValue& recorded : all.elements()) {
    Groups groups;
    AnySchedule schedule(*groups.optimizer, recorded);
    for (int64_t epoch = 0; epoch < 16; ++epoch) {
      expectRates(*groups.optimizer, recorded, epoch);
      if (epoch < 15) schedule.visit([](auto& s) { s.step(); });
    }
  }
}

TEST(ScheduleTest, GoesOnFromPyTorchsStates) {
  const IValue all = loadValue(kData);
  for (const IValue& recorded : all.elements()) {
    Groups groups;
    AnySchedule schedule(*groups.optimizer, recorded);
    schedule.visit([&](auto& s) { s.loadStateDict(recorded["state"]); });
    groups.optimizer->loadStateDict(recorded["optimizer"]);
    for (int64_t epoch = 6; epoch < 16; ++epoch) {
      expectRates(*groups.optimizer, recorded, epoch);
      if (epoch < 15) schedule.visit([](auto& s) { s.step(); });
    }
  }
}

// All keys that PyTorch's state has, with equal values.
void expectSameState(const IValue& found, const IValue& expected) {
  for (const auto& [key, value] : expected.toDict().items()) {
    const IValue* ours = found.toDict().find(key);
    ASSERT_NE(ours, nullptr) << key.repr();
    if (key.toString() == "_schedulers") {
      for (size_t i = 0; i < value.elements().size(); ++i) {
        expectSameState(ours->elements()[i], value.elements()[i]);
      }
      continue;
    }
    EXPECT_TRUE(ours->equals(value)) << key.repr() << ours->repr() << " " << value.repr();
  }
}

TEST(ScheduleTest, ItsStatesAreThoseOfPyTorch) {
  const IValue all = loadValue(kData);
  for (const IValue& recorded : all.elements()) {
    Groups groups;
    AnySchedule schedule(*groups.optimizer, recorded);
    for (int64_t epoch = 0; epoch < 6; ++epoch) schedule.visit([](auto& s) { s.step(); });
    expectSameState(schedule.visit([](auto& s) { return s.stateDict(); }), recorded["state"]);
  }
}

TEST(ScheduleTest, FunctionsOfTheEpoch) {
  Groups groups;
  Scheduler schedule(*groups.optimizer, LambdaLr{[](int64_t epoch) { return 1.0 / (1 + epoch); }});
  schedule.step();
  EXPECT_EQ(groups.optimizer->groups()[0].lr(), 0.05);
  schedule.step();
  EXPECT_DOUBLE_EQ(groups.optimizer->groups()[1].lr(), 0.5 / 3);
}

TEST(ScheduleTest, SaysWhatDoesNotFit) {
  Groups groups;
  Optimizer& optimizer = *groups.optimizer;
  EXPECT_THAT(errorOf([&] { Scheduler(optimizer, StepLr{0}); }), HasSubstr("step_size"));
  EXPECT_THAT(errorOf([&] { Scheduler(optimizer, LinearLr{.start_factor = 0}); }),
              HasSubstr("start_factor"));
  EXPECT_THAT(errorOf([&] { SequentialScheduler(optimizer, {StepLr{1}}, {3}); }),
              HasSubstr("one fewer"));
  Scheduler schedule(optimizer, StepLr{2});
  EXPECT_THAT(errorOf([&] { schedule.loadStateDict(IValue(1)); }), HasSubstr("has no"));
  const auto made = [&](RateRule rule) {
    return errorOf([&] { Scheduler(optimizer, std::move(rule)); });
  };
  EXPECT_THAT(made(CosineAnnealingLr{0}), HasSubstr("scheduler: t_max is 0, expected at least 1"));
  EXPECT_THAT(made(LinearLr{.start_factor = 2}),
              HasSubstr("start_factor is 2, expected a number above 0, up to 1"));
  EXPECT_THAT(made(LinearLr{.end_factor = -0.5}),
              HasSubstr("end_factor is -0.5, expected a number from 0 to 1"));
  EXPECT_THAT(made(ConstantLr{0}), HasSubstr("factor is 0, expected a number above 0, up to 1"));
  EXPECT_THAT(made(PolynomialLr{-1}), HasSubstr("total_iters is -1, expected at least 1"));
  EXPECT_THAT(made(OneCycleLr{.total_steps = 0}), HasSubstr("total_steps is 0"));
  EXPECT_THAT(made(OneCycleLr{.total_steps = 3, .pct_start = 1.5}),
              HasSubstr("pct_start is 1.5, expected a number from 0 to 1"));
  EXPECT_THAT(made(LambdaLr{}), HasSubstr("there is no function"));
  Optimizer adagrad({Tensor::from({1.f})}, Adagrad{});
  EXPECT_THAT(errorOf([&] { Scheduler(adagrad, OneCycleLr{.total_steps = 3}); }),
              HasSubstr("no momentum"));
}

// A state of the scheduler with another entry.
template <class S>
std::string withEntry(S& schedule, const char* name, IValue value) {
  const IValue state = schedule.stateDict();
  auto changed = makeRef<DictObject>(types::String(), types::Any());
  for (const auto& [key, old] : state.toDict().items()) changed->set(key, old);
  changed->set(IValue(name), std::move(value));
  return errorOf([&] { schedule.loadStateDict(IValue(std::move(changed))); });
}

TEST(ScheduleTest, StatesThatDoNotFit) {
  Groups groups;
  Optimizer& optimizer = *groups.optimizer;
  Scheduler steps(optimizer, StepLr{2});
  EXPECT_THAT(withEntry(steps, "gamma", IValue("half")),
              HasSubstr("scheduler: loadStateDict: 'gamma' is str, expected a number"));
  EXPECT_THAT(withEntry(steps, "step_size", IValue(1e300)),
              HasSubstr("'step_size' is 1e+300, expected a whole number"));
  EXPECT_THAT(withEntry(steps, "step_size", IValue(0)), HasSubstr("step_size is 0"));
  EXPECT_THAT(withEntry(steps, "_last_lr", IValue(0.1)),
              HasSubstr("'_last_lr' is float, expected a list"));
  EXPECT_THAT(withEntry(steps, "base_lrs", IValue(makeList(types::Float(), {IValue(0.1)}))),
              HasSubstr("the state is of 1 groups, the optimizer has 2"));
  Scheduler milestones(optimizer, MultiStepLr{{2, 3}, 0.5});
  EXPECT_THAT(withEntry(milestones, "milestones", IValue(3)),
              HasSubstr("'milestones' is int, expected a dict"));
  auto counts = makeRef<DictObject>(types::Int(), types::Int());
  counts->set(int64_t{2}, int64_t{1} << 40);
  EXPECT_THAT(withEntry(milestones, "milestones", IValue(std::move(counts))),
              HasSubstr("'milestones' holds 2: 1099511627776, expected how often an epoch occurs"));
  ChainedScheduler chained(optimizer, {StepLr{2}, ConstantLr{0.5}});
  EXPECT_THAT(withEntry(chained, "_schedulers", IValue(makeList(types::Any(), {IValue(1)}))),
              HasSubstr("'_schedulers' is a list of 1, expected a list of 2"));
  EXPECT_THAT(withEntry(chained, "_schedulers", IValue("none")),
              HasSubstr("'_schedulers' is str, expected a list of 2"));
  Groups cycled;
  Scheduler cycle(*cycled.optimizer, OneCycleLr{.max_lr = 1, .total_steps = 3});
  EXPECT_THAT(withEntry(cycle, "cycle_momentum", IValue(1)),
              HasSubstr("'cycle_momentum' is int, expected a bool"));
  for (int i = 0; i < 2; ++i) cycle.step();
  cycled.optimizer->groups()[0].others.clear();
  EXPECT_THAT(errorOf([&] { cycle.step(); }),
              HasSubstr("a group of the optimizer has no 'max_lr'"));
  EXPECT_THAT(errorOf([&] {
                for (int i = 0; i < 3; ++i) cycle.step();
              }),
              HasSubstr("scheduler: stepped 5 times; the cycle has 3 steps"));
  optimizer.addGroup({Tensor::from({1.f})}, Sgd{.lr = 1});
  EXPECT_THAT(errorOf([&] { steps.step(); }),
              HasSubstr("made for 2 groups, the optimizer has 3 now"));
}

}  // namespace
}  // namespace wick::schedule_test
