#include "runtime/ops/reduce/into.h"

#include <algorithm>
#include <limits>

#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"

namespace wick::ops {

namespace {

template <class T>
bool isNan(T v) {
  return v != v;
}

template <class T>
T combine(Reduction reduction, T a, T b) {
  using C = std::conditional_t<kIsReducedFloat<T>, float, T>;
  C x = convert<C>(a);
  C y = convert<C>(b);
  if constexpr (std::is_same_v<T, bool>) {
    return reduction == Reduction::Prod || reduction == Reduction::Amin ? x && y : x || y;
  } else {
    switch (reduction) {
      case Reduction::Prod:
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
        } else {
          return convert<T>(x * y);
        }
      case Reduction::Amax:
      case Reduction::Amin:
        if constexpr (kIsComplex<T>) {
          break;
        } else {
          if (isNan(x) || isNan(y)) return isNan(y) ? b : a;
          return (reduction == Reduction::Amax ? x < y : y < x) ? b : a;
        }
      default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
    } else {
      return convert<T>(x + y);
    }
  }
}

template <class T>
T identityOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::Prod:
      return convert<T>(1);
    case Reduction::Amax:
    case Reduction::Amin:
      if constexpr (std::is_same_v<T, bool>) {
        return reduction == Reduction::Amin;
      } else if constexpr (std::is_integral_v<T>) {
        return reduction == Reduction::Amax ? std::numeric_limits<T>::min()
                                            : std::numeric_limits<T>::max();
      } else {
        double inf = std::numeric_limits<double>::infinity();
        return convert<T>(reduction == Reduction::Amax ? -inf : inf);
      }
    default:
      return convert<T>(0);
  }
}

// v / n, toward negative infinity for integers.
template <class T>
T divide(T v, int64_t n) {
  if constexpr (std::is_same_v<T, bool>) {
    return v && n == 1;
  } else if constexpr (std::is_integral_v<T>) {
    int64_t wide = static_cast<int64_t>(v);
    return static_cast<T>(wide / n - (wide % n != 0 && wide < 0));
  } else if constexpr (kIsReducedFloat<T>) {
    return T(static_cast<float>(v) / static_cast<float>(n));
  } else {
    return v / convert<T>(n);
  }
}

}  // namespace

std::optional<Reduction> reductionNamed(std::string_view name) {
  if (name == "sum") return Reduction::Sum;
  if (name == "prod") return Reduction::Prod;
  if (name == "mean") return Reduction::Mean;
  if (name == "amax") return Reduction::Amax;
  if (name == "amin") return Reduction::Amin;
  return std::nullopt;
}

void reduceInto(const char* op, const Tensor& target, const Tensor& source,
                const CountedVector<int64_t>& at, Reduction reduction, bool include_self) {
  bool ordered = reduction == Reduction::Amax || reduction == Reduction::Amin;
  if (ordered && isComplex(target.dtype())) throwUnsupportedDType(op, target.dtype());
  Tensor from = source.sharesStorage(target) ? source.clone() : source;
  dispatchAll(target.dtype(), [&]<class T>() {
    T* to = target.data<T>();
    const T* data = from.data<T>();
    if (!include_self) {
      T identity = identityOf<T>(reduction);
      for (int64_t p : at) to[p] = identity;
    }
    for (size_t i = 0; i < at.size(); ++i) to[at[i]] = combine<T>(reduction, to[at[i]], data[i]);
    if (reduction != Reduction::Mean) return;
    CountedVector<int64_t> places = at;
    std::sort(places.begin(), places.end());
    for (size_t i = 0, next; i < places.size(); i = next) {
      for (next = i + 1; next < places.size() && places[next] == places[i];) ++next;
      to[places[i]] = divide<T>(to[places[i]], static_cast<int64_t>(next - i) + include_self);
    }
  });
}

}  // namespace wick::ops
