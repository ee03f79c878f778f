// Looks into a module and changes it: attributes MODEL.
#include <wick/wick.h>

#include <cstdio>

int main(int argc, char** argv) {
  auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").train();
  std::printf("training: %s\n", model.attr("training").repr().c_str());
  model.setAttr("training", false);
  std::printf("training: %s\n", model.attr("training").repr().c_str());

  int numbers = 0;
  for (const auto& [name, tensor] : model.parameters()) numbers += static_cast<int>(tensor.numel());
  std::printf("%zu parameters, %d numbers\n", model.parameters().size(), numbers);

  const auto layer = model.submodule("fc_layers.1");
  std::printf("weight: %s\n", layer.attr("weight").tensor().describe().c_str());

  // A module refers to its tensors: what is written here the next call reads. All ten digits become
  // equally likely, and the model answers with logarithms.
  for (const auto& [name, tensor] : layer.parameters()) tensor.fill(0);
  const auto scores = model({wick::Tensor::zeros({1, 1, 28, 28}, wick::DType::Float)}).tensor();
  std::printf("%g\n", scores.span<float>()[3]);
}
// Prints:
// training: True
// training: False
// 10 parameters, 7594 numbers
// weight: float32[10, 400]
// -2.30259
