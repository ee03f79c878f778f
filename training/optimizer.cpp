#include "training/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "autograd/tape.h"
#include "core/budget.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/call.h"
#include "runtime/threads.h"
#include "training/settings.h"
#include "training/update_loops.h"
#include "training/update_operators.h"

namespace wick {
namespace {

using training::Update;

bool isComplexOrFloating(DType dtype) {
  return isFloating(dtype) || dtype == DType::ComplexFloat || dtype == DType::ComplexDouble;
}

// The elements in one piece, each at the place where `like` has its own: `t` itself or a copy.
Tensor laidOutAs(const Tensor& like, const Tensor& t) {
  if (t.dtype() == like.dtype() && std::ranges::equal(t.strides(), like.strides())) return t;
  const Tensor copy =
      Tensor::emptyStrided(like.sizes(), like.strides(), like.dtype(), like.device());
  copy.copyFrom(t.detach());
  return copy;
}

// The gradient as a dense tensor.
Tensor denseGradient(const Tensor& gradient, const UpdateRule& rule, bool decays) {
  if (gradient.isStrided() && gradient.kind() == TensorKind::Dense) return gradient;
  WICK_CHECK(gradient.kind() == TensorKind::Sparse, "{}: a gradient is neither dense nor sparse",
             ruleName(rule));
  const bool sums = std::holds_alternative<Sgd>(rule) || std::holds_alternative<Adagrad>(rule);
  WICK_CHECK(sums, "{} does not support sparse gradients", ruleName(rule));
  WICK_CHECK(!decays || std::holds_alternative<Sgd>(rule),
             "weight_decay option is not compatible with sparse gradients");
  static const OperatorHandle kToDense("aten::to_dense", "");
  return kToDense(gradient);
}

// A parameter that loops move: on the CPU, or on a device that has them.
struct Pending {
  Tensor parameter;
  Tensor work;      // its elements side by side: itself, or a copy where it has gaps
  Tensor gradient;  // laid out as `work`
  Update update;
  bool isCopy() const { return !work.sharesStorage(parameter); }
};

// One on a device without such loops: operators move it.
struct PendingCalls {
  const UpdateRule* rule;
  Tensor parameter;
  Tensor gradient;
  std::array<Tensor, 3> buffers;
  training::UpdateNumbers numbers;
};

// Whether the memory of two parameters overlaps, so that they must not be written at a time.
bool shareMemory(const std::vector<Pending>& all) {
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  ranges.reserve(all.size());
  for (const Pending& pending : all) {
    const Tensor& p = pending.parameter;
    if (p.numel() == 0) continue;
    int64_t last = 0;  // element
    for (int64_t d = 0; d < p.dim(); ++d) last += (p.size(d) - 1) * p.stride(d);
    const auto begin = reinterpret_cast<uintptr_t>(p.rawData());
    ranges.emplace_back(begin, begin + static_cast<size_t>(last + 1) * p.itemSize());
  }
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return true;
  }
  return false;
}

void writeBack(const Pending& pending) {
  if (pending.isCopy()) pending.parameter.detach().copyFrom(pending.work);
}

void run(const std::vector<PendingCalls>& all) {
  // As the loops: a step that ended in the middle would leave parameters of two ages behind.
  const BudgetScope unbounded(nullptr);
  for (const PendingCalls& one : all) {
    training::updateByOperators(*one.rule, one.numbers, one.parameter, one.gradient, one.buffers);
  }
}

// Of one device.
void runLoops(Device device, std::span<const Update> updates) {
  if (device.isCpu()) return training::runUpdates(updates);
  const BudgetScope unbounded(nullptr);
  training::deviceUpdates(device.type)(device, updates);
}

void run(const std::vector<Pending>& all) {
  if (all.empty()) return;
  applyNumThreads();
  if (shareMemory(all)) {
    // One after another, each from what the one before left.
    for (const Pending& pending : all) {
      if (pending.isCopy()) pending.work.copyFrom(pending.parameter.detach());
      runLoops(pending.parameter.device(), {&pending.update, 1});
      writeBack(pending);
    }
    return;
  }
  std::vector<std::pair<Device, std::vector<Update>>> by_device;
  for (const Pending& pending : all) {
    const Device device = pending.parameter.device();
    auto found = std::ranges::find(by_device, device, [](const auto& one) { return one.first; });
    if (found == by_device.end()) found = by_device.insert(found, {device, {}});
    found->second.push_back(pending.update);
  }
  for (const auto& [device, updates] : by_device) runLoops(device, updates);
  for (const Pending& pending : all) writeBack(pending);
}

// Which buffers a step under the rule reads and writes.
std::array<bool, 3> usedBuffers(const UpdateRule& rule) {
  if (const auto* sgd = std::get_if<Sgd>(&rule)) return {sgd->momentum != 0, false, false};
  if (const auto* adam = std::get_if<Adam>(&rule)) return {true, true, adam->amsgrad};
  if (const auto* adamw = std::get_if<AdamW>(&rule)) return {true, true, adamw->amsgrad};
  if (const auto* rms = std::get_if<RmsProp>(&rule)) {
    return {true, rms->momentum > 0, rms->centered};
  }
  return {true, false, false};
}

// What a new buffer holds. The first momentum is the gradient: -0.0 leaves every number that is added
// to it as it is.
double startOf(const UpdateRule& rule) {
  return std::holds_alternative<Sgd>(rule) ? -0.0 : 0.0;
}

Tensor zerosLike(const Tensor& p) {
  const Tensor zeros = Tensor::emptyLike(p, p.dtype());
  zeros.fill(0);
  return zeros;
}

}  // namespace

