// CUDA devices: contexts, streams, memory, and what went wrong in queued work.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/error_types.h"
#include "core/tensor.h"
#include "runtime/cuda/allocator.h"
#include "runtime/cuda/driver.h"

namespace wick::cuda {

struct DeviceFacts {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int shared_memory = 0;  // bytes that a block may have at most
  size_t memory = 0;
};

// One device. Lives as long as the process.
class CudaDevice {
 public:
  int index() const { return index_; }
  const DeviceFacts& facts() const { return facts_; }
  Allocator& allocator() { return allocator_; }
  Context context() const { return context_; }

  // A word of the CPU's memory that kernels can write: the number of what they found wrong.
  Address flagAddress() const { return reinterpret_cast<Address>(flag_); }
  // A number, not 0, that stands for this text in the flag. Thread-safe.
  int64_t complaint(const std::string& text);

  // A stream that programs may use: the next of a few that are made when they are first asked for
  // and stay. `urgent`: its kernels go before those of others. Such a stream and the one that all
  // threads share wait for each other, in the order in which work is queued. Thread-safe.
  struct PooledStream {
    Stream stream;
    int64_t number;  // from 1 on
  };
  PooledStream nextStream(bool urgent);
  // 0 for streams that are none of these.
  int64_t numberOf(Stream stream);

  // Waits for the thread's stream, or for the whole device. Throws what went wrong.
  void synchronize(Stream stream);
  void synchronizeAll();

  // Not for users: deviceAt() makes them.
  explicit CudaDevice(int index);

 private:
  void throwComplaints();
  const int index_;
  DeviceFacts facts_;
  Context context_ = nullptr;
  Allocator allocator_;
  volatile int64_t* flag_ = nullptr;
  std::mutex mutex_;
  std::vector<std::string> complaints_;
  static constexpr size_t kPooled = 32;  // of each priority, as PyTorch has
  std::array<std::array<Stream, kPooled>, 2> streams_{};
  std::array<size_t, 2> streams_given_{};
};

// Devices beyond these are not used.
inline constexpr int kMostDevices = 16;

inline Device deviceOf(int index) {
  return {DeviceType::CUDA, static_cast<int8_t>(index)};
}

// 0 when there is no driver or no device. Never throws.
int deviceCount();
// Why there is no device; empty when there is one.
std::string whyNoDevice();
// Throws RuntimeError when there is no such device.
CudaDevice& deviceAt(int index);

// The thread's device, and its stream of a device: at first the one that all threads share.
int currentDevice();
void setCurrentDevice(int index);
Stream currentStream(int device);
void setCurrentStream(int device, Stream stream);
// Of the device that the thread entered last.
Stream currentStream();
// The same two for the allocator alone, which queues nothing: kernels that wait to be launched together
// go on waiting (runtime/cuda/joint_launches.h).
Stream streamForMemory(int device);
Stream streamForMemory();

class CapturedPieces;

// What is queued on the thread's stream while this lives is not done but noted by the driver, to be
// repeated later (runtime/cuda/call_graphs.h). The stream is no other thread's.
class Capture {
 public:
  Capture(CudaDevice& device, Stream stream);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Ends it. The caller destroys the graph; null when the driver could not note something.
  Graph end();
  // The calling thread's; null where it captures nothing.
  static Capture* current();
  int device() const { return device_; }
  // Bytes of the CPU's that are the same whenever the work is repeated: they are copied to the device
  // now, and from there to `to` each time. Throws CaptureRefused for many.
  void copyConstant(Address to, const void* from, size_t bytes);
  // What the graph reads of these: to be kept as long as it.
  std::vector<Tensor> takeConstants() { return std::move(constants_); }
  // What is known of the work so far.
  CapturedPieces& pieces() { return *pieces_; }

 private:
  static constexpr size_t kMostConstants = size_t{32} << 20;  // bytes

  const int device_;
  const Stream stream_;
  const Stream before_;
  friend class OutsideCapture;
  bool open_ = true;
  std::vector<Tensor> constants_;
  size_t constant_bytes_ = 0;
  std::unique_ptr<CapturedPieces> pieces_;
};
// While it lives, what the calling thread queues is no part of what it captures, but done by the end, on
// the stream from before: for what is kept and used by other work, too. Nothing where it captures nothing.
class OutsideCapture {
 public:
  OutsideCapture();
  ~OutsideCapture();
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  Capture* const capture_;
  Stream captured_ = nullptr;
};
// Thrown where the calling thread captures, by what cannot be repeated.
class CaptureRefused : public Error {
 public:
  using Error::Error;
};
void refuseWhileCapturing(const char* what);
bool isCapturing();

// Makes the device's context the thread's, and gives the device.
CudaDevice& enter(Device device);

// For messages about work that fails later: what the thread launched last.
void noteLaunch(const char* name);

}  // namespace wick::cuda
