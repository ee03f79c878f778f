// Lowering: from a Graph to VirtualCode and the tables of a Code.
//
// If becomes conditional jumps, Loop a test at the entry and one at the back edge. Every SSA value
// gets a virtual register; those that merge control flow (outputs of If, carried values of Loop)
// are written by moves at the end of each predecessor, most of which register allocation removes.
// A comparison whose only use is a condition is joined with the jump.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "runtime/interpreter/code.h"
#include "runtime/interpreter/scalar_selection.h"
#include "runtime/interpreter/virtual_code.h"

namespace wick {

class Lowering {
 public:
  explicit Lowering(Code& code) : code_(code) {}
  VirtualCode run();

 private:
  using Label = uint32_t;
  struct PendingMove {
    uint32_t destination;
    const Value* source;
    uint32_t source_register;  // kNoIndex: a constant
  };

  // Registers and constants.
  uint32_t newRegister(uint16_t extra);
  uint32_t define(const Value* value);
  uint32_t destination(const Node* node);  // of the only output; kNoIndex when it is not used
  uint32_t addConstant(const IValue& value);
  void noteConstant(const Node* node);
  uint32_t reg(const Value* value);  // loads a constant into a register
  uint32_t loadScalar(uint32_t constant);
  uint32_t scalarReg(const Value* value);  // unboxes when needed
  uint32_t floatReg(const Value* value);   // converts ints
  std::optional<uint32_t> mappedRegister(const Value* value) const;
  uint32_t typeIndex(const TypePtr& type);

  // Instructions.
  void emit(OpCode op, uint16_t extra, uint32_t a, uint32_t b = 0, uint32_t c = 0);
  uint32_t operandList(std::span<Value* const> values);
  uint32_t destinationList(const Node* node);
  Label newLabel();
  void bind(Label label);
  void emitMove(uint32_t destination, const Value* source);
  void emitRegisterMove(uint32_t destination, uint32_t source);
  void emitParallelMoves(std::vector<PendingMove> moves);
  PendingMove pendingMove(uint32_t destination, const Value* source);

  // Conditions.
  bool shouldDefer(const Node* node) const;
  bool isOnlyCondition(const Node* node, const Node** user) const;
  bool survivesLoopMoves(const Node* node, const Block* body) const;
  // Goes to one of the labels; `next_is_true` says which of them stands right behind.
  void emitBranch(const Value* condition, Label if_true, Label if_false, bool next_is_true);

  std::optional<bool> constantSide(const Block* block);
  void emitConditionalBranch(const Node* node, Label if_true, Label if_false, bool next_is_true);

  // Nodes.
  void lowerBlock(const Block* block);
  void lowerNode(const Node* node);
  bool lowerScalar(const Node* node);
  bool lowerListAccess(const Node* node);
  void lowerIf(const Node* node);
  void lowerLoop(const Node* node);
  void emitLoopEnd(const Block* body, const std::vector<PendingMove>& moves, uint32_t index,
                   uint32_t limit, Label body_label, Label exit);
  void lowerCall(const Node* node);
  void lowerMethodCall(const Node* node);
  void lowerFork(const Node* node);
  void lowerFusionGroup(const Node* node);
  bool lowerData(const Node* node);
  bool lowerAttribute(const Node* node);
  bool lowerSpeculation(const Node* node);
  void lowerOperator(const Node* node);

  Code& code_;
  VirtualCode out_;
  const Node* current_ = nullptr;
  std::unordered_map<const Value*, uint32_t> registers_;
  std::unordered_map<const Value*, uint32_t> constants_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> scalar_constants_;  // by tag and bits
  std::unordered_map<const Operator*, uint32_t> operator_index_;
  std::unordered_set<const Node*> deferred_;
  // While the condition of a back edge is lowered: the register of a carried value, now overwritten
  // or about to be, stands for the value that moved into it.
  std::unordered_map<uint32_t, uint32_t> substitutes_;
  // Constants that loops read are loaded once, before everything else.
  std::vector<Instruction> prologue_;
  std::unordered_map<uint32_t, uint32_t> hoisted_;  // constant -> register
  size_t loop_depth_ = 0;
};

}  // namespace wick
