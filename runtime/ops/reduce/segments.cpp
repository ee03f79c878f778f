// segment_reduce: reductions over consecutive runs of a dimension; and limiting the norms of an
// embedding's rows.
#include "runtime/ops/reduce/segments.h"

#include <cmath>
#include <limits>

#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"
#include "runtime/ops/reduce/into.h"

namespace wick::ops {

namespace {

Reduction segmentReduction(const std::string& name) {
  if (name == "max") return Reduction::Amax;
  if (name == "min") return Reduction::Amin;
  if (name == "sum" || name == "mean" || name == "prod") return *reductionNamed(name);
  throwRuntimeError("segment_reduce(): unsupported reduction given! {}", name);
}

double startOf(Reduction reduction, const std::optional<Scalar>& initial) {
  if (initial) return initial->toDouble();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::Amax:
      return -kInf;
    case Reduction::Amin:
      return kInf;
    case Reduction::Prod:
      return 1;
    default:
      return 0;
  }
}

// Bounds of segments, on the CPU.
Tensor segmentsOf(const Tensor& lengths, const Tensor& offsets, int64_t rows, bool partial) {
  const Tensor& given = lengths.defined() ? lengths : offsets;
  WICK_CHECK(given.dtype() == DType::Long || given.dtype() == DType::Int,
             "segment_reduce(): expected lengths or offsets of integers, got {}",
             toString(given.dtype()));
  Tensor flat = moveTo(given, Device()).to(DType::Long).contiguous();
  int64_t width = given.sizes().back();
  int64_t count = lengths.defined() ? width : width - 1;
  WICK_CHECK(count >= 0, "segment_reduce(): offsets must have at least one element");
  int64_t outer = product(given.sizes(), 0, static_cast<size_t>(given.dim()) - 1);
  const Tensor bounds = Tensor::empty(DimVector{outer, count, 2}, DType::Long);
  int64_t* to = bounds.data<int64_t>();
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t* from = flat.data<int64_t>() + o * width;
    int64_t start = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t first = lengths.defined() ? start : from[i];
      int64_t length = lengths.defined() ? from[i] : from[i + 1] - from[i];
      WICK_CHECK(length >= 0, "segment_reduce(): lengths contains negative value!");
      WICK_CHECK(first >= 0 && first <= rows && length <= rows - first,
                 "segment_reduce(): a segment of {} elements from {} on lies outside the {} of the "
                 "data",
                 length, first, rows);
      *to++ = first;
      *to++ = start = first + length;
    }
    WICK_CHECK(partial || !lengths.defined() || start == rows,
               "segment_reduce(): Expected all rows of lengths along axis to sum to "
               "data.size(lengths.dim()-1) when !unsafe.");
  }
  return bounds;
}

template <class T>
void reduceSegments(const Tensor& data, const SegmentPlan& s, const DimSplit& split,
                    const Tensor& out) {
  using C = std::conditional_t<kIsReducedFloat<T>, float, T>;
  const int64_t* bounds = s.bounds.data<int64_t>();
  T* to = out.data<T>();
  for (int64_t o = 0; o < split.outer; ++o) {
    const T* from = data.data<T>() + o * split.size * split.inner;
    for (int64_t k = 0; k < s.bounds.size(1); ++k, bounds += 2) {
      for (int64_t i = 0; i < split.inner; ++i) {
        C v = static_cast<C>(s.start);
        for (int64_t r = bounds[0]; r < bounds[1]; ++r) {
          C x = convert<C>(from[r * split.inner + i]);
          switch (s.reduction) {
            case Reduction::Amax:
              v = x != x ? x : std::max(v, x);
              break;
            case Reduction::Amin:
              v = x != x ? x : std::min(v, x);
              break;
            case Reduction::Prod:
              v = convert<C>(convert<T>(v * x));
              break;
            default:
              v = convert<C>(convert<T>(v + x));
          }
        }
        int64_t length = bounds[1] - bounds[0];
        if (s.reduction == Reduction::Mean) {
          if (length > 0) {
            v /= static_cast<C>(length);
          } else if (!s.has_initial) {
            v = std::numeric_limits<C>::quiet_NaN();
          }
        }
        *to++ = convert<T>(v);
      }
    }
  }
}

}  // namespace

SegmentPlan planSegments(const Tensor& data, const std::string& reduce, const Tensor& lengths,
                         const Tensor& indices, const Tensor& offsets, int64_t axis, bool partial,
                         const std::optional<Scalar>& initial) {
  WICK_CHECK(data.dim() > 0 && data.numel() >= 0,
             "segment_reduce(): expected data with at least one dimension");
  SegmentPlan plan;
  plan.axis = wrapDim(axis, data.dim());
  WICK_CHECK(!indices.defined(), "segment_reduce(): indices based reduction is not supported yet.");
  WICK_CHECK(lengths.defined() || offsets.defined(),
             "segment_reduce(): Either lengths or offsets must be defined.");
  const Tensor& given = lengths.defined() ? lengths : offsets;
  WICK_CHECK(given.dim() == plan.axis + 1 &&
                 std::equal(given.sizes().begin(), given.sizes().end() - 1, data.sizes().begin()),
             "segment_reduce(): expected lengths or offsets whose leading dimensions are those of "
             "the data before the axis, got {} for data {} and axis {}",
             formatInts(given.sizes()), formatInts(data.sizes()), plan.axis);
  plan.reduction = segmentReduction(reduce);
  plan.bounds = segmentsOf(lengths, offsets, data.size(plan.axis), partial);
  plan.start = startOf(plan.reduction, initial);
  plan.has_initial = initial.has_value();
  plan.sizes = DimVector(data.sizes());
  plan.sizes[static_cast<size_t>(plan.axis)] = plan.bounds.size(1);
  return plan;
}

