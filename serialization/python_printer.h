// Graphs as TorchScript source: what PyTorch's `.code` shows, and what archives hold.
//
// The source is importable: compiling it gives a graph of the same meaning. Names come from the
// graph's values; an expression stands where its value is used when nothing can happen in between,
// and long lines are broken into assignments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ivalue.h"
#include "ir/function.h"
#include "serialization/source_origins.h"

namespace wick {

struct SourceOptions {
  // Operators that optimizations made of PyTorch's ("wick::linear_fused") are written as such, for
  // readers that are Wick. Otherwise they are taken apart (passes/restore_operators.h).
  bool own_operators = false;
};

// Used by one thread.
class PythonPrinter {
 public:
  explicit PythonPrinter(const SourceOptions& options = {});
  ~PythonPrinter();

  // `def name(…) -> T:` and its body. Without `self_type` the `self` of a method has no annotation,
  // as in `.code`. RuntimeError for graphs that source cannot express (such as hold for certain
  // types of tensors only).
  void printFunction(GraphFunction& function, bool self_type = true);
  // A class with its attributes, constants and methods, a NamedTuple, an enum or an interface.
  void printType(const Type& type);

  // All that was printed so far.
  const std::string& text() const;
  // Where the statements of the text came from.
  const std::vector<SourceMark>& marks() const;
  // What CONSTANTS.cN refers to.
  const std::vector<IValue>& constants() const;
  // The classes, NamedTuples, enums and interfaces that the text names, in order of appearance, and
  // the functions that it calls.
  const std::vector<TypePtr>& usedTypes() const;
  const std::vector<Function*>& usedFunctions() const;
  // What the text calls a class or function: its qualified name, or another one where two things
  // of one name come together.
  std::string nameOf(const Type& type);
  std::string nameOf(const Function& function);
  // A type as the text writes it; the classes that it names are used from then on.
  std::string typeName(const Type& type);
  // Operators in the text that Wick has for itself ("wick::linear_fused").
  const std::vector<std::string>& ownOperators() const;
  // Whether the text was printed from graphs that passes made (passes/restore_operators.h).
  bool isRewritten() const;
  // The oldest version of the archive format that gives all operators so far their meaning.
  int64_t formatVersion() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One function as `.code` shows it.
std::string printPython(GraphFunction& function, bool self_type = true);

}  // namespace wick
