// Pointwise operators on sparse tensors: those that keep zero act on the values, sums join the
// entries of both, products keep those that both have.
#include <algorithm>
#include <complex>

#include "core/budget.h"
#include "core/sparse_form.h"
#include "ir/operator.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/promotion.h"
#include "runtime/ops/sparse/coordinates.h"

namespace wick::ops::sparse {

namespace {

// What the called operator makes of dense values in place of its first argument.
Tensor applied(CallFrame& frame, const Tensor& values) {
  std::vector<IValue> args(frame.args, frame.args + frame.num_args);
  args[0] = IValue(values);
  IValue result;
  baseOf(*frame.op).call(args.data(), args.size(), &result, 1);
  return result.toTensor();
}

enum class Kinship { Linear, Pointwise };

// Operators of one sparse tensor that keep zero. Values in one place are added first, unless the
// operator is linear. In place the values themselves are written, as whoever shares them expects.
template <Kinship kKinship>
void onValues(CallFrame& frame) {
  const std::string op(frame.op->schema().name());
  const Tensor self = frame.args[0].toTensor();
  const SparseForm& form = sparseFormOf(op, self);
  const bool as_it_is = !form.isCoo() || form.coalesced || kKinship == Kinship::Linear;
  const bool in_place = op.ends_with('_');
  if (in_place && as_it_is) {
    std::vector<IValue> args(frame.args, frame.args + frame.num_args);
    args[0] = IValue(form.values.detach());
    IValue result;
    frame.op->call(args.data(), args.size(), &result, 1);
    frame.results[0] = IValue(self);
    return;
  }
  if (!form.isCoo()) {
    frame.results[0] = IValue(withCompressedValues(self, applied(frame, form.values)));
    return;
  }
  const Coordinates c = kKinship == Kinship::Linear ? coordinatesOf(op.c_str(), self)
                                                    : coalesce(coordinatesOf(op.c_str(), self));
  frame.results[0] = IValue(toTensor(withValues(c, applied(frame, c.values))));
}
constexpr Kernel kLinear = &onValues<Kinship::Linear>;
constexpr Kernel kPointwise = &onValues<Kinship::Pointwise>;

template <Kernel kKernel>
void compressedOnly(CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor();
  if (isSparseCoo(self)) refuseLayout(std::string(frame.op->schema().name()).c_str(), self);
  kKernel(frame);
}
template <Kernel kKernel>
void cooOnly(CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor();
  if (!isSparseCoo(self)) refuseLayout(std::string(frame.op->schema().name()).c_str(), self);
  kKernel(frame);
}

void power(CallFrame& frame) {
  const Scalar exponent = Scalar::fromIValue(frame.args[1]);
  WICK_CHECK(exponent.toDouble() != 0,
             "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor "
             "dense");
  cooOnly<kPointwise>(frame);
}

void unchanged(CallFrame& frame) {
  frame.results[0] = frame.args[0];
}

// ---- sums ----

// -1, 0 or 1: how the place of an entry of `a` compares with that of one of `b`.
int compareAt(const Coordinates& a, int64_t i, const Coordinates& b, int64_t j) {
  for (int64_t d = 0; d < a.sparseDim(); ++d) {
    const int64_t x = a.row(d)[i], y = b.row(d)[j];
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

Tensor scaled(const Tensor& values, const Scalar& alpha) {
  if (!alpha.isComplex() && alpha.toDouble() == 1) return values;
  return ops::mulScalar(values, alpha).to(values.dtype());
}

// Both lists are walked at once; where they meet an entry of either is joined.
Coordinates joined(const Coordinates& a, const Coordinates& b) {
  Positions a_at, b_at;
  Coordinates out;
  Positions from;  // number of the entry, those of `b` behind those of `a`
  int64_t i = 0, j = 0, n = 0;
  const int64_t a_count = a.count(), b_count = b.count();
  Pace pace;
  while (i < a_count || j < b_count) {
    pace.step(a.sparseDim() + 1);
    const int order = i == a_count ? 1 : j == b_count ? -1 : compareAt(a, i, b, j);
    from.push_back(order <= 0 ? i : a_count + j);
    if (order <= 0) {
      a_at.push_back(n);
      ++i;
    }
    if (order >= 0) {
      b_at.push_back(n);
      ++j;
    }
    ++n;
  }
  const Tensor all = ops::cat(std::vector<Tensor>{a.indices, b.indices}, int64_t{1});
  DimVector value_sizes(a.values.sizes());
  value_sizes[0] = n;
  out.indices = ops::indexSelect(all, int64_t{1}, indexTensor(from, DimVector{n})).contiguous();
  out.values = Tensor::zeros(value_sizes, a.dtype());
  out.sizes = a.sizes;
  addRows(out.values, a.inner(), a_at, a.values);
  addRows(out.values, b.inner(), b_at, b.values);
  out.coalesced = a.coalesced && b.coalesced;
  return out;
}

void checkSameSizes(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(std::ranges::equal(a.sizes(), b.sizes()),
             "{}: expected 'self' and 'other' to have same size, but {} != {}", op,
             formatInts(a.sizes()), formatInts(b.sizes()));
}

Tensor sumOf(const char* op, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const DType dtype = commonDType(self, other);
  WICK_CHECK(isIntegral(dtype, true) ? isIntegral(alpha.dtype(), true) : true,
             "For integral input tensors, argument alpha must not be a floating point number.");
  if (self.kind() == TensorKind::Dense) {
    checkSameSizes(op, self, other);
    Tensor result = self.to(dtype).clone(MemoryFormat::Contiguous);
    const Coordinates c = toDType(expandedOf(op, other), dtype);
    addRows(result, c.inner(), places(c), scaled(c.values, alpha));
    return result;
  }
  WICK_CHECK(other.kind() == TensorKind::Sparse,
             "{0}(sparse, dense) is not supported. Use {0}(dense, sparse) instead.", op);
  checkSameSizes(op, self, other);
  const SparseForm& a = sparseFormOf(op, self);
  const SparseForm& b = sparseFormOf(op, other);
  WICK_CHECK(a.layout == b.layout, "{}: the layouts {} and {} differ", op, layoutName(self),
             layoutName(other));
  if (!a.isCoo()) {
    if (isBlocked(a.layout)) refuseLayout(op, self);
    Coordinates x = toDType(expandedOf(op, self), dtype), y = toDType(expandedOf(op, other), dtype);
    y.values = scaled(y.values, alpha).contiguous();
    return compress(op, joined(coalesce(x), coalesce(y)), a.layout, kOne);
  }
  WICK_CHECK(a.sparse_dim == b.sparse_dim,
             "{}: expected 'self' and 'other' to have same number of sparse dimensions, got {} and "
             "{}",
             op, a.sparse_dim, b.sparse_dim);
  const Coordinates x = toDType(coordinatesOf(op, self), dtype);
  Coordinates y = toDType(coordinatesOf(op, other), dtype);
  y.values = scaled(y.values, alpha).contiguous();
  return toTensor(joined(x, y));
}

Scalar negated(const Scalar& alpha) {
  if (alpha.isComplex()) return Scalar(-alpha.to<std::complex<double>>());
  if (isFloating(alpha.dtype())) return Scalar(-alpha.toDouble());
  return Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(alpha.toInt())));
}

Tensor addScaled(const Tensor& self, const Tensor& other, Scalar alpha) {
  return sumOf("add", self, other, alpha);
}
Tensor sub(const Tensor& self, const Tensor& other, Scalar alpha) {
  return sumOf("sub", self, other, negated(alpha));
}
void refuseNumber(CallFrame& frame) {
  throwRuntimeError("{0}(sparse, dense) is not supported. Use {0}(dense, sparse) instead.",
                    frame.op->schema().name());
}

// In place: a dense tensor is written, a sparse one takes over the result.
Tensor written(const char* op, const Tensor& self, const Tensor& result) {
  WICK_CHECK(canCast(result.dtype(), self.dtype()),
             "{}: result type {} can't be cast to the desired output type {}", op,
             toString(result.dtype()), toString(self.dtype()));
  WICK_CHECK(std::ranges::equal(self.sizes(), result.sizes()),
             "{}: the output of shape {} does not match the broadcast shape {}", op,
             formatInts(self.sizes()), formatInts(result.sizes()));
  if (self.kind() == TensorKind::Dense) {
    WICK_CHECK(self.storage()->writable(), "{}: the destination's memory is read-only", op);
    self.copyFrom(result.kind() == TensorKind::Sparse ? toDense(expandedOf(op, result)) : result);
    return self;
  }
  Tensor own = result;
  if (result.dtype() != self.dtype()) {
    own = ops::toDType(result, self.dtype());
  }
  self.impl()->takeOver(*own.impl());
  return self;
}
Tensor addInto(const Tensor& self, const Tensor& other, Scalar alpha) {
  return written("add_", self, addScaled(self, other, alpha));
}
Tensor subInto(const Tensor& self, const Tensor& other, Scalar alpha) {
  return written("sub_", self, sub(self, other, alpha));
}

// ---- products ----

// The entries of `c` times the elements of a dense tensor at the same places.
Coordinates timesDense(const char* op, const Coordinates& c, const Tensor& dense) {
  WICK_CHECK(std::ranges::equal(broadcastShapes(c.sizes, dense.sizes()), c.sizes),
             "{}: a dense tensor of sizes {} cannot be broadcast to sparse sizes {}", op,
             formatInts(dense.sizes()), formatInts(c.sizes));
  const Tensor expanded = dense.expand(c.sizes);
  std::vector<Tensor> at;
  for (int64_t d = 0; d < c.sparseDim(); ++d) at.push_back(c.indices.select(0, d));
  const Tensor picked = at.empty() ? expanded.unsqueeze(0) : ops::index(expanded, at);
  return withValues(c, ops::mul(c.values, picked.to(c.dtype())));
}

Tensor product(const Tensor& self, const Tensor& other) {
  const DType dtype = commonDType(self, other);
  const bool self_sparse = self.kind() == TensorKind::Sparse;
  const bool both = self_sparse && other.kind() == TensorKind::Sparse;
  const Tensor& one = self_sparse ? self : other;
  const SparseForm& form = sparseFormOf("mul", one);
  if (!both) {
    const Tensor& dense = self_sparse ? other : self;
    if (dense.dim() == 0) {
      if (!form.isCoo()) {
        return withCompressedValues(one, ops::mul(form.values.to(dtype), dense.to(dtype)));
      }
      const Coordinates c = toDType(coordinatesOf("mul", one), dtype);
      return toTensor(withValues(c, ops::mul(c.values, dense.to(dtype))));
    }
    const Coordinates c = timesDense("mul", toDType(expandedOf("mul", one), dtype), dense);
    if (form.isCoo()) return toTensor(c);
    if (isBlocked(form.layout)) refuseLayout("mul", one);
    return compress("mul", c, form.layout, kOne);
  }
  if (self.dim() == 0 || other.dim() == 0) {
    const Tensor& number = self.dim() == 0 ? self : other;
    const Tensor& rest = self.dim() == 0 ? other : self;
    return product(rest, toDense(expandedOf("mul", number)));
  }
  const SparseForm& second = sparseFormOf("mul", other);
  WICK_CHECK(form.layout == second.layout && !isBlocked(form.layout),
             "mul: not available for tensors of layouts {} and {}", layoutName(self),
             layoutName(other));
  WICK_CHECK(std::ranges::equal(self.sizes(), other.sizes()),
             "mul operands have incompatible sizes {} and {}", formatInts(self.sizes()),
             formatInts(other.sizes()));
  WICK_CHECK(dtype != DType::Bool, "\"mul_out_sparse\" not implemented for 'Bool'");
  WICK_CHECK(form.sparse_dim == second.sparse_dim,
             "mul: the numbers of sparse dimensions, {} and {}, differ", form.sparse_dim,
             second.sparse_dim);
  const Coordinates a = coalesce(toDType(expandedOf("mul", self), dtype));
  const Coordinates b = coalesce(toDType(expandedOf("mul", other), dtype));
  Positions a_at, b_at;
  Pace pace;
  for (int64_t i = 0, j = 0; i < a.count() && j < b.count();) {
    pace.step(a.sparseDim() + 1);
    const int order = compareAt(a, i, b, j);
    if (order == 0) {
      a_at.push_back(i);
      b_at.push_back(j);
    }
    i += order <= 0 ? 1 : 0;
    j += order >= 0 ? 1 : 0;
  }
  Coordinates left = entries(a, a_at);
  left.coalesced = true;
  const Coordinates both_have = withValues(left, ops::mul(left.values, entries(b, b_at).values));
  if (form.isCoo()) return toTensor(both_have);
  return compress("mul", both_have, form.layout, kOne);
}
Tensor productInto(const Tensor& self, const Tensor& other) {
  return written("mul_", self, product(self, other));
}

// ---- quotients ----

Tensor quotient(const char* op, const Tensor& self, const Tensor& other,
                const std::optional<std::string>& mode, bool floor_divide) {
  WICK_CHECK(
      self.kind() == TensorKind::Sparse && other.kind() == TensorKind::Dense && other.dim() == 0,
      "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {} for "
      "divisor)",
      formatInts(other.sizes()));
  if (!isSparseCoo(self)) refuseLayout(op, self);
  static const OperatorHandle kMode{"aten::div", "Tensor_mode"};
  static const OperatorHandle kFloor{"aten::floor_divide", ""};
  Coordinates c = coordinatesOf(op, self);
  if (mode || floor_divide) c = coalesce(c);
  // A zero-dim divisor counts for less than the values, which have dimensions.
  Tensor values = floor_divide ? kFloor(c.values, other)
                  : mode       ? kMode(c.values, other, *mode)
                               : ops::div(c.values, other);
  return toTensor(withValues(c, values));
}
Tensor div(const Tensor& self, const Tensor& other) {
  return quotient("div", self, other, std::nullopt, false);
}
Tensor divMode(const Tensor& self, const Tensor& other, std::optional<std::string> mode) {
  return quotient("div", self, other, mode, false);
}
Tensor floorDivide(const Tensor& self, const Tensor& other) {
  return quotient("floor_divide", self, other, std::nullopt, true);
}

void divNumber(CallFrame& frame) {
  cooOnly<kLinear>(frame);
}
void roundedDivision(CallFrame& frame) {
  cooOnly<kPointwise>(frame);
}

constexpr KindKernel kPointwiseKernels[] = {
    {"aten::abs", kPointwise},
    {"aten::asin", kPointwise},
    {"aten::asinh", kPointwise},
    {"aten::atan", kPointwise},
    {"aten::atanh", kPointwise},
    {"aten::ceil", kPointwise},
    {"aten::erf", kPointwise},
    {"aten::erfinv", kPointwise},
    {"aten::expm1", kPointwise},
    {"aten::floor", kPointwise},
    {"aten::frac", kPointwise},
    {"aten::isinf", kPointwise},
    {"aten::isnan", kPointwise},
    {"aten::isneginf", kPointwise},
    {"aten::isposinf", kPointwise},
    {"aten::log1p", kPointwise},
    {"aten::nan_to_num", &cooOnly<kPointwise>},
    {"aten::relu", kPointwise},
    {"aten::round", kPointwise},
    {"aten::sgn", kPointwise},
    {"aten::sign", kPointwise},
    {"aten::signbit", kPointwise},
    {"aten::sin", kPointwise},
    {"aten::sinh", kPointwise},
    {"aten::sqrt", kPointwise},
    {"aten::square", &cooOnly<kPointwise>},
    {"aten::tan", kPointwise},
    {"aten::tanh", kPointwise},
    {"aten::trunc", kPointwise},
    {"aten::neg", kLinear},
    {"aten::deg2rad", kLinear},
    {"aten::rad2deg", kLinear},
    {"aten::angle", &compressedOnly<kPointwise>},
    {"aten::conj", kLinear},
    {"aten::real", kLinear},
    {"aten::conj_physical", kLinear},
    {"aten::pow.Tensor_Scalar", &power},
    {"aten::fill.Scalar", &compressedOnly<kPointwise>},
    {"aten::normal_", &compressedOnly<kPointwise>},
    {"aten::positive", &unchanged},
    {"aten::resolve_conj", &unchanged},
    {"aten::resolve_neg", &unchanged},
    {"aten::alias", &unchanged},
    {"aten::add.Tensor", WICK_KERNEL(addScaled)},
    {"aten::add_.Tensor", WICK_KERNEL(addInto)},
    {"aten::add.Scalar", &refuseNumber},
    {"aten::sub.Tensor", WICK_KERNEL(sub)},
    {"aten::sub_.Tensor", WICK_KERNEL(subInto)},
    {"aten::sub.Scalar", &refuseNumber},
    {"aten::mul.Tensor", WICK_KERNEL(product)},
    {"aten::mul_.Tensor", WICK_KERNEL(productInto)},
    {"aten::mul.Scalar", kLinear},
    {"aten::div.Tensor", WICK_KERNEL(div)},
    {"aten::div.Scalar", &divNumber},
    {"aten::div.Tensor_mode", WICK_KERNEL(divMode)},
    {"aten::div.Scalar_mode", &roundedDivision},
    {"aten::floor_divide", WICK_KERNEL(floorDivide)},
    {"aten::floor_divide.Scalar", &roundedDivision},
};
const RegisterKindKernels kPointwiseKernelsRegistered(TensorKind::Sparse, kPointwiseKernels);

}  // namespace

}  // namespace wick::ops::sparse
