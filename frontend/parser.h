// Program text to trees (frontend/tree_views.h tells their shapes): Python's grammar as far as
// TorchScript goes, by recursive descent with Pratt precedence for expressions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/source_range.h"
#include "frontend/tree_views.h"

namespace wick {

// Brackets, operators with one operand, calls and selections in a row, and blocks may nest this
// deep.
inline constexpr size_t kMaxNesting = 500;
// Trees are at most this high: a chain such as `a + b + c` nests to its left, and each `elif` nests
// in the `else` before it. More is a CompileError, as is deeper nesting. Walks over trees may
// recurse on a stack made for them (core/stack.h).
inline constexpr size_t kMaxTreeHeight = 20'000;
// parseModule reports at most this many errors.
inline constexpr size_t kMaxReportedErrors = 10;

// Parses one Source. Every function throws CompileError, whose message tells what was expected and
// what was found. Only syntax is checked: `break` outside a loop, for one, is not the parser's
// matter. Each call starts at the beginning of the text; a Parser may be used from any number of
// threads.
class Parser {
 public:
  explicit Parser(std::shared_ptr<const Source> source);
  explicit Parser(std::string text, std::string name = "<string>");

  // All top-level statements: Def, ClassDef, Assign, Import, ... The text may be indented as a
  // whole. After an error goes on with the next line, or the block of the line that has it; the
  // CompileError that is thrown in the end has the range and brief() of the first error, and what()
  // lists up to kMaxReportedErrors.
  List<Stmt> parseModule() const;
  // The same, but adds the errors to `errors`, in the order of the text, and gives what can be
  // read: a Broken statement stands for each line that cannot, and what follows it in its block may
  // be a part of it.
  List<Stmt> parseModule(std::vector<CompileError>& errors) const;
  // Exactly one `def`, with its decorators.
  Def parseFunction() const;
  // One expression and nothing else: a constant, a type such as `Dict[str, List[int]]`. `a, b` is a
  // tuple.
  Expr parseExpression() const;

 private:
  std::shared_ptr<const Source> source_;
};

}  // namespace wick
