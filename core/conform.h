// Fits a value from outside (a file, an embedding program) to a declared type, so that typed code
// may rely on it.
//
// Every part is looked at, whatever the types that containers claim. Where Any is declared, a
// container must hold what it claims itself: isinstance() believes it.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/ivalue.h"
#include "core/type.h"

namespace wick {

enum class Conversions {
  None,    // the value must be of the type already; containers may get a more exact element type
  Python,  // as arguments from Python: int for float, numbers for complex and bool, bool for int, a
           // Tensor of one element for a number, a tuple for a list and back, a string for a device
};

// `value` as a `type`. Containers that fit as they are keep their identity; others are copied, as
// PyTorch copies arguments from Python: somebody may rely on the type that a container has. Tuples
// get the names of a NamedTuple. Throws RuntimeError ("expected List[int], got str") that says
// where in the value it does not fit. Takes time in proportion to the value, however its parts
// are shared.
IValue conform(IValue value, const TypePtr& type, Conversions conversions = Conversions::None);

// Returns the type that a container of these values may claim: what all have, with None an Optional, else Any; `of_none`
// when there are none.
TypePtr elementTypeOf(const std::vector<IValue>& values, const TypePtr& of_none);

// The containers of a file that is being loaded, whose types are not settled before somebody
// declares them. They are corrected in place, because what shares a container in the file must
// share it afterwards. Used by one thread.
class TypeClaims {
 public:
  // As the function above, without conversions; but a list or a dict gets its element types here,
  // and keeps them: RuntimeError when it was declared with other types before. The value must hold
  // no cycle.
  IValue conform(IValue value, const TypePtr& type);

 private:
  friend class Conformer;
  // What is known of a value and a type, by their addresses, which are kept alive.
  struct Key {
    const RefCounted* value;
    const Type* type;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.value) * 31 + std::hash<const void*>()(key.type);
    }
  };
  struct Known {
    IValue value;
    TypePtr type;
    IValue result;
    bool fits;
  };
  using Memory = std::unordered_map<Key, Known, KeyHash>;
  struct Claim {
    IValue container;
    TypePtr type;
  };
  std::unordered_map<const RefCounted*, Claim> containers_;
  Memory tuples_;
  Memory attempts_;  // at the members of unions
};

}  // namespace wick
