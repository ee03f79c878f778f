#include "streams/schedule/stage_devices.h"

#include "core/error.h"

namespace wick::streams {

namespace {

IValue replaced(const IValue& value, const std::function<Tensor(const Tensor&)>& moved, int depth) {
  constexpr int kMaxDepth = 100;
  WICK_CHECK(depth < kMaxDepth, "values nest too deeply to be handed to another device");
  if (value.isTensor()) {
    return value.toTensor().defined() ? IValue(moved(value.toTensor())) : value;
  }
  if (!value.isTuple() && !value.isList()) return value;
  std::vector<IValue> elements;
  for (const IValue& element : value.elements()) {
    elements.push_back(replaced(element, moved, depth + 1));
  }
  if (value.isTuple()) return IValue(makeTuple(std::move(elements), value.toTuple().named));
  return IValue(makeList(value.toList().element_type, std::move(elements)));
}

}  // namespace

void replaceTensors(Packet& packet, const std::function<Tensor(const Tensor&)>& moved) {
  for (IValue& value : packet) value = replaced(value, moved, 0);
}

}  // namespace wick::streams
