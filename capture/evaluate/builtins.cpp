#include "capture/evaluate/builtins.h"

#include <fmt/format.h>

#include <unordered_map>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/frame.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/array.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/deque.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/generator.h"
#include "capture/values/identity.h"
#include "capture/values/instance.h"
#include "capture/values/iterators.h"
#include "capture/values/number.h"
#include "capture/values/partial.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"
#include "capture/values/size.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

Variable* first(const Arguments& given) {
  return given.positional[0];
}

// ---- types ----

bool isSubclassOf(Capture& capture, PyTypeObject* type, Variable* of) {
  capture.use(of);
  if (of->constant() && PyTuple_Check(of->constant())) {
    for (Variable* each : elementsOf(capture, of)) {
      if (isSubclassOf(capture, type, each)) return true;
    }
    return false;
  }
  if (auto* tuple = dynamic_cast<TupleVariable*>(of)) {
    for (Variable* each : tuple->all(capture)) {
      if (isSubclassOf(capture, type, each)) return true;
    }
    return false;
  }
  PyObject* const wanted = of->constant() ? of->constant() : of->object.get();
  if (!wanted) breakGraph("isinstance() with a class that is made here");
  if (PyType_Check(wanted) && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(wanted))) {
    return true;
  }
  // Abstract classes and unions ask Python, about classes alone.
  const int found = PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), wanted);
  if (found < 0) {
    PyErr_Clear();
    breakGraph("isinstance() with an object that is no class");
  }
  return found != 0;
}

Variable* isInstance(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  PyTypeObject* const type = capture.use(first(given))->type();
  return capture.constantBool(isSubclassOf(capture, type, given.positional[1]));
}

Variable* isSubclass(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  PyObject* const type = capture.use(first(given))->constant();
  if (!type || !PyType_Check(type)) {
    capture.raise(PyExc_TypeError, "issubclass() arg 1 must be a class");
  }
  return capture.constantBool(
      isSubclassOf(capture, reinterpret_cast<PyTypeObject*>(type), given.positional[1]));
}

Variable* typeOf(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  return capture.pinned(reinterpret_cast<PyObject*>(capture.use(first(given))->type()));
}

Variable* isCallable(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  return capture.constantBool(capture.use(first(given))->type()->tp_call != nullptr);
}

// ---- attributes ----

PyObject* nameOf(Capture& capture, Variable* variable) {
  PyObject* const name = capture.use(variable)->constant();
  if (!name || !PyUnicode_Check(name)) {
    capture.raise(PyExc_TypeError, "attribute name must be string");
  }
  PyObject* interned = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned);
  const Object owned = Object::own(interned);
  return capture.constant(owned.get())->constant();
}

Variable* getAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) == 2) {
    return getAttribute(capture, first(given), nameOf(capture, given.positional[1]));
  }
  if (argumentCount(given) != 3) return nullptr;
  Variable* const found =
      findAttribute(capture, first(given), nameOf(capture, given.positional[1]));
  return found ? found : given.positional[2];
}

Variable* hasAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  return capture.constantBool(
      findAttribute(capture, first(given), nameOf(capture, given.positional[1])) != nullptr);
}

Variable* setAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 3) return nullptr;
  setAttribute(capture, first(given), nameOf(capture, given.positional[1]), given.positional[2]);
  return capture.constant(Py_None);
}

Variable* delAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  setAttribute(capture, first(given), nameOf(capture, given.positional[1]), nullptr);
  return capture.constant(Py_None);
}

Variable* plainSetAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 3) return nullptr;
  auto* const instance = capture.as<InstanceVariable>(first(given));
  if (!instance) return nullptr;
  instance->setPlainly(capture, nameOf(capture, given.positional[1]), given.positional[2]);
  return capture.constant(Py_None);
}

Variable* plainDelAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  auto* const instance = capture.as<InstanceVariable>(first(given));
  if (!instance) return nullptr;
  instance->setPlainly(capture, nameOf(capture, given.positional[1]), nullptr);
  return capture.constant(Py_None);
}

Variable* plainGetAttr(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2 || !capture.as<InstanceVariable>(first(given))) return nullptr;
  return getPlainly(capture, first(given), nameOf(capture, given.positional[1]));
}

