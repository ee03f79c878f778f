// Numbers of texts, complex ones among them.
#pragma once

#include <string>

#include "core/dtype.h"

namespace wick::cuda {

// Definitions that texts with complex numbers begin with, behind codegen::cudaPreamble(): a type with
// arithmetic, and wickConj() of real and complex numbers alike.
extern const char* const kNumberText;
// The type in a text: as codegen::cudaType(), and of complex numbers.
std::string numberType(DType type);

}  // namespace wick::cuda
