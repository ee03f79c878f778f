#include "capture/evaluate/capture.h"

#include <fmt/format.h>

#include <limits>

#include "capture/bytecode/cached_call.h"
#include "capture/bytecode/instance.h"
#include "capture/compiled_call.h"
#include "capture/evaluate/protocol.h"
#include "capture/guards/numpy.h"
#include "capture/values/array.h"
#include "capture/values/builtin.h"
#include "capture/values/cached_function.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/deque.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/getter.h"
#include "capture/values/instance.h"
#include "capture/values/module.h"
#include "capture/values/partial.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"
#include "capture/values/size.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr int64_t kMaxSteps = 2'000'000;
constexpr int kMaxSourceDepth = 200;
constexpr const char* kDictBeside = "the __dict__ of an object is used beside the object";

bool isCallableInC(PyObject* object) {
  return PyCFunction_Check(object) || PyObject_TypeCheck(object, &PyMethodDescr_Type) ||
         PyObject_TypeCheck(object, &PyWrapperDescr_Type) ||
         PyObject_TypeCheck(object, &PyClassMethodDescr_Type) ||
         Py_TYPE(object) == &_PyMethodWrapper_Type;
}

// Whether instances of the class can be evaluated: their layout is that of `object`, with a dict or
// slots, or that of an exception.
bool isPlainClass(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  for (PyTypeObject* base = type; base; base = base->tp_base) {
    if (base == &PyBaseObject_Type) return true;
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
    // A class that C code made has members that nobody here knows.
    if (base->tp_new != type->tp_new && base->tp_new != PyBaseObject_Type.tp_new &&
        !base->tp_dict) {
      return false;
    }
  }
  return false;
}

}  // namespace

Capture::Capture(const World& world, const FrameRoots& roots, const SizeSettings& settings)
    : world(world), roots(roots), recording(world.record()), settings_(settings) {
  if (settings.arrays_elsewhere) recording->preferOtherWorld();
  if (!settings.decided) guards.sizes().forbidDecided();
  if (settings.guesses) guards.sizes().allowGuesses();
  if (settings.asks_all) guards.sizes().askAll();
  if (settings.guesses_all) guards.sizes().guessAll();
  const bool again = !settings.examples.empty();
  guards.sizes().useHints(again ? settings.examples : settings.hints);
  if (again || !settings.hints.empty()) guards.sizes().trustHints();
}

Capture::~Capture() = default;

bool Capture::mayExpect() const {
  constexpr int kMost = 256;
  // Within a branch only one of the sides would have to keep to it.
  return settings_.expects && open_branches.empty() && num_expected_ < kMost;
}

void Capture::expect(TensorVariable& condition, bool truth) {
  recording->expect(condition.fake(), truth);
  ++num_expected_;
}

// ---- making variables ----

Variable* Capture::makeFor(Source* source, PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  const auto own = [&] { return Object::share(object); };
  if (isOpenInteger(source, object)) return make<SizeVariable>(*this, own());
  if (isConstant(object) && !PyTuple_CheckExact(object)) {
    return make<ConstantVariable>(own(), false);
  }
  if (world.isTensor(object)) return make<TensorVariable>(own());
  if (isArray(object)) return make<ArrayVariable>(own());
  if (isArrayNumber(object)) return make<ConstantVariable>(own(), false);
  if (isArrayDType(object)) return make<ConstantVariable>(own(), true);
  if (isUniversalFunction(object)) return make<BuiltinVariable>(own());
  if (world.isConstant(object)) return make<ConstantVariable>(own(), true);
  if (PyTuple_Check(object) && (type == &PyTuple_Type || isPlainTuple(type))) {
    if (source || !isConstant(object)) return make<TupleVariable>(own(), type);
    return make<ConstantVariable>(own(), false);
  }
  if (PyList_CheckExact(object)) return make<ListVariable>(own());
  if (isDerivedDict(type)) return make<DerivedDictVariable>(own());
  if (PyDict_Check(object) && behavesAsDict(type))
    return make<DictVariable>(own(), Access::kDictItem);
  if (PyAnySet_CheckExact(object)) return make<SetVariable>(own());
  if (type == DequeVariable::dequeType()) return make<DequeVariable>(own());
  if (PyFunction_Check(object)) return make<FunctionVariable>(own());
  if (PyMethod_Check(object)) return make<MethodVariable>(own());
  if (PyCell_Check(object)) return make<CellVariable>(own());
  if (PyModule_Check(object)) return make<ModuleVariable>(own());
  if (PyType_Check(object)) return make<ClassVariable>(own());
  if (isEnum(type) || PyCode_Check(object)) return make<ConstantVariable>(own(), true);
  if (world.calleeOf(object) != Callee::kUnknown || isCallableInC(object)) {
    return make<BuiltinVariable>(own());
  }
  if (type == cachedCallType()) return make<CachedFunctionVariable>(own());
  if (type == PartialVariable::partialType()) return make<PartialVariable>(own());
  for (const auto kind : {GetterVariable::Kind::kItem, GetterVariable::Kind::kAttribute,
                          GetterVariable::Kind::kMethod}) {
    if (type == GetterVariable::typeOf(kind)) return make<GetterVariable>(kind, own());
  }
  if (isPlainClass(type)) return make<InstanceVariable>(own());
  return make<OpaqueVariable>(own());
}

