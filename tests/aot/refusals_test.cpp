// What is not available ahead of time, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aot/build.h"
#include "aot/recording.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick {
namespace {

using testing::HasSubstr;
using testing_aot::tensorOf;

std::string refusalOf(const std::string& source, const std::vector<IValue>& arguments) {
  const Program program = compile(source);
  try {
    aot::BuildOptions options;
    options.name = "refused";
    aot::build(aot::record(program.function("main"), arguments), options, [](std::string_view) {});
  } catch (const Error& e) {
    return e.what();
  }
  return "it was compiled";
}

struct Case {
  const char* body;
  const char* message;
  const char* x = "3xf32";
  const char* y = "3xf32";
};

void expectRefusals(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_THAT(refusalOf("def main(x: Tensor, y: Tensor):\n    " + std::string(c.body) + "\n",
                          {IValue(tensorOf(c.x, 1)), IValue(tensorOf(c.y, 2))}),
                HasSubstr(c.message))
        << c.body;
  }
}

TEST(AotRefusalsTest, Operators) {
  expectRefusals({
      {"return x.sum() * int(y.sum())",
       "a float16 without dimensions and a number that elements of tensors decide are not "
       "available ahead of time as operands",
       "3xf16"},
      {"return (x.view([1, 1, 1, 1, 1, 1, 1, 1, 3]) + y.view([1, 1, 1, 1, 1, 1, 1, 3, 1])).sum()",
       "an operator on tensors of 9 dimensions is not available ahead of time"},
      {"return x.view([1, 1, 1, 1, 1, 1, 1, 1, 3]).expand([1, 1, 1, 1, 1, 1, 2, 2, 3]).clone()",
       "a copy of a tensor of 9 dimensions is not available ahead of time"},
      {"return torch.nn.functional.linear(x, y, torch.ones([2]))",
       "linear: a product without elements is not available ahead of time", "3x0xf32", "2x0xf32"},
      {"return torch.addmm(torch.ones([2]), x, y.t())",
       "addmm: a product without elements is not available ahead of time", "3x0xf32", "2x0xf32"},
      {"return torch.ops.aten.convolution_backward(x.view([1, 1, 3]), x.view([1, 1, 3]), "
       "torch.ones([1, 1, 1]), None, [1], [0], [1], False, [0], 1, [True, True, False])[1]",
       "conv_weight_gradient: gradients are not available ahead of time"},
      {"return torch.sort(x.to(torch.uint8)[:1].expand(5000000000))[1]",
       "sort of rows of 5000000000 elements is not available ahead of time"},
      {"return torch.grid_sampler(x.view([1, 1, 3, 3]), torch.zeros([1, 2, 2, 2]).half(), 0, 0, "
       "False)",
       "grid_sampler of float16", "3x3xf16"},
      {"return torch.grid_sampler(x.view([1, 1, 3, 3]), torch.zeros([1, 2, 2, 2]).long(), 0, 0, "
       "False)",
       "grid_sampler of int64[1, 1, 3, 3]", "3x3xi64"},
      {"z = torch.view_as_complex(torch.stack([x, y], 1))\n"
       "    return torch.nn.functional.silu(z)",
       "silu_cpu of complex64 is not available ahead of time"},
      {"return torch.special.ndtri(x)", "no C++ text for the function ndtri of float32"},
      {"return x.to_sparse()", "to_sparse: sparse tensors exist on the CPU only"},
  });
}

TEST(AotRefusalsTest, MemoryAndResults) {
  expectRefusals({
      {"return x.resize_(5, 5)", "a tensor's memory is grown, and what it held is not known yet"},
      {"return torch.empty([3]) + x", "reads memory that nothing wrote"},
      {"return torch.empty_like(x)", "nothing computes the result 'result'"},
      {"z = torch.zeros([0, 3])\n    return z[int(x[0])]",
       "an index that elements of a tensor decide is not available ahead of time in a dimension of "
       "size 0"},
  });
  const Tensor matrix = tensorOf("3x2xf32", 1);
  EXPECT_THAT(
      refusalOf("def main(x: Tensor):\n    return x * 2\n", {IValue(matrix.transpose(0, 1))}),
      HasSubstr("argument 'x': expected a dense row-major tensor, got float32[2, 3]"));
  Program sparse = compile("def main():\n    return torch.ones([2]).to_sparse()\n");
  EXPECT_THAT(
      refusalOf("def main(x: Tensor):\n    return x.to_dense()\n", {sparse.call("main", {})}),
      HasSubstr("argument 'x': expected a dense row-major tensor, got "));
}

