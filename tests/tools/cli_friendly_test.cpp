// What torchscript-cli does for people at a terminal, and for programs that read what it prints.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "core/ivalue.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "serialization/npy.h"
#include "serialization/torch_save.h"
#include "tests/tools/cli_testing.h"
#include "wick.h"

namespace wick::cli_friendly_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace testing_cli;

TEST(FriendlyCliTest, TellsItsVersion) {
  const Outcome o = cli({"--version"});
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, "torchscript-cli 0.1.0\n");
}

TEST(FriendlyCliTest, GuessesCommands) {
  const Outcome o = cli({"runn", kDigits});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, StartsWith("unknown command 'runn', did you mean 'run'?\n"));
  EXPECT_THAT(cli({"zzzzzz"}).err, StartsWith("unknown command 'zzzzzz'; there are bench, "));
}

TEST(FriendlyCliTest, ReadsStandardInput) {
  const std::string script = write("in.py", "def main(n: int) -> int:\n    return n + 1\n");
  Outcome o = cli({"run", "-", "--input", "-5"}, "", "<" + script);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "-4\n");
  o = cli({"run", "-", "--input", kSeven}, "", "<" + kDigits);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("largest at 7 "));
  o = cli({"run", "-"}, "", "</dev/null");
  EXPECT_EQ(o.code, 1);
  o = cli({"check", "-"}, "", "<" + write("bad.py", "def f(:\n"));
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("<standard input>"));
}

