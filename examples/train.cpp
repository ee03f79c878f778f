// Trains a model in the application: it learns a line from points.
#include <wick/wick.h>

#include <cstdio>

int main() {
  wick::ModuleBuilder builder("Line");
  builder.registerParameter("slope", wick::Tensor::from({0.f}));
  builder.registerParameter("height", wick::Tensor::from({0.f}));
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n    return self.slope * x + self.height\n");
  auto model = builder.build();
  const auto program = wick::compile(
      "def loss(y: Tensor, target: Tensor) -> Tensor:\n"
      "    return torch.nn.functional.mse_loss(y, target)\n");

  const auto x = wick::Tensor::from({-1.f, 0.f, 1.f, 2.f});
  const auto y = wick::Tensor::from({-2.f, 1.f, 4.f, 7.f});
  wick::Optimizer optimizer(model, wick::Sgd{.lr = 0.1, .momentum = 0.5});
  wick::Scheduler schedule(optimizer, wick::StepLr{.step_size = 100, .gamma = 0.5});
  for (int step = 0; step < 300; ++step) {
    optimizer.zeroGrad();
    wick::backward(program.call("loss", {model({x}), y}).tensor());
    wick::clipGradNorm(optimizer.parameters(), 10);
    optimizer.step();
    schedule.step();
  }
  for (const auto& [name, tensor] : model.parameters()) {
    std::printf("%s %.3f\n", name.c_str(), tensor.detach().item<float>());
  }
  // The state of the optimizer, as torch.load reads it, and a training may go on from it.
  wick::saveValue(optimizer.stateDict(), "optimizer.pt");
  optimizer.loadStateDict(wick::loadValue("optimizer.pt"));
  std::printf("rate %g\n", optimizer.groups()[0].lr());
}
// Prints:
// slope 3.000
// height 1.000
// rate 0.0125
