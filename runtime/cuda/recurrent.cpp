#include "runtime/cuda/recurrent.h"

#include <fmt/format.h>

#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"

namespace wick::cuda {

namespace {

constexpr const char* kCommon = R"({preamble}
typedef {type} T;
typedef {wide} A;
__device__ __forceinline__ A get(const T* from) {{
  const T e = *from;
  return {load};
}}
__device__ __forceinline__ void put(T* to, A v) {{ *to = {store}; }}
__device__ __forceinline__ A sigmoid(A v) {{ return (A)1 / ((A)1 + exp(-v)); }}
)";

// A thread a cell; `g` is its place among the gates.
constexpr const char* kStep = R"(
struct Words {
  const T* gates; const T* hidden; const T* c; T* activated; T* next_c; T* next_h;
  long long total, size;
};
extern "C" __global__ void __launch_bounds__(256) lstm_step(const __grid_constant__ Words p) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {
    const long long h = p.size, g = i + i / h * 3 * h;
    const A in = sigmoid(get(p.gates + g) + get(p.hidden + g));
    const A forget = sigmoid(get(p.gates + g + h) + get(p.hidden + g + h));
    const A cell = tanh(get(p.gates + g + 2 * h) + get(p.hidden + g + 2 * h));
    const A out = sigmoid(get(p.gates + g + 3 * h) + get(p.hidden + g + 3 * h));
    const A next = forget * get(p.c + i) + in * cell;
    put(p.activated + g, in);
    put(p.activated + g + h, forget);
    put(p.activated + g + 2 * h, cell);
    put(p.activated + g + 3 * h, out);
    put(p.next_c + i, next);
    put(p.next_h + i, out * tanh(next));
  }
}
)";

constexpr const char* kGradient = R"(
struct Words {
  const T* grad_h; const T* more_grad_h; const T* grad_next_c; const T* activated; const T* c;
  const T* next_c; T* grad_gates; T* grad_c; long long total, size;
};
extern "C" __global__ void __launch_bounds__(256) lstm_step_gradient(const __grid_constant__ Words p) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {
    const long long h = p.size, g = i + i / h * 3 * h;
    A dh = get(p.grad_h + i);
    if (p.more_grad_h) dh += get(p.more_grad_h + i);
    const A in = get(p.activated + g), forget = get(p.activated + g + h);
    const A cell = get(p.activated + g + 2 * h), out = get(p.activated + g + 3 * h);
    const A shown = tanh(get(p.next_c + i));
    const A dc = get(p.grad_next_c + i) + dh * out * ((A)1 - shown * shown);
    put(p.grad_gates + g, dc * cell * in * ((A)1 - in));
    put(p.grad_gates + g + h, dc * get(p.c + i) * forget * ((A)1 - forget));
    put(p.grad_gates + g + 2 * h, dc * in * ((A)1 - cell * cell));
    put(p.grad_gates + g + 3 * h, dh * shown * out * ((A)1 - out));
    put(p.grad_c + i, dc * forget);
  }
}
)";

void queue(const Tensor& c, const char* body, const char* name, std::vector<int64_t> words) {
  const std::string text =
      textOf(kCommon, c.dtype(), fmt::arg("store", narrowedText("v", c.dtype()))) + body;
  words.push_back(c.numel());
  words.push_back(c.size(1));
  launchPoints(c.device(), text, name, c.numel(), words);
}

}  // namespace

void lstmStep(const LstmStep& s) {
  queue(s.c, kStep, "lstm_step",
        {wordOf(s.gates), wordOf(s.hidden), wordOf(s.c), wordOf(s.activated), wordOf(s.next_c),
         wordOf(s.next_h)});
}

void lstmStepGradient(const LstmStepGradient& s) {
  queue(s.c, kGradient, "lstm_step_gradient",
        {wordOf(s.grad_h), wordOf(s.more_grad_h), wordOf(s.grad_next_c), wordOf(s.activated),
         wordOf(s.c), wordOf(s.next_c), wordOf(s.grad_gates), wordOf(s.grad_c)});
}

}  // namespace wick::cuda
