// unique in its forms.
#include "runtime/ops/indexing/unique.h"

#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/keyed_hash.h"
#include "core/paced.h"
#include "runtime/ops/common.h"

namespace wick::ops {

int64_t dimensionOfSlices(const Tensor& self, int64_t dim) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(self.dim() > 0, "unique_dim: expected at least one dimension");
  WICK_CHECK(!isComplex(self.dtype()), "\"unique_dim\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  const auto empty_dims = std::ranges::count(self.sizes(), 0);
  WICK_CHECK(self.size(dim) != 0 || empty_dims == 1,
             "Number of zero sized dimensions is more than one, so unique cannot be applied");
  WICK_CHECK(self.size(dim) == 0 || empty_dims == 0,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  return dim;
}

namespace {

// Distinct values, for each input element the position of its value, how often each value occurs;
// the latter two are empty tensors unless asked for.
using Unique = std::tuple<Tensor, Tensor, Tensor>;

Tensor noIndices() {
  return Tensor::empty(DimVector{0}, DType::Long);
}
Tensor fromIndices(const CountedVector<int64_t>& values) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())});
}

// The distinct values of a sequence. Every NaN is a value of its own. std::unordered_set is slow
// when somebody chooses values that meet in one of its buckets, so its hash is keyed here. Integers
// that lie near each other need no hash.
template <class T>
struct DistinctValues {
  // `with_ids`: whether the place of each element is asked for.
  DistinctValues(const T* data, int64_t n, bool with_ids) {
    if (with_ids) ids.reserve(static_cast<size_t>(n));
    if constexpr (std::is_integral_v<T>) {
      if (findNear(data, n, with_ids)) return;
    }
    for (int64_t i = 0; i < n; ++i) {
      bool fresh = true;
      size_t id = values.size();
      if (data[i] == data[i]) {
        auto [it, inserted] = known.try_emplace(data[i], id);
        id = it->second;
        fresh = inserted;
      }
      if (with_ids) ids.push_back(id);
      if (fresh) values.push_back(data[i]);
    }
  }

  // By a table with a place for every integer from the smallest to the largest one. False when
  // that would be much larger than the tensor.
  bool findNear(const T* data, int64_t n, bool with_ids) {
    if (n == 0) return false;
    T low = data[0], high = data[0];
    for (int64_t i = 1; i < n; ++i) {
      low = std::min(low, data[i]);
      high = std::max(high, data[i]);
    }
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    if (span >= std::max<uint64_t>(1024, static_cast<uint64_t>(n))) return false;
    constexpr uint32_t kNone = UINT32_MAX;
    if (n >= int64_t{kNone}) return false;
    CountedVector<uint32_t> places(static_cast<size_t>(span) + 1, kNone);
    Pace pace;
    for (int64_t i = 0; i < n; ++i) {
      pace.step();
      uint32_t& place = places[static_cast<uint64_t>(data[i]) - static_cast<uint64_t>(low)];
      if (place == kNone) {
        place = static_cast<uint32_t>(values.size());
        values.push_back(data[i]);
      }
      if (with_ids) ids.push_back(place);
    }
    return true;
  }

  struct Hash {
    size_t operator()(T value) const { return keyedHash(std::hash<T>()(value)); }
  };
  std::unordered_map<T, size_t, Hash> known;
  CountedVector<T> values;    // by their first occurrence
  CountedVector<size_t> ids;  // of each element, its place in `values`
};

// The order in which libstdc++'s std::unordered_set has the values, which is PyTorch's where
// nothing is sorted. Only the chains of its buckets are followed as it links them; nothing is
// searched.
template <class T>
class OrderOfSet {
 public:
  explicit OrderOfSet(const CountedVector<T>& values) {
    next_.reserve(values.size());
    std::unordered_set<size_t> growing;  // tells when such a set takes more buckets
    for (size_t id = 0; id < values.size(); ++id) {
      hashes_.push_back(std::hash<T>()(values[id]));
      growing.insert(id);
      if (growing.bucket_count() != before_.size()) linkAgain(growing.bucket_count());
      next_.push_back(kNone);
      link(id);
    }
  }

