// Comforts of handles: arguments by name, texts, prepared methods, profiles, handlers of
// messages, errors that name the likely meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <unordered_map>

#include "wick.h"

namespace wick::handles_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDigits = "examples/digits.pt";

template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class Error, class F>
std::string messageOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Module scaled() {
  ModuleBuilder net("Scaled");
  net.registerParameter("weight", Tensor::from({2.f, 3.f}));
  net.define(
      "def forward(self, x: Tensor, factor: float = 1.0) -> Tensor:\n"
      "    return x * self.weight * factor\n"
      "def names(self) -> int:\n    return 7\n");
  return net.build().eval();
}

TEST(HandlesTest, ArgumentsComeByPositionAndByName) {
  const GradModeGuard inference(false);
  const Module m = scaled();
  const Tensor x = Tensor::from({1.f, 1.f});
  const std::string answer = "tensor([4., 6.])";
  EXPECT_EQ(shown(m({x, 2})), answer);
  EXPECT_EQ(shown(m({x}, {{"factor", 2}})), answer);
  EXPECT_EQ(shown(m({{"x", x}, {"factor", 2}})), answer);
  EXPECT_EQ(shown(m({{std::string("x"), x}})), "tensor([2., 3.])");
  EXPECT_EQ(shown(m.forward({{"factor", 2}, {"x", x}})), answer);
  EXPECT_EQ(shown(m.run("forward", {{"x", x}})), "tensor([2., 3.])");
  EXPECT_EQ(m.run("names", {}).toInt(), 7);
  const Program p = compile("def f(a: str, b: str = 'b') -> str:\n    return a + b\n");
  EXPECT_EQ(p.call("f", {"x", "y"}).toString(), "xy");
  EXPECT_EQ(p.call("f", {{"a", "x"}}).toString(), "xb");
  RunOptions options;
  options.max_steps = 1000;
  EXPECT_EQ(p.call("f", {{"a", "x"}}, options).toString(), "xb");
}

TEST(HandlesTest, UnknownNamesAreToldBeforeMissingValues) {
  const Module m = scaled();
  const Tensor x = Tensor::from({1.f, 1.f});
  EXPECT_THAT(messageOf<UsageError>([&] {
                m({}, {{"input", x}});
              }),
              HasSubstr("forward() has no argument 'input'; its arguments are: x, factor."));
  EXPECT_THAT(messageOf<UsageError>([&] {
                m({x}, {{"facter", 2}});
              }),
              HasSubstr("its arguments are: x, factor; did you mean 'factor'?"));
  EXPECT_THAT(messageOf<UsageError>([&] {
                m({{"self", x}});
              }),
              HasSubstr("has no argument 'self'"));
  EXPECT_THAT(messageOf<UsageError>([&] {
                m.run("names", {{"x", 1}});
              }),
              HasSubstr("names() has no argument 'x'; it takes none."));
  EXPECT_THAT(messageOf<UsageError>([&] { m({{"x", x}, {"x", x}}); }), HasSubstr("twice"));
}

TEST(HandlesTest, AttributesAndMethodsThatWereMeant) {
  Module model = load(kDigits);
  EXPECT_EQ(messageOf<UsageError>([&] { model.attr("conv_layer"); }),
            "Digits has no attribute 'conv_layer'; did you mean 'conv_layers'?");
  EXPECT_EQ(messageOf<UsageError>([&] { model.submodule("fc_layers").attr("nosuch"); }),
            "torch.nn.modules.container.Sequential has no attribute 'nosuch'");
  EXPECT_EQ(messageOf<UsageError>([&] { model.method("foward"); }),
            "Digits has no method 'foward'; did you mean 'forward'?");
  EXPECT_THAT(messageOf<UsageError>([&] { model.setAttr("trainin", true); }),
              HasSubstr("did you mean 'training'?"));
  EXPECT_EQ(readableClassName("__torch__.___torch_mangle_7.Net"), "Net");
  EXPECT_EQ(readableClassName("a.b.C"), "a.b.C");
}

TEST(HandlesTest, ValuesHaveTexts) {
  EXPECT_EQ(shown(Tensor::from({1.f, 2.f})), "tensor([1., 2.])");
  EXPECT_EQ(shown(Tensor()), "undefined tensor");
  EXPECT_EQ(shown(IValue("text")), "'text'");
  EXPECT_EQ(shown(IValue(std::vector<int64_t>{1, 2})), "[1, 2]");
  EXPECT_EQ(shown(DType::BFloat16), "bfloat16");
  EXPECT_EQ(shown(Tensor::zeros({1, 3, 8}, DType::Float).sizes()), "[1, 3, 8]");
  EXPECT_EQ(shown(Tensor::zeros({}, DType::Float).strides()), "[]");
}

