#include "tests/lazy/simulated_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "codegen/loop/evaluate.h"
#include "codegen/loop/lowering.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/fusion/group_backend.h"

namespace wick {

namespace {

constexpr Device kDevice{DeviceType::CUDA, 0};

// Tensors of the device as tensors of the CPU in the same memory, and back.
class Aliases {
 public:
  IValue onCpu(const IValue& v) {
    if (v.isTensor()) return IValue(onCpu(v.toTensor()));
    if (v.isDevice()) return v.toDevice().isCuda() ? IValue(Device()) : v;
    if (!holdsTensors(v)) return v;
    std::vector<IValue> elements;
    for (const IValue& e : v.elements()) elements.push_back(onCpu(e));
    return IValue(makeList(v.toList().element_type, std::move(elements)));
  }
  IValue onDevice(const IValue& v) {
    if (v.isTensor()) return IValue(onDevice(v.toTensor()));
    if (!v.isTuple() && !holdsTensors(v)) return v;
    std::vector<IValue> elements;
    for (const IValue& e : v.elements()) elements.push_back(onDevice(e));
    return v.isTuple() ? IValue(makeTuple(std::move(elements), v.toTuple().named))
                       : IValue(makeList(v.toList().element_type, std::move(elements)));
  }
  // Sizes and memory that the call gave its arguments.
  void giveBack() {
    for (const auto& [original, alias] : tensors_) {
      if (std::ranges::equal(original.sizes(), alias.sizes())) continue;
      original.resize(alias.sizes());
      onCpu(original.storage(), true);
      Tensor::fromStorage(memory_[original.storage().get()].alias, original.dtype(),
                          original.sizes(), original.strides(), original.offset())
          .copyFrom(alias);
    }
  }

 private:
  static bool holdsTensors(const IValue& v) {
    return v.isList() &&
           std::ranges::any_of(v.elements(), [](const IValue& e) { return e.isTensor(); });
  }
  struct Memory {
    Ref<Storage> original, alias;
  };
  const Ref<Storage>& onCpu(const Ref<Storage>& original, bool anew = false) {
    Memory& found = memory_[original.get()];
    if (!found.alias || anew) {
      found.original = original;
      found.alias = Storage::borrow(original->data(), original->bytes(), nullptr);
    }
    return found.alias;
  }
  Tensor onCpu(const Tensor& t) {
    if (!t.defined() || t.device() != kDevice) return t;
    for (const auto& [original, alias] : tensors_) {
      if (original.isSame(t)) return alias;
    }
    const Tensor alias =
        Tensor::fromStorage(onCpu(t.storage()), t.dtype(), t.sizes(), t.strides(), t.offset());
    tensors_.emplace_back(t, alias);
    return alias;
  }
  Tensor onDevice(const Tensor& t) {
    if (!t.defined() || !t.device().isCpu() || t.kind() != TensorKind::Dense) return t;
    for (const auto& [original, alias] : tensors_) {
      if (alias.isSame(t) || original.isSame(t)) return original;
    }
    for (const auto& [storage, memory] : memory_) {
      if (memory.alias != t.storage()) continue;
      return Tensor::fromStorage(memory.original, t.dtype(), t.sizes(), t.strides(), t.offset());
    }
    return moveTo(t, kDevice);
  }