TEST(AotRefusalsTest, LoopsAndConditions) {
  expectRefusals({
      {"s = \"a\"\n    for i in range(int(x[0])):\n        s = s + \"b\"\n    return x * len(s)",
       "a loop that stays one carries a str"},
      {"s = \"a\"\n    z = x\n    for i in range(int(x[0])):\n        if bool(y[i] > 0):\n"
       "            s = \"bb\"\n        else:\n            s = \"c\"\n        z = z + len(s)\n"
       "    return z",
       "a condition in a loop that stays one gives a str"},
      {"if bool(x[0] > 0):\n        raise RuntimeError(\"a\")\n    else:\n"
       "        raise RuntimeError(\"b\")\n    return x",
       "the program raises whatever the elements of its arguments are"},
      {"n = 0\n    for i in range(20):\n        if bool(x[i % 3] + i > y[i % 3]):\n"
       "            n = n * 2 + 1\n        else:\n            n = n * 2\n"
       "    return torch.full([n % 7 + 1], 1.0)",
       "the elements of tensors decide between more than 256 ways through the program"},
      {"for i in range(int(x[0])):\n        y = torch.cat([y, x])\n    return y",
       "a value that a loop carries changes from float32[3] on ahead to float32[6] on ahead"},
      {"l = [y]\n    for i in range(int(x[0])):\n        l = [y, y]\n    return l[0]",
       "a list that a loop carries has 1 elements in one round and 2 in the next"},
  });
  EXPECT_THAT(refusalOf("class C:\n    def __init__(self):\n        self.n = 0\n"
                        "def main(x: Tensor) -> Tensor:\n    c = C()\n"
                        "    for i in range(int(x[0])):\n        c.n = i\n    return x * c.n\n",
                        {IValue(tensorOf("3xf32", 1))}),
              HasSubstr("an attribute is set in a loop that stays one"));
}

TEST(AotRefusalsTest, ModulesThatKeepSomething) {
  ModuleBuilder builder("Counts");
  builder.registerAttribute("calls", types::Int(), 0);
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n    self.calls = self.calls + 1\n"
      "    return x * self.calls\n");
  const Module module = builder.build();
  std::string error = "it was compiled";
  try {
    aot::record(module.method("forward"), {IValue(module.object()), IValue(tensorOf("3xf32", 1))});
  } catch (const Error& e) {
    error = e.what();
  }
  EXPECT_THAT(error, HasSubstr("the program sets the attribute 'calls'; compiled models keep "
                               "nothing between calls"));
}

TEST(AotRefusalsTest, SignaturesOfOneMethodHaveEquallyManyTensors) {
  const Program program =
      compile("def main(x: Tensor, y: Optional[Tensor]):\n    return x if y is None else x + y\n");
  const IValue x(tensorOf("3xf32", 1)), y(tensorOf("3xf32", 2));
  std::vector<aot::Entry> entries(2);
  entries[0].program = aot::record(program.function("main"), {x, IValue()});
  entries[1].program = aot::record(program.function("main"), {x, y});
  std::string error = "it was compiled";
  try {
    aot::build(std::move(entries), {.name = "refused"}, [](std::string_view) {});
  } catch (const Error& e) {
    error = e.what();
  }
  EXPECT_THAT(error, HasSubstr("signatures of forward with 1 and with 2 tensors; those of one "
                               "method have equally many"));
}

TEST(AotRefusalsTest, OperatorsWithoutTextOverNamedSizes) {
  const Program program = compile("def main(x: Tensor):\n    return torch.special.ndtri(x)\n");
  std::string error = "it was compiled";
  try {
    std::vector<aot::Entry> entries(1);
    entries[0].family = aot::familyOf(
        program.function("main"), {{"N", 1, 3, 1}}, [](const std::vector<int64_t>& s) {
          return std::vector<IValue>{IValue(Tensor::zeros({s[0], 3}, DType::Float))};
        });
    aot::build(std::move(entries), {.name = "refused"}, [](std::string_view) {});
  } catch (const Error& e) {
    error = e.what();
  }
  EXPECT_THAT(error, HasSubstr("no C++ text for the function ndtri of float32"));
}

}  // namespace
}  // namespace wick
