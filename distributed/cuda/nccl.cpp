// Reductions run on a stream of their own, beside what the program computes: it waits for the numbers,
// and who asks for the result waits for it. So the exchange of a gradient goes on while the walk back
// queues what computes the others.
#include "distributed/cuda/nccl.h"

#include <mutex>

#include "core/error.h"
#include "distributed/device_reducer.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/library.h"

namespace wick::distributed {

namespace {

// ncclResult_t
constexpr int kSuccess = 0, kInProgress = 7;
// ncclRedOp_t
constexpr int kSum = 0, kMax = 2, kMin = 3, kMean = 4;
// CU_STREAM_NON_BLOCKING: not held up by the stream that all threads share; CU_EVENT_DISABLE_TIMING.
constexpr unsigned kUnblocked = 1, kUntimed = 2;

const NcclFunctions* replaced = nullptr;

const NcclFunctions& nccl() {
  if (replaced) return *replaced;
  static constexpr const char* kNames[] = {"libnccl.so.2", "libnccl.so"};
  static const auto& found = *new cuda::LibraryFunctions<NcclFunctions>(
      kNames, [](const cuda::Library& library, NcclFunctions& f) {
        library.find("ncclGetUniqueId", f.get_id);
        library.find("ncclCommInitRank", f.init_rank);
        library.find("ncclAllReduce", f.all_reduce);
        library.find("ncclCommGetAsyncError", f.async_error);
        library.find("ncclCommDestroy", f.destroy);
        library.find("ncclGetErrorString", f.error_text);
      });
  return found.get();
}

void check(int result, const char* call) {
  WICK_CHECK(result == kSuccess, "NCCL: {} failed: {}", call, nccl().error_text(result));
}

// ncclDataType_t, and how many numbers of it an element has.
struct Carried {
  int dtype;
  int64_t parts = 1;
};
Carried carriedAs(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return {1};
    case DType::Int:
      return {2};
    case DType::Long:
      return {4};
    case DType::Float:
      return {7};
    case DType::Double:
      return {8};
    case DType::ComplexFloat:
      return {7, 2};
    case DType::ComplexDouble:
      return {8, 2};
    default:
      throwRuntimeError("NCCL: {} is not carried", toString(dtype));
  }
}

class Event {
 public:
  Event() { cuda::check(cuda::driver().createEvent(&event_, kUntimed), "making an event"); }
  ~Event() { cuda::driver().destroyEvent(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cuda::Stream stream) const {
    cuda::check(cuda::driver().recordEvent(event_, stream), "recording an event");
  }
  void holdUp(cuda::Stream stream) const {
    cuda::check(cuda::driver().waitForEvent(stream, event_, 0), "waiting for an event");
  }
  void wait() const { cuda::driver().synchronizeEvent(event_); }

 private:
  cuda::Event event_ = nullptr;
};

class NcclWork : public DeviceReducer::Work {
 public:
  explicit NcclWork(const Tensor& numbers) : numbers(numbers) {}
  ~NcclWork() override {
    if (queued && !ended) done.wait();
  }
  const Tensor numbers;
  Event ready, done;
  bool queued = false, ended = false;
};

class NcclReducer : public DeviceReducer {
 public:
  NcclReducer(Transport& transport, Device device) : device_(device) {
    NcclId id{};
    if (transport.rank() == 0) check(nccl().get_id(&id), "ncclGetUniqueId");
    transport.broadcast(&id, sizeof id, 0);
    cuda::enter(device_);
    check(nccl().init_rank(&communicator_, transport.size(), id, transport.rank()),
          "ncclCommInitRank");
    cuda::check(cuda::driver().createStream(&stream_, kUnblocked), "making a stream");
  }
  ~NcclReducer() override {
    try {
      cuda::enter(device_);
    } catch (const Error&) {
      return;
    }
    // At the process's end the driver may be gone already, and all of this with it.
    if (cuda::driver().synchronizeStream(stream_) != 0) return;
    nccl().destroy(communicator_);
    cuda::driver().destroyStream(stream_);
  }

  std::unique_ptr<Work> begin(const Tensor& numbers, Reduction reduction, bool mean) override {
    cuda::refuseWhileCapturing("a reduction over processes");
    const std::lock_guard lock(mutex_);
    cuda::enter(device_);
    int status = kSuccess;
    check(nccl().async_error(communicator_, &status), "ncclCommGetAsyncError");
    if (status != kInProgress) check(status, "a reduction before this one");
    const Carried carried = carriedAs(numbers.dtype());
    const int op = mean                          ? kMean
                   : reduction == Reduction::Sum ? kSum
                   : reduction == Reduction::Max ? kMax
                                                 : kMin;
    auto work = std::make_unique<NcclWork>(numbers);
    work->ready.record(cuda::currentStream(device_.index));
    work->ready.holdUp(stream_);
    if (numbers.numel() > 0) {
      void* const at = numbers.rawData();
      check(nccl().all_reduce(at, at, static_cast<size_t>(numbers.numel() * carried.parts),
                              carried.dtype, op, communicator_, stream_),
            "ncclAllReduce");
    }
    work->done.record(stream_);
    work->queued = true;
    return work;
  }
  void end(Work& work) override {
    cuda::refuseWhileCapturing("a reduction over processes");
    auto& ours = static_cast<NcclWork&>(work);
    cuda::enter(device_);
    ours.done.holdUp(cuda::currentStream(device_.index));
    ours.ended = true;
  }

 private:
  const Device device_;
  std::mutex mutex_;
  void* communicator_ = nullptr;
  cuda::Stream stream_ = nullptr;
};

const struct Registration {
  Registration() {
    setDeviceReducer(DeviceType::CUDA, [](Device device) -> JoinDevices {
      nccl();  // or says why not
      return [device](Transport& transport) {
        return std::make_unique<NcclReducer>(transport, device);
      };
    });
  }
} registration;

}  // namespace

void setNcclFunctions(const NcclFunctions* functions) {
  replaced = functions;
}

}  // namespace wick::distributed
