#include "tests/codegen/check_fusion.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"

namespace wick {

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : twister_(seed) {}
  int below(int n) { return static_cast<int>(twister_() % static_cast<uint64_t>(n)); }
  bool oneIn(int n) { return below(n) == 0; }
  double number() { return static_cast<double>(twister_() >> 11) * 0x1p-53; }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

 private:
  std::mt19937_64 twister_;
};

// A graph as text, and arguments for it.
struct Program {
  std::string text;
  std::vector<IValue> arguments;
};

DType randomDType(Random& random) {
  if (random.oneIn(2)) return DType::Float;
  return random.of({DType::Float, DType::Double, DType::Half, DType::BFloat16, DType::Long,
                    DType::Int, DType::Short, DType::Char, DType::Byte, DType::Bool});
}

double randomValue(Random& random, DType dtype) {
  if (dtype == DType::Bool) return random.below(2);
  if (isIntegral(dtype, false)) {
    return dtype == DType::Byte ? random.below(256) : random.below(256) - 128;
  }
  if (random.oneIn(12)) {
    return random.of({0.0, -0.0, 1.0, -1.0, 1e-40, 3e38, -1e30, 88.8, -104.0, 0.5,
                      std::numeric_limits<double>::infinity(),
                      -std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::quiet_NaN()});
  }
  return (random.number() - 0.5) * random.of({2.0, 8.0, 60.0});
}

void fillRandomly(Random& random, const Tensor& t) {
  dispatchAll(t.dtype(), [&]<class T>() {
    T* values = static_cast<T*>(t.rawData());
    for (int64_t i = 0; i < t.numel(); ++i) values[i] = convert<T>(randomValue(random, t.dtype()));
  });
}

// A tensor of a shape that broadcasts to `full`, perhaps a view.
Tensor randomTensor(Random& random, const DimVector& full, DType dtype) {
  size_t skipped =
      random.oneIn(3) ? static_cast<size_t>(random.below(static_cast<int>(full.size()) + 1)) : 0;
  DimVector sizes;
  for (size_t d = skipped; d < full.size(); ++d) {
    sizes.push_back(random.oneIn(6) ? 1 : full[d]);
  }
  if (sizes.empty() || random.oneIn(2)) {
    Tensor t = Tensor::empty(sizes, dtype);
    fillRandomly(random, t);
    return t;
  }
  switch (random.below(4)) {
    case 0: {  // every second element, or a window
      DimVector larger = sizes;
      auto d = static_cast<size_t>(random.below(static_cast<int>(sizes.size())));
      int64_t step = 1 + random.below(2);
      larger[d] = larger[d] * step + 3;
      Tensor t = Tensor::empty(larger, dtype);
      fillRandomly(random, t);
      auto at = static_cast<int64_t>(d);
      return t.slice(at, 2, 2 + sizes[d] * step, step);
    }
    case 1: {  // another order in memory
      DimVector order, permuted;
      for (size_t d = sizes.size(); d-- > 0;) order.push_back(static_cast<int64_t>(d));
      for (int64_t d : order) permuted.push_back(sizes[static_cast<size_t>(d)]);
      Tensor t = Tensor::empty(permuted, dtype);
      fillRandomly(random, t);
      return t.permute(order);
    }
    case 2: {  // expanded
      DimVector base = sizes;
      base[static_cast<size_t>(random.below(static_cast<int>(sizes.size())))] = 1;
      Tensor t = Tensor::empty(base, dtype);
      fillRandomly(random, t);
      return t.expand(sizes);
    }
    default: {
      Tensor t = Tensor::empty(sizes, dtype);
      fillRandomly(random, t);
      return t;
    }
  }
}

DimVector randomShape(Random& random, int min_rank) {
  DimVector shape(static_cast<size_t>(min_rank + random.below(4 - min_rank)));
  for (int64_t& size : shape) {
    size = random.oneIn(12) ? random.below(2) : 2 + random.below(random.oneIn(4) ? 70 : 9);
  }
  return shape;
}

class ProgramMaker {
 public:
  ProgramMaker(Random& random, bool reductions) : random_(random), reductions_(reductions) {}

