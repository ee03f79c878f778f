#include "aot/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/kernel_maker.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "ir/graph.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/random/checks.h"

namespace wick::aot {

namespace {

constexpr std::string_view kNamespace = "random::";

// Not what asks for the history of a tensor, which is the same in each call, although it is no pure function of the
// tensor.
bool isDraw(const Node* node) {
  static constexpr std::array<std::string_view, 3> kOfHistory = {"aten::is_leaf", "aten::_version",
                                                                 "prim::grad"};
  return node->isNondeterministic() &&
         std::ranges::find(kOfHistory, node->kind().qualString()) == kOfHistory.end();
}
bool isSeed(const Node* node) {
  return node->kind().qualString() == std::string_view("aten::manual_seed");
}
bool takesTensors(const Node* node) {
  return std::ranges::any_of(node->inputs(),
                             [](const Value* v) { return v->type()->kind() == TypeKind::Tensor; });
}
// Those that make a tensor of the device and let an operator on it draw.
bool makesTensor(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kMakers = {"aten::rand", "aten::randn",
                                                              "aten::randint", "aten::normal"};
  return std::ranges::find(kMakers, name) != kMakers.end();
}

}  // namespace

bool drawsNumbers(const FunctionStep& step) {
  return std::string_view(step.function).starts_with(kNamespace);
}

bool drawsNumbers(const Block* block) {
  return std::ranges::any_of(block->nodes(), [](const Node* node) {
    return isDraw(node) || isSeed(node) ||
           std::ranges::any_of(node->blocks(),
                               [](const Block* inner) { return drawsNumbers(inner); });
  });
}

void drawAhead(Block* block) {
  std::vector<Node*> nodes;
  for (Node* node : block->nodes()) {
    nodes.push_back(node);
    for (Block* inner : node->blocks()) drawAhead(inner);
  }
  for (Node* node : nodes) {
    const std::string_view name = node->kind().qualString();
    // Of the default generator, which may be told as None.
    const bool told = name == "aten::randperm" && node->inputs().size() == 6;
    const bool permutes =
        name == "aten::randperm" && (!told || node->input(1)->type()->kind() == TypeKind::None);
    if (!isSeed(node) && !permutes) {
      if (name == "aten::tensor" && node->isNondeterministic()) {
        throw NotAhead(
            fmt::format("tensor: one that requires a gradient is not available ahead of time\n{}",
                        node->range().highlight()));
      }
      if (isDraw(node) && !takesTensors(node) && !makesTensor(name)) {
        throw NotAhead(fmt::format("{}: its random numbers are not available ahead of time\n{}",
                                   node->kind().name(), node->range().highlight()));
      }
      continue;
    }
    Graph& graph = *block->graph();
    const RangeGuard range(&graph, node->range());
    if (isSeed(node)) {
      Node* const seed =
          graph.create(Symbol::fromQualString("wick::ahead_seed"), {node->input(0)}, 0);
      seed->insertBefore(node);
    } else {
      Node* const made = graph.create(Symbol::fromQualString("wick::ahead_permutation"),
                                      {node->input(0), node->input(told ? 2 : 1)});
      made->insertBefore(node);
      made->output()->setType(types::Tensor());
      node->output()->replaceAllUsesWith(made->output());
    }
    node->destroy();
  }
}

namespace {

void requireOwn(const Generator* generator) {
  if (generator == &defaultGenerator()) return;
  throw NotAhead(
      "random numbers of a generator of the program's own are not available ahead of "
      "time");
}

// The C++ type of what is written.
std::string typeOf(const char* op, const Tensor& t) {
  return t.dtype() == DType::Bool ? "uint8_t" : elementType(op, t);
}

void draw(const char* op, const std::string& function, std::vector<FunctionStep::Operand> operands,
          std::vector<int64_t> numbers, std::string complaint = "") {
  addFunction(op, std::string(kNamespace) + function, std::move(operands), std::move(numbers),
              std::move(complaint));
}

// Lets a function write the elements of a tensor in the order in which they lie in memory: write(dense).
template <class F>
Tensor fillDense(const Tensor& t, F&& write) {
  if (t.numel() == 0) return t;
  const Tensor sorted = ops::inMemoryOrder(t);
  if (sorted.isContiguous()) {
    write(sorted);
    return t;
  }
  const Tensor dense = Tensor::empty(sorted.sizes(), t.dtype(), t.device());
  write(dense);
  sorted.copyFrom(dense);
  return t;
}

// A function of two numbers.
Tensor fillBy(const char* op, const char* function, const Tensor& t, double first, double second,
              const Generator* g) {
  requireOwn(g);
  return fillDense(t, [&](const Tensor& to) {
    draw(op, fmt::format("{}<{}>", function, typeOf(op, to)),
         {reads(numbersOf(first, second)), writes(to)}, {to.numel()});
  });
}
void requireFloats(const char* op, const Tensor& t) {
  WICK_CHECK(isFloating(t.dtype()) || isComplex(t.dtype()), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(t.dtype()));
}

Tensor uniform(const Tensor& self, double from, double to, Generator* g) {
  ops::checkUniform(from, to);
  requireFloats("uniform_", self);
  return fillBy("uniform_", "uniformNumbers", self, from, to, g);
}

// Radii and angles: of each sixteen uniform numbers the first and the last eight.
void normalsInto(const Tensor& out, const Tensor& uniforms, double mean, double std) {
  const DimVector blocks{out.numel() / 16, 16};
  const Tensor from = uniforms.view(blocks), to = out.view(blocks);
  KernelMaker maker(DimVector{blocks[0], 8});
  const ExprBuilder b(maker.expression(), DType::Float);
  const auto number = [&](double v) { return b.constant(static_cast<float>(v)); };
  const ScalarExpr first = maker.load(from.narrow(1, 0, 8)),
                   second = maker.load(from.narrow(1, 8, 8));
  const ScalarExpr radius = b.sqrt(b.mul(number(-2), b.log(b.sub(number(1), first))));
  const ScalarExpr theta = b.mul(number(2 * std::numbers::pi), second);
  const auto scaled = [&](ScalarExpr v) {
    return b.add(b.mul(b.mul(radius, v), number(std)), number(mean));
  };
  const ScalarExpr low = scaled(b.cos(theta)), high = scaled(b.sin(theta));
  maker.store(low, to.narrow(1, 0, 8));
  maker.store(high, to.narrow(1, 8, 8));
  maker.finish("normal");
}
Tensor uniforms(int64_t count) {
  const Tensor t = Tensor::empty(DimVector{count}, DType::Float, Device{kAhead, -1});
  draw("normal", "uniformNumbers<float>", {reads(numbersOf(0, 1)), writes(t)}, {count});
  return t;
}

Tensor normal(const Tensor& self, double mean, double std, Generator* g) {
  const char* op = "normal_";
  ops::checkNormal(std);
  requireFloats(op, self);
  const int64_t count = self.numel();
  if (count < 16 || !self.isContiguous()) return fillBy(op, "normalNumbers", self, mean, std, g);
  requireOwn(g);
  if (self.dtype() == DType::Double) {
    draw(op, "normalBlocks", {reads(numbersOf(mean, std)), writes(self)}, {count});
    return self;
  }
  elementType(op, self);  // refuses others
  // A rest that fills no block draws the last sixteen again.
  const Tensor all = uniforms(count), flat = self.view(DimVector{count});
  const int64_t whole = count / 16 * 16;
  normalsInto(flat.narrow(0, 0, whole), all.narrow(0, 0, whole), mean, std);
  if (whole != count) normalsInto(flat.narrow(0, count - 16, 16), uniforms(16), mean, std);
  return self;
}

// The largest number of the dtype up to which there are no gaps.
int64_t lastWhole(DType dtype) {
  if (dtype == DType::Float || dtype == DType::Double) {
    return int64_t{1} << (dtype == DType::Float ? 24 : 53);
  }
  const int64_t bits = static_cast<int64_t>(itemSize(dtype)) * 8 - (dtype == DType::Byte ? 0 : 1);
  return static_cast<int64_t>((uint64_t{1} << bits) - 1);
}

Tensor integersFrom(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* g) {
  const char* op = "random_";
  requireOwn(g);
  elementType(op, self);  // refuses others
  const auto last = static_cast<uint64_t>(lastWhole(self.dtype()));
  if (to) ops::checkIntegers(op, from, *to);
  if (to && isIntegral(self.dtype(), false)) {
    const int64_t least = self.dtype() == DType::Byte ? 0 : -lastWhole(self.dtype()) - 1;
    WICK_CHECK(from >= least && *to - 1 <= lastWhole(self.dtype()),
               "random_: the bounds {} and {} are out of range for {}", from, *to,
               toString(self.dtype()));
  }
  // Of all numbers of 64 bits, which are one more than this counts, it is 0.
  const uint64_t range = (to ? static_cast<uint64_t>(*to) : last + 1) - static_cast<uint64_t>(from);
  return fillDense(self, [&](const Tensor& t) {
    draw(op, fmt::format("integers<{}>", elementType(op, t)), {writes(t)},
         {t.numel(), from, static_cast<int64_t>(range)});
  });
}
Tensor integersTo(const Tensor& self, int64_t to, Generator* g) {
  return integersFrom(self, 0, to, g);
}
Tensor wholeRange(const Tensor& self, Generator* g) {
  const char* op = "random_";
  requireOwn(g);
  return fillDense(self, [&](const Tensor& t) {
    draw(op, fmt::format("wholeRange<{}>", elementType(op, t)), {writes(t)}, {t.numel()});
  });
}

Tensor bernoulliBy(const Tensor& self, double p, Generator* g) {
  ops::checkBernoulli(p);
  return fillBy("bernoulli_", "chances", self, p, 0, g);
}
Tensor bernoulliOf(const Tensor& self, const Tensor& p, Generator* g) {
  const char* op = "bernoulli_";
  requireOwn(g);
  const Tensor chance = here(p).expand(self.sizes()).contiguous();
  return fillDense(self, [&](const Tensor& t) {
    draw(op, fmt::format("chancesOf<{}, {}>", typeOf(op, t), elementType(op, chance)),
         {reads(chance), writes(t)}, {t.numel()},
         "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  });
}
Tensor exponential(const Tensor& self, double lambda, Generator* g) {
  ops::checkExponential(lambda);
  requireFloats("exponential_", self);
  return fillBy("exponential_", "exponentialNumbers", self, lambda, 0, g);
}
Tensor cauchy(const Tensor& self, double median, double sigma, Generator* g) {
  requireFloats("cauchy_", self);
  return fillBy("cauchy_", "cauchyNumbers", self, median, sigma, g);
}
Tensor geometric(const Tensor& self, double p, Generator* g) {
  ops::checkGeometric(p);
  return fillBy("geometric_", "geometricNumbers", self, p, 0, g);
}
Tensor logNormal(const Tensor& self, double mean, double std, Generator* g) {
  ops::checkLogNormal(std);
  requireFloats("log_normal_", self);
  return fillBy("log_normal_", "logNormalNumbers", self, mean, std, g);
}

Tensor dropout(const Tensor& input, double p, bool train) {
  ops::checkDropout(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  WICK_CHECK(isFloating(input.dtype()), "dropout: expected a floating point tensor, got {}",
             toString(input.dtype()));
  if (p == 1) return ops::mulScalar(input, Scalar(0.0));
  const Tensor keep = Tensor::empty(input.sizes(), DType::Float, input.device());
  bernoulliBy(keep, 1 - p, &defaultGenerator());
  return ops::mul(input, Tensor(ops::divScalar(keep, Scalar(1 - p))).to(input.dtype()));
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, Generator* g) {
  requireOwn(g);
  const DimVector sizes = ops::multinomialSizes(self, samples, replacement);
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  const Tensor given = here(self);
  const Tensor weights =
      (isReducedFloat(self.dtype()) ? given.to(DType::Double) : given).contiguous();
  const Tensor out = Tensor::empty(sizes, DType::Long, weights.device());
  if (out.numel() == 0) return out;
  const Tensor keys = Tensor::empty(DimVector{n}, weights.dtype(), weights.device());
  const Tensor order = Tensor::empty(DimVector{n}, DType::Long, weights.device());
  draw("multinomial", fmt::format("positionsByWeight<{}>", elementType("multinomial", weights)),
       {reads(weights), writes(out), writes(keys), writes(order)},
       {rows, n, samples, replacement ? 1 : 0},
       "multinomial: weights must be numbers that are not negative, one of them above zero");
  return out;
}

const DeviceKernel kRandomKernels[] = {
    {"aten::uniform_", WICK_KERNEL(uniform)},
    {"aten::normal_", WICK_KERNEL(normal)},
    {"aten::random_", WICK_KERNEL(wholeRange)},
    {"aten::random_.from", WICK_KERNEL(integersFrom)},
    {"aten::random_.to", WICK_KERNEL(integersTo)},
    {"aten::bernoulli_.float", WICK_KERNEL(bernoulliBy)},
    {"aten::bernoulli_.Tensor", WICK_KERNEL(bernoulliOf)},
    {"aten::exponential_", WICK_KERNEL(exponential)},
    {"aten::cauchy_", WICK_KERNEL(cauchy)},
    {"aten::geometric_", WICK_KERNEL(geometric)},
    {"aten::log_normal_", WICK_KERNEL(logNormal)},
    {"aten::dropout", WICK_KERNEL(dropout)},
    {"aten::multinomial", WICK_KERNEL(multinomial)},
};
const RegisterDeviceKernels kRandomRegistered(kAhead, kRandomKernels);

// ---- the operators of drawAhead() ----

void seed(CallFrame& frame) {
  addFunction("manual_seed", std::string(kNamespace) + "begin", {}, {frame.args[0].toInt()});
}
void permutation(CallFrame& frame) {
  const int64_t count = frame.args[0].toInt();
  WICK_CHECK(count >= 0, "n must be non-negative, got {}", count);
  const Tensor t = Tensor::empty(DimVector{count}, DType::Long, Device{kAhead, -1});
  if (count > 0) draw("randperm", "permutation", {writes(t)}, {count});
  const IValue& dtype = frame.args[1];
  frame.results[0] = t.to(dtype.isNone() ? DType::Long : static_cast<DType>(dtype.toInt()));
}
constexpr uint64_t kFlags = kAnyKind | kNotDifferentiable | kSideEffects;
const OperatorRecord kRandomRecords[] = {
    {"wick::ahead_seed(int seed) -> ()", seed, kFlags},
    {"wick::ahead_permutation(int n, ScalarType? dtype) -> Tensor", permutation, kFlags},
};
const RegisterOperators operators(kRandomRecords);

}  // namespace

}  // namespace wick::aot
