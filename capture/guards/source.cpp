#include "capture/guards/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "capture/bytecode/cached_call.h"
#include "capture/bytecode/instance.h"
#include "capture/guards/check.h"

namespace wick::capture {
namespace {

// Returns str(object) or repr(object) for messages; never raises.
std::string shown(PyObject* object, bool quoted) {
  if (!object) return "?";
  const Object text = Object::own(quoted ? PyObject_Repr(object) : PyObject_Str(object));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) {
    PyErr_Clear();
    return "?";
  }
  return utf8;
}

Object shareOrNull(PyObject* object) {
  return object ? Object::share(object) : Object();
}

PyObject* dictItem(PyObject* dict, PyObject* key) {
  if (!dict || !PyDict_Check(dict)) return nullptr;
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (!found) PyErr_Clear();
  return found;
}

Object member(PyObject* object, PyObject* name) {
  Object found = Object::own(PyObject_GenericGetAttr(object, name));
  if (!found) PyErr_Clear();
  return found;
}

// A class that C code made: asking it runs no code of Python.
Object dequeItem(PyObject* deque, int64_t index) {
  if (Py_TYPE(deque)->tp_flags & Py_TPFLAGS_HEAPTYPE) return {};
  Object found = Object::own(PySequence_GetItem(deque, index));
  if (!found) PyErr_Clear();
  return found;
}

PyObject* functionPart(const Source& source, PyObject* parent) {
  if (!PyFunction_Check(parent)) return nullptr;
  switch (source.access) {
    case Access::kFunctionGlobals:
      return PyFunction_GET_GLOBALS(parent);
    case Access::kFunctionDefault: {
      PyObject* all = PyFunction_GET_DEFAULTS(parent);
      return all && PyTuple_Check(all) && source.index < PyTuple_GET_SIZE(all)
                 ? PyTuple_GET_ITEM(all, source.index)
                 : nullptr;
    }
    case Access::kFunctionKeywordDefault:
      return dictItem(PyFunction_GET_KW_DEFAULTS(parent), source.key.get());
    default: {
      PyObject* all = PyFunction_GET_CLOSURE(parent);
      return all && source.index < PyTuple_GET_SIZE(all) ? PyTuple_GET_ITEM(all, source.index)
                                                         : nullptr;
    }
  }
}

PyObject* borrowed(const Source& source, PyObject* parent) {
  switch (source.access) {
    case Access::kInstanceItem:
      return findInstanceItem(parent, source.key.get());
    case Access::kTypeItem:
      return PyType_Check(parent)
                 ? findTypeItem(reinterpret_cast<PyTypeObject*>(parent), source.key.get())
                 : nullptr;
    case Access::kListItem:
      return PyList_Check(parent) && source.index < PyList_GET_SIZE(parent)
                 ? PyList_GET_ITEM(parent, source.index)
                 : nullptr;
    case Access::kTupleItem:
      return PyTuple_Check(parent) && source.index < PyTuple_GET_SIZE(parent)
                 ? PyTuple_GET_ITEM(parent, source.index)
                 : nullptr;
    case Access::kDictItem:
      return dictItem(parent, source.key.get());
    case Access::kCellContents:
      return PyCell_Check(parent) ? PyCell_GET(parent) : nullptr;
    case Access::kMethodSelf:
      return PyMethod_Check(parent) ? PyMethod_GET_SELF(parent) : nullptr;
    case Access::kMethodFunction:
      return PyMethod_Check(parent) ? PyMethod_GET_FUNCTION(parent) : nullptr;
    case Access::kKept:
      return Py_TYPE(parent) == cachedCallType() ? keptResult(parent, source.key.get()) : nullptr;
    default:
      return functionPart(source, parent);
  }
}

bool sameCheck(const Check& a, const Check& b) {
  return a.kind == b.kind && a.object.get() == b.object.get() && a.number == b.number &&
         a.tensor == b.tensor;
}

}  // namespace

