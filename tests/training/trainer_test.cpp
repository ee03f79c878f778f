// Whole trainings: against one of PyTorch 1.13, interrupted and gone on with, on several threads.
#include "training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/device_backend.h"
#include "lazy/lazy.h"
#include "runtime/device_moves.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "tests/error_text.h"
#include "training/backward.h"
#include "wick.h"

namespace wick::training::trainer_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;

const std::string kData = "tests/training/data/";

DataSet dataFrom(const IValue& recorded) {
  DataSet data;
  data.inputs.emplace_back("x", recorded["x"].toTensor());
  data.target_name = "y";
  data.targets = recorded["y"].toTensor();
  return data;
}

TrainerSettings recordedSettings() {
  TrainerSettings settings;
  settings.rule = AdamW{.lr = 0.01};
  settings.schedule = [](int64_t, int64_t all) {
    return TrainerSettings::Plan{{CosineAnnealingLr{all, 0}}, {}};
  };
  settings.epochs = 3;
  settings.batch_size = 16;
  settings.shuffle = false;
  settings.clip_norm = 0.5;
  return settings;
}

// The recorded training, with the module on a device.
void expectRecordedTraining(Device device, std::function<void()> end_step) {
  const IValue recorded = loadValue(kData + "training.pt");
  TrainerSettings settings = recordedSettings();
  settings.end_step = std::move(end_step);
  const Module module = load(kData + "net.pt");
  const IValue object(module.object());
  moveTensors({&object, 1}, device);
  Trainer trainer(module, dataFrom(recorded), Objective("cross_entropy"), settings);
  EXPECT_EQ(trainer.allSteps(), 12);
  for (const IValue& loss : recorded["losses"].elements()) {
    ASSERT_FALSE(trainer.finished());
    EXPECT_NEAR(trainer.step().loss, loss.toDouble(), 1e-5);
  }
  EXPECT_TRUE(trainer.finished());
  const IValue state = trainer.state()["model"];
  for (const auto& [name, value] : recorded["state"].toDict().items()) {
    const Tensor found = state.at(name).toTensor().detach().to(DType::Double).contiguous();
    const Tensor expected = value.toTensor().to(DType::Double).contiguous();
    ASSERT_EQ(found.numel(), expected.numel());
    for (int64_t i = 0; i < found.numel(); ++i) {
      EXPECT_NEAR(found.data<double>()[i], expected.data<double>()[i], 2e-5) << name.repr();
    }
  }
}

TEST(TrainerTest, LearnsWhatPyTorchLearns) {
  expectRecordedTraining(Device(), {});
}

TEST(TrainerTest, LearnsTheSameOnALazyDevice) {
  lazy::resetCounters();
  expectRecordedTraining(Device{kLazy, -1}, lazy::markStep);
  // A step is one graph, with its norm and its update. The first one makes the momentum.
  EXPECT_LE(lazy::counters().compiled, 2u) << lazy::report();
  EXPECT_EQ(lazy::counters().evaluations, 12u) << lazy::report();
}

// Noise by dropout, an attribute that counts, a buffer that is no parameter.
Module noisyModule() {
  ModuleBuilder builder("Noisy");
  Tensor w = Tensor::empty({3, 2}, DType::Float);
  for (int i = 0; i < 6; ++i) w.data<float>()[i] = 0.1f * static_cast<float>(i - 3);
  builder.registerParameter("w", w);
  builder.registerBuffer("sum", Tensor::zeros({2}, DType::Float));
  builder.registerAttribute("calls", types::Int(), 0);
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    self.calls = self.calls + 1\n"
      "    y = torch.dropout(x, 0.5, self.training) @ self.w\n"
      "    self.sum.add_(y.detach().sum(0))\n"
      "    return y\n");
  return builder.build();
}

DataSet points(int64_t count) {
  DataSet data;
  Tensor x = Tensor::empty({count, 3}, DType::Float), y = Tensor::empty({count}, DType::Long);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 3; ++k) {
      x.data<float>()[3 * i + k] = static_cast<float>((i * 37 + k * 11) % 19) / 10 - 1;
    }
    y.data<int64_t>()[i] = x.data<float>()[3 * i] > 0;
  }
  data.inputs.emplace_back("x", x);
  data.target_name = "y";
  data.targets = y;
  return data;
}

TrainerSettings noisySettings() {
  TrainerSettings settings;
  settings.rule = Adam{.lr = 0.05};
  settings.epochs = 4;
  settings.batch_size = 7;
  settings.validation = 0.25;
  settings.seed = 11;
  settings.schedule = [](int64_t epoch, int64_t) {
    return TrainerSettings::Plan{{LinearLr{.total_iters = 3}, StepLr{epoch, 0.5}}, {3}};
  };
  return settings;
}

