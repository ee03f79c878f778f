#include "python/size_tracking.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/stack.h"
#include "ir/shape_facts.h"
#include "passes/pointwise_types.h"
#include "passes/propagate_types.h"
#include "python/dead_operators.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Object;
using capture::SizeExpression;
using capture::SizeTable;

// The class of numbers that stand for open sizes: ints for all of Python.
// Counts a level of a recursion while it lives.
class Level {
 public:
  explicit Level(int& depth) : depth_(depth) { ++depth_; }
  Level(const Level&) = delete;
  ~Level() { --depth_; }

 private:
  int& depth_;
};

PyTypeObject* numberType() {
  static PyObject* const type = [] {
    const Object bases =
        Object::checked(PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyLong_Type)));
    Object made = Object::checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type),
                                                        "sO{}", "OpenSize", bases.get()));
    return made.leak();
  }();
  return reinterpret_cast<PyTypeObject*>(type);
}

bool isTensorValue(const Value* value) {
  return value->type()->kind() == TypeKind::Tensor;
}

// The argument that result i is, for operators that write to it and return it.
std::optional<size_t> writtenArgument(const FunctionSchema& schema, size_t i) {
  if (i >= schema.returns().size()) return std::nullopt;
  const auto& result = schema.returns()[i].alias;
  if (!result || !result->is_write) return std::nullopt;
  for (size_t a = 0; a < schema.arguments().size(); ++a) {
    const auto& alias = schema.arguments()[a].alias;
    if (alias && alias->is_write && alias->before == result->before) return a;
  }
  return std::nullopt;
}

bool isOneOf(Symbol symbol, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return symbol == Symbol::aten(name); });
}

// Returns the number of dimensions that a convolution or pooling moves its window over; 0 for other
// operators.
size_t windowDims(Symbol symbol) {
  if (isOneOf(symbol, {"conv1d", "max_pool1d", "avg_pool1d"})) return 1;
  if (isOneOf(symbol, {"conv2d", "max_pool2d", "avg_pool2d"})) return 2;
  if (isOneOf(symbol, {"conv3d", "max_pool3d", "avg_pool3d"})) return 3;
  return 0;
}

// Inserts a node that gives the size of a dimension.
Value* insertSize(Graph& graph, Value* tensor, size_t dim) {
  static const Operator* const kSize =
      OperatorRegistry::instance().find(Symbol::aten("size"), "int");
  Node* node = graph.create(kSize->symbol(),
                            {tensor, graph.insertConstant(IValue(static_cast<int64_t>(dim)))}, 0);
  node->setOperator(kSize);
  Value* const made = node->addOutput(types::Int());
  graph.insertNode(node);
  return made;
}

}  // namespace

// ---- types ----

void SizeTracking::addInput(Value* value, const Tensor& fake, const capture::InputSizes& sizes) {
  table_ = sizes.table;
  TensorFacts facts = typeOfTensor(fake)->as<TensorType>()->facts();
  facts.strides.reset();
  Sizes known(fake.sizes().begin(), fake.sizes().end());
  for (size_t i = 0; i < sizes.symbols.size(); ++i) {
    const int symbol = sizes.symbols[i];
    if (symbol < 0) continue;
    symbols_of_[value].push_back(symbol);
    input_dimensions_.try_emplace(symbol, num_inputs_, static_cast<int64_t>(i));
    table_->noteInGraph(symbol);
    const auto [free, added] = free_.try_emplace(symbol, 0);
    if (added) {
      free->second = sizes_.fresh();
      symbol_of_free_[free->second] = symbol;
      symbol_values_[symbol] = insertSize(tracer_.graph(), value, i);
    }
    known[i] = free->second;
  }
  setSizes(facts, known);
  value->setType(TensorType::create(std::move(facts)));
  ++num_inputs_;
}

void SizeTracking::follow() {
  if (!isOpen() && pending_.empty()) return;
  const SymbolicSizes::Scope scope(sizes_);
  Node* const end = tracer_.graph().returnNode();
  for (Node* node = last_ ? last_->next() : end->next(); node != end; node = node->next()) {
    visit(node);
    nameDecided(node);
    last_ = node;
  }
}

