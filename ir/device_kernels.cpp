#include "ir/device_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/kind_kernels.h"

namespace wick {

namespace {

constexpr size_t kNumTypes = 5;
size_t slotOf(DeviceType type) {
  if (type == DeviceType::Meta) return 3;
  return type == DeviceType::CPU ? 0 : type == DeviceType::CUDA ? 1 : type == kLazy ? 2 : 4;
}
// Whether elements are known only later: of aot/.
bool isAhead(DeviceType type) {
  return slotOf(type) == 4;
}

struct Listed {
  Kernel kernel;
  TableRule how;
};
struct Tables {
  std::array<std::unordered_map<std::string_view, Listed>, kNumTypes> kernels;
};
// Tables are added before main(), so it is made on first use.
Tables& tables() {
  static Tables made;
  return made;
}

std::array<std::atomic<GeneralKernel>, kNumTypes> general_kernels{};
std::array<std::atomic<DeviceRecorder>, kNumTypes> recorders{};
std::atomic<bool> falls_back{false};

// "aten::add.Tensor" of "aten::add.Tensor(Tensor self, …".
std::string_view recordName(const Operator& op) {
  const std::string_view text(op.record().schema);
  return text.substr(0, text.find('('));
}
std::string ownName(const Operator& op) {
  const FunctionSchema& schema = op.schema();
  return schema.overload().empty() ? schema.name() : schema.name() + "." + schema.overload();
}

// What is known of an operator on a type of device.
struct Resolved {
  Kernel own = nullptr;   // writes to the destination of a derived form by itself
  Kernel base = nullptr;  // of the record
  bool neutral = false;
  bool one_device = true;  // whether all tensors must be on it
  bool mixes = false;      // whether tensors of no dimensions on the CPU are numbers to it
  Kernel last = nullptr;   // does what the general one cannot
};

Resolved resolve(const Operator& op, DeviceType type) {
  Resolved found;
  const auto& kernels = tables().kernels[slotOf(type)];
  const auto base = kernels.find(recordName(op));
  if (base != kernels.end()) found.base = base->second.kernel;
  if (op.form() == Operator::Form::Base) {
    found.own = found.base;
  } else if (const auto it = kernels.find(ownName(op)); it != kernels.end()) {
    found.own = it->second.kernel;
  }
  found.neutral = isDeviceNeutral(op);
  const bool said = op.has(kNeutral) || op.has(kNeutralLast);
  found.one_device = !op.has(kNeutralMixed) && (said || !found.neutral);
  const auto ruled = [&](TableRule how) { return found.base && base->second.how == how; };
  if (ruled(TableRule::Mixed)) found.one_device = false;
  found.mixes = op.record().scalar != nullptr;
  if (op.has(kNeutralLast)) {
    found.last = op.record().kernel;
    found.neutral = false;
    found.mixes = true;
  } else if (ruled(TableRule::Last)) {
    found.last = std::exchange(found.base, nullptr);
    found.own = nullptr;
  } else if (!found.base && !found.neutral && op.record().scalar) {
    found.last = op.record().kernel;  // goes through the engine of pointwise operators
  }
  return found;
}

// By operator, for each type. Operators live as long as the process.
const Resolved& resolvedFor(const Operator& op, DeviceType type) {
  static thread_local std::array<std::unordered_map<const Operator*, Resolved>, kNumTypes> known;
  auto& map = known[slotOf(type)];
  const auto it = map.find(&op);
  return it != map.end() ? it->second : map.emplace(&op, resolve(op, type)).first->second;
}

// Calls f with each tensor among the arguments, by reference.
template <class F>
void forTensors(const Operator& op, IValue* args, size_t num_args, F&& f) {
  for (uint64_t rest = op.tensorArguments(); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(rest));
    if (i >= num_args) break;
    if (args[i].isTensor()) {
      f(i, args[i]);
    } else if (args[i].isList()) {
      for (const IValue& e : args[i].elements()) {
        if (e.isTensor()) f(i, e);
      }
    }
  }
}
const TensorImpl& implOf(const IValue& v) {
  return *static_cast<const TensorImpl*>(v.rawObject());
}

// The device of the tensors that are not on the CPU.
Device deviceOf(const CallFrame& frame) {
  std::optional<Device> found;
  forTensors(*frame.op, frame.args, frame.num_args, [&](size_t, const IValue& v) {
    const Device device = implOf(v).storage->device();
    if (device.isCpu()) return;
    if (!found) found = device;
    WICK_CHECK(*found == device,
               "Expected all tensors to be on the same device, but found at least two devices, {} "
               "and {}!",
               found->str(), device.str());
  });
  return *found;
}

// A tensor of no dimensions on the device. Equal ones are copied there once and kept, as far as there
// are not too many, so that calls that compute with the same number need not wait for a copy.
Tensor numberOn(Device device, const Tensor& number) {
  constexpr size_t kMost = 4096;
  using Key = std::tuple<DeviceType, int, DType, std::string>;
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::map<Key, Tensor>;
  // What is recorded ahead of time belongs to one recording.
  if (number.impl()->is_conj || isAhead(device.type)) return moveTo(number, device);
  Key key(device.type, device.index, number.dtype(),
          std::string(static_cast<const char*>(number.rawData()), number.itemSize()));
  {
    std::lock_guard lock(mutex);
    if (const auto it = kept.find(key); it != kept.end()) return it->second;
  }
  const Tensor there = moveTo(number, device);
  std::lock_guard lock(mutex);
  return kept.size() < kMost ? kept.emplace(std::move(key), there).first->second : there;
}

// Brings tensors of no dimensions to the device where the operator takes numbers in their place;
// others on the CPU are an error. `held` keeps the call's arguments then.
void gather(CallFrame& frame, Device device, bool mixes, std::vector<IValue>& held) {
  bool moves = false;
  forTensors(*frame.op, frame.args, frame.num_args, [&](size_t i, const IValue& v) {
    const TensorImpl& t = implOf(v);
    if (!t.storage->device().isCpu()) return;
    const bool written = (frame.op->writtenArguments() >> i & 1) != 0;
    const bool number = mixes && t.sizes.empty() && !written && frame.args[i].isTensor();
    WICK_CHECK(number,
               "Expected all tensors to be on the same device, but found at least two devices, {} "
               "and cpu!",
               device.str());
    moves = true;
  });
  if (!moves) return;
  held.assign(frame.args, frame.args + frame.num_args);
  for (IValue& v : held) {
    if (v.isTensor() && v.toTensor().device().isCpu()) v = IValue(numberOn(device, v.toTensor()));
  }
  frame.args = held.data();
  frame.borrowed = 0;
}

struct Fallbacks {
  std::mutex mutex;
  std::map<std::string, uint64_t, std::less<>> calls;
};
Fallbacks& fallbacks() {
  static Fallbacks* made = new Fallbacks;  // threads may outlive main
  return *made;
}

// The value with its tensors on another device.
IValue movedTo(const IValue& v, Device device, bool only_tensors_elsewhere) {
  if (v.isTensor()) {
    const Tensor t = v.toTensor();
    if (only_tensors_elsewhere && t.device().isCpu()) return v;
    return IValue(moveTo(t, device));
  }
  if (!v.isList() ||
      !std::ranges::any_of(v.elements(), [](const IValue& e) { return e.isTensor(); })) {
    return v;
  }
  std::vector<IValue> elements;
  for (const IValue& e : v.elements()) {
    elements.push_back(movedTo(e, device, only_tensors_elsewhere));
  }
  return IValue(
      makeList(static_cast<const ListObject*>(v.rawObject())->element_type, std::move(elements)));
}

// Runs the record's kernel over copies on the CPU. What it writes to is copied back when `commits`.
void callOnCopies(CallFrame& frame, Device device, bool commits) {
  std::vector<IValue> copies;
  for (size_t i = 0; i < frame.num_args; ++i) {
    copies.push_back(movedTo(frame.args[i], Device(), true));
  }
  std::vector<IValue> held = copies;  // kernels may take their arguments
  std::vector<IValue> results(frame.num_results);
  const OnCpuScope here;
  frame.op->callKernel(held.data(), held.size(), results.data(), results.size());
  if (!commits) return;
  for (size_t i = 0; i < frame.num_args && i < 64; ++i) {
    if ((frame.op->writtenArguments() >> i & 1) == 0 || !frame.args[i].isTensor()) continue;
    const Tensor to = frame.args[i].toTensor(), from = copies[i].toTensor();
    if (!std::ranges::equal(to.sizes(), from.sizes())) to.resize(from.sizes());
    to.copyFrom(from);
  }
  for (size_t r = 0; r < frame.num_results; ++r) {
    frame.results[r] = movedTo(results[r], device, false);
    for (size_t i = 0; i < frame.num_args; ++i) {
      const bool same = copies[i].isTensor() && results[r].isTensor() &&
                        copies[i].toTensor().isSame(results[r].toTensor());
      if (same) frame.results[r] = frame.args[i];
    }
  }
}

[[noreturn]] void throwNoKernel(CallFrame& frame, Device device) {
  // An operator that raises for these arguments anyway says why.
  if (deviceBackend(device.type).holdsData() && !isAhead(device.type)) {
    callOnCopies(frame, device, /*commits=*/false);
  }
  throwRuntimeError("{}: not available on device {}", frame.op->schema().name(), device.str());
}

thread_local AbsentKernel absent_kernel = nullptr;

void computeGenerally(CallFrame& frame, Device device, Kernel last) {
  const GeneralKernel general =
      general_kernels[slotOf(device.type)].load(std::memory_order_acquire);
  if (general && general(frame, device)) return;
  if (last) {
    try {
      return last(frame);
    } catch (const NotOnDevice&) {
      // The call is as if it had never been tried.
    }
  }
  if (device.type == DeviceType::Meta && absent_kernel && absent_kernel(frame)) return;
  if (!falls_back.load(std::memory_order_relaxed)) throwNoKernel(frame, device);
  {
    std::lock_guard lock(fallbacks().mutex);
    ++fallbacks().calls[ownName(*frame.op)];
  }
  callOnCopies(frame, device, /*commits=*/true);
}

}  // namespace

