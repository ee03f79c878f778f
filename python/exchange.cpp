// Memory shared with numpy and other libraries, both ways.
#include "python/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "autograd/tape.h"
#include "core/dlpack.h"
#include "core/dlpack_structs.h"
#include "python/module.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"
#include "python/tracing.h"

namespace wick::python {
namespace {

// ---- the buffer protocol ----

const char* bufferFormat(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return "B";
    case DType::Char:
      return "b";
    case DType::Short:
      return "h";
    case DType::Int:
      return "i";
    case DType::Long:
      return "l";
    case DType::Half:
      return "e";
    case DType::Float:
      return "f";
    case DType::Double:
      return "d";
    case DType::ComplexFloat:
      return "Zf";
    case DType::ComplexDouble:
      return "Zd";
    case DType::Bool:
      return "?";
    default:
      raise(PyExc_TypeError, fmt::format("tensors of {} have no form in numpy", toString(dtype)));
  }
}

// The dtype of a buffer's format; nullopt for one that no tensor has.
std::optional<DType> dtypeOfFormat(const char* format, Py_ssize_t bytes) {
  if (!format) return DType::Byte;
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  const std::string_view text(format);
  if (text == "?") return DType::Bool;
  if (text == "e") return DType::Half;
  if (text == "f") return DType::Float;
  if (text == "d") return DType::Double;
  if (text == "Zf") return DType::ComplexFloat;
  if (text == "Zd") return DType::ComplexDouble;
  if (text.size() != 1) return std::nullopt;
  if (std::strchr("bhilq", text[0])) {
    switch (bytes) {
      case 1:
        return DType::Char;
      case 2:
        return DType::Short;
      case 4:
        return DType::Int;
      case 8:
        return DType::Long;
    }
  }
  if (text[0] == 'B' && bytes == 1) return DType::Byte;
  return std::nullopt;
}

void checkShareable(const Tensor& t) {
  if (autograd::requiresGradient(t)) {
    raise(PyExc_RuntimeError,
          "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  }
  if (t.kind() != TensorKind::Dense || !t.device().isCpu()) {
    raise(PyExc_TypeError, "only dense tensors in memory of the CPU can be shared");
  }
}

// What a view of a tensor's memory keeps: the memory is lent, whatever becomes of the tensor.
struct BufferOwner {
  explicit BufferOwner(const Tensor& t) : lent(toVersionedDLPack(t)) {
    for (const int64_t size : t.sizes()) shape.push_back(size);
    for (const int64_t stride : t.strides()) {
      strides.push_back(stride * static_cast<Py_ssize_t>(t.itemSize()));
    }
  }
  ~BufferOwner() { lent->deleter(lent); }
  BufferOwner(const BufferOwner&) = delete;
  DLManagedTensorVersioned* const lent;
  std::vector<Py_ssize_t> shape, strides;
};

bool wants(int flags, int what) {
  return (flags & what) == what;
}

int getBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guardedStatus([&] {
    const Tensor& t = tensorOf(self, "buffer");
    checkShareable(t);
    const bool strided = wants(flags, PyBUF_STRIDES);
    if ((!strided || wants(flags, PyBUF_C_CONTIGUOUS)) && !t.isContiguous()) {
      raise(PyExc_BufferError, "the tensor is not contiguous");
    }
    if ((flags & PyBUF_WRITABLE) != 0 && !t.storage()->writable()) {
      raise(PyExc_BufferError, "the tensor's memory must not be written");
    }
    view->format = const_cast<char*>(bufferFormat(t.dtype()));
    auto owner = std::make_unique<BufferOwner>(t);
    const auto bytes = static_cast<Py_ssize_t>(t.itemSize());
    static char empty[16];
    if ((flags & PyBUF_FORMAT) == 0) view->format = nullptr;
    view->buf = t.numel() > 0 ? t.rawData() : empty;
    view->len = t.numel() * bytes;
    view->itemsize = bytes;
    view->readonly = t.storage()->writable() ? 0 : 1;
    view->ndim = static_cast<int>(t.dim());
    view->shape = (flags & PyBUF_ND) != 0 ? owner->shape.data() : nullptr;
    view->strides = strided ? owner->strides.data() : nullptr;
    view->suboffsets = nullptr;
    if (wants(flags, PyBUF_F_CONTIGUOUS) && PyBuffer_IsContiguous(view, 'F') == 0) {
      raise(PyExc_BufferError, "the tensor is not contiguous column by column");
    }
    view->internal = owner.release();
    view->obj = Py_NewRef(self);
  });
}

void releaseBuffer(PyObject*, Py_buffer* view) {
  delete static_cast<BufferOwner*>(view->internal);
}

// Somebody else's memory.
struct HeldBuffer {
  Py_buffer view{};
  ~HeldBuffer() {
    const WithGil gil;
    if (gil.usable()) PyBuffer_Release(&view);
  }
};

// Kernels believe that a bool is 0 or 1. What lies between the elements is not looked at.
void checkBooleans(const Ref<Storage>& memory, const DimVector& sizes, const DimVector& strides) {
  DimVector once = sizes;  // what is repeated
  for (size_t i = 0; i < once.size(); ++i) {
    if (strides[i] == 0 && once[i] > 0) once[i] = 1;
  }
  const Tensor bytes = Tensor::fromStorage(memory, DType::Byte, once, strides, 0).contiguous();
  const std::span<const uint8_t> all(bytes.data<uint8_t>(), static_cast<size_t>(bytes.numel()));
  const auto wrong = std::ranges::find_if(all, [](uint8_t byte) { return byte > 1; });
  if (wrong == all.end()) return;
  raise(PyExc_ValueError,
        fmt::format("expected booleans whose bytes are 0 and 1, found a byte {}", *wrong));
}

// A tensor on memory that `held` keeps.
Tensor tensorOn(const std::shared_ptr<HeldBuffer>& held, void* data, int64_t elements, DType dtype,
                const DimVector& sizes, const DimVector& strides) {
  const size_t bytes = static_cast<size_t>(elements) * itemSize(dtype);
  const std::shared_ptr<const void> owner(held, held.get());
  Ref<Storage> memory = Storage::borrow(data, bytes, owner, {}, held->view.readonly == 0);
  if (dtype == DType::Bool) checkBooleans(memory, sizes, strides);
  return Tensor::fromStorage(std::move(memory), dtype, sizes, strides, 0);
}

// How many elements lie from the first to the last one.
int64_t extentOf(const DimVector& sizes, const DimVector& strides) {
  int64_t extent = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(extent, reach, &extent) || extent > kMaxElements) {
      raise(PyExc_ValueError, fmt::format("a buffer of sizes {} and strides {} is too large",
                                          formatInts(sizes), formatInts(strides)));
    }
  }
  return extent;
}

