// Register allocation: from VirtualCode to the instructions of a Code.
//
// 1. Liveness by data flow over basic blocks gives every virtual register its live segments and
//    every operand the mark of a last use. Moves into registers that nobody reads go away.
// 2. Coalescing: the two sides of a move become one register when their segments do not overlap,
//    and the move disappears.
// 3. Linear scan assigns frame registers, objects and scalars apart; arguments stay where they are.
// 4. Emission: last uses become moves, values that die on one side of a branch are dropped there,
//    jumps to jumps go to the final target.
#pragma once

#include "core/counted_vector.h"
#include "runtime/interpreter/code.h"
#include "runtime/interpreter/virtual_code.h"

namespace wick {

class RegisterAllocation {
 public:
  RegisterAllocation(VirtualCode virtual_code, Code& code)
      : in_(std::move(virtual_code)), code_(code) {}
  void run();

 private:
  // Half-open range of positions; instruction i reads at 2i and writes at 2i+1.
  struct Segment {
    uint32_t start, end;
  };
  struct BasicBlock {
    uint32_t begin, end;  // instructions
    std::vector<uint32_t> successors, predecessors;
    CountedVector<uint32_t> live_in, live_out;  // global registers, ascending
    bool reachable = false;
  };

  void findBlocks();
  void findGlobals();
  void solveLiveness();
  void scanBlock(uint32_t block);
  void scanInstruction(uint32_t i);
  void holdTwiceRead(const Instruction& instruction);
  bool isReadAfterKernels(uint32_t fusion, uint32_t r) const;
  void findDrops();
  static std::vector<Segment> joined(const std::vector<Segment>& a, const std::vector<Segment>& b);
  void coalesce();
  void assign();
  void emit();
  void checkTag(Instruction& instruction);
  void rewrite(Instruction& instruction);
  void invertJumps();
  void threadJumps();
  uint32_t find(uint32_t r);
  bool isScalar(uint32_t r) const { return in_.registers[r].isScalar(); }
  bool isKept(uint32_t r) const { return in_.registers[r].kept; }
  template <class Read, class Write>
  void forEachRegister(Instruction& instruction, Read&& read, Write&& write);

  VirtualCode in_;
  Code& code_;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> block_of_;  // by instruction
  std::vector<uint32_t> global_;    // register -> index in global_registers_, or kNoIndex
  std::vector<uint32_t> global_registers_;
  std::vector<std::vector<Segment>> segments_;  // by register, sorted
  std::vector<uint32_t> open_end_;              // during a scan: end of r's open segment, or 0
  std::vector<uint8_t> deleted_;                // by instruction
  std::vector<std::vector<uint32_t>> drops_;    // by block: registers to drop at its begin
  std::vector<uint32_t> parent_;                // union-find
  std::vector<uint32_t> assigned_;              // by representative
};

}  // namespace wick
