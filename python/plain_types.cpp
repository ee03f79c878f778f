#include "python/plain_types.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "core/generator_state.h"
#include "python/module.h"

namespace wick::python {
namespace {

std::array<PyTypeObject*, kNumberKinds> number_types{};
std::map<std::pair<NumberKind, int64_t>, PyObject*>& numbers() {
  static auto* objects = new std::map<std::pair<NumberKind, int64_t>, PyObject*>();
  return *objects;
}
PyTypeObject* device_type = nullptr;
PyTypeObject* generator_type = nullptr;
PyTypeObject* size_type = nullptr;

template <class T>
T* as(PyObject* object) {
  return reinterpret_cast<T*>(object);
}

PyObject* text(const std::string& value) {
  return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
}

void freeObject(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// ---- dtype and its kind ----

NumberKind kindOf(PyObject* self) {
  for (size_t i = 0; i < kNumberKinds; ++i) {
    if (Py_TYPE(self) == number_types[i]) return static_cast<NumberKind>(i);
  }
  return NumberKind::DType;
}

PyObject* numberRepr(PyObject* self) {
  return guarded([&] { return text(fmt::format("torch.{}", as<NumberObject>(self)->name)); });
}

PyObject* numberReduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Owned module = checked(PyImport_ImportModule("wick._C"));
    const Owned maker = checked(PyObject_GetAttrString(module.get(), "_number"));
    return Py_BuildValue("(O(iL))", maker.get(), static_cast<int>(kindOf(self)),
                         static_cast<long long>(as<NumberObject>(self)->number));
  });
}

PyObject* dtypeProperty(PyObject* self, void* which) {
  return guarded([&]() -> PyObject* {
    const DType dtype = *anyDTypeFromNumber(as<NumberObject>(self)->number);
    switch (reinterpret_cast<intptr_t>(which)) {
      case 0:
        return PyBool_FromLong(isFloating(dtype));
      case 1:
        return PyBool_FromLong(isComplex(dtype));
      case 2:
        return PyBool_FromLong(!isIntegral(dtype, true) ||
                               (dtype != DType::Byte && dtype != DType::Bool));
      default:
        return PyLong_FromSize_t(itemSize(dtype));
    }
  });
}

PyMethodDef number_methods[] = {
    {"__reduce__", numberReduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef dtype_properties[] = {
    {"is_floating_point", dtypeProperty, nullptr, nullptr, reinterpret_cast<void*>(0)},
    {"is_complex", dtypeProperty, nullptr, nullptr, reinterpret_cast<void*>(1)},
    {"is_signed", dtypeProperty, nullptr, nullptr, reinterpret_cast<void*>(2)},
    {"itemsize", dtypeProperty, nullptr, nullptr, reinterpret_cast<void*>(3)},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyTypeObject* makeType(PyObject* module, const char* name, size_t bytes, PyType_Slot* slots,
                       unsigned flags = 0, PyObject* base = nullptr) {
  PyType_Spec spec = {name, static_cast<int>(bytes), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT) | flags, slots};
  const Owned bases = base ? checked(PyTuple_Pack(1, base)) : Owned();
  Owned type = checked(PyType_FromSpecWithBases(&spec, bases.get()));
  check(PyModule_AddObjectRef(module, std::string(name).substr(5).c_str(), type.get()));
  return as<PyTypeObject>(type.leak());
}

void addNumber(NumberKind kind, int64_t number, const char* name) {
  PyTypeObject* type = number_types[static_cast<size_t>(kind)];
  auto* object = PyObject_New(NumberObject, type);
  if (!object) throw PythonError();
  object->number = number;
  object->name = name;
  numbers()[{kind, number}] = reinterpret_cast<PyObject*>(object);
}

void addNumbers(PyObject* module) {
  static const char* const kNames[] = {"wick.dtype", "wick.layout", "wick.memory_format",
                                       "wick.qscheme"};
  for (size_t i = 0; i < kNumberKinds; ++i) {
    PyType_Slot slots[] = {
        {Py_tp_repr, reinterpret_cast<void*>(numberRepr)},
        {Py_tp_methods, number_methods},
        {i == 0 ? Py_tp_getset : 0, i == 0 ? dtype_properties : nullptr},
        {0, nullptr},
    };
    number_types[i] =
        makeType(module, kNames[i], sizeof(NumberObject), slots, Py_TPFLAGS_DISALLOW_INSTANTIATION);
  }
#define WICK_DTYPE(type, name, text, number) addNumber(NumberKind::DType, number, text);
  WICK_FORALL_DTYPES(WICK_DTYPE)
  WICK_FORALL_QUANTIZED_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  addNumber(NumberKind::Layout, 0, "strided");
  addNumber(NumberKind::Layout, 1, "sparse_coo");
  addNumber(NumberKind::Layout, 2, "sparse_csr");
  addNumber(NumberKind::Layout, 3, "_mkldnn");
  addNumber(NumberKind::Layout, 4, "sparse_csc");
  addNumber(NumberKind::Layout, 5, "sparse_bsr");
  addNumber(NumberKind::Layout, 6, "sparse_bsc");
  addNumber(NumberKind::MemoryFormat, 0, "contiguous_format");
  addNumber(NumberKind::MemoryFormat, 1, "preserve_format");
  addNumber(NumberKind::MemoryFormat, 2, "channels_last");
  addNumber(NumberKind::MemoryFormat, 3, "channels_last_3d");
  addNumber(NumberKind::QScheme, 0, "per_tensor_affine");
  addNumber(NumberKind::QScheme, 1, "per_channel_affine");
  addNumber(NumberKind::QScheme, 2, "per_tensor_symmetric");
  addNumber(NumberKind::QScheme, 3, "per_channel_symmetric");
  addNumber(NumberKind::QScheme, 4, "per_channel_affine_float_qparams");
  for (const auto& [key, object] : numbers()) {
    check(PyModule_AddObjectRef(module, as<NumberObject>(object)->name, object));
  }
}

PyObject* makeNumber(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    int kind = 0;
    long long number = 0;
    if (!PyArg_ParseTuple(arguments, "iL", &kind, &number)) return nullptr;
    if (kind < 0 || static_cast<size_t>(kind) >= kNumberKinds)
      raise(PyExc_ValueError, fmt::format("there is no kind {} of numbers", kind));
    return Py_NewRef(numberObject(static_cast<NumberKind>(kind), number));
  });
}

