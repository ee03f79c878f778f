// What the files that make plans of regions (autograd/region_plan.h) share.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/dtype.h"
#include "ir/graph.h"

namespace wick::autograd {

bool isTensor(const Value* v);
bool isConstant(const Value* v);
bool isPointwise(const wick::Node* node);
// Views, lists of them and what takes these apart.
bool isView(const wick::Node* node);
// What backward computes again rather than have it saved.
bool isCheap(const wick::Node* node);

// Negative ones are symbols.
using KnownSizes = std::vector<int64_t>;
// Numbers and symbols; nullopt when the rank or dtype is unknown.
std::optional<KnownSizes> knownSizes(const Value* v);
DType dtypeOf(const Value* v);
TypePtr tensorType(DType dtype, const KnownSizes& sizes);

// Tensors and lists of them that need gradients among the inputs of a node.
uint64_t wantedInputs(const wick::Node* node, const std::unordered_map<const Value*, bool>& needed);

Value* insertTensor(Graph& graph, const char* kind, std::initializer_list<Value*> inputs);
// One more gradient of a value: the sum of what there is, which is null at first, and it.
void accumulateGradient(Graph& graph, Value*& sum, Value* gradient);

// Scripts of formulas ask for ranks and dtypes, and walk over lists of sizes, whose lengths are
// known. Sums of gradients to sizes become sums over dimensions, or nothing.
void foldShapes(Graph& graph);

}  // namespace wick::autograd
