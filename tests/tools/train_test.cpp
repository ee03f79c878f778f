// torchscript-cli train as a process: what it learns, checkpoints after kills, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "serialization/npy.h"
#include "tests/tools/cli_testing.h"
#include "wick.h"

namespace wick::train_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace testing_cli;

// Numbers that look random, the same everywhere.
class Noise {
 public:
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(state_ >> 40) / static_cast<float>(1 << 24) - 0.5f;
  }

 private:
  uint64_t state_ = 1;
};

Tensor noise(IntSpan sizes, Noise& from) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (float& v : t.span<float>()) v = from.next();
  return t;
}

// Two layers with batch normalization and dropout between them, from 4 numbers to `outputs`.
std::string model(const std::string& name, int64_t outputs) {
  Noise from;
  ModuleBuilder builder("Net");
  builder.registerParameter("first", noise({4, 16}, from));
  builder.registerParameter("scale", Tensor::full({16}, 1, DType::Float));
  builder.registerParameter("shift", Tensor::zeros({16}, DType::Float));
  builder.registerParameter("second", noise({16, outputs}, from));
  builder.registerBuffer("mean", Tensor::zeros({16}, DType::Float));
  builder.registerBuffer("var", Tensor::full({16}, 1, DType::Float));
  builder.registerAttribute("calls", types::Int(), 0);
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    self.calls = self.calls + 1\n"
      "    h = torch.batch_norm(x @ self.first, self.scale, self.shift, self.mean, self.var,\n"
      "                         self.training, 0.1, 1e-5, False)\n"
      "    h = torch.dropout(torch.relu(h), 0.2, self.training)\n"
      "    return h @ self.second\n");
  const std::string path = temporary(name);
  builder.build().save(path);
  return path;
}

// Whose gradients become NaN: the root of 0 has an infinite slope, which 0 makes NaN.
std::string rooted(const std::string& name) {
  ModuleBuilder builder("Rooted");
  builder.registerParameter("w", Tensor::zeros({4, 3}, DType::Float));
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    y = x @ self.w\n"
      "    return torch.sqrt(y) * 0 + y\n");
  builder.build().save(temporary(name));
  return temporary(name);
}

constexpr int64_t kSamples = 300;

Tensor samples() {
  Noise from;
  return noise({kSamples, 4}, from);
}
// Which of three sectors the first two numbers lie in.
Tensor classes(const Tensor& x) {
  Tensor labels = Tensor::empty({kSamples}, DType::Long);
  for (int64_t i = 0; i < kSamples; ++i) {
    const float* row = x.data<float>() + 4 * i;
    labels.data<int64_t>()[i] = row[0] > 0.1f ? 0 : row[1] > 0 ? 1 : 2;
  }
  return labels;
}
std::string classData(const std::string& name) {
  const Tensor x = samples();
  saveTensors({{"x", x}, {"target", classes(x)}}, temporary(name));
  return temporary(name);
}

std::vector<nlohmann::json> linesOf(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(readText(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(TrainTest, LearnsClasses) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  const std::string out = temporary("trained.pt"), log = temporary("run.jsonl");
  const std::string plot = temporary("loss.svg");
  const Outcome o =
      cli({"train",        net,      "--data",       data,   "--loss",      "cross_entropy",
           "--optimizer",  "adamw",  "--lr",         "0.02", "--epochs",    "30",
           "--batch-size", "32",     "--validation", "0.2",  "--seed",      "3",
           "--schedule",   "cosine", "--warm-up",    "5",    "--clip-norm", "5",
           "--log",        log,      "--plot",       plot,   "--output",    out});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("epoch 30/30: loss "), HasSubstr("validation accuracy "),
                           HasSubstr("written after 240 steps")));
  const auto lines = linesOf(log);
  ASSERT_EQ(lines.size(), 240u + 30u);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_EQ(lines[0]["samples"], 32);
  EXPECT_GT(lines[0]["norm"], 0);
  EXPECT_NEAR(lines[0]["rate"], 0.02 / 6, 1e-9);
  EXPECT_LT(lines[268]["rate"], 0.001);
  EXPECT_GT(lines.back()["validation_accuracy"], 0.9);
  EXPECT_LT(lines.back()["train_loss"], 0.4);
  EXPECT_THAT(readText(plot), AllOf(HasSubstr("<svg "), HasSubstr("polyline"),
                                    HasSubstr("loss of validation"), HasSubstr("</svg>")));
  // In evaluation mode, with what was learnt: batch normalization saw numbers too.
  const Module trained = load(out);
  EXPECT_FALSE(trained.isTraining());
  EXPECT_NE(trained.attr("mean").tensor().span<float>()[0], 0);
  const Tensor x = samples();
  const Tensor scores = trained.forward({x}).tensor();
  const Tensor labels = classes(x);
  int right = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const float* row = scores.data<float>() + 3 * i;
    right += std::max_element(row, row + 3) - row == labels.data<int64_t>()[i];
  }
  EXPECT_GT(right, 0.9 * kSamples);
}

