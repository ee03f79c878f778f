#include "serialization/pickle_structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace wick {
namespace {

constexpr uint32_t kMaxDepth = 1000;
constexpr uint64_t kMaxSharing = 256;
constexpr uint64_t kFreeSharing = 1 << 20;

bool isContainer(const IValue& v) {
  return v.isList() || v.isDict() || v.isTuple() || v.isObject();
}

// The parts of a container, copied so that dicts and objects look alike.
std::vector<IValue> childrenOf(const IValue& v) {
  std::vector<IValue> children;
  if (v.isList() || v.isTuple()) {
    for (const IValue& e : v.elements()) {
      if (isContainer(e)) children.push_back(e);
    }
  } else if (v.isDict()) {
    for (const auto& [key, value] : v.toDict().items()) {
      if (isContainer(key)) children.push_back(key);
      if (isContainer(value)) children.push_back(value);
    }
  } else if (v.isObject()) {
    const Object& object = v.toObject();
    for (size_t i = 0; i < object.type()->attributes().size(); ++i) {
      if (isContainer(object.slot(i))) children.push_back(object.slot(i));
    }
  }
  return children;
}

uint64_t ownSize(const IValue& v) {
  if (v.isList() || v.isTuple()) return 1 + v.elements().size();
  if (v.isDict()) return 1 + 2 * v.toDict().size();
  return 1 + v.toObject().type()->attributes().size();
}

// Collects the distinct types; more than two have no common one worth finding.
void addType(std::vector<TypePtr>& seen, TypePtr type) {
  if (seen.size() > 2) return;
  for (const TypePtr& s : seen) {
    if (s == type || sameType(s, type)) return;
  }
  seen.push_back(std::move(type));
}

TypePtr common(const std::vector<TypePtr>& seen) {
  if (seen.size() == 1) return seen[0];
  if (seen.size() == 2) {
    if (seen[0]->kind() == TypeKind::None) return types::Optional(seen[1]);
    if (seen[1]->kind() == TypeKind::None) return types::Optional(seen[0]);
  }
  return types::Any();
}

}  // namespace

bool PickleStructure::setTag(const IValue& container, const TypePtr& type) {
  const bool again = !tagged_.insert(container.rawObject()).second;
  if (const auto* list = type->as<ListType>()) {
    TypePtr& element = container.toList().element_type;
    if (again && !sameType(element, list->element())) return false;
    element = list->element();
  } else {
    const auto& dict = *type->as<DictType>();
    DictObject& object = container.toDict();
    if (again &&
        (!sameType(object.key_type, dict.key()) || !sameType(object.value_type, dict.value()))) {
      return false;
    }
    object.key_type = dict.key();
    object.value_type = dict.value();
  }
  return true;
}

void PickleStructure::enter(const IValue& value, bool infer, std::vector<Frame>& path) {
  const uint64_t size = ownSize(value);
  Visit& visit = visits_[value.rawObject()];
  visit.self = value;
  visit.infer = infer;
  visit.walked = size;
  allowed_ += kMaxSharing * size;
  path.push_back({value.rawObject(), childrenOf(value)});
}

// Each container after its parts, without recursion.
void PickleStructure::seal(const IValue& value, const Fail& fail) {
  if (!isContainer(value) || isSealed(value)) return;
  std::vector<Frame> path;
  enter(value, true, path);
  while (!path.empty()) {
    Frame& frame = path.back();
    Visit& mine = visits_[frame.id];
    if (frame.next == frame.children.size()) {
      leave(mine, fail);
      path.pop_back();
      continue;
    }
    const IValue& child = frame.children[frame.next];
    auto it = visits_.find(child.rawObject());
    if (it == visits_.end()) {
      if (path.size() >= kMaxDepth) fail(fmt::format("values nest deeper than {}", kMaxDepth));
      // What an object holds has the types of its attributes already.
      const bool infer = mine.infer && !mine.self.isObject();
      enter(IValue(child), infer, path);  // invalidates `frame`, `child` and `mine`
      continue;
    }
    if (!it->second.done) fail("a value holds itself");
    mine.depth = std::max(mine.depth, it->second.depth + 1);
    mine.walked += std::min(it->second.walked, UINT64_MAX / 2 - mine.walked);
    ++frame.next;
  }
}

void PickleStructure::leave(Visit& visit, const Fail& fail) {
  if (visit.depth > kMaxDepth) fail(fmt::format("values nest deeper than {}", kMaxDepth));
  if (visit.walked > kFreeSharing + allowed_) fail("values share their parts too often");
  infer(visit);
  visit.done = true;
}

// Of something that is done. Shared tuples have one type each, so that the work stays proportional
// to their number.
TypePtr PickleStructure::typeOf(const IValue& value) const {
  if (!isContainer(value)) return value.type();
  if (value.isTuple()) return visits_.at(value.rawObject()).type;
  if (value.isObject()) return value.toObject().type();
  if (value.isList()) return types::List(value.toList().element_type);
  return types::Dict(value.toDict().key_type, value.toDict().value_type);
}

void PickleStructure::infer(Visit& visit) const {
  const IValue& v = visit.self;
  if (v.isTuple()) {
    visit.type = v.toTuple().named;
    if (visit.type) return;
    std::vector<TypePtr> elements;
    for (const IValue& e : v.elements()) elements.push_back(typeOf(e));
    visit.type = types::Tuple(std::move(elements));
    return;
  }
  if (!visit.infer || v.isObject() || tagged_.contains(v.rawObject())) return;
  if (v.isList()) {
    ListObject& list = v.toList();
    std::vector<TypePtr> elements;
    for (const IValue& e : list.elements) addType(elements, typeOf(e));
    list.element_type = common(elements);
    return;
  }
  DictObject& dict = v.toDict();
  std::vector<TypePtr> keys, values;
  for (const auto& [key, value] : dict.items()) {
    addType(keys, typeOf(key));
    addType(values, typeOf(value));
  }
  dict.key_type = common(keys);
  dict.value_type = common(values);
}

void PickleStructure::clear() {
  visits_.clear();
  tagged_.clear();
}

}  // namespace wick
