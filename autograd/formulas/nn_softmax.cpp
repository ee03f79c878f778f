// Softmax, its logarithm, gated units, and the losses of classes.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnSoftmaxHelpers[] = {
    {"softmax_gradient", R"(
def softmax_gradient(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    return (grad - (grad * result).sum([dim], keepdim=True)) * result
)"},
    {"log_softmax_gradient", R"(
def log_softmax_gradient(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    return grad - result.exp() * grad.sum([dim], keepdim=True)
)"},
    {"glu_gradient", R"(
def glu_gradient(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    half = self.size(dim) // 2
    value = self.narrow(dim, 0, half)
    gate = torch.sigmoid(self.narrow(dim, half, half))
    return torch.cat([grad * gate, grad * value * gate * (1 - gate)], dim)
)"},
    // The gradient of one element's loss.
    {"loss_share", R"(
def loss_share(grad: Tensor, reduction: int, count: int) -> Tensor:
    return grad / count if reduction == 1 else grad
)"},
    {"multi_margin_gradient", R"(
def multi_margin_gradient(grad: Tensor, self: Tensor, target: Tensor, p: number, margin: number, weight: Optional[Tensor], reduction: int) -> Tensor:
    x = self.reshape([1, 1]) if self.dim() == 0 else self.reshape([-1, self.size(-1)])
    t = target.reshape([-1, 1])
    z = x - x.gather(1, t) + margin
    own = torch.arange(x.size(1), device=x.device).unsqueeze(0) == t
    slope = torch.ones_like(z) if float(p) == 1.0 else 2 * z
    if weight is not None:
        slope = slope * weight.index_select(0, target.reshape([-1])).unsqueeze(1)
    slope = torch.where((z > 0) & ~own, slope, 0.0) / x.size(1)
    slope = slope - torch.where(own, slope.sum([1], keepdim=True), 0.0)
    each = grad.reshape([-1, 1]) if reduction == 0 else loss_share(grad, reduction, x.size(0))
    return (slope * each).reshape(self.size())
)"},
    // Labels are listed up to the first negative entry.
    {"multilabel_margin_gradient", R"(
def multilabel_margin_gradient(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    x = self.reshape([1, 1]) if self.dim() == 0 else self.reshape([-1, self.size(-1)])
    listed = torch.cumprod((target >= 0).to(torch.long), -1).reshape(x.size())
    labels = target.reshape(x.size()) * listed
    wanted = torch.zeros(x.size(), dtype=torch.long, device=x.device).scatter_add(1, labels, listed) > 0
    z = 1 - x.gather(1, labels).unsqueeze(2) + x.unsqueeze(1)
    active = (z > 0) & (listed > 0).unsqueeze(2) & ~wanted.unsqueeze(1)
    counts = active.to(x.dtype)
    slope = counts.sum([1]).scatter_add(1, labels, -counts.sum([2])) / x.size(1)
    each = grad.reshape([-1, 1]) if reduction == 0 else loss_share(grad, reduction, x.size(0))
    return (slope * each).reshape(self.size())
)"},
    {"ctc_loss_made", R"(
def ctc_loss_made(log_probs: Tensor, targets: Tensor, input_lengths: List[int], target_lengths: List[int], blank: int, reduction: int, zero_infinity: bool) -> Tensor:
    single = log_probs.dim() == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    t = targets.unsqueeze(0) if single and targets.dim() == 1 else targets
    losses = torch._ctc_loss(x, t, input_lengths, target_lengths, blank, zero_infinity)[0]
    if reduction == 1:
        lengths = torch.tensor(target_lengths, dtype=losses.dtype, device=losses.device).clamp_min(1)
        return (losses / lengths).mean()
    if reduction == 2:
        return losses.sum()
    return losses.squeeze(0) if single else losses
)"},
    {"list_of_lengths", R"(
def list_of_lengths(t: Tensor) -> List[int]:
    return [int(n) for n in t.reshape([-1])]
)"},
};

constexpr FormulaText kNnSoftmaxFormulas[] = {
    {"aten::softmax.int, aten::special_softmax, aten::_softmax",
     "self: softmax_gradient(grad, result, dim)"},
    {"aten::log_softmax.int, aten::special_log_softmax, aten::_log_softmax",
     "self: log_softmax_gradient(grad, result, dim)"},
    {"aten::_masked_softmax", "self: softmax_gradient(grad, result, -1 if dim is None else dim)"},
    {"aten::_softmax_backward_data", R"(
grad_output: softmax_gradient(grad, output, dim)
output: grad * (grad_output - (grad_output * output).sum([dim], keepdim=True)) - grad_output * (grad * output).sum([dim], keepdim=True)
)"},
    {"aten::_log_softmax_backward_data", R"(
grad_output: grad - (grad * output.exp()).sum([dim], keepdim=True)
output: -grad * output.exp() * grad_output.sum([dim], keepdim=True)
)"},
    {"aten::glu", "self: glu_gradient(grad, self, dim)"},

    {"aten::nll_loss, aten::nll_loss2d, aten::nll_loss_nd", R"(
self: torch.ops.wick.nll_loss_gradient(grad, self_size, target, weight, reduction, ignore_index)
)"},
    {"aten::nll_loss_forward, aten::nll_loss2d_forward", R"(
results 0
self: torch.ops.wick.nll_loss_gradient(grad0, self_size, target, weight, reduction, ignore_index)
)"},
    {"wick::nll_loss_gradient",
     "grad_output: torch.nll_loss_nd(grad, target, weight, reduction, ignore_index)"},
    {"aten::cross_entropy_loss", "others"},
    {"aten::multi_margin_loss",
     "self: multi_margin_gradient(grad, self, target, p, margin, weight, reduction)"},
    {"aten::multilabel_margin_loss",
     "self: multilabel_margin_gradient(grad, self, target, reduction)"},
    {"aten::multilabel_margin_loss_forward", R"(
results 0
self: multilabel_margin_gradient(grad0, self, target, reduction)
)"},
    {"aten::ctc_loss.IntList",
     "return ctc_loss_made(log_probs, targets, input_lengths, target_lengths, blank, reduction, "
     "zero_infinity)"},
    {"aten::ctc_loss.Tensor",
     "return ctc_loss_made(log_probs, targets, list_of_lengths(input_lengths), "
     "list_of_lengths(target_lengths), blank, reduction, zero_infinity)"},
    {"aten::_ctc_loss", R"(
results 0
log_probs: torch.ops.wick.ctc_gradient(grad0, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
)"},
    {"aten::_ctc_loss.Tensor", R"(
results 0
log_probs: torch.ops.wick.ctc_gradient(grad0, log_probs, targets, list_of_lengths(input_lengths), list_of_lengths(target_lengths), blank, zero_infinity)
)"},
};
const RegisterFormulas kNnSoftmaxRegistered(kNnSoftmaxFormulas, kNnSoftmaxHelpers);

}  // namespace

}  // namespace wick::autograd
