// The loss of a recurrent neural transducer (Graves 2012), with its gradient, as torchaudio has it.
#include <cmath>
#include <limits>

#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "ir/operator.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/call.h"

namespace wick::ops::audio {

namespace {

constexpr const char* kRnntName = "rnnt_loss";
constexpr float kNever = -std::numeric_limits<float>::infinity();

// Logits are [batch, times, positions, classes]; position u stands after u targets.
struct Sizes {
  int64_t batch, times, positions, classes;
};

Sizes checkedSizes(const Tensor& logits, const Tensor& targets, const Tensor& logit_lengths,
                   const Tensor& target_lengths, int64_t blank) {
  WICK_CHECK(logits.dtype() == DType::Float || logits.dtype() == DType::Half,
             "{}: logits must be float32 or float16 (half) type, got {}", kRnntName,
             toString(logits.dtype()));
  WICK_CHECK(logits.dim() == 4, "{}: logits must be 4-D (batch, time, target, class), got {}",
             kRnntName, formatInts(logits.sizes()));
  const Sizes s{logits.size(0), logits.size(1), logits.size(2), logits.size(3)};
  WICK_CHECK(targets.dtype() == DType::Int && logit_lengths.dtype() == DType::Int &&
                 target_lengths.dtype() == DType::Int,
             "{}: targets and lengths must be int32 type, got {}, {} and {}", kRnntName,
             toString(targets.dtype()), toString(logit_lengths.dtype()),
             toString(target_lengths.dtype()));
  WICK_CHECK(targets.dim() == 2, "{}: targets must be 2-D (batch, max target length), got {}",
             kRnntName, formatInts(targets.sizes()));
  WICK_CHECK(logit_lengths.dim() == 1 && target_lengths.dim() == 1,
             "{}: logit_lengths and target_lengths must be 1-D", kRnntName);
  WICK_CHECK(targets.size(0) == s.batch && logit_lengths.size(0) == s.batch &&
                 target_lengths.size(0) == s.batch,
             "{}: batch dimension mismatch: logits have {}, targets {}, logit_lengths {}, "
             "target_lengths {}",
             kRnntName, s.batch, targets.size(0), logit_lengths.size(0), target_lengths.size(0));
  WICK_CHECK(blank >= 0 && blank < s.classes,
             "{}: blank must be within [0, logits.shape[-1]), got {} of {}", kRnntName, blank,
             s.classes);
  WICK_CHECK(targets.size(1) == s.positions - 1,
             "{}: target length mismatch: {} targets, logits for {}", kRnntName, targets.size(1),
             s.positions - 1);
  return s;
}

// What the lattice of one sequence needs: times x positions of it are used.
struct Sequence {
  int64_t times, positions;
  const int32_t* targets;
};

Sequence checkedSequence(const Sizes& s, int64_t b, const Tensor& targets,
                         const Tensor& logit_lengths, const Tensor& target_lengths) {
  const Sequence q{logit_lengths.data<int32_t>()[b], int64_t{target_lengths.data<int32_t>()[b]} + 1,
                   targets.data<int32_t>() + b * (s.positions - 1)};
  WICK_CHECK(q.times >= 1 && q.times <= s.times, "{}: logit length {} of sequence {}, not in 1..{}",
             kRnntName, q.times, b, s.times);
  WICK_CHECK(q.positions >= 1 && q.positions <= s.positions,
             "{}: target length {} of sequence {}, not in 0..{}", kRnntName, q.positions - 1, b,
             s.positions - 1);
  for (int64_t u = 0; u + 1 < q.positions; ++u) {
    WICK_CHECK(q.targets[u] >= 0 && q.targets[u] < s.classes,
               "{}: target {} of sequence {}, not in 0..{}", kRnntName, q.targets[u], b,
               s.classes - 1);
  }
  return q;
}

float logOfSum(float a, float b) {
  const float larger = std::max(a, b);
  if (larger == kNever) return kNever;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

struct Options {
  int64_t blank;
  float clamp;
  bool fused_softmax;
};

// Probabilities of one sequence, all as logarithms, by time and position.
template <class T>
class Lattice {
 public:
  Lattice(const Sizes& s, const Sequence& q, const Options& options, const T* logits)
      : s_(s), q_(q), options_(options), logits_(logits) {
    const auto cells = static_cast<size_t>(q.times * q.positions);
    for (CountedVector<float>* v : {&total_, &skip_, &emit_, &alpha_, &beta_}) v->resize(cells);
    for (int64_t t = 0; t < q.times; ++t) {
      for (int64_t u = 0; u < q.positions; ++u) weigh(t, u);
    }
    forward();
    backward();
  }

  float cost() const { return -beta_[0]; }

  // Gradients of the cost by the logits: of the whole softmax, or of logits that are logarithms of
  // probabilities already.
  void gradients(T* to) {
    for (int64_t t = 0; t < q_.times; ++t) {
      for (int64_t u = 0; u < q_.positions; ++u) {
        pace_.step(s_.classes);
        for (int64_t d = 0; d < s_.classes; ++d) {
          float g = gradient(t, u, d);
          if (options_.clamp > 0) {
            g = std::max(std::min(g, options_.clamp), -options_.clamp);
          }
          to[(t * s_.positions + u) * s_.classes + d] = convert<T>(g);
        }
      }
    }
  }

 private:
  int64_t at(int64_t t, int64_t u) const { return t * q_.positions + u; }
  float logit(int64_t t, int64_t u, int64_t d) const {
    return static_cast<float>(logits_[(t * s_.positions + u) * s_.classes + d]);
  }

  // Probabilities of going on to the next time, and of giving the next target.
  void weigh(int64_t t, int64_t u) {
    pace_.step(s_.classes);
    float total = 0;
    if (options_.fused_softmax) {
      float largest = logit(t, u, 0);
      for (int64_t d = 1; d < s_.classes; ++d) largest = std::max(largest, logit(t, u, d));
      float sum = 0;
      for (int64_t d = 0; d < s_.classes; ++d) sum += std::exp(logit(t, u, d) - largest);
      total = largest + std::log(sum);
    }
    total_[at(t, u)] = total;
    skip_[at(t, u)] = logit(t, u, options_.blank) - total;
    emit_[at(t, u)] = u + 1 < q_.positions ? logit(t, u, q_.targets[u]) - total : kNever;
  }

  // Probabilities of what leads to a cell.
  void forward() {
    for (int64_t t = 0; t < q_.times; ++t) {
      for (int64_t u = 0; u < q_.positions; ++u) {
        const float skipped = t > 0 ? alpha_[at(t - 1, u)] + skip_[at(t - 1, u)] : kNever;
        const float emitted = u > 0 ? alpha_[at(t, u - 1)] + emit_[at(t, u - 1)] : kNever;
        alpha_[at(t, u)] = t == 0 && u == 0 ? 0.0f
                           : t == 0         ? emitted
                           : u == 0         ? skipped
                                            : logOfSum(skipped, emitted);
      }
    }
  }
  // Probabilities of what follows from a cell.
  void backward() {
    for (int64_t t = q_.times - 1; t >= 0; --t) {
      for (int64_t u = q_.positions - 1; u >= 0; --u) {
        const bool last_time = t == q_.times - 1, last_position = u == q_.positions - 1;
        const float skipped = last_time ? kNever : beta_[at(t + 1, u)] + skip_[at(t, u)];
        const float emitted = last_position ? kNever : beta_[at(t, u + 1)] + emit_[at(t, u)];
        beta_[at(t, u)] = last_time && last_position ? skip_[at(t, u)]
                          : last_time                ? emitted
                          : last_position            ? skipped
                                                     : logOfSum(skipped, emitted);
      }
    }
  }

  // Probability of what follows when class d is chosen at a cell; never when it ends nowhere.
  float next(int64_t t, int64_t u, int64_t d) const {
    const bool last_time = t == q_.times - 1, last_position = u == q_.positions - 1;
    if (d == options_.blank && last_time && last_position) return 0;
    if (d == options_.blank && !last_time) return beta_[at(t + 1, u)];
    if (!last_position && d == q_.targets[u]) return beta_[at(t, u + 1)];
    return kNever;
  }
  float gradient(int64_t t, int64_t u, int64_t d) const {
    const float chosen = alpha_[at(t, u)] + cost() + logit(t, u, d) - total_[at(t, u)];
    const float taken = std::exp(chosen + next(t, u, d));
    return options_.fused_softmax ? std::exp(chosen + beta_[at(t, u)]) - taken : -taken;
  }

  const Sizes& s_;
  const Sequence& q_;
  const Options& options_;
  const T* logits_;
  CountedVector<float> total_, skip_, emit_, alpha_, beta_;
  Pace pace_;
};

// Costs [batch], and their gradients in the logits' sizes.
std::tuple<Tensor, Tensor> rnntLoss(const Tensor& logits, const Tensor& targets,
                                    const Tensor& logit_lengths, const Tensor& target_lengths,
                                    int64_t blank, double clamp, bool fused_log_softmax) {
  const Sizes s = checkedSizes(logits, targets, logit_lengths, target_lengths, blank);
  const Tensor from = logits.contiguous(), wanted = targets.contiguous();
  const Tensor times = logit_lengths.contiguous(), counts = target_lengths.contiguous();
  const Tensor costs = Tensor::empty(DimVector{s.batch}, logits.dtype());
  const Tensor gradients = Tensor::zeros(logits.sizes(), logits.dtype());
  const Options options{blank, static_cast<float>(clamp), fused_log_softmax};
  dispatch<kFloats | kReducedFloats>(kRnntName, logits.dtype(), [&]<class T>() {
    parallelFor(s.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const Sequence q = checkedSequence(s, b, wanted, times, counts);
        const int64_t offset = b * s.times * s.positions * s.classes;
        Lattice<T> lattice(s, q, options, from.data<T>() + offset);
        costs.data<T>()[b] = convert<T>(lattice.cost());
        lattice.gradients(gradients.data<T>() + offset);
      }
    });
  });
  return {costs, gradients};
}

constexpr OperatorRecord kRnntRecords[] = {
    {"torchaudio::rnnt_loss(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor "
     "target_lengths, int blank, float clamp, bool fused_log_softmax=True) -> (Tensor, Tensor)",
     WICK_KERNEL(rnntLoss)},
};
const RegisterOperators kRnntRegistered(kRnntRecords);

}  // namespace

}  // namespace wick::ops::audio
