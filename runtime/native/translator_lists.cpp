// The part of the translator that reads and writes elements of lists and tuples in place.
#include "runtime/native/translator.h"

namespace wick::native {
namespace {

static_assert(sizeof(IValue) == 16);
constexpr int64_t kElementShift = 4;

// A call that writes one element of a list.
enum class ListWrite { None, Append, Set };

ListWrite listWriteOf(const Code& code, const Instruction& instruction) {
  if (instruction.op != OpCode::OP || instruction.c != kNoIndex) return ListWrite::None;
  const FunctionSchema& schema = code.operatorSites()[instruction.a].op->schema();
  if (schema.overload() != "t") return ListWrite::None;
  if (schema.name() == "aten::append") return ListWrite::Append;
  if (schema.name() == "aten::_set_item") return ListWrite::Set;
  return ListWrite::None;
}

}  // namespace

llvm::Value* Translator::emitElement(llvm::Value* begin, llvm::Value* end, llvm::Value* index,
                                     bool natural, llvm::BasicBlock* otherwise) {
  llvm::Value* bytes =
      builder_.CreateSub(builder_.CreatePtrToInt(end, i64_), builder_.CreatePtrToInt(begin, i64_));
  llvm::Value* size = builder_.CreateLShr(bytes, integer(kElementShift));
  if (!natural) {
    llvm::Value* negative = builder_.CreateICmpSLT(index, integer(0));
    index = builder_.CreateSelect(negative, builder_.CreateAdd(index, size), index);
  }
  expect(builder_.CreateICmpULT(index, size), otherwise);
  return address(begin, builder_.CreateShl(index, integer(kElementShift)));
}

// Length of a list, and scalar elements of lists and tuples.
bool Translator::emitElements(const Instruction& instruction) {
  const auto& [op, extra, a, b, c] = instruction;
  bool tuple = op == OpCode::TUPLE_INDEX;
  if (op != OpCode::LIST_LEN && op != OpCode::LIST_GET && !tuple) return false;
  if ((extra & kLastUse) != 0 || !analysis_.isScalar(a)) return false;
  auto tag = static_cast<uint32_t>(tuple ? IValue::Tag::Tuple : IValue::Tag::List);
  llvm::Type* pointer = builder_.getPtrTy();
  expect(builder_.CreateICmpEQ(tagOf(b), builder_.getInt32(tag)), exitAt(pc_));
  llvm::Value* object = builder_.CreateLoad(pointer, fieldOf(b, layout_.payload));
  auto field = [&](uint32_t in_list, uint32_t in_tuple) {
    return builder_.CreateLoad(pointer, address(object, tuple ? in_tuple : in_list));
  };
  llvm::Value* begin = field(layout_.list_begin, layout_.tuple_begin);
  llvm::Value* end = field(layout_.list_end, layout_.tuple_end);
  if (op == OpCode::LIST_LEN) {
    llvm::Value* bytes = builder_.CreateSub(builder_.CreatePtrToInt(end, i64_),
                                            builder_.CreatePtrToInt(begin, i64_));
    write(a, Kind::Int, builder_.CreateLShr(bytes, integer(kElementShift)));
    return true;
  }
  llvm::Value* element = emitElement(begin, end, readInt(c), factOf(c).isNatural(), exitAt(pc_));
  Kind kind = Fact::ofTag(extra & kTagMask).kind;
  llvm::Value* found = builder_.CreateLoad(builder_.getInt32Ty(), address(element, layout_.tag));
  expect(builder_.CreateICmpEQ(found, builder_.getInt32(tagOfKind(kind))), exitAt(pc_));
  writePayload(a, kind, address(element, layout_.payload));
  return true;
}

// Takes one step; goes to `otherwise` without having taken it when there is none left.
void Translator::emitStep(llvm::BasicBlock* otherwise) {
  llvm::Value* fuel = builder_.CreateLoad(i64_, fuel_);
  expect(builder_.CreateICmpSGT(fuel, integer(0)), otherwise);
  builder_.CreateStore(builder_.CreateSub(fuel, integer(1)), fuel_);
}

void Translator::storeOperand(uint32_t operand, llvm::Value* element) {
  uint32_t index = operandIndex(operand);
  bool constant = operandKind(operand) == OperandKind::Constant;
  const Fact fact = constant ? Fact::ofConstant(code_.constants()[index]) : factOf(index);
  llvm::Value* value = constant ? this->constant(fact) : read(index);
  if (fact.kind == Kind::Bool) value = builder_.CreateZExt(value, i64_);
  builder_.CreateStore(value, address(element, layout_.payload));
  builder_.CreateStore(builder_.getInt32(tagOfKind(fact.kind)), address(element, layout_.tag));
}

// append() and assignment of numbers, when nobody looks at the result. Whatever is unusual is left
// to the operator.
bool Translator::emitListWrite(const Instruction& instruction) {
  ListWrite kind = listWriteOf(code_, instruction);
  const uint32_t* operands = code_.operands().data() + instruction.b;
  if (kind == ListWrite::None || operands[0] != (kind == ListWrite::Set ? 3 : 2)) return false;
  auto isNumber = [&](uint32_t operand) {
    uint32_t index = operandIndex(operand);
    if (operandKind(operand) != OperandKind::Constant) return analysis_.isScalar(index);
    return Fact::ofConstant(code_.constants()[index]).kind != Kind::Mixed;
  };
  uint32_t list = operandIndex(operands[1]);
  uint32_t value = operands[operands[0]];
  if (operandKind(operands[1]) != OperandKind::Copy || !isNumber(value)) return false;
  if (kind == ListWrite::Set && !isNumber(operands[2])) return false;

  llvm::Type* pointer = builder_.getPtrTy();
  llvm::BasicBlock* unusual = newBlock("unusual");
  llvm::BasicBlock* behind = newBlock("");
  auto list_tag = static_cast<uint32_t>(IValue::Tag::List);
  expect(builder_.CreateICmpEQ(tagOf(list), builder_.getInt32(list_tag)), unusual);
  llvm::Value* object = builder_.CreateLoad(pointer, fieldOf(list, layout_.payload));
  llvm::Value* end = builder_.CreateLoad(pointer, address(object, layout_.list_end));
  if (kind == ListWrite::Append) {
    llvm::Value* room = builder_.CreateLoad(pointer, address(object, layout_.list_capacity));
    expect(builder_.CreateICmpNE(end, room), unusual);
    emitStep(unusual);
    storeOperand(value, end);
    builder_.CreateStore(address(end, static_cast<uint32_t>(sizeof(IValue))),
                         address(object, layout_.list_end));
  } else {
    llvm::Value* begin = builder_.CreateLoad(pointer, address(object, layout_.list_begin));
    uint32_t number = operandIndex(operands[2]);
    bool constant = operandKind(operands[2]) == OperandKind::Constant;
    llvm::Value* index = constant ? integer(code_.constants()[number].rawInt()) : readInt(number);
    bool natural = !constant && factOf(number).isNatural();
    llvm::Value* element = emitElement(begin, end, index, natural, unusual);
    // What is overwritten counts no references either.
    llvm::Value* old = builder_.CreateLoad(builder_.getInt32Ty(), address(element, layout_.tag));
    expect(builder_.CreateICmpULT(old, builder_.getInt32(kFirstCounted)), unusual);
    emitStep(unusual);
    storeOperand(value, element);
  }
  builder_.CreateBr(behind);
  builder_.SetInsertPoint(unusual);
  emitExecute(instruction);
  builder_.CreateBr(behind);
  builder_.SetInsertPoint(behind);
  return true;
}

}  // namespace wick::native