TEST(TrainTest, FormatsOfDataGiveTheSame) {
  const std::string net = model("net.pt", 3);
  const Tensor x = samples();
  const std::string a = temporary("x.npy"), b = temporary("y.npy");
  saveNpy(x, a);
  saveNpy(classes(x).to(DType::Byte), b);  // labels of any whole numbers
  const std::vector<std::string> common = {"--loss", "cross_entropy", "--lr", "0.01", "--epochs",
                                           "2",      "--threads",     "1"};
  std::vector<std::string> results;
  for (const std::vector<std::string>& data : {std::vector<std::string>{classData("data.npz")},
                                               {classData("data.pt")},
                                               {classData("data.safetensors")},
                                               {a, b}}) {
    const std::string out = temporary("formats.pt");
    std::vector<std::string> arguments = {"train", net, "--data"};
    arguments.insert(arguments.end(), data.begin(), data.end());
    arguments.insert(arguments.end(), common.begin(), common.end());
    arguments.insert(arguments.end(), {"--output", out});
    const Outcome o = cli(arguments);
    ASSERT_EQ(o.code, 0) << o.err;
    results.push_back(readText(out));
    EXPECT_EQ(results.back(), results.front()) << data[0];
  }
  // Another seed, another order.
  const std::string out = temporary("formats.pt");
  std::vector<std::string> arguments = {"train", net, "--data", classData("data.npz")};
  arguments.insert(arguments.end(), common.begin(), common.end());
  arguments.insert(arguments.end(), {"--output", out, "--seed", "9"});
  ASSERT_EQ(cli(arguments).code, 0);
  EXPECT_NE(readText(out), results.front());
}

TEST(TrainTest, OptimizersAndSchedules) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  const std::vector<std::vector<std::string>> all = {
      {"sgd", "--lr", "0.1", "--momentum", "0.9", "--nesterov", "--schedule", "step", "--step-size",
       "4", "--gamma", "0.5"},
      {"sgd", "--lr", "0.1", "--weight-decay", "1e-4", "--schedule", "linear"},
      {"adam", "--lr", "0.01", "--betas", "0.8", "0.99", "--amsgrad", "--schedule", "onecycle"},
      {"rmsprop", "--lr", "0.01", "--centered", "--schedule", "exponential", "--gamma", "0.9"},
      {"adagrad", "--lr", "0.1", "--schedule", "multistep", "--milestones", "3,6", "--clip-value",
       "1"}};
  for (const auto& more : all) {
    const std::string log = temporary("run.jsonl");
    std::vector<std::string> arguments = {
        "train",      net,  "--data", data, "--loss",   "cross_entropy",
        "--epochs",   "10", "--log",  log,  "--output", temporary("trained.pt"),
        "--optimizer"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome o = cli(arguments);
    ASSERT_EQ(o.code, 0) << more[0] << o.err;
    EXPECT_LT(linesOf(log).back()["train_loss"], 0.75 * linesOf(log).front()["loss"].get<double>())
        << more[0];
  }
}

