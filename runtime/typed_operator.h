// Calling operators from C++ with C++ types: what the functions of wick_ops.h are made of.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/scalar.h"
#include "core/value_conversions.h"

#pragma GCC visibility push(default)

namespace wick {

class Operator;

// Ints that an operator can do without: a braced list, a span or vector, or std::nullopt. Like
// IntSpan it does not own them.
class OptionalInts {
 public:
  OptionalInts(std::nullopt_t) {}
  OptionalInts(IntSpan values) : values_(values) {}
  OptionalInts(std::initializer_list<int64_t> values) : values_(IntSpan(values)) {}
  OptionalInts(const std::vector<int64_t>& values) : values_(IntSpan(values)) {}
  const std::optional<IntSpan>& values() const { return values_; }

 private:
  std::optional<IntSpan> values_;
};

// One overload of an operator, found when it is made: UsageError when there is none. Thread-safe.
class TypedOperator {
 public:
  TypedOperator(const char* name, const char* overload);

  // Runs the kernel on arguments of the declared types, and gives its result as an R: void, a type
  // of core/value_conversions.h, a Scalar, or a std::tuple of several results.
  template <class R, class... Arguments>
  R call(const Arguments&... arguments) const {
    std::array<IValue, sizeof...(Arguments)> values{valueOf(arguments)...};
    if constexpr (std::is_void_v<R>) {
      run(values, {});
    } else if constexpr (IsTuple<R>::value) {
      return callTuple(static_cast<R*>(nullptr), values);
    } else {
      IValue result;
      run(values, std::span(&result, 1));
      return resultAs<R>(result);
    }
  }

 private:
  template <class T>
  struct IsTuple : std::false_type {};
  template <class... T>
  struct IsTuple<std::tuple<T...>> : std::true_type {};

  static IValue valueOf(const Scalar& v) { return v.toIValue(); }
  static IValue valueOf(const std::optional<Scalar>& v) { return v ? v->toIValue() : IValue(); }
  static IValue valueOf(const OptionalInts& v) {
    return v.values() ? IValue(*v.values()) : IValue();
  }
  template <class T>
  static IValue valueOf(const T& v) {
    return IValue(v);
  }

  template <class T>
  static T resultAs(const IValue& v) {
    if constexpr (std::is_same_v<T, Scalar>) {
      return Scalar::fromIValue(v);
    } else if constexpr (std::is_same_v<T, Tensor>) {
      return v.toTensor();  // undefined where an operator has nothing to say
    } else {
      return v.to<T>();
    }
  }

  template <class... T>
  std::tuple<T...> callTuple(std::tuple<T...>*, std::span<IValue> arguments) const {
    std::array<IValue, sizeof...(T)> results;
    run(arguments, results);
    return unpack<T...>(results, std::index_sequence_for<T...>());
  }
  template <class... T, size_t... i>
  static std::tuple<T...> unpack(const std::array<IValue, sizeof...(T)>& results,
                                 std::index_sequence<i...>) {
    return {resultAs<T>(results[i])...};
  }

  void run(std::span<IValue> arguments, std::span<IValue> results) const;
  const Operator* operator_;
};

}  // namespace wick

#pragma GCC visibility pop
