#include "runtime/ops/shapes/shape_helpers.h"

#include "core/dtype_promotion.h"

namespace wick::ops::shapes {

namespace {
const TensorFacts& nothing() {
  static const TensorFacts none;
  return none;
}
}  // namespace

const TensorFacts& tensorArgument(const Node& node, std::string_view name) {
  const Value* v = argumentOf(node, name);
  const TensorFacts* facts = v ? factsOf(v) : nullptr;
  return facts ? *facts : nothing();
}

const TensorFacts& firstTensor(const Node& node) {
  for (const Value* v : node.inputs()) {
    if (const TensorFacts* facts = factsOf(v)) return *facts;
  }
  return nothing();
}

bool isAbsent(const Node& node, std::string_view name) {
  const Value* v = argumentOf(node, name);
  return !v || isNoneConstant(v);
}

std::optional<int64_t> intArgument(const Node& node, std::string_view name) {
  const Value* v = argumentOf(node, name);
  return v ? intOf(v) : std::nullopt;
}

std::optional<bool> boolArgument(const Node& node, std::string_view name) {
  const Value* v = argumentOf(node, name);
  return v ? boolOf(v) : std::nullopt;
}

std::optional<DType> dtypeArgument(const Node& node, std::optional<DType> otherwise) {
  if (isAbsent(node, "dtype")) return otherwise;
  return dtypeConstantOf(argumentOf(node, "dtype"));
}

std::optional<Device> deviceArgument(const Node& node, std::optional<Device> otherwise) {
  if (isAbsent(node, "device")) return otherwise;
  std::optional<IValue> c = constantOf(argumentOf(node, "device"));
  if (!c || !c->isDevice()) return std::nullopt;
  // `cuda` without an index is the current one; tensors on `cpu:0` are on `cpu`.
  return c->toDevice().isCpu() ? std::optional<Device>(Device()) : std::nullopt;
}

std::optional<DType> floating(std::optional<DType> t) {
  return t && isIntegral(*t, true) ? defaultDType() : t;
}

std::optional<DType> accumulated(std::optional<DType> t) {
  return t && isIntegral(*t, true) ? DType::Long : t;
}

std::optional<DType> real(std::optional<DType> t) {
  return t ? std::optional<DType>(toRealType(*t)) : t;
}

std::optional<DType> promotedDType(const std::vector<const TensorFacts*>& tensors) {
  DTypePromotion promotion;
  bool mixed = false;
  bool ranks_known = true;
  for (const TensorFacts* t : tensors) {
    if (!t->dtype) return std::nullopt;
    promotion.addTensor(*t->dtype, t->dim.value_or(1) > 0);
    ranks_known = ranks_known && t->dim;
    mixed = mixed || *t->dtype != *tensors[0]->dtype;
  }
  if (promotion.empty() || (mixed && !ranks_known)) return std::nullopt;
  return promotion.get();
}

std::optional<Device> commonDevice(const std::vector<const TensorFacts*>& tensors) {
  std::optional<Device> device;
  for (const TensorFacts* t : tensors) {
    if (!t->device || (device && *device != *t->device)) return std::nullopt;
    device = t->device;
  }
  return device;
}

std::vector<const TensorFacts*> tensorArguments(const Node& node) {
  std::vector<const TensorFacts*> out;
  for (const Value* v : node.inputs()) {
    if (const TensorFacts* facts = factsOf(v)) out.push_back(facts);
  }
  return out;
}

std::optional<Sizes> broadcastArguments(const Node& node) {
  Sizes out;
  for (const TensorFacts* t : tensorArguments(node)) {
    std::optional<Sizes> mine = sizesOf(*t);
    if (!mine) return std::nullopt;
    out = broadcastSizes(out, *mine);
  }
  return out;
}

std::optional<std::vector<const TensorFacts*>> tensorListArgument(const Node& node,
                                                                  std::string_view name) {
  const Value* list = argumentOf(node, name);
  std::optional<std::vector<Value*>> elements = list ? literalElements(list) : std::nullopt;
  if (!elements) return std::nullopt;
  std::vector<const TensorFacts*> out;
  for (const Value* v : *elements) {
    const TensorFacts* facts = factsOf(v);
    if (!facts) return std::nullopt;
    out.push_back(facts);
  }
  return out;
}

Types tensorOf(std::optional<DType> dtype, std::optional<Sizes> sizes,
               std::optional<Device> device) {
  TensorFacts facts;
  facts.dtype = dtype;
  facts.device = device;
  setSizes(facts, std::move(sizes));
  return oneTensor(std::move(facts));
}

}  // namespace wick::ops::shapes
