// unique in its forms.
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common.h"

namespace wick::ops {

namespace {

// Distinct values, for each input element the position of its value, how often each value occurs;
// the latter two are empty tensors unless asked for.
using Unique = std::tuple<Tensor, Tensor, Tensor>;

Tensor noIndices() {
  return Tensor::empty(DimVector{0}, DType::Long);
}
Tensor fromIndices(const std::vector<int64_t>& values) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())});
}

// Elements are told apart by ==, so every NaN is a value of its own. Unsorted results come in the
// order of a hash set.
template <class T>
Unique uniqueValues(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  Tensor flat = self.contiguous();
  const T* data = flat.data<T>();
  int64_t n = flat.numel();
  std::unordered_set<T> set(data, data + n);
  std::vector<T> values(set.begin(), set.end());
  if (sorted) {
    std::sort(values.begin(), values.end(), [](T a, T b) { return (b != b && a == a) || a < b; });
  }
  Tensor out = Tensor::empty(DimVector{static_cast<int64_t>(values.size())}, self.dtype());
  std::copy(values.begin(), values.end(), out.data<T>());
  Tensor inverse = noIndices();
  Tensor counts = noIndices();
  if (return_inverse || return_counts) {
    std::unordered_map<T, int64_t> position;
    std::unordered_map<T, int64_t> count;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == values[i]) position[values[i]] = static_cast<int64_t>(i);
    }
    inverse = Tensor::empty(self.sizes(), DType::Long);
    for (int64_t i = 0; i < n; ++i) {
      // A NaN is found nowhere; it reports the first position and counts for none.
      bool number = data[i] == data[i];
      inverse.data<int64_t>()[i] = number ? position[data[i]] : 0;
      if (number) ++count[data[i]];
    }
    if (return_counts) {
      counts = Tensor::empty(out.sizes(), DType::Long);
      for (size_t i = 0; i < values.size(); ++i) {
        counts.data<int64_t>()[i] = values[i] == values[i] ? count[values[i]] : 0;
      }
    }
  }
  return {out, inverse, counts};
}

Unique unique2(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  Unique result;
  sorted = sorted || self.dtype() == DType::Bool;  // PyTorch counts these instead of hashing them
  // Half-precision numbers are hashed as the floats that they are.
  Tensor input = isReducedFloat(self.dtype()) ? self.to(DType::Float) : self;
  dispatch<kIntegers | kBool | kFloats>("unique", input.dtype(), [&]<class T>() -> void {
    result = uniqueValues<T>(input, sorted, return_inverse, return_counts);
  });
  std::get<0>(result) = std::get<0>(result).to(self.dtype());
  return result;
}
std::tuple<Tensor, Tensor> unique1(const Tensor& self, bool sorted, bool return_inverse) {
  Unique u = unique2(self, sorted, return_inverse, false);
  return {std::get<0>(u), std::get<1>(u)};
}

// Groups of equal neighbours in `order`: the first of each, each element's group, sizes of groups.
struct Groups {
  std::vector<int64_t> firsts;
  std::vector<int64_t> inverse;
  std::vector<int64_t> counts;
};
template <class Equal>
Groups groupNeighbours(const std::vector<int64_t>& order, Equal&& equal) {
  Groups g;
  g.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !equal(order[i - 1], order[i])) {
      g.firsts.push_back(order[i]);
      g.counts.push_back(0);
    }
    g.inverse[order[i]] = static_cast<int64_t>(g.firsts.size()) - 1;
    ++g.counts.back();
  }
  return g;
}

Unique uniqueSlices(const Tensor& self, int64_t dim, bool consecutive) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(self.dim() > 0, "unique_dim: expected at least one dimension");
  int64_t n = self.sizes()[dim];
  int64_t zeros = std::count(self.sizes().begin(), self.sizes().end(), 0);
  if (n == 0) {
    WICK_CHECK(zeros == 1,
               "Number of zero sized dimensions is more than one, so unique cannot be applied");
    return {Tensor::empty(self.sizes(), self.dtype()), noIndices(), noIndices()};
  }
  WICK_CHECK(zeros == 0,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  Tensor rows = self.transpose(0, dim).contiguous();
  int64_t width = rows.numel() / n;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  Groups groups;
  dispatch<kRealNumbers | kBool>("unique_dim", self.dtype(), [&]<class T>() -> void {
    const T* data = rows.data<T>();
    if (!consecutive) {
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(data + a * width, data + (a + 1) * width,
                                            data + b * width, data + (b + 1) * width);
      });
    }
    groups = groupNeighbours(order, [&](int64_t a, int64_t b) {
      return std::equal(data + a * width, data + (a + 1) * width, data + b * width);
    });
  });
  DimVector sizes(rows.sizes());
  sizes[0] = static_cast<int64_t>(groups.firsts.size());
  Tensor picked = Tensor::empty(sizes, self.dtype());
  size_t bytes = static_cast<size_t>(width) * self.itemSize();
  for (size_t i = 0; i < groups.firsts.size(); ++i) {
    std::memcpy(static_cast<char*>(picked.rawData()) + i * bytes,
                static_cast<const char*>(rows.rawData()) + groups.firsts[i] * bytes, bytes);
  }
  return {picked.transpose(0, dim).contiguous(), fromIndices(groups.inverse),
          fromIndices(groups.counts)};
}
Unique uniqueDim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return uniqueSlices(self, dim, false);
}
Unique uniqueDimConsecutive(const Tensor& self, int64_t dim, bool, bool) {
  return uniqueSlices(self, dim, true);
}

Unique uniqueConsecutive(const Tensor& self, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  // Along a dimension PyTorch gives both whether they are asked for or not.
  if (dim && self.dim() > 0) return uniqueSlices(self, *dim, true);
  Tensor flat = self.contiguous();
  std::vector<int64_t> order(static_cast<size_t>(flat.numel()));
  std::iota(order.begin(), order.end(), int64_t{0});
  Tensor values;
  Groups groups;
  dispatch<kRealNumbers | kBool>("unique_consecutive", self.dtype(), [&]<class T>() -> void {
    const T* data = flat.data<T>();
    groups = groupNeighbours(order, [&](int64_t a, int64_t b) { return data[a] == data[b]; });
    values = Tensor::empty(DimVector{static_cast<int64_t>(groups.firsts.size())}, self.dtype());
    for (size_t i = 0; i < groups.firsts.size(); ++i) values.data<T>()[i] = data[groups.firsts[i]];
  });
  return {values, return_inverse ? fromIndices(groups.inverse).view(self.sizes()) : noIndices(),
          return_counts ? fromIndices(groups.counts) : noIndices()};
}

#define WICK_THREE "(Tensor, Tensor, Tensor)"

const OperatorRecord kRecords[] = {
    {"aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
     WICK_KERNEL(unique1), kNotDifferentiable},
    {"aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool "
     "return_counts=False) -> " WICK_THREE,
     WICK_KERNEL(unique2), kNotDifferentiable},
    {"aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
     "return_counts=False) -> " WICK_THREE,
     WICK_KERNEL(uniqueDim), kNotDifferentiable},
    {"aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
     "int? dim=None) -> " WICK_THREE,
     WICK_KERNEL(uniqueConsecutive), kNotDifferentiable},
    {"aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool "
     "return_counts=False) -> " WICK_THREE,
     WICK_KERNEL(uniqueDimConsecutive), kNotDifferentiable},
};

const RegisterOperators registered(kRecords);

}  // namespace

}  // namespace wick::ops
