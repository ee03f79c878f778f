// Arithmetic is that of definitions on parts (codegen/scalar/complex_recorders.h), one kernel for each part of the result: in one
// loop compilers would join products and sums of both parts to instructions that round once. Functions are those of
// the standard library, as the engine calls them (runtime/wick_aot_complex.h).
#include "aot/complex.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/kernel_maker.h"
#include "aot/recording.h"
#include "codegen/cpp/scalar_text.h"
#include "codegen/scalar/complex_recorders.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/kernels/onednn.h"
#include "runtime/kernels/reduce.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

// Of definitions for which parts would have other bits: by name, with the number of operands.
struct Function {
  std::string_view definition;
  size_t operands;
  std::string_view name;
};
constexpr Function kFunctions[] = {
    {"abs_cpu", 1, "Magnitude"},
    {"angle_cpu", 1, "Angle"},
    {"sgn_cpu", 1, "Sign"},
    {"pow", 2, "Power"},
    {"exp", 1, "Exp"},
    {"log", 1, "Log"},
    {"log2", 1, "Log2"},
    {"log10", 1, "Log10"},
    {"sqrt", 1, "Sqrt"},
    {"rsqrt", 1, "Rsqrt"},
    {"sigmoid_cpu", 1, "Sigmoid"},
    {"sin", 1, "Sin"},
    {"cos", 1, "Cos"},
    {"tan", 1, "Tan"},
    {"asin", 1, "Asin"},
    {"acos", 1, "Acos"},
    {"atan", 1, "Atan"},
    {"sinh", 1, "Sinh"},
    {"cosh", 1, "Cosh"},
    {"tanh", 1, "Tanh"},
    {"asinh", 1, "Asinh"},
    {"acosh", 1, "Acosh"},
    {"atanh", 1, "Atanh"},
};

void refuse(const ScalarDefinition& definition, DType dtype) {
  throw NotAhead(
      fmt::format("{} of {} is not available ahead of time", definition.name, toString(dtype)));
}

uint64_t bitsOf(double value, DType type) {
  return type == DType::Float ? std::bit_cast<uint32_t>(static_cast<float>(value))
                              : std::bit_cast<uint64_t>(value);
}

// The operands of a kernel, as the definition's recorder takes them.
class Inputs {
 public:
  Inputs(const ScalarDefinition& definition, const ComputeTypes& types, KernelMaker& maker)
      : definition_(definition),
        types_(types),
        maker_(maker),
        part_(toRealType(isComplex(types.compute) ? types.compute : types.result)) {}
  // The dtype of parts.
  DType part() const { return part_; }

  ComplexParts of(size_t i, const Operand& operand) {
    Expression& e = maker_.expression();
    const bool mask = (definition_.mask_inputs >> i & 1) != 0;
    if (!operand.tensor) {
      if (mask) return {maker_.number(operand.number.toBool() ? 1 : 0, DType::Bool), {}};
      const auto value = operand.number.to<std::complex<double>>();
      const ScalarExpr re = maker_.number(bitsOf(value.real(), part_), part_);
      if (value.imag() == 0) return {re, e.constant(value.imag(), part_)};
      return {re, maker_.number(bitsOf(value.imag(), part_), part_)};
    }
    const Tensor& t = *operand.tensor;
    if (!isComplex(t.dtype())) {
      const ScalarExpr re = maker_.load(t);
      if (mask) return {e.convert(re, DType::Bool), {}};
      return {e.convert(re, part_), e.constant(0, part_)};
    }
    if (mask) refuse(definition_, t.dtype());
    const ScalarExpr re = maker_.load(partOf(t, 0)), im = maker_.load(partOf(t, 1));
    return {e.convert(re, part_), e.convert(im, part_)};
  }

 private:
  const ScalarDefinition& definition_;
  const ComputeTypes& types_;
  KernelMaker& maker_;
  const DType part_;
};

