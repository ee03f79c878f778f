// How the tensors and numbers of a program's arguments and results lie in tuples, lists and dicts (pytree's TreeSpec).
#pragma once

#include <string>
#include <vector>

#include "core/keyed_hash.h"
#include "serialization/load_budget.h"

namespace wick::exported {

struct Tree {
  enum class Kind : uint8_t { Leaf, Tuple, NamedTuple, List, Dict };
  Kind kind = Kind::Leaf;
  std::string type;               // the class in Python; "" for a leaf
  std::vector<std::string> keys;  // of a dict, or the fields of a named tuple
  bool integer_keys = false;      // keys of a dict are integers
  std::vector<Tree> children;

  size_t countLeaves() const;
};

// Reads the text that treespec_dumps gives. Classes that programs have registered are dicts by the names of their fields.
// `name` begins messages. Throws LoadError.
Tree parseTree(const std::string& text, const std::string& name,
               const KeyedMap<std::string, std::vector<std::string>>& named_tuple_fields,
               LoadBudget& budget);

}  // namespace wick::exported
