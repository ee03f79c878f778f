// Plans of functions that are not called from outside: methods found through an interface, and what
// forks run.
#include <gtest/gtest.h>

#include "runtime/executor/graph_executor.h"
#include "wick.h"

namespace wick::plans_test {
namespace {

const char* const kSource = R"(
@torch.jit.interface
class Step:
    def run(self, x: Tensor) -> Tensor:
        pass

class Widen:
    def __init__(self):
        self.times = 2
    def run(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float32:
            return x * self.times
        return x.float() + 1

class Fail:
    def __init__(self):
        self.times = 2
    def run(self, x: Tensor) -> Tensor:
        if x.dim() == 2:
            raise ValueError("a matrix")
        return x

def widen() -> Widen:
    return Widen()

def fail() -> Fail:
    return Fail()

def apply(step: Step, x: Tensor) -> Tensor:
    return step.run(x)

def body(x: Tensor, n: int) -> Tensor:
    if x.dim() == 2 and x.dtype == torch.float32:
        return x.t() + n
    return x.sum() + n

def forked(x: Tensor) -> Tensor:
    futures = [torch.jit.fork(body, x, i) for i in range(3)]
    y = torch.jit.wait(futures[0])
    for f in futures:
        y = y + torch.jit.wait(f)
    return y
)";

TEST(InnerPlans, MethodsOfInterfacesHavePlans) {
  const Program program = compile(kSource);
  IValue step = program.call("widen", {});
  auto& run = dynamic_cast<GraphFunction&>(*step.toObject().type()->findMethod("run"));
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 1; n < 4; ++n) {
      IValue y = program.call("apply", {step, Tensor::full({n}, 3, DType::Float)});
      EXPECT_EQ(y.toTensor().select(0, n - 1).item<float>(), 6);
      IValue z = program.call("apply", {step, Tensor::full({n}, 3, DType::Double)});
      EXPECT_EQ(z.toTensor().select(0, 0).item<float>(), 4);
    }
  }
  GraphExecutor::Statistics s = GraphExecutor::of(run).statistics();
  EXPECT_EQ(s.plans, 2u);
  EXPECT_GE(s.hits, 10u);
}

TEST(InnerPlans, ErrorsInMethodsOfInterfacesNameTheirCallers) {
  const Program program = compile(kSource);
  IValue step = program.call("fail", {});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(program.call("apply", {step, Tensor::full({2}, 3, DType::Float)}).toTensor().dim(),
              1);
    try {
      program.call("apply", {step, Tensor::full({2, 2}, 3, DType::Float)});
      FAIL() << "expected an error";
    } catch (const RuntimeError& e) {
      EXPECT_EQ(e.frames().size(), 2u);
    }
  }
}

TEST(InnerPlans, ForksHavePlans) {
  const Program program = compile(kSource);
  for (int64_t n = 1; n < 5; ++n) {
    EXPECT_EQ(program.call("forked", {Tensor::full({n, 2}, 1, DType::Float)}).toTensor().dim(), 2);
    EXPECT_EQ(
        program.call("forked", {Tensor::full({n}, 1, DType::Long)}).toTensor().item<int64_t>(),
        4 * n + 3);
  }
  const Code& code = GraphExecutor::of(program.function("forked")).code();
  ASSERT_FALSE(code.forkSites().empty());
  for (const auto& fork : code.forkSites()) {
    GraphExecutor::Statistics s = GraphExecutor::of(fork->function).statistics();
    EXPECT_EQ(s.plans, 2u);
    EXPECT_GE(s.hits, 4u);
  }
}

}  // namespace
}  // namespace wick::plans_test
