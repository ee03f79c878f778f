// Turns a typed C++ function into a Kernel:
//
//   Tensor clampMin(const Tensor& self, const Scalar& min, Out out);
//   {"aten::clamp_min(Tensor self, Scalar min) -> Tensor", WICK_KERNEL(clampMin), kInplaceForm |
//   kOutForm}
//
// Parameters are taken from the arguments in order. `Out` takes none: it is the destination of an
// in-place or out= form (null for the plain call); a function without it has its result copied
// there. When the operator has an in-place form (kInplaceForm) the plain call may write over its
// first argument too, if nobody else holds it: what a function does once with its Out it must do
// last. Tensors, strings and IValues are the arguments themselves and hold no reference of their
// own.
//   Tensor, const Tensor&      Tensor or Tensor? (None: undefined)
//   Scalar                     Scalar;  optional<Scalar>: Scalar?
//   int64_t double bool        int float bool (float also takes int); optional<…>: int? float?
//   bool? complex<double>            complex DimVector                  int[] or int[N] (a single
//   int stays one element); optional<…>: int[]? vector<Tensor>             Tensor[] and Tensor?[];
//   vector<double>: float[];  vector<bool>: bool[] DType                      ScalarType;
//   optional<DType>: ScalarType? Device, optional<Device>   Device, Device? MemoryFormat,
//   optional<…>  MemoryFormat const string&, optional<string>   str IValue anything Generator*
//   Generator? (None: the default generator)
//   TensorOptions              the four arguments dtype, layout, device, pin_memory in a row
// Results: void, the same types, or a std::tuple of them; vector<Tensor> makes a Tensor[],
// DimVector an int[].
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/ivalue.h"
#include "core/scalar.h"
#include "ir/operator.h"

namespace wick {

using Generator = GeneratorObject;

// Several results.
using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

struct Out {
  const Tensor* tensor = nullptr;
  // The first argument of a plain call whose in-place form is the same function, or null.
  const Tensor* spare = nullptr;
  explicit operator bool() const { return tensor != nullptr; }
};

// What the four arguments `ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory` of
// factories say. A layout other than strided is refused when it is unboxed; pinning is a hint that
// changes nothing on the CPU.
struct TensorOptions {
  std::optional<DType> dtype;
  std::optional<Device> device;
  Device deviceOr(Device other) const { return device ? *device : other; }
  DType dtypeOr(DType other) const { return dtype ? *dtype : other; }
};

namespace boxing {

DType toDType(const IValue& v);  // RuntimeError for a number that is no dtype

template <class T>
struct Unbox;

// A tensor for the time of a call, without a reference of its own: the argument keeps it.
class CallTensor {
 public:
  explicit CallTensor(const IValue& v) : tensor_(refer(v)) {}
  CallTensor(CallTensor&&) noexcept = default;
  ~CallTensor() { std::move(tensor_).takeRef().leak(); }
  operator const Tensor&() const { return tensor_; }
  const Tensor& get() const { return tensor_; }

