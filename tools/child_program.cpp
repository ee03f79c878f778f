#include "tools/child_program.h"

#include <fmt/format.h>
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
    throw UsageError(
        fmt::format("{}: a temporary file cannot be made: {}", option, std::strerror(errno)));
  }
  return file;
}

}  // namespace

ChildEnd runChild(std::vector<std::string> command,
                  const std::function<void(posix_spawn_file_actions_t*)>& prepare) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  prepare(&actions);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {error};
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return {errno};
  }
  return {0, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

std::optional<std::string> outputOf(const char* option, const std::vector<std::string>& command,
                                    const std::string& input) {
  // Through files: neither side waits for the other.
  const File in = temporaryFile(option);
  const File out = temporaryFile(option);
  if (std::fwrite(input.data(), 1, input.size(), in.get()) != input.size() ||
      std::fflush(in.get()) != 0) {
    throw UsageError(
        fmt::format("{}: a temporary file cannot be written: {}", option, std::strerror(errno)));
  }
  std::rewind(in.get());
  const ChildEnd end = runChild(command, [&](posix_spawn_file_actions_t* actions) {
    posix_spawn_file_actions_adddup2(actions, fileno(in.get()), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(actions, fileno(out.get()), STDOUT_FILENO);
  });
  if (end.error == ENOENT) return std::nullopt;
  if (end.error != 0) {
    throw UsageError(
        fmt::format("{}: {} cannot be run: {}", option, command[0], std::strerror(end.error)));
  }
  if (!end.succeeded) throw UsageError(fmt::format("{}: {} failed", option, command[0]));
  std::rewind(out.get());
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), out.get())) text.append(buffer, n);
  return text;
}

}  // namespace wick::cli
