#include "python/tensor_object.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <new>
#include <optional>

#include "autograd/tape.h"
#include "core/print_options.h"
#include "core/scalar.h"
#include "core/sparse_form.h"
#include "python/convert.h"
#include "python/eager.h"
#include "python/fake_recording.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/plain_types.h"
#include "python/tracing.h"
#include "runtime/ops/common_calls.h"

namespace wick::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// ---- operators ----

// The slots of the class: expressions of the language. The shifts of a number by a tensor are functions,
// because the signs are only known of other numbers.
#define WICK_FORALL_EXPRESSIONS(X)                     \
  X(kAdd, Binary, "+")                                 \
  X(kSub, Binary, "-")                                 \
  X(kMul, Binary, "*")                                 \
  X(kDiv, Binary, "/")                                 \
  X(kFloorDiv, Binary, "//")                           \
  X(kMod, Binary, "%")                                 \
  X(kPow, Binary, "**")                                \
  X(kMatMul, Binary, "@")                              \
  X(kAnd, Binary, "&")                                 \
  X(kOr, Binary, "|")                                  \
  X(kXor, Binary, "^")                                 \
  X(kLeft, Binary, "<<")                               \
  X(kRight, Binary, ">>")                              \
  X(kLess, Binary, "<")                                \
  X(kLessEqual, Binary, "<=")                          \
  X(kEqual, Binary, "==")                              \
  X(kNotEqual, Binary, "!=")                           \
  X(kGreater, Binary, ">")                             \
  X(kGreaterEqual, Binary, ">=")                       \
  X(kNegative, Unary, "-")                             \
  X(kInvert, Unary, "~")                               \
  X(kPositive, Unary, "+")                             \
  X(kAbs, Method, "abs")                               \
  X(kAddTo, Method, "add_")                            \
  X(kSubTo, Method, "sub_")                            \
  X(kMulTo, Method, "mul_")                            \
  X(kDivTo, Method, "div_")                            \
  X(kFloorDivTo, Method, "floor_divide_")              \
  X(kModTo, Method, "remainder_")                      \
  X(kPowTo, Method, "pow_")                            \
  X(kAndTo, Method, "bitwise_and_")                    \
  X(kOrTo, Method, "bitwise_or_")                      \
  X(kXorTo, Method, "bitwise_xor_")                    \
  X(kLeftTo, Method, "__ilshift__")                    \
  X(kRightTo, Method, "__irshift__")                   \
  X(kNumberLeft, Function, "torch.bitwise_left_shift") \
  X(kNumberRight, Function, "torch.bitwise_right_shift")

enum Expression : uint8_t {
#define WICK_NAME(name, form, text) name,
  WICK_FORALL_EXPRESSIONS(WICK_NAME)
#undef WICK_NAME
      kNumExpressions
};
struct ExpressionEntry {
  CallForm form;
  const char* text;
};
constexpr std::array<ExpressionEntry, kNumExpressions> kExpressions = {{
#define WICK_ENTRY(name, form, text) {CallForm::form, text},
    WICK_FORALL_EXPRESSIONS(WICK_ENTRY)
#undef WICK_ENTRY
}};
std::array<PyObject*, kNumExpressions> expressions{};

template <Expression kWhich>
PyObject* binary(PyObject* a, PyObject* b) {
  PyObject* const args[] = {a, b};
  return callEager(expressions[kWhich], args, 2, true);
}

// Of a number and a tensor as of the tensor and the number: the signs want the tensor first, and know
// booleans only behind it.
template <Expression kWhich>
PyObject* commutative(PyObject* a, PyObject* b) {
  return isTensor(a) ? binary<kWhich>(a, b) : binary<kWhich>(b, a);
}

template <Expression kWhich, Expression kOfNumber>
PyObject* shift(PyObject* a, PyObject* b) {
  return isTensor(a) ? binary<kWhich>(a, b) : binary<kOfNumber>(a, b);
}

template <Expression kWhich>
PyObject* unary(PyObject* self) {
  return callEager(expressions[kWhich], &self, 1);
}

template <Expression kWhich>
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<kWhich>(a, b);
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (b == Py_None || PyUnicode_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  static constexpr Expression kByOp[] = {kLess,     kLessEqual, kEqual,
                                         kNotEqual, kGreater,   kGreaterEqual};
  PyObject* const args[] = {a, b};
  return callEager(expressions[kByOp[op]], args, 2, true);
}

