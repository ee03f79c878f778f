// Hooks, functions with derivatives of their own, checkpoints, and finding NaNs.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "autograd/anomaly.h"
#include "autograd/checkpoint.h"
#include "autograd/custom_function.h"
#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "autograd/tape.h"
#include "core/generator_state.h"
#include "runtime/ops/call.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::autograd::functions_test {
namespace {

using Numbers = std::vector<double>;
using testing_errors::errorOf;

const OperatorHandle kMul("aten::mul", "Tensor");
const OperatorHandle kAdd("aten::add", "Tensor");
const OperatorHandle kExp("aten::exp", "");
const OperatorHandle kSum("aten::sum", "");
const OperatorHandle kDropout("aten::dropout", "");

Tensor times(const Tensor& a, double b) {
  return kMul(a, Tensor::scalar(b));
}
Numbers numbers(const Tensor& value) {
  const Tensor t = value.detach().to(DType::Double).contiguous();
  return {t.data<double>(), t.data<double>() + t.numel()};
}
Tensor leaf(std::initializer_list<double> values) {
  Tensor t = Tensor::from(values);
  t.setRequiresGrad(true);
  return t;
}
void expectContains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// ---- hooks ----

// The numbers are PyTorch 1.13's.
TEST(Hooks, ReplaceGradientsInTheirOrder) {
  const Tensor x = leaf({1, 1});
  std::vector<std::pair<char, double>> seen;
  const auto hook = [&](char name, double factor) {
    return [&seen, name, factor](const Tensor& g) {
      seen.emplace_back(name, numbers(g)[0]);
      return times(g, factor);
    };
  };
  registerHook(x, hook('x', 2));
  const Tensor y = times(x, 3);
  registerHook(y, hook('a', 5));
  retainGradient(y);
  registerHook(y, hook('b', 7));
  backward({kSum(y, IValue())}, {}, {});
  EXPECT_EQ(seen, (std::vector<std::pair<char, double>>{{'a', 1}, {'b', 5}, {'x', 105}}));
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{210, 210}));
  EXPECT_EQ(numbers(autograd::gradientOf(y)), (Numbers{35, 35}));
}

TEST(Hooks, StayWithTheValueThatATensorHad) {
  const Tensor x = leaf({1, 1});
  static const OperatorHandle kMulInPlace("aten::mul_", "Tensor");
  const Tensor y = times(x, 3);
  double before = 0, after = 0;
  registerHook(y, [&](const Tensor& g) {
    before = numbers(g)[0];
    return times(g, 5);
  });
  kMulInPlace(y, Tensor::scalar(4.0));
  registerHook(y, [&](const Tensor& g) {
    after = numbers(g)[0];
    return Tensor();
  });
  backward({kSum(y, IValue())}, {}, {});
  EXPECT_EQ(before, 4);
  EXPECT_EQ(after, 1);
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{60, 60}));
}

TEST(Hooks, AreNotCalledForWhatIsAskedFor) {
  const Tensor x = leaf({1, 1});
  registerHook(x, [](const Tensor& g) { return times(g, 2); });
  const Tensor y = times(x, 3);
  int calls = 0;
  registerHook(y, [&](const Tensor& g) {
    ++calls;
    return times(g, 5);
  });
  const Tensor z = kSum(kMul(y, y), IValue());
  EXPECT_EQ(numbers(gradientsOf({z}, {y}, {}, {true, false}, false)[0]), (Numbers{6, 6}));
  EXPECT_EQ(calls, 0);
  const auto both = gradientsOf({z}, {x, y}, {}, {true, false}, false);
  EXPECT_EQ(numbers(both[0]), (Numbers{90, 90}));
  EXPECT_EQ(numbers(both[1]), (Numbers{6, 6}));
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, CanBeRemoved) {
  const Tensor x = leaf({1});
  HookHandle handle = registerHook(x, [](const Tensor& g) { return times(g, 2); });
  registerHook(x, [](const Tensor& g) { return times(g, 3); });
  handle.remove();
  handle.remove();
  backward({kSum(times(x, 1), IValue())}, {}, {});
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{3}));
}

