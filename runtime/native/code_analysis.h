// What the translator to machine code must know of a Code: its basic blocks, where machine code is
// entered, which scalar registers are alive, and of what kind and range their values are.
//
// Kinds and ranges come from an abstract interpretation over the whole Code, from its start. They
// hold wherever an instruction is reached, so also where machine code is entered in the middle of
// a loop, and spare it divisions of 64 bits, signs and checks for zero.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/interpreter/code.h"

namespace wick::native {

// How an instruction is carried out.
enum class Treatment {
  Inline,     // as machine code
  Execute,    // by a call of nativeExecute() or nativeCallOperator()
  Interpret,  // machine code is left there, and entered again behind it
};
Treatment treatmentOf(OpCode op);

// What is known of a scalar register.
struct Fact {
  enum class Kind : uint8_t {
    Nothing,  // not written yet
    Int,
    Float,
    Bool,
    Mixed,  // depends on the path taken, so nobody reads it
  };
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  Kind kind = Kind::Nothing;
  // Bounds of ints and bools. Of a float only equal bounds mean something: its bits.
  int64_t low = kLeast;
  int64_t high = kMost;

  static Fact ofTag(uint16_t extra);  // as in Instruction::extra
  static Fact ofConstant(const IValue& value);
  static Fact integer(int64_t low = kLeast, int64_t high = kMost) { return {Kind::Int, low, high}; }
  static Fact floating() { return {Kind::Float, kLeast, kMost}; }
  static Fact boolean() { return {Kind::Bool, 0, 1}; }
  bool isConstant() const { return kind != Kind::Nothing && kind != Kind::Mixed && low == high; }
  bool isNatural() const { return low >= 0; }
  bool fits32() const { return low >= 0 && high <= std::numeric_limits<uint32_t>::max(); }
  bool excludes(int64_t value) const { return value < low || value > high; }
  bool operator==(const Fact& o) const = default;
};

class CodeAnalysis {
 public:
  using Facts = std::vector<Fact>;       // by scalar number
  using BitSet = std::vector<uint64_t>;  // over scalar numbers
  struct Block {
    uint32_t begin, end;  // instructions
    std::vector<uint32_t> successors;
    bool reachable = false;
    Facts facts;  // at the begin
    BitSet live_in, live_out;
  };

  // RuntimeError when the Code is too large to be analyzed in reasonable time.
  explicit CodeAnalysis(const Code& code);

  const std::vector<Block>& blocks() const { return blocks_; }
  uint32_t blockOf(uint32_t pc) const { return block_of_[pc]; }
  // Where machine code can be entered, ascending: the start, the targets of jumps backwards, and
  // what follows instructions that are left to the interpreter.
  const std::vector<uint32_t>& entries() const { return entries_; }
  // Instructions that become machine code, and those that remain calls and exits; within loops only
  // when there are loops.
  size_t numInline() const { return num_inline_; }
  size_t numOther() const { return num_other_; }

  size_t numScalars() const { return registers_.size(); }
  bool isScalar(uint32_t r) const { return scalar_of_[r] != kNoIndex; }
  uint32_t scalar(uint32_t r) const { return scalar_of_[r]; }
  uint32_t registerOf(uint32_t scalar) const { return registers_[scalar]; }

  // Changes facts from before an instruction to after it.
  void transfer(const Instruction& instruction, Facts& facts) const;
  // The scalars alive before each instruction of a block.
  std::vector<BitSet> liveWithin(uint32_t block) const;

 private:
  void findScalars();
  void findBlocks();
  void countInstructions();
  void solveLiveness();
  void solveFacts();
  void stepBack(const Instruction& instruction, BitSet& live) const;
  Fact scalarResult(const Instruction& instruction, const Facts& facts) const;
  // The facts on the way to one of the two successors of a comparison.
  void refine(const Instruction& instruction, bool jumps, Facts& facts) const;
  bool merge(uint32_t block, const Facts& facts, size_t visits);

  const Code& code_;
  std::vector<uint32_t> scalar_of_;  // register -> scalar number, or kNoIndex
  std::vector<uint32_t> registers_;  // scalar number -> register
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;
  std::vector<uint32_t> entries_;
  size_t num_inline_ = 0;
  size_t num_other_ = 0;
};

// Calls f(role, field) for each field of an instruction in use, as instruction.h describes them.
template <class F>
void forEachField(const Instruction& instruction, F&& f) {
  std::string_view format = opCodeFormat(instruction.op);
  const uint32_t fields[] = {instruction.a, instruction.b, instruction.c};
  for (size_t i = 0; i < 3; ++i) {
    if (format[i] != '-') f(format[i], fields[i]);
  }
}

// Calls read(register) for the registers that an instruction reads, and write(register, extra) for
// those that it writes, where extra is that of an outside value and zero for others.
template <class Read, class Write>
void forEachRegister(const Code& code, const Instruction& instruction, Read&& read, Write&& write) {
  forEachField(instruction, [&](char role, uint32_t field) {
    if (role == 'u' || role == 'x') {
      read(field);
    } else if (role == 'o') {
      const uint32_t* list = code.operands().data() + field;
      for (uint32_t i = 1; i <= list[0]; ++i) {
        if (operandKind(list[i]) != OperandKind::Constant) read(operandIndex(list[i]));
      }
    }
  });
  forEachField(instruction, [&](char role, uint32_t field) {
    if (role == 'x' || (role == 'd' && field != kNoIndex)) {
      write(field, static_cast<uint16_t>(instruction.extra & kTagMask));
    } else if (role == 'D') {
      const uint32_t* list = code.operands().data() + field;
      for (uint32_t i = 1; i <= list[0]; ++i) {
        if (operandIndex(list[i]) == kNoDestination) continue;
        write(operandIndex(list[i]), static_cast<uint16_t>(destinationExtra(list[i])));
      }
    }
  });
}

}  // namespace wick::native
