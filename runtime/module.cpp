#include "runtime/module.h"

#include <cstring>
#include <set>
#include <unordered_map>

#include "core/conform.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/sparse_form.h"
#include "core/suggestions.h"
#include "ir/function.h"
#include "runtime/call.h"
#include "runtime/device_moves.h"

namespace wick {
namespace {

// Modules that hold each other do not end otherwise.
constexpr size_t kMaxDepth = 500;
// Shared modules are listed under each of their names, which can be exponentially many.
constexpr size_t kMaxNames = size_t{1} << 22;

bool isModule(const IValue& value) {
  return value.isObject() && value.toObject().type()->isModule();
}

Module asModule(const IValue& value) {
  return Module(ObjectRef(&value.toObject()));
}

[[noreturn]] void throwNoAttribute(const ClassType& type, const std::string& name) {
  std::set<std::string> names;
  for (const ClassType::Attribute& a : type.attributes()) names.insert(a.name);
  for (const ClassType::Constant& c : type.constants()) names.insert(c.name);
  throw UsageError(fmt::format("{} has no attribute '{}'{}", readableClassName(type.name()), name,
                               didYouMean(name, names)));
}

class DeepCopy {
 public:
  IValue copy(const IValue& value, size_t depth = 0) {
    if (!value.isCounted() || value.isString() || value.isComplex()) return value;
    WICK_CHECK(depth < 2 * kMaxDepth, "clone: values are nested too deeply");
    auto known = copies_.find(value.rawObject());
    if (known != copies_.end()) return known->second;
    switch (value.tag()) {
      case IValue::Tag::Tensor:
        return remember(value, IValue(copyTensor(value.toTensor())));
      case IValue::Tag::List: {
        const ListObject& from = value.toList();
        ListRef to = makeList(from.element_type);
        remember(value, IValue(to));
        for (const IValue& e : from.elements) to->elements.push_back(copy(e, depth + 1));
        return IValue(to);
      }
      case IValue::Tag::Dict: {
        const DictObject& from = value.toDict();
        auto to = makeRef<DictObject>(from.key_type, from.value_type);
        remember(value, IValue(to));
        for (auto& [k, v] : from.items()) to->set(copy(k, depth + 1), copy(v, depth + 1));
        return IValue(to);
      }
      case IValue::Tag::Tuple: {
        std::vector<IValue> elements;
        for (const IValue& e : value.elements()) elements.push_back(copy(e, depth + 1));
        return remember(value, IValue(makeTuple(std::move(elements), value.toTuple().named)));
      }
      case IValue::Tag::Object: {
        const Object& from = value.toObject();
        auto to = makeRef<Object>(from.type(), from.owner());
        remember(value, IValue(to));
        for (size_t i = 0; i < from.type()->attributes().size(); ++i) {
          to->setSlot(i, copy(from.slot(i), depth + 1));
        }
        return IValue(to);
      }
      default:
        // Enums are constants; futures, generators and capsules have an identity that a copy would
        // lose.
        return value;
    }
  }

 private:
  IValue remember(const IValue& value, IValue copy) {
    copies_.emplace(value.rawObject(), copy);
    return copy;
  }

  Tensor copyTensor(const Tensor& t) {
    if (!t.device().isCpu()) return t.clone();
    if (t.kind() == TensorKind::Sparse) {
      const auto part = [&](const Tensor& p) { return copyTensor(p); };
      Tensor copied = mapSparse(t, part, part);
      copied.setRequiresGrad(t.requiresGrad());
      return copied;
    }
    Ref<Storage>& storage = storages_[t.storage().get()];
    if (!storage) {
      storage = Storage::allocate(t.storage()->bytes());
      if (storage->bytes() > 0) {
        std::memcpy(storage->data(), t.storage()->data(), t.storage()->bytes());
      }
    }
    Tensor copied = Tensor::fromStorage(storage, t.dtype(), t.sizes(), t.strides(), t.offset());
    if (t.kind() == TensorKind::Quantized) copied.impl()->become(t.kind(), t.form());
    copied.setRequiresGrad(t.requiresGrad());
    return copied;
  }

