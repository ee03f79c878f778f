// The input is first copied between zeros for the padding, unless there are none; then every step
// reads at the same offsets from its first element:
//
//   columns[step][c, kernel…] = padded[first(step) + offset(c, kernel…)]
//
// The gradient for the input goes the same way back and adds.
#include "runtime/kernels/convolution_products.h"

#include <algorithm>

#include "core/counted_vector.h"
#include "core/error.h"
#include "core/parallel.h"
#include "runtime/kernels/onednn.h"

namespace wick::convproducts {

namespace {

int64_t product(IntSpan sizes, size_t begin) {
  int64_t all = 1;
  for (size_t d = begin; d < sizes.size(); ++d) all *= sizes[d];
  return all;
}

// Whether every step reads one pixel, its own.
bool readsPixels(IntSpan weight_size, const ConvolutionParams& p) {
  for (size_t d = 0; d < p.stride.size(); ++d) {
    if (weight_size[2 + d] != 1 || p.stride[d] != 1 || p.padding[d] != 0) return false;
  }
  return true;
}

// Where the steps of a kernel read in an input of [N, C, spatial…] with zeros around it.
struct Places {
  Places(IntSpan input, IntSpan weight, IntSpan output, const ConvolutionParams& p)
      : padded{input[0], input[1]}, plain(true) {
    const size_t spatial = p.stride.size();
    for (size_t d = 0; d < spatial; ++d) {
      padded.push_back((output[2 + d] - 1) * p.stride[d] + p.dilation[d] * (weight[2 + d] - 1) + 1);
      const int64_t read = std::min(input[2 + d], padded.back() - p.padding[d]);
      within.push_back(std::max<int64_t>(0, read));
      plain = plain && p.padding[d] == 0 && padded.back() == input[2 + d];
    }
    const DimVector strides = contiguousStrides(padded);
    const auto places = [&](IntSpan counts, const DimVector& steps, CountedVector<int32_t>& all) {
      // Each dimension repeats what is there already, the innermost one first.
      all.assign(1, 0);
      for (size_t d = counts.size(); d-- > 0;) {
        CountedVector<int32_t> next;
        next.reserve(all.size() * static_cast<size_t>(counts[d]));
        for (int64_t i = 0; i < counts[d]; ++i) {
          for (const int32_t at : all) next.push_back(static_cast<int32_t>(at + i * steps[d]));
        }
        all = std::move(next);
      }
    };
    DimVector steps{output[0]}, step_strides{strides[0]}, patch{input[1]},
        patch_strides{strides[1]};
    for (size_t d = 0; d < spatial; ++d) {
      steps.push_back(output[2 + d]);
      step_strides.push_back(strides[2 + d] * p.stride[d]);
      patch.push_back(weight[2 + d]);
      patch_strides.push_back(strides[2 + d] * p.dilation[d]);
    }
    places(steps, step_strides, first);
    places(patch, patch_strides, offset);
  }

  DimVector padded;               // the sizes with the zeros
  DimVector within;               // how much of each spatial dimension is read at all
  bool plain;                     // whether that is the input itself
  CountedVector<int32_t> first;   // of each step
  CountedVector<int32_t> offset;  // of each element of a patch
};

// The part of the padded tensor that holds elements of the input, and that part of the input.
std::pair<Tensor, Tensor> inner(Tensor padded, Tensor input, const Places& places,
                                const ConvolutionParams& p) {
  for (size_t d = 0; d < p.stride.size(); ++d) {
    const auto at = static_cast<int64_t>(2 + d);
    const int64_t begin = std::min(p.padding[d], places.padded[2 + d]);
    padded = padded.narrow(at, begin, places.within[d]);
    input = input.narrow(at, 0, places.within[d]);
  }
  return {padded, input};
}

// [steps, patch].
Tensor columnsOf(const Tensor& input, IntSpan weight_size, IntSpan output_size,
                 const ConvolutionParams& p) {
  if (readsPixels(weight_size, p)) return onednn::toChannelsInnermost(input);
  const Places places(input.sizes(), weight_size, output_size, p);
  Tensor padded;
  if (places.plain) {
    padded = input.contiguous();
  } else {
    padded = Tensor::zeros(places.padded, DType::Float);
    const auto [to, from] = inner(padded, input, places, p);
    to.copyFrom(from);
  }
  const auto steps = static_cast<int64_t>(places.first.size()),
             patch = static_cast<int64_t>(places.offset.size());
  Tensor columns = Tensor::empty(DimVector{steps, patch}, DType::Float);
  const float* const source = padded.data<float>();
  float* const target = columns.data<float>();
  const int32_t* const offset = places.offset.data();
  parallelFor(steps, std::max<int64_t>(1, kGrainSize / patch), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const float* const from = source + places.first[static_cast<size_t>(s)];
      float* const to = target + s * patch;
      for (int64_t i = 0; i < patch; ++i) to[i] = from[offset[i]];
    }
  });
  return columns;
}

// Row-major c[m, n] = a[m, k] b[k, n]; a letter says whether a matrix lies transposed.
void multiply(const char* op, char a_lies, char b_lies, int64_t m, int64_t n, int64_t k,
              const Tensor& a, const Tensor& b, const Tensor& c) {
  const dnnl_status_t status =
      dnnl_sgemm(a_lies, b_lies, m, n, k, 1.0f, a.data<float>(), a_lies == 'T' ? m : k,
                 b.data<float>(), b_lies == 'T' ? k : n, 0.0f, c.data<float>(), n);
  WICK_CHECK(status == dnnl_success, "{}: oneDNN refused a product of {} x {} x {}", op, m, n, k);
}

}  // namespace

