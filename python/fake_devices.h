// Devices in recordings on fakes: a fake lies on the device "meta" and stands for a tensor on the CPU or on a CUDA device
// (lazy/stand_in.h).
#pragma once

#include "core/tensor.h"
#include "ir/call_layer.h"
#include "ir/graph.h"

namespace wick::python {

// Returns whether the value is or holds a tensor with elements.
bool isReal(const IValue& value);
// Returns a fake with the layout and the device of a dense tensor.
Tensor fakeLike(const Tensor& tensor);
// Replaces the devices and the real tensors among the arguments of a call by stand-ins. Throws RuntimeError for devices
// without one.
void fakeArguments(const LayerCall& call);
// Returns whether an argument of such a call asks for another device than the CPU.
bool asksForDevice(const LayerCall& call);
// Moves fakes among the arguments to one device, where the operator would take real tensors of those several devices.
// Throws RuntimeError where it would not.
void joinDevices(const LayerCall& call);
// Does a call of an operator whose name says a device, on fakes. Returns whether it is one.
bool moveFake(const LayerCall& call);
// Replaces the devices of fakes among the constants of a block by those that they stand for.
void nameDevices(Graph& graph, Block& block);
// Returns whether a constant of the block has no memory: it is a fake that nobody recorded.
bool hasFakeConstants(const Block& block);

}  // namespace wick::python
