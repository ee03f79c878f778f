#include "streams/schedule/stage_devices.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"

namespace wick::streams {

namespace {

using Moved = std::function<Tensor(const Tensor&)>;

// A list that stands in several places is replaced once, and stays one.
class Replacer {
 public:
  Replacer(const Moved& moved, bool keeps_names) : moved_(moved), keeps_names_(keeps_names) {}

  IValue replaced(const IValue& value, int depth = 0) {
    constexpr int kMaxDepth = 100;
    WICK_CHECK(depth < kMaxDepth, "values nest too deeply to be handed on");
    if (value.isTensor()) {
      return value.toTensor().defined() ? IValue(moved_(value.toTensor())) : value;
    }
    if (!value.isTuple() && !value.isList()) return value;
    if (const auto it = known_.find(value.rawObject()); it != known_.end()) return it->second;
    std::vector<IValue> elements;
    for (const IValue& element : value.elements()) {
      elements.push_back(replaced(element, depth + 1));
    }
    const IValue made =
        value.isTuple()
            ? IValue(makeTuple(std::move(elements), keeps_names_ ? value.toTuple().named : nullptr))
            : IValue(makeList(value.toList().element_type, std::move(elements)));
    known_.emplace(value.rawObject(), made);
    return made;
  }

 private:
  const Moved& moved_;
  const bool keeps_names_;
  std::unordered_map<const void*, IValue> known_;
};

}  // namespace

void replaceTensors(Packet& packet, const Moved& moved, bool keeps_names) {
  const Packet given = std::exchange(packet, {});  // alive, so that no other value gets its places
  Replacer replacer(moved, keeps_names);
  for (const IValue& value : given) packet.push_back(replacer.replaced(value));
}

}  // namespace wick::streams
