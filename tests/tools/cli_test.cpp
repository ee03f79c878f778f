// torchscript-cli as a process: exit codes, messages and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "serialization/npy.h"
#include "serialization/torch_save.h"
#include "tests/tools/cli_testing.h"

namespace wick::cli_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using namespace testing_cli;

Outcome runScript(const std::string& text, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"run", write("script.py", text)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return cli(arguments);
}

TEST(CliTest, ReadsASeven) {
  const Outcome o = cli({"run", kDigits, "--input", kSeven});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("float32[1, 10]"), HasSubstr("largest at 7 ")));
}

TEST(CliTest, RunsOnLazyTensors) {
  const std::string plain = cli({"run", kDigits, "--input", kSeven}).out;
  for (const char* device : {"lazy", "lazy:cpu"}) {
    const Outcome o = cli({"run", kDigits, "--input", kSeven, "--device", device});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, plain) << device;
  }
  const Outcome wrong = cli({"run", kDigits, "--input", kSeven, "--device", "lazy:meta"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("cannot be on meta"));
}

// The first gradient of a process reaches views that were made before.
TEST(CliTest, GradientsBeginBehindAView) {
  const std::string text =
      "def main():\n"
      "    base = torch.zeros([3])\n"
      "    view = base[:2]\n"
      "    p = torch.tensor([1., 2., 3.], requires_grad=True)\n"
      "    base.add_(p)\n"
      "    wants = view.requires_grad and (p * 2).requires_grad\n"
      "    view.sum().backward()\n"
      "    return p.grad, wants\n";
  for (const char* level : {"0", "1", "stress"}) {
    const Outcome o = runScript(text, {"--grad", "--optimize", level});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, AllOf(HasSubstr("[1., 1., 0.]"), HasSubstr("1: True"))) << level;
  }
}

TEST(CliTest, PreparedMethodsGiveTheSameResult) {
  const std::string plain = temporary("plain.npy"), prepared = temporary("prepared.npy");
  ASSERT_EQ(cli({"run", kDigits, "--input", kSeven, "--output", plain}).code, 0);
  ASSERT_EQ(cli({"run", kDigits, "--input", kSeven, "--prepare", "--output", prepared}).code, 0);
  const Tensor a = loadNpy(plain), b = loadNpy(prepared);
  ASSERT_EQ(DimVector(a.sizes()), DimVector(b.sizes()));
  for (int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-5);
  }
  EXPECT_THAT(runScript("def main():\n    return 1\n", {"--prepare"}).err,
              HasSubstr("--prepare: a script has no module"));
}

