// Files of values and tensors.
#include "python/module.h"
#include "python/pybind.h"
#include "serialization/tensor_files.h"
#include "serialization/torch_save.h"

namespace wick::python {

void addFiles(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_load_value", [](const std::string& path) {
    return pythonOf(withoutGil([&] { return loadValue(path); }));
  });
  m.def("_save_value", [](const py::object& object, const std::string& path) {
    const IValue value = valueOf(object);
    const WithoutGil others;
    saveValue(value, path);
  });
  m.def("_value_to_bytes",
        [](const py::object& object) { return py::bytes(saveValueToString(valueOf(object))); });
  m.def("_load_tensors", [](const std::string& path) {
    const NamedTensors tensors = withoutGil([&] { return loadTensors(path); });
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
