#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/exported_target.h"
#include "tests/fuzz/mutate.h"

namespace wick::exported_fuzz {
namespace {

// Programs of tests/exported/kit.tar.xz, which make_exported.py took out of it.
std::vector<std::string> programs() {
  std::ifstream file("tests/fuzz/exported_programs.txt", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> out;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find("\n####\n", start), text.size());
    out.push_back(text.substr(start, end - start));
    start = end + 6;
  }
  return out;
}

class ExportedFuzz : public testing::Test {
 protected:
  void SetUp() override { setAllocationLimit(size_t{64} << 20); }
  void TearDown() override { setAllocationLimit(0); }
};

TEST_F(ExportedFuzz, ProgramsAreRead) {
  ASSERT_GE(programs().size(), 10);
  for (const std::string& program : programs()) {
    const size_t border = program.find(kExportedBorder);
    const std::string file =
        exportedPackage(program.substr(0, border), program.substr(border + kExportedBorder.size()));
    EXPECT_NO_THROW(
        loadModule(copyBytes(std::as_bytes(std::span(file.data(), file.size()))), "fuzz"));
  }
}

TEST_F(ExportedFuzz, Values) {
  const std::vector<std::string> seeds = programs();
  ASSERT_GE(seeds.size(), 10);
  fuzz(seeds, 0, exportedProgramTarget);
  fuzzGenerated(
      fuzzShare(3'000, 80),
      [&](std::mt19937_64& random) {
        return changeExported(seeds[random() % seeds.size()], random);
      },
      exportedProgramTarget);
}

TEST_F(ExportedFuzz, Bytes) {
  ASSERT_FALSE(programs().empty());
  fuzz(programs(), fuzzShare(500, 20), exportedProgramTarget);
}

}  // namespace
}  // namespace wick::exported_fuzz