TEST(CliTest, BuildWritesAModelAheadOfTime) {
  const std::string folder = temporary("ahead");
  std::filesystem::remove_all(folder);
  const Outcome built =
      cli({"build", kDigits, "--input", "1x1x28x28xf32", "--output", folder, "--name", "reader"});
  EXPECT_EQ(built.code, 0) << built.err;
  EXPECT_THAT(built.out, AllOf(HasSubstr("compile it with:"), HasSubstr("reader.cpp wick_aot.c")));
  EXPECT_THAT(readText(folder + "/reader.h"), HasSubstr("int reader_forward("));
  const std::string odd = temporary("it's $(one) folder");
  EXPECT_THAT(cli({"build", kDigits, "--input", "1x1x28x28xf32", "--output", odd}).out,
              HasSubstr("it'\\''s $(one) folder' && g++ "));
  EXPECT_THAT(readText(folder + "/reader.weights"), testing::StartsWith("WICKAOT"));

  const std::string script =
      write("doubled.py", "def main(x: Tensor) -> Tensor:\n    return x * 2\n");
  const Outcome library =
      cli({"build", script, "--input", "3xf32", "--output", folder, "--emit", "library"});
  EXPECT_EQ(library.code, 0) << library.err;
  EXPECT_TRUE(std::filesystem::exists(folder + "/libdoubled.so"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/doubled.weights"));
  const Outcome object =
      cli({"build", script, "--input", "3xf32", "--output", folder, "--emit", "object"});
  EXPECT_EQ(object.code, 0) << object.err;
  EXPECT_TRUE(std::filesystem::exists(folder + "/doubled.o"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/wick_aot.o"));

  const auto sized = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"build", script, "--input", "Nx3xf32", "--output", folder};
    words.insert(words.end(), more.begin(), more.end());
    return cli(words);
  };
  EXPECT_EQ(sized({"--range", "N=2..16:2"}).code, 0);
  EXPECT_THAT(readText(folder + "/doubled.h"),
              AllOf(HasSubstr("float32[N, 3]"), HasSubstr("N from 2 to 16 by 2")));
  EXPECT_EQ(sized({"--static", "N=4"}).code, 0);
  EXPECT_THAT(readText(folder + "/doubled.h"), HasSubstr("float32[4, 3]"));
  EXPECT_EQ(sized({}).code, 0);
  EXPECT_THAT(readText(folder + "/doubled.h"), HasSubstr("N from 1 to 64"));
  EXPECT_THAT(sized({"--range", "M=1..4"}).err, HasSubstr("no input has a size 'M'"));
  EXPECT_THAT(sized({"--range", "N=4"}).err, HasSubstr("expected NAME=SMALLEST..LARGEST"));
  EXPECT_THAT(sized({"--range", "N=4..2"}).err, HasSubstr("one that is not smaller"));
  EXPECT_THAT(sized({"--range", "N=1..x"}).err, HasSubstr("expected a size, got 'x'"));
  EXPECT_THAT(sized({"--range", "N=1..9999"}).err, HasSubstr("more than 4096"));
  EXPECT_THAT(sized({"--static", "N"}).err, HasSubstr("expected NAME=SIZE"));
  EXPECT_THAT(sized({"--static", "N=2", "--range", "N=1..2"}).err, HasSubstr("given twice"));

  // Nothing of what builds it shows.
  const std::string quantizes =
      write("quantizes.py",
            "def main(x: Tensor):\n    q = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)\n"
            "    return q.dequantize()\n");
  const Outcome kind = cli({"build", quantizes, "--input", "3xf32", "--output", folder});
  EXPECT_EQ(kind.code, 1);
  EXPECT_THAT(kind.err, AllOf(HasSubstr("cannot be compiled ahead of time: aten::quantize"),
                              Not(HasSubstr("NotAhead")), Not(HasSubstr("on ahead"))));
  const std::string named =
      write("named.py", "def main(x: Tensor):\n    return {'out': x + 1, 'a b': x * 3}\n");
  ASSERT_EQ(cli({"build", named, "--input", "3xf32", "--output", folder}).code, 0);
  EXPECT_THAT(readText(folder + "/named.h"), AllOf(HasSubstr("outputs[0] result_out: float32[3]"),
                                                   HasSubstr("outputs[1] result1: ")));

  const Outcome several = cli({"build", kDigits, "--input", "1x1x28x28xf32", "--output", folder,
                               "--name", "several", "--also", "forward 2x1x28x28xf32"});
  EXPECT_EQ(several.code, 0) << several.err;
  EXPECT_THAT(readText(folder + "/several.h"), HasSubstr("outputs[0] result: float32[2, 10]"));
  EXPECT_EQ(
      cli({"build", kDigits, "--input", "1x1x28x28xf32", "--output", folder, "--also", ""}).code,
      2);

  const std::string branch = write("branch.py",
                                   "def main(x: Tensor):\n    if float(x.sum()) > 0:\n        "
                                   "numbers: List[float] = x.tolist()\n        "
                                   "return torch.tensor(numbers)\n    return -x\n");
  const Outcome refused = cli({"build", branch, "--input", "3xf32", "--output", folder});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("known only when the compiled model runs"),
                                 HasSubstr("branch.py"), HasSubstr("x.tolist()")));
  EXPECT_EQ(cli({"build", script, "--output", folder}).code, 2);
  EXPECT_THAT(cli({"build", script, "--input", "3xf32"}).err, HasSubstr("--output"));
  EXPECT_THAT(cli({"build", script, "--input", "3xf32", "--output", folder, "--name", "a b"}).err,
              HasSubstr("--name: expected letters, digits and _, got 'a b'"));
}

