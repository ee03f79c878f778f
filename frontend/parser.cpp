#include "frontend/parser.h"

#include <optional>

#include "core/error.h"
#include "core/stack.h"
#include "frontend/parser_impl.h"

namespace wick {

Parser::Parser(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

Parser::Parser(std::string text, std::string name)
    : source_(std::make_shared<Source>(std::move(text), std::move(name))) {}

namespace {

// For kMaxNesting levels.
constexpr size_t kParserStack = size_t{1} << 20;

template <class F>
auto parsed(F&& parse) {
  std::optional<decltype(parse())> result;
  withStack(kParserStack, [&] { result = parse(); });
  return *std::move(result);
}

}  // namespace

List<Stmt> Parser::parseModule() const {
  std::vector<CompileError> errors;
  List<Stmt> module = parseModule(errors);
  if (errors.empty()) return module;
  CompileError all = errors[0];
  for (size_t i = 1; i < errors.size(); ++i) all.append(errors[i]);
  throw all;
}

List<Stmt> Parser::parseModule(std::vector<CompileError>& errors) const {
  return parsed([&] { return detail::ParserImpl(source_, Lexer::Mode::kProgram).module(errors); });
}

Def Parser::parseFunction() const {
  return parsed(
      [&] { return detail::ParserImpl(source_, Lexer::Mode::kProgram).singleFunction(); });
}

Expr Parser::parseExpression() const {
  return parsed([&] { return detail::ParserImpl(source_, Lexer::Mode::kExpression).singleExpr(); });
}

namespace detail {

ParserImpl::ParserImpl(std::shared_ptr<const Source> source, Lexer::Mode mode)
    : source_(std::move(source)), own_lexer_(source_, mode), lexer_(&own_lexer_) {}

ParserImpl::Nesting::Nesting(ParserImpl& parser) : parser_(parser) {
  if (parser_.depth_ >= kMaxNesting) parser_.failNesting(parser_.cur().range);
  ++parser_.depth_;
}

ParserImpl::Excursion::Excursion(ParserImpl& parser, size_t start, size_t end)
    : parser_(parser),
      lexer_(parser.source_, start, end, Lexer::Mode::kExpression),
      outer_lexer_(parser.lexer_),
      outer_last_end_(parser.last_end_) {
  parser_.lexer_ = &lexer_;
  parser_.last_end_ = start;
}

ParserImpl::Excursion::~Excursion() {
  parser_.lexer_ = outer_lexer_;
  parser_.last_end_ = outer_last_end_;
}

Token ParserImpl::next() {
  Token token = lexer_->next();
  if (lexer_ == &own_lexer_) {
    if (atLineStart() && token.kind != TK_INDENT && token.kind != TK_DEDENT) {
      line_start_ = token.range.start();
      line_level_ = own_lexer_.level();
    }
    last_kind_ = token.kind;
    ++tokens_read_;
  }
  switch (token.kind) {
    case TK_NEWLINE:
    case TK_INDENT:
    case TK_DEDENT:
    case TK_EOF:
      break;
    default:
      last_end_ = token.range.end();
  }
  return token;
}

bool ParserImpl::nextIf(int kind) {
  if (cur().kind != kind) return false;
  next();
  return true;
}

Token ParserImpl::expect(int kind) {
  if (cur().kind != kind) {
    unexpected_ = true;
    lexer_->expect(kind);  // throws
  }
  return next();
}

void ParserImpl::expectEnd(const char* after) {
  if (cur().kind == TK_EOF) return;
  throwCompileError(cur().range, "expected nothing after {} but found {}", after, cur().describe());
}

bool ParserImpl::atWord(const char* word) {
  return cur().kind == TK_IDENT && cur().text() == word;
}

Ident ParserImpl::makeIdent(const Token& token) {
  return Ident::create(token.range, std::string(token.text()));
}

Ident ParserImpl::ident() {
  return makeIdent(expect(TK_IDENT));
}

SourceRange ParserImpl::rangeFrom(size_t start) const {
  return SourceRange(source_, start, std::max(start, last_end_));
}

SourceRange ParserImpl::rangeFrom(const SourceRange& start) const {
  return rangeFrom(start.start());
}

void ParserImpl::failNesting(const SourceRange& range) {
  gives_up_ = true;
  throwCompileError(range, "the program is nested deeper than {} levels here", kMaxNesting);
}

void ParserImpl::failExpected(const std::string& what) {
  const Token& found = cur();
  unexpected_ = true;
  throwCompileError(found.range, "expected {} but found {}", what, found.describe());
}

Def ParserImpl::singleFunction() {
  if (cur().kind != TK_DEF && cur().kind != '@') failExpected("'def'");
  std::vector<Stmt> statements;
  statement(statements);
  if (statements[0].kind() != TK_DEF) {
    throwCompileError(statements[0].range(), "expected a function but found a class");
  }
  expectEnd("the function");
  return Def(statements[0].tree());
}

Expr ParserImpl::singleExpr() {
  Expr result = exprOrTuple();
  expectEnd("the expression");
  return result;
}

}  // namespace detail
}  // namespace wick
