#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/import_target.h"
#include "tests/fuzz/mutate.h"

namespace wick::import_fuzz {
namespace {

std::string moduleFile() {
  std::ifstream file("tests/serialization/data/small_module.pt", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

constexpr const char* kSource = R"(class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.M,
    x: Tensor,
    n: int) -> Tuple[Tensor, List[Optional[int]]]:
    l = annotate(List[Optional[int]], [1, None])
    y = x
    for i in range(n):
      y0 = torch.add(torch.mul(y, 2.5), x, alpha=i)
      _0 = torch.append(l, __torch__.helper(i, ))
      y = y0
    if torch.gt(n, 1):
      z = torch.sum(y, [-1], True)
    else:
      z = torch.relu(y)
    return (z, l)
class P(NamedTuple):
  a : int
  b : Dict[str, Tensor]
def helper(n: int) -> int:
  p = __torch__.P(n, annotate(Dict[str, Tensor], {}))
  return torch.sub(p.a, torch.len(p.b))
)";

class ImportFuzz : public testing::Test {
 protected:
  void SetUp() override { setAllocationLimit(size_t{64} << 20); }
  void TearDown() override { setAllocationLimit(0); }
};

TEST_F(ImportFuzz, Archives) {
  const std::string file = moduleFile();
  ASSERT_FALSE(file.empty());
  fuzz({file, archiveOfSource(kSource)}, fuzzShare(2'000, 40), loadAndRunTarget);
}

TEST_F(ImportFuzz, Sources) {
  fuzz({kSource}, fuzzShare(1'000, 30), sourceImportTarget);
  fuzzGenerated(
      fuzzShare(1'000, 30), [](std::mt19937_64& random) { return changeWords(kSource, random); },
      sourceImportTarget);
}

TEST_F(ImportFuzz, PrintedSources) {
  fuzz({kSource}, 0, printerTarget);
  fuzzGenerated(
      fuzzShare(2'000, 30), [](std::mt19937_64& random) { return changeWords(kSource, random); },
      printerTarget);
}

}  // namespace
}  // namespace wick::import_fuzz