void SizeTracking::forget() {
  Graph& graph = tracer_.graph();
  for (Value* each : graph.inputs()) each->setType(unshapedType(each->type()));
  if (!isOpen()) return;
  for (Node* node : graph.nodes()) {
    for (Value* each : node->outputs()) {
      if (isTensorValue(each)) each->setType(types::Tensor());
    }
  }
}

void SizeTracking::visit(Node* node) {
  if (node->kind() == prim::Constant) {
    const auto value = constantOf(node->output());
    if (value && value->isTensor() && value->toTensor().defined()) {
      node->output()->setType(typeOfTensor(value->toTensor()));
    }
    return;
  }
  if (node->kind() == prim::ListUnpack) return visitList(node);
  if (node->kind() == prim::unchecked_cast) {
    if (isTensorValue(node->output()) && isTensorValue(node->input(0))) {
      node->output()->setType(node->input(0)->type());
    }
    return;
  }
  if (node->blocks().empty() && node->maybeOperator()) visitOperator(node);
}

// As propagateTypes() does, for a graph that runs straight.
void SizeTracking::visitOperator(Node* node) {
  const Operator& op = *node->maybeOperator();
  if (op.has(kChangesMetadata) || op.form() == Operator::Form::Out) {
    for (Value* each : node->inputs()) {
      if (isTensorValue(each)) each->setType(types::Tensor());
    }
    return;
  }
  std::vector<TypePtr> found;
  if (op.form() != Operator::Form::Base) {
    // As the destination, below.
  } else if (op.record().shape) {
    found = op.record().shape(*node);
  } else if (op.record().scalar) {
    found = pointwiseTypes(*node);
  }
  try {
    checkView(node);
  } catch (const capture::UnknownSize&) {
    // The operator itself raises an error where elements decide otherwise.
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    Value* const out = node->output(i);
    if (i < found.size() && found[i]->kind() == TypeKind::List) {
      elements_[out] = found[i]->contained()[0];
      continue;
    }
    if (!isTensorValue(out)) continue;
    const std::optional<size_t> written = writtenArgument(op.schema(), i);
    if (written && isTensorValue(node->input(*written))) {
      out->setType(node->input(*written)->type());
    } else if (i < found.size() && found[i]->kind() == TypeKind::Tensor) {
      out->setType(named(node, found[i]));
    }
  }
}

// Gives symbols to sizes that no rule knows, but deferredSize() does.
TypePtr SizeTracking::named(const Node* node, const TypePtr& type) {
  const bool slice = isOneOf(node->kind(), {"slice"});
  const size_t window = windowDims(node->kind());
  if (!slice && window == 0 && !node->maybeOperator()->record().scalar) return type;
  TensorFacts facts = type->as<TensorType>()->facts();
  if (!facts.sizes) return type;
  const auto dim = slice ? intOf(node->input(1)) : std::nullopt;
  const auto sliced = dim ? wrappedDim(*dim, facts.sizes->size()) : std::nullopt;
  for (size_t i = 0; i < facts.sizes->size(); ++i) {
    if ((*facts.sizes)[i] || (slice && sliced != i)) continue;
    if (window > 0 && i + window < facts.sizes->size()) continue;
    const int64_t symbol = sizes_.fresh();
    deferred_[symbol] = {node, i};
    (*facts.sizes)[i] = symbol;
  }
  return TensorType::create(std::move(facts));
}

bool SizeTracking::isLess(const SizeExpression& a, const SizeExpression& b) const {
  const Expression difference = SizeTable::add(a, b, -1);
  if (!difference || !table_->hint(*difference)) breakGraph("sizes that are too large");
  return table_->holds(*difference, capture::SizeRelation::kLess);
}

SizeTracking::Expression SizeTracking::numberOf(const Value* value) const {
  if (const auto number = intOf(value)) return capture::numberExpression(*number);
  return expressionOf(sizeValue(value));
}

