#include "runtime/cuda/depthwise.h"

#include <fmt/format.h>

#include "codegen/cuda/scalar_text.h"
#include "runtime/cuda/number_text.h"

namespace wick::cuda {

namespace {

// I is as narrow as the numbers of elements allow: division is slow.
constexpr const char* kDepthwiseText = R"({preamble}
typedef {type} T;
typedef {wide} A;
typedef {index} I;
struct Words {{
  const T* x; const T* w; const T* bias; T* y; long long total, channels, height, width;
  long long in_height, in_width, stride_h, stride_w, pad_h, pad_w, step_h, step_w, relu;
}};
extern "C" __global__ void __launch_bounds__(256) depthwise(const __grid_constant__ Words p) {{
  const I total = (I)p.total, channels = (I)p.channels, height = (I)p.height, width = (I)p.width;
  for (I i = blockIdx.x * (I)256 + threadIdx.x; i < total; i += gridDim.x * (I)256) {{
    {place}
    const T* const x = p.x + {image};
    const T* const w = p.w + c * {taps};
    const long long top = (long long)h * p.stride_h - p.pad_h;
    const long long left = (long long)v * p.stride_w - p.pad_w;
    A sum = p.bias ? {bias} : (A)0;
    #pragma unroll
    for (int r = 0; r < {rows}; ++r) {{
      const long long at_h = top + r * p.step_h;
      if (at_h < 0 || at_h >= p.in_height) continue;
      #pragma unroll
      for (int s = 0; s < {columns}; ++s) {{
        const long long at_w = left + s * p.step_w;
        if (at_w < 0 || at_w >= p.in_width) continue;
        sum += {element} * {weight};
      }}
    }}
    if (p.relu && sum < (A)0) sum = (A)0;
    p.y[i] = {result};
  }}
}}
)";

// Of the unrolled loops over a kernel.
constexpr int64_t kMostTaps = 121;

}  // namespace

bool isDepthwise(const Tensor& input, const Tensor& weight, const ConvolutionParams& params) {
  return input.dim() == 4 && isFloating(input.dtype()) && !params.transposed && params.groups > 1 &&
         params.groups == input.size(1) && weight.size(0) == input.size(1) && weight.size(1) == 1 &&
         weight.size(2) * weight.size(3) <= kMostTaps && weight.numel() > 0 && input.numel() > 0;
}

TextKernel depthwiseKernel(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Tensor& out, const ConvolutionParams& params, bool channels_last,
                           bool relu) {
  const DType dtype = input.dtype();
  const DType wide = wideOf(dtype);
  constexpr int64_t kNarrow = int64_t{1} << 30;
  const bool narrow = std::max(out.numel(), input.numel()) < kNarrow;
  const auto read = [&](const char* element) { return codegen::cudaConvert(element, dtype, wide); };
  std::string text = textOf(
      kDepthwiseText, dtype, fmt::arg("index", narrow ? "unsigned" : "unsigned long long"),
      fmt::arg("place", channels_last ? "const I c = i % channels, v = i / channels % width, h = i "
                                        "/ channels / width % height, n = i / channels / width / "
                                        "height;"
                                      : "const I v = i % width, h = i / width % height, c = i / "
                                        "width / height % channels, n = i / width / height / "
                                        "channels;"),
      fmt::arg("image", channels_last
                            ? "(long long)n * p.in_height * p.in_width * p.channels + c"
                            : "((long long)n * p.channels + c) * p.in_height * p.in_width"),
      fmt::arg("element", read(channels_last ? "x[(at_h * p.in_width + at_w) * p.channels]"
                                             : "x[at_h * p.in_width + at_w]")),
      fmt::arg("weight", read(fmt::format("w[r * {} + s]", weight.size(3)).c_str())),
      fmt::arg("bias", read("p.bias[c]")), fmt::arg("taps", weight.size(2) * weight.size(3)),
      fmt::arg("rows", weight.size(2)), fmt::arg("columns", weight.size(3)),
      fmt::arg("result", narrowedText("sum", dtype)));
  return {std::move(text),
          "depthwise",
          out.numel(),
          {{input}, {weight}, {bias}, {out, true}},
          {out.numel(), out.size(1), out.size(2), out.size(3), input.size(2), input.size(3),
           params.stride[0], params.stride[1], params.padding[0], params.padding[1],
           params.dilation[0], params.dilation[1], relu}};
}

Tensor depthwiseConvolution(const Tensor& given_input, const Tensor& given_weight,
                            const Tensor& given_bias, const ConvolutionParams& params,
                            IntSpan output_size, bool channels_last, bool relu) {
  const MemoryFormat format = channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
  const Tensor input = given_input.contiguous(format), weight = given_weight.contiguous();
  const Tensor bias = given_bias.defined() ? given_bias.contiguous() : given_bias;
  const Tensor out = Tensor::empty(output_size, input.dtype(), input.device(), format);
  if (out.numel() == 0) return out;
  launchText(enter(input.device()),
             depthwiseKernel(input, weight, bias, out, params, channels_last, relu));
  return out;
}

}  // namespace wick::cuda
