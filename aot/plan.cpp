// Buffers that live at the same time lie apart; the largest are placed first, each at the lowest offset
// that is free while it lives.
#include "aot/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "aot/recording.h"

namespace wick::aot {

namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(size_t bytes) {
  return (static_cast<int64_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

bool hasElements(const TensorSlot& slot) {
  return std::ranges::find(slot.layout.sizes, 0) == slot.layout.sizes.end();
}

// What decides which steps run, and what is kept.
bool isStructure(const Step& step) {
  return std::holds_alternative<BranchStep>(step.what) ||
         std::holds_alternative<OtherwiseStep>(step.what) ||
         std::holds_alternative<EndStep>(step.what) ||
         std::holds_alternative<RaiseStep>(step.what) ||
         std::holds_alternative<SizeStep>(step.what) ||
         std::holds_alternative<ResultSizesStep>(step.what) || step.kept ||
         std::holds_alternative<LoopStep>(step.what);
}

// The buffers that windows are parts of.
class Windows {
 public:
  explicit Windows(const Program& program) : in_(program.buffers.size()) {
    for (uint32_t b = 0; b < in_.size(); ++b) in_[b] = b;
    for (const Step& step : program.steps) {
      // Behind the step for what it is a part of.
      const auto* window = std::get_if<WindowStep>(&step.what);
      if (window) in_[window->window] = in_[window->from.buffer];
    }
  }
  uint32_t wholeOf(uint32_t buffer) const { return in_[buffer]; }
  // What a step uses; what it does with a window it does with the whole.
  std::vector<Use> usesOf(const Step& step) const {
    std::vector<Use> uses = aot::usesOf(step);
    if (std::holds_alternative<WindowStep>(step.what)) return uses;
    const size_t own = uses.size();
    for (const bool written : {false, true}) {
      for (size_t i = 0; i < own; ++i) {
        if (uses[i].written == written && in_[uses[i].buffer] != uses[i].buffer) {
          uses.push_back({in_[uses[i].buffer], written});
        }
      }
    }
    return uses;
  }

 private:
  std::vector<uint32_t> in_;
};

void removeDeadSteps(Program& program) {
  const Windows windows(program);
  std::vector<bool> needed(program.buffers.size());
  for (const TensorSlot& out : program.outputs) {
    if (hasElements(out)) needed[windows.wholeOf(out.place.buffer)] = true;
  }
  for (const auto& [buffer, output] : program.alternates) needed[buffer] = true;
  std::vector<std::vector<Use>> uses;
  for (const Step& step : program.steps) uses.push_back(windows.usesOf(step));
  std::vector<bool> live(program.steps.size());
  // Again until nothing changes, because a round of a loop may need what the one before it wrote.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = program.steps.size(); i-- > 0;) {
      if (live[i]) continue;
      live[i] = isStructure(program.steps[i]) || std::ranges::any_of(uses[i], [&](const Use& use) {
                  return use.written && needed[use.buffer];
                });
      if (!live[i]) continue;
      changed = true;
      for (const Use& use : uses[i]) needed[use.buffer] = true;
    }
  }
  size_t i = 0;
  std::erase_if(program.steps, [&](const Step&) { return !live[i++]; });
}

// Known contents that a call changes are copied into memory first; where a round of a loop makes them, at
// its beginning.
void copyWrittenConstants(Program& program) {
  const Windows windows(program);
  std::vector<Step> copies;
  std::unordered_map<uint32_t, std::vector<Step>> in_loops;  // by number
  for (const Step& step : program.steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) in_loops[loop->number];
  }
  std::vector<bool> seen(program.buffers.size());
  for (const Step& step : program.steps) {
    for (const Use& use : windows.usesOf(step)) {
      if (!use.written || seen[use.buffer]) continue;
      seen[use.buffer] = true;
      if (program.buffers[use.buffer].kind != Buffer::Kind::Constant) continue;
      const auto kept = static_cast<uint32_t>(program.buffers.size());
      program.buffers.push_back(program.buffers[use.buffer]);
      Buffer& changed = program.buffers[use.buffer];
      changed.kind = Buffer::Kind::Temporary;
      changed.data = Tensor();
      const auto loop = in_loops.find(changed.loop);
      std::vector<Step>& to = loop == in_loops.end() ? copies : loop->second;
      to.push_back({FillStep{{use.buffer, 0}, Place{kept, 0}}, "constant"});
    }
  }
  for (Step& step : program.steps) {
    const auto* loop = std::get_if<LoopStep>(&step.what);
    const uint32_t number = loop ? loop->number : 0;
    copies.push_back(std::move(step));
    if (number != 0) std::ranges::move(in_loops[number], std::back_inserter(copies));
  }
  program.steps = std::move(copies);
}

// Between which steps each buffer is used: what a loop does not make anew in each round is kept from its
// beginning to its end.
class Lives {
 public:
  Lives(const Program& program, size_t buffers)
      : program_(program), first(buffers, kNever), last(buffers, 0) {
    std::vector<size_t> ends;  // by step, of those that begin something
    ends.resize(program.steps.size());
    std::vector<size_t> open;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      if (std::holds_alternative<LoopStep>(step.what) ||
          std::holds_alternative<BranchStep>(step.what)) {
        open.push_back(i);
      } else if (std::holds_alternative<EndStep>(step.what)) {
        ends[open.back()] = i;
        open.pop_back();
      }
    }
    ends_ = std::move(ends);
  }
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  // Steps in order.
  void enter(size_t step) {
    while (!loops_.empty() && ends_[loops_.back().first] < step) loops_.pop_back();
    if (const auto* loop = std::get_if<LoopStep>(&program_.steps[step].what)) {
      loops_.push_back({step, loop->number});
    }
  }
  void use(size_t step, uint32_t buffer) {
    first[buffer] = std::min(first[buffer], step);
    last[buffer] = std::max(last[buffer], step);
    // The outermost loop around the step that does not make the buffer.
    const uint32_t made = program_.buffers[buffer].loop;
    size_t around = loops_.size();
    while (around > 0 && loops_[around - 1].second != made) --around;
    if (around < loops_.size()) {
      first[buffer] = std::min(first[buffer], loops_[around].first);
      last[buffer] = std::max(last[buffer], ends_[loops_[around].first]);
    }
  }

 private:
  const Program& program_;
  std::vector<size_t> ends_;
  std::vector<std::pair<size_t, uint32_t>> loops_;  // step and number of those around the step

 public:
  std::vector<size_t> first, last;
};

}  // namespace

