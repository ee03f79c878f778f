#include "runtime/native/translator.h"

#include <llvm/IR/MDBuilder.h>

#include <cstddef>

namespace wick::native {

static_assert(offsetof(NativeContext, fuel) == 0);

Translator::Translator(const Code& code, const CodeAnalysis& analysis, llvm::Module& module,
                       const std::string& name)
    : code_(code),
      analysis_(analysis),
      layout_(ObjectLayout::get()),
      module_(module),
      builder_(module.getContext()),
      i64_(builder_.getInt64Ty()),
      double_(builder_.getDoubleTy()) {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* i32 = builder_.getInt32Ty();
  auto* type = llvm::FunctionType::get(i32, {pointer, pointer, i32}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function_->setDoesNotThrow();
  registers_ = function_->getArg(0);
  context_ = function_->getArg(1);
  entry_ = function_->getArg(2);
  auto declare = [&](const char* symbol, llvm::Type* result, std::vector<llvm::Type*> parameters) {
    auto callee =
        module.getOrInsertFunction(symbol, llvm::FunctionType::get(result, parameters, false));
    auto* declared = llvm::cast<llvm::Function>(callee.getCallee());
    declared->setDoesNotThrow();
    if (result->isIntegerTy(1)) declared->addRetAttr(llvm::Attribute::ZExt);
    return callee;
  };
  refuel_ = declare(kRefuelSymbol, builder_.getInt1Ty(), {pointer});
  execute_ = declare(kExecuteSymbol, builder_.getInt1Ty(), {pointer, pointer, i32});
  call_operator_ = declare(kCallOperatorSymbol, builder_.getInt1Ty(), {pointer, pointer, i32});
  guards_hold_ = declare(kGuardsHoldSymbol, builder_.getInt1Ty(), {pointer, pointer, i32});
  modulo_ = declare(kModuloSymbol, double_, {double_, double_});
  llvm::cast<llvm::Function>(modulo_.getCallee())->setDoesNotAccessMemory();
}

llvm::Type* Translator::typeOf(Kind kind) {
  switch (kind) {
    case Kind::Int:
      return i64_;
    case Kind::Float:
      return double_;
    case Kind::Bool:
      return builder_.getInt1Ty();
    default:
      WICK_CHECK(false, "{}: a register is read whose kind depends on the path taken",
                 code_.name());
  }
}

llvm::Value* Translator::address(llvm::Value* base, llvm::Value* offset) {
  return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), base, offset);
}

llvm::Value* Translator::address(llvm::Value* base, uint32_t offset) {
  return offset == 0 ? base : address(base, integer(offset));
}

llvm::Value* Translator::fieldOf(uint32_t r, uint32_t offset) {
  return address(registers_, integer(int64_t{r} * static_cast<int64_t>(sizeof(IValue)) + offset));
}

llvm::Value* Translator::tagOf(uint32_t r) {
  return builder_.CreateLoad(builder_.getInt32Ty(), fieldOf(r, layout_.tag));
}

llvm::Value* Translator::variable(uint32_t scalar, Kind kind) {
  auto [it, inserted] = variables_.try_emplace({scalar, kind});
  if (inserted) {
    llvm::IRBuilder<> at_start(start_, start_->begin());
    it->second = at_start.CreateAlloca(typeOf(kind));
  }
  return it->second;
}

llvm::Value* Translator::constant(const Fact& fact) {
  if (fact.kind == Kind::Int) return integer(fact.low);
  if (fact.kind == Kind::Bool) return builder_.getInt1(fact.low != 0);
  return builder_.CreateBitCast(integer(fact.low), double_);
}

llvm::Value* Translator::read(uint32_t r) {
  const Fact& fact = factOf(r);
  if (fact.isConstant()) return constant(fact);
  return builder_.CreateLoad(typeOf(fact.kind), variable(analysis_.scalar(r), fact.kind));
}

