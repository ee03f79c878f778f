// Lets the engine work on an application's memory without copying it.
#include <wick/wick.h>

#include <cstdio>
#include <memory>
#include <vector>

int main() {
  auto samples = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  // The tensor keeps the vector alive.
  const auto storage =
      wick::Storage::borrow(samples->data(), samples->size() * sizeof(float), samples);
  const auto x = wick::Tensor::fromStorage(storage, wick::DType::Float, {3}, {1}, 0);

  const auto program = wick::compile("def twice(x: Tensor):\n    x.mul_(2)\n");
  program.call("twice", {x});
  for (float v : *samples) std::printf("%g\n", v);
}
// Prints:
// 2
// 4
// 6
