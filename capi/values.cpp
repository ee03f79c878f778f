// Values of capi/wick.h.
#include <algorithm>
#include <span>

#include "capi/guard.h"
#include "core/conform.h"

using namespace wick;
using namespace wick::capi;

namespace {

wick_kind kindOf(const IValue& value) {
  switch (value.tag()) {
    case IValue::Tag::None:
      return WICK_NONE;
    case IValue::Tag::Int:
      return WICK_INT;
    case IValue::Tag::Double:
      return WICK_FLOAT;
    case IValue::Tag::Bool:
      return WICK_BOOL;
    case IValue::Tag::String:
      return WICK_STRING;
    case IValue::Tag::Tensor:
      return WICK_TENSOR;
    case IValue::Tag::List:
      return WICK_LIST;
    case IValue::Tag::Tuple:
      return WICK_TUPLE;
    case IValue::Tag::Dict:
      return WICK_DICT;
    case IValue::Tag::Object:
      return WICK_OBJECT;
    default:
      return WICK_OTHER;
  }
}

// The type of them all, Any when they differ. A container of no elements takes every type where it
// is passed.
TypePtr commonType(const std::vector<IValue>& values, const TypePtr& of_none) {
  if (values.empty()) return of_none;
  TypePtr type = values[0].type();
  for (const IValue& value : values) {
    if (!sameType(value.type(), type)) return types::Any();
  }
  return unshapedType(type);
}

// The value as an element of a container of `type`.
IValue elementFor(const IValue& value, const TypePtr& type, const char* function) {
  return asked(function, [&] { return conform(value, type, Conversions::Python); });
}

}  // namespace

