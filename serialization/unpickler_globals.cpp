// What the GLOBALs of a pickle mean. This list is the whole of what a file can call.
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <utility>

#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "serialization/stored_values.h"
#include "serialization/unpickler_objects.h"

namespace wick {
namespace {

constexpr std::string_view kStorageSuffix = "Storage";
// PyTorch's operators take no more dimensions either.
constexpr size_t kMaxStoredDims = 64;
// A storage, its key and what knows it by that.
constexpr uint64_t kStorageMemory = 384;

// Layouts and memory formats are ints in TorchScript.
std::optional<int64_t> namedInteger(const std::string& module, const std::string& name) {
  static const std::unordered_map<std::string, int64_t> values = {
      {"torch.strided", 0},
      {"torch.contiguous_format", 0},
      {"torch.preserve_format", 1},
      {"torch.channels_last", 2},
      {"torch.channels_last_3d", 3},
      {"torch.per_tensor_affine", 0},
      {"torch.per_channel_affine", 1},
      {"torch.per_tensor_symmetric", 2},
      {"torch.per_channel_symmetric", 3},
      {"torch.per_channel_affine_float_qparams", 4},
  };
  auto it = values.find(module + "." + name);
  if (it == values.end()) return std::nullopt;
  return it->second;
}

void conjugate(const Tensor& tensor) {
  dispatchAll(tensor.dtype(), [&]<class T>() {
    if constexpr (dtypeCategory<T>() == kComplexes) {
      T* data = tensor.data<T>();
      for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = std::conj(data[i]);
    }
  });
}

void negate(const Tensor& tensor) {
  dispatch<kRealNumbers | kComplexes>("torch.load", tensor.dtype(), [&]<class T>() {
    T* data = tensor.data<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        data[i].bits ^= 0x8000;
      } else if constexpr (std::is_integral_v<T>) {
        data[i] = static_cast<T>(T{0} - data[i]);
      } else {
        data[i] = -data[i];
      }
    }
  });
}

bool flag(const DictObject& metadata, const char* name) {
  const IValue* value = metadata.find(name);
  return value != nullptr && value->isBool() && value->toBool();
}

}  // namespace

const Unpickler::GlobalObject* Unpickler::asGlobal(const IValue& value) const {
  return value.isCapsule() ? dynamic_cast<const GlobalObject*>(&value.toCapsule()) : nullptr;
}

const Unpickler::StorageObject* Unpickler::asStorage(const IValue& value) const {
  return value.isCapsule() ? dynamic_cast<const StorageObject*>(&value.toCapsule()) : nullptr;
}

bool Unpickler::pushDType(const std::string& name) {
  // "float32" names a dtype, "Float" (which dtypeFromName knows too) does not in Python.
  std::optional<DType> dtype = dtypeFromName(name);
  if (!dtype || toString(*dtype) != name) return false;
  push(static_cast<int64_t>(*dtype));
  return true;
}

