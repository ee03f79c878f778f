#include "training/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/value_conversions.h"

namespace wick {
namespace {

constexpr double kPi = std::numbers::pi;

[[noreturn]] void refuseSchedule(const std::string& reason) {
  throw UsageError("scheduler: " + reason);
}

// f(name, field) for the settings of a rule that its state holds, under PyTorch's names. Of OneCycleLr these
// are few: its phases follow from them, and rates and momenta stand in the optimizer's groups.
template <class Rule, class F>
void forEachField(Rule& r, F f) {
  if constexpr (requires { r.step_size; }) f("step_size", r.step_size);
  if constexpr (requires { r.milestones; }) f("milestones", r.milestones);
  if constexpr (requires { r.gamma; }) f("gamma", r.gamma);
  if constexpr (requires { r.t_max; }) f("T_max", r.t_max);
  if constexpr (requires { r.eta_min; }) f("eta_min", r.eta_min);
  if constexpr (requires { r.start_factor; }) f("start_factor", r.start_factor);
  if constexpr (requires { r.end_factor; }) f("end_factor", r.end_factor);
  if constexpr (std::is_same_v<Rule, ConstantLr>) f("factor", r.factor);
  if constexpr (requires { r.total_iters; }) f("total_iters", r.total_iters);
  if constexpr (requires { r.power; }) f("power", r.power);
  if constexpr (requires { r.total_steps; }) f("total_steps", r.total_steps);
  if constexpr (requires { r.cycle_momentum; }) f("cycle_momentum", r.cycle_momentum);
}

void checkCount(const char* name, int64_t value) {
  if (value < 1) refuseSchedule(fmt::format("{} is {}, expected at least 1", name, value));
}

void checkRule(const RateRule& rule) {
  if (const auto* r = std::get_if<StepLr>(&rule)) {
    checkCount("step_size", r->step_size);
  } else if (const auto* r = std::get_if<CosineAnnealingLr>(&rule)) {
    checkCount("t_max", r->t_max);
  } else if (const auto* r = std::get_if<LinearLr>(&rule)) {
    if (!(r->start_factor > 0 && r->start_factor <= 1)) {
      refuseSchedule(
          fmt::format("start_factor is {}, expected a number above 0, up to 1", r->start_factor));
    }
    if (!(r->end_factor >= 0 && r->end_factor <= 1)) {
      refuseSchedule(fmt::format("end_factor is {}, expected a number from 0 to 1", r->end_factor));
    }
  } else if (const auto* r = std::get_if<ConstantLr>(&rule)) {
    if (!(r->factor > 0 && r->factor <= 1)) {
      refuseSchedule(fmt::format("factor is {}, expected a number above 0, up to 1", r->factor));
    }
  } else if (const auto* r = std::get_if<PolynomialLr>(&rule)) {
    checkCount("total_iters", r->total_iters);
  } else if (const auto* r = std::get_if<OneCycleLr>(&rule)) {
    checkCount("total_steps", r->total_steps);
    if (!(r->pct_start >= 0 && r->pct_start <= 1)) {
      refuseSchedule(fmt::format("pct_start is {}, expected a number from 0 to 1", r->pct_start));
    }
  } else if (const auto* r = std::get_if<LambdaLr>(&rule)) {
    if (!r->factor) refuseSchedule("there is no function");
  }
}

// Numbers that OneCycleLr keeps in a group, where PyTorch's does too.
double keptNumber(const ParameterGroup& group, const char* name) {
  for (const auto& [key, value] : group.others) {
    if (key == name && value.isDouble()) return value.toDouble();
    if (key == name && value.isInt()) return static_cast<double>(value.toInt());
  }
  refuseSchedule(fmt::format("a group of the optimizer has no '{}'", name));
}
void keep(ParameterGroup& group, const char* name, double value) {
  for (auto& [key, old] : group.others) {
    if (key != name) continue;
    old = value;
    return;
  }
  group.others.emplace_back(name, value);
}

// What momentum is under the rule: Adam's is its first beta. Null when there is none.
double* momentumOf(UpdateRule& rule) {
  if (auto* sgd = std::get_if<Sgd>(&rule)) return &sgd->momentum;
  if (auto* adam = std::get_if<Adam>(&rule)) return &adam->betas[0];
  if (auto* adamw = std::get_if<AdamW>(&rule)) return &adamw->betas[0];
  if (auto* rms = std::get_if<RmsProp>(&rule)) return &rms->momentum;
  return nullptr;
}

double annealed(bool cosine, double start, double end, double part) {
  if (!cosine) return (end - start) * part + start;
  return end + (start - end) / 2.0 * (std::cos(kPi * part) + 1);
}

IValue writtenSetting(int64_t v) {
  return v;
}
IValue writtenSetting(double v) {
  return v;
}
IValue writtenSetting(bool v) {
  return v;
}
// PyTorch counts how often each one occurs.
IValue writtenSetting(const std::vector<int64_t>& v) {
  auto counts = makeRef<DictObject>(types::Int(), types::Int());
  for (int64_t milestone : v) {
    counts->set(milestone, static_cast<int64_t>(std::ranges::count(v, milestone)));
  }
  return IValue(std::move(counts));
}

double asNumber(const IValue& value, const char* name) {
  if (value.isInt()) return static_cast<double>(value.toInt());
  if (value.isDouble()) return value.toDouble();
  refuseSchedule(
      fmt::format("loadStateDict: '{}' is {}, expected a number", name, value.tagName()));
}
void readField(const IValue& value, const char* name, double& field) {
  field = asNumber(value, name);
}
void readField(const IValue& value, const char* name, int64_t& field) {
  const double number = asNumber(value, name);
  if (!(std::abs(number) < 0x1p53)) {
    refuseSchedule(fmt::format("loadStateDict: '{}' is {}, expected a whole number", name, number));
  }
  field = static_cast<int64_t>(number);
}
void readField(const IValue& value, const char* name, bool& field) {
  if (!value.isBool()) {
    refuseSchedule(
        fmt::format("loadStateDict: '{}' is {}, expected a bool", name, value.tagName()));
  }
  field = value.toBool();
}
void readField(const IValue& value, const char* name, std::vector<int64_t>& field) {
  if (!value.isDict()) {
    refuseSchedule(
        fmt::format("loadStateDict: '{}' is {}, expected a dict", name, value.tagName()));
  }
  field.clear();
  for (const auto& [milestone, count] : value.toDict().items()) {
    if (!milestone.isInt() || !count.isInt() || count.toInt() > 1000) {
      refuseSchedule(
          fmt::format("loadStateDict: '{}' holds {}: {}, expected how often an epoch occurs", name,
                      milestone.repr(), count.repr()));
    }
    for (int64_t i = 0; i < count.toInt(); ++i) field.push_back(milestone.toInt());
  }
}
void readField(const IValue& value, const char* name, std::vector<double>& field) {
  if (!value.isList()) {
    refuseSchedule(
        fmt::format("loadStateDict: '{}' is {}, expected a list", name, value.tagName()));
  }
  field.clear();
  for (const IValue& v : value.elements()) field.push_back(asNumber(v, name));
}

const IValue& entry(const IValue& state, const char* name) {
  const IValue* found = state.isDict() ? state.toDict().find(IValue(name)) : nullptr;
  if (!found) refuseSchedule(fmt::format("loadStateDict: the state has no '{}'", name));
  return *found;
}

std::vector<IValue> statesOf(const std::vector<Scheduler>& parts) {
  std::vector<IValue> states;
  for (const Scheduler& part : parts) states.push_back(part.stateDict());
  return states;
}

void loadParts(std::vector<Scheduler>& parts, const IValue& state) {
  const IValue& states = entry(state, "_schedulers");
  if (!states.isList() || states.elements().size() != parts.size()) {
    refuseSchedule(fmt::format("loadStateDict: '_schedulers' is {}, expected a list of {}",
                               states.isList()
                                   ? fmt::format("a list of {}", states.elements().size())
                                   : std::string(states.tagName()),
                               parts.size()));
  }
  std::vector<Scheduler> loaded = parts;
  const auto elements = states.elements();
  for (size_t i = 0; i < parts.size(); ++i) loaded[i].loadStateDict(elements[i]);
  parts = std::move(loaded);
}

std::vector<double> ratesOf(const Optimizer& optimizer) {
  std::vector<double> rates;
  for (const ParameterGroup& group : optimizer.groups()) rates.push_back(group.lr());
  return rates;
}

}  // namespace

Scheduler::Scheduler(Optimizer& optimizer, RateRule rule)
    : optimizer_(&optimizer), rule_(std::move(rule)) {
  checkRule(rule_);
  if (const auto* cycle = std::get_if<OneCycleLr>(&rule_)) beginOneCycle(*cycle);
  for (ParameterGroup& group : optimizer_->groups()) {
    if (!group.initial_lr) group.initial_lr = group.lr();
    base_rates_.push_back(*group.initial_lr);
  }
  initialStep();
}

void Scheduler::beginOneCycle(const OneCycleLr& rule) {
  for (ParameterGroup& group : optimizer_->groups()) {
    group.initial_lr = rule.max_lr / rule.div_factor;
    keep(group, "max_lr", rule.max_lr);
    keep(group, "min_lr", *group.initial_lr / rule.final_div_factor);
    if (!rule.cycle_momentum) continue;
    double* momentum = momentumOf(group.rule);
    if (!momentum) refuseSchedule(std::string(ruleName(group.rule)) + " has no momentum to cycle");
    *momentum = rule.max_momentum;
    keep(group, "max_momentum", rule.max_momentum);
    keep(group, "base_momentum", rule.base_momentum);
  }
}

void Scheduler::initialStep() {
  step_count_ = 0;
  step();
}

void Scheduler::step() {
  ++step_count_;
  ++last_epoch_;
  setRates(/*closed_form=*/false);
}

void Scheduler::stepTo(int64_t epoch) {
  ++step_count_;
  last_epoch_ = epoch;
  setRates(/*closed_form=*/true);
}

void Scheduler::setRates(bool closed_form) {
  std::vector<ParameterGroup>& groups = optimizer_->groups();
  if (groups.size() != base_rates_.size()) {
    refuseSchedule(fmt::format("made for {} groups, the optimizer has {} now", base_rates_.size(),
                               groups.size()));
  }
  std::vector<double> rates;
  for (size_t i = 0; i < groups.size(); ++i) rates.push_back(rate(groups[i], i, closed_form));
  for (size_t i = 0; i < groups.size(); ++i) groups[i].setLr(rates[i]);
  last_rates_ = std::move(rates);
}

// Both forms are PyTorch's term by term, so that the numbers are: the one builds on the rate that
// the group has, the other on the first rate.
double Scheduler::rate(ParameterGroup& group, size_t index, bool closed) {
  const double lr = group.lr(), base = base_rates_[index];
  const int64_t epoch = last_epoch_;
  const auto e = static_cast<double>(epoch);
  if (const auto* r = std::get_if<StepLr>(&rule_)) {
    if (closed) return base * std::pow(r->gamma, static_cast<double>(epoch / r->step_size));
    return epoch == 0 || epoch % r->step_size != 0 ? lr : lr * r->gamma;
  }
  if (const auto* r = std::get_if<MultiStepLr>(&rule_)) {
    const auto at = closed
                        ? std::ranges::count_if(r->milestones, [&](auto m) { return m <= epoch; })
                        : std::ranges::count(r->milestones, epoch);
    if (closed) return base * std::pow(r->gamma, static_cast<double>(at));
    return at == 0 ? lr : lr * std::pow(r->gamma, static_cast<double>(at));
  }
  if (const auto* r = std::get_if<ExponentialLr>(&rule_)) {
    if (closed) return base * std::pow(r->gamma, e);
    return epoch == 0 ? lr : lr * r->gamma;
  }
  if (const auto* r = std::get_if<CosineAnnealingLr>(&rule_)) {
    const auto t_max = static_cast<double>(r->t_max);
    if (closed) return r->eta_min + (base - r->eta_min) * (1 + std::cos(kPi * e / t_max)) / 2;
    if (epoch == 0) return lr;
    if (step_count_ == 1) {
      return r->eta_min + (base - r->eta_min) * (1 + std::cos(e * kPi / t_max)) / 2;
    }
    if ((epoch - 1 - r->t_max) % (2 * r->t_max) == 0) {
      return lr + (base - r->eta_min) * (1 - std::cos(kPi / t_max)) / 2;
    }
    return (1 + std::cos(kPi * e / t_max)) / (1 + std::cos(kPi * (e - 1) / t_max)) *
               (lr - r->eta_min) +
           r->eta_min;
  }
  if (const auto* r = std::get_if<LinearLr>(&rule_)) {
    const double span = r->end_factor - r->start_factor;
    const auto total = static_cast<double>(r->total_iters);
    if (closed) return base * (r->start_factor + span * std::min(total, e) / total);
    if (epoch == 0) return lr * r->start_factor;
    if (epoch > r->total_iters) return lr;
    return lr * (1. + span / (total * r->start_factor + (e - 1) * span));
  }
  if (const auto* r = std::get_if<ConstantLr>(&rule_)) {
    if (closed) return base * (r->factor + (epoch >= r->total_iters ? 1 : 0) * (1 - r->factor));
    if (epoch == 0) return lr * r->factor;
    return epoch == r->total_iters ? lr * (1.0 / r->factor) : lr;
  }
  if (const auto* r = std::get_if<PolynomialLr>(&rule_)) {
    const auto total = static_cast<double>(r->total_iters);
    if (closed) return base * std::pow(1.0 - std::min(total, e) / total, r->power);
    if (epoch == 0 || epoch > r->total_iters) return lr;
    return lr * std::pow((1.0 - e / total) / (1.0 - (e - 1) / total), r->power);
  }
  if (const auto* r = std::get_if<OneCycleLr>(&rule_)) return oneCycleRate(*r, group);
  return base * std::get<LambdaLr>(rule_).factor(epoch);
}

double Scheduler::oneCycleRate(const OneCycleLr& rule, ParameterGroup& group) const {
  if (last_epoch_ > rule.total_steps) {
    refuseSchedule(
        fmt::format("stepped {} times; the cycle has {} steps", last_epoch_ + 1, rule.total_steps));
  }
  const auto total = static_cast<double>(rule.total_steps);
  const double first = *group.initial_lr;
  const double most = keptNumber(group, "max_lr"), least = keptNumber(group, "min_lr");
  struct Phase {
    double end, from_rate, to_rate;
    bool from_high, to_high;  // momentum
  };
  std::vector<Phase> phases = {{rule.pct_start * total - 1, first, most, true, false}};
  if (rule.three_phase) {
    phases.push_back({2 * rule.pct_start * total - 2, most, first, false, true});
    phases.push_back({total - 1, first, least, true, true});
  } else {
    phases.push_back({total - 1, most, least, false, true});
  }
  double start = 0;
  const auto now = static_cast<double>(last_epoch_);
  for (size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    if (now > phase.end && i + 1 < phases.size()) {
      start = phase.end;
      continue;
    }
    const double part = (now - start) / (phase.end - start);
    if (rule.cycle_momentum) {
      const double high = keptNumber(group, "max_momentum");
      const double low = keptNumber(group, "base_momentum");
      *momentumOf(group.rule) =
          annealed(rule.cosine, phase.from_high ? high : low, phase.to_high ? high : low, part);
    }
    return annealed(rule.cosine, phase.from_rate, phase.to_rate, part);
  }
  return group.lr();
}

IValue Scheduler::stateDict() const {
  auto state = makeRef<DictObject>(types::String(), types::Any());
  RateRule rule = rule_;
  std::visit(
      [&](auto& known) {
        forEachField(known, [&](const char* name, const auto& field) {
          state->set(IValue(name), writtenSetting(field));
        });
      },
      rule);
  if (const auto* cycle = std::get_if<OneCycleLr>(&rule_); cycle && cycle->cycle_momentum) {
    const UpdateRule& update = optimizer_->groups().front().rule;
    state->set(IValue("use_beta1"),
               std::holds_alternative<Adam>(update) || std::holds_alternative<AdamW>(update));
  }
  state->set(IValue("base_lrs"), IValue(base_rates_));
  state->set(IValue("last_epoch"), last_epoch_);
  state->set(IValue("verbose"), false);
  state->set(IValue("_step_count"), step_count_);
  state->set(IValue("_get_lr_called_within_step"), false);
  state->set(IValue("_last_lr"), IValue(last_rates_));
  return IValue(std::move(state));
}

void Scheduler::loadStateDict(const IValue& state) {
  RateRule rule = rule_;
  std::visit(
      [&](auto& known) {
        forEachField(known, [&](const char* name, auto& field) {
          readField(entry(state, name), name, field);
        });
      },
      rule);
  checkRule(rule);
  std::vector<double> base, last;
  int64_t epoch = 0, count = 0;
  readField(entry(state, "base_lrs"), "base_lrs", base);
  readField(entry(state, "last_epoch"), "last_epoch", epoch);
  readField(entry(state, "_step_count"), "_step_count", count);
  readField(entry(state, "_last_lr"), "_last_lr", last);
  if (base.size() != base_rates_.size()) {
    refuseSchedule(fmt::format("loadStateDict: the state is of {} groups, the optimizer has {}",
                               base.size(), base_rates_.size()));
  }
  rule_ = std::move(rule);
  base_rates_ = std::move(base);
  last_rates_ = std::move(last);
  last_epoch_ = epoch;
  step_count_ = count;
}

ChainedScheduler::ChainedScheduler(Optimizer& optimizer, std::vector<RateRule> rules) {
  if (rules.empty()) refuseSchedule("there are no schedules to chain");
  for (RateRule& rule : rules) parts_.emplace_back(optimizer, std::move(rule));
}

void ChainedScheduler::step() {
  for (Scheduler& part : parts_) part.step();
}

IValue ChainedScheduler::stateDict() const {
  auto state = makeRef<DictObject>(types::String(), types::Any());
  state->set(IValue("_last_lr"), IValue(parts_.back().lastRates()));
  state->set(IValue("_schedulers"), IValue(makeList(types::Any(), statesOf(parts_))));
  return IValue(std::move(state));
}

void ChainedScheduler::loadStateDict(const IValue& state) {
  loadParts(parts_, state);
}

SequentialScheduler::SequentialScheduler(Optimizer& optimizer, std::vector<RateRule> rules,
                                         std::vector<int64_t> milestones)
    : milestones_(std::move(milestones)) {
  if (rules.empty() || milestones_.size() + 1 != rules.size()) {
    refuseSchedule(fmt::format("{} schedules with {} milestones; one fewer is expected",
                               rules.size(), milestones_.size()));
  }
  if (!std::ranges::is_sorted(milestones_)) refuseSchedule("the milestones are not in order");
  for (RateRule& rule : rules) parts_.emplace_back(optimizer, std::move(rule));
  // Making them applied all of their first rates.
  for (ParameterGroup& group : optimizer.groups()) group.setLr(*group.initial_lr);
  for (Scheduler& part : parts_) --part.last_epoch_;
  parts_.front().initialStep();
  last_rates_ = ratesOf(optimizer);
}

void SequentialScheduler::step() {
  ++last_epoch_;
  const auto at =
      static_cast<size_t>(std::ranges::upper_bound(milestones_, last_epoch_) - milestones_.begin());
  Scheduler& part = parts_[at];
  if (at > 0 && milestones_[at - 1] == last_epoch_) {
    part.stepTo(0);
  } else {
    part.step();
  }
  last_rates_ = part.lastRates();
}

IValue SequentialScheduler::stateDict() const {
  auto state = makeRef<DictObject>(types::String(), types::Any());
  state->set(IValue("_milestones"), IValue(milestones_));
  state->set(IValue("last_epoch"), last_epoch_);
  state->set(IValue("_last_lr"), IValue(last_rates_));
  state->set(IValue("_schedulers"), IValue(makeList(types::Any(), statesOf(parts_))));
  return IValue(std::move(state));
}

void SequentialScheduler::loadStateDict(const IValue& state) {
  int64_t epoch = 0;
  std::vector<double> last;
  readField(entry(state, "last_epoch"), "last_epoch", epoch);
  readField(entry(state, "_last_lr"), "_last_lr", last);
  loadParts(parts_, state);
  last_epoch_ = epoch;
  last_rates_ = std::move(last);
}

}  // namespace wick