Variable* Capture::read(Source* source, PyObject* object) {
  if (source && source->depth() > kMaxSourceDepth) breakGraph("an object lies too deep");
  const bool shared = !isConstant(object) && !world.isConstant(object);
  if (instance_dicts_.count(object) != 0) breakGraph(kDictBeside);
  if (shared) {
    if (const auto known = known_.find(object); known != known_.end()) {
      Variable* const found = known->second;
      if (source && found->source && source != found->source) {
        // Both places must lead to one object from now on.
        if (source->access == Access::kPinned) {
          guards.add(found->source, {Check::Kind::kIdentity, Object::share(object), 0, {}});
        } else if (found->source->access == Access::kPinned) {
          guards.add(source, {Check::Kind::kIdentity, Object::share(object), 0, {}});
        } else {
          guards.addPair(source, found->source, true);
        }
      }
      return found;
    }
  }
  Variable* const made = makeFor(source, object);
  made->source = source;
  if (!made->object) made->object = Object::share(object);
  if (shared) {
    known_[object] = made;
    known_order_.push_back(made);
  }
  return made;
}

DictVariable* Capture::attributesOf(Variable* holder) {
  if (PyObject* dict = madeInstanceDict(holder->object.get())) {
    if (known_.count(dict) != 0) breakGraph(kDictBeside);
    instance_dicts_.insert(dict);
  }
  return make<DictVariable>(holder->object, Access::kInstanceItem, holder);
}

Variable* Capture::readChild(Variable* parent, Access access, int64_t index, PyObject* key,
                             PyObject* object) {
  if (!parent->source) return read(nullptr, object);
  Source* const source = guards.child(parent->source, access, index, key);
  guards.add(source, {Check::Kind::kPresent, {}, 0, {}});
  return read(source, object);
}

Variable* Capture::constant(PyObject* object) {
  if (isConstant(object)) return make<ConstantVariable>(Object::share(object), false);
  return pinned(object);
}

Variable* Capture::constantLong(int64_t number) {
  return constant(Object::checked(PyLong_FromLongLong(number)).get());
}

Variable* Capture::constantBool(bool value) {
  return constant(value ? Py_True : Py_False);
}

Variable* Capture::constantText(const char* text) {
  return constant(Object::checked(PyUnicode_FromString(text)).get());
}

Variable* Capture::pinned(PyObject* object) {
  if (isConstant(object)) return make<ConstantVariable>(Object::share(object), false);
  return read(guards.root(Access::kPinned, 0, object), object);
}

