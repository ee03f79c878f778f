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

// "44.7 MB".
std::string formatBytes(double bytes);
// Of this process.
double peakResidentBytes();
// What it has now, without the files that are mapped; 0 where the system does not tell.
double residentBytes();
// "1 plan (2 codes): 11 hits, 1 profiled run, 0 bail-outs"; empty for a function without plans.
std::string describePlans(GraphFunction& function);

}  // namespace wick::cli
