// Reads what archives hold of objects of native classes (core/native_class.h): values that a file
// says. All throw RuntimeError that begins with `what` for other values than they expect.
#pragma once

#include <optional>
#include <vector>

#include "core/scalar.h"
#include "core/tensor.h"

namespace wick::ops::state {

// Returns the elements of a tuple or a list.
const std::vector<IValue>& elementsOf(const char* what, const IValue& v);
const IValue& at(const char* what, const std::vector<IValue>& elements, size_t i);
Tensor tensorOf(const char* what, const IValue& v);
// Returns an undefined tensor for None.
Tensor optionalTensorOf(const char* what, const IValue& v);
// Takes an int, or a tensor of one element.
int64_t intOf(const char* what, const IValue& v);
// Takes a list of ints or of tensors of one element, or a tensor of one dimension.
DimVector intsOf(const char* what, const IValue& v);
// Returns nothing for None.
std::optional<Scalar> optionalNumberOf(const char* what, const IValue& v);

}  // namespace wick::ops::state