TEST(CliTest, RunsInMixedPrecision) {
  const std::string text = "def main(x: Tensor):\n    return x @ x\n";
  const Outcome o = runScript(text, {"--input", "2x2xf32", "--autocast", "bfloat16"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("bfloat16[2, 2]"));
  EXPECT_EQ(runScript(text, {"--input", "2x2xf32", "--autocast", "int8"}).code, 2);
  const Outcome prepared =
      cli({"run", kDigits, "--input", kSeven, "--prepare", "--autocast", "bfloat16"});
  EXPECT_THAT(prepared.out, HasSubstr("largest at 7 ")) << prepared.err;
}

TEST(CliTest, RandomInputsOfAToldShape) {
  const Outcome o = cli({"run", kDigits, "--input", "5x1x28x28xf32", "--threads", "1"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("float32[5, 10]"));
}

TEST(CliTest, OutputsAreWritten) {
  const std::string pt = temporary("result.pt");
  ASSERT_EQ(cli({"run", kDigits, "--input", kSeven, "--output", pt}).code, 0);
  EXPECT_EQ(loadValue(pt).toTensor().describe(), "float32[1, 10]");
  const std::string npy = temporary("result.npy");
  ASSERT_EQ(cli({"run", kDigits, "--input", kSeven, "--output", npy}).code, 0);
  EXPECT_TRUE(IValue(loadNpy(npy)).equals(loadValue(pt)));
  const Outcome o = runScript("def main():\n    return (1, [2.5], {'a': 'b'})\n", {"--output", pt});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(loadValue(pt).repr(), "(1, [2.5], {'a': 'b'})");
  EXPECT_EQ(runScript("def main():\n    return 1\n", {"--output", npy}).code, 1);
  EXPECT_EQ(runScript("def main():\n    return 1\n", {"--output", "/no/such/dir/x.pt"}).code, 1);
}

TEST(CliTest, SavesArchivesAndScripts) {
  const std::string copy = temporary("copy.pt"), again = temporary("again.pt");
  Outcome o = cli({"save", kDigits, "--output", copy});
  ASSERT_EQ(o.code, 0) << o.err;
  ASSERT_EQ(cli({"save", copy, "--output", again}).code, 0);
  EXPECT_EQ(readText(copy), readText(again));
  EXPECT_EQ(cli({"run", copy, "--input", kSeven}).out,
            cli({"run", kDigits, "--input", kSeven}).out);
  const std::string script = write("script.py",
                                   "def twice(x: int) -> int:\n    return x * 2\ndef main(x: int = "
                                   "4):\n    return twice(x) + 1\n");
  o = cli({"save", script, "--output", copy});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(cli({"run", copy}).out, "9\n");
  EXPECT_EQ(cli({"run", copy, "--method", "twice", "--input", "5"}).out, "10\n");
}

TEST(CliTest, SavesFrozenAndConvertedArchives) {
  const std::string frozen = temporary("frozen.pt"), half = temporary("half.pt");
  const std::string expected = temporary("expected.npy"), found = temporary("found.npy");
  ASSERT_EQ(cli({"run", kDigits, "--input", kSeven, "--output", expected}).code, 0);
  for (const char* flag : {"--freeze", "--optimize"}) {
    const Outcome o = cli({"save", kDigits, flag, "--output", frozen});
    ASSERT_EQ(o.code, 0) << o.err;
    ASSERT_EQ(cli({"run", frozen, "--input", kSeven, "--output", found}).code, 0);
    const Tensor a = loadNpy(expected), b = loadNpy(found);
    for (int64_t i = 0; i < a.numel(); ++i)
      EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-4);
    EXPECT_THAT(cli({"info", frozen}).out, HasSubstr("parameters: 0 tensors"));
  }
  ASSERT_EQ(cli({"save", kDigits, "--dtype", "f16", "--output", half}).code, 0);
  EXPECT_THAT(cli({"info", half}).out, HasSubstr("float16["));
}

TEST(CliTest, SavingSaysWhyItFails) {
  EXPECT_EQ(cli({"save", kDigits}).code, 2);
  EXPECT_EQ(cli({"save", kDigits, "--output", "x.npy"}).code, 2);
  const Outcome o = cli({"save", kDigits, "--output", "/no/such/folder/x.pt"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("/no/such/folder/x.pt"), HasSubstr("No such file")));
  const std::string full = temporary("full.pt");
  std::filesystem::remove(full);
  std::filesystem::create_symlink("/dev/full", full);
  EXPECT_THAT(cli({"save", kDigits, "--output", full}).err, HasSubstr("No space left on device"));
  // Before the program runs.
  const Outcome run = runScript("def main():\n    print('ran')\n    return 1\n",
                                {"--output", "/no/such/folder/x.pt"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.out, "");
}

TEST(CliTest, ConvertsTensorsAndComparesFiles) {
  const std::string safetensors = temporary("w.safetensors"), npz = temporary("w.npz");
  Outcome o = cli({"convert", kDigits, safetensors});
  ASSERT_EQ(o.code, 0) << o.err;
  ASSERT_EQ(cli({"convert", safetensors, npz}).code, 0);
  o = cli({"diff", safetensors, npz});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(cli({"diff", kDigits, kDigits}).code, 0);
  const std::string half = temporary("half.pt");
  ASSERT_EQ(cli({"save", kDigits, "--dtype", "f16", "--output", half}).code, 0);
  o = cli({"diff", kDigits, half});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, HasSubstr("float32"));
  EXPECT_THAT(o.err, HasSubstr("differ in"));
  EXPECT_EQ(cli({"convert", kDigits, "w.txt"}).code, 2);
}

TEST(CliTest, ExtractsASubmodule) {
  const std::string part = temporary("part.pt");
  Outcome o = cli({"extract", kDigits, "fc_layers.1", "--output", part});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(cli({"info", part}).out, HasSubstr("Linear"));
  EXPECT_THAT(cli({"run", part, "--input", "2x400xf32"}).out, HasSubstr("float32[2, 10]"));
  const std::string before = readText(part);
  o = cli({"extract", kDigits, "no_such_part", "--output", part});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("no_such_part"));
  EXPECT_EQ(readText(part), before);
}

TEST(CliTest, InputsOfAFile) {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  auto kwargs = makeRef<DictObject>(types::String(), types::Any());
  kwargs->set("b", int64_t{5});
  dict->set("args", makeTuple({int64_t{2}}));
  dict->set("kwargs", kwargs);
  const std::string path = temporary("io.pt");
  saveValue(dict, path);
  const std::string script = "def f(a: int, b: int) -> int:\n    return a * 10 + b\n";
  EXPECT_EQ(runScript(script, {"--inputs", path}).out, "25\n");
  EXPECT_EQ(runScript(script, {"--inputs", kDigits}).code, 1);
  EXPECT_EQ(runScript(script, {"--input", "b=3", "--input", "a=4"}).out, "43\n");
}