Variable* plainNew(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  auto* const type = capture.as<ClassVariable>(first(given));
  if (!type) return nullptr;
  PyTypeObject* const made = type->classObject();
  if (!(made->tp_flags & Py_TPFLAGS_HEAPTYPE) && made != &PyBaseObject_Type) return nullptr;
  if (made->tp_base && !(made->tp_base->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
      made->tp_base != &PyBaseObject_Type) {
    return nullptr;
  }
  return capture.make<InstanceVariable>(made);
}

Variable* plainInit(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  auto* const exception = capture.as<ExceptionVariable>(first(given));
  if (exception && given.keywords.empty()) {
    exception->args.assign(given.positional.begin() + 1, given.positional.end());
  } else if (exception || argumentCount(given) != 1) {
    return nullptr;
  }
  return capture.constant(Py_None);
}

Variable* objectInit(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  return capture.constant(Py_None);
}

Variable* propertyInit(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  return capture.as<PropertyVariable>(first(given)) ? capture.constant(Py_None) : nullptr;
}

Variable* superOf(Capture& capture, const Arguments& given) {
  PyTypeObject* after = nullptr;
  Variable* self = nullptr;
  if (argumentCount(given) == 2) {
    auto* const type = capture.as<ClassVariable>(first(given));
    if (!type) return nullptr;
    after = type->classObject();
    self = given.positional[1];
  } else if (argumentCount(given) == 0) {
    EvalFrame* const frame = capture.frame;
    if (!frame) return nullptr;
    after = frame->classOfMethod(capture);
    self = frame->firstArgument(capture);
  }
  if (!after || !self) return nullptr;
  capture.use(self);
  if (auto* type = dynamic_cast<ClassVariable*>(self)) {
    if (PyType_IsSubtype(type->classObject(), after)) {
      return capture.make<SuperVariable>(after, self, type->classObject());
    }
  }
  if (!PyType_IsSubtype(self->type(), after)) {
    capture.raise(PyExc_TypeError, "super(type, obj): obj must be an instance or subtype of type");
  }
  return capture.make<SuperVariable>(after, self, self->type());
}

// ---- containers ----

Variable* len(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  if (auto* tensor = capture.as<TensorVariable>(first(given))) return tensor->firstSize(capture);
  return capture.constantLong(lengthOf(capture, first(given)));
}

Variable* list(Capture& capture, const Arguments& given) {
  if (argumentCount(given) > 1) return nullptr;
  return capture.make<ListVariable>(given.positional.empty() ? std::vector<Variable*>{}
                                                             : elementsOf(capture, first(given)));
}

Variable* tuple(Capture& capture, const Arguments& given) {
  if (argumentCount(given) > 1) return nullptr;
  if (given.positional.empty()) return capture.constant(Object::checked(PyTuple_New(0)).get());
  auto* const same = capture.as<TupleVariable>(first(given));
  if (same && same->type() == &PyTuple_Type) return same;
  return capture.make<TupleVariable>(elementsOf(capture, first(given)), &PyTuple_Type);
}

Variable* tupleNew(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  auto* const type = capture.as<ClassVariable>(first(given));
  if (!type || !isPlainTuple(type->classObject())) return nullptr;
  return capture.make<TupleVariable>(elementsOf(capture, given.positional[1]), type->classObject());
}

template <PyTypeObject* kType>
Variable* dict(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 1) return nullptr;
  auto* const made = capture.make<DictVariable>(kType);
  made->update(capture, given);
  return made;
}

Variable* dictFromKeys(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2 && argumentCount(given) != 3) return nullptr;
  auto* const type = capture.as<ClassVariable>(first(given));
  if (!type || type->classObject() != &PyDict_Type) return nullptr;
  auto* const made = capture.make<DictVariable>(&PyDict_Type);
  Variable* const value =
      argumentCount(given) == 3 ? given.positional[2] : capture.constant(Py_None);
  for (Variable* each : elementsOf(capture, given.positional[1]))
    made->setItem(capture, each, value);
  return made;
}

// dict.__new__, which ignores the arguments behind the class.
Variable* dictNew(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  auto* const type = capture.as<ClassVariable>(first(given));
  if (!type) return nullptr;
  if (type->classObject() == &PyDict_Type) return capture.make<DictVariable>(&PyDict_Type);
  if (!isDerivedDict(type->classObject())) return nullptr;
  return capture.make<DerivedDictVariable>(type->classObject());
}

