// Operators that are told how long time is: views, tensors that are made for a number of steps, counts
// of steps, and what cuts off what is longer than something else.
#include <fmt/format.h>

#include <limits>

#include "streams/time/rule_call.h"

namespace wick::streams {

namespace {

[[noreturn]] void refuseLength(const RuleCall& call) {
  call.refuse("needs the length of all of the time, so it cannot run piece by piece");
}

// Refuses lengths in any argument but this one.
void onlyLengthsOf(const RuleCall& call, size_t argument) {
  for (size_t i = 0; i < call.axes().size(); ++i) {
    if (i != argument && !call.lengths(i).empty()) refuseLength(call);
  }
}

// The argument that is the list of sizes, with the element `at` told by the piece.
void replaceSizes(const RuleCall& call, size_t argument, std::vector<int64_t> sizes, size_t at,
                  TimeRule& rule) {
  const LengthList& lengths = call.lengths(argument);
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] && i != at) refuseLength(call);
  }
  sizes[at] = -1;
  rule.replaced.emplace_back(argument, IValue(makeIntList(sizes)));
}

// Elements keep their order, so time is one dimension of the result when it is as long there and what
// lies before it is as much.
std::function<TimeRule(const RuleCall&)> view(const char* argument) {
  return [argument](const RuleCall& call) -> TimeRule {
    call.onlyFirst();
    const size_t which = call.indexOf(argument);
    onlyLengthsOf(call, which);
    const Tensor& x = call.values()[0].toTensor();
    std::vector<int64_t> sizes = call.ints(argument);
    // Of tensors without elements a product of some sizes may be too large.
    const auto times = [&](int64_t& product, int64_t size) {
      if (__builtin_mul_overflow(product, size, &product)) call.refuse("has too large sizes");
    };
    int64_t known = 1;
    for (int64_t s : sizes) {
      if (s >= 0) times(known, s);
    }
    for (int64_t& s : sizes) {
      // The example call has shown that it divides.
      if (s < 0) s = known == 0 ? 0 : x.numel() / known;
    }
    int64_t before = 1;
    for (int64_t d = 0; d < call.axis(); ++d) times(before, x.size(d));
    int64_t here = 1;
    for (size_t i = 0; i < sizes.size(); times(here, sizes[i++])) {
      if (here != before || sizes[i] != x.size(call.axis())) continue;
      // Before a dimension of size 1 time could stand on either side of it, if it is as short.
      if (sizes[i] == 1) call.refuse("is shown a single step, which does not tell where time goes");
      TimeRule rule = eachStep(static_cast<int64_t>(i));
      replaceSizes(call, which, sizes, i, rule);
      return rule;
    }
    call.refuse("joins time with other dimensions, or takes it apart");
  };
}

// For each step of what gives the length.
TimeRule made(const RuleCall& call, size_t argument) {
  onlyLengthsOf(call, argument);
  const LengthList& lengths = call.lengths(argument);
  TimeRule rule;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!lengths[i]) continue;
    if (rule.sized || !lengths[i]->isPlain()) refuseLength(call);
    rule.axis = static_cast<int64_t>(i);
    rule.sized = {argument, i};
    rule.steps_of = lengths[i]->of;
  }
  if (!rule.sized) refuseLength(call);
  return rule;
}

TimeRule makes(const RuleCall& call) {
  const size_t argument = call.indexOf("size");
  TimeRule rule = made(call, argument);
  for (size_t i = 0; i < call.axes().size(); ++i) {
    // new_zeros and the like: only the dtype of the first is meant.
    if (call.axes()[i] >= 0 && i != 0) call.refuse("reads time in an unusual argument");
  }
  return rule;
}

// Of a tensor without time: one step of it, as often as there are steps.
TimeRule madeOfOne(const RuleCall& call, size_t argument) {
  const TimeRule rule = made(call, argument);
  const Tensor& x = call.values()[0].toTensor();
  const auto count = static_cast<int64_t>(call.values()[argument].elements().size());
  const int64_t at = rule.axis + x.dim() - count;
  if (at >= 0 && x.size(at) != 1) call.refuse("meets time with a tensor of a fixed length");
  return rule;
}

