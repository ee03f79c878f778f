// Operators as functions, without a program.
#include <wick/wick.h>
#include <wick/wick_ops.h>

#include <cstdio>

int main() {
  namespace ops = wick::ops;
  const auto a = wick::Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  const auto product = ops::matmul(a, ops::t(a));
  const auto [values, indices] = ops::max(product, /*dim=*/1);
  for (float v : values.span<float>()) std::printf("%g\n", v);
  for (int64_t i : indices.span<int64_t>()) std::printf("%d\n", static_cast<int>(i));
  std::printf("%g\n", ops::sum(ops::softmax(a, 1, wick::DType::Double)).item<double>());
  ops::mul_(a, 10);  // in place
  std::printf("%g\n", ops::mean(a, {0, 1}).item<float>());
}
// Prints:
// 11
// 25
// 1
// 1
// 2
// 25
