// What a training makes small, and how often a model is right.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ivalue.h"

namespace wick::training {

// A loss by name: cross_entropy, nll, mse, l1, smooth_l1, bce, bce_with_logits. Or a function of an
// application, from the model's output and the targets. Thread-safe but for the application's
// function.
class Objective {
 public:
  using Function = std::function<Tensor(const IValue& output, const Tensor& targets)>;

  // UsageError that lists the names when there is no such loss.
  explicit Objective(const std::string& name);
  explicit Objective(Function function) : function_(std::move(function)) {}

  static const std::vector<std::string>& names();
  // Whether it is one by name.
  bool isKnown() const { return known_ != nullptr; }

  // The targets of a whole set as the loss wants them: numbers of classes become int64; whole
  // numbers and bools where the loss computes with them become the dtype of the output.
  // RuntimeError when they cannot fit an output like this one: its shape, its dtype, a number of a
  // class that is out of range, with the sample that has it. `output` is of one batch.
  Tensor fittedTargets(const IValue& output, const Tensor& targets) const;
  // RuntimeError that names what does not fit.
  Tensor loss(const IValue& output, const Tensor& targets) const;

  struct Count {
    int64_t right = 0;
    int64_t decisions = 0;
  };
  // How often the output decides as the targets do: the largest class, a probability above a half.
  // `right` computes it where the output is and waits for nothing; undefined for losses that decide
  // nothing, which have no Count.
  Tensor right(const IValue& output, const Tensor& targets) const;
  // The same with an output that decides right when the target is among its `most` largest classes. Undefined for losses
  // that do not decide among classes.
  Tensor rightAmong(const IValue& output, const Tensor& targets, int64_t most) const;
  static std::optional<Count> countOf(const Tensor& right, const Tensor& targets);

 private:
  enum class Kind { Classes, Numbers, Probabilities, Logits };
  struct Known {
    const char* name;
    Kind kind;
  };
  static const std::vector<Known>& known();
  Tensor tensorOf(const IValue& output) const;
  void checkClasses(const Tensor& output, const Tensor& targets) const;
  void checkShapes(const Tensor& output, const Tensor& targets) const;

  const Known* known_ = nullptr;  // null: the function
  Function function_;
};

}  // namespace wick::training