RegisterDeviceKernels::RegisterDeviceKernels(DeviceType type, std::span<const DeviceKernel> kernels,
                                             TableRule how) {
  for (const DeviceKernel& k : kernels) {
    const bool added = tables().kernels[slotOf(type)].emplace(k.op, Listed{k.kernel, how}).second;
    WICK_ASSERT(added, "{} has two kernels for device {}", k.op, Device{type, -1}.str());
  }
}

bool isDeviceNeutral(const Operator& op) {
  constexpr uint64_t kAny = kAnyKind | kNeutral | kNeutralMixed | kNeutralLast;
  return (op.record().flags & kAny) != 0 || op.makesViews() || op.tensorArguments() == 0;
}
Kernel findDeviceKernel(const Operator& op, DeviceType type) {
  const Resolved& found = resolvedFor(op, type);
  return found.own ? found.own : found.base;
}
void setGeneralKernel(DeviceType type, GeneralKernel kernel) {
  general_kernels[slotOf(type)].store(kernel, std::memory_order_release);
}

AbsentKernel exchangeAbsentKernel(AbsentKernel kernel) {
  return std::exchange(absent_kernel, kernel);
}

void setDeviceRecorder(DeviceType type, DeviceRecorder recorder) {
  recorders[slotOf(type)].store(recorder, std::memory_order_release);
}
DeviceRecorder deviceRecorder(DeviceType type) {
  return recorders[slotOf(type)].load(std::memory_order_acquire);
}
bool joinsDevices(const Operator& op) {
  return op.has(kNeutralMixed);
}

