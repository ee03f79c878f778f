// Sums, means, products, any and all.
#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/reduce.h"
#include "runtime/kernels/reduce_rows.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/reduce/computed_in.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

using Dims = std::optional<DimVector>;

// Integers add as unsigned 64-bit numbers, so that overflow wraps.
template <class T>
struct SumOp {
  using Acc = std::conditional_t<std::is_integral_v<T>, uint64_t, typename reduce::Wide<T>::type>;
  using Result = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  Acc init() const { return Acc(0); }
  void step(Acc& a, T v) const { a += convert<Acc>(v); }
  int64_t row(Acc& a, const T* p, int64_t n) const requires std::is_same_v<T, float> {
    return reduce::sumRow(p, n, a);
  }
  void fourRows(Acc* sums, const T* row, int64_t stride,
                int64_t n) const requires std::is_same_v<T, float> {
    reduce::addFourRows(sums, row, stride, n);
  }
  void merge(Acc& a, const Acc& b) const { a += b; }
  Result finish(const Acc& a) const { return convert<Result>(a); }
};

template <class T>
struct NanSumOp : SumOp<T> {
  void step(typename SumOp<T>::Acc& a, T v) const {
    auto wide = convert<typename SumOp<T>::Acc>(v);
    a += wide != wide ? typename SumOp<T>::Acc(0) : wide;
  }
  int64_t row(typename SumOp<T>::Acc& a, const T* p,
              int64_t n) const requires std::is_same_v<T, float> {
    return reduce::nanSumRow(p, n, a);
  }
  void fourRows(typename SumOp<T>::Acc*, const T*, int64_t, int64_t) const = delete;
};

template <class T>
struct MeanOp : SumOp<T> {
  explicit MeanOp(int64_t count) : count(static_cast<double>(count)) {}
  T finish(const typename SumOp<T>::Acc& a) const {
    return convert<T>(typename SumOp<T>::Acc(a / count));
  }
  double count;
};

template <class T>
struct ProdOp {
  using Acc = std::conditional_t<std::is_integral_v<T>, uint64_t, typename reduce::Wide<T>::type>;
  using Result = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  Acc init() const { return Acc(1); }
  void step(Acc& a, T v) const { a *= convert<Acc>(v); }
  int64_t row(Acc& a, const T* p, int64_t n) const requires std::is_same_v<T, float> {
    return reduce::productRow(p, n, a);
  }
  void merge(Acc& a, const Acc& b) const { a *= b; }
  Result finish(const Acc& a) const { return convert<Result>(a); }
};

template <class T, class Out>
struct AnyOp {
  using Acc = bool;
  Acc init() const { return false; }
  void step(Acc& a, T v) const { a = a || convert<bool>(v); }
  void merge(Acc& a, const Acc& b) const { a = a || b; }
  Out finish(const Acc& a) const { return Out(a); }
};

template <class T, class Out>
struct AllOp {
  using Acc = bool;
  Acc init() const { return true; }
  void step(Acc& a, T v) const { a = a && convert<bool>(v); }
  void merge(Acc& a, const Acc& b) const { a = a && b; }
  Out finish(const Acc& a) const { return Out(a); }
};

IntSpan span(const Dims& dims) {
  return dims ? IntSpan(*dims) : IntSpan();
}

// A sum or product: integers become int64 unless a dtype is given.
template <template <class> class Op>
Tensor accumulate(const char* op, const Tensor& self, const Dims& dims, bool keepdim,
                  std::optional<DType> dtype) {
  Tensor in = dtype ? self.to(*dtype) : self;
  std::vector<bool> mask = reduce::dimMask(op, in, span(dims));
  Tensor out = dispatchAll(in.dtype(), [&]<class T>() {
    return reduce::apply<T, typename Op<T>::Result>(Op<T>(), in, mask, keepdim);
  });
  return dtype ? out.to(*dtype) : out;
}

Tensor sumDims(const Tensor& self, const Dims& dims, bool keepdim, std::optional<DType> dtype,
               Out out = {}) {
  return accumulate<SumOp>("sum", self, dims, keepdim, ops::computedIn(dtype, out));
}
Tensor sum(const Tensor& self, std::optional<DType> dtype) {
  return sumDims(self, {}, false, dtype);
}

