// NumPy arrays of a pickle, which tensors of devices that PyTorch has no storages for (XLA) are rebuilt from. No value
// is an array, or bytes of Python: they are operands alone.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "serialization/npy.h"
#include "serialization/unpickler_objects.h"

namespace wick {
namespace {

// The names that numpy.dtype gets, without the order of their bytes.
constexpr std::pair<std::string_view, DType> kArrayDTypes[] = {
    {"b1", DType::Bool},
    {"u1", DType::Byte},
    {"i1", DType::Char},
    {"i2", DType::Short},
    {"i4", DType::Int},
    {"i8", DType::Long},
    {"f2", DType::Half},
    {"f4", DType::Float},
    {"f8", DType::Double},
    {"c8", DType::ComplexFloat},
    {"c16", DType::ComplexDouble},
};

}  // namespace

// Returns words for something that stands in a container where a value should.
const char* Unpickler::kindOf(const Item& item) const {
  if (item.value.isString()) return "bytes of Python";
  if (!item.value.isCapsule()) return "a callable or a storage";
  const RefCounted* held = &item.value.toCapsule();
  if (dynamic_cast<const ArrayObject*>(held)) {
    return "a NumPy array, which PyTorch does not load either unless it is told to trust the file "
           "(save torch.from_numpy(array))";
  }
  return "a callable or a storage";
}

// (text, "latin1"): the bytes whose numbers are those of the characters, which protocol 2 writes for bytes.
Unpickler::Item Unpickler::encodeText(const std::vector<IValue>& args) {
  if (args.size() != 2 || !args[0].isString() || !args[1].isString() ||
      args[1].toString() != "latin1") {
    fail("_codecs.encode of other arguments than a text and 'latin1'");
  }
  const std::string& text = args[0].toString();
  work(text.size());
  charge(text.size());
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
      if ((c != 0xc2 && c != 0xc3) || (next & 0xc0) != 0x80) {
        fail("_codecs.encode of a text with characters beyond latin1");
      }
      c = static_cast<unsigned char>(c << 6 | (next & 0x3f));
      ++i;
    }
    bytes.push_back(static_cast<char>(c));
  }
  return {IValue(std::move(bytes)), true};
}

// (name, align, copy), as numpy.dtype("f4", False, True).
Unpickler::Item Unpickler::arrayDType(const std::vector<IValue>& args) {
  if (args.empty() || args.size() > 3 || !args[0].isString()) fail("numpy.dtype without a name");
  for (const auto& [name, dtype] : kArrayDTypes) {
    if (args[0].toString() != name) continue;
    charge(kTensorMemory);
    return {IValue::capsule(makeRef<ArrayDTypeObject>(dtype)), true};
  }
  fail("numpy.dtype of {}, which no tensor has", args[0].shortRepr(60));
}

// (numpy.ndarray, (0,), b"b"): an array that gets its elements by BUILD.
Unpickler::Item Unpickler::newArray(const std::vector<IValue>& args) {
  const GlobalObject* type = args.size() == 3 ? asGlobal(args[0]) : nullptr;
  if (type == nullptr || type->kind != GlobalObject::Kind::ArrayClass) {
    fail("an array is made of another class than numpy.ndarray");
  }
  charge(kTensorMemory);
  return {IValue::capsule(makeRef<ArrayObject>()), true};
}

// Gives an array or its dtype the state, which may hold bytes and a dtype. Returns whether the target is one.
bool Unpickler::buildArray(const IValue& target, const IValue& state) {
  if (!target.isCapsule()) return false;
  if (auto* dtype = dynamic_cast<ArrayDTypeObject*>(&target.toCapsule())) {
    // (version, byte order, …)
    if (!state.isTuple() || state.elements().size() < 2 || !state.elements()[1].isString()) {
      fail("numpy.dtype without an order of bytes");
    }
    const std::string& order = state.elements()[1].toString();
    if (order != "<" && (order != "|" || itemSize(dtype->dtype) != 1)) {
      fail("numpy.dtype with the order of bytes {}, expected '<'",
           state.elements()[1].shortRepr(60));
    }
    return true;
  }
  auto* array = dynamic_cast<ArrayObject*>(&target.toCapsule());
  if (array == nullptr) return false;
  if (array->tensor.defined()) fail("an array is given its elements twice");
  array->tensor = arrayOf(state);
  return true;
}

// (version, sizes, dtype, whether the first dimension lies closest, bytes).
Tensor Unpickler::arrayOf(const IValue& state) {
  if (!state.isTuple() || state.elements().size() != 5) fail("an array without its five parts");
  const std::vector<IValue>& parts = state.elements();
  const DimVector sizes = dims(parts[1], "an array's sizes");
  const auto* dtype =
      parts[2].isCapsule() ? dynamic_cast<const ArrayDTypeObject*>(&parts[2].toCapsule()) : nullptr;
  if (dtype == nullptr || !parts[3].isBool() || !parts[4].isString()) {
    fail("an array without a dtype, an order and bytes");
  }
  // Strides of an array without elements multiply its other sizes, which must not overflow either.
  DimVector filled = sizes;
  for (int64_t& size : filled) size = std::max<int64_t>(size, 1);
  checkedNumel(filled);
  const std::string& bytes = parts[4].toString();
  const auto numel = static_cast<uint64_t>(checkedNumel(sizes));
  const size_t item_size = itemSize(dtype->dtype);
  if (bytes.size() % item_size != 0 || bytes.size() / item_size != numel) {
    fail("an array of {}{} has {} bytes", toString(dtype->dtype), formatInts(sizes), bytes.size());
  }
  work(bytes.size());
  charge(bytes.size());
  Ref<Storage> storage = Storage::allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  return ownBools(
      Tensor::fromStorage(std::move(storage), dtype->dtype, sizes,
                          parts[3].toBool() ? fortranStrides(sizes) : contiguousStrides(sizes), 0));
}

// (array, dtype, name of a device, requires_grad), as XLA's tensors are saved.
IValue Unpickler::rebuildFromArray(const std::vector<IValue>& args) {
  const auto* array = args.size() == 4 && args[0].isCapsule()
                          ? dynamic_cast<const ArrayObject*>(&args[0].toCapsule())
                          : nullptr;
  if (array == nullptr || !array->tensor.defined() || !args[1].isInt()) {
    fail("a tensor of another device is rebuilt without an array and a dtype");
  }
  const std::optional<DType> dtype = dtypeFromNumber(args[1].toInt());
  if (!dtype || isQuantized(*dtype)) {
    fail("a tensor of another device is rebuilt from an array with the dtype {}", args[1].toInt());
  }
  charge(static_cast<uint64_t>(array->tensor.numel()) * itemSize(*dtype));
  // Each tensor has elements of its own: two of them may go to different devices.
  Tensor tensor = array->tensor.to(*dtype);
  if (tensor.sharesStorage(array->tensor)) tensor = tensor.clone(MemoryFormat::Preserve);
  return onSavedDevice(std::move(tensor), args[2], args[3]);
}

}  // namespace wick