// ---- numbers ----

// What computes a value that is looked at. A lazy tensor's graph runs now: other threads go on meanwhile,
// and a signal ends it.
template <class F>
auto lookingAt(const Tensor& t, F&& f) {
  if (t.device().isCpu()) return f();
  noteLazyPlace();
  const Interruptible interruptible;
  return withoutGil(std::forward<F>(f));
}

Scalar elementOf(const Tensor& t) {
  return lookingAt(t, [&] { return Scalar::fromIValue(IValue(t)); });
}

// The tensor where its elements can be read one by one.
Tensor onCpu(const Tensor& t) {
  return lookingAt(t,
                   [&] { return t.device().isCpu() ? t : ops::toDevice(t, Device(), t.dtype()); });
}

constexpr int64_t kLooksForSignals = 4096;  // elements from one time to the next

IValue onlyElement(PyObject* self, const char* what) {
  const Tensor& t = tensorOf(self, what);
  if (t.numel() != 1) {
    raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  }
  return elementOf(t).toIValue();
}

int truth(PyObject* self) {
  int result = -1;
  guardedStatus([&] {
    const Tensor& t = tensorOf(self, "bool");
    warnOfConstant("boolean");
    if (t.numel() > 1) {
      raise(PyExc_RuntimeError, "Boolean value of Tensor with more than one value is ambiguous");
    }
    result = t.numel() == 1 && elementOf(t).toBool() ? 1 : 0;
  });
  return result;
}

// The only element as a number, which a trace takes for a constant; `kind` is what the warning calls it.
Owned plainNumber(PyObject* self, const char* what, const char* kind) {
  warnOfConstant(kind);
  return Owned(toPython(onlyElement(self, what)));
}

PyObject* asInt(PyObject* self) {
  return guarded([&] { return PyNumber_Long(plainNumber(self, "int", "integer").get()); });
}

PyObject* asFloat(PyObject* self) {
  return guarded([&] { return PyNumber_Float(plainNumber(self, "float", "float").get()); });
}

PyObject* asIndex(PyObject* self) {
  return guarded([&] {
    const Tensor& t = tensorOf(self, "index");
    if (t.numel() != 1 || !isIntegral(t.dtype(), true)) {
      raise(PyExc_TypeError,
            "only integer tensors of a single element can be converted to an index");
    }
    return PyNumber_Long(plainNumber(self, "index", "index").get());
  });
}

Py_ssize_t length(PyObject* self) {
  Py_ssize_t result = -1;
  guardedStatus([&] {
    const Tensor& t = tensorOf(self, "len");
    if (t.dim() == 0) raise(PyExc_TypeError, "len() of a 0-d tensor");
    warnOfTrace(
        "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage "
        "would be tensor.shape[0]. Passing a tensor of different shape might lead to errors or "
        "silently give incorrect results.");
    result = static_cast<Py_ssize_t>(t.size(0));
  });
  return result;
}

PyObject* iterate(PyObject* self) {
  return guarded([&] {
    if (tensorOf(self, "iter").dim() == 0) raise(PyExc_TypeError, "iteration over a 0-d tensor");
    warnOfTrace(
        "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of "
        "different shape won't change the number of iterations executed (and might lead to errors "
        "or silently give incorrect results).");
    const Owned parts = checked(PyObject_CallMethod(self, "unbind", "i", 0));
    return PyObject_GetIter(parts.get());
  });
}

int containsItem(PyObject* self, PyObject* item) {
  int result = -1;
  guardedStatus([&] {
    PyObject* const args[] = {self, item};
    const Owned equal = checked(callEager(expressions[kEqual], args, 2));
    const Owned any = checked(PyObject_CallMethod(equal.get(), "any", nullptr));
    result = PyObject_IsTrue(any.get());
    check(result);
  });
  return result;
}

// ---- text ----

PrintOptions print_options;  // under the GIL

std::string shown(const Tensor& t, const PrintOptions& options) {
  std::string text = formatTensor(t, options);
  const std::string suffix = "requires_grad=True)";
  if (t.requiresGrad() && text.ends_with(suffix)) {
    const autograd::Edge edge = autograd::gradientEdge(t);
    if (edge && !autograd::isLeaf(t)) {
      text.replace(text.size() - suffix.size(), suffix.size(),
                   fmt::format("grad_fn=<{}>)", edge.node->name()));
    }
  }
  return text;
}