Tensor tensorOnBuffer(PyObject* object) {
  const auto held = std::make_shared<HeldBuffer>();
  check(PyObject_GetBuffer(object, &held->view, PyBUF_STRIDED_RO | PyBUF_FORMAT));
  const Py_buffer& view = held->view;
  const auto dtype = dtypeOfFormat(view.format, view.itemsize);
  if (!dtype) {
    raise(PyExc_TypeError,
          fmt::format("no tensor has elements of the format '{}' of {} bytes. The supported types "
                      "are: float64, float32, float16, complex64, complex128, int64, int32, int16, "
                      "int8, uint8, and bool.",
                      view.format ? view.format : "B", view.itemsize));
  }
  DimVector sizes, strides;
  for (int i = 0; i < view.ndim; ++i) {
    sizes.push_back(view.shape[i]);
    if (view.strides[i] < 0) {
      raise(PyExc_ValueError,
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array with array.copy().) ");
    }
    if (view.strides[i] % view.itemsize != 0) {
      raise(PyExc_ValueError, "strides must be multiples of an element's size");
    }
    strides.push_back(view.strides[i] / view.itemsize);
  }
  return tensorOn(held, view.buf, extentOf(sizes, strides), *dtype, sizes, strides);
}

// A class of numpy; null while it is not imported.
PyTypeObject* numpyClass(const char* name, PyObject*& kept) {
  if (kept) return reinterpret_cast<PyTypeObject*>(kept);
  const Owned key = checked(PyUnicode_FromString("numpy"));
  const Owned numpy(PyImport_GetModule(key.get()));
  if (!numpy) {
    PyErr_Clear();
    return nullptr;
  }
  kept = PyObject_GetAttrString(numpy.get(), name);
  if (!kept) PyErr_Clear();  // numpy is just being imported
  return reinterpret_cast<PyTypeObject*>(kept);
}
PyObject* array_class = nullptr;
PyObject* number_class = nullptr;

PyObject* numpyMethod(PyObject* self, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"force", nullptr};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, kwargs, "|$p:numpy", const_cast<char**>(names),
                                     &force)) {
      return nullptr;
    }
    const Tensor& t = tensorOf(self, "numpy");
    warnOfConstant("array of numpy");
    return toNumpy(force ? t.detach() : t);
  });
}

