//   %y : Float(*, 8, *, *) = aten::batch_norm(%x, %w, %b, %mean, %var, %false, …)
// →
//   %p : Float(*, 8, *, *) = aten::mul(%x, %scale)      scale: 1 / sqrt(var + eps) * w, as 8×1×1
//   %y : Float(*, 8, *, *) = aten::add(%p, %shift, %one)   shift: b - mean * scale
#include "passes/decompose.h"

#include <cmath>

#include "core/optimization_limit.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"

namespace wick {

namespace {

std::optional<std::vector<double>> constantDoubles(const Value* v, int64_t n,
                                                   std::optional<double> missing) {
  std::optional<IValue> c = constantOf(v);
  if (!c) return std::nullopt;
  if (c->isNone()) {
    if (!missing) return std::nullopt;
    return std::vector<double>(static_cast<size_t>(n), *missing);
  }
  if (!c->isTensor() || !c->toTensor().defined() || !c->toTensor().device().isCpu()) {
    return std::nullopt;
  }
  Tensor t = c->toTensor();
  if (t.dim() != 1 || t.size(0) != n || !isFloating(t.dtype())) return std::nullopt;
  t = t.to(DType::Double).contiguous();
  return std::vector<double>(t.data<double>(), t.data<double>() + n);
}

Tensor perChannel(const std::vector<double>& values, size_t rank, DType dtype) {
  auto n = static_cast<int64_t>(values.size());
  DimVector sizes(rank - 1, 1);
  sizes[0] = n;
  return Tensor::fromData(values.data(), DimVector{n}).to(dtype).view(sizes);
}

class Decomposer {
 public:
  explicit Decomposer(Graph& graph) : graph_(graph) {}

  size_t block(Block* b) {
    size_t replaced = 0;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      for (Block* sub : n->blocks()) replaced += block(sub);
      InsertPointGuard guard(n);
      RangeGuard range(&graph_, n->range());
      Value* made = nullptr;
      if (n->kind() == aten::batch_norm) {
        made = batchNorm(n);
      } else if (n->kind() == Symbol::aten("matmul")) {
        made = matmul(n);
      }
      if (!made) continue;
      made->setType(n->output()->type());
      replaceValue(n->output(), made);
      n->destroy();
      ++replaced;
    }
    return replaced;
  }

 private:
  Value* insert(const char* name, std::vector<Value*> inputs) {
    return graph_.insertNode(graph_.create(Symbol::aten(name), std::move(inputs)))->output();
  }

  Value* matmul(Node* n) {
    const TensorFacts* a = factsOf(n->input(0));
    const TensorFacts* b = factsOf(n->input(1));
    if (!a || !b || !a->dim || !b->dim) return nullptr;
    const char* name = *a->dim == 2 && *b->dim == 2   ? "mm"
                       : *a->dim == 2 && *b->dim == 1 ? "mv"
                       : *a->dim == 1 && *b->dim == 1 ? "dot"
                                                      : nullptr;
    if (!name || !WICK_MAY_OPTIMIZE("takes apart {}", n->str())) return nullptr;
    return insert(name, {n->input(0), n->input(1)});
  }

  // batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps, …)
  Value* batchNorm(Node* n) {
    const TensorFacts* input = factsOf(n->input(0));
    std::optional<double> eps = floatOf(n->input(7));
    if (!input || !input->sizes || !eps || boolOf(n->input(5)) != std::optional<bool>(false)) {
      return nullptr;
    }
    bool floats = input->dtype == DType::Float || input->dtype == DType::Double;
    size_t rank = input->sizes->size();
    // Without elements the channels need not fit.
    if (!floats || rank < 2 || !(*input->sizes)[1] || *(*input->sizes)[1] <= 0) return nullptr;
    int64_t channels = *(*input->sizes)[1];
    auto weight = constantDoubles(n->input(1), channels, 1.0);
    auto bias = constantDoubles(n->input(2), channels, 0.0);
    auto mean = constantDoubles(n->input(3), channels, std::nullopt);
    auto variance = constantDoubles(n->input(4), channels, std::nullopt);
    if (!weight || !bias || !mean || !variance) return nullptr;
    if (!WICK_MAY_OPTIMIZE("takes apart {}", n->str())) return nullptr;
    std::vector<double> scale(weight->size()), shift(weight->size());
    for (size_t c = 0; c < scale.size(); ++c) {
      double rstd = 1 / std::sqrt((*variance)[c] + *eps);
      scale[c] = rstd * (*weight)[c];
      shift[c] = (*bias)[c] - (*mean)[c] * scale[c];
    }
    Value* factor = graph_.insertConstant(IValue(perChannel(scale, rank, *input->dtype)));
    Value* addend = graph_.insertConstant(IValue(perChannel(shift, rank, *input->dtype)));
    Value* product = insert("mul", {n->input(0), factor});
    product->setType(n->output()->type());
    return insert("add", {product, addend, graph_.insertConstant(IValue(int64_t{1}))});
  }

  Graph& graph_;
};

}  // namespace

size_t decomposeOperators(Graph& graph) {
  SymbolicSizes sizes(lowestSymbol(graph));
  propagateTypes(graph, sizes);
  SymbolicSizes::Scope scope(sizes);
  size_t replaced = 0;
  withStackFor(graph, [&] { replaced = Decomposer(graph).block(graph.block()); });
  return replaced;
}

}  // namespace wick
