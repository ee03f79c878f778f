// torch.tensor: tensors of Python's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/device_backend.h"
#include "core/scalar.h"
#include "python/convert.h"
#include "python/module.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"
#include "python/tracing.h"
#include "runtime/ops/common_calls.h"

namespace wick::python {
namespace {

constexpr size_t kMaxNesting = 64;
constexpr Py_ssize_t kLooksForSignals = 4096;  // elements from one time to the next

// Elements of quantized dtypes mean nothing without a quantizer.
void checkDense(DType dtype, const char* what) {
  if (!isQuantized(dtype)) return;
  raise(PyExc_TypeError,
        fmt::format("{}: expected a dtype of dense tensors, got {}", what, toString(dtype)));
}

bool isNested(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object) ||
         (!isTensor(object) && !PyUnicode_Check(object) && !PyBytes_Check(object) &&
          !PyDict_Check(object) && PySequence_Check(object) && !isArray(object));
}

// Where a number of a nested sequence goes.
class Reader {
 public:
  explicit Reader(const char* what) : what_(what) {}

  // The elements as a tuple, which stays as it is whatever their code does. A sequence that is no list
  // says itself how many it has.
  static Owned elementsOf(PyObject* data) {
    if (PyTuple_Check(data) || PyList_Check(data) || PyRange_Check(data)) {
      return checked(PySequence_Tuple(data));
    }
    const Py_ssize_t count = PySequence_Size(data);
    check(count < 0 ? -1 : 0);
    Owned made = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(made.get(), i, checked(PySequence_GetItem(data, i)).leak());
    }
    return made;
  }

  void readShape(PyObject* data) {
    PyObject* at = data;
    Owned held;
    while (true) {
      if (isTensor(at) || (isArray(at) && !isNested(at))) {
        const Tensor t = isTensor(at) ? tensorOf(at, what_) : tensorFromArray(at);
        for (const int64_t size : t.sizes()) sizes_.push_back(size);
        return;
      }
      if (!isNested(at)) return;
      if (sizes_.size() >= kMaxNesting) raise(PyExc_ValueError, "too many dimensions");
      const Py_ssize_t count = PySequence_Size(at);
      check(count < 0 ? -1 : 0);
      sizes_.push_back(count);
      if (count == 0) return;
      held = checked(PySequence_GetItem(at, 0));
      at = held.get();
    }
  }

  // The dtype that all numbers fit into.
  std::optional<DType> join(std::optional<DType> a, DType b) { return a ? promoteTypes(*a, b) : b; }

