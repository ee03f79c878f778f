// Throughput of the front end, in lines a second, and the memory that a compiled program takes.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <string>

#include "frontend/compile.h"
#include "frontend/lexer.h"
#include "frontend/parser.h"
#include "tests/frontend/generated_programs.h"

namespace wick {
namespace {

constexpr size_t kLines = 20'000;

double linesOf(const std::string& text) {
  return static_cast<double>(std::count(text.begin(), text.end(), '\n'));
}

void reportLines(benchmark::State& state, const std::string& text) {
  state.counters["lines/s"] = benchmark::Counter(
      linesOf(text) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void lexer(benchmark::State& state, const GeneratedShape& shape) {
  const std::string text = shape.make(kLines);
  auto source = std::make_shared<Source>(text);
  for (auto _ : state) {
    Lexer lexer(source, Lexer::Mode::kProgram);
    size_t tokens = 0;
    while (lexer.next().kind != TK_EOF) ++tokens;
    benchmark::DoNotOptimize(tokens);
  }
  reportLines(state, text);
}

void parser(benchmark::State& state, const GeneratedShape& shape) {
  const std::string text = shape.make(kLines);
  for (auto _ : state) benchmark::DoNotOptimize(Parser(text).parseModule().size());
  reportLines(state, text);
}

// Everything: parsing, emitting, SSA, exits. "bytes/line" is the heap that the result keeps.
void compiler(benchmark::State& state, const GeneratedShape& shape) {
  const std::string text = shape.make(kLines);
  double kept = 0;
  for (auto _ : state) {
    size_t before = mallinfo2().uordblks;
    std::shared_ptr<CompilationUnit> unit = compileSource(text);
    kept = static_cast<double>(mallinfo2().uordblks - before);
  }
  reportLines(state, text);
  state.counters["bytes/line"] = kept / linesOf(text);
}

void registerAll() {
  for (const GeneratedShape& shape : generatedShapes()) {
    const std::string name = shape.name;
    benchmark::RegisterBenchmark(("lexer/" + name).c_str(), lexer, shape)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("parser/" + name).c_str(), parser, shape)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("compiler/" + name).c_str(), compiler, shape)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  wick::registerAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
