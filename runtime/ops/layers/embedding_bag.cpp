// Sums, means and maxima of bags of embedding rows; gated linear units; dropout of whole features.
#include <cmath>
#include <cstring>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {

int64_t bags::checkBags(const char* op, const Tensor& weight, const Tensor& indices,
                        const Tensor& offsets, const Tensor& scales, const Bags& b) {
  WICK_CHECK(weight.dim() == 2, "{}: expected a 2-D weight, got {}", op, weight.describe());
  WICK_CHECK(b.mode >= kSum && b.mode <= kMax, "{}: unknown mode {}", op, b.mode);
  WICK_CHECK(!scales.defined() || b.mode == kSum,
             "{}: per_sample_weights was not None. per_sample_weights is only supported for "
             "mode='sum'",
             op);
  for (const Tensor* t : {&indices, &offsets}) {
    WICK_CHECK(t->dtype() == DType::Long || t->dtype() == DType::Int,
               "{}: Expected dtype int32/int64 for index, got {}", op, toString(t->dtype()));
  }
  WICK_CHECK(indices.dim() == 1 && offsets.dim() == 1,
             "{}: input and offsets have to be 1D Tensors, got {} and {}", op, indices.describe(),
             offsets.describe());
  WICK_CHECK(!scales.defined() || scales.numel() == indices.numel(),
             "{}: expected per_sample_weights for {} indices, got {}", op, indices.numel(),
             scales.defined() ? scales.describe() : "");
  const int64_t bags = offsets.numel() - (b.include_last ? 1 : 0);
  WICK_CHECK(bags >= 0, "{}: include_last_offset: number of offset should be at least 1", op);
  return bags;
}

// PyTorch leaves out what the gradient of sums does not need: the sizes always, the bags where
// its kernel for rows in a row applies. The indices of maxima are the sizes where there are none.
bags::Four bags::resultsOf(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                           const Bags& b, const Tensor& out, Tensor bag_of, Tensor bag_size,
                           Tensor max_indices) {
  if (b.mode == kSum) {
    bag_size = Tensor::zeros(offsets.sizes(), DType::Long, out.device());
    const bool rows = (weight.dtype() == DType::Float || weight.dtype() == DType::Half) &&
                      weight.strides()[1] == 1 && b.padding < 0;
    if (rows) bag_of = Tensor::zeros({0}, DType::Long, out.device());
  }
  if (b.mode != kMax) max_indices = bag_size.clone();
  const bool narrow = indices.dtype() == DType::Int && offsets.dtype() == DType::Int;
  const DType index_type = narrow ? DType::Int : DType::Long;
  return {out.to(weight.dtype()), bag_of.to(index_type), bag_size.to(index_type),
          max_indices.to(index_type)};
}

namespace {

using namespace bags;

// Sums of table rows for the bags [first, last), each row times its scale, in the order of the
// indices. All bags take some columns before the next ones are taken, so that what they read of the
// table lies in a near cache.
template <class T>
struct RowSums {
  const T* table;
  int64_t width;
  const int64_t* index;
  const int64_t* start;
  int64_t bags, indices;
  bool has_last;
  const T* scales;  // null: one
  int64_t padding;
  T* out;

  int64_t endOf(int64_t bag) const { return bag + 1 < bags || has_last ? start[bag + 1] : indices; }

  void compute(int64_t first, int64_t last, Pace& pace) const {
    int64_t column = 0;
    for (; column + kColumns <= width; column += kColumns) {
      for (int64_t bag = first; bag < last; ++bag) addVectors(bag, column, pace);
    }
    for (int64_t bag = first; bag < last && column < width; ++bag) {
      T* const to = out + bag * width;
      std::fill(to + column, to + width, T(0));
      for (int64_t i = start[bag]; i < endOf(bag); ++i) {
        pace.step();
        if (index[i] == padding) continue;
        const T* const from = table + index[i] * width;
        const T scale = scales ? scales[i] : T(1);
        for (int64_t j = column; j < width; ++j) to[j] += from[j] * scale;
      }
    }
  }

 private:
  typedef T Lanes __attribute__((vector_size(32)));  // GCC ignores the attribute in an alias
  static constexpr int kVectors = 8;
  static constexpr int64_t kLanes = sizeof(Lanes) / sizeof(T);
  static constexpr int64_t kColumns = kVectors * kLanes;

