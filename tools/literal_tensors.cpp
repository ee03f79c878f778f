// Tensors of nested lists of numbers, where a Tensor is declared.
#include <fmt/format.h>

#include "tools/inputs.h"
#include "tools/options.h"

namespace wick::cli {
namespace {

// Lists of the command line nest no deeper.
constexpr size_t kMaxDims = 64;

[[noreturn]] void fail(const std::string& argument, const std::string& what) {
  throw CommandLineError(fmt::format("--input: {} is a Tensor; {}", argument, what));
}

class TensorMaker {
 public:
  explicit TensorMaker(const std::string& argument) : argument_(argument) {}

  Tensor make(const IValue& value) {
    measure(value, 0);
    const DType real = defaultDType();
    const DType dtype = complex_                   ? toComplexType(real)
                        : float_                   ? real
                        : int_ || numbers_.empty() ? (numbers_.empty() ? real : DType::Long)
                                                   : DType::Bool;
    Tensor exact = Tensor::empty(sizes_, complex_ ? DType::ComplexDouble
                                         : float_ ? DType::Double
                                                  : DType::Long);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (complex_) {
        exact.data<std::complex<double>>()[i] = numbers_[i].numberToComplex();
      } else if (float_) {
        exact.data<double>()[i] = numbers_[i].numberToDouble();
      } else {
        exact.data<int64_t>()[i] = numbers_[i].numberToInt();
      }
    }
    return exact.to(dtype);
  }

 private:
  // Gathers the numbers in order, and the sizes from the first list at each depth.
  void measure(const IValue& value, size_t depth) {
    if (!value.isList() && !value.isTuple()) {
      if (!value.isNumber())
        fail(argument_, fmt::format("expected numbers, got {}", value.tagName()));
      if (depth != sizes_.size()) throwUneven();
      closed_ = true;
      complex_ |= value.isComplex();
      float_ |= value.isDouble();
      int_ |= value.isInt();
      numbers_.push_back(value);
      return;
    }
    const auto size = static_cast<int64_t>(value.size());
    if (depth == sizes_.size()) {
      if (closed_ || depth == kMaxDims) throwUneven();
      sizes_.push_back(size);
      if (size == 0) closed_ = true;
    } else if (sizes_[depth] != size) {
      throwUneven();
    }
    for (const IValue& element : value.elements()) measure(element, depth + 1);
  }

  [[noreturn]] void throwUneven() { fail(argument_, "its lists must be of equal lengths"); }

  const std::string& argument_;
  DimVector sizes_;
  bool closed_ = false;  // the depth of the numbers is known
  bool complex_ = false;
  bool float_ = false;
  bool int_ = false;
  std::vector<IValue> numbers_;
};

bool holdsTensor(const Type& type) {
  if (type.kind() == TypeKind::Tensor) return true;
  if (type.kind() == TypeKind::Class || type.kind() == TypeKind::Interface) return false;
  for (const TypePtr& part : type.contained()) {
    if (holdsTensor(*part)) return true;
  }
  return false;
}

}  // namespace

IValue withTensors(IValue value, const Type& type, const std::string& argument) {
  if (value.isTensor() || value.isNone() || !holdsTensor(type)) return value;
  switch (type.kind()) {
    case TypeKind::Tensor:
      // A number alone is rather a mistake about the argument.
      if (!value.isList() && !value.isTuple()) return value;
      return TensorMaker(argument).make(value);
    case TypeKind::Optional:
      return withTensors(std::move(value), *type.contained()[0], argument);
    case TypeKind::List: {
      if (!value.isList() && !value.isTuple()) return value;
      std::vector<IValue> elements;
      for (const IValue& element : value.elements()) {
        elements.push_back(withTensors(element, *type.contained()[0], argument));
      }
      return makeList(type.contained()[0], std::move(elements));
    }
    case TypeKind::Tuple: {
      if (!value.isTuple() || value.size() != type.contained().size()) return value;
      std::vector<IValue> elements;
      for (size_t i = 0; i < value.size(); ++i) {
        elements.push_back(withTensors(value.elements()[i], *type.contained()[i], argument));
      }
      return makeTuple(std::move(elements));
    }
    case TypeKind::Dict: {
      if (!value.isDict()) return value;
      DictRef dict = makeRef<DictObject>(type.contained()[0], type.contained()[1]);
      for (auto& [key, element] : value.items()) {
        dict->set(key, withTensors(element, *type.contained()[1], argument));
      }
      return dict;
    }
    default:
      return value;
  }
}

}  // namespace wick::cli
