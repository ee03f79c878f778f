// Reductions in kernels, and the operators that are made of several.
#include <fmt/format.h>

#include <cmath>

#include "codegen/loop/kernel_builder.h"

namespace wick::loop {

// The operand of a reduction, as the domain's own points see it, in the accumulator's dtype.
ScalarExpr KernelBuilder::operandOf(const Value* v, const ValueInfo& info) {
  const Value* operand = info.operands[0];
  const TensorLayout& from = analysis_.layoutOf(operand);
  const TensorLayout& to = analysis_.layoutOf(domain_);
  uint32_t dims = 0;
  for (int k = 0; k < kernel_.rank; ++k) {
    if (info.dims >> k & 1) dims |= 1u << domain(k);
  }
  bool same = from.rank == kernel_.rank && dims == kernel_.reduced;
  for (size_t d = 0; same && d < static_cast<size_t>(kernel_.rank); ++d) {
    same = (dims >> d & 1) == 0 || from.sizes[d] == to.sizes[d];
  }
  if (!same) {
    if (v == root_) refuse("reductions over different dimensions");
    throw NeedsKernel{v};
  }
  try {
    return asComputed(at(operand, identity(kernel_.rank)), info);
  } catch (const NeedsKernel& needs) {
    // Of what could lie between two kernels, the smaller.
    const auto size = [&](const Value* t) { return numelOf(analysis_.layoutOf(t)); };
    if (operand != root_ && size(operand) < size(needs.value)) throw NeedsKernel{operand};
    throw;
  }
}
ScalarExpr KernelBuilder::asComputed(ScalarExpr x, const ValueInfo& info) {
  Expression& e = kernel_.expression;
  if (info.cast) x = e.convert(x, *info.cast);
  return e.convert(x, info.accumulate);
}

ScalarExpr KernelBuilder::reduce(ReduceOp op, ScalarExpr operand) {
  for (size_t r = 0; r < kernel_.reductions.size(); ++r) {
    if (kernel_.reductions[r].op == op && kernel_.reductions[r].operand == operand) {
      return resultOf(r);
    }
  }
  kernel_.reductions.push_back({op, operand});
  return resultOf(kernel_.reductions.size() - 1);
}
ScalarExpr KernelBuilder::resultOf(size_t r) {
  DType type = kernel_.expression[kernel_.reductions[r].operand].type;
  return kernel_.leaf({Leaf::Kind::Reduction, static_cast<uint32_t>(r), type});
}

// Every dimension that varies must run along the domain's own. Where a softmax is asked for by
// index along the dimension that it reduces, the row is the same.
void KernelBuilder::requireAligned(const Value* v, const ValueInfo& info,
                                   const Asked& asked) const {
  const bool softmax = info.what == What::Softmax || info.what == What::LogSoftmax;
  const Shape& from = analysis_.of(info.operands[0]).shape;
  const bool drops = info.shape.rank != from.rank;
  for (int k = 0, to = 0; k < from.rank; ++k) {
    const bool reduces = (info.dims >> k & 1) != 0;
    if (reduces && drops) continue;
    const int d = asked.map[static_cast<size_t>(to)];
    const bool aligned = d == domain(k) || (d == kAtIndex && softmax && reduces);
    if (!info.shape.isOne(to) && !aligned) {
      if (v == root_) refuse("a reduction whose result is stored elsewhere");
      throw NeedsKernel{v};
    }
    ++to;
  }
}

ScalarExpr KernelBuilder::reduced(const Value* v, const ValueInfo& info, const Asked& asked) {
  requireAligned(v, info, asked);
  ScalarExpr x = operandOf(v, info);
  ScalarExpr result;
  switch (info.what) {
    case What::ArgMax:
    case What::ArgMin:
      return place(info, x);
    case What::Variance:
      result = variance(info, x);
      break;
    case What::Deviation:
      result = ExprBuilder(kernel_.expression, info.accumulate).sqrt(variance(info, x));
      break;
    case What::LogSumExp:
      result = logSumExp(info, x);
      break;
    case What::Softmax:
    case What::LogSoftmax:
      result = softmax(info, x, asked);
      break;
    case What::LayerNorm:
      result = layerNorm(info, x);
      break;
    default:
      result = simpleReduction(info, x);
  }
  return kernel_.expression.convert(result, info.dtype);
}

ScalarExpr KernelBuilder::simpleReduction(const ValueInfo& info, ScalarExpr x) {
  Expression& e = kernel_.expression;
  ExprBuilder b(e, info.accumulate);
  switch (info.what) {
    case What::Mean:
      return b.div(reduce(ReduceOp::Sum, x), count(info.accumulate));
    case What::Prod:
      return reduce(ReduceOp::Prod, x);
    case What::Max:
      return reduce(ReduceOp::Max, x);
    case What::Min:
      return reduce(ReduceOp::Min, x);
    case What::Any:
      return reduce(ReduceOp::Any, e.convert(x, DType::Bool));
    case What::All:
      return reduce(ReduceOp::All, e.convert(x, DType::Bool));
    case What::Norm: {
      if (info.order == 2) return b.sqrt(reduce(ReduceOp::Sum, b.mul(x, x)));
      if (info.order == 1) return reduce(ReduceOp::Sum, b.abs(x));
      if (info.order == 0) return reduce(ReduceOp::Sum, b.fromMask(b.ne(x, b.constant(0))));
      if (std::isinf(info.order)) {
        return reduce(info.order > 0 ? ReduceOp::Max : ReduceOp::Min, b.abs(x));
      }
      const ScalarExpr powers = b.pow(b.abs(x), b.constant(info.order));
      return b.pow(reduce(ReduceOp::Sum, powers), b.constant(1 / info.order));
    }
    default:
      return reduce(ReduceOp::Sum, x);
  }
}

// The first position of the extremum, or of a NaN.
ScalarExpr KernelBuilder::place(const ValueInfo& info, ScalarExpr x) {
  ExprBuilder b(kernel_.expression, info.accumulate);
  ExprBuilder longs(kernel_.expression, DType::Long);
  const ScalarExpr best = reduce(info.what == What::ArgMax ? ReduceOp::Max : ReduceOp::Min, x);
  const ScalarExpr is_best = b.eq(x, best);
  const ScalarExpr here = b.either(is_best, b.isNan(x));
  const ScalarExpr none = kernel_.expression.integer(INT64_MAX, DType::Long);
  return reduce(ReduceOp::Min, longs.select(here, index(kernel_.reduced), none));
}

// In two passes: the mean, and the squares of what is left without it.
ScalarExpr KernelBuilder::variance(const ValueInfo& info, ScalarExpr x) {
  ExprBuilder b(kernel_.expression, info.accumulate);
  const ScalarExpr n = count(info.accumulate);
  const ScalarExpr centered = b.sub(x, b.div(reduce(ReduceOp::Sum, x), n));
  const ScalarExpr squares = reduce(ReduceOp::Sum, b.mul(centered, centered));
  if (info.correction == 0) return b.div(squares, n);
  const ScalarExpr left = b.sub(n, b.constant(static_cast<double>(info.correction)));
  return b.div(squares, b.select(b.lt(left, b.constant(0)), b.constant(0), left));
}

ScalarExpr KernelBuilder::logSumExp(const ValueInfo& info, ScalarExpr x) {
  ExprBuilder b(kernel_.expression, info.accumulate);
  const ScalarExpr largest = reduce(ReduceOp::Max, x);
  // Infinity less infinity would be NaN.
  const ScalarExpr infinite =
      b.eq(b.abs(largest), b.constant(std::numeric_limits<double>::infinity()));
  const ScalarExpr base = b.select(infinite, b.constant(0), largest);
  return b.add(b.log(reduce(ReduceOp::Sum, b.exp(b.sub(x, base)))), base);
}

ScalarExpr KernelBuilder::softmax(const ValueInfo& info, ScalarExpr x, const Asked& asked) {
  ExprBuilder b(kernel_.expression, info.accumulate);
  const ScalarExpr largest = reduce(ReduceOp::Max, x);
  ScalarExpr shifted = b.sub(x, largest);
  ScalarExpr power = b.exp(shifted);
  const ScalarExpr sum = reduce(ReduceOp::Sum, power);
  if (asked.isIndexed()) {
    shifted = b.sub(asComputed(at(info.operands[0], asked), info), largest);
    power = b.exp(shifted);
  }
  return info.what == What::Softmax ? b.mul(power, b.div(b.constant(1), sum))
                                    : b.sub(shifted, b.log(sum));
}

ScalarExpr KernelBuilder::layerNorm(const ValueInfo& info, ScalarExpr x) {
  ExprBuilder b(kernel_.expression, info.accumulate);
  const ScalarExpr n = count(info.accumulate);
  const ScalarExpr mean = b.div(reduce(ReduceOp::Sum, x), n);
  const ScalarExpr centered = b.sub(x, mean);
  const ScalarExpr spread = b.div(reduce(ReduceOp::Sum, b.mul(centered, centered)), n);
  const ScalarExpr scale = b.div(b.constant(1), b.sqrt(b.add(spread, b.constant(info.eps))));
  ScalarExpr result = b.mul(centered, scale);
  const Map points = identity(kernel_.rank);
  Expression& e = kernel_.expression;
  if (info.weight) result = b.mul(result, e.convert(at(info.weight, points), info.accumulate));
  if (info.bias) result = b.add(result, e.convert(at(info.bias, points), info.accumulate));
  return result;
}

}  // namespace wick::loop
