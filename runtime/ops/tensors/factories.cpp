// Operators that make tensors of one value or of none: empty, zeros, ones, full, their _like and
// new_ forms, and filling in place.

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/sparse_form.h"
#include "core/wrapped.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/tensors/pinning.h"

namespace wick::ops {

namespace {

Tensor makeEmpty(IntSpan size, const TensorOptions& o, std::optional<MemoryFormat> format = {}) {
  return Tensor::empty(size, o.dtypeOr(defaultDType()), deviceFor(o.device),
                       format.value_or(MemoryFormat::Contiguous));
}

Tensor empty(DimVector size, TensorOptions o, std::optional<MemoryFormat> format) {
  return cleared(makeEmpty(size, o, format));
}
Tensor emptyOut(DimVector size, std::optional<MemoryFormat>, const Tensor& out) {
  markWritten("empty", out);
  resizeTo(out, size);
  return out;
}
Tensor emptyStrided(DimVector size, DimVector stride, TensorOptions o) {
  return cleared(
      Tensor::emptyStrided(size, stride, o.dtypeOr(defaultDType()), deviceFor(o.device)));
}
Tensor zeros(DimVector size, TensorOptions o) {
  return Tensor::zeros(size, o.dtypeOr(defaultDType()), deviceFor(o.device));
}
Tensor ones(DimVector size, TensorOptions o) {
  return fillWith(makeEmpty(size, o), 1);
}
Tensor full(DimVector size, Scalar value, TensorOptions o) {
  o.dtype = o.dtypeOr(value.dtype());
  return fillWith(makeEmpty(size, o), value);
}
Tensor scalarTensor(Scalar value, TensorOptions o) {
  return fillWith(Tensor::empty({}, o.dtypeOr(defaultDType()), deviceFor(o.device)), value);
}

Tensor likeOf(const Tensor& self, const TensorOptions& o, std::optional<MemoryFormat> format) {
  const DType dtype = o.dtypeOr(self.dtype());
  const MemoryFormat kept = format.value_or(MemoryFormat::Preserve);
  if (!o.device || placeOf(*o.device) == self.device()) return Tensor::emptyLike(self, dtype, kept);
  if (kept != MemoryFormat::Preserve) return Tensor::empty(self.sizes(), dtype, *o.device, kept);
  return Tensor::emptyStrided(self.sizes(), denseStrides(self.sizes(), self.strides()), dtype,
                              *o.device);
}
Tensor emptyLike(const Tensor& self, TensorOptions o, std::optional<MemoryFormat> format) {
  return cleared(likeOf(self, o, format));
}
Tensor zerosLike(const Tensor& self, TensorOptions o, std::optional<MemoryFormat> format) {
  return fillWith(likeOf(self, o, format), 0);
}
Tensor onesLike(const Tensor& self, TensorOptions o, std::optional<MemoryFormat> format) {
  return fillWith(likeOf(self, o, format), 1);
}
Tensor fullLike(const Tensor& self, Scalar value, TensorOptions o,
                std::optional<MemoryFormat> format) {
  return fillWith(likeOf(self, o, format), value);
}

TensorOptions inherit(const Tensor& self, TensorOptions o) {
  o.dtype = o.dtypeOr(self.dtype());
  o.device = o.deviceOr(self.device());
  return o;
}
Tensor newEmpty(const Tensor& self, DimVector size, TensorOptions o) {
  return cleared(makeEmpty(size, inherit(self, o)));
}
Tensor newEmptyStrided(const Tensor& self, DimVector size, DimVector stride, TensorOptions o) {
  return emptyStrided(size, stride, inherit(self, o));
}
Tensor newZeros(const Tensor& self, DimVector size, TensorOptions o) {
  return zeros(size, inherit(self, o));
}
Tensor newOnes(const Tensor& self, DimVector size, TensorOptions o) {
  return ones(size, inherit(self, o));
}
Tensor newFull(const Tensor& self, DimVector size, Scalar value, TensorOptions o) {
  return full(size, value, inherit(self, o));
}

// fill and zero: the base form returns a filled tensor, the in-place form fills self.
Tensor filled(const Tensor& self, const Scalar& value, Out out) {
  const Tensor& t = out && out.tensor->isSame(self) ? self : Tensor::emptyLike(self, self.dtype());
  return fillWith(t, value);
}
Tensor fillScalar(const Tensor& self, Scalar value, Out out) {
  return filled(self, value, out);
}
Tensor fillTensor(const Tensor& self, const Tensor& value, Out out) {
  WICK_CHECK(value.dim() == 0,
             "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
             value.dim());
  const Tensor& t = out && out.tensor->isSame(self) ? self : Tensor::emptyLike(self, self.dtype());
  return fillWith(t, Scalar::fromIValue(IValue(value)));
}
Tensor zero(const Tensor& self, Out out) {
  return filled(self, 0, out);
}

// What torch.nn.init calls: the same as fill_, outside of gradients.
Tensor fillPlainly(const Tensor& self, double value) {
  markWritten("_no_grad_fill_", self);
  return fillWith(self, value);
}
Tensor zeroPlainly(const Tensor& self) {
  markWritten("_no_grad_zero_", self);
  return fillWith(self, 0);
}
Tensor dimArange(const Tensor& like, int64_t dim) {
  return ops::arange(Scalar(like.size(dim)));
}

Tensor fillDiagonal(const Tensor& self, Scalar value, bool wrap) {
  markWritten("fill_diagonal_", self);
  WICK_CHECK(self.dim() >= 2, "dimensions must larger than 1");
  int64_t length = self.sizes()[0];
  int64_t step = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    WICK_CHECK(self.dim() == 2 || self.sizes()[d] == length,
               "all dimensions of input must be of equal length");
    length = std::min(length, self.sizes()[d]);
    step = wrappedSum(step, self.strides()[d]);
  }
  if (self.numel() == 0) return self;
  fillWith(self.asStrided(DimVector{length}, DimVector{step}, self.offset()), value);
  int64_t rows = self.sizes()[0];
  int64_t cols = self.sizes()[1];
  // A tall matrix continues its diagonal one row below each full square.
  if (wrap && self.dim() == 2 && rows > cols + 1) {
    int64_t period = cols + 1;
    Pace pace;
    for (int64_t top = period; top < rows; top += period) {
      pace.step(period);
      int64_t n = std::min(cols, rows - top);
      fillWith(
          self.asStrided(DimVector{n}, DimVector{step}, self.offset() + top * self.strides()[0]),
          value);
    }
  }
  return self;
}

// Where an option asks for a sparse layout, an empty tensor of that; else the kernel. `kSizes` and
// `kLayout` are arguments: the sizes, or a tensor that has them, and the layout, behind the dtype.
template <size_t kSizes, size_t kLayout, Kernel kKernel>
void withLayouts(CallFrame& frame) {
  const IValue& layout = frame.args[kLayout];
  if (!layout.isInt() || !isSparseLayout(layout.toInt())) {
    kKernel(frame);
    return;
  }
  const IValue& like = frame.args[kSizes];
  const DimVector sizes = like.isTensor() ? DimVector(like.toTensor().sizes()) : like.toDims();
  DType dtype = frame.args[0].isTensor() ? frame.args[0].toTensor().dtype() : defaultDType();
  if (!frame.args[kLayout - 1].isNone()) dtype = boxing::toDType(frame.args[kLayout - 1]);
  frame.results[0] =
      IValue(makeEmptySparse(static_cast<SparseLayout>(layout.toInt()), sizes, dtype));
}

#define WICK_OPTIONS \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

const OperatorRecord kFactoriesRecords[] = {
    {"aten::empty.memory_format(int[] size, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<4, &withLayouts<0, 2, WICK_KERNEL(empty)>>), kNotDifferentiable | kSavesNothing,
     shapes::made},
    {"aten::empty.out(int[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
     "Tensor(a!)",
     WICK_KERNEL(emptyOut), kNotDifferentiable | kSavesNothing},
    {"aten::empty_strided(int[] size, int[] stride, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(emptyStrided)>), kNotDifferentiable, shapes::made},
    {"aten::zeros(int[] size, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, &withLayouts<0, 2, WICK_KERNEL(zeros)>>), kNotDifferentiable | kSavesNothing,
     shapes::made},
    {"aten::zeros.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kNotDifferentiable | kNeutralMixed | kSavesNothing},
    {"aten::_efficientzerotensor(int[] size, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(zeros)>), kNotDifferentiable, shapes::made},
    {"aten::ones(int[] size, *, " WICK_OPTIONS ") -> Tensor", (&pinning<4, WICK_KERNEL(ones)>),
     kNotDifferentiable | kSavesNothing, shapes::made},
    {"aten::ones.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kNotDifferentiable | kNeutralMixed | kSavesNothing},
    {"aten::full(int[] size, Scalar fill_value, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(full)>), kNotDifferentiable | kSavesNothing, shapes::filled},
    {"aten::full.out(int[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kNotDifferentiable | kNeutralMixed | kSavesNothing},
    {"aten::scalar_tensor(Scalar s, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<4, WICK_KERNEL(scalarTensor)>), kNotDifferentiable, shapes::numberTensor},
    {"aten::empty_like(Tensor self, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<4, WICK_KERNEL(emptyLike)>), kNotDifferentiable | kNeutralMixed, shapes::madeLike},
    {"aten::zeros_like(Tensor self, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<4, &withLayouts<0, 2, WICK_KERNEL(zerosLike)>>),
     kNotDifferentiable | kNeutral | kSavesNothing, shapes::madeLike},
    {"aten::ones_like(Tensor self, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<4, WICK_KERNEL(onesLike)>), kNotDifferentiable | kNeutral | kSavesNothing,
     shapes::madeLike},
    {"aten::full_like(Tensor self, Scalar fill_value, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<5, WICK_KERNEL(fullLike)>), kNotDifferentiable | kNeutral | kSavesNothing,
     shapes::madeLike},
    {"aten::new_empty(Tensor self, int[] size, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, &withLayouts<1, 3, WICK_KERNEL(newEmpty)>>), kNotDifferentiable | kNeutralMixed,
     shapes::newLike},
    {"aten::new_empty_strided(Tensor self, int[] size, int[] stride, *, " WICK_OPTIONS
     ") -> Tensor",
     (&pinning<6, WICK_KERNEL(newEmptyStrided)>), kNotDifferentiable | kNeutralMixed,
     shapes::newLike},
    {"aten::new_zeros(Tensor self, int[] size, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, &withLayouts<1, 3, WICK_KERNEL(newZeros)>>), kNotDifferentiable | kNeutralMixed,
     shapes::newLike},
    {"aten::new_ones(Tensor self, int[] size, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(newOnes)>), kNotDifferentiable | kNeutralMixed, shapes::newLike},
    {"aten::new_full(Tensor self, int[] size, Scalar fill_value, *, " WICK_OPTIONS ") -> Tensor",
     (&pinning<6, WICK_KERNEL(newFull)>), kNotDifferentiable | kNeutralMixed, shapes::newLike},
    {"aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", WICK_KERNEL(fillScalar),
     kInplaceForm | kOutForm | kNeutral | kSavesNothing, shapes::likeFirst},
    {"aten::fill.Tensor(Tensor self, Tensor value) -> Tensor", WICK_KERNEL(fillTensor),
     kInplaceForm | kOutForm | kNeutralMixed | kSavesNothing, shapes::likeFirst},
    {"aten::zero(Tensor self) -> Tensor", WICK_KERNEL(zero),
     kInplaceForm | kOutForm | kNeutral | kSavesNothing, shapes::likeFirst},
    {"aten::_no_grad_fill_(Tensor(a!) tensor, float val) -> Tensor(a!)", WICK_KERNEL(fillPlainly),
     kNotDifferentiable | kNeutral},
    {"aten::_no_grad_zero_(Tensor(a!) tensor) -> Tensor(a!)", WICK_KERNEL(zeroPlainly),
     kNotDifferentiable | kNeutral},
    {"aten::_dim_arange(Tensor like, int dim) -> Tensor", WICK_KERNEL(dimArange),
     kNotDifferentiable | kNeutralMixed},
    {"aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
     WICK_KERNEL(fillDiagonal), kNeutral},
};

const RegisterOperators kFactoriesRegistered(kFactoriesRecords);

}  // namespace

}  // namespace wick::ops
