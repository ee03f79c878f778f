// Reads and writes by index tensors on devices other than the CPU. Which element of a tensor each point of a shape stands
// for is worked out here; what happens to the elements is the device's.
#pragma once

#include <vector>

#include "core/device.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "runtime/ops/reduce/into.h"

namespace wick::ops {

// An index that is added to a point's coordinates.
struct IndexPart {
  Tensor index;      // int64 or int32, of the shape's sizes (expanded)
  int64_t size = 0;  // what it may address
  int64_t step = 0;  // in elements of the indexed tensor
};
// The elements of a tensor that the points of a shape stand for: at the sum of the coordinates times steps, and of the
// indices times theirs.
struct Reach {
  Tensor self;
  DimVector sizes, steps;
  std::vector<IndexPart> parts;
  bool from_end = false;  // whether negative indices count from the end
};

// What a device does. Reaches have points, and values the sizes of their reach.
struct IndexDevice {
  DeviceType type;
  // Whether the indexed tensor may lie on the CPU when indices are on the device.
  bool takes_cpu;
  // A tensor of the CPU on the device; others as they are.
  Tensor (*here)(const Tensor& t, Device device);
  Tensor (*number)(const Scalar& value, DType dtype, Device device);
  // Where a mask is true: the positions along each of its dimensions.
  std::vector<Tensor> (*positionsOfTrue)(const char* op, const Tensor& mask, Device device);
  void (*read)(const char* op, const Reach& reach, const Tensor& out);
  // Of several values for one element the last stays.
  void (*write)(const char* op, const Reach& reach, const Tensor& values);
  // In the order of the points.
  void (*reduce)(const char* op, const Reach& reach, const Tensor& values, Reduction how,
                 bool include_self);
};
// Static objects that add the operators to the tables of a device (ir/device_kernels.h).
struct RegisterIndexDevice {
  explicit RegisterIndexDevice(const IndexDevice& device);
};

inline bool isMask(const Tensor& t) {
  return t.dtype() == DType::Bool || t.dtype() == DType::Byte;
}
// Of index_put: the mask, of as many dimensions as the tensor, where one mask alone is an index and
// the value is one element; undefined for others.
Tensor filledMask(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values);

// The elements of a flat tensor at these positions, on its device.
Tensor elementsAt(const char* op, const Tensor& flat, const Tensor& positions);
// Writes to them.
void writeElementsAt(const char* op, const Tensor& flat, const Tensor& positions,
                     const Tensor& values);

}  // namespace wick::ops
