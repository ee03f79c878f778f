#include "tools/kept_programs.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>

#include "passes/pipeline.h"
#include "runtime/device_moves.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// What a program was made of.
struct Origin {
  std::string path;
  std::string on;  // --device
  uint64_t device = 0, number = 0;
  int64_t bytes = 0, modified = 0, changed = 0;  // times in nanoseconds
  OptimizationLevel level{};
  friend bool operator==(const Origin&, const Origin&) = default;
};

int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

std::optional<Origin> originOf(const Options& options) {
  const std::string& path = options.file;
  struct stat file {};
  if (path == "-" || stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return Origin{path,
                options.device,
                file.st_dev,
                file.st_ino,
                file.st_size,
                nanoseconds(file.st_mtim),
                nanoseconds(file.st_ctim),
                optimizationLevel()};
}

// Whether a later change would have another time: clocks of file systems have steps of up to ten
// milliseconds.
bool isSettled(const Origin& origin) {
  constexpr int64_t kSteps = 30'000'000;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return origin.changed < nanoseconds(now) - kSteps;
}

struct Kept {
  Origin origin;
  LoadedFile program;
};

// Code is shared, and its constants with it: those that a command wrote to, or moved to a device, are no longer what the file
// has. Whoever writes to a tensor counts up its version.
bool hasConstantsOfFile(const LoadedFile& program) {
  return std::ranges::all_of(constantTensors(program.unit()), [](const IValue& constant) {
    const Tensor t = constant.toTensor();
    return t.device().isCpu() && t.storage()->version() == 0;
  });
}

bool keeping = false;

// The one that was asked for last comes first.
std::list<Kept>& keptPrograms() {
  static std::list<Kept> programs;
  return programs;
}

}  // namespace

void keepPrograms() {
  keeping = true;
}

LoadedFile loadKept(const Options& options) {
  const auto load = [&] { return LoadedFile::load(options.file, devicesOf(options)); };
  const std::optional<Origin> origin = keeping ? originOf(options) : std::nullopt;
  if (!origin) return load();
  std::list<Kept>& programs = keptPrograms();
  auto found = std::ranges::find(programs, *origin, &Kept::origin);
  if (found != programs.end() && !hasConstantsOfFile(found->program)) {
    programs.erase(found);
    found = programs.end();
  }
  if (found != programs.end()) {
    programs.splice(programs.begin(), programs, found);
  } else {
    if (!isSettled(*origin)) return load();
    programs.push_front({*origin, load()});
    if (programs.size() > kMostKept) programs.pop_back();
  }
  return programs.front().program.withModuleOfItsOwn();
}

}  // namespace wick::cli
