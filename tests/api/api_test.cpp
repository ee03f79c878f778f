// The C++ interface as an application uses it: values, tensors, modules and their conversions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <sstream>

#include "wick.h"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kDigits = "examples/digits.pt";

std::string messageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const wick::RuntimeError& error) {
    return error.className() == "RuntimeError" ? error.brief() : error.what();
  } catch (const wick::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ApiTest, VersionIsThatOfTheHeaders) {
  EXPECT_EQ(std::string(wick::version()), std::to_string(WICK_VERSION_MAJOR) + "." +
                                              std::to_string(WICK_VERSION_MINOR) + "." +
                                              std::to_string(WICK_VERSION_PATCH));
}

template <class T>
void becomesInt(T v) {
  const wick::IValue value(v);
  EXPECT_TRUE(value.isInt());
  EXPECT_EQ(value.toInt(), 7);
  EXPECT_EQ(value.to<T>(), v);
}

TEST(ApiTest, EveryIntegerIsAnInt) {
  becomesInt<signed char>(7);
  becomesInt<unsigned char>(7);
  becomesInt<short>(7);
  becomesInt<unsigned short>(7);
  becomesInt<int>(7);
  becomesInt<unsigned>(7);
  becomesInt<long>(7);
  becomesInt<unsigned long>(7);
  becomesInt<long long>(7);
  becomesInt<unsigned long long>(7);
  becomesInt<size_t>(7);
  becomesInt<std::ptrdiff_t>(7);
  EXPECT_TRUE(wick::IValue(true).isBool());
  EXPECT_TRUE(wick::IValue(2.5f).isDouble());
  EXPECT_EQ(wick::IValue(wick::DType::Float).toInt(), 6);
  EXPECT_EQ(wick::IValue(wick::DType::Float).to<wick::DType>(), wick::DType::Float);
  static_assert(!std::is_constructible_v<wick::IValue, char>);
  static_assert(!std::is_constructible_v<wick::IValue, wchar_t>);
  static_assert(!std::is_constructible_v<wick::IValue, int*>);
  static_assert(!std::is_constructible_v<wick::IValue, std::vector<char>>);
}

TEST(ApiTest, IntegersThatDoNotFitAreErrors) {
  EXPECT_THAT(messageOf([] { wick::IValue v(UINT64_MAX); }),
              HasSubstr("expected an int of 64 bits with sign, got 18446744073709551615"));
  EXPECT_EQ(messageOf([] { wick::IValue(300).to<int8_t>(); }),
            "expected an int from -128 to 127, got 300");
  EXPECT_EQ(messageOf([] { wick::IValue(-1).to<size_t>(); }),
            "expected an int from 0 to 18446744073709551615, got -1");
}

template <class T>
void comesBack(const T& v, const std::string& type, const std::string& text) {
  const wick::IValue value(v);
  EXPECT_EQ(value.type()->annotation(), type);
  EXPECT_EQ(value.repr(), text);
  EXPECT_EQ(value.to<T>(), v);
}

TEST(ApiTest, ContainersBecomeValuesAndComeBack) {
  comesBack(std::vector<int64_t>{1, 2}, "List[int]", "[1, 2]");
  comesBack(std::vector<int64_t>{}, "List[int]", "[]");
  comesBack(std::vector<float>{0.5, 2}, "List[float]", "[0.5, 2.0]");
  comesBack(std::vector<bool>{true, false}, "List[bool]", "[True, False]");
  comesBack(std::vector<std::string>{"a"}, "List[str]", "['a']");
  comesBack(std::vector<std::vector<int>>{{1}, {}}, "List[List[int]]", "[[1], []]");
  comesBack(std::vector<std::optional<int>>{1, std::nullopt}, "List[Optional[int]]", "[1, None]");
  comesBack(std::array<double, 2>{1, 2}, "List[float]", "[1.0, 2.0]");
  comesBack(std::map<std::string, int>{{"a", 1}, {"b", 2}}, "Dict[str, int]", "{'a': 1, 'b': 2}");
  comesBack(std::unordered_map<int, std::string>{{3, "c"}}, "Dict[int, str]", "{3: 'c'}");
  comesBack(std::tuple<int, std::string, bool>{1, "x", true}, "Tuple[int, str, bool]",
            "(1, 'x', True)");
  comesBack(std::pair<double, std::vector<int>>{1, {2}}, "Tuple[float, List[int]]", "(1.0, [2])");
  const std::vector<int> numbers = {4, 5};
  EXPECT_EQ(wick::IValue(std::span(numbers)).repr(), "[4, 5]");
  EXPECT_EQ(wick::IValue(wick::Tensor::zeros({2, 3}, wick::DType::Float).sizes()).repr(), "[2, 3]");
  EXPECT_EQ(wick::IValue(std::optional<std::vector<int>>{{1}}).repr(), "[1]");
  EXPECT_TRUE(wick::IValue(std::optional<int>()).isNone());
}

