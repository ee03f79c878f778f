// Optimizers step by step against numbers of PyTorch 1.13, their states both ways, and clipping.
#include "training/optimizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "serialization/torch_save.h"
#include "tests/error_text.h"
#include "training/backward.h"
#include "training/clip.h"
#include "wick.h"

namespace wick::optimizer_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;

const std::string kData = "tests/training/data/";

const IValue& optimizerData() {
  static const IValue data = loadValue(kData + "optimizers.pt");
  return data;
}

std::vector<Tensor> tensorsOf(const IValue& list) {
  std::vector<Tensor> tensors;
  for (const IValue& v : list.elements()) tensors.push_back(v.toTensor());
  return tensors;
}

UpdateRule ruleOf(const std::string& name, const IValue& settings) {
  const auto number = [&](const char* key, double& field) {
    if (const IValue* v = settings.toDict().find(IValue(key))) {
      field = v->isInt() ? static_cast<double>(v->toInt()) : v->toDouble();
    }
  };
  const auto flag = [&](const char* key, bool& field) {
    if (const IValue* v = settings.toDict().find(IValue(key))) field = v->toBool();
  };
  const auto common = [&](auto rule) -> UpdateRule {
    number("lr", rule.lr);
    number("weight_decay", rule.weight_decay);
    flag("maximize", rule.maximize);
    if constexpr (requires { rule.momentum; }) number("momentum", rule.momentum);
    if constexpr (requires { rule.dampening; }) number("dampening", rule.dampening);
    if constexpr (requires { rule.nesterov; }) flag("nesterov", rule.nesterov);
    if constexpr (requires { rule.eps; }) number("eps", rule.eps);
    if constexpr (requires { rule.alpha; }) number("alpha", rule.alpha);
    if constexpr (requires { rule.centered; }) flag("centered", rule.centered);
    if constexpr (requires { rule.amsgrad; }) flag("amsgrad", rule.amsgrad);
    if constexpr (requires { rule.lr_decay; }) number("lr_decay", rule.lr_decay);
    if constexpr (requires { rule.initial_accumulator_value; }) {
      number("initial_accumulator_value", rule.initial_accumulator_value);
    }
    if constexpr (requires { rule.betas; }) {
      if (const IValue* v = settings.toDict().find(IValue("betas"))) {
        const auto betas = v->elements();
        for (size_t i = 0; i < 2; ++i) rule.betas[i] = IValue(betas[i]).toDouble();
      }
    }
    return rule;
  };
  if (name == "SGD") return common(Sgd());
  if (name == "Adam") return common(Adam());
  if (name == "AdamW") return common(AdamW());
  if (name == "RMSprop") return common(RmsProp());
  return common(Adagrad());
}

std::vector<Tensor> parametersFrom(const std::vector<Tensor>& start, DType dtype) {
  std::vector<Tensor> parameters;
  for (const Tensor& t : start) {
    const bool images = t.dim() == 4;
    Tensor p = Tensor::empty(t.sizes(), dtype, {},
                             images ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous);
    p.copyFrom(t);
    p.setRequiresGrad(true);
    parameters.push_back(p);
  }
  return parameters;
}

void setGradients(const std::vector<Tensor>& parameters, const IValue& gradients) {
  const std::vector<Tensor> all = tensorsOf(gradients);
  for (size_t i = 0; i < parameters.size(); ++i) {
    setGradient(parameters[i], all[i].to(parameters[i].dtype()));
  }
}

std::vector<double> flat(const std::vector<Tensor>& tensors) {
  std::vector<double> numbers;
  for (const Tensor& t : tensors) {
    const Tensor plain = t.detach().contiguous().to(DType::Double);
    numbers.insert(numbers.end(), plain.data<double>(), plain.data<double>() + plain.numel());
  }
  return numbers;
}

// To the last bit.
void expectSame(const std::vector<double>& found, const std::vector<double>& expected,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], expected[i]) << what << ", element " << i;
  }
}

