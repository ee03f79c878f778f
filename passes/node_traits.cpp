#include "passes/node_traits.h"

#include <bit>
#include <set>
#include <unordered_set>

#include "core/keyed_hash.h"
#include "ir/shape_facts.h"

namespace wick {

namespace {

bool isScalar(const Value* v) {
  TypeKind kind = v->type()->kind();
  return kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool;
}

// Lists and tuples share their parts, as a tree of 2^n that n lists make, so pairs that were found
// equal are remembered. The first difference ends the comparison.
class ConstantComparison {
 public:
  bool same(const IValue& a, const IValue& b) {
    if (a.tag() != b.tag()) return false;
    if (a.isNone()) return true;
    if (a.isBool()) return a.toBool() == b.toBool();
    if (a.isInt() || a.isDouble()) return a.rawInt() == b.rawInt();
    if (a.isDevice()) return a.toDevice() == b.toDevice();
    if (a.isString()) return a.toString() == b.toString();
    if (a.isComplex()) {
      const std::complex<double> x = a.toComplex();
      const std::complex<double> y = b.toComplex();
      auto bits = [](double d) { return std::bit_cast<uint64_t>(d); };
      return bits(x.real()) == bits(y.real()) && bits(x.imag()) == bits(y.imag()) && x == y;
    }
    if (a.isTensor()) return a.toTensor().isSame(b.toTensor());
    if (a.rawObject() == b.rawObject()) return true;
    if (a.isList()) {
      return sameType(a.toList().element_type, b.toList().element_type) && sameElements(a, b);
    }
    if (a.isTuple()) return a.toTuple().named == b.toTuple().named && sameElements(a, b);
    return false;
  }

 private:
  bool sameElements(const IValue& a, const IValue& b) {
    const std::vector<IValue>& x = a.elements();
    const std::vector<IValue>& y = b.elements();
    if (x.size() != y.size()) return false;
    if (x.empty() || !met_.emplace(a.rawObject(), b.rawObject()).second) return true;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!same(x[i], y[i])) return false;
    }
    return true;
  }

  std::set<std::pair<const RefCounted*, const RefCounted*>> met_;
};

size_t mix(size_t seed, size_t value) {
  return keyedHash(seed, value);
}

// Lists and tuples share their parts, so those that were met are remembered.
size_t hashConstant(const IValue& v, ConstantHashes& known) {
  auto tag = static_cast<size_t>(v.tag());
  if (v.isNone()) return tag;
  if (v.isString()) return mix(tag, keyedHash(std::string_view(v.toString())));
  if (v.isComplex()) {
    return mix(mix(tag, std::bit_cast<uint64_t>(v.toComplex().real())),
               std::bit_cast<uint64_t>(v.toComplex().imag()));
  }
  if (v.isList() || v.isTuple()) {
    if (auto it = known.find(v.rawObject()); it != known.end()) return it->second;
    size_t seed = tag;
    for (const IValue& e : v.elements()) seed = mix(seed, hashConstant(e, known));
    known.emplace(v.rawObject(), seed);
    return seed;
  }
  if (v.isTensor()) return mix(tag, std::hash<const void*>()(v.toTensor().impl()));
  if (v.isCounted()) return mix(tag, std::hash<const void*>()(v.rawObject()));
  if (v.isBool()) return mix(tag, v.toBool());
  return mix(tag, static_cast<size_t>(v.rawInt()));
}

}  // namespace

bool has(const Node* node, OperatorFlags flag) {
  const Operator* const op = node->maybeOperator();
  return op && op->has(flag);
}

std::unordered_set<Symbol> atenSymbols(std::initializer_list<const char*> names) {
  std::unordered_set<Symbol> all;
  for (const char* name : names) all.insert(Symbol::aten(name));
  return all;
}

