// The operators by which programs use the tape.
#include <algorithm>

#include "autograd/engine.h"
#include "autograd/views.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/typed.h"

namespace wick::autograd {

namespace {

using namespace ops;

std::vector<Tensor> tensorsOf(const IValue& list) {
  std::vector<Tensor> out;
  if (list.isNone()) return out;
  for (const IValue& e : list.elements()) out.push_back(e.toTensor());
  return out;
}

WalkOptions optionsOf(std::optional<bool> retain_graph, bool create_graph) {
  return {retain_graph.value_or(create_graph), create_graph};
}

// Of each input; None for one on which nothing depends.
IValue gradients(const IValue& outputs, const IValue& inputs, const IValue& grad_outputs,
                 std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  const std::vector<Tensor> found =
      gradientsOf(tensorsOf(outputs), tensorsOf(inputs), tensorsOf(grad_outputs),
                  optionsOf(retain_graph, create_graph), allow_unused);
  ListRef list = makeList(std::make_shared<const OptionalType>(types::Tensor()));
  for (const Tensor& t : found) list->elements.push_back(t.defined() ? IValue(t) : IValue());
  return IValue(std::move(list));
}

void backwardOfList(const IValue& tensors, const IValue& grad_tensors,
                    std::optional<bool> retain_graph, bool create_graph) {
  backward(tensorsOf(tensors), tensorsOf(grad_tensors), optionsOf(retain_graph, create_graph));
}

void backwardOfTensor(const Tensor& self, const Tensor& gradient, std::optional<bool> retain_graph,
                      bool create_graph) {
  backward({self}, {gradient}, optionsOf(retain_graph, create_graph));
}

Tensor requiresGrad(const Tensor& self, bool on) {
  WICK_CHECK(!on || isFloating(self.dtype()) || isComplex(self.dtype()),
             "Only Tensors of floating point and complex dtype can require gradients");
  WICK_CHECK(on || isLeaf(self),
             "you can only change requires_grad flags of leaf variables. If you want to use a "
             "computed variable in a subgraph that doesn't require differentiation use var_no_grad "
             "= var.detach().");
  if (isLeaf(self)) self.setRequiresGrad(on);
  return self;
}

Tensor detachInplace(const Tensor& self) {
  detachInPlace(self);
  return self;
}

IValue gradient(const Tensor& self) {
  const Tensor found = gradientOf(self);
  return found.defined() ? IValue(found) : IValue();
}

Geometry geometry(const DimVector& sizes, const DimVector& strides, int64_t offset) {
  Geometry g;
  g.sizes = sizes;
  g.strides = strides;
  g.offset = offset;
  return g;
}

Tensor scatter(const Tensor& grad, const DimVector& base_size, const DimVector& base_stride,
               int64_t base_offset, const DimVector& size, const DimVector& stride,
               int64_t offset) {
  return scatterStrided(grad, geometry(base_size, base_stride, base_offset),
                        geometry(size, stride, offset));
}

// Zeros, but for a view's elements, which are the gradient's.
template <class View>
Tensor intoZeros(const Tensor& grad, const DimVector& sizes, View&& view) {
  const Tensor out = Tensor::zeros(sizes, grad.dtype(), grad.device());
  const Tensor part = view(out);
  WICK_CHECK(std::ranges::equal(part.sizes(), grad.sizes()),
             "expected a gradient of sizes {}, got {}", formatInts(part.sizes()),
             formatInts(grad.sizes()));
  part.copyFrom(grad);
  return out;
}
Tensor selectBackward(const Tensor& grad, const DimVector& sizes, int64_t dim, int64_t index) {
  return intoZeros(grad, sizes, [&](const Tensor& t) { return t.select(dim, index); });
}
Tensor sliceBackward(const Tensor& grad, const DimVector& sizes, int64_t dim, int64_t start,
                     int64_t end, int64_t step) {
  return intoZeros(grad, sizes, [&](const Tensor& t) { return t.slice(dim, start, end, step); });
}
Tensor diagonalBackward(const Tensor& grad, const DimVector& sizes, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  return intoZeros(grad, sizes, [&](const Tensor& t) {
    const BelowRecorder below;
    return ops::diagonal(t, offset, dim1, dim2);
  });
}

constexpr OperatorRecord kOperatorsRecords[] = {
    {"aten::grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, bool? "
     "retain_graph=None, bool create_graph=False, bool allow_unused=False) -> Tensor?[]",
     WICK_KERNEL(gradients), kNotDifferentiable | kSideEffects | kNeutralMixed},
    {"aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool "
     "create_graph=False) -> ()",
     WICK_KERNEL(backwardOfTensor), kNotDifferentiable | kSideEffects | kNeutralMixed},
    {"aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? "
     "retain_graph=None, bool create_graph=False) -> ()",
     WICK_KERNEL(backwardOfList), kNotDifferentiable | kSideEffects | kNeutralMixed},
    {"aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
     WICK_KERNEL(requiresGrad), kNotDifferentiable | kChangesMetadata | kChangesHistory | kNeutral},
    {"aten::detach_(Tensor(a!) self) -> Tensor(a!)", WICK_KERNEL(detachInplace),
     kNotDifferentiable | kChangesMetadata | kChangesHistory | kNeutral},
    {"aten::retain_grad(Tensor(a!) self) -> ()", WICK_KERNEL(retainGradient),
     kNotDifferentiable | kChangesMetadata | kChangesHistory | kNeutralMixed},
    {"aten::retains_grad(Tensor self) -> bool", WICK_KERNEL(retainsGradient),
     kNotDifferentiable | kNeutralMixed},
    {"aten::is_leaf(Tensor self) -> bool", WICK_KERNEL(isLeaf),
     kNotDifferentiable | kNondeterministic | kNeutralMixed},
    {"prim::requires_grad(Tensor a) -> bool", WICK_KERNEL(requiresGradient),
     kNotDifferentiable | kAnyKind},
    {"aten::output_nr(Tensor self) -> int",
     WICK_LAMBDA([](const Tensor& t) { return static_cast<int64_t>(gradientEdge(t).index); }),
     kNotDifferentiable | kNeutralMixed},
    {"prim::grad(Tensor a) -> Tensor(*)", WICK_KERNEL(gradient),
     kNotDifferentiable | kNondeterministic | kNeutralMixed},
    {"aten::select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
     WICK_KERNEL(selectBackward), kNeutralMixed},
    {"aten::slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int "
     "step) -> Tensor",
     WICK_KERNEL(sliceBackward), kNeutralMixed},
    {"aten::diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int "
     "dim2) -> Tensor",
     WICK_KERNEL(diagonalBackward), kNeutralMixed},
    {"aten::as_strided_backward(Tensor grad_output, int[] base_size, int[] base_stride, int "
     "base_offset, "
     "int[] "
     "size, int[] stride, int offset) -> Tensor",
     WICK_KERNEL(scatter), kNeutralMixed},
};
const RegisterOperators kOperatorsRegistered(kOperatorsRecords);

}  // namespace

}  // namespace wick::autograd
