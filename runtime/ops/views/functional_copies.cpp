// Forms that copy where others view or write, conversions that keep what is already right, and
// small compositions of other operators.
#include <algorithm>
#include <limits>

#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

Tensor copyOf(const Tensor& self, const Tensor& source, bool) {
  Tensor out = Tensor::emptyLike(self, self.dtype());
  out.copyFrom(source);
  return out;
}

// The first elements of `self` in memory order; what is beyond them is zero.
Tensor resized(const Tensor& self, const DimVector& size, std::optional<MemoryFormat> format) {
  Tensor out = Tensor::zeros(size, self.dtype(), self.device());
  Tensor from = self.flatten(), to = out.flatten();
  int64_t common = std::min(from.numel(), to.numel());
  to.narrow(0, 0, common).copyFrom(from.narrow(0, 0, common));
  return out.contiguous(format.value_or(MemoryFormat::Contiguous));
}
Tensor resizedAs(const Tensor& self, const Tensor& like, std::optional<MemoryFormat> format) {
  return resized(self, DimVector(like.sizes()), format);
}

// Casts of autocast scopes, each for tensors of its own device (passes/autocast.h).
bool isCastOn(Device device, bool cuda_enabled, bool cpu_enabled) {
  return (device.isCpu() && cpu_enabled) || (device.isCuda() && cuda_enabled);
}
Tensor toFullPrecision(const Tensor& self, bool cuda_enabled, bool cpu_enabled) {
  const bool reduced = self.dtype() == DType::Half || self.dtype() == DType::BFloat16;
  return reduced && isCastOn(self.device(), cuda_enabled, cpu_enabled) ? self.to(DType::Float)
                                                                       : self;
}
Tensor toReducedPrecision(const Tensor& self, bool cuda_enabled, bool cpu_enabled, DType cuda_dtype,
                          DType cpu_dtype) {
  const bool full = self.dtype() == DType::Float;
  if (!full || !isCastOn(self.device(), cuda_enabled, cpu_enabled)) return self;
  return self.to(self.device().isCpu() ? cpu_dtype : cuda_dtype);
}

DimVector dimsIn(const Tensor& shape) {
  Tensor sizes = moveTo(shape, Device()).to(DType::Long).flatten().contiguous();
  return DimVector(IntSpan(sizes.data<int64_t>(), static_cast<size_t>(sizes.numel())));
}
Tensor reshapeFrom(const Tensor& self, const Tensor& shape) {
  return self.reshape(dimsIn(shape));
}

