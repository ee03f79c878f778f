#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "core/error.h"
#include "core/function_schema.h"
#include "tests/error_text.h"

namespace wick::schema_test {
namespace {

std::vector<std::string> sampleSchemas() {
  std::ifstream in("tests/core/schemas.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Types that programs carry as int print as int.
std::string withPlainTypes(std::string s) {
  for (const char* name : {"ScalarType", "MemoryFormat", "Layout", "SymInt", "QScheme"}) {
    for (size_t at = 0; (at = s.find(name, at)) != std::string::npos;) {
      bool inside = at > 0 && (std::isalnum(s[at - 1]) || s[at - 1] == '_' || s[at - 1] == '.');
      if (inside) {
        ++at;
      } else {
        s.replace(at, std::string_view(name).size(), "int");
      }
    }
  }
  return s;
}

TEST(SchemaTest, pytorchsDeclarationsRoundTrip) {
  auto schemas = sampleSchemas();
  ASSERT_GT(schemas.size(), 400u);
  for (const std::string& text : schemas) {
    std::string printed = parseSchema(text).str();
    EXPECT_EQ(parseSchema(printed).str(), printed);
    std::string expected = withPlainTypes(text);
    for (std::string* s : {&expected, &printed}) {  // futures print with brackets
      for (const char* name : {"Future(t)", "RRef(t)"}) {
        for (size_t at; (at = s->find(name)) != std::string::npos;) {
          s->replace(at, std::string_view(name).size(), name[0] == 'F' ? "Future[t]" : "RRef[t]");
        }
      }
    }
    EXPECT_EQ(printed, expected);
  }
}

TEST(SchemaTest, parts) {
  FunctionSchema s = parseSchema(
      "aten::f.out(Tensor(a!) self, int[2] stride=1, *, Scalar alpha=1, ScalarType? dtype=None, "
      "str mode=\"a\\n\\\"b\", float eps=1e-05, bool b=True, int[] d=[0,1], int reduction=Mean, "
      "MemoryFormat? m=contiguous_format, complex c=2j, Device e='cuda:1', float g=1) -> "
      "(Tensor(a!) x, Tensor)");
  EXPECT_EQ(s.name(), "aten::f");
  EXPECT_EQ(s.overload(), "out");
  const auto& a = s.arguments();
  ASSERT_EQ(a.size(), 13u);
  EXPECT_TRUE(a[0].alias->is_write);
  EXPECT_EQ(a[0].alias->before, std::vector<std::string>{"a"});
  EXPECT_EQ(a[1].fixed_size, 2);
  EXPECT_EQ(a[1].default_value->repr(), "[1, 1]");
  EXPECT_FALSE(a[1].kwarg_only);
  EXPECT_TRUE(a[2].kwarg_only);
  EXPECT_TRUE(a[2].default_value->isInt());
  EXPECT_TRUE(a[3].default_value->isNone());
  EXPECT_EQ(a[4].default_value->toString(), "a\n\"b");
  EXPECT_EQ(a[5].default_value->toDouble(), 1e-5);
  EXPECT_EQ(a[7].default_value->repr(), "[0, 1]");
  EXPECT_EQ(a[8].default_value->toInt(), 1);
  EXPECT_EQ(a[9].default_value->toInt(), 0);
  EXPECT_EQ(a[10].default_value->toComplex(), std::complex<double>(0, 2));
  EXPECT_EQ(a[11].default_value->toDevice(), Device::parse("cuda:1"));
  EXPECT_TRUE(a[12].default_value->isDouble());
  EXPECT_EQ(s.returns().size(), 2u);
  EXPECT_EQ(s.returns()[0].name, "x");
  EXPECT_TRUE(s.isMutable());
  EXPECT_EQ(s.argumentIndex("alpha"), 2u);
  EXPECT_EQ(s.argumentIndex("nothing"), std::nullopt);
}

TEST(SchemaTest, aliases) {
  FunctionSchema s = parseSchema(
      "f(Tensor(a -> *) x, Tensor(a!)[] ts, Dict(str, t)(b!) d, t(*) el, t[](*) l) -> Tensor(b|a)");
  EXPECT_TRUE(s.arguments()[0].alias->isWildcardAfter());
  EXPECT_EQ(s.arguments()[0].alias->before[0], "a");
  EXPECT_TRUE(s.arguments()[1].alias->before.empty());
  EXPECT_TRUE(s.arguments()[1].alias->contained[0].is_write);
  EXPECT_TRUE(s.arguments()[2].alias->is_write);
  EXPECT_EQ(s.arguments()[3].alias->before[0], "*");
  EXPECT_EQ(s.arguments()[4].alias->before[0], "*");
  EXPECT_EQ(s.returns()[0].alias->before, (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(parseSchema("f(Tensor(a!)[] ts) -> ()").isMutable());
  EXPECT_FALSE(parseSchema("f(Tensor(a)[] ts) -> ()").isMutable());
}

TEST(SchemaTest, mistakesShowTheirPlace) {
  for (const char* text : {"",
                           "f",
                           "f(",
                           "f(int)",
                           "f(int x",
                           "f(int x) ->",
                           "f(int x) -> (",
                           "f(Foo x) -> ()",
                           "f(int x=) -> ()",
                           "f(int x=1.5) -> ()",
                           "f(int x=99999999999999999999) -> ()",
                           "f(bool x=1) -> ()",
                           "f(str x=\"a) -> ()",
                           "f(int x) -> () y",
                           "f(*, *, int x) -> ()",
                           "f(..., int x) -> ()",
                           "f(Tensor(a x) -> ()",
                           "f(Dict(int) x) -> ()",
                           "f(int[99999999999] x=1) -> ()",
                           "f(__torch__.torch.classes.quantized.X x) -> ()",
                           "f(float x=-) -> ()",
                           "f(str x=\"\\q\") -> ()",
                           "f(Union() x) -> ()"}) {
    EXPECT_THROW(parseSchema(text), RuntimeError) << text;
  }
  try {
    parseSchema("f(Foo x) -> ()");
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_EQ(e.brief(), "schema: unknown type 'Foo'\n  f(Foo x) -> ()\n    ^");
  }
  for (const char* text :
       {"f(str x=\"\\x4\") -> ()", "f(str x=\"\\xg0\") -> ()", "f(str x=\"\\x"}) {
    EXPECT_THAT(testing_errors::errorOf([&] { parseSchema(text); }),
                testing::HasSubstr("schema: expected two hexadecimal digits"))
        << text;
  }
}

TEST(SchemaTest, nestingIsLimited) {
  std::string deep = "f(" + std::string(100'000, '(');
  EXPECT_THROW(parseSchema(deep), RuntimeError);
  std::string lists = "f(int";
  for (int i = 0; i < 100'000; ++i) lists += "[]";
  EXPECT_THROW(parseSchema(lists + " x) -> ()"), RuntimeError);
}

// Mutated declarations either parse, and then print to a fixed point, or are refused.
TEST(SchemaTest, mutations) {
  std::mt19937 rng(7);
  auto schemas = sampleSchemas();
  const std::string alphabet = "()[]?!*|->=,. \"'\\aTt01eNx_:\n\0";
  for (int round = 0; round < 20'000; ++round) {
    std::string s = schemas[rng() % schemas.size()];
    for (unsigned i = 0, n = 1 + rng() % 4; i < n && !s.empty(); ++i) {
      size_t at = rng() % s.size();
      switch (rng() % 3) {
        case 0:
          s.erase(at, 1 + rng() % 3);
          break;
        case 1:
          s.insert(at, 1, alphabet[rng() % alphabet.size()]);
          break;
        default:
          s[at] = alphabet[rng() % alphabet.size()];
      }
    }
    try {
      std::string printed = parseSchema(s).str();
      EXPECT_EQ(parseSchema(printed).str(), printed) << s;
    } catch (const RuntimeError&) {
    }
  }
}

}  // namespace
}  // namespace wick::schema_test
