// Program text to tokens. The lexer is Python's: it injects TK_INDENT, TK_DEDENT and TK_NEWLINE,
// which unmatched opening brackets switch off, so that a parser treats them like `{`, `}` and `;`.
//
// The kind of a token and the kind of a Tree are one type, int. A one-character token's kind is
// that character; all others stand in WICK_FORALL_TOKEN_KINDS.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/source_range.h"

namespace wick {

// _(kind, name in messages and s-expressions, spelling of a token with a fixed spelling)
#define WICK_FORALL_TOKEN_KINDS(_)             \
  /* tokens without a fixed spelling */        \
  _(TK_EOF, "end of input", "")                \
  _(TK_NEWLINE, "newline", "")                 \
  _(TK_INDENT, "indent", "")                   \
  _(TK_DEDENT, "dedent", "")                   \
  _(TK_IDENT, "ident", "")                     \
  _(TK_NUMBER, "number", "")                   \
  _(TK_STRINGLITERAL, "string_literal", "")    \
  /* operators */                              \
  _(TK_ARROW, "->", "->")                      \
  _(TK_DOTS, "...", "...")                     \
  _(TK_WALRUS, ":=", ":=")                     \
  _(TK_EQ, "==", "==")                         \
  _(TK_NE, "!=", "!=")                         \
  _(TK_LE, "<=", "<=")                         \
  _(TK_GE, ">=", ">=")                         \
  _(TK_POW, "**", "**")                        \
  _(TK_FLOOR_DIV, "//", "//")                  \
  _(TK_LSHIFT, "<<", "<<")                     \
  _(TK_RSHIFT, ">>", ">>")                     \
  _(TK_PLUS_EQ, "+=", "+=")                    \
  _(TK_MINUS_EQ, "-=", "-=")                   \
  _(TK_TIMES_EQ, "*=", "*=")                   \
  _(TK_DIV_EQ, "/=", "/=")                     \
  _(TK_MOD_EQ, "%=", "%=")                     \
  _(TK_MATMUL_EQ, "@=", "@=")                  \
  _(TK_AND_EQ, "&=", "&=")                     \
  _(TK_OR_EQ, "|=", "|=")                      \
  _(TK_XOR_EQ, "^=", "^=")                     \
  _(TK_POW_EQ, "**=", "**=")                   \
  _(TK_FLOOR_DIV_EQ, "//=", "//=")             \
  _(TK_LSHIFT_EQ, "<<=", "<<=")                \
  _(TK_RSHIFT_EQ, ">>=", ">>=")                \
  /* keywords */                               \
  _(TK_DEF, "def", "def")                      \
  _(TK_CLASS_DEF, "class", "class")            \
  _(TK_IF, "if", "if")                         \
  _(TK_ELIF, "elif", "elif")                   \
  _(TK_ELSE, "else", "else")                   \
  _(TK_WHILE, "while", "while")                \
  _(TK_FOR, "for", "for")                      \
  _(TK_IN, "in", "in")                         \
  _(TK_NOT, "not", "not")                      \
  _(TK_AND, "and", "and")                      \
  _(TK_OR, "or", "or")                         \
  _(TK_IS, "is", "is")                         \
  _(TK_LAMBDA, "lambda", "lambda")             \
  _(TK_RETURN, "return", "return")             \
  _(TK_RAISE, "raise", "raise")                \
  _(TK_ASSERT, "assert", "assert")             \
  _(TK_PASS, "pass", "pass")                   \
  _(TK_BREAK, "break", "break")                \
  _(TK_CONTINUE, "continue", "continue")       \
  _(TK_DELETE, "del", "del")                   \
  _(TK_WITH, "with", "with")                   \
  _(TK_AS, "as", "as")                         \
  _(TK_GLOBAL, "global", "global")             \
  _(TK_TRUE, "True", "True")                   \
  _(TK_FALSE, "False", "False")                \
  _(TK_NONE, "None", "None")                   \
  /* kinds of trees that are no tokens */      \
  _(TK_STRING, "string", "")                   \
  _(TK_LIST, "list", "")                       \
  _(TK_OPTION, "option", "")                   \
  _(TK_DECL, "decl", "")                       \
  _(TK_PARAM, "param", "")                     \
  _(TK_ASSIGN, "assign", "")                   \
  _(TK_AUG_ASSIGN, "aug_assign", "")           \
  _(TK_WITH_ITEM, "with_item", "")             \
  _(TK_EXPR_STMT, "expr_stmt", "")             \
  _(TK_IMPORT, "import", "")                   \
  _(TK_ALIAS, "alias", "")                     \
  _(TK_VAR, "variable", "")                    \
  _(TK_CONST, "const", "")                     \
  _(TK_JOINED_STR, "joined_str", "")           \
  _(TK_FORMATTED_VALUE, "formatted_value", "") \
  _(TK_APPLY, "apply", "")                     \
  _(TK_ATTRIBUTE, "attribute", "")             \
  _(TK_SUBSCRIPT, "subscript", "")             \
  _(TK_SLICE_EXPR, "slice", "")                \
  _(TK_IF_EXPR, "if_expr", "")                 \
  _(TK_NOTIN, "not in", "")                    \
  _(TK_ISNOT, "is not", "")                    \
  _(TK_COMPARE_CHAIN, "compare_chain", "")     \
  _(TK_UNARY_MINUS, "unary_minus", "")         \
  _(TK_UNARY_PLUS, "unary_plus", "")           \
  _(TK_STARRED, "starred", "")                 \
  _(TK_LIST_LITERAL, "list_literal", "")       \
  _(TK_TUPLE_LITERAL, "tuple_literal", "")     \
  _(TK_DICT_LITERAL, "dict_literal", "")       \
  _(TK_LIST_COMP, "list_comp", "")             \
  _(TK_DICT_COMP, "dict_comp", "")             \
  _(TK_COMP_FOR, "comp_for", "")               \
  _(TK_BROKEN, "broken", "")

enum TokenKind : int {
  TK_FIRST_ = 255,  // one-character tokens are their own kinds, below this
#define WICK_DECLARE_KIND(kind, name, spelling) kind,
  WICK_FORALL_TOKEN_KINDS(WICK_DECLARE_KIND)
#undef WICK_DECLARE_KIND
};

// "+", "def", "variable": the name of a kind in messages and in printed trees.
std::string kindToString(int kind);

struct Token {
  int kind = TK_EOF;
  SourceRange range;
  // What follows `# type:` in a comment between the token before this one and this one (the first
  // such comment; `# type: ignore` does not count). Without one, not valid().
  SourceRange type_comment;

