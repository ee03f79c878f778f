// Tensors and modules on devices, as an application moves them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "wick.h"

namespace wick::devices_test {
namespace {

using testing::HasSubstr;

template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class Error, class F>
std::string messageOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Lazy tensors stand for those of any device: they are computed by the device's own operators alone.
const Device kThere("lazy");

TEST(DeviceTest, IsMadeOfTextsNumbersAndTypes) {
  EXPECT_EQ(Device("cuda:1"), (Device{DeviceType::CUDA, 1}));
  EXPECT_EQ(Device(std::string("cpu")), Device::cpu());
  EXPECT_EQ(Device::cuda(), Device("cuda"));
  EXPECT_EQ(Device::cuda(3).str(), "cuda:3");
  const Device implicit = DeviceType::Meta;
  EXPECT_EQ(shown(implicit), "meta");
  EXPECT_THAT(messageOf<RuntimeError>([] { Device("gpu"); }),
              HasSubstr("expected one of cpu, cuda"));
  EXPECT_THAT(messageOf<RuntimeError>([] { Device::cuda(128); }),
              HasSubstr("expected a number from -1 to 127, got 128"));
  EXPECT_THROW(Device::cuda(-2), RuntimeError);
  EXPECT_EQ(Device::count(DeviceType::CPU), 1);
  EXPECT_EQ(Device::count(DeviceType{99}), 0);
}

TEST(DeviceTest, TensorsMove) {
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2}).transpose(0, 1);
  EXPECT_TRUE(x.to(Device::cpu()).isSame(x));
  EXPECT_EQ(x.to(Device("meta")).describe(), "float32[2, 2] on meta");
  const Tensor there = x.to(kThere, DType::Double);
  EXPECT_EQ(there.device().type, kThere.type);
  const Tensor back = there.to(Device::cpu());
  EXPECT_EQ(shown(back), "tensor([[1., 3.],\n        [2., 4.]], dtype=torch.float64)");
  EXPECT_THAT(messageOf<RuntimeError>([&] { x.to(Device("cuda:99")); }),
              HasSubstr("device cuda:99: "));
  const Tensor sparse =
      compile("def f(x: Tensor) -> Tensor:\n    return x.to_sparse()\n").call("f", {x}).tensor();
  EXPECT_TRUE(sparse.to(Device::cpu()).isSame(sparse));
  EXPECT_THAT(messageOf<RuntimeError>([&] { sparse.to(kThere); }),
              HasSubstr("a sparse tensor cannot be moved from cpu to lazy"));
}

Module network() {
  ModuleBuilder net("Net");
  net.registerParameter("weight", Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2}))
      .registerBuffer("shift", Tensor::from({0.5f, -9.f}))
      .registerAttribute("table", types::List(types::Tensor()),
                         std::vector<Tensor>{Tensor::from({10.f, 20.f})});
  net.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    return (x @ self.weight + self.shift).relu() + self.table[0]\n");
  return net.build().eval();
}

constexpr const char* kAnswer = "tensor([[14.5000, 20.0000]])";

TEST(DeviceTest, ModulesMoveWithAllThatTheyHold) {
  const GradModeGuard inference(false);
  const Module module = network();
  const Tensor weight = module.parameters()[0].second;
  const Tensor x = Tensor::from({1.f, 1.f}, {1, 2});
  EXPECT_EQ(shown(module({x})), kAnswer);
  EXPECT_EQ(module.to(kThere), module);
  // A caller that holds one of its tensors sees it moved.
  EXPECT_EQ(weight.device().type, kThere.type);
  EXPECT_EQ(module.attr("table")[0].tensor().device().type, kThere.type);
  const Tensor y = module({x.to(kThere)}).tensor();
  EXPECT_EQ(y.device().type, kThere.type);
  EXPECT_EQ(shown(y.to(Device::cpu())), kAnswer);
  EXPECT_EQ(shown(module.to(Device::cpu())({x})), kAnswer);
  EXPECT_EQ(module.to(DType::Double).to(kThere).parameters()[0].second.describe(),
            "float64[2, 2] on lazy");
}

// Constants of the code move also after a run that folded them.
TEST(DeviceTest, ModulesMoveWithTheConstantsOfTheirCode) {
  const GradModeGuard inference(false);
  const Module module = freeze(network(), {.optimize = true});
  EXPECT_TRUE(module.parameters().empty());
  const Tensor x = Tensor::from({1.f, 1.f}, {1, 2});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shown(module({x})), kAnswer);
  module.to(kThere);
  for (int i = 0; i < 3; ++i) {
    const Tensor y = module({x.to(kThere)}).tensor();
    EXPECT_EQ(y.device().type, kThere.type);
    EXPECT_EQ(shown(y.to(Device::cpu())), kAnswer);
  }
  module.to(Device::cpu());
  EXPECT_EQ(shown(module({x})), kAnswer);
}

TEST(DeviceTest, ModulesThatCannotMoveStay) {
  Module module = network();
  EXPECT_THROW(module.to(Device("cuda:99")), RuntimeError);
  EXPECT_EQ(module.parameters()[0].second.device(), Device::cpu());
  const Tensor sparse = compile("def f(x: Tensor) -> Tensor:\n    return x.to_sparse()\n")
                            .call("f", {Tensor::from({0.f, 1.f})})
                            .tensor();
  module.setAttr("shift", sparse);
  EXPECT_THAT(messageOf<RuntimeError>([&] { module.to(kThere); }),
              HasSubstr("'shift' is a sparse tensor, which cannot be moved from cpu to lazy"));
  EXPECT_EQ(module.parameters()[0].second.device(), Device::cpu());
  EXPECT_THROW(Module().to(kThere), UsageError);
}

}  // namespace
}  // namespace wick::devices_test
