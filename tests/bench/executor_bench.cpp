// What it costs to find the plan for a call: the signature of ten tensors, the look-up among plans,
// and a whole call.
#include <fmt/core.h>
#include <time.h>

#include "ir/parser.h"
#include "runtime/call.h"
#include "runtime/executor/graph_executor.h"

namespace wick {
namespace {

constexpr int kCalls = 200000;
constexpr int kRounds = 9;

double nowNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class F>
void measure(const char* name, F&& f) {
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    double begin = nowNs();
    for (int i = 0; i < kCalls; ++i) f();
    best = std::min(best, (nowNs() - begin) / kCalls);
  }
  fmt::print("{:44} {:8.1f} ns\n", name, best);
}

std::string program(bool asks) {
  std::string text = "graph(";
  for (int i = 0; i < 10; ++i) text += fmt::format("{}%x{} : Tensor", i ? ", " : "", i);
  text += "):\n";
  if (!asks) return text + "  return (%x0)\n";
  return text + R"(  %d : int = prim::dtype(%x0)
  %six : int = prim::Constant[value=6]()
  %c : bool = aten::eq(%d, %six)
  %y : Tensor = prim::If(%c)
    block0():
      -> (%x0)
    block1():
      -> (%x1)
  return (%y)
)";
}

void run() {
  std::vector<IValue> arguments;
  for (int64_t i = 0; i < 10; ++i) arguments.emplace_back(Tensor::zeros({i + 1, 4}, DType::Float));
  GraphFunction plain("__torch__.plain", parseGraph(program(false)));
  GraphFunction asking("__torch__.asking", parseGraph(program(true)));
  ArgumentPlaces places(*asking.graph());
  uint64_t sum = 0;
  measure("signature of ten tensors", [&] { sum += ArgumentSpec(places, arguments).hash(); });
  for (GraphFunction* f : {&plain, &asking}) {
    GraphExecutor& executor = GraphExecutor::of(*f);
    const char* kind = f == &plain ? "one code" : "plans";
    measure(fmt::format("look-up, {}", kind).c_str(),
            [&] { sum += executor.codeFor(arguments).numInputs(); });
    measure(fmt::format("call, {}", kind).c_str(), [&] { callFunction(*f, arguments); });
  }
  if (sum == 0) fmt::print("\n");
}

}  // namespace
}  // namespace wick

int main() {
  wick::run();
}
