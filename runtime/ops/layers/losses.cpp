// Losses that are formulas over other operators.
#include "runtime/ops/layers/losses.h"

#include <cmath>

#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/reduce/norms.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {

Tensor reduceLoss(const char* op, const Tensor& loss, int64_t reduction) {
  WICK_CHECK(reduction >= 0 && reduction <= 2, "{}: {} is no kind of reduction", op, reduction);
  if (reduction == kReductionMean) return ops::mean(loss);
  if (reduction == kReductionSum) return ops::sum(loss);
  return loss;
}

void checkMultiMargin(const char* op, const Tensor& self, const Tensor& target, const Scalar& p) {
  WICK_CHECK(p.toDouble() == 1 || p.toDouble() == 2, "only p == 1 and p == 2 supported");
  WICK_CHECK(self.dim() <= 2 && self.numel() > 0 && target.dim() <= 1 &&
                 target.numel() == (self.dim() == 2 ? self.size(0) : 1),
             "{}: inconsistent target size, expected {} for input {}", op,
             self.dim() == 2 ? self.size(0) : 1, formatInts(self.sizes()));
  WICK_CHECK(target.dtype() == DType::Long, "{}: expected scalar type Long", op);
}

NllGradient nllGradientOf(const char* op, const Tensor& grad, const DimVector& sizes,
                          const Tensor& target, int64_t reduction) {
  WICK_CHECK(!sizes.empty(), "{}: expected sizes of one or more dimensions", op);
  const bool single = sizes.size() == 1;
  const int64_t count = checkedNumel(sizes), losses = target.numel();
  const NllGradient all{single ? 1 : sizes[0], single ? sizes[0] : sizes[1],
                        target.to(DType::Long).contiguous(), widened(grad).contiguous()};
  WICK_CHECK(all.classes == 0 || count / all.classes == losses,
             "{}: a target {} does not fit sizes {}", op, target.describe(), formatInts(sizes));
  WICK_CHECK(all.grad.numel() == (reduction == kReductionNone ? losses : 1),
             "{}: a gradient {} does not fit {} losses", op, grad.describe(), losses);
  return all;
}

namespace {

const OperatorHandle kLe{"aten::le", "Scalar"};
const OperatorHandle kRsub{"aten::rsub", "Scalar"};
const OperatorHandle kXlogy{"aten::xlogy", "Tensor"};
const OperatorHandle kMinimum{"aten::minimum", ""};
const OperatorHandle kZerosLike{"aten::zeros_like", ""};

Tensor square(const Tensor& t) {
  return ops::mul(t, t);
}

Tensor mseLoss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduceLoss("mse_loss", square(ops::sub(self, target)), reduction);
}

Tensor l1Loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduceLoss("l1_loss", ops::abs(ops::sub(self, target)), reduction);
}

Tensor smoothL1Loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  WICK_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return l1Loss(self, target, reduction);
  Tensor z = ops::abs(ops::sub(self, target));
  Tensor near = ops::divScalar(ops::mulScalar(square(z), 0.5), beta);
  Tensor far = ops::addScalar(z, -0.5 * beta);
  return reduceLoss("smooth_l1_loss", ops::where(ops::ltScalar(z, beta), near, far), reduction);
}

Tensor huberLoss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  WICK_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  Tensor z = ops::abs(ops::sub(self, target));
  Tensor near = ops::mulScalar(square(z), 0.5);
  Tensor far = ops::mulScalar(ops::addScalar(z, -0.5 * delta), delta);
  return reduceLoss("huber_loss", ops::where(kLe(z, delta), near, far), reduction);
}

Tensor weighted(const Tensor& loss, const Tensor& weight) {
  return weight.defined() ? ops::mul(loss, weight) : loss;
}

Tensor binaryCrossEntropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction) {
  WICK_CHECK(DimVector(self.sizes()) == DimVector(target.sizes()),
             "binary_cross_entropy: Using a target size ({}) that is different to the input size "
             "({}) is deprecated. Please ensure they have the same size.",
             formatInts(target.sizes()), formatInts(self.sizes()));
  Tensor inside = ops::all(ops::logicalAnd(ops::geScalar(self, 0), kLe(self, 1)));
  WICK_CHECK(inside.item<bool>(), "all elements of input should be between 0 and 1");
  Tensor log_not = ops::clampMin(ops::log1p(ops::neg(self)), -100);
  Tensor log_yes = ops::clampMin(ops::log(self), -100);
  Tensor loss = ops::sub(ops::mul(ops::addScalar(target, -1), log_not), ops::mul(target, log_yes));
  return reduceLoss("binary_cross_entropy", weighted(loss, weight), reduction);
}

