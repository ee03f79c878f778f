#include "runtime/cuda/plain_convolution.h"

#include <fmt/format.h>

#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"

namespace wick::cuda {

namespace {

constexpr const char* kText = R"(
typedef {type} T;
struct Words {{
  const T* x; const T* w; T* y; long long total, channels, group_in, group_out, transposed;
  long long out[3], in[3], kernel[3], stride[3], padding[3], dilation[3];
}};
extern "C" __global__ void __launch_bounds__(256) convolution(const __grid_constant__ Words p) {{
  const long long pixels = p.in[0] * p.in[1] * p.in[2];
  const long long taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    long long rest = i, at[3];
    for (int d = 2; d >= 0; --d) {{
      at[d] = rest % p.out[d];
      rest /= p.out[d];
    }}
    const long long channel = rest % p.channels, sample = rest / p.channels;
    const long long group = channel / p.group_out, groups = p.channels / p.group_out;
    unsigned long long sum = 0;
    for (long long tap = 0; tap < taps; ++tap) {{
      const long long k[3] = {{tap / (p.kernel[1] * p.kernel[2]), tap / p.kernel[2] % p.kernel[1],
                              tap % p.kernel[2]}};
      long long place = 0;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {{
        long long c;
        if (p.transposed) {{
          c = at[d] + p.padding[d] - k[d] * p.dilation[d];
          inside = inside && c >= 0 && c % p.stride[d] == 0;
          c /= p.stride[d];
        }} else {{
          c = at[d] * p.stride[d] - p.padding[d] + k[d] * p.dilation[d];
        }}
        inside = inside && c >= 0 && c < p.in[d];
        place = place * p.in[d] + c;
      }}
      if (!inside) continue;
      const T* x = p.x + (sample * groups + group) * p.group_in * pixels + place;
      for (long long c = 0; c < p.group_in; ++c) {{
        const long long w = p.transposed
                                ? ((group * p.group_in + c) * p.group_out + channel % p.group_out)
                                : channel * p.group_in + c;
        sum += (unsigned long long)(long long)x[c * pixels] *
               (unsigned long long)(long long)p.w[w * taps + tap];
      }}
    }}
    p.y[i] = (T)sum;
  }}
}}
)";

}  // namespace

Tensor convolveIntegers(const char*, const Tensor& given_input, const Tensor& given_weight,
                        const ConvolutionParams& params, IntSpan output_size) {
  const Tensor input = given_input.contiguous(), weight = given_weight.contiguous();
  const Tensor out = Tensor::empty(output_size, input.dtype(), input.device());
  if (out.numel() == 0) return out;
  const int64_t channels = output_size[1];
  const int64_t group_in = input.size(1) / params.groups, group_out = channels / params.groups;
  std::vector<int64_t> words = {wordOf(input), wordOf(weight), wordOf(out), out.numel(),
                                channels,      group_in,       group_out,   params.transposed};
  const auto n = static_cast<int64_t>(params.stride.size());
  const auto add = [&](int64_t missing, auto&& number) {
    for (int64_t d = 0; d < 3; ++d) words.push_back(d < 3 - n ? missing : number(d - (3 - n)));
  };
  const auto of = [](const DimVector& v) { return [&](int64_t d) { return v[size_t(d)]; }; };
  add(1, [&](int64_t d) { return out.size(2 + d); });
  add(1, [&](int64_t d) { return input.size(2 + d); });
  add(1, [&](int64_t d) { return weight.size(2 + d); });
  add(1, of(params.stride));
  add(0, of(params.padding));
  add(1, of(params.dilation));
  const std::string text = textOf(kText, input.dtype());
  launchPoints(input.device(), text, "convolution", out.numel(), words);
  return out;
}

}  // namespace wick::cuda
