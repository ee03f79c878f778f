// Prints what recording costs, and chains and steps computed lazily against the same eagerly:
// bazel run -c opt //tests/lazy:lazy_bench
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/device_backend.h"
#include "lazy/lazy.h"
#include "wick.h"
#include "wick_ops.h"

namespace wick {
namespace {

double bestMicroseconds(const std::function<void()>& f, int times) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

Tensor chain(Tensor t, int length) {
  for (int i = 0; i < length / 4; ++i) {
    t = ops::add(ops::mul(t, Scalar(0.99)), Scalar(0.5));
    t = ops::relu(ops::sub(t, Scalar(0.25)));
  }
  return t;
}

void benchChain(int64_t size) {
  const Device lazy{kLazy, -1};
  const Tensor x = Tensor::full({size}, 0.5, DType::Float), on_lazy = moveTo(x, lazy);
  const double recording = bestMicroseconds([&] { const Tensor t = chain(on_lazy, 100); }, 50);
  lazy::markStep();
  const double eager = bestMicroseconds([&] { chain(x, 100); }, 30);
  const double lazily = bestMicroseconds(
      [&] {
        const Tensor t = chain(on_lazy, 100);
        lazy::markStep();
      },
      200);
  lazy::freezeStep();
  const double frozen = bestMicroseconds(
      [&] {
        const Tensor t = chain(on_lazy, 100);
        lazy::markStep();
      },
      200);
  lazy::thawStep();
  fmt::print(
      "{:>9} numbers, 100 operators: {:6.2f} us recording one, {:9.0f} us eager, {:9.0f} us "
      "lazy, {:9.0f} us frozen\n",
      size, recording / 100, eager, lazily, frozen);
}

}  // namespace
}  // namespace wick

int main() {
  for (const int64_t size : {16, 1000, 100000, 1000000}) wick::benchChain(size);
}
