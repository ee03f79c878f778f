// What a condition says about the types of variables: `x is not None` and `isinstance(x, T)` narrow
// x in the branch that they guard.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/keyed_hash.h"
#include "ir/graph.h"

namespace wick {

struct Refinement {
  std::string name;
  TypePtr type;
};

// A row of refinements. Rows that grow out of each other share what they have in common, so that a
// conjunction of n conditions takes memory for n.
class RefinementList {
 public:
  RefinementList() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  RefinementList(const std::vector<Refinement>& refinements) { append(refinements); }

  bool empty() const { return size_ == 0; }
  std::span<const Refinement> all() const;
  // Those of these variables, in their order.
  std::vector<Refinement> of(const std::vector<std::string>& names) const;
  void append(std::span<const Refinement> more);

 private:
  struct Store {
    std::vector<Refinement> entries;
    KeyedMap<std::string, std::vector<size_t>> positions;
  };
  std::shared_ptr<Store> store_;  // may hold more than belongs to this row
  size_t size_ = 0;
};

// The refinements that hold when a condition is true and when it is false.
class RefinementSet {
 public:
  RefinementSet() = default;
  RefinementSet(RefinementList when_true, RefinementList when_false)
      : when_true_(std::move(when_true)), when_false_(std::move(when_false)) {}

  RefinementSet operator&&(const RefinementSet& other) const {
    // False: one of the two was false, so only what both would say then holds.
    return RefinementSet(all(when_true_, other.when_true_), common(when_false_, other.when_false_));
  }
  RefinementSet operator||(const RefinementSet& other) const {
    return RefinementSet(common(when_true_, other.when_true_), all(when_false_, other.when_false_));
  }
  RefinementSet operator!() const { return RefinementSet(when_false_, when_true_); }
  const RefinementList& active() const { return when_true_; }

 private:
  static RefinementList all(const RefinementList& a, const RefinementList& b);
  static RefinementList common(const RefinementList& a, const RefinementList& b);

  RefinementList when_true_;
  RefinementList when_false_;
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