void Unpickler::pushGlobal(const std::string& module, const std::string& name) {
  using Kind = GlobalObject::Kind;
  static const std::unordered_map<std::string, Kind> functions = {
      {"torch._utils._rebuild_tensor", Kind::RebuildTensor},
      {"torch._utils._rebuild_tensor_v2", Kind::RebuildTensor},
      {"torch._utils._rebuild_tensor_v3", Kind::RebuildTensorWithDType},
      {"torch._utils._rebuild_qtensor", Kind::RebuildQuantized},
      {"torch._utils._rebuild_sparse_tensor", Kind::RebuildSparse},
      {"torch._utils._rebuild_sparse_csr_tensor", Kind::RebuildSparse},
      {"torch._utils._rebuild_parameter", Kind::RebuildParameter},
      {"torch._utils._rebuild_parameter_with_state", Kind::RebuildParameter},
      {"torch._tensor._rebuild_from_type_v2", Kind::RebuildFromType},
      {"torch._utils._rebuild_meta_tensor_no_storage", Kind::RebuildMeta},
      {"torch._utils._rebuild_device_tensor_from_cpu_tensor", Kind::RebuildFromCpu},
      {"torch._utils._rebuild_device_tensor_from_numpy", Kind::RebuildFromArray},
      {"torch._utils._rebuild_xla_tensor", Kind::RebuildFromArray},
      {"numpy.core.multiarray._reconstruct", Kind::NewArray},
      {"numpy._core.multiarray._reconstruct", Kind::NewArray},
      {"numpy.ndarray", Kind::ArrayClass},
      {"numpy.dtype", Kind::ArrayDType},
      {"_codecs.encode", Kind::EncodeText},
      {"__builtin__.bytes", Kind::NoBytes},
      {"torch.device", Kind::Device},
      {"torch.Size", Kind::Size},
      {"torch.serialization._get_layout", Kind::Layout},
      {"collections.OrderedDict", Kind::OrderedDict},
      {"builtins.complex", Kind::Complex},
      {"__builtin__.complex", Kind::Complex},
      {"torch.jit._pickle.build_intlist", Kind::IntList},
      {"torch.jit._pickle.build_doublelist", Kind::DoubleList},
      {"torch.jit._pickle.build_boollist", Kind::BoolList},
      {"torch.jit._pickle.build_tensorlist", Kind::TensorList},
      {"torch.jit._pickle.restore_type_tag", Kind::RestoreTypeTag},
      {"torch.UntypedStorage", Kind::StorageClass},
      {"torch.storage.UntypedStorage", Kind::StorageClass},
      {"torch.storage._UntypedStorage", Kind::StorageClass},
      {"torch.Tensor", Kind::TensorClass},
      {"torch.nn.parameter.Parameter", Kind::TensorClass},
  };
  const std::string full = module + "." + name;
  if (auto known = globals_.find(full); known != globals_.end()) {
    pushItem(known->second);
    return;
  }
  auto pushNew = [&](Kind kind) {
    auto global = makeRef<GlobalObject>(kind, full);
    push(IValue::capsule(global), true);
    return global;
  };
  if (auto it = functions.find(full); it != functions.end()) {
    pushNew(it->second);
  } else if (module == "torch" && (pushDType(name) || namedInteger(module, name))) {
    if (auto value = namedInteger(module, name)) push(*value);
    return;
  } else if (module == "torch" && name.ends_with(kStorageSuffix)) {
    auto dtype = dtypeFromName(name.substr(0, name.size() - kStorageSuffix.size()));
    if (!dtype) fail("storages of type {} are not supported", full);
    pushNew(Kind::StorageClass)->dtype = dtype;
  } else if (module == "__torch__" || module.starts_with("__torch__.")) {
    TypePtr type = hooks_.resolve_type ? hooks_.resolve_type(full) : nullptr;
    if (type == nullptr) fail("there is no code for {}", full);
    pushNew(Kind::Type)->type = std::move(type);
  } else {
    throw CodeOfPython(
        fmt::format("{}: the global {} is not allowed: it names code of Python, which is never "
                    "run; save values alone, such as module.state_dict() (at byte {})",
                    name_, full, opcode_at_),
        full);
  }
  globals_.emplace(full, stack_.back());
}