TEST(TrainTest, LossesOfNumbers) {
  const std::string net = model("net1.pt", 1);
  const Tensor x = samples();
  Tensor y = Tensor::empty({kSamples, 1}, DType::Float);
  Tensor yes = Tensor::empty({kSamples, 1}, DType::Bool);
  for (int64_t i = 0; i < kSamples; ++i) {
    const float v = x.data<float>()[4 * i] - 0.5f * x.data<float>()[4 * i + 2];
    y.data<float>()[i] = v;
    yes.data<bool>()[i] = v > 0;
  }
  const std::string numbers = temporary("numbers.npz"), decisions = temporary("decisions.npz");
  saveTensors({{"x", x}, {"y", y}}, numbers);
  saveTensors({{"x", x}, {"y", yes}}, decisions);
  for (const std::string loss : {"mse", "l1", "smooth_l1", "bce_with_logits"}) {
    const std::string log = temporary("run.jsonl");
    const Outcome o =
        cli({"train", net, "--data", loss[0] == 'b' ? decisions : numbers, "--loss", loss, "--lr",
             "0.02", "--epochs", "15", "--log", log, "--output", temporary("trained.pt")});
    ASSERT_EQ(o.code, 0) << loss << o.err;
    const auto lines = linesOf(log);
    EXPECT_LT(lines.back()["train_loss"], 0.6 * lines.front()["loss"].get<double>()) << loss;
    EXPECT_EQ(lines.back().contains("train_accuracy"), loss[0] == 'b');
  }
  // Logits are no probabilities.
  const Outcome o = cli(
      {"train", net, "--data", decisions, "--loss", "bce", "--output", temporary("trained.pt")});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("step 1 with x: float32[32, 4], y: "));
}

TEST(TrainTest, ScriptsAndModelsMayBeTheLoss) {
  const std::string net = model("net1.pt", 1), data = temporary("data.npz");
  const Tensor x = samples();
  saveTensors({{"x", x}, {"y", x.narrow(1, 0, 1).contiguous()}}, data);
  const std::string script = write("loss.py",
                                   "def main(output: Tensor, target: Tensor) -> Tensor:\n"
                                   "    return ((output - target) ** 2).mean()\n");
  const std::string a = temporary("a.pt"), b = temporary("b.pt");
  std::vector<std::string> arguments = {"train",    net, "--data",   data, "--threads", "1",
                                        "--epochs", "3", "--output", a,    "--loss",    script};
  const Outcome o = cli(arguments);
  ASSERT_EQ(o.code, 0) << o.err;
  write("loss.py", "def main(output: Tensor, target: Tensor) -> Tensor:\n    return output\n");
  EXPECT_THAT(cli(arguments).err, HasSubstr("the loss is float32[32, 1], expected one number"));
  write("loss.py",
        "def main(output: Tensor, target: Tensor) -> Tensor:\n    return target.mean()\n");
  EXPECT_THAT(cli(arguments).err, HasSubstr("depends on no parameter"));

  ModuleBuilder own("Own");
  own.registerParameter("w", Tensor::full({4, 1}, 0.5, DType::Float));
  own.define(
      "def forward(self, x: Tensor, y: Tensor) -> Tensor:\n"
      "    return torch.nn.functional.mse_loss(x @ self.w, y)\n");
  own.build().save(temporary("own.pt"));
  const Outcome m = cli({"train", temporary("own.pt"), "--data", data, "--loss", "model", "--lr",
                         "0.05", "--epochs", "10", "--output", b});
  ASSERT_EQ(m.code, 0) << m.err;
  EXPECT_NEAR(load(b).attr("w").tensor().span<float>()[0], 1, 0.2);
}

TEST(TrainTest, KilledAndResumedGivesTheSameBytes) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  const std::string whole = temporary("whole.pt"), pieces = temporary("pieces.pt");
  const std::string whole_log = temporary("whole.jsonl"), pieces_log = temporary("pieces.jsonl");
  const std::string point = temporary("run.checkpoint");
  std::filesystem::remove(point);
  const auto arguments = [&](const std::string& out, const std::string& log) {
    return std::vector<std::string>{
        "train",        net,     "--data",       data,   "--loss",     "cross_entropy",
        "--optimizer",  "adamw", "--lr",         "0.01", "--epochs",   "120",
        "--batch-size", "8",     "--validation", "0.1",  "--schedule", "cosine",
        "--warm-up",    "50",    "--clip-norm",  "1",    "--threads",  "1",
        "--seed",       "5",     "--log",        log,    "--output",   out};
  };
  std::vector<std::string> through = arguments(whole, whole_log);
  through.insert(through.end(), {"--checkpoint", temporary("whole.checkpoint")});
  Outcome o = cli(through);
  ASSERT_EQ(o.code, 0) << o.err;
  std::vector<std::string> resumed = arguments(pieces, pieces_log);
  resumed.insert(resumed.end(), {"--checkpoint", point, "--checkpoint-every", "7", "--resume"});
  int kills = 0;
  double patience = 0.15;  // seconds until the kill
  for (; kills < 200; ++kills, patience *= 1.15) {
    o = cli(resumed, "timeout -s KILL " + std::to_string(patience));
    if (o.code == 0) break;
    ASSERT_EQ(o.code, 137) << o.err;
  }
  ASSERT_EQ(o.code, 0);
  EXPECT_GT(kills, 1);
  EXPECT_EQ(readText(pieces), readText(whole));
  // The log tells of each step once, with the same numbers but for the time.
  auto first = linesOf(whole_log), second = linesOf(pieces_log);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    for (const char* key : {"seconds", "samples_per_second"}) {
      first[i].erase(key);
      second[i].erase(key);
    }
    ASSERT_EQ(first[i], second[i]);
  }
  // What is finished stays so.
  o = cli(resumed);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(readText(pieces), readText(whole));
  // Other settings are another training.
  resumed.insert(resumed.end(), {"--drop-last"});
  o = cli(resumed);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("--drop-last was 'no' and is 'yes'"));
}