TEST(Hooks, AfterAccumulationSeeTheWholeGradient) {
  const Tensor x = leaf({1});
  Numbers seen;
  HookHandle handle = registerPostAccumulateHook(x, [&](Tensor& g) {
    seen.push_back(numbers(g)[0]);
    if (seen.size() == 2) g = Tensor();
  });
  for (int i = 0; i < 3; ++i) backward({kSum(times(x, 2), IValue())}, {}, {});
  handle.remove();
  backward({kSum(times(x, 2), IValue())}, {}, {});
  EXPECT_EQ(seen, (Numbers{2, 4, 2}));
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{4}));
}

TEST(Hooks, RefuseWhatDoesNotFit) {
  const auto none = [](const Tensor&) { return Tensor(); };
  expectContains(errorOf([&] { registerHook(Tensor::from({1.0}), none); }),
                 "cannot register a hook on a tensor that doesn't require gradient");
  const Tensor x = leaf({1, 1});
  const Tensor y = times(x, 3);
  expectContains(errorOf([&] { registerPostAccumulateHook(y, [](Tensor&) {}); }),
                 "cannot be registered on non-leaf");
  registerHook(y, [](const Tensor&) { return Tensor::from({1.0, 2.0, 3.0}); });
  expectContains(errorOf([&] { backward({kSum(y, IValue())}, {}, {}); }),
                 "changed the size of the gradient");
  const Tensor z = times(x, 3);
  registerHook(z, [](const Tensor& g) { return g.to(DType::Float); });
  expectContains(errorOf([&] { backward({kSum(z, IValue())}, {}, {}); }),
                 "changed the type of the gradient");
}

TEST(Hooks, OfModulesSeeBothSides) {
  ModuleBuilder builder("Twice");
  builder.define("def forward(self, x: Tensor, y: Tensor) -> Tensor:\n    return x * 2 + y\n");
  const Module module = builder.build();
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  Numbers in, out;
  const IValue result = callWithBackwardHook(
      module, {x, y},
      [&](const std::vector<Tensor>& grad_inputs, const std::vector<Tensor>& grad_outputs) {
        in = numbers(grad_inputs.at(0));
        out = numbers(grad_outputs.at(0));
        return std::vector<Tensor>{times(grad_inputs[0], 10), grad_inputs[1]};
      });
  EXPECT_EQ(numbers(result.toTensor()), (Numbers{5, 8}));
  backward({kSum(times(result.toTensor(), 3), IValue())}, {}, {});
  EXPECT_EQ(in, (Numbers{6, 6}));
  EXPECT_EQ(out, (Numbers{3, 3}));
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{60, 60}));
  EXPECT_EQ(numbers(autograd::gradientOf(y)), (Numbers{3, 3}));
}

// ---- functions with derivatives of their own ----

struct Cube : Function<Cube> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs) {
    const Tensor x = inputs[0].toTensor();
    ctx.saveForBackward({x});
    return {kMul(kMul(x, x), x)};
  }
  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
    const Tensor x = ctx.savedTensors()[0];
    return {kMul(grads[0], times(kMul(x, x), 3))};
  }
};

TEST(CustomFunctions, HaveFirstAndSecondDerivatives) {
  const Tensor x = leaf({2});
  const Tensor y = Cube::apply({x})[0];
  EXPECT_EQ(numbers(y), (Numbers{8}));
  const Tensor g = gradientsOf({y}, {x}, {}, {true, true}, false)[0];
  EXPECT_EQ(numbers(g), (Numbers{12}));
  EXPECT_EQ(numbers(gradientsOf({g}, {x}, {}, {}, false)[0]), (Numbers{12}));
}

