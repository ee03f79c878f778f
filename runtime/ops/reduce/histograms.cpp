// histogram and histogramdd: points of one or more dimensions counted in the cells of a grid.
#include <cmath>

#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops {

namespace {

using Tensors = std::vector<Tensor>;

// How the cell of a coordinate is found: by bisecting the edges, or, for evenly spaced ones, by a
// division whose answer the neighbouring edges correct.
enum class CellSearch { Bisect, Divide };

void checkPoints(const Tensor& self, const Tensor& weight) {
  WICK_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  if (!weight.defined()) return;
  WICK_CHECK(
      weight.dtype() == self.dtype(),
      "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
      "have the same dtype, but got input(self) {} and weight {}",
      toString(self.dtype()), toString(weight.dtype()));
  DimVector outer(self.sizes().begin(), self.sizes().end() - 1);
  WICK_CHECK(std::ranges::equal(weight.sizes(), outer),
             "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
             "input tensor excluding its innermost dimension, but got input with shape {} and "
             "weight with shape {}",
             formatInts(self.sizes()), formatInts(weight.sizes()));
}

template <class T>
int64_t cellOf(const T* edges, int64_t n, T v, CellSearch how) {
  if (v < edges[0] || v > edges[n - 1]) return -1;
  // PyTorch counts NaN: in the last cell, or in what its division makes of it.
  if (v != v) return how == CellSearch::Divide ? std::min<int64_t>(1, n - 2) : n - 2;
  int64_t low = 0;
  int64_t high = n;
  if (how == CellSearch::Divide) {
    const T share = (v - edges[0]) / (edges[n - 1] - edges[0]) * static_cast<T>(n - 1);
    // Infinite edges have no shares.
    if (!(share >= 0 && share <= static_cast<T>(n))) return n - 2;
    const auto guess = static_cast<int64_t>(share);
    low = std::clamp<int64_t>(guess - 1, 0, n);
    high = std::clamp<int64_t>(guess + 2, 0, n);
  }
  int64_t cell = std::upper_bound(edges + low, edges + high, v) - edges - 1;
  // The last cell holds its right edge.
  return std::clamp<int64_t>(cell, 0, n - 2);
}

template <class T>
void countPoints(const Tensor& points, const Tensor& weights, const Tensors& edges,
                 const Tensor& counts, CellSearch how) {
  int64_t dims = static_cast<int64_t>(edges.size());
  int64_t n = dims == 0 ? 0 : points.numel() / dims;
  const T* at = points.data<T>();
  T* to = counts.data<T>();
  for (int64_t i = 0; i < n; ++i, at += dims) {
    int64_t cell = 0;
    for (int64_t d = 0; d < dims && cell >= 0; ++d) {
      int64_t along = cellOf<T>(edges[d].data<T>(), edges[d].numel(), at[d], how);
      cell = along < 0 ? -1 : cell + along * counts.strides()[d];
    }
    if (cell >= 0) to[cell] += weights.defined() ? weights.data<T>()[i] : T(1);
  }
}

// The same of points on another device, by operators.
Tensor countElsewhere(const Tensor& self, const Tensors& edges, const Tensor& weight, bool density,
                      CellSearch how) {
  static const OperatorHandle kIndexAdd{"aten::index_add", ""};
  const auto dims = static_cast<int64_t>(edges.size());
  const Tensor points = self.reshape(DimVector{dims == 0 ? 0 : self.numel() / dims, dims});
  DimVector cells;
  for (const Tensor& e : edges) cells.push_back(e.numel() - 1);
  const int64_t all = checkedNumel(cells), n = points.size(0);
  Tensor at = Tensor::zeros(DimVector{n}, DType::Long, self.device());
  Tensor outside = Tensor::zeros(DimVector{n}, DType::Bool, self.device());
  for (int64_t d = 0; d < dims; ++d) {
    const Tensor& edge = edges[static_cast<size_t>(d)];
    const Tensor v = points.select(1, d);
    const int64_t last = edge.numel() - 1;
    const Tensor above = ops::searchSorted(edge, v, false, true);
    Tensor cell = ops::clamp(addScalar(above, Scalar(int64_t{-1})), Scalar(0), Scalar(last - 1));
    if (how == CellSearch::Divide) {
      const Tensor odd =
          Tensor::full(DimVector{}, static_cast<double>(std::min<int64_t>(1, last - 1)),
                       DType::Long, self.device());
      cell = where(ops::isNan(v), odd, cell);
    }
    at = add(mulScalar(at, Scalar(last)), cell);
    outside = ops::logicalOr(
        outside, ops::logicalOr(ops::lt(v, edge.select(0, 0)), ops::lt(edge.select(0, last), v)));
  }
  const Tensor each = weight.defined() ? weight.reshape(DimVector{n})
                                       : Tensor::full(DimVector{n}, 1, self.dtype(), self.device());
  Tensor counts = Tensor::zeros(DimVector{all}, self.dtype(), self.device());
  counts = kIndexAdd(counts, 0, at, maskedFill(each, outside, Scalar(0))).view(cells);
  if (!density) return counts;
  counts = div(counts, sum(counts));
  for (int64_t d = 0; d < dims; ++d) {
    const Tensor& edge = edges[static_cast<size_t>(d)];
    DimVector shape(static_cast<size_t>(dims), 1);
    shape[static_cast<size_t>(d)] = edge.numel() - 1;
    const int64_t last = edge.numel() - 1;
    counts = div(counts, sub(edge.narrow(0, 1, last), edge.narrow(0, 0, last)).view(shape));
  }
  return counts;
}

Tensor countInto(const Tensor& self, const Tensors& edges, const Tensor& weight, bool density,
                 CellSearch how) {
  DimVector cells;
  Tensors dense;
  for (size_t d = 0; d < edges.size(); ++d) {
    WICK_CHECK(edges[d].numel() >= 2,
               "torch.histogram(): bins must be > 0, but got {} for dimension {}",
               edges[d].numel() - 1, d);
    cells.push_back(edges[d].numel() - 1);
    dense.push_back(edges[d].contiguous());
  }
  if (!self.device().isCpu()) {
    if (!isFloating(self.dtype()) || isReducedFloat(self.dtype())) {
      throwUnsupportedDType("histogramdd", self.dtype());
    }
    return countElsewhere(self, dense, weight, density, how);
  }
  Tensor counts = Tensor::zeros(cells, self.dtype());
  Tensor points = self.contiguous();
  Tensor weights = weight.defined() ? weight.contiguous() : weight;
  dispatch<kFloats>("histogramdd", self.dtype(), [&]<class T>() -> void {
    countPoints<T>(points, weights, dense, counts, how);
    if (!density) return;
    T* data = counts.data<T>();
    T sum = 0;
    for (int64_t i = 0; i < counts.numel(); ++i) sum += data[i];
    for (int64_t i = 0; i < counts.numel(); ++i) {
      data[i] /= sum;
      for (size_t d = 0; d < dense.size(); ++d) {
        int64_t k = i / counts.strides()[d] % cells[d];
        data[i] /= dense[d].data<T>()[k + 1] - dense[d].data<T>()[k];
      }
    }
  });
  return counts;
}

// Points on the CPU that reach as far in each dimension as these.
Tensor extremesOnCpu(const Tensor& self) {
  if (self.device().isCpu() || self.numel() == 0) return moveTo(self.contiguous(), Device());
  const Tensor points = self.reshape(DimVector{-1, self.sizes().back()});
  const std::vector<Tensor> both = {ops::amin(points, DimVector{0}),
                                    ops::amax(points, DimVector{0})};
  return moveTo(stack(both, 0), Device());
}

// Evenly spaced edges over the given range, or that of the points.
Tensors evenEdges(const Tensor& self, const DimVector& bins,
                  const std::optional<std::vector<double>>& range) {
  static const OperatorHandle kLinspace("aten::linspace", "");
  int64_t dims = self.sizes().back();
  WICK_CHECK(static_cast<int64_t>(bins.size()) == dims,
             "torch.histogramdd: the size of bins must be equal to the innermost dimension of the "
             "input, {}, but got {}",
             dims, bins.size());
  WICK_CHECK(!range || static_cast<int64_t>(range->size()) == 2 * dims,
             "torch.histogramdd: for a {}-dimensional histogram range should have {} elements, but "
             "got {}",
             dims, 2 * dims, range ? range->size() : 0);
  const Tensor points = range ? Tensor() : extremesOnCpu(self);
  Tensors out;
  dispatch<kFloats>("histogramdd", self.dtype(), [&]<class T>() -> void {
    for (int64_t d = 0; d < dims; ++d) {
      T low = 0;
      T high = 1;
      if (range) {
        low = static_cast<T>((*range)[2 * d]);
        high = static_cast<T>((*range)[2 * d + 1]);
      } else if (points.numel() > 0) {
        low = high = points.data<T>()[d];
        for (int64_t i = d; i < points.numel(); i += dims) {
          T v = points.data<T>()[i];
          if (v < low || v != v) low = v;
          if (v > high || v != v) high = v;
          if (v != v) break;
        }
      }
      WICK_CHECK(std::isfinite(low) && std::isfinite(high),
                 "torch.histogramdd: dimension {}'s range [{}, {}] is not finite", d,
                 static_cast<double>(low), static_cast<double>(high));
      WICK_CHECK(
          low <= high,
          "torch.histogramdd: min should not exceed max, but got min {} max {} for dimension "
          "{}",
          static_cast<double>(low), static_cast<double>(high), d);
      if (low == high) {
        low -= T(0.5);
        high += T(0.5);
      }
      WICK_CHECK(bins[d] > 0 && bins[d] < INT64_MAX,
                 "torch.histogram(): bins must be > 0, but got {} for dimension {}", bins[d], d);
      const Tensor edges =
          kLinspace(Scalar(static_cast<double>(low)), Scalar(static_cast<double>(high)),
                    bins[d] + 1, self.dtype(), IValue(), IValue(Device()));
      out.push_back(moveTo(edges, self.device()));
    }
  });
  return out;
}

void checkEdges(const Tensor& self, const Tensors& edges) {
  int64_t dims = self.sizes().back();
  WICK_CHECK(static_cast<int64_t>(edges.size()) == dims,
             "torch.histogramdd: expected {} sequences of bin edges for a {}-dimensional histogram "
             "but got {}",
             dims, dims, edges.size());
  for (size_t d = 0; d < edges.size(); ++d) {
    WICK_CHECK(
        edges[d].dtype() == self.dtype(),
        "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
        "input with dtype {} and bins for dimension {} with dtype {}",
        toString(self.dtype()), d, toString(edges[d].dtype()));
    WICK_CHECK(edges[d].dim() == 1,
               "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in "
               "the bins tensor for dimension {}",
               edges[d].dim(), d);
  }
}

using Range = std::optional<std::vector<double>>;

std::tuple<Tensor, Tensors> histogramdd(const Tensor& self, DimVector bins, Range range,
                                        const Tensor& weight, bool density) {
  checkPoints(self, weight);
  Tensors edges = evenEdges(self, bins, range);
  return {countInto(self, edges, weight, density, CellSearch::Divide), edges};
}
std::tuple<Tensor, Tensors> histogramddInt(const Tensor& self, int64_t bins, Range range,
                                           const Tensor& weight, bool density) {
  checkPoints(self, weight);
  DimVector all(static_cast<size_t>(self.sizes().back()), bins);
  return histogramdd(self, all, std::move(range), weight, density);
}
Tensor countInEdges(const Tensor& self, Tensors edges, const Tensor& weight, bool density) {
  checkPoints(self, weight);
  checkEdges(self, edges);
  return countInto(self, edges, weight, density, CellSearch::Bisect);
}
std::tuple<Tensor, Tensors> histogramddEdges(const Tensor& self, Tensors edges, Range,
                                             const Tensor& weight, bool density) {
  return {countInEdges(self, edges, weight, density), edges};
}
Tensor countInBins(const Tensor& self, DimVector bins, Range range, const Tensor& weight,
                   bool density) {
  return std::get<0>(histogramdd(self, bins, std::move(range), weight, density));
}
Tensors binEdges(const Tensor& self, DimVector bins, Range range, const Tensor& weight, bool) {
  checkPoints(self, weight);
  return evenEdges(self, bins, range);
}

// One dimension: the tensor's elements are the points.
Tensor asPoints(const Tensor& self) {
  return self.reshape(DimVector{self.numel(), 1});
}
Tensor asWeights(const Tensor& weight) {
  return weight.defined() ? weight.reshape(DimVector{weight.numel()}) : weight;
}
std::tuple<Tensor, Tensor> histogramEdges(const Tensor& self, const Tensor& edges,
                                          const Tensor& weight, bool density) {
  return {countInEdges(asPoints(self), {edges}, asWeights(weight), density), edges};
}
std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins, Range range,
                                     const Tensor& weight, bool density) {
  auto [counts, edges] =
      histogramdd(asPoints(self), DimVector{bins}, std::move(range), asWeights(weight), density);
  return {counts, edges[0]};
}

