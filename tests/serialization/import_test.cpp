#include "serialization/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "serialization/pickler.h"
#include "serialization/python_printer.h"
#include "tests/serialization/import_testing.h"

namespace wick {
namespace {

template <class E>
std::string messageOf(const std::string& archive) {
  try {
    loadModule(bytesOf(archive), "changed.pt");
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST(ImportTest, LoadsAndRunsAModule) {
  LoadOptions options;
  std::unordered_map<std::string, std::string> extra;
  options.extra_files = &extra;
  Module module = loadModule(dataPath("module.pt"), options);
  EXPECT_EQ(extra.at("note.txt"), "hello");
  Tensor out = module.forward({Tensor::zeros(DimVector{2}, DType::Float)}).toTensor();
  EXPECT_EQ(out.data<float>()[0], 14);
  EXPECT_EQ(out.data<float>()[1], 18);
  IValue look = module.run("look", {IValue("a")});
  ASSERT_TRUE(look.isTuple());
  EXPECT_EQ(look.elements()[0].elements().size(), 2u);
  EXPECT_EQ(look.elements()[1].toInt(), 5);
  EXPECT_TRUE(look.elements()[2].toBool());
  EXPECT_EQ(look.elements()[4].type()->annotation(), "__torch__.Point");
}

TEST(ImportTest, SetStateRuns) {
  EXPECT_EQ(loadModule(dataPath("module.pt")).run("count", {}).toInt(), 1);
}

TEST(ImportTest, ParametersAndBuffersAreKnown) {
  Module module = loadModule(dataPath("module.pt"));
  auto parameters = module.parameters();
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[0].first, "shifter.amount");
  EXPECT_TRUE(parameters[0].second.requiresGrad());
  EXPECT_EQ(module.buffers().at(0).first, "shifter.steps");
}

TEST(ImportTest, AttributesGetTheirDeclaredTypes) {
  Module module = loadModule(dataPath("module.pt"));
  EXPECT_EQ(module.attr("table").type()->annotation(), "Dict[str, List[int]]");
  EXPECT_EQ(module.attr("color").toEnum().name, "GREEN");
}

TEST(ImportTest, EachLoadIsAModuleOfItsOwn) {
  Module a = loadModule(dataPath("small_module.pt"));
  Module b = loadModule(dataPath("small_module.pt"));
  a.forward({Tensor::zeros(DimVector{2}, DType::Float)});
  EXPECT_EQ(a.attr("steps").toTensor().item<int64_t>(), 1);
  EXPECT_EQ(b.attr("steps").toTensor().item<int64_t>(), 0);
}

TEST(ImportTest, PrintsWhatPyTorchPrinted) {
  Module module = loadModule(dataPath("module.pt"));
  PythonPrinter printer;
  printer.printType(*module.type());
  std::string source(ArchiveReader::open(dataPath("module.pt")).read("code/__torch__.py").text());
  const std::string first_class = source.substr(0, source.find("\nclass ") + 1);
  // PyTorch numbers its temporaries over the whole file.
  auto lines = [](const std::string& s) { return std::count(s.begin(), s.end(), '\n'); };
  EXPECT_EQ(lines(printer.text()), lines(first_class)) << printer.text();
  EXPECT_THAT(printer.text(),
              testing::HasSubstr("    _0 = __torch__.double((shifter).forward(x, ), 2, )\n"));
  EXPECT_THAT(printPython(module.method("forward"), false),
              testing::StartsWith("def forward(self,\n    x: Tensor) -> Tensor:\n"));
}

// The module with its code and constants printed anew.
std::string printedAgain(const std::string& path) {
  ArchiveReader archive = ArchiveReader::open(path);
  Module module = loadModule(path);
  PythonPrinter printer;
  printer.printType(*module.type());
  PicklerOptions options;
  options.for_python = false;
  Pickler pickler(options);
  pickler.push(IValue(makeTuple(printer.constants())));
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "again");
  for (const std::string& record : archive.records()) {
    if (record.starts_with("constants")) continue;
    const bool code = record.ends_with(".py");
    writer.write(record, code ? printer.text() : std::string(archive.read(record).text()));
  }
  writer.write("constants.pkl", pickler.finish());
  for (size_t i = 0; i < pickler.storages().size(); ++i) {
    const Storage& storage = *pickler.storages()[i];
    writer.write("constants/" + std::to_string(i),
                 std::span(static_cast<const std::byte*>(storage.data()), storage.bytes()));
  }
  writer.finish();
  return out;
}

TEST(ImportTest, ConstantsSurviveBeingPrinted) {
  Module original = loadModule(dataPath("constants.pt"));
  Module again = loadModule(bytesOf(printedAgain(dataPath("constants.pt"))), "again.pt");
  PythonPrinter first, second;
  first.printType(*original.type());
  second.printType(*again.type());
  EXPECT_THAT(first.text(), testing::HasSubstr("CONSTANTS.c1"));
  EXPECT_EQ(first.text(), second.text());
  ASSERT_EQ(first.constants().size(), second.constants().size());
  for (size_t i = 0; i < first.constants().size(); ++i) {
    EXPECT_EQ(first.constants()[i].repr(), second.constants()[i].repr());
  }
  const Tensor x = Tensor::zeros({1, 2}, DType::Float);
  EXPECT_EQ(original.forward({x}).repr(), again.forward({x}).repr());
}

TEST(ImportTest, AttributesOfOtherTypesAreRefused) {
  const std::string record = "code/__torch__.py";
  const std::string source = replaced(sourceOf(record), "steps : Tensor", "steps : int");
  EXPECT_THAT(messageOf<LoadError>(changed({{record, source}})),
              testing::HasSubstr("attribute 'steps' of __torch__.Shifter: expected int"));
  const std::string more =
      replaced(sourceOf(record), "steps : Tensor", "steps : Tensor\n  other : str");
  EXPECT_THAT(messageOf<LoadError>(changed({{record, more}})),
              testing::HasSubstr("attribute 'other'"));
}

TEST(ImportTest, BadSourceIsACompileErrorWithItsPlace) {
  const std::string record = "code/__torch__.py";
  EXPECT_THAT(messageOf<CompileError>(changed({{record, sourceOf(record) + "def f(:\n"}})),
              testing::HasSubstr("changed.pt/code/__torch__.py"));
  const std::string constant =
      replaced(sourceOf(record), "torch.add_(steps, 1)", "torch.add_(steps, CONSTANTS.c7)");
  EXPECT_THAT(messageOf<CompileError>(changed({{record, constant}})),
              testing::HasSubstr("there is no constant 'c7'"));
}

TEST(ImportTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(messageOf<LoadError>(changed({{"code/__torch__.py", ""}})),
              testing::HasSubstr("there is no code for __torch__.Shifter"));
  EXPECT_THAT(messageOf<LoadError>(changed({{"data.pkl", ""}})),
              testing::HasSubstr("there is no record 'data.pkl'"));
  EXPECT_THAT(messageOf<LoadError>(changed({{"version", "11\n"}})),
              testing::HasSubstr("version 11"));
  EXPECT_THAT(messageOf<LoadError>(changed({{"version", "x"}})), testing::HasSubstr("no number"));
  EXPECT_THROW(loadModule(dataPath("value.pt")), LoadError);
}

TEST(ImportTest, EveryTruncationIsALoadError) {
  const std::string whole = contentsOf("small_module.pt");
  for (size_t n = 0; n < whole.size(); n += 7) {
    EXPECT_THROW(loadModule(bytesOf(whole.substr(0, n)), "t"), LoadError) << n;
  }
}

// Archives whose classes name each other in a ring, or too deeply.
TEST(ImportTest, ClassesMayReferToEachOtherButNotWithoutEnd) {
  const std::string record = "code/__torch__.py";
  const std::string ring = sourceOf(record) +
                           "class A:\n  b : Optional[__torch__.B]\n"
                           "class B:\n  a : Optional[__torch__.A]\n"
                           "def f(a: __torch__.A) -> int:\n  return 1\n";
  EXPECT_NO_THROW(loadModule(bytesOf(changed({{record, ring}})), "ring"));
  std::string deep = replaced(sourceOf(record), "steps : Tensor", "steps : __torch__.C0");
  for (int i = 0; i < 2000; ++i) {
    deep +=
        "class C" + std::to_string(i) + ":\n  next : __torch__.C" + std::to_string(i + 1) + "\n";
  }
  EXPECT_THAT(messageOf<CompileError>(changed({{record, deep}})), testing::HasSubstr("deep"));
}

}  // namespace
}  // namespace wick
