#include "training/data_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "core/device_backend.h"
#include "core/error.h"
#include "runtime/ops/common_calls.h"
#include "serialization/npy.h"
#include "serialization/tensor_files.h"

namespace wick::training {
namespace {

constexpr std::array<const char*, 5> kTargetNames = {"y", "target", "targets", "label", "labels"};

std::string namesOf(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void checkSizes(const DataSet& data) {
  const auto check = [&](const std::string& name, const Tensor& t) {
    if (t.dim() == 0) throw UsageError(fmt::format("data: {} is a single number", name));
    if (!t.isStrided()) throw UsageError(fmt::format("data: {} is not dense", name));
    if (t.size(0) != data.size()) {
      throw UsageError(fmt::format("data: the numbers of samples differ: {}", data.describe()));
    }
  };
  check("the tensor of targets", data.targets);
  for (const auto& [name, tensor] : data.inputs) check(name.empty() ? "an input" : name, tensor);
  if (data.size() == 0) throw UsageError("data: there are no samples");
}

DataSet fromNamed(const std::string& path, NamedTensors tensors, const std::string& target,
                  const std::string& flag) {
  DataSet data;
  const auto isTarget = [&](const std::string& name) {
    return target.empty() ? std::ranges::find(kTargetNames, name) != kTargetNames.end()
                          : name == target;
  };
  for (auto& [name, tensor] : tensors) {
    if (!isTarget(name)) continue;
    if (data.targets.defined()) {
      throw UsageError(fmt::format("{}: both {} and {} may be the targets; name one ({})", path,
                                   data.target_name, name, flag));
    }
    data.target_name = name;
    data.targets = tensor;
  }
  if (!data.targets.defined()) {
    throw UsageError(fmt::format("{}: there is no {}; it has {}. {} names the targets", path,
                                 target.empty() ? "y, target, targets, label or labels" : target,
                                 namesOf(tensors), flag));
  }
  for (auto& [name, tensor] : tensors) {
    if (!isTarget(name)) data.inputs.emplace_back(name, tensor);
  }
  if (data.inputs.empty()) {
    throw UsageError(fmt::format("{}: there is nothing but the targets", path));
  }
  return data;
}

// The .npy files of a folder by their names, in alphabetical order.
NamedTensors tensorsOfFolder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".npy") files.push_back(entry->path());
  }
  if (error) throw LoadError(fmt::format("{}: cannot be read: {}", path, error.message()));
  if (files.empty()) {
    throw UsageError(fmt::format(
        "{}: the folder holds no .npy files; expected one for each input, and one for the "
        "targets",
        path));
  }
  std::ranges::sort(files);
  NamedTensors tensors;
  for (const fs::path& file : files) {
    tensors.emplace_back(file.stem().string(), loadNpy(file.string()));
  }
  return tensors;
}

}  // namespace

DataSet DataSet::at(const Tensor& indices) const {
  DataSet batch;
  batch.target_name = target_name;
  batch.targets = ops::indexSelect(targets, 0, indices);
  for (const auto& [name, tensor] : inputs) {
    batch.inputs.emplace_back(name, ops::indexSelect(tensor, 0, indices));
  }
  return batch;
}

DataSet DataSet::on(Device device) const {
  if (targets.device() == device) return *this;
  DataSet there = *this;
  there.targets = moveTo(targets, device);
  for (auto& [name, tensor] : there.inputs) tensor = moveTo(tensor, device);
  return there;
}

std::string DataSet::describe() const {
  std::string text;
  for (const auto& [name, tensor] : inputs) {
    text += fmt::format("{}: {}, ", name.empty() ? "input" : name, tensor.describe());
  }
  return text +
         fmt::format("{}: {}", target_name.empty() ? "targets" : target_name, targets.describe());
}

DataSet loadDataSet(const std::vector<std::string>& paths, const std::string& target,
                    const std::string& flag) {
  DataSet data;
  if (paths.size() == 1) {
    if (paths[0].ends_with(".npy")) {
      throw UsageError(paths[0] + " holds one tensor; give the file of the targets behind it");
    }
    std::error_code error;
    data = fromNamed(paths[0],
                     std::filesystem::is_directory(paths[0], error)
                         ? tensorsOfFolder(paths[0])
                         : loadTensors(paths[0], {}, Device()),
                     target, flag);
  } else {
    for (const std::string& path : paths) {
      if (!path.ends_with(".npy")) {
        throw UsageError(path + ": several files of data must be .npy, the targets last");
      }
    }
    for (size_t i = 0; i + 1 < paths.size(); ++i) {
      data.inputs.emplace_back(std::string(), loadNpy(paths[i]));
    }
    data.targets = loadNpy(paths.back());
  }
  if (data.targets.dim() == 0) throw UsageError("data: the tensor of targets is a single number");
  checkSizes(data);
  return data;
}

Arguments argumentsFor(const DataSet& batch, const FunctionSchema& schema, size_t num_bound,
                       bool with_targets) {
  const auto isArgument = [&](const std::string& name) {
    if (name.empty()) return false;
    const auto& arguments = schema.arguments();
    for (size_t i = num_bound; i < arguments.size(); ++i) {
      if (arguments[i].name == name) return true;
    }
    return false;
  };
  const bool by_name =
      std::ranges::all_of(batch.inputs,
                          [&](const auto& input) { return isArgument(input.first); }) &&
      (!with_targets || isArgument(batch.target_name));
  Arguments arguments;
  if (by_name) {
    for (const auto& [name, tensor] : batch.inputs) arguments.named.emplace_back(name, tensor);
    if (with_targets) arguments.named.emplace_back(batch.target_name, batch.targets);
    return arguments;
  }
  const bool unnamed = batch.inputs[0].first.empty();
  if (batch.inputs.size() > 1 && !unnamed) {
    std::vector<std::string> wanted;
    for (size_t i = num_bound; i < schema.arguments().size(); ++i) {
      wanted.push_back(schema.arguments()[i].name);
    }
    throw UsageError(
        fmt::format("data: the inputs are {}, the model's arguments {}; call them the same",
                    namesOf(batch.inputs), fmt::join(wanted, ", ")));
  }
  for (const auto& [name, tensor] : batch.inputs) arguments.positional.emplace_back(tensor);
  if (with_targets) arguments.positional.emplace_back(batch.targets);
  return arguments;
}

}  // namespace wick::training
