// What scripts may call of torch.cuda: the operators and classes that TorchScript has for it, under
// its names, and some that only Python has there.
#include "runtime/cuda/streams.h"

#include "core/device_backend.h"
#include "core/error.h"
#include "core/native_class.h"
#include "runtime/cuda/call_graphs.h"
#include "runtime/cuda/pinned.h"
#include "runtime/ops/boxing.h"

namespace wick::cuda {

namespace {

int indexOf(std::optional<Device> device) {
  if (!device) return currentDevice();
  WICK_CHECK(device->isCuda(), "Expected a cuda device, but got: {}", device->str());
  return deviceAt(device->index < 0 ? currentDevice() : device->index).index();
}
int indexOf(std::optional<int64_t> number) {
  // A negative number stands for the current device, as in PyTorch.
  if (!number || *number < 0) return currentDevice();
  WICK_CHECK(*number < kMostDevices, "device cuda:{}: there is no such device", *number);
  return deviceAt(static_cast<int>(*number)).index();
}

const HeldStream& streamIn(const char* op, const IValue& object) {
  return heldBy<HeldStream>(op, object, "a torch.cuda.Stream");
}
HeldEvent& eventIn(const char* op, const IValue& object) {
  return heldBy<HeldEvent>(op, object, "a torch.cuda.Event");
}
void hold(const IValue& object, Ref<RefCounted> held) {
  object.toObject().setSlot(0, IValue::capsule(std::move(held)));
}
IValue streamOf(int device, Stream stream) {
  const int64_t number = deviceAt(device).numberOf(stream);
  return makeNative(kStreamClass, makeRef<HeldStream>(device, stream, number));
}

// ---- streams ----

void makeStream(const IValue& self, std::optional<Device> device, int64_t priority) {
  const int index = indexOf(device);
  enter(deviceOf(index));
  const CudaDevice::PooledStream made = deviceAt(index).nextStream(priority < 0);
  hold(self, makeRef<HeldStream>(index, made.stream, made.number));
}
void waitForWork(const HeldStream& stream) {
  enter(deviceOf(stream.device)).synchronize(stream.stream);
}
void synchronizeStream(const IValue& self) {
  waitForWork(streamIn("Stream.synchronize", self));
}
bool queryStream(const IValue& self) {
  const HeldStream& stream = streamIn("Stream.query", self);
  enter(deviceOf(stream.device));
  refuseWhileCapturing("asking a stream");
  const Result result = driver().queryStream(stream.stream);
  if (result != kNotReady) check(result, "asking a stream");
  return result != kNotReady;
}
IValue recordEvent(const IValue& self, const IValue& given) {
  const HeldStream& stream = streamIn("Stream.record_event", self);
  if (!given.isNone()) {
    eventIn("Stream.record_event", given).record(stream);
    return given;
  }
  auto event = makeRef<HeldEvent>(/*timed=*/false, /*sleeps=*/false);
  event->record(stream);
  return makeNative(kEventClass, event);
}
void streamWaitsForEvent(const IValue& self, const IValue& event) {
  eventIn("Stream.wait_event", event).waitOn(streamIn("Stream.wait_event", self));
}
void streamWaitsForStream(const IValue& self, const IValue& other) {
  HeldEvent event(/*timed=*/false, /*sleeps=*/false);
  event.record(streamIn("Stream.wait_stream", other));
  event.waitOn(streamIn("Stream.wait_stream", self));
}
int64_t deviceIndex(const IValue& self) {
  return streamIn("Stream.device_index", self).device;
}
Device streamDevice(const IValue& self) {
  return deviceOf(streamIn("Stream.device", self).device);
}
int64_t streamNumber(const IValue& self) {
  return streamIn("Stream.id", self).number;
}

// ---- events ----

void makeEvent(const IValue& self, bool timed, bool sleeps, bool interprocess) {
  WICK_CHECK(!interprocess, "torch.cuda.Event: events between processes are not supported");
  hold(self, makeRef<HeldEvent>(timed, sleeps));
}
HeldStream currentHeld() {
  const int device = currentDevice();
  return {device, currentStream(device), 0};
}
void eventRecord(const IValue& self, const IValue& stream) {
  HeldEvent& event = eventIn("Event.record", self);
  if (!stream.isNone()) return event.record(streamIn("Event.record", stream));
  const HeldStream current = currentHeld();
  event.record(current);
}
void eventWait(const IValue& self, const IValue& stream) {
  const HeldEvent& event = eventIn("Event.wait", self);
  if (!stream.isNone()) return event.waitOn(streamIn("Event.wait", stream));
  const HeldStream current = currentHeld();
  event.waitOn(current);
}
bool eventQuery(const IValue& self) {
  return eventIn("Event.query", self).isDone();
}
void eventSynchronize(const IValue& self) {
  eventIn("Event.synchronize", self).synchronize();
}
double elapsedTime(const IValue& self, const IValue& end) {
  return eventIn("Event.elapsed_time", self).elapsedUntil(eventIn("Event.elapsed_time", end));
}

// ---- the thread's device and stream ----

IValue currentStreamOfDevice(std::optional<Device> device) {
  const int index = indexOf(device);
  return streamOf(index, currentStream(index));
}
IValue currentStreamOfNumber(std::optional<int64_t> number) {
  const int index = indexOf(number);
  return streamOf(index, currentStream(index));
}
IValue defaultStreamOfDevice(std::optional<Device> device) {
  return streamOf(indexOf(device), nullptr);
}
IValue defaultStreamOfNumber(std::optional<int64_t> number) {
  return streamOf(indexOf(number), nullptr);
}
void setStream(const IValue& object) {
  const HeldStream& stream = streamIn("torch.cuda.set_stream", object);
  refuseWhileCapturing("changing the stream");
  setCurrentDevice(stream.device);
  setCurrentStream(stream.device, stream.stream);
}
int64_t thisDevice() {
  enter({DeviceType::CUDA, -1});
  return currentDevice();
}
void setDevice(int64_t number) {
  if (number >= 0) setCurrentDevice(indexOf(std::optional(number)));
}
int64_t exchangeDevice(int64_t number) {
  if (number < 0) return -1;
  const int before = currentDevice();
  setDevice(number);
  return before;
}
int64_t numberOfDevice(Device device) {
  return indexOf(std::optional(device));
}
int64_t countDevices() {
  return deviceCount();
}
bool isAvailable() {
  return deviceCount() > 0;
}
void synchronizeDevice(std::optional<Device> device) {
  enter(deviceOf(indexOf(device))).synchronizeAll();
}
void synchronizeNumber(std::optional<int64_t> number) {
  enter(deviceOf(indexOf(number))).synchronizeAll();
}
void synchronizeCurrent() {
  synchronizeNumber(std::nullopt);
}

// ---- memory ----

AllocatorStatistics memoryOf(std::optional<Device> device) {
  return enter(deviceOf(indexOf(device))).allocator().statistics();
}
int64_t memoryAllocated(std::optional<Device> device) {
  return static_cast<int64_t>(memoryOf(device).allocated);
}
int64_t mostAllocated(std::optional<Device> device) {
  return static_cast<int64_t>(memoryOf(device).peak_allocated);
}
int64_t memoryReserved(std::optional<Device> device) {
  return static_cast<int64_t>(memoryOf(device).reserved);
}
int64_t mostReserved(std::optional<Device> device) {
  return static_cast<int64_t>(memoryOf(device).peak_reserved);
}
void resetPeaks(std::optional<Device> device) {
  enter(deviceOf(indexOf(device))).allocator().resetPeaks();
}
void emptyCache() {
  refuseWhileCapturing("giving memory back");
  for (int i = 0; i < deviceCount(); ++i) enter(deviceOf(i)).allocator().releaseKept();
  releasePinned();
}

// The classes come first: the operators' schemas name them.
const RegisterNativeClass stream_class({kStreamClass,
                                        {},
                                        {},
                                        {{"__init__", "cuda::_stream_init"},
                                         {"query", "cuda::_stream_query"},
                                         {"record_event", "cuda::_stream_record_event"},
                                         {"synchronize", "cuda::_stream_synchronize"},
                                         {"wait_event", "cuda::_stream_wait_event"},
                                         {"wait_stream", "cuda::_stream_wait_stream"},
                                         {"device_index", "cuda::_stream_device_index"},
                                         {"device_getter", "cuda::_stream_device"},
                                         {"id", "cuda::_stream_id"}}});
const RegisterNativeClass event_class({kEventClass,
                                       {},
                                       {},
                                       {{"__init__", "cuda::_event_init"},
                                        {"elapsed_time", "cuda::_event_elapsed_time"},
                                        {"query", "cuda::_event_query"},
                                        {"record", "cuda::_event_record"},
                                        {"synchronize", "cuda::_event_synchronize"},
                                        {"wait", "cuda::_event_wait"}}});

#define WICK_STREAM "__torch__.torch.classes.cuda.Stream"
#define WICK_EVENT "__torch__.torch.classes.cuda.Event"
const OperatorRecord kStreamsRecords[] = {
    {"cuda::_stream_init(" WICK_STREAM " self, Device? device=None, int priority=0) -> ()",
     WICK_KERNEL(makeStream), kSideEffects},
    {"cuda::_stream_query(" WICK_STREAM " self) -> bool", WICK_KERNEL(queryStream), kSideEffects},
    {"cuda::_stream_record_event(" WICK_STREAM " self, " WICK_EVENT "? event=None) -> " WICK_EVENT,
     WICK_KERNEL(recordEvent), kSideEffects},
    {"cuda::_stream_synchronize(" WICK_STREAM " self) -> ()", WICK_KERNEL(synchronizeStream),
     kSideEffects},
    {"cuda::_stream_wait_event(" WICK_STREAM " self, " WICK_EVENT " event) -> ()",
     WICK_KERNEL(streamWaitsForEvent), kSideEffects},
    {"cuda::_stream_wait_stream(" WICK_STREAM " self, " WICK_STREAM " stream) -> ()",
     WICK_KERNEL(streamWaitsForStream), kSideEffects},
    {"cuda::_stream_device_index(" WICK_STREAM " self) -> int", WICK_KERNEL(deviceIndex),
     kSideEffects},
    {"cuda::_stream_device(" WICK_STREAM " self) -> Device", WICK_KERNEL(streamDevice),
     kSideEffects},
    {"cuda::_stream_id(" WICK_STREAM " self) -> int", WICK_KERNEL(streamNumber), kSideEffects},
    {"cuda::_event_init(" WICK_EVENT
     " self, bool enable_timing=False, bool blocking=False, bool interprocess=False) -> ()",
     WICK_KERNEL(makeEvent), kSideEffects},
    {"cuda::_event_elapsed_time(" WICK_EVENT " self, " WICK_EVENT " end_event) -> float",
     WICK_KERNEL(elapsedTime), kSideEffects},
    {"cuda::_event_query(" WICK_EVENT " self) -> bool", WICK_KERNEL(eventQuery), kSideEffects},
    {"cuda::_event_record(" WICK_EVENT " self, " WICK_STREAM "? stream=None) -> ()",
     WICK_KERNEL(eventRecord), kSideEffects},
    {"cuda::_event_synchronize(" WICK_EVENT " self) -> ()", WICK_KERNEL(eventSynchronize),
     kSideEffects},
    {"cuda::_event_wait(" WICK_EVENT " self, " WICK_STREAM "? stream=None) -> ()",
     WICK_KERNEL(eventWait), kSideEffects},
    {"cuda::current_stream.device(Device? device=None) -> " WICK_STREAM,
     WICK_KERNEL(currentStreamOfDevice), kSideEffects},
    {"cuda::current_stream.int(int? val) -> " WICK_STREAM, WICK_KERNEL(currentStreamOfNumber),
     kSideEffects},
    {"cuda::default_stream.device(Device? device=None) -> " WICK_STREAM,
     WICK_KERNEL(defaultStreamOfDevice), kSideEffects},
    {"cuda::default_stream.int(int? val) -> " WICK_STREAM, WICK_KERNEL(defaultStreamOfNumber),
     kSideEffects},
    {"cuda::set_stream(" WICK_STREAM " stream) -> ()", WICK_KERNEL(setStream), kSideEffects},
    {"cuda::_current_device() -> int", WICK_KERNEL(thisDevice), kSideEffects},
    {"cuda::_set_device(int val) -> ()", WICK_KERNEL(setDevice), kSideEffects},
    {"cuda::_exchange_device(int index) -> int", WICK_KERNEL(exchangeDevice), kSideEffects},
    {"cuda::_maybe_exchange_device(int index) -> int", WICK_KERNEL(exchangeDevice), kSideEffects},
    {"cuda::device_index(Device device) -> int", WICK_KERNEL(numberOfDevice), kSideEffects},
    {"cuda::device_count() -> int", WICK_KERNEL(countDevices), kSideEffects},
    {"cuda::is_available() -> bool", WICK_KERNEL(isAvailable), kSideEffects},
    {"cuda::synchronize() -> ()", WICK_KERNEL(synchronizeCurrent), kSideEffects},
    {"cuda::synchronize.device(Device? device) -> ()", WICK_KERNEL(synchronizeDevice),
     kSideEffects},
    {"cuda::synchronize.int(int? val) -> ()", WICK_KERNEL(synchronizeNumber), kSideEffects},
    {"cuda::memory_allocated(Device? device=None) -> int", WICK_KERNEL(memoryAllocated),
     kSideEffects},
    {"cuda::max_memory_allocated(Device? device=None) -> int", WICK_KERNEL(mostAllocated),
     kSideEffects},
    {"cuda::memory_reserved(Device? device=None) -> int", WICK_KERNEL(memoryReserved),
     kSideEffects},
    {"cuda::max_memory_reserved(Device? device=None) -> int", WICK_KERNEL(mostReserved),
     kSideEffects},
    {"cuda::reset_peak_memory_stats(Device? device=None) -> ()", WICK_KERNEL(resetPeaks),
     kSideEffects},
    {"cuda::empty_cache() -> ()", WICK_KERNEL(emptyCache), kSideEffects},
};
const RegisterOperators kStreamsRegistered(kStreamsRecords);

}  // namespace

HeldEvent::~HeldEvent() {
  if (!event_) return;
  try {
    driver().destroyEvent(event_);
  } catch (const std::exception&) {
    // Without a driver there is nothing to give back.
  }
}

Event HeldEvent::recorded() const {
  std::lock_guard lock(mutex_);
  return event_;
}

void HeldEvent::record(const HeldStream& stream) {
  refuseWhileCapturing("recording an event");
  enter(deviceOf(stream.device));
  std::lock_guard lock(mutex_);
  WICK_CHECK(device_ < 0 || device_ == stream.device,
             "Event device {} does not match recording stream's device {}.", device_,
             stream.device);
  if (!event_) {
    constexpr unsigned kSleeps = 1, kUntimed = 2;
    check(driver().createEvent(&event_, (sleeps_ ? kSleeps : 0) | (timed_ ? 0 : kUntimed)),
          "making an event");
    device_ = stream.device;
  }
  check(driver().recordEvent(event_, stream.stream), "recording an event");
}

void HeldEvent::waitOn(const HeldStream& stream) const {
  refuseWhileCapturing("waiting for an event");
  const Event event = recorded();
  if (!event) return;
  enter(deviceOf(stream.device));
  check(driver().waitForEvent(stream.stream, event, 0), "waiting for an event");
}

bool HeldEvent::isDone() const {
  refuseWhileCapturing("asking an event");
  const Event event = recorded();
  if (!event) return true;
  const Result result = driver().queryEvent(event);
  if (result != kNotReady) check(result, "asking an event");
  return result != kNotReady;
}

void HeldEvent::synchronize() const {
  refuseWhileCapturing("waiting for an event");
  const Event event = recorded();
  if (event) check(driver().synchronizeEvent(event), "waiting for an event");
}

double HeldEvent::elapsedUntil(const HeldEvent& end) const {
  const Event from = recorded(), to = end.recorded();
  WICK_CHECK(from && to, "Both events must be recorded before calculating elapsed time.");
  WICK_CHECK(timed_ && end.timed_,
             "elapsed_time: both events must be made with enable_timing=True");
  float milliseconds = 0;
  const Result result = driver().elapsedTime(&milliseconds, from, to);
  WICK_CHECK(result != kNotReady,
             "elapsed_time: the work before an event is not done; synchronize first");
  check(result, "measuring time");
  return milliseconds;
}

}  // namespace wick::cuda