Object fetch(const Source& source, PyObject* parent, const FrameRoots& roots) {
  switch (source.access) {
    case Access::kSlot:
      return shareOrNull(roots.slots[source.index]);
    case Access::kFunction:
      return shareOrNull(roots.function);
    case Access::kGlobals:
      return shareOrNull(roots.globals);
    case Access::kBuiltins:
      return shareOrNull(roots.builtins);
    case Access::kPinned:
      return source.key;
    case Access::kMember:
      return member(parent, source.key.get());
    case Access::kDequeItem:
      return dequeItem(parent, source.index);
    default:
      return shareOrNull(borrowed(source, parent));
  }
}

std::string Source::text() const {
  const std::string of = parent ? parent->text() : "";
  switch (access) {
    case Access::kSlot:
      return shown(key.get(), false);
    case Access::kFunction:
      return "<function>";
    case Access::kGlobals:
      return "globals()";
    case Access::kBuiltins:
      return "builtins";
    case Access::kPinned:
      if (PyType_Check(key.get())) return reinterpret_cast<PyTypeObject*>(key.get())->tp_name;
      return fmt::format("<{} object>", Py_TYPE(key.get())->tp_name);
    case Access::kInstanceItem:
    case Access::kMember:
    case Access::kTypeItem:
      return of + "." + shown(key.get(), false);
    case Access::kListItem:
    case Access::kTupleItem:
    case Access::kDequeItem:
      return fmt::format("{}[{}]", of, index);
    case Access::kDictItem:
      return fmt::format("{}[{}]", of, shown(key.get(), true));
    case Access::kCellContents:
      return of + ".cell_contents";
    case Access::kFunctionGlobals:
      return of + ".__globals__";
    case Access::kFunctionDefault:
      return fmt::format("{}.__defaults__[{}]", of, index);
    case Access::kFunctionKeywordDefault:
      return fmt::format("{}.__kwdefaults__[{}]", of, shown(key.get(), true));
    case Access::kFunctionClosure:
      return fmt::format("{}.__closure__[{}]", of, index);
    case Access::kMethodSelf:
      return of + ".__self__";
    case Access::kMethodFunction:
      return of + ".__func__";
    case Access::kKept:
      return fmt::format("{}.cache[{}]", of, shown(key.get(), true));
  }
  return of;
}

namespace {

size_t mixed(size_t seed, size_t more) {
  constexpr size_t kGolden = 0x9e3779b97f4a7c15;
  return seed ^ (more + kGolden + (seed << 6) + (seed >> 2));
}

template <class T>
size_t hashOf(const T& value) {
  return std::hash<T>()(value);
}

// Equal for keys that sameKey() calls the same. Only the class counts for tuples, floats and their
// like.
size_t hashOfKey(PyObject* key) {
  if (!key) return 0;
  if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyBytes_CheckExact(key)) {
    return static_cast<size_t>(PyObject_Hash(key));
  }
  for (const PyTypeObject* type :
       {&PyFloat_Type, &PyComplex_Type, &PyTuple_Type, &PySlice_Type, &PyRange_Type}) {
    if (Py_TYPE(key) == type) return hashOf(type);
  }
  return hashOf(key);
}

size_t hashOfWay(const Source* parent, Access access, int64_t index, PyObject* key) {
  const size_t of_key = access == Access::kPinned ? hashOf(key) : parent ? hashOfKey(key) : 0;
  return mixed(mixed(mixed(hashOf(parent), static_cast<size_t>(access)), hashOf(index)), of_key);
}

}  // namespace

// Names of slots do not count: the index tells them apart.
Source* GuardTree::find(Source* parent, Access access, int64_t index, PyObject* key) const {
  const auto [begin, end] = sources_by_hash_.equal_range(hashOfWay(parent, access, index, key));
  for (auto at = begin; at != end; ++at) {
    Source* const each = at->second;
    if (each->parent != parent || each->access != access || each->index != index) continue;
    if (access == Access::kPinned ? each->key.get() != key
                                  : parent && !sameKey(each->key.get(), key)) {
      continue;
    }
    return each;
  }
  return nullptr;
}

