// Views inside a group: other ways to index a tensor. A kernel sees none of them: before it is
// launched the caller applies them to the layouts of what it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codegen/loop/layout.h"
#include "ir/graph.h"

namespace wick::loop {

// A number of a view: known, or an argument of the group.
struct ViewNumber {
  int64_t value = 0;
  int32_t argument = -1;
  friend bool operator==(const ViewNumber&, const ViewNumber&) = default;
};

struct ViewStep {
  enum class Kind : uint8_t {
    Select,      // dim, numbers: the index
    Slice,       // dim, numbers: start, end, step, each of them perhaps kNone
    Narrow,      // dim, numbers: start, length
    Unbind,      // dim; part of parts, as for the next four
    Chunk,       // dim, numbers: how many
    Split,       // dim, numbers: the size of each
    SplitSizes,  // dim, numbers: the sizes
    Sections,    // dim, numbers: how many
    Permute,     // numbers: the dimensions
    Swap,        // dim, other_dim
    Transpose,   // two dimensions, no others
    Unsqueeze,   // dim
    Squeeze,     // dim
    SqueezeAll,
    Expand,     // numbers: the sizes
    ExpandAs,   // tensors: one
    Reshape,    // numbers: the sizes
    ReshapeAs,  // tensors: one
    Flatten,    // dim … other_dim
    Unflatten,  // dim, numbers: the sizes
    Place,      // dim, tensors: those that are joined; part. Where they lie when they are joined
    Pad,        // numbers: before and after, of the last dimension first
    Flip,       // numbers: the dimensions
    Same,
  };
  static constexpr int64_t kNone = INT64_MIN;
  Kind kind = Kind::Select;
  int dim = 0;  // from the end for those below when negative
  int other_dim = 0;
  std::vector<ViewNumber> numbers;
  std::vector<uint32_t> tensors;
  uint32_t part = 0;
  uint32_t parts = 0;
  bool may_copy = false;  // reshape rather than view
  friend bool operator==(const ViewStep&, const ViewStep&) = default;
};

enum class ViewOutcome : uint8_t {
  Done,
  Copies,  // the result is a tensor of its own, whose sizes were set, row-major
  Wrong,   // the operator raises, or gives another number of parts
};
// `numbers` are the group's arguments that are integers, by their number; `tensors` its tensors.
// Place and Pad move the tensor and set the sizes of the whole; elements that do not exist must not
// be touched.
ViewOutcome applyView(const ViewStep& step, std::span<const int64_t> numbers,
                      std::span<const TensorLayout> tensors, TensorLayout& t);

// Whether the operator is a view that viewsOf() knows, or takes a list of views apart.
bool isView(const Node* node);

// Where a value stands among the group's arguments and tensors.
struct ValueNumbers {
  virtual ~ValueNumbers() = default;
  virtual int32_t argument(const Value* integer) const = 0;  // -1 for none
  virtual uint32_t tensor(const Value* tensor) const = 0;
};
// The step to each output of a view, or of the prim::ListUnpack of a list of views, whose operand
// is viewOperand(node); nothing when some argument is not known well enough.
std::optional<std::vector<ViewStep>> viewsOf(const Node* node, const ValueNumbers& numbers);
const Value* viewOperand(const Node* node);

}  // namespace wick::loop
