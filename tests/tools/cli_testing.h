// torchscript-cli as a process, for tests: what it prints, how it ends, and files for it.
#pragma once

#include <string>
#include <vector>

#include "tests/shell.h"

namespace wick::testing_cli {

// A model that reads digits, and one for it.
inline const std::string kDigits = "examples/digits.pt";
inline const std::string kSeven = "@examples/seven.npy";

struct Outcome {
  int code;  // -1 when a signal ended the shell
  std::string out;
  std::string err;
};

using testing_shell::readText;
// A path in the test's own folder.
std::string temporary(const std::string& name);
// Writes a file in that folder and returns its path.
std::string write(const std::string& name, const std::string& text);

// Runs the command with these arguments, each quoted. `before` stands in front of it in the shell's
// line (variables, or what feeds its standard input), `after` behind its arguments. The shell
// reports a signal that ends the command as 128 and more.
Outcome cli(const std::vector<std::string>& arguments, const std::string& before = "",
            const std::string& after = "");

}  // namespace wick::testing_cli
