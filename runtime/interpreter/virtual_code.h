// What lowering hands to register allocation: instructions whose register fields name virtual
// registers and whose jump targets are labels.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "runtime/interpreter/instruction.h"

namespace wick {

struct VirtualRegister {
  // For scalars the tag plus one, as in Instruction::extra; zero for objects.
  uint16_t extra = 0;
  // An argument that stays where it is until the frame ends: never moved, dropped or overwritten.
  bool kept = false;
  bool isScalar() const { return extra != 0; }
};

struct VirtualCode {
  std::vector<Instruction> instructions;
  std::vector<const Node*> nodes;  // one an instruction
  std::vector<uint32_t> operands;  // register operands are all Copy; allocation finds last uses
  std::vector<uint32_t> labels;    // label -> instruction that it stands before
  std::vector<VirtualRegister> registers;  // the first num_inputs ones receive the arguments
  size_t num_inputs = 0;
};

// Calls f(role, field) for each of the three fields of an instruction that is in use.
template <class F>
void forEachField(Instruction& instruction, F&& f) {
  std::string_view format = opCodeFormat(instruction.op);
  uint32_t* fields[] = {&instruction.a, &instruction.b, &instruction.c};
  for (size_t i = 0; i < 3; ++i) {
    if (format[i] != '-') f(format[i], *fields[i]);
  }
}

}  // namespace wick
