// What a callee's schemas say of the arguments of a call from Python (python/eager.h): how few ways of
// writing them can mean anything.
#pragma once

#include <string>
#include <vector>

#include "core/function_schema.h"
#include "python/call_text.h"

namespace wick::python {

// What may be None, without that.
const Type& withoutOptional(const TypePtr& type);

class CalleeSchemas {
 public:
  // Of a function or method with this name. Signs, properties and what the language makes special forms
  // of have none.
  CalleeSchemas(CallForm form, const std::string& name);

  // The spellings behind the first that may mean anything, in the order in which they are tried.
  std::vector<Spelling> otherSpellings(const Arguments& arguments) const;
  // The parameter that a dtype, given by position as the last argument, goes to although a list of sizes
  // stands there in another overload: x.view(torch.int32). Empty where nothing is ambiguous.
  std::string parameterOfName(const Arguments& arguments) const;
  // What an empty list may be a list of, in the order in which it is tried.
  std::vector<const char*> emptyListTypes(const Arguments& arguments) const;
  // The names under which an overload takes this number of tensors to write to; empty when there is
  // none, or when the callee takes them as a list.
  std::vector<std::string> outNames(size_t count) const;

 private:
  bool hasOverloadForInts(const Arguments& arguments, uint64_t choice) const;
  std::vector<uint64_t> numberChoices(const Arguments& arguments, ArgumentForm form) const;

  std::vector<const FunctionSchema*> schemas_;
};

}  // namespace wick::python
