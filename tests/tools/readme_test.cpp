// The examples of README.md and of docs/walks give what stands below them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

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

// One run of blanks is like another.
std::string squeezed(const std::string& line) {
  std::istringstream words(line);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

// Whether a line of output begins with what is shown; "…" stands for anything.
bool isShownAs(const std::string& line, const std::string& shown) {
  constexpr std::string_view kAnything = "…";
  size_t at = 0, begin = 0;
  while (begin <= shown.size()) {
    const size_t end = std::min(shown.find(kAnything, begin), shown.size());
    const std::string piece = shown.substr(begin, end - begin);
    const size_t found = line.find(piece, at);
    if (found == std::string::npos || (begin == 0 && found != 0)) return false;
    at = found + piece.size();
    begin = end + kAnything.size();
  }
  return true;
}

// A command of a page: its line, and the lines that stand below it.
struct Example {
  std::string command;
  std::vector<std::string> shown;
};

// Writes the files that a page shows ("$ cat NAME") into the folder, and gives the commands.
std::vector<Example> examplesOf(const std::string& page, const fs::path& folder) {
  std::vector<Example> examples;
  std::istringstream lines(page);
  bool inside = false;
  std::string language, file, text;
  const auto finish = [&] {
    if (!file.empty()) std::ofstream(folder / file) << text;
    file.clear();
    text.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      finish();
      inside = !inside;
      language = inside ? line.substr(3) : "";
    } else if (language == "console" && line.starts_with("$ ")) {
      finish();
      if (line.starts_with("$ cat ")) {
        file = line.substr(6);
      } else {
        examples.push_back({line.substr(2), {}});
      }
    } else if (!file.empty()) {
      text += line + "\n";
    } else if (language == "console" && !examples.empty()) {
      examples.back().shown.push_back(line);
    }
  }
  return examples;
}

// Times differ, and registers from processor to processor.
bool isStable(const std::string& command) {
  return command.find("torchscript-cli") != std::string::npos &&
         command.find(" profile ") == std::string::npos &&
         command.find("--stage asm") == std::string::npos;
}

TEST(WalksTest, ExamplesGiveWhatTheyShow) {
  const fs::path folder = fs::path(testing::TempDir()) / "walks";
  fs::create_directories(folder);
  fs::remove(folder / "examples");
  fs::create_directory_symlink(fs::absolute("examples"), folder / "examples");
  const std::string cli = fs::absolute("tools");
  size_t commands = 0, pages = 0;
  for (const auto& entry : fs::directory_iterator("docs/walks")) {
    ++pages;
    for (const Example& example : examplesOf(readText(entry.path()), folder)) {
      if (!isStable(example.command)) continue;
      ++commands;
      SCOPED_TRACE(example.command);
      const std::string line = "cd " + folder.string() + " && PATH=" + cli + ":$PATH && (" +
                               example.command + ") >out 2>&1";
      ASSERT_TRUE(WIFEXITED(std::system(line.c_str())));
      std::istringstream output(readText(folder / "out"));
      for (const std::string& shown : example.shown) {
        const std::string wanted = squeezed(shown);
        if (wanted.empty() || wanted == "…") continue;
        bool found = false;
        for (std::string given; !found && std::getline(output, given);) {
          found = isShownAs(squeezed(given), wanted);
        }
        EXPECT_TRUE(found) << "this line is not there, or not in this order: " << shown;
      }
    }
  }
  EXPECT_GE(pages, 4u);
  EXPECT_GE(commands, 12u);
}

}  // namespace