Variable* Capture::result(Object object) {
  PyObject* const at = object.get();
  if (recording->isFake(at)) {
    if (const auto known = fakes_.find(at); known != fakes_.end()) return known->second;
    kept_.push_back(object);
    auto* const made = make<TensorVariable>(object, recording->typeOf(at));
    made->used = true;
    return fakes_[at] = made;
  }
  if (const auto size = recording->sizeOf(at)) return sizeVariable(*size);
  if (isConstant(at)) return make<ConstantVariable>(std::move(object), false);
  if (isArrayNumber(at)) return make<ConstantVariable>(std::move(object), false);
  if (world.isConstant(at)) return make<ConstantVariable>(std::move(object), true);
  if (PyTuple_Check(at) || PyList_CheckExact(at)) {
    std::vector<Variable*> elements;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(at); ++i) {
      elements.push_back(result(Object::share(PySequence_Fast_GET_ITEM(at, i))));
    }
    if (PyList_CheckExact(at)) return make<ListVariable>(std::move(elements));
    return make<TupleVariable>(std::move(elements), Py_TYPE(at));
  }
  return pinned(at);
}

TensorVariable* Capture::standFor(Object fake, TensorVariable* variable) {
  PyObject* const at = keep(std::move(fake));
  return fakes_[at] = variable, variable;
}

Variable* Capture::computed(const char* function, const std::vector<PyObject*>& arguments) {
  return recorded(operatorFunction(function).get(), arguments);
}

Variable* Capture::attributeOf(Variable* tensor, PyObject* fake, PyObject* name) {
  if (part >= Part::kReentrant && (is(name, "requires_grad") || is(name, "is_leaf"))) {
    breakGraph(
        fmt::format("'{}' of a tensor in a derivative or a checkpoint", PyUnicode_AsUTF8(name)));
  }
  Object found = recording->attribute(fake, name);
  PyObject* const function =
      PyMethod_Check(found.get()) ? PyMethod_GET_FUNCTION(found.get()) : nullptr;
  if (function && PyObject_TypeCheck(function, &PyMethodDescr_Type)) {
    return make<BoundVariable>(tensor, Object::share(name), Object::share(function));
  }
  if (function) {
    return make<MethodVariable>(pinned(function), tensor);
  }
  if (PyCFunction_Check(found.get())) {
    PyObject* const method = findTypeItem(tensor->type(), name);
    if (!method) breakGraph("a method that no class has");
    return make<BoundVariable>(tensor, Object::share(name), Object::share(method));
  }
  return result(std::move(found));
}

// ---- using them ----

Variable* Capture::use(Variable* variable) {
  if (variable->used) return variable;
  variable->used = true;
  variable->guard(*this);
  return variable;
}

void Capture::guardType(Source* source, PyTypeObject* type) {
  const bool heap = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
  const int64_t version = heap ? typeVersion(type) : 0;
  if (heap && version == 0)
    breakGraph(fmt::format("the class {} was changed too often", type->tp_name));
  Object object = Object::share(reinterpret_cast<PyObject*>(type));
  if (source) {
    guards.add(source, {Check::Kind::kType, std::move(object), version, {}});
  } else {
    Source* const at = guards.root(Access::kPinned, 0, object.get());
    guards.add(at, {Check::Kind::kIdentity, object, version, {}});
  }
}

void Capture::changeInSide(const Variable& variable) const {
  if (sides_since < 0 || isMadeInSide(variable)) return;
  const char* const what = part == Part::kOrdinary     ? "a branch on the value of a tensor: a side"
                           : part == Part::kDerivative ? "a derivative"
                                                       : "a checkpoint";
  breakGraph(fmt::format("{} changes {}", what, describe(variable)));
}

void Capture::checkLasting(const Variable& holder, const Variable& found) const {
  if (part != Part::kDerivative || isMadeInSide(holder)) return;
  const PyTypeObject* const type = found.type();
  if (type->tp_call || type == &PyModule_Type) return;
  breakGraph(
      fmt::format("a derivative reads {}, which may be another one when it runs", describe(found)));
}

void Capture::modify(Variable* variable) {
  changeInSide(*variable);
  if (variable->modified) return;
  variable->modified = true;
  if (variable->object && variable->source) modified_.push_back(variable);
  if (dynamic_cast<DictVariable*>(variable) && variable->object && !variable->source) {
    modified_.push_back(variable);  // the attributes of an instance
  }
}

