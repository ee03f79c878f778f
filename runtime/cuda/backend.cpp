// CUDA as a backend of storages and tensors, and of groups of the loop IR.
#include <algorithm>
#include <memory>
#include <tuple>

#include "core/convert.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/pinned_memory.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/call_graphs.h"
#include "runtime/cuda/captured_pieces.h"
#include "runtime/cuda/complex_parts.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/elementwise_kernel.h"
#include "runtime/cuda/joint_launches.h"
#include "runtime/cuda/made_once.h"
#include "runtime/cuda/pinned.h"
#include "runtime/cuda/pointwise.h"
#include "runtime/cuda/side_work.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/fusion/operator_site.h"

namespace wick::cuda {

namespace {

Address addressOf(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

// Copies elements of `from` to elements of `to`, converted, in `rank` dimensions.
ElementwiseKernel& copyKernel(DType to, DType from, int rank) {
  static auto& known = *new MadeOnce<std::tuple<DType, DType, int>, ElementwiseKernel>;
  return known.of({to, from, rank}, [&] {
    auto made = std::make_unique<ElementwiseKernel>();
    made->kernel.rank = rank;
    made->store(made->load(from), to);
    made->finish("copy");
    return made;
  });
}

void copyNumbers(const Tensor& to, const Tensor& from);

void copyElements(const Tensor& to, const Tensor& from) {
  if (to.numel() == 0) return;
  if (isComplex(to.dtype()) && isComplex(from.dtype())) {
    return copyNumbers(asParts(to), asParts(from));
  }
  if (isComplex(to.dtype())) {
    const Tensor parts = asParts(to);
    copyNumbers(parts.select(-1, 0), from);
    return copyNumbers(parts.select(-1, 1),
                       Tensor::zeros({}, DType::Float, to.device()).expand(from.sizes()));
  }
  if (isComplex(from.dtype())) return copyNumbers(to, asParts(from).select(-1, 0));
  copyNumbers(to, from);
}

void copyNumbers(const Tensor& to, const Tensor& from) {
  const bool plain = to.dtype() == from.dtype() && to.isNonOverlappingAndDense() &&
                     std::ranges::equal(to.strides(), from.strides());
  if (plain) {
    enter(to.device());
    check(driver().copyOnDevice(addressOf(to.rawData()), addressOf(from.rawData()),
                                static_cast<size_t>(to.numel()) * to.itemSize(), currentStream()),
          "copying on a device");
    return;
  }
  if (to.dim() > loop::kMaxRank) {
    for (int64_t i = 0; i < to.size(0); ++i) copyNumbers(to.select(0, i), from.select(0, i));
    return;
  }
  const Touch touches[] = {touchOf(from, to.sizes()), touchOf(to, to.sizes())};
  copyKernel(to.dtype(), from.dtype(), static_cast<int>(to.dim())).run(to, touches, {});
}

class CudaBackend : public DeviceBackend {
 public:
  int count() override { return deviceCount(); }
  Device current() override { return deviceOf(enter(deviceOf(-1)).index()); }
  void* allocate(Device device, size_t bytes) override {
    CudaDevice& entered = enter(device);
    Allocator& allocator = entered.allocator();
    try {
      return reinterpret_cast<void*>(allocator.allocate(bytes, streamForMemory()));
    } catch (const RuntimeError&) {
      // What captured calls hold is the last reserve.
      if (isCapturing() || !dropCallGraphs(entered)) throw;
      allocator.releaseKept();
      return reinterpret_cast<void*>(allocator.allocate(bytes, streamForMemory()));
    }
  }
  void free(Device device, void* memory, size_t bytes) noexcept override {
    try {
      if (JointLaunches* joint = JointLaunches::current()) {
        if (joint->keep(device, memory, bytes)) return;
      }
      if (Capture* capture = Capture::current()) {
        if (capture->pieces().delayFree(device, memory, bytes)) return;
      }
      enter(device).allocator().free(addressOf(memory), streamForMemory());
    } catch (const std::exception&) {
      // Without a driver there is nothing to give back.
    }
  }
  void clear(Device device, void* memory, size_t bytes) override {
    enter(device);
    check(driver().setBytes(addressOf(memory), 0, bytes, currentStream()), "writing zeros");
  }
  void copyBytes(void* to, Device to_device, const void* from, Device from_device,
                 size_t bytes) override {
    if (bytes == 0) return;
    if (Capture* capture = Capture::current(); capture && from_device.isCpu()) {
      return capture->copyConstant(addressOf(to), from, bytes);
    }
    if (from_device != to_device) refuseWhileCapturing("a copy between devices");
    const Stream stream = currentStream();
    if (from_device.isCpu()) {
      // The driver has taken the bytes over when the call returns, or waits for them; those of pinned
      // memory it reads later.
      enter(to_device);
      const bool pinned = isPinnedMemory(from);
      check(driver().copyToDevice(addressOf(to), from, bytes, stream), "copying to a device");
      if (pinned && UnwaitedCopies::active()) {
        notePinnedUse(from, stream);
      } else if (pinned || bytes > kStaged) {
        enter(to_device).synchronize(stream);
      }
    } else if (to_device.isCpu()) {
      CudaDevice& device = enter(from_device);
      check(driver().copyToHost(to, addressOf(from), bytes, stream), "copying from a device");
      if (UnwaitedCopies::active() && isPinnedMemory(to)) {
        notePinnedUse(to, stream);
      } else {
        device.synchronize(stream);
      }
    } else if (to_device == from_device) {
      enter(to_device);
      check(driver().copyOnDevice(addressOf(to), addressOf(from), bytes, stream),
            "copying on a device");
    } else {
      CudaDevice& target = deviceAt(to_device.index);
      CudaDevice& source = enter(from_device);
      check(driver().copyToPeer(addressOf(to), target.context(), addressOf(from), source.context(),
                                bytes, stream),
            "copying between devices");
      source.synchronize(stream);
    }
  }
  void copyElements(const Tensor& to, const Tensor& from) override { cuda::copyElements(to, from); }
  void synchronize(Device device) override { enter(device).synchronizeAll(); }

 private:
  static constexpr size_t kStaged = 64
                                    << 10;  // what the driver buffers of memory that is not pinned
};

class CudaGroups : public GroupBackend {
 public:
  // The stream that all threads share waits for the others.
  bool writesOver(Device device) override { return streamForMemory(device.index) == nullptr; }
  std::optional<IValue> repeat(const Call& call) override { return repeatCall(call); }
  std::shared_ptr<const void> outsideRepeats() override {
    return std::make_shared<OutsideCapture>();
  }
  std::unique_ptr<SideWork> beginBeside(Device device) override { return beginSideWork(device); }
  bool mustStayOnThread() override { return isInSideWork() || isCapturing(); }
  std::unique_ptr<Code> prepare(const std::string& name, const loop::Kernel& kernel) override {
    return std::make_unique<LoopKernel>(name, kernel);
  }
  void launch(Device device, std::span<const Launch> launches) override {
    CudaDevice& entered = enter(device);
    std::vector<LoopKernel::Ready> ready;
    ready.reserve(launches.size());
    for (const Launch& l : launches) {
      ready.push_back(
          static_cast<LoopKernel&>(*l.code).prepare(entered, *l.walk, l.touches, l.numbers));
    }
    for (size_t i = 0; i < launches.size(); ++i) {
      static_cast<LoopKernel&>(*launches[i].code).queue(ready[i]);
    }
  }
};

bool computeGenerally(CallFrame& frame, Device device) {
  const CompileFailures failures;
  try {
    if (computeAsGroup(frame, device)) return true;
    if (frame.op->form() == Operator::Form::Base && computeByDefinition(frame, device)) return true;
  } catch (const NotOnDevice&) {
    // As if it had never been tried.
  }
  if (failures.first().empty() || deviceFallback()) return false;
  throwRuntimeError("{}: its kernel cannot be compiled for {}: {}", frame.op->schema().name(),
                    device.str(), failures.first());
}

const struct Registration {
  CudaBackend memory;
  CudaGroups groups;
  Registration() {
    setDeviceBackend(DeviceType::CUDA, &memory);
    setGroupBackend(DeviceType::CUDA, &groups);
    setGeneralKernel(DeviceType::CUDA, computeGenerally);
  }
}& registration = *new Registration;

}  // namespace

}  // namespace wick::cuda
