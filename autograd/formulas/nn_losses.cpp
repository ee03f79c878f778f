// Losses that compare a tensor with a target of the same kind.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnLossesHelpers[] = {
    {"smooth_l1_slope", R"(
def smooth_l1_slope(x: Tensor, beta: float) -> Tensor:
    if beta == 0:
        return x.sgn()
    return torch.where(x.abs() < beta, x / beta, x.sgn())
)"},
    {"huber_slope", R"(
def huber_slope(x: Tensor, delta: float) -> Tensor:
    return torch.where(x.abs() < delta, x, x.sgn() * delta)
)"},
    {"logits_slope", R"(
def logits_slope(self: Tensor, target: Tensor, pos_weight: Optional[Tensor]) -> Tensor:
    if pos_weight is None:
        return torch.sigmoid(self) - target
    t = pos_weight * target
    return (t + 1 - target) * torch.sigmoid(self) - t
)"},
    {"logits_target_slope", R"(
def logits_target_slope(self: Tensor, pos_weight: Optional[Tensor]) -> Tensor:
    if pos_weight is None:
        return -self
    return torch.nn.functional.logsigmoid(-self) - pos_weight * torch.nn.functional.logsigmoid(self)
)"},
    // Small norms count as eps, but change as they are.
    {"norm_at_least", R"(
def norm_at_least(x: Tensor, dim: int, eps: float) -> Tensor:
    square = (x * x).sum([dim], keepdim=True)
    return torch.sqrt(square + (square.clamp_min(eps * eps) - square).detach())
)"},
    {"cosine_similarity_made", R"(
def cosine_similarity_made(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    dtype = torch.result_type(x1, x2)
    pair = torch.broadcast_tensors([x1.to(dtype), x2.to(dtype)])
    a = pair[0]
    b = pair[1]
    return (a / norm_at_least(a, dim, eps) * (b / norm_at_least(b, dim, eps))).sum([dim])
)"},
};

constexpr FormulaText kNnLossesFormulas[] = {
    {"aten::mse_loss", R"(
let difference = self - target
let slope = 2 * difference * loss_share(grad, reduction, difference.numel())
self: slope
target: -slope
)"},
    {"aten::l1_loss", R"(
let difference = self - target
let slope = difference.sgn() * loss_share(grad, reduction, difference.numel())
self: slope
target: -slope
)"},
    {"aten::smooth_l1_loss", R"(
let difference = self - target
let slope = smooth_l1_slope(difference, beta) * loss_share(grad, reduction, difference.numel())
self: slope
target: -slope
)"},
    {"aten::huber_loss", R"(
let difference = self - target
let slope = huber_slope(difference, delta) * loss_share(grad, reduction, difference.numel())
self: slope
target: -slope
)"},
    {"aten::binary_cross_entropy", R"(
let share = weighted(loss_share(grad, reduction, self.numel()), weight)
self: share * (self - target) / torch.clamp_min((1 - self) * self, 1e-12)
target: share * (torch.log1p(-self) - torch.log(self))
)"},
    {"aten::binary_cross_entropy_with_logits", R"(
let share = weighted(loss_share(grad, reduction, (self - target).numel()), weight)
self: share * logits_slope(self, target, pos_weight)
target: share * logits_target_slope(self, pos_weight)
)"},
    {"aten::soft_margin_loss", R"(
let z = torch.exp(-target * self)
self: loss_share(grad, reduction, z.numel()) * -target * z / (1 + z)
)"},
    {R"(aten::kl_div, aten::poisson_nll_loss, aten::hinge_embedding_loss, aten::margin_ranking_loss,
         aten::cosine_embedding_loss, aten::pairwise_distance, aten::triplet_margin_loss)",
     "others"},
    {"aten::cosine_similarity", "return cosine_similarity_made(x1, x2, dim, eps)"},
};
const RegisterFormulas kNnLossesRegistered(kNnLossesFormulas, kNnLossesHelpers);

}  // namespace

}  // namespace wick::autograd