double ParameterGroup::lr() const {
  return std::visit([](const auto& known) { return known.lr; }, rule);
}

void ParameterGroup::setLr(double lr) {
  std::visit([&](auto& known) { known.lr = lr; }, rule);
}

std::vector<Tensor> distinctParameters(const Module& module) {
  std::vector<Tensor> found;
  std::unordered_set<const TensorImpl*> seen;
  for (const auto& [name, part] : module.modules()) {
    for (const auto& [parameter_name, tensor] : part.parameters(/*recurse=*/false)) {
      if (tensor.defined() && seen.insert(tensor.impl()).second) found.push_back(tensor);
    }
  }
  return found;
}

Optimizer::Optimizer(std::vector<Tensor> parameters, UpdateRule rule) {
  addGroup(std::move(parameters), rule);
}
Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::checkParameters(const std::vector<Tensor>& parameters) const {
  // Modules may have integers among their parameters; they are left alone.
  const bool any = std::ranges::any_of(
      parameters, [](const Tensor& p) { return p.defined() && isComplexOrFloating(p.dtype()); });
  std::unordered_set<const TensorImpl*> seen;
  for (const ParameterGroup& group : groups_) {
    for (const Tensor& p : group.parameters) seen.insert(p.impl());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& p = parameters[i];
    const auto refuse = [&](const std::string& reason) {
      throw UsageError(fmt::format("optimizer: parameter {} ({}) {}", i, p.describe(), reason));
    };
    if (!p.defined()) throw UsageError(fmt::format("optimizer: parameter {} is no tensor", i));
    if (p.kind() != TensorKind::Dense) refuse("is not dense");
    if (!p.device().isCpu() && !deviceBackend(p.device().type).holdsData()) {
      refuse("has no numbers: tensors of this device have only sizes");
    }
    if (!isComplexOrFloating(p.dtype()) && (!any || p.requiresGrad())) {
      refuse("has no gradient: only floating-point and complex tensors do");
    }
    if (!autograd::isLeaf(p)) refuse("is no leaf: it was computed from other tensors");
    if (!seen.insert(p.impl()).second) refuse("occurs twice");
  }
}

void Optimizer::addGroup(std::vector<Tensor> parameters, UpdateRule rule) {
  if (parameters.empty()) throw UsageError("optimizer: there are no parameters");
  if (!groups_.empty() && groups_.front().rule.index() != rule.index()) {
    throw UsageError(fmt::format("optimizer: a group of {} in an optimizer of {}", ruleName(rule),
                                 ruleName(groups_.front().rule)));
  }
  training::checkSettings(rule);
  checkParameters(parameters);
  groups_.push_back({std::move(parameters), rule, std::nullopt, {}});
  beginMemories(groups_.back());
}