// ---- device ----

PyObject* newDevice(PyTypeObject*, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* type = nullptr;
    int index = -1;
    if (!PyArg_ParseTupleAndKeywords(arguments, kwargs, "O|i:device", const_cast<char**>(names),
                                     &type, &index)) {
      return nullptr;
    }
    Device device = deviceOf(type);
    if (PyTuple_Size(arguments) + (kwargs ? PyDict_Size(kwargs) : 0) > 1) {
      if (device.index != -1) raise(PyExc_RuntimeError, "device: the index is given twice");
      if (index < 0 || index > 127)
        raise(PyExc_RuntimeError, fmt::format("device: index {} is out of range", index));
      device.index = static_cast<int8_t>(index);
    }
    return deviceObject(device);
  });
}

PyObject* deviceRepr(PyObject* self) {
  return guarded([&] {
    const Device device = as<DeviceObject>(self)->device;
    const std::string full = device.str();
    const std::string type = full.substr(0, full.find(':'));
    return text(device.index < 0 ? fmt::format("device(type='{}')", type)
                                 : fmt::format("device(type='{}', index={})", type, device.index));
  });
}

PyObject* deviceStr(PyObject* self) {
  return guarded([&] { return text(as<DeviceObject>(self)->device.str()); });
}

PyObject* compareDevices(PyObject* a, PyObject* b, int op) {
  if (!isDevice(a) || !isDevice(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const bool equal = as<DeviceObject>(a)->device == as<DeviceObject>(b)->device;
  return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t hashDevice(PyObject* self) {
  const Device device = as<DeviceObject>(self)->device;
  return static_cast<Py_hash_t>(device.type) * 257 + device.index + 1;
}

PyObject* deviceKind(PyObject* self, void*) {
  return guarded([&] {
    const std::string full = as<DeviceObject>(self)->device.str();
    return text(full.substr(0, full.find(':')));
  });
}

PyObject* deviceIndex(PyObject* self, void*) {
  const Device device = as<DeviceObject>(self)->device;
  if (device.index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device.index);
}

PyObject* deviceReduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Owned name = checked(deviceStr(self));
    return Py_BuildValue("(O(O))", reinterpret_cast<PyObject*>(Py_TYPE(self)), name.get());
  });
}

