#include "streams/time/lengths.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error_types.h"

namespace wick::streams {

namespace {

bool isLength(const LengthList& list) {
  return list.size() == 1 && list[0].has_value();
}

[[noreturn]] void tooLarge(const Node& node) {
  throw UsageError(fmt::format("{} computes with a length of time in too large numbers",
                               node.kind().qualString()));
}

// a + sign * b, a + sign * number.
std::optional<Length> sum(const Node& node, std::optional<Length> a, std::optional<Length> b,
                          int64_t sign, int64_t number) {
  Length result = a ? *a : Length{b->of, 0, 0};
  if (a && b && a->of != b->of) return std::nullopt;
  const Length other = b ? *b : Length{result.of, 0, number};
  int64_t factor = 0, offset = 0;
  if (__builtin_mul_overflow(other.factor, sign, &factor) ||
      __builtin_mul_overflow(other.offset, sign, &offset) ||
      __builtin_add_overflow(result.factor, factor, &result.factor) ||
      __builtin_add_overflow(result.offset, offset, &result.offset)) {
    tooLarge(node);
  }
  return result;
}

std::optional<Length> product(const Node& node, Length a, int64_t number) {
  if (__builtin_mul_overflow(a.factor, number, &a.factor) ||
      __builtin_mul_overflow(a.offset, number, &a.offset)) {
    tooLarge(node);
  }
  return a;
}

}  // namespace

const LengthList& Lengths::of(const Value* value) const {
  static const LengthList kNone;
  const auto found = lengths_.find(value);
  return found == lengths_.end() ? kNone : found->second;
}

void Lengths::remember(const Value* value, LengthList list) {
  const bool any = std::ranges::any_of(list, [](const auto& l) { return l.has_value(); });
  if (any) lengths_[value] = std::move(list);
}

bool Lengths::follow(const Node& node, const std::vector<IValue>& arguments,
                     const AxisOf& axis_of) {
  return followSize(node, arguments, axis_of) || followNumbers(node, arguments) ||
         followLists(node, arguments) || followTensors(node, axis_of);
}

bool Lengths::followSize(const Node& node, const std::vector<IValue>& arguments,
                         const AxisOf& axis_of) {
  static const Symbol kSize = Symbol::aten("size"), kLen = Symbol::aten("len");
  static const Symbol kSame[] = {
      Symbol::aten("dim"),     Symbol::prim("dtype"),
      Symbol::prim("device"),  Symbol::aten("is_floating_point"),
      Symbol::prim("is_cuda"), Symbol::aten("is_complex"),
      Symbol::aten("__is__"),  Symbol::aten("__isnot__"),
      Symbol::prim("layout"),  Symbol::prim("requires_grad"),
  };
  if (node.inputs().empty()) return false;
  const Value* const tensor = node.input(0);
  const int64_t axis = axis_of(tensor);
  if (axis < 0 || !arguments[0].isTensor()) return false;
  if (std::ranges::find(kSame, node.kind()) != std::end(kSame)) return true;
  const bool of_one = node.kind() == kSize && arguments.size() == 2;
  if (of_one || node.kind() == kLen) {
    int64_t dim = of_one ? arguments[1].toInt() : 0;
    if (dim < 0) dim += arguments[0].toTensor().dim();
    if (dim == axis) remember(node.output(), {Length{tensor}});
    return true;
  }
  if (node.kind() != kSize || arguments.size() != 1) return false;
  LengthList list(static_cast<size_t>(arguments[0].toTensor().dim()));
  list[static_cast<size_t>(axis)] = Length{tensor};
  remember(node.output(), std::move(list));
  return true;
}

// Sums, differences and multiples of single lengths, and what only hands them on.
bool Lengths::followNumbers(const Node& node, const std::vector<IValue>& arguments) {
  static const Symbol kAdd = Symbol::aten("add"), kSub = Symbol::aten("sub"),
                      kMul = Symbol::aten("mul"), kNeg = Symbol::aten("neg");
  static const Symbol kOn[] = {Symbol::prim("NumToTensor"), Symbol::aten("Int"),
                               Symbol::aten("ScalarImplicit"), Symbol::aten("IntImplicit")};
  if (node.inputs().empty() || node.outputs().size() != 1) return false;
  const LengthList& first = of(node.input(0));
  if (node.inputs().size() == 1 && isLength(first)) {
    if (node.kind() == kNeg) {
      remember(node.output(), {product(node, *first[0], -1)});
      return true;
    }
    if (std::ranges::find(kOn, node.kind()) == std::end(kOn)) return false;
    remember(node.output(), first);
    return true;
  }
  if (node.inputs().size() != 2 || !arguments[0].isInt() || !arguments[1].isInt()) return false;
  const LengthList& second = of(node.input(1));
  if (!isLength(first) && !isLength(second)) return false;
  const auto a = isLength(first) ? first[0] : std::nullopt;
  const auto b = isLength(second) ? second[0] : std::nullopt;
  std::optional<Length> result;
  if (node.kind() == kAdd || node.kind() == kSub) {
    const int64_t sign = node.kind() == kAdd ? 1 : -1;
    if (a) {
      result = sum(node, a, b, sign, arguments[1].toInt());
    } else {
      // number ± length.
      result = sum(node, product(node, *b, sign), std::nullopt, 1, arguments[0].toInt());
    }
  } else if (node.kind() == kMul && !(a && b)) {
    result = product(node, a ? *a : *b, arguments[a ? 1 : 0].toInt());
  }
  if (!result) return false;
  remember(node.output(), {result});
  return true;
}

// Lists of sizes: made, taken apart, joined, cut.
bool Lengths::followLists(const Node& node, const std::vector<IValue>& arguments) {
  static const Symbol kItem = Symbol::aten("__getitem__"), kSlice = Symbol::aten("slice"),
                      kAdd = Symbol::aten("add"), kList = Symbol::aten("list"),
                      kLen = Symbol::aten("len");
  const auto ofInput = [&](size_t i) -> LengthList {
    const LengthList& known = of(node.input(i));
    if (!known.empty() || !arguments[i].isList()) return known;
    return LengthList(arguments[i].elements().size());
  };
  bool any = false;
  for (const Value* input : node.inputs()) any |= !of(input).empty();
  if (!any) return false;
  if (node.kind() == prim::ListConstruct) {
    LengthList list;
    for (const Value* input : node.inputs()) {
      const LengthList& known = of(input);
      list.push_back(isLength(known) ? known[0] : std::nullopt);
    }
    remember(node.output(), std::move(list));
    return true;
  }
  if (!arguments[0].isList()) return false;
  const LengthList list = ofInput(0);
  const auto size = static_cast<int64_t>(list.size());
  const auto at = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  if (node.kind() == prim::ListUnpack) {
    for (size_t i = 0; i < node.outputs().size() && i < list.size(); ++i) {
      if (list[i]) remember(node.output(i), {list[i]});
    }
  } else if (node.kind() == kLen) {
    return true;
  } else if (node.kind() == kItem) {
    // The call has shown that there is such an element.
    const auto& element = list[static_cast<size_t>(std::min(at(arguments[1].toInt()), size - 1))];
    if (element) remember(node.output(), {element});
  } else if (node.kind() == kList) {
    remember(node.output(), list);
  } else if (node.kind() == kAdd && arguments.size() == 2 && arguments[1].isList()) {
    LengthList both = list;
    const LengthList second = ofInput(1);
    both.insert(both.end(), second.begin(), second.end());
    remember(node.output(), std::move(both));
  } else if (node.kind() == kSlice && arguments.size() == 4) {
    for (size_t i = 1; i < 4; ++i) {
      if (!of(node.input(i)).empty()) return false;
    }
    const int64_t step = arguments[3].toInt();
    const int64_t begin = arguments[1].isNone() ? 0 : at(arguments[1].toInt());
    const int64_t end = arguments[2].isNone() ? size : at(arguments[2].toInt());
    LengthList part;
    // The call refuses steps below one.
    for (int64_t i = begin; i < end; i += std::min(step, end - i)) {
      part.push_back(list[static_cast<size_t>(i)]);
    }
    remember(node.output(), std::move(part));
  } else {
    return false;
  }
  return true;
}

// What takes only its dtype and device from a tensor with time.
bool Lengths::followTensors(const Node& node, const AxisOf& axis_of) const {
  static const Symbol kTaking[] = {Symbol::aten("type_as"), Symbol::aten("to")};
  static const Symbol kMaking[] = {Symbol::aten("new_zeros"), Symbol::aten("new_ones"),
                                   Symbol::aten("new_full"), Symbol::aten("new_tensor")};
  const bool takes = std::ranges::find(kTaking, node.kind()) != std::end(kTaking);
  const bool makes = std::ranges::find(kMaking, node.kind()) != std::end(kMaking);
  if (!takes && !makes) return false;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    // The tensor whose dtype is meant is the second of `to` and the first of `new_zeros`.
    const bool only_kind = i == (takes ? 1 : 0);
    if (!of(node.input(i)).empty() || (!only_kind && axis_of(node.input(i)) >= 0)) return false;
  }
  return true;
}

}  // namespace wick::streams
