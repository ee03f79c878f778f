// Random chains of operators that write to a tensor, as kernels and one by one. What the arguments
// become is compared too, also when an operator raises.
#include <fmt/format.h>

#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/write_groups.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/jit_mode.h"
#include "tests/codegen/check_fusion.h"
#include "tests/codegen/random_programs.h"

namespace wick {

namespace {

// Copies of all arguments, which share memory as the arguments do.
std::vector<IValue> copied(const std::vector<IValue>& arguments) {
  std::vector<std::pair<const void*, Tensor>> memory;
  std::vector<IValue> copies;
  for (const IValue& a : arguments) {
    if (!a.isTensor()) {
      copies.push_back(a);
      continue;
    }
    const Tensor t = a.toTensor();
    const void* data = t.storage()->data();
    Tensor all;
    for (const auto& [known, copy] : memory) {
      if (known == data) all = copy;
    }
    if (!all.defined()) {
      const auto items = static_cast<int64_t>(t.storage()->bytes() / t.itemSize());
      all = t.asStrided({items}, {1}, 0).clone();
      memory.emplace_back(data, all);
    }
    copies.emplace_back(all.asStrided(t.sizes(), t.strides(), t.offset()));
  }
  return copies;
}

class WriteProgram {
 public:
  explicit WriteProgram(Random& random) : random_(random) {}

  Program make() {
    DimVector shape(static_cast<size_t>(random_.below(4)));
    for (int64_t& size : shape) size = random_.oneIn(8) ? random_.below(2) : 2 + random_.below(40);
    DType dtype = randomDType(random_);
    Tensor x = Tensor::empty(shape, dtype);
    fillRandomly(random_, x);
    if (random_.oneIn(3)) x = randomTensor(random_, shape, dtype);
    Program program;
    program.arguments.emplace_back(x);
    std::string inputs = "%x : Tensor";
    for (const char* name : {"%y", "%z"}) {
      if (!random_.oneIn(3)) dtype = x.dtype();
      Tensor t = randomTensor(random_, DimVector(x.sizes()), dtype);
      if (random_.oneIn(10)) t = x;
      if (random_.oneIn(10) && x.dim() > 1) t = x.transpose(0, 1);
      program.arguments.emplace_back(t);
      inputs += fmt::format(", {} : Tensor", name);
      others_.push_back(name);
      dtype = randomDType(random_);
    }
    inputs += ", %s : float, %k : int";
    program.arguments.emplace_back(randomValue(random_, DType::Float));
    program.arguments.emplace_back(int64_t{random_.below(7) - 3});
    const int nodes = 2 + random_.below(6);
    for (int i = 0; i < nodes; ++i) node();
    std::string outputs = written_.back();
    for (const std::string& v : others_) {
      if (random_.oneIn(3)) outputs += ", " + v;
    }
    program.text = text_.graph(inputs, outputs);
    return program;
  }

 private:
  std::string constant(const std::string& type, const std::string& value) {
    return text_.constant(type, value);
  }
  std::string number() { return numberFor(text_, random_); }
  template <class T>
  T anyOf(const std::vector<T>& list) {
    return list[static_cast<size_t>(random_.below(static_cast<int>(list.size())))];
  }
  void emit(const std::string& op, const std::string& arguments, std::vector<std::string>& into) {
    into.push_back(text_.node(op, arguments));
  }

  void node() {
    const bool writes = !random_.oneIn(4);
    const std::string end = writes ? "_" : "";
    std::vector<std::string>& into = writes ? written_ : others_;
    const std::string x = writes             ? anyOf(written_)
                          : random_.oneIn(2) ? anyOf(written_)
                                             : anyOf(others_);
    const std::string y =
        random_.oneIn(2) ? number() : anyOf(random_.oneIn(4) ? written_ : others_);
    switch (random_.below(6)) {
      case 0:
        return emit(random_.of<std::string>({"relu", "neg", "abs", "tanh", "sigmoid", "exp",
                                             "floor", "square", "sqrt"}) +
                        end,
                    x, into);
      case 1:
        return emit("clamp" + end, fmt::format("{}, {}, {}", x, number(), number()), into);
      case 2:
        return emit("add" + end, fmt::format("{}, {}, {}", x, y, constant("int", "1")), into);
      case 3:
        return emit("sub" + end, fmt::format("{}, {}, {}", x, y, constant("int", "2")), into);
      case 4:
        return emit("addcmul" + end,
                    fmt::format("{}, {}, {}, {}", x, anyOf(others_), anyOf(others_),
                                constant("float", "0.5")),
                    into);
      default:
        return emit(random_.of<std::string>({"mul", "div"}) + end, x + ", " + y, into);
    }
  }

  Random& random_;
  std::vector<std::string> written_{"%x"}, others_;
  GraphText text_;
};

}  // namespace

FusionCheck checkWrites(uint64_t seed) {
  Random random(seed);
  const Program program = WriteProgram(random).make();
  setJitMode(JitMode::Sync);
  auto grouped = parseGraph(program.text);
  formKernelGroups(*grouped);
  verify(*grouped);
  const FusionStatistics before = fusionStatistics();
  const std::vector<IValue> expected_arguments = copied(program.arguments),
                            got_arguments = copied(program.arguments);
  const Outcome expected = runGraph(parseGraph(program.text), expected_arguments);
  const Outcome got = runGraph(grouped, got_arguments);
  FusionCheck result;
  result.fused = fusionStatistics().launches > before.launches;
  const auto fail = [&](const std::string& what) {
    result.failure = fmt::format("seed {}: {}\n{}", seed, what, program.text);
    for (const IValue& a : program.arguments) {
      result.failure += fmt::format("  {}\n", a.isTensor() ? a.toTensor().describe() : a.repr());
    }
    return result;
  };
  // Of several operators that raise, another may come first: those that write nothing may move.
  const auto message = [](const std::string& error) {
    const size_t line = error.rfind('\n');
    return line == std::string::npos ? error : error.substr(line + 1);
  };
  if (message(got.error) != message(expected.error)) {
    return fail(fmt::format("'{}' instead of '{}'", got.error, expected.error));
  }
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    const std::string d = differenceOf(got.tensors[i], expected.tensors[i], 0, true);
    if (!d.empty()) return fail(fmt::format("output {}: {}", i, d));
  }
  for (size_t i = 0; i < expected_arguments.size(); ++i) {
    if (!expected_arguments[i].isTensor()) continue;
    const std::string d =
        differenceOf(got_arguments[i].toTensor(), expected_arguments[i].toTensor(), 0, true);
    if (!d.empty()) return fail(fmt::format("argument {}: {}", i, d));
  }
  return result;
}

}  // namespace wick
