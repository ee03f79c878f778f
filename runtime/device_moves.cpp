#include "runtime/device_moves.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/device_backend.h"
#include "core/tensor.h"
#include "ir/function.h"
#include "ir/graph.h"

namespace wick {

namespace {

// One copy of each storage.
class Mover {
 public:
  explicit Mover(Device device) : device_(placeOf(device)) {}

  void move(std::span<const IValue> values) {
    std::vector<IValue> rest(values.begin(), values.end());
    while (!rest.empty()) {
      const IValue value = std::move(rest.back());
      rest.pop_back();
      switch (value.tag()) {
        case IValue::Tag::Tensor:
          move(value.toTensor());
          break;
        case IValue::Tag::List:
        case IValue::Tag::Tuple:
          if (!seen_.insert(value.rawObject()).second) break;
          rest.insert(rest.end(), value.elements().begin(), value.elements().end());
          break;
        case IValue::Tag::Dict:
          if (!seen_.insert(value.rawObject()).second) break;
          for (auto& [key, held] : value.toDict().items()) rest.push_back(held);
          break;
        case IValue::Tag::Object: {
          if (!seen_.insert(value.rawObject()).second) break;
          const Object& object = value.toObject();
          for (size_t i = 0; i < object.type()->attributes().size(); ++i) {
            rest.push_back(object.slot(i));
          }
          break;
        }
        default:
          break;
      }
    }
  }

 private:
  void move(const Tensor& t) {
    if (!t.defined() || !t.isStrided() || t.device() == device_) return;
    Ref<Storage>& moved = storages_[t.storage().get()];
    if (!moved) {
      const Storage& from = *t.storage();
      held_.push_back(t.storage());
      moved = Storage::allocate(from.bytes(), device_);
      const DeviceType type = from.device().isCpu() ? device_.type : from.device().type;
      if (DeviceBackend& backend = deviceBackend(type);
          !backend.hasMemory() && backend.holdsData()) {
        const auto count = static_cast<int64_t>(from.bytes() / t.itemSize());
        const auto whole = [&](const Ref<Storage>& memory) {
          return Tensor::fromStorage(memory, t.dtype(), {count}, {1}, 0);
        };
        whole(moved).copyFrom(whole(t.storage()));
      } else if (from.bytes() > 0) {
        deviceBackend(type).copyBytes(moved->data(), device_, from.data(), from.device(),
                                      from.bytes());
      }
    }
    t.impl()->place(moved, t.dtype(), DimVector(t.sizes()), DimVector(t.strides()), t.offset());
  }

  const Device device_;
  std::unordered_map<const Storage*, Ref<Storage>> storages_;
  std::vector<Ref<Storage>> held_;  // so that no other one gets its address meanwhile
  std::unordered_set<const RefCounted*> seen_;
};

}  // namespace

void moveTensors(std::span<const IValue> values, Device device) {
  Mover(device).move(values);
}

std::vector<IValue> constantTensors(const CompilationUnit& unit) {
  std::vector<IValue> values;
  for (const auto& function : unit.functions()) {
    if (!function->graph()) continue;
    std::vector<const Block*> blocks = {function->graph()->block()};
    while (!blocks.empty()) {
      const Block* block = blocks.back();
      blocks.pop_back();
      for (const Node* node : block->nodes()) {
        blocks.insert(blocks.end(), node->blocks().begin(), node->blocks().end());
        if (node->kind() != prim::Constant) continue;
        std::optional<IValue> value = constantOf(node->output(0));
        if (value && value->isTensor() && value->toTensor().isStrided()) {
          values.push_back(*std::move(value));
        }
      }
    }
  }
  return values;
}

void moveConstants(const CompilationUnit& unit, Device device) {
  std::vector<IValue> values = constantTensors(unit);
  // Tensors of no dimensions stay: they join others where numbers do, and programs that were traced
  // compute sizes with them.
  std::erase_if(values, [](const IValue& value) { return value.toTensor().dim() == 0; });
  Mover(device).move(values);
}

}  // namespace wick
