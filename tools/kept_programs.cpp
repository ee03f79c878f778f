#include "tools/kept_programs.h"

#include <sys/stat.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <list>
#include <optional>

#include "passes/pipeline.h"
#include "runtime/device_moves.h"

namespace wick::cli {
namespace {

// What a program was made of.
struct Origin {
  std::string path;
  uint64_t device = 0, number = 0;
  int64_t bytes = 0, seconds = 0, nanoseconds = 0;
  OptimizationLevel level{};
  friend bool operator==(const Origin&, const Origin&) = default;
};

std::optional<Origin> originOf(const std::string& path) {
  struct stat file {};
  if (path == "-" || stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return Origin{path,
                file.st_dev,
                file.st_ino,
                file.st_size,
                file.st_mtim.tv_sec,
                file.st_mtim.tv_nsec,
                optimizationLevel()};
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

LoadedFile loadKept(const std::string& path) {
  const std::optional<Origin> origin = keeping ? originOf(path) : std::nullopt;
  if (!origin) return LoadedFile::load(path);
  std::list<Kept>& programs = keptPrograms();
  auto found = std::ranges::find(programs, *origin, &Kept::origin);
  if (found != programs.end() && !hasConstantsOfFile(found->program)) {
    programs.erase(found);
    found = programs.end();
  }
  if (found != programs.end()) {
    programs.splice(programs.begin(), programs, found);
  } else {
    programs.push_front({*origin, LoadedFile::load(path)});
    if (programs.size() > kMostKept) programs.pop_back();
  }
  return programs.front().program.withModuleOfItsOwn();
}

}  // namespace wick::cli
