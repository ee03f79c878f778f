#include "runtime/ops/values/order.h"

#include <algorithm>
#include <atomic>
#include <cmath>
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

}  // namespace

bool lessThan(const IValue& a, const IValue& b) {
  return lessAt(a, b, 0);
}

void sortValues(std::vector<IValue>& values, bool reverse) {
  // A comparison may run a program that changes the list, so a copy is sorted; and it may be no
  // order at all, which std::stable_sort survives where std::sort does not.
  std::unordered_set<const RefCounted*> seen;
  WICK_CHECK(values.empty() || mayBeOrdered(values[0], seen),
             "sort: values of type {} have no order; lists of numbers, strings, tensors, tuples of "
             "these and objects with __lt__ can be sorted",
             values[0].type()->annotation());
  std::vector<IValue> sorted = values;
  auto before = [&](const IValue& a, const IValue& b) {
    if (holdsNan(a) || holdsNan(b)) return !holdsNan(a);
    return reverse ? lessThan(b, a) : lessThan(a, b);
  };
  Pace pace;
  std::stable_sort(sorted.begin(), sorted.end(), paced(pace, before, 16));
  values.swap(sorted);
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