  Program make() {
    DimVector shape = randomShape(random_, reductions_ ? 1 : 0);
    DType dtype = randomDType(random_);
    std::string inputs;
    const int count = 1 + random_.below(4);
    for (int i = 0; i < count; ++i) {
      if (reductions_)
        dtype = random_.of({DType::Float, DType::Float, DType::Double, DType::Half});
      else if (random_.oneIn(3))
        dtype = randomDType(random_);
      Tensor t = reductions_ && i == 0 ? Tensor() : randomTensor(random_, shape, dtype);
      if (!t.defined()) {
        t = Tensor::empty(shape, dtype);
        fillRandomly(random_, t);
      }
      program_.arguments.emplace_back(t);
      inputs += fmt::format("{}%x{} : Tensor", i == 0 ? "" : ", ", i);
      values_.push_back(fmt::format("%x{}", i));
    }
    inputs += ", %s : float, %k : int";
    program_.arguments.emplace_back(randomValue(random_, DType::Float));
    program_.arguments.emplace_back(int64_t{random_.below(7) - 3});
    rank_ = static_cast<int>(shape.size());
    const int nodes = 1 + random_.below(8);
    for (int i = 0; i < nodes; ++i) node();
    std::string outputs = values_.back();
    // Others of the values may leave, too.
    for (size_t i = static_cast<size_t>(count); i + 1 < values_.size(); ++i) {
      if (random_.oneIn(6)) outputs += ", " + values_[i];
    }
    program_.text = fmt::format("graph({}):\n{}  return ({})\n", inputs, body_, outputs);
    return std::move(program_);
  }

 private:
  std::string value() {
    return values_[static_cast<size_t>(random_.below(static_cast<int>(values_.size())))];
  }
  std::string constant(const std::string& type, const std::string& text) {
    std::string name = fmt::format("%c{}", next_++);
    body_ += fmt::format("  {} : {} = prim::Constant[value={}]()\n", name, type, text);
    return name;
  }
  std::string none() {
    std::string name = fmt::format("%c{}", next_++);
    body_ += fmt::format("  {} : NoneType = prim::Constant()\n", name);
    return name;
  }
  std::string number() {
    switch (random_.below(4)) {
      case 0:
        return "%s";
      case 1:
        return "%k";
      case 2:
        return constant("int", std::to_string(random_.below(9) - 4));
      default:
        return constant("float", fmt::format("{:.3f}", (random_.number() - 0.5) * 6));
    }
  }
  void emit(const std::string& op, const std::string& arguments) {
    std::string name = fmt::format("%v{}", next_++);
    body_ += fmt::format("  {} : Tensor = aten::{}({})\n", name, op, arguments);
    values_.push_back(name);
  }

  void node() {
    if (reductions_ && random_.oneIn(3)) return reduction();
    std::string x = value();
    switch (random_.below(reductions_ ? 3 : 8)) {
      case 0:
      case 1:
        return emit(random_.of<std::string>(
                        {"relu", "sigmoid", "tanh", "exp", "neg", "abs", "square", "silu"}),
                    x);
      case 2:
        return binary(x);
      case 3:
        return emit(
            random_.of<std::string>(
                {"log",         "sqrt",      "rsqrt",       "erf",     "expm1",    "log1p",
                 "floor",       "ceil",      "round",       "trunc",   "frac",     "reciprocal",
                 "sign",        "isnan",     "isinf",       "mish",    "selu",     "relu6",
                 "logical_not", "sin",       "cos",         "atan",    "exp2",     "log2",
                 "lgamma",      "hardswish", "hardsigmoid", "signbit", "isfinite", "log_sigmoid",
                 "bitwise_not", "sinh",      "i0"}),
            x);
      case 4:
        return withNumbers(x);
      case 5:
        return special(x);
      default:
        return binary(x);
    }
  }

