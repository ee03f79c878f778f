// A definition becomes a kernel of the loop IR. A complex tensor is two accesses, one for each part,
// and the definition's arithmetic is recorded as that of parts.
#include "runtime/cuda/pointwise.h"

#include <algorithm>
#include <bit>

#include "codegen/loop/lowering.h"
#include "codegen/scalar/complex_recorders.h"
#include "codegen/scalar/promotion.h"
#include "core/error.h"
#include "core/number_range.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/elementwise_kernel.h"
#include "runtime/cuda/made_once.h"
#include "runtime/cuda/tables.h"

namespace wick::cuda {

namespace {

// What a kernel depends on besides the definition.
struct Form {
  DType compute, common, result;
  int rank;
  // Of each operand: its dtype in memory; numbers have none.
  std::vector<std::optional<DType>> operands;
  friend auto operator<=>(const Form&, const Form&) = default;
};

class Builder {
 public:
  Builder(const ScalarDefinition& definition, const Form& form, ElementwiseKernel& made)
      : definition_(definition), form_(form), made_(made) {}

  void build() {
    kernel_.expression = Expression(FunctionForm::Called);
    kernel_.rank = form_.rank;
    const ComplexRecorder* const complex = complexRecorderOf(definition_);
    const bool in_parts = isComplex(form_.compute) || isComplex(form_.result);
    if (in_parts ? !complex : !definition_.record) throw NotOnDevice();
    wide_ = in_parts && complex->wide;
    std::array<ComplexParts, kMaxScalarInputs> inputs;
    for (size_t i = 0; i < form_.operands.size(); ++i) inputs[i] = input(i);
    const ExprBuilder builder(kernel_.expression, computed());
    ComplexParts value;
    if (in_parts) {
      value = complex->record(builder, inputs.data());
    } else {
      std::array<ScalarExpr, kMaxScalarInputs> plain;
      for (size_t i = 0; i < form_.operands.size(); ++i) plain[i] = inputs[i].re;
      value.re = definition_.record(builder, plain.data());
    }
    if (!value.re.valid() || isComplex(form_.result) != value.im.valid()) throw NotOnDevice();
    const DType stored = toRealType(form_.result);
    made_.store(value.re, stored);
    if (value.im.valid()) made_.store(value.im, stored);
  }

 private:
  // The dtype of the parts, and that in which they are computed.
  DType part() const { return toRealType(form_.compute); }
  DType computed() const { return wide_ ? DType::Double : part(); }

