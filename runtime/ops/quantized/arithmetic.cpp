// quantized::add, mul and their kin, and concatenation. Sums and products of two tensors are
// computed in float32 and rounded once; of a tensor and a number mostly the grid alone changes.
#include "runtime/ops/common_calls.h"
#include "runtime/ops/quantized/record_flags.h"
#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

namespace {

constexpr int64_t kChunk = 512;

// Both operands in one layout and of one shape.
struct Operands {
  Tensor a, b;
};

Operands matched(const char* op, const Tensor& qa, const Tensor& qb) {
  perTensorQuantizerOf(op, qa);
  perTensorQuantizerOf(op, qb);
  WICK_CHECK(qa.dtype() == qb.dtype(), "{}: operands should have same data type, got {} and {}", op,
             toString(qa.dtype()), toString(qb.dtype()));
  const DimVector sizes = broadcastShapes(qa.sizes(), qb.sizes());
  const Tensor& larger = qa.numel() >= qb.numel() ? qa : qb;
  const MemoryFormat format = larger.suggestMemoryFormat();
  const auto fitted = [&](const Tensor& t) {
    return contiguous(std::ranges::equal(t.sizes(), sizes) ? t : t.expand(sizes), format);
  };
  return {fitted(qa), fitted(qb)};
}

void relu(float* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] = values[i] > 0 ? values[i] : 0;
}

// f(a, b) of the integers as floats, rounded to `grid`.
template <class F>
Tensor combined(const char* op, const Tensor& qa, const Tensor& qb, const Grid& grid,
                bool with_relu, F&& f) {
  const auto [a, b] = matched(op, qa, qb);
  checkGrid(op, grid, qa.dtype());
  Tensor result =
      emptyQuantizedLike(a, qa.dtype(), Quantizer::perTensor(grid.scale, grid.zero_point));
  dispatchIntegers(qa.dtype(), [&]<class T>() {
    const T* from_a = integers<T>(a);
    const T* from_b = integers<T>(b);
    T* to = integers<T>(result);
    parallelFor(a.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      float values[kChunk];
      for (int64_t at = begin; at < end; at += kChunk) {
        const int64_t n = std::min(kChunk, end - at);
        for (int64_t i = 0; i < n; ++i) {
          values[i] = f(static_cast<float>(from_a[at + i]), static_cast<float>(from_b[at + i]));
        }
        if (with_relu) relu(values, n);
        roundRun(values, to + at, n, grid, qa.dtype());
      }
    });
  });
  return result;
}

template <bool kRelu>
Tensor added(const Tensor& qa, const Tensor& qb, const Grid& grid) {
  const char* op = "quantized::add";
  const Quantizer &a = perTensorQuantizerOf(op, qa), &b = perTensorQuantizerOf(op, qb);
  const auto scale_a = static_cast<float>(a.scale()), scale_b = static_cast<float>(b.scale());
  const auto zero_a = static_cast<float>(a.zeroPoint());
  const auto zero_b = static_cast<float>(b.zeroPoint());
  return combined(op, qa, qb, grid, kRelu, [=](float x, float y) {
    return (x - zero_a) * scale_a + (y - zero_b) * scale_b;
  });
}

// The product of the integers is exact in float32 for bytes. Its scale goes into the rounding, as
// in PyTorch: float(integer) * multiplier.
template <bool kRelu>
Tensor multiplied(const Tensor& qa, const Tensor& qb, const Grid& grid) {
  const char* op = "quantized::mul";
  const Quantizer &a = perTensorQuantizerOf(op, qa), &b = perTensorQuantizerOf(op, qb);
  const auto zero_a = static_cast<float>(a.zeroPoint());
  const auto zero_b = static_cast<float>(b.zeroPoint());
  const auto multiplier =
      static_cast<float>(static_cast<float>(a.scale()) * static_cast<float>(b.scale()) *
                         (1.0f / static_cast<float>(grid.scale)));
  const Tensor steps = combined(op, qa, qb, {1, grid.zero_point}, kRelu, [=](float x, float y) {
    return (x - zero_a) * (y - zero_b) * multiplier;
  });
  steps.impl()->become(TensorKind::Quantized, Quantizer::perTensor(grid.scale, grid.zero_point));
  return steps;
}

using Combine = Tensor (*)(const Tensor&, const Tensor&, const Grid&);

template <Combine kCombine>
Tensor onGrid(const Tensor& qa, const Tensor& qb, double scale, int64_t zero_point) {
  return kCombine(qa, qb, {scale, zero_point});
}
// On the grid that the destination has.
template <Combine kCombine>
Tensor intoOut(const Tensor& qa, const Tensor& qb, const Tensor& out) {
  const Grid grid = gridOf(perTensorQuantizerOf("quantized::add_out", out));
  const Tensor result = kCombine(qa, qb, grid);
  WICK_CHECK(std::ranges::equal(result.sizes(), out.sizes()),
             "quantized: expected an out of shape {}, got {}", formatInts(result.sizes()),
             formatInts(out.sizes()));
  copyInto("quantized::add_out", out, result);
  return out;
}

