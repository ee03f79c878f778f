// Operators, classes and plugins of capi/wick.h.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "capi/guard.h"
#include "core/native_class.h"
#include "extensions/extension.h"
#include "extensions/plugin.h"

using namespace wick;
using namespace wick::capi;

namespace {

// Handles for the time of a call.
class Handles {
 public:
  explicit Handles(std::span<const IValue> values) {
    values_.reserve(values.size());
    for (const IValue& v : values) values_.push_back({v});
    for (wick_value& v : values_) pointers_.push_back(&v);
  }
  wick_value* const* data() const { return pointers_.data(); }
  bool has(const wick_value* handle) const {
    return std::ranges::find(pointers_, handle) != pointers_.end();
  }

 private:
  std::vector<wick_value> values_;
  std::vector<wick_value*> pointers_;
};

// Handles that a function stores.
class Stored {
 public:
  explicit Stored(size_t count) : handles_(count, nullptr) {}
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;
  ~Stored() {
    for (wick_value* v : handles_) delete v;
  }
  wick_value** data() { return handles_.data(); }
  // Lets go of what may not be freed here: an argument's handle, and one that stands there twice. Whether
  // there was such a one.
  bool disown(const Handles& arguments) {
    bool any = false;
    for (auto it = handles_.begin(); it != handles_.end(); ++it) {
      if (!*it || (!arguments.has(*it) && std::find(handles_.begin(), it, *it) == it)) continue;
      *it = nullptr;
      any = true;
    }
    return any;
  }
  IValue take(size_t i) {
    if (!handles_[i]) throw RuntimeError(fmt::format("its function stored no result {}", i));
    return std::move(handles_[i]->value);
  }

 private:
  std::vector<wick_value*> handles_;
};

ExtensionFunction functionOf(wick_function function, void* data) {
  return [function, data](std::span<const IValue> arguments, std::span<IValue> results) {
    const Handles handles(arguments);
    // A function without results has somewhere to store all the same.
    Stored stored(results.size() + 1);
    const WithinRun within;
    const uint64_t before = notedFailures();
    const wick_status status = function(data, handles.data(), arguments.size(), stored.data());
    const bool wrong = stored.disown(handles);
    if (status != WICK_OK) throwLastError(status, before);
    if (wrong) {
      throw RuntimeError(
          "its function stored an argument's handle, or one handle twice; wick_value_copy makes "
          "another");
    }
    for (size_t i = 0; i < results.size(); ++i) results[i] = stored.take(i);
  };
}

// What objects of classes written in C hold.
struct Held : RefCounted {
  Held(void* p, void (*f)(void*, void*), void* d) : pointer(p), free_held(f), data(d) {}
  ~Held() override {
    if (free_held) free_held(data, pointer);
  }
  void* pointer;
  void (*free_held)(void* data, void* held);
  void* data;
};

struct HeldClass {
  void (*free_held)(void* data, void* held);
  void* data;
};

struct Classes {
  std::mutex mutex;
  std::map<std::string, HeldClass> classes;  // by the qualified name
};
Classes& classes() {
  static auto* const made = new Classes;
  return *made;
}

std::string qualified(const std::string& name) {
  return std::string(kNativeClassPrefix) + name;
}

Ref<Held> hold(const std::string& qualified_name, void* held) {
  Classes& c = classes();
  std::lock_guard lock(c.mutex);
  const auto found = c.classes.find(qualified_name);
  if (found == c.classes.end()) {
    throwUsage("{} is no class that wick_extension_add made", qualified_name);
  }
  return makeRef<Held>(held, found->second.free_held, found->second.data);
}

// Gives `use` what will free `held`. When that fails `held` stays the caller's.
template <class F>
void handOver(const std::string& qualified_name, void* held, F use) {
  const Ref<Held> made = hold(qualified_name, held);
  try {
    use(made);
  } catch (...) {
    made->free_held = nullptr;
    throw;
  }
}

// The elements of an array of the caller's, whose structs may be larger than those known here. All
// are of one size, which the first one says.
template <class T>
std::vector<std::reference_wrapper<const T>> elementsOf(const T* first, size_t count,
                                                        const char* type, const char* name) {
  constexpr const char* kName = "wick_extension_add";
  std::vector<std::reference_wrapper<const T>> elements;
  if (count == 0) return elements;
  const size_t size = known(first, kName, name).struct_size;
  for (size_t i = 0; i < count; ++i) {
    const auto* const element =
        reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + i * size);
    checkSize(element->struct_size, sizeof(T), type, kName, fmt::format("{}[{}]", name, i));
    if (element->struct_size != size) {
      throwUsage("{}: {}[{}].struct_size is {}, that of {}[0] {}", kName, name, i,
                 element->struct_size, name, size);
    }
    elements.push_back(*element);
  }
  return elements;
}

