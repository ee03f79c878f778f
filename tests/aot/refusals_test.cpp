// What is not available ahead of time, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aot/build.h"
#include "aot/recording.h"
#include "runtime/inference.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::refusals_test {
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

// What the engine refuses is refused ahead of time, too, in the engine's words.
void expectTheEnginesRefusals(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string source = "def main(x: Tensor, y: Tensor):\n    " + std::string(c.body) + "\n";
    const std::vector<IValue> arguments{IValue(tensorOf(c.x, 1)), IValue(tensorOf(c.y, 2))};
    std::string engine = "it was computed";
    try {
      compile(source).call("main", arguments);
    } catch (const RuntimeError& e) {
      engine = e.brief();
    }
    EXPECT_EQ(engine, c.message) << c.body;
    EXPECT_THAT(refusalOf(source, arguments), HasSubstr(c.message)) << c.body;
  }
}

// Neither memory nor positions in it.
TEST(Refusals, TensorsWithoutElementsAndTooLargeOnes) {
  expectRefusals({
      {"return torch.index_add(x, 0, torch.tensor([0]), y)", "a tensor without elements", "0xf32",
       "1xf32"},
      {"return torch.index_copy(x, 0, torch.tensor([0]), y)", "a tensor without elements", "0xf32",
       "1xf32"},
      {"return torch.nn.functional.pad(x, [1099511627776, 255], 'replicate')", "is too large",
       "1x3xf32"},
  });
}

// Lists that hold themselves, or each other again and again.
TEST(Refusals, ResultsWithoutEnd) {
  expectRefusals({
      {"l: List[Any] = [x]\n    l.append(l)\n    return l", "the result nests deeper"},
      {"l: Any = 1\n    for i in range(1000):\n        l = [l]\n    return l",
       "the result nests deeper"},
      {"l: Any = 1\n    for i in range(60):\n        l = [l, l]\n    return l",
       "the result nests deeper"},
  });
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
      {"return torch.conv2d(torch.complex(x, x), torch.complex(y, y))",
       "conv2d of complex64 is not available ahead of time", "1x2x4x4xf32", "2x2x3x3xf32"},
      {"return torch.avg_pool2d(x, [2])", "avg_pool2d of int64 is not available ahead of time",
       "1x2x4x4xi64"},
      {"return torch.ops.wick.conv2d_fused(x, y, None, None, [1, 1], [0, 0], [1, 1], 1, \"relu\", "
       "False)",
       "a convolution of float64 with an activation is not available ahead of time", "1x2x4x4xf64",
       "2x2x3x3xf64"},
      {"z = torch.complex(x, y)[:1].view([1, 1])\n    return z.expand([2200000000, 1]) @ z",
       "matmul: a matrix of 2^31 rows or columns is not available ahead of time"},
      {"return torch.fft.fft(x.expand(5000000000))",
       "_fft_r2c of 5000000000 numbers is not available ahead of time", "1xf32"},
      {"return torch.linalg.svd(torch.complex(x, y))[1]",
       "linalg.svd of complex64 is not available ahead of time", "3x3xf32", "3x3xf32"},
      {"return torch.native_group_norm(x, None, None, 1, 3, 2, 1, 1e-5)[0]",
       "native_group_norm of float64 is not available ahead of time", "1x3x2xf64"},
      {"return torch.lstm(x, [y, y], [torch.ones([12, 3]).half(), torch.ones([12, 3]).half()], "
       "False, 1, 0.0, False, False, True)[0]",
       "lstm of float16 is not available ahead of time", "2x2x3xf16", "1x2x3xf16"},
      {"h = y[0]\n    return torch.ops.wick.lstm_layer_gradient(y, h, h, y, y, x, x, h, h, "
       "torch.ones([12, 3]), None, False)[0]",
       "lstm: gradients are not available ahead of time", "1x2x12xf32", "1x2x3xf32"},
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
      {"return torch.arange(float(x[0]))",
       "arange needs a number that elements of a tensor decide, which is known only when the "
       "compiled model runs"},
      {"return torch.special.ndtri(x)", "no C++ text for the function ndtri of float32"},
      {"return x.to_sparse()", "to_sparse: sparse tensors exist on the CPU only"},
  });
  std::string ones = "1", indices = "y";
  for (int i = 1; i < 64; ++i) {
    ones += ", 1";
    indices += ", y";
  }
  const std::string body = "return x.view([" + ones + "])[" + indices + "]";
  expectRefusals({{body.c_str(),
                   "an operator that reads more tensors than a kernel may is not available ahead "
                   "of time",
                   "1xf32", "1xi64"}});
}

