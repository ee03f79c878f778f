// Values and modules on other devices.
#pragma once

#include <span>
#include <vector>

#include "core/device.h"
#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

class CompilationUnit;

// Moves all strided tensors that the values hold to the device, in lists, dicts, tuples and objects
// too. In place: every holder of such a tensor sees it moved, and tensors that share memory still
// do. Throws RuntimeError when there is no such device or its memory is exhausted.
void moveTensors(std::span<const IValue> values, Device device);

// The strided tensors that are constants in the unit's functions which have been compiled, as an archive's
// CONSTANTS are; one that several use comes several times.
std::vector<IValue> constantTensors(const CompilationUnit& unit);
// moveTensors() for those. Tensors of no dimensions stay where they are. Nothing of the unit may have run yet.
void moveConstants(const CompilationUnit& unit, Device device);

}  // namespace wick

#pragma GCC visibility pop
