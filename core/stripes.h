// What many threads write, apart for each: a counter that all of them step in one place would pass
// its cache line from processor to processor with every step.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace wick {

inline constexpr uint32_t kStripes = 32;
inline constexpr size_t kCacheLine = 64;

namespace detail {
#ifdef WICK_INSIDE
inline constexpr uint32_t kNoStripe = ~uint32_t{0};
inline constinit thread_local uint32_t thread_stripe = kNoStripe;
uint32_t claimStripe();
#endif
// threadStripe() for programs that link the engine as a shared library; see
// noteMemoryFromOutside().
__attribute__((visibility("default"))) uint32_t threadStripeFromOutside();
}  // namespace detail

// The calling thread's number, below kStripes, as long as it lives. No two threads have the same
// while no more than kStripes live. A nanosecond.
inline uint32_t threadStripe() {
#ifdef WICK_INSIDE
  const uint32_t stripe = detail::thread_stripe;
  return stripe != detail::kNoStripe ? stripe : detail::claimStripe();
#else
  return detail::threadStripeFromOutside();
#endif
}

#pragma GCC visibility push(default)

// Notes whether several threads come by. Thread-safe.
class ThreadsSeen {
 public:
  // Whether this call is the first of another thread than the first: once in a lifetime. Two
  // threads may pass for one when the second began after the first had ended.
  bool isSecond() {
    const uint32_t me = threadStripe() + 1;
    const uint32_t seen = seen_.load(std::memory_order_relaxed);
    if (seen == me || seen == kSeveral) return false;
    uint32_t nobody = 0;
    if (seen_.compare_exchange_strong(nobody, me)) return false;
    return setSeveral();
  }
  // Counts as if a second thread had come. False when one had already.
  bool setSeveral() { return seen_.exchange(kSeveral) != kSeveral; }
  bool several() const { return seen_.load(std::memory_order_relaxed) == kSeveral; }

 private:
  static constexpr uint32_t kSeveral = ~uint32_t{0};
  std::atomic<uint32_t> seen_{0};  // the first thread's number plus one, or kSeveral
};

// A sum to which any thread adds. Thread-safe.
class StripedCounter {
 public:
  void add(uint64_t n = 1) { cells_[threadStripe()].count.fetch_add(n, std::memory_order_relaxed); }
  // What other threads add meanwhile may be in it or not.
  uint64_t sum() const {
    uint64_t total = 0;
    for (const Cell& cell : cells_) total += cell.count.load(std::memory_order_relaxed);
    return total;
  }

 private:
  struct alignas(kCacheLine) Cell {
    std::atomic<uint64_t> count{0};
  };
  std::array<Cell, kStripes> cells_;
};

#pragma GCC visibility pop

}  // namespace wick
