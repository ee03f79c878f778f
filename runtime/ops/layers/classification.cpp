// Losses whose target is a class: negative log likelihood, cross entropy, margins, CTC.
#include <cmath>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/losses.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

// self [N, C, D], target [N, D] row-major; the losses [N, D] or their sum or mean, and the sum of
// the weights that took part.
template <class T>
Pair nllKernel(const char* op, const Tensor& self, const Tensor& target, const Tensor& weight,
               int64_t reduction, int64_t ignore) {
  int64_t classes = self.size(1), inner = self.size(2);
  Tensor out = Tensor::empty(target.sizes(), self.dtype());
  const T* x = self.data<T>();
  const T* w = weight.defined() ? weight.data<T>() : nullptr;
  double total = 0, total_weight = 0;
  for (int64_t i = 0; i < target.numel(); ++i) {
    int64_t t = target.data<int64_t>()[i];
    T loss = T(0);
    if (t != ignore) {
      WICK_CHECK(t >= 0 && t < classes, "{}: Target {} is out of bounds.", op, t);
      T scale = w ? w[t] : T(1);
      loss = -x[(i / inner * classes + t) * inner + i % inner] * scale;
      total += static_cast<double>(loss);
      total_weight += static_cast<double>(scale);
    }
    out.data<T>()[i] = loss;
  }
  Tensor weight_sum = Tensor::scalar(static_cast<T>(total_weight));
  if (reduction == kReductionNone) return {out, Tensor::scalar(T(0))};
  double value = reduction == kReductionSum ? total : total / total_weight;
  return {Tensor::scalar(static_cast<T>(value)), weight_sum};
}

Pair nllForward(const char* op, const Tensor& self, const Tensor& target, const Tensor& weight,
                int64_t reduction, int64_t ignore) {
  WICK_CHECK(reduction >= 0 && reduction <= 2, "{}: {} is no kind of reduction", op, reduction);
  WICK_CHECK(self.dim() >= 1, "{}: input tensor should be at least 1D", op);
  WICK_CHECK(target.dtype() == DType::Long || target.dtype() == DType::Byte,
             "{}: expected scalar type Long but found {}", op, scalarTypeName(target.dtype()));
  bool single = self.dim() == 1;
  Tensor x = widened(single ? self.unsqueeze(0) : self);
  Tensor t = single && target.dim() == 0 ? target.unsqueeze(0) : target;
  WICK_CHECK(!weight.defined() || (weight.dim() == 1 && weight.size(0) == x.size(1)),
             "{}: weight tensor should be defined either for all {} classes or no classes but got "
             "weight tensor of shape: {}",
             op, x.size(1), weight.defined() ? formatInts(weight.sizes()) : "");
  bool fits = t.dim() == x.dim() - 1 && t.dim() >= 1 && t.size(0) == x.size(0);
  for (int64_t d = 2; fits && d < x.dim(); ++d) fits = x.size(d) == t.size(d - 1);
  WICK_CHECK(fits, "{}: size mismatch (got input: {}, target: {})", op, formatInts(self.sizes()),
             formatInts(target.sizes()));
  int64_t inner = 1;
  for (int64_t d = 2; d < x.dim(); ++d) inner *= x.size(d);
  Tensor flat = x.contiguous().view(DimVector{x.size(0), x.size(1), inner});
  Tensor index = t.to(DType::Long).contiguous();
  auto [out, total] = dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    Tensor w = weight.defined() ? weight.to(x.dtype()).contiguous() : weight;
    return nllKernel<T>(op, flat, index, w, reduction, ignore);
  });
  if (reduction == kReductionNone && single) out = out.view(target.sizes());
  return {out.to(self.dtype()), total.to(self.dtype())};
}

Tensor nllLoss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
               int64_t ignore) {
  return std::get<0>(nllForward("nll_loss", self, target, weight, reduction, ignore));
}
Pair nllLossForward(const Tensor& self, const Tensor& target, const Tensor& weight,
                    int64_t reduction, int64_t ignore) {
  return nllForward("nll_loss_forward", self, target, weight, reduction, ignore);
}

const OperatorHandle kGather{"aten::gather", ""};

// The weight as [1, C, 1, …], to multiply log-probabilities.
Tensor perClass(const Tensor& weight, const Tensor& like) {
  DimVector shape(static_cast<size_t>(like.dim()), 1);
  shape[like.dim() == 1 ? 0 : 1] = weight.numel();
  return ops::view(weight, shape);
}

