// From the body of a prim::FusionGroup to kernels: producers become part of the expressions that
// use them, and outputs that share a domain share a kernel.
#pragma once

#include <span>
#include <stdexcept>

#include "codegen/loop/kernel.h"
#include "ir/graph.h"

namespace wick::loop {

// The group is left to the operators one by one; what() says why.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What kernels are made for: never sizes, but which of them are one.
struct ArgumentInfo {
  enum class Kind : uint8_t { Tensor, Int, Float, Bool };
  Kind kind = Kind::Tensor;
  DType dtype = DType::Float;  // tensors only, like the rest
  uint8_t rank = 0;
  uint8_t ones = 0;  // bit k: the dimension that is k-th from the end has size one
  friend bool operator==(const ArgumentInfo&, const ArgumentInfo&) = default;
};

struct OutputInfo {
  DType dtype;
  uint8_t rank;
  uint32_t kernel;
  // The dimension of the kernel's domain that each dimension has the size of; -1 for one.
  std::array<int8_t, kMaxRank> dims;
};

// A pointwise operator of the group, for those who follow how its result lies in memory: tensors
// are numbered, first the arguments, then the results of the steps.
struct PointwiseStep {
  std::vector<uint32_t> operands;
};

// Dimension `dim` of an argument must have this size, or the operators raise.
struct SizeCheck {
  uint32_t argument;
  uint8_t dim;
  int64_t size;
};

struct Program {
  std::vector<Kernel> kernels;
  std::vector<OutputInfo> outputs;  // of the group, in order
  std::vector<SizeCheck> checks;
  // All operators, when all are pointwise; else empty.
  std::vector<PointwiseStep> steps;
  std::vector<uint32_t> output_tensors;  // the numbers of the outputs, when there are steps
};

// Whether lowerGroup() may know the node's operator.
bool isReduction(const Node* node);

// Tensors among the body's constants, in its order.
std::vector<const Value*> tensorConstants(const Graph& body);

// `arguments` describes the body's inputs and behind them tensorConstants(). Throws Unsupported.
Program lowerGroup(const Graph& body, std::span<const ArgumentInfo> arguments);

}  // namespace wick::loop
