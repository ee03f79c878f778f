// Nodes of an Expression as instructions on vectors.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codegen/scalar/expression.h"

namespace wick::codegen {

// Values are vectors of `lanes` elements: booleans are i1, bfloat16 its bits, all others what LLVM
// calls them.
class ScalarEmitter {
 public:
  ScalarEmitter(llvm::IRBuilder<>& builder, llvm::Function& function, unsigned lanes)
      : b_(builder), function_(function), lanes_(lanes) {}

  llvm::Type* elementType(DType type) const;
  llvm::Type* vectorType(DType type) const {
    return llvm::FixedVectorType::get(elementType(type), lanes_);
  }
  // What an element is in memory: an integer or a float, which fromMemory() and toMemory() turn
  // into a value.
  llvm::Type* memoryType(DType type) const;
  llvm::Value* fromMemory(llvm::Value* vector, DType type);
  llvm::Value* toMemory(llvm::Value* vector, DType type);

  llvm::Value* constant(const ScalarNode& node);
  // Any node but an Input; `types` are the operands' dtypes.
  llvm::Value* emit(const ScalarNode& node, std::span<llvm::Value* const> operands,
                    std::span<const DType> types);
  llvm::Value* convert(llvm::Value* v, DType from, DType to);

 private:
  llvm::Value* unaryFloat(llvm::Intrinsic::ID id, llvm::Value* v);
  llvm::Value* divide(const ScalarNode& node, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(const ScalarNode& node, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(ScalarOp op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* call(const ScalarNode& node, std::span<llvm::Value* const> operands);
  llvm::Value* callLanes(const ScalarNode& node, std::span<llvm::Value* const> operands,
                         llvm::Value* computed, llvm::Value* wanted);
  std::vector<llvm::Value*> emitAll(const Expression& expression,
                                    std::span<llvm::Value* const> inputs);
  llvm::Value* scale(llvm::Value* v, llvm::Value* n, DType type);
  llvm::Value* inRegisters(llvm::Value* a, llvm::Value* b,
                           const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& emit);
  llvm::Value* lookup(const ScalarNode& node, llvm::Value* index);
  llvm::Value* truncate(llvm::Value* v, unsigned bits);
  llvm::Value* toBFloat16(llvm::Value* v);
  llvm::Value* integers(llvm::Type* like, int64_t value) const {
    return llvm::ConstantInt::getSigned(like, value);
  }

  llvm::IRBuilder<>& b_;
  llvm::Function& function_;
  unsigned lanes_;
};

// The symbol under which compiled code calls functionAddress(f, type).
std::string functionSymbol(ScalarFunction f, DType type);

}  // namespace wick::codegen
