// How samples move with the parameters of their distributions.
#include <cmath>

#include "codegen/scalar/special_functions.h"
#include "core/budget.h"
#include "core/error.h"
#include "runtime/ops/boxing.h"

namespace wick::autograd {

namespace {

// d x / d shape of a sample x of the gamma distribution: less the derivative of its distribution
// function P(shape, x) with respect to the shape, over the density. With
// P = x^a e^-x / Gamma(a + 1) * sum r_n, r_n = x^n / ((a + 1) … (a + n)), the quotient is
// x / a * sum r_n (log x - digamma(a + n + 1)), in which nothing underflows.
double gammaSlope(double shape, double x) {
  if (!(shape > 0) || !(x > 0) || !std::isfinite(shape) || !std::isfinite(x)) return std::nan("");
  const double log_x = std::log(x);
  double psi = math::digamma(shape + 1), term = 1, sum = 0;
  Pace pace;
  for (double n = 1;; ++n) {
    const double part = term * (log_x - psi);
    sum += part;
    // Terms fall once n exceeds x - shape.
    if (shape + n > x && std::fabs(part) <= 1e-17 * std::fabs(sum)) break;
    if (!std::isfinite(sum)) return std::nan("");
    term *= x / (shape + n);
    psi += 1 / (shape + n);
    if (term == 0) break;
    pace.step();
  }
  return -x / shape * sum;
}

Tensor standardGammaGrad(const Tensor& self, const Tensor& output) {
  const char* op = "_standard_gamma_grad";
  WICK_CHECK(isFloating(self.dtype()) && self.dtype() == output.dtype(),
             "{}: expected two floating point tensors of one dtype, got {} and {}", op,
             self.describe(), output.describe());
  WICK_CHECK(std::ranges::equal(self.sizes(), output.sizes()),
             "{}: expected tensors of one shape, got {} and {}", op, self.describe(),
             output.describe());
  const Tensor shapes = self.to(DType::Double).contiguous();
  const Tensor samples = output.to(DType::Double).contiguous();
  Tensor out = Tensor::empty(self.sizes(), DType::Double);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data<double>()[i] = gammaSlope(shapes.data<double>()[i], samples.data<double>()[i]);
  }
  return out.to(self.dtype());
}

constexpr OperatorRecord kKernelsSamplesRecords[] = {
    {"aten::_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
     WICK_KERNEL(standardGammaGrad)},
};
const RegisterOperators kKernelsSamplesRegistered(kKernelsSamplesRecords);

}  // namespace

}  // namespace wick::autograd
