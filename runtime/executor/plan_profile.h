// PlanProfile: what runs of a plan saw, and the ways out of its optimized Code.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "passes/bail_outs.h"
#include "runtime/executor/tensor_key.h"
#include "runtime/interpreter/code.h"

namespace wick {

// Joins what all runs saw. Thread-safe.
class PlanProfile {
 public:
  explicit PlanProfile(size_t num_values);
  void observe(size_t value, const IValue& seen);
  void finishRun() { finished_.fetch_add(1, std::memory_order_release); }
  size_t finishedRuns() const { return finished_.load(std::memory_order_acquire); }
  // The type that fits all that was seen of the value; null when that is no more than is declared,
  // or nothing was seen.
  TypePtr typeOf(size_t value, const TypePtr& declared) const;

 private:
  std::vector<std::atomic<uint64_t>> keys_;
  std::atomic<size_t> finished_{0};
};

// For Code that profiles.
class Profiling : public Speculation {
 public:
  explicit Profiling(std::shared_ptr<PlanProfile> profile) : profile_(std::move(profile)) {}
  void observe(size_t value, const IValue& seen) override { profile_->observe(value, seen); }
  void finishRun() override { profile_->finishRun(); }
  const Code& leave(const GuardSite& site, std::span<const IValue> values) override;

 private:
  std::shared_ptr<PlanProfile> profile_;
};

// For Code with bail-outs. What makes one leave is added to the profile.
class BailOuts : public Speculation {
 public:
  // Sets `too_many` when kMaxBailOuts of ExecutionPlan have been taken.
  BailOuts(std::shared_ptr<const BailOutPoints> points, std::string name,
           std::shared_ptr<PlanProfile> profile, std::atomic<bool>& too_many);
  void observe(size_t, const IValue&) override {}
  void finishRun() override {}
  const Code& leave(const GuardSite& site, std::span<const IValue> values) override;
  size_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<const BailOutPoints> points_;
  std::string name_;
  std::shared_ptr<PlanProfile> profile_;
  std::atomic<bool>& too_many_;
  std::atomic<size_t> taken_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Code>> codes_;  // by point; null until needed
};

}  // namespace wick
