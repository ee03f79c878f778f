// The IR emitter: the tree of one function becomes nodes of its graph.
//
// The emitter walks the tree once. Names go through the Environment, calls and attributes through
// SugaredValues, which desugar themselves into nodes. Types are known at every point, because every
// value has one when it is made; conditions refine them. What a condition decides when compiling
// ("metacompilation") removes the dead branch before it is looked at, so that it need not be valid
// for these types. Variables are prim::Load and prim::Store, early exits prim::ReturnStmt and so
// on; convertToSSA and transformExits replace them afterwards.
//
// This header is internal to the front end; compile.h is the way in.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/carried_values.h"
#include "frontend/compile.h"
#include "frontend/environment.h"
#include "frontend/local_functions.h"
#include "frontend/refinement.h"
#include "frontend/schema_matching.h"
#include "frontend/sugared_value.h"
#include "frontend/tree_views.h"
#include "frontend/type_resolver.h"

namespace wick {

class Emitter {
 public:
  // Compiles `def` into `fn`'s graph and sets its schema. `self` is null for plain functions.
  Emitter(GraphFunction& fn, const Def& def, ResolverPtr resolver, const Self* self);

 private:
  // One function or closure whose body is being emitted.
  struct DefFrame {
    TypePtr declared_return;  // null: inferred
    TypePtr merged_return;    // of the returns so far
    bool is_closure = false;
  };
  enum class LoopStatus { kNone, kLoop, kUnrolled };
  class FrameGuard;
  class LoopGuard;
  using Body = std::function<void()>;

  // ir_emitter.cpp: functions, returns, closures
  FunctionSchema emitDef(const Def& def, const Self* self, Block* block);
  std::vector<wick::Argument> emitArguments(const Def& def, const Self* self,
                                            const FunctionSchema& declared, Block* block);
  void emitImplicitReturn(const Def& def, Block* block);
  void emitReturn(const Return& stmt);
  Value* makeClosure(const std::function<void(Block*)>& emit_body);
  Value* finishBody(const Def& def, Block* block);
  void pushFrame(Block* block);
  std::shared_ptr<Environment> popFrame();
  bool hasExited(const Block* block) const { return exits_.count(block) != 0; }

  // emit_functions.cpp: lambdas, nested functions and generic functions, compiled where they are
  // called
  struct Argument {
    SourceRange range;
    std::optional<std::string> name;  // of a keyword
    SugaredValuePtr value;
  };
  void emitLocalDef(const Def& def);
  SugaredValuePtr makeLocalFunction(const std::string& name, const TreeRef& tree, const Decl& decl);
  std::vector<Argument> emitSugaredArguments(const Apply& apply);
  SugaredValuePtr callLocal(const SourceRange& range, LocalFunction& function,
                            const std::vector<Argument>& arguments);
  void bindParameters(const SourceRange& range, LocalFunction& function,
                      const std::vector<Argument>& arguments);
  void bindParameter(const Param& param, const LocalFunction& function, const Argument& argument);
  SugaredValuePtr emitCalledBody(const SourceRange& range, LocalFunction& function,
                                 const std::function<void()>& bind);
  void checkUncalled(size_t first);

  // emit_builtins.cpp: Python's functions on iterables
  static bool isBuiltinForm(Symbol form);
  SugaredValuePtr emitBuiltinForm(Symbol form, const Apply& apply);
  // values.sort(key=…); null for any other call.
  SugaredValuePtr emitSortMethod(const SugaredValuePtr& callee, const Apply& apply);
  SugaredValuePtr emitLength(const SourceRange& range, const Argument& of);
  SugaredValuePtr emitSorted(const SourceRange& range, std::vector<Argument> arguments);
  SugaredValuePtr emitExtremum(const SourceRange& range, bool is_max,
                               std::vector<Argument> arguments);
  Value* emitExtremumOf(const SourceRange& range, Symbol op, const std::vector<Value*>& values);
  SugaredValuePtr emitSum(const SourceRange& range, std::vector<Argument> arguments);
  SugaredValuePtr emitAnyAll(const SourceRange& range, bool is_any,
                             std::vector<Argument> arguments);
  SugaredValuePtr emitMapFilter(const SourceRange& range, bool is_map,
                                std::vector<Argument> arguments);
  Value* listOf(const SourceRange& range, const SugaredValuePtr& iterable);
  // Takes the keyword out of the arguments; null when it is absent or None.
  SugaredValuePtr takeKeyword(std::vector<Argument>& arguments, const char* name);
  SugaredValuePtr callGeneric(const SourceRange& range, const char* name,
                              const std::vector<SugaredValuePtr>& arguments);