TEST(CustomFunctions, FreeWhatTheySaved) {
  const Tensor x = leaf({2});
  const Tensor y = Cube::apply({x})[0];
  backward({y}, {}, {});
  expectContains(errorOf([&] { backward({y}, {}, {}); }), "a second time");
  const Tensor z = times(x, 1);
  const Tensor w = Cube::apply({z})[0];
  static const OperatorHandle kAddInPlace("aten::add_", "Tensor");
  kAddInPlace(z, Tensor::scalar(1.0), Scalar(int64_t{1}));
  expectContains(errorOf([&] { backward({w}, {}, {}); }), "modified by an inplace operation");
}

// Three results, the second without a gradient, from a tensor, a number and a tensor.
struct Several : Function<Several> {
  static inline std::vector<bool> needs;
  static inline std::vector<bool> given;
  static inline bool materialize = true;
  static std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs) {
    const Tensor x = inputs[0].toTensor(), y = inputs[2].toTensor();
    ctx.setMaterializeGrads(materialize);
    ctx.values["factor"] = inputs[1];
    const Tensor off = times(x, 100);
    ctx.markNonDifferentiable({off});
    return {times(x, inputs[1].toDouble()), off, kMul(x, y)};
  }
  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
    needs = {ctx.needsInputGrad(0), ctx.needsInputGrad(1), ctx.needsInputGrad(2)};
    given = {grads[0].defined(), grads[1].defined(), grads[2].defined()};
    return {grads[0].defined() ? times(grads[0], ctx.values["factor"].toDouble()) : Tensor(),
            Tensor(), Tensor()};
  }
};

TEST(CustomFunctions, OfManyInputsAndResults) {
  const Tensor x = leaf({2}), y = Tensor::from({5.0});
  Several::materialize = true;
  const auto out = Several::apply({x, 3.0, y});
  EXPECT_FALSE(requiresGradient(out[1]));
  EXPECT_TRUE(requiresGradient(out[2]));
  backward({out[0]}, {}, {});
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{3}));
  EXPECT_EQ(Several::needs, (std::vector<bool>{true, false, false}));
  EXPECT_EQ(Several::given, (std::vector<bool>{true, true, true}));
  Several::materialize = false;
  backward({Several::apply({x, 3.0, y})[2]}, {}, {});
  EXPECT_EQ(Several::given, (std::vector<bool>{false, false, true}));
}

struct InPlace : Function<InPlace> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs) {
    static const OperatorHandle kMulInPlace("aten::mul_", "Tensor");
    const Tensor x = inputs[0].toTensor();
    kMulInPlace(x, Tensor::scalar(2.0));
    ctx.markDirty({x});
    return {x};
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {times(grads[0], 7)};
  }
};

struct Identity : Function<Identity> {
  static std::vector<Tensor> forward(FunctionContext&, const std::vector<IValue>& inputs) {
    return {inputs[0].toTensor()};
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {times(grads[0], -1), Tensor(), Tensor()};
  }
};

TEST(CustomFunctions, MayWriteToTheirInputs) {
  const Tensor x = leaf({1});
  const Tensor y = times(x, 3);
  const Tensor z = InPlace::apply({y})[0];
  EXPECT_TRUE(z.isSame(y));
  backward({y}, {}, {});
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{21}));
  expectContains(errorOf([&] { InPlace::apply({x}); }), "a leaf Variable that requires grad");
}

TEST(CustomFunctions, MayReturnTheirInputs) {
  const Tensor x = leaf({4});
  const Tensor y = Identity::apply({x})[0];
  EXPECT_FALSE(y.isSame(x));
  backward({y}, {}, {});
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{-1}));
  static const OperatorHandle kMulInPlace("aten::mul_", "Tensor");
  const Tensor z = Identity::apply({times(x, 1)})[0];
  expectContains(errorOf([&] { kMulInPlace(z, Tensor::scalar(2.0)); }),
                 "created inside a custom Function");
}

struct WrongCount : Function<WrongCount> {
  static std::vector<Tensor> forward(FunctionContext&, const std::vector<IValue>& inputs) {
    return {times(inputs[0].toTensor(), 1)};
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0], grads[0]};
  }
};