Trainer noisyTrainer(TrainerSettings settings = noisySettings()) {
  return Trainer(noisyModule(), points(40), Objective("cross_entropy"), settings);
}

TEST(TrainerTest, GoesOnFromAnyState) {
  setNumThreads(1);
  Trainer whole = noisyTrainer();
  EXPECT_EQ(whole.trainSamples(), 30);
  EXPECT_EQ(whole.validationSamples(), 10);
  EXPECT_EQ(whole.epochSteps(), 5);
  std::vector<double> losses;
  while (!whole.finished()) {
    losses.push_back(whole.step().loss);
    if (whole.endOfEpoch()) whole.validate();
  }
  const std::string expected = whole.module().saveToString();
  for (size_t stop : {0, 1, 5, 8, 19, 20}) {
    Trainer first = noisyTrainer();
    for (size_t i = 0; i < stop; ++i) {
      EXPECT_EQ(first.step().loss, losses[i]);
      if (first.endOfEpoch()) first.validate();
    }
    // Random numbers that others draw make no difference.
    defaultGenerator().next64();
    const std::string path = testing::TempDir() + "/state.pt";
    saveValue(first.state(), path);
    Trainer second = noisyTrainer();
    second.loadState(loadValue(path));
    for (size_t i = stop; i < losses.size(); ++i) {
      ASSERT_FALSE(second.finished());
      EXPECT_EQ(second.step().loss, losses[i]) << "step " << i << " after " << stop;
      if (second.endOfEpoch()) second.validate();
    }
    EXPECT_TRUE(second.finished());
    EXPECT_EQ(second.module().saveToString(), expected);
    EXPECT_EQ(second.epochSoFar().loss, whole.epochSoFar().loss);
  }
}

TEST(TrainerTest, GoesOnFromAStateOfAnotherDevice) {
  setNumThreads(1);
  Trainer whole = noisyTrainer();
  TrainerSettings settings = noisySettings();
  settings.end_step = lazy::markStep;
  const Module module = noisyModule();
  const IValue object(module.object());
  moveTensors({&object, 1}, Device{kLazy, -1});
  Trainer there(module, points(40), Objective("cross_entropy"), settings);
  for (int i = 0; i < 7; ++i) {
    // Noise is drawn as on the CPU.
    EXPECT_NEAR(there.step().loss, whole.step().loss, 1e-5) << i;
  }
  EXPECT_NEAR(there.validate()->loss, whole.validate()->loss, 1e-5);
  Trainer back = noisyTrainer();
  back.loadState(there.state());
  there.loadState(whole.state());
  while (!whole.finished()) {
    const double loss = whole.step().loss;
    EXPECT_NEAR(back.step().loss, loss, 1e-5);
    EXPECT_NEAR(there.step().loss, loss, 1e-5);
  }
}

TEST(TrainerTest, LearnsInMixedPrecision) {
  setNumThreads(1);
  const IValue recorded = loadValue(kData + "training.pt");
  for (const DType type : {DType::BFloat16, DType::Half}) {
    TrainerSettings settings = recordedSettings();
    settings.autocast = type;
    const auto made = [&] {
      return Trainer(load(kData + "net.pt"), dataFrom(recorded), Objective("cross_entropy"),
                     settings);
    };
    Trainer trainer = made(), other = made();
    int number = 0;
    for (const IValue& loss : recorded["losses"].elements()) {
      // The same to the precision of the products, but not to that of float32.
      const Trainer::Step step = trainer.step();
      EXPECT_NEAR(step.loss, loss.toDouble(), 0.05) << number;
      EXPECT_FALSE(step.left_out);
      if (++number == 5) other.loadState(trainer.state());
    }
    while (!other.finished()) other.step();
    EXPECT_EQ(other.module().saveToString(), trainer.module().saveToString());
    EXPECT_EQ(trainer.module().stateDict().toDict().items().front().second.toTensor().dtype(),
              DType::Float);
    const IValue state = trainer.state();
    EXPECT_EQ(state.toDict().find(IValue("scaler")) != nullptr, type == DType::Half);
  }
  TrainerSettings wrong = noisySettings();
  wrong.autocast = DType::Float;
  EXPECT_THAT(errorOf([&] { noisyTrainer(wrong); }), HasSubstr("expected float16 or bfloat16"));
}

