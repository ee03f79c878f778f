// Modules built in C++, their state, frozen ones, and all of it saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/output_file.h"
#include "runtime/inference.h"
#include "runtime/module_builder.h"
#include "wick.h"

namespace wick {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Tensor filled(IntSpan sizes, double value) {
  return Tensor::full(sizes, value, DType::Float);
}

Module layer() {
  ModuleBuilder builder("Layer");
  builder.registerParameter("weight", filled({2, 2}, 0.5))
      .registerBuffer("offset", filled({2}, 1))
      .registerAttribute("eps", types::Float(), IValue(int64_t{2}))
      .registerConstant("times", IValue(int64_t{3}));
  builder.compile("def scaled(x: Tensor, by: float) -> Tensor:\n    return x * by\n");
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    for _ in range(self.times):\n"
      "        x = torch.relu(x @ self.weight) + self.offset\n"
      "    return scaled(x, self.eps)\n");
  return builder.build();
}

Module net() {
  ModuleBuilder builder("Net");
  builder.registerModule("0", layer()).registerModule("last", layer());
  builder.define(
      "def forward(self, x: Tensor, flip: bool = False) -> Tensor:\n"
      "    y = self.last(x)\n"
      "    return -y if flip else y\n");
  return builder.build();
}

Module reread(const Module& module) {
  std::stringstream stream;
  module.save(stream);
  return load(stream);
}

std::string messageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(ModuleBuilderTest, BuildsRunsAndSaves) {
  const Module built = net();
  const IValue expected = built.forward({filled({1, 2}, 1)});
  const Module again = reread(built);
  EXPECT_TRUE(again.forward({filled({1, 2}, 1)}).equals(expected));
  EXPECT_TRUE(
      again.forward({filled({1, 2}, 1), true}).equals(built.forward({filled({1, 2}, 1), true})));
  EXPECT_EQ(again.saveToString(), built.saveToString());
  EXPECT_EQ(again.parameters().size(), 2u);
  EXPECT_TRUE(again.parameters()[0].second.requiresGrad());
  EXPECT_EQ(again.submodule("0").attr("eps").toDouble(), 2.0);
}

TEST(ModuleBuilderTest, TwoClassesOfOneNameAreTold) {
  // Each layer() has a class __torch__.Layer of its own.
  const std::string bytes = net().saveToString();
  const Module again = loadFromMemory(std::as_bytes(std::span(bytes.data(), bytes.size())));
  EXPECT_NE(again.submodule("0").type()->name(), again.submodule("last").type()->name());
}

TEST(ModuleBuilderTest, SaysWhatIsWrong) {
  EXPECT_THROW(ModuleBuilder("not a name"), UsageError);
  ModuleBuilder builder("Net");
  builder.registerBuffer("x", filled({1}, 0));
  EXPECT_THROW(builder.registerBuffer("x", filled({1}, 0)), UsageError);
  EXPECT_THROW(builder.registerParameter("a.b", filled({1}, 0)), UsageError);
  EXPECT_THROW(builder.registerAttribute("n", types::Int(), IValue("text")), UsageError);
  builder.define("def forward(self) -> int:\n    return self.nothing\n");
  EXPECT_THAT(messageOf([&] { builder.build(); }), HasSubstr("nothing"));
}

TEST(StateDictTest, RoundTrip) {
  const Module from = net(), to = net();
  from.parameters()[0].second.detach().copyFrom(filled({2, 2}, 7));
  const IValue state = from.stateDict();
  std::vector<std::string> names;
  for (const auto& [key, value] : state.toDict().items()) names.push_back(key.toString());
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "0.offset", "last.weight", "last.offset"}));
  to.loadStateDict(state);
  EXPECT_EQ(to.submodule("0").attr("weight").toTensor().data<float>()[3], 7.0f);
}