void Optimizer::beginMemories(const ParameterGroup& group) {
  for (const Tensor& p : group.parameters) {
    Memory& memory = memories_.emplace_back();
    const auto* adagrad = std::get_if<Adagrad>(&group.rule);
    // A complex sum begins with the value in both parts, as in PyTorch.
    if (adagrad) {
      memory.buffers[0] = training::newBuffer(p, adagrad->initial_accumulator_value);
    }
  }
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (const ParameterGroup& group : groups_) {
    all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  }
  return all;
}

void Optimizer::step() {
  const GradModeGuard unrecorded(false);
  std::vector<Pending> all;
  std::vector<PendingCalls> calls;
  std::vector<Memory> memories = memories_;
  size_t index = 0;
  for (const ParameterGroup& group : groups_) {
    training::checkSettings(group.rule);
    for (const Tensor& p : group.parameters) {
      const size_t i = index++;
      Tensor gradient = autograd::gradientOf(p);
      if (!gradient.defined()) continue;
      const char* const name = ruleName(group.rule);
      WICK_CHECK(std::ranges::equal(gradient.sizes(), p.sizes()) && gradient.dtype() == p.dtype() &&
                     gradient.device() == p.device(),
                 "{}: parameter {} is {}, its gradient {}", name, i, p.describe(),
                 gradient.describe());
      WICK_CHECK(p.storage()->writable(), "{}: parameter {} lies in memory that is read-only", name,
                 i);
      const bool decays = std::visit([](const auto& r) { return r.weight_decay != 0; }, group.rule);
      gradient = denseGradient(gradient, group.rule, decays);
      const bool by_loops = p.device().isCpu() || training::deviceUpdates(p.device().type);
      // Parameters with gaps are updated in a copy.
      const Tensor work =
          !by_loops || p.isNonOverlappingAndDense() ? p.detach() : p.detach().contiguous();
      if (by_loops) gradient = laidOutAs(work, gradient);

      Memory& memory = memories[i];
      const bool first = !memory.buffers[0].defined();
      const std::array<bool, 3> used = usedBuffers(group.rule);
      Update update;
      std::array<Tensor, 3> buffers;
      for (size_t k = 0; k < used.size(); ++k) {
        if (!used[k]) continue;
        Tensor& buffer = memory.buffers[k];
        if (!buffer.defined()) {
          buffer = training::newBuffer(work, startOf(group.rule));
        } else if (by_loops) {
          buffer = laidOutAs(work, buffer);
        }
        buffers[k] = buffer;
      }
      ++memory.step;
      training::prepareUpdate(update, group.rule, p.dtype(), memory.step, first);
      if (!by_loops) {
        calls.push_back({&group.rule, p, std::move(gradient), std::move(buffers), update.numbers});
        continue;
      }
      for (size_t k = 0; k < used.size(); ++k) {
        if (used[k]) update.buffers[k] = buffers[k].rawData();
      }
      update.parameter = work.rawData();
      update.gradient = gradient.rawData();
      update.count = isComplex(p.dtype()) ? 2 * p.numel() : p.numel();
      all.push_back({p, work, std::move(gradient), update});
    }
  }
  run(calls);
  run(all);
  for (const Pending& pending : all) pending.parameter.storage()->bumpVersion();
  memories_ = std::move(memories);
}

void Optimizer::zeroGrad(bool set_to_none) {
  for (const ParameterGroup& group : groups_) {
    for (const Tensor& p : group.parameters) {
      const Tensor gradient = autograd::gradientOf(p);
      if (!gradient.defined()) continue;
      if (set_to_none) {
        autograd::setGradient(p, Tensor());
      } else if (gradient.kind() != TensorKind::Dense || autograd::requiresGradient(gradient) ||
                 !gradient.isNonOverlappingAndDense()) {
        autograd::setGradient(p, zerosLike(p));
      } else {
        gradient.fill(0);
        gradient.storage()->bumpVersion();
      }
    }
  }
}

}  // namespace wick
