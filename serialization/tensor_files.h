// Files of tensors by name, whatever their format: torch.save, safetensors, .npz and .npy.
#pragma once

#include <string>

#include "core/ivalue.h"
#include "serialization/archive_limits.h"
#include "serialization/device_map.h"
#include "serialization/named_tensors.h"

#pragma GCC visibility push(default)

namespace wick {

// The format is told by the first bytes. The tensor of a .npy file, or a tensor that torch.save
// wrote by itself, has the name "tensor". Tensors go where `devices` says; the other formats know no
// devices, and their tensors count as saved on the CPU. Throws LoadError, also when a torch.save file
// holds anything but tensors in dicts, and RuntimeError as loadValue.
NamedTensors loadTensors(const std::string& path, const ArchiveLimits& limits = {},
                         const DeviceMap& devices = {});

// A tensor or a dict of tensors; dicts within it give dotted names. RuntimeError that names what is
// neither.
NamedTensors namedTensors(const IValue& value);

// The format is told by the name's end: .pt and .pth (torch.save of a dict), .safetensors, .npz and
// .npy, which holds one. RuntimeError, before any file is touched, for another end and for what the
// format cannot hold. The file is replaced as a whole.
void saveTensors(const NamedTensors& tensors, const std::string& path);
// Whether saveTensors knows the end of this name.
bool isTensorFileName(const std::string& path);

}  // namespace wick

#pragma GCC visibility pop