// (precision, threshold, edgeitems, linewidth, sci_mode); wick.torch.set_printoptions checks them.
PyObject* setPrintOptions(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    int precision = 0;
    long long threshold = 0, edge_items = 0, line_width = 0;
    PyObject* scientific = nullptr;
    if (!PyArg_ParseTuple(arguments, "iLLLO", &precision, &threshold, &edge_items, &line_width,
                          &scientific)) {
      return nullptr;
    }
    print_options = {precision, threshold, edge_items, line_width, std::nullopt};
    if (scientific != Py_None) print_options.scientific = scientific == Py_True;
    Py_RETURN_NONE;
  });
}

PyMethodDef set_print_options = {"_set_print_options", setPrintOptions, METH_VARARGS, nullptr};

PyObject* represent(PyObject* self) {
  return guarded([&] {
    const Tensor& t = tensorOf(self, "repr");
    const PrintOptions options = print_options;
    const std::string text = lookingAt(t, [&] { return shown(t, options); });
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

PyObject* format(PyObject* self, PyObject* spec) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensorOf(self, "format");
    const bool as_number = t.dim() == 0 && (PyUnicode_GetLength(spec) > 0 || !t.requiresGrad());
    const Owned shown = checked(as_number ? itemOf(t) : represent(self));
    return PyObject_Format(shown.get(), spec);
  });
}

// ---- members ----

PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] { return plainNumber(self, "item", "number").leak(); });
}

PyObject* nestedList(const Tensor& t) {
  if (t.dim() == 0) return itemOf(t);
  const int64_t count = t.size(0);
  Owned list = checked(PyList_New(static_cast<Py_ssize_t>(count)));
  for (int64_t i = 0; i < count; ++i) {
    if (i % kLooksForSignals == 0) check(PyErr_CheckSignals());
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), nestedList(t.select(0, i)));
  }
  return list.leak();
}

PyObject* toList(PyObject* self, PyObject*) {
  return guarded([&] {
    warnOfConstant("list");
    const tracing::PauseTrace pause;
    return nestedList(onCpu(tensorOf(self, "tolist")));
  });
}

// The dimension that a call names, which may be none.
std::optional<int64_t> dimensionIn(const char* what, PyObject* const* args, Py_ssize_t count,
                                   PyObject* names, const Tensor& t) {
  const Py_ssize_t given = count + (names ? PyTuple_GET_SIZE(names) : 0);
  if (given > 1) raise(PyExc_TypeError, fmt::format("{}() takes at most one dimension", what));
  if (names && PyTuple_GET_SIZE(names) > 0 &&
      PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "dim") != 0) {
    const Owned shown =
        checked(PyUnicode_AsEncodedString(PyTuple_GET_ITEM(names, 0), "utf-8", "backslashreplace"));
    raise(PyExc_TypeError, fmt::format("{}() got an unexpected keyword argument '{}'", what,
                                       PyBytes_AS_STRING(shown.get())));
  }
  if (given == 0 || args[0] == Py_None) return std::nullopt;
  const int64_t d = PyLong_AsLongLong(args[0]);
  if (d == -1 && PyErr_Occurred()) throw PythonError();
  const int64_t n = std::max<int64_t>(t.dim(), 1);
  if (d < -n || d >= n || t.dim() == 0) {
    raise(PyExc_IndexError,
          fmt::format("Dimension out of range (expected to be in range of [{}, {}], but got {})",
                      -n, n - 1, d));
  }
  return d;
}

PyObject* sizeMethod(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensorOf(self, "size");
    const auto d = dimensionIn("size", args, count, names, t);
    tracing::Tracer* tracer = tracing::Tracer::active();
    if (!d) return tracer ? followedSizes(*tracer, t) : sizeObject(t.sizes());
    return tracer ? followedSize(*tracer, t, *d) : PyLong_FromLongLong(t.size(*d));
  });
}

PyObject* strideMethod(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensorOf(self, "stride");
    const auto d = dimensionIn("stride", args, count, names, t);
    if (d) return PyLong_FromLongLong(t.stride(*d));
    const Owned sizes(sizeObject(t.strides()));
    return PySequence_Tuple(checked(PySequence_List(sizes.get())).get());
  });
}

