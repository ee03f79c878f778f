// The devices that tensors of a file go to, by the names of the devices that they were saved on.
//
// Files say of each tensor where it was ("cuda:0"), and the code of archives names devices in constants,
// torch.device("cuda:0"). Both follow one map, so that a program finds its tensors where it looks for them. This is the
// one place that decides.
//
//   wick::load("model.pt");                                    // as saved, as far as this machine has the devices
//   wick::load("model.pt", {.devices = wick::Device("cuda:1")});  // all of it there
//   wick::load("model.pt", {.devices = wick::DeviceMap({{"cuda:3", wick::Device("cuda:0")}})});
//   wick::load("model.pt", {.devices = [](const std::string& name) -> std::optional<wick::Device> { … }});
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/device.h"

#pragma GCC visibility push(default)

namespace wick {

// Tensors on "meta" have no memory, so they stay there whatever the map says. Sparse tensors stay on
// the CPU, where alone they exist. The function is called by the thread that loads.
class DeviceMap {
 public:
  // The name is as in the file: "cpu", "cuda:0", "xla:1". std::nullopt: as without a map.
  using Function = std::function<std::optional<Device>(const std::string& name)>;

  // No map: each tensor goes to the device that it was saved on, or to the CPU when this machine has no such
  // device or the engine knows none of its type ("mps", "xla:0").
  DeviceMap() = default;
  // All tensors go to one device, and constants of code, those of the CPU too, are that device.
  DeviceMap(Device device) : all_(device) {}
  // Other names than the keys: as without a map.
  explicit DeviceMap(std::map<std::string, Device> devices);
  // An empty function is no map.
  template <class F>
  requires(std::is_invocable_r_v<std::optional<Device>, F&, const std::string&>)
      DeviceMap(F function)
      : function_(std::move(function)) {}

  // Returns the device for a tensor that was saved on the device of this name, std::nullopt for text that names no device
  // that is known, unless a table or a function knows it. RuntimeError when the map names a device that this
  // machine lacks.
  std::optional<Device> find(const std::string& name) const;
  // RuntimeError when all goes to a device that this machine lacks.
  void check() const;

 private:
  std::optional<Device> all_;
  Function function_;
};

// The device that the text names, whether there is such a one or not. std::nullopt for those of types that the engine
// does not know, and for text that names none.
std::optional<Device> deviceNamed(const std::string& name);

}  // namespace wick

#pragma GCC visibility pop
