// Classes under construction: finding their members while other code already refers to them.
#pragma once

#include <set>
#include <string>

#include "core/error.h"
#include "ir/function.h"

namespace wick {

// The method of a class or interface; null when there is none.
Function* findMethodOf(const TypePtr& type, const std::string& name);
// Attributes of a class appear when its __init__ is compiled: does so unless it happened or is
// happening.
void ensureInitialized(const ClassType& type);
// For members that are not found: throws the error of a line in the class's body that could not be
// read when it may have defined this one.
void checkUnreadable(const ClassType& type, const std::string& member);
// A class has no such member; `known` are those that it lists, static methods are not among them.
class MissingMember : public CompileError {
 public:
  MissingMember(const SourceRange& range, std::string message, std::string member,
                ClassTypePtr type, std::set<std::string> known);
  const std::string& className() const { return type_->name(); }
  // The same error; it may suggest a static method among `functions` too.
  CompileError among(const std::set<std::string>& functions) const;

 private:
  std::string message_;
  std::string member_;
  ClassTypePtr type_;
  std::set<std::string> known_;
};
// Whether a method is not a real one, but stands for a line that could not be read.
bool isUnreadable(const Function& method);

}  // namespace wick