TEST(TrainTest, EndsBeforeTheTimeLimit) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  const std::string out = temporary("limited.pt"), point = temporary("limited.checkpoint");
  std::filesystem::remove(out);
  const std::vector<std::string> arguments = {"train",
                                              net,
                                              "--data",
                                              data,
                                              "--loss",
                                              "cross_entropy",
                                              "--epochs",
                                              "100000000",
                                              "--time-limit",
                                              "2",
                                              "--checkpoint",
                                              point,
                                              "--checkpoint-every",
                                              "1000000",
                                              "--output",
                                              out};
  const Outcome o = cli(arguments);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("stopped by the time limit after step"));
  EXPECT_NO_THROW(load(out));
  EXPECT_TRUE(std::filesystem::exists(point));
}

TEST(TrainTest, BeginsWithOtherWeights) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  const std::string out = temporary("trained.pt"), same = temporary("same.pt");
  const std::vector<std::string> common = {
      "--data", data, "--loss", "cross_entropy", "--optimizer", "sgd", "--lr", "0", "--output"};
  Module other = load(net);
  for (const auto& [name, tensor] : other.parameters()) tensor.detach().fill(0.25);
  saveValue(other.stateDict(), temporary("weights.pt"));
  std::vector<std::string> arguments = {"train", net, "--weights", temporary("weights.pt")};
  arguments.insert(arguments.end(), common.begin(), common.end());
  arguments.push_back(out);
  const Outcome o = cli(arguments);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(load(out).attr("first").tensor().span<float>()[0], 0.25f);
}

