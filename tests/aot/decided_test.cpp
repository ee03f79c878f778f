// Sizes that elements of tensors decide, in models compiled ahead of time, against the engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/error_types.h"
#include "runtime/jit_mode.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::decided_test {
namespace {

using namespace testing_aot;

struct Case {
  const char* name;
  const char* text;
  std::vector<std::string> inputs;
};

// Arguments of a call: of the first two calls no and all elements are above zero.
std::vector<Tensor> argumentsOf(const Case& c, int number) {
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Tensor t = tensorOf(c.inputs[i], static_cast<uint64_t>(number) * 17 + i);
    const bool floats = t.dtype() == DType::Float;
    if (floats && number < 2) {
      for (int64_t e = 0; e < t.numel(); ++e) {
        float& x = t.data<float>()[e];
        x = number == 0 ? -std::abs(x) - 0.5f : std::abs(x) + 0.5f;
      }
    }
    arguments.push_back(t);
  }
  return arguments;
}

// Calls models with many arguments and compares results, sizes and errors with the engine's.
void compareAll(const std::string& folder, const std::vector<Case>& cases, int calls = 40) {
  setJitMode(JitMode::Sync);
  setJitThreshold(0);
  Workshop workshop(folder);
  std::vector<std::optional<Program>> programs;
  for (const Case& c : cases) {
    programs.emplace_back(compile(c.text, c.name));
    std::vector<IValue> arguments;
    for (const Tensor& t : argumentsOf(c, 2)) arguments.emplace_back(t);
    try {
      workshop.add(c.name, programs.back()->function("main"), arguments);
    } catch (const Error& e) {
      ADD_FAILURE() << c.name << ": " << e.what();
      programs.back().reset();
    }
  }
  ASSERT_EQ(workshop.compile(), "");
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (!programs[i]) continue;
    Running running(workshop, c.name);
    auto& [model, state] = running;
    for (int n = 0; n < calls; ++n) {
      SCOPED_TRACE(fmt::format("{}, call {}", c.name, n));
      const std::vector<Tensor> inputs = argumentsOf(c, n);
      std::vector<IValue> arguments;
      for (const Tensor& t : inputs) arguments.emplace_back(t);
      std::vector<Tensor> expected, found;
      bool raised = false;
      try {
        expected = tensorsOf(programs[i]->call("main", arguments));
      } catch (const RuntimeError&) {
        raised = true;
      }
      const std::string error = callAny(model, state, inputs, found);
      EXPECT_EQ(error != "", raised) << error;
      if (raised || error != "") continue;
      ASSERT_EQ(found.size(), expected.size());
      for (size_t o = 0; o < found.size(); ++o) expectSame(expected[o], found[o]);
    }
  }
}

TEST(DecidedTest, WhatAMaskSelects) {
  compareAll(
      "decided_masks",
      {{"select", "def main(x: Tensor):\n    return torch.masked_select(x, x > 0)\n", {"3x4xf32"}},
       {"rows",
        "def main(x: Tensor, y: Tensor):\n    return x[y > 0] * 2 + 1\n",
        {"6x3xf32", "6xf32"}},
       {"positions", "def main(x: Tensor):\n    return torch.nonzero(x > 0)\n", {"2x3x2xf32"}},
       {"wheres",
        "def main(x: Tensor):\n    a, b = torch.where(x > 0)\n    return a, b\n",
        {"3x3xf32"}}});
}

TEST(DecidedTest, InTheMiddle) {
  compareAll(
      "decided_middle",
      {{"sums",
        "def main(x: Tensor, w: Tensor):\n"
        "    h = torch.relu(x @ w)\n"
        "    k = h[h.sum(1) > 1]\n"
        "    return torch.softmax(k @ w.t(), 1), h.sum(0), k.sum(), k.shape[0]\n",
        {"7x4xf32", "4x5xf32"}},
       {"twice",
        "def main(x: Tensor):\n"
        "    y = x[x > 0]\n"
        "    z = y[y > 1]\n"
        "    return y.sum() - z.sum(), z * 2, torch.cat([y, z, x.flatten()])\n",
        {"9xf32"}},
       {"largest", "def main(x: Tensor):\n    return x[x > 0].max()\n", {"5xf32"}},
       {"written",
        "def main(x: Tensor):\n"
        "    y = x.clone()\n    m = x > 0\n    y[m] = y[m] * 2 + torch.arange(int(x[m].numel()))\n"
        "    return y\n",
        {"8xf32"}}});
}

