// The names that a file defines at its top level besides functions and classes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "frontend/resolver.h"
#include "frontend/tree_views.h"
#include "ir/function.h"

namespace wick {

// Resolves names of a program: constants (`LIMIT = 3`), names for types (`Pair = Tuple[int, int]`),
// NamedTuples made by a call (`P = namedtuple("P", ["x"])`) and exception classes, else what
// nativeResolver finds in the unit. A name stands for what it was defined as, once; a constant is a
// value that no program can change, so lists and dicts are not constants.
class FileScope : public Resolver, public std::enable_shared_from_this<FileScope> {
 public:
  FileScope(const std::shared_ptr<CompilationUnit>& unit, std::string prefix);

  // `NAME = value` or `NAME: T = value`. CompileError for anything else, and for a name that is
  // defined already.
  void assign(const Assign& statement);
  // True when the class derives from an exception, of Python's or of this file; its body means
  // nothing to a program, which can only raise it.
  bool defineException(const ClassDef& definition);

  // All functions of the file, those marked @torch.jit.unused and @torch.jit._overload as they ask:
  // the declarations of overloads come before the one body that each of them gets. Bodies find
  // names through `resolver`, which asks this scope.
  void defineFunctions(const std::vector<Def>& definitions, const ResolverPtr& resolver);

  // Whoever asks for this class, or for what the statement may have been to define and nothing else
  // does, gets the error again.
  void markBroken(const std::string& class_name, const CompileError& error);
  void markBroken(const Broken& statement);

  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                               const SourceRange& range) override;
  TypePtr resolveType(const std::string& name, const SourceRange& range) override;
  std::set<std::string> knownNames() const override;
  std::set<std::string> functionsOf(const std::string& class_name) const override {
    return unit_names_->functionsOf(class_name);
  }
  void checkBroken(const std::string& name) const override;

 private:
  bool defineNamedTuple(const std::string& name, const Apply& call);
  void checkNew(const std::string& name, const SourceRange& range) const;

  std::weak_ptr<CompilationUnit> unit_;  // it owns functions that hold this scope
  ResolverPtr unit_names_;
  std::string prefix_;
  // With its type, which is as large as the value: each use names the same one.
  struct Constant {
    IValue value;
    TypePtr type;
  };
  KeyedMap<std::string, Constant> constants_;
  KeyedMap<std::string, TypePtr> types_;
  KeyedMap<std::string, std::vector<Function*>> overloads_;
  KeyedMap<std::string, std::string> exceptions_;  // name to qualified name
  KeyedMap<std::string, CompileError> broken_classes_;
  std::map<std::string, Broken> broken_names_;
  // Without a name a line may have defined any, but only one: the first that is asked for.
  struct Nameless {
    Broken statement;
    std::string name;
  };
  mutable std::vector<Nameless> broken_nameless_;
};

}  // namespace wick
