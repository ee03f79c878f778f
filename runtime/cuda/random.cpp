// Random numbers on CUDA devices: those that PyTorch draws there for a seed.
//
// Each thread has a stream of its own of the counter-based generator Philox4x32-10 (Salmon et al.,
// 2011), and which element takes which number depends on how many threads there are: blocks of 256,
// as many as the device can hold at once.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "codegen/cuda/scalar_text.h"
#include "core/error.h"
#include "core/generator_state.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/complex_parts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/random/checks.h"

namespace wick::cuda {

namespace {

constexpr const char* kRandomText = R"({preamble}
typedef {type} T;
typedef {real} R;
struct Words {{ T* out; const R* by; long long total, seed, offset; R a, b; long long c, d; }};
// As PyTorch's distributions of floats do.
__device__ __forceinline__ float fast_log(float x) {{ return __logf(x); }}
__device__ __forceinline__ double fast_log(double x) {{ return log(x); }}
__device__ __forceinline__ float fast_exp(float x) {{ return __expf(x); }}
__device__ __forceinline__ double fast_exp(double x) {{ return exp(x); }}
__device__ __forceinline__ float fast_tan(float x) {{ return __tanf(x); }}
__device__ __forceinline__ double fast_tan(double x) {{ return tan(x); }}
__device__ __forceinline__ uint4 philox(unsigned long long seed, unsigned long long low,
                                        unsigned long long high) {{
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  uint4 c = make_uint4((unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32));
  for (int round = 0; round < 10; ++round) {{
    const unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
    const unsigned h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
    c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }}
  return c;
}}
__device__ __forceinline__ float uniform(unsigned x) {{
  return x * 2.3283064365386963e-10f + 1.1641532182693481e-10f;
}}
__device__ __forceinline__ double uniform(unsigned x, unsigned y) {{
  const unsigned long long z = (unsigned long long)x ^ ((unsigned long long)y << 21);
  return z * 1.1102230246251565e-16 + 5.5511151231257827e-17;
}}
__device__ __forceinline__ void normals(unsigned x, unsigned y, float* out) {{
  const float s = sqrtf(-2.0f * logf(uniform(x)));
  const float v = y * 1.4629180792671596e-09f + 7.3145903963357980e-10f;
  out[0] = s * __sinf(v);
  out[1] = s * __cosf(v);
}}
__device__ __forceinline__ void normals(uint4 q, double* out) {{
  const double s = sqrt(-2.0 * log(uniform(q.x, q.y)));
  const unsigned long long z = (unsigned long long)q.z ^ ((unsigned long long)q.w << 21);
  const double v = z * 2.2204460492503131e-16 + 1.1102230246251565e-16;
  double sine, cosine;
  sincospi(v, &sine, &cosine);
  out[0] = s * sine;
  out[1] = s * cosine;
}}
extern "C" __global__ void __launch_bounds__(256) draw(const __grid_constant__ Words p) {{
  const long long thread = blockIdx.x * 256ll + threadIdx.x, threads = gridDim.x * 256ll;
  unsigned long long counter = (unsigned long long)p.offset / 4;
  for (long long first = 0; first < p.total; first += threads * {each}) {{
    const uint4 q = philox((unsigned long long)p.seed, counter++, (unsigned long long)thread);
    {draws}
    for (int k = 0; k < {each}; ++k) {{
      const long long i = first + {place};
      if (i < p.total) {{
        const {drawn} u = drawn[k];
        {store}
      }}
    }}
  }}
}}
)";

struct Draw {
  std::string drawn, draws;  // the type of what a thread draws and how
  int each;                  // how many of them at once
};
const Draw kUniform32{"float",
                      "const float drawn[4] = {uniform(q.x), uniform(q.y), uniform(q.z), "
                      "uniform(q.w)};",
                      4};
const Draw kUniform64{"double", "const double drawn[2] = {uniform(q.x, q.y), uniform(q.z, q.w)};",
                      2};
const Draw kNormal32{"float",
                     "float drawn[4]; normals(q.x, q.y, drawn); normals(q.z, q.w, drawn + 2);", 4};
const Draw kNormal64{"double", "double drawn[2]; normals(q, drawn);", 2};
const Draw kBits32{"unsigned", "const unsigned drawn[4] = {q.x, q.y, q.z, q.w};", 4};
const Draw kBits64{"unsigned long long",
                   "const unsigned long long drawn[2] = {(unsigned long long)q.x << 32 | q.y, "
                   "(unsigned long long)q.z << 32 | q.w};",
                   2};

// What a kernel reads in addition.
struct Numbers {
  double a = 0, b = 0;
  int64_t c = 0, d = 0;
  Tensor by = {};  // one number an element, of the real type; may be undefined
};

DType realOf(DType type) {
  return type == DType::Double ? DType::Double : DType::Float;
}

// Every element of `t` is `value`, an expression over u (what was drawn), p.a and p.b (of the real
// type), p.c and p.d (integers), p.by[i] and R. `neighbours`: a thread's numbers go to elements side
// by side.
void draw(const Tensor& t, Generator& g, const Draw& how, const std::string& value, DType computed,
          const Numbers& numbers, bool neighbours = false) {
  if (t.numel() == 0) return;
  CudaDevice& device = enter(t.device());
  const bool direct = t.isContiguous();
  const Tensor out = direct ? t : Tensor::empty(t.sizes(), t.dtype(), t.device());
  const int64_t total = out.numel();
  const auto& facts = device.facts();
  const int64_t held = int64_t{facts.multiprocessors} * (facts.threads_per_multiprocessor / 256);
  const int64_t blocks = std::min(held, (total + 255) / 256);
  const int64_t turns = (total - 1) / (blocks * 256 * how.each) + 1;
  refuseWhileCapturing("drawing random numbers");
  const PhiloxPosition at = takePhilox(g, device.index(), static_cast<uint64_t>(turns) * 4);
  const DType real = realOf(t.dtype());
  const std::string text = textOf(
      kRandomText, t.dtype(), fmt::arg("real", codegen::cudaType(real)), fmt::arg("each", how.each),
      fmt::arg("draws", how.draws), fmt::arg("drawn", how.drawn),
      fmt::arg("place", neighbours ? fmt::format("thread * {} + k", how.each)
                                   : std::string("thread + threads * k")),
      fmt::arg("store",
               fmt::format("p.out[i] = {};",
                           codegen::cudaConvert(fmt::format("({})", value), computed, t.dtype()))));
  const auto word = [&](double v) {
    if (real == DType::Double) return std::bit_cast<int64_t>(v);
    return static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(v)));
  };
  // Two floats share a word.
  std::vector<int64_t> words = {wordOf(out), wordOf(numbers.by), total,
                                static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset)};
  if (real == DType::Double) {
    words.push_back(word(numbers.a));
    words.push_back(word(numbers.b));
  } else {
    words.push_back(word(numbers.a) | word(numbers.b) << 32);
  }
  words.push_back(numbers.c);
  words.push_back(numbers.d);
  launchText(device, text, "draw", static_cast<unsigned>(blocks), words);
  if (!direct) t.copyFrom(out);
}

