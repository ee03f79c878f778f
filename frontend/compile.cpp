#include "frontend/compile.h"

#include <fmt/format.h>

#include "core/error.h"
#include "frontend/class_definitions.h"
#include "frontend/file_scope.h"
#include "frontend/ir_emitter.h"
#include "frontend/local_functions.h"
#include "frontend/parser.h"

namespace wick {

std::vector<GraphFunction*> defineFunctions(CompilationUnit& unit, const std::string& prefix,
                                            const std::vector<Def>& defs,
                                            const ResolverPtr& resolver,
                                            const std::shared_ptr<const Self>& self) {
  std::vector<GraphFunction*> out;
  for (const Def& def : defs) {
    std::string name = prefix.empty() ? def.name().name() : prefix + "." + def.name().name();
    auto define = [def, resolver, self](GraphFunction& fn) {
      if (self && fn.name() != "__init__") ensureInitialized(*self->classType());
      fn.setGraph(std::make_shared<Graph>());
      Emitter(fn, def, resolver, self.get());
    };
    if (unit.findFunction(name)) {
      throwCompileError(def.range(), "the function '{}' is defined twice", def.name().name());
    }
    out.push_back(unit.createFunction(name, nullptr, define));
    if (self) self->classType()->addMethod(out.back());
  }
  return out;
}

namespace {

constexpr const char* kPrefix = "__torch__.";

}  // namespace

void compileInto(const std::shared_ptr<CompilationUnit>& unit, const std::string& text,
                 const std::string& file_name, std::vector<CompileError>* errors) {
  Parser parser(text, file_name);
  List<Stmt> module = parser.parseModule();
  auto file = std::make_shared<FileScope>(unit, kPrefix);
  auto resolver = std::make_shared<GenericScope>(file);
  std::vector<Def> defs;
  size_t first_function = unit->functions().size();
  for (const Stmt& stmt : module) {
    switch (stmt.kind()) {
      case TK_DEF: {
        Def def(stmt.tree());
        if (isGenericFunction(def)) {
          resolver->add(def);
        } else {
          defs.push_back(def);
        }
        break;
      }
      case TK_CLASS_DEF: {
        ClassDef definition(stmt.tree());
        if (file->defineException(definition)) break;
        defineClass(*unit, kPrefix + definition.name().name(), definition, resolver,
                    /*is_module=*/false);
        break;
      }
      case TK_ASSIGN:
        file->assign(Assign(stmt.tree()));
        break;
      case TK_IMPORT:
        // What programs import is known already; an unknown name is reported where it is used.
        break;
      case TK_EXPR_STMT:
        if (ExprStmt(stmt.tree()).expr().kind() == TK_STRINGLITERAL) break;
        [[fallthrough]];
      default:
        throwCompileError(
            stmt.range(),
            "a program holds functions, classes, constants and imports at its top level");
    }
  }
  file->defineFunctions(defs, resolver);
  compileFunctions(*unit, first_function, errors);
}

void compileFunctions(CompilationUnit& unit, size_t first, std::vector<CompileError>* errors) {
  // Bodies may add functions (instances of classes, for one), so the list may grow meanwhile.
  for (size_t i = first; i < unit.functions().size(); ++i) {
    if (!errors) {
      unit.functions()[i]->ensureDefined();
      continue;
    }
    try {
      unit.functions()[i]->ensureDefined();
    } catch (const CompileError& error) {
      errors->push_back(error);
    }
  }
}

std::shared_ptr<CompilationUnit> compileSource(const std::string& text,
                                               const std::string& file_name) {
  auto unit = std::make_shared<CompilationUnit>();
  compileInto(unit, text, file_name);
  return unit;
}

}  // namespace wick