void addClass(Extension& extension, const wick_class& c) {
  constexpr const char* kName = "wick_extension_add";
  known(c.name, kName, "classes[].name");
  std::vector<Extension::PlainMethod> methods;
  for (const wick_method& m :
       elementsOf(c.methods, c.num_methods, "wick_method", "classes[].methods")) {
    known(m.schema, kName, "classes[].methods[].schema");
    if (!m.function) throwUsage("{}: {} has no function", kName, m.schema);
    methods.push_back({m.schema, functionOf(m.function, m.data)});
  }
  std::function<IValue(const RefCounted&)> get;
  std::function<Ref<RefCounted>(const IValue&)> set;
  if (c.get_state && c.set_state) {
    get = [get_state = c.get_state, data = c.data](const RefCounted& self) {
      Stored stored(1);
      const WithinRun within;
      const uint64_t before = notedFailures();
      const wick_status status =
          get_state(data, static_cast<const Held&>(self).pointer, stored.data());
      if (status != WICK_OK) throwLastError(status, before);
      return stored.take(0);
    };
    set = [set_state = c.set_state, data = c.data, free_held = c.free_held](const IValue& state) {
      const wick_value handle{state};
      void* held = nullptr;
      const WithinRun within;
      const uint64_t before = notedFailures();
      const wick_status status = set_state(data, &handle, &held);
      if (status != WICK_OK) throwLastError(status, before);
      return Ref<RefCounted>(makeRef<Held>(held, free_held, data));
    };
  } else if (c.get_state || c.set_state) {
    throwUsage("{}: class {} needs both get_state and set_state, or neither", kName, c.name);
  }
  extension.objectOf(c.name, std::move(methods), std::move(get), std::move(set));
}

const char* lastMessage() {
  return wick_last_error()->message;
}
const bool error_source = (wick::detail::setPluginErrorSource(&lastMessage), true);

}  // namespace

extern "C" {

wick_status wick_fail(const char* message) {
  return guarded([&] { throw RuntimeError(message ? message : "an error without a message"); });
}

wick_status wick_extension_add(const wick_extension* extension) {
  constexpr const char* kName = "wick_extension_add";
  return guarded([&] {
    const wick_extension& e = known(extension, kName, "extension");
    checkSize(e.struct_size, sizeof(wick_extension), "wick_extension", kName, "extension");
    Extension made(&known(e.name_space, kName, "name_space"));
    for (const wick_operator& op :
         elementsOf(e.operators, e.num_operators, "wick_operator", "operators")) {
      known(op.schema, kName, "operators[].schema");
      if (!op.function) throwUsage("{}: {} has no function", kName, op.schema);
      OperatorTraits traits;
      if (op.result_like) traits.result_like = op.result_like;
      if (op.derivative) traits.derivative = op.derivative;
      traits.random = op.random != 0;
      traits.side_effects = op.side_effects != 0;
      made.opOf(op.schema, functionOf(op.function, op.data), std::move(traits));
    }
    const auto all = elementsOf(e.classes, e.num_classes, "wick_class", "classes");
    for (const wick_class& c : all) addClass(made, c);
    made.add();
    std::lock_guard lock(classes().mutex);
    for (const wick_class& c : all) {
      classes().classes.emplace(qualified(fmt::format("{}.{}", e.name_space, c.name)),
                                HeldClass{c.free_held, c.data});
    }
  });
}

wick_status wick_object_held(const wick_value* object, const char* class_name, void** held) {
  constexpr const char* kName = "wick_object_held";
  return guarded([&] {
    const IValue& value = known(object, kName, "object").value;
    const std::string name = qualified(&known(class_name, kName, "class_name"));
    void*& out = known(held, kName, "held");
    if (!value.isObject() || value.toObject().type()->name() != name) {
      throw RuntimeError(fmt::format(
          "expected an object of {}, got {}", name,
          value.isObject() ? value.toObject().type()->name() : std::string(value.tagName())));
    }
    out = heldBy<Held>(kName, value, "an object of a class made in C").pointer;
  });
}

wick_status wick_object_hold(wick_value* object, void* held) {
  constexpr const char* kName = "wick_object_hold";
  return guarded([&] {
    const IValue& value = known(object, kName, "object").value;
    if (!value.isObject()) throwUsage("{}: expected an object, got {}", kName, value.tagName());
    handOver(value.toObject().type()->name(), held,
             [&](const Ref<Held>& made) { detail::holdObject(value, made); });
  });
}

wick_status wick_object_new(const char* class_name, void* held, wick_value** object) {
  constexpr const char* kName = "wick_object_new";
  return guarded([&] {
    const std::string name = qualified(&known(class_name, kName, "class_name"));
    known(object, kName, "object");
    handOver(name, held, [&](const Ref<Held>& made) { give(makeNative(name, made), object); });
  });
}

wick_status wick_plugin_load(const char* path) {
  return guarded([&] { loadPlugin(&known(path, "wick_plugin_load", "path")); });
}

}  // extern "C"
