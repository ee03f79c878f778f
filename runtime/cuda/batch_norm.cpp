// Each block of threads reads a part of the rows of a channel (or of 32 channels that lie side by
// side) and leaves what it found; a few threads a channel join the parts.
#include "runtime/cuda/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/cuda/scalar_text.h"
#include "core/error.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"

namespace wick::cuda {

namespace {

constexpr const char* kCommon = R"({preamble}
typedef {type} T;
typedef {wide} A;
typedef {index} I;
#define CHANNELS {channels_of_block}
#define LANES (256 / CHANNELS)
#define EACH 8
// What rows r of a channel are: pixel r % pixels of sample r / pixels.
__device__ __forceinline__ long long placeOf(I r, I c, I channels, I pixels) {{
  {place}
}}
)";
constexpr const char* kPlaceOfPlanes =
    "const I n = r / pixels; return ((long long)n * channels + c) * pixels + (r - n * pixels);";
constexpr const char* kPlaceOfChannelsLast = "return (long long)r * channels + c;";

// Of every few elements first their own mean: what is squared stays small.
constexpr const char* kJoined = R"(
struct Moments {{ A n, mean, square; }};
__device__ __forceinline__ Moments joined(Moments a, Moments b) {{
  const A n = a.n + b.n;
  if (n == (A)0) return a;
  const A share = b.n / n, delta = b.mean - a.mean;
  return {{n, a.mean + delta * share, a.square + b.square + delta * delta * a.n * share}};
}}
)";
constexpr const char* kMoments = R"(
struct Words {{ const T* x; A* means; A* squares; long long rows, channels, pixels, part_rows; }};
extern "C" __global__ void __launch_bounds__(256) channel_moments(const __grid_constant__ Words p) {{
  __shared__ Moments shared[256];
  const I channels = (I)p.channels, pixels = (I)p.pixels, groups = (channels + CHANNELS - 1) / CHANNELS;
  const I part = blockIdx.x / groups, c = blockIdx.x % groups * CHANNELS + threadIdx.x % CHANNELS;
  const I begin = part * (I)p.part_rows, rows = (I)p.rows;
  const I end = rows - begin < (I)p.part_rows ? rows : begin + (I)p.part_rows;
  Moments all = {{0, 0, 0}};
  if (c < channels) {{
    for (I r = begin + threadIdx.x / CHANNELS; r < end; r += LANES * EACH) {{
      A v[EACH], sum = 0, square = 0;
      int n = 0;
      #pragma unroll
      for (int k = 0; k < EACH; ++k) {{
        const bool exists = r + k * LANES < end;
        const T e = p.x[placeOf(exists ? r + k * LANES : r, c, channels, pixels)];
        v[k] = {load};
        if (exists) {{ sum += v[k]; ++n; }}
      }}
      const A mean = sum / (A)n;
      #pragma unroll
      for (int k = 0; k < EACH; ++k) {{
        if (k < n) square += (v[k] - mean) * (v[k] - mean);
      }}
      all = joined(all, {{(A)n, mean, square}});
    }}
  }}
  shared[threadIdx.x] = all;
  __syncthreads();
  for (int half = 128; half >= CHANNELS; half /= 2) {{
    if (threadIdx.x < half) shared[threadIdx.x] = joined(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }}
  if (threadIdx.x < CHANNELS && c < channels) {{
    p.means[part * p.channels + c] = shared[threadIdx.x].mean;
    p.squares[part * p.channels + c] = shared[threadIdx.x].square;
  }}
}}
)";

// Behind both: 32 channels a block, whose parts eight threads share.
#define WICK_PARTS                                                                         \
  "  const long long c = blockIdx.x * 32ll + threadIdx.x % 32, lane = threadIdx.x / 32;\n" \
  "  const bool exists = c < p.channels;\n"

