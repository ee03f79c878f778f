#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "core/allocator.h"
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

// Leaves small blocks of memory that hold the byte to whoever asks next.
void leaveBytes(int byte) {
  constexpr size_t kBlocks = 12, kLargest = 4096;
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t size = 64; size <= kLargest; size += std::max<size_t>(64, std::bit_floor(size) / 8)) {
    for (size_t i = 0; i < kBlocks; ++i) blocks.emplace_back(allocateBlock(size), size);
  }
  for (auto [block, size] : blocks) std::memset(block, byte, size);
  for (auto [block, size] : blocks) freeBlock(block, size);
}

// Adds the bytes of the tensors that a value holds, with those between the elements: views reach them.
void addBytes(const IValue& value, std::string& to, int depth = 4) {
  if (value.isTensor() && value.toTensor().defined()) {
    const Tensor& t = value.toTensor();
    if (t.kind() != TensorKind::Dense || !t.device().isCpu() || !t.storage()->data()) return;
    to.append(static_cast<const char*>(t.storage()->data()), t.storage()->bytes());
  } else if ((value.isList() || value.isTuple()) && depth > 0) {
    for (const IValue& v : value.elements()) addBytes(v, to, depth - 1);
  }
}

// Returns the bytes that a call leaves in results and arguments, over memory that held the byte; nothing when it raises.
std::string bytesOver(const std::string& input, int byte) {
  ByteSource bytes(input);
  const Operator& op = chosenOperator(bytes);
  defaultGenerator().seed(1);
  const GradModeGuard mode(false);
  leaveBytes(0);
  OperatorArguments source(bytes, op.schema());
  TypeBindings bindings;
  std::vector<IValue> arguments = fittingArguments(bytes, op.schema(), source, bindings);
  const std::vector<IValue> held = arguments;
  std::vector<IValue> results(op.schema().returns().size());
  Budget::Bounds bounds;
  bounds.deadline = std::chrono::steady_clock::now() + kTime;
  bounds.memory = kMemory;
  Budget budget(std::move(bounds));
  const BudgetScope scope(&budget);
  leaveBytes(byte);
  op.call(arguments.data(), arguments.size(), results.data(), results.size());
  std::string left;
  for (const std::vector<IValue>& values : {results, held}) {
    for (const IValue& v : values) addBytes(v, left);
  }
  return left;
}

// Another program may have left there whatever it computed.
TEST_F(OperatorFuzz, ResultsShowNothingOfOldMemory) {
  setWarningHandler([](const std::string&) {});
  const size_t operators = fuzzedOperators().size();
  std::mt19937_64 random(7);
  const size_t count = fuzzCount(static_cast<int>(operators) * 3);
  size_t compared = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t op = i % operators;
    // Ranges are numbered.
    if (fuzzedOperators()[op]->schema().name().starts_with("profiler::")) continue;
    const std::string input =
        std::string{static_cast<char>(op >> 8), static_cast<char>(op)} + randomBytes(random, 160);
    try {
      const std::string one = bytesOver(input, 0x3f);
      EXPECT_TRUE(one == bytesOver(input, 0x41)) << operatorOf(input).schema().str();
      ++compared;
    } catch (const std::exception&) {
      // Most arguments fit no operator.
    }
  }
  EXPECT_GT(compared, count / 10);
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
