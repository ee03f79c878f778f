// Random programs on numbers for comparing machine code with the interpreter: nested loops with
// break, continue, return and raise, divisions that may be by zero, tuples, lists and
// calls. The same numbers always give the same program. All of them compile and end.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace wick {

class RandomScalarProgram {
 public:
  explicit RandomScalarProgram(uint64_t seed) : random_(seed) {}
  // Functions and `main(a: int, b: int, x: float, flag: bool)`.
  std::string make();

 private:
  enum Type { kInt, kFloat, kBool };
  struct Variable {
    std::string name;
    Type type;
    bool assignable;
  };
  struct Function {
    std::string name;
    std::vector<Type> parameters;
    Type result;
  };

  size_t below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <size_t N>
  std::string pick(const char* const (&choices)[N]) {
    return choices[below(N)];
  }
  static const char* nameOf(Type type);

  std::string expr(Type type, int depth);
  std::string intExpr(int depth);
  std::string floatExpr(int depth);
  std::string boolExpr(int depth);
  std::string literal(Type type);
  std::string variable(Type type);
  std::string call(const Function& function, int depth);

  void line(const std::string& text) { out_ += std::string(indent_, ' ') + text + "\n"; }
  void block(int depth);
  void statement(int depth);
  void assignment();
  void listStatement();
  void branch(int depth);
  void loop(int depth);
  void leave();
  void function(const std::string& name, const std::vector<Variable>& parameters, Type result);

  std::mt19937_64 random_;
  std::string out_;
  size_t indent_ = 0;
  size_t names_ = 0;
  int loops_ = 0;
  int budget_ = 0;
  Type result_ = kInt;
  bool in_main_ = false;
  std::vector<Variable> variables_;
  std::vector<Function> functions_;
};

}  // namespace wick
