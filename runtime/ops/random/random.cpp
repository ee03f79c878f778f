// Operators that draw random numbers, in the order and with the arithmetic of PyTorch's CPU
// generator, so that one seed gives the same stream.
#include <cmath>
#include <cstring>
#include <numbers>

#include "codegen/scalar/lanes.h"
#include "core/budget.h"
#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/random/checks.h"
#include "runtime/ops/shapes/shape_rules.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/tensors/pinning.h"

namespace wick::ops {

Tensor inMemoryOrder(const Tensor& t) {
  if (t.isContiguous()) return t;
  DimVector order;
  for (int64_t d = 0; d < t.dim(); ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return t.strides()[a] > t.strides()[b]; });
  return t.permute(order);
}

namespace {

// Bits in the significand: how many random bits a uniform number of the dtype takes.
template <class T>
constexpr int kDigits = std::is_same_v<T, double>  ? 53
                        : std::is_same_v<T, float> ? 24
                        : std::is_same_v<T, Half>  ? 11
                                                   : 8;

// How many 32-bit numbers it is made of.
template <class T>
constexpr int kUniformDraws = std::is_same_v<T, double> ? 2 : 1;

uint64_t joined(const uint32_t* draws) {
  return uint64_t{draws[0]} << 32 | draws[1];
}
// [0, 1) from draws; double for double, else float.
template <class T>
auto uniform01(const uint32_t* draws) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(static_cast<int64_t>(joined(draws) & ((uint64_t{1} << 53) - 1))) *
           0x1p-53;
  } else {
    constexpr uint32_t kMask = (1u << kDigits<T>)-1;
    return static_cast<float>(static_cast<int32_t>(*draws & kMask)) *
           (1.0f / static_cast<float>(1u << kDigits<T>));
  }
}

// Calls body(data, n) with the elements in the order in which they lie in memory.
template <class T, class F>
void fillDense(const Tensor& t, F&& body) {
  const Tensor sorted = inMemoryOrder(t);
  const Tensor dense = sorted.isContiguous() ? sorted : Tensor::empty(sorted.sizes(), t.dtype());
  body(dense.data<T>(), dense.numel());
  if (!dense.isSame(sorted)) sorted.copyFrom(dense);
}

// Draws `each` numbers for each of n elements, block by block: body(begin, count, draws).
template <int each, class F>
void drawBlocks(Generator& g, int64_t n, F&& body) {
  constexpr int64_t kBlock = 1024;
  uint32_t draws[kBlock * each];
  Pace pace;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    pace.step(count);
    g.fill32(draws, static_cast<size_t>(count * each));
    body(begin, count, draws);
  }
}

// Every element is value(draws, i), from `each` draws of its own; i counts in memory's order.
template <class T, int each, class F>
void drawFixed(const Tensor& t, Generator& g, F&& value) {
  fillDense<T>(t, [&](T* data, int64_t n) {
    drawBlocks<each>(g, n, [&](int64_t begin, int64_t count, const uint32_t* draws) {
      for (int64_t i = 0; i < count; ++i) {
        data[begin + i] = convert<T>(value(draws + i * each, begin + i));
      }
    });
  });
}

// Every element is draw(), which takes what it needs.
template <class T, class F>
void drawEach(const Tensor& t, F&& draw) {
  fillDense<T>(t, [&](T* data, int64_t n) {
    Pace pace;
    for (int64_t i = 0; i < n; ++i) {
      pace.step();
      data[i] = convert<T>(draw());
    }
  });
}

// The tensor that an operator with in-place and functional forms fills.
Tensor target(const Tensor& self, Out out) {
  return out && out.tensor->isSame(self) ? self : Tensor::emptyLike(self, self.dtype());
}

// Generators of other devices draw other numbers: their kernels of the in-place forms do it.
template <class... Args>
bool drawnOnDevice(const OperatorHandle& op, const Tensor& t, Generator& g, const Args&... args) {
  if (t.device().isCpu()) return false;
  op(t, args..., IValue(GeneratorRef(&g)));
  return true;
}

