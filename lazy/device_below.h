// The device below: where the data of lazy tensors lie and graphs run.
#pragma once

#include "core/device_backend.h"
#include "lazy/graph.h"

namespace wick::lazy {

Device deviceBelow();
// The tensor itself where it is there already.
Tensor onDeviceBelow(const Tensor& t);
// The device for a record that makes a tensor. None stands for the CPU, as in a program that names no device.
Operand deviceOperand();

// Whether what runs there can write results over memory that nobody has any more. Elsewhere kernels
// write to memory of their own.
bool writesOverBelow();

// Contents of lazy tensors that exist. While there are some the device stays. Thread-safe.
void countBase(int more);

}  // namespace wick::lazy