TEST(FriendlyCliTest, PrintsResultsAsJson) {
  const std::string script = write("json.py", R"(
def main() -> Tuple[int, float, Optional[str], List[bool], Dict[str, Tensor]]:
    x: Optional[str] = None
    return 1, 0.5, x, [True], {"a \"b\"": torch.tensor([[1.5, float("nan")], [float("inf"), -2.0]])}
)");
  const Outcome o = cli({"run", script, "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const json result = json::parse(o.out);
  EXPECT_EQ(result[0], 1);
  EXPECT_EQ(result[1], 0.5);
  EXPECT_TRUE(result[2].is_null());
  EXPECT_EQ(result[3][0], true);
  const json& tensor = result[4]["a \"b\""];
  EXPECT_EQ(tensor["dtype"], "float32");
  EXPECT_EQ(tensor["size"], json({2, 2}));
  EXPECT_EQ(tensor["data"], json({1.5, "nan", "inf", -2.0}));
  const json digits = json::parse(cli({"run", kDigits, "--input", kSeven, "--json"}).out);
  EXPECT_EQ(digits["data"].size(), 10u);
  EXPECT_EQ(cli({"run", kDigits, "--json", "--output", "x.pt"}).code, 2);
}

TEST(FriendlyCliTest, PrintsInfoAsJson) {
  const json info = json::parse(cli({"info", kDigits, "--json"}).out);
  EXPECT_EQ(info["kind"], "archive");
  EXPECT_EQ(info["methods"][0]["name"], "forward");
  EXPECT_EQ(info["methods"][0]["arguments"][0]["type"], "Tensor");
  EXPECT_EQ(info["parameters"].size(), 10u);
  EXPECT_EQ(info["parameters"][0]["name"], "conv_layers.0.weight");
  EXPECT_EQ(info["parameters"][0]["size"], json({8, 1, 3, 3}));
  const json script = json::parse(
      cli({"info", write("f.py", "def f(n: int = 3) -> int:\n    return n\n"), "--json"}).out);
  EXPECT_EQ(script["functions"][0]["arguments"][0]["default"], "3");
}

TEST(FriendlyCliTest, SeedsDecideRandomNumbers) {
  const std::string script = write("random.py", "def main(x):\n    return torch.rand(3) + x\n");
  const auto once = [&](const std::string& seed) {
    const Outcome o = cli({"run", script, "--input", "3xf32", "--seed", seed, "--json"});
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_EQ(once("1"), once("1"));
  EXPECT_NE(once("1"), once("2"));
  EXPECT_EQ(cli({"run", script, "--seed", "x"}).code, 2);
}

TEST(FriendlyCliTest, InputsComeFromFilesAndLiterals) {
  const std::string script =
      write("sum.py", "def main(x: Tensor) -> float:\n    return float(x.sum())\n");
  const std::string file = temporary("tensor.pt");
  saveValue(Tensor::full({2, 2}, 2, DType::Float), file);
  EXPECT_EQ(cli({"run", script, "--input", "@" + file}).out, "8.0\n");
  EXPECT_EQ(cli({"run", script, "--input", "[[1, 2], [3, 4.5]]"}).out, "10.5\n");
  EXPECT_EQ(cli({"run", script, "--input", "x=[1, 2]"}).out, "3.0\n");
  EXPECT_EQ(cli({"run", script, "--input", "[[1], [2, 3]]"}).code, 2);
  EXPECT_EQ(cli({"run", script, "--input", "@/no/such.pt"}).code, 1);
}

TEST(FriendlyCliTest, ModulesInTrainingAreTold) {
  // digits.pt was saved for evaluation.
  EXPECT_EQ(cli({"run", kDigits, "--input", kSeven}).err, "");
  EXPECT_EQ(cli({"run", kDigits, "--input", kSeven, "--eval"}).code, 0);
  const Outcome o = cli({"run", write("s.py", "def main():\n    return 1\n"), "--eval"});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("a script has no module"));
}

TEST(FriendlyCliTest, ColorsAreForTerminals) {
  const std::string bad = write("color.py", "def main():\n    return nothing\n");
  EXPECT_THAT(cli({"run", bad}).err, Not(HasSubstr("\x1b[")));
  const Outcome forced = cli({"run", bad}, "CLICOLOR_FORCE=1");
  EXPECT_THAT(forced.err,
              AllOf(HasSubstr("\x1b[1;31mundefined value nothing"), HasSubstr("\x1b[33m")));
  EXPECT_THAT(cli({"run", bad}, "NO_COLOR=1 CLICOLOR_FORCE=1").err, Not(HasSubstr("\x1b[")));
}

TEST(FriendlyCliTest, PicturesShowWeightsConstantsShapesAndModules) {
  Outcome o = cli({"graph", kDigits, "--dot", "--depth", "all", "--input", "1x1x28x28xf32"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("conv_layers.0.weight\\lfloat32[8, 1, 3, 3]"),
                           HasSubstr("label=\"conv_layers.0\""), HasSubstr("float32[1, 10]"),
                           Not(HasSubstr("prim::Constant")), Not(HasSubstr("prim::GetAttr")),
                           Not(HasSubstr("prim::ListConstruct"))));
  EXPECT_THAT(o.out, HasSubstr("stride=[2, 2]"));
  // Every frame that opens closes.
  EXPECT_EQ(std::count(o.out.begin(), o.out.end(), '{'),
            std::count(o.out.begin(), o.out.end(), '}'));
  const std::string script = write("branch.py", R"(
def main(x: Tensor, n: int) -> Tensor:
    if n > 3:
        x = x.clamp(0.0, 2.0)
    for i in range(n):
        x = x + i
    return x
)");
  o = cli({"graph", script, "--function", "main", "--dot"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("label=\"then\""), HasSubstr("label=\"loop body\""),
                           HasSubstr("min=0.0\\lmax=2.0")));
  EXPECT_EQ(cli({"graph", kDigits, "--dot", "--stage", "code"}).code, 2);
  // Without Graphviz the error says what is missing.
  o = cli({"graph", script, "--function", "main", "--svg"}, "PATH=/nowhere");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("Graphviz's program dot"));
  // A message says why nothing is drawn.
  const std::string folder = temporary("programs");
  std::filesystem::create_directories(folder);
  write("programs/dot", "#!/bin/sh\nexit 3\n");
  std::filesystem::permissions(folder + "/dot", std::filesystem::perms::owner_all);
  const auto drawn = [&](const std::string& before) {
    const Outcome outcome = cli({"graph", script, "--function", "main", "--svg"}, before);
    EXPECT_EQ(outcome.code, 1);
    return outcome.err;
  };
  EXPECT_THAT(drawn("PATH=" + folder), HasSubstr("--svg: dot failed"));
  EXPECT_THAT(drawn("prlimit --nofile=4"),
              HasSubstr("--svg: a temporary file cannot be made: Too many open files"));
  EXPECT_THAT(drawn("env --ignore-signal=XFSZ prlimit --fsize=900"),
              HasSubstr("--svg: a temporary file cannot be written: File too large"));
  if (std::system("command -v dot >/dev/null 2>&1") == 0) {
    EXPECT_THAT(cli({"graph", script, "--function", "main", "--svg"}).out, HasSubstr("<svg"));
  }
}

TEST(FriendlyCliTest, FilesThatAreNoModulesSayWhatTheyAre) {
  auto state = makeRef<DictObject>(types::String(), types::Tensor());
  state->set("fc.weight", Tensor::zeros({2, 3}, DType::Float));
  const std::string dict = temporary("state.pt");
  saveValue(state, dict);
  Outcome o = cli({"run", dict});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("holds a state dict, 1 tensor (fc.weight)"),
                           HasSubstr("torch.jit.script(module).save")));
  const std::string tensor = temporary("one.pt");
  saveValue(Tensor::zeros({2}, DType::Float), tensor);
  EXPECT_THAT(cli({"check", tensor}).err, HasSubstr("--input @" + tensor));
  const std::string npy = temporary("array.npy");
  saveNpy(Tensor::zeros({2}, DType::Float), npy);
  EXPECT_THAT(cli({"run", npy}).err, HasSubstr("is a NumPy array, no program"));
  // A ZIP file that begins with an array.
  const std::string header("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0",
                           30);
  EXPECT_THAT(cli({"run", write("arrays.npz", header + "x.npy")}).err,
              HasSubstr("is an archive of NumPy arrays, no program"));
  EXPECT_THAT(cli({"run", write("old.pkl", "\x80\x04K\x01.")}).err, HasSubstr("a Python pickle"));
}

