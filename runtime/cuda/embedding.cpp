// Bags of embedding rows, and gradients of rows that were picked, on CUDA devices.
#include <fmt/format.h>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/losses.h"
#include "runtime/ops/layers/util.h"

namespace wick::cuda {

namespace {

using namespace bags;

// One thread an element of a bag's row, in the order of the indices.
constexpr const char* kBags = R"(
typedef {type} T;
struct Words {{
  const T* table; const long long* index; const long long* start; const T* scales; T* out;
  long long* best; long long* bag_of; long long* sizes;
  long long rows, width, bags, indices, starts, padding, mode; volatile long long* flag;
  long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) bags(const __grid_constant__ Words p) {{
  const long long total = p.bags * p.width;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long bag = i / p.width, column = i % p.width;
    const long long begin = p.start[bag];
    const long long end = bag + 1 < p.starts ? p.start[bag + 1] : p.indices;
    if (begin < 0 || begin > end || end > p.indices || p.start[0] != 0) {{
      *p.flag = p.complaint;
      p.out[i] = 0;
      continue;
    }}
    T sum = 0;
    long long count = 0, best = 0;
    for (long long k = begin; k < end; ++k) {{
      const long long row = p.index[k];
      if (row < 0 || row >= p.rows) {{
        *p.flag = p.complaint;
        continue;
      }}
      if (column == 0) p.bag_of[k] = bag;
      if (row == p.padding) continue;
      const T v = p.table[row * p.width + column];
      if (p.mode == 2) {{
        if (count == 0 || v > sum) {{
          sum = v;
          best = row;
        }}
      }} else {{
        sum += p.scales ? v * p.scales[k] : v;
      }}
      ++count;
    }}
    if (p.mode == 1 && count > 0) sum /= (T)count;
    p.out[i] = sum;
    if (p.mode == 2) p.best[i] = best;
    if (column == 0) p.sizes[bag] = count;
  }}
}}
)";

}  // namespace

std::string bagsText(DType type) {
  return textOf(kBags, type);
}

namespace {

Four embeddingBag(const Tensor& weight, const Tensor& indices_in, const Tensor& offsets_in,
                  const Tensor& scales, Bags b) {
  const char* op = "embedding_bag";
  const int64_t bags = checkBags(op, weight, indices_in, offsets_in, scales, b);
  WICK_CHECK(isFloating(weight.dtype()), "{}: expected a floating weight, got {}", op,
             weight.describe());
  const Tensor indices = indices_in.to(DType::Long).contiguous();
  const Tensor offsets = offsets_in.to(DType::Long).contiguous();
  const Device device = weight.device();
  const Tensor w = widened(weight).contiguous();
  const Tensor out = Tensor::zeros(DimVector{bags, w.size(1)}, w.dtype(), device);
  const Tensor bag_of = Tensor::zeros(indices.sizes(), DType::Long, device);
  const Tensor sizes = Tensor::zeros(DimVector{bags}, DType::Long, device);
  const Tensor best = Tensor::zeros(b.mode == kMax ? out.sizes() : IntSpan(), DType::Long, device);
  if (out.numel() > 0) {
    const Tensor s = scales.defined() ? scales.to(w.dtype()).contiguous() : scales;
    launchPoints(device, bagsText(w.dtype()), "bags", out.numel(),
                 {wordOf(w), wordOf(indices), wordOf(offsets), wordOf(s), wordOf(out), wordOf(best),
                  wordOf(bag_of), wordOf(sizes), w.size(0), w.size(1), bags, indices.numel(),
                  offsets.numel(), b.padding, b.mode},
                 fmt::format("{}: an index or an offset is out of bounds", op));
  }
  return resultsOf(weight, indices_in, offsets_in, b, out, bag_of, sizes, best);
}

// ---- gradients of rows that were picked ----

// One thread a column of a run of equal indices; runs lie side by side in `order`, which keeps the
// order of what is added.
constexpr const char* kRuns = R"(
typedef {type} T;
struct Words {{
  const T* g; T* out; const long long* index; const long long* order;
  long long total, width, count, padding, by_frequency; volatile long long* flag;
  long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) runs(const __grid_constant__ Words p) {{
  const long long points = p.total * p.width;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < points; i += gridDim.x * 256ll) {{
    const long long first = i / p.width, column = i % p.width, row = p.index[first];
    if (row < 0 || row >= p.count) {{
      *p.flag = p.complaint;
      continue;
    }}
    if (row == p.padding || (first > 0 && p.index[first - 1] == row)) continue;
    T sum = 0;
    long long k = first;
    for (; k < p.total && p.index[k] == row; ++k) sum += p.g[p.order[k] * p.width + column];
    p.out[row * p.width + column] = p.by_frequency ? sum / (T)(k - first) : sum;
  }}
}}
)";

