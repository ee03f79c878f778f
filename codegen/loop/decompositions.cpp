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
  Decomposition(Node* node, const Facts& facts)
      : node_(node), graph_(*node->graph()), facts_(facts) {}

  Value* crossEntropy() {
    const ValueFacts x = tensor(0), target = tensor(1);
    if (x.layout.rank == 0 || !isFloating(x.dtype)) refuse("the input");
    const int64_t dim = x.layout.rank == 1 ? 0 : 1;
    Value* p = op("log_softmax", {node_->input(0), integer(dim), none()});
    const double smoothing = constantOf(node_->namedInput("label_smoothing"))->numberToDouble();
    return isFloating(target.dtype) ? ofProbabilities(p, x, dim, smoothing)
                                    : ofClasses(p, x, smoothing);
  }
  Value* negativeLogLikelihood() { return ofClasses(node_->input(0), tensor(0), 0); }

  // In double, as the operator does: scale = weight / sqrt(variance + eps), bias - mean * scale.
  Value* batchNorm() {
    const ValueFacts x = normalized();
    Value* variance = op("add", {channels("running_var", x), argument("eps"), integer(1)});
    Value* scale = op("reciprocal", {op("sqrt", {variance})});
    if (has("weight")) scale = op("mul", {scale, channels("weight", x)});
    Value* moved = op("mul", {channels("running_mean", x), scale});
    Value* shift = has("bias") ? op("sub", {channels("bias", x), moved, integer(1)})
                               : op("rsub", {moved, integer(0), integer(1)});
    facts_.keep_apart(scale);
    facts_.keep_apart(shift);
    const DType wide = accumulated(x.dtype);
    Value* result = op("mul", {to(node_->input(0), wide), perChannel(to(scale, wide), x, 2)});
    result = op("add", {result, perChannel(to(shift, wide), x, 2), integer(1)});
    return to(laid(result, formatted()), x.dtype);
  }

  // x [N, C, …] as [N, groups, C / groups, …], of which all but the first two are a row.
  Value* groupNorm() { return ofGroups(constantInt("num_groups"), true, formatted()); }
  Value* instanceNorm() { return ofGroups(0, false, false); }

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
    const ValueFacts facts = facts_.of(node_->input(i));
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
  static DType accumulated(DType type) { return isReducedFloat(type) ? DType::Float : type; }
  Value* argument(const char* name) const { return node_->namedInput(name); }
  bool has(const char* name) const {
    const auto value = constantOf(argument(name));
    return !value || !value->isNone();
  }

  // The input of a normalization.
  ValueFacts normalized() const {
    const ValueFacts x = tensor(0);
    if (x.layout.rank < 2 || x.layout.rank >= kMaxRank || !isFloating(x.dtype)) {
      refuse("the input");
    }
    return x;
  }
  // Whether the result's channels lie innermost, as the input's do.
  bool formatted() const { return facts_.is_channels_last(node_->input(0)); }
  // The last value that is computed with the input's shape: lies row-major unless the input's own
  // order is kept.
  Value* laid(Value* result, bool keeps_order) const {
    if (!keeps_order) facts_.lay_row_major(result);
    return result;
  }
  // A parameter of the channels of x, in double.
  Value* channels(const char* name, const ValueFacts& x) {
    const ValueFacts t = facts_.of(argument(name));
    if (!t.is_tensor || t.layout.rank != 1 || !isFloating(t.dtype) ||
        !alike(sizeOf(t, 0), sizeOf(x, 1))) {
      refuse(name);
    }
    return to(argument(name), DType::Double);
  }
  // What has the channels last, as x has them in front of its last dimensions from the given one
  // on.
  Value* perChannel(Value* v, const ValueFacts& x, int from) {
    for (int d = from; d < x.layout.rank; ++d) v = op("unsqueeze", {v, integer(-1)});
    return v;
  }

  // With no number of groups each channel is one.
  Value* ofGroups(int64_t groups, bool together, bool keeps_order) {
    const ValueFacts x = normalized();
    const DType wide = accumulated(x.dtype);
    Value* rows = to(node_->input(0), wide);
    Value* split = ints({groups, -1});
    const auto grouped = [&](Value* v, int64_t dim) {
      return together ? op("unflatten", {v, integer(dim), split}) : v;
    };
    rows = grouped(rows, 1);
    std::vector<int64_t> reduced;
    for (int64_t d = 2; d < x.layout.rank + together; ++d) reduced.push_back(d);
    if (reduced.empty()) refuse("rows of one element");
    Value* dims = ints(reduced);
    Value* mean = op("mean", {rows, dims, truth(true), none()});
    Value* centered = op("sub", {rows, mean, integer(1)});
    Value* squares = op("mean", {op("mul", {centered, centered}), dims, truth(true), none()});
    Value* scale = op("rsqrt", {op("add", {squares, argument("eps"), integer(1)})});
    if (together && has("weight")) return perGroup(x, mean, scale, grouped, keeps_order);
    if (together && has("bias")) refuse("a bias without a weight");
    Value* result = op("mul", {centered, scale});
    const auto parameter = [&](const char* name) {
      Value* v = channels(name, x);
      op("expand_as", {perChannel(v, x, 2), node_->input(0)});  // raises for another number
      return perChannel(grouped(to(v, wide), 0), x, 2);
    };
    if (has("weight")) result = op("mul", {result, parameter("weight")});
    if (has("bias")) result = op("add", {result, parameter("bias"), integer(1)});
    laid(result, keeps_order);
    if (together) result = op("flatten", {result, integer(1), integer(2)});
    return to(result, x.dtype);
  }

  // Within a group the weight changes with the channel: what x is multiplied with and what is added
  // is computed for each channel of each sample first.
  template <class Grouped>
  Value* perGroup(const ValueFacts& x, Value* mean, Value* scale, Grouped&& grouped,
                  bool keeps_order) {
    facts_.keep_apart(mean);
    facts_.keep_apart(scale);
    const auto parameter = [&](const char* name) {
      Value* v = channels(name, x);
      op("expand_as", {perChannel(v, x, 2), node_->input(0)});  // raises for another number
      return perChannel(grouped(v, 0), x, 2);
    };
    Value* factor = op("mul", {to(scale, DType::Double), parameter("weight")});
    Value* moved = op("mul", {to(mean, DType::Double), factor});
    Value* shift = has("bias") ? op("sub", {parameter("bias"), moved, integer(1)})
                               : op("rsub", {moved, integer(0), integer(1)});
    facts_.keep_apart(factor);
    facts_.keep_apart(shift);
    const DType wide = accumulated(x.dtype);
    const auto flat = [&](Value* v) {
      return to(op("flatten", {v, integer(1), integer(2)}), wide);
    };
    Value* result = op("mul", {to(node_->input(0), wide), flat(factor)});
    result = op("add", {result, flat(shift), integer(1)});
    return to(laid(result, keeps_order), x.dtype);
  }

  Value* ints(const std::vector<int64_t>& numbers) {
    return graph_.insertConstant(
        makeList(types::Int(), std::vector<IValue>(numbers.begin(), numbers.end())));
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

  // With a share of its weight a sample is in all classes alike.
  Value* smoothed(Value* loss, Value* p, int64_t dim, double smoothing) {
    if (smoothing == 0) return loss;
    Value* all = op("neg", {op("mean", {p, ints({dim}), truth(false), none()})});
    return op("add", {op("mul", {loss, number(1 - smoothing)}), op("mul", {all, number(smoothing)}),
                      integer(1)});
  }

  Value* ofProbabilities(Value* p, const ValueFacts& x, int64_t dim, double smoothing) {
    const ValueFacts target = tensor(1);
    if (target.layout.rank != x.layout.rank || constantInt("ignore_index") >= 0) {
      refuse("the target");
    }
    for (int d = 0; d < x.layout.rank; ++d) {
      if (!alike(sizeOf(x, d), sizeOf(target, d))) refuse("the target's sizes");
    }
    if (!isNone(2)) p = op("mul", {p, perClass(x, dim)});
    Value* terms = op("mul", {p, node_->input(1)});
    Value* loss = op("neg", {op("sum", {terms, ints({dim}), truth(false), none()})});
    loss = smoothed(loss, p, dim, smoothing);
    const int64_t reduction = constantInt("reduction");
    if (reduction == kReductionNone) return loss;
    return op(reduction == kReductionSum ? "sum" : "mean", {loss, none()});
  }

  // p [N, C, …], the target [N, …].
  Value* ofClasses(Value* p, const ValueFacts& x, double smoothing) {
    const ValueFacts target = tensor(1);
    if (x.layout.rank < 2 || target.layout.rank != x.layout.rank - 1 || !isFloating(x.dtype)) {
      refuse("these numbers of dimensions");
    }
    if (target.dtype != DType::Long) refuse("the target's dtype");
    if (!isNone(2) && tensor(2).dtype != x.dtype) refuse("the weight's dtype");
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
    Value* all = widens && smoothing > 0 ? to(p, wide) : p;
    if (!isNone(2)) {
      op("expand_as", {perClass(x, 1), p});  // raises unless there is a weight for each class
      if (smoothing > 0) all = op("mul", {all, to(perClass(x, 1), wide)});
      Value* table = op("unsqueeze", {node_->input(2), integer(1)});
      weights = op("embedding", {table, safe, integer(-1), truth(false), truth(false)});
      weights = to(op("squeeze", {weights, integer(-1)}), wide);
      loss = op("mul", {loss, weights});
    }
    loss = smoothed(loss, all, 1, smoothing);
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
  const Facts& facts_;
};

using Method = Value* (Decomposition::*)();
const std::unordered_map<std::string_view, Method>& methods() {
  static const auto* table = new std::unordered_map<std::string_view, Method>{
      {"aten::cross_entropy_loss", &Decomposition::crossEntropy},
      {"aten::nll_loss", &Decomposition::negativeLogLikelihood},
      {"aten::nll_loss2d", &Decomposition::negativeLogLikelihood},
      {"aten::nll_loss_nd", &Decomposition::negativeLogLikelihood},
      {"aten::batch_norm", &Decomposition::batchNorm},
      {"aten::group_norm", &Decomposition::groupNorm},
      {"aten::instance_norm", &Decomposition::instanceNorm},
  };
  return *table;
}

std::optional<IValue> constantArgument(const Node* node, const char* name) {
  return constantOf(node->namedInput(name));
}

bool isClassLoss(const Node* node) {
  for (const char* name : {"reduction", "ignore_index"}) {
    const auto value = constantArgument(node, name);
    if (!value || !value->isInt()) return false;
  }
  const auto reduction = constantArgument(node, "reduction")->toInt();
  if (reduction < kReductionNone || reduction > kReductionSum) return false;
  if (node->kind() != Symbol::aten("cross_entropy_loss")) return true;
  const auto smoothing = constantArgument(node, "label_smoothing");
  return smoothing && smoothing->isNumber() && smoothing->numberToDouble() >= 0 &&
         smoothing->numberToDouble() <= 1;
}

bool isNormalization(const Node* node) {
  const auto eps = constantArgument(node, "eps");
  if (!eps || !eps->isNumber()) return false;
  const auto is = [&](const char* name, bool value) {
    const auto constant = constantArgument(node, name);
    return constant && constant->isBool() && constant->toBool() == value;
  };
  const auto isNone = [&](const char* name) {
    const auto constant = constantArgument(node, name);
    return constant && constant->isNone();
  };
  if (node->kind() == aten::batch_norm) {
    return is("training", false) && !isNone("running_mean") && !isNone("running_var");
  }
  if (node->kind() == Symbol::aten("instance_norm")) {
    // Running statistics would be written.
    return is("use_input_stats", true) && isNone("running_mean") && isNone("running_var");
  }
  const auto groups = constantArgument(node, "num_groups");
  return groups && groups->isInt() && groups->toInt() > 0;
}

}  // namespace

bool isComposite(const Node* node) {
  const auto it = methods().find(node->kind().qualString());
  const Operator* op = it == methods().end() ? nullptr : node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || node->outputs().size() != 1) return false;
  return takesSeveralKernels(node) ? isClassLoss(node) : isNormalization(node);
}
bool takesSeveralKernels(const Node* node) {
  return node->kind() == Symbol::aten("cross_entropy_loss") ||
         std::string_view(node->kind().qualString()).starts_with("aten::nll_loss");
}

void decompose(Node* node, const Facts& facts) {
  InsertPointGuard guard(node);
  Decomposition decomposition(node, facts);
  Value* result = (decomposition.*methods().at(node->kind().qualString()))();
  node->output()->replaceAllUsesWith(result);
  node->destroy();
}

}  // namespace wick::loop
