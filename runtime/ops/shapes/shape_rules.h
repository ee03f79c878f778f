// Shape rules that operator records name (ir/operator.h): the types of results from those of the
// arguments. A rule finds its arguments by their names in the schema, so that one serves a family.
// Each says nothing where an argument that it needs is unknown. Rules suppose that the call does
// not raise, and the default dtype of now.
#pragma once

#include "ir/graph.h"

namespace wick::ops::shapes {

using Types = std::vector<TypePtr>;

// ---- the shape of an argument ----

// As the first tensor argument; its dtype unless an argument `dtype` says otherwise.
Types likeFirst(const Node& node);
// The same with integers and bool as the default dtype.
Types likeFirstFloating(const Node& node);
// The same with integers and bool as int64, as sums and products have it.
Types likeFirstAccumulated(const Node& node);
// The first tensor argument's shape with a dtype of its own.
Types likeFirstLong(const Node& node);
// Two results: as the first tensor argument, and its shape in int64.
Types likeFirstWithIndices(const Node& node);
// The first tensor argument's dtype in the shape of the argument `index`.
Types likeIndex(const Node& node);

// ---- casts ----

// to, type_as, cpu: the dtype and device by the arguments `dtype`, `device` and `other`.
Types converted(const Node& node);
Types convertedTo(const Node& node, DType dtype);
template <DType dtype>
Types convertedTo(const Node& node) {
  return convertedTo(node, dtype);
}
Types onCpu(const Node& node);

// ---- pointwise operators without a scalar definition ----

// The shape that all tensor arguments broadcast to; the dtype by promotion of the tensors and of
// the Scalar arguments that are called as operands are (self, other, exponent, min, max, …).
Types promoted(const Node& node);
// Division by the argument `rounding_mode`: promoted with one; without, integers and bool become the
// default dtype.
Types divided(const Node& node);
// The shape that all tensor arguments broadcast to, and bool.
Types comparison(const Node& node);

// ---- reductions over `dim` (all when it is absent, None or empty) with `keepdim` ----

Types reduced(const Node& node);             // dtype: that of `dtype`, or the argument's
Types reducedAccumulated(const Node& node);  // integers and bool become int64
Types reducedFloating(const Node& node);     // integers and bool become the default dtype
Types reducedReal(const Node& node);         // complex becomes real
Types reducedRealTwice(const Node& node);    // two results: real, and as the argument
Types reducedLong(const Node& node);
Types reducedBool(const Node& node);  // any, all: uint8 stays
Types reducedWithIndices(const Node& node);
// By `reduction`: a number when it is 1 or 2, else the shape of the arguments broadcast.
Types loss(const Node& node);
// By `reduction`, with classes along dimension 1 of the first argument.
Types classLoss(const Node& node);

// ---- views ----

Types view(const Node& node);    // by `size` or `shape`
Types viewAs(const Node& node);  // the sizes of `other`
Types expanded(const Node& node);
Types broadcastTo(const Node& node);
Types flattened(const Node& node);
Types unflattened(const Node& node);
Types squeezed(const Node& node);
Types squeezedDim(const Node& node);
Types unsqueezed(const Node& node);
Types transposed(const Node& node);        // the first two int arguments
Types transposedMatrix(const Node& node);  // t: of at most two dimensions
Types transposedLast(const Node& node);    // mT
Types reversedDims(const Node& node);
Types permuted(const Node& node);
Types movedDim(const Node& node);
Types selected(const Node& node);
Types sliced(const Node& node);
Types narrowed(const Node& node);
Types diagonal(const Node& node);
Types strided(const Node& node);
Types unfolded(const Node& node);
Types realParts(const Node& node);  // real, imag of complex tensors
// Lists of equal parts: unbind, chunk, split.
Types unbound(const Node& node);
Types parts(const Node& node);

// ---- joining and repeating ----

Types concatenated(const Node& node);
Types stacked(const Node& node);
Types repeated(const Node& node);
Types padded(const Node& node);  // by `pad` or `padding`
Types pixelShuffled(const Node& node);

// ---- factories ----

Types made(const Node& node);      // `size`; `dtype` or the default dtype
Types filled(const Node& node);    // `dtype` or that of `fill_value`
Types madeLike(const Node& node);  // as the first argument unless `dtype`, `device` say otherwise
Types newLike(const Node& node);   // `size`; dtype and device as the first argument's
Types ranged(const Node& node);    // arange
Types identity(const Node& node);  // eye
Types numberTensor(const Node& node);  // scalar_tensor: of no dimension

// ---- matrices ----

Types matrixProduct(const Node& node);         // mm, addmm
Types batchedMatrixProduct(const Node& node);  // bmm, baddbmm
Types matmul(const Node& node);
Types matrixVector(const Node& node);  // mv; the sum of addmv may have the shape of self
Types innerNumber(const Node& node);   // dot, vdot
Types outerProduct(const Node& node);
Types linear(const Node& node);
Types attention(const Node& node);  // scaled_dot_product_attention

// ---- neural networks ----

Types convolution(const Node& node);       // also the transposed ones
Types fusedConvolution(const Node& node);  // wick::conv2d_fused
Types fusedLinear(const Node& node);       // wick::linear_fused
Types pooled(const Node& node);            // max and average pooling
Types pooledWithIndices(const Node& node);
Types adaptivelyPooled(const Node& node);
Types adaptivelyPooledWithIndices(const Node& node);
Types normalized(const Node& node);  // batch, layer, group norm: as the input
// lstm, gru, rnn_tanh, rnn_relu over whole sequences: the output, and the last states.
Types recurrent(const Node& node);

// ---- indexing ----

Types embedded(const Node& node);
Types indexSelected(const Node& node);
Types indexed(const Node& node);  // x[i, j, …] by tensors
Types maskSelected(const Node& node);
Types nonzeroPlaces(const Node& node);
Types topValues(const Node& node);  // topk

}  // namespace wick::ops::shapes
