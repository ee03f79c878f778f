// Time of scalar loops: in the interpreter, as machine code, and as C++ compiled with -O2.
#include <fmt/core.h>
#include <time.h>

#include <cstdlib>

#include "ir/parser.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"
#include "runtime/native/native_compiler.h"
#include "tests/bench/scalar_loops.h"

namespace wick {
namespace {

const char* const kFibonacci = R"(graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %m : int = prim::Constant[value=1000000007]()
  %true : bool = prim::Constant[value=True]()
  %x : int, %y : int = prim::Loop(%n, %true, %0, %1)
    block0(%i : int, %a : int, %b : int):
      %s : int = aten::add(%a, %b)
      %r : int = aten::remainder(%s, %m)
      -> (%true, %b, %r)
  return (%x))";

const char* const kCollatz = R"(graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=True]()
  %trips : int = aten::sub(%n, %1)
  %best : int = prim::Loop(%trips, %true, %0)
    block0(%k : int, %best.1 : int):
      %x0 : int = aten::__derive_index(%k, %1, %1)
      %c0 : bool = aten::ne(%x0, %1)
      %x : int, %steps : int = prim::Loop(%max, %c0, %x0, %0)
        block0(%i : int, %x.1 : int, %steps.1 : int):
          %rest : int = aten::remainder(%x.1, %2)
          %even : bool = aten::eq(%rest, %0)
          %x.2 : int = prim::If(%even)
            block0():
              %half : int = aten::floordiv(%x.1, %2)
              -> (%half)
            block1():
              %triple : int = aten::mul(%x.1, %3)
              %more : int = aten::add(%triple, %1)
              -> (%more)
          %steps.2 : int = aten::add(%steps.1, %1)
          %c : bool = aten::ne(%x.2, %1)
          -> (%c, %x.2, %steps.2)
      %better : bool = aten::gt(%steps, %best.1)
      %best.2 : int = prim::If(%better)
        block0():
          -> (%steps)
        block1():
          -> (%best.1)
      -> (%true, %best.2)
  return (%best))";

const char* const kMandelbrot = R"(graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %100 : int = prim::Constant[value=100]()
  %z : float = prim::Constant[value=0.]()
  %w : float = prim::Constant[value=3.5]()
  %f1 : float = prim::Constant[value=1.]()
  %f2 : float = prim::Constant[value=2.]()
  %f25 : float = prim::Constant[value=2.5]()
  %f4 : float = prim::Constant[value=4.]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %count : int = prim::Loop(%n, %true, %0)
    block0(%py : int, %count.1 : int):
      %count.4 : int = prim::Loop(%n, %true, %count.1)
        block0(%px : int, %count.2 : int):
          %fx : float = aten::Float(%px)
          %fn : float = aten::Float(%n)
          %qx : float = aten::div(%fx, %fn)
          %sx : float = aten::mul(%qx, %w)
          %x0 : float = aten::sub(%sx, %f25)
          %fy : float = aten::Float(%py)
          %qy : float = aten::div(%fy, %fn)
          %sy : float = aten::mul(%qy, %f2)
          %y0 : float = aten::sub(%sy, %f1)
          %x.9 : float, %y.9 : float, %i.9 : int = prim::Loop(%max, %true, %z, %z, %0)
            block0(%k : int, %x.1 : float, %y.1 : float, %i.1 : int):
              %xx : float = aten::mul(%x.1, %x.1)
              %yy : float = aten::mul(%y.1, %y.1)
              %d : float = aten::sub(%xx, %yy)
              %t : float = aten::add(%d, %x0)
              %u : float = aten::mul(%f2, %x.1)
              %v : float = aten::mul(%u, %y.1)
              %y.2 : float = aten::add(%v, %y0)
              %i.2 : int = aten::add(%i.1, %1)
              %xx2 : float = aten::mul(%t, %t)
              %yy2 : float = aten::mul(%y.2, %y.2)
              %r : float = aten::add(%xx2, %yy2)
              %c1 : bool = aten::le(%r, %f4)
              %c2 : bool = prim::If(%c1)
                block0():
                  %c3 : bool = aten::lt(%i.2, %100)
                  -> (%c3)
                block1():
                  -> (%false)
              -> (%c2, %t, %y.2, %i.2)
          %count.3 : int = aten::add(%count.2, %i.9)
          -> (%true, %count.3)
      -> (%true, %count.4)
  return (%count))";

constexpr int kRounds = 9;

// Processor time of this thread: what else the machine does counts less.
double nowMs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class F>
double bestMs(int64_t& result, F&& f) {
  double best = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    double start = nowMs();
    result = f();
    best = std::min(best, nowMs() - start);
  }
  return best;
}

void measure(const char* name, const char* text, int64_t argument, int64_t (*c)(int64_t),
             double instructions) {
  auto code = Code::build(parseGraph(text), name);
  auto run = [&] { return runCode(*code, {argument}).toInt(); };
  int64_t results[3];
  setJitMode(JitMode::Off);
  double interpreted = bestMs(results[0], run);
  setJitMode(JitMode::Background);
  auto fresh = Code::build(parseGraph(text), name);
  double start = nowMs();
  runCode(*fresh, {argument});
  double first = nowMs() - start;
  native::finishBackgroundCompilation();
  setJitMode(JitMode::Sync);
  setJitThreshold(0);
  double compiled = bestMs(results[1], run);
  double in_c = bestMs(results[2], [&] { return c(argument); });
  fmt::print("{}({}) = {}: interpreter {:.2f} ms", name, argument, results[0], interpreted);
  if (instructions > 0) fmt::print(" ({:.2f} ns an instruction)", interpreted * 1e6 / instructions);
  fmt::print(", first call with background compilation {:.2f} ms", first);
  fmt::print(", compiled {:.2f} ms, C {:.2f} ms, ratio {:.2f}\n", compiled, in_c, compiled / in_c);
  if (results[1] != results[0] || results[2] != results[0]) fmt::print("  RESULTS DIFFER\n");
  if (std::getenv("WICK_BENCH_LISTING")) fmt::print("{}", code->str());
  if (std::getenv("WICK_BENCH_ASSEMBLY")) fmt::print("{}", native::assemblyText(*code));
}

}  // namespace
}  // namespace wick

int main() {
  // Five instructions an iteration; the average path of collatz has 5.3.
  wick::measure("fib", wick::kFibonacci, 1000000, wick::fibonacciInC, 5e6);
  wick::measure("collatz", wick::kCollatz, 20000, wick::collatzInC, 2154000 * 5.33);
  wick::measure("mandelbrot", wick::kMandelbrot, 64, wick::mandelbrotInC, 0);
}
