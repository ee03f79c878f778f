// What files and programs say cannot steer a terminal.
#include "tools/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tools/command.h"

namespace wick::cli::terminal_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::string_literals;

TEST(TerminalTest, ControlCharactersAreShown) {
  EXPECT_EQ(harmless("plain\ttext,\n\u00e4\u20ac\U0001f600"),
            "plain\ttext,\n\u00e4\u20ac\U0001f600");
  EXPECT_EQ(harmless("\x1b]0;title\a"), "\\x1b]0;title\\x07");
  EXPECT_EQ(harmless("a\0b\r\b\x7f"s), "a\\x00b\\x0d\\x08\\x7f");
  // CSI in one character, as UTF-8 and as a byte.
  EXPECT_EQ(harmless("\u009b31m"), "\\xc2\\x9b31m");
  EXPECT_EQ(harmless("\x9b"
                     "31m"),
            "\\x9b31m");
  // Characters that are cut off or too long.
  EXPECT_EQ(harmless("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(harmless("\xc0\x9b"), "\\xc0\\x9b");
}

// What the command writes to a terminal.
std::string seen(const std::vector<const char*>& words) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) _exit(runCommand(static_cast<int>(words.size()), words.data()));
  std::string text;
  char buffer[4096];
  // A terminal that nobody has open any more gives an error.
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(terminal);
  waitpid(child, nullptr, 0);
  return text;
}

TEST(TerminalTest, ProgramsCannotSteerIt) {
  const std::string path = testing::TempDir() + "/steers.py";
  std::ofstream(path) << R"(
def main(x: int) -> str:
    print("\x1b]0;printed\x07")
    if x > 0:
        raise ValueError("\x1b]0;raised\x07")
    return "\x1b]0;given\x07"
)";
  const std::string good = seen({"torchscript-cli", "run", path.c_str(), "--input", "0"});
  EXPECT_THAT(good, Not(HasSubstr("\x1b]")));
  EXPECT_THAT(good, HasSubstr("\\x1b]0;printed\\x07"));
  EXPECT_THAT(good, HasSubstr("given"));
  const std::string bad = seen({"torchscript-cli", "run", path.c_str(), "--input", "1"});
  EXPECT_THAT(bad, Not(HasSubstr("\x1b]")));
  EXPECT_THAT(bad, HasSubstr("\\x1b]0;raised\\x07"));
}

}  // namespace
}  // namespace wick::cli::terminal_test
