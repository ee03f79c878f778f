#include "training/repeated_step.h"

#include <fmt/format.h>

#include <utility>

#include "core/device_backend.h"
#include "ir/function.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/repeats.h"
#include "training/backward.h"

namespace wick::training {

namespace {

// The first steps make what later ones find: states of optimizers, kernels, plans of libraries.
constexpr int64_t kOrdinary = 2;

std::string refusalOf(const GraphFunction& method) {
  const std::string found = lastingEffect(method);
  return found.empty() ? found : fmt::format("the model {}", found);
}

}  // namespace

RepeatedStep::RepeatedStep(const Module& module, GraphFunction& method,
                           std::vector<Tensor> parameters, Device device, std::string refusal)
    : module_(module),
      parameters_(std::move(parameters)),
      device_(device),
      refusal_(std::move(refusal)) {
  if (refusal_.empty() && !groupBackend(device.type)) refusal_ = "the device repeats nothing";
  if (refusal_.empty()) refusal_ = refusalOf(method);
  forget();
}

void RepeatedStep::forget() {
  token_ = std::make_shared<char>();
  steps_ = 0;
  numbers_.clear();
  for (const auto& [name, module] : module_.modules()) {
    const ObjectRef& object = module.object();
    for (size_t i = 0; i < object->type()->attributes().size(); ++i) {
      const IValue& value = object->slot(i);
      if (value.isInt() || value.isDouble() || value.isBool()) numbers_.emplace_back(object, i);
    }
  }
}

void RepeatedStep::clearGradients() const {
  for (const Tensor& p : parameters_) setGradient(p, Tensor());
}

// The result and all gradients, as one value.
IValue RepeatedStep::runOnce(const DataSet& batch, const Run& run, std::vector<IValue> arguments) {
  DataSet given = batch;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    given.inputs[i].second = arguments[i].toTensor();
  }
  given.targets = arguments[given.inputs.size()].toTensor();
  clearGradients();
  Result result = run(given);
  std::vector<IValue> all;
  all.emplace_back(result.loss.detach());
  all.push_back(result.right.defined() ? IValue(result.right) : IValue());
  for (const Tensor& p : parameters_) {
    const Tensor gradient = gradientOf(p);
    all.push_back(gradient.defined() ? IValue(gradient.detach()) : IValue());
  }
  return IValue(makeTuple(std::move(all), nullptr));
}

std::optional<RepeatedStep::Result> RepeatedStep::repeat(const DataSet& batch, const Run& run) {
  if (!refusal_.empty()) return std::nullopt;
  last_refusal_ = "too few had the same sizes";
  if (steps_++ < kOrdinary) return std::nullopt;
  std::vector<IValue> arguments;
  for (const auto& [name, input] : batch.inputs) arguments.emplace_back(input);
  arguments.emplace_back(batch.targets);
  // With other numbers it is another step.
  for (const auto& [object, slot] : numbers_) arguments.push_back(object->slot(slot));
  GroupBackend::Call call;
  call.code = token_;
  call.arguments = arguments;
  call.lends = true;
  call.why_not = &last_refusal_;
  call.constants = [&]() -> std::optional<std::vector<Tensor>> {
    std::vector<Tensor> tensors;
    for (const auto& named : {module_.parameters(), module_.buffers()}) {
      for (const auto& [name, tensor] : named) {
        if (!tensor.defined()) continue;
        if (tensor.device() != device_) return std::nullopt;
        tensors.push_back(tensor);
      }
    }
    return tensors;
  };
  call.run = [&](std::vector<IValue> given) { return runOnce(batch, run, std::move(given)); };
  const std::optional<IValue> repeated = groupBackend(device_.type)->repeat(call);
  if (!repeated) {
    // Noting the work in vain may have left some.
    clearGradients();
    return std::nullopt;
  }
  const auto& all = repeated->elements();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const IValue& gradient = all[2 + i];
    setGradient(parameters_[i], gradient.isNone() ? Tensor() : gradient.toTensor());
  }
  ++repeated_;
  last_refusal_.clear();
  return Result{all[0].toTensor(), all[1].isNone() ? Tensor() : all[1].toTensor()};
}

}  // namespace wick::training