// The module as an archive whose class declares a hook.
Module withHook(const Module& module) {
  const std::string bytes = module.saveToString();
  ArchiveReader archive(copyBytes(std::as_bytes(std::span(bytes))), "noisy.pt");
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "hooked");
  for (const std::string& record : archive.records()) {
    std::string text(archive.read(record).text());
    const std::string header = "class Noisy(Module):\n";
    if (const size_t at = text.find(header); at != std::string::npos) {
      text.insert(at + header.size(), "  __forward_hooks__ = [\"look\", ]\n");
      text +=
          "  def look(self, inputs: Tuple[Tensor], out: Tensor) -> Tensor:\n"
          "    return out\n";
    }
    writer.write(record, text);
  }
  writer.finish();
  return loadFromMemory(std::as_bytes(std::span(out)));
}

TEST(TrainerTest, MixedPrecisionKnowsOfHooks) {
  const Module module = withHook(noisyModule());
  ASSERT_TRUE(module.hasHooks());
  TrainerSettings settings = noisySettings();
  settings.autocast = DType::BFloat16;
  const auto made = [&] {
    return Trainer(module, points(40), Objective("cross_entropy"), settings);
  };
  EXPECT_EQ(errorOf(made),
            "mixed precision does not reach the hooks of a module; name the method to train");
  settings.method = "forward";
  EXPECT_EQ(errorOf(made), "no error");
}

TEST(TrainerTest, EachSampleIsSeenOnceAnEpoch) {
  // The sum of what a linear model without dropout saw tells which samples there were.
  ModuleBuilder builder("Seen");
  builder.registerParameter("w", Tensor::zeros({3, 2}, DType::Float));
  builder.registerBuffer("sum", Tensor::zeros({3}, DType::Double));
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    if self.training:\n"
      "        self.sum.add_(x.double().pow(3).sum(0))\n"
      "    return x @ self.w\n");
  const Module module = builder.build();
  TrainerSettings settings;
  settings.batch_size = 9;
  Trainer trainer(module, points(40), Objective("cross_entropy"), settings);
  while (!trainer.finished()) trainer.step();
  double expected = 0;
  const Tensor x = points(40).inputs[0].second;
  for (int64_t i = 0; i < 40; ++i) expected += std::pow(x.data<float>()[3 * i], 3);
  EXPECT_NEAR(module.attr("sum").tensor().span<double>()[0], expected, 1e-9);
  EXPECT_EQ(trainer.epochSoFar().samples, 40);
}

