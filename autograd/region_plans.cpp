#include "autograd/region_plans.h"

#include <algorithm>

#include "autograd/tape.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"

namespace wick::autograd {

namespace {

// What calls that one plan may serve have in common, as words; and of a call its numbers.
struct Call {
  std::vector<int64_t> key, numbers;
  uint64_t leaves = 0;
};
Call describe(const IValue* arguments, size_t n, uint64_t mask) {
  Call call;
  call.key.push_back(static_cast<int64_t>(mask));
  for (size_t i = 0; i < n; ++i) {
    const IValue& a = arguments[i];
    call.key.push_back(static_cast<int64_t>(a.tag()));
    if (a.isTensor()) {
      const Tensor t = a.toTensor();
      call.key.push_back(static_cast<int64_t>(t.dtype()));
      call.key.push_back(t.dim());
      call.numbers.insert(call.numbers.end(), t.sizes().begin(), t.sizes().end());
      if ((mask >> i & 1) != 0 && isLeaf(t)) call.leaves |= uint64_t{1} << i;
    } else if (a.isInt()) {
      call.numbers.push_back(a.toInt());
    } else if (a.isBool()) {
      call.key.push_back(a.toBool() ? 1 : 0);
    }
  }
  call.key.push_back(static_cast<int64_t>(call.leaves));
  return call;
}

}  // namespace

// Of these numbers alone, but for that of the iteration.
SizePattern RegionPlans::patternOf(const std::vector<int64_t>& numbers) const {
  SizePattern exactly(numbers);
  if (!carried_) return exactly;
  std::vector<int64_t> later = numbers;
  later.at(0) = numbers[0] == 0 ? 1 : 0;
  return exactly.with(later);
}

std::shared_ptr<const RegionPlan> RegionPlans::planFor(const IValue* arguments, size_t n,
                                                       uint64_t mask) {
  const Call call = describe(arguments, n, mask);
  std::lock_guard lock(mutex_);
  const auto known =
      std::ranges::find_if(kinds_, [&](const Kind& kind) { return kind.key == call.key; });
  if (known != kinds_.end()) {
    for (const Entry& e : known->entries) {
      if (e.sizes.serves(call.numbers)) return e.plan;
    }
  }
  std::vector<RegionPlan::Input> inputs(n);
  for (size_t i = 0; i < n; ++i) {
    if (arguments[i].isTensor()) {
      const Tensor t = arguments[i].toTensor();
      inputs[i] = {t.dtype(), DimVector(t.sizes()), std::nullopt};
    } else if (arguments[i].isInt() || arguments[i].isBool()) {
      inputs[i].value = arguments[i];
    }
  }
  const SizePattern exactly = patternOf(call.numbers);
  const auto make = [&](const SizePattern& sizes) {
    return RegionPlan::make(*body_, inputs, sizes, mask, call.leaves, writes_, carried_);
  };
  if (known == kinds_.end()) {
    // Programs that meet more at one place run the others on the tape: each plan is code.
    constexpr size_t kMostKinds = 16;
    if (kinds_.size() == kMostKinds) return nullptr;
    kinds_.push_back({call.key, exactly, {{exactly, make(exactly)}}});
    return kinds_.back().entries.back().plan;
  }
  Kind& kind = *known;
  if (kind.generalizes) {
    kind.met = kind.met.with(call.numbers);
    std::shared_ptr<const RegionPlan> plan = make(kind.met);
    if (plan) {
      // It also serves what the last one did.
      kind.entries.resize(1, kind.entries.front());
      kind.entries.push_back({kind.met, plan});
      return plan;
    }
    kind.generalizes = false;
  }
  constexpr size_t kMostSizes = 8;
  if (kind.entries.size() == kMostSizes) return nullptr;
  kind.entries.push_back({exactly, make(exactly)});
  return kind.entries.back().plan;
}

IValue resultOf(const RegionPlan& plan, const IValue* arguments, const std::vector<IValue>& all,
                size_t i) {
  const std::optional<RegionPlan::Same>& same = plan.sameAs(i);
  if (!same) return all[i];
  return same->argument ? arguments[same->index] : all[same->index];
}

IValue runFunction(GraphFunction& function, std::vector<IValue> arguments) {
  const Code& code = GraphExecutor::of(function).codeFor(arguments);
  return runCodeWithin(code, std::move(arguments));
}

}  // namespace wick::autograd
