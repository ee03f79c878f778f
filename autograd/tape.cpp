#include "autograd/tape.h"

#include <atomic>

#include "autograd/gradients.h"
#include "autograd/views.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/call.h"

namespace wick::autograd {

namespace {

std::atomic<uint64_t> next_sequence{0};

// What TensorImpl::history holds.
struct History : RefCounted {
  Edge edge;       // of a tensor that comes from others
  Ref<Leaf> leaf;  // of a leaf that others came from, or that has a gradient
  Ref<Leaf> kept;  // of a tensor that retains its gradient
  Tensor base;     // of a view; itself no view
  bool several = false;
  uint32_t version = 0;  // of the memory, when `edge` was set
};

History* find(const Tensor& t) {
  return static_cast<History*>(t.impl()->history.get());
}

History& make(const Tensor& t) {
  if (!t.impl()->history) t.impl()->history = makeRef<History>();
  return *find(t);
}

Leaf& leafOf(const Tensor& t) {
  History& history = make(t);
  if (!history.leaf) history.leaf = makeRef<Leaf>(t);
  return *history.leaf;
}

void setEdge(const Tensor& t, Edge edge) {
  History& history = make(t);
  history.edge = std::move(edge);
  history.version = t.storage()->version();
  t.impl()->requires_grad = true;
}

}  // namespace

Node::Node() : sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

uint32_t Node::addResult(const Tensor& t) {
  shapes_.emplace_back(t);
  return static_cast<uint32_t>(shapes_.size() - 1);
}

void Node::addSink(uint32_t index, Ref<Leaf> sink) {
  std::lock_guard lock(sinks_mutex_);
  sinks_.push_back({index, std::move(sink)});
}

std::vector<Ref<Leaf>> Node::sinksOf(uint32_t index) const {
  std::lock_guard lock(sinks_mutex_);
  std::vector<Ref<Leaf>> found;
  for (const Sink& sink : sinks_) {
    if (sink.index == index) found.push_back(sink.leaf);
  }
  return found;
}

std::vector<Tensor> Leaf::apply(const std::vector<Tensor>& gradients) {
  if (gradients[0].defined()) accumulate(gradients[0]);
  return {};
}

Tensor Leaf::gradient() const {
  std::lock_guard lock(mutex_);
  return gradient_;
}

void Leaf::setGradient(Tensor gradient) {
  std::lock_guard lock(mutex_);
  gradient_ = std::move(gradient);
}

void Leaf::accumulate(const Tensor& gradient) {
  std::lock_guard lock(mutex_);
  if (gradEnabled()) {
    gradient_ = sumOfGradients(gradient_, gradient);
  } else if (gradient_.defined()) {
    static const OperatorHandle kAdd("aten::add_", "Tensor");
    kAdd(gradient_, gradient, Scalar(int64_t{1}));
  } else {
    // Nobody else may see the additions that follow.
    const bool ours = gradient.impl()->useCount() == 1 && gradient.storage()->useCount() == 1;
    gradient_ = ours ? gradient.detach() : gradient.detach().clone();
  }
}

bool requiresGradient(const Tensor& t) {
  if (!t.defined()) return false;
  if (t.impl()->requires_grad) return true;
  const History* history = find(t);
  return history && history->base.defined() && history->base.impl()->requires_grad;
}

bool isLeaf(const Tensor& t) {
  return !requiresGradient(t) || !find(t) || (!find(t)->edge && !find(t)->base.defined());
}

Edge gradientEdge(const Tensor& t) {
  if (!requiresGradient(t)) return {};
  History* history = find(t);
  if (history && history->base.defined() && requiresGradient(history->base) &&
      (!history->edge || history->version != t.storage()->version())) {
    // The base, or another view of it, was written to.
    setEdge(t, edgeOfView(t, history->base));
  }
  if (history && history->edge) return history->edge;
  return {Ref<Node>(&leafOf(t)), 0};
}

Tensor gradientOf(const Tensor& t) {
  const History* history = find(t);
  if (!history) return {};
  const Ref<Leaf>& leaf = history->kept ? history->kept : history->leaf;
  return leaf ? leaf->gradient() : Tensor();
}

void setGradient(const Tensor& t, Tensor gradient) {
  if (!gradient.defined() && !find(t)) return;
  leafOf(t).setGradient(std::move(gradient));
}

void retainGradient(const Tensor& t) {
  WICK_CHECK(requiresGradient(t), "can't retain_grad on Tensor that has requires_grad=False");
  if (isLeaf(t)) return;
  const Edge edge = gradientEdge(t);
  History& history = make(t);
  if (history.kept) return;
  history.kept = makeRef<Leaf>(t);
  edge.node->addSink(edge.index, history.kept);
}

bool retainsGradient(const Tensor& t) {
  return find(t) && find(t)->kept;
}

void setHistory(const Tensor& t, Ref<Node> node) {
  const uint32_t index = node->addResult(t);
  setEdge(t, {std::move(node), index});
}

void rebaseHistory(const Tensor& t, Ref<Node> node, size_t first) {
  History* history = find(t);
  if (!history || !history->base.defined()) {
    setHistory(t, std::move(node));
    return;
  }
  const Tensor base = history->base;
  node->addResult(t);
  Ref<Node> writes = nodeOfWrite(base, t, std::move(node), first);
  setHistory(base, std::move(writes));
  // Its edge is made anew from that of the base.
  history->edge = {};
  t.impl()->requires_grad = true;
}

void setViewOf(const Tensor& view, const Tensor& base, bool several) {
  const History* of = find(base);
  History& history = make(view);
  history.base = of && of->base.defined() ? of->base : base;
  history.several = several || (of && of->several);
  history.version = view.storage()->version();
}

void checkMayWrite(const Tensor& t) {
  const History* history = find(t);
  if (history && history->base.defined()) {
    WICK_CHECK(
        !requiresGradient(history->base) || !isLeaf(history->base),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    WICK_CHECK(!history->several,
               "a view that is one of several results of one operator is being modified in place; "
               "such a view cannot be written to while gradients are recorded. Make a copy of it "
               "first, or take the view by itself");
    return;
  }
  WICK_CHECK(!requiresGradient(t) || !isLeaf(t),
             "a leaf Variable that requires grad is being used in an in-place operation.");
}

void detachInPlace(const Tensor& t) {
  const History* history = find(t);
  WICK_CHECK(!history || !history->base.defined(),
             "Can't detach views in-place. Use detach() instead.");
  t.impl()->history = nullptr;
  t.impl()->requires_grad = false;
}

Tensor withoutHistory(const Tensor& t) {
  return t.detach();
}

Tensor withHistory(const Tensor& t, const Edge& edge) {
  Tensor copy = t.detach();
  if (edge) setEdge(copy, edge);
  return copy;
}

}  // namespace wick::autograd
