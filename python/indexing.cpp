// Python's subscripts: one view after the other, then one operator for all tensors among them.
#include <fmt/format.h>

#include "python/convert.h"
#include "python/interrupts.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"
#include "python/tracing.h"
#include "runtime/ops/common_calls.h"

namespace wick::python {
namespace {

const OperatorHandle kAlias("aten::alias", "");
const OperatorHandle kFill("aten::fill_", "Scalar");

constexpr Py_ssize_t kMaxTupleLikeLength = 32;

using tracing::Tracer;

bool isSequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object);
}

// An array of numpy, unlike its numbers.
bool isWritableArray(PyObject* object) {
  const PyMappingMethods* methods = Py_TYPE(object)->tp_as_mapping;
  return methods && methods->mp_ass_subscript && isArray(object);
}

// A list is a tuple of subscripts when it holds anything but numbers, as in PyTorch 1.13.
bool isTupleOfSubscripts(PyObject* index) {
  if (PyTuple_Check(index)) return true;
  if (!PyList_Check(index) || PyList_GET_SIZE(index) >= kMaxTupleLikeLength) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index); ++i) {
    PyObject* item = PyList_GET_ITEM(index, i);
    if (isTensor(item) || isSequence(item) || PySlice_Check(item) || item == Py_None ||
        item == Py_Ellipsis) {
      return true;
    }
  }
  return false;
}

// What all the subscripts but those with many elements leave, and these by dimension.
class Subscripts {
 public:
  Subscripts(Tensor self, PyObject* index) : result_(std::move(self)) {
    if (!isTupleOfSubscripts(index)) {
      items_.push_back(Owned::share(index));
    } else {
      const Owned fast = checked(PySequence_Fast(index, "subscripts"));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
        items_.push_back(Owned::share(PySequence_Fast_GET_ITEM(fast.get(), i)));
      }
    }
    count();
    for (const Owned& item : items_) apply(item.get());
  }

  const Tensor& view() const { return result_; }
  bool hasTensors() const { return !tensors_.empty(); }
  bool isWhole() const { return !changed_; }
  IValue tensors() const { return IValue(makeList(types::Optional(types::Tensor()), tensors_)); }

 private:
  static bool isMask(const Tensor& t) {
    return t.dtype() == DType::Bool || t.dtype() == DType::Byte;
  }

  void count() {
    for (Owned& item : items_) {
      PyObject* object = item.get();
      if (isSequence(object) || isWritableArray(object)) {
        const Tensor indices = tensorFromData(object, std::nullopt, "subscript");
        item = Owned(tensorObject(indices.numel() == 0 && indices.dtype() == DType::Float
                                      ? indices.to(DType::Long)
                                      : indices));
        object = item.get();
      }
      if (isTensor(object)) {
        const Tensor& t = tensorIn(object);
        specified_ += isMask(t) ? t.dim() : 1;
      } else if (object != Py_None && object != Py_Ellipsis && !PyBool_Check(object)) {
        ++specified_;
      }
    }
    const int64_t dims = result_.dim();
    if (specified_ > dims) {
      raise(PyExc_IndexError,
            dims == 0 ? std::string("invalid index of a 0-dim tensor. Use "
                                    "`tensor.item()` to convert it to a number")
                      : fmt::format("too many indices for tensor of dimension {}", dims));
    }
    missing_ = dims - specified_;
  }

  void record(Tensor t) {
    tensors_.resize(static_cast<size_t>(dim_) + 1);
    // A mask covers as many dimensions as it has.
    const int64_t covered = isMask(t) && t.dim() > 0 ? t.dim() : 1;
    tensors_[static_cast<size_t>(dim_)] = IValue(std::move(t));
    dim_ += covered;
  }

  void applyBool(bool on) {
    result_ = ops::unsqueeze(result_, dim_);
    changed_ = true;
    Tensor mask = Tensor::empty({1}, DType::Bool);
    *mask.data<bool>() = on;
    record(mask);
  }

  void applySlice(PyObject* slice) {
    auto* parts = reinterpret_cast<PySliceObject*>(slice);
    const auto bound = [](PyObject* part, IValue none) {
      if (part == Py_None) return none;
      const Owned number = checked(PyNumber_Index(part));
      // Beyond 64 bits every bound means the end.
      const Py_ssize_t value = PyNumber_AsSsize_t(number.get(), nullptr);
      return IValue(static_cast<int64_t>(value));
    };
    const IValue step = bound(parts->step, IValue(int64_t{1}));
    if (Tracer* tracer = Tracer::active()) {
      tracer->stash({nullptr, nullptr, boundValue(*tracer, parts->start),
                     boundValue(*tracer, parts->stop), boundValue(*tracer, parts->step)});
    }
    if (step.toInt() <= 0) raise(PyExc_ValueError, "step must be greater than zero");
    if (parts->start != Py_None || parts->stop != Py_None || step.toInt() != 1) {
      result_ = ops::slice(result_, dim_, bound(parts->start, IValue()),
                           bound(parts->stop, IValue()), step);
      changed_ = true;
    }
    ++dim_;
  }

  // What a trace follows of a bound or an index, or null.
  static Value* boundValue(Tracer& tracer, PyObject* object) {
    if (isTensor(object)) return tracer.intOf(tensorIn(object));
    if (!PyIndex_Check(object)) return nullptr;
    return followedValue(tracer, object, IValue());
  }

  void applySelect(int64_t index, PyObject* object) {
    const int64_t size = result_.size(dim_);
    if (index < -size || index >= size) {
      raise(PyExc_IndexError, fmt::format("index {} is out of bounds for dimension {} with size {}",
                                          index, dim_, size));
    }
    if (Tracer* tracer = Tracer::active()) {
      tracer->stash({nullptr, nullptr, boundValue(*tracer, object)});
    }
    result_ = ops::select(result_, dim_, index);
    changed_ = true;
  }

  void applyTensor(PyObject* object) {
    const Tensor& t = tensorIn(object);
    if (t.dim() > 0) {
      record(t);
    } else if (t.dtype() == DType::Bool) {
      applyBool(t.item<bool>());
    } else if (isIntegral(t.dtype(), false) && t.dtype() != DType::Byte) {
      applySelect(t.item<int64_t>(), object);
    } else {
      record(t);
    }
  }

  void apply(PyObject* item) {
    if (isTensor(item)) {
      applyTensor(item);
    } else if (PyBool_Check(item)) {
      applyBool(item == Py_True);
    } else if (item == Py_None) {
      result_ = ops::unsqueeze(result_, dim_++);
      changed_ = true;
    } else if (item == Py_Ellipsis) {
      dim_ += missing_;
      missing_ = 0;
    } else if (PySlice_Check(item)) {
      applySlice(item);
    } else if (PyIndex_Check(item)) {
      const Owned number = checked(PyNumber_Index(item));
      const int64_t index = PyLong_AsLongLong(number.get());
      if (index == -1 && PyErr_Occurred()) throw PythonError();
      applySelect(index, item);
    } else {
      raise(PyExc_IndexError,
            fmt::format("only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                        "Variables are valid indices (got {})",
                        Py_TYPE(item)->tp_name));
    }
  }

  Tensor result_;
  std::vector<Owned> items_;
  std::vector<IValue> tensors_;
  int64_t specified_ = 0;
  int64_t missing_ = 0;
  int64_t dim_ = 0;
  bool changed_ = false;
};

