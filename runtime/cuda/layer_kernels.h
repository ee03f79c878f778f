// Kernels of layers that are written as text.
#pragma once

#include <functional>

#include "runtime/cuda/text_kernel.h"
#include "runtime/kernels/device_layers.h"

namespace wick::cuda {

// out [B, M, N] = a [B, M, K] times b [B, K, N] of integers; one of the batches may be one.
TextKernel integerProductKernel(const Tensor& a, const Tensor& b, const Tensor& out);

// What makes a tensor of the CPU one of the device.
using TableMaker = std::function<Tensor(const Tensor&)>;
// As DeviceLayers has it.
TextKernel weightedRowsKernel(const Tensor& x, const Tensor& out, int64_t source_rows,
                              int64_t inner, const WeightedRows& rows, const TableMaker& table);

// The input of a convolution with what another padding behind than in front of it adds, and `params` without that.
Tensor paddedEvenly(const Tensor& input, ConvolutionParams& params);

}  // namespace wick::cuda
