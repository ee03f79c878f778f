#include "autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "autograd/gradients.h"
#include "autograd/views.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/common_calls.h"

namespace wick::autograd {

namespace {

std::atomic<uint64_t> next_sequence{0};

// What TensorImpl::history holds.
struct History : RefCounted {
  Edge edge;       // of a tensor that comes from others
  Ref<Leaf> leaf;  // of a leaf that others came from, or that has a gradient
  Ref<Leaf> kept;  // of a tensor that retains its gradient
  Tensor base;     // of a view; itself no view
  ViewOrigin origin = ViewOrigin::Plain;
  uint32_t version = 0;   // of the memory, when `edge` was set, or the view was made
  bool outdated = false;  // the edge of a view is to be found again
};

History* find(const Tensor& t) {
  return static_cast<History*>(t.impl()->history.get());
}

History& make(const Tensor& t) {
  if (History* history = find(t)) return *history;
  return *static_cast<History*>(t.impl()->history.attach(makeRef<History>()));
}

// Threads may read one tensor at a time, and what a read finds out is kept with the tensor: its
// leaf, and the edge of a view whose base was written to. Never destroyed, and taken again by
// whoever has it.
std::recursive_mutex& findings() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

Leaf& leafOf(const Tensor& t) {
  const std::lock_guard lock(findings());
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

Node::~Node() {
  noteMemory(-held_);
}

void Node::noteHeld(size_t bytes) {
  const auto more = static_cast<int64_t>(bytes + kBlockBytes);
  held_ += more;
  noteMemory(more);
}

void Node::setNext(std::vector<Edge> next) {
  noteHeld(next.capacity() * sizeof(Edge));
  next_ = std::move(next);
}

uint32_t Node::addResult(const Tensor& t) {
  noteHeld(sizeof(Shape));
  shapes_.emplace_back(t);
  return static_cast<uint32_t>(shapes_.size() - 1);
}

uint64_t Node::nextSequence() {
  return next_sequence.load(std::memory_order_relaxed);
}

Node::Waiting& Node::waiting() {
  if (!waiting_) waiting_ = std::make_unique<Waiting>();
  return *waiting_;
}

void Node::addSink(uint32_t index, Ref<Leaf> sink) {
  std::lock_guard lock(waiting_mutex_);
  waiting().sinks.push_back({index, std::move(sink)});
}

uint64_t Node::addHook(uint32_t index, Hook hook) {
  std::lock_guard lock(waiting_mutex_);
  Waiting& all = waiting();
  all.hooks.push_back({index, all.next_id, std::move(hook)});
  return all.next_id++;
}

void Node::removeHook(uint64_t id) {
  Hook dropped;  // destroyed without the mutex: it may hold anything
  std::lock_guard lock(waiting_mutex_);
  if (!waiting_) return;
  auto& hooks = waiting_->hooks;
  for (auto it = hooks.begin(); it != hooks.end(); ++it) {
    if (it->id != id) continue;
    dropped = std::move(it->hook);
    hooks.erase(it);
    return;
  }
}

bool Node::hasHooks() const {
  std::lock_guard lock(waiting_mutex_);
  return waiting_ && !waiting_->hooks.empty();
}

void Node::setPlace(SourceRange place) {
  std::lock_guard lock(waiting_mutex_);
  waiting().place = std::move(place);
}

SourceRange Node::place() const {
  std::lock_guard lock(waiting_mutex_);
  return waiting_ ? waiting_->place : SourceRange();
}

Tensor Node::passGradient(uint32_t index, Tensor gradient) const {
  // Hooks may add and remove hooks.
  std::vector<Hook> hooks;
  std::vector<Ref<Leaf>> sinks;
  {
    std::lock_guard lock(waiting_mutex_);
    if (!waiting_) return gradient;
    for (const auto& h : waiting_->hooks) {
      if (h.index == index) hooks.push_back(h.hook);
    }
    for (const auto& sink : waiting_->sinks) {
      if (sink.index == index) sinks.push_back(sink.leaf);
    }
  }
  for (const Hook& hook : hooks) {
    Tensor replaced = hook(gradient);
    if (!replaced.defined()) continue;
    const Shape& shape = shapes_.at(index);
    WICK_CHECK(std::ranges::equal(replaced.sizes(), shape.sizes),
               "a hook has changed the size of the gradient (was {} got {})",
               formatInts(shape.sizes), formatInts(replaced.sizes()));
    WICK_CHECK(replaced.dtype() == gradient.dtype(),
               "a hook has changed the type of the gradient (was {} got {})",
               toString(gradient.dtype()), toString(replaced.dtype()));
    gradient = std::move(replaced);
  }
  for (const Ref<Leaf>& sink : sinks) sink->accumulate(gradient);
  return gradient;
}

std::vector<Tensor> Leaf::apply(const std::vector<Tensor>& gradients) {
  if (!gradients[0].defined()) return {};
  accumulate(gradients[0]);
  std::vector<AfterHook> hooks;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, hook] : after_) hooks.push_back(hook);
  }
  for (const AfterHook& hook : hooks) {
    Tensor now = gradient();
    hook(now);
    setGradient(std::move(now));
  }
  return {};
}

