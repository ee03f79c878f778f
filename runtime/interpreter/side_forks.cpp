#include "runtime/interpreter/side_forks.h"

#include <algorithm>
#include <optional>

#include "ir/depth.h"
#include "ir/graph.h"
#include "runtime/fusion/elements.h"
#include "runtime/interpreter/code.h"
#include "runtime/interpreter/interpreter_state.h"
#include "runtime/repeats.h"

namespace wick {

namespace {

constexpr size_t kMostOpen = 64;

// Looks at the device of all tensors; false where somebody could change what is given meanwhile, or
// where it lies on several devices.
bool findDevice(const IValue& value, std::optional<Device>& device) {
  return allElements(value, [&](const IValue& v) {
    if (!v.isTensor()) return !v.isCounted() || v.isString() || v.isObject();
    const Tensor t = v.toTensor();
    if (!t.defined() || t.device().isCpu()) return true;
    if (device && *device != t.device()) return false;
    device = t.device();
    return true;
  });
}

// The position of a fork among all of the graph, or how many there are.
bool countForks(const Block* block, const Node* until, size_t& number) {
  for (const Node* node : block->nodes()) {
    if (node == until) return true;
    number += node->kind() == prim::fork;
    for (const Block* inner : node->blocks()) {
      if (countForks(inner, until, number)) return true;
    }
  }
  return false;
}

}  // namespace

GroupBackend* besideOf(const Code& code, ForkSite& site, std::span<const IValue> arguments,
                       Device& device) {
  std::optional<Device> found;
  if (!std::ranges::all_of(arguments, [&](const IValue& v) { return findDevice(v, found); })) {
    return nullptr;
  }
  GroupBackend* const backend = found ? groupBackend(found->type) : nullptr;
  if (!backend) return nullptr;
  std::call_once(site.asked, [&] {
    size_t number = 0;
    withStackFor(*code.graph(), [&] { countForks(code.graph()->block(), site.node, number); });
    const std::vector<bool> beside = forksBeside(*code.graph());
    site.beside = number < beside.size() && beside[number];
  });
  device = *found;
  return site.beside ? backend : nullptr;
}

void SideForks::add(FutureRef future, std::unique_ptr<GroupBackend::SideWork> work,
                    std::vector<IValue> arguments) {
  if (open_.size() >= kMostOpen) joinAll();
  open_.push_back({std::move(future), std::move(arguments), std::move(work)});
}
void SideForks::join(const FutureObject& future) {
  if (open_.empty()) return;
  const auto it = std::ranges::find(open_, &future, [](const Open& o) { return o.future.get(); });
  if (it == open_.end()) return;
  it->work->join();
  open_.erase(it);
}
void SideForks::joinAll() noexcept {
  open_.clear();
}

FutureRef InterpreterState::forkOnThread(const Code& code, ForkSite& site, const Code& body,
                                         std::vector<IValue>& arguments, size_t depth) {
  std::unique_ptr<GroupBackend::SideWork> work;
  // Only the run's own function, whose end is that of the run: nothing behind it writes to what is
  // given.
  if (depth_ == 0 && frames_.size() == 1 && !asynchronous_ && !context_->turns()) {
    Device device;
    GroupBackend* const backend = besideOf(code, site, arguments, device);
    if (backend) work = backend->beginBeside(device);
  }
  if (!work && !mustStayOnThread()) {
    context_->side_forks.joinAll();
    return {};
  }
  const auto* type = site.node->output()->type()->as<FutureType>();
  auto future = makeRef<FutureObject>(type->element(), context_.get());
  try {
    InterpreterState state(body, arguments, context_, depth);
    future->complete(state.runToEnd());
  } catch (...) {
    future->fail(std::current_exception());
  }
  if (work) {
    work->leave();
    context_->side_forks.add(future, std::move(work), std::move(arguments));
  }
  return future;
}

}  // namespace wick
