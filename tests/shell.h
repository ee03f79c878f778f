// Commands of the shell and files, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace wick::testing_shell {

// The bytes of a file; nothing when there is no such file.
inline std::string readText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int code;          // -1 when a signal ended the shell
  std::string text;  // standard output and error
};

// Runs a command. On a full disk its output may be missing, so the text says that the disk is full.
inline Outcome run(const std::string& command) {
  const std::string output = testing::TempDir() + "/output_" + std::to_string(getpid());
  const int status = std::system((command + " >" + output + " 2>&1").c_str());
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, readText(output)};
  std::error_code unknown;
  const auto space = std::filesystem::space(testing::TempDir(), unknown);
  if (outcome.code != 0 && !unknown && space.available < (std::uintmax_t{1} << 28)) {
    outcome.text += "\n(the disk of " + testing::TempDir() +
                    " is full, or nearly so: " + std::to_string(space.available >> 20) +
                    " MB are left)\n";
  }
  return outcome;
}

inline bool isHere(const std::string& program) {
  return run("command -v " + program).code == 0;
}

}  // namespace wick::testing_shell
