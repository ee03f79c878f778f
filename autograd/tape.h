// The tape: how tensors came about, as far as gradients are wanted.
//
// A tensor that requires a gradient either is a leaf or has an edge to the Node that made it. Nodes
// have edges to those that made their inputs, so the tape is a graph of nodes from the results
// backwards; the engine (autograd/engine.h) walks it. Nodes are immutable, but that they lose what
// they saved when a walk has used it; several threads may walk shared parts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/source_range.h"
#include "core/tensor.h"

namespace wick::autograd {

class GraphNode;
class Leaf;
class Node;

// Where the gradient of a tensor goes: it is that of the node's result `index`.
struct Edge {
  Ref<Node> node;  // null: nowhere
  uint32_t index = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// What a gradient must look like.
struct Shape {
  DimVector sizes;
  DType dtype = DType::Float;
  Device device;
  Shape() = default;
  explicit Shape(const Tensor& t) : sizes(t.sizes()), dtype(t.dtype()), device(t.device()) {}
};

class Node : public RefCounted {
 public:
  Node();
  ~Node() override;
  // "MulBackward0", for messages.
  virtual std::string name() const = 0;
  // From the gradients of the results, which may be undefined where nothing depended on them, those
  // along each edge of next(); undefined for zeros. Throws RuntimeError.
  virtual std::vector<Tensor> apply(const std::vector<Tensor>& gradients) = 0;
  // Gives up what is only needed to apply.
  virtual void releaseSaved() {}
  // apply() and releaseSaved(); may give up each value as soon as it was read.
  virtual std::vector<Tensor> applyLast(const std::vector<Tensor>& gradients) {
    std::vector<Tensor> results = apply(gradients);
    releaseSaved();
    return results;
  }

  // Itself when it stands for several operators.
  virtual GraphNode* asGraph() { return nullptr; }

  const std::vector<Edge>& next() const { return next_; }
  void setNext(std::vector<Edge> next);
  // Of the results, in order.
  const std::vector<Shape>& shapes() const { return shapes_; }
  uint32_t addResult(const Tensor& t);
  // In place of a result that is None.
  void addAbsentResult() { shapes_.emplace_back(); }
  // Leaves to which the gradient of a result is added when it is complete (retain_grad).
  void addSink(uint32_t index, Ref<Leaf> sink);
  // Called with the gradient of a result when it is complete, in the order in which they were added
  // and before the sinks; what they return stands for it, unless it is undefined.
  using Hook = std::function<Tensor(const Tensor&)>;
  uint64_t addHook(uint32_t index, Hook hook);
  void removeHook(uint64_t id);
  bool hasHooks() const;
  // Passes the gradient of a result through the hooks, then to the sinks.
  Tensor passGradient(uint32_t index, Tensor gradient) const;
  // Where the program made the call; known while anomalies are looked for (autograd/anomaly.h).
  void setPlace(SourceRange place);
  SourceRange place() const;
  // Later nodes have larger numbers than those they come from.
  uint64_t sequence() const { return sequence_; }
  // The number that the next node of the process will have.
  static uint64_t nextSequence();

 protected:
  // Counts memory that the node holds beside itself, until its end (core/memory_limit.h).
  void noteHeld(size_t bytes);

 private:
  static constexpr size_t kBlockBytes = 16;  // of malloc
  // What most nodes have none of: who waits for gradients of results, and the place.
  struct Waiting {
    struct Sink {
      uint32_t index;
      Ref<Leaf> leaf;
    };
    struct Hooked {
      uint32_t index;
      uint64_t id;
      Hook hook;
    };
    std::vector<Sink> sinks;
    std::vector<Hooked> hooks;
    uint64_t next_id = 0;
    SourceRange place;
  };
  Waiting& waiting();
  std::vector<Edge> next_;
  std::vector<Shape> shapes_;
  mutable std::mutex waiting_mutex_;
  std::unique_ptr<Waiting> waiting_;
  const uint64_t sequence_;
  int64_t held_ = 0;  // bytes
};

// A node that stands for all operators of a graph. Walks treat each of its results as if the operators
// were on the tape one by one.
class GraphNode : public Node {
 public:
  GraphNode* asGraph() final { return this; }
  // Says for each edge of next() whether a walk wants the gradient along it; null: for all.
  using Wanted = const std::vector<bool>*;
  // Returns for each result whether its gradient flows to a wanted edge.
  virtual std::vector<bool> resultsLeadingTo(const std::vector<bool>& wanted) const = 0;
  // apply(), as far as it is wanted. `last`: the operators that the walk comes through give up what
  // they saved.
  virtual std::vector<Tensor> applyFor(const std::vector<Tensor>& gradients, Wanted wanted,
                                       bool last) = 0;
  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) final {
    return applyFor(gradients, nullptr, /*last=*/false);
  }
  std::vector<Tensor> applyLast(const std::vector<Tensor>& gradients) final {
    return applyFor(gradients, nullptr, /*last=*/true);
  }
};

// The end of the tape at a leaf. It keeps the leaf's gradient, so that neither keeps the other.
class Leaf : public Node {
 public:
  explicit Leaf(const Tensor& t) { addResult(t); }
  std::string name() const override { return "AccumulateGrad"; }
  // Adds to the gradient.
  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override;
  Tensor gradient() const;
  void setGradient(Tensor gradient);
  void accumulate(const Tensor& gradient);
  // Called with the gradient after each addition of a walk; it may replace or remove it.
  using AfterHook = std::function<void(Tensor& gradient)>;
  uint64_t addAfterHook(AfterHook hook);
  void removeAfterHook(uint64_t id);
  bool hasAfterHooks() const;