Tensor nansum(const Tensor& self, const Dims& dims, bool keepdim, std::optional<DType> dtype,
              Out out) {
  dtype = ops::computedIn(dtype, out);
  WICK_CHECK(!isComplex(dtype.value_or(self.dtype())), "nansum does not support complex inputs");
  Tensor in = dtype ? self.to(*dtype) : self;
  if (!isFloating(in.dtype())) return sumDims(in, dims, keepdim, dtype);
  std::vector<bool> mask = reduce::dimMask("nansum", in, span(dims));
  return dispatch<kAnyFloat>("nansum", in.dtype(), [&]<class T>() {
    return reduce::apply<T, T>(NanSumOp<T>(), in, mask, keepdim);
  });
}

Tensor prodDim(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype, Out out) {
  return accumulate<ProdOp>("prod", self, DimVector{dim}, keepdim, ops::computedIn(dtype, out));
}
Tensor prod(const Tensor& self, std::optional<DType> dtype) {
  return accumulate<ProdOp>("prod", self, {}, false, dtype);
}

Tensor meanDims(const Tensor& self, const Dims& dims, bool keepdim, std::optional<DType> dtype,
                Out out = {}) {
  // A destination says how exactly, not that integers have a mean.
  const std::optional<DType> wanted = ops::computedIn(dtype, out);
  DType result = dtype.value_or(self.dtype());
  WICK_CHECK(isFloating(result) || isComplex(result),
             "mean(): could not infer output dtype. {} dtype must be either a floating point or "
             "complex dtype. Got: {}",
             dtype ? "Optional" : "Input", scalarTypeName(result));
  result = wanted.value_or(result);
  Tensor in = self.to(result);
  std::vector<bool> mask = reduce::dimMask("mean", in, span(dims));
  int64_t count = 1;
  for (int64_t d = 0; d < in.dim(); ++d) count *= mask[static_cast<size_t>(d)] ? in.size(d) : 1;
  return dispatch<kFloatOrComplex>("mean", in.dtype(), [&]<class T>() {
    return reduce::apply<T, T>(MeanOp<T>(count), in, mask, keepdim);
  });
}
Tensor mean(const Tensor& self, std::optional<DType> dtype) {
  return meanDims(self, {}, false, dtype);
}

// The sum of what is no NaN and its count.
template <class T>
struct NanMeanOp {
  struct Acc {
    double sum;
    int64_t count;
  };
  Acc init() const { return {0, 0}; }
  void step(Acc& a, T v) const {
    double wide = static_cast<double>(v);
    if (wide == wide) a = {a.sum + wide, a.count + 1};
  }
  void merge(Acc& a, const Acc& b) const { a = {a.sum + b.sum, a.count + b.count}; }
  T finish(const Acc& a) const { return convert<T>(a.sum / static_cast<double>(a.count)); }
};

Tensor nanmean(const Tensor& self, const Dims& dims, bool keepdim, std::optional<DType> dtype) {
  WICK_CHECK(isFloating(self.dtype()),
             "nanmean(): expected input to have floating point dtype but "
             "got {}",
             scalarTypeName(self.dtype()));
  Tensor in = dtype ? self.to(*dtype) : self;
  std::vector<bool> mask = reduce::dimMask("nanmean", in, span(dims));
  return dispatch<kAnyFloat>("nanmean", in.dtype(), [&]<class T>() {
    return reduce::apply<T, T>(NanMeanOp<T>(), in, mask, keepdim);
  });
}

// uint8 answers in kind, everything else with bool.
template <template <class, class> class Op>
Tensor decide(const char* op, const Tensor& self, const DimVector& dims, bool keepdim) {
  std::vector<bool> mask = reduce::dimMask(op, self, dims);
  return dispatchAll(self.dtype(), [&]<class T>() {
    using Out = std::conditional_t<std::is_same_v<T, uint8_t>, uint8_t, bool>;
    return reduce::apply<T, Out>(Op<T, Out>(), self, mask, keepdim);
  });
}

Tensor anyAll(const Tensor& self) {
  return decide<AnyOp>("any", self, {}, false);
}
Tensor anyDim(const Tensor& self, int64_t dim, bool keepdim) {
  return decide<AnyOp>("any", self, DimVector{dim}, keepdim);
}
Tensor allAll(const Tensor& self) {
  return decide<AllOp>("all", self, {}, false);
}
Tensor allDim(const Tensor& self, int64_t dim, bool keepdim) {
  return decide<AllOp>("all", self, DimVector{dim}, keepdim);
}

