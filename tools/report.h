// Values as text for a reader at a terminal.
#pragma once

#include <string>

#include "core/ivalue.h"
#include "ir/function.h"

namespace wick::cli {

// A value over several lines, each ended by a newline. Tensors show dtype and shape, their numbers
// (all of them when there are few), and when there are many, minimum, maximum and mean. A single
// row of floating numbers, as classifiers give, also shows where its largest numbers are.
std::string report(const IValue& value);

// "1 tensor", "3 tensors".
std::string counted(int64_t count, const char* noun);
// "44.7 MB".
std::string formatBytes(double bytes);
// "8s", "3m20s", "1h05m".
std::string formatDuration(double seconds);
// Of this process.
double peakResidentBytes();
// What it has now, without the files that are mapped; 0 where the system does not tell.
double residentBytes();
// How many calls ran code that was made for the types of their arguments, in words; empty for a function without
// such code.
std::string describePlans(GraphFunction& function);

}  // namespace wick::cli
