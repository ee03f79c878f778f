// The shape rule that all pointwise operators share.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace wick {

// The type of the result of a node whose operator record has a scalar definition: the dtype by
// promotion and by what the definition computes, the shape by broadcasting. Supposes the default
// dtype of now.
std::vector<TypePtr> pointwiseTypes(const Node& node);

}  // namespace wick
