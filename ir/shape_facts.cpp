#include "ir/shape_facts.h"

#include <algorithm>

namespace wick {

namespace {

// Lists with more users than this are not followed, nor are sums of sizes deeper than this.
constexpr size_t kMaxUsers = 64;
constexpr int kMaxDepth = 6;

Size sizeOfExpression(const Value* v, int depth);

// One dimension of aten::size(x, d), or of aten::size(x)[d].
Size sizeOfDimension(const Value* tensor, const Value* dim) {
  const TensorFacts* facts = factsOf(tensor);
  std::optional<int64_t> d = intOf(dim);
  if (!facts || !facts->dim || !facts->sizes || !d) return std::nullopt;
  std::optional<size_t> i = wrappedDim(*d, *facts->dim);
  return i && *i < facts->sizes->size() ? (*facts->sizes)[*i] : std::nullopt;
}

Size sizeOfNode(const Node* n, int depth) {
  static const Symbol kFloorDiv = Symbol::aten("floordiv");
  static const Symbol kNumel = Symbol::aten("numel");
  if (n->kind() == aten::size && n->inputs().size() == 2) {
    return sizeOfDimension(n->input(0), n->input(1));
  }
  if (n->kind() == aten::__getitem__ && n->input(0)->node()->kind() == aten::size &&
      isOnlyReadList(n->input(0))) {
    return sizeOfDimension(n->input(0)->node()->input(0), n->input(1));
  }
  if (n->kind() == aten::len && factsOf(n->input(0))) {
    const TensorFacts* facts = factsOf(n->input(0));
    return facts->sizes && !facts->sizes->empty() ? (*facts->sizes)[0] : std::nullopt;
  }
  if (n->kind() == kNumel && factsOf(n->input(0))) {
    std::optional<Sizes> sizes = sizesOf(*factsOf(n->input(0)));
    return sizes ? productOf(*sizes) : std::nullopt;
  }
  if (n->inputs().size() != 2) return std::nullopt;
  for (const Value* in : n->inputs()) {
    if (in->type()->kind() != TypeKind::Int) return std::nullopt;
  }
  bool known = n->kind() == aten::add || n->kind() == aten::sub || n->kind() == aten::mul ||
               n->kind() == kFloorDiv;
  if (!known) return std::nullopt;
  Size a = sizeOfExpression(n->input(0), depth + 1);
  Size b = sizeOfExpression(n->input(1), depth + 1);
  if (n->kind() == aten::add) return addSizes(a, b);
  if (n->kind() == aten::sub) return subtractSizes(a, b);
  if (n->kind() == aten::mul) return multiplySizes(a, b);
  return divideSizes(a, b);
}

Size sizeOfExpression(const Value* v, int depth) {
  if (std::optional<int64_t> number = intOf(v)) {
    return *number >= 0 ? Size(*number) : std::nullopt;
  }
  if (depth > kMaxDepth || v->type()->kind() != TypeKind::Int) return std::nullopt;
  if (v->node()->kind() == prim::ListUnpack) {
    const Value* list = v->node()->input(0);
    if (list->node()->kind() != aten::size || list->node()->inputs().size() != 1 ||
        !isOnlyReadList(list)) {
      return std::nullopt;
    }
    const TensorFacts* facts = factsOf(list->node()->input(0));
    bool known = facts && facts->sizes && v->offset() < facts->sizes->size();
    return known ? (*facts->sizes)[v->offset()] : std::nullopt;
  }
  return v->node()->outputs().size() == 1 ? sizeOfNode(v->node(), depth) : std::nullopt;
}

}  // namespace

const TensorFacts* factsOf(const Value* v) {
  const auto* type = v->type()->as<TensorType>();
  return type ? &type->facts() : nullptr;
}

std::optional<Sizes> sizesOf(const TensorFacts& facts) {
  if (facts.sizes) return facts.sizes;
  if (facts.dim) return Sizes(*facts.dim);
  return std::nullopt;
}

bool isNoneConstant(const Value* v) {
  return v->type()->kind() == TypeKind::None;
}

std::optional<int64_t> intOf(const Value* v) {
  std::optional<IValue> c = constantOf(v);
  if (!c || !c->isInt()) return std::nullopt;
  return c->toInt();
}

std::optional<bool> boolOf(const Value* v) {
  std::optional<IValue> c = constantOf(v);
  if (!c || !c->isBool()) return std::nullopt;
  return c->toBool();
}

std::optional<double> floatOf(const Value* v) {
  std::optional<IValue> c = constantOf(v);
  if (!c) return std::nullopt;
  if (c->isInt()) return static_cast<double>(c->toInt());
  if (!c->isDouble()) return std::nullopt;
  return c->toDouble();
}

std::optional<DType> dtypeConstantOf(const Value* v) {
  std::optional<int64_t> number = intOf(v);
  return number ? dtypeFromNumber(*number) : std::nullopt;
}

bool isOnlyReadList(const Value* list) {
  if (list->uses().size() > kMaxUsers) return false;
  return std::all_of(list->uses().begin(), list->uses().end(), [](const Use& use) {
    if (use.user->kind() == prim::ListUnpack || use.user->kind() == aten::__getitem__) return true;
    const Operator* op = use.user->blocks().empty() ? use.user->maybeOperator() : nullptr;
    if (!op || use.offset >= op->schema().arguments().size()) return false;
    if (op->schema().arguments()[use.offset].alias) return false;
    const auto& returns = op->schema().returns();
    return std::none_of(returns.begin(), returns.end(),
                        [](const Argument& r) { return r.type->kind() == TypeKind::Any; });
  });
}

std::optional<std::vector<Value*>> literalElements(const Value* list) {
  const Node* n = list->node();
  if (n->kind() != prim::ListConstruct || !isOnlyReadList(list)) return std::nullopt;
  return n->inputs();
}

std::optional<std::vector<int64_t>> intsOf(const Value* v) {
  std::vector<int64_t> out;
  if (std::optional<IValue> c = constantOf(v)) {
    if (c->isInt()) return std::vector<int64_t>{c->toInt()};
    if (!c->isList()) return std::nullopt;
    for (const IValue& e : c->elements()) {
      if (!e.isInt()) return std::nullopt;
      out.push_back(e.toInt());
    }
    return out;
  }
  std::optional<std::vector<Value*>> elements = literalElements(v);
  if (!elements) return std::nullopt;
  for (const Value* e : *elements) {
    std::optional<int64_t> i = intOf(e);
    if (!i) return std::nullopt;
    out.push_back(*i);
  }
  return out;
}

std::optional<std::vector<int64_t>> intsOf(const Value* v, size_t n) {
  std::optional<std::vector<int64_t>> ints = intsOf(v);
  if (ints && ints->size() == 1) ints->resize(n, ints->front());
  if (!ints || ints->size() != n) return std::nullopt;
  return ints;
}

Size sizeValue(const Value* v) {
  return sizeOfExpression(v, 0);
}

std::optional<std::vector<SizeArgument>> sizeArguments(const Value* v) {
  std::vector<SizeArgument> out;
  auto addNumber = [&](int64_t i) { out.push_back({i == -1, i >= 0 ? Size(i) : std::nullopt}); };
  if (std::optional<std::vector<int64_t>> ints = intsOf(v)) {
    for (int64_t i : *ints) addNumber(i);
    return out;
  }
  const Node* n = v->node();
  if (n->kind() == aten::size && n->inputs().size() == 1 && isOnlyReadList(v)) {
    const TensorFacts* facts = factsOf(n->input(0));
    std::optional<Sizes> sizes = facts ? sizesOf(*facts) : std::nullopt;
    if (!sizes) return std::nullopt;
    for (Size s : *sizes) out.push_back({false, s});
    return out;
  }
  std::optional<std::vector<Value*>> elements = literalElements(v);
  if (!elements && v->type()->kind() == TypeKind::Int) elements = {n->outputs()[v->offset()]};
  if (!elements) return std::nullopt;
  for (const Value* e : *elements) {
    if (std::optional<int64_t> i = intOf(e)) {
      addNumber(*i);
    } else {
      Size s = sizeValue(e);
      out.push_back({false, isNeverNegative(s) ? s : std::nullopt});
    }
  }
  return out;
}

std::optional<Sizes> sizeList(const Value* v) {
  std::optional<std::vector<SizeArgument>> arguments = sizeArguments(v);
  if (!arguments) return std::nullopt;
  Sizes out;
  for (const SizeArgument& a : *arguments) out.push_back(a.size);
  return out;
}

Value* argumentOf(const Node& node, std::string_view name) {
  const FunctionSchema* schema = node.maybeSchema();
  if (!schema) return nullptr;
  std::optional<size_t> index = schema->argumentIndex(name);
  return index && *index < node.inputs().size() ? node.input(*index) : nullptr;
}

std::optional<size_t> wrappedDim(int64_t d, size_t rank) {
  auto n = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (d < -n || d >= n) return std::nullopt;
  return static_cast<size_t>(d < 0 ? d + n : d);
}

Size broadcastSize(Size a, Size b) {
  if (a == Size(1)) return b;
  if (b == Size(1)) return a;
  if (a && a == b) return a;
  // A number other than 1 wins, or the call raises.
  if (a && *a >= 0) return a;
  if (b && *b >= 0) return b;
  return std::nullopt;
}

Sizes broadcastSizes(const Sizes& a, const Sizes& b) {
  const Sizes& longer = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  Sizes out = longer;
  size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    out[offset + i] = broadcastSize(longer[offset + i], shorter[i]);
  }
  return out;
}

TensorFacts sameKind(const TensorFacts& facts) {
  TensorFacts out;
  out.dtype = facts.dtype;
  out.device = facts.device;
  return out;
}

void setSizes(TensorFacts& facts, std::optional<Sizes> sizes) {
  facts.strides.reset();
  facts.dim.reset();
  if (sizes) facts.dim = sizes->size();
  facts.sizes = std::move(sizes);
}

std::vector<TypePtr> oneTensor(TensorFacts facts) {
  facts.strides.reset();
  facts.requires_grad.reset();
  return {TensorType::create(std::move(facts))};
}

std::vector<TypePtr> nothingKnown(const Node& node) {
  std::vector<TypePtr> out;
  for (const Value* v : node.outputs()) {
    out.push_back(v->type()->kind() == TypeKind::Tensor ? types::Tensor() : v->type());
  }
  return out;
}

}  // namespace wick
