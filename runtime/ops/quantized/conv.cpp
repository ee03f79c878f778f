// Quantized convolutions, transposed ones too: rows of input bytes are gathered, a row for each
// position of the output, and multiplied with the weight. All lies channels last. Convolutions
// over one and two dimensions are ones over three whose first have the size 1.
#include "runtime/ops/quantized/conv.h"

#include <array>
#include <cstring>

#include "runtime/ops/quantized/choose_grid.h"
#include "runtime/ops/quantized/requantize.h"

namespace wick::ops::quantized {

namespace {

using Three = std::array<int64_t, 3>;

// The bytes of a tile of rows stay in a thread's cache, and the sums of some of its columns.
constexpr int64_t kTileBytes = 1 << 18;
constexpr int64_t kTileRows = 96;
constexpr int64_t kTileColumns = 64;
constexpr int64_t kTileWork = 1 << 20;

Three lastThree(IntSpan values, int64_t other) {
  Three result{other, other, other};
  const size_t skipped = 3 - values.size();
  for (size_t i = 0; i < values.size(); ++i) result[skipped + i] = values[i];
  return result;
}

struct Geometry {
  int64_t batch, in_channels, out_channels, groups;
  Three in, out, kernel, stride, padding, dilation;
  bool transposed;
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t places() const { return out[0] * out[1] * out[2]; }

