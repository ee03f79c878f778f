// The names that programs find without defining them: Python's builtins, `torch`, `math` and their
// members. One table says what each stands for.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "frontend/sugared_value.h"

namespace wick {

// A name that needs no module: `len`, `range`, `torch`, `math`. Null when there is none.
SugaredValuePtr builtinValue(const std::string& name, GraphFunction& fn);
// A member of a builtin module: ("torch.nn.functional", "relu"). Null when there is none.
SugaredValuePtr builtinMember(const std::string& module, const std::string& name,
                              GraphFunction& fn);
// The names for which builtinValue gives something, for "did you mean".
const std::set<std::string>& builtinNames();
// "; did you mean 'x'?" for a member that does not exist.
std::string suggestBuiltinMember(const std::string& module, const std::string& name);
// Whether the name is one of Python's exception classes.
bool isExceptionName(std::string_view name);
// Whether Python has a builtin of this name that TorchScript lacks: set, iter, …
bool isPythonOnly(std::string_view name);

// The operator behind an attribute of a value of this kind: Tensor.dtype, Device.index. No symbol
// when there is none.
Symbol propertyOperator(TypeKind kind, const std::string& name);
// Attributes of values of this kind that no operator is called like, for "did you mean".
std::set<std::string> builtinAttributes(TypeKind kind);
// The dtype number of casting methods: x.float(). nullopt for other names.
std::optional<int64_t> castMethodDType(const std::string& name);

}  // namespace wick
