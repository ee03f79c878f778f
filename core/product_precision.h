// How precisely devices multiply float32.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace wick {

// What may round the factors of float32 to TF32, which has 10 bits of fraction, where a device is
// faster so. PyTorch begins with Convolutions: torch.backends.cudnn.allow_tf32 is on there,
// torch.backends.cuda.matmul.allow_tf32 off.
enum class Tf32 : uint8_t { Off, Convolutions, All };

// Off at first. Of the whole process; the CPU does not ask. Thread-safe; what runs meanwhile may use
// either.
Tf32 allowedTf32();
void setAllowedTf32(Tf32 value);

}  // namespace wick

#pragma GCC visibility pop