Variable* setOf(Capture& capture, const Arguments& given, bool frozen) {
  if (argumentCount(given) > 1) return nullptr;
  if (frozen && !given.positional.empty() &&
      capture.use(first(given))->type() == &PyFrozenSet_Type) {
    return first(given);
  }
  return capture.make<SetVariable>(
      capture, frozen ? &PyFrozenSet_Type : &PySet_Type,
      given.positional.empty() ? std::vector<Variable*>{} : elementsOf(capture, first(given)));
}

Variable* set(Capture& capture, const Arguments& given) {
  return setOf(capture, given, false);
}
Variable* frozenSet(Capture& capture, const Arguments& given) {
  return setOf(capture, given, true);
}

// ---- iteration ----

using Kind = CombinedIterator::Kind;

std::vector<Variable*> iterators(Capture& capture, const std::vector<Variable*>& iterables) {
  std::vector<Variable*> made;
  for (Variable* each : iterables) made.push_back(iterate_(capture, each));
  return made;
}

Variable* iter(Capture& capture, const Arguments& given) {
  return argumentCount(given) == 1 ? iterate_(capture, first(given)) : nullptr;
}

Variable* next(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1 && argumentCount(given) != 2) return nullptr;
  if (Variable* found = nextOf(capture, first(given))) return found;
  if (argumentCount(given) == 2) return given.positional[1];
  std::vector<Variable*> args;
  if (auto* generator = dynamic_cast<GeneratorVariable*>(first(given))) {
    if (generator->result && capture.use(generator->result)->constant() != Py_None) {
      args.push_back(generator->result);
    }
  }
  capture.raiseWith(PyExc_StopIteration, std::move(args));
}

Variable* zip(Capture& capture, const Arguments& given) {
  if (!onlyKeywords(given, {"strict"})) return nullptr;
  Variable* const strict = keyword(given, "strict");
  return capture.make<CombinedIterator>(Kind::kZip, iterators(capture, given.positional), nullptr,
                                        strict && truthOf(capture, strict));
}

Variable* enumerate(Capture& capture, const Arguments& given) {
  if (!onlyKeywords(given, {"start"}) || given.positional.empty() || given.positional.size() > 2) {
    return nullptr;
  }
  Variable* start = keyword(given, "start");
  if (given.positional.size() == 2) start = given.positional[1];
  auto* const made =
      capture.make<CombinedIterator>(Kind::kEnumerate, iterators(capture, {first(given)}));
  if (start) {
    PyObject* const number = capture.use(start)->constant();
    if (!number || !PyLong_Check(number)) return nullptr;
    made->count = PyLong_AsLongLong(number);
    if (PyErr_Occurred()) PyErr_Clear(), breakGraph("enumerate() from a huge number");
  }
  return made;
}

Variable* map(Capture& capture, const Arguments& given) {
  if (argumentCount(given) == SIZE_MAX || argumentCount(given) < 2) return nullptr;
  return capture.make<CombinedIterator>(
      Kind::kMap, iterators(capture, {given.positional.begin() + 1, given.positional.end()}),
      first(given));
}

Variable* filter(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  return capture.make<CombinedIterator>(Kind::kFilter, iterators(capture, {given.positional[1]}),
                                        first(given));
}

Variable* reversed(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  capture.use(first(given));
  if (auto* sequence = dynamic_cast<SequenceVariable*>(first(given))) {
    return capture.make<SequenceIterator>(sequence, true);
  }
  if (PyObject* constant = first(given)->constant()) {
    return capture.concretely([&] {
      const Object made = Object::checked(
          PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyReversed_Type), constant));
      return capture.make<ConstantIterator>(Object::checked(PyObject_GetIter(made.get())));
    });
  }
  if (auto* deque = dynamic_cast<DequeVariable*>(first(given))) return deque->reversed(capture);
  if (dynamic_cast<DerivedDictVariable*>(first(given))) {
    return callMethod(capture, first(given), "__reversed__");
  }
  std::vector<Variable*> elements;
  if (dynamic_cast<DictVariable*>(first(given)) || dynamic_cast<DictView*>(first(given))) {
    elements = elementsOf(capture, first(given));
  } else if (dynamic_cast<InstanceVariable*>(first(given)) ||
             dynamic_cast<TensorVariable*>(first(given))) {
    return callMethod(capture, first(given), "__reversed__");
  } else {
    return nullptr;
  }
  return capture.make<SequenceIterator>(
      capture.make<ListVariable>(std::vector<Variable*>(elements.rbegin(), elements.rend())));
}

