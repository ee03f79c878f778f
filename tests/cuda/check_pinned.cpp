// Copies from and to pinned memory on a GPU: what they take, that they are not waited for, and that
// memory which is let go is not used again too early. Needs a GPU:
//   bazel run -c opt //tests/cuda:check_pinned
// The exit code is 1 when a number is wrong.
#include <fmt/core.h>

#include <chrono>

#include "core/device_backend.h"
#include "core/pinned_memory.h"
#include "runtime/cuda/pinned.h"

namespace wick {
namespace {

constexpr Device kCuda{DeviceType::CUDA, -1};

struct Times {
  double queued, done;  // milliseconds
};
template <class F>
Times timesOf(F&& copy) {
  DeviceBackend& backend = deviceBackend(DeviceType::CUDA);
  const Device device = placeOf(kCuda);
  copy();
  backend.synchronize(device);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes; ++i) copy();
  const auto queued = std::chrono::steady_clock::now();
  backend.synchronize(device);
  const auto end = std::chrono::steady_clock::now();
  const auto ms = [&](auto until) {
    return std::chrono::duration<double, std::milli>(until - begin).count() / kTimes;
  };
  return {ms(queued), ms(end)};
}

int run() {
  const Tensor here = Tensor::zeros({int64_t{16} << 20}, DType::Float);
  for (int64_t i = 0; i < here.numel(); ++i) here.data<float>()[i] = static_cast<float>(i % 1000);
  const Tensor fixed = pinned(here), there = moveTo(here, kCuda);
  const Tensor back = pinned(Tensor::zeros(here.sizes(), DType::Float));
  const auto show = [](const char* what, Times t) {
    fmt::print("{}: {:.3f} ms queued, {:.3f} ms done\n", what, t.queued, t.done);
  };
  show("64 MiB to the device, plain", timesOf([&] { there.copyFrom(here); }));
  show("64 MiB to the device, pinned", timesOf([&] { there.copyFrom(fixed); }));
  show("64 MiB to the device, not waited for", timesOf([&] {
         const UnwaitedCopies unwaited;
         there.copyFrom(fixed);
       }));
  show("64 MiB from the device, plain", timesOf([&] { here.copyFrom(there); }));
  show("64 MiB from the device, not waited for", timesOf([&] {
         const UnwaitedCopies unwaited;
         back.copyFrom(there);
       }));
  const auto wrongIn = [](const Tensor& t, float offset) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < t.numel(); ++i) {
      wrong += t.data<float>()[i] != static_cast<float>(i % 1000) + offset;
    }
    return wrong;
  };
  int64_t wrong = wrongIn(back, 0);
  // Each block is written, sent and let go; the next one must not be the same while it is sent.
  std::vector<Tensor> sent;
  for (int i = 0; i < 20; ++i) {
    const Tensor block = pinned(Tensor::zeros({int64_t{4} << 20}, DType::Float));
    for (int64_t k = 0; k < block.numel(); ++k) {
      block.data<float>()[k] = static_cast<float>(k % 1000 + i);
    }
    sent.push_back(moveUnwaited(block, kCuda));
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    wrong += wrongIn(moveTo(sent[i], Device()), static_cast<float>(i));
  }
  const cuda::PinnedStatistics s = cuda::pinnedStatistics();
  fmt::print("{} bytes in use, {} reserved, {} driver calls, {} blocks used again; {} wrong\n",
             s.allocated, s.reserved, s.driver_calls, s.reused, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace wick

int main() {
  return wick::run();
}
