// Fuzz target: source text, which is compiled, verified, lowered, printed and run.
#pragma once

#include <memory>
#include <string>

#include "frontend/compile.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "runtime/executor/graph_executor.h"
#include "tests/fuzz/call_target.h"

namespace wick {

inline void compileTarget(const std::string& program) {
  std::shared_ptr<CompilationUnit> unit = compileSource(program, "fuzz.py");
  // By index: running may compile further functions.
  for (size_t i = 0; i < unit->functions().size(); ++i) {
    GraphFunction& function = *unit->functions()[i];
    verify(*function.graph());
    const Code& code = GraphExecutor::of(function).code();
    verify(*code.graph());
    function.graph()->str();
  }
  for (size_t i = 0; i < unit->functions().size(); ++i) {
    callWithLimits(*unit->functions()[i], unit);
  }
}

}  // namespace wick
