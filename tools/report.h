// Values as text for a reader at a terminal.
#pragma once

#include <string>

#include "core/ivalue.h"

namespace wick::cli {

// A value over several lines, each ended by a newline. Tensors show dtype and shape, their numbers
// (all of them when there are few), and when there are many, minimum, maximum and mean. A single
// row of floating numbers, as classifiers give, also shows its largest places.
std::string report(const IValue& value);

// "44.7 MB".
std::string formatBytes(double bytes);

}  // namespace wick::cli
