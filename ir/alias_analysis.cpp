// One walk over the graph that only adds constraints; the order of nodes does not matter, so a loop
// needs no second walk: its edges form a cycle.
//
//   %c : Tensor = aten::mul(%b, %two)          %c is new memory
//   %v : Tensor = aten::view(%c, %size)        %v → %c
//   %l : Tensor[] = prim::ListConstruct(%v)    %l is new memory, holds(%l) → %v
//   %e : Tensor = aten::__getitem__(%l, %i)    %e → holds(%l)
//   %r : Tensor = prim::If(…)                  %r → both results
#include "ir/alias_analysis.h"

#include <algorithm>
#include <bit>

#include "ir/function.h"

namespace wick {

namespace {

constexpr int kMaxCallDepth = 32;

bool isAnyOf(Symbol kind, std::span<const Symbol> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// The result is the argument, seen under another type or checked.
bool passesThrough(Symbol kind) {
  static const Symbol kKinds[] = {prim::unchecked_cast,           prim::unchecked_unwrap_optional,
                                  Symbol::prim("profile"),        Symbol::prim("Guard"),
                                  Symbol::prim("BailOut"),        Symbol::prim("TypeCheck"),
                                  Symbol::prim("profile_ivalue"), Symbol::aten("_unwrap_optional")};
  return isAnyOf(kind, kKinds);
}

// Reads its inputs and gives nothing that anybody could write.
bool onlyReads(Symbol kind) {
  static const Symbol kKinds[] = {prim::Print,           prim::RaiseException, prim::isinstance,
                                  prim::HasAttr,         prim::Uninitialized,  prim::Store,
                                  prim::LoopContinuation};
  return isAnyOf(kind, kKinds);
}

}  // namespace

bool callsScript(const Node* node) {
  static const Symbol kKinds[] = {Symbol::aten("sort"), Symbol::aten("sorted")};
  if (!isAnyOf(node->kind(), kKinds) || node->inputs().empty()) return false;
  const auto* list = node->input(0)->type()->as<ListType>();
  return list && (memoryKindsOf(*list->element()) & kObjectMemory) != 0;
}

void AliasAnalysis::run() {
  for (const Value* v : db_.graph_.inputs()) {
    if (AliasDb::isMutable(v->type())) outsideValue(v);
  }
  block(db_.graph_.block());
}

AliasAnalysis::Element AliasAnalysis::define(const Value* v) {
  auto [it, inserted] = db_.elements_.try_emplace(v, 0);
  if (inserted) it->second = dag_.makePointer(memoryKindsOf(*v->type()));
  return it->second;
}

void AliasAnalysis::pointTo(const Value* from, const Value* to) {
  const Element* source = find(to);
  if (source && AliasDb::isMutable(from->type())) dag_.pointTo(define(from), *source);
}

void AliasAnalysis::outsideValue(const Value* v) {
  Element e = define(v);
  for (size_t k = 0; k < kNumMemoryKinds; ++k) {
    auto kind = static_cast<MemoryKind>(1u << k);
    if (dag_.kinds(e) & kind) dag_.pointTo(e, dag_.external(kind));
  }
}

void AliasAnalysis::block(const Block* b) {
  for (Node* n : b->nodes()) node(n);
}

void AliasAnalysis::node(Node* n) {
  Symbol kind = n->kind();
  if (kind == prim::If) return branch(n);
  if (kind == prim::Loop) return loop(n);
  if (onlyReads(kind)) {
    for (const Value* v : n->outputs()) {
      if (AliasDb::isMutable(v->type())) define(v);
    }
    return;
  }
  if (data(n) || objects(n)) return;
  for (const Block* b : n->blocks()) block(b);
  const Operator* op = n->blocks().empty() ? n->maybeOperator() : nullptr;
  bool fits = op && !op->schema().isVarret() &&
              op->schema().returns().size() == n->outputs().size() &&
              op->schema().arguments().size() <= n->inputs().size();
  if (fits && !callsScript(n)) {
    operation(n, *op);
  } else {
    call(n, /*may_write=*/true);
  }
}

// ---- data ----

bool AliasAnalysis::data(Node* n) {
  Symbol kind = n->kind();
  if (kind == prim::Constant) {
    // A frozen weight, or the module itself: others have it too.
    if (AliasDb::isMutable(n->output()->type())) outsideValue(n->output());
  } else if (passesThrough(kind)) {
    for (size_t i = 0; i < n->outputs().size() && i < n->inputs().size(); ++i) {
      if (AliasDb::isMutable(n->output(i)->type())) define(n->output(i));
      pointTo(n->output(i), n->input(i));
    }
    // Where a guard fails the run goes on elsewhere, with these values, and may write them.
    if (kind == Symbol::prim("BailOut") || kind == Symbol::prim("Guard")) {
      for (const Value* v : n->inputs()) {
        if (const Element* e = find(v)) dag_.escape(*e);
      }
    }
  } else if (kind == prim::TupleConstruct || kind == prim::NamedTupleConstruct ||
             kind == prim::ListConstruct || kind == prim::DictConstruct) {
    construct(n);
  } else if (kind == prim::TupleUnpack || kind == prim::TupleIndex || kind == prim::ListUnpack) {
    unpack(n);
  } else if (kind == prim::TupleSlice) {
    if (AliasDb::isMutable(n->output()->type())) {
      Element e = define(n->output());
      if (const Element* tuple = find(n->input(0))) dag_.shareContents(e, *tuple);
    }
  } else if (kind == prim::tolist) {
    if (AliasDb::isMutable(n->output()->type())) {
      result(define(n->output()), *n->output()->type(), {}, /*direct=*/false);
    }
  } else {
    return false;
  }
  return true;
}

void AliasAnalysis::construct(Node* n) {
  const Value* out = n->output();
  if (!AliasDb::isMutable(out->type())) return;
  Element e = define(out);
  dag_.pointTo(e, dag_.makeFresh(dag_.kinds(e)));
  for (const Value* v : n->inputs()) {
    if (const Element* held = find(v)) dag_.store(e, *held, dag_.kinds(*held));
  }
}

void AliasAnalysis::unpack(Node* n) {
  for (const Value* v : n->outputs()) {
    if (!AliasDb::isMutable(v->type())) continue;
    Element e = define(v);
    if (const Element* from = find(n->input(0))) dag_.load(e, *from, dag_.kinds(e));
  }
}

// ---- control flow ----

void AliasAnalysis::branch(Node* n) {
  for (const Block* b : n->blocks()) block(b);
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    if (AliasDb::isMutable(n->output(i)->type())) define(n->output(i));
    for (const Block* b : n->blocks()) pointTo(n->output(i), b->outputs()[i]);
  }
}

void AliasAnalysis::loop(Node* n) {
  const Block* body = n->blocks()[0];
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    const Value* inner = body->inputs()[i + 1];
    if (AliasDb::isMutable(inner->type())) define(inner);
    pointTo(inner, n->input(i + 2));
  }
  block(body);
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    pointTo(body->inputs()[i + 1], body->outputs()[i + 1]);
    if (AliasDb::isMutable(n->output(i)->type())) define(n->output(i));
    pointTo(n->output(i), n->input(i + 2));
    pointTo(n->output(i), body->outputs()[i + 1]);
  }
}

