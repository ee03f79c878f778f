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
    start();
    const int steps = 2 + choose(7);
    for (int i = 0; i < steps; ++i) step();
    if (hooks_) methods_ += kHooks;
    std::string source =
        "def forward(self, x: Tensor) -> Tensor:\n" + text_ + "    return x\n" + methods_;
    builder_.compile("def helped(x: Tensor, w: Tensor) -> Tensor:\n    return torch.tanh(x) * w\n");
    builder_.define(source);
    made.module = builder_.build();
    made.module.train(made.trains);
    if (hooks_) {
      const ClassTypePtr type = made.module.type();
      type->addForwardPreHook(type->findMethod("before"));
      type->addForwardHook(type->findMethod("behind"));
    }
    for (int i = 0; i < 3; ++i) made.inputs.push_back(numbers(input_, 1.0));
    made.source = std::move(source);
    made.keeps_state = state_;
    made.leaf = leaf_;
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
    Tensor t = Tensor::empty(sizes, DType::Float);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<float>()[i] = static_cast<float>(normal(random_) * scale);
    }
    return t;
  }
  std::string fresh(const char* kind) { return fmt::format("{}{}", kind, next_++); }
  std::string parameter(const DimVector& sizes, double scale) {
    const std::string name = fresh("w");
    builder_.registerParameter(name, numbers(sizes, scale), choose(4) != 0);
    return "self." + name;
  }
  std::string buffer(const DimVector& sizes, double scale, double shift = 0) {
    const std::string name = fresh("b");
    Tensor t = numbers(sizes, scale);
    for (int64_t i = 0; i < t.numel(); ++i) {
      float& v = t.data<float>()[i];
      v = static_cast<float>(shift != 0 ? std::abs(v) + shift : v);
    }
    builder_.registerBuffer(name, t);
    return "self." + name;
  }
  void say(const std::string& line) { text_ += "    " + line + "\n"; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }

  void start() {
    const int64_t channels = size(4), n = choose(3) == 0 ? 1 : size(4);
    switch (choose(6)) {
      case 0:
        shape_ = {n, channels, 3 + size(3), 3 + size(3)};
        break;
      case 1:  // one image, whose channels may be as many as its lines
        shape_ = {channels, choose(2) == 0 ? channels : 3 + size(2), 3 + size(3)};
        image_without_batch_ = true;
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
      default:
        shape_ = {size(6)};
    }
    input_ = shape_;
  }

  void step() {
    switch (choose(21)) {
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
      default:
        return precision();
    }
  }

  void convolve() {
    // A convolution of one or two dimensions, with a batch or without.
    std::vector<int> dims;
    if (rank() == 4 || (rank() == 3 && image_without_batch_)) dims.push_back(2);
    if (rank() == 3 && !image_without_batch_) dims.push_back(1);
    if (rank() == 2 && shape_[1] >= 3) dims.push_back(1);
    if (dims.empty()) return linear();
    const auto d = static_cast<size_t>(dims[0]);
    const size_t channel = shape_.size() - d - 1;
    const int64_t in = shape_[channel];
    const int64_t groups = in % 2 == 0 && choose(3) == 0 ? 2 : 1;
    // Often as many channels as lines: a wrong dimension is not found by its size then.
    int64_t out = groups * size(3);
    if (choose(2) == 0 && shape_[channel + 1] % groups == 0) out = shape_[channel + 1];
    DimVector weight{out, in / groups, 3};
    if (d == 2) weight.push_back(3);
    const std::string w = parameter(weight, 0.4),
                      b = choose(2) == 0 ? parameter({out}, 0.3) : "None";
    say(fmt::format("x = torch.conv{}d(x, {}, {}, 1, 1, 1, {})", d, w, b, groups));
    shape_[channel] = out;
    if (choose(2) == 0) normalize();
    if (choose(3) == 0) scale();
  }

  void normalize() {
    if (rank() < 2) return scale();
    const int64_t c = shape_[1];
    int64_t elements = 1;
    for (const int64_t s : shape_) elements *= s;
    const std::string mean = buffer({c}, 0.5), var = buffer({c}, 0.5, choose(8) == 0 ? 1e-12 : 0.2);
    const std::string gamma = choose(4) == 0 ? "None" : parameter({c}, choose(8) == 0 ? 1e8 : 1.0),
                      beta = choose(4) == 0 ? "None" : parameter({c}, 1.0);
    const bool may_train = elements / c > 1;
    state_ = state_ || may_train;
    say(fmt::format("x = torch.batch_norm(x, {}, {}, {}, {}, {}, 0.1, 1e-05, False)", gamma, beta,
                    mean, var, may_train ? "self.training" : "False"));
  }

  void scale() {
    static const char* const kFactors[] = {"2.5",     "-1.0", "1.0",   "0.0",
                                           "1e-30",   "1e30", "0.001", "3",
                                           "65536.0", "1e-8", "-0.5",  "16777216.0"};
    say(fmt::format("x = x {} {}", choose(3) == 0 ? "/" : "*",
                    kFactors[choose(choose(3) == 0 ? 12 : 3)]));
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
    const int64_t n = shape_.back();
    say(fmt::format("x = torch.nn.functional.layer_norm(x, [{}], {}, {})", n, parameter({n}, 1.0),
                    parameter({n}, 1.0)));
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
        say(fmt::format("{}[..., {}:].mul_(2.0)", y, choose(static_cast<int>(last))));
        break;
      case 2:
        say(y + " = x.expand_as(x) * 1.0");
        say(y + ".view([-1]).add_(0.25)");
        break;
      case 3:  // may overlap, which is an error
        say(y + " = x.clone()");
        say(fmt::format("{0}[..., {1}:] = {0}[..., :{2}]", y, last > 1 ? 1 : 0,
                        last > 1 ? last - 1 : last));
        break;
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
    switch (choose(3)) {
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

  void leaf() {
    const std::string t = fresh("t");
    say(fmt::format("{} = torch.tensor(0.3, requires_grad=True)", t));
    say(fmt::format("({0} * x.detach().mean()).backward()", t));
    say(fmt::format("x = x + {}.grad", t));
    leaf_ = true;
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
    say("if float(x.detach().sum()) > 0:");
    say("    x = x + 1");
    say("else:");
    say("    x = x * 0.5");
    say(fmt::format("for i in range({}):", choose(4)));
    say("    x = torch.tanh(x) + i * 0.1");
  }

  void precision() {
    static const char* const kDTypes[] = {"float64", "bfloat16", "float16"};
    say(fmt::format("x = (x.to(torch.{}) * 0.5 + 1).to(torch.float32)", kDTypes[choose(3)]));
  }

  std::mt19937_64 random_;
  ModuleBuilder builder_;
  std::string text_, methods_;
  DimVector shape_, input_;
  int next_ = 0;
  bool image_without_batch_ = false, hooks_ = false, state_ = false, leaf_ = false;
};

}  // namespace

RandomModule randomModule(uint64_t seed) {
  return Maker(seed).make();
}

}  // namespace wick::strangers