// Without dimensions every element stands for itself; None takes all of them.
template <template <class, class> class Op>
Tensor decideDims(const char* op, const Tensor& self, const std::optional<DimVector>& dims,
                  bool keepdim) {
  if (dims && dims->empty()) {
    const Tensor truth = self.to(DType::Bool);
    return self.dtype() == DType::Byte ? truth.to(DType::Byte) : truth.clone();
  }
  return decide<Op>(op, self, dims.value_or(DimVector()), keepdim);
}
Tensor anyDims(const Tensor& self, const std::optional<DimVector>& dims, bool keepdim) {
  return decideDims<AnyOp>("any", self, dims, keepdim);
}
Tensor allDims(const Tensor& self, const std::optional<DimVector>& dims, bool keepdim) {
  return decideDims<AllOp>("all", self, dims, keepdim);
}

// Sums `self` down to a shape that broadcasts to its own.
Tensor sumToSize(const Tensor& self, const DimVector& size) {
  int64_t extra = self.dim() - static_cast<int64_t>(size.size());
  bool fits = extra >= 0;
  DimVector dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    int64_t want = d < extra ? 1 : size[static_cast<size_t>(d - extra)];
    fits = d < extra || want == 1 || want == self.size(d);
    if (d < extra || (want == 1 && self.size(d) != 1)) dims.push_back(d);
  }
  WICK_CHECK(fits, "sum_to_size: size {} is not expandable to size {}.", formatInts(size),
             formatInts(self.sizes()));
  const bool here = self.device().isCpu();
  if (size.empty()) return here ? sum(self, std::nullopt) : ops::sum(self);
  if (dims.empty()) return self;
  return (here ? sumDims(self, dims, true, std::nullopt) : ops::sumDims(self, dims, true))
      .view(size);
}

#define WICK_DTYPE_ARG "*, ScalarType? dtype=None) -> Tensor"

constexpr OperatorRecord kSumsRecords[] = {
    {"aten::sum(Tensor self, " WICK_DTYPE_ARG, WICK_KERNEL(sum),
     kOutForm | kCastFullUnlessTold | kSavesNothing | kKeepsOrder, ops::shapes::reducedAccumulated},
    {"aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, " WICK_DTYPE_ARG,
     WICK_KERNEL(sumDims), kOutForm | kCastFullUnlessTold | kSavesNothing | kKeepsOrder,
     ops::shapes::reducedAccumulated},
    {"aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, " WICK_DTYPE_ARG,
     WICK_KERNEL(nansum), kOutForm, ops::shapes::reducedAccumulated},
    {"aten::mean(Tensor self, " WICK_DTYPE_ARG, WICK_KERNEL(mean), kSavesNothing | kKeepsOrder,
     ops::shapes::reduced},
    {"aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, " WICK_DTYPE_ARG,
     WICK_KERNEL(meanDims), kOutForm | kKeepsOrder, ops::shapes::reduced},
    {"aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, " WICK_DTYPE_ARG,
     WICK_KERNEL(nanmean), kOutForm | kOutReal, ops::shapes::reduced},
    {"aten::prod(Tensor self, " WICK_DTYPE_ARG, WICK_KERNEL(prod),
     kOutForm | kCastFullUnlessTold | kEagerCastFull, ops::shapes::reducedAccumulated},
    {"aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, " WICK_DTYPE_ARG,
     WICK_KERNEL(prodDim), kOutForm | kCastFullUnlessTold | kEagerCastFull,
     ops::shapes::reducedAccumulated},
    {"aten::any(Tensor self) -> Tensor", WICK_KERNEL(anyAll),
     kOutForm | kNotDifferentiable | kOutBoolean, ops::shapes::reducedBool},
    {"aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", WICK_KERNEL(anyDim),
     kOutForm | kNotDifferentiable | kOutBoolean, ops::shapes::reducedBool},
    {"aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     WICK_KERNEL(anyDims), kOutForm | kNotDifferentiable},
    {"aten::all(Tensor self) -> Tensor", WICK_KERNEL(allAll),
     kOutForm | kNotDifferentiable | kOutBoolean, ops::shapes::reducedBool},
    {"aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", WICK_KERNEL(allDim),
     kOutForm | kNotDifferentiable | kOutBoolean, ops::shapes::reducedBool},
    {"aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     WICK_KERNEL(allDims), kOutForm | kNotDifferentiable},
    {"aten::sum_to_size(Tensor self, int[] size) -> Tensor", WICK_KERNEL(sumToSize),
     kMayReturnArgument | kNeutral},
};

const RegisterOperators kSumsRegistered(kSumsRecords);

}  // namespace
}  // namespace wick
