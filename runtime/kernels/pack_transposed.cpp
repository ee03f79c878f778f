// oneDNN's own reorder takes half as long again for this one layout, the one that linear layers'
// weights get on processors with AVX-512, and large models are packed in their first call.
#include <algorithm>

#include "core/parallel.h"
#include "core/transpose_tile.h"
#include "runtime/kernels/onednn.h"

namespace wick::onednn {

namespace {

constexpr int64_t kTile = kTransposeTile;
// Elements of a row that are read before the next rows: what they become stays in the second cache.
constexpr int64_t kDepth = 256;

// As transposeTile, at an edge; what does not exist becomes zero.
void transposeEdge(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                   int64_t to_stride) {
  for (int64_t k = 0; k < kTile; ++k) {
    for (int64_t n = 0; n < kTile; ++n) {
      to[k * to_stride + n] = n < rows && k < columns ? from[n * from_stride + k] : 0.0f;
    }
  }
}

// Rows of one block; `rows` of them exist, each of `columns` elements; the block is padded.
void packBlock(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
               int64_t block, int64_t padded_columns) {
  for (int64_t begin = 0; begin < padded_columns; begin += kDepth) {
    const int64_t end = std::min(padded_columns, begin + kDepth);
    for (int64_t n = 0; n < block; n += kTile) {
      for (int64_t k = begin; k < end; k += kTile) {
        float* tile = to + k * block + n;
        if (n + kTile <= rows && k + kTile <= columns) {
          transposeTile(from + n * from_stride + k, from_stride, tile, block);
        } else {
          transposeEdge(from + n * from_stride + k, from_stride, rows - n, columns - k, tile,
                        block);
        }
      }
    }
  }
}

}  // namespace

bool packTransposed(const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
                    const float* from, float* to) {
  constexpr int64_t kInner = 16;
  const dnnl_memory_desc_t& p = plain.data;
  const dnnl_memory_desc_t& w = wanted.data;
  const dnnl_blocking_desc_t& in = p.format_desc.blocking;
  const dnnl_blocking_desc_t& out = w.format_desc.blocking;
  if (p.ndims != 2 || w.ndims != 2 || p.data_type != dnnl_f32 || w.data_type != dnnl_f32 ||
      p.format_kind != dnnl_blocked || w.format_kind != dnnl_blocked || p.offset0 != 0 ||
      w.offset0 != 0 || w.extra.flags != 0 || p.dims[0] != w.dims[0] || p.dims[1] != w.dims[1]) {
    return false;
  }
  if (in.inner_nblks != 0 || in.strides[0] != 1 || out.inner_nblks != 2 || out.inner_idxs[0] != 0 ||
      out.inner_idxs[1] != 1 || out.inner_blks[0] != kInner) {
    return false;
  }
  const int64_t block = out.inner_blks[1], columns = w.dims[0], rows = w.dims[1];
  const int64_t padded_columns = w.padded_dims[0];
  if (block % kTile != 0 || padded_columns % kInner != 0 || w.padded_dims[1] % block != 0 ||
      out.strides[0] != kInner * block || out.strides[1] != padded_columns * block) {
    return false;
  }
  parallelFor(w.padded_dims[1] / block, std::max<int64_t>(1, kGrainSize / (block * columns + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t b = begin; b < end; ++b) {
                  packBlock(from + b * block * in.strides[1], in.strides[1], rows - b * block,
                            columns, to + b * out.strides[1], block, padded_columns);
                }
              });
  return true;
}

}  // namespace wick::onednn
