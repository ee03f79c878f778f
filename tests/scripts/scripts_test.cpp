// Every script of cases/ is a test: its first lines tell what main() gives, what it prints, or why
// it is refused. record.py writes the expectations from PyTorch's answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scripts/printed_program.h"
#include "wick.h"

namespace wick {
namespace {

const char kRoot[] = "tests/scripts/cases";

struct Expectation {
  std::string result;
  std::string printed;
  std::string error;
  std::string reason;  // why the answer of Python or PyTorch 2 is expected; for record.py
};

Expectation readExpectation(const std::string& text) {
  Expectation expected;
  std::istringstream lines(text);
  std::string line;
  const auto take = [&](const std::string& mark, std::string& into) {
    if (!line.starts_with(mark)) return false;
    // A line that ends with the mark stands for an empty line.
    into += line.substr(std::min(mark.size() + 1, line.size())) + "\n";
    return true;
  };
  while (std::getline(lines, line) &&
         (take("# expect error:", expected.error) || take("# expect:", expected.result) ||
          take("# prints:", expected.printed) || take("# as Python:", expected.reason) ||
          take("# as PyTorch 2:", expected.reason))) {
  }
  if (!expected.error.empty()) expected.error.pop_back();
  return expected;
}

class ScriptTest : public testing::Test {
 public:
  explicit ScriptTest(std::filesystem::path path) : path_(std::move(path)) {}

  void TestBody() override {
    std::ifstream file(path_);
    std::ostringstream buffer;
    buffer << file.rdbuf();
    const std::string text = buffer.str();
    const Expectation expected = readExpectation(text);
    ASSERT_NE(expected.result.empty(), expected.error.empty()) << "one of the two is needed";
    testing::internal::CaptureStdout();
    std::string result;
    std::string error;
    try {
      result = compile(text, path_.filename().string()).call("main", {}).repr() + "\n";
    } catch (const InternalError& e) {
      ADD_FAILURE() << e.what();
    } catch (const Error& e) {
      error = e.what();
    }
    std::fflush(stdout);
    const std::string printed = testing::internal::GetCapturedStdout();
    if (!expected.error.empty()) {
      EXPECT_EQ(result, "");
      EXPECT_NE(error.find(expected.error), std::string::npos)
          << "expected an error that says: " << expected.error << "\ngot: " << error;
      return;
    }
    EXPECT_EQ(error, "");
    EXPECT_EQ(result, expected.result);
    EXPECT_EQ(printed, expected.printed);
    runPrinted(text, expected);
  }

  // Printed as source and read again the script does the same.
  void runPrinted(const std::string& text, const Expectation& expected) {
    const Program program = compile(text, path_.filename().string());
    testing::internal::CaptureStdout();
    std::string result;
    std::string error;
    try {
      result = callPrinted(program.function("main")).repr() + "\n";
    } catch (const Error& e) {
      error = e.what();
    }
    std::fflush(stdout);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), expected.printed);
    EXPECT_EQ(error, "") << "of the printed form";
    EXPECT_EQ(result, expected.result) << "of the printed form";
  }

 private:
  std::filesystem::path path_;
};

void registerScripts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot)) {
    if (entry.path().extension() == ".py") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    const std::string topic = path.parent_path().filename().string();
    testing::RegisterTest(("Scripts_" + topic).c_str(), path.stem().string().c_str(), nullptr,
                          nullptr, path.string().c_str(), 1,
                          [path]() -> testing::Test* { return new ScriptTest(path); });
  }
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  wick::registerScripts();
  return RUN_ALL_TESTS();
}
