#include "core/ivalue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/dtype_dispatch.h"
#include "core/error.h"

namespace wick {

namespace {

// Containers may hold themselves (List[Any]), so deep comparison and hashing need a bound.
constexpr int kMaxDepth = 1000;

std::string_view nameOf(IValue::Tag tag) {
  using Tag = IValue::Tag;
  switch (tag) {
    case Tag::None:
      return "None";
    case Tag::Int:
      return "int";
    case Tag::Double:
      return "float";
    case Tag::Bool:
      return "bool";
    case Tag::Device:
      return "Device";
    case Tag::Tensor:
      return "Tensor";
    case Tag::String:
      return "str";
    case Tag::Complex:
      return "complex";
    case Tag::List:
      return "list";
    case Tag::Dict:
      return "dict";
    case Tag::Tuple:
      return "tuple";
    case Tag::Object:
      return "object";
    case Tag::Enum:
      return "enum";
    case Tag::Future:
      return "Future";
    case Tag::Generator:
      return "Generator";
    case Tag::Capsule:
      return "Capsule";
  }
  return "unknown";
}

bool sameNumber(int64_t i, double d) {
  // Exact: both directions, because 2^53 + 1 and 2^53 are one double.
  if (!(d >= -0x1p63 && d < 0x1p63)) return false;
  return static_cast<int64_t>(d) == i && d == std::trunc(d);
}

bool sameNumbers(const IValue& a, const IValue& b) {
  if (a.isComplex() || b.isComplex()) {
    // A real part beyond 2^53 compares exactly too.
    if (a.isComplex() && b.isComplex()) return a.toComplex() == b.toComplex();
    const IValue& c = a.isComplex() ? a : b;
    const IValue& real = a.isComplex() ? b : a;
    return c.toComplex().imag() == 0 && sameNumbers(IValue(c.toComplex().real()), real);
  }
  if (a.isDouble() && b.isDouble()) return a.rawDouble() == b.rawDouble();
  if (a.isDouble()) return sameNumber(b.numberToInt(), a.rawDouble());
  if (b.isDouble()) return sameNumber(a.numberToInt(), b.rawDouble());
  return a.numberToInt() == b.numberToInt();
}

bool sameTensors(const Tensor& a, const Tensor& b) {
  if (a.isSame(b)) return true;
  if (!std::ranges::equal(a.sizes(), b.sizes()) || a.device() != b.device()) return false;
  if (!a.device().isCpu()) return a.dtype() == b.dtype() && a.sharesStorage(b);
  DType common = promoteTypes(a.dtype(), b.dtype());
  Tensor x = a.to(common).contiguous();
  Tensor y = b.to(common).contiguous();
  return dispatchAll(common, [&]<class T>() {
    const T* p = x.data<T>();
    const T* q = y.data<T>();
    return std::equal(p, p + x.numel(), q, [](T u, T v) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        return static_cast<float>(u) == static_cast<float>(v);
      } else {
        return u == v;
      }
    });
  });
}

bool deepEquals(const IValue& a, const IValue& b, int depth);

bool sameElements(const std::vector<IValue>& a, const std::vector<IValue>& b, int depth) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!deepEquals(a[i], b[i], depth)) return false;
  }
  return true;
}

bool deepEquals(const IValue& a, const IValue& b, int depth) {
  using Tag = IValue::Tag;
  WICK_CHECK(depth < kMaxDepth, "maximum recursion depth exceeded in comparison");
  if (a.isNumber() && b.isNumber()) return sameNumbers(a, b);
  if (a.tag() != b.tag()) return false;
  if (a.isCounted() && a.rawObject() == b.rawObject()) return true;
  switch (a.tag()) {
    case Tag::None:
      return true;
    case Tag::Device:
      return a.toDevice() == b.toDevice();
    case Tag::Tensor:
      return sameTensors(a.toTensor(), b.toTensor());
    case Tag::String:
      return a.toString() == b.toString();
    case Tag::List:
    case Tag::Tuple:
      return sameElements(a.elements(), b.elements(), depth + 1);
    case Tag::Dict: {
      DictObject& x = a.toDict();
      DictObject& y = b.toDict();
      if (x.size() != y.size()) return false;
      for (const auto& [key, value] : x.items()) {
        const IValue* other = y.find(key);
        if (!other || !deepEquals(value, *other, depth + 1)) return false;
      }
      return true;
    }
    case Tag::Enum:
      return *a.toEnum().type == *b.toEnum().type && a.toEnum().name == b.toEnum().name;
    default:
      return false;
  }
}

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * size_t{0x9e3779b97f4a7c15} + (seed >> 29);
}

