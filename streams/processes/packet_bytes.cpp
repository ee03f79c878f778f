#include "streams/processes/packet_bytes.h"

#include <map>
#include <memory>
#include <span>
#include <utility>

#include "core/device_backend.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"
#include "streams/schedule/stage_devices.h"

namespace wick::streams {

namespace {

// On the CPU, without memory of others.
Tensor compact(const Tensor& given) {
  const Tensor here = given.device().isCpu() ? given : moveTo(given, Device());
  const bool has_more =
      here.kind() == TensorKind::Dense && here.storage() &&
      here.storage()->bytes() > static_cast<size_t>(here.numel()) * itemSize(here.dtype());
  return has_more ? here.clone() : here;
}

}  // namespace

std::string valueBytes(const IValue& value) {
  std::map<const void*, Tensor> known;
  Packet packet{value};
  const auto once = [&](const Tensor& given) {
    Tensor& made = known[given.impl()];
    if (!made.defined()) made = compact(given);
    return made;
  };
  replaceTensors(packet, once, /*keeps_names=*/false);
  return saveValueToString(packet[0]);
}

IValue valueOf(std::string bytes, const std::string& name) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  const std::span data(reinterpret_cast<std::byte*>(owner->data()), owner->size());
  return loadValue(Bytes{data, owner}, name, {}, Device());
}

}  // namespace wick::streams