SizeTracking::Expression SizeTracking::sliceSize(const Node* node) const {
  const TensorFacts* const facts = factsOf(node->input(0));
  const auto dim = intOf(node->input(1)), step = intOf(node->input(4));
  if (!facts || !facts->sizes || !dim || !step || *step <= 0) return std::nullopt;
  const auto at = wrappedDim(*dim, facts->sizes->size());
  const Expression size = at ? expressionOf((*facts->sizes)[*at]) : std::nullopt;
  if (!size) return std::nullopt;
  const SizeExpression zero;
  // A bound counted from the start, within the tensor.
  const auto bound = [&](const Value* value, const SizeExpression& absent) -> Expression {
    if (isNoneConstant(value)) return absent;
    constexpr int64_t kEnd = int64_t{1} << 40;
    if (intOf(value).value_or(0) > kEnd) return size;
    Expression given = numberOf(value);
    if (given && isLess(*given, zero)) given = SizeTable::add(*given, *size);
    if (!given) return std::nullopt;
    if (isLess(*given, zero)) return zero;
    return isLess(*size, *given) ? size : given;
  };
  const Expression begin = bound(node->input(2), zero), end = bound(node->input(3), *size);
  if (!begin || !end) return std::nullopt;
  if (isLess(*end, *begin)) return zero;
  const Expression length = SizeTable::add(*end, *begin, -1);
  if (!length || *step == 1) return length;
  const Expression more = SizeTable::add(*length, capture::numberExpression(*step - 1));
  return more ? table_->floorDivide(*more, capture::numberExpression(*step)) : std::nullopt;
}

SizeTracking::Expression SizeTracking::windowSize(const Node* node, size_t dim) const {
  const size_t window = windowDims(node->kind());
  const TensorFacts *const facts = factsOf(node->input(0)), *const result =
                                                                factsOf(node->output(0));
  if (!facts || !facts->sizes || !result || !result->sizes) return std::nullopt;
  const size_t rank = facts->sizes->size();
  if (rank != result->sizes->size() || dim + window < rank) return std::nullopt;
  const size_t at = dim + window - rank;
  const auto number = [&](const char* name, int64_t absent) -> std::optional<int64_t> {
    const Value* const given = argumentOf(*node, name);
    if (!given) return absent;
    const auto all = intsOf(given, window);
    return all ? std::optional((*all)[at]) : std::nullopt;
  };
  std::optional<int64_t> kernel = number("kernel_size", 0);
  if (const Value* const weight = argumentOf(*node, "weight")) {
    const TensorFacts* const known = factsOf(weight);
    if (!known || !known->sizes || known->sizes->size() != window + 2) return std::nullopt;
    kernel = (*known->sizes)[at + 2];
  }
  // Poolings without a stride go on by their window.
  const Value* const strides = argumentOf(*node, "stride");
  const auto given = strides ? intsOf(strides) : std::nullopt;
  const auto stride = given && given->empty() ? kernel : number("stride", 1);
  const auto padding = number("padding", 0), dilation = number("dilation", 1);
  const Value* const ceil = argumentOf(*node, "ceil_mode");
  if (ceil && boolOf(ceil) != false) return std::nullopt;
  const Expression size = expressionOf((*facts->sizes)[dim]);
  if (!size || !kernel || *kernel < 1 || !stride || *stride < 1 || !padding || !dilation) {
    return std::nullopt;
  }
  const int64_t more = 2 * *padding - *dilation * (*kernel - 1) - 1;
  const Expression room = SizeTable::add(*size, capture::numberExpression(more));
  const Expression steps =
      room ? table_->floorDivide(*room, capture::numberExpression(*stride)) : std::nullopt;
  return steps ? SizeTable::add(*steps, capture::numberExpression(1)) : std::nullopt;
}

SizeTracking::Expression SizeTracking::broadcastSize(const Node* node, size_t dim) const {
  const size_t rank = factsOf(node->output(0))->sizes->size();
  Expression found;
  for (const Value* each : node->inputs()) {
    const TensorFacts* const facts = factsOf(each);
    if (!facts) continue;
    if (!facts->sizes) return std::nullopt;
    const size_t missing = rank - facts->sizes->size();
    if (dim < missing) continue;
    const Expression size = expressionOf((*facts->sizes)[dim - missing]);
    if (!size) return std::nullopt;
    if (capture::numberIn(*size) == 1) continue;
    if (!found) {
      found = size;
      continue;
    }
    // Neither is 1, and they are equal.
    const Expression difference = SizeTable::add(*found, *size, -1);
    if (!difference || !table_->hint(*difference) ||
        !table_->holds(*difference, capture::SizeRelation::kEqual)) {
      return std::nullopt;
    }
  }
  return found;
}

