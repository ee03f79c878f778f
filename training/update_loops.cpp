// Rounding is PyTorch's: each line below that ends in an assignment or a step() is one of its
// operators, which rounds its result to the dtype, and a product with a sum is fused where its
// kernels fuse them (add with alpha, addcmul). So float32 and float64 agree to the last bit.
#include "training/update_loops.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"

namespace wick::training {
namespace {

// The type in which an element is computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A result of an operator: rounded to T.
template <class T>
Wide<T> rounded(Wide<T> v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(T(v));
  } else {
    return v;
  }
}

// a + b * factor, as torch.add(a, b, alpha=factor).
template <class T>
Wide<T> plus(Wide<T> a, Wide<T> b, Wide<T> factor) {
  return rounded<T>(std::fma(b, factor, a));
}

// a + factor * b * c, as torch.addcmul.
template <class T>
Wide<T> plusProduct(Wide<T> a, Wide<T> b, Wide<T> c, Wide<T> factor) {
  return rounded<T>(std::fma(factor * b, c, a));
}

// a + factor * b / c, as torch.addcdiv.
template <class T>
Wide<T> plusQuotient(Wide<T> a, Wide<T> b, Wide<T> c, Wide<T> factor) {
  return rounded<T>(a + factor * b / c);
}

template <class T>
struct Row {
  explicit Row(void* data) : at(static_cast<T*>(data)) {}
  T* at;
  Wide<T> get(int64_t i) const { return static_cast<Wide<T>>(at[i]); }
  void set(int64_t i, Wide<T> v) const { at[i] = static_cast<T>(v); }
};

template <class T>
struct GradientRow {
  explicit GradientRow(const Update& u)
      : at(static_cast<const T*>(u.gradient)),
        sign(static_cast<Wide<T>>(u.sign)),
        decay(static_cast<Wide<T>>(u.weight_decay)) {}
  const T* at;
  Wide<T> sign;
  Wide<T> decay;
  template <bool Decays>
  Wide<T> get(int64_t i, Wide<T> parameter) const {
    const Wide<T> g = sign * static_cast<Wide<T>>(at[i]);
    return Decays ? plus<T>(g, parameter, decay) : g;
  }
};

enum class Momentum { None, First, Plain, Nesterov };

template <class T, bool Decays, Momentum Kind>
void sgdLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), buffer(u.buffers[0]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.rate);
  const auto momentum = static_cast<Wide<T>>(u.momentum);
  const auto fresh = static_cast<Wide<T>>(u.fresh);
  const auto first = static_cast<bool>(u.beta1);  // with Nesterov: the buffer is new
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = parameter.get(i);
    Wide<T> g = gradient.template get<Decays>(i, p);
    if constexpr (Kind == Momentum::First) {
      buffer.set(i, g);
    } else if constexpr (Kind != Momentum::None) {
      const Wide<T> old = rounded<T>(buffer.get(i) * momentum);
      const Wide<T> b = first ? g : plus<T>(old, g, fresh);
      buffer.set(i, b);
      g = Kind == Momentum::Nesterov ? plus<T>(g, b, momentum) : b;
    }
    parameter.set(i, plus<T>(p, g, rate));
  }
}

