#include "frontend/builtin_functions.h"

#include <map>
#include <mutex>
#include <set>

#include "core/error.h"
#include "core/native_class.h"
#include "frontend/compile.h"
#include "frontend/local_functions.h"
#include "frontend/parser.h"
#include "frontend/script_library.h"
#include "frontend/type_resolver.h"

namespace wick {

namespace {

// All script builtins, declared when first asked for and compiled one by one.
class Library {
 public:
  static Library& instance() {
    // Never destroyed: functions are used until the process ends.
    static Library* library = new Library;
    return *library;
  }

  std::vector<GraphFunction*> named(Symbol name) {
    std::lock_guard lock(mutex_);
    load("aten");
    auto it = operators_.find(name);
    if (it == operators_.end()) return {};
    std::vector<GraphFunction*> out;
    for (GraphFunction* f : it->second) {
      // Inside of an overload, its own name means the operator that it wraps.
      if (!f->isBeingDefined()) out.push_back(f);
    }
    return out;
  }

  GraphFunction* function(const std::string& name) {
    std::lock_guard lock(mutex_);
    load(name.substr(0, name.rfind('.')));
    GraphFunction* f = unit_->findFunction(kPrefix + name);
    // Compiling one may compile others, through the same thread.
    if (f && !f->isDefined() && !f->isBeingDefined()) f->ensureDefined();
    return f;
  }

  TypePtr type(const std::string& name) {
    std::lock_guard lock(mutex_);
    load(name.substr(0, name.rfind('.')));
    TypePtr found = unit_->findType(kPrefix + name);
    const ClassType* object = found ? found->as<ClassType>() : nullptr;
    if (object) {
      for (Function* method : object->methods()) {
        auto* f = static_cast<GraphFunction*>(method);
        if (!f->isDefined() && !f->isBeingDefined()) f->ensureDefined();
      }
    }
    return found;
  }

  GenericFunction generic(const std::string& name) {
    std::lock_guard lock(mutex_);
    load("generic");
    auto it = generics_.find(name);
    WICK_ASSERT(it != generics_.end(), "there is no generic function {}", name);
    return it->second;
  }

  void define(GraphFunction& function) {
    std::lock_guard lock(mutex_);
    function.ensureDefined();
  }

  std::vector<std::string> names() {
    std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const ScriptLibraryPart& part : scriptLibrary()) load(part.module);
    for (const auto& f : unit_->functions()) {
      out.push_back(f->qualifiedName().substr(kPrefix.size()));
    }
    return out;
  }

 private:
  Library() : unit_(std::make_shared<CompilationUnit>()) {}

  // Parses the parts of a module when it is first asked for something.
  void load(const std::string& module) {
    // Its classes come with the devices.
    if (module == "torch.cuda" && !findNativeClass("__torch__.torch.classes.cuda.Stream")) return;
    if (!loaded_.insert(module).second) return;
    for (const ScriptLibraryPart& part : scriptLibrary()) {
      if (module == part.module) declare(module, part.source);
    }
  }

  void declare(const std::string& module, const char* source) {
    ResolverPtr resolver = nativeResolver(unit_, kPrefix + module + ".");
    Parser parser(source, "<builtin " + module + ">");
    std::vector<Def> defs;
    for (const Stmt& stmt : parser.parseModule()) {
      if (stmt.kind() == TK_CLASS_DEF) {
        ClassDef definition(stmt.tree());
        defineClass(*unit_, kPrefix + module + "." + definition.name().name(), definition, resolver,
                    false);
      } else {
        defs.emplace_back(stmt.tree());
      }
    }
    if (module == "generic") {
      auto scope = std::make_shared<GenericScope>(resolver);
      for (const Def& def : defs) {
        scope->add(def);
        generics_.emplace(def.name().name(), GenericFunction{def, scope});
      }
      return;
    }
    if (module != "aten") {
      defineFunctions(*unit_, kPrefix + module, defs, resolver);
      return;
    }
    // Overloads share a name; each becomes a function of its own. What they take and give is
    // declared, so that choosing among them compiles none.
    for (size_t i = 0; i < defs.size(); ++i) {
      std::string prefix = kPrefix + "aten.overload" + std::to_string(i);
      GraphFunction* made = defineFunctions(*unit_, prefix, {defs[i]}, resolver).at(0);
      made->setSchema(TypeResolver(resolver).schemaOf(defs[i], false));
      operators_[Symbol::aten(defs[i].name().name())].push_back(made);
    }
  }

  const std::string kPrefix = "__torch__.";
  std::recursive_mutex mutex_;
  std::shared_ptr<CompilationUnit> unit_;
  std::set<std::string> loaded_;
  std::map<Symbol, std::vector<GraphFunction*>> operators_;
  std::map<std::string, GenericFunction> generics_;
};

}  // namespace

std::vector<GraphFunction*> builtinFunctionsNamed(Symbol name) {
  return Library::instance().named(name);
}

GraphFunction* builtinScriptFunction(const std::string& qualified_name) {
  return Library::instance().function(qualified_name);
}

TypePtr builtinScriptType(const std::string& qualified_name) {
  return Library::instance().type(qualified_name);
}

GenericFunction builtinGenericFunction(const std::string& name) {
  return Library::instance().generic(name);
}

void defineBuiltinFunction(GraphFunction& function) {
  Library::instance().define(function);
}

std::vector<std::string> builtinScriptNames() {
  return Library::instance().names();
}

}  // namespace wick