size_t hashDouble(double d) {
  if (sameNumber(static_cast<int64_t>(d >= -0x1p63 && d < 0x1p63 ? d : 0), d)) {
    return std::hash<int64_t>()(static_cast<int64_t>(d));
  }
  return std::hash<double>()(d);
}

size_t hashAt(const IValue& v, int depth) {
  using Tag = IValue::Tag;
  WICK_CHECK(depth < kMaxDepth, "maximum recursion depth exceeded in hash");
  switch (v.tag()) {
    case Tag::None:
      return 0x6e6f6e65;
    case Tag::Int:
      return std::hash<int64_t>()(v.rawInt());
    case Tag::Bool:
      return std::hash<int64_t>()(v.rawBool());
    case Tag::Double:
      return hashDouble(v.rawDouble());
    case Tag::Complex: {
      auto c = v.toComplex();
      return c.imag() == 0 ? hashDouble(c.real()) : mix(hashDouble(c.real()), hashDouble(c.imag()));
    }
    case Tag::Device:
      return mix(static_cast<size_t>(v.toDevice().type), static_cast<size_t>(v.toDevice().index));
    case Tag::String:
      return std::hash<std::string>()(v.toString());
    case Tag::Tuple: {
      size_t h = 0x7475706c;
      for (const IValue& e : v.elements()) h = mix(h, hashAt(e, depth + 1));
      return h;
    }
    case Tag::Enum:
      return mix(std::hash<std::string>()(v.toEnum().type->name()),
                 std::hash<std::string>()(v.toEnum().name));
    case Tag::List:
    case Tag::Dict:
      throwRuntimeError("unhashable type: '{}'", v.tagName());
    default:
      return std::hash<const void*>()(v.rawObject());
  }
}

}  // namespace

IValue::IValue(wick::Tensor v) : IValue() {
  if (!v.defined()) return;
  tag_ = Tag::Tensor;
  payload_.as_object = std::move(v).takeRef().leak();
}

// An absent object becomes None.
#define WICK_FROM_REF(RefType, name)     \
  IValue::IValue(RefType v) : IValue() { \
    if (!v) return;                      \
    tag_ = Tag::name;                    \
    payload_.as_object = v.leak();       \
  }
WICK_FROM_REF(ListRef, List)
WICK_FROM_REF(DictRef, Dict)
WICK_FROM_REF(TupleRef, Tuple)
WICK_FROM_REF(ObjectRef, Object)
WICK_FROM_REF(Ref<EnumObject>, Enum)
WICK_FROM_REF(FutureRef, Future)
WICK_FROM_REF(GeneratorRef, Generator)
#undef WICK_FROM_REF

void IValue::throwWrongTag(Tag expected) const {
  throwRuntimeError("expected {}, got {}", nameOf(expected), nameOf(tag_));
}

void IValue::pin() const {
  if (isCounted() && payload_.as_object->pin() && isTensor()) {
    static_cast<TensorImpl*>(payload_.as_object)->storage->pin();
  }
}

void IValue::unpin() const {
  if (isCounted() && payload_.as_object->unpin() && isTensor()) {
    static_cast<TensorImpl*>(payload_.as_object)->storage->unpin();
  }
}

wick::Tensor IValue::toTensor() const& {
  if (isNone()) return {};
  expect(Tag::Tensor);
  return wick::Tensor(Ref<TensorImpl>(static_cast<TensorImpl*>(payload_.as_object)));
}

wick::Tensor IValue::toTensor() && {
  if (isNone()) return {};
  expect(Tag::Tensor);
  tag_ = Tag::None;
  return wick::Tensor(Ref<TensorImpl>::adopt(static_cast<TensorImpl*>(payload_.as_object)));
}

