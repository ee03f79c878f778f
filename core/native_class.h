// Classes that no program defines: "__torch__.torch.classes.NAMESPACE.NAME". Their objects hold
// something of C++'s in a capsule; operators make and take them, programs pass them around, hold
// them in attributes and call the methods that the class offers. An archive holds what
// `get_state` returns, and `set_state` makes the object of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ivalue.h"

namespace wick {

// A method is an operator whose first argument is the object: {"unpack",
// "quantized::linear_unpack"}.
struct NativeMethod {
  std::string name;
  std::string op;
};

struct NativeClass {
  std::string name;  // qualified, beginning with kNativeClassPrefix
  // What an archive holds; empty: objects cannot be saved. May throw RuntimeError.
  std::function<IValue(const RefCounted& self)> get_state;
  // The inverse, of a value that a file says; empty: objects cannot be loaded. Throws RuntimeError
  // for what it cannot take.
  std::function<Ref<RefCounted>(const IValue& state)> set_state;
  std::vector<NativeMethod> methods;
};

inline constexpr std::string_view kNativeClassPrefix = "__torch__.torch.classes.";

// Adds a class for as long as the process lives and returns its type. Once for each name:
// UsageError for a name that is taken or has no prefix. Thread-safe.
ClassTypePtr registerNativeClass(NativeClass definition);
struct RegisterNativeClass {
  explicit RegisterNativeClass(NativeClass definition) {
    registerNativeClass(std::move(definition));
  }
};

// The type of that name, or null. Thread-safe.
ClassTypePtr findNativeClass(std::string_view qualified_name);
// What was registered for the type, or null when it is a class of a program's.
const NativeClass* nativeClassOf(const ClassType& type);
// The operator behind a method, or null.
const std::string* findNativeMethod(const ClassType& type, std::string_view name);
// The other way: the method that the operator is of the class, or null.
const std::string* findMethodOfOperator(const ClassType& type, std::string_view op);
// Takes a class back, for a registration of several things that failed. Only while no value and no
// program knows of it.
void withdrawNativeClass(std::string_view qualified_name);

// An object of the class.
IValue makeNative(std::string_view qualified_name, Ref<RefCounted> held);
// What an object of a native class holds. RuntimeError that begins with `op` for other values, and
// for an object that was made without a state.
RefCounted& heldBy(const char* op, const IValue& object);
[[noreturn]] void throwWrongNative(const char* op, const IValue& object, std::string_view what);
// The same of a C++ type; `what` names what is expected.
template <class T>
T& heldBy(const char* op, const IValue& object, std::string_view what) {
  if (auto* held = dynamic_cast<T*>(&heldBy(op, object))) return *held;
  throwWrongNative(op, object, what);
}

}  // namespace wick
