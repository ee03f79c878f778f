// %l = aten::cross_entropy_loss(%x, %target, None, 0, -100, 0.)
// →
// %p = aten::log_softmax(%x, 1, None)
// %ignored = aten::eq(%target, -100)
// %safe = aten::masked_fill(%target, %ignored, 0)
// %picked = aten::squeeze(aten::gather(%p, 1, aten::unsqueeze(%safe, 1), False), 1)
// %l = aten::masked_fill(aten::neg(%picked), %ignored, 0)
#include "codegen/loop/decompositions.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>

#include "codegen/loop/lowering.h"

namespace wick::loop {

namespace {

constexpr int64_t kReductionNone = 0, kReductionMean = 1, kReductionSum = 2;

class Decomposition {
 public:
  Decomposition(Node* node, const FactsOf& facts_of)
      : node_(node), graph_(*node->graph()), facts_of_(facts_of) {}

  Value* crossEntropy() {
    const ValueFacts x = tensor(0), target = tensor(1);
    if (x.layout.rank == 0 || !isFloating(x.dtype)) refuse("the input");
    const int64_t dim = x.layout.rank == 1 ? 0 : 1;
    Value* p = op("log_softmax", {node_->input(0), integer(dim), none()});
    return isFloating(target.dtype) ? ofProbabilities(p, x, dim) : ofClasses(p, x);
  }
  Value* negativeLogLikelihood() { return ofClasses(node_->input(0), tensor(0)); }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw Unsupported(fmt::format("{}: {}", node_->kind().qualString(), what));
  }

  Value* op(const char* name, std::vector<Value*> inputs) {
    return graph_.insertNode(graph_.create(Symbol::aten(name), std::move(inputs)))->output();
  }
  Value* integer(int64_t n) { return graph_.insertConstant(IValue(n)); }
  Value* number(double n) { return graph_.insertConstant(IValue(n)); }
  Value* truth(bool b) { return graph_.insertConstant(IValue(b)); }
  Value* none() { return graph_.insertConstant(IValue()); }
  Value* to(Value* v, DType dtype) {
    return op("to", {v, integer(static_cast<int64_t>(dtype)), truth(false), truth(false), none()});
  }

  ValueFacts tensor(size_t i) const {
    const ValueFacts facts = facts_of_(node_->input(i));
    if (!facts.is_tensor) refuse("an argument that is no tensor");
    return facts;
  }
  bool isNone(size_t i) const {
    auto value = constantOf(node_->input(i));
    return value && value->isNone();
  }
  int64_t constantInt(const char* name) const {
    return constantOf(node_->namedInput(name))->toInt();
  }
  static int64_t sizeOf(const ValueFacts& t, int d) {
    return t.layout.sizes[static_cast<size_t>(d)];
  }
  // Whether sizes that broadcast are equal.
  static bool alike(int64_t a, int64_t b) { return (a == 1) == (b == 1); }

  // The weights of the classes as [1, C, 1, …], which must be as many as `like` has.
  Value* perClass(const ValueFacts& like, int64_t dim) {
    const ValueFacts weight = tensor(2);
    if (weight.layout.rank != 1 || !alike(sizeOf(weight, 0), sizeOf(like, static_cast<int>(dim)))) {
      refuse("the weight");
    }
    Value* w = node_->input(2);
    for (int64_t d = dim + 1; d < like.layout.rank; ++d) w = op("unsqueeze", {w, integer(-1)});
    return w;
  }

  Value* ofProbabilities(Value* p, const ValueFacts& x, int64_t dim) {
    const ValueFacts target = tensor(1);
    if (target.layout.rank != x.layout.rank || constantInt("ignore_index") >= 0) {
      refuse("the target");
    }
    for (int d = 0; d < x.layout.rank; ++d) {
      if (!alike(sizeOf(x, d), sizeOf(target, d))) refuse("the target's sizes");
    }
    Value* terms = op("mul", {p, node_->input(1)});
    if (!isNone(2)) terms = op("mul", {terms, perClass(x, dim)});
    Value* dims = graph_.insertConstant(makeList(types::Int(), {IValue(dim)}));
    Value* loss = op("neg", {op("sum", {terms, dims, truth(false), none()})});
    const int64_t reduction = constantInt("reduction");
    if (reduction == kReductionNone) return loss;
    return op(reduction == kReductionSum ? "sum" : "mean", {loss, none()});
  }

