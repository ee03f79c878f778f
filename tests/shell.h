// Commands of the shell and files, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

inline Outcome run(const std::string& command) {
  const std::string output = testing::TempDir() + "/output_" + std::to_string(getpid());
  const int status = std::system((command + " >" + output + " 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readText(output)};
}

inline bool isHere(const std::string& program) {
  return run("command -v " + program).code == 0;
}

}  // namespace wick::testing_shell
