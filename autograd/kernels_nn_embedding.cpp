// The gradient of rows picked by index.
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/util.h"

namespace wick::autograd {

namespace {

// Zeros of `count` rows, to which each row of the gradient is added at its index; rows of the
// padding are left out. With `by_frequency` a row is divided by how often its index occurs.
Tensor embeddingDenseBackward(const Tensor& grad, const Tensor& indices, int64_t count,
                              int64_t padding, bool by_frequency) {
  const char* op = "embedding_dense_backward";
  WICK_CHECK(indices.dtype() == DType::Long || indices.dtype() == DType::Int,
             "{}: expected indices of type int32 or int64, got {}", op, indices.describe());
  WICK_CHECK(grad.dim() >= 1 && count >= 0,
             "{}: expected a gradient and a number of rows, got {} "
             "and {}",
             op, grad.describe(), count);
  const int64_t width = grad.size(-1), rows = indices.numel();
  int64_t elements = 0;
  WICK_CHECK(!__builtin_mul_overflow(rows, width, &elements) && grad.numel() == elements,
             "{}: a gradient {} does not fit indices {}", op, grad.describe(), indices.describe());
  const Tensor at = indices.to(DType::Long).contiguous();
  const int64_t* index = at.data<int64_t>();
  Tensor often = Tensor::zeros(DimVector{count}, DType::Long);
  for (int64_t i = 0; i < rows; ++i) {
    WICK_CHECK(index[i] >= 0 && index[i] < count, "{}: index {} is out of bounds for {} rows", op,
               index[i], count);
    ++often.data<int64_t>()[index[i]];
  }
  const Tensor g = widened(grad).contiguous();
  Tensor out = Tensor::zeros(DimVector{count, width}, g.dtype());
  dispatch<kFloats | kComplexes>(op, g.dtype(), [&]<class T>() {
    // Threads share the columns, so that every sum is added in the order of the indices.
    constexpr int64_t kColumns = 16;
    const int64_t blocks = (width + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, rows * kColumns));
    parallelFor(blocks, grain, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kColumns, last = std::min(width, end * kColumns);
      for (int64_t i = 0; i < rows; ++i) {
        if (index[i] == padding) continue;
        const T* from = g.data<T>() + i * width;
        T* to = out.data<T>() + index[i] * width;
        if (by_frequency) {
          const T scale = T(1) / static_cast<T>(often.data<int64_t>()[index[i]]);
          for (int64_t c = first; c < last; ++c) to[c] += from[c] * scale;
        } else {
          for (int64_t c = first; c < last; ++c) to[c] += from[c];
        }
      }
    });
  });
  return out.to(grad.dtype());
}

constexpr OperatorRecord kKernelsNnEmbeddingRecords[] = {
    {"aten::embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int "
     "padding_idx, bool scale_grad_by_freq) -> Tensor",
     WICK_KERNEL(embeddingDenseBackward)},
};
const RegisterOperators kKernelsNnEmbeddingRegistered(kKernelsNnEmbeddingRecords);

}  // namespace

}  // namespace wick::autograd
