#include "training/update_loops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "training/update_rules.h"

namespace wick::training {
namespace {

// f.operator()<flags as constants>().
template <class F>
UpdateLoop choose(bool a, F f) {
  return a ? f(std::true_type()) : f(std::false_type());
}
template <class F>
UpdateLoop choose(bool a, bool b, F f) {
  return choose(a, [&](auto x) { return choose(b, [&](auto y) { return f(x, y); }); });
}
template <class F>
UpdateLoop choose(bool a, bool b, bool c, F f) {
  return choose(a, b,
                [&](auto x, auto y) { return choose(c, [&](auto z) { return f(x, y, z); }); });
}

template <class T>
UpdateLoop loopOf(const LoopKind& kind) {
  switch (kind.rule) {
    case LoopKind::Rule::Sgd:
      return choose(kind.decays, [&](auto decays) -> UpdateLoop {
        constexpr bool kDecays = decays;
        if (kind.momentum == Momentum::None) return &sgdLoop<T, kDecays, Momentum::None>;
        if (kind.momentum == Momentum::Nesterov) return &sgdLoop<T, kDecays, Momentum::Nesterov>;
        if (kind.momentum == Momentum::First) return &sgdLoop<T, kDecays, Momentum::First>;
        return &sgdLoop<T, kDecays, Momentum::Plain>;
      });
    case LoopKind::Rule::Adam:
      return choose(kind.decays, kind.extra, [](auto decays, auto amsgrad) -> UpdateLoop {
        return &adamLoop<T, decltype(decays)::value, decltype(amsgrad)::value>;
      });
    case LoopKind::Rule::RmsProp:
      return choose(kind.decays, kind.extra, kind.moves,
                    [](auto decays, auto centered, auto moves) -> UpdateLoop {
                      return &rmsLoop<T, decltype(decays)::value, decltype(centered)::value,
                                      decltype(moves)::value>;
                    });
    case LoopKind::Rule::Adagrad:
      break;
  }
  return choose(kind.decays,
                [](auto decays) -> UpdateLoop { return &adagradLoop<T, decltype(decays)::value>; });
}

void prepare(Update& u, const Sgd& rule, int64_t, bool first) {
  UpdateNumbers& n = u.numbers;
  n.rate = -rule.lr;
  n.weight_decay = rule.weight_decay;
  n.momentum = rule.momentum;
  n.fresh = 1 - rule.dampening;
  n.beta1 = first ? 1 : 0;
  u.kind = {LoopKind::Rule::Sgd, rule.weight_decay != 0};
  u.kind.momentum = rule.momentum == 0 ? Momentum::None
                    : rule.nesterov    ? Momentum::Nesterov
                    : first            ? Momentum::First
                                       : Momentum::Plain;
}

template <class Rule>
void prepareAdam(Update& u, const Rule& rule, int64_t step, bool decays) {
  const auto at = static_cast<double>(step);
  UpdateNumbers& n = u.numbers;
  n.beta1 = rule.betas[0];
  n.beta2 = rule.betas[1];
  n.fresh = 1 - n.beta1;
  n.fresh2 = 1 - n.beta2;
  n.rate = -(rule.lr / (1 - std::pow(n.beta1, at)));
  n.correction = std::sqrt(1 - std::pow(n.beta2, at));
  n.eps = rule.eps;
  u.kind = {LoopKind::Rule::Adam, decays, rule.amsgrad};
}

void prepare(Update& u, const Adam& rule, int64_t step, bool) {
  u.numbers.weight_decay = rule.weight_decay;
  prepareAdam(u, rule, step, rule.weight_decay != 0);
}

void prepare(Update& u, const AdamW& rule, int64_t step, bool) {
  u.numbers.shrink = 1 - rule.lr * rule.weight_decay;
  prepareAdam(u, rule, step, false);
}

void prepare(Update& u, const RmsProp& rule, int64_t, bool) {
  UpdateNumbers& n = u.numbers;
  n.rate = -rule.lr;
  n.weight_decay = rule.weight_decay;
  n.momentum = rule.momentum;
  n.beta2 = rule.alpha;
  n.fresh2 = 1 - rule.alpha;
  n.eps = rule.eps;
  u.kind = {LoopKind::Rule::RmsProp, rule.weight_decay != 0, rule.centered, rule.momentum > 0};
}

void prepare(Update& u, const Adagrad& rule, int64_t step, bool) {
  UpdateNumbers& n = u.numbers;
  n.rate = -(rule.lr / (1 + static_cast<double>(step - 1) * rule.lr_decay));
  n.weight_decay = rule.weight_decay;
  n.eps = rule.eps;
  u.kind = {LoopKind::Rule::Adagrad, rule.weight_decay != 0};
}

DType realOf(DType dtype) {
  if (dtype == DType::ComplexFloat) return DType::Float;
  if (dtype == DType::ComplexDouble) return DType::Double;
  return dtype;
}

std::array<DeviceUpdates, 32>& devices() {
  static std::array<DeviceUpdates, 32> all{};
  return all;
}

}  // namespace

void setDeviceUpdates(DeviceType type, DeviceUpdates run) {
  devices().at(static_cast<size_t>(type)) = run;
}
DeviceUpdates deviceUpdates(DeviceType type) {
  return devices().at(static_cast<size_t>(type));
}

void prepareUpdate(Update& update, const UpdateRule& rule, DType dtype, int64_t step, bool first) {
  update.dtype = realOf(dtype);
  std::visit(
      [&](const auto& known) {
        update.numbers.sign = known.maximize ? -1 : 1;
        prepare(update, known, step, first);
      },
      rule);
  dispatch<kAnyFloat>("optimizer", update.dtype,
                      [&]<class T>() { update.loop = loopOf<T>(update.kind); });
}

void runUpdates(std::span<const Update> updates) {
  // A step that ended in the middle would leave parameters of two ages behind.
  const BudgetScope unbounded(nullptr);
  std::vector<int64_t> ends;  // of each parameter, counting through all
  ends.reserve(updates.size());
  int64_t total = 0;
  for (const Update& update : updates) ends.push_back(total += update.count);
  parallelFor(total, kGrainSize, [&](int64_t begin, int64_t end) {
    size_t at = static_cast<size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
    while (begin < end) {
      const Update& update = updates[at];
      const int64_t start = ends[at] - update.count;
      const int64_t stop = std::min(end, ends[at]);
      if (begin < stop) update.loop(update, begin - start, stop - start);
      begin = stop;
      ++at;
    }
  });
}

}  // namespace wick::training
