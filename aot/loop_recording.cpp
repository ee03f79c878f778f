// What a loop or condition that stays one computes, recorded by one round of it.
//
// Each value that a loop carries has memory of its own, into which the value is copied before the first
// round and at the end of each:
//
//   carried ← h            (in front of the loop)
//   for …:
//     t ← f(carried)
//     carried ← t          (or the two exchange their memory)
//
// A program may believe that what is copied so is one tensor: h and carried are one in the first round. That
// matters where one of them is written in place and the other is used, and is refused then (`Pair`).
#include <fmt/format.h>

#include <algorithm>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "core/tensor_kind.h"

namespace wick::aot {

namespace {

constexpr size_t kDeepest = 32;
// Rounds whose results become elements of a list.
constexpr int64_t kMostAppended = int64_t{1} << 16;
// What is smaller is copied: constant addresses are worth more.
constexpr size_t kSmallest = 256;

bool fills(const Tensor& t) {
  return t.offset() == 0 && t.isNonOverlappingAndDense() &&
         t.storage()->bytes() == static_cast<size_t>(t.numel()) * t.itemSize();
}
bool isSame(const Tensor& a, const Tensor& b) {
  return a.storage().get() == b.storage().get() && a.offset() == b.offset() &&
         std::ranges::equal(a.strides(), b.strides());
}

}  // namespace

Recording::Frame& Recording::loopFrame() {
  if (frames_.empty() || !frames_.back().loop) throw NotAhead("there is no loop to go on with");
  return frames_.back();
}

// Uninitialized memory of the same dtype, sizes and layout.
Tensor Recording::memoryLike(const Tensor& t) {
  const Device device{kAhead, -1};
  return t.isNonOverlappingAndDense()
             ? Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), device)
             : Tensor::empty(t.sizes(), t.dtype(), device);
}

// Copies in the program's stead.
void Recording::assignOwn(const Tensor& to, const Tensor& from) {
  const Tensor here = constant(from);
  if (to.dtype() != here.dtype() || !std::ranges::equal(to.sizes(), here.sizes())) {
    throw NotAhead(fmt::format("a value of a loop changes from {} to {}", shown(to), shown(here)));
  }
  if (to.numel() == 0 || isSame(to, here)) return;
  own_steps_ = true;
  assign(to, here);
  own_steps_ = false;
}

uint32_t Recording::wholeOf(uint32_t buffer) const {
  for (auto it = windows_.find(buffer); it != windows_.end(); it = windows_.find(buffer)) {
    buffer = it->second;
  }
  return buffer;
}

void Recording::pair(uint32_t a, uint32_t b) {
  a = wholeOf(a);
  b = wholeOf(b);
  if (a != b) pairs_.push_back({{a, b}});
}
void Recording::notePairs(const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    for (Pair& p : pairs_) {
      for (const size_t i : {size_t{0}, size_t{1}}) {
        if (p.buffers[i] != wholeOf(use.buffer)) continue;
        p.touched[i] = true;
        p.written[i] = p.written[i] || use.written;
      }
      if ((p.written[0] && p.touched[1]) || (p.written[1] && p.touched[0])) {
        throw NotAhead(
            "a tensor that a loop or condition gives on is written to in place, and used under "
            "another name as well");
      }
    }
  }
}

// ---- loops ----

namespace {

void requireBool(const Tensor& t) {
  WICK_CHECK(
      t.defined() && t.kind() == TensorKind::Dense && t.dtype() == DType::Bool && t.numel() == 1,
      "expected a condition, got {}", shown(t));
}

}  // namespace

void Recording::carry(const Tensor& value) {
  pending_.push_back(value.defined() ? ownCarried(value) : Tensor());
}
Tensor Recording::ownCarried(const Tensor& value) {
  const Tensor here = constant(value);
  const Tensor own = memoryLike(here);
  assignOwn(own, here);
  if (own.numel() > 0) pair(placeOf(here).buffer, placeOf(own).buffer);
  return own;
}

