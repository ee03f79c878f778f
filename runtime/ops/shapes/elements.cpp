// Rules of results with the shape of their arguments, of casts, of reductions and losses.
#include <algorithm>

#include "ir/operand_promotion.h"
#include "runtime/ops/shapes/shape_helpers.h"

namespace wick::ops::shapes {

namespace {

Types likeFirst(const Node& node, std::optional<DType> (*change)(std::optional<DType>)) {
  const TensorFacts& self = firstTensor(node);
  std::optional<DType> plain = change ? change(self.dtype) : self.dtype;
  return tensorOf(dtypeArgument(node, plain), sizesOf(self), self.device);
}

Types likeFirst(const Node& node, DType dtype) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(dtype, sizesOf(self), self.device);
}

Types both(Types first, const Types& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Types likeFirst(const Node& node) {
  return likeFirst(node, nullptr);
}
Types likeFirstFloating(const Node& node) {
  return likeFirst(node, floating);
}
Types likeFirstAccumulated(const Node& node) {
  return likeFirst(node, accumulated);
}
Types likeFirstLong(const Node& node) {
  return likeFirst(node, DType::Long);
}
Types likeFirstWithIndices(const Node& node) {
  return both(likeFirst(node), likeFirstLong(node));
}

Types likeIndex(const Node& node) {
  const TensorFacts& self = tensorArgument(node, "self");
  return tensorOf(self.dtype, sizesOf(tensorArgument(node, "index")), self.device);
}

// ---- casts ----

Types converted(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  if (argumentOf(node, "other")) {
    const TensorFacts& other = tensorArgument(node, "other");
    return tensorOf(other.dtype, sizesOf(self), other.device);
  }
  return tensorOf(dtypeArgument(node, self.dtype), sizesOf(self),
                  deviceArgument(node, self.device));
}

Types convertedTo(const Node& node, DType dtype) {
  return likeFirst(node, dtype);
}

Types onCpu(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(self.dtype, sizesOf(self), Device());
}

// ---- pointwise ----

namespace {

// Arguments that take part in promotion when they are numbers.
bool isOperand(std::string_view name) {
  static constexpr std::string_view kNames[] = {"self", "other", "exponent", "min", "max"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::optional<DType> promotedOperands(const Node& node) {
  OperandPromotion promotion;
  const auto& arguments = node.getOperator().schema().arguments();
  for (size_t i = 0; i < node.inputs().size() && i < arguments.size(); ++i) {
    const Value* v = node.input(i);
    if (factsOf(v) || (isOperand(arguments[i].name) && !isNoneConstant(v))) promotion.add(v);
  }
  if (!promotion.hasTensor() || !promotion.isKnown()) return std::nullopt;
  return promotion.get();
}

}  // namespace

Types promoted(const Node& node) {
  return tensorOf(promotedOperands(node), broadcastArguments(node),
                  commonDevice(tensorArguments(node)));
}

Types divided(const Node& node) {
  const Value* mode = argumentOf(node, "rounding_mode");
  std::optional<DType> dtype = promotedOperands(node);
  bool known = mode && (isNoneConstant(mode) || constantOf(mode));
  if (known && isNoneConstant(mode)) dtype = floating(dtype);
  if (!known && dtype && isIntegral(*dtype, true)) dtype.reset();
  return tensorOf(dtype, broadcastArguments(node), commonDevice(tensorArguments(node)));
}

Types comparison(const Node& node) {
  return tensorOf(DType::Bool, broadcastArguments(node), commonDevice(tensorArguments(node)));
}

// ---- reductions ----

namespace {

// The sizes that reducing over `dim` leaves.
std::optional<Sizes> reducedSizes(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  std::optional<Sizes> sizes = sizesOf(self);
  std::optional<bool> keep =
      argumentOf(node, "keepdim") ? boolArgument(node, "keepdim") : std::optional<bool>(false);
  const Value* dim = argumentOf(node, "dim");
  bool all = !dim || isNoneConstant(dim);
  std::optional<std::vector<int64_t>> dims = all ? std::vector<int64_t>() : intsOf(dim);
  if (!dims) {
    if (keep == std::optional<bool>(true) && sizes) return Sizes(sizes->size());
    return std::nullopt;
  }
  all = all || dims->empty();
  if (all && keep == std::optional<bool>(false)) return Sizes();
  if (!sizes || !keep) return std::nullopt;
  std::vector<bool> gone(sizes->size(), all);
  for (int64_t d : *dims) {
    std::optional<size_t> i = wrappedDim(d, sizes->size());
    if (!i) return std::nullopt;
    if (*i < gone.size()) gone[*i] = true;
  }
  Sizes out;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) {
      out.push_back((*sizes)[i]);
    } else if (*keep) {
      out.push_back(1);
    }
  }
  return out;
}

Types reducedTo(const Node& node, std::optional<DType> dtype) {
  return tensorOf(dtype, reducedSizes(node), firstTensor(node).device);
}

}  // namespace

Types reduced(const Node& node) {
  return reducedTo(node, dtypeArgument(node, firstTensor(node).dtype));
}
Types reducedAccumulated(const Node& node) {
  return reducedTo(node, dtypeArgument(node, accumulated(firstTensor(node).dtype)));
}
Types reducedFloating(const Node& node) {
  return reducedTo(node, dtypeArgument(node, floating(firstTensor(node).dtype)));
}
Types reducedReal(const Node& node) {
  return reducedTo(node, real(dtypeArgument(node, firstTensor(node).dtype)));
}
Types reducedRealTwice(const Node& node) {
  return both(reducedReal(node), reduced(node));
}
Types reducedLong(const Node& node) {
  return reducedTo(node, DType::Long);
}
Types reducedBool(const Node& node) {
  std::optional<DType> dtype = firstTensor(node).dtype;
  if (dtype && *dtype != DType::Byte) dtype = DType::Bool;
  return reducedTo(node, dtype);
}
Types reducedWithIndices(const Node& node) {
  return both(reduced(node), reducedLong(node));
}

// ---- losses ----

namespace {
constexpr int64_t kNoReduction = 0;
constexpr int64_t kSumReduction = 2;

Types lossOf(const Node& node, std::optional<DType> dtype, std::optional<Sizes> unreduced) {
  // Reduced floats and integers become other dtypes on the way in some losses.
  if (dtype && *dtype != DType::Float && *dtype != DType::Double) dtype.reset();
  std::optional<int64_t> reduction = intArgument(node, "reduction");
  bool known = reduction && *reduction >= kNoReduction && *reduction <= kSumReduction;
  if (!known) return tensorOf(dtype, std::nullopt, firstTensor(node).device);
  if (*reduction != kNoReduction) unreduced = Sizes();
  return tensorOf(dtype, std::move(unreduced), firstTensor(node).device);
}
}  // namespace

Types loss(const Node& node) {
  return lossOf(node, promotedDType(tensorArguments(node)), broadcastArguments(node));
}

Types classLoss(const Node& node) {
  const TensorFacts& target = tensorArgument(node, "target");
  // Targets may be probabilities of classes.
  bool by_class = target.dtype && isIntegral(*target.dtype, true);
  std::optional<Sizes> sizes = by_class ? sizesOf(target) : std::nullopt;
  return lossOf(node, promotedDType(tensorArguments(node)), std::move(sizes));
}

}  // namespace wick::ops::shapes