TEST(ApiTest, ValuesBecomeWhatIsAskedFor) {
  const wick::Tensor x = wick::Tensor::from({1.f, 2.f});
  const wick::IValue dict(std::map<std::string, wick::Tensor>{{"x", x}});
  EXPECT_TRUE((dict.to<std::map<std::string, wick::Tensor>>()["x"].isSame(x)));
  EXPECT_EQ(wick::IValue(3).to<double>(), 3.0);
  EXPECT_EQ(wick::IValue().to<std::optional<double>>(), std::nullopt);
  EXPECT_EQ(wick::IValue(2.5).to<std::optional<double>>(), 2.5);
  const wick::IValue tuple(std::tuple(1, 2));
  EXPECT_THAT(tuple.to<std::vector<int>>(), ElementsAre(1, 2));
  const auto [number, text] =
      wick::IValue(std::tuple(7, "seven")).to<std::tuple<int64_t, std::string>>();
  EXPECT_EQ(number, 7);
  EXPECT_EQ(text, "seven");
  const auto mixed = wick::IValue(std::tuple(7, "seven")).to<std::vector<wick::IValue>>();
  EXPECT_EQ(mixed[1].toString(), "seven");
}

TEST(ApiTest, WrongTypesSayWhatWasExpectedFoundAndWhere) {
  EXPECT_EQ(messageOf([] { wick::IValue("a").to<int64_t>(); }), "expected int, got str");
  EXPECT_EQ(messageOf([] { wick::IValue(1.5).to<std::vector<int64_t>>(); }),
            "expected List[int], got float");
  EXPECT_EQ(messageOf([] { wick::IValue(1).to<bool>(); }), "expected bool, got int");
  EXPECT_EQ(messageOf([] { wick::IValue().tensor(); }), "expected Tensor, got None");
  EXPECT_EQ(
      messageOf([] { wick::IValue(std::vector<std::string>{"a"}).to<std::vector<int64_t>>(); }),
      "[0]: expected int, got str");
  EXPECT_EQ(messageOf([] {
              wick::IValue(std::map<std::string, std::vector<int>>{{"k", {1}}})
                  .to<std::map<std::string, std::vector<std::string>>>();
            }),
            "['k'][0]: expected str, got int");
  EXPECT_EQ(messageOf([] { wick::IValue(std::pair(1, 2)).to<std::tuple<int, int, int>>(); }),
            "expected a tuple of 3, got one of 2");
  EXPECT_EQ(messageOf([] { wick::IValue(1).to<wick::Module>(); }), "expected a module, got int");
}

TEST(ApiTest, ListsTuplesAndDictsIterateAndIndex) {
  const wick::IValue list(std::vector<int>{10, 20, 30});
  int64_t sum = 0;
  for (const auto& element : list) sum += element.toInt();
  EXPECT_EQ(sum, 60);
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].toInt(), 10);
  EXPECT_EQ(list[-1].toInt(), 30);
  EXPECT_EQ(list[size_t{1}].toInt(), 20);
  EXPECT_EQ(messageOf([&] { list[3]; }), "IndexError: list index out of range: 3 of 3");
  EXPECT_EQ(messageOf([&] { list["a"]; }), "expected a dict, named tuple or object, got list");

  const wick::IValue dict(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  std::string keys;
  for (const auto& key : dict) keys += key.toString();
  EXPECT_EQ(keys, "ab");
  for (const auto& [key, value] : dict.items()) EXPECT_EQ(dict.at(key).toInt(), value.toInt());
  EXPECT_EQ(dict["b"].toInt(), 2);
  EXPECT_EQ(dict[std::string("a")].toInt(), 1);
  EXPECT_TRUE(dict.contains("a"));
  EXPECT_FALSE(dict.contains("c"));
  EXPECT_EQ(messageOf([&] { dict["c"]; }), "KeyError: 'c'");
  const wick::IValue numbered(std::map<int, std::string>{{5, "five"}});
  EXPECT_EQ(numbered[5].toString(), "five");

  EXPECT_EQ(messageOf([] {
              for (const auto& v : wick::IValue(1)) (void)v;
            }),
            "expected a list, tuple or dict to iterate over, got int");
  EXPECT_EQ(messageOf([] { wick::IValue(1)[0]; }), "expected a list, tuple or dict, got int");
  EXPECT_EQ(messageOf([] { wick::IValue("text").size(); }),
            "expected a list, tuple or dict, got str");
}

