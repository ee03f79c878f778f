// Python's arithmetic where PyTorch's compiler has none: the expected values are Python's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <sstream>
#include <string>

#include "core/error.h"
#include "wick.h"

namespace wick::python_numbers_test {
namespace {

std::string valueOf(const std::string& expression) {
  return compile("def f(t: bool, z: bool, n: int, x: float):\n    return " + expression + "\n")
      .call("f", {true, false, int64_t{5}, 2.5})
      .repr();
}

TEST(PythonNumbers, BooleansAreZeroAndOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"t + t", "2"},
      {"t - z", "1"},
      {"z - t", "-1"},
      {"t * t", "1"},
      {"t / t", "1.0"},
      {"z // t", "0"},
      {"z % t", "0"},
      {"t << t", "2"},
      {"t >> t", "0"},
      {"t + n, n + t, t * n, n - t, t - n", "(6, 6, 5, 4, -4)"},
      {"n // t, n % t, t << n, n >> t", "(5, 0, 32, 2)"},
      {"t + x, x * z, x / t, t / x, x // t, t % x", "(3.5, 0.0, 2.5, 0.4, 2.0, 1.0)"},
      {"n & t, t | n, n ^ t", "(1, 5, 4)"},
      {"t & z, t | z, t ^ t", "(False, True, False)"},
      {"z < t, t < z, t <= t, t > z, z >= t", "(True, False, True, True, False)"},
      {"t < n, n <= z, x > t", "(True, False, True)"},
      {"t == t, t == z, t != z", "(True, False, True)"},
      {"-t, +t, ~t, ~z, -(t + t)", "(-1, 1, -2, -1, -2)"},
      {"t + complex(1, 2)", "(2+2j)"},
      {"sum([t, t, z])", "2"},
  };
  for (const auto& [expression, expected] : cases) {
    EXPECT_EQ(valueOf(expression), expected) << expression;
  }
  EXPECT_THROW(valueOf("t + 'a'"), CompileError);
  EXPECT_EQ(
      compile("def f(n: int, t: bool):\n    n += t\n    n *= t\n    n -= True\n    return n\n")
          .call("f", {int64_t{7}, true})
          .repr(),
      "7");
}

TEST(PythonNumbers, ListsOfTensorsHaveASum) {
  const Program program = compile(R"(
def of_list(l: List[Tensor]):
    return sum(l)
def of_tuple(a, b):
    return sum((a, b))
def of_generator(l: List[Tensor]):
    return sum([x * 2 for x in l])
def gradient(x):
    x = x.detach().requires_grad_()
    sum([x.sum(), (x * x).sum()]).backward()
    return x.grad
)");
  const auto listed = [](std::vector<IValue> tensors) {
    return IValue(makeList(types::Tensor(), std::move(tensors)));
  };
  const Tensor a = Tensor::from({1.f, 2.f}), b = Tensor::from({10.f, 20.f});
  const Tensor flag = Tensor::full({2}, 1, DType::Bool), byte = Tensor::full({}, 7, DType::Byte);
  EXPECT_EQ(program.call("of_list", {listed({a, b, a})}).repr(), "tensor([12., 24.])");
  EXPECT_EQ(program.call("of_list", {listed({})}).repr(), "tensor(0)");
  // As Python, the sum begins with the number 0.
  EXPECT_EQ(program.call("of_list", {listed({flag})}).repr(), "tensor([1, 1])");
  EXPECT_EQ(program.call("of_list", {listed({byte})}).repr(), "tensor(7, dtype=torch.uint8)");
  EXPECT_EQ(program.call("of_tuple", {a, b}).repr(), "tensor([11., 22.])");
  EXPECT_EQ(program.call("of_generator", {listed({a, b})}).repr(), "tensor([22., 44.])");
  EXPECT_EQ(program.call("gradient", {a}).repr(), "tensor([3., 5.])");
}

