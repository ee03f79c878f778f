// Checks that shape rules say nothing wrong, by random calls of operators:
//   bazel run -c opt //tests/optimizer:check_types -- [COUNT [NAME]]
// COUNT calls of each operator that has a rule, or of the ones whose names contain NAME. Prints
// failures, operators whose results the rules did not know although they knew the inputs, and how
// many have no rule; the exit code is 1 when something was wrong.
#include <fmt/core.h>

#include <cstdlib>

#include "tests/optimizer/check_types.h"

int main(int argc, char** argv) {
  uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  std::string wanted = argc > 2 ? argv[2] : "";
  constexpr size_t kMaxShown = 2;
  std::map<std::string, wick::TypeCheckCounts> counts;
  size_t failures = 0;
  for (const std::string& name : wick::operatorsWithRules()) {
    if (name.find(wanted) == std::string::npos) continue;
    std::vector<std::string> wrong = wick::checkOperatorTypes(name, 1, count, counts);
    failures += wrong.size();
    for (size_t i = 0; i < wrong.size() && i < kMaxShown; ++i) fmt::print("{}\n", wrong[i]);
  }
  size_t never = 0;
  for (const auto& [name, c] : counts) {
    if (c.calls == 0) {
      ++never;
      fmt::print("never called: {}\n", name);
    } else if (c.dtypes < c.complete || c.ranks < c.complete || c.sizes < c.complete) {
      fmt::print("{}: of {} calls with known inputs knew {} dtypes, {} ranks, {} sizes\n", name,
                 c.complete, c.dtypes, c.ranks, c.sizes);
    }
  }
  std::vector<std::string> without = wick::operatorsWithoutRules();
  if (argc > 3) {
    for (const std::string& name : without) fmt::print("without a rule: {}\n", name);
  }
  fmt::print("{} operators with rules, {} never called; {} without; {} failures\n", counts.size(),
             never, without.size(), failures);
  return failures == 0 ? 0 : 1;
}