TEST(FriendlyCliTest, EveryVerbSaysWhatAFileIs) {
  const std::string onnx =
      write("model.pt", std::string("\x08\x08\x12\x07pytorch\x3a\x02\x0a\x00\x42\x02\x10\x11", 19));
  const std::string page = write("page.pt", "<html>");
  const std::string out = temporary("out.pt");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", onnx},
        {"check", onnx},
        {"info", onnx},
        {"graph", onnx},
        {"convert", onnx, out},
        {"diff", onnx, kDigits},
        {"diff", kDigits, onnx},
        {"train", onnx, "--data", "examples/seven.npy", "--loss", "mse", "--output", out},
        {"save", onnx, "--output", out},
        {"run", kDigits, "--input", "@" + onnx}}) {
    const Outcome o = cli(words);
    EXPECT_EQ(o.code, 1) << words[0];
    EXPECT_THAT(o.err, HasSubstr(onnx + " is an ONNX model, which Wick does not run; "));
    EXPECT_THAT(o.err, Not(HasSubstr("wick::"))) << words[0];
  }
  EXPECT_THAT(cli({"missing", page}).out, HasSubstr("is a web page; download the file again"));
  EXPECT_THAT(cli({"run", "-"}, "", "<" + page).err,
              HasSubstr("<standard input> is a web page; download the file again"));
  EXPECT_THAT(cli({"run", write("page.py", "<html>")}).err, HasSubstr("page.py is a web page"));
}