struct Case {
  explicit Case(const IValue& v)
      : name(std::string(v["rule"].toString())),
        dtype(v["double"].toBool() ? DType::Double : DType::Float),
        rule(ruleOf(name, v["settings"])),
        recorded(v),
        text(name + " " + v["settings"].repr() + (dtype == DType::Double ? " double" : " float")) {}
  std::string name;
  DType dtype;
  UpdateRule rule;
  IValue recorded;
  std::string text;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const IValue& v : optimizerData()["cases"].elements()) all.emplace_back(v);
  return all;
}

constexpr size_t kSteps = 12;  // before the state was recorded

std::vector<IValue> recordedGradients() {
  const auto all = optimizerData()["gradients"].elements();
  return {all.begin(), all.end()};
}

TEST(OptimizerTest, EveryStepGivesPyTorchsBits) {
  const std::vector<IValue> gradients = recordedGradients();
  for (const Case& c : cases()) {
    const auto parameters = parametersFrom(tensorsOf(optimizerData()["start"]), c.dtype);
    Optimizer optimizer(parameters, c.rule);
    size_t snapshot = 0;
    for (size_t step = 0; step < kSteps; ++step) {
      setGradients(parameters, gradients[step]);
      optimizer.step();
      const IValue at = optimizerData()["snapshots"].elements()[snapshot];
      if (static_cast<size_t>(at.toInt()) != step + 1) continue;
      const Tensor expected = c.recorded["after"].toTensor().select(0, snapshot++);
      expectSame(flat(parameters), flat({expected}), fmt::format("{} step {}", c.text, step + 1));
    }
  }
}

TEST(OptimizerTest, GoesOnFromPyTorchsStates) {
  const std::vector<IValue> gradients = recordedGradients();
  for (const Case& c : cases()) {
    auto parameters = parametersFrom(tensorsOf(optimizerData()["start"]), c.dtype);
    // The parameters as they were when the state was saved.
    const Tensor last = c.recorded["after"].toTensor().select(0, 3);
    int64_t at = 0;
    for (const Tensor& p : parameters) {
      p.detach().copyFrom(last.narrow(0, at, p.numel()).view(p.sizes()));
      at += p.numel();
    }
    // Its settings come with the state, so others may be given first.
    UpdateRule other = c.rule;
    std::visit([](auto& r) { r.lr = 123; }, other);
    Optimizer optimizer(parameters, other);
    optimizer.loadStateDict(c.recorded["state"]);
    for (size_t step = kSteps; step < gradients.size(); ++step) {
      setGradients(parameters, gradients[step]);
      optimizer.step();
    }
    expectSame(flat(parameters), flat({c.recorded["resumed"].toTensor()}), c.text);
  }
}

TEST(OptimizerTest, ItsStatesAreThoseOfPyTorch) {
  const std::vector<IValue> gradients = recordedGradients();
  for (const Case& c : cases()) {
    const auto parameters = parametersFrom(tensorsOf(optimizerData()["start"]), c.dtype);
    Optimizer optimizer(parameters, c.rule);
    for (size_t step = 0; step < kSteps; ++step) {
      setGradients(parameters, gradients[step]);
      optimizer.step();
    }
    const IValue state = optimizer.stateDict();
    const IValue& expected = c.recorded["state"];
    for (const auto& [key, entries] : expected["state"].toDict().items()) {
      for (const auto& [name, value] : entries.toDict().items()) {
        if (value.isNone()) continue;
        const IValue* found = state["state"].at(key).toDict().find(name);
        ASSERT_NE(found, nullptr) << c.text << " " << name.repr();
        ASSERT_EQ(found->tagName(), value.tagName()) << c.text << " " << name.repr();
        if (!value.isTensor()) continue;
        ASSERT_EQ(found->toTensor().describe(), value.toTensor().describe()) << c.text;
        expectSame(flat({found->toTensor()}), flat({value.toTensor()}), c.text + name.repr());
      }
    }
    const IValue group = state["param_groups"].elements()[0];
    for (const auto& [name, value] : group.toDict().items()) {
      const IValue theirs = IValue(expected["param_groups"].elements()[0]).at(name);
      EXPECT_TRUE(value.equals(theirs)) << c.text << " " << name.repr() << value.repr();
    }
  }
}

