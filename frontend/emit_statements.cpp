// Statements that are neither assignments nor control flow.
#include <fmt/format.h>

#include "core/error.h"
#include "frontend/class_definitions.h"
#include "frontend/ir_emitter.h"

namespace wick {

void Emitter::emitStatements(const List<Stmt>& statements) {
  size_t defined_before = uncalled_.size();
  for (const Stmt& stmt : statements) {
    // What follows an exit is unreachable and need not make sense, but it has to be read.
    if (hasExited(env_->block())) {
      if (stmt.kind() == TK_BROKEN) Broken(stmt.tree()).raise();
      continue;
    }
    RangeGuard at(&graph_, stmt.range());
    try {
      emitStatement(stmt);
    } catch (const RuntimeError& error) {
      // A type that became too large, a constant that could not be made.
      throwCompileError(stmt.range(), "{}", error.brief());
    }
  }
  checkUncalled(defined_before);
}

void Emitter::emitStatement(const Stmt& stmt) {
  switch (stmt.kind()) {
    case TK_IF:
      return emitIf(If(stmt.tree()));
    case TK_WHILE:
      return emitWhile(While(stmt.tree()));
    case TK_FOR: {
      For loop(stmt.tree());
      return emitFor(loop.target(), emitIterable(loop.iter()), stmt.range(),
                     [&] { emitStatements(loop.body()); });
    }
    case TK_ASSIGN:
      return emitAssignment(Assign(stmt.tree()));
    case TK_AUG_ASSIGN:
      return emitAugAssignment(AugAssign(stmt.tree()));
    case TK_EXPR_STMT:
      return emitExprStatement(ExprStmt(stmt.tree()).expr());
    case TK_RAISE:
      return emitRaise(Raise(stmt.tree()));
    case TK_ASSERT:
      return emitAssert(Assert(stmt.tree()));
    case TK_RETURN:
      return emitReturn(Return(stmt.tree()));
    case TK_BREAK:
      return emitBreak(stmt.range(), prim::BreakStmt, "break");
    case TK_CONTINUE:
      return emitBreak(stmt.range(), prim::ContinueStmt, "continue");
    case TK_PASS:
      return;
    case TK_DEF:
      return emitLocalDef(Def(stmt.tree()));
    case TK_DELETE:
      return emitDelete(Delete(stmt.tree()));
    case TK_WITH:
      return emitWith(With(stmt.tree()));
    case TK_BROKEN:
      Broken(stmt.tree()).raise();
    case TK_GLOBAL:
      throwCompileError(stmt.range(), "global variables are not supported in functions");
    case TK_IMPORT:
      throwCompileError(stmt.range(), "imports are not supported inside of functions");
    case TK_CLASS_DEF:
      throwCompileError(stmt.range(), "classes cannot be defined inside of functions");
    default:
      throwCompileError(stmt.range(), "this statement is not supported: {}",
                        kindToString(stmt.kind()));
  }
}

void Emitter::emitExprStatement(const Expr& expr) {
  if (expr.kind() == TK_STRINGLITERAL || expr.kind() == TK_DOTS) return;  // a docstring, or `...`
  emitSugared(expr, 0);
}

void Emitter::emitRaise(const Raise& stmt) {
  const SourceRange& range = stmt.range();
  if (!stmt.expr()) {
    throwCompileError(range, "raise needs an exception: re-raising is not supported");
  }
  SugaredValuePtr raised = emitSugared(stmt.expr().get());
  auto exception = std::dynamic_pointer_cast<ExceptionValue>(raised);
  if (!exception) {
    throwCompileError(stmt.expr().get().range(),
                      "exceptions must derive from BaseException, found {}", raised->kind());
  }
  Value* message = exception->message();
  if (!message) message = constant(IValue(""));
  // An assertion carries its name in its text, as PyTorch's do.
  const std::string& name = exception->className();
  const bool qualified = name.find('.') != std::string::npos;
  Value* class_name = constant(IValue(qualified ? name : "builtins." + name));
  graph_.insertNode(graph_.create(prim::RaiseException, {message, class_name}, 0));
  exits_.insert(env_->block());
}

void Emitter::emitAssert(const Assert& stmt) {
  CondValue cond = emitCond(stmt.test());
  emitIfElse(
      stmt.range(), cond, [] {},
      [&] {
        Value* message = nullptr;
        if (stmt.message()) {
          message = emitExpr(stmt.message().get());
          if (message->type()->kind() != TypeKind::String) {
            message = builtin(stmt.range(), aten::str, {message});
          }
        }
        auto text = message ? constantOf(message) : std::optional<IValue>(IValue(""));
        if (text) {
          message = constant(IValue("AssertionError: " + text->toString()));
        } else {
          message =
              builtin(stmt.range(), aten::add, {constant(IValue("AssertionError: ")), message});
        }
        Value* none = graph_.insertConstant(IValue(), types::None());
        graph_.insertNode(graph_.create(prim::RaiseException, {message, none}, 0));
        exits_.insert(env_->block());
      });
}

void Emitter::emitDelete(const Delete& stmt) {
  for (const Expr& target : stmt.targets()) {
    switch (target.kind()) {
      case TK_VAR:
        env_->remove(target.range(), Var(target.tree()).name().name());
        break;
      case TK_SUBSCRIPT: {
        Subscript subscript(target.tree());
        Value* container = emitExpr(subscript.value());
        std::vector<Index> indices = emitIndices(subscript);
        if (indices.size() == 1 && indices[0].slice &&
            container->type()->kind() == TypeKind::List) {
          builtin(target.range(), Symbol::prim("deleteSlice"),
                  emitBounds(container, *indices[0].slice));
          break;
        }
        if (indices.size() != 1 || !indices[0].value) {
          throwCompileError(target.range(), "del statements only support deletion by one index");
        }
        Value* index = indices[0].value;
        if (container->type()->kind() == TypeKind::Class) {
          simple(container)
              ->attr(target.range(), fn_, "__delitem__")
              ->call(target.range(), fn_, {NamedValue(target.range(), index)}, {}, 0);
        } else if (container->type()->kind() == TypeKind::Tuple) {
          throwCompileError(target.range(), "the elements of a tuple cannot be deleted");
        } else {
          builtin(target.range(), aten::Delete, {container, index});
        }
        break;
      }
      case TK_TUPLE_LITERAL: {
        List<Expr> inner = TupleLiteral(target.tree()).inputs();
        emitDelete(Delete::create(stmt.range(), inner));
        break;
      }
      default:
        throwCompileError(target.range(),
                          "del statements are only supported for deleting variables and the "
                          "elements of lists and dicts");
    }
  }
}

void Emitter::emitWith(const With& stmt) {
  std::vector<Value*> entered;
  for (const WithItem& item : stmt.items()) {
    const SourceRange& range = item.context().range();
    Value* object = emitExpr(item.context());
    const ClassType* type = object->type()->as<ClassType>();
    if (!type) {
      throwCompileError(range,
                        "With item expression must return an object, found a value of type {}",
                        object->type()->annotation());
    }
    Function* enter = type->findMethod("__enter__");
    Function* exit = type->findMethod("__exit__");
    if (!enter || !exit) {
      checkUnreadable(*type, enter ? "__exit__" : "__enter__");
      throwCompileError(range,
                        "With item expression must return an object whose class defines __enter__ "
                        "and __exit__, found {}, which has no {}",
                        type->annotation(), enter ? "__exit__" : "__enter__");
    }
    const FunctionSchema& enter_schema = enter->schema();
    const FunctionSchema& exit_schema = exit->schema();
    if (enter_schema.arguments().size() != 1) {
      throwCompileError(range, "__enter__ must have only one argument and one return value");
    }
    if (exit_schema.arguments().size() != 4) {
      throwCompileError(range, "__exit__ must have four arguments");
    }
    for (size_t i = 1; i < 4; ++i) {
      if (exit_schema.arguments()[i].type->kind() != TypeKind::Any) {
        throwCompileError(range,
                          "argument {} of __exit__ must have Any type; TorchScript does not "
                          "support passing exceptions to it",
                          i);
      }
    }
    Node* n = graph_.insertNode(graph_.create(prim::Enter, {object}));
    n->output()->setType(enter_schema.returns().at(0).type);
    entered.push_back(object);
    if (item.target()) emitTarget(item.target().get(), simple(n->output()), range);
  }
  emitStatements(stmt.body());
  for (auto it = entered.rbegin(); it != entered.rend(); ++it) {
    graph_.insertNode(graph_.create(prim::Exit, {*it}, 0));
  }
}

void Emitter::emitBreak(const SourceRange& range, Symbol kind, const char* word) {
  if (loop_status_ == LoopStatus::kNone) {
    throwCompileError(range, "SyntaxError: '{}' outside loop", word);
  }
  if (loop_status_ == LoopStatus::kUnrolled) {
    throwCompileError(range,
                      "'{}' is not supported in a loop over modules or a tuple, because such loops "
                      "are unrolled",
                      word);
  }
  graph_.insertNode(graph_.create(kind, 0));
  exits_.insert(env_->block());
  loop_exits_.insert(env_->block());
}

}  // namespace wick