TEST(AotRefusalsTest, MemoryAndResults) {
  expectRefusals({
      {"return x.resize_(5, 5)", "a tensor's memory is grown, and what it held is not known yet"},
      {"z = torch.zeros([0, 3])\n    return z[int(x[0])]",
       "an index that elements of a tensor decide is not available ahead of time in a dimension of "
       "size 0"},
      {"return x.abs() if bool(x[0] > 0) else x.long()",
       "the elements of tensors decide about the number, dtypes or ranks of the results"},
      {"n = torch.nonzero(x)\n    if n.size(0) < 100:\n        raise RuntimeError(\"no\")\n    "
       "return x",
       "the program raises whatever the elements of its arguments are"},
      {"d: Dict[int, int] = {}\n    z = x\n    for i in range(132000):\n        z = z.cumsum(0)\n"
       "        d[0] = i\n    return z * d[0]",
       "the program computes more than 131072 tensors"},
  });
  // Recording runs the program several times: steps are counted for one run.
  EXPECT_EQ(refusalOf("def main(x: Tensor):\n    d: Dict[int, int] = {}\n"
                      "    for i in range(70000):\n        x = x.cumsum(0)\n        d[0] = i\n"
                      "    return x * d[0]\n",
                      {IValue(tensorOf("3xf32", 1))}),
            "it was compiled");
  std::string conditions = "n = 0\n";
  for (int i = 0; i < 64; ++i) {
    conditions += "    if bool(x[0] > " + std::to_string(i) + "):\n        n += 1\n";
  }
  conditions += "    return torch.nonzero(x * n)";
  expectRefusals(
      {{conditions.c_str(), "elements of tensors decide more than 64 sizes and conditions"}});
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
       "a value that a loop carries changes from float32[3] to float32[6] in a round"},
      {"l = [y]\n    for i in range(int(x[0])):\n        l = [y, y]\n    return l[0]",
       "a list that a loop carries has 1 elements in one round and 2 in the next"},
      {"z = x\n    for i in range(int(y[0])):\n        if bool(x[0] > i):\n            z = x\n"
       "        else:\n            z = x[:2]\n    return z",
       "a value of a loop changes from float32[3] to float32[2]"},
      {"for i in range(int(x[0])):\n        if torch.equal(x, y * i):\n            y = y + 1\n"
       "    return y",
       "an element of a tensor decides how to go on, in a loop that stays one"},
      {"for i in range(int(y[0])):\n        x = x * 2 + 1\n    return torch.nonzero(x)",
       "nonzero: elements of a tensor decide a size behind a loop that stays one", "100xf32"},
  });
  // Some thirty loops, and conditions, within each other.
  for (const bool loops : {true, false}) {
    std::string body = loops ? "n = 0\n" : "n = 0\n    for i in range(int(y[0])):\n";
    std::string indent(loops ? 4 : 8, ' ');
    for (int i = 0; i < 34; ++i, indent += "  ") {
      body += indent + (loops ? "for i" + std::to_string(i) + " in range(int(y[0])):\n"
                              : "if bool(x[0] > i + " + std::to_string(i) + "):\n");
    }
    body += indent + "n += 1\n    return x * n";
    expectRefusals({{body.c_str(), "loops and conditions nest deeper than 32 levels"}});
  }
  EXPECT_THAT(refusalOf("class C:\n    def __init__(self):\n        self.n = 0\n"
                        "def main(x: Tensor) -> Tensor:\n    c = C()\n"
                        "    for i in range(int(x[0])):\n        c.n = i\n    return x * c.n\n",
                        {IValue(tensorOf("3xf32", 1))}),
              HasSubstr("an attribute is set in a loop that stays one"));
}

