// Modules built in C++, their state, frozen ones, and all of it saved.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/output_file.h"
#include "runtime/inference.h"
#include "runtime/module_builder.h"
#include "wick.h"

namespace wick::saved_modules_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
  state->set("last.weight", compile("def main(x: Tensor):\n    return x.to_sparse()\n")
                                .call("main", {filled({2, 2}, 9)}));
  EXPECT_THAT(messageOf([&] { module.loadStateDict(IValue(state)); }),
              HasSubstr("last.weight (expected a dense tensor, got a sparse one)"));
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

TEST(FreezeTest, ForksOfAMethodAreItsNodes) {
  ModuleBuilder builder("Forks");
  builder.registerBuffer("count", filled({}, 1));
  builder.define(
      "def count_up(self, n: int) -> Tensor:\n    return self.count + n\n"
      "def twice(self, n: int) -> Tensor:\n"
      "    return torch.jit.wait(torch.jit.fork(self.count_up, n)) * 2\n"
      "def forward(self) -> Tensor:\n    f = torch.jit.fork(self.twice, 1)\n    return "
      "torch.jit.wait(f) + 1\n");
  const Module module = builder.build();
  module.eval();
  const IValue expected = module.forward({});
  for (bool optimize : {false, true}) {
    FreezeOptions options;
    options.optimize = optimize;
    const Module frozen = reread(freeze(module, options));
    EXPECT_TRUE(frozen.forward({}).equals(expected));
    EXPECT_TRUE(frozen.attributes().empty());
  }
}

TEST(FreezeTest, AModuleThatIsGivenAwayIsRefused) {
  ModuleBuilder builder("Forks");
  builder.registerBuffer("count", filled({}, 1));
  // Nobody knows how often this is waited for.
  builder.define(
      "def count_up(self, n: int) -> Tensor:\n    return self.count + n\n"
      "def forward(self) -> Tensor:\n    futures = [torch.jit.fork(self.count_up, 1)]\n"
      "    return torch.jit.wait(futures[0])\n");
  const Module module = builder.build();
  module.eval();
  EXPECT_EQ(module.forward({}).toTensor().data<float>()[0], 2.0f);
  EXPECT_THAT(messageOf([&] { freeze(module); }),
              HasSubstr("freeze: expected that Forks only reads and sets its attributes, found it "
                        "given to prim::fork"));
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

// What optimizeForInference made of a method, as a module.
Module prepared(const Module& module) {
  module.eval();
  ModuleBuilder builder("Prepared");
  const auto function = optimizeForInference(module.object(), module.method("forward"));
  builder.defineCall("forward", *function);
  builder.keep(function);
  return builder.build();
}

bool close(const Tensor& a, const Tensor& b) {
  if (DimVector(a.sizes()) != DimVector(b.sizes())) return false;
  const auto x = a.contiguous(), y = b.contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (std::fabs(x.data<float>()[i] - y.data<float>()[i]) > 1e-4) return false;
  }
  return true;
}

std::string codeOf(const Module& module) {
  const ModuleArchive archive(module);
  std::string text;
  for (const auto& [name, code] : archive.code()) text += code;
  return text;
}

TEST(SaveTest, PreparedLayersAreTakenApart) {
  const Module saved = prepared(layer());
  const std::string code = codeOf(saved);
  EXPECT_THAT(code, AllOf(HasSubstr("torch.linear("), HasSubstr("torch.relu(")));
  EXPECT_THAT(code, Not(HasSubstr("wick")));
  const Module again = reread(saved);
  EXPECT_TRUE(close(again.forward({filled({1, 2}, 1)}).tensor(),
                    saved.forward({filled({1, 2}, 1)}).tensor()));
  EXPECT_EQ(again.saveToString(), saved.saveToString());
  // For Wick alone they may stay.
  SaveOptions options;
  options.for_pytorch = false;
  const std::string bytes = saveModuleToString(saved, options);
  EXPECT_THAT(bytes, HasSubstr("ops.wick.linear_fused"));
  const Module own = loadFromMemory(std::as_bytes(std::span(bytes.data(), bytes.size())));
  EXPECT_TRUE(own.forward({filled({1, 2}, 1)}).equals(saved.forward({filled({1, 2}, 1)})));
}

