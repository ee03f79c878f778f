// Sizes of tensors as expressions of other sizes.
//
// A Size is what TensorType::Facts states of a dimension: a number, a symbol (negative), or
// nothing. Equal symbols are equal sizes. A symbol is either free (the size of an input, or one
// that only running tells) or stands for an expression: sums and products with integer
// coefficients, and quotients rounded down. Equal expressions get the same symbol.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wick {

using Size = std::optional<int64_t>;
using Sizes = std::vector<Size>;

// Not synchronized. Shape rules find the one of their caller by current().
class SymbolicSizes {
 public:
  // New symbols are numbered downwards from below `lowest`, which is 0 or the lowest in use.
  explicit SymbolicSizes(int64_t lowest = 0) : next_(lowest - 1) {}

  // A free symbol.
  int64_t fresh() { return next_--; }

  // Of unknown operands, and where the expression would become too large, unknown.
  Size add(Size a, Size b);
  Size subtract(Size a, Size b);
  Size multiply(Size a, Size b);
  // The quotient rounded down; unknown when `b` may be negative. A division by zero is supposed to
  // raise where it happens.
  Size floorDivide(Size a, Size b);
  // Whether the expression can be below zero for no value of its free symbols.
  bool neverNegative(Size a) const;

  // A product of symbols that are free or quotients, with its coefficient; without symbols a number.
  struct Term {
    int64_t coefficient = 0;
    std::vector<int64_t> symbols;
  };
  // The sum that a size stands for.
  std::vector<Term> terms(int64_t size) const;
  // The dividend and the divisor that a symbol of a term stands for; nullopt for a free one.
  std::optional<std::pair<std::vector<Term>, std::vector<Term>>> quotient(int64_t symbol) const;

  // "SS(-1)*4 + 2".
  std::string str(Size s) const;
  // The number, given those of the free symbols; nullopt for an unknown size, a missing symbol, and
  // on overflow or division by zero.
  std::optional<int64_t> evaluate(
      Size s, const std::function<std::optional<int64_t>(int64_t symbol)>& free) const;

  // That of the innermost Scope of this thread, or null: then only numbers are computed with.
  static SymbolicSizes* current();
  class Scope {
   public:
    explicit Scope(SymbolicSizes& sizes);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    SymbolicSizes* outer_;
  };

 private:
  using Monomial = std::vector<int64_t>;           // symbols, sorted; empty: the number 1
  using Polynomial = std::map<Monomial, int64_t>;  // coefficients, none zero
  using Quotient = std::pair<Polynomial, Polynomial>;

  static std::vector<Term> termsOf(const Polynomial& p);
  Polynomial expand(int64_t s) const;
  Size symbolFor(Polynomial p);
  std::string text(const Polynomial& p) const;
  bool neverNegative(const Polynomial& p) const;
  std::optional<int64_t> evaluate(
      const Polynomial& p, const std::function<std::optional<int64_t>(int64_t symbol)>& free) const;

  int64_t next_;
  std::map<Polynomial, int64_t> sums_;
  std::map<int64_t, Polynomial> meaning_;
  std::map<Quotient, int64_t> quotients_;
  std::map<int64_t, Quotient> quotient_meaning_;
};

// The same with the current SymbolicSizes.
Size addSizes(Size a, Size b);
Size subtractSizes(Size a, Size b);
Size multiplySizes(Size a, Size b);
Size divideSizes(Size a, Size b);
// Whether it is a number at least 0 or a symbol that cannot be negative.
bool isNeverNegative(Size a);
// The product of all; unknown when the rank is.
Size productOf(const Sizes& sizes);

}  // namespace wick
