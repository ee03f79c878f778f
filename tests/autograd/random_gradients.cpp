// The variables of a program are matrices [2, 3]. Expressions are smooth and keep numbers small.
// Conditions ask for numbers of the loop or for `k`, never for elements, so that the value has no
// jumps.
#include "tests/autograd/random_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "wick.h"

namespace wick {

namespace {

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  std::string program() {
    text_ = R"(class Pair(object):
    def __init__(self, first: Tensor, second: Tensor):
        self.first = first
        self.second = second
    def turn(self):
        self.first, self.second = self.second, self.first * 1.5

def part(x: Tensor, y: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
    for i in range(n):
        x = torch.tanh(x * y)
    z = x.clone()
    z[0] = y[1] * 0.5
    return x, [z, x + y]

def forward(x: Tensor, y: Tensor) -> Tuple[Tuple[Tensor, Tensor], Tuple[Tensor, Tensor]]:
    return (torch.sin(x) * y, x + y), (x, y)

def backward(saved: Tuple[Tensor, Tensor], g0: Tensor, g1: Tensor) -> Tuple[Tensor, Tensor]:
    x, y = saved
    return g0 * torch.cos(x) * y + g1, g0 * torch.sin(x) + g1

def value(a: Tensor, b: Tensor, k: int) -> Tensor:
    v0 = a * 1.0
    v1 = b * 1.0
)";
    variables_ = 2;
    level_ = 1;
    const int statements = 3 + below(8);
    for (int i = 0; i < statements; ++i) statement(0);
    std::string sum = "v0.sum()";
    for (int i = 1; i < variables_; ++i) {
      sum += fmt::format(" + (v{} * {}).sum()", i, 0.5 + 0.25 * below(5));
    }
    line("return " + sum);
    return text_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  void line(const std::string& s) {
    text_ += std::string(static_cast<size_t>(level_) * 4, ' ') + s + "\n";
  }
  std::string var() { return fmt::format("v{}", below(variables_)); }
  std::string number() { return fmt::format("{}", 0.25 * (1 + below(6))); }

  std::string expression(int depth) {
    if (depth <= 0 || below(4) == 0) return var();
    const auto inner = [&] { return expression(depth - 1); };
    switch (below(20)) {
      case 0:
        return fmt::format("torch.sin({})", inner());
      case 1:
        return fmt::format("torch.tanh({})", inner());
      case 2:
        return fmt::format("torch.sigmoid({})", inner());
      case 3:
        return fmt::format("torch.exp(torch.tanh({}))", inner());
      case 4:
        return fmt::format("(torch.tanh({}) * {})", inner(), inner());
      case 5:
        return fmt::format("({} - {})", inner(), inner());
      case 6:
        return fmt::format("({} + {})", inner(), inner());
      case 7:
        return fmt::format("({} / (1.5 + torch.sigmoid({})))", inner(), inner());
      case 8:
        return fmt::format("({} * {})", number(), inner());
      case 9:
        return fmt::format("({} - {})", number(), inner());
      case 10:
        return fmt::format("{}.t().reshape([2, 3])", inner());
      case 11:
        return fmt::format("torch.cat([{}[1:], {}[:1]])", inner(), inner());
      case 12:
        return fmt::format("({} + {}.mean(1, True))", inner(), inner());
      case 13:
        return fmt::format("({}[:, [2, 0, 0]])", inner());
      case 14:
        return fmt::format("torch.softmax({}, 1)", inner());
      case 15:
        return fmt::format("torch.tanh({} @ {}.t() @ {})", inner(), inner(), inner());
      case 16:
        return fmt::format("torch.stack([{}[0], {}[1]])", inner(), inner());
      case 17:
        return fmt::format("{}.flip([{}])", inner(), below(2));
      case 18:
        return fmt::format("torch.where(a > 0.6, {}, {})", inner(), inner());
      default:
        return fmt::format("{}.expand([2, 2, 3]).sum(0)", inner());
    }
  }

  void define(const std::string& expression) {
    line(fmt::format("v{} = {}", variables_, expression));
    ++variables_;
  }

  // In nested blocks variables are changed, for new ones would not be known behind.
  void assign(int depth, const std::string& expression) {
    if (depth == 0 && below(2) == 0) {
      define(expression);
    } else {
      line(fmt::format("{} = {}", var(), expression));
    }
  }

  void write() {
    const int target = below(variables_);
    const std::string v = fmt::format("v{}", target);
    // Nobody else holds it.
    line(fmt::format("{} = {}", v, below(2) == 0 ? v + ".clone()" : v + " * 1.0"));
    const std::string other = expression(1);
    switch (below(16)) {
      case 0:
        return line(fmt::format("{}[{}] = {}[{}]", v, below(2), other, below(2)));
      case 1:
        return line(fmt::format("{}[:, {}] *= {}", v, below(3), number()));
      case 2:
        return line(fmt::format("{}.mul_({})", v, number()));
      case 3:
        return line(fmt::format("{}.add_({})", v, other));
      case 4:
        return line(fmt::format("{}.t()[1].copy_({}[:, 1])", v, other));
      case 5:
        return line(fmt::format("{}.view([6])[1:5:2].mul_({})", v, number()));
      case 6:
        return line(fmt::format("{}.select(1, 0).add_({}.select(1, 2))", v, other));
      case 7:
        return line(fmt::format("{}[0, 1:].zero_()", v));
      case 8:
        return line(fmt::format("{}[1].fill_({})", v, number()));
      case 9:
        return line(fmt::format("{}.transpose(0, 1).narrow(0, 1, 2)[:, 1:].sub_({})", v, number()));
      case 10:
        line(fmt::format("w = {}[:, 1:]", v));
        line("u = w.t()[0]");
        line(fmt::format("u.add_({}[:, 0])", other));
        return line("w.mul_(1.25)");
      case 11:
        line(fmt::format("w = {}.diagonal()", v));
        return line(fmt::format("w += {}.diagonal() * 0.5", other));
      case 12:
        // A tensor's own elements are refused, as PyTorch refuses them.
        return line(fmt::format("{}[torch.tensor([1, 0])] = {}", v,
                                other == v ? other + ".clone()" : other));
      case 13:
        return line(
            fmt::format("torch.view_as_complex({}.view([3, 2]))[1:].mul_({} + 0.5j)", v, number()));
      case 14:
        line(fmt::format("w = torch.complex({}, {})", v, other));
        line("w.real[0].mul_(w.imag[1])");
        line(fmt::format("torch.view_as_real(w)[:, 1:].add_({})", number()));
        return line(fmt::format("{} = w.real - w.imag * 0.5", v));
      default:
        line(fmt::format("w = {}.view([3, 2])", v));
        line(fmt::format("{}.sigmoid_()", v));
        return line(fmt::format("{} = {} + w.view([2, 3])", v, v));
    }
  }

  void container() {
    const std::string x = expression(1), y = expression(1);
    const std::string v = var(), w = var();
    switch (below(6)) {
      case 0:
        line(fmt::format("items = [{}, {}]", x, y));
        line(fmt::format("items.append(items[0] * {})", number()));
        line("items[0] = torch.tanh(items[1]) * items[2]");
        return line(fmt::format("{} = items[0] + items[-1]", v));
      case 1:
        line(fmt::format("table = {{\"x\": {}, \"y\": {}}}", x, y));
        line("table[\"x\"] = torch.tanh(table[\"x\"]) * table[\"y\"]");
        return line(fmt::format("{} = table[\"x\"]", v));
      case 2:
        line(fmt::format("pair = Pair({}, {})", x, y));
        line("pair.turn()");
        return line(fmt::format("{} = pair.first - pair.second", v));
      case 3:
        line(fmt::format("future = torch.jit.fork(part, {}, {}, 2)", x, y));
        line("done, more = torch.jit.wait(future)");
        return line(fmt::format("{} = done + more[0] * torch.tanh(more[1])", v));
      case 4:
        line(fmt::format("done, more = torch.utils.checkpoint.checkpoint(part, {}, {}, {})", x, y,
                         1 + below(3)));
        return line(fmt::format("{} = done * torch.tanh(more[1]) + more[0]", v));
      default:
        line(fmt::format("one, two = torch.ops.wick.custom_function(forward, backward, {}, {})", x,
                         y));
        return line(fmt::format("{} = one + torch.tanh(two)", v));
    }
  }

  void block(int depth) {
    ++level_;
    const int n = 1 + below(2);
    for (int i = 0; i < n; ++i) statement(depth + 1);
    --level_;
  }

  void statement(int depth) {
    switch (below(depth < 2 ? 9 : 6)) {
      case 0:
      case 1:
      case 2:
        return assign(depth, expression(2));
      case 3:
      case 4:
        return write();
      case 5:
        return container();
      case 6:
        line(fmt::format("if k > {}:", below(4)));
        block(depth);
        line("else:");
        return block(depth);
      case 7: {
        const std::string i = fmt::format("i{}", loops_++);
        line(fmt::format("for {} in range({}):", i, 1 + below(3)));
        ++level_;
        line(fmt::format("v0 = v0 * 0.5 + {} * 0.1", i));
        if (below(3) == 0) {
          line(fmt::format("if {} == k:", i));
          ++level_;
          line(below(2) == 0 ? "continue" : "break");
          --level_;
        }
        --level_;
        return block(depth);
      }
      default: {
        const std::string n = fmt::format("n{}", loops_++);
        line(fmt::format("{} = {}", n, below(3)));
        line(fmt::format("while {} < k:", n));
        ++level_;
        line(fmt::format("{} += 1", n));
        --level_;
        return block(depth);
      }
    }
  }

  std::mt19937_64 random_;
  std::string text_;
  int variables_ = 0;
  int level_ = 0;
  int loops_ = 0;
};

constexpr const char* kDriver = R"(
def weighted(g: Tensor) -> Tensor:
    return (g * torch.linspace(0.5, 1.5, 6, dtype=torch.float64).reshape([2, 3])).sum()

def slopes(a: Tensor, b: Tensor, k: int, second: bool) -> List[Tensor]:
    a = a.detach().clone().requires_grad_()
    b = b.detach().clone().requires_grad_()
    v = value(a, b, k)
    if second:
        first = torch.autograd.grad([v], [a, b], create_graph=True, allow_unused=True)
        v = 0.0 * (a.sum() + b.sum())
        for g in first:
            if g is not None:
                v = v + weighted(g)
    out: List[Tensor] = [v.detach()]
    if v.requires_grad:
        for g in torch.autograd.grad([v], [a, b], allow_unused=True):
            out.append(torch.zeros([2, 3], dtype=torch.float64) if g is None else g)
    else:
        out.append(torch.zeros_like(a).detach())
        out.append(torch.zeros_like(b).detach())
    return out
)";

double at(const Program& program, const std::vector<Tensor>& inputs, int64_t k, bool second) {
  if (second) {
    return program.call("slopes", {inputs[0], inputs[1], k, true})
        .elements()[0]
        .toTensor()
        .item<double>();
  }
  const GradModeGuard off(false);
  return program.call("value", {inputs[0], inputs[1], k}).toTensor().item<double>();
}

}  // namespace

