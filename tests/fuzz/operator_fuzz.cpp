#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/ops/call.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/operator_call_target.h"

namespace wick::operator_fuzz {
namespace {

class OperatorFuzz : public testing::Test {
 protected:
  void SetUp() override { setAllocationLimit(size_t{64} << 20); }
  void TearDown() override {
    setAllocationLimit(0);
    setWarningHandler(nullptr);
  }
};

std::string randomBytes(std::mt19937_64& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// An input that WICK_FUZZ_LAST kept.
TEST_F(OperatorFuzz, Replay) {
  const char* path = std::getenv("WICK_FUZZ_FILE");
  if (path == nullptr) GTEST_SKIP() << "WICK_FUZZ_FILE names no file";
  std::ifstream file(path, std::ios::binary);
  const std::string input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::printf("%s\n", operatorOf(input).schema().str().c_str());
  std::fflush(stdout);
  EXPECT_EQ(failureOf(input, operatorCallTarget), "");
}

TEST_F(OperatorFuzz, RandomCalls) {
  fuzzGenerated(
      fuzzCount(10'000), [](std::mt19937_64& random) { return randomBytes(random, 160); },
      operatorCallTarget);
}

// Random numbers leave operators out.
TEST_F(OperatorFuzz, EachOperator) {
  const size_t count = fuzzedOperators().size();
  ASSERT_GT(count, 2000u);
  ASSERT_LT(count, size_t{1} << 16);
  size_t next = 0;
  fuzzGenerated(
      count * 2,
      [&](std::mt19937_64& random) {
        const size_t op = next++ % count;
        return std::string{static_cast<char>(op >> 8), static_cast<char>(op)} +
               randomBytes(random, 160);
      },
      operatorCallTarget);
}

// The check of results tells a value that it cannot look through from one of a wrong type.
TEST_F(OperatorFuzz, ResultsMayNestWithoutEnd) {
  static const OperatorHandle kCopy("aten::list", "t");
  const Operator& copy = kCopy.op();
  TypeBindings any, numbers;
  any.emplace("t", types::Any());
  numbers.emplace("t", types::Int());
  const IValue ring(makeList(types::Any()));
  ring.toList().elements.push_back(ring);
  operator_fuzz::checkResults(copy, {ring}, any);
  ring.toList().elements.clear();
  const IValue texts(makeList(types::String(), {IValue("a")}));
  EXPECT_THROW(operator_fuzz::checkResults(copy, {texts}, numbers), InternalError);
}

}  // namespace
}  // namespace wick::operator_fuzz
