// Rules for lists that the graph builds from known elements and that nobody writes.
//
//   %l : int[] = prim::ListConstruct(%a, %b)
//   %n : int = aten::len(%l)                   →   %n : int = prim::Constant[value=2]()
//   %e : int = aten::__getitem__(%l, %one)         users of %e read %b
#include <algorithm>

#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/peephole_rules.h"

namespace wick {

bool Peephole::lists(Node* n) {
  if (n->inputs().empty() || n->input(0)->type()->kind() != TypeKind::List) return false;
  Symbol kind = n->kind();
  if (kind == aten::len) return listLength(n);
  if (kind == aten::__getitem__) return listElement(n);
  if (kind == prim::ListUnpack) return listUnpack(n);
  if (kind == aten::slice) return listSlice(n);
  if (kind == aten::add) return listSum(n);
  return false;
}

const Node* Peephole::literalList(const Value* v) const {
  const Node* n = v->node();
  return n->kind() == prim::ListConstruct && !aliases_.hasWriters(v) ? n : nullptr;
}

bool Peephole::listLength(Node* n) {
  const Node* list = literalList(n->input(0));
  return list && replaceWithConstant(n, IValue(static_cast<int64_t>(list->inputs().size())));
}

bool Peephole::listElement(Node* n) {
  const Node* list = literalList(n->input(0));
  std::optional<int64_t> index = intOf(n->input(1));
  if (!list || !index) return false;
  auto size = static_cast<int64_t>(list->inputs().size());
  int64_t i = *index < 0 ? *index + size : *index;
  return i >= 0 && i < size && replaceWith(n, list->input(i));
}

bool Peephole::listUnpack(Node* n) {
  const Node* list = literalList(n->input(0));
  if (!list || list->inputs().size() != n->outputs().size()) return false;
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    if (!sameType(n->output(i)->type(), list->input(i)->type())) return false;
  }
  if (!mayRewrite(n)) return false;
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    aliases_.takesOver(list->input(i), n->output(i));
    replaceValue(n->output(i), list->input(i));
  }
  return true;
}

// slice(t[] l, int? start, int? end, int step)
bool Peephole::listSlice(Node* n) {
  const Node* list = literalList(n->input(0));
  if (!list || n->inputs().size() != 4) return false;
  std::optional<IValue> start = constantOf(n->input(1));
  std::optional<IValue> end = constantOf(n->input(2));
  std::optional<int64_t> step = intOf(n->input(3));
  if (!start || !end || !step || *step != 1) return false;
  auto size = static_cast<int64_t>(list->inputs().size());
  auto bound = [&](const IValue& v, int64_t absent) {
    if (v.isNone()) return absent;
    int64_t i = v.toInt() < 0 ? v.toInt() + size : v.toInt();
    return std::clamp<int64_t>(i, 0, size);
  };
  int64_t first = bound(*start, 0);
  int64_t last = std::max(first, bound(*end, size));
  std::vector<Value*> taken(list->inputs().begin() + first, list->inputs().begin() + last);
  const auto* type = n->output()->type()->as<ListType>();
  return type && replaceWithFresh(n, graph_.createList(type->element(), taken));
}

bool Peephole::listSum(Node* n) {
  if (n->inputs().size() != 2) return false;
  // Sums of sums would copy the elements over and over.
  constexpr size_t kMaxElements = 64;
  const Node* a = literalList(n->input(0));
  const Node* b = literalList(n->input(1));
  if (!a || !b || a->inputs().size() + b->inputs().size() > kMaxElements) return false;
  std::vector<Value*> all = a->inputs();
  all.insert(all.end(), b->inputs().begin(), b->inputs().end());
  const auto* type = n->output()->type()->as<ListType>();
  return type && replaceWithFresh(n, graph_.createList(type->element(), all));
}

}  // namespace wick
