#include "codegen/llvm/scalar_emitter.h"

#include <fmt/format.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <numeric>

#include "codegen/llvm/jit.h"
#include "codegen/scalar/double_functions.h"
#include "codegen/scalar/usual_form.h"

namespace wick::codegen {

namespace {

bool isSignedType(DType type) {
  return type != DType::Byte && type != DType::Bool;
}

}  // namespace

std::string functionSymbol(ScalarFunction f, DType type) {
  return fmt::format("wick_{}_{}", toString(f), toString(type));
}

llvm::Type* ScalarEmitter::elementType(DType type) const {
  llvm::LLVMContext& context = b_.getContext();
  switch (type) {
    case DType::Bool:
      return llvm::Type::getInt1Ty(context);
    case DType::Half:
      return llvm::Type::getHalfTy(context);
    case DType::BFloat16:
      return llvm::Type::getInt16Ty(context);
    case DType::Float:
      return llvm::Type::getFloatTy(context);
    case DType::Double:
      return llvm::Type::getDoubleTy(context);
    default:
      return llvm::IntegerType::get(context, static_cast<unsigned>(itemSize(type)) * 8);
  }
}

llvm::Type* ScalarEmitter::memoryType(DType type) const {
  llvm::LLVMContext& context = b_.getContext();
  if (type == DType::Bool) return llvm::Type::getInt8Ty(context);
  if (type == DType::Half) return llvm::Type::getInt16Ty(context);
  return elementType(type);
}

llvm::Value* ScalarEmitter::fromMemory(llvm::Value* v, DType type) {
  if (type == DType::Bool) return b_.CreateICmpNE(v, integers(v->getType(), 0));
  if (type == DType::Half) return b_.CreateBitCast(v, vectorType(type));
  return v;
}

llvm::Value* ScalarEmitter::toMemory(llvm::Value* v, DType type) {
  auto* memory = llvm::FixedVectorType::get(memoryType(type), lanes_);
  if (type == DType::Bool) return b_.CreateZExt(v, memory);
  if (type == DType::Half) return b_.CreateBitCast(v, memory);
  return v;
}

llvm::Value* ScalarEmitter::constant(const ScalarNode& node) {
  llvm::Type* type = vectorType(node.type);
  if (isFloating(node.type)) {
    return llvm::ConstantFP::get(type, std::bit_cast<double>(node.payload));
  }
  return integers(type, static_cast<int64_t>(node.payload));
}

llvm::Value* ScalarEmitter::unaryFloat(llvm::Intrinsic::ID id, llvm::Value* v) {
  return b_.CreateUnaryIntrinsic(id, v);
}

// No divisor may reach the processor that it traps at.
llvm::Value* ScalarEmitter::divide(const ScalarNode& node, llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  llvm::Value* zero = integers(type, 0);
  llvm::Value* is_zero = b_.CreateICmpEQ(b, zero);
  bool quotient = node.op == ScalarOp::IntDiv;
  if (!isSignedType(node.type)) {
    llvm::Value* safe = b_.CreateSelect(is_zero, integers(type, 1), b);
    llvm::Value* result = quotient ? b_.CreateUDiv(a, safe) : b_.CreateURem(a, safe);
    return b_.CreateSelect(is_zero, zero, result);
  }
  llvm::Value* is_minus_one = b_.CreateICmpEQ(b, integers(type, -1));
  llvm::Value* safe = b_.CreateSelect(b_.CreateOr(is_zero, is_minus_one), integers(type, 1), b);
  llvm::Value* result = quotient ? b_.CreateSDiv(a, safe) : b_.CreateSRem(a, safe);
  llvm::Value* of_minus_one = quotient ? b_.CreateNeg(a) : zero;
  return b_.CreateSelect(is_zero, zero, b_.CreateSelect(is_minus_one, of_minus_one, result));
}

// Narrow integers are shifted as int32.
llvm::Value* ScalarEmitter::shift(const ScalarNode& node, llvm::Value* a, llvm::Value* b) {
  unsigned bits = static_cast<unsigned>(itemSize(node.type)) * 8;
  llvm::Type* narrow = a->getType();
  llvm::Type* wide = narrow;
  if (bits < 32) {
    wide = llvm::FixedVectorType::get(b_.getInt32Ty(), lanes_);
    a = isSignedType(node.type) ? b_.CreateSExt(a, wide) : b_.CreateZExt(a, wide);
    b = isSignedType(node.type) ? b_.CreateSExt(b, wide) : b_.CreateZExt(b, wide);
  }
  b = b_.CreateAnd(b, integers(wide, bits == 64 ? 63 : 31));
  llvm::Value* shifted = node.op == ScalarOp::ShiftLeft ? b_.CreateShl(a, b) : b_.CreateAShr(a, b);
  return bits < 32 ? b_.CreateTrunc(shifted, narrow) : shifted;
}

llvm::Value* ScalarEmitter::compare(ScalarOp op, llvm::Value* a, llvm::Value* b, DType type) {
  using P = llvm::CmpInst;
  if (isFloating(type)) {
    return b_.CreateFCmp(op == ScalarOp::Eq   ? P::FCMP_OEQ
                         : op == ScalarOp::Lt ? P::FCMP_OLT
                                              : P::FCMP_OLE,
                         a, b);
  }
  bool is_signed = isSignedType(type);
  P::Predicate predicate = op == ScalarOp::Eq   ? P::ICMP_EQ
                           : op == ScalarOp::Lt ? (is_signed ? P::ICMP_SLT : P::ICMP_ULT)
                                                : (is_signed ? P::ICMP_SLE : P::ICMP_ULE);
  return b_.CreateICmp(predicate, a, b);
}

// Lanes that no arithmetic computes go one by one, through memory.
llvm::Value* ScalarEmitter::call(const ScalarNode& node, std::span<llvm::Value* const> operands) {
  llvm::Type* vector = vectorType(node.type);
  llvm::Value* computed = llvm::PoisonValue::get(vector);
  llvm::Value* wanted = b_.getInt64(lanes_ < 64 ? (uint64_t{1} << lanes_) - 1 : ~uint64_t{0});
  if (const auto form = usualForm(node.function, node.type)) {
    const std::vector<llvm::Value*> values = emitAll(form->arithmetic, operands);
    computed = values[static_cast<size_t>(form->value.id)];
    if (!form->usual.valid()) return computed;
    llvm::Value* unusual = b_.CreateNot(values[static_cast<size_t>(form->usual.id)]);
    // Lanes beyond the end of a row hold anything, and what is not known decides no branch.
    llvm::Value* bits = b_.CreateFreeze(b_.CreateBitCast(unusual, b_.getIntNTy(lanes_)));
    wanted = b_.CreateZExt(bits, b_.getInt64Ty());
  }
  return callLanes(node, operands, computed, wanted);
}

// The values of an expression's nodes on these inputs.
std::vector<llvm::Value*> ScalarEmitter::emitAll(const Expression& expression,
                                                 std::span<llvm::Value* const> inputs) {
  std::vector<llvm::Value*> values;
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op == ScalarOp::Input) {
      values.push_back(node.payload < inputs.size() ? inputs[node.payload] : nullptr);
      continue;
    }
    std::vector<llvm::Value*> operands;
    std::vector<DType> types;
    for (int i = 0; i < operandCount(node.op, node.function); ++i) {
      const ScalarExpr operand = node.operands[static_cast<size_t>(i)];
      operands.push_back(values[static_cast<size_t>(operand.id)]);
      types.push_back(expression[operand].type);
    }
    values.push_back(emit(node, operands, types));
  }
  return values;
}