// ---- objects and calls ----

bool AliasAnalysis::objects(Node* n) {
  Symbol kind = n->kind();
  if (kind == prim::CreateObject) {
    dag_.pointTo(define(n->output()), dag_.makeFresh(kObjectMemory));
  } else if (kind == prim::GetAttr || kind == Symbol::prim("ModuleContainerIndex")) {
    const Element* object = find(n->input(0));
    if (!AliasDb::isMutable(n->output()->type())) return true;
    Element e = define(n->output());
    if (object) dag_.load(e, *object, dag_.kinds(e));
  } else if (kind == prim::SetAttr) {
    const Element* object = find(n->input(0));
    const Element* value = find(n->input(1));
    if (object && value) dag_.store(*object, *value, dag_.kinds(*value));
    if (object) writes(n, *object);
  } else if (kind == prim::CallFunction || kind == prim::CallMethod) {
    call(n, calleeMayWrite(n, 0));
  } else if (kind == prim::fork || kind == prim::DifferentiableGraph || kind == prim::FusionGroup ||
             n->hasAttribute(attr::Subgraph)) {
    const AttributeValue* sub = n->findAttribute(attr::Subgraph);
    const auto* graph = sub ? std::get_if<std::shared_ptr<Graph>>(sub) : nullptr;
    if (kind == prim::FusionGroup && graph && *graph && makesItsResults(**graph)) {
      for (const Value* v : n->outputs()) {
        if (AliasDb::isMutable(v->type())) result(define(v), *v->type(), {}, /*direct=*/false);
      }
      return true;
    }
    call(n, !graph || !*graph || mayWrite(**graph, 0));
  } else if (kind == aten::wait) {
    wait(n);
  } else {
    return false;
  }
  return true;
}

// What is called may keep its arguments, and hand out anything that is visible outside.
void AliasAnalysis::call(Node* n, bool may_write) {
  for (const Value* v : n->inputs()) {
    if (const Element* e = find(v)) dag_.escape(*e);
  }
  if (may_write) db_.writes_[n].outside = true;
  for (const Value* v : n->outputs()) {
    if (!AliasDb::isMutable(v->type())) continue;
    Element e = define(v);
    Element made = dag_.makeFresh(dag_.kinds(e));
    dag_.pointTo(e, made);
    dag_.escape(made);
    outsideValue(v);
  }
}