  // Where a tap reads along a dimension, or -1 where nothing is.
  int64_t source(int d, int64_t at, int64_t tap) const {
    const auto i = static_cast<size_t>(d);
    int64_t from;
    if (transposed) {
      from = at + padding[i] - tap * dilation[i];
      if (from % stride[i] != 0) return -1;
      from /= stride[i];
    } else {
      from = at * stride[i] - padding[i] + tap * dilation[i];
    }
    return from >= 0 && from < in[i] ? from : -1;
  }
};

// `x` is [batch, channels, …] of as many spatial dimensions as the weight has.
Geometry geometryOf(const char* op, const Tensor& x, const ConvParams& layer) {
  const int64_t dims = layer.dims();
  WICK_CHECK(x.dim() == dims + 2, "{}: expected an input of {} dimensions, got {}", op, dims + 2,
             x.describe());
  WICK_CHECK(x.size(1) == layer.inChannels(), "{}: expected an input of {} channels, got {}", op,
             layer.inChannels(), x.describe());
  const ConvParams::Shape& s = layer.shape;
  Geometry g{};
  g.batch = x.size(0);
  g.in_channels = layer.inChannels();
  g.out_channels = layer.outChannels();
  g.groups = s.groups;
  g.transposed = s.transposed;
  g.in = lastThree(DimVector(x.sizes().begin() + 2, x.sizes().end()), 1);
  const IntSpan weight = layer.weight.sizes();
  g.kernel = lastThree(DimVector(weight.begin() + 2, weight.end()), 1);
  g.stride = lastThree(s.stride, 1);
  g.padding = lastThree(s.padding, 0);
  g.dilation = lastThree(s.dilation, 1);
  const Three extra = lastThree(s.output_padding, 0);
  for (size_t d = 0; d < 3; ++d) {
    WICK_CHECK(g.in[d] <= INT32_MAX && g.kernel[d] <= INT32_MAX, "{}: the sizes are too large", op);
    // Each factor is below 2^31.
    const __int128 reach = static_cast<__int128>(g.dilation[d]) * (g.kernel[d] - 1) + 1;
    const __int128 out =
        g.transposed
            ? static_cast<__int128>(g.in[d] - 1) * g.stride[d] - 2 * g.padding[d] + reach + extra[d]
            : (static_cast<__int128>(g.in[d]) + 2 * g.padding[d] - reach) / g.stride[d] + 1;
    const bool fits =
        g.transposed ? out > 0 : static_cast<__int128>(g.in[d]) + 2 * g.padding[d] >= reach;
    WICK_CHECK(fits && out <= INT32_MAX && g.kernel[d] > 0,
               "{}: an input of {} is too small for the kernel {}", op, x.describe(),
               formatInts(layer.weight.sizes()));
    g.out[d] = static_cast<int64_t>(out);
  }
  return g;
}

DimVector resultSizes(const Geometry& g, int64_t dims) {
  DimVector sizes{g.batch, g.out_channels};
  for (int64_t d = 3 - dims; d < 3; ++d) sizes.push_back(g.out[static_cast<size_t>(d)]);
  return sizes;
}

struct Place {
  int64_t n;
  Three at;
};
Place placeOf(const Geometry& g, int64_t row) {
  const int64_t w = row % g.out[2], h = row / g.out[2] % g.out[1];
  const int64_t d = row / (g.out[2] * g.out[1]) % g.out[0];
  return {row / g.places(), {d, h, w}};
}

// The bytes that one output position of a group is computed from: [taps, channels].
void gather(const Geometry& g, const uint8_t* x, int64_t group, const Place& place, uint8_t zero,
            uint8_t* row) {
  const int64_t channels = g.in_channels / g.groups;
  const uint8_t* image = x + place.n * g.in[0] * g.in[1] * g.in[2] * g.in_channels;
  for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
    const int64_t d = g.source(0, place.at[0], kd);
    for (int64_t kh = 0; kh < g.kernel[1]; ++kh) {
      const int64_t h = d < 0 ? -1 : g.source(1, place.at[1], kh);
      if (h < 0) {
        std::memset(row, zero, static_cast<size_t>(g.kernel[2] * channels));
        row += g.kernel[2] * channels;
        continue;
      }
      const uint8_t* line = image + (d * g.in[1] + h) * g.in[2] * g.in_channels;
      const int64_t first = place.at[2] * g.stride[2] - g.padding[2];
      if (g.groups == 1 && !g.transposed && g.dilation[2] == 1 && first >= 0 &&
          first + g.kernel[2] <= g.in[2]) {
        std::memcpy(row, line + first * channels, static_cast<size_t>(g.kernel[2] * channels));
        row += g.kernel[2] * channels;
        continue;
      }
      for (int64_t kw = 0; kw < g.kernel[2]; ++kw, row += channels) {
        const int64_t w = g.source(2, place.at[2], kw);
        if (w < 0) {
          std::memset(row, zero, static_cast<size_t>(channels));
        } else {
          std::memcpy(row, line + w * g.in_channels + group * channels,
                      static_cast<size_t>(channels));
        }
      }
    }
  }
}

// Where results go: [position, channels] of bytes.
struct Output {
  uint8_t* bytes;
  float zero_point;
  bool relu;
};

// How many rows make a tile: a multiple of what products take at once, unless there are few.
int64_t tileRows(int64_t depth, int64_t rows) {
  constexpr int64_t kAtOnce = 6;
  const int64_t fitting = kTileBytes / std::max<int64_t>(1, depth) / kAtOnce * kAtOnce;
  return std::min(rows, std::clamp<int64_t>(fitting, kAtOnce, kTileRows));
}

void general(const Geometry& g, const uint8_t* x, uint8_t zero, const ConvParams& layer,
             const Finish& finish, const Output& output) {
  const int64_t rows = g.batch * g.places();
  const int64_t depth = g.taps() * (g.in_channels / g.groups);
  const int64_t columns = g.out_channels / g.groups;
  const int64_t padded = layer.packed()[0].paddedColumns();
  const int64_t tile = tileRows(depth, rows);
  const int64_t tiles = (rows + tile - 1) / tile;
  const int64_t work = tile * padded * std::max<int64_t>(depth, 1) * g.groups;
  // Of a kernel of one tap the input is the rows.
  const bool direct = g.taps() == 1 && g.groups == 1 && !g.transposed &&
                      g.stride == Three{1, 1, 1} && g.padding == Three{0, 0, 0};
  const auto byteSums = [&](const uint8_t* a, int64_t n, int32_t* to) {
    for (int64_t r = 0; r < n; ++r) to[r] = finish.needsRowSum() ? sumOf(a + r * depth, depth) : 0;
  };
  parallelFor(tiles, std::max<int64_t>(1, kTileWork / std::max<int64_t>(work, 1)),
              [&](int64_t begin, int64_t end) {
                CountedVector<uint8_t> gathered(static_cast<size_t>(direct ? 0 : tile * depth));
                std::array<int32_t, kTileRows * kTileColumns> sums;
                std::array<int32_t, kTileRows> row_sums;
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t first = t * tile, n = std::min(tile, rows - first);
                  for (int64_t group = 0; group < g.groups; ++group) {
                    const uint8_t* a = x + first * depth;
                    if (!direct) {
                      for (int64_t r = 0; r < n; ++r) {
                        gather(g, x, group, placeOf(g, first + r), zero,
                               gathered.data() + r * depth);
                      }
                      a = gathered.data();
                    }
                    byteSums(a, n, row_sums.data());
                    const PackedBytes& matrix = layer.packed()[static_cast<size_t>(group)];
                    for (int64_t column = 0; column < columns; column += kTileColumns) {
                      const int64_t last = std::min(column + kTileColumns, padded);
                      matrix.multiply(a, depth, n, column, last, sums.data(), kTileColumns);
                      const int64_t channel = group * columns + column;
                      for (int64_t r = 0; r < n; ++r) {
                        finish.rowOfBytes(sums.data() + r * kTileColumns, channel,
                                          std::min(last, columns) - column, row_sums[r],
                                          output.relu, output.zero_point,
                                          output.bytes + (first + r) * g.out_channels + channel);
                      }
                    }
                  }
                }
              });
}

