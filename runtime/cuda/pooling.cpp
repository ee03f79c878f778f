#include "runtime/cuda/pooling.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/scalar_text.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/loop_kernel.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/tables.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::cuda {

namespace {

// Numbers of elements are as narrow as they allow: division is slow. Neighbouring threads take
// neighbours in memory, each of them V channels that lie side by side; `channels` counts these.
constexpr const char* kPlaces = R"({preamble}
typedef {type} T;
typedef {wide} A;
typedef {index} I;
typedef {signed_index} S;
constexpr int V = {vector};
struct alignas(V * sizeof(T)) Values {{ T e[V]; }};
struct alignas(V > 1 ? 16 : 8) Indices {{ long long e[V]; }};
)";
constexpr const char* kPlaceOfPlanes =
    "const I w = i % width, h = i / width % height, d = i / width / height % depth;\n"
    "const I c = i / width / height / depth % channels, n = i / width / height / depth / channels;";
constexpr const char* kPlaceOfChannelsLast =
    "const I c = i % channels, w = i / channels % width, h = i / channels / width % height;\n"
    "const I d = i / channels / width / height % depth, n = i / channels / width / height / depth;";

constexpr const char* kPooling = R"(
struct Words {{
  const T* x; T* y; long long* indices; const long long* axes; long long total, channels;
  long long xs_n, xs_c, xs_d, xs_h, xs_w, ys_n, ys_c, ys_d, ys_h, ys_w;
  long long depth, height, width, in_height, in_width, step_d, step_h, step_w;
  long long divisor, count_padding;
}};
extern "C" __global__ void __launch_bounds__(256) pooling(const __grid_constant__ Words p) {{
  const I total = (I)p.total, channels = (I)p.channels;
  const I depth = (I)p.depth, height = (I)p.height, width = (I)p.width;
  const long long* const d_axis = p.axes;
  const long long* const h_axis = d_axis + 3 * p.depth;
  const long long* const w_axis = h_axis + 3 * p.height;
  for (I i = blockIdx.x * (I)256 + threadIdx.x; i < total; i += gridDim.x * (I)256) {{
    {place}
    const T* const x = p.x + n * p.xs_n + (c * (I)V) * p.xs_c;
    const long long at = n * p.ys_n + (c * (I)V) * p.ys_c + d * p.ys_d + h * p.ys_h + w * p.ys_w;
    const S left = (S)w_axis[w], right = (S)w_axis[width + w], top = (S)h_axis[h],
            bottom = (S)h_axis[height + h], last = (S)d_axis[depth + d];
    {begin}
    for (S z = (S)d_axis[d]; z < last; z += (S)p.step_d) {{
      for (S r = top; r < bottom; r += (S)p.step_h) {{
        const T* const row = x + z * p.xs_d + r * p.xs_h;
        for (S q = left; q < right; q += (S)p.step_w) {{
          const Values values = *(const Values*)(row + q * p.xs_w);
          #pragma unroll
          for (int k = 0; k < V; ++k) {{
            const A v = {load};
            {body}
          }}
          {count}
        }}
      }}
    }}
    {end}
  }}
}}
)";

// Signed sums of two numbers of elements fit, too.
constexpr int64_t kNarrow = int64_t{1} << 30;

// How many channels a thread takes: as many as 16 bytes hold, where they lie side by side in each of
// the tensors and nothing begins in the midst of them; otherwise one.
int64_t channelsAtOnce(DType dtype, std::initializer_list<const Tensor*> tensors) {
  const int64_t most = 16 / static_cast<int64_t>(itemSize(dtype));
  for (const Tensor* t : tensors) {
    if (!t->defined()) continue;
    if (t->size(1) % most != 0 || t->stride(1) != 1) return 1;
    if (reinterpret_cast<uintptr_t>(t->rawData()) % 16 != 0) return 1;
    for (int64_t d = 0; d < t->dim(); ++d) {
      if (d != 1 && t->size(d) > 1 && t->stride(d) % most != 0) return 1;
    }
  }
  return std::max<int64_t>(most, 1);
}

