#include "tests/tools/cli_testing.h"

#include <gtest/gtest.h>

namespace wick::testing_cli {

std::string temporary(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

std::string write(const std::string& name, const std::string& text) {
  std::ofstream(temporary(name), std::ios::binary) << text;
  return temporary(name);
}

Outcome cli(const std::vector<std::string>& arguments, const std::string& before,
            const std::string& after) {
  std::string command = before + " tools/torchscript-cli";
  for (const std::string& argument : arguments) {
    std::string quoted = "'";
    for (char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += " " + quoted + "'";
  }
  command += " " + after + " >" + temporary("out") + " 2>" + temporary("err");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readText(temporary("out")),
          readText(temporary("err"))};
}

}  // namespace wick::testing_cli