Tensor bceWithLogits(const Tensor& self, const Tensor& target, const Tensor& weight,
                     const Tensor& pos_weight, int64_t reduction) {
  Tensor negated = ops::neg(self);
  Tensor shift = ops::clampMin(negated, 0);
  Tensor log_sum = ops::add(
      ops::log(ops::add(ops::exp(ops::neg(shift)), ops::exp(ops::sub(negated, shift)))), shift);
  if (pos_weight.defined()) {
    Tensor log_weight = ops::addScalar(ops::mul(ops::addScalar(pos_weight, -1), target), 1);
    log_sum = ops::mul(log_weight, log_sum);
  }
  Tensor loss = ops::add(ops::mul(kRsub(target, 1), self), log_sum);
  return reduceLoss("binary_cross_entropy_with_logits", weighted(loss, weight), reduction);
}

Tensor klDiv(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  WICK_CHECK(!isIntegral(self.dtype(), true) && !isIntegral(target.dtype(), true),
             "kl_div: Integral inputs not supported.");
  Tensor loss = log_target ? ops::mul(ops::exp(target), ops::sub(target, self))
                           : ops::sub(kXlogy(target, target), ops::mul(target, self));
  return reduceLoss("kl_div", loss, reduction);
}

Tensor poissonNllLoss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                      double eps, int64_t reduction) {
  Tensor loss = log_input ? ops::sub(ops::exp(input), ops::mul(target, input))
                          : ops::sub(input, ops::mul(target, ops::log(ops::addScalar(input, eps))));
  if (full) {
    Tensor stirling = ops::add(ops::sub(ops::mul(target, ops::log(target)), target),
                               ops::mulScalar(ops::log(ops::mulScalar(target, 2 * M_PI)), 0.5));
    loss = ops::add(loss, ops::maskedFill(stirling, kLe(target, 1), 0));
  }
  return reduceLoss("poisson_nll_loss", loss, reduction);
}

Tensor hingeEmbeddingLoss(const Tensor& self, const Tensor& target, double margin,
                          int64_t reduction) {
  Tensor zeros = kZerosLike(self);
  // The margin takes the dtype of the inputs, integers too.
  Tensor margins = Tensor::emptyLike(self, self.dtype());
  Tensor beyond = ops::sub(ops::fillWith(margins, margin), self);
  Tensor far = ops::where(ops::neScalar(target, 1), ops::clampMin(beyond, 0), zeros);
  Tensor near = ops::where(ops::neScalar(target, -1), self, zeros);
  return reduceLoss("hinge_embedding_loss", ops::add(far, near), reduction);
}

Tensor marginRankingLoss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                         int64_t reduction) {
  Tensor difference = ops::mul(ops::neg(target), ops::sub(x1, x2));
  return reduceLoss("margin_ranking_loss", ops::clampMin(ops::addScalar(difference, margin), 0),
                    reduction);
}

Tensor softMarginLoss(const Tensor& self, const Tensor& target, int64_t reduction) {
  Tensor loss = ops::log(ops::addScalar(ops::exp(ops::mul(ops::neg(target), self)), 1));
  return reduceLoss("soft_margin_loss", loss, reduction);
}

Tensor cosineEmbeddingLoss(const Tensor& x1, const Tensor& x2, const Tensor& target, double margin,
                           int64_t reduction) {
  const char* op = "cosine_embedding_loss";
  WICK_CHECK(target.dim() <= 1,
             "{}: 0D or 1D target tensor expected, multi-target not supported, got {}D", op,
             target.dim());
  // The second input may have other dimensions, as long as they are broadcast to those of the first one.
  WICK_CHECK(x1.dim() == target.dim() + 1,
             "{}: {}D target tensor expects {}D input tensors, but found inputs with sizes {} and "
             "{}.",
             op, target.dim(), target.dim() + 1, formatInts(x1.sizes()), formatInts(x2.sizes()));
  constexpr double kEpsilon = 1e-12;
  DimVector dim{target.dim()};
  Tensor product = ops::sumDims(ops::mul(x1, x2), dim);
  Tensor m1 = ops::addScalar(ops::sumDims(square(x1), dim), kEpsilon);
  Tensor m2 = ops::addScalar(ops::sumDims(square(x2), dim), kEpsilon);
  Tensor cos = ops::div(product, ops::sqrt(ops::mul(m1, m2)));
  Tensor zeros = kZerosLike(cos);
  Tensor alike = ops::where(ops::eqScalar(target, 1), kRsub(cos, 1), zeros);
  Tensor apart =
      ops::where(ops::eqScalar(target, -1), ops::clampMin(ops::addScalar(cos, -margin), 0), zeros);
  return reduceLoss(op, ops::add(alike, apart), reduction);
}

Tensor pairwiseDistance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  int64_t last = std::max(x1.dim(), x2.dim()) - 1;
  Tensor difference = ops::addScalar(ops::sub(x1, x2), eps);
  return ops::vectorNorm(difference, p, DimVector{last}, keepdim);
}

