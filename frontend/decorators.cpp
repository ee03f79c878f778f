#include "frontend/decorators.h"

#include <fmt/format.h>

#include "frontend/parser.h"

namespace wick {

std::string lastName(const Expr& expr) {
  if (expr.kind() == TK_VAR) return Var(expr.tree()).name().name();
  if (expr.kind() == '.') return Select(expr.tree()).selector().name();
  return "";
}

bool hasDecorator(const List<Expr>& decorators, std::string_view name) {
  for (const Expr& decorator : decorators) {
    const bool called = decorator.kind() == TK_APPLY;
    if (lastName(called ? Apply(decorator.tree()).callee() : decorator) == name) return true;
  }
  return false;
}

bool hasDecorator(const Def& def, std::string_view name) {
  return hasDecorator(def.decorators(), name);
}

Def unusedFunction(const Def& def) {
  const std::string text = fmt::format(
      "def {0}():\n  raise RuntimeError('{0} is marked @torch.jit.unused')\n", def.name().name());
  return Def::create(def.range(), def.name(), def.decl(), Parser(text).parseFunction().statements(),
                     def.decorators());
}

}  // namespace wick
