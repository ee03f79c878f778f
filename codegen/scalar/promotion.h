// Which dtypes a pointwise operator computes in: shared by the eager engine and by compiled
// kernels.
#pragma once

#include "codegen/scalar/definition.h"
#include "core/dtype_promotion.h"

namespace wick {

struct ComputeTypes {
  DType common;   // what the operands are cast to
  DType compute;  // what the definition works in
  DType written;  // what it gives
  DType result;   // what the operator returns
};
// `operands` are those that are neither masks nor parameters. With a dtype that the definition does
// not accept, `common` alone is filled in and `accepted` is false.
ComputeTypes chooseTypes(const ScalarDefinition& definition, const DTypePromotion& operands,
                         bool& accepted);

}  // namespace wick
