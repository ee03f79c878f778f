// Sparse tensors in pickles: their parts, which are tensors as any other.
#include <unordered_map>

#include "core/error.h"
#include "core/sparse_form.h"
#include "serialization/unpickler.h"

namespace wick {

IValue Unpickler::namedLayout(const IValue& name) const {
  static const std::unordered_map<std::string, int64_t> kLayouts = {
      {"torch.strided", 0},    {"torch.sparse_coo", 1}, {"torch.sparse_csr", 2},
      {"torch.sparse_csc", 4}, {"torch.sparse_bsr", 5}, {"torch.sparse_bsc", 6},
  };
  if (name.isString()) {
    if (const auto found = kLayouts.find(name.toString()); found != kLayouts.end()) {
      return IValue(found->second);
    }
  }
  fail("layout {} is not supported", name.isString() ? name.toString() : name.tagName());
}

// Python: (layout, (parts…, sizes[, is_coalesced])); C++: (layout, sizes, requires_grad, parts…,
// hooks). The parts are indices and values, or compressed indices, plain ones and values.
IValue Unpickler::rebuildSparse(const std::vector<IValue>& args) {
  if (args.size() < 2 || !args[0].isInt() || !isSparseLayout(args[0].toInt())) {
    fail("a sparse tensor is rebuilt without a sparse layout");
  }
  const auto layout = static_cast<SparseLayout>(args[0].toInt());
  const size_t num_parts = layout == SparseLayout::Coo ? 2 : 3;
  const bool python = args.size() == 2;
  if (python && !args[1].isTuple()) fail("a sparse tensor is rebuilt from {}", args[1].tagName());
  const std::vector<IValue>& list = python ? args[1].elements() : args;
  const size_t first = python ? 0 : 3;
  const size_t most = num_parts + (python ? 2 : 4);
  if (list.size() < num_parts + (python ? 1 : 3) || list.size() > most) {
    fail("a sparse tensor is rebuilt from {} values", list.size());
  }
  std::vector<Tensor> parts;
  for (size_t i = first; i < first + num_parts; ++i) {
    if (!list[i].isTensor()) fail("a part of a sparse tensor is {}", list[i].tagName());
    parts.push_back(list[i].toTensor());
    if (parts.back().kind() != TensorKind::Dense) fail("a part of a sparse tensor is not dense");
    work(static_cast<uint64_t>(parts.back().numel()));
  }
  const DimVector sizes = dims(list[python ? num_parts : 1], "a sparse tensor's sizes");
  const bool coalesced = python && list.size() > num_parts + 1 && list[num_parts + 1].isBool() &&
                         list[num_parts + 1].toBool();
  charge(sizeof(TensorImpl) + sizeof(SparseForm));
  Tensor tensor;
  try {
    tensor = layout == SparseLayout::Coo
                 ? makeSparseCoo(parts[0], parts[1], sizes, coalesced)
                 : makeSparseCompressed(layout, parts[0], parts[1], parts[2], sizes);
  } catch (const RuntimeError& e) {
    fail("a sparse tensor: {}", e.message());
  }
  if (!python && args[2].isBool()) tensor.setRequiresGrad(args[2].toBool());
  return tensor;
}

}  // namespace wick