TEST(FriendlyCliTest, ContentsDecideNotNames) {
  const std::string archive = temporary("digits.py");
  std::filesystem::copy_file(kDigits, archive, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(cli({"run", archive, "--input", kSeven}).code, 0);
  const std::string array = temporary("seven.pt");
  std::filesystem::copy_file("examples/seven.npy", array,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(cli({"run", kDigits, "--input", "@" + array}).code, 0);
  EXPECT_THAT(cli({"run", write("script.txt", "def main():\n    return 1\n")}).err,
              HasSubstr("script.txt is text; the name of a script ends in .py"));
}

TEST(FriendlyCliTest, ThingsAreCountedInWords) {
  const std::string one = temporary("counted.npy");
  saveNpy(Tensor::zeros({1}, DType::Float), one);
  EXPECT_THAT(cli({"info", one}).out, HasSubstr(": 1 tensor, 1 number, 4 bytes"));
  // A script is one filter, which is one stage.
  const std::string script = write("counted.py", "def main(x: Tensor):\n    return x + 1\n");
  const Outcome o = cli({"pipeline", script, "--input", "3xf32", "--stages", "1", "--items", "1"});
  EXPECT_THAT(o.out, HasSubstr(": 1 filter, 1 stage, 1 thread, 1 item\n")) << o.err;
}

// Classes that share a name have others in the program, which nobody gave them.
TEST(FriendlyCliTest, ClassesAreToldByTheNamesOfTheirAuthors) {
  const auto saved = [](const std::string& file, const std::string& name, const char* body) {
    const auto layer = [&](const std::string& class_name) {
      ModuleBuilder builder(class_name);
      builder.define(std::string("def forward(self, x: Tensor) -> Tensor:\n    return ") + body +
                     "\n");
      return builder.build();
    };
    ModuleBuilder builder(name);
    builder.registerModule("a", layer("Layer"));
    builder.registerModule("b", layer("Layer"));
    builder.define("def forward(self, x: Tensor) -> Tensor:\n    return self.b(self.a(x))\n");
    builder.build().save(temporary(file));
    return temporary(file);
  };
  const std::string one = saved("one_class.pt", "Net", "x + 1");
  const std::string two = saved("other_class.pt", "Other", "x + 2");
  Outcome o = cli({"graph", one, "--method", "nosuch"});
  EXPECT_THAT(o.err, HasSubstr("one_class.pt: Net has no method nosuch; it has forward"));
  o = cli({"diff", one, two});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, AllOf(HasSubstr("the modules are of the classes Net and Other\n"),
                           HasSubstr("method Net.forward: only in "),
                           HasSubstr("method Layer.forward: the code differs (2 classes of "
                                     "this name)\n"),
                           Not(HasSubstr("_mangle_"))));
}

TEST(FriendlyCliTest, PicklesOfModulesAreToldByEveryVerb) {
  const std::string pickle = temporary("objects.pt");
  std::string bytes;
  {
    ArchiveWriter writer(
        [&](std::span<const std::byte> data) {
          bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
        },
        "objects");
    writer.write("data.pkl",
                 "\x80\x02"
                 "cmodels\nNet\n.");
    writer.write("version", "3\n");
    writer.finish();
  }
  write("objects.pt", bytes);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", pickle}, {"convert", pickle, temporary("objects.npz")}}) {
    const Outcome o = cli(words);
    EXPECT_EQ(o.code, 1);
    EXPECT_THAT(o.err, HasSubstr("objects.pt holds Python objects that torch.save wrote"));
    EXPECT_THAT(o.err, Not(HasSubstr("data.pkl")));
  }
  EXPECT_THAT(cli({"convert", pickle, temporary("objects.npz")}).err,
              AllOf(HasSubstr("wrote (models.Net), without the program of any module; in Python"),
                    HasSubstr("torch.save(module.state_dict(), \"weights.pt\")")));
}

