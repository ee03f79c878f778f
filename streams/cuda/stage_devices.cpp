// Memory belongs to the stream that it was made for (runtime/cuda/allocator.h). What comes is made on the
// copying stream, so it is never memory that the place still computes with; the one before keeps its
// tensors until the copy is done, because its stream waits for that before it uses the memory again.
#include "streams/cuda/stage_devices.h"

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/device_backend.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/streams.h"

namespace wick::streams {

namespace {

using cuda::deviceOf;
using cuda::HeldEvent;
using cuda::HeldStream;

// The thread's stream of a device, for a scope.
class StreamScope {
 public:
  explicit StreamScope(const HeldStream& stream)
      : device_(stream.device), before_(cuda::currentStream(stream.device)) {
    cuda::setCurrentStream(device_, stream.stream);
  }
  ~StreamScope() { cuda::setCurrentStream(device_, before_); }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const int device_;
  const cuda::Stream before_;
};

Ref<HeldStream> makeStream(int device) {
  cuda::enter(deviceOf(device));
  const auto made = cuda::deviceAt(device).nextStream(/*urgent=*/false);
  return makeRef<HeldStream>(device, made.stream, made.number);
}

class CudaPlace final : public StageDevices::Place {
 public:
  explicit CudaPlace(int index)
      : index(index),
        computing(makeStream(index)),
        coming(makeStream(index)),
        leaving(makeStream(index)) {}
  Device device() const override { return deviceOf(index); }
  const int index;
  const Ref<HeldStream> computing, coming, leaving;
};

class CudaMark final : public StageDevices::Mark {
 public:
  explicit CudaMark(const HeldStream& stream) : event(makeRef<HeldEvent>(true, true)) {
    event->record(stream);
  }
  const Ref<HeldEvent> event;
};

// Copies between devices go through the CPU's memory unless each of them may read the other one's.
void allowPeer(int index, int other) {
  static std::mutex& mutex = *new std::mutex;
  static auto& asked = *new std::set<std::pair<int, int>>;
  const std::lock_guard lock(mutex);
  if (!asked.emplace(index, other).second) return;
  cuda::enter(deviceOf(index));
  // Where it cannot be, copies are slower and right all the same.
  cuda::driver().allowPeer(cuda::deviceAt(other).context(), 0);
}

class CudaStages final : public StageDevices {
 public:
  int count() override { return cuda::deviceCount(); }
  std::shared_ptr<Place> open(Device device) override {
    return std::make_shared<CudaPlace>(device.index);
  }
  void enter(Place& place) override {
    const auto& p = static_cast<CudaPlace&>(place);
    cuda::setCurrentDevice(p.index);
    cuda::setCurrentStream(p.index, p.computing->stream);
    cuda::enter(deviceOf(p.index));
  }
  std::shared_ptr<Mark> mark(Place& place) override {
    return std::make_shared<CudaMark>(*static_cast<CudaPlace&>(place).computing);
  }
  void bring(Place& to, Packet& packet, Place* from, const Mark* ready) override {
    const auto& p = static_cast<CudaPlace&>(to);
    const auto* before = static_cast<const CudaPlace*>(from);
    if (before && before->index != p.index) {
      allowPeer(p.index, before->index);
      allowPeer(before->index, p.index);
    }
    Packet old = packet;
    {
      const StreamScope copying(*p.coming);
      if (ready) static_cast<const CudaMark*>(ready)->event->waitOn(*p.coming);
      std::map<const void*, Tensor> made;
      replaceTensors(packet, [&](const Tensor& tensor) {
        if (tensor.device() == p.device()) return tensor;
        Tensor& moved = made[tensor.impl()];
        if (!moved.defined()) moved = copied(tensor, p, before);
        return moved;
      });
      const CudaMark done(*p.coming);
      done.event->waitOn(*p.computing);
      if (before) done.event->waitOn(*before->computing);
    }
    if (before) {
      const StreamScope owner(*before->computing);
      old.clear();
    }
    old.clear();
    cuda::enter(p.device());
  }
  void bringToCpu(Packet& packet, Place& from, const Mark& ready) override {
    const auto& p = static_cast<CudaPlace&>(from);
    static_cast<const CudaMark&>(ready).event->synchronize();
    const StreamScope leaving(*p.leaving);
    cuda::enter(p.device());
    replaceTensors(packet, [](const Tensor& tensor) { return moveTo(tensor, Device()); });
  }
  double milliseconds(const Mark& begin, const Mark& end) override {
    return static_cast<const CudaMark&>(begin).event->elapsedUntil(
        *static_cast<const CudaMark&>(end).event);
  }
  void synchronize(Device device) override { cuda::enter(device).synchronizeAll(); }

 private:
  // On the calling thread's stream of the place, which is the one that copies.
  static Tensor copied(const Tensor& given, const CudaPlace& p, const CudaPlace* before) {
    const bool is_peer = before && given.device().isCuda() && given.kind() == TensorKind::Dense;
    if (!is_peer) {
      cuda::enter(p.device());
      return moveTo(given, p.device());
    }
    Tensor tensor = given;
    if (!tensor.isNonOverlappingAndDense()) {
      const StreamScope there(*before->computing);
      tensor = tensor.contiguous();
      const CudaMark gathered(*before->computing);
      gathered.event->waitOn(*p.coming);
    }
    const cuda::Context from = cuda::deviceAt(before->index).context();
    cuda::CudaDevice& device = cuda::enter(p.device());
    Tensor moved =
        Tensor::emptyStrided(tensor.sizes(), tensor.strides(), tensor.dtype(), p.device());
    const size_t bytes = static_cast<size_t>(tensor.numel()) * itemSize(tensor.dtype());
    if (bytes > 0) {
      cuda::enter(p.device());
      cuda::check(cuda::driver().copyToPeer(reinterpret_cast<cuda::Address>(moved.rawData()),
                                            device.context(),
                                            reinterpret_cast<cuda::Address>(tensor.rawData()), from,
                                            bytes, p.coming->stream),
                  "copying between devices");
    }
    return moved;
  }
};

}  // namespace

std::shared_ptr<StageDevices> cudaStages() {
  return std::make_shared<CudaStages>();
}

}  // namespace wick::streams