std::string placesText(DType dtype, bool narrow, int64_t vector) {
  return textOf(kPlaces, dtype, fmt::arg("index", narrow ? "unsigned" : "unsigned long long"),
                fmt::arg("signed_index", narrow ? "int" : "long long"), fmt::arg("vector", vector));
}

void setStrides(const Tensor& t, int64_t (&strides)[5]) {
  for (int64_t d = 0; d < t.dim(); ++d) {
    strides[static_cast<size_t>(d < 2 ? d : 5 - t.dim() + d)] = t.stride(d);
  }
}

}  // namespace

// The windows' bounds and spans, axis by axis.
Tensor poolingTable(const pooling::Axes& axes) {
  int64_t total = 0;
  for (const pooling::Axis& axis : axes) total += 3 * axis.size();
  Tensor table = Tensor::empty(DimVector{total}, DType::Long);
  int64_t* to = table.data<int64_t>();
  for (const pooling::Axis& axis : axes) {
    to = std::copy(axis.begin.begin(), axis.begin.end(), to);
    to = std::copy(axis.end.begin(), axis.end.end(), to);
    to = std::copy(axis.span.begin(), axis.span.end(), to);
  }
  return table;
}

Tensor emptyPooled(const Tensor& x, const pooling::Axes& axes, DType dtype) {
  const int64_t n = x.dim() - 2;  // spatial dimensions
  DimVector sizes{x.size(0), x.size(1)};
  for (int64_t d = 0; d < n; ++d) sizes.push_back(axes[static_cast<size_t>(3 - n + d)].size());
  return Tensor::empty(sizes, dtype, x.device(),
                       n >= 2 ? x.suggestMemoryFormat() : MemoryFormat::Contiguous);
}

TextKernel poolingKernel(const Tensor& x, const Tensor& values, const Tensor& indices,
                         const Tensor& table, const pooling::Axes& axes, const PoolingCall& call) {
  const MemoryFormat format = x.dim() >= 4 ? x.suggestMemoryFormat() : MemoryFormat::Contiguous;
  const bool want_indices = indices.defined();
  const int64_t vector = channelsAtOnce(x.dtype(), {&x, &values, &indices});
  const int64_t total = values.numel() / vector;
  int64_t x_strides[5]{}, y_strides[5]{};
  setStrides(x, x_strides);
  setStrides(values, y_strides);
  const DType wide = wideOf(x.dtype());
  std::string begin, body, count, end;
  if (call.largest) {
    begin =
        "A best[V]; S place[V];\n#pragma unroll\n"
        "for (int k = 0; k < V; ++k) { best[k] = (A)0; place[k] = -1; }";
    body =
        "if (place[k] < 0 || v > best[k] || v != v) { best[k] = v; place[k] = (z * "
        "(S)p.in_height + r) * (S)p.in_width + q; }";
    end = fmt::format(
        "Values out; Indices places;\n#pragma unroll\n"
        "for (int k = 0; k < V; ++k) {{ out.e[k] = {}; places.e[k] = place[k]; }}\n"
        "*(Values*)(p.y + at) = out;\n{}",
        narrowedText("best[k]", x.dtype()),
        want_indices ? "*(Indices*)(p.indices + at) = places;" : "");
  } else {
    begin =
        "A sum[V]; long long count = 0;\n#pragma unroll\n"
        "for (int k = 0; k < V; ++k) sum[k] = (A)0;";
    body = "sum[k] += v;";
    count = "++count;";
    end = fmt::format(
        "const long long span = d_axis[2 * p.depth + d] * h_axis[2 * p.height + h] * w_axis[2 * "
        "p.width + w];\nconst long long by = p.divisor != 0 ? p.divisor : p.count_padding != 0 ? "
        "span : count;\nValues out;\n#pragma unroll\n"
        "for (int k = 0; k < V; ++k) out.e[k] = {};\n*(Values*)(p.y + at) = out;",
        narrowedText("(sum[k] / (A)by)", x.dtype()));
  }
  const bool narrow = std::max(x.numel(), values.numel()) < kNarrow;
  std::string text =
      placesText(x.dtype(), narrow, vector) +
      fmt::format(fmt::runtime(kPooling),
                  fmt::arg("place", format == MemoryFormat::Contiguous ? kPlaceOfPlanes
                                                                       : kPlaceOfChannelsLast),
                  fmt::arg("load", codegen::cudaConvert("values.e[k]", x.dtype(), wide)),
                  fmt::arg("begin", begin), fmt::arg("body", body), fmt::arg("count", count),
                  fmt::arg("end", end));
  std::vector<int64_t> numbers = {total, x.size(1) / vector};
  numbers.insert(numbers.end(), std::begin(x_strides), std::end(x_strides));
  numbers.insert(numbers.end(), std::begin(y_strides), std::end(y_strides));
  for (const int64_t number :
       {axes[0].size(), axes[1].size(), axes[2].size(), axes[1].input, axes[2].input, axes[0].step,
        axes[1].step, axes[2].step, call.divisor, int64_t{call.count_padding}}) {
    numbers.push_back(number);
  }
  return {std::move(text),
          "pooling",
          total,
          {{x}, {values, true}, {indices, true}, {table}},
          std::move(numbers)};
}