  // emit_statements.cpp
  void emitStatements(const List<Stmt>& statements);
  void emitStatement(const Stmt& stmt);
  void emitExprStatement(const Expr& expr);
  void emitRaise(const Raise& stmt);
  void emitAssert(const Assert& stmt);
  void emitDelete(const Delete& stmt);
  void emitWith(const With& stmt);
  void emitBreak(const SourceRange& range, Symbol kind, const char* word);

  // emit_control_flow.cpp
  void emitIf(const If& stmt);
  void emitIfElse(const SourceRange& range, const CondValue& cond, const Body& true_branch,
                  const Body& false_branch);
  std::shared_ptr<Environment> emitBranch(Block* block, const RefinementSet& refinements,
                                          const Body& body);
  bool isAsBefore(const std::string& name, const Environment& one, const Environment& other) const;
  void joinBranches(const SourceRange& range, Node* node, Environment& in_true,
                    Environment& in_false);
  void emitWhile(const While& stmt);
  void emitFor(const Expr& target, const SugaredValuePtr& iterable, const SourceRange& range,
               const Body& body);
  void emitUnrolled(const Expr& target, const SugaredValuePtr& iterable, const SourceRange& range,
                    const Body& body);
  // Over an iterable with a target, or while the condition of `loop` holds.
  void emitLoop(const SourceRange& range, const Body& body, const SugaredValuePtr& iterable,
                const Expr* target, const While* loop);

  // emit_conditions.cpp
  CondValue emitCond(const Expr& expr);
  CondValue emitShortCircuit(const SourceRange& range, const Expr& first, const Expr& second,
                             bool is_or);
  // Those that make a difference to `expr`, when they hold.
  RefinementSet refinementsFor(const Expr& expr, const RefinementList& refinements);
  CondValue emitIsNone(const BinOp& op);
  CondValue emitIsInstance(const Apply& apply);
  CondValue emitHasAttr(const Apply& apply);
  CondValue emitCompareChain(const CompareChain& chain);
  CondValue constantCond(bool value);
  // The types that the second argument of isinstance names; `tested` is the type of the first.
  std::vector<TypePtr> instanceTypes(const Expr& expr, const TypePtr& tested);
  void insertRefinements(const SourceRange& range, const RefinementSet& refinements);
  // The truth of a value, as a bool.
  Value* emitToBool(const SourceRange& range, Value* value);
  // An If with one result; both branches yield a value.
  Value* emitValueIf(const SourceRange& range, const CondValue& cond,
                     const std::function<Value*()>& when_true,
                     const std::function<Value*()>& when_false, const TypePtr& type_hint);
  Value* emitTernary(const TernaryIf& expr, const TypePtr& type_hint);

  // emit_assignments.cpp
  void emitAssignment(const Assign& stmt);
  void emitAnnotated(const Assign& stmt);
  void emitTarget(const Expr& target, const SugaredValuePtr& value, const SourceRange& range);
  void emitTupleTarget(const Expr& target, const List<Expr>& targets, const SugaredValuePtr& value,
                       const SourceRange& range);
  void emitSelectTarget(const Select& target, Value* value, const SourceRange& range);
  std::vector<Value*> emitBounds(Value* container, const SliceValue& slice);
  // a, *b = values of a list, whose length is known when running.
  void emitListTarget(const List<Expr>& targets, size_t starred, Value* list,
                      const SourceRange& range);
  void emitSubscriptTarget(const Subscript& target, const NamedValue& value);
  void emitAugAssignment(const AugAssign& stmt);
  void emitAugSubscript(const AugAssign& stmt, const Subscript& target);
  Value* emitAugOperator(const AugAssign& stmt, Value* lhs, Value* rhs);
  Value* asTensorLike(const SourceRange& range, Value* value, Value* like);