Tensor regridded(const Tensor& q, double scale, int64_t zero_point, bool with_relu) {
  Tensor copy = clone(q);
  copy.impl()->become(TensorKind::Quantized, Quantizer::perTensor(scale, zero_point));
  if (!with_relu) return copy;
  return mapIntegers("relu", copy, [=](int64_t v) { return std::max(v, zero_point); });
}

// The grid moves by whole steps. Where zero would leave the range of the integers, it gets wider
// and the sum is rounded anew.
template <bool kRelu>
Tensor addedNumber(const Tensor& qa, const Scalar& number) {
  const char* op = "quantized::add";
  const Quantizer& q = perTensorQuantizerOf(op, qa);
  const IntegerRange range = rangeOf(qa.dtype());
  const double scale = q.scale();
  const double steps = std::nearbyint(number.toDouble() / scale);
  WICK_CHECK(std::abs(steps) < 0x1p53, "{}: {} is too large for a scale of {}", op,
             number.toDouble(), scale);
  const auto least = static_cast<double>(range.least), most = static_cast<double>(range.most);
  const double zero = static_cast<double>(q.zeroPoint()) - steps;
  if (zero >= least && zero <= most) {
    return regridded(qa, scale, static_cast<int64_t>(zero), kRelu);
  }
  const bool below = zero < least;
  const Grid grid{(below ? most - zero : zero - least) / (most - least) * scale,
                  below ? range.least : range.most};
  const auto shift = static_cast<float>(steps * scale);
  return mapReal(op, qa, grid, [=](float x) {
    const float sum = x + shift;
    return kRelu && sum < 0 ? 0.0f : sum;
  });
}

// A negative factor turns the integers around.
template <bool kRelu>
Tensor multipliedByNumber(const Tensor& qa, const Scalar& number) {
  const char* op = "quantized::mul";
  const Quantizer& q = perTensorQuantizerOf(op, qa);
  const double factor = number.toDouble();
  WICK_CHECK(!std::isnan(factor), "{}: the factor is no number", op);
  if (factor > 0) return regridded(qa, factor * q.scale(), q.zeroPoint(), kRelu);
  const IntegerRange range = rangeOf(qa.dtype());
  const int64_t ends = range.least + range.most;
  const int64_t zero = factor == 0 ? 0 : ends - q.zeroPoint();
  Tensor turned = mapIntegers(op, qa, [=](int64_t v) { return factor == 0 ? 0 : ends - v; });
  turned.impl()->become(TensorKind::Quantized,
                        Quantizer::perTensor(factor == 0 ? 1.0 : -factor * q.scale(), zero));
  if (!kRelu) return turned;
  return mapIntegers(op, turned, [=](int64_t v) { return std::max(v, zero); });
}

using WithNumber = Tensor (*)(const Tensor&, const Scalar&);

template <WithNumber kWith>
Tensor numberFirst(const Scalar& number, const Tensor& qa) {
  return kWith(qa, number);
}
template <WithNumber kWith>
Tensor numberOfTensor(const Tensor& qa, const Tensor& number) {
  return kWith(qa, Scalar(number.to(DType::Double).item<double>()));
}
template <WithNumber kWith>
Tensor numberInto(const Tensor& qa, const Scalar& number, const Tensor& out) {
  copyInto("quantized::add_out", out, kWith(qa, number));
  return out;
}
template <WithNumber kWith>
Tensor numberOfTensorInto(const Tensor& qa, const Tensor& number, const Tensor& out) {
  return numberInto<kWith>(qa, Scalar(number.to(DType::Double).item<double>()), out);
}

Tensor matmul(const Tensor& qa, const Tensor& qb, double scale, int64_t zero_point) {
  const char* op = "quantized::matmul";
  const Quantizer &a = perTensorQuantizerOf(op, qa), &b = perTensorQuantizerOf(op, qb);
  WICK_CHECK(qa.dtype() == qb.dtype(), "{}: MatMul operands should have same data type.", op);
  // Differences of integers multiply without loss in double.
  const auto steps = [&](const Tensor& t, const Quantizer& q) {
    const Tensor as_steps =
        quantizedFrom(integersOf(t), t.dtype(), Quantizer::perTensor(1, q.zeroPoint()));
    return dequantize(op, as_steps).to(DType::Double);
  };
  const Tensor sums = ops::matmul(steps(qa, a), steps(qb, b));
  const Tensor scaled = ops::mulScalar(sums, Scalar(a.scale() * b.scale()));
  return quantize(op, scaled.to(DType::Float), {scale, zero_point}, qa.dtype());
}