TEST(CustomFunctions, RefuseWhatDoesNotFit) {
  const Tensor x = leaf({1});
  expectContains(errorOf([&] { backward({WrongCount::apply({x})[0]}, {}, {}); }),
                 "function WrongCountBackward returned an incorrect number of gradients (expected "
                 "1, got 2)");
  expectContains(errorOf([&] {
                   backward({WrongCount::apply({x, 2.0})[0]}, {}, {});
                 }),
                 "different from None at position 2");
  expectContains(errorOf([&] {
                   WrongCount::apply({x, std::vector<Tensor>{x}});
                 }),
                 "pass them by themselves");
}

IValue run(const std::string& source, std::vector<IValue> arguments = {}) {
  return compile(source).call("main", std::move(arguments));
}

TEST(CustomFunctions, InPrograms) {
  const Tensor out = run(R"(
def forward(x: Tensor, w: Tensor, scale: float) -> Tuple[Tensor, Tuple[Tensor, Tensor, float]]:
    return x * w * scale, (x, w, scale)

def backward(saved: Tuple[Tensor, Tensor, float], grad: Tensor) -> Tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
    x, w, scale = saved
    # Not the derivative, to be told from it.
    return grad * w * scale * x, grad * 100, None

def main() -> Tensor:
    x = torch.tensor([3.]).requires_grad_()
    w = torch.tensor([5.]).requires_grad_()
    y = torch.ops.wick.custom_function(forward, backward, x, w, 2.)
    gx, gw = torch.autograd.grad([y.sum()], [x, w], create_graph=True)
    assert gx is not None and gw is not None
    g2 = torch.autograd.grad([gx.sum()], [x])[0]
    assert g2 is not None
    return torch.cat([y, gx, gw, g2])
)")
                         .toTensor();
  EXPECT_EQ(numbers(out), (Numbers{30, 30, 100, 10}));
}

TEST(CustomFunctions, InProgramsWithSeveralResults) {
  const Tensor out = run(R"(
def forward(x: Tensor) -> Tuple[Tuple[Tensor, Tensor, Tensor], List[Tensor]]:
    top = x.argmax()
    return (x * 2, top, x + 1), [x]

def backward(saved: List[Tensor], g0: Tensor, g1: Tensor, g2: Tensor) -> Tensor:
    return g0 * 2 + g2 * 10

def main() -> Tensor:
    x = torch.tensor([3., 4.]).requires_grad_()
    a, top, b = torch.ops.wick.custom_function(forward, backward, x)
    assert not top.requires_grad
    with torch.no_grad():
        c, _, d = torch.ops.wick.custom_function(forward, backward, x)
        assert not c.requires_grad
    (a.sum() * 3).backward()
    g = x.grad
    assert g is not None
    return g
)")
                         .toTensor();
  EXPECT_EQ(numbers(out), (Numbers{6, 6}));
}

TEST(CustomFunctions, InProgramsThatAreGone) {
  Tensor y;
  const Tensor x = leaf({2});
  {
    const Program program = compile(R"(
def helper(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x * 2
    return x
def forward(x: Tensor) -> Tuple[Tensor, Tensor]:
    return helper(x, 2), x
def backward(saved: Tensor, grad: Tensor) -> Tensor:
    return helper(grad, 2)
def main(x: Tensor) -> Tensor:
    return torch.ops.wick.custom_function(forward, backward, x)
)");
    y = program.call("main", {x}).toTensor();
  }
  backward({y}, {}, {});
  EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{4}));
}