TEST(StateDictTest, OneErrorListsAllThatDoesNotFit) {
  const Module module = net();
  auto state = makeRef<DictObject>(types::String(), types::Any());
  state->set("0.weight", filled({2, 2}, 9));
  state->set("last.weight", filled({3, 2}, 9));
  state->set("other", filled({1}, 9));
  EXPECT_THAT(messageOf([&] { module.loadStateDict(IValue(state)); }),
              AllOf(HasSubstr("missing: 0.offset, last.offset"), HasSubstr("unexpected: other"),
                    HasSubstr("last.weight (expected float32[2, 2], got float32[3, 2])")));
  EXPECT_EQ(module.submodule("0").attr("weight").toTensor().data<float>()[0], 0.5f);
  state->set("last.weight", filled({2, 2}, 9));
  const Module::StateMismatch mismatch = module.loadStateDict(IValue(state), /*strict=*/false);
  EXPECT_EQ(mismatch.missing.size(), 2u);
  EXPECT_EQ(mismatch.unexpected, (std::vector<std::string>{"other"}));
  EXPECT_EQ(module.submodule("last").attr("weight").toTensor().data<float>()[0], 9.0f);
  EXPECT_THROW(module.loadStateDict(IValue(int64_t{1})), UsageError);
}

TEST(FreezeTest, FrozenModulesAreSaved) {
  const Module module = net();
  EXPECT_THAT(messageOf([&] { freeze(module); }), HasSubstr("training mode"));
  module.eval();
  const IValue expected = module.forward({filled({1, 2}, 1)});
  for (bool optimize : {false, true}) {
    FreezeOptions options;
    options.optimize = optimize;
    const Module frozen = freeze(module, options);
    EXPECT_TRUE(frozen.attributes().empty());
    EXPECT_TRUE(frozen.forward({filled({1, 2}, 1)}).equals(expected));
    const Module again = reread(frozen);
    EXPECT_TRUE(again.forward({filled({1, 2}, 1)}).equals(expected));
    EXPECT_EQ(again.saveToString(), frozen.saveToString());
  }
}

TEST(FreezeTest, WrittenAttributesStay) {
  ModuleBuilder builder("Counter");
  builder.registerBuffer("count", filled({}, 0)).registerBuffer("step", filled({}, 2));
  builder.define(
      "def forward(self) -> Tensor:\n    self.count += self.step\n    return self.count\n");
  const Module module = builder.build();
  module.eval();
  const Module frozen = reread(freeze(module));
  EXPECT_TRUE(frozen.hasAttr("count"));
  EXPECT_FALSE(frozen.hasAttr("step"));
  frozen.forward({});
  EXPECT_EQ(frozen.forward({}).toTensor().data<float>()[0], 4.0f);
}

TEST(SaveTest, WhatHasNoPickledFormIsNamedAndTheOldFileStays) {
  const std::string path = testing::TempDir() + "/save_test.pt";
  writeFile(path, "old");
  ModuleBuilder builder("Net");
  builder.registerAttribute("things", types::Any(), IValue(makeRef<GeneratorObject>(1)));
  const Module inner = builder.build();
  ModuleBuilder outer("Outer");
  outer.registerModule("part", inner);
  const Module module = outer.build();
  EXPECT_THAT(messageOf([&] { module.save(path); }),
              AllOf(HasSubstr("Generator"), HasSubstr("part.things")));
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  EXPECT_THAT(messageOf([&] { layer().save("/no/such/folder/a.pt"); }),
              HasSubstr("/no/such/folder/a.pt"));
  EXPECT_THAT(messageOf([&] { layer().save("/dev/full"); }), HasSubstr("No space left"));
}

TEST(SaveTest, OwnOperatorsAreRefused) {
  const Module module = layer();
  module.eval();
  ModuleBuilder builder("Prepared");
  const auto prepared = optimizeForInference(module.object(), module.method("forward"));
  builder.defineCall("forward", *prepared);
  builder.keep(prepared);
  const Module saved = builder.build();
  EXPECT_THAT(messageOf([&] { saved.saveToString(); }),
              HasSubstr("PyTorch has no operator wick::"));
  SaveOptions options;
  options.for_pytorch = false;
  const std::string bytes = saveModuleToString(saved, options);
  const Module again = loadFromMemory(std::as_bytes(std::span(bytes.data(), bytes.size())));
  EXPECT_TRUE(again.forward({filled({1, 2}, 1)}).equals(saved.forward({filled({1, 2}, 1)})));
}

}  // namespace
}  // namespace wick
