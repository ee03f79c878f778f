// Dense tensors as text in the layout of PyTorch's C++ streams: columns of numbers, lines of eighty
// characters, four digits. Programs see sparse and quantized tensors so.
#pragma once

#include <string>

#include "core/tensor.h"

namespace wick {

// How the numbers of a tensor are written, and those that follow on the same stream.
enum class Notation { Plain, Fixed, Scientific };

// The numbers of a dense tensor of any dtype. Returns the notation of the last ones. RuntimeError
// when the text would be longer than texts may be (core/text_limit.h).
Notation appendNumbers(std::string& out, const Tensor& part);
// The same, and type and sizes below.
void appendStreamed(std::string& out, const Tensor& part);

std::string inNotation(Notation notation, double value);

}  // namespace wick
