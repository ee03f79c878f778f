#include "tests/cuda/fake_cupti.h"

#include <algorithm>
#include <chrono>

namespace wick::cuda {

namespace {

struct State {
  cupti::BufferAsked asked = nullptr;
  cupti::BufferFilled filled = nullptr;
  std::vector<std::vector<uint8_t>> records;
  size_t next = 0;  // record to be read
  int enabled = 0;
  Result enabling = 0;
};
State state;

Result timestamp(uint64_t* now) {
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(steady).count();
  *now = static_cast<uint64_t>(ns - kCuptiBehind);
  return 0;
}
Result enable(uint32_t) {
  if (state.enabled == 2 && state.enabling != 0) return state.enabling;
  ++state.enabled;
  return 0;
}
Result disable(uint32_t) {
  state.enabled = std::max(state.enabled - 1, 0);
  return 0;
}
Result registerCallbacks(cupti::BufferAsked asked, cupti::BufferFilled filled) {
  state.asked = asked;
  state.filled = filled;
  return 0;
}
Result nextRecord(uint8_t* buffer, size_t size, uint32_t** record) {
  size_t at = 0;
  for (size_t i = 0; i < state.next; ++i) at += state.records[i].size();
  constexpr Result kNoMore = 12;
  if (at >= size) return kNoMore;
  *record = reinterpret_cast<uint32_t*>(buffer + at);
  ++state.next;
  return 0;
}
Result flush(uint32_t) {
  if (state.records.empty()) return 0;
  uint8_t* buffer = nullptr;
  size_t size = 0, most = 1;
  state.asked(&buffer, &size, &most);
  if (most != 0) return 1;
  size_t used = 0;
  for (const auto& record : state.records) {
    std::memcpy(buffer + used, record.data(), record.size());
    used += record.size();
  }
  state.next = 0;
  state.filled(nullptr, 0, buffer, size, used);
  state.records.clear();
  return 0;
}
Result resultText(Result, const char** text) {
  *text = "it is not allowed";
  return 0;
}
constexpr Cupti kFunctions = {timestamp, enable,     disable,   registerCallbacks,
                              flush,     nextRecord, resultText};

}  // namespace

FakeCupti::FakeCupti() {
  state = State();
  setCupti(&kFunctions);
}
FakeCupti::~FakeCupti() {
  setCupti(nullptr);
}
void FakeCupti::addBytes(std::vector<uint8_t> bytes) {
  state.records.push_back(std::move(bytes));
}
int FakeCupti::enabled() const {
  return state.enabled;
}
void FakeCupti::answerEnabling(Result result) {
  state.enabling = result;
}

}  // namespace wick::cuda
