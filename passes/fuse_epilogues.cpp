// Starts at every layer and extends the chain downwards while the next node is the only reader of
// the last result. The fused node stands where the chain ends, so the layer's input is read later
// than before: nothing in between may write.
//
//   %a : Tensor = aten::conv2d(%x, %w, %b, %stride, %padding, %dilation, %groups)
//   %c : Tensor = aten::add(%a, %r, %one)
//   %d : Tensor = aten::relu(%c)
// →
//   %d : Tensor = wick::conv2d_fused(%x, %w, %b, %r, %stride, %padding, %dilation, %groups,
//   %"relu")
#include "passes/fuse_epilogues.h"

#include <algorithm>
#include <unordered_map>

#include "ir/shape_facts.h"
#include "passes/layer_nodes.h"

namespace wick {

namespace {

// The node in the same block that alone reads `v`, or null.
Node* onlyReader(const Value* v) {
  if (v->uses().size() != 1) return nullptr;
  Node* user = v->uses()[0].user;
  return user->block() == v->node()->block() && user->kind() != prim::Return ? user : nullptr;
}

bool isConstantNumber(const Value* v, double number) {
  return floatOf(v) == number;
}

// The activation that the node computes, by the name that the fused operator knows.
std::optional<std::string> activationOf(const Node* node) {
  static const std::unordered_map<Symbol, std::string> kNames = [] {
    std::unordered_map<Symbol, std::string> names;
    for (const char* name : {"relu", "sigmoid", "tanh", "silu", "relu6", "hardswish"}) {
      names.emplace(Symbol::aten(name), name);
      names.emplace(Symbol::aten(std::string(name) + "_"), name);
    }
    return names;
  }();
  static const Symbol kHardtanh = Symbol::aten("hardtanh");
  static const Symbol kHardtanhInPlace = Symbol::aten("hardtanh_");
  static const Symbol kGelu = Symbol::aten("gelu");
  if (auto it = kNames.find(node->kind()); it != kNames.end()) return it->second;
  if (node->kind() == kHardtanh || node->kind() == kHardtanhInPlace) {
    bool to_six = isConstantNumber(node->input(1), 0) && isConstantNumber(node->input(2), 6);
    return to_six ? std::optional<std::string>("relu6") : std::nullopt;
  }
  if (node->kind() == kGelu) {
    std::optional<IValue> kind = constantOf(node->input(1));
    bool exact = kind && kind->isString() && kind->toString() == "none";
    return exact ? std::optional<std::string>("gelu") : std::nullopt;
  }
  return std::nullopt;
}

// Behind a residual the kernel knows relu alone; others it computes in float32.
bool mayActivate(const std::string& activation, const Node* layer, const Value* residual) {
  if (activation == "relu") return true;
  std::optional<IValue> weight = constantOf(layer->input(1));
  return !residual && weight && weight->toTensor().dtype() == DType::Float;
}

// The tensor that `node` adds to `sum` when it is add(sum, r) or add(r, sum) with alpha 1; for
// add_, `sum` must be what it writes. The kernel adds residuals of any shape that broadcasts.
Value* residualOf(const Node* node, const Value* sum) {
  bool in_place = node->kind() == aten::add_;
  if ((node->kind() != aten::add && !in_place) || node->inputs().size() != 3) return nullptr;
  std::optional<IValue> alpha = constantOf(node->input(2));
  if (!alpha || !alpha->isInt() || alpha->toInt() != 1) return nullptr;
  if (in_place && node->input(0) != sum) return nullptr;
  Value* other = node->input(node->input(0) == sum ? 1 : 0);
  return other->type()->kind() == TypeKind::Tensor ? other : nullptr;
}

struct Chain {
  std::vector<Node*> nodes;  // the layer first
  Value* residual = nullptr;
  bool adds_in_place = false;
  std::string activation = "none";
};

Chain chainFrom(Node* layer) {
  Chain chain;
  chain.nodes.push_back(layer);
  while (Node* next = onlyReader(chain.nodes.back()->output())) {
    Value* r = chain.residual ? nullptr : residualOf(next, chain.nodes.back()->output());
    if (r != nullptr) {
      chain.residual = r;
      chain.adds_in_place = next->kind() == aten::add_;
    } else if (std::optional<std::string> activation = activationOf(next);
               activation && mayActivate(*activation, layer, chain.residual)) {
      chain.activation = *activation;
    } else {
      break;
    }
    chain.nodes.push_back(next);
    if (chain.activation != "none") break;
  }
  return chain;
}

// Whether all that the node does besides computing is to raise; a layer may as well be computed
// after that.
bool onlyRaises(const Node* n) {
  if (n->kind() == prim::RaiseException) return true;
  if (n->kind() != prim::If) return !n->hasSideEffects();
  for (const Block* b : n->blocks()) {
    for (const Node* inner : b->nodes()) {
      if (!inner->blocks().empty() || !onlyRaises(inner)) return false;
    }
  }
  return true;
}

bool mayMoveToEnd(const Chain& chain) {
  for (const Node* n = chain.nodes.front(); n != chain.nodes.back(); n = n->next()) {
    bool own = std::find(chain.nodes.begin(), chain.nodes.end(), n) != chain.nodes.end();
    if (!own && n->hasSideEffects() && !onlyRaises(n)) return false;
  }
  return true;
}

// Weights in channels-last order ask the kernel for channels-last results, which is the layout in
// which convolutions hand each other their activations without reordering.
Value* channelsLastWeight(Graph& graph, Value* weight) {
  Tensor w = constantOf(weight)->toTensor();
  const bool computes = w.dtype() == DType::Float || isReducedFloat(w.dtype());
  if (!computes || w.isContiguous(MemoryFormat::ChannelsLast)) return weight;
  return graph.insertConstant(IValue(w.contiguous(MemoryFormat::ChannelsLast)));
}

// Replaces the chain's last node: its inputs are the layer's up to the bias, then the residual,
// the layer's options, the activation, and whether the addition is in place.
void fuse(Graph& graph, const Chain& chain, const std::optional<ConvolutionNode>& convolution) {
  Node* layer = chain.nodes.front();
  Node* last = chain.nodes.back();
  InsertPointGuard guard(last);
  RangeGuard range(&graph, layer->range());
  Value* residual =
      chain.residual ? chain.residual : graph.insertNode(graph.createNone())->output();
  std::vector<Value*> inputs{layer->input(0), layer->input(1), layer->input(2), residual};
  if (convolution) {
    const ConvolutionNode& c = *convolution;
    inputs[1] = channelsLastWeight(graph, c.weight());
    inputs.insert(inputs.end(), {c.stride(), c.padding(), c.dilation(), c.groups()});
  }
  inputs.push_back(graph.insertConstant(IValue(chain.activation)));
  inputs.push_back(graph.insertConstant(IValue(chain.adds_in_place)));
  const char* name = convolution ? "wick::conv2d_fused" : "wick::linear_fused";
  Node* fused = graph.insertNode(graph.create(Symbol::fromQualString(name), inputs));
  fused->setInlinedFrom(layer->inlinedFrom());
  last->output()->replaceAllUsesWith(fused->output());
  for (auto node = chain.nodes.rbegin(); node != chain.nodes.rend(); ++node) (*node)->destroy();
}

// Fuses what begins at the node, if it is a layer.
bool fuseFrom(Graph& graph, Node* node) {
  const std::optional<ConvolutionNode> convolution = ConvolutionNode::match(node);
  if (!convolution && !LinearNode::match(node)) return false;
  Chain chain = chainFrom(node);
  if (!mayMoveToEnd(chain)) {
    chain = Chain();
    chain.nodes.push_back(node);
  }
  if (!convolution && chain.nodes.size() == 1) return false;
  fuse(graph, chain, convolution);
  return true;
}

size_t fuseIn(Graph& graph, Block* b) {
  size_t fused = 0;
  for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
    Node* node = *it;
    for (Block* sub : node->blocks()) fused += fuseIn(graph, sub);
    // The next node may be one of the chain.
    Node* before = node->prev();
    if (fuseFrom(graph, node)) {
      ++fused;
      it = NodeIterator(before->next());
    } else {
      ++it;
    }
  }
  return fused;
}

}  // namespace

size_t fuseEpilogues(Graph& graph) {
  return fuseIn(graph, graph.block());
}

}  // namespace wick
