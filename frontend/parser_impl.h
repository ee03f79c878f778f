// The recursive-descent parser behind frontend/parser.h. One object parses one text once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/lexer.h"
#include "frontend/parser.h"
#include "frontend/tree_views.h"

namespace wick::detail {

// How tightly operators bind, loosest first. parseExpr(p) reads an expression whose operators all
// bind at least as tightly as p.
enum Precedence : int {
  kAnyExpr,  // lambda
  kTernary,
  kOr,
  kAnd,
  kNot,
  kComparison,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPower,
  kPostfix,
};

class ParserImpl {
 public:
  ParserImpl(std::shared_ptr<const Source> source, Lexer::Mode mode);

  // parser_recovery.cpp: goes on after errors and adds them to `errors`.
  List<Stmt> module(std::vector<CompileError>& errors);
  // parser.cpp
  Def singleFunction();
  Expr singleExpr();

 private:
  // Counts one level of recursion for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(ParserImpl& parser);
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ParserImpl& parser_;
  };

  // Reads from another stretch of the same source for as long as it lives.
  class Excursion {
   public:
    Excursion(ParserImpl& parser, size_t start, size_t end);
    ~Excursion();
    Excursion(const Excursion&) = delete;
    Excursion& operator=(const Excursion&) = delete;

   private:
    ParserImpl& parser_;
    Lexer lexer_;
    Lexer* outer_lexer_;
    size_t outer_last_end_;
  };

  // parser.cpp: tokens
  const Token& cur() { return lexer_->cur(); }
  const Token& lookahead() { return lexer_->lookahead(); }
  Token next();
  bool nextIf(int kind);
  Token expect(int kind);
  void expectEnd(const char* after);
  // A word that is a keyword only where the grammar asks for it, such as `from`.
  bool atWord(const char* word);
  Ident ident();
  Ident makeIdent(const Token& token);
  // From `start` to the end of the last token read.
  SourceRange rangeFrom(const SourceRange& start) const;
  SourceRange rangeFrom(size_t start) const;
  [[noreturn]] void failNesting(const SourceRange& range);
  [[noreturn]] void failExpected(const std::string& what);
  // Throws when the tree is nested too deep, and gives it back otherwise.
  template <class T>
  T checkHeight(T view);

  // parser_expressions.cpp
  Expr expr(int precedence = kAnyExpr);
  Expr unary(int precedence);
  Expr postfix(Expr value);
  Expr primary();
  Expr comparison(const Expr& first);
  Expr ternary(const Expr& true_expr);
  Expr lambda();
  // `*a` or an expression.
  Expr starOr(int precedence = kAnyExpr);
  // An expression, or a tuple if a comma follows it.
  Expr exprOrTuple(int precedence = kAnyExpr);
  bool atExprEnd();
  Expr parenthesized();
  Expr listDisplay();
  Expr dictDisplay();
  List<CompFor> generators();
  Expr apply(const Expr& callee);
  Expr subscript(const Expr& value);
  Expr subscriptItem();
  enum class Use { kAssign, kAugAssign, kAnnotate, kLoop, kWith, kDelete };
  void checkTarget(const Expr& target, Use use, bool nested = false);

  // parser_strings.cpp
  struct StringParts;
  Expr strings();
  void stringToken(const Token& token, StringParts& parts);
  size_t escape(size_t at, size_t end, std::string& out);
  void plainText(size_t start, size_t end, bool raw, StringParts& parts);
  void formatText(size_t start, size_t end, bool raw, int level, StringParts& parts);
  // Both take the offset after an opening brace and return that after the closing one, or the end.
  size_t replacementField(size_t start, size_t end, bool raw, int level, StringParts& parts);
  size_t skipFormatSpec(size_t start, size_t end);
  size_t skipFieldExpr(size_t start, size_t end);
  SourceRange rangeOf(size_t start, size_t end) const { return SourceRange(source_, start, end); }