  void addVectors(int64_t bag, int64_t column, Pace& pace) const {
    Lanes sum[kVectors] = {};
    for (int64_t i = start[bag], end = endOf(bag); i < end; ++i) {
      pace.step();
      if (index[i] == padding) continue;
      const T* const from = table + index[i] * width + column;
      const T scale = scales ? scales[i] : T(1);
      for (int v = 0; v < kVectors; ++v) {
        Lanes row;
        std::memcpy(&row, from + v * kLanes, sizeof row);
        sum[v] += row * scale;
      }
    }
    std::memcpy(out + bag * width + column, sum, sizeof sum);
  }
};

template <class T>
void combine(const char* op, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
             const Tensor& scales, const Bags& b, const Tensor& out, const Tensor& max_indices,
             const Tensor& bag_of, const Tensor& bag_size) {
  const int64_t rows = weight.size(0), width = weight.size(1), bags = out.size(0);
  const int64_t n = indices.numel();
  const RowSums<T> sums{weight.data<T>(),
                        width,
                        indices.data<int64_t>(),
                        offsets.data<int64_t>(),
                        bags,
                        n,
                        offsets.numel() > bags,
                        scales.defined() ? scales.data<T>() : nullptr,
                        b.padding,
                        out.data<T>()};
  const int64_t* const index = sums.index;
  int64_t* const counts = bag_size.data<int64_t>();
  Pace pace;
  for (int64_t bag = 0; bag < bags; ++bag) {
    pace.step();
    const int64_t begin = sums.start[bag], end = sums.endOf(bag);
    WICK_CHECK(begin >= 0 && begin <= end && end <= n,
               "{}: offsets must not decrease or exceed the number of indices: {}", op, begin);
    for (int64_t i = begin; i < end; ++i) {
      pace.step();
      WICK_CHECK(index[i] >= 0 && index[i] < rows, "{}: index {} is out of bounds for {} rows", op,
                 index[i], rows);
      bag_of.data<int64_t>()[i] = bag;
      counts[bag] += index[i] != b.padding ? 1 : 0;
    }
  }
  const auto takeMaxima = [&](int64_t bag, Pace& steps) {
    T* to = out.data<T>() + bag * width;
    int64_t* best = max_indices.data<int64_t>() + bag * width;
    std::fill(to, to + width, T(0));
    bool first = true;
    for (int64_t i = sums.start[bag]; i < sums.endOf(bag); ++i) {
      steps.step(1 + width / 4);
      if (index[i] == b.padding) continue;
      const T* from = weight.data<T>() + index[i] * width;
      for (int64_t j = 0; j < width; ++j) {
        if (first || from[j] > to[j]) {
          to[j] = from[j];
          best[j] = index[i];
        }
      }
      first = false;
    }
  };
  // Bags of as many indices as the average.
  const int64_t work =
      (1 + n / std::max<int64_t>(1, bags)) * (1 + std::min<int64_t>(width, kGrainSize));
  parallelFor(bags, std::max<int64_t>(1, kGrainSize / work), [&](int64_t begin, int64_t end) {
    Pace steps;
    if (b.mode == kMax) {
      for (int64_t bag = begin; bag < end; ++bag) takeMaxima(bag, steps);
      return;
    }
    sums.compute(begin, end, steps);
    for (int64_t bag = begin; bag < end && b.mode == kMean; ++bag) {
      T* to = out.data<T>() + bag * width;
      for (int64_t j = 0; j < width && counts[bag] > 0; ++j) to[j] /= static_cast<T>(counts[bag]);
    }
  });
}

Four embeddingBag(const Tensor& weight, const Tensor& indices_in, const Tensor& offsets_in,
                  const Tensor& scales, Bags b) {
  const char* op = "embedding_bag";
  const int64_t bags = checkBags(op, weight, indices_in, offsets_in, scales, b);
  const Tensor indices = indices_in.to(DType::Long).contiguous(),
               offsets = offsets_in.to(DType::Long).contiguous();
  WICK_CHECK(offsets.numel() == 0 || offsets.data<int64_t>()[0] == 0,
             "{}: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
             "from position 0",
             op);
  Tensor w = widened(weight).contiguous();
  Tensor out = Tensor::empty(DimVector{bags, w.size(1)}, w.dtype());
  Tensor bag_of = Tensor::zeros(indices.sizes(), DType::Long);
  Tensor bag_size = Tensor::zeros(DimVector{bags}, DType::Long);
  Tensor max_indices = Tensor::zeros(b.mode == kMax ? out.sizes() : IntSpan(), DType::Long);
  dispatch<kFloats>(op, w.dtype(), [&]<class T>() {
    Tensor s = scales.defined() ? scales.to(w.dtype()).contiguous() : scales;
    combine<T>(op, w, indices, offsets, s, b, out, max_indices, bag_of, bag_size);
  });
  return resultsOf(weight, indices_in, offsets_in, b, out, bag_of, bag_size, max_indices);
}

Tensor glu(const Tensor& self, int64_t dim) {
  WICK_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  int64_t d = wrapDim(dim, self.dim());
  WICK_CHECK(self.size(d) % 2 == 0, "Halving dimension must be even, but dimension {} is size {}",
             d, self.size(d));
  int64_t half = self.size(d) / 2;
  return ops::mul(self.narrow(d, 0, half), ops::sigmoid(self.narrow(d, half, half)));
}

// A mask of zeros and ones, one number an element or one a feature (the first two dimensions).
Tensor keepMask(const char* op, const Tensor& input, double p, bool features) {
  WICK_CHECK(p >= 0 && p <= 1, "{}: dropout probability has to be between 0 and 1, but got {}", op,
             p);
  DimVector sizes(input.sizes());
  if (features) {
    WICK_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = 1;
  }
  return ops::bernoulli(Tensor::empty(sizes, input.dtype(), input.device()), 1 - p);
}

Tensor scaledMask(const char* op, const Tensor& input, double p, bool train, bool features) {
  WICK_CHECK(p >= 0 && p <= 1, "{}: dropout probability has to be between 0 and 1, but got {}", op,
             p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return ops::mul(input, Tensor::zeros({}, input.dtype()));
  Tensor mask = keepMask(op, input, p, features);
  return ops::mul(input, ops::divScalar(mask, 1 - p));
}

// Dropped elements take the value that keeps mean and variance of a self-normalizing network.
Tensor alphaMask(const char* op, const Tensor& input, double p, bool train, bool features) {
  WICK_CHECK(p >= 0 && p <= 1, "{}: dropout probability has to be between 0 and 1, but got {}", op,
             p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return ops::mul(input, Tensor::zeros({}, input.dtype()));
  constexpr double kAlpha = 1.7580993408473766;
  double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Tensor mask = keepMask(op, input, p, features);
  Tensor shift =
      ops::addScalar(ops::mulScalar(ops::addScalar(mask, -1), kAlpha * a), kAlpha * a * p);
  return ops::add(ops::mul(input, ops::mulScalar(mask, a)), shift);
}

Tensor featureDropout(const Tensor& input, double p, bool train) {
  return scaledMask("feature_dropout", input, p, train, true);
}
Tensor alphaDropout(const Tensor& input, double p, bool train) {
  return alphaMask("alpha_dropout", input, p, train, false);
}
Tensor featureAlphaDropout(const Tensor& input, double p, bool train) {
  return alphaMask("feature_alpha_dropout", input, p, train, true);
}

#define WICK_BAG_ARGS                                                                           \
  "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, " \
  "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"
#define WICK_FOUR ") -> (Tensor, Tensor, Tensor, Tensor)"
// Masks refuse or convert what is not floating.
std::vector<TypePtr> maskedTypes(const Node& node) {
  const auto* input = node.input(0)->type()->as<TensorType>();
  bool floats = input && input->facts().dtype && isFloating(*input->facts().dtype);
  return floats ? ops::shapes::likeFirst(node) : std::vector<TypePtr>{types::Tensor()};
}

#define WICK_DROP "(Tensor input, float p, bool train) -> Tensor"

constexpr OperatorRecord kEmbeddingBagRecords[] = {
    {"aten::embedding_bag" WICK_BAG_ARGS WICK_FOUR, WICK_KERNEL(Operators<embeddingBag>::plain),
     kRaisesByElements},
    {"aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
     "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
     "include_last_offset, int? padding_idx" WICK_FOUR,
     WICK_KERNEL(Operators<embeddingBag>::padded), kRaisesByElements},
    {"aten::_embedding_bag" WICK_BAG_ARGS ", int padding_idx=-1" WICK_FOUR,
     WICK_KERNEL(Operators<embeddingBag>::internal)},
    {"aten::_embedding_bag_forward_only" WICK_BAG_ARGS ", int padding_idx=-1" WICK_FOUR,
     WICK_KERNEL(Operators<embeddingBag>::internal)},
    {"aten::glu(Tensor self, int dim=-1) -> Tensor", WICK_KERNEL(glu), kOutForm | kNeutralLast},
    {"aten::feature_dropout" WICK_DROP, WICK_KERNEL(featureDropout),
     kInplaceForm | kNondeterministic | kMayReturnArgument | kNeutral | kKeepsOrder, maskedTypes},
    {"aten::alpha_dropout" WICK_DROP, WICK_KERNEL(alphaDropout),
     kInplaceForm | kNondeterministic | kMayReturnArgument | kNeutral, maskedTypes},
    {"aten::feature_alpha_dropout" WICK_DROP, WICK_KERNEL(featureAlphaDropout),
     kInplaceForm | kNondeterministic | kMayReturnArgument | kNeutral, maskedTypes},
};

const RegisterOperators kEmbeddingBagRegistered(kEmbeddingBagRecords);

}  // namespace
}  // namespace wick
