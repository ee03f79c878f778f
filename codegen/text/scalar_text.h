// Scalar arithmetic as text of C++ or of a dialect: what they say alike. A dialect adds its words, its
// constants and its functions.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "codegen/scalar/expression.h"

namespace wick::codegen {

// There is no text for it; what() says why.
class NoText : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The function's name in the C library, and in CUDA, which has it too; empty for others.
std::string_view libraryName(ScalarFunction f);

// Functions of integers that texts call, behind a definition of WICK_INLINE.
extern const char* const kIntegerText;

class ScalarText {
 public:
  virtual ~ScalarText() = default;

  // "float": of elements in memory and of values alike.
  std::string type(DType type) const;
  std::string convert(const std::string& value, DType from, DType to) const;
  // Of a node that is no input; `operands` are texts of operands, of dtypes `types`. Throws NoText.
  std::string text(const ScalarNode& node, std::span<const std::string> operands,
                   std::span<const DType> types) const;

 protected:
  struct Words {
    const char* language;
    // Types of integers.
    const char *byte, *signed_byte, *short_word, *word, *long_word, *unsigned_word, *unsigned_long;
    const char* builtin;  // what stands before "sqrt" and the like
    const char* widen;    // the function that makes a float of a reduced one
  };
  explicit ScalarText(const Words& words) : words_(words) {}

  // All bits are kept. `type` is Float or Double.
  virtual std::string floatText(double value, DType type) const = 0;
  virtual std::string integerText(int64_t value, DType type) const = 0;
  // The bits of an integer as a float number or the other way, of as many bytes.
  virtual std::string bitsText(const std::string& value, DType to) const = 0;
  // `sign` is "<" or "<=".
  virtual std::string comparedText(const char* sign, const std::string& a, const std::string& b,
                                   DType type) const;
  virtual std::string lookupText(uint64_t table, const std::string& index) const = 0;
  virtual std::string callText(const ScalarNode& node, const std::string& arguments) const = 0;

 private:
  std::string constantText(const ScalarNode& node) const;
  std::string wrappedText(const ScalarNode& node, std::span<const std::string> in) const;
  std::string cast(DType to, const std::string& value) const;

  const Words words_;
};

}  // namespace wick::codegen