// `computed` with the function's values in the lanes whose bits are set in `wanted`.
llvm::Value* ScalarEmitter::callLanes(const ScalarNode& node,
                                      std::span<llvm::Value* const> operands, llvm::Value* computed,
                                      llvm::Value* wanted) {
  llvm::Type* element = elementType(node.type);
  llvm::Type* vector = vectorType(node.type);
  // GCC's functions rely on nothing beyond the width of narrow integers.
  std::vector<llvm::Type*> parameters(operands.size(), element);
  auto callee = function_.getParent()->getOrInsertFunction(
      functionSymbol(node.function, node.type),
      llvm::FunctionType::get(element, parameters, false));
  llvm::IRBuilder<> entry(&function_.getEntryBlock(), function_.getEntryBlock().begin());
  std::vector<llvm::Value*> memory;
  for (size_t i = 0; i < operands.size(); ++i) memory.push_back(entry.CreateAlloca(vector));
  llvm::Value* results = entry.CreateAlloca(vector);

  llvm::BasicBlock* before = b_.GetInsertBlock();
  const auto block = [&](const char* name) {
    return llvm::BasicBlock::Create(b_.getContext(), name, &function_);
  };
  llvm::BasicBlock* stores = block("lanes");
  llvm::BasicBlock* body = block("lane");
  llvm::BasicBlock* loaded = block("lanes.load");
  llvm::BasicBlock* after = block("lanes.done");
  b_.CreateCondBr(b_.CreateIsNotNull(wanted), stores, after);

  b_.SetInsertPoint(stores);
  for (size_t i = 0; i < operands.size(); ++i) b_.CreateStore(operands[i], memory[i]);
  b_.CreateStore(computed, results);
  b_.CreateBr(body);

  b_.SetInsertPoint(body);
  llvm::PHINode* left = b_.CreatePHI(b_.getInt64Ty(), 2);
  left->addIncoming(wanted, stores);
  llvm::Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getTrue());
  std::vector<llvm::Value*> arguments;
  for (llvm::Value* m : memory) {
    arguments.push_back(b_.CreateLoad(element, b_.CreateGEP(element, m, lane)));
  }
  b_.CreateStore(b_.CreateCall(callee, arguments), b_.CreateGEP(element, results, lane));
  llvm::Value* next = b_.CreateAnd(left, b_.CreateSub(left, b_.getInt64(1)));
  left->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateIsNotNull(next), body, loaded);

  b_.SetInsertPoint(loaded);
  llvm::Value* called = b_.CreateLoad(vector, results);
  b_.CreateBr(after);

  b_.SetInsertPoint(after);
  llvm::PHINode* value = b_.CreatePHI(vector, 2);
  value->addIncoming(computed, before);
  value->addIncoming(called, loaded);
  return value;
}