SizeTracking::Expression SizeTracking::deferredSize(int64_t symbol) const {
  const auto found = deferred_.find(symbol);
  if (found == deferred_.end()) return std::nullopt;
  // A value may be read several times, and those that it is made of.
  if (const auto known = deferred_sizes_.find(symbol); known != deferred_sizes_.end()) {
    return known->second;
  }
  constexpr int kMaxDepth = 20'000, kLevels = 200;
  constexpr size_t kStackPerLevel = 4096;
  if (deferred_depth_ == kMaxDepth) breakGraph("a size follows from too many operators");
  const Level level(deferred_depth_);
  Expression size;
  const auto compute = [&] {
    const auto& [node, dim] = found->second;
    size = isOneOf(node->kind(), {"slice"}) ? sliceSize(node)
           : windowDims(node->kind()) > 0   ? windowSize(node, dim)
                                            : broadcastSize(node, dim);
  };
  if (deferred_depth_ % kLevels == 1) {
    withStack(kLevels * kStackPerLevel, compute);
  } else {
    compute();
  }
  deferred_sizes_[symbol] = size;
  return size;
}

// Makes the size constant that an operator divides a tensor along; false where it is not known.
bool SizeTracking::fixDivided(const Node* node) {
  const TensorFacts* const facts = factsOf(node->input(0));
  const Value* const dim = argumentOf(*node, "dim");
  const auto number = dim ? intOf(dim) : std::optional<int64_t>(0);
  if (!facts || !facts->sizes || !number) return false;
  for (const Value* each : node->inputs()) {
    if (each->type()->kind() == TypeKind::Int && !intOf(each)) return false;
  }
  const auto at = wrappedDim(*number, facts->sizes->size());
  if (!at || *at >= facts->sizes->size()) return false;
  const Expression size = expressionOf((*facts->sizes)[*at]);
  if (!size) return false;
  if (!capture::numberIn(*size)) table_->fix(*size);
  return true;
}

// The number of tensors that an operator gives must not depend on open sizes.
void SizeTracking::visitList(Node* node) {
  const Value* const list = node->input(0);
  if (const auto literal = literalElements(list)) {
    for (size_t i = 0; i < std::min(literal->size(), node->outputs().size()); ++i) {
      if (isTensorValue(node->output(i)) && isTensorValue((*literal)[i])) {
        node->output(i)->setType((*literal)[i]->type());
      }
    }
    return;
  }
  if (list->type()->kind() != TypeKind::List ||
      list->type()->contained()[0]->kind() != TypeKind::Tensor) {
    return;
  }
  Node* const from = list->node();
  const bool counted =
      isOneOf(from->kind(),
              {"meshgrid", "broadcast_tensors", "split_with_sizes", "nonzero_numpy", "where"}) ||
      (isOneOf(from->kind(), {"chunk", "split", "unbind", "tensor_split"}) && fixDivided(from));
  if (!counted) fixInputsOf(from->inputs());
  const auto element = elements_.find(list);
  if (element == elements_.end()) return;
  for (Value* each : node->outputs()) {
    if (isTensorValue(each)) each->setType(element->second);
  }
}

// A view has as many elements as its tensor: what that says of sizes is a condition.
void SizeTracking::checkView(const Node* node) {
  if (!isOneOf(node->kind(), {"view", "reshape"})) return;
  const Value* const wanted = node->inputs().size() > 1 ? node->input(1) : nullptr;
  const TensorFacts* const facts = factsOf(node->input(0));
  if (!wanted || !facts || !facts->sizes || wanted->type()->kind() != TypeKind::List) return;
  const auto arguments = sizeArguments(wanted);
  const Expression all = expressionOf(productOf(*facts->sizes));
  if (!arguments || !all) return;
  Expression product = capture::numberExpression(1);
  bool rest = false;
  for (const SizeArgument& each : *arguments) {
    if (each.is_minus_one) {
      rest = true;
      continue;
    }
    const Expression size = expressionOf(each.size);
    product = size && product ? SizeTable::multiply(*product, *size) : std::nullopt;
  }
  if (!product) return;
  // The operator itself raises an error where elements decide otherwise.
  if (table_->hasDecided(*all) || table_->hasDecided(*product)) return;
  const Expression left =
      rest ? table_->remainder(*all, *product) : SizeTable::add(*all, *product, -1);
  if (left && table_->hint(*left)) table_->holds(*left, capture::SizeRelation::kEqual);
}

