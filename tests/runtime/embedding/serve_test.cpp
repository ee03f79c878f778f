// Threads that share modules, programs and tensors.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "core/stripes.h"
#include "ir/function.h"
#include "ir/parser.h"
#include "tests/runtime/embedding/workload.h"
#include "tests/same_bits.h"
#include "wick.h"

namespace wick::serve_test {
namespace {

using testing_tensors::sameBits;

constexpr int kThreads = 32;
const char* const kDigits = "examples/digits.pt";

// All at a time, so that none has the number of another that has ended.
template <class F>
void onThreads(F&& f) {
  std::vector<std::thread> threads;
  std::barrier all(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&f, &all, t] {
      threadStripe();
      all.arrive_and_wait();
      f(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Tensor image() {
  Tensor t = Tensor::empty({1, 1, 28, 28}, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i % 13) / 13;
  return t;
}

// class M: weight: Tensor, with methods made of IR text, in which `M` is the class.
class OwnModule {
 public:
  OwnModule() {
    type = std::make_shared<ClassType>("__torch__.M", true);
    type->addAttribute("weight", types::Tensor(), true);
    unit->registerType("__torch__.M", type);
    object = makeRef<Object>(type, unit);
    object->setAttr("weight", Tensor::full({8}, 2, DType::Float));
  }
  void define(const std::string& name, const std::string& text) {
    auto graph = parseGraph(text, [this](const std::string& found) -> TypePtr {
      return found == "__torch__.M" ? TypePtr(type) : nullptr;
    });
    type->addMethod(unit->createFunction("__torch__.M." + name, graph));
  }
  IValue call(const std::string& name, std::vector<IValue> arguments) const {
    return Module(object).run(name, std::move(arguments));
  }

  std::shared_ptr<CompilationUnit> unit = std::make_shared<CompilationUnit>();
  ClassTypePtr type;
  ObjectRef object;
};

TEST(Serving, ThreadsGetTheSameResultsFromOneModule) {
  const Module module = load(kDigits);
  module.eval();
  const auto frozen = optimizeForInference(module.object(), module.method("forward"));
  const Tensor x = image();
  const Tensor expected = module.forward({x}).toTensor();
  const Tensor expected_frozen = callFunction(*frozen, {x}).toTensor();
  std::atomic<int> wrong{0};
  onThreads([&](int t) {
    const Tensor own = t % 2 == 0 ? x : x.clone();
    for (int i = 0; i < workload(100); ++i) {
      wrong += !sameBits(module.forward({own}).toTensor(), expected);
      wrong += !sameBits(callFunction(*frozen, {own}).toTensor(), expected_frozen);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(x.impl()->useCount(), 1u);
}

// Whoever served it, a module takes its memory with it when it ends.
TEST(Serving, ModulesEndAfterManyThreadsRanThem) {
  const Tensor x = image();
  const auto serve = [&] {
    Module module = load(kDigits);
    module.eval();
    module.forward({x});
    onThreads([&](int) {
      for (int i = 0; i < 5; ++i) module.forward({x});
    });
    EXPECT_TRUE(module.parameters()[0].second.impl()->isPinned());
  };
  serve();
  const size_t before = allocatedBytes();
  for (int i = 0; i < 3; ++i) serve();
  EXPECT_EQ(allocatedBytes(), before);
}

// What a call returned lives on when the module has ended, and is freed by whatever thread.
TEST(Serving, ResultsOutliveTheModule) {
  const size_t before = allocatedBytes();
  std::vector<IValue> results(kThreads);
  {
    OwnModule m;
    m.define("forward", R"(graph(%self : __torch__.M):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  return (%w))");
    onThreads([&](int t) { results[static_cast<size_t>(t)] = m.call("forward", {}); });
    EXPECT_TRUE(results[0].rawObject()->isPinned());
  }
  EXPECT_FALSE(results[0].rawObject()->isPinned());
  EXPECT_EQ(results[0].rawObject()->useCount(), uint32_t{kThreads});
  onThreads([&](int t) {
    EXPECT_EQ(results[static_cast<size_t>(t)].toTensor().data<float>()[7], 2);
    results[static_cast<size_t>(t)] = IValue();
  });
  EXPECT_EQ(allocatedBytes(), before);
}

// A method replaces the attribute that it goes on to use.
TEST(Serving, AttributesAreReplacedWhileTheyAreUsed) {
  OwnModule m;
  m.define("forward", R"(graph(%self : __torch__.M, %x : Tensor):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %one : int = prim::Constant[value=1]()
  %new : Tensor = aten::add(%w, %x, %one)
   = prim::SetAttr[name="weight"](%self, %new)
  %y : Tensor = aten::add(%w, %new, %one)
  return (%y))");
  m.define("read", R"(graph(%self : __torch__.M):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  return (%w))");
  const Tensor one = Tensor::full({8}, 1, DType::Float);
  onThreads([&](int) { m.call("read", {}); });
  const size_t before = allocatedBytes();
  for (int i = 0; i < 100; ++i) {
    const Tensor y = m.call("forward", {one}).toTensor();
    EXPECT_EQ(y.data<float>()[0], static_cast<float>(2 * (2 + i) + 1));
  }
  EXPECT_EQ(allocatedBytes(), before);
}

// The module itself is lent to the call, wherever the call leaves it.
TEST(Serving, ModulesThatReturnOrForgetThemselves) {
  OwnModule m;
  m.define("itself", R"(graph(%self : __torch__.M):
  return (%self))");
  m.define("nothing", R"(graph(%self : __torch__.M, %x : int):
  return (%x))");
  m.define("pair", R"(graph(%self : __torch__.M, %b : bool):
  %y : (__torch__.M, __torch__.M) = prim::If(%b)
    block0():
      %t : (__torch__.M, __torch__.M) = prim::TupleConstruct(%self, %self)
      -> (%t)
    block1():
      %message : str = prim::Constant[value="no"]()
      %u : (__torch__.M, __torch__.M) = prim::Uninitialized()
       = prim::RaiseException(%message)
      -> (%u)
  return (%y))");
  for (int i = 0; i < 3; ++i) {
    {
      const IValue self = m.call("itself", {});
      EXPECT_EQ(self.rawObject(), m.object.get());
      EXPECT_EQ(m.object->useCount(), 2u);
    }
    EXPECT_EQ(m.call("nothing", {5}).toInt(), 5);
    EXPECT_EQ(m.call("pair", {true}).elements().size(), 2u);
    EXPECT_THROW(m.call("pair", {false}), RuntimeError);
    EXPECT_THROW(m.call("nothing", {"text"}), UsageError);
    EXPECT_EQ(m.object->useCount(), 1u);
  }
}

// Objects hold the program that made them, counted once a run.
TEST(Serving, ObjectsOutliveTheProgram) {
  IValue made;
  {
    const Program program = compile(R"(
class Point:
    def __init__(self, x: int):
        self.x = x
    def twice(self) -> int:
        return 2 * self.x

def make(n: int) -> List[Point]:
    return [Point(i) for i in range(n)]
)");
    const long before = program.unit().use_count();
    made = program.call("make", {3});
    onThreads([&](int) {
      for (int i = 0; i < 50; ++i) program.call("make", {10});
    });
    EXPECT_EQ(program.unit().use_count(), before + 1);
  }
  const ObjectRef last(&made.elements()[2].toObject());
  made = IValue();
  auto* twice = dynamic_cast<GraphFunction*>(last->type()->findMethod("twice"));
  ASSERT_TRUE(twice);
  EXPECT_EQ(callMethod(last, *twice, {}).toInt(), 4);
}

}  // namespace
}  // namespace wick::serve_test
