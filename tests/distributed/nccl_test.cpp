// Reductions on CUDA devices: what is queued where, and what happens when something goes wrong. The
// driver and NCCL are the test's own; tests/cuda/check_training.cpp runs real ones.
#include "distributed/cuda/nccl.h"

#include <gmock/gmock.h>

#include <cstring>

#include "core/device_backend.h"
#include "core/error.h"
#include "distributed/group.h"
#include "runtime/cuda/device.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/lazy/lazy_testing.h"

namespace wick::nccl_test {
namespace {

using distributed::Group;
using distributed::NcclFunctions;
using distributed::NcclId;
using distributed::Reduction;
using testing::HasSubstr;

constexpr Device kCuda{DeviceType::CUDA, 0};

// Of two processes the other one has the same numbers.
struct Library {
  int joined = 0, destroyed = 0, reductions = 0;
  int last_dtype = -1, last_op = -1;
  size_t last_count = 0;
  cuda::Stream last_stream = nullptr;
  std::string id;
  int result_of_reduction = 0, async = 0;
};
Library* library = nullptr;

NcclFunctions functions() {
  NcclFunctions f;
  f.get_id = [](NcclId* id) { return std::memset(id->bytes, 'i', sizeof id->bytes), 0; };
  f.init_rank = [](void** communicator, int size, NcclId id, int) {
    *communicator = library;
    library->id.assign(id.bytes, sizeof id.bytes);
    return ++library->joined, size == 2 ? 0 : 4;
  };
  f.all_reduce = [](const void* from, void* to, size_t count, int dtype, int op, void* communicator,
                    cuda::Stream stream) {
    EXPECT_EQ(from, to);
    EXPECT_EQ(communicator, library);
    ++library->reductions;
    library->last_dtype = dtype;
    library->last_op = op;
    library->last_count = count;
    library->last_stream = stream;
    const bool doubles = op == 0;
    for (size_t i = 0; doubles && i < count; ++i) {
      if (dtype == 7) static_cast<float*>(to)[i] *= 2;
      if (dtype == 8) static_cast<double*>(to)[i] *= 2;
      if (dtype == 4) static_cast<int64_t*>(to)[i] *= 2;
    }
    return library->result_of_reduction;
  };
  f.async_error = [](void*, int* result) { return *result = library->async, 0; };
  f.destroy = [](void*) { return ++library->destroyed, 0; };
  f.error_text = [](int result) { return result == 6 ? "remote error" : "invalid argument"; };
  return f;
}

class Pair : public distributed::Transport {
 public:
  explicit Pair(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  void allReduce(void*, int64_t, DType, Reduction) override { FAIL(); }
  void broadcast(void* bytes, size_t count, int) override {
    if (rank_ == 1) std::memset(bytes, 'j', count);
  }
  void barrier() override {}

 private:
  const int rank_;
};

class Nccl : public testing::Test {
 protected:
  Nccl() : functions_(functions()) {
    library = &library_;
    distributed::setNcclFunctions(&functions_);
  }
  ~Nccl() override { distributed::setNcclFunctions(nullptr); }
  static std::unique_ptr<Group> groupOf(int rank = 0) {
    return std::make_unique<Group>([=] { return std::make_unique<Pair>(rank); });
  }
  static Tensor there(const std::vector<float>& numbers) {
    return moveTo(Tensor::from(numbers), kCuda);
  }