// ---- what depends on sizes ----

// Returns the symbols that values depend on.
std::set<int> SizeTracking::symbolsBehind(const std::vector<Value*>& values) const {
  std::set<int> symbols;
  std::vector<const Value*> open(values.begin(), values.end());
  std::unordered_set<const Value*> seen;
  while (!open.empty()) {
    const Value* const each = open.back();
    open.pop_back();
    if (!seen.insert(each).second) continue;
    if (const auto found = symbols_of_.find(each); found != symbols_of_.end()) {
      symbols.insert(found->second.begin(), found->second.end());
    }
    for (const Value* input : each->node()->inputs()) open.push_back(input);
  }
  return symbols;
}

void SizeTracking::fixInputsOf(const std::vector<Value*>& values) {
  for (const int symbol : symbolsBehind(values)) table_->fixSymbol(symbol);
}

bool SizeTracking::dependsOnDecided(const std::vector<Value*>& values) const {
  return std::ranges::any_of(symbolsBehind(values),
                             [&](int symbol) { return table_->isDecided(symbol); });
}

void SizeTracking::fixWithin(PyObject* object, bool numbers, int depth) {
  if (depth > 20) breakGraph("arguments are nested too deeply");
  if (isTensor(object)) {
    Value* const value = numbers ? tracer_.find(tensorIn(object)) : nullptr;
    if (value) fixInputsOf({value});
    return;
  }
  if (isNumber(object)) {
    if (numbers || read_.count(object) == 0) table_->fix(numbers_.at(object).second);
    return;
  }
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    for (PyObject* each : {slice->start, slice->stop, slice->step}) {
      fixWithin(each, numbers, depth + 1);
    }
  } else if (PyTuple_Check(object) || PyList_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      fixWithin(PySequence_Fast_GET_ITEM(object, i), numbers, depth + 1);
    }
  } else if (PyDict_CheckExact(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
      fixWithin(value, numbers, depth + 1);
    }
  }
}

void SizeTracking::end(const std::vector<PyObject*>& arguments, bool numbers) {
  if (!isOpen() && pending_.empty()) return;
  if (!problem_.empty()) breakGraph(problem_);
  follow();
  if (!pending_.empty()) breakGraph("elements decide about sizes within an operator");
  for (PyObject* each : arguments) fixWithin(each, numbers, 0);
}

bool SizeTracking::dependsOnSizes(const Value* value) const {
  const TensorFacts* const facts = factsOf(value);
  if (!facts) return value->type()->kind() == TypeKind::List;
  return !facts->sizes ||
         std::ranges::any_of(*facts->sizes, [](const Size& size) { return !size || *size < 0; });
}

// Appends a result, or the tensors of a list that is one.
void SizeTracking::keepResult(const Value* result, std::vector<Tensor>& kept) const {
  if (const std::optional<Tensor> tensor = tracer_.tensorOf(result)) {
    kept.push_back(*tensor);
    return;
  }
  for (const Use& use : result->uses()) {
    if (use.user->kind() != prim::ListUnpack) continue;
    for (const Value* each : use.user->outputs()) keepResult(each, kept);
    return;
  }
  breakGraph("an operator that nothing uses depends on what elements decide");
}

