// Arithmetic, comparisons, items, iteration.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/arrays.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/guards/numpy.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/deque.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/identity.h"
#include "capture/values/instance.h"
#include "capture/values/iterators.h"
#include "capture/values/number.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"
#include "capture/values/size.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

using Function = PyObject* (*)(PyObject*, PyObject*);

PyObject* power(PyObject* a, PyObject* b) {
  return PyNumber_Power(a, b, Py_None);
}
PyObject* powerTo(PyObject* a, PyObject* b) {
  return PyNumber_InPlacePower(a, b, Py_None);
}

struct Operation {
  Function function;
  const char* name;  // of the special method, without underscores
  const char* sign;
  bool in_place;
};

// In the order of BINARY_OP's argument.
constexpr std::array<Operation, 26> kOperations = {{
    {PyNumber_Add, "add", "+", false},
    {PyNumber_And, "and", "&", false},
    {PyNumber_FloorDivide, "floordiv", "//", false},
    {PyNumber_Lshift, "lshift", "<<", false},
    {PyNumber_MatrixMultiply, "matmul", "@", false},
    {PyNumber_Multiply, "mul", "*", false},
    {PyNumber_Remainder, "mod", "%", false},
    {PyNumber_Or, "or", "|", false},
    {power, "pow", "** or pow()", false},
    {PyNumber_Rshift, "rshift", ">>", false},
    {PyNumber_Subtract, "sub", "-", false},
    {PyNumber_TrueDivide, "truediv", "/", false},
    {PyNumber_Xor, "xor", "^", false},
    {PyNumber_InPlaceAdd, "add", "+=", true},
    {PyNumber_InPlaceAnd, "and", "&=", true},
    {PyNumber_InPlaceFloorDivide, "floordiv", "//=", true},
    {PyNumber_InPlaceLshift, "lshift", "<<=", true},
    {PyNumber_InPlaceMatrixMultiply, "matmul", "@=", true},
    {PyNumber_InPlaceMultiply, "mul", "*=", true},
    {PyNumber_InPlaceRemainder, "mod", "%=", true},
    {PyNumber_InPlaceOr, "or", "|=", true},
    {powerTo, "pow", "**=", true},
    {PyNumber_InPlaceRshift, "rshift", ">>=", true},
    {PyNumber_InPlaceSubtract, "sub", "-=", true},
    {PyNumber_InPlaceTrueDivide, "truediv", "/=", true},
    {PyNumber_InPlaceXor, "xor", "^=", true},
}};

bool isTensor(Variable* variable) {
  return dynamic_cast<TensorVariable*>(variable) != nullptr;
}

bool isInstance(Variable* variable) {
  return dynamic_cast<InstanceVariable*>(variable) || dynamic_cast<DerivedDictVariable*>(variable);
}

// Whether the result of a special method is NotImplemented.
bool isAbsent(Capture& capture, Variable* result) {
  return !result || capture.use(result)->constant() == Py_NotImplemented;
}

// Returns what `dict` itself makes of the operator; null if it knows none for these operands.
Variable* joinedDicts(Capture& capture, const Operation& operation, Variable* left,
                      Variable* right) {
  auto *const a = dynamic_cast<DictVariable*>(left), *const b = dynamic_cast<DictVariable*>(right);
  if (!a || !b || std::string_view(operation.name) != "or") return nullptr;
  const Variable* const plain = isInstance(left) ? right : left;
  if (plain->type() != &PyDict_Type) breakGraph("dicts of several classes are joined");
  auto* const made = capture.make<DictVariable>(&PyDict_Type);
  for (Variable* each : {left, right}) made->update(capture, {{each}, {}});
  return made;
}