ListObject& IValue::toList() const {
  return expect(Tag::List), *static_cast<ListObject*>(payload_.as_object);
}
DictObject& IValue::toDict() const {
  return expect(Tag::Dict), *static_cast<DictObject*>(payload_.as_object);
}
TupleObject& IValue::toTuple() const {
  return expect(Tag::Tuple), *static_cast<TupleObject*>(payload_.as_object);
}
Object& IValue::toObject() const {
  return expect(Tag::Object), *static_cast<Object*>(payload_.as_object);
}
EnumObject& IValue::toEnum() const {
  return expect(Tag::Enum), *static_cast<EnumObject*>(payload_.as_object);
}
FutureObject& IValue::toFuture() const {
  return expect(Tag::Future), *static_cast<FutureObject*>(payload_.as_object);
}
GeneratorObject& IValue::toGenerator() const {
  return expect(Tag::Generator), *static_cast<GeneratorObject*>(payload_.as_object);
}

const std::vector<IValue>& IValue::elements() const {
  if (isTuple()) return static_cast<TupleObject*>(payload_.as_object)->elements;
  return toList().elements;
}

double IValue::numberToDouble() const {
  switch (tag_) {
    case Tag::Double:
      return payload_.as_double;
    case Tag::Int:
      return static_cast<double>(payload_.as_int);
    case Tag::Bool:
      return payload_.as_bool ? 1.0 : 0.0;
    default:
      throwRuntimeError("expected float, got {}", nameOf(tag_));
  }
}

int64_t IValue::numberToInt() const {
  if (isInt()) return payload_.as_int;
  if (isBool()) return payload_.as_bool;
  throwRuntimeError("expected int, got {}", nameOf(tag_));
}

std::complex<double> IValue::numberToComplex() const {
  return isComplex() ? toComplex() : std::complex<double>(numberToDouble(), 0.0);
}

DimVector IValue::toDims() const {
  if (isInt()) return {payload_.as_int};
  const std::vector<IValue>& values = elements();
  DimVector out;
  out.reserve(values.size());
  for (const IValue& v : values) out.push_back(v.toInt());
  return out;
}

std::vector<wick::Tensor> IValue::toTensors() const {
  std::vector<wick::Tensor> out;
  out.reserve(elements().size());
  for (const IValue& v : elements()) out.push_back(v.toTensor());
  return out;
}

TypePtr IValue::type() const {
  switch (tag_) {
    case Tag::None:
      return types::None();
    case Tag::Int:
      return types::Int();
    case Tag::Double:
      return types::Float();
    case Tag::Bool:
      return types::Bool();
    case Tag::Device:
      return types::Device();
    case Tag::Tensor:
      return types::Tensor();
    case Tag::String:
      return types::String();
    case Tag::Complex:
      return types::Complex();
    case Tag::List:
      return types::List(toList().element_type);
    case Tag::Dict:
      return types::Dict(toDict().key_type, toDict().value_type);
    case Tag::Tuple: {
      const TupleObject& tuple = toTuple();
      if (tuple.named) return tuple.named;
      std::vector<TypePtr> elements;
      for (const IValue& v : tuple.elements) elements.push_back(v.type());
      return types::Tuple(std::move(elements));
    }
    case Tag::Object:
      return toObject().type();
    case Tag::Enum:
      return toEnum().type;
    case Tag::Future:
      return types::Future(toFuture().element_type);
    case Tag::Generator:
      return types::Generator();
    case Tag::Capsule:
      return types::Capsule();
  }
  throw InternalError(__FILE__, __LINE__, "value with an unknown tag");
}

std::string_view IValue::tagName() const {
  return nameOf(tag_);
}

bool IValue::isSame(const IValue& o) const {
  if (tag_ != o.tag_) return false;
  switch (tag_) {
    case Tag::None:
      return true;
    case Tag::Int:
      return payload_.as_int == o.payload_.as_int;
    case Tag::Double:
      return payload_.as_double == o.payload_.as_double;
    case Tag::Bool:
      return payload_.as_bool == o.payload_.as_bool;
    case Tag::Device:
      return payload_.as_device == o.payload_.as_device;
    default:
      return payload_.as_object == o.payload_.as_object;
  }
}

bool IValue::equals(const IValue& o) const {
  return deepEquals(*this, o, 0);
}

size_t IValue::hash() const {
  return hashAt(*this, 0);
}

}  // namespace wick
