#include "streams/time/rule_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error_types.h"

namespace wick::streams {

std::string RuleCall::name() const {
  return std::string(node_.kind().qualString());
}

void RuleCall::refuse(const std::string& why) const {
  throw UsageError(fmt::format("{} {}", name(), why));
}

void RuleCall::refuseAllOfTime() const {
  refuse("works over all of the time, so it cannot run piece by piece");
}

size_t RuleCall::indexOf(std::string_view argument) const {
  const auto& declared = node_.getOperator().schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].name == argument) return i;
  }
  refuse(fmt::format("has no argument '{}', so it is not known how it goes over time", argument));
}

bool RuleCall::has(std::string_view argument) const {
  const auto& declared = node_.getOperator().schema().arguments();
  return std::ranges::any_of(declared, [&](const Argument& a) { return a.name == argument; });
}

bool RuleCall::anyLengths() const {
  return std::ranges::any_of(arguments_.lengths, [](const LengthList& l) { return !l.empty(); });
}

int64_t RuleCall::rank() const {
  const IValue& first = values()[0];
  if (first.isTensor()) return first.toTensor().dim();
  if (first.isList() && !first.elements().empty() && first.elements()[0].isTensor()) {
    return first.elements()[0].toTensor().dim();
  }
  refuse("is no tensor");
}

void RuleCall::onlyFirst() const {
  for (size_t i = 1; i < axes().size(); ++i) {
    if (axes()[i] >= 0) refuse("reads time in more than its first argument");
  }
  if (axes().empty() || axes()[0] < 0) refuse("reads time elsewhere than in its first argument");
}

int64_t RuleCall::dimension(const IValue& value, int64_t rank) const {
  const int64_t d = value.toInt();
  return d < 0 ? d + rank : d;
}

void RuleCall::notOverTime(int64_t dim) const {
  if (dim == axis()) refuseAllOfTime();
}

std::vector<int64_t> RuleCall::ints(std::string_view argument) const {
  const IValue& v = value(argument);
  if (v.isNone()) return {};
  const DimVector dims = v.toDims();
  return {dims.begin(), dims.end()};
}

TimeRule eachStep(int64_t axis) {
  TimeRule rule;
  rule.axis = axis;
  return rule;
}

}  // namespace wick::streams
