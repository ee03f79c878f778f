#include "core/allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/tensor.h"

namespace wick::allocator_test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

uint64_t asked() {
  return allocatorStatistics().system_allocations;
}

// A block with a pattern of its own at both ends.
struct Marked {
  char* memory;
  size_t bytes;
  char mark;

  Marked(size_t n, char m) : memory(static_cast<char*>(allocateBlock(n))), bytes(n), mark(m) {
    memory[0] = memory[n - 1] = mark;
  }
  void release() const {
    EXPECT_EQ(memory[0], mark);
    EXPECT_EQ(memory[bytes - 1], mark);
    freeBlock(memory, bytes);
  }
};

TEST(Allocator, AlignsEveryBlock) {
  for (size_t bytes : {size_t{1}, size_t{64}, size_t{65}, size_t{513}, size_t{4097}, size_t{32768},
                       size_t{32769}, kMiB - 1, kMiB, 5 * kMiB + 3}) {
    void* block = allocateBlock(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, 1, bytes);
    freeBlock(block, bytes);
  }
}

TEST(Allocator, CountsWhatIsInUse) {
  size_t before = allocatedBytes();
  void* small = allocateBlock(100);
  void* large = allocateBlock(3 * kMiB);
  EXPECT_EQ(allocatedBytes(), before + 100 + 3 * kMiB);
  freeBlock(small, 100);
  freeBlock(large, 3 * kMiB);
  freeBlock(nullptr, 0);
  EXPECT_EQ(allocatedBytes(), before);
}

TEST(Allocator, BlocksThatAreInUseNeverOverlap) {
  std::mt19937 random(7);
  std::vector<Marked> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 60 && random() % 5 < 3) {
      // Sizes of all magnitudes from bytes to a few MiB.
      size_t bytes = 1 + random() % (size_t{1} << (random() % 22 + 1));
      live.emplace_back(bytes, static_cast<char>(random()));
    } else if (!live.empty()) {
      size_t at = random() % live.size();
      live[at].release();
      live[at] = live.back();
      live.pop_back();
    }
  }
  for (const Marked& m : live) m.release();
}

TEST(Allocator, RepetitionAsksForNothing) {
  auto once = [] {
    std::vector<Marked> live;
    for (size_t bytes : {size_t{16}, size_t{700}, size_t{40000}, size_t{300000}, 2 * kMiB}) {
      for (char i = 0; i < 4; ++i) live.emplace_back(bytes, i);
    }
    for (const Marked& m : live) m.release();
  };
  once();
  uint64_t before = asked();
  for (int i = 0; i < 100; ++i) once();
  EXPECT_EQ(asked(), before);
}

// Beginning between two, a tensor would have one huge page less and up to 512 small ones more.
TEST(Allocator, LargeBlocksBeginWithAHugePage) {
  releaseKeptMemory();
  std::vector<Marked> live;
  for (size_t bytes : {2 * kMiB, 3 * kMiB + 5, 4 * kMiB, 9 * kMiB + 400, 40 * kMiB}) {
    live.emplace_back(bytes, 1);
    // 64 bytes before it the allocator keeps what it knows of the block.
    EXPECT_EQ(reinterpret_cast<uintptr_t>(live.back().memory) % (2 * kMiB), 64u) << bytes;
  }
  for (const Marked& m : live) m.release();
}

// What one size left is joined and serves other sizes.
TEST(Allocator, SmallerSizesAreServedFromWhatALargerOneLeft) {
  releaseKeptMemory();
  Marked large(48 * kMiB, 1);
  large.release();
  uint64_t before = asked();
  for (int round = 0; round < 3; ++round) {
    std::vector<Marked> live;
    for (char i = 0; i < 8; ++i) live.emplace_back(4 * kMiB, i);
    for (size_t i : {1u, 3u, 5u, 7u, 0u, 2u, 4u, 6u}) live[i].release();
    Marked(48 * kMiB, 2).release();
  }
  EXPECT_EQ(asked(), before);
}

TEST(Allocator, KeepsABoundedAmount) {
  for (int i = 1; i <= 40; ++i) {
    Marked(static_cast<size_t>(i) * 4 * kMiB, 1).release();
    size_t most = std::max(allocatedBytes() + 64 * kMiB, peakAllocatedBytes() / 8 * 9 + 8);
    EXPECT_LE(allocatorStatistics().system_bytes, most);
  }
}

TEST(Allocator, GivesEverythingBackWhenAsked) {
  std::vector<Marked> live;
  for (int i = 0; i < 50; ++i) live.emplace_back(size_t{1000} << (i % 12), 3);
  for (const Marked& m : live) m.release();
  releaseKeptMemory();
  AllocatorStatistics s = allocatorStatistics();
  EXPECT_EQ(s.kept_bytes, 0u);
  EXPECT_EQ(s.system_bytes, allocatedBytes());
}

TEST(Allocator, ThreadsPassBlocksToEachOther) {
  auto round = [] {
    std::vector<Marked> made;
    std::thread([&] {
      for (int i = 0; i < 2000; ++i) made.emplace_back(1 + i * 37 % 50000, static_cast<char>(i));
    }).join();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < made.size(); i += 4) made[i].release();
      });
    }
    for (std::thread& t : threads) t.join();
  };
  round();
  uint64_t before = asked();
  for (int i = 0; i < 5; ++i) round();
  // What the threads kept, they left behind when they ended.
  EXPECT_EQ(asked(), before);
}