uint64_t Leaf::addAfterHook(AfterHook hook) {
  std::lock_guard lock(mutex_);
  after_.emplace_back(next_after_, std::move(hook));
  return next_after_++;
}

bool Leaf::hasAfterHooks() const {
  std::lock_guard lock(mutex_);
  return !after_.empty();
}

void Leaf::removeAfterHook(uint64_t id) {
  AfterHook dropped;  // destroyed without the mutex
  std::lock_guard lock(mutex_);
  for (auto it = after_.begin(); it != after_.end(); ++it) {
    if (it->first != id) continue;
    dropped = std::move(it->second);
    after_.erase(it);
    return;
  }
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
  // An expanded tensor, as the gradient of a sum is, cannot be added to.
  const auto holdsSums = [](const Tensor& t) {
    return t.kind() != TensorKind::Dense || t.isNonOverlappingAndDense();
  };
  if (gradEnabled()) {
    gradient_ = sumOfGradients(gradient_, gradient);
  } else if (gradient_.defined()) {
    if (!holdsSums(gradient_)) gradient_ = gradient_.clone(MemoryFormat::Contiguous).detach();
    ops::addInto(gradient_, gradient, Scalar(int64_t{1}));
  } else {
    // Nobody else may see the additions that follow.
    const bool ours = gradient.impl()->useCount() == 1 && gradient.storage()->useCount() == 1 &&
                      holdsSums(gradient);
    gradient_ = ours ? gradient.detach() : copyOf(gradient);
  }
}

bool requiresGradient(const Tensor& t) {
  if (!t.defined()) return false;
  if (t.impl()->requires_grad) return true;
  const History* history = find(t);
  return history && history->base.defined() && history->base.impl()->requires_grad;
}

bool hasHooks(const Tensor& t) {
  const std::lock_guard lock(findings());
  const History* history = find(t);
  return history && history->leaf && (history->leaf->hasHooks() || history->leaf->hasAfterHooks());
}

bool isLeaf(const Tensor& t) {
  if (!requiresGradient(t)) return true;
  const std::lock_guard lock(findings());
  const History* const history = find(t);
  if (!history || history->edge) return !history;
  // See gradientEdge().
  return !history->base.defined() || !requiresGradient(history->base) ||
         !(history->outdated || history->version != t.storage()->version());
}

Edge gradientEdge(const Tensor& t) {
  if (!requiresGradient(t)) return {};
  History* history = find(t);
  // The edge of a view may be found again by another thread at this moment.
  if (history && !history->base.defined() && history->edge) return history->edge;
  const std::lock_guard lock(findings());
  history = find(t);
  // A view that nobody recorded, or made before its base required a gradient, is a leaf of its own
  // until the memory is written to.
  if (history && history->base.defined() && requiresGradient(history->base) &&
      (history->outdated || history->version != t.storage()->version())) {
    // The base, or another view of it, was written to.
    WICK_CHECK(
        history->origin != ViewOrigin::Unrecorded,
        "A view was created in no_grad mode and its base or another view of its base has "
        "been modified inplace with grad mode enabled. Given that this use case is ambiguous "
        "and error-prone, it is forbidden. You can clarify your code by moving both the view "
        "and the inplace either both inside the no_grad block (if you don't want the inplace "
        "to be tracked) or both outside (if you want the inplace to be tracked).");

    WICK_CHECK(history->origin != ViewOrigin::Custom || !history->edge,
               "Output {} of {} is a view and its base or another view of its base has been "
               "modified inplace. This view was created inside a custom Function, whose derivative "
               "does not know of that. You can fix this by cloning the output of the custom "
               "Function.",
               history->edge.index, history->edge.node->name());
    // Whether it requires a gradient is for its base to say: other threads may read its own mark.
    history->edge = edgeOfView(t, history->base);
    history->version = t.storage()->version();
    history->outdated = false;
  }
  if (history && history->edge) return history->edge;
  return {Ref<Node>(&leafOf(t)), 0};
}