  void binary(const std::string& x) {
    std::string y = value();
    if (random_.oneIn(3)) {
      auto op = random_.of<std::string>({"add", "sub", "rsub"});
      return emit(op, fmt::format("{}, {}, {}", x, random_.oneIn(3) ? number() : y,
                                  constant("int", random_.oneIn(3) ? "2" : "1")));
    }
    if (reductions_) {
      return emit(random_.of<std::string>({"mul", "maximum", "minimum"}), x + ", " + y);
    }
    if (random_.oneIn(3)) {
      return emit(random_.of<std::string>({"mul", "div", "eq", "ne", "lt", "le", "gt", "ge",
                                           "remainder", "fmod", "clamp_min", "clamp_max"}),
                  x + ", " + number());
    }
    emit(random_.of<std::string>({"mul",
                                  "div",
                                  "maximum",
                                  "minimum",
                                  "fmax",
                                  "fmin",
                                  "atan2",
                                  "eq",
                                  "ne",
                                  "lt",
                                  "le",
                                  "gt",
                                  "ge",
                                  "logical_and",
                                  "logical_or",
                                  "logical_xor",
                                  "bitwise_and",
                                  "bitwise_or",
                                  "bitwise_xor",
                                  "remainder",
                                  "fmod",
                                  "floor_divide",
                                  "copysign",
                                  "hypot",
                                  "bitwise_left_shift",
                                  "bitwise_right_shift",
                                  "gcd",
                                  "xlogy",
                                  "logaddexp",
                                  "pow"}),
         x + ", " + y);
  }

  void withNumbers(const std::string& x) {
    switch (random_.below(8)) {
      case 0:
        return emit("pow",
                    x + ", " + constant("int", random_.of<std::string>({"2", "3", "-1", "5"})));
      case 1:
        return emit(
            "pow",
            x + ", " +
                constant("float", random_.of<std::string>({"0.5", "-0.5", "2.", "1.7", "-2."})));
      case 2:
        return emit("clamp", fmt::format("{}, {}, {}", x, number(), number()));
      case 3:
        return emit("clamp", fmt::format("{}, {}, {}", x, none(), number()));
      case 4:
        return emit("leaky_relu", x + ", " + constant("float", "0.1"));
      case 5:
        return emit("elu", fmt::format("{}, {}, {}, {}", x, constant("float", "0.7"),
                                       constant("int", "1"), constant("float", "1.5")));
      case 6:
        return emit("hardtanh", fmt::format("{}, {}, {}", x, constant("float", "-0.5"),
                                            constant("float", "0.75")));
      default:
        return emit("softplus",
                    fmt::format("{}, {}, {}", x, constant("int", "1"), constant("int", "20")));
    }
  }

  void special(const std::string& x) {
    switch (random_.below(5)) {
      case 0:
        emit("gt", x + ", " + number());
        return emit("where", fmt::format("{}, {}, {}", values_.back(), value(), value()));
      case 1:
        emit("isnan", x);
        return emit("masked_fill", fmt::format("{}, {}, {}", value(), values_.back(), number()));
      case 2:
        return emit("gelu", x + ", " + constant("str", random_.oneIn(2) ? "\"none\"" : "\"tanh\""));
      case 3:
        return emit("lerp", fmt::format("{}, {}, {}", x, value(), constant("float", "0.3")));
      default:
        return emit("addcmul",
                    fmt::format("{}, {}, {}, {}", x, value(), value(), constant("float", "0.5")));
    }
  }

  void reduction() {
    std::string x = random_.oneIn(2) ? values_[0] : value();
    std::string dim = constant("int", "-1");
    switch (random_.below(4)) {
      case 0:
        return emit("softmax", fmt::format("{}, {}, {}", x, dim, none()));
      case 1:
        return emit("log_softmax", fmt::format("{}, {}, {}", x, dim, none()));
      default:
        break;
    }
    std::string dims = fmt::format("%d{}", next_++);
    std::string which = constant("int", std::to_string(-1 - random_.below(std::max(rank_, 1))));
    body_ += fmt::format("  {} : int[] = prim::ListConstruct({})\n", dims, which);
    std::string keep = constant("bool", random_.oneIn(3) ? "0" : "1");
    if (random_.oneIn(2)) {
      return emit(random_.of<std::string>({"amax", "amin"}),
                  fmt::format("{}, {}, {}", x, dims, keep));
    }
    emit(random_.of<std::string>({"sum", "mean"}),
         fmt::format("{}, {}, {}, {}", x, dims, keep, none()));
  }

