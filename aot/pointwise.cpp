// A definition becomes one kernel of the loop IR.
#include "aot/pointwise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <vector>

#include "aot/complex.h"
#include "aot/device.h"
#include "aot/kernel_maker.h"
#include "aot/recording.h"
#include "codegen/scalar/promotion.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"

namespace wick::aot {

namespace {

// The bits of a number of `type`, as kernels have them; `joins` a reduced float where it is rounded to one.
uint64_t bitsOf(const Scalar& n, DType type, DType joins) {
  if (type == DType::Bool) return n.toBool() ? 1 : 0;
  if (!isFloating(type)) return static_cast<uint64_t>(n.toInt());
  double value = n.toDouble();
  if (joins == DType::Half) value = static_cast<float>(Half(static_cast<float>(value)));
  if (joins == DType::BFloat16) value = static_cast<float>(BFloat16(static_cast<float>(value)));
  return type == DType::Float ? std::bit_cast<uint32_t>(static_cast<float>(value))
                              : std::bit_cast<uint64_t>(value);
}

// Whether integers are divided by the second operand, for which zero is an error.
bool divides(const ScalarDefinition& definition) {
  static constexpr std::array<std::string_view, 4> kDivisions = {"div_floor", "div_trunc",
                                                                 "remainder", "fmod"};
  return std::ranges::find(kDivisions, definition.name) != kDivisions.end();
}

// Whether elements that are known have no zero among them.
bool isKnownNonzero(const Tensor& t, DType common) {
  const Tensor known = Recording::current().known(t);
  if (!known.defined()) return false;
  const Tensor values = known.to(common).contiguous();
  bool zero = false;
  dispatchAll(common, [&]<class T>() {
    for (int64_t i = 0; i < values.numel(); ++i) zero |= values.data<T>()[i] == T(0);
  });
  return !zero;
}

}  // namespace

Tensor computePointwise(const ScalarDefinition& definition, std::span<const Operand> given) {
  std::vector<Tensor> held;
  held.reserve(given.size());
  std::vector<Operand> operands;
  DTypePromotion promotion;
  DimVector sizes;
  for (size_t i = 0; i < given.size(); ++i) {
    operands.push_back(given[i]);
    if (given[i].tensor) {
      held.push_back(Recording::current().constant(*given[i].tensor));
      operands.back().tensor = &held.back();
      sizes = broadcastShapes(sizes, held.back().sizes());
    }
    if (((definition.mask_inputs | definition.param_inputs) >> i & 1) == 0) {
      addTo(promotion, given[i]);
    }
  }
  bool accepted = false;
  const ComputeTypes types = chooseTypes(definition, promotion, accepted);
  WICK_CHECK(accepted, "\"{}\" not implemented for '{}'", definition.name,
             scalarTypeName(types.common));
  const Tensor out = emptyResult(definition, operands, sizes, types.result, Device{kAhead, -1});
  if (isComplex(types.compute) || isComplex(types.result)) {
    computeComplex(definition, types, operands, out);
    return out;
  }
  KernelMaker maker(sizes);
  Expression& e = maker.expression();
  const ExprBuilder builder(e, types.compute);
  std::array<ScalarExpr, kMaxScalarInputs> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool mask = (definition.mask_inputs >> i & 1) != 0;
    const bool param = (definition.param_inputs >> i & 1) != 0;
    const DType type = mask ? DType::Bool : types.compute;
    if (!operands[i].tensor) {
      inputs[i] =
          maker.number(bitsOf(operands[i].number, type, mask || param ? type : types.common), type);
      continue;
    }
    ScalarExpr value = maker.load(*operands[i].tensor);
    if (!mask && !param && isReducedFloat(types.common)) value = e.convert(value, types.common);
    inputs[i] = e.convert(value, type);
  }
  const ScalarExpr value = definition.record(builder, inputs.data());
  const bool whole = isIntegral(types.compute, true) && divides(definition);
  const bool checked =
      whole && operands[1].tensor && !isKnownNonzero(*operands[1].tensor, types.compute);
  if (checked) maker.check(builder.ne(inputs[1], builder.constant(0)));
  maker.store(value, out);
  maker.finish(definition.name, "ZeroDivisionError");
  return out;
}

void computeLstmStep(const LstmStep& step) {
  if (step.c.dtype() != DType::Float && step.c.dtype() != DType::Double) {
    throw NotAhead(
        fmt::format("lstm of {} is not available ahead of time", toString(step.c.dtype())));
  }
  const int64_t rows = step.c.size(0), cells = step.c.size(1);
  KernelMaker maker(DimVector{rows, cells});
  const ExprBuilder b(maker.expression(), step.c.dtype());
  // The part of one gate; gates are four times as wide.
  const auto part = [&](const Tensor& gates, int64_t gate) {
    return gates.narrow(1, gate * cells, cells);
  };
  const auto gate = [&](int64_t k) {
    return b.add(maker.load(part(step.gates, k)), maker.load(part(step.hidden, k)));
  };
  const ScalarExpr in = b.sigmoid(gate(0)), forget = b.sigmoid(gate(1)), cell = b.tanh(gate(2));
  const ScalarExpr out = b.sigmoid(gate(3));
  const ScalarExpr next = b.add(b.mul(forget, maker.load(step.c)), b.mul(in, cell));
  const ScalarExpr activated[] = {in, forget, cell, out};
  for (int64_t k = 0; k < 4; ++k) maker.store(activated[k], part(step.activated, k));
  maker.store(next, step.next_c);
  maker.store(b.mul(out, b.tanh(next)), step.next_h);
  maker.finish("lstm_step");
}

}  // namespace wick::aot