  // parser_signatures.cpp
  Decl params(int closer, bool annotated);
  Param param(bool annotated, bool kwarg_only);
  void applyTypeComment(std::vector<Param>& params);
  void checkParams(const std::vector<Param>& params);
  Expr typeFromComment(const SourceRange& comment);
  Decl signatureFromComment(const SourceRange& comment);
  Decl signature();
  Decl mergeSignature(const Decl& decl, const Decl& comment);

  // parser_statements.cpp
  void statement(std::vector<Stmt>& out);
  void simpleLine(std::vector<Stmt>& out);
  Stmt simpleStatement();
  Stmt exprStatement();
  Stmt annotatedAssignment(const Expr& target);
  Stmt assignment(const Expr& first);
  Stmt importStatement();
  Stmt fromImport();
  Ident dottedName();
  Alias importAlias(bool dotted);
  Stmt raiseStatement();
  Stmt assertStatement();
  Stmt deleteStatement();
  Stmt globalStatement();
  Stmt decorated();
  Def def(const std::vector<Expr>& decorators);
  ClassDef classDef(const std::vector<Expr>& decorators);
  Stmt ifStatement();
  Stmt whileStatement();
  Stmt forStatement();
  Stmt withStatement();
  // The colon and what follows it: an indented block, or statements on the same line. A type
  // comment between the colon and the first statement goes to `type_comment`.
  List<Stmt> block(SourceRange* type_comment = nullptr);
  // Moves past a block and reads nothing but where it ends.
  List<Stmt> skippedBlock(SourceRange& type_comment);
  void refuseLoopElse(const char* loop);

  // parser_recovery.cpp
  // Up to the end of the block or of the text. With `errors_`, a Broken statement stands for each
  // one that cannot be read.
  void statements(std::vector<Stmt>& out);
  // What belongs to a statement that could not be read: the block below it, its `else`. True when
  // there was some.
  bool orphan();
  // Adds an error of the statement that began at `start`, `moved` when tokens of it were read, and
  // moves past the line that has it, unless what was refused begins another statement.
  Stmt recover(const CompileError& error, size_t start, bool moved);
  Stmt note(const CompileError& found, size_t start);
  bool canRead();
  bool enoughErrors() const;
  // Whether the next token begins a line.
  bool atLineStart() const {
    return last_kind_ == TK_NEWLINE || last_kind_ == TK_INDENT || last_kind_ == TK_DEDENT;
  }

  std::shared_ptr<const Source> source_;
  Lexer own_lexer_;
  Lexer* lexer_;
  size_t last_end_ = 0;  // the end of the last token read that is text
  size_t depth_ = 0;

  // For recovery. Without `errors_` the first error is thrown.
  std::vector<CompileError>* errors_ = nullptr;
  int last_kind_ = TK_NEWLINE;  // of the last token read
  size_t tokens_read_ = 0;
  size_t statement_ = 0;   // where the last top-level statement began
  size_t line_start_ = 0;  // the first token of the logical line, and the blocks around it
  size_t line_level_ = 0;
  // The line whose place was refused; what else is wrong with it comes from there.
  size_t misplaced_line_ = std::string::npos;
  bool unexpected_ = false;       // the error is a token where another was expected
  bool gives_up_ = false;         // the error concerns the text as a whole
  bool opens_block_ = true;       // a block may belong to the last line that had an error
  bool decorates_ = false;        // that line was a decorator
  bool quiet_ = false;            // inside of a block that belongs to nothing
  bool skips_methods_ = false;    // inside of a class whose methods are not read
  bool declares_fields_ = false;  // inside of a class and of none of its methods
  bool after_error_ = false;      // the statement before this one could not be read
};

template <class T>
T ParserImpl::checkHeight(T view) {
  if (view.tree()->height() > kMaxTreeHeight) {
    throwCompileError(view.range(), "the program chains more than {} operators or branches here",
                      kMaxTreeHeight);
  }
  return view;
}

}  // namespace wick::detail
