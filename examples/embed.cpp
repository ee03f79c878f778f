// Compiles a function, or loads a model, and prints an answer: embed [model.pt].
#include <cstdio>

#include "wick.h"

int main(int argc, char** argv) try {
  wick::Tensor x = wick::Tensor::full({1, 3, 224, 224}, 0.5, wick::DType::Float);
  if (argc > 1) {
    wick::Module model = wick::load(argv[1]);
    model.eval();
    std::puts(model.forward({x}).repr().c_str());
    return 0;
  }
  wick::Program program = wick::compile(
      "def mean_of_squares(x: Tensor) -> float:\n"
      "    return float((x * x).mean())\n");
  std::puts(program.call("mean_of_squares", {x}).repr().c_str());
} catch (const wick::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