TEST(OptimizerTest, PyTorchGoesOnFromItsStates) {
  if (std::system("/usr/bin/python3 -c 'import torch' 2>/dev/null") != 0) {
    GTEST_SKIP() << "needs Debian's python3-torch";
  }
  const std::vector<IValue> gradients = recordedGradients();
  std::vector<IValue> inputs;
  std::vector<std::vector<double>> expected;
  for (const Case& c : cases()) {
    const auto parameters = parametersFrom(tensorsOf(optimizerData()["start"]), c.dtype);
    Optimizer optimizer(parameters, c.rule);
    for (size_t step = 0; step < 4; ++step) {
      setGradients(parameters, gradients[step]);
      optimizer.step();
    }
    auto input = makeRef<DictObject>(types::String(), types::Any());
    std::vector<IValue> start, steps;
    for (const Tensor& p : parameters) start.emplace_back(p.detach().clone());
    for (size_t step = 4; step < 7; ++step) steps.push_back(gradients[step]);
    input->set(IValue("rule"), IValue(c.name));
    input->set(IValue("double"), c.dtype == DType::Double);
    input->set(IValue("start"), IValue(makeList(types::Any(), start)));
    input->set(IValue("gradients"), IValue(makeList(types::Any(), steps)));
    // Written and read again, so that what follows does not change it.
    const std::string path = testing::TempDir() + "/state.pt";
    saveValue(optimizer.stateDict(), path);
    input->set(IValue("state"), loadValue(path));
    inputs.emplace_back(IValue(std::move(input)));
    for (size_t step = 4; step < 7; ++step) {
      setGradients(parameters, gradients[step]);
      optimizer.step();
    }
    expected.push_back(flat(parameters));
  }
  const std::string in = testing::TempDir() + "/in.pt", out = testing::TempDir() + "/out.pt";
  saveValue(IValue(makeList(types::Any(), inputs)), in);
  const std::string command =
      "/usr/bin/python3 -W ignore tests/training/interop.py " + in + " " + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const IValue results = loadValue(out);
  ASSERT_EQ(results.elements().size(), expected.size());
  size_t i = 0;
  for (const Case& c : cases()) {
    const IValue result = results.elements()[i];
    expectSame(flat(tensorsOf(result["parameters"])), expected[i++], c.text);
    // And back.
    Optimizer again(parametersFrom(tensorsOf(optimizerData()["start"]), c.dtype), c.rule);
    again.loadStateDict(result["state"]);
  }
}

Tensor leaf(std::vector<float> values) {
  Tensor t = Tensor::from(values);
  t.setRequiresGrad(true);
  return t;
}

TEST(OptimizerTest, GroupsHaveTheirOwnSettings) {
  const Tensor a = leaf({1, 2}), b = leaf({3});
  Optimizer optimizer({a}, Sgd{.lr = 0.5});
  optimizer.addGroup({b}, Sgd{.lr = 0.25});
  setGradient(a, Tensor::from({1.f, 1.f}));
  setGradient(b, Tensor::from({2.f}));
  optimizer.step();
  EXPECT_EQ(a.data<float>()[1], 1.5f);
  EXPECT_EQ(b.data<float>()[0], 2.5f);
  optimizer.groups()[1].setLr(1);
  optimizer.step();
  EXPECT_EQ(b.data<float>()[0], 0.5f);
  const IValue state = optimizer.stateDict();
  EXPECT_EQ(state["param_groups"].elements()[1]["params"].repr(), "[1]");
  EXPECT_THROW(optimizer.addGroup({leaf({1})}, Adam{}), UsageError);
  EXPECT_THROW(optimizer.addGroup({b}, Sgd{.lr = 1}), UsageError);
}

TEST(OptimizerTest, ParametersWithoutGradientStayAsTheyAre) {
  const Tensor a = leaf({1}), frozen = Tensor::from({5.f});
  Optimizer optimizer({frozen, a}, Adam{.lr = 0.5});
  setGradient(a, Tensor::from({1.f}));
  optimizer.step();
  EXPECT_EQ(frozen.data<float>()[0], 5);
  EXPECT_NE(a.data<float>()[0], 1);
  // Only the second one has a state, under its number.
  EXPECT_EQ(optimizer.stateDict()["state"].toDict().keys()[0].toInt(), 1);
}