  ScalarExpr convert(ScalarExpr e, DType to) { return kernel_.expression.convert(e, to); }
  ScalarExpr number(DType dtype) {
    const auto i = static_cast<uint32_t>(kernel_.numbers.size());
    kernel_.numbers.push_back({i, dtype});
    return kernel_.leaf({loop::Leaf::Kind::Number, i, dtype});
  }
  // In the dtype that the operands have in common, then in the one that is computed in.
  ScalarExpr operand(ScalarExpr e, bool param) {
    const bool rounds = isReducedFloat(form_.common) && !param;
    if (rounds) e = convert(e, form_.common);
    return convert(convert(e, part()), computed());
  }
  ComplexParts input(size_t i) {
    const bool mask = (definition_.mask_inputs >> i & 1) != 0;
    const bool param = (definition_.param_inputs >> i & 1) != 0;
    const std::optional<DType> dtype = form_.operands[i];
    if (!dtype) {
      if (mask) return {number(DType::Bool), {}};
      const ScalarExpr re = convert(number(part()), computed());
      if (!isComplex(form_.compute)) return {re, kernel_.expression.constant(0, computed())};
      return {re, convert(number(part()), computed())};
    }
    const DType real = toRealType(*dtype);
    const ScalarExpr re = made_.load(real);
    const ScalarExpr im = isComplex(*dtype) ? made_.load(real) : ScalarExpr();
    if (mask) {
      const ScalarExpr any = convert(re, DType::Bool);
      if (!im.valid()) return {any, {}};
      return {kernel_.expression.add({ScalarOp::Or,
                                      DType::Bool,
                                      ScalarFunction::exp,
                                      {any, convert(im, DType::Bool), {}}}),
              {}};
    }
    const bool has_parts = isComplex(form_.compute) || isComplex(form_.result);
    return {operand(re, param), im.valid()  ? operand(im, param)
                                : has_parts ? kernel_.expression.constant(0, computed())
                                            : ScalarExpr()};
  }
  const ScalarDefinition& definition_;
  const Form& form_;
  ElementwiseKernel& made_;
  loop::Kernel& kernel_ = made_.kernel;
  bool wide_ = false;
};

ElementwiseKernel& kernelFor(const ScalarDefinition& definition, const Form& form) {
  static auto& known = *new MadeOnce<std::pair<const ScalarDefinition*, Form>, ElementwiseKernel>;
  return known.of({&definition, form}, [&] {
    auto made = std::make_unique<ElementwiseKernel>();
    Builder(definition, form, *made).build();
    made->finish(definition.name);
    return made;
  });
}

// Adds what a kernel touches of a tensor: its elements, or their two parts.
void touch(const Tensor& t, IntSpan sizes, std::vector<Touch>& touches) {
  touches.push_back(touchOf(t, sizes));
  if (!isComplex(t.dtype())) return;
  touches.push_back(touches.back());
  touches.back().base += t.itemSize() / 2;
}

int64_t bitsOf(double value, DType type) {
  if (type == DType::Float) return std::bit_cast<int32_t>(static_cast<float>(value));
  return std::bit_cast<int64_t>(value);
}
void addNumber(const Scalar& n, const ComputeTypes& types, bool mask, bool param,
               std::vector<int64_t>& numbers) {
  const DType part = toRealType(types.compute);
  if (n.isComplex() && !isComplex(types.compute)) checkFits(n, part);
  if (mask || !isFloating(part)) {
    numbers.push_back(mask || part == DType::Bool ? n.toBool() : n.toInt());
    return;
  }
  const auto value = n.to<std::complex<double>>();
  double re = value.real();
  // A number joins reduced floats as one of them.
  if (types.common == DType::Half && !param) re = static_cast<float>(Half(static_cast<float>(re)));
  if (types.common == DType::BFloat16 && !param) {
    re = static_cast<float>(BFloat16(static_cast<float>(re)));
  }
  numbers.push_back(bitsOf(re, part));
  if (isComplex(types.compute)) numbers.push_back(bitsOf(value.imag(), part));
}

void launchOver(const ScalarDefinition& definition, const ComputeTypes& types,
                std::span<const Operand> operands, const Tensor& out) {
  if (out.dim() > loop::kMaxRank) throw NotOnDevice();
  Form form{types.compute, types.common, out.dtype(), static_cast<int>(out.dim()), {}};
  std::vector<Tensor> held;
  std::vector<Touch> touches;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = operands[i];
    if (!o.tensor) {
      form.operands.emplace_back();
      addNumber(o.number, types, (definition.mask_inputs >> i & 1) != 0,
                (definition.param_inputs >> i & 1) != 0, numbers);
      continue;
    }
    held.push_back(tableOn(out.device(), *o.tensor));
    form.operands.emplace_back(held.back().dtype());
    touch(held.back(), out.sizes(), touches);
  }
  touch(out, out.sizes(), touches);
  ElementwiseKernel& kernel = kernelFor(definition, form);
  try {
    kernel.run(out, touches, numbers);
  } catch (const loop::Unsupported& e) {
    if (deviceFallback()) throw NotOnDevice();
    throwRuntimeError("{}: its kernel cannot be compiled for {}: {}", definition.name,
                      out.device().str(), e.what());
  }
}

}  // namespace

Tensor computePointwise(const ScalarDefinition& definition, std::span<const Operand> operands,
                        Device device) {
  DTypePromotion promotion;
  DimVector sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].tensor) sizes = broadcastShapes(sizes, operands[i].tensor->sizes());
    if (((definition.mask_inputs | definition.param_inputs) >> i & 1) != 0) continue;
    addTo(promotion, operands[i]);
  }
  bool accepted = false;
  const ComputeTypes types = chooseTypes(definition, promotion, accepted);
  WICK_CHECK(accepted, "\"{}\" not implemented for '{}'", definition.name,
             scalarTypeName(types.common));
  const Tensor out = emptyResult(definition, operands, sizes, types.result, device);
  if (out.numel() > 0) launchOver(definition, types, operands, out);
  return out;
}

bool computeByDefinition(CallFrame& frame, Device device) {
  const ScalarDefinition* const definition = frame.op->record().scalar;
  if (!definition || frame.num_args != definition->num_inputs || frame.num_results != 1)
    return false;
  std::vector<Tensor> tensors(frame.num_args);
  std::vector<Operand> operands;
  bool any_complex = false;
  for (size_t i = 0; i < frame.num_args; ++i) {
    const IValue& v = frame.args[i];
    if (v.isTensor()) {
      tensors[i] = v.toTensor();
      if (!tensors[i].defined()) return false;
      any_complex |= isComplex(tensors[i].dtype());
      operands.emplace_back(tensors[i]);
    } else if (v.isInt() || v.isDouble() || v.isBool() || v.isComplex()) {
      any_complex |= v.isComplex();
      operands.emplace_back(Scalar::fromIValue(v));
    } else {
      return false;
    }
  }
  if (!any_complex) return false;
  DTypePromotion promotion;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (((definition->mask_inputs | definition->param_inputs) >> i & 1) == 0) {
      addTo(promotion, operands[i]);
    }
  }
  bool accepted = false;
  chooseTypes(*definition, promotion, accepted);
  if (!accepted) return false;
  try {
    frame.results[0] = IValue(computePointwise(*definition, operands, device));
    return true;
  } catch (const NotOnDevice&) {
    return false;
  }
}

}  // namespace wick::cuda
