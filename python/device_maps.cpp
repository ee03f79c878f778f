#include "python/device_maps.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "python/plain_types.h"

namespace wick::python {
namespace {

std::optional<Device> ask(const SharedObject& function, const std::string& name) {
  const WithGil gil;
  if (!gil.usable()) return std::nullopt;
  try {
    // The name comes from a file: it may be anything.
    const Owned text = checked(PyUnicode_DecodeUTF8(
        name.data(), static_cast<Py_ssize_t>(name.size()), "backslashreplace"));
    const Owned result = checked(PyObject_CallOneArg(function.get(), text.get()));
    if (result.get() == Py_None) return std::nullopt;
    return deviceOf(result.get());
  } catch (const PythonError&) {
    throwFromPython();
  }
}

}  // namespace

DeviceMap deviceMapOf(const py::handle& map_location) {
  if (map_location.is_none()) return {};
  if (PyDict_Check(map_location.ptr())) {
    std::map<std::string, Device> devices;
    for (const auto& [name, device] : py::reinterpret_borrow<py::dict>(map_location)) {
      devices[isDevice(name.ptr()) ? deviceOf(name.ptr()).str() : textIn(name)] =
          deviceOf(device.ptr());
    }
    return DeviceMap(std::move(devices));
  }
  if (PyCallable_Check(map_location.ptr()) != 0) {
    return [held = std::make_shared<SharedObject>(Owned::share(map_location.ptr()))](
               const std::string& name) { return ask(*held, name); };
  }
  if (!isDevice(map_location.ptr()) && !PyUnicode_Check(map_location.ptr()) &&
      !PyLong_Check(map_location.ptr())) {
    raise(PyExc_TypeError,
          fmt::format(
              "map_location: expected a device, a dict of devices, a function or None, got {}",
              Py_TYPE(map_location.ptr())->tp_name));
  }
  return deviceOf(map_location.ptr());
}

}  // namespace wick::python