namespace {

struct Pooled {
  Tensor values;
  Tensor indices;
};

Pooled pool(const Tensor& x, const pooling::Axes& axes, bool want_indices,
            const PoolingCall& call) {
  Pooled result;
  result.values = emptyPooled(x, axes, x.dtype());
  if (want_indices) result.indices = emptyPooled(x, axes, DType::Long);
  if (result.values.numel() == 0) return result;
  launchText(enter(x.device()), poolingKernel(x, result.values, result.indices,
                                              tableOn(x.device(), poolingTable(axes)), axes, call));
  return result;
}

// ---- where the largest elements were ----

// Each element of an image asks the windows that it lies in, in their order: nobody needs to wait,
// and sums are always the same. The windows stand in the text, so that nothing is divided.
constexpr const char* kSpread = R"(
struct Words {{
  const T* g; const long long* indices; T* y; long long total, channels;
  long long gs_n, gs_c, gs_d, gs_h, gs_w, is_n, is_c, is_d, is_h, is_w, ys_n, ys_c, ys_d, ys_h, ys_w;
  long long depth, height, width, windows_d, windows_h, windows_w;
}};
__device__ __forceinline__ S firstWindow(S at, S pad, S span, S stride) {{
  const S from = at + pad - span;
  return from < 0 ? 0 : from / stride + 1;
}}
__device__ __forceinline__ S endOfWindows(S at, S pad, S stride, long long most) {{
  const S last = (at + pad) / stride + 1;
  return last < (S)most ? last : (S)most;
}}
extern "C" __global__ void __launch_bounds__(256) max_pool_gradient(const __grid_constant__ Words p) {{
  const I total = (I)p.total, channels = (I)p.channels;
  const I depth = (I)p.depth, height = (I)p.height, width = (I)p.width;
  for (I i = blockIdx.x * (I)256 + threadIdx.x; i < total; i += gridDim.x * (I)256) {{
    {place}
    const long long place = ((long long)d * p.height + h) * p.width + w;
    const S top = firstWindow((S)h, {pad_h}, {span_h}, {stride_h});
    const S bottom = endOfWindows((S)h, {pad_h}, {stride_h}, p.windows_h);
    const S left = firstWindow((S)w, {pad_w}, {span_w}, {stride_w});
    const S right = endOfWindows((S)w, {pad_w}, {stride_w}, p.windows_w);
    const S last = endOfWindows((S)d, {pad_d}, {stride_d}, p.windows_d);
    const T* const g = p.g + n * p.gs_n + (c * (I)V) * p.gs_c;
    const long long* const indices = p.indices + n * p.is_n + (c * (I)V) * p.is_c;
    A sum[V];
    #pragma unroll
    for (int k = 0; k < V; ++k) sum[k] = (A)0;
    for (S z = firstWindow((S)d, {pad_d}, {span_d}, {stride_d}); z < last; ++z) {{
      for (S r = top; r < bottom; ++r) {{
        for (S q = left; q < right; ++q) {{
          const Indices places = *(const Indices*)(indices + z * p.is_d + r * p.is_h + q * p.is_w);
          bool any = false;
          #pragma unroll
          for (int k = 0; k < V; ++k) any |= places.e[k] == place;
          if (!any) continue;
          const Values values = *(const Values*)(g + z * p.gs_d + r * p.gs_h + q * p.gs_w);
          #pragma unroll
          for (int k = 0; k < V; ++k) {{
            if (places.e[k] != place) continue;
            sum[k] += {load};
            {round}
          }}
        }}
      }}
    }}
    Values out;
    #pragma unroll
    for (int k = 0; k < V; ++k) out.e[k] = {result};
    *(Values*)(p.y + n * p.ys_n + (c * (I)V) * p.ys_c + d * p.ys_d + h * p.ys_h + w * p.ys_w) = out;
  }}
}}
)";