ForeignTensors foreignTensors(const Operator& op, DeviceType type) {
  const Resolved& found = resolvedFor(op, type);
  if (!found.one_device) return ForeignTensors::All;
  return found.mixes ? ForeignTensors::Numbers : ForeignTensors::None;
}

DeviceType deviceOfArguments(const Operator& op, const IValue* args, size_t num_args) {
  DeviceType type = DeviceType::CPU;
  forTensors(op, const_cast<IValue*>(args), num_args, [&](size_t, const IValue& v) {
    const Device device = implOf(v).storage->device();
    // Where there is a recorder, it sees to tensors of other devices too.
    if (!device.isCpu() && type != kLazy) type = device.type;
  });
  return type;
}

void callOnDevice(DeviceType type, CallFrame frame) {
  if (const DeviceRecorder recorder = deviceRecorder(type)) return recorder(frame);
  const Operator& op = *frame.op;
  const Resolved& found = resolvedFor(op, type);
  std::vector<IValue> held;
  if (found.one_device) gather(frame, deviceOf(frame), found.mixes, held);
  const bool is_base = op.form() == Operator::Form::Base;
  if (found.own) {
    found.own(frame);
    return;
  }
  if (is_base && found.neutral) {
    op.record().kernel(frame);
    return;
  }
  if (is_base) {
    computeGenerally(frame, deviceOf(frame), found.last);
    return;
  }
  // A derived form of what the record computes.
  const Tensor destination =
      frame.args[op.form() == Operator::Form::Inplace ? 0 : frame.num_args - 1].toTensor();
  WICK_CHECK(destination.defined(), "{}: expected a tensor to write to, got None",
             op.schema().name());
  WICK_CHECK(destination.storage()->writable(), "{}: the destination's memory is read-only",
             op.schema().name());
  const bool has_table = found.base || found.neutral;
  const GeneralKernel general = general_kernels[slotOf(type)].load(std::memory_order_acquire);
  if (op.form() == Operator::Form::Inplace && !has_table && general &&
      general(frame, destination.device())) {
    return;
  }
  CallFrame base = frame;
  if (op.form() == Operator::Form::Out) --base.num_args;
  if (has_table) {
    base.destination = &destination;
    (found.base ? found.base : op.record().kernel)(base);
  } else {
    base.op = &baseOf(op);
    computeGenerally(base, destination.device(), found.last);
  }
  finishDerived(op, destination, frame.results[0]);
}

void setDeviceFallback(bool on) {
  falls_back.store(on, std::memory_order_relaxed);
}
bool deviceFallback() {
  return falls_back.load(std::memory_order_relaxed);
}
std::vector<FallbackCount> deviceFallbacks() {
  std::lock_guard lock(fallbacks().mutex);
  std::vector<FallbackCount> counts;
  for (const auto& [op, calls] : fallbacks().calls) counts.push_back({op, calls});
  return counts;
}

std::vector<std::string> namesWithDeviceKernels(DeviceType type) {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : tables().kernels[slotOf(type)]) names.emplace_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace wick
