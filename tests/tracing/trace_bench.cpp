// What tracing costs: a chain of operators on a small tensor, called and recorded.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "wick.h"
#include "wick_ops.h"

namespace {

using wick::IValue;
using wick::Tensor;

constexpr int kOperators = 2000;

IValue chain(const std::vector<IValue>& in) {
  Tensor x = in[0].tensor();
  for (int i = 0; i < kOperators / 2; ++i) x = wick::ops::relu(wick::ops::mul(x, 0.5));
  return IValue(x);
}

// Of several tries the fastest, in microseconds an operator.
template <class F>
double perOperator(F&& f) {
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kOperators);
  }
  return best;
}

}  // namespace

int main() {
  const std::vector<IValue> inputs{Tensor::from({1.f, 2.f, 3.f, 4.f})};
  const double called = perOperator([&] { chain(inputs); });
  const double traced = perOperator([&] { wick::trace(chain, inputs); });
  fmt::print("called {:.3f} us, traced {:.3f} us, more {:.3f} us an operator\n", called, traced,
             traced - called);
}
