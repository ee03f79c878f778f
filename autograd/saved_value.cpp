#include "autograd/saved_value.h"

#include <algorithm>

#include "core/error.h"
#include "core/grad_mode.h"

namespace wick::autograd {

SavedValue SavedValue::argument(const IValue& value) {
  size_t parts = 0;
  return argument(value, 0, parts);
}

// Lists may hold themselves, or each other twice at each of many levels.
SavedValue SavedValue::argument(const IValue& value, int depth, size_t& parts) {
  constexpr int kMaxDepth = 64;
  constexpr size_t kMostParts = size_t{1} << 20;
  WICK_CHECK(
      depth < kMaxDepth && ++parts < kMostParts,
      "a list nests deeper than {} levels or has more than {} parts, which is too much to be "
      "kept for its gradient",
      kMaxDepth, kMostParts);
  SavedValue saved;
  if (value.isTensor()) {
    const Tensor t = value.toTensor();
    saved.edge_ = gradientEdge(t);
    saved.value_ = IValue(withoutHistory(t));
    saved.version_ = t.storage()->version();
  } else if (value.isList()) {
    // The program may change the list.
    const ListObject& list = value.toList();
    saved.value_ = IValue(makeList(list.element_type, list.elements));
    const bool tensors =
        std::ranges::any_of(list.elements, [](const IValue& e) { return e.isTensor(); });
    if (tensors) {
      for (const IValue& e : list.elements) {
        saved.elements_.push_back(argument(e, depth + 1, parts));
      }
      saved.value_ = IValue(makeList(list.element_type));
    }
  } else {
    saved.value_ = value;
  }
  return saved;
}

SavedValue SavedValue::result(const IValue& value, uint32_t index) {
  SavedValue saved;
  saved.value_ = value;
  if (value.isTensor()) {
    const Tensor t = value.toTensor();
    saved.value_ = IValue(withoutHistory(t));
    saved.version_ = t.storage()->version();
    // What has no gradient comes from nowhere.
    if (isFloating(t.dtype()) || isComplex(t.dtype())) saved.result_ = index;
  }
  return saved;
}

bool SavedValue::isStale() const {
  if (value_.isTensor()) return value_.toTensor().storage()->version() != version_;
  return std::ranges::any_of(elements_, [](const SavedValue& e) { return e.isStale(); });
}

void SavedValue::check(const std::string& made_by, int64_t index) const {
  for (const SavedValue& e : elements_) e.check();
  if (!isStale()) return;
  const Tensor t = value_.toTensor();
  throwRuntimeError(
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [{}]{} is at version {}; expected version {} instead.",
      t.describe(),
      made_by.empty() ? "" : fmt::format(", which is output {} of {},", index, made_by),
      t.storage()->version(), version_);
}

SavedValue SavedValue::release() {
  SavedValue gone;
  gone.released_ = true;
  std::swap(gone, *this);
  return gone;
}

IValue SavedValue::unpack(Node& node) const {
  if (!elements_.empty()) {
    std::vector<IValue> values;
    for (const SavedValue& e : elements_) values.push_back(e.unpack(node));
    return IValue(makeList(value_.toList().element_type, std::move(values)));
  }
  WICK_CHECK(!released_, "{}", kAlreadyReleased);
  if (!value_.isTensor()) return value_;
  if (isStale()) check(result_ >= 0 ? node.name() : "", result_);
  const Tensor t = value_.toTensor();
  if (!gradEnabled()) return value_;
  if (result_ >= 0)
    return IValue(withHistory(t, {Ref<Node>(&node), static_cast<uint32_t>(result_)}));
  return edge_ ? IValue(withHistory(t, edge_)) : value_;
}

void SavedValues::release() {
  std::vector<SavedValue> dropped;  // without the mutex
  std::lock_guard lock(mutex_);
  for (SavedValue& s : values_) {
    if (s.isTensor()) dropped.push_back(s.release());
  }
}

}  // namespace wick::autograd
