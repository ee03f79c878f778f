// The engine of reductions: any set of dimensions of a strided tensor, reduced by an operation
// given as a type.
//
//   struct Sum {
//     using Acc = double;
//     Acc init() const { return 0; }
//     void step(Acc& a, float v) const { a += v; }
//     void merge(Acc& a, const Acc& b) const { a += b; }
//     float finish(const Acc& a) const { return a; }
//   };
//
// It may also have `int64_t row(Acc&, const float* p, int64_t n) const`, which takes as many of n
// neighbours as suit it, from the first on, and says how many; and `void fourRows(Acc*, const
// float* p, int64_t stride, int64_t n) const`, which steps with four rows of n neighbours, one
// behind the other: element j of each into the j-th result.
//
// Partial results are merged in an order that depends on the shape alone, so the result is the same
// for any number of threads. float32 sums accumulate in float64, which agrees with the exact sum to
// the last bit or nearly so.
#pragma once

#include <algorithm>
#include <vector>

#include "core/counted_vector.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace wick::reduce {

struct Dim {
  int64_t size;
  int64_t in;   // stride of the input in elements
  int64_t out;  // stride of the output
};

// Dimensions of size above one, largest input stride first, merged where one continues the other.
struct Plan {
  std::vector<Dim> kept;
  std::vector<Dim> reduced;  // out is 0
  int64_t outputs = 1;
  int64_t reduced_count = 1;
};
// `mask[d]`: whether dimension d is reduced. The output is row-major over the kept dimensions.
Plan makePlan(const Tensor& in, const std::vector<bool>& mask);

// The offset of element `index` of `dims` in row-major order.
inline int64_t offsetOf(const std::vector<Dim>& dims, size_t count, int64_t index,
                        int64_t Dim::*stride) {
  int64_t offset = 0;
  for (size_t d = count; d-- > 0;) {
    offset += index % dims[d].size * (dims[d].*stride);
    index /= dims[d].size;
  }
  return offset;
}

inline constexpr int64_t kLanes = 8;
inline constexpr int64_t kBlock = 64;
// Elements that one partial result covers when a single output is shared among threads.
inline constexpr int64_t kChunk = 1 << 16;
// Partial results that are kept at a time. A tensor that is expanded may have more elements than
// memory has room for even these.
inline constexpr int64_t kMostPartial = 1 << 16;

// n elements with a stride into acc. Independent lanes let the compiler use vectors although it may
// not reorder a sum by itself.
template <class Op, class In>
void reduceRow(const Op& op, typename Op::Acc& acc, const In* p, int64_t n, int64_t stride) {
  int64_t i = 0;
  if constexpr (requires { op.row(acc, p, n); }) {
    if (stride == 1 && n >= 4 * kLanes) i = op.row(acc, p, n);
  } else if (stride == 1 && n >= 4 * kLanes) {
    typename Op::Acc lanes[kLanes];
    for (auto& l : lanes) l = op.init();
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) op.step(lanes[l], p[i + l]);
    }
    for (const auto& l : lanes) op.merge(acc, l);
  }
  for (; i < n; ++i) op.step(acc, p[i * stride]);
}

// Elements [begin, end) of the reduced index space into acc.
template <class Op, class In>
void reduceRange(const Op& op, typename Op::Acc& acc, const In* base, const Plan& plan,
                 int64_t begin, int64_t end) {
  if (plan.reduced.empty()) {
    if (begin < end) op.step(acc, *base);
    return;
  }
  const Dim inner = plan.reduced.back();
  while (begin < end) {
    int64_t row = begin / inner.size, first = begin % inner.size;
    int64_t n = std::min(inner.size - first, end - begin);
    int64_t offset = offsetOf(plan.reduced, plan.reduced.size() - 1, row, &Dim::in);
    reduceRow(op, acc, base + offset + first * inner.in, n, inner.in);
    begin += n;
  }
}

// The innermost memory dimension is kept: `width` neighbouring outputs advance together. Leaves off
// when the budget (null: none) is exhausted.
template <class Op, class In, class Out>
void reduceColumns(const Op& op, const In* in, Out* out, const Plan& plan, int64_t width,
                   const Budget* budget) {
  const Dim inner = plan.kept.back();
  typename Op::Acc acc[kBlock];
  for (int64_t j = 0; j < width; ++j) acc[j] = op.init();
  const Dim last = plan.reduced.back();
  int64_t rows = plan.reduced_count / last.size;
  int64_t until_look = kChunk;
  for (int64_t row = 0; row < rows; ++row) {
    const In* p = in + offsetOf(plan.reduced, plan.reduced.size() - 1, row, &Dim::in);
    int64_t r = 0;
    // Four rows at a time, which each partial result is fetched and stored once for.
    for (; inner.in == 1 && r + 4 <= last.size; r += 4, p += 4 * last.in) {
      if ((until_look -= 4 * width) < 0) [[unlikely]] {
        if (budget && budget->exhausted()) return;
        until_look = kChunk;
      }
      if constexpr (requires { op.fourRows(acc, p, last.in, width); }) {
        op.fourRows(acc, p, last.in, width);
      } else {
        for (int64_t j = 0; j < width; ++j) {
          typename Op::Acc a = acc[j];
          for (int64_t k = 0; k < 4; ++k) op.step(a, p[k * last.in + j]);
          acc[j] = a;
        }
      }
    }
    for (; r < last.size; ++r, p += last.in) {
      if ((until_look -= width) < 0) [[unlikely]] {
        if (budget && budget->exhausted()) return;
        until_look = kChunk;
      }
      if (inner.in == 1) {
        for (int64_t j = 0; j < width; ++j) op.step(acc[j], p[j]);
      } else {
        for (int64_t j = 0; j < width; ++j) op.step(acc[j], p[j * inner.in]);
      }
    }
  }
  for (int64_t j = 0; j < width; ++j) out[j * inner.out] = op.finish(acc[j]);
}

