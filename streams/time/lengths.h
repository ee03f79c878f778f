// Numbers of a program that are lengths of time: sizes along time, and what is computed from them.
// In a stream nobody knows them before its end, so only some uses of them go piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"
#include "ir/graph.h"

namespace wick::streams {

// factor * (the steps of `of`) + offset.
struct Length {
  const Value* of = nullptr;
  int64_t factor = 1;
  int64_t offset = 0;
  bool isPlain() const { return factor == 1 && offset == 0; }
};

// Of a list of ints (or of one int) which are lengths.
using LengthList = std::vector<std::optional<Length>>;

class Lengths {
 public:
  using AxisOf = std::function<int64_t(const Value*)>;

  // Whether the node is a question or a calculation whose results have no time: sizes, sums of sizes,
  // lists of them, dtypes, tensors that take only their dtype from one with time. What it knows of its
  // results is remembered then. `arguments` and `results` are those of an example call. UsageError,
  // which begins with the operator's name, for numbers that are too large.
  bool follow(const Node& node, const std::vector<IValue>& arguments, const AxisOf& axis_of);

  // Empty for what is no length and holds none.
  const LengthList& of(const Value* value) const;

 private:
  bool followSize(const Node& node, const std::vector<IValue>& arguments, const AxisOf& axis_of);
  bool followNumbers(const Node& node, const std::vector<IValue>& arguments);
  bool followLists(const Node& node, const std::vector<IValue>& arguments);
  bool followTensors(const Node& node, const AxisOf& axis_of) const;
  void remember(const Value* value, LengthList list);

  std::unordered_map<const Value*, LengthList> lengths_;
};

}  // namespace wick::streams