// Operators of classes that are written in Python.
Variable* binaryOfInstances(Capture& capture, const Operation& operation, Variable* left,
                            Variable* right) {
  const std::string plain = fmt::format("__{}__", operation.name),
                    reflected = fmt::format("__r{}__", operation.name);
  auto* const dict = isInstance(left) ? nullptr : dynamic_cast<DictVariable*>(left);
  if (dict && operation.in_place && dynamic_cast<DictVariable*>(right) &&
      std::string_view(operation.name) == "or") {
    return dict->update(capture, {{right}, {}}), dict;
  }
  if (operation.in_place && isInstance(left)) {
    Variable* const found =
        callSpecial(capture, left, fmt::format("__i{}__", operation.name).c_str(), {right});
    if (!isAbsent(capture, found)) return found;
  }
  const bool other = left->type() != right->type();
  const bool right_first =
      other && isInstance(right) && PyType_IsSubtype(right->type(), left->type()) &&
      specialMethod(*right, reflected.c_str()) != specialMethod(*left, reflected.c_str());
  if (right_first) {
    Variable* const found = callSpecial(capture, right, reflected.c_str(), {left});
    if (!isAbsent(capture, found)) return found;
  }
  if (isInstance(left)) {
    Variable* const found = callSpecial(capture, left, plain.c_str(), {right});
    if (!isAbsent(capture, found)) return found;
  } else if (isTensor(left)) {
    breakGraph(fmt::format("a tensor {} {}", operation.sign, describe(*right)));
  }
  if (other && !right_first && isInstance(right)) {
    Variable* const found = callSpecial(capture, right, reflected.c_str(), {left});
    if (!isAbsent(capture, found)) return found;
  } else if (isTensor(right)) {
    breakGraph(fmt::format("{} {} a tensor", describe(*left), operation.sign));
  }
  if (!isInstance(left) || !isInstance(right)) {
    if (Variable* found = joinedDicts(capture, operation, left, right)) return found;
  }
  const auto is_native = [](const Variable* each) {
    return each->type()->tp_as_sequence && !(each->type()->tp_flags & Py_TPFLAGS_HEAPTYPE);
  };
  const bool times = std::string_view(operation.name) == "mul";
  for (Variable* each : {left, right}) {
    if (!is_native(each) || !each->type()->tp_as_sequence->sq_repeat || !times) continue;
    Variable* const by = each == left ? right : left;
    // A sequence may be repeated by an object with an __index__.
    if (Variable* const count = callSpecial(capture, by, "__index__")) {
      if (capture.use(count)->type() != &PyLong_Type) breakGraph("__index__ gives no int");
      constexpr int kMultiply = 5;  // of BINARY_OP
      return binary(capture, kMultiply, each, count);
    }
    capture.raise(PyExc_TypeError, fmt::format("can't multiply sequence by non-int of type '{}'",
                                               by->type()->tp_name));
  }
  if (std::string_view(operation.name) == "add" && is_native(left)) {
    breakGraph(fmt::format("{} {} {}", describe(*left), operation.sign, describe(*right)));
  }
  capture.raise(PyExc_TypeError,
                fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", operation.sign,
                            left->type()->tp_name, right->type()->tp_name));
}

Variable* repeated(Capture& capture, SequenceVariable* sequence, Variable* count) {
  PyObject* const number = count->constant();
  if (!number || !PyLong_Check(number)) breakGraph("a list times a number that is not constant");
  const int64_t times = capture.concretely([&] {
    const long long found = PyLong_AsLongLong(number);
    if (found == -1 && PyErr_Occurred()) throw PythonError();
    return static_cast<int64_t>(found);
  });
  constexpr int64_t kMost = 1'000'000;
  if (times > 0 && sequence->size() > kMost / times) breakGraph("a list of a million elements");
  std::vector<Variable*> elements;
  const std::vector<Variable*> once = sequence->all(capture);
  for (int64_t i = 0; i < times; ++i) elements.insert(elements.end(), once.begin(), once.end());
  if (dynamic_cast<ListVariable*>(sequence)) return capture.make<ListVariable>(std::move(elements));
  PyTypeObject* const type =
      capture.world.isSizeType(sequence->type()) ? sequence->type() : &PyTuple_Type;
  return capture.make<TupleVariable>(std::move(elements), type);
}

