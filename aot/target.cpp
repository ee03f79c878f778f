#include "aot/target.h"

#include "aot/device.h"

namespace wick::aot {

namespace {
const Target* recorded_target = nullptr;
bool records_standalone = false;
}  // namespace

const Target* recordedTarget() {
  return recorded_target;
}

bool recordsStandalone() {
  return records_standalone;
}

RecordFor::RecordFor(const Target* target, bool standalone)
    : before_(recorded_target), was_standalone_(records_standalone) {
  records_standalone = standalone;
  if (!target) return;
  layers_ = &deviceLayers("build", Device{kAhead, -1});
  setDeviceLayers(kAhead, &target->layers());
  recorded_target = target;
}
RecordFor::~RecordFor() {
  if (layers_) setDeviceLayers(kAhead, layers_);
  recorded_target = before_;
  records_standalone = was_standalone_;
}

}  // namespace wick::aot
