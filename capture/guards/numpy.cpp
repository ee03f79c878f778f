#include "capture/guards/numpy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "capture/guards/graph_break.h"

namespace wick::capture {
namespace {

// The parts of numpy that are asked for; null until it is imported.
struct Numpy {
  PyTypeObject *array = nullptr, *number = nullptr, *boolean = nullptr, *dtype = nullptr,
               *function = nullptr;
  PyObject *error_state = nullptr, *dispatcher = nullptr;
  std::string folder;  // with a slash at its end
};

PyObject* attributeOf(PyObject* object, const char* name) {
  PyObject* const found = object ? PyObject_GetAttrString(object, name) : nullptr;
  if (!found) PyErr_Clear();
  return found;
}

PyTypeObject* classOf(PyObject* object, const char* name) {
  PyObject* const found = attributeOf(object, name);
  return found && PyType_Check(found) ? reinterpret_cast<PyTypeObject*>(found) : nullptr;
}

const Numpy* numpy() {
  static const Numpy* known = nullptr;
  if (known) return known;
  static PyObject* const kName = PyUnicode_InternFromString("numpy");
  const Object module = Object::own(PyImport_GetModule(kName));
  if (!module) {
    PyErr_Clear();
    return nullptr;
  }
  Numpy found;
  found.array = classOf(module.get(), "ndarray");
  found.number = classOf(module.get(), "number");
  found.boolean = classOf(module.get(), "bool_");
  found.dtype = classOf(module.get(), "dtype");
  found.function = classOf(module.get(), "ufunc");
  const Object core = Object::own(attributeOf(module.get(), "core"));
  const Object umath = Object::own(attributeOf(core.get(), "umath"));
  found.error_state = attributeOf(umath.get(), "geterrobj");
  found.dispatcher = attributeOf(umath.get(), "implement_array_function");
  const Object file = Object::own(attributeOf(module.get(), "__file__"));
  const char* const path =
      file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
  if (!path) PyErr_Clear();
  found.folder = path ? path : "";
  found.folder.resize(found.folder.rfind('/') + 1);
  const bool complete = found.array && found.number && found.boolean && found.dtype &&
                        found.function && found.error_state;
  // It is just being imported, or one that is not known here.
  if (!complete) return nullptr;
  return known = new Numpy(found);
}

// A lent view of an array's memory.
class Buffer {
 public:
  explicit Buffer(PyObject* object)
      : lent_(PyObject_GetBuffer(object, &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) == 0) {
    if (!lent_) PyErr_Clear();
  }
  ~Buffer() {
    if (lent_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  explicit operator bool() const { return lent_; }
  const Py_buffer* operator->() const { return &view_; }
  std::string_view format() const { return view_.format ? view_.format : "B"; }

 private:
  Py_buffer view_{};
  const bool lent_;
};

// Returns whether tensors have such elements, in the order of bytes of this machine.
bool isTensorFormat(std::string_view format) {
  return format.size() == 1 && std::string_view("?bBhilfd").find(format) != std::string_view::npos;
}

bool isAligned(const Buffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer->buf) % static_cast<uintptr_t>(buffer->itemsize) == 0;
}

// Returns whether numpy only warns of errors of floating point, or ignores them.
bool ignoresErrors() {
  const Object state = Object::own(PyObject_CallNoArgs(numpy()->error_state));
  if (!state || !PyList_CheckExact(state.get()) || PyList_GET_SIZE(state.get()) < 2) {
    PyErr_Clear();
    return false;
  }
  // Three bits for each kind of error: 0 ignores it, 1 warns.
  const long mask = PyLong_AsLong(PyList_GET_ITEM(state.get(), 1));
  if (mask < 0) {
    PyErr_Clear();
    return false;
  }
  constexpr long kMoreThanWarnings = 06666;
  return (mask & kMoreThanWarnings) == 0;
}

// Returns the strides of an array. Its buffer has others where a dimension has one element, or none.
std::vector<Py_ssize_t> stridesOf(PyObject* array) {
  const Object strides = Object::own(attributeOf(array, "strides"));
  std::vector<Py_ssize_t> found;
  if (!strides || !PyTuple_CheckExact(strides.get())) return found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(strides.get()); ++i) {
    found.push_back(PyLong_AsSsize_t(PyTuple_GET_ITEM(strides.get(), i)));
  }
  return found;
}

class ArrayGuard : public TensorGuard {
 public:
  ArrayGuard(const Buffer& buffer, std::vector<Py_ssize_t> strides)
      : format_(buffer.format()),
        sizes_(buffer->shape, buffer->shape + buffer->ndim),
        strides_(std::move(strides)),
        readonly_(buffer->readonly != 0),
        asks_strides_(std::ranges::any_of(sizes_, [](Py_ssize_t size) { return size < 2; })) {}

