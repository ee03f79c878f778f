// C++ functions as what Extension (extension.h) registers: their arguments from values, their
// results to values, and the types that the schema must declare for both.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/scalar.h"
#include "core/value_conversions.h"

#pragma GCC visibility push(default)

namespace wick {

// Stores as many results as the schema has. Arguments have the types of the schema.
using ExtensionFunction =
    std::function<void(std::span<const IValue> arguments, std::span<IValue> results)>;

namespace detail {

// What an object of an application's class holds.
template <class T>
struct HeldObject : RefCounted {
  template <class... A>
  explicit HeldObject(A&&... arguments) : value(std::forward<A>(arguments)...) {}
  T value;
};

// The class that a C++ type was registered as. UsageError when there is none.
TypePtr classOfType(const std::type_info& type);
IValue makeHeld(const std::type_info& type, Ref<RefCounted> held);
// RuntimeError that says what was expected.
RefCounted& heldObject(const std::type_info& type, const IValue& object);
[[noreturn]] void throwOtherClass(const std::type_info& type, const IValue& object);
// Gives an object that was made without a state what it holds.
void holdObject(const IValue& object, Ref<RefCounted> held);

template <class T>
concept HasConversion = requires {
  ValueConversion<T>::type();
};

// How a parameter is made of an argument, and its type in schemas.
template <class T>
struct Parameter {
  using Plain = std::remove_cvref_t<T>;
  static TypePtr type() {
    if constexpr (std::is_same_v<Plain, Scalar>) {
      return types::Number();
    } else if constexpr (HasConversion<Plain>) {
      return ValueConversion<Plain>::type();
    } else {
      return classOfType(typeid(Plain));
    }
  }
  static decltype(auto) from(const IValue& v) {
    if constexpr (std::is_same_v<Plain, IValue>) {
      return v;
    } else if constexpr (std::is_same_v<Plain, Scalar>) {
      return Scalar::fromIValue(v);
    } else if constexpr (HasConversion<Plain>) {
      return ValueConversion<Plain>::from(v);
    } else {
      auto* held = dynamic_cast<HeldObject<Plain>*>(&heldObject(typeid(Plain), v));
      if (!held) throwOtherClass(typeid(Plain), v);
      return static_cast<Plain&>(held->value);
    }
  }
};

template <class T>
IValue resultValue(T&& result) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, Scalar>) {
    return result.toIValue();
  } else if constexpr (HasConversion<Plain>) {
    return ValueConversion<Plain>::make(std::forward<T>(result));
  } else {
    return makeHeld(typeid(Plain), makeRef<HeldObject<Plain>>(std::forward<T>(result)));
  }
}

template <class R>
struct Results {
  static std::vector<TypePtr> types() { return {Parameter<R>::type()}; }
  static void store(R&& result, std::span<IValue> results) {
    results[0] = resultValue(std::forward<R>(result));
  }
};
template <class... R>
struct Results<std::tuple<R...>> {
  static std::vector<TypePtr> types() { return {Parameter<R>::type()...}; }
  static void store(std::tuple<R...>&& result, std::span<IValue> results) {
    size_t i = 0;
    std::apply([&](auto&&... part) { ((results[i++] = resultValue(std::move(part))), ...); },
               std::move(result));
  }
};
template <>
struct Results<void> {
  static std::vector<TypePtr> types() { return {}; }
};

// What is known of a function without calling it.
struct Signature {
  std::vector<TypePtr> arguments;
  std::vector<TypePtr> results;
};

// `Class` is the class of a member function; void for others.
template <class R, class... A>
struct Binder {
  template <class F>
  static ExtensionFunction bind(F function) {
    return [function = std::move(function)](std::span<const IValue> arguments,
                                            std::span<IValue> results) mutable {
      call(function, arguments, results, std::index_sequence_for<A...>());
    };
  }
  // Not before the classes of the extension are known.
  static Signature signature() {
    return {{Parameter<A>::type()...}, Results<std::remove_cvref_t<R>>::types()};
  }

 private:
  template <class F, size_t... I>
  static void call(F& function, std::span<const IValue> arguments, std::span<IValue> results,
                   std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      std::invoke(function, Parameter<A>::from(arguments[I])...);
    } else {
      Results<std::remove_cvref_t<R>>::store(
          std::remove_cvref_t<R>(std::invoke(function, Parameter<A>::from(arguments[I])...)),
          results);
    }
  }
};

template <class F>
struct BinderOf : BinderOf<decltype(&F::operator())> {};
template <class R, class... A>
struct BinderOf<R (*)(A...)> : Binder<R, A...> {};
template <class R, class... A>
struct BinderOf<R (*)(A...) noexcept> : Binder<R, A...> {};
// Lambdas; methods of T are bound with their object in front by MethodBinderOf.
template <class T, class R, class... A>
struct BinderOf<R (T::*)(A...)> : Binder<R, A...> {};
template <class T, class R, class... A>
struct BinderOf<R (T::*)(A...) const> : Binder<R, A...> {};

template <class F>
struct MethodBinderOf : BinderOf<F> {};
template <class T, class R, class... A>
struct MethodBinderOf<R (T::*)(A...)> : Binder<R, T&, A...> {};
template <class T, class R, class... A>
struct MethodBinderOf<R (T::*)(A...) const> : Binder<R, T&, A...> {};

}  // namespace detail
}  // namespace wick

#pragma GCC visibility pop