 private:
  mutable std::mutex mutex_;
  Tensor gradient_;
  std::vector<std::pair<uint64_t, AfterHook>> after_;
  uint64_t next_after_ = 0;
};

// ---- of a tensor ----

// Whether gradients flow to the tensor: like Tensor::requiresGrad(), but a view knows of its base.
bool requiresGradient(const Tensor& t);
// Requires no gradient, or was marked to.
bool isLeaf(const Tensor& t);
// Where its gradient goes; null when it requires none.
Edge gradientEdge(const Tensor& t);
// The accumulated gradient of a leaf, or of a tensor that retains it; undefined for none.
Tensor gradientOf(const Tensor& t);
// Replaces it; an undefined one removes it.
void setGradient(const Tensor& t, Tensor gradient);
// Whether a function is called with the gradient of a tensor that is a leaf. Changes nothing.
bool hasHooks(const Tensor& t);
// Makes the walk keep the gradient of a tensor that is no leaf.
void retainGradient(const Tensor& t);
// The end of the tape at a leaf that requires a gradient.
Ref<Leaf> leafFor(const Tensor& t);
bool retainsGradient(const Tensor& t);

// Lets `t` come from the node's next result.
void setHistory(const Tensor& t, Ref<Node> node);
// The same for a tensor that was written to. Its views, and when it is a view its base and the
// base's other views, come from there too. `first` is the index in node.next() of what the tensor
// was before.
void rebaseHistory(const Tensor& t, Ref<Node> node, size_t first);
// How a view came about, as far as it matters to writes.
enum class ViewOrigin : uint8_t {
  Plain,
  Several,     // one of the results of an operator that makes several views
  Unrecorded,  // made while gradients were switched off
  Custom,      // by a function with a derivative of its own (autograd/custom_function.h)
};
// Lets `view`, which shares the memory of `base` and comes from it, know so.
void setViewOf(const Tensor& view, const Tensor& base, ViewOrigin origin);
// What the tensor is a view of; itself no view. Undefined for one that is no view.
Tensor baseOf(const Tensor& t);
// Returns whether it is the only view that an operator made with gradients on, so that writes to either reach the other.
bool isPlainView(const Tensor& t);
// Returns whether it is one of the results of an operator that makes several views, or a view of one.
bool isOneOfSeveralViews(const Tensor& t);
// The ways in which a view behaves otherwise than other tensors.
struct ViewTraits {
  ViewOrigin origin = ViewOrigin::Plain;
  bool of_leaf = false;  // whether its base is a leaf that requires a gradient
  bool alone = false;    // whether it requires a gradient by itself, and its base none
  bool operator==(const ViewTraits&) const = default;
};
// Returns nothing but defaults for tensors that are no views, and for views that may be written to.
ViewTraits viewTraits(const Tensor& t);
// RuntimeError when the tensor must not be written to while gradients are recorded.
void checkMayWrite(const Tensor& t);
// Forgets where the tensor comes from, and that it requires a gradient.
void detachInPlace(const Tensor& t);

// A tensor with the same elements and no history: for what nodes save.
Tensor withoutHistory(const Tensor& t);
// The same, coming from an edge.
Tensor withHistory(const Tensor& t, const Edge& edge);

}  // namespace wick::autograd
