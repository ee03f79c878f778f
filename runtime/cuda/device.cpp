#include "runtime/cuda/device.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/error.h"
#include "runtime/cuda/captured_pieces.h"
#include "runtime/cuda/joint_launches.h"

namespace wick::cuda {

namespace {

struct ThreadState {
  int device = 0;
  std::array<Stream, kMostDevices> streams{};
  int entered = -1;  // whose context the thread has
  uint64_t generation = 0;
  const char* launched = nullptr;
  Capture* capture = nullptr;
};
thread_local ThreadState thread_state;

struct Devices {
  std::mutex mutex;
  uint64_t generation = 0;
  std::vector<std::unique_ptr<CudaDevice>> made;
};
Devices& devices() {
  static Devices* all = new Devices;  // storages may be freed while the process ends
  return *all;
}

}  // namespace

CudaDevice::CudaDevice(int index) : index_(index) {
  const Driver& d = driver();
  std::array<char, 256> name{};
  check(d.deviceName(name.data(), static_cast<int>(name.size()) - 1, index), "asking for a device");
  facts_.name = name.data();
  const auto attribute = [&](int which) {
    int value = 0;
    check(d.deviceAttribute(&value, which, index), "asking for a device");
    return value;
  };
  facts_.major = attribute(kMajor);
  facts_.minor = attribute(kMinor);
  facts_.multiprocessors = std::max(1, attribute(kMultiprocessors));
  facts_.threads_per_multiprocessor = std::max(256, attribute(kThreadsPerMultiprocessor));
  facts_.shared_memory = attribute(kMaxSharedPerBlock);
  check(d.deviceMemory(&facts_.memory, index), "asking for a device");
  check(d.retainContext(&context_, index), "making a context");
  check(d.setContext(context_), "making a context");
  void* word = nullptr;
  constexpr unsigned kPortableAndMapped = 3;
  check(d.allocateHost(&word, sizeof(int64_t), kPortableAndMapped), "allocating pinned memory");
  flag_ = static_cast<volatile int64_t*>(word);
  *flag_ = 0;
  thread_state.entered = index;
}

int64_t CudaDevice::complaint(const std::string& text) {
  std::lock_guard lock(mutex_);
  const auto it = std::ranges::find(complaints_, text);
  if (it != complaints_.end()) return it - complaints_.begin() + 1;
  complaints_.push_back(text);
  return static_cast<int64_t>(complaints_.size());
}

CudaDevice::PooledStream CudaDevice::nextStream(bool urgent) {
  constexpr unsigned kWaitsForShared = 0;
  std::lock_guard lock(mutex_);
  const size_t at = streams_given_[urgent]++ % kPooled;
  Stream& stream = streams_[urgent][at];
  if (!stream) {
    check(driver().setContext(context_), "making a stream");
    thread_state.entered = index_;
    check(driver().createStreamWithPriority(&stream, kWaitsForShared, urgent ? -1 : 0),
          "making a stream");
  }
  return {stream, static_cast<int64_t>(2 * at + urgent + 1)};
}

int64_t CudaDevice::numberOf(Stream stream) {
  if (!stream) return 0;
  std::lock_guard lock(mutex_);
  for (size_t urgent = 0; urgent < 2; ++urgent) {
    const auto found = std::ranges::find(streams_[urgent], stream);
    if (found != streams_[urgent].end()) {
      return 2 * (found - streams_[urgent].begin()) + static_cast<int64_t>(urgent) + 1;
    }
  }
  return 0;
}

void CudaDevice::throwComplaints() {
  const int64_t found = *flag_;
  if (found == 0) return;
  *flag_ = 0;
  std::lock_guard lock(mutex_);
  const auto number = static_cast<size_t>(found);
  throw RuntimeError(number <= complaints_.size() ? complaints_[number - 1]
                                                  : "CUDA: a kernel found an unknown error",
                     "IndexError");
}

namespace {

void checkWork(Result result) {
  if (result == 0) return;
  char buffer[256];
  throwRuntimeError("CUDA error: {}{}{}", describeError(result, buffer, sizeof buffer),
                    thread_state.launched ? "; the last kernel that was launched is " : "",
                    thread_state.launched ? thread_state.launched : "");
}

}  // namespace

void CudaDevice::synchronize(Stream stream) {
  refuseWhileCapturing("waiting for the device");
  checkWork(driver().synchronizeStream(stream));
  throwComplaints();
}
void CudaDevice::synchronizeAll() {
  refuseWhileCapturing("waiting for the device");
  checkWork(driver().synchronizeContext());
  throwComplaints();
}

int deviceCount() {
  try {
    int count = 0;
    return driver().deviceCount(&count) == 0 ? std::min(count, kMostDevices) : 0;
  } catch (const RuntimeError&) {
    return 0;
  }
}

std::string whyNoDevice() {
  try {
    int count = 0;
    check(driver().deviceCount(&count), "counting devices");
    return count > 0 ? "" : "CUDA: the driver finds no device";
  } catch (const RuntimeError& e) {
    return e.brief();
  }
}

namespace {

// Returns the driver; without one there is no device either, which the error says first.
const Driver& driverFor(int index) {
  try {
    return driver();
  } catch (const RuntimeError& e) {
    throwRuntimeError("device cuda:{}: there are 0 such devices ({})", index, e.brief());
  }
}

}  // namespace

CudaDevice& deviceAt(int index) {
  Devices& all = devices();
  const Driver& d = driverFor(index);
  std::lock_guard lock(all.mutex);
  if (all.generation != driverGeneration()) {
    all.made.clear();
    all.generation = driverGeneration();
  }
  if (static_cast<size_t>(index) < all.made.size() && all.made[static_cast<size_t>(index)]) {
    return *all.made[static_cast<size_t>(index)];
  }
  int count = 0;
  check(d.deviceCount(&count), "counting devices");
  count = std::min(count, kMostDevices);
  WICK_CHECK(index >= 0 && index < count, "device cuda:{}: there {} {} such device{}", index,
             count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
  all.made.resize(static_cast<size_t>(count));
  auto& slot = all.made[static_cast<size_t>(index)];
  slot = std::make_unique<CudaDevice>(index);
  return *slot;
}

int currentDevice() {
  return thread_state.device;
}
void setCurrentDevice(int index) {
  deviceAt(index);
  thread_state.device = index;
}
Stream currentStream(int device) {
  // What is queued now goes behind what waits.
  if (JointLaunches* joint = JointLaunches::current()) [[unlikely]]
    joint->flush();
  if (Capture* capture = thread_state.capture) [[unlikely]]
    capture->pieces().joinAll();
  return streamForMemory(device);
}
Stream streamForMemory(int device) {
  return thread_state.streams[static_cast<size_t>(device)];
}
void setCurrentStream(int device, Stream stream) {
  thread_state.streams[static_cast<size_t>(device)] = stream;
}
Stream currentStream() {
  return currentStream(thread_state.entered < 0 ? thread_state.device : thread_state.entered);
}
Stream streamForMemory() {
  return streamForMemory(thread_state.entered < 0 ? thread_state.device : thread_state.entered);
}

Capture::Capture(CudaDevice& device, Stream stream)
    : device_(device.index()),
      stream_(stream),
      before_(currentStream(device_)),
      pieces_(std::make_unique<CapturedPieces>(device)) {
  enter(deviceOf(device_));
  check(driver().beginCapture(stream, kRelaxedCapture), "capturing a call");
  setCurrentStream(device_, stream);
  thread_state.capture = this;
}
Graph Capture::end() {
  if (!open_) return nullptr;
  open_ = false;
  bool whole = true;
  try {
    currentStream(device_);  // all branches end here
  } catch (const std::exception&) {
    whole = false;
  }
  thread_state.capture = nullptr;
  setCurrentStream(device_, before_);
  pieces_->freeDelayed();
  Graph graph = nullptr;
  if (driver().endCapture(stream_, &graph) != 0) return nullptr;
  if (whole) return graph;
  driver().destroyGraph(graph);
  return nullptr;
}
Capture::~Capture() {
  if (const Graph graph = end()) driver().destroyGraph(graph);
}

Capture* Capture::current() {
  return thread_state.capture;
}
void Capture::copyConstant(Address to, const void* from, size_t bytes) {
  if (bytes > kMostConstants - constant_bytes_) throw CaptureRefused("large copies from the CPU");
  const DimVector size{static_cast<int64_t>(bytes)};
  {
    const OutsideCapture outside;
    const Tensor held = Tensor::empty(size, DType::Byte, deviceOf(device_));
    check(driver().copyToDevice(reinterpret_cast<Address>(held.rawData()), from, bytes, before_),
          "copying to a device");
    constants_.push_back(held);
  }
  constant_bytes_ += bytes;
  check(driver().copyOnDevice(to, reinterpret_cast<Address>(constants_.back().rawData()), bytes,
                              currentStream(device_)),
        "copying on a device");
}

OutsideCapture::OutsideCapture() : capture_(thread_state.capture) {
  if (!capture_) return;
  captured_ = currentStream(capture_->device_);  // nothing waits to be launched together now
  thread_state.capture = nullptr;
  setCurrentStream(capture_->device_, capture_->before_);
}
OutsideCapture::~OutsideCapture() {
  if (!capture_) return;
  // What failed is told by the next that waits for the device.
  try {
    driver().synchronizeStream(currentStream(capture_->device_));
  } catch (const std::exception&) {
  }
  setCurrentStream(capture_->device_, captured_);
  thread_state.capture = capture_;
}

void refuseWhileCapturing(const char* what) {
  if (thread_state.capture) throw CaptureRefused(what);
}
bool isCapturing() {
  return thread_state.capture != nullptr;
}

CudaDevice& enter(Device device) {
  const int index = device.index < 0 ? thread_state.device : device.index;
  CudaDevice& entered = deviceAt(index);
  if (thread_state.entered != index || thread_state.generation != driverGeneration()) {
    check(driver().setContext(entered.context()), "entering a context");
    thread_state.entered = index;
    thread_state.generation = driverGeneration();
  }
  return entered;
}

void noteLaunch(const char* name) {
  thread_state.launched = name;
}

}  // namespace wick::cuda
