// Module::stateDict and Module::loadStateDict.
#include <fmt/format.h>

#include <unordered_set>

#include "core/error.h"
#include "runtime/module.h"

namespace wick {
namespace {

// Modules nest less deep, and one that holds itself is not walked for ever.
constexpr size_t kMaxDepth = 500;
// Shared modules are listed under each of their names, which can be exponentially many.
constexpr size_t kMaxNames = size_t{1} << 22;
// How many names of each sort a message lists.
constexpr size_t kMaxListed = 6;

void collect(const Module& module, const std::string& prefix, size_t depth,
             Module::Named<Tensor>& found) {
  WICK_CHECK(depth < kMaxDepth, "{}: modules are nested too deeply",
             readableClassName(module.type()->name()));
  const auto add = [&](const Module::Named<Tensor>& tensors) {
    for (const auto& [name, tensor] : tensors) {
      if (tensor.defined()) found.emplace_back(prefix + name, tensor);
      WICK_CHECK(found.size() <= kMaxNames, "{}: too many names of tensors",
                 readableClassName(module.type()->name()));
    }
  };
  add(module.parameters(/*recurse=*/false));
  add(module.buffers(/*recurse=*/false));
  for (const auto& [name, child] : module.children()) {
    collect(child, prefix + name + ".", depth + 1, found);
  }
}

std::string listed(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto shown = std::span(names).first(std::min(names.size(), kMaxListed));
  std::string text = fmt::format("\n  {}: {}", title, fmt::join(shown, ", "));
  if (names.size() > shown.size()) text += fmt::format(" and {} more", names.size() - shown.size());
  return text;
}

}  // namespace

IValue Module::stateDict() const {
  Named<Tensor> tensors;
  collect(*this, "", 0, tensors);
  auto dict = makeRef<DictObject>(types::String(), types::Tensor());
  for (auto& [name, tensor] : tensors) dict->set(IValue(name), IValue(tensor));
  return IValue(std::move(dict));
}

Module::StateMismatch Module::loadStateDict(const IValue& state, bool strict) const {
  if (!state.isDict()) {
    throw UsageError(
        fmt::format("loadStateDict: expected a dict of tensors by name, got {}", state.tagName()));
  }
  Named<Tensor> tensors;
  collect(*this, "", 0, tensors);
  StateMismatch mismatch;
  std::vector<std::string> wrong;
  std::vector<std::pair<Tensor, Tensor>> copies;  // to, from
  std::unordered_set<std::string> known;
  for (const auto& [name, tensor] : tensors) {
    known.insert(name);
    const IValue* value = state.toDict().find(IValue(name));
    if (value == nullptr) {
      mismatch.missing.push_back(name);
    } else if (!value->isTensor() || !value->toTensor().defined()) {
      wrong.push_back(fmt::format("{} (expected a tensor, got {})", name, value->tagName()));
    } else if (tensor.kind() == TensorKind::Dense &&
               value->toTensor().kind() != TensorKind::Dense) {
      wrong.push_back(fmt::format("{} (expected a dense tensor, got a {} one)", name,
                                  toString(value->toTensor().kind())));
    } else if (DimVector(value->toTensor().sizes()) != DimVector(tensor.sizes())) {
      wrong.push_back(fmt::format("{} (expected {}, got {})", name, tensor.describe(),
                                  value->toTensor().describe()));
    } else {
      copies.emplace_back(tensor, value->toTensor());
    }
  }
  for (const auto& [key, value] : state.toDict().items()) {
    const std::string name = key.isString() ? key.toString() : key.repr();
    if (!key.isString() || !known.contains(name)) mismatch.unexpected.push_back(name);
  }
  const bool names_fit = mismatch.missing.empty() && mismatch.unexpected.empty();
  if (!wrong.empty() || (strict && !names_fit)) {
    throw UsageError(fmt::format("loadStateDict: the state does not fit {}:{}{}{}",
                                 readableClassName(type()->name()),
                                 strict ? listed("missing", mismatch.missing) : "",
                                 strict ? listed("unexpected", mismatch.unexpected) : "",
                                 listed("of another shape or kind", wrong)));
  }
  for (const auto& [to, from] : copies) to.copyFrom(from);
  return mismatch;
}

}  // namespace wick