void Capture::guardSame(Variable* a, Variable* b, bool same) {
  if (a->source && b->source && a->source != b->source) guards.addPair(a->source, b->source, same);
}

// ---- exceptions of the program ----

void Capture::raiseWith(PyObject* type, std::vector<Variable*> arguments) {
  throw Raised{
      make<ExceptionVariable>(reinterpret_cast<PyTypeObject*>(type), std::move(arguments))};
}

void Capture::raise(PyObject* type, const std::string& message) {
  raiseWith(type,
            {constant(Object::checked(PyUnicode_FromStringAndSize(
                                          message.data(), static_cast<Py_ssize_t>(message.size())))
                          .get())});
}

void Capture::raiseCurrent() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Object kind = Object::own(type), exception = Object::own(value),
               trace = Object::own(traceback);
  if (!exception) breakGraph("an exception without a value");
  if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_Exception)) {
    // Interrupts and exits are no part of the program.
    PyErr_Restore(Py_NewRef(kind.get()), Py_NewRef(exception.get()), nullptr);
    throw PythonError();
  }
  const Object arguments = Object::checked(PyObject_GetAttrString(exception.get(), "args"));
  if (!isConstant(arguments.get())) breakGraph("an exception with arguments that are no constants");
  std::vector<Variable*> args;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments.get()); ++i) {
    args.push_back(constant(PyTuple_GET_ITEM(arguments.get(), i)));
  }
  raiseWith(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), std::move(args));
}

// ---- tensors ----

bool Capture::isOpen(const std::string& source, PyObject* tensor, size_t dim,
                     const std::vector<int64_t>& sizes) const {
  if (!settings_.examples.empty()) return settings_.symbols.count({source, dim}) != 0;
  // Other rules hold for sizes of 0 and 1.
  if (settings_.mode == OpenSizes::kNever || sizes[dim] < 2) return false;
  if (settings_.closed.count({source, dim}) != 0) return false;
  if (const auto mark = markOf(tensor, dim)) return *mark;
  if (world.isParameter(tensor)) return false;
  if (settings_.mode == OpenSizes::kAlways) return true;
  return settings_.history && settings_.history->differs(source, dim, sizes);
}

namespace {

// Stands for the dimension in the place of an int.
constexpr size_t kNoDim = std::numeric_limits<size_t>::max();

// Returns the value of an int, 0 for those that are no sizes.
int64_t sizeIn(PyObject* number) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow != 0 || value < 0 || value > kMost ? 0 : value;
}

}  // namespace

bool Capture::isOpenInteger(Source* source, PyObject* number) const {
  if (!source || source->access != Access::kSlot || !PyLong_CheckExact(number)) return false;
  const SizePlace place{source->text(), kNoDim};
  if (!settings_.examples.empty()) return settings_.symbols.count(place) != 0;
  const int64_t value = sizeIn(number);
  if (settings_.mode == OpenSizes::kNever || value < 2 || settings_.closed.count(place) != 0) {
    return false;
  }
  return settings_.history && settings_.history->differs(place.first, 0, {value});
}

SizeExpression Capture::openInteger(Source* source, PyObject* number) {
  noteInteger(source, number);
  const SizePlace place{source->text(), kNoDim};
  const int symbol = symbolFor(place, sizeIn(number));
  open_places_[place] = symbol;
  guards.add(source,
             {Check::Kind::kType, Object::share(reinterpret_cast<PyObject*>(&PyLong_Type)), 0, {}});
  guards.addOpenSize(source, nullptr, 0, symbol);
  return guards.sizes().symbol(symbol);
}

void Capture::noteInteger(Source* source, PyObject* number) {
  input_sizes_.emplace_back(source->text(), std::vector<int64_t>{sizeIn(number)});
}

