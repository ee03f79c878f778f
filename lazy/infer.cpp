#include "lazy/infer.h"

#include <string>
#include <unordered_map>

#include "core/error.h"
#include "lazy/graph.h"
#include "lazy/program.h"

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
  append(key, t.sizes.size());
  for (const int64_t s : t.sizes) append(key, s);
  for (const int64_t s : t.strides) append(key, s);
}

// False for what no call is remembered with.
bool describe(std::string& key, const IValue& v) {
  append(key, v.tag());
  switch (v.tag()) {
    case IValue::Tag::None:
      return true;
    case IValue::Tag::Tensor:
      appendTensor(key, *static_cast<const TensorImpl*>(v.rawObject()));
      return true;
    case IValue::Tag::Int:
      append(key, v.toInt());
      return true;
    case IValue::Tag::Bool:
      append(key, v.toBool());
      return true;
    case IValue::Tag::Double:
      append(key, v.toDouble());
      return true;
    case IValue::Tag::Complex:
      append(key, v.toComplex());
      return true;
    case IValue::Tag::Device:
      append(key, v.toDevice().type);
      return true;
    case IValue::Tag::String:
      append(key, v.toString().size());
      key += v.toString();
      return true;
    case IValue::Tag::List:
      append(key, v.elements().size());
      for (const IValue& e : v.elements()) {
        if (!describe(key, e)) return false;
      }
      return true;
    default:
      return false;
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

Inferred run(const Operator& op, std::span<const IValue> args) {
  Inferred made;
  const ComputeScope scope;
  Twins twins;
  std::vector<IValue> given, results(op.schema().returns().size());
  for (const IValue& v : args) given.push_back(twins.of(v));
  try {
    op.callKernel(given.data(), given.size(), results.data(), results.size());
  } catch (const Error&) {
    // The call itself will say what is wrong with it, or there is nothing for this device.
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

}  // namespace

const Inferred& infer(const Operator& op, std::span<const IValue> args) {
  static std::unordered_map<std::string, Inferred>& known =
      *new std::unordered_map<std::string, Inferred>;  // synchronized by mutex()
  static const Inferred unknown{};
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
  return known.insert_or_assign(own, run(op, args)).first->second;
}

}  // namespace wick::lazy
