// What layers of all targets have in common.
#pragma once

#include <optional>

#include "aot/program.h"
#include "codegen/scalar/expression.h"
#include "core/tensor.h"
#include "runtime/kernels/activation.h"
#include "runtime/kernels/device_layers.h"

namespace wick::aot {

Layout layoutOf(const Tensor& t);
// In the current recording; none of an undefined tensor.
Place placeOf(const Tensor& t);
std::optional<Place> placeOfAny(const Tensor& t);

// What is pointwise, and what no target has.
class RecordedLayers : public DeviceLayers {
 public:
  Tensor convolutionWeightGradient(const char* op, const Tensor& input, const Tensor& gradient,
                                   IntSpan weight_size, const ConvolutionParams& params) override;
  void lstmStep(const LstmStep& step) override;
  void lstmStepGradient(const LstmStepGradient& step) override;
  Tensor pointwise(const ScalarDefinition& definition, std::span<const Operand> operands,
                   Device device) override;
};

// The activation of x, in the type of the builder: as activate() of runtime/kernels/activation.cpp has it.
ScalarExpr activated(const ExprBuilder& b, Activation activation, ScalarExpr x);

}  // namespace wick::aot
