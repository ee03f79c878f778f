// Many commands in one process: a JSON array of words a line on standard input, a command line without
// the program's name, is answered with a line on standard output:
//
//   {"exit": 0, "stdout": "…", "stderr": "…"}
//
// until the input ends. Models and the code that was compiled for them are kept between lines; a line
// sees the model as the file has it, whatever lines before it did. Random numbers, threads and other
// settings begin anew with each line. A line that fails is answered like any other; one that is not
// such an array is answered with exit code 2. A command finds its standard input empty.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/device_backend.h"
#include "core/error.h"
#include "tools/command.h"
#include "tools/json_text.h"
#include "tools/kept_programs.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

using nlohmann::json;

// What a command prints beyond this is not answered.
constexpr size_t kMaxPrinted = size_t{64} << 20;

class Descriptor {
 public:
  Descriptor(int fd, const char* what) : fd_(fd) {
    WICK_CHECK(fd >= 0, "worker: {}: {}", what, std::strerror(errno));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Collects what is written to a standard stream while it lives.
class Captured {
 public:
  Captured(FILE* stream, int number)
      : stream_(stream),
        number_(number),
        before_((std::fflush(stream), dup(number)), "a standard stream"),
        file_(memfd_create("wick", MFD_CLOEXEC), "memory for what is printed") {
    dup2(file_.get(), number_);
  }
  ~Captured() { restore(); }
  // What was written. The stream is what it was before.
  std::string take() {
    restore();
    std::string text(
        std::min<size_t>(static_cast<size_t>(lseek(file_.get(), 0, SEEK_END)), kMaxPrinted), '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t n =
          pread(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    text.resize(done);
    return text;
  }

 private:
  void restore() {
    if (restored_) return;
    std::fflush(stream_);
    std::clearerr(stream_);
    dup2(before_.get(), number_);
    restored_ = true;
  }
  FILE* const stream_;
  const int number_;
  const Descriptor before_;
  const Descriptor file_;
  bool restored_ = false;
};

json answer(int code, const std::string& out, const std::string& err) {
  return {{"exit", code}, {"stdout", out}, {"stderr", err}};
}

// What a command that failed left undone on a device, and what its kernels found wrong meanwhile, is not the next one's.
void forgetWork() {
  const Device device = defaultDevice();
  if (device.isCpu()) return;
  try {
    deviceBackend(device.type).synchronize(device);
  } catch (const std::exception&) {
    // It was the failed command's.
  }
}

json runLine(const std::string& line) {
  json words = json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool fits = words.is_array() && std::ranges::all_of(words, [](const json& word) {
                      return word.is_string() &&
                             word.get_ref<const std::string&>().find('\0') == std::string::npos;
                    });
  if (!fits) return answer(kWrongUsage, "", "expected a JSON array of words\n");
  std::vector<std::string> held = {"torchscript-cli"};
  for (const json& word : words) held.push_back(word.get<std::string>());
  if (held.size() > 1 && held[1] == "worker") {
    return answer(kWrongUsage, "", "a worker does not run another one\n");
  }
  std::vector<const char*> pointers;
  for (const std::string& word : held) pointers.push_back(word.c_str());
  pointers.push_back(nullptr);
  Captured out(stdout, STDOUT_FILENO), err(stderr, STDERR_FILENO);
  resetSettings();
  const int code = runCommand(static_cast<int>(held.size()), pointers.data());
  if (code != 0) forgetWork();
  std::string printed = out.take();
  return answer(code, printed, err.take());
}

}  // namespace

void workerVerb(const Options&) {
  const std::unique_ptr<FILE, int (*)(FILE*)> lines(fdopen(dup(STDIN_FILENO), "r"), &std::fclose);
  WICK_CHECK(lines != nullptr, "worker: standard input cannot be read: {}", std::strerror(errno));
  {
    const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null");
    dup2(nothing.get(), STDIN_FILENO);
  }
  keepPrograms();
  char* line = nullptr;
  size_t capacity = 0;
  const std::unique_ptr<char*, void (*)(char**)> freed(&line, [](char** p) { std::free(*p); });
  for (ssize_t n; (n = getline(&line, &capacity, lines.get())) >= 0;) {
    std::string text(line, static_cast<size_t>(n));
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    std::clearerr(stdin);
    print(jsonLine(runLine(text)));
  }
}

}  // namespace wick::cli