void Recording::beginLoop(const Tensor& rounds, bool conditional, int64_t ordinal) {
  if (frames_.size() >= kDeepest) {
    throw NotAhead(fmt::format("loops and conditions nest deeper than {} levels", kDeepest));
  }
  Frame frame;
  frame.loop = true;
  frame.ordinal = ordinal;
  frame.number = ++loops_;
  frame.conditional = conditional;
  frame.values = std::exchange(pending_, {});
  frame.next.resize(frame.values.size());
  frame.round = Tensor::empty({}, DType::Long, Device{kAhead, -1});
  WICK_CHECK(rounds.defined() && rounds.kind() == TensorKind::Dense && rounds.numel() == 1 &&
                 rounds.dtype() == DType::Long,
             "expected the number of rounds, got {}", shown(rounds));
  LoopStep step;
  step.number = frame.number;
  const Tensor known = rounds.device().isCpu() ? rounds : this->known(rounds);
  if (known.defined()) {
    frame.rounds = step.rounds = std::max<int64_t>(0, known.to(DType::Long).item<int64_t>());
  } else {
    step.told_rounds = placeOf(rounds);
  }
  if (conditional) {
    WICK_CHECK(!frame.values.empty(), "a loop without its condition");
    requireBool(frame.values.back());
    step.condition = placeOf(frame.values.back());
    frame.rounds.reset();
  }
  for (KeptList& kept : pending_lists_) {
    kept.first = frame.values.size();
    for (const IValue& e : kept.list.toList().elements) frame.values.push_back(e.toTensor());
  }
  frame.lists = std::exchange(pending_lists_, {});
  frame.next.resize(frame.values.size());
  step.round = placeOf(frame.round);
  add("loop", std::move(step));
  frame.step = program_.steps.size() - 1;
  frame.first_buffer = static_cast<uint32_t>(program_.buffers.size());
  in_loop_ = frame.number;
  frames_.push_back(std::move(frame));
}

Tensor Recording::round() const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (frame->loop) return frame->round;
  }
  throw NotAhead("there is no loop to go on with");
}
Tensor Recording::carried(size_t number) const {
  WICK_CHECK(!frames_.empty() && number < frames_.back().values.size(),
             "the loop carries no value {}", number);
  return frames_.back().values[number];
}
void Recording::setNext(size_t number, const Tensor& value) {
  Frame& frame = loopFrame();
  WICK_CHECK(number < frame.next.size(), "the loop carries no value {}", number);
  frame.next[number] = value.defined() ? constant(value) : value;
}

void Recording::appendEachRound(const IValue& list, const Tensor& value_in) {
  Frame& frame = loopFrame();
  if (!frame.rounds || *frame.rounds > kMostAppended) {
    throw NotAhead(fmt::format(
        "a list grows in a loop; how often must be known, and be at most {} times", kMostAppended));
  }
  const Tensor value = constant(value_in);
  const bool dense = value.isNonOverlappingAndDense();
  DimVector sizes{*frame.rounds}, strides{std::max<int64_t>(1, value.numel())};
  const DimVector rows = contiguousStrides(value.sizes());
  for (int64_t d = 0; d < value.dim(); ++d) {
    sizes.push_back(value.size(d));
    strides.push_back(dense ? value.stride(d) : rows[static_cast<size_t>(d)]);
  }
  const Tensor all = Tensor::emptyStrided(sizes, strides, value.dtype(), Device{kAhead, -1});
  if (all.numel() > 0) {
    Buffer& buffer = program_.buffers[placeOf(all).buffer];
    buffer.loop = 0;
    for (const Frame& outer : frames_) {
      if (outer.loop && &outer != &frame) buffer.loop = outer.number;
    }
    assignOwn(select(all, 0, frame.round), value);
  }
  frame.appended.push_back({list, all});
}

// Whether a value and its next one may exchange their memory.
bool Recording::exchanges(const Frame& frame, size_t number) const {
  const Tensor &value = frame.values[number], &next = frame.next[number];
  if (value.storage()->bytes() < kSmallest || !fills(value) || !fills(next) ||
      !std::ranges::equal(value.sizes(), next.sizes()) ||
      !std::ranges::equal(value.strides(), next.strides())) {
    return false;
  }
  const uint32_t buffer = placeOf(next).buffer;
  if (buffer < frame.first_buffer || program_.buffers[buffer].kind != Buffer::Kind::Temporary ||
      program_.buffers[buffer].loop != frame.number || program_.buffers[buffer].swapped) {
    return false;
  }
  for (size_t i = 0; i < frame.next.size(); ++i) {
    const Tensor& other = frame.next[i];
    if (i != number && other.defined() && other.numel() > 0 && placeOf(other).buffer == buffer) {
      return false;
    }
  }
  return true;
}

