// Settings of the C interface: gradients, seeds, warnings, the log; versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/capi/handles.h"

namespace {

using testing::HasSubstr;
using namespace wick::testing_capi;

TEST(CapiSettings, TheHeaderHasTheLibrarysVersion) {
  EXPECT_EQ(std::to_string(WICK_VERSION_MAJOR) + "." + std::to_string(WICK_VERSION_MINOR) + "." +
                std::to_string(WICK_VERSION_PATCH),
            wick_version());
}

// Whether the digits' scores know where they come from.
bool records(const Owned<wick_module>& module) {
  const std::vector<float> pixels(784, 0.5f);
  const int64_t sizes[] = {1, 1, 28, 28};
  const Value x = made(wick_value_from_data, WICK_FLOAT32, sizes, size_t{4},
                       static_cast<const void*>(pixels.data()), pixels.size() * sizeof(float));
  wick_value* argument = x.get();
  const Value y =
      made(wick_module_call, module.get(), static_cast<const char*>(nullptr), &argument, size_t{1},
           static_cast<const wick_value*>(nullptr), static_cast<const wick_limits*>(nullptr));
  return reprOf(y).find("requires_grad=True") != std::string::npos;
}

constexpr const char* kSquare =
    "def gradient(x: Tensor) -> Tensor:\n"
    "    x = x.detach().requires_grad_()\n"
    "    g = torch.autograd.grad([(x * x).sum()], [x])[0]\n"
    "    assert g is not None\n"
    "    return g\n";

// Each thread begins anew.
template <class F>
void onThread(F f) {
  std::thread(f).join();
}

TEST(CapiSettings, ModulesDoNotRecordUnlessTold) {
  const auto module =
      made<wick_module>(wick_module_load, kDigits, static_cast<const wick_limits*>(nullptr));
  const auto program = compiled(kSquare);
  const float two = 2;
  const Value x = made(wick_value_from_data, WICK_FLOAT32, static_cast<const int64_t*>(nullptr),
                       size_t{0}, static_cast<const void*>(&two), sizeof(two));
  onThread([&] {
    EXPECT_FALSE(records(module));
    EXPECT_EQ(reprOf(called(program, "gradient", {x.get()})), "tensor(4.)");
    EXPECT_EQ(wick_set_grad(1), WICK_OK);
    EXPECT_TRUE(records(module));
    EXPECT_EQ(wick_set_grad(0), WICK_OK);
    EXPECT_FALSE(records(module));
    Value result;
    EXPECT_EQ(call(program, "gradient", {x.get()}, result), WICK_ERROR_RUNTIME);
    EXPECT_THAT(message(), HasSubstr("does not require grad"));
  });
  onThread([&] { EXPECT_FALSE(records(module)); });
}

bool recorded_within = false;
wick_status callsModule(void* data, wick_value* const*, size_t, wick_value** results) {
  recorded_within = records(*static_cast<Owned<wick_module>*>(data));
  return wick_value_from_int(0, &results[0]);
}

// A function that a run calls works as the run does.
TEST(CapiSettings, CallsWithinRunsGoByTheRun) {
  auto module =
      made<wick_module>(wick_module_load, kDigits, static_cast<const wick_limits*>(nullptr));
  const wick_operator op = {sizeof(op), "calls() -> int", callsModule, &module,
                            nullptr,    nullptr,          0,           1};
  const wick_extension extension = {sizeof(extension), "within", &op, 1, nullptr, 0};
  ASSERT_EQ(wick_extension_add(&extension), WICK_OK) << message();
  const auto program = compiled(
      "def plain() -> int:\n    return torch.ops.within.calls()\n"
      "def without() -> int:\n    with torch.no_grad():\n        return "
      "torch.ops.within.calls()\n");
  onThread([&] {
    called(program, "plain");
    EXPECT_TRUE(recorded_within);
    called(program, "without");
    EXPECT_FALSE(recorded_within);
  });
}

TEST(CapiSettings, SeedsRepeatNumbers) {
  const auto program = compiled("def draw() -> float:\n    return float(torch.rand(1))\n");
  const auto draw = [&] { return reprOf(called(program, "draw")); };
  ASSERT_EQ(wick_set_seed(7), WICK_OK);
  const std::string first = draw();
  EXPECT_NE(draw(), first);
  ASSERT_EQ(wick_set_seed(7), WICK_OK);
  EXPECT_EQ(draw(), first);
  // PyTorch 1.13: torch.manual_seed(7); float(torch.rand(1))
  EXPECT_EQ(first.substr(0, 6), "0.5349") << first;
}

void append(void* data, const char* text) {
  *static_cast<std::string*>(data) += text;
}

TEST(CapiSettings, WarningsAndLogsGoToHandlers) {
  std::string warned, logged;
  ASSERT_EQ(wick_set_warning_handler(append, &warned), WICK_OK);
  const auto program = compiled("def f():\n    warnings.warn(\"take care\")\n");
  called(program, "f");
  EXPECT_EQ(warned, "take care");
  EXPECT_EQ(wick_set_warning_handler(nullptr, nullptr), WICK_OK);

  ASSERT_EQ(wick_set_log("*", append, &logged), WICK_OK);
  const auto other = compiled("def f(x: Tensor) -> Tensor:\n    return x + 1 * 2\n");
  const float two = 2;
  const Value x = made(wick_value_from_data, WICK_FLOAT32, static_cast<const int64_t*>(nullptr),
                       size_t{0}, static_cast<const void*>(&two), sizeof(two));
  called(other, "f", {x.get()});
  EXPECT_EQ(wick_set_log("", nullptr, nullptr), WICK_OK);
  EXPECT_THAT(logged, HasSubstr(".cpp:"));
  EXPECT_TRUE(logged.ends_with('\n'));
}

}  // namespace
