#include "serialization/pickle_structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "core/stack.h"

namespace wick {
namespace {

constexpr uint32_t kMaxDepth = 1000;
// For the frames of TypeInference, two a level.
constexpr size_t kStack = size_t{kMaxDepth} * 1024;
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

struct Visit {
  bool done = false;
  uint32_t depth = 1;
  uint64_t walked = 0;  // how many values a walk that knows no sharing meets
};

struct Frame {
  const RefCounted* id;
  std::vector<IValue> children;
  size_t next = 0;
};

// Calls `leave` for every container after its parts, without recursion.
template <class Leave>
void postOrder(const std::vector<IValue>& containers,
               std::unordered_map<const RefCounted*, Visit>& visits,
               const std::function<void(const std::string&)>& fail, Leave leave) {
  std::vector<Frame> path;
  auto enter = [&](const IValue& v) {
    visits[v.rawObject()].walked = ownSize(v);
    path.push_back({v.rawObject(), childrenOf(v)});
  };
  for (const IValue& root : containers) {
    if (visits.contains(root.rawObject())) continue;
    enter(root);
    while (!path.empty()) {
      Frame& frame = path.back();
      Visit& mine = visits[frame.id];
      if (frame.next == frame.children.size()) {
        mine.done = true;
        leave(mine);
        path.pop_back();
        continue;
      }
      const IValue& child = frame.children[frame.next];
      auto it = visits.find(child.rawObject());
      if (it == visits.end()) {
        if (path.size() >= kMaxDepth) fail(fmt::format("values nest deeper than {}", kMaxDepth));
        enter(child);  // invalidates `frame`
        continue;
      }
      if (!it->second.done) fail("a value holds itself");
      mine.depth = std::max(mine.depth, it->second.depth + 1);
      mine.walked += std::min(it->second.walked, UINT64_MAX / 2 - mine.walked);
      ++frame.next;
    }
  }
}

class TypeInference {
 public:
  explicit TypeInference(const std::unordered_map<const RefCounted*, bool>& typed)
      : typed_(typed) {}

  // Shared tuples get one type each, so that the work stays proportional to their number.
  TypePtr infer(const IValue& v) {
    if (!isContainer(v)) return v.type();
    auto it = known_.find(v.rawObject());
    if (it != known_.end()) return it->second;
    TypePtr type = inferContainer(v);
    known_.emplace(v.rawObject(), type);
    return type;
  }

 private:
  TypePtr inferContainer(const IValue& v) {
    if (v.isTuple()) {
      if (v.toTuple().named) return v.toTuple().named;
      std::vector<TypePtr> elements;
      for (const IValue& e : v.elements()) elements.push_back(infer(e));
      return types::Tuple(std::move(elements));
    }
    if (v.isList()) {
      ListObject& list = v.toList();
      std::vector<TypePtr> elements;
      for (const IValue& e : list.elements) addType(elements, infer(e));
      if (!typed_.contains(v.rawObject())) list.element_type = common(elements);
      return types::List(list.element_type);
    }
    if (v.isDict()) {
      DictObject& dict = v.toDict();
      std::vector<TypePtr> keys, values;
      for (const auto& [key, value] : dict.items()) {
        addType(keys, infer(key));
        addType(values, infer(value));
      }
      if (!typed_.contains(v.rawObject())) {
        dict.key_type = common(keys);
        dict.value_type = common(values);
      }
      return types::Dict(dict.key_type, dict.value_type);
    }
    const Object& object = v.toObject();
    for (size_t i = 0; i < object.type()->attributes().size(); ++i) infer(object.slot(i));
    return object.type();
  }

  // Collects the distinct types; more than two have no common one worth finding.
  static void addType(std::vector<TypePtr>& seen, TypePtr type) {
    if (seen.size() > 2) return;
    for (const TypePtr& s : seen) {
      if (s == type || sameType(s, type)) return;
    }
    seen.push_back(std::move(type));
  }

  static TypePtr common(const std::vector<TypePtr>& seen) {
    if (seen.size() == 1) return seen[0];
    if (seen.size() == 2) {
      if (seen[0]->kind() == TypeKind::None) return types::Optional(seen[1]);
      if (seen[1]->kind() == TypeKind::None) return types::Optional(seen[0]);
    }
    return types::Any();
  }

  const std::unordered_map<const RefCounted*, bool>& typed_;
  std::unordered_map<const RefCounted*, TypePtr> known_;
};

}  // namespace

void checkPickledStructure(const std::vector<IValue>& containers,
                           const std::function<void(const std::string&)>& fail) {
  std::unordered_map<const RefCounted*, Visit> visits;
  uint64_t total = kFreeSharing;
  for (const IValue& v : containers) total += kMaxSharing * ownSize(v);
  postOrder(containers, visits, fail, [&](const Visit& visit) {
    if (visit.depth > kMaxDepth) fail(fmt::format("values nest deeper than {}", kMaxDepth));
    if (visit.walked > total) fail("values share their parts too often");
  });
}

void inferContainerTypes(const std::vector<IValue>& containers,
                         const std::unordered_map<const RefCounted*, bool>& typed) {
  TypeInference inference(typed);
  withStack(kStack, [&] {
    for (const IValue& v : containers) inference.infer(v);
  });
}

}  // namespace wick
