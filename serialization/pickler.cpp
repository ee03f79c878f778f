#include "serialization/pickler.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/budget.h"
#include "core/error.h"
#include "core/quantizer.h"
#include "core/sparse_form.h"
#include "core/stack.h"
#include "serialization/pickle_opcodes.h"

namespace wick {
namespace {

constexpr size_t kPicklerMaxDepth = 1000;
// Each level calls three functions.
constexpr size_t kStack = kPicklerMaxDepth * 512;
// Strings up to this length recur (attribute names, dict keys), and are written once; longer ones
// are, when they are one object.
constexpr size_t kSharedText = 256;
constexpr std::string_view kJitPickle = "torch.jit._pickle";

}  // namespace

Pickler::Pickler(PicklerOptions options) : options_(std::move(options)) {
  op(op::kProto);
  raw<uint8_t>(2);
}

template <class T>
void Pickler::raw(T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out_.append(bytes, sizeof(T));
}

std::string Pickler::finish() {
  op(op::kStop);
  return std::move(out_);
}

void Pickler::push(const IValue& value) {
  withStack(kStack, [&] { pushValue(value); });
}

void Pickler::pushValue(const IValue& value) {
  WICK_CHECK(depth_ < kPicklerMaxDepth, "save: values nest deeper than {}{}", kPicklerMaxDepth,
             where());
  pace_.step(8);
  written_.count(out_.capacity());
  checkGrowth();
  ++depth_;
  switch (value.tag()) {
    case IValue::Tag::None:
      op(op::kNone);
      break;
    case IValue::Tag::Bool:
      op(value.toBool() ? op::kNewTrue : op::kNewFalse);
      break;
    case IValue::Tag::Int:
      pushInt(value.toInt());
      break;
    case IValue::Tag::Double:
      pushDouble(value.toDouble());
      break;
    case IValue::Tag::String:
      if (value.toString().size() <= kSharedText) {
        pushString(value.toString());
      } else if (!recall(value.rawObject())) {
        pushString(value.toString());
        remember(value);
      }
      break;
    case IValue::Tag::Complex:
      pushGlobal(options_.for_python ? "__builtin__" : "builtins", "complex");
      pushDouble(value.toComplex().real());
      pushDouble(value.toComplex().imag());
      op(op::kTuple2);
      op(op::kReduce);
      break;
    case IValue::Tag::Device:
      pushGlobal("torch", "device");
      pushString(value.toDevice().str());
      op(op::kTuple1);
      op(op::kReduce);
      break;
    case IValue::Tag::Tensor:
      if (recall(value.rawObject())) break;
      pushTensor(value.toTensor());
      remember(value);
      break;
    case IValue::Tag::Tuple:
      if (value.elements().empty()) {
        op(op::kEmptyTuple);
      } else if (!recall(value.rawObject())) {
        pushTuple(value.elements());
        remember(value);
      }
      break;
    case IValue::Tag::List:
      pushList(value);
      break;
    case IValue::Tag::Dict:
      pushDict(value);
      break;
    case IValue::Tag::Object:
      pushObject(value);
      break;
    case IValue::Tag::Enum:
      pushEnum(value.toEnum());
      break;
    case IValue::Tag::Future:
    case IValue::Tag::Generator:
    case IValue::Tag::Capsule:
      throwRuntimeError("save: a {} cannot be saved{}", value.tagName(), where());
  }
  --depth_;
}

void Pickler::pushInt(int64_t value) {
  if (value >= 0 && value <= UINT8_MAX) {
    op(op::kBinInt1);
    raw(static_cast<uint8_t>(value));
  } else if (value >= 0 && value <= UINT16_MAX) {
    op(op::kBinInt2);
    raw(static_cast<uint16_t>(value));
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    op(op::kBinInt);
    raw(static_cast<int32_t>(value));
  } else {
    op(op::kLong1);
    raw<uint8_t>(sizeof(value));
    raw(value);
  }
}

void Pickler::pushDouble(double value) {
  op(op::kBinFloat);
  raw(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
}

void Pickler::put(uint32_t index) {
  if (index <= UINT8_MAX) {
    op(op::kBinPut);
    raw(static_cast<uint8_t>(index));
  } else {
    op(op::kLongBinPut);
    raw(index);
  }
}

void Pickler::get(uint32_t index) {
  if (index <= UINT8_MAX) {
    op(op::kBinGet);
    raw(static_cast<uint8_t>(index));
  } else {
    op(op::kLongBinGet);
    raw(index);
  }
}

void Pickler::pushString(std::string_view text) {
  if (text.size() <= kSharedText) {
    auto [it, fresh] = memoized_strings_.emplace(text, next_memo_);
    if (!fresh) return get(it->second);
  }
  WICK_CHECK(text.size() <= UINT32_MAX, "save: a string of {} bytes is too long", text.size());
  op(op::kBinUnicode);
  raw(static_cast<uint32_t>(text.size()));
  if (text.size() > kSharedText) checkAllocation("save", text.size());
  out_.append(text);
  if (text.size() <= kSharedText) put(next_memo_++);
}

void Pickler::pushGlobal(std::string_view module, std::string_view name) {
  const std::string key = fmt::format("{}\n{}\n", module, name);
  auto [it, fresh] = memoized_strings_.emplace(key, next_memo_);
  if (!fresh) return get(it->second);
  op(op::kGlobal);
  out_.append(key);
  put(next_memo_++);
}

std::string Pickler::where() const {
  if (path_.empty()) return {};
  std::string name;
  for (const std::string* part : path_) name += (name.empty() ? "" : ".") + *part;
  return fmt::format(" (attribute '{}')", name);
}

void Pickler::pushScriptType(const Type& type) {
  const std::string name = typeName(type);
  const size_t dot = name.rfind('.');
  WICK_CHECK(dot != std::string::npos, "save: class '{}' is in no module", name);
  pushGlobal(std::string_view(name).substr(0, dot), std::string_view(name).substr(dot + 1));
}

bool Pickler::recall(const RefCounted* object) {
  auto it = memoized_.find(object);
  if (it == memoized_.end()) return false;
  get(it->second);
  return true;
}

void Pickler::remember(const IValue& value) {
  memoized_.emplace(value.rawObject(), next_memo_);
  kept_.push_back(value);
  put(next_memo_++);
}

void Pickler::pushTuple(const std::vector<IValue>& elements) {
  if (elements.size() > 3) op(op::kMark);
  for (const IValue& e : elements) pushValue(e);
  op(elements.size() == 1   ? op::kTuple1
     : elements.size() == 2 ? op::kTuple2
     : elements.size() == 3 ? op::kTuple3
                            : op::kTuple);
}

void Pickler::pushInts(IntSpan values) {
  op(op::kMark);
  for (int64_t v : values) pushInt(v);
  op(op::kTuple);
}

void Pickler::pushElements(const std::vector<IValue>& elements) {
  op(op::kEmptyList);
  if (elements.empty()) return;
  op(op::kMark);
  for (const IValue& e : elements) pushValue(e);
  op(op::kAppends);
}

void Pickler::beginTypeTag() {
  pushGlobal(kJitPickle, "restore_type_tag");
}

void Pickler::endTypeTag(const Type& type) {
  pushString(typeName(type));
  op(op::kTuple2);
  op(op::kReduce);
}

void Pickler::pushList(const IValue& value) {
  if (recall(value.rawObject())) return;
  const ListObject& list = value.toList();
  if (options_.for_python) {
    pushElements(list.elements);
    remember(value);
    return;
  }
  const char* builder = nullptr;
  switch (list.element_type->kind()) {
    case TypeKind::Int:
      builder = "build_intlist";
      break;
    case TypeKind::Float:
      builder = "build_doublelist";
      break;
    case TypeKind::Bool:
      builder = "build_boollist";
      break;
    case TypeKind::Tensor:
      builder = "build_tensorlist";
      break;
    default:
      break;
  }
  if (builder != nullptr) {
    pushGlobal(kJitPickle, builder);
    pushElements(list.elements);
    op(op::kTuple1);
    op(op::kReduce);
  } else {
    beginTypeTag();
    pushElements(list.elements);
    endTypeTag(*types::List(list.element_type));
  }
  remember(value);
}

void Pickler::pushDict(const IValue& value) {
  if (recall(value.rawObject())) return;
  const DictObject& dict = value.toDict();
  if (!options_.for_python) beginTypeTag();
  op(op::kEmptyDict);
  if (dict.size() != 0) {
    op(op::kMark);
    for (const auto& [key, element] : dict.items()) {
      pushValue(key);
      pushValue(element);
    }
    op(op::kSetItems);
  }
  if (!options_.for_python) endTypeTag(*types::Dict(dict.key_type, dict.value_type));
  remember(value);
}

void Pickler::pushStorage(const Tensor& tensor) {
  const Ref<Storage>& storage = tensor.storage();
  const std::pair key(storage.get(), tensor.dtype());
  // Tensors that share memory refer to one storage: PyTorch's loader would read it for each.
  if (auto it = storage_index_.find(key); it != storage_index_.end()) return get(it->second.memo);
  const size_t index = storages_.size();
  storages_.push_back(storage);
  op(op::kMark);
  pushString("storage");
  pushGlobal("torch", fmt::format("{}Storage", scalarTypeName(tensor.dtype())));
  pushString(std::to_string(index));
  pushString(storage->device().str());
  pushInt(static_cast<int64_t>(storage->bytes() / tensor.itemSize()));
  op(op::kTuple);
  op(op::kBinPersId);
  storage_index_.emplace(key, Written{index, next_memo_});
  put(next_memo_++);
}

void Pickler::pushTensor(const Tensor& tensor) {
  const Device device = tensor.device();
  const bool on_meta = device.type == DeviceType::Meta;
  WICK_CHECK(device.isCpu() || device.isCuda() || (on_meta && tensor.kind() == TensorKind::Dense),
             "save: a tensor on {} must be moved to the CPU first{}", device.str(), where());
  if (on_meta && options_.for_python) return pushMeta(tensor);
  if (isQuantized(tensor)) return pushQuantized(tensor);
  if (tensor.kind() == TensorKind::Sparse) return pushSparse(tensor);
  WICK_CHECK(tensor.kind() == TensorKind::Dense, "save: {} tensors cannot be saved{}",
             toString(tensor.kind()), where());
  pushGlobal("torch._utils", "_rebuild_tensor_v2");
  op(op::kMark);
  pushStorage(tensor);
  pushInt(tensor.offset());
  pushInts(tensor.sizes());
  pushInts(tensor.strides());
  op(options_.keep_requires_grad && tensor.requiresGrad() ? op::kNewTrue : op::kNewFalse);
  pushHooks();
  op(op::kTuple);
  op(op::kReduce);
}

// Python's side has no storage for tensors without memory.
void Pickler::pushMeta(const Tensor& tensor) {
  pushGlobal("torch._utils", "_rebuild_meta_tensor_no_storage");
  op(op::kMark);
  pushGlobal("torch", toString(tensor.dtype()));
  pushInts(tensor.sizes());
  pushInts(tensor.strides());
  op(options_.keep_requires_grad && tensor.requiresGrad() ? op::kNewTrue : op::kNewFalse);
  op(op::kTuple);
  op(op::kReduce);
}

// PyTorch's Python and C++ sides rebuild sparse tensors of different arguments.
void Pickler::pushSparse(const Tensor& tensor) {
  const SparseForm& form = sparseFormOf("save", tensor);
  const auto pushParts = [&] {
    pushTensor(form.isCoo() ? form.indices : form.compressed);
    if (!form.isCoo()) pushTensor(form.plain);
    pushTensor(form.values);
  };
  // Under the second name versions before 2.0 know those that are compressed.
  const bool by_older_name = options_.for_python && !form.isCoo();
  pushGlobal("torch._utils",
             by_older_name ? "_rebuild_sparse_csr_tensor" : "_rebuild_sparse_tensor");
  op(op::kMark);
  if (options_.for_python) {
    constexpr const char* kNames[] = {"", "coo", "csr", "", "csc", "bsr", "bsc"};
    pushGlobal("torch.serialization", "_get_layout");
    pushString(fmt::format("torch.sparse_{}", kNames[static_cast<size_t>(form.layout)]));
    op(op::kTuple1);
    op(op::kReduce);
    op(op::kMark);
    pushParts();
    pushInts(tensor.sizes());
    op(op::kTuple);
  } else {
    pushInt(static_cast<int64_t>(form.layout));
    pushInts(tensor.sizes());
    op(options_.keep_requires_grad && tensor.requiresGrad() ? op::kNewTrue : op::kNewFalse);
    pushParts();
    pushHooks();
  }
  op(op::kTuple);
  op(op::kReduce);
}

// No hooks for gradients.
void Pickler::pushHooks() {
  pushGlobal("collections", "OrderedDict");
  op(op::kEmptyTuple);
  op(op::kReduce);
}

// Between strides and hooks stands how the integers are meant.
void Pickler::pushQuantized(const Tensor& tensor) {
  const Quantizer& quantizer = quantizerOf("save", tensor);
  pushGlobal("torch._utils", "_rebuild_qtensor");
  op(op::kMark);
  pushStorage(tensor);
  pushInt(tensor.offset());
  pushInts(tensor.sizes());
  pushInts(tensor.strides());
  op(op::kMark);
  pushGlobal("torch", toString(quantizer.scheme()));
  if (quantizer.isPerTensor()) {
    pushDouble(quantizer.scale());
    pushInt(quantizer.zeroPoint());
  } else {
    pushValue(IValue(quantizer.scales()));
    pushValue(IValue(quantizer.zeroPoints()));
    pushInt(quantizer.axis());
  }
  op(op::kTuple);
  op(op::kNewFalse);
  pushHooks();
  op(op::kTuple);
  op(op::kReduce);
}

void Pickler::pushObject(const IValue& value) {
  const Object& object = value.toObject();
  WICK_CHECK(options_.get_state, "save: an object of class {} cannot be saved here{}",
             object.type()->name(), where());
  if (recall(value.rawObject())) return;
  pushScriptType(*object.type());
  op(op::kEmptyTuple);
  op(op::kNewObj);
  if (std::optional<IValue> state = options_.get_state(object)) {
    pushValue(*state);
  } else {
    pushAttributes(object);
  }
  op(op::kBuild);
  remember(value);
}

void Pickler::pushAttributes(const Object& object) {
  op(op::kEmptyDict);
  const std::vector<ClassType::Attribute>& attributes = object.type()->attributes();
  if (attributes.empty()) return;
  op(op::kMark);
  for (size_t i = 0; i < attributes.size(); ++i) {
    path_.push_back(&attributes[i].name);
    pushString(attributes[i].name);
    pushValue(object.slot(i));
    path_.pop_back();
  }
  op(op::kSetItems);
}

void Pickler::pushEnum(const EnumObject& value) {
  WICK_CHECK(!options_.for_python, "save: enum {}.{} cannot be saved here{}", value.type->name(),
             value.name, where());
  pushScriptType(*value.type);
  // PyTorch's loader takes the value itself, without a tuple around it.
  pushValue(value.value);
  op(op::kReduce);
}

}  // namespace wick
