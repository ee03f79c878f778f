#include "training/objective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/value_conversions.h"
#include "frontend/compile.h"
#include "runtime/call.h"

namespace wick::training {
namespace {

constexpr int64_t kIgnored = -100;  // PyTorch's ignore_index: such targets count nowhere

constexpr const char* kSource = R"(
def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(output, target)
def nll(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.nll_loss(output, target)
def mse(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.mse_loss(output, target)
def l1(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.l1_loss(output, target)
def smooth_l1(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.smooth_l1_loss(output, target)
def bce(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy(output, target)
def bce_with_logits(output: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(output, target)

def right_classes(output: Tensor, target: Tensor):
    if target.is_floating_point():
        target = target.argmax(1)
    counted = target != -100
    right = (output.argmax(1 if output.dim() > 1 else 0) == target) & counted
    return torch.stack([right.sum(), counted.sum()])
def right_among(output: Tensor, target: Tensor, most: int):
    if target.is_floating_point():
        target = target.argmax(1)
    counted = target != -100
    dim = 1 if output.dim() > 1 else 0
    found = output.topk(min(most, output.size(dim)), dim)[1] == target.unsqueeze(dim)
    return torch.stack([(found.any(dim) & counted).sum(), counted.sum()])
def right_decisions(output: Tensor, target: Tensor, threshold: float):
    return ((output > threshold) == (target > 0.5)).sum()
)";

GraphFunction& functionNamed(const std::string& name) {
  static const std::shared_ptr<CompilationUnit> unit = compileSource(kSource, "<losses>");
  for (const auto& function : unit->functions()) {
    if (function->name() == name) return *function;
  }
  throw InternalError(__FILE__, __LINE__, "no function " + name);
}

bool isWhole(DType dtype) {
  return isIntegral(dtype, /*include_bool=*/true);
}

}  // namespace

const std::vector<Objective::Known>& Objective::known() {
  static const std::vector<Known> all = {
      {"cross_entropy", Kind::Classes}, {"nll", Kind::Classes},
      {"mse", Kind::Numbers},           {"l1", Kind::Numbers},
      {"smooth_l1", Kind::Numbers},     {"bce", Kind::Probabilities},
      {"bce_with_logits", Kind::Logits}};
  return all;
}

const std::vector<std::string>& Objective::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const Known& k : known()) names.emplace_back(k.name);
    return names;
  }();
  return all;
}

Objective::Objective(const std::string& name) {
  for (const Known& k : known()) {
    if (name == k.name) known_ = &k;
  }
  if (!known_) {
    throw UsageError(
        fmt::format("there is no loss '{}'; there are {}", name, fmt::join(names(), ", ")));
  }
}

Tensor Objective::tensorOf(const IValue& output) const {
  WICK_CHECK(output.isTensor() && output.toTensor().defined(),
             "the model gives {}; {} needs one Tensor", output.tagName(), known_->name);
  return output.toTensor();
}

void Objective::checkClasses(const Tensor& output, const Tensor& targets) const {
  const int64_t classes = output.size(output.dim() > 1 ? 1 : 0);
  const Tensor plain = targets.contiguous();
  const int64_t* labels = plain.data<int64_t>();
  const int64_t per_sample = plain.size(0) == 0 ? 1 : plain.numel() / plain.size(0);
  Pace pace;
  for (int64_t i = 0; i < plain.numel(); ++i) {
    pace.step();
    const int64_t label = labels[i];
    WICK_CHECK((label >= 0 && label < classes) || label == kIgnored,
               "sample {} has the label {}, which is out of range: the model gives {} classes "
               "(0 to {})",
               i / std::max<int64_t>(per_sample, 1), label, classes, classes - 1);
  }
}

void Objective::checkShapes(const Tensor& output, const Tensor& targets) const {
  const auto refuse = [&](const std::string& expected) {
    throwRuntimeError("{}: the model gives {}, the targets are {}; {}", known_->name,
                      output.describe(), targets.describe(), expected);
  };
  const bool same = output.dim() == targets.dim() && output.dim() > 0 &&
                    std::ranges::equal(output.sizes().subspan(1), targets.sizes().subspan(1));
  if (known_->kind != Kind::Classes) {
    if (!same) refuse("they must have one shape");
    return;
  }
  if (isFloating(targets.dtype())) {
    if (std::string_view(known_->name) == "nll") refuse("labels must be whole numbers");
    if (!same) refuse("targets of probabilities must have the output's shape");
    return;
  }
  DimVector expected;
  for (int64_t d = 0; d < output.dim(); ++d) {
    if (d != 1) expected.push_back(d == 0 ? targets.size(0) : output.size(d));
  }
  if (output.dim() < 2 || !std::ranges::equal(expected, targets.sizes())) {
    refuse("expected an output [samples, classes, …] and a label for each sample");
  }
}

Tensor Objective::fittedTargets(const IValue& output, const Tensor& targets) const {
  if (!known_) return targets;
  const Tensor out = tensorOf(output);
  WICK_CHECK(targets.dim() > 0, "{}: the targets are one number", known_->name);
  // Messages show a batch on both sides.
  checkShapes(
      out, out.dim() == 0 ? targets : targets.narrow(0, 0, std::min(out.size(0), targets.size(0))));
  if (known_->kind == Kind::Classes && isWhole(targets.dtype())) {
    const Tensor labels = targets.to(DType::Long);
    checkClasses(out, labels);
    return labels;
  }
  if (isWhole(targets.dtype())) return targets.to(out.dtype());
  WICK_CHECK(targets.dtype() == out.dtype(), "{}: the model gives {}, the targets are {}",
             known_->name, out.describe(), targets.describe());
  return targets;
}

Tensor Objective::loss(const IValue& output, const Tensor& targets) const {
  // Shapes that differ would be broadcast, which is never what is meant.
  if (known_ && known_->kind != Kind::Classes &&
      !std::ranges::equal(tensorOf(output).sizes(), targets.sizes())) {
    throwRuntimeError("{}: the model gives {}, the targets are {}; they must have one shape",
                      known_->name, output.toTensor().describe(), targets.describe());
  }
  const Tensor loss =
      known_ ? callFunction(functionNamed(known_->name), {tensorOf(output), targets}).to<Tensor>()
             : function_(output, targets);
  WICK_CHECK(loss.defined() && loss.numel() == 1,
             "the loss is {}, expected one number: take its mean or its sum",
             loss.defined() ? loss.describe() : std::string("None"));
  WICK_CHECK(isFloating(loss.dtype()), "the loss is {}, expected a floating-point number",
             loss.describe());
  return loss;
}

Tensor Objective::right(const IValue& output, const Tensor& targets) const {
  if (!known_ || known_->kind == Kind::Numbers) return {};
  const GradModeGuard unrecorded(false);
  const Tensor out = tensorOf(output).detach();
  if (known_->kind == Kind::Classes) {
    return callFunction(functionNamed("right_classes"), {out, targets}).toTensor();
  }
  const double threshold = known_->kind == Kind::Logits ? 0.0 : 0.5;
  return callFunction(functionNamed("right_decisions"), {out, targets, threshold}).toTensor();
}

Tensor Objective::rightAmong(const IValue& output, const Tensor& targets, int64_t most) const {
  if (!known_ || known_->kind != Kind::Classes) return {};
  const GradModeGuard unrecorded(false);
  return callFunction(functionNamed("right_among"), {tensorOf(output).detach(), targets, most})
      .toTensor();
}

std::optional<Objective::Count> Objective::countOf(const Tensor& right, const Tensor& targets) {
  if (!right.defined()) return std::nullopt;
  // All comes over at once, because the device may have to be waited for.
  const Tensor here = moveTo(right, Device());
  const std::span<const int64_t> counts = here.span<int64_t>();
  return Count{counts[0], counts.size() > 1 ? counts[1] : targets.numel()};
}

}  // namespace wick::training
