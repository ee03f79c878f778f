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
    // Global registers that the block mentions, ascending.
    CountedVector<uint32_t> live_in, live_out;
    bool reachable = false;
  };

  struct BlockRun {
    uint32_t begin, end;  // blocks
  };
  // The global register that was last seen to be mentioned by a block, written, live in front of
  // it, live behind it, and asked about.
  struct Marks {
    uint32_t mentioned = kNoIndex, written = kNoIndex, in = kNoIndex, out = kNoIndex,
             asked = kNoIndex;
  };

  void findBlocks();
  void findGlobals();
  void findLoops();
  void solveLiveness();
  // Of one global register, which these blocks read from outside and write.
  void solveExactly(uint32_t global, const std::vector<uint32_t>& readers,
                    const std::vector<uint32_t>& writers);
  void solveRoughly(uint32_t global, const std::vector<uint32_t>& readers,
                    const std::vector<uint32_t>& writers);
  void passThrough(uint32_t r, uint32_t first, uint32_t end);
  bool isLiveIn(uint32_t block, uint32_t global) const;
  void scanBlock(uint32_t block);
  void scanInstruction(uint32_t i);
  void holdTwiceRead(const Instruction& instruction);
  bool isReadAfterKernels(uint32_t fusion, uint32_t r) const;
  // Of lists whose segments follow each other.
  static std::vector<Segment> joined(std::vector<Segment> a, std::vector<Segment> b);
  static bool overlap(const std::vector<Segment>& a, const std::vector<Segment>& b);
  static bool isMuchLonger(const std::vector<Segment>& a, const std::vector<Segment>& b);
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
  std::vector<BlockRun> loops_;  // by block
  std::vector<Marks> marks_;     // by block
  size_t visits_left_ = 0;       // of blocks, for exact liveness
  size_t drops_left_ = 0;
  std::vector<CountedVector<BlockRun>> live_in_;  // by global: where it is live, ascending
  std::vector<std::vector<Segment>> segments_;    // by register, sorted
  std::vector<uint32_t> open_end_;                // during a scan: end of r's open segment, or 0
  std::vector<uint8_t> deleted_;                  // by instruction
  std::vector<std::vector<uint32_t>> drops_;      // by block: registers to drop at its begin
  std::vector<uint32_t> parent_;                  // union-find
  std::vector<uint32_t> assigned_;                // by representative
};

}  // namespace wick