TEST(OptimizerTest, ManyParametersOfAllSizes) {
  // Chunks of threads cross parameters anywhere.
  std::vector<Tensor> parameters, alone;
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t n = i % 7 == 0 ? 0 : (i * 7919) % 3001;
    Tensor t = Tensor::full({n}, 1.0, DType::Float);
    t.setRequiresGrad(true);
    Tensor u = t.clone();
    u.setRequiresGrad(true);
    Tensor g = Tensor::empty({n}, DType::Float);
    for (int64_t k = 0; k < n; ++k) g.data<float>()[k] = static_cast<float>(k % 13 - i % 5);
    setGradient(t, g);
    setGradient(u, g.clone());
    parameters.push_back(t);
    alone.push_back(u);
  }
  Optimizer together(parameters, AdamW{.lr = 0.1});
  std::vector<Optimizer> each;
  for (const Tensor& t : alone) each.emplace_back(std::vector<Tensor>{t}, AdamW{.lr = 0.1});
  setNumThreads(4);
  for (int i = 0; i < 3; ++i) {
    together.step();
    for (Optimizer& optimizer : each) optimizer.step();
  }
  expectSame(flat(parameters), flat(alone), "together and alone");
}

TEST(OptimizerTest, ParametersThatShareMemoryOrHaveGaps) {
  const Tensor base = Tensor::full({4, 6}, 1.0, DType::Float);
  Tensor columns = base.slice(1, 0, 6, 2).detach(), rows = base.detach();
  columns.setRequiresGrad(true);
  rows.setRequiresGrad(true);
  Optimizer optimizer({rows, columns}, Sgd{.lr = 1});
  setGradient(columns, Tensor::full({4, 3}, 0.25, DType::Float));
  setGradient(rows, Tensor::full({4, 6}, 0.5, DType::Float));
  optimizer.step();
  EXPECT_EQ(base.data<float>()[1], 0.5f);
  EXPECT_EQ(base.data<float>()[0], 0.25f);
}

TEST(OptimizerTest, WritesCountForSavedTensors) {
  const Tensor a = leaf({1, 2});
  const uint32_t before = a.storage()->version();
  Optimizer optimizer({a}, Sgd{.lr = 1});
  setGradient(a, Tensor::from({1.f, 1.f}));
  optimizer.step();
  EXPECT_GT(a.storage()->version(), before);
}

TEST(OptimizerTest, ReducedAndComplexNumbers) {
  Tensor half = Tensor::from({1.f, -2.f, 3.f}).to(DType::BFloat16);
  half.setRequiresGrad(true);
  setGradient(half, Tensor::from({0.5f, 0.25f, -1.f}).to(DType::BFloat16));
  Tensor complex = Tensor::scalar(std::complex<double>(1, 2));
  complex.setRequiresGrad(true);
  setGradient(complex, Tensor::scalar(std::complex<double>(0.5, -1)));
  Optimizer optimizer({half, complex}, Adam{.lr = 0.125});
  optimizer.step();
  // The first step of Adam is the rate along the sign.
  EXPECT_NEAR(flat({half})[0], 0.875, 0.01);
  EXPECT_NEAR(complex.item<std::complex<double>>().real(), 0.875, 1e-6);
  EXPECT_NEAR(complex.item<std::complex<double>>().imag(), 2.125, 1e-6);
}

TEST(OptimizerTest, ZeroGradTakesAwayOrClears) {
  const Tensor a = leaf({1, 2});
  Optimizer optimizer({a}, Sgd{.lr = 1});
  const Tensor g = Tensor::from({3.f, 4.f});
  setGradient(a, g);
  optimizer.zeroGrad(/*set_to_none=*/false);
  EXPECT_TRUE(gradientOf(a).isSame(g));
  EXPECT_EQ(g.data<float>()[0], 0);
  optimizer.zeroGrad();
  EXPECT_FALSE(gradientOf(a).defined());
  optimizer.step();
  EXPECT_EQ(a.data<float>()[0], 1);
}

