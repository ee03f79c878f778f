// Operators on dicts, which keep the order of insertion. Every operator exists once for each type
// of key.
#include "core/budget.h"
#include "core/error.h"
#include "core/memory_limit.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

[[noreturn]] void throwNoKey(const IValue& key) {
  throw RuntimeError("KeyError: " + key.shortRepr(), "KeyError");
}

int64_t length(const IValue& dict) {
  return static_cast<int64_t>(dict.toDict().size());
}
IValue keys(const IValue& dict) {
  return IValue(makeList(dict.toDict().key_type, dict.toDict().keys()));
}
IValue values(const IValue& dict) {
  return IValue(makeList(dict.toDict().value_type, dict.toDict().values()));
}
IValue items(const IValue& dict) {
  const DictObject& d = dict.toDict();
  ListRef out = makeList(types::Tuple({d.key_type, d.value_type}));
  out->makeRoom("dict.items", d.size());
  Pace pace;
  for (auto& [key, value] : d.items()) {
    pace.step(8);
    checkGrowth();
    out->elements.emplace_back(makeTuple({std::move(key), std::move(value)}));
  }
  return IValue(std::move(out));
}
bool contains(const IValue& dict, const IValue& key) {
  return dict.toDict().find(key) != nullptr;
}
IValue getItem(const IValue& dict, const IValue& key) {
  const IValue* found = dict.toDict().find(key);
  if (!found) throwNoKey(key);
  return *found;
}
void setItem(const IValue& dict, IValue key, IValue value) {
  dict.toDict().set(std::move(key), std::move(value));
}
void deleteItem(const IValue& dict, const IValue& key) {
  if (!dict.toDict().erase(key)) throwNoKey(key);
}
IValue get(const IValue& dict, const IValue& key) {
  const IValue* found = dict.toDict().find(key);
  return found ? *found : IValue();
}
IValue getOr(const IValue& dict, const IValue& key, IValue other) {
  const IValue* found = dict.toDict().find(key);
  return found ? *found : other;
}
IValue setDefault(const IValue& dict, IValue key, IValue value) {
  if (const IValue* found = dict.toDict().find(key)) return *found;
  dict.toDict().set(std::move(key), value);
  return value;
}
IValue pop(const IValue& dict, const IValue& key) {
  IValue out = getItem(dict, key);
  dict.toDict().erase(key);
  return out;
}
IValue popOr(const IValue& dict, const IValue& key, IValue other) {
  return contains(dict, key) ? pop(dict, key) : other;
}
IValue popItem(const IValue& dict) {
  auto last = dict.toDict().popLast();
  if (!last) throw RuntimeError("popitem(): dictionary is empty", "KeyError");
  return IValue(makeTuple({std::move(last->first), std::move(last->second)}));
}
void clear(const IValue& dict) {
  dict.toDict().clear();
}
void update(const IValue& dict, const IValue& other) {
  Pace pace;
  for (auto& [key, value] : other.toDict().items()) {
    pace.step(8);
    dict.toDict().set(std::move(key), std::move(value));
  }
}
IValue copy(const IValue& dict) {
  const DictObject& d = dict.toDict();
  auto out = makeRef<DictObject>(d.key_type, d.value_type);
  Pace pace;
  for (auto& [key, value] : d.items()) {
    pace.step(8);
    out->set(std::move(key), std::move(value));
  }
  return IValue(std::move(out));
}
IValue fromPairs(const IValue& pairs) {
  const ListObject& list = pairs.toList();
  const auto* pair = list.element_type->as<TupleType>();
  WICK_CHECK(pair && pair->contained().size() == 2, "dict: expected a list of pairs, got {}",
             pairs.type()->str());
  auto out = makeRef<DictObject>(pair->contained()[0], pair->contained()[1]);
  Pace pace;
  for (const IValue& e : list.elements) {
    pace.step(8);
    out->set(e.elements()[0], e.elements()[1]);
  }
  return IValue(std::move(out));
}

