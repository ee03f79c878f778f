// torchscript-cli pipeline as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "serialization/archive_writer.h"
#include "serialization/npy.h"
#include "serialization/torch_save.h"
#include "tests/tools/cli_testing.h"

namespace wick::pipeline_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace testing_cli;
using Json = nlohmann::json;

Json pipeline(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"pipeline", kDigits, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome o = cli(arguments);
  EXPECT_EQ(o.code, 0) << o.err;
  return o.code == 0 ? Json::parse(o.out) : Json();
}

TEST(PipelineVerbTest, StagesGiveTheModelsResults) {
  const std::string plan = temporary("plan.json");
  std::filesystem::remove(plan);
  const Json made =
      pipeline({"--input", kSeven, "--stages", "2", "--items", "20", "--verify", "--plan", plan});
  EXPECT_EQ(made["items"], 20);
  EXPECT_EQ(made["verified"], 20);
  EXPECT_EQ(made["stages"].size(), 2u);
  EXPECT_GT(made["items_per_s"].get<double>(), 0);
  EXPECT_GT(made["predicted_items_per_s"].get<double>(), 0);
  // The plan is read the next time, whatever --stages says.
  const Json read = pipeline({"--input", kSeven, "--stages", "1", "--items", "3", "--plan", plan});
  EXPECT_EQ(read["stages"].size(), 2u);
  const std::string other = write("other.json", R"({"stages": [{"filters": ["nothing"]}]})");
  const Outcome o = cli({"pipeline", kDigits, "--input", kSeven, "--plan", other});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("the plan is for another model"));
}

TEST(PipelineVerbTest, ItemsOfAFileInOrder) {
  Tensor images = Tensor::empty({6, 1, 28, 28}, DType::Float);
  for (int64_t i = 0; i < images.numel(); ++i) {
    images.data<float>()[i] = static_cast<float>((i * 31) % 101) / 100;
  }
  const std::string data = temporary("images.npy"), results = temporary("results.pt");
  saveNpy(images, data);
  const Json row = pipeline({"--run", data, "--stages", "auto", "--output", results, "--verify"});
  EXPECT_EQ(row["items"], 6);
  const IValue all = loadValue(results);
  ASSERT_EQ(all.elements().size(), 6u);
  EXPECT_EQ(DimVector(all[0].toTensor().sizes()), (DimVector{1, 10}));
}

TEST(PipelineVerbTest, PicturesAndPredictions) {
  const std::string picture = temporary("plan.dot"), stream = temporary("stream.dot");
  const std::string cluster =
      write("cluster.json", R"({"machines": [{"count": 2, "cores": 4}], "items": 200})");
  const Json row = pipeline({"--input", kSeven, "--items", "5", "--stages", "2", "--picture",
                             picture, "--stream", stream, "--simulate", cluster});
  EXPECT_EQ(row["simulated"].size(), 3u);
  EXPECT_THAT(readText(picture), AllOf(HasSubstr("digraph"), HasSubstr("stage 2")));
  EXPECT_THAT(readText(stream), HasSubstr("digraph"));
  const Outcome text = cli({"pipeline", kDigits, "--stream", "-"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("stream \"forward\" ("), HasSubstr("state weight")));
}

// The number behind a word of the table; 0: there is no such line.
double rowOf(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + word.size()));
}

TEST(PipelineVerbTest, SaysWhenPlainCallsAreFaster) {
  for (const char* stages : {"1", "2", "3"}) {
    const Json row = pipeline({"--input", kSeven, "--items", "20", "--stages", stages});
    const double predicted = row["predicted_items_per_s"], plain = row["one_by_one_items_per_s"];
    EXPECT_EQ(row["plain_calls_are_faster"].get<bool>(), predicted < plain) << stages;
    const Outcome o =
        cli({"pipeline", kDigits, "--input", kSeven, "--items", "20", "--stages", stages});
    ASSERT_EQ(o.code, 0) << o.err;
    const double told = rowOf(o.out, "predicted "), alone = rowOf(o.out, "one after the other ");
    // The table rounds.
    if (std::abs(told - alone) < 1) continue;
    EXPECT_EQ(o.out.find("use no pipeline") != std::string::npos, told < alone) << o.out;
  }
}