  std::unordered_map<const RefCounted*, IValue> copies_;
  std::unordered_map<const Storage*, Ref<Storage>> storages_;
};

}  // namespace

Module::Module(ObjectRef object) : object_(std::move(object)) {
  if (!object_ || !object_->type()->isModule()) {
    throw UsageError(fmt::format("Module: {} is no module class",
                                 object_ ? readableClassName(object_->type()->name()) : "null"));
  }
}

void Module::throwEmpty() {
  throw UsageError("Module: the handle holds no module");
}

bool Module::hasAttr(const std::string& name) const {
  return type()->findAttribute(name).has_value() || type()->findConstant(name) != nullptr;
}

const IValue& Module::attr(const std::string& name) const {
  if (auto slot = type()->findAttribute(name)) return object_->slot(*slot);
  if (const IValue* constant = type()->findConstant(name)) return *constant;
  throwNoAttribute(*type(), name);
}

void Module::setAttr(const std::string& name, IValue value) {
  auto slot = type()->findAttribute(name);
  if (!slot) throwNoAttribute(*type(), name);
  try {
    value = conform(std::move(value), type()->attributes()[*slot].type, Conversions::Python);
  } catch (const RuntimeError& error) {
    throw UsageError(
        fmt::format("{}.{}: {}", readableClassName(type()->name()), name, error.brief()));
  }
  object_->setSlot(*slot, std::move(value));
}

Module Module::submodule(const std::string& dotted_name) const {
  known();
  Module found = *this;
  for (size_t begin = 0; begin < dotted_name.size();) {
    size_t end = std::min(dotted_name.find('.', begin), dotted_name.size());
    const IValue& value = found.attr(dotted_name.substr(begin, end - begin));
    if (!isModule(value)) {
      throw UsageError(
          fmt::format("{} has no submodule '{}'", readableClassName(type()->name()), dotted_name));
    }
    found = asModule(value);
    begin = end + 1;
  }
  return found;
}

// Calls f(name, attribute, value) for every slot.
template <class F>
void Module::forEachSlot(const std::string& prefix, bool recurse, size_t depth, size_t& names,
                         F&& f) const {
  WICK_CHECK(depth < kMaxDepth, "{}: modules are nested too deeply",
             readableClassName(type()->name()));
  const auto& attributes = type()->attributes();
  for (size_t i = 0; i < attributes.size(); ++i) {
    const IValue& value = object_->slot(i);
    std::string name = prefix + attributes[i].name;
    WICK_CHECK(++names <= kMaxNames, "{}: too many names of attributes",
               readableClassName(type()->name()));
    f(name, attributes[i], value);
    if (recurse && isModule(value)) {
      asModule(value).forEachSlot(name + ".", recurse, depth + 1, names, f);
    }
  }
}

Module::Named<Tensor> Module::parameters(bool recurse) const {
  Named<Tensor> found;
  size_t names = 0;
  forEachSlot(
      "", recurse, 0, names,
      [&](const std::string& name, const ClassType::Attribute& attribute, const IValue& value) {
        if (attribute.is_parameter && value.isTensor()) found.emplace_back(name, value.toTensor());
      });
  return found;
}

Module::Named<Tensor> Module::buffers(bool recurse) const {
  Named<Tensor> found;
  size_t names = 0;
  forEachSlot(
      "", recurse, 0, names,
      [&](const std::string& name, const ClassType::Attribute& attribute, const IValue& value) {
        if (attribute.is_buffer && value.isTensor()) found.emplace_back(name, value.toTensor());
      });
  return found;
}

Module::Named<IValue> Module::attributes(bool recurse) const {
  Named<IValue> found;
  size_t names = 0;
  forEachSlot("", recurse, 0, names,
              [&](const std::string& name, const ClassType::Attribute&, const IValue& value) {
                found.emplace_back(name, value);
              });
  return found;
}

Module::Named<Module> Module::children() const {
  Named<Module> found;
  size_t names = 0;
  forEachSlot("", false, 0, names,
              [&](const std::string& name, const ClassType::Attribute&, const IValue& value) {
                if (isModule(value)) found.emplace_back(name, asModule(value));
              });
  return found;
}

Module::Named<Module> Module::modules() const {
  Named<Module> found{{"", *this}};
  size_t names = 0;
  forEachSlot("", true, 0, names,
              [&](const std::string& name, const ClassType::Attribute&, const IValue& value) {
                if (isModule(value)) found.emplace_back(name, asModule(value));
              });
  return found;
}

std::vector<std::string> Module::methodNames() const {
  std::vector<std::string> names;
  for (const Function* method : type()->methods()) names.push_back(method->name());
  return names;
}

GraphFunction* Module::findMethod(const std::string& name) const {
  return dynamic_cast<GraphFunction*>(type()->findMethod(name));
}

GraphFunction& Module::method(const std::string& name) const {
  GraphFunction* found = findMethod(name);
  if (found) return *found;
  const std::vector<std::string> names = methodNames();
  throw UsageError(fmt::format("{} has no method '{}'{}", readableClassName(type()->name()), name,
                               didYouMean(name, {names.begin(), names.end()})));
}

IValue Module::run(const std::string& method_name, std::vector<IValue> arguments, Kwargs kwargs,
                   const RunOptions& options) const {
  return callMethod(object_, method(method_name), std::move(arguments), std::move(kwargs), options);
}

bool Module::hasHooks() const {
  return !type()->forwardPreHooks().empty() || !type()->forwardHooks().empty();
}

IValue Module::operator()(std::vector<IValue> arguments, Kwargs kwargs,
                          const RunOptions& options) const {
  GraphFunction& forward = method("forward");
  const auto call = [&](Function* hook, std::vector<IValue> values) {
    return callMethod(object_, static_cast<GraphFunction&>(*hook), std::move(values), {}, options);
  };
  for (Function* hook : type()->forwardPreHooks()) {
    IValue replaced = call(hook, {IValue(makeTuple(arguments))});
    if (replaced.isTuple()) {
      arguments = replaced.elements();
    } else if (!replaced.isNone()) {
      arguments = {std::move(replaced)};
    }
  }
  IValue result = callMethod(object_, forward, arguments, std::move(kwargs), options);
  for (Function* hook : type()->forwardHooks()) {
    IValue replaced = call(hook, {IValue(makeTuple(arguments)), result});
    if (!replaced.isNone()) result = std::move(replaced);
  }
  return result;
}

Module Module::train(bool on) const {
  for (auto& [name, module] : modules()) {
    auto slot = module.type()->findAttribute("training");
    if (slot && module.object()->slot(*slot).isBool()) module.object()->setSlot(*slot, on);
  }
  return *this;
}

bool Module::isTraining() const {
  auto slot = type()->findAttribute("training");
  return slot && object_->slot(*slot).isBool() && object_->slot(*slot).toBool();
}

Module Module::to(DType dtype) const {
  if (!isFloating(dtype) && !isComplex(dtype)) {
    throw UsageError(
        fmt::format("to: modules take floating-point dtypes, got {}", toString(dtype)));
  }
  for (const auto& list : {parameters(), buffers()}) {
    for (const auto& [name, tensor] : list) {
      if (!isFloating(tensor.dtype()) || tensor.dtype() == dtype) continue;
      if (tensor.kind() == TensorKind::Sparse) {
        const auto same = [](const Tensor& indices) { return indices; };
        const auto convert = [&](const Tensor& values) { return values.to(dtype); };
        tensor.impl()->takeOver(*mapSparse(tensor, same, convert).impl());
        continue;
      }
      Tensor converted = tensor.to(dtype);
      tensor.impl()->place(converted.storage(), dtype, DimVector(converted.sizes()),
                           DimVector(converted.strides()), converted.offset());
    }
  }
  return *this;
}

Module Module::to(Device device) const {
  const Device place = placeOf(device);
  for (const auto& list : {parameters(), buffers()}) {
    for (const auto& [name, tensor] : list) {
      if (tensor.isStrided() || tensor.device() == place) continue;
      throwRuntimeError("Module::to: '{}' is a {} tensor, which cannot be moved from {} to {}",
                        name, toString(tensor.kind()), tensor.device().str(), place.str());
    }
  }
  moveWithCode(IValue(known()), place);
  return *this;
}

Module Module::clone() const {
  return Module(ObjectRef(&DeepCopy().copy(IValue(known())).toObject()));
}

}  // namespace wick