constexpr const char* kStatistics = R"(
struct Words {{
  const A* means; const A* squares; A* mean; A* rstd; A* kept_mean; A* kept_variance;
  long long rows, channels, part_rows, parts; double eps, momentum;
}};
extern "C" __global__ void __launch_bounds__(256) channel_statistics(
    const __grid_constant__ Words p) {{
  __shared__ Moments shared[256];
)" WICK_PARTS R"(
  Moments all = {{0, 0, 0}};
  for (long long first = lane; exists && first < p.parts; first += 8 * EACH) {{
    A means[EACH], squares[EACH];
    #pragma unroll
    for (int k = 0; k < EACH; ++k) {{
      const long long part = first + 8 * k < p.parts ? first + 8 * k : first;
      means[k] = p.means[part * p.channels + c];
      squares[k] = p.squares[part * p.channels + c];
    }}
    #pragma unroll
    for (int k = 0; k < EACH; ++k) {{
      const long long part = first + 8 * k, rest = p.rows - part * p.part_rows;
      if (part >= p.parts) break;
      all = joined(all, {{(A)(rest < p.part_rows ? rest : p.part_rows), means[k], squares[k]}});
    }}
  }}
  shared[threadIdx.x] = all;
  __syncthreads();
  for (int half = 128; half >= 32; half /= 2) {{
    if (threadIdx.x < half) {{
      shared[threadIdx.x] = joined(shared[threadIdx.x], shared[threadIdx.x + half]);
    }}
    __syncthreads();
  }}
  if (lane > 0 || !exists) return;
  all = shared[threadIdx.x];
  const A keep = (A)(1 - p.momentum), momentum = (A)p.momentum;
  p.mean[c] = all.mean;
  p.rstd[c] = (A)1 / sqrt(all.square / (A)p.rows + (A)p.eps);
  if (p.kept_mean) p.kept_mean[c] = p.kept_mean[c] * keep + all.mean * momentum;
  if (p.kept_variance) {{
    const A seen = all.square / (A)(p.rows > 1 ? p.rows - 1 : 1);
    p.kept_variance[c] = p.kept_variance[c] * keep + seen * momentum;
  }}
}}
)";

constexpr const char* kSums = R"(
struct Words {{
  const T* g; const T* x; const A* mean; double* grads; double* products;
  long long rows, channels, pixels, part_rows;
}};
extern "C" __global__ void __launch_bounds__(256) channel_sums(const __grid_constant__ Words p) {{
  __shared__ double grads[256], products[256];
  const I channels = (I)p.channels, pixels = (I)p.pixels, groups = (channels + CHANNELS - 1) / CHANNELS;
  const I part = blockIdx.x / groups, c = blockIdx.x % groups * CHANNELS + threadIdx.x % CHANNELS;
  const I begin = part * (I)p.part_rows, rows = (I)p.rows;
  const I end = rows - begin < (I)p.part_rows ? rows : begin + (I)p.part_rows;
  double all_grads = 0, all_products = 0;
  if (c < channels) {{
    const A mean = p.mean[c];
    for (I r = begin + threadIdx.x / CHANNELS; r < end; r += LANES * EACH) {{
      A grad = 0, product = 0;
      #pragma unroll
      for (int k = 0; k < EACH; ++k) {{
        const bool exists = r + k * LANES < end;
        const long long at = placeOf(exists ? r + k * LANES : r, c, channels, pixels);
        T e = p.g[at];
        const A g = exists ? {load} : (A)0;
        e = p.x[at];
        grad += g;
        if (exists) product += g * ({load} - mean);
      }}
      all_grads += grad;
      all_products += product;
    }}
  }}
  grads[threadIdx.x] = all_grads;
  products[threadIdx.x] = all_products;
  __syncthreads();
  for (int half = 128; half >= CHANNELS; half /= 2) {{
    if (threadIdx.x < half) {{
      grads[threadIdx.x] += grads[threadIdx.x + half];
      products[threadIdx.x] += products[threadIdx.x + half];
    }}
    __syncthreads();
  }}
  if (threadIdx.x < CHANNELS && c < channels) {{
    p.grads[part * p.channels + c] = grads[threadIdx.x];
    p.products[part * p.channels + c] = products[threadIdx.x];
  }}
}}
)";