Source* GuardTree::make(Source* parent, Access access, int64_t index, PyObject* key) {
  Source& made = sources_.emplace_back();
  made.access = access;
  made.parent = parent;
  made.index = index;
  made.key = shareOrNull(key);
  sources_by_hash_.emplace(hashOfWay(parent, access, index, key), &made);
  (parent ? parent->children : roots_).push_back(&made);
  return &made;
}

Source* GuardTree::root(Access access, int64_t index, PyObject* key) {
  Source* const found = find(nullptr, access, index, key);
  return found ? found : make(nullptr, access, index, key);
}

Source* GuardTree::child(Source* parent, Access access, int64_t index, PyObject* key) {
  Source* const found = find(parent, access, index, key);
  return found ? found : make(parent, access, index, key);
}

void GuardTree::add(Source* source, Check check) {
  const size_t hash = mixed(
      mixed(mixed(hashOf(source), static_cast<size_t>(check.kind)), hashOf(check.object.get())),
      hashOf(check.number));
  const auto [begin, end] = checks_by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const auto& [of, index] = at->second;
    if (of == source && sameCheck(of->checks[index], check)) return;
  }
  checks_by_hash_.emplace(hash, std::pair(source, source->checks.size()));
  source->checks.push_back(std::move(check));
}

void GuardTree::addPair(Source* left, Source* right, bool same) {
  pairs_.push_back({keep(left), keep(right), same});
}

void GuardTree::addDistinct(Source* source) {
  if (!std::exchange(source->distinct, true)) distinct_.push_back(keep(source));
}

void GuardTree::addOpenSize(Source* source, std::shared_ptr<const TensorGuard> guard, int dim,
                            int symbol) {
  open_sizes_.push_back({keep(source), source, std::move(guard), dim, symbol});
}

int GuardTree::keepSize(const SizeExpression& expression) {
  for (const auto& [at, known] : kept_sizes_) {
    if (known == expression) return at;
  }
  kept_sizes_.emplace_back(num_registers_, expression);
  return num_registers_++;
}

int GuardTree::keep(Source* source) {
  if (source->keep < 0) source->keep = num_registers_++;
  return source->keep;
}

namespace {
bool isNeeded(const Source& source) {
  return source.keep >= 0 || !source.checks.empty() || !source.children.empty();
}
void prune(std::vector<Source*>& sources) {
  for (Source* each : sources) prune(each->children);
  std::erase_if(sources, [](const Source* each) { return !isNeeded(*each); });
}
}  // namespace

void GuardTree::finish() {
  sources_by_hash_.clear();
  checks_by_hash_.clear();
  prune(roots_);
}

void GuardTree::take(GuardTree& other) {
  sources_ = std::move(other.sources_);
  roots_ = std::move(other.roots_);
  pairs_ = std::move(other.pairs_);
  distinct_ = std::move(other.distinct_);
  sizes_ = std::move(other.sizes_);
  open_sizes_ = std::move(other.open_sizes_);
  kept_sizes_ = std::move(other.kept_sizes_);
  num_registers_ = other.num_registers_;
}

namespace {

// One walk over the tree.
struct Walk {
  const FrameRoots& roots;
  Object* registers;
  std::string* why;  // the first check that failed, if anybody wants to know

  bool visit(const Source& source, PyObject* parent) const {
    const Object object = fetch(source, parent, roots);
    if (!object) {
      if (why) *why = source.text() + " does not exist";
      return false;
    }
    for (const Check& check : source.checks) {
      if (holds(check, object.get())) continue;
      if (why) *why = "not " + describeCheck(check, source.text());
      return false;
    }
    if (source.keep >= 0) registers[source.keep] = object;
    for (const Source* each : source.children) {
      if (!visit(*each, object.get())) return false;
    }
    return true;
  }
};

}  // namespace

int64_t GuardTree::OpenSize::valueOf(const Object* registers) const {
  PyObject* const object = registers[at].get();
  if (guard) return guard->size(object, dim);
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow != 0 ? -1 : value;
}

