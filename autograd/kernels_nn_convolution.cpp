// What a convolution's gradients are for its input and its weight: convolutions again. Both are
// linear in their two tensors, so their formulas are made of each other.
#include "autograd/convolution_weights.h"
#include "core/error.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/convolution_products.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::autograd {

namespace {

struct Geometry {
  DimVector stride, padding, dilation;
  bool transposed;
  DimVector output_padding;
  int64_t groups;
};

ConvolutionParams paramsOf(const char* op, const Geometry& g, size_t n) {
  ConvolutionParams p;
  p.stride = expandInts(op, "stride", g.stride, n);
  p.padding = p.padding_after = expandInts(op, "padding", g.padding, n);
  p.dilation = expandInts(op, "dilation", g.dilation, n);
  p.output_padding = DimVector(n, 0);
  p.groups = g.groups;
  for (size_t d = 0; d < n; ++d) {
    constexpr int64_t kLargest = int64_t{1} << 31;
    WICK_CHECK(p.stride[d] > 0 && p.dilation[d] > 0 && p.padding[d] >= 0 &&
                   std::max({p.stride[d], p.dilation[d], p.padding[d]}) < kLargest,
               "{}: a stride, padding or dilation is out of range", op);
  }
  WICK_CHECK(p.groups > 0, "{}: expected a positive number of groups, got {}", op, p.groups);
  return p;
}

// What the kernel's last step leaves of the padded input in spatial dimension d. RuntimeError when
// it reaches beyond.
int64_t restOf(const char* op, const ConvolutionParams& p, size_t d, int64_t input, int64_t kernel,
               int64_t steps) {
  using Wide = __int128;
  const Wide extent = Wide(p.dilation[d]) * (kernel - 1) + 1;
  const Wide rest = Wide(input) + 2 * Wide(p.padding[d]) - Wide(steps - 1) * p.stride[d] - extent;
  WICK_CHECK(kernel > 0 && steps > 0 && input > 0 && rest >= 0 && rest < INT32_MAX,
             "{}: {} steps of a kernel of {} do not fit an input of {} in dimension {}", op, steps,
             kernel, input, d);
  return static_cast<int64_t>(rest);
}

Tensor firstOf(const Tensor& t, IntSpan sizes) {
  Tensor out = t;
  for (int64_t d = 2; d < t.dim(); ++d) out = out.narrow(d, 0, std::min(out.size(d), sizes[d]));
  WICK_CHECK(std::ranges::equal(out.sizes(), sizes), "expected a gradient of sizes {}, got {}",
             formatInts(sizes), formatInts(out.sizes()));
  return out;
}

// The gradient for the input, which has `input_size`; channels-last when `grad` is.
Tensor inputGradient(const Tensor& grad, const Tensor& weight, const DimVector& input_size,
                     const DimVector& stride, const DimVector& padding, const DimVector& dilation,
                     bool transposed, const DimVector& output_padding, int64_t groups) {
  const char* op = "conv_input_gradient";
  WICK_CHECK(weight.dim() >= 3 && weight.dim() <= 5,
             "{}: expected a weight of 3 to 5 dimensions, got {}", op, weight.describe());
  const size_t n = static_cast<size_t>(weight.dim() - 2);
  if (input_size.size() == n + 1 && grad.dim() == static_cast<int64_t>(n) + 1) {
    DimVector sizes = input_size;
    sizes.insert(0, 1);
    return inputGradient(grad.unsqueeze(0), weight, sizes, stride, padding, dilation, transposed,
                         output_padding, groups)
        .squeeze(0);
  }
  WICK_CHECK(input_size.size() == n + 2 && grad.dim() == weight.dim(),
             "{}: expected sizes and a gradient of {} dimensions, got {} and {}", op, n + 2,
             formatInts(input_size), grad.describe());
  ConvolutionParams p =
      paramsOf(op, {stride, padding, dilation, transposed, output_padding, groups}, n);
  if (grad.numel() == 0 || checkedNumel(input_size) == 0) {
    return Tensor::zeros(input_size, grad.dtype(), grad.device());
  }
  if (!transposed && grad.device().isCpu() && grad.dtype() == DType::Float &&
      weight.dtype() == DType::Float && grad.size(0) == input_size[0] &&
      grad.size(1) == weight.size(0) && input_size[1] == weight.size(1)) {
    for (size_t d = 0; d < n; ++d) {
      const auto at = static_cast<int64_t>(2 + d);
      restOf(op, p, d, input_size[2 + d], weight.size(at), grad.size(at));
    }
    using convproducts::Purpose;
    if (convproducts::pays(Purpose::InputGradient, input_size, weight.sizes(), grad.sizes(), p)) {
      return convproducts::inputGradient(op, grad, weight, input_size, p);
    }
  }
  p.transposed = p.keeps_layout = !transposed;
  if (p.transposed) {
    for (size_t d = 0; d < n; ++d) {
      const int64_t at = static_cast<int64_t>(2 + d);
      // What a stride left unread at the end of the input.
      p.output_padding[d] = restOf(op, p, d, input_size[2 + d], weight.size(at), grad.size(at));
    }
  }
  return firstOf(convolution(op, grad, weight, {}, p), input_size);
}

// Groups of the batch's rows as channels: [N, g * c, …] as [c, g * N, …].
Tensor channelsAsBatch(const Tensor& t, int64_t groups) {
  const int64_t batch = t.size(0), each = t.size(1) / groups;
  DimVector split{batch, groups, each}, order{2, 1, 0}, joined{each, groups * batch};
  for (int64_t d = 2; d < t.dim(); ++d) {
    split.push_back(t.size(d));
    order.push_back(d + 1);
    joined.push_back(t.size(d));
  }
  return t.reshape(split).permute(order).reshape(joined);
}
// [N, g * c, …] as [g * c, N, …].
Tensor swapped(const Tensor& t) {
  return t.transpose(0, 1).contiguous();
}

// By the convolution of the input with the gradient for a kernel: where the kernel's steps were
// strides, its points are apart now, and the other way round.
Tensor weightByConvolution(const char* op, const Tensor& grad, const Tensor& input,
                           IntSpan weight_size, const ConvolutionParams& p) {
  ConvolutionParams q = p;
  q.stride = p.dilation;
  q.dilation = p.stride;
  const Tensor rows =
      convolution(op, channelsAsBatch(input, p.groups), swapped(grad), {}, q).transpose(0, 1);
  return firstOf(rows, weight_size).contiguous();
}

// The gradient for the weight, which has `weight_size`.
Tensor weightGradient(const Tensor& grad_in, const Tensor& input_in, const DimVector& weight_size,
                      const DimVector& stride, const DimVector& padding, const DimVector& dilation,
                      bool transposed, const DimVector& output_padding, int64_t groups) {
  const char* op = "conv_weight_gradient";
  const int64_t rank = static_cast<int64_t>(weight_size.size());
  WICK_CHECK(rank >= 3 && rank <= 5, "{}: expected a weight of 3 to 5 dimensions, got sizes {}", op,
             formatInts(weight_size));
  const bool single = grad_in.dim() + 1 == rank && input_in.dim() + 1 == rank;
  // A transposed convolution is the other one read backwards.
  Tensor grad = transposed ? input_in : grad_in, input = transposed ? grad_in : input_in;
  if (single) {
    grad = grad.unsqueeze(0);
    input = input.unsqueeze(0);
  }
  const ConvolutionParams p =
      paramsOf(op, {stride, padding, dilation, transposed, output_padding, groups},
               static_cast<size_t>(rank - 2));
  WICK_CHECK(grad.dim() == rank && input.dim() == rank && grad.size(0) == input.size(0) &&
                 grad.size(1) == weight_size[0] && input.size(1) % groups == 0 &&
                 input.size(1) / groups == weight_size[1] && grad.size(1) % groups == 0 &&
                 grad.dtype() == input.dtype(),
             "{}: a gradient {} and an input {} do not fit a weight of sizes {}", op,
             grad_in.describe(), input_in.describe(), formatInts(weight_size));
  if (grad.numel() == 0 || input.numel() == 0 || checkedNumel(weight_size) == 0) {
    return Tensor::zeros(weight_size, grad.dtype(), grad.device());
  }
  DimVector sizes(grad.sizes());
  for (size_t d = 0; d < p.stride.size(); ++d) {
    const auto at = static_cast<int64_t>(2 + d);
    sizes[2 + d] +=
        restOf(op, p, d, input.size(at), weight_size[2 + d], grad.size(at)) / p.stride[d];
  }
  // Where a transposed convolution pads its output by its stride or more there is room for further steps.
  grad = ops::paddedAtEnd(grad, sizes);
  if (!grad.device().isCpu()) {
    if (!isFloating(grad.dtype())) return weightByConvolution(op, grad, input, weight_size, p);
    return deviceLayers(op, grad.device())
        .convolutionWeightGradient(op, grad, input, weight_size, p);
  }
  using convproducts::Purpose;
  if (grad.dtype() == DType::Float &&
      convproducts::pays(Purpose::WeightGradient, input.sizes(), weight_size, grad.sizes(), p)) {
    return convproducts::weightGradient(op, grad, input, weight_size, p);
  }
  if (grad.dtype() == DType::Float) return weightByOneDnn(op, grad, input, weight_size, p);
  if (isReducedFloat(grad.dtype())) {
    return weightByOneDnn(op, grad.to(DType::Float), input.to(DType::Float), weight_size, p)
        .to(grad.dtype());
  }
  return weightByConvolution(op, grad, input, weight_size, p);
}

// A convolution whose weight will change before it is used again, so that it is not kept in another
// layout where a product of the weight as it is takes less time than that.
Tensor convolutionInTraining(const Tensor& input, const Tensor& weight, const Tensor& bias,
                             const DimVector& stride, const DimVector& padding,
                             const DimVector& dilation, int64_t groups, int64_t spatial) {
  constexpr const char* kNames[] = {"", "conv1d", "conv2d", "conv3d"};
  WICK_CHECK(spatial >= 1 && spatial <= 3,
             "convolution_in_training: expected 1 to 3 spatial "
             "dimensions, got {}",
             spatial);
  const char* op = kNames[spatial];
  const auto n = static_cast<size_t>(spatial);
  ConvolutionParams p;
  p.stride = expandInts(op, "stride", stride, n);
  p.padding = p.padding_after = expandInts(op, "padding", padding, n);
  p.dilation = expandInts(op, "dilation", dilation, n);
  p.output_padding = DimVector(n, 0);
  p.groups = groups;
  if (weight.dim() == spatial + 2 && input.dim() == spatial + 1) {
    return convolution(op, input.unsqueeze(0), weight, bias, p).squeeze(0);
  }
  const bool floats = input.device().isCpu() && input.dtype() == DType::Float &&
                      weight.dtype() == DType::Float &&
                      (!bias.defined() || bias.dtype() == DType::Float);
  if (floats && groups == 1) {
    const DimVector size = convolutionOutputSize(op, input, weight, bias, p);
    if (convproducts::pays(convproducts::Purpose::Output, input.sizes(), weight.sizes(), size, p)) {
      const Tensor out = convproducts::output(op, input, weight, bias, size, p);
      return isChannelsLast(input) || isChannelsLast(weight) ? out : out.contiguous();
    }
  }
  return convolution(op, input, weight, bias, p);
}

// The sum over all but the channels.
Tensor biasGradient(const Tensor& grad, int64_t spatial) {
  const int64_t channel = grad.dim() - spatial - 1;
  DimVector dims;
  for (int64_t d = 0; d < grad.dim(); ++d) {
    if (d != channel) dims.push_back(d);
  }
  return ops::sumDims(grad, dims);
}

std::tuple<Tensor, Tensor, Tensor> convolutionBackward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, const std::optional<DimVector>&,
    const DimVector& stride, const DimVector& padding, const DimVector& dilation, bool transposed,
    const DimVector& output_padding, int64_t groups, const IValue& output_mask) {
  const auto& mask = output_mask.elements();
  WICK_CHECK(mask.size() == 3, "convolution_backward: expected a mask of 3 flags, got {}",
             mask.size());
  Tensor for_input, for_weight, for_bias;
  if (mask[0].toBool()) {
    for_input = inputGradient(grad, weight, DimVector(input.sizes()), stride, padding, dilation,
                              transposed, output_padding, groups);
  }
  if (mask[1].toBool()) {
    for_weight = weightGradient(grad, input, DimVector(weight.sizes()), stride, padding, dilation,
                                transposed, output_padding, groups);
  }
  if (mask[2].toBool()) for_bias = biasGradient(grad, weight.dim() - 2);
  return {for_input, for_weight, for_bias};
}

#define WICK_GEOMETRY                                                                        \
  "int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int " \
  "groups"

constexpr OperatorRecord kKernelsNnConvolutionRecords[] = {
    {"wick::conv_input_gradient(Tensor grad_output, Tensor weight, int[] input_size, " WICK_GEOMETRY
     ") -> Tensor",
     WICK_KERNEL(inputGradient), kNeutral},
    {"wick::conv_weight_gradient(Tensor grad_output, Tensor input, int[] "
     "weight_size, " WICK_GEOMETRY ") -> Tensor",
     WICK_KERNEL(weightGradient), kNeutral},
    {"wick::convolution_in_training(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] "
     "padding, int[] dilation, int groups, int spatial) -> Tensor",
     WICK_KERNEL(convolutionInTraining), kNeutral},
    {"aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? "
     "bias_sizes, " WICK_GEOMETRY ", bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(convolutionBackward), kNeutral},
};
const RegisterOperators kKernelsNnConvolutionRegistered(kKernelsNnConvolutionRecords);

}  // namespace

}  // namespace wick::autograd
