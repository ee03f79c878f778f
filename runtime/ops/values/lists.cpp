// Operators on lists. A list's elements are values of one static type; overloads by element type
// exist where equality or order decides.
#include <algorithm>

#include "core/budget.h"
#include "core/memory_limit.h"
#include "core/scalar.h"
#include "runtime/ops/arithmetic.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/values/order.h"

namespace wick::ops {

namespace {

using Values = std::vector<IValue>;

// Asked before a list of `n` elements is made.
void checkRoom(const char* op, size_t n) {
  WICK_CHECK(n <= kMaxListElements, "{}: a list of {} elements is too long", op, n);
  checkAllocation(op, n * sizeof(IValue));
}

Values& valuesOf(const IValue& list) {
  return list.toList().elements;
}

// Appends copies. Millions of elements take long, so the budget is looked at on the way.
void appendCopies(Values& to, Values::const_iterator from, Values::const_iterator end) {
  constexpr int64_t kPiece = 1 << 16;
  while (from != end) {
    if (end - from > kPiece) checkBudget();
    const auto stop = from + std::min<int64_t>(kPiece, end - from);
    to.insert(to.end(), from, stop);
    from = stop;
  }
}

// Index i of a list of n, counted from the end when negative.
size_t wrapIndex(int64_t i, size_t n, const char* op = "list index") {
  int64_t size = static_cast<int64_t>(n);
  if (i < -size || i >= size) {
    throw RuntimeError(fmt::format("{} out of range", op), "IndexError");
  }
  return static_cast<size_t>(i < 0 ? i + size : i);
}

IValue listLike(const IValue& list, Values values) {
  return IValue(makeList(list.toList().element_type, std::move(values)));
}

int64_t length(const IValue& list) {
  return static_cast<int64_t>(valuesOf(list).size());
}
IValue getItem(const IValue& list, int64_t i) {
  const Values& v = valuesOf(list);
  return v[wrapIndex(i, v.size())];
}
IValue setItem(IValue list, int64_t i, IValue element) {
  Values& v = valuesOf(list);
  std::swap(v[wrapIndex(i, v.size())], element);
  return list;
}
void deleteItem(const IValue& list, int64_t i) {
  Values& v = valuesOf(list);
  v.erase(v.begin() + static_cast<int64_t>(wrapIndex(i, v.size())));
}
IValue append(IValue list, IValue element) {
  list.toList().makeRoom("append", 1);
  valuesOf(list).push_back(std::move(element));
  return list;
}
void extend(const IValue& list, const IValue& other) {
  const size_t added = valuesOf(other).size();  // a list may extend itself
  list.toList().makeRoom("extend", added);
  Pace pace;
  for (size_t i = 0; i < added; ++i) {
    pace.step();
    valuesOf(list).push_back(valuesOf(other)[i]);
  }
}
IValue extendInPlace(IValue list, const IValue& other) {
  extend(list, other);
  return list;
}
void insert(const IValue& list, int64_t i, IValue element) {
  list.toList().makeRoom("insert", 1);
  Values& v = valuesOf(list);
  int64_t n = static_cast<int64_t>(v.size());
  int64_t at = std::clamp<int64_t>(i < 0 ? i + n : i, 0, n);
  v.insert(v.begin() + at, std::move(element));
}
IValue pop(const IValue& list, int64_t i) {
  Values& v = valuesOf(list);
  if (v.empty()) throw RuntimeError("pop from empty list", "IndexError");
  auto at = v.begin() + static_cast<int64_t>(wrapIndex(i, v.size(), "pop index"));
  IValue out = std::move(*at);
  v.erase(at);
  return out;
}
void clear(const IValue& list) {
  list.toList().replace({});
}
void reverse(const IValue& list) {
  std::reverse(valuesOf(list).begin(), valuesOf(list).end());
}
IValue copy(const IValue& list) {
  const Values& v = valuesOf(list);
  checkRoom("copy", v.size());
  Values out;
  out.reserve(v.size());
  appendCopies(out, v.begin(), v.end());
  return listLike(list, std::move(out));
}
IValue concat(const IValue& a, const IValue& b) {
  checkRoom("list + list", valuesOf(a).size() + valuesOf(b).size());
  Values out;
  out.reserve(valuesOf(a).size() + valuesOf(b).size());
  appendCopies(out, valuesOf(a).begin(), valuesOf(a).end());
  appendCopies(out, valuesOf(b).begin(), valuesOf(b).end());
  return listLike(a, std::move(out));
}

Values repeated(const Values& v, int64_t n) {
  Values out;
  if (n <= 0 || v.empty()) return out;
  WICK_CHECK(static_cast<size_t>(n) <= kMaxListElements / v.size(),
             "list of {} elements cannot be repeated {} times", v.size(), n);
  checkRoom("list * int", v.size() * static_cast<size_t>(n));
  out.reserve(v.size() * static_cast<size_t>(n));
  Pace pace;
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    appendCopies(out, v.begin(), v.end());
  }
  return out;
}
IValue repeat(const IValue& list, int64_t n) {
  return listLike(list, repeated(valuesOf(list), n));
}
IValue repeatRight(int64_t n, const IValue& list) {
  return repeat(list, n);
}
IValue repeatInPlace(IValue list, int64_t n) {
  list.toList().replace(repeated(valuesOf(list), n));
  return list;
}

IValue slice(const IValue& list, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  const Values& v = valuesOf(list);
  const Slice chosen = sliceOf(static_cast<int64_t>(v.size()), start, end, step);
  checkRoom("slice", chosen.count);
  Values out;
  out.reserve(chosen.count);
  Pace pace;
  for (size_t i = 0; i < chosen.count; ++i) {
    pace.step();
    out.push_back(v[static_cast<size_t>(chosen.at(i))]);
  }
  return listLike(list, std::move(out));
}

// ---- equality ----

bool same(const IValue& a, const IValue& b) {
  thread_local Pace pace;
  pace.step();
  if (a.isTensor() && b.isTensor()) {
    if (a.isSame(b)) return true;
    Tensor equal = ops::eq(a.toTensor(), b.toTensor());
    WICK_CHECK(equal.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
    return equal.item<bool>();
  }
  return a.equals(b);
}

Values::iterator findValue(const IValue& list, const IValue& element) {
  Values& v = valuesOf(list);
  return std::find_if(v.begin(), v.end(), [&](const IValue& e) { return same(e, element); });
}
bool contains(const IValue& list, const IValue& element) {
  return findValue(list, element) != valuesOf(list).end();
}
int64_t indexOf(const IValue& list, const IValue& element) {
  auto at = findValue(list, element);
  if (at == valuesOf(list).end()) {
    throw RuntimeError(fmt::format("{} is not in list", element.shortRepr()), "ValueError");
  }
  return at - valuesOf(list).begin();
}
int64_t countOf(const IValue& list, const IValue& element) {
  const Values& v = valuesOf(list);
  return std::count_if(v.begin(), v.end(), [&](const IValue& e) { return same(e, element); });
}
void removeFrom(const IValue& list, const IValue& element) {
  auto at = findValue(list, element);
  if (at == valuesOf(list).end()) {
    throw RuntimeError("list.remove(x): x not in list", "ValueError");
  }
  valuesOf(list).erase(at);
}
bool listsEqual(const IValue& a, const IValue& b) {
  const Values& x = valuesOf(a);
  const Values& y = valuesOf(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
}
bool listsDiffer(const IValue& a, const IValue& b) {
  return !listsEqual(a, b);
}

// ---- order ----

ListRef sortedList(const IValue& list, bool reverse) {
  const Values& values = valuesOf(list);
  checkAllocation("sort", values.size() * sizeof(IValue));
  ListRef out = makeList(list.toList().element_type, values);
  sortValues(out->elements, reverse);
  return out;
}
void sortList(const IValue& list, bool reverse) {
  list.toList().replace(std::move(sortedList(list, reverse)->elements));
}
void sortAscending(const IValue& list, bool reverse) {
  sortList(list, reverse);
}
IValue sorted(const IValue& list) {
  return IValue(sortedList(list, false));
}

// -1, 0 or 1 by the first elements that differ, then by length.
int compareLists(const Values& a, const Values& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (same(a[i], b[i])) continue;
    return lessThan(a[i], b[i]) ? -1 : 1;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size();
}
IValue largerList(const IValue& a, const IValue& b) {
  return compareLists(valuesOf(a), valuesOf(b)) > 0 ? a : b;
}
IValue smallerList(const IValue& a, const IValue& b) {
  return compareLists(valuesOf(a), valuesOf(b)) < 0 ? a : b;
}

// ---- folds ----

bool isTrue(const IValue& v) {
  if (v.isString()) return !v.toString().empty();
  return v.isComplex() ? v.toComplex() != Complex() : v.numberToDouble() != 0;
}
bool anyTrue(const IValue& list) {
  return std::any_of(valuesOf(list).begin(), valuesOf(list).end(), isTrue);
}
bool allTrue(const IValue& list) {
  return std::all_of(valuesOf(list).begin(), valuesOf(list).end(), isTrue);
}
int64_t sumInts(const IValue& list) {
  int64_t sum = 0;
  Pace pace;
  for (const IValue& v : valuesOf(list)) {
    pace.step();
    sum = wrapAdd(sum, v.numberToInt());
  }
  return sum;
}
double sumFloats(const IValue& list) {
  double sum = 0;
  Pace pace;
  for (const IValue& v : valuesOf(list)) {
    pace.step();
    sum += v.numberToDouble();
  }
  return sum;
}
Complex sumComplexes(const IValue& list) {
  Complex sum;
  Pace pace;
  for (const IValue& v : valuesOf(list)) {
    pace.step();
    sum += v.numberToComplex();
  }
  return sum;
}

DimVector rangeList(int64_t n) {
  WICK_CHECK(n <= static_cast<int64_t>(kMaxListElements), "range({}) is too long for a list", n);
  checkAllocation("range", static_cast<size_t>(std::max<int64_t>(n, 0)) * sizeof(IValue));
  DimVector out;
  Pace pace;
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    out.push_back(i);
  }
  return out;
}

// _(type) rows for the element types that compare by value.
#define WICK_BY_VALUE(overload, type)                                                              \
  {"aten::count." overload "(" type "[] self, " type " el) -> int", WICK_KERNEL(countOf)},         \
      {"aten::remove." overload "(" type "[](a!) self, " type " el) -> ()",                        \
       WICK_KERNEL(removeFrom)},                                                                   \
      {"aten::index.list_" overload "(" type "[] self, " type " el) -> int",                       \
       WICK_KERNEL(indexOf)},                                                                      \
      {"aten::__contains__." overload "_list(" type "[] l, " type " item) -> bool",                \
       WICK_KERNEL(contains)},                                                                     \
      {"aten::eq." overload "_list(" type "[] a, " type "[] b) -> bool", WICK_KERNEL(listsEqual)}, \
      {"aten::ne." overload "_list(" type "[] a, " type "[] b) -> bool",                           \
       WICK_KERNEL(listsDiffer)},                                                                  \
      {"aten::sort." overload "(" type "[](a!) self, bool reverse=False) -> ()",                   \
       WICK_KERNEL(sortAscending)},                                                                \
  {                                                                                                \
    "aten::sorted." overload "(" type "[](a) input) -> " type "[]", WICK_KERNEL(sorted)            \
  }
#define WICK_EXTREMA(type)                                                                        \
  {"prim::max.self_" type "(" type "[] self) -> " type, WICK_KERNEL(largest)},                    \
      {"prim::min.self_" type "(" type "[] self) -> " type, WICK_KERNEL(smallest)},               \
      {"prim::max." type "_list(" type "[] l, " type "[] r) -> " type "[]",                       \
       WICK_KERNEL(largerList)},                                                                  \
  {                                                                                               \
    "prim::min." type "_list(" type "[] l, " type "[] r) -> " type "[]", WICK_KERNEL(smallerList) \
  }

const OperatorRecord kListsRecords[] = {
    {"aten::len.t(t[] a) -> int", WICK_KERNEL(length)},
    {"aten::len.any(Any[] a) -> int", WICK_KERNEL(length)},
    {"aten::__getitem__.t(t[](a) list, int idx) -> t(*)", WICK_KERNEL(getItem)},
    {"aten::select.t(t[](a) list, int idx) -> t(*)", WICK_KERNEL(getItem),
     kSavesNothing | kMovesElements},
    {"aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", WICK_KERNEL(setItem)},
    {"aten::Delete.t(t[](a!) self, int idx) -> ()", WICK_KERNEL(deleteItem)},
    {"aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", WICK_KERNEL(append)},
    {"aten::extend.t(t[](a!) self, t[] other) -> ()", WICK_KERNEL(extend)},
    {"aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", WICK_KERNEL(insert)},
    {"aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", WICK_KERNEL(pop)},
    {"aten::clear.t(t[](a!) self) -> ()", WICK_KERNEL(clear)},
    {"aten::reverse.t(t[](a!) self) -> ()", WICK_KERNEL(reverse)},
    {"aten::copy.t(t[](a) self) -> t[]", WICK_KERNEL(copy)},
    {"aten::list.t(t[] l) -> t[]", WICK_KERNEL(copy)},
    {"aten::add.t(t[] a, t[] b) -> t[]", WICK_KERNEL(concat), kSavesNothing},
    {"aten::add_.t(t[](a!) self, t[] b) -> t[]", WICK_KERNEL(extendInPlace), kSavesNothing},
    {"aten::mul.left_t(t[] l, int n) -> t[]", WICK_KERNEL(repeat)},
    {"aten::mul.right_(int n, t[] l) -> t[]", WICK_KERNEL(repeatRight)},
    {"aten::mul_.t(t[](a!) l, int n) -> t[](a!)", WICK_KERNEL(repeatInPlace)},
    {"aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", WICK_KERNEL(slice),
     kSavesNothing | kMovesElements},
    WICK_BY_VALUE("int", "int"),
    WICK_BY_VALUE("float", "float"),
    WICK_BY_VALUE("bool", "bool"),
    WICK_BY_VALUE("str", "str"),
    {"aten::count.Tensor(Tensor[] self, Tensor el) -> int", WICK_KERNEL(countOf), kNeutralMixed},
    {"aten::remove.Tensor(Tensor[](a!) self, Tensor el) -> ()", WICK_KERNEL(removeFrom),
     kNeutralMixed},
    {"aten::index.list_Tensor(Tensor[] self, Tensor el) -> int", WICK_KERNEL(indexOf),
     kNeutralMixed},
    {"aten::eq.Tensor_list(Tensor[] a, Tensor[] b) -> bool", WICK_KERNEL(listsEqual),
     kNeutralMixed},
    {"aten::ne.Tensor_list(Tensor[] a, Tensor[] b) -> bool", WICK_KERNEL(listsDiffer),
     kNeutralMixed},
    {"aten::sort.Tensor(Tensor[](a!) self, bool reverse=False) -> ()", WICK_KERNEL(sortAscending),
     kNeutralMixed},
    {"aten::sorted.Tensor(Tensor[](a) input) -> Tensor[]", WICK_KERNEL(sorted), kNeutralMixed},
    {"aten::sort.any(t[](a!) self, bool reverse=False) -> ()", WICK_KERNEL(sortAscending)},
    {"aten::sorted.any(t[](a) self) -> t[]", WICK_KERNEL(sorted)},
    WICK_EXTREMA("int"),
    WICK_EXTREMA("float"),
    WICK_EXTREMA("bool"),
    {"aten::any.int(int[] self) -> bool", WICK_KERNEL(anyTrue)},
    {"aten::any.float(float[] self) -> bool", WICK_KERNEL(anyTrue)},
    {"aten::any.bool(bool[] self) -> bool", WICK_KERNEL(anyTrue)},
    {"aten::any.str(str[] self) -> bool", WICK_KERNEL(anyTrue)},
    {"aten::all.int(int[] self) -> bool", WICK_KERNEL(allTrue)},
    {"aten::all.float(float[] self) -> bool", WICK_KERNEL(allTrue)},
    {"aten::all.bool(bool[] self) -> bool", WICK_KERNEL(allTrue)},
    {"aten::sum.int(int[] self) -> int", WICK_KERNEL(sumInts)},
    {"aten::sum.bool(bool[] self) -> int", WICK_KERNEL(sumInts)},
    {"aten::sum.float(float[] self) -> float", WICK_KERNEL(sumFloats)},
    {"aten::sum.complex(complex[] self) -> complex", WICK_KERNEL(sumComplexes)},
    {"prim::rangelist(int n) -> int[]", WICK_KERNEL(rangeList)},
};
const RegisterOperators kListsRegistered(kListsRecords);

}  // namespace

}  // namespace wick::ops
