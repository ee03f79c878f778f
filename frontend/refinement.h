// What a condition says about the types of variables: `x is not None` and `isinstance(x, T)` narrow
// x in the branch that they guard.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace wick {

struct Refinement {
  std::string name;
  TypePtr type;
};

// The refinements that hold when a condition is true and when it is false.
class RefinementSet {
 public:
  RefinementSet() = default;
  RefinementSet(std::vector<Refinement> when_true, std::vector<Refinement> when_false)
      : when_true_(std::move(when_true)), when_false_(std::move(when_false)) {}

  RefinementSet operator&&(const RefinementSet& other) const {
    // False: one of the two was false, so only what both would say then holds.
    return RefinementSet(all(when_true_, other.when_true_), common(when_false_, other.when_false_));
  }
  RefinementSet operator||(const RefinementSet& other) const {
    return RefinementSet(common(when_true_, other.when_true_), all(when_false_, other.when_false_));
  }
  RefinementSet operator!() const { return RefinementSet(when_false_, when_true_); }
  const std::vector<Refinement>& active() const { return when_true_; }

 private:
  using Refinements = std::vector<Refinement>;
  static Refinements all(const Refinements& a, const Refinements& b);
  static Refinements common(const Refinements& a, const Refinements& b);

  Refinements when_true_;
  Refinements when_false_;
};

// A condition: its value, what it implies, and its outcome where that is known when compiling (then
// only the live branch is compiled).
struct CondValue {
  Value* value;
  RefinementSet refinements;
  std::optional<bool> known;
};

// What an isinstance test of a value with this type against `candidates` can find out.
struct InstanceTest {
  bool always = false;
  bool never = false;
  TypePtr when_true;   // null: no refinement
  TypePtr when_false;  // null: no refinement
};
InstanceTest testInstance(const TypePtr& type, const std::vector<TypePtr>& candidates);

// The type without None: Optional[T] gives T. Null when the type cannot hold None or is nothing
// but None.
TypePtr withoutNone(const TypePtr& type);

}  // namespace wick