void Unpickler::persistentId() {
  Item item = pop();
  if (!item.value.isTuple()) fail("a persistent id is {}, expected a tuple", item.value.tagName());
  const std::vector<IValue>& id = item.value.elements();
  if (id.size() < 5 || id.size() > 6 || !id[0].isString() || id[0].toString() != "storage") {
    fail("a persistent id names no storage");
  }
  const GlobalObject* type = asGlobal(id[1]);
  if (type == nullptr || type->kind != GlobalObject::Kind::StorageClass) {
    fail("a persistent id has no storage type");
  }
  if (!id[2].isString() || !id[3].isString() || !id[4].isInt()) {
    fail("a persistent id has no key, location and size");
  }
  if (id.size() == 6 && !id[5].isNone()) fail("views of storages are not supported");
  const int64_t numel = id[4].toInt();
  const auto item_size = static_cast<int64_t>(type->dtype ? itemSize(*type->dtype) : 1);
  if (numel < 0 || numel > INT64_MAX / item_size) fail("a storage of {} elements", numel);
  if (!hooks_.storage) fail("tensors cannot be read here");
  charge(kStorageMemory);
  work(id[2].toString().size() + id[3].toString().size());
  const std::string& saved_on = id[3].toString();
  const Device device =
      hooks_.device ? deviceOf(saved_on, fmt::format("storage '{}' was saved on", id[2].toString()))
                    : Device();
  StorageRequest request{id[2].toString(), static_cast<uint64_t>(numel * item_size)};
  Ref<Storage> storage = device.type == DeviceType::Meta ? Storage::allocate(request.bytes, device)
                                                         : hooks_.storage(request);
  if (storage->bytes() < request.bytes) {
    fail("storage '{}' has {} bytes, expected {}", request.key, storage->bytes(), request.bytes);
  }
  push(IValue::capsule(
           makeRef<StorageObject>(std::move(storage), type->dtype, device, saved_on == "cpu")),
       true);
}

Unpickler::Item Unpickler::call(const GlobalObject& function, const TupleObject& tuple) {
  using Kind = GlobalObject::Kind;
  const std::vector<IValue>& args = tuple.elements;
  auto expectArgs = [&](size_t least, size_t most) {
    if (args.size() < least || args.size() > most) {
      fail("{} with {} arguments", function.name, args.size());
    }
  };
  switch (function.kind) {
    case Kind::RebuildTensor:
      return {rebuildTensor(args, false)};
    case Kind::RebuildTensorWithDType:
      return {rebuildTensor(args, true)};
    case Kind::RebuildQuantized:
      return {rebuildQuantized(args)};
    case Kind::RebuildSparse:
      return {rebuildSparse(args)};
    case Kind::RebuildParameter:
      return {rebuildParameter(args)};
    case Kind::RebuildFromType:
      return {rebuildFromType(args)};
    case Kind::RebuildMeta:
      return {rebuildMeta(args)};
    case Kind::RebuildFromCpu:
      return {rebuildFromCpu(args)};
    case Kind::RebuildFromArray:
      return {rebuildFromArray(args)};
    case Kind::NewArray:
      return newArray(args);
    case Kind::ArrayDType:
      return arrayDType(args);
    case Kind::EncodeText:
      return encodeText(args);
    case Kind::NoBytes:  // protocol 2 writes bytes() for those of length zero
      expectArgs(0, 0);
      return {IValue(std::string()), true};
    case Kind::Device:
      return {makeDevice(args)};
    case Kind::Size:
      expectArgs(1, 1);
      dims(args[0], "torch.Size");
      return {args[0]};
    case Kind::Layout:
      expectArgs(1, 1);
      return {namedLayout(args[0])};
    case Kind::OrderedDict:
      expectArgs(0, 0);
      return {newDict()};
    case Kind::Complex:
      expectArgs(2, 2);
      return {IValue(std::complex<double>(args[0].numberToDouble(), args[1].numberToDouble()))};
    case Kind::IntList:
      return {typedList(args, types::Int())};
    case Kind::DoubleList:
      return {typedList(args, types::Float())};
    case Kind::BoolList:
      return {typedList(args, types::Bool())};
    case Kind::TensorList:
      return {typedList(args, types::Tensor())};
    case Kind::RestoreTypeTag:
      return {restoreTypeTag(args)};
    case Kind::Type:
    case Kind::StorageClass:
    case Kind::TensorClass:
    case Kind::ArrayClass:
      break;
  }
  fail("{} cannot be called", function.name);
}