  Random& random_;
  const bool reductions_;
  Program program_;
  std::vector<std::string> values_;
  std::string body_;
  int next_ = 0;
  int rank_ = 0;
};

struct Outcome {
  std::vector<Tensor> tensors;
  std::string error;
};

Outcome runGraph(const std::shared_ptr<Graph>& graph, const std::vector<IValue>& arguments) {
  Outcome outcome;
  try {
    auto code = Code::build(graph, "forward");
    IValue result = runCode(*code, arguments);
    if (result.isTensor()) {
      outcome.tensors.push_back(result.toTensor());
    } else {
      for (const IValue& e : result.elements()) outcome.tensors.push_back(e.toTensor());
    }
  } catch (const RuntimeError& e) {
    outcome.error = e.what();
    if (outcome.error.empty()) outcome.error = "error";
  }
  return outcome;
}

template <class T>
bool sameNumber(T a, T b, double tolerance) {
  if constexpr (kIsComplex<T>) {
    return a == b;
  } else {
    auto x = static_cast<double>(a);
    auto y = static_cast<double>(b);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (tolerance == 0) return std::memcmp(&a, &b, sizeof a) == 0;
    return x == y || std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
  }
}

// "" or how the tensors differ.
std::string compare(const Tensor& got, const Tensor& expected, double tolerance) {
  if (got.dtype() != expected.dtype() || DimVector(got.sizes()) != DimVector(expected.sizes())) {
    return fmt::format("{} instead of {}", got.describe(), expected.describe());
  }
  if (tolerance == 0 && DimVector(got.strides()) != DimVector(expected.strides())) {
    return fmt::format("strides {} instead of {}", formatInts(got.strides()),
                       formatInts(expected.strides()));
  }
  Tensor a = got.contiguous(), b = expected.contiguous();
  if (isReducedFloat(a.dtype()) && tolerance != 0) tolerance = 0.02;
  std::string difference;
  dispatchAll(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < a.numel() && difference.empty(); ++i) {
      T x = a.data<T>()[i], y = b.data<T>()[i];
      if (sameNumber(x, y, tolerance)) continue;
      if constexpr (!kIsComplex<T>) {
        difference = fmt::format("element {} of {}: {} instead of {}", i, a.describe(),
                                 static_cast<double>(x), static_cast<double>(y));
      }
    }
  });
  return difference;
}

std::string describe(uint64_t seed, const Program& program, const std::string& what) {
  std::string text = fmt::format("seed {}: {}\n{}", seed, what, program.text);
  for (const IValue& a : program.arguments) {
    if (a.isTensor()) {
      Tensor t = a.toTensor();
      text += fmt::format("  {} strides {}\n", t.describe(), formatInts(t.strides()));
    } else {
      text += fmt::format("  {}\n", a.repr());
    }
  }
  return text;
}

FusionCheck check(uint64_t seed, bool reductions, double tolerance) {
  Random random(seed);
  Program program = ProgramMaker(random, reductions).make();
  auto plain = parseGraph(program.text);
  Outcome expected = runGraph(plain, program.arguments);
  setJitMode(JitMode::Sync);
  auto grouped = parseGraph(program.text);
  FusionOptions options;
  options.kind_of = kernelKindOf;
  options.min_computing_nodes = 1;
  formFusionGroups(*grouped, options);
  FusionStatistics before = fusionStatistics();
  Outcome got = runGraph(grouped, program.arguments);
  FusionCheck result;
  result.fused = fusionStatistics().launches > before.launches;
  if (got.error.empty() != expected.error.empty()) {
    result.failure =
        describe(seed, program, fmt::format("'{}' instead of '{}'", got.error, expected.error));
    return result;
  }
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    std::string difference = compare(got.tensors[i], expected.tensors[i], tolerance);
    if (!difference.empty()) {
      result.failure = describe(seed, program, fmt::format("output {}: {}", i, difference));
      return result;
    }
  }
  return result;
}

}  // namespace

FusionCheck checkPointwise(uint64_t seed) {
  return check(seed, false, 0);
}

FusionCheck checkReductions(uint64_t seed) {
  return check(seed, true, 2e-4);
}

}  // namespace wick
