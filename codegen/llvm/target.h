// The machine that code is made for, and LLVM's way from a module to an object file.
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/jit.h"

namespace wick::codegen {

// LLVM is initialized when this is called first, which must be before anything else of it is used.
//
// The host: its triple, the name of its CPU, all features that it reports and vectorBitsLimit()
// leaves, and that limit, in one text.
const std::string& hostDescription();
// Bits of the widest vector registers that are worth using and allowed: 128, 256 or 512.
unsigned hostVectorBits();

// Gives an empty module the host's triple and data layout.
void prepareForHost(llvm::Module& module);
// Checks the module, gives its functions the host's features, and runs LLVM's passes without any
// option that lets a float result change. CodegenError for a malformed module.
void optimizeForHost(llvm::Module& module, Optimization optimization);
// The object file of a module; it changes the module.
std::string emitObject(llvm::Module& module);
std::string emitAssembly(llvm::Module& module);

struct CodeSymbol {
  std::string name;
  uint64_t size;  // bytes
};
// The functions that an object file defines.
std::vector<CodeSymbol> functionsOf(std::string_view object);

}  // namespace wick::codegen
