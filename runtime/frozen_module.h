// Modules with their attributes as constants, ready to be saved.
#pragma once

#include <string>
#include <vector>

#include "runtime/module.h"

#pragma GCC visibility push(default)

namespace wick {

struct FreezeOptions {
  // The methods that the frozen module has.
  std::vector<std::string> methods = {"forward"};
  // Also what optimizeForInference (runtime/inference.h) does that PyTorch has operators for:
  // batch normalization and constant factors folded into layers, layers that share an input joined.
  bool optimize = false;
};

// A module of the same class name whose methods hold the attributes that nobody writes as
// constants, as torch.jit.freeze makes it; the others stay attributes. Its forward does what the
// module's hooks do, too, which PyTorch leaves out. UsageError for a module in training mode, or whose
// methods use the module itself as a value, or whose hooks cannot be part of it (runtime/hooked_call.h).
Module freeze(const Module& module, const FreezeOptions& options = {});

}  // namespace wick

#pragma GCC visibility pop