bool pays(Purpose purpose, IntSpan input_size, IntSpan weight_size, IntSpan output_size,
          const ConvolutionParams& p) {
  constexpr int64_t kLargest = int64_t{1} << 26;
  if (p.transposed || p.groups != 1 || weight_size.size() < 3) return false;
  for (IntSpan sizes : {input_size, weight_size, output_size}) {
    int64_t all = 1;
    for (const int64_t s : sizes) {
      if (s <= 0 || s > kLargest / all) return false;
      all *= s;
    }
  }
  const int64_t steps = output_size[0] * product(output_size, 2);
  const int64_t patch = product(weight_size, 1), rows = weight_size[0];
  // Single pixels need no columns, and the products of both kinds are the same.
  if (readsPixels(weight_size, p)) {
    return purpose != Purpose::Output ? steps <= 16 * std::min(rows, patch) : steps <= rows;
  }
  if (steps > kLargest / patch) return false;
  int64_t padded = input_size[0] * input_size[1];
  for (size_t d = 0; d < p.stride.size(); ++d) {
    const int64_t extent =
        (output_size[2 + d] - 1) * p.stride[d] + p.dilation[d] * (weight_size[2 + d] - 1) + 1;
    if (extent <= 0 || extent > kLargest / padded) return false;
    padded *= extent;
  }
  // Turning an element of a weight takes about as long as an element of the columns; oneDNN's
  // gradients for weights are slow besides where images are small.
  return steps <= (purpose == Purpose::WeightGradient ? 2 * rows : rows);
}

Tensor output(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
              IntSpan output_size, const ConvolutionParams& params) {
  attendTeam();
  const Tensor columns = columnsOf(input, weight.sizes(), output_size, params);
  const Tensor w = weight.contiguous();
  Tensor out =
      Tensor::emptyStrided(output_size, onednn::channelsInnermost(output_size), DType::Float);
  const int64_t steps = output_size[0] * product(output_size, 2), rows = weight.size(0);
  multiply(op, 'N', 'T', steps, rows, product(weight.sizes(), 1), columns, w, out);
  if (!bias.defined()) return out;
  const Tensor b = bias.contiguous();
  const float* const add = b.data<float>();
  float* const to = out.data<float>();
  parallelFor(steps, std::max<int64_t>(1, kGrainSize / rows), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      for (int64_t i = 0; i < rows; ++i) to[s * rows + i] += add[i];
    }
  });
  return out;
}

Tensor inputGradient(const char* op, const Tensor& grad, const Tensor& weight, IntSpan input_size,
                     const ConvolutionParams& params) {
  attendTeam();
  const Tensor g = onednn::toChannelsInnermost(grad), w = weight.contiguous();
  const int64_t steps = grad.size(0) * product(grad.sizes(), 2), rows = weight.size(0),
                patch = product(weight.sizes(), 1);
  if (readsPixels(weight.sizes(), params)) {
    Tensor out =
        Tensor::emptyStrided(input_size, onednn::channelsInnermost(input_size), DType::Float);
    multiply(op, 'N', 'N', steps, patch, rows, g, w, out);
    return out.contiguous(grad.suggestMemoryFormat());
  }
  Tensor columns = Tensor::empty(DimVector{steps, patch}, DType::Float);
  multiply(op, 'N', 'N', steps, patch, rows, g, w, columns);
  const Places places(input_size, weight.sizes(), grad.sizes(), params);
  Tensor padded = Tensor::zeros(places.padded, DType::Float);
  const int64_t channels = input_size[1], points = patch / channels;
  const float* const source = columns.data<float>();
  float* const target = padded.data<float>();
  // Steps read the same elements, but those of other channels never.
  parallelFor(channels, std::max<int64_t>(1, kGrainSize / (steps * points)),
              [&](int64_t begin, int64_t end) {
                for (int64_t s = 0; s < steps; ++s) {
                  float* const to = target + places.first[static_cast<size_t>(s)];
                  const float* const from = source + s * patch;
                  for (int64_t i = begin * points; i < end * points; ++i) {
                    to[places.offset[static_cast<size_t>(i)]] += from[i];
                  }
                }
              });
  if (places.plain) return padded.contiguous(grad.suggestMemoryFormat());
  Tensor out =
      Tensor::empty(input_size, DType::Float, Device(), grad.suggestMemoryFormat()).fill(0);
  const auto [from, to] = inner(padded, out, places, params);
  to.copyFrom(from);
  return out;
}

Tensor weightGradient(const char* op, const Tensor& grad, const Tensor& input, IntSpan weight_size,
                      const ConvolutionParams& params) {
  attendTeam();
  const Tensor columns = columnsOf(input, weight_size, grad.sizes(), params),
               g = onednn::toChannelsInnermost(grad);
  Tensor out = Tensor::empty(weight_size, DType::Float);
  multiply(op, 'T', 'N', weight_size[0], product(weight_size, 1),
           grad.size(0) * product(grad.sizes(), 2), g, columns, out);
  return out;
}

}  // namespace wick::convproducts