Variable* sorted(Capture& capture, const Arguments& given) {
  if (given.positional.size() != 1 || !onlyKeywords(given, {"key", "reverse"})) return nullptr;
  Variable* const reverse = keyword(given, "reverse");
  return capture.make<ListVariable>(sortVariables(capture, elementsOf(capture, first(given)),
                                                  keyword(given, "key"),
                                                  reverse && truthOf(capture, reverse)));
}

Variable* sum(Capture& capture, const Arguments& given) {
  if (given.positional.empty() || !onlyKeywords(given, {"start"})) return nullptr;
  Variable* total = keyword(given, "start");
  if (given.positional.size() == 2) total = given.positional[1];
  if (!total) total = capture.constantLong(0);
  constexpr int kAdd = 0;
  for (Variable* each : elementsOf(capture, first(given)))
    total = binary(capture, kAdd, total, each);
  return total;
}

Variable* all(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  Variable* const iterator = iterate_(capture, first(given));
  while (Variable* each = nextOf(capture, iterator)) {
    if (!truthOf(capture, each)) return capture.constantBool(false);
  }
  return capture.constantBool(true);
}

Variable* any(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  Variable* const iterator = iterate_(capture, first(given));
  while (Variable* each = nextOf(capture, iterator)) {
    if (truthOf(capture, each)) return capture.constantBool(true);
  }
  return capture.constantBool(false);
}

Variable* extreme(Capture& capture, const Arguments& given, int op) {
  if (given.positional.empty() || !onlyKeywords(given, {"key", "default"})) return nullptr;
  const std::vector<Variable*> elements =
      given.positional.size() == 1 ? elementsOf(capture, first(given)) : given.positional;
  Variable* const key = keyword(given, "key");
  if (elements.empty()) {
    if (Variable* otherwise = keyword(given, "default")) return otherwise;
    capture.raise(PyExc_ValueError,
                  fmt::format("{}() arg is an empty sequence", op == Py_LT ? "min" : "max"));
  }
  Variable *best = nullptr, *best_key = nullptr;
  for (Variable* each : elements) {
    Variable* const own = key && capture.use(key)->constant() != Py_None
                              ? callVariable(capture, key, {{each}, {}})
                              : each;
    if (best && !truthOf(capture, compare(capture, op, own, best_key))) continue;
    best = each;
    best_key = own;
  }
  return best;
}

Variable* min(Capture& capture, const Arguments& given) {
  return extreme(capture, given, Py_LT);
}
Variable* max(Capture& capture, const Arguments& given) {
  return extreme(capture, given, Py_GT);
}

// ---- values ----

Variable* boolean(Capture& capture, const Arguments& given) {
  if (argumentCount(given) > 1) return nullptr;
  if (given.positional.size() == 1) {
    if (Variable* const found = truthIn(capture, capture.use(first(given)))) return found;
  }
  return capture.constantBool(!given.positional.empty() && truthOf(capture, first(given)));
}

template <PyTypeObject* kType>
Variable* numberOf(Capture& capture, const Arguments& given) {
  for (Variable* each : given.positional) {
    if (TensorVariable* const element = tensorOfTruth(capture.use(each))) each = element;
    if (!capture.as<TensorVariable>(each)) continue;
    Variable* const found = argumentCount(given) == 1 ? numberIn(capture, each) : nullptr;
    const bool open = dynamic_cast<SizeVariable*>(found) || dynamic_cast<NumberVariable*>(found);
    if (!found || (open && kType != found->type())) {
      breakGraph("the value of a tensor as a number");
    }
    if (open) return found;
    return callConcretely(capture, reinterpret_cast<PyObject*>(kType), {{found}, {}});
  }
  const bool alone = given.positional.size() == 1 && given.keywords.empty();
  if (alone && kType == &PyLong_Type && dynamic_cast<SizeVariable*>(first(given))) {
    return first(given);
  }
  if (alone && dynamic_cast<NumberVariable*>(first(given)) && kType == first(given)->type()) {
    return first(given);
  }
  if (given.positional.size() == 1 && dynamic_cast<InstanceVariable*>(first(given))) {
    return callMethod(capture, first(given), kType == &PyLong_Type ? "__int__" : "__float__");
  }
  return callConcretely(capture, reinterpret_cast<PyObject*>(kType), given);
}