  // emit_expressions.cpp
  Value* emitExpr(const Expr& expr, const TypePtr& type_hint = nullptr);
  SugaredValuePtr emitSugared(const Expr& expr, size_t num_binders = 1,
                              const TypePtr& type_hint = nullptr);
  SugaredValuePtr emitMember(const SugaredValuePtr& object, const SourceRange& range,
                             const std::string& name);
  Value* emitSimple(const Expr& expr, const TypePtr& type_hint);
  Value* emitConst(const Const& expr);
  Value* emitUnary(const UnaryOp& expr);
  Value* emitBinary(const BinOp& expr);
  // Returns the number 0 or 1 for a boolean.
  Value* asInt(const SourceRange& range, Value* flag);
  Value* emitBinary(const SourceRange& range, int op, const NamedValue& lhs, const NamedValue& rhs);
  Value* emitValueComparison(const SourceRange& range, int op, Value* lhs, Value* rhs);
  Value* emitTupleAdd(Value* lhs, Value* rhs);
  Value* emitNone(const TypePtr& type_hint);
  std::vector<NamedValue> emitArguments(const List<Expr>& inputs);
  std::vector<SugaredValuePtr> unpackStarred(const Expr& expr);
  std::optional<size_t> literalSize(const SugaredValuePtr& value);
  std::vector<Value*> emitValues(const List<Expr>& inputs, const TypePtr& type_hint = nullptr);
  std::vector<NamedValue> emitKeywords(const List<Attribute>& attributes);

  // emit_strings.cpp
  Value* emitJoinedStr(const JoinedStr& expr);
  void appendFormat(const Expr& expr, std::string& format, std::vector<NamedValue>& args);

  // emit_displays.cpp: list, tuple and dict literals, comprehensions
  Value* emitListLiteral(const ListLiteral& expr, const TypePtr& type_hint);
  Value* emitTupleLiteral(const TupleLiteral& expr, const TypePtr& type_hint);
  Value* emitDictLiteral(const DictLiteral& expr, const TypePtr& type_hint);
  Value* emitStarredList(const ListLiteral& expr, const TypePtr& element_hint);
  Value* emitMergedDict(const DictLiteral& expr, const TypePtr& dict_hint);
  Value* emitListComp(const ListComp& expr, const TypePtr& type_hint);
  Value* emitDictComp(const DictComp& expr, const TypePtr& type_hint);
  SugaredValuePtr emitIterable(const Expr& iter);
  // Begins the scope of a comprehension, which its targets belong to, in the current frame.
  void beginComprehension(const List<CompFor>& generators);
  // The loops from `index` on, the first of them over `iterable`.
  void emitGenerators(const List<CompFor>& generators, size_t index,
                      const SugaredValuePtr& iterable, const Body& innermost);
  Value* collectIntoList(const SourceRange& range, const SugaredValuePtr& iterable,
                         const TypePtr& type_hint);
  // The List or Dict type that a literal with this hint makes; the hint may be a union with exactly
  // one such member. Null without a hint that says so.
  TypePtr hintedContainer(const SourceRange& range, const TypePtr& type_hint, TypeKind kind);
  Value* unifyInto(const SourceRange& range, const TypePtr& type, Value* value);

  // emit_calls.cpp
  SugaredValuePtr emitApply(const Apply& apply, size_t num_binders, const TypePtr& type_hint);
  SugaredValuePtr emitSpecialForm(Symbol form, const Apply& apply, const SugaredValuePtr& callee,
                                  const TypePtr& type_hint);
  Value* emitAnnotate(const Apply& apply, bool unchecked);
  Value* emitToList(const Apply& apply, const SugaredValuePtr& callee, const TypePtr& type_hint);
  SugaredValuePtr emitFork(const Apply& apply);
  // A closure that calls the first input with the others and the keywords.
  Value* makeCallClosure(const Apply& apply);
  SugaredValuePtr emitZip(const Apply& apply);
  SugaredValuePtr emitEnumerate(const Apply& apply);
  SugaredValuePtr emitRange(const Apply& apply);
  SugaredValuePtr emitGetAttr(const Apply& apply, const TypePtr& type_hint);
  SugaredValuePtr emitReversed(const Apply& apply);
  SugaredValuePtr emitSliceCall(const Apply& apply);
  void expectInputs(const Apply& apply, const char* name, size_t least, size_t most);

  // emit_gradients.cpp
  SugaredValuePtr emitCheckpoint(const Apply& apply);
  SugaredValuePtr emitCustomFunction(const Apply& apply);

  // emit_constructors.cpp: list(), dict(), tuple(), sum over iterables…
  SugaredValuePtr emitListCall(const Apply& apply, const TypePtr& type_hint);
  SugaredValuePtr emitFromKeys(const Apply& apply);
  SugaredValuePtr emitDictCall(const Apply& apply, const TypePtr& type_hint);
  SugaredValuePtr emitTupleCall(const Apply& apply, const TypePtr& type_hint);