Tensor embeddingDenseBackward(const Tensor& grad, const Tensor& indices, int64_t count,
                              int64_t padding, bool by_frequency) {
  const char* op = "embedding_dense_backward";
  WICK_CHECK(indices.dtype() == DType::Long || indices.dtype() == DType::Int,
             "{}: expected indices of type int32 or int64, got {}", op, indices.describe());
  WICK_CHECK(grad.dim() >= 1 && count >= 0,
             "{}: expected a gradient and a number of rows, got {} and {}", op, grad.describe(),
             count);
  const int64_t width = grad.size(-1), rows = indices.numel();
  WICK_CHECK(grad.numel() == rows * width && isFloating(grad.dtype()),
             "{}: a gradient {} does not fit indices {}", op, grad.describe(), indices.describe());
  const Tensor g = widened(grad).contiguous();
  const Tensor out = Tensor::zeros(DimVector{count, width}, g.dtype(), grad.device());
  if (out.numel() == 0 || rows == 0) return out.to(grad.dtype());
  const Tensor flat = indices.to(DType::Long).reshape(DimVector{rows});
  const std::vector<IValue> sorted = ops::sortStable.all(flat, true, int64_t{0}, false);
  const Tensor index = sorted[0].toTensor().contiguous(), order = sorted[1].toTensor().contiguous();
  const std::string text = textOf(kRuns, g.dtype());
  launchPoints(grad.device(), text, "runs", rows * width,
               {wordOf(g), wordOf(out), wordOf(index), wordOf(order), rows, width, count, padding,
                by_frequency ? 1 : 0},
               fmt::format("{}: an index is out of bounds", op));
  return out.to(grad.dtype());
}

// ---- the gradient of picked log probabilities ----

constexpr const char* kPicked = R"(
typedef {type} T;
struct Words {{
  const T* g; const T* weight; const long long* target; T* out; const T* share;
  long long losses, inner, classes, ignore, each; volatile long long* flag; long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) picked(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.losses; i += gridDim.x * 256ll) {{
    const long long t = p.target[i];
    if (t == p.ignore) continue;
    if (t < 0 || t >= p.classes) {{
      *p.flag = p.complaint;
      continue;
    }}
    T g = p.each ? p.g[i] : p.g[0];
    if (p.share) g /= p.share[0];
    p.out[(i / p.inner * p.classes + t) * p.inner + i % p.inner] = -g * (p.weight ? p.weight[t] : (T)1);
  }}
}}
)";

// As on the CPU; see autograd/kernels_nn_losses.cpp.
Tensor nllGradient(const Tensor& grad_in, const DimVector& sizes, const Tensor& target_in,
                   const Tensor& weight_in, int64_t reduction, int64_t ignore) {
  const char* op = "nll_loss_gradient";
  const auto [batch, classes, target, grad] =
      nllGradientOf(op, grad_in, sizes, target_in, reduction);
  const int64_t losses = target.numel();
  const Tensor out = Tensor::zeros(sizes, grad.dtype(), grad.device());
  if (losses == 0 || classes == 0) return out.to(grad_in.dtype());
  Tensor weight, share;
  if (weight_in.defined()) {
    weight = weight_in.to(grad.dtype()).contiguous();
    WICK_CHECK(weight.numel() == classes, "{}: expected {} weights, got {}", op, classes,
               weight_in.describe());
  }
  if (reduction == kReductionMean) {
    const Tensor flat = target.reshape(DimVector{losses});
    Tensor counted = ops::neScalar(flat, Scalar(ignore)).to(grad.dtype());
    if (weight.defined()) {
      const Tensor inside = ops::clamp(flat, Scalar(int64_t{0}), Scalar(classes - 1));
      counted = ops::mul(counted,
                         ops::indexSelect(weight.reshape(DimVector{classes}), int64_t{0}, inside));
    }
    share = ops::sum(counted, IValue());
  }
  const std::string text = textOf(kPicked, grad.dtype());
  launchPoints(
      grad.device(), text, "picked", losses,
      {wordOf(grad), wordOf(weight), wordOf(target), wordOf(out), wordOf(share), losses,
       batch == 0 ? 1 : losses / batch, classes, ignore, reduction == kReductionNone ? 1 : 0},
      fmt::format("{}: a target is out of bounds.", op));
  return out.to(grad_in.dtype());
}

const DeviceKernel kEmbeddingKernels[] = {
    {"aten::embedding_bag", WICK_KERNEL(Operators<embeddingBag>::plain)},
    {"aten::embedding_bag.padding_idx", WICK_KERNEL(Operators<embeddingBag>::padded)},
    {"aten::_embedding_bag", WICK_KERNEL(Operators<embeddingBag>::internal)},
    {"aten::_embedding_bag_forward_only", WICK_KERNEL(Operators<embeddingBag>::internal)},
    {"aten::embedding_dense_backward", WICK_KERNEL(embeddingDenseBackward)},
    {"wick::nll_loss_gradient", WICK_KERNEL(nllGradient)},
};
const RegisterDeviceKernels kEmbeddingRegistered(DeviceType::CUDA, kEmbeddingKernels);

}  // namespace

}  // namespace wick::cuda
