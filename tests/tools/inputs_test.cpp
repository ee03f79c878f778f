#include "tools/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "serialization/npy.h"
#include "tools/options.h"

namespace wick::cli::inputs_test {
namespace {

IValue parse(const std::string& text) {
  return InputParser().parse(text).value;
}
std::string errorOf(const std::string& text) {
  try {
    InputParser().parse(text);
  } catch (const CommandLineError& e) {
    return e.what();
  }
  return "no error";
}

TEST(InputsTest, ShapesBecomeRandomTensors) {
  Tensor t = parse("2x3xf32").toTensor();
  EXPECT_EQ(t.describe(), "float32[2, 3]");
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_GE(t.data<float>()[i], 0);
    EXPECT_LT(t.data<float>()[i], 1);
  }
  EXPECT_EQ(parse("0x4xi64=random").toTensor().describe(), "int64[0, 4]");
  EXPECT_EQ(parse("f64=zeros").toTensor().describe(), "float64[]");
  EXPECT_EQ(parse("3xcomplex64").toTensor().dtype(), DType::ComplexFloat);
  EXPECT_EQ(parse("4xbool").toTensor().dtype(), DType::Bool);
  EXPECT_EQ(parse("2x3xfp32").toTensor().describe(), "float32[2, 3]");
  EXPECT_EQ(parse("2xfp16").toTensor().dtype(), DType::Half);
  EXPECT_EQ(parse("2xfp64").toTensor().dtype(), DType::Double);
  EXPECT_EQ(parse("2xf16=ones").toTensor().select(0, 1).item<float>(), 1.0f);
}

TEST(InputsTest, RandomNumbersAreTheSameEachTime) {
  EXPECT_TRUE(parse("5xf32").equals(parse("5xf32")));
}

TEST(InputsTest, Literals) {
  const std::pair<const char*, const char*> cases[] = {
      {"3", "3"},
      {"-7", "-7"},
      {"2.5", "2.5"},
      {"1e-3", "0.001"},
      {".5", "0.5"},
      {"2j", "2j"},
      {"True", "True"},
      {"None", "None"},
      {"\"a b\"", "'a b'"},
      {"'it\\'s\\n'", "\"it's\\n\""},
      {"[1, 2]", "[1, 2]"},
      {"[]", "[]"},
      {"(1, 'x')", "(1, 'x')"},
      {"(1,)", "(1,)"},
      {"(1)", "1"},
      {"[[1], [2, 3]]", "[[1], [2, 3]]"},
      {"{\"a\": 1, \"b\": 2}", "{'a': 1, 'b': 2}"},
      {" 4 ", "4"},
  };
  for (const auto& [text, repr] : cases) EXPECT_EQ(parse(text).repr(), repr) << text;
}

TEST(InputsTest, NamesComeBeforeTheValue) {
  Input input = InputParser().parse("alpha=2.5");
  EXPECT_EQ(input.name, "alpha");
  EXPECT_EQ(input.value.toDouble(), 2.5);
  input = InputParser().parse("x=2xf32=zeros");
  EXPECT_EQ(input.name, "x");
  EXPECT_EQ(input.value.toTensor().numel(), 2);
  EXPECT_EQ(InputParser().parse("x=random").filling, Filling::Random);
  EXPECT_EQ(InputParser().parse("=zeros").filling, Filling::Zeros);
}

TEST(InputsTest, Files) {
  const std::string path = testing::TempDir() + "/three.npy";
  saveNpy(Tensor::full({3}, 2, DType::Float), path);
  EXPECT_EQ(parse("@" + path).toTensor().numel(), 3);
  EXPECT_EQ(parse("=@" + path).toTensor().numel(), 3);
  EXPECT_EQ(parse("3xf32=@" + path).toTensor().numel(), 3);
  EXPECT_EQ(parse("[@" + path + ", 2xf32]").elements().size(), 2u);
  EXPECT_THAT(errorOf("4xf32=@" + path), testing::HasSubstr("float32[3]"));
  EXPECT_THROW(parse("@/no/such/file.npy"), LoadError);
}

TEST(InputsTest, MistakesAreShown) {
  EXPECT_THAT(errorOf("1x3xq32"), testing::HasSubstr("expected a dtype"));
  EXPECT_THAT(errorOf("1xax3xf32"), testing::HasSubstr("expected a size"));
  EXPECT_THAT(errorOf("[1, 2"), testing::HasSubstr("expected"));
  EXPECT_THAT(errorOf("[1 2]"), testing::HasSubstr("\",\" or \"]\""));
  EXPECT_THAT(errorOf("text"), testing::HasSubstr("must stand in quotes"));
  EXPECT_THAT(errorOf("\"open"), testing::HasSubstr("a string that ends"));
  EXPECT_THAT(errorOf("3 4"), testing::HasSubstr("column 3"));
  EXPECT_THAT(errorOf("=often"), testing::HasSubstr("random, zeros, ones"));
  EXPECT_THAT(errorOf("99999999999999999999"), testing::Not(testing::HasSubstr("no error")));
  EXPECT_THAT(errorOf(std::string(100000, '[')), testing::HasSubstr("less nesting"));
  EXPECT_THROW(parse("99999999999x99999999999xf32"), RuntimeError);
}

TEST(InputsTest, ShapesOfOtherProgramsAreToldAsTheyAreWritten) {
  const std::pair<const char*, const char*> cases[] = {
      {"1,3,224,224", "1x3x224x224xf32"},     {"1, 3, 224", "1x3x224xf32"},
      {"x:1x3x224x224", "x=1x3x224x224xf32"}, {"x:1x3xfp16", "x=1x3xfp16"},
      {"x=1,3,64xi64", "x=1x3x64xi64"},       {"1X3X8", "1x3x8xf32"},
  };
  for (const auto& [text, right] : cases) {
    const std::string error = errorOf(text);
    EXPECT_TRUE(error.ends_with(std::string("\nA tensor of this shape is written ") + right))
        << error;
    EXPECT_TRUE(parse(std::string(right).substr(std::string(right).find('=') + 1)).isTensor());
  }
  for (const char* text : {"1x3xq32", "3 4", "text", "99999999999999999999", "[1 2]", "1,x"}) {
    EXPECT_THAT(errorOf(text), testing::Not(testing::HasSubstr("of this shape"))) << text;
  }
}

TEST(InputsTest, ShapesWithoutDtypeAreFloat32) {
  EXPECT_EQ(parse("1x3x224x20").toTensor().describe(), "float32[1, 3, 224, 20]");
  EXPECT_EQ(parse("0x4=ones").toTensor().describe(), "float32[0, 4]");
  EXPECT_EQ(parse("[2x3, 4]").elements()[0].toTensor().describe(), "float32[2, 3]");
}

TEST(InputsTest, ForgottenSignsOfFilesAreGuessed) {
  const std::string path = testing::TempDir() + "/forgotten.npy";
  saveNpy(Tensor::full({3}, 2, DType::Float), path);
  EXPECT_THAT(errorOf(path), testing::HasSubstr("is a file; its tensor is written @" + path));
  EXPECT_THAT(errorOf("x=" + path), testing::HasSubstr("written @" + path));
  EXPECT_THAT(errorOf(testing::TempDir() + "/other.npy"),
              testing::Not(testing::HasSubstr("is a file")));
}

TEST(InputsTest, WhatIsMissingIsListed) {
  FunctionSchema schema = parseSchema("f(Tensor x, int n, float alpha=1.0) -> Tensor");
  EXPECT_EQ(argumentsFromInputs({"2xf32", "3"}, schema, 0).positional.size(), 2u);
  EXPECT_EQ(argumentsFromInputs({"n=random", "x=2xf32"}, schema, 0).named.size(), 2u);
  const auto message = [&](const std::vector<std::string>& inputs) -> std::string {
    try {
      argumentsFromInputs(inputs, schema, 0);
    } catch (const CommandLineError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({}), testing::AllOf(testing::HasSubstr("x=SHAPE"),
                                          testing::HasSubstr("n=VALUE    of type int"),
                                          testing::Not(testing::HasSubstr("alpha"))));
  EXPECT_THAT(message({"1", "2", "3", "4"}), testing::HasSubstr("one too many"));
  EXPECT_THAT(message({"1xf32", "x=2"}), testing::HasSubstr("given twice"));
  EXPECT_THAT(message({"what=2"}), testing::HasSubstr("no argument what"));
  EXPECT_THAT(message({"=random"}), testing::HasSubstr("tell its shape"));
}

IValue withTensors(const std::string& literal, const TypePtr& type) {
  return wick::cli::withTensors(parse(literal), *type, "x");
}

TEST(InputsTest, ListsOfNumbersBecomeTensorsWhereTheseAreDeclared) {
  const TypePtr tensor = types::Tensor();
  EXPECT_EQ(withTensors("[[1, 2], [3, 4]]", tensor).toTensor().describe(), "int64[2, 2]");
  EXPECT_EQ(withTensors("[1, 2.5]", tensor).toTensor().describe(), "float32[2]");
  EXPECT_EQ(withTensors("[True, False]", tensor).toTensor().describe(), "bool[2]");
  EXPECT_EQ(withTensors("[1, 2j]", tensor).toTensor().describe(), "complex64[2]");
  EXPECT_EQ(withTensors("[]", tensor).toTensor().describe(), "float32[0]");
  EXPECT_EQ(withTensors("[[], []]", tensor).toTensor().describe(), "float32[2, 0]");
  EXPECT_EQ(
      withTensors("[[1, 2], [3, 4]]", tensor).toTensor().select(0, 1).select(0, 0).item<int64_t>(),
      3);
  const IValue list = withTensors("[[1], [2, 3]]", types::List(tensor));
  EXPECT_EQ(list.toList().elements.at(1).toTensor().describe(), "int64[2]");
  const IValue pair = withTensors("([1, 2], 3)", types::Tuple({tensor, types::Int()}));
  EXPECT_TRUE(pair.elements().at(0).isTensor());
  EXPECT_TRUE(pair.elements().at(1).isInt());
  EXPECT_TRUE(withTensors("[1, 2]", types::List(types::Int())).isList());
  EXPECT_TRUE(withTensors("3", tensor).isInt());
  for (const char* bad : {"[[1, 2], [3]]", "[1, [2]]", "[[1], 2]", "[\"a\"]"}) {
    EXPECT_THROW(withTensors(bad, tensor), CommandLineError) << bad;
  }
}

TEST(InputsTest, SeedsGiveOtherRandomNumbers) {
  const IValue first = InputParser(1).parse("5xf32").value;
  EXPECT_TRUE(first.equals(InputParser(1).parse("5xf32").value));
  EXPECT_FALSE(first.equals(InputParser(2).parse("5xf32").value));
}

}  // namespace
}  // namespace wick::cli::inputs_test