TEST(CustomFunctions, InProgramsAreLookedAtWhenCompiled) {
  const auto errorOfText = [](const std::string& call, const std::string& backward) {
    try {
      compile(
          "def forward(x: Tensor) -> Tuple[Tensor, Tensor]:\n    return x, x\n"
          "def plain(x: Tensor) -> Tensor:\n    return x\n" +
          backward + "\ndef main(x: Tensor):\n    return " + call + "\n");
    } catch (const CompileError& e) {
      return e.brief();
    }
    return std::string("no error");
  };
  const std::string good = "def back(s: Tensor, g: Tensor) -> Tensor:\n    return g";
  const std::string call = "torch.ops.wick.custom_function(forward, back, x)";
  EXPECT_EQ(errorOfText(call, good), "no error");
  expectContains(errorOfText("torch.ops.wick.custom_function(plain, back, x)", good),
                 "forward must return (result, saved)");
  expectContains(errorOfText(call, "def back(s: Tensor, g: Tensor) -> int:\n    return 1"),
                 "backward must return a gradient");
  expectContains(errorOfText("torch.ops.wick.custom_function(forward)", good), "two functions");
  expectContains(errorOfText("torch.ops.wick.custom_function(x, back, x)", good),
                 "forward must be a function of the file");
}

// ---- checkpoints ----

TEST(Checkpoints, GiveTheSameGradients) {
  const Tensor x = leaf({0.5, 1}), w = leaf({2, 3});
  const auto part = [&](const std::vector<Tensor>& in) {
    // w is read without being an input.
    return std::vector<Tensor>{kExp(kMul(in[0], w)), kMul(in[0], in[0])};
  };
  const auto gradients = [&](bool again) {
    const Tensor h = kMul(x, x);
    const auto y = again ? checkpoint(part, {h}) : part({h});
    const Tensor loss = kSum(kMul(y[0], y[1]), IValue());
    auto first = gradientsOf({loss}, {x, w}, {}, {true, true}, false);
    const Tensor sum = kSum(kAdd(kMul(first[0], first[0]), first[1], Scalar(int64_t{1})), IValue());
    auto second = gradientsOf({sum}, {x, w}, {}, {}, false);
    first.insert(first.end(), second.begin(), second.end());
    std::vector<Numbers> out;
    for (const Tensor& t : first) out.push_back(numbers(t));
    return out;
  };
  // The sums are taken in another order.
  const auto again = gradients(true), plain = gradients(false);
  for (size_t i = 0; i < plain.size(); ++i) {
    for (size_t k = 0; k < plain[i].size(); ++k) EXPECT_DOUBLE_EQ(again[i][k], plain[i][k]);
  }
}

TEST(Checkpoints, DrawTheSameNumbersAgain) {
  const Tensor x = Tensor::full({1000}, 1, DType::Double);
  x.setRequiresGrad(true);
  defaultGenerator().seed(3);
  const Tensor y = checkpoint(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{kDropout(in[0], 0.5, true)}; },
      {x})[0];
  const double next = defaultGenerator().uniformDouble();
  const GeneratorState state = GeneratorState::of(defaultGenerator());
  backward({kSum(y, IValue())}, {}, {});
  // The gradient of each element is its factor, and what is drawn afterwards is what would have
  // been.
  EXPECT_EQ(numbers(autograd::gradientOf(x)), numbers(y));
  const double after = defaultGenerator().uniformDouble();
  state.restore(defaultGenerator());
  EXPECT_EQ(after, defaultGenerator().uniformDouble());
  EXPECT_NE(after, next);
}

TEST(Checkpoints, SaveMemory) {
  const Tensor x = Tensor::full({1 << 16}, 0.5, DType::Double);
  x.setRequiresGrad(true);
  const auto layers = [](Tensor t) {
    for (int i = 0; i < 16; ++i) t = kMul(t, kExp(times(t, 0.01)));
    return t;
  };
  const auto held = [&](bool again) {
    const size_t before = allocatedBytes();
    Tensor t = x;
    for (int i = 0; i < 4; ++i) {
      t = again ? checkpoint(
                      [&](const std::vector<Tensor>& in) {
                        return std::vector<Tensor>{layers(in[0])};
                      },
                      {t})[0]
                : layers(t);
    }
    const size_t bytes = allocatedBytes() - before;
    autograd::setGradient(x, Tensor());
    backward({kSum(t, IValue())}, {}, {});
    return std::make_pair(bytes, numbers(autograd::gradientOf(x)));
  };
  const auto [plain, gradient] = held(false);
  const auto [saved, same] = held(true);
  EXPECT_EQ(gradient, same);
  // One tensor a part instead of some thirty.
  EXPECT_LT(saved * 16, plain);
}

