// Which dtypes a pointwise operator computes in: shared by the eager engine and by compiled
// kernels.
#pragma once

#include <optional>

#include "codegen/scalar/definition.h"

namespace wick {

// The dtype of operands of which `higher` decides unless `lower` is of a higher category (boolean,
// integer, floating, complex).
DType combineCategories(DType higher, DType lower);

// The dtype that operands compute in together: tensors with dimensions decide, zero-dim tensors and
// then numbers only where their category is higher.
class OperandTypes {
 public:
  void addTensor(DType type, int64_t rank) { merge(rank > 0 ? dims_ : zero_dims_, type); }
  void addNumber(DType type) { merge(numbers_, type); }
  // nullopt when nothing was added.
  std::optional<DType> get() const;

 private:
  static void merge(std::optional<DType>& into, DType type) {
    into = into ? promoteTypes(*into, type) : type;
  }
  std::optional<DType> dims_;
  std::optional<DType> zero_dims_;
  std::optional<DType> numbers_;
};

struct ComputeTypes {
  DType common;   // what the operands are cast to
  DType compute;  // what the definition works in
  DType written;  // what it gives
  DType result;   // what the operator returns
};
// `operands` is OperandTypes::get() of the operands that are neither masks nor parameters. With a
// dtype that the definition does not accept, `common` alone is filled in and `accepted` is false.
ComputeTypes chooseTypes(const ScalarDefinition& definition, std::optional<DType> operands,
                         bool& accepted);

}  // namespace wick
