// Modules as an application sees them.
#include <gtest/gtest.h>

#include "ir/function.h"
#include "wick.h"

namespace wick::module_test {
namespace {

// Net(weight, stats, training, inner: Inner(weight tied to Net's, bias view of it, training))
class ModuleTest : public testing::Test {
 protected:
  void SetUp() override {
    auto inner = std::make_shared<ClassType>("__torch__.Inner", true);
    inner->addAttribute("weight", types::Tensor(), true);
    inner->addAttribute("row", types::Tensor(), false, true);
    inner->addAttribute("training", types::Bool());
    auto net = std::make_shared<ClassType>("__torch__.Net", true);
    net->addAttribute("weight", types::Tensor(), true);
    net->addAttribute("count", types::Tensor(), false, true);
    net->addAttribute("training", types::Bool());
    net->addAttribute("scale", types::Float());
    net->addAttribute("inner", inner);
    weight = Tensor::full({2, 3}, 1.5, DType::Float);
    auto inner_object = makeRef<Object>(inner, nullptr);
    inner_object->setAttr("weight", weight);
    inner_object->setAttr("row", weight.select(0, 1));
    inner_object->setAttr("training", true);
    auto object = makeRef<Object>(net, nullptr);
    object->setAttr("weight", weight);
    object->setAttr("count", Tensor::zeros({}, DType::Long));
    object->setAttr("training", true);
    object->setAttr("scale", 0.5);
    object->setAttr("inner", inner_object);
    module = Module(object);
  }

  template <class T>
  static std::vector<std::string> names(const Module::Named<T>& list) {
    std::vector<std::string> found;
    for (const auto& [name, value] : list) found.push_back(name);
    return found;
  }