template <class T, bool Decays, bool Amsgrad>
void adamLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), average(u.buffers[0]), square(u.buffers[1]);
  const Row<T> largest(u.buffers[2]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.rate);
  const auto beta1 = static_cast<Wide<T>>(u.beta1), fresh = static_cast<Wide<T>>(u.fresh);
  const auto beta2 = static_cast<Wide<T>>(u.beta2), fresh2 = static_cast<Wide<T>>(u.fresh2);
  const auto correction = static_cast<Wide<T>>(u.correction), eps = static_cast<Wide<T>>(u.eps);
  const auto shrink = static_cast<Wide<T>>(u.shrink);
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = rounded<T>(parameter.get(i) * shrink);
    const Wide<T> g = gradient.template get<Decays>(i, p);
    const Wide<T> m = plus<T>(rounded<T>(average.get(i) * beta1), g, fresh);
    const Wide<T> v = plusProduct<T>(rounded<T>(square.get(i) * beta2), g, g, fresh2);
    average.set(i, m);
    square.set(i, v);
    Wide<T> scale = v;
    if constexpr (Amsgrad) {
      const Wide<T> before = largest.get(i);
      // NaN of either stays, as in torch.maximum.
      scale = before > v || before != before ? before : v;
      largest.set(i, scale);
    }
    const Wide<T> root = rounded<T>(rounded<T>(std::sqrt(scale)) / correction);
    parameter.set(i, plusQuotient<T>(p, m, rounded<T>(root + eps), rate));
  }
}

template <class T, bool Decays, bool Centered, bool Moves>
void rmsLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), square(u.buffers[0]), buffer(u.buffers[1]);
  const Row<T> average(u.buffers[2]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.rate);
  const auto momentum = static_cast<Wide<T>>(u.momentum);
  const auto alpha = static_cast<Wide<T>>(u.beta2), fresh = static_cast<Wide<T>>(u.fresh2);
  const auto eps = static_cast<Wide<T>>(u.eps);
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = parameter.get(i);
    const Wide<T> g = gradient.template get<Decays>(i, p);
    const Wide<T> v = plusProduct<T>(rounded<T>(square.get(i) * alpha), g, g, fresh);
    square.set(i, v);
    Wide<T> spread = v;
    if constexpr (Centered) {
      const Wide<T> m = plus<T>(rounded<T>(average.get(i) * alpha), g, fresh);
      average.set(i, m);
      spread = plusProduct<T>(v, m, m, Wide<T>(-1));
    }
    const Wide<T> root = rounded<T>(rounded<T>(std::sqrt(spread)) + eps);
    if constexpr (Moves) {
      const Wide<T> old = rounded<T>(buffer.get(i) * momentum);
      const Wide<T> b = plusQuotient<T>(old, g, root, Wide<T>(1));
      buffer.set(i, b);
      parameter.set(i, plus<T>(p, b, rate));
    } else {
      parameter.set(i, plusQuotient<T>(p, g, root, rate));
    }
  }
}

template <class T, bool Decays>
void adagradLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), sum(u.buffers[0]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.rate);
  const auto eps = static_cast<Wide<T>>(u.eps);
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = parameter.get(i);
    const Wide<T> g = gradient.template get<Decays>(i, p);
    const Wide<T> s = plusProduct<T>(sum.get(i), g, g, Wide<T>(1));
    sum.set(i, s);
    const Wide<T> root = rounded<T>(rounded<T>(std::sqrt(s)) + eps);
    parameter.set(i, plusQuotient<T>(p, g, root, rate));
  }
}

// f.operator()<flags as constants>().
template <class F>
UpdateLoop choose(bool a, F f) {
  return a ? f(std::true_type()) : f(std::false_type());
}
template <class F>
UpdateLoop choose(bool a, bool b, F f) {
  return choose(a, [&](auto x) { return choose(b, [&](auto y) { return f(x, y); }); });
}
template <class F>
UpdateLoop choose(bool a, bool b, bool c, F f) {
  return choose(a, b,
                [&](auto x, auto y) { return choose(c, [&](auto z) { return f(x, y, z); }); });
}

template <class T>
void prepare(Update& u, const Sgd& rule, int64_t, bool first) {
  u.rate = -rule.lr;
  u.weight_decay = rule.weight_decay;
  u.momentum = rule.momentum;
  u.fresh = 1 - rule.dampening;
  u.beta1 = first ? 1 : 0;
  u.loop = choose(rule.weight_decay != 0, [&](auto decays) -> UpdateLoop {
    constexpr bool kDecays = decays;
    if (rule.momentum == 0) return &sgdLoop<T, kDecays, Momentum::None>;
    if (rule.nesterov) return &sgdLoop<T, kDecays, Momentum::Nesterov>;
    if (first) return &sgdLoop<T, kDecays, Momentum::First>;
    return &sgdLoop<T, kDecays, Momentum::Plain>;
  });
}

