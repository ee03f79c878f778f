// Functions given as IR text, for tests of the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "ir/parser.h"
#include "ir/printer.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/thread_pool.h"

namespace wick::testing {

// A compilation unit of functions, each of which may call those before it by the name that follows
// "function:" in a constant's type.
inline std::shared_ptr<const Code> compile(const std::string& text,
                                           const std::string& name = "program") {
  return Code::build(parseGraph(text), name);
}

inline IValue run(const std::string& text, std::vector<IValue> arguments,
                  const RunOptions& options = {}) {
  auto code = compile(text);
  return runCode(*code, std::move(arguments), options);
}

inline bool listingHas(const Code& code, OpCode op) {
  for (const Instruction& i : code.instructions()) {
    if (i.op == op) return true;
  }
  return false;
}

}  // namespace wick::testing