llvm::Value* Translator::readInt(uint32_t r) {
  llvm::Value* value = read(r);
  return value->getType() == i64_ ? value : builder_.CreateZExt(value, i64_);
}

llvm::Value* Translator::readFloat(uint32_t r) {
  WICK_CHECK(factOf(r).kind == Kind::Float, "{}: a register is no float", code_.name());
  return read(r);
}

llvm::Value* Translator::readBool(uint32_t r) {
  llvm::Value* value = read(r);
  return value->getType()->isIntegerTy(1) ? value : builder_.CreateICmpNE(value, integer(0));
}

void Translator::write(uint32_t r, Kind kind, llvm::Value* value) {
  builder_.CreateStore(value, variable(analysis_.scalar(r), kind));
}

void Translator::writePayload(uint32_t r, Kind kind, llvm::Value* address) {
  llvm::Value* value = builder_.CreateLoad(kind == Kind::Float ? double_ : i64_, address);
  if (kind == Kind::Bool) value = builder_.CreateICmpNE(value, integer(0));
  write(r, kind, value);
}

void Translator::spill(uint32_t r) {
  const Fact& fact = factOf(r);
  if (fact.kind == Kind::Nothing) return;
  llvm::Value* value = read(r);
  if (fact.kind == Kind::Bool) value = builder_.CreateZExt(value, i64_);
  builder_.CreateStore(value, fieldOf(r, layout_.payload));
  builder_.CreateStore(builder_.getInt32(tagOfKind(fact.kind)), fieldOf(r, layout_.tag));
}

void Translator::spillOperands(const Instruction& instruction) {
  forEachRegister(
      code_, instruction,
      [&](uint32_t r) {
        if (analysis_.isScalar(r)) spill(r);
      },
      [](uint32_t, uint16_t) {});
}

void Translator::spillList(uint32_t offset) {
  const uint32_t* list = code_.operands().data() + offset;
  for (uint32_t i = 1; i <= list[0]; ++i) {
    bool constant = operandKind(list[i]) == OperandKind::Constant;
    if (!constant && analysis_.isScalar(operandIndex(list[i]))) spill(operandIndex(list[i]));
  }
}

void Translator::reload(uint32_t r, const Fact& fact) {
  if (fact.kind == Kind::Nothing) return;
  if (fact.isConstant()) return write(r, fact.kind, constant(fact));
  writePayload(r, fact.kind, fieldOf(r, layout_.payload));
}

