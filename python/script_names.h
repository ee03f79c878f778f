// What Python's names stand for in functions that are compiled from Python.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/keyed_hash.h"
#include "frontend/compile.h"
#include "frontend/resolver.h"
#include "python/object.h"

namespace wick::python {

// Where all that comes of Python's functions and classes is defined. Never freed.
const std::shared_ptr<CompilationUnit>& scriptUnit();

// A module of Python while its methods are compiled: what attributes do not tell.
struct ModuleInfo {
  ClassTypePtr type;
  // Gives the source of a method: (text, file, line, names), or None; of one that stays Python's the
  // method and the name of its result's type. Null when all is compiled.
  std::shared_ptr<SharedObject> method_source;
  std::map<std::string, std::shared_ptr<ModuleInfo>> submodules;
  // Functions and others that the language has no attributes for.
  std::map<std::string, std::shared_ptr<SharedObject>> values;
  // Its elements are its submodules, in this order.
  bool is_container = false;
  std::vector<std::string> order;
};

// Names of Python: `lookup` is called with a name and returns a tuple with the object, or None.
class PythonNames : public Resolver {
 public:
  explicit PythonNames(PyObject* lookup) : lookup_(Owned::share(lookup)) {}
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                               const SourceRange& range) override;
  TypePtr resolveType(const std::string& name, const SourceRange& range) override;

 private:
  Owned find(const std::string& name) const;
  SharedObject lookup_;
};

// What an object of Python stands for; CompileError when it means nothing to a program.
SugaredValuePtr sugared(PyObject* object, const std::string& name, GraphFunction& fn,
                        const SourceRange& range);

// Declares a method that the module has in Python, unless that has happened.
void declareMethod(const std::shared_ptr<ModuleInfo>& info, const std::string& name);

// The functions of a text that begins at this line of the file. CompileError for anything else in it.
std::vector<Def> parseDefinitions(const std::string& text, const std::string& file, size_t line);

// How a wrapped object of Python is told from others (script.cpp).
GraphFunction* scriptFunctionIn(PyObject* object);

// Held by the thread that compiles what is Python's, once, however deep. The compiler asks Python for
// names, and then another thread of Python may run. So whoever must wait does it without the GIL, and the
// lock that the compiler itself has (ir/function.cpp) is never waited for by a thread that holds the GIL
// while its owner needs that.
class CompileTurn {
 public:
  CompileTurn();
  ~CompileTurn();
  CompileTurn(const CompileTurn&) = delete;
};

}  // namespace wick::python
