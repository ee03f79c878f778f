// A library that stands in for CUPTI: it gives the records that a test adds.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/cuda/cupti.h"

namespace wick::cuda {

// The library's clock is 1000 seconds behind.
inline constexpr int64_t kCuptiBehind = 1'000'000'000'000;

// Takes CUPTI's place while it lives. One at a time.
class FakeCupti {
 public:
  FakeCupti();
  ~FakeCupti();
  FakeCupti(const FakeCupti&) = delete;
  FakeCupti& operator=(const FakeCupti&) = delete;

  // Given when the recording ends.
  template <class Record>
  void add(const Record& record) {
    // Real ones are longer.
    std::vector<uint8_t> bytes(sizeof(Record) + 48);
    std::memcpy(bytes.data(), &record, sizeof(Record));
    addBytes(std::move(bytes));
  }
  int enabled() const;  // kinds of records
  // What the library answers from now on when the third kind is enabled; 0 is a success.
  void answerEnabling(Result result);

 private:
  void addBytes(std::vector<uint8_t> bytes);
};

}  // namespace wick::cuda
