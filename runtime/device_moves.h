// Values and modules on other devices.
#pragma once

#include <span>
#include <vector>

#include "core/device.h"
#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

class CompilationUnit;
class GraphFunction;

// Moves all strided tensors that the values hold to the device, in lists, dicts, tuples and objects
// too. In place: every holder of such a tensor sees it moved, and tensors that share memory still
// do. Throws RuntimeError when there is no such device or its memory is exhausted.
void moveTensors(std::span<const IValue> values, Device device);

// The strided tensors that are constants in the unit's functions which have been compiled, as an archive's
// CONSTANTS are; one that several use comes several times.
std::vector<IValue> constantTensors(const CompilationUnit& unit);
// moveTensors() for those. Tensors of no dimensions stay where they are. Nothing of the unit may have run yet.
void moveConstants(const CompilationUnit& unit, Device device);

// The functions that calls of the object's methods, and of the methods of all that it holds, can reach.
// Compiles those that are not yet (CompileError).
std::vector<GraphFunction*> reachableFunctions(const IValue& object);
// moveTensors() for an object, and for the constants of those functions but for tensors without
// dimensions; the functions are compiled anew when they next run. Nobody may run them meanwhile.
void moveWithCode(const IValue& object, Device device);

}  // namespace wick

#pragma GCC visibility pop
