// What the printed text of archives may say: operators of old versions, hooks, containers indexed
// by values, the profiler's handles, the classes of the archive itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "runtime/frozen_module.h"
#include "runtime/inference.h"
#include "runtime/ops/program_observer.h"
#include "serialization/python_printer.h"
#include "tests/error_text.h"
#include "tests/serialization/import_testing.h"

namespace wick::imported_source_test {
namespace {

const char kRecord[] = "code/__torch__.py";

std::string archiveWith(const std::string& code, int version = 3) {
  return changed({{kRecord, code}, {"version", std::to_string(version) + "\n"}});
}

Module loaded(const std::string& code, int version = 3) {
  return loadModule(bytesOf(archiveWith(code, version)), "test.pt");
}

// The module of small_module.pt with other methods.
std::string withMethods(const std::string& methods, const std::string& declarations = "") {
  return "class Shifter(Module):\n"
         "  __parameters__ = [\"amount\", ]\n"
         "  __buffers__ = [\"steps\", ]\n" +
         declarations +
         "  amount : Tensor\n"
         "  steps : Tensor\n"
         "  training : bool\n"
         "  _is_full_backward_hook : Optional[bool]\n" +
         methods;
}

Tensor ints(const std::vector<int64_t>& values) {
  Tensor t = Tensor::zeros({static_cast<int64_t>(values.size())}, DType::Long);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

std::vector<double> numbers(const IValue& value) {
  const Tensor t = value.toTensor().to(DType::Double).contiguous();
  return {t.data<double>(), t.data<double>() + t.numel()};
}

using Numbers = std::vector<double>;

// A ModuleDict may hold modules of such names, which PyTorch writes as they are.
TEST(ImportedSource, FieldsMayBeCalledAsKeywords) {
  const Module m = loaded(
      "class C:\n  in : int\n  class : int\n  def __init__(self: __torch__.C,\n    x: int) -> "
      "NoneType:\n"
      "    self.in = x\n    self.class = torch.add(x, 1)\n    return None\n" +
      withMethods("  def forward(self: __torch__.Shifter,\n    x: int) -> int:\n"
                  "    c = __torch__.C.__new__(__torch__.C)\n    _0 = (c).__init__(x, )\n"
                  "    in0 = c.in\n    return torch.add(in0, c.class)\n"));
  EXPECT_EQ(m.run("forward", {5}).toInt(), 11);
}

TEST(ImportedSource, CastsAreChecked) {
  const Module m = loaded(withMethods(
      "  def forward(self: __torch__.Shifter,\n    x: Any) -> int:\n    y = unchecked_cast(int, "
      "x)\n"
      "    return torch.add(y, 1)\n"
      "  def optional(self: __torch__.Shifter,\n    x: Optional[Tensor]) -> Tensor:\n"
      "    _0 = torch.__isnot__(x, None)\n    if _0:\n      y = unchecked_cast(Tensor, x)\n"
      "      z = torch.neg(y)\n    else:\n      z = torch.ones([1])\n    return z\n"));
  EXPECT_EQ(m.run("forward", {5}).toInt(), 6);
  EXPECT_THROW(m.run("forward", {"text"}), RuntimeError);
  EXPECT_EQ(numbers(m.run("optional", {ints({2})})), Numbers{-2});
  EXPECT_EQ(numbers(m.run("optional", {IValue()})), Numbers{1});
}

// Traced numbers are constants of dtype float64, and computed with as numbers are: with PyTorch 1.13
// these are the dtypes.
TEST(TracedArchives, NumbersDoNotWidenTheResult) {
  const Module m = loadModule(dataPath("traced_numbers.pt"));
  const DType expected[] = {DType::Float, DType::Float,  DType::Float,
                            DType::Float, DType::Double, DType::Double};
  for (int call = 0; call < 3; ++call) {
    const IValue results = m.forward({ints({0, 1, 2})});
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(results.elements()[i].toTensor().dtype(), expected[i]) << i;
    }
  }
  EXPECT_EQ(numbers(m.forward({ints({3, 5})}).elements()[0]), (Numbers{1.5, 2.5}));
}

TEST(OldVersions, DivisionTruncatedIntegersUpToThree) {
  const std::string code = withMethods(
      "  def tensors(self, a: Tensor, b: Tensor) -> Tensor:\n"
      "    return torch.div(a, b)\n"
      "  def number(self, a: Tensor, b: int) -> Tensor:\n"
      "    return torch.div(a, b)\n"
      "  def real(self, a: Tensor, b: float) -> Tensor:\n"
      "    return torch.div(a, b)\n"
      "  def in_place(self, a: Tensor, b: Tensor) -> Tensor:\n"
      "    return torch.div_(a, b)\n"
      "  def into(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:\n"
      "    return torch.div(a, b, out=c)\n"
      "  def floor(self, a: Tensor, b: Tensor) -> Tensor:\n"
      "    return torch.div(a, b, rounding_mode=\"floor\")\n"
      "  def ints(self, a: int, b: int) -> float:\n"
      "    return torch.div(a, b)\n");
  const Tensor a = ints({7, -7});
  const Tensor b = ints({2, 2});
  for (int version : {2, 3}) {
    Module old = loaded(code, version);
    EXPECT_EQ(numbers(old.run("tensors", {a, b})), (Numbers{3, -3}));
    EXPECT_EQ(old.run("tensors", {a, b}).toTensor().dtype(), DType::Long);
    EXPECT_EQ(numbers(old.run("tensors", {a.to(DType::Float), b})), (Numbers{3.5, -3.5}));
    EXPECT_EQ(numbers(old.run("number", {a, 2})), (Numbers{3, -3}));
    EXPECT_EQ(numbers(old.run("real", {a, 2.0})), (Numbers{3.5, -3.5}));
    EXPECT_EQ(numbers(old.run("in_place", {a.clone(), b})), (Numbers{3, -3}));
    EXPECT_EQ(numbers(old.run("into", {a, b, ints({0, 0})})), (Numbers{3, -3}));
    const Tensor floats = Tensor::zeros({2}, DType::Float);
    EXPECT_EQ(numbers(old.run("into", {a, b, floats})), (Numbers{3.5, -3.5}));
    EXPECT_EQ(numbers(old.run("floor", {a, b})), (Numbers{3, -4}));
    EXPECT_EQ(old.run("ints", {7, 2}).toDouble(), 3.5);
  }
  EXPECT_EQ(numbers(loaded(code, 4).run("tensors", {a, b})), (Numbers{3.5, -3.5}));
  EXPECT_EQ(numbers(loaded(code, 4).run("number", {a, 2})), (Numbers{3.5, -3.5}));
}

TEST(OldVersions, FullMadeFloatsUpToFour) {
  const std::string code = withMethods(
      "  def full(self, n: int) -> Tensor:\n"
      "    return torch.full([2], n)\n"
      "  def typed(self, n: int) -> Tensor:\n"
      "    return torch.full([2], n, dtype=3)\n"
      "  def real(self) -> Tensor:\n"
      "    return torch.full([2], 2.5)\n"
      "  def into(self, n: int, out: Tensor) -> Tensor:\n"
      "    return torch.full([2], n, out=out)\n");
  Module old = loaded(code, 4);
  EXPECT_EQ(old.run("full", {3}).toTensor().dtype(), DType::Float);
  EXPECT_EQ(old.run("typed", {3}).toTensor().dtype(), DType::Int);
  EXPECT_EQ(numbers(old.run("real", {})), (Numbers{2.5, 2.5}));
  EXPECT_EQ(old.run("into", {3, ints({0, 0})}).toTensor().dtype(), DType::Long);
  EXPECT_EQ(loaded(code, 5).run("full", {3}).toTensor().dtype(), DType::Long);
}

TEST(OldVersions, StepsHadADefaultUpToSevenAndEight) {
  const std::string linspace = withMethods(
      "  def f(self) -> Tensor:\n"
      "    return torch.linspace(0, 1, None)\n"
      "  def g(self, n: int, out: Tensor) -> Tensor:\n"
      "    return torch.linspace(0, 1, n, out=out)\n");
  EXPECT_EQ(loaded(linspace, 7).run("f", {}).toTensor().numel(), 100);
  EXPECT_EQ(numbers(loaded(linspace, 7).run("g", {3, Tensor::zeros({3}, DType::Float)})),
            (Numbers{0, 0.5, 1}));
  EXPECT_THROW(loaded(linspace, 8).run("f", {}), CompileError);

  const std::string logspace = withMethods(
      "  def f(self) -> Tensor:\n"
      "    return torch.logspace(0, 1, None)\n"
      "  def g(self, n: int, out: Tensor) -> Tensor:\n"
      "    return torch.logspace(0, 2, n, 2., out=out)\n");
  EXPECT_EQ(loaded(logspace, 8).run("f", {}).toTensor().numel(), 100);
  EXPECT_EQ(numbers(loaded(logspace, 8).run("g", {3, Tensor::zeros({3}, DType::Float)})),
            (Numbers{1, 2, 4}));
  EXPECT_THROW(loaded(logspace, 9).run("f", {}), CompileError);
}

TEST(OldVersions, GeluHadOneFormUpToNine) {
  const std::string code = withMethods(
      "  def f(self, x: Tensor) -> Tensor:\n"
      "    return torch.gelu(x)\n");
  const Tensor one = Tensor::full({1}, 1.0, DType::Double);
  for (int version : {9, 10}) {
    EXPECT_NEAR(numbers(loaded(code, version).run("f", {one}))[0], 0.8413447460685429, 1e-12);
  }
}

const char kHooked[] =
    "  def forward(self, x: int, y: int) -> int:\n"
    "    return torch.add(torch.mul(x, 10), y)\n"
    "  def swap(self, inputs: Tuple[int, int]) -> Tuple[int, int]:\n"
    "    a, b, = inputs\n"
    "    return (b, a)\n"
    "  def look(self, inputs: Tuple[int, int]) -> NoneType:\n"
    "    return None\n"
    "  def grow(self, inputs: Tuple[int, int], out: int) -> int:\n"
    "    return torch.add(torch.mul(out, 100), (inputs)[0])\n";
const char kHookNames[] =
    "  __forward_pre_hooks__ = [\"swap\", \"look\", ]\n"
    "  __forward_hooks__ = [\"grow\", ]\n";

TEST(Hooks, RunWhenTheModuleIsCalled) {
  Module module = loaded(withMethods(kHooked, kHookNames));
  EXPECT_TRUE(module.hasHooks());
  EXPECT_EQ(module({3, 4}).toInt(), 4304);
  // By its name, the method alone.
  EXPECT_EQ(module.forward({3, 4}).toInt(), 34);
  // Hooks see positional arguments only, here one of two.
  EXPECT_THROW(module({3}, {{"y", 4}}), UsageError);
  EXPECT_THAT(module.methodNames(), testing::Not(testing::Contains("swap")));
  // Frozen and prepared modules do what they do.
  module.eval();
  EXPECT_EQ(freeze(module)({3, 4}).toInt(), 4304);
  EXPECT_EQ(freeze(module).forward({3, 4}).toInt(), 4304);
  EXPECT_EQ(optimizeForInference(module)({3, 4}).toInt(), 4304);
}

TEST(Hooks, SayWhatTheyReplaceBeforeTheyArePartOfFrozenCode) {
  const std::string forward =
      "  def forward(self, x: int) -> int:\n"
      "    return torch.add(x, 1)\n";
  const auto errorOfHook = [&](const std::string& hook, const std::string& names) {
    Module module = loaded(withMethods(forward + hook, names));
    module.eval();
    return testing_errors::errorOf([&] { freeze(module); });
  };
  const std::string before = "  __forward_pre_hooks__ = [\"h\", ]\n";
  const std::string after = "  __forward_hooks__ = [\"h\", ]\n";
  EXPECT_THAT(errorOfHook("  def h(self, inputs: Tuple[int], out: int) -> Optional[int]:\n"
                          "    _0 : Optional[int] = None\n"
                          "    if torch.gt(out, 3):\n"
                          "      _0 = out\n"
                          "    else:\n"
                          "      _0 = None\n"
                          "    return _0\n",
                          after),
              testing::HasSubstr("the hook h returns Optional[int]"));
  EXPECT_THAT(errorOfHook("  def h(self, inputs: Tuple[int]) -> Tuple[int, int]:\n"
                          "    return (1, 2)\n",
                          before),
              testing::HasSubstr("which forward does not take"));
  EXPECT_THAT(errorOfHook("  def h(self, inputs: Tuple[int]) -> str:\n"
                          "    return \"x\"\n",
                          before),
              testing::HasSubstr("which forward does not take"));
  EXPECT_THAT(errorOfHook("  def h(self, inputs: Tuple[str], out: int) -> int:\n"
                          "    return 1\n",
                          after),
              testing::HasSubstr("the hook h takes Tuple[str]"));
  Module module = loaded(withMethods(forward + "  def h(self, inputs: Tuple[int]) -> int:\n"
                                               "    return torch.mul((inputs)[0], 10)\n",
                                     before));
  module.eval();
  EXPECT_EQ(freeze(module)({3}).toInt(), 31);
}

TEST(Hooks, AModuleWithoutHooksIsItsForward) {
  Module module = loaded(withMethods(kHooked));
  EXPECT_FALSE(module.hasHooks());
  EXPECT_EQ(module({3}, {{"y", 4}}).toInt(), 34);
}

TEST(Printer, ContainersAreIndexedWithBrackets) {
  Module module = loaded(
      "class Call(ModuleInterface):\n"
      "  def forward(self, x: int) -> int:\n"
      "    pass\n"
      "class List(Module):\n"
      "  def __len__(self) -> int:\n"
      "    return 0\n" +
      withMethods("  def at(self, modules: __torch__.List, i: int) -> int:\n"
                  "    value : __torch__.Call = modules[i]\n"
                  "    return (value).forward(2, )\n"));
  EXPECT_THAT(printPython(module.method("at"), false),
              testing::HasSubstr("value : __torch__.Call = modules[i]\n"));
}

// Only the type of None must be said.
TEST(Printer, UnwrappedOptionals) {
  Module module =
      loaded(withMethods("  def some(self, x: Optional[int]) -> int:\n"
                         "    return torch._unwrap_optional(x)\n"));
  EXPECT_THAT(printPython(module.method("some"), false),
              testing::HasSubstr("torch._unwrap_optional(x)"));
}

struct Recorded : ProgramObserver {
  std::vector<std::string> events;
  void beginRange(int64_t, const std::string& name, const std::string* arguments) override {
    events.push_back("begin " + name + (arguments != nullptr ? " " + *arguments : ""));
  }
  void endRange(int64_t) override { events.push_back("end"); }
  void addToStatistic(const std::string& key, int64_t value) override {
    events.push_back(key + " " + std::to_string(value));
  }
};

TEST(ProgramObserver, SeesRangesAndStatistics) {
  // The handle is a tensor in archives up to PyTorch 1.13 and an object in later ones, whose class
  // the archive repeats.
  const std::string code =
      withMethods(
          "  def old(self) -> int:\n"
          "    handle = ops.profiler._record_function_enter(\"a\", None)\n"
          "    ops.prim.AddStatValue(\"n\", 3)\n"
          "    ops.profiler._record_function_exit(handle)\n"
          "    return 1\n"
          "  def new(self) -> int:\n"
          "    h : Optional[__torch__.torch.classes.profiler._RecordFunction] = None\n"
          "    h0 : __torch__.torch.classes.profiler._RecordFunction = "
          "ops.profiler._record_function_enter_new(\"b\", \"args\")\n"
          "    h1 : Optional[__torch__.torch.classes.profiler._RecordFunction] = h0\n"
          "    h2 = unchecked_cast(__torch__.torch.classes.profiler._RecordFunction, h1)\n"
          "    ops.profiler._record_function_exit(h2)\n"
          "    return 2\n"
          "  def asynchronous(self) -> int:\n"
          "    handle = ops.profiler._record_function_enter(\"c\", None)\n"
          "    future = fork(__torch__.work, 5, )\n"
          "    future0 = ops.profiler._call_end_callbacks_on_jit_fut(handle, future)\n"
          "    return torch.wait(future0)\n"
          "  def wrong(self, t: Tensor) -> int:\n"
          "    ops.profiler._record_function_exit(t)\n"
          "    return 1\n") +
      "def work(n: int) -> int:\n"
      "  return torch.add(n, 1)\n";
  Module module = loaded(code);
  auto recorded = std::make_shared<Recorded>();
  EXPECT_EQ(setProgramObserver(recorded), nullptr);
  EXPECT_EQ(module.run("old", {}).toInt(), 1);
  EXPECT_EQ(module.run("new", {}).toInt(), 2);
  EXPECT_EQ(setProgramObserver(nullptr), recorded);
  EXPECT_THAT(recorded->events,
              testing::ElementsAre("begin a", "n 3", "end", "begin b args", "end"));
  EXPECT_EQ(module.run("asynchronous", {}).toInt(), 6);
  EXPECT_EQ(module.run("old", {}).toInt(), 1);
  EXPECT_EQ(recorded->events.size(), 5u);
  EXPECT_THROW(module.run("wrong", {ints({0})}), RuntimeError);
  EXPECT_THROW(module.run("wrong", {Tensor::zeros({2}, DType::Float)}), RuntimeError);
}

// OrderedDict() of a scripted module.
TEST(ImportedSource, EmptyDictsHoldTensorsByName) {
  Module module =
      loaded(withMethods("  def collect(self, x: Tensor) -> Dict[str, Tensor]:\n"
                         "    out = torch.dict()\n"
                         "    _0 = torch._set_item(out, \"x\", x)\n"
                         "    return out\n"));
  EXPECT_EQ(module.run("collect", {ints({3})}).type()->str(), "Dict(str, Tensor)");
}

// A tool loads what does not compile, too, and asks again: the second time it gets further, to a module
// that nothing has read yet. The archive must still be there.
TEST(ImportedSource, FunctionsThatFailedMayBeAskedAgain) {
  const std::string archive =
      changed({{kRecord, withMethods("  def forward(self, x: Tensor) -> Tensor:\n"
                                     "    return __torch__.broken.inner.twice(x)\n")},
               {"code/__torch__/broken.py", "return 1\n"},
               {"code/__torch__/broken/inner.py",
                "def twice(x: Tensor) -> Tensor:\n  return x.nothing()\n"}});
  CompileErrors errors = CompileErrors::unlimited();
  LoadOptions options;
  options.compile_errors = &errors;
  const Module module = loadModule(bytesOf(archive), "test.pt", options);
  EXPECT_FALSE(errors.all().empty());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(module.findMethod("forward")->ensureDefined(), CompileError);
  }
}

TEST(ImportedArchive, OfPyTorchTwoUsesRecordFunction) {
  Module module = loadModule(dataPath("record_function_2_11.pt"));
  auto recorded = std::make_shared<Recorded>();
  setProgramObserver(recorded);
  EXPECT_EQ(numbers(module.forward({Tensor::full({1}, 1.0, DType::Float)})), (Numbers{6}));
  setProgramObserver(nullptr);
  EXPECT_THAT(recorded->events, testing::ElementsAre("begin hello", "end"));
}

}  // namespace
}  // namespace wick::imported_source_test
