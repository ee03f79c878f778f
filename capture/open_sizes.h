// Which sizes of inputs an entry leaves open.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/bytecode/object.h"

namespace wick::capture {

enum class OpenSizes : uint8_t {
  kAutomatic,  // those that differed from one capture of the code to another one
  kAlways,
  kNever,
};

// The sizes that tensors had when a code was captured, by the texts of their sources.
class SizeHistory {
 public:
  // Returns whether the size differs from an earlier one.
  bool differs(const std::string& source, size_t dim, const std::vector<int64_t>& sizes) const;
  void note(const std::string& source, const std::vector<int64_t>& sizes);

  // Whether sizes and branches that elements decide may be guessed, and what the sizes were in a run that
  // guessed wrong.
  bool guesses = false;
  std::vector<int64_t> hints;

 private:
  struct Seen {
    std::vector<int64_t> sizes;
    std::vector<bool> changed;
  };
  std::unordered_map<std::string, Seen> seen_;
};

// A dimension of an input, by the text of its source.
using SizePlace = std::pair<std::string, size_t>;

// How one attempt treats sizes.
struct SizeSettings {
  bool arrays_elsewhere = false;  // arrays belong to the other library of tensors

  OpenSizes mode = OpenSizes::kNever;
  const SizeHistory* history = nullptr;
  std::set<SizePlace> closed;  // dimensions that stay so
  // To evaluate a frame again that was captured before: the symbols of the open dimensions, and the sizes
  // that they have instead of the call's own.
  std::map<SizePlace, int> symbols;
  std::vector<int64_t> examples;
  bool decided = true;         // whether elements may decide about sizes in the graph
  bool guesses = false;        // whether such sizes may be guessed
  bool expects = false;        // whether branches may be supposed not to raise
  std::vector<int64_t> hints;  // what they were in a run, by symbol; -1 for others
  bool guesses_all = false;    // whether all are supposed to be that
  bool asks_all = false;       // whether the graph gives all such sizes, so that a run finds them
};

// Says of dimensions of a tensor that their sizes change from call to call, or never do.
void markSizes(PyObject* tensor, const std::vector<int64_t>& dims, bool open);
// Returns whether the dimension was marked as open, or as closed.
std::optional<bool> markOf(PyObject* tensor, size_t dim);

}  // namespace wick::capture
