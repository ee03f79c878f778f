// What an unpickler does to values before anybody else sees them: refuses shapes that would hurt
// later readers, and gives containers without a type tag their types.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ivalue.h"

namespace wick {

class PickleStructure {
 public:
  using Fail = std::function<void(const std::string&)>;  // must throw

  // Notes that a list or a dict has got its types from a tag. False when it had other types from
  // one before.
  bool setTag(const IValue& container, const TypePtr& type);
  // Whether the container is final.
  bool isSealed(const IValue& container) const { return visits_.contains(container.rawObject()); }

  // Makes `value` and all that it holds final. Calls `fail` when they nest deeper than 1000 levels,
  // hold themselves, or share parts so often that walking them takes far longer than their number
  // suggests. Then sets the element types of lists, and key and value types of dicts, that have no
  // tag, from their elements: the common type, Optional of it when None occurs too, else Any. What
  // objects hold keeps its types. Work is done once for each container, over all calls.
  void seal(const IValue& value, const Fail& fail);

  void clear();

 private:
  struct Visit {
    IValue self;  // kept alive, for the address is the key
    bool done = false;
    bool infer = true;
    uint32_t depth = 1;
    uint64_t walked = 0;  // how many values a walk that knows no sharing meets
    TypePtr type;         // of tuples, once they are done
  };
  struct Frame {
    const RefCounted* id;
    std::vector<IValue> children;
    size_t next = 0;
  };
  void enter(const IValue& value, bool infer, std::vector<Frame>& path);
  void leave(Visit& visit, const Fail& fail);
  TypePtr typeOf(const IValue& value) const;
  void infer(Visit& visit) const;

  std::unordered_map<const RefCounted*, Visit> visits_;
  std::unordered_set<const RefCounted*> tagged_;
  uint64_t allowed_ = 0;  // of Visit::walked
};

}  // namespace wick
