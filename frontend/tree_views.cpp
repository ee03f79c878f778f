#include "frontend/tree_views.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"

namespace wick {

namespace {

// Decimal digits only, without a locale. std::from_chars leaves the value alone when it is out of
// range, where Python gives infinity or zero.
double parseDouble(std::string_view text) {
  double value = 0;
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  size_t exponent_at = text.find('e');
  std::string_view mantissa = text.substr(0, exponent_at);
  int64_t exponent = 0;
  bool huge_exponent = false;
  bool negative_exponent = false;
  if (exponent_at != std::string_view::npos) {
    std::string_view digits = text.substr(exponent_at + 1);
    negative_exponent = digits.starts_with('-');
    if (digits.starts_with('+')) digits.remove_prefix(1);
    auto read = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    huge_exponent = read.ec == std::errc::result_out_of_range;
  }
  size_t point = std::min(mantissa.find('.'), mantissa.size());
  size_t first_digit = mantissa.find_first_not_of("0.");
  if (first_digit == std::string_view::npos) return 0;
  bool large;
  if (huge_exponent) {
    large = !negative_exponent;
  } else {
    int64_t magnitude = static_cast<int64_t>(point) - static_cast<int64_t>(first_digit);
    large = exponent > -magnitude;
  }
  return large ? std::numeric_limits<double>::infinity() : 0;
}

struct IntText {
  std::string_view digits;
  int base;
};

IntText splitBase(std::string_view text) {
  if (text.size() > 2 && text[0] == '0') {
    if (text[1] == 'x') return {text.substr(2), 16};
    if (text[1] == 'o') return {text.substr(2), 8};
    if (text[1] == 'b') return {text.substr(2), 2};
  }
  return {text, 10};
}

}  // namespace

TreeView::TreeView(TreeRef tree, int kind, size_t children) : tree_(std::move(tree)) {
  WICK_ASSERT(tree_->kind() == kind && tree_->size() == children,
              "expected a tree of kind {} with {} children, got one of kind {} with {}",
              kindToString(kind), children, kindToString(tree_->kind()), tree_->size());
}

bool Expr::isExpr(int kind) {
  switch (kind) {
    case TK_VAR:
    case TK_CONST:
    case TK_STRINGLITERAL:
    case TK_JOINED_STR:
    case TK_FORMATTED_VALUE:
    case TK_TRUE:
    case TK_FALSE:
    case TK_NONE:
    case TK_DOTS:
    case '.':
    case TK_APPLY:
    case TK_SUBSCRIPT:
    case TK_SLICE_EXPR:
    case TK_COMPARE_CHAIN:
    case TK_IF_EXPR:
    case TK_LIST_LITERAL:
    case TK_TUPLE_LITERAL:
    case TK_DICT_LITERAL:
    case TK_LIST_COMP:
    case TK_DICT_COMP:
    case TK_STARRED:
    case TK_LAMBDA:
      return true;
    default:
      return BinOp::isBinOp(kind) || UnaryOp::isUnaryOp(kind);
  }
}

Expr::Expr(const TreeRef& tree) : TreeView(tree) {
  WICK_ASSERT(isExpr(kind()), "a tree of kind {} is not an expression", kindToString(kind()));
}

bool Stmt::isStmt(int kind) {
  switch (kind) {
    case TK_DEF:
    case TK_CLASS_DEF:
    case TK_IF:
    case TK_WHILE:
    case TK_FOR:
    case TK_WITH:
    case TK_ASSIGN:
    case TK_AUG_ASSIGN:
    case TK_RETURN:
    case TK_RAISE:
    case TK_ASSERT:
    case TK_DELETE:
    case TK_EXPR_STMT:
    case TK_GLOBAL:
    case TK_IMPORT:
    case TK_PASS:
    case TK_BREAK:
    case TK_CONTINUE:
    case TK_BROKEN:
      return true;
    default:
      return false;
  }
}

Stmt::Stmt(const TreeRef& tree) : TreeView(tree) {
  WICK_ASSERT(isStmt(kind()), "a tree of kind {} is not a statement", kindToString(kind()));
}

Ident Ident::create(const SourceRange& range, std::string name) {
  return Ident(build(TK_IDENT, range, {Tree::atom(range, std::move(name))}));
}

Var Var::create(const SourceRange& range, const Ident& name) {
  return Var(build(TK_VAR, range, {name.tree()}));
}

Const Const::create(const SourceRange& range, std::string text) {
  return Const(build(TK_CONST, range, {Tree::atom(range, std::move(text))}));
}

bool Const::isInt() const {
  return splitBase(text()).base != 10 || text().find_first_of(".ej") == std::string::npos;
}

bool Const::isFloat() const {
  return !isInt() && !isComplex();
}

bool Const::isComplex() const {
  return text().ends_with('j');
}

int64_t Const::asInt(bool negated) const {
  WICK_ASSERT(isInt(), "'{}' is not an integer", text());
  auto [digits, base] = splitBase(text());
  uint64_t magnitude = 0;
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (result.ec != std::errc() || magnitude > kMax + (negated ? 1 : 0)) {
    throwCompileError(range(), "integer {}{} is out of the range of a 64-bit int",
                      negated ? "-" : "", text());
  }
  return static_cast<int64_t>(negated ? 0 - magnitude : magnitude);
}

double Const::asFloat() const {
  WICK_ASSERT(!isComplex(), "'{}' is not a float", text());
  if (splitBase(text()).base != 10) return static_cast<double>(asInt());
  return parseDouble(text());
}

std::complex<double> Const::asComplex() const {
  if (!isComplex()) return {asFloat(), 0};
  return {0, parseDouble(std::string_view(text()).substr(0, text().size() - 1))};
}

StringLiteral StringLiteral::create(const SourceRange& range, std::string text) {
  return StringLiteral(build(TK_STRINGLITERAL, range, {Tree::atom(range, std::move(text))}));
}

FormattedValue FormattedValue::create(const SourceRange& range, const Expr& value,
                                      const Maybe<StringLiteral>& conversion,
                                      const Maybe<Expr>& format_spec) {
  return FormattedValue(
      build(TK_FORMATTED_VALUE, range, {value.tree(), conversion.tree(), format_spec.tree()}));
}

JoinedStr JoinedStr::create(const SourceRange& range, const List<Expr>& parts) {
  return JoinedStr(build(TK_JOINED_STR, range, {parts.tree()}));
}

Select Select::create(const SourceRange& range, const Expr& value, const Ident& selector) {
  return Select(build('.', range, {value.tree(), selector.tree()}));
}

Attribute Attribute::create(const SourceRange& range, const Ident& name, const Expr& value) {
  return Attribute(build(TK_ATTRIBUTE, range, {name.tree(), value.tree()}));
}

Apply Apply::create(const SourceRange& range, const Expr& callee, const List<Expr>& inputs,
                    const List<Attribute>& attributes) {
  return Apply(build(TK_APPLY, range, {callee.tree(), inputs.tree(), attributes.tree()}));
}

Subscript Subscript::create(const SourceRange& range, const Expr& value,
                            const List<Expr>& subscripts) {
  return Subscript(build(TK_SUBSCRIPT, range, {value.tree(), subscripts.tree()}));
}

SliceExpr SliceExpr::create(const SourceRange& range, const Maybe<Expr>& start,
                            const Maybe<Expr>& end, const Maybe<Expr>& step) {
  return SliceExpr(build(TK_SLICE_EXPR, range, {start.tree(), end.tree(), step.tree()}));
}

bool BinOp::isBinOp(int kind) {
  switch (kind) {
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '@':
    case '&':
    case '|':
    case '^':
    case '<':
    case '>':
    case TK_POW:
    case TK_FLOOR_DIV:
    case TK_LSHIFT:
    case TK_RSHIFT:
    case TK_EQ:
    case TK_NE:
    case TK_LE:
    case TK_GE:
    case TK_AND:
    case TK_OR:
    case TK_IN:
    case TK_NOTIN:
    case TK_IS:
    case TK_ISNOT:
      return true;
    default:
      return false;
  }
}

BinOp::BinOp(const TreeRef& tree) : Expr(tree, tree->kind(), 2) {
  WICK_ASSERT(isBinOp(kind()), "a tree of kind {} is not a binary operation", kindToString(kind()));
}

BinOp BinOp::create(const SourceRange& range, int op, const Expr& lhs, const Expr& rhs) {
  return BinOp(build(op, range, {lhs.tree(), rhs.tree()}));
}

CompareChain CompareChain::create(const SourceRange& range, const List<Expr>& operands,
                                  const std::vector<int>& ops) {
  TreeList op_trees;
  for (int op : ops) op_trees.push_back(build(op, range, {}));
  return CompareChain(build(TK_COMPARE_CHAIN, range,
                            {operands.tree(), build(TK_LIST, range, std::move(op_trees))}));
}

bool UnaryOp::isUnaryOp(int kind) {
  return kind == TK_UNARY_MINUS || kind == TK_UNARY_PLUS || kind == '~' || kind == TK_NOT;
}

UnaryOp::UnaryOp(const TreeRef& tree) : Expr(tree, tree->kind(), 1) {
  WICK_ASSERT(isUnaryOp(kind()), "a tree of kind {} is not a unary operation",
              kindToString(kind()));
}

UnaryOp UnaryOp::create(const SourceRange& range, int op, const Expr& operand) {
  return UnaryOp(build(op, range, {operand.tree()}));
}

TernaryIf TernaryIf::create(const SourceRange& range, const Expr& cond, const Expr& true_expr,
                            const Expr& false_expr) {
  return TernaryIf(build(TK_IF_EXPR, range, {cond.tree(), true_expr.tree(), false_expr.tree()}));
}

ListLiteral ListLiteral::create(const SourceRange& range, const List<Expr>& inputs) {
  return ListLiteral(build(TK_LIST_LITERAL, range, {inputs.tree()}));
}

TupleLiteral TupleLiteral::create(const SourceRange& range, const List<Expr>& inputs) {
  return TupleLiteral(build(TK_TUPLE_LITERAL, range, {inputs.tree()}));
}

DictLiteral DictLiteral::create(const SourceRange& range, const List<Expr>& keys,
                                const List<Expr>& values) {
  return DictLiteral(build(TK_DICT_LITERAL, range, {keys.tree(), values.tree()}));
}

CompFor CompFor::create(const SourceRange& range, const Expr& target, const Expr& iter,
                        const List<Expr>& conds) {
  return CompFor(build(TK_COMP_FOR, range, {target.tree(), iter.tree(), conds.tree()}));
}

ListComp ListComp::create(const SourceRange& range, const Expr& element,
                          const List<CompFor>& generators) {
  return ListComp(build(TK_LIST_COMP, range, {element.tree(), generators.tree()}));
}

DictComp DictComp::create(const SourceRange& range, const Expr& key, const Expr& value,
                          const List<CompFor>& generators) {
  return DictComp(build(TK_DICT_COMP, range, {key.tree(), value.tree(), generators.tree()}));
}

Starred Starred::create(const SourceRange& range, const Expr& expr) {
  return Starred(build(TK_STARRED, range, {expr.tree()}));
}

Param Param::withType(const Maybe<Expr>& type) const {
  return create(range(), name(), type, defaultValue(), kwargOnly());
}

Param Param::create(const SourceRange& range, const Ident& name, const Maybe<Expr>& type,
                    const Maybe<Expr>& default_value, bool kwarg_only) {
  TreeRef flag = build(kwarg_only ? TK_TRUE : TK_FALSE, range, {});
  return Param(build(TK_PARAM, range, {name.tree(), type.tree(), default_value.tree(), flag}));
}

Decl Decl::create(const SourceRange& range, const List<Param>& params,
                  const Maybe<Expr>& return_type) {
  return Decl(build(TK_DECL, range, {params.tree(), return_type.tree()}));
}

Lambda Lambda::create(const SourceRange& range, const Decl& decl, const Expr& body) {
  return Lambda(build(TK_LAMBDA, range, {decl.tree(), body.tree()}));
}

Def Def::withName(const std::string& name) const {
  return create(range(), Ident::create(this->name().range(), name), decl(), statements(),
                decorators());
}

Def Def::withDecl(const Decl& decl) const {
  return create(range(), name(), decl, statements(), decorators());
}

Def Def::create(const SourceRange& range, const Ident& name, const Decl& decl,
                const List<Stmt>& statements, const List<Expr>& decorators) {
  return Def(
      build(TK_DEF, range, {name.tree(), decl.tree(), statements.tree(), decorators.tree()}));
}

ClassDef ClassDef::create(const SourceRange& range, const Ident& name, const List<Expr>& bases,
                          const List<Stmt>& body, const List<Expr>& decorators) {
  return ClassDef(
      build(TK_CLASS_DEF, range, {name.tree(), bases.tree(), body.tree(), decorators.tree()}));
}

If If::create(const SourceRange& range, const Expr& cond, const List<Stmt>& true_branch,
              const List<Stmt>& false_branch) {
  return If(build(TK_IF, range, {cond.tree(), true_branch.tree(), false_branch.tree()}));
}

While While::create(const SourceRange& range, const Expr& cond, const List<Stmt>& body) {
  return While(build(TK_WHILE, range, {cond.tree(), body.tree()}));
}

For For::create(const SourceRange& range, const Expr& target, const Expr& iter,
                const List<Stmt>& body) {
  return For(build(TK_FOR, range, {target.tree(), iter.tree(), body.tree()}));
}

WithItem WithItem::create(const SourceRange& range, const Expr& context,
                          const Maybe<Expr>& target) {
  return WithItem(build(TK_WITH_ITEM, range, {context.tree(), target.tree()}));
}

With With::create(const SourceRange& range, const List<WithItem>& items, const List<Stmt>& body) {
  return With(build(TK_WITH, range, {items.tree(), body.tree()}));
}

Assign Assign::create(const SourceRange& range, const List<Expr>& targets, const Maybe<Expr>& value,
                      const Maybe<Expr>& type) {
  return Assign(build(TK_ASSIGN, range, {targets.tree(), value.tree(), type.tree()}));
}

AugAssign AugAssign::create(const SourceRange& range, const Expr& target, int op,
                            const Expr& value) {
  return AugAssign(
      build(TK_AUG_ASSIGN, range, {target.tree(), build(op, range, {}), value.tree()}));
}

Return Return::create(const SourceRange& range, const Expr& expr) {
  return Return(build(TK_RETURN, range, {expr.tree()}));
}

Raise Raise::create(const SourceRange& range, const Maybe<Expr>& expr) {
  return Raise(build(TK_RAISE, range, {expr.tree()}));
}

Assert Assert::create(const SourceRange& range, const Expr& test, const Maybe<Expr>& message) {
  return Assert(build(TK_ASSERT, range, {test.tree(), message.tree()}));
}

Delete Delete::create(const SourceRange& range, const List<Expr>& targets) {
  return Delete(build(TK_DELETE, range, {targets.tree()}));
}

ExprStmt ExprStmt::create(const SourceRange& range, const Expr& expr) {
  return ExprStmt(build(TK_EXPR_STMT, range, {expr.tree()}));
}

Global Global::create(const SourceRange& range, const List<Ident>& names) {
  return Global(build(TK_GLOBAL, range, {names.tree()}));
}

Alias Alias::create(const SourceRange& range, const Ident& name, const Maybe<Ident>& as_name) {
  return Alias(build(TK_ALIAS, range, {name.tree(), as_name.tree()}));
}

Import Import::create(const SourceRange& range, const Ident& module, const List<Alias>& names) {
  return Import(build(TK_IMPORT, range, {module.tree(), names.tree()}));
}

Broken Broken::create(const SourceRange& range, const std::string& message,
                      const List<Ident>& names) {
  return Broken(build(TK_BROKEN, range, {Ident::create(range, message).tree(), names.tree()}));
}

void Broken::raise() const {
  throw CompileError(range(), message());
}

}  // namespace wick
