#include "capture/evaluate/instructions.h"

#include <fmt/format.h>

#include "capture/evaluate/capture.h"

namespace wick::capture {
namespace {

void unknown(EvalFrame& frame, uint32_t) {
  breakGraph(fmt::format("the instruction {}", nameOf(frame.instruction().op)));
}

InstructionTable makeTable() {
  InstructionTable table;
  table.fill(unknown);
  addStackInstructions(table);
  addContainerInstructions(table);
  addCallInstructions(table);
  addExceptionInstructions(table);
  return table;
}

}  // namespace

void execute(EvalFrame& frame) {
  static const InstructionTable table = makeTable();
  if (static_cast<size_t>(frame.at) >= frame.code->instructions.size()) {
    breakGraph("the code has no end");
  }
  const Instruction& at = frame.instruction();
  table[static_cast<uint8_t>(at.op)](frame, at.arg);
}

}  // namespace wick::capture
