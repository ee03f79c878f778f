// Operators on complex numbers: parts, conjugates, construction.
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "runtime/ops/pointwise/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

using namespace scalar;

// The real (part 0) or imaginary (part 1) numbers of a complex tensor, in place.
Tensor partView(const Tensor& self, int64_t part) {
  DimVector strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  return Tensor::fromStorage(self.storage(), toRealType(self.dtype()), self.sizes(), strides,
                             self.offset() * 2 + part);
}
Tensor real(const Tensor& self) {
  return isComplex(self.dtype()) ? partView(self, 0) : self;
}
Tensor imag(const Tensor& self) {
  WICK_CHECK(isComplex(self.dtype()),
             "imag is not implemented for tensors with non-complex dtypes.");
  return partView(self, 1);
}
Tensor conj(const Tensor& self) {
  return isComplex(self.dtype()) ? unary<Conj>(self, Out{}) : self;
}
Tensor conjPhysical(const Tensor& self, Out out) {
  return isComplex(self.dtype()) ? unary<Conj>(self, out) : self;
}

void checkParts(const Tensor& a, const Tensor& b) {
  bool fine = isFloating(a.dtype()) && isFloating(b.dtype());
  WICK_CHECK(fine, "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
             scalarTypeName(a.dtype()), scalarTypeName(b.dtype()));
  WICK_CHECK(a.dtype() == b.dtype(),
             "Expected object of scalar type {} but got scalar type {} for second argument",
             scalarTypeName(a.dtype()), scalarTypeName(b.dtype()));
}
template <class Def>
Tensor fromParts(const Tensor& a, const Tensor& b, Out out) {
  checkParts(a, b);
  WICK_CHECK(!out || out.tensor->dtype() == toComplexType(a.dtype()),
             "Expected object of scalar type {} but got scalar type {} for argument 'out'",
             scalarTypeName(toComplexType(a.dtype())),
             scalarTypeName(out ? out.tensor->dtype() : a.dtype()));
  return binary<Def>(a, b, out);
}

Tensor negated(const Tensor& self) {
  return unary<scalar::Neg>(self, Out{});
}

const OperatorRecord kComplexRecords[] = {
    {"aten::real(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(real), kNoFlags, shapes::realParts},
    {"aten::imag(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(imag), kNoFlags, shapes::realParts},
    {"aten::conj(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(conj), kNoFlags, shapes::likeFirst},
    {"aten::_conj(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(conj), kNoFlags, shapes::likeFirst},
    {"aten::_neg_view(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(negated), kNoFlags,
     shapes::likeFirst},
    {"aten::conj_physical(Tensor self) -> Tensor", WICK_KERNEL(conjPhysical),
     kInplaceForm | kOutForm | kMayReturnArgument, shapes::likeFirst},
    {"aten::_conj_physical(Tensor self) -> Tensor", WICK_KERNEL(conjPhysical), kOutForm,
     shapes::likeFirst},
    WICK_UNARY_OP("angle", Angle, kOutForm),
    {"aten::complex(Tensor real, Tensor imag) -> Tensor", WICK_KERNEL(fromParts<MakeComplex>),
     kOutForm | kOutSame},
    {"aten::polar(Tensor abs, Tensor angle) -> Tensor", WICK_KERNEL(fromParts<Polar>),
     kOutForm | kOutSame | kNeutralLast | kEagerCastFull},
};

const RegisterOperators kComplexRegistered(kComplexRecords);

}  // namespace

}  // namespace wick::ops