// The forked function ends here at the latest: what it wrote becomes visible, so neither reads nor
// writes of what it may see can pass.
void AliasAnalysis::wait(Node* n) {
  db_.writes_[n].outside = true;
  for (const Value* v : n->outputs()) {
    if (!AliasDb::isMutable(v->type())) continue;
    Element e = define(v);
    if (const Element* future = find(n->input(0))) dag_.load(e, *future, dag_.kinds(e));
    outsideValue(v);
  }
}

bool AliasAnalysis::calleeMayWrite(const Node* call, int depth) {
  Function* callee = nullptr;
  if (call->kind() == prim::CallFunction) {
    if (const auto* type = call->input(0)->type()->as<FunctionType>()) callee = type->function();
  } else if (const auto* type = call->input(0)->type()->as<ClassType>()) {
    callee = type->findMethod(call->ivalue(attr::name).toString());
  }
  auto* function = dynamic_cast<GraphFunction*>(callee);
  if (!function || !function->isDefined() || depth > kMaxCallDepth) return true;
  auto [it, inserted] = callee_writes_.try_emplace(function, true);
  if (inserted) {
    bool may_write = mayWrite(*function->graph(), depth + 1);
    callee_writes_[function] = may_write;
    return may_write;
  }
  return it->second;
}

bool AliasAnalysis::mayWrite(const Graph& graph, int depth) {
  return depth > kMaxCallDepth || mayWrite(graph.block(), depth);
}

// Whether a group only reads, and all that it gives is new memory, also where its operators run one by
// one.
bool AliasAnalysis::makesItsResults(const Graph& group) {
  if (mayWrite(group, 0)) return false;
  return std::ranges::all_of(group.outputs(), [](const Value* v) {
    const Operator* op = v->node()->maybeOperator();
    if (v->type()->kind() != TypeKind::Tensor || !op || op->has(kMayReturnArgument)) return false;
    return std::ranges::none_of(op->schema().returns(),
                                [](const Argument& result) { return result.alias != nullptr; });
  });
}

bool AliasAnalysis::mayWrite(const Block* b, int depth) {
  for (const Node* n : b->nodes()) {
    Symbol kind = n->kind();
    for (const Block* sub : n->blocks()) {
      if (mayWrite(sub, depth)) return true;
    }
    static const Symbol kHarmless[] = {
        prim::Constant,      prim::If,         prim::Loop,         prim::TupleConstruct,
        prim::TupleUnpack,   prim::TupleIndex, prim::TupleSlice,   prim::NamedTupleConstruct,
        prim::ListUnpack,    prim::GetAttr,    prim::CreateObject, prim::ListConstruct,
        prim::DictConstruct, prim::tolist};
    if (isAnyOf(kind, kHarmless) || passesThrough(kind) || onlyReads(kind)) continue;
    if (kind == prim::CallFunction || kind == prim::CallMethod) {
      if (calleeMayWrite(n, depth)) return true;
      continue;
    }
    // A list of its own.
    static const Symbol kAppend = Symbol::aten("append");
    if (kind == kAppend && n->input(0)->node()->kind() == prim::ListConstruct) continue;
    if (kind == prim::SetAttr || kind == aten::wait) return true;
    if (const AttributeValue* sub = n->findAttribute(attr::Subgraph)) {
      const auto* graph = std::get_if<std::shared_ptr<Graph>>(sub);
      if (!graph || !*graph || mayWrite(**graph, depth + 1)) return true;
      continue;
    }
    const Operator* op = n->blocks().empty() ? n->maybeOperator() : nullptr;
    if (!op || op->mayWrite(*n) || callsScript(n)) return true;
  }
  return false;
}

// ---- operators ----

void AliasAnalysis::operation(Node* n, const Operator& op) {
  sets_.clear();
  arguments(n, op.schema());
  // What the schema does not say.
  for (uint64_t rest = op.unannotatedWrites(*n); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(rest));
    if (const Element* e = i < n->inputs().size() ? find(n->input(i)) : nullptr) writes(n, *e);
  }
  for (size_t i = 0; i < n->outputs().size(); ++i) {
    if (AliasDb::isMutable(n->output(i)->type())) returned(n, i, op);
  }
}