TEST(OptimizerTest, SaysWhatDoesNotFit) {
  EXPECT_THAT(errorOf([] { Optimizer({Tensor::from({int64_t{1}})}, Adam{}); }),
              HasSubstr("int64[1]) has no gradient"));
  EXPECT_THAT(errorOf([] { Optimizer(std::vector<Tensor>{}, Adam{}); }),
              HasSubstr("no parameters"));
  EXPECT_THAT(errorOf([] { Optimizer({leaf({1})}, Adam{.lr = -1}); }), HasSubstr("lr is -1"));
  EXPECT_THAT(errorOf([] {
                Optimizer({leaf({1})}, Adam{.betas = {1, 0.9}});
              }),
              HasSubstr("betas is (1, 0.9)"));
  EXPECT_THAT(errorOf([] { Optimizer({leaf({1})}, Sgd{.lr = 1, .nesterov = true}); }),
              HasSubstr("Nesterov"));
  const Tensor a = leaf({1});
  EXPECT_THAT(errorOf([&] { Optimizer({a, a}, Adam{}); }), HasSubstr("occurs twice"));
  Optimizer optimizer({a}, Adam{});
  setGradient(a, Tensor::from({1.f, 2.f}));
  EXPECT_THAT(errorOf([&] { optimizer.step(); }), HasSubstr("its gradient float32[2]"));
  EXPECT_EQ(a.data<float>()[0], 1);
  EXPECT_THAT(errorOf([&] { optimizer.loadStateDict(IValue(3)); }), HasSubstr("expected a dict"));
  Optimizer other({leaf({1, 2})}, Adam{});
  EXPECT_EQ(errorOf([&] { other.loadStateDict(optimizer.stateDict()); }), "no error");
  setGradient(a, Tensor::from({1.f}));
  optimizer.step();
  EXPECT_THAT(errorOf([&] { other.loadStateDict(optimizer.stateDict()); }),
              HasSubstr("'exp_avg' is float32[1], the parameter float32[2]"));
  Optimizer sgd({leaf({1})}, Sgd{.lr = 1, .momentum = 0.9});
  EXPECT_THAT(errorOf([&] { sgd.loadStateDict(optimizer.stateDict()); }),
              HasSubstr("it is not of SGD"));
}

Ref<DictObject> copyOf(const IValue& dict) {
  auto copy = makeRef<DictObject>(dict.toDict().key_type, types::Any());
  for (const auto& [key, value] : dict.toDict().items()) copy->set(key, value);
  return copy;
}

