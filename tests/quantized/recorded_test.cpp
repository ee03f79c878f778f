// Quantized modules that PyTorch 1.13 saved (make_data.py), with what they gave there, also after Wick has saved them.
#include <gtest/gtest.h>

#include <string>

#include "serialization/torch_save.h"
#include "tests/quantized/quantized_testing.h"

namespace wick::testing::recorded_test {
namespace {

const std::string kData = "tests/quantized/data/";

// Within one step of the grids that the layers have, and nearly everywhere the same.
void expectEqual(const IValue& found, const IValue& wanted, const std::string& name) {
  if (wanted.isTuple()) {
    ASSERT_TRUE(found.isTuple()) << name;
    ASSERT_EQ(found.elements().size(), wanted.elements().size()) << name;
    for (size_t i = 0; i < wanted.elements().size(); ++i) {
      expectEqual(found.elements()[i], wanted.elements()[i], name + " " + std::to_string(i));
    }
    return;
  }
  ASSERT_EQ(DimVector(found.toTensor().sizes()), DimVector(wanted.toTensor().sizes())) << name;
  const std::vector<float> a = floats(found.toTensor()), b = floats(wanted.toTensor());
  size_t apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 0.101) << name << " " << i;
    apart += std::abs(a[i] - b[i]) > 1e-5;
  }
  EXPECT_LE(apart * 100, a.size()) << name;
}

void check(const Module& still, const Module& moving) {
  const IValue answers = loadValue(kData + "answers.pt");
  ASSERT_EQ(answers.items().size(), 6u);
  for (const auto& [key, answer] : answers.items()) {
    const std::string name(key.toString());
    const size_t dot = name.find('.');
    const Module& module = name.substr(0, dot) == "still" ? still : moving;
    std::vector<IValue> arguments;
    for (const IValue& argument : answer.elements()[0]) arguments.push_back(argument);
    for (int call = 0; call < 3; ++call) {
      expectEqual(module.run(name.substr(dot + 1), arguments), answer.elements()[1], name);
    }
  }
}

TEST(RecordedTest, ModulesGiveWhatTheyGaveInPyTorch) {
  check(load(kData + "still.pt"), load(kData + "moving.pt"));
}

TEST(RecordedTest, SavedModulesAreTheSame) {
  const std::string folder = ::testing::TempDir();
  for (const char* name : {"still", "moving"}) {
    load(kData + name + ".pt").save(folder + name + ".pt");
  }
  check(load(folder + "still.pt"), load(folder + "moving.pt"));
}

TEST(RecordedTest, FrozenModulesAreTheSame) {
  check(freeze(load(kData + "still.pt").eval(), {.methods = {"forward", "lines", "bags", "sums"}}),
        freeze(load(kData + "moving.pt").eval(), {.methods = {"forward", "steps"}}));
}

}  // namespace
}  // namespace wick::testing::recorded_test
