#include "frontend/mentioned_names.h"

#include <set>

#include "frontend/lexer.h"
#include "frontend/local_functions.h"
#include "frontend/tree_views.h"

namespace wick {

std::vector<std::string> mentionedNames(const TreeRef& tree, const Environment& environment) {
  std::vector<std::string> out;
  KeyedSet<std::string> seen;
  std::set<const Tree*> bodies;
  std::vector<const Tree*> open = {tree.get()};
  while (!open.empty()) {
    const Tree* current = open.back();
    open.pop_back();
    if (current->kind() != TK_VAR) {
      if (current->isAtom()) continue;
      const TreeList& children = current->children();
      for (auto it = children.rbegin(); it != children.rend(); ++it) open.push_back(it->get());
      continue;
    }
    const std::string& name = current->child(0)->child(0)->stringValue();
    if (!seen.insert(name).second) continue;
    out.push_back(name);
    // Nothing else that a name stands for can hold a function.
    const SugaredValue* value = environment.findSugared(name);
    const auto* function = dynamic_cast<const LocalFunction*>(value);
    if (function != nullptr && bodies.insert(function->tree().get()).second) {
      open.push_back(function->tree().get());
    }
  }
  return out;
}

}  // namespace wick
