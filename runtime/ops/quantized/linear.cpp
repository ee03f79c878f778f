// Quantized linear layers.

#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/quantized/choose_grid.h"
#include "runtime/ops/quantized/record_flags.h"
#include "runtime/ops/quantized/requantize.h"

namespace wick::ops::quantized {

namespace {

// Rows that a thread computes at once, and columns; the sums of a tile stay in its cache.
constexpr int64_t kLinearTileRows = 48;
constexpr int64_t kLinearTileColumns = 256;
// Products below which a second thread does not pay.
constexpr int64_t kLinearTileWork = 1 << 20;

// x [rows, depth] of unsigned bytes on `input`; store(r, first, count, floats) takes the results.
template <class Store>
void product(const uint8_t* x, int64_t rows, const Grid& input, const LinearParams& layer,
             double out_scale, bool relu, Store&& store) {
  const PackedBytes& matrix = layer.packed();
  const Finish finish(input, layer.grid(), matrix, layer.bias, out_scale);
  const int64_t depth = matrix.depth(), columns = matrix.columns();
  const int64_t tile_columns = std::min(kLinearTileColumns, matrix.paddedColumns());
  if (columns == 0) return;
  const int64_t across = (columns + tile_columns - 1) / tile_columns;
  const int64_t down = (rows + kLinearTileRows - 1) / kLinearTileRows;
  const int64_t work = std::min(kLinearTileRows, rows) * tile_columns * std::max<int64_t>(depth, 1);
  parallelFor(
      across * down, std::max<int64_t>(1, kLinearTileWork / std::max<int64_t>(work, 1)),
      [&](int64_t begin, int64_t end) {
        CountedVector<int32_t> sums(static_cast<size_t>(kLinearTileRows * tile_columns));
        float values[kLinearTileColumns];
        for (int64_t tile = begin; tile < end; ++tile) {
          const int64_t first = tile % across * tile_columns;
          const int64_t last = std::min(first + tile_columns, matrix.paddedColumns());
          const int64_t row = tile / across * kLinearTileRows;
          const int64_t n = std::min(kLinearTileRows, rows - row);
          matrix.multiply(x + row * depth, depth, n, first, last, sums.data(), tile_columns);
          const int64_t count = std::min(last, columns) - first;
          for (int64_t r = 0; r < n; ++r) {
            const int32_t row_sum = finish.needsRowSum() ? sumOf(x + (row + r) * depth, depth) : 0;
            finish.row(sums.data() + r * tile_columns, first, count, row_sum, relu, values);
            store(row + r, first, count, values);
          }
        }
      });
}

DimVector resultSizes(const char* op, const Tensor& x, const LinearParams& layer) {
  WICK_CHECK(x.dim() >= 1, "{}: The dimension of input should be at least 1", op);
  WICK_CHECK(x.size(-1) == layer.weight.size(1),
             "{}: expected an input with {} features in its last dimension, got {}", op,
             layer.weight.size(1), x.describe());
  DimVector sizes(x.sizes());
  sizes.back() = layer.weight.size(0);
  return sizes;
}

void checkWhole(const char* op, const LinearParams& layer) {
  WICK_CHECK(!layer.isHalf(), "{}: expected a layer of int8 weights, got one of float16", op);
}

IValue prepack(const char* op, const Tensor& w, const Tensor& b) {
  WICK_CHECK(w.dim() == 2, "{}: the weight tensor for quantized linear should be 2-dimensional.",
             op);
  return makeLinear(op, w, b);
}
IValue prepackInt8(const Tensor& w, const Tensor& b) {
  const char* op = "quantized::linear_prepack";
  quantizerOf(op, w);
  return prepack(op, w, b);
}
IValue prepackHalf(const Tensor& w, const Tensor& b) {
  const char* op = "quantized::linear_prepack_fp16";
  WICK_CHECK(!isQuantized(w), "{}: expected a float32 weight, got a quantized one", op);
  return prepack(op, w, b);
}

std::tuple<Tensor, Tensor> unpackLinear(const IValue& packed) {
  const LinearParams& layer = linearOf("quantized::linear_unpack", packed);
  return {layer.weight, layer.bias};
}
Tensor biasOfLinear(const IValue& packed) {
  return linearOf("LinearPackedParamsBase.bias", packed).bias;
}

template <bool kRelu>
Tensor linear(const Tensor& x, const IValue& packed, double scale, int64_t zero_point) {
  const char* op = kRelu ? "quantized::linear_relu" : "quantized::linear";
  return linearOnGrid(op, x, linearOf(op, packed), {scale, zero_point}, kRelu);
}
template <bool kRelu>
Tensor dynamic(const Tensor& x, const IValue& packed, bool reduce_range) {
  const char* op = kRelu ? "quantized::linear_relu_dynamic" : "quantized::linear_dynamic";
  return linearDynamic(op, x, linearOf(op, packed), reduce_range, kRelu);
}
template <bool kRelu>
Tensor half(const Tensor& x, const IValue& packed) {
  const char* op = kRelu ? "quantized::linear_relu_dynamic_fp16" : "quantized::linear_dynamic_fp16";
  return linearHalf(op, x, linearOf(op, packed), kRelu);
}

#define WICK_LINEAR "__torch__.torch.classes.quantized.LinearPackedParamsBase"

#define WICK_IN_BOTH(space)                                                               \
  {space "::linear(Tensor X, " WICK_LINEAR                                                \
         " W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y",                  \
   WICK_CPU_KERNEL(linear<false>), kPlain},                                               \
      {space "::linear_dynamic(Tensor X, " WICK_LINEAR                                    \
             " W_prepack, bool reduce_range=False) -> Tensor Y",                          \
       WICK_CPU_KERNEL(dynamic<false>), kPlain},                                          \
      {space "::linear_prepack(Tensor W, Tensor? B=None) -> " WICK_LINEAR " W_prepack",   \
       WICK_CPU_KERNEL(prepackInt8), kPlain},                                             \
  {                                                                                       \
    space "::linear_prepack_fp16(Tensor W, Tensor? B=None) -> " WICK_LINEAR " W_prepack", \
        WICK_CPU_KERNEL(prepackHalf), kPlain                                              \
  }

const OperatorRecord kLinearRecords[] = {
    WICK_IN_BOTH("quantized"),
    WICK_IN_BOTH("_quantized"),
    {"quantized::linear_relu(Tensor X, " WICK_LINEAR
     " W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y",
     WICK_CPU_KERNEL(linear<true>), kPlain},
    {"quantized::linear_relu_dynamic(Tensor X, " WICK_LINEAR
     " W_prepack, bool reduce_range=False) -> Tensor Y",
     WICK_CPU_KERNEL(dynamic<true>), kPlain},
    {"quantized::linear_dynamic_fp16(Tensor X, " WICK_LINEAR " W_prepack) -> Tensor Y",
     WICK_CPU_KERNEL(half<false>), kPlain},
    {"quantized::linear_relu_dynamic_fp16(Tensor X, " WICK_LINEAR " W_prepack) -> Tensor Y",
     WICK_CPU_KERNEL(half<true>), kPlain},
    {"quantized::linear_unpack(" WICK_LINEAR " W_prepack) -> (Tensor W_origin, Tensor? B_origin)",
     WICK_CPU_KERNEL(unpackLinear), kPlain},
    {"quantized::linear_unpack_fp16(" WICK_LINEAR
     " W_prepack) -> (Tensor W_origin, Tensor? B_origin)",
     WICK_CPU_KERNEL(unpackLinear), kPlain},
    {"packed_class::linear_bias(" WICK_LINEAR " W_prepack) -> Tensor?",
     WICK_CPU_KERNEL(biasOfLinear), kPlain},
};
const RegisterOperators kLinearRegistered(kLinearRecords);

}  // namespace

Tensor linearOnGrid(const char* op, const Tensor& x, const LinearParams& layer, const Grid& grid,
                    bool relu) {
  checkWhole(op, layer);
  const Quantizer& q = perTensorQuantizerOf(op, x);
  WICK_CHECK(x.dtype() == DType::QUInt8, "{}: expected a quint8 input, got {}", op, x.describe());
  checkGrid(op, grid, DType::QUInt8);
  Tensor result = emptyQuantized(resultSizes(op, x, layer), DType::QUInt8,
                                 Quantizer::perTensor(grid.scale, grid.zero_point));
  const Tensor from = contiguous(x);
  const int64_t columns = layer.weight.size(0);
  const int64_t rows = columns == 0 ? 0 : result.numel() / columns;
  auto* out = integers<uint8_t>(result);
  product(integers<uint8_t>(from), rows, gridOf(q), layer, grid.scale, relu,
          [&](int64_t r, int64_t first, int64_t count, const float* values) {
            roundRun(values, out + r * columns + first, count, {1, grid.zero_point}, DType::QUInt8);
          });
  return result;
}

Tensor linearDynamic(const char* op, const Tensor& x, const LinearParams& layer, bool reduce_range,
                     bool relu) {
  if (layer.isHalf()) return linearHalf(op, x, layer, relu);
  WICK_CHECK(x.kind() == TensorKind::Dense && x.dtype() == DType::Float,
             "{}: expected a float32 input, got {}", op, x.describe());
  Tensor result = Tensor::empty(resultSizes(op, x, layer), DType::Float);
  if (result.numel() == 0) return result;
  const int64_t columns = layer.weight.size(0);
  const int64_t rows = result.numel() / columns;
  // Of no values, every grid is as good.
  const Grid grid = x.numel() == 0 ? Grid{} : chooseGrid(op, x, 0, 255, reduce_range);
  const Tensor bytes = quantize(op, x.contiguous(), grid, DType::QUInt8);
  auto* out = result.data<float>();
  product(integers<uint8_t>(contiguous(bytes)), rows, grid, layer, 1, relu,
          [&](int64_t r, int64_t first, int64_t count, const float* values) {
            std::copy(values, values + count, out + r * columns + first);
          });
  return result;
}

Tensor linearHalf(const char* op, const Tensor& x, const LinearParams& layer, bool relu) {
  static const OperatorHandle kLinear{"aten::linear", ""};
  WICK_CHECK(layer.isHalf(), "{}: expected a layer of float16 weights, got one of int8", op);
  WICK_CHECK(x.kind() == TensorKind::Dense && x.dtype() == DType::Float,
             "{}: expected a float32 input, got {}", op, x.describe());
  resultSizes(op, x, layer);
  const Tensor result = kLinear(x, layer.weight, layer.bias);
  return relu ? ops::relu(result) : result;
}

}  // namespace wick::ops::quantized
