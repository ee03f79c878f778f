// Programs that are made of a fuzzer's bytes. They claim types (default values, casts), compute constants while a file is
// compiled, or build large texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace wick {

// Decisions that bytes make. When they are used up, each is 0.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  // Returns a number below `n`, which is at most 256.
  size_t below(size_t n) { return next() % n; }
  bool once(size_t n) { return below(n) == 1; }

 private:
  size_t next() {
    if (at_ == bytes_.size()) return 0;
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  std::string_view bytes_;
  size_t at_ = 0;
};

// Functions whose arguments have default values of types that may not be those declared.
std::string defaultValuesProgram(std::string_view bytes);
// Functions that cast, annotate and refine values. With `archive` the text of a class M as archives have it.
std::string castsProgram(std::string_view bytes, bool archive);
// Constants of a file and members of an enum that are computed of each other, small and huge.
std::string fileConstantsProgram(std::string_view bytes);
// A function that makes texts of texts, small and huge.
std::string textsProgram(std::string_view bytes);

}  // namespace wick