  // p [N, C, …], the target [N, …].
  Value* ofClasses(Value* p, const ValueFacts& x) {
    const ValueFacts target = tensor(1);
    if (x.layout.rank < 2 || target.layout.rank != x.layout.rank - 1 || !isFloating(x.dtype)) {
      refuse("these numbers of dimensions");
    }
    if (target.dtype != DType::Long) refuse("the target's dtype");
    for (int d = 0; d < target.layout.rank; ++d) {
      if (!alike(sizeOf(target, d), sizeOf(x, d + (d > 0)))) refuse("the target's sizes");
    }
    const bool widens = isReducedFloat(x.dtype);
    const DType wide = widens ? DType::Float : x.dtype;
    Value* ignored = op("eq", {node_->input(1), integer(constantInt("ignore_index"))});
    Value* safe = op("masked_fill", {node_->input(1), ignored, integer(0)});
    // Gathering would take a smaller target too.
    Value* class_zero = op("slice", {p, integer(1), integer(0), integer(1), integer(1)});
    Value* place = op("expand_as", {op("unsqueeze", {safe, integer(1)}), class_zero});
    Value* picked = op("squeeze", {op("gather", {p, integer(1), place, truth(false)}), integer(1)});
    if (widens) picked = to(picked, wide);
    Value* loss = op("neg", {picked});
    Value* weights = nullptr;
    if (!isNone(2)) {
      op("expand_as", {perClass(x, 1), p});  // raises unless there is a weight for each class
      Value* table = op("unsqueeze", {node_->input(2), integer(1)});
      weights = op("embedding", {table, safe, integer(-1), truth(false), truth(false)});
      weights = to(op("squeeze", {weights, integer(-1)}), wide);
      loss = op("mul", {loss, weights});
    }
    loss = op("masked_fill", {loss, ignored, integer(0)});
    const int64_t reduction = constantInt("reduction");
    Value* result = loss;
    if (reduction != kReductionNone) result = op("sum", {loss, none()});
    if (reduction == kReductionMean) {
      weights = weights ? op("masked_fill", {weights, ignored, integer(0)})
                        : to(op("logical_not", {ignored}), wide);
      result = op("div", {result, op("sum", {weights, none()})});
    }
    return widens ? to(result, x.dtype) : result;
  }

  Node* node_;
  Graph& graph_;
  const FactsOf& facts_of_;
};

using Method = Value* (Decomposition::*)();
const std::unordered_map<std::string_view, Method>& methods() {
  static const auto* table = new std::unordered_map<std::string_view, Method>{
      {"aten::cross_entropy_loss", &Decomposition::crossEntropy},
      {"aten::nll_loss", &Decomposition::negativeLogLikelihood},
      {"aten::nll_loss2d", &Decomposition::negativeLogLikelihood},
      {"aten::nll_loss_nd", &Decomposition::negativeLogLikelihood},
  };
  return *table;
}

}  // namespace

bool isComposite(const Node* node) {
  const auto it = methods().find(node->kind().qualString());
  const Operator* op = it == methods().end() ? nullptr : node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base) return false;
  for (const char* name : {"reduction", "ignore_index"}) {
    const auto value = constantOf(node->namedInput(name));
    if (!value || !value->isInt()) return false;
  }
  const auto reduction = constantOf(node->namedInput("reduction"))->toInt();
  if (reduction < kReductionNone || reduction > kReductionSum) return false;
  if (node->kind() != Symbol::aten("cross_entropy_loss")) return true;
  const auto smoothing = constantOf(node->namedInput("label_smoothing"));
  return smoothing && smoothing->isNumber() && smoothing->numberToDouble() == 0;
}

void decompose(Node* node, const FactsOf& facts_of) {
  InsertPointGuard guard(node);
  Decomposition decomposition(node, facts_of);
  Value* result = (decomposition.*methods().at(node->kind().qualString()))();
  node->output()->replaceAllUsesWith(result);
  node->destroy();
}

}  // namespace wick::loop
