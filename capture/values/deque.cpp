#include "capture/values/deque.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

constexpr int64_t kMostElements = 1'000'000;

Object interned(const char* name) {
  return Object::checked(PyUnicode_InternFromString(name));
}

}  // namespace

PyTypeObject* DequeVariable::dequeType() {
  static PyObject* const found = libraryObject("collections", "deque");
  return reinterpret_cast<PyTypeObject*>(found);
}

DequeVariable::DequeVariable(Object existing)
    : found_(Object::checked(PySequence_List(existing.get()))) {
  elements_.resize(static_cast<size_t>(PyList_GET_SIZE(found_.get())));
  object = std::move(existing);
}

DequeVariable::DequeVariable(std::vector<Variable*> elements, int64_t most)
    : elements_(std::move(elements)), most_(most) {
  if (most_ >= 0 && size() > most_) elements_.erase(elements_.begin(), elements_.end() - most_);
}

void DequeVariable::guard(Capture& capture) {
  if (!object) return;
  if (source) {
    Object type = Object::share(reinterpret_cast<PyObject*>(dequeType()));
    capture.guards.add(source, {Check::Kind::kType, std::move(type), 0, {}});
    capture.guards.add(source, {Check::Kind::kLength, {}, size(), {}});
  }
  const Object name = interned("maxlen");
  const Object found = Object::checked(PyObject_GenericGetAttr(object.get(), name.get()));
  Variable* const most =
      capture.use(capture.readChild(this, Access::kMember, 0, name.get(), found.get()));
  if (most->constant() != Py_None) most_ = PyLong_AsLongLong(most->constant());
}

// ---- elements ----

Variable* DequeVariable::at(Capture& capture, int64_t index) {
  Variable*& element = elements_[static_cast<size_t>(index)];
  if (!element) {
    element = capture.readChild(this, Access::kDequeItem, index, nullptr,
                                PyList_GET_ITEM(found_.get(), index));
  }
  return element;
}

const std::vector<Variable*>& DequeVariable::all(Capture& capture) {
  capture.use(this);
  for (int64_t i = 0; i < size(); ++i) at(capture, i);
  return elements_;
}

DequeVariable::Elements& DequeVariable::changed(Capture& capture, bool noticed) {
  all(capture);
  capture.modify(this);
  changes_ += noticed;
  return elements_;
}

void DequeVariable::append(Capture& capture, Variable* element, bool left) {
  Elements& elements = changed(capture);
  elements.insert(left ? elements.begin() : elements.end(), element);
  if (most_ < 0 || size() <= most_) return;
  elements.erase(left ? elements.end() - 1 : elements.begin());
}

void DequeVariable::extend(Capture& capture, Variable* iterable, bool left) {
  if (capture.use(iterable) == this) {
    const Elements copy = all(capture);
    for (Variable* each : copy) append(capture, each, left);
    return;
  }
  Variable* const iterator = iterate_(capture, iterable);
  while (Variable* each = nextOf(capture, iterator)) append(capture, each, left);
}

void DequeVariable::rotate(Capture& capture, int64_t steps) {
  if (size() <= 1) return;
  Elements& elements = changed(capture);
  const int64_t right = ((steps % size()) + size()) % size();
  std::ranges::rotate(elements, elements.end() - right);
}

Variable* DequeVariable::take(Capture& capture, bool left) {
  if (size() == 0) capture.raise(PyExc_IndexError, "pop from an empty deque");
  Elements& elements = changed(capture);
  Variable* const taken = left ? elements.front() : elements.back();
  elements.erase(left ? elements.begin() : elements.end() - 1);
  return taken;
}

void DequeVariable::insert(Capture& capture, int64_t index, Variable* element) {
  if (size() == most_) {
    capture.raise(PyExc_IndexError, "deque already at its maximum size");
  }
  const int64_t from_start = std::clamp<int64_t>(index < 0 ? index + size() : index, 0, size());
  Elements& elements = changed(capture);
  elements.insert(elements.begin() + from_start, element);
}