TEST(TrainerTest, SeveralThreadsTrainCopies) {
  const IValue recorded = loadValue(kData + "training.pt");
  const Module original = load(kData + "net.pt");
  std::vector<std::vector<double>> losses(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < losses.size(); ++i) {
    threads.emplace_back([&, i] {
      TrainerSettings settings;
      settings.rule = Sgd{.lr = 0.1, .momentum = 0.9};
      settings.epochs = 5;
      settings.clip_norm = 1;
      Trainer trainer(original.clone(), dataFrom(recorded), Objective("cross_entropy"), settings);
      while (!trainer.finished()) losses[i].push_back(trainer.step().loss);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_one : losses) EXPECT_EQ(of_one, losses[0]);
}

TEST(TrainerTest, AWrongStateChangesNothingSilently) {
  Trainer trainer = noisyTrainer();
  trainer.step();
  EXPECT_THAT(errorOf([&] { trainer.loadState(IValue(1)); }), HasSubstr("has no 'steps'"));
  TrainerSettings shorter = noisySettings();
  shorter.epochs = 1;
  Trainer other = noisyTrainer(shorter);
  for (int i = 0; i < 7; ++i) trainer.step();
  EXPECT_THAT(errorOf([&] { other.loadState(trainer.state()); }),
              HasSubstr("the state is of step 8, the training has 5"));
  const std::string before = trainer.module().saveToString();
  const auto load = [&](const char* name, IValue value) {
    auto changed = makeRef<DictObject>(types::String(), types::Any());
    const IValue state = noisyTrainer().state();
    for (const auto& [key, old] : state.toDict().items()) changed->set(key, old);
    changed->set(IValue(name), std::move(value));
    return errorOf([&] { trainer.loadState(IValue(std::move(changed))); });
  };
  EXPECT_THAT(load("steps", IValue(-1)),
              HasSubstr("the state of a training: 'steps' is -1, expected a count"));
  EXPECT_THAT(load("attributes", IValue(1)),
              HasSubstr("expected a dict as 'attributes' and a number as 'epoch_loss', found int "
                        "and float"));
  EXPECT_THAT(load("epoch_right", IValue("many")),
              HasSubstr("'epoch_right' is 'many', expected a count"));
  EXPECT_EQ(trainer.module().saveToString(), before);
}

// What the file is given for, and what is said of it.
TEST(DataSetTest, SaysWhatDoesNotFit) {
  const std::string folder = testing::TempDir() + "/";
  const auto saved = [&](const char* name, NamedTensors tensors) {
    saveTensors(tensors, folder + name);
    return folder + name;
  };
  const Tensor x = Tensor::zeros({2, 3}, DType::Float), y = Tensor::zeros({2}, DType::Long);
  const auto error = [](const std::vector<std::string>& paths, const std::string& target = "") {
    return errorOf([&] { loadDataSet(paths, target); });
  };
  EXPECT_THAT(error({saved("both.safetensors", {{"x", x}, {"y", y}, {"labels", y}})}),
              HasSubstr("both y and labels may be the targets; name one (--target)"));
  EXPECT_THAT(error({saved("alone.safetensors", {{"y", y}})}),
              HasSubstr("alone.safetensors: there is nothing but the targets"));
  EXPECT_THAT(error({folder + "alone.safetensors"}, "z"),
              HasSubstr("there is no z; it has y. --target names the targets"));
  EXPECT_THAT(error({folder + "one.npy"}),
              HasSubstr("one.npy holds one tensor; give the file of the targets behind it"));
  EXPECT_THAT(error({folder + "x.npy", folder + "alone.safetensors"}),
              HasSubstr("alone.safetensors: several files of data must be .npy, the targets last"));
}

TEST(ObjectiveTest, TargetsThatDoNotFit) {
  const Tensor output = Tensor::zeros({4, 3}, DType::Float);
  struct Case {
    const char* name;
    Tensor output;
    Tensor targets;
    const char* message;
  };
  const Tensor labels = Tensor::zeros({4}, DType::Long);
  for (const Case& c : {
           Case{"nll", output, Tensor::zeros({4, 3}, DType::Float),
                "nll: the model gives float32[4, 3], the targets are float32[4, 3]; labels must be "
                "whole numbers"},
           Case{"cross_entropy", output, Tensor::zeros({4, 2}, DType::Float),
                "targets of probabilities must have the output's shape"},
           Case{"cross_entropy", output, Tensor::zeros({4, 2}, DType::Long),
                "expected an output [samples, classes, …] and a label for each sample"},
           Case{"cross_entropy", Tensor::zeros({4}, DType::Float), labels,
                "expected an output [samples, classes, …] and a label for each sample"},
           Case{"mse", output, Tensor::zeros({4, 2}, DType::Float), "they must have one shape"},
           Case{"mse", output, Tensor::zeros({}, DType::Float), "mse: the targets are one number"},
       }) {
    EXPECT_THAT(errorOf([&] { Objective(c.name).fittedTargets(IValue(c.output), c.targets); }),
                HasSubstr(c.message));
  }
  EXPECT_THAT(errorOf([&] { Objective("mse").fittedTargets(IValue(3), labels); }),
              HasSubstr("the model gives int; mse needs one Tensor"));
}

TEST(TrainerTest, SettingsWithoutMeaning) {
  TrainerSettings settings = noisySettings();
  settings.batch_size = 0;
  EXPECT_THAT(errorOf([&] { noisyTrainer(settings); }),
              HasSubstr("the size of batches is 0, expected at least 1"));
  settings = noisySettings();
  settings.epochs = 0;
  EXPECT_THAT(errorOf([&] { noisyTrainer(settings); }),
              HasSubstr("the number of epochs is 0, expected at least 1"));
  settings = noisySettings();
  settings.validation = 1;
  EXPECT_THAT(errorOf([&] { noisyTrainer(settings); }),
              HasSubstr("the share for validation is 1, expected a number from 0 to below 1"));
  settings = noisySettings();
  settings.clip_value = -2;
  EXPECT_THAT(errorOf([&] { noisyTrainer(settings); }),
              HasSubstr("a limit of gradients is -2, expected at least 0"));
  settings = noisySettings();
  settings.end_step = [] { throwRuntimeError("the end of a step"); };
  EXPECT_THAT(errorOf([&] { noisyTrainer(settings).step(); }), HasSubstr("the end of a step"));
  settings = noisySettings();
  settings.batch_size = 31;
  settings.drop_last = true;
  EXPECT_THAT(errorOf([&] { noisyTrainer(settings); }), HasSubstr("no batch of 31"));
  EXPECT_THAT(errorOf([] { Objective("entropy"); }), HasSubstr("there are cross_entropy, nll"));
}

TEST(TrainerTest, LabelsThatAreIgnoredCountNowhere) {
  DataSet data = points(40);
  for (int64_t i = 0; i < 40; i += 2) data.targets.data<int64_t>()[i] = -100;
  TrainerSettings settings;
  Trainer trainer(noisyModule(), data, Objective("cross_entropy"), settings);
  EXPECT_TRUE(std::isfinite(trainer.step().loss));
}

}  // namespace
}  // namespace wick::training::trainer_test
