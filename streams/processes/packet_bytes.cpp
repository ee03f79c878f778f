#include "streams/processes/packet_bytes.h"

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/device_backend.h"
#include "core/error.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"

namespace wick::streams {

namespace {

constexpr int kMaxDepth = 100;

class Compact {
 public:
  IValue operator()(const IValue& value, int depth = 0) {
    WICK_CHECK(depth < kMaxDepth, "values nest too deeply to be handed to another process");
    if (value.isTensor()) return IValue(tensor(value.toTensor()));
    if (value.isTuple()) return IValue(makeTuple(elements(value, depth)));
    if (value.isList()) {
      return IValue(makeList(value.toList().element_type, elements(value, depth)));
    }
    return value;
  }

 private:
  std::vector<IValue> elements(const IValue& value, int depth) {
    std::vector<IValue> made;
    for (const IValue& element : value.elements()) made.push_back((*this)(element, depth + 1));
    return made;
  }
  Tensor tensor(const Tensor& given) {
    if (!given.defined()) return given;
    Tensor& made = made_[given.impl()];
    if (made.defined()) return made;
    made = given.device().isCpu() ? given : moveTo(given, Device());
    if (made.kind() == TensorKind::Dense && made.storage() &&
        made.storage()->bytes() > static_cast<size_t>(made.numel()) * itemSize(made.dtype())) {
      made = made.clone();
    }
    return made;
  }
  std::map<const void*, Tensor> made_;
};

}  // namespace

std::string valueBytes(const IValue& value) {
  return saveValueToString(Compact()(value));
}

IValue valueOf(std::string bytes, const std::string& name) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  const std::span data(reinterpret_cast<std::byte*>(owner->data()), owner->size());
  return loadValue(Bytes{data, owner}, name);
}

}  // namespace wick::streams
