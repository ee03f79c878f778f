// Loops that are loops of compiled models, and numbers that these compute, against the engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error_types.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::loops_test {
namespace {

using namespace testing_aot;
using testing::HasSubstr;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"counted", {"5xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    y = x
    total = 0
    for i in range(int(k[0]) * 7):
        y = y * 0.75 + i
        total += i * int(k[1])
    return y, total
)"},
      {"of_complex_numbers", {"70xc64", "2xi64"}, R"(
def main(z: Tensor, k: Tensor):
    small = z[:2]
    for i in range(int(k[0]) + 2):
        z = z * (0.5 + 1j) + i
        if i > int(k[1]):
            small = small.conj() * 2
        else:
            small = small + z[3]
    return z, small
)"},
      {"ranges", {"5xf32", "3xi64"}, R"(
def main(x: Tensor, k: Tensor):
    seen = 0
    for i in range(int(k[0]), 9, int(k[1]) + 1):
        x = x + i
        seen = seen * 10 + i
    for i in range(5, int(k[2]), -1):
        x = x * 0.5 - i
        seen = seen * 7 + i
    return x, seen
)"},
      {"conditional", {"5xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    total = 0
    n = int(k[1]) + 6
    while n > 0:
        if n % 2 == 0:
            x = x - n
            total += n // 2
        elif n == 5:
            x = torch.tanh(x)
        else:
            x = x * 0.5
            total += int(2 ** n)
        n -= 1
        if bool(x.sum() < -30):
            break
    return x, total, n
)"},
      {"continued", {"6xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    total = 0.0
    for i in range(int(k[0]) * 4 + 2):
        if i % 3 == int(k[1]):
            continue
        if float(x.amax()) > 40.0:
            total += 0.5
            continue
        x = x * 1.5
        total += float(x[i % 6])
    return x, total
)"},
      {"returned", {"6xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    for i in range(int(k[0]) + 3):
        x = x * 2
        if bool(x.amax() > 6):
            return x + i
    return x
)"},
      {"nested", {"6xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    count = 0
    for i in range(int(k[0]) + 1):
        y = x * 0
        for j in range(i + int(k[1])):
            y = y + x * j
            count += 1
            if count % 4 == 0:
                y = y - 1
        x = x * 0.5 + y
    return x, count
)"},
      {"exchanged", {"100xf32", "100xf32", "1xi64"}, R"(
def main(a: Tensor, b: Tensor, k: Tensor):
    c = a - b
    for i in range(int(k[0]) * 3):
        a, b, c = b, c, a
        if i == 4:
            c = c + a
        b, c = c * 0.5, b
    return a, b, c
)"},
      {"tuples", {"6xf32", "6xf32", "2xi64"}, R"(
def cell(x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
    h, c = state
    return torch.tanh(h + x), c * 0.5 + h
def main(x: Tensor, y: Tensor, k: Tensor):
    state = (x, y)
    all = (state, 0, x * 2)
    for i in range(int(k[0]) * 3):
        state = cell(y, state)
        if i % 2 == 0:
            all = (state, all[1] + i, all[0][1] - 1)
        elif bool(state[0].sum() > 100):
            break
    return state, all
)"},
      {"lists_replaced", {"6xf32", "6xf32", "2xi64"}, R"(
def main(x: Tensor, y: Tensor, k: Tensor):
    hs = [x, y, x + y]
    old = [y, x, y]
    for i in range(int(k[0]) * 2 + 1):
        hs, old = [torch.sin(hs[1] + i), hs[2] * 0.5, hs[0] - old[0]], hs
    return hs, old, x
)"},
      {"lists_set", {"6x8xf32", "8x8xf32", "2xi64"}, R"(
def main(x: Tensor, w: Tensor, k: Tensor):
    hs = [torch.zeros(8) for i in range(3)]
    first = hs[0]
    total = 0.0
    for t in range(int(k[0]) + 3):
        y = x[t % 6]
        for l in range(3):
            hs[l] = torch.tanh(w @ hs[l] + y)
            y = hs[l]
        total += float(y[0])
    return hs, first, total, torch.stack(hs).sum(0)
)"},
      {"lists_replaced_by_loops", {"4x8xf32", "8x8xf32", "2xi64"}, R"(
def main(x: Tensor, w: Tensor, k: Tensor):
    hs = [torch.zeros(100), torch.ones(100)]
    for t in range(int(k[0]) + 3):
        new: List[Tensor] = []
        for h in hs:
            new.append(torch.cos(h * (t + 1)))
        hs = new
        hs = [hs[1], hs[0]]
    return hs
)"},
      {"lists_in_conditions", {"6xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    hs = [x, x * 2, x + 1]
    n = 0
    while n < int(k[0]) * 4:
        n += 1
        if n % 3 == 0:
            hs[0] = hs[1] - n
            hs[1] = hs[0] * 0.5
        elif bool(hs[0].sum() > 3):
            hs[2] = hs[2] + hs[0]
            if n % 2 == 0:
                hs[1] = hs[2].clone()
        else:
            hs[0], hs[2] = hs[2], hs[0]
            continue
        hs[1] = hs[1] + 0.25
    return hs, n
)"},
      {"lists_in_loops", {"6xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    hs = [x, x * 2]
    for i in range(int(k[0])):
        for j in range(i + int(k[1])):
            hs[0] = hs[0] * 0.5 + hs[1]
            hs[1] = hs[1] - j
        hs[1] = hs[0].relu()
    return hs
)"},
      {"doubled", {"200xf32", "1xi64"}, R"(
def main(x: Tensor, k: Tensor):
    y = x.sin()
    for i in range(int(k[0])):
        y = (y * 1.25).relu() - x
        z = y.cumsum(0) if False else y * 2
        y = z - y.amax()
    return y, x + y
)"},
      {"parts_read", {"6x8xf32", "8x8xf32", "1xi64"}, R"(
def main(x: Tensor, w: Tensor, k: Tensor):
    h = torch.zeros(8)
    for i in range(int(k[0]) + 2):
        h = torch.tanh(w @ h + x[i])
        h = h + x[-1 - i, i] + x[:, i].sum()
    return h
)"},
      {"parts_written", {"6x8xf32", "1xi64"}, R"(
def main(x: Tensor, k: Tensor):
    out = torch.zeros(6, 8)
    table = torch.ones(8)
    for i in range(int(k[0]) + 2):
        out[i] = x[i] * 2 + table
        out[i, i] += 100.0
        table[i + 1] = out[i, 0]
    return out, table
)"},
      {"made_in_rounds", {"6xf32", "1xi64"}, R"(
def main(x: Tensor, k: Tensor):
    total = torch.zeros(6)
    for i in range(int(k[0]) + 2):
        y = torch.zeros(6)
        y[2] = 5.0
        y += x * i
        z = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        z.add_(y)
        total = total + z
    return total
)"},
      {"in_place", {"6xf32", "1xi64"}, R"(
def main(x: Tensor, k: Tensor):
    y = torch.ones(6)
    for i in range(int(k[0]) + 2):
        y += x
        y.mul_(1.5)
    return y
)"},
      {"long", {"50x8xf32", "8x8xf32"}, R"(
def main(x: Tensor, w: Tensor):
    h = torch.zeros(8)
    outs: List[Tensor] = []
    alone: List[Tensor] = []
    for i in range(x.size(0)):
        for j in range(2):
            h = torch.tanh(w @ h + x[i]) * 0.5
        h = h + i
        g = h.view(2, 4).t()
        outs.append(h)
        alone.append(g)
    return torch.stack(outs), torch.cat(outs, dim=-1), torch.stack(alone, 1), torch.cat(alone, 1), h, outs[7]
)"},
      {"long_literal", {"6xf32"}, R"(
def main(x: Tensor):
    for i in range(100):
        x = x * 0.99 + i
    return x
)"},
      {"weights", {"8xf32", "1xi64"}, R"(
def main(x: Tensor, k: Tensor):
    w = torch.tensor([1.0, 0.5, 0.25, 2.0, 1.0, 0.0, 1.0, 3.0])
    for i in range(int(k[0])):
        x = x * w + w.sum()
    return x
)"},
      {"raises_never", {"8xf32", "1xi64"}, R"(
def main(x: Tensor, k: Tensor):
    for i in range(int(k[0]) + 1):
        if i > 10:
            raise ValueError("too far")
        assert x.size(0) == 8
        x = x + i
    return x
)"},
      {"short",
       {"8xf32"},
       R"(
def main(x: Tensor):
    for i in range(3):
        x = x * i + x.size(0)
    return x
)",
       false},
      {"arithmetic",
       {"3xf64", "4xi64"},
       R"(
def main(x: Tensor, k: Tensor):
    a = int(k[0]) - 2
    b = int(k[1]) * 2 - 3
    f = float(x[0])
    g = float(x[1]) + 4.0
    s = [a // b, a % b, -7 // b, 7 % b, a << 3, (a * 1000) >> (int(k[2])), ~a, a & 6, (a | 1) ^ b]
    t = [f // g, f % g, a // g, f % b, a ** 2, 2 ** a, g ** f, g ** a, 2.5 ** b, a / b]
    u = [math.sqrt(g), math.exp(f), math.log(g), math.sin(f), math.atan2(f, g), math.fmod(f, g), math.log1p(g), math.hypot(a, g), math.pow(g, 2), math.copysign(g, f), math.erf(f), math.tanh(f)]
    v = [math.floor(f), math.ceil(f), math.gcd(a * 4, b * 6), round(f) // 1]
    y = x % g + x * (a % 3)
    return s, t, u, v, y, abs(a) % 3 == 1, f // 1 > -1 and a % 2 == 0
)",
       false},
      {"asks_for_leaves",
       {"8xf32"},
       R"(
def main(x: Tensor):
    return x * 2 if x.is_leaf else x
)",
       false},
  };
  return all;
}

class LoopsTest : public testing::TestWithParam<Case> {};

TEST_P(LoopsTest, GivesTheBitsOfTheEngine) {
  static auto& library = *new CaseLibrary("loops", cases());
  EXPECT_EQ(library.hasLoop(GetParam()), GetParam().loops);
  library.compare(GetParam(), 13, "");
}
INSTANTIATE_TEST_SUITE_P(Aot, LoopsTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// The same text under the other compiler.
TEST(AotLoopsTest, CompilesUnderClang) {
  expectCompilesUnderClang("loops_clang", cases());
}

// Statements lie as deep as the loops and conditions around them.
TEST(AotLoopsTest, TextIsIndented) {
  const Program program = compile(R"(
def main(x: Tensor):
    for i in range(int(x[0])):
        if bool(x.sum() > 3):
            x = x - 1
    return x
)");
  aot::BuildOptions options;
  options.name = "deep";
  const aot::BuildResult built =
      aot::build(aot::record(program.function("main"), {IValue(tensorOf("3xf32", 1))}), options,
                 [](std::string_view) {});
  const std::string& text = built.files[1].text;
  EXPECT_THAT(text, HasSubstr("\n  for (int64_t round_1 = 0"));
  EXPECT_THAT(text, HasSubstr("\n    // if\n    const uint8_t holds_2 = *at<uint8_t>("));
  EXPECT_THAT(text, HasSubstr("\n    if (holds_2 != 0) {\n"));
  EXPECT_THAT(text, HasSubstr("\n      // fused_sub"));
  EXPECT_THAT(text, HasSubstr("\n    } else {\n"));
  EXPECT_THAT(text, HasSubstr("\n    }\n"));
}

// What a round raises ends the call.
TEST(AotLoopsTest, RoundsRaise) {
  Workshop workshop("loops_raise");
  const Program raises = compile(R"(
def main(x: Tensor, k: Tensor):
    for i in range(int(k[0])):
        if i == 3:
            raise ValueError("the third \"round\"")
        x = x + 10 // (2 - i)
    return x
)");
  const Program outside = compile(R"(
def main(x: Tensor, k: Tensor):
    y = x * 0
    for i in range(int(k[0])):
        y = y + x[i]
    return y
)");
  const auto with = [](int64_t k) {
    return std::vector<Tensor>{Tensor::from({1.0f, 2.0f}), Tensor::from(std::vector<int64_t>{k})};
  };
  workshop.add("raises", raises.function("main"), valuesOf(with(1)));
  workshop.add("outside", outside.function("main"), valuesOf(with(1)));
  ASSERT_EQ(workshop.compile(), "");
  for (const auto& [name, program] : {std::pair("raises", &raises), {"outside", &outside}}) {
    Running running(workshop, name);
    auto& [model, state] = running;
    for (int64_t k = -1; k < 5; ++k) {
      const std::vector<Tensor> outputs = outputsOf(*model.about());
      const std::string said = call(model, state, with(k), outputs);
      if (k <= 2) {
        EXPECT_EQ(said, "");
        expectSame(program->call("main", valuesOf(with(k))).toTensor(), outputs[0]);
        continue;
      }
      EXPECT_THROW(program->call("main", valuesOf(with(k))), RuntimeError);
      EXPECT_THAT(said, HasSubstr(name == std::string("outside") ? "index out of range"
                                                                 : "division or modulo by zero"));
    }
  }
}

// Over a size: one loop for all sizes.
TEST(AotLoopsTest, SizesCountRounds) {
  const Program program = compile(R"(
def main(x: Tensor, w: Tensor):
    h = torch.zeros(8)
    outs: List[Tensor] = []
    for i in range(x.size(0)):
        h = torch.tanh(w @ h + x[i])
        outs.append(h * i)
    return torch.stack(outs), h
)");
  Workshop workshop("loops_sizes");
  const auto with = [](int64_t n) {
    return std::vector<Tensor>{tensorOf(fmt::format("{}x8xf32", n), 3), tensorOf("8x8xf32", 4)};
  };
  std::vector<aot::Entry> entries(1);
  entries[0].family =
      aot::familyOf(program.function("main"), {{"N", 1, 60, 1}},
                    [&](const std::vector<int64_t>& s) { return valuesOf(with(s[0])); });
  const aot::BuildResult built = workshop.add("sized", std::move(entries));
  EXPECT_TRUE(hasLoop(built));
  EXPECT_LT(built.steps, 60u);
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "sized");
  auto& [model, state] = running;
  for (const int64_t n : {1, 2, 3, 17, 59, 60}) {
    SCOPED_TRACE(n);
    const std::vector<Tensor> inputs = with(n);
    const std::vector<Tensor> outputs = outputsFor(model, state, inputs);
    ASSERT_EQ(call(model, state, inputs, outputs), "");
    IValue expected;
    for (int run = 0; run < 4; ++run) expected = program.call("main", valuesOf(inputs));
    expectResults(expected, outputs);
  }
}

// A loop that cannot stay one is told with the reason, where it has no bound.
TEST(AotLoopsTest, RefusesWhatItCannotCompile) {
  const auto refusal = [](const std::string& body, const char* input = "3xf32") {
    const Program program = compile("def main(x: Tensor):\n" + body);
    try {
      aot::BuildOptions options;
      options.name = "refused";
      aot::build(aot::record(program.function("main"), {IValue(tensorOf(input, 1))}), options,
                 [](std::string_view) {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was compiled");
  };
  EXPECT_THAT(
      refusal("    for i in range(int(x[0])):\n        x = torch.cat([x, x])\n    return x\n"),
      HasSubstr("a value that a loop carries changes from"));
  EXPECT_THAT(refusal("    l: List[int] = []\n    for i in range(int(x[0])):\n        "
                      "l.append(i)\n    return len(l)\n"),
              HasSubstr("a List[int] is changed in a loop that stays one"));
  EXPECT_THAT(refusal("    l: List[Tensor] = []\n    for i in range(int(x[0])):\n        "
                      "l.append(x * i)\n    return torch.stack(l)\n"),
              HasSubstr("a list grows in a loop; how often must be known"));
  const std::string begin =
      "    l = [x, x]\n    m = [x, x]\n    for i in range(int(x[0])):\n        ";
  EXPECT_THAT(refusal(begin + "l[0] = x * i\n        l.append(x)\n    return l[0]\n"),
              HasSubstr("a list changes from 2 elements to 3 in a loop that stays one"));
  EXPECT_THAT(refusal(begin + "l = [x] * i\n    return l[0]\n"),
              HasSubstr("decide a size, in a loop that stays one"));
  EXPECT_THAT(
      refusal(begin + "l = [l[0], x, x]\n    return l[0]\n"),
      HasSubstr("a list that a loop carries has 2 elements in one round and 3 in the next"));
  EXPECT_THAT(refusal(begin + "l = m\n        m = [l[1], x]\n        l[0] = x * 2\n    return l\n"),
              HasSubstr("carries a list that has another name too"));
  EXPECT_THAT(refusal(begin + "l[0] = x * i\n        [l, m][i % 2][0] = x\n    return l\n"),
              HasSubstr("A loop cannot stay one"));
  EXPECT_THAT(refusal("    y = x.clone()\n    z = y\n    for i in range(int(x[0])):\n        z += "
                      "x\n    return y, z\n"),
              HasSubstr("is written to in place, and used under another name"));
  EXPECT_EQ(refusal("    while bool(x.sum() > 0):\n        x = x - 1\n    return x\n"),
            "it was compiled");
}

}  // namespace
}  // namespace wick::loops_test
