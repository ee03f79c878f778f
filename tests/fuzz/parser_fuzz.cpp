#include "frontend/parser.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/programs.h"

namespace wick::parser_fuzz {
namespace {

TEST(Fuzz, Parser) {
  fuzz(seedPrograms(), fuzzCount(10'000), [](const std::string& input) {
    for (Stmt statement : Parser(input).parseModule()) {
      ASSERT_LE(statement.tree()->height(), kMaxTreeHeight);
      toString(statement.tree());
    }
  });
}

TEST(Fuzz, Expressions) {
  fuzz(
      {"a + b[1:2, ...] if not c else f(x, k=-1.5e3j)", "Dict[str, Tuple[int, __torch__.a.B]]",
       "[f'{x!r:>{w}}' \"\\x41\" for x, y in z if x < y <= 3]", "lambda x, y=1: (x ** -y, {1: 2})"},
      fuzzCount(10'000),
      [](const std::string& input) { toString(Parser(input).parseExpression().tree()); });
}

}  // namespace
}  // namespace wick::parser_fuzz