  bool matches(PyObject* object) const override {
    if (!isArray(object)) return false;
    const Buffer buffer(object);
    return buffer && buffer.format() == format_ && (buffer->readonly != 0) == readonly_ &&
           buffer->ndim == static_cast<int>(sizes_.size()) &&
           std::equal(sizes_.begin(), sizes_.end(), buffer->shape) &&
           (asks_strides_ ? stridesOf(object) == strides_
                          : std::equal(strides_.begin(), strides_.end(), buffer->strides)) &&
           isAligned(buffer) && ignoresErrors();
  }
  std::string text() const override {
    std::string sizes;
    for (const Py_ssize_t each : sizes_) {
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", each);
    }
    return fmt::format("an array of the format '{}' ({}){}", format_, sizes,
                       readonly_ ? " that must not be written" : "");
  }
  int64_t size(PyObject*, int dim) const override { return sizes_[static_cast<size_t>(dim)]; }

 private:
  std::string format_;
  std::vector<Py_ssize_t> sizes_, strides_;
  bool readonly_, asks_strides_;
};

}  // namespace

PyTypeObject* arrayClass() {
  const Numpy* const known = numpy();
  return known ? known->array : nullptr;
}

bool isArray(PyObject* object) {
  const Numpy* const known = numpy();
  return known && Py_TYPE(object) == known->array;
}

bool isArrayNumber(PyObject* object) {
  const Numpy* const known = numpy();
  PyTypeObject* const type = Py_TYPE(object);
  return known && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
         (type == known->boolean || PyType_IsSubtype(type, known->number));
}

bool isFileOfNumpy(std::string_view file) {
  const Numpy* const known = numpy();
  if (!known) return false;
  return file == "<__array_function__ internals>" ||
         (!known->folder.empty() && file.starts_with(known->folder));
}

PyObject* arrayDispatcher() {
  const Numpy* const known = numpy();
  return known ? known->dispatcher : nullptr;
}

bool isSameArrayNumber(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b) || !isArrayNumber(a)) return false;
  const Buffer left(a), right(b);
  return left && right && left->len == right->len &&
         std::memcmp(left->buf, right->buf, static_cast<size_t>(left->len)) == 0;
}

bool isUniversalFunction(PyObject* object) {
  const Numpy* const known = numpy();
  return known && Py_TYPE(object) == known->function;
}

bool isArrayDType(PyObject* object) {
  const Numpy* const known = numpy();
  if (!known || !PyObject_TypeCheck(object, known->dtype)) return false;
  const Object native = Object::own(attributeOf(object, "isbuiltin"));
  return native && PyLong_Check(native.get()) && PyLong_AsLong(native.get()) == 1;
}

std::shared_ptr<const TensorGuard> arrayGuard(PyObject* array) {
  const Buffer buffer(array);
  if (!buffer || !isTensorFormat(buffer.format())) {
    throw GraphBreak{"an array of a dtype that tensors do not have"};
  }
  if (!ignoresErrors()) throw GraphBreak{"numpy reports errors of floating point"};
  std::vector<Py_ssize_t> strides = stridesOf(array);
  for (const Py_ssize_t each : strides) {
    if (each < 0) throw GraphBreak{"an array with a negative stride"};
    if (each % buffer->itemsize != 0) throw GraphBreak{"an array with odd strides"};
  }
  if (!isAligned(buffer)) throw GraphBreak{"an array that is not aligned"};
  return std::make_shared<ArrayGuard>(buffer, std::move(strides));
}

}  // namespace wick::capture
