#include "runtime/ops/quantized/choose_grid.h"

#include "core/convert.h"
#include "core/half.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops::quantized {

Grid chooseGrid(const char* op, float low, float high, int64_t least, int64_t most,
                bool reduce_range, bool symmetric) {
  constexpr float kSmallestStep = 6.1e-5f;
  WICK_CHECK(std::isfinite(low) && std::isfinite(high), "{}: expected finite values", op);
  if (reduce_range) {
    least /= 2;
    most /= 2;
  }
  symmetric &= low < 0 && high > 0;
  if (symmetric) {
    const auto half =
        static_cast<int64_t>((static_cast<uint64_t>(most) - static_cast<uint64_t>(least)) / 2);
    const double step = std::max(std::abs(low / static_cast<double>(-half - 1)),
                                 std::abs(high / static_cast<double>(half)));
    low = static_cast<float>(step * static_cast<double>(-half - 1));
    high = static_cast<float>(step * static_cast<double>(half));
  }
  low = std::min(low, 0.0f);
  high = std::max(high, 0.0f);
  const auto steps = static_cast<double>(most) - static_cast<double>(least);
  double step = (static_cast<double>(high) - low) / steps;
  if (static_cast<float>(step) == 0 || std::isinf(1 / static_cast<float>(step))) step = 0.1;
  if (step < kSmallestStep) {
    const float widening = kSmallestStep / static_cast<float>(step);
    step = kSmallestStep;
    if (low == 0) {
      high = kSmallestStep * static_cast<float>(steps);
    } else if (high == 0) {
      low = -kSmallestStep * static_cast<float>(steps);
    } else {
      low *= widening;
      high *= widening;
    }
  }
  // Zero is exact; the end that loses less precision decides where it lies.
  const auto first = static_cast<double>(least), last = static_cast<double>(most);
  const double from_low = first - low / step, from_high = last - high / step;
  const double error_low = std::abs(first) + std::abs(low / step);
  const double error_high = std::abs(last) + std::abs(high / step);
  const double zero = std::nearbyint(symmetric                ? (first + last) / 2
                                     : error_low < error_high ? from_low
                                                              : from_high);
  return {step, convert<int64_t>(std::clamp(zero, first, last))};
}

Grid chooseGrid(const char* op, const Tensor& x, int64_t least, int64_t most, bool reduce_range) {
  WICK_CHECK(x.numel() > 0, "{}: expected a tensor with elements, got {}", op, x.describe());
  static const OperatorHandle kMax{"aten::max", ""};
  return chooseGrid(op, ops::min(x).to(DType::Float).item<float>(),
                    kMax(x).to(DType::Float).item<float>(), least, most, reduce_range);
}

namespace {

float lossOf(const float* values, int64_t n, float low, float high, int64_t bits) {
  const float first = static_cast<float>(Half(low));
  const float range = high - first;
  const auto most = static_cast<float>((int64_t{1} << bits) - 1);
  const float step = range == 0 ? 1.0f : static_cast<float>(Half(range / most));
  const float inverse = step == 0 ? 1.0f : 1.0f / step;
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float q = std::max(0.0f, std::min(std::nearbyint((values[i] - first) * inverse), most));
    const float d = values[i] - (q * step + first);
    sum += d * d;
  }
  return std::sqrt(sum);
}

}  // namespace

std::pair<float, float> searchRange(const float* values, int64_t n, int64_t bins, double ratio,
                                    int64_t bits) {
  const auto [least, most] = std::minmax_element(values, values + n);
  float low = *least, high = *most;
  const float step = (high - low) / static_cast<float>(bins);
  const auto min_bins =
      convert<int32_t>(static_cast<double>(bins) * (1.0 - static_cast<float>(ratio)));
  float at_low = low, at_high = high;
  float best = lossOf(values, n, low, high, bits), now = best;
  const float width = static_cast<float>(min_bins) * step;
  Pace pace;
  // Each iteration narrows the range by a step; one that is lost in rounding would not.
  for (int64_t turn = 0; turn <= bins && at_low + width < at_high; ++turn) {
    pace.step(2 * n);
    const float left = lossOf(values, n, at_low + step, at_high, bits);
    const float right = lossOf(values, n, at_low, at_high - step, bits);
    if (now < left && now < right && now < best) {
      best = now;
      low = at_low;
      high = at_high;
    }
    if (left < right) {
      at_low += step;
      now = left;
    } else {
      at_high -= step;
      now = right;
    }
  }
  return {high, low};
}

}  // namespace wick::ops::quantized