std::string randomGradientProgram(uint64_t seed) {
  return Writer(seed).program();
}

GradientComparison compareGradients(const std::string& text, bool second) {
  using Outcome = GradientComparison::Outcome;
  const Program program = compile(text + kDriver);
  std::vector<Tensor> inputs;
  for (const double shift : {0.1, 0.7}) {
    Tensor t = Tensor::empty({2, 3}, DType::Double);
    for (int i = 0; i < 6; ++i) t.data<double>()[i] = 0.55 + 0.4 * std::sin(shift + 1.9 * i);
    inputs.push_back(t);
  }
  GradientComparison result;
  for (const int64_t k : {1, 3}) {
    IValue found;
    try {
      found = program.call("slopes", {inputs[0], inputs[1], k, second});
    } catch (const RuntimeError& e) {
      const bool written = e.brief().find("modified by an inplace operation") != std::string::npos;
      return {written ? Outcome::Refused : Outcome::Differs, e.what()};
    }
    for (size_t input = 0; input < 2; ++input) {
      const Tensor gradient = found.elements()[1 + input].toTensor().contiguous();
      for (int i = 0; i < 6; ++i) {
        double& x = inputs[input].data<double>()[i];
        const double before = x;
        const auto slope = [&](double step) {
          x = before + step;
          const double up = at(program, inputs, k, second);
          x = before - step;
          const double down = at(program, inputs, k, second);
          x = before;
          return (up - down) / (2 * step);
        };
        const double fine = slope(1e-5), coarse = slope(4e-5);
        const double size =
            std::max({1.0, std::fabs(fine), std::fabs(at(program, inputs, k, second))});
        const double given = gradient.data<double>()[i];
        if (std::fabs(given - fine) <= 2e-5 * size) continue;
        // Loops may let numbers grow until differences say nothing.
        constexpr double kLarge = 1e6;
        if (size > kLarge || !std::isfinite(fine)) {
          result.outcome = Outcome::Unclear;
          continue;
        }
        if (!(std::fabs(fine - coarse) <= 1e-5 * size)) {
          result.outcome = Outcome::Unclear;
          continue;
        }
        return {Outcome::Differs,
                fmt::format("k = {}, input {}, element {}: gradient {}, differences {} and {}", k,
                            input, i, given, fine, coarse)};
      }
    }
  }
  return result;
}

}  // namespace wick