  std::map<const Storage*, Memory> memory_;
  std::vector<std::pair<Tensor, Tensor>> tensors_;
};

void checkDevices(const IValue& v, const std::string& name, bool joins) {
  if (v.isList()) {
    for (const IValue& e : v.elements()) checkDevices(e, name, joins);
  }
  if (!v.isTensor() || !v.toTensor().defined()) return;
  const Tensor t = v.toTensor();
  WICK_CHECK(joins || t.device() == kDevice || t.dim() == 0,
             "{}: Expected all tensors to be on the same device, but found {}", name,
             t.device().str());
}

// Copies within a call are the kernel's own.
thread_local bool is_inside = false;
class InsideScope {
 public:
  InsideScope() : before_(std::exchange(is_inside, true)) {}
  ~InsideScope() { is_inside = before_; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;

 private:
  const bool before_;
};

void callSimulated(CallFrame& frame) {
  const std::string& name = frame.op->schema().name();
  SimulatedDevice::State& state = SimulatedDevice::state();
  ++state.calls;
  WICK_CHECK(!state.lacks.contains(name), "{}: not available on device cuda:0", name);
  Aliases aliases;
  std::vector<IValue> given, results(frame.num_results);
  // Copies join devices, and give results where they are told to.
  const bool copies = joinsDevices(*frame.op) || frame.op->has(kAnyKind) || name == "aten::copy_";
  const bool looks_at_none = copies || frame.op->makesViews() || frame.op->tensorArguments() == 0;
  if (name == "aten::requires_grad_" ||
      (looks_at_none && frame.op->form() == Operator::Form::Base)) {
    return frame.op->record().kernel(frame);
  }
  const bool joins = copies || foreignTensors(*frame.op, DeviceType::CUDA) == ForeignTensors::All;
  const InsideScope inside;
  for (size_t i = 0; i < frame.num_args; ++i) {
    checkDevices(frame.args[i], name, joins);
    given.push_back(aliases.onCpu(frame.args[i]));
  }
  frame.op->callKernel(given.data(), given.size(), results.data(), results.size());
  aliases.giveBack();
  for (size_t r = 0; r < results.size(); ++r) frame.results[r] = aliases.onDevice(results[r]);
}

class Backend : public DeviceBackend {
 public:
  int count() override { return 1; }
  Device current() override { return kDevice; }
  void* allocate(Device, size_t bytes) override {
    SimulatedDevice::State& state = SimulatedDevice::state();
    state.bytes += bytes;
    state.peak_bytes = std::max(state.peak_bytes, state.bytes);
    return std::malloc(bytes);
  }
  void free(Device, void* memory, size_t bytes) noexcept override {
    SimulatedDevice::state().bytes -= bytes;
    std::free(memory);
  }
  void clear(Device, void* memory, size_t bytes) override { std::memset(memory, 0, bytes); }
  void copyBytes(void* to, Device to_device, const void* from, Device from_device,
                 size_t bytes) override {
    if (from_device.isCpu() && !is_inside) ++SimulatedDevice::state().to_device;
    if (to_device.isCpu() && !is_inside) ++SimulatedDevice::state().to_host;
    std::memmove(to, from, bytes);
  }
  void copyElements(const Tensor& to, const Tensor& from) override {
    Aliases aliases;
    const Tensor there = aliases.onCpu(IValue(to)).toTensor();
    there.copyFrom(aliases.onCpu(IValue(from)).toTensor());
  }
  void synchronize(Device) override {}
};

class Groups : public GroupBackend {
 public:
  bool writesOver(Device) override { return SimulatedDevice::state().runs_groups; }
  std::unique_ptr<Code> prepare(const std::string&, const loop::Kernel& kernel) override {
    return std::make_unique<Pointwise>(kernel);
  }
  void launch(Device, std::span<const Launch> launches) override {
    for (const Launch& l : launches) {
      const bool can = SimulatedDevice::state().runs_groups &&
                       static_cast<const Pointwise&>(*l.code).kernel.reduced == 0;
      if (!can) throw loop::Unsupported("a simulated device");
    }
    for (const Launch& l : launches) run(static_cast<const Pointwise&>(*l.code).kernel, l);
  }

 private:
  struct Pointwise : Code {
    explicit Pointwise(const loop::Kernel& kernel) : kernel(kernel) {}
    const loop::Kernel& kernel;
  };
  static void run(const loop::Kernel& kernel, const Launch& launch) {
    const Walk& walk = *launch.walk;
    struct Dimension {
      int64_t size;
      const int64_t* steps;  // by access
    };
    std::vector<Dimension> dimensions = {{walk.elements, walk.element_steps.data()}};
    for (size_t i = 0; i < static_cast<size_t>(walk.nested); ++i) {
      dimensions.push_back({walk.nested_sizes[i], walk.nested_steps[i].data()});
    }
    for (size_t i = 0; i < static_cast<size_t>(walk.outer); ++i) {
      dimensions.push_back({walk.sizes[i], walk.steps[i].data()});
    }
    int64_t points = 1;
    for (const Dimension& d : dimensions) points *= d.size;
    const std::vector<int64_t> one_point(loop::kMaxRank, 1);
    const std::vector<ScalarBits> numbers(launch.numbers.begin(), launch.numbers.end());
    std::vector<loop::Place> places(launch.touches.size());
    for (int64_t point = 0; point < points; ++point) {
      for (size_t a = 0; a < places.size(); ++a) {
        places[a] = {launch.touches[a].base, {}};
        int64_t rest = point;
        for (const Dimension& d : dimensions) {
          places[a].base += rest % d.size * d.steps[a];
          rest /= d.size;
        }
      }
      loop::evaluate(kernel, one_point, places, numbers);
    }
  }
};

DeviceBackend* backend_before = nullptr;
GroupBackend* groups_before = nullptr;

}  // namespace

SimulatedDevice::State& SimulatedDevice::state() {
  static State made;
  return made;
}

SimulatedDevice::SimulatedDevice() {
  static Backend& backend = *new Backend;
  static Groups& groups = *new Groups;
  state() = State();
  backend_before = findDeviceBackend(DeviceType::CUDA);
  groups_before = groupBackend(DeviceType::CUDA);
  setDeviceBackend(DeviceType::CUDA, &backend);
  setGroupBackend(DeviceType::CUDA, &groups);
  setDeviceRecorder(DeviceType::CUDA, callSimulated);
}
SimulatedDevice::~SimulatedDevice() {
  setDeviceRecorder(DeviceType::CUDA, nullptr);
  setGroupBackend(DeviceType::CUDA, groups_before);
  setDeviceBackend(DeviceType::CUDA, backend_before);
}

}  // namespace wick
