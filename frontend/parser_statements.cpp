// Statements.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "frontend/decorators.h"
#include "frontend/parser_impl.h"

namespace wick::detail {

namespace {

// The binary operator of an augmented assignment, or 0.
int augmentedOp(int kind) {
  switch (kind) {
    case TK_PLUS_EQ:
      return '+';
    case TK_MINUS_EQ:
      return '-';
    case TK_TIMES_EQ:
      return '*';
    case TK_DIV_EQ:
      return '/';
    case TK_MOD_EQ:
      return '%';
    case TK_MATMUL_EQ:
      return '@';
    case TK_AND_EQ:
      return '&';
    case TK_OR_EQ:
      return '|';
    case TK_XOR_EQ:
      return '^';
    case TK_POW_EQ:
      return TK_POW;
    case TK_FLOOR_DIV_EQ:
      return TK_FLOOR_DIV;
    case TK_LSHIFT_EQ:
      return TK_LSHIFT;
    case TK_RSHIFT_EQ:
      return TK_RSHIFT;
    default:
      return 0;
  }
}

SourceRange coverAll(const std::vector<Stmt>& statements, const SourceRange& otherwise) {
  if (statements.empty()) return otherwise;
  return SourceRange::cover(statements.front().range(), statements.back().range());
}

// Sets a flag for as long as it lives.
class Restored {
 public:
  Restored(bool& flag, bool value) : flag_(flag), before_(std::exchange(flag, value)) {}
  ~Restored() { flag_ = before_; }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace

void ParserImpl::statement(std::vector<Stmt>& out) {
  Nesting nesting(*this);
  if (after_error_ && orphan()) return;
  after_error_ = false;
  // A field of an archive may have a keyword's name, as a module of a ModuleDict may.
  if (declares_fields_ && cur().isWord() && lookahead().kind == ':') lexer_->takeAsIdentifier();
  switch (cur().kind) {
    case TK_IF:
      out.push_back(checkHeight(ifStatement()));
      return;
    case TK_WHILE:
      out.push_back(checkHeight(whileStatement()));
      return;
    case TK_FOR:
      out.push_back(checkHeight(forStatement()));
      return;
    case TK_WITH:
      out.push_back(checkHeight(withStatement()));
      return;
    case TK_DEF:
      out.push_back(checkHeight(def({})));
      return;
    case TK_CLASS_DEF:
      out.push_back(checkHeight(classDef({})));
      return;
    case '@':
      out.push_back(checkHeight(decorated()));
      return;
    case TK_INDENT:
      throwCompileError(cur().range, "expected a statement but found an unexpected indentation");
    case TK_ELIF:
    case TK_ELSE:
      throwCompileError(cur().range, "expected a statement but found {} without an 'if'",
                        cur().describe());
    default:
      simpleLine(out);
  }
}

void ParserImpl::simpleLine(std::vector<Stmt>& out) {
  do {
    out.push_back(checkHeight(simpleStatement()));
  } while (nextIf(';') && cur().kind != TK_NEWLINE);
  expect(TK_NEWLINE);
}

Stmt ParserImpl::simpleStatement() {
  SourceRange start = cur().range;
  auto expressionFollows = [&] { return cur().kind != TK_NEWLINE && cur().kind != ';'; };
  switch (cur().kind) {
    case TK_RETURN: {
      next();
      Expr value = expressionFollows() ? exprOrTuple() : Expr(Tree::create(TK_NONE, start));
      return Return::create(rangeFrom(start), value);
    }
    case TK_RAISE:
      return raiseStatement();
    case TK_ASSERT:
      return assertStatement();
    case TK_DELETE:
      return deleteStatement();
    case TK_GLOBAL:
      return globalStatement();
    case TK_PASS:
      return Pass::create(next().range);
    case TK_BREAK:
      return Break::create(next().range);
    case TK_CONTINUE:
      return Continue::create(next().range);
    default:
      break;
  }
  if (atWord("import") && lookahead().kind == TK_IDENT) return importStatement();
  if (atWord("from")) {
    int after = lookahead().kind;
    if (after == TK_IDENT || after == '.' || after == TK_DOTS) return fromImport();
  }
  return exprStatement();
}

Stmt ParserImpl::exprStatement() {
  Expr first = exprOrTuple();
  if (cur().kind == ':') return annotatedAssignment(first);
  if (cur().kind == '=') return assignment(first);
  if (int op = augmentedOp(cur().kind)) {
    checkTarget(first, Use::kAugAssign);
    next();
    Expr value = exprOrTuple();
    return AugAssign::create(rangeFrom(first.range()), first, op, value);
  }
  return ExprStmt::create(first.range(), first);
}

// target: type, target: type = value
Stmt ParserImpl::annotatedAssignment(const Expr& target) {
  checkTarget(target, Use::kAnnotate);
  expect(':');
  Expr type = expr();
  SourceRange here = cur().range;
  Maybe<Expr> value = Maybe<Expr>::create(here);
  if (nextIf('=')) value = Maybe<Expr>::create(here, exprOrTuple());
  return Assign::create(rangeFrom(target.range()), List<Expr>::create(target.range(), {target}),
                        value, Maybe<Expr>::create(type.range(), type));
}

// target = target = value
Stmt ParserImpl::assignment(const Expr& first) {
  std::vector<Expr> chain = {first};
  while (cur().kind == '=') {
    checkTarget(chain.back(), Use::kAssign);
    next();
    chain.push_back(exprOrTuple());
  }
  Expr value = chain.back();
  chain.pop_back();
  SourceRange range = rangeFrom(first.range());
  Maybe<Expr> type = Maybe<Expr>::create(range);
  SourceRange comment = cur().type_comment;
  if (comment.valid() && cur().kind == TK_NEWLINE && chain.size() == 1) {
    type = Maybe<Expr>::create(comment, typeFromComment(comment));
  }
  return Assign::create(range, List<Expr>::create(range, chain),
                        Maybe<Expr>::create(value.range(), value), type);
}

Stmt ParserImpl::raiseStatement() {
  SourceRange start = expect(TK_RAISE).range;
  if (cur().kind == TK_NEWLINE || cur().kind == ';') {
    return Raise::create(start, Maybe<Expr>::create(start));
  }
  Expr value = expr();
  if (atWord("from")) {
    // The cause changes Python's traceback only; an exception of TorchScript carries none.
    next();
    expr();
  }
  return Raise::create(rangeFrom(start), Maybe<Expr>::create(value.range(), value));
}

Stmt ParserImpl::assertStatement() {
  SourceRange start = expect(TK_ASSERT).range;
  Expr test = expr();
  SourceRange here = cur().range;
  Maybe<Expr> message = Maybe<Expr>::create(here);
  if (nextIf(',')) message = Maybe<Expr>::create(here, expr());
  return Assert::create(rangeFrom(start), test, message);
}

Stmt ParserImpl::deleteStatement() {
  SourceRange start = expect(TK_DELETE).range;
  std::vector<Expr> targets;
  do {
    targets.push_back(expr());
    checkTarget(targets.back(), Use::kDelete);
  } while (nextIf(',') && !atExprEnd());
  SourceRange range = rangeFrom(start);
  return Delete::create(range, List<Expr>::create(range, targets));
}

Stmt ParserImpl::globalStatement() {
  SourceRange start = expect(TK_GLOBAL).range;
  std::vector<Ident> names;
  do {
    names.push_back(ident());
  } while (nextIf(','));
  SourceRange range = rangeFrom(start);
  return Global::create(range, List<Ident>::create(range, names));
}

Stmt ParserImpl::importStatement() {
  SourceRange start = next().range;
  std::vector<Alias> names;
  do {
    names.push_back(importAlias(/*dotted=*/true));
  } while (nextIf(','));
  SourceRange range = rangeFrom(start);
  return Import::create(range, Ident::create(start, ""), List<Alias>::create(range, names));
}

Stmt ParserImpl::fromImport() {
  SourceRange start = next().range;
  SourceRange module_start = cur().range;
  std::string module;
  while (cur().kind == '.' || cur().kind == TK_DOTS) module += next().text();
  if (module.empty() || !atWord("import")) module += dottedName().name();
  Ident module_name = Ident::create(rangeFrom(module_start), module);
  if (!atWord("import")) failExpected("'import'");
  next();
  std::vector<Alias> names;
  if (cur().kind == '*') {
    Token star = next();
    names.push_back(Alias::create(star.range, makeIdent(star), Maybe<Ident>::create(star.range)));
  } else {
    bool parenthesized = nextIf('(');
    do {
      names.push_back(importAlias(/*dotted=*/false));
    } while (nextIf(',') && !(parenthesized && cur().kind == ')'));
    if (parenthesized) expect(')');
  }
  SourceRange range = rangeFrom(start);
  return Import::create(range, module_name, List<Alias>::create(range, names));
}

Ident ParserImpl::dottedName() {
  SourceRange start = cur().range;
  std::string name(expect(TK_IDENT).text());
  while (nextIf('.')) {
    name += '.';
    name += expect(TK_IDENT).text();
  }
  return Ident::create(rangeFrom(start), std::move(name));
}

Alias ParserImpl::importAlias(bool dotted) {
  Ident name = dotted ? dottedName() : ident();
  SourceRange here = cur().range;
  Maybe<Ident> as_name = Maybe<Ident>::create(here);
  if (nextIf(TK_AS)) as_name = Maybe<Ident>::create(here, ident());
  return Alias::create(rangeFrom(name.range()), name, as_name);
}

Stmt ParserImpl::decorated() {
  std::vector<Expr> decorators;
  while (nextIf('@')) {
    decorators.push_back(expr());
    expect(TK_NEWLINE);
  }
  if (cur().kind == TK_DEF) return def(decorators);
  if (cur().kind == TK_CLASS_DEF) return classDef(decorators);
  failExpected("'def' or 'class' after a decorator");
}

Def ParserImpl::def(const std::vector<Expr>& decorators) {
  const Restored fields(declares_fields_, false);
  SourceRange start = expect(TK_DEF).range;
  Ident name = ident();
  expect('(');
  Decl decl = params(')', /*annotated=*/true);
  expect(')');
  SourceRange here = cur().range;
  if (nextIf(TK_ARROW)) {
    decl = Decl::create(decl.range(), decl.params(), Maybe<Expr>::create(here, expr()));
  }
  SourceRange header = rangeFrom(start);
  SourceRange comment;
  // What never runs as a program need not be one: nothing but its signature is read.
  const List<Expr> marks = List<Expr>::create(header, decorators);
  const bool skips = skips_methods_ || hasDecorator(marks, "unused") ||
                     (own_lexer_.level() > 1 && hasDecorator(marks, "ignore"));
  List<Stmt> body = skips ? skippedBlock(comment) : block(&comment);
  if (comment.valid()) decl = mergeSignature(decl, signatureFromComment(comment));
  return Def::create(header, name, decl, body, marks);
}

ClassDef ParserImpl::classDef(const std::vector<Expr>& decorators) {
  SourceRange start = expect(TK_CLASS_DEF).range;
  Ident name = ident();
  std::vector<Expr> bases;
  if (nextIf('(')) {
    while (cur().kind != ')') {
      if (cur().kind == TK_IDENT && lookahead().kind == '=') {
        throwCompileError(cur().range, "keyword arguments of a class are not supported");
      }
      bases.push_back(expr());
      if (!nextIf(',')) break;
    }
    expect(')');
  }
  SourceRange header = rangeFrom(start);
  // Methods of a NamedTuple or an enum stay in Python.
  const bool skips = std::ranges::any_of(bases, [](const Expr& base) {
    const std::string name = lastName(base);
    return name == "NamedTuple" || name == "Enum" || name == "IntEnum";
  });
  const Restored restored(skips_methods_, skips);
  const Restored fields(declares_fields_, true);
  List<Stmt> body = block();
  return ClassDef::create(header, name, List<Expr>::create(header, bases), body,
                          List<Expr>::create(header, decorators));
}

List<Stmt> ParserImpl::block(SourceRange* type_comment) {
  expect(':');
  SourceRange start = cur().range;
  auto takeComment = [&] {
    if (type_comment != nullptr && !type_comment->valid()) *type_comment = cur().type_comment;
  };
  std::vector<Stmt> statements;
  takeComment();
  if (!nextIf(TK_NEWLINE)) {
    simpleLine(statements);
    return List<Stmt>::create(coverAll(statements, start), statements);
  }
  takeComment();
  if (cur().kind != TK_INDENT) failExpected("an indented block");
  next();
  this->statements(statements);
  nextIf(TK_DEDENT);
  return List<Stmt>::create(coverAll(statements, start), statements);
}

List<Stmt> ParserImpl::skippedBlock(SourceRange& type_comment) {
  expect(':');
  const SourceRange start = cur().range;
  type_comment = cur().type_comment;
  const bool own_lines = nextIf(TK_NEWLINE);
  if (own_lines) {
    if (!type_comment.valid()) type_comment = cur().type_comment;
    if (cur().kind != TK_INDENT) failExpected("an indented block");
  }
  size_t blocks = 0;
  while (cur().kind != TK_EOF) {
    const int kind = next().kind;
    if (kind == TK_INDENT) ++blocks;
    if (kind == TK_DEDENT) --blocks;
    if (blocks == 0 && (own_lines ? kind == TK_DEDENT : kind == TK_NEWLINE)) break;
  }
  return List<Stmt>::create(start);
}

Stmt ParserImpl::ifStatement() {
  struct Arm {
    SourceRange header;
    Expr cond;
    List<Stmt> body;
  };
  std::vector<Arm> arms;
  do {
    SourceRange start = next().range;
    Expr cond = expr();
    SourceRange header = rangeFrom(start);
    List<Stmt> body = block();
    arms.push_back({header, cond, body});
  } while (cur().kind == TK_ELIF);
  SourceRange here = cur().range;
  List<Stmt> otherwise = nextIf(TK_ELSE) ? block() : List<Stmt>::create(here);
  while (true) {
    const Arm& arm = arms.back();
    Stmt result = If::create(arm.header, arm.cond, arm.body, otherwise);
    arms.pop_back();
    if (arms.empty()) return result;
    otherwise = List<Stmt>::create(result.range(), {result});
  }
}

void ParserImpl::refuseLoopElse(const char* loop) {
  if (cur().kind != TK_ELSE) return;
  throwCompileError(cur().range, "'else' after a '{}' loop is not supported", loop);
}

Stmt ParserImpl::whileStatement() {
  SourceRange start = expect(TK_WHILE).range;
  Expr cond = expr();
  SourceRange header = rangeFrom(start);
  List<Stmt> body = block();
  refuseLoopElse("while");
  return While::create(header, cond, body);
}

Stmt ParserImpl::forStatement() {
  SourceRange start = expect(TK_FOR).range;
  Expr target = exprOrTuple(kBitOr);
  checkTarget(target, Use::kLoop);
  expect(TK_IN);
  Expr iter = expr();
  if (cur().kind == ',') {
    throwCompileError(cur().range,
                      "a list of iterables is not supported: expected ':' after the first one (put "
                      "the elements of a tuple into parentheses)");
  }
  SourceRange header = rangeFrom(start);
  List<Stmt> body = block();
  refuseLoopElse("for");
  return For::create(header, target, iter, body);
}

Stmt ParserImpl::withStatement() {
  SourceRange start = expect(TK_WITH).range;
  std::vector<WithItem> items;
  do {
    // Each context is entered within the one before it.
    if (items.size() + depth_ > kMaxNesting) failNesting(cur().range);
    Expr context = expr();
    SourceRange here = cur().range;
    Maybe<Expr> target = Maybe<Expr>::create(here);
    if (nextIf(TK_AS)) {
      Expr name = starOr(kBitOr);
      checkTarget(name, Use::kWith);
      target = Maybe<Expr>::create(here, name);
    }
    items.push_back(WithItem::create(rangeFrom(context.range()), context, target));
  } while (nextIf(','));
  SourceRange header = rangeFrom(start);
  List<Stmt> body = block();
  return With::create(header, List<WithItem>::create(header, items), body);
}

}  // namespace wick::detail
