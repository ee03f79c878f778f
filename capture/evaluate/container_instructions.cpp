// Instructions that build, unpack, iterate over and match containers.
#include <fmt/format.h>

#include <algorithm>

#include "capture/bytecode/decode.h"
#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/instructions.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"
#include "capture/values/instance.h"
#include "capture/values/iterators.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"
#include "capture/values/size.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

Variable* makeTuple(EvalFrame& f, std::vector<Variable*> elements) {
  return f.capture.make<TupleVariable>(std::move(elements), &PyTuple_Type);
}

void buildTuple(EvalFrame& f, uint32_t arg) {
  f.push(makeTuple(f, f.popMany(arg)));
}

void buildList(EvalFrame& f, uint32_t arg) {
  f.push(f.capture.make<ListVariable>(f.popMany(arg)));
}

void buildSet(EvalFrame& f, uint32_t arg) {
  auto* const made = f.capture.make<SetVariable>(Object::checked(PySet_New(nullptr)));
  for (Variable* each : f.popMany(arg)) made->add(f.capture, each);
  f.push(made);
}

void buildMap(EvalFrame& f, uint32_t arg) {
  const std::vector<Variable*> parts = f.popMany(size_t{2} * arg);
  auto* const made = f.capture.make<DictVariable>(&PyDict_Type);
  for (size_t i = 0; i < parts.size(); i += 2) made->setItem(f.capture, parts[i], parts[i + 1]);
  f.push(made);
}

void buildConstKeyMap(EvalFrame& f, uint32_t arg) {
  const std::vector<Variable*> keys = elementsOf(f.capture, f.pop());
  const std::vector<Variable*> values = f.popMany(arg);
  if (keys.size() != values.size()) breakGraph("a dict with other keys than values");
  auto* const made = f.capture.make<DictVariable>(&PyDict_Type);
  for (size_t i = 0; i < keys.size(); ++i) made->setItem(f.capture, keys[i], values[i]);
  f.push(made);
}

void buildSlice(EvalFrame& f, uint32_t arg) {
  std::vector<Variable*> parts = f.popMany(arg);
  for (Variable*& each : parts) {
    if (!f.capture.as<TensorVariable>(each)) continue;
    if (Variable* const element = elementOf(f.capture, each)) each = element;
  }
  for (Variable* each : parts) {
    if (!holdsSizes(f.capture.use(each))) continue;
    Variable* const none = f.capture.constant(Py_None);
    f.push(f.capture.make<SliceVariable>(parts[0], parts[1], parts.size() > 2 ? parts[2] : none));
    return;
  }
  PyObject* bounds[3] = {Py_None, Py_None, Py_None};
  for (size_t i = 0; i < parts.size() && i < 3; ++i) {
    bounds[i] = f.capture.use(parts[i])->constant();
    if (!bounds[i]) breakGraph(fmt::format("a slice with {}", describe(*parts[i])));
  }
  f.push(wrapComputed(f.capture, Object::checked(PySlice_New(bounds[0], bounds[1], bounds[2]))));
}

template <class T>
T* containerAt(EvalFrame& f, uint32_t depth) {
  auto* const found = f.capture.as<T>(f.peek(static_cast<int>(depth)));
  if (!found) breakGraph("the container of a comprehension is of another class");
  return found;
}

void listAppend(EvalFrame& f, uint32_t arg) {
  Variable* const element = f.pop();
  containerAt<ListVariable>(f, arg)->append(f.capture, element);
}

void setAdd(EvalFrame& f, uint32_t arg) {
  Variable* const element = f.pop();
  containerAt<SetVariable>(f, arg)->add(f.capture, element);
}

void mapAdd(EvalFrame& f, uint32_t arg) {
  Variable* const value = f.pop();
  Variable* const key = f.pop();
  containerAt<DictVariable>(f, arg)->setItem(f.capture, key, value);
}

void listExtend(EvalFrame& f, uint32_t arg) {
  Variable* const iterable = f.pop();
  containerAt<ListVariable>(f, arg)->extend(f.capture, iterable);
}

void setUpdate(EvalFrame& f, uint32_t arg) {
  Variable* const iterable = f.pop();
  auto* const set = containerAt<SetVariable>(f, arg);
  for (Variable* each : elementsOf(f.capture, iterable)) set->add(f.capture, each);
}

void dictUpdate(EvalFrame& f, uint32_t arg) {
  auto* const other = f.capture.as<DictVariable>(f.pop());
  if (!other) breakGraph("a mapping that is no dict is unpacked");
  containerAt<DictVariable>(f, arg)->update(f.capture, {{other}, {}});
}

