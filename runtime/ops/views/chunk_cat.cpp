// Tensors cut into equal chunks along a dimension, the chunks of all of them joined: how sharded
// training lays gradients side by side.
#include "runtime/ops/common_calls.h"

namespace wick {
namespace {

// Each chunk as one row behind the leading dimensions; a tensor that does not divide is padded with
// zeros.
Tensor chunkCat(const std::vector<Tensor>& tensors, int64_t dim, int64_t num_chunks) {
  WICK_CHECK(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  WICK_CHECK(num_chunks >= 1, "_chunk_cat expects positive num_chunks, got {}", num_chunks);
  const Tensor& first = tensors[0];
  const int64_t d = wrapDim(dim, first.dim());
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    WICK_CHECK(t.dtype() == first.dtype(),
               "_chunk_cat expects all input tensors with the same dtype");
    WICK_CHECK(t.numel() > 0, "_chunk_cat expects non-empty tensor");
    WICK_CHECK(d < t.dim(), "_chunk_cat: dimension {} is out of range for {}", d, t.describe());
    WICK_CHECK(std::ranges::equal(t.sizes().first(static_cast<size_t>(d)),
                                  first.sizes().first(static_cast<size_t>(d))),
               "_chunk_cat expects same sizes of 0,...,dim-1 dimensions, got {} and {}",
               first.describe(), t.describe());
    const int64_t size = t.size(d), each = (size - 1) / num_chunks + 1;
    int64_t padded = 0;
    WICK_CHECK(!__builtin_mul_overflow(each, num_chunks, &padded),
               "_chunk_cat: num_chunks is too large: {}", num_chunks);
    DimVector padding(static_cast<size_t>(2 * (t.dim() - d)), 0);
    padding.back() = padded - size;
    const Tensor whole = padded == size ? t : ops::constantPad(t, padding, Scalar(0));
    DimVector shape(t.sizes().first(static_cast<size_t>(d)));
    shape.push_back(num_chunks);
    shape.push_back(-1);
    parts.push_back(ops::reshape(whole, shape));
  }
  return ops::cat(parts, d + 1);
}

constexpr OperatorRecord kChunkCatRecords[] = {
    {"aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", WICK_KERNEL(chunkCat),
     kOutForm | kNeutral},
};

const RegisterOperators kChunkCatRegistered(kChunkCatRecords);

}  // namespace
}  // namespace wick