TEST(Checkpoints, Nest) {
  const Tensor x = leaf({0.25});
  const std::function<Tensor(Tensor, int)> nested = [&](Tensor t, int depth) -> Tensor {
    if (depth == 0) return kMul(kExp(t), x);
    return checkpoint(
        [&nested, depth](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{nested(times(in[0], 2), depth - 1)};
        },
        {t})[0];
  };
  // exp(8 x) x
  backward({nested(x, 3)}, {}, {});
  const double e = std::exp(2.0);
  EXPECT_NEAR(numbers(autograd::gradientOf(x))[0], e * 8 * 0.25 + e, 1e-12);
}

TEST(Checkpoints, NoticeWhatChanged) {
  const Tensor x = leaf({1});
  static const OperatorHandle kAddInPlace("aten::add_", "Tensor");
  const Tensor h = times(x, 2);
  const Tensor y = checkpoint(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{kExp(in[0])}; }, {h})[0];
  kAddInPlace(h, Tensor::scalar(1.0), Scalar(int64_t{1}));
  expectContains(errorOf([&] { backward({y}, {}, {}); }), "modified by an inplace operation");
  const Tensor z = checkpoint(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{kExp(in[0])}; }, {x})[0];
  backward({z}, {}, {});
  expectContains(errorOf([&] { backward({z}, {}, {}); }), "a second time");
  int calls = 0;
  const Tensor odd = checkpoint(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>(static_cast<size_t>(++calls), times(in[0], 1));
      },
      {x})[0];
  expectContains(errorOf([&] { backward({odd}, {}, {}); }), "must do the same");
}

// Values that hold themselves, or 2^n parts, as what a checkpoint is given and gives.
TEST(Checkpoints, ValuesWithoutEnd) {
  for (const std::string make :
       {"l: List[Any] = [x]\n    l.append(l)",
        "l: List[Any] = [x]\n    for i in range(60):\n"
        "        l = [x, l, l]",
        "l: Any = (x, x)\n    for i in range(40):\n        l = (l, l)",
        "l: List[Any] = [x]\n    for i in range(100000):\n        l = [x, l]"}) {
    const std::string source =
        "def same(x: Any) -> Any:\n    return x\n"
        "def main():\n    x = torch.ones([2]).requires_grad_()\n    " +
        make + "\n    torch.utils.checkpoint.checkpoint(same, l)\n";
    EXPECT_NE(errorOf([&] { run(source); }), "") << make;
  }
}

TEST(Checkpoints, InPrograms) {
  const Tensor out = run(R"(
def block(x: Tensor, w: Tensor, n: int) -> Dict[str, Tensor]:
    for i in range(n):
        x = torch.tanh(x * w)
    return {"x": x, "square": x * x}

def main() -> List[Tensor]:
    out: List[Tensor] = []
    for again in [False, True]:
        torch.manual_seed(1)
        x = torch.linspace(0.1, 1, 4, dtype=torch.float64).requires_grad_()
        w = torch.full([4], 1.5, dtype=torch.float64).requires_grad_()
        if again:
            y = torch.utils.checkpoint.checkpoint(block, x * 2, w, 3, use_reentrant=False)
            z = torch.utils.checkpoint.checkpoint(lambda t: torch.dropout(t * w, 0.5, True), y["x"])
        else:
            y = block(x * 2, w, 3)
            z = torch.dropout(y["x"] * w, 0.5, True)
        loss = (y["x"] * 3 + y["square"] + z * torch.rand([4], dtype=torch.float64)).sum()
        gx, gw = torch.autograd.grad([loss], [x, w], create_graph=True)
        assert gx is not None and gw is not None
        (gx * gw).sum().backward()
        h = x.grad
        assert h is not None
        out.append(torch.cat([gx, gw, h]).detach())
    return out
)")
                         .elements()[0]
                         .toTensor();
  const IValue all = run(R"(
class Block(object):
    def __init__(self, w: Tensor):
        self.w = w
    def go(self, x: Tensor) -> Tensor:
        return torch.exp(x * self.w)

def main() -> List[float]:
    w = torch.tensor([0.5]).requires_grad_()
    x = torch.tensor([2.]).requires_grad_()
    b = Block(w)
    torch.utils.checkpoint.checkpoint(b.go, x).sum().backward()
    gx = x.grad
    gw = w.grad
    assert gx is not None and gw is not None
    return [float(gx), float(gw)]
)");
  EXPECT_NEAR(all.elements()[0].toDouble(), std::exp(1.0) / 2, 1e-6);
  EXPECT_NEAR(all.elements()[1].toDouble(), std::exp(1.0) * 2, 1e-5);
  EXPECT_EQ(out.numel(), 12);
}

