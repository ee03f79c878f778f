// Gradients of the negative log likelihood and of CTC.
#include <cmath>

#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/losses.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::autograd {

namespace {

// A gradient of `sizes` [N, C, …] (or [C]): at each target class minus its weight, times the
// gradient of its loss.
Tensor nllGradient(const Tensor& grad_in, const DimVector& sizes, const Tensor& target_in,
                   const Tensor& weight_in, int64_t reduction, int64_t ignore) {
  const char* op = "nll_loss_gradient";
  const auto [batch, classes, target, grad] =
      nllGradientOf(op, grad_in, sizes, target_in, reduction);
  const int64_t losses = target.numel();
  Tensor out = Tensor::zeros(sizes, grad.dtype());
  const int64_t inner = batch == 0 ? 1 : losses / batch;
  dispatch<kFloats>(op, grad.dtype(), [&]<class T>() {
    const Tensor weight = weight_in.defined() ? weight_in.to(grad.dtype()).contiguous() : weight_in;
    WICK_CHECK(!weight.defined() || weight.numel() == classes, "{}: expected {} weights, got {}",
               op, classes, weight_in.describe());
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const int64_t* t = target.data<int64_t>();
    double total = 0;
    for (int64_t i = 0; i < losses; ++i) {
      if (t[i] == ignore) continue;
      WICK_CHECK(t[i] >= 0 && t[i] < classes, "{}: Target {} is out of bounds.", op, t[i]);
      total += w ? static_cast<double>(w[t[i]]) : 1;
    }
    const T* g = grad.data<T>();
    const T share = reduction == kReductionMean ? static_cast<T>(total) : T(1);
    for (int64_t i = 0; i < losses; ++i) {
      if (t[i] == ignore) continue;
      const T each = reduction == kReductionNone ? g[i] : g[0] / share;
      out.data<T>()[(i / inner * classes + t[i]) * inner + i % inner] =
          -each * (w ? w[t[i]] : T(1));
    }
  });
  return out.to(grad_in.dtype());
}

// One sequence: its log-probabilities [time, classes] lie `step` apart.
struct CtcSequence {
  const double* log_probs;
  int64_t step, time, classes;
  const int64_t* labels;
  int64_t length, blank;
  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t s) const { return s % 2 ? labels[s / 2] : blank; }
  double at(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
};

// The logarithms of the probabilities of all ways to a state, its own included, from the beginning
// or, read backwards, from the end.
Tensor ways(const CtcSequence& q, bool backwards, Pace& pace) {
  const int64_t states = q.states();
  Tensor kept = Tensor::full(DimVector{q.time, states}, -HUGE_VAL, DType::Double);
  double* const out = kept.data<double>();
  const auto state = [&](int64_t s) { return backwards ? states - 1 - s : s; };
  const auto cell = [&](int64_t t, int64_t s) -> double& {
    const int64_t time = backwards ? q.time - 1 - t : t;
    return out[time * states + state(s)];
  };
  const auto logProb = [&](int64_t t, int64_t s) {
    return q.at(backwards ? q.time - 1 - t : t, state(s));
  };
  for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) cell(0, s) = logProb(0, s);
  for (int64_t t = 1; t < q.time; ++t) {
    pace.step(states);
    for (int64_t s = 0; s < states; ++s) {
      double sum = cell(t - 1, s);
      if (s > 0) sum = logAdd(sum, cell(t - 1, s - 1));
      if (s > 1 && s % 2 && q.label(state(s)) != q.label(state(s - 2))) {
        sum = logAdd(sum, cell(t - 1, s - 2));
      }
      cell(t, s) = sum + logProb(t, s);
    }
  }
  return kept;
}

// Adds to `out`, which lies like the log-probabilities. As PyTorch's, the gradient supposes that
// they come from log_softmax: of all ways to shift them it takes the one that log_softmax keeps.
void ctcOne(const CtcSequence& q, double grad, bool zero_infinity, double* out, Pace& pace) {
  if (q.time == 0) return;
  const Tensor forwards = ways(q, false, pace), backwards = ways(q, true, pace);
  const double *alpha = forwards.data<double>(), *beta = backwards.data<double>();
  const int64_t states = q.states(), last = (q.time - 1) * states;
  double log_likelihood = alpha[last + states - 1];
  if (states > 1) {
    log_likelihood = logAdd(log_likelihood, alpha[last + states - 2]);
  }
  if (zero_infinity && log_likelihood == -HUGE_VAL) return;
  Tensor scratch = Tensor::empty(DimVector{q.classes}, DType::Double);
  double* const sums = scratch.data<double>();
  for (int64_t t = 0; t < q.time; ++t) {
    pace.step(q.classes + states);
    std::fill(sums, sums + q.classes, -HUGE_VAL);
    for (int64_t s = 0; s < states; ++s) {
      const int64_t i = t * states + s;
      double& sum = sums[q.label(s)];
      sum = logAdd(sum, alpha[i] + beta[i]);
    }
    for (int64_t c = 0; c < q.classes; ++c) {
      const double p = q.log_probs[t * q.step + c];
      out[t * q.step + c] = (std::exp(p) - std::exp(sums[c] - log_likelihood - p)) * grad;
    }
  }
}

Tensor ctcGradient(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                   const DimVector& input_lengths, const DimVector& target_lengths, int64_t blank,
                   bool zero_infinity) {
  const char* op = "ctc_gradient";
  const CtcTask task = ctcTask(op, grad, log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor labels = ctcLabels(op, task, targets);
  const Tensor probs = log_probs.to(DType::Double).contiguous();
  const Tensor g = grad.to(DType::Double).contiguous();
  Tensor out = Tensor::zeros(log_probs.sizes(), DType::Double);
  Pace pace;
  for (int64_t n = 0; n < task.samples; ++n) {
    const int64_t at = n * task.classes;
    const int64_t* place = task.place(n);
    const CtcSequence q{probs.data<double>() + at,
                        task.samples * task.classes,
                        place[0],
                        task.classes,
                        labels.data<int64_t>() + place[2],
                        place[1],
                        blank};
    ctcOne(q, g.data<double>()[n], zero_infinity, out.data<double>() + at, pace);
  }
  return out.to(log_probs.dtype());
}

constexpr OperatorRecord kKernelsNnLossesRecords[] = {
    {"wick::nll_loss_gradient(Tensor grad_output, int[] size, Tensor target, Tensor? weight, int "
     "reduction, int ignore_index) -> Tensor",
     WICK_KERNEL(nllGradient), kNoFlags, ops::shapes::strided},
    {"wick::ctc_gradient(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
     "target_lengths, int blank, bool zero_infinity) -> Tensor",
     WICK_KERNEL(ctcGradient)},
};
const RegisterOperators kKernelsNnLossesRegistered(kKernelsNnLossesRecords);

}  // namespace

}  // namespace wick::autograd
