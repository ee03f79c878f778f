#include "capture/values/size.h"

#include <optional>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/frame.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/sequence.h"

namespace wick::capture {

namespace {

// Ends the graph before a loop that asks again and again about numbers that elements decide: each iteration is one more part of
// the graph, and another call may have more of them.
void noteQuestion(Capture& capture, const SizeExpression& about) {
  if (!capture.frame || !capture.guards.sizes().hasDecided(about)) return;
  constexpr int kMostIterations = 16;
  EvalFrame::Asked& asked = capture.frame->asked[capture.frame->at];
  if (asked.count++ == 0) asked.first_step = capture.root_step;
  // A loop may end soon for the numbers of this call, and never for others.
  const SizeTable& sizes = capture.guards.sizes();
  if (asked.count > 1 && sizes.asksAll() && !sizes.isMeasured(about)) {
    throw UnknownSize("a number in a loop");
  }
  if (asked.count > kMostIterations) {
    throw GraphBreak{
        "a loop that sizes or elements of tensors end, of many iterations", {}, asked.first_step};
  }
}

// Returns whether the relation to zero holds, for the program.
bool ask(Capture& capture, const SizeExpression& about, SizeRelation relation) {
  noteQuestion(capture, about);
  return capture.guards.sizes().holds(about, relation);
}

}  // namespace

void SizeVariable::guard(Capture& capture) {
  if (source) expression_ = capture.openInteger(source, object.get());
}

const SizeExpression& SizeVariable::expression() {
  capture_.use(this);
  return expression_;
}

PyObject* SizeVariable::constant() const {
  if (!constant_) {
    capture_.use(const_cast<SizeVariable*>(this));
    constant_ = Object::checked(PyLong_FromLongLong(capture_.guards.sizes().fix(expression_)));
  }
  return constant_.get();
}

Variable* SizeVariable::fixed(Capture& capture) const {
  return capture.use(capture.constant(constant()));
}

Variable* SizeVariable::ownAttribute(Capture& capture, PyObject* name) {
  return fixed(capture)->ownAttribute(capture, name);
}

Variable* SizeVariable::callMethod(Capture& capture, const std::string& name,
                                   const Arguments& given) {
  return fixed(capture)->callMethod(capture, name, given);
}

Variable* SizeVariable::item(Capture& capture, Variable* key) {
  return fixed(capture)->item(capture, key);
}

int64_t SizeVariable::length(Capture& capture) {
  return fixed(capture)->length(capture);
}

bool SizeVariable::truth(Capture& capture) {
  return ask(capture, expression(), SizeRelation::kNotEqual);
}

Variable* SizeVariable::iterate(Capture& capture) {
  return fixed(capture)->iterate(capture);
}

bool SizeVariable::contains(Capture& capture, Variable* element) {
  return fixed(capture)->contains(capture, element);
}

int SizeVariable::build(Builder& builder) {
  const SizeTable& sizes = capture_.guards.sizes();
  return sizes.hasDecided(expression()) ? buildDecided(builder, expression())
                                        : builder.size(expression());
}

namespace {

// Returns the register of what a function of the module `operator` gives for two numbers.
int computed(Builder& builder, const char* name, int a, int b) {
  return builder.make(StepKind::kCall, {builder.constant(operatorFunction(name).get()), a, b});
}

}  // namespace

// Returns the register of the number, computed of sizes of the graph's results.
int SizeVariable::buildDecided(Builder& builder, const SizeExpression& expression) const {
  const SizeTable& sizes = capture_.guards.sizes();
  const auto number = [&](int64_t value) {
    return builder.constant(Object::checked(PyLong_FromLongLong(value)).get());
  };
  const auto atom = [&](int at) {
    const SizeTable::Atom& of = sizes.atom(at);
    if (of.symbol < 0) {
      return computed(builder, "floordiv", buildDecided(builder, of.dividend),
                      buildDecided(builder, of.divisor));
    }
    if (!sizes.isDecided(of.symbol)) return builder.size(sizes.symbol(of.symbol));
    const Recording::Dimension found = capture_.recording->dimensionOf(of.symbol);
    if (!found.fake) throw UnknownSize(sizes.nameOf(of.symbol));
    PyObject* const fake = capture_.keep(found.fake);
    PyTypeObject* const type = capture_.recording->typeOf(fake);
    static constexpr const char* kMethods[] = {"size", "item", "numel"};
    const Object method = Object::checked(PyObject_GetAttrString(
        reinterpret_cast<PyObject*>(type), kMethods[static_cast<size_t>(found.kind)]));
    std::vector<int> call{builder.constant(method.get()), builder.output(fake)};
    if (found.kind == Recording::Dimension::Kind::kSize) call.push_back(number(found.dim));
    return builder.make(StepKind::kCall, std::move(call));
  };
  int sum = number(0);
  for (const auto& [atoms, coefficient] : expression) {
    int product = number(coefficient);
    for (const int each : atoms) product = computed(builder, "mul", product, atom(each));
    sum = computed(builder, "add", sum, product);
  }
  return sum;
}

// ---- slices ----

PyObject* SliceVariable::constant() const {
  if (!constant_) {
    for (const Variable* each : parts_) {
      if (!each->constant()) return nullptr;
    }
    constant_ = Object::checked(
        PySlice_New(parts_[0]->constant(), parts_[1]->constant(), parts_[2]->constant()));
  }
  return constant_.get();
}

Variable* SliceVariable::ownAttribute(Capture&, PyObject* name) {
  static constexpr const char* kNames[] = {"start", "stop", "step"};
  for (size_t i = 0; i < 3; ++i) {
    if (is(name, kNames[i])) return parts_[i];
  }
  return nullptr;
}

int SliceVariable::build(Builder& builder) {
  return builder.make(StepKind::kSlice, builder.buildAll({parts_[0], parts_[1], parts_[2]}));
}

// ---- operators ----

namespace {

constexpr int kMostNested = 20;

bool holdsSizesWithin(const Variable* variable, int depth) {
  if (dynamic_cast<const SizeVariable*>(variable)) return true;
  if (dynamic_cast<const SliceVariable*>(variable)) return true;
  const auto* const sequence = dynamic_cast<const SequenceVariable*>(variable);
  // Sequences that exist hold ordinary numbers, until the program changes them.
  if (!sequence || depth > kMostNested) return false;
  for (const Variable* each : sequence->known()) {
    if (each && holdsSizesWithin(each, depth + 1)) return true;
  }
  return false;
}

// The expression of an int; nothing for others.
std::optional<SizeExpression> expressionOf(Variable* variable) {
  if (auto* size = dynamic_cast<SizeVariable*>(variable)) return size->expression();
  auto* const constant = dynamic_cast<ConstantVariable*>(variable);
  PyObject* const value = constant ? constant->constant() : nullptr;
  if (!value || (!PyLong_CheckExact(value) && !PyBool_Check(value))) return std::nullopt;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) return std::nullopt;
  return numberExpression(number);
}

bool isSize(Variable* variable) {
  return dynamic_cast<SizeVariable*>(variable) != nullptr;
}

}  // namespace

