// Whatever compiles must verify, survive the pipeline and lowering, print to text that parses, and
// run to an end or an error within its limits.
#include <cstdlib>

#include "tests/fuzz/compile_target.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/programs.h"
#include "tests/fuzz/random_program.h"

namespace wick::emitter_fuzz {
namespace {

class EmitterFuzz : public testing::Test {
 protected:
  void SetUp() override { setAllocationLimit(size_t{64} << 20); }
  void TearDown() override { setAllocationLimit(0); }
};

// A program that a target left behind, given by WICK_FUZZ_FILE.
TEST_F(EmitterFuzz, Replay) {
  const char* path = std::getenv("WICK_FUZZ_FILE");
  if (path == nullptr) GTEST_SKIP() << "WICK_FUZZ_FILE names no file";
  std::ifstream file(path);
  std::string program((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(failureOf(program, compileTarget), "");
}

TEST_F(EmitterFuzz, RandomPrograms) {
  fuzzGenerated(
      fuzzShare(2'000, 3), [](std::mt19937_64& random) { return RandomProgram(random).make(); },
      compileTarget);
}

// Programs that compile, with one or a few words exchanged, dropped or repeated.
TEST_F(EmitterFuzz, ChangedWords) {
  fuzzGenerated(
      fuzzShare(2'000, 17),
      [](std::mt19937_64& random) { return changeWords(RandomProgram(random).make(), random); },
      compileTarget);
}

TEST_F(EmitterFuzz, ChangedBytes) {
  std::vector<std::string> seeds = seedPrograms();
  seeds.insert(seeds.end(), compilingPrograms().begin(), compilingPrograms().end());
  fuzz(seeds, fuzzShare(2'000, 80), compileTarget);
}

}  // namespace
}  // namespace wick::emitter_fuzz