Variable* text(Capture& capture, const Arguments& given) {
  if (argumentCount(given) == 0) return capture.constantText("");
  if (argumentCount(given) != 1)
    return callConcretely(capture, reinterpret_cast<PyObject*>(&PyUnicode_Type), given);
  return formatted(capture, first(given), 1, nullptr);
}

Variable* repr(Capture& capture, const Arguments& given) {
  return argumentCount(given) == 1 ? formatted(capture, first(given), 2, nullptr) : nullptr;
}

Variable* absolute(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  Variable* const operand = capture.use(first(given));
  if (auto* tensor = dynamic_cast<TensorVariable*>(operand)) {
    return capture.computed("__abs__", {tensor->fake()});
  }
  if (dynamic_cast<InstanceVariable*>(operand)) return callMethod(capture, operand, "__abs__");
  return callConcretely(capture, builtinNamed("abs"), given);
}

Variable* powerOf(Capture& capture, const Arguments& given) {
  constexpr int kPower = 8;
  if (argumentCount(given) == 2) return binary(capture, kPower, first(given), given.positional[1]);
  return callConcretely(capture, builtinNamed("pow"), given);
}

Variable* divided(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  constexpr int kFloorDivide = 2, kRemainder = 6;
  std::vector<Variable*> both{binary(capture, kFloorDivide, first(given), given.positional[1]),
                              binary(capture, kRemainder, first(given), given.positional[1])};
  return capture.make<TupleVariable>(std::move(both), &PyTuple_Type);
}

// Builtins that compute a constant of constants.
template <const char* kName>
Variable* pure(Capture& capture, const Arguments& given) {
  return callConcretely(capture, builtinNamed(kName), given);
}
constexpr char kRound[] = "round", kChr[] = "chr", kOrd[] = "ord", kHash[] = "hash",
               kRange[] = "range", kSlice[] = "slice", kComplex[] = "complex", kBytes[] = "bytes",
               kHex[] = "hex", kBin[] = "bin", kOct[] = "oct", kFormat[] = "format",
               kAscii[] = "ascii";

Variable* hashOf(Capture& capture, const Arguments& given) {
  if (argumentCount(given) == 1 && dynamic_cast<InstanceVariable*>(capture.use(first(given)))) {
    return callMethod(capture, first(given), "__hash__");
  }
  return pure<kHash>(capture, given);
}

Variable* identityOf(Capture& capture, const Arguments& given) {
  return argumentCount(given) == 1 ? idOf(capture, first(given)) : nullptr;
}

Variable* attributesOf(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 1) return nullptr;
  if (!capture.as<InstanceVariable>(first(given)) &&
      !dynamic_cast<DerivedDictVariable*>(first(given))) {
    return nullptr;
  }
  const Object name = Object::checked(PyUnicode_InternFromString("__dict__"));
  return getAttribute(capture, first(given), name.get());
}

// sys.exc_info()
Variable* handledException(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 0) return nullptr;
  Variable* const none = capture.constant(Py_None);
  std::vector<Variable*> parts{none, none, none};
  if (Variable* const exception = capture.handled) {
    parts = {capture.pinned(reinterpret_cast<PyObject*>(exception->type())), exception,
             capture.make<TracebackVariable>(exception)};
  } else {
    // A caller that is not captured may handle one.
    if (Object::own(PyErr_GetHandledException())) breakGraph("the caller handles an exception");
    capture.guards.add(capture.guards.root(Access::kFunction),
                       {Check::Kind::kHandlesNone, {}, 0, {}});
  }
  return capture.make<TupleVariable>(std::move(parts), &PyTuple_Type);
}

Variable* methodOf(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  Variable* const function = capture.use(first(given));
  if (!function->type()->tp_call || given.positional[1]->constant() == Py_None) return nullptr;
  return capture.make<MethodVariable>(function, given.positional[1]);
}

Variable* reduce(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2 && argumentCount(given) != 3) return nullptr;
  Variable* const iterator = iterate_(capture, given.positional[1]);
  Variable* total = argumentCount(given) == 3 ? given.positional[2] : nextOf(capture, iterator);
  if (!total) capture.raise(PyExc_TypeError, "reduce() of empty iterable with no initial value");
  while (Variable* each = nextOf(capture, iterator)) {
    total = callVariable(capture, first(given), {{total, each}, {}});
  }
  return total;
}

