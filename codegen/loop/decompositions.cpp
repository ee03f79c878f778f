// %l = aten::cross_entropy_loss(%x, %target, None, 0, -100, 0.)
// →
// %p = aten::log_softmax(%x, 1, None)
// %ignored = aten::eq(%target, -100)
// %safe = aten::masked_fill(%target, %ignored, 0)
// %picked = aten::squeeze(aten::gather(%p, 1, aten::unsqueeze(%safe, 1), False), 1)
// %l = aten::masked_fill(aten::neg(%picked), %ignored, 0)
#include "codegen/loop/decompositions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "codegen/loop/layout.h"
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

  Value* batchNorm() {
    const std::optional<bool> training = facts_.truth(argument("training"));
    if (!training) refuse("whether it trains");
    return *training ? byItsStatistics() : byRunningStatistics();
  }
  // In double, as the operator does: scale = weight / sqrt(variance + eps), bias - mean * scale.
  Value* byRunningStatistics() {
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

  Value* byItsStatistics() {
    const ValueFacts x = normalized();
    const DType wide = accumulated(x.dtype);
    Value* rows = to(node_->input(0), wide);
    std::vector<int64_t> reduced{0};
    for (int64_t d = 2; d < x.layout.rank; ++d) reduced.push_back(d);
    Value* dims = ints(reduced);
    const auto variance = [&](bool unbiased) {
      return op("var", {rows, dims, truth(unbiased), truth(false)});
    };
    const auto parameter = [&](const char* name) {
      return perChannel(to(channels(name, x), wide), x, 2);
    };
    Value* mean = op("mean", {rows, dims, truth(false), none()});
    if (has("running_mean")) {
      update("running_mean", mean, x);
      update("running_var", variance(true), x);
    }
    Value* scale = op("rsqrt", {op("add", {variance(false), argument("eps"), integer(1)})});
    Value* result = op("sub", {rows, perChannel(mean, x, 2), integer(1)});
    result = op("mul", {result, perChannel(scale, x, 2)});
    if (has("weight")) result = op("mul", {result, parameter("weight")});
    if (has("bias")) result = op("add", {result, parameter("bias"), integer(1)});
    return to(laid(result, formatted()), x.dtype);
  }

  // x [N, C, …] as [N, groups, C / groups, …]; all dimensions but the first two are a row.
  Value* groupNorm() { return ofGroups(constantInt("num_groups"), true, formatted()); }
  Value* instanceNorm() { return ofGroups(0, false, false); }

  Value* meanSquaredError() {
    Value* difference = lessTarget();
    return reduceLoss(op("mul", {difference, difference}));
  }
  Value* absoluteError() { return reduceLoss(op("abs", {lessTarget()})); }
  Value* smoothAbsoluteError() {
    const double beta = constantOf(argument("beta"))->numberToDouble();
    if (beta == 0) return absoluteError();
    Value* z = op("abs", {lessTarget()});
    Value* near = op("div", {op("mul", {op("mul", {z, z}), number(0.5)}), number(beta)});
    Value* far = op("add", {z, number(-0.5 * beta), integer(1)});
    return reduceLoss(op("where", {op("lt", {z, number(beta)}), near, far}));
  }
  Value* huber() {
    const double delta = constantOf(argument("delta"))->numberToDouble();
    Value* z = op("abs", {lessTarget()});
    Value* near = op("mul", {op("mul", {z, z}), number(0.5)});
    Value* far = op("mul", {op("add", {z, number(-0.5 * delta), integer(1)}), number(delta)});
    return reduceLoss(op("where", {op("le", {z, number(delta)}), near, far}));
  }

  Value* binaryCrossEntropy() {
    const ValueFacts x = tensor(0), y = tensor(1);
    bool same = x.layout.rank == y.layout.rank;
    for (int d = 0; same && d < x.layout.rank; ++d) same = alike(sizeOf(x, d), sizeOf(y, d));
    if (!same || !isFloating(x.dtype) || !isFloating(y.dtype)) refuse("the target");
    Value* self = node_->input(0);
    Value* target = node_->input(1);
    Value* inside = op("logical_and", {op("ge", {self, integer(0)}), op("le", {self, integer(1)})});
    Value* log_not = op("clamp_min", {op("log1p", {op("neg", {self})}), integer(-100)});
    Value* log_yes = op("clamp_min", {op("log", {self}), integer(-100)});
    Value* loss = op("sub", {op("mul", {op("add", {target, integer(-1), integer(1)}), log_not}),
                             op("mul", {target, log_yes}), integer(1)});
    facts_.require(loss, inside);
    return reduceLoss(weighted(loss));
  }
  Value* binaryCrossEntropyWithLogits() {
    Value* self = node_->input(0);
    Value* target = node_->input(1);
    tensor(0), tensor(1);
    Value* negated = op("neg", {self});
    Value* shift = op("clamp_min", {negated, integer(0)});
    Value* powers = op("add", {op("exp", {op("neg", {shift})}),
                               op("exp", {op("sub", {negated, shift, integer(1)})}), integer(1)});
    Value* log_sum = op("add", {op("log", {powers}), shift, integer(1)});
    if (has("pos_weight")) {
      Value* more = op("add", {argument("pos_weight"), integer(-1), integer(1)});
      Value* log_weight = op("add", {op("mul", {more, target}), integer(1), integer(1)});
      log_sum = op("mul", {log_weight, log_sum});
    }
    Value* rest = op("mul", {op("rsub", {target, integer(1), integer(1)}), self});
    return reduceLoss(weighted(op("add", {rest, log_sum, integer(1)})));
  }
  Value* divergence() {
    if (!isFloating(tensor(0).dtype) || !isFloating(tensor(1).dtype)) refuse("the dtype");
    Value* self = node_->input(0);
    Value* target = node_->input(1);
    if (constantOf(argument("log_target"))->toBool()) {
      Value* difference = op("sub", {target, self, integer(1)});
      return reduceLoss(op("mul", {op("exp", {target}), difference}));
    }
    return reduceLoss(
        op("sub", {op("xlogy", {target, target}), op("mul", {target, self}), integer(1)}));
  }

  Value* poissonLoss() {
    tensor(0), tensor(1);
    Value* x = node_->input(0);
    Value* target = node_->input(1);
    Value* loss;
    if (constantOf(argument("log_input"))->toBool()) {
      loss = op("sub", {op("exp", {x}), op("mul", {target, x}), integer(1)});
    } else {
      Value* log = op("log", {op("add", {x, argument("eps"), integer(1)})});
      loss = op("sub", {x, op("mul", {target, log}), integer(1)});
    }
    if (constantOf(argument("full"))->toBool()) {
      Value* rest = op("sub", {op("mul", {target, op("log", {target})}), target, integer(1)});
      Value* root = op("mul", {op("log", {op("mul", {target, number(2 * M_PI)})}), number(0.5)});
      Value* small = op("le", {target, integer(1)});
      Value* stirling = op("add", {rest, root, integer(1)});
      loss = op("add", {loss, op("masked_fill", {stirling, small, integer(0)}), integer(1)});
    }
    return reduceLoss(loss);
  }
  Value* softMargin() {
    tensor(0), tensor(1);
    Value* power = op("exp", {op("mul", {op("neg", {node_->input(1)}), node_->input(0)})});
    return reduceLoss(op("log", {op("add", {power, integer(1), integer(1)})}));
  }
  Value* marginRanking() {
    tensor(0), tensor(1), tensor(2);
    Value* difference = op("mul", {op("neg", {node_->input(2)}), lessTarget()});
    difference = op("add", {difference, argument("margin"), integer(1)});
    return reduceLoss(op("clamp_min", {difference, integer(0)}));
  }

  Value* pairwiseDistance() {
    tensor(0), tensor(1);
    Value* difference = op("add", {lessTarget(), argument("eps"), integer(1)});
    return op("linalg_vector_norm",
              {difference, argument("p"), ints({-1}), argument("keepdim"), none()});
  }

  // The halves as two of a new dimension.
  Value* gatedLinearUnit() {
    const ValueFacts x = tensor(0);
    const int64_t dim = constantInt("dim");
    const int64_t d = dim < 0 ? dim + x.layout.rank : dim;
    if (d < 0 || d >= x.layout.rank || x.layout.rank == kMaxRank) refuse("the dimension");
    // Of a dimension of size 1 a view may change the stride, and with it the order of the result's.
    const auto* sizes = x.layout.sizes.data();
    if (!isOrdered(x.layout) && std::count(sizes, sizes + x.layout.rank, 1) != 0) {
      refuse("single elements of a tensor in another order");
    }
    Value* halves = op("unflatten", {node_->input(0), integer(d), ints({2, -1})});
    Value* gate = op("sigmoid", {op("select", {halves, integer(d), integer(1)})});
    return op("mul", {op("select", {halves, integer(d), integer(0)}), gate});
  }

  Value* cosineSimilarity() {
    const ValueFacts x = tensor(0), y = tensor(1);
    const DType dtype = promoteTypes(x.dtype, y.dtype);
    if (!isFloating(dtype) || isComplex(dtype)) refuse("the dtype");
    Value* dims = ints({constantInt("dim")});
    Value* a = x.dtype == dtype ? node_->input(0) : to(node_->input(0), dtype);
    Value* b = y.dtype == dtype ? node_->input(1) : to(node_->input(1), dtype);
    if (!covers(x, y) && !covers(y, x)) refuse("these shapes");
    if (!covers(x, y)) a = op("expand_as", {a, b});
    if (!covers(y, x)) b = op("expand_as", {b, a});
    const auto unit = [&](Value* t) {
      Value* norm = op("linalg_vector_norm", {t, integer(2), dims, truth(true), none()});
      return op("div", {t, op("clamp_min", {norm, argument("eps")})});
    };
    return op("sum", {op("mul", {unit(a), unit(b)}), dims, truth(false), none()});
  }

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
    if (!facts.is_tensor) refuse("an argument that is not a tensor");
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

  // Whether the other broadcasts to the size of the first, as far as sizes of one say.
  static bool covers(const ValueFacts& x, const ValueFacts& y) {
    const int more = x.layout.rank - y.layout.rank;
    for (int d = 0; d < y.layout.rank && more >= 0; ++d) {
      if (sizeOf(y, d) != 1 && sizeOf(x, d + more) == 1) return false;
    }
    return more >= 0;
  }

  Value* lessTarget() {
    tensor(0), tensor(1);
    return op("sub", {node_->input(0), node_->input(1), integer(1)});
  }
  Value* weighted(Value* loss) {
    return has("weight") ? op("mul", {loss, argument("weight")}) : loss;
  }
  Value* reduceLoss(Value* loss) {
    const int64_t reduction = constantInt("reduction");
    if (reduction == kReductionNone) return loss;
    return op(reduction == kReductionSum ? "sum" : "mean", {loss, none()});
  }

  // Moves a running statistic towards what it is now.
  void update(const char* name, Value* now, const ValueFacts& x) {
    Value* running = argument(name);
    if (running->uses().size() != 1) refuse("statistics that others read");
    Value* old = channels(name, x);
    const double momentum = constantOf(argument("momentum"))->numberToDouble();
    Value* moved = op("mul", {to(now, DType::Double), number(momentum)});
    Value* kept = op("mul", {old, number(1 - momentum)});
    facts_.write(running, to(op("add", {moved, kept, integer(1)}), facts_.of(running).dtype));
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
    return t.dtype == DType::Double ? argument(name) : to(argument(name), DType::Double);
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
    return reduceLoss(smoothed(loss, p, dim, smoothing));
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

std::optional<IValue> constantArgument(const Node* node, const char* name) {
  return constantOf(node->namedInput(name));
}
bool isNumber(const Node* node, const char* name, double least, bool least_too) {
  const auto value = constantArgument(node, name);
  if (!value || !value->isNumber() || value->isComplex()) return false;
  const double n = value->numberToDouble();
  return n > least || (least_too && n == least);
}
bool isBool(const Node* node, const char* name) {
  const auto value = constantArgument(node, name);
  return value && value->isBool();
}

bool isLoss(const Node* node) {
  const auto value = constantArgument(node, "reduction");
  return value && value->isInt() && value->toInt() >= kReductionNone &&
         value->toInt() <= kReductionSum;
}
bool isSmoothLoss(const Node* node) {
  return isLoss(node) && isNumber(node, "beta", 0, true);
}
bool isHuberLoss(const Node* node) {
  return isLoss(node) && isNumber(node, "delta", 0, false);
}
bool isDivergence(const Node* node) {
  return isLoss(node) && isBool(node, "log_target");
}
bool isPoissonLoss(const Node* node) {
  return isLoss(node) && isBool(node, "log_input") && isBool(node, "full");
}
bool isDistance(const Node* node) {
  const auto p = constantArgument(node, "p");
  return p && p->isNumber() && !p->isComplex() && isBool(node, "keepdim");
}
bool isClassLoss(const Node* node) {
  const auto ignored = constantArgument(node, "ignore_index");
  return isLoss(node) && ignored && ignored->isInt();
}
bool isCrossEntropy(const Node* node) {
  return isClassLoss(node) && isNumber(node, "label_smoothing", 0, true) &&
         constantArgument(node, "label_smoothing")->numberToDouble() <= 1;
}
bool isAlongDim(const Node* node) {
  const auto dim = constantArgument(node, "dim");
  return dim && dim->isInt();
}

bool isNormalization(const Node* node) {
  const auto eps = constantArgument(node, "eps");
  return eps && eps->isNumber();
}
bool isConstantBool(const Node* node, const char* name, bool value) {
  return isBool(node, name) && constantArgument(node, name)->toBool() == value;
}
bool isConstantNone(const Node* node, const char* name) {
  const auto constant = constantArgument(node, name);
  return constant && constant->isNone();
}
bool isBatchNorm(const Node* node) {
  if (!isNormalization(node)) return false;
  const bool mean = isConstantNone(node, "running_mean"),
             variance = isConstantNone(node, "running_var");
  if (isConstantBool(node, "training", false)) return !mean && !variance;
  const auto momentum = constantArgument(node, "momentum");
  return mean == variance && (!mean || isBool(node, "training")) && momentum &&
         momentum->isNumber() && !momentum->isComplex();
}
bool isInstanceNorm(const Node* node) {
  // Running statistics would be written.
  return isNormalization(node) && isConstantBool(node, "use_input_stats", true) &&
         isConstantNone(node, "running_mean") && isConstantNone(node, "running_var");
}
bool isGroupNorm(const Node* node) {
  const auto groups = constantArgument(node, "num_groups");
  return isNormalization(node) && groups && groups->isInt() && groups->toInt() > 0;
}

struct Entry {
  Value* (Decomposition::*method)();
  bool (*accepts)(const Node*);
  bool several;  // operators, which the operator itself calls one after the other
};
const std::unordered_map<std::string_view, Entry>& entries() {
  using D = Decomposition;
  static const auto* table = new std::unordered_map<std::string_view, Entry>{
      {"aten::cross_entropy_loss", {&D::crossEntropy, isCrossEntropy, true}},
      {"aten::nll_loss", {&D::negativeLogLikelihood, isClassLoss, true}},
      {"aten::nll_loss2d", {&D::negativeLogLikelihood, isClassLoss, true}},
      {"aten::nll_loss_nd", {&D::negativeLogLikelihood, isClassLoss, true}},
      {"aten::mse_loss", {&D::meanSquaredError, isLoss, true}},
      {"aten::l1_loss", {&D::absoluteError, isLoss, true}},
      {"aten::smooth_l1_loss", {&D::smoothAbsoluteError, isSmoothLoss, true}},
      {"aten::huber_loss", {&D::huber, isHuberLoss, true}},
      {"aten::binary_cross_entropy", {&D::binaryCrossEntropy, isLoss, true}},
      {"aten::binary_cross_entropy_with_logits", {&D::binaryCrossEntropyWithLogits, isLoss, true}},
      {"aten::kl_div", {&D::divergence, isDivergence, true}},
      {"aten::poisson_nll_loss", {&D::poissonLoss, isPoissonLoss, true}},
      {"aten::soft_margin_loss", {&D::softMargin, isLoss, true}},
      {"aten::margin_ranking_loss", {&D::marginRanking, isLoss, true}},
      {"aten::pairwise_distance", {&D::pairwiseDistance, isDistance, true}},
      {"aten::glu", {&D::gatedLinearUnit, isAlongDim, true}},
      {"aten::cosine_similarity", {&D::cosineSimilarity, isAlongDim, true}},
      {"aten::batch_norm", {&D::batchNorm, isBatchNorm, false}},
      {"aten::group_norm", {&D::groupNorm, isGroupNorm, false}},
      {"aten::instance_norm", {&D::instanceNorm, isInstanceNorm, false}},
  };
  return *table;
}

}  // namespace

bool isComposite(const Node* node) {
  const auto it = entries().find(node->kind().qualString());
  const Operator* op = it == entries().end() ? nullptr : node->maybeOperator();
  return op && op->form() == Operator::Form::Base && node->outputs().size() == 1 &&
         it->second.accepts(node);
}
bool takesSeveralKernels(const Node* node) {
  const auto it = entries().find(node->kind().qualString());
  return it != entries().end() && it->second.several;
}

bool updatesArguments(const Node* node) {
  const Operator* op = node->maybeOperator();
  return op && op->unannotatedWrites(*node) != 0;
}

void decompose(Node* node, const Facts& facts) {
  InsertPointGuard guard(node);
  Decomposition decomposition(node, facts);
  Value* result = (decomposition.*entries().at(node->kind().qualString()).method)();
  node->output()->replaceAllUsesWith(result);
  node->destroy();
}

}  // namespace wick::loop
