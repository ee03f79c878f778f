// Rules for tensors. What a static type says of a tensor holds where the type stands, so only a
// write that changes sizes (resize_, t_, set_) can make it wrong; such a tensor has writers.
//
//   %s : int[] = aten::size(%x)
//   %d : int = aten::len(%s)        →   %d : int = aten::dim(%x)
#include <algorithm>
#include <bit>

#include "core/dtype.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/peephole_rules.h"
#include "passes/stride_uses.h"

namespace wick {

namespace {

bool isScalarConstant(const Value* v, double number) {
  std::optional<IValue> c = constantOf(v);
  if (!c) return false;
  if (c->isInt()) return static_cast<double>(c->toInt()) == number;
  return c->isDouble() && std::bit_cast<uint64_t>(c->toDouble()) == std::bit_cast<uint64_t>(number);
}

}  // namespace

bool Peephole::tensors(Node* n) {
  if (n->inputs().empty()) return false;
  if (n->kind() == aten::len) return sizes(n);
  if (n->input(0)->type()->kind() != TypeKind::Tensor || n->outputs().size() != 1) return false;
  return facts(n) || transposes(n) || tensorArithmetic(n);
}

bool Peephole::facts(Node* n) {
  const TensorType::Facts* known = factsOf(n->input(0));
  if (!known || aliases_.hasWriters(n->input(0))) return false;
  if (std::optional<IValue> answer = answerFromType(n)) return replaceWithConstant(n, *answer);
  if (n->kind() != aten::size || !known->sizes) return false;
  const auto& size = *known->sizes;
  auto isKnown = [](const std::optional<int64_t>& s) { return s && *s >= 0; };
  if (n->inputs().size() == 2) {
    std::optional<int64_t> d = intOf(n->input(1));
    auto rank = static_cast<int64_t>(size.size());
    if (!d || *d < -rank || *d >= rank) return false;
    const auto& s = size[*d < 0 ? *d + rank : *d];
    return isKnown(s) && replaceWithConstant(n, IValue(*s));
  }
  const Value* out = n->output();
  if (!std::all_of(size.begin(), size.end(), isKnown) || aliases_.hasWriters(out) ||
      aliases_.escapesScope(out) || identityIsObserved(out)) {
    return false;
  }
  DimVector values;
  for (const auto& s : size) values.push_back(*s);
  return replaceWithConstant(n, IValue(makeIntList(values)));
}

bool Peephole::sizes(Node* n) {
  const Node* size = n->input(0)->node();
  if (size->kind() != aten::size || size->inputs().size() != 1) return false;
  if (aliases_.hasWriters(size->output()) || aliases_.hasWriters(size->input(0))) return false;
  Node* dim = graph_.create(aten::dim, {size->input(0)})->insertBefore(n);
  dim->output()->setType(types::Int());
  return replaceWith(n, dim->output());
}

bool Peephole::transposes(Node* n) {
  static const Symbol kT = Symbol::aten("t");
  if (n->kind() != kT) return false;
  const Node* inner = n->input(0)->node();
  if (inner->kind() != kT) return false;
  Value* x = inner->input(0);
  return aliases_.safeToChangeAliasing(n->output(), x) && !identityIsObserved(n->output()) &&
         replaceWith(n, x);
}

// x * 1, x / 1, x - 0 and x + (-0.0) with a number, for a tensor that is known to be floating and
// thus keeps its dtype.
bool Peephole::tensorArithmetic(Node* n) {
  Symbol kind = n->kind();
  if (kind != aten::mul && kind != aten::div && kind != aten::sub) return false;
  const TensorType::Facts* known = factsOf(n->input(0));
  if (!known || !known->dtype || !isFloating(*known->dtype)) return false;
  if (n->inputs().size() < 2 || n->input(1)->type()->kind() == TypeKind::Tensor) return false;
  bool identity = false;
  if (kind == aten::sub) {
    identity = n->inputs().size() == 3 && isScalarConstant(n->input(1), 0.0) &&
               isScalarConstant(n->input(2), 1.0);
  } else {
    identity = n->inputs().size() == 2 && isScalarConstant(n->input(1), 1.0);
  }
  if (!identity || identityIsObserved(n->output())) return false;
  // The result lies densely, whatever its argument does.
  if (!liesDensely(n->input(0)) && !isReadByElement(n->output())) return false;
  return aliases_.safeToChangeAliasing(n->output(), n->input(0)) && replaceWith(n, n->input(0));
}

}  // namespace wick
