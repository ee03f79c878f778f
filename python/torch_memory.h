// Memory that tensors of PyTorch's and of Wick's share, without copies.
#pragma once

#include <memory>

#include "capture/bytecode/object.h"
#include "core/tensor.h"
#include "python/open_layout.h"

namespace wick::python {

class TorchLibrary;

// How a tensor of PyTorch's lies in memory, as a guard found it.
struct TorchLayout {
  DType dtype = DType::Float;
  DimVector sizes, strides;
  // Which sizes others may have; null: none.
  std::shared_ptr<const OpenLayout> open = nullptr;
};

// The memory of one tensor of PyTorch's, held as long as this lives.
struct TorchMemory {
  capture::Object detached;  // PyTorch's tensor without history; it shares the counter of writes
  Tensor base;               // Wick's, of bytes where the dtype is boolean
  int64_t offset = 0;        // of the first element, in PyTorch's storage

  // Returns a tensor of Wick's on the memory, with a storage of its own: whatever Wick derives from
  // contents ends with it, as PyTorch's `data` changes contents without counting.
  Tensor tensor(const TorchLayout& layout) const;
  const void* data() const { return base.numel() > 0 ? base.rawData() : nullptr; }
};

// Returns whether a tensor of PyTorch's lies in memory so. Runs no code of Python, sets no exception.
bool hasLayout(const TorchLibrary& library, PyObject* tensor, const TorchLayout& layout);
// Returns how a tensor lies in memory. Throws GraphBreak for tensors that are not dense and on the
// CPU, or of a dtype that Wick does not have.
TorchLayout layoutOf(const TorchLibrary& library, PyObject* tensor);
// Returns sizes and strides of a tensor of the layout, which may leave sizes open.
TorchLayout actualLayout(PyObject* tensor, const TorchLayout& layout);
// Returns the sizes of a tensor. Throws PythonError.
std::vector<int64_t> sizesOfTorch(PyObject* tensor);
// Takes the memory of a tensor of PyTorch's. Throws PythonError.
TorchMemory memoryOf(const TorchLibrary& library, PyObject* tensor, const TorchLayout& layout);
// Returns how often the memory of a tensor of PyTorch's was written to.
int64_t versionOf(PyObject* tensor);
// Returns the offset of its first element in PyTorch's storage.
int64_t offsetOf(PyObject* tensor);
// Returns where the memory of a tensor of PyTorch's begins.
const void* dataOf(PyObject* tensor);
// Counts writes to the memory of the tensors as PyTorch's in-place operators do.
void noteWrites(const TorchLibrary& library, const std::vector<const TorchMemory*>& written);
// Returns a tensor of PyTorch's on the memory of one of Wick's.
capture::Object torchTensor(const TorchLibrary& library, const Tensor& tensor);
// Returns a tensor on the memory of another of PyTorch's: its view, with `offset` elements in its
// storage.
capture::Object torchView(PyObject* base, const Tensor& like, int64_t offset);

}  // namespace wick::python
