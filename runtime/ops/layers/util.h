// Small checks that the neural-network operators share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "core/tensor.h"

namespace wick {

// An int[n] argument: one value stands for n. RuntimeError for another count.
inline DimVector expandInts(const char* op, const char* name, const DimVector& values, size_t n) {
  if (values.size() == n) return values;
  WICK_CHECK(values.size() == 1, "{}: expected {} to be a single integer or a list of {}, got {}",
             op, name, n, formatInts(values));
  return DimVector(n, values[0]);
}

inline bool isChannelsLast(const Tensor& t) {
  MemoryFormat f = t.suggestMemoryFormat();
  return f == MemoryFormat::ChannelsLast || f == MemoryFormat::ChannelsLast3d;
}

namespace ops {

// Enlarged to these sizes with zeros at the ends of its dimensions; itself when it has them. No size may be smaller than
// the tensor's own.
Tensor paddedAtEnd(const Tensor& t, IntSpan sizes);

}  // namespace ops

// Of max_unpool the sizes of the result, whose planes have `sizes`; the others are those of `self`. RuntimeError when the
// arguments do not fit together.
inline DimVector unpooledSizes(const char* op, const Tensor& self, const Tensor& indices,
                               const DimVector& sizes) {
  const auto n = static_cast<int64_t>(sizes.size());
  WICK_CHECK(indices.dtype() == DType::Long, "{}: elements in indices should be type int64", op);
  WICK_CHECK(std::ranges::equal(self.sizes(), indices.sizes()),
             "{}: Expected shape of indices to be {} but got {}", op, formatInts(self.sizes()),
             formatInts(indices.sizes()));
  WICK_CHECK(self.dim() == n + 1 || self.dim() == n + 2, "{}: expected {}D or {}D input, got {}",
             op, n + 1, n + 2, formatInts(self.sizes()));
  DimVector all(self.sizes().first(static_cast<size_t>(self.dim() - n)));
  for (const int64_t size : sizes) all.push_back(size);
  return all;
}

// What max_unpool3d asks of windows that it does not use. RuntimeError.
inline void checkUnpooledWindows(const DimVector& stride, const DimVector& padding) {
  WICK_CHECK(
      stride.size() == 3 && padding.size() == 3,
      "max_unpool3d: There should be exactly three elements (depth, height, width) in stride "
      "and in padding, but got: {} and {}",
      formatInts(stride), formatInts(padding));
  for (const int64_t each : stride) {
    WICK_CHECK(each > 0, "max_unpool3d: strides should be greater than zero, but got stride: {}",
               formatInts(stride));
  }
}

// Sixteen-bit floats as float32, in which kernels compute; other tensors, undefined ones among
// them, as they are.
inline Tensor widened(const Tensor& t) {
  return t.defined() && isReducedFloat(t.dtype()) ? t.to(DType::Float) : t;
}

// The row of a table [rows, width] that stands for padding; -1 where there is none, and for a weight that
// is no table. RuntimeError when the number, which may count from the end, is no row.
inline int64_t paddedRow(const char* op, const Tensor& weight, std::optional<int64_t> padding) {
  if (!padding || weight.dim() != 2) return -1;
  WICK_CHECK(*padding >= -weight.size(0) && *padding < weight.size(0),
             "{}: padding_idx must be within the number of embeddings, but got {}", op, *padding);
  return *padding < 0 ? *padding + weight.size(0) : *padding;
}

// What embedding_bag checks and gives on every device.
namespace bags {

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

struct Bags {
  int64_t mode;
  bool include_last;
  int64_t padding;  // this index takes no part; -1: none
};

// How many bags there are. RuntimeError when the arguments do not fit together.
int64_t checkBags(const char* op, const Tensor& weight, const Tensor& indices,
                  const Tensor& offsets, const Tensor& scales, const Bags& b);
// The results as PyTorch gives them, of those that were computed: the rows, the bag of each index, the
// size of each bag, the index of each maximum.
Four resultsOf(const Tensor& weight, const Tensor& indices, const Tensor& offsets, const Bags& b,
               const Tensor& out, Tensor bag_of, Tensor bag_size, Tensor max_indices);

// The operators over the function that computes all of them.
using Compute = Four (*)(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                         const Tensor& scales, Bags b);
template <Compute kCompute>
struct Operators {
  static Four plain(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                    int64_t mode, bool, const Tensor& scales, bool include_last) {
    return kCompute(weight, indices, offsets, scales, {mode, include_last, -1});
  }
  static Four padded(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                     int64_t mode, bool, const Tensor& scales, bool include_last,
                     std::optional<int64_t> padding) {
    return kCompute(weight, indices, offsets, scales,
                    {mode, include_last, paddedRow("embedding_bag", weight, padding)});
  }
  static Four internal(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                       int64_t mode, bool, const Tensor& scales, bool include_last,
                       int64_t padding) {
    return kCompute(weight, indices, offsets, scales, {mode, include_last, padding});
  }
};

}  // namespace bags

}  // namespace wick