const OperatorRecord kHistogramsRecords[] = {
    {"aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool "
     "density=False) -> (Tensor hist, Tensor bin_edges)",
     WICK_KERNEL(histogramEdges), kMayReturnArgument | kNeutral | kRaisesByElements},
    {"aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? "
     "weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
     WICK_KERNEL(histogram), kMayReturnArgument | kNeutral | kRaisesByElements},
    {"aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool "
     "density=False) -> (Tensor hist, Tensor[] bin_edges)",
     WICK_KERNEL(histogramdd), kMayReturnArgument | kNeutral},
    {"aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, "
     "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     WICK_KERNEL(histogramddInt), kMayReturnArgument | kNeutral},
    {"aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? "
     "weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     WICK_KERNEL(histogramddEdges), kMayReturnArgument | kNeutral},
    {"aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool "
     "density=False) -> Tensor",
     WICK_KERNEL(countInEdges), kOutForm | kOutAny | kNeutral},
    {"aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? "
     "weight=None, bool density=False) -> Tensor",
     WICK_KERNEL(countInBins), kOutForm | kOutAny | kNeutral},
    {"aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? "
     "weight=None, bool density=False) -> Tensor[]",
     WICK_KERNEL(binEdges), kNeutral},
};

const RegisterOperators kHistogramsRegistered(kHistogramsRecords);

}  // namespace

}  // namespace wick::ops
