// Buffers that live at the same time lie apart; the largest are placed first, each at the lowest offset
// that is free while it lives.
#include "aot/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

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

// What decides which steps run.
bool isStructure(const Step& step) {
  return std::holds_alternative<BranchStep>(step.what) ||
         std::holds_alternative<OtherwiseStep>(step.what) ||
         std::holds_alternative<EndStep>(step.what) || std::holds_alternative<RaiseStep>(step.what);
}

void removeDeadSteps(Program& program) {
  std::vector<bool> needed(program.buffers.size());
  for (const TensorSlot& out : program.outputs) {
    if (hasElements(out)) needed[out.place.buffer] = true;
  }
  std::vector<Step> live;
  for (size_t i = program.steps.size(); i-- > 0;) {
    Step& step = program.steps[i];
    const std::vector<Use> uses = usesOf(step);
    const bool wanted = std::ranges::any_of(
        uses, [&](const Use& use) { return use.written && needed[use.buffer]; });
    if (!wanted && !isStructure(step)) continue;
    for (const Use& use : uses) needed[use.buffer] = true;
    live.push_back(std::move(step));
  }
  std::ranges::reverse(live);
  program.steps = std::move(live);
}

// Known contents that a call changes are copied into memory first.
void copyWrittenConstants(Program& program) {
  std::vector<Step> copies;
  std::vector<bool> seen(program.buffers.size());
  for (const Step& step : program.steps) {
    for (const Use& use : usesOf(step)) {
      if (!use.written || seen[use.buffer]) continue;
      seen[use.buffer] = true;
      if (program.buffers[use.buffer].kind != Buffer::Kind::Constant) continue;
      const auto kept = static_cast<uint32_t>(program.buffers.size());
      program.buffers.push_back(program.buffers[use.buffer]);
      Buffer& changed = program.buffers[use.buffer];
      changed.kind = Buffer::Kind::Temporary;
      changed.data = Tensor();
      copies.push_back({FillStep{{use.buffer, 0}, Place{kept, 0}}, "constant", ""});
    }
  }
  program.steps.insert(program.steps.begin(), copies.begin(), copies.end());
}

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
  constexpr size_t kNever = std::numeric_limits<size_t>::max();
  std::vector<size_t> first(program.buffers.size(), kNever), last(program.buffers.size(), 0);
  std::vector<bool> written(program.buffers.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const Use& use : usesOf(program.steps[i])) {
      const Buffer& buffer = program.buffers[use.buffer];
      // Of a tensor without elements nothing is read.
      if (!use.written && !written[use.buffer] && buffer.kind == Buffer::Kind::Temporary &&
          buffer.bytes > 0) {
        throw NotAhead(
            fmt::format("{} reads memory that nothing wrote ahead of time", program.steps[i].name));
      }
      first[use.buffer] = std::min(first[use.buffer], i);
      last[use.buffer] = i;
      // What the step reads is looked at before what it writes, because uses list reads first.
      written[use.buffer] = written[use.buffer] || use.written;
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorSlot& out = program.outputs[i];
    plan.direct.push_back(false);
    if (!hasElements(out)) continue;
    Plan::Home& home = plan.homes[out.place.buffer];
    const Buffer& buffer = program.buffers[out.place.buffer];
    if (buffer.kind == Buffer::Kind::Temporary && !written[out.place.buffer]) {
      throw NotAhead(fmt::format("nothing computes the result '{}' ahead of time", out.name));
    }
    if (buffer.kind == Buffer::Kind::Temporary && home.kind == Plan::Home::Kind::Unused) {
      home = {Plan::Home::Kind::Output, 0, static_cast<uint32_t>(i)};
      plan.direct.back() = true;
    } else if (buffer.kind == Buffer::Kind::Constant && first[out.place.buffer] == kNever) {
      first[out.place.buffer] = 0;
    }
    last[out.place.buffer] = program.steps.size();
  }
  std::vector<Span> spans;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    Plan::Home& home = plan.homes[b];
    if (first[b] == kNever || home.kind == Plan::Home::Kind::Output) continue;
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
