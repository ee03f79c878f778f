#include "distributed/gradient_exchange.h"

#include "autograd/hooks.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "distributed/group.h"
#include "runtime/ops/call.h"

namespace wick::distributed {

namespace {

// A bundle is begun when it has as many bytes: larger ones begin later, and smaller ones pay more often for a
// message. A larger gradient is a bundle of its own.
constexpr size_t kBundleBytes = size_t{4} << 20;

// Of one dtype and device, which travel together.
struct Bundle {
  std::vector<size_t> members;  // numbers of parameters
  std::vector<Tensor> gradients;
  size_t bytes = 0;
  Tensor ticket;  // undefined: not begun
};

bool joins(const Bundle& bundle, const Tensor& gradient, size_t bytes) {
  const Tensor& first = bundle.gradients[0];
  return bundle.bytes + bytes <= kBundleBytes && first.dtype() == gradient.dtype() &&
         first.device() == gradient.device();
}

}  // namespace

struct GradientExchange::State {
  bool active = true;
  std::vector<Tensor> parameters;
  std::vector<bool> has;        // of each parameter, whether its gradient is in a bundle
  size_t missing = 0;           // parameters whose gradient is in none
  std::vector<Bundle> bundles;  // the last one may be open
  std::vector<autograd::HookHandle> hooks;

  void clear() {
    bundles.clear();
    has.assign(parameters.size(), false);
    missing = parameters.size();
  }

  void beginLast() {
    static const OperatorHandle kBegin("wick::all_reduce_begin", "bundle");
    if (bundles.empty() || bundles.back().ticket.defined()) return;
    const GradModeGuard unrecorded(false);
    try {
      bundles.back().ticket = kBegin(bundles.back().gradients, "mean");
    } catch (...) {
      for (const size_t i : bundles.back().members) has[i] = false;
      missing += bundles.back().members.size();
      bundles.pop_back();
      throw;
    }
  }

  void add(size_t parameter, const Tensor& gradient) {
    WICK_CHECK(!has[parameter],
               "GradientExchange: another walk back before finish(); switch the exchange off "
               "while gradients are added up");
    const size_t bytes = static_cast<size_t>(gradient.numel()) * gradient.itemSize();
    const bool open = !bundles.empty() && !bundles.back().ticket.defined();
    if (open && !joins(bundles.back(), gradient, bytes)) beginLast();
    if (bundles.empty() || bundles.back().ticket.defined()) bundles.emplace_back();
    Bundle& bundle = bundles.back();
    bundle.members.push_back(parameter);
    bundle.gradients.push_back(gradient);
    bundle.bytes += bytes;
    has[parameter] = true;
    --missing;
    if (bundle.bytes >= kBundleBytes || missing == 0) beginLast();
  }
};

GradientExchange::GradientExchange(const std::vector<Tensor>& parameters)
    : state_(std::make_shared<State>()) {
  const std::shared_ptr<Group> group = theGroup();
  for (const Tensor& p : parameters) {
    if (!p.defined()) throw UsageError("GradientExchange: a parameter is no tensor");
    if (!autograd::isLeaf(p)) {
      throw UsageError("GradientExchange: " + p.describe() + " is no leaf");
    }
    group->broadcast(p, 0);
    if (p.requiresGrad()) state_->parameters.push_back(p);
  }
  state_->clear();
  for (size_t i = 0; i < state_->parameters.size(); ++i) {
    // Held weakly: the hook belongs to a parameter, which the state holds.
    state_->hooks.push_back(autograd::registerPostAccumulateHook(
        state_->parameters[i], [weak = std::weak_ptr(state_), i](Tensor& gradient) {
          const std::shared_ptr<State> state = weak.lock();
          if (state && state->active && gradient.defined()) state->add(i, gradient.detach());
        }));
  }
}

GradientExchange::~GradientExchange() {
  for (autograd::HookHandle& hook : state_->hooks) hook.remove();
}

void GradientExchange::finish() {
  static const OperatorHandle kEnd("wick::all_reduce_end", "bundle");
  const GradModeGuard unrecorded(false);
  state_->beginLast();
  for (const Bundle& bundle : state_->bundles) {
    for (const size_t i : bundle.members) {
      WICK_CHECK(autograd::gradientOf(state_->parameters[i]).defined(),
                 "GradientExchange: a gradient was removed before finish()");
    }
  }
  // A wait that is interrupted may be tried again: what is done is no longer among the bundles.
  while (!state_->bundles.empty()) {
    const Bundle& bundle = state_->bundles.front();
    const IValue done = kEnd.all(bundle.gradients, bundle.ticket)[0];
    for (size_t k = 0; k < bundle.members.size(); ++k) {
      autograd::setGradient(state_->parameters[bundle.members[k]], done.elements()[k].toTensor());
    }
    state_->bundles.erase(state_->bundles.begin());
  }
  state_->clear();
}

void GradientExchange::setActive(bool on) {
  state_->active = on;
}

}  // namespace wick::distributed