Tensor flattenTensors(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> flat;
  for (const Tensor& t : tensors) flat.push_back(t.flatten());
  return cat(flat, int64_t{0});
}
// Slices of `flat` with the shapes of `tensors`.
std::vector<Tensor> unflattenTensors(const Tensor& flat, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    WICK_CHECK(flat.dim() == 1 && at + t.numel() <= flat.size(0),
               "unflatten_dense_tensors: {} is too short", flat.describe());
    out.push_back(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
  return out;
}

// Between zero and the largest number; not a number gives zero, as PyTorch's clamp at the end does.
Tensor clampedToPositive(const Tensor& sum) {
  if (!sum.device().isCpu()) {
    static const OperatorHandle kNumbers{"aten::nan_to_num", ""};
    const Tensor numbers =
        isFloating(sum.dtype()) ? maskedFill(sum, ops::isNan(sum), Scalar(0)) : sum;
    return isFloating(sum.dtype()) ? kNumbers(relu(numbers)) : relu(numbers);
  }
  Tensor t = sum.contiguous();
  Tensor out = Tensor::empty(t.sizes(), t.dtype());
  dispatch<kRealNumbers>("_add_relu", t.dtype(), [&]<class T>() -> void {
    const T zero = convert<T>(0), most = [] {
      if constexpr (std::is_same_v<T, Half>) return convert<T>(65504.0);
      if constexpr (std::is_same_v<T, BFloat16>) return convert<T>(3.3895313892515355e+38);
      return std::numeric_limits<T>::max();
    }();
    for (int64_t i = 0; i < t.numel(); ++i) {
      const T v = t.data<T>()[i];
      out.data<T>()[i] = v > zero ? (v < most ? v : most) : zero;
    }
  });
  return out;
}
Tensor addRelu(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return clampedToPositive(add(self, other, alpha));
}
Tensor addReluScalar(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return clampedToPositive(addScalar(self, other, alpha));
}

// The rows that the mask keeps, and the new number of each row (-1 when it went).
std::tuple<Tensor, Tensor> rowwisePrune(const Tensor& weight, const Tensor& mask, DType dtype) {
  const char* op = "_rowwise_prune";
  WICK_CHECK(weight.dim() == 2 && mask.dim() == 1 && mask.size(0) == weight.size(0) &&
                 mask.dtype() == DType::Bool,
             "{}: expected a matrix and a boolean for each row, got {} and {}", op,
             weight.describe(), mask.describe());
  WICK_CHECK(dtype == DType::Int || dtype == DType::Long,
             "{}: expected indices of dtype int32 or int64, got {}", op, toString(dtype));
  Tensor numbers = Tensor::empty(mask.sizes(), DType::Long);
  Tensor keep = mask.contiguous();
  int64_t next = 0;
  for (int64_t i = 0; i < keep.numel(); ++i) {
    numbers.data<int64_t>()[i] = keep.data<bool>()[i] ? next++ : -1;
  }
  Tensor rows = Tensor::empty(DimVector{next, weight.size(1)}, weight.dtype());
  for (int64_t i = 0; i < keep.numel(); ++i) {
    const int64_t at = numbers.data<int64_t>()[i];
    if (at >= 0) rows.select(0, at).copyFrom(weight.select(0, i));
  }
  return {rows, numbers.to(dtype)};
}

// What fused layers call to add a bias that may be missing.
Tensor addOptional(const Tensor& input, const Tensor& bias) {
  return bias.defined() ? add(input, bias) : input;
}

// Dimensions of size one at these positions of the result.
Tensor expandedAt(const Tensor& t, DimVector places) {
  std::sort(places.begin(), places.end());
  Tensor out = t;
  for (int64_t d : places) out = out.unsqueeze(d);
  return out;
}
Tensor trilinear(const Tensor& a, const Tensor& b, const Tensor& c, const DimVector& expand_a,
                 const DimVector& expand_b, const DimVector& expand_c, const DimVector& summed,
                 int64_t) {
  Tensor product =
      mul(mul(expandedAt(a, expand_a), expandedAt(b, expand_b)), expandedAt(c, expand_c));
  return summed.empty() ? product : sumDims(product, summed);
}

// einsum(a, [0, 1], b, [1, 2], [0, 2]): operands alternate with their subscripts; subscripts alone
// at the end are the result's.
void einsumSublist(CallFrame& frame) {
  static const OperatorHandle kEinsum("aten::einsum", "");
  std::string equation;
  auto append = [&](const IValue& list) {
    for (const IValue& e : list.elements()) {
      const int64_t i = e.numberToInt();
      WICK_CHECK(i >= 0 && i < 52, "einsum: expected subscripts to be in range [0, 52), but got {}",
                 i);
      equation += static_cast<char>(i < 26 ? 'A' + i : 'a' + i - 26);
    }
  };
  std::vector<Tensor> operands;
  size_t i = 0;
  for (; i + 1 < frame.num_args; i += 2) {
    WICK_CHECK(frame.args[i].isTensor() && frame.args[i + 1].isList(),
               "einsum: expected a tensor followed by a list of subscripts");
    if (i > 0) equation += ',';
    operands.push_back(frame.args[i].toTensor());
    append(frame.args[i + 1]);
  }
  if (i < frame.num_args) {
    WICK_CHECK(frame.args[i].isList(), "einsum: expected the result's subscripts at the end");
    equation += "->";
    append(frame.args[i]);
  }
  frame.results[0] = IValue(kEinsum(equation, operands, IValue()));
}

constexpr OperatorRecord kFunctionalCopiesRecords[] = {
    {"aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", WICK_KERNEL(copyOf),
     kNeutralMixed},
    {"aten::resize(Tensor self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor",
     WICK_KERNEL(resized), kNeutral},
    {"aten::resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
     "Tensor",
     WICK_KERNEL(resizedAs), kNeutral},
    {"aten::_conj_copy(Tensor self) -> Tensor",
     WICK_LAMBDA([](const Tensor& t) { return conj(t); }), kNeutral},
    {"aten::_neg_view_copy(Tensor self) -> Tensor",
     WICK_LAMBDA([](const Tensor& t) { return neg(t); }), kNeutral},
    {"aten::_saturate_weight_to_fp16(Tensor weight) -> Tensor",
     WICK_LAMBDA([](const Tensor& t) { return ops::clamp(t, -65504.0, 65504.0); }), kNeutral},
    {"aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
     WICK_LAMBDA([](const Tensor& t, std::optional<DType> dtype, IValue) {
       return t.to(dtype.value_or(t.dtype()));
     }),
     kNeutral},
    {"aten::_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> "
     "Tensor(a)",
     WICK_KERNEL(toFullPrecision), kMayReturnArgument | kNeutralMixed},
    {"aten::_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, "
     "ScalarType cuda_dtype, ScalarType cpu_dtype) -> Tensor(a)",
     WICK_KERNEL(toReducedPrecision), kMayReturnArgument | kNeutralMixed},
    {"aten::_reshape_from_tensor(Tensor self, Tensor shape) -> Tensor", WICK_KERNEL(reshapeFrom),
     kNeutralMixed},
    {"aten::flatten_dense_tensors(Tensor[] tensors) -> Tensor", WICK_KERNEL(flattenTensors),
     kNeutral},
    {"aten::unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
     WICK_KERNEL(unflattenTensors), kNeutral},
    {"aten::_to_cpu(Tensor[] tensors) -> Tensor[]",
     WICK_LAMBDA([](const std::vector<Tensor>& tensors) { return tensors; })},
    {"aten::_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     WICK_KERNEL(addRelu), kInplaceForm | kOutForm | kNeutral},
    {"aten::_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     WICK_KERNEL(addReluScalar), kInplaceForm | kNeutral},
    {"aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] "
     "expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
     WICK_KERNEL(trilinear), kNeutral},
    {"aten::_rowwise_prune(Tensor weight, Tensor mask, ScalarType compressed_indices_dtype) -> "
     "(Tensor, Tensor)",
     WICK_KERNEL(rowwisePrune), kNotDifferentiable},
    {"prim::add_optional(Tensor(a) input, Tensor? bias) -> Tensor(a)", WICK_KERNEL(addOptional)},
    {"aten::einsum.sublist(Tensor a, ...) -> Tensor", &einsumSublist, kNeutral | kEagerCastUnknown},
    {"prim::squeeze_copy.dim(Tensor self, int dim) -> Tensor",
     WICK_LAMBDA([](const Tensor& t, int64_t d) { return t.squeeze(d).clone(); }), kNeutral},
    {"prim::unsqueeze_copy(Tensor self, int dim) -> Tensor",
     WICK_LAMBDA([](const Tensor& t, int64_t d) { return t.unsqueeze(d).clone(); }), kNeutral},
    {"prim::abs(Tensor x) -> Tensor", WICK_LAMBDA([](const Tensor& t) { return abs(t); }),
     kNeutral},
};

const RegisterOperators kFunctionalCopiesRegistered(kFunctionalCopiesRecords);

}  // namespace

}  // namespace wick::ops
