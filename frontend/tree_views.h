// Named access to trees. A view is a TreeRef that is known to have one kind: construct it from a
// tree to take the tree apart (InternalError when the kind is another), or call its create() to
// build one. To traverse, switch on kind() and construct the view:
//
//   switch (expr.kind()) {
//     case TK_VAR: return lookUp(Var(expr).name().name());
//     case '.':    return emitSelect(Select(expr));
//     case '+':    return emitBinary(BinOp(expr));
//
// Shapes, where x... is (list x x ...) and x? is (option) or (option x); names are Idents:
//
//   statements
//     Def            (def name decl stmt... decorator-expr...)
//     ClassDef       (class name base-expr... stmt... decorator-expr...)
//     If             (if cond stmt... stmt...)            elif: an If alone in the second list
//     While          (while cond stmt...)
//     For            (for target iter stmt...)
//     With           (with (with_item expr target?)... stmt...)
//     Assign         (assign target... value? type?)      a = b = e: two targets. x: T has no value
//     AugAssign      (aug_assign target (op) value)       op is the kind of the binary operator
//     Return         (return expr)                        a bare `return` returns (None)
//     Raise          (raise expr?)
//     Assert         (assert test message?)
//     Delete         (del target...)
//     ExprStmt       (expr_stmt expr)                     docstrings too
//     Global         (global name...)
//     Import         (import module (alias name as-name?)...)
//     Pass, Break, Continue  (pass), (break), (continue)
//     Broken         (broken (ident "message") name...)   in place of a statement that cannot be
//     read
//
//   parts of statements
//     Decl           (decl param... return-type?)
//     Param          (param name type? default? (True|False))   True: keyword-only
//     Ident          (ident "x")
//
//   expressions
//     Var            (variable name)
//     Const          (const "1.5")                        a number, as written but without
//     underscores StringLiteral  (string_literal "decoded bytes") JoinedStr      (joined_str
//     part...)                 an f-string: StringLiteral, FormattedValue FormattedValue
//     (formatted_value expr (string_literal "r")? format-spec?)
//                                                         format-spec: StringLiteral or JoinedStr
//     True, False, None, ...   (True), (False), (None), (...): trees without children
//     Select         (. value name)
//     Apply          (apply callee arg... (attribute name value)...)   *xs: (starred xs) among the
//     args Subscript      (subscript value index...)           x[i, j]: two; x[(i, j)] and x[i,]:
//     one tuple SliceExpr      (slice start? end? step?)            only as an index BinOp (op lhs
//     rhs)                         op: + - * / % @ & | ^ < > and
//                       TK_POW TK_FLOOR_DIV TK_LSHIFT TK_RSHIFT TK_EQ TK_NE TK_LE TK_GE TK_AND
//                       TK_OR TK_IN TK_NOTIN TK_IS TK_ISNOT     and, or: evaluate rhs only if
//                       needed
//     CompareChain   (compare_chain operand... (op)...)   a < b <= c: 3 operands, 2 ops; b is
//     evaluated
//                                                         once, c only if a < b
//     UnaryOp        (op operand)                         op: TK_UNARY_MINUS TK_UNARY_PLUS ~ TK_NOT
//     TernaryIf      (if_expr cond true-expr false-expr)
//     ListLiteral    (list_literal expr...)
//     TupleLiteral   (tuple_literal expr...)
//     DictLiteral    (dict_literal key... value...)       lists of one length; **other is a Starred
//                                                         key, whose value is None
//     ListComp       (list_comp element generator...)     generator expressions too
//     DictComp       (dict_comp key value generator...)
//     CompFor        (comp_for target iter cond...)       the first is the outermost loop
//     Starred        (starred expr)                       in calls, displays and targets
//     Lambda         (lambda decl body)
//
// Targets (of Assign, AugAssign, For, With, CompFor, Delete) are expressions: Var, Select,
// Subscript, and except for AugAssign a TupleLiteral or ListLiteral of targets; in the latter, for
// Assign and For, at most one is Starred. The parser guarantees it.
//
// Type comments are merged into the tree as if they had been annotations.
//
// The range of an expression covers all of it, without parentheses around it; that of a compound
// statement, Def and ClassDef only the header, up to the colon.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/source_range.h"
#include "frontend/lexer.h"
#include "frontend/tree.h"

namespace wick {

class TreeView {
 public:
  explicit TreeView(TreeRef tree) : tree_(std::move(tree)) {}
  const TreeRef& tree() const { return tree_; }
  int kind() const { return tree_->kind(); }
  const SourceRange& range() const { return tree_->range(); }

