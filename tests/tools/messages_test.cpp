// What torchscript-cli says to wrong use: each message once, with what was expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/tensor.h"
#include "serialization/npy.h"
#include "serialization/npz.h"
#include "tests/tools/cli_testing.h"
#include "wick.h"

namespace wick::messages_test {
namespace {

using testing::HasSubstr;
using testing_cli::cli;
using testing_cli::Outcome;
using testing_cli::write;

// "word word", where DIGITS is a model's file, FILES the folder of the test's files.
std::vector<std::string> wordsOf(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    if (word == "DIGITS") word = "examples/digits.pt";
    if (word.starts_with("FILES/")) word = testing_cli::temporary(word.substr(6));
    words.push_back(word);
  }
  return words;
}

struct Wrong {
  const char* line;
  const char* message;
  const char* before = "";
};

class WrongUse : public testing::Test {
 protected:
  WrongUse() {
    write("one.py", "def main(x: Tensor, y: int = 1) -> Tensor:\n    return x + y\n");
    write("two.py", "def f(x: Tensor): return x\ndef g(x: Tensor): return x\n");
    write("map.py", "def main(x: Dict[int, Tensor]) -> int:\n    return 1\n");
    write("number.py", "def main(x: int) -> int:\n    return x\n");
    write("cut.py",
          "def main(x: Tensor) -> Tensor:\n    return torch.cumsum(torch.flip(x, [1]), 1)\n");
    write("nine.py", "def main(a: Tensor, b: Tensor) -> Tensor:\n    return a.sum() + b.sum()\n");
    write("slope.py",
          "def main(x: Tensor) -> Tensor:\n    y = x.requires_grad_()\n    return "
          "(torch.sigmoid(y) * y * 2).exp()\n");
    write("not.json", "{");
    write("cluster.json", R"({"machines": [{"count": 65536}, {"count": 65536}]})");
    write("number.json", R"({"stages": [{"filters": [3]}]})");
    write("many.json", R"({"queue": 0, "stages": []})");
    saveNpy(Tensor::full({}, 1.0, DType::Float), testing_cli::temporary("single.npy"));
    saveNpy(Tensor::full({4, 2}, 1.0, DType::Float), testing_cli::temporary("x.npy"));
    saveNpz({{"other", Tensor::full({2}, 1.0, DType::Float)}},
            testing_cli::temporary("weights.npz"));
    saveNpz({{"x", Tensor::full({2, 1}, 1.0, DType::Float)}},
            testing_cli::temporary("unlabelled.npz"));
    write("plain.pt", "");
    write("wrong.py", "def main(x: Tensor) -> Tensor:\n    return (x + 1).view([3])\n");
    write("nan.py", "def main(x: Tensor) -> Tensor:\n    return torch.log(x - 1)\n");
    ModuleBuilder builder("Net");
    builder.registerParameter("weight", Tensor::full({2}, 1.0, DType::Float));
    builder.define("def forward(self, x: Tensor) -> Tensor:\n    return x * self.weight\n");
    const Module net = builder.build();
    net.save(testing_cli::temporary("net.pt"));
  }

