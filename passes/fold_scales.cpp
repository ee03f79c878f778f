// The new weights are computed in double precision and rounded once for every fold.
//
//   %y : Tensor = aten::conv2d(%x, %w, %b, …)
//   %z : Tensor = aten::batch_norm(%y, %gamma, %beta, %mean, %var, %false, …)
// →
//   %z : Tensor = aten::conv2d(%x, %w2, %b2, …)
//
//   %y : Tensor = aten::linear(%x, %w, %b)
//   %z : Tensor = aten::mul(%y, %number)
// →
//   %z : Tensor = aten::linear(%x, %w2, %b2)
#include "passes/fold_scales.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "ir/shape_facts.h"
#include "passes/checked_ranks.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"

namespace wick {

namespace {

std::vector<double> doubles(const Value* v, int64_t n, double fallback) {
  std::optional<IValue> c = constantOf(v);
  if (!c || c->isNone()) return std::vector<double>(n, fallback);
  Tensor t = c->toTensor().to(DType::Double).contiguous();
  return std::vector<double>(t.data<double>(), t.data<double>() + t.numel());
}

// Elements are read, which tensors on "meta" have not.
bool isConstantVector(const Value* v, int64_t n, bool optional) {
  std::optional<IValue> c = constantOf(v);
  if (!c) return false;
  if (c->isNone()) return optional;
  return c->isTensor() && c->toTensor().dim() == 1 && c->toTensor().size(0) == n &&
         c->toTensor().device().isCpu();
}

// batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps,
// cudnn_enabled)
struct BatchNorm {
  explicit BatchNorm(const Node* node) : node(node) {}
  bool foldsWith(int64_t channels) const {
    std::optional<IValue> training = constantOf(node->input(5));
    std::optional<IValue> eps = constantOf(node->input(7));
    return training && !training->toBool() && eps &&
           isConstantVector(node->input(1), channels, true) &&
           isConstantVector(node->input(2), channels, true) &&
           isConstantVector(node->input(3), channels, false) &&
           isConstantVector(node->input(4), channels, false);
  }
  const Node* node;
};

// Whether the node multiplies by a weight whose first dimension is the channels of the result.
bool isLayer(const Node* n) {
  static const Symbol kLinear = Symbol::aten("linear");
  static const Symbol kConv1d = Symbol::aten("conv1d");
  static const Symbol kConv3d = Symbol::aten("conv3d");
  if (n->inputs().size() < 3) return false;
  // (input, weight, bias, stride, padding, dilation, transposed, …)
  if (n->kind() == aten::_convolution) return boolOf(n->input(6)) == std::optional<bool>(false);
  return n->kind() == kLinear || n->kind() == aten::conv2d || n->kind() == kConv1d ||
         n->kind() == kConv3d;
}

// The rank of its result with which the channels are the second dimension, which batch_norm
// normalizes. A convolution without a batch has one less.
size_t rankWithChannelsSecond(const Tensor& weight) {
  return weight.dim();
}

bool hasChannelsSecond(const Node* layer, const Tensor& weight) {
  const TensorFacts* facts = factsOf(layer->output());
  return facts && facts->dim == std::optional<size_t>(rankWithChannelsSecond(weight));
}

// The weight of a layer whose result one node alone reads, when weight and bias are constants that
// may be multiplied by other ones.
std::optional<Tensor> weightToFold(const Node* layer) {
  if (!isLayer(layer) || layer->output()->uses().size() != 1) return std::nullopt;
  std::optional<IValue> weight = constantOf(layer->input(1));
  if (!weight || !weight->isTensor() || !weight->toTensor().defined()) return std::nullopt;
  Tensor w = weight->toTensor();
  const bool fits = isFloating(w.dtype()) && w.dim() >= 2 && w.device().isCpu() &&
                    isConstantVector(layer->input(2), w.size(0), true);
  return fits ? std::optional<Tensor>(w) : std::nullopt;
}

// Makes `layer` compute what `after` computes from its result. No bias: the layer's own.
void replace(Graph& graph, Node* layer, Node* after, Tensor weight, std::optional<Tensor> bias) {
  InsertPointGuard guard(layer);
  RangeGuard range(&graph, after->range());
  layer->replaceInput(1, graph.insertConstant(IValue(std::move(weight))));
  if (bias) layer->replaceInput(2, graph.insertConstant(IValue(*std::move(bias))));
  layer->resetOperator();
  after->output()->replaceAllUsesWith(layer->output());
  after->destroy();
}

// Sums of products stay as far from overflow as they were, by and large.
bool isModerate(double factor) {
  constexpr double kLargest = 1 << 24;
  return factor == 0 || (std::abs(factor) <= kLargest && std::abs(factor) >= 1 / kLargest);
}

// Whether numbers up to this one keep their digits as a T: it neither overflows nor is subnormal.
template <class T>
bool holdsDigits(double largest) {
  constexpr double kSmallestNormal = std::is_same_v<T, double> ? 0x1p-1022
                                     : std::is_same_v<T, Half> ? 0x1p-14
                                                               : 0x1p-126;
  const double rounded = convert<double>(convert<T>(largest));
  return largest == 0 || (std::isfinite(rounded) && rounded >= kSmallestNormal);
}

// The rows of `weight` times their factors; nullopt when a product is too large or too small for
// the dtype. In one pass and by all threads: weights are large, and a copy in double precision would
// be twice that of fresh memory.
std::optional<Tensor> scaleRows(const Tensor& weight, const std::vector<double>& factors) {
  if (!std::ranges::all_of(factors, isModerate)) return std::nullopt;
  Tensor from = weight.contiguous();
  Tensor to = Tensor::empty(weight.sizes(), weight.dtype());
  if (to.numel() == 0) return to;
  const int64_t rows = weight.size(0), row = weight.numel() / rows;
  std::atomic<bool> fits = true;
  dispatch<kAnyFloat>("fold", weight.dtype(), [&]<class T>() {
    parallelFor(rows, std::max<int64_t>(1, kGrainSize / row), [&](int64_t begin, int64_t end) {
      bool all = true;
      for (int64_t i = begin; i < end; ++i) {
        const double factor = factors[static_cast<size_t>(i)];
        const T* in = from.data<T>() + i * row;
        T* out = to.data<T>() + i * row;
        double largest = 0;
        for (int64_t k = 0; k < row; ++k) {
          const double product = convert<double>(in[k]) * factor;
          out[k] = convert<T>(product);
          largest = std::max(largest, std::abs(product));
          all &= std::isfinite(product);
        }
        all &= holdsDigits<T>(largest);
      }
      if (!all) fits = false;
    });
  });
  return fits ? std::optional<Tensor>(to) : std::nullopt;
}

// The shifts as a bias; an undefined tensor when one is no finite number of the dtype.
Tensor biasTensor(const std::vector<double>& bias, DType dtype) {
  const DimVector sizes{static_cast<int64_t>(bias.size())};
  const Tensor rounded = Tensor::fromData(bias.data(), sizes).to(dtype);
  const Tensor again = rounded.to(DType::Double);
  const std::span<const double> numbers(again.data<double>(), bias.size());
  return std::ranges::all_of(numbers, [](double b) { return std::isfinite(b); }) ? rounded
                                                                                 : Tensor();
}

// The weight of the layer before a norm, when the two are one layer if the rank is right.
std::optional<Tensor> weightBefore(const Node* norm) {
  const std::optional<Tensor> w = weightToFold(norm->input(0)->node());
  return w && BatchNorm(norm).foldsWith(w->size(0)) ? w : std::nullopt;
}

bool foldBatchNorm(Graph& graph, Node* norm) {
  Node* layer = norm->input(0)->node();
  const std::optional<Tensor> w = weightBefore(norm);
  if (!w || !hasChannelsSecond(layer, *w)) return false;
  const int64_t channels = w->size(0);

  std::vector<double> gamma = doubles(norm->input(1), channels, 1.0);
  std::vector<double> beta = doubles(norm->input(2), channels, 0.0);
  std::vector<double> mean = doubles(norm->input(3), channels, 0.0);
  std::vector<double> var = doubles(norm->input(4), channels, 1.0);
  std::vector<double> bias = doubles(layer->input(2), channels, 0.0);
  double eps = constantOf(norm->input(7))->numberToDouble();
  std::vector<double> factors(static_cast<size_t>(channels));
  for (size_t i = 0; i < factors.size(); ++i) {
    factors[i] = gamma[i] / std::sqrt(var[i] + eps);
    bias[i] = (bias[i] - mean[i]) * factors[i] + beta[i];
  }
  std::optional<Tensor> scaled = scaleRows(*w, factors);
  Tensor shift = biasTensor(bias, w->dtype());
  if (!scaled || !shift.defined()) return false;
  replace(graph, layer, norm, *std::move(scaled), std::move(shift));
  return true;
}

// The number by which mul or div multiplies a tensor, when it is constant.
std::optional<double> factorOf(const Node* n) {
  const bool divides = n->kind() == aten::div;
  if ((n->kind() != aten::mul && !divides) || n->inputs().size() != 2) return std::nullopt;
  std::optional<IValue> number = constantOf(n->input(1));
  if (!number || !(number->isInt() || number->isDouble())) return std::nullopt;
  const double factor = divides ? 1 / number->numberToDouble() : number->numberToDouble();
  // Times zero infinities are NaN, which no weight can tell.
  return std::isfinite(factor) && factor != 0 ? std::optional<double>(factor) : std::nullopt;
}

bool foldFactor(Graph& graph, Node* product) {
  const std::optional<double> factor = factorOf(product);
  if (!factor) return false;
  Node* layer = product->input(0)->node();
  const std::optional<Tensor> w = weightToFold(layer);
  // Numbers of sixteen bits are rounded once more before they are multiplied.
  if (!w || isReducedFloat(w->dtype())) return false;
  std::optional<Tensor> bias;
  if (!isNoneConstant(layer->input(2))) {
    std::vector<double> scaled = doubles(layer->input(2), w->size(0), 0.0);
    for (double& b : scaled) b *= *factor;
    bias = biasTensor(scaled, w->dtype());
    if (!bias->defined()) return false;
  }
  const std::vector<double> factors(static_cast<size_t>(w->size(0)), *factor);
  std::optional<Tensor> weight = scaleRows(*w, factors);
  if (!weight) return false;
  replace(graph, layer, product, *std::move(weight), std::move(bias));
  return true;
}

}  // namespace

size_t foldScales(Graph& graph) {
  const std::vector<Node*> checked = insertCheckedRanks(graph);
  propagateTypes(graph);
  const size_t folded = forEachNode(graph.block(), [&](Node* node) {
    return node->kind() == aten::batch_norm ? foldBatchNorm(graph, node) : foldFactor(graph, node);
  });
  removeCheckedRanks(checked);
  return folded;
}

std::vector<WantedRank> ranksToFold(Graph& graph) {
  std::vector<WantedRank> wanted;
  const std::vector<Node*> checked = insertCheckedRanks(graph);
  propagateTypes(graph);
  forEachNode(graph.block(), [&](const Node* node) {
    if (node->kind() != aten::batch_norm) return;
    const std::optional<Tensor> w = weightBefore(node);
    const Node* const layer = node->input(0)->node();
    const TensorFacts* const facts = w ? factsOf(layer->output()) : nullptr;
    if (facts && !facts->dim) wanted.push_back({layer->input(0), rankWithChannelsSecond(*w)});
  });
  removeCheckedRanks(checked);
  return wanted;
}

}  // namespace wick