void dictMerge(EvalFrame& f, uint32_t arg) {
  auto* const other = f.capture.as<DictVariable>(f.pop());
  if (!other) breakGraph("a mapping that is no dict is unpacked");
  auto* const derived = dynamic_cast<DerivedDictVariable*>(other);
  if (derived && derived->overrides("__iter__")) {
    breakGraph("keyword arguments of a dict whose class has an __iter__ of its own");
  }
  auto* const dict = containerAt<DictVariable>(f, arg);
  for (const auto& [key, value] : other->items(f.capture)) {
    if (dict->find(f.capture, dict->keyOf(f.capture, key).get())) {
      breakGraph("a keyword argument is given twice");
    }
    dict->setItem(f.capture, key, value);
  }
}

void listToTuple(EvalFrame& f, uint32_t) {
  f.push(makeTuple(f, elementsOf(f.capture, f.pop())));
}

// ---- unpacking ----

std::vector<Variable*> unpacked(EvalFrame& f, Variable* iterable) {
  f.capture.use(iterable);
  if (dynamic_cast<InstanceVariable*>(iterable)) {
    const Object iter = Object::checked(PyUnicode_InternFromString("__iter__"));
    if (!findTypeItem(iterable->type(), iter.get())) {
      f.capture.raise(PyExc_TypeError, fmt::format("cannot unpack non-iterable {} object",
                                                   iterable->type()->tp_name));
    }
  }
  if (!iterable->type()->tp_iter && iterable->constant()) {
    f.capture.raise(PyExc_TypeError,
                    fmt::format("cannot unpack non-iterable {} object", iterable->type()->tp_name));
  }
  return elementsOf(f.capture, iterable);
}

void unpackSequence(EvalFrame& f, uint32_t arg) {
  const std::vector<Variable*> elements = unpacked(f, f.pop());
  if (elements.size() > arg) {
    f.capture.raise(PyExc_ValueError, fmt::format("too many values to unpack (expected {})", arg));
  }
  if (elements.size() < arg) {
    f.capture.raise(
        PyExc_ValueError,
        fmt::format("not enough values to unpack (expected {}, got {})", arg, elements.size()));
  }
  for (size_t i = elements.size(); i-- > 0;) f.push(elements[i]);
}

void unpackExtended(EvalFrame& f, uint32_t arg) {
  const size_t before = arg & 0xFF, after = arg >> 8;
  const std::vector<Variable*> elements = unpacked(f, f.pop());
  if (elements.size() < before + after) {
    f.capture.raise(PyExc_ValueError,
                    fmt::format("not enough values to unpack (expected at least {}, got {})",
                                before + after, elements.size()));
  }
  for (size_t i = 0; i < after; ++i) f.push(elements[elements.size() - 1 - i]);
  f.push(f.capture.make<ListVariable>(
      std::vector<Variable*>(elements.begin() + static_cast<ptrdiff_t>(before),
                             elements.end() - static_cast<ptrdiff_t>(after))));
  for (size_t i = before; i-- > 0;) f.push(elements[i]);
}

// ---- iteration ----

// Returns whether the code stores anything, apart from what it calls.
bool stores(const DecodedCode& code) {
  return std::ranges::any_of(code.instructions, [](const Instruction& each) {
    return each.op == Op::STORE_FAST || each.op == Op::STORE_ATTR || each.op == Op::STORE_SUBSCR ||
           each.op == Op::STORE_GLOBAL || each.op == Op::STORE_NAME || each.op == Op::STORE_DEREF;
  });
}

// Returns whether an iterator that was made of the object is known to nobody else.
bool makesIterators(Variable* iterable) {
  if (!dynamic_cast<InstanceVariable*>(iterable)) return true;
  static const Object& kIter = forever(Object::checked(PyUnicode_InternFromString("__iter__")));
  PyObject* const made_by = findTypeItem(iterable->type(), kIter.get());
  return made_by && PyFunction_Check(made_by) &&
         !stores(decode(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(made_by))));
}

void getIter(EvalFrame& f, uint32_t) {
  Variable* const iterable = f.pop();
  const int64_t before = f.capture.numVariables();
  Variable* const made = iterate_(f.capture, iterable);
  auto* const iterator = dynamic_cast<IteratorVariable*>(made);
  if (iterator && iterator->number >= before && makesIterators(iterable)) iterator->of_loop = true;
  f.push(made);
}

// A side of a branch that ends within the loop goes on with an iterator of its own.
void copyIteratorInSide(EvalFrame& f) {
  if (f.capture.sides_since < 0) return;
  auto* const iterator = dynamic_cast<IteratorVariable*>(f.peek(1));
  if (!iterator || !iterator->of_loop || f.capture.isMadeInSide(*iterator)) return;
  IteratorVariable* const own = iterator->copy(f.capture);
  if (!own) return;
  own->of_loop = true;
  f.pop();
  f.push(own);
}

void forIter(EvalFrame& f, uint32_t) {
  copyIteratorInSide(f);
  if (Variable* found = nextOf(f.capture, f.peek(1))) {
    f.push(found);
    return;
  }
  f.pop();
  f.jump();
}