int64_t DequeVariable::find(Capture& capture, Variable* element, int64_t begin, int64_t end) {
  const int64_t before = changes_;
  for (int64_t i = begin; i < std::min(end, size()); ++i) {
    const bool equal = isEqual(capture, at(capture, i), element);
    if (changes_ != before) breakGraph("a comparison changes the deque");
    if (equal) return i;
  }
  return -1;
}

bool DequeVariable::contains(Capture& capture, Variable* element) {
  return find(capture, element, 0, size()) >= 0;
}

int64_t DequeVariable::place(Capture& capture, Variable* key) const {
  PyObject* const constant = key->constant();
  if (constant && !PyIndex_Check(constant)) {
    capture.raise(PyExc_TypeError, fmt::format("sequence index must be integer, not '{}'",
                                               Py_TYPE(constant)->tp_name));
  }
  const int64_t found = indexOf(capture, key, size());
  if (found < 0) capture.raise(PyExc_IndexError, "deque index out of range");
  return found;
}

Variable* DequeVariable::item(Capture& capture, Variable* key) {
  return at(capture, place(capture, key));
}

void DequeVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  const int64_t index = place(capture, key);
  Elements& elements = changed(capture, value == nullptr);
  if (value) {
    elements[static_cast<size_t>(index)] = value;
  } else {
    elements.erase(elements.begin() + index);
  }
}

// ---- methods ----

Variable* DequeVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (!is(name, "maxlen")) return nullptr;
  return most_ < 0 ? capture.constant(Py_None) : capture.constantLong(most_);
}

Variable* DequeVariable::index(Capture& capture, const Arguments& given) {
  int64_t bounds[2] = {0, size()};
  for (size_t i = 1; i < given.positional.size(); ++i) {
    PyObject* const number = given.positional[i]->constant();
    if (!number || !PyLong_Check(number)) breakGraph("deque.index() with bounds of another class");
    const int64_t bound = integerOf(capture, given.positional[i]);
    bounds[i - 1] = std::clamp<int64_t>(bound < 0 ? bound + size() : bound, 0, size());
  }
  return capture.constantLong(findOrRaise(capture, given.positional[0], bounds[0], bounds[1]));
}

int64_t DequeVariable::findOrRaise(Capture& capture, Variable* element, int64_t begin,
                                   int64_t end) {
  const int64_t found = find(capture, element, begin, end);
  if (found >= 0) return found;
  Variable* const text = formatted(capture, element, 2, nullptr);
  capture.raise(PyExc_ValueError,
                fmt::format("{} is not in deque", PyUnicode_AsUTF8(text->constant())));
}

Variable* DequeVariable::callMethod(Capture& capture, const std::string& name,
                                    const Arguments& given) {
  const size_t count = given.positional.size();
  const auto none = [&] { return capture.constant(Py_None); };
  const auto first = [&] { return given.positional[0]; };
  if (!given.keywords.empty()) return nullptr;
  if (name == "append" && count == 1) return append(capture, first(), false), none();
  if (name == "appendleft" && count == 1) return append(capture, first(), true), none();
  if (name == "extend" && count == 1) return extend(capture, first(), false), none();
  if (name == "extendleft" && count == 1) return extend(capture, first(), true), none();
  if (name == "pop" && count == 0) return take(capture, false);
  if (name == "popleft" && count == 0) return take(capture, true);
  if (name == "rotate" && count <= 1) {
    return rotate(capture, count == 0 ? 1 : integerOf(capture, first())), none();
  }
  if (name == "insert" && count == 2) {
    return insert(capture, integerOf(capture, first()), given.positional[1]), none();
  }
  if (name == "index" && count >= 1 && count <= 3) return index(capture, given);
  if (name == "remove" && count == 1) {
    const int64_t found = findOrRaise(capture, first(), 0, size());
    Elements& elements = changed(capture);
    elements.erase(elements.begin() + found);
    return none();
  }
  if (name == "count" && count == 1) {
    int64_t found = 0;
    for (int64_t i = 0; i < size(); ++i) found += find(capture, first(), i, i + 1) >= 0;
    return capture.constantLong(found);
  }
  if (count != 0) return nullptr;
  if (name == "clear") {
    if (size() != 0) changed(capture).clear();
    return none();
  }
  if (name == "reverse") {
    std::ranges::reverse(changed(capture, false));
    return none();
  }
  if (name == "copy" || name == "__copy__") {
    return capture.make<DequeVariable>(all(capture), most_);
  }
  return name == "__reversed__" ? reversed(capture) : nullptr;
}