// With hat = (x - mean) * rstd:
//   images: w * rstd * (g - sum(g) / count - hat * sum(g * hat) / count)
//   weight: sum(g * hat)      bias: sum(g)
constexpr const char* kGradients = R"(
struct Words {{
  const double* grads; const double* products; const A* rstd; const A* weight;
  A* for_weight; A* for_bias; A* scale; A* slope; A* shift; long long rows, channels, parts;
}};
extern "C" __global__ void __launch_bounds__(256) channel_gradients(
    const __grid_constant__ Words p) {{
  __shared__ double shared_grads[256], shared_products[256];
)" WICK_PARTS R"(
  double grads = 0, products = 0;
  for (long long first = lane; exists && first < p.parts; first += 8 * EACH) {{
    #pragma unroll
    for (int k = 0; k < EACH; ++k) {{
      const bool is_part = first + 8 * k < p.parts;
      const long long at = (is_part ? first + 8 * k : first) * p.channels + c;
      const double grad = p.grads[at], product = p.products[at];
      grads += is_part ? grad : 0;
      products += is_part ? product : 0;
    }}
  }}
  shared_grads[threadIdx.x] = grads;
  shared_products[threadIdx.x] = products;
  __syncthreads();
  for (int half = 128; half >= 32; half /= 2) {{
    if (threadIdx.x < half) {{
      shared_grads[threadIdx.x] += shared_grads[threadIdx.x + half];
      shared_products[threadIdx.x] += shared_products[threadIdx.x + half];
    }}
    __syncthreads();
  }}
  if (lane > 0 || !exists) return;
  grads = shared_grads[threadIdx.x];
  products = shared_products[threadIdx.x];
  const double rstd = p.rstd[c], count = (double)p.rows;
  const double scale = p.weight ? rstd * p.weight[c] : rstd;
  p.for_weight[c] = (A)(products * rstd);
  p.for_bias[c] = (A)grads;
  p.scale[c] = (A)scale;
  p.slope[c] = (A)(-scale * rstd * rstd * products / count);
  p.shift[c] = (A)(-scale * grads / count);
}}
)";

// A line through each channel. V elements that lie side by side are of one channel, or of V.
constexpr const char* kLines = R"(
#define V {vector}
struct Words {{
  const T* g; const T* x; T* y; const A* scale; const A* weight; const A* mean; const A* slope;
  const A* shift; long long total, channels, pixels;
}};
struct __align__({bytes}) Some {{ T e[V]; }};
extern "C" __global__ void __launch_bounds__(256) channel_lines(const __grid_constant__ Words p) {{
  const I channels = (I)p.channels, pixels = (I)p.pixels, total = (I)(p.total / V);
  for (I i = blockIdx.x * (I)256 + threadIdx.x; i < total; i += gridDim.x * (I)256) {{
    const I first = {channel};
    const Some x = ((const Some*)p.x)[i];
    {gradients}
    Some y;
    #pragma unroll
    for (int k = 0; k < V; ++k) {{
      const I c = {next};
      T e = x.e[k];
      const A v = {load} - p.mean[c];
      {value}
      y.e[k] = {store};
    }}
    ((Some*)p.y)[i] = y;
  }}
}}
)";