llvm::BasicBlock* Translator::newBlock(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

llvm::BasicBlock* Translator::exitAt(uint32_t pc) {
  auto [it, inserted] = exits_.try_emplace(pc);
  if (!inserted) return it->second;
  it->second = newBlock("exit");
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(it->second);
  const CodeAnalysis::BitSet& live = live_[pc - block_begin_];
  for (uint32_t s = 0; s < analysis_.numScalars(); ++s) {
    if (live[s / 64] >> (s % 64) & 1) spill(analysis_.registerOf(s));
  }
  storeFuel();
  builder_.CreateRet(builder_.getInt32(pc));
  return it->second;
}

llvm::BasicBlock* Translator::raiseAt(uint32_t pc) {
  auto [it, inserted] = raises_.try_emplace(pc);
  if (!inserted) return it->second;
  it->second = newBlock("raise");
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(it->second);
  // Nobody reads scalar registers of a frame that an error leaves; the callee keeps the fuel.
  builder_.CreateRet(builder_.getInt32(pc | kNativeRaised));
  return it->second;
}

void Translator::expect(llvm::Value* condition, llvm::BasicBlock* otherwise) {
  llvm::BasicBlock* behind = newBlock("");
  constexpr uint32_t kOften = 1 << 20;
  builder_.CreateCondBr(condition, behind, otherwise,
                        llvm::MDBuilder(module_.getContext()).createBranchWeights(kOften, 1));
  builder_.SetInsertPoint(behind);
}

llvm::BasicBlock* Translator::jumpTo(uint32_t target) {
  llvm::BasicBlock* block = blocks_[analysis_.blockOf(target)];
  if (target > pc_) return block;
  llvm::BasicBlock* step = newBlock("step");
  llvm::BasicBlock* empty = newBlock("empty");
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(step);
  llvm::Value* left = builder_.CreateSub(builder_.CreateLoad(i64_, fuel_), integer(1));
  builder_.CreateStore(left, fuel_);
  expect(builder_.CreateICmpSGE(left, integer(0)), empty);
  builder_.CreateBr(block);
  builder_.SetInsertPoint(empty);
  storeFuel();
  llvm::Value* more = builder_.CreateCall(refuel_, {context_});
  loadFuel();
  expect(more, raiseAt(pc_));
  builder_.CreateBr(block);
  return step;
}

void Translator::branch(llvm::Value* condition, uint32_t target) {
  llvm::BasicBlock* jump = jumpTo(target);
  builder_.CreateCondBr(condition, jump, blocks_[analysis_.blockOf(pc_ + 1)]);
}

void Translator::emitEntries() {
  auto* none = newBlock("no_entry");
  builder_.SetInsertPoint(none);
  builder_.CreateUnreachable();
  builder_.SetInsertPoint(start_);
  fuel_ = builder_.CreateAlloca(i64_);
  loadFuel();
  const auto& entries = analysis_.entries();
  auto* dispatch = builder_.CreateSwitch(entry_, none, static_cast<unsigned>(entries.size()));
  for (uint32_t i = 0; i < entries.size(); ++i) {
    uint32_t number = analysis_.blockOf(entries[i]);
    const CodeAnalysis::Block& block = analysis_.blocks()[number];
    if (!block.reachable) continue;
    auto* loads = newBlock("entry");
    dispatch->addCase(builder_.getInt32(i), loads);
    builder_.SetInsertPoint(loads);
    for (uint32_t s = 0; s < analysis_.numScalars(); ++s) {
      bool live = block.live_in[s / 64] >> (s % 64) & 1;
      if (live) reload(analysis_.registerOf(s), block.facts[s]);
    }
    builder_.CreateBr(blocks_[number]);
  }
}

void Translator::emitBlock(uint32_t number) {
  const CodeAnalysis::Block& block = analysis_.blocks()[number];
  builder_.SetInsertPoint(blocks_[number]);
  facts_ = block.facts;
  live_ = analysis_.liveWithin(number);
  block_begin_ = block.begin;
  const auto& instructions = code_.instructions();
  for (pc_ = block.begin; pc_ < block.end; ++pc_) {
    emit(instructions[pc_]);
    analysis_.transfer(instructions[pc_], facts_);
  }
  if (!builder_.GetInsertBlock()->getTerminator()) {
    builder_.CreateBr(blocks_[analysis_.blockOf(block.end)]);
  }
}

void Translator::emit(const Instruction& instruction) {
  switch (treatmentOf(instruction.op)) {
    case Treatment::Inline:
      return emitInline(instruction);
    case Treatment::Execute:
      if (!emitElements(instruction) && !emitListWrite(instruction)) emitExecute(instruction);
      return;
    case Treatment::Interpret:
      builder_.CreateBr(exitAt(pc_));
      return;
  }
}

void Translator::emitInline(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  switch (op) {
    case OpCode::MOVE:
    case OpCode::COPY:
    case OpCode::LOADK:
    case OpCode::DROP:
      return emitMove(instruction);
    case OpCode::SMOVE: {
      Kind kind = factOf(b).kind;
      if (kind != Kind::Nothing) write(a, kind, read(b));
      return;
    }
    case OpCode::SLOADK: {
      Fact fact = Fact::ofConstant(code_.constants()[b]);
      return write(a, fact.kind, constant(fact));
    }
    case OpCode::UNBOX: {
      Kind kind = Fact::ofTag(extra & kTagMask).kind;
      auto* expected = builder_.getInt32(tagOfKind(kind));
      expect(builder_.CreateICmpEQ(tagOf(b), expected), exitAt(pc_));
      writePayload(a, kind, fieldOf(b, layout_.payload));
      if (extra & kLastUse) {
        builder_.CreateStore(builder_.getInt32(0), fieldOf(b, layout_.tag));
      }
      return;
    }
    case OpCode::BAIL_OUT: {
      spillList(a);
      llvm::Value* holds =
          builder_.CreateCall(guards_hold_, {context_, registers_, builder_.getInt32(pc_)});
      return expect(holds, exitAt(pc_));
    }
    default:
      if (!emitJump(instruction)) emitScalar(instruction);
  }
}

void Translator::run() {
  start_ = newBlock("start");
  for (size_t b = 0; b < analysis_.blocks().size(); ++b) blocks_.push_back(newBlock("block"));
  emitEntries();
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (analysis_.blocks()[b].reachable) {
      emitBlock(b);
    } else {
      builder_.SetInsertPoint(blocks_[b]);
      builder_.CreateUnreachable();
    }
  }
}

