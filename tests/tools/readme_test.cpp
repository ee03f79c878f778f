// The examples of README.md give what stands below them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/tools/cli_testing.h"

namespace {

namespace fs = std::filesystem;

using wick::testing_cli::readText;

// "$ cat FILE" writes the file that is shown; "$ torchscript-cli …" must print what follows. What
// stands behind two blanks and a # is said to the reader.
TEST(ReadmeTest, ExamplesGiveWhatTheyShow) {
  const fs::path folder = fs::path(testing::TempDir()) / "readme";
  fs::create_directories(folder);
  fs::remove(folder / "examples");
  fs::create_directory_symlink(fs::absolute("examples"), folder / "examples");
  const std::string cli = fs::absolute("tools/torchscript-cli");
  const std::string text = readText("README.md");
  const size_t begin = text.find("```console\n");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream lines(text.substr(begin + 11, text.find("```", begin + 3) - begin - 11));
  std::string command, shown;
  size_t commands = 0;
  const auto finish = [&] {
    while (shown.ends_with("\n\n")) shown.pop_back();
    if (shown == "\n") shown.clear();
    if (command.starts_with("cat ")) {
      std::ofstream(folder / command.substr(4)) << shown;
    } else if (command.starts_with("torchscript-cli ")) {
      ++commands;
      const std::string arguments = command.substr(15, command.find("  #") - 15);
      const std::string line = "cd " + folder.string() + " && " + cli + arguments + " >out 2>&1";
      const int status = std::system(line.c_str());
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
      EXPECT_EQ(readText(folder / "out"), shown) << command;
    }
    shown.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("$ ")) {
      finish();
      command = line.substr(2);
    } else {
      shown += line + "\n";
    }
  }
  finish();
  EXPECT_GE(commands, 3u);
}

}  // namespace
