// The loops of optimizers as CUDA kernels: many parameters in one launch, with the CPU's own text for
// each element.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/scalar_text.h"
#include "codegen/cuda/special_text.h"
#include "runtime/cuda/text_launch.h"
#include "training/update_loops.h"

namespace wick::training {

namespace {

constexpr const char* kRules =
#include "training/cuda/update_rules.inc"
    ;

// What the rules use of their headers.
constexpr const char* kHeaders = R"(
namespace wick {
struct Half {
  wickHalf held;
  __device__ Half(float f) : held(wickToHalf(f)) {}
  __device__ operator float() const { return wickToFloat(held); }
};
struct BFloat16 {
  wickBFloat held;
  __device__ BFloat16(float f) : held(wickToBFloat(f)) {}
  __device__ operator float() const { return wickToFloat(held); }
};
namespace training {
enum class Momentum { None, First, Plain, Nesterov };
struct UpdateNumbers {
  double rate, sign, weight_decay, momentum, fresh, beta1, beta2, fresh2, correction, eps, shrink;
};
struct Update {
  void* parameter;
  const void* gradient;
  void* buffers[3];
  UpdateNumbers numbers;
};
}
}
namespace wickUpdate {
template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <bool C, class A, class B> struct Choose { typedef A type; };
template <class A, class B> struct Choose<false, A, B> { typedef B type; };
__device__ inline float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
}
namespace std {
template <class A, class B> constexpr bool is_same_v = wickUpdate::same<A, B>;
template <bool C, class A, class B> using conditional_t = typename wickUpdate::Choose<C, A, B>::type;
using wickUpdate::fma;
}
)";

// Each block takes chunks of elements, which are counted through all parameters.
constexpr int64_t kChunk = 2048;
constexpr const char* kKernel = R"(
struct Part {{ void* parameter; const void* gradient; void* buffers[3]; long long count, end; }};
struct Words {{ wick::training::UpdateNumbers numbers; long long parts, chunks; Part part[{most}]; }};
extern "C" __global__ void __launch_bounds__(256) update(const __grid_constant__ Words p) {{
  using namespace wick;
  using namespace wick::training;
  int at = 0;
  for (long long chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {{
    while (p.part[at].end <= chunk) ++at;
    const Part& part = p.part[at];
    Update u;
    u.parameter = part.parameter;
    u.gradient = part.gradient;
    for (int k = 0; k < 3; ++k) u.buffers[k] = part.buffers[k];
    u.numbers = p.numbers;
    const long long first = (chunk - (at == 0 ? 0 : p.part[at - 1].end)) * {chunk};
    const long long last = first + {chunk} < part.count ? first + {chunk} : part.count;
    for (long long i = first + threadIdx.x; i < last; i += 256) {loop}(u, i, i + 1);
  }}
}}
)";

constexpr size_t kNumbers = sizeof(UpdateNumbers) / sizeof(double);
constexpr size_t kPartWords = 7;
// Parameters of a kernel have 4096 bytes.
constexpr size_t kAtOnce = (4096 / 8 - kNumbers - 2) / kPartWords;

// The loop with its flags: "adamLoop<float, false, true>".
std::string loopText(const LoopKind& kind, DType dtype) {
  const std::string type = dtype == DType::Half       ? "Half"
                           : dtype == DType::BFloat16 ? "BFloat16"
                                                      : codegen::cudaType(dtype);
  switch (kind.rule) {
    case LoopKind::Rule::Sgd: {
      static constexpr const char* kMomenta[] = {"None", "First", "Plain", "Nesterov"};
      return fmt::format("sgdLoop<{}, {}, Momentum::{}>", type, kind.decays,
                         kMomenta[static_cast<size_t>(kind.momentum)]);
    }
    case LoopKind::Rule::Adam:
      return fmt::format("adamLoop<{}, {}, {}>", type, kind.decays, kind.extra);
    case LoopKind::Rule::RmsProp:
      return fmt::format("rmsLoop<{}, {}, {}, {}>", type, kind.decays, kind.extra, kind.moves);
    case LoopKind::Rule::Adagrad:
      break;
  }
  return fmt::format("adagradLoop<{}, {}>", type, kind.decays);
}

std::string textOf(const LoopKind& kind, DType dtype) {
  return codegen::cudaPreamble(Expression()) + codegen::standardText() + kHeaders + kRules +
         fmt::format(fmt::runtime(kKernel), fmt::arg("most", kAtOnce), fmt::arg("chunk", kChunk),
                     fmt::arg("loop", loopText(kind, dtype)));
}

int64_t wordOf(const void* pointer) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer));
}

// All of one dtype, rule and numbers, and at most kAtOnce.
void launchUpdates(cuda::CudaDevice& device, std::span<const Update> updates) {
  std::vector<int64_t> words(kNumbers + 2 + kAtOnce * kPartWords);
  std::memcpy(words.data(), &updates[0].numbers, sizeof(UpdateNumbers));
  size_t at = kNumbers + 2;
  int64_t chunks = 0;
  for (const Update& u : updates) {
    chunks += (u.count + kChunk - 1) / kChunk;
    words[at++] = wordOf(u.parameter);
    words[at++] = wordOf(u.gradient);
    for (const void* buffer : u.buffers) words[at++] = wordOf(buffer);
    words[at++] = u.count;
    words[at++] = chunks;
  }
  words[kNumbers] = static_cast<int64_t>(updates.size());
  words[kNumbers + 1] = chunks;
  const int64_t most = int64_t{device.facts().multiprocessors} * 8;
  cuda::launchText(device, textOf(updates[0].kind, updates[0].dtype), "update",
                   static_cast<unsigned>(std::min(chunks, most)), words);
}

void updateOnDevice(Device device, std::span<const Update> updates) {
  cuda::CudaDevice& entered = cuda::enter(device);
  std::vector<Update> left;
  for (const Update& u : updates) {
    if (u.count > 0) left.push_back(u);
  }
  while (!left.empty()) {
    const Update first = left[0];
    std::vector<Update> now;
    std::erase_if(left, [&](const Update& u) {
      const bool fits = u.dtype == first.dtype && u.kind == first.kind &&
                        u.numbers == first.numbers && now.size() < kAtOnce;
      if (fits) now.push_back(u);
      return fits;
    });
    launchUpdates(entered, now);
  }
}

const struct Registration {
  Registration() { setDeviceUpdates(DeviceType::CUDA, updateOnDevice); }
} registration;

}  // namespace

}  // namespace wick::training