TEST(CliTest, MissingListsGapsOfEveryFunctionAndFile) {
  const std::string folder = temporary("programs");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "/inner");
  const std::string gap = "def f(x):\n    return torch.no_such_operator(x)\n";
  write("programs/fine.py", "def f(x):\n    return x + 1\n");
  write("programs/one.py", gap);
  write("programs/inner/both.py",
        gap + "def g(x: str):\n    return torch.relu(x)\ndef h(x):\n    return nobody\n");
  const Outcome table = cli({"missing", folder});
  EXPECT_EQ(table.code, 1);
  EXPECT_THAT(table.out, HasSubstr("1 of 3 files lack nothing"));
  EXPECT_THAT(table.err, HasSubstr("2 of 3 files cannot run as a whole"));
  EXPECT_EQ(cli({"missing", kDigits}).code, 0);
  const Outcome json = cli({"missing", "--json", folder, kDigits});
  ASSERT_EQ(json.code, 1) << json.err;
  const auto all = nlohmann::json::parse(json.out);
  EXPECT_EQ(all["files"], 4);
  EXPECT_EQ(all["complete"], 2);
  ASSERT_FALSE(all["gaps"].empty());
  EXPECT_EQ(all["gaps"][0]["kind"], "operator");
  EXPECT_THAT(all["gaps"][0]["name"], HasSubstr("no_such_operator"));
  EXPECT_EQ(all["gaps"][0]["files"], 2);
  EXPECT_EQ(all["gaps"][0]["unblocks"], 1);
  EXPECT_EQ(cli({"missing", folder + "/no_such_file.py"}).code, 1);
  EXPECT_EQ(cli({"missing"}).code, 2);
}

// The printed source is searched behind the first unknown operator of a function.
TEST(CliTest, MissingFindsOperatorsBehindTheFirstOne) {
  const std::string path = temporary("gaps.pt");
  ArchiveReader digits = ArchiveReader::open(kDigits);
  ArchiveWriter writer = ArchiveWriter::toFile(path, "gaps");
  std::string changed;
  for (const std::string& record : digits.records()) {
    std::string text(digits.read(record).text());
    const size_t at = text.find("return ");
    if (changed.empty() && record.ends_with(".py") && at != std::string::npos) {
      changed = record;
      text.insert(at, "_z = torch.first_gap(ops.nowhere.second_gap(0))\n    ");
    }
    writer.write(record, std::string_view(text));
  }
  writer.finish();
  ASSERT_FALSE(changed.empty());
  const Outcome o = cli({"missing", path});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, AllOf(HasSubstr("aten::first_gap"), HasSubstr("nowhere::second_gap")));
  // What can be shown all the same is shown.
  const Outcome info = cli({"info", path});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("forward does not compile"), HasSubstr("parameters: ")));
  EXPECT_THAT(info.err, HasSubstr("first_gap"));
  const Outcome code = cli({"code", path});
  EXPECT_EQ(code.code, 0) << code.err;
  EXPECT_THAT(code.out, AllOf(HasSubstr("forward does not compile"), HasSubstr("first_gap")));
  EXPECT_EQ(cli({"run", path, "--input", kSeven}).code, 1);
}

// What compiles and raises whenever it is reached.
TEST(CliTest, MissingFindsCallsThatAreRefused) {
  const std::string path = write("refused.py",
                                 "def f(x: Tensor, on: bool) -> Tensor:\n"
                                 "    if on:\n"
                                 "        return x.chalf()\n"
                                 "    return x\n");
  const Outcome o = cli({"missing", path});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.out, AllOf(HasSubstr("call"), HasSubstr("aten::chalf")));
}

// Messages name modules, and show the program that the archive was made of.
TEST(CliTest, ErrorsNameModulesAndTheOwnSource) {
  const std::string path = "tests/nested/data/two_layers.pt";
  const Outcome o = cli({"run", path, "--eval", "--input", "2x5xf32"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("in layers.1.inner.forward"), HasSubstr("make_data.py"),
                           HasSubstr("return torch.mm(x, self.weight)")));
  const Outcome profile = cli({"profile", path, "--eval", "--input", "2x4xf32"});
  EXPECT_EQ(profile.code, 0) << profile.err;
  EXPECT_THAT(profile.out, AllOf(HasSubstr("layers.0.inner "), HasSubstr("make_data.py")));
  const Outcome graph = cli({"graph", path, "--stage", "inline_calls"});
  EXPECT_THAT(graph.out, AllOf(HasSubstr("layers.1.inner "), HasSubstr("make_data.py")));
}

TEST(CliTest, MissingFile) {
  for (const char* verb : {"run", "check", "graph", "code", "info", "bench"}) {
    for (const char* name : {"/no/such/model.pt", "/no/such/script.py"}) {
      const Outcome o = cli({verb, name});
      EXPECT_EQ(o.code, 1) << verb << " " << name;
      EXPECT_THAT(o.err, HasSubstr(name));
    }
  }
}

TEST(CliTest, NotAZip) {
  const Outcome o = cli({"run", write("model.pt", "not a zip at all, only text")});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("model.pt"));
  EXPECT_EQ(cli({"run", write("empty.pt", "")}).code, 1);
  EXPECT_EQ(cli({"info", testing::TempDir()}).code, 1);
}

TEST(CliTest, TruncatedArchives) {
  const std::string whole = readText(kDigits);
  for (size_t part = 0; part < 16; ++part) {
    const Outcome o =
        cli({"run", write("cut.pt", whole.substr(0, whole.size() * part / 16)), "--input", kSeven});
    EXPECT_EQ(o.code, 1) << part;
    EXPECT_THAT(o.err, HasSubstr("cut.pt"));
  }
}

