// From trees to functions: the entry points of the front end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/compile_errors.h"
#include "frontend/resolver.h"
#include "frontend/tree_views.h"
#include "ir/function.h"

namespace wick {

// What `self` is inside of a method.
class Self {
 public:
  virtual ~Self() = default;
  virtual SugaredValuePtr makeSugared(Value* self) const = 0;
  virtual ClassTypePtr classType() const = 0;
};
// For user classes and for module classes of archives.
std::unique_ptr<Self> selfFor(ClassTypePtr type);

// Declares every function of `defs` in `unit` as prefix + "." + name (or bare name for an empty
// prefix) and returns them; bodies are compiled when first needed (Function::ensureDefined), so
// that functions may refer to each other in any order. With `self`, their first argument is an
// object of self's class.
std::vector<GraphFunction*> defineFunctions(CompilationUnit& unit, const std::string& prefix,
                                            const std::vector<Def>& defs,
                                            const ResolverPtr& resolver,
                                            const std::shared_ptr<const Self>& self = nullptr);
// The same as methods of self's class.
void defineMethods(CompilationUnit& unit, const std::string& prefix, const std::vector<Def>& defs,
                   const ResolverPtr& resolver, const std::shared_ptr<const Self>& self);

// Declares a class, NamedTuple, enum or interface from its tree under `qualified_name`. Methods are
// compiled when first needed. Throws CompileError; with `errors`, those of single members of a
// class are added there, and it is defined without them.
TypePtr defineClass(CompilationUnit& unit, const std::string& qualified_name,
                    const ClassDef& definition, const ResolverPtr& resolver, bool is_module,
                    CompileErrors* errors = nullptr);

// Compiles a whole program: its classes and functions, all bodies included. Functions get the names
// "__torch__.NAME". Throws CompileError: the range and brief() of the first error, what() lists
// those of all functions, up to kMaxReportedErrors (parser.h).
std::shared_ptr<CompilationUnit> compileSource(const std::string& text,
                                               const std::string& file_name = "<string>");
// Adds a program to an existing unit. With `errors` hands errors over instead of throwing them.
void compileInto(const std::shared_ptr<CompilationUnit>& unit, const std::string& text,
                 const std::string& file_name = "<string>", CompileErrors* errors = nullptr);
// Compiles the functions of a unit from the `first` on, and those that they add to it, as long as
// there are not `errors` enough.
void compileFunctions(CompilationUnit& unit, size_t first, CompileErrors& errors);

}  // namespace wick