template <class T, class Rule>
void prepareAdam(Update& u, const Rule& rule, int64_t step, bool decays) {
  const auto n = static_cast<double>(step);
  u.beta1 = rule.betas[0];
  u.beta2 = rule.betas[1];
  u.fresh = 1 - u.beta1;
  u.fresh2 = 1 - u.beta2;
  u.rate = -(rule.lr / (1 - std::pow(u.beta1, n)));
  u.correction = std::sqrt(1 - std::pow(u.beta2, n));
  u.eps = rule.eps;
  u.loop = choose(decays, rule.amsgrad, [](auto decay, auto amsgrad) -> UpdateLoop {
    return &adamLoop<T, decltype(decay)::value, decltype(amsgrad)::value>;
  });
}

template <class T>
void prepare(Update& u, const Adam& rule, int64_t step, bool) {
  u.weight_decay = rule.weight_decay;
  prepareAdam<T>(u, rule, step, rule.weight_decay != 0);
}

template <class T>
void prepare(Update& u, const AdamW& rule, int64_t step, bool) {
  u.shrink = 1 - rule.lr * rule.weight_decay;
  prepareAdam<T>(u, rule, step, false);
}

template <class T>
void prepare(Update& u, const RmsProp& rule, int64_t, bool) {
  u.rate = -rule.lr;
  u.weight_decay = rule.weight_decay;
  u.momentum = rule.momentum;
  u.beta2 = rule.alpha;
  u.fresh2 = 1 - rule.alpha;
  u.eps = rule.eps;
  u.loop = choose(rule.weight_decay != 0, rule.centered, rule.momentum > 0,
                  [](auto decays, auto centered, auto moves) -> UpdateLoop {
                    return &rmsLoop<T, decltype(decays)::value, decltype(centered)::value,
                                    decltype(moves)::value>;
                  });
}

template <class T>
void prepare(Update& u, const Adagrad& rule, int64_t step, bool) {
  u.rate = -(rule.lr / (1 + static_cast<double>(step - 1) * rule.lr_decay));
  u.weight_decay = rule.weight_decay;
  u.eps = rule.eps;
  u.loop = choose(rule.weight_decay != 0, [](auto decays) -> UpdateLoop {
    return &adagradLoop<T, decltype(decays)::value>;
  });
}

DType realOf(DType dtype) {
  if (dtype == DType::ComplexFloat) return DType::Float;
  if (dtype == DType::ComplexDouble) return DType::Double;
  return dtype;
}

}  // namespace

void prepareUpdate(Update& update, const UpdateRule& rule, DType dtype, int64_t step, bool first) {
  dispatch<kAnyFloat>("optimizer", realOf(dtype), [&]<class T>() {
    std::visit(
        [&](const auto& known) {
          update.sign = known.maximize ? -1 : 1;
          prepare<T>(update, known, step, first);
        },
        rule);
  });
}

void runUpdates(std::span<const Update> updates) {
  // A step that ended in the middle would leave parameters of two ages behind.
  const BudgetScope unbounded(nullptr);
  std::vector<int64_t> ends;  // of each parameter, counting through all
  ends.reserve(updates.size());
  int64_t total = 0;
  for (const Update& update : updates) ends.push_back(total += update.count);
  parallelFor(total, kGrainSize, [&](int64_t begin, int64_t end) {
    size_t at = static_cast<size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
    while (begin < end) {
      const Update& update = updates[at];
      const int64_t start = ends[at] - update.count;
      const int64_t stop = std::min(end, ends[at]);
      if (begin < stop) update.loop(update, begin - start, stop - start);
      begin = stop;
      ++at;
    }
  });
}

}  // namespace wick::training
