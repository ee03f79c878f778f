// What random programs found.
#include "core/tensor.h"
#include "tests/frontend/robustness_testing.h"

namespace wick {
namespace {

TEST(Robustness, ReturnInsideWithBeforeItsVariablesAreRead) {
  const char* program = R"(def scaled(x: int, y: float) -> float:
    with torch.no_grad():
        v = x + 1
        if x == 2:
            y *= 2.0
            return 4.0
        if v == y:
            v = 7
    return y + v

def main():
    return scaled(2, 1.0), scaled(3, 4.0), scaled(5, 1.5)
)";
  EXPECT_EQ(resultOf(program), "(4.0, 11.0, 7.5)");
}

TEST(Robustness, StringsAndListsStayWithinTheAllocationLimit) {
  setAllocationLimit(size_t{32} << 20);
  auto refusal = [](const std::string& statement) {
    return refusalOf<RuntimeError>([&] {
      resultOf("def main():\n    s = 'ab'\n    l = [1]\n    for i in range(100):\n        " +
               statement + "\n    return len(s) + len(l)\n");
    });
  };
  for (const char* statement :
       {"s = s + s", "s += s", "s = s * 2", "s = f'{s}{s}'", "s = '{}{}'.format(s, s)",
        "s = '%s%s' % (s, s)", "s = ','.join([s, s])", "s = s.replace('a', 'aa')", "l = l + l",
        "l += l", "l.extend(l)", "l = l * 2", "l *= 2"}) {
    EXPECT_NE(refusal(statement).find("not enough memory"), std::string::npos)
        << statement << ": " << refusal(statement);
  }
  setAllocationLimit(0);
}

}  // namespace
}  // namespace wick