// What the text of loops becomes has names, which any program may call.
TEST(AotRefusalsTest, OperatorsOfTheBuild) {
  expectRefusals({
      {"return torch.ops.wick.loop_index()", "there is no loop to go on with"},
      {"torch.ops.wick.loop_end()\n    return x", "there is no loop to go on with"},
      {"if torch.ops.wick.branch_begin(x[0] > 0):\n        y = y + 1\n    return y",
       "the program ends within a loop that stays one"},
  });
  std::string error = "it was computed";
  try {
    compile("def main(x: Tensor):\n    torch.ops.wick.loop_end()\n    return x\n")
        .call("main", {tensorOf("3xf32", 1)});
  } catch (const Error& e) {
    error = e.what();
  }
  EXPECT_THAT(error, HasSubstr("a tensor that stands for one of the compiled model is used outside "
                               "of the build that made it"));
}

TEST(AotRefusalsTest, Constants) {
  const auto refusal = [](const std::string& kept, const std::string& body) {
    ModuleBuilder builder("Holds");
    builder.registerAttribute("kept", types::Tensor(),
                              compile("def main():\n    return " + kept + "\n").call("main", {}));
    builder.define("def forward(self, x: Tensor):\n    " + body + "\n");
    Module module = builder.build();
    module.eval();
    try {
      aot::record(*optimizeForInference(module.object(), module.method("forward")),
                  {IValue(tensorOf("3xf32", 1))});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was compiled");
  };
  const std::string number = "torch.tensor(1.0).to_sparse()",
                    quantized =
                        "torch.quantize_per_tensor(torch.tensor(1.0), 0.1, 0, torch.quint8)",
                    loop = "\n    for i in range(int(x[0])):\n        s = self.kept\n";
  EXPECT_THAT(refusal("torch.eye(3).to_sparse()", "return torch.mm(self.kept, x.view([3, 1]))"),
              HasSubstr("a sparse float32[3, 3] is not available ahead of time"));
  EXPECT_THAT(refusal("torch.tensor(0)",
                      "return x + torch.ops.wick.data_function(\"floorDivide\", "
                      "self.kept, self.kept, None)"),
              HasSubstr("integer division or modulo by zero"));
  EXPECT_THAT(refusal(number, "return self.kept"),
              HasSubstr("the result result: sparse float32[] is not available ahead of time"));
  EXPECT_THAT(refusal(quantized, "return self.kept"),
              HasSubstr("the result result: quantized quint8[] is not available ahead of time"));
  EXPECT_THAT(refusal("torch.eye(3)",
                      "return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize()"),
              HasSubstr("quantize_per_tensor: quantized tensors are not compiled ahead of time"));
  EXPECT_THAT(refusal(number, "s = self.kept" + loop + "    return x + s.to_dense()"),
              HasSubstr("a sparse float32[] is not available ahead of time"));
  EXPECT_THAT(refusal(quantized, "l = [self.kept]" + loop +
                                     "        l[0] = s\n    return x + l[0].dequantize()"),
              HasSubstr("a quantized quint8[] is not available ahead of time"));
}

TEST(AotRefusalsTest, GeneratorsOfTheProgram) {
  const auto refusal = [](const std::string& body) {
    const Program program =
        compile("def main(x: Tensor, g: Generator):\n    return " + body + "\n");
    try {
      aot::record(program.function("main"),
                  {IValue(tensorOf("3xf32", 1)), IValue(makeRef<GeneratorObject>(5))});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was compiled");
  };
  EXPECT_THAT(refusal("x.clone().uniform_(0.0, 1.0, generator=g)"),
              HasSubstr("random numbers of a generator of the program's own are not available "
                        "ahead of time"));
  EXPECT_THAT(refusal("x + torch.randperm(3, generator=g)"),
              HasSubstr("randperm: its random numbers are not available ahead of time"));
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

// The error of building a prepared module with a buffer `seen` and the function `f`.
std::string errorOfPrepared(const std::string& f, const std::string& forward) {
  ModuleBuilder builder("Counts");
  builder.registerBuffer("seen", Tensor::full({}, 1.0, DType::Float));
  builder.compile(f);
  builder.define(forward);
  const PreparedMethod fast = optimizeForInference(builder.build().eval());
  try {
    aot::record(*fast.function(), {IValue(tensorOf("3xf32", 1))});
  } catch (const Error& e) {
    return e.what();
  }
  return "it was compiled";
}

TEST(AotRefusalsTest, ModulesThatWriteToTheirTensors) {
  EXPECT_THAT(errorOfPrepared("def f(x: Tensor) -> Tensor:\n    return x\n",
                              "def forward(self, x: Tensor) -> Tensor:\n    self.seen.add_(1)\n"
                              "    return x * self.seen\n"),
              HasSubstr("the program may write to the attribute 'seen'; compiled models keep "
                        "nothing between calls"));
}

TEST(AotRefusalsTest, ForksThatAreOnlyWaitedForRunAtOnce) {
  const std::string f = "def f(x: Tensor) -> Tensor:\n    return x * 2\n";
  EXPECT_EQ(errorOfPrepared(f,
                            "def part(self, x: Tensor) -> Tensor:\n"
                            "    return f(x) * self.seen\n"
                            "def forward(self, x: Tensor) -> Tensor:\n"
                            "    y = torch.jit.fork(f, x)\n"
                            "    z = torch.jit.fork(self.part, x)\n"
                            "    return torch.jit.wait(y) * torch.jit.wait(z)\n"),
            "it was compiled");
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

TEST(AotRefusalsTest, WordsOfComposites) {
  expectTheEnginesRefusals({
      {"return torch.nansum(torch.complex(x, y))", "nansum does not support complex inputs"},
      {"return torch.nanmean(x)",
       "nanmean(): expected input to have floating point dtype but got Long", "3xi64"},
      {"return torch.combinations(x)", "Expect a 1D vector, but got shape [3, 2]", "3x2xf32"},
      {"return torch.cartesian_prod([x, y])", "Expect a 1D vector, but got shape [3, 2]",
       "3x2xf32"},
      {"return torch.block_diag([x])",
       "block_diag: Input tensors must have 2 or fewer dimensions. Input has 3 dimensions",
       "2x2x2xf32"},
      {"return torch.affine_grid_generator(x, [1, 2, 3], False)",
       "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.", "1x2x3xf32"},
      {"return torch.affine_grid_generator(x, [1, 2, 3, 4], False)",
       "affine_grid_generator: Expected a batch of 2x3 affine matrices of shape 1x2x3, but got [2, "
       "2, 3]",
       "2x2x3xf32"},
      {"return torch.max_pool2d(x, [2])", "max_pool2d: no kernel for dtype bool", "1x2x2xbool"},
      {"return torch.nn.functional.linear(x, y)", "linear: no kernel for dtype bool", "3x3xbool",
       "3x3xbool"},
      {"return torch.embedding_renorm_(x.clone(), y, 1.0, 2.0)",
       "embedding_renorm_: 'self' must be 2-D", "3xf32", "3xi64"},
      {"return torch.complex(x, y)",
       "Expected both inputs to be Half, Float or Double tensors but got Float and Long", "3xf32",
       "3xi64"},
  });
}

TEST(AotRefusalsTest, WordsOfCounts) {
  expectTheEnginesRefusals({
      {"return torch.repeat_interleave(y)", "repeat_interleave only accept 1D vector as repeat",
       "3xf32", "3x2xi64"},
      {"return torch.repeat_interleave(y)", "repeats has to be Long or Int tensor", "3xf32",
       "3xf32"},
      {"return torch.repeat_interleave(x, y, 0)", "repeats must be 0-dim or 1-dim tensor", "3xf32",
       "3x1xi64"},
      {"return torch.repeat_interleave(x, y, 0)",
       "repeats must have the same size as input along dim", "3xf32", "2xi64"},
      {"return torch.repeat_interleave(x, -1, 0)", "repeats can not be negative"},
      {"return torch.repeat_interleave(x, 2, 0, output_size=7)",
       "repeat_interleave: expected an output of size 7, the repeats add up to 6"},
      {"return torch.bincount(x, None, -1)", "minlength should be >= 0", "3xi64"},
      {"return torch.bincount(x, y)", "weights should be 1-d and have the same length as input",
       "3xi64", "2xf32"},
      {"return torch.quantile(x, y[:1] / 4, interpolation=\"middle\")",
       "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
       "got middle"},
      {"return torch.quantile(x, 1.5)", "quantile() q must be in the range [0, 1] but got 1.5"},
      {"return torch.pdist(x)", "pdist only supports 2D tensors, got: 1D"},
      {"return torch.pdist(x, -1.0)", "pdist only supports non-negative p values", "3x2xf32"},
      {"return torch.frexp(x)[0]", "torch.frexp() only supports floating-point dtypes", "3xi64"},
      {"return torch.trace(x)", "trace: expected a matrix, but got tensor with dim 1"},
      {"return torch.vander(x)", "x must be a one-dimensional tensor, but got 2 dims", "3x2xf32"},
      {"return torch.vander(x, -1)", "N must be non-negative, but got -1"},
  });
}

TEST(AotRefusalsTest, WordsOfFactorizations) {
  expectTheEnginesRefusals({
      {"return torch.linalg.cholesky(x)",
       "linalg.cholesky: The input tensor A must have at least 2 dimensions, but has 1"},
      {"return torch.linalg.cholesky(x)",
       "linalg.cholesky: Expected a floating point or complex tensor as input. Got Long",
       "3x3xi64"},
      {"return torch.linalg.cholesky(x)",
       "linalg.cholesky: A must be batches of square matrices, but they are 3 by 2 matrices",
       "3x2xf32"},
      {"return torch.linalg.lu_factor(x, pivot=False)[0]",
       "linalg.lu_factor: LU without pivoting is not implemented on the CPU", "3x3xf32"},
      {"return torch.lu_unpack(x, y)[0]",
       "lu_unpack: LU_pivots is expected to be a batch of 3 32-bit integers, got int64[2]",
       "3x3xf32", "2xi64"},
      {"return torch.linalg.lu_solve(x, y[0].int(), x[:2])",
       "linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 2x3)",
       "3x3xf32", "3x3xf32"},
      {"return torch.linalg.lu_solve(x, y, x)",
       "linalg.lu_solve: expected factors of one dtype and 32-bit pivots, got float32[3, 3], "
       "int64[3] and float32[3, 3]",
       "3x3xf32", "3xi64"},
      {"return torch.cholesky_solve(y, x)",
       "cholesky_solve: Incompatible matrix sizes: each A matrix is 3 by 3 but each b matrix is 2 "
       "by 2",
       "3x3xf32", "2x2xf32"},
      {"return torch.linalg.householder_product(x, y)",
       "linalg.householder_product: input.shape[-2] must be greater than or equal to "
       "input.shape[-1]",
       "2x3xf32", "2xf32"},
      {"return torch.linalg.householder_product(x, y)",
       "linalg.householder_product: Expected tau to match input of shape [3, 2], got float32[3]",
       "3x2xf32", "3xf32"},
      {"return torch.linalg.svd(x, driver=\"gesvd\")[1]",
       "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
       "cuSOLVER backend.",
       "3x3xf32"},
      {"return torch.linalg.eigh(x, \"M\")[0]",
       "linalg.eigh: Expected UPLO argument to be 'L' or 'U', but got M", "3x3xf32"},
      {"return torch.linalg.solve_triangular(x, y, upper=True)",
       "linalg.solve_triangular: Expected A and B to have the same dtype, got float32 and float64",
       "3x3xf32", "3x3xf64"},
      {"return torch.linalg.solve_triangular(x, y, upper=True)",
       "linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B (3x3 and "
       "2x2)",
       "3x3xf32", "2x2xf32"},
      {"return torch.linalg.solve_triangular(x, y, upper=True, left=False)",
       "linalg.solve_triangular: Incompatible shapes of A and B for the equation XA = B (3x3 and "
       "2x2)",
       "3x3xf32", "2x2xf32"},
  });
}

TEST(AotRefusalsTest, WordsOfTransforms) {
  expectTheEnginesRefusals({
      {"return torch.fft.fftn(torch.complex(x, x), None, [0, 0]).real",
       "fftn: FFT dims must be unique", "3x3xf32"},
      {"return torch.ops.aten._fft_c2c(torch.complex(x, x), [0], 5, True).real",
       "_fft: unknown normalization 5"},
      {"return torch.ops.aten._fft_c2c(x, [0], 0, True).real",
       "_fft_c2c expects a complex input tensor, but got Float"},
      {"return torch.ops.aten._fft_r2c(x, [0, 0], 0, True).real",
       "_fft_r2c: FFT dims must be unique", "3x3xf32"},
      {"return torch.ops.aten._fft_r2c(x[:0], [0], 0, True).real",
       "_fft_r2c: Invalid number of data points (0) specified"},
      {"return torch.ops.aten._fft_r2c(x, [0], 0, True).real",
       "_fft_r2c: Unsupported dtype float16", "3xf16"},
      {"z: List[int] = []\n    return torch.ops.aten._fft_r2c(x, z, 0, True).real",
       "_fft_r2c must transform at least one axis"},
      {"return torch.ops.aten._fft_c2r(x, [0], 0, 3)",
       "_fft_c2r expects a complex input tensor, but got Float"},
      {"return torch.ops.aten._fft_c2r(torch.complex(x, x), [0], 0, 0)",
       "_fft_c2r: Invalid number of data points (0) specified"},
      {"return torch.istft(torch.complex(x, x), 4, win_length=5)",
       "istft: expected 0 < win_length <= n_fft, but got win_length=5", "3x2xf32"},
      {"return torch.istft(torch.complex(x, x), 4, window=y)",
       "istft: expected a 1D window tensor of size equal to win_length=4, but got window with size "
       "[3]",
       "3x2xf32", "3xf32"},
      {"return torch.istft(torch.complex(x, x), 4)",
       "istft: expected a tensor with 2 or 3 dimensions, got complex64[1, 1, 3, 2]", "1x1x3x2xf32"},
      {"return torch.istft(torch.complex(x, x), 7)",
       "istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
       "n_fft=7 when onesided=true, but got 3",
       "3x2xf32"},
      {"return torch.istft(torch.complex(x, x), 4, return_complex=True)",
       "istft: Cannot have onesided output if window or input is complex", "3x2xf32"},
      {"return torch.istft(torch.complex(x, x), 4, window=torch.complex(y, y))",
       "istft: Complex windows are incompatible with return_complex=False", "3x2xf32", "4xf32"},
      {"return torch.istft(torch.complex(x, x), 4, hop_length=5)",
       "istft: expected 0 < hop_length <= win_length", "3x2xf32"},
      {"return torch.istft(torch.complex(x, x), 4, length=0)", "istft: the signal has no elements",
       "3x2xf32"},
  });
}

TEST(AotRefusalsTest, WordsOfNormalization) {
  expectTheEnginesRefusals({
      {"return torch.nn.functional.one_hot(x, 3)", "one_hot is only applicable to index tensor."},
      {"return torch.nn.functional.one_hot(x[:0])",
       "Can not infer total number of classes from empty tensor.", "3xi64"},
      {"return torch.batch_norm(x, y, None, None, None, True, 0.1, 1e-5, False)",
       "batch_norm: weight should contain 2 elements not 3", "3x2xf32", "3xf32"},
      {"return torch.batch_norm(x, None, None, None, None, False, 0.1, 1e-5, False)",
       "batch_norm: expected running_mean and running_var to be defined outside of training",
       "3x2xf32"},
      {"return torch.instance_norm(x, None, None, None, None, False, 0.1, 1e-5, False)",
       "Expected running_mean and running_var to be defined when use_input_stats is false",
       "3x2x2xf32"},
      {"return torch.native_group_norm(x, None, None, 1, 3, 2, 2, 1e-5)[0]",
       "native_group_norm: Expected number of channels in input to be divisible by num_groups, but "
       "got input of shape [1, 3, 2] and num_groups=2",
       "1x3x2xf32"},
      {"return torch.native_layer_norm(x, [2], None, None, 1e-5)[0]",
       "native_layer_norm: Given normalized_shape=[2], expected input with the same trailing "
       "sizes, but got input of size [3]",
       "3xf32"},
      {"return torch.native_layer_norm(x, [3], y, None, 1e-5)[0]",
       "native_layer_norm: Expected weight and bias to be of same shape as normalized_shape [3], "
       "but got [2]",
       "3xf32", "2xf32"},
      {"return torch.batch_norm_update_stats(x, None, None, 0.1)[0]",
       "batch_norm_update_stats: expected input of two or more dimensions, got float32[3]",
       "3xf32"},
  });
}

TEST(AotRefusalsTest, WordsOfPadding) {
  expectTheEnginesRefusals({
      {"return torch.nn.functional.pad(x.view([1, 1, 3]), [3, 0], \"reflect\")",
       "pad: Padding size should be less than the corresponding input dimension, but got: padding "
       "(3, 0) at dimension 2 of input [1, 1, 3]"},
      {"return torch.nn.functional.pad(x.view([1, 1, 3]), [4, 0], \"circular\")",
       "_pad_circular: Padding size should be less than the corresponding input dimension, but "
       "got: padding (4, 0) at dimension 2 of input [1, 1, 3]"},
      {"return torch.nn.functional.pad(x.view([1, 1, 3]), [-2, -2], \"replicate\")",
       "pad: input (size 3 in dimension 2) is too small for padding (-2, -2)"},
      {"return torch.ops.aten.pad(x.view([1, 1, 3]), [1], \"reflect\")",
       "Padding length must be divisible by 2"},
      {"return torch.ops.aten.pad(x, [1, 1, 1, 1], \"reflect\")", "Padding length too large"},
      {"return torch.ops.aten.pad(x.view([1, 1, 3]), [1, 1], \"reflect\", 2.0)",
       "Padding mode \"reflect\" doesn't take in value argument"},
      {"return torch.ops.aten.pad(x, [1, 1], \"reflect\")",
       "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"},
      {"return torch.ops.aten.pad(x, [1, 1], \"mirror\")", "Unrecognised padding mode mirror"},
      {"return torch.ops.aten._pad_enum(x.view([1, 1, 3]), [1, 1], 7)",
       "Unrecognised padding mode 7"},
      {"return torch.ops.aten._pad_circular(x.view([1, 1, 3]), [1, 1, 1, 1, 1, 1])",
       "Invalid padding size, expected 2 but got 6"},
      {"return torch.reflection_pad1d(x.view([1, 1, 3]), [1, 1, 1, 1])",
       "reflection_pad1d: padding size is expected to be 2, but got: 4"},
      {"return torch.replication_pad2d(x.view([1, 3]), [1, 1, 1, 1])",
       "replication_pad2d: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
       "other non-zero dimensions for input, but got: [1, 3]"},
      {"return torch.replication_pad1d(x.view([1, 1, 3])[:, :, :0], [1, 1])",
       "replication_pad1d: Expected a non-empty input in dimension 2, but got [1, 1, 0]"},
  });
}

TEST(AotRefusalsTest, WordsOfRandomNumbers) {
  expectTheEnginesRefusals({
      {"return x.clone().uniform_(2.0, 1.0)",
       "uniform_ expects to return a [from, to) range, but found from=2 > to=1"},
      {"return torch.normal(x, -1.0)", "normal expects std >= 0.0, but found std -1"},
      {"return x.clone().normal_(0.0, -1.0)", "normal expects std >= 0.0, but found std -1"},
      {"return x.clone().random_(3, 3)",
       "random_ expects 'from' to be less than 'to', but got from=3 >= to=3"},
      {"return x.to(torch.uint8).random_(-1, 3)",
       "random_: the bounds -1 and 3 are out of range for uint8"},
      {"return x.to(torch.int8).random_(0, 129)",
       "random_: the bounds 0 and 129 are out of range for int8"},
      {"return x.clone().bernoulli_(2.0)", "bernoulli_ expects p to be in [0, 1], but got p=2"},
      {"return x.clone().exponential_(-1.0)",
       "exponential_ expects lambda >= 0.0, but found lambda=-1"},
      {"return x.clone().geometric_(1.0)", "geometric_ expects p to be in (0, 1), but got p=1"},
      {"return x.clone().log_normal_(0.0, 0.0)", "log_normal_ expects std > 0.0, but found std=0"},
      {"return torch.dropout(x, 1.5, True)",
       "dropout probability has to be between 0 and 1, but got 1.5"},
      {"return torch.dropout(x, 0.5, True)", "dropout: expected a floating point tensor, got int64",
       "3xi64"},
      {"return torch.rrelu(x, 0.5, 0.25, True)",
       "Lower bound should be less than or equal to the upper bound"},
      {"return torch.rrelu(x, 0.25, 0.5, True)",
       "\"rrelu_with_noise_out_cpu\" not implemented for 'Long'", "3xi64"},
      {"return torch.multinomial(x, 1)",
       "multinomial only supports floating-point dtypes for input, got: Long", "3xi64"},
      {"return torch.multinomial(x, 0)", "cannot sample n_sample <= 0 samples"},
      {"return torch.multinomial(x, 1)", "prob_dist must be 1 or 2 dim", "1x2x2xf32"},
      {"return torch.multinomial(x, 4)",
       "cannot sample n_sample > prob_dist.size(-1) samples without replacement"},
      {"return torch.randperm(-1) + x", "n must be non-negative, got -1"},
  });
}

TEST(AotRefusalsTest, WordsOfRegionsAndSelections) {
  expectTheEnginesRefusals({
      {"return torch.ops.torchvision.roi_align(x, y * 0, 1.0, 2, 2, 1, False)",
       "roi_align: expected an input of four dimensions, got 1"},
      {"return torch.ops.torchvision.roi_align(x, y * 0, 1.0, 2, 2, 1, False)",
       "roi_align: rois must have shape as Tensor[K, 5], got [3]", "1x1x2x2xf32"},
      {"return torch.ops.torchvision.roi_align(x, y * 0, 1.0, 2, 2, 1, False)",
       "roi_align: expected rois of type float32, got float64", "1x1x2x2xf32", "1x5xf64"},
      {"return torch.ops.torchvision.roi_align(x, y, 1.0, 0, 2, 1, False)",
       "roi_align: the pooled sizes must be positive, got 0 and 2", "1x1x2x2xf32", "1x5xf32"},
      {"return torch.ops.torchvision.roi_align(x[:, :, :0], y * 0, 1.0, 2, 2, 1, False)",
       "roi_align: the feature map has no elements", "1x1x2x2xf32", "1x5xf32"},
      {"return torch.ops.torchvision.roi_align(x, y * 0, 1.0, 2, 2, 2000000, False)",
       "roi_align: the sampling ratio 2000000 is too large", "1x1x2x2xf32", "1x5xf32"},
      {"return torch.ops.torchvision.ps_roi_align(x, y * 0, 1.0, 2, 2, 1)[0]",
       "ps_roi_align: input channels must be a multiple of pooling height * pooling width, got 1 "
       "and 2 * 2",
       "1x1x2x2xf32", "1x5xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, y, y, y, 1, 1, 0, 0, 1, 1, 1, 1, False)",
       "deform_conv2d: expected an input, weights, offsets and a mask of four dimensions",
       "1x1x2x2xf32", "3xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, x, x, y, 0, 1, 0, 0, 1, 1, 1, 1, False)",
       "deform_conv2d: stride_h: 0 stride_w: 1", "1x1x2x2xf32", "1xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, x, x, y, 1, 1, 0, 0, 1, 1, 2, 1, False)",
       "deform_conv2d: expected weights for 1 channels in 2 groups, got 1 each", "1x1x2x2xf32",
       "1xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x.double(), x, x, y, 1, 1, 0, 0, 1, 1, 1, 1, "
       "False)",
       "deform_conv2d: expected tensors of one type, got float32 and float64", "1x1x2x2xf32",
       "1xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, x, x, y, 1, 1, 0, 0, 3, 1, 1, 1, False)",
       "deform_conv2d: Calculated output size too small - out_h: 0 out_w: 1", "1x1x2x2xf32",
       "1xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, x, x, y, 1, 1, 2000000000, 0, 1, 1, 1, 1, "
       "False)",
       "deform_conv2d: offset.shape is not valid: got [1, 1, 2, 2], expected [1, 8, 4000000001, 1]",
       "1x1x2x2xf32", "1xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, x, x, y, 1, 1, 0, 0, 1, 1, 1, 1, False)",
       "deform_conv2d: offset.shape is not valid: got [1, 1, 2, 2], expected [1, 8, 1, 1]",
       "1x1x2x2xf32", "1xf32"},
      {"return torch.ops.torchvision.deform_conv2d(x, x, x.expand([1, 8, 2, 2])[:, :, :1, :1], x, "
       "y, 1, 1, 0, 0, 1, 1, 1, 1, False)",
       "deform_conv2d: expected a bias of 1 elements, got [2]", "1x1x2x2xf32", "2xf32"},
      {"return torch.unique_dim(x[:, :0], 0)[0]",
       "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
       "3x0xf32"},
      {"return torch.unique_dim(x[:0], 0)[0]",
       "Number of zero sized dimensions is more than one, so unique cannot be applied", "3x0xf32"},
      {"return torch.unique_dim(x[0], 0)[0]", "unique_dim: expected at least one dimension",
       "3xf32"},
  });
}

}  // namespace
}  // namespace wick::refusals_test
