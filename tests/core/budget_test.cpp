// Budgets: what counts, what is refused, and that everything is given back.
#include "core/budget.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/counted_vector.h"
#include "core/error.h"
#include "core/ivalue.h"
#include "core/memory_limit.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "tests/error_text.h"

namespace wick::budget_test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

Budget::Bounds memory(size_t bytes) {
  Budget::Bounds bounds;
  bounds.memory = bytes;
  return bounds;
}

template <class F>
std::string classOfError(F&& f) {
  try {
    f();
  } catch (const RuntimeError& e) {
    return e.className();
  }
  return "none";
}

TEST(Budget, NothingIsBoundedByDefault) {
  EXPECT_EQ(currentBudget(), nullptr);
  EXPECT_FALSE(Budget({}).bounded());
  EXPECT_NO_THROW(checkBudget());
}

TEST(Budget, WorkingMemoryIsRefusedBeforeItIsTaken) {
  Budget budget(memory(8 * kMiB));
  BudgetScope scope(&budget);
  EXPECT_THROW(CountedVector<int64_t>(size_t{1} << 40), RuntimeError);
  EXPECT_THROW(CountedVector<int64_t>(size_t{1} << 59), RuntimeError);
  CountedVector<int64_t> grows;
  const auto grow = [&] {
    for (;;) grows.push_back(1);
  };
  EXPECT_THROW(grow(), RuntimeError);
  EXPECT_LE(grows.capacity() * sizeof(int64_t), 8 * kMiB);
  EXPECT_GE(budget.used(), static_cast<int64_t>(grows.capacity() * sizeof(int64_t)));
  CountedVector<int64_t>().swap(grows);
  EXPECT_LT(budget.used(), 1000);
}

TEST(Budget, ThreadsOfALoopWorkUnderIt) {
  Budget budget(memory(8 * kMiB));
  BudgetScope scope(&budget);
  const auto loop = [&] {
    parallelFor(8, 1, [&](int64_t, int64_t) {
      EXPECT_EQ(currentBudget(), &budget);
      CountedVector<char> large(16 * kMiB);
    });
  };
  EXPECT_THROW(loop(), RuntimeError);
}

TEST(Budget, TensorsObjectsAndContainersCountAndAreGivenBack) {
  Budget budget(memory(64 * kMiB));
  {
    BudgetScope scope(&budget);
    std::vector<IValue> kept;
    const Tensor t = Tensor::zeros({1024, 1024}, DType::Float);
    EXPECT_GE(budget.used(), static_cast<int64_t>(4 * kMiB));
    for (int i = 0; i < 10000; ++i) {
      kept.emplace_back(t.select(0, i % 1024));
      kept.emplace_back(std::string(100, 'x'));
      kept.emplace_back(makeList(types::Int(), std::vector<IValue>(10, IValue(1))));
      kept.emplace_back(makeTuple({IValue(1), IValue(2)}));
    }
    // At least what the payloads take; what the objects take besides is not told.
    const int64_t least = 4 * int64_t{kMiB} + 10000 * (100 + 12 * int64_t{sizeof(IValue)});
    EXPECT_GT(budget.used(), least - detail::kUncounted);
    EXPECT_LT(budget.used(), 3 * least);
  }
  EXPECT_LT(std::abs(budget.used()), 2 * detail::kUncounted);
}

TEST(Budget, WhatExceedsTheMemoryIsRefused) {
  Budget budget(memory(kMiB));
  BudgetScope scope(&budget);
  EXPECT_THROW(Tensor::zeros({kMiB}, DType::Float), RuntimeError);
  EXPECT_NO_THROW(Tensor::zeros({1000}, DType::Float));
  ListRef list = makeList(types::Int());
  EXPECT_THROW(
      {
        while (true) {
          list->makeRoom("append", 1);
          list->elements.push_back(IValue(1));
        }
      },
      RuntimeError);
  EXPECT_LE(list->elements.size() * sizeof(IValue), kMiB);
  EXPECT_THROW(checkAllocation("text", kMiB), RuntimeError);
}

// Small things add up without that anybody asks for much at once.
TEST(Budget, ManySmallViewsEndAtTheLimit) {
  Budget budget(memory(4 * kMiB));
  BudgetScope scope(&budget);
  const Tensor t = Tensor::zeros({16}, DType::Float);
  std::vector<Tensor> views;
  EXPECT_EQ(classOfError([&] {
              while (views.size() < 1'000'000) views.push_back(t.select(0, 0));
            }),
            "MemoryError");
  EXPECT_LT(views.size(), 100'000u);
}

// What is no tensor's counts against the limit of the process, too.
TEST(Budget, TheLimitOfTheProcessEndsWhatGrows) {
  setAllocationLimit(kMiB);
  noteMemory(64 * kMiB);
  EXPECT_EQ(classOfError([] { checkGrowth(); }), "MemoryError");
  noteMemory(64 * kMiB);
  EXPECT_EQ(testing_errors::errorOf([] { checkGrowth(); }),
            "not enough memory: the limit is 1048576 bytes");
  noteMemory(-128 * static_cast<int64_t>(kMiB));
  setAllocationLimit(0);
  EXPECT_EQ(classOfError([] { checkGrowth(); }), "none");
}

TEST(Budget, DeadlineAndInterrupt) {
  Budget::Bounds late;
  late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  Budget over(std::move(late));
  EXPECT_EQ(classOfError([&] { over.check(); }), "TimeoutError");
  Budget::Bounds bounds;
  auto flag = std::make_shared<std::atomic<bool>>(false);
  bounds.interrupt = flag;
  bounds.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  Budget budget(std::move(bounds));
  EXPECT_NO_THROW(budget.check());
  *flag = true;
  EXPECT_EQ(classOfError([&] { budget.check(); }), "KeyboardInterrupt");
}

TEST(Budget, LoopsOverElementsLeaveOff) {
  Budget::Bounds bounds;
  auto flag = std::make_shared<std::atomic<bool>>(false);
  bounds.interrupt = flag;
  Budget budget(std::move(bounds));
  BudgetScope scope(&budget);
  std::atomic<int64_t> done{0};
  EXPECT_THROW(parallelFor(int64_t{1} << 40, 1 << 10,
                           [&](int64_t begin, int64_t end) {
                             if ((done += end - begin) > 1 << 20) *flag = true;
                           }),
               RuntimeError);
  EXPECT_LT(done.load(), int64_t{1} << 30);
  EXPECT_THROW(parallelFor(10, 100, [](int64_t, int64_t) {}), RuntimeError);
}

TEST(Budget, ScopesNestAndBelongToTheirThread) {
  Budget outer(memory(kMiB)), inner(memory(2 * kMiB));
  BudgetScope a(&outer);
  {
    BudgetScope b(&inner);
    EXPECT_EQ(currentBudget(), &inner);
    {
      BudgetScope c(nullptr);
      EXPECT_EQ(currentBudget(), nullptr);
      EXPECT_NO_THROW(Tensor::zeros({4 * kMiB}, DType::Float));
    }
    std::thread([] { EXPECT_EQ(currentBudget(), nullptr); }).join();
    EXPECT_EQ(currentBudget(), &inner);
  }
  EXPECT_EQ(currentBudget(), &outer);
}

}  // namespace
}  // namespace wick::budget_test
