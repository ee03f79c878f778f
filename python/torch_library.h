// PyTorch as a Python program sees it. Nothing of it is linked: all is done by calls of Python.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "capture/bytecode/object.h"
#include "capture/world.h"
#include "core/tensor.h"
#include "python/torch_autocast.h"

namespace wick::python {

// Objects of the module `torch`, and their counterparts in Wick. Lives as long as the process; the
// caller holds the GIL.
class TorchLibrary {
 public:
  // Returns the library once the program has imported it, null before. Throws PythonError where it
  // has no parts that each version of it has.
  static const TorchLibrary* loaded();

  bool isTensor(PyObject* object) const { return isTensorType(Py_TYPE(object)); }
  // Returns whether the class is torch.Tensor or derived from it.
  bool isTensorType(PyTypeObject* type) const {
    return type == tensor_type || PyType_IsSubtype(type, tensor_type);
  }
  // Returns whether tensors of the class are captured: torch.Tensor and torch.nn.Parameter.
  bool isPlainTensorType(PyTypeObject* type) const {
    return type == tensor_type || type == parameter_type;
  }
  // Returns whether it is a dtype, device, layout or memory format.
  bool isConstant(PyObject* object) const;

  capture::Callee calleeOf(PyObject* function) const;
  // Returns Wick's function that does the same as one of PyTorch's, borrowed; null if there is none.
  PyObject* ownFunction(PyObject* function) const;

  // Returns Wick's form of a constant, and of constants in containers; other objects as they are.
  capture::Object toOwn(PyObject* object) const;
  // Does the reverse. Tensors stay Wick's.
  capture::Object fromOwn(PyObject* object) const;
  std::optional<DType> dtypeOf(PyObject* object) const;

  // Calls a function of PyTorch's with the arguments.
  template <class... Arguments>
  static capture::Object call(const capture::Object& function, Arguments*... arguments) {
    return capture::Object::checked(
        PyObject_CallFunctionObjArgs(function.get(), arguments..., nullptr));
  }

  PyTypeObject* tensor_type = nullptr;
  PyTypeObject* parameter_type = nullptr;
  PyTypeObject* size_type = nullptr;
  capture::Object strided, uint8, bool_dtype;
  capture::Object module, from_numpy;
  capture::Object to_dlpack, from_dlpack, foreach_zero, get_rng_state, set_rng_state;
  capture::Object grad_mode, set_grad_mode, default_dtype;
  const TorchAutocast& autocast() const { return autocast_; }

 private:
  // A place in Wick where a function is looked up when it is first asked for.
  struct Counterpart {
    std::string module;  // "torch.nn.functional"; empty: a member of wick.Tensor
    std::string name;
    bool asked = false;
    capture::Object found;
  };

  explicit TorchLibrary(PyObject* module);
  void addConstants(PyObject* module);
  void addFunctions(PyObject* from, const char* module);
  void addMethods();
  void addPacket(PyObject* function) const;
  void addCallees(PyObject* module);
  capture::Object mapped(PyObject* object, bool to_own, int depth) const;
  capture::Object mappedTuple(PyObject* tuple, bool to_own, int depth) const;

  PyTypeObject *dtype_type_ = nullptr, *device_type_ = nullptr, *layout_type_ = nullptr,
               *format_type_ = nullptr;
  PyTypeObject *float_limits_type_ = nullptr, *integer_limits_type_ = nullptr;
  capture::Object return_types_, packet_type_;
  std::unordered_map<PyObject*, capture::Object> own_constants_, foreign_constants_;
  mutable std::unordered_map<PyObject*, Counterpart> counterparts_;
  TorchAutocast autocast_;

  std::unordered_map<PyObject*, capture::Callee> callees_;
  mutable std::vector<capture::Object> kept_;
};

}  // namespace wick::python