template <bool kRelu>
Tensor joined(const std::vector<Tensor>& tensors, int64_t dim, const Grid& grid) {
  const char* op = "quantized::cat";
  std::vector<Tensor> parts;
  const DType dtype = tensors[0].dtype();
  for (const Tensor& t : tensors) {
    const Quantizer& own = perTensorQuantizerOf(op, t);
    WICK_CHECK(t.dtype() == dtype, "{}: All dtypes must be the same.", op);
    Tensor part = own.scale() == grid.scale && own.zeroPoint() == grid.zero_point
                      ? t
                      : mapReal(op, t, grid, [](float x) { return x; });
    if (kRelu) {
      part = mapIntegers(op, part, [&](int64_t v) { return std::max(v, grid.zero_point); });
    }
    parts.push_back(integersOf(part));
  }
  return quantizedFrom(ops::cat(parts, dim), dtype,
                       Quantizer::perTensor(grid.scale, grid.zero_point));
}
template <bool kRelu>
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim, std::optional<double> scale,
           std::optional<int64_t> zero_point) {
  const char* op = "quantized::cat";
  WICK_CHECK(!tensors.empty(), "{}: expected a list with tensors, got an empty one", op);
  const Quantizer& first = perTensorQuantizerOf(op, tensors[0]);
  return joined<kRelu>(tensors, dim,
                       {scale.value_or(first.scale()), zero_point.value_or(first.zeroPoint())});
}
template <bool kRelu>
Tensor catInto(const std::vector<Tensor>& tensors, int64_t dim, const Tensor& out) {
  const char* op = "quantized::cat_out";
  WICK_CHECK(!tensors.empty(), "{}: expected a list with tensors, got an empty one", op);
  const Tensor result = joined<kRelu>(tensors, dim, gridOf(perTensorQuantizerOf(op, out)));
  WICK_CHECK(std::ranges::equal(result.sizes(), out.sizes()),
             "{}: expected an out of shape {}, got {}", op, formatInts(result.sizes()),
             formatInts(out.sizes()));
  copyInto(op, out, result);
  return out;
}

#define WICK_TWO(name, f)                                                                 \
  {"quantized::" name "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc", \
   WICK_CPU_KERNEL(onGrid<f>), kPlain},                                                   \
      {"quantized::" name ".out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out", \
       WICK_CPU_KERNEL(intoOut<f>), kPlain},                                              \
  {                                                                                       \
    "quantized::" name "_out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out",    \
        WICK_CPU_KERNEL(intoOut<f>), kPlain                                               \
  }
#define WICK_NUMBER(name, other, f)                                                             \
  {"quantized::" name ".Scalar(Tensor qa, Scalar b) -> Tensor qc", WICK_CPU_KERNEL(f), kPlain}, \
      {"quantized::" name ".Scalar2(Scalar b, Tensor qa) -> Tensor qc",                         \
       WICK_CPU_KERNEL(numberFirst<f>), kPlain},                                                \
      {"quantized::" name ".Scalar_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out", \
       WICK_CPU_KERNEL(numberInto<f>), kPlain},                                                 \
      {"quantized::" other "(Tensor qa, Scalar b) -> Tensor qc", WICK_CPU_KERNEL(f), kPlain}, { \
    "quantized::" other ".Tensor(Tensor qa, Tensor b) -> Tensor qc",                            \
        WICK_CPU_KERNEL(numberOfTensor<f>), kPlain                                              \
  }
#define WICK_NUMBER_OUT(name, f)                                                         \
  {"quantized::" name "(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out",         \
   WICK_CPU_KERNEL(numberInto<f>), kPlain},                                              \
  {                                                                                      \
    "quantized::" name ".Tensor(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!) out", \
        WICK_CPU_KERNEL(numberOfTensorInto<f>), kPlain                                   \
  }

const OperatorRecord kArithmeticRecords[] = {
    WICK_TWO("add", added<false>),
    WICK_TWO("add_relu", added<true>),
    WICK_TWO("mul", multiplied<false>),
    WICK_TWO("mul_relu", multiplied<true>),
    WICK_NUMBER("add", "add_scalar", addedNumber<false>),
    WICK_NUMBER("add_relu", "add_scalar_relu", addedNumber<true>),
    WICK_NUMBER("mul", "mul_scalar", multipliedByNumber<false>),
    WICK_NUMBER("mul_relu", "mul_scalar_relu", multipliedByNumber<true>),
    WICK_NUMBER_OUT("add_scalar_out", addedNumber<false>),
    WICK_NUMBER_OUT("add_scalar_relu_out", addedNumber<true>),
    WICK_NUMBER_OUT("mul_scalar_out", multipliedByNumber<false>),
    WICK_NUMBER_OUT("mul_scalar_relu_out", multipliedByNumber<true>),
    {"_quantized::add(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc",
     WICK_CPU_KERNEL(onGrid<added<false>>), kPlain},
    {"quantized::matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc",
     WICK_CPU_KERNEL(matmul), kPlain},
    {"quantized::cat(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor",
     WICK_CPU_KERNEL(cat<false>), kPlain},
    {"quantized::cat_relu(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor",
     WICK_CPU_KERNEL(cat<true>), kPlain},
    {"quantized::cat_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)",
     WICK_CPU_KERNEL(catInto<false>), kPlain},
    {"quantized::cat_relu_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)",
     WICK_CPU_KERNEL(catInto<true>), kPlain},
};
const RegisterOperators kArithmeticRegistered(kArithmeticRecords);

}  // namespace

}  // namespace wick::ops::quantized
