#include "tests/codegen/random_programs.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "runtime/interpreter/interpreter.h"

namespace wick {

DType randomDType(Random& random) {
  if (random.oneIn(2)) return DType::Float;
  return random.of({DType::Float, DType::Double, DType::Half, DType::BFloat16, DType::Long,
                    DType::Int, DType::Short, DType::Char, DType::Byte, DType::Bool});
}

double randomValue(Random& random, DType dtype, bool huge) {
  if (dtype == DType::Bool) return random.below(2);
  if (isIntegral(dtype, false)) {
    return dtype == DType::Byte ? random.below(256) : random.below(256) - 128;
  }
  if (random.oneIn(12)) {
    const double edge = random.of({0.0, -0.0, 1.0, -1.0, 1e-40, 3e36, -1e30, 88.8, -104.0, 0.5,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()});
    return !huge && std::isfinite(edge) && std::fabs(edge) > 200 ? 3 : edge;
  }
  return (random.number() - 0.5) * random.of({2.0, 8.0, 60.0});
}

void fillRandomly(Random& random, const Tensor& t, bool huge) {
  dispatchAll(t.dtype(), [&]<class T>() {
    T* values = static_cast<T*>(t.rawData());
    for (int64_t i = 0; i < t.numel(); ++i)
      values[i] = convert<T>(randomValue(random, t.dtype(), huge));
  });
}

Tensor randomTensor(Random& random, const DimVector& full, DType dtype, bool huge) {
  size_t skipped =
      random.oneIn(3) ? static_cast<size_t>(random.below(static_cast<int>(full.size()) + 1)) : 0;
  DimVector sizes;
  for (size_t d = skipped; d < full.size(); ++d) {
    sizes.push_back(random.oneIn(6) ? 1 : full[d]);
  }
  if (sizes.empty() || random.oneIn(2)) {
    Tensor t = Tensor::empty(sizes, dtype);
    fillRandomly(random, t, huge);
    return t;
  }
  switch (random.below(4)) {
    case 0: {  // every second element, or a window
      DimVector larger = sizes;
      auto d = static_cast<size_t>(random.below(static_cast<int>(sizes.size())));
      int64_t step = 1 + random.below(2);
      larger[d] = larger[d] * step + 3;
      Tensor t = Tensor::empty(larger, dtype);
      fillRandomly(random, t, huge);
      auto at = static_cast<int64_t>(d);
      return t.slice(at, 2, 2 + sizes[d] * step, step);
    }
    case 1: {  // another order in memory
      DimVector order, permuted;
      for (size_t d = sizes.size(); d-- > 0;) order.push_back(static_cast<int64_t>(d));
      for (int64_t d : order) permuted.push_back(sizes[static_cast<size_t>(d)]);
      Tensor t = Tensor::empty(permuted, dtype);
      fillRandomly(random, t, huge);
      return t.permute(order);
    }
    case 2: {  // expanded
      DimVector base = sizes;
      base[static_cast<size_t>(random.below(static_cast<int>(sizes.size())))] = 1;
      Tensor t = Tensor::empty(base, dtype);
      fillRandomly(random, t, huge);
      return t.expand(sizes);
    }
    default: {
      Tensor t = Tensor::empty(sizes, dtype);
      fillRandomly(random, t, huge);
      return t;
    }
  }
}

Outcome runGraph(const std::shared_ptr<Graph>& graph, std::vector<IValue> arguments) {
  Outcome outcome;
  try {
    auto code = Code::build(graph, "forward");
    IValue result = runCode(*code, std::move(arguments));
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

namespace {

DimVector randomShape(Random& random, int min_rank, int max_rank) {
  DimVector shape(static_cast<size_t>(min_rank + random.below(max_rank + 1 - min_rank)));
  for (int64_t& size : shape) {
    size = random.oneIn(12) ? random.below(2) : 2 + random.below(random.oneIn(4) ? 70 : 9);
  }
  return shape;
}

class ProgramMaker {
 public:
  ProgramMaker(Random& random, bool reductions) : random_(random), reductions_(reductions) {}

  Program make() {
    DimVector shape = randomShape(random_, reductions_ ? 1 : 0, reductions_ ? 4 : 3);
    if (reductions_ && random_.fork().oneIn(50)) shape = longRows();
    DType dtype = randomDType(random_);
    std::string inputs;
    const int count = 1 + random_.below(4);
    for (int i = 0; i < count; ++i) {
      if (reductions_)
        dtype = random_.of({DType::Float, DType::Float, DType::Double, DType::Half});
      else if (random_.oneIn(3))
        dtype = randomDType(random_);
      Tensor t =
          reductions_ && i == 0 ? Tensor() : randomTensor(random_, shape, dtype, !reductions_);
      if (!t.defined()) t = firstTensor(shape, dtype);
      program_.arguments.emplace_back(t);
      inputs += fmt::format("{}%x{} : Tensor", i == 0 ? "" : ", ", i);
      values_.push_back(fmt::format("%x{}", i));
    }
    inputs += ", %s : float, %k : int";
    program_.arguments.emplace_back(randomValue(random_, DType::Float, !reductions_));
    program_.arguments.emplace_back(int64_t{random_.below(7) - 3});
    rank_ = static_cast<int>(shape.size());
    const int nodes = 1 + random_.below(8);
    for (int i = 0; i < nodes; ++i) node();
    std::string outputs = values_.back();
    // Others of the values may leave, too.
    for (size_t i = static_cast<size_t>(count); i + 1 < values_.size(); ++i) {
      if (random_.oneIn(6)) outputs += ", " + values_[i];
    }
    program_.text = text_.graph(inputs, outputs);
    return std::move(program_);
  }

 private:
  // Few rows, so long that threads share them.
  DimVector longRows() {
    DimVector shape;
    if (random_.oneIn(2)) shape.push_back(1 + random_.below(3));
    shape.push_back(140000 + random_.below(9));
    if (random_.oneIn(3)) shape.push_back(2);
    return shape;
  }
  // Has the whole shape; perhaps its dimensions lie in another order, with gaps between them.
  Tensor firstTensor(const DimVector& shape, DType dtype) {
    DimVector larger = shape, order;
    if (random_.oneIn(3)) {
      for (int64_t& size : larger) size += random_.below(2);
    }
    for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
    if (random_.oneIn(3)) {
      for (size_t d = shape.size(); d > 1; --d) {
        std::swap(order[d - 1], order[static_cast<size_t>(random_.below(static_cast<int>(d)))]);
      }
    }
    DimVector memory(shape.size()), places(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      memory[d] = larger[static_cast<size_t>(order[d])];
      places[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    }
    Tensor t = Tensor::empty(memory, dtype);
    fillRandomly(random_, t, !reductions_);
    t = t.permute(places);
    for (size_t d = 0; d < shape.size(); ++d) {
      t = t.slice(static_cast<int64_t>(d), 0, shape[d], 1);
    }
    return t;
  }
  std::string value() {
    return values_[static_cast<size_t>(random_.below(static_cast<int>(values_.size())))];
  }
  std::string constant(const std::string& type, const std::string& value) {
    return text_.constant(type, value);
  }
  std::string none() { return text_.none(); }
  std::string number() { return numberFor(text_, random_); }
  void emit(const std::string& op, const std::string& arguments) {
    values_.push_back(text_.node(op, arguments));
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
        return unary(
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

  // The sign of a NaN that arithmetic made is unspecified, and a product with -1 may become a
  // negation: what reads signs is given an argument.
  void unary(const std::string& op, const std::string& x) {
    emit(op, op == "signbit" ? values_[0] : x);
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
    const auto op = random_.of<std::string>({"mul",
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
                                             "pow"});
    emit(op, x + ", " + (op == "copysign" ? values_[0] : y));
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
    const int first = random_.below(std::max(rank_, 1));
    std::vector<std::string> which;
    for (int d = 0; d < rank_; ++d) {
      if (d != first && !random_.oneIn(3)) continue;
      which.push_back(constant("int", std::to_string(-1 - d)));
    }
    const std::string dims = text_.list("int", which);
    std::string keep = constant("bool", random_.oneIn(3) ? "False" : "True");
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
  GraphText text_;
  int rank_ = 0;
};

}  // namespace

std::string numberFor(GraphText& text, Random& random) {
  switch (random.below(4)) {
    case 0:
      return "%s";
    case 1:
      return "%k";
    case 2:
      return text.constant("int", std::to_string(random.below(9) - 4));
    default:
      return text.constant("float", fmt::format("{:.3f}", (random.number() - 0.5) * 6));
  }
}

Program randomProgram(Random& random, ProgramKind kind) {
  if (kind == ProgramKind::Structures) return randomStructures(random);
  return ProgramMaker(random, kind == ProgramKind::Reductions).make();
}

}  // namespace wick
