// Quantized tensors of a pickle.
#include <cstring>

#include "core/error.h"
#include "core/quantizer.h"
#include "serialization/unpickler_objects.h"

namespace wick {

// (storage, offset, sizes, strides, (scheme, parameters…), requires_grad, hooks).
IValue Unpickler::rebuildQuantized(const std::vector<IValue>& args) {
  if (args.size() < 6 || args.size() > 8 || !args[4].isTuple()) {
    fail("a quantized tensor is rebuilt from {} values", args.size());
  }
  const StorageObject* storage = asStorage(args[0]);
  if (storage == nullptr || !storage->dtype || !isQuantized(*storage->dtype)) {
    fail("a quantized tensor is rebuilt without a storage of a quantized dtype");
  }
  if (!storage->storage->device().isCpu()) {
    fail("a quantized tensor cannot be on {}", storage->device.str());
  }
  const DType dtype = *storage->dtype;
  const std::vector<IValue>& how = args[4].elements();
  if (how.empty() || !how[0].isInt()) fail("a quantized tensor has no scheme");

  // As integers, which rebuildTensor() checks.
  std::vector<IValue> plain(args.begin(), args.begin() + 4);
  Ref<Storage> memory = storage->storage;
  if (dtype == DType::QUInt4x2) {
    // The file has a byte for two elements, tensors in memory for each.
    const DimVector sizes = dims(args[2], "a tensor's sizes");
    const auto bytes = static_cast<uint64_t>(checkedNumel(sizes));
    if (!args[1].isInt() || args[1].toInt() != 0 || (bytes + 1) / 2 > memory->bytes()) {
      fail("a tensor of quint4x2 with {} elements does not fit its storage", bytes);
    }
    charge(bytes);
    Ref<Storage> wide = Storage::allocate(bytes);
    if (bytes > 0) std::memcpy(wide->data(), memory->data(), (bytes + 1) / 2);
    memory = std::move(wide);
  }
  plain[0] = IValue::capsule(makeRef<StorageObject>(std::move(memory), integerDType(dtype),
                                                    storage->device, storage->from_cpu));
  const Tensor integers = rebuildTensor(plain, false).toTensor();

  try {
    Ref<Quantizer> quantizer;
    if (how.size() == 3 && how[0].toInt() == static_cast<int64_t>(QScheme::PerTensorAffine) &&
        how[1].isDouble() && how[2].isInt()) {
      quantizer = Quantizer::perTensor(how[1].toDouble(), how[2].toInt());
    } else if (how.size() == 4 && how[1].isTensor() && how[2].isTensor() && how[3].isInt()) {
      const Tensor scales = how[1].toTensor();
      if (!scales.device().isCpu() || !how[2].toTensor().device().isCpu()) {
        fail("a quantized tensor has scales or zero points on {}", scales.device().str());
      }
      quantizer = Quantizer::perChannel(scales, how[2].toTensor(), how[3].toInt());
      if (static_cast<int64_t>(quantizer->scheme()) != how[0].toInt()) {
        fail("a tensor quantized {} has zero points of another kind",
             toString(static_cast<QScheme>(how[0].toInt())));
      }
      if (quantizer->axis() >= integers.dim() ||
          integers.size(quantizer->axis()) != scales.numel()) {
        fail("a quantized tensor of sizes {} has {} scales along dimension {}",
             formatInts(integers.sizes()), scales.numel(), quantizer->axis());
      }
    } else {
      fail("a quantized tensor has no parameters that fit its scheme");
    }
    const Tensor tensor = quantizedFrom(integers, dtype, quantizer);
    placeLike(tensor, integers);
    return tensor;
  } catch (const RuntimeError& error) {
    failWith(std::string(error.brief()));
  }
}

}  // namespace wick
