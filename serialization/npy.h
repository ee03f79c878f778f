// NumPy's .npy files.
#pragma once

#include <string>

#include "core/tensor.h"
#include "serialization/archive_reader.h"

namespace wick {

// Reads format versions 1 to 3; Fortran order becomes strides. Big-endian numbers, objects, strings
// and structures are refused with a LoadError. The tensor owns a copy when the data is not aligned.
Tensor loadNpy(const std::string& path);
Tensor loadNpy(Bytes file, const std::string& name);

// Writes version 1, row-major. RuntimeError for bfloat16, which NumPy lacks, and for tensors that
// are not on the CPU.
void saveNpy(const Tensor& tensor, const std::string& path);
// What stands before the tensor's bytes, which follow row-major.
std::string npyHeader(const Tensor& tensor);

// The strides of an array in Fortran order. The product of the sizes, with ones for zeros, must not overflow.
DimVector fortranStrides(IntSpan sizes);

}  // namespace wick