Tensor tripletMarginLoss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                         double margin, double p, double eps, bool swap, int64_t reduction) {
  WICK_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(),
             "triplet_margin_loss: The anchor, positive, and negative tensors are expected to have "
             "the same number of dimensions, but got: anchor {}D, positive {}D, and negative {}D "
             "inputs",
             anchor.dim(), positive.dim(), negative.dim());
  Tensor near = pairwiseDistance(anchor, positive, p, eps, false);
  Tensor far = pairwiseDistance(anchor, negative, p, eps, false);
  if (swap) far = kMinimum(far, pairwiseDistance(positive, negative, p, eps, false));
  Tensor loss = ops::clampMin(ops::sub(ops::addScalar(near, margin), far), 0);
  return reduceLoss("triplet_margin_loss", loss, reduction);
}

Tensor cosineSimilarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  DType dtype = promoteTypes(x1.dtype(), x2.dtype());
  WICK_CHECK(isFloating(dtype),
             "expected common dtype to be floating point, yet common dtype is {}",
             scalarTypeName(dtype));
  DimVector sizes = broadcastShapes(x1.sizes(), x2.sizes());
  auto unit = [&](const Tensor& t) {
    Tensor x = ops::expand(t.dtype() == dtype ? t : t.to(dtype), sizes);
    return ops::div(x, ops::clampMin(ops::vectorNorm(x, 2, DimVector{dim}, true), eps));
  };
  return ops::sumDims(ops::mul(unit(x1), unit(x2)), DimVector{dim});
}

#define WICK_TARGET "(Tensor self, Tensor target, "

constexpr OperatorRecord kLossesRecords[] = {
    {"aten::mse_loss" WICK_TARGET "int reduction=1) -> Tensor", WICK_KERNEL(mseLoss),
     kOutForm | kCastFull | kEagerCastFull, ops::shapes::loss},
    {"aten::l1_loss" WICK_TARGET "int reduction=1) -> Tensor", WICK_KERNEL(l1Loss),
     kNeutralLast | kCastFull | kEagerCastFull, ops::shapes::loss},
    {"aten::smooth_l1_loss" WICK_TARGET "int reduction=1, float beta=1.0) -> Tensor",
     WICK_KERNEL(smoothL1Loss), kOutForm | kCastFull | kEagerCastFull, ops::shapes::loss},
    {"aten::huber_loss" WICK_TARGET "int reduction=1, float delta=1.0) -> Tensor",
     WICK_KERNEL(huberLoss), kOutForm | kEagerCastFull, ops::shapes::loss},
    {"aten::binary_cross_entropy" WICK_TARGET "Tensor? weight=None, int reduction=1) -> Tensor",
     WICK_KERNEL(binaryCrossEntropy),
     kOutForm | kOutSame | kRaisesByElements | kCastUnsafe | kEagerCastFull, ops::shapes::loss},
    {"aten::binary_cross_entropy_with_logits" WICK_TARGET
     "Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
     WICK_KERNEL(bceWithLogits), kCastFull | kEagerCastFull, ops::shapes::loss},
    {"aten::kl_div" WICK_TARGET "int reduction=1, *, bool log_target=False) -> Tensor",
     WICK_KERNEL(klDiv), kCastFull | kEagerCastFull, ops::shapes::loss},
    {"aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, "
     "int reduction) -> Tensor",
     WICK_KERNEL(poissonNllLoss), kEagerCastFull},
    {"aten::hinge_embedding_loss" WICK_TARGET "float margin=1.0, int reduction=1) -> Tensor",
     WICK_KERNEL(hingeEmbeddingLoss), kNeutral | kCastFull | kEagerCastFull},
    {"aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
     "reduction=1) -> Tensor",
     WICK_KERNEL(marginRankingLoss), kCastFull | kEagerCastFull},
    {"aten::soft_margin_loss" WICK_TARGET "int reduction=1) -> Tensor", WICK_KERNEL(softMarginLoss),
     kOutForm | kOutSame | kCastFull | kEagerCastFull, ops::shapes::loss},
    {"aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
     "int reduction=1) -> Tensor",
     WICK_KERNEL(cosineEmbeddingLoss), kNeutral | kCastFull | kEagerCastFull},
    {"aten::pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool "
     "keepdim=False) -> Tensor",
     WICK_KERNEL(pairwiseDistance), kNeutralLast},
    {"aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
     "float p=2.0, float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
     WICK_KERNEL(tripletMarginLoss), kNeutral | kCastFull | kEagerCastFull},
    {"aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
     WICK_KERNEL(cosineSimilarity), kNeutralLast | kCastFull},
};

const RegisterOperators kLossesRegistered(kLossesRecords);

}  // namespace
}  // namespace wick
