// Layers with constant weights, for passes over frozen graphs.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace wick {

// aten::linear with a floating matrix as weight and a bias for its rows or none, all constant.
struct LinearNode {
  static std::optional<LinearNode> match(Node* node);
  Node* node;
  Tensor weight;
  std::optional<Tensor> bias;
};

// A common view of the nodes that are two-dimensional convolutions: aten::conv2d as scripts write
// it and aten::_convolution as traces record it.
class ConvolutionNode {
 public:
  // nullopt for other nodes, for transposed convolutions, for weights that are not known to have
  // four dimensions, and when padding is a string or an option is not constant.
  static std::optional<ConvolutionNode> match(Node* node);

  Value* input() const { return node_->input(0); }
  Value* weight() const { return node_->input(1); }
  Value* bias() const { return node_->input(2); }
  Value* stride() const { return node_->input(3); }
  Value* padding() const { return node_->input(4); }
  Value* dilation() const { return node_->input(5); }
  Value* groups() const { return node_->input(groups_); }

 private:
  ConvolutionNode(Node* node, size_t groups) : node_(node), groups_(groups) {}
  Node* node_;
  size_t groups_;  // which input
};

}  // namespace wick
