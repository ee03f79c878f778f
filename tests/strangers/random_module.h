// Random modules of layers, as strangers write them: batches and single samples, containers of tensors, shared memory,
// hooks, forks, views, writes in place, leaves that require gradients, factors that are huge or tiny.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wick.h"

namespace wick::strangers {

struct RandomModule {
  Module module;               // in evaluation mode unless `trains`
  std::vector<Tensor> inputs;  // of calls that follow each other
  std::string source;          // the methods, for messages
  bool trains = false;
  bool keeps_state = false;     // calls write to buffers
  bool leaf = false;            // a call walks back
  bool beyond_pytorch = false;  // PyTorch does not compile it
  bool doubles =
      false;  // of float64, so that gradients can be compared: those of norms are differences of large numbers
  bool coarse = false;  // casts to numbers of 16 bits
  double noise = 0;     // rounding that is left where a constant at the end cancels a result
};

// Returns the same module for the same seed each time, with tensors and code of its own.
RandomModule randomModule(uint64_t seed);

}  // namespace wick::strangers
