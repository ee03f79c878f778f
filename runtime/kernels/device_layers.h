// What kernels do for tensors that are not on the CPU: the functions of gemm.h, convolution.h,
// pooling.h, lstm.h and pointwise.h come here for them, so that operators above need not ask.
#pragma once

#include "core/counted_vector.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/lstm.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/pooling.h"

namespace wick {

// Rows of a result that are weighted sums of rows of a source: row r is the sum of source rows
// place[e] * weight[e] for e from start[r] up to start[r + 1]. Without weights, copies of one each.
struct WeightedRows {
  CountedVector<int64_t> start, place;
  CountedVector<double> weight;

  // The table of what goes back: for each of `rows` source rows the result's rows that it is in.
  WeightedRows transposed(int64_t rows) const;
};

// Of a type of device. Arguments are checked already, as far as shapes and dtypes of the CPU go.
class DeviceLayers {
 public:
  virtual ~DeviceLayers() = default;
  virtual Tensor batchedProduct(const char* op, const Tensor& a, const Tensor& b) = 0;
  virtual Tensor linearProduct(const char* op, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const Epilogue& epilogue) = 0;
  virtual Tensor convolution(const char* op, const Tensor& input, const Tensor& weight,
                             const Tensor& bias, const ConvolutionParams& params,
                             const Tensor& residual, Activation activation) = 0;
  // The gradient for the weight of a convolution that is not transposed; floats. `params` pads both
  // sides alike.
  virtual Tensor convolutionWeightGradient(const char* op, const Tensor& grad, const Tensor& input,
                                           IntSpan weight_size,
                                           const ConvolutionParams& params) = 0;
  virtual pooling::MaxResult maxPool(const char* op, const Tensor& x, const pooling::Axes& axes,
                                     bool want_indices) = 0;
  virtual Tensor averagePool(const char* op, const Tensor& x, const pooling::Axes& axes,
                             bool count_padding, std::optional<int64_t> divisor) = 0;
  // `out` [outer, rows of the table, inner] from `x` [outer, source_rows, inner], both dense and of
  // one dtype, in which the sums are made.
  virtual void weightedRows(const char* op, const Tensor& x, const Tensor& out, int64_t source_rows,
                            int64_t inner, const WeightedRows& rows) = 0;
  virtual void lstmStep(const LstmStep& step) = 0;
  virtual void lstmStepGradient(const LstmStepGradient& step) = 0;
  // pointwise() into a new tensor of one or more elements.
  virtual Tensor pointwise(const ScalarDefinition& definition, std::span<const Operand> operands,
                           Device device) = 0;
};

// Throws RuntimeError that names the operator when the device has none.
DeviceLayers& deviceLayers(const char* op, Device device);
// Set once, before anything runs.
void setDeviceLayers(DeviceType type, DeviceLayers* layers);

}  // namespace wick