// Operands of definitions that choose by a mask, which have no recorder.
struct Choice {
  size_t mask, where, elsewhere;
};
std::optional<Choice> choiceOf(std::string_view definition) {
  if (definition == "where_cpu") return Choice{0, 1, 2};
  if (definition == "masked_fill") return Choice{1, 2, 0};
  return std::nullopt;
}

// One part of the result.
void computePart(const ScalarDefinition& definition, const ComputeTypes& types,
                 std::span<const Operand> operands, const Tensor& out, int64_t part) {
  KernelMaker maker(out.sizes());
  Inputs given(definition, types, maker);
  std::array<ComplexParts, kMaxScalarInputs> inputs;
  for (size_t i = 0; i < operands.size(); ++i) inputs[i] = given.of(i, operands[i]);
  const ExprBuilder builder(maker.expression(), given.part());
  ComplexParts value;
  if (std::string_view(definition.name) == "polar_cpu") {
    // Of two real numbers.
    const ScalarExpr length = inputs[0].re, angle = inputs[1].re;
    value = {builder.mul(length, builder.cos(angle)), builder.mul(length, builder.sin(angle))};
  } else if (const auto chosen = choiceOf(definition.name)) {
    const ScalarExpr mask = inputs[chosen->mask].re;
    const ComplexParts &a = inputs[chosen->where], &b = inputs[chosen->elsewhere];
    value = {builder.select(mask, a.re, b.re), builder.select(mask, a.im, b.im)};
  } else {
    value = complexRecorderOf(definition)->record(builder, inputs.data());
  }
  const ScalarExpr stored = part == 0 ? value.re : value.im;
  if (!stored.valid()) refuse(definition, types.common);
  maker.store(stored, isComplex(out.dtype()) ? partOf(out, part) : out);
  maker.finish(definition.name);
}

// Each operand in the memory's order of the result.
void computeFunction(const ScalarDefinition& definition, const Function& function,
                     const ComputeTypes& types, std::span<const Operand> operands,
                     const Tensor& out) {
  const Device device{kAhead, -1};
  std::vector<FunctionStep::Operand> given;
  for (const Operand& operand : operands) {
    const Tensor t = operand.tensor
                         ? *operand.tensor
                         : here(Tensor::scalar(operand.number.to<std::complex<double>>()));
    if (t.dtype() == types.compute && std::ranges::equal(t.sizes(), out.sizes()) &&
        std::ranges::equal(t.strides(), out.strides())) {
      given.push_back(reads(t));
      continue;
    }
    const Tensor copy = Tensor::emptyStrided(out.sizes(), out.strides(), types.compute, device);
    copy.copyFrom(t.expand(out.sizes()));
    given.push_back(reads(copy));
  }
  given.push_back(writes(out));
  addFunction(definition.name,
              fmt::format("{}<wick_aot::Complex{}, {}>",
                          operands.size() == 1 ? "ofComplex" : "ofTwoComplex", function.name,
                          codegen::cppType(toRealType(types.compute))),
              std::move(given), {out.numel()});
}

}  // namespace