// The indices as the operator takes them: a mask of several dimensions stands for all of them, so
// the empty places behind it go.
IValue operatorIndices(const IValue& by_dimension) {
  std::vector<IValue> out;
  const std::vector<IValue>& all = by_dimension.toList().elements;
  for (size_t i = 0; i < all.size(); ++i) {
    out.push_back(all[i]);
    if (!all[i].isTensor()) continue;
    const Tensor t = all[i].toTensor();
    if ((t.dtype() == DType::Bool || t.dtype() == DType::Byte) && t.dim() > 1) {
      i += static_cast<size_t>(t.dim()) - 1;
    }
  }
  return IValue(makeList(types::Optional(types::Tensor()), std::move(out)));
}

// The value without leading dimensions of size 1 that the view does not have.
Tensor withoutLeadingOnes(const Tensor& value, int64_t dims) {
  int64_t first = 0;
  while (value.dim() - first > dims && value.size(first) == 1) ++first;
  if (first == 0) return value;
  const IntSpan sizes = value.sizes();
  return ops::reshape(value,
                      IntSpan(sizes.data() + first, sizes.size() - static_cast<size_t>(first)));
}

void assign(const Subscripts& target, PyObject* value) {
  IValue given;
  if (isNamedNumber(value)) {
    raise(PyExc_TypeError,
          fmt::format("expected a number or tensor to assign, got {}", Py_TYPE(value)->tp_name));
  }
  if (!isTensor(value) && tryValue(value, given) && given.isNumber()) {
    if (!target.hasTensors()) {
      if (Tracer* tracer = Tracer::active()) {
        tracer->stash({nullptr, followedValue(*tracer, value, given)});
      }
      kFill.all(target.view(), given);
      return;
    }
    const Tensor number = Tensor::empty({}, target.view().dtype());
    if (isFollowed(value)) warnOfConstant("number");
    {
      const tracing::PauseTrace pause;
      kFill.all(number, given);
    }
    ops::indexPutInto.all(target.view(), operatorIndices(target.tensors()), number);
    return;
  }
  const Tensor source = isTensor(value)
                            ? tensorIn(value)
                            : tensorFromData(value, target.view().dtype(), "assigned value");
  const WithoutGil others;
  if (target.hasTensors()) {
    ops::indexPutInto.all(target.view(), operatorIndices(target.tensors()), source);
  } else {
    ops::copyInto.all(target.view(), withoutLeadingOnes(source, target.view().dim()));
  }
}

}  // namespace

PyObject* getItem(PyObject* self, PyObject* index) {
  return guarded([&] {
    if (Tracer* tracer = Tracer::active()) notePlace(*tracer);
    const Subscripts found(tensorOf(self, "subscript"), index);
    if (found.hasTensors()) {
      const Interruptible interruptible;
      Tensor result;
      {
        const WithoutGil others;
        result = ops::index(found.view(), operatorIndices(found.tensors()));
      }
      return tensorObject(std::move(result));
    }
    return tensorObject(found.isWhole() ? kAlias(found.view()) : found.view());
  });
}

int setItem(PyObject* self, PyObject* index, PyObject* value) {
  return guardedStatus([&] {
    if (!value) raise(PyExc_TypeError, "elements of a tensor cannot be deleted");
    if (Tracer* tracer = Tracer::active()) notePlace(*tracer);
    // A boolean alone says whether anything is written, with the conversion that copies have.
    if (index == Py_False) return;
    const Subscripts target(tensorOf(self, "subscript"), index == Py_True ? Py_None : index);
    const Interruptible interruptible;
    assign(target, value);
  });
}

}  // namespace wick::python