void fillUniform(const Tensor& t, double from, double to, Generator& g) {
  if (drawnOnDevice(ops::uniformInto, t, g, from, to)) return;
  if (isComplex(t.dtype())) {
    DimVector sizes(t.sizes());
    sizes.push_back(2);
    Tensor parts = Tensor::empty(sizes, toRealType(t.dtype()));
    fillUniform(parts, from, to, g);
    t.copyFrom(Tensor::fromStorage(parts.storage(), t.dtype(), t.sizes(),
                                   contiguousStrides(t.sizes()), 0));
    return;
  }
  dispatch<kAnyFloat>("uniform_", t.dtype(), [&]<class T>() -> void {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    C low = static_cast<C>(from);
    C high = static_cast<C>(to);
    drawFixed<T, kUniformDraws<T>>(t, g, [&](const uint32_t* draws, int64_t) {
      return static_cast<C>(uniform01<T>(draws)) * (high - low) + low;
    });
  });
}

Tensor uniform(const Tensor& self, double from, double to, Generator* g, Out out) {
  checkUniform(from, to);
  Tensor t = target(self, out);
  fillUniform(t, from, to, *g);
  return t;
}

// Box-Muller on blocks of 16: the first eight uniforms give radii, the last eight angles. A rest
// that fills no block redraws the last 16 elements.
template <class T>
void normalBlocks(T* data, int64_t n, double mean, double std, Generator& g) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  auto block = [&](T* p) {
#ifdef __AVX2__
    if constexpr (std::is_same_v<T, float>) {
      using B = LaneBuilder;
      B::V first, second;
      std::memcpy(&first, p, sizeof first);
      std::memcpy(&second, p + 8, sizeof second);
      const B::V radius = B::sqrt(-2.0f * B::log(1.0f - first));
      const B::V theta = static_cast<float>(2 * std::numbers::pi) * second;
      first = radius * B::cos(theta) * static_cast<float>(std) + static_cast<float>(mean);
      second = radius * B::sin(theta) * static_cast<float>(std) + static_cast<float>(mean);
      std::memcpy(p, &first, sizeof first);
      std::memcpy(p + 8, &second, sizeof second);
      return;
    }
#endif
    for (int j = 0; j < 8; ++j) {
      C u1 = static_cast<C>(T(1 - static_cast<C>(p[j])));
      C u2 = static_cast<C>(p[j + 8]);
      C radius = std::sqrt(C(-2) * std::log(u1));
      C theta = C(2 * std::numbers::pi) * u2;
      p[j] = T(radius * std::cos(theta) * C(std) + C(mean));
      p[j + 8] = T(radius * std::sin(theta) * C(std) + C(mean));
    }
  };
  const auto draw = [&](T* to, int64_t count) {
    drawBlocks<kUniformDraws<T>>(g, count, [&](int64_t begin, int64_t some, const uint32_t* draws) {
      for (int64_t i = 0; i < some; ++i) {
        to[begin + i] = T(static_cast<C>(uniform01<T>(draws + i * kUniformDraws<T>)));
      }
    });
  };
  draw(data, n);
  Pace pace;
  for (int64_t i = 0; i + 16 <= n; i += 16) {
    pace.step(16);
    block(data + i);
  }
  if (n % 16 != 0) {
    T* tail = data + n - 16;
    draw(tail, 16);
    block(tail);
  }
}

void fillNormal(const Tensor& t, double mean, double std, Generator& g) {
  checkNormal(std);
  if (drawnOnDevice(ops::normalInto, t, g, mean, std)) return;
  if (isComplex(t.dtype())) {
    DimVector sizes(t.sizes());
    sizes.push_back(2);
    Tensor parts = Tensor::empty(sizes, toRealType(t.dtype()));
    // Each part carries half of the variance.
    fillNormal(parts, 0, std / std::numbers::sqrt2, g);
    Tensor joined =
        Tensor::fromStorage(parts.storage(), t.dtype(), t.sizes(), contiguousStrides(t.sizes()), 0);
    dispatch<kComplexes>("normal_", t.dtype(), [&]<class T>() -> void {
      T* data = joined.data<T>();
      using R = decltype(std::real(T()));
      for (int64_t i = 0; i < joined.numel(); ++i) data[i] += static_cast<R>(mean);
    });
    t.copyFrom(joined);
    return;
  }
  dispatch<kAnyFloat>("normal_", t.dtype(), [&]<class T>() -> void {
    if (t.numel() >= 16 && t.isContiguous()) {
      normalBlocks(t.data<T>(), t.numel(), mean, std, g);
    } else {
      drawEach<T>(t, [&] { return g.normal() * std + mean; });
    }
  });
}