TEST(PipelineVerbTest, WrongUsageIsSaid) {
  const auto error = [](std::vector<std::string> more, int code) {
    std::vector<std::string> arguments = {"pipeline", kDigits};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome o = cli(arguments);
    EXPECT_EQ(o.code, code) << o.err;
    return o.err;
  };
  EXPECT_THAT(error({"--input", kSeven, "--stages", "many"}, 2), HasSubstr("or auto"));
  EXPECT_THAT(error({"--input", kSeven, "--stages", "1000"}, 1),
              HasSubstr("stages, for the model"));
  EXPECT_THAT(error({}, 2), HasSubstr("x"));
  EXPECT_THAT(error({"--input", kSeven, "--overrides", write("o.json", "{}")}, 1),
              HasSubstr("the list \"layers\""));
  EXPECT_THAT(error({"--input", kSeven, "--picture", "plan.png"}, 2), HasSubstr(".dot or .svg"));
  EXPECT_THAT(error({"--input", kSeven, "--chunk", "4"}, 1), HasSubstr("aten::"));
}

const char* const kRaises = R"(
def main(x: Tensor, n: int) -> Tensor:
    y = x @ x
    if n == 3:
        raise ValueError("three")
    return (y @ y) @ y
)";

TEST(PipelineVerbTest, AnErrorKeepsWhatIsFinished) {
  std::vector<IValue> items;
  for (int64_t i = 0; i < 6; ++i) {
    items.emplace_back(makeTuple({IValue(Tensor::zeros({2, 2}, DType::Float)), IValue(i)}));
  }
  const std::string data = temporary("items.pt"), results = temporary("kept.pt");
  saveValue(IValue(makeTuple(std::move(items))), data);
  const Outcome o = cli({"pipeline", write("raises.py", kRaises), "--run", data, "--stages", "2",
                         "--output", results});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("item 3, stage "), HasSubstr("three")));
  EXPECT_LE(loadValue(results).elements().size(), 3u);
}

// A module that counts its calls, tells of them, and adds random numbers.
std::string countingModule() {
  const std::string path = temporary("counting.pt");
  ArchiveWriter writer = ArchiveWriter::toFile(path, "counting");
  using namespace std::string_literals;
  writer.write("data.pkl",
               "\x80\x02"
               "c__torch__\nCounting\n)\x81}(X\x08\0\0\0training\x89X\x04\0\0\0seenK\0ub."s);
  writer.write("constants.pkl", "\x80\x02)."s);
  writer.write("version", "3\n"s);
  writer.write("code/__torch__.py", R"(class Counting(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  seen : int
  def forward(self: __torch__.Counting,
    x: Tensor) -> Tensor:
    seen = self.seen
    self.seen = torch.add(seen, 1)
    print("called")
    y = torch.add(torch.matmul(x, x), self.seen)
    return torch.add(y, torch.rand([2, 2]))
)"s);
  writer.finish();
  return path;
}

// Neither measuring nor anything else that comes before the items is noticed by them.
TEST(PipelineVerbTest, ProgramsWithStateSeeOnlyTheItems) {
  const std::string path = countingModule();
  std::vector<IValue> runs;
  for (const char* stages : {"1", "auto"}) {
    const std::string results = temporary("state.pt");
    const Outcome o = cli({"pipeline", path, "--eval", "--input", "2x2xf32=zeros", "--items", "5",
                           "--seed", "7", "--stages", stages, "--output", results});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, testing::StartsWith("called\ncalled\ncalled\ncalled\ncalled\n" + path));
    runs.push_back(loadValue(results));
  }
  for (size_t i = 0; i < 5; ++i) {
    const float first = *runs[0][i].toTensor().data<float>();
    EXPECT_GE(first, static_cast<float>(i + 1));
    EXPECT_LT(first, static_cast<float>(i + 2));
  }
  EXPECT_TRUE(runs[0].equals(runs[1]));
  const Outcome one = cli(
      {"run", path, "--input", "2x2xf32=zeros", "--seed", "7", "--output", temporary("one.pt")});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(loadValue(temporary("one.pt")).equals(runs[0][0]));
}

