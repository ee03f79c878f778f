#include "autograd/region_composites.h"

#include <map>
#include <mutex>

#include "frontend/compile.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/dead_code_elimination.h"
#include "passes/pipeline.h"

namespace wick::autograd {

namespace {

struct Composite {
  const char* op;
  const char* source;  // defines `composite`
  bool (*fits)(const wick::Node& node);
  bool (*joins)(const wick::Node& node);  // null: always
};

// Targets are classes, one a sample, or probabilities of all classes.
bool crossEntropyFits(const wick::Node& node) {
  const TensorFacts* self = factsOf(argumentOf(node, "self"));
  const TensorFacts* target = factsOf(argumentOf(node, "target"));
  const auto smoothing = floatOf(argumentOf(node, "label_smoothing"));
  const auto ignored = intOf(argumentOf(node, "ignore_index"));
  if (!self || !target || !self->dtype || !target->dtype || !self->sizes || !target->sizes ||
      self->sizes->empty() || !smoothing || !ignored || *smoothing < 0 || *smoothing > 1) {
    return false;
  }
  if (isFloating(*target->dtype)) {
    const Size classes = (*self->sizes)[self->sizes->size() == 1 ? 0 : 1];
    return *ignored < 0 && *self->sizes == *target->sizes && classes && *classes > 0;
  }
  return *target->dtype == DType::Long && target->sizes->size() + 1 == self->sizes->size();
}

bool isFloatingTensor(const Value* v) {
  const TensorFacts* facts = v ? factsOf(v) : nullptr;
  return facts && facts->dtype && facts->sizes && isFloating(*facts->dtype);
}

bool dropoutJoins(const wick::Node& node) {
  const auto p = floatOf(argumentOf(node, "p"));
  return p && *p >= 0 && *p <= 1;
}
bool dropoutFits(const wick::Node& node) {
  return isFloatingTensor(argumentOf(node, "input")) && boolOf(argumentOf(node, "train"));
}

bool attentionJoins(const wick::Node& node) {
  const Value* mask = argumentOf(node, "attn_mask");
  const Value* scale = argumentOf(node, "scale");
  const std::optional<bool> causal = boolOf(argumentOf(node, "is_causal")),
                            grouped = boolOf(argumentOf(node, "enable_gqa"));
  const auto dropout = floatOf(argumentOf(node, "dropout_p"));
  const bool has_mask = mask && mask->type()->kind() != TypeKind::None;
  return mask && scale && constantOf(scale) && causal && grouped && !*grouped && dropout &&
         *dropout == 0 && !(*causal && has_mask);
}
bool attentionFits(const wick::Node& node) {
  for (const char* name : {"query", "key", "value"}) {
    const Value* v = argumentOf(node, name);
    if (!isFloatingTensor(v) || factsOf(v)->sizes->size() < 2) return false;
    // On the CPU 16 bits are computed in float32, which the tape does.
    const TensorFacts& facts = *factsOf(v);
    if (isReducedFloat(*facts.dtype) && !(facts.device && facts.device->isCuda())) return false;
  }
  const Value* mask = argumentOf(node, "attn_mask");
  if (mask->type()->kind() == TypeKind::None) return true;
  const TensorFacts* facts = factsOf(mask);
  return facts && facts->dtype && facts->sizes &&
         (*facts->dtype == DType::Bool || isFloating(*facts->dtype));
}

constexpr Composite kComposites[] = {
    // Draws as the tape does (dropout_made).
    {"aten::dropout", R"(
def composite(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0:
        out = input
    elif p == 1:
        out = input * torch.zeros_like(input)
    else:
        out = input * (torch.bernoulli(input.detach(), 1 - p) / (1 - p))
    return out
)",
     dropoutFits, dropoutJoins},
    // As attention_made.
    {"aten::scaled_dot_product_attention", R"(
def composite(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, scale: Optional[float], enable_gqa: bool) -> Tensor:
    q = query
    if scale is not None:
        q = q * (scale * float(query.size(-1)) ** 0.5)
    root = float(query.size(-1)) ** -0.25
    scores = torch.matmul(q * root, (key * root).transpose(-2, -1))
    if is_causal:
        allowed = torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool).tril()
        scores = scores.masked_fill(torch.logical_not(allowed), float('-inf'))
    elif attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(torch.logical_not(attn_mask), float('-inf'))
        else:
            scores = scores + attn_mask
    return torch.matmul(torch.softmax(scores, -1), value)
)",
     attentionFits, attentionJoins},
    {"aten::cross_entropy_loss", R"(
def per_class(weight: Tensor, rank: int) -> Tensor:
    return weight.view([-1] if rank == 1 else [1, -1] + [1] * (rank - 2))

def of_probabilities(log_p: Tensor, target: Tensor, weight: Optional[Tensor], dim: int, reduction: int, smoothing: float) -> Tensor:
    t = target
    if smoothing > 0:
        t = target * (1 - smoothing) + smoothing / float(log_p.size(dim))
    terms = log_p * t
    if weight is not None:
        terms = terms * per_class(weight, log_p.dim())
    if reduction == 0:
        out = -terms.sum([dim])
    else:
        out = -terms.sum()
        if reduction == 1:
            out = out / float(log_p.numel() // log_p.size(dim))
    return out

# What the smoothed part of the targets costs.
def smoothed(log_p: Tensor, target: Tensor, weight: Optional[Tensor], dim: int, reduction: int, ignore_index: int) -> Tensor:
    terms = log_p
    if weight is not None:
        terms = log_p * per_class(weight, log_p.dim())
    ignored = target == ignore_index
    out = (-terms.sum([dim])).masked_fill(ignored, 0.0)
    if reduction != 0:
        out = out.sum()
    if reduction == 1:
        if weight is None:
            out = out / (target.numel() - ignored.sum())
        else:
            picked = weight.gather(0, target.masked_fill(ignored, 0).flatten())
            out = out / picked.masked_fill(ignored.flatten(), 0.0).sum()
    return out

def composite(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, label_smoothing: float) -> Tensor:
    dim = 0 if self.dim() == 1 else 1
    log_p = torch.log_softmax(self, dim)
    if target.is_floating_point():
        out = of_probabilities(log_p, target, weight, dim, reduction, label_smoothing)
    else:
        out = torch.nll_loss_nd(log_p, target, weight, reduction, ignore_index)
        if label_smoothing > 0:
            rest = smoothed(log_p, target, weight, dim, reduction, ignore_index)
            out = out * (1 - label_smoothing) + rest * (label_smoothing / float(self.size(dim)))
    return out
)",
     crossEntropyFits, nullptr},
};

