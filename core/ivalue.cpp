#include "core/ivalue.h"

#include <fmt/format.h>

#include "core/error.h"

namespace wick {

namespace {

// Tuples nest as deeply as a program likes where their type is Any.
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

// Tuples that share their elements are refused as soon as their types become too large
// (kMaxTypeParts), which bounds the time.
TypePtr typeOfTuple(const TupleObject& tuple, int depth) {
  if (tuple.named) return tuple.named;
  WICK_CHECK(depth < kMaxDepth, "tuples nest deeper than {}", kMaxDepth);
  std::vector<TypePtr> elements;
  elements.reserve(tuple.elements.size());
  for (const IValue& v : tuple.elements) {
    elements.push_back(v.isTuple() ? typeOfTuple(v.toTuple(), depth + 1) : v.type());
  }
  return types::Tuple(std::move(elements));
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
    case Tag::Tuple:
      return typeOfTuple(toTuple(), 0);
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

}  // namespace wick