TEST(CliTest, MutatedArchivesNeverCrash) {
  const std::string whole = readText(kDigits);
  uint32_t random = 7;
  for (int round = 0; round < 60; ++round) {
    std::string bad = whole;
    for (int i = 0; i < 8; ++i) {
      random = random * 1664525 + 1013904223;
      bad[(random >> 4) % bad.size()] = static_cast<char>(random >> 24);
    }
    const Outcome o = cli({"run", write("mutated.pt", bad), "--input", kSeven});
    EXPECT_TRUE(o.code == 0 || (o.code == 1 && !o.err.empty())) << round << ": " << o.code << o.err;
  }
}

TEST(CliTest, UnknownOperatorOfAnArchiveIsNamedWithItsPlace) {
  ArchiveReader reader = ArchiveReader::open(kDigits);
  const std::string path = temporary("unknown.pt");
  {
    ArchiveWriter writer = ArchiveWriter::toFile(path, "digits");
    for (const std::string& record : reader.records()) {
      std::string text(reader.read(record).text());
      const size_t at = record.ends_with("linear.py") ? text.find("torch.linear(") : text.npos;
      if (at != text.npos) text.replace(at, 13, "torch.lynear(");
      writer.write(record, text);
    }
    writer.finish();
  }
  const Outcome o = cli({"run", path, "--input", kSeven});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("lynear"), HasSubstr("linear.py"), HasSubstr("line ")));
}

// An archive as if it had been saved on another device, with that device in its code too.
std::string savedOn(const std::string& device, const std::string& archive,
                    const std::string& name) {
  ArchiveReader reader = ArchiveReader::open(archive);
  ArchiveWriter writer = ArchiveWriter::toFile(temporary(name), "moved");
  const std::string cpu("X\x03\0\0\0cpu", 8);
  const std::string there =
      "X" + std::string(1, static_cast<char>(device.size())) + std::string(3, '\0') + device;
  for (const std::string& record : reader.records()) {
    std::string text(reader.read(record).text());
    const auto replace = [&](const std::string& from, const std::string& to) {
      for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    };
    if (record.ends_with(".pkl")) replace(cpu, there);
    if (record.ends_with("linear.py")) {
      replace("torch.linear(input,", "torch.linear(torch.to(input, torch.device(\"" + device +
                                         "\"), 6, False, False, None),");
    }
    writer.write(record, text);
  }
  writer.finish();
  return temporary(name);
}

TEST(CliTest, ArchivesOfAGpuAreReadOnTheCpu) {
  const std::string expected = cli({"run", kDigits, "--input", kSeven}).out;
  for (const char* device : {"cuda:3", "mps", "xla:0"}) {
    const std::string file = savedOn(device, kDigits, "gpu.pt");
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--device", "cpu"}, {"--prepare"}}) {
      std::vector<std::string> arguments = {"run", file, "--input", kSeven};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Outcome o = cli(arguments);
      EXPECT_EQ(o.out, expected) << device << o.err;
    }
    Outcome o = cli({"info", file});
    EXPECT_THAT(o.out, AllOf(HasSubstr("devices: " + std::string(device) + "\n"),
                             HasSubstr("float32[8, 1, 3, 3]\n")));
    o = cli({"info", file, "--json"});
    EXPECT_EQ(nlohmann::json::parse(o.out)["devices"], nlohmann::json::array({device}));
    const std::string tensors = temporary("gpu.safetensors"), saved = temporary("gpu_saved.pt");
    ASSERT_EQ(cli({"convert", file, tensors}).code, 0);
    EXPECT_EQ(cli({"diff", tensors, kDigits}).code, 0);
    ASSERT_EQ(cli({"save", file, "--output", saved}).code, 0);
    EXPECT_EQ(cli({"diff", saved, file}).code, 0);
    EXPECT_THAT(cli({"info", saved}).out, testing::Not(HasSubstr("devices")));
    // State dicts: data, and what they are for.
    const std::string state = temporary("gpu_state.pt");
    ASSERT_EQ(cli({"convert", kDigits, state}).code, 0);
    const std::string moved = savedOn(device, state, "gpu_state_moved.pt");
    EXPECT_EQ(cli({"diff", moved, kDigits}).code, 0);
    ASSERT_EQ(cli({"convert", moved, tensors}).code, 0);
    EXPECT_EQ(cli({"diff", tensors, kDigits}).code, 0);
  }
  EXPECT_THAT(cli({"info", kDigits}).out, testing::Not(HasSubstr("devices")));
  const Outcome o = cli({"run", savedOn("nothing", kDigits, "gpu.pt"), "--input", kSeven});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("was saved on 'nothing'"));
}

// Tensors without memory.
TEST(CliTest, ArchivesOnMetaAreShownAndNotComputedWith) {
  const std::string file = savedOn("meta", kDigits, "meta.pt");
  EXPECT_THAT(cli({"info", file}).out, HasSubstr("float32[8, 1, 3, 3] on meta"));
  EXPECT_EQ(cli({"diff", file, file}).code, 0);
  EXPECT_EQ(cli({"diff", file, kDigits}).code, 1);
  EXPECT_EQ(cli({"check", file}).code, 0);
  const std::string tensors = temporary("meta.safetensors");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"convert", file, tensors},
        {"run", file, "--input", kSeven},
        {"run", file, "--input", kSeven, "--prepare"},
        {"save", file, "--optimize", "--output", temporary("meta_saved.pt")}}) {
    const Outcome o = cli(arguments);
    EXPECT_TRUE(o.code == 0 || (o.code == 1 && !o.err.empty())) << arguments[0] << o.code << o.err;
  }
}

