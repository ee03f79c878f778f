// What shape rules (ir/operator.h) ask of a node's inputs and say of its outputs.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/symbolic_sizes.h"

namespace wick {

using TensorFacts = TensorType::Facts;

// ---- inputs ----

// Null unless the value's static type is Tensor.
const TensorFacts* factsOf(const Value* v);
// Sizes of a tensor: nullopt when the rank is unknown, else one Size a dimension.
std::optional<Sizes> sizesOf(const TensorFacts& facts);

bool isNoneConstant(const Value* v);
std::optional<int64_t> intOf(const Value* v);
std::optional<bool> boolOf(const Value* v);
std::optional<double> floatOf(const Value* v);  // also of an int
std::optional<DType> dtypeConstantOf(const Value* v);

// Whether all users of the list are operators that read it or its elements, so that it stays as it
// was made. False for lists with very many users.
bool isOnlyReadList(const Value* list);
// The elements of a list that the graph builds and that no one changes; nullopt for other lists.
std::optional<std::vector<Value*>> literalElements(const Value* list);
// The ints of such a list, of a constant list, or of a single constant int.
std::optional<std::vector<int64_t>> intsOf(const Value* v);
// The same repeated to `n` when there is one, for arguments such as `int[2] stride`.
std::optional<std::vector<int64_t>> intsOf(const Value* v, size_t n);

// An int that a program uses as a size: its number, or its symbol when it is the size of a tensor
// or computed from sizes. Negative numbers give nullopt.
Size sizeValue(const Value* v);
// An element of a list of sizes in which -1 has a meaning of its own.
struct SizeArgument {
  bool is_minus_one = false;
  Size size;  // never -1 at run time when it is known
};
// nullopt when the length is unknown.
std::optional<std::vector<SizeArgument>> sizeArguments(const Value* v);
// A list of sizes in which -1 has none.
std::optional<Sizes> sizeList(const Value* v);

// The node's input for an argument of its operator, or null when the operator has no such argument.
Value* argumentOf(const Node& node, std::string_view name);

// `d` counted from the start; nullopt when it is out of range. A rank of 0 counts as 1.
std::optional<size_t> wrappedDim(int64_t d, size_t rank);

// ---- outputs ----

// The shape that both broadcast to.
Size broadcastSize(Size a, Size b);
Sizes broadcastSizes(const Sizes& a, const Sizes& b);

// Facts with the dtype and device of `facts` alone.
TensorFacts sameKind(const TensorFacts& facts);
void setSizes(TensorFacts& facts, std::optional<Sizes> sizes);
// One output. Nothing is known of strides and gradients.
std::vector<TypePtr> oneTensor(TensorFacts facts);
// What nothing is known of: one type for each output of the node, as the schema declares it.
std::vector<TypePtr> nothingKnown(const Node& node);

}  // namespace wick