Variable* DequeVariable::repeated(Capture& capture, Variable* count, bool in_place) {
  const int64_t times = std::max<int64_t>(integerOf(capture, count), 0);
  if (in_place && (times == 1 || size() == 0)) return this;
  if (times > 0 && size() > kMostElements / times) breakGraph("a deque of a million elements");
  Elements many;
  const Elements once = all(capture);
  for (int64_t i = 0; i < times; ++i) many.insert(many.end(), once.begin(), once.end());
  auto* const made = capture.make<DequeVariable>(std::move(many), most_);
  if (!in_place) return made;
  changed(capture) = made->elements_;
  return this;
}

Variable* DequeVariable::operate(Capture& capture, std::string_view name, bool in_place,
                                 Variable* right) {
  if (name == "mul") return repeated(capture, right, in_place);
  if (name != "add") return nullptr;
  if (in_place) return extend(capture, right, false), this;
  auto* const other = dynamic_cast<DequeVariable*>(right);
  if (!other) {
    capture.raise(PyExc_TypeError, fmt::format("can only concatenate deque (not \"{}\") to deque",
                                               right->type()->tp_name));
  }
  Elements both = all(capture);
  for (Variable* each : other->all(capture)) both.push_back(each);
  return capture.make<DequeVariable>(std::move(both), most_);
}

// ---- recipes ----

int DequeVariable::build(Builder& builder) {
  const int elements = builder.make(StepKind::kList, builder.buildAll(elements_));
  std::vector<int> parts{builder.constant(reinterpret_cast<PyObject*>(type())), elements};
  if (most_ >= 0) {
    parts.push_back(builder.constant(Object::checked(PyLong_FromLongLong(most_)).get()));
  }
  return builder.make(StepKind::kCall, std::move(parts));
}

void DequeVariable::replay(Capture&, Builder& builder) {
  const int target = builder.build(this);
  const int elements = builder.make(StepKind::kList, builder.buildAll(elements_));
  const auto method = [&](const char* name) {
    return builder.constant(
        Object::checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type()), name)).get());
  };
  builder.make(StepKind::kCall, {method("clear"), target});
  builder.make(StepKind::kCall, {method("extend"), target, elements});
}

// ---- iterators ----

Variable* DequeVariable::iterate(Capture& capture) {
  return capture.make<DequeIterator>(this, false);
}

Variable* DequeVariable::reversed(Capture& capture) {
  return capture.make<DequeIterator>(this, true);
}

DequeIterator::DequeIterator(DequeVariable* deque, bool reversed)
    : deque_(deque), reversed_(reversed), changes_(deque->numChanges()), left_(deque->size()) {}

PyTypeObject* DequeIterator::type() const {
  return reinterpret_cast<PyTypeObject*>(
      libraryObject("_collections", reversed_ ? "_deque_reverse_iterator" : "_deque_iterator"));
}

Variable* DequeIterator::next(Capture& capture) {
  if (deque_->numChanges() != changes_) {
    left_ = 0;
    capture.raise(PyExc_RuntimeError, "deque mutated during iteration");
  }
  if (left_ == 0) return nullptr;
  const int64_t index = reversed_ ? left_ - 1 : deque_->size() - left_;
  --left_;
  return deque_->at(capture, index);
}

}  // namespace wick::capture
