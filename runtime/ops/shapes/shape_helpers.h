// What the files of shape rules share.
#pragma once

#include "ir/shape_facts.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops::shapes {

// The facts of the argument with this name; nothing known when there is none or it is no tensor.
const TensorFacts& tensorArgument(const Node& node, std::string_view name);
// Those of the first argument that is a tensor.
const TensorFacts& firstTensor(const Node& node);

// Whether the argument is missing or None.
bool isAbsent(const Node& node, std::string_view name);
std::optional<int64_t> intArgument(const Node& node, std::string_view name);
std::optional<bool> boolArgument(const Node& node, std::string_view name);

// What the argument `dtype` says, or `otherwise` when it is absent; unknown when it is no constant.
std::optional<DType> dtypeArgument(const Node& node, std::optional<DType> otherwise);
// The same of `device`.
std::optional<Device> deviceArgument(const Node& node, std::optional<Device> otherwise);

// Integers and bool become the default dtype, or int64.
std::optional<DType> floating(std::optional<DType> t);
std::optional<DType> accumulated(std::optional<DType> t);
std::optional<DType> real(std::optional<DType> t);

// The dtype by promotion of tensors of known dtypes and ranks; nothing when one is unknown and
// could matter.
std::optional<DType> promotedDType(const std::vector<const TensorFacts*>& tensors);
// The device of all, when it is one.
std::optional<Device> commonDevice(const std::vector<const TensorFacts*>& tensors);
// What all tensor arguments broadcast to.
std::optional<Sizes> broadcastArguments(const Node& node);
std::vector<const TensorFacts*> tensorArguments(const Node& node);
// The elements of the Tensor[] argument with this name; nullopt when they are unknown.
std::optional<std::vector<const TensorFacts*>> tensorListArgument(const Node& node,
                                                                  std::string_view name);

// A tensor of this dtype, of the sizes and the device given.
Types tensorOf(std::optional<DType> dtype, std::optional<Sizes> sizes,
               std::optional<Device> device);

}  // namespace wick::ops::shapes