void checkFloating(const char* op, const Tensor& t) {
  WICK_CHECK(isFloating(t.dtype()), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(t.dtype()));
}
const Draw& uniformFor(const Tensor& t) {
  return t.dtype() == DType::Double ? kUniform64 : kUniform32;
}

Tensor written(const char* op, const Tensor& t) {
  ops::markWritten(op, t);
  return t;
}

// ---- the distributions ----

// A complex number is two real ones.
Tensor realParts(const Tensor& t) {
  return isComplex(t.dtype()) ? asParts(t) : t;
}

Tensor uniform(const Tensor& self, double from, double to, Generator* g) {
  ops::checkUniform(from, to);
  const Tensor t = realParts(self);
  checkFloating("uniform_", t);
  // Draws are of (0, 1], the results of [from, to).
  const DType type = t.dtype();
  const std::string rounded = codegen::cudaConvert(
      codegen::cudaConvert("fma(u, p.b - p.a, p.a)", realOf(type), type), type, realOf(type));
  draw(t, *g, uniformFor(t), fmt::format("({0} == p.b ? p.a : {0})", rounded), realOf(type),
       {from, to});
  return written("uniform_", self);
}

Tensor normal(const Tensor& self, double mean, double std, Generator* g) {
  ops::checkNormal(std);
  const Tensor t = realParts(self);
  checkFloating("normal_", t);
  const double spread = isComplex(self.dtype()) ? std / std::sqrt(2.0) : std;
  draw(t, *g, t.dtype() == DType::Double ? kNormal64 : kNormal32, "fma(u, p.b, p.a)",
       realOf(t.dtype()), {mean, spread});
  return written("normal_", self);
}

