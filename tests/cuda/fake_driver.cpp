#include "tests/cuda/fake_driver.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace wick::cuda {

namespace {

using Work = std::function<void()>;
struct Fake : FakeState {
  std::unordered_map<Address, size_t> blocks;
  uintptr_t streams = 100;
  Stream captured = nullptr;
  std::vector<Work>* noted = nullptr;  // the graph that is captured
  std::set<Stream> branches;           // other streams that are captured with it
  std::set<Stream> apart;              // those whose work the captured stream does not wait for yet
  std::map<Event, Stream> recorded;    // by events
};
Fake* fake = nullptr;

// Done at once, or noted where the stream is captured.
Result queue(Stream stream, Work work) {
  fake->last_stream = stream;
  const bool branch = fake->branches.contains(stream);
  if (branch) fake->apart.insert(stream);
  if (fake->noted && (branch || stream == fake->captured)) {
    fake->noted->push_back(std::move(work));
  } else {
    work();
  }
  return 0;
}

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}
template <class T>
T handle(uintptr_t number) {
  return reinterpret_cast<T>(number);
}

Driver makeDriver() {
  Driver d;
  d.init = [](unsigned) { return 0; };
  d.driverVersion = [](int* version) { return *version = 13000, 0; };
  d.deviceCount = [](int* count) { return *count = fake->devices, 0; };
  d.deviceName = [](char* name, int length, DeviceNumber) {
    std::strncpy(name, "fake", static_cast<size_t>(length));
    return 0;
  };
  d.deviceAttribute = [](int* value, int attribute, DeviceNumber) {
    *value = attribute == kMajor             ? fake->major
             : attribute == kMinor           ? 0
             : attribute == kMultiprocessors ? 132
                                             : 227 << 10;
    return 0;
  };
  d.deviceMemory = [](size_t* bytes, DeviceNumber) { return *bytes = fake->memory, 0; };
  d.retainContext = [](Context* context, DeviceNumber device) {
    return *context = handle<Context>(static_cast<uintptr_t>(device) + 1), 0;
  };
  d.setContext = [](Context) { return 0; };
  const auto synchronize = [] {
    ++fake->synchronizations;
    const Result result = fake->fails_next_synchronization;
    fake->fails_next_synchronization = 0;
    return result;
  };
  static const auto synchronized = synchronize;
  d.synchronizeContext = [] { return synchronized(); };
  d.synchronizeStream = [](Stream) { return synchronized(); };
  d.queryStream = [](Stream) { return 0; };
  d.allowPeer = [](Context, unsigned) { return 0; };
  d.allocate = [](Address* address, size_t bytes) -> Result {
    if (bytes > fake->memory - fake->used) return kOutOfMemory;
    void* const block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    *address = reinterpret_cast<Address>(block);
    fake->blocks.emplace(*address, bytes);
    fake->used += bytes;
    ++fake->live_allocations;
    ++fake->allocations;
    return 0;
  };
  d.free = [](Address address) -> Result {
    const auto it = fake->blocks.find(address);
    if (it == fake->blocks.end()) return 1;
    fake->used -= it->second;
    --fake->live_allocations;
    fake->blocks.erase(it);
    std::free(pointer(address));
    return 0;
  };
  d.allocateHost = [](void** memory, size_t bytes, unsigned) {
    return *memory = std::calloc(1, bytes), 0;
  };
  d.freeHost = [](void* memory) { return std::free(memory), 0; };
  d.copyToDevice = [](Address to, const void* from, size_t bytes, Stream) {
    ++fake->copies_to_device;
    return std::memcpy(pointer(to), from, bytes), 0;
  };
  d.copyToHost = [](void* to, Address from, size_t bytes, Stream) {
    ++fake->copies_to_host;
    return std::memcpy(to, pointer(from), bytes), 0;
  };
  d.copyOnDevice = [](Address to, Address from, size_t bytes, Stream stream) {
    return queue(stream, [=] {
      ++fake->copies_on_device;
      std::memmove(pointer(to), pointer(from), bytes);
    });
  };
  d.copyToPeer = [](Address to, Context, Address from, Context, size_t bytes, Stream) {
    return std::memmove(pointer(to), pointer(from), bytes), 0;
  };
  d.setBytes = [](Address to, unsigned char value, size_t bytes, Stream stream) {
    return queue(stream, [=] { std::memset(pointer(to), value, bytes); });
  };
  d.createStream = [](Stream* stream, unsigned) {
    return *stream = handle<Stream>(++fake->streams), 0;
  };
  d.createStreamWithPriority = [](Stream* stream, unsigned, int) {
    return *stream = handle<Stream>(++fake->streams), 0;
  };
  d.destroyStream = [](Stream) { return 0; };
  d.createEvent = [](Event* event, unsigned) { return *event = handle<Event>(++fake->streams), 0; };
  d.destroyEvent = [](Event) { return 0; };
  d.recordEvent = [](Event event, Stream stream) {
    fake->recorded[event] = stream;
    return ++fake->events_recorded, 0;
  };
  d.waitForEvent = [](Stream stream, Event event, unsigned) {
    const Stream earlier = fake->recorded[event];
    if (fake->noted && stream == fake->captured) {
      fake->apart.erase(earlier);
    } else if (fake->noted && (earlier == fake->captured || fake->branches.contains(earlier))) {
      fake->branches.insert(stream);
      fake->apart.insert(stream);
    }
    return ++fake->waits, 0;
  };
  d.queryEvent = [](Event) { return fake->work_is_done ? 0 : kNotReady; };
  d.synchronizeEvent = [](Event) { return synchronized(); };
  d.elapsedTime = [](float* milliseconds, Event, Event) {
    return *milliseconds = 2.5f, fake->work_is_done ? 0 : kNotReady;
  };
  d.beginCapture = [](Stream stream, int) {
    fake->captured = stream;
    fake->noted = new std::vector<Work>;
    return 0;
  };
  d.endCapture = [](Stream, Graph* graph) -> Result {
    constexpr Result kUnjoined = 904;
    *graph = reinterpret_cast<Graph>(std::exchange(fake->noted, nullptr));
    fake->branches_captured += fake->branches.size();
    fake->branches.clear();
    if (std::exchange(fake->apart, {}).empty()) return 0;
    delete reinterpret_cast<std::vector<Work>*>(*graph);
    return *graph = nullptr, kUnjoined;
  };
  d.graphNodes = [](Graph graph, void**, size_t* count) {
    return *count = reinterpret_cast<std::vector<Work>*>(graph)->size(), 0;
  };
  d.instantiateGraph = [](GraphExecutable* made, Graph graph, unsigned long long) {
    const auto* noted = reinterpret_cast<std::vector<Work>*>(graph);
    *made = reinterpret_cast<GraphExecutable>(new std::vector<Work>(*noted));
    return 0;
  };
  d.launchGraph = [](GraphExecutable executable, Stream) {
    ++fake->graph_launches;
    for (const Work& work : *reinterpret_cast<std::vector<Work>*>(executable)) work();
    return 0;
  };
  d.destroyGraph = [](Graph graph) {
    return delete reinterpret_cast<std::vector<Work>*>(graph), 0;
  };
  d.destroyGraphExecutable = [](GraphExecutable executable) {
    return delete reinterpret_cast<std::vector<Work>*>(executable), 0;
  };
  d.loadModule = [](Module* module, const void*) { return *module = handle<Module>(7), 0; };
  d.findFunction = [](Function* function, Module, const char*) {
    // As if each were loaded to a place of its own.
    static std::atomic<int> next = 100;
    return *function = handle<Function>(next++), 0;
  };
  d.launch = [](Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                Stream stream, void**, void**) { return queue(stream, [] { ++fake->launches; }); };
  d.errorName = [](Result, const char** name) { return *name = "FAKE_ERROR", 0; };
  d.errorText = [](Result, const char** text) { return *text = "a fake error", 0; };
  return d;
}

}  // namespace

FakeDriver::FakeDriver() {
  static const Driver driver = makeDriver();
  fake = new Fake;
  setDriver(&driver);
}
// What the engine still holds of this driver's memory is forgotten, not freed.
FakeDriver::~FakeDriver() {
  setDriver(nullptr);
}
FakeState& FakeDriver::state() {
  return *fake;
}

}  // namespace wick::cuda