PyObject* arrayMethod(PyObject* self, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject* dtype = Py_None;
    if (!PyArg_ParseTuple(arguments, "|O:__array__", &dtype)) return nullptr;
    const Owned array(toNumpy(tensorOf(self, "__array__")));
    if (dtype == Py_None) return Py_NewRef(array.get());
    return PyObject_CallMethod(array.get(), "astype", "O", dtype);
  });
}

PyObject* fromNumpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!isArray(array)) {
      raise(PyExc_TypeError, fmt::format("expected np.ndarray (got {})", Py_TYPE(array)->tp_name));
    }
    return tensorObject(tensorFromArray(array));
  });
}

PyObject* fromBuffer(PyObject*, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"buffer", "dtype", "count", "offset", nullptr};
    PyObject *buffer = nullptr, *type = nullptr;
    Py_ssize_t count = -1, offset = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, kwargs, "O|$Onn:frombuffer",
                                     const_cast<char**>(names), &buffer, &type, &count, &offset)) {
      return nullptr;
    }
    const DType dtype = dtypeOf(type).value_or(DType::Byte);
    if (isQuantized(dtype)) {
      raise(PyExc_TypeError,
            fmt::format("frombuffer: expected a dtype of dense tensors, got {}", toString(dtype)));
    }
    const auto held = std::make_shared<HeldBuffer>();
    check(PyObject_GetBuffer(buffer, &held->view, PyBUF_SIMPLE));
    const auto item = static_cast<Py_ssize_t>(itemSize(dtype));
    const Py_ssize_t length = held->view.len;
    if (offset < 0 || offset >= length) {
      raise(PyExc_ValueError, fmt::format("offset ({} bytes) must be non-negative and no greater "
                                          "than buffer length ({} bytes) minus 1",
                                          offset, length));
    }
    if (count < 0) {
      if ((length - offset) % item != 0) {
        raise(PyExc_ValueError, fmt::format("the buffer has {} bytes behind the offset, expected a "
                                            "multiple of the {} of an element",
                                            length - offset, item));
      }
      count = (length - offset) / item;
    }
    if (count == 0 || count > (length - offset) / item) {
      raise(PyExc_ValueError,
            fmt::format("the buffer holds {} elements, expected {}", (length - offset) / item,
                        std::max<Py_ssize_t>(count, 1)));
    }
    auto* data = static_cast<char*>(held->view.buf) + offset;
    return tensorObject(tensorOn(held, data, count, dtype, DimVector{count}, DimVector{1}));
  });
}

// ---- DLPack ----

constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

// A capsule with the name, which frees what nobody took.
template <class Managed, const char* const& kName>
PyObject* capsuleOf(Managed* managed) {
  PyObject* capsule = PyCapsule_New(managed, kName, [](PyObject* object) {
    if (!PyCapsule_IsValid(object, kName)) return;  // somebody took it
    auto* held = static_cast<Managed*>(PyCapsule_GetPointer(object, kName));
    if (held && held->deleter) held->deleter(held);
  });
  if (!capsule) managed->deleter(managed);
  return capsule;
}

// A tuple of two numbers, as DLPack's versions and devices are.
std::pair<int, int> pairOf(PyObject* object, const char* what) {
  std::pair<int, int> made;
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2) {
    raise(PyExc_TypeError, fmt::format("__dlpack__: expected a tuple of two ints as {}, got {}",
                                       what, Py_TYPE(object)->tp_name));
  }
  if (!PyArg_ParseTuple(object, "ii", &made.first, &made.second)) throw PythonError();
  return made;
}

PyObject* dlpackMethod(PyObject* self, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, kwargs, "|OOOO:__dlpack__",
                                     const_cast<char**>(names), &stream, &version, &device,
                                     &copy)) {
      return nullptr;
    }
    const bool versioned = version != Py_None && pairOf(version, "max_version").first >= 1;
    if (device != Py_None) {
      const int type = pairOf(device, "dl_device").first;
      if (type != 1) {
        raise(PyExc_BufferError,
              fmt::format("__dlpack__: the tensor is in memory of the CPU, which is device type 1, "
                          "and cannot be given to type {}",
                          type));
      }
    }
    const Tensor& t = tensorOf(self, "__dlpack__");
    return capsuleFor(copy == Py_True ? t.clone() : t, versioned);
  });
}

PyObject* dlpackDevice(PyObject* self, PyObject*) {
  return guarded([&] {
    if (!tensorOf(self, "__dlpack_device__").device().isCpu()) {
      raise(PyExc_BufferError, "only memory of the CPU can be shared");
    }
    return Py_BuildValue("(ii)", 1, 0);
  });
}

