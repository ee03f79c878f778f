// What the interpreter adds to a tensor operator's kernel: chains of 64 operators on small tensors,
// and the loops of the same kernels over tensors that are there already.
//
//   bazel run -c opt //tests/bench:operator_bench
//
// "over" is the difference an operator, in nanoseconds. In a chain every intermediate is dead after
// its use; where values are kept, each is returned and needs memory of its own.
#include <benchmark/benchmark.h>

#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "core/allocator.h"
#include "ir/parser.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"

namespace wick {
namespace {

constexpr int kLength = 64;

// add, relu, mul in turns; `kept` returns every value.
std::string chainText(bool kept) {
  std::string text =
      "graph(%x0 : Tensor, %y : Tensor):\n  %one : int = prim::Constant[value=1]()\n";
  std::string all;
  for (int i = 0; i < kLength; ++i) {
    const char* form = i % 3 == 0   ? "  %x{} : Tensor = aten::add(%x{}, %y, %one)\n"
                       : i % 3 == 1 ? "  %x{} : Tensor = aten::relu(%x{})\n"
                                    : "  %x{} : Tensor = aten::mul(%x{}, %y)\n";
    text += fmt::format(fmt::runtime(form), i + 1, i);
    all += fmt::format("{}%x{}", i == 0 ? "" : ", ", i + 1);
  }
  if (!kept) return text + fmt::format("  return (%x{})\n", kLength);
  return text + fmt::format("  %all : Tensor[] = prim::ListConstruct({})\n  return (%all)\n", all);
}

double secondsNow() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void bareChain(const std::vector<Tensor>& values, const Tensor& y) {
  const auto& add = kScalar<scalar::Add>.entry(DType::Float);
  const auto& relu = kScalar<scalar::Relu>.entry(DType::Float);
  const auto& mul = kScalar<scalar::Mul>.entry(DType::Float);
  for (size_t i = 0; i < kLength; ++i) {
    const void* inputs[] = {values[i].rawData(), y.rawData()};
    const auto& entry = i % 3 == 0 ? add : i % 3 == 1 ? relu : mul;
    entry.loop(values[i + 1].rawData(), inputs, y.numel());
  }
}

void chain(benchmark::State& state, bool kept) {
  const int64_t n = state.range(0);
  auto code = Code::build(parseGraph(chainText(kept)), "chain");
  Tensor x = Tensor::full({n}, 0.5, DType::Float);
  Tensor y = Tensor::full({n}, 1.0, DType::Float);
  std::vector<Tensor> values(1, x);
  for (int i = 0; i < kLength; ++i) values.push_back(Tensor::zeros({n}, DType::Float));
  auto interpreted = [&] { benchmark::DoNotOptimize(runCode(*code, {x, y})); };
  for (int i = 0; i < 10; ++i) interpreted();
  const uint64_t asked = allocatorStatistics().system_allocations;
  double bare = 1e9;
  double best = 1e9;
  for (auto _ : state) {
    double begin = secondsNow();
    interpreted();
    double middle = secondsNow();
    bareChain(values, y);
    bare = std::min(bare, secondsNow() - middle);
    best = std::min(best, middle - begin);
  }
  state.counters["over"] = (best - bare) / kLength * 1e9;
  state.counters["kernel"] = bare / kLength * 1e9;
  state.counters["system_allocations"] =
      static_cast<double>(allocatorStatistics().system_allocations - asked);
}

BENCHMARK_CAPTURE(chain, dead, false)->Arg(1)->Arg(64)->Arg(1024);
BENCHMARK_CAPTURE(chain, kept, true)->Arg(1)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  wick::setJitMode(wick::JitMode::Off);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