// Targets are probabilities of every class.
Tensor crossEntropyProbabilities(const Tensor& self, const Tensor& target, const Tensor& weight,
                                 int64_t reduction, double smoothing) {
  int64_t dim = self.dim() == 1 ? 0 : 1;
  int64_t classes = self.size(dim);
  Tensor t = target;
  if (smoothing > 0) {
    t = ops::addScalar(ops::mulScalar(target, 1 - smoothing),
                       smoothing / static_cast<double>(classes));
  }
  Tensor terms = ops::mul(ops::logSoftmax(self, dim), t);
  if (weight.defined()) terms = ops::mul(terms, perClass(weight, self));
  if (reduction == kReductionNone) return ops::neg(ops::sumDims(terms, DimVector{dim}));
  Tensor total = ops::neg(ops::sum(terms));
  if (reduction == kReductionSum) return total;
  WICK_CHECK(classes > 0, "cross_entropy_loss: there are no classes");
  return ops::divScalar(total, static_cast<double>(self.numel() / classes));
}

Tensor crossEntropySmoothed(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction, int64_t ignore, double smoothing) {
  int64_t dim = self.dim() == 1 ? 0 : 1;
  Tensor log_p = ops::logSoftmax(self, dim);
  Tensor nll = ops::nllLoss(log_p, target, weight, reduction, ignore);
  Tensor smooth = weight.defined() ? ops::mul(log_p, perClass(weight, self)) : log_p;
  smooth = ops::neg(ops::sumDims(smooth, DimVector{dim}));
  Tensor ignored = ops::eqScalar(target, ignore);
  smooth = ops::maskedFill(smooth, ignored, 0.0);
  Tensor result = smooth;
  if (reduction == kReductionSum) {
    result = ops::sum(smooth);
  } else if (reduction == kReductionMean && weight.defined()) {
    Tensor safe = ops::maskedFill(target, ignored, 0);
    Tensor picked = kGather(weight, 0, safe.flatten());
    Tensor total = ops::sum(ops::maskedFill(picked, ignored.flatten(), 0.0));
    result = ops::div(ops::sum(smooth), total);
  } else if (reduction == kReductionMean) {
    Tensor skipped = ops::sum(ignored);
    double count = static_cast<double>(target.numel() - skipped.item<int64_t>());
    result = ops::divScalar(ops::sum(smooth), count);
  }
  double share = smoothing / static_cast<double>(self.size(dim));
  return ops::add(ops::mulScalar(nll, 1 - smoothing), ops::mulScalar(result, share));
}

Tensor crossEntropyLoss(const Tensor& self, const Tensor& target, const Tensor& weight,
                        int64_t reduction, int64_t ignore, double smoothing) {
  WICK_CHECK(smoothing >= 0 && smoothing <= 1,
             "label_smoothing must be between 0.0 and 1.0. Got: {}", smoothing);
  WICK_CHECK(self.dim() >= 1, "cross_entropy_loss: input tensor should be at least 1D");
  if (DimVector(self.sizes()) == DimVector(target.sizes())) {
    WICK_CHECK(isFloating(target.dtype()),
               "Expected floating point type for target with class probabilities, got {}",
               scalarTypeName(target.dtype()));
    WICK_CHECK(ignore < 0, "ignore_index is not supported for floating point target");
    return crossEntropyProbabilities(self, target, weight, reduction, smoothing);
  }
  if (smoothing > 0) {
    return crossEntropySmoothed(self, target, weight, reduction, ignore, smoothing);
  }
  return ops::nllLoss(ops::logSoftmax(self, self.dim() == 1 ? 0 : 1), target, weight, reduction,
                      ignore);
}

Tensor multiMarginLoss(const Tensor& self, const Tensor& target, const Scalar& p,
                       const Scalar& margin, const Tensor& weight, int64_t reduction) {
  const char* op = "multi_margin_loss";
  checkMultiMargin(op, self, target, p);
  int64_t classes = self.dim() == 0 ? 1 : self.size(-1), rows = self.numel() / classes;
  Tensor x = self.contiguous(), t = target.contiguous();
  Tensor out = Tensor::empty(target.sizes(), self.dtype());
  dispatch<kFloats>(op, self.dtype(), [&]<class T>() {
    Tensor w = weight.defined() ? weight.to(self.dtype()).contiguous() : weight;
    WICK_CHECK(!w.defined() || w.numel() == classes, "{}: inconsistent weight size", op);
    for (int64_t i = 0; i < rows; ++i) {
      const T* row = x.data<T>() + i * classes;
      int64_t y = t.data<int64_t>()[i];
      WICK_CHECK(y >= 0 && y < classes, "{}: target out of range", op);
      T sum = 0;
      for (int64_t c = 0; c < classes; ++c) {
        T z = margin.to<T>() - row[y] + row[c];
        if (c == y || !(z > 0)) continue;
        T h = p.toDouble() == 1 ? z : z * z;
        sum += w.defined() ? h * w.data<T>()[y] : h;
      }
      out.data<T>()[i] = sum / static_cast<T>(classes);
    }
  });
  return reduceLoss(op, out, reduction);
}