struct SpreadWords {
  const void* g;
  const void* indices;
  void* y;
  int64_t total, channels;
  int64_t g_strides[5], index_strides[5], y_strides[5];
  int64_t sizes[3], windows[3];
};

// As images [N, C, spatial…].
Tensor asImages(const Tensor& t, int64_t n) {
  if (t.dim() == n + 2) return t;
  DimVector sizes{1, t.dim() == n ? 1 : t.size(0)};
  for (int64_t d = t.dim() - n; d < t.dim(); ++d) sizes.push_back(t.size(d));
  return t.reshape(sizes);
}

Tensor maxPoolGradient(const Tensor& values, const Tensor& indices, const DimVector& sizes,
                       int64_t n, const DimVector& kernels, const DimVector& strides,
                       const DimVector& paddings, const DimVector& dilations) {
  const char* op = "max_pool_gradient";
  WICK_CHECK(n >= 1 && n <= 3 && values.dim() >= n && values.dim() <= n + 2 &&
                 static_cast<int64_t>(sizes.size()) == values.dim(),
             "{}: a gradient {} does not fit sizes {}", op, values.describe(), formatInts(sizes));
  WICK_CHECK(indices.dtype() == DType::Long && std::ranges::equal(indices.sizes(), values.sizes()),
             "{}: expected an int64 index for each value, got {} and {}", op, indices.describe(),
             values.describe());
  for (size_t d = 0; d + static_cast<size_t>(n) < sizes.size(); ++d) {
    WICK_CHECK(sizes[d] == values.size(static_cast<int64_t>(d)),
               "{}: a gradient {} does not fit sizes {}", op, values.describe(), formatInts(sizes));
  }
  const auto count = static_cast<size_t>(n);
  const DimVector kernel = expandInts(op, "kernel_size", kernels, count);
  const DimVector stride = strides.empty() ? kernel : expandInts(op, "stride", strides, count);
  const DimVector padding = expandInts(op, "padding", paddings, count);
  const DimVector dilation = expandInts(op, "dilation", dilations, count);
  const Tensor g = asImages(values, n), at = asImages(indices, n);
  const bool last =
      n >= 2 && values.dim() == n + 2 && indices.suggestMemoryFormat() != MemoryFormat::Contiguous;
  const Tensor out = Tensor::empty(sizes, values.dtype(), values.device(),
                                   last ? indices.suggestMemoryFormat() : MemoryFormat::Contiguous);
  if (out.numel() == 0) return out;
  const Tensor y = asImages(out, n);
  SpreadWords words{};
  words.g = g.rawData();
  words.indices = at.rawData();
  words.y = y.rawData();
  const int64_t vector = channelsAtOnce(values.dtype(), {&g, &at, &y});
  words.total = y.numel() / vector;
  words.channels = y.size(1) / vector;
  setStrides(g, words.g_strides);
  setStrides(at, words.index_strides);
  setStrides(y, words.y_strides);
  constexpr int64_t kMostOfWindow = int64_t{1} << 26;  // as for the windows themselves
  bool narrow = std::max(y.numel(), g.numel()) < kNarrow;
  struct {
    int64_t span = 1, stride = 1, padding = 0;
  } windows[3];
  for (size_t d = 0; d < 3; ++d) {
    const bool given = d + count >= 3;
    const size_t from = given ? d + count - 3 : 0;
    words.sizes[d] = given ? y.size(static_cast<int64_t>(2 + from)) : 1;
    words.windows[d] = given ? g.size(static_cast<int64_t>(2 + from)) : 1;
    if (!given) continue;
    const int64_t k = kernel[from], s = stride[from], p = padding[from], l = dilation[from];
    WICK_CHECK(std::min({k, s, l}) > 0 && std::max({k, s, l}) < kMostOfWindow && p >= 0 && p <= k,
               "{}: a size of the windows is out of range", op);
    windows[d] = {l * (k - 1) + 1, s, p};
    narrow = narrow && windows[d].span < kNarrow;
  }
  const DType dtype = values.dtype(), wide = wideOf(dtype);
  const bool rounds = wide != dtype;
  // As the CPU adds: each sum of reduced floats is rounded.
  const std::string rounded = codegen::cudaConvert(narrowedText("sum[k]", dtype), dtype, wide);
  const std::string text =
      placesText(dtype, narrow, vector) +
      fmt::format(fmt::runtime(kSpread),
                  fmt::arg("place", last ? kPlaceOfChannelsLast : kPlaceOfPlanes),
                  fmt::arg("load", codegen::cudaConvert("values.e[k]", dtype, wide)),
                  fmt::arg("span_d", windows[0].span), fmt::arg("stride_d", windows[0].stride),
                  fmt::arg("pad_d", windows[0].padding), fmt::arg("span_h", windows[1].span),
                  fmt::arg("stride_h", windows[1].stride), fmt::arg("pad_h", windows[1].padding),
                  fmt::arg("span_w", windows[2].span), fmt::arg("stride_w", windows[2].stride),
                  fmt::arg("pad_w", windows[2].padding),
                  fmt::arg("round", rounds ? "sum[k] = " + rounded + ";" : ""),
                  fmt::arg("result", narrowedText("sum[k]", dtype)));
  CudaDevice& device = enter(values.device());
  launch(functionOf(device, text, "max_pool_gradient"), gridFor(words.total, device), kTextBlock,
         &words, "max_pool_gradient");
  return out;
}

