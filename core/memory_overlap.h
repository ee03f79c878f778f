// Memory that two tensors share.
#pragma once

#include "core/tensor.h"

namespace wick {

// Full for tensors of the same elements in the same order, Unknown for views with gaps whose ranges of memory
// meet.
enum class Overlap { None, Full, Partial, Unknown };
Overlap overlapOf(const Tensor& a, const Tensor& b);

// RuntimeError when the input shares a part of the memory that is written, but is not the same tensor.
void checkNoPartialOverlap(const Tensor& written, const Tensor& input);
// The same for all of it too.
void checkNoOverlap(const Tensor& written, const Tensor& input);
// RuntimeError when elements of the tensor share memory with each other, as those of an expanded one do.
void checkNoInternalOverlap(const Tensor& written);

}  // namespace wick
