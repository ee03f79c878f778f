// Stages on CUDA devices of this process.
#pragma once

#include <memory>

#include "streams/schedule/stage_devices.h"

namespace wick::streams {

// Each place has three streams: one that computes, one that copies what comes, one that copies results to
// the CPU. Events order them, also between devices, and tensors go from device to device without the CPU
// where the machine can.
std::shared_ptr<StageDevices> cudaStages();

}  // namespace wick::streams