PyGetSetDef device_properties[] = {
    {"type", deviceKind, nullptr, nullptr, nullptr},
    {"index", deviceIndex, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef device_methods[] = {
    {"__reduce__", deviceReduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// ---- Generator ----

PyObject* newGenerator(PyTypeObject*, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &device)) {
      return nullptr;
    }
    if (device && !deviceOf(device).isCpu()) {
      raise(PyExc_RuntimeError, "Generator: only the CPU has one");
    }
    return generatorObject(makeRef<GeneratorObject>(67280421310721ULL));
  });
}

void freeGenerator(PyObject* self) {
  as<GeneratorHandle>(self)->generator.~GeneratorRef();
  freeObject(self);
}

GeneratorObject& generatorIn(PyObject* self) {
  return *as<GeneratorHandle>(self)->generator;
}

PyObject* manualSeed(PyObject* self, PyObject* seed) {
  return guarded([&]() -> PyObject* {
    generatorIn(self).seed(seedOf(seed));
    return Py_NewRef(self);
  });
}

PyObject* initialSeed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generatorIn(self).currentSeed());
}

PyObject* generatorDevice(PyObject*, void*) {
  return guarded([] { return deviceObject(Device{}); });
}

constexpr const char* kGeneratorState = "wick.generator_state";

// The state as something that only set_state can read.
PyObject* getState(PyObject* self, PyObject*) {
  return guarded([&] {
    auto* state = new GeneratorState(GeneratorState::of(generatorIn(self)));
    PyObject* capsule = PyCapsule_New(state, kGeneratorState, [](PyObject* held) {
      delete static_cast<GeneratorState*>(PyCapsule_GetPointer(held, kGeneratorState));
    });
    if (!capsule) delete state;
    return capsule;
  });
}

PyObject* setState(PyObject* self, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (!PyCapsule_IsValid(capsule, kGeneratorState)) {
      raise(PyExc_TypeError, fmt::format("set_state: expected what get_state() gave, got {}",
                                         Py_TYPE(capsule)->tp_name));
    }
    static_cast<GeneratorState*>(PyCapsule_GetPointer(capsule, kGeneratorState))
        ->restore(generatorIn(self));
    return Py_NewRef(self);
  });
}

PyMethodDef generator_methods[] = {
    {"manual_seed", manualSeed, METH_O, "Starts again from a seed."},
    {"initial_seed", initialSeed, METH_NOARGS, "The seed as it was given."},
    {"get_state", getState, METH_NOARGS, "Where the generator stands, for set_state."},
    {"set_state", setState, METH_O, "Goes on from a state."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef generator_properties[] = {
    {"device", generatorDevice, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---- Size ----

PyObject* sizeRepr(PyObject* self) {
  return guarded([&] {
    const Owned list = checked(PySequence_List(self));
    const Owned inner = checked(PyObject_Repr(list.get()));
    return PyUnicode_FromFormat("torch.Size(%U)", inner.get());
  });
}

PyObject* toSize(PyObject* tuple) {
  return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(size_type), tuple, nullptr);
}

PyObject* sizeSubscript(PyObject* self, PyObject* index) {
  return guarded([&] {
    Owned found = checked(PyTuple_Type.tp_as_mapping->mp_subscript(self, index));
    return PySlice_Check(index) ? toSize(found.get()) : found.leak();
  });
}

PyObject* joinSizes(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    const Owned joined = checked(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
    return toSize(joined.get());
  });
}

PyObject* repeatSizes(PyObject* a, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    const Owned repeated = checked(PyTuple_Type.tp_as_sequence->sq_repeat(a, count));
    return toSize(repeated.get());
  });
}

PyObject* sizeNumel(PyObject* self, PyObject*) {
  return guarded([&] {
    Owned product = checked(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      product = checked(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
    }
    return product.leak();
  });
}

PyObject* sizeReduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Owned plain = checked(PySequence_List(self));
    return Py_BuildValue("(O(O))", reinterpret_cast<PyObject*>(size_type), plain.get());
  });
}

