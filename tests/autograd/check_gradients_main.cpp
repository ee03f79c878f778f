// bazel run -c opt //tests/autograd:check_gradients -- 10000 [FIRST SEED]
#include <cstdio>
#include <cstdlib>

#include "tests/autograd/random_gradients.h"

int main(int argc, char** argv) {
  using Outcome = wick::GradientComparison::Outcome;
  const auto count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const auto first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  uint64_t outcomes[4] = {};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string program = wick::randomGradientProgram(seed);
    const wick::GradientComparison found = wick::compareGradients(program, seed % 4 == 3);
    ++outcomes[static_cast<size_t>(found.outcome)];
    if (found.outcome != Outcome::Differs) continue;
    std::printf("seed %llu: %s\n%s\n", static_cast<unsigned long long>(seed), found.text.c_str(),
                program.c_str());
  }
  std::printf(
      "%llu agree, %llu refused, %llu unclear, %llu differ\n",
      static_cast<unsigned long long>(outcomes[0]), static_cast<unsigned long long>(outcomes[1]),
      static_cast<unsigned long long>(outcomes[2]), static_cast<unsigned long long>(outcomes[3]));
  return outcomes[3] == 0 ? 0 : 1;
}
