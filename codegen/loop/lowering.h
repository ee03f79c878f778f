// From the body of a prim::FusionGroup to kernels: producers become part of the expressions that
// use them, views part of how tensors are indexed, and outputs that share a domain share a kernel.
#pragma once

#include <span>
#include <stdexcept>

#include "codegen/loop/kernel.h"
#include "codegen/loop/layout.h"
#include "codegen/loop/shapes.h"
#include "ir/graph.h"

namespace wick::loop {

// The group is left to the operators one by one; what() says why.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// So it is for these sizes and strides alone, and maybe because an operator raises.
class UnsupportedShapes : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

// What kernels are made for: never sizes, but which of them are one. `layout` and `number` are an
// example, to find out what views of them are like.
struct ArgumentInfo {
  enum class Kind : uint8_t { Tensor, Int, Float, Bool };
  Kind kind = Kind::Tensor;
  DType dtype = DType::Float;  // tensors only, like the rest
  uint8_t rank = 0;
  uint8_t ones = 0;  // bit k: the dimension that is k-th from the end has size one
  TensorLayout layout{};
  int64_t number = 0;  // of Int; of Bool what it is in all calls

  // A tensor of this layout.
  static ArgumentInfo tensor(DType dtype, const TensorLayout& layout);
};

struct OutputInfo {
  DType dtype;
  uint8_t rank;
  uint32_t kernel;
  // The dimension of the kernel's domain that each dimension has the size of; -1 for one.
  std::array<int8_t, kMaxRank> dims;
  uint32_t tensor;  // its number
  // Of the group's views, the one that gives the output the shape of the kernel's domain; -1 when
  // its own dimensions are the domain's. Then accesses are of what the view gives.
  int32_t view = -1;
  // Arguments whose memory the output may take when it has their dtype, sizes and strides: each
  // element is read where it is stored, and never again.
  std::vector<uint32_t> over{};
  int32_t into = -1;   // the argument that is written; it has the same dtype
  bool waits = false;  // whether values of earlier passes wait in its memory
};

// What kernels read: a tensor, through views. Its memory is an argument's or an output's.
struct Source {
  uint32_t tensor;
  std::vector<uint32_t> path;  // of the group's views, the innermost first
  int32_t argument = -1;
  int32_t output = -1;
  friend bool operator==(const Source&, const Source&) = default;
};

// Dimension `dim` of a tensor must have this size, or the operators raise.
struct SizeCheck {
  uint32_t tensor;
  uint8_t dim;
  int64_t size;
};

// Whether the tensor's channels must lie innermost, or must not.
struct FormatCheck {
  uint32_t tensor;
  bool channels_last;
};

// The argument, a number, must be one that a tensor of `dtype` holds, and perhaps no NaN, or the
// operators raise or have another rule.
struct NumberCheck {
  uint32_t argument;
  DType dtype;
  bool number_only;
  friend bool operator==(const NumberCheck&, const NumberCheck&) = default;
};

struct LoweredGroup {
  std::vector<Kernel> kernels;      // in the order in which they run
  std::vector<uint32_t> domains;    // of each kernel: the tensor whose sizes its domain has
  std::vector<OutputInfo> outputs;  // of the group, in order; then tensors between kernels
  size_t results = 0;               // how many are of the group; the others lie row-major
  size_t written = 0;               // how many of those, the last, are arguments that are written
  std::vector<Source> sources;      // first the arguments
  std::vector<ViewStep> views;
  std::vector<SizeCheck> checks;
  std::vector<NumberCheck> number_checks;
  std::vector<FormatCheck> formats;
  std::vector<ShapeStep> steps;
  // Whether sizes are those that followShape() gives, rather than those of what is loaded.
  bool follow = false;
};

// Whether lowerGroup() may know the node's operator: sums, extrema and what is made of them; joins
// of tensors and padding; elements by their indices.
bool isReduction(const Node* node);
bool isJoin(const Node* node);
bool isIndexed(const Node* node);

// Tensors among the body's constants, in its order.
std::vector<const Value*> tensorConstants(const Graph& body);

// `arguments` describes the group's inputs and behind them tensorConstants(); `functions` is what the
// device wants. Throws Unsupported.
LoweredGroup lowerGroup(const Graph& group, std::span<const ArgumentInfo> arguments,
                        FunctionForm functions = FunctionForm::Composed);

}  // namespace wick::loop
