// Programs of others, where they are installed. The first word of a command is the program: a path, or a
// name that PATH finds.
#pragma once

#include <spawn.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace wick::cli {

// How a program ended.
struct ChildEnd {
  int error = 0;           // of the system, when it could not be started
  bool succeeded = false;  // with exit code 0
};
// Runs a program until its end; `prepare` says what is done before it begins.
ChildEnd runChild(std::vector<std::string> command,
                  const std::function<void(posix_spawn_file_actions_t*)>& prepare);

// What the program writes to its standard output when it gets `input` at its standard input, which it
// may open as /dev/stdin and read from anywhere. Nothing when there is no such program. UsageError, which
// begins with the option that asked for it, when it fails.
std::optional<std::string> outputOf(const char* option, const std::vector<std::string>& command,
                                    const std::string& input);

}  // namespace wick::cli
