// Between tensors and other values: tensors from numbers and lists, numbers from tensors, and the
// attributes of a tensor.
#include "core/budget.h"
#include "core/device_backend.h"
#include "core/number_range.h"
#include "core/scalar.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

using I = int64_t;
using C = std::complex<double>;

// ---- numbers from tensors ----

Scalar onlyElement(const Tensor& t) {
  WICK_CHECK(t.numel() == 1, "a Tensor with {} elements cannot be converted to Scalar", t.numel());
  return Scalar::fromIValue(IValue(t));
}
I intOf(const Tensor& t) {
  Scalar s = onlyElement(t);
  bool exact = !s.isComplex() || s.to<C>().imag() == 0;
  double v = s.isInt() || s.isBool() ? 0 : s.toDouble();
  WICK_CHECK(exact && v >= -0x1p63 && v < 0x1p63,
             "value cannot be converted to type int64_t without overflow");
  return s.toInt();
}
double floatOf(const Tensor& t) {
  Scalar s = onlyElement(t);
  WICK_CHECK(!s.isComplex() || s.to<C>().imag() == 0,
             "value cannot be converted to type double without overflow");
  return s.toDouble();
}
C complexOf(const Tensor& t) {
  return onlyElement(t).to<C>();
}
bool boolOf(const Tensor& t) {
  WICK_CHECK(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  WICK_CHECK(t.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return onlyElement(t).toBool();
}

// Where a number is expected, a tensor stands for one only when nothing can be lost.
void checkImplicit(const Tensor& t) {
  WICK_CHECK(!t.requiresGrad(), "Cannot input a tensor that requires grad as a scalar argument");
  WICK_CHECK(t.dim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
}
I intImplicit(const Tensor& t) {
  checkImplicit(t);
  WICK_CHECK(isIntegral(t.dtype(), /*include_bool=*/false),
             "Cannot input a tensor of type {} as an integral argument", scalarTypeName(t.dtype()));
  return intOf(t);
}
double floatImplicit(const Tensor& t) {
  checkImplicit(t);
  return floatOf(t);
}
C complexImplicit(const Tensor& t) {
  checkImplicit(t);
  return complexOf(t);
}
Scalar scalarImplicit(const Tensor& t) {
  checkImplicit(t);
  return onlyElement(t);
}

// ---- tensors from numbers and lists ----

// Numbers without a tensor's dtype: floats keep all their bits.
Tensor numToTensor(const Scalar& s) {
  if (s.isDouble()) return Tensor::scalar(s.toDouble());
  if (s.isComplex()) return Tensor::scalar(s.to<C>());
  return s.isBool() ? Tensor::scalar(s.toBool()) : Tensor::scalar(s.toInt());
}

Tensor placed(Tensor t, std::optional<DType> dtype, std::optional<Device> device) {
  if (dtype) t = t.to(*dtype);
  if (device && *device != t.device()) {
    t = ops::toDevice(t, *device, t.dtype());
  }
  return t;
}

// How the numbers in nested lists become one tensor.
class ListReader {
 public:
  explicit ListReader(const IValue& data) {
    measure(data);
    classify(*data.type(), data, 0);
  }

  Tensor read(const IValue& data, std::optional<DType> dtype) const {
    DType natural = complex_   ? toComplexType(defaultDType())
                    : float_   ? defaultDType()
                    : integer_ ? DType::Long
                               : DType::Bool;
    DType wide = complex_ ? DType::ComplexDouble : float_ ? DType::Double : natural;
    Tensor t = Tensor::empty(sizes_, wide);
    switch (wide) {
      case DType::ComplexDouble:
        fill(data, t.data<C>(), [](const IValue& v) { return v.numberToComplex(); });
        break;
      case DType::Double:
        fill(data, t.data<double>(), [](const IValue& v) { return v.numberToDouble(); });
        break;
      case DType::Long:
        fill(data, t.data<int64_t>(), [](const IValue& v) { return v.numberToInt(); });
        break;
      default:
        fill(data, t.data<bool>(), [](const IValue& v) { return v.toBool(); });
    }
    return t.to(dtype.value_or(natural));
  }

 private:
  static constexpr size_t kMaxDepth = 64;

  // The sizes along the first elements; the others must agree.
  void measure(const IValue& data) {
    const IValue* at = &data;
    while (at->isList()) {
      WICK_CHECK(sizes_.size() < kMaxDepth, "tensor: lists are nested too deeply");
      sizes_.push_back(static_cast<I>(at->elements().size()));
      if (at->elements().empty()) break;
      at = &at->elements()[0];
    }
    checkedNumel(sizes_);
  }

  void classify(const Type& type, const IValue& data, size_t depth) {
    const Type* leaf = &type;
    while (const auto* list = leaf->as<ListType>()) leaf = list->element().get();
    switch (leaf->kind()) {
      case TypeKind::Int:
        integer_ = true;
        return;
      case TypeKind::Float:
        float_ = true;
        return;
      case TypeKind::Complex:
        complex_ = true;
        return;
      case TypeKind::Bool:
        return;
      default:
        // number, Union, Any: the elements themselves say it.
        noteElements(data, depth);
        if (!integer_ && !float_ && !complex_ && !any_bool_) {
          WICK_CHECK(checkedNumel(sizes_) == 0 && leaf->kind() == TypeKind::Number,
                     "tensor: Input must be of ints, floats, or bools, got {}", leaf->str());
          float_ = true;
        }
    }
  }
  // Lists may share their parts, so that there are far more elements than values.
  void noteElements(const IValue& v, size_t depth) {
    pace_.step();
    if (v.isList()) {
      WICK_CHECK(depth < kMaxDepth, "tensor: lists are nested too deeply");
      for (const IValue& e : v.elements()) noteElements(e, depth + 1);
      return;
    }
    WICK_CHECK(v.isNumber(), "tensor: Input must be of ints, floats, or bools, got {}",
               v.tagName());
    integer_ |= v.isInt();
    float_ |= v.isDouble();
    complex_ |= v.isComplex();
    any_bool_ |= v.isBool();
  }

  template <class T, class Convert>
  void fill(const IValue& data, T* out, Convert convert) const {
    T* at = out;
    fillLevel(data, 0, at, convert);
  }
  template <class T, class Convert>
  void fillLevel(const IValue& v, size_t dim, T*& out, Convert convert) const {
    pace_.step();
    if (dim == sizes_.size()) {
      *out++ = convert(v);
      return;
    }
    const auto& elements = v.elements();
    WICK_CHECK(static_cast<I>(elements.size()) == sizes_[dim],
               "Expected sequence of length {} at dim {} (got {})", sizes_[dim], dim,
               elements.size());
    for (const IValue& e : elements) fillLevel(e, dim + 1, out, convert);
  }

  mutable Pace pace_;
  DimVector sizes_;
  bool integer_ = false;
  bool float_ = false;
  bool complex_ = false;
  bool any_bool_ = false;
};

Tensor fromList(const IValue& data, std::optional<DType> dtype, std::optional<Device> device) {
  return moveTo(ListReader(data).read(data, dtype), deviceFor(device));
}
// A number has its default dtype before it gets the one that is asked for, and must fit there.
Tensor fromNumber(const Scalar& s, std::optional<DType> dtype, std::optional<Device> device) {
  checkFits(s, s.dtype());
  return moveTo(numToTensor(s).to(dtype.value_or(s.dtype())), deviceFor(device));
}
// `kMake` is one of the two above.
template <class Data, auto kMake>
Tensor tensorOf(const Data& data, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
  Tensor t = kMake(data, dtype, device);
  WICK_CHECK(!requires_grad || isFloating(t.dtype()) || isComplex(t.dtype()),
             "Only Tensors of floating point and complex dtype can require gradients");
  if (requires_grad) t.setRequiresGrad(true);
  return t;
}
Tensor listToTensor(const DimVector& values) {
  return Tensor::fromData(values.data(), DimVector{static_cast<I>(values.size())}).to(DType::Int);
}
DimVector tensorToList(const Tensor& t) {
  Tensor flat = moveTo(t, Device()).to(DType::Long).flatten().contiguous();
  return DimVector(IntSpan(flat.data<int64_t>(), static_cast<size_t>(flat.numel())));
}

// ---- attributes ----

#define WICK_TENSOR_OF(type)                                                                  \
  {"aten::tensor." type "(" type                                                              \
   " t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor", \
   WICK_KERNEL((tensorOf<Scalar, fromNumber>)), kNondeterministic},                           \
  {                                                                                           \
    "aten::as_tensor." type "(" type                                                          \
    " t, *, ScalarType? dtype=None, Device? device=None) -> Tensor",                          \
        WICK_KERNEL(fromNumber)                                                               \
  }
#define WICK_NEVER(name) \
  { "prim::" name "(Tensor a) -> bool", WICK_KERNEL(never), kAnyKind }

#define WICK_IS(name, which)                                                       \
  {                                                                                \
    "prim::" name "(Tensor a) -> bool",                                            \
        WICK_LAMBDA([](const Tensor& t) { return t.kind() == (which); }), kAnyKind \
  }

const OperatorRecord kPrimTensorsRecords[] = {
    {"aten::Int.Tensor(Tensor a) -> int", WICK_KERNEL(intOf), kNeutralMixed},
    {"aten::Float.Tensor(Tensor a) -> float", WICK_KERNEL(floatOf), kNeutralMixed},
    {"aten::Bool.Tensor(Tensor a) -> bool", WICK_KERNEL(boolOf), kNeutralMixed},
    {"aten::Complex.Tensor(Tensor a) -> complex", WICK_KERNEL(complexOf), kNeutralMixed},
    {"aten::IntImplicit(Tensor a) -> int", WICK_KERNEL(intImplicit), kNeutralMixed},
    {"aten::FloatImplicit(Tensor a) -> float", WICK_KERNEL(floatImplicit), kNeutralMixed},
    {"aten::ComplexImplicit(Tensor a) -> complex", WICK_KERNEL(complexImplicit), kNeutralMixed},
    {"aten::ScalarImplicit(Tensor a) -> Scalar", WICK_KERNEL(scalarImplicit), kNeutralMixed},
    {"prim::NumToTensor.Scalar(Scalar a) -> Tensor", WICK_KERNEL(numToTensor)},
    {"prim::NumToTensor.bool(bool a) -> Tensor",
     WICK_LAMBDA([](bool a) { return Tensor::scalar(a); })},

    {"aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, "
     "bool requires_grad=False) -> Tensor",
     WICK_KERNEL((tensorOf<IValue, fromList>)), kNondeterministic},
    {"aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     WICK_KERNEL(fromList)},
    {"aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> "
     "Tensor(b|a)",
     WICK_KERNEL(placed), kNeutralMixed},
    // PyTorch's order: the first one takes tensors, which become numbers then.
    WICK_TENSOR_OF("float"),
    WICK_TENSOR_OF("int"),
    WICK_TENSOR_OF("bool"),
    WICK_TENSOR_OF("complex"),
    {"aten::_list_to_tensor(int[] self) -> Tensor", WICK_KERNEL(listToTensor)},
    {"aten::_tensor_to_list(Tensor self) -> int[]", WICK_KERNEL(tensorToList), kNeutralMixed},

    {"prim::dtype(Tensor a) -> int", WICK_LAMBDA([](const Tensor& t) { return t.dtype(); }),
     kAnyKind | kNeutralMixed},
    {"prim::device(Tensor a) -> Device",
     WICK_LAMBDA([](const Tensor& t) -> Device { return t.device(); }), kAnyKind | kNeutralMixed},
    {"prim::layout(Tensor a) -> Layout", WICK_LAMBDA([](const Tensor&) { return I{0}; }),
     kNeutralMixed},
    {"prim::name(Tensor a) -> str?", WICK_LAMBDA([](const Tensor&) { return IValue(); }), kAnyKind},
    {"prim::data(Tensor(a) a) -> Tensor(a)",
     WICK_LAMBDA([](const Tensor& t) { return t.detach(); }), kAnyKind | kNeutralMixed},
    {"prim::itemsize(Tensor a) -> int",
     WICK_LAMBDA([](const Tensor& t) { return static_cast<I>(t.itemSize()); }), kAnyKind},
    {"prim::nbytes(Tensor a) -> int",
     WICK_LAMBDA([](const Tensor& t) { return static_cast<I>(t.itemSize()) * t.numel(); }),
     kNeutralMixed},
    {"prim::is_cpu(Tensor a) -> bool",
     WICK_LAMBDA([](const Tensor& t) { return t.device().isCpu(); }), kAnyKind},
    {"prim::is_cuda(Tensor a) -> bool",
     WICK_LAMBDA([](const Tensor& t) { return t.device().isCuda(); }), kAnyKind},
    {"prim::is_meta(Tensor a) -> bool",
     WICK_LAMBDA([](const Tensor& t) { return t.device().type == DeviceType::Meta; }), kAnyKind},
    WICK_NEVER("is_ipu"),
    WICK_NEVER("is_mkldnn"),
    WICK_NEVER("is_mps"),
    WICK_IS("is_nested", TensorKind::Nested),
    WICK_NEVER("is_ort"),
    WICK_IS("is_quantized", TensorKind::Quantized),
    {"prim::is_sparse(Tensor a) -> bool", WICK_KERNEL(never), kNeutralMixed},
    {"prim::is_sparse_csr(Tensor a) -> bool", WICK_KERNEL(never), kNeutralMixed},
    WICK_NEVER("is_vulkan"),
    WICK_NEVER("is_xla"),
    WICK_NEVER("is_xpu"),
};
const RegisterOperators kPrimTensorsRegistered(kPrimTensorsRecords);

}  // namespace

}  // namespace wick::ops