extern "C" {

wick_status wick_value_none(wick_value** value) {
  return make(value, "wick_value_none", [] { return IValue(); });
}

wick_status wick_value_from_int(int64_t number, wick_value** value) {
  return make(value, "wick_value_from_int", [&] { return IValue(number); });
}

wick_status wick_value_from_float(double number, wick_value** value) {
  return make(value, "wick_value_from_float", [&] { return IValue(number); });
}

wick_status wick_value_from_bool(int truth, wick_value** value) {
  return make(value, "wick_value_from_bool", [&] { return IValue(truth != 0); });
}

wick_status wick_value_from_string(const char* text, size_t bytes, wick_value** value) {
  constexpr const char* kName = "wick_value_from_string";
  return make(value, kName, [&] {
    if (!text && bytes > 0) throwUsage("{}: text must not be NULL", kName);
    checkAllocation(kName, bytes);
    return IValue(std::string_view(text ? text : "", bytes));
  });
}

wick_status wick_value_from_list(wick_value* const* elements, size_t count, wick_value** value) {
  constexpr const char* kName = "wick_value_from_list";
  return make(value, kName, [&] {
    std::vector<IValue> values = valuesOf(elements, count, kName);
    TypePtr type = commonType(values, types::Tensor());
    return IValue(makeList(std::move(type), std::move(values)));
  });
}

wick_status wick_value_from_tuple(wick_value* const* elements, size_t count, wick_value** value) {
  constexpr const char* kName = "wick_value_from_tuple";
  return make(value, kName, [&] { return IValue(makeTuple(valuesOf(elements, count, kName))); });
}

wick_status wick_value_from_dict(wick_value* const* keys, wick_value* const* values, size_t count,
                                 wick_value** value) {
  constexpr const char* kName = "wick_value_from_dict";
  return make(value, kName, [&] {
    const std::vector<IValue> key_list = valuesOf(keys, count, kName);
    const std::vector<IValue> value_list = valuesOf(values, count, kName);
    DictRef dict = makeRef<DictObject>(commonType(key_list, types::String()),
                                       commonType(value_list, types::Tensor()));
    asked(kName, [&] {
      for (size_t i = 0; i < count; ++i) dict->set(key_list[i], value_list[i]);
      return 0;
    });
    return IValue(dict);
  });
}

wick_status wick_value_copy(const wick_value* value, wick_value** copy) {
  return derive(value, copy, "wick_value_copy", [](const IValue& v) { return v; });
}

void wick_value_free(wick_value* value) {
  delete value;
}

wick_status wick_value_kind(const wick_value* value, wick_kind* kind) {
  return read(value, kind, "wick_value_kind", [](const IValue& v) { return kindOf(v); });
}

wick_status wick_value_to_int(const wick_value* value, int64_t* number) {
  return read(value, number, "wick_value_to_int", [](const IValue& v) { return v.toInt(); });
}

wick_status wick_value_to_float(const wick_value* value, double* number) {
  return read(value, number, "wick_value_to_float", [](const IValue& v) { return v.to<double>(); });
}

wick_status wick_value_to_bool(const wick_value* value, int* truth) {
  return read(value, truth, "wick_value_to_bool", [](const IValue& v) { return int{v.toBool()}; });
}

wick_status wick_value_to_string(const wick_value* value, const char** text, size_t* bytes) {
  return read(value, text, "wick_value_to_string", [&](const IValue& v) {
    const std::string& found = v.toString();
    if (bytes) *bytes = found.size();
    return found.c_str();
  });
}

wick_status wick_value_size(const wick_value* value, size_t* count) {
  return read(value, count, "wick_value_size", [](const IValue& v) { return v.size(); });
}

wick_status wick_value_element(const wick_value* value, int64_t index, wick_value** element) {
  constexpr const char* kName = "wick_value_element";
  return derive(value, element, kName, [&](const IValue& v) {
    if (!v.isList() && !v.isTuple()) {
      throwUsage("{}: expected a list or tuple, got {}", kName, v.tagName());
    }
    return v[index];
  });
}

wick_status wick_value_entry(const wick_value* dict, size_t index, wick_value** key,
                             wick_value** value) {
  constexpr const char* kName = "wick_value_entry";
  return guarded([&] {
    known(dict, kName, "dict");
    known(key, kName, "key");
    known(value, kName, "value");
    const auto items = asked(kName, [&] { return dict->value.items(); });
    if (index >= items.size()) {
      throwUsage("{}: expected an index below {}, got {}", kName, items.size(), index);
    }
    auto found_key = std::make_unique<wick_value>(wick_value{items[index].first});
    *value = new wick_value{items[index].second};
    *key = found_key.release();
  });
}

wick_status wick_value_find(const wick_value* dict, const wick_value* key, wick_value** value) {
  constexpr const char* kName = "wick_value_find";
  return derive(dict, value, kName, [&](const IValue& v) {
    known(key, kName, "key");
    if (!v.isDict()) throwUsage("{}: expected a dict, got {}", kName, v.tagName());
    return v.at(key->value);
  });
}

wick_status wick_value_field(const wick_value* value, const char* name, wick_value** field) {
  constexpr const char* kName = "wick_value_field";
  return derive(value, field, kName, [&](const IValue& v) {
    known(name, kName, "name");
    if (!v.isDict() && !v.isTuple() && !v.isObject()) {
      throwUsage("{}: expected a dict, named tuple or object, got {}", kName, v.tagName());
    }
    return v[name];
  });
}

wick_status wick_value_append(wick_value* list, const wick_value* element) {
  constexpr const char* kName = "wick_value_append";
  return guarded([&] {
    known(list, kName, "list");
    known(element, kName, "element");
    ListObject& changed =
        asked(kName, [&]() -> std::reference_wrapper<ListObject> { return list->value.toList(); });
    // A list that was made empty takes the type of its first element, unless a program already holds it
    // as a list of tensors.
    TypePtr type = changed.element_type;
    if (changed.elements.empty() && type->kind() == TypeKind::Tensor && changed.useCount() == 1) {
      type = unshapedType(element->value.type());
    }
    IValue added = elementFor(element->value, type, kName);
    changed.makeRoom(kName, 1);
    changed.element_type = type;
    changed.elements.push_back(std::move(added));
  });
}

wick_status wick_value_insert(wick_value* dict, const wick_value* key, const wick_value* value) {
  constexpr const char* kName = "wick_value_insert";
  return guarded([&] {
    known(dict, kName, "dict");
    known(key, kName, "key");
    known(value, kName, "value");
    DictObject& changed =
        asked(kName, [&]() -> std::reference_wrapper<DictObject> { return dict->value.toDict(); });
    IValue new_key = elementFor(key->value, changed.key_type, kName);
    changed.set(std::move(new_key), elementFor(value->value, changed.value_type, kName));
  });
}

wick_status wick_value_repr(const wick_value* value, wick_value** text) {
  return derive(value, text, "wick_value_repr", [](const IValue& v) { return IValue(v.repr()); });
}

wick_status wick_value_type(const wick_value* value, wick_value** text) {
  return derive(value, text, "wick_value_type",
                [](const IValue& v) { return IValue(v.type()->annotation()); });
}

}  // extern "C"
