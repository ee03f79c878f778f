// Functions of the standard library, written in C, that have no effects.
#include <string_view>
#include <unordered_map>

#include "capture/evaluate/builtins.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"

namespace wick::capture {
namespace {

// Functions of `operator` that are operators of the language. The number is that of BINARY_OP.
struct BinaryName {
  const char* name;
  int op;
};
constexpr BinaryName kBinary[] = {
    {"add", 0},        {"and_", 1},     {"floordiv", 2}, {"lshift", 3}, {"matmul", 4},
    {"mul", 5},        {"mod", 6},      {"or_", 7},      {"pow", 8},    {"rshift", 9},
    {"sub", 10},       {"truediv", 11}, {"xor", 12},     {"iadd", 13},  {"iand", 14},
    {"ifloordiv", 15}, {"ilshift", 16}, {"imatmul", 17}, {"imul", 18},  {"imod", 19},
    {"ior", 20},       {"ipow", 21},    {"irshift", 22}, {"isub", 23},  {"itruediv", 24},
    {"ixor", 25},
};
constexpr BinaryName kCompare[] = {{"lt", Py_LT}, {"le", Py_LE}, {"eq", Py_EQ},
                                   {"ne", Py_NE}, {"gt", Py_GT}, {"ge", Py_GE}};

struct Known {
  enum class Kind : uint8_t {
    kPure,
    kBinary,
    kCompare,
    kNegative,
    kNot,
    kTruth,
    kGetItem,
    kContains
  };
  Kind kind;
  int op = 0;
};

using Table = std::unordered_map<PyObject*, Known>;

void addPublic(Table& table, PyObject* module) {
  const Object names = Object::checked(PyObject_Dir(module));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* const name = PyList_GET_ITEM(names.get(), i);
    const Object found = Object::checked(PyObject_GetAttr(module, name));
    if (PyCFunction_Check(found.get())) table[found.get()] = {Known::Kind::kPure};
  }
}

Table makePureTable() {
  Table table;
  const Object math = Object::checked(PyImport_ImportModule("math"));
  addPublic(table, math.get());
  for (const char* name : {"bisect_left", "bisect_right"}) {
    table[libraryObject("_bisect", name)] = {Known::Kind::kPure};
  }
  const Object module = Object::checked(PyImport_ImportModule("_operator"));
  const auto add = [&](const char* name, Known known) {
    const Object found = Object::checked(PyObject_GetAttrString(module.get(), name));
    table[found.get()] = known;
  };
  for (const auto& [name, op] : kBinary) add(name, {Known::Kind::kBinary, op});
  for (const auto& [name, op] : kCompare) add(name, {Known::Kind::kCompare, op});
  add("neg", {Known::Kind::kNegative});
  add("not_", {Known::Kind::kNot});
  add("truth", {Known::Kind::kTruth});
  add("getitem", {Known::Kind::kGetItem});
  add("contains", {Known::Kind::kContains});
  add("index", {Known::Kind::kPure});
  return table;
}

Variable* computed(Capture& capture, PyObject* function, const Arguments& given) {
  std::vector<Object> kept;
  std::vector<PyObject*> objects;
  const auto add = [&](Variable* each) {
    kept.push_back(capture.objectFor(each));
    objects.push_back(kept.back().get());
    return holdsConstantsOnly(kept.back().get());
  };
  for (Variable* each : given.positional) {
    if (!add(each)) return nullptr;
  }
  const size_t named = given.keywords.size();
  const Object names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(named)));
  for (size_t i = 0; i < named; ++i) {
    const auto& [name, value] = given.keywords[i];
    if (!add(value)) return nullptr;
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), Py_NewRef(name.get()));
  }
  return capture.concretely([&] {
    return wrapComputed(capture,
                        Object::checked(PyObject_Vectorcall(function, objects.data(),
                                                            objects.size() - named, names.get())));
  });
}

// Returns whether the function is a cache of the module `typing`: List[int] looks into one.
bool isCacheOfTyping(PyObject* function) {
  static PyObject* const kCacheType = libraryObject("functools", "_lru_cache_wrapper");
  if (reinterpret_cast<PyObject*>(Py_TYPE(function)) != kCacheType) return false;
  const Object module = Object::own(PyObject_GetAttrString(function, "__module__"));
  if (!module) PyErr_Clear();
  return module && PyUnicode_Check(module.get()) && is(module.get(), "typing");
}

// Returns the annotation that the function makes of objects that exist.
Variable* annotation(Capture& capture, PyObject* function, const Arguments& given) {
  std::vector<PyObject*> objects;
  for (Variable* each : given.positional) {
    capture.use(each);
    objects.push_back(each->constant() ? each->constant() : each->object.get());
    if (!objects.back()) return nullptr;
  }
  if (!given.keywords.empty()) return nullptr;
  return capture.concretely([&] {
    const Object made =
        Object::checked(PyObject_Vectorcall(function, objects.data(), objects.size(), nullptr));
    return capture.pinned(made.get());
  });
}

}  // namespace

Variable* callPure(Capture& capture, PyObject* function, const Arguments& given) {
  static const Table& table = *new Table(makePureTable());
  const auto found = table.find(function);
  if (found == table.end()) {
    return isCacheOfTyping(function) ? annotation(capture, function, given) : nullptr;
  }
  const size_t count = given.keywords.empty() ? given.positional.size() : 0;
  const auto at = [&](size_t i) { return given.positional[i]; };
  switch (found->second.kind) {
    case Known::Kind::kPure:
      return computed(capture, function, given);
    case Known::Kind::kBinary:
      return count == 2 ? binary(capture, found->second.op, at(0), at(1)) : nullptr;
    case Known::Kind::kCompare:
      return count == 2 ? compare(capture, found->second.op, at(0), at(1)) : nullptr;
    case Known::Kind::kNegative:
      return count == 1 ? unary(capture, Unary::kNegative, at(0)) : nullptr;
    case Known::Kind::kNot:
      return count == 1 ? unary(capture, Unary::kNot, at(0)) : nullptr;
    case Known::Kind::kTruth:
      return count == 1 ? capture.constantBool(truthOf(capture, at(0))) : nullptr;
    case Known::Kind::kGetItem:
      return count == 2 ? getItem(capture, at(0), at(1)) : nullptr;
    case Known::Kind::kContains:
      return count == 2 ? capture.constantBool(contains(capture, at(0), at(1))) : nullptr;
  }
  return nullptr;
}

}  // namespace wick::capture