  CountedVector<size_t> order() const {
    CountedVector<size_t> out;
    out.reserve(next_.size());
    for (size_t id = head_; id != kNone; id = next_[id]) out.push_back(id);
    return out;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  static constexpr size_t kHead = SIZE_MAX - 1;  // what stands before the first

  void linkAgain(size_t buckets) {
    const CountedVector<size_t> linked = order();
    before_.assign(buckets, kNone);
    head_ = kNone;
    for (size_t id : linked) link(id);
  }

  // One chain goes through all buckets: a new value stands first in its bucket, or first of all
  // when the bucket was empty.
  void link(size_t id) {
    const size_t bucket = hashes_[id] % before_.size();
    const size_t before = before_[bucket];
    if (before == kNone) {
      next_[id] = head_;
      if (head_ != kNone) before_[hashes_[head_] % before_.size()] = id;
      head_ = id;
      before_[bucket] = kHead;
    } else {
      size_t& place = before == kHead ? head_ : next_[before];
      next_[id] = place;
      place = id;
    }
  }

  CountedVector<size_t> hashes_;  // of each value
  CountedVector<size_t> next_;    // of each value
  CountedVector<size_t> before_;  // of each bucket: what stands before its first value
  size_t head_ = kNone;
};

template <class T>
Unique uniqueValues(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  Tensor flat = self.contiguous();
  const T* data = flat.data<T>();
  int64_t n = flat.numel();
  DistinctValues<T> distinct(data, n, return_inverse || return_counts);
  const CountedVector<T>& values = distinct.values;
  CountedVector<size_t> order(values.size());
  if (!sorted) {
    order = OrderOfSet<T>(values).order();
  } else {
    std::iota(order.begin(), order.end(), size_t{0});
    Pace pace;
    std::sort(order.begin(), order.end(), paced(pace, [&](size_t i, size_t j) {
                const T a = values[i];
                const T b = values[j];
                return (b != b && a == a) || a < b;
              }));
  }
  Tensor out = Tensor::empty(DimVector{static_cast<int64_t>(values.size())}, self.dtype());
  CountedVector<int64_t> rank(values.size());
  for (size_t i = 0; i < order.size(); ++i) {
    out.data<T>()[i] = values[order[i]];
    rank[order[i]] = static_cast<int64_t>(i);
  }
  Tensor inverse = noIndices();
  Tensor counts = noIndices();
  if (return_inverse || return_counts) {
    CountedVector<int64_t> count(values.size());
    inverse = Tensor::empty(self.sizes(), DType::Long);
    for (int64_t i = 0; i < n; ++i) {
      // A NaN is found nowhere; it reports the first position and counts for none.
      const bool number = data[i] == data[i];
      const int64_t position = number ? rank[distinct.ids[static_cast<size_t>(i)]] : 0;
      inverse.data<int64_t>()[i] = position;
      if (number) ++count[static_cast<size_t>(position)];
    }
    if (return_counts) {
      counts = Tensor::empty(out.sizes(), DType::Long);
      std::copy(count.begin(), count.end(), counts.data<int64_t>());
    }
  }
  return {out, inverse, counts};
}

Unique unique2(const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  Unique result;
  sorted = sorted || self.dtype() == DType::Bool;  // PyTorch counts these instead of hashing them
  // Half-precision numbers are hashed as the floats that they are, and booleans are numbers.
  Tensor input = isReducedFloat(self.dtype())  ? self.to(DType::Float)
                 : self.dtype() == DType::Bool ? self.to(DType::Byte)
                                               : self;
  dispatch<kIntegers | kFloats>("unique", input.dtype(), [&]<class T>() -> void {
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
  CountedVector<int64_t> firsts;
  CountedVector<int64_t> inverse;
  CountedVector<int64_t> counts;
};
template <class Equal>
Groups groupNeighbours(const CountedVector<int64_t>& order, Equal&& equal) {
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
  dim = dimensionOfSlices(self, dim);
  const int64_t n = self.size(dim);
  if (n == 0) return {Tensor::empty(self.sizes(), self.dtype()), noIndices(), noIndices()};
  Tensor rows = self.transpose(0, dim).contiguous();
  int64_t width = rows.numel() / n;
  CountedVector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  Groups groups;
  dispatch<kRealNumbers | kBool>("unique_dim", self.dtype(), [&]<class T>() -> void {
    const T* data = rows.data<T>();
    if (!consecutive) {
      Pace pace;
      const auto before = [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(data + a * width, data + (a + 1) * width,
                                            data + b * width, data + (b + 1) * width);
      };
      std::stable_sort(order.begin(), order.end(), paced(pace, before, 1 + width / 4));
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
  CountedVector<int64_t> order(static_cast<size_t>(flat.numel()));
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

const OperatorRecord kUniqueRecords[] = {
    {"aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
     WICK_KERNEL(unique1)},
    {"aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool "
     "return_counts=False) -> " WICK_THREE,
     WICK_KERNEL(unique2)},
    {"aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
     "return_counts=False) -> " WICK_THREE,
     WICK_KERNEL(uniqueDim)},
    {"aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
     "int? dim=None) -> " WICK_THREE,
     WICK_KERNEL(uniqueConsecutive)},
    {"aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool "
     "return_counts=False) -> " WICK_THREE,
     WICK_KERNEL(uniqueDimConsecutive)},
};

const RegisterOperators kUniqueRegistered(kUniqueRecords);

}  // namespace

}  // namespace wick::ops
