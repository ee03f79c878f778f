// Pointwise operators, and those that make tensors of none.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kPointwiseHelpers[] = {
    {"clamped", R"(
def clamped(grad: Tensor, self: Tensor, min: Optional[number], max: Optional[number]) -> Tensor:
    out = grad
    if min is not None:
        out = torch.where(self >= min, out, 0)
    if max is not None:
        out = torch.where(self <= max, out, 0)
    return out
)"},
    {"within", R"(
def within(self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    inside = torch.ones_like(self, dtype=torch.bool)
    if min is not None:
        inside = inside & (self >= min)
    if max is not None:
        inside = inside & (self <= max)
    return inside
)"},
    {"clamped_min", R"(
def clamped_min(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Optional[Tensor]:
    if min is None:
        return None
    if max is None:
        return torch.where(self < min, grad, 0)
    return torch.where((min < max) & (self < min), grad, 0)
)"},
    {"clamped_max", R"(
def clamped_max(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Optional[Tensor]:
    if max is None:
        return None
    if min is None:
        return torch.where(self > max, grad, 0)
    return torch.where((self > max) | (max < min), grad, 0)
)"},
    {"angle_gradient", R"(
def angle_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if self.is_complex():
        size = torch.abs(self)
        return torch.where(self == 0, 0.0, grad * (self / (size * size)) * 1j)
    return torch.zeros_like(grad)
)"},
    {"mvlgamma_gradient", R"(
def mvlgamma_gradient(grad: Tensor, self: Tensor, p: int) -> Tensor:
    shifts = torch.arange(0.5 - p / 2.0, 0.5, 0.5, dtype=self.dtype, device=self.device)
    return grad * torch.digamma(self.unsqueeze(-1) + shifts).sum(-1)
)"},
    {"i1_gradient", R"(
def i1_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    eps = (2.220446049250313e-16 if self.dtype == torch.float64 else 1.1920928955078125e-07)
    large = torch.abs(self) > eps
    safe = torch.where(large, self, eps)
    return grad * torch.where(large, torch.i0(safe) - result / safe, 0.5)
)"},
    {"i1e_gradient", R"(
def i1e_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    eps = (2.220446049250313e-16 if self.dtype == torch.float64 else 1.1920928955078125e-07)
    large = torch.abs(self) > eps
    safe = torch.where(large, self, eps)
    return grad * torch.where(large, torch.special.i0e(safe) - result * (safe.sgn() + 1 / safe), 0.5)
)"},
    {"logit_gradient", R"(
def logit_gradient(grad: Tensor, self: Tensor, eps: Optional[float]) -> Tensor:
    slope = grad / (self * (1 - self))
    if eps is None:
        return torch.where((self >= 0) & (self <= 1), slope, float('nan'))
    return torch.where((self >= eps) & (self <= 1 - eps), slope, 0.0)
)"},
    {"pow_gradient", R"(
def pow_gradient(grad: Tensor, self: Tensor, exponent: number) -> Tensor:
    if exponent == 0:
        return torch.zeros_like(grad)
    return grad * (self.pow(exponent - 1) * exponent).conj()
)"},
    {"pow_exponent_gradient", R"(
def pow_exponent_gradient(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    if exponent.is_complex():
        flat = (self == 0) & (torch.real(exponent) >= 0)
    else:
        flat = (self == 0) & (exponent >= 0)
    return torch.where(flat, 0.0, grad * (result * torch.log(self)).conj())
)"},
    {"pow_base_gradient", R"(
def pow_base_gradient(grad: Tensor, self: number, exponent: Tensor, result: Tensor) -> Tensor:
    base = torch.scalar_tensor(self, dtype=result.dtype, device=result.device)
    return pow_exponent_gradient(grad, base, exponent, result)
)"},
    {"zero_where", R"(
def zero_where(self: Tensor, when: bool) -> Tensor:
    return self == 0 if when else torch.zeros_like(self, dtype=torch.bool)
)"},
    {"wide", R"(
def wide(t: Tensor) -> Tensor:
    return t.to(torch.complex128 if t.is_complex() else torch.float64)
)"},
    {"sgn_gradient", R"(
def sgn_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if not self.is_complex():
        return torch.zeros_like(grad)
    size = torch.abs(self)
    return torch.where(size == 0, 0.0, grad / size - torch.real(grad / result) * result / size)
)"},
    {"gelu_gradient", R"(
def gelu_gradient(grad: Tensor, self: Tensor, approximate: str) -> Tensor:
    if approximate == 'tanh':
        inner = 0.7978845608028654 * (self + 0.044715 * self * self * self)
        t = torch.tanh(inner)
        slope = 0.7978845608028654 * (1 + 3 * 0.044715 * self * self)
        return grad * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)
    cdf = 0.5 * (1 + torch.erf(self * 0.7071067811865476))
    pdf = torch.exp(-0.5 * self * self) * 0.3989422804014327
    return grad * (cdf + self * pdf)
)"},
    {"spread_weight", R"(
def spread_weight(weight: Tensor, self: Tensor) -> Tensor:
    if weight.numel() == 1 or self.dim() < 2:
        return weight.reshape([1] * self.dim()) if weight.numel() == 1 else weight
    shape = [1] * self.dim()
    shape[1] = weight.numel()
    return weight.reshape(shape)
)"},
    {"rrelu_made", R"(
def rrelu_made(self: Tensor, lower: number, upper: number, training: bool) -> Tensor:
    if training:
        # Draws the factors, which are 1 for positive elements.
        noise = torch.zeros_like(self)
        with torch.no_grad():
            torch.ops.aten.rrelu_with_noise(self.detach(), noise, lower, upper, True)
        return self * noise
    return torch.nn.functional.leaky_relu(self, (float(lower) + float(upper)) / 2)
)"},
    {"sinc_gradient", R"(
def sinc_gradient(grad: Tensor, self: Tensor) -> Tensor:
    x = self * 3.141592653589793
    under = self * self * 3.141592653589793
    return torch.where(under == 0, 0.0, grad * ((x * torch.cos(x) - torch.sin(x)) / under).conj())
)"},
    {"dropout_made", R"(
def dropout_made(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0:
        return input
    if p == 1:
        return input * torch.zeros_like(input)
    kept = torch.empty_like(input, memory_format=torch.contiguous_format).bernoulli_(1 - p).div_(1 - p)
    return input * kept
)"},
};

constexpr FormulaText kPointwiseFormulas[] = {
    {"aten::abs", "self: grad * self.sgn()"},
    {"aten::acos", "self: grad * -(1 - self * self).rsqrt().conj()"},
    {"aten::acosh", "self: grad * (self * self - 1).rsqrt().conj()"},
    {"aten::asin", "self: grad * (1 - self * self).rsqrt().conj()"},
    {"aten::asinh", "self: grad * (self * self + 1).rsqrt().conj()"},
    {"aten::atan", "self: grad / (self * self + 1).conj()"},
    {"aten::atanh", "self: grad / (1 - self * self).conj()"},
    {"aten::atan2", R"(
self: grad * other / (self * self + other * other)
other: -grad * self / (self * self + other * other)
)"},
    {R"(aten::ceil, aten::floor, aten::round, aten::round.decimals, aten::special_round,
         aten::trunc, aten::fix, aten::sign, aten::bernoulli, aten::bernoulli.p)",
     "self: torch.zeros_like(grad)"},
    {R"(aten::frac, aten::resolve_conj, aten::resolve_neg, aten::real, aten::remainder.Scalar,
         aten::fmod.Scalar)",
     "self: grad"},
    {"aten::clamp", "self: clamped(grad, self, min, max)"},
    {"aten::clamp.Tensor", R"(
self: torch.where(within(self, min, max), grad, 0)
min: clamped_min(grad, self, min, max)
max: clamped_max(grad, self, min, max)
)"},
    {"aten::clamp_min", "self: torch.where(self >= min, grad, 0)"},
    {"aten::clamp_min.Tensor", R"(
self: torch.where(self >= min, grad, 0)
min: torch.where(self < min, grad, 0)
)"},
    {"aten::clamp_max", "self: torch.where(self <= max, grad, 0)"},
    {"aten::clamp_max.Tensor", R"(
self: torch.where(self <= max, grad, 0)
max: torch.where(self > max, grad, 0)
)"},
    {"aten::conj, aten::_conj, aten::conj_physical, aten::_conj_physical", "self: grad.conj()"},
    {"aten::_neg_view", "self: -grad"},
    {"aten::imag", "self: grad * 1j if grad.is_floating_point() else grad"},
    {"aten::complex", R"(
real: torch.real(grad)
imag: torch.imag(grad)
)"},
    {"aten::polar", R"(
abs: torch.real(grad.conj() * torch.sgn(result))
angle: torch.real(grad.conj() * (result * 1j))
)"},
    {"aten::view_as_real", "self: torch.view_as_complex(grad.contiguous())"},
    {"aten::view_as_complex", "self: torch.view_as_real(grad.contiguous())"},
    {"aten::angle", "self: angle_gradient(grad, self)"},
    {"aten::copysign.Tensor", R"(
let ratio = torch.where(self == 0, 0.0, result / self)
self: grad * ratio
other: torch.zeros_like(grad)
)"},
    {"aten::copysign.Scalar", R"(
let ratio = torch.where(self == 0, 0.0, result / self)
self: grad * ratio
)"},
    {"aten::cosh", "self: grad * self.sinh().conj()"},
    {"aten::sinh", "self: grad * self.cosh().conj()"},
    {"aten::tan", "self: grad * (1 + result * result).conj()"},
    {"aten::digamma, aten::special_digamma, aten::special_psi",
     "self: grad * torch.polygamma(1, self)"},
    {"aten::lgamma, aten::special_gammaln", "self: grad * torch.digamma(self)"},
    {"aten::polygamma, aten::special_polygamma, aten::polygamma_",
     "self: grad * torch.polygamma(n + 1, self)"},
    {"aten::mvlgamma, aten::special_multigammaln", "self: mvlgamma_gradient(grad, self, p)"},
    {"aten::erf", "self: 1.1283791670955126 * torch.exp(-self * self) * grad"},
    {"aten::erfc", "self: -1.1283791670955126 * torch.exp(-self * self) * grad"},
    {"aten::erfinv", "self: 0.8862269254527580 * torch.exp(result * result) * grad"},
    {"aten::exp2", "self: grad * result.conj() * 0.6931471805599453"},
    {"aten::expm1", "self: grad * (result.conj() + 1)"},
    {"aten::log10", "self: grad / (self.conj() * 2.302585092994046)"},
    {"aten::log2", "self: grad / (self.conj() * 0.6931471805599453)"},
    {"aten::log1p", "self: grad / (self + 1).conj()"},
    {"aten::log_sigmoid", "self: grad * torch.sigmoid(-self)"},
    {"aten::logaddexp", R"(
self: grad / (1 + torch.exp(other - self)).conj()
other: grad / (1 + torch.exp(self - other)).conj()
)"},
    {"aten::logaddexp2", R"(
self: grad / (1 + torch.exp2(other - self)).conj()
other: grad / (1 + torch.exp2(self - other)).conj()
)"},
    {"aten::hypot", R"(
self: grad * (self / result)
other: grad * (other / result)
)"},
    {"aten::i0, aten::special_i0", "self: grad * torch.special.i1(self)"},
    {"aten::special_i0e", "self: grad * (torch.special.i1e(self) - self.sgn() * result)"},
    {"aten::special_i1", "self: i1_gradient(grad, self, result)"},
    {"aten::special_i1e", "self: i1e_gradient(grad, self, result)"},
    {"aten::igamma, aten::special_gammainc", R"(
other: grad * torch.exp((self - 1) * torch.log(other) - other - torch.lgamma(self))
)"},
    {"aten::igammac, aten::special_gammaincc", R"(
other: -grad * torch.exp((self - 1) * torch.log(other) - other - torch.lgamma(self))
)"},
    {"aten::lerp.Scalar", R"(
self: grad - scaled(grad, weight)
end: scaled(grad, weight)
)"},
    {"aten::lerp.Tensor", R"(
self: grad * (1 - weight).conj()
end: grad * weight.conj()
weight: grad * (end - self).conj()
)"},
    {"aten::logit, aten::special_logit", "self: logit_gradient(grad, self, eps)"},
    {"aten::pow.Tensor_Scalar, aten::pow_.Scalar", "self: pow_gradient(grad, self, exponent)"},
    {"aten::pow.Tensor_Tensor, aten::pow_.Tensor", R"(
self: torch.where(exponent == 0, 0.0, grad * (self.pow(exponent - 1) * exponent).conj())
exponent: pow_exponent_gradient(grad, self, exponent, result)
)"},
    {"aten::pow.Scalar", "exponent: pow_base_gradient(grad, self, exponent, result)"},
    {"aten::float_power.Tensor_Tensor, aten::float_power_.Tensor",
     "return torch.pow(wide(self), wide(exponent))"},
    {"aten::float_power.Tensor_Scalar, aten::float_power_.Scalar",
     "return torch.pow(wide(self), exponent)"},
    {"aten::float_power.Scalar", "return torch.pow(self, wide(exponent))"},
    {"aten::ldexp.Tensor", "return self * torch.pow(2.0, other)"},
    {"aten::reciprocal", "self: -grad * (result * result).conj()"},
    {"aten::rsqrt", "self: -0.5 * grad * result.pow(3).conj()"},
    {"aten::square", "self: grad * (2 * self).conj()"},
    {"aten::remainder.Tensor", R"(
self: grad
other: -grad * torch.div(self, other, rounding_mode='floor')
)"},
    {"aten::remainder.Scalar_Tensor", "other: -grad * torch.floor(self / other)"},
    {"aten::fmod.Tensor", R"(
self: grad
other: -grad * torch.div(self, other, rounding_mode='trunc')
)"},
    {"aten::div.Tensor_mode", R"(
self: grad / other.conj() if rounding_mode is None else torch.zeros_like(grad)
other: -grad * ((self / other) / other).conj() if rounding_mode is None else torch.zeros_like(grad)
)"},
    {"aten::div.Scalar_mode", R"(
self: grad / other if rounding_mode is None else torch.zeros_like(grad)
)"},
    {"aten::sgn", "self: sgn_gradient(grad, self, result)"},
    {"aten::silu", R"(
let s = torch.sigmoid(self)
self: grad * (s * (1 + self * (1 - s))).conj()
)"},
    {"aten::mish", R"(
let t = torch.tanh(torch.nn.functional.softplus(self))
self: grad * (t + self * torch.sigmoid(self) * (1 - t * t))
)"},
    {"aten::hardswish", R"(
self: torch.where(self < -3, 0.0, torch.where(self <= 3, grad * (self / 3 + 0.5), grad))
)"},
    {"aten::hardsigmoid", "self: torch.where((self > -3) & (self < 3), grad / 6, 0.0)"},
    {"aten::hardtanh", "self: torch.where((self <= min_val) | (self >= max_val), 0.0, grad)"},
    {"aten::relu6", "self: torch.where((self <= 0) | (self >= 6), 0.0, grad)"},
    {"aten::leaky_relu", "self: torch.where(self > 0, grad, grad * negative_slope)"},
    {"aten::elu", R"(
self: torch.where(self <= 0, grad * (scale * alpha * input_scale) * torch.exp(self * input_scale), grad * scale)
)"},
    {"aten::selu", R"(
self: torch.where(self <= 0, grad * 1.7580993408473766 * torch.exp(self), grad * 1.0507009873554805)
)"},
    {"aten::celu", "self: torch.where(self <= 0, grad * torch.exp(self / alpha), grad)"},
    {"aten::gelu", "self: gelu_gradient(grad, self, approximate)"},
    {"aten::softplus", R"(
self: torch.where(self * beta > threshold, grad, grad * torch.sigmoid(self * beta))
)"},
    {"aten::softshrink, aten::hardshrink",
     "self: torch.where((self >= -lambd) & (self <= lambd), 0.0, grad)"},
    {"aten::threshold", "self: torch.where(self <= threshold, 0.0, grad)"},
    {"aten::prelu", R"(
return torch.where(self > 0, self, spread_weight(weight, self) * self)
)"},
    {"aten::rrelu", "return rrelu_made(self, lower, upper, training)"},
    {"aten::xlogy.Tensor, aten::special_xlogy", R"(
self: torch.xlogy(grad, other).masked_fill((self == 0) & (other <= 0), 0.0)
other: grad * self / other
)"},
    {"aten::xlogy.Scalar_Other", R"(
self: torch.xlogy(grad, other).masked_fill(zero_where(self, other <= 0), 0.0)
)"},
    {"aten::xlogy.Scalar_Self", "other: grad * self / other"},
    {"aten::special_xlog1py", R"(
self: torch.special.xlog1py(grad, other).masked_fill((self == 0) & (other <= -1), 0.0)
other: grad * self / (other + 1)
)"},
    {"aten::special_xlog1py.other_scalar", R"(
self: torch.special.xlog1py(grad, other).masked_fill(zero_where(self, other <= -1), 0.0)
)"},
    {"aten::special_xlog1py.self_scalar", "other: grad * self / (other + 1)"},
    {"aten::special_entr", "self: grad * -(1 + torch.log(self))"},
    {"aten::special_ndtri", "self: grad * 2.5066282746310002 * torch.exp(0.5 * result * result)"},
    {"aten::special_log_ndtr", R"(
self: grad / torch.special.erfcx(self * -0.7071067811865476) * 0.7978845608028654
)"},
    {"aten::special_ndtr", "self: grad * torch.exp(-0.5 * self * self) * 0.3989422804014327"},
    {"aten::special_erfcx", "self: (2.0 * self * result - 1.1283791670955126) * grad"},
    {"aten::special_zeta, aten::special_zeta.self_scalar",
     "other: grad * -self * torch.special.zeta(self + 1.0, other)"},
    {"aten::sinc, aten::special_sinc", "self: sinc_gradient(grad, self)"},
    {"aten::nan_to_num", "self: grad * torch.isfinite(self)"},
    {"aten::deg2rad", "self: grad * 0.017453292519943295"},
    {"aten::rad2deg", "self: grad * 57.29577951308232"},
    {"aten::where.self", R"(
self: torch.where(condition, grad, 0)
other: torch.where(condition, 0, grad)
)"},
    {"aten::where.ScalarSelf", "other: torch.where(condition, 0, grad)"},
    {"aten::where.ScalarOther", "self: torch.where(condition, grad, 0)"},
    {"aten::masked_fill.Scalar", "self: grad.masked_fill(mask, 0)"},
    {"aten::masked_fill.Tensor", R"(
self: grad.masked_fill(mask, 0)
value: torch.where(mask, grad, 0).sum()
)"},
    {"aten::maximum, aten::max.other", R"(
self: torch.where(self == other, grad / 2, grad).masked_fill(self < other, 0)
other: torch.where(self == other, grad / 2, grad).masked_fill(self > other, 0)
)"},
    {"aten::minimum, aten::min.other", R"(
self: torch.where(self == other, grad / 2, grad).masked_fill(self > other, 0)
other: torch.where(self == other, grad / 2, grad).masked_fill(self < other, 0)
)"},
    {"aten::fmax", R"(
let first = (self >= other) | other.isnan()
self: grad.masked_fill(~first, 0)
other: grad.masked_fill(first, 0)
)"},
    {"aten::fmin", R"(
let first = (self <= other) | other.isnan()
self: grad.masked_fill(~first, 0)
other: grad.masked_fill(first, 0)
)"},
    {"aten::frexp.Tensor", R"(
results 0
self: grad0 / torch.exp2(result1)
)"},
    {"aten::addcmul", R"(
self: grad
tensor1: grad * (tensor2 * value).conj()
tensor2: grad * (tensor1 * value).conj()
)"},
    {"aten::addcdiv", R"(
self: grad
tensor1: grad * (tensor2.reciprocal() * value).conj()
tensor2: -grad * (tensor1 * value / (tensor2 * tensor2)).conj()
)"},
    {"aten::dropout", "return dropout_made(input, p, train)"},
    {R"(aten::zeros_like, aten::ones_like, aten::empty_like, aten::full_like, aten::rand_like,
         aten::randn_like, aten::randint_like, aten::new_zeros, aten::new_ones, aten::new_full,
         aten::new_empty, aten::new_empty_strided, aten::new_tensor)",
     "none"},
    {"aten::normal_, aten::uniform_, aten::bernoulli_.float, aten::random_",
     "self: torch.zeros_like(grad)"},
    // In place they end what is written to; the logical ones do not in PyTorch.
    {R"(aten::eq_.Tensor, aten::ne_.Tensor, aten::lt_.Tensor, aten::le_.Tensor, aten::gt_.Tensor,
         aten::ge_.Tensor, aten::not_equal_.Tensor, aten::less_.Tensor, aten::less_equal_.Tensor,
         aten::greater_.Tensor, aten::greater_equal_.Tensor)",
     "self: torch.zeros_like(grad)\nother: torch.zeros_like(grad)"},
    {R"(aten::eq_.Scalar, aten::ne_.Scalar, aten::lt_.Scalar, aten::le_.Scalar, aten::gt_.Scalar,
         aten::ge_.Scalar, aten::not_equal_.Scalar, aten::less_.Scalar, aten::less_equal_.Scalar,
         aten::greater_.Scalar, aten::greater_equal_.Scalar)",
     "self: torch.zeros_like(grad)"},
};
const RegisterFormulas kPointwiseRegistered(kPointwiseFormulas, kPointwiseHelpers);

}  // namespace

}  // namespace wick::autograd
