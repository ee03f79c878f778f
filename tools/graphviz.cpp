#include "tools/graphviz.h"

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

File temporaryFile() {
  File file(std::tmpfile(), &std::fclose);
  if (!file) throw UsageError(fmt::format("--svg: no temporary file: {}", std::strerror(errno)));
  return file;
}

}  // namespace

std::string renderSvg(const std::string& dot_text) {
  // Through files: neither side waits for the other.
  const File in = temporaryFile();
  const File out = temporaryFile();
  if (std::fwrite(dot_text.data(), 1, dot_text.size(), in.get()) != dot_text.size() ||
      std::fflush(in.get()) != 0) {
    throw UsageError("--svg: the temporary file cannot be written");
  }
  std::rewind(in.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  std::string program = "dot";
  std::string format = "-Tsvg";
  char* arguments[] = {program.data(), format.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, "dot", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    throw UsageError(
        "--svg needs Graphviz's program dot, which is not installed; --dot prints its input");
  }
  if (error != 0)
    throw UsageError(fmt::format("--svg: dot cannot be run: {}", std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw UsageError(fmt::format("--svg: {}", std::strerror(errno)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw UsageError("--svg: dot failed");
  std::rewind(out.get());
  std::string svg;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), out.get())) svg.append(buffer, n);
  return svg;
}

}  // namespace wick::cli
