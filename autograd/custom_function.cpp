#include "autograd/custom_function.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "autograd/saved_value.h"
#include "core/error.h"
#include "core/grad_mode.h"

namespace wick::autograd {

struct FunctionContext::State {
  // As forward said; empty once it has run.
  std::vector<Tensor> to_save, dirty, without_gradient;
  bool materialize = true;
  std::vector<bool> needs;
  // Of the call. Several threads may walk here.
  std::mutex mutex;
  std::vector<SavedValue> saved;
  bool released = false;
  Node* node = nullptr;  // whose state this is
};

FunctionContext::FunctionContext() : state_(std::make_unique<State>()) {}
FunctionContext::~FunctionContext() = default;

void FunctionContext::saveForBackward(std::vector<Tensor> tensors) {
  state_->to_save = std::move(tensors);
}
void FunctionContext::markDirty(std::vector<Tensor> tensors) {
  state_->dirty = std::move(tensors);
}
void FunctionContext::markNonDifferentiable(std::vector<Tensor> tensors) {
  state_->without_gradient = std::move(tensors);
}
void FunctionContext::setMaterializeGrads(bool on) {
  state_->materialize = on;
}

bool FunctionContext::needsInputGrad(size_t input) const {
  WICK_CHECK(input < state_->needs.size(), "needsInputGrad: there are {} inputs, none is {}",
             state_->needs.size(), input);
  return state_->needs[input];
}

std::vector<Tensor> FunctionContext::savedTensors() const {
  std::lock_guard lock(state_->mutex);
  WICK_CHECK(!state_->released, "{}", kAlreadyReleased);
  // Within forward they are what they are.
  if (!state_->node) return state_->to_save;
  std::vector<Tensor> out;
  for (const SavedValue& s : state_->saved) {
    out.push_back(s.unpack(*state_->node).toTensor());
  }
  return out;
}

std::string nameOfType(const std::type_info& type) {
  int status = 0;
  char* const readable = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  const std::string whole = readable ? readable : type.name();
  std::free(readable);
  const size_t last = whole.rfind("::");
  return last == std::string::npos ? whole : whole.substr(last + 2);
}

namespace {

bool contains(const std::vector<Tensor>& tensors, const Tensor& t) {
  return std::ranges::any_of(tensors, [&](const Tensor& o) { return o.isSame(t); });
}

std::optional<size_t> indexIn(const std::vector<IValue>& inputs, const Tensor& t) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isTensor() && inputs[i].rawObject() == t.impl()) return i;
  }
  return std::nullopt;
}

