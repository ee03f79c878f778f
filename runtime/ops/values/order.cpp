#include "runtime/ops/values/order.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <unordered_set>

#include "core/counted_vector.h"
#include "core/error.h"
#include "core/paced.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops {

namespace {

constexpr int kMaxDepth = 1000;
std::atomic<ObjectLess> object_less{nullptr};

bool lessAt(const IValue& a, const IValue& b, int depth);

bool numberLess(const IValue& a, const IValue& b) {
  if (a.isDouble() || b.isDouble()) return a.numberToDouble() < b.numberToDouble();
  return a.numberToInt() < b.numberToInt();
}

bool sequenceLess(const std::vector<IValue>& a, const std::vector<IValue>& b, int depth) {
  WICK_CHECK(depth < kMaxDepth, "maximum recursion depth exceeded in comparison");
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].equals(b[i])) continue;
    return lessAt(a[i], b[i], depth + 1);
  }
  return a.size() < b.size();
}

bool lessAt(const IValue& a, const IValue& b, int depth) {
  if (a.isInt() && b.isInt()) return a.rawInt() < b.rawInt();
  bool comparable = a.isNumber() && b.isNumber() && !a.isComplex() && !b.isComplex();
  if (comparable) return numberLess(a, b);
  if (a.isString() && b.isString()) {
    constexpr size_t kLong = size_t{1} << 16;
    if (std::min(a.toString().size(), b.toString().size()) > kLong) checkBudget();
    return a.toString() < b.toString();
  }
  if ((a.isTuple() && b.isTuple()) || (a.isList() && b.isList())) {
    return sequenceLess(a.elements(), b.elements(), depth);
  }
  if (a.isTensor() && b.isTensor()) {
    Tensor less = ops::lt(a.toTensor(), b.toTensor());
    WICK_CHECK(less.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
    return less.item<bool>();
  }
  ObjectLess less = object_less.load(std::memory_order_acquire);
  if (a.isObject() && b.isObject() && less) return less(a, b);
  throw RuntimeError(fmt::format("'<' not supported between instances of '{}' and '{}'",
                                 a.type()->annotation(), b.type()->annotation()),
                     "TypeError");
}

bool holdsNan(const IValue& v) {
  return v.isDouble() && std::isnan(v.rawDouble());
}

// Whether values like this one have an order, told before any two are compared: dicts and the like
// may be equal by chance. Tuples in `seen` have been looked at.
bool mayBeOrdered(const IValue& v, std::unordered_set<const RefCounted*>& seen, int depth = 0) {
  if (v.isTuple()) {
    WICK_CHECK(depth < kMaxDepth, "maximum recursion depth exceeded in comparison");
    if (!seen.insert(v.rawObject()).second) return true;
    return std::ranges::all_of(v.elements(),
                               [&](const IValue& e) { return mayBeOrdered(e, seen, depth + 1); });
  }
  return !v.isNone() && !v.isComplex() && !v.isDict() && !v.isDevice() && !v.isEnum() &&
         !v.isFuture() && !v.isGenerator() && !v.isCapsule();
}

// The range with its smallest element first, and so on: each goes back to where it belongs.
template <class Before>
void insertionSort(std::span<IValue> range, const Before& before) {
  for (size_t i = 1; i < range.size(); ++i) {
    IValue value = std::move(range[i]);
    size_t at = i;
    for (; at > 0 && before(value, range[at - 1]); --at) range[at] = std::move(range[at - 1]);
    range[at] = std::move(value);
  }
}

// Sorts stably. `before` may answer anything, and otherwise when it is asked again: a program's
// __lt__ is a comparison too. The standard library's sorts rely on its answers to stay within the
// range; here every step looks at the bounds.
template <class Before>
void mergeSort(std::vector<IValue>& values, const Before& before) {
  constexpr size_t kShort = 8;
  const size_t n = values.size();
  for (size_t i = 0; i < n; i += kShort) {
    insertionSort(std::span(values).subspan(i, std::min(kShort, n - i)), before);
  }
  CountedVector<IValue> room(n > kShort ? n : 0);
  std::span<IValue> from = values, to = room;
  for (size_t width = kShort; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      size_t left = begin, right = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool second = left == middle || (right < end && before(from[right], from[left]));
        to[at] = std::move(from[second ? right++ : left++]);
      }
    }
    std::swap(from, to);
  }
  if (from.data() != values.data()) std::ranges::move(from, values.begin());
}

}  // namespace

bool lessThan(const IValue& a, const IValue& b) {
  return lessAt(a, b, 0);
}

void sortValues(std::vector<IValue>& values, bool reverse) {
  std::unordered_set<const RefCounted*> seen;
  WICK_CHECK(values.empty() || mayBeOrdered(values[0], seen),
             "sort: values of type {} have no order; lists of numbers, strings, tensors, tuples of "
             "these and objects with __lt__ can be sorted",
             values[0].type()->annotation());
  const auto before = [&](const IValue& a, const IValue& b) {
    if (holdsNan(a) || holdsNan(b)) return !holdsNan(a);
    return reverse ? lessThan(b, a) : lessThan(a, b);
  };
  Pace pace;
  mergeSort(values, paced(pace, before, 16));
}

namespace {

// Goes on with an element that `better(e, best)`. A comparison may run a program that changes the
// list: no reference to an element lives through one.
template <class Better>
IValue extreme(const IValue& list, const char* op, const Better& better) {
  const std::vector<IValue>& values = list.elements();
  if (values.empty()) {
    throw RuntimeError(fmt::format("{}() arg is an empty sequence", op), "ValueError");
  }
  Pace pace;
  IValue best = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    pace.step(16);
    IValue candidate = values[i];
    if (better(candidate, best)) best = std::move(candidate);
  }
  return best;
}

}  // namespace

IValue largest(const IValue& list) {
  return extreme(list, "max",
                 [](const IValue& e, const IValue& best) { return lessThan(best, e); });
}
IValue smallest(const IValue& list) {
  return extreme(list, "min", lessThan);
}

void setObjectLess(ObjectLess less) {
  object_less.store(less, std::memory_order_release);
}

Slice sliceOf(int64_t n, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  if (step == 0) throw RuntimeError("List slice should have non-zero step", "ValueError");
  int64_t low = step > 0 ? 0 : -1;
  int64_t high = step > 0 ? n : n - 1;
  auto bound = [&](std::optional<int64_t> i, int64_t missing) {
    if (!i) return missing;
    return std::clamp(*i < 0 ? *i + n : *i, low, high);
  };
  int64_t first = bound(start, step > 0 ? 0 : n - 1);
  int64_t last = bound(end, step > 0 ? n : -1);
  const int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {std::max<int64_t>(first, 0), step, 0};
  const uint64_t size = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return {first, step, static_cast<size_t>((static_cast<uint64_t>(distance) - 1) / size + 1)};
}

CountedVector<int64_t> sliceIndices(int64_t n, std::optional<int64_t> start,
                                    std::optional<int64_t> end, int64_t step) {
  const Slice slice = sliceOf(n, start, end, step);
  CountedVector<int64_t> out;
  out.reserve(slice.count);
  for (size_t i = 0; i < slice.count; ++i) out.push_back(slice.at(i));
  return out;
}

}  // namespace wick::ops
