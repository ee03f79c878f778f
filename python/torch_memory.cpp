#include "python/torch_memory.h"

#include <vector>

#include "core/dlpack.h"
#include "python/exchange.h"
#include "python/object.h"
#include "python/torch_library.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Object;

PyObject* interned(const char* text) {
  PyObject* const name = PyUnicode_InternFromString(text);
  if (!name) throw capture::PythonError();
  return name;
}

int64_t numberFrom(Object number) {
  const int64_t value = PyLong_AsLongLong(number.get());
  if (value == -1 && PyErr_Occurred()) throw capture::PythonError();
  return value;
}

Object callMethod(PyObject* object, PyObject* name) {
  return Object::checked(PyObject_CallMethodNoArgs(object, name));
}

// Returns whether a tuple of Python holds these numbers.
bool holdsNumbers(const Object& tuple, IntSpan numbers) {
  if (!tuple || !PyTuple_Check(tuple.get()) ||
      PyTuple_GET_SIZE(tuple.get()) != static_cast<Py_ssize_t>(numbers.size())) {
    return false;
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyObject* const each = PyTuple_GET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i));
    if (!PyLong_Check(each) || PyLong_AsLongLong(each) != numbers[i]) return false;
  }
  return true;
}

DimVector numbersOf(const Object& tuple) {
  DimVector numbers;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    numbers.push_back(numberFrom(Object::share(PyTuple_GET_ITEM(tuple.get(), i))));
  }
  return numbers;
}

// Returns whether an attribute of the tensor is this object.
bool hasAttribute(PyObject* tensor, PyObject* name, PyObject* expected) {
  const Object found = Object::own(PyObject_GetAttr(tensor, name));
  return found.get() == expected;
}

// The names of what a layout depends on.
struct Names {
  PyObject* shape = interned("shape");
  PyObject* stride = interned("stride");
  PyObject* dtype = interned("dtype");
  PyObject* layout = interned("layout");
  PyObject* is_cpu = interned("is_cpu");
  PyObject* is_conj = interned("is_conj");
  PyObject* is_neg = interned("is_neg");
  PyObject* is_inference = interned("is_inference");
};
const Names& names() {
  static const Names all;
  return all;
}

Object tupleOf(IntSpan numbers) {
  Object made = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i) {
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i),
                     Object::checked(PyLong_FromLongLong(numbers[i])).leak());
  }
  return made;
}

}  // namespace

Tensor TorchMemory::tensor(const TorchLayout& layout) const {
  const Ref<Storage>& memory = base.impl()->storage;
  const auto owner = std::make_shared<const Tensor>(base);
  return Tensor::fromStorage(
      Storage::borrow(memory->data(), memory->bytes(), owner, memory->device(), memory->writable()),
      layout.dtype, layout.sizes, layout.strides, base.impl()->offset);
}

TorchLayout actualLayout(PyObject* tensor, const TorchLayout& layout) {
  if (!layout.open) return layout;
  const Names& all = names();
  return {layout.dtype, numbersOf(Object::checked(PyObject_GetAttr(tensor, all.shape))),
          numbersOf(Object::checked(PyObject_CallMethodNoArgs(tensor, all.stride))), layout.open};
}

std::vector<int64_t> sizesOfTorch(PyObject* tensor) {
  const DimVector sizes = numbersOf(Object::checked(PyObject_GetAttr(tensor, names().shape)));
  return {sizes.begin(), sizes.end()};
}

bool hasLayout(const TorchLibrary& library, PyObject* tensor, const TorchLayout& layout) {
  const Names& all = names();
  const auto lies_so = [&] {
    const Object sizes = Object::own(PyObject_GetAttr(tensor, all.shape));
    const Object strides = Object::own(PyObject_CallMethodNoArgs(tensor, all.stride));
    if (!layout.open)
      return holdsNumbers(sizes, layout.sizes) && holdsNumbers(strides, layout.strides);
    if (!sizes || !strides || !PyTuple_Check(sizes.get()) || !PyTuple_Check(strides.get()))
      return false;
    return layout.open->matches(numbersOf(sizes), numbersOf(strides));
  };
  const Object dtype = Object::own(PyObject_GetAttr(tensor, all.dtype));
  const bool same = dtype && library.dtypeOf(dtype.get()) == layout.dtype &&
                    hasAttribute(tensor, all.layout, library.strided.get()) &&
                    hasAttribute(tensor, all.is_cpu, Py_True) && lies_so();
  if (PyErr_Occurred()) PyErr_Clear();
  return same;
}

