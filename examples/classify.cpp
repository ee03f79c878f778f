// Loads a model and lets it tell which digit an image shows: classify MODEL.
#include <wick/wick.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").eval();

  std::vector<float> pixels(28 * 28);  // an upright stroke: a one
  for (int y = 5; y < 23; ++y) {
    for (int x = 12; x < 15; ++x) pixels[y * 28 + x] = 1;
  }

  const wick::GradModeGuard inference(false);  // nothing is recorded for gradients
  const auto scores = model({wick::Tensor::from(pixels, {1, 1, 28, 28})}).tensor();
  const auto row = scores.span<float>();
  std::printf("%td\n", std::max_element(row.begin(), row.end()) - row.begin());
}
// Prints:
// 1
