#include "runtime/cuda/side_work.h"

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace wick::cuda {

namespace {

// Streams beside one; forks beyond these share them.
constexpr size_t kBeside = 4;

thread_local bool inside = false;

struct Streams {
  std::array<Stream, kBeside> beside{};
  size_t given = 0;
};
struct AllStreams {
  std::mutex mutex;
  // By the driver, too: tests change it.
  std::map<std::tuple<uint64_t, int, Stream>, Streams> known;
};
AllStreams& allStreams() {
  static AllStreams& all = *new AllStreams;
  return all;
}

class CudaSideWork final : public GroupBackend::SideWork {
 public:
  explicit CudaSideWork(CudaDevice& device)
      : device_(device),
        before_(currentStream(device.index())),
        own_(streamBeside(device, before_)) {
    order(before_, own_);
    setCurrentStream(device_.index(), own_);
    inside = true;
  }
  ~CudaSideWork() override {
    try {
      leave();
      join();
    } catch (const std::exception&) {
      // Without a driver there is nothing to wait for.
    }
  }
  void leave() override {
    if (!std::exchange(within_, false)) return;
    inside = false;
    currentStream(device_.index());  // queues what waits to be launched together
    setCurrentStream(device_.index(), before_);
  }
  void join() override {
    if (std::exchange(joined_, true)) return;
    enter(deviceOf(device_.index()));
    const Stream now = currentStream(device_.index());
    order(own_, before_);
    if (now != before_) order(own_, now);
  }

 private:
  CudaDevice& device_;
  const Stream before_, own_;
  bool within_ = true, joined_ = false;
};

}  // namespace

Stream streamBeside(CudaDevice& device, Stream stream) {
  constexpr unsigned kNotBlocking = 1;
  AllStreams& all = allStreams();
  const std::lock_guard lock(all.mutex);
  Streams& streams = all.known[{driverGeneration(), device.index(), stream}];
  Stream& next = streams.beside[streams.given++ % kBeside];
  if (!next) {
    check(driver().createStream(&next, kNotBlocking), "making a stream");
    device.allocator().noteApart(next);
  }
  if (isCapturing()) device.allocator().pin(next);
  return next;
}

Event recordOn(Stream stream) {
  constexpr unsigned kWithoutTime = 2;
  Event event = nullptr;
  check(driver().createEvent(&event, kWithoutTime), "making an event");
  const Result result = driver().recordEvent(event, stream);
  if (result == 0) return event;
  driver().destroyEvent(event);
  check(result, "recording an event");
  return nullptr;
}

void order(Stream earlier, Stream later) {
  const Event event = recordOn(earlier);
  const Result result = driver().waitForEvent(later, event, 0);
  driver().destroyEvent(event);
  check(result, "ordering streams");
}

std::unique_ptr<GroupBackend::SideWork> beginSideWork(Device device) {
  if (inside) return nullptr;
  return std::make_unique<CudaSideWork>(enter(device));
}
bool isInSideWork() {
  return inside;
}

void unpinBeside(CudaDevice& device, Stream stream) {
  AllStreams& all = allStreams();
  const std::lock_guard lock(all.mutex);
  // Those beside these, too.
  std::vector<Stream> rest = {stream};
  std::set<Stream> seen;
  while (!rest.empty()) {
    const auto it = all.known.find({driverGeneration(), device.index(), rest.back()});
    rest.pop_back();
    if (it == all.known.end()) continue;
    for (const Stream s : it->second.beside) {
      if (!s || !seen.insert(s).second) continue;
      device.allocator().unpin(s);
      rest.push_back(s);
    }
  }
}

}  // namespace wick::cuda