  using Names = std::vector<std::string>;
  Tensor weight;
  Module module;
};

TEST_F(ModuleTest, PartsByName) {
  EXPECT_EQ(names(module.parameters()), (Names{"weight", "inner.weight"}));
  EXPECT_EQ(names(module.parameters(false)), (Names{"weight"}));
  EXPECT_EQ(names(module.buffers()), (Names{"count", "inner.row"}));
  EXPECT_EQ(names(module.children()), (Names{"inner"}));
  EXPECT_EQ(names(module.modules()), (Names{"", "inner"}));
  EXPECT_EQ(module.submodule("inner").attr("training").toBool(), true);
  EXPECT_THROW(module.submodule("outer"), UsageError);
  EXPECT_THROW(module.submodule("scale"), UsageError);
  EXPECT_THROW(module.attr("missing"), UsageError);
  EXPECT_THROW(module.run("forward", {}), UsageError);
}

TEST_F(ModuleTest, AttributesKeepTheirType) {
  module.setAttr("scale", 2);
  EXPECT_EQ(module.attr("scale").toDouble(), 2.0);
  EXPECT_THROW(module.setAttr("scale", "wide"), UsageError);
  EXPECT_THROW(module.setAttr("missing", 1), UsageError);
}

TEST_F(ModuleTest, TrainAndEvalReachSubmodules) {
  module.eval();
  EXPECT_FALSE(module.isTraining());
  EXPECT_FALSE(module.submodule("inner").isTraining());
  module.train();
  EXPECT_TRUE(module.submodule("inner").isTraining());
}

TEST_F(ModuleTest, ClonesShareNothingButKeepTheirTies) {
  Module copy = module.clone();
  Tensor copied = copy.attr("weight").toTensor();
  EXPECT_FALSE(copied.sharesStorage(weight));
  EXPECT_TRUE(copied.isSame(copy.submodule("inner").attr("weight").toTensor()));
  copied.fill(7);
  EXPECT_EQ(copy.submodule("inner").attr("row").toTensor().select(0, 2).item<float>(), 7);
  EXPECT_EQ(weight.select(0, 0).select(0, 0).item<float>(), 1.5F);
}

TEST_F(ModuleTest, ConversionChangesFloatingTensorsInPlace) {
  module.to(DType::Double);
  EXPECT_EQ(weight.dtype(), DType::Double);
  EXPECT_EQ(weight.select(0, 0).select(0, 0).item<double>(), 1.5);
  EXPECT_EQ(module.attr("count").toTensor().dtype(), DType::Long);
  EXPECT_THROW(module.to(DType::Int), UsageError);
}

TEST_F(ModuleTest, OnlyModuleClassesMakeModules) {
  auto plain = std::make_shared<ClassType>("__torch__.Plain", false);
  EXPECT_THROW(Module(makeRef<Object>(plain, nullptr)), UsageError);
}

TEST(Handles, EmptyOnesRefuseEverything) {
  const Module none;
  EXPECT_FALSE(none.valid());
  EXPECT_TRUE(none == Module());
  EXPECT_EQ(none.object().get(), nullptr);
  const auto refuses = [](auto question) { EXPECT_THROW(question(), UsageError); };
  refuses([&] { none.forward({}); });
  refuses([&] { none({}); });
  refuses([&] { none.run("forward", {}); });
  refuses([&] { none.type(); });
  refuses([&] { none.hasAttr("weight"); });
  refuses([&] { none.attr("weight"); });
  refuses([&] { Module().setAttr("weight", 1); });
  refuses([&] { none.submodule("inner"); });
  refuses([&] { none.submodule(""); });
  refuses([&] { none.parameters(); });
  refuses([&] { none.buffers(); });
  refuses([&] { none.attributes(); });
  refuses([&] { none.children(); });
  refuses([&] { none.modules(); });
  refuses([&] { none.methodNames(); });
  refuses([&] { none.findMethod("forward"); });
  refuses([&] { none.method("forward"); });
  refuses([&] { none.hasHooks(); });
  refuses([&] { none.train(); });
  refuses([&] { none.eval(); });
  refuses([&] { none.isTraining(); });
  refuses([&] { none.to(DType::Double); });
  refuses([&] { none.clone(); });
  refuses([&] { Module{ObjectRef()}; });
  refuses([&] { Program{std::shared_ptr<CompilationUnit>()}; });
  Program program = compile("def f(x: int) -> int:\n    return x\n");
  const Program taken = std::move(program);
  refuses([&] { program.functionNames(); });
  refuses([&] { program.function("f"); });
  refuses([&] { program.call("f", {1}); });
  EXPECT_EQ(taken.call("f", {1}).toInt(), 1);
}

// A method relies on the slots of its own class.
TEST(Handles, MethodsAreCalledOnTheirOwnClass) {
  const Program program = compile(R"(
class A:
    def __init__(self):
        self.text = "a"
    def get(self) -> str:
        return self.text
class B:
    def __init__(self):
        self.number = 1
    def get(self) -> int:
        return self.number
def make_a() -> A:
    return A()
def make_b() -> B:
    return B()
)");
  const IValue a = program.call("make_a", {}), b = program.call("make_b", {});
  auto& method = dynamic_cast<GraphFunction&>(*a.toObject().type()->findMethod("get"));
  EXPECT_EQ(callMethod(ObjectRef(&a.toObject()), method, {}).toString(), "a");
  EXPECT_THROW(callMethod(ObjectRef(&b.toObject()), method, {}), UsageError);
  EXPECT_THROW(callMethod(nullptr, method, {}), UsageError);
  EXPECT_THROW(callMethod(ObjectRef(&a.toObject()), program.function("make_a"), {}), UsageError);
  EXPECT_THROW(optimizeForInference(nullptr, method), UsageError);
  EXPECT_THROW(optimizeForInference(ObjectRef(&b.toObject()), method), UsageError);
}

// ---- freezing modules that fork ----

Module frozenFork(const std::string& functions, const std::string& forward) {
  ModuleBuilder net("Net");
  net.compile(functions);
  for (const char* name : {"a", "b"}) {
    net.registerParameter(name, Tensor::from({1.f, 2.f}));
  }
  net.define(forward);
  return freeze(net.build().eval());
}

size_t parametersLeft(const Module& module) {
  return module.parameters().size();
}

TEST(FreezeForks, AttributesThatNobodyWritesAreConstants) {
  const Module module = frozenFork(
      "def f(x: Tensor, w: Tensor) -> Tensor:\n    y = x * w\n    y.add_(1)\n    return y\n",
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    f = torch.jit.fork(f, x, self.a)\n"
      "    return torch.jit.wait(f) + self.b\n");
  EXPECT_EQ(parametersLeft(module), 0u);
  const Tensor y = module({Tensor::from({3.f, 4.f})}).tensor();
  EXPECT_EQ(y.data<float>()[1], 11.f);
}

TEST(FreezeForks, AttributesThatABodyWritesStay) {
  // Through a function that the body calls, which is called twice.
  const Module module = frozenFork(
      "def g(w: Tensor) -> int:\n    w.add_(1)\n    return 0\n"
      "def f(x: Tensor, w: Tensor) -> Tensor:\n    g(x)\n    g(w.view(-1))\n    return x * w\n",
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    with torch.no_grad():\n"
      "        f = torch.jit.fork(f, x.clone(), self.a)\n"
      "    return torch.jit.wait(f) + self.b\n");
  EXPECT_EQ(parametersLeft(module), 1u);
  EXPECT_TRUE(module.hasAttr("a"));
}

TEST(FreezeForks, AttributesThatABodyReturnsAndItsCallerWritesStay) {
  const Module module = frozenFork("def f(w: Tensor) -> Tensor:\n    return w.view(-1)\n",
                                   "def forward(self, x: Tensor) -> Tensor:\n"
                                   "    with torch.no_grad():\n"
                                   "        y = torch.jit.wait(torch.jit.fork(f, self.a))\n"
                                   "        y.add_(1)\n"
                                   "    return x * self.a + self.b\n");
  EXPECT_TRUE(module.hasAttr("a"));
  const Tensor x = Tensor::from({1.f, 1.f});
  EXPECT_EQ(module({x}).tensor().data<float>()[0], 3.f);  // (1 + 1) + 1
  EXPECT_EQ(module({x}).tensor().data<float>()[0], 4.f);
}

TEST(FreezeForks, AttributesThatForksOfForksWriteStay) {
  const Module module = frozenFork(
      "def g(w: Tensor) -> Tensor:\n    return w.add_(1)\n"
      "def f(w: Tensor) -> Tensor:\n    return torch.jit.wait(torch.jit.fork(g, w[0]))\n",
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    with torch.no_grad():\n"
      "        f = torch.jit.fork(f, self.a)\n"
      "    return x * torch.jit.wait(f) + self.b\n");
  EXPECT_TRUE(module.hasAttr("a"));
  EXPECT_FALSE(module.hasAttr("b"));
}

}  // namespace
}  // namespace wick::module_test
