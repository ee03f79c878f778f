#include "aot/target.h"

#include "aot/device.h"

namespace wick::aot {

namespace {
const Target* recorded_target = nullptr;
CpuChoices recorded_choices;
}  // namespace

const Target* recordedTarget() {
  return recorded_target;
}

const CpuChoices& recordedChoices() {
  return recorded_choices;
}

RecordFor::RecordFor(const Target* target, CpuChoices choices)
    : before_(recorded_target), choices_before_(recorded_choices) {
  recorded_choices = choices;
  if (!target) return;
  layers_ = &deviceLayers("build", Device{kAhead, -1});
  setDeviceLayers(kAhead, &target->layers());
  recorded_target = target;
}
RecordFor::~RecordFor() {
  if (layers_) setDeviceLayers(kAhead, layers_);
  recorded_target = before_;
  recorded_choices = choices_before_;
}

}  // namespace wick::aot
