#include "frontend/compile.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/stack.h"
#include "frontend/class_definitions.h"
#include "frontend/file_scope.h"
#include "frontend/ir_emitter.h"
#include "frontend/local_functions.h"
#include "frontend/parser.h"

namespace wick {

namespace {

// What the emitter uses for each level of the deepest tree of expressions or blocks, and for all
// else.
constexpr size_t kStackPerLevel = 6144;
constexpr size_t kStackForEmitter = size_t{384} << 10;

size_t stackForTree(const Tree& tree) {
  return kStackForEmitter + kStackPerLevel * tree.height();
}

}  // namespace

std::vector<GraphFunction*> defineFunctions(CompilationUnit& unit, const std::string& prefix,
                                            const std::vector<Def>& defs,
                                            const ResolverPtr& resolver,
                                            const std::shared_ptr<const Self>& self) {
  std::vector<GraphFunction*> out;
  for (const Def& def : defs) {
    std::string name = prefix.empty() ? def.name().name() : prefix + "." + def.name().name();
    auto define = [def, resolver, self](GraphFunction& fn) {
      if (self && fn.name() != "__init__") {
        try {
          ensureInitialized(*self->classType());
        } catch (const CompileError&) {
          // Comes again with the first attribute that is not found.
        }
      }
      fn.setGraph(std::make_shared<Graph>());
      withStack(stackForTree(*def.tree()), [&] { Emitter(fn, def, resolver, self.get()); });
    };
    if (unit.findFunction(name)) {
      throwCompileError(def.range(), "the function '{}' is defined twice", def.name().name());
    }
    out.push_back(unit.createFunction(name, nullptr, define));
  }
  return out;
}

void defineMethods(CompilationUnit& unit, const std::string& prefix, const std::vector<Def>& defs,
                   const ResolverPtr& resolver, const std::shared_ptr<const Self>& self) {
  for (GraphFunction* method : defineFunctions(unit, prefix, defs, resolver, self)) {
    self->classType()->addMethod(method);
  }
}

namespace {

constexpr const char* kPrefix = "__torch__.";

}  // namespace

void compileInto(const std::shared_ptr<CompilationUnit>& unit, const std::string& text,
                 const std::string& file_name, CompileErrors* errors) {
  std::vector<CompileError> syntax;
  List<Stmt> module = Parser(text, file_name).parseModule(syntax);
  auto file = std::make_shared<FileScope>(unit, kPrefix);
  auto resolver = std::make_shared<GenericScope>(file);
  CompileErrors own;
  CompileErrors& found = errors ? *errors : own;
  for (const CompileError& error : syntax) found.add(error);
  std::vector<Def> defs;
  // What stands below a statement that could not be read may belong to it.
  bool after_broken = false;
  size_t first_function = unit->functions().size();
  for (const Stmt& stmt : module) {
    if (found.enough()) break;
    const bool maybe_orphan = std::exchange(after_broken, false);
    switch (stmt.kind()) {
      case TK_DEF: {
        Def def(stmt.tree());
        if (isGenericFunction(def)) {
          found.collect([&] { resolver->add(def); });
        } else {
          defs.push_back(def);
        }
        break;
      }
      case TK_CLASS_DEF: {
        ClassDef definition(stmt.tree());
        const std::string name = definition.name().name();
        try {
          if (file->defineException(definition)) break;
          defineClass(*unit, kPrefix + name, definition, resolver, /*is_module=*/false, &found);
        } catch (const CompileError& error) {
          found.add(error);
          file->markBroken(name, error);
        }
        break;
      }
      case TK_ASSIGN:
        found.collect([&] { file->assign(Assign(stmt.tree())); });
        break;
      case TK_BROKEN:
        file->markBroken(Broken(stmt.tree()));
        after_broken = true;
        break;
      case TK_IMPORT:
        // What programs import is known already; an unknown name is reported where it is used.
        break;
      case TK_EXPR_STMT:
        if (ExprStmt(stmt.tree()).expr().kind() == TK_STRINGLITERAL) break;
        [[fallthrough]];
      default:
        after_broken = maybe_orphan;
        if (maybe_orphan) break;
        found.collect([&] {
          throwCompileError(
              stmt.range(),
              "a program holds functions, classes, constants and imports at its top level");
        });
    }
  }
  if (!found.enough()) {
    const size_t before = found.all().size();
    found.collect([&] { file->defineFunctions(defs, resolver); });
    if (found.all().size() == before) compileFunctions(*unit, first_function, found);
  }
  own.throwIfAny();
}

void compileFunctions(CompilationUnit& unit, size_t first, CompileErrors& errors) {
  // Bodies may add functions (instances of classes, for one), so the list may grow meanwhile.
  for (size_t i = first; i < unit.functions().size() && !errors.enough(); ++i) {
    errors.collect([&] { unit.functions()[i]->ensureDefined(); });
  }
}

std::shared_ptr<CompilationUnit> compileSource(const std::string& text,
                                               const std::string& file_name) {
  auto unit = std::make_shared<CompilationUnit>();
  compileInto(unit, text, file_name);
  return unit;
}

}  // namespace wick
