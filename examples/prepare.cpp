// Prepares a model that is served as it is: weights become constants, layers are fused. prepare
// MODEL.
#include <wick/wick.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  const auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").eval();
  const auto x = wick::Tensor::full({1, 1, 28, 28}, 0.5, wick::DType::Float);
  const auto fast = wick::optimizeForInference(model);
  const wick::GradModeGuard inference(false);
  const auto expected = model({x}).tensor();
  const auto found = fast({x}).tensor();
  double worst = 0;
  for (size_t i = 0; i < 10; ++i) {
    worst = std::fmax(worst, std::fabs(expected.span<float>()[i] - found.span<float>()[i]));
  }
  std::printf("the same but for rounding: %d\n", worst < 1e-4);
}
// Prints:
// the same but for rounding: 1
