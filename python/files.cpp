// Files of values and tensors.
#include <span>
#include <string>

#include "python/device_maps.h"
#include "python/module.h"
#include "python/pybind.h"
#include "serialization/stored_values.h"
#include "serialization/tensor_files.h"
#include "serialization/torch_save.h"

namespace wick::python {

void addFiles(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_load_value", [](const py::object& source, const py::object& map_location) {
    const auto text = source.cast<std::string>();
    const bool in_memory = py::isinstance<py::bytes>(source);
    const DeviceMap devices = deviceMapOf(map_location);
    return pythonOf(withoutGil([&] {
      if (!in_memory) return loadValue(text, {}, devices);
      return loadValue(copyBytes(std::as_bytes(std::span(text.data(), text.size()))), "<memory>",
                       {}, devices);
    }));
  });
  m.def("_save_value", [](const py::object& object, const std::string& path) {
    const IValue value = valueOf(object);
    const WithoutGil others;
    saveValue(value, path, /*keep_requires_grad=*/true);
  });
  m.def("_value_to_bytes", [](const py::object& object) {
    return py::bytes(saveValueToString(valueOf(object), /*keep_requires_grad=*/true));
  });
  m.def("_load_tensors", [](const std::string& path, const py::object& map_location) {
    const DeviceMap devices = deviceMapOf(map_location);
    const NamedTensors tensors = withoutGil([&] { return loadTensors(path, {}, devices); });
    py::dict out;
    for (const auto& [name, tensor] : tensors) out[py::str(name)] = given(tensorObject(tensor));
    return out;
  });
  m.def("_save_tensors", [](const py::dict& tensors, const std::string& path) {
    const NamedTensors named = namedTensors(valueOf(tensors));
    const WithoutGil others;
    saveTensors(named, path);
  });
}

}  // namespace wick::python
