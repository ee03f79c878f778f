// The library wants the channels innermost and turns row-major images there and back, which takes
// longer than the few products of a channel. Here a row of results is the sum of rows of the input
// that are moved by an element each and multiplied by a number.
#include "runtime/kernels/depthwise.h"

#include <algorithm>

#include "core/budget.h"
#include "core/parallel.h"

namespace wick::depthwise {

namespace {

// Neighbouring results by kTaps neighbouring factors.
template <int kTaps>
void addTaps(float* __restrict out, const float* __restrict in, const float* factors, int64_t n) {
  float factor[kTaps];
  std::copy_n(factors, kTaps, factor);
  for (int64_t i = 0; i < n; ++i) {
    float sum = out[i];
    for (int k = 0; k < kTaps; ++k) sum += factor[k] * in[i + k];
    out[i] = sum;
  }
}

// One row of the filter over one row of the input, which may reach over its ends.
struct Line {
  int64_t in, out, taps, dilation, padding;

  void add(float* to, const float* from, const float* factors) const {
    // Of these results all taps lie inside.
    const int64_t begin = std::min(out, padding);
    const int64_t end = std::clamp(in - taps + 1 + padding, begin, out);
    if (dilation != 1 || !addInside(to + begin, from + (begin - padding), factors, end - begin)) {
      return addEdge(to, from, factors, 0, out);
    }
    addEdge(to, from, factors, 0, begin);
    addEdge(to, from, factors, end, out);
  }

 private:
  // False when there is no loop for so many taps.
  bool addInside(float* to, const float* from, const float* factors, int64_t n) const {
    if (n == 0) return true;
    switch (taps) {
      case 1:
        return addTaps<1>(to, from, factors, n), true;
      case 3:
        return addTaps<3>(to, from, factors, n), true;
      case 5:
        return addTaps<5>(to, from, factors, n), true;
      case 7:
        return addTaps<7>(to, from, factors, n), true;
      default:
        return false;
    }
  }

  // Results [first, last). Many are computed tap by tap, few one by one.
  void addEdge(float* to, const float* from, const float* factors, int64_t first,
               int64_t last) const {
    constexpr int64_t kFew = 8;
    if (last - first <= kFew) {
      for (int64_t i = first; i < last; ++i) {
        for (int64_t k = 0; k < taps; ++k) {
          const int64_t at = i + k * dilation - padding;
          if (at >= 0 && at < in) to[i] += factors[k] * from[at];
        }
      }
      return;
    }
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t shift = k * dilation - padding;
      const int64_t begin = std::max(first, -shift), end = std::min(last, in - shift);
      if (begin < end) addTaps<1>(to + begin, from + (begin + shift), factors + k, end - begin);
    }
  }
};

// As two spatial dimensions; the first may be missing.
int64_t rowsOf(IntSpan sizes) {
  return sizes.size() == 4 ? sizes[2] : 1;
}

}  // namespace

bool takes(const Tensor& input, const Tensor& weight, const ConvolutionParams& p,
           IntSpan output_size) {
  // Below that the library is as fast.
  constexpr int64_t kShortestRow = 96;
  const size_t n = p.stride.size();
  return input.dtype() == DType::Float && input.isContiguous() && !p.transposed &&
         (n == 1 || n == 2) && p.groups > 1 && p.groups == weight.size(0) && weight.size(1) == 1 &&
         p.stride[n - 1] == 1 && output_size.back() >= kShortestRow;
}

Tensor convolvePlanes(const Tensor& input, const Tensor& weight_in, const ConvolutionParams& p,
                      IntSpan output_size) {
  const Tensor weight = weight_in.contiguous();
  const Tensor out = Tensor::zeros(output_size, DType::Float);
  const bool two = p.stride.size() == 2;
  const Line line{input.size(-1), out.size(-1), weight.size(-1), p.dilation.back(),
                  p.padding.back()};
  const int64_t in_rows = rowsOf(input.sizes()), out_rows = rowsOf(output_size);
  const int64_t taps = rowsOf(weight.sizes());
  const int64_t stride = two ? p.stride[0] : 1, dilation = two ? p.dilation[0] : 1;
  const int64_t padding = two ? p.padding[0] : 0;
  const int64_t work = std::max<int64_t>(1, taps * line.taps * line.out / 8);
  parallelFor(out.size(0) * out.size(1) * out_rows, std::max<int64_t>(1, kGrainSize / 4 / work),
              [&](int64_t begin, int64_t end) {
                Pace pace;
                for (int64_t row = begin; row < end; ++row) {
                  const int64_t plane = row / out_rows, r = row % out_rows;
                  const float* image = input.data<float>() + plane * in_rows * line.in;
                  const float* factors =
                      weight.data<float>() + plane % out.size(1) * taps * line.taps;
                  float* to = out.data<float>() + row * line.out;
                  pace.step(work);
                  for (int64_t k = 0; k < taps; ++k) {
                    const int64_t at = r * stride - padding + k * dilation;
                    if (at < 0 || at >= in_rows) continue;
                    line.add(to, image + at * line.in, factors + k * line.taps);
                  }
                }
              });
  return out;
}

}  // namespace wick::depthwise