// Targets of a row are listed up to the first negative entry.
Pair multilabelMarginForward(const Tensor& self, const Tensor& target, int64_t reduction) {
  const char* op = "multilabel_margin_loss";
  WICK_CHECK(self.dim() <= 2 && DimVector(self.sizes()) == DimVector(target.sizes()) &&
                 target.dtype() == DType::Long,
             "{}: inconsistent target size {} for input {}", op, target.describe(),
             self.describe());
  int64_t classes = self.dim() == 0 ? 1 : self.size(-1);
  int64_t rows = self.dim() == 2 ? self.size(0) : 1;
  Tensor x = self.contiguous(), t = target.contiguous();
  Tensor out = Tensor::zeros(self.dim() == 2 ? DimVector{rows} : DimVector{}, self.dtype());
  Tensor is_target = Tensor::zeros(self.sizes(), self.dtype());
  dispatch<kFloats>(op, self.dtype(), [&]<class T>() {
    Pace pace;
    for (int64_t i = 0; i < rows; ++i) {
      const T* row = x.data<T>() + i * classes;
      const int64_t* labels = t.data<int64_t>() + i * classes;
      T* flags = is_target.data<T>() + i * classes;
      for (int64_t c = 0; c < classes; ++c) {
        WICK_CHECK(labels[c] >= -1 && labels[c] < classes,
                   "{}: argument #2 'target' is out of range", op);
      }
      int64_t count = 0;
      for (; count < classes && labels[count] >= 0; ++count) {
        flags[labels[count]] = 1;
      }
      T sum = 0;
      for (int64_t k = 0; k < count; ++k) {
        pace.step(classes);
        for (int64_t c = 0; c < classes; ++c) {
          T z = 1 - row[labels[k]] + row[c];
          if (flags[c] == 0 && z > 0) sum += z;
        }
      }
      out.data<T>()[i] = classes == 0 ? sum : sum / static_cast<T>(classes);
    }
  });
  return {reduceLoss(op, out, reduction), is_target};
}
Tensor multilabelMarginLoss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return std::get<0>(multilabelMarginForward(self, target, reduction));
}

// The forward recursion over the target with blanks between its labels. log_probs [T, N, C] in
// double precision; writes log_alpha [N, T, 2 S + 1].
double ctcOne(const double* log_probs, int64_t time, int64_t step, const int64_t* labels,
              int64_t length, int64_t blank, double* alpha, int64_t width) {
  auto label = [&](int64_t s) { return s % 2 ? labels[s / 2] : blank; };
  int64_t states = 2 * length + 1;
  if (time == 0) return length == 0 ? 0 : HUGE_VAL;
  alpha[0] = log_probs[blank];
  if (length > 0) alpha[1] = log_probs[labels[0]];
  for (int64_t t = 1; t < time; ++t) {
    const double* before = alpha + (t - 1) * width;
    double* now = alpha + t * width;
    for (int64_t s = 0; s < states; ++s) {
      double sum = before[s];
      if (s > 0) sum = logAdd(sum, before[s - 1]);
      if (s > 1 && s % 2 && label(s) != label(s - 2)) sum = logAdd(sum, before[s - 2]);
      now[s] = sum + log_probs[t * step + label(s)];
    }
  }
  const double* end = alpha + (time - 1) * width;
  return -(length > 0 ? logAdd(end[states - 1], end[states - 2]) : end[0]);
}