const DeviceKernel kPoolingKernels[] = {
    {"wick::max_pool_gradient", WICK_KERNEL(maxPoolGradient)},
};
const RegisterDeviceKernels kPoolingRegistered(DeviceType::CUDA, kPoolingKernels);

}  // namespace

pooling::MaxResult maxPool(const Tensor& x, const pooling::Axes& axes, bool want_indices) {
  Pooled pooled = pool(x, axes, want_indices, {});
  return {pooled.values, pooled.indices};
}

bool averagesWhole(const Tensor& x, const pooling::Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor) {
  const bool whole = std::ranges::all_of(axes, [&](const pooling::Axis& axis) {
    return axis.size() == 1 && axis.step == 1 && axis.begin[0] == 0 && axis.end[0] == axis.input &&
           (!count_padding || axis.span[0] == axis.input);
  });
  return whole && !divisor && isFloating(x.dtype()) && x.dim() > 2 && x.numel() > 0;
}

Tensor averagePool(const Tensor& x, const pooling::Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor) {
  if (averagesWhole(x, axes, count_padding, divisor)) {
    DimVector dims;
    for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
    return ops::meanDims(x, dims, true);
  }
  return pool(x, axes, false, {false, divisor.value_or(0), count_padding}).values;
}

}  // namespace wick::cuda