// Binds the schema's alias sets and notes what is written.
void AliasAnalysis::arguments(Node* n, const FunctionSchema& schema) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto& alias = schema.arguments()[i].alias;
    const Element* found = alias ? find(n->input(i)) : nullptr;
    if (!found) continue;
    Element e = *found;
    for (const std::string& set : alias->before) sets_[set].push_back(e);
    if (alias->is_write) {
      writes(n, e);
      storeInto(n, i);
    }
    for (const AliasInfo& inner : alias->contained) {
      MemoryKinds kinds = containedKindsOf(*n->input(i)->type());
      Element held = dag_.makePointer(kinds);
      dag_.load(held, e, kinds);
      for (const std::string& set : inner.before) sets_[set].push_back(held);
      if (inner.is_write) writes(n, held);
    }
  }
}

// A container that is written may come to hold the other arguments, or what they hold: append,
// extend, update, __setitem__.
void AliasAnalysis::storeInto(Node* n, size_t container) {
  Element e = *find(n->input(container));
  if ((dag_.kinds(e) & kContainerMemory) == 0) return;
  MemoryKinds kinds = containedKindsOf(*n->input(container)->type());
  for (size_t i = 0; i < n->inputs().size(); ++i) {
    const Element* other = i == container ? nullptr : find(n->input(i));
    if (!other) continue;
    Element from = *other;
    dag_.store(e, from, kinds & dag_.kinds(from));
    Element held = dag_.makePointer(kinds);
    dag_.load(held, from, kinds);
    dag_.store(e, held, kinds);
  }
}

void AliasAnalysis::returned(Node* n, size_t i, const Operator& op) {
  const Argument& formal = op.schema().returns()[i];
  const Value* out = n->output(i);
  Element e = define(out);
  std::vector<Element> all;
  for (const Value* v : n->inputs()) {
    if (const Element* arg = find(v)) all.push_back(*arg);
  }
  if (formal.alias && !formal.alias->after.empty()) {
    bool elsewhere = false;
    for (const std::string& set : formal.alias->after) {
      auto bound = sets_.find(set);
      elsewhere |= bound == sets_.end();
      if (bound == sets_.end()) continue;
      for (Element source : bound->second) dag_.pointTo(e, source);
    }
    if (!elsewhere) return;
    // "*": anything that the arguments are or hold. A set that no argument has is new memory.
    bool wildcard = formal.alias->isWildcardAfter();
    if (wildcard && !n->kind().isAten() && !n->kind().isPrim()) all.push_back(dag_.anyExternal());
    result(e, *out->type(), wildcard ? std::span<const Element>(all) : std::span<const Element>(),
           wildcard);
    return;
  }
  if (formal.alias && !formal.alias->contained.empty()) {
    all.clear();
    for (const AliasInfo& inner : formal.alias->contained) {
      for (const std::string& set : inner.after) {
        if (auto bound = sets_.find(set); bound != sets_.end()) {
          all.insert(all.end(), bound->second.begin(), bound->second.end());
        }
      }
    }
    result(e, *out->type(), all, /*direct=*/false);
    return;
  }
  // Without an annotation the result is new memory; but a container of a type variable, `t[]`,
  // holds what was in the arguments, and a bare `t` is one of them.
  bool generic = formal.type->hasFreeVariables() || formal.type->kind() == TypeKind::Any ||
                 formal.type->kind() == TypeKind::AnyList ||
                 formal.type->kind() == TypeKind::AnyTuple;
  bool argument = op.has(kMayReturnArgument);
  if (op.schema().isMutable() && generic) {
    for (Element source : all) {
      if (dag_.kinds(source) & dag_.kinds(e)) dag_.pointTo(e, source);
    }
  }
  if (!generic && !argument) all.clear();
  bool direct =
      argument || formal.type->kind() == TypeKind::Var || formal.type->kind() == TypeKind::Any;
  result(e, *out->type(), all, direct);
}

// `e` is new memory or, when `direct`, any of the sources or something in them; what it holds are
// new elements and such things too.
void AliasAnalysis::result(Element e, const Type& type, std::span<const Element> sources,
                           bool direct) {
  MemoryKinds kinds = dag_.kinds(e);
  dag_.pointTo(e, dag_.makeFresh(kinds));
  if (direct) {
    for (Element s : sources) {
      if (dag_.kinds(s) & kinds) dag_.pointTo(e, s);
      dag_.load(e, s, kinds);
    }
  }
  if (kinds & kContainerMemory) resultContents(e, type, sources);
}

void AliasAnalysis::resultContents(Element e, const Type& type, std::span<const Element> sources) {
  bool alternatives = type.kind() == TypeKind::Optional || type.kind() == TypeKind::Union;
  for (const TypePtr& t : type.contained()) {
    MemoryKinds kinds = memoryKindsOf(*t);
    if (kinds == kNoMemory) continue;
    if (alternatives) {
      resultContents(e, *t, sources);
      continue;
    }
    Element held = dag_.makePointer(kinds);
    result(held, *t, sources, /*direct=*/true);
    dag_.store(e, held, kinds);
  }
}

}  // namespace wick