Tensor bernoulli(const Tensor& self, double p, Generator* g) {
  ops::checkBernoulli(p);
  draw(self, *g, uniformFor(self), "u < p.a", DType::Bool, {p});
  return written("bernoulli_", self);
}
Tensor bernoulliBy(const Tensor& self, const Tensor& p, Generator* g) {
  checkFloating("bernoulli_tensor_cuda_self_", p);
  const Tensor chances = p.to(realOf(self.dtype())).expand(self.sizes()).contiguous();
  draw(self, *g, uniformFor(self), "u <= p.by[i]", DType::Bool, {0, 0, 0, 0, chances});
  return written("bernoulli_", self);
}

Tensor exponential(const Tensor& self, double lambda, Generator* g) {
  ops::checkExponential(lambda);
  checkFloating("exponential_", self);
  // Never zero, which what is drawn up to one would give.
  const double half = self.dtype() == DType::Double ? 0x1p-53 : 0x1p-24;
  draw(self, *g, uniformFor(self), "(R)-1 / p.a * (u >= (R)1 - p.b ? -p.b : fast_log(u))",
       realOf(self.dtype()), {lambda, half});
  return written("exponential_", self);
}
Tensor cauchy(const Tensor& self, double median, double sigma, Generator* g) {
  checkFloating("cauchy_", self);
  const char* bound = self.dtype() == DType::Double ? "2.2204460492503131e-16" : "1.1920929e-07f";
  draw(self, *g, uniformFor(self),
       fmt::format(
           "p.a + p.b * fast_tan((R)3.14159265358979323846 * ((u > (R)1 - {0} ? (R)1 - {0} : u "
           "< {0} ? {0} : u) - (R)0.5))",
           bound),
       realOf(self.dtype()), {median, sigma});
  return written("cauchy_", self);
}
Tensor geometric(const Tensor& self, double p, Generator* g) {
  ops::checkGeometric(p);
  draw(self, *g, uniformFor(self), "ceil(fast_log(u) / fast_log((R)1 - p.a))", realOf(self.dtype()),
       {p});
  return written("geometric_", self);
}
Tensor logNormal(const Tensor& self, double mean, double std, Generator* g) {
  ops::checkLogNormal(std);
  checkFloating("log_normal_", self);
  draw(self, *g, self.dtype() == DType::Double ? kNormal64 : kNormal32,
       "fast_exp(fma(u, p.b, p.a))", realOf(self.dtype()), {mean, std});
  return written("log_normal_", self);
}

// ---- integers ----

// The largest number up to which the dtype represents all integers.
uint64_t lastOf(DType type) {
  switch (type) {
    case DType::Bool:
      return 1;
    case DType::Byte:
      return UINT8_MAX;
    case DType::Char:
      return INT8_MAX;
    case DType::Short:
      return INT16_MAX;
    case DType::Int:
      return INT32_MAX;
    case DType::Long:
      return INT64_MAX;
    case DType::Half:
      return 1u << 11;
    case DType::BFloat16:
      return 1u << 8;
    case DType::Float:
      return 1u << 24;
    default:
      return uint64_t{1} << 53;
  }
}

void drawIntegers(const Tensor& t, uint64_t range, int64_t base, Generator& g) {
  WICK_CHECK(!isComplex(t.dtype()), "\"random_\" not implemented for '{}'",
             scalarTypeName(t.dtype()));
  const Numbers numbers{0, 0, static_cast<int64_t>(range), base};
  // No range: all numbers of 64 bits.
  const bool wide = range == 0 || range >= uint64_t{1} << 32;
  draw(t, g, wide ? kBits64 : kBits32,
       range == 0 ? "(long long)(u + (unsigned long long)p.d)"
       : wide     ? "(long long)(u % (unsigned long long)p.c + (unsigned long long)p.d)"
                  : "(long long)(u % (unsigned)p.c) + p.d",
       DType::Long, numbers);
}
Tensor randomFrom(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* g) {
  uint64_t range = 0;
  if (to) {
    ops::checkIntegers("random_", from, *to);
    range = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
  } else {
    range = lastOf(self.dtype()) - static_cast<uint64_t>(from) + 1;
  }
  if (isIntegral(self.dtype(), false) && self.dtype() != DType::Long && to) {
    const auto most = static_cast<int64_t>(lastOf(self.dtype()));
    const int64_t least = self.dtype() == DType::Byte ? 0 : -most - 1;
    WICK_CHECK(from >= least && *to - 1 <= most,
               "random_: the bounds {} and {} are out of range "
               "for {}",
               from, *to, toString(self.dtype()));
  }
  drawIntegers(self, range, from, *g);
  return written("random_", self);
}
Tensor randomTo(const Tensor& self, int64_t to, Generator* g) {
  return randomFrom(self, 0, to, g);
}
Tensor random(const Tensor& self, Generator* g) {
  drawIntegers(self, lastOf(self.dtype()) + 1, 0, *g);
  return written("random_", self);
}