TEST(CliTest, WrongArguments) {
  Outcome o = cli({"run", kDigits, "--input", "text"});
  EXPECT_EQ(o.code, 2);
  o = cli({"run", kDigits, "--input", "3"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("Tensor"), HasSubstr("int")));
  o = cli({"run", kDigits, "--input", kSeven, "--input", kSeven});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("one too many"));
  o = cli({"run", kDigits});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, AllOf(HasSubstr("still needs"), HasSubstr("--input x=")));
  o = cli({"run", kDigits, "--input", "1x1x28x28xi64"});
  EXPECT_EQ(o.code, 1);
  EXPECT_FALSE(o.err.empty());
  o = cli({"run", kDigits, "--input", "1x7x28x28xf32"});
  EXPECT_EQ(o.code, 1);
  EXPECT_FALSE(o.err.empty());
}

TEST(CliTest, MissingMethodOrFunction) {
  Outcome o = cli({"run", kDigits, "--method", "backward"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("backward"), HasSubstr("forward")));
  o = runScript("def f():\n    return 1\ndef g():\n    return 2\n");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, HasSubstr("f, g"));
  EXPECT_EQ(cli({"run", kDigits, "--function", "f"}).code, 2);
}

TEST(CliTest, ScriptErrorsShowTheLineWithACaret) {
  const Outcome o = runScript("def main():\n    x = 1\n    return x + undefined_thing\n");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("undefined_thing"), HasSubstr("script.py\", line 3"),
                           HasSubstr("~ <--- HERE")));
  EXPECT_EQ(cli({"check", write("bad.py", "def f(:\n")}).code, 1);
}

TEST(CliTest, RaisingScriptsShowTheCallStack) {
  const Outcome o = runScript(
      "def inner(n: int) -> int:\n    if n > 2:\n        raise ValueError('too large')\n"
      "    return n\n\ndef main():\n    return inner(3)\n");
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.err, AllOf(HasSubstr("in main"), HasSubstr("in inner"), HasSubstr("line 7"),
                           HasSubstr("line 3"), HasSubstr("too large")));
}

TEST(CliTest, TooMuchMemoryIsAnError) {
  const Outcome o = runScript("def main():\n    return torch.zeros(1000000, 10000000)\n");
  EXPECT_EQ(o.code, 1);
  EXPECT_FALSE(o.err.empty());
}

