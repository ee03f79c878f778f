// Compares attention on a GPU with the same in float64 on the CPU: random sizes, layouts, masks and
// dtypes. Needs a GPU:
//   bazel run -c opt //tests/cuda:check_attention -- [COUNT [FIRST_SEED]]
// The exit code is 1 when one differs by more than rounding to its dtype explains.
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "core/device_backend.h"
#include "runtime/ops/call.h"

namespace wick {
namespace {

const OperatorHandle kAttention{"aten::scaled_dot_product_attention", ""};

class Case {
 public:
  explicit Case(uint64_t seed) : random_(seed) {
    dtype_ = pick({DType::Half, DType::BFloat16, DType::Half, DType::BFloat16, DType::Float});
    width_ = pick({8, 16, 24, 32, 40, 64, 64, 64, 80, 96, 128, 128, 136, 20});
    batch_ = pick({1, 1, 2, 3});
    heads_ = pick({1, 2, 5, 12});
    rows_ = pick({1, 2, 15, 16, 17, 31, 64, 65, 100, 128, 197, 300});
    keys_ = pick({1, 2, 8, 15, 16, 17, 33, 64, 65, 100, 128, 197, 257});
    mask_ = pick({0, 0, 1, 2, 3});
    group_ = heads_ % 2 == 0 && pick({0, 0, 0, 1}) == 1 ? 2 : 1;
  }

  // The largest difference, in units of the dtype's rounding of 1; negative where one is NaN and
  // the other is not.
  double difference() {
    const int64_t key_heads = heads_ / group_;
    const Tensor q = tensor(rows_, heads_), k = tensor(keys_, key_heads),
                 v = tensor(keys_, key_heads);
    Tensor mask;
    if (mask_ == 1 || mask_ == 2) {
      const bool wide = pick({0, 1}) == 1;
      const DimVector sizes =
          wide ? DimVector{batch_, heads_, rows_, keys_} : DimVector{rows_, keys_};
      mask = numbers(sizes);
      if (mask_ == 1) {
        static const OperatorHandle kGreater{"aten::gt", "Scalar"};
        mask = kGreater(mask, -0.5);
      } else {
        mask = mask.to(dtype_);
      }
    }
    const auto scale = pick({0, 1}) == 1 ? std::optional<double>(0.3) : std::optional<double>();
    const auto run = [&](auto convert) {
      const Tensor m = mask.defined() && mask.dtype() != DType::Bool ? convert(mask) : mask;
      const Tensor placed = m.defined() ? moveTo(m, convert(q).device()) : m;
      return moveTo(kAttention(convert(q), convert(k), convert(v), placed, 0.0, mask_ == 3, scale,
                               group_ > 1),
                    Device())
          .to(DType::Double)
          .contiguous();
    };
    const Device device = placeOf({DeviceType::CUDA, -1});
    const Tensor got = run([&](const Tensor& t) { return moveTo(t, device); });
    const Tensor expected = run([](const Tensor& t) { return t.to(DType::Double); });
    const double unit = dtype_ == DType::Half       ? 0x1p-11
                        : dtype_ == DType::BFloat16 ? 0x1p-8
                                                    : 0x1p-19;
    double largest = 0;
    for (int64_t i = 0; i < expected.numel(); ++i) {
      const double a = got.data<double>()[i], b = expected.data<double>()[i];
      if (std::isnan(a) != std::isnan(b)) return -1;
      if (!std::isnan(a)) largest = std::max(largest, std::abs(a - b) / unit);
    }
    return largest;
  }
  std::string describe() const {
    return fmt::format(
        "{} of width {}, {} x {} heads (a key's serves {}), {} rows, {} keys, mask {}",
        toString(dtype_), width_, batch_, heads_, group_, rows_, keys_, mask_);
  }

 private:
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[random_() % list.size()];
  }
  Tensor numbers(const DimVector& sizes) {
    const Tensor t = Tensor::empty(sizes, DType::Float);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(random_);
    return t;
  }
  // Of the sizes [batch, heads, rows, width], laid out in one of several ways.
  Tensor tensor(int64_t rows, int64_t heads) {
    switch (pick({0, 1, 2})) {
      case 0:
        return numbers({batch_, heads, rows, width_}).to(dtype_);
      case 1:
        return numbers({batch_, rows, heads, width_}).to(dtype_).transpose(1, 2);
      default:
        return numbers({batch_, rows, heads, 3 * width_})
            .to(dtype_)
            .narrow(3, width_, width_)
            .transpose(1, 2);
    }
  }

  std::mt19937_64 random_;
  DType dtype_;
  int64_t width_, batch_, heads_, rows_, keys_;
  int mask_, group_;
};

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  // Values are sums of normal numbers with weights that add up to one.
  constexpr double kMost = 12;
  uint64_t failures = 0;
  double largest = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    wick::Case made(seed);
    std::string what;
    try {
      const double difference = made.difference();
      largest = std::max(largest, difference);
      if (difference < 0) what = "NaN in one of both";
      if (difference > kMost) what = fmt::format("differs by {:.1f} units", difference);
    } catch (const std::exception& e) {
      what = e.what();
    }
    if (what.empty()) continue;
    ++failures;
    fmt::print("seed {}: {}: {}\n", seed, made.describe(), what);
  }
  fmt::print("{} cases, {} failures, largest difference {:.2f} units\n", count, failures, largest);
  return failures == 0 ? 0 : 1;
}
