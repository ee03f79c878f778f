// FusionSite: a prim::FusionGroup of a graph that runs, with the kernels made for it so far.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ivalue.h"
#include "ir/graph.h"

namespace wick::loop {
struct ArgumentInfo;
}

namespace wick {

// Over all sites of the process.
struct FusionStatistics {
  uint64_t launches = 0;   // groups that ran as kernels
  uint64_t fallbacks = 0;  // groups that ran operator by operator
  uint64_t variants = 0;   // combinations of dtypes, ranks and sizes of one that were met
  uint64_t kernels = 0;    // kernels that were asked for
  uint64_t failures = 0;   // variants and kernels that cannot be compiled
};
FusionStatistics fusionStatistics();

// "fused_mul_tanh_add": a kernel named by the operators of its group's body.
std::string fusionGroupName(const Graph& body);

// Thread-safe: any number of threads may run one site.
class FusionSite {
 public:
  // Keeps the group's body, which must not change any more.
  explicit FusionSite(const Node& group);
  ~FusionSite();
  FusionSite(const FusionSite&) = delete;
  FusionSite& operator=(const FusionSite&) = delete;

  // Computes the group's outputs with compiled kernels. False when there are none for these
  // arguments (yet): then nothing happened, and the caller runs the group's nodes one by one, which
  // also raises what there is to raise. Throws RuntimeError when memory is exhausted.
  // Bit i of `dying`: when the group has run, nobody asks for argument i where the caller has
  // borrowed it from; the one reference there may be is that one. A result may take its memory.
  bool run(const IValue* given, size_t num_given, IValue* results, uint64_t dying = 0);

  // Whether it refused arguments because it has met as many kinds of them as it keeps kernels for.
  bool isFull() const;

  const std::string& name() const;
  // The arguments (tensor constants of the body last) for which the group was asked to run, each
  // kind once, the latest first.
  std::vector<std::vector<loop::ArgumentInfo>> argumentsMet() const;
  const Graph& body() const;
  // Whether some operator of the group writes to its argument.
  bool writes() const;

 private:
  struct State;
  // Compile jobs hold it too.
  std::shared_ptr<State> state_;
};

}  // namespace wick
