#include "lazy/infer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/shape_facts.h"
#include "lazy/graph.h"
#include "lazy/program.h"
#include "runtime/fusion/operator_site.h"

namespace wick::lazy {

namespace {

// Calls with other sizes are other calls; beyond this number all are forgotten.
constexpr size_t kMaxKnown = 8192;

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void appendTensor(std::string& key, const TensorImpl& t) {
  append(key, t.dtype);
  const size_t dims = t.sizes.size();
  append(key, dims);
  key.append(reinterpret_cast<const char*>(t.sizes.data()), dims * sizeof(int64_t));
  key.append(reinterpret_cast<const char*>(t.strides.data()), dims * sizeof(int64_t));
}

// False for what no call is remembered with.
bool describe(std::string& key, const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::Tensor:
      append(key, v.tag());
      appendTensor(key, *static_cast<const TensorImpl*>(v.rawObject()));
      return true;
    case IValue::Tag::Complex:
      append(key, v.tag());
      append(key, v.toComplex());
      return true;
    case IValue::Tag::List:
      append(key, v.tag());
      append(key, v.elements().size());
      return std::ranges::all_of(v.elements(), [&](const IValue& e) { return describe(key, e); });
    default:
      return appendConstant(key, v);
  }
}

// The arguments with tensors of no memory for tensors.
class Twins {
 public:
  IValue of(const IValue& v) {
    if (v.isTensor()) return IValue(of(v.toTensor()));
    if (!v.isList()) return v;
    const ListObject& list = v.toList();
    if (list.elements.empty() || !(list.elements[0].isTensor() || list.elements[0].isNone())) {
      return v;
    }
    std::vector<IValue> elements;
    for (const IValue& e : list.elements) elements.push_back(of(e));
    return IValue(makeList(list.element_type, std::move(elements)));
  }
  // Null where something else is known to be wrong with the result.
  bool add(const IValue& result, Inferred& into) const {
    if (!result.isTensor()) return false;
    const Tensor t = result.toTensor();
    if (!t.defined() || t.kind() != TensorKind::Dense || t.device().type != DeviceType::Meta) {
      return false;
    }
    Inferred::Result found;
    found.geometry = Geometry::of(t);
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!made_[i].sharesStorage(t)) continue;
      found.argument = static_cast<int>(i);
      found.same = made_[i].isSame(t);
      // Who moves a tensor itself is not understood here.
      if (found.same && !(Geometry::of(t) == geometries_[i])) return false;
    }
    if (found.argument < 0 && found.geometry.offset != 0) return false;
    into.results.push_back(std::move(found));
    return true;
  }
  bool areUntouched() const {
    for (size_t i = 0; i < made_.size(); ++i) {
      if (!(Geometry::of(made_[i]) == geometries_[i])) return false;
    }
    return true;
  }

 private:
  Tensor of(const Tensor& t) {
    made_.push_back(
        Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), Device{DeviceType::Meta, -1}));
    geometries_.push_back(Geometry::of(made_.back()));
    return made_.back();
  }
  std::vector<Tensor> made_;
  std::vector<Geometry> geometries_;
};

// `absent` says whether all that is wrong is that there is nothing for this device.
Inferred run(const Operator& op, std::span<const IValue> args, bool& absent) {
  Inferred made;
  const ComputeScope scope;
  Twins twins;
  std::vector<IValue> given, results(op.schema().returns().size());
  for (const IValue& v : args) given.push_back(twins.of(v));
  try {
    op.callKernel(given.data(), given.size(), results.data(), results.size());
  } catch (const Error& error) {
    // The call itself will say what else is wrong with it.
    absent = std::string_view(error.what()).find("device meta") != std::string_view::npos;
    return made;
  }
  if (!twins.areUntouched()) return made;
  for (const IValue& result : results) {
    if (result.isList()) {
      made.counts.push_back(static_cast<int64_t>(result.elements().size()));
      for (const IValue& e : result.elements()) {
        if (!twins.add(e, made)) return made;
      }
    } else {
      made.counts.push_back(Record::kOne);
      if (!twins.add(result, made)) return made;
    }
  }
  made.known = true;
  return made;
}