Tensor normalInplace(const Tensor& self, double mean, double std, Generator* g) {
  markWritten("normal_", self);
  fillNormal(self, mean, std, *g);
  return self;
}

// normal(mean, std) with tensors: mean + std * standard normal of the broadcast shape.
Tensor normalOf(const Tensor* mean, double mean_number, const Tensor* std, double std_number,
                Generator& g) {
  DimVector shape = mean && std ? broadcastShapes(mean->sizes(), std->sizes())
                                : DimVector((mean ? mean : std)->sizes());
  const DType dtype = (mean ? mean : std)->dtype();
  Tensor t = Tensor::empty(shape, dtype, (mean ? mean : std)->device());
  if (std) {
    WICK_CHECK(!isComplex(std->dtype()), "normal expects standard deviation to be non-complex");
    bool negative = false;
    Tensor flat = moveTo(std->to(DType::Double), Device()).contiguous();
    for (int64_t i = 0; i < flat.numel(); ++i) negative |= flat.data<double>()[i] < 0;
    WICK_CHECK(!negative, "normal expects all elements of std >= 0.0");
    fillNormal(t, 0, 1, g);
    t = ops::mul(t, *std).to(dtype);
  } else {
    fillNormal(t, 0, std_number, g);
  }
  if (mean) return ops::add(t, *mean, Scalar(1)).to(dtype);
  return mean_number == 0
             ? t
             : ops::add(t, Tensor::scalar<double>(mean_number).to(t.dtype()), Scalar(1));
}
Tensor normalTensorFloat(const Tensor& mean, double std, Generator* g) {
  checkNormal(std);
  return normalOf(&mean, 0, nullptr, std, *g);
}
Tensor normalFloatTensor(double mean, const Tensor& std, Generator* g) {
  return normalOf(nullptr, mean, &std, 0, *g);
}
Tensor normalTensorTensor(const Tensor& mean, const Tensor& std, Generator* g) {
  return normalOf(&mean, 0, &std, 0, *g);
}
Tensor emptyFor(IntSpan size, const TensorOptions& o) {
  return Tensor::empty(size, o.dtypeOr(defaultDType()), deviceFor(o.device));
}

Tensor normalFloatFloat(double mean, double std, DimVector size, Generator* g, TensorOptions o) {
  Tensor t = emptyFor(size, o);
  fillNormal(t, mean, std, *g);
  return t;
}

Tensor randGenerator(DimVector size, Generator* g, TensorOptions o) {
  Tensor t = emptyFor(size, o);
  fillUniform(t, 0, 1, *g);
  return t;
}
Tensor rand(DimVector size, TensorOptions o) {
  return randGenerator(size, &defaultGenerator(), o);
}
Tensor randnGenerator(DimVector size, Generator* g, TensorOptions o) {
  return normalFloatFloat(0, 1, size, g, o);
}
Tensor randn(DimVector size, TensorOptions o) {
  return randnGenerator(size, &defaultGenerator(), o);
}
Tensor likeOf(const Tensor& self, const TensorOptions& o, std::optional<MemoryFormat> format) {
  return Tensor::emptyLike(self, o.dtypeOr(self.dtype()), format.value_or(MemoryFormat::Preserve));
}
Tensor randLike(const Tensor& self, TensorOptions o, std::optional<MemoryFormat> format) {
  Tensor t = likeOf(self, o, format);
  fillUniform(t, 0, 1, defaultGenerator());
  return t;
}
Tensor randnLike(const Tensor& self, TensorOptions o, std::optional<MemoryFormat> format) {
  Tensor t = likeOf(self, o, format);
  fillNormal(t, 0, 1, defaultGenerator());
  return t;
}

