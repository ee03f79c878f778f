// The signature of an operator, function or method: argument names, types, defaults and what
// aliases what. Written as in PyTorch's operator declarations:
//   aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/ivalue.h"
#include "core/symbol.h"
#include "core/type.h"

namespace wick {

// The annotation in parentheses: (a), (a!), (a -> *), (a|b), (*). Null means fresh and not written.
struct AliasInfo {
  bool is_write = false;
  std::vector<std::string> before;   // alias sets on entry; "*" is the wildcard
  std::vector<std::string> after;    // alias sets afterwards; equal to `before` without an arrow
  std::vector<AliasInfo> contained;  // of the elements: Tensor(a)[] has one
  bool isWildcardAfter() const { return after.size() == 1 && after[0] == "*"; }
};

struct Argument {
  std::string name;
  TypePtr type;
  std::optional<int32_t> fixed_size;  // 2 for int[2]: a single value is repeated
  std::optional<IValue> default_value;
  bool kwarg_only = false;
  std::shared_ptr<const AliasInfo> alias;
};

class FunctionSchema {
 public:
  FunctionSchema() = default;
  FunctionSchema(std::string name, std::string overload, std::vector<Argument> arguments,
                 std::vector<Argument> returns, bool is_vararg = false, bool is_varret = false)
      : name_(std::move(name)),
        overload_(std::move(overload)),
        arguments_(std::move(arguments)),
        returns_(std::move(returns)),
        is_vararg_(is_vararg),
        is_varret_(is_varret) {}

  const std::string& name() const { return name_; }          // "aten::add", or a function's name
  const std::string& overload() const { return overload_; }  // "Tensor"
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<Argument>& returns() const { return returns_; }
  bool isVararg() const { return is_vararg_; }  // more arguments may follow ("...")
  bool isVarret() const { return is_varret_; }
  // Whether any argument is written.
  bool isMutable() const;
  std::optional<size_t> argumentIndex(std::string_view name) const;
  // The declaration, as it is parsed.
  std::string str() const;

 private:
  std::string name_;
  std::string overload_;
  std::vector<Argument> arguments_;
  std::vector<Argument> returns_;
  bool is_vararg_ = false;
  bool is_varret_ = false;
};

// Throws RuntimeError that shows the place of the mistake.
FunctionSchema parseSchema(std::string_view text);
// A type in the schema language ("Tensor(a)[]", "int[2]?", "Dict(str, t)") or in Python's
// ("List[int]", "Optional[Tensor]"); single lower-case letters are type variables.
TypePtr parseSchemaType(std::string_view text);

// A callable with a schema. Owned by its compilation unit (or, in interfaces, by the type).
class Function {
 public:
  virtual ~Function() = default;
  virtual const std::string& qualifiedName() const = 0;  // "__torch__.f" or "__torch__.M.forward"
  // The last part of the qualified name.
  std::string name() const {
    const std::string& q = qualifiedName();
    return q.substr(q.rfind('.') + 1);
  }
  // Compiles the function first when that has not happened yet; throws CompileError.
  virtual const FunctionSchema& schema() = 0;
  virtual void ensureDefined() = 0;
};

}  // namespace wick
