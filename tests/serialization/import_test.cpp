#include "serialization/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "core/native_class.h"
#include "serialization/pickler.h"
#include "serialization/python_printer.h"
#include "tests/serialization/import_testing.h"

namespace wick::import_test {
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

// A module M of two attributes, with a pickle of their values.
std::string twoAttributes(const std::string& types_and_methods, const std::string& body) {
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "two");
  writer.write("data.pkl", "\x80\x02" + body + ".");
  writer.write("code/__torch__.py",
               "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n" + types_and_methods);
  writer.write("constants.pkl", "\x80\x02).");
  writer.write("version", "3\n");
  writer.finish();
  return out;
}

std::string name(const std::string& text) {
  return "X" + std::string(1, static_cast<char>(text.size())) + std::string(3, '\0') + text;
}

constexpr const char* kNewM = "c__torch__\nM\n)\x81";

// The containers that a program may change under one type while it reads them under another.
TEST(ImportTest, AContainerOfTwoTypesIsRefused) {
  const std::string get = std::string("h\x05");
  struct Case {
    std::string a, b;
    std::string first, second;  // pickles; the first memoizes 5
  };
  const std::vector<Case> refused = {
      {"List[int]", "List[str]", "]q\x05", get},
      {"List[int]", "List[Optional[int]]", "]q\x05", get},
      {"List[Optional[int]]", "List[int]", "]q\x05", get},
      {"List[Any]", "List[int]", "]q\x05", get},
      {"Optional[List[int]]", "List[float]", "]q\x05", get},
      {"Union[List[int], int]", "List[str]", "]q\x05", get},
      {"Dict[str, int]", "Dict[str, str]", "}q\x05", get},
      {"Dict[int, int]", "Dict[str, int]", "}q\x05", get},
      {"List[List[int]]", "List[str]",
       "]]q\x05"
       "a",
       get},
      {"Tuple[List[int]]", "Tuple[List[str]]", "]\x85q\x05", get},
      {"Dict[str, List[int]]", "Dict[str, List[str]]", "}q\x05" + name("x") + "]s", get},
      {"List[Dict[str, int]]", "List[Dict[str, float]]", "]}aq\x05", get},
  };
  for (const Case& c : refused) {
    const std::string pickle = kNewM + ("}(" + name("a")) + c.first + name("b") + c.second + "ub";
    const std::string types = "  a : " + c.a + "\n  b : " + c.b + "\n";
    EXPECT_THAT(messageOf<LoadError>(twoAttributes(types, pickle)),
                testing::HasSubstr("attribute 'b' of __torch__.M: "))
        << c.a << " " << c.b;
    if (c.first.starts_with("]]")) continue;  // the parts of one are no value of the other
    const std::string same = "  a : " + c.a + "\n  b : " + c.a + "\n";
    EXPECT_EQ(messageOf<LoadError>(twoAttributes(same, pickle)), "no error") << c.a;
  }
}

TEST(ImportTest, SharedContainersStayShared) {
  Module module =
      loadModule(bytesOf(twoAttributes("  a : List[Optional[int]]\n  b : List[Optional[int]]\n",
                                       kNewM + ("}(" + name("a")) +
                                           "]q\x05K\x01"
                                           "a" +
                                           name("b") + "h\x05ub")),
                 "two.pt");
  EXPECT_TRUE(module.attr("a").isSame(module.attr("b")));
  EXPECT_EQ(module.attr("a").type()->annotation(), "List[Optional[int]]");
}

TEST(ImportTest, WhatAnObjectTookIsFinal) {
  const std::string types = "  a : List[int]\n";
  const std::string module = kNewM + ("}(" + name("a")) +
                             "]q\x05K\x01"
                             "aub";
  EXPECT_EQ(messageOf<LoadError>(twoAttributes(types, module)), "no error");
  EXPECT_THAT(messageOf<LoadError>(twoAttributes(types, module + "h\x05" + name("boom") + "a0")),
              testing::HasSubstr("changed after an object took it"));
  const std::string tag =
      "ctorch.jit._pickle\nrestore_type_tag\nh\x05" + name("List[str]") + "\x86R0";
  EXPECT_THAT(messageOf<LoadError>(twoAttributes(types, module + tag)),
              testing::HasSubstr("changed after an object took it"));
}

// isinstance() believes what a container claims, so nothing may claim what it does not hold.
TEST(ImportTest, ClaimsUnderAnyAreChecked) {
  const std::string list = "ctorch.jit._pickle\nrestore_type_tag\n]" + name("x") + "a";
  for (const std::string type : {"Any", "List[Any]", "Tuple[Any]"}) {
    const std::string value = list + name("List[int]") + "\x86R";
    const std::string wrapped = type == "Any"         ? value
                                : type == "List[Any]" ? "]" + value + "a"
                                                      : value + "\x85";
    EXPECT_THAT(messageOf<LoadError>(twoAttributes("  a : " + type + "\n",
                                                   kNewM + ("}" + name("a")) + wrapped + "sb")),
                testing::HasSubstr("expected int, got str"))
        << type;
  }
}