TEST(OptimizerTest, StatesThatDoNotFit) {
  const Tensor a = leaf({1});
  Optimizer optimizer({a}, Adam{});
  setGradient(a, Tensor::from({1.f}));
  optimizer.step();
  const IValue state = optimizer.stateDict();
  const auto load = [&](const char* name, IValue value) {
    const Ref<DictObject> changed = copyOf(state);
    changed->set(IValue(name), std::move(value));
    return errorOf([&] { optimizer.loadStateDict(IValue(changed)); });
  };
  const auto group = [&](const char* name, IValue value) {
    const Ref<DictObject> changed = copyOf(state["param_groups"].elements()[0]);
    changed->set(IValue(name), std::move(value));
    return load("param_groups", IValue(makeList(types::Any(), {IValue(changed)})));
  };
  const auto memory = [&](IValue name, IValue value) {
    const Ref<DictObject> changed = copyOf(state["state"].toDict().items().front().second);
    auto all = makeRef<DictObject>(types::Int(), types::Any());
    auto any = makeRef<DictObject>(types::Any(), types::Any());
    for (const auto& [key, old] : changed->items()) any->set(key, old);
    any->set(std::move(name), std::move(value));
    all->set(int64_t{0}, IValue(any));
    return load("state", IValue(all));
  };
  const auto list = [](std::vector<IValue> values) {
    return IValue(makeList(types::Any(), std::move(values)));
  };
  EXPECT_EQ(group("lr", IValue(0.5)), "no error");
  EXPECT_THAT(load("param_groups", IValue(1)), HasSubstr("'param_groups' is int, expected a list"));
  EXPECT_THAT(load("param_groups", list({})), HasSubstr("the state has 0 groups, the optimizer 1"));
  EXPECT_THAT(load("state", IValue(1)), HasSubstr("'state' is int, expected a dict"));
  EXPECT_THAT(group("params", IValue(1)), HasSubstr("group 0: 'params' is int, expected a list"));
  EXPECT_THAT(group("params", list({IValue(0), IValue(1)})),
              HasSubstr("group 0 has 2 parameters, that of the optimizer has 1"));
  EXPECT_THAT(group("params", list({IValue("a")})),
              HasSubstr("group 0: 'params' holds str, expected numbers"));
  EXPECT_THAT(group("lr", IValue("small")), HasSubstr("'lr' is str, expected a number"));
  EXPECT_THAT(group("lr", IValue(-1.0)), HasSubstr("lr is -1"));
  EXPECT_THAT(group("betas", IValue(0.9)), HasSubstr("'betas' is float, expected two numbers"));
  EXPECT_THAT(group("amsgrad", IValue(1)), HasSubstr("'amsgrad' is int, expected a bool"));
  EXPECT_THAT(memory(IValue(3), IValue(1)),
              HasSubstr("the state of parameter 0 has the key 3, expected a string"));
  EXPECT_THAT(memory(IValue("step"), IValue(-1)), HasSubstr("'step' is -1, expected a count"));
  EXPECT_THAT(memory(IValue("sum"), IValue(1)), HasSubstr("has 'sum', which Adam does not know"));
  EXPECT_THAT(memory(IValue("exp_avg"), IValue(1)),
              HasSubstr("'exp_avg' is int, expected a dense tensor"));
  auto stray = makeRef<DictObject>(types::Int(), types::Any());
  stray->set(int64_t{7}, IValue(1));
  EXPECT_THAT(load("state", IValue(stray)),
              HasSubstr("'state' has an entry 7, which is the number of no parameter"));
  const Tensor b = leaf({2});
  Optimizer two({a, b}, Adam{});
  const Ref<DictObject> twice = copyOf(two.stateDict());
  const Ref<DictObject> same = copyOf((*twice->find(IValue("param_groups"))).elements()[0]);
  same->set(IValue("params"), list({IValue(0), IValue(0)}));
  twice->set(IValue("param_groups"), list({IValue(same)}));
  EXPECT_THAT(errorOf([&] { two.loadStateDict(IValue(twice)); }),
              HasSubstr("group 0: parameter 0 occurs twice"));
}

TEST(OptimizerTest, StatesOfScalersThatDoNotFit) {
  GradScaler scaler;
  const IValue state = scaler.stateDict();
  const auto load = [&](const char* name, IValue value) {
    const Ref<DictObject> changed = copyOf(state);
    changed->set(IValue(name), std::move(value));
    return errorOf([&] { scaler.loadStateDict(IValue(changed)); });
  };
  EXPECT_EQ(load("scale", IValue(2.0)), "no error");
  EXPECT_EQ(scaler.currentScale(), 2);
  EXPECT_THAT(errorOf([&] { scaler.loadStateDict(IValue(1)); }),
              HasSubstr("GradScaler: the state: expected a dict, got int"));
  EXPECT_THAT(errorOf([&] {
                scaler.loadStateDict(IValue(makeRef<DictObject>(types::String(), types::Any())));
              }),
              HasSubstr("there is no 'growth_factor'; was the scaler not enabled?"));
  EXPECT_THAT(load("scale", IValue("large")), HasSubstr("'scale' is str, expected a number"));
  EXPECT_THAT(load("growth_interval", IValue(-1)),
              HasSubstr("'growth_interval' is -1, expected a count"));
  EXPECT_THAT(load("_growth_tracker", IValue(int64_t{1} << 40)),
              HasSubstr("'_growth_tracker' is 1099511627776, expected a count"));
}

// Each gradient's norm is rounded to its own dtype, not to that of the one before it.
TEST(ClipTest, NormsOfSeveralDTypes) {
  const Tensor half = leaf({1}).to(DType::Half), wide = leaf({1}).to(DType::Double);
  half.setRequiresGrad(true);
  wide.setRequiresGrad(true);
  setGradient(half, Tensor::from({0.125f}).to(DType::Half));
  setGradient(wide, Tensor::from({0.3}));
  EXPECT_EQ(clipGradNorm({half, wide}, 1, std::numeric_limits<double>::infinity()), 0.3);
}

