// The small types of the namespace: dtype, layout, memory_format and qscheme, which programs carry
// as ints, device, Generator and Size.
#pragma once

#include <optional>

#include "core/ivalue.h"
#include "python/object.h"

namespace wick::python {

// An int with a name: one object a number, compared by identity.
struct NumberObject {
  PyObject_HEAD int64_t number;
  const char* name;  // "float32"
};
enum class NumberKind : uint8_t { DType, Layout, MemoryFormat, QScheme };
inline constexpr size_t kNumberKinds = 4;

// The number of any of them; nullopt for other objects.
std::optional<int64_t> numberOf(PyObject* object);
// Whether it is one of them, or a type of Python that stands for a dtype: a value that programs carry
// as an int, and with which nobody computes.
bool isNamedNumber(PyObject* object);
// Borrowed; ValueError for a number without a name.
PyObject* numberObject(NumberKind kind, int64_t number);
inline PyObject* dtypeObject(DType dtype) {
  return numberObject(NumberKind::DType, static_cast<int64_t>(dtype));
}
// TypeError unless it is a dtype; nullopt for None and null.
std::optional<DType> dtypeOf(PyObject* object);

struct DeviceObject {
  PyObject_HEAD Device device;
};
bool isDevice(PyObject* object);
PyObject* deviceObject(Device device);
// A device, its text, or an index of CUDA. TypeError otherwise.
Device deviceOf(PyObject* object);

struct GeneratorHandle {
  PyObject_HEAD GeneratorRef generator;
};
bool isGenerator(PyObject* object);
PyObject* generatorObject(GeneratorRef generator);
// 64 bits of an int, with a sign or without; ValueError for one that is larger.
uint64_t seedOf(PyObject* object);

// torch.Size.
PyObject* sizeObject(IntSpan sizes);
bool isSize(PyObject* object);

}  // namespace wick::python