Tensor Unpickler::copied(const Tensor& tensor) {
  // The elements of an expanded tensor are more than its storage has.
  int64_t bytes = 0;
  if (__builtin_mul_overflow(tensor.numel(), static_cast<int64_t>(tensor.itemSize()), &bytes)) {
    fail("a tensor of sizes {} is too large", formatInts(tensor.sizes()));
  }
  charge(static_cast<uint64_t>(bytes));
  if (tensor.dtype() != DType::Bool) return tensor.clone(MemoryFormat::Contiguous);
  // As bytes: what is neither 0 nor 1 must not be read as a bool.
  const Tensor from = Tensor::fromStorage(tensor.storage(), DType::Byte, tensor.sizes(),
                                          tensor.strides(), tensor.offset());
  return from.to(DType::Bool).contiguous();
}

// Compiled code takes it that bools are the bytes 0 and 1. Other bytes count as one; a tensor that
// has them, or that shares its storage with a tensor of numbers, which could write them, gets a
// copy.
Tensor Unpickler::ownBools(Tensor tensor) {
  const Storage& storage = *tensor.storage();
  const bool is_bool = tensor.dtype() == DType::Bool;
  auto [use, fresh] = storages_.try_emplace(&storage, StorageUse{tensor.storage(), is_bool, true});
  if (fresh && is_bool) {
    const auto* bytes = static_cast<const uint8_t*>(storage.data());
    use->second.only_bools =
        std::all_of(bytes, bytes + storage.bytes(), [](uint8_t b) { return b <= 1; });
  }
  if (use->second.as_bools != is_bool || (is_bool && !use->second.only_bools)) {
    return copied(tensor);
  }
  return tensor;
}

// Tensors that were saved as a lazy conjugate or negation of their storage.
Tensor Unpickler::applyMetadata(Tensor tensor, bool conj, bool neg) {
  if (!conj && !neg) return tensor;
  const bool requires_grad = tensor.requiresGrad();
  tensor = copied(tensor);
  if (conj) conjugate(tensor);
  if (neg) negate(tensor);
  tensor.setRequiresGrad(requires_grad);
  return tensor;
}

DimVector Unpickler::dims(const IValue& value, const char* what) const {
  if (!value.isTuple() && !value.isList()) fail("{}: {} for a tuple", what, value.tagName());
  if (value.elements().size() > kMaxStoredDims)
    fail("{}: more than {} dimensions", what, kMaxStoredDims);
  DimVector result;
  for (const IValue& v : value.elements()) {
    if (!v.isInt() || v.toInt() < 0) fail("{}: {} is not a size", what, v.tagName());
    result.push_back(v.toInt());
  }
  return result;
}

// (storage, offset, sizes, strides[, requires_grad, hooks[, metadata]]), or with a dtype after the
// hooks.
IValue Unpickler::rebuildTensor(const std::vector<IValue>& args, bool with_dtype) {
  if (args.size() < 4 || args.size() > 8) fail("a tensor is rebuilt from {} values", args.size());
  const StorageObject* storage = asStorage(args[0]);
  if (storage == nullptr) fail("a tensor is rebuilt without a storage");
  std::optional<DType> dtype = storage->dtype;
  size_t metadata = 6;
  if (with_dtype) {
    if (args.size() < 7 || !args[6].isInt()) fail("a tensor has no dtype");
    dtype = dtypeFromNumber(args[6].toInt());
    metadata = 7;
  }
  if (!dtype) fail("a tensor has no dtype");
  if (!args[1].isInt() || args[1].toInt() < 0) fail("a tensor's offset is not a size");
  int64_t offset = args[1].toInt();
  const DimVector sizes = dims(args[2], "a tensor's sizes");
  const DimVector strides = dims(args[3], "a tensor's strides");
  if (const std::string problem = problemOfView(*storage->storage, *dtype, sizes, strides, offset);
      !problem.empty()) {
    fail("{}", problem);
  }
  charge(kTensorMemory);
  Tensor tensor = Tensor::fromStorage(storage->storage, *dtype, sizes, strides, offset);
  const bool has_elements = tensor.device().isCpu();
  if (has_elements) tensor = ownBools(std::move(tensor));
  if (args.size() > 4 && args[4].isBool()) tensor.setRequiresGrad(args[4].toBool());
  if (has_elements && args.size() > metadata && args[metadata].isDict()) {
    const DictObject& flags = args[metadata].toDict();
    tensor = applyMetadata(std::move(tensor), flag(flags, "conj"), flag(flags, "neg"));
  }
  const bool stays = hooks_.numbers_stay && storage->from_cpu && tensor.dim() == 0;
  if (!stays) place(tensor, storage->device);
  return tensor;
}

