#include "tools/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/error.h"

extern char** environ;

namespace wick::cli {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File temporaryFile(const char* option) {
  File file(std::tmpfile(), &std::fclose);
  if (!file) {
    throw UsageError(fmt::format("{}: no temporary file: {}", option, std::strerror(errno)));
  }
  return file;
}

}  // namespace

std::optional<std::string> outputOf(const char* option, std::vector<std::string> command,
                                    const std::string& input) {
  // Through files: neither side waits for the other.
  const File in = temporaryFile(option);
  const File out = temporaryFile(option);
  if (std::fwrite(input.data(), 1, input.size(), in.get()) != input.size() ||
      std::fflush(in.get()) != 0) {
    throw UsageError(fmt::format("{}: the temporary file cannot be written", option));
  }
  std::rewind(in.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return std::nullopt;
  if (error != 0) {
    throw UsageError(
        fmt::format("{}: {} cannot be run: {}", option, command[0], std::strerror(error)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw UsageError(fmt::format("{}: {}", option, std::strerror(errno)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw UsageError(fmt::format("{}: {} failed", option, command[0]));
  }
  std::rewind(out.get());
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), out.get())) text.append(buffer, n);
  return text;
}

}  // namespace wick::cli
