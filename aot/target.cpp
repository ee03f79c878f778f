#include "aot/target.h"

#include "aot/device.h"

namespace wick::aot {

namespace {
const Target* recorded_target = nullptr;
}  // namespace

const Target* recordedTarget() {
  return recorded_target;
}

RecordFor::RecordFor(const Target* target) : before_(recorded_target) {
  if (!target) return;
  layers_ = &deviceLayers("build", Device{kAhead, -1});
  setDeviceLayers(kAhead, &target->layers());
  recorded_target = target;
}
RecordFor::~RecordFor() {
  if (layers_) setDeviceLayers(kAhead, layers_);
  recorded_target = before_;
}

}  // namespace wick::aot
