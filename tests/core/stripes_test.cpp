// What threads count apart: numbers of threads, sums, references to pinned objects.
#include "core/stripes.h"

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <set>
#include <thread>

#include "core/ivalue.h"

namespace wick::stripes_test {
namespace {

constexpr int kThreads = 8;

template <class F>
void onThreads(F&& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& thread : threads) thread.join();
}

struct Tracked : RefCounted {
  explicit Tracked(std::atomic<int>& destroyed) : destroyed(destroyed) {}
  ~Tracked() override { ++destroyed; }
  std::atomic<int>& destroyed;
};

TEST(Stripes, ThreadsThatLiveHaveNumbersOfTheirOwn) {
  for (int round = 0; round < 20; ++round) {
    std::mutex mutex;
    std::set<uint32_t> numbers;
    std::barrier all(kThreads);
    onThreads([&](int) {
      {
        std::lock_guard lock(mutex);
        numbers.insert(threadStripe());
      }
      all.arrive_and_wait();
      EXPECT_LT(threadStripe(), kStripes);
    });
    EXPECT_EQ(numbers.size(), size_t{kThreads});
  }
}

TEST(Stripes, CountersAddUp) {
  StripedCounter counter;
  onThreads([&](int t) {
    for (int i = 0; i < 1000; ++i) counter.add(static_cast<uint64_t>(t));
  });
  EXPECT_EQ(counter.sum(), 1000u * kThreads * (kThreads - 1) / 2);
}

TEST(Stripes, TheSecondThreadIsNoticedOnce) {
  for (int round = 0; round < 50; ++round) {
    ThreadsSeen seen;
    EXPECT_FALSE(seen.isSecond());
    EXPECT_FALSE(seen.isSecond());
    EXPECT_FALSE(seen.several());
    std::atomic<int> noticed{0};
    onThreads([&](int) {
      for (int i = 0; i < 10; ++i) noticed += seen.isSecond();
    });
    EXPECT_EQ(noticed, 1);
    EXPECT_TRUE(seen.several());
    EXPECT_FALSE(seen.setSeveral());
  }
}

TEST(Pins, ReferencesOfAllThreadsCount) {
  std::atomic<int> destroyed{0};
  auto object = makeRef<Tracked>(destroyed);
  EXPECT_FALSE(object->unpin());
  EXPECT_TRUE(object->pin());
  EXPECT_FALSE(object->pin());
  EXPECT_TRUE(object->isPinned());
  EXPECT_NE(object->useCount(), 1u);
  // Taken on one thread, given up on another.
  std::vector<Ref<Tracked>> held(kThreads * 100);
  onThreads([&](int t) {
    for (int i = 0; i < 100; ++i) held[static_cast<size_t>(t * 100 + i)] = object;
  });
  onThreads([&](int t) {
    for (int i = 0; i < 100; ++i) held[static_cast<size_t>((t + 1) % kThreads * 100 + i)] = nullptr;
  });
  EXPECT_FALSE(object->unpin());
  EXPECT_TRUE(object->unpin());
  EXPECT_EQ(object->useCount(), 1u);
  EXPECT_EQ(destroyed, 0);
  object = nullptr;
  EXPECT_EQ(destroyed, 1);
}

// References that outlive the pin, whoever gives them up last, free the object once.
TEST(Pins, TheLastReferenceFreesTheObject) {
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> destroyed{0};
    std::vector<Ref<Tracked>> held(kThreads);
    held[0] = makeRef<Tracked>(destroyed);
    held[0]->pin();
    for (Ref<Tracked>& one : held) one = held[0];
    std::barrier all(kThreads);
    onThreads([&](int t) {
      Ref<Tracked> mine = std::move(held[static_cast<size_t>(t)]);
      all.arrive_and_wait();
      for (int i = 0; i < 5; ++i) Ref<Tracked> copy = mine;
      if (t == 0) mine->unpin();
    });
    EXPECT_EQ(destroyed, 1);
  }
}

// A thread may count in a stripe that is closed and opened meanwhile.
TEST(Pins, ComeAndGoWhileThreadsCount) {
  std::atomic<int> destroyed{0};
  auto object = makeRef<Tracked>(destroyed);
  std::atomic<bool> stop{false};
  std::thread pins([&] {
    for (int i = 0; i < 3000; ++i) {
      object->pin();
      object->unpin();
    }
    stop = true;
  });
  onThreads([&](int) {
    while (!stop) Ref<Tracked> copy = object;
  });
  pins.join();
  EXPECT_FALSE(object->isPinned());
  EXPECT_EQ(object->useCount(), 1u);
  EXPECT_EQ(destroyed, 0);
}

// Views of a pinned tensor hold its storage, which may be replaced.
TEST(Pins, TensorsPinTheirStorage) {
  Tensor t = Tensor::zeros({4}, DType::Float);
  const IValue value(t);
  value.pin();
  const Ref<Storage> first = t.storage();
  EXPECT_TRUE(first->isPinned());
  t.impl()->place(Storage::allocate(16), DType::Float, {4}, {1}, 0);
  EXPECT_FALSE(first->isPinned());
  EXPECT_EQ(first->useCount(), 1u);
  EXPECT_TRUE(t.storage()->isPinned());
  value.unpin();
  EXPECT_FALSE(t.impl()->isPinned());
  EXPECT_FALSE(t.storage()->isPinned());
}

}  // namespace
}  // namespace wick::stripes_test