  // emit_subscripts.cpp
  // One subscript, evaluated: a slice, an ellipsis or a value.
  struct Index {
    SourceRange range;
    bool is_ellipsis = false;
    std::shared_ptr<SliceValue> slice;
    Value* value = nullptr;
  };
  SugaredValuePtr emitSubscript(const Subscript& expr, const TypePtr& type_hint);
  SugaredValuePtr emitModuleSlice(const SourceRange& range, const SugaredValuePtr& object,
                                  const SliceValue& slice);
  Index emitIndex(const Expr& expr);
  std::vector<Index> emitIndices(const Subscript& expr);
  Value* emitSlice(const SourceRange& range, Value* value, const SliceValue& slice,
                   std::optional<int64_t> dim);
  Value* emitTupleSlice(const SourceRange& range, Value* tuple, const SliceValue& slice);
  // Selects, slices and unsqueezes; what remains for advanced indexing comes back as indices.
  struct TensorIndexing {
    Value* sliced;
    std::vector<Value*> indices;
  };
  TensorIndexing emitTensorIndexing(const SourceRange& range, Value* tensor,
                                    std::vector<Index> subscripts);
  Value* emitTensorSubscript(const SourceRange& range, Value* tensor,
                             std::vector<Index> subscripts);

  // Helpers
  Value* constant(IValue value) { return graph_.insertConstant(std::move(value)); }
  Value* builtin(const SourceRange& range, Symbol name, const std::vector<Value*>& args);
  // Casts to a type that this compiler has proved.
  Value* uncheckedCast(Value* value, const TypePtr& type);
  // Casts to a type that a program claims; a value of another type raises a RuntimeError.
  Value* checkedCast(const SourceRange& range, Value* value, const TypePtr& type);
  SugaredValuePtr simple(Value* value) { return std::make_shared<SimpleValue>(value); }
  TypePtr typeOf(const Expr& expr) { return TypeResolver(resolver_).typeOf(expr); }

  GraphFunction& fn_;
  Graph& graph_;
  ResolverPtr resolver_;
  std::shared_ptr<Environment> env_;
  std::vector<DefFrame> defs_;
  // Blocks whose end is never reached: they return, raise, break or continue.
  std::unordered_set<const Block*> exits_;
  // Those of them that may break or continue: what follows knows nothing more for it, as in
  // PyTorch.
  std::unordered_set<const Block*> loop_exits_;
  LoopStatus loop_status_ = LoopStatus::kNone;
  // The frames of the calls of local functions that are being expanded.
  std::vector<std::shared_ptr<Environment>> callers_;
  // Nested functions of the statements that are being emitted, which are compiled even when nobody
  // calls them.
  std::vector<std::shared_ptr<LocalFunction>> uncalled_;
  CarriedValues carried_;
  size_t joining_nodes_ = 0;  // made for them
  size_t expanded_height_ = 0;
  size_t expanded_size_ = 0;
  friend class LocalFunction;
};

// Adds an environment frame for a block and takes it away.
class Emitter::FrameGuard {
 public:
  FrameGuard(Emitter& emitter, Block* block) : emitter_(emitter) { emitter_.pushFrame(block); }
  ~FrameGuard() { emitter_.popFrame(); }
  FrameGuard(const FrameGuard&) = delete;

 private:
  Emitter& emitter_;
};

class Emitter::LoopGuard {
 public:
  LoopGuard(Emitter& emitter, LoopStatus status) : emitter_(emitter), old_(emitter.loop_status_) {
    emitter.loop_status_ = status;
  }
  ~LoopGuard() { emitter_.loop_status_ = old_; }
  LoopGuard(const LoopGuard&) = delete;

 private:
  Emitter& emitter_;
  LoopStatus old_;
};

// The names that an assignment target binds.
void collectNames(const Expr& target, std::vector<std::string>& out);
// The names that statements bind in their function.
void collectAssigned(const Stmt& stmt, std::vector<std::string>& out);
void collectAssigned(const List<Stmt>& statements, std::vector<std::string>& out);

// After transformExits: the bodies of called local functions take the place of their calls.
void dissolveCalls(Graph& graph);

// The operators of forms that run parts of the program (emit_gradients.cpp).
inline Symbol checkpointKind() {
  return Symbol::fromQualString("wick::checkpoint");
}
inline Symbol customFunctionKind() {
  return Symbol::fromQualString("wick::custom_function");
}

// After convertToSSA: the closures that forks and checkpoints run become graphs of their own with the
// values they capture as inputs (prim::fork[Subgraph]); closures that nothing uses disappear.
void liftClosures(Graph& graph);

}  // namespace wick
