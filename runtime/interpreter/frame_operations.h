// Operands, results and operator calls of one frame: what the interpreter and machine code share.
#pragma once

#include <cstring>

#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/code.h"
#include "runtime/interpreter/slow_paths.h"

namespace wick {

// The value of an operand; its last use takes it out of the register.
inline IValue operandValue(const Code& code, uint32_t operand, IValue* registers) {
  const uint32_t index = operandIndex(operand);
  const OperandKind kind = operandKind(operand);
  if (kind == OperandKind::Constant) return code.constants()[index];
  if (kind == OperandKind::Move) return std::move(registers[index]);
  return registers[index];
}

// Constructs the operands of a list in a row of uninitialized registers.
inline void gather(const Code& code, const uint32_t* list, IValue* registers, IValue* to) {
  for (uint32_t i = 0; i < list[0]; ++i) {
    new (&to[i]) IValue(operandValue(code, list[1 + i], registers));
  }
}

// What an IValue uses of its size: the payload and behind it the tag. They are copied apart, as
// they were written: the processor forwards a store only to a load that it covers.
inline constexpr size_t kValueBytes = sizeof(int64_t) + sizeof(IValue::Tag);

// Makes an IValue without a reference of its own.
inline void borrow(const IValue& from, IValue* to) {
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(&from), kValueBytes);
}

// gather() for an operator. Bit i of the answer: operand i is borrowed, see OperandKind.
inline uint64_t gatherForCall(const Code& code, const uint32_t* list, IValue* registers,
                              IValue* to) {
  uint64_t borrowed = 0;
  uint32_t count = *list++;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = operandIndex(list[i]);
    const OperandKind kind = operandKind(list[i]);
    if (kind == OperandKind::Move) {
      new (&to[i]) IValue(std::move(registers[index]));
      continue;
    }
    const IValue& from = kind == OperandKind::Constant ? code.constants()[index] : registers[index];
    if (kind == OperandKind::Held || i >= kMostBorrowed) [[unlikely]] {
      new (&to[i]) IValue(from);
    } else {
      borrow(from, &to[i]);
      borrowed |= uint64_t{1} << i;
    }
  }
  return borrowed;
}

// Destroys arguments and results of an operator, also when it throws.
struct ScratchGuard {
  IValue* values;
  size_t count;
  uint64_t borrowed;  // bit i: values[i] holds no reference
  ~ScratchGuard() {
    for (size_t i = 0; i < count; ++i) {
      if (i >= kMostBorrowed || (borrowed >> i & 1) == 0) values[i].~IValue();
    }
  }
};

// Stores what came from outside of the frame.
inline void store(IValue& destination, IValue value, uint16_t extra) {
  if (uint16_t tag = extra & kTagMask) {
    storeScalar(destination, value, tag);
  } else {
    destination = std::move(value);
  }
}

// Of the calls below: `prepare(op, arguments, count, borrowed)` may look at the arguments, and what
// it returns is destroyed when the call is done. `op` is null for a group. Where it replaces a
// borrowed argument by a value of its own it clears the bit.
struct Unprepared {
  int operator()(const Operator*, IValue*, size_t, uint64_t&) const { return 0; }
};

template <class Prepare = Unprepared>
inline void callOperator(const Code& code, const Instruction& instruction, IValue* r,
                         Prepare&& prepare = {}) {
  const uint32_t* operands = code.operands().data() + instruction.b;
  IValue* args = r + code.numRegisters();
  ScratchGuard guard{args, operands[0], gatherForCall(code, operands, r, args)};
  const Operator& op = *code.operatorSites()[instruction.a].op;
  if (instruction.c != kNoIndex && instruction.extra == 0) {
    [[maybe_unused]] auto prepared = prepare(&op, args, operands[0], guard.borrowed);
    op.call(args, operands[0], &r[instruction.c], 1, guard.borrowed);
    return;
  }
  IValue result;
  {
    [[maybe_unused]] auto prepared = prepare(&op, args, operands[0], guard.borrowed);
    op.call(args, operands[0], &result, 1, guard.borrowed);
  }
  if (instruction.c != kNoIndex) storeScalar(r[instruction.c], result, instruction.extra);
}

