#include "tools/samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "tools/verbs.h"

namespace wick::cli {

using training::DataSet;
using training::Objective;

DataSet samplesOf(const std::vector<std::string>& paths, const std::string& target,
                  const std::string& dtype, const std::string& flag) {
  DataSet data = training::loadDataSet(paths, target, flag);
  if (dtype.empty()) return data;
  const auto convert = [&](Tensor& t) {
    if (isFloating(t.dtype())) t = t.to(dtypeOf(dtype));
  };
  for (auto& [name, tensor] : data.inputs) convert(tensor);
  convert(data.targets);
  return data;
}

void checkLoss(const std::string& loss, const std::string& more) {
  const auto& names = Objective::names();
  if (loss == more || loss.ends_with(".py") || std::ranges::find(names, loss) != names.end())
    return;
  throw CommandLineError(fmt::format("--loss: expected {},{} or a script (.py), got {}",
                                     fmt::join(names, ", "), more.empty() ? "" : " " + more, loss));
}

Objective objectiveOf(const std::string& loss, const std::string& function) {
  if (!loss.ends_with(".py")) return Objective(loss);
  Options named;
  named.function = function;
  auto program = std::make_shared<LoadedFile>(LoadedFile::load(loss));
  GraphFunction* chosen = &program->function(named);
  return Objective([program, chosen, loss](const IValue& output, const Tensor& targets) {
    const IValue value = program->call({}, *chosen, {output, targets}, {});
    WICK_CHECK(value.isTensor() && value.toTensor().defined(), "{} gives {}, expected one Tensor",
               loss, value.tagName());
    return value.toTensor();
  });
}

}  // namespace wick::cli