PyObject* getDType(PyObject* self, void*) {
  return guarded([&] { return Py_NewRef(dtypeObject(tensorOf(self, "dtype").dtype())); });
}
PyObject* getDevice(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensorOf(self, "device");
    return deviceObject(deviceSeenOn(t));
  });
}
PyObject* getShape(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensorOf(self, "shape");
    if (tracing::Tracer* tracer = tracing::Tracer::active()) return followedSizes(*tracer, t);
    return sizeObject(t.sizes());
  });
}
PyObject* getLayout(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensorOf(self, "layout");
    const bool sparse = t.kind() == TensorKind::Sparse;
    const int64_t layout = sparse ? static_cast<int64_t>(sparseFormOf("layout", t).layout) : 0;
    return Py_NewRef(numberObject(NumberKind::Layout, layout));
  });
}
PyObject* getRequiresGrad(PyObject* self, void*) {
  return guarded(
      [&] { return PyBool_FromLong(autograd::requiresGradient(tensorOf(self, "requires_grad"))); });
}
int setRequiresGrad(PyObject* self, PyObject* value, void*) {
  return guardedStatus([&] {
    if (!value) raise(PyExc_AttributeError, "requires_grad cannot be deleted");
    const int on = PyObject_IsTrue(value);
    check(on);
    const Owned result =
        checked(PyObject_CallMethod(self, "requires_grad_", "O", on ? Py_True : Py_False));
  });
}
PyObject* getGrad(PyObject* self, void*) {
  return guarded([&] { return tensorObject(autograd::gradientOf(tensorOf(self, "grad"))); });
}
int setGrad(PyObject* self, PyObject* value, void*) {
  return guardedStatus([&] {
    const Tensor& t = tensorOf(self, "grad");
    if (!value || value == Py_None) {
      if (autograd::gradientOf(t).defined()) autograd::setGradient(t, Tensor());
      return;
    }
    const Tensor& gradient = tensorOf(value, "grad");
    if (!(gradient.impl()->sizes == t.impl()->sizes) || gradient.dtype() != t.dtype()) {
      raise(PyExc_RuntimeError, fmt::format("assigned grad {} does not fit a tensor of {}",
                                            gradient.describe(), t.describe()));
    }
    autograd::setGradient(t, gradient);
  });
}
PyObject* getGradFn(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensorOf(self, "grad_fn");
    const autograd::Edge edge = autograd::gradientEdge(t);
    if (!edge || autograd::isLeaf(t)) Py_RETURN_NONE;
    return PyUnicode_FromString(fmt::format("<{}>", edge.node->name()).c_str());
  });
}
PyObject* getData(PyObject* self, void*) {
  return guarded([&] {
    static const OperatorHandle kDetach("aten::detach", "");
    const Tensor& t = tensorOf(self, "data");
    return tensorObject(tracing::Tracer::active() ? kDetach(t) : t.detach());
  });
}
int setData(PyObject* self, PyObject* value, void*) {
  return guardedStatus([&] {
    const Tensor& t = tensorOf(self, "data");
    if (!value) raise(PyExc_AttributeError, "data cannot be deleted");
    const Tensor& other = tensorOf(value, "data");
    if (t.requiresGrad() && !isFloating(other.dtype()) && !isComplex(other.dtype())) {
      raise(PyExc_RuntimeError,
            fmt::format("data: a tensor that requires gradients takes floating-point or complex "
                        "data, not {}",
                        toString(other.dtype())));
    }
    t.impl()->takeOver(*other.detach().impl());
  });
}
PyObject* getVersion(PyObject* self, void*) {
  return guarded(
      [&] { return PyLong_FromUnsignedLong(tensorOf(self, "_version").storage()->version()); });
}

// After an AttributeError: what `again` finds once the class has the member that the language knows. The
// error stays when it knows none.
template <class F>
PyObject* findMemberInstead(PyObject* name, F&& again) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject* member = findTensorMember(name)) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    Py_DECREF(member);
    return again();
  }
  if (!PyErr_Occurred()) PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* getAttribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return findMemberInstead(name, [&] { return PyObject_GenericGetAttr(self, name); });
}

// ---- making and freeing ----