TEST(ApiTest, NamedTuplesAndObjectsHaveNames) {
  const auto program = wick::compile(R"(
from typing import NamedTuple
class Point(NamedTuple):
    x: int
    y: int

class Box:
    def __init__(self, width: int):
        self.width = width

def point() -> Point:
    return Point(3, 4)

def box() -> Box:
    return Box(5)
)");
  const auto point = program.call("point", {});
  EXPECT_EQ(point["y"].toInt(), 4);
  EXPECT_EQ(point[0].toInt(), 3);
  EXPECT_THAT(messageOf([&] { point["z"]; }), HasSubstr("has no field 'z'"));
  EXPECT_EQ(program.call("box", {})["width"].toInt(), 5);
}

TEST(ApiTest, TensorsAreMadeOfAnySequence) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(wick::Tensor::from(values, {2, 3}).describe(), "float32[2, 3]");
  EXPECT_EQ(wick::Tensor::from(std::span(values).first(4), {2, 2}).describe(), "float32[2, 2]");
  EXPECT_EQ(wick::Tensor::from({1, 2, 3}, {3, 1}).describe(), "int32[3, 1]");
  EXPECT_EQ(wick::Tensor::from({1.0, 2.0}).describe(), "float64[2]");
  EXPECT_EQ(wick::Tensor::from(std::array<int64_t, 3>{1, 2, 3}).describe(), "int64[3]");
  EXPECT_EQ(wick::Tensor::from({1LL, 2LL}).describe(), "int64[2]");
  EXPECT_EQ(wick::Tensor::from(std::vector<bool>{true, false}).describe(), "bool[2]");
  EXPECT_EQ(wick::Tensor::from(std::deque<uint8_t>{1}).describe(), "uint8[1]");
  const double plain[] = {1, 2, 3, 4};
  EXPECT_EQ(wick::Tensor::from(plain, {2, 2}).describe(), "float64[2, 2]");
  EXPECT_EQ(wick::Tensor::from(std::vector<float>{}, {0, 3}).describe(), "float32[0, 3]");
  EXPECT_EQ(messageOf([&] {
              wick::Tensor::from(values, {2, 2});
            }),
            "Tensor::from: expected 4 values for the sizes [2, 2], got 6");
  EXPECT_NE(messageOf([&] { wick::Tensor::from(values, {-2, -3}); }), "no error");
}

TEST(ApiTest, SpansShowElements) {
  wick::Tensor x = wick::Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  EXPECT_THAT(x.span<float>(), ElementsAre(1, 2, 3, 4));
  x.span<float>()[0] = 9;
  EXPECT_EQ(x.select(0, 0).select(0, 0).item<float>(), 9);
  const std::span<const float> readable = x.span<const float>();
  EXPECT_EQ(readable.size(), 4u);
  EXPECT_THAT(messageOf([&] { x.span<double>(); }), HasSubstr("float32 were asked for as float64"));
  EXPECT_EQ(messageOf([&] { x.transpose(0, 1).span<float>(); }),
            "span: expected a contiguous tensor, got float32[2, 2] with strides [1, 2]; call "
            "contiguous() first");
  EXPECT_EQ(messageOf([] { wick::Tensor().span<float>(); }),
            "the tensor is undefined: it has no elements, sizes, dtype or device");
  // Nobody but the loop holds this tensor.
  float sum = 0;
  for (float v : wick::Tensor::full({1000}, 1, wick::DType::Float).span<float>()) sum += v;
  EXPECT_EQ(sum, 1000);
}