template <class Prepare = Unprepared>
inline void callOperatorMulti(const Code& code, const Instruction& instruction, IValue* r,
                              Prepare&& prepare = {}) {
  const uint32_t* operands = code.operands().data() + instruction.b;
  const uint32_t* destinations = code.operands().data() + instruction.c;
  IValue* args = r + code.numRegisters();
  const uint64_t borrowed = gatherForCall(code, operands, r, args);
  IValue* results = args + operands[0];
  for (uint32_t i = 0; i < destinations[0]; ++i) new (&results[i]) IValue();
  ScratchGuard guard{args, size_t{operands[0]} + destinations[0], borrowed};
  const Operator& op = *code.operatorSites()[instruction.a].op;
  {
    [[maybe_unused]] auto prepared = prepare(&op, args, operands[0], guard.borrowed);
    op.call(args, operands[0], results, destinations[0], guard.borrowed);
  }
  for (uint32_t i = 0; i < destinations[0]; ++i) {
    uint32_t entry = destinations[1 + i];
    if (operandIndex(entry) == kNoDestination) continue;
    store(r[operandIndex(entry)], std::move(results[i]),
          static_cast<uint16_t>(destinationExtra(entry)));
  }
}

// Whether the group ran, which is also the first result.
template <class Prepare = Unprepared>
inline bool callFusion(const Code& code, const Instruction& instruction, IValue* r,
                       Prepare&& prepare = {}) {
  const uint32_t* operands = code.operands().data() + instruction.b;
  const uint32_t* destinations = code.operands().data() + instruction.c;
  IValue* args = r + code.numRegisters();
  const uint64_t borrowed = gatherForCall(code, operands, r, args);
  const uint32_t num_results = destinations[0] - 1;
  IValue* results = args + operands[0];
  for (uint32_t i = 0; i < num_results; ++i) new (&results[i]) IValue();
  ScratchGuard guard{args, size_t{operands[0]} + num_results, borrowed};
  uint64_t yielded = 0;
  for (uint32_t i = 0; i < operands[0] && i < 64; ++i) {
    yielded |= uint64_t{operandKind(operands[1 + i]) == OperandKind::Yielded} << i;
  }
  bool ran;
  {
    [[maybe_unused]] auto prepared = prepare(nullptr, args, operands[0], guard.borrowed);
    ran = code.fusionSites()[instruction.a]->run(args, operands[0], results, yielded);
  }
  new (&r[operandIndex(destinations[1])]) IValue(ran);
  if (!ran) return false;
  for (uint32_t i = 0; yielded != 0; ++i, yielded >>= 1) {
    if ((yielded & 1) != 0) r[operandIndex(operands[1 + i])] = IValue();
  }
  for (uint32_t i = 0; i < num_results; ++i) {
    uint32_t entry = destinations[2 + i];
    if (operandIndex(entry) != kNoDestination) r[operandIndex(entry)] = std::move(results[i]);
  }
  return true;
}

// OP, OP_MULTI or FUSION. False for a group that did not run.
template <class Prepare = Unprepared>
inline bool callAny(const Code& code, const Instruction& instruction, IValue* r,
                    Prepare&& prepare = {}) {
  if (instruction.op == OpCode::FUSION) return callFusion(code, instruction, r, prepare);
  if (instruction.op == OpCode::OP) {
    callOperator(code, instruction, r, prepare);
  } else {
    callOperatorMulti(code, instruction, r, prepare);
  }
  return true;
}

// Whether the values that a guard looks at are as it supposes.
inline bool guardsHold(const Code& code, const Instruction& instruction, const IValue* r) {
  const uint32_t* operands = code.operands().data() + instruction.a;
  for (const GuardSite::Expected& expected : code.guardSites()[instruction.c].expected) {
    uint32_t operand = *++operands;
    uint32_t index = operandIndex(operand);
    bool constant = operandKind(operand) == OperandKind::Constant;
    if (!expected.holds(constant ? code.constants()[index] : r[index])) return false;
  }
  return true;
}

}  // namespace wick