Pair ctcForward(const Tensor& log_probs, const Tensor& targets, const DimVector& input_lengths,
                const DimVector& target_lengths, int64_t blank, bool zero_infinity) {
  const char* op = "ctc_loss";
  if (!log_probs.device().isCpu()) {
    static const OperatorHandle kCtc{"aten::_ctc_loss", ""};
    const std::vector<IValue> both = kCtc.all(log_probs, moveTo(targets, log_probs.device()),
                                              input_lengths, target_lengths, blank, zero_infinity);
    return {both[0].toTensor(), both[1].toTensor()};
  }
  const CtcTask task =
      ctcTask(op, Tensor(), log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor labels = ctcLabels(op, task, targets);
  const Tensor probs = log_probs.to(DType::Double).contiguous();
  const int64_t samples = task.samples, width = 2 * task.longest + 1;
  Tensor alpha = Tensor::full(DimVector{samples, task.time, width}, -HUGE_VAL, DType::Double);
  Tensor losses = Tensor::empty(DimVector{samples}, DType::Double);
  for (int64_t n = 0; n < samples; ++n) {
    const int64_t* place = task.place(n);
    const double loss = ctcOne(probs.data<double>() + n * task.classes, place[0],
                               samples * task.classes, labels.data<int64_t>() + place[2], place[1],
                               blank, alpha.data<double>() + n * task.time * width, width);
    losses.data<double>()[n] = zero_infinity && std::isinf(loss) ? 0 : loss;
  }
  return {losses.to(log_probs.dtype()), alpha.to(log_probs.dtype())};
}

Pair ctcForwardPlain(const Tensor& log_probs, const Tensor& targets, const DimVector& input_lengths,
                     const DimVector& target_lengths, int64_t blank, bool zero_infinity) {
  return ctcForward(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
}

Tensor ctcLoss(const Tensor& log_probs, const Tensor& targets, const DimVector& input_lengths,
               const DimVector& target_lengths, int64_t blank, int64_t reduction,
               bool zero_infinity) {
  bool single = log_probs.dim() == 2;
  Tensor x = single ? log_probs.unsqueeze(1) : log_probs;
  Tensor t = single && targets.dim() == 1 ? targets.unsqueeze(0) : targets;
  Tensor losses =
      std::get<0>(ctcForward(x, t, input_lengths, target_lengths, blank, zero_infinity));
  if (reduction == kReductionMean) {
    Tensor lengths = Tensor::empty(losses.sizes(), losses.dtype());
    dispatch<kFloats>("ctc_loss", losses.dtype(), [&]<class T>() {
      for (int64_t n = 0; n < losses.numel(); ++n) {
        lengths.data<T>()[n] =
            static_cast<T>(std::max<int64_t>(1, target_lengths[static_cast<size_t>(n)]));
      }
    });
    losses = ops::div(losses, moveTo(lengths, losses.device()));
  }
  Tensor out = reduceLoss("ctc_loss", losses, reduction);
  return single && reduction == kReductionNone ? out.squeeze(0) : out;
}

DimVector lengthsOf(const Tensor& t) {
  WICK_CHECK(isIntegral(t.dtype(), false) && t.dim() <= 1,
             "ctc_loss: lengths must be integral, got {}", t.describe());
  Tensor l = moveTo(t, Device()).to(DType::Long).contiguous();
  return DimVector(l.data<int64_t>(), l.data<int64_t>() + l.numel());
}
Tensor ctcLossTensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                     const Tensor& target_lengths, int64_t blank, int64_t reduction,
                     bool zero_infinity) {
  return ctcLoss(log_probs, targets, lengthsOf(input_lengths), lengthsOf(target_lengths), blank,
                 reduction, zero_infinity);
}

Pair ctcForwardTensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                      const Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  return ctcForward(log_probs, targets, lengthsOf(input_lengths), lengthsOf(target_lengths), blank,
                    zero_infinity);
}

#define WICK_NLL_DEFAULTS \
  "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100"
#define WICK_NLL_FORWARD                                                                      \
  "(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor " \
  "output, Tensor total_weight)"

