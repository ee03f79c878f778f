// What lowering knows of each value of a group: what computes it, its dtype, and of its shape what
// is the same for all sizes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/loop/decompositions.h"
#include "codegen/loop/lowering.h"
#include "codegen/loop/pointwise.h"
#include "codegen/scalar/promotion.h"

namespace wick::loop {

// Dimensions of values are counted from the end, for so they are aligned.
struct Shape {
  int rank = 0;
  uint32_t ones = 0;
  bool isOne(int k) const { return k >= rank || (ones >> k & 1) != 0; }
  bool isSingle() const { return ones == (1u << rank) - 1; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

enum class What : uint8_t {
  Argument,
  Constant,
  Pointwise,
  View,
  Cat,
  Stack,
  Pad,
  IndexSelect,
  Embedding,
  Gather,
  Flip,
  Lower,  // triangle
  Upper,
  // From here on: made of reductions.
  Sum,
  Mean,
  Prod,
  Max,
  Min,
  Any,
  All,
  ArgMax,
  ArgMin,
  Variance,
  Deviation,
  Norm,
  LogSumExp,
  Softmax,
  LogSoftmax,
  LayerNorm
};
inline bool isJoined(What what) {
  return what >= What::Cat && what <= What::Pad;
}
inline bool isGathered(What what) {
  return what >= What::IndexSelect && what <= What::Gather;
}
// What has elements of its one operand, elsewhere or in places only.
inline bool isPlaced(What what) {
  return what >= What::Flip && what <= What::Upper;
}
inline bool isReduced(What what) {
  return what >= What::Sum;
}

struct ValueInfo {
  What what = What::Constant;
  bool is_tensor = false;
  Shape shape;
  DType dtype = DType::Float;
  uint32_t tensor = 0;  // its number among the group's tensors; an argument's is the argument's
  // What it is made of: of views and reductions one; of joins all.
  std::vector<const Value*> operands;
  PointwiseCall call{};
  ComputeTypes types{};
  ViewStep view;      // of views, pads and flips
  int32_t root = -1;  // the argument that a view lies in, when it lies in one
  int dim = 0;        // of joins and gathers: from the end
  Operand fill{Scalar(0)};
  // Reductions and what is made of them.
  uint32_t dims = 0;  // bit k: the k-th dimension from the end
  bool keepdim = false;
  std::optional<DType> cast;        // of the operand
  DType accumulate = DType::Float;  // what the arithmetic is done in
  const Value* weight = nullptr;
  const Value* bias = nullptr;
  double eps = 0;
  double order = 2;  // of norms
  int64_t correction = 0;
  int64_t diagonal = 0;
};

[[noreturn]] void refuse(std::string why);

class Analysis : public ValueNumbers {
 public:
  // Takes operators apart that have no loop form of their own: see decompositions.h.
  // What these write to inputs becomes further outputs.
  Analysis(Graph& body, std::span<const ArgumentInfo> arguments);

  const ValueInfo& of(const Value* v) const;
  bool knows(const Value* v) const { return infos_.count(v) != 0; }
  const std::vector<SizeCheck>& checks() const { return checks_; }
  const std::vector<NumberCheck>& numberChecks() const { return number_checks_; }
  const std::vector<FormatCheck>& formats() const { return formats_; }
  // Inputs of the body that composite operators write: what they become are the last outputs.
  const std::vector<uint32_t>& written() const { return written_; }
  // The booleans that must be true where a value is computed; null when there are none.
  const Value* requirementOf(const Value* v) const {
    auto it = requirements_.find(v);
    return it == requirements_.end() ? nullptr : it->second;
  }
  // Values that get kernels of their own.
  const std::set<const Value*>& apart() const { return apart_; }
  const std::vector<ShapeStep>& steps() const { return steps_; }
  size_t numArguments() const { return num_arguments_; }
  // Whether sizes can be read off the arguments that kernels load.
  bool isPlain() const { return plain_; }
  // The example's layouts of all tensors, by number, and its integers.
  const std::vector<TensorLayout>& layouts() const { return layouts_; }
  const std::vector<int64_t>& integers() const { return integers_; }
  const TensorLayout& layoutOf(const Value* v) const { return layouts_[of(v).tensor]; }

  int32_t argument(const Value* integer) const override;
  uint32_t tensor(const Value* tensor) const override { return of(tensor).tensor; }

 private:
  void argument(const Value* v, const ArgumentInfo& a);
  void node(const Node* node);
  // Adds what is known of a tensor that `step` gives the shape of.
  void add(const Value* v, ValueInfo info, ShapeStep step);
  const ValueInfo& tensorInfo(const Value* v) const;
  OperandType typeOf(const Value* v) const;
  ValueFacts factsOf(const Value* v) const;
  static int fromEnd(const IValue& dim, int rank);

  void pointwise(const Node* node);
  void call(const Value* output, PointwiseCall call);
  bool laysRowMajor(const Value* output) const;
  void checkNumbers(const PointwiseCall& call, const ComputeTypes& types);
  void view(const Node* node);
  void view(const Value* output, const Value* operand, const ViewStep& view);
  void cast(const Node* node);
  void join(const Node* node, What what);
  void pad(const Node* node);
  void indexed(const Node* node, What what);
  void placed(const Node* node, What what);
  void reduction(const Node* node, What what);
  void reduced(const Node* node, const Value* output, What what);
  void dimensions(const Node* node, ValueInfo& info, const ValueInfo& from);
  void normalize(const Node* node, ValueInfo& info, const ValueInfo& from);
  void layerNorm(const Node* node, ValueInfo& info, const ValueInfo& from);
  const Value* affine(const Node* node, size_t i, DType dtype, int rank) const;

  std::unordered_map<const Value*, ValueInfo> infos_;
  std::vector<SizeCheck> checks_;
  std::vector<NumberCheck> number_checks_;
  std::vector<FormatCheck> formats_;
  std::set<const Value*> row_major_;  // results that lie so, wherever their operands lie
  std::set<const Value*> apart_;
  std::unordered_map<const Value*, const Value*> requirements_;
  std::vector<uint32_t> written_;
  std::vector<ShapeStep> steps_;
  std::vector<TensorLayout> layouts_;
  std::vector<int64_t> integers_;
  size_t num_arguments_ = 0;
  bool plain_ = true;
};

}  // namespace wick::loop