 protected:
  // Fails with InternalError unless the tree has this kind and this many children.
  TreeView(TreeRef tree, int kind, size_t children);
  const TreeRef& subtree(size_t index) const { return tree_->child(index); }
  static TreeRef build(int kind, const SourceRange& range, TreeList children) {
    return Tree::create(kind, range, std::move(children));
  }

  TreeRef tree_;
};

// (list x x ...)
template <class T>
class List : public TreeView {
 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(TreeList::const_iterator at) : at_(at) {}
    T operator*() const { return T(*at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    TreeList::const_iterator at_;
  };

  explicit List(const TreeRef& tree) : TreeView(tree, TK_LIST, tree->size()) {}
  size_t size() const { return tree_->size(); }
  bool empty() const { return size() == 0; }
  T operator[](size_t index) const { return T(subtree(index)); }
  Iterator begin() const { return Iterator(tree_->children().begin()); }
  Iterator end() const { return Iterator(tree_->children().end()); }

  static List create(const SourceRange& range, const std::vector<T>& elements = {}) {
    TreeList trees;
    trees.reserve(elements.size());
    for (const T& element : elements) trees.push_back(element.tree());
    return List(build(TK_LIST, range, std::move(trees)));
  }
};

// (option) or (option x)
template <class T>
class Maybe : public TreeView {
 public:
  explicit Maybe(const TreeRef& tree) : TreeView(tree, TK_OPTION, tree->size()) {}
  bool present() const { return tree_->size() > 0; }
  explicit operator bool() const { return present(); }
  // InternalError when not present.
  T get() const { return T(subtree(0)); }

  static Maybe create(const SourceRange& range) { return Maybe(build(TK_OPTION, range, {})); }
  static Maybe create(const SourceRange& range, const T& value) {
    return Maybe(build(TK_OPTION, range, {value.tree()}));
  }
};

class Ident : public TreeView {
 public:
  explicit Ident(const TreeRef& tree) : TreeView(tree, TK_IDENT, 1) {}
  const std::string& name() const { return subtree(0)->stringValue(); }
  static Ident create(const SourceRange& range, std::string name);
};

// Any expression; the views below are made from one by its kind.
class Expr : public TreeView {
 public:
  explicit Expr(const TreeRef& tree);
  static bool isExpr(int kind);

 protected:
  Expr(const TreeRef& tree, int kind, size_t children) : TreeView(tree, kind, children) {}
};

// Any statement.
class Stmt : public TreeView {
 public:
  explicit Stmt(const TreeRef& tree);
  static bool isStmt(int kind);

