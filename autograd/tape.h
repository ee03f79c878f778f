// The tape: how tensors came about, as far as gradients are wanted.
//
// A tensor that requires a gradient either is a leaf or has an edge to the Node that made it. Nodes
// have edges to those that made their inputs, so the tape is a graph of nodes from the results
// backwards; the engine (autograd/engine.h) walks it. Nodes are immutable, but that they lose what
// they saved when a walk has used it; several threads may walk shared parts.
#pragma once

#include <mutex>
#include <vector>

#include "core/tensor.h"

namespace wick::autograd {

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
  Shape() = default;
  explicit Shape(const Tensor& t) : sizes(t.sizes()), dtype(t.dtype()) {}
};

class Node : public RefCounted {
 public:
  Node();
  // "MulBackward0", for messages.
  virtual std::string name() const = 0;
  // From the gradients of the results, which may be undefined where nothing depended on them, those
  // along each edge of next(); undefined for zeros. Throws RuntimeError.
  virtual std::vector<Tensor> apply(const std::vector<Tensor>& gradients) = 0;
  // Gives up what is only needed to apply.
  virtual void releaseSaved() {}

  const std::vector<Edge>& next() const { return next_; }
  void setNext(std::vector<Edge> next) { next_ = std::move(next); }
  // Of the results, in order.
  const std::vector<Shape>& shapes() const { return shapes_; }
  uint32_t addResult(const Tensor& t);
  // In place of a result that is None.
  void addAbsentResult() { shapes_.emplace_back(); }
  // Leaves to which the gradient of a result is added when it is complete (retain_grad).
  void addSink(uint32_t index, Ref<Leaf> sink);
  std::vector<Ref<Leaf>> sinksOf(uint32_t index) const;
  // Later nodes have larger numbers than those they come from.
  uint64_t sequence() const { return sequence_; }

 private:
  struct Sink {
    uint32_t index;
    Ref<Leaf> leaf;
  };
  std::vector<Edge> next_;
  std::vector<Shape> shapes_;
  mutable std::mutex sinks_mutex_;
  std::vector<Sink> sinks_;
  const uint64_t sequence_;
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

 private:
  mutable std::mutex mutex_;
  Tensor gradient_;
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
// Makes the walk keep the gradient of a tensor that is no leaf.
void retainGradient(const Tensor& t);
bool retainsGradient(const Tensor& t);

// Lets `t` come from the node's next result.
void setHistory(const Tensor& t, Ref<Node> node);
// The same for a tensor that was written to. Its views, and when it is a view its base and the
// base's other views, come from there too. `first` is the index in node.next() of what the tensor
// was before.
void rebaseHistory(const Tensor& t, Ref<Node> node, size_t first);
// Lets `view`, which shares the memory of `base` and comes from it, know so. `several`: one of the
// results of an operator that makes several views.
void setViewOf(const Tensor& view, const Tensor& base, bool several);
// RuntimeError when the tensor must not be written to while gradients are recorded.
void checkMayWrite(const Tensor& t);
// Forgets where the tensor comes from, and that it requires a gradient.
void detachInPlace(const Tensor& t);

// A tensor with the same elements and no history: for what nodes save.
Tensor withoutHistory(const Tensor& t);
// The same, coming from an edge.
Tensor withHistory(const Tensor& t, const Edge& edge);

}  // namespace wick::autograd
