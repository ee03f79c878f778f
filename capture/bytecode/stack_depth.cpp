#include "capture/bytecode/stack_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

namespace wick::capture {
namespace {

class Walk {
 public:
  explicit Walk(const DecodedCode& code) : code_(code) {
    result_.before.assign(code.instructions.size(), -1);
    range_of_.assign(code.instructions.size(), -1);
    for (size_t i = 0; i < code.exception_ranges.size(); ++i) {
      const ExceptionRange& range = code.exception_ranges[i];
      std::fill(range_of_.begin() + range.start, range_of_.begin() + range.end,
                static_cast<int>(i));
    }
  }

  StackDepths run() {
    reach(0, 0, 0);
    while (!open_.empty()) {
      const int at = open_.back();
      open_.pop_back();
      visit(at);
    }
    return std::move(result_);
  }

 private:
  // Notes that control comes from one instruction to another at this depth.
  void reach(int from, int to, int64_t depth) {
    if (depth < 0) {
      throw BytecodeError(describe(code_, from) + ": the stack has too few values");
    }
    if (depth > INT_MAX / 2) throw BytecodeError(describe(code_, from) + ": the stack is too deep");
    if (to >= code_.size()) {
      throw BytecodeError(describe(code_, from) + ": control leads behind the last instruction");
    }
    int& known = result_.before[to];
    if (known < 0) {
      known = static_cast<int>(depth);
      result_.deepest = std::max(result_.deepest, known);
      open_.push_back(to);
    } else if (known != depth) {
      throw BytecodeError(
          fmt::format("{}: the stack is {} deep here, but {} when control comes from {}",
                      describe(code_, to), known, depth, describe(code_, from)));
    }
  }

  void visit(int at) {
    const Instruction& instruction = code_.instructions[at];
    const int64_t depth = result_.before[at];
    if (range_of_[at] >= 0) {
      const ExceptionRange& range = code_.exception_ranges[range_of_[at]];
      if (range.depth > depth) {
        throw BytecodeError(fmt::format("{}: the stack is {} deep, its handler expects {}",
                                        describe(code_, at), depth, range.depth));
      }
      reach(at, range.target, range.handlerDepth());
    }
    if (isJump(instruction.op)) {
      reach(at, instruction.target, depth + stackEffect(instruction.op, instruction.arg, true));
    }
    const int64_t next = depth + stackEffect(instruction.op, instruction.arg, false);
    if (!has(instruction.op, kEndsPath)) {
      reach(at, at + 1, next);
    } else if (next < 0) {
      throw BytecodeError(describe(code_, at) + ": the stack has too few values");
    }
  }

  const DecodedCode& code_;
  StackDepths result_;
  // For each instruction the exception range that it lies in, or -1.
  std::vector<int> range_of_;
  // Instructions whose depth is known and whose successors are still to be reached.
  std::vector<int> open_;
};

}  // namespace

StackDepths stackDepths(const DecodedCode& code) {
  return Walk(code).run();
}

}  // namespace wick::capture