TEST(FriendlyCliTest, AbsentDevicesAreToldOnceAndKernelsWhereTheyHelp) {
  const Outcome o = cli({"devices"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, StartsWith("cpu\n"));
  if (o.out.find("no CUDA device: ") == std::string::npos) GTEST_SKIP() << "there are CUDA devices";
  EXPECT_THAT(o.out, Not(HasSubstr("kernels are compiled by")));
  EXPECT_THAT(o.out, Not(HasSubstr("no compiler for")));
  const std::string script = write("on_device.py", "def main(x: Tensor):\n    return x + 1\n");
  for (const char* device : {"cuda", "cuda:0"}) {
    const std::string error = cli({"run", script, "--input", "3xf32", "--device", device}).err;
    EXPECT_THAT(error, HasSubstr("device cuda:0: there are 0 such devices"));
    const size_t library = error.find("libcuda");
    EXPECT_TRUE(library == error.npos || error.find("libcuda", library + 1) == error.npos) << error;
  }
}

TEST(FriendlyCliTest, FilesOfTensorsLackNothing) {
  const std::string dict = temporary("weights.pt");
  auto state = makeRef<DictObject>(types::String(), types::Tensor());
  state->set("w", Tensor::zeros({2}, DType::Float));
  saveValue(state, dict);
  const Outcome o = cli({"missing", dict, kDigits});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "1 of 1 files lack nothing\n" + dict + " holds no program\n");
  EXPECT_EQ(cli({"missing", dict}).out, dict + " holds no program\n");
  EXPECT_THAT(cli({"missing", "--json", dict}).out,
              HasSubstr("\"without_program\":[\"" + dict + "\"]"));
}

TEST(FriendlyCliTest, CheckFindsDamagedRecords) {
  std::ifstream file(kDigits, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ArchiveReader archive = ArchiveReader::open(kDigits);
  const std::string weights(archive.read("data/0").text().substr(0, 64));
  const size_t at = bytes.find(weights);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  const std::string damaged = write("damaged.pt", bytes);
  EXPECT_EQ(cli({"run", damaged, "--input", kSeven}).code, 0);
  Outcome o = cli({"check", damaged});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("/data/0': the checksum does not match"));
  o = cli({"check", "-"}, "", "<" + damaged);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("/data/0': the checksum does not match"));
}

TEST(FriendlyCliTest, WrongNamesOfArgumentsSayWhichAreMeant) {
  const std::string script =
      write("named.py", "def main(scale: int, offset: int):\n    return scale\n");
  const Outcome o = cli({"run", script, "--input", "scael=3"});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err,
              HasSubstr("there is no argument scael; did you mean 'scale'?; the arguments are: "
                        "scale: int, offset: int"));
}

