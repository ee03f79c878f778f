// Compiles a function and calls it.
#include <wick/wick.h>

#include <cstdio>

int main() {
  const auto program = wick::compile(R"(
def standardize(x: Tensor, eps: float = 1e-5) -> Tensor:
    return (x - x.mean()) / (x.std() + eps)
)");
  const auto x = wick::Tensor::from({1.f, 2.f, 3.f});
  const auto y = program.call("standardize", {x}, {{"eps", 0.0}});
  for (float v : y.tensor().span<float>()) std::printf("%g\n", v);
}
// Prints:
// -1
// 0
// 1
