// C++ functions as what Extension (extension.h) registers: their arguments from values, their
// results to values, and the types that the schema must declare for both.
#pragma once

#include <functional>
#include <memory>
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

template <class T>
struct TypeAddress {
  static inline char here = 0;
};

// Which C++ type it is. A program without type information (-fno-rtti) knows types by addresses,
// which tell them apart within one library; with it several libraries have one key for a type.
class TypeKey {
 public:
  template <class T>
  static TypeKey of() {
    TypeKey key;
    key.address_ = &TypeAddress<T>::here;
#ifdef __cpp_rtti
    key.type_ = &typeid(T);
#endif
    key.text_ = __PRETTY_FUNCTION__;
    return key;
  }
  friend bool operator==(const TypeKey& a, const TypeKey& b) {
    return a.address_ == b.address_ || (a.type_ && b.type_ && *a.type_ == *b.type_);
  }
  // "mylib::Counter", for messages.
  std::string name() const;

 private:
  TypeKey() = default;
  const void* address_ = nullptr;
  const std::type_info* type_ = nullptr;
  const char* text_ = nullptr;  // has the name in it
};

// The C++ object inside of an object of an application's class.
class HeldObject : public RefCounted {
 public:
  // Owns `held`, a T of the type that the key tells.
  HeldObject(const TypeKey& key, void* held, void (*destroy_held)(void*))
      : type_(key), object_(held), destroy_(destroy_held) {}
  ~HeldObject() override;
  const TypeKey& type() const { return type_; }
  void* object() const { return object_; }

 private:
  TypeKey type_;
  void* object_;
  void (*destroy_)(void*);
};
template <class T, class... A>
Ref<RefCounted> newHeld(A&&... arguments) {
  auto object = std::make_unique<T>(std::forward<A>(arguments)...);
  Ref<RefCounted> held = makeRef<HeldObject>(
      TypeKey::of<T>(), object.get(), +[](void* made) { delete static_cast<T*>(made); });
  object.release();
  return held;
}

// The class that a C++ type was registered as. UsageError when there is none.
TypePtr classOfType(const TypeKey& type);
IValue makeHeld(const TypeKey& type, Ref<RefCounted> held);
// Returns the T of `type` that the object holds. Throws RuntimeError that names the expected class.
void* heldObject(const TypeKey& type, const IValue& object);
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
      return classOfType(TypeKey::of<Plain>());
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
      return *static_cast<Plain*>(heldObject(TypeKey::of<Plain>(), v));
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
    return makeHeld(TypeKey::of<Plain>(), newHeld<Plain>(std::forward<T>(result)));
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