constexpr OperatorRecord kClassificationRecords[] = {
    {"aten::nll_loss" WICK_NLL_DEFAULTS ") -> Tensor", WICK_KERNEL(nllLoss),
     kOutForm | kRaisesByElements | kCastFull | kEagerCastFull, ops::shapes::classLoss},
    {"aten::nll_loss2d" WICK_NLL_DEFAULTS ") -> Tensor", WICK_KERNEL(nllLoss),
     kOutForm | kRaisesByElements | kCastFull | kEagerCastFull, ops::shapes::classLoss},
    {"aten::nll_loss_nd" WICK_NLL_DEFAULTS ") -> Tensor", WICK_KERNEL(nllLoss),
     kRaisesByElements | kEagerCastFull, ops::shapes::classLoss},
    {"aten::nll_loss_forward" WICK_NLL_FORWARD, WICK_KERNEL(nllLossForward), kRaisesByElements},
    {"aten::nll_loss2d_forward" WICK_NLL_FORWARD, WICK_KERNEL(nllLossForward), kRaisesByElements},
    {"aten::cross_entropy_loss" WICK_NLL_DEFAULTS ", float label_smoothing=0.0) -> Tensor",
     WICK_KERNEL(crossEntropyLoss), kRaisesByElements | kEagerCastFull | kRowMajor,
     ops::shapes::classLoss},
    {"aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
     "weight=None, int reduction=1) -> Tensor",
     WICK_KERNEL(multiMarginLoss),
     kOutForm | kOutSame | kRaisesByElements | kCastFull | kEagerCastFull},
    {"aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
     WICK_KERNEL(multilabelMarginLoss),
     kOutForm | kOutSame | kRaisesByElements | kCastFull | kEagerCastFull},
    {"aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor "
     "output, Tensor is_target)",
     WICK_KERNEL(multilabelMarginForward)},
    {"aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
     "target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     WICK_KERNEL(ctcLoss), kNeutralMixed | kRaisesByElements | kEagerCastFull},
    {"aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
     "target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     WICK_KERNEL(ctcLossTensor), kNeutralMixed | kRaisesByElements | kEagerCastFull},
    {"aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
     "target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
     WICK_KERNEL(ctcForwardPlain)},
    {"aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
     "target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
     WICK_KERNEL(ctcForwardTensor), kNeutralMixed},
};

const RegisterOperators kClassificationRegistered(kClassificationRecords);

}  // namespace

CtcTask ctcTask(const char* op, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                const DimVector& input_lengths, const DimVector& target_lengths, int64_t blank) {
  WICK_CHECK(log_probs.dim() == 3 && log_probs.numel() > 0,
             "{}: expected log_probs of shape (T, N, C), got {}", op, log_probs.describe());
  const int64_t time = log_probs.size(0), samples = log_probs.size(1), classes = log_probs.size(2);
  WICK_CHECK(!grad.defined() || grad.numel() == samples,
             "{}: a gradient {} does not fit log_probs {}", op, grad.describe(),
             log_probs.describe());
  WICK_CHECK(blank >= 0 && blank < classes, "{}: blank must be in label range", op);
  WICK_CHECK(static_cast<int64_t>(input_lengths.size()) == samples &&
                 static_cast<int64_t>(target_lengths.size()) == samples,
             "{}: input_lengths and target_lengths must be of size batch_size", op);
  const bool rows = targets.dim() == 2;
  WICK_CHECK(targets.dim() == 1 || (rows && targets.size(0) == samples),
             "{}: targets should have shape (N, S) or (sum(target_lengths),), got {}", op,
             formatInts(targets.sizes()));
  CtcTask task{time, samples, classes, 0, Tensor::empty(DimVector{samples, 3}, DType::Long)};
  int64_t listed = 0;
  for (int64_t n = 0; n < samples; ++n) {
    const int64_t steps = input_lengths[static_cast<size_t>(n)];
    const int64_t labels = target_lengths[static_cast<size_t>(n)];
    WICK_CHECK(steps >= 0 && steps <= time,
               "{}: Expected input_lengths to have value at most {}, but got value {}", op, time,
               steps);
    WICK_CHECK(labels >= 0 && labels <= targets.numel(), "{}: a target length is out of range: {}",
               op, labels);
    int64_t* const to = task.places.data<int64_t>() + 3 * n;
    to[0] = steps;
    to[1] = labels;
    to[2] = rows ? n * targets.size(1) : listed;
    task.longest = std::max(task.longest, labels);
    listed += labels;
  }
  WICK_CHECK(rows ? targets.size(1) >= task.longest : targets.numel() == listed,
             "{}: targets of shape {} do not hold the target lengths", op,
             formatInts(targets.sizes()));
  return task;
}

Tensor ctcLabels(const char* op, const CtcTask& task, const Tensor& targets) {
  const Tensor labels = targets.to(DType::Long).contiguous();
  for (int64_t n = 0; n < task.samples; ++n) {
    const int64_t* const own = labels.data<int64_t>() + task.place(n)[2];
    for (int64_t s = 0; s < task.place(n)[1]; ++s) {
      WICK_CHECK(own[s] >= 0 && own[s] < task.classes, "{}: label {} is out of range", op, own[s]);
    }
  }
  return labels;
}

}  // namespace wick