TEST(FriendlyCliTest, ScriptsFromPythonSayWhatToDo) {
  const Outcome net = cli({"run", write("net.py", R"(
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x)
)")});
  EXPECT_EQ(net.code, 1);
  EXPECT_THAT(net.err, HasSubstr("torch.jit.script(Net()).save(\"model.pt\")"));
  // One that compiles as a class.
  const Outcome small = cli({"run", write("small.py",
                                          "import torch.nn as nn\nclass Small(nn.Module):\n"
                                          "    def forward(self, x):\n        return x\n")});
  EXPECT_EQ(small.code, 1);
  EXPECT_THAT(small.err, AllOf(HasSubstr("there is no function main"),
                               HasSubstr("torch.jit.script(Small()).save(\"model.pt\")")));
  const Outcome np =
      cli({"run", write("np.py", "import numpy as np\ndef main(x):\n    return np.sum(x)\n")});
  EXPECT_EQ(np.code, 1);
  EXPECT_THAT(np.err, AllOf(HasSubstr("undefined value np"), HasSubstr("'np' is NumPy")));
  const Outcome own =
      cli({"run",
           write("own.py", "from mylib import a, helper as h\ndef main(x):\n    return h(x)\n")});
  EXPECT_THAT(own.err, HasSubstr("'h' is imported from mylib"));
  // Other errors are told as they were.
  EXPECT_THAT(cli({"run", write("plain.py", "def main(x):\n    return nothing\n")}).err,
              Not(HasSubstr("imported")));
}

TEST(FriendlyCliTest, PicturesShowABoxForEachModule) {
  Outcome o = cli({"graph", kDigits, "--dot", "--input", "1x1x28x28"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("label=\"conv_layers.0\\nConv2d\\n80 parameters\""),
                           HasSubstr("label=\"float32[1, 10]\""), HasSubstr("label=\"result\""),
                           Not(HasSubstr("stride"))));
  o = cli({"graph", kDigits, "--dot", "--depth", "1"});
  EXPECT_THAT(
      o.out, AllOf(HasSubstr("label=\"conv_layers\\nSequential"), Not(HasSubstr("conv_layers.0"))));
  const std::string file = temporary("picture.dot");
  ASSERT_EQ(cli({"graph", kDigits, "--depth", "1", "--output", file}).code, 0);
  EXPECT_EQ(readText(file), o.out);
  // Branches that only check are left out, also in scripts.
  const std::string checks = write("checks.py", R"(
def main(x: Tensor, n: int) -> Tensor:
    if x.dim() != 2:
        raise ValueError("two dimensions")
    assert n > 0
    return x.relu()
)");
  o = cli({"graph", checks, "--dot"});
  EXPECT_THAT(o.out, AllOf(HasSubstr("label=\"relu\""), Not(HasSubstr("RaiseException")),
                           Not(HasSubstr("label=\"then\"")), Not(HasSubstr("dim"))));
  o = cli({"graph", "tests/nested/data/two_layers.pt", "--dot"});
  EXPECT_THAT(o.out, AllOf(HasSubstr("layers.0"), HasSubstr("layers.1")));
}

TEST(FriendlyCliTest, ResultsAreComparedWithRecordedOnes) {
  const std::string script =
      write("expected.py", "def main(x: Tensor):\n    return x * 2, {'n': 3}\n");
  const std::string recorded = temporary("recorded.pt");
  ASSERT_EQ(cli({"run", script, "--input", "[1., 2.]", "--output", recorded}).code, 0);
  Outcome o = cli({"run", script, "--input", "[1., 2.]", "--expect", recorded});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("the result is as"));
  const std::vector<std::string> other = {"run",         script,     "--input",
                                          "[1., 2.001]", "--expect", recorded};
  o = cli(other);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, HasSubstr("result[0]: 1 of 2 numbers differ, by up to 0.002 at [1] (4.00"));
  EXPECT_THAT(o.err, AllOf(HasSubstr("the result differs from"), Not(HasSubstr("RuntimeError"))));
  for (const std::vector<std::string>& within :
       {std::vector<std::string>{"--tolerance", "1e-3"}, {"--atol", "0.003"}, {"--rtol", "1e-3"}}) {
    std::vector<std::string> words = other;
    words.insert(words.end(), within.begin(), within.end());
    EXPECT_EQ(cli(words).code, 0) << within[0];
  }
  EXPECT_EQ(cli({"run", script, "--input", "[1.]", "--expect", temporary("no.pt")}).code, 1);
}

TEST(FriendlyCliTest, DiffTellsWhereAndByHowMuch) {
  const std::string a = temporary("a.npy"), b = temporary("b.npy");
  const std::string script = write("same.py", "def main(x: Tensor):\n    return x\n");
  ASSERT_EQ(cli({"run", script, "--input", "[[1., 2.], [3., 4.]]", "--output", a}).code, 0);
  ASSERT_EQ(cli({"run", script, "--input", "[[1., 2.], [3., 4.5]]", "--output", b}).code, 0);
  const Outcome o = cli({"diff", a, b});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, StartsWith("tensor: 1 of 4 numbers differ, by up to 0.5 at [1, 1] (4 and "
                                "4.5), relatively by up to 0.111 there"));
  EXPECT_THAT(o.err, Not(HasSubstr("RuntimeError")));
  EXPECT_EQ(cli({"diff", a, b, "--atol", "0.5"}).code, 0);
  EXPECT_EQ(cli({"diff", a, b, "--atol", "0.4", "--rtol", "0.01"}).code, 1);
}

