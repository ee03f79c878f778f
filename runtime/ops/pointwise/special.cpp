// Operators of torch.special that have no other name.
#include "codegen/scalar/mathematics.h"
#include "runtime/ops/pointwise/common.h"

namespace wick::ops {

namespace {

using namespace scalar;

#define WICK_SPECIAL_X(name, Def)                                                             \
  {                                                                                           \
    "aten::special_" name "(Tensor x) -> Tensor", WICK_KERNEL(unary<Def>), kOutForm, nullptr, \
        &kScalar<Def>                                                                         \
  }
#define WICK_POLYNOMIAL_OPS(name, Def)                                                      \
  WICK_BINARY_OP("special_" name "(Tensor x, Tensor n) -> Tensor", Def,                     \
                 kOutForm | kNotDifferentiable),                                            \
      WICK_BINARY_NUMBER_OP("special_" name ".n_scalar(Tensor x, Scalar n) -> Tensor", Def, \
                            kOutForm | kNotDifferentiable),                                 \
      WICK_NUMBER_BINARY_OP("special_" name ".x_scalar(Scalar x, Tensor n) -> Tensor", Def, \
                            kOutForm | kNotDifferentiable)
#define WICK_TWO_OPERAND_OPS(name, Def)                                                           \
  WICK_BINARY_OP("special_" name "(Tensor self, Tensor other) -> Tensor", Def, kOutForm),         \
      WICK_BINARY_NUMBER_OP("special_" name ".other_scalar(Tensor self, Scalar other) -> Tensor", \
                            Def, kOutForm),                                                       \
      WICK_NUMBER_BINARY_OP("special_" name ".self_scalar(Scalar self, Tensor other) -> Tensor",  \
                            Def, kOutForm)

const OperatorRecord kSpecialRecords[] = {
    WICK_UNARY_OP("special_entr", Entr, kOutForm),
    WICK_UNARY_OP("special_erfcx", Erfcx, kOutForm),
    WICK_UNARY_OP("special_ndtr", Ndtr, kOutForm),
    WICK_UNARY_OP("special_ndtri", Ndtri, kOutForm),
    WICK_UNARY_OP("special_log_ndtr", LogNdtr, kOutForm),
    WICK_UNARY_OP("special_i0e", I0e, kOutForm),
    WICK_UNARY_OP("special_i1", I1, kOutForm),
    WICK_UNARY_OP("special_i1e", I1e, kOutForm),
    WICK_UNARY_OP("special_bessel_j0", BesselJ0, kOutForm),
    WICK_UNARY_OP("special_bessel_j1", BesselJ1, kOutForm),
    WICK_UNARY_OP("special_bessel_y0", BesselY0, kOutForm),
    WICK_UNARY_OP("special_bessel_y1", BesselY1, kOutForm),
    WICK_UNARY_OP("special_modified_bessel_i0", ModifiedI0, kOutForm),
    WICK_UNARY_OP("special_modified_bessel_i1", ModifiedI1, kOutForm),
    WICK_UNARY_OP("special_modified_bessel_k0", K0, kOutForm),
    WICK_UNARY_OP("special_modified_bessel_k1", K1, kOutForm),
    WICK_SPECIAL_X("scaled_modified_bessel_k0", K0e),
    WICK_SPECIAL_X("scaled_modified_bessel_k1", K1e),
    WICK_SPECIAL_X("spherical_bessel_j0", SphericalBesselJ0),
    WICK_SPECIAL_X("airy_ai", AiryAi),
    WICK_TWO_OPERAND_OPS("xlogy", Xlogy),
    WICK_TWO_OPERAND_OPS("xlog1py", Xlog1py),
    WICK_TWO_OPERAND_OPS("zeta", Zeta),
    WICK_POLYNOMIAL_OPS("chebyshev_polynomial_t", ChebyshevT),
    WICK_POLYNOMIAL_OPS("chebyshev_polynomial_u", ChebyshevU),
    WICK_POLYNOMIAL_OPS("chebyshev_polynomial_v", ChebyshevV),
    WICK_POLYNOMIAL_OPS("chebyshev_polynomial_w", ChebyshevW),
    WICK_POLYNOMIAL_OPS("shifted_chebyshev_polynomial_t", ShiftedChebyshevT),
    WICK_POLYNOMIAL_OPS("shifted_chebyshev_polynomial_u", ShiftedChebyshevU),
    WICK_POLYNOMIAL_OPS("shifted_chebyshev_polynomial_v", ShiftedChebyshevV),
    WICK_POLYNOMIAL_OPS("shifted_chebyshev_polynomial_w", ShiftedChebyshevW),
    WICK_POLYNOMIAL_OPS("hermite_polynomial_h", HermiteH),
    WICK_POLYNOMIAL_OPS("hermite_polynomial_he", HermiteHe),
    WICK_POLYNOMIAL_OPS("laguerre_polynomial_l", LaguerreL),
    WICK_POLYNOMIAL_OPS("legendre_polynomial_p", LegendreP),
};

const RegisterOperators kSpecialRegistered(kSpecialRecords);

}  // namespace

}  // namespace wick::ops