  static void check(const std::vector<Wrong>& all, int code) {
    for (const Wrong& wrong : all) {
      SCOPED_TRACE(wrong.line);
      const Outcome o = cli(wordsOf(wrong.line), wrong.before);
      EXPECT_EQ(o.code, code);
      EXPECT_THAT(o.err, HasSubstr(wrong.message));
    }
  }
};

TEST_F(WrongUse, OfFlagsIsTold) {
  check(
      {
          {"run FILES/map.py --input {}x", "--input: "},
          {"bench FILES/map.py --input x=random",
           "--input: x of type Dict[int, Tensor] cannot be made up; write it out"},
          {"run FILES/one.py --input y=1 --input [1.]",
           "--input: arguments by position come before those by name"},
          {"run FILES/one.py --method forward", "--method is for archives"},
          {"run DIGITS --method forward --function main",
           "--method and --function exclude each other"},
          {"graph FILES/one.py --stage inference", "a script has no module to prepare"},
          {"graph DIGITS --depth 2", "--depth is for pictures"},
          {"graph DIGITS --output FILES/g.png",
           "--output: expected a name that ends in .svg, .dot or .gv for a picture, or in .txt, "},
          {"graph DIGITS --dot --output FILES/g.PDF", "for text, got "},
          {"graph DIGITS --svg --depth 0",
           "--depth: expected a number of levels from 1 on, or all, got 0"},
          {"graph DIGITS --dot --stage code", "--stage code: a picture shows graphs"},
          {"bench DIGITS --inptu x.npy", "bench has no flag --inptu; did you mean '--input'?"},
          {"bench DIGITS --input 1x1x28x28 --device lazy --concurrency 2", "it is for the CPU"},
          {"bench DIGITS --prepare",
           "bench has no flag --prepare; it prepares a module in evaluation mode always, and "
           "--no-prepare leaves that out"},
          {"evaluate DIGITS --target y",
           "evaluate has no flag --target; --labels names the labels"},
          {"run DIGITS one two", "not expected: one two"},
          {"run DIGITS --input 1x1x28x28 --json --expect FILES/x.npy",
           "--json and --expect exclude each other"},
          {"save FILES/one.py --weights FILES/x.npy --output FILES/saved.pt",
           "--weights is for archives"},
          {"evaluate DIGITS --data FILES/x.npy FILES/x.npy --loss cross", "--loss: expected "},
          {"save DIGITS --output FILES/saved.pt --method forward",
           "only a frozen module leaves methods out"},
          {"build FILES/nine.py --input AxBxCxDxExf32 --input FxGxHxIxf32 --output FILES/nine",
           "expected at most 8 names of sizes, got 9"},
          {"build DIGITS --input 1x1x28x28xf32 --output FILES/d --device cuda --standalone",
           "--standalone is for models that run on the CPU"},
          {"build DIGITS --input 1x1x28x28xf32 --output FILES/d --device cuda --winograd",
           "--winograd is for models that run on the CPU"},
          {"build DIGITS --input 1x1x28x28xf32 --output FILES/d --arch sm_90",
           "--arch is for models that run on CUDA devices"},
          {"build DIGITS --input 1x1x28x28xf32 --output FILES/d --device cuda --arch 80",
           "--arch: expected architectures like sm_80,sm_90, got '80'"},
          {"profile FILES/one.py --input [1.] --prepare", "--prepare: "},
          {"pipeline DIGITS --input 1x1x28x28xf32 --output FILES/o.npy --run FILES/x.npy",
           "expected a name that ends in .pt"},
          {"pipeline DIGITS --input 1x1x28x28xf32 --run FILES/single.npy",
           "expected a tensor with rows"},
          {"pipeline FILES/one.py --input 8xf32 --chunk 2 --plan FILES/not.json",
           "--chunk goes with neither"},
          {"pipeline FILES/number.py --input 3 --chunk 2",
           "--chunk: the model's first argument must be a tensor"},
          {"train DIGITS --data FILES/x.npy --loss mse --checkpoint-every 2 --output FILES/t.pt",
           "--checkpoint-every needs a --checkpoint"},
          {"train DIGITS --data FILES/x.npy --loss mse --validation 0.5 --validation-data "
           "FILES/x.npy "
           "--output FILES/t.pt",
           "--validation and --validation-data exclude each other"},
          {"train DIGITS --data FILES/x.npy FILES/x.npy --loss mse --schedule onecycle --warm-up 3 "
           "--output FILES/t.pt",
           "onecycle has a warm-up of its own"},
          {"run FILES/one.py --input [1.]",
           "WICK_OPT_LIMIT: optimization limits: expected NAME=NUMBER pairs separated by ':', got "
           "'much'",
           "WICK_OPT_LIMIT=much"},
      },
      2);
}

TEST_F(WrongUse, OfFilesIsTold) {
  check(
      {
          {"pipeline DIGITS --input 1x1x28x28xf32 --plan FILES/not.json", "plan: not JSON"},
          {"pipeline DIGITS --input 1x1x28x28xf32 --plan FILES/number.json",
           "plan, stage 1: expected names of filters, found 3"},
          {"pipeline DIGITS --input 1x1x28x28xf32 --plan FILES/many.json",
           "plan: expected a number from 1 to 1048576 for \"queue\", found 0"},
          {"pipeline DIGITS --input 1x1x28x28xf32 --simulate FILES/not.json", "cluster: not JSON"},
          {"pipeline DIGITS --input 1x1x28x28xf32 --simulate FILES/cluster.json",
           "cluster: expected at most 65536 machines"},
          {"train DIGITS --data FILES/x.npy --loss mse --output FILES/t.pt",
           "holds one tensor; give the file of the targets behind it"},
          {"train FILES/net.pt --data FILES/x.npy FILES/x.npy --loss mse --weights "
           "FILES/weights.npz --output FILES/t.pt",
           "weights.npz: the state does not fit Net:\n  missing: weight\n  unexpected: other"},
          {"evaluate DIGITS --data FILES/unlabelled.npz --labels zz",
           "unlabelled.npz: there is no zz; it has x. --labels names the targets"},
          {"evaluate DIGITS --data FILES/unlabelled.npz",
           "there is no y, target, targets, label or labels; it has x. --labels names the targets"},
          {"train DIGITS --data FILES/unlabelled.npz --loss mse --output FILES/t.pt",
           "it has x. --target names the targets"},
          {"pipeline FILES/wrong.py --input 8xf32 --chunk 2", "shape '[3]' is invalid"},
          {"profile FILES/wrong.py --input 8xf32", "shape '[3]' is invalid"},
          {"pipeline FILES/nan.py --input 8xf32=zeros --chunk 2 --verify",
           "--verify: the pieces differ from one call by nan of the largest number"},
      },
      1);
}

TEST_F(WrongUse, OfEnvironmentVariablesIsTold) {
  check(
      {
          {"run FILES/one.py --input [1.]", "WICK_OPTIMIZE: expected 0, 1 or stress, got 'much'",
           "WICK_OPTIMIZE=much"},
          {"run FILES/one.py --input [1.]", "WICK_FUSION: expected none, groups or all, got 'some'",
           "WICK_FUSION=some"},
          {"run FILES/slope.py --grad --input [1.]",
           "WICK_GRADIENT_GRAPHS: expected on or off, got '2'", "WICK_GRADIENT_GRAPHS=2"},
          {"graph FILES/one.py", "WICK_TYPE_VERBOSITY: expected 0 to 3, got '9'",
           "WICK_TYPE_VERBOSITY=9"},
      },
      1);
}

}  // namespace
}  // namespace wick::messages_test