TEST(TrainTest, ModelsAreEvaluatedOverLabels) {
  // Six classes, whose numbers are the inputs themselves.
  const std::string script = write("identity.py", "def main(x: Tensor):\n    return x\n");
  Tensor x = Tensor::zeros({10, 6}, DType::Float), y = Tensor::zeros({10}, DType::Long);
  for (int64_t i = 0; i < 10; ++i) {
    y.data<int64_t>()[i] = i % 6;
    for (int64_t c = 0; c < 6; ++c) x.data<float>()[6 * i + c] = c == i % 6 ? 1.0f : 0.0f;
  }
  // One is second, one is last.
  x.data<float>()[1] = 2;
  for (int64_t c = 0; c < 6; ++c) x.data<float>()[6 + c] = c == 1 ? -1.0f : 1.0f;
  const std::string folder = temporary("samples");
  std::filesystem::create_directories(folder);
  saveNpy(x, folder + "/x.npy");
  saveNpy(y, folder + "/label.npy");
  Outcome o = cli({"evaluate", script, "--data", folder, "--batch-size", "4", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const nlohmann::json row = nlohmann::json::parse(o.out);
  EXPECT_EQ(row["samples"], 10);
  EXPECT_NEAR(row["top1"], 0.8, 1e-9);
  EXPECT_NEAR(row["top5"], 0.9, 1e-9);
  EXPECT_FALSE(row.contains("loss"));
  // Labels in a file of their own, and a loss.
  o = cli({"evaluate", script, "--data", folder + "/x.npy", "--labels", folder + "/label.npy",
           "--loss", "cross_entropy"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("top-1 accuracy  0.8000  (8 of 10)"),
                           HasSubstr("top-5 accuracy  0.9000"), HasSubstr("cross_entropy   1.")));
  // A model that chooses no class has a loss alone.
  o = cli({"evaluate", script, "--data", folder + "/x.npy", folder + "/x.npy", "--loss", "mse"});
  EXPECT_THAT(o.out, AllOf(HasSubstr("mse             0\n"), Not(HasSubstr("accuracy"))));
  o = cli({"evaluate", script, "--data", folder + "/x.npy", folder + "/x.npy"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("accuracy needs the number of a class for each sample"));
  EXPECT_EQ(cli({"evaluate", script, "--data", folder, "--labels", "nothing"}).code, 1);
  y.data<int64_t>()[3] = 6;
  saveNpy(y, folder + "/label.npy");
  o = cli({"evaluate", script, "--data", folder});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("sample 3 has the label 6"));
}

// The network and its weights, as if both had been saved on a GPU.
TEST(TrainTest, TrainsWhatWasSavedOnAGpu) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  saveValue(load(net).stateDict(), temporary("weights.pt"));
  for (const std::string& path : {net, temporary("weights.pt")}) {
    ArchiveReader reader = ArchiveReader::open(path);
    ArchiveWriter writer = ArchiveWriter::toFile(path + ".gpu", "moved");
    for (const std::string& record : reader.records()) {
      std::string text(reader.read(record).text());
      const std::string cpu("X\x03\0\0\0cpu", 8), gpu("X\x06\0\0\0cuda:2", 11);
      if (const size_t at = text.find(cpu); at != text.npos) text.replace(at, cpu.size(), gpu);
      writer.write(record, text);
    }
    writer.finish();
  }
  std::vector<std::string> written;
  for (const char* end : {"", ".gpu"}) {
    const std::string out = temporary(std::string("trained") + end + ".pt");
    const Outcome o = cli({"train", net + end, "--weights", temporary("weights.pt") + end, "--data",
                           data, "--loss", "cross_entropy", "--epochs", "1", "--output", out});
    ASSERT_EQ(o.code, 0) << o.err;
    written.push_back(load(out).saveToString());
  }
  EXPECT_EQ(written[0], written[1]);
}

TEST(TrainTest, TheExampleLearnsDigits) {
  const std::string command =
      "TORCHSCRIPT_CLI=$PWD/tools/torchscript-cli sh examples/train_digits.sh " +
      testing::TempDir() + " >" + temporary("out") + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << readText(temporary("out"));
  EXPECT_THAT(readText(temporary("out")), HasSubstr("largest at 7 "));
  const auto last = linesOf(temporary("digits_log.jsonl")).back();
  EXPECT_GT(last["validation_accuracy"], 0.99);
}

TEST(TrainTest, SaysWhatIsWrong) {
  const std::string net = model("net.pt", 3), data = classData("data.npz");
  const std::string out = temporary("wrong.pt");
  std::filesystem::remove(out);
  const Tensor x = samples();
  const auto with = [&](const std::string& name, const NamedTensors& tensors) {
    saveTensors(tensors, temporary(name));
    return temporary(name);
  };
  const auto failure = [&](const std::string& set, std::vector<std::string> more = {},
                           const std::string& loss = "cross_entropy", int code = 1) {
    std::vector<std::string> arguments = {"train",  net,  "--data",   set,
                                          "--loss", loss, "--output", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome o = cli(arguments);
    EXPECT_EQ(o.code, code) << o.out;
    EXPECT_FALSE(std::filesystem::exists(out));
    return o.err;
  };
  Tensor labels = classes(x).clone();
  labels.data<int64_t>()[17] = 3;
  EXPECT_THAT(failure(with("range.npz", {{"x", x}, {"y", labels}})),
              HasSubstr("sample 17 has the label 3, which is out of range: the model gives 3 "
                        "classes (0 to 2)"));
  EXPECT_THAT(failure(with("double.npz", {{"x", x.to(DType::Double)}, {"y", classes(x)}})),
              HasSubstr("hint: an input is float64, the parameters are float32"));
  EXPECT_THAT(failure(with("wide.npz", {{"x", x.reshape({kSamples / 2, 8})},
                                        {"y", classes(x).narrow(0, 0, kSamples / 2)}})),
              HasSubstr("step 1 with x: float32[32, 8], y: int64[32]"));
  EXPECT_THAT(failure(with("count.npz", {{"x", x}, {"y", classes(x).narrow(0, 0, 20)}})),
              HasSubstr("the numbers of samples differ"));
  EXPECT_THAT(failure(with("none.npz", {{"x", x}, {"z", classes(x)}})),
              HasSubstr("there is no y, target, targets, label or labels; it has x, z"));
  EXPECT_THAT(failure(with("many.npz", {{"a", x}, {"b", x}, {"y", classes(x)}})),
              HasSubstr("the inputs are a, b, the model's arguments x"));
  EXPECT_THAT(
      failure(with("flat.npz", {{"x", x}, {"y", x.select(1, 0).contiguous()}}), {}, "mse"),
      HasSubstr("the model gives float32[32, 3], the targets are float32[32]; they must have "
                "one shape"));
  EXPECT_THAT(failure(data, {"--optimizer", "sgd", "--lr", "1e30"}), HasSubstr("the loss is "));
  const Outcome o = cli({"train", rooted("rooted.pt"), "--data", data, "--loss", "cross_entropy",
                         "--detect-anomaly", "--output", out});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("step 1 with x: "), HasSubstr("nan"), HasSubstr("sqrt")));
  EXPECT_THAT(failure(data, {"--optimizer", "sgd"}, "cross_entropy", 2), HasSubstr("--lr"));
  EXPECT_THAT(failure(data, {"--momentum", "0.9"}, "cross_entropy", 2),
              HasSubstr("--momentum: adamw has no such setting"));
  EXPECT_THAT(failure(data, {"--resume"}, "cross_entropy", 2), HasSubstr("--checkpoint"));
  EXPECT_THAT(failure(data, {}, "crossentropy", 2), HasSubstr("--loss: expected cross_entropy"));
  EXPECT_THAT(failure(data, {"--checkpoint", data, "--resume"}), HasSubstr("no checkpoint"));
  // Checkpoints of another kind, or that were changed.
  const std::string point = temporary("changed.checkpoint");
  const auto resumed = [&] { return failure(data, {"--checkpoint", point, "--resume"}); };
  std::filesystem::remove(point);
  ASSERT_EQ(cli({"train", net, "--data", data, "--loss", "cross_entropy", "--epochs", "1",
                 "--checkpoint", point, "--output", temporary("unchanged.pt")})
                .code,
            0);
  const IValue checkpoint = loadValue(point);
  const auto with_other = [](const IValue& dict, const char* name, IValue value) {
    auto made = makeRef<DictObject>(types::String(), types::Any());
    for (const auto& [key, part] : dict.toDict().items()) made->set(key, part);
    made->set(IValue(name), std::move(value));
    return IValue(std::move(made));
  };
  const auto changed = [&](const char* name, IValue value) {
    saveValue(with_other(checkpoint, name, std::move(value)), point);
    return resumed();
  };
  const IValue trainer = *checkpoint.toDict().find(IValue("trainer"));
  auto unknown = makeRef<DictObject>(types::String(), types::Any());
  unknown->set(IValue("nothing"), IValue(3));
  EXPECT_THAT(changed("format", "other"),
              HasSubstr("changed.checkpoint is no checkpoint of a training"));
  EXPECT_THAT(changed("settings", 3),
              HasSubstr("changed.checkpoint: expected Dict[str, str], got int"));
  EXPECT_THAT(changed("trainer", 3),
              HasSubstr("changed.checkpoint: the state of a training has no 'steps'"));
  EXPECT_THAT(changed("trainer", with_other(trainer, "attributes", IValue(std::move(unknown)))),
              HasSubstr("Net has no attribute 'nothing'"));
  EXPECT_THAT(changed("record", 3), HasSubstr("changed.checkpoint: the record of a training has "
                                              "no table 'losses'"));
  EXPECT_THAT(failure(temporary("nothing.npz")), HasSubstr("nothing.npz"));

  const std::string frozen = temporary("frozen.pt");
  ASSERT_EQ(cli({"save", net, "--freeze", "--output", frozen}).code, 0);
  EXPECT_THAT(cli({"train", frozen, "--data", data, "--loss", "nll", "--output", out}).err,
              HasSubstr("has no parameters to train; in a frozen module they are constants"));
  ModuleBuilder still("Still");
  still.registerParameter("w", Tensor::zeros({4, 3}, DType::Float), /*requires_grad=*/false);
  still.define("def forward(self, x: Tensor) -> Tensor:\n    return x @ self.w\n");
  still.build().save(temporary("still.pt"));
  EXPECT_THAT(
      cli({"train", temporary("still.pt"), "--data", data, "--loss", "nll", "--output", out}).err,
      HasSubstr("none of the 1 parameters of Still requires a gradient"));
  const std::string script = write("script.py", "def main():\n    return 1\n");
  EXPECT_THAT(cli({"train", script, "--data", data, "--loss", "nll", "--output", out}).err,
              HasSubstr("a script has no parameters"));
}

}  // namespace
}  // namespace wick::train_test