// Values that count no references are copied as bytes; for others the instruction is executed.
void Translator::emitMove(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  // A number becomes an object by being copied.
  if (op == OpCode::COPY && analysis_.isScalar(b)) spill(b);
  llvm::Value* plain = builder_.CreateICmpULT(tagOf(a), builder_.getInt32(kFirstCounted));
  llvm::Value* from = nullptr;
  if (op == OpCode::COPY || op == OpCode::MOVE) from = fieldOf(b, 0);
  if (op == OpCode::COPY) {
    llvm::Value* also = builder_.CreateICmpULT(tagOf(b), builder_.getInt32(kFirstCounted));
    plain = builder_.CreateAnd(plain, also);
  }
  if (op == OpCode::LOADK && !code_.constants()[b].isNone()) plain = builder_.getFalse();
  llvm::BasicBlock* copy = newBlock("copy");
  llvm::BasicBlock* execute = newBlock("execute");
  llvm::BasicBlock* behind = newBlock("");
  builder_.CreateCondBr(plain, copy, execute);
  builder_.SetInsertPoint(copy);
  if (from) {
    llvm::Type* bits = builder_.getIntNTy(8 * sizeof(IValue));
    llvm::Value* value = builder_.CreateAlignedLoad(bits, from, llvm::Align(8));
    builder_.CreateAlignedStore(value, fieldOf(a, 0), llvm::Align(8));
  }
  if (op != OpCode::COPY) {
    builder_.CreateStore(builder_.getInt32(0), fieldOf(op == OpCode::MOVE ? b : a, layout_.tag));
  }
  builder_.CreateBr(behind);
  builder_.SetInsertPoint(execute);
  // None of them raises.
  builder_.CreateCall(execute_, {context_, registers_, builder_.getInt32(pc_)});
  builder_.CreateBr(behind);
  builder_.SetInsertPoint(behind);
}

void Translator::emitExecute(const Instruction& instruction) {
  spillOperands(instruction);
  bool steps = instruction.op == OpCode::OP || instruction.op == OpCode::OP_MULTI ||
               instruction.op == OpCode::FUSION || instruction.op == OpCode::PRINT;
  if (steps) storeFuel();
  llvm::Value* done = builder_.CreateCall(instruction.op == OpCode::OP ? call_operator_ : execute_,
                                          {context_, registers_, builder_.getInt32(pc_)});
  expect(done, raiseAt(pc_));
  if (steps) loadFuel();
  forEachRegister(
      code_, instruction, [](uint32_t) {},
      [&](uint32_t r, uint16_t extra) {
        if (analysis_.isScalar(r)) reload(r, Fact::ofTag(extra));
      });
}

}  // namespace wick::native