TEST(PipelineVerbTest, ProgramsThatWriteToTheirArgumentsAreMeasuredOnCopies) {
  const std::string data = temporary("zeros.npy"), results = temporary("written.pt");
  saveNpy(Tensor::zeros({3, 2}, DType::Float), data);
  const std::string script = write("writes.py", R"(
def main(x: Tensor) -> Tensor:
    return x.add_(1.0) * 2.0
)");
  const Outcome o = cli({"pipeline", script, "--run", data, "--output", results});
  ASSERT_EQ(o.code, 0) << o.err;
  const IValue rows = loadValue(results);
  for (const IValue& row : rows.elements()) {
    EXPECT_EQ(*row.toTensor().data<float>(), 2);
  }
}

TEST(PipelineVerbTest, WhatNeedsCallsApartRefusesState) {
  const std::string path = countingModule();
  const std::string kept = temporary("never");
  const Outcome keep =
      cli({"pipeline", path, "--eval", "--input", "2x2xf32", "--items", "3", "--keep", kept});
  EXPECT_EQ(keep.code, 1);
  EXPECT_THAT(keep.err, AllOf(HasSubstr("--keep: filter '"), HasSubstr("draws random numbers")));
  EXPECT_FALSE(std::filesystem::exists(kept));
  const Outcome verify =
      cli({"pipeline", path, "--eval", "--input", "2x2xf32", "--items", "3", "--verify"});
  EXPECT_THAT(verify.err, HasSubstr("--verify: filter '"));
}

TEST(PipelineVerbTest, KeptItemsThatAreMoreThanAskedForStay) {
  const std::string kept = temporary("many.kept"), results = temporary("few.pt");
  std::filesystem::remove(kept);
  for (const char* items : {"5", "2", "6"}) {
    const Json row = pipeline({"--input", kSeven, "--stages", "1", "--items", items, "--keep", kept,
                               "--output", results});
    EXPECT_EQ(std::to_string(loadValue(results).elements().size()), items);
    EXPECT_EQ(row["items"], items[0] == '6' ? 1 : items[0] == '2' ? 0 : 5);
  }
}

TEST(PipelineVerbTest, APipeIsRefusedNotWaitedFor) {
  const std::string pipe = temporary("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const char* option : {"--run", "--keep"}) {
    const Outcome o = cli({"pipeline", kDigits, "--input", kSeven, "--items", "1", option, pipe,
                           "--time-limit", "20"});
    EXPECT_EQ(o.code, 1);
    EXPECT_THAT(o.err, HasSubstr("pipe: not a regular file"));
  }
}

TEST(PipelineVerbTest, TimeLimitsHold) {
  const std::string script = write("long.py", R"(
def main(x: Tensor, n: int) -> Tensor:
    y = x @ x
    for i in range(n):
        y = torch.tanh(y @ x)
    return y @ x
)");
  const Outcome o = cli(
      {"pipeline", script, "--input", "4x4xf32", "--input", "1000000000000", "--time-limit", "1"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("time limit"));
}

TEST(PipelineVerbTest, SoundPieceByPiece) {
  const std::string script = write("sound.py", R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    y = torch.relu(torch.conv1d(x, w, None, [2], [4]))
    return torch.max_pool1d(y, [3], [2], [1]) * 2.0
)");
  Tensor sound = Tensor::empty({1, 1, 5000}, DType::Float);
  for (int64_t i = 0; i < 5000; ++i) sound.data<float>()[i] = static_cast<float>(i % 77) / 77;
  const std::string data = temporary("sound.npy");
  saveNpy(sound, data);
  const Outcome o = cli({"pipeline", script, "--run", data, "--input", "1x1x5000xf32", "--input",
                         "2x1x9xf32", "--chunk", "160", "--verify", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const Json row = Json::parse(o.out);
  EXPECT_EQ(row["pieces"], 32);
  EXPECT_LE(row["difference"].get<double>(), 1e-5);
  EXPECT_LE(row["held_elements"].get<int64_t>(), 20);
}

}  // namespace
}  // namespace wick::pipeline_test