PyObject* allocate(PyTypeObject* type, Tensor tensor) {
  PyObject* object = type->tp_alloc(type, 0);
  if (!object) throw PythonError();
  new (&reinterpret_cast<TensorObject*>(object)->tensor) Tensor(std::move(tensor));
  return object;
}

bool isInt(PyObject* object) {
  return PyLong_Check(object) && !PyBool_Check(object);
}

// Tensor(2, 3): uninitialized; Tensor([1, 2]): of these numbers.
PyObject* newTensor(PyTypeObject* type, PyObject* arguments, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_Size(kwargs) > 0) raise(PyExc_TypeError, "Tensor takes no keywords");
    const Py_ssize_t count = PyTuple_GET_SIZE(arguments);
    if (count == 1 && !isInt(PyTuple_GET_ITEM(arguments, 0))) {
      PyObject* data = PyTuple_GET_ITEM(arguments, 0);
      if (isTensor(data)) return allocate(type, tensorIn(data).detach());
      if (isSize(data)) {
        IValue sizes;
        tryValue(data, sizes);
        return allocate(type, Tensor::zeros(sizes.toDims(), defaultDType()));
      }
      return allocate(type, tensorFromData(data, defaultDType(), "Tensor"));
    }
    DimVector sizes;
    for (Py_ssize_t i = 0; i < count; ++i) {
      sizes.push_back(toValue(PyTuple_GET_ITEM(arguments, i)).toInt());
    }
    if (count == 0) sizes.push_back(0);
    return allocate(type, Tensor::zeros(sizes, defaultDType()));
  });
}

// A tensor of a derived class on the same memory.
PyObject* makeSubclass(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject *type = nullptr, *data = nullptr;
    int requires_grad = 0;
    if (!PyArg_ParseTuple(arguments, "OO|p", &type, &data, &requires_grad)) return nullptr;
    if (!PyType_Check(type) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
      raise(PyExc_TypeError, "_make_subclass: expected a class derived from Tensor");
    }
    Tensor tensor = tensorOf(data, "_make_subclass").detach();
    if (requires_grad) markRequiresGrad(tensor);
    return allocate(reinterpret_cast<PyTypeObject*>(type), std::move(tensor));
  });
}

