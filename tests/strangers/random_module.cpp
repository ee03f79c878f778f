#include "tests/strangers/random_module.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "runtime/module_builder.h"

namespace wick::strangers {
namespace {

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed), builder_("Net") {}

  RandomModule make() {
    RandomModule made;
    made.trains = choose(6) == 0;
    made.doubles = doubles_ = choose(3) == 0;
    start();
    const int steps = 2 + choose(7);
    for (int i = 0; i < steps; ++i) step();
    if (hooks_) methods_ += kHooks;
    const std::string source =
        "def forward(self, x: Tensor) -> Tensor:\n" + text_ + "    return x\n" + methods_;
    builder_.compile("def helped(x: Tensor, w: Tensor) -> Tensor:\n    return torch.tanh(x) * w\n");
    builder_.define(source);
    made.module = builder_.build();
    made.module.train(made.trains);
    if (hooks_) {
      const ClassTypePtr type = made.module.type();
      type->addForwardPreHook(type->findMethod("before"));
      type->addForwardHook(type->findMethod("behind"));
      made.noise = 1e-6;
    }
    for (int i = 0; i < 3; ++i) made.inputs.push_back(numbers(input_, 1.0));
    made.source = source + inner_text_;
    made.keeps_state = state_;
    made.leaf = leaf_;
    made.beyond_pytorch = beyond_pytorch_;
    made.coarse = coarse_;
    return made;
  }

 private:
  static constexpr const char* kHooks =
      "def before(self, inputs: Tuple[Tensor]) -> Tuple[Tensor]:\n"
      "    return (inputs[0] * 0.5 + 0.1,)\n"
      "def behind(self, inputs: Tuple[Tensor], result: Tensor) -> Tensor:\n"
      "    return result * 2 - 0.25\n";

