#include "frontend/compile.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "core/error.h"
#include "core/stack.h"
#include "frontend/class_definitions.h"
#include "frontend/file_scope.h"
#include "frontend/ir_emitter.h"
#include "frontend/local_functions.h"
#include "frontend/parser.h"

namespace wick {

namespace {

// What the emitter uses for the deepest tree of a level of expressions or blocks, and besides.
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
      if (self && fn.name() != "__init__") ensureInitialized(*self->classType());
      fn.setGraph(std::make_shared<Graph>());
      withStack(stackForTree(*def.tree()), [&] { Emitter(fn, def, resolver, self.get()); });
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

// The errors of a program's functions and classes, one after the other.
class Errors {
 public:
  // Runs `work` and keeps the CompileError that it throws.
  template <class F>
  void collect(F&& work) {
    try {
      work();
    } catch (const CompileError& error) {
      add(error);
    }
  }
  bool enough() const { return seen_.size() >= kMaxReportedErrors || tries_ >= kMaxFailures; }
  void throwIfAny() const {
    if (all_) throw *all_;
  }

 private:
  // Functions that fail because of what they call fail with the same error, and are compiled in
  // vain each time: for this many, at most.
  static constexpr size_t kMaxFailures = 100;

  void add(const CompileError& error) {
    ++tries_;
    if (!seen_.insert(error.what()).second) return;
    if (all_) {
      all_->append(error);
    } else {
      all_ = error;
    }
  }

  std::set<std::string> seen_;
  std::optional<CompileError> all_;
  size_t tries_ = 0;
};

}  // namespace

void compileInto(const std::shared_ptr<CompilationUnit>& unit, const std::string& text,
                 const std::string& file_name, std::vector<CompileError>* errors) {
  List<Stmt> module = Parser(text, file_name).parseModule();
  auto file = std::make_shared<FileScope>(unit, kPrefix);
  auto resolver = std::make_shared<GenericScope>(file);
  Errors found;
  std::vector<Def> defs;
  size_t first_function = unit->functions().size();
  for (const Stmt& stmt : module) {
    if (found.enough()) break;
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
        found.collect([&] {
          if (file->defineException(definition)) return;
          defineClass(*unit, kPrefix + definition.name().name(), definition, resolver,
                      /*is_module=*/false);
        });
        break;
      }
      case TK_ASSIGN:
        found.collect([&] { file->assign(Assign(stmt.tree())); });
        break;
      case TK_IMPORT:
        // What programs import is known already; an unknown name is reported where it is used.
        break;
      case TK_EXPR_STMT:
        if (ExprStmt(stmt.tree()).expr().kind() == TK_STRINGLITERAL) break;
        [[fallthrough]];
      default:
        found.collect([&] {
          throwCompileError(
              stmt.range(),
              "a program holds functions, classes, constants and imports at its top level");
        });
    }
  }
  // What uses a class that has errors would only repeat them.
  found.throwIfAny();
  file->defineFunctions(defs, resolver);
  if (errors) return compileFunctions(*unit, first_function, errors);
  // Bodies may add functions, so the list may grow meanwhile.
  for (size_t i = first_function; i < unit->functions().size() && !found.enough(); ++i) {
    found.collect([&] { unit->functions()[i]->ensureDefined(); });
  }
  found.throwIfAny();
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
