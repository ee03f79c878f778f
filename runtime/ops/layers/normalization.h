// What normalizations and their gradients check on every device.
#pragma once

#include <tuple>

#include "core/tensor.h"

namespace wick {

// The channels of images of two or more dimensions; RuntimeError for others.
int64_t channelsOf(const char* op, const Tensor& input);
// Whether an argument, where there is one, has an element for each channel.
void checkChannels(const char* op, const char* name, const Tensor& t, int64_t channels);
void checkGroups(const char* op, const Tensor& input, int64_t channels, int64_t groups);
// Whether `input` has n * c * hxw elements.
void checkPlanes(const char* op, const Tensor& input, int64_t n, int64_t c, int64_t hxw);
// The sizes of what is computed of each row: those of the dimensions in front of `shape`, and ones.
DimVector sizesOfRows(const char* op, const Tensor& input, const DimVector& shape,
                      const Tensor& weight, const Tensor& bias);
// The gradients of images without elements, of weight and bias.
std::tuple<Tensor, Tensor, Tensor> gradientsOfNothing(const Tensor& input);

}  // namespace wick