void freeTensor(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  auto* object = reinterpret_cast<TensorObject*>(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  object->tensor.~Tensor();
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"item", item, METH_NOARGS, "The only element as a number."},
    {"tolist", toList, METH_NOARGS, "The elements as nested lists."},
    {"size", methodOf(sizeMethod), METH_FASTCALL | METH_KEYWORDS,
     "All sizes, or that of a dimension."},
    {"stride", methodOf(strideMethod), METH_FASTCALL | METH_KEYWORDS,
     "All strides, or that of a dimension."},
    {"__format__", format, METH_O, nullptr},
    {"_make_subclass", makeSubclass, METH_VARARGS | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"dtype", getDType, nullptr, nullptr, nullptr},
    {"device", getDevice, nullptr, nullptr, nullptr},
    {"shape", getShape, nullptr, nullptr, nullptr},
    {"layout", getLayout, nullptr, nullptr, nullptr},
    {"requires_grad", getRequiresGrad, setRequiresGrad, nullptr, nullptr},
    {"grad", getGrad, setGrad, nullptr, nullptr},
    {"grad_fn", getGradFn, nullptr, nullptr, nullptr},
    {"data", getData, setData, nullptr, nullptr},
    {"_version", getVersion, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

// Tensor.add is found on the class as x.add is on a tensor.
PyObject* getClassAttribute(PyObject* type, PyObject* name) {
  PyObject* found = PyType_Type.tp_getattro(type, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return findMemberInstead(name, [&] { return PyType_Type.tp_getattro(type, name); });
}

// The class of the class.
PyTypeObject* makeMetaclass() {
  PyType_Slot slots[] = {{Py_tp_getattro, slot(getClassAttribute)}, {0, nullptr}};
  PyType_Spec spec = {"wick.TensorMeta", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const Owned bases = checked(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyType_Type)));
  return reinterpret_cast<PyTypeObject*>(
      checked(PyType_FromSpecWithBases(&spec, bases.get())).leak());
}

}  // namespace

const Tensor& tensorOf(PyObject* object, const char* what) {
  if (!isTensor(object)) {
    raise(PyExc_TypeError,
          fmt::format("{}: expected a Tensor, got {}", what, Py_TYPE(object)->tp_name));
  }
  const Tensor& tensor = tensorIn(object);
  if (!tensor.defined()) raise(PyExc_RuntimeError, fmt::format("{}: the tensor is empty", what));
  return tensor;
}

void markRequiresGrad(const Tensor& tensor) {
  if (!isFloating(tensor.dtype()) && !isComplex(tensor.dtype())) {
    raise(PyExc_RuntimeError,
          "only Tensors of floating point and complex dtype can require gradients");
  }
  noteInFakes("a tensor that requires a gradient is made");
  tensor.setRequiresGrad(true);
}

PyObject* tensorObject(Tensor tensor) {
  if (!tensor.defined()) return Py_NewRef(Py_None);
  return allocate(tensor_type, std::move(tensor));
}

PyObject* itemOf(const Tensor& tensor) {
  return toPython(elementOf(tensor).toIValue());
}

void addTensorType(PyObject* module) {
  for (size_t i = 0; i < kNumExpressions; ++i) {
    expressions[i] = eagerFunction(kExpressions[i].form, kExpressions[i].text,
                                   std::string("Tensor ") + kExpressions[i].text);
  }
  PyType_Slot slots[] = {
      {Py_tp_new, slot(newTensor)},
      {Py_tp_dealloc, slot(freeTensor)},
      {Py_tp_repr, slot(represent)},
      {Py_tp_getattro, slot(getAttribute)},
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_hash, slot(_Py_HashPointer)},
      {Py_tp_iter, slot(iterate)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {Py_tp_members, members},
      {Py_mp_length, slot(length)},
      {Py_mp_subscript, slot(getItem)},
      {Py_mp_ass_subscript, slot(setItem)},
      {Py_sq_contains, slot(containsItem)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_int, slot(asInt)},
      {Py_nb_float, slot(asFloat)},
      {Py_nb_index, slot(asIndex)},
      {Py_nb_add, slot(commutative<kAdd>)},
      {Py_nb_subtract, slot(binary<kSub>)},
      {Py_nb_multiply, slot(commutative<kMul>)},
      {Py_nb_true_divide, slot(binary<kDiv>)},
      {Py_nb_floor_divide, slot(binary<kFloorDiv>)},
      {Py_nb_remainder, slot(binary<kMod>)},
      {Py_nb_power, slot(power<kPow>)},
      {Py_nb_matrix_multiply, slot(binary<kMatMul>)},
      {Py_nb_and, slot(commutative<kAnd>)},
      {Py_nb_or, slot(commutative<kOr>)},
      {Py_nb_xor, slot(commutative<kXor>)},
      {Py_nb_lshift, slot(shift<kLeft, kNumberLeft>)},
      {Py_nb_rshift, slot(shift<kRight, kNumberRight>)},
      {Py_nb_negative, slot(unary<kNegative>)},
      {Py_nb_invert, slot(unary<kInvert>)},
      {Py_nb_positive, slot(unary<kPositive>)},
      {Py_nb_absolute, slot(unary<kAbs>)},
      {Py_nb_inplace_add, slot(binary<kAddTo>)},
      {Py_nb_inplace_subtract, slot(binary<kSubTo>)},
      {Py_nb_inplace_multiply, slot(binary<kMulTo>)},
      {Py_nb_inplace_true_divide, slot(binary<kDivTo>)},
      {Py_nb_inplace_floor_divide, slot(binary<kFloorDivTo>)},
      {Py_nb_inplace_remainder, slot(binary<kModTo>)},
      {Py_nb_inplace_power, slot(power<kPowTo>)},
      {Py_nb_inplace_and, slot(binary<kAndTo>)},
      {Py_nb_inplace_or, slot(binary<kOrTo>)},
      {Py_nb_inplace_xor, slot(binary<kXorTo>)},
      {Py_nb_inplace_lshift, slot(binary<kLeftTo>)},
      {Py_nb_inplace_rshift, slot(binary<kRightTo>)},
      {0, nullptr},
  };
  PyType_Spec spec = {"wick.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).leak());
  Py_SET_TYPE(tensor_type, makeMetaclass());  // which a spec cannot name before Python 3.12
  check(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)));
  const Owned setter = checked(PyCFunction_New(&set_print_options, nullptr));
  check(PyModule_AddObjectRef(module, "_set_print_options", setter.get()));
}

}  // namespace wick::python
