// What rules for operators over time (axis_rules.h) look at.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "streams/time/axis_rules.h"

namespace wick::streams {

constexpr int64_t kMostSteps = int64_t{1} << 31;

// A node with the arguments of its example call.
class RuleCall {
 public:
  RuleCall(const Node& node, const TimeArguments& arguments) : node_(node), arguments_(arguments) {}

  const Node& node() const { return node_; }
  std::string name() const;
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuseAllOfTime() const;

  bool has(std::string_view argument) const;
  size_t indexOf(std::string_view argument) const;
  const IValue& value(std::string_view argument) const { return values()[indexOf(argument)]; }
  const std::vector<IValue>& values() const { return arguments_.values; }
  const std::vector<int64_t>& axes() const { return arguments_.axes; }
  // Which of the numbers in the argument are lengths of time.
  const LengthList& lengths(size_t i) const { return arguments_.lengths[i]; }
  bool anyLengths() const;

  // Of the first argument.
  int64_t axis() const { return axes()[0]; }
  // Of the tensor with time, or of the elements of the list.
  int64_t rank() const;
  // Refuses unless time is in the first argument and in no other.
  void onlyFirst() const;
  int64_t dimension(const IValue& value, int64_t rank) const;
  int64_t dimension(std::string_view argument) const { return dimension(value(argument), rank()); }
  void notOverTime(int64_t dim) const;
  std::vector<int64_t> ints(std::string_view argument) const;

 private:
  const Node& node_;
  const TimeArguments& arguments_;
};

struct OperatorRule {
  std::function<TimeRule(const RuleCall&)> make;
  bool takes_lengths = false;  // whether it knows what to do with lengths among the arguments
};
using RuleMap = std::unordered_map<std::string_view, OperatorRule>;

// Every step by itself, with time in the results at `axis`.
TimeRule eachStep(int64_t axis);

void addAxisRules(RuleMap& map);    // what only moves time to another dimension, or not even that
void addWindowRules(RuleMap& map);  // convolutions, pools, padding, frames
void addLengthRules(RuleMap& map);  // views and what is made for a number of steps
void addCarryRules(RuleMap& map);   // running sums, recurrent layers

}  // namespace wick::streams