// Lists, tuples, dicts and sets; null if the operator is none of theirs.
Variable* binaryOfContainers(Capture& capture, const Operation& operation, Variable* left,
                             Variable* right) {
  const std::string_view name = operation.name;
  if (Variable* found = left->operate(capture, name, operation.in_place, right)) return found;
  if (name == "mul" && left->constant() && dynamic_cast<DequeVariable*>(right)) {
    return right->operate(capture, name, false, left);
  }
  auto* const list = dynamic_cast<ListVariable*>(left);
  if (list && operation.in_place && name == "add") return list->extend(capture, right), list;
  auto* const a = dynamic_cast<SequenceVariable*>(left);
  auto* const b = dynamic_cast<SequenceVariable*>(right);
  if (name == "add" && !a && left->constant() && b && PyTuple_Check(left->constant())) {
    return binaryOfContainers(capture, operation,
                              capture.make<TupleVariable>(elementsOf(capture, left), &PyTuple_Type),
                              right);
  }
  if (name == "add" && a && !b && right->constant() && PyTuple_Check(right->constant())) {
    return binaryOfContainers(
        capture, operation, left,
        capture.make<TupleVariable>(elementsOf(capture, right), &PyTuple_Type));
  }
  if (name == "add" && a && b) {
    if ((list != nullptr) != (dynamic_cast<ListVariable*>(right) != nullptr)) {
      capture.raise(PyExc_TypeError,
                    list ? fmt::format("can only concatenate list (not \"{}\") to list",
                                       right->type()->tp_name)
                         : fmt::format("can only concatenate tuple (not \"{}\") to tuple",
                                       right->type()->tp_name));
    }
    std::vector<Variable*> all = a->all(capture);
    for (Variable* each : b->all(capture)) all.push_back(each);
    if (list) return capture.make<ListVariable>(std::move(all));
    PyTypeObject* const type =
        capture.world.isSizeType(left->type()) ? left->type() : &PyTuple_Type;
    return capture.make<TupleVariable>(std::move(all), type);
  }
  if (name == "mul" && a && !operation.in_place) return repeated(capture, a, right);
  if (name == "mul" && b && !operation.in_place) return repeated(capture, b, left);
  auto* const dict = dynamic_cast<DictVariable*>(left);
  if (dict && name == "or" && dynamic_cast<DictVariable*>(right)) {
    if (!operation.in_place && (left->type() != right->type() || !dict->copiesItsClass())) {
      breakGraph("dicts of several classes are joined");
    }
    if (operation.in_place) return dict->update(capture, {{right}, {}}), dict;
    auto* const made = dynamic_cast<DictVariable*>(callMethod(capture, dict, "copy"));
    return made->update(capture, {{right}, {}}), made;
  }
  if (dynamic_cast<DictView*>(left) || dynamic_cast<DictView*>(right)) {
    breakGraph("an operator on a view of a dict");
  }
  return nullptr;
}

bool isTuplesType(Variable* variable) {
  return dynamic_cast<TupleVariable*>(variable) ||
         (variable->constant() && PyTuple_Check(variable->constant()));
}

// Whether an operand holds open sizes, and the operator may leave them open.
bool isOpenOperand(Variable* left, Variable* right) {
  if (!holdsSizes(left) && !holdsSizes(right)) return false;
  return isTensor(left) || isTensor(right) || dynamic_cast<SequenceVariable*>(left) ||
         dynamic_cast<SequenceVariable*>(right);
}

}  // namespace

Variable* binary(Capture& capture, int op, Variable* left, Variable* right) {
  if (op < 0 || static_cast<size_t>(op) >= kOperations.size()) breakGraph("an unknown operator");
  const Operation& operation = kOperations[static_cast<size_t>(op)];
  capture.use(left);
  capture.use(right);
  if (Variable* found = binaryOfSizes(capture, operation.name, left, right)) return found;
  const std::string method = fmt::format("__{}{}__", operation.in_place ? "i" : "", operation.name);
  if (Variable* found = operateOnArrays(capture, method.c_str(), {left, right})) return found;
  const bool open = isOpenOperand(left, right);
  if (!open && left->constant() && right->constant() && !PyType_Check(left->constant())) {
    return capture.concretely([&] {
      return wrapComputed(capture,
                          Object::checked(operation.function(left->constant(), right->constant())));
    });
  }
  if (isInstance(left) || isInstance(right)) {
    return binaryOfInstances(capture, operation, left, right);
  }
  if (isTensor(left) || isTensor(right)) {
    const Object a = capture.argumentFor(left), b = capture.argumentFor(right);
    return capture.computed(method.c_str(), {a.get(), b.get()});
  }
  if (!holdsSizes(left) && left->constant() && PyUnicode_Check(left->constant()) &&
      std::string_view(operation.name) == "mod") {
    const Object values = capture.objectFor(right);
    if (!holdsConstantsOnly(values.get())) breakGraph("text % with values that are not constants");
    return capture.concretely([&] {
      return capture.constant(
          Object::checked(PyNumber_Remainder(left->constant(), values.get())).get());
    });
  }
  if (Variable* found = binaryOfContainers(capture, operation, left, right)) return found;
  breakGraph(fmt::format("{} {} {}", describe(*left), operation.sign, describe(*right)));
}

