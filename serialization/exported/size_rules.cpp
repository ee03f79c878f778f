#include "serialization/exported/size_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "ir/operator.h"

namespace wick::exported {
namespace {

SizeExpression num(int64_t value) {
  return SizeArithmetic::number(value);
}

// The arguments of a node by the names that its schema gives them.
class Call {
 public:
  Call(const Node& node, const std::vector<KnownArgument>& arguments, const SizeArithmetic& of)
      : math(of), op_(node.maybeOperator()), arguments_(arguments) {}

  const KnownArgument& named(const char* name) const {
    static const KnownArgument kUnknown;
    const auto index = op_ ? op_->schema().argumentIndex(name) : std::nullopt;
    return index && *index < arguments_.size() ? arguments_[*index] : kUnknown;
  }
  const KnownArgument& first() const { return arguments_.at(0); }
  std::optional<int64_t> integer(const char* name) const {
    const IValue* constant = named(name).constant;
    return constant && constant->isInt() ? std::optional(constant->toInt()) : std::nullopt;
  }
  bool isTrue(const char* name) const {
    const IValue* constant = named(name).constant;
    return constant && constant->isBool() && constant->toBool();
  }
  bool isNone(const char* name) const {
    const IValue* constant = named(name).constant;
    return constant && constant->isNone();
  }
  // `count` numbers; the argument may name one for all.
  std::optional<std::vector<int64_t>> integers(const char* name, size_t count) const {
    const KnownArgument& argument = named(name);
    std::vector<int64_t> out;
    if (const auto one = integer(name)) {
      out.push_back(*one);
    } else if (argument.numbers) {
      for (const SizeExpression& number : *argument.numbers) {
        if (number.kind != SizeExpression::Kind::Number) return std::nullopt;
        out.push_back(number.number);
      }
    }
    if (out.size() == 1) out.resize(count, out[0]);
    return out.size() == count ? std::optional(out) : std::nullopt;
  }

  const SizeArithmetic& math;

