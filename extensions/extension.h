// Operators and classes of an application, for programs and archives that name them.
//
//   wick::Extension extension("mylib");
//   extension.op("clip(Tensor self, float limit) -> Tensor",
//                [](const Tensor& self, double limit) { return wick::ops::clamp(self, -limit, limit); },
//                {.result_like = "self",
//                 .derivative = "self: grad * (self.abs() <= limit).to(grad.dtype)"});
//   extension.object<Counter>("Counter")
//       .init<int64_t>()
//       .def("add", &Counter::add)
//       .pickle([](const Counter& c) { return c.count(); },
//               [](int64_t count) { return Counter(count); });
//   extension.add();
//
// A program then calls torch.ops.mylib.clip(x, limit=2.0), makes torch.classes.mylib.Counter(3)
// and calls its methods. All of it or, when something is wrong, nothing is added. What was added
// stays as long as the process lives, so that the functions and what they hold must too: a library
// that adds something is never unloaded.
//
// Functions may be called from any number of threads at a time, and methods of one object as well.
// They run within the limits of the call (core/budget.h), and a long loop may ask for these. What
// they throw reaches the program as a RuntimeError that names the operator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "extensions/function_binding.h"

#pragma GCC visibility push(default)

namespace wick {

// What a shape rule knows of an argument: its type, of a tensor with what follows for its dtype and
// sizes (TensorType in core/type.h), and its value when that is a constant.
struct KnownArgument {
  TypePtr type;
  std::optional<IValue> value;
};

// The dtype that scripts within torch.autocast cast the tensors of a call to: their own, that of autocast, float32, or float32 if
// one of them is of that.
enum class AutocastTrait : uint8_t { None, Reduced, Full, Widest };

struct OperatorTraits {
  // The first result has the dtype, sizes and device of the argument of this name.
  std::string result_like{};
  // The types of all results from what is known of the arguments, when result_like does not tell
  // them. It may say less than possible, and must say nothing wrong: programs are compiled by it.
  std::function<std::vector<TypePtr>(std::span<const KnownArgument>)> shape{};
  // Lines "argument: expression" in TorchScript, as docs/extending.md tells; "others" when the
  // function calls operators whose derivatives are its own; "none" when the results depend on
  // nothing. Empty: an error when a gradient is asked for.
  std::string derivative{};
  bool random = false;        // other results for the same arguments
  bool side_effects = false;  // does something beside its result, and is called as often as written
  bool raises_by_elements = false;  // an error may depend on elements, not only on sizes and dtypes
  bool reads_strides = false;       // results or errors depend on how the elements lie in memory
  bool row_major = false;           // the results are row-major, however the arguments lie
  AutocastTrait autocast = AutocastTrait::None;
};

// A class whose objects hold a T. Used by Extension::object.
class ClassDefinition {
 public:
  explicit ClassDefinition(std::string name) : name_(std::move(name)) {}
  virtual ~ClassDefinition() = default;

 protected:
  friend class Extension;
  struct Method {
    std::string declaration;  // "push", or with arguments: "push(int x, int times=1) -> ()"
    ExtensionFunction function;
    std::function<detail::Signature()> signature;  // of the function with the object; may be empty
  };
  std::string name_;
  std::optional<detail::TypeKey> type_;
  std::vector<Method> methods_;
  std::function<IValue(const RefCounted&)> get_state_;
  std::function<Ref<RefCounted>(const IValue&)> set_state_;
};

template <class T>
class ObjectDefinition : public ClassDefinition {
 public:
  explicit ObjectDefinition(std::string name) : ClassDefinition(std::move(name)) {
    type_ = detail::TypeKey::of<T>();
  }

  // Programs make objects with arguments of these types.
  template <class... A>
  ObjectDefinition& init(std::string declaration = "__init__") {
    const auto make = [](const IValue& self, A... arguments) {
      detail::holdObject(self, detail::newHeld<T>(std::move(arguments)...));
    };
    methods_.push_back({std::move(declaration),
                        detail::Binder<void, const IValue&, A...>::bind(make),
                        &detail::Binder<void, const IValue&, A...>::signature});
    return *this;
  }

  // A method: a member function, or a function whose first parameter is a T&. `declaration` is its
  // name, or its schema without the object, which names arguments and gives them defaults.
  template <class F>
  ObjectDefinition& def(std::string declaration, F function) {
    using Binder = detail::MethodBinderOf<F>;
    methods_.push_back({std::move(declaration), Binder::bind(std::move(function)),
                        [] { return Binder::signature(); }});
    return *this;
  }

  // What an archive holds of an object, and the object of that. Without it objects cannot be saved.
  template <class Get, class Set>
  ObjectDefinition& pickle(Get get, Set set) {
    get_state_ = [get = std::move(get)](const RefCounted& self) {
      return detail::resultValue(std::invoke(get, heldIn(self)));
    };
    set_state_ = [set = std::function(std::move(set))](const IValue& state) -> Ref<RefCounted> {
      return makeWith(set, state);
    };
    return *this;
  }

 private:
  static const T& heldIn(const RefCounted& self) {
    return *static_cast<const T*>(static_cast<const detail::HeldObject&>(self).object());
  }
  template <class R, class A>
  static Ref<RefCounted> makeWith(const std::function<R(A)>& set, const IValue& state) {
    return detail::newHeld<T>(set(detail::Parameter<A>::from(state)));
  }
};

class Extension {
 public:
  // `name_space` is an identifier; "aten" and "prim" are the engine's.
  explicit Extension(std::string name_space);
  ~Extension();
  Extension(const Extension&) = delete;
  Extension& operator=(const Extension&) = delete;

  // An operator: its schema without the namespace, as PyTorch's schemas are written
  // ("clip.limit(Tensor(a!) self, float limit=1.0) -> Tensor(a!)": what is written and what the
  // results share memory with must be said), and a function of C++ types that suit it
  // (core/value_conversions.h; Scalar for `Scalar`, std::tuple for several results, T& for an
  // object of a class).
  template <class F>
  Extension& op(std::string schema, F function, OperatorTraits traits = {}) {
    using Binder = detail::BinderOf<std::decay_t<F>>;
    return opOf(std::move(schema), Binder::bind(std::move(function)), std::move(traits),
                [] { return Binder::signature(); });
  }
  // A function of values.
  Extension& opOf(std::string schema, ExtensionFunction function, OperatorTraits traits = {},
                  std::function<detail::Signature()> signature = {});

  // A class, whose name in programs is torch.classes.NAMESPACE.NAME. The reference is valid while
  // this lives.
  template <class T>
  ObjectDefinition<T>& object(std::string name) {
    auto made = std::make_unique<ObjectDefinition<T>>(std::move(name));
    ObjectDefinition<T>& definition = *made;
    keep(std::move(made));
    return definition;
  }

  // Adds everything. Throws UsageError, and adds nothing, for a schema that cannot be read or does
  // not suit its function, for a name that is taken, for a derivative that does not compile, and
  // when it was called before. All overloads of an operator are added together.
  void add();

  // Classes by functions of values, as the interface for C makes them.
  struct PlainMethod {
    std::string declaration;  // a schema without the object
    ExtensionFunction function;
  };
  Extension& objectOf(std::string name, std::vector<PlainMethod> methods,
                      std::function<IValue(const RefCounted&)> get_state,
                      std::function<Ref<RefCounted>(const IValue&)> set_state);

 private:
  struct State;
  void keep(std::unique_ptr<ClassDefinition> definition);
  std::unique_ptr<State> state_;
};

}  // namespace wick

#pragma GCC visibility pop
