// Machine code for scalar code: when a Code runs often it is translated (translator.h) and compiled
// (codegen/llvm/jit.h). Linking this library is enough: the interpreter finds it and enters what it
// makes, under the switches of runtime/jit_mode.h.
//
// By itself a Code is compiled after some ten thousand steps of its loops or calls, when its loops
// consist mostly of instructions on numbers. What fails to compile stays in the interpreter.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/interpreter/code.h"

namespace wick::native {

struct NativeStatistics {
  uint64_t compiled = 0;  // Codes that have machine code
  uint64_t declined = 0;  // Codes that would gain nothing
  uint64_t failed = 0;    // Codes that were too large or that the code generator refused
};
NativeStatistics nativeStatistics();

// Waits until all Codes that were requested in the background have their machine code or never
// will.
void finishBackgroundCompilation();

// What a Code would become: the LLVM module before optimization, and assembly. RuntimeError or
// CodegenError when it cannot be translated.
std::string llvmText(const Code& code);
std::string assemblyText(const Code& code);

}  // namespace wick::native
