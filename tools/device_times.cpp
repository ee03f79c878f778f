#include "tools/device_times.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "core/device_backend.h"
#include "core/error_types.h"
#include "runtime/cuda/activities.h"
#include "runtime/cuda/device.h"
#include "tools/timing.h"

namespace wick::cli {
namespace {

using Time = std::chrono::steady_clock::time_point;
constexpr size_t kMostCalls = 2'000'000;
constexpr size_t kMostEvents = 100'000;  // the driver holds each of them

// Of kernels of C++, without types and parameters, which fill lines.
std::string shortName(const std::string& name) {
  int status = 0;
  char* const plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string text = status == 0 && plain ? plain : name;
  std::free(plain);
  if (text.starts_with("void ")) text.erase(0, 5);
  const size_t end = text.find_first_of("<(");
  if (end != std::string::npos && end > 0) text.resize(end);
  return text;
}

// Which call queued what is known by the thread and the time.
class ByActivities : public DeviceTimes {
 public:
  void called(const OperatorCall& call) override {
    const auto thread = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pthread_self()));
    std::lock_guard lock(mutex_);
    if (calls_ >= kMostCalls) return;
    ++calls_;
    by_thread_[thread].push_back({call.begin, call.end, &call.node});
  }

  void end() override {
    activities_ = recording_.end();
    // Calls are told when they end, so an inner one comes before the one around it.
    for (auto& [thread, calls] : by_thread_) {
      std::ranges::stable_sort(calls, {}, &Span::begin);
    }
    for (const cuda::Activity& activity : activities_) {
      const double us = microseconds(activity.end - activity.begin);
      DeviceRow& row = rows_[activity.name];
      ++row.calls;
      row.us += us;
      row.bytes += activity.bytes;
      all_us_ += us;
      const Node* const node = activity.is_queued ? callerOf(activity) : nullptr;
      if (node) us_[node] += us;
      if (!node) other_us_ += us;
    }
  }
  double usOf(const Node* node) const override {
    const auto it = us_.find(node);
    return it == us_.end() ? 0 : it->second;
  }
  std::vector<DeviceRow> rows() const override {
    std::map<std::string, DeviceRow> merged;
    for (const auto& [name, row] : rows_) {
      DeviceRow& to = merged[shortName(name)];
      to.calls += row.calls;
      to.us += row.us;
      to.bytes += row.bytes;
    }
    std::vector<DeviceRow> sorted;
    for (auto& [name, row] : merged) {
      sorted.push_back(row);
      sorted.back().name = name;
    }
    std::ranges::stable_sort(sorted, std::greater<>(), &DeviceRow::us);
    return sorted;
  }
  std::vector<DeviceSpan> spans() const override {
    std::vector<DeviceSpan> all;
    for (const cuda::Activity& a : activities_) {
      all.push_back({shortName(a.name), a.device, a.stream, a.begin, a.end});
    }
    return all;
  }
  std::string note() const override {
    std::string text = fmt::format("the device worked for {:.1f} us", all_us_);
    if (other_us_ > 0) text += fmt::format(", {:.1f} us of that for no operator", other_us_);
    if (const uint64_t lost = recording_.leftOut(); lost > 0) {
      text += fmt::format("; {} kernels and copies are left out", lost);
    }
    return text;
  }

 private:
  struct Span {
    Time begin, end;
    const Node* node;
  };
  // The innermost call around the time: the last to begin of those that had not ended.
  const Node* callerOf(const cuda::Activity& activity) const {
    const auto calls = by_thread_.find(activity.thread);
    if (calls == by_thread_.end()) return nullptr;
    auto it = std::ranges::upper_bound(calls->second, activity.queued, {}, &Span::begin);
    // Calls within calls are few.
    for (int i = 0; i < 64 && it != calls->second.begin(); ++i) {
      --it;
      if (activity.queued <= it->end) return it->node;
    }
    return nullptr;
  }

  cuda::ActivityRecording recording_;
  std::mutex mutex_;
  size_t calls_ = 0;
  std::unordered_map<uint32_t, std::vector<Span>> by_thread_;
  std::vector<cuda::Activity> activities_;
  std::unordered_map<const Node*, double> us_;
  std::map<std::string, DeviceRow> rows_;
  double all_us_ = 0, other_us_ = 0;
};

class ByEvents : public DeviceTimes {
 public:
  ByEvents(Device device, std::string why) : device_(device), why_(std::move(why)) {
    cuda::enter(device_);
    last_ = record();
  }
  ~ByEvents() override {
    for (const Mark& mark : marks_) cuda::driver().destroyEvent(mark.event);
    cuda::driver().destroyEvent(last_);
  }

  void called(const OperatorCall& call) override {
    std::lock_guard lock(mutex_);
    if (marks_.size() >= kMostEvents) {
      ++left_out_;
      return;
    }
    try {
      cuda::enter(device_);
      marks_.push_back({&call.node, record()});
    } catch (const Error&) {
      // The run itself meets what is wrong with the device.
    }
  }
  void end() override {
    deviceBackend(DeviceType::CUDA).synchronize(device_);
    cuda::Event before = last_;
    for (const Mark& mark : marks_) {
      float milliseconds = 0;
      const cuda::Result result = cuda::driver().elapsedTime(&milliseconds, before, mark.event);
      cuda::check(result, "reading the time between events");
      us_[mark.node] += 1e3 * static_cast<double>(milliseconds);
      before = mark.event;
    }
  }
  double usOf(const Node* node) const override {
    const auto it = us_.find(node);
    return it == us_.end() ? 0 : it->second;
  }
  std::vector<DeviceRow> rows() const override { return {}; }
  std::vector<DeviceSpan> spans() const override { return {}; }
  std::string note() const override {
    return "the device's times are from the end of one call's work to the end of the next one's, "
           "waits included: " +
           why_ + (left_out_ > 0 ? fmt::format("; the last {} calls are left out", left_out_) : "");
  }

 private:
  struct Mark {
    const Node* node;
    cuda::Event event;
  };
  cuda::Event record() {
    cuda::Event event = nullptr;
    cuda::check(cuda::driver().createEvent(&event, 0), "making an event");
    const cuda::Result result = cuda::driver().recordEvent(event, cuda::currentStream());
    if (result != 0) cuda::driver().destroyEvent(event);
    cuda::check(result, "recording an event");
    return event;
  }

  const Device device_;
  const std::string why_;
  std::mutex mutex_;
  cuda::Event last_ = nullptr;
  std::vector<Mark> marks_;
  size_t left_out_ = 0;
  std::unordered_map<const Node*, double> us_;
};

}  // namespace

std::unique_ptr<DeviceTimes> DeviceTimes::make(Device device) {
  if (!device.isCuda()) return nullptr;
  try {
    return std::make_unique<ByActivities>();
  } catch (const Error& e) {
    return std::make_unique<ByEvents>(placeOf(device), e.what());
  }
}

}  // namespace wick::cli
