// torchscript-cli worker: many commands, one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/cli_testing.h"
#include "wick.h"

namespace wick::worker_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using namespace testing_cli;

// The answers to lines, which are JSON or not.
std::vector<json> work(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const Outcome o = cli({"worker"}, "cat '" + write("lines", text) + "' |");
  EXPECT_EQ(o.code, 0) << o.err;
  std::vector<json> answers;
  std::istringstream answered(o.out);
  for (std::string line; std::getline(answered, line);) answers.push_back(json::parse(line));
  EXPECT_EQ(answers.size(), lines.size()) << o.out;
  answers.resize(lines.size());
  return answers;
}
std::string run(const std::string& file, std::vector<std::string> more = {}) {
  json words = {"run", file};
  for (const std::string& word : more) words.push_back(word);
  return words.dump();
}

TEST(WorkerTest, AnswersEachLine) {
  const std::string good =
      write("good.py", "def main(x: int) -> int:\n    print('seen')\n    return x + 1\n");
  const std::string bad = write("bad.py", "def main():\n    raise RuntimeError('told')\n");
  const auto answers = work({run(good, {"--input", "4"}), run(bad), "[\"runn\"]", "nonsense", "[1]",
                             "[\"worker\"]", "", run(good, {"--input", "6"})});
  EXPECT_EQ(answers[0]["exit"], 0);
  EXPECT_EQ(answers[0]["stdout"], "seen\n5\n");
  EXPECT_EQ(answers[0]["stderr"], "");
  EXPECT_EQ(answers[1]["exit"], 1);
  EXPECT_THAT(answers[1]["stderr"].get<std::string>(), HasSubstr("told"));
  for (size_t i = 2; i < 7; ++i) EXPECT_EQ(answers[i]["exit"], 2) << i;
  EXPECT_EQ(answers[7]["stdout"], "seen\n7\n");
}

TEST(WorkerTest, LimitsAreNumbers) {
  const std::string good = write("good.py", "def main():\n    return 1\n");
  for (const char* flag : {"--time-limit", "--memory-limit"}) {
    for (const char* number : {"nan", "-1", "0", "inf", "", "1x"}) {
      const auto answers = work({run(good, {flag, number})});
      EXPECT_EQ(answers[0]["exit"], 2) << flag << " " << number;
      EXPECT_THAT(answers[0]["stderr"].get<std::string>(), HasSubstr(flag));
    }
  }
  EXPECT_EQ(work({run(good, {"--time-limit", "5", "--memory-limit", "64M"})})[0]["exit"], 0);
}

TEST(WorkerTest, LinesDoNotSeeEachOther) {
  ModuleBuilder builder("Counter");
  builder.registerBuffer("total", Tensor::zeros({1}, DType::Float));
  builder.registerAttribute("calls", types::Int(), 0);
  builder.define(
      "def forward(self) -> int:\n"
      "    self.total += 1\n"
      "    self.calls = self.calls + 1\n"
      "    return self.calls + int(self.total)\n");
  const std::string model = temporary("counter.pt");
  builder.build().save(model);
  const std::string drawn = write("drawn.py", "def main():\n    return torch.rand([2])\n");
  const auto answers = work({run(model, {"--eval"}), run(model, {"--eval"}), run(drawn), run(drawn),
                             run(drawn, {"--seed", "3", "--threads", "1"}), run(drawn)});
  EXPECT_EQ(answers[0]["stdout"], "2\n");
  EXPECT_EQ(answers[1]["stdout"], "2\n");
  EXPECT_EQ(answers[2]["stdout"], answers[3]["stdout"]);
  EXPECT_NE(answers[4]["stdout"], answers[3]["stdout"]);
  EXPECT_EQ(answers[5]["stdout"], answers[3]["stdout"]);
}

TEST(WorkerTest, ConstantsAreThoseOfTheFile) {
  ModuleBuilder builder("Table");
  builder.registerBuffer("table", Tensor::zeros({2}, DType::Float));
  builder.define("def forward(self, x: Tensor) -> Tensor:\n    return x + self.table\n");
  const std::string model = temporary("table.pt");
  freeze(builder.build().eval()).save(model);
  const auto answers = work({run(model, {"--input", "[1.0, 2.0]"}),
                             run(model, {"--input", "[1.0, 2.0]", "--device", "meta"}),
                             run(model, {"--input", "[1.0, 2.0]"})});
  EXPECT_THAT(answers[1]["stdout"].get<std::string>(), HasSubstr("on meta"));
  EXPECT_EQ(answers[2]["exit"], 0) << answers[2]["stderr"];
  EXPECT_EQ(answers[2]["stdout"], answers[0]["stdout"]);
}

TEST(WorkerTest, SeesThatAFileHasChanged) {
  const std::string file = write("changing.py", "def main() -> int:\n    return 1\n");
  const std::string other = write("other.py", "def main() -> int:\n    return 22\n");
  const auto answers = work({run(file), run(other, {"--output", temporary("two.pt")}), run(file)});
  EXPECT_EQ(answers[0]["stdout"], "1\n");
  EXPECT_EQ(answers[2]["stdout"], "1\n");
  // A saved archive is written anew between two lines that run it.
  const std::string archive = temporary("archive.pt");
  const std::string first = json({"save", file, "--output", archive}).dump();
  const std::string second = json({"save", other, "--output", archive}).dump();
  const std::string main = run(archive, {"--method", "main", "--eval"});
  const auto saved = work({first, main, second, main});
  EXPECT_EQ(saved[1]["stdout"], "1\n");
  EXPECT_EQ(saved[3]["stdout"], "22\n");
}

// Of the same size, with the time of change put back.
TEST(WorkerTest, SeesAChangeThatLooksLikeNone) {
  const std::string file = write("steady.py", "def main() -> int:\n    return 1\n");
  const std::string other = write("two.py", "def main() -> int:\n    return 2\n");
  const std::string result = temporary("steady.pt");
  std::filesystem::remove(result);
  const std::string put_back = "touch -d @1000000000 '" + file + "'; ";
  const Outcome o =
      cli({"worker"}, "{ " + put_back + "sleep 0.1; echo '" + run(file, {"--output", result}) +
                          "'; while [ ! -e '" + result + "' ]; do sleep 0.02; done; cat '" + other +
                          "' > '" + file + "'; " + put_back + "echo '" + run(file) + "'; } |");
  EXPECT_EQ(loadValue(result).toInt(), 1);
  EXPECT_THAT(o.out, HasSubstr(R"("stdout":"2\n")"));
}

TEST(WorkerTest, LimitsBelongToALine) {
  const std::string endless = write(
      "endless.py", "def main():\n    i = 0\n    while True:\n        i += 1\n    return i\n");
  const std::string quick = write("quick.py", "def main() -> int:\n    return 3\n");
  const auto answers = work({run(endless, {"--time-limit", "0.2"}), run(quick),
                             run(quick, {"--time-limit", "0.2"}), run(quick)});
  EXPECT_EQ(answers[0]["exit"], 1);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(answers[i]["stdout"], "3\n");
}

TEST(WorkerTest, CommandsFindNoInput) {
  const auto answers = work({run("-"), run("-")});
  EXPECT_NE(answers[0]["exit"], 0);
  EXPECT_NE(answers[1]["exit"], 0);
}

}  // namespace
}  // namespace wick::worker_test