TEST(ClipTest, NormsAndClippedGradientsArePyTorchs) {
  const IValue all = loadValue(kData + "clip.pt");
  for (const IValue& c : all.elements()) {
    const DType dtype = c["double"].toBool() ? DType::Double : DType::Float;
    const double tolerance = dtype == DType::Double ? 1e-13 : 1e-6;
    const auto parameters = parametersFrom(tensorsOf(optimizerData()["start"]), dtype);
    const std::vector<Tensor> gradients = tensorsOf(recordedGradients()[0]);
    const double scale = c["scale"].toDouble();
    for (size_t i = 0; i < parameters.size(); ++i) {
      Tensor g = gradients[i].clone();
      for (int64_t k = 0; k < g.numel(); ++k) g.data<double>()[k] *= scale;
      setGradient(parameters[i], g.to(dtype));
    }
    const double norm =
        clipGradNorm(parameters, c["max_norm"].toDouble(), c["norm_type"].toDouble());
    EXPECT_NEAR(norm / c["norm"].toDouble(), 1, tolerance) << c["norm_type"].repr();
    std::vector<Tensor> clipped;
    for (const Tensor& p : parameters) clipped.push_back(gradientOf(p));
    const std::vector<double> found = flat(clipped), expected = flat({c["clipped"].toTensor()});
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], tolerance * std::abs(expected[i]));
    }
  }
}

TEST(ClipTest, Values) {
  const Tensor a = leaf({0, 0, 0, 0});
  setGradient(a, Tensor::from({-3.f, 0.5f, 7.f, NAN}));
  clipGradValue({a}, 1);
  const float* g = gradientOf(a).data<float>();
  EXPECT_EQ(g[0], -1);
  EXPECT_EQ(g[1], 0.5f);
  EXPECT_EQ(g[2], 1);
  EXPECT_TRUE(std::isnan(g[3]));
  EXPECT_THROW(clipGradNorm({a}, 1, 2, /*error_if_nonfinite=*/true), RuntimeError);
  EXPECT_EQ(clipGradNorm({leaf({1})}, 1), 0);
}

// y = w x + b, learnt from points of a line.
Program lineProgram() {
  return compile(
      "def loss(w: Tensor, b: Tensor, x: Tensor, y: Tensor):\n"
      "    return ((w * x + b - y) ** 2).mean()\n");
}

double learnLine(const Program& program) {
  const Tensor w = leaf({0}), b = leaf({0});
  Optimizer optimizer({w, b}, Sgd{.lr = 0.1, .momentum = 0.5});
  const Tensor x = Tensor::from({-1.f, 0.f, 1.f, 2.f}), y = Tensor::from({-2.f, 1.f, 4.f, 7.f});
  for (int i = 0; i < 200; ++i) {
    optimizer.zeroGrad();
    backward(program.call("loss", {w, b, x, y}).tensor());
    optimizer.step();
  }
  return std::abs(w.data<float>()[0] - 3) + std::abs(b.data<float>()[0] - 1);
}

TEST(OptimizerTest, LearnsALineOnSeveralThreads) {
  const Program program = lineProgram();
  EXPECT_LT(learnLine(program), 1e-4);
  std::vector<std::thread> threads;
  std::vector<double> errors(8, 1);
  for (size_t i = 0; i < errors.size(); ++i) {
    threads.emplace_back([&, i] { errors[i] = learnLine(program); });
  }
  for (std::thread& thread : threads) thread.join();
  for (double error : errors) EXPECT_LT(error, 1e-4);
}

TEST(OptimizerTest, ALossIsOneNumber) {
  const Tensor a = leaf({1, 2});
  EXPECT_THAT(errorOf([&] { backward(a); }), HasSubstr("one element, got float32[2]"));
  EXPECT_THAT(errorOf([&] { backward(Tensor::from({1.f})); }), HasSubstr("does not require grad"));
}

}  // namespace
}  // namespace wick::optimizer_test