// What a thread takes at once and does not need is not lost with it.
TEST(Allocator, ThreadsThatOnlyAllocateLoseNothing) {
  const auto fill = [] {
    std::vector<Marked> made;
    for (int i = 0; i < 4000; ++i) made.emplace_back(256, 1);
    for (const Marked& m : made) m.release();
  };
  std::thread(fill).join();  // and leaves them to everybody
  uint64_t before = asked();
  for (int i = 0; i < 1000; ++i) {
    void* block = nullptr;
    std::thread([&] { block = allocateBlock(256); }).join();
    std::thread([&] { freeBlock(block, 256); }).join();
  }
  EXPECT_EQ(asked(), before);
  releaseKeptMemory();
  AllocatorStatistics s = allocatorStatistics();
  EXPECT_EQ(s.kept_bytes, 0u);
  EXPECT_EQ(s.system_bytes, allocatedBytes());
}

// One thread makes, another lets go: what the second has goes to the first.
TEST(Allocator, ProducersAndConsumersShareABoundedAmount) {
  constexpr int kRounds = 200, kBatch = 500;
  constexpr size_t kBytes = 1000;
  std::vector<Marked> passed;
  std::atomic<int> turn{0};  // even: the producer's
  std::thread consumer([&] {
    for (int i = 0; i < kRounds; ++i) {
      for (int now = turn; now != 2 * i + 1; now = turn) turn.wait(now);
      for (const Marked& m : passed) m.release();
      passed.clear();
      turn = 2 * i + 2;
      turn.notify_all();
    }
  });
  uint64_t before = asked();
  for (int i = 0; i < kRounds; ++i) {
    for (int now = turn; now != 2 * i; now = turn) turn.wait(now);
    for (int k = 0; k < kBatch; ++k) passed.emplace_back(kBytes, static_cast<char>(k));
    turn = 2 * i + 1;
    turn.notify_all();
  }
  consumer.join();
  // What the consumer may keep, and what was on its way.
  EXPECT_LE(asked() - before, (size_t{2} << 20) / kBytes + 3 * kBatch);
  releaseKeptMemory();
  EXPECT_EQ(allocatorStatistics().system_bytes, allocatedBytes());
}

// Threads set bytes apart, which must not show.
TEST(Allocator, CountsExactlyWhatAllThreadsUse) {
  const size_t before = allocatedBytes();
  constexpr int kThreads = 6;
  std::barrier all(kThreads + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<void*, size_t>> blocks;
      for (int i = 0; i < 300; ++i) {
        const size_t bytes = static_cast<size_t>(1 + (i * 977 + t) % 40000);
        blocks.emplace_back(allocateBlock(bytes), bytes);
      }
      for (size_t i = 0; i < blocks.size(); i += 2) freeBlock(blocks[i].first, blocks[i].second);
      all.arrive_and_wait();
      all.arrive_and_wait();
      for (size_t i = 1; i < blocks.size(); i += 2) freeBlock(blocks[i].first, blocks[i].second);
    });
  }
  size_t expected = before;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 1; i < 300; i += 2) expected += static_cast<size_t>(1 + (i * 977 + t) % 40000);
  }
  all.arrive_and_wait();
  EXPECT_EQ(allocatedBytes(), expected);
  EXPECT_GE(peakAllocatedBytes(), expected);
  all.arrive_and_wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(allocatedBytes(), before);
}

// What other threads set apart is left to who needs it, to the byte.
TEST(Allocator, TheLimitHoldsWithSmallBlocksOfManyThreads) {
  std::barrier all(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      freeBlock(allocateBlock(100), 100);
      all.arrive_and_wait();
      all.arrive_and_wait();
    });
  }
  all.arrive_and_wait();
  freeBlock(allocateBlock(100), 100);
  const size_t before = allocatedBytes();
  setAllocationLimit(before + 10'000);
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(allocateBlock(1000));
  EXPECT_THROW(allocateBlock(1), RuntimeError);
  freeBlock(blocks.back(), 1000);
  blocks.pop_back();
  EXPECT_THROW(allocateBlock(1001), RuntimeError);
  blocks.push_back(allocateBlock(1000));
  EXPECT_EQ(allocatedBytes(), before + 10'000);
  setAllocationLimit(0);
  for (void* block : blocks) freeBlock(block, 1000);
  all.arrive_and_wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(allocatedBytes(), before);
}

TEST(Allocator, RefusesWhatExceedsTheLimit) {
  setAllocationLimit(countedBytes() + kMiB);
  EXPECT_THROW(allocateBlock(2 * kMiB), RuntimeError);
  freeBlock(allocateBlock(kMiB / 2), kMiB / 2);
  setAllocationLimit(0);
}

// Also on a system that would grant it.
TEST(Allocator, RefusesMoreThanTheMachineHas) {
  size_t before = allocatedBytes();
  for (int log : {42, 47, 63}) {
    EXPECT_THROW(allocateBlock(size_t{1} << log), RuntimeError) << log;
  }
  EXPECT_EQ(allocatedBytes(), before);
}

TEST(Allocator, OnlyAllocatedStoragesOwnTheirMemory) {
  std::vector<float> values(4);
  EXPECT_TRUE(Storage::allocate(16)->ownsMemory());
  EXPECT_FALSE(Storage::borrow(values.data(), 16, nullptr)->ownsMemory());
}

}  // namespace
}  // namespace wick::allocator_test