bool neverRaises(const Node* node) {
  static const std::unordered_set<Symbol> kData = {prim::Constant,      prim::TupleConstruct,
                                                   prim::TupleUnpack,   prim::ListConstruct,
                                                   prim::Uninitialized, prim::GetAttr};
  static const std::unordered_set<Symbol> kQuestions = {aten::dim,
                                                        aten::len,
                                                        aten::__is__,
                                                        aten::__isnot__,
                                                        aten::__not__,
                                                        prim::isinstance,
                                                        Symbol::prim("dtype"),
                                                        Symbol::prim("device"),
                                                        Symbol::prim("is_cuda")};
  // Division, powers, shifts and conversions of floats to ints raise for some numbers.
  static const std::unordered_set<Symbol> kArithmetic = {
      aten::add, aten::sub, aten::mul, aten::neg, aten::eq,    aten::ne,
      aten::lt,  aten::le,  aten::gt,  aten::ge,  aten::Float, aten::__derive_index};
  if (!node->blocks().empty()) return false;
  if (kData.count(node->kind()) != 0) return true;
  if (node->maybeOperator() == nullptr) return node->kind() == prim::isinstance;
  if (kQuestions.count(node->kind()) != 0) return true;
  if (node->kind() == aten::size) return node->inputs().size() == 1;
  if (kArithmetic.count(node->kind()) == 0) return false;
  for (const Value* v : node->inputs()) {
    if (!isScalar(v)) return false;
  }
  return true;
}

bool alwaysRaises(const Block* b) {
  return std::ranges::any_of(b->nodes(),
                             [](const Node* n) { return n->kind() == prim::RaiseException; });
}

bool isOnlyRead(const Value* v) {
  for (const Use& use : v->uses()) {
    const Operator* op = use.user->blocks().empty() ? use.user->maybeOperator() : nullptr;
    if (op == nullptr || op->has(kMayReturnArgument)) return false;
    const std::vector<Argument>& arguments = op->schema().arguments();
    if (use.offset >= arguments.size() || arguments[use.offset].alias) return false;
    if (use.offset < 64 && (op->unannotatedWrites(*use.user) >> use.offset & 1) != 0) return false;
    for (const Argument& r : op->schema().returns()) {
      TypeKind kind = r.type->kind();
      if (r.type->hasFreeVariables() || kind == TypeKind::Any) return false;
      if (r.alias && r.alias->isWildcardAfter()) return false;
    }
  }
  return !identityIsObserved(v);
}

bool identityIsObserved(const Value* v) {
  for (const Use& use : v->uses()) {
    const Node* n = use.user;
    if (n->kind() == Symbol::prim("id")) return true;
    if (n->kind() != aten::__is__ && n->kind() != aten::__isnot__) continue;
    const Value* other = n->input(1 - use.offset);
    if (other->type()->kind() != TypeKind::None) return true;
  }
  return false;
}

bool sameConstant(const IValue& a, const IValue& b) {
  return ConstantComparison().same(a, b);
}

bool sameAttributes(const Node* a, const Node* b) {
  if (a->attributes().size() != b->attributes().size()) return false;
  for (const auto& [name, value] : a->attributes()) {
    const AttributeValue* other = b->findAttribute(name);
    if (!other || other->index() != value.index()) return false;
    if (const IValue* v = std::get_if<IValue>(&value)) {
      if (!sameConstant(*v, std::get<IValue>(*other))) return false;
    } else if (const TypePtr* t = std::get_if<TypePtr>(&value)) {
      if (!sameType(*t, std::get<TypePtr>(*other))) return false;
    } else if (const auto* types = std::get_if<std::vector<TypePtr>>(&value)) {
      const auto& others = std::get<std::vector<TypePtr>>(*other);
      if (types->size() != others.size()) return false;
      for (size_t i = 0; i < types->size(); ++i) {
        if (!sameType((*types)[i], others[i])) return false;
      }
    } else if (std::get<std::shared_ptr<Graph>>(value) !=
               std::get<std::shared_ptr<Graph>>(*other)) {
      return false;
    }
  }
  return true;
}