TimeRule expand(const RuleCall& call) {
  const size_t argument = call.indexOf("size");
  if (call.axis() < 0) return madeOfOne(call, argument);
  call.onlyFirst();
  onlyLengthsOf(call, argument);
  const std::vector<int64_t> sizes = call.ints("size");
  const auto at =
      static_cast<size_t>(call.axis()) + sizes.size() - static_cast<size_t>(call.rank());
  if (at >= sizes.size()) call.refuse("loses the dimension of time");
  TimeRule rule = eachStep(static_cast<int64_t>(at));
  replaceSizes(call, argument, sizes, at, rule);
  return rule;
}

TimeRule repeat(const RuleCall& call) {
  const size_t argument = call.indexOf("repeats");
  if (call.axis() < 0) return madeOfOne(call, argument);
  call.onlyFirst();
  if (call.anyLengths()) refuseLength(call);
  const std::vector<int64_t> times = call.ints("repeats");
  const auto at =
      static_cast<size_t>(call.axis()) + times.size() - static_cast<size_t>(call.rank());
  if (at >= times.size() || times[at] != 1) call.refuseAllOfTime();
  return eachStep(static_cast<int64_t>(at));
}

// A count that goes on with each step: start, start + step, … up to a length of time.
TimeRule arange(const RuleCall& call) {
  const size_t end = call.indexOf("end");
  onlyLengthsOf(call, end);
  if (call.lengths(end).size() != 1) refuseLength(call);
  const Length length = *call.lengths(end)[0];
  const IValue start = call.has("start") ? call.value("start") : IValue(int64_t{0});
  const IValue step = call.has("step") ? call.value("step") : IValue(int64_t{1});
  int64_t beyond = 0;
  if (!start.isInt() || !step.isInt() || step.toInt() < 1 || step.toInt() != length.factor ||
      __builtin_sub_overflow(length.offset, start.toInt(), &beyond) || beyond > 0 ||
      beyond <= -step.toInt()) {
    call.refuse("counts more or fewer numbers than there are steps, or not in whole ones");
  }
  TimeRule rule;
  rule.kind = TimeRule::Kind::Carry;
  rule.steps_of = length.of;
  return rule;
}

TimeRule slice(const RuleCall& call) {
  call.onlyFirst();
  const size_t end_at = call.indexOf("end");
  onlyLengthsOf(call, end_at);
  const LengthList& lengths = call.lengths(end_at);
  TimeRule rule = eachStep(call.axis());
  const IValue& start = call.value("start");
  const IValue& end = call.value("end");
  if (call.dimension("dim") != call.axis()) {
    if (!lengths.empty()) refuseLength(call);
    return rule;
  }
  rule.before = start.isNone() ? 0 : start.toInt();
  if (!lengths.empty()) {
    rule.kind = TimeRule::Kind::Limit;
    rule.steps_of = lengths[0]->of;
    if (!lengths[0]->isPlain() || rule.before != 0 || call.value("step").toInt() != 1) {
      refuseLength(call);
    }
    return rule;
  }
  rule.kind = TimeRule::Kind::Cut;
  const int64_t last = end.isNone() ? std::numeric_limits<int64_t>::max() : end.toInt();
  const bool to_end = last == std::numeric_limits<int64_t>::max();
  // Written so that the least number does not overflow.
  if (rule.before < 0 || rule.before > kMostSteps ||
      (!to_end && (last >= 0 || last < -kMostSteps)) || call.value("step").toInt() != 1) {
    call.refuse("cuts time elsewhere than some steps off its beginning and end");
  }
  rule.behind = to_end ? 0 : -last;
  return rule;
}

}  // namespace

void addLengthRules(RuleMap& map) {
  const auto add = [&](std::initializer_list<const char*> names,
                       std::function<TimeRule(const RuleCall&)> rule) {
    for (const char* name : names) map.emplace(name, OperatorRule{rule, true});
  };
  add({"aten::view"}, view("size"));
  add({"aten::reshape"}, view("shape"));
  add({"aten::expand"}, expand);
  add({"aten::repeat"}, repeat);
  add({"aten::zeros", "aten::ones", "aten::full", "aten::new_zeros", "aten::new_ones",
       "aten::new_full"},
      makes);
  add({"aten::arange"}, arange);
  add({"aten::slice"}, slice);
}

}  // namespace wick::streams
