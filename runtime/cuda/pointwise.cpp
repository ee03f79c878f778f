// A definition becomes a kernel of the loop IR. A complex tensor is two accesses, one for each part,
// and the definition's arithmetic is recorded as that of parts.
#include "runtime/cuda/pointwise.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>

#include "codegen/cuda/scalar_text.h"
#include "codegen/loop/lowering.h"
#include "codegen/scalar/complex_recorders.h"
#include "codegen/scalar/promotion.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/loop_kernel.h"
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

struct PointwiseKernel {
  loop::Kernel kernel;
  std::unique_ptr<LoopKernel> code;
};

class Builder {
 public:
  Builder(const ScalarDefinition& definition, const Form& form, loop::Kernel& kernel)
      : definition_(definition), form_(form), kernel_(kernel) {}

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
    store(value.re);
    if (value.im.valid()) store(value.im);
  }

 private:
  // The dtype of the parts, and that in which they are computed.
  DType part() const { return toRealType(form_.compute); }
  DType computed() const { return wide_ ? DType::Double : part(); }

  ScalarExpr convert(ScalarExpr e, DType to) { return kernel_.expression.convert(e, to); }
  ScalarExpr load(DType dtype) {
    loop::Access access{static_cast<uint32_t>(kernel_.accesses.size()), dtype, {}};
    access.dims.fill(-1);
    for (int d = 0; d < form_.rank; ++d)
      access.dims[static_cast<size_t>(d)] = static_cast<int8_t>(d);
    kernel_.accesses.push_back(access);
    return kernel_.leaf({loop::Leaf::Kind::Load, access.argument, dtype});
  }
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
    const ScalarExpr re = load(real);
    const ScalarExpr im = isComplex(*dtype) ? load(real) : ScalarExpr();
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
  void store(ScalarExpr value) {
    const DType dtype = toRealType(form_.result);
    loop::Access access{static_cast<uint32_t>(kernel_.stores.size()), dtype, {}};
    access.dims.fill(-1);
    for (int d = 0; d < form_.rank; ++d)
      access.dims[static_cast<size_t>(d)] = static_cast<int8_t>(d);
    kernel_.accesses.push_back(access);
    kernel_.stores.push_back(
        {convert(value, dtype), static_cast<uint32_t>(kernel_.accesses.size() - 1), false});
  }

  const ScalarDefinition& definition_;
  const Form& form_;
  loop::Kernel& kernel_;
  bool wide_ = false;
};

PointwiseKernel& kernelFor(const ScalarDefinition& definition, const Form& form) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known =
      *new std::map<std::pair<const ScalarDefinition*, Form>, std::unique_ptr<PointwiseKernel>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<PointwiseKernel>& slot = known[{&definition, form}];
  if (slot) return *slot;
  auto made = std::make_unique<PointwiseKernel>();
  Builder(definition, form, made->kernel).build();
  made->code = std::make_unique<LoopKernel>(definition.name, made->kernel);
  slot = std::move(made);
  return *slot;
}

// Adds what a kernel touches of a tensor: its elements, or their two parts.
void touch(const Tensor& t, IntSpan sizes, std::vector<Touch>& touches) {
  const auto item = static_cast<int64_t>(t.itemSize());
  Touch one{};
  one.base = static_cast<char*>(t.rawData());
  const size_t lead = sizes.size() - t.sizes().size();
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    const bool spread = t.sizes()[d] == 1;
    one.steps[lead + d] = spread ? 0 : t.strides()[d] * item;
  }
  touches.push_back(one);
  if (!isComplex(t.dtype())) return;
  one.base += item / 2;
  touches.push_back(one);
}

int64_t bitsOf(double value, DType type) {
  if (type == DType::Float) return std::bit_cast<int32_t>(static_cast<float>(value));
  return std::bit_cast<int64_t>(value);
}
void addNumber(const Scalar& n, const ComputeTypes& types, bool mask, bool param,
               std::vector<int64_t>& numbers) {
  const DType part = toRealType(types.compute);
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

// A new tensor whose elements lie in memory like those of the first operand of its shape.
Tensor emptyLike(std::span<const Operand> operands, const DimVector& sizes, DType dtype,
                 Device device) {
  for (const Operand& o : operands) {
    if (!o.tensor || !std::ranges::equal(o.tensor->sizes(), IntSpan(sizes))) continue;
    if (o.tensor->isContiguous() || !o.tensor->isNonOverlappingAndDense()) break;
    return Tensor::emptyStrided(sizes, o.tensor->strides(), dtype, device);
  }
  return Tensor::empty(sizes, dtype, device);
}

void launchOver(const ScalarDefinition& definition, const ComputeTypes& types,
                std::span<const Operand> operands, const Tensor& out) {
  CudaDevice& device = enter(out.device());
  const auto rank = static_cast<size_t>(out.dim());
  if (rank > loop::kMaxRank) throw NotOnDevice();
  Form form{types.compute, types.common, out.dtype(), static_cast<int>(rank), {}};
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
  PointwiseKernel& made = kernelFor(definition, form);
  std::array<int, loop::kMaxRank> order{};
  std::iota(order.begin(), order.begin() + static_cast<int64_t>(rank), 0);
  std::stable_sort(order.begin(), order.begin() + static_cast<int64_t>(rank),
                   [&](int a, int b) { return out.stride(a) < out.stride(b); });
  Walk walk;
  planWalk(made.kernel, out.sizes(), touches, std::span(order).first(rank), walk);
  try {
    LoopKernel::Ready ready = made.code->prepare(device, walk, touches, numbers);
    made.code->queue(ready);
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
  const Tensor out = emptyLike(operands, sizes, types.result, device);
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