  void readDType(PyObject* data, size_t dim) {
    if (PyBool_Check(data)) {
      dtype_ = join(dtype_, DType::Bool);
    } else if (PyLong_Check(data)) {
      dtype_ = join(dtype_, DType::Long);
    } else if (PyFloat_Check(data) && !isArray(data)) {
      dtype_ = join(dtype_, defaultDType());
    } else if (PyComplex_Check(data) && !isArray(data)) {
      dtype_ = join(dtype_, toComplexType(defaultDType()));
    } else if (isTensor(data)) {
      dtype_ = join(dtype_, tensorOf(data, what_).dtype());
    } else if (isArray(data)) {
      dtype_ = join(dtype_, tensorFromArray(data).dtype());
    } else if (isNested(data)) {
      if (dim >= sizes_.size()) refuseNested(dim);
      if (!read_.insert(data).second) return;  // a sequence that is there several times
      const Owned elements = elementsOf(data);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(elements.get()); ++i) {
        if (i % kLooksForSignals == 0) check(PyErr_CheckSignals());
        readDType(PyTuple_GET_ITEM(elements.get(), i), dim + 1);
      }
    } else {
      refuse(data);
    }
  }

  [[noreturn]] void refuseNested(size_t dim) {
    raise(PyExc_ValueError,
          fmt::format("{}: expected a number, not a sequence, at dim {}", what_, dim));
  }

  [[noreturn]] void refuse(PyObject* data) {
    raise(PyExc_TypeError,
          fmt::format("{}: a number, sequence, array or tensor is expected, not {}", what_,
                      Py_TYPE(data)->tp_name));
  }

  void fill(PyObject* data, const Tensor& into, size_t dim) {
    if (isTensor(data) || (isArray(data) && !isNested(data))) {
      const Tensor source = isTensor(data) ? tensorOf(data, what_) : tensorFromArray(data);
      if (source.dim() != into.dim()) {
        raise(PyExc_ValueError,
              fmt::format("{}: expected a tensor of {} dimensions at dim {}, not {}", what_,
                          into.dim(), dim, source.dim()));
      }
      for (int64_t d = 0; d < into.dim(); ++d) {
        if (source.size(d) == into.size(d)) continue;
        raise(PyExc_ValueError, ragged(dim + static_cast<size_t>(d), source.size(d)));
      }
      into.copyFrom(source);
      return;
    }
    if (dim == sizes_.size()) {
      if (isNested(data)) refuseNested(dim);
      store(data, into);
      return;
    }
    if (!isNested(data)) {
      raise(PyExc_TypeError, fmt::format("{}: expected a sequence of length {} at dim {}, not {}",
                                         what_, sizes_[dim], dim, Py_TYPE(data)->tp_name));
    }
    const Owned elements = elementsOf(data);
    const Py_ssize_t count = PyTuple_GET_SIZE(elements.get());
    if (count != sizes_[dim]) raise(PyExc_ValueError, ragged(dim, count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (i % kLooksForSignals == 0) check(PyErr_CheckSignals());
      PyObject* const element = PyTuple_GET_ITEM(elements.get(), i);
      const bool again =
          i > 0 && dim + 1 < sizes_.size() && element == PyTuple_GET_ITEM(elements.get(), i - 1);
      if (again) {
        into.select(0, i).copyFrom(into.select(0, i - 1));
      } else {
        fill(element, into.select(0, i), dim + 1);
      }
    }
  }

  const DimVector& sizes() const { return sizes_; }
  DType dtype() const { return dtype_.value_or(defaultDType()); }

 private:
  std::string ragged(size_t dim, int64_t found) const {
    return fmt::format("expected sequence of length {} at dim {} (got {})",
                       dim < sizes_.size() ? sizes_[dim] : 0, dim, found);
  }

  void store(PyObject* number, const Tensor& into) {
    IValue value;
    if (PyLong_CheckExact(number) && isFloating(into.dtype())) {
      const double real = PyLong_AsDouble(number);  // which may be beyond 64 bits
      if (real == -1.0 && PyErr_Occurred()) throw PythonError();
      into.copyFrom(Tensor::scalar(real));
      return;
    }
    if (isNamedNumber(number) || !tryValue(number, value) || !value.isNumber()) refuse(number);
    if (value.isComplex()) {
      if (!isComplex(into.dtype())) {
        raise(PyExc_RuntimeError, "a complex number cannot be converted to a real one");
      }
      into.copyFrom(Tensor::scalar(value.toComplex()));
    } else if (value.isDouble()) {
      into.copyFrom(Tensor::scalar(value.toDouble()));
    } else {
      into.copyFrom(Tensor::scalar(value.numberToInt()));
    }
  }

  const char* what_;
  DimVector sizes_;
  std::optional<DType> dtype_;
  std::unordered_set<PyObject*> read_;  // whose dtype is known
};

struct TensorArguments {
  PyObject* data = nullptr;
  std::optional<DType> dtype;
  Device device;
  bool has_device = false;
  bool requires_grad = false;
  bool pins = false;
};

TensorArguments parse(PyObject* arguments, PyObject* kwargs, const char* format) {
  static const char* names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  TensorArguments out;
  PyObject *dtype = nullptr, *device = nullptr;
  int requires_grad = 0, pin_memory = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, kwargs, format, const_cast<char**>(names), &out.data,
                                   &dtype, &device, &requires_grad, &pin_memory)) {
    throw PythonError();
  }
  out.dtype = dtypeOf(dtype);
  out.has_device = device && device != Py_None;
  if (out.has_device) {
    out.device = deviceFor(deviceOf(device));
  } else if (!isTensor(out.data)) {
    out.device = defaultDevice();
  }
  out.requires_grad = requires_grad != 0;
  out.pins = pin_memory != 0;
  return out;
}

// The result of a constructor is a constant of a trace.
void warnOfConstructor(const char* name) {
  if (!tracing::Tracer::active()) return;
  warnOfTrace(
      fmt::format(
          "{} results are registered as constants in the trace. You can safely ignore this "
          "warning if you use this function to create tensors out of constant variables that "
          "would be the same every time you call this function. In any other case, this "
          "might cause the trace to be incorrect.",
          name)
          .c_str());
}

Tensor onDevice(Tensor tensor, const TensorArguments& options) {
  const bool stays = !options.has_device && isTensor(options.data);
  if (stays || (options.device.isCpu() && tensor.device().isCpu())) return tensor;
  return ops::toDevice(tensor, options.device, tensor.dtype());
}

PyObject* makeTensor(PyObject*, PyObject* arguments, PyObject* kwargs) {
  return guarded([&] {
    const TensorArguments options = parse(arguments, kwargs, "O|$OOpp:tensor");
    warnOfConstructor("torch.tensor");
    const tracing::PauseTrace pause;
    Tensor tensor = onDevice(tensorFromData(options.data, options.dtype, "tensor"), options);
    static const OperatorHandle kPin("aten::pin_memory", "");
    if (options.pins) tensor = kPin(tensor);
    if (options.requires_grad) markRequiresGrad(tensor);
    return tensorObject(std::move(tensor));
  });
}