#define WICK_DICT(key)                                                                            \
  {"aten::len.Dict_" key "(Dict(" key ", t) self) -> int", WICK_KERNEL(length)},                  \
      {"aten::keys." key "(Dict(" key ", t) self) -> " key "[](*)", WICK_KERNEL(keys)},           \
      {"aten::values." key "(Dict(" key ", t) self) -> t[](*)", WICK_KERNEL(values)},             \
      {"aten::items." key "(Dict(" key ", t) self) -> ((" key ", t)[])", WICK_KERNEL(items)},     \
      {"aten::__contains__." key "(Dict(" key ", t) dict, " key " key) -> bool",                  \
       WICK_KERNEL(contains)},                                                                    \
      {"aten::__getitem__.Dict_" key "(Dict(" key ", t) self, " key " key) -> t(*)",              \
       WICK_KERNEL(getItem)},                                                                     \
      {"aten::_set_item." key "(Dict(" key ", t)(a!) l, " key "(b -> *) idx, t(c -> *) v) -> ()", \
       WICK_KERNEL(setItem)},                                                                     \
      {"aten::Delete.Dict_" key "(Dict(" key ", t)(a!) self, " key " key) -> ()",                 \
       WICK_KERNEL(deleteItem)},                                                                  \
      {"aten::get." key "(Dict(" key ", t) self, " key " key) -> t(*)?", WICK_KERNEL(get)},       \
      {"aten::get.default_" key "(Dict(" key ", t) self, " key " key, t default_value) -> t(*)",  \
       WICK_KERNEL(getOr)},                                                                       \
      {"aten::setdefault." key "(Dict(" key ", t)(a!) self, " key                                 \
       "(b -> *) key, t(c -> *) default_value) -> t(*)",                                          \
       WICK_KERNEL(setDefault)},                                                                  \
      {"aten::pop.Dict_" key "(Dict(" key ", t)(a!) self, " key " key) -> t(*)",                  \
       WICK_KERNEL(pop)},                                                                         \
      {"aten::pop.Dict_default_" key "(Dict(" key ", t)(a!) self, " key                           \
       " key, t default_value) -> t(*)",                                                          \
       WICK_KERNEL(popOr)},                                                                       \
      {"aten::popitem." key "(Dict(" key ", t)(a!) self) -> ((" key ", t))",                      \
       WICK_KERNEL(popItem)},                                                                     \
      {"aten::clear." key "(Dict(" key ", t)(a!) self) -> ()", WICK_KERNEL(clear)},               \
      {"aten::update." key "(Dict(" key ", t)(a!) self, Dict(" key ", t)(a!) to_add) -> ()",      \
       WICK_KERNEL(update)},                                                                      \
      {"aten::copy.Dict_" key "(Dict(" key ", t)(a) self) -> Dict(" key ", t)",                   \
       WICK_KERNEL(copy)},                                                                        \
      {"aten::dict.Dict_" key "(Dict(" key ", t)(a) self) -> Dict(" key ", t)",                   \
       WICK_KERNEL(copy)},                                                                        \
  {                                                                                               \
    "aten::dict." key "((" key ", tVal)[] inputs) -> Dict(" key ", tVal)", WICK_KERNEL(fromPairs) \
  }

IValue empty() {
  return IValue(makeRef<DictObject>(types::String(), types::Tensor()));
}

const OperatorRecord kDictsRecords[] = {
    {"aten::dict() -> Dict(str, Tensor)", WICK_KERNEL(empty)},
    WICK_DICT("str"),
    WICK_DICT("int"),
    WICK_DICT("bool"),
    WICK_DICT("float"),
    WICK_DICT("complex"),
    WICK_DICT("Tensor"),
};
const RegisterOperators kDictsRegistered(kDictsRecords);

}  // namespace

}  // namespace wick::ops
