#include "streams/schedule/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "runtime/call.h"
#include "runtime/compile_queue.h"
#include "runtime/threads.h"
#include "streams/schedule/stage_code.h"

namespace wick::streams {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMinCalls = 3;

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Tensors within containers count, a tensor that is met twice does so twice.
int64_t bytesOf(const IValue& value, int depth = 0) {
  constexpr int kMaxDepth = 8;
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return 0;
    return tensor.numel() * static_cast<int64_t>(itemSize(tensor.dtype()));
  }
  int64_t bytes = 0;
  if (depth < kMaxDepth && (value.isList() || value.isTuple())) {
    for (const IValue& element : value.elements()) bytes += bytesOf(element, depth + 1);
  }
  return bytes;
}

int64_t bytesOf(const Packet& packet) {
  int64_t bytes = 0;
  for (const IValue& value : packet) bytes += bytesOf(value);
  return bytes;
}

// The fastest of the calls, which are repeated for as long as told. On devices several calls are queued
// and waited for together.
template <class F>
double fastest(double milliseconds, const MeasureOptions& options, F&& call) {
  constexpr int kTogether = 16;
  const int calls = options.finish ? kTogether : 1;
  double best = 1e300;
  double spent = 0;
  for (int i = 0; i < kMinCalls || spent < milliseconds; ++i) {
    const auto begin = Clock::now();
    for (int c = 0; c < calls; ++c) call();
    if (options.finish) options.finish();
    const double time = millisecondsSince(begin);
    best = std::min(best, time / calls);
    spent += time;
  }
  return best;
}

}  // namespace

ThreadsScope::ThreadsScope(int threads) : before_(numThreads()) {
  setNumThreads(threads);
}

ThreadsScope::~ThreadsScope() {
  setNumThreads(before_);
}

Costs measureCosts(const StreamGraph& graph, const std::vector<IValue>& arguments,
                   const MeasureOptions& options) {
  const ThreadsScope one_thread(1);
  const auto alive = aliveValues(graph);
  const size_t count = graph.filters.size();
  std::vector<StageCode> codes;
  for (size_t i = 0; i < count; ++i) {
    codes.push_back(stageCode(graph, alive, i, i + 1, graph.filters[i].name));
  }
  const auto run = [&](size_t i, Packet& packet) {
    try {
      runStage(codes[i], packet);
    } catch (const RuntimeError& e) {
      RuntimeError named(fmt::format("filter '{}': {}", graph.filters[i].name, e.brief()),
                         e.className());
      for (const RuntimeError::Frame& frame : e.frames()) named.addFrame(frame);
      throw named;
    }
  };
  Costs costs;
  std::vector<Packet> before(count + 1);
  for (int round = 0; round < std::max(options.warm_up, 1); ++round) {
    before[0] = arguments;
    for (size_t i = 0; i < count; ++i) {
      before[i + 1] = before[i];
      run(i, before[i + 1]);
    }
  }
  waitForCompiles();
  for (const Packet& packet : before) costs.bytes.push_back(bytesOf(packet));
  const double each = 1e3 * options.seconds / (2 * static_cast<double>(std::max<size_t>(count, 1)));
  for (size_t i = 0; i < count; ++i) {
    costs.milliseconds.push_back(fastest(each, options, [&] {
      Packet packet = before[i];
      run(i, packet);
    }));
  }
  const StageCode whole = stageCode(graph, alive, 0, count, graph.name);
  const auto call = [&] {
    Packet packet = arguments;
    runStage(whole, packet);
  };
  for (int i = 0; i < options.warm_up; ++i) call();
  waitForCompiles();
  costs.whole_milliseconds = fastest(1e3 * options.seconds / 2, options, call);
  return costs;
}

}  // namespace wick::streams
