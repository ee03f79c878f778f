// Values of programs from C++ types, and back: what IValue's constructor for containers and
// IValue::to() are made of.
//
//   C++                                      TorchScript
//   bool, integers, float and double         bool, int, float
//   std::complex                             complex
//   std::string                              str
//   Tensor, Device                           Tensor, Device
//   DType                                    int, with PyTorch's number
//   std::optional                            Optional
//   std::vector, std::array, std::span       List
//   std::map, std::unordered_map             Dict
//   std::pair, std::tuple                    Tuple
//   IValue                                   anything
//
// An application's own type joins by a specialization of ValueConversion with the same functions.
#pragma once

#include <cmath>
#include <string>

#include "core/error_types.h"
#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {
namespace detail {
// RuntimeError "expected …, got …".
[[noreturn]] void throwExpected(const std::string& expected, const IValue& found);
[[noreturn]] void throwExpectedLength(size_t expected, const IValue& found);
// RuntimeError that says in which element of a container the other occurred.
[[noreturn]] void throwWithin(const IValue& key, const RuntimeError& error);
[[noreturn]] void throwOutOfRange(int64_t value, int64_t least, uint64_t greatest);

// Calls `f`, and tells of an error in which element it was.
template <class F>
decltype(auto) within(const IValue& key, F&& f) {
  try {
    return f();
  } catch (const RuntimeError& error) {
    throwWithin(key, error);
  }
}
}  // namespace detail

// type(): the declared type. make(): the value. from(): the other way, RuntimeError when the value
// is of another type.
template <>
struct ValueConversion<IValue> {
  static TypePtr type() { return types::Any(); }
  static IValue make(IValue v) { return v; }
  static IValue from(const IValue& v) { return v; }
};

template <>
struct ValueConversion<bool> {
  static TypePtr type() { return types::Bool(); }
  static IValue make(bool v) { return v; }
  static bool from(const IValue& v) { return v.toBool(); }
};

template <std::integral T>
requires(!detail::kIsCharacter<T>) struct ValueConversion<T> {
  static TypePtr type() { return types::Int(); }
  static IValue make(T v) { return v; }
  static T from(const IValue& v) {
    const int64_t number = v.toInt();
    if (!std::in_range<T>(number)) {
      detail::throwOutOfRange(number, static_cast<int64_t>(std::numeric_limits<T>::min()),
                              static_cast<uint64_t>(std::numeric_limits<T>::max()));
    }
    return static_cast<T>(number);
  }
};

template <std::floating_point T>
struct ValueConversion<T> {
  static TypePtr type() { return types::Float(); }
  static IValue make(T v) { return static_cast<double>(v); }
  static T from(const IValue& v) {
    return static_cast<T>(v.isInt() ? static_cast<double>(v.toInt()) : v.toDouble());
  }
};

template <class T>
struct ValueConversion<std::complex<T>> {
  static TypePtr type() { return types::Complex(); }
  static IValue make(std::complex<T> v) { return std::complex<double>(v); }
  static std::complex<T> from(const IValue& v) { return std::complex<T>(v.toComplex()); }
};

template <>
struct ValueConversion<std::string> {
  static TypePtr type() { return types::String(); }
  static IValue make(std::string v) { return v; }
  static std::string from(const IValue& v) { return v.toString(); }
};

// Into values only, because nobody would own the text.
template <>
struct ValueConversion<std::string_view> {
  static TypePtr type() { return types::String(); }
  static IValue make(std::string_view v) { return v; }
};
template <>
struct ValueConversion<const char*> {
  static TypePtr type() { return types::String(); }
  static IValue make(const char* v) { return v; }
};

template <>
struct ValueConversion<Tensor> {
  static TypePtr type() { return types::Tensor(); }
  static IValue make(Tensor v) { return v; }
  static Tensor from(const IValue& v) { return v.tensor(); }
};

template <>
struct ValueConversion<Device> {
  static TypePtr type() { return types::Device(); }
  static IValue make(Device v) { return v; }
  static Device from(const IValue& v) { return v.toDevice(); }
};

template <>
struct ValueConversion<DType> {
  static TypePtr type() { return types::Int(); }
  static IValue make(DType v) { return v; }
  static DType from(const IValue& v) {
    if (const auto dtype = dtypeFromNumber(v.toInt())) return *dtype;
    detail::throwExpected("the number of a dtype", v);
  }
};

template <class T>
struct ValueConversion<std::optional<T>> {
  static TypePtr type() { return types::Optional(ValueConversion<T>::type()); }
  static IValue make(std::optional<T> v) { return IValue(std::move(v)); }
  static std::optional<T> from(const IValue& v) {
    if (v.isNone()) return std::nullopt;
    return ValueConversion<T>::from(v);
  }
};