std::vector<Tensor> SizeTracking::checkDead(const std::vector<Value*>& outputs) {
  if (isOpen()) {
    follow();
    // A graph that tells sizes has no other results.
    if (table_->asksAll() && table_->hasAnyDecided()) return {};
  }
  std::vector<Tensor> kept;
  for (const Node* node : deadOperators(tracer_.graph(), outputs)) {
    bool keeps = raisesByElements(node);
    if (!keeps && isOpen() && mayRaiseBySizes(node) &&
        std::ranges::any_of(node->inputs(),
                            [&](const Value* each) { return dependsOnSizes(each); })) {
      keeps = dependsOnDecided(node->inputs());
      if (!keeps) fixInputsOf(node->inputs());
    }
    if (!keeps) continue;
    for (const Value* each : node->outputs()) keepResult(each, kept);
  }
  return kept;
}

// Returns whether the operator can raise an error for what elements of its inputs are.
bool SizeTracking::raisesByElements(const Node* node) const {
  if (!node->maybeOperator()->has(kRaisesByElements)) return false;
  // Pointwise operators raise for quotients of integers alone.
  if (!node->maybeOperator()->record().scalar) return true;
  const std::optional<Tensor> result = tracer_.tensorOf(node->output(0));
  return !result || isIntegral(result->dtype(), /*include_bool=*/true);
}

// ---- numbers ----

SizeTracking::Expression SizeTracking::sumOf(const std::vector<SymbolicSizes::Term>& terms) const {
  Expression sum = SizeExpression{};
  for (const SymbolicSizes::Term& term : terms) {
    Expression product = capture::numberExpression(term.coefficient);
    for (const int64_t symbol : term.symbols) {
      Expression factor;
      if (const auto quotient = sizes_.quotient(symbol)) {
        const Expression a = sumOf(quotient->first), b = sumOf(quotient->second);
        if (a && b) factor = table_->floorDivide(*a, *b);
      } else if (const auto known = symbol_of_free_.find(symbol); known != symbol_of_free_.end()) {
        factor = table_->symbol(known->second);
      } else {
        factor = deferredSize(symbol);
      }
      product = product && factor ? SizeTable::multiply(*product, *factor) : std::nullopt;
    }
    sum = sum && product ? SizeTable::add(*sum, *product) : std::nullopt;
  }
  return sum;
}

SizeTracking::Expression SizeTracking::expressionOf(Size size) const {
  if (!size) return std::nullopt;
  if (*size >= 0) return capture::numberExpression(*size);
  return sumOf(sizes_.terms(*size));
}

std::optional<SizeExpression> SizeTracking::sizeOf(PyObject* number) const {
  const auto found = numbers_.find(number);
  if (found == numbers_.end()) return std::nullopt;
  return found->second.second;
}

Object SizeTracking::numberFor(const SizeExpression& expression) {
  const std::optional<int64_t> value = table_->hint(expression);
  if (!value) breakGraph("a size that is too large");
  if (capture::numberIn(table_->simplified(expression))) {
    return Object::checked(PyLong_FromLongLong(*value));
  }
  Object made = Object::checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(numberType()),
                                                      "L", static_cast<long long>(*value)));
  numbers_[made.get()] = {made, expression};
  return made;
}

bool SizeTracking::isNumber(PyObject* object) const {
  return Py_TYPE(object) == numberType() && numbers_.count(object) != 0;
}

Value* SizeTracking::find(PyObject* number) {
  const auto found = numbers_.find(number);
  if (found == numbers_.end()) return nullptr;
  read_.insert(number);
  const SizeExpression simple = table_->simplified(found->second.second);
  return capture::numberIn(simple) ? nullptr : valueFor(simple);
}

PyObject* SizeTracking::object(int64_t number, Value* value) {
  if (isOpen()) {
    follow();
    const SymbolicSizes::Scope scope(sizes_);
    // Functions of C call this, which no exception may pass.
    try {
      const Expression found = decidedNumber(value, number);
      if (found && table_->hint(*found) == number) return numberFor(*found).leak();
      fixInputsOf({value});
    } catch (const capture::GraphBreak& error) {
      if (problem_.empty()) problem_ = error.reason;
    }
  }
  return Object::checked(PyLong_FromLongLong(number)).leak();
}

// ---- sizes that elements decide ----

