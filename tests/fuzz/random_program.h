// Random programs for fuzz targets: most of them compile, and all of them end when their steps are
// limited. The same numbers always give the same program.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace wick {

// Writes one program: a few classes, functions that call each other, and `main(x: int, y: float,
// t: Tensor)`. Expressions are made for a type, from the variables of that type that are in scope.
class RandomProgram {
 public:
  explicit RandomProgram(std::mt19937_64& random) : random_(random) {}
  std::string make();

 private:
  enum Type {
    kInt,
    kFloat,
    kBool,
    kStr,
    kTensor,
    kIntList,
    kFloatList,
    kStrIntDict,
    kPair,  // Tuple[int, float]
    kOptionalInt,
    kNumTypes,
  };
  struct Function {
    std::string name;
    std::vector<Type> parameters;
    Type result;
  };
  struct Variable {
    std::string name;
    Type type;
  };

  size_t below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <size_t N>
  std::string pick(const char* const (&choices)[N]) {
    return choices[below(N)];
  }
  Type anyType() { return static_cast<Type>(below(kNumTypes)); }
  static const char* nameOf(Type type);

  std::string expr(Type type, int depth);
  std::string literal(Type type);
  std::string intExpr(int depth);
  std::string floatExpr(int depth);
  std::string boolExpr(int depth);
  std::string strExpr(int depth);
  std::string tensorExpr(int depth);
  std::string containerExpr(Type type, int depth);
  std::string optionalExpr(int depth);
  std::string call(const Function& function, int depth);
  // A name of a variable of the type, or "" when there is none.
  std::string variable(Type type);

  void line(const std::string& text) { out_ += std::string(indent_, ' ') + text + "\n"; }
  // Statements one level deeper; what they define is forgotten afterwards.
  void block(int depth);
  void statement(int depth);
  void assignment(int depth);
  void mutation(int depth);
  void branch(int depth);
  void loop(int depth);
  void guarded(int depth);
  void exit(int depth);
  void function(const std::string& name, std::vector<Variable> parameters, Type result,
                bool is_method);
  void classDefinition();

  std::mt19937_64& random_;
  std::string out_;
  size_t indent_ = 0;
  size_t names_ = 0;
  int loops_ = 0;
  int budget_ = 0;  // of statements in the function being written
  Type result_ = kInt;
  bool in_method_ = false;
  std::vector<Variable> variables_;
  std::vector<Function> functions_;
  std::vector<std::string> classes_;
};

}  // namespace wick
