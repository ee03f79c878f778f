// Small checks that the neural-network operators share.
#pragma once

#include <optional>

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

}  // namespace wick