TEST(CliTest, WrongUsage) {
  EXPECT_EQ(cli({}).code, 2);
  EXPECT_EQ(cli({"fly"}).code, 2);
  EXPECT_EQ(cli({"run"}).code, 2);
  EXPECT_EQ(cli({"run", kDigits, "--no-such-flag"}).code, 2);
  EXPECT_EQ(cli({"run", kDigits, "--threads", "0"}).code, 2);
  EXPECT_EQ(cli({"run", kDigits, "--output", "x.txt"}).code, 2);
  EXPECT_EQ(cli({"run", kDigits, "--input", "1", "--inputs", "io.pt"}).code, 2);
  const Outcome o = cli({"--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("bench"));
}

TEST(CliTest, OtherVerbs) {
  EXPECT_EQ(cli({"check", kDigits}).code, 0);
  Outcome o = cli({"info", kDigits});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("forward(x: Tensor) -> Tensor"),
                           HasSubstr("float32[8, 1, 3, 3]"), HasSubstr("format version")));
  o = cli({"graph", kDigits, "--method", "forward"});
  EXPECT_THAT(o.out, AllOf(HasSubstr("graph("), HasSubstr("return (")));
  o = cli({"graph", kDigits, "--method", "forward", "--dot"});
  EXPECT_THAT(o.out, HasSubstr("digraph"));
  o = cli({"code", kDigits, "--method", "forward"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("def forward(self,\n"));
  o = cli({"code", write("typed.py", "def main(n: int = 3) -> int:\n    return n\n")});
  EXPECT_EQ(o.out, "def main(n: int=3) -> int:\n  return n\n");
}

TEST(CliTest, GraphShowsKernelsCompiledForDevices) {
  const std::string file =
      write("kernel.py", "def main(x: Tensor):\n    return torch.tanh(x * 2 + 1) - x\n");
  EXPECT_THAT(cli({"graph", file, "--stage", "cuda"}).out, HasSubstr("__global__"));
  const Outcome ptx = cli({"graph", file, "--stage", "ptx"});
  if (ptx.code == 0) {
    EXPECT_THAT(ptx.out, AllOf(HasSubstr(".entry wick_fused"), HasSubstr("registers")));
  } else {
    EXPECT_THAT(ptx.err, HasSubstr("libnvrtc"));
  }
  const Outcome sass = cli({"graph", file, "--stage", "sass"});
  if (sass.code == 0) {
    EXPECT_THAT(sass.out, HasSubstr("wick_fused"));
  } else {
    EXPECT_THAT(sass.err, AnyOf(HasSubstr("libnvrtc"), HasSubstr("nvdisasm")));
  }
}

TEST(CliTest, GraphShowsEveryStage) {
  const std::string file = write("stages.py", "def main(x: int):\n    return x + (1 + 2)\n");
  const auto stage = [&](const std::string& name) {
    const Outcome o = cli({"graph", file, "--stage", name});
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_THAT(stage("source"), HasSubstr("value=2"));
  EXPECT_THAT(stage("constant_propagation"), HasSubstr("value=3"));
  EXPECT_THAT(stage("code"), HasSubstr("RETURN"));
  EXPECT_THAT(stage("llvm"), HasSubstr("define i32 @wick_native_code_main"));
  EXPECT_THAT(stage("asm"), HasSubstr("wick_native_code_main:"));
  EXPECT_THAT(cli({"graph", kDigits, "--stage", "inference"}).out, HasSubstr("graph("));
  EXPECT_EQ(cli({"graph", kDigits, "--stage", "inference", "--dot", "--method", "forward"}).code,
            0);
  const std::string asks = write("asks.py",
                                 "def main(x: Tensor):\n"
                                 "    return x + 1 if x.dtype == torch.float32 else x * 2\n");
  const auto specialized = [&](const std::string& input) {
    const Outcome o = cli({"graph", asks, "--stage", "specialized", "--input", input});
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_THAT(specialized("3xf32"), AllOf(HasSubstr("aten::add"), Not(HasSubstr("aten::mul"))));
  EXPECT_THAT(specialized("3xf64"), AllOf(HasSubstr("aten::mul"), Not(HasSubstr("aten::add"))));
  EXPECT_EQ(cli({"graph", asks, "--stage", "specialized"}).code, 2);
  EXPECT_THAT(cli({"profile", asks, "--input", "3xf32"}).out,
              HasSubstr("code for the types of its arguments: 1 version"));
  EXPECT_THAT(cli({"run", asks, "--input", "3xf32", "--memory"}).err, HasSubstr("peak memory"));
  const Outcome o = cli({"graph", file, "--stage", "nowhere"});
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, AllOf(HasSubstr("nowhere"), HasSubstr("inline_calls")));
}

TEST(CliTest, OptimizationLevelsGiveOneResult) {
  for (const char* level : {"0", "1", "stress"}) {
    const Outcome o = cli({"run", kDigits, "--input", kSeven, "--optimize", level});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, cli({"run", kDigits, "--input", kSeven}).out) << level;
  }
  EXPECT_EQ(cli({"run", kDigits, "--input", kSeven, "--optimize", "2"}).code, 2);
}

TEST(CliTest, ProfileListsOperatorsWithTheirSource) {
  const std::string trace = temporary("trace.json");
  const std::string file =
      write("profiled.py",
            "def main():\n    x = torch.rand(100)\n"
            "    for i in range(5):\n        x = torch.relu(x)\n    return x\n");
  Outcome o = cli({"profile", file, "--iterations", "4", "--trace", trace});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("aten::relu"), HasSubstr("profiled.py:4:")));
  const nlohmann::json events = nlohmann::json::parse(readText(trace))["traceEvents"];
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const auto& e) { return e["name"] == "aten::relu"; }),
            20);
  o = cli({"profile", file, "--iterations", "4", "--json"});
  const nlohmann::json row = nlohmann::json::parse(o.out);
  EXPECT_EQ(row["iterations"], 4);
  EXPECT_GE(row["operators"].size(), 2u);
}

// Layers that were fused and folded are those of their modules.
TEST(CliTest, ProfileOfWhatIsPreparedNamesModulesAndShapes) {
  const std::string trace = temporary("prepared.json");
  Outcome o = cli({"profile", kDigits, "--input", "1x1x28x28", "--prepare", "--iterations", "2",
                   "--top", "1", "--trace", trace});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("more rows (--top)"), HasSubstr("by operator:")));
  const nlohmann::json events = nlohmann::json::parse(readText(trace))["traceEvents"];
  EXPECT_TRUE(std::ranges::any_of(events, [](const nlohmann::json& e) {
    return e["name"] == "wick::conv2d_fused" && e["args"]["module"] == "conv_layers.0";
  }));
  EXPECT_TRUE(std::ranges::any_of(
      events, [](const auto& e) { return e["name"] == "process_name" && e["ph"] == "M"; }));
  o = cli({"profile", kDigits, "--input", "1x1x28x28", "--prepare", "--iterations", "2", "--json"});
  const nlohmann::json all = nlohmann::json::parse(o.out);
  const auto first = std::ranges::find_if(
      all["operators"], [](const nlohmann::json& row) { return row["module"] == "conv_layers.0"; });
  ASSERT_NE(first, all["operators"].end());
  EXPECT_EQ((*first)["arguments"][0], "float32[1, 1, 28, 28]");
  EXPECT_FALSE((*first)["other_arguments"]);
  EXPECT_LE(all["by_operator"].size(), all["operators"].size());
}