// ---- patterns ----

void getLen(EvalFrame& f, uint32_t) {
  f.push(f.capture.constantLong(lengthOf(f.capture, f.peek(1))));
}

template <unsigned long kFlag>
void matchFlag(EvalFrame& f, uint32_t) {
  const PyTypeObject* const type = f.capture.use(f.peek(1))->type();
  f.push(f.capture.constantBool((type->tp_flags & kFlag) != 0));
}

void matchKeys(EvalFrame& f, uint32_t) {
  auto* const subject = f.capture.as<DictVariable>(f.peek(2));
  if (!subject) breakGraph("a pattern of a mapping that is no dict");
  auto* const derived = dynamic_cast<DerivedDictVariable*>(subject);
  if (derived && derived->overrides("get")) {
    breakGraph("a pattern of a dict whose class has a get() of its own");
  }
  std::vector<Variable*> values;
  for (Variable* key : elementsOf(f.capture, f.peek(1))) {
    Variable* const found = subject->find(f.capture, subject->keyOf(f.capture, key).get());
    if (!found) return f.push(f.capture.constant(Py_None));
    values.push_back(found);
  }
  f.push(makeTuple(f, std::move(values)));
}

// The classes whose only positional pattern is the object itself.
bool matchesItself(PyTypeObject* type) {
#ifdef _Py_TPFLAGS_MATCH_SELF
  return (type->tp_flags & _Py_TPFLAGS_MATCH_SELF) != 0;
#else
  return (type->tp_flags & (1UL << 22)) != 0;
#endif
}

void matchClass(EvalFrame& f, uint32_t arg) {
  const std::vector<Variable*> names = elementsOf(f.capture, f.pop());
  auto* const type = f.capture.as<ClassVariable>(f.pop());
  Variable* const subject = f.capture.use(f.pop());
  if (!type) breakGraph("a class pattern without a class");
  if (!PyType_IsSubtype(subject->type(), type->classObject())) {
    return f.push(f.capture.constant(Py_None));
  }
  std::vector<Variable*> found;
  uint32_t count = arg;
  if (count == 1 && matchesItself(type->classObject())) {
    found.push_back(subject);
    count = 0;
  }
  std::vector<Variable*> attributes;
  if (count > 0) {
    const Object text = Object::checked(PyUnicode_InternFromString("__match_args__"));
    Variable* const listed = findAttribute(f.capture, type, text.get());
    if (!listed) breakGraph("a pattern with more positional parts than the class takes");
    attributes = elementsOf(f.capture, listed);
    if (attributes.size() < count) breakGraph("a pattern with more parts than the class takes");
    attributes.resize(count);
  }
  attributes.insert(attributes.end(), names.begin(), names.end());
  for (Variable* each : attributes) {
    PyObject* const name = f.capture.use(each)->constant();
    if (!name || !PyUnicode_Check(name)) breakGraph("a pattern with a name that is no text");
    Variable* const value = findAttribute(f.capture, subject, name);
    if (!value) return f.push(f.capture.constant(Py_None));
    found.push_back(value);
  }
  f.push(makeTuple(f, std::move(found)));
}

}  // namespace

void addContainerInstructions(InstructionTable& table) {
  const auto set = [&](Op op, InstructionFunction function) {
    table[static_cast<uint8_t>(op)] = function;
  };
  set(Op::BUILD_TUPLE, buildTuple);
  set(Op::BUILD_LIST, buildList);
  set(Op::BUILD_SET, buildSet);
  set(Op::BUILD_MAP, buildMap);
  set(Op::BUILD_CONST_KEY_MAP, buildConstKeyMap);
  set(Op::BUILD_SLICE, buildSlice);
  set(Op::LIST_APPEND, listAppend);
  set(Op::SET_ADD, setAdd);
  set(Op::MAP_ADD, mapAdd);
  set(Op::LIST_EXTEND, listExtend);
  set(Op::SET_UPDATE, setUpdate);
  set(Op::DICT_UPDATE, dictUpdate);
  set(Op::DICT_MERGE, dictMerge);
  set(Op::LIST_TO_TUPLE, listToTuple);
  set(Op::UNPACK_SEQUENCE, unpackSequence);
  set(Op::UNPACK_EX, unpackExtended);
  set(Op::GET_ITER, getIter);
  set(Op::FOR_ITER, forIter);
  set(Op::GET_LEN, getLen);
  set(Op::MATCH_MAPPING, matchFlag<Py_TPFLAGS_MAPPING>);
  set(Op::MATCH_SEQUENCE, matchFlag<Py_TPFLAGS_SEQUENCE>);
  set(Op::MATCH_KEYS, matchKeys);
  set(Op::MATCH_CLASS, matchClass);
}

}  // namespace wick::capture