TEST(PythonNumbers, ElementsOfAllIntegersAreInts) {
  const Program program = compile(R"(
def whole(x) -> List[int]:
    l: List[int] = x.tolist()
    return l
def one(x) -> int:
    n: int = x.tolist()
    return n
)");
  for (const DType dtype : {DType::Byte, DType::Char, DType::Short, DType::Int, DType::Long}) {
    const Tensor x = Tensor::from({1.f, 100.f}).to(dtype);
    EXPECT_EQ(program.call("whole", {x}).repr(), "[1, 100]");
    EXPECT_EQ(program.call("one", {x.select(0, 1)}).repr(), "100");
  }
  for (const DType dtype : {DType::Bool, DType::Float, DType::ComplexFloat}) {
    EXPECT_THROW(program.call("whole", {Tensor::full({2}, 1, dtype)}), RuntimeError);
  }
}

TEST(PythonNumbers, TensorsWithoutDimensionsAreIndices) {
  const Program program = compile(R"(
def main():
    x = torch.arange(12).view(4, 3)
    i = torch.tensor(2)
    j = torch.tensor(1, dtype=torch.int32)
    y = x.clone()
    y[i] = 100
    z = x.clone()
    z[i, j] = -1
    z[:, i] += 50
    return [x[i], x[i, j], x[:, j], x[i, 0], x[i:], x[:j], x[::i], y, z]
)");
  EXPECT_EQ(program.call("main", {}).repr(),
            "[tensor([6, 7, 8]), tensor(7), tensor([ 1,  4,  7, 10]), tensor(6), "
            "tensor([[ 6,  7,  8],\n        [ 9, 10, 11]]), tensor([[0, 1, 2]]), "
            "tensor([[0, 1, 2],\n        [6, 7, 8]]), "
            "tensor([[  0,   1,   2],\n        [  3,   4,   5],\n        [100, 100, 100],\n"
            "        [  9,  10,  11]]), "
            "tensor([[ 0,  1, 52],\n        [ 3,  4, 55],\n        [ 6, -1, 58],\n        [ 9, 10, "
            "61]])]");
}

// Constants, elements and default values of floats are floats again when an archive is read.
TEST(PythonNumbers, FloatsOfArchivesStayFloats) {
  std::mt19937_64 random(11);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 1.0,
                                 3.0,
                                 1e15,
                                 1e16,
                                 1e17,
                                 123456789012345680.0,
                                 9007199254740993.0,
                                 1e22,
                                 1e100,
                                 1e300,
                                 1e-5,
                                 1e-300,
                                 5e-324,
                                 std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity()};
  for (int i = 0; i < 200; ++i) {
    const uint64_t bits = random();
    double number;
    std::memcpy(&number, &bits, sizeof number);
    if (std::isfinite(number)) numbers.push_back(number);
    numbers.push_back(static_cast<double>(random() >> (random() % 64)));
  }
  std::string source =
      "def g(x: float = 1e16, y: float = 3.0):\n    return x + y\nclass M(Module):\n    def "
      "forward(self):\n        l: List[float] = [";
  for (const double number : numbers) {
    source += std::isinf(number) ? (number > 0 ? "float('inf'), " : "float('-inf'), ")
                                 : fmt::format("{:.17e}, ", number);
  }
  source += "]\n        return l, (1e16, 3.0, -1e17), {1.0: 2.0, 1e16: 1e17}, g(), 7.0 // 1e16\n";
  const Program program = compile(source);
  ModuleBuilder builder("M");
  builder.compile("def g(x: float = 1e16, y: float = 3.0):\n    return x + y\n");
  builder.registerConstant("c", IValue(1e16));
  builder.define(source.substr(source.find("    def forward")).c_str() + 4);
  std::stringstream stream;
  const Module module = builder.build();
  module.save(stream);
  const IValue before = module.forward({}), after = load(stream).forward({});
  EXPECT_EQ(before.repr(), after.repr());
  EXPECT_EQ(before.type()->annotation(), after.type()->annotation());
  const std::vector<IValue>& list = after.toTuple().elements[0].elements();
  ASSERT_EQ(list.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_TRUE(list[i].isDouble()) << numbers[i];
    EXPECT_EQ(std::signbit(list[i].toDouble()), std::signbit(numbers[i]));
    EXPECT_EQ(list[i].toDouble(), numbers[i]);
  }
}

}  // namespace
}  // namespace wick::python_numbers_test
