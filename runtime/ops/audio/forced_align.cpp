// The best way of a text through the outputs of a recognizer that was trained with CTC.
#include <limits>

#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "ir/operator.h"
#include "runtime/ops/boxing.h"

namespace wick::ops::audio {

namespace {

constexpr const char* kName = "forced_align";

// States stand for blank, first label, blank, second label, …, blank: 2 * labels + 1 of them.
class Alignment {
 public:
  Alignment(CountedVector<int64_t> labels, int64_t times, int64_t blank)
      : labels_(std::move(labels)), times_(times), blank_(blank) {
    states_ = 2 * static_cast<int64_t>(labels_.size()) + 1;
    int64_t repeats = 0;
    for (size_t i = 1; i < labels_.size(); ++i) repeats += labels_[i] == labels_[i - 1] ? 1 : 0;
    needed_ = static_cast<int64_t>(labels_.size()) + repeats;
    WICK_CHECK(times_ >= needed_,
               "{}: targets length is too long for CTC. Found log_probs length: {}, targets "
               "length: {}, and number of repeats: {}",
               kName, times_, labels_.size(), repeats);
  }

  // `log_probs` is [times, classes]; the class of each time goes to `path`.
  template <class T, class Label>
  void run(const T* log_probs, int64_t classes, Label* path) {
    const T never = convert<T>(-std::numeric_limits<double>::infinity());
    CountedVector<T> before(static_cast<size_t>(states_), never), now(before);
    int64_t cells = 0;
    WICK_CHECK(!__builtin_mul_overflow(times_, states_, &cells), "{}: {} times {} are too many",
               kName, times_, states_);
    steps_.assign(static_cast<size_t>(cells), 0);
    int64_t start = times_ > needed_ ? 0 : 1;
    int64_t end = states_ == 1 ? 1 : 2;
    for (int64_t i = start; i < end; ++i) before[i] = log_probs[classOf(i)];
    Pace pace;
    for (int64_t t = 1; t < times_; ++t) {
      pace.step(states_);
      // Only states from which the end can be reached in time, and which can be reached in time.
      if (times_ - t <= needed_) {
        start += start % 2 == 1 && start + 2 < states_ && label(start) != label(start + 2) ? 2 : 1;
      }
      if (t <= needed_) {
        end += end % 2 == 0 && end + 1 < states_ && label(end - 1) != label(end + 1) ? 2 : 1;
      }
      std::fill(now.begin(), now.end(), never);
      for (int64_t i = start; i < std::min(end, states_); ++i) {
        const int step = bestStep(before, i);
        steps_[t * states_ + i] = static_cast<int8_t>(step);
        now[i] = plus(before[i - step], log_probs[t * classes + classOf(i)]);
      }
      std::swap(before, now);
    }
    int64_t state = states_ - 1;
    if (states_ > 1 && !(before[states_ - 1] > before[states_ - 2])) state = states_ - 2;
    for (int64_t t = times_ - 1; t >= 0; --t) {
      path[t] = static_cast<Label>(classOf(state));
      state -= steps_[t * states_ + state];
    }
  }

 private:
  // Half numbers are summed in half, as in torchaudio.
  template <class T>
  static T plus(T a, T b) {
    if constexpr (sizeof(T) == 2)
      return convert<T>(static_cast<float>(a) + static_cast<float>(b));
    else
      return a + b;
  }

  int64_t label(int64_t state) const { return labels_[state / 2]; }
  int64_t classOf(int64_t state) const { return state % 2 == 0 ? blank_ : label(state); }

  // How many states back the best way to state i comes from: a blank between two different labels
  // may be left out.
  template <class T>
  int bestStep(const CountedVector<T>& before, int64_t i) const {
    if (i == 0) return 0;
    const T stay = before[i];
    const T one = before[i - 1];
    if (i % 2 == 1 && i > 1 && label(i) != label(i - 2)) {
      const T two = before[i - 2];
      if (two > one && two > stay) return 2;
    }
    return one > stay ? 1 : 0;
  }

  CountedVector<int64_t> labels_;
  int64_t times_, blank_, states_ = 0;
  int64_t needed_ = 0;  // times that the labels take, with a blank between equal ones
  CountedVector<int8_t> steps_;
};

int64_t onlyLength(const char* what, const Tensor& lengths) {
  WICK_CHECK(lengths.dim() == 1 && lengths.size(0) == 1 && isIntegral(lengths.dtype(), false),
             "{}: {} must be 1-D with one integer, got {} of {}", kName, what,
             formatInts(lengths.sizes()), toString(lengths.dtype()));
  return lengths.to(DType::Long).data<int64_t>()[0];
}

// Paths [1, times] in the targets' dtype, and the scores, which are log_probs themselves.
std::tuple<Tensor, Tensor> forcedAlign(const Tensor& log_probs, const Tensor& targets,
                                       const Tensor& input_lengths, const Tensor& target_lengths,
                                       int64_t blank) {
  WICK_CHECK(log_probs.dim() == 3 && log_probs.size(0) == 1,
             "{}: log_probs must be 3-D (1, input length, num classes), got {}", kName,
             formatInts(log_probs.sizes()));
  WICK_CHECK(targets.dim() == 2 && targets.size(0) == 1,
             "{}: targets must be 2-D (1, target length), got {}", kName,
             formatInts(targets.sizes()));
  WICK_CHECK(log_probs.dtype() != DType::BFloat16,
             "{}: log_probs must be float64, float32 or float16 (half) type", kName);
  WICK_CHECK(targets.dtype() == DType::Int || targets.dtype() == DType::Long,
             "{}: targets must be int32 or int64 type, got {}", kName, toString(targets.dtype()));
  const int64_t times = log_probs.size(1), classes = log_probs.size(2);
  WICK_CHECK(blank >= 0 && blank < classes, "{}: blank must be within [0, num classes), got {}",
             kName, blank);
  WICK_CHECK(times > 0 && onlyLength("input_lengths", input_lengths) == times,
             "{}: input length mismatch", kName);
  WICK_CHECK(onlyLength("target_lengths", target_lengths) == targets.size(1),
             "{}: target length mismatch", kName);
  const Tensor wanted = targets.to(DType::Long).contiguous();
  CountedVector<int64_t> labels(wanted.data<int64_t>(), wanted.data<int64_t>() + wanted.numel());
  for (const int64_t label : labels) {
    WICK_CHECK(label >= 0 && label < classes, "{}: target {}, not in 0..{}", kName, label,
               classes - 1);
  }
  Alignment alignment(std::move(labels), times, blank);
  const Tensor from = log_probs.contiguous();
  const Tensor paths = Tensor::empty(DimVector{1, times}, targets.dtype());
  dispatch<kFloats | kReducedFloats>(kName, log_probs.dtype(), [&]<class T>() {
    if (targets.dtype() == DType::Int) {
      alignment.run(from.data<T>(), classes, paths.data<int32_t>());
    } else {
      alignment.run(from.data<T>(), classes, paths.data<int64_t>());
    }
  });
  return {paths, log_probs};
}

constexpr OperatorRecord kForcedAlignRecords[] = {
    {"torchaudio::forced_align(Tensor(a) log_probs, Tensor targets, Tensor input_lengths, Tensor "
     "target_lengths, int blank) -> (Tensor, Tensor(a))",
     WICK_KERNEL(forcedAlign), kNotDifferentiable},
};
const RegisterOperators kForcedAlignRegistered(kForcedAlignRecords);

}  // namespace

}  // namespace wick::ops::audio