PyObject* toDlpack(PyObject*, PyObject* tensor) {
  return guarded([&] { return capsuleFor(tensorOf(tensor, "to_dlpack")); });
}

PyObject* fromDlpack(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_CheckExact(object)) return tensorObject(tensorFromCapsule(object));
    if (!PyObject_HasAttrString(object, "__dlpack__")) {
      raise(PyExc_TypeError, fmt::format("from_dlpack: an object with __dlpack__ or a capsule is "
                                         "expected, not {}",
                                         Py_TYPE(object)->tp_name));
    }
    const Owned method = checked(PyObject_GetAttrString(object, "__dlpack__"));
    const Owned none = checked(PyTuple_New(0));
    const Owned kwargs = checked(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
    Owned capsule(PyObject_Call(method.get(), none.get(), kwargs.get()));
    if (!capsule) {
      // Libraries from before version 1 take no such argument.
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
      PyErr_Clear();
      capsule = checked(PyObject_CallNoArgs(method.get()));
    }
    if (!PyCapsule_CheckExact(capsule.get())) {
      raise(PyExc_TypeError, fmt::format("from_dlpack: expected a capsule from __dlpack__, got {}",
                                         Py_TYPE(capsule.get())->tp_name));
    }
    return tensorObject(tensorFromCapsule(capsule.get()));
  });
}

PyMethodDef functions[] = {
    {"from_numpy", fromNumpy, METH_O, "A tensor on the memory of an array."},
    {"frombuffer", methodOf(fromBuffer), METH_VARARGS | METH_KEYWORDS,
     "A tensor on the memory of an object with the buffer protocol."},
    {"from_dlpack", fromDlpack, METH_O, "A tensor on the memory of another library's."},
    {"to_dlpack", toDlpack, METH_O, "A capsule for another library."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef methods[] = {
    {"numpy", methodOf(numpyMethod), METH_VARARGS | METH_KEYWORDS, "An array on the memory."},
    {"__array__", arrayMethod, METH_VARARGS, nullptr},
    {"__dlpack__", methodOf(dlpackMethod), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", dlpackDevice, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* capsuleFor(const Tensor& t, bool versioned) {
  if (autograd::requiresGradient(t)) {
    raise(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
  }
  if (versioned) return capsuleOf<DLManagedTensorVersioned, kVersioned>(toVersionedDLPack(t));
  return capsuleOf<DLManagedTensor, kPlain>(toDLPack(t));
}

Tensor tensorFromCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
    Tensor tensor = fromDLPack(managed);
    check(PyCapsule_SetName(capsule, "used_dltensor_versioned"));
    return tensor;
  }
  if (PyCapsule_IsValid(capsule, kPlain)) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
    Tensor tensor = fromDLPack(managed);
    check(PyCapsule_SetName(capsule, "used_dltensor"));
    return tensor;
  }
  raise(PyExc_RuntimeError,
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
        "once, so you might have already constructed a tensor from it once.");
}

bool isArray(PyObject* object) {
  PyTypeObject* array = numpyClass("ndarray", array_class);
  if (!array) return false;
  PyTypeObject* number = numpyClass("generic", number_class);
  return PyObject_TypeCheck(object, array) || (number && PyObject_TypeCheck(object, number));
}

Tensor tensorFromArray(PyObject* array) {
  PyTypeObject* number = numpyClass("generic", number_class);
  if (number && PyObject_TypeCheck(array, number)) {
    const Owned numpy = checked(PyImport_ImportModule("numpy"));
    const Owned copy = checked(PyObject_CallMethod(numpy.get(), "array", "O", array));
    return tensorOnBuffer(copy.get());
  }
  return tensorOnBuffer(array);
}

PyObject* toNumpy(const Tensor& tensor) {
  checkShareable(tensor);
  bufferFormat(tensor.dtype());
  const Owned object(tensorObject(tensor));
  const Owned numpy = checked(PyImport_ImportModule("numpy"));
  return checked(PyObject_CallMethod(numpy.get(), "asarray", "O", object.get())).leak();
}

void addExchange(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
  for (PyMethodDef* method = methods; method->ml_name; ++method) {
    const Owned descriptor = checked(PyDescr_NewMethod(tensor_type, method));
    check(PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), method->ml_name,
                                 descriptor.get()));
  }
  tensor_type->tp_as_buffer->bf_getbuffer = getBuffer;
  tensor_type->tp_as_buffer->bf_releasebuffer = releaseBuffer;
  PyType_Modified(tensor_type);
}

}  // namespace wick::python