// Integers of [low, high), reduced from 64 bits when 32 do not reach over the range.
void fillIntegers(const char* op, const Tensor& t, int64_t low, int64_t high, Generator& g) {
  static const OperatorHandle kRandom{"aten::random_", "from"};
  checkIntegers(op, low, high);
  if (drawnOnDevice(kRandom, t, g, low, high)) return;
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  dispatch<kRealNumbers | kBool>(op, t.dtype(), [&]<class T>() -> void {
    if constexpr (std::is_integral_v<T> && sizeof(T) < 8) {
      using Limits = std::numeric_limits<T>;
      WICK_CHECK(low >= static_cast<int64_t>(Limits::min()) &&
                     high - 1 <= static_cast<int64_t>(Limits::max()),
                 "{}: the bounds {} and {} are out of range for {}", op, low, high,
                 toString(t.dtype()));
    }
    if (range >= uint64_t{1} << 32) {
      drawFixed<T, 2>(t, g, [&](const uint32_t* draws, int64_t) {
        return static_cast<int64_t>(joined(draws) % range + static_cast<uint64_t>(low));
      });
    } else {
      const auto small = static_cast<uint32_t>(range);
      drawFixed<T, 1>(t, g, [&](const uint32_t* draws, int64_t) {
        return static_cast<int64_t>(*draws % small + static_cast<uint64_t>(low));
      });
    }
  });
}

Tensor randintOf(int64_t low, int64_t high, IntSpan size, Generator& g, const TensorOptions& o) {
  Tensor t = emptyFor(size, o);
  fillIntegers("random_", t, low, high, g);
  return t;
}
Tensor randint(int64_t high, DimVector size, TensorOptions o) {
  return randintOf(0, high, size, defaultGenerator(), o);
}
Tensor randintGenerator(int64_t high, DimVector size, Generator* g, TensorOptions o) {
  return randintOf(0, high, size, *g, o);
}
Tensor randintLow(int64_t low, int64_t high, DimVector size, TensorOptions o) {
  return randintOf(low, high, size, defaultGenerator(), o);
}
Tensor randintLowGenerator(int64_t low, int64_t high, DimVector size, Generator* g,
                           TensorOptions o) {
  return randintOf(low, high, size, *g, o);
}
Tensor randintLike(const Tensor& self, int64_t high, TensorOptions o,
                   std::optional<MemoryFormat> format) {
  Tensor t = likeOf(self, o, format);
  fillIntegers("random_", t, 0, high, defaultGenerator());
  return t;
}
Tensor randintLikeLow(const Tensor& self, int64_t low, int64_t high, TensorOptions o,
                      std::optional<MemoryFormat> format) {
  Tensor t = likeOf(self, o, format);
  fillIntegers("random_", t, low, high, defaultGenerator());
  return t;
}

// The whole range that the dtype represents without gaps, from zero up.
Tensor random(const Tensor& self, Generator* g, Out out) {
  Tensor t = target(self, out);
  dispatch<kRealNumbers | kBool>("random_", t.dtype(), [&]<class T>() -> void {
    drawEach<T>(t, [&]() -> int64_t {
      if constexpr (std::is_same_v<T, bool>) return g->next32() & 1;
      if constexpr (std::is_same_v<T, int64_t>) return g->next64() % (uint64_t{1} << 63);
      if constexpr (std::is_same_v<T, double>) return g->next64() % ((uint64_t{1} << 53) + 1);
      if constexpr (std::is_integral_v<T>) {
        return g->next32() % (static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1);
      }
      return g->next32() % ((uint64_t{1} << kDigits<T>)+1);
    });
  });
  return t;
}
Tensor randomTo(const Tensor& self, int64_t to, Generator* g, Out out) {
  Tensor t = target(self, out);
  fillIntegers("random_", t, 0, to, *g);
  return t;
}
Tensor randomFrom(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* g,
                  Out out) {
  Tensor t = target(self, out);
  if (to) {
    fillIntegers("random_", t, from, *to, *g);
    return t;
  }
  // Up to the largest number of the dtype, inclusive.
  dispatch<kRealNumbers | kBool>("random_", t.dtype(), [&]<class T>() -> void {
    uint64_t last = std::is_same_v<T, bool> ? 1 : uint64_t{1} << 62;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      last = static_cast<uint64_t>(std::numeric_limits<T>::max());
    } else if constexpr (!std::is_integral_v<T>) {
      last = uint64_t{1} << kDigits<T>;
    }
    uint64_t range = last - static_cast<uint64_t>(from) + 1;
    drawEach<T>(t, [&] {
      uint64_t bits = range >= (uint64_t{1} << 32) || range == 0 ? g->next64() : g->next32();
      return static_cast<int64_t>((range ? bits % range : bits) + static_cast<uint64_t>(from));
    });
  });
  return t;
}

