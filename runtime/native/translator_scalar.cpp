// The part of the translator that computes numbers. What it computes is defined by
// runtime/interpreter/scalar_semantics.h.
#include <bit>

#include "runtime/native/translator.h"

namespace wick::native {
namespace {

using Predicate = llvm::CmpInst::Predicate;

struct Comparison {
  Predicate predicate;
  bool is_float;
  bool jumps_when = true;  // for jumps: on true, or on false
};

// What a comparison or a jump on one compares.
std::optional<Comparison> comparisonOf(OpCode op) {
  switch (op) {
    case OpCode::LT_INT:
    case OpCode::JUMP_IF_LT_INT:
      return Comparison{Predicate::ICMP_SLT, false};
    case OpCode::LE_INT:
    case OpCode::JUMP_IF_LE_INT:
      return Comparison{Predicate::ICMP_SLE, false};
    case OpCode::EQ_INT:
    case OpCode::JUMP_IF_EQ_INT:
      return Comparison{Predicate::ICMP_EQ, false};
    case OpCode::NE_INT:
    case OpCode::JUMP_IF_NE_INT:
      return Comparison{Predicate::ICMP_NE, false};
    case OpCode::LT_FLOAT:
    case OpCode::JUMP_IF_LT_FLOAT:
      return Comparison{Predicate::FCMP_OLT, true};
    case OpCode::LE_FLOAT:
    case OpCode::JUMP_IF_LE_FLOAT:
      return Comparison{Predicate::FCMP_OLE, true};
    case OpCode::EQ_FLOAT:
    case OpCode::JUMP_IF_EQ_FLOAT:
      return Comparison{Predicate::FCMP_OEQ, true};
    case OpCode::NE_FLOAT:
      return Comparison{Predicate::FCMP_UNE, true};
    case OpCode::JUMP_UNLESS_LT_FLOAT:
      return Comparison{Predicate::FCMP_OLT, true, false};
    case OpCode::JUMP_UNLESS_LE_FLOAT:
      return Comparison{Predicate::FCMP_OLE, true, false};
    case OpCode::JUMP_UNLESS_EQ_FLOAT:
      return Comparison{Predicate::FCMP_OEQ, true, false};
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Translator::emitJump(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  switch (op) {
    case OpCode::JUMP:
      builder_.CreateBr(jumpTo(a));
      return true;
    case OpCode::JUMP_IF:
      branch(readBool(a), b);
      return true;
    case OpCode::JUMP_UNLESS:
      branch(builder_.CreateNot(readBool(a)), b);
      return true;
    case OpCode::FOR_STEP: {
      llvm::Value* next = builder_.CreateAdd(readInt(a), integer(1));
      llvm::Value* limit = readInt(b);
      write(a, Kind::Int, next);
      branch(builder_.CreateICmpSLT(next, limit), c);
      return true;
    }
    default:
      break;
  }
  // A comparison that stores its result has the operands b and c.
  if (opCodeFormat(op)[2] != 'j') return false;
  auto comparison = comparisonOf(op);
  if (!comparison) return false;
  llvm::Value* left = comparison->is_float ? readFloat(a) : readInt(a);
  llvm::Value* right = comparison->is_float ? readFloat(b) : readInt(b);
  llvm::Value* holds = builder_.CreateCmp(comparison->predicate, left, right);
  branch(comparison->jumps_when ? holds : builder_.CreateNot(holds), c);
  return true;
}

void Translator::emitScalar(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  if (auto comparison = comparisonOf(op)) {
    llvm::Value* left = comparison->is_float ? readFloat(b) : readInt(b);
    llvm::Value* right = comparison->is_float ? readFloat(c) : readInt(c);
    return write(a, Kind::Bool, builder_.CreateCmp(comparison->predicate, left, right));
  }
  if (llvm::Value* value = emitIntArithmetic(instruction)) return write(a, Kind::Int, value);
  if (llvm::Value* value = emitFloatArithmetic(instruction)) return write(a, Kind::Float, value);
  if (llvm::Value* value = emitBoolArithmetic(instruction)) return write(a, Kind::Bool, value);
  WICK_ASSERT(false, "{} is not translated", opCodeName(op));
}

llvm::Value* Translator::emitIntArithmetic(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  switch (op) {
    case OpCode::ADD_INT:
      return builder_.CreateAdd(readInt(b), readInt(c));
    case OpCode::SUB_INT:
      return builder_.CreateSub(readInt(b), readInt(c));
    case OpCode::MUL_INT:
      return builder_.CreateMul(readInt(b), readInt(c));
    case OpCode::FLOORDIV_INT:
    case OpCode::MOD_INT:
      return emitDivision(instruction);
    case OpCode::AND_INT:
      return builder_.CreateAnd(readInt(b), readInt(c));
    case OpCode::OR_INT:
      return builder_.CreateOr(readInt(b), readInt(c));
    case OpCode::XOR_INT:
      return builder_.CreateXor(readInt(b), readInt(c));
    case OpCode::NEG_INT:
      return builder_.CreateSub(integer(0), readInt(b));
    case OpCode::FLOAT_TO_INT:
      return emitTruncation(readFloat(b));
    case OpCode::BOOL_TO_INT:
      return readInt(b);
    default:
      return nullptr;
  }
}

llvm::Value* Translator::emitFloatArithmetic(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  switch (op) {
    case OpCode::DIV_INT:
      return builder_.CreateFDiv(builder_.CreateSIToFP(readInt(b), double_),
                                 builder_.CreateSIToFP(readInt(c), double_));
    case OpCode::ADD_FLOAT:
      return builder_.CreateFAdd(readFloat(b), readFloat(c));
    case OpCode::SUB_FLOAT:
      return builder_.CreateFSub(readFloat(b), readFloat(c));
    case OpCode::MUL_FLOAT:
      return builder_.CreateFMul(readFloat(b), readFloat(c));
    case OpCode::DIV_FLOAT:
      return builder_.CreateFDiv(readFloat(b), readFloat(c));
    case OpCode::FLOORDIV_FLOAT:
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor,
                                           builder_.CreateFDiv(readFloat(b), readFloat(c)));
    case OpCode::MOD_FLOAT:
      return builder_.CreateCall(modulo_, {readFloat(b), readFloat(c)});
    case OpCode::NEG_FLOAT:
      return builder_.CreateFNeg(readFloat(b));
    case OpCode::INT_TO_FLOAT:
      return builder_.CreateSIToFP(readInt(b), double_);
    default:
      return nullptr;
  }
}

llvm::Value* Translator::emitBoolArithmetic(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  switch (op) {
    case OpCode::AND_BOOL:
      return builder_.CreateAnd(readBool(b), readBool(c));
    case OpCode::OR_BOOL:
      return builder_.CreateOr(readBool(b), readBool(c));
    case OpCode::XOR_BOOL:
      return builder_.CreateXor(readBool(b), readBool(c));
    case OpCode::NOT:
      return builder_.CreateNot(readBool(b));
    case OpCode::INT_TO_BOOL:
      return builder_.CreateICmpNE(readInt(b), integer(0));
    case OpCode::FLOAT_TO_BOOL:
      return builder_.CreateFCmpUNE(readFloat(b), llvm::ConstantFP::get(double_, 0.0));
    default:
      return nullptr;
  }
}

// Division of 32-bit numbers takes a fraction of the time. Which of the two is needed is often
// known; otherwise it is decided when it runs, as the interpreter does.
llvm::Value* Translator::emitDivision(const Instruction& instruction) {
  bool modulo = instruction.op == OpCode::MOD_INT;
  llvm::Value* a = readInt(instruction.b);
  llvm::Value* b = readInt(instruction.c);
  const Fact dividend = factOf(instruction.b);
  const Fact divisor = factOf(instruction.c);
  if (!divisor.excludes(0)) expect(builder_.CreateICmpNE(b, integer(0)), exitAt(pc_));
  if (divisor.isConstant() && divisor.low > 0 && std::has_single_bit(uint64_t(divisor.low))) {
    // Shifts and masks round down also for negative numbers.
    int shift = std::countr_zero(static_cast<uint64_t>(divisor.low));
    return modulo ? builder_.CreateAnd(a, integer(divisor.low - 1))
                  : builder_.CreateAShr(a, integer(shift));
  }
  auto divideSmall = [&] {
    llvm::Type* i32 = builder_.getInt32Ty();
    llvm::Value* small_a = builder_.CreateTrunc(a, i32);
    llvm::Value* small_b = builder_.CreateTrunc(b, i32);
    llvm::Value* result =
        modulo ? builder_.CreateURem(small_a, small_b) : builder_.CreateUDiv(small_a, small_b);
    return builder_.CreateZExt(result, i64_);
  };
  if (dividend.fits32() && divisor.fits32()) return divideSmall();
  if (divisor.isConstant()) {
    if (dividend.isNatural() && divisor.low > 0) {
      return modulo ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
    }
    return emitSignedDivision(modulo, a, b, divisor);
  }
  llvm::BasicBlock* small = newBlock("small");
  llvm::BasicBlock* large = newBlock("large");
  llvm::BasicBlock* behind = newBlock("");
  llvm::Value* high = builder_.CreateLShr(builder_.CreateOr(a, b), integer(32));
  builder_.CreateCondBr(builder_.CreateICmpEQ(high, integer(0)), small, large);
  builder_.SetInsertPoint(small);
  llvm::Value* small_result = divideSmall();
  builder_.CreateBr(behind);
  builder_.SetInsertPoint(large);
  llvm::Value* large_result = emitSignedDivision(modulo, a, b, divisor);
  large = builder_.GetInsertBlock();
  builder_.CreateBr(behind);
  builder_.SetInsertPoint(behind);
  llvm::PHINode* result = builder_.CreatePHI(i64_, 2);
  result->addIncoming(small_result, small);
  result->addIncoming(large_result, large);
  return result;
}

// The processor's division truncates and cannot divide the least number by -1.
llvm::Value* Translator::emitSignedDivision(bool modulo, llvm::Value* a, llvm::Value* b,
                                            const Fact& divisor) {
  llvm::Value* is_negation = builder_.CreateICmpEQ(b, integer(-1));
  llvm::Value* safe = divisor.excludes(-1) ? b : builder_.CreateSelect(is_negation, integer(1), b);
  llvm::Value* zero = integer(0);
  llvm::Value* rest = builder_.CreateSRem(a, safe);
  llvm::Value* inexact = builder_.CreateICmpNE(rest, zero);
  llvm::Value* signs_differ = builder_.CreateICmpSLT(builder_.CreateXor(rest, safe), zero);
  llvm::Value* adjust = builder_.CreateAnd(inexact, signs_differ);
  llvm::Value* result;
  if (modulo) {
    result = builder_.CreateSelect(adjust, builder_.CreateAdd(rest, safe), rest);
  } else {
    llvm::Value* quotient = builder_.CreateSDiv(a, safe);
    result = builder_.CreateSub(quotient, builder_.CreateZExt(adjust, i64_));
  }
  if (divisor.excludes(-1)) return result;
  llvm::Value* negated = modulo ? zero : builder_.CreateSub(zero, a);
  return builder_.CreateSelect(is_negation, negated, result);
}

// As truncateTo<int64_t>(): what does not fit gives the least.
llvm::Value* Translator::emitTruncation(llvm::Value* value) {
  constexpr double kLimit = 0x1p63;
  llvm::Value* fits =
      builder_.CreateAnd(builder_.CreateFCmpOGE(value, llvm::ConstantFP::get(double_, -kLimit)),
                         builder_.CreateFCmpOLT(value, llvm::ConstantFP::get(double_, kLimit)));
  llvm::Value* whole = builder_.CreateFreeze(builder_.CreateFPToSI(value, i64_));
  return builder_.CreateSelect(fits, whole, integer(Fact::kLeast));
}

}  // namespace wick::native