void Recording::endLoop() {
  Frame& frame = loopFrame();
  uint32_t outer = 0;
  for (const Frame& f : frames_) {
    if (f.loop && &f != &frame) outer = f.number;
  }
  const size_t count = frame.values.size();
  const auto isCarried = [&](const Tensor& t) {
    return std::ranges::any_of(frame.values, [&](const Tensor& v) {
      return v.defined() && v.numel() > 0 && v.storage().get() == t.storage().get();
    });
  };
  std::vector<size_t> swaps;
  for (size_t i = 0; i < count; ++i) {
    Tensor &value = frame.values[i], &next = frame.next[i];
    if (!next.defined()) continue;
    if (!value.defined()) {
      // It has no value in front of the loop.
      value = memoryLike(next);
      if (value.numel() > 0) program_.buffers[placeOf(value).buffer].loop = outer;
    }
    if (value.dtype() != next.dtype() || !std::ranges::equal(value.sizes(), next.sizes())) {
      throw NotAhead(fmt::format("a value that a loop carries changes from {} to {} in a round",
                                 shown(value), shown(next)));
    }
    if (value.numel() == 0 || isSame(value, next)) continue;
    const uint32_t from = wholeOf(placeOf(next).buffer);
    if (from < frame.first_buffer) pair(from, placeOf(value).buffer);
    for (size_t k = 0; k < i; ++k) {
      const Tensor& other = frame.next[k];
      if (other.defined() && other.numel() > 0 && wholeOf(placeOf(other).buffer) == from) {
        pair(placeOf(frame.values[k]).buffer, placeOf(value).buffer);
      }
    }
    if (isCarried(next)) {
      // It is overwritten before it is read.
      const Tensor kept = memoryLike(next);
      assignOwn(kept, next);
      next = kept;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const Tensor &value = frame.values[i], &next = frame.next[i];
    if (!next.defined() || value.numel() == 0 || isSame(value, next)) continue;
    if (exchanges(frame, i)) {
      swaps.push_back(i);
    } else {
      assignOwn(value, next);
    }
  }
  own_steps_ = true;
  std::vector<uint32_t> swapped;
  for (const size_t i : swaps) {
    const uint32_t value = placeOf(frame.values[i]).buffer, next = placeOf(frame.next[i]).buffer;
    add("", SwapStep{value, next});
    for (const uint32_t buffer : {value, next}) {
      program_.buffers[buffer].loop = outer;
      program_.buffers[buffer].swapped = true;
      swapped.push_back(buffer);
    }
  }
  std::get<LoopStep>(program_.steps[frame.step].what).swapped = std::move(swapped);
  add("", EndStep{});
  own_steps_ = false;
  // One element a round of each list.
  const int64_t rounds = frame.appended.empty() ? 0 : frame.rounds.value_or(0);
  for (int64_t round = 0; round < rounds; ++round) {
    for (const Appended& a : frame.appended) {
      a.list.toList().elements.push_back(IValue(a.all.select(0, round)));
    }
  }
  results_ = std::move(frame.values);
  result_lists_ = std::move(frame.lists);
  frames_.pop_back();
  in_loop_ = outer;
}

// ---- conditions ----

bool Recording::beginBranch(const Tensor& condition) {
  if (frames_.size() >= kDeepest) {
    throw NotAhead(fmt::format("loops and conditions nest deeper than {} levels", kDeepest));
  }
  requireBool(condition);
  Frame frame;
  const Tensor known = condition.device().isCpu() ? condition : this->known(condition);
  if (known.defined()) {
    frame.known = known.to(DType::Bool).item<bool>();
  } else {
    add("if", BranchStep{placeOf(condition)});
  }
  frame.first_buffer = static_cast<uint32_t>(program_.buffers.size());
  frames_.push_back(std::move(frame));
  return frames_.back().known.value_or(true);
}
bool Recording::beginElse() {
  WICK_CHECK(!frames_.empty() && !frames_.back().loop, "there is no condition to go on with");
  Frame& frame = frames_.back();
  if (frame.known) return !*frame.known;
  add("", OtherwiseStep{});
  frame.first_buffer = static_cast<uint32_t>(program_.buffers.size());
  return true;
}
void Recording::setResult(size_t number, const Tensor& value) {
  WICK_CHECK(!frames_.empty() && !frames_.back().loop && number < 4096,
             "there is no condition to go on with");
  Frame& frame = frames_.back();
  if (frame.values.size() <= number) frame.values.resize(number + 1);
  if (!value.defined()) return;
  const Tensor here = constant(value);
  Tensor& result = frame.values[number];
  if (frame.known) {
    result = here;
    return;
  }
  if (!result.defined()) result = memoryLike(here);
  assignOwn(result, here);
  if (here.numel() == 0 || isSame(result, here)) return;
  const uint32_t from = wholeOf(placeOf(here).buffer), to = placeOf(result).buffer;
  if (from < frame.first_buffer) pair(from, to);
  // Two results that are one on this side.
  frame.next.resize(std::max(frame.next.size(), frame.values.size()));
  for (size_t i = 0; i < frame.values.size(); ++i) {
    const Tensor& other = frame.next[i];
    if (i != number && other.defined() && wholeOf(placeOf(other).buffer) == from) {
      pair(placeOf(frame.values[i]).buffer, to);
    }
  }
  frame.next[number] = here;
}
void Recording::endBranch() {
  WICK_CHECK(!frames_.empty() && !frames_.back().loop, "there is no condition to go on with");
  if (!frames_.back().known) add("", EndStep{});
  results_ = std::move(frames_.back().values);
  result_lists_ = std::move(frames_.back().lists);
  frames_.pop_back();
}

// ---- lists of tensors ----

Recording::KeptList* Recording::findList(std::vector<KeptList>& lists, const IValue& list) {
  for (KeptList& kept : lists) {
    if (&kept.list.toList() == &list.toList()) return &kept;
  }
  return nullptr;
}
void Recording::checkLength(const KeptList& kept) {
  const size_t now = kept.list.toList().elements.size(), before = kept.elements.size();
  if (now == before) return;
  throw NotAhead(
      fmt::format("a list changes from {} elements to {} in a loop that stays one", before, now));
}

void Recording::carryList(const IValue& list) {
  // Two names may be one list.
  if (findList(pending_lists_, list)) return;
  std::vector<IValue>& elements = list.toList().elements;
  pending_lists_.push_back({list, 0, elements});
  for (IValue& e : elements) {
    const Tensor t = e.toTensor();
    if (!t.defined()) throw NotAhead("a list that a loop carries has an element that is None");
    e = IValue(ownCarried(t));
  }
}
void Recording::setNextOf(const IValue& list) {
  const KeptList* const kept = findList(loopFrame().lists, list);
  WICK_CHECK(kept, "the loop carries no such list");
  checkLength(*kept);
  size_t number = kept->first;
  for (const IValue& e : list.toList().elements) setNext(number++, e.toTensor());
}
void Recording::takeResultsInto(const IValue& list) {
  const KeptList* const kept = findList(result_lists_, list);
  if (!kept) return;  // the sides of a condition that is known were as they are
  size_t number = kept->first;
  for (IValue& e : list.toList().elements) e = IValue(result(number++));
}

void Recording::branchList(const IValue& list, size_t results) {
  WICK_CHECK(!frames_.empty() && !frames_.back().loop, "there is no condition to go on with");
  Frame& frame = frames_.back();
  if (frame.known || findList(frame.lists, list)) return;
  const size_t first =
      frame.lists.empty() ? results : frame.lists.back().first + frame.lists.back().elements.size();
  frame.lists.push_back({list, first, list.toList().elements});
}
void Recording::restoreList(const IValue& list) {
  WICK_CHECK(!frames_.empty() && !frames_.back().loop, "there is no condition to go on with");
  const KeptList* const kept = findList(frames_.back().lists, list);
  if (kept) list.toList().elements = kept->elements;
}
void Recording::setResultsOf(const IValue& list) {
  WICK_CHECK(!frames_.empty() && !frames_.back().loop, "there is no condition to go on with");
  const KeptList* const kept = findList(frames_.back().lists, list);
  if (!kept) return;
  checkLength(*kept);
  size_t number = kept->first;
  for (const IValue& e : list.toList().elements) setResult(number++, e.toTensor());
}

Tensor Recording::result(size_t number) const {
  return number < results_.size() ? results_[number] : Tensor();
}
void Recording::raise(const std::string& message) {
  add("raise", RaiseStep{message});
}

// ---- parts of tensors ----

Tensor Recording::select(const Tensor& from_in, int64_t dim, const Tensor& index) {
  const Tensor from = constant(from_in);
  Tensor first = from.size(dim) > 0 ? from.select(dim, 0) : Tensor();
  if (!first.defined()) {
    throw NotAhead(
        "an index that elements of a tensor decide is not available ahead of time in a dimension "
        "of size 0");
  }
  if (first.numel() == 0) return first;
  int64_t last = 0;
  for (int64_t d = 0; d < first.dim(); ++d) last += (first.size(d) - 1) * first.stride(d);
  const auto item = static_cast<int64_t>(from.itemSize());
  const Tensor memory = Tensor::empty({(last + 1) * item}, DType::Byte, Device{kAhead, -1});
  WindowStep step;
  step.window = placeOf(memory).buffer;
  step.from = placeOf(first);
  step.index = placeOf(index);
  step.size = from.size(dim);
  step.bytes = from.stride(dim) * item;
  windows_[step.window] = step.from.buffer;
  program_.buffers[step.window].kind = Buffer::Kind::Window;
  const bool own = std::exchange(own_steps_, true);
  add("select", step);
  own_steps_ = own;
  return Tensor::fromStorage(memory.storage(), from.dtype(), first.sizes(), first.strides(), 0);
}

std::optional<int64_t> Recording::openLoop() const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (frame->loop) return frame->ordinal;
  }
  // A condition alone is the number of no loop.
  return frames_.empty() ? std::nullopt : std::optional<int64_t>(-1);
}
void Recording::noteRounds(int64_t ordinal, int64_t rounds) {
  int64_t& most = rounds_[ordinal];
  most = std::max(most, rounds);
}

}  // namespace wick::aot