// How images are read.
struct Layout {
  explicit Layout(const Tensor& x)
      : channels(x.size(1)),
        rows(x.numel() / channels),
        pixels(rows / x.size(0)),
        last(pixels == 1 ||
             (x.dim() >= 4 && x.dim() <= 5 && x.suggestMemoryFormat() != MemoryFormat::Contiguous)),
        narrow(x.numel() < int64_t{1} << 30) {
    const int64_t blocks = (channels + (last ? 31 : 0)) / (last ? 32 : 1);
    const int64_t least = last ? 64 : 2048;  // rows that the threads of a block take at once
    constexpr int64_t kBlocks = 1024;        // enough for any device
    constexpr int64_t kMostParts = 256;
    parts = std::clamp<int64_t>(std::min(kBlocks / blocks, rows / least), 1, kMostParts);
    part_rows = (rows + parts - 1) / parts;
    parts = (rows + part_rows - 1) / part_rows;
    grid = blocks * parts;
  }
  // As the images lie; one format where they lie otherwise.
  static Tensor dense(const Tensor& x, const Tensor& like) {
    if (like.dim() == 4 || like.dim() == 5) return x.contiguous(like.suggestMemoryFormat());
    return x.contiguous();
  }

  int64_t channels, rows, pixels;
  bool last;  // channels are innermost
  bool narrow;
  int64_t parts, part_rows, grid;
};

std::string commonText(const Layout& layout, DType dtype) {
  return textOf(kCommon, dtype,
                fmt::arg("index", layout.narrow ? "unsigned" : "unsigned long long"),
                fmt::arg("channels_of_block", layout.last ? 32 : 1),
                fmt::arg("place", layout.last ? kPlaceOfChannelsLast : kPlaceOfPlanes));
}

void queue(const Layout& layout, const Tensor& x, const char* body, const char* name, int64_t grid,
           const std::vector<int64_t>& words) {
  const std::string text =
      commonText(layout, x.dtype()) + fmt::format(fmt::runtime(kJoined)) + textOf(body, x.dtype());
  launchText(enter(x.device()), text, name, static_cast<unsigned>(grid), words);
}

struct Lines {
  Tensor g, scale, weight, mean, slope, shift;
};
Tensor along(const Layout& layout, const Tensor& x, const Lines& lines) {
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device(), x.suggestMemoryFormat());
  const DType wide = wideOf(x.dtype());
  const auto item = static_cast<int64_t>(itemSize(x.dtype()));
  int64_t vector = 16 / item;
  const auto fits = [&](const Tensor& t) {
    return !t.defined() || wordOf(t) % (vector * item) == 0;
  };
  while (vector > 1 && ((layout.last ? layout.channels : layout.pixels) % vector != 0 || !fits(x) ||
                        !fits(lines.g))) {
    vector /= 2;
  }
  const std::string value =
      lines.g.defined()
          ? fmt::format("e = g.e[k]; const A r = {} * p.scale[c] + (v * p.slope[c] + p.shift[c]);",
                        codegen::cudaConvert("e", x.dtype(), wide))
          : "A r = v * (p.weight ? p.scale[c] * p.weight[c] : p.scale[c]);\n"
            "if (p.shift) r += p.shift[c];";
  const std::string text =
      commonText(layout, x.dtype()) +
      textOf(
          kLines, x.dtype(), fmt::arg("vector", vector), fmt::arg("bytes", vector * item),
          fmt::arg("channel", layout.last ? "i * V % channels" : "i * V / pixels % channels"),
          fmt::arg("next", layout.last ? "first + k" : "first"),
          fmt::arg("gradients", lines.g.defined() ? "const Some g = ((const Some*)p.g)[i];" : ""),
          fmt::arg("value", value), fmt::arg("store", narrowedText("r", x.dtype())));
  launchPoints(x.device(), text, "channel_lines", out.numel() / vector,
               {wordOf(lines.g), wordOf(x), wordOf(out), wordOf(lines.scale), wordOf(lines.weight),
                wordOf(lines.mean), wordOf(lines.slope), wordOf(lines.shift), out.numel(),
                layout.channels, layout.pixels});
  return out;
}

unsigned gridOfChannels(const Layout& layout) {
  return static_cast<unsigned>((layout.channels + 31) / 32);
}

}  // namespace