TEST(HandlesTest, PreparedMethodsAreCalledAsModulesAre) {
  const GradModeGuard inference(false);
  const Module model = load(kDigits).eval();
  const Tensor x = Tensor::full({1, 1, 28, 28}, 0.25, DType::Float);
  PreparedMethod fast = optimizeForInference(model);
  const Tensor plain = model({x}).tensor(), prepared = fast({{"x", x}}).tensor();
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(plain.span<float>()[static_cast<size_t>(i)],
                prepared.span<float>()[static_cast<size_t>(i)], 1e-4);
  }
  EXPECT_THAT(messageOf<UsageError>([&] {
                fast({{"y", x}});
              }),
              HasSubstr("has no argument 'y'; its arguments are: x."));
  const PreparedMethod moved = std::move(fast);
  EXPECT_TRUE(moved.valid());
  EXPECT_THAT(messageOf<UsageError>([&] { PreparedMethod()({x}); }),
              HasSubstr("the handle holds no function"));
  EXPECT_THAT(messageOf<UsageError>([&] { optimizeForInference(model, "encode"); }),
              HasSubstr("Digits has no method 'encode'"));
  EXPECT_THAT(messageOf<UsageError>([&] { optimizeForInference(model.train()); }),
              HasSubstr("training mode; call eval() first"));
}

// The code lives as long as somebody can call it.
TEST(HandlesTest, PreparedMethodsKeepTheirModule) {
  const GradModeGuard inference(false);
  const PreparedMethod fast = optimizeForInference(load(kDigits).eval());
  EXPECT_EQ(fast({Tensor::zeros({2, 1, 28, 28}, DType::Float)}).tensor().size(0), 2);
}

TEST(HandlesTest, ProfilesTellWhereTimeGoes) {
  const GradModeGuard inference(false);
  const Module model = load(kDigits).eval();
  const Tensor x = Tensor::full({1, 1, 28, 28}, 0.25, DType::Float);
  Profile profile;
  EXPECT_TRUE(profile.rows().empty());
  for (int i = 0; i < 3; ++i) model({x}, {}, profile.options());
  uint64_t convolutions = 0;
  for (const Profile::Row& row : profile.rows()) {
    EXPECT_GE(row.seconds, 0);
    EXPECT_GT(row.calls, 0u);
    if (row.op.find("conv2d") != std::string::npos) convolutions += row.calls;
  }
  EXPECT_EQ(convolutions, 9u);
  EXPECT_THAT(shown(profile), HasSubstr("total us"));
  EXPECT_THAT(shown(profile), HasSubstr("conv2d"));
  const Program p = compile("def f(x: Tensor) -> Tensor:\n    return x.cumsum(0)\n", "sums.py");
  profile.clear();
  p.call("f", {Tensor::from({1.f})}, {}, profile.options());
  ASSERT_EQ(profile.rows().size(), 1u);
  EXPECT_EQ(profile.rows()[0].op, "aten::cumsum");
  EXPECT_EQ(profile.rows()[0].place, "sums.py:2");
}

TEST(HandlesTest, WarningsGoToTheirHandler) {
  std::string told;
  setWarningHandler([&](const std::string& message) { told += message; });
  const Program p = compile("def f():\n    warnings.warn('take care')\n");
  p.call("f", {});
  EXPECT_EQ(told, "take care");
  setWarningHandler([](const std::string& message) { throw RuntimeError("refused: " + message); });
  EXPECT_THAT(messageOf<RuntimeError>([&] { p.call("f", {}); }), HasSubstr("refused: take care"));
  setWarningHandler(nullptr);
  testing::internal::CaptureStderr();
  p.call("f", {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "Warning: take care\n");
  EXPECT_EQ(told, "take care");
}

TEST(HandlesTest, LoadingTakesOptions) {
  SaveOptions saving;
  saving.extra_files = {{"labels.txt", "zero one"}};
  const std::string bytes = saveModuleToString(load(kDigits), saving);
  std::unordered_map<std::string, std::string> extra;
  std::istringstream stream(bytes);
  const Module model = load(stream, {.extra_files = &extra});
  EXPECT_EQ(extra["labels.txt"], "zero one");
  EXPECT_TRUE(model.valid());
  ArchiveLimits narrow;
  narrow.max_code = 10;
  EXPECT_THAT(messageOf<LoadError>([&] { load(kDigits, {.limits = narrow}); }),
              HasSubstr("more than 10 bytes of source text"));
  EXPECT_THROW(loadFromMemory(std::as_bytes(std::span(bytes)), {.limits = narrow}), LoadError);
}

// Operators that are computed by a script while they are recorded fail as the user's line, not as that
// script's.
TEST(HandlesTest, ErrorsOfRecordedOperatorsAreThoseOfTheProgram) {
  const Module model = load(kDigits).eval();
  const Tensor wrong = Tensor::zeros({1, 5, 28, 28}, DType::Float);
  for (int i = 0; i < 3; ++i) {
    const std::string message = messageOf<RuntimeError>([&] { model({wrong}); });
    EXPECT_THAT(message, HasSubstr("conv2d("));
    EXPECT_THAT(message, Not(HasSubstr("<gradient of")));
    EXPECT_THAT(message, Not(HasSubstr("<forward of")));
    EXPECT_THAT(message, Not(HasSubstr("needed_gradients")));
  }
}

}  // namespace
}  // namespace wick::handles_test