Tensor gradientOf(const Tensor& t) {
  Ref<Leaf> leaf;
  {
    const std::lock_guard lock(findings());
    const History* history = find(t);
    if (!history) return {};
    leaf = history->kept ? history->kept : history->leaf;
  }
  return leaf ? leaf->gradient() : Tensor();
}

void setGradient(const Tensor& t, Tensor gradient) {
  if (!gradient.defined() && !find(t)) return;
  leafOf(t).setGradient(std::move(gradient));
}

Ref<Leaf> leafFor(const Tensor& t) {
  return Ref<Leaf>(&leafOf(t));
}

void retainGradient(const Tensor& t) {
  WICK_CHECK(requiresGradient(t), "can't retain_grad on Tensor that has requires_grad=False");
  if (isLeaf(t)) return;
  const Edge edge = gradientEdge(t);
  const std::lock_guard lock(findings());
  History& history = make(t);
  if (history.kept) return;
  history.kept = makeRef<Leaf>(t);
  edge.node->addSink(edge.index, history.kept);
}

bool retainsGradient(const Tensor& t) {
  const std::lock_guard lock(findings());
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
  history->outdated = true;
  t.impl()->requires_grad = true;
}

void setViewOf(const Tensor& view, const Tensor& base, ViewOrigin origin) {
  const History* of = find(base);
  History& history = make(view);
  history.base = of && of->base.defined() ? of->base : base;
  // A view of a view that must not be written to must not be either.
  const bool inherits = of && of->base.defined() && of->origin != ViewOrigin::Plain;
  history.origin = inherits && origin == ViewOrigin::Plain ? of->origin : origin;
  history.version = view.storage()->version();
}

Tensor baseOf(const Tensor& t) {
  const History* history = find(t);
  return history ? history->base : Tensor();
}

bool isPlainView(const Tensor& t) {
  const History* const history = find(t);
  return history && history->base.defined() && history->origin == ViewOrigin::Plain;
}

ViewTraits viewTraits(const Tensor& t) {
  const History* const history = find(t);
  if (!history || !history->base.defined()) return {};
  const bool gradient = requiresGradient(history->base);
  return {history->origin, gradient && isLeaf(history->base), !gradient && t.impl()->requires_grad};
}

bool isOneOfSeveralViews(const Tensor& t) {
  const History* const history = find(t);
  return history && history->base.defined() && history->origin == ViewOrigin::Several;
}

namespace {

// Of a view that is no plain one: why it must not be written to.
void checkOrigin(const Tensor& view, const History& history) {
  if (history.origin == ViewOrigin::Plain) return;
  if (history.origin == ViewOrigin::Unrecorded) {
    throwRuntimeError(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the no_grad block "
        "(if you don't want the inplace to be tracked) or both outside (if you want the inplace to "
        "be tracked).");
  }
  const Edge edge = gradientEdge(view);
  const char* const why =
      history.origin == ViewOrigin::Several
          ? "This view is the output of a function that returns multiple views. Such functions do "
            "not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one."
          : "This view was created inside a custom Function (or because an input was returned "
            "as-is) and the autograd logic to handle view+inplace would override the custom "
            "backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function.";
  throwRuntimeError("Output {} of {} is a view and is being modified inplace. {}", edge.index,
                    edge ? edge.node->name() : "a function", why);
}

}  // namespace

void checkMayWrite(const Tensor& t) {
  const History* history = find(t);
  if (history && history->base.defined()) {
    checkOrigin(t, *history);
    WICK_CHECK(
        !requiresGradient(history->base) || !isLeaf(history->base),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    return;
  }
  WICK_CHECK(!requiresGradient(t) || !isLeaf(t),
             "a leaf Variable that requires grad is being used in an in-place operation.");
}

void detachInPlace(const Tensor& t) {
  const History* history = find(t);
  WICK_CHECK(!history || !history->base.defined(),
             "Can't detach views in-place. Use detach() instead. If you are using "
             "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
             "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
             "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
             "function in torch/optim/optimizer.py as the solution.");
  t.impl()->history.clear();
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
