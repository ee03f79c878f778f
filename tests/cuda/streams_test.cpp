// Streams, events and what else scripts call of torch.cuda, with a fake driver.
#include "runtime/cuda/streams.h"

#include <gtest/gtest.h>

#include <set>

#include "core/native_class.h"
#include "core/value_conversions.h"
#include "frontend/compile.h"
#include "runtime/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"

namespace wick::cuda::streams_test {
namespace {

using testing_errors::errorOf;

constexpr Device kCuda{DeviceType::CUDA, -1};

IValue run(const std::string& body, std::vector<IValue> arguments = {},
           const std::string& parameters = "") {
  const auto unit = compileSource("def f(" + parameters + "):\n" + body);
  return callFunction(*unit->findFunction("__torch__.f"), std::move(arguments));
}

TEST(Streams, WorkGoesToTheStreamOfAScope) {
  FakeDriver driver;
  const Tensor x = Tensor::zeros(DimVector{8}, DType::Float, kCuda);
  // A copy is queued by the driver itself, without a kernel.
  const IValue numbers = run(R"(
    s = torch.cuda.Stream()
    out = [torch.cuda.current_stream().id()]
    with torch.cuda.stream(s):
        y = x.clone()
        x.copy_(y)
        out.append(torch.cuda.current_stream(None).id())
        t: torch.cuda.Stream = torch.cuda.Stream(device=x.device, priority=-1)
        with torch.cuda.stream(t):
            out.append(torch.cuda.current_stream(0).id())
        out.append(torch.cuda.current_stream().id())
    out.append(torch.cuda.current_stream().id())
    out += [s.id(), t.id(), torch.cuda.default_stream().id(), s.device_index()]
    return out
)",
                             {IValue(x)}, "x: Tensor");
  const auto ids = numbers.to<std::vector<int64_t>>();
  ASSERT_EQ(ids.size(), 9u);
  const int64_t s = ids[5], t = ids[6];
  EXPECT_NE(s, 0);
  EXPECT_NE(t, 0);
  EXPECT_NE(s, t);
  EXPECT_EQ(ids, (std::vector<int64_t>{0, s, t, s, 0, s, t, 0, 0}));
  EXPECT_NE(driver.state().last_stream, nullptr);
  EXPECT_EQ(currentStream(0), nullptr);
  x.clone();
  EXPECT_EQ(driver.state().last_stream, nullptr);
}

TEST(Streams, AnErrorLeavesTheScope) {
  FakeDriver driver;
  const std::string error = errorOf([] {
    run(R"(
    with torch.cuda.stream(torch.cuda.Stream()):
        raise RuntimeError("inside")
)");
  });
  EXPECT_NE(error.find("inside"), std::string::npos) << error;
  EXPECT_EQ(currentStream(0), nullptr);
}

TEST(Streams, NoneIsTheStreamThatIsThere) {
  FakeDriver driver;
  EXPECT_EQ(run(R"(
    none: Optional[torch.cuda.Stream] = None
    with torch.cuda.stream(none):
        return torch.cuda.current_stream().id()
)")
                .toInt(),
            0);
}

TEST(Streams, AStreamOfAnotherDeviceMakesItTheCurrentOne) {
  FakeDriver driver;
  const IValue out = run(R"(
    s = torch.cuda.Stream(torch.device("cuda:1"))
    before = torch.cuda.current_device()
    with torch.cuda.stream(s):
        inside = torch.cuda.current_device()
        x = torch.zeros([3], device="cuda")
        there = x.device == torch.device("cuda:1") and s.device == x.device
    return [before, inside, torch.cuda.current_device(), int(there)]
)");
  EXPECT_EQ(out.to<std::vector<int64_t>>(), (std::vector<int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(currentStream(1), nullptr);
}

TEST(Streams, EventsOrderStreams) {
  FakeDriver driver;
  const IValue time = run(R"(
    a = torch.cuda.Stream()
    b = torch.cuda.Stream()
    start = torch.cuda.Event(True, False, False)
    end = torch.cuda.Event(enable_timing=True)
    fresh = start.query()
    a.record_event(start)
    b.wait_event(start)
    b.wait_stream(a)
    end.record(b)
    end.wait(a)
    a.synchronize()
    end.synchronize()
    later: torch.cuda.Event = b.record_event()
    assert fresh and a.query() and later.query()
    return start.elapsed_time(end)
)");
  EXPECT_EQ(time.toDouble(), 2.5);
  EXPECT_EQ(driver.state().events_recorded, 4);
  EXPECT_EQ(driver.state().waits, 3);
  EXPECT_EQ(driver.state().synchronizations, 2);
}

TEST(Streams, WrongUseOfEvents) {
  FakeDriver driver;
  const auto error = [](const std::string& body) { return errorOf([&] { run(body); }); };
  const std::string two = "    a = torch.cuda.Event()\n    b = torch.cuda.Event()\n";
  EXPECT_NE(error(two + "    a.elapsed_time(b)\n").find("Both events must be recorded"),
            std::string::npos);
  EXPECT_NE(error(two + "    a.record()\n    b.record()\n    a.elapsed_time(b)\n")
                .find("enable_timing=True"),
            std::string::npos);
  EXPECT_NE(error("    torch.cuda.Event(False, False, True)\n").find("between processes"),
            std::string::npos);
  EXPECT_NE(error("    e = torch.cuda.Event()\n    e.record(torch.cuda.default_stream(0))\n"
                  "    e.record(torch.cuda.default_stream(1))\n")
                .find("does not match recording stream's device 1"),
            std::string::npos);
  EXPECT_NE(error("    torch.cuda.Stream(torch.device('cpu'))\n").find("Expected a cuda device"),
            std::string::npos);
  EXPECT_NE(error("    torch.cuda.current_stream(7)\n").find("there are 2 such devices"),
            std::string::npos);
  driver.state().work_is_done = false;
  EXPECT_NE(error("    a = torch.cuda.Event(True)\n    a.record()\n    a.elapsed_time(a)\n")
                .find("synchronize first"),
            std::string::npos);
}

TEST(Streams, DevicesAndMemory) {
  FakeDriver driver;
  const IValue out = run(R"(
    torch.cuda.set_device(1)
    now = torch.cuda.current_device()
    torch.cuda.set_device(0)
    before = torch.cuda.memory_allocated()
    x = torch.zeros([n], device="cuda")
    more = torch.cuda.memory_allocated(x.device) - before
    torch.cuda.synchronize()
    torch.cuda.synchronize(1)
    torch.cuda.synchronize(x.device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    kept = torch.cuda.memory_reserved() >= torch.cuda.max_memory_allocated()
    return [int(torch.cuda.is_available()), torch.cuda.device_count(), now, more, int(kept), x.numel()]
)",
                         {IValue(int64_t{1024})}, "n: int");
  EXPECT_EQ(out.to<std::vector<int64_t>>(), (std::vector<int64_t>{1, 2, 1, 4096, 1, 1024}));
  driver.state().devices = 0;
  EXPECT_FALSE(run("    return torch.cuda.is_available()\n").toBool());
}

// What a stream computes is computed before the event behind it, and nothing is taken out of a
// scope: neither by fusion nor because an equal node is there already.
TEST(Streams, NothingMovesPastThem) {
  const auto unit = compileSource(R"(
def f(x: Tensor, s: torch.cuda.Stream):
    a = x * 2 + 1
    with torch.cuda.stream(s):
        b = x * 2 + 1
        c = b * 3
    torch.cuda.current_stream().wait_stream(s)
    return a + b * c
)");
  GraphFunction& f = *unit->findFunction("__torch__.f");
  FakeDriver driver;
  const auto stream = makeRef<HeldStream>(0, nullptr, 0);
  const IValue held = makeNative(kStreamClass, stream);
  const Tensor x = Tensor::full(DimVector{3}, 1, DType::Float);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(callFunction(f, {IValue(x), held}).toTensor().select(0, 1).item<float>(), 30);
  }
  EXPECT_EQ(driver.state().waits, 4);
}

TEST(Streams, StreamsAreReused) {
  FakeDriver driver;
  enter({DeviceType::CUDA, 0});
  std::set<Stream> seen;
  for (int i = 0; i < 100; ++i) seen.insert(deviceAt(0).nextStream(false).stream);
  EXPECT_EQ(seen.size(), 32u);
  for (int i = 0; i < 100; ++i) seen.insert(deviceAt(0).nextStream(true).stream);
  EXPECT_EQ(seen.size(), 64u);
}

}  // namespace
}  // namespace wick::cuda::streams_test
