// Samples to train with: tensors whose first dimension counts samples.
#pragma once

#include <string>
#include <vector>

#include "core/function_schema.h"
#include "runtime/run_options.h"
#include "serialization/named_tensors.h"

namespace wick::training {

struct DataSet {
  NamedTensors inputs;  // names are empty where arguments are given by position
  std::string target_name;
  Tensor targets;

  int64_t size() const { return targets.size(0); }
  // The samples at these places, in this order; `indices` is an int64 tensor.
  DataSet at(const Tensor& indices) const;
  // The same on another device.
  DataSet on(Device device) const;
  // "x: float32[64, 3], target: int64[64]".
  std::string describe() const;
};

struct Arguments {
  std::vector<IValue> positional;
  Kwargs named;
};

// One file of tensors by name (.npz, .safetensors, a dict of torch.save) or a folder of .npy files, each of which is
// the tensor of its name, where `target` names the targets (empty: y, target, targets, label or labels) and all others
// are inputs; or several .npy files, the inputs in order and last the targets. LoadError for what cannot be read;
// UsageError when names or numbers of samples do not fit, which says that `flag` names the targets.
DataSet loadDataSet(const std::vector<std::string>& paths, const std::string& target,
                    const std::string& flag = "--target");

// How the inputs (with `with_targets` the targets behind them) are handed to a function: by name
// when all names are those of arguments, else by position, which a single input always may be.
// `num_bound`: leading arguments (self) that are not asked for. UsageError that lists both.
Arguments argumentsFor(const DataSet& batch, const FunctionSchema& schema, size_t num_bound,
                       bool with_targets);

}  // namespace wick::training