TEST(DecidedTest, BehindAndWithinConditions) {
  compareAll("decided_conditions", {{"sides",
                                     "def main(x: Tensor):\n"
                                     "    if bool(x.sum() > 0):\n        y = x[x > 0] + 1\n"
                                     "    else:\n        y = x * 2\n"
                                     "    return (y * 1.5).sum(), x[0]\n",
                                     {"6xf32"}},
                                    {"empty",
                                     "def main(x: Tensor):\n"
                                     "    m = x > 1\n"
                                     "    if bool(m.any()):\n        return x[m]\n"
                                     "    return torch.zeros([0])\n",
                                     {"6xf32"}},
                                    {"known",
                                     "def main(x: Tensor):\n"
                                     "    y = x[x > 0]\n"
                                     "    if y.shape[0] > 3:\n        return y[:3]\n"
                                     "    if bool(y.sum() > 2):\n        y = y * 10\n"
                                     "    return y\n",
                                     {"7xf32"}},
                                    {"sizes",
                                     "def main(x: Tensor):\n"
                                     "    if bool(x.sum() > 0):\n        return x[1:] + 1\n"
                                     "    return x\n",
                                     {"5xf32"}}});
}

TEST(DecidedTest, NumbersAsSizes) {
  compareAll("decided_numbers",
             {{"counted",
               "def main(x: Tensor):\n"
               "    n = int((x > 0).sum())\n"
               "    return torch.zeros([n, 2]) + 1, torch.arange(n) * 2, n + 1\n",
               {"6xf32"}},
              {"cut",
               "def main(x: Tensor, k: Tensor):\n"
               "    n = int(k[0]) - 1\n"
               "    return x[:n] * 2, x[n:].sum(0), x[:, :n]\n",
               {"4x5xf32", "1xi64"}},
              {"bounded",
               "def main(x: Tensor, k: Tensor):\n"
               "    n = min(int(k.sum()), 5)\n"
               "    return torch.topk(x, min(n, 3))[0], torch.ones(n), x.narrow(0, 0, n)\n",
               {"7xf32", "3xi64"}},
              {"listed",
               "def main(x: Tensor, k: Tensor):\n"
               "    parts = [x, x * 2, x + 1, x - 1]\n"
               "    return parts[int(k[0])]\n",
               {"3xf32", "1xi64"}}},
             25);
}

// An element that a number chooses lies in another buffer, also behind a size that becomes known later.
TEST(DecidedTest, ElementsThatNumbersChoose) {
  compareAll("decided_elements",
             {{"once",
               "def main(x: Tensor, i: Tensor):\n"
               "    y = x.clone()\n"
               "    y[int(i[0])] = 5.0\n    y[int(i[0]):int(i[1])] = 7.0\n"
               "    return y\n",
               {"5x2xf32", "2xi64"}},
              {"several",
               "def main(x: Tensor, i: Tensor):\n"
               "    y = x.clone()\n"
               "    a = y[int(i[0])]\n    b = y[int(i[1])]\n"
               "    z = y[:int(i[2])] * 2\n"
               "    a.mul_(3)\n    b.add_(1)\n"
               "    c = y[int(i[2])]\n"
               "    w = y[int(i[0]):] + c\n"
               "    a.sub_(c)\n"
               "    return y, z, w, a, b, c\n",
               {"4x3xf32", "3xi64"}},
              {"in_conditions",
               "def main(x: Tensor, i: Tensor):\n"
               "    y = x.clone()\n"
               "    if bool(x[0, 0] > 0):\n        y[int(i[0])] = 5.0\n        y[int(i[1])] = 6.0\n"
               "    else:\n        y[int(i[1])] = 1.0\n        y[:int(i[0])] = 2.0\n"
               "    y[int(i[1])] += y[int(i[0])]\n"
               "    return y\n",
               {"4x2xf32", "2xi64"}}},
             25);
}