TEST(Checkpoints, InProgramsAgreeWithPlainOnes) {
  const IValue all = run(R"(
def block(x: Tensor, w: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
    for i in range(n):
        x = torch.tanh(x * w)
    return x, [x * x, torch.dropout(x, 0.5, True)]

def main() -> List[Tensor]:
    out: List[Tensor] = []
    for again in [False, True]:
        torch.manual_seed(1)
        x = torch.linspace(0.1, 1, 4, dtype=torch.float64).requires_grad_()
        w = torch.full([4], 1.5, dtype=torch.float64).requires_grad_()
        if again:
            y, more = torch.utils.checkpoint.checkpoint(block, x * 2, w, 3)
        else:
            y, more = block(x * 2, w, 3)
        loss = (y * 3 + more[0] + more[1] * torch.rand([4], dtype=torch.float64)).sum()
        gx, gw = torch.autograd.grad([loss], [x, w], create_graph=True)
        assert gx is not None and gw is not None
        (gx * gw).sum().backward()
        h = x.grad
        assert h is not None
        out.append(torch.cat([gx, gw, h]).detach())
    return out
)");
  EXPECT_EQ(numbers(all.elements()[0].toTensor()), numbers(all.elements()[1].toTensor()));
}

// Both forms are saved, and mean the same when they are read again.
TEST(Checkpoints, AreSavedWithTheirPrograms) {
  ModuleBuilder builder("Net");
  builder.registerParameter("w", Tensor::from({0.5, 2.0}));
  builder.compile(R"(
def part(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x * w)
def forward(x: Tensor, factor: float) -> Tuple[Tensor, Tuple[Tensor, float]]:
    return x * factor, (x, factor)
def backward(saved: Tuple[Tensor, float], grad: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
    return grad * saved[0] * saved[1], None
)");
  builder.define(R"(
def forward(self, x: Tensor) -> Tensor:
    y = torch.utils.checkpoint.checkpoint(part, x + 1, self.w, preserve_rng_state=False)
    z = torch.utils.checkpoint.checkpoint(lambda t: torch.exp(t * self.w), y)
    return torch.ops.wick.custom_function(forward, backward, z, 3.)
)");
  const Module module = builder.build();
  const std::string text = module.saveToString();
  const Module again = loadFromMemory(std::as_bytes(std::span(text)));
  const auto gradients = [](const Module& m) {
    const Tensor x = leaf({0.25, 0.75});
    const Tensor y = m({x}).toTensor();
    backward({kSum(y, IValue())}, {}, {});
    Numbers out = numbers(y);
    for (const Tensor& t : {x, m.attr("w").toTensor()}) {
      for (const double g : numbers(autograd::gradientOf(t))) out.push_back(g);
    }
    return out;
  };
  EXPECT_EQ(gradients(again), gradients(module));
}

// ---- NaNs ----

TEST(Anomaly, NamesTheOperatorAndTheLine) {
  const Program program = compile(R"(
def main(x: Tensor) -> Tensor:
    y = x * 2
    z = torch.sqrt(y - y)
    return (z * 0).sum()
)",
                                  "model.py");
  const Tensor x = leaf({1, 2});
  AnomalyMode anomalies;
  RunOptions options;
  options.observer = anomalies.observer();
  const Tensor loss = program.call("main", {x}, {}, options).toTensor();
  const std::string error = errorOf([&] { backward({loss}, {}, {}); });
  expectContains(error, "Function 'SqrtBackward0' returned nan values in its 0th output.");
  expectContains(error, "\"model.py\", line 4");
}

// An error of a derivative names the derivative and what was recorded.
TEST(Anomaly, ErrorsNameTheirPlace) {
  const Program program = compile(R"(
def main(x: Tensor) -> Tensor:
    y = torch.exp(x)
    y.add_(1)
    return y.sum()
)",
                                  "model.py");
  AnomalyMode anomalies;
  RunOptions options;
  options.observer = anomalies.observer();
  const Tensor loss = program.call("main", {leaf({1, 2})}, {}, options).toTensor();
  const std::string error = errorOf([&] { backward({loss}, {}, {}); });
  expectContains(error, "ExpBackward0: ");
  expectContains(error, "modified by an inplace operation");
  expectContains(error, "\"model.py\", line 3");
}