// What the issue that asked for this interface wrote down, with a model of its own.
TEST(ApiTest, TheExampleRuns) {
  const auto program = wick::compile(R"(
def detect(x: Tensor, threshold: float) -> List[Dict[str, Tensor]]:
    found: List[Dict[str, Tensor]] = []
    for i in range(2):
        found.append({"scores": x.flatten()[i * 2:i * 2 + 2] * threshold})
    return found

def generate(ids: List[int], count: int) -> List[int]:
    for i in range(2):
        ids.append(count + i)
    return ids
)");
  const std::vector<float> pixels = {1, 2, 3, 4};
  auto x = wick::Tensor::from(pixels, {1, 1, 2, 2});
  std::vector<float> scores;
  for (const auto& det : program.call("detect", {x, 0.5}))
    for (float s : det["scores"].tensor().span<float>()) scores.push_back(s);
  EXPECT_THAT(scores, ElementsAre(0.5, 1, 1.5, 2));
  auto ids = program.call("generate", {std::vector<int64_t>{1, 2}, pixels.size()})
                 .to<std::vector<int64_t>>();
  EXPECT_THAT(ids, ElementsAre(1, 2, 4, 5));
}

TEST(ApiTest, ModulesAreChangedAndSaved) {
  wick::ModuleBuilder builder("Net");
  builder.registerParameter("weight", wick::Tensor::from({1.f, 2.f}))
      .registerAttribute("eps", wick::types::Float(), 1e-5);
  builder.define(
      "def forward(self, x: Tensor) -> Tensor:\n    return x * self.weight + self.eps\n");
  auto model = builder.build();
  const std::string path = testing::TempDir() + "/api_out.pt";
  model.setAttr("eps", 0.1);
  model.save(path);
  auto again = wick::load(path);
  EXPECT_EQ(again.attr("eps").to<double>(), 0.1);
  const auto x = wick::Tensor::from({3.f, 4.f});
  EXPECT_TRUE(again({x}).equals(model({x})));
  // The same bytes again.
  EXPECT_EQ(again.saveToString(), model.saveToString());
  std::stringstream stream;
  again.save(stream);
  EXPECT_EQ(wick::load(stream).stateDict().size(), 1u);
}

TEST(ApiTest, ModulesAreLoadedCalledAndChanged) {
  auto model = wick::load(kDigits).eval();
  EXPECT_FALSE(model.isTraining());
  auto x = wick::Tensor::zeros({1, 1, 28, 28}, wick::DType::Float);
  const wick::IValue scores = model({x});
  EXPECT_EQ(scores.tensor().describe(), "float32[1, 10]");
  EXPECT_EQ(model.run("forward", {x}).tensor().numel(), 10);
  model.setAttr("training", true);
  EXPECT_TRUE(model.isTraining());
  EXPECT_TRUE(model.train().eval() == model);
  EXPECT_THAT(messageOf([&] { model.setAttr("training", "yes"); }), HasSubstr("expected bool"));
  EXPECT_THAT(messageOf([&] { model.setAttr("eps", 0.1); }), HasSubstr("no attribute 'eps'"));
  const wick::IValue value(model.object());
  EXPECT_TRUE(value.to<wick::Module>() == model);
}

// A vector of values is the arguments of a call, never a list among them.
TEST(ApiTest, VectorsOfValuesAreArguments) {
  static_assert(!std::is_constructible_v<wick::IValue, std::vector<wick::IValue>>);
  const auto program = wick::compile("def f(a: int, b: int) -> int:\n    return a - b\n");
  const std::vector<wick::IValue> arguments = {5, 3};
  EXPECT_EQ(program.call("f", arguments).toInt(), 2);
  EXPECT_EQ(program.call("f", {arguments}).toInt(), 2);
}

TEST(ApiTest, GradientModeAndBudgetsAreReached) {
  EXPECT_TRUE(wick::gradEnabled());
  {
    const wick::GradModeGuard off(false);
    EXPECT_FALSE(wick::gradEnabled());
  }
  wick::Budget::Bounds bounds;
  bounds.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  wick::Budget budget(bounds);
  const wick::BudgetScope scope(&budget);
  EXPECT_THAT(messageOf([] { wick::load(kDigits); }), HasSubstr("time"));
}

}  // namespace
