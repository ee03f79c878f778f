// Conditions: what they compute, what they imply, and which of them are decided when compiling.
#include <fmt/format.h>

#include "core/error.h"
#include "frontend/ir_emitter.h"
#include "frontend/mentioned_names.h"

namespace wick {

namespace {

enum class Noneness { kAlways, kMaybe, kNever };

Noneness nonenessOf(const Value* v) {
  if (v->type()->kind() == TypeKind::None) return Noneness::kAlways;
  return v->type()->acceptsNone() ? Noneness::kMaybe : Noneness::kNever;
}

}  // namespace

CondValue Emitter::constantCond(bool value) {
  return {constant(IValue(value)), RefinementSet(), value};
}

CondValue Emitter::emitCond(const Expr& expr) {
  RangeGuard at(&graph_, expr.range());
  switch (expr.kind()) {
    case TK_AND:
    case TK_OR: {
      BinOp op(expr.tree());
      return emitShortCircuit(expr.range(), op.lhs(), op.rhs(), expr.kind() == TK_OR);
    }
    case TK_NOT: {
      CondValue v = emitCond(UnaryOp(expr.tree()).operand());
      std::optional<bool> known = v.known ? std::optional<bool>(!*v.known) : std::nullopt;
      Value* negated =
          known ? constant(IValue(*known)) : builtin(expr.range(), aten::__not__, {v.value});
      return {negated, !v.refinements, known};
    }
    case TK_IS:
    case TK_ISNOT:
      return emitIsNone(BinOp(expr.tree()));
    case TK_COMPARE_CHAIN:
      return emitCompareChain(CompareChain(expr.tree()));
    case TK_APPLY: {
      Apply apply(expr.tree());
      // The callee may be anything; only these two have a condition of their own.
      if (apply.callee().kind() == TK_VAR || apply.callee().kind() == '.') {
        SugaredValuePtr callee = emitSugared(apply.callee());
        if (auto* form = dynamic_cast<SpecialForm*>(callee.get())) {
          if (form->form() == prim::isinstance) return emitIsInstance(apply);
          if (form->form() == prim::HasAttr) return emitHasAttr(apply);
        }
      }
      break;
    }
    default:
      break;
  }
  Value* value = emitToBool(expr.range(), emitExpr(expr));
  std::optional<bool> known;
  if (value->node()->kind() == prim::Constant) {
    if (auto v = constantOf(value); v && v->isBool()) known = v->toBool();
  }
  if (value->node()->kind() == Symbol::aten("is_scripting")) known = true;
  return {value, RefinementSet(), known};
}

RefinementSet Emitter::refinementsFor(const Expr& expr, const RefinementList& refinements) {
  if (refinements.empty()) return {};
  return {refinements.of(mentionedNames(expr.tree(), *env_)), {}};
}

CondValue Emitter::emitShortCircuit(const SourceRange& range, const Expr& first, const Expr& second,
                                    bool is_or) {
  CondValue lhs = emitCond(first);
  // Decided by the first operand: the second is not looked at.
  if (lhs.known) {
    if (*lhs.known == is_or) return lhs;
    // The refinements of a decided operand hold while the other is compiled.
    insertRefinements(range, is_or ? !lhs.refinements : lhs.refinements);
    CondValue rhs = emitCond(second);
    RefinementSet both =
        is_or ? lhs.refinements || rhs.refinements : lhs.refinements && rhs.refinements;
    return {rhs.value, both, rhs.known};
  }
  // Of n operands in a row each sees what those before it have proved, so only what it can notice
  // is written down.
  const RefinementSet& proved = lhs.refinements;
  const RefinementSet seen = refinementsFor(second, (is_or ? !proved : proved).active());
  std::optional<CondValue> rhs;
  auto emitSecond = [&] {
    rhs = emitCond(second);
    return rhs->value;
  };
  auto shortcut = [&] { return constant(IValue(is_or)); };
  const CondValue test{lhs.value, is_or ? !seen : seen, std::nullopt};
  Value* value = is_or ? emitValueIf(range, test, shortcut, emitSecond, nullptr)
                       : emitValueIf(range, test, emitSecond, shortcut, nullptr);
  RefinementSet both =
      is_or ? lhs.refinements || rhs->refinements : lhs.refinements && rhs->refinements;
  std::optional<bool> known;
  if (rhs->known && *rhs->known == is_or) known = is_or;
  return {value, both, known};
}

CondValue Emitter::emitIsNone(const BinOp& op) {
  bool is = op.kind() == TK_IS;
  Value* lhs = emitExpr(op.lhs());
  Value* rhs = emitExpr(op.rhs());
  Noneness a = nonenessOf(lhs);
  Noneness b = nonenessOf(rhs);
  if (a == Noneness::kAlways && b == Noneness::kAlways) return constantCond(is);
  if ((a == Noneness::kAlways && b == Noneness::kNever) ||
      (a == Noneness::kNever && b == Noneness::kAlways)) {
    return constantCond(!is);
  }
  Value* value = builtin(op.range(), is ? aten::__is__ : aten::__isnot__, {lhs, rhs});
  RefinementSet refinements;
  Expr tested = b == Noneness::kAlways ? op.lhs() : op.rhs();
  Value* tested_value = b == Noneness::kAlways ? lhs : rhs;
  if ((a == Noneness::kAlways || b == Noneness::kAlways) && tested.kind() == TK_VAR) {
    if (TypePtr present = withoutNone(tested_value->type())) {
      const std::vector<Refinement> not_none = {{Var(tested.tree()).name().name(), present}};
      refinements = is ? RefinementSet({}, not_none) : RefinementSet(not_none, {});
    }
  }
  return {value, refinements, std::nullopt};
}

std::vector<TypePtr> Emitter::instanceTypes(const Expr& expr, const TypePtr& tested) {
  std::vector<TypePtr> out;
  auto add = [&](const List<Expr>& list) {
    for (const Expr& e : list) {
      for (const TypePtr& t : instanceTypes(e, tested)) out.push_back(t);
    }
  };
  auto isDict = [&] {
    if (expr.kind() != TK_VAR || Var(expr.tree()).name().name() != "dict") return false;
    auto form = std::dynamic_pointer_cast<SpecialForm>(emitSugared(expr));
    return form && form->form() == Symbol::prim("dict");
  };
  if (expr.kind() == TK_TUPLE_LITERAL) {
    add(TupleLiteral(expr.tree()).inputs());
  } else if (expr.kind() == TK_LIST_LITERAL) {
    add(ListLiteral(expr.tree()).inputs());
  } else if (expr.kind() == TK_APPLY) {
    // type(None)
    Apply apply(expr.tree());
    if (apply.callee().kind() == TK_VAR && Var(apply.callee().tree()).name().name() == "type" &&
        apply.inputs().size() == 1 && apply.inputs()[0].kind() == TK_NONE) {
      out.push_back(types::None());
    } else {
      throwCompileError(expr.range(), "isinstance needs types");
    }
  } else if (tested->kind() != TypeKind::Any && isDict()) {
    // No type stands for every dict: those that the value may be.
    if (tested->kind() == TypeKind::Dict) out.push_back(tested);
    if (tested->kind() == TypeKind::Optional || tested->kind() == TypeKind::Union) {
      for (const TypePtr& t : tested->contained()) {
        if (t->kind() == TypeKind::Dict) out.push_back(t);
      }
    }
  } else {
    TypePtr type = typeOf(expr);
    if (const auto* optional = type->as<OptionalType>()) {
      out.push_back(optional->element());
      out.push_back(types::None());
    } else if (type->kind() == TypeKind::Union) {
      for (const TypePtr& t : type->contained()) out.push_back(t);
    } else {
      out.push_back(std::move(type));
    }
  }
  return out;
}

CondValue Emitter::emitIsInstance(const Apply& apply) {
  expectInputs(apply, "isinstance", 2, 2);
  Expr object = apply.inputs()[0];
  Value* value = emitExpr(object);
  std::vector<TypePtr> candidates = instanceTypes(apply.inputs()[1], value->type());
  InstanceTest test = testInstance(value->type(), candidates);
  if (test.always) return constantCond(true);
  if (test.never) return constantCond(false);
  RefinementSet refinements;
  if (object.kind() == TK_VAR) {
    const std::string& name = Var(object.tree()).name().name();
    std::vector<Refinement> when_true;
    std::vector<Refinement> when_false;
    if (test.when_true) when_true.push_back({name, test.when_true});
    if (test.when_false) when_false.push_back({name, test.when_false});
    refinements = RefinementSet(when_true, when_false);
  }
  Node* n = graph_.insertNode(graph_.create(prim::isinstance, {value}));
  n->setAttribute(attr::types, candidates);
  n->output()->setType(types::Bool());
  return {n->output(), refinements, std::nullopt};
}

CondValue Emitter::emitHasAttr(const Apply& apply) {
  expectInputs(apply, "hasattr", 2, 2);
  Expr name = apply.inputs()[1];
  if (name.kind() != TK_STRINGLITERAL) {
    throwCompileError(name.range(), "hasattr's second argument must be a string literal");
  }
  SugaredValuePtr object = emitSugared(apply.inputs()[0]);
  return constantCond(object->hasAttr(apply.range(), fn_, StringLiteral(name.tree()).text()));
}

CondValue Emitter::emitCompareChain(const CompareChain& chain) {
  // a < b <= c: b is evaluated once, c only if a < b.
  List<Expr> operands = chain.operands();
  std::function<CondValue(size_t, Value*)> rest = [&](size_t index, Value* lhs) -> CondValue {
    Value* rhs = emitExpr(operands[index + 1]);
    Value* compared = emitToBool(
        chain.range(), emitBinary(chain.range(), chain.op(index), NamedValue(chain.range(), lhs),
                                  NamedValue(chain.range(), rhs)));
    CondValue cond{compared, RefinementSet(), std::nullopt};
    if (index + 2 == operands.size()) return cond;
    Value* value = emitValueIf(
        chain.range(), cond, [&] { return rest(index + 1, rhs).value; },
        [&] { return constant(IValue(false)); }, nullptr);
    return {value, RefinementSet(), std::nullopt};
  };
  return rest(0, emitExpr(operands[0]));
}

void Emitter::insertRefinements(const SourceRange& range, const RefinementSet& refinements) {
  for (const Refinement& r : refinements.active().all()) {
    SugaredValuePtr found = env_->findInAnyFrame(r.name);
    Value* value = found ? asSimple(found) : nullptr;
    // A type that is narrower already (by another refinement) stays.
    if (!value || value->type()->isSubtypeOf(*r.type)) continue;
    env_->refine(range, r.name, uncheckedCast(value, r.type), value->type());
  }
}

Value* Emitter::emitToBool(const SourceRange& range, Value* value) {
  if (value->type()->kind() == TypeKind::Bool) return value;
  if (value->type()->kind() == TypeKind::Class) {
    const ClassType* type = value->type()->as<ClassType>();
    for (const char* method : {"__bool__", "__len__"}) {
      if (!type->findMethod(method)) continue;
      Value* result =
          simple(value)->attr(range, fn_, method)->call(range, fn_, {}, {}, 1)->asValue(range, fn_);
      return emitToBool(range, result);
    }
  }
  RangeGuard at(&graph_, range);
  switch (value->type()->kind()) {
    case TypeKind::Tensor:
    case TypeKind::Int:
    case TypeKind::Float:
      return builtin(range, aten::Bool, {value});
    case TypeKind::Complex:
      return builtin(range, aten::ne, {value, constant(IValue(std::complex<double>(0, 0)))});
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::String: {
      Value* length = builtin(range, aten::len, {value});
      return builtin(range, aten::gt, {length, constant(IValue(int64_t{0}))});
    }
    default:
      throwCompileError(range, "Could not cast value of type {} to bool",
                        value->type()->annotation());
  }
}

Value* Emitter::emitValueIf(const SourceRange& range, const CondValue& cond,
                            const std::function<Value*()>& when_true,
                            const std::function<Value*()>& when_false, const TypePtr& type_hint) {
  Node* n = graph_.insertNode(graph_.create(prim::If, {cond.value}, 0));
  n->setRange(range);
  auto branch = [&](const RefinementSet& refinements, const std::function<Value*()>& emit) {
    Block* block = n->addBlock();
    Value* value = nullptr;
    emitBranch(block, refinements, [&] { value = emit(); });
    block->registerOutput(value);
    return value;
  };
  Value* a = branch(cond.refinements, when_true);
  Value* b = branch(!cond.refinements, when_false);
  bool to_union = type_hint && type_hint->kind() == TypeKind::Union;
  auto unified = unifyTypes(a->type(), b->type(), to_union);
  if (type_hint && type_hint->kind() == TypeKind::Any) unified = type_hint;
  if (!unified && type_hint && a->type()->isSubtypeOf(*type_hint) &&
      b->type()->isSubtypeOf(*type_hint)) {
    unified = type_hint;
  }
  if (!unified) {
    throwCompileError(range, "if-expression's true branch has type {} but false branch has type {}",
                      a->type()->annotation(), b->type()->annotation());
  }
  return n->addOutput(*unified);
}

Value* Emitter::emitTernary(const TernaryIf& expr, const TypePtr& type_hint) {
  CondValue cond = emitCond(expr.cond());
  auto when_true = [&] { return emitExpr(expr.trueExpr(), type_hint); };
  auto when_false = [&] { return emitExpr(expr.falseExpr(), type_hint); };
  if (cond.known) {
    // The refinement holds for the whole rest, not only for this expression, which is harmless:
    // the outcome is the same every time.
    insertRefinements(expr.range(), *cond.known ? cond.refinements : !cond.refinements);
    return *cond.known ? when_true() : when_false();
  }
  return emitValueIf(expr.range(), cond, when_true, when_false, type_hint);
}

}  // namespace wick
