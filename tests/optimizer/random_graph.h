// Random graphs for checking that passes change no result: tensors and views of them, in-place
// operators, lists, dictionaries, tuples and objects, branches, loops and calls. The same numbers
// always give the same graph. Nearly all of them run without an error.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "ir/function.h"
#include "ir/graph.h"

namespace wick {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed);
  // The inputs are a matrix (4x4), two vectors (4), a list of vectors, an object and an int.
  std::shared_ptr<Graph> make();
  // New arguments, the same at every call. The first vector may be a row of the matrix, the list
  // may hold the second. Variants beyond 0 have other dtypes or ranks here and there, for which
  // many a graph raises.
  static constexpr int kVariants = 5;
  std::vector<IValue> arguments(int variant = 0);

 private:
  enum Kind { kMatrix, kVector, kList, kNested, kDict, kPair, kObject, kInt, kFloat, kBool, kNum };
  using Scope = std::vector<std::pair<Value*, Kind>>;

  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  bool oneIn(size_t n) { return below(n) == 0; }
  TypePtr typeOf(Kind kind) const;
  Value* any(Kind kind);
  Value* add(Value* v, Kind kind);
  Value* constant(IValue v) { return graph_->insertConstant(std::move(v)); }
  Value* op(const char* name, std::vector<Value*> inputs, Kind kind);
  void effect(const char* name, std::vector<Value*> inputs);
  Value* fresh(Kind kind);

  void statement(int depth);
  void tensorStatement();
  void viewStatement();
  void inplaceStatement();
  void listStatement();
  void dictStatement();
  void tupleStatement();
  void objectStatement();
  void scalarStatement();
  void callStatement();
  void branch(int depth);
  void loop(int depth);
  void body(int depth, size_t statements);
  Kind carriedKind();

  std::mt19937_64 random_;
  uint64_t argument_seed_;
  CompilationUnit unit_;
  ClassTypePtr class_;
  std::vector<GraphFunction*> functions_;
  std::shared_ptr<Graph> graph_;
  std::vector<Scope> scopes_;
};

}  // namespace wick
