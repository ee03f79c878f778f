// Products, convolutions and pooling on the device "ahead", for models that run on CUDA devices.
#pragma once

#include "runtime/kernels/device_layers.h"

namespace wick::aot {

// Records the kernels and calls of libraries that runtime/cuda makes for the same shapes and layouts.
DeviceLayers& cudaLayers();

}  // namespace wick::aot
