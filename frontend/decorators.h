// What decorators of torch.jit ask for, and base classes by their last name.
#pragma once

#include <string>
#include <string_view>

#include "frontend/tree_views.h"

namespace wick {

// "c" of the expression a.b.c, "c" of c; empty for anything else.
std::string lastName(const Expr& expr);
// Whether one of the decorators has this last name: "unused" for @torch.jit.unused, "ignore" for
// @torch.jit.ignore(drop=True).
bool hasDecorator(const List<Expr>& decorators, std::string_view name);
bool hasDecorator(const Def& def, std::string_view name);
// What stands for a function marked @torch.jit.unused: its body, which need not be TorchScript, is
// never compiled, and a call raises.
Def unusedFunction(const Def& def);

}  // namespace wick
