// The kernels of operators that go along a dimension from its beginning to its end.
#pragma once

#include <string>

#include "core/dtype.h"

namespace wick::cuda {

// "scan": sums or products, a block of threads for each row. Its words: from, to, rows, elements of a row, and how many
// rows lie side by side.
std::string scanText(DType type, bool product);
// "walk": what looks at one element after the other, a thread for each row. Its words: from, to, positions (of
// extremes), and then as above.
enum class Walked { Largest, Smallest, LogSum };
std::string walkText(DType type, Walked what);

}  // namespace wick::cuda
