// Samples and losses, as train and evaluate read them from the command line.
#pragma once

#include <string>
#include <vector>

#include "training/data_set.h"
#include "training/objective.h"

namespace wick::cli {

// Reads samples by loadDataSet() of training/data_set.h; floating-point tensors are converted where `dtype` (of --dtype)
// is not empty. `flag` is the one that names the targets.
training::DataSet samplesOf(const std::vector<std::string>& paths, const std::string& target,
                            const std::string& dtype, const std::string& flag);

// CommandLineError that lists what there is, unless it is the name of a loss, a script (.py), or `more`.
void checkLoss(const std::string& loss, const std::string& more = "");

// A loss by its name, or of a script: its function of the output and the targets, which `function` names (empty: main,
// or the only one).
training::Objective objectiveOf(const std::string& loss, const std::string& function);

}  // namespace wick::cli
