// Node by node, each becomes what it stands for:
//
//   %d : Tensor = wick::conv2d_fused(%x, %w, %b, %r, %stride, %padding, %dilation, %groups,
//   %"relu",
//                                    %in_place)
// →
//   %a : Tensor = aten::conv2d(%x, %w, %b, %stride, %padding, %dilation, %groups)
//   %c : Tensor = aten::add(%a, %r, %one)
//   %d : Tensor = aten::relu(%c)
#include "passes/restore_operators.h"

#include <string>
#include <unordered_map>

#include "core/error.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/fusion_groups.h"
#include "passes/guard_nodes.h"
#include "passes/node_traits.h"

namespace wick {
namespace {

const Symbol& convolutionKind() {
  static const Symbol kind = Symbol::fromQualString("wick::conv2d_fused");
  return kind;
}
const Symbol& linearKind() {
  static const Symbol kind = Symbol::fromQualString("wick::linear_fused");
  return kind;
}
const Symbol& productKind() {
  static const Symbol kind = Symbol::fromQualString("wick::mm_weight");
  return kind;
}
const Symbol& loopWeightKind() {
  static const Symbol kind = Symbol::fromQualString("wick::loop_weight");
  return kind;
}

bool isOwn(const Node* n) {
  const Symbol kind = n->kind();
  return kind == prim::FusionGroup || kind == convolutionKind() || kind == linearKind() ||
         kind == productKind() || kind == loopWeightKind() || kind == profileKind() ||
         kind == guardKind() || kind == bailOutKind();
}

class Restorer {
 public:
  explicit Restorer(Graph& graph) : graph_(graph) {}

  void node(Node* n) {
    const Symbol kind = n->kind();
    if (kind == convolutionKind() || kind == linearKind()) {
      layer(n);
    } else if (kind == productKind()) {
      InsertPointGuard guard(n);
      replace(n, emit("mm", {n->input(0), n->input(1)}, n));
    } else if (kind == loopWeightKind()) {
      replace(n, n->input(0));
    } else if (kind == guardKind()) {
      removeGuard(n);
    } else if (kind == profileKind()) {
      n->destroy();
    } else if (kind == bailOutKind()) {
      throwRuntimeError(
          "print: a graph that was optimized for certain types of tensors (prim::BailOut) has no "
          "form in source; the function that it was made of has");
    }
  }

 private:
  static void replace(Node* n, Value* value) {
    n->output()->replaceAllUsesWith(value);
    n->destroy();
  }

  Value* emit(const char* name, std::span<Value* const> inputs, const Node* origin) {
    RangeGuard range(&graph_, origin->range());
    return graph_.insertNode(graph_.create(Symbol::aten(name), inputs))->output();
  }
  Value* emit(const char* name, std::initializer_list<Value*> inputs, const Node* origin) {
    return emit(name, std::span<Value* const>(inputs.begin(), inputs.size()), origin);
  }

  // Weights that were laid out for a kernel. In PyTorch a convolution whose weight lies so would
  // give results that lie so, and the program does not expect them.
  Value* rowMajor(Value* weight) {
    const std::optional<IValue> constant = constantOf(weight);
    if (!constant || !constant->isTensor() || constant->toTensor().isContiguous()) return weight;
    auto [it, fresh] = weights_.try_emplace(weight->node());
    if (fresh) {
      it->second = constant->toTensor().contiguous();
    }
    return graph_.insertConstant(IValue(it->second));
  }

  // (input, weight, bias, residual, the convolution's options, activation, in_place).
  void layer(Node* n) {
    const bool convolution = n->kind() == convolutionKind();
    const size_t options = convolution ? 4 : 0;
    const std::optional<IValue> activation = constantOf(n->input(4 + options));
    const std::optional<bool> in_place = boolOf(n->input(5 + options));
    const bool adds = !isNoneConstant(n->input(3));
    // What somebody wrote by hand may lack what is needed; it stays, and is refused by name.
    if (!activation || !activation->isString() || !in_place) return;
    if (adds && n->input(3)->type()->kind() != TypeKind::Tensor) return;
    const char* name = activationName(activation->toString());
    if (name == nullptr) return;

    InsertPointGuard guard(n);
    std::vector<Value*> inputs{n->input(0), n->input(1), n->input(2)};
    if (convolution) inputs[1] = rowMajor(inputs[1]);
    for (size_t i = 0; i < options; ++i) inputs.push_back(n->input(4 + i));
    Value* result = emit(convolution ? "conv2d" : "linear", inputs, n);
    if (adds) {
      Value* one = graph_.insertConstant(IValue(int64_t{1}));
      result = emit(*in_place ? "add_" : "add", {result, n->input(3), one}, n);
    }
    if (activation->toString() == "gelu") {
      result = emit(name, {result, graph_.insertConstant(IValue("none"))}, n);
    } else if (*name != '\0') {
      result = emit(name, {result}, n);
    }
    replace(n, result);
  }

  // Null for what the fused operators do not know.
  static const char* activationName(const std::string& activation) {
    if (activation == "none") return "";
    for (const char* name : {"relu", "sigmoid", "tanh", "silu", "gelu", "relu6", "hardswish"}) {
      if (activation == name) return name;
    }
    return nullptr;
  }

  Graph& graph_;
  std::unordered_map<const Node*, Tensor> weights_;
};

}  // namespace

bool hasOwnOperators(const Graph& graph) {
  bool found = false;
  withStackFor(graph, [&] { found = anyNode(graph.block(), isOwn); });
  return found;
}

namespace {

const Symbol& rewrittenMark() {
  static const Symbol mark = Symbol::attr("rewritten");
  return mark;
}

}  // namespace

void markRewritten(Graph& graph) {
  graph.paramNode()->setAttribute(rewrittenMark(), IValue(true));
}

bool isRewritten(const Graph& graph) {
  return graph.paramNode()->hasAttribute(rewrittenMark());
}

void restoreOperators(Graph& graph) {
  withStackFor(graph, [&] {
    dissolveFusionGroups(graph);
    Restorer restorer(graph);
    forEachNode(graph.block(), [&](Node* n) { restorer.node(n); });
  });
}

}  // namespace wick