// ---- dropout ----

// The mask, true where an element is kept.
Tensor keptMask(const Tensor& input, double p, Generator& g) {
  const Tensor mask = Tensor::empty(input.sizes(), DType::Bool, input.device());
  // PyTorch loads four elements at once where that many lie side by side.
  const bool neighbours = input.numel() % 4 == 0 && input.isContiguous();
  draw(mask, g, kUniform32, "u < p.a", DType::Bool, {1 - p}, neighbours);
  return mask;
}
std::tuple<Tensor, Tensor> nativeDropout(const Tensor& input, double p, std::optional<bool> train) {
  ops::checkDropout(p);
  if (input.numel() == 0 || !train.value_or(true)) {
    const Tensor mask = Tensor::full(input.sizes(), 1, DType::Bool, input.device());
    return {input.numel() == 0 ? input : input.clone(), mask};
  }
  if (p == 1) {
    return {ops::mulScalar(input, Scalar(0.0)),
            Tensor::zeros(input.sizes(), DType::Bool, input.device())};
  }
  const Tensor mask = keptMask(input, p, defaultGenerator());
  return {ops::mulScalar(ops::mul(input, mask), Scalar(1 / (1 - p))), mask};
}
Tensor dropout(const Tensor& input, double p, bool train) {
  ops::checkDropout(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  return std::get<0>(nativeDropout(input, p, true));
}

// ---- what is made of these ----

const OperatorHandle kExponential{"aten::exponential_", ""};

// Different positions, or one: those of the largest weights after division by exponential noise.
Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, Generator* g) {
  static const OperatorHandle kTopK{"aten::topk", ""}, kArgmax{"aten::argmax", ""};
  const DimVector sizes = ops::multinomialSizes(self, samples, replacement);
  const Tensor weights = isReducedFloat(self.dtype()) ? self.to(DType::Float) : self;
  const IValue generator{GeneratorRef(g)};
  if (!replacement || samples == 1) {
    const Tensor noise = kExponential(Tensor::emptyLike(weights, weights.dtype()), 1.0, generator);
    const Tensor keys = ops::div(weights, noise);
    if (samples == 1) return kArgmax(keys, int64_t{-1}, true);
    return kTopK.all(keys, samples, int64_t{-1}, true, true)[1].toTensor();
  }
  const Tensor sums = ops::cumsum(weights, int64_t{-1}, IValue());
  const Tensor total = sums.narrow(-1, sums.size(-1) - 1, 1);
  const Tensor at =
      ops::uniformInto(Tensor::empty(sizes, weights.dtype(), self.device()), 0.0, 1.0, generator);
  // How many sums lie below what was drawn.
  const Tensor below = ops::lt(ops::div(sums, total).unsqueeze(-2), at.unsqueeze(-1));
  return ops::sumDims(below, DimVector{-1}, false, IValue());
}

const DeviceKernel kRandomKernels[] = {
    {"aten::uniform_", WICK_KERNEL(uniform)},
    {"aten::normal_", WICK_KERNEL(normal)},
    {"aten::bernoulli_.float", WICK_KERNEL(bernoulli)},
    {"aten::bernoulli_.Tensor", WICK_KERNEL(bernoulliBy)},
    {"aten::exponential_", WICK_KERNEL(exponential)},
    {"aten::cauchy_", WICK_KERNEL(cauchy)},
    {"aten::geometric_", WICK_KERNEL(geometric)},
    {"aten::log_normal_", WICK_KERNEL(logNormal)},
    {"aten::random_", WICK_KERNEL(random)},
    {"aten::random_.from", WICK_KERNEL(randomFrom)},
    {"aten::random_.to", WICK_KERNEL(randomTo)},
    {"aten::dropout", WICK_KERNEL(dropout)},
    {"aten::native_dropout", WICK_KERNEL(nativeDropout)},
    {"aten::multinomial", WICK_KERNEL(multinomial)},
};
const RegisterDeviceKernels kRandomRegistered(DeviceType::CUDA, kRandomKernels);

}  // namespace

}  // namespace wick::cuda