// For instructions of one register: emits them for each part of the vectors (the second may be
// null).
llvm::Value* ScalarEmitter::inRegisters(
    llvm::Value* a, llvm::Value* b,
    const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& emit) {
  const unsigned width = vectorBits() / a->getType()->getScalarSizeInBits();
  if (lanes_ == width) return emit(a, b);
  const auto part = [&](llvm::Value* v, unsigned first) -> llvm::Value* {
    if (!v) return nullptr;
    std::vector<int> lanes(width);
    std::iota(lanes.begin(), lanes.end(), static_cast<int>(first));
    return b_.CreateShuffleVector(v, lanes);
  };
  std::vector<llvm::Value*> parts;
  for (unsigned first = 0; first < lanes_; first += width) {
    parts.push_back(emit(part(a, first), part(b, first)));
  }
  for (unsigned joined = 2 * width; parts.size() > 1; joined *= 2) {
    std::vector<int> lanes(joined);
    std::iota(lanes.begin(), lanes.end(), 0);
    std::vector<llvm::Value*> pairs;
    for (size_t i = 0; i < parts.size(); i += 2) {
      pairs.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], lanes));
    }
    parts = std::move(pairs);
  }
  return parts.front();
}

// As scaleInSteps() of floats or doubles where no instruction does it.
llvm::Value* ScalarEmitter::scale(llvm::Value* v, llvm::Value* n, DType type) {
  const bool wide = type == DType::Double;
  if (vectorBits() >= 512) {
    return inRegisters(v, n, [&](llvm::Value* a, llvm::Value* b) {
      constexpr uint32_t kUsualRounding = 4;
      const auto id = wide ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                           : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
      llvm::Value* all = wide ? b_.getInt8(0xff) : b_.getInt16(0xffff);
      return b_.CreateIntrinsic(
          id, {}, {a, b, llvm::PoisonValue::get(a->getType()), all, b_.getInt32(kUsualRounding)});
    });
  }
  Expression steps;
  const ExprBuilder b(steps, type);
  const ScalarExpr a = steps.input(0, type), exponent = steps.input(1, type);
  const ScalarExpr scaled =
      wide ? doubles::scaleInSteps(b, a, exponent) : floats::scaleInSteps(b, a, exponent);
  llvm::Value* const inputs[] = {v, n};
  return emitAll(steps, inputs)[static_cast<size_t>(scaled.id)];
}

