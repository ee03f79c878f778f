// The dtype that the operands of a node promote to, as far as their static types tell; the rules
// are those of core/dtype_promotion.h.
#pragma once

#include <optional>

#include "core/dtype_promotion.h"
#include "ir/graph.h"

namespace wick {

class OperandPromotion {
 public:
  // An operand that takes part: a tensor or a number. Float and complex numbers count as of the
  // default dtype of now.
  void add(const Value* v);

  // Whether a tensor was added.
  bool hasTensor() const { return tensor_.has_value(); }
  // Whether the result is known: every tensor's dtype, every number's kind and, when tensors of
  // several dtypes meet, every rank (a tensor without dimensions yields to others).
  bool isKnown() const { return !unknown_ && (!mixed_ || ranks_known_); }
  // The result; supposes isKnown(). Throws InternalError when nothing was added.
  DType get() const { return promotion_.get(); }
  bool empty() const { return promotion_.empty(); }

 private:
  DTypePromotion promotion_;
  std::optional<DType> tensor_;  // of the last one
  bool mixed_ = false;
  bool ranks_known_ = true;
  bool unknown_ = false;
};

}  // namespace wick