  int choose(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t size(int64_t most) { return 1 + choose(static_cast<int>(most)); }
  Tensor numbers(const DimVector& sizes, double scale) {
    std::normal_distribution<double> normal;
    Tensor t = Tensor::empty(sizes, DType::Double);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = normal(random_) * scale;
    return t.to(type());
  }
  std::string fresh(const char* kind) { return fmt::format("{}{}", kind, next_++); }
  std::string parameter(const DimVector& sizes, double scale) {
    const std::string name = fresh("w");
    builder_.registerParameter(name, numbers(sizes, scale), choose(4) != 0);
    return "self." + name;
  }
  std::string buffer(const DimVector& sizes, double scale, double shift = 0) {
    const std::string name = fresh("b");
    Tensor t = numbers(sizes, scale).to(DType::Double);
    for (int64_t i = 0; i < t.numel(); ++i) {
      double& v = t.data<double>()[i];
      v = shift != 0 ? std::abs(v) + shift : v;
    }
    builder_.registerBuffer(name, t.to(type()));
    return "self." + name;
  }
  void say(const std::string& line) { text_ += "    " + line + "\n"; }
  DType type() const { return doubles_ ? DType::Double : DType::Float; }
  const char* typeText() const { return doubles_ ? "torch.float64" : "torch.float32"; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }

  void start() {
    const int64_t channels = size(4), n = choose(12) == 0 ? 0 : choose(3) == 0 ? 1 : size(4);
    switch (choose(7)) {
      case 0:
        shape_ = {n, channels, 3 + size(3), 3 + size(3)};
        break;
      case 1:  // one image, whose channels may be as many as its lines
        shape_ = {channels, choose(2) == 0 ? channels : 3 + size(2), 3 + size(3)};
        break;
      case 2:
        shape_ = {n, channels, 4 + size(4)};
        break;
      case 3:
        shape_ = {channels, choose(2) == 0 ? channels : 4 + size(3)};
        break;
      case 4:
        shape_ = {n, size(6)};
        break;
      case 5:  // one volume
        shape_ = {channels, choose(2) == 0 ? channels : size(3), 2, 3};
        break;
      default:
        shape_ = {size(6)};
    }
    input_ = shape_;
  }

  void step() {
    switch (choose(25)) {
      case 0:
      case 1:
      case 2:
        return convolve();
      case 3:
      case 4:
        return normalize();
      case 5:
      case 6:
        return scale();
      case 7:
      case 8:
        return linear();
      case 9:
        return activate();
      case 10:
        return write();
      case 11:
        return writeState();
      case 12:
        return container();
      case 13:
        return sharedMemory();
      case 14:
        return fork();
      case 15:
        return leaf();
      case 16:
        return view();
      case 17:
        return layerNorm();
      case 18:
        return branch();
      case 19:
        hooks_ = true;
        return;
      case 20:
      case 21:
        return numberInFront();
      case 22:
        return beyondPyTorch();
      case 23:
        return submodule();
      default:
        return precision();
    }
  }

  // A convolution of one, two or three dimensions, with a batch or without.
  void convolve() {
    std::vector<size_t> dims;
    for (size_t d = 1; d <= 3; ++d) {
      if (shape_.size() == d + 1 || shape_.size() == d + 2) dims.push_back(d);
    }
    if (dims.empty()) return linear();
    const size_t d = dims[static_cast<size_t>(choose(static_cast<int>(dims.size())))];
    const size_t channel = shape_.size() - d - 1;
    const int64_t in = shape_[channel];
    if (in == 0) return activate();
    const int64_t groups = in % 2 == 0 && choose(3) == 0 ? 2 : 1;
    // Often as many channels as lines: a wrong dimension is not found by its size then.
    int64_t out = groups * size(3);
    if (choose(2) == 0 && shape_[channel + 1] % groups == 0 && shape_[channel + 1] > 0) {
      out = shape_[channel + 1];
    }
    const bool transposed = choose(6) == 0;
    DimVector weight = transposed ? DimVector{in, out / groups} : DimVector{out, in / groups};
    for (size_t i = 0; i < d; ++i) weight.push_back(3);
    const std::string w = parameter(weight, 0.4),
                      b = choose(2) == 0 ? parameter({out}, 0.3) : "None";
    say(fmt::format("x = torch.{}{}d(x, {}, {}, 1, 1, {}, {})",
                    transposed ? "conv_transpose" : "conv", d, w, b, transposed ? 0 : 1, groups));
    shape_[channel] = out;
    if (choose(4) == 0) return viewAsRows();
    if (choose(2) == 0) normalize();
    if (choose(3) == 0) scale();
  }

  // A view of a result that a convolution may have written in another order.
  void viewAsRows() {
    int64_t row = 1;
    for (size_t i = 1; i < shape_.size(); ++i) row *= shape_[i];
    shape_ = {shape_[0], row};
    say(fmt::format("x = x.view([{}, {}])", shape_[0], row));
    if (choose(2) == 0) say("x.mul_(0.5)");
  }

  void normalize() {
    if (rank() < 2) return scale();
    const int64_t c = shape_[1];
    if (c == 0) return scale();
    int64_t elements = 1;
    for (const int64_t s : shape_) elements *= s;
    const std::string mean = buffer({c}, 0.5), var = buffer({c}, 0.5, choose(8) == 0 ? 1e-12 : 0.2);
    const double most = !extreme_ && choose(8) == 0 ? 1e8 : 1.0;
    const std::string gamma = choose(4) == 0 ? "None" : parameter({c}, most),
                      beta = choose(4) == 0 ? "None" : parameter({c}, 1.0);
    const bool may_train = elements / c > 1 && !extreme_;
    extreme_ = extreme_ || most > 1;
    state_ = state_ || may_train;
    say(fmt::format("x = torch.batch_norm(x, {}, {}, {}, {}, {}, 0.1, 1e-05, False)", gamma, beta,
                    mean, var, may_train ? "self.training" : "False"));
  }

  // Some factors are huge or tiny: one in a module, because the squares of two would not be finite.
  void scale() {
    static const char* const kUsual[] = {"2.5", "-1.0", "1.0", "3", "-0.5", "0.001"};
    static const char* const kExtreme[] = {"0.0", "1e-30", "1e30", "65536.0", "1e-8", "16777216.0"};
    const bool extreme = !extreme_ && choose(4) == 0;
    extreme_ = extreme_ || extreme;
    if (extreme && choose(3) == 0) {
      // The result has room for the factor, but not the sums of products that lead to it.
      say(fmt::format("x = x * {}", doubles_ ? "1e308" : "2e38"));
      say(fmt::format("x = x * {}", doubles_ ? "1e-308" : "1e-38"));
      return;
    }
    say(fmt::format("x = x {} {}", choose(3) == 0 ? "/" : "*",
                    extreme ? kExtreme[choose(6)] : kUsual[choose(6)]));
    if (choose(4) == 0) say("x = x - 0.0");
  }

  void linear() {
    const int64_t in = shape_.back(), out = choose(2) == 0 ? in : size(6);
    const std::string w = parameter({out, in}, 0.5),
                      b = choose(2) == 0 ? parameter({out}, 0.5) : "None";
    say(fmt::format("x = torch.nn.functional.linear(x, {}, {})", w, b));
    shape_.back() = out;
    if (choose(3) == 0) normalize();
    if (choose(3) == 0) scale();
  }

  void layerNorm() {
    // A norm of few or huge numbers shows only how they are rounded.
    const int64_t n = shape_.back();
    if (n < 3 || extreme_) return activate();
    const std::string w = parameter({n}, 1.0), b = parameter({n}, 1.0);
    say(fmt::format("x = torch.nn.functional.layer_norm(x, [{}], {}, {})", n, w, b));
  }

  void activate() {
    static const char* const kNames[] = {"torch.relu(x)",
                                         "torch.tanh(x)",
                                         "torch.sigmoid(x)",
                                         "torch.nn.functional.gelu(x)",
                                         "torch.nn.functional.hardtanh(x, -0.5, 0.75)",
                                         "torch.softmax(x, -1)"};
    say(fmt::format("x = {}", kNames[choose(6)]));
  }

  void write() {
    const int64_t last = shape_.back();
    const std::string y = fresh("y");
    switch (choose(5)) {
      case 0:
        say(y + " = x.clone()");
        say(y + "[0] = 0.5");
        break;
      case 1:
        say(y + " = x * 1.0");
        say(fmt::format("{}[..., {}:].mul_(2.0)", y, choose(std::max(static_cast<int>(last), 1))));
        break;
      case 2:
        say(y + " = x.expand_as(x) * 1.0");
        say(y + ".view([-1]).add_(0.25)");
        break;
      case 3: {  // may overlap: an error, but where PyTorch finds this too hard to see and reads its own writes
        int64_t elements = 1;
        for (const int64_t n : shape_) elements *= n;
        beyond_pytorch_ = beyond_pytorch_ || elements != last;
        say(y + " = x.clone()");
        say(fmt::format("{0}[..., {1}:] = {0}[..., :{2}]", y, last > 1 ? 1 : 0,
                        last > 1 ? last - 1 : last));
        break;
      }
      default:
        say(y + " = x + 0");
        say(y + ".relu_().add_(x)");
    }
    say("x = " + y);
  }

  void writeState() {
    const std::string b = buffer({shape_.back()}, 0.5);
    say(b + (choose(2) == 0 ? ".add_(0.125)" : ".mul_(0.5)"));
    say(fmt::format("x = x + {}", b));
    state_ = true;
  }

  void container() {
    const std::string name = fresh("c");
    const auto element = [&] {
      Tensor t = numbers({shape_.back()}, 0.5);
      if (choose(2) == 0) t.setRequiresGrad(true);
      return IValue(t);
    };
    switch (choose(4)) {
      case 0:
        builder_.registerAttribute(name, types::List(types::Tensor()),
                                   IValue(makeList(types::Tensor(), {element(), element()})));
        say(fmt::format("x = x + self.{0}[0] * self.{0}[1]", name));
        break;
      case 1:
        builder_.registerAttribute(name, types::Tuple({types::Tensor(), types::Tensor()}),
                                   IValue(makeTuple({element(), element()})));
        say(fmt::format("x = x * self.{0}[0] - self.{0}[1]", name));
        break;
      case 2: {
        auto dict = makeRef<DictObject>(types::String(), types::Tensor());
        dict->set(IValue("a"), element());
        dict->set(IValue("b"), element());
        builder_.registerAttribute(name, types::Dict(types::String(), types::Tensor()),
                                   IValue(DictRef(dict)));
        say(fmt::format("x = x * self.{0}['a'] + self.{0}['b']", name));
        break;
      }
      default:
        builder_.registerAttribute(name, types::Optional(types::Tensor()), element());
        say(fmt::format("o{0} = self.{0}", name));
        say(fmt::format("if o{0} is not None:", name));
        say(fmt::format("    x = x + o{0}", name));
    }
  }

  void sharedMemory() {
    const std::string one = fresh("s"), other = fresh("s");
    const Tensor whole = numbers({2, shape_.back()}, 0.5);
    builder_.registerBuffer(one, whole);
    builder_.registerBuffer(other, whole.select(0, 1));
    say(fmt::format("self.{}.mul_(0.5)", choose(2) == 0 ? one : other));
    say(fmt::format("x = x + self.{} + self.{}[0]", other, one));
    state_ = true;
  }

  void fork() {
    const std::string f = fresh("f"), w = parameter({shape_.back()}, 0.5);
    say(fmt::format("{} = torch.jit.fork(helped, x, {})", f, w));
    say(fmt::format("x = x * 0.5 + torch.jit.wait({})", f));
  }

  // Leaves that the program makes of constants: each has a gradient of its own.
  void leaf() {
    leaf_ = true;
    const std::string t = fresh("t"), g = fresh("g");
    switch (choose(5)) {
      case 0:
        say(t + " = torch.tensor(0.3, requires_grad=True)");
        say(fmt::format("({} * x.detach().mean()).backward()", t));
        say(fmt::format("x = x + {}.grad", t));
        return;
      case 1:  // a step size that is learned
        say(t + " = torch.tensor(0.1, requires_grad=True)");
        say(fmt::format("w{0} = x.detach().clone().requires_grad_()", t));
        say(fmt::format("b{0} = w{0} - {0} * w{0}", t));
        say(fmt::format("{} = torch.autograd.grad([b{}.sum()], [{}])[0]", g, t, t));
        break;
      case 2:
        say(t + " = torch.tensor(0.1, requires_grad=True)");
        say(fmt::format("a{} = torch.tanh(x.detach()).requires_grad_()", t));
        say(fmt::format("for i{} in range(3):", t));
        say(fmt::format("    l{0} = (a{0} * a{0} * a{0}).sum()", t));
        say(fmt::format("    d{0} = torch.autograd.grad([l{0}], [a{0}], create_graph=True)[0]", t));
        say(fmt::format("    assert d{} is not None", t));
        say(fmt::format("    a{0} = a{0} - {0} * d{0}", t));
        say(fmt::format("{} = torch.autograd.grad([a{}.sum()], [{}])[0]", g, t, t));
        break;
      case 3:  // two that are equal
        say(t + " = torch.tensor([1.0, 1.0], device=x.device, requires_grad=True)");
        say(fmt::format("u{} = torch.tensor([1.0, 1.0], device=x.device, requires_grad=True)", t));
        say(fmt::format("(({0} * 2 + u{0} * 3) * x.detach().mean()).sum().backward()", t));
        say(fmt::format("x = x + {0}.grad[0] - u{0}.grad[1]", t));
        return;
      default:  // one in each iteration
        say(fmt::format("for i{} in range(3):", t));
        say(fmt::format("    {} = torch.tensor(0.5, requires_grad=True)", t));
        say(fmt::format("    ({0} * x.detach().mean() * (i{0} + 1)).backward()", t));
        say(fmt::format("    x = x + {}.grad", t));
        return;
    }
    say(fmt::format("assert {} is not None", g));
    say(fmt::format("x = x + torch.tanh({})", g));
  }

  // Arithmetic whose first operand is a number, with elements of many types.
  void numberInFront() {
    static const DType kTypes[] = {DType::Byte, DType::Char, DType::Short, DType::Int,
                                   DType::Long, DType::Half, DType::Double};
    static const char* const kForms[] = {"1.0 - {}", "3 - {}",    "2.5 / {}", "7 / {}",
                                         "2 ** {}",  "1.5 ** {}", "2.5 * {}", "7 % {}",
                                         "2.5 < {}", "3 >= {}",   "2 == {}",  "1.5 + {}"};
    const std::string name = fresh("n");
    Tensor t = Tensor::empty({shape_.back()}, DType::Long);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = size(6);
    builder_.registerBuffer(name, t.to(kTypes[choose(7)]));
    const std::string form = fmt::format(fmt::runtime(kForms[choose(12)]), "self." + name);
    say(fmt::format("x = x + ({}).to({})", form, typeText()));
  }

  // Programs that PyTorch does not compile, though Python runs them.
  void beyondPyTorch() {
    static const char* const kKeywords[] = {"in", "is", "lambda", "class", "import"};
    beyond_pytorch_ = true;
    switch (choose(5)) {
      case 0:
        say("x = sum([x, x * 0.5])");
        return;
      case 1:
        say("x = x * (True + True)");
        return;
      case 2:
        if (shape_[0] == 0) return activate();
        say("x = x + x[torch.tensor(0)]");
        return;
      case 3: {
        const std::string l = fresh("l");
        say(l + ": List[int] = torch.tensor([2, 3], dtype=torch.int32).tolist()");
        say(fmt::format("x = x * {}[1]", l));
        return;
      }
      default:
        if (keywords_ == 5) return activate();
        builder_.registerBuffer(kKeywords[keywords_], numbers({shape_.back()}, 0.5));
        say(fmt::format("x = x + self.{}", kKeywords[keywords_++]));
    }
  }

  void submodule() {
    const std::string name = fresh("m");
    ModuleBuilder inner("Inner" + name);
    inner.registerParameter("weight", numbers({shape_.back()}, 0.5), choose(2) == 0);
    inner.registerBuffer("state", numbers({shape_.back()}, 0.5));
    const bool writes = choose(2) == 0, hooked = choose(3) == 0;
    state_ = state_ || writes;
    std::string text = "def forward(self, x: Tensor) -> Tensor:\n";
    if (writes) text += "    self.state.add_(0.25)\n";
    text += "    return x * self.weight + self.state\n";
    if (hooked) text += kHooks;
    inner.define(text);
    const Module module = inner.build();
    if (hooked) {
      module.type()->addForwardPreHook(module.type()->findMethod("before"));
      module.type()->addForwardHook(module.type()->findMethod("behind"));
    }
    builder_.registerModule(name, module);
    say(fmt::format("x = self.{}(x)", name));
    inner_text_ += text;
  }

  void view() {
    switch (choose(5)) {
      case 0:
        if (rank() < 2) return activate();
        say("x = x.transpose(-1, -2)");
        std::swap(shape_[shape_.size() - 1], shape_[shape_.size() - 2]);
        return;
      case 1:
        say("x = x.flip([-1])");
        return;
      case 2:
        if (shape_.back() < 2) return activate();
        say("x = x[..., 1:]");
        shape_.back() -= 1;
        return;
      case 3:
        say("x = torch.cat([x, x * 0.5], 0)");
        shape_[0] *= 2;
        return;
      default:
        if (rank() < 2) return activate();
        say("x = x.flatten(-2)");
        shape_[shape_.size() - 2] *= shape_.back();
        shape_.pop_back();
    }
  }

  void branch() {
    say("if float(x.detach().abs().max()) > 0.731:");
    say("    x = x + 1");
    say("else:");
    say("    x = x * 0.5");
    say(fmt::format("for i in range({}):", choose(4)));
    say("    x = torch.tanh(x) + i * 0.1");
  }

  void precision() {
    static const char* const kDTypes[] = {"float64", "bfloat16", "float16"};
    const char* const reduced = kDTypes[choose(3)];
    say(fmt::format("x = (x.to(torch.{}) * 0.5 + 1).to({})", reduced, typeText()));
    coarse_ = true;
  }

  std::mt19937_64 random_;
  ModuleBuilder builder_;
  std::string text_, methods_, inner_text_;
  DimVector shape_, input_;
  int next_ = 0, keywords_ = 0;
  bool hooks_ = false, state_ = false, leaf_ = false, extreme_ = false;
  bool doubles_ = false, coarse_ = false;
  bool beyond_pytorch_ = false;
};

}  // namespace

RandomModule randomModule(uint64_t seed) {
  return Maker(seed).make();
}

}  // namespace wick::strangers
