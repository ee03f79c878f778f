#include "distributed/gradient_exchange.h"

#include "autograd/hooks.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "distributed/group.h"
#include "runtime/ops/call.h"

namespace wick::distributed {

struct GradientExchange::State {
  bool active = true;
  std::vector<Tensor> parameters;
  std::vector<Tensor> tickets;  // undefined: nothing was begun
  std::vector<autograd::HookHandle> hooks;
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
  state_->tickets.resize(state_->parameters.size());
  for (size_t i = 0; i < state_->parameters.size(); ++i) {
    // Held weakly: the hook belongs to a parameter, which the state holds.
    state_->hooks.push_back(autograd::registerPostAccumulateHook(
        state_->parameters[i], [weak = std::weak_ptr(state_), i](Tensor& gradient) {
          static const OperatorHandle kBegin("wick::all_reduce_begin", "");
          const std::shared_ptr<State> state = weak.lock();
          if (!state || !state->active || !gradient.defined()) return;
          Tensor& ticket = state->tickets[i];
          WICK_CHECK(!ticket.defined(),
                     "GradientExchange: another walk back before finish(); switch the exchange off "
                     "while gradients are added up");
          const GradModeGuard unrecorded(false);
          ticket = kBegin(gradient.detach(), "mean");
        }));
  }
}

GradientExchange::~GradientExchange() {
  for (autograd::HookHandle& hook : state_->hooks) hook.remove();
}

void GradientExchange::finish() {
  static const OperatorHandle kEnd("wick::all_reduce_end", "");
  const GradModeGuard unrecorded(false);
  for (size_t i = 0; i < state_->parameters.size(); ++i) {
    Tensor& ticket = state_->tickets[i];
    if (!ticket.defined()) continue;
    const Tensor& p = state_->parameters[i];
    const Tensor gradient = autograd::gradientOf(p);
    WICK_CHECK(gradient.defined(), "GradientExchange: a gradient was removed before finish()");
    autograd::setGradient(p, kEnd(gradient.detach(), ticket));
    ticket = Tensor();
  }
}

void GradientExchange::setActive(bool on) {
  state_->active = on;
}

}  // namespace wick::distributed
