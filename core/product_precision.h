// How precisely devices multiply float32.
#pragma once

#pragma GCC visibility push(default)

namespace wick {

// Whether products and convolutions of float32 may round their factors to TF32, which has 10 bits of
// fraction, where a device is faster so: as torch.backends.cuda.matmul.allow_tf32 and
// torch.backends.cudnn.allow_tf32 together. Off at first (PyTorch has it on for convolutions). Of the
// whole process; the CPU does not ask. Thread-safe; what runs meanwhile may use either.
bool allowsTf32();
void setAllowsTf32(bool allowed);

}  // namespace wick

#pragma GCC visibility pop
