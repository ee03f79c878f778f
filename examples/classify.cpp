// Loads a model and lets it tell which digit an image shows: classify MODEL.
#include <wick/wick.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").eval();

  std::vector<float> pixels(28 * 28);  // a slanted stroke below a bar: a seven
  for (int x = 6; x < 22; ++x) pixels[6 * 28 + x] = pixels[7 * 28 + x] = 1;
  for (int y = 8; y < 23; ++y)
    pixels[y * 28 + 21 - (y - 8) / 2] = pixels[y * 28 + 20 - (y - 8) / 2] = 1;

  const auto scores = model({wick::Tensor::from(pixels, {1, 1, 28, 28})}).tensor();
  const auto row = scores.span<float>();
  std::printf("%td\n", std::max_element(row.begin(), row.end()) - row.begin());
}
// Prints:
// 7