class CustomNode : public Node {
 public:
  CustomNode(std::shared_ptr<CustomFunction> function, std::unique_ptr<FunctionContext> context)
      : function_(std::move(function)), context_(std::move(context)) {
    context_->state().node = this;
  }
  std::string name() const override { return function_->name(); }

  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    const FunctionContext::State& state = context_->state();
    std::vector<Tensor> given = gradients;
    for (size_t i = 0; i < given.size() && state.materialize; ++i) {
      if (!given[i].defined() && present_.at(i)) given[i] = zerosFor(shapes()[i]);
    }
    std::vector<Tensor> found = function_->backward(*context_, given);
    const size_t expected = next().size();
    while (found.size() > expected && !found.back().defined()) found.pop_back();
    WICK_CHECK(found.size() == expected,
               "function {} returned an incorrect number of gradients (expected {}, got {})",
               name(), expected, found.size());
    for (size_t i = 0; i < expected; ++i) {
      WICK_CHECK(!found[i].defined() || is_tensor_.at(i),
                 "function {} returned a gradient different from None at position {}, but the "
                 "corresponding forward input was not a Variable",
                 name(), i + 1);
    }
    return found;
  }

  void releaseSaved() override {
    FunctionContext::State& state = context_->state();
    std::vector<SavedValue> dropped;  // without the mutex
    std::lock_guard lock(state.mutex);
    if (!state.saved.empty()) state.released = true;
    dropped.swap(state.saved);
  }

  // ---- while it is made ----

  void setInputs(const std::vector<IValue>& inputs) {
    std::vector<Edge> edges;
    for (const IValue& v : inputs) {
      is_tensor_.push_back(v.isTensor());
      edges.push_back(v.isTensor() ? gradientEdge(v.toTensor()) : Edge());
    }
    setNext(std::move(edges));
  }

  // Gives the results their history; where one must be another tensor than forward returned, it is
  // replaced.
  void setResults(const std::vector<IValue>& inputs, std::vector<Tensor>& results) {
    FunctionContext::State& state = context_->state();
    for (const Tensor& t : state.dirty) {
      WICK_CHECK(contains(results, t),
                 "{}: a tensor that was marked as written to is not among the results", name());
    }
    const std::vector<Tensor> returned = results;
    for (size_t i = 0; i < results.size(); ++i) {
      present_.push_back(results[i].defined());
      if (results[i].defined()) {
        setResult(inputs, std::span(returned).first(i), results[i]);
      } else {
        addAbsentResult();
      }
    }
    // What was an input is kept as it was before, a result as it is now.
    for (const Tensor& t : state.to_save) {
      const auto at = std::ranges::find_if(returned, [&](const Tensor& o) { return o.isSame(t); });
      const auto index = static_cast<size_t>(at - returned.begin());
      const bool is_input = indexIn(inputs, t).has_value() && !contains(state.dirty, t);
      if (at == returned.end() || is_input) {
        state.saved.push_back(SavedValue::argument(IValue(t)));
      } else if (contains(state.without_gradient, t)) {
        state.saved.push_back(SavedValue::argument(IValue(withoutHistory(t))));
      } else {
        state.saved.push_back(SavedValue::result(IValue(t), static_cast<uint32_t>(index)));
      }
    }
    state.to_save.clear();
    state.dirty.clear();
    state.without_gradient.clear();
  }

 private:
  void setResult(const std::vector<IValue>& inputs, std::span<const Tensor> earlier, Tensor& t) {
    const FunctionContext::State& state = context_->state();
    const bool repeated =
        std::ranges::any_of(earlier, [&](const Tensor& o) { return o.isSame(t); });
    const auto input = indexIn(inputs, t);
    const bool differentiable =
        (isFloating(t.dtype()) || isComplex(t.dtype())) && !contains(state.without_gradient, t);
    if (input && contains(state.dirty, t) && !repeated) {
      checkMayWrite(t);
      if (differentiable) {
        rebaseHistory(t, Ref<Node>(this), *input);
      } else {
        addResult(t);
      }
      return;
    }
    // The tensor of somebody else keeps its own history.
    if (input || repeated || requiresGradient(t)) t = t.detach();
    if (!differentiable) {
      addResult(t);
      return;
    }
    for (const IValue& v : inputs) {
      if (!v.isTensor() || !v.toTensor().sharesStorage(t)) continue;
      setViewOf(t, v.toTensor(), ViewOrigin::Custom);
      break;
    }
    setHistory(t, Ref<Node>(this));
  }

  const std::shared_ptr<CustomFunction> function_;
  const std::unique_ptr<FunctionContext> context_;
  std::vector<bool> is_tensor_;  // of each input
  std::vector<bool> present_;    // of each result: whether there is one
};

bool holdsGradients(const IValue& v, int depth = 0) {
  constexpr int kMaxDepth = 64;
  if (v.isTensor()) return requiresGradient(v.toTensor());
  if (depth >= kMaxDepth || !(v.isList() || v.isTuple())) return false;
  return std::ranges::any_of(v.elements(),
                             [&](const IValue& e) { return holdsGradients(e, depth + 1); });
}

}  // namespace

std::vector<Tensor> applyCustom(std::shared_ptr<CustomFunction> function,
                                std::vector<IValue> inputs) {
  auto context = std::make_unique<FunctionContext>();
  FunctionContext::State& state = context->state();
  bool needed = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool wants = gradEnabled() && holdsGradients(inputs[i]);
    WICK_CHECK(!wants || inputs[i].isTensor(),
               "{}: input {} holds tensors that require gradients; pass them by themselves",
               function->name(), i);
    state.needs.push_back(wants);
    needed |= wants;
  }
  Ref<CustomNode> node;
  FunctionContext& ctx = *context;
  if (needed) {
    // The edges are those of the inputs before forward writes to any.
    node = makeRef<CustomNode>(function, std::move(context));
    node->setInputs(inputs);
    state.node = nullptr;  // until forward has run
  }
  std::vector<Tensor> results;
  {
    const GradModeGuard off(false);
    results = function->forward(ctx, inputs);
  }
  if (!node) return results;
  state.node = node.get();
  node->setResults(inputs, results);
  if (detectsAnomaly()) noteRecorded(*node);
  return results;
}

}  // namespace wick::autograd
