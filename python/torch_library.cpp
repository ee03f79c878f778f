#include "python/torch_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "capture/bytecode/instance.h"
#include "capture/compiled_call.h"
#include "python/captured_tensors.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Callee;
using capture::Object;

constexpr int kMaxDepth = 50;  // of containers

Object attribute(PyObject* object, const char* name) {
  return Object::checked(PyObject_GetAttrString(object, name));
}

// Returns null where there is no such attribute.
Object attributeIfAny(PyObject* object, const char* name) {
  Object found = Object::own(PyObject_GetAttrString(object, name));
  if (!found) PyErr_Clear();
  return found;
}

PyTypeObject* typeNamed(PyObject* module, const char* name) {
  const Object found = attribute(module, name);
  if (!PyType_Check(found.get())) {
    PyErr_Format(PyExc_RuntimeError, "wick.compile: torch.%s is no class", name);
    throw capture::PythonError();
  }
  // Classes of a module that stays loaded.
  return reinterpret_cast<PyTypeObject*>(Object(found).leak());
}

bool isFunction(PyObject* object) {
  return PyCFunction_Check(object) || PyFunction_Check(object) ||
         PyObject_TypeCheck(object, &PyMethodDescr_Type);
}

std::string textOf(PyObject* object) {
  const Object text = Object::checked(PyObject_Str(object));
  const char* const utf8 = PyUnicode_AsUTF8(text.get());
  if (!utf8) throw capture::PythonError();
  return utf8;
}

// Returns whether a function of PyTorch's that is written in C++ has a counterpart that does no more
// than call operators.
bool isComposed(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "cpu", "is_complex", "is_floating_point", "ndimension", "nelement",
      "new", "nonzero",    "new_tensor",        "numel",      "type"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Returns a submodule of `wick`: "torch.nn" is wick.torch.nn.
Object ownModule(const char* path) {
  static const Object& kOwn = forever(Object::checked(PyImport_ImportModule("wick")));
  Object at = kOwn;
  std::string_view rest = path;
  while (!rest.empty()) {
    const size_t dot = rest.find('.');
    at = attribute(at.get(), std::string(rest.substr(0, dot)).c_str());
    rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  }
  return at;
}

}  // namespace

const TorchLibrary* TorchLibrary::loaded() {
  static const TorchLibrary* library = nullptr;
  if (library) return library;
  static const Object& kName = forever(Object::checked(PyUnicode_InternFromString("torch")));
  const Object module = Object::own(PyImport_GetModule(kName.get()));
  if (!module) {
    if (PyErr_Occurred()) throw capture::PythonError();
    return nullptr;
  }
  // While it is being imported it has not all parts; Wick's own namespace may carry the name.
  const Object nn = attributeIfAny(module.get(), "nn"),
               kernels = attributeIfAny(module.get(), "_C");
  if (!nn || !kernels || !attributeIfAny(nn.get(), "Parameter")) return nullptr;
  const Object spec = attributeIfAny(module.get(), "__spec__");
  const Object busy = spec ? attributeIfAny(spec.get(), "_initializing") : Object();
  if (busy && busy.get() == Py_True) return nullptr;
  library = new TorchLibrary(module.get());
  return library;
}

TorchLibrary::TorchLibrary(PyObject* module) : autocast_(module) {
  const Object kernels = attribute(module, "_C"), nn = attribute(module, "nn");
  tensor_type = typeNamed(module, "Tensor");
  parameter_type = typeNamed(nn.get(), "Parameter");
  size_type = typeNamed(module, "Size");
  dtype_type_ = typeNamed(module, "dtype");
  device_type_ = typeNamed(module, "device");
  layout_type_ = typeNamed(module, "layout");
  format_type_ = typeNamed(module, "memory_format");
  float_limits_type_ = typeNamed(module, "finfo");
  integer_limits_type_ = typeNamed(module, "iinfo");
  this->module = Object::share(module);
  from_numpy = attribute(module, "from_numpy");
  strided = attribute(module, "strided");
  uint8 = attribute(module, "uint8");
  bool_dtype = attribute(module, "bool");
  to_dlpack = attribute(kernels.get(), "_to_dlpack");
  from_dlpack = attribute(kernels.get(), "_from_dlpack");
  foreach_zero = attribute(module, "_foreach_zero_");
  const Object generator = attribute(module, "default_generator");
  get_rng_state = attribute(generator.get(), "get_state");
  set_rng_state = attribute(generator.get(), "set_state");

  grad_mode = attribute(module, "is_grad_enabled");
  set_grad_mode = attribute(kernels.get(), "_set_grad_enabled");
  default_dtype = attribute(module, "get_default_dtype");
  return_types_ = attributeIfAny(module, "return_types");
  packet_type_ = attributeIfAny(attribute(module, "_ops").get(), "OpOverloadPacket");
  addConstants(module);
  addCallees(module);
  addFunctions(module, "torch");
  const Object functional = attribute(nn.get(), "functional");
  addFunctions(functional.get(), "torch.nn.functional");
  // Kernels take what operators take; functions of that name may take something else.
  addFunctions(attribute(kernels.get(), "_nn").get(), "torch.ops.aten");
  for (const char* name : {"torch.special", "torch.linalg", "torch.fft"}) {
    addFunctions(attribute(module, name + 6).get(), name);
  }
  addFunctions(attribute(kernels.get(), "_VariableFunctions").get(), "torch.ops.aten");
  addMethods();
}

