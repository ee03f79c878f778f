#include "runtime/cuda/activities.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "runtime/cuda/cupti.h"
#include "runtime/cuda/library.h"

namespace wick::cuda {

namespace {

using cupti::CallRecord;
using cupti::CopyRecord;
using cupti::FillRecord;
using cupti::KernelRecord;

// As the library has them.
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, device) == 40);
static_assert(offsetof(KernelRecord, correlation) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(CopyRecord, bytes) == 8 && offsetof(CopyRecord, correlation) == 44);
static_assert(offsetof(FillRecord, bytes) == 8 && offsetof(FillRecord, correlation) == 44);
static_assert(offsetof(CallRecord, start) == 8 && offsetof(CallRecord, correlation) == 32);

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                  "../extras/CUPTI/lib64/libcupti.so"};
constexpr uint32_t kKinds[] = {cupti::kKernel, cupti::kCopy, cupti::kFill, cupti::kDriverCall,
                               cupti::kRuntimeCall};
constexpr size_t kBufferBytes = size_t{4} << 20;
// Records of each sort: hundreds of megabytes.
constexpr size_t kMostRecords = 1'000'000;

void find(const Library& library, Cupti& functions){WICK_FORALL_CUPTI_FUNCTIONS(WICK_FIND_FUNCTION)}

std::atomic<const Cupti*> replacement{nullptr};

void checkCupti(Result result, const char* what) {
  if (result == 0) return;
  const char* text = nullptr;
  cuptiLibrary().resultText(result, &text);
  WICK_CHECK(false, "CUDA: {} failed: CUPTI says {} (error {})", what, text ? text : "nothing",
             result);
}

struct Call {
  uint64_t start;
  uint32_t thread;
};
// What the library's callbacks, which have no argument of the caller's, write to.
struct Records {
  std::mutex mutex;
  bool taken = false;
  std::vector<Activity> activities;
  std::vector<uint32_t> correlations;        // of each activity
  std::unordered_map<uint32_t, Call> calls;  // by correlation
  uint64_t left_out = 0;
};
Records& records() {
  static auto& made = *new Records;  // callbacks may come while the process ends
  return made;
}

const char* nameOfCopy(uint8_t kind) {
  switch (kind) {
    case 1:
      return "copy to device";
    case 2:
      return "copy from device";
    case 8:
      return "copy on device";
    case 10:
      return "copy between devices";
    default:
      return "copy";
  }
}

// Times stay the library's until the end.
Activity::Time timeOf(uint64_t nanoseconds) {
  return Activity::Time(std::chrono::nanoseconds(nanoseconds));
}
template <class Record>
void note(Records& to, Activity::Kind kind, std::string name, const Record& record, int64_t bytes) {
  if (to.activities.size() >= kMostRecords) {
    ++to.left_out;
    return;
  }
  Activity made;
  made.kind = kind;
  made.name = std::move(name);
  made.device = record.device;
  made.stream = record.stream;
  made.bytes = bytes;
  made.begin = timeOf(record.start);
  made.end = timeOf(std::max(record.start, record.end));
  to.activities.push_back(std::move(made));
  to.correlations.push_back(record.correlation);
}
void note(Records& to, const uint32_t* record) {
  switch (*record) {
    case cupti::kKernel: {
      const auto& kernel = *reinterpret_cast<const KernelRecord*>(record);
      return note(to, Activity::Kind::Kernel, kernel.name ? kernel.name : "?", kernel, 0);
    }
    case cupti::kCopy: {
      const auto& copy = *reinterpret_cast<const CopyRecord*>(record);
      return note(to, Activity::Kind::Copy, nameOfCopy(copy.copy_kind), copy,
                  static_cast<int64_t>(copy.bytes));
    }
    case cupti::kFill: {
      const auto& fill = *reinterpret_cast<const FillRecord*>(record);
      return note(to, Activity::Kind::Fill, "fill", fill, static_cast<int64_t>(fill.bytes));
    }
    case cupti::kDriverCall:
    case cupti::kRuntimeCall: {
      const auto& call = *reinterpret_cast<const CallRecord*>(record);
      if (to.calls.size() < kMostRecords) {
        to.calls.try_emplace(call.correlation, Call{call.start, call.thread});
      }
      return;
    }
    default:
      return;
  }
}

void giveBuffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}
void takeBuffer(Context, uint32_t, uint8_t* buffer, size_t, size_t valid_size) {
  {
    Records& to = records();
    std::lock_guard lock(to.mutex);
    uint32_t* record = nullptr;
    try {
      while (to.taken && cuptiLibrary().nextRecord(buffer, valid_size, &record) == 0) {
        note(to, record);
      }
    } catch (const std::bad_alloc&) {
      ++to.left_out;  // nothing may be thrown into the library
    }
  }
  std::free(buffer);
}

int64_t steadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

const Cupti& cuptiLibrary() {
  if (const Cupti* fake = replacement.load(std::memory_order_acquire)) return *fake;
  static const auto& found = *new LibraryFunctions<Cupti>(kNames, find);
  return found.get();
}
void setCupti(const Cupti* functions) {
  replacement.store(functions, std::memory_order_release);
}

ActivityRecording::ActivityRecording() {
  const Cupti& library = cuptiLibrary();
  Records& to = records();
  {
    std::lock_guard lock(to.mutex);
    WICK_CHECK(!to.taken, "CUDA: the work of devices is being recorded already");
    checkCupti(library.registerCallbacks(giveBuffer, takeBuffer), "recording the work of devices");
    uint64_t now = 0;
    checkCupti(library.timestamp(&now), "reading the device's clock");
    clocks_differ_ = steadyNow() - static_cast<int64_t>(now);
    to.taken = true;
    to.activities.clear();
    to.correlations.clear();
    to.calls.clear();
    to.left_out = 0;
  }
  on_ = true;
  try {
    for (const uint32_t kind : kKinds) {
      checkCupti(library.enable(kind), "recording the work of devices");
    }
  } catch (...) {
    disable();
    throw;
  }
}

ActivityRecording::~ActivityRecording() {
  disable();
}

void ActivityRecording::disable() noexcept {
  if (!on_) return;
  on_ = false;
  const Cupti& library = cuptiLibrary();
  // Calls back with what there is, so the lock is not held.
  constexpr uint32_t kAlsoOpenOnes = 1;
  library.flush(kAlsoOpenOnes);
  for (const uint32_t kind : kKinds) library.disable(kind);
  Records& to = records();
  std::lock_guard lock(to.mutex);
  to.taken = false;
}

std::vector<Activity> ActivityRecording::end() {
  disable();
  Records& from = records();
  std::lock_guard lock(from.mutex);
  left_out_ = from.left_out;
  const auto shift = std::chrono::nanoseconds(clocks_differ_);
  for (size_t i = 0; i < from.activities.size(); ++i) {
    Activity& activity = from.activities[i];
    activity.begin += shift;
    activity.end += shift;
    const auto call = from.calls.find(from.correlations[i]);
    if (call == from.calls.end()) continue;
    activity.is_queued = true;
    activity.queued = timeOf(call->second.start) + shift;
    activity.thread = call->second.thread;
  }
  std::ranges::stable_sort(from.activities, {}, &Activity::begin);
  from.correlations.clear();
  from.calls.clear();
  return std::exchange(from.activities, {});
}

}  // namespace wick::cuda