int Capture::symbolFor(const SizePlace& place, int64_t size) {
  SizeTable& table = guards.sizes();
  const int next = table.numSymbols();
  if (!settings_.examples.empty()) {
    const int symbol = settings_.symbols.at(place);
    if (symbol > next) breakGraph("sizes in another order than before");
    if (symbol == next) table.addSymbol(settings_.examples[static_cast<size_t>(symbol)]);
  } else {
    // Equal sizes are supposed to be equal in other calls as well.
    const auto [known, added] = symbol_of_size_.try_emplace(size, next);
    if (!added) return known->second;
    table.addSymbol(size);
  }
  if (table.numSymbols() > next) {
    table.name(next, place.second == kNoDim
                         ? place.first
                         : fmt::format("{}.shape[{}]", place.first, place.second));
    return next;
  }
  return settings_.symbols.at(place);
}

InputSizes Capture::inputSizesOf(Source* source, PyObject* tensor) {
  const std::vector<int64_t> sizes = world.sizesOf(tensor);
  const std::string text = source->text();
  input_sizes_.emplace_back(text, sizes);
  InputSizes made{&guards.sizes(), {}, sizes};
  for (size_t i = 0; i < sizes.size(); ++i) {
    made.symbols.push_back(-1);
    if (source->access == Access::kPinned || !isOpen(text, tensor, i, sizes)) continue;
    const int symbol = symbolFor({text, i}, sizes[i]);
    open_places_[{text, i}] = symbol;
    made.symbols[i] = symbol;
    graph_symbols_.insert(symbol);
    made.examples[i] = guards.sizes().hintOf(symbol);
  }
  return made;
}

Object Capture::addInput(Source* source, PyObject* tensor) {
  const InputSizes sizes = inputSizesOf(source, tensor);
  const std::shared_ptr<const TensorGuard> guard = world.guardFor(tensor, sizes);
  guards.add(source, {Check::Kind::kTensor, {}, 0, guard});
  guards.keep(source);
  for (size_t i = 0; i < sizes.symbols.size(); ++i) {
    if (sizes.isOpen(i)) {
      guards.addOpenSize(source, guard, static_cast<int>(i), sizes.symbols[i]);
    }
  }
  inputs_.push_back(source);
  Object fake = recording->addInput(tensor, sizes);
  kept_.push_back(fake);
  fakes_[fake.get()] = known_.at(tensor);
  return fake;
}

TensorVariable* Capture::addArray(Source* source, PyObject* array) {
  const std::shared_ptr<const TensorGuard> guard = arrayGuard(array);
  Object tensor;
  try {
    tensor = recording->world().tensorOn(array);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw;
    PyErr_Clear();
    breakGraph("an array on whose memory there is no tensor");
  }
  InputSizes sizes{&guards.sizes(), {}, world.sizesOf(tensor.get()), true};
  sizes.symbols.assign(sizes.examples.size(), -1);
  guards.add(source, {Check::Kind::kTensor, {}, 0, guard});
  guards.keep(source);
  inputs_.push_back(source);
  arrays_.insert(source);
  Object fake = recording->addInput(tensor.get(), sizes);
  auto* const made = make<TensorVariable>(fake, recording->typeOf(fake.get()));
  made->used = true;
  return standFor(std::move(fake), made);
}

Object Capture::numberFor(const SizeExpression& expression) {
  SizeTable& sizes = guards.sizes();
  // The graph knows the sizes of its tensors alone.
  for (const int symbol : sizes.symbolsIn(expression)) {
    if (!sizes.isDecided(symbol) && graph_symbols_.count(symbol) == 0) sizes.fixSymbol(symbol);
  }
  const SizeExpression simple = sizes.simplified(expression);
  if (const auto number = numberIn(simple)) {
    return Object::checked(PyLong_FromLongLong(*number));
  }
  return recording->numberFor(simple);
}

Variable* Capture::sizeVariable(const SizeExpression& expression) {
  const SizeExpression simple = guards.sizes().simplified(expression);
  if (const auto number = numberIn(simple)) return constantLong(*number);
  auto* const made = make<SizeVariable>(*this, simple);
  made->used = true;
  return made;
}

bool Capture::mustRunPlainly(FunctionVariable& function) {
  return isDisabled(function.code());
}

void Capture::step() {
  if (++steps_ > kMaxSteps) {
    breakGraph(fmt::format("more than {} instructions in one graph", kMaxSteps));
  }
}

}  // namespace wick::capture
