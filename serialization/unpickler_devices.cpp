// Devices of a pickle. Tensors are made and checked on the CPU and moved before anybody else sees them: before
// code runs on them, and at the end.
#include <fmt/format.h>

#include <map>
#include <span>
#include <string>
#include <utility>

#include "core/error.h"
#include "runtime/device_moves.h"
#include "serialization/device_map.h"
#include "serialization/unpickler_objects.h"

namespace wick {

namespace {

// Texts in messages are no longer.
constexpr size_t kShown = 60;

}  // namespace

// Errors of the map are not the file's.
std::optional<Device> Unpickler::mapped(const DeviceHook& map, const std::string& name) {
  try {
    return map(name);
  } catch (const RuntimeError&) {
    map_failed_ = true;
    throw;
  }
}

// `whose` begins the message that a wrong name gets.
Device Unpickler::deviceOf(const std::string& name, const std::string& whose) {
  const std::optional<Device> device = mapped(hooks_.device, name);
  if (!device) {
    fail(
        "{} {}, expected a device such as 'cpu' or 'cuda:0'; of others a map that names them must "
        "say where "
        "their tensors go",
        whose, IValue(name).shortRepr(kShown));
  }
  return *device;
}

IValue Unpickler::makeDevice(const std::vector<IValue>& args) {
  if (args.empty() || args.size() > 2 || !args[0].isString() ||
      (args.size() == 2 && !args[1].isInt())) {
    fail("torch.device without a name and an index");
  }
  std::string name = args[0].toString();
  work(name.size());
  if (args.size() == 2) name += fmt::format(":{}", args[1].toInt());
  const std::optional<Device> device =
      hooks_.device_value ? mapped(hooks_.device_value, name) : deviceNamed(name);
  if (!device)
    fail("torch.device of {}, which is no device that is known", IValue(name).shortRepr(kShown));
  return *device;
}

// (dtype, sizes, strides, requires_grad), of a tensor on the device "meta".
IValue Unpickler::rebuildMeta(const std::vector<IValue>& args) {
  if (args.size() != 4 || !args[0].isInt() || !args[3].isBool()) {
    fail("a tensor on meta is rebuilt without a dtype and a flag");
  }
  const std::optional<DType> dtype = dtypeFromNumber(args[0].toInt());
  if (!dtype || isQuantized(*dtype)) fail("a tensor on meta has the dtype {}", args[0].toInt());
  const DimVector sizes = dims(args[1], "a tensor's sizes");
  const DimVector strides = dims(args[2], "a tensor's strides");
  if (sizes.size() != strides.size()) {
    fail("a tensor has {} sizes and {} strides", sizes.size(), strides.size());
  }
  charge(kTensorMemory);
  Tensor tensor = Tensor::emptyStrided(sizes, strides, *dtype, Device{DeviceType::Meta, -1});
  tensor.setRequiresGrad(args[3].toBool());
  return tensor;
}

// (tensor on the CPU, dtype, name of a device, requires_grad), of a device whose storages PyTorch cannot save.
IValue Unpickler::rebuildFromCpu(const std::vector<IValue>& args) {
  if (args.size() != 4 || !args[0].isTensor() || !args[1].isInt()) {
    fail("a tensor of another device is rebuilt without a tensor, a dtype, a device and a flag");
  }
  const Tensor& from = args[0].toTensor();
  if (from.dtype() != dtypeFromNumber(args[1].toInt())) {
    fail("a tensor of another device has the dtype {} and is rebuilt from {}", args[1].toInt(),
         from.describe());
  }
  return onSavedDevice(from.detach(), args[2], args[3]);
}

// The tensor, which was saved on a device of this name, with its flag requires_grad.
IValue Unpickler::onSavedDevice(Tensor tensor, const IValue& device, const IValue& flag) {
  if (!device.isString() || !flag.isBool()) {
    fail("a tensor of another device is rebuilt without a device and a flag");
  }
  charge(kTensorMemory);
  tensor.setRequiresGrad(flag.toBool());
  work(device.toString().size());
  if (hooks_.device) place(tensor, deviceOf(device.toString(), "a tensor was saved on"));
  return tensor;
}

// The tensor goes to the device, with all that share its storage.
void Unpickler::place(const Tensor& tensor, Device device) {
  if (!tensor.isStrided() || !tensor.device().isCpu() || device.isCpu()) return;
  places_.try_emplace(tensor.storage().get(), Place{tensor.storage(), device, {}});
  charge(3 * sizeof(Tensor));  // vectors may have more room than they use
  unmoved_.push_back(tensor);
}

// A tensor over the storage of `other` goes where that goes.
void Unpickler::placeLike(const Tensor& tensor, const Tensor& other) {
  if (!other.isStrided()) return;
  if (auto it = places_.find(other.storage().get()); it != places_.end()) {
    place(tensor, it->second.device);
  }
}

void Unpickler::moveToPlaces() {
  std::map<std::pair<DeviceType, int8_t>, std::vector<IValue>> rest;
  std::vector<std::pair<Place*, Tensor>> first;
  for (const Tensor& t : std::exchange(unmoved_, {})) {
    if (!t.device().isCpu()) continue;
    Place& place = places_.at(t.storage().get());
    if (place.moved) {
      t.impl()->place(place.moved, t.dtype(), DimVector(t.sizes()), DimVector(t.strides()),
                      t.offset());
    } else {
      rest[{place.device.type, place.device.index}].emplace_back(t);
      first.emplace_back(&place, t);
    }
  }
  for (const auto& [device, tensors] : rest)
    moveTensors(tensors, Device{device.first, device.second});
  for (const auto& [place, tensor] : first) place->moved = tensor.storage();
}

}  // namespace wick
