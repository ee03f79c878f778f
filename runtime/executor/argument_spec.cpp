#include "runtime/executor/argument_spec.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/slot_access.h"
#include "ir/alias_db.h"

namespace wick {

namespace {

// Tuples and modules within each other beyond this are not looked into.
constexpr int kMaxDepth = 64;

bool isTensorOrNone(const TypePtr& type) {
  if (type->kind() == TypeKind::Tensor) return true;
  const auto* optional = type->as<OptionalType>();
  return optional && optional->element()->kind() == TypeKind::Tensor;
}

bool isTensorList(const TypePtr& type) {
  const auto* list = type->as<ListType>();
  return list && list->element()->kind() == TypeKind::Tensor;
}

// The attributes that nodes of the graph set, by class.
using SetAttributes = std::set<std::pair<const Type*, std::string>>;

void collectSetAttributes(const Block* block, SetAttributes& all) {
  for (const Node* n : block->nodes()) {
    for (const Block* sub : n->blocks()) collectSetAttributes(sub, all);
    if (n->kind() != prim::SetAttr) continue;
    all.emplace(n->input(0)->type().get(), n->ivalue(attr::name).toString());
  }
}

// The results of reads of each slot of the objects that the values are.
std::map<size_t, std::vector<Value*>> attributeReads(const ClassType& type,
                                                     std::span<Value* const> objects) {
  std::map<size_t, std::vector<Value*>> reads;
  for (const Value* object : objects) {
    for (const Use& use : object->uses()) {
      if (use.user->kind() != prim::GetAttr) continue;
      auto slot = type.findAttribute(use.user->ivalue(attr::name).toString());
      if (slot) reads[*slot].push_back(use.user->output());
    }
  }
  return reads;
}

}  // namespace

// Finds the places below a value of one type; `values` are the values of the graph that hold it.
class ArgumentPlaces::Finder {
 public:
  Finder(const Graph& graph, size_t& count) : count_(count) {
    collectSetAttributes(graph.block(), set_);
  }

  // False when there is no place of interest in a value of this type.
  bool find(const TypePtr& type, std::span<Value* const> values, Place& place, int depth = 0) {
    if (count_ >= kMaxPlaces || depth > kMaxDepth) return false;
    if (isTensorOrNone(type) || isTensorList(type)) {
      place.kind = isTensorList(type) ? Kind::List : Kind::Tensor;
      ++count_;
      return true;
    }
    if (const auto* tuple = type->as<TupleType>()) {
      place.kind = Kind::Tuple;
      for (size_t i = 0; i < tuple->contained().size(); ++i) {
        addChild(place, i, tuple->contained()[i], {}, depth);
      }
    } else if (const auto* object = type->as<ClassType>()) {
      place.kind = Kind::Object;
      for (const auto& [slot, reads] : attributeReads(*object, values)) {
        const auto& attribute = object->attributes()[slot];
        if (set_.count({object, attribute.name}) != 0) continue;
        addChild(place, slot, attribute.type, reads, depth);
      }
    }
    return !place.children.empty();
  }

 private:
  void addChild(Place& place, size_t index, const TypePtr& type, std::span<Value* const> values,
                int depth) {
    Place child{Kind::Tensor, static_cast<uint32_t>(index), {}};
    if (find(type, values, child, depth + 1)) place.children.push_back(std::move(child));
  }

  size_t& count_;
  SetAttributes set_;
};

ArgumentPlaces::ArgumentPlaces(const Graph& graph) {
  Finder finder(graph, size_);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Place place{Kind::Tensor, static_cast<uint32_t>(i), {}};
    Value* input = graph.inputs()[i];
    if (finder.find(input->type(), {&input, 1}, place)) arguments_.push_back(std::move(place));
  }
}

void ArgumentPlaces::readAbsent(const Place& place, TensorKey*& out) {
  if (place.kind == Kind::Tensor || place.kind == Kind::List) *out++ = TensorKey::unknown();
  for (const Place& child : place.children) readAbsent(child, out);
}

