// The plans of one place in a program, by what its calls are like.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "autograd/region_plan.h"

namespace wick::autograd {

// Thread-safe.
class RegionPlans {
 public:
  // `carried`: see RegionPlan::make(). The number of the iteration may be any.
  RegionPlans(std::shared_ptr<const Graph> body, const RegionPlan::Writes& writes,
              std::optional<size_t> carried = std::nullopt)
      : body_(std::move(body)), writes_(writes), carried_(carried) {}
  // Bit i of `mask`: argument i needs a gradient. Null when there is none for these arguments.
  std::shared_ptr<const RegionPlan> planFor(const IValue* arguments, size_t n, uint64_t mask);

 private:
  SizePattern patternOf(const std::vector<int64_t>& numbers) const;
  struct Entry {
    SizePattern sizes;
    std::shared_ptr<const RegionPlan> plan;  // null: there is none
  };
  // The plans for calls of one key: for the sizes of the first, and for all that came since. Where
  // there is none for all, for the sizes of some.
  struct Kind {
    std::vector<int64_t> key;
    SizePattern met;
    std::vector<Entry> entries;
    bool generalizes = true;
  };

  const std::shared_ptr<const Graph> body_;
  const RegionPlan::Writes writes_;
  const std::optional<size_t> carried_;
  std::mutex mutex_;
  std::vector<Kind> kinds_;
};

// Result i of a call from all that forward() gave: an argument that is handed on comes with its
// history.
IValue resultOf(const RegionPlan& plan, const IValue* arguments, const std::vector<IValue>& all,
                size_t i);

// Runs a function of a plan.
IValue runFunction(GraphFunction& function, std::vector<IValue> arguments);

}  // namespace wick::autograd
