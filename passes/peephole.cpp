// A walk forwards, so that a rule sees inputs that are simplified already. Rules for numbers,
// booleans and None stand here.
//
//   %b : bool = aten::eq(%i, %j)          %b : bool = aten::eq(%i, %j)
//   %n : bool = aten::__not__(%b)   →     %n : bool = aten::ne(%i, %j)
//   %m : int = aten::mul(%i, %one)        users of %m read %i
#include "passes/peephole.h"

#include <bit>

#include "core/optimization_limit.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/peephole_rules.h"

namespace wick {

namespace {

bool hasKind(const Value* v, TypeKind kind) {
  return v->type()->kind() == kind;
}

bool isNumber(const Value* v) {
  return hasKind(v, TypeKind::Int) || hasKind(v, TypeKind::Float);
}

// Whether `v` is the constant `number`, as int or float; not -0.0 for 0.
bool isNumberConstant(const Value* v, int64_t number) {
  std::optional<IValue> c = constantOf(v);
  if (!c) return false;
  if (c->isInt()) return c->toInt() == number;
  return c->isDouble() &&
         std::bit_cast<uint64_t>(c->toDouble()) == std::bit_cast<uint64_t>(double(number));
}

}  // namespace

bool simplifyPeepholes(Graph& graph) {
  return Peephole(graph).run();
}

bool Peephole::run() {
  return forEachNode(graph_.block(), [&](Node* n) {
           InsertPointGuard guard(n);
           RangeGuard range(&graph_, n->range());
           if (!rewrite(n)) return false;
           if (n->kind() == prim::If) return true;  // only some of its outputs were replaced
           aliases_.removeNode(n);
           n->destroy();
           return true;
         }) != 0;
}

bool Peephole::rewrite(Node* n) {
  if (n->kind() == prim::If) return choice(n);
  if (!n->blocks().empty() || n->outputs().empty()) return false;
  return arithmetic(n) || logic(n) || optionals(n) || conversions(n) || lists(n) || tensors(n);
}

// Counted and logged in this file for all files of the pass.
bool Peephole::mayRewrite(const Node* n) const {
  return WICK_MAY_OPTIMIZE("simplifies {}", n->str());
}

bool Peephole::replaceWith(Node* n, Value* value) {
  // What is known of a tensor besides may differ.
  if (!sameType(unshapedType(n->output()->type()), unshapedType(value->type())) || !mayRewrite(n)) {
    return false;
  }
  aliases_.takesOver(value, n->output());
  replaceValue(n->output(), value);
  return true;
}

bool Peephole::replaceWithConstant(Node* n, IValue value) {
  if (!mayRewrite(n)) return false;
  Node* constant = graph_.createConstant(std::move(value), n->output()->type())->insertBefore(n);
  aliases_.addAlias(constant->output(), n->output());
  replaceValue(n->output(), constant->output());
  return true;
}

bool Peephole::replaceWithFresh(Node* n, Node* made) {
  if (!mayRewrite(n)) {
    made->destroy();
    return false;
  }
  made->insertBefore(n);
  made->output()->setType(n->output()->type());
  // The new memory takes the place of the old, and is known wherever that was.
  aliases_.addAlias(made->output(), n->output());
  replaceValue(n->output(), made->output());
  return true;
}

// ---- numbers ----

bool Peephole::arithmetic(Node* n) {
  Symbol kind = n->kind();
  if (kind == aten::neg && n->inputs().size() == 1 && isNumber(n->input(0))) {
    const Node* inner = n->input(0)->node();
    return inner->kind() == aten::neg && replaceWith(n, inner->input(0));
  }
  if (n->inputs().size() != 2 || n->outputs().size() != 1) return false;
  Value* a = n->input(0);
  Value* b = n->input(1);
  if (!isNumber(a) || !isNumber(b)) return false;
  bool ints = hasKind(a, TypeKind::Int) && hasKind(b, TypeKind::Int);
  if (kind == aten::add && ints) {  // -0.0 + 0 is 0.0
    return (isNumberConstant(b, 0) && replaceWith(n, a)) ||
           (isNumberConstant(a, 0) && replaceWith(n, b));
  }
  if (kind == aten::sub) return isNumberConstant(b, 0) && replaceWith(n, a);
  if (kind == aten::mul) {
    if (ints && (isNumberConstant(a, 0) || isNumberConstant(b, 0))) {
      return replaceWithConstant(n, IValue(int64_t{0}));
    }
    return (isNumberConstant(b, 1) && replaceWith(n, a)) ||
           (isNumberConstant(a, 1) && replaceWith(n, b));
  }
  if (kind == aten::div) return isNumberConstant(b, 1) && replaceWith(n, a);
  if (kind == Symbol::aten("floordiv") && ints) {
    return isNumberConstant(b, 1) && replaceWith(n, a);
  }
  return false;
}

// ---- booleans ----

bool Peephole::logic(Node* n) {
  if (n->kind() != aten::__not__ || !hasKind(n->input(0), TypeKind::Bool)) return false;
  const Node* inner = n->input(0)->node();
  if (inner->kind() == aten::__not__) return replaceWith(n, inner->input(0));
  if (inner->inputs().size() != 2) return false;
  Value* a = inner->input(0);
  Value* b = inner->input(1);
  static const std::unordered_map<Symbol, Symbol> kOpposite = {{aten::eq, aten::ne},
                                                               {aten::ne, aten::eq},
                                                               {aten::lt, aten::ge},
                                                               {aten::ge, aten::lt},
                                                               {aten::gt, aten::le},
                                                               {aten::le, aten::gt},
                                                               {aten::__is__, aten::__isnot__},
                                                               {aten::__isnot__, aten::__is__}};
  auto opposite = kOpposite.find(inner->kind());
  if (opposite == kOpposite.end()) return false;
  bool ints = hasKind(a, TypeKind::Int) && hasKind(b, TypeKind::Int);
  bool numbers = isNumber(a) && isNumber(b);  // a NaN is neither less nor not less
  bool equality = inner->kind() == aten::eq || inner->kind() == aten::ne;
  bool identity = inner->kind() == aten::__is__ || inner->kind() == aten::__isnot__;
  if (!ints && !(numbers && equality) && !identity) return false;
  Node* made = graph_.create(opposite->second, {a, b})->insertBefore(n);
  made->output()->setType(types::Bool());
  return replaceWith(n, made->output());
}

// True if c else False, and the reverse.
bool Peephole::choice(Node* n) {
  bool changed = false;
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    Value* out = n->output(i);
    if (!hasKind(out, TypeKind::Bool) || !out->hasUses()) continue;
    std::optional<bool> a = boolOf(n->blocks()[0]->outputs()[i]);
    std::optional<bool> b = boolOf(n->blocks()[1]->outputs()[i]);
    if (!a || !b || *a == *b || !mayRewrite(n)) continue;
    if (*a) {
      out->replaceAllUsesWith(n->input(0));
    } else {
      Node* negated = graph_.create(aten::__not__, {n->input(0)})->insertBefore(n);
      negated->output()->setType(types::Bool());
      out->replaceAllUsesWith(negated->output());
    }
    changed = true;
  }
  return changed;
}

