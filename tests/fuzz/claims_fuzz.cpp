#include "tests/fuzz/claims_target.h"
#include "tests/fuzz/mutate.h"

namespace wick::claims_fuzz {
namespace {

void fuzzChoices(size_t usual, const std::function<void(const std::string&)>& target) {
  fuzzGenerated(
      fuzzCount(usual),
      [](std::mt19937_64& random) {
        std::string bytes(8 + random() % 120, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        return bytes;
      },
      target);
}

TEST(Claims, DefaultValues) {
  fuzzChoices(1'000, defaultValuesTarget);
}
TEST(Claims, Casts) {
  fuzzChoices(1'000, castsTarget);
}
TEST(Claims, FileConstants) {
  fuzzChoices(300, fileConstantsTarget);
}
TEST(Claims, Texts) {
  fuzzChoices(300, textsTarget);
}

// Generators that write what does not compile would find nothing.
TEST(Claims, ManyProgramsCompile) {
  std::mt19937_64 random(7);
  int compiled[3] = {};
  for (int i = 0; i < 300; ++i) {
    std::string bytes(100, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string programs[] = {defaultValuesProgram(bytes), castsProgram(bytes, false),
                                    textsProgram(bytes)};
    for (size_t k = 0; k < 3; ++k) {
      try {
        compileSource(programs[k], "fuzz.py");
        ++compiled[k];
      } catch (const Error&) {
      }
    }
  }
  EXPECT_GT(compiled[0], 60);
  EXPECT_GT(compiled[1], 60);
  EXPECT_GT(compiled[2], 60);
}

}  // namespace
}  // namespace wick::claims_fuzz
