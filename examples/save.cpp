// Changes a model, saves it, and builds another one around it: save MODEL.
#include <wick/wick.h>

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) {
  auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").eval();
  const auto x = wick::Tensor::zeros({1, 1, 28, 28}, wick::DType::Float);

  // A module whose program is written here, with a parameter and the model as a part of it.
  wick::ModuleBuilder builder("Sharper");
  builder.registerModule("model", model)
      .registerParameter("scale", wick::Tensor::from({2.f}))
      .registerAttribute("eps", wick::types::Float(), 0.5);
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    return self.model(x) * self.scale + self.eps\n");
  auto sharper = builder.build();
  sharper.setAttr("eps", 0.1);

  // torch.jit.load reads the file, and so does wick::load.
  const std::string path = std::filesystem::temp_directory_path() / "wick_example_save.pt";
  sharper.save(path);
  const auto again = wick::load(path);
  std::filesystem::remove(path);
  std::printf("eps: %g\n", again.attr("eps").to<double>());
  std::printf("the same: %d\n", again({x}).equals(sharper({x})));

  // The state alone, by name; what does not fit is listed in one error.
  const auto state = again.stateDict();
  std::printf("%zu tensors, first %s\n", state.size(),
              state.items()[0].first.to<std::string>().c_str());
  sharper.loadStateDict(state);
}
// Prints:
// eps: 0.1
// the same: 1
// 14 tensors, first scale