Variable* unary(Capture& capture, Unary op, Variable* operand) {
  capture.use(operand);
  if (op == Unary::kNot) {
    if (Variable* const found = notNumber(capture, operand)) return found;
    return capture.constantBool(!truthOf(capture, operand));
  }
  using Function = PyObject* (*)(PyObject*);
  const Function function = op == Unary::kPositive   ? PyNumber_Positive
                            : op == Unary::kNegative ? PyNumber_Negative
                                                     : PyNumber_Invert;
  if (op == Unary::kNegative) {
    if (Variable* found = negativeSize(capture, operand)) return found;
  }
  if (PyObject* constant = operand->constant()) {
    return capture.concretely(
        [&] { return wrapComputed(capture, Object::checked(function(constant))); });
  }
  const char* const method = op == Unary::kPositive   ? "__pos__"
                             : op == Unary::kNegative ? "__neg__"
                                                      : "__invert__";
  if (Variable* found = operateOnArrays(capture, method, {operand})) return found;

  if (isTensor(operand)) {
    const Object fake = capture.objectFor(operand);
    return capture.computed(method, {fake.get()});
  }

  if (isInstance(operand)) {
    if (Variable* found = callSpecial(capture, operand, method, {})) return found;
    capture.raise(PyExc_TypeError, fmt::format("bad operand type for unary {}: '{}'",
                                               op == Unary::kPositive   ? "+"
                                               : op == Unary::kNegative ? "-"
                                                                        : "~",
                                               operand->type()->tp_name));
  }
  breakGraph(fmt::format("{} of {}", method, describe(*operand)));
}

// ---- comparisons ----

bool isSame(Capture& capture, Variable* left, Variable* right) {
  capture.use(left);
  capture.use(right);
  if (left == right) return true;
  if (dynamic_cast<TensorVariable*>(left) && dynamic_cast<TensorVariable*>(right)) {
    checkIdentity(*left);
    checkIdentity(*right);
  }
  // An open size is an int, an element a float or a bool.
  for (Variable* each : {left, right}) {
    const Variable* const other = each == left ? right : left;
    if (dynamic_cast<SizeVariable*>(each) && other->type() != &PyLong_Type) return false;
    if (dynamic_cast<NumberVariable*>(each) && other->type() != each->type()) return false;
  }
  PyObject *const a = left->constant(), *const b = right->constant();
  if (a && b) {
    // Small ints and interned texts are one object; others may be or not.
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (isConstantType(Py_TYPE(a)) || PyTuple_Check(a) || isArrayNumber(a)) {
      const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
      if (equal < 0) PyErr_Clear();
      if (equal != 0) breakGraph("the identity of two equal constants");
    }
    return false;
  }
  if (a || b) return false;
  if (!left->source || !right->source) return false;
  // A tuple may be found in two places.
  const bool same = left->object && left->object.get() == right->object.get();
  capture.guardSame(left, right, same);
  return same;
}

