// Random numbers of graphs, which continue those of PyTorch.
#pragma once

#include "core/generator_state.h"
#include "python/torch_library.h"

namespace wick::python {

// Lets Wick's default generator stand where PyTorch's does, for as long as it lives. The caller holds
// the GIL.
class TorchRandom {
 public:
  explicit TorchRandom(const TorchLibrary& library);
  ~TorchRandom();
  TorchRandom(const TorchRandom&) = delete;
  // Lets PyTorch's generator go on where Wick's has come to.
  void putBack();

 private:
  const TorchLibrary& library_;
  capture::Object before_;  // PyTorch's state
  GeneratorState own_;
};

}  // namespace wick::python
