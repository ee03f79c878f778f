// Which operators of a run take how long.
//
//   wick::Profile profile;
//   model({x}, {}, profile.options());
//   std::cout << profile;                       // a table, the most expensive first
//   for (const auto& row : profile.rows()) …
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "runtime/run_options.h"

#pragma GCC visibility push(default)

namespace wick {

// May watch any number of runs, also at a time. Must outlive them and what they fork. A handle cannot be
// copied. Operators of CUDA devices only queue their work; what they take there is not in it.
class Profile {
 public:
  struct Row {
    std::string op;     // "aten::conv2d"; of a kernel for several operators all their names
    std::string place;  // "model.py:12" in the program's source; empty when it has none
    uint64_t calls = 0;
    double seconds = 0;  // of all calls together
    int64_t bytes = 0;   // tensor memory that they allocated, less the memory that they freed
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Options of a run that is watched, made of others.
  RunOptions options(RunOptions others = {}) const;
  // By operator and place, the most expensive first. Thread-safe, also while runs go on.
  std::vector<Row> rows() const;
  // Forgets all that was counted.
  void clear();

  friend std::ostream& operator<<(std::ostream& out, const Profile& profile);

 private:
  class Observer;
  std::unique_ptr<Observer> observer_;
};

}  // namespace wick

#pragma GCC visibility pop