// By permutations of registers, which look at as many bits of an index as they have lanes for; else
// from memory.
llvm::Value* ScalarEmitter::lookup(const ScalarNode& node, llvm::Value* index) {
  const auto& table = floats::valuesOf(static_cast<floats::FloatTable>(node.payload));
  const llvm::ArrayRef<float> entries(table);
  llvm::LLVMContext& context = b_.getContext();
  const unsigned width = vectorBits() / 32;
  if (width == floats::kFloatTableSize) {
    llvm::Constant* values = llvm::ConstantDataVector::get(context, entries);
    return inRegisters(index, nullptr, [&](llvm::Value* which, llvm::Value*) {
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {values, which});
    });
  }
  if (2 * width == floats::kFloatTableSize) {
    llvm::Constant* low = llvm::ConstantDataVector::get(context, entries.take_front(width));
    llvm::Constant* high = llvm::ConstantDataVector::get(context, entries.drop_front(width));
    return inRegisters(index, nullptr, [&](llvm::Value* which, llvm::Value*) {
      const auto permuted = [&](llvm::Constant* values) {
        return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {values, which});
      };
      llvm::Value* bit = b_.CreateAnd(which, integers(which->getType(), width));
      llvm::Value* second = b_.CreateICmpNE(bit, integers(which->getType(), 0));
      return b_.CreateSelect(second, permuted(high), permuted(low));
    });
  }
  llvm::Constant* values = llvm::ConstantDataArray::get(context, entries);
  auto* memory = new llvm::GlobalVariable(*function_.getParent(), values->getType(),
                                          /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                          values, "table");
  llvm::Value* entry = b_.CreateAnd(index, integers(index->getType(), table.size() - 1));
  llvm::Value* addresses = b_.CreateGEP(b_.getFloatTy(), memory, entry);
  return b_.CreateMaskedGather(vectorType(DType::Float), addresses, llvm::Align(4));
}

// A float to a signed integer; what does not fit gives the minimum.
llvm::Value* ScalarEmitter::truncate(llvm::Value* v, unsigned bits) {
  llvm::Type* type = v->getType();
  auto* to = llvm::FixedVectorType::get(llvm::IntegerType::get(b_.getContext(), bits), lanes_);
  if (bits == 64 && vectorBits() < 512) {
    // Only AVX-512 has an instruction for vectors; that for one number gives this minimum itself.
    const bool single = type->getScalarType()->isFloatTy();
    auto* one = llvm::FixedVectorType::get(type->getScalarType(), single ? 4 : 2);
    llvm::Value* result = llvm::PoisonValue::get(to);
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      llvm::Value* element = b_.CreateInsertElement(llvm::PoisonValue::get(one),
                                                    b_.CreateExtractElement(v, lane), uint64_t{0});
      llvm::Value* whole = b_.CreateIntrinsic(
          single ? llvm::Intrinsic::x86_sse_cvttss2si64 : llvm::Intrinsic::x86_sse2_cvttsd2si64, {},
          {element});
      result = b_.CreateInsertElement(result, whole, lane);
    }
    return result;
  }
  llvm::Value* low = llvm::ConstantFP::get(type, bits == 64 ? -0x1p63 : -0x1p31);
  llvm::Value* high = llvm::ConstantFP::get(type, bits == 64 ? 0x1p63 : 0x1p31);
  llvm::Value* fits = b_.CreateAnd(b_.CreateFCmpOGE(v, low), b_.CreateFCmpOLT(v, high));
  llvm::Value* safe = b_.CreateSelect(fits, v, llvm::ConstantFP::get(type, 0.0));
  int64_t least = bits == 64 ? INT64_MIN : INT32_MIN;
  return b_.CreateSelect(fits, b_.CreateFPToSI(safe, to), integers(to, least));
}

// To nearest even; every NaN becomes the quiet one.
llvm::Value* ScalarEmitter::toBFloat16(llvm::Value* v) {
  auto* wide = llvm::FixedVectorType::get(b_.getInt32Ty(), lanes_);
  llvm::Value* bits = b_.CreateBitCast(v, wide);
  llvm::Value* high = b_.CreateLShr(bits, integers(wide, 16));
  llvm::Value* odd = b_.CreateAnd(high, integers(wide, 1));
  llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, integers(wide, 0x7fff)));
  rounded = b_.CreateLShr(rounded, integers(wide, 16));
  rounded = b_.CreateSelect(b_.CreateFCmpUNO(v, v), integers(wide, 0x7fc0), rounded);
  return b_.CreateTrunc(rounded, vectorType(DType::BFloat16));
}

llvm::Value* ScalarEmitter::convert(llvm::Value* v, DType from, DType to) {
  if (from == to) return v;
  if (from == DType::Half) {
    v = b_.CreateFPExt(v, vectorType(DType::Float));
    from = DType::Float;
  } else if (from == DType::BFloat16) {
    auto* wide = llvm::FixedVectorType::get(b_.getInt32Ty(), lanes_);
    v = b_.CreateShl(b_.CreateZExt(v, wide), integers(wide, 16));
    v = b_.CreateBitCast(v, vectorType(DType::Float));
    from = DType::Float;
  }
  if (from == to) return v;
  if (to == DType::Bool) {
    if (isFloating(from)) return b_.CreateFCmpUNE(v, llvm::ConstantFP::get(v->getType(), 0.0));
    return b_.CreateICmpNE(v, integers(v->getType(), 0));
  }
  if (isReducedFloat(to)) {
    v = convert(v, from, DType::Float);
    return to == DType::Half ? b_.CreateFPTrunc(v, vectorType(to)) : toBFloat16(v);
  }
  llvm::Type* type = vectorType(to);
  if (isFloating(from)) {
    if (isFloating(to)) return b_.CreateFPCast(v, type);
    bool wide = to == DType::Long || to == DType::Byte;
    llvm::Value* whole = truncate(v, wide ? 64 : 32);
    return b_.CreateIntCast(whole, type, true);
  }
  if (isFloating(to)) {
    return isSignedType(from) ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
  }
  return b_.CreateIntCast(v, type, isSignedType(from));
}

