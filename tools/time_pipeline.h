// A model over time, piece by piece (torchscript-cli pipeline --chunk).
#pragma once

#include <memory>
#include <vector>

#include "streams/time/time_stream.h"
#include "tools/options.h"

namespace wick::cli {

// Runs `whole`, or the first of the arguments when that is not defined, in pieces, and prints what
// it took. Other arguments stay the same for all pieces. CommandLineError for options that do not
// go together; UsageError where the model cannot run piece by piece, or --verify finds a difference.
void runOverTime(const Options& options, const std::shared_ptr<GraphFunction>& program,
                 const std::vector<IValue>& example, const Tensor& whole,
                 const streams::TimeStream::PlaceOf& place_of);

// The largest difference of two tensors, relative to the largest number of the first; NaN when there
// is one. UsageError when they have other sizes or no element.
double relativeDifference(const Tensor& a, const Tensor& b);

}  // namespace wick::cli