TEST(CliTest, ProfileTellsWhatOperatorsCall) {
  const std::string file = write("nested.py",
                                 "def main():\n    x = torch.rand(10)\n"
                                 "    return torch.nn.functional.soft_margin_loss(x, x)\n");
  Outcome o = cli({"profile", file, "--iterations", "3"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("calls that operators make of others"));
  o = cli({"profile", file, "--iterations", "3", "--json"});
  const nlohmann::json nested = nlohmann::json::parse(o.out)["nested"];
  ASSERT_FALSE(nested.empty());
  EXPECT_EQ(nested[0]["within"], "aten::soft_margin_loss");
  EXPECT_EQ(nested[0]["calls"].get<int>() % 3, 0);
}

// The kernel's name is cut, the list of its operators is not.
TEST(CliTest, ProfileListsAllOperatorsOfAKernel) {
  const std::string file = write(
      "fused.py",
      "def main():\n    x = torch.rand(5000)\n"
      "    y = torch.sigmoid(x).tanh().exp().rsqrt().neg().abs().sqrt().log1p().expm1().cosh()\n"
      "    return y.sum().item()\n");
  setenv("WICK_JIT", "sync", 1);
  const Outcome o = cli({"profile", file, "--iterations", "4"});
  const Outcome json = cli({"profile", file, "--iterations", "4", "--json"});
  unsetenv("WICK_JIT");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("fused_sigmoid_tanh"), HasSubstr("[1] aten::sigmoid aten::"),
                           HasSubstr("aten::expm1 aten::cosh")));
  EXPECT_THAT(json.out, HasSubstr("aten::expm1 aten::cosh"));
}

TEST(CliTest, BisectTellsRightFromUnsteady) {
  Outcome o = cli({"bisect", write("steady.py", "def main():\n    return 1 + 2 + 3\n")});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("none changes the result"));
  o = cli({"bisect", write("raising.py", "def main():\n    return [1][1 + 1]\n")});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("none changes the result"));
  o = cli({"bisect", write("unsteady.py", "def main():\n    return torch.ops.prim.TimePoint()\n")});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("depends on more than its inputs"));
  EXPECT_EQ(cli({"bisect", temporary("no_such.py")}).code, 1);
}

TEST(CliTest, BenchPrintsFigures) {
  const Outcome o = cli({"bench", kDigits, "--input", kSeven, "--iterations", "10", "--warm-up",
                         "2", "--compare", "interpreter", "--threads", "1", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const nlohmann::json row = nlohmann::json::parse(o.out);
  EXPECT_EQ(row["threads"], 1);
  EXPECT_EQ(row["iterations"], 10);
  EXPECT_GT(row["prepare_ms"], 0);
  for (const char* key : {"first_ms", "median_ms", "min_ms", "mean_ms", "p90_ms", "p99_ms",
                          "load_ms", "calls_per_s", "p50_ms", "p95_ms", "interpreter_median_ms",
                          "peak_rss_mb", "tensor_peak_mb", "tensor_system_mb"}) {
    EXPECT_GT(row.at(key).get<double>(), 0) << key;
  }
  EXPECT_EQ(row["system_allocations"], 0);
  EXPECT_TRUE(row["prepared"]);
}

TEST(CliTest, BenchSaysWhatItTimes) {
  const auto bench = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"bench",        kDigits, "--input",   kSeven,
                                      "--iterations", "6",     "--warm-up", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = cli(words);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_THAT(bench({}), AllOf(HasSubstr("prepared for inference before"), HasSubstr("p95"),
                               Not(HasSubstr(" 0.000 ")), Not(HasSubstr("machine code"))));
  EXPECT_THAT(bench({"--no-prepare", "--verbose"}),
              AllOf(HasSubstr("not prepared for inference: --no-prepare"),
                    Not(HasSubstr("\nprepare ")), HasSubstr("machine code: ")));
  EXPECT_THAT(bench({"--concurrency", "2", "--threads", "1"}),
              HasSubstr("6 calls, 2 at the same time, 1 thread each"));
  const Outcome raising = cli(
      {"bench", write("raises.py", "def main():\n    assert False, 'no'\n"), "--concurrency", "3"});
  EXPECT_EQ(raising.code, 1);
  EXPECT_THAT(raising.err, HasSubstr("AssertionError: no"));
}

// Kernels of fusion groups and compiled scalar code alike.
TEST(CliTest, ASecondProcessFindsItsMachineCodeOnDisk) {
  const std::string folder = temporary("machine_code");
  std::filesystem::remove_all(folder);
  setenv("WICK_CACHE_DIR", folder.c_str(), 1);
  setenv("WICK_JIT", "sync", 1);
  const std::string script = write("busy.py",
                                   "def main(x: Tensor):\n"
                                   "    n = 0\n"
                                   "    for i in range(200000):\n"
                                   "        n = (n * 3 + i) % 1000003\n"
                                   "    return (x * 2 + n).tanh() * x\n");
  std::vector<nlohmann::json> rows;
  for (int i = 0; i < 2; ++i) {
    const Outcome o = cli({"bench", script, "--input", "64x64xf32", "--iterations", "3", "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    rows.push_back(nlohmann::json::parse(o.out));
  }
  unsetenv("WICK_CACHE_DIR");
  unsetenv("WICK_JIT");
  EXPECT_GE(rows[0]["kernels_compiled"], 2);
  EXPECT_GT(rows[0]["compile_median_ms"], 0);
  EXPECT_EQ(rows[1]["kernels_compiled"], 0);
  EXPECT_EQ(rows[1]["kernels_from_disk"], rows[0]["kernels_compiled"]);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace wick::cli_test