// Each channel by itself; neighbouring channels side by side in vectors.
void depthwise(const Geometry& g, const uint8_t* x, uint8_t zero, const ConvParams& layer,
               const Finish& finish, const Output& output) {
  const int64_t channels = g.in_channels, rows = g.batch * g.places();
  const int8_t* weight = layer.taps().data();
  parallelFor(rows, std::max<int64_t>(1, kTileWork / 8 / std::max<int64_t>(1, channels * g.taps())),
              [&](int64_t begin, int64_t end) {
                CountedVector<int32_t> sums(static_cast<size_t>(channels));
                for (int64_t r = begin; r < end; ++r) {
                  const Place place = placeOf(g, r);
                  const uint8_t* image = x + place.n * g.in[0] * g.in[1] * g.in[2] * channels;
                  std::fill(sums.begin(), sums.end(), 0);
                  int32_t* to = sums.data();
                  int64_t tap = 0;
                  for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
                    for (int64_t kh = 0; kh < g.kernel[1]; ++kh) {
                      for (int64_t kw = 0; kw < g.kernel[2]; ++kw, ++tap) {
                        const int64_t d = g.source(0, place.at[0], kd);
                        const int64_t h = g.source(1, place.at[1], kh);
                        const int64_t w = g.source(2, place.at[2], kw);
                        // Beside the input there is zero, which adds nothing.
                        if (d < 0 || h < 0 || w < 0) continue;
                        const uint8_t* from = image + ((d * g.in[1] + h) * g.in[2] + w) * channels;
                        const int8_t* factors = weight + tap * channels;
                        for (int64_t c = 0; c < channels; ++c) {
                          const int32_t term = (static_cast<int32_t>(from[c]) - zero) * factors[c];
                          to[c] = static_cast<int32_t>(static_cast<uint32_t>(to[c]) +
                                                       static_cast<uint32_t>(term));
                        }
                      }
                    }
                  }
                  finish.rowOfBytes(to, 0, channels, 0, output.relu, output.zero_point,
                                    output.bytes + r * channels);
                }
              });
}

// `x` holds bytes, channels last.
void convolve(const Geometry& g, const Tensor& x, const Grid& input, const ConvParams& layer,
              double out_scale, const Output& output) {
  const auto* bytes = integers<uint8_t>(x);
  const auto zero = static_cast<uint8_t>(input.zero_point);
  if (g.batch == 0 || g.out_channels == 0) return;
  if (layer.isByChannel()) {
    Finish finish(layer.grid());
    for (int64_t c = 0; c < g.out_channels; ++c) {
      finish.add({input.scale, 0}, layer.grid(), c, 0, 0, layer.bias, out_scale);
    }
    depthwise(g, bytes, zero, layer, finish, output);
    return;
  }
  const Finish finish(input, layer.grid(), layer.packed(), layer.bias, out_scale);
  general(g, bytes, zero, layer, finish, output);
}

MemoryFormat channelsLast(int64_t dims) {
  return dims == 3 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

// As a convolution over two dimensions takes it, which one over a line is.
Tensor withRows(const char* op, const Tensor& x, bool line) {
  if (!line) return x;
  WICK_CHECK(x.dim() == 3, "{}: expected an input of 3 dimensions, got {}", op, x.describe());
  return x.unsqueeze(2);
}
Tensor withoutRows(const Tensor& result, bool line) {
  return line ? result.squeeze(2) : result;
}

}  // namespace

Tensor convOnGrid(const char* op, const Tensor& qx, const ConvParams& layer, const Grid& grid,
                  bool relu, bool line) {
  const Quantizer& q = perTensorQuantizerOf(op, qx);
  WICK_CHECK(qx.dtype() == DType::QUInt8, "{}: expected a quint8 input, got {}", op, qx.describe());
  checkGrid(op, grid, DType::QUInt8);
  const Tensor x = withRows(op, qx, line);
  const Geometry g = geometryOf(op, x, layer);
  const MemoryFormat format = channelsLast(layer.dims());
  Tensor result = emptyQuantized(resultSizes(g, layer.dims()), DType::QUInt8,
                                 Quantizer::perTensor(grid.scale, grid.zero_point), format);
  convolve(g, contiguous(x, format), gridOf(q), layer, grid.scale,
           {integers<uint8_t>(result), static_cast<float>(grid.zero_point), relu});
  return withoutRows(result, line);
}

Tensor convDynamic(const char* op, const Tensor& input, const ConvParams& layer, bool reduce_range,
                   bool line) {
  WICK_CHECK(input.kind() == TensorKind::Dense && input.dtype() == DType::Float,
             "{}: expected a float32 input, got {}", op, input.describe());
  const Tensor x = withRows(op, input, line);
  const Geometry g = geometryOf(op, x, layer);
  const MemoryFormat format = channelsLast(layer.dims());
  if (x.numel() == 0) {
    return withoutRows(Tensor::empty(resultSizes(g, layer.dims()), DType::Float, {}, format), line);
  }
  // As in PyTorch the result is cut off at the ends of the input's grid.
  const Grid grid = chooseGrid(op, x, 0, 255, reduce_range);
  const Tensor bytes = quantize(op, x, grid, DType::QUInt8);
  return withoutRows(dequantize(op, convOnGrid(op, bytes, layer, grid, false, false)), line);
}

}  // namespace wick::ops::quantized