TEST(DecidedTest, NumbersBelowZero) {
  compareAll(
      "decided_negative",
      {{"rolled",
        "def main(x: Tensor, k: Tensor):\n"
        "    n = int(k[0]) * 5 - 7\n"
        "    return torch.roll(x, n, 0), torch.roll(x * 2, n, 0), torch.roll(x, [n, 1], [1, 0])\n",
        {"4x5xf32", "1xi64"}},
       {"rolled_flat",
        "def main(x: Tensor, k: Tensor):\n    return x.roll(2 - int(k[0]) * 9)\n",
        {"3x4xf32", "1xi64"}},
       {"narrowed",
        "def main(x: Tensor, k: Tensor):\n"
        "    return x.narrow(0, int(k[0]) - 3, 2), x.narrow(1, -int(k[0]), 1)\n",
        {"5x4xf32", "1xi64"}},
       {"chosen",
        "def main(x: Tensor, k: Tensor):\n"
        "    n = int(k[0]) - 2\n"
        "    return x[n], x.select(1, n), x[n:], x[:n], x[:, n:]\n",
        {"4x5xf32", "1xi64"}},
       {"listed",
        "def main(x: Tensor, k: Tensor):\n"
        "    parts = [x, x * 2, x + 1]\n"
        "    parts[1 - int(k[0])] = x * 9\n"
        "    return parts[int(k[0]) - 3], parts[0] + parts[1]\n",
        {"3xf32", "1xi64"}},
       {"repeated",
        "def main(x: Tensor, k: Tensor):\n"
        "    n = min(int(k[0]) - 1, 2)\n"
        "    return torch.tensor([2, 3] * n + [7]).sum() + x, len('ab' * n)\n",
        {"3xf32", "1xi64"}},
       {"listed_outside",
        "def main(x: Tensor, k: Tensor):\n"
        "    parts = [x, x * 2]\n"
        "    return parts[int(k[0]) - 4]\n",
        {"3xf32", "1xi64"}}},
      12);
}

TEST(DecidedTest, Errors) {
  const Program program(
      compile("def zeros(k: Tensor):\n    return torch.zeros(int(k[0]))\n"
              "def many(x: Tensor):\n    return x[x > 0]\n"
              "def pairs(x: Tensor, y: Tensor):\n    return x[x > 0], y[y > 0]\n"
              "def rounds(x: Tensor):\n"
              "    while bool(x.sum() < 1000):\n        x = x + x[x > 0].sum()\n    return x\n",
              "errors"));
  const auto refused = [&](const char* name, const std::vector<IValue>& arguments) -> std::string {
    try {
      std::vector<aot::Entry> entries(1);
      entries[0].program = aot::record(program.function(name), arguments);
      aot::build(std::move(entries), {.name = "refused"}, [](std::string_view) {});
    } catch (const RuntimeError& e) {
      return e.what();
    }
    return "";
  };
  const auto f32 = [](int64_t n) { return IValue(tensorOf(fmt::format("{}xf32", n), 1)); };
  EXPECT_THAT(refused("many", {f32(5000)}),
              testing::HasSubstr("index: elements of a tensor decide a size from 0 to 5000; the "
                                 "program is looked at for each while building"));
  EXPECT_THAT(refused("many", {f32(5000)}), testing::HasSubstr("return x[x > 0]"));
  const std::string pairs = refused("pairs", {f32(200), f32(200)});
  EXPECT_THAT(pairs, testing::HasSubstr("a size from 0 to 200, behind 1 other"));
  EXPECT_THAT(pairs, testing::HasSubstr("y[y > 0]"));
  EXPECT_THAT(refused("rounds", {f32(4)}),
              testing::HasSubstr("decide a size, in a loop that stays one"));

  Workshop workshop("decided_errors");
  workshop.add("zeros", program.function("zeros"), {IValue(tensorOf("1xi64", 1))});
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "zeros");
  auto& [model, state] = running;
  const wick_aot_slot& slot = model.about()->signatures[0].outputs[0];
  EXPECT_EQ(slot.sizes[0], 64);
  EXPECT_EQ(slot.decided, 1u);
  std::vector<Tensor> found;
  for (const int64_t n : {0, 1, 64}) {
    EXPECT_EQ(callAny(model, state, {Tensor::scalar<int64_t>(n).reshape(DimVector{1})}, found), "");
    EXPECT_EQ(found[0].numel(), n);
  }
  for (const int64_t n : {-1, 65}) {
    EXPECT_EQ(callAny(model, state, {Tensor::scalar<int64_t>(n).reshape(DimVector{1})}, found),
              fmt::format("zeros: zeros: expected a size from 0 to 64, got {}", n));
  }
}