void TorchLibrary::addConstants(PyObject* module) {
  const Object own = ownModule("torch");
  const Object names = Object::checked(PyObject_Dir(module));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    const char* const name = PyUnicode_AsUTF8(PyList_GET_ITEM(names.get(), i));
    const Object found = attribute(module, name);
    PyTypeObject* const type = Py_TYPE(found.get());
    if (type != dtype_type_ && type != layout_type_ && type != format_type_) continue;
    const Object counterpart = attributeIfAny(own.get(), name);
    if (!counterpart || !isNamedNumber(counterpart.get())) continue;
    own_constants_[found.get()] = counterpart;
    foreign_constants_.emplace(counterpart.get(), found);
    kept_.push_back(found);
  }
}

void TorchLibrary::addFunctions(PyObject* from, const char* module) {
  const Object names = Object::checked(PyObject_Dir(from));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    const char* const name = PyUnicode_AsUTF8(PyList_GET_ITEM(names.get(), i));
    if (std::string_view(name).starts_with("__")) continue;
    const Object found = attributeIfAny(from, name);
    if (!found || !isFunction(found.get()) || callees_.count(found.get()) != 0) continue;
    const char* own_module = module;
    // A variable that is left over from a loop.
    if (std::string_view(name) == "obj") continue;
    // These take numbers for reductions, where Wick's take texts as those of torch.nn.functional.
    if (std::string_view(name).ends_with("_loss") && PyCFunction_Check(found.get())) {
      own_module = "torch.ops.aten";
    }
    if (counterparts_.emplace(found.get(), Counterpart{own_module, name, false, {}}).second) {
      kept_.push_back(found);
    }
  }
}

