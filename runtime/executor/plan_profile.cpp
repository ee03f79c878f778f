#include "runtime/executor/plan_profile.h"

#include "core/error.h"
#include "passes/pipeline.h"
#include "runtime/executor/execution_plan.h"

namespace wick {

namespace {
// No key: its highest byte is zero.
constexpr uint64_t kUnseen = ~uint64_t{0};
}  // namespace

PlanProfile::PlanProfile(size_t num_values) : keys_(num_values) {
  for (auto& key : keys_) key.store(kUnseen, std::memory_order_relaxed);
}

void PlanProfile::observe(size_t value, const IValue& seen) {
  std::atomic<uint64_t>& key = keys_.at(value);
  TensorKey now = TensorKey::of(seen);
  uint64_t before = key.load(std::memory_order_relaxed);
  uint64_t joined;
  do {
    joined = before == kUnseen ? now.bits() : join(TensorKey::fromBits(before), now).bits();
  } while (joined != before && !key.compare_exchange_weak(before, joined));
}

TypePtr PlanProfile::typeOf(size_t value, const TypePtr& declared) const {
  uint64_t bits = keys_.at(value).load(std::memory_order_relaxed);
  if (bits == kUnseen) return nullptr;
  TypePtr type = TensorKey::fromBits(bits).refine(declared);
  return sameType(type, declared) ? nullptr : type;
}

const Code& Profiling::leave(const GuardSite&, std::span<const IValue>) {
  WICK_ASSERT(false, "code that profiles has no guards");
}

BailOuts::BailOuts(std::shared_ptr<const BailOutPoints> points, std::string name,
                   std::shared_ptr<PlanProfile> profile, std::atomic<bool>& too_many)
    : points_(std::move(points)),
      name_(std::move(name)),
      profile_(std::move(profile)),
      too_many_(too_many),
      codes_(points_->points.size()) {}

const Code& BailOuts::leave(const GuardSite& site, std::span<const IValue> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    profile_->observe(site.expected.at(i).profile, values[i]);
  }
  if (taken_.fetch_add(1, std::memory_order_relaxed) + 1 >= ExecutionPlan::kMaxBailOuts) {
    too_many_.store(true, std::memory_order_relaxed);
  }
  std::lock_guard lock(mutex_);
  std::shared_ptr<const Code>& code = codes_.at(site.point);
  if (!code) {
    std::shared_ptr<Graph> rest = continuationAt(*points_, site.point);
    runPipeline(*rest);
    code = Code::build(std::move(rest), name_);
  }
  return *code;
}

}  // namespace wick