void ArgumentPlaces::readPlace(const Place& place, const IValue& value, TensorKey*& out) {
  switch (place.kind) {
    case Kind::Tensor:
      *out++ = TensorKey::of(value);
      return;
    case Kind::List: {
      if (!value.isList()) return readAbsent(place, out);
      const std::vector<IValue>& elements = value.toList().elements;
      TensorKey key = TensorKey::unknown();
      if (!elements.empty() && elements.size() <= kMaxListElements) {
        key = TensorKey::of(elements[0]);
        for (size_t i = 1; i < elements.size(); ++i) key = join(key, TensorKey::of(elements[i]));
      }
      *out++ = key;
      return;
    }
    case Kind::Tuple: {
      if (!value.isTuple()) return readAbsent(place, out);
      const std::vector<IValue>& elements = value.toTuple().elements;
      for (const Place& child : place.children) {
        child.index < elements.size() ? readPlace(child, elements[child.index], out)
                                      : readAbsent(child, out);
      }
      return;
    }
    case Kind::Object: {
      if (!value.isObject()) return readAbsent(place, out);
      const Object& object = value.toObject();
      // Another thread may set what is read here.
      for (const Place& child : place.children) {
        readPlace(child, SlotView(object, child.index).value(), out);
      }
      return;
    }
  }
}

void ArgumentPlaces::read(std::span<const IValue> arguments, TensorKey* keys) const {
  for (const Place& place : arguments_) {
    place.index < arguments.size() ? readPlace(place, arguments[place.index], keys)
                                   : readAbsent(place, keys);
  }
}

// What refining lists needs, made when there are any.
class ArgumentPlaces::Refiner {
 public:
  explicit Refiner(Graph& graph) : graph_(graph) {}

  // The type of a list that is only taken apart. Elsewhere it has to stay as declared, for a list
  // of tensors is no list of float tensors.
  TypePtr list(const TypePtr& declared, TensorKey key, std::span<Value* const> values) {
    if (!key.isTensor() || values.empty()) return declared;
    if (!aliases_) aliases_.emplace(graph_);
    for (const Value* v : values) {
      if (aliases_->hasWriters(v)) return declared;
      for (const Use& use : v->uses()) {
        Symbol kind = use.user->kind();
        if (kind != prim::ListUnpack && kind != aten::__getitem__ && kind != aten::len) {
          return declared;
        }
      }
    }
    return types::List(key.refine(types::Tensor()));
  }

 private:
  Graph& graph_;
  std::optional<AliasDb> aliases_;
};

TypePtr ArgumentPlaces::refinePlace(const Place& place, const TypePtr& declared,
                                    std::span<Value* const> values, Refiner& refiner,
                                    const TensorKey*& in) {
  switch (place.kind) {
    case Kind::Tensor:
      return (in++)->refine(declared);
    case Kind::List:
      return refiner.list(declared, *in++, values);
    case Kind::Tuple: {
      const auto& tuple = *declared->as<TupleType>();
      std::vector<TypePtr> elements = tuple.contained();
      for (const Place& child : place.children) {
        TypePtr& element = elements.at(child.index);
        element = refinePlace(child, element, {}, refiner, in);
      }
      return tuple.isNamed() ? declared : types::Tuple(std::move(elements));
    }
    case Kind::Object: {
      const auto& type = *declared->as<ClassType>();
      auto reads = attributeReads(type, values);
      for (const Place& child : place.children) {
        const std::vector<Value*>& results = reads[child.index];
        TypePtr refined =
            refinePlace(child, type.attributes().at(child.index).type, results, refiner, in);
        for (Value* v : results) v->setType(refined);
      }
      return declared;
    }
  }
  return declared;
}

void ArgumentPlaces::refine(Graph& graph, std::span<const TensorKey> keys) const {
  WICK_ASSERT(keys.size() == size_, "{} keys for {} places", keys.size(), size_);
  Refiner refiner(graph);
  const TensorKey* in = keys.data();
  for (const Place& place : arguments_) {
    Value* input = graph.inputs().at(place.index);
    input->setType(refinePlace(place, input->type(), {&input, 1}, refiner, in));
  }
}

ArgumentSpec::ArgumentSpec(const ArgumentPlaces& places, std::span<const IValue> arguments)
    : size_(places.size()), default_dtype_(defaultDType()) {
  if (size_ > kInline) heap_ = std::make_unique<TensorKey[]>(size_);
  TensorKey* keys = heap_ ? heap_.get() : inline_.data();
  places.read(arguments, keys);
  uint64_t hash = static_cast<uint64_t>(default_dtype_);
  for (size_t i = 0; i < size_; ++i) {
    hash = (hash ^ keys[i].bits()) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  hash_ = hash;
}

bool ArgumentSpec::operator==(const ArgumentSpec& other) const {
  return hash_ == other.hash_ && default_dtype_ == other.default_dtype_ &&
         std::ranges::equal(keys(), other.keys());
}

std::string ArgumentSpec::str() const {
  std::string text;
  for (TensorKey key : keys()) {
    text += text.empty() ? "" : ", ";
    text += key.refine(types::Any())->str();
  }
  return "(" + text + ")";
}

}  // namespace wick