  // The characters that made the token; they live as long as its Source. A string literal's text
  // carries its prefix and quotes. TK_NEWLINE, TK_INDENT, TK_DEDENT and TK_EOF have unspecified
  // text.
  std::string_view text() const { return range.text(); }
  // Whether it is written as a name: an identifier or a keyword.
  bool isWord() const;
  // For messages: "'+'", "identifier 'x'", "newline".
  std::string describe() const;
};

// Walks the tokens of one Source. Every function that reads a token throws CompileError where the
// text is no token: an unexpected character, an unterminated string, an ill-formed number, an
// indentation that matches no outer one, brackets that do not match. For one thread.
class Lexer {
 public:
  enum class Mode {
    kProgram,     // lines and indentation matter
    kExpression,  // as inside brackets: neither newlines nor indentation
  };

  // Python's tab stops.
  static constexpr size_t kTabWidth = 8;

  explicit Lexer(std::shared_ptr<const Source> source, Mode mode = Mode::kProgram);
  // Only the bytes [start, end) of the source; ranges still count from its beginning.
  Lexer(std::shared_ptr<const Source> source, size_t start, size_t end, Mode mode);

  // The current token and the one after it. At the end both stay TK_EOF. The references hold until
  // the next call that advances.
  const Token& cur();
  const Token& lookahead();
  // Makes the current token, a keyword, the identifier that it is written as.
  void takeAsIdentifier();
  // Advances and returns the token that was current.
  Token next();
  // Advances when the current token is of this kind.
  bool nextIf(int kind);
  // Advances past a token of this kind, or throws CompileError "expected ... but found ...".
  Token expect(int kind);

  // For going on after an error. The number of open blocks, the whole text's being the first; where
  // the current token begins, or the text that is no token.
  size_t level() const { return indents_.size(); }
  size_t position() const { return cur_ ? cur_->range.start() : pos_; }
  // Goes on with a line, given by the offset of its first character, outside of brackets and inside
  // of the `level` outermost of the open blocks.
  void resume(size_t line_start, size_t level);
  // Whether an error was thrown after which the next token can be read as if nothing had happened:
  // an indentation that matches no outer one. Asking forgets it.
  bool takeRepaired() { return std::exchange(repaired_, false); }

  const std::shared_ptr<const Source>& source() const { return source_; }

 private:
  Token lex();
  Token lexInLine(size_t start);
  Token make(int kind, size_t start, size_t end);
  bool skipBlank();
  void skipComment();
  Token lexIndentation();
  Token lexNumber(size_t start);
  Token lexString(size_t start, size_t quote);
  Token lexIdentifier(size_t start);
  Token lexOperator(size_t start);
  size_t identifierEnd(size_t start) const;
  size_t digitsEnd(size_t at, int base) const;
  char peek(size_t offset) const { return offset < end_ ? text_[offset] : '\0'; }
  [[noreturn]] void fail(size_t start, size_t end, const std::string& message) const;

  std::shared_ptr<const Source> source_;
  std::string_view text_;
  size_t pos_;
  size_t end_;
  Mode mode_;
  std::optional<Token> cur_;
  std::optional<Token> ahead_;
  std::vector<size_t> brackets_;  // offsets of the unmatched opening brackets
  std::vector<size_t> indents_;   // columns of the open blocks; the first is that of the first line
  size_t pending_dedents_ = 0;
  bool at_line_start_ = false;
  bool repaired_ = false;
  bool line_has_token_ = false;  // a TK_NEWLINE is due at the end of this line
  SourceRange type_comment_;     // waits for the next token
};

}  // namespace wick