IValue Unpickler::rebuildParameter(const std::vector<IValue>& args) {
  if (args.size() < 2 || !args[0].isTensor() || !args[1].isBool()) {
    fail("a parameter is rebuilt without a tensor and a flag");
  }
  charge(kTensorMemory);
  Tensor tensor = args[0].toTensor().detach();
  tensor.setRequiresGrad(args[1].toBool());
  placeLike(tensor, args[0].toTensor());
  return tensor;
}

// (function, class, arguments, Python attributes): the attributes are dropped.
IValue Unpickler::rebuildFromType(const std::vector<IValue>& args) {
  const GlobalObject* function = args.size() == 4 ? asGlobal(args[0]) : nullptr;
  const GlobalObject* type = args.size() == 4 ? asGlobal(args[1]) : nullptr;
  if (function == nullptr || function->kind == GlobalObject::Kind::RebuildFromType ||
      type == nullptr || type->kind != GlobalObject::Kind::TensorClass || !args[2].isTuple()) {
    fail("a tensor is rebuilt from an unknown class");
  }
  Item made = call(*function, args[2].toTuple());
  if (!made.value.isTensor()) fail("{} makes no tensor", function->name);
  return std::move(made.value);
}

IValue Unpickler::makeEnum(const EnumType& type, const IValue& member) {
  work(type.members().size());
  for (const auto& [name, value] : type.members()) {
    if (value.tag() == member.tag() && value.equals(member)) {
      auto shared = std::static_pointer_cast<const EnumType>(type.shared_from_this());
      return makeRef<EnumObject>(std::move(shared), name, value);
    }
  }
  fail("enum {} has no member with the value {}", type.name(), member.shortRepr(100));
}

IValue Unpickler::typedList(const std::vector<IValue>& args, const TypePtr& element) {
  if (args.size() != 1 || !args[0].isList()) fail("a typed list is built from no list");
  work(args[0].elements().size());
  for (const IValue& v : args[0].elements()) {
    const bool fits = element->kind() == TypeKind::Tensor ? v.isTensor()
                      : element->kind() == TypeKind::Int  ? v.isInt()
                      : element->kind() == TypeKind::Bool ? v.isBool()
                                                          : v.isDouble();
    if (!fits) fail("a list of {} holds {}", element->str(), v.tagName());
  }
  setTag(args[0], types::List(element));
  return args[0];
}

// (container, "Dict[str, int]"). Whether the contents agree with the tag is checked where the
// value is used, because it may still grow here.
IValue Unpickler::restoreTypeTag(const std::vector<IValue>& args) {
  if (args.size() != 2 || !args[1].isString()) fail("a type tag is not a string");
  // Parsing looks at a character several times.
  work(16 * args[1].toString().size());
  TypePtr type = hooks_.parse_type ? hooks_.parse_type(args[1].toString()) : nullptr;
  if (type == nullptr) fail("the type tag '{}' is unknown", args[1].toString());
  const bool fits = type->kind() == TypeKind::List   ? args[0].isList()
                    : type->kind() == TypeKind::Dict ? args[0].isDict()
                                                     : false;
  if (!fits) fail("the type tag '{}' is on {}", args[1].toString(), args[0].tagName());
  setTag(args[0], type);
  return args[0];
}

void Unpickler::setTag(const IValue& container, const TypePtr& type) {
  if (structure_.isSealed(container)) {
    fail("a {} is changed after an object took it", container.tagName());
  }
  if (!structure_.setTag(container, type)) {
    fail("a {} is tagged as {} and as something else", container.tagName(), type->annotation());
  }
}

}  // namespace wick