namespace {

constexpr const char* kComparisons[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
constexpr const char* kSigns[] = {"<", "<=", "==", "!=", ">", ">="};
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

bool isDefault(Variable* variable, int op) {
  const Object text = Object::checked(PyUnicode_InternFromString(kComparisons[op]));
  return specialMethod(*variable, kComparisons[op]) == findTypeItem(&PyBaseObject_Type, text.get());
}

Variable* compareInstances(Capture& capture, int op, Variable* left, Variable* right) {
  const bool right_first = left->type() != right->type() &&
                           PyType_IsSubtype(right->type(), left->type()) && !isDefault(right, op);
  const auto ask = [&](Variable* of, int as, Variable* other) -> Variable* {
    auto *const dict = dynamic_cast<DictVariable*>(of), *const other_dict =
                                                            dynamic_cast<DictVariable*>(other);
    if (!isInstance(of) && dict && other_dict && (as == Py_EQ || as == Py_NE)) {
      return compareDicts(capture, as, dict, other_dict);
    }
    if (!isInstance(of) || isDefault(of, as)) return nullptr;
    Variable* const found = callSpecial(capture, of, kComparisons[as], {other});
    return isAbsent(capture, found) ? nullptr : found;
  };
  if (right_first) {
    if (Variable* found = ask(right, kSwapped[op], left)) return found;
  }
  if (Variable* found = ask(left, op, right)) return found;
  if (isTensor(left) || isTensor(right)) breakGraph("a comparison of a tensor with an object");
  if (!right_first) {
    if (Variable* found = ask(right, kSwapped[op], left)) return found;
  }
  // By default != is the opposite of ==.
  if (op == Py_NE && isDefault(left, op) && !isDefault(left, Py_EQ)) {
    if (Variable* found = ask(left, Py_EQ, right)) {
      return capture.constantBool(!truthOf(capture, found));
    }
  }
  if (op == Py_EQ) return capture.constantBool(isSame(capture, left, right));
  if (op == Py_NE) return capture.constantBool(!isSame(capture, left, right));
  capture.raise(PyExc_TypeError,
                fmt::format("'{}' not supported between instances of '{}' and '{}'", kSigns[op],
                            left->type()->tp_name, right->type()->tp_name));
}

Variable* compareSequences(Capture& capture, int op, const std::vector<Variable*>& left,
                           const std::vector<Variable*>& right) {
  size_t i = 0;
  for (; i < left.size() && i < right.size(); ++i) {
    if (!isEqual(capture, left[i], right[i])) break;
  }
  if (i >= left.size() || i >= right.size()) {
    const Object a = Object::checked(PyLong_FromSize_t(left.size())),
                 b = Object::checked(PyLong_FromSize_t(right.size()));
    return capture.constant(Object::checked(PyObject_RichCompare(a.get(), b.get(), op)).get());
  }
  if (op == Py_EQ) return capture.constantBool(false);
  if (op == Py_NE) return capture.constantBool(true);
  return compare(capture, op, left[i], right[i]);
}

}  // namespace

Variable* compareDicts(Capture& capture, int op, DictVariable* left, DictVariable* right) {
  bool same = left->DictVariable::length(capture) == right->DictVariable::length(capture);
  if (same) {
    for (const auto& [key, value] : left->items(capture)) {
      Variable* const other = right->find(capture, right->keyOf(capture, key).get());
      same = other && isEqual(capture, value, other);
      if (!same) break;
    }
  }
  if (same && left->isOrdered() && right->isOrdered()) {
    const auto a = left->items(capture), b = right->items(capture);
    for (size_t i = 0; i < a.size() && same; ++i) same = isEqual(capture, a[i].first, b[i].first);
  }
  return capture.constantBool(same == (op == Py_EQ));
}

namespace {

// The elements of a set or of the keys of a dict, if all are constants; null for others.
Object elementsOfSet(Capture& capture, Variable* variable) {
  if (auto* set = dynamic_cast<SetVariable*>(variable)) return Object::share(set->keys());
  if (!dynamic_cast<DictView*>(variable) || variable->type() == &PyDictValues_Type) return {};
  Object made = Object::checked(PySet_New(nullptr));
  for (Variable* each : elementsOf(capture, variable)) {
    const Object object = capture.objectFor(each);
    if (!isConstant(object.get())) {
      breakGraph("a view of a dict with values that are not constants");
    }
    if (PySet_Add(made.get(), object.get()) < 0) throw PythonError();
  }
  return made;
}

}  // namespace

Variable* compare(Capture& capture, int op, Variable* left, Variable* right) {
  capture.use(left);
  capture.use(right);
  if (Variable* found = compareSizes(capture, op, left, right)) return found;
  if (Variable* found = compareNumbers(capture, op, left, right)) return found;
  if (Variable* found = operateOnArrays(capture, kComparisons[op], {left, right})) return found;
  const bool open = isOpenOperand(left, right);
  if (!open && left->constant() && right->constant()) {
    if (PyTuple_Check(left->constant()) && holdsNan(left->constant()) &&
        holdsNan(right->constant())) {
      breakGraph("the identity of two NaN");
    }
    return capture.concretely([&] {
      return wrapComputed(
          capture, Object::checked(PyObject_RichCompare(left->constant(), right->constant(), op)));
    });
  }
  for (Variable* each : {left, right}) {
    // Constants that are equal may be one object or not.
    auto* const id = dynamic_cast<IdVariable*>(each);
    const bool known = left == right || dynamic_cast<IdVariable*>(each == left ? right : left);
    if (id && (!known || (left != right && id->of()->constant()))) breakGraph("the value of id()");
  }
  if (isInstance(left) || isInstance(right)) return compareInstances(capture, op, left, right);
  if (isTensor(left) || isTensor(right)) {
    const Object a = capture.argumentFor(left), b = capture.argumentFor(right);
    static constexpr const char* kNames[] = {"__lt__", "__le__", "__eq__",
                                             "__ne__", "__gt__", "__ge__"};
    return capture.computed(kNames[op], {a.get(), b.get()});
  }
  const bool lists = (dynamic_cast<ListVariable*>(left) && dynamic_cast<ListVariable*>(right)) ||
                     (dynamic_cast<DequeVariable*>(left) && dynamic_cast<DequeVariable*>(right));
  if (lists || (isTuplesType(left) && isTuplesType(right))) {
    return compareSequences(capture, op, elementsOf(capture, left), elementsOf(capture, right));
  }
  auto *const left_dict = dynamic_cast<DictVariable*>(left), *const right_dict =
                                                                 dynamic_cast<DictVariable*>(right);
  const bool equality = op == Py_EQ || op == Py_NE;
  if (left_dict && right_dict && equality) return compareDicts(capture, op, left_dict, right_dict);
  const Object left_set = elementsOfSet(capture, left), right_set = elementsOfSet(capture, right);
  if (left_set && right_set) {
    return capture.concretely([&] {
      return wrapComputed(
          capture, Object::checked(PyObject_RichCompare(left_set.get(), right_set.get(), op)));
    });
  }
  auto *const left_method = dynamic_cast<MethodVariable*>(left), *const right_method =
                                                                     dynamic_cast<MethodVariable*>(
                                                                         right);
  if (equality && left_method && right_method) {
    const bool same = isSame(capture, left_method->self(), right_method->self()) &&
                      isSame(capture, left_method->function(), right_method->function());
    return capture.constantBool(same == (op == Py_EQ));
  }
  const bool opaque = dynamic_cast<OpaqueVariable*>(left) || dynamic_cast<OpaqueVariable*>(right);
  if (equality && !opaque) {
    // Objects of different kinds are equal only if they are the same.
    return capture.constantBool(isSame(capture, left, right) == (op == Py_EQ));
  }
  if (opaque)
    breakGraph(fmt::format("a comparison of {} and {}", describe(*left), describe(*right)));
  capture.raise(PyExc_TypeError,
                fmt::format("'{}' not supported between instances of '{}' and '{}'", kSigns[op],
                            left->type()->tp_name, right->type()->tp_name));
}

bool truthOf(Capture& capture, Variable* variable) {
  return capture.use(variable)->truth(capture);
}

// ---- containers ----

int64_t lengthOf(Capture& capture, Variable* variable) {
  return capture.use(variable)->length(capture);
}

Variable* getItem(Capture& capture, Variable* container, Variable* key) {
  capture.use(container);
  capture.use(key);
  if (isTensor(key) && container->constant() == nullptr && !isTensor(container)) {
    breakGraph("a tensor as an index of a container");
  }
  return container->item(capture, key);
}

void setItem(Capture& capture, Variable* container, Variable* key, Variable* value) {
  capture.use(container);
  capture.use(key);
  container->setItem(capture, key, value);
}

bool contains(Capture& capture, Variable* container, Variable* element) {
  capture.use(container);
  capture.use(element);
  return container->contains(capture, element);
}

Variable* iterate_(Capture& capture, Variable* iterable) {
  return capture.use(iterable)->iterate(capture);
}

Variable* nextOf(Capture& capture, Variable* iterator) {
  capture.step();
  capture.changeInSide(*iterator);
  return capture.use(iterator)->next(capture);
}

std::vector<Variable*> elementsOf(Capture& capture, Variable* iterable) {
  capture.use(iterable);
  if (auto* sequence = dynamic_cast<SequenceVariable*>(iterable)) return sequence->all(capture);
  std::vector<Variable*> elements;
  Variable* const iterator = iterate_(capture, iterable);
  while (Variable* each = nextOf(capture, iterator)) elements.push_back(each);
  return elements;
}

std::vector<Variable*> sortVariables(Capture& capture, std::vector<Variable*> elements,
                                     Variable* key, bool reverse) {
  const bool keyed = key && capture.use(key)->constant() != Py_None;
  struct Item {
    Variable* key;
    Variable* element;
  };
  std::vector<Item> items;
  for (Variable* each : elements) {
    items.push_back({keyed ? callVariable(capture, key, {{each}, {}}) : each, each});
  }
  // By insertion, which asks `<` alone and keeps the order of equal ones, as Python does.
  if (reverse) std::ranges::reverse(items);
  std::vector<Item> sorted;
  for (const Item& item : items) {
    const auto place = std::upper_bound(
        sorted.begin(), sorted.end(), item, [&](const Item& value, const Item& other) {
          capture.step();
          return truthOf(capture, compare(capture, Py_LT, value.key, other.key));
        });
    sorted.insert(place, item);
  }
  if (reverse) std::ranges::reverse(sorted);
  std::vector<Variable*> result;
  for (const Item& item : sorted) result.push_back(item.element);
  return result;
}

}  // namespace wick::capture
