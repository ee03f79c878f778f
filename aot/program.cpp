#include "aot/program.h"

#include <type_traits>

namespace wick::aot {

namespace {

// Calls visit(place, written) for each Place that a step reads, then for each that it writes. S is a step,
// const or not.
template <class S, class Visit>
void forEachPlace(S& step, Visit visit) {
  const auto read = [&](auto& place) { visit(place, false); };
  const auto readAny = [&](auto& place) {
    if (place) visit(*place, false);
  };
  const auto write = [&](auto& place) { visit(place, true); };
  std::visit(
      [&](auto& s) {
        using T = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<T, KernelStep>) {
          const size_t first_store = s.kernel->accesses.size() - s.kernel->stores.size();
          for (size_t a = 0; a < s.places.size(); ++a) {
            if (!s.kernel->accesses[a].isIndex()) visit(s.places[a], a >= first_store);
          }
        } else if constexpr (std::is_same_v<T, SmallProductStep> ||
                             std::is_same_v<T, PlainProductStep>) {
          read(s.a);
          read(s.b);
          readAny(s.bias);
          write(s.c);
        } else if constexpr (std::is_same_v<T, LibraryStep>) {
          read(s.from);
          read(s.weights);
          readAny(s.bias);
          readAny(s.addend);
          if (s.residual == LibraryStep::Residual::InResult) read(s.to);
          write(s.to);
        } else if constexpr (std::is_same_v<T, ConvolutionStep>) {
          read(s.from);
          read(s.weights);
          readAny(s.bias);
          readAny(s.residual);
          if (s.scratch) write(*s.scratch);
          write(s.to);
        } else if constexpr (std::is_same_v<T, PoolStep>) {
          read(s.from);
          write(s.to);
          if (s.indices) write(*s.indices);
        } else if constexpr (std::is_same_v<T, FillStep>) {
          readAny(s.from);
          write(s.to);
        } else if constexpr (std::is_same_v<T, BranchStep>) {
          read(s.condition);
        } else if constexpr (std::is_same_v<T, SizeStep>) {
          read(s.count);
        } else if constexpr (std::is_same_v<T, LoopStep>) {
          readAny(s.told_rounds);
          readAny(s.condition);
          write(s.round);
        } else if constexpr (std::is_same_v<T, WindowStep>) {
          read(s.from);
          read(s.index);
        } else if constexpr (std::is_same_v<T, FunctionStep> ||
                             std::is_same_v<T, DeviceKernelStep>) {
          using How = FunctionStep::How;
          for (auto& operand : s.operands) {
            if (operand.how != How::Writes) readAny(operand.place);
          }
          for (auto& operand : s.operands) {
            if (operand.how != How::Reads && operand.place) write(*operand.place);
          }
        } else if constexpr (std::is_same_v<T, NumberStep>) {
          for (auto& operand : s.from) read(operand.place);
          write(s.to.place);
        }
      },
      step.what);
}

}  // namespace

std::vector<Use> usesOf(const Step& step) {
  std::vector<Use> uses;
  if (const auto* swap = std::get_if<SwapStep>(&step.what)) {
    return {{swap->next, false}, {swap->carried, true}};
  }
  forEachPlace(step, [&](const Place& place, bool written) {
    uses.push_back({place.buffer, written});
  });
  if (const auto* window = std::get_if<WindowStep>(&step.what)) {
    uses.push_back({window->window, true});
  }
  return uses;
}

const DimVector& sizesOf(const TensorSlot& slot) {
  return slot.most.empty() ? slot.layout.sizes : slot.most;
}

std::vector<std::vector<Use>> usesWithWholes(const Program& program) {
  std::unordered_map<uint32_t, uint32_t> wholes;
  std::vector<std::vector<Use>> all;
  for (const Step& step : program.steps) {
    std::vector<Use> uses = usesOf(step);
    for (size_t i = 0, own = uses.size(); i < own; ++i) {
      const auto whole = wholes.find(uses[i].buffer);
      if (whole != wholes.end()) uses.push_back({whole->second, uses[i].written});
    }
    if (const auto* window = std::get_if<WindowStep>(&step.what)) {
      const auto outer = wholes.find(window->from.buffer);
      wholes[window->window] = outer == wholes.end() ? window->from.buffer : outer->second;
    }
    all.push_back(std::move(uses));
  }
  return all;
}

void renameBuffers(Step& step, const std::unordered_map<uint32_t, uint32_t>& names) {
  const auto rename = [&](uint32_t& buffer) {
    const auto it = names.find(buffer);
    if (it != names.end()) buffer = it->second;
  };
  forEachPlace(step, [&](Place& place, bool) { rename(place.buffer); });
  if (auto* window = std::get_if<WindowStep>(&step.what)) rename(window->window);
  if (auto* swap = std::get_if<SwapStep>(&step.what)) rename(swap->carried), rename(swap->next);
  if (auto* loop = std::get_if<LoopStep>(&step.what)) {
    for (uint32_t& buffer : loop->swapped) rename(buffer);
  }
}

}  // namespace wick::aot
