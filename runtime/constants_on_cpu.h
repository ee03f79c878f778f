// Constants of other devices, while passes work on a graph.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/device_backend.h"
#include "ir/graph.h"

namespace wick {

// Passes look at elements of constants, which only those of the CPU can be asked for. While this
// lives, the graph's constants that were on another device lie on the CPU, and what passes make
// lies there too. giveBack() moves them, and all that was made of them, to the device; constants
// that were on the CPU before stay there. Throws RuntimeError when a device's memory is exhausted.
class ConstantsOnCpu {
 public:
  explicit ConstantsOnCpu(Graph& graph);
  void giveBack();

 private:
  Graph& graph_;
  const OnCpuScope factories_;
  std::optional<Device> device_;                           // where any of them was
  std::unordered_map<const TensorImpl*, Tensor> fetched_;  // by their copies
  std::unordered_set<const TensorImpl*> left_;             // were on the CPU before
  std::vector<Tensor> kept_;                               // so that no other gets their address
};

}  // namespace wick
