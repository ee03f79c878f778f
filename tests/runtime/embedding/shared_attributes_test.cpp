// Methods of one module that set and read its attributes on several threads at a time: a thread
// may find any value that was set, and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/slot_access.h"
#include "tests/runtime/embedding/workload.h"
#include "wick.h"

namespace wick::shared_attributes_test {
namespace {

constexpr char kCell[] = R"(
class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b

class Cell:
    def __init__(self):
        self.maybe: Optional[Tensor] = None
        self.any: Union[int, str, Tensor, List[int]] = 0
        self.pair = Pair(0, 0)
        self.text = "0"

    def put(self, i: int):
        if i % 2 == 0:
            self.maybe = torch.full([3], i)
        else:
            self.maybe = None
        if i % 4 == 0:
            self.any = i
        elif i % 4 == 1:
            self.any = "text " + str(i)
        elif i % 4 == 2:
            self.any = torch.full([2], i)
        else:
            self.any = [i, i, i]
        self.pair = Pair(i, -i)
        self.text = str(i)

    def get(self) -> int:
        found = 0
        t = self.maybe
        if t is not None:
            if int(t[0]) != int(t[2]):
                raise RuntimeError("half a tensor")
            found += 1
        v = self.any
        if isinstance(v, int):
            if v % 4 != 0:
                raise RuntimeError("half an int")
        elif isinstance(v, str):
            if not v.startswith("text "):
                raise RuntimeError("half a text")
        elif isinstance(v, Tensor):
            if int(v[0]) != int(v[1]):
                raise RuntimeError("half a tensor")
        else:
            if len(v) != 3 or v[0] != v[2]:
                raise RuntimeError("half a list")
        p = self.pair
        if p.a != -p.b:
            raise RuntimeError("half a pair")
        return found + int(self.text)

def make() -> Cell:
    return Cell()

def put(cell: Cell, begin: int, n: int):
    for i in range(begin, begin + n):
        cell.put(i)

def get(cell: Cell, n: int) -> int:
    sum = 0
    for i in range(n):
        sum += cell.get()
    return sum
)";

void runTogether(std::vector<std::function<void()>> work) {
  std::vector<std::thread> threads;
  std::atomic<size_t> ready{0};
  for (const auto& each : work) {
    threads.emplace_back([&, each] {
      ++ready;
      while (ready < work.size()) std::this_thread::yield();
      try {
        each();
      } catch (const std::exception& e) {
        // A plan is made for what attributes held at the beginning of a call, and says so when one
        // of them is gone.
        const std::string_view what = e.what();
        if (what.find("the tensor is undefined") == what.npos) ADD_FAILURE() << what;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedAttributes, AreReadAndSetWhole) {
  const Program program = compile(kCell, "cell.py");
  const IValue cell = program.call("make", {});
  std::vector<std::function<void()>> work;
  const int64_t kTimes = workload(3000);
  for (int64_t t = 0; t < 3; ++t) {
    work.push_back([&, t] { program.call("put", {cell, t * 1'000'000, kTimes}); });
    work.push_back([&] { program.call("get", {cell, kTimes}); });
  }
  runTogether(std::move(work));
}

// Plans are made for dtypes and ranks; a tensor of others may take the attribute's place at any
// moment of a call. Every result is that of one of the tensors.
TEST(SharedAttributes, MayBecomeTensorsOfOtherTypesWhileMethodsRun) {
  ModuleBuilder builder("Holder");
  builder.registerBuffer("state", Tensor::full({4}, 1, DType::Float));
  builder.define(R"(
def forward(self, x: Tensor) -> Tensor:
    a = self.state
    y = torch.relu(a * 2 + x) * 3 - a
    for i in range(3):
        y = torch.clamp(y * 2 - a, -1000, 1000) + x
    return y.sum(-1)
)");
  Module holder = builder.build();
  const std::vector<Tensor> states{
      Tensor::full({4}, 1, DType::Float), Tensor::full({4}, 2, DType::Double),
      Tensor::full({2, 4}, 3, DType::Long), Tensor::full({1}, 4, DType::Float),
      Tensor::full({3, 1, 4}, 5, DType::BFloat16)};
  const Tensor x = Tensor::zeros({4}, DType::Float);
  std::vector<Tensor> expected;
  for (const Tensor& state : states) {
    holder.setAttr("state", IValue(state));
    for (int i = 0; i < 5; ++i) holder.forward({x});  // plans and kernels for each
    expected.push_back(holder.forward({x}).tensor());
  }
  std::vector<std::function<void()>> work;
  for (int t = 0; t < 3; ++t) {
    work.push_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const IValue y(holder.forward({x}).tensor());
        bool known = false;
        for (const Tensor& e : expected) known |= y.equals(IValue(e));
        EXPECT_TRUE(known) << y.str();
      }
    });
  }
  for (size_t t = 0; t < 2; ++t) {
    work.push_back([&, t] {
      for (size_t i = 0; i < 4000; ++i) {
        holder.setAttr("state", IValue(states[(i * (t + 1)) % states.size()]));
      }
    });
  }
  runTogether(std::move(work));
}

// The application's own way to set them.
TEST(SharedAttributes, OfModulesMayBeSetWhileMethodsRun) {
  ModuleBuilder builder("Holder");
  builder.registerBuffer("state", Tensor::full({4}, 1, DType::Float));
  builder.registerAttribute("scale", types::Float(), 1.0);
  builder.define(R"(
def forward(self, x: Tensor) -> Tensor:
    return self.state * self.scale + x

def step(self):
    self.state = self.state + 1.0
    self.scale = self.scale + 1.0
)");
  Module holder = builder.build();
  const Tensor x = Tensor::zeros({4}, DType::Float);
  std::vector<std::function<void()>> work;
  for (int t = 0; t < 2; ++t) {
    work.push_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const Tensor y = holder.forward({x}).tensor();
        EXPECT_EQ(y.data<float>()[0], y.data<float>()[3]);
      }
    });
    work.push_back([&] {
      for (int i = 0; i < 1000; ++i) holder.run("step", {});
    });
    work.push_back([&] {
      for (int i = 0; i < 1000; ++i) {
        holder.setAttr("state", Tensor::full({4}, i, DType::Float));
        holder.setAttr("scale", static_cast<double>(i));
      }
    });
  }
  runTogether(std::move(work));
}

// Values that are replaced go away, also when several threads ran.
TEST(SharedAttributes, GiveUpWhatTheyHeld) {
  const Program program = compile(kCell, "cell.py");
  const IValue cell = program.call("make", {});
  runTogether({[&] { program.call("get", {cell, 10}); }, [&] { program.call("get", {cell, 10}); }});
  const auto memory = std::make_shared<std::vector<float>>(8);
  const std::weak_ptr<const void> alive = memory;
  Object& object = cell.toObject();
  object.setAttr("maybe", Tensor::fromStorage(Storage::borrow(memory->data(), 32, memory),
                                              DType::Float, DimVector{8}, DimVector{1}, 0));
  EXPECT_EQ(alive.use_count(), 2);
  object.setAttr("maybe", IValue());
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_TRUE(object.attr("maybe").isNone());
}

TEST(SharedAttributes, ReadingNests) {
  const SlotReading outer;
  const SlotReading inner;
}

}  // namespace
}  // namespace wick::shared_attributes_test
