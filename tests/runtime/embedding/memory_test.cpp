// Memory of programs that run again and again, and memory that operators use again.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/allocator.h"
#include "runtime/jit_mode.h"
#include "runtime/threads.h"
#include "wick.h"

namespace wick::memory_test {
namespace {

const char* const kSource = R"(
def mlp(x: Tensor, w: List[Tensor], b: List[Tensor]) -> Tensor:
    for i in range(len(w)):
        x = torch.relu(torch.nn.functional.linear(x, w[i], b[i]))
    return x

def lstm(xs: Tensor, h: Tensor, c: Tensor, wi: Tensor, wh: Tensor) -> Tuple[Tensor, Tensor]:
    for t in range(xs.size(0)):
        gates = torch.mm(xs[t], wi.t()) + torch.mm(h, wh.t())
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h, c

def heads(x: Tensor, n: int) -> Tensor:
    return x.view(x.size(0), x.size(1), n, x.size(2) // n).transpose(1, 2)

def layer(x: Tensor, qkv: Tensor, out: Tensor, up: Tensor, down: Tensor) -> Tensor:
    n = 4
    y = torch.nn.functional.layer_norm(x, [x.size(2)])
    q, k, v = torch.nn.functional.linear(y, qkv).chunk(3, -1)
    s = torch.matmul(heads(q, n), heads(k, n).transpose(2, 3)) / 4.0
    a = torch.matmul(torch.softmax(s, -1), heads(v, n)).transpose(1, 2).reshape(x.size())
    x = x + torch.nn.functional.linear(a, out)
    y = torch.nn.functional.layer_norm(x, [x.size(2)])
    y = torch.nn.functional.gelu(torch.nn.functional.linear(y, up))
    return x + torch.nn.functional.linear(y, down)

def chain(x: Tensor) -> Tensor:
    return torch.relu(x * 2 - 3) + 1

def viewed(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x + 1
    z = y[1:]
    return torch.relu(y - 2).mul(5), z

def listed(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x + 1
    l = [y]
    return torch.neg(y), l[0]

def itself(x: Tensor) -> Tensor:
    y = x + 1
    return y * y

def narrowed(x: Tensor) -> Tensor:
    return torch.neg((x + 1)[1:2])

def widened(x: Tensor, y: Tensor) -> Tensor:
    return (x + 1) + y

def compared(x: Tensor) -> Tensor:
    return (x + 1) > 2

def promoted(x: Tensor) -> Tensor:
    return (x + 1) * 0.5

def scaled(x: Tensor) -> Tensor:
    return 1.0 - (x + 1)
)";

Tensor random(std::vector<int64_t> sizes, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> value(0, 0.2f);
  Tensor t = Tensor::empty(DimVector(sizes), DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = value(engine);
  return t;
}

IValue randoms(size_t count, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < count; ++i) all.push_back(random(sizes, static_cast<uint32_t>(i)));
  return IValue(makeTensorList(all));
}

struct Case {
  const char* function;
  std::vector<IValue> (*arguments)(int64_t batch);
};

const Case kCases[] = {
    {"mlp",
     [](int64_t n) {
       return std::vector<IValue>{random({n, 64}, 1), randoms(8, {64, 64}), randoms(8, {64})};
     }},
    {"lstm",
     [](int64_t n) {
       return std::vector<IValue>{random({16, n, 64}, 1), random({n, 128}, 2), random({n, 128}, 3),
                                  random({512, 64}, 4), random({512, 128}, 5)};
     }},
    {"layer",
     [](int64_t n) {
       return std::vector<IValue>{random({n, 48, 64}, 1), random({192, 64}, 2), random({64, 64}, 3),
                                  random({256, 64}, 4), random({64, 256}, 5)};
     }},
};

// Machine code is made by the thread that runs, or not at all: what a program asks for would
// otherwise depend on when another thread has finished compiling. And with one thread, because how
// many are used depends on what else runs on the machine (core/parallel.h), and each has its buffers.
class Steady : public ::testing::TestWithParam<std::tuple<Case, JitMode>> {
 protected:
  void SetUp() override {
    setJitMode(std::get<1>(GetParam()));
    setNumThreads(1);
  }
  void TearDown() override {
    setJitMode(before_);
    setNumThreads(threads_before_);
  }

 private:
  JitMode before_ = jitMode();
  int threads_before_ = numThreads();
};

TEST_P(Steady, RunsOnMemoryThatIsThere) {
  const Program program = compile(kSource);
  const Case& c = std::get<0>(GetParam());
  std::vector<std::vector<IValue>> batches;
  for (int64_t n : {1, 7, 64, 3, 20}) batches.push_back(c.arguments(n));
  auto passes = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (const auto& arguments : batches) program.call(c.function, arguments);
    }
  };
  // Plans are made, scalar code and kernels compiled, by what has run how often.
  passes(10);
  const AllocatorStatistics before = allocatorStatistics();
  const size_t peak = peakAllocatedBytes();
  passes(10);
  const AllocatorStatistics after = allocatorStatistics();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_LE(after.system_bytes, before.system_bytes);
  EXPECT_EQ(peakAllocatedBytes(), peak);
}

INSTANTIATE_TEST_SUITE_P(Programs, Steady,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(JitMode::Off, JitMode::Sync)),
                         [](const auto& info) {
                           bool off = std::get<1>(info.param) == JitMode::Off;
                           return std::string(std::get<0>(info.param).function) +
                                  (off ? "Interpreted" : "Compiled");
                         });

std::vector<float> floats(const Tensor& t) {
  Tensor c = t.to(DType::Float).contiguous();
  return {c.data<float>(), c.data<float>() + c.numel()};
}
std::vector<float> resultOf(const char* function, std::vector<IValue> arguments) {
  static const Program program = compile(kSource);
  return floats(program.call(function, std::move(arguments)).toTensor());
}
Tensor ramp() {
  const float values[] = {0, 1, 2, 3};
  return Tensor::fromData(values, {4});
}

TEST(ReusedMemory, ResultsAreThoseOfNewMemory) {
  using Floats = std::vector<float>;
  EXPECT_EQ(resultOf("chain", {ramp()}), (Floats{1, 1, 2, 4}));
  EXPECT_EQ(resultOf("itself", {ramp()}), (Floats{1, 4, 9, 16}));
  EXPECT_EQ(resultOf("narrowed", {ramp()}), (Floats{-2}));
  EXPECT_EQ(resultOf("compared", {ramp()}), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(resultOf("scaled", {ramp()}), (Floats{0, -1, -2, -3}));
  EXPECT_EQ(resultOf("promoted", {ramp().to(DType::Long)}), (Floats{0.5, 1, 1.5, 2}));
  const float column[] = {10, 20};
  EXPECT_EQ(resultOf("widened", {ramp(), Tensor::fromData(column, {2, 1})}),
            (Floats{11, 12, 13, 14, 21, 22, 23, 24}));
}

TEST(ReusedMemory, WhatIsStillHeldStays) {
  const Program program = compile(kSource);
  auto both = [&](const char* function) {
    IValue result = program.call(function, {ramp()});
    const auto& parts = result.toTuple().elements;
    return std::pair(floats(parts[0].toTensor()), floats(parts[1].toTensor()));
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(both("viewed"), std::pair(Floats({0, 0, 5, 10}), Floats({2, 3, 4})));
  EXPECT_EQ(both("listed"), std::pair(Floats({-1, -2, -3, -4}), Floats({1, 2, 3, 4})));
}

// Neither what the caller keeps nor memory that is only lent is written.
TEST(ReusedMemory, ArgumentsStay) {
  Tensor kept = ramp();
  resultOf("chain", {kept});
  EXPECT_EQ(floats(kept), (std::vector<float>{0, 1, 2, 3}));
  std::vector<float> lent = {0, 1, 2, 3};
  auto borrow = [&] {
    return Tensor::fromStorage(Storage::borrow(lent.data(), 16, nullptr), DType::Float, {4}, {1},
                               0);
  };
  resultOf("chain", {borrow()});
  EXPECT_EQ(lent, (std::vector<float>{0, 1, 2, 3}));
}

// A chain whose values die needs memory for one of them.
TEST(ReusedMemory, AChainNeedsOneBlock) {
  const Program program = compile(kSource);
  Tensor x = random({1 << 20}, 1);
  program.call("chain", {x});
  setAllocationLimit(countedBytes() + (size_t{5} << 20));
  EXPECT_NO_THROW(program.call("chain", {x}));
  setAllocationLimit(0);
}

}  // namespace
}  // namespace wick::memory_test
