// Translation of a Code to an LLVM function of type NativeFunction (runtime/interpreter/
// native_code.h).
//
// A scalar register is one local variable for each kind of value that it holds, which LLVM turns
// into SSA form. The fuel is a local variable too; it is stored where others may look at it. Every
// way out stores the scalar registers that are alive there. An instruction that finds something
// unusual (a zero divisor, an index out of range, an unexpected tag) leaves before it did anything,
// and the interpreter carries it out again, with all its errors.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>

#include "runtime/native/code_analysis.h"
#include "runtime/native/object_layout.h"

namespace wick::native {

// The symbols that translated code calls.
inline constexpr const char* kRefuelSymbol = "wick_native_refuel";
inline constexpr const char* kExecuteSymbol = "wick_native_execute";
inline constexpr const char* kCallOperatorSymbol = "wick_native_call_operator";
inline constexpr const char* kGuardsHoldSymbol = "wick_native_guards_hold";
inline constexpr const char* kModuloSymbol = "wick_native_modulo";

// The first tag of values that count references.
inline constexpr auto kFirstCounted = static_cast<uint32_t>(IValue::Tag::Tensor);

inline uint32_t tagOfKind(Fact::Kind kind) {
  switch (kind) {
    case Fact::Kind::Int:
      return static_cast<uint32_t>(IValue::Tag::Int);
    case Fact::Kind::Float:
      return static_cast<uint32_t>(IValue::Tag::Double);
    default:
      return static_cast<uint32_t>(IValue::Tag::Bool);
  }
}

class Translator {
 public:
  // The function will be called `name`. All must outlive the translator.
  Translator(const Code& code, const CodeAnalysis& analysis, llvm::Module& module,
             const std::string& name);
  // Once. RuntimeError for a Code that cannot be translated.
  void run();

 private:
  using Kind = Fact::Kind;

  // Types and addresses.
  llvm::Type* typeOf(Kind kind);
  llvm::Value* fieldOf(uint32_t r, uint32_t offset);
  llvm::Value* tagOf(uint32_t r);
  llvm::Value* address(llvm::Value* base, llvm::Value* offset);
  llvm::Value* address(llvm::Value* base, uint32_t offset);
  llvm::Value* integer(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }

  // Scalar registers.
  llvm::Value* variable(uint32_t scalar, Kind kind);
  llvm::Value* constant(const Fact& fact);
  llvm::Value* read(uint32_t r);  // as the kind that it has here
  llvm::Value* readInt(uint32_t r);
  llvm::Value* readFloat(uint32_t r);
  llvm::Value* readBool(uint32_t r);
  const Fact& factOf(uint32_t r) const { return facts_[analysis_.scalar(r)]; }
  void write(uint32_t r, Kind kind, llvm::Value* value);
  void writePayload(uint32_t r, Kind kind, llvm::Value* address);
  void spill(uint32_t r);
  void spillOperands(const Instruction& instruction);
  void spillList(uint32_t offset);
  void reload(uint32_t r, const Fact& fact);

  // Control.
  llvm::BasicBlock* newBlock(const char* name);
  llvm::BasicBlock* exitAt(uint32_t pc);
  llvm::BasicBlock* raiseAt(uint32_t pc);
  // Goes on behind when the condition holds, and to `otherwise` when it does not, which is rare.
  void expect(llvm::Value* condition, llvm::BasicBlock* otherwise);
  llvm::BasicBlock* jumpTo(uint32_t target);
  void branch(llvm::Value* condition, uint32_t target);
  void storeFuel() { builder_.CreateStore(builder_.CreateLoad(i64_, fuel_), context_); }
  void loadFuel() { builder_.CreateStore(builder_.CreateLoad(i64_, context_), fuel_); }

  // Instructions.
  void emitEntries();
  void emitBlock(uint32_t number);
  void emit(const Instruction& instruction);
  void emitInline(const Instruction& instruction);
  void emitMove(const Instruction& instruction);
  bool emitJump(const Instruction& instruction);
  void emitScalar(const Instruction& instruction);
  llvm::Value* emitIntArithmetic(const Instruction& instruction);
  llvm::Value* emitFloatArithmetic(const Instruction& instruction);
  llvm::Value* emitBoolArithmetic(const Instruction& instruction);
  llvm::Value* emitDivision(const Instruction& instruction);
  llvm::Value* emitSignedDivision(bool modulo, llvm::Value* a, llvm::Value* b, const Fact& divisor);
  llvm::Value* emitTruncation(llvm::Value* value);
  void emitExecute(const Instruction& instruction);
  bool emitElements(const Instruction& instruction);
  bool emitListWrite(const Instruction& instruction);
  void emitStep(llvm::BasicBlock* otherwise);
  void storeOperand(uint32_t operand, llvm::Value* element);
  // The place of element `index` behind `begin`; negative indices count from the end. Goes to
  // `otherwise` when there is none.
  llvm::Value* emitElement(llvm::Value* begin, llvm::Value* end, llvm::Value* index, bool natural,
                           llvm::BasicBlock* otherwise);

  const Code& code_;
  const CodeAnalysis& analysis_;
  const ObjectLayout& layout_;
  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
  llvm::Type* const i64_;
  llvm::Type* const double_;
  llvm::Function* function_;
  llvm::Value* registers_;
  llvm::Value* context_;  // NativeContext, whose first field is the fuel
  llvm::Value* entry_;
  llvm::BasicBlock* start_;  // holds the local variables
  llvm::AllocaInst* fuel_;
  llvm::FunctionCallee refuel_, execute_, call_operator_, guards_hold_, modulo_;
  std::map<std::pair<uint32_t, Kind>, llvm::Value*> variables_;
  std::vector<llvm::BasicBlock*> blocks_;  // by block of the analysis
  // Of the instruction being translated.
  uint32_t pc_ = 0;
  CodeAnalysis::Facts facts_;
  std::vector<CodeAnalysis::BitSet> live_;  // by instruction of the block
  uint32_t block_begin_ = 0;
  std::map<uint32_t, llvm::BasicBlock*> exits_, raises_;  // by instruction
};

}  // namespace wick::native
