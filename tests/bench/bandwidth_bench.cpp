// What share of the machine's copy bandwidth kernels reach on tensors that no cache holds.
//
//   bazel run -c opt //tests/bench:bandwidth_bench [-- MEGABYTES THREADS COLUMNS]
//
// Bytes are those that a kernel has to read and to write once. Copying is memcpy by the same
// threads in the same pieces; "streaming" writes past the caches, which memcpy does not do at all
// sizes.
#include <fmt/format.h>
#include <immintrin.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "core/parallel.h"
#include "ir/function.h"
#include "ir/parser.h"
#include "runtime/call.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/jit_mode.h"
#include "runtime/threads.h"

namespace wick {
namespace {

constexpr int kCalls = 40;

// Seconds of the fastest call.
template <class F>
double best(F&& f) {
  using Clock = std::chrono::steady_clock;
  double least = 1e9;
  for (int i = 0; i < kCalls; ++i) {
    const Clock::time_point begin = Clock::now();
    f();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

void streamingCopy(float* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
    _mm256_stream_ps(to + i + 8, _mm256_load_ps(from + i + 8));
  }
  _mm_sfence();
}

struct Case {
  const char* name;
  const char* body;  // from %x, and %v with a row's elements, to %y
  int passes;        // of the whole tensor through memory: 1 reads it, 2 writes it too
};

constexpr Case kCases[] = {
    {"x * 2 + 1", "%a : Tensor = aten::mul(%x, %two)\n  %y : Tensor = aten::add(%a, %one, %one)",
     2},
    {"relu(x + v) * x",
     "%a : Tensor = aten::add(%x, %v, %one)\n  %b : Tensor = aten::relu(%a)\n"
     "  %y : Tensor = aten::mul(%b, %x)",
     2},
    {"sigmoid(x) * x", "%a : Tensor = aten::sigmoid(%x)\n  %y : Tensor = aten::mul(%a, %x)", 2},
    {"gelu(x + v)",
     "%a : Tensor = aten::add(%x, %v, %one)\n  %exact : str = prim::Constant[value=\"none\"]()\n"
     "  %y : Tensor = aten::gelu(%a, %exact)",
     2},
    {"(x * x).sum(-1)",
     "%a : Tensor = aten::mul(%x, %x)\n  %y : Tensor = aten::sum(%a, %last, %no, %none)", 1},
    {"(x * x).sum(0)",
     "%a : Tensor = aten::mul(%x, %x)\n  %y : Tensor = aten::sum(%a, %first, %no, %none)", 1},
    {"softmax(x * 2, -1)",
     "%a : Tensor = aten::mul(%x, %two)\n  %y : Tensor = aten::softmax(%a, %minus, %none)", 2},
    {"layer_norm(x + v)",
     "%a : Tensor = aten::add(%x, %v, %one)\n"
     "  %y : Tensor = aten::layer_norm(%a, %sizes, %v, %v, %eps, %no)",
     2},
};

constexpr const char* kHead = R"(graph(%x : Tensor, %v : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %minus : int = prim::Constant[value=-1]()
  %zero : int = prim::Constant[value=0]()
  %no : bool = prim::Constant[value=False]()
  %none : NoneType = prim::Constant()
  %eps : float = prim::Constant[value=1.0e-5]()
  %last : int[] = prim::ListConstruct(%minus)
  %first : int[] = prim::ListConstruct(%zero)
  )";

void run(int64_t megabytes, int64_t columns) {
  const int64_t rows = megabytes * (1 << 20) / 4 / columns;
  const int64_t n = rows * columns;
  Tensor x = Tensor::full({rows, columns}, 0.5, DType::Float);
  Tensor v = Tensor::full({columns}, 0.25, DType::Float);
  Tensor to = Tensor::zeros({rows, columns}, DType::Float);
  float* out = to.data<float>();
  const float* in = x.data<float>();
  auto gigabytes = [&](double seconds, int passes) {
    return static_cast<double>(passes) * 4e-9 * static_cast<double>(n) / seconds;
  };
  const double copying = gigabytes(best([&] {
                                     parallelFor(n / 64, 1, [&](int64_t begin, int64_t end) {
                                       std::memcpy(out + begin * 64, in + begin * 64,
                                                   static_cast<size_t>(end - begin) * 256);
                                     });
                                   }),
                                   2);
  const double streaming =
      gigabytes(best([&] {
                  parallelFor(n / 64, 1, [&](int64_t begin, int64_t end) {
                    streamingCopy(out + begin * 64, in + begin * 64, (end - begin) * 64);
                  });
                }),
                2);
  fmt::print("{} MB a tensor, {} threads: memcpy {:.1f} GB/s, streaming {:.1f} GB/s\n\n", megabytes,
             numThreads(), copying, streaming);
  fmt::print("{:20} {:>8} {:>10} {:>13}\n", "kernel", "GB/s", "of memcpy", "of streaming");
  for (const Case& c : kCases) {
    GraphFunction function(
        fmt::format("__torch__.{}", c.name),
        parseGraph(
            fmt::format("{}%sizes : int[] = prim::Constant[value=[{}]]()\n  {}\n  return (%y)\n",
                        kHead, columns, c.body)));
    auto call = [&] { callFunction(function, {IValue(x), IValue(v)}); };
    call();
    const uint64_t launches = fusionStatistics().launches;
    const double rate = gigabytes(best(call), c.passes);
    const bool fused = fusionStatistics().launches - launches == kCalls;
    fmt::print("{:20} {:8.1f} {:9.0f}% {:12.0f}%{}\n", c.name, rate, 100 * rate / copying,
               100 * rate / streaming, fused ? "" : "  (not one kernel)");
  }
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  wick::setJitMode(wick::JitMode::Sync);
  if (argc > 2) wick::setNumThreads(std::atoi(argv[2]));
  wick::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 128,
            argc > 3 ? std::max(64, std::atoi(argv[3])) / 64 * 64 : 2048);
  return 0;
}