namespace detail {
template <class T>
struct ListConversion {
  static TypePtr type() { return types::List(ValueConversion<T>::type()); }
  // `begin` and `end` of any sequence of T.
  template <class Begin, class End>
  static IValue makeOf(Begin begin, End end, size_t size) {
    std::vector<IValue> elements;
    elements.reserve(size);
    for (; begin != end; ++begin) {
      elements.push_back(ValueConversion<T>::make(static_cast<T>(*begin)));
    }
    return makeList(ValueConversion<T>::type(), std::move(elements));
  }
  // Calls take(element) for the elements of a list or tuple.
  template <class Take>
  static void each(const IValue& v, Take take) {
    if (!v.isList() && !v.isTuple()) throwExpected(type()->annotation(), v);
    int64_t index = 0;
    for (const IValue& element : v.elements()) {
      within(index, [&] { take(ValueConversion<T>::from(element)); });
      ++index;
    }
  }
};

template <class Map, class K, class V>
struct DictConversion {
  static TypePtr type() {
    return types::Dict(ValueConversion<K>::type(), ValueConversion<V>::type());
  }
  static IValue make(const Map& map) {
    DictRef dict = makeRef<DictObject>(ValueConversion<K>::type(), ValueConversion<V>::type());
    for (const auto& [key, value] : map) {
      dict->set(ValueConversion<K>::make(key), ValueConversion<V>::make(value));
    }
    return dict;
  }
  static Map from(const IValue& v) {
    if (!v.isDict()) throwExpected(type()->annotation(), v);
    Map map;
    for (const auto& entry : v.items()) {
      within(entry.first, [&] {
        map.emplace(ValueConversion<K>::from(entry.first), ValueConversion<V>::from(entry.second));
      });
    }
    return map;
  }
};

template <class Tuple, class... T>
struct TupleConversion {
  static TypePtr type() { return types::Tuple({ValueConversion<T>::type()...}); }
  static IValue make(const Tuple& tuple) {
    return std::apply(
        [](const T&... parts) {
          return IValue(makeTuple(std::vector<IValue>{ValueConversion<T>::make(parts)...}));
        },
        tuple);
  }
  static Tuple from(const IValue& v) {
    if (!v.isTuple()) throwExpected(type()->annotation(), v);
    if (v.size() != sizeof...(T)) throwExpectedLength(sizeof...(T), v);
    size_t index = 0;
    const auto next = [&]<class U>(const U*) {
      const size_t i = index++;
      return within(i, [&] { return ValueConversion<U>::from(v.elements()[i]); });
    };
    // Braces evaluate in order.
    return Tuple{next(static_cast<const T*>(nullptr))...};
  }
};
}  // namespace detail

template <class T, class A>
struct ValueConversion<std::vector<T, A>> : detail::ListConversion<T> {
  static IValue make(const std::vector<T, A>& v) {
    return detail::ListConversion<T>::makeOf(v.begin(), v.end(), v.size());
  }
  static std::vector<T, A> from(const IValue& v) {
    std::vector<T, A> result;
    if (v.isList() || v.isTuple()) result.reserve(v.size());
    detail::ListConversion<T>::each(v, [&](T element) { result.push_back(std::move(element)); });
    return result;
  }
};

template <class T, size_t N>
struct ValueConversion<std::array<T, N>> : detail::ListConversion<T> {
  static IValue make(const std::array<T, N>& v) {
    return detail::ListConversion<T>::makeOf(v.begin(), v.end(), N);
  }
  static std::array<T, N> from(const IValue& v) {
    if ((v.isList() || v.isTuple()) && v.size() != N) detail::throwExpectedLength(N, v);
    std::array<T, N> result{};
    size_t i = 0;
    detail::ListConversion<T>::each(v, [&](T element) { result[i++] = std::move(element); });
    return result;
  }
};

// Into values only, because nobody would own the elements.
template <class T, size_t N>
struct ValueConversion<std::span<T, N>> : detail::ListConversion<std::remove_const_t<T>> {
  static IValue make(std::span<T, N> v) {
    return detail::ListConversion<std::remove_const_t<T>>::makeOf(v.begin(), v.end(), v.size());
  }
};
template <>
struct ValueConversion<IntSpan> : ValueConversion<std::span<const int64_t>> {};
template <>
struct ValueConversion<DimVector> : ValueConversion<std::span<const int64_t>> {
  static IValue make(const DimVector& v) { return makeIntList(v); }
};

template <class K, class V, class C, class A>
struct ValueConversion<std::map<K, V, C, A>> : detail::DictConversion<std::map<K, V, C, A>, K, V> {
};
template <class K, class V, class H, class E, class A>
struct ValueConversion<std::unordered_map<K, V, H, E, A>>
    : detail::DictConversion<std::unordered_map<K, V, H, E, A>, K, V> {};

template <class A, class B>
struct ValueConversion<std::pair<A, B>> : detail::TupleConversion<std::pair<A, B>, A, B> {};
template <class... T>
struct ValueConversion<std::tuple<T...>> : detail::TupleConversion<std::tuple<T...>, T...> {};

}  // namespace wick

#pragma GCC visibility pop
