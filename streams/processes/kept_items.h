// Results that outlive their process: a file that grows by one item at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/ivalue.h"

namespace wick::streams {

// Used by one thread at a time. Errors of the system are RuntimeErrors that name the path.
class KeptItems {
 public:
  // What results depend on, by name.
  using Facts = std::vector<std::pair<std::string, std::string>>;

  // Makes the file, or goes on behind the items of one that is there; what was not wholly written is cut
  // off. UsageError when the file is something else, when it was made under other facts (which names
  // the first), and when another process has it open.
  KeptItems(std::string path, const Facts& facts);
  ~KeptItems();
  KeptItems(const KeptItems&) = delete;
  KeptItems& operator=(const KeptItems&) = delete;

  int64_t count() const { return count_; }
  // When this returns the item outlives the process; about a second later the machine, too.
  void keep(const IValue& result);
  // Returns when all items outlive the machine.
  void sync();
  // The first `count` items, or all when there are fewer. LoadError when one does not read back.
  std::vector<IValue> read(int64_t count = INT64_MAX) const;

 private:
  void recover(const Facts& facts);
  std::string bytesAt(uint64_t offset, uint64_t length) const;
  void write(const std::string& bytes);
  [[noreturn]] void fail(const char* what) const;

  const std::string path_;
  int descriptor_ = -1;
  uint64_t begin_ = 0;  // of the first item
  uint64_t end_ = 0;
  int64_t count_ = 0;
  std::chrono::steady_clock::time_point synced_;
};

// A number that tells files apart by their bytes, as text. RuntimeError when it cannot be read.
std::string fileMark(const std::string& path);

}  // namespace wick::streams
