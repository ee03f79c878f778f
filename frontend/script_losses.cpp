// torch.nn.functional: losses.
#include "frontend/script_library.h"

namespace wick {

const char* const kScriptLosses = R"script(
def _reduction(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> int:
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        reduced = True if reduce is None else reduce
        if not reduced:
            return 0
        return 1 if average else 2
    if reduction == "none":
        return 0
    elif reduction == "mean" or reduction == "elementwise_mean":
        return 1
    elif reduction == "sum":
        return 2
    raise ValueError(reduction + " is not a valid value for reduction")

def _reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == 0:
        return loss
    return loss.mean() if reduction == 1 else loss.sum()

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                          _reduction(None, None, reduction), zero_infinity)

def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
             ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch._C._nn.nll_loss_nd(input, target, weight, _reduction(size_average, reduce, reduction), ignore_index)

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Optional[bool] = None, eps: float = 1e-8, reduce: Optional[bool] = None,
                     reduction: str = "mean") -> Tensor:
    return torch.poisson_nll_loss(input, target, log_input, full, eps, _reduction(size_average, reduce, reduction))

def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    variance = var
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            variance = torch.unsqueeze(var, -1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    if bool(torch.any(variance < 0)):
        raise ValueError("var has negative entry/entries")
    variance = variance.clone()
    with torch.no_grad():
        variance.clamp_(min=eps)
    loss = 0.5 * (torch.log(variance) + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, _reduction(None, None, reduction))

def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    if reduction == "batchmean":
        total = torch.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    return torch.kl_div(input, target, _reduction(size_average, reduce, reduction), log_target=log_target)

def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                  size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    return torch._C._nn.cross_entropy_loss(input, target, weight, _reduction(size_average, reduce, reduction),
                                           ignore_index, label_smoothing)

def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                         size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                         reduction: str = "mean") -> Tensor:
    if target.size() != input.size():
        raise ValueError("Using a target size (" + str(target.size()) + ") that is different to the input size (" +
                         str(input.size()) + ") is deprecated. Please ensure they have the same size.")
    scale = weight
    if scale is not None:
        scale = scale.expand_as(target)
    return torch._C._nn.binary_cross_entropy(input, target, scale, _reduction(size_average, reduce, reduction))

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                     size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                                     reduction: str = "mean", pos_weight: Optional[Tensor] = None) -> Tensor:
    if target.size() != input.size():
        raise ValueError("Target size (" + str(target.size()) + ") must be the same as input size (" +
                         str(input.size()) + ")")
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight,
                                                  _reduction(size_average, reduce, reduction))

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                   reduce: Optional[bool] = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    return torch._C._nn.smooth_l1_loss(a, b, _reduction(size_average, reduce, reduction), beta)

def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    return torch._C._nn.huber_loss(a, b, _reduction(None, None, reduction), delta)

def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
            reduction: str = "mean") -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    return torch._C._nn.l1_loss(a, b, _reduction(size_average, reduce, reduction))

def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
             reduction: str = "mean") -> Tensor:
    a, b = torch.broadcast_tensors([input, target])
    return torch._C._nn.mse_loss(a, b, _reduction(size_average, reduce, reduction))

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                        size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                        reduction: str = "mean") -> Tensor:
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: " +
                           str(input1.size()) + ", " + str(input2.size()) + ", " + str(target.size()))
    return torch.margin_ranking_loss(input1, input2, target, margin, _reduction(size_average, reduce, reduction))

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None,
                         reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.hinge_embedding_loss(input, target, margin, _reduction(size_average, reduce, reduction))

def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                           reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch._C._nn.multilabel_margin_loss(input, target, _reduction(size_average, reduce, reduction))

def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None,
                     reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch._C._nn.soft_margin_loss(input, target, _reduction(size_average, reduce, reduction))

def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None,
                                size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                                reduction: str = "mean") -> Tensor:
    loss = -(target * torch.log_sigmoid(input) + (1 - target) * torch.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(dim=-1) / input.size(-1), _reduction(size_average, reduce, reduction))

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                          reduction: str = "mean") -> Tensor:
    return torch.cosine_embedding_loss(input1, input2, target, margin, _reduction(size_average, reduce, reduction))

def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                      reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return torch._C._nn.multi_margin_loss(input, target, p, margin, weight,
                                          _reduction(size_average, reduce, reduction))

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, size_average: Optional[bool] = None,
                        reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                     _reduction(size_average, reduce, reduction))
)script";

}  // namespace wick
