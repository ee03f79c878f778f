// Deep programs and values to text and back, on a thread with a small stack.
#include <gtest/gtest.h>

#include "serialization/pickler.h"
#include "serialization/python_printer.h"
#include "serialization/unpickler.h"
#include "tests/frontend/robustness_testing.h"
#include "tests/serialization/import_testing.h"

namespace wick::depth_test {
namespace {

struct Shape {
  const char* name;
  std::string (*make)(size_t levels);
};

std::string program(const std::string& body) {
  return "def main(x: int) -> int:\n" + body;
}

const Shape kShapes[] = {
    {"sum", [](size_t n) { return program("    return x" + repeated(" + x", n) + "\n"); }},
    {"unnamed calls",
     [](size_t n) {
       return program("    return " + repeated("abs(", n) + "x" + repeated(")", n) + "\n");
     }},
    {"lists",
     [](size_t n) {
       return program("    return len(" + repeated("[", n) + "x" + repeated("]", n) + ")\n");
     }},
    {"elifs",
     [](size_t n) {
       return program("    y = 1\n    if x < 0:\n        y = 2\n" +
                      repeated("    elif x < 0:\n        y = 3\n", n) + "    return y\n");
     }},
    {"early returns",
     [](size_t n) {
       return program(repeated("    if x < 0:\n        return 2\n", n) + "    return 1\n");
     }},
    {"breaks",
     [](size_t n) {
       return program("    for i in range(3):\n" +
                      repeated("        if x < i:\n            break\n", n) +
                      "        x += 1\n    return x\n");
     }},
    {"conditions",
     [](size_t n) {
       return program("    y = x > 0" + repeated(" and x > 0", n) + "\n    return int(y)\n");
     }},
    {"strings",
     [](size_t n) {
       return program("    s = str(x)\n    return len(s" + repeated(" + s", n) + ")\n");
     }},
};

std::string printed(const std::string& program) {
  auto unit = compileSource(program);
  return printPython(*unit->findFunction("__torch__.main"));
}

TEST(Depth, TwoHundredLevelsPrintAndCompileAgain) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    onSmallStack([&] {
      const std::string program = shape.make(200);
      const IValue one(int64_t{1});
      EXPECT_EQ(resultOf(printed(program), {one}), resultOf(program, {one}));
    });
  }
}

TEST(Depth, DeeperGraphsPrintImportableTextOrAreRefused) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    onSmallStack([&] {
      std::shared_ptr<CompilationUnit> unit;
      if (refusalOf([&] { unit = compileSource(shape.make(3'000)); }) != "no error") return;
      std::string text;
      const std::string refusal = refusalOf<RuntimeError>(
          [&] { text = printPython(*unit->findFunction("__torch__.main")); });
      if (refusal != "no error") {
        EXPECT_NE(refusal.find("cannot be written as source"), std::string::npos) << refusal;
        return;
      }
      EXPECT_EQ(refusalOf([&] { compileSource(text); }), "no error");
    });
  }
}

TEST(Depth, SourceOfArchives) {
  const std::string record = "code/__torch__.py";
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.name);
    for (size_t levels : {200, 20'000}) {
      const std::string archive = changed({{record, sourceOf(record) + shape.make(levels)}});
      onSmallStack([&] {
        const std::string refusal = refusalOf([&] { loadModule(bytesOf(archive), "deep"); });
        EXPECT_TRUE(levels != 200 || refusal == "no error") << refusal;
      });
    }
  }
}

IValue nestedLists(size_t levels) {
  IValue value = IValue(makeList(types::Int(), {IValue(int64_t{7})}));
  for (size_t i = 1; i < levels; ++i) value = IValue(makeList(types::Any(), {std::move(value)}));
  return value;
}
IValue nestedTuples(size_t levels) {
  IValue value = IValue(int64_t{7});
  for (size_t i = 0; i < levels; ++i) value = IValue(makeTuple({std::move(value)}));
  return value;
}
IValue nestedDicts(size_t levels) {
  IValue value = IValue(int64_t{7});
  for (size_t i = 0; i < levels; ++i) {
    auto dict = makeRef<DictObject>(types::String(), types::Any());
    dict->set(IValue("a"), std::move(value));
    value = IValue(std::move(dict));
  }
  return value;
}

TEST(Depth, Pickles) {
  for (auto make : {nestedLists, nestedTuples, nestedDicts}) {
    for (bool for_python : {true, false}) {
      onSmallStack([&] {
        auto pickled = [&](size_t levels) {
          PicklerOptions options;
          options.for_python = for_python;
          Pickler pickler(options);
          pickler.push(make(levels));
          return pickler.finish();
        };
        const std::string bytes = pickled(900);
        UnpicklerHooks hooks;
        hooks.parse_type = [](const std::string& text) -> TypePtr {
          if (text.starts_with("Dict")) return types::Dict(types::String(), types::Any());
          return types::List(types::Any());
        };
        const IValue back =
            Unpickler(std::as_bytes(std::span(bytes.data(), bytes.size())), "deep", hooks).load();
        EXPECT_EQ(back.repr(), make(900).repr());
        EXPECT_NE(refusalOf<RuntimeError>([&] { pickled(100'000); }).find("nest deeper"),
                  std::string::npos);
      });
    }
  }
}

}  // namespace
}  // namespace wick::depth_test