Variable* partial(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  Variable* const function = capture.use(first(given));
  const Arguments rest{{given.positional.begin() + 1, given.positional.end()}, given.keywords};
  // The class makes one of two.
  auto* const inner = dynamic_cast<PartialVariable*>(function);
  return inner ? inner->extended(capture, rest) : capture.make<PartialVariable>(function, rest);
}

Handlers makeHandlers() {
  struct Named {
    const char* name;
    Handler handler;
  };
  static constexpr Named kNamed[] = {
      {"isinstance", isInstance},
      {"issubclass", isSubclass},
      {"type", typeOf},
      {"callable", isCallable},
      {"getattr", getAttr},
      {"hasattr", hasAttr},
      {"setattr", setAttr},
      {"delattr", delAttr},
      {"super", superOf},
      {"len", len},
      {"list", list},
      {"tuple", tuple},
      {"dict", dict<&PyDict_Type>},
      {"set", set},
      {"frozenset", frozenSet},
      {"iter", iter},
      {"next", next},
      {"zip", zip},
      {"enumerate", enumerate},
      {"map", map},
      {"filter", filter},
      {"reversed", reversed},
      {"sorted", sorted},
      {"sum", sum},
      {"all", all},
      {"any", any},
      {"min", min},
      {"max", max},
      {"bool", boolean},
      {"int", numberOf<&PyLong_Type>},
      {"float", numberOf<&PyFloat_Type>},
      {"str", text},
      {"repr", repr},
      {"abs", absolute},
      {"pow", powerOf},
      {"divmod", divided},
      {"round", pure<kRound>},
      {"chr", pure<kChr>},
      {"ord", pure<kOrd>},
      {"hash", hashOf},
      {"id", identityOf},
      {"vars", attributesOf},
      {"range", pure<kRange>},
      {"slice", pure<kSlice>},
      {"complex", pure<kComplex>},
      {"bytes", pure<kBytes>},
      {"hex", pure<kHex>},
      {"bin", pure<kBin>},
      {"oct", pure<kOct>},
      {"format", pure<kFormat>},
      {"ascii", pure<kAscii>},
  };
  Handlers handlers;
  for (const auto& [name, handler] : kNamed) handlers[builtinNamed(name)] = handler;
  addMethod(handlers, &PyBaseObject_Type, "__setattr__", plainSetAttr);
  addMethod(handlers, &PyBaseObject_Type, "__delattr__", plainDelAttr);
  addMethod(handlers, &PyBaseObject_Type, "__getattribute__", plainGetAttr);
  addMethod(handlers, &PyBaseObject_Type, "__init__", objectInit);
  addMethod(handlers, &PyBaseObject_Type, "__new__", plainNew);
  addMethod(handlers, &PyProperty_Type, "__init__", propertyInit);
  addMethod(handlers, &PyTuple_Type, "__new__", tupleNew);
  addMethod(handlers, &PyDict_Type, "fromkeys", dictFromKeys);
  addMethod(handlers, &PyDict_Type, "__new__", dictNew);
  auto* const exception = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  addMethod(handlers, exception, "__init__", plainInit);
  addMethod(handlers, reinterpret_cast<PyTypeObject*>(PyExc_Exception), "__init__", plainInit);
  handlers[reinterpret_cast<PyObject*>(&PyODict_Type)] = dict<&PyODict_Type>;
  addIterators(handlers);
  addOperatorFunctions(handlers);
  addCollections(handlers);
  addHeaps(handlers);
  addFrom(handlers, "sys", "exc_info", handledException);
  addFrom(handlers, "types", "MethodType", methodOf);
  addFrom(handlers, "_functools", "reduce", reduce);
  addFrom(handlers, "functools", "partial", partial);
  return handlers;
}

}  // namespace

Variable* callBuiltin(Capture& capture, PyObject* function, const Arguments& given) {
  static const Handlers& handlers = *new Handlers(makeHandlers());
  const auto found = handlers.find(function);
  if (found == handlers.end()) return callPure(capture, function, given);
  return found->second(capture, given);
}

}  // namespace wick::capture
