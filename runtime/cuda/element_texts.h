// Texts of kernels that look elements up, for devices that run them now and for models that are compiled ahead of time.
// The words of each: addresses, then numbers; where it checks something, the address of the flag and the number of the
// complaint come last.
#pragma once

#include <cstddef>
#include <string>

#include "core/dtype.h"

namespace wick::cuda {

// The type of elements that are only moved, whatever they mean: 1, 2, 4, 8 or 16 bytes.
std::string movedType(size_t bytes);

// "samples" of an input at the points of a grid, of float32 or float64. From, grid, to; batch, channels, points, depth,
// height, width, spatial, interpolation, padding, align.
std::string gridSamplesText(DType type);

// "bags": sums, means and maxima of rows. Table, index, starts, scales (may be null), to, best, bag of each index, sizes of
// bags; rows, width, bags, indices, starts, padding, mode, flag, complaint. Where a bag is empty its row is zeros.
std::string bagsText(DType type);

// "suppress", with one block of threads: which boxes no better one overlaps. Boxes, order, kept (a byte each), and
// `threshold`, an expression of the word `limit`, whose C++ type is `type_of_limit`; how many there are.
std::string suppressText(DType type, const char* type_of_limit, const char* threshold);

// "positions" of values in sequences that are in order. Sequence, values, order (may be null), to; how many values, elements
// of a sequence, and values a row (0: there is one sequence), flag, complaint.
std::string positionsText(DType type, bool right);

}  // namespace wick::cuda
