// The names under which classes and functions stand in an archive. Private to the Python printer.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/function_schema.h"
#include "core/keyed_hash.h"
#include "core/type.h"

namespace wick {

// Parts of a module may come from different programs, which may have used one name for two things:
// the first keeps it, the next gets another ("a.C", "a.___torch_mangle_0.C").
class ExportNames {
 public:
  // Of a class, NamedTuple, enum or interface.
  const std::string& of(const Type& named);
  const std::string& of(const Function& function);
  // Type::annotation() with these names.
  std::string annotation(const Type& type);

  static bool isNamed(const Type& type);

 private:
  const std::string& claim(const std::string& wanted);

  std::unordered_map<const Type*, std::string> types_;
  std::unordered_map<const Function*, std::string> functions_;
  // Types of structure (NamedTuples, enums) are one when they are equal.
  KeyedMap<std::string, std::vector<TypePtr>> owners_;
  KeyedSet<std::string> taken_;
  bool renamed_ = false;
  std::string claimed_;
};

}  // namespace wick