const Composite* find(const Operator& op) {
  for (const Composite& c : kComposites) {
    if (op.schema().name() == c.op && op.form() == Operator::Form::Base) return &c;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const Graph> compositeGraph(const Operator& op) {
  const Composite* composite = find(op);
  if (!composite) return nullptr;
  static std::mutex mutex;
  static std::map<const Composite*, std::shared_ptr<const Graph>> made;
  std::lock_guard lock(mutex);
  std::shared_ptr<const Graph>& graph = made[composite];
  if (!graph) {
    const auto unit = compileSource(composite->source, fmt::format("<{}>", composite->op));
    std::shared_ptr<Graph> copy = unit->findFunction("__torch__.composite")->graph()->copy();
    runPhase(*copy, Phase::Required);
    withStackFor(*copy, [&] { eliminateDeadCode(*copy); });
    graph = std::move(copy);
  }
  return graph;
}

bool compositeJoins(const wick::Node& node) {
  const Operator* op = node.maybeOperator();
  const Composite* composite = op ? find(*op) : nullptr;
  return composite && (!composite->joins || composite->joins(node));
}

bool compositeFits(const wick::Node& node) {
  const Operator* op = node.maybeOperator();
  const Composite* composite = op ? find(*op) : nullptr;
  return composite && composite->fits(node);
}

}  // namespace wick::autograd