std::vector<int64_t> GuardTree::openSizes(const Object* registers) const {
  std::vector<int64_t> sizes(static_cast<size_t>(sizes_.numSymbols()), -1);
  for (int i = 0; i < sizes_.numSymbols(); ++i) {
    if (sizes_.isDecided(i)) sizes[static_cast<size_t>(i)] = sizes_.hintOf(i);
  }
  for (const OpenSize& each : open_sizes_) {
    int64_t& known = sizes[static_cast<size_t>(each.symbol)];
    if (known < 0) known = each.valueOf(registers);
  }
  return sizes;
}

// Checks the open sizes, and fills the registers that expressions of them are kept in.
bool GuardTree::findSizes(Object* registers, std::string* why) const {
  if (open_sizes_.empty()) return true;
  const std::vector<int64_t> sizes = openSizes(registers);
  for (const OpenSize& each : open_sizes_) {
    if (each.valueOf(registers) == sizes[static_cast<size_t>(each.symbol)]) continue;
    if (why) *why = "two sizes differ";
    return false;
  }
  if (!sizes_.matches(sizes)) {
    if (why) *why = "a condition on sizes does not hold";
    return false;
  }
  for (const auto& [at, expression] : kept_sizes_) {
    const std::optional<int64_t> value = sizes_.evaluate(expression, sizes);
    if (value) registers[at] = Object::own(PyLong_FromLongLong(*value));
    if (registers[at]) continue;
    PyErr_Clear();
    if (why) *why = "a size cannot be computed";
    return false;
  }
  return true;
}

bool GuardTree::visitAll(const FrameRoots& roots, Object* registers, std::string* why) const {
  const Walk walk{roots, registers, why};
  for (const Source* each : roots_) {
    if (!walk.visit(*each, nullptr)) return false;
  }
  for (const PairCheck& pair : pairs_) {
    if ((registers[pair.left].get() == registers[pair.right].get()) == pair.same) continue;
    if (why) *why = pair.same ? "two places hold two objects" : "two places hold the same object";
    return false;
  }
  std::vector<PyObject*> objects;
  for (const int at : distinct_) objects.push_back(registers[at].get());
  std::ranges::sort(objects);
  if (std::ranges::adjacent_find(objects) == objects.end()) return findSizes(registers, why);
  if (why) *why = "two keys are the same object";
  return false;
}

bool GuardTree::matches(const FrameRoots& roots, Object* registers) const {
  return visitAll(roots, registers, nullptr);
}

std::string GuardTree::whyNot(const FrameRoots& roots) const {
  std::vector<Object> registers(static_cast<size_t>(num_registers_));
  std::string why;
  visitAll(roots, registers.data(), &why);
  return why;
}

namespace {
void collect(const std::vector<Source*>& sources, std::vector<std::string>& lines) {
  for (const Source* each : sources) {
    for (const Check& check : each->checks) lines.push_back(describeCheck(check, each->text()));
    collect(each->children, lines);
  }
}
}  // namespace

std::vector<std::string> GuardTree::lines() const {
  std::vector<std::string> lines;
  collect(roots_, lines);
  for (const PairCheck& pair : pairs_) {
    lines.push_back(pair.same ? "two places hold the same object" : "two places hold two objects");
  }
  if (distinct_.size() > 1) lines.push_back("all keys are several objects");
  for (std::string& line : sizes_.lines()) lines.push_back(std::move(line));
  for (const OpenSize& each : open_sizes_) {
    const std::string place = each.guard
                                  ? fmt::format("{}.shape[{}]", each.source->text(), each.dim)
                                  : each.source->text();
    const std::string& name = sizes_.nameOf(each.symbol);
    if (place != name) lines.push_back(fmt::format("{} == {}", place, name));
  }
  return lines;
}

int GuardTree::numChecks() const {
  return static_cast<int>(lines().size());
}

}  // namespace wick::capture
