// What an unpickler does to a value when it is complete: refuses shapes that would hurt later
// readers, and gives containers without a type tag their types.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"

namespace wick {

// `containers` are all lists, dicts, tuples and objects that were made. Calls `fail`, which must
// throw, when they nest deeper than 1000 levels, hold themselves, or share parts so often that
// walking them takes far longer than their number suggests.
void checkPickledStructure(const std::vector<IValue>& containers,
                           const std::function<void(const std::string&)>& fail);

// Sets element types of lists, and key and value types of dicts, that are not among `typed`, from
// their elements: the common type, Optional of it when None occurs too, else Any. The containers
// must have passed the check.
void inferContainerTypes(const std::vector<IValue>& containers,
                         const std::unordered_map<const RefCounted*, bool>& typed);

}  // namespace wick