 private:
  static Tensor refer(const IValue& v) {
    if (!v.isTensor()) return v.toTensor();  // None, or an error
    return Tensor(Ref<TensorImpl>::adopt(static_cast<TensorImpl*>(v.rawObject())));
  }
  Tensor tensor_;
};

template <>
struct Unbox<Tensor> {
  static CallTensor get(const IValue& v) { return CallTensor(v); }
};
template <>
struct Unbox<Scalar> {
  static Scalar get(IValue& v) { return Scalar::fromIValue(v); }
};
template <>
struct Unbox<int64_t> {
  static int64_t get(IValue& v) { return v.isInt() ? v.rawInt() : v.numberToInt(); }
};
template <>
struct Unbox<double> {
  static double get(IValue& v) { return v.isDouble() ? v.rawDouble() : v.numberToDouble(); }
};
template <>
struct Unbox<bool> {
  static bool get(IValue& v) { return v.toBool(); }
};
template <>
struct Unbox<std::complex<double>> {
  static std::complex<double> get(IValue& v) { return v.numberToComplex(); }
};
template <>
struct Unbox<DimVector> {
  static DimVector get(IValue& v) { return v.toDims(); }
};
template <>
struct Unbox<std::vector<Tensor>> {
  static std::vector<Tensor> get(IValue& v) { return v.toTensors(); }
};
template <>
struct Unbox<std::vector<double>> {
  static std::vector<double> get(IValue& v) {
    std::vector<double> out;
    for (const IValue& e : v.elements()) out.push_back(e.numberToDouble());
    return out;
  }
};
template <>
struct Unbox<std::vector<bool>> {
  static std::vector<bool> get(IValue& v) {
    std::vector<bool> out;
    for (const IValue& e : v.elements()) out.push_back(e.toBool());
    return out;
  }
};
template <>
struct Unbox<DType> {
  static DType get(IValue& v) { return toDType(v); }
};
template <>
struct Unbox<Device> {
  static Device get(IValue& v) { return v.toDevice(); }
};
template <>
struct Unbox<MemoryFormat> {
  static MemoryFormat get(IValue& v) { return static_cast<MemoryFormat>(v.toInt()); }
};
template <>
struct Unbox<std::string> {
  static const std::string& get(const IValue& v) { return v.toString(); }
};
template <>
struct Unbox<IValue> {
  static const IValue& get(const IValue& v) { return v; }
};
template <>
struct Unbox<Generator*> {
  static Generator* get(IValue& v) { return v.isNone() ? &defaultGenerator() : &v.toGenerator(); }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> get(IValue& v) {
    if (v.isNone()) return std::nullopt;
    return Unbox<T>::get(v);
  }
};

template <class T>
IValue box(T&& value) {
  using V = std::decay_t<T>;
  if constexpr (std::is_same_v<V, DimVector>) {
    return IValue(makeIntList(value));
  } else if constexpr (std::is_same_v<V, std::vector<Tensor>>) {
    return IValue(makeTensorList(value));
  } else if constexpr (std::is_same_v<V, Scalar>) {
    return value.toIValue();
  } else if constexpr (std::is_same_v<V, DType>) {
    return IValue(static_cast<int64_t>(value));
  } else {
    return IValue(std::forward<T>(value));
  }
}

template <class R>
struct StoreResult {
  static void store(R&& r, IValue* results) { results[0] = box(std::move(r)); }
};
template <class... Rs>
struct StoreResult<std::tuple<Rs...>> {
  static void store(std::tuple<Rs...>&& r, IValue* results) {
    std::apply([&](auto&... e) { ((*results++ = box(std::move(e))), ...); }, r);
  }
};

// How many arguments a parameter takes.
template <class P>
inline constexpr size_t kArity = 1;
template <>
inline constexpr size_t kArity<Out> = 0;
template <>
inline constexpr size_t kArity<TensorOptions> = 4;

// Index of the first argument of parameter I.
template <size_t I, class... Ps>
constexpr size_t argumentIndex() {
  constexpr size_t arity[] = {kArity<std::decay_t<Ps>>..., 0};
  size_t n = 0;
  for (size_t i = 0; i < I; ++i) n += arity[i];
  return n;
}

TensorOptions toOptions(IValue* args);

// What stands for a parameter until the function is called: a value, or a reference to the
// argument.
template <class P, size_t Index>
decltype(auto) argument(CallFrame& frame) {
  if constexpr (std::is_same_v<P, Out>) {
    return Out{frame.destination};
  } else if constexpr (std::is_same_v<P, TensorOptions>) {
    return toOptions(frame.args + Index);
  } else {
    return Unbox<P>::get(frame.args[Index]);
  }
}

template <auto F, class Signature>
struct Boxed;

template <auto F, class R, class... Ps>
struct Boxed<F, R (*)(Ps...)> {
  static void call(CallFrame& frame) { invoke(frame, std::index_sequence_for<Ps...>()); }

 private:
  template <size_t... I>
  static void invoke(CallFrame& frame, std::index_sequence<I...>) {
    WICK_ASSERT(frame.num_args == (size_t{0} + ... + kArity<std::decay_t<Ps>>),
                "{}: called with {} arguments", frame.op->schema().str(), frame.num_args);
    // A braced list is evaluated left to right.
    std::tuple<decltype(argument<std::decay_t<Ps>, argumentIndex<I, Ps...>()>(frame))...> args{
        argument<std::decay_t<Ps>, argumentIndex<I, Ps...>()>(frame)...};
    if constexpr ((std::is_same_v<std::decay_t<Ps>, Out> || ...)) {
      if constexpr (std::is_same_v<std::decay_t<decltype(std::get<0>(args))>, CallTensor>) {
        if (!frame.destination && frame.owns(0) && frame.op->has(kInplaceForm)) {
          std::get<Out>(args).spare = &std::get<0>(args).get();
        }
      }
    }
    if constexpr (std::is_void_v<R>) {
      F(std::get<I>(args)...);
    } else {
      StoreResult<std::decay_t<R>>::store(F(std::get<I>(args)...), frame.results);
    }
  }
};

}  // namespace boxing
}  // namespace wick

#define WICK_KERNEL(function) (&::wick::boxing::Boxed<&function, decltype(&function)>::call)