TEST(FriendlyCliTest, InfoListsTensorsTotalsAndOperators) {
  Outcome o = cli({"info", kDigits});
  EXPECT_THAT(o.out,
              AllOf(HasSubstr("class Digits\n"), HasSubstr("conv_layers.0  torch.nn.modules.conv."),
                    Not(HasSubstr("__torch__")), Not(HasSubstr("_mangle_")),
                    HasSubstr("Conv2d  80 numbers, 320 bytes"), HasSubstr("operators of forward"),
                    HasSubstr("  aten::conv2d")));
  const std::string weights = temporary("digits.safetensors");
  ASSERT_EQ(cli({"convert", kDigits, weights}).code, 0);
  o = cli({"info", weights});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr(" tensors, "),
                           HasSubstr("conv_layers.0.weight  float32[8, 1, 3, 3]")));
  const json all = json::parse(cli({"info", weights, "--json"}).out);
  EXPECT_EQ(all["kind"], "tensors");
  EXPECT_FALSE(all["tensors"].empty());
  // New weights for the same program.
  const std::string saved = temporary("reweighted.pt");
  ASSERT_EQ(cli({"save", kDigits, "--weights", weights, "--output", saved}).code, 0);
  EXPECT_EQ(cli({"diff", kDigits, saved}).code, 0);
  o = cli({"save", "tests/nested/data/two_layers.pt", "--weights", weights, "--output", saved});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err,
              AllOf(HasSubstr(weights + ": the state does not fit "), Not(HasSubstr("__torch__"))));
}

TEST(FriendlyCliTest, TheWorkerTellsItsProtocol) {
  const Outcome o = cli({"worker", "--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out,
              AllOf(HasSubstr("\"exit\""), HasSubstr("\"stdout\""), HasSubstr("\"stderr\"")));
}

TEST(FriendlyCliTest, CompletionsKnowEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome o = cli({"completions", shell});
    EXPECT_EQ(o.code, 0);
    for (const char* verb : {"run", "check", "graph", "info", "bench", "input", "seed"}) {
      EXPECT_THAT(o.out, HasSubstr(verb));
    }
  }
  EXPECT_EQ(cli({"completions", "tcsh"}).code, 2);
  EXPECT_EQ(cli({"completions"}).code, 2);
}

// Bash asks the program for the names that may follow --method.
TEST(FriendlyCliTest, CompletionsKnowTheMethodsOfAFile) {
  EXPECT_EQ(cli({"completions", "--of", kDigits}).out, "forward\n");
  EXPECT_NE(cli({"completions", "--of", "no_such_file.pt"}).code, 0);
  const std::string script = temporary("names.sh");
  std::ofstream(script)
      << cli({"completions", "bash"}).out
      << "torchscript-cli() { [ \"$3\" = model.pt ] && printf 'forward\\nencode\\n'; }\n"
         "cd \"$1\" && touch model.pt\n"
         "COMP_WORDS=(torchscript-cli run model.pt --method e) COMP_CWORD=4\n"
         "_torchscript_cli\n"
         "echo \"${COMPREPLY[*]}\"\n";
  const std::string folder = std::filesystem::path(script).parent_path().string();
  FILE* const pipe = popen(fmt::format("bash '{}' '{}'", script, folder).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char text[200] = "";
  EXPECT_NE(fgets(text, sizeof text, pipe), nullptr);
  pclose(pipe);
  EXPECT_STREQ(text, "encode\n");
}

}  // namespace
}  // namespace wick::cli_friendly_test