// Without a copy where that can be.
PyObject* asTensor(PyObject*, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const TensorArguments options = parse(arguments, kwargs, "O|OOpp:as_tensor");
    if (options.dtype && !isTensor(options.data)) checkDense(*options.dtype, "as_tensor");
    if (isTensor(options.data) || isArray(options.data)) {
      const bool known = isTensor(options.data);
      const Tensor tensor =
          known ? tensorOf(options.data, "as_tensor") : tensorFromArray(options.data);
      if (known && (!options.dtype || *options.dtype == tensor.dtype()) &&
          (!options.has_device || options.device == tensor.device())) {
        return Py_NewRef(options.data);
      }
      if (!known) warnOfConstructor("torch.as_tensor");
      if (known && options.dtype && tracing::Tracer::active()) {
        return tensorObject(
            onDevice(ops::toDType(tensor, static_cast<int64_t>(*options.dtype)), options));
      }
      return tensorObject(onDevice(options.dtype ? tensor.to(*options.dtype) : tensor, options));
    }
    warnOfConstructor("torch.as_tensor");
    const tracing::PauseTrace pause;
    return tensorObject(
        onDevice(tensorFromData(options.data, options.dtype, "as_tensor"), options));
  });
}

PyObject* bytesOf(PyObject*, PyObject* object) {
  return guarded([&] {
    const Tensor& given = tensorOf(object, "pickle");
    if (given.kind() != TensorKind::Dense || !given.device().isCpu()) {
      raise(PyExc_TypeError, "expected a dense tensor on the CPU");
    }
    const Tensor t = given.contiguous();
    const size_t bytes = static_cast<size_t>(t.numel()) * t.itemSize();
    return PyBytes_FromStringAndSize(bytes > 0 ? static_cast<const char*>(t.rawData()) : "",
                                     static_cast<Py_ssize_t>(bytes));
  });
}

PyObject* tensorOfBytes(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    const char* bytes = nullptr;
    Py_ssize_t length = 0;
    PyObject *type = nullptr, *shape = nullptr;
    if (!PyArg_ParseTuple(arguments, "y#OO", &bytes, &length, &type, &shape)) return nullptr;
    const auto dtype = dtypeOf(type);
    if (!dtype || isQuantized(*dtype)) raise(PyExc_TypeError, "expected a dtype of dense tensors");
    const Tensor t = Tensor::empty(toValue(shape).toDims(), *dtype);
    if (static_cast<size_t>(t.numel()) * t.itemSize() != static_cast<size_t>(length)) {
      raise(PyExc_ValueError,
            fmt::format("expected {} bytes for a tensor of {}, got {}",
                        static_cast<size_t>(t.numel()) * t.itemSize(), t.describe(), length));
    }
    if (length > 0) std::memcpy(t.rawData(), bytes, static_cast<size_t>(length));
    if (*dtype == DType::Bool &&
        std::any_of(bytes, bytes + length, [](char byte) { return byte != 0 && byte != 1; })) {
      raise(PyExc_ValueError, "expected booleans whose bytes are 0 and 1");
    }
    return tensorObject(t);
  });
}

PyObject* dataPointer(PyObject*, PyObject* object) {
  return guarded([&] {
    const Tensor& t = tensorOf(object, "data_ptr");
    return PyLong_FromVoidPtr(t.storage()->data() ? t.rawData() : nullptr);
  });
}

PyMethodDef functions[] = {
    {"_bytes_of", bytesOf, METH_O, nullptr},
    {"_tensor_of_bytes", tensorOfBytes, METH_VARARGS, nullptr},
    {"_data_ptr", dataPointer, METH_O, nullptr},
    {"tensor", methodOf(makeTensor), METH_VARARGS | METH_KEYWORDS,
     "A tensor with a copy of the data."},
    {"as_tensor", methodOf(asTensor), METH_VARARGS | METH_KEYWORDS,
     "A tensor on the data, without a copy where that can be."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor tensorFromData(PyObject* data, std::optional<DType> dtype, const char* what) {
  if (dtype) checkDense(*dtype, what);
  if (isTensor(data)) {
    const Tensor source = tensorOf(data, what).detach();
    if (dtype && *dtype != source.dtype()) return source.to(*dtype);
    return source.kind() == TensorKind::Dense ? source.clone() : ops::clone(source);
  }
  if (isArray(data) && !PyFloat_Check(data) && !PyComplex_Check(data)) {
    const Tensor source = tensorFromArray(data);
    return dtype && *dtype != source.dtype() ? source.to(*dtype) : source.clone();
  }
  Reader reader(what);
  reader.readShape(data);
  if (!dtype) reader.readDType(data, 0);
  checkDense(dtype.value_or(reader.dtype()), what);
  Tensor tensor = Tensor::empty(reader.sizes(), dtype.value_or(reader.dtype()));
  if (tensor.numel() > 0 || reader.sizes().size() > 1) reader.fill(data, tensor, 0);
  return tensor;
}

void addConstructors(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace wick::python
