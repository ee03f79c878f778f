// The argument map_location of functions that read files.
#pragma once

#include "python/pybind.h"
#include "serialization/device_map.h"

namespace wick::python {

// None: as saved. A device, its name or its index: all tensors go there. A dict from the names of
// devices in the file to such. A function that takes such a name and gives a device or None, which is
// called by the thread that loads. TypeError otherwise.
DeviceMap deviceMapOf(const py::handle& map_location);

}  // namespace wick::python