TorchLayout layoutOf(const TorchLibrary& library, PyObject* tensor) {
  const Names& all = names();
  const auto ask = [&](PyObject* name) {
    return Object::checked(PyObject_CallMethodNoArgs(tensor, name)).get() == Py_True;
  };
  if (!hasAttribute(tensor, all.layout, library.strided.get()))
    breakGraph("a tensor that is not dense");
  if (!hasAttribute(tensor, all.is_cpu, Py_True))
    breakGraph("a tensor on another device than the CPU");
  if (ask(all.is_conj) || ask(all.is_neg)) breakGraph("a conjugated or negated view");
  if (ask(all.is_inference)) breakGraph("a tensor that was made in inference mode");
  const Object type = Object::checked(PyObject_GetAttr(tensor, all.dtype));
  const std::optional<DType> dtype = library.dtypeOf(type.get());
  if (!dtype || isQuantized(*dtype)) breakGraph("a tensor of a dtype that graphs do not take");
  return {*dtype, numbersOf(Object::checked(PyObject_GetAttr(tensor, all.shape))),
          numbersOf(Object::checked(PyObject_CallMethodNoArgs(tensor, all.stride))), nullptr};
}

int64_t versionOf(PyObject* tensor) {
  static PyObject* const kVersion = interned("_version");
  return numberFrom(Object::checked(PyObject_GetAttr(tensor, kVersion)));
}

TorchMemory memoryOf(const TorchLibrary& library, PyObject* tensor, const TorchLayout& layout) {
  static PyObject *const kDetach = interned("detach"), *const kView = interned("view");
  TorchMemory made;
  made.detached = callMethod(tensor, kDetach);
  made.offset = offsetOf(made.detached.get());
  Object bytes = made.detached;
  // PyTorch gives out no booleans.
  if (layout.dtype == DType::Bool) {
    bytes =
        Object::checked(PyObject_CallMethodOneArg(made.detached.get(), kView, library.uint8.get()));
  }
  const Object capsule = TorchLibrary::call(library.to_dlpack, bytes.get());
  made.base = tensorFromCapsule(capsule.get());
  return made;
}

int64_t offsetOf(PyObject* tensor) {
  static PyObject* const kOffset = interned("storage_offset");
  return numberFrom(callMethod(tensor, kOffset));
}

const void* dataOf(PyObject* tensor) {
  static PyObject* const kData = interned("data_ptr");
  const Object address = callMethod(tensor, kData);
  return PyLong_AsVoidPtr(address.get());
}

void noteWrites(const TorchLibrary& library, const std::vector<const TorchMemory*>& written) {
  if (written.empty()) return;
  static PyObject* const kNarrow = interned("as_strided");
  const Object all = Object::checked(PyList_New(0));
  const Object zero = Object::checked(Py_BuildValue("(i)", 0)),
               one = Object::checked(Py_BuildValue("(i)", 1));
  for (const TorchMemory* each : written) {
    // Filling no elements counts as a write.
    const Object none = Object::checked(
        PyObject_CallMethodObjArgs(each->detached.get(), kNarrow, zero.get(), one.get(), nullptr));
    if (PyList_Append(all.get(), none.get()) < 0) throw capture::PythonError();
  }
  TorchLibrary::call(library.foreach_zero, all.get());
}

Object torchTensor(const TorchLibrary& library, const Tensor& tensor) {
  static PyObject *const kView = interned("view"), *const kClone = interned("clone");
  const bool boolean = tensor.dtype() == DType::Bool;
  const Tensor bytes =
      boolean ? Tensor::fromStorage(tensor.impl()->storage, DType::Byte, tensor.sizes(),
                                    tensor.strides(), tensor.impl()->offset)
              : tensor;
  const Object capsule = Object::checked(capsuleFor(bytes));
  Object made = TorchLibrary::call(library.from_dlpack, capsule.get());
  // Programs make tensors without elements to resize them, which memory that comes from outside does not allow.
  if (tensor.impl()->storage->bytes() == 0) made = callMethod(made.get(), kClone);
  if (!boolean) return made;
  return Object::checked(PyObject_CallMethodOneArg(made.get(), kView, library.bool_dtype.get()));
}

Object torchView(PyObject* base, const Tensor& like, int64_t offset) {
  static PyObject* const kStrided = interned("as_strided");
  const Object sizes = tupleOf(like.sizes()), strides = tupleOf(like.strides());
  const Object at = Object::checked(PyLong_FromLongLong(offset));
  return Object::checked(
      PyObject_CallMethodObjArgs(base, kStrided, sizes.get(), strides.get(), at.get(), nullptr));
}

}  // namespace wick::python
