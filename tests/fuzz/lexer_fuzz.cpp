#include "frontend/lexer.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/programs.h"

namespace wick::lexer_fuzz {
namespace {

TEST(Fuzz, Lexer) {
  fuzz(seedPrograms(), fuzzCount(10'000), [](const std::string& input) {
    for (Lexer::Mode mode : {Lexer::Mode::kProgram, Lexer::Mode::kExpression}) {
      Lexer lexer(std::make_shared<Source>(input), mode);
      int blocks = 0;
      for (Token token = lexer.next(); token.kind != TK_EOF; token = lexer.next()) {
        blocks += token.kind == TK_INDENT ? 1 : token.kind == TK_DEDENT ? -1 : 0;
        ASSERT_LE(token.range.start(), token.range.end());
        ASSERT_LE(token.range.end(), input.size());
        ASSERT_GE(blocks, 0);
      }
      ASSERT_EQ(blocks, 0);
    }
  });
}

}  // namespace
}  // namespace wick::lexer_fuzz
