// Starts at every convolution and extends the chain downwards while the next node is the only
// reader of the last result. The fused node stands where the chain ends, so the convolution's input
// is read later than before: nothing in between may write.
//
//   %a : Tensor = aten::conv2d(%x, %w, %b, %stride, %padding, %dilation, %groups)
//   %c : Tensor = aten::add(%a, %r, %one)
//   %d : Tensor = aten::relu(%c)
// →
//   %d : Tensor = wick::conv2d_fused(%x, %w, %b, %r, %stride, %padding, %dilation, %groups,
//   %"relu")
#include "passes/fuse_convolution.h"

#include <algorithm>
#include <unordered_map>

#include "ir/shape_facts.h"
#include "passes/convolution_nodes.h"

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
bool mayActivate(const std::string& activation, const Node* conv, const Value* residual) {
  if (activation == "relu") return true;
  std::optional<IValue> weight = constantOf(conv->input(1));
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
  std::vector<Node*> nodes;  // the convolution first
  Value* residual = nullptr;
  bool adds_in_place = false;
  std::string activation = "none";
};

Chain chainFrom(Node* conv) {
  Chain chain;
  chain.nodes.push_back(conv);
  while (Node* next = onlyReader(chain.nodes.back()->output())) {
    Value* r = chain.residual ? nullptr : residualOf(next, chain.nodes.back()->output());
    if (r != nullptr) {
      chain.residual = r;
      chain.adds_in_place = next->kind() == aten::add_;
    } else if (std::optional<std::string> activation = activationOf(next);
               activation && mayActivate(*activation, conv, chain.residual)) {
      chain.activation = *activation;
    } else {
      break;
    }
    chain.nodes.push_back(next);
    if (chain.activation != "none") break;
  }
  return chain;
}

// Whether all that the node does besides computing is to raise; a convolution may as well be
// computed after that.
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
  if (w.dtype() != DType::Float || w.isContiguous(MemoryFormat::ChannelsLast)) return weight;
  return graph.insertConstant(IValue(w.contiguous(MemoryFormat::ChannelsLast)));
}

void fuse(Graph& graph, const ConvolutionNode& c, const Chain& chain) {
  Node* last = chain.nodes.back();
  InsertPointGuard guard(last);
  RangeGuard range(&graph, chain.nodes.front()->range());
  Value* residual =
      chain.residual ? chain.residual : graph.insertNode(graph.createNone())->output();
  Value* activation = graph.insertConstant(IValue(chain.activation));
  Value* in_place = graph.insertConstant(IValue(chain.adds_in_place));
  Node* fused = graph.insertNode(
      graph.create(Symbol::fromQualString("wick::conv2d_fused"),
                   {c.input(), channelsLastWeight(graph, c.weight()), c.bias(), residual,
                    c.stride(), c.padding(), c.dilation(), c.groups(), activation, in_place}));
  last->output()->replaceAllUsesWith(fused->output());
  for (auto node = chain.nodes.rbegin(); node != chain.nodes.rend(); ++node) (*node)->destroy();
}

size_t fuseIn(Graph& graph, Block* b) {
  size_t fused = 0;
  for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    for (Block* sub : node->blocks()) fused += fuseIn(graph, sub);
    std::optional<ConvolutionNode> c = ConvolutionNode::match(node);
    if (!c) continue;
    Chain chain = chainFrom(node);
    if (!mayMoveToEnd(chain)) {
      chain = Chain();
      chain.nodes.push_back(node);
    }
    // The iterator may stand on a node of the chain.
    Node* before = node->prev();
    fuse(graph, *c, chain);
    it = NodeIterator(before->next());
    ++fused;
  }
  return fused;
}

}  // namespace

size_t fuseConvolution(Graph& graph) {
  return fuseIn(graph, graph.block());
}

}  // namespace wick
