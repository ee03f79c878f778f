// How the calls a second of threads that share modules and programs grow with their number:
//
//   bazel run -c opt //tests/bench:serve_bench -- $PWD/examples [SECONDS [MOST_THREADS [CALLS
//   CASE]]]
//
// "machine" is arithmetic that shares nothing: how much faster so many threads can be here at all.
// With CALLS it makes so many of one case (0, 1, …) on one thread and measures nothing: the
// difference of two such runs under callgrind says what a call costs.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "wick.h"

namespace wick {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kScript = R"(
def steps(x: Tensor, n: int) -> Tensor:
    y = x
    for i in range(n):
        y = torch.relu(y * 1.01 - 0.5) + x
    return y

def ints(n: int) -> int:
    a = 0
    for i in range(n):
        a = (a * 31 + i) % 1000003
    return a

class Point:
    def __init__(self, x: int, y: int):
        self.x = x
        self.y = y

def lists(n: int) -> int:
    total = 0
    for i in range(n):
        p = Point(i, i + 1)
        sizes = [p.x, p.y]
        total += len(sizes) + sizes[1]
    return total
)";

struct Case {
  const char* name;
  // One call; `own` is a tensor of the calling thread.
  std::function<void(const Tensor& own)> call;
};

volatile int64_t sink;
void arithmetic() {
  int64_t a = 0;
  for (int64_t i = 0; i < 1000; ++i) a = (a * 31 + i) % 1000003;
  sink = a;
}

double callsPerSecond(const Case& c, int threads, double seconds) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0};
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      const Tensor own = Tensor::zeros({64}, DType::Float);
      for (int warm = 0; warm < 20; ++warm) c.call(own);
      ++ready;
      while (!go) std::this_thread::yield();
      int64_t made = 0;
      for (; !stop.load(std::memory_order_relaxed); ++made) c.call(own);
      calls += made;
    });
  }
  while (ready < threads) std::this_thread::yield();
  const auto begin = Clock::now();
  go = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
  for (auto& thread : pool) thread.join();
  return static_cast<double>(calls) / passed;
}

int run(const std::string& directory, double seconds, int most_threads, int64_t calls,
        size_t only) {
  setNumThreads(1);
  const Module digits = load(directory + "/digits.pt");
  digits.eval();
  const auto frozen = optimizeForInference(digits.object(), digits.method("forward"));
  const Tensor image = Tensor::zeros({1, 1, 28, 28}, DType::Float);
  const Tensor row = Tensor::zeros({64}, DType::Float);
  const Program program = compile(kScript);
  const std::vector<Case> cases = {
      {"machine", [&](const Tensor&) { arithmetic(); }},
      {"digits", [&](const Tensor&) { digits.forward({image}); }},
      {"digits, frozen", [&](const Tensor&) { callFunction(*frozen, {image}); }},
      {"ten tensor steps",
       [&](const Tensor& own) {
         program.call("steps", {own, int64_t{10}});
       }},
      {"ten tensor steps, one tensor for all",
       [&](const Tensor&) {
         program.call("steps", {row, int64_t{10}});
       }},
      {"integers", [&](const Tensor&) { program.call("ints", {int64_t{100}}); }},
      {"objects and lists", [&](const Tensor&) { program.call("lists", {int64_t{10}}); }},
  };
  if (calls > 0) {
    for (int64_t i = 0; i < calls; ++i) cases.at(only).call(row);
    return 0;
  }
  // Machine code is made before anything counts.
  for (const Case& c : cases) callsPerSecond(c, 1, 0.5);
  for (const Case& c : cases) {
    double one = 0;
    for (int threads = 1; threads <= most_threads; threads *= 2) {
      const double rate = callsPerSecond(c, threads, seconds);
      if (threads == 1) one = rate;
      std::printf("%-38s %3d threads %12.0f calls/s %6.2fx\n", c.name, threads, rate, rate / one);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "examples";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 2.0;
  const int most_threads = argc > 3 ? std::atoi(argv[3]) : 16;
  const int64_t calls = argc > 4 ? std::atoll(argv[4]) : 0;
  const size_t only = argc > 5 ? static_cast<size_t>(std::atoll(argv[5])) : 0;
  return wick::run(directory, seconds, most_threads, calls, only);
}