Tensor randpermGenerator(int64_t n, Generator* g, TensorOptions o) {
  WICK_CHECK(n >= 0, "n must be non-negative, got {}", n);
  Tensor t = Tensor::empty(DimVector{n}, DType::Long);
  int64_t* data = t.data<int64_t>();
  Pace pace;
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    data[i] = i;
  }
  drawBlocks<1>(*g, n - 1, [&](int64_t begin, int64_t count, const uint32_t* draws) {
    // Partners are known before they are needed, so that memory can be asked for them.
    int64_t* partners[1024];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = begin + i;
      partners[i] = data + at + static_cast<int64_t>(draws[i] % static_cast<uint64_t>(n - at));
      __builtin_prefetch(partners[i], 1);
    }
    for (int64_t i = 0; i < count; ++i) std::swap(data[begin + i], *partners[i]);
  });
  return moveTo(t.to(o.dtypeOr(DType::Long)), deviceFor(o.device));
}
Tensor randperm(int64_t n, TensorOptions o) {
  return randpermGenerator(n, &defaultGenerator(), o);
}

void fillBernoulli(const Tensor& t, double p, Generator& g) {
  static const OperatorHandle kDraw{"aten::bernoulli_", "float"};
  checkBernoulli(p);
  if (drawnOnDevice(kDraw, t, g, p)) return;
  dispatch<kRealNumbers | kBool>("bernoulli_", t.dtype(), [&]<class T>() -> void {
    drawFixed<T, 2>(t, g,
                    [&](const uint32_t* draws, int64_t) { return uniform01<double>(draws) < p; });
  });
}
void fillBernoulli(const Tensor& t, const Tensor& p, Generator& g) {
  static const OperatorHandle kDraw{"aten::bernoulli_", "Tensor"};
  if (drawnOnDevice(kDraw, t, g, p)) return;
  Tensor chance = p.expand(t.sizes()).contiguous();
  dispatch<kAnyFloat>("bernoulli_", p.dtype(), [&]<class P>() -> void {
    using C = std::conditional_t<std::is_same_v<P, double>, double, float>;
    const P* chances = chance.data<P>();
    Pace pace;
    for (int64_t begin = 0; begin < chance.numel(); begin += 1024) {
      const int64_t end = std::min(chance.numel(), begin + 1024);
      pace.step(end - begin);
      bool right = true;
      for (int64_t i = begin; i < end; ++i) {
        const C q = static_cast<C>(chances[i]);
        right &= q >= 0 && q <= 1;
      }
      WICK_CHECK(right, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
    }
    dispatch<kRealNumbers | kBool>("bernoulli_", t.dtype(), [&]<class T>() -> void {
      drawFixed<T, kUniformDraws<C>>(t, g, [&](const uint32_t* draws, int64_t i) {
        return uniform01<C>(draws) < static_cast<C>(chances[i]);
      });
    });
  });
}
// Drawn in the order of the indices, whatever order self lies in.
Tensor bernoulli(const Tensor& self, Generator* g) {
  Tensor t = Tensor::empty(self.sizes(), self.dtype(), self.device());
  fillBernoulli(t, self, *g);
  return t;
}
Tensor bernoulliP(const Tensor& self, double p, Generator* g) {
  Tensor t = Tensor::empty(self.sizes(), self.dtype(), self.device());
  fillBernoulli(t, p, *g);
  return t;
}
Tensor bernoulliTensor(const Tensor& self, const Tensor& p, Generator* g, Out out) {
  Tensor t = target(self, out);
  fillBernoulli(t, p, *g);
  return t;
}
Tensor bernoulliInplace(const Tensor& self, double p, Generator* g) {
  markWritten("bernoulli_", self);
  fillBernoulli(self, p, *g);
  return self;
}

// What torch.nn.init calls: the same as uniform_ and normal_, outside of gradients.
Tensor uniformPlainly(const Tensor& self, double from, double to, Generator* g) {
  markWritten("_no_grad_uniform_", self);
  return uniform(self, from, to, g, Out{&self});
}
Tensor normalPlainly(const Tensor& self, double mean, double std, Generator* g) {
  return normalInplace(self, mean, std, g);
}

// Distributions that map one uniform double an element.
template <class F>
Tensor fromUniform(const char* op, const Tensor& self, Generator& g, Out out, F&& f) {
  Tensor t = target(self, out);
  dispatch<kAnyFloat>(op, t.dtype(), [&]<class T>() -> void {
    drawFixed<T, 2>(t, g,
                    [&](const uint32_t* draws, int64_t) { return f(uniform01<double>(draws)); });
  });
  return t;
}
double exponentialOf(double u, double lambda) {
  return -1.0 / lambda * std::log1p(-u);
}

Tensor exponential(const Tensor& self, double lambda, Generator* g, Out out) {
  checkExponential(lambda);
  return fromUniform("exponential_", self, *g, out,
                     [&](double u) { return exponentialOf(u, lambda); });
}
Tensor cauchy(const Tensor& self, double median, double sigma, Generator* g, Out out) {
  return fromUniform("cauchy_", self, *g, out, [&](double u) {
    return median + sigma * std::tan(std::numbers::pi * (u - 0.5));
  });
}
Tensor geometric(const Tensor& self, double p, Generator* g, Out out) {
  checkGeometric(p);
  Tensor t = target(self, out);
  dispatch<kRealNumbers>("geometric_", t.dtype(), [&]<class T>() -> void {
    drawFixed<T, 2>(t, *g, [&](const uint32_t* draws, int64_t) {
      return std::ceil(std::log(uniform01<double>(draws)) / std::log(1 - p));
    });
  });
  return t;
}
Tensor logNormal(const Tensor& self, double mean, double std, Generator* g, Out out) {
  checkLogNormal(std);
  Tensor t = target(self, out);
  dispatch<kAnyFloat>("log_normal_", t.dtype(), [&]<class T>() -> void {
    drawEach<T>(t, [&] { return std::exp(g->normal() * std + mean); });
  });
  return t;
}

constexpr uint64_t kDrawInto = kDraw | kInplaceForm | kOutForm;

#define WICK_OPTIONS_OF(dtype) \
  "ScalarType? dtype=" dtype ", Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define WICK_OPTIONS WICK_OPTIONS_OF("None")

const OperatorRecord kRandomRecords[] = {
    {"aten::rand(int[] size, *, " WICK_OPTIONS ") -> Tensor", (&pinning<4, WICK_KERNEL(rand)>),
     kDraw, shapes::made},
    {"aten::rand.generator(int[] size, *, Generator? generator, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(randGenerator)>), kDraw, shapes::made},
    {"aten::rand.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kDraw | kNeutralMixed},
    {"aten::randn(int[] size, *, " WICK_OPTIONS ") -> Tensor", (&pinning<4, WICK_KERNEL(randn)>),
     kDraw, shapes::made},
    {"aten::randn.generator(int[] size, *, Generator? generator, " WICK_OPTIONS ") -> Tensor",
     (&pinning<5, WICK_KERNEL(randnGenerator)>), kDraw, shapes::made},
    {"aten::randn.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kDraw | kNeutralMixed},
    {"aten::rand_like(Tensor self, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<4, WICK_KERNEL(randLike)>), kDraw | kNeutral, shapes::madeLike},
    {"aten::randn_like(Tensor self, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<4, WICK_KERNEL(randnLike)>), kDraw | kNeutral, shapes::madeLike},
    {"aten::randint(int high, int[] size, *, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<5, WICK_KERNEL(randint)>), kDraw, shapes::made},
    {"aten::randint.generator(int high, int[] size, *, Generator? generator, " WICK_OPTIONS_OF(
         "4") ") -> Tensor",
     (&pinning<6, WICK_KERNEL(randintGenerator)>), kDraw, shapes::made},
    {"aten::randint.low(int low, int high, int[] size, *, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<6, WICK_KERNEL(randintLow)>), kDraw, shapes::made},
    {"aten::randint.low_generator(int low, int high, int[] size, *, Generator? "
     "generator, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<7, WICK_KERNEL(randintLowGenerator)>), kDraw, shapes::made},
    {"aten::randint.out(int high, int[] size, *, Tensor(a!) out) -> Tensor(a!)", &outForm,
     kDraw | kNeutralMixed},
    {"aten::randint.low_out(int low, int high, int[] size, *, Tensor(a!) out) -> Tensor(a!)",
     &outForm, kDraw | kNeutralMixed},
    {"aten::randint_like(Tensor self, int high, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<5, WICK_KERNEL(randintLike)>), kDraw | kNeutral, shapes::madeLike},
    {"aten::randint_like.low_dtype(Tensor self, int low, int high, *, " WICK_OPTIONS
     ", MemoryFormat? memory_format=None) -> Tensor",
     (&pinning<6, WICK_KERNEL(randintLikeLow)>), kDraw | kNeutral, shapes::madeLike},
    {"aten::randperm(int n, *, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<4, WICK_KERNEL(randperm)>), kDraw},
    {"aten::randperm.generator(int n, *, Generator? generator, " WICK_OPTIONS_OF("4") ") -> Tensor",
     (&pinning<5, WICK_KERNEL(randpermGenerator)>), kDraw},
    {"aten::randperm.out(int n, *, Tensor(a!) out) -> Tensor(a!)", &outForm, kDraw | kNeutralMixed},
    {"aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> "
     "Tensor",
     WICK_KERNEL(uniform), kDrawInto, shapes::likeFirst},
    {"aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> "
     "Tensor(a!)",
     WICK_KERNEL(normalInplace), kDraw},
    {"aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> "
     "Tensor",
     WICK_KERNEL(normalTensorFloat), kNondeterministic | kOutForm | kNeutral},
    {"aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(normalFloatTensor), kNondeterministic | kOutForm | kNeutral},
    {"aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(normalTensorTensor), kNondeterministic | kOutForm | kNeutral},
    {"aten::normal.float_float(float mean, float std, int[] size, *, Generator? "
     "generator=None, " WICK_OPTIONS ") -> Tensor",
     (&pinning<7, WICK_KERNEL(normalFloatFloat)>), kDraw},
    {"aten::normal.float_float_out(float mean, float std, int[] size, *, Generator? "
     "generator=None, Tensor(a!) out) -> Tensor(a!)",
     &outForm, kDraw | kNeutralMixed},
    {"aten::_no_grad_uniform_(Tensor(a!) tensor, float a, float b, Generator? generator=None) -> "
     "Tensor(a!)",
     WICK_KERNEL(uniformPlainly), kDraw | kNeutral},
    {"aten::_no_grad_normal_(Tensor(a!) tensor, float mean, float std, Generator? generator=None) "
     "-> Tensor(a!)",
     WICK_KERNEL(normalPlainly), kDraw | kNeutral},
    {"aten::random(Tensor self, *, Generator? generator=None) -> Tensor", WICK_KERNEL(random),
     kDrawInto, shapes::likeFirst},
    {"aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(randomFrom), kDrawInto, shapes::likeFirst},
    {"aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(randomTo), kDrawInto, shapes::likeFirst},
    {"aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", WICK_KERNEL(bernoulli),
     kDraw | kOutForm | kNeutral, shapes::likeFirst},
    {"aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(bernoulliP), kDraw | kNeutral, shapes::likeFirst},
    {"aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(bernoulliTensor), kDraw | kInplaceForm | kRefusesPartialOverlap,
     shapes::likeFirst},
    {"aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> "
     "Tensor(a!)",
     WICK_KERNEL(bernoulliInplace), kDraw},
    {"aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(exponential), kDrawInto, shapes::likeFirst},
    {"aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> "
     "Tensor",
     WICK_KERNEL(cauchy), kDrawInto},
    {"aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     WICK_KERNEL(geometric), kDrawInto, shapes::likeFirst},
    {"aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> "
     "Tensor",
     WICK_KERNEL(logNormal), kDrawInto},
};

const RegisterOperators kRandomRegistered(kRandomRecords);

}  // namespace

}  // namespace wick::ops
