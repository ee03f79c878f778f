#include "runtime/interpreter/slow_paths.h"

#include <cstdio>
#include <mutex>

#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/slot_access.h"
#include "core/text_limit.h"

namespace wick {
namespace {

std::mutex print_mutex;
PrintHandler& printHandler() {
  static PrintHandler handler = [](const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  };
  return handler;
}

TypePtr elementType(const TypePtr& list) {
  const auto* type = list->as<ListType>();
  WICK_CHECK(type, "tolist: the depth of the list does not fit its type {}", list->str());
  return type->element();
}

template <class T>
IValue listOf(const T* data, const Tensor& t, int64_t d, int64_t offset, const TypePtr& type) {
  if (d == t.dim()) return IValue(data[offset]);
  checkGrowth();
  std::vector<IValue> elements;
  elements.reserve(t.size(d));
  TypePtr element = elementType(type);
  for (int64_t i = 0; i < t.size(d); ++i) {
    elements.push_back(listOf(data, t, d + 1, offset + i * t.stride(d), element));
  }
  return IValue(makeList(element, std::move(elements)));
}

}  // namespace

PrintHandler setPrintHandler(PrintHandler handler) {
  std::lock_guard lock(print_mutex);
  return std::exchange(printHandler(), std::move(handler));
}

void printValues(const std::vector<IValue>& values) {
  std::string line;
  for (const IValue& value : values) {
    const std::string text = value.str();
    makeTextRoom("print", line, text.size() + 2);
    if (&value != values.data()) line += ' ';
    line += text;
  }
  line += '\n';
  std::lock_guard lock(print_mutex);
  if (printHandler()) printHandler()(line);
}

bool isInstance(const IValue& value, const std::vector<TypePtr>& types) {
  TypePtr type = value.type();
  for (const TypePtr& candidate : types) {
    if (type->isSubtypeOf(candidate)) return true;
  }
  return false;
}

IValue toList(const std::vector<IValue>& arguments, const TypePtr& type) {
  WICK_CHECK(arguments.size() == 3, "tolist: expected 3 operands, got {}", arguments.size());
  Tensor t = arguments[0].toTensor();
  WICK_CHECK(t.defined(), "tolist: expected a tensor, got None");
  int64_t depth = arguments[1].toInt();
  int64_t kind = arguments[2].toInt();
  DType expected = kind == 0   ? DType::Long
                   : kind == 1 ? DType::Double
                   : kind == 2 ? DType::Bool
                               : DType::ComplexDouble;
  WICK_CHECK(kind >= 0 && kind <= 3, "tolist: unknown kind of elements {}", kind);
  WICK_CHECK(depth == t.dim(),
             "Output annotation list dimension and runtime tensor dimension must match for "
             "tolist(): a list of depth {} from {}",
             depth, t.describe());
  // PyTorch takes no integers but those of 64 bits.
  bool fits = kind == 0   ? isIntegral(t.dtype(), /*include_bool=*/false)
              : kind == 1 ? isFloating(t.dtype())
              : kind == 3 ? isComplex(t.dtype())
                          : t.dtype() == expected;
  WICK_CHECK(fits,
             "Output annotation element type and runtime tensor element type must match for "
             "tolist(): elements of {} from {}",
             toString(expected), t.describe());
  checkAllocation("tolist", static_cast<size_t>(t.numel()) * sizeof(IValue));
  t = moveTo(t, Device()).to(expected);
  switch (kind) {
    case 0:
      return listOf(t.data<int64_t>(), t, 0, 0, type);
    case 1:
      return listOf(t.data<double>(), t, 0, 0, type);
    case 2:
      return listOf(t.data<bool>(), t, 0, 0, type);
    default:
      return listOf(t.data<std::complex<double>>(), t, 0, 0, type);
  }
}

IValue listElement(const ListObject& list, int64_t index) {
  auto size = static_cast<int64_t>(list.elements.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) throw RuntimeError("list index out of range", "IndexError");
  return list.elements[index];
}

IValue tupleSlice(const TupleObject& tuple, size_t begin, size_t end) {
  end = std::min(end, tuple.elements.size());
  begin = std::min(begin, end);
  return IValue(makeTuple({tuple.elements.begin() + begin, tuple.elements.begin() + end}));
}

IValue tupleElement(const TupleObject& tuple, int64_t index) {
  auto size = static_cast<int64_t>(tuple.elements.size());
  int64_t i = index < 0 ? index + size : index;
  WICK_CHECK(i >= 0 && i < size, "tuple index {} is out of range for {} elements", index, size);
  return tuple.elements[i];
}

IValue makeDict(const std::vector<IValue>& keys_and_values, const DictType& type) {
  auto dict = makeRef<DictObject>(type.key(), type.value());
  for (size_t i = 0; i + 1 < keys_and_values.size(); i += 2) {
    dict->set(keys_and_values[i], keys_and_values[i + 1]);
  }
  return IValue(std::move(dict));
}

IValue attributeOf(const Object& object, size_t slot) {
  IValue value = readSlot(object, slot);
  if (value.isNone()) {
    // A class may declare what __init__ does not assign, or read it too early.
    const ClassType::Attribute& attribute = object.type()->attributes()[slot];
    WICK_CHECK(attribute.type->acceptsNone(), "'{}' object has no value for its attribute '{}' yet",
               object.type()->name(), attribute.name);
  }
  return value;
}

void raise(const std::vector<IValue>& arguments) {
  std::string message = arguments.empty() ? "" : arguments[0].str();
  std::string class_name = "Exception";
  if (arguments.size() > 1 && arguments[1].isString()) {
    class_name = arguments[1].toString();
    constexpr std::string_view kBuiltins = "builtins.";
    if (class_name.starts_with(kBuiltins)) class_name.erase(0, kBuiltins.size());
  }
  throw RuntimeError(std::move(message), std::move(class_name));
}

void storeScalar(IValue& destination, const IValue& value, uint16_t extra) {
  WICK_ASSERT(static_cast<uint16_t>(value.tag()) + 1 == extra,
              "a value of tag {} is {}, not what its type says", extra - 1, value.tagName());
  // Scalar registers own nothing and may be uninitialized: construct in place.
  new (&destination) IValue(value);
}

void unpack(const std::vector<IValue>& elements, const char* what, const uint32_t* destinations,
            IValue* registers) {
  WICK_CHECK(elements.size() == destinations[0], "Expected {} elements in a {} but found {}",
             destinations[0], what, elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    uint32_t entry = destinations[1 + i];
    uint32_t index = operandIndex(entry);
    if (index == kNoDestination) continue;
    if (uint32_t extra = destinationExtra(entry)) {
      storeScalar(registers[index], elements[i], static_cast<uint16_t>(extra));
    } else {
      registers[index] = elements[i];
    }
  }
}

}  // namespace wick