 protected:
  Stmt(const TreeRef& tree, int kind, size_t children) : TreeView(tree, kind, children) {}
};

// Expressions ------------------------------------------------------------------------------------

class Var : public Expr {
 public:
  explicit Var(const TreeRef& tree) : Expr(tree, TK_VAR, 1) {}
  Ident name() const { return Ident(subtree(0)); }
  static Var create(const SourceRange& range, const Ident& name);
};

// A number without sign: `-5` is (unary_minus (const "5")).
class Const : public Expr {
 public:
  explicit Const(const TreeRef& tree) : Expr(tree, TK_CONST, 1) {}
  // As written, without underscores, digits and letters in lower case.
  const std::string& text() const { return subtree(0)->stringValue(); }
  // Exactly one of these holds.
  bool isInt() const;
  bool isFloat() const;
  bool isComplex() const;
  // CompileError when the value is not within int64. `negated` gives -value, so that the smallest
  // int64 can be written: ask for it where a unary minus stands before the number.
  int64_t asInt(bool negated = false) const;
  // Of a float or an int; too large gives infinity, as in Python.
  double asFloat() const;
  std::complex<double> asComplex() const;
  static Const create(const SourceRange& range, std::string text);
};

class StringLiteral : public Expr {
 public:
  explicit StringLiteral(const TreeRef& tree) : Expr(tree, TK_STRINGLITERAL, 1) {}
  // Decoded: UTF-8, and any byte for an octal escape such as \377.
  const std::string& text() const { return subtree(0)->stringValue(); }
  static StringLiteral create(const SourceRange& range, std::string text);
};

// One {replacement field} of an f-string.
class FormattedValue : public Expr {
 public:
  explicit FormattedValue(const TreeRef& tree) : Expr(tree, TK_FORMATTED_VALUE, 3) {}
  Expr value() const { return Expr(subtree(0)); }
  // "r", "s" or "a" of {value!r}. For {value=} the text "value=" is a part of its own before this
  // one.
  Maybe<StringLiteral> conversion() const { return Maybe<StringLiteral>(subtree(1)); }
  // What follows the colon: a StringLiteral, or a JoinedStr if it has replacement fields itself.
  Maybe<Expr> formatSpec() const { return Maybe<Expr>(subtree(2)); }
  static FormattedValue create(const SourceRange& range, const Expr& value,
                               const Maybe<StringLiteral>& conversion,
                               const Maybe<Expr>& format_spec);
};

class JoinedStr : public Expr {
 public:
  explicit JoinedStr(const TreeRef& tree) : Expr(tree, TK_JOINED_STR, 1) {}
  // StringLiterals and FormattedValues; no two StringLiterals side by side, none of them empty.
  List<Expr> parts() const { return List<Expr>(subtree(0)); }
  static JoinedStr create(const SourceRange& range, const List<Expr>& parts);
};

class Select : public Expr {
 public:
  explicit Select(const TreeRef& tree) : Expr(tree, '.', 2) {}
  Expr value() const { return Expr(subtree(0)); }
  Ident selector() const { return Ident(subtree(1)); }
  static Select create(const SourceRange& range, const Expr& value, const Ident& selector);
};

// A keyword argument of a call: name=value.
class Attribute : public TreeView {
 public:
  explicit Attribute(const TreeRef& tree) : TreeView(tree, TK_ATTRIBUTE, 2) {}
  Ident name() const { return Ident(subtree(0)); }
  Expr value() const { return Expr(subtree(1)); }
  static Attribute create(const SourceRange& range, const Ident& name, const Expr& value);
};

class Apply : public Expr {
 public:
  explicit Apply(const TreeRef& tree) : Expr(tree, TK_APPLY, 3) {}
  Expr callee() const { return Expr(subtree(0)); }
  List<Expr> inputs() const { return List<Expr>(subtree(1)); }
  List<Attribute> attributes() const { return List<Attribute>(subtree(2)); }
  static Apply create(const SourceRange& range, const Expr& callee, const List<Expr>& inputs,
                      const List<Attribute>& attributes);
};

class Subscript : public Expr {
 public:
  explicit Subscript(const TreeRef& tree) : Expr(tree, TK_SUBSCRIPT, 2) {}
  Expr value() const { return Expr(subtree(0)); }
  // At least one.
  List<Expr> subscripts() const { return List<Expr>(subtree(1)); }
  static Subscript create(const SourceRange& range, const Expr& value,
                          const List<Expr>& subscripts);
};

class SliceExpr : public Expr {
 public:
  explicit SliceExpr(const TreeRef& tree) : Expr(tree, TK_SLICE_EXPR, 3) {}
  Maybe<Expr> start() const { return Maybe<Expr>(subtree(0)); }
  Maybe<Expr> end() const { return Maybe<Expr>(subtree(1)); }
  Maybe<Expr> step() const { return Maybe<Expr>(subtree(2)); }
  static SliceExpr create(const SourceRange& range, const Maybe<Expr>& start,
                          const Maybe<Expr>& end, const Maybe<Expr>& step);
};

class BinOp : public Expr {
 public:
  explicit BinOp(const TreeRef& tree);
  static bool isBinOp(int kind);
  Expr lhs() const { return Expr(subtree(0)); }
  Expr rhs() const { return Expr(subtree(1)); }
  static BinOp create(const SourceRange& range, int op, const Expr& lhs, const Expr& rhs);
};

class CompareChain : public Expr {
 public:
  explicit CompareChain(const TreeRef& tree) : Expr(tree, TK_COMPARE_CHAIN, 2) {}
  // At least three.
  List<Expr> operands() const { return List<Expr>(subtree(0)); }
  // The kind of the comparison between operands `index` and `index` + 1.
  int op(size_t index) const { return subtree(1)->child(index)->kind(); }
  static CompareChain create(const SourceRange& range, const List<Expr>& operands,
                             const std::vector<int>& ops);
};

class UnaryOp : public Expr {
 public:
  explicit UnaryOp(const TreeRef& tree);
  static bool isUnaryOp(int kind);
  Expr operand() const { return Expr(subtree(0)); }
  static UnaryOp create(const SourceRange& range, int op, const Expr& operand);
};

class TernaryIf : public Expr {
 public:
  explicit TernaryIf(const TreeRef& tree) : Expr(tree, TK_IF_EXPR, 3) {}
  Expr cond() const { return Expr(subtree(0)); }
  Expr trueExpr() const { return Expr(subtree(1)); }
  Expr falseExpr() const { return Expr(subtree(2)); }
  static TernaryIf create(const SourceRange& range, const Expr& cond, const Expr& true_expr,
                          const Expr& false_expr);
};

class ListLiteral : public Expr {
 public:
  explicit ListLiteral(const TreeRef& tree) : Expr(tree, TK_LIST_LITERAL, 1) {}
  List<Expr> inputs() const { return List<Expr>(subtree(0)); }
  static ListLiteral create(const SourceRange& range, const List<Expr>& inputs);
};

class TupleLiteral : public Expr {
 public:
  explicit TupleLiteral(const TreeRef& tree) : Expr(tree, TK_TUPLE_LITERAL, 1) {}
  List<Expr> inputs() const { return List<Expr>(subtree(0)); }
  static TupleLiteral create(const SourceRange& range, const List<Expr>& inputs);
};

class DictLiteral : public Expr {
 public:
  explicit DictLiteral(const TreeRef& tree) : Expr(tree, TK_DICT_LITERAL, 2) {}
  List<Expr> keys() const { return List<Expr>(subtree(0)); }
  List<Expr> values() const { return List<Expr>(subtree(1)); }
  static DictLiteral create(const SourceRange& range, const List<Expr>& keys,
                            const List<Expr>& values);
};

// One `for target in iter if cond if cond` of a comprehension.
class CompFor : public TreeView {
 public:
  explicit CompFor(const TreeRef& tree) : TreeView(tree, TK_COMP_FOR, 3) {}
  Expr target() const { return Expr(subtree(0)); }
  Expr iter() const { return Expr(subtree(1)); }
  List<Expr> conds() const { return List<Expr>(subtree(2)); }
  static CompFor create(const SourceRange& range, const Expr& target, const Expr& iter,
                        const List<Expr>& conds);
};

class ListComp : public Expr {
 public:
  explicit ListComp(const TreeRef& tree) : Expr(tree, TK_LIST_COMP, 2) {}
  Expr element() const { return Expr(subtree(0)); }
  // At least one.
  List<CompFor> generators() const { return List<CompFor>(subtree(1)); }
  static ListComp create(const SourceRange& range, const Expr& element,
                         const List<CompFor>& generators);
};

class DictComp : public Expr {
 public:
  explicit DictComp(const TreeRef& tree) : Expr(tree, TK_DICT_COMP, 3) {}
  Expr key() const { return Expr(subtree(0)); }
  Expr value() const { return Expr(subtree(1)); }
  // At least one.
  List<CompFor> generators() const { return List<CompFor>(subtree(2)); }
  static DictComp create(const SourceRange& range, const Expr& key, const Expr& value,
                         const List<CompFor>& generators);
};

class Starred : public Expr {
 public:
  explicit Starred(const TreeRef& tree) : Expr(tree, TK_STARRED, 1) {}
  Expr expr() const { return Expr(subtree(0)); }
  static Starred create(const SourceRange& range, const Expr& expr);
};

class Param : public TreeView {
 public:
  explicit Param(const TreeRef& tree) : TreeView(tree, TK_PARAM, 4) {}
  Ident name() const { return Ident(subtree(0)); }
  Maybe<Expr> type() const { return Maybe<Expr>(subtree(1)); }
  Maybe<Expr> defaultValue() const { return Maybe<Expr>(subtree(2)); }
  bool kwargOnly() const { return subtree(3)->kind() == TK_TRUE; }
  Param withType(const Maybe<Expr>& type) const;
  static Param create(const SourceRange& range, const Ident& name, const Maybe<Expr>& type,
                      const Maybe<Expr>& default_value, bool kwarg_only);
};

// What a function takes and gives. Names differ; positional parameters with a default come last;
// keyword-only ones come after all others.
class Decl : public TreeView {
 public:
  explicit Decl(const TreeRef& tree) : TreeView(tree, TK_DECL, 2) {}
  List<Param> params() const { return List<Param>(subtree(0)); }
  Maybe<Expr> returnType() const { return Maybe<Expr>(subtree(1)); }
  static Decl create(const SourceRange& range, const List<Param>& params,
                     const Maybe<Expr>& return_type);
};

class Lambda : public Expr {
 public:
  explicit Lambda(const TreeRef& tree) : Expr(tree, TK_LAMBDA, 2) {}
  Decl decl() const { return Decl(subtree(0)); }
  Expr body() const { return Expr(subtree(1)); }
  static Lambda create(const SourceRange& range, const Decl& decl, const Expr& body);
};

// Statements -------------------------------------------------------------------------------------

class Def : public Stmt {
 public:
  explicit Def(const TreeRef& tree) : Stmt(tree, TK_DEF, 4) {}
  Ident name() const { return Ident(subtree(0)); }
  Decl decl() const { return Decl(subtree(1)); }
  List<Stmt> statements() const { return List<Stmt>(subtree(2)); }
  List<Expr> decorators() const { return List<Expr>(subtree(3)); }
  Def withName(const std::string& name) const;
  Def withDecl(const Decl& decl) const;
  static Def create(const SourceRange& range, const Ident& name, const Decl& decl,
                    const List<Stmt>& statements, const List<Expr>& decorators);
};

class ClassDef : public Stmt {
 public:
  explicit ClassDef(const TreeRef& tree) : Stmt(tree, TK_CLASS_DEF, 4) {}
  Ident name() const { return Ident(subtree(0)); }
  List<Expr> bases() const { return List<Expr>(subtree(1)); }
  List<Stmt> body() const { return List<Stmt>(subtree(2)); }
  List<Expr> decorators() const { return List<Expr>(subtree(3)); }
  static ClassDef create(const SourceRange& range, const Ident& name, const List<Expr>& bases,
                         const List<Stmt>& body, const List<Expr>& decorators);
};

class If : public Stmt {
 public:
  explicit If(const TreeRef& tree) : Stmt(tree, TK_IF, 3) {}
  Expr cond() const { return Expr(subtree(0)); }
  List<Stmt> trueBranch() const { return List<Stmt>(subtree(1)); }
  List<Stmt> falseBranch() const { return List<Stmt>(subtree(2)); }
  static If create(const SourceRange& range, const Expr& cond, const List<Stmt>& true_branch,
                   const List<Stmt>& false_branch);
};

class While : public Stmt {
 public:
  explicit While(const TreeRef& tree) : Stmt(tree, TK_WHILE, 2) {}
  Expr cond() const { return Expr(subtree(0)); }
  List<Stmt> body() const { return List<Stmt>(subtree(1)); }
  static While create(const SourceRange& range, const Expr& cond, const List<Stmt>& body);
};

class For : public Stmt {
 public:
  explicit For(const TreeRef& tree) : Stmt(tree, TK_FOR, 3) {}
  Expr target() const { return Expr(subtree(0)); }
  Expr iter() const { return Expr(subtree(1)); }
  List<Stmt> body() const { return List<Stmt>(subtree(2)); }
  static For create(const SourceRange& range, const Expr& target, const Expr& iter,
                    const List<Stmt>& body);
};

class WithItem : public TreeView {
 public:
  explicit WithItem(const TreeRef& tree) : TreeView(tree, TK_WITH_ITEM, 2) {}
  Expr context() const { return Expr(subtree(0)); }
  Maybe<Expr> target() const { return Maybe<Expr>(subtree(1)); }
  static WithItem create(const SourceRange& range, const Expr& context, const Maybe<Expr>& target);
};

class With : public Stmt {
 public:
  explicit With(const TreeRef& tree) : Stmt(tree, TK_WITH, 2) {}
  // At least one, the outermost first.
  List<WithItem> items() const { return List<WithItem>(subtree(0)); }
  List<Stmt> body() const { return List<Stmt>(subtree(1)); }
  static With create(const SourceRange& range, const List<WithItem>& items, const List<Stmt>& body);
};

class Assign : public Stmt {
 public:
  explicit Assign(const TreeRef& tree) : Stmt(tree, TK_ASSIGN, 3) {}
  // At least one; several for `a = b = value`, from left to right. Only one if there is a type.
  List<Expr> targets() const { return List<Expr>(subtree(0)); }
  Expr target() const { return targets()[0]; }
  // Missing only in `x: T`.
  Maybe<Expr> value() const { return Maybe<Expr>(subtree(1)); }
  Maybe<Expr> type() const { return Maybe<Expr>(subtree(2)); }
  static Assign create(const SourceRange& range, const List<Expr>& targets,
                       const Maybe<Expr>& value, const Maybe<Expr>& type);
};

class AugAssign : public Stmt {
 public:
  explicit AugAssign(const TreeRef& tree) : Stmt(tree, TK_AUG_ASSIGN, 3) {}
  Expr target() const { return Expr(subtree(0)); }
  // The kind of the binary operator: '+' for +=.
  int op() const { return subtree(1)->kind(); }
  Expr value() const { return Expr(subtree(2)); }
  static AugAssign create(const SourceRange& range, const Expr& target, int op, const Expr& value);
};

class Return : public Stmt {
 public:
  explicit Return(const TreeRef& tree) : Stmt(tree, TK_RETURN, 1) {}
  Expr expr() const { return Expr(subtree(0)); }
  static Return create(const SourceRange& range, const Expr& expr);
};

class Raise : public Stmt {
 public:
  explicit Raise(const TreeRef& tree) : Stmt(tree, TK_RAISE, 1) {}
  Maybe<Expr> expr() const { return Maybe<Expr>(subtree(0)); }
  static Raise create(const SourceRange& range, const Maybe<Expr>& expr);
};

class Assert : public Stmt {
 public:
  explicit Assert(const TreeRef& tree) : Stmt(tree, TK_ASSERT, 2) {}
  Expr test() const { return Expr(subtree(0)); }
  Maybe<Expr> message() const { return Maybe<Expr>(subtree(1)); }
  static Assert create(const SourceRange& range, const Expr& test, const Maybe<Expr>& message);
};

class Delete : public Stmt {
 public:
  explicit Delete(const TreeRef& tree) : Stmt(tree, TK_DELETE, 1) {}
  List<Expr> targets() const { return List<Expr>(subtree(0)); }
  static Delete create(const SourceRange& range, const List<Expr>& targets);
};

class ExprStmt : public Stmt {
 public:
  explicit ExprStmt(const TreeRef& tree) : Stmt(tree, TK_EXPR_STMT, 1) {}
  Expr expr() const { return Expr(subtree(0)); }
  static ExprStmt create(const SourceRange& range, const Expr& expr);
};

class Global : public Stmt {
 public:
  explicit Global(const TreeRef& tree) : Stmt(tree, TK_GLOBAL, 1) {}
  List<Ident> names() const { return List<Ident>(subtree(0)); }
  static Global create(const SourceRange& range, const List<Ident>& names);
};

// `a.b as c` of an import.
class Alias : public TreeView {
 public:
  explicit Alias(const TreeRef& tree) : TreeView(tree, TK_ALIAS, 2) {}
  // Dotted in `import a.b`; "*" in `from a import *`.
  Ident name() const { return Ident(subtree(0)); }
  static Alias create(const SourceRange& range, const Ident& name, const Maybe<Ident>& as_name);
};

class Import : public Stmt {
 public:
  explicit Import(const TreeRef& tree) : Stmt(tree, TK_IMPORT, 2) {}
  // The dotted name after `from`, with its leading dots; "" for a plain `import`.
  Ident module() const { return Ident(subtree(0)); }
  List<Alias> names() const { return List<Alias>(subtree(1)); }
  static Import create(const SourceRange& range, const Ident& module, const List<Alias>& names);
};

class Pass : public Stmt {
 public:
  explicit Pass(const TreeRef& tree) : Stmt(tree, TK_PASS, 0) {}
  static Pass create(const SourceRange& range) { return Pass(build(TK_PASS, range, {})); }
};

// What could not be parsed, where the parser went on after the error (Parser::parseModule).
class Broken : public Stmt {
 public:
  explicit Broken(const TreeRef& tree) : Stmt(tree, TK_BROKEN, 2) {}
  // The error has this message and range().
  const std::string& message() const { return Ident(subtree(0)).name(); }
  // What the statement may have meant to define; without any, nobody knows.
  List<Ident> names() const { return List<Ident>(subtree(1)); }
  [[noreturn]] void raise() const;
  static Broken create(const SourceRange& range, const std::string& message,
                       const List<Ident>& names);
};

class Break : public Stmt {
 public:
  explicit Break(const TreeRef& tree) : Stmt(tree, TK_BREAK, 0) {}
  static Break create(const SourceRange& range) { return Break(build(TK_BREAK, range, {})); }
};

class Continue : public Stmt {
 public:
  explicit Continue(const TreeRef& tree) : Stmt(tree, TK_CONTINUE, 0) {}
  static Continue create(const SourceRange& range) {
    return Continue(build(TK_CONTINUE, range, {}));
  }
};

}  // namespace wick
