#include "core/native_class.h"

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "core/error.h"

namespace wick {

namespace {

struct Known {
  NativeClass definition;
  ClassTypePtr type;
};

// Classes are added before main() as well as later, and never go.
struct Table {
  std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<const Known>, std::less<>> classes;
};

std::unique_ptr<const Known> known(NativeClass definition) {
  auto type = std::make_shared<ClassType>(definition.name, /*is_module=*/false);
  type->addAttribute("capsule", types::Capsule());
  return std::make_unique<const Known>(Known{std::move(definition), std::move(type)});
}

Table& table() {
  static Table* const made = [] {
    auto* t = new Table;
    // The handle of profiler::_record_function_enter_new, which archives name too.
    NativeClass record_function;
    record_function.name = "__torch__.torch.classes.profiler._RecordFunction";
    t->classes.emplace(record_function.name, known(record_function));
    return t;
  }();
  return *made;
}

const Known* find(std::string_view name) {
  if (!name.starts_with(kNativeClassPrefix)) return nullptr;
  Table& t = table();
  std::shared_lock lock(t.mutex);
  const auto found = t.classes.find(name);
  return found == t.classes.end() ? nullptr : found->second.get();
}

}  // namespace

ClassTypePtr registerNativeClass(NativeClass definition) {
  if (!definition.name.starts_with(kNativeClassPrefix)) {
    throw UsageError(fmt::format("the name of a native class begins with {}, got {}",
                                 kNativeClassPrefix, definition.name));
  }
  Table& t = table();
  std::unique_lock lock(t.mutex);
  if (t.classes.contains(definition.name)) {
    throw UsageError(fmt::format("there is already a native class {}", definition.name));
  }
  const std::string name = definition.name;
  return t.classes.emplace(name, known(std::move(definition))).first->second->type;
}

ClassTypePtr findNativeClass(std::string_view qualified_name) {
  const Known* found = find(qualified_name);
  return found ? found->type : nullptr;
}

const NativeClass* nativeClassOf(const ClassType& type) {
  const Known* found = find(type.name());
  return found && found->type.get() == &type ? &found->definition : nullptr;
}

const std::string* findNativeMethod(const ClassType& type, std::string_view name) {
  const NativeClass* native = nativeClassOf(type);
  if (!native) return nullptr;
  for (const NativeMethod& method : native->methods) {
    if (method.name == name) return &method.op;
  }
  return nullptr;
}

const std::string* findMethodOfOperator(const ClassType& type, std::string_view op) {
  const NativeClass* native = nativeClassOf(type);
  if (!native) return nullptr;
  for (const NativeMethod& method : native->methods) {
    if (method.op == op) return &method.name;
  }
  return nullptr;
}

void withdrawNativeClass(std::string_view qualified_name) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  if (const auto found = t.classes.find(qualified_name); found != t.classes.end()) {
    t.classes.erase(found);
  }
}

IValue makeNative(std::string_view qualified_name, Ref<RefCounted> held) {
  const ClassTypePtr type = findNativeClass(qualified_name);
  WICK_ASSERT(type, "there is no native class {}", qualified_name);
  auto object = makeRef<Object>(type, nullptr);
  object->setSlot(0, IValue::capsule(std::move(held)));
  return IValue(ObjectRef(std::move(object)));
}

RefCounted& heldBy(const char* op, const IValue& object) {
  WICK_CHECK(object.isObject() && nativeClassOf(*object.toObject().type()),
             "{}: expected an object of the engine's, got {}", op, object.tagName());
  const IValue& held = object.toObject().slot(0);
  WICK_CHECK(held.isCapsule(), "{}: this {} was never given a state", op,
             object.toObject().type()->name());
  return held.toCapsule();
}

void throwWrongNative(const char* op, const IValue& object, std::string_view what) {
  throwRuntimeError("{}: expected {}, got an object of {}", op, what,
                    object.toObject().type()->name());
}

}  // namespace wick
