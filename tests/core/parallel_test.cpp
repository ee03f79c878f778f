#include "core/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/error.h"

// The barriers of GCC's OpenMP, which is not instrumented, order nothing for TSan.
#if defined(__SANITIZE_THREAD__)
#define WICK_SKIP_WITHOUT_SIGHT_OF_TEAMS() GTEST_SKIP()
#else
#define WICK_SKIP_WITHOUT_SIGHT_OF_TEAMS() static_cast<void>(0)
#endif

namespace wick::parallel_test {
namespace {

TEST(ParallelFor, CoversTheRangeOnce) {
  WICK_SKIP_WITHOUT_SIGHT_OF_TEAMS();
  for (int threads : {1, 2, 5}) {
    // A thread of its own begins without a team.
    std::thread([&] {
      omp_set_num_threads(threads);
      for (int64_t n : {0, 1, 7, 1000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        parallelFor(n, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const auto& times : seen) EXPECT_EQ(times, 1);
      }
    }).join();
  }
}

TEST(ParallelFor, ThrowsWhatAThreadThrows) {
  WICK_SKIP_WITHOUT_SIGHT_OF_TEAMS();
  for (int threads : {1, 2, 5}) {
    std::thread([&] {
      omp_set_num_threads(threads);
      const auto loop = [] {
        parallelFor(100, 1, [](int64_t begin, int64_t end) {
          if (begin <= 70 && 70 < end) throw RuntimeError("70");
        });
      };
      EXPECT_THROW(loop(), RuntimeError);
    }).join();
  }
}

// The threads of a new team may be moved apart, but stay free to go where the process may.
TEST(ParallelFor, BindsNoThread) {
  WICK_SKIP_WITHOUT_SIGHT_OF_TEAMS();
  cpu_set_t process;
  ASSERT_EQ(sched_getaffinity(0, sizeof(process), &process), 0);
  std::thread([&] {
    omp_set_num_threads(4);
    std::atomic<int> bound = 0;
    parallelFor(4, 1, [&](int64_t, int64_t) {
      cpu_set_t mine;
      if (sched_getaffinity(0, sizeof(mine), &mine) != 0 || !CPU_EQUAL(&mine, &process)) ++bound;
    });
    EXPECT_EQ(bound, 0);
  }).join();
}

}  // namespace
}  // namespace wick::parallel_test