// ---- None ----

bool Peephole::optionals(Node* n) {
  Symbol kind = n->kind();
  if (kind == aten::__is__ || kind == aten::__isnot__) {
    const Value* a = n->input(0);
    const Value* b = n->input(1);
    bool is = kind == aten::__is__;
    if (a == b) return replaceWithConstant(n, IValue(is));
    if (hasKind(a, TypeKind::None)) std::swap(a, b);
    if (!hasKind(b, TypeKind::None)) return false;
    if (hasKind(a, TypeKind::None)) return replaceWithConstant(n, IValue(is));
    // An undefined tensor is None at run time; one whose dtype is known is there.
    if (a->type()->acceptsNone()) return false;
    const auto* tensor = a->type()->as<TensorType>();
    if (tensor && (!tensor->facts().dtype || tensor->facts().undefined)) return false;
    return replaceWithConstant(n, IValue(!is));
  }
  if (kind == prim::unchecked_cast || kind == prim::unchecked_unwrap_optional) {
    return replaceWith(n, n->input(0));
  }
  // The check that something is not None raises; of a type without None it cannot.
  if (kind == Symbol::aten("_unwrap_optional")) {
    return !n->input(0)->type()->acceptsNone() && !hasKind(n->input(0), TypeKind::Tensor) &&
           replaceWith(n, n->input(0));
  }
  return false;
}

// ---- conversions ----

bool Peephole::conversions(Node* n) {
  Symbol kind = n->kind();
  if (n->inputs().size() != 1) return false;
  if (kind != aten::Int && kind != aten::Float && kind != aten::Bool) return false;
  Value* v = n->input(0);
  if (isNumber(v) || hasKind(v, TypeKind::Bool)) return replaceWith(n, v);
  static const Symbol kNumToTensor = Symbol::prim("NumToTensor");
  const Node* inner = v->node();
  if (inner->kind() != kNumToTensor || !isNumber(inner->input(0))) return false;
  return !aliases_.hasWriters(v) && replaceWith(n, inner->input(0));
}

}  // namespace wick