int64_t placeInMemory(std::vector<Span>& spans) {
  std::vector<size_t> order(spans.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return spans[a].bytes > spans[b].bytes; });
  std::vector<const Span*> placed;
  int64_t total = 0;
  for (size_t i : order) {
    Span& span = spans[i];
    std::vector<const Span*> others;
    for (const Span* p : placed) {
      if (p->first <= span.last && span.first <= p->last) others.push_back(p);
    }
    std::ranges::sort(others, [](const Span* a, const Span* b) { return a->offset < b->offset; });
    int64_t at = 0;
    for (const Span* p : others) {
      if (p->offset - at >= span.bytes) break;
      at = std::max(at, p->offset + p->bytes);
    }
    span.offset = at;
    total = std::max(total, at + span.bytes);
    placed.push_back(&span);
  }
  return total;
}

int64_t Weights::place(const Buffer& buffer) {
  const std::string_view bytes(static_cast<const char*>(buffer.data.rawData()), buffer.bytes);
  const size_t hash = std::hash<std::string_view>()(bytes);
  for (auto [at, end] = known_.equal_range(hash); at != end; ++at) {
    const auto& [piece, offset] = at->second;
    const Tensor& other = pieces_[piece];
    if (static_cast<size_t>(other.numel()) == bytes.size() &&
        std::memcmp(other.rawData(), bytes.data(), bytes.size()) == 0) {
      return offset;
    }
  }
  const int64_t offset = bytes_;
  known_.emplace(hash, std::pair(pieces_.size(), offset));
  pieces_.push_back(buffer.data);
  bytes_ += aligned(buffer.bytes);
  return offset;
}

Plan makePlan(Program& program, Weights& weights) {
  removeDeadSteps(program);
  copyWrittenConstants(program);
  Plan plan;
  plan.homes.resize(program.buffers.size());
  const Windows windows(program);
  Lives lives(program, program.buffers.size());
  std::vector<bool> written(program.buffers.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    lives.enter(i);
    for (const Use& use : windows.usesOf(program.steps[i])) {
      const Buffer& buffer = program.buffers[use.buffer];
      // Of a tensor without elements nothing is read.
      if (!use.written && !written[use.buffer] && buffer.kind == Buffer::Kind::Temporary &&
          buffer.bytes > 0 && !std::holds_alternative<WindowStep>(program.steps[i].what)) {
        throw NotAhead(
            fmt::format("{} reads memory that nothing wrote ahead of time", program.steps[i].name));
      }
      lives.use(i, use.buffer);
      // What the step reads is looked at before what it writes, because uses list reads first.
      written[use.buffer] = written[use.buffer] || use.written;
    }
  }
  std::vector<size_t>&first = lives.first, &last = lives.last;
  constexpr size_t kNever = Lives::kNever;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorSlot& out = program.outputs[i];
    plan.direct.push_back(false);
    if (!hasElements(out)) continue;
    Plan::Home& home = plan.homes[out.place.buffer];
    const Buffer& buffer = program.buffers[out.place.buffer];
    if (buffer.kind == Buffer::Kind::Temporary && !written[out.place.buffer]) {
      throw NotAhead(fmt::format("nothing computes the result '{}' ahead of time", out.name));
    }
    if (buffer.kind == Buffer::Kind::Temporary && home.kind == Plan::Home::Kind::Unused &&
        !buffer.swapped) {
      home = {Plan::Home::Kind::Output, 0, static_cast<uint32_t>(i)};
      plan.direct.back() = true;
    } else if (buffer.kind == Buffer::Kind::Constant && first[out.place.buffer] == kNever) {
      first[out.place.buffer] = 0;
    }
    last[out.place.buffer] = program.steps.size();
  }
  for (const auto& [buffer, output] : program.alternates) {
    plan.homes[buffer] = {Plan::Home::Kind::Output, 0, output};
  }
  std::vector<Span> spans;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    Plan::Home& home = plan.homes[b];
    if (first[b] == kNever || home.kind == Plan::Home::Kind::Output ||
        buffer.kind == Buffer::Kind::Window) {
      continue;
    }
    if (buffer.kind == Buffer::Kind::Input) {
      home = {Plan::Home::Kind::Input, 0, buffer.index};
    } else if (buffer.kind == Buffer::Kind::Constant) {
      home = {Plan::Home::Kind::Weights, weights.place(buffer), 0};
    } else {
      spans.push_back({b, first[b], last[b], aligned(buffer.bytes)});
    }
  }
  plan.memory_bytes = placeInMemory(spans);
  for (const Span& span : spans) {
    plan.homes[span.buffer] = {Plan::Home::Kind::Memory, span.offset, 0};
  }
  plan.spans = std::move(spans);
  return plan;
}

}  // namespace wick::aot