llvm::Value* ScalarEmitter::emit(const ScalarNode& node, std::span<llvm::Value* const> operands,
                                 std::span<const DType> types) {
  bool is_float = isFloating(node.type);
  switch (node.op) {
    case ScalarOp::Constant:
      return constant(node);
    case ScalarOp::Add:
      return is_float ? b_.CreateFAdd(operands[0], operands[1])
                      : b_.CreateAdd(operands[0], operands[1]);
    case ScalarOp::Sub:
      return is_float ? b_.CreateFSub(operands[0], operands[1])
                      : b_.CreateSub(operands[0], operands[1]);
    case ScalarOp::Mul:
      return is_float ? b_.CreateFMul(operands[0], operands[1])
                      : b_.CreateMul(operands[0], operands[1]);
    case ScalarOp::Div:
      return b_.CreateFDiv(operands[0], operands[1]);
    case ScalarOp::IntDiv:
    case ScalarOp::IntRem:
      return divide(node, operands[0], operands[1]);
    case ScalarOp::Neg:
      return is_float ? b_.CreateFNeg(operands[0]) : b_.CreateNeg(operands[0]);
    case ScalarOp::Abs:
      if (is_float) return unaryFloat(llvm::Intrinsic::fabs, operands[0]);
      return b_.CreateSelect(b_.CreateICmpSLT(operands[0], integers(operands[0]->getType(), 0)),
                             b_.CreateNeg(operands[0]), operands[0]);
    case ScalarOp::Fma:
      return b_.CreateIntrinsic(operands[0]->getType(), llvm::Intrinsic::fma,
                                {operands[0], operands[1], operands[2]});
    case ScalarOp::Eq:
    case ScalarOp::Lt:
    case ScalarOp::Le:
      return compare(node.op, operands[0], operands[1], types[0]);
    case ScalarOp::SignBit: {
      auto* bits = llvm::FixedVectorType::get(
          llvm::IntegerType::get(b_.getContext(), static_cast<unsigned>(itemSize(types[0])) * 8),
          lanes_);
      return b_.CreateICmpSLT(b_.CreateBitCast(operands[0], bits), integers(bits, 0));
    }
    case ScalarOp::And:
      return b_.CreateAnd(operands[0], operands[1]);
    case ScalarOp::Or:
      return b_.CreateOr(operands[0], operands[1]);
    case ScalarOp::Xor:
      return b_.CreateXor(operands[0], operands[1]);
    case ScalarOp::Not:
      return b_.CreateNot(operands[0]);
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight:
      return shift(node, operands[0], operands[1]);
    case ScalarOp::Select:
      return b_.CreateSelect(operands[0], operands[1], operands[2]);
    case ScalarOp::Convert:
      return convert(operands[0], types[0], node.type);
    case ScalarOp::Bits:
      return b_.CreateBitCast(operands[0], vectorType(node.type));
    case ScalarOp::Sqrt:
      return unaryFloat(llvm::Intrinsic::sqrt, operands[0]);
    case ScalarOp::Floor:
      return unaryFloat(llvm::Intrinsic::floor, operands[0]);
    case ScalarOp::Ceil:
      return unaryFloat(llvm::Intrinsic::ceil, operands[0]);
    case ScalarOp::Trunc:
      return unaryFloat(llvm::Intrinsic::trunc, operands[0]);
    case ScalarOp::Rint:
      return unaryFloat(llvm::Intrinsic::rint, operands[0]);
    case ScalarOp::Copysign:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, operands[0], operands[1]);
    case ScalarOp::Scale:
      return scale(operands[0], operands[1], node.type);
    case ScalarOp::Lookup:
      return lookup(node, operands[0]);
    case ScalarOp::Call:
      return call(node, operands);
    case ScalarOp::Input:
      break;
  }
  throw CodegenError(fmt::format("no instruction for {}", toString(node.op)));
}

}  // namespace wick::codegen
