// Data-parallel training: each process computes the gradients of its own samples, and all of them go on
// with the means.
//
//   auto group = wick::distributed::init();  // distributed/init.h
//   wick::distributed::GradientExchange exchange(optimizer.parameters());
//   for (...) {
//     optimizer.zeroGrad();
//     wick::backward(loss);
//     exchange.finish();
//     optimizer.step();
//   }
#pragma once

#include <memory>
#include <vector>

#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// Gradients travel in bundles of some MiB, in the order in which a walk back has them. The exchange of a
// bundle begins when it is full, or when no gradient is missing any more, and goes on while the walk
// computes the others. What is in a bundle follows from sizes and that order alone. All processes must
// walk over the same parameters in the same order. On lazy parameters all of it is recorded. Used by
// one thread at a time.
class GradientExchange {
 public:
  // Broadcasts the parameters of process 0 first, so that all begin with the same. Those that require no
  // gradient are not exchanged later. RuntimeError when the process belongs to no group; UsageError for
  // tensors that are no leaves.
  explicit GradientExchange(const std::vector<Tensor>& parameters);
  // Gradients are no longer exchanged.
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // Begins the exchange of what no bundle has taken yet, waits for all, and makes the means the gradients.
  void finish();
  // Whether walks begin exchanges: off while gradients of several batches are added up.
  void setActive(bool on);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace wick::distributed

#pragma GCC visibility pop