std::optional<int64_t> SizeTracking::next(const Tensor& counted) {
  if (!table_ || !table_->mayDecide() || !may_decide_) return std::nullopt;
  if (counted.defined()) {
    // The same elements are counted again.
    const uint32_t version = counted.impl()->storage->version();
    for (const Counted& each : counted_) {
      if (!each.tensor.isSame(counted) || each.version != version) continue;
      last_symbol_ = each.symbol;
      return table_->hintOf(last_symbol_);
    }
  }
  last_symbol_ = table_->addDecided(table_->nextHint(), 0);
  if (counted.defined()) {
    counted_.push_back({counted, counted.impl()->storage->version(), last_symbol_});
  }
  return table_->hintOf(last_symbol_);
}

void SizeTracking::note(const Tensor& result, size_t dim) {
  pending_.push_back({result, dim, last_symbol_});
}

// Names sizes that elements have decided about among the results of a node.
void SizeTracking::nameDecided(const Node* node) {
  for (size_t i = 0; i < pending_.size();) {
    const Pending& each = pending_[i];
    Value* const value = tracer_.find(each.tensor);
    if (!value || value->node() != node) {
      ++i;
      continue;
    }
    if (!factsOf(value) || !factsOf(value)->sizes) {
      // No rule tells the other sizes.
      TensorFacts facts = typeOfTensor(each.tensor)->as<TensorType>()->facts();
      facts.strides.reset();
      Sizes known(each.tensor.sizes().begin(), each.tensor.sizes().end());
      if (std::ranges::any_of(node->inputs(),
                              [&](const Value* in) { return dependsOnSizes(in); })) {
        known.assign(known.size(), std::nullopt);
      }
      setSizes(facts, known);
      value->setType(TensorType::create(std::move(facts)));
    }
    bindDecided(value, each.dim, each.symbol);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Says that the dimension has the size of the symbol.
int SizeTracking::bindDecided(Value* tensor, size_t dim, int symbol) {
  const auto [free, added] = free_.try_emplace(symbol, 0);
  if (added) {
    free->second = sizes_.fresh();
    symbol_of_free_[free->second] = symbol;
    dimensions_[symbol] = {tensor, static_cast<int64_t>(dim)};
  }
  symbols_of_[tensor].push_back(symbol);
  table_->noteInGraph(symbol);
  if (symbol_values_.count(symbol) == 0) {
    symbol_values_[symbol] = insertSize(tracer_.graph(), tensor, dim);
  }
  TensorFacts facts = tensor->type()->as<TensorType>()->facts();
  if (facts.sizes && dim < facts.sizes->size()) {
    (*facts.sizes)[dim] = free->second;
    tensor->setType(TensorType::create(std::move(facts)));
  }
  return symbol;
}

// Returns the expression of a size; a new symbol where it is unknown and depends on what elements decide.
SizeTracking::Expression SizeTracking::decidedNumber(Value* value, int64_t number) {
  try {
    if (const Expression found = expressionOf(sizeValue(value))) return found;
  } catch (const capture::UnknownSize&) {
    // Nothing known tells it.
  }
  const Node* const node = value->node();
  if (node->inputs().empty() || !isTensorValue(node->input(0)) || !dependsOnDecided({value}) ||
      !table_->mayDecide()) {
    return std::nullopt;
  }
  if (isOneOf(node->kind(), {"numel"})) {
    const int symbol = table_->addDecided(number, 0);
    symbol_values_[symbol] = value;
    symbols_of_[value].push_back(symbol);
    dimensions_[symbol] = {node->input(0), kNumel};
    table_->noteInGraph(symbol);
    return table_->symbol(symbol);
  }
  const auto dim = isOneOf(node->kind(), {"size"}) && node->inputs().size() == 2
                       ? intOf(node->input(1))
                       : std::nullopt;
  if (!dim) return std::nullopt;
  const TensorFacts* const facts = factsOf(node->input(0));
  const auto at = facts && facts->sizes ? wrappedDim(*dim, facts->sizes->size()) : std::nullopt;
  if (!at) return std::nullopt;
  const int symbol = table_->addDecided(number, 0);
  symbol_values_[symbol] = value;
  return table_->symbol(bindDecided(node->input(0), *at, symbol));
}

SizeTracking::Expression SizeTracking::elementOf(const Tensor& fake) {
  Value* const value = tracer_.intOf(fake);
  if (!value || !table_ || !table_->mayDecide() || !may_decide_) return std::nullopt;
  const int symbol =
      table_->addDecided(table_->nextHint(true), std::numeric_limits<int64_t>::min());
  symbol_values_[symbol] = value;
  symbols_of_[value].push_back(symbol);
  dimensions_[symbol] = {tracer_.find(fake), kElement};
  table_->noteInGraph(symbol);
  return table_->symbol(symbol);
}

std::optional<std::pair<Tensor, int64_t>> SizeTracking::dimensionOf(int symbol) const {
  const auto found = dimensions_.find(symbol);
  if (found == dimensions_.end()) return std::nullopt;
  const std::optional<Tensor> tensor = tracer_.tensorOf(found->second.first);
  if (!tensor) return std::nullopt;
  return std::pair(*tensor, found->second.second);
}

std::shared_ptr<Guesses> SizeTracking::guesses(std::vector<IValue>& outputs) const {
  if (!table_ || !(table_->hasGuesses() || (table_->asksAll() && table_->hasAnyDecided()))) {
    return nullptr;
  }
  const auto made = std::make_shared<Guesses>();
  made->sizes = *table_;
  std::vector<int> symbols = table_->guessedSymbols();
  for (int symbol = 0; table_->asksAll() && symbol < table_->numSymbols(); ++symbol) {
    const bool missing = std::ranges::find(symbols, symbol) == symbols.end();
    if (missing && table_->isDecided(symbol) && dimensionOf(symbol)) symbols.push_back(symbol);
  }
  for (const int symbol : symbols) {
    if (!table_->isDecided(symbol)) {
      const auto [index, dim] = input_dimensions_.at(symbol);
      made->places.push_back({symbol, true, index, dim});
      continue;
    }
    const auto found = dimensionOf(symbol);
    if (!found) breakGraph("a size that elements decide and the graph does not give");
    const auto known = std::ranges::find_if(
        outputs, [&](const IValue& each) { return each.toTensor().isSame(found->first); });
    made->places.push_back(
        {symbol, false, static_cast<size_t>(known - outputs.begin()), found->second});
    if (known == outputs.end()) outputs.emplace_back(found->first);
  }
  return made;
}

// ---- the graph ----

Value* SizeTracking::computed(const char* name, Value* a, Value* b) {
  const Operator* const op = OperatorRegistry::instance().find(Symbol::aten(name), "int");
  if (!op) breakGraph("arithmetic on sizes cannot be recorded");
  Graph& graph = tracer_.graph();
  Node* node = graph.create(op->symbol(), {a, b}, 0);
  node->setOperator(op);
  Value* const made = node->addOutput(types::Int());
  graph.insertNode(node);
  return made;
}

Value* SizeTracking::atomValue(int atom) {
  const SizeTable::Atom& of = table_->atom(atom);
  if (of.symbol >= 0) return symbol_values_.at(of.symbol);
  return computed("floordiv", valueFor(of.dividend), valueFor(of.divisor));
}

Value* SizeTracking::valueFor(const SizeExpression& expression) {
  if (const auto known = values_.find(expression); known != values_.end()) return known->second;
  Graph& graph = tracer_.graph();
  const auto product = [&](const std::vector<int>& atoms, int64_t coefficient) {
    Value* made = nullptr;
    for (const int atom : atoms) {
      Value* const factor = atomValue(atom);
      made = made ? computed("mul", made, factor) : factor;
    }
    if (made && coefficient == 1) return made;
    Value* const factor = graph.insertConstant(IValue(coefficient));
    return made ? computed("mul", made, factor) : factor;
  };
  // Shape rules know no negative numbers: these terms are subtracted.
  Value* sum = nullptr;
  for (const auto& [atoms, coefficient] : expression) {
    if (coefficient < 0) continue;
    Value* const term = product(atoms, coefficient);
    sum = sum ? computed("add", sum, term) : term;
  }
  if (!sum) sum = graph.insertConstant(IValue(int64_t{0}));
  for (const auto& [atoms, coefficient] : expression) {
    if (coefficient < 0) sum = computed("sub", sum, product(atoms, -coefficient));
  }
  return values_[expression] = sum;
}

}  // namespace wick::python