bool holdsSizes(const Variable* variable) {
  return holdsSizesWithin(variable, 0);
}

Variable* binaryOfSizes(Capture& capture, std::string_view name, Variable* left, Variable* right) {
  if (!isSize(left) && !isSize(right)) return nullptr;
  auto a = expressionOf(left), b = expressionOf(right);
  if (!a || !b) return nullptr;
  SizeTable& sizes = capture.guards.sizes();
  SizeTable::Result result;
  if (name == "add") {
    result = SizeTable::add(*a, *b);
  } else if (name == "sub") {
    result = SizeTable::add(*a, *b, -1);
  } else if (name == "mul") {
    result = SizeTable::multiply(*a, *b);
  } else if (name == "floordiv" || name == "mod") {
    // The divisor's sign is no part of the expression.
    if (sizes.holds(*b, SizeRelation::kEqual)) return nullptr;
    result = name == "mod" ? sizes.remainder(*a, *b) : sizes.floorDivide(*a, *b);
  }
  // One that has no value overflows.
  if (!result || !sizes.hint(*result)) return nullptr;
  return capture.sizeVariable(*result);
}

Variable* compareSizes(Capture& capture, int op, Variable* left, Variable* right) {
  if (!isSize(left) && !isSize(right)) return nullptr;
  const auto a = expressionOf(left), b = expressionOf(right);
  for (Variable* each : {left, right}) {
    const bool other = each->type() == Py_TYPE(Py_None) || each->type() == &PyUnicode_Type;
    if (other && (op == Py_EQ || op == Py_NE)) return capture.constantBool(op == Py_NE);
  }
  if (!a || !b) return nullptr;
  const bool swapped = op == Py_GT || op == Py_LE;
  const auto difference = swapped ? SizeTable::add(*b, *a, -1) : SizeTable::add(*a, *b, -1);
  if (!difference || !capture.guards.sizes().hint(*difference)) return nullptr;
  const SizeRelation relation = op == Py_EQ                  ? SizeRelation::kEqual
                                : op == Py_NE                ? SizeRelation::kNotEqual
                                : op == Py_LT || op == Py_GT ? SizeRelation::kLess
                                                             : SizeRelation::kAtLeast;
  return capture.constantBool(ask(capture, *difference, relation));
}

Variable* negativeSize(Capture& capture, Variable* operand) {
  auto* const size = dynamic_cast<SizeVariable*>(operand);
  if (!size) return nullptr;
  const auto negative = SizeTable::add({}, size->expression(), -1);
  return negative ? capture.sizeVariable(*negative) : nullptr;
}

}  // namespace wick::capture
