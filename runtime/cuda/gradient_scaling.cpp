// Gradients are divided by their scale, many tensors in one launch, and the scale follows, without the
// CPU waiting for what was found.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"

namespace wick::cuda {

namespace {

constexpr const char* kUnscale = "_amp_foreach_non_finite_check_and_unscale_";
constexpr const char* kUpdate = "_amp_update_scale_";

// Parameters of a kernel have 4096 bytes.
constexpr size_t kAtOnce = 200;

constexpr const char* kUnscaleText = R"({preamble}
typedef {type} T;
typedef {wide} A;
struct Words {{ float* found; const float* factor; long long count; struct {{ T* at; long long size; }} parts[{most}]; }};
extern "C" __global__ void __launch_bounds__(256) unscale(const __grid_constant__ Words p) {{
  const A factor = (A)*p.factor;
  bool finite = true;
  for (int i = 0; i < (int)p.count; ++i) {{
    T* const at = p.parts[i].at;
    const long long size = p.parts[i].size;
    for (long long k = blockIdx.x * 256ll + threadIdx.x; k < size; k += gridDim.x * 256ll) {{
      const T e = at[k];
      const A v = {load};
      finite &= isfinite(v);
      const A r = factor == (A)1 ? v : v * factor;
      at[k] = {store};
    }}
  }}
  if (!finite) *p.found = 1.f;
}}
)";

constexpr const char* kUpdateText = R"(
struct Words { float* scale; int* tracker; const float* found; double growth, backoff; long long interval; };
extern "C" __global__ void update_scale(const __grid_constant__ Words p) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const long long steps = (long long)*p.tracker + 1;
  if (*p.found != 0.f) {
    *p.scale = (float)(*p.scale * p.backoff);
    *p.tracker = 0;
  } else if (steps == p.interval) {
    const float grown = (float)(*p.scale * p.growth);
    if (isfinite(grown)) *p.scale = grown;
    *p.tracker = 0;
  } else {
    *p.tracker = (int)steps;
  }
}
)";

void checkNumber(const char* op, const char* name, const Tensor& t, DType dtype) {
  WICK_CHECK(t.defined() && t.numel() == 1 && t.dtype() == dtype,
             "{}: {}: expected one number of dtype {}, got {}", op, name, toString(dtype),
             t.describe());
}

void unscaleAll(std::span<const Tensor> gradients, const Tensor& found_inf,
                const Tensor& inv_scale) {
  const DType dtype = gradients[0].dtype();
  CudaDevice& device = enter(found_inf.device());
  std::vector<int64_t> words = {wordOf(found_inf), wordOf(inv_scale),
                                static_cast<int64_t>(gradients.size())};
  int64_t largest = 0;
  for (const Tensor& g : gradients) {
    words.push_back(wordOf(g));
    words.push_back(g.numel());
    largest = std::max(largest, g.numel());
  }
  words.resize(3 + 2 * kAtOnce);
  const std::string text = textOf(kUnscaleText, dtype, fmt::arg("most", kAtOnce),
                                  fmt::arg("store", narrowedText("r", dtype)));
  const unsigned grid =
      std::min(gridFor(largest, device), static_cast<unsigned>(device.facts().multiprocessors) * 8);
  launchText(device, text, "unscale", grid, words);
}

void unscale(const std::vector<Tensor>& gradients, const Tensor& found_inf,
             const Tensor& inv_scale) {
  checkNumber(kUnscale, "found_inf", found_inf, DType::Float);
  checkNumber(kUnscale, "inv_scale", inv_scale, DType::Float);
  std::vector<Tensor> left;
  for (const Tensor& g : gradients) {
    WICK_CHECK(g.kind() == TensorKind::Dense && isFloating(g.dtype()),
               "{}: expected dense floating-point tensors, got {}", kUnscale, g.describe());
    ops::markWritten(kUnscale, g);
    if (g.numel() > 0) left.push_back(g);
  }
  ops::markWritten(kUnscale, found_inf);
  while (!left.empty()) {
    // Those of one dtype, as many as a launch takes.
    std::vector<Tensor> now, copied;
    const DType dtype = left[0].dtype();
    std::erase_if(left, [&](const Tensor& g) {
      if (g.dtype() != dtype || now.size() == kAtOnce) return false;
      const bool dense = g.isNonOverlappingAndDense();
      now.push_back(dense ? g : g.clone(MemoryFormat::Contiguous));
      if (!dense) copied.push_back(g), copied.push_back(now.back());
      return true;
    });
    unscaleAll(now, found_inf, inv_scale);
    for (size_t i = 0; i < copied.size(); i += 2) copied[i].copyFrom(copied[i + 1]);
  }
}

Tensor updateScale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                   double growth, double backoff, int64_t interval) {
  checkNumber(kUpdate, "the scale", scale, DType::Float);
  checkNumber(kUpdate, "growth_tracker", growth_tracker, DType::Int);
  checkNumber(kUpdate, "found_inf", found_inf, DType::Float);
  ops::markWritten(kUpdate, scale);
  ops::markWritten(kUpdate, growth_tracker);
  launchPoints(scale.device(), kUpdateText, "update_scale", 1,
               {wordOf(scale), wordOf(growth_tracker), wordOf(found_inf),
                std::bit_cast<int64_t>(growth), std::bit_cast<int64_t>(backoff), interval});
  return scale;
}

const DeviceKernel kGradientScalingKernels[] = {
    {"aten::_amp_foreach_non_finite_check_and_unscale_", WICK_KERNEL(unscale)},
    {"aten::_amp_update_scale_", WICK_KERNEL(updateScale)},
};
const RegisterDeviceKernels kGradientScalingRegistered(DeviceType::CUDA, kGradientScalingKernels);

}  // namespace

}  // namespace wick::cuda