PyMethodDef size_methods[] = {
    {"numel", sizeNumel, METH_NOARGS, "The product of the sizes."},
    {"__reduce__", sizeReduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

std::optional<int64_t> numberOf(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  for (PyTypeObject* each : number_types) {
    if (type == each) return as<NumberObject>(object)->number;
  }
  return std::nullopt;
}

bool isNamedNumber(PyObject* object) {
  return numberOf(object) || object == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         object == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         object == reinterpret_cast<PyObject*>(&PyBool_Type);
}

PyObject* numberObject(NumberKind kind, int64_t number) {
  const auto found = numbers().find({kind, number});
  if (found == numbers().end()) raise(PyExc_ValueError, fmt::format("{} has no name here", number));
  return found->second;
}

std::optional<DType> dtypeOf(PyObject* object) {
  if (!object || object == Py_None) return std::nullopt;
  if (Py_TYPE(object) == number_types[0])
    return anyDTypeFromNumber(as<NumberObject>(object)->number);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Double;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Long;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  raise(PyExc_TypeError, fmt::format("expected a dtype, got {}", Py_TYPE(object)->tp_name));
}

bool isDevice(PyObject* object) {
  return Py_TYPE(object) == device_type;
}

PyObject* deviceObject(Device device) {
  auto* object = PyObject_New(DeviceObject, device_type);
  if (!object) throw PythonError();
  object->device = device;
  return reinterpret_cast<PyObject*>(object);
}

Device deviceOf(PyObject* object) {
  if (!object || object == Py_None) return Device{};
  if (isDevice(object)) return as<DeviceObject>(object)->device;
  if (PyUnicode_Check(object)) {
    const char* bytes = PyUnicode_AsUTF8(object);
    if (!bytes) throw PythonError();
    return Device::parse(bytes);
  }
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long index = PyLong_AsLongAndOverflow(object, &overflow);
    if (overflow != 0 || index < 0 || index > 127) {
      const Owned shown = checked(PyObject_Str(object));
      raise(PyExc_RuntimeError,
            fmt::format("device: index {} is out of range", PyUnicode_AsUTF8(shown.get())));
    }
    return Device{DeviceType::CUDA, static_cast<int8_t>(index)};
  }
  raise(PyExc_TypeError, fmt::format("expected a device, got {}", Py_TYPE(object)->tp_name));
}

bool isGenerator(PyObject* object) {
  return Py_TYPE(object) == generator_type;
}

PyObject* generatorObject(GeneratorRef generator) {
  auto* object = PyObject_New(GeneratorHandle, generator_type);
  if (!object) throw PythonError();
  new (&object->generator) GeneratorRef(std::move(generator));
  return reinterpret_cast<PyObject*>(object);
}

uint64_t seedOf(PyObject* object) {
  const Owned number = checked(PyNumber_Index(object));
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(small);
  const unsigned long long large = PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_ValueError, "expected a seed from -2**63 to 2**64 - 1");
  }
  return large;
}

bool isSize(PyObject* object) {
  return Py_TYPE(object) == size_type;
}

PyObject* sizeObject(IntSpan sizes) {
  Owned result = checked(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i),
                     checked(PyLong_FromLongLong(sizes[i])).leak());
  }
  return result.leak();
}

void addPlainTypes(PyObject* module) {
  addNumbers(module);
  static PyMethodDef maker = {"_number", makeNumber, METH_VARARGS, nullptr};
  check(PyModule_AddObject(module, "_number", checked(PyCFunction_New(&maker, nullptr)).leak()));
  PyType_Slot device_slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(newDevice)},
      {Py_tp_repr, reinterpret_cast<void*>(deviceRepr)},
      {Py_tp_str, reinterpret_cast<void*>(deviceStr)},
      {Py_tp_richcompare, reinterpret_cast<void*>(compareDevices)},
      {Py_tp_hash, reinterpret_cast<void*>(hashDevice)},
      {Py_tp_getset, device_properties},
      {Py_tp_methods, device_methods},
      {0, nullptr},
  };
  device_type = makeType(module, "wick.device", sizeof(DeviceObject), device_slots);
  PyType_Slot generator_slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(newGenerator)},
      {Py_tp_dealloc, reinterpret_cast<void*>(freeGenerator)},
      {Py_tp_methods, generator_methods},
      {Py_tp_getset, generator_properties},
      {0, nullptr},
  };
  generator_type = makeType(module, "wick.Generator", sizeof(GeneratorHandle), generator_slots);
  PyType_Slot size_slots[] = {
      {Py_tp_repr, reinterpret_cast<void*>(sizeRepr)},
      {Py_mp_subscript, reinterpret_cast<void*>(sizeSubscript)},
      {Py_sq_concat, reinterpret_cast<void*>(joinSizes)},
      {Py_sq_repeat, reinterpret_cast<void*>(repeatSizes)},
      {Py_tp_methods, size_methods},
      {0, nullptr},
  };
  size_type =
      makeType(module, "wick.Size", 0, size_slots, 0, reinterpret_cast<PyObject*>(&PyTuple_Type));
}

}  // namespace wick::python
