#include "runtime/device_moves.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/device_backend.h"
#include "core/tensor.h"
#include "ir/function.h"
#include "ir/graph.h"
#include "runtime/compile_queue.h"

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

namespace {

// Calls take(node) for every node of the graph.
template <class F>
void eachNode(const Graph& graph, F take) {
  std::vector<const Block*> blocks = {graph.block()};
  while (!blocks.empty()) {
    const Block* block = blocks.back();
    blocks.pop_back();
    for (const Node* node : block->nodes()) {
      blocks.insert(blocks.end(), node->blocks().begin(), node->blocks().end());
      take(node);
    }
  }
}

void addConstants(const GraphFunction& function, std::vector<IValue>& values) {
  if (!function.graph()) return;
  eachNode(*function.graph(), [&](const Node* node) {
    if (node->kind() != prim::Constant) return;
    std::optional<IValue> value = constantOf(node->output(0));
    if (value && value->isTensor() && value->toTensor().isStrided()) {
      values.push_back(*std::move(value));
    }
  });
}

// Tensors of no dimensions stay: they join others where numbers do, and programs that were traced
// compute sizes with them.
void keepNumbers(std::vector<IValue>& values) {
  std::erase_if(values, [](const IValue& value) { return value.toTensor().dim() == 0; });
}

// Visits the functions that methods of classes call, from class to class.
class Reach {
 public:
  void addObject(const IValue& object) {
    std::vector<IValue> rest = {object};
    std::unordered_set<const RefCounted*> seen;
    while (!rest.empty()) {
      const IValue value = std::move(rest.back());
      rest.pop_back();
      if (!value.isList() && !value.isTuple() && !value.isDict() && !value.isObject()) continue;
      if (!seen.insert(value.rawObject()).second) continue;
      if (value.isDict()) {
        for (auto& [key, held] : value.toDict().items()) rest.push_back(held);
      } else if (value.isObject()) {
        const Object& o = value.toObject();
        addClass(*o.type());
        for (size_t i = 0; i < o.type()->attributes().size(); ++i) rest.push_back(o.slot(i));
      } else {
        rest.insert(rest.end(), value.elements().begin(), value.elements().end());
      }
    }
  }
  std::vector<GraphFunction*> functions() {
    for (size_t i = 0; i < found_.size(); ++i) {
      found_[i]->ensureDefined();
      eachNode(*found_[i]->graph(), [&](const Node* node) {
        for (const Value* output : node->outputs()) addType(output->type());
      });
    }
    return found_;
  }

 private:
  void addType(const TypePtr& type) {
    if (const auto* function = type->as<FunctionType>()) {
      add(function->function());
    } else if (const auto* made = type->as<ClassType>()) {
      addClass(*made);
    }
  }
  void addClass(const ClassType& type) {
    if (!classes_.insert(&type).second) return;
    for (Function* f : type.methods()) add(f);
    for (Function* f : type.forwardPreHooks()) add(f);
    for (Function* f : type.forwardHooks()) add(f);
    for (const ClassType::Property& p : type.properties()) {
      add(p.getter);
      add(p.setter);
    }
  }
  void add(Function* function) {
    auto* known = dynamic_cast<GraphFunction*>(function);
    if (known && seen_.insert(known).second) found_.push_back(known);
  }

  std::vector<GraphFunction*> found_;
  std::unordered_set<const GraphFunction*> seen_;
  std::unordered_set<const ClassType*> classes_;
};

}  // namespace

std::vector<IValue> constantTensors(const CompilationUnit& unit) {
  std::vector<IValue> values;
  for (const auto& function : unit.functions()) addConstants(*function, values);
  return values;
}

void moveConstants(const CompilationUnit& unit, Device device) {
  std::vector<IValue> values = constantTensors(unit);
  keepNumbers(values);
  Mover(device).move(values);
}

std::vector<GraphFunction*> reachableFunctions(const IValue& object) {
  Reach reach;
  reach.addObject(object);
  return reach.functions();
}

void moveWithCode(const IValue& object, Device device) {
  const std::vector<GraphFunction*> functions = reachableFunctions(object);
  std::vector<IValue> constants;
  for (const GraphFunction* function : functions) addConstants(*function, constants);
  keepNumbers(constants);
  const Device place = placeOf(device);
  const bool elsewhere = std::ranges::any_of(
      constants, [&](const IValue& value) { return value.toTensor().device() != place; });
  if (elsewhere) {
    waitForCompiles();  // of kernels, which look at the constants
    for (GraphFunction* function : functions) function->detach();
  }
  Mover mover(device);
  mover.move(constants);
  mover.move({&object, 1});
}

}  // namespace wick