void TorchLibrary::addMethods() {
  const Object names = Object::checked(PyObject_Dir(reinterpret_cast<PyObject*>(tensor_type)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* const name = PyList_GET_ITEM(names.get(), i);
    PyObject* const found = capture::findTypeItem(tensor_type, name);
    if (!found || !isFunction(found) || callees_.count(found) != 0) continue;
    const char* const text = PyUnicode_AsUTF8(name);
    if (std::string_view(text).starts_with("__")) continue;
    counterparts_.emplace(found, Counterpart{"", text, false, {}});
    kept_.push_back(Object::share(found));
  }
  // Methods in C++ that are called by those in Python.
  PyTypeObject* const base = tensor_type->tp_base;
  const Object below = Object::checked(PyObject_Dir(reinterpret_cast<PyObject*>(base)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(below.get()); ++i) {
    PyObject* const name = PyList_GET_ITEM(below.get(), i);
    PyObject* const found = capture::findTypeItem(base, name);
    const char* const text = PyUnicode_AsUTF8(name);
    if (!found || !isFunction(found) || callees_.count(found) != 0 ||
        std::string_view(text).starts_with("__")) {
      continue;
    }
    if (!counterparts_.emplace(found, Counterpart{"torch.ops.aten", text, false, {}}).second)
      continue;
    kept_.push_back(Object::share(found));
  }
}

void TorchLibrary::addCallees(PyObject* module) {
  const Object kernels = attribute(module, "_C");
  const auto add = [&](PyObject* from, const char* name, Callee kind) {
    const Object found = attributeIfAny(from, name);
    if (!found) return;
    callees_[found.get()] = kind;
    kept_.push_back(found);
  };
  add(module, "is_grad_enabled", Callee::kGradMode);
  add(kernels.get(), "_set_grad_enabled", Callee::kSetGradMode);
  for (const char* name :
       {"get_default_dtype", "is_inference_mode_enabled", "are_deterministic_algorithms_enabled"}) {
    add(module, name, Callee::kPure);
  }
  for (const Object& each : autocast_.functions()) {
    if (each) callees_[each.get()] = Callee::kAutocast;
  }
  // It looks for installed packages.
  Object common = Object::share(module);
  for (const char* name : {"cuda", "amp", "common"}) {
    if (common) common = attributeIfAny(common.get(), name);
  }
  if (common) add(common.get(), "amp_definitely_not_available", Callee::kPure);
  for (const char* name :
       {"_get_tracing_state", "_has_torch_function", "_has_torch_function_unary",
        "_has_torch_function_variadic", "_is_torch_function_enabled", "_log_api_usage_once",
        "_is_tracing", "_get_cudnn_enabled", "_get_mkldnn_enabled"}) {
    add(kernels.get(), name, Callee::kPure);
  }
  // They are known, and change or tell what graphs do not hold.
  for (const char* name : {"backward", "requires_grad_", "retain_grad", "register_hook", "tolist",
                           "numpy", "data_ptr", "set_", "resize_", "resize_as_"}) {
    const Object text = Object::checked(PyUnicode_InternFromString(name));
    PyObject* const found = capture::findTypeItem(tensor_type, text.get());
    if (!found) continue;
    callees_[found] = Callee::kBreak;
    kept_.push_back(Object::share(found));
  }
  add(reinterpret_cast<PyObject*>(tensor_type), "item", Callee::kItem);
  if (const Object checkpoints = Object::own(PyImport_ImportModule("torch.utils.checkpoint"))) {
    add(checkpoints.get(), "_checkpoint_without_reentrant", Callee::kCheckpoint);
    add(checkpoints.get(), "CheckpointFunction", Callee::kCheckpoint);
    // Its hooks see no tensor that a graph saves: if it is no part of a graph, nothing in it is.
    const Object plain = attributeIfAny(checkpoints.get(), "_checkpoint_without_reentrant");
    if (plain && PyFunction_Check(plain.get())) {
      capture::disableCode(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(plain.get())), true);
    }
  }
  PyErr_Clear();
  const Object function = attributeIfAny(kernels.get(), "_FunctionBase");
  if (!function || !PyType_Check(function.get())) return;
  const Object apply = Object::checked(PyUnicode_InternFromString("apply"));
  PyObject* const found =
      capture::findTypeItem(reinterpret_cast<PyTypeObject*>(function.get()), apply.get());
  if (!found) return;
  callees_[found] = Callee::kApply;
  kept_.push_back(Object::share(found));
}

bool TorchLibrary::isConstant(PyObject* object) const {
  PyTypeObject* const type = Py_TYPE(object);
  return type == dtype_type_ || type == device_type_ || type == layout_type_ ||
         type == format_type_ || type == float_limits_type_ || type == integer_limits_type_;
}

// Notes the counterpart of torch.ops.NAMESPACE.NAME, objects that are made when they are asked for.
void TorchLibrary::addPacket(PyObject* function) const {
  if (reinterpret_cast<PyObject*>(Py_TYPE(function)) != packet_type_.get()) return;
  const Object name = attributeIfAny(function, "_qualified_op_name");
  const char* const text =
      name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  const std::string_view all = text ? text : "";
  const size_t at = all.find("::");
  if (all.substr(0, at) != "aten" && all.substr(0, at) != "torchvision") return;
  counterparts_.emplace(function, Counterpart{"torch.ops." + std::string(all.substr(0, at)),
                                              std::string(all.substr(at + 2)),
                                              false,
                                              {}});
  kept_.push_back(Object::share(function));
}

PyObject* TorchLibrary::ownFunction(PyObject* function) const {
  auto known = counterparts_.find(function);
  if (known == counterparts_.end()) {
    addPacket(function);
    known = counterparts_.find(function);
  }
  if (known == counterparts_.end()) return nullptr;
  Counterpart& it = known->second;
  if (!it.asked) {
    it.asked = true;
    const Object from = it.module.empty()
                            ? Object::share(reinterpret_cast<PyObject*>(python::tensor_type))
                            : ownModule(it.module.c_str());
    it.found = attributeIfAny(from.get(), it.name.c_str());
    // Members of the namespace that are more than operators are evaluated as PyTorch has them.
    if (it.found && ownTensors()->calleeOf(it.found.get()) != Callee::kOperator &&
        !isComposed(it.name)) {
      it.found = {};
    }
  }
  return it.found.get();
}

Callee TorchLibrary::calleeOf(PyObject* function) const {
  if (const auto found = callees_.find(function); found != callees_.end()) return found->second;
  if (ownFunction(function)) return Callee::kOperator;
  if (function == reinterpret_cast<PyObject*>(device_type_) ||
      function == reinterpret_cast<PyObject*>(float_limits_type_) ||
      function == reinterpret_cast<PyObject*>(integer_limits_type_)) {
    return Callee::kPure;
  }
  if (PyType_Check(function) && isTensorType(reinterpret_cast<PyTypeObject*>(function))) {
    return Callee::kBreak;
  }
  return Callee::kUnknown;
}

std::optional<DType> TorchLibrary::dtypeOf(PyObject* object) const {
  const auto found = own_constants_.find(object);
  if (found == own_constants_.end()) return std::nullopt;
  return python::dtypeOf(found->second.get());
}

Object TorchLibrary::toOwn(PyObject* object) const {
  return mapped(object, true, 0);
}

Object TorchLibrary::fromOwn(PyObject* object) const {
  return mapped(object, false, 0);
}

Object TorchLibrary::mappedTuple(PyObject* tuple, bool to_own, int depth) const {
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  Object made = Object::checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(made.get(), i, mapped(PyTuple_GET_ITEM(tuple, i), to_own, depth + 1).leak());
  }
  if (to_own && Py_TYPE(tuple) == size_type) {
    PyTypeObject* const own = Py_TYPE(Object::checked(sizeObject(DimVector{})).get());
    return call(Object::share(reinterpret_cast<PyObject*>(own)), made.get());
  }
  if (to_own || PyTuple_CheckExact(tuple)) return made;
  if (isSize(tuple)) return call(Object::share(reinterpret_cast<PyObject*>(size_type)), made.get());
  // Results with names: torch.return_types.max.
  const std::string name = Py_TYPE(tuple)->tp_name;
  const Object type =
      return_types_ ? attributeIfAny(return_types_.get(), name.substr(name.rfind('.') + 1).c_str())
                    : Object();
  if (!type) breakGraph(fmt::format("a result of the class {}", name));
  return call(type, made.get());
}