TEST(Anomaly, IsOffOtherwise) {
  const Tensor x = leaf({0});
  static const OperatorHandle kSqrt("aten::sqrt", "");
  { const AnomalyMode scope; }
  backward({kSum(times(kSqrt(x), 0), IValue())}, {}, {});
  EXPECT_TRUE(std::isnan(numbers(autograd::gradientOf(x))[0]));
}

// ---- long tapes, many steps, many threads ----

TEST(Tape, OfAMillionNodesIsWalkedAndFreedWithoutRecursion) {
  // On a small stack, so that recursion would show.
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  const auto body = [](void*) -> void* {
    const Tensor x = leaf({1});
    const Tensor one = Tensor::scalar(1.0);
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = kAdd(y, one, Scalar(int64_t{1}));
    backward({y}, {}, {true, false});
    EXPECT_EQ(numbers(autograd::gradientOf(x)), (Numbers{1}));
    y = Tensor();
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Tape, KeepsNothingOfTenThousandSteps) {
  const Program program = compile(R"(
def main(w: Tensor, x: Tensor, steps: int) -> float:
    loss = torch.zeros([])
    for i in range(steps):
        h = x @ torch.tanh(w)
        h[0] = h[1] * 2
        loss = (h * h).mean()
        loss.backward()
        g = w.grad
        assert g is not None
        with torch.no_grad():
            w -= 0.1 * g
            g.zero_()
    return float(loss)
)");
  const Tensor w = Tensor::full({8, 8}, 0.1, DType::Float),
               x = Tensor::full({4, 8}, 1, DType::Float);
  w.setRequiresGrad(true);
  program.call("main", {w, x, 100});
  const size_t before = countedBytes();
  program.call("main", {w, x, 10000});
  EXPECT_LT(countedBytes(), before + (256 << 10));
}

TEST(Tape, ThreadsTrainCopies) {
  const Program program = compile(R"(
def part(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w)
def forward(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x * 2, x
def backward(saved: Tensor, grad: Tensor) -> Tensor:
    return grad * 2
def main(w: Tensor, x: Tensor) -> Tensor:
    w = w.clone().requires_grad_()
    for i in range(20):
        y = torch.utils.checkpoint.checkpoint(part, x, w)
        torch.ops.wick.custom_function(forward, backward, y).sum().backward()
        g = w.grad
        assert g is not None
        with torch.no_grad():
            w -= 0.01 * g
            g.zero_()
    return w.detach()
)");
  const Tensor w = Tensor::full({4, 4}, 0.1, DType::Double),
               x = Tensor::full({2, 4}, 0.5, DType::Double);
  const Numbers expected = numbers(program.call("main", {w, x}).toTensor());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(numbers(program.call("main", {w, x}).toTensor()), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace wick::autograd::functions_test