namespace {

Tensor segmentReduce(const Tensor& data, std::string reduce, const Tensor& lengths,
                     const Tensor& indices, const Tensor& offsets, int64_t axis, bool partial,
                     std::optional<Scalar> initial) {
  const SegmentPlan plan =
      planSegments(data, reduce, lengths, indices, offsets, axis, partial, initial);
  Tensor out = Tensor::empty(plan.sizes, data.dtype());
  Tensor from = data.contiguous();
  dispatch<kAnyFloat>("segment_reduce", data.dtype(), [&]<class T>() -> void {
    reduceSegments<T>(from, plan, splitAt(data.sizes(), plan.axis), out);
  });
  return out;
}

// For results with gradients (autograd/formulas/shapes.cpp).
Tensor segmentBounds(const Tensor& data, const std::string& reduce, const Tensor& lengths,
                     const Tensor& indices, const Tensor& offsets, int64_t axis, bool partial) {
  return planSegments(data, reduce, lengths, indices, offsets, axis, partial, {}).bounds;
}

Tensor embeddingRenorm(const Tensor& self, const Tensor& indices, double max_norm, double norm_type,
                       Out out) {
  WICK_CHECK(self.dim() == 2, "embedding_renorm_: 'self' must be 2-D");
  Tensor t = startFrom(self, out);
  Tensor rows = indexInt64("embedding_renorm_", indices);
  CountedVector<int64_t> wanted(rows.data<int64_t>(), rows.data<int64_t>() + rows.numel());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  dispatch<kAnyFloat>("embedding_renorm_", t.dtype(), [&]<class T>() -> void {
    int64_t step = t.strides()[1];
    int64_t width = t.sizes()[1];
    Pace pace;  // an expanded row is longer than its memory
    for (int64_t r : wanted) {
      WICK_CHECK(r >= 0 && r < t.sizes()[0], "embedding_renorm_: index {} out of range of {} rows",
                 r, t.sizes()[0]);
      T* row = t.data<T>() + r * t.strides()[0];
      double norm = 0;
      for (int64_t i = 0; i < width; ++i) {
        pace.step();
        double v = std::abs(static_cast<double>(row[i * step]));
        norm = std::isinf(norm_type) ? std::max(norm, v)
                                     : norm + (norm_type == 2 ? v * v : std::pow(v, norm_type));
      }
      if (norm_type == 2) {
        norm = std::sqrt(norm);
      } else if (!std::isinf(norm_type)) {
        norm = std::pow(norm, 1 / norm_type);
      }
      if (norm <= max_norm) continue;
      if constexpr (kIsReducedFloat<T>) {
        // The norm is a tensor of this dtype there, but what scales the row is not.
        const double scale = max_norm / (static_cast<double>(static_cast<T>(norm)) + 1e-7);
        for (int64_t i = 0; i < width; ++i) {
          pace.step();
          row[i * step] = convert<T>(static_cast<float>(row[i * step]) * static_cast<float>(scale));
        }
      } else {
        const T scale = static_cast<T>(max_norm / (norm + 1e-7));
        for (int64_t i = 0; i < width; ++i) {
          pace.step();
          row[i * step] *= scale;
        }
      }
    }
  });
  return t;
}
Tensor renormInplace(const Tensor& weight, const Tensor& indices, double max_norm,
                     double norm_type) {
  static const OperatorHandle kRenorm{"aten::embedding_renorm_", ""};
  return kRenorm(weight, indices, max_norm, norm_type);
}

const OperatorRecord kSegmentsRecords[] = {
    {"aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
     "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
     WICK_KERNEL(segmentReduce), kOutForm | kOutAny},
    {"wick::segment_bounds(Tensor data, str reduce, Tensor? lengths, Tensor? indices, Tensor? "
     "offsets, int axis, bool unsafe) -> Tensor",
     WICK_KERNEL(segmentBounds), kNotDifferentiable | kNeutralMixed},
    {"aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> "
     "Tensor",
     WICK_KERNEL(embeddingRenorm), kInplaceForm | kOutForm},
    {"aten::_no_grad_embedding_renorm_(Tensor weight, Tensor input, float max_norm, float "
     "norm_type) -> Tensor",
     WICK_KERNEL(renormInplace), kMayReturnArgument | kNeutral, nullptr, nullptr, "weight"},
};

const RegisterOperators kSegmentsRegistered(kSegmentsRecords);

}  // namespace

}  // namespace wick::ops