  cuda::FakeDriver driver_;
  Library library_;
  const NcclFunctions functions_;
};

TEST_F(Nccl, ReducesBesideTheProgramsStream) {
  auto group = groupOf();
  const Tensor x = there({1, 2, 3});
  const cuda::FakeState before = driver_.state();
  const int64_t ticket = group->beginAllReduce(x, "sum");
  EXPECT_EQ(library_.joined, 1);
  EXPECT_EQ(library_.id, std::string(128, 'i'));
  EXPECT_EQ(library_.reductions, 1);
  EXPECT_EQ(library_.last_dtype, 7);
  EXPECT_EQ(library_.last_count, 3u);
  // It waits for the numbers, and the result is waited for; the CPU waits for nothing.
  EXPECT_NE(library_.last_stream, cuda::currentStream(0));
  EXPECT_EQ(driver_.state().events_recorded, before.events_recorded + 2);
  EXPECT_EQ(driver_.state().waits, before.waits + 1);
  const Tensor sum = group->endAllReduce(ticket);
  EXPECT_EQ(driver_.state().waits, before.waits + 2);
  EXPECT_EQ(driver_.state().synchronizations, before.synchronizations);
  EXPECT_EQ(sum.device(), kCuda);
  expectSame(sum, Tensor::from(std::vector<float>{2, 4, 6}));
  expectSame(x, Tensor::from(std::vector<float>{1, 2, 3}));
  // The processes join once.
  group->endAllReduce(
      group->beginAllReduce(moveTo(Tensor::zeros({2}, DType::Double), kCuda), "mean"));
  EXPECT_EQ(library_.joined, 1);
  EXPECT_EQ(library_.last_dtype, 8);
  EXPECT_EQ(library_.last_op, 4);
  EXPECT_THAT(errorOf([&] { group->endAllReduce(ticket); }), HasSubstr("nothing is under way"));
  EXPECT_EQ(library_.destroyed, 0);
  group.reset();
  EXPECT_EQ(library_.destroyed, 1);
}

TEST_F(Nccl, KindsOfNumbers) {
  const auto group = groupOf(1);
  const auto reduce = [&](DType dtype, const char* how) {
    return group->endAllReduce(
        group->beginAllReduce(moveTo(Tensor::zeros({2, 3}, dtype), kCuda), how));
  };
  reduce(DType::Long, "max");
  EXPECT_EQ(library_.id, std::string(128, 'j'));  // process 0 has it
  EXPECT_EQ(library_.last_dtype, 4);
  EXPECT_EQ(library_.last_op, 2);
  reduce(DType::Int, "min");
  EXPECT_EQ(library_.last_dtype, 2);
  EXPECT_EQ(library_.last_op, 3);
  EXPECT_EQ(reduce(DType::ComplexFloat, "mean").dtype(), DType::ComplexFloat);
  EXPECT_EQ(library_.last_dtype, 7);
  EXPECT_EQ(library_.last_count, 12u);
  EXPECT_THAT(errorOf([&] { reduce(DType::Long, "mean"); }), HasSubstr("the mean of int64"));
  const int before = library_.reductions;
  EXPECT_EQ(
      group->endAllReduce(group->beginAllReduce(Tensor::empty({0, 3}, DType::Float, kCuda), "sum"))
          .numel(),
      0);
  EXPECT_EQ(library_.reductions, before);
}

TEST_F(Nccl, OperatorsReduceThere) {
  static const OperatorHandle kReduce("wick::all_reduce", ""), kBegin("wick::all_reduce_begin", ""),
      kEnd("wick::all_reduce_end", "");
  distributed::setCurrentGroup(groupOf());
  const Tensor x = there({1, 2});
  expectSame(kReduce(x, "sum"), Tensor::from(std::vector<float>{2, 4}));
  const Tensor ticket = kBegin(x, "sum");
  EXPECT_TRUE(ticket.device().isCpu());
  expectSame(kEnd(x, ticket), Tensor::from(std::vector<float>{2, 4}));
  EXPECT_THAT(errorOf([&] { kEnd(there({1}), kBegin(x, "sum")); }), HasSubstr("what was begun"));
  distributed::setCurrentGroup(nullptr);
}

TEST_F(Nccl, WhatIsNotEndedIsWaitedFor) {
  auto group = groupOf();
  group->beginAllReduce(there({1}), "sum");
  const uint64_t before = driver_.state().synchronizations;
  group.reset();
  EXPECT_GT(driver_.state().synchronizations, before);
}

TEST_F(Nccl, ErrorsSayWhatFailed) {
  const auto group = groupOf();
  const Tensor x = there({1});
  library_.result_of_reduction = 4;
  EXPECT_THAT(errorOf([&] { group->beginAllReduce(x, "sum"); }),
              HasSubstr("NCCL: ncclAllReduce failed: invalid argument"));
  library_.result_of_reduction = 0;
  library_.async = 6;
  EXPECT_THAT(errorOf([&] { group->beginAllReduce(x, "sum"); }),
              HasSubstr("a reduction before this one failed: remote error"));
  library_.async = 7;  // under way
  group->endAllReduce(group->beginAllReduce(x, "sum"));
  // Reductions on the CPU go on.
  EXPECT_THAT(errorOf([&] { group->barrier(); }), "no error");
}

}  // namespace
}  // namespace wick::nccl_test