TEST(DecidedTest, RepeatsAndCounts) {
  compareAll("decided_repeats",
             {{"rows",
               "def main(x: Tensor, n: Tensor):\n"
               "    return x.repeat_interleave(n, 0) * 2, torch.repeat_interleave(n)\n",
               {"4x3xf32", "4xi64"}},
              {"told",
               "def main(x: Tensor, n: Tensor):\n"
               "    return x.repeat_interleave(n, 0, output_size=6)\n",
               {"3x2xf32", "3xi64"}},
              {"bins",
               "def main(x: Tensor, w: Tensor):\n"
               "    return torch.bincount(x, w, minlength=3) * 2\n",
               {"7xi64", "7xf32"}},
              {"classes",
               "def main(x: Tensor):\n"
               "    return torch.nn.functional.one_hot(x) + 1\n",
               {"2x3xi64"}}});
}

TEST(DecidedTest, DistinctValuesAndBoxes) {
  compareAll(
      "decided_distinct",
      {{"unique",
        "def main(x: Tensor, y: Tensor):\n"
        "    v, i, c = torch.unique(x, return_inverse=True, return_counts=True)\n"
        "    return v, i, c, torch.unique(y > 0)\n",
        {"2x4xi64", "3xf32"}},
       {"neighbours",
        "def main(x: Tensor):\n"
        "    v, i, c = torch.unique_consecutive(x, return_inverse=True, return_counts=True)\n"
        "    return v * 2, i, c\n",
        {"9xi64"}},
       {"unsorted",
        "def main(x: Tensor):\n"
        "    v, i, c = torch.unique(x * 7 - 9, sorted=False, return_inverse=True, "
        "return_counts=True)\n"
        "    return v, i, c\n",
        {"30xi32"}},
       {"unsorted_floats",
        "def main(x: Tensor):\n"
        "    return torch.unique(torch.floor(x), sorted=False)\n",
        {"15xf32"}},
       {"rows",
        "def main(x: Tensor):\n"
        "    v, i, c = torch.unique(x // 2, dim=0, return_inverse=True, return_counts=True)\n"
        "    return v, i, c\n",
        {"6x2xi64"}},
       {"columns",
        "def main(x: Tensor):\n"
        "    v, i, c = torch.unique_consecutive(x // 2, True, True, 1)\n"
        "    return v, i, c\n",
        {"2x7xi64"}},
       {"boxes",
        "def main(b: Tensor, s: Tensor):\n"
        "    b = torch.cat([b[:, :2], b[:, :2] + b[:, 2:].abs() * 2], 1)\n"
        "    k = s > -1\n    b = b[k]\n    s = s[k]\n"
        "    keep = torch.ops.torchvision.nms(b, s, 0.1)[:5]\n"
        "    return b[keep], s[keep]\n",
        {"8x4xf32", "8xf32"}}});
}

}  // namespace
}  // namespace wick::decided_test
