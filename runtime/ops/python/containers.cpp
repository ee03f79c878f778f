// What Python's strings, lists, tuples and dicts have and PyTorch's operators have not.
#include <algorithm>
#include <iterator>

#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/memory_limit.h"
#include "runtime/ops/typed.h"
#include "runtime/ops/values/order.h"
#include "runtime/ops/values/text.h"

namespace wick::ops {

namespace {

using I = int64_t;
using Str = const std::string&;
using Values = std::vector<IValue>;

// ---- strings ----

bool isAscii(Str s) {
  return std::all_of(s.begin(), s.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 128; });
}
std::string caseFolded(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), toLower);
  return s;
}
std::string withoutPrefix(Str s, Str prefix) {
  return s.starts_with(prefix) ? s.substr(prefix.size()) : s;
}
std::string withoutSuffix(Str s, Str suffix) {
  return s.ends_with(suffix) ? s.substr(0, s.size() - suffix.size()) : s;
}

// ---- comparisons of values of any type ----

bool contains(const IValue& list, const IValue& element) {
  const Values& v = list.elements();
  return std::any_of(v.begin(), v.end(), [&](const IValue& e) { return e.equals(element); });
}

// ---- lists ----

I indexWithin(const IValue& list, const IValue& element, I start, I stop) {
  const Values& v = list.elements();
  I n = static_cast<I>(v.size());
  auto bound = [&](I i) { return std::clamp<I>(i < 0 ? i + n : i, 0, n); };
  for (I i = bound(start), end = bound(stop); i < end; ++i) {
    if (v[static_cast<size_t>(i)].equals(element)) return i;
  }
  throw RuntimeError(fmt::format("{} is not in list", element.shortRepr()), "ValueError");
}

void setSlice(const IValue& list, std::optional<I> start, std::optional<I> end,
              std::optional<I> step, const IValue& values) {
  Values& v = list.toList().elements;
  // A copy: it may be the list itself.
  const CountedVector<IValue> added(values.elements().begin(), values.elements().end());
  I n = static_cast<I>(v.size());
  if (step.value_or(1) != 1) {
    CountedVector<I> chosen = sliceIndices(n, start, end, *step);
    if (chosen.size() != added.size()) {
      throw RuntimeError(
          fmt::format("attempt to assign sequence of size {} to extended slice of size {}",
                      added.size(), chosen.size()),
          "ValueError");
    }
    for (size_t i = 0; i < chosen.size(); ++i) v[static_cast<size_t>(chosen[i])] = added[i];
    return;
  }
  auto bound = [&](std::optional<I> i, I missing) {
    return i ? std::clamp<I>(*i < 0 ? *i + n : *i, 0, n) : missing;
  };
  I first = bound(start, 0);
  I last = std::max(first, bound(end, n));
  list.toList().makeRoom("slice", added.size());
  // What is replaced is released last, because it may know the list.
  const CountedVector<IValue> replaced(std::make_move_iterator(v.begin() + first),
                                       std::make_move_iterator(v.begin() + last));
  v.erase(v.begin() + first, v.begin() + last);
  v.insert(v.begin() + first, added.begin(), added.end());
}

void deleteSlice(const IValue& list, std::optional<I> start, std::optional<I> end,
                 std::optional<I> step) {
  Values& v = list.toList().elements;
  checkAllocation("del", v.size() * (sizeof(IValue) + 1));
  std::vector<bool> gone(v.size());
  for (I i : sliceIndices(static_cast<I>(v.size()), start, end, step.value_or(1))) {
    gone[static_cast<size_t>(i)] = true;
  }
  Pace pace;
  Values kept;
  kept.reserve(static_cast<size_t>(std::ranges::count(gone, false)));
  for (size_t i = 0; i < v.size(); ++i) {
    pace.step();
    if (!gone[i]) kept.push_back(v[i]);
  }
  list.toList().replace(std::move(kept));
}

IValue checkUnpack(IValue list, I least) {
  I n = static_cast<I>(list.elements().size());
  if (n >= least) return list;
  throw RuntimeError(
      fmt::format("not enough values to unpack (expected at least {}, got {})", least, n),
      "ValueError");
}

bool rangeContains(I value, I start, I end, I step) {
  if (step == 0) throw RuntimeError("range() arg 3 must not be zero", "ValueError");
  if (step > 0 ? value < start || value >= end : value > start || value <= end) return false;
  uint64_t distance = step > 0 ? static_cast<uint64_t>(value) - static_cast<uint64_t>(start)
                               : static_cast<uint64_t>(start) - static_cast<uint64_t>(value);
  uint64_t size = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return distance % size == 0;
}

const OperatorRecord kContainersRecords[] = {
    {"aten::isascii(str self) -> bool", WICK_KERNEL(isAscii)},
    {"aten::casefold(str self) -> str", WICK_KERNEL(caseFolded)},
    {"aten::removeprefix(str self, str prefix) -> str", WICK_KERNEL(withoutPrefix)},
    {"aten::removesuffix(str self, str suffix) -> str", WICK_KERNEL(withoutSuffix)},
    {"prim::equal(Any a, Any b) -> bool",
     WICK_LAMBDA([](const IValue& a, const IValue& b) { return a.equals(b); })},
    {"prim::less(Any a, Any b) -> bool", WICK_KERNEL(lessThan)},
    {"prim::contains(Any list, Any element) -> bool", WICK_KERNEL(contains)},
    {"prim::max.any(t[] self) -> t", WICK_KERNEL(largest)},
    {"prim::min.any(t[] self) -> t", WICK_KERNEL(smallest)},
    {"aten::index.within(t[] self, t el, int start, int stop=9223372036854775807) -> int",
     WICK_KERNEL(indexWithin)},
    {"prim::setSlice(t[](a!) self, int? start, int? end, int? step, t[] values) -> ()",
     WICK_KERNEL(setSlice)},
    {"prim::deleteSlice(t[](a!) self, int? start, int? end, int? step) -> ()",
     WICK_KERNEL(deleteSlice)},
    {"prim::checkUnpack(t[](a) self, int least) -> t[](a)", WICK_KERNEL(checkUnpack)},
    {"prim::rangeContains(int value, int start, int end, int step) -> bool",
     WICK_KERNEL(rangeContains)},
};
const RegisterOperators kContainersRegistered(kContainersRecords);

}  // namespace

}  // namespace wick::ops