 private:
  const Operator* op_;
  const std::vector<KnownArgument>& arguments_;
};

// A dimension by its number, which may count from the end.
std::optional<size_t> dimOf(const Call& call, const char* name, size_t rank) {
  const std::optional<int64_t> dim = call.integer(name);
  if (!dim) return std::nullopt;
  const int64_t at = *dim < 0 ? *dim + static_cast<int64_t>(rank) : *dim;
  if (at < 0 || at >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(at);
}

SizeExpression productOf(const SizeVector& sizes, const SizeArithmetic& math) {
  SizeExpression out = num(1);
  for (const SizeExpression& size : sizes) out = math.product(out, size);
  return out;
}

// A begin or end of a slice, between 0 and the size. nullopt for numbers that may be negative or not, as sizes want it.
std::optional<SizeExpression> boundOf(const SizeExpression& bound, const SizeExpression& size,
                                      const SizeArithmetic& math) {
  const auto [least, most] = math.bounds(bound);
  if (least >= 0) return math.least(bound, size);
  if (most < 0) return math.most(num(0), math.sum(size, bound));
  return std::nullopt;
}

std::optional<SizeVector> sliceSizes(const Call& call) {
  if (!call.first().sizes) return std::nullopt;
  SizeVector sizes = *call.first().sizes;
  const std::optional<size_t> dim = dimOf(call, "dim", sizes.size());
  const std::optional<int64_t> step = call.integer("step");
  if (!dim || !step || *step < 1) return std::nullopt;
  SizeExpression& size = sizes[*dim];
  std::optional<SizeExpression> begin = num(0);
  std::optional<SizeExpression> end = size;
  const auto at = [&](const char* name, std::optional<SizeExpression>& into) {
    const KnownArgument& argument = call.named(name);
    if (call.isNone(name)) return true;
    into = argument.number ? boundOf(*argument.number, size, call.math) : std::nullopt;
    return into.has_value();
  };
  if (!at("start", begin) || !at("end", end)) return std::nullopt;
  const SizeExpression length = call.math.most(num(0), call.math.difference(*end, *begin));
  size = call.math.quotient(call.math.sum(length, num(*step - 1)), num(*step));
  return sizes;
}

// The size that a window with these numbers leaves.
SizeExpression windowed(const SizeExpression& size, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation, const SizeArithmetic& math) {
  const int64_t lost = dilation * (kernel - 1) + 1 - 2 * padding;
  return math.sum(math.quotient(math.difference(size, num(lost)), num(stride)), num(1));
}

std::optional<SizeVector> convolutionSizes(const Call& call, size_t dims) {
  const auto& input = call.first().sizes;
  const auto& weight = call.named("weight").sizes;
  if (!input || !weight || weight->size() < 3 || call.isTrue("transposed")) return std::nullopt;
  if (dims == 0) dims = weight->size() - 2;
  if (weight->size() != dims + 2 || input->size() < dims + 1) return std::nullopt;
  const auto stride = call.integers("stride", dims);
  const auto padding = call.integers("padding", dims);
  const auto dilation = call.integers("dilation", dims);
  if (!stride || !padding || !dilation) return std::nullopt;
  SizeVector out = *input;
  const size_t begin = out.size() - dims;
  out[begin - 1] = (*weight)[0];
  for (size_t d = 0; d < dims; ++d) {
    const SizeExpression& kernel = (*weight)[d + 2];
    if (kernel.kind != SizeExpression::Kind::Number || (*stride)[d] < 1) return std::nullopt;
    out[begin + d] = windowed(out[begin + d], kernel.number, (*stride)[d], (*padding)[d],
                              (*dilation)[d], call.math);
  }
  return out;
}

std::optional<SizeVector> poolSizes(const Call& call, size_t dims, bool has_dilation) {
  const auto& input = call.first().sizes;
  const auto kernel = call.integers("kernel_size", dims);
  const auto& given = call.named("stride").numbers;
  const auto stride = given && given->empty() ? kernel : call.integers("stride", dims);
  const auto padding = call.integers("padding", dims);
  const auto dilation =
      has_dilation ? call.integers("dilation", dims) : std::optional(std::vector<int64_t>(dims, 1));
  if (!input || input->size() < dims || !kernel || !stride || !padding || !dilation) {
    return std::nullopt;
  }
  const SizeArithmetic& math = call.math;
  SizeVector out = *input;
  for (size_t d = 0; d < dims; ++d) {
    SizeExpression& size = out[out.size() - dims + d];
    const int64_t step = (*stride)[d];
    if (step < 1) return std::nullopt;
    const SizeExpression before = size;
    // With ceil_mode a window may go beyond the end, but must not begin there.
    const int64_t more = call.isTrue("ceil_mode") ? step - 1 : 0;
    size = windowed(math.sum(before, num(more)), (*kernel)[d], step, (*padding)[d], (*dilation)[d],
                    math);
    if (more > 0) {
      const SizeExpression last = math.sum(before, num((*padding)[d] - 1));
      size = math.least(size, math.sum(math.quotient(last, num(step)), num(1)));
    }
  }
  return out;
}

std::optional<SizeVector> catSizes(const Call& call) {
  const auto& tensors = call.named("tensors").tensors;
  if (!tensors || tensors->empty()) return std::nullopt;
  SizeVector out = (*tensors)[0];
  const std::optional<size_t> dim = dimOf(call, "dim", out.size());
  if (!dim) return std::nullopt;
  for (size_t i = 1; i < tensors->size(); ++i) {
    if ((*tensors)[i].size() != out.size()) return std::nullopt;
    out[*dim] = call.math.sum(out[*dim], (*tensors)[i][*dim]);
  }
  return out;
}

// Views and tensors of given sizes; -1 stands for the rest of the elements, or for the size as it was.
std::optional<SizeVector> givenSizes(const Call& call, const char* name, bool keeps) {
  const auto& given = call.named(name).numbers;
  if (!given) return std::nullopt;
  SizeVector out = *given;
  const auto is_open = [](const SizeExpression& size) {
    return size.kind == SizeExpression::Kind::Number && size.number == -1;
  };
  const auto& input = call.first().sizes;
  for (size_t d = 0; d < out.size(); ++d) {
    if (!is_open(out[d])) continue;
    if (!input) return std::nullopt;
    if (keeps) {
      if (d + input->size() < out.size()) return std::nullopt;
      out[d] = (*input)[d + input->size() - out.size()];
      continue;
    }
    SizeVector others = out;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(d));
    SizeVector left = *input;
    // Sizes that are on both sides need no division.
    std::erase_if(others, [&](const SizeExpression& size) {
      const auto same = std::ranges::find(left, size.notation(), &SizeExpression::notation);
      if (same == left.end()) return false;
      left.erase(same);
      return true;
    });
    const SizeExpression divisor = productOf(others, call.math);
    if (call.math.bounds(divisor).first < 1) return std::nullopt;
    out[d] = call.math.quotient(productOf(left, call.math), divisor);
    break;
  }
  return out;
}

std::optional<SizeVector> arangeSizes(const Call& call) {
  const auto& end = call.named("end").number;
  const auto& start = call.named("start").number;
  const std::optional<int64_t> step = call.integer("step");
  const SizeArithmetic& math = call.math;
  if (!end || step.value_or(1) < 1) return std::nullopt;
  const SizeExpression length = math.most(num(0), start ? math.difference(*end, *start) : *end);
  return SizeVector{
      math.quotient(math.sum(length, num(step.value_or(1) - 1)), num(step.value_or(1)))};
}

std::optional<SizeVector> narrowSizes(const Call& call) {
  const auto& length = call.named("length").number;
  if (!call.first().sizes || !length) return std::nullopt;
  SizeVector sizes = *call.first().sizes;
  const std::optional<size_t> dim = dimOf(call, "dim", sizes.size());
  if (!dim) return std::nullopt;
  sizes[*dim] = *length;
  return sizes;
}

std::optional<SizeVector> flattenSizes(const Call& call) {
  if (!call.first().sizes || call.first().sizes->empty()) return std::nullopt;
  const SizeVector& sizes = *call.first().sizes;
  const std::optional<size_t> begin = dimOf(call, "start_dim", sizes.size());
  const std::optional<size_t> end = dimOf(call, "end_dim", sizes.size());
  if (!begin || !end || *begin > *end) return std::nullopt;
  const auto at = [&](size_t d) { return sizes.begin() + static_cast<std::ptrdiff_t>(d); };
  SizeVector out(sizes.begin(), at(*begin));
  out.push_back(productOf(SizeVector(at(*begin), at(*end + 1)), call.math));
  out.insert(out.end(), at(*end + 1), sizes.end());
  return out;
}

// Whether one of the names is the operator's.
bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The number of dimensions that the name of a layer ends with: 2 for "conv2d".
size_t dimsOf(std::string_view name, std::string_view begin, std::string_view end) {
  for (size_t dims = 1; dims <= 3; ++dims) {
    if (name == fmt::format("{}{}d{}", begin, dims, end)) return dims;
  }
  return 0;
}

// An expression that is worth writing.
bool isShort(const SizeExpression& expression) {
  constexpr size_t kMostText = 1500;
  return expression.notation().size() <= kMostText;
}

std::optional<SizeVector> anySizes(std::string_view name, const Call& call) {
  if (name == "slice") return sliceSizes(call);
  if (name == "cat" || name == "concat") return catSizes(call);
  if (name == "narrow") return narrowSizes(call);
  if (name == "flatten") return flattenSizes(call);
  if (name == "arange") return arangeSizes(call);
  if (isOneOf(name, {"view", "_unsafe_view"})) return givenSizes(call, "size", false);
  if (name == "reshape") return givenSizes(call, "shape", false);
  if (name == "expand") return givenSizes(call, "size", true);
  if (isOneOf(name, {"zeros", "ones", "full", "empty", "rand", "randn", "new_zeros", "new_ones",
                     "new_full", "new_empty"})) {
    return givenSizes(call, "size", false);
  }
  if (isOneOf(name, {"convolution", "_convolution"})) return convolutionSizes(call, 0);
  if (const size_t dims = dimsOf(name, "conv", "")) return convolutionSizes(call, dims);
  if (const size_t dims = dimsOf(name, "avg_pool", "")) return poolSizes(call, dims, false);
  for (const char* end : {"", "_with_indices"}) {
    if (const size_t dims = dimsOf(name, "max_pool", end)) return poolSizes(call, dims, true);
  }
  return std::nullopt;
}

}  // namespace

std::optional<SizeVector> sizesByRule(const Node& node, const std::vector<KnownArgument>& arguments,
                                      const SizeArithmetic& arithmetic) {
  if (node.kind().ns() != "aten" || arguments.empty()) return std::nullopt;
  std::optional<SizeVector> out = anySizes(node.kind().name(), Call(node, arguments, arithmetic));
  return out && std::ranges::all_of(*out, isShort) ? out : std::nullopt;
}

std::optional<SizeExpression> numberByRule(const Node& node,
                                           const std::vector<KnownArgument>& arguments,
                                           const SizeArithmetic& arithmetic) {
  const std::string_view name = node.kind().qualString();
  const bool of_tensor = !arguments.empty() && arguments[0].sizes;
  std::optional<SizeExpression> out;
  if (of_tensor && name == "aten::numel") {
    out = productOf(*arguments[0].sizes, arithmetic);
  } else if (of_tensor && (name == "aten::size" || name == "aten::len")) {
    const SizeVector& sizes = *arguments[0].sizes;
    const IValue* given = arguments.size() == 2 ? arguments[1].constant : nullptr;
    if ((arguments.size() == 2 && !(given && given->isInt())) || sizes.empty()) return std::nullopt;
    const int64_t dim = given ? given->toInt() : 0;
    const int64_t at = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
    if (at < 0 || at >= static_cast<int64_t>(sizes.size())) return std::nullopt;
    out = sizes[static_cast<size_t>(at)];
  } else {
    for (size_t i = 0; i < arguments.size() && i < 2; ++i) {
      if (!arguments[i].number) return std::nullopt;
    }
    const auto operand = [&](size_t i) { return *arguments[i].number; };
    if (arguments.size() == 1) {
      if (name == "aten::Int") out = operand(0);
      if (name == "aten::neg") out = arithmetic.product(num(-1), operand(0));
    } else if (arguments.size() == 2) {
      if (name == "aten::add") out = arithmetic.sum(operand(0), operand(1));
      if (name == "aten::sub") out = arithmetic.difference(operand(0), operand(1));
      if (name == "aten::mul") out = arithmetic.product(operand(0), operand(1));
      if (name == "aten::floordiv") out = arithmetic.quotient(operand(0), operand(1));
      if (name == "aten::remainder") out = arithmetic.remainder(operand(0), operand(1));
      if (name == "prim::min") out = arithmetic.least(operand(0), operand(1));
      if (name == "prim::max") out = arithmetic.most(operand(0), operand(1));
    }
  }
  return out && isShort(*out) ? out : std::nullopt;
}

}  // namespace wick::exported
