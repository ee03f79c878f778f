// The files of torch.save: a value of numbers, strings, tensors, tuples, lists and dicts.
#pragma once

#include <string>

#include "core/ivalue.h"
#include "serialization/archive_limits.h"
#include "serialization/device_map.h"

#pragma GCC visibility push(default)

namespace wick {

// Reads both forms of torch.save, the archive and the older sequence of pickles. Tensors of an
// archive share the mapped file; their writes stay private. dtypes, layouts and memory formats
// become ints, torch.Size and named sizes become tuples. `limits` holds for both forms. Tensors go
// where `devices` says; values of torch.device stay what they are. Throws LoadError, and RuntimeError when
// everything goes to a device that this machine lacks.
IValue loadValue(const std::string& path, const ArchiveLimits& limits = {},
                 const DeviceMap& devices = {});

// Writes an archive that torch.load reads, whole or not at all (core/output_file.h), with the devices that the tensors
// are on. NamedTuples become plain tuples. Whether a tensor requires a gradient is kept if asked for, as Python's torch.save
// does; gradients are not. Throws RuntimeError for values that Python could not read back (see Pickler), before it touches
// the file.
void saveValue(const IValue& value, const std::string& path, bool keep_requires_grad = false);
std::string saveValueToString(const IValue& value, bool keep_requires_grad = false);

}  // namespace wick

#pragma GCC visibility pop