Tensor partOf(const Tensor& t, int64_t part) {
  DimVector strides(t.strides());
  for (int64_t& s : strides) s *= 2;
  return Tensor::fromStorage(t.storage(), toRealType(t.dtype()), t.sizes(), strides,
                             t.offset() * 2 + part);
}
Tensor asPairs(const Tensor& t) {
  DimVector sizes(t.sizes()), strides(t.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return Tensor::fromStorage(t.storage(), toRealType(t.dtype()), sizes, strides, t.offset() * 2);
}

void copyComplex(const Tensor& to, const Tensor& from) {
  if (!isComplex(to.dtype())) {
    to.copyFrom(to.dtype() == DType::Bool ? Tensor(ops::logicalOr(partOf(from, 0), partOf(from, 1)))
                                          : partOf(from, 0));
    return;
  }
  if (!isComplex(from.dtype())) {
    partOf(to, 0).copyFrom(from);
    const Tensor zero = Tensor::zeros(DimVector{}, toRealType(to.dtype()));
    partOf(to, 1).copyFrom(here(zero).expand(to.sizes()));
    return;
  }
  Tensor source = from;
  if (!std::ranges::equal(from.sizes(), to.sizes())) source = from.expand(to.sizes());
  asPairs(to).copyFrom(asPairs(source));
}

void computeComplex(const ScalarDefinition& definition, const ComputeTypes& types,
                    std::span<const Operand> operands, const Tensor& out) {
  const auto* const function = std::ranges::find_if(kFunctions, [&](const Function& f) {
    return f.definition == definition.name && f.operands == operands.size();
  });
  if (function != std::end(kFunctions)) {
    return computeFunction(definition, *function, types, operands, out);
  }
  const ComplexRecorder* const recorder = complexRecorderOf(definition);
  const bool own = std::string_view(definition.name) == "polar_cpu" || choiceOf(definition.name);
  // Formulas that lose digits are computed in float64 elsewhere, with other bits than the engine's.
  if (!own && (!recorder || recorder->wide)) refuse(definition, types.common);
  computePart(definition, types, operands, out, 0);
  if (isComplex(out.dtype())) computePart(definition, types, operands, out, 1);
}

Tensor multiplyComplex(const char* op, const Tensor& a_in, const Tensor& b_in) {
  using namespace products;
  const int64_t batches = a_in.size(0) == 1 ? b_in.size(0) : a_in.size(0);
  if (batches > 1 && collapseBatch(a_in).size(0) == 1 && collapseBatch(b_in).size(0) == 1) {
    const Tensor one = multiplyComplex(op, a_in.narrow(0, 0, 1), b_in.narrow(0, 0, 1));
    return one.expand(DimVector{batches, one.size(1), one.size(2)}).contiguous();
  }
  const Tensor a = isMatrix(a_in) ? a_in : a_in.contiguous();
  const Tensor b = isMatrix(b_in) ? b_in : b_in.contiguous();
  const int64_t m = a.size(1), k = a.size(2), n = b.size(2);
  const Tensor out = Tensor::empty(DimVector{batches, m, n}, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  if (k == 0) {
    out.fill(0);
    return out;
  }
  if (std::max({m, n, k, a.stride(1), a.stride(2), b.stride(1), b.stride(2)}) >= INT32_MAX) {
    throw NotAhead(
        fmt::format("{}: a matrix of 2^31 rows or columns is not available ahead of time", op));
  }
  // As productBlas() of runtime/kernels/gemm.cpp cuts the longer side.
  constexpr double kLeastWork = int64_t{1} << 21;
  constexpr int64_t kLongest = 256, kUnit = 8;
  const int64_t side = std::max(m, n);
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  int64_t length = side;
  if (work >= kLeastWork) {
    const int64_t wanted = 2 * ((side + kLongest - 1) / kLongest);
    length = std::max(kUnit, ((side + wanted - 1) / wanted + kUnit - 1) / kUnit * kUnit);
  }
  const bool ra = isRowMajor(a), rb = isRowMajor(b);
  addFunction(op,
              fmt::format("lapack::complexProducts<{}>", codegen::cppType(toRealType(a.dtype()))),
              {reads(a), reads(b), writes(out)},
              {batches, m, n, k, ra ? 1 : 0, leading(a, ra), batchStride(a), rb ? 1 : 0,
               leading(b, rb), batchStride(b), length});
  return out;
}

namespace {

using Dims = std::optional<DimVector>;

// Sums and means of complex numbers; what is not complex is left to groups.
Tensor reduced(const char* op, const Tensor& self, const Dims& dims, bool keepdim,
               std::optional<DType> dtype, bool mean) {
  if (!isComplex(dtype.value_or(self.dtype()))) throw NotOnDevice();
  const Tensor x = dtype ? here(self).to(*dtype) : here(self);
  const std::vector<bool> mask = reduce::dimMask(op, x, dims ? IntSpan(*dims) : IntSpan());
  const Tensor out = Tensor::empty(reduce::reducedSizes(x, mask, keepdim), x.dtype(), x.device());
  const reduce::Plan plan = reduce::makePlan(x, mask);
  if (plan.outputs == 0) return out;
  if (plan.reduced_count == 0) {
    asPairs(out).fill(mean ? std::numeric_limits<double>::quiet_NaN() : 0);
    return out;
  }
  std::vector<int64_t> words;
  for (const auto* const dimensions : {&plan.kept, &plan.reduced}) {
    for (const reduce::Dim& d : *dimensions) words.insert(words.end(), {d.size, d.in, d.out});
  }
  words.push_back(0);
  const bool columns = !plan.kept.empty() && !plan.reduced.empty() &&
                       std::abs(plan.kept.back().in) < std::abs(plan.reduced.back().in);
  const Tensor table =
      here(Tensor::fromData(words.data(), DimVector{static_cast<int64_t>(words.size())}));
  addFunction(op, fmt::format("complexSums<{}>", codegen::cppType(toRealType(x.dtype()))),
              {reads(x), reads(table), writes(out)},
              {static_cast<int64_t>(plan.kept.size()), static_cast<int64_t>(plan.reduced.size()),
               plan.outputs, plan.reduced_count, columns ? 1 : 0, mean ? plan.reduced_count : 0});
  return out;
}
Tensor sumDims(const Tensor& self, const Dims& dims, bool keepdim, std::optional<DType> dtype) {
  return reduced("sum", self, dims, keepdim, dtype, false);
}
Tensor sum(const Tensor& self, std::optional<DType> dtype) {
  return sumDims(self, std::nullopt, false, dtype);
}
Tensor meanDims(const Tensor& self, const Dims& dims, bool keepdim, std::optional<DType> dtype) {
  return reduced("mean", self, dims, keepdim, dtype, true);
}
Tensor mean(const Tensor& self, std::optional<DType> dtype) {
  return meanDims(self, std::nullopt, false, dtype);
}

// By operators on parts and on others.
Tensor flip(const Tensor& self, const DimVector& dims) {
  if (!isComplex(self.dtype())) throw NotOnDevice();
  DimVector wrapped;
  for (const int64_t d : dims) wrapped.push_back(wrapDim(d, self.dim()));
  return ops::viewAsComplex(ops::flip(asPairs(here(self).contiguous()), wrapped));
}
Tensor conjugated(const Tensor& self) {
  static const OperatorHandle kConj{"aten::conj", ""};
  if (!isComplex(self.dtype())) throw NotOnDevice();
  return kConj(self);
}

Tensor fromParts(const Tensor& re, const Tensor& im) {
  WICK_CHECK(
      re.dtype() == im.dtype() && (re.dtype() == DType::Float || re.dtype() == DType::Double),
      "complex: expected parts that are both float32 or both float64, got {} and {}",
      toString(re.dtype()), toString(im.dtype()));
  const DimVector sizes = broadcastShapes(re.sizes(), im.sizes());
  const Tensor out = Tensor::empty(sizes, toComplexType(re.dtype()), Device{kAhead, -1});
  partOf(out, 0).copyFrom(here(re).expand(sizes));
  partOf(out, 1).copyFrom(here(im).expand(sizes));
  return out;
}

const DeviceKernel kComplexKernels[] = {
    {"aten::complex", WICK_KERNEL(fromParts)},
    {"aten::flip", WICK_KERNEL(flip)},
    {"aten::conj_physical", WICK_KERNEL(conjugated)},
    {"aten::_conj_physical", WICK_KERNEL(conjugated)},
    {"aten::sum", WICK_KERNEL(sum)},
    {"aten::sum.dim_IntList", WICK_KERNEL(sumDims)},
    {"aten::mean", WICK_KERNEL(mean)},
    {"aten::mean.dim", WICK_KERNEL(meanDims)},
};
const RegisterDeviceKernels kComplexRegistered(kAhead, kComplexKernels, TableRule::Last);

}  // namespace

}  // namespace wick::aot