size_t hashAttributes(const Node* node, ConstantHashes* known) {
  ConstantHashes own;
  size_t sum = 0;  // attributes may be stored in any order
  for (const auto& [name, value] : node->attributes()) {
    const IValue* v = std::get_if<IValue>(&value);
    sum += mix(name.id(), v ? hashConstant(*v, known ? *known : own) : value.index());
  }
  return sum;
}

std::optional<bool> constantBool(const Value* v) {
  return boolOf(v);
}

std::optional<int64_t> constantInt(const Value* v) {
  return intOf(v);
}

void replaceValue(Value* from, Value* to) {
  from->replaceAllUsesWith(to);
  if (!from->hasDebugName() || to->hasDebugName()) return;
  std::string name = from->debugNameBase();
  from->setDebugName("");
  to->setDebugName(name);
}

Value* replaceByConstant(Node* node, IValue value) {
  Graph* graph = node->graph();
  RangeGuard range(graph, node->range());
  Value* out = node->output();
  Node* constant = graph->createConstant(std::move(value), out->type())->insertBefore(node);
  replaceValue(out, constant->output());
  node->destroy();
  return constant->output();
}

bool makesLeaf(const Node* n) {
  const Operator* const op = n->maybeOperator();
  if (!op) return false;
  const std::vector<Argument>& arguments = op->schema().arguments();
  const auto found = std::ranges::find(arguments, "requires_grad", &Argument::name);
  if (found == arguments.end()) return false;
  const auto index = static_cast<size_t>(found - arguments.begin());
  return index >= n->inputs().size() || constantBool(n->input(index)) != std::optional<bool>(false);
}

std::optional<IValue> answerFromType(const Node* n) {
  static const Symbol kDtype = Symbol::prim("dtype");
  static const Symbol kDevice = Symbol::prim("device");
  static const Symbol kIsCuda = Symbol::prim("is_cuda");
  static const Symbol kRequiresGrad = Symbol::prim("requires_grad");
  static const Symbol kIsFloating = Symbol::aten("is_floating_point");
  static const Symbol kIsComplex = Symbol::aten("is_complex");
  const TensorFacts* facts = n->inputs().size() == 1 ? factsOf(n->input(0)) : nullptr;
  if (!facts) return std::nullopt;
  if (n->kind() == aten::dim && facts->dim) return IValue(static_cast<int64_t>(*facts->dim));
  if (n->kind() == kRequiresGrad && facts->requires_grad == std::optional<bool>(false)) {
    return IValue(false);
  }
  if (facts->device) {
    if (n->kind() == kDevice) return IValue(*facts->device);
    if (n->kind() == kIsCuda) return IValue(facts->device->type == DeviceType::CUDA);
  }
  if (facts->dtype) {
    if (n->kind() == kDtype) return IValue(static_cast<int64_t>(*facts->dtype));
    if (n->kind() == kIsFloating) return IValue(isFloating(*facts->dtype));
    if (n->kind() == kIsComplex) return IValue(wick::isComplex(*facts->dtype));
  }
  return std::nullopt;
}

bool mayChangeGradMode(const Block* block) {
  return std::ranges::any_of(block->nodes(),
                             [](const Node* node) { return mayChangeGradMode(node); });
}

bool mayChangeGradMode(const Node* node) {
  static const Symbol kSet = Symbol::aten("set_grad_enabled");
  // Streams and events are such a mode: what is queued before one of these stays before it.
  const bool orders_queues = node->kind().ns() == "cuda" && node->hasSideEffects();
  return node->kind() == kSet || orders_queues || node->kind() == prim::Enter ||
         node->kind() == prim::Exit || std::ranges::any_of(node->blocks(), [](const Block* inner) {
           return mayChangeGradMode(inner);
         });
}

}  // namespace wick