// Reduces `in` into the row-major memory `out`.
template <class Op, class In, class Out>
void run(const Op& op, const In* in, Out* out, const Plan& plan) {
  if (plan.outputs == 0) return;
  if (plan.reduced_count == 0) {
    for (int64_t i = 0; i < plan.outputs; ++i) out[i] = op.finish(op.init());
    return;
  }
  bool columns = !plan.kept.empty() && !plan.reduced.empty() &&
                 std::abs(plan.kept.back().in) < std::abs(plan.reduced.back().in);
  if (columns) {
    const Dim inner = plan.kept.back();
    int64_t blocks = (inner.size + kBlock - 1) / kBlock;
    int64_t units = plan.outputs / inner.size * blocks;
    int64_t work = plan.reduced_count * std::min(inner.size, kBlock);
    const Budget* const budget = currentBudget();
    parallelFor(units, kGrainSize / work, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        int64_t outer = unit / blocks, first = unit % blocks * kBlock;
        size_t dims = plan.kept.size() - 1;
        reduceColumns(op, in + offsetOf(plan.kept, dims, outer, &Dim::in) + first * inner.in,
                      out + offsetOf(plan.kept, dims, outer, &Dim::out) + first * inner.out, plan,
                      std::min(kBlock, inner.size - first), budget);
      }
    });
    return;
  }
  int64_t chunks = (plan.reduced_count + kChunk - 1) / kChunk;
  auto location = [&](int64_t i, int64_t Dim::*stride) {
    return offsetOf(plan.kept, plan.kept.size(), i, stride);
  };
  if (chunks == 1) {
    parallelFor(plan.outputs, kGrainSize / plan.reduced_count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        auto acc = op.init();
        reduceRange(op, acc, in + location(i, &Dim::in), plan, 0, plan.reduced_count);
        out[location(i, &Dim::out)] = op.finish(acc);
      }
    });
    return;
  }
  // A struct, for threads may not write neighbouring bools of a vector.
  struct Part {
    typename Op::Acc acc;
  };
  CountedVector<Part> partial(static_cast<size_t>(std::min(chunks, kMostPartial)));
  for (int64_t i = 0; i < plan.outputs; ++i) {
    const In* base = in + location(i, &Dim::in);
    auto acc = op.init();
    for (int64_t first = 0; first < chunks; first += kMostPartial) {
      const int64_t count = std::min(chunks - first, kMostPartial);
      parallelFor(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          auto part = op.init();
          reduceRange(op, part, base, plan, (first + c) * kChunk,
                      std::min(plan.reduced_count, (first + c + 1) * kChunk));
          partial[static_cast<size_t>(c)].acc = part;
        }
      });
      for (int64_t c = 0; c < count; ++c) op.merge(acc, partial[static_cast<size_t>(c)].acc);
    }
    out[location(i, &Dim::out)] = op.finish(acc);
  }
}

// The dimensions that an operator's `dim` argument names, wrapped and checked: all of them when it
// is empty. Errors begin with `op`.
std::vector<bool> dimMask(const char* op, const Tensor& in, IntSpan dims);
// The result's sizes: reduced dimensions are dropped or, with `keepdim`, 1.
DimVector reducedSizes(const Tensor& in, const std::vector<bool>& mask, bool keepdim);

// Reduces a tensor of In to a fresh one of Out.
template <class In, class Out, class Op>
Tensor apply(const Op& op, const Tensor& in, const std::vector<bool>& mask, bool keepdim) {
  Tensor out = Tensor::empty(reducedSizes(in, mask, keepdim), kDTypeOf<Out>, in.device());
  run(op, in.data<In>(), out.data<Out>(), makePlan(in, mask));
  return out;
}

// What a float16 or float32 sum accumulates in, and so on: wide enough that its rounding is not
// seen.
template <class T>
struct Wide {
  using type = double;
};
template <>
struct Wide<std::complex<float>> {
  using type = std::complex<double>;
};
template <>
struct Wide<std::complex<double>> {
  using type = std::complex<double>;
};

}  // namespace wick::reduce
