// The connectionist temporal classification loss and its gradient on CUDA devices: one block a
// sample goes through the steps of time, its threads through the states of one step.
#include <fmt/format.h>

#include <cmath>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/losses.h"

namespace wick::cuda {

namespace {

constexpr const char* kText = R"(
struct Words {
  const double* probs; const long long* labels; const long long* lengths;
  double* ways; double* other; const double* grad; double* out;
  long long samples, time, classes, width, blank, options; long long* flag; long long complaint;
};
#define LEAST __longlong_as_double(0xfff0000000000000ll)
__device__ double logAdd(double a, double b) {
  const double high = a < b ? b : a, low = b < a ? b : a;
  return high == LEAST ? high : high + log1p(exp(low - high));
}
// One sample: its steps of time, how many labels it has and where they begin.
struct Sample { long long time, length, states; const long long* own; };
__device__ Sample sampleOf(const Words& p, long long n) {
  const long long* const l = p.lengths + 3 * n;
  Sample s;
  s.time = l[0]; s.length = l[1]; s.states = 2 * l[1] + 1; s.own = p.labels + l[2];
  return s;
}
// What is no class counts as blank, and is complained about.
__device__ long long labelOf(const Words& p, const Sample& s, long long state) {
  if (state % 2 == 0) return p.blank;
  const long long l = s.own[state / 2];
  if (l >= 0 && l < p.classes) return l;
  *(volatile long long*)p.flag = p.complaint;
  return p.blank;
}
// The logarithms of the probabilities of all ways to a state, its own included, from the beginning
// or, where the options ask for it, from the end.
extern "C" __global__ void __launch_bounds__(256) findWays(const __grid_constant__ Words p) {
  const bool backwards = (p.options & 2) != 0;
  const long long back = backwards ? 1 : -1;
  for (long long n = blockIdx.x; n < p.samples; n += gridDim.x) {
    const Sample s = sampleOf(p, n);
    double* const ways = p.ways + n * p.time * p.width;
    for (long long step = 0; step < s.time; ++step) {
      const long long t = backwards ? s.time - 1 - step : step;
      for (long long i = threadIdx.x; i < s.states; i += 256) {
        const long long state = backwards ? s.states - 1 - i : i;
        const long long label = labelOf(p, s, state);
        double sum = i < 2 ? 0.0 : LEAST;
        if (step > 0) {
          const double* const before = ways + (t + back) * p.width + state;
          sum = before[0];
          if (i > 0) sum = logAdd(sum, before[back]);
          if (i > 1 && i % 2 && label != labelOf(p, s, state + 2 * back)) {
            sum = logAdd(sum, before[2 * back]);
          }
        }
        ways[t * p.width + state] = sum + p.probs[(t * p.samples + n) * p.classes + label];
      }
      __syncthreads();
    }
    if (threadIdx.x == 0 && !backwards) {
      double loss = s.length == 0 ? 0.0 : -LEAST;
      if (s.time > 0) {
        const double* const end = ways + (s.time - 1) * p.width + s.states - 1;
        loss = -(s.length > 0 ? logAdd(end[0], end[-1]) : end[0]);
      }
      p.out[n] = (p.options & 1) != 0 && isinf(loss) ? 0.0 : loss;
    }
  }
}
// As PyTorch's, the gradient supposes that log-probabilities come from log_softmax.
extern "C" __global__ void __launch_bounds__(256) gradients(const __grid_constant__ Words p) {
  const long long total = p.time * p.samples * p.classes;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {
    const long long c = i % p.classes, n = i / p.classes % p.samples, t = i / p.classes / p.samples;
    const Sample s = sampleOf(p, n);
    p.out[i] = 0;
    if (t >= s.time) continue;
    const double* const alpha = p.ways + n * p.time * p.width;
    const double* const beta = p.other + n * p.time * p.width;
    const double* const end = alpha + (s.time - 1) * p.width + s.states - 1;
    const double likelihood = s.states > 1 ? logAdd(end[0], end[-1]) : end[0];
    if ((p.options & 1) != 0 && likelihood == LEAST) continue;
    double sum = LEAST;
    for (long long state = 0; state < s.states; ++state) {
      if (labelOf(p, s, state) != c) continue;
      sum = logAdd(sum, alpha[t * p.width + state] + beta[t * p.width + state]);
    }
    const double own = p.probs[i];
    p.out[i] = (exp(own) - exp(sum - likelihood - own)) * p.grad[n];
  }
}
)";

// The checked arguments, on the device.
struct Task {
  Tensor probs, labels, lengths;
  int64_t samples, time, classes, width;
};
Task plan(const char* op, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
          const DimVector& input_lengths, const DimVector& target_lengths, int64_t blank) {
  const CtcTask task = ctcTask(op, grad, log_probs, targets, input_lengths, target_lengths, blank);
  const Device device = log_probs.device();
  return {log_probs.to(DType::Double).contiguous(),
          moveTo(targets, device).to(DType::Long).contiguous(),
          moveTo(task.places, device),
          task.samples,
          task.time,
          task.classes,
          2 * task.longest + 1};
}

Tensor noWays(const Task& task) {
  const Tensor ways = Tensor::empty(DimVector{task.samples, task.time, task.width}, DType::Double,
                                    task.probs.device());
  ops::fillWith(ways, Scalar(-HUGE_VAL));
  return ways;
}

constexpr int64_t kZeroInfinity = 1, kBackwards = 2;  // options

void launchCtc(const char* op, const char* kernel, const Task& task, const Tensor& ways,
               const Tensor& other, const Tensor& grad, const Tensor& out, int64_t blank,
               int64_t options, int64_t points) {
  launchPoints(task.probs.device(), kText, kernel, points,
               {wordOf(task.probs), wordOf(task.labels), wordOf(task.lengths), wordOf(ways),
                wordOf(other), wordOf(grad), wordOf(out), task.samples, task.time, task.classes,
                task.width, blank, options},
               fmt::format("{}: a label is out of range", op));
}

Pair ctcLoss(const Tensor& log_probs, const Tensor& targets, const DimVector& input_lengths,
             const DimVector& target_lengths, int64_t blank, bool zero_infinity) {
  const char* op = "ctc_loss";
  const Task task = plan(op, Tensor(), log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor ways = noWays(task);
  const Tensor losses = Tensor::empty(DimVector{task.samples}, DType::Double, ways.device());
  launchCtc(op, "findWays", task, ways, {}, {}, losses, blank, zero_infinity ? kZeroInfinity : 0,
            task.samples * kTextBlock);
  return {losses.to(log_probs.dtype()), ways.to(log_probs.dtype())};
}

Tensor ctcGradient(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                   const DimVector& input_lengths, const DimVector& target_lengths, int64_t blank,
                   bool zero_infinity) {
  const char* op = "ctc_gradient";
  const Task task = plan(op, grad, log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor forwards = noWays(task), backwards = noWays(task);
  const Tensor g = grad.to(DType::Double).contiguous();
  const Tensor out = Tensor::empty(log_probs.sizes(), DType::Double, log_probs.device());
  const Tensor unused = Tensor::empty(DimVector{task.samples}, DType::Double, log_probs.device());
  const int64_t options = zero_infinity ? kZeroInfinity : 0;
  launchCtc(op, "findWays", task, forwards, {}, {}, unused, blank, 0, task.samples * kTextBlock);
  launchCtc(op, "findWays", task, backwards, {}, {}, unused, blank, kBackwards,
            task.samples * kTextBlock);
  launchCtc(op, "gradients", task, forwards, backwards, g, out, blank, options, out.numel());
  return out.to(log_probs.dtype());
}

const DeviceKernel kCtcKernels[] = {
    {"aten::_ctc_loss", WICK_KERNEL(ctcLoss)},
    {"wick::ctc_gradient", WICK_KERNEL(ctcGradient)},
};
const RegisterDeviceKernels kCtcRegistered(DeviceType::CUDA, kCtcKernels);

}  // namespace

}  // namespace wick::cuda
