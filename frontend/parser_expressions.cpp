// Expressions. Binary operators are read by precedence climbing: a loop in expr() for the operators
// that bind at least as tightly as asked, recursion for their right sides.
#include <algorithm>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "frontend/parser_impl.h"

namespace wick::detail {

namespace {

bool isComparison(int kind) {
  switch (kind) {
    case '<':
    case '>':
    case TK_EQ:
    case TK_NE:
    case TK_LE:
    case TK_GE:
    case TK_IN:
    case TK_IS:
      return true;
    default:
      return false;
  }
}

// The precedence of the binary operators that group to the left; kPostfix for all else.
int leftPrecedence(int kind) {
  switch (kind) {
    case TK_OR:
      return kOr;
    case TK_AND:
      return kAnd;
    case '|':
      return kBitOr;
    case '^':
      return kBitXor;
    case '&':
      return kBitAnd;
    case TK_LSHIFT:
    case TK_RSHIFT:
      return kShift;
    case '+':
    case '-':
      return kSum;
    case '*':
    case '/':
    case '%':
    case '@':
    case TK_FLOOR_DIV:
      return kProduct;
    default:
      return kPostfix;
  }
}

// Words of Python that no TorchScript program may use as a name.
bool isUnsupportedWord(std::string_view word) {
  constexpr std::string_view kWords[] = {"try",   "except", "finally", "yield",
                                         "async", "await",  "nonlocal"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

}  // namespace

Expr ParserImpl::expr(int precedence) {
  Nesting nesting(*this);
  Expr lhs = unary(precedence);
  while (true) {
    int kind = cur().kind;
    if (kind == TK_IF) {
      if (precedence > kTernary) break;
      lhs = ternary(lhs);
    } else if (isComparison(kind) || (kind == TK_NOT && lookahead().kind == TK_IN)) {
      if (precedence > kComparison) break;
      lhs = comparison(lhs);
    } else {
      int op_precedence = leftPrecedence(kind);
      if (op_precedence == kPostfix || precedence > op_precedence) break;
      next();
      Expr rhs = expr(op_precedence + 1);
      lhs = BinOp::create(rangeFrom(lhs.range()), kind, lhs, rhs);
    }
  }
  return checkHeight(lhs);
}

Expr ParserImpl::unary(int precedence) {
  SourceRange start = cur().range;
  auto prefix = [&](int kind, int operand_precedence) {
    next();
    Expr operand = expr(operand_precedence);
    return UnaryOp::create(rangeFrom(start), kind, operand);
  };
  switch (cur().kind) {
    case '-':
      return prefix(TK_UNARY_MINUS, kUnary);
    case '+':
      return prefix(TK_UNARY_PLUS, kUnary);
    case '~':
      return prefix('~', kUnary);
    case TK_NOT:
      if (precedence > kNot) failExpected("an operand; put 'not ...' into parentheses,");
      return prefix(TK_NOT, kNot);
    case TK_LAMBDA:
      if (precedence > kTernary) failExpected("an operand; put the lambda into parentheses,");
      return lambda();
    default:
      break;
  }
  Expr value = postfix(primary());
  if (!nextIf(TK_POW)) return value;
  Expr exponent = expr(kUnary);
  return BinOp::create(rangeFrom(value.range()), TK_POW, value, exponent);
}

Expr ParserImpl::comparison(const Expr& first) {
  std::vector<Expr> operands = {first};
  std::vector<int> ops;
  while (isComparison(cur().kind) || (cur().kind == TK_NOT && lookahead().kind == TK_IN)) {
    int op = next().kind;
    if (op == TK_NOT) {
      next();
      op = TK_NOTIN;
    } else if (op == TK_IS && nextIf(TK_NOT)) {
      op = TK_ISNOT;
    }
    // Each comparison is evaluated within the one before it.
    if (ops.size() + depth_ >= kMaxNesting) failNesting(cur().range);
    ops.push_back(op);
    operands.push_back(expr(kBitOr));
  }
  SourceRange range = rangeFrom(first.range());
  if (ops.size() == 1) return BinOp::create(range, ops[0], operands[0], operands[1]);
  return CompareChain::create(range, List<Expr>::create(range, operands), ops);
}

Expr ParserImpl::ternary(const Expr& true_expr) {
  expect(TK_IF);
  Expr cond = expr(kOr);
  expect(TK_ELSE);
  Expr false_expr = expr(kTernary);
  return TernaryIf::create(rangeFrom(true_expr.range()), cond, true_expr, false_expr);
}

Expr ParserImpl::lambda() {
  SourceRange start = expect(TK_LAMBDA).range;
  Decl decl = params(':', /*annotated=*/false);
  expect(':');
  Expr body = expr();
  return Lambda::create(rangeFrom(start), decl, body);
}

Expr ParserImpl::postfix(Expr value) {
  for (size_t length = 0;; ++length) {
    if (length + depth_ > kMaxNesting) failNesting(cur().range);
    switch (cur().kind) {
      case '.': {
        next();
        // Keywords may be names of attributes: `torch.ops.aten.is`, `self.blocks.in`.
        Ident selector = cur().isWord() ? makeIdent(next()) : ident();
        value = Select::create(rangeFrom(value.range()), value, selector);
        break;
      }
      case '(':
        value = apply(value);
        break;
      case '[':
        value = subscript(value);
        break;
      default:
        return value;
    }
  }
}

Expr ParserImpl::primary() {
  switch (cur().kind) {
    case TK_NUMBER: {
      Token token = next();
      std::string text;
      for (char c : token.text()) {
        if (c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      return Const::create(token.range, std::move(text));
    }
    case TK_STRINGLITERAL:
      return strings();
    case TK_IDENT: {
      if (isUnsupportedWord(cur().text())) {
        throwCompileError(cur().range, "'{}' is not supported in TorchScript", cur().text());
      }
      Token token = next();
      return Var::create(token.range, makeIdent(token));
    }
    case TK_TRUE:
    case TK_FALSE:
    case TK_NONE:
    case TK_DOTS: {
      Token token = next();
      return Expr(Tree::create(token.kind, token.range));
    }
    case '(':
      return parenthesized();
    case '[':
      return listDisplay();
    case '{':
      return dictDisplay();
    default:
      failExpected("an expression");
  }
}

Expr ParserImpl::starOr(int precedence) {
  if (cur().kind != '*') return expr(precedence);
  SourceRange start = next().range;
  Expr value = expr(kBitOr);
  return Starred::create(rangeFrom(start), value);
}

bool ParserImpl::atExprEnd() {
  switch (cur().kind) {
    case TK_NEWLINE:
    case TK_EOF:
    case TK_DEDENT:
    case TK_IN:
    case '=':
    case ')':
    case ']':
    case '}':
    case ':':
    case ';':
      return true;
    default:
      return cur().kind >= TK_PLUS_EQ && cur().kind <= TK_RSHIFT_EQ;
  }
}

Expr ParserImpl::exprOrTuple(int precedence) {
  Expr first = starOr(precedence);
  if (cur().kind != ',') {
    if (first.kind() == TK_STARRED) {
      throwCompileError(first.range(), "a starred expression must be part of a tuple or list");
    }
    return first;
  }
  std::vector<Expr> elements = {first};
  while (nextIf(',')) {
    if (atExprEnd()) break;
    elements.push_back(starOr(precedence));
  }
  SourceRange range = rangeFrom(first.range());
  return checkHeight<Expr>(TupleLiteral::create(range, List<Expr>::create(range, elements)));
}

Expr ParserImpl::parenthesized() {
  SourceRange start = expect('(').range;
  if (nextIf(')')) {
    SourceRange range = rangeFrom(start);
    return TupleLiteral::create(range, List<Expr>::create(range));
  }
  Expr first = starOr();
  if (cur().kind == TK_FOR) {
    List<CompFor> loops = generators();
    expect(')');
    return ListComp::create(rangeFrom(start), first, loops);
  }
  if (cur().kind != ',') {
    expect(')');
    if (first.kind() == TK_STARRED) {
      throwCompileError(first.range(), "a starred expression must be part of a tuple or list");
    }
    return first;
  }
  std::vector<Expr> elements = {first};
  while (nextIf(',')) {
    if (cur().kind == ')') break;
    elements.push_back(starOr());
  }
  expect(')');
  SourceRange range = rangeFrom(start);
  return TupleLiteral::create(range, List<Expr>::create(range, elements));
}

Expr ParserImpl::listDisplay() {
  SourceRange start = expect('[').range;
  std::vector<Expr> elements;
  while (cur().kind != ']') {
    elements.push_back(starOr());
    if (elements.size() == 1 && cur().kind == TK_FOR) {
      List<CompFor> loops = generators();
      expect(']');
      return ListComp::create(rangeFrom(start), elements[0], loops);
    }
    if (!nextIf(',')) break;
  }
  expect(']');
  SourceRange range = rangeFrom(start);
  return ListLiteral::create(range, List<Expr>::create(range, elements));
}

Expr ParserImpl::dictDisplay() {
  SourceRange start = expect('{').range;
  std::vector<Expr> keys;
  std::vector<Expr> values;
  while (cur().kind != '}') {
    if (cur().kind == TK_POW) {
      // **other: a starred key without a value.
      SourceRange star = next().range;
      Expr unpacked = expr(kBitOr);
      keys.push_back(Starred::create(rangeFrom(star), unpacked));
      values.push_back(Expr(Tree::create(TK_NONE, star)));
      if (!nextIf(',')) break;
      continue;
    }
    keys.push_back(expr());
    if (keys.size() == 1 && (cur().kind == ',' || cur().kind == '}' || cur().kind == TK_FOR)) {
      next();
      throwCompileError(rangeFrom(start), "sets are not supported: expected ':' after the key");
    }
    expect(':');
    values.push_back(expr());
    if (keys.size() == 1 && cur().kind == TK_FOR) {
      List<CompFor> loops = generators();
      expect('}');
      return DictComp::create(rangeFrom(start), keys[0], values[0], loops);
    }
    if (!nextIf(',')) break;
  }
  expect('}');
  SourceRange range = rangeFrom(start);
  return DictLiteral::create(range, List<Expr>::create(range, keys),
                             List<Expr>::create(range, values));
}

List<CompFor> ParserImpl::generators() {
  SourceRange start = cur().range;
  std::vector<CompFor> loops;
  size_t clauses = 0;
  auto countClause = [&] {
    if (++clauses + depth_ > kMaxNesting) failNesting(cur().range);
  };
  while (cur().kind == TK_FOR) {
    countClause();
    SourceRange loop_start = next().range;
    Expr target = exprOrTuple(kBitOr);
    checkTarget(target, Use::kLoop);
    expect(TK_IN);
    Expr iter = expr(kOr);
    std::vector<Expr> conds;
    while (nextIf(TK_IF)) {
      countClause();
      conds.push_back(expr(kOr));
    }
    SourceRange range = rangeFrom(loop_start);
    loops.push_back(CompFor::create(range, target, iter, List<Expr>::create(range, conds)));
  }
  return List<CompFor>::create(rangeFrom(start), loops);
}

Expr ParserImpl::apply(const Expr& callee) {
  SourceRange start = expect('(').range;
  std::vector<Expr> inputs;
  std::vector<Attribute> attributes;
  KeyedSet<std::string> names;
  while (cur().kind != ')') {
    if (cur().kind == TK_POW) {
      throwCompileError(cur().range, "'**' arguments of a call are not supported");
    }
    if (cur().kind == TK_IDENT && lookahead().kind == '=') {
      Ident name = ident();
      next();
      if (!names.insert(name.name()).second) {
        throwCompileError(name.range(), "the keyword argument '{}' is given twice", name.name());
      }
      Expr value = expr();
      attributes.push_back(Attribute::create(rangeFrom(name.range()), name, value));
    } else if (cur().kind == '*') {
      SourceRange star = next().range;
      Expr value = expr();
      inputs.push_back(Starred::create(rangeFrom(star), value));
    } else {
      Expr value = expr();
      if (!attributes.empty()) {
        throwCompileError(value.range(), "a positional argument follows a keyword argument");
      }
      if (cur().kind == TK_FOR) {
        List<CompFor> loops = generators();
        value = ListComp::create(rangeFrom(value.range()), value, loops);
        if (!inputs.empty() || cur().kind != ')') {
          throwCompileError(value.range(),
                            "a generator expression that is not the only argument needs "
                            "parentheses");
        }
      }
      inputs.push_back(value);
    }
    if (!nextIf(',')) break;
  }
  expect(')');
  SourceRange arguments = rangeFrom(start);
  return Apply::create(rangeFrom(callee.range()), callee, List<Expr>::create(arguments, inputs),
                       List<Attribute>::create(arguments, attributes));
}

Expr ParserImpl::subscript(const Expr& value) {
  SourceRange start = expect('[').range;
  std::vector<Expr> items = {subscriptItem()};
  bool trailing_comma = false;
  while (nextIf(',')) {
    trailing_comma = cur().kind == ']';
    if (trailing_comma) break;
    items.push_back(subscriptItem());
  }
  expect(']');
  SourceRange range = rangeFrom(start);
  // A slice stays an index of its own: `x[1:2,]` selects what `x[1:2]` does.
  bool one_tuple = items.size() == 1 && items[0].kind() != TK_SLICE_EXPR &&
                   (trailing_comma || items[0].kind() == TK_STARRED);
  if (one_tuple) items = {TupleLiteral::create(range, List<Expr>::create(range, items))};
  return Subscript::create(rangeFrom(value.range()), value, List<Expr>::create(range, items));
}

Expr ParserImpl::subscriptItem() {
  SourceRange start = cur().range;
  auto bound = [&]() {
    bool missing = cur().kind == ':' || cur().kind == ',' || cur().kind == ']';
    SourceRange here = cur().range;
    return missing ? Maybe<Expr>::create(here) : Maybe<Expr>::create(here, expr());
  };
  Maybe<Expr> first = Maybe<Expr>::create(start);
  if (cur().kind != ':') {
    Expr value = starOr();
    if (cur().kind != ':' || value.kind() == TK_STARRED) return value;
    first = Maybe<Expr>::create(start, value);
  }
  expect(':');
  Maybe<Expr> last = bound();
  Maybe<Expr> step = nextIf(':') ? bound() : Maybe<Expr>::create(cur().range);
  return SliceExpr::create(rangeFrom(start), first, last, step);
}

void ParserImpl::checkTarget(const Expr& target, Use use, bool nested) {
  const char* verb = use == Use::kDelete ? "delete" : "assign to";
  switch (target.kind()) {
    case TK_VAR:
    case '.':
    case TK_SUBSCRIPT:
      return;
    case TK_TUPLE_LITERAL:
    case TK_LIST_LITERAL: {
      if (use == Use::kAugAssign || use == Use::kAnnotate) break;
      List<Expr> elements(target.tree()->child(0));
      size_t starred = 0;
      for (Expr element : elements) {
        if (element.kind() == TK_STARRED && ++starred > 1) {
          throwCompileError(element.range(), "only one target of an assignment may be starred");
        }
        checkTarget(element, use, true);
      }
      return;
    }
    case TK_STARRED:
      if (!nested || use == Use::kDelete) break;
      checkTarget(Starred(target.tree()).expr(), use, false);
      return;
    default:
      break;
  }
  if (use == Use::kAugAssign) {
    throwCompileError(target.range(),
                      "an augmented assignment needs a variable, an attribute or an "
                      "element on its left side");
  }
  if (use == Use::kAnnotate) {
    throwCompileError(target.range(),
                      "only a variable, an attribute or an element can have a type");
  }
  throwCompileError(target.range(),
                    "cannot {} this expression: expected a variable, an attribute, "
                    "an element or a tuple of them",
                    verb);
}

}  // namespace wick::detail