// The types that the record's rule gives for the call's results; empty where it says nothing.
std::vector<TypePtr> typesByRule(const Operator& op, std::span<const IValue> args) {
  const ShapeRule rule = op.record().shape;
  if (!rule) return {};
  wick::Graph graph;
  const auto value = [&](const IValue& v) {
    if (v.isNone()) return graph.insertNode(graph.createNone())->output();
    return v.isTensor() ? graph.addInput("", v.type()) : graph.insertConstant(v);
  };
  std::vector<Value*> inputs;
  for (const IValue& v : args) {
    const bool tensors = v.isList() && std::ranges::any_of(v.elements(), [](const IValue& e) {
                           return e.isTensor() || e.isNone();
                         });
    if (!tensors) {
      inputs.push_back(value(v));
      continue;
    }
    std::vector<Value*> elements;
    for (const IValue& e : v.elements()) elements.push_back(value(e));
    inputs.push_back(
        graph.insertNode(graph.createList(v.toList().element_type, elements))->output());
  }
  const size_t count = op.schema().returns().size();
  Node* node = graph.insertNode(graph.create(op.symbol(), inputs, count));
  node->setOperator(&op);
  std::vector<TypePtr> types = rule(*node);
  return types.size() == count ? types : std::vector<TypePtr>();
}

// The geometry of a type whose dtype and sizes are known; nullopt for others.
std::optional<Geometry> geometryOf(const TypePtr& type) {
  const auto* tensor = type ? type->as<TensorType>() : nullptr;
  if (!tensor || !tensor->facts().dtype) return std::nullopt;
  const auto sizes = sizesOf(tensor->facts());
  if (!sizes) return std::nullopt;
  Geometry geometry;
  geometry.dtype = *tensor->facts().dtype;
  for (const Size& size : *sizes) {
    if (!size || *size < 0) return std::nullopt;
    geometry.sizes.push_back(*size);
  }
  geometry.strides = contiguousStrides(geometry.sizes);
  return geometry;
}

// Returns the results that the record's rule gives, or none. Arguments are row-major, so that the
// results are most likely as well.
Inferred byRule(const Operator& op, std::span<const IValue> args) {
  Inferred made;
  for (const IValue& v : args) {
    if (v.isTensor() && !v.toTensor().isContiguous()) return made;
  }
  const std::vector<TypePtr> types = typesByRule(op, args);
  if (types.empty()) return made;
  for (const TypePtr& type : types) {
    std::optional<Geometry> geometry = geometryOf(type);
    if (!geometry) return made;
    Inferred::Result result;
    result.geometry = std::move(*geometry);
    made.results.push_back(std::move(result));
    made.counts.push_back(Record::kOne);
  }
  made.made_contiguous = true;
  made.known = true;
  return made;
}

Inferred find(const Operator& op, std::span<const IValue> args) {
  bool absent = false;
  Inferred made = run(op, args, absent);
  if (made.known || !absent || op.writtenArguments() != 0 || op.unannotatedArguments() != 0)
    return made;
  return byRule(op, args);
}

}  // namespace

std::shared_ptr<const Inferred> infer(const Operator& op, std::span<const IValue> args) {
  using Known = std::unordered_map<std::string, std::shared_ptr<const Inferred>>;
  static Known& known = *new Known;  // synchronized by mutex()
  static const auto& unknown = *new std::shared_ptr(std::make_shared<const Inferred>());
  static std::string& key = *new std::string;
  key.clear();
  append(key, &op);
  append(key, defaultDType());
  for (const IValue& v : args) {
    if (!describe(key, v)) return unknown;
  }
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  if (known.size() >= kMaxKnown) known.clear();
  const std::string own = key;
  return known.insert_or_assign(own, std::make_shared<const Inferred>(find(op, args)))
      .first->second;
}

bool areSizesKnown(const Operator& op, std::span<const IValue> args) {
  const std::vector<TypePtr> types = typesByRule(op, args);
  return !types.empty() && std::ranges::all_of(types, [](const TypePtr& type) {
    return geometryOf(type).has_value();
  });
}

}  // namespace wick::lazy