TEST(SaveTest, PreparedConvolutionsAreTakenApart) {
  Tensor first = Tensor::zeros({4, 3, 3, 3}, DType::Float), second = filled({4, 4, 1, 1}, 0.25);
  for (int64_t i = 0; i < first.numel(); ++i) first.data<float>()[i] = float(i % 7) - 3;
  ModuleBuilder builder("Residual");
  builder.registerParameter("first", first)
      .registerParameter("second", second)
      .registerBuffer("bias", filled({4}, 0.5));
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    y = torch.relu(torch.conv2d(x, self.first, self.bias, [1, 1], [1, 1]))\n"
      "    z = torch.relu_(torch.conv2d(y, self.second).add_(y))\n"
      "    return torch.sigmoid(torch.conv2d(z, self.second, self.bias)) + \\\n"
      "        torch.gelu(torch.conv2d(y, self.second)) + \\\n"
      "        torch.nn.functional.hardtanh(torch.conv2d(x, self.first, None, 1, 1), 0., 6.)\n");
  const Module module = builder.build();
  const Tensor x = Tensor::zeros({2, 3, 5, 6}, DType::Float);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = float(i % 11) / 8 - 0.5f;
  const Tensor expected = module.forward({x}).tensor();
  const Module saved = prepared(module);
  const std::string code = codeOf(saved);
  for (const char* part : {"torch.conv2d(", "torch.add_(", "torch.relu(", "torch.sigmoid(",
                           "torch.gelu(", "torch.relu6("}) {
    EXPECT_THAT(code, HasSubstr(part));
  }
  EXPECT_THAT(code, Not(HasSubstr("wick")));
  const Module again = reread(saved);
  const Tensor found = again.forward({x}).tensor();
  EXPECT_TRUE(close(found, expected));
  // The layout of the weights was the kernels' matter.
  EXPECT_TRUE(found.isContiguous());
  EXPECT_EQ(again.saveToString(), saved.saveToString());
}

TEST(SaveTest, OperatorsThatPyTorchLacksAreRefused) {
  ModuleBuilder builder("Net");
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    return torch.ops.wick.upsample(x, [4, 4], 'nearest', False, [1.0, 1.0])\n");
  const Module module = builder.build();
  EXPECT_THAT(messageOf([&] { module.saveToString(); }),
              HasSubstr("PyTorch has no operator wick::upsample"));
}

// A process that may write no more than so many bytes a file finds the disk full.
TEST(SaveTest, AFullDiskLeavesTheOldFile) {
  const std::string folder = testing::TempDir() + "/save_full";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  writeFile(folder + "/a.pt", "old");
  ModuleBuilder builder("Large");
  builder.registerParameter("weight", filled({1 << 18}, 1));
  builder.define("def forward(self) -> Tensor:\n    return self.weight\n");
  const Module module = builder.build();
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = messageOf([&] { module.save(folder + "/a.pt"); });
    ::_exit(message.find("File too large") != std::string::npos ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(std::filesystem::file_size(folder + "/a.pt"), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

// A process that is killed while it saves leaves the old file and nothing beside it, or the new
// one.
TEST(SaveTest, AKillLeavesOneWholeFile) {
  const std::string folder = testing::TempDir() + "/save_killed";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const int nameless = ::open(folder.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) GTEST_SKIP() << "the file system has only files with names";
  ::close(nameless);
  const std::string path = folder + "/a.pt";
  const auto model = [](double value) {
    ModuleBuilder builder("Large");
    builder.registerParameter("weight", filled({1 << 20}, value));
    builder.define("def forward(self) -> Tensor:\n    return self.weight\n");
    return builder.build();
  };
  const Module old = model(1), fresh = model(2);
  old.save(path);
  for (useconds_t wait : {0, 200, 1000, 3000, 10000}) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::write(pipe[1], "!", 1) != 1) ::_exit(1);
      for (;;) fresh.save(folder + "/b.pt");
    }
    char started = 0;
    ASSERT_EQ(::read(pipe[0], &started, 1), 1);
    ::usleep(wait);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(pipe[0]);
    ::close(pipe[1]);
    EXPECT_EQ(load(path).forward({}).tensor().data<float>()[0], 1);
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      ++files;
      // Between two names, for a few microseconds, a replacing file has a hidden one; it is whole.
      EXPECT_EQ(load(entry.path()).parameters().size(), 1u) << entry.path();
    }
    EXPECT_LE(files, 2u);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path() != path) std::filesystem::remove(entry.path());
    }
  }
}

}  // namespace
}  // namespace wick::saved_modules_test