// What __setstate__ makes keeps its types, and what it was given has its own.
TEST(ImportTest, SetStateMeetsFinalTypes) {
  const std::string source =
      "  a : List[int]\n  b : List[int]\n"
      "  def __setstate__(self: __torch__.M,\n    state: List[int]) -> NoneType:\n"
      "    self.a = state\n    self.b = annotate(List[int], [])\n    return None\n";
  Module module = loadModule(bytesOf(twoAttributes(source, kNewM + std::string("]q\x05K\x01"
                                                                               "ab"))),
                             "two.pt");
  EXPECT_EQ(module.attr("b").type()->annotation(), "List[int]");
  EXPECT_THAT(
      messageOf<LoadError>(twoAttributes(source, kNewM + std::string("]") + name("x") + "ab")),
      testing::HasSubstr("the state of __torch__.M: [0]: expected int"));
  EXPECT_THAT(messageOf<LoadError>(twoAttributes(source, kNewM +
                                                             std::string("]q\x05K\x01"
                                                                         "abh\x05") +
                                                             name("x") + "a0")),
              testing::HasSubstr("changed after an object took it"));
}

TEST(ImportTest, StatesThatDoNotFit) {
  const auto error = [](const std::string& source, const std::string& state) {
    return messageOf<LoadError>(twoAttributes(source, kNewM + state));
  };
  EXPECT_THAT(error("  a : int\n",
                    "K\x01"
                    "b"),
              testing::HasSubstr("the state of __torch__.M is int, expected a dict"));
  EXPECT_THAT(error("  a : int\n", ""),
              testing::HasSubstr("an object of __torch__.M is used before it has its state"));
  EXPECT_THAT(
      error("  a : int\n  def __setstate__(self: __torch__.M) -> NoneType:\n    return None\n",
            "K\x01"
            "b"),
      testing::HasSubstr("__setstate__ takes 1 arguments, expected self and a state"));
}

struct Held : RefCounted {};

TEST(ImportTest, StatesOfNativeClassesThatDoNotFit) {
  registerNativeClass({"__torch__.torch.classes.import_test.Kept", nullptr, nullptr, {}});
  registerNativeClass({"__torch__.torch.classes.import_test.Picky",
                       nullptr,
                       [](const IValue& state) -> Ref<RefCounted> {
                         throwRuntimeError("expected another state than {}", state.toInt());
                       },
                       {}});
  const auto error = [](const std::string& name) {
    return messageOf<LoadError>(twoAttributes(
        "  a : __torch__.torch.classes.import_test." + name + "\n",
        kNewM +
            ("}X\x01" + std::string(3, '\0') + "ac__torch__.torch.classes.import_test\n" + name +
             "\n)\x81K\x07"
             "bsb")));
  };
  EXPECT_THAT(error("Kept"),
              testing::HasSubstr("objects of __torch__.torch.classes.import_test.Kept cannot be "
                                 "loaded"));
  EXPECT_THAT(error("Picky"), testing::HasSubstr("expected another state than 7"));
}

TEST(ImportTest, ConstantsThatDoNotFit) {
  const auto of = [](const std::string& expression, const std::string& type = "int") {
    return messageOf<CompileError>(twoAttributes("  a : Final[" + type + "] = " + expression + "\n",
                                                 kNewM + std::string("}b")));
  };
  EXPECT_EQ(of("3"), "no error");
  for (const char* expression :
       {"1 + 2", "-\"a\"", "-[1]", "foo", "foo.c0", "f(1)", "torch.device(3)", "annotate(int)"}) {
    EXPECT_THAT(of(expression), testing::HasSubstr("expected a constant")) << expression;
  }
  EXPECT_THAT(of("annotate(List[str], [1])", "List[str]"),
              testing::HasSubstr("expected str, got int"));
  EXPECT_THAT(of("CONSTANTS.c7"), testing::HasSubstr("there is no constant 'c7'"));
  EXPECT_EQ(of("-inf", "float"), "no error");
  // The record with the constants.
  EXPECT_THAT(messageOf<LoadError>(changed({{"constants.pkl", "\x80\x02K\x01."}})),
              testing::HasSubstr("record 'constants.pkl': expected a tuple"));
  EXPECT_THAT(
      messageOf<LoadError>(changed({{"constants.pkl",
                                     "\x80\x02"
                                     "ctorch.jit._pickle\nrestore_type_tag\n]" +
                                         name("x") + "a" + name("List[int]") + "\x86R\x85."}})),
      testing::HasSubstr("record 'constants.pkl': "));
}

TEST(ImportTest, CodeAndClassesAreLimited) {
  const std::string archive = changed({});
  LoadOptions options;
  options.limits.max_code = 100;
  EXPECT_THROW(loadModule(bytesOf(archive), "small.pt", options), LoadError);
  options.limits = {};
  options.limits.base_memory = 3000;
  options.limits.memory_ratio = 0;
  EXPECT_THAT(
      [&]() -> std::string {
        try {
          loadModule(bytesOf(archive), "small.pt", options);
        } catch (const LoadError& error) {
          return error.what();
        }
        return "no error";
      }(),
      testing::HasSubstr("memory than a file of this size may"));
  options.limits = {};
  options.limits.max_classes = 0;
  EXPECT_THROW(loadModule(bytesOf(archive), "small.pt", options), CompileError);
  options.limits = {};
  options.limits.max_pickle = 10;
  EXPECT_THROW(loadModule(bytesOf(archive), "small.pt", options), LoadError);
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
}  // namespace wick::import_test