ChannelStatistics channelStatistics(const Tensor& images, double eps,
                                    const RunningStatistics& running) {
  const Tensor x = Layout::dense(images, images);
  const Layout layout(x);
  const DType wide = wideOf(x.dtype());
  const DimVector sizes{layout.channels}, of_parts{layout.parts, layout.channels};
  const Tensor means = Tensor::empty(of_parts, wide, x.device());
  const Tensor squares = Tensor::empty(of_parts, wide, x.device());
  queue(layout, x, kMoments, "channel_moments", layout.grid,
        {wordOf(x), wordOf(means), wordOf(squares), layout.rows, layout.channels, layout.pixels,
         layout.part_rows});
  ChannelStatistics found{Tensor::empty(sizes, wide, x.device()),
                          Tensor::empty(sizes, wide, x.device())};
  // What is kept in another dtype, or not side by side, is moved by way of a copy.
  const auto own = [&](const Tensor& t) { return t.defined() ? t.to(wide).contiguous() : t; };
  const Tensor mean = own(running.mean), variance = own(running.variance);
  queue(layout, x, kStatistics, "channel_statistics", gridOfChannels(layout),
        {wordOf(means), wordOf(squares), wordOf(found.mean), wordOf(found.rstd), wordOf(mean),
         wordOf(variance), layout.rows, layout.channels, layout.part_rows, layout.parts,
         std::bit_cast<int64_t>(eps), std::bit_cast<int64_t>(running.momentum)});
  const auto moveBack = [](const Tensor& kept, const Tensor& moved) {
    if (kept.defined() && kept.rawData() != moved.rawData()) kept.copyFrom(moved);
  };
  moveBack(running.mean, mean);
  moveBack(running.variance, variance);
  return found;
}

Tensor normalizedChannels(const Tensor& images, const ChannelStatistics& statistics,
                          const Tensor& weight, const Tensor& bias) {
  const Tensor x = Layout::dense(images, images);
  const DType wide = wideOf(x.dtype());
  const auto own = [&](const Tensor& t) { return t.defined() ? t.to(wide).contiguous() : t; };
  return along(Layout(x), x,
               {{}, own(statistics.rstd), own(weight), own(statistics.mean), {}, own(bias)});
}

BatchNormGradients batchNormGradients(const Tensor& grad, const Tensor& images,
                                      const ChannelStatistics& statistics, const Tensor& weight) {
  const Tensor x = Layout::dense(images, images);
  const Tensor g = Layout::dense(grad.to(x.dtype()), x);
  const Layout layout(x);
  const DType wide = wideOf(x.dtype());
  const auto own = [&](const Tensor& t) { return t.defined() ? t.to(wide).contiguous() : t; };
  const auto made = [&] { return Tensor::empty(DimVector{layout.channels}, wide, x.device()); };
  const Tensor mean = own(statistics.mean), rstd = own(statistics.rstd), w = own(weight);
  const DimVector of_parts{layout.parts, layout.channels};
  const Tensor grads = Tensor::empty(of_parts, DType::Double, x.device());
  const Tensor products = Tensor::empty(of_parts, DType::Double, x.device());
  queue(layout, x, kSums, "channel_sums", layout.grid,
        {wordOf(g), wordOf(x), wordOf(mean), wordOf(grads), wordOf(products), layout.rows,
         layout.channels, layout.pixels, layout.part_rows});
  BatchNormGradients result{{}, made(), made()};
  const Tensor scale = made(), slope = made(), shift = made();
  queue(layout, x, kGradients, "channel_gradients", gridOfChannels(layout),
        {wordOf(grads), wordOf(products), wordOf(rstd), wordOf(w), wordOf(result.weight),
         wordOf(result.bias), wordOf(scale), wordOf(slope), wordOf(shift), layout.rows,
         layout.channels, layout.parts});
  result.images = along(layout, x, {g, scale, {}, mean, slope, shift});
  return result;
}

}  // namespace wick::cuda
