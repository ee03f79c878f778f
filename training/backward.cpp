#include "training/backward.h"

#include "autograd/engine.h"
#include "core/error.h"

namespace wick {

void backward(const Tensor& loss) {
  WICK_CHECK(loss.defined(), "backward: the loss is no tensor");
  WICK_CHECK(loss.numel() == 1, "backward: expected a loss of one element, got {}",
             loss.describe());
  autograd::backward({loss}, {Tensor()}, {});
}

Tensor gradientOf(const Tensor& leaf) {
  return autograd::gradientOf(leaf);
}

void setGradient(const Tensor& leaf, Tensor gradient) {
  autograd::setGradient(leaf, std::move(gradient));
}

}  // namespace wick