Object TorchLibrary::mapped(PyObject* object, bool to_own, int depth) const {
  if (depth > kMaxDepth) breakGraph("values are nested too deeply");
  const auto& constants = to_own ? own_constants_ : foreign_constants_;
  if (const auto found = constants.find(object); found != constants.end()) return found->second;
  if (to_own && Py_TYPE(object) == device_type_) {
    const Object text = Object::checked(PyUnicode_FromString(textOf(object).c_str()));
    return Object::checked(deviceObject(python::deviceOf(text.get())));
  }
  if (!to_own && isDevice(object)) {
    const Object text = Object::checked(PyUnicode_FromString(textOf(object).c_str()));
    return call(Object::share(reinterpret_cast<PyObject*>(device_type_)), text.get());
  }
  if (to_own && isConstant(object)) {
    breakGraph(fmt::format("{}, which Wick does not have", textOf(object)));
  }
  if (!to_own && isNamedNumber(object) && !PyType_Check(object)) {
    breakGraph(fmt::format("{}, which PyTorch does not have", textOf(object)));
  }
  if (PyTuple_Check(object)) return mappedTuple(object, to_own, depth);
  if (PyList_CheckExact(object)) {
    Object made = Object::checked(PyList_New(PyList_GET_SIZE(object)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(made.get()); ++i) {
      PyList_SET_ITEM(made.get(), i, mapped(PyList_GET_ITEM(object, i), to_own, depth + 1).leak());
    }
    return made;
  }
  if (PyDict_CheckExact(object)) {
    Object made = Object::checked(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
      if (PyDict_SetItem(made.get(), key, mapped(value, to_own, depth + 1).get()) < 0) {
        throw capture::PythonError();
      }
    }
    return made;
  }
  return Object::share(object);
}

}  // namespace wick::python
