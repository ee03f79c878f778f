#include "python/fake_devices.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/device_backend.h"
#include "ir/device_kernels.h"
#include "lazy/stand_in.h"
#include "runtime/ops/call.h"

namespace wick::python {
namespace {

bool isFakeTensor(const IValue& v) {
  return v.isTensor() && v.toTensor().defined() && v.toTensor().device().type == DeviceType::Meta;
}

// Returns the value with f(tensor) for each fake in it.
template <class F>
IValue replaced(const IValue& v, const F& f) {
  if (isFakeTensor(v)) return IValue(f(v.toTensor()));
  if (!v.isList() || std::ranges::none_of(v.elements(), isFakeTensor)) return v;
  std::vector<IValue> elements;
  for (const IValue& each : v.elements()) elements.push_back(replaced(each, f));
  return IValue(makeList(v.toList().element_type, std::move(elements)));
}

// Returns the value with fakes for the real tensors in it.
IValue fakedValue(const IValue& v) {
  if (v.isTensor()) {
    const Tensor t = v.toTensor();
    const bool real =
        t.defined() && t.device().type != DeviceType::Meta && t.kind() == TensorKind::Dense;
    return real ? IValue(fakeLike(t)) : v;
  }
  if (!v.isList() || std::ranges::none_of(v.elements(), isReal)) return v;
  std::vector<IValue> elements;
  for (const IValue& each : v.elements()) elements.push_back(fakedValue(each));
  return IValue(makeList(v.toList().element_type, std::move(elements)));
}

// Returns the device of the first fake among the arguments, or of the real tensor that one is to stand for.
std::optional<Device> deviceOfFirst(std::span<const IValue> arguments) {
  for (const IValue& each : arguments) {
    if (each.isTensor() && each.toTensor().defined()) {
      const Device device = each.toTensor().device();
      return device.type == DeviceType::Meta ? device : lazy::standInFor(device);
    }
    if (!each.isList()) continue;
    if (const auto found = deviceOfFirst(each.elements())) return found;
  }
  return std::nullopt;
}

}  // namespace

bool isReal(const IValue& value) {
  if (value.isTensor()) {
    const Tensor t = value.toTensor();
    return t.defined() && t.device().type != DeviceType::Meta;
  }
  return value.isList() && std::ranges::any_of(value.elements(), isReal);
}

Tensor fakeLike(const Tensor& tensor) {
  return Tensor::emptyStrided(tensor.sizes(), tensor.strides(), tensor.dtype(),
                              lazy::standInFor(tensor.device()));
}

void fakeArguments(const LayerCall& call) {
  const std::span<IValue> arguments(call.args, call.num_args);
  // Operators that are given tensors make others beside them, if no device is named.
  const std::optional<Device> beside = deviceOfFirst(arguments);
  const auto& declared = call.op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    IValue& each = arguments[i];
    const bool device = i < declared.size() && declared[i].name == "device";
    if (each.isDevice()) {
      if (each.toDevice().type == DeviceType::Meta) continue;
      each = IValue(lazy::standInFor(deviceFor(each.toDevice())));
    } else if (device && each.isNone()) {
      each = IValue(beside ? *beside : lazy::standInFor(defaultDevice()));
    } else {
      each = fakedValue(each);
    }
  }
}

bool asksForDevice(const LayerCall& call) {
  return std::ranges::any_of(
      std::span<const IValue>(call.args, call.num_args),
      [](const IValue& v) { return v.isDevice() && !lazy::stoodFor(v.toDevice()).isCpu(); });
}

void joinDevices(const LayerCall& call) {
  std::optional<Device> first, cuda;
  bool differ = false;
  const auto look = [&](const Tensor& t) {
    const Device device = t.device();
    if (!first) first = device;
    differ |= device != *first;
    if (!lazy::stoodFor(device).isCpu()) cuda = device;
    return t;
  };
  const std::span<IValue> arguments(call.args, call.num_args);
  for (const IValue& each : arguments) replaced(each, look);
  if (!differ || foreignTensors(call.op, DeviceType::Meta) == ForeignTensors::All) return;
  const ForeignTensors taken = foreignTensors(call.op, DeviceType::CUDA);
  const Device target = taken == ForeignTensors::All ? *first : *cuda;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool written = i < 64 && (call.op.writtenArguments() >> i & 1) != 0;
    const bool tensor = arguments[i].isTensor();
    arguments[i] = replaced(arguments[i], [&](const Tensor& t) {
      if (t.device() == target) return t;
      const bool number = tensor && t.dim() == 0 && lazy::stoodFor(t.device()).isCpu();
      WICK_CHECK(
          !written &&
              (taken == ForeignTensors::All || (taken == ForeignTensors::Numbers && number)),
          "Expected all tensors to be on the same device, but found at least two devices, {} "
          "and {}!",
          lazy::stoodFor(target).str(), lazy::stoodFor(t.device()).str());
      return Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), target);
    });
  }
}

bool moveFake(const LayerCall& call) {
  static const Symbol kCpu = Symbol::aten("cpu"), kCuda = Symbol::aten("cuda");
  static const OperatorHandle kTo("aten::to", "prim_Device");
  const bool cuda = call.op.symbol() == kCuda;
  if (!cuda && call.op.symbol() != kCpu) return false;
  const Device device = cuda ? Device::cuda() : Device();
  call.results[0] = IValue(kTo(call.args[0].toTensor(), device, IValue(), false, false));
  return true;
}

void nameDevices(Graph& graph, Block& block) {
  for (Node* node : block.nodes()) {
    for (Block* inner : node->blocks()) nameDevices(graph, *inner);
    if (node->kind() != prim::Constant) continue;
    const auto value = constantOf(node->output());
    if (!value || !value->isDevice() || value->toDevice().type != DeviceType::Meta) continue;
    const InsertPointGuard before(node);
    node->output()->replaceAllUsesWith(
        graph.insertConstant(IValue(lazy::stoodFor(value->toDevice()))));
  }
}

bool hasFakeConstants(const Block& block) {
  for (const Node* node : block.nodes()) {
    if (node->kind() == prim::Constant) {
      const auto value = constantOf(node->output());
      if (value && isFakeTensor(*value)) return true;
    }
    for (const Block* inner : node->blocks()) {
      if (hasFakeConstants(*inner)) return true;
    }
  }
  return false;
}

}  // namespace wick::python
