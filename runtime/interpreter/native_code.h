// What the interpreter knows of machine code: where it can be entered and left, and whom to ask for
// it. Nothing here depends on the code generator, which registers itself when it is linked
// (runtime/native).
//
// A native function works on the registers of the interpreter's innermost frame. It keeps scalar
// registers in the processor's and writes those that are alive back, with their tags, when it
// leaves; object registers stay in the frame. It never pushes a frame: calls, returns, errors and
// waits are left to the interpreter, at the instruction in question.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/ivalue.h"

namespace wick {

class Code;
class InterpreterState;

// What machine code shares with the interpreter.
struct NativeContext {
  int64_t fuel = 0;  // steps that are left until the next look at the limits
  InterpreterState* state = nullptr;
};

// Goes on at an entry and returns the instruction where the interpreter goes on; with
// kNativeRaised in it, that instruction raised the error that the state holds.
using NativeFunction = uint32_t(IValue* registers, NativeContext* context, uint32_t entry);
inline constexpr uint32_t kNativeRaised = 0x80000000;
inline constexpr uint32_t kNoEntry = 0xffffffff;

// The machine code of one Code. Immutable.
struct NativeCode {
  NativeFunction* function = nullptr;
  std::vector<uint32_t> entries;       // instruction -> number of the entry there, or kNoEntry
  std::shared_ptr<const void> memory;  // holds the function
};

// Called by machine code. None of them throws.
// Takes new fuel. False when a limit is reached: the interpreter is to raise it.
bool nativeRefuel(NativeContext* context);
// Runs one instruction that neither jumps nor switches frames. False when it raised.
bool nativeExecute(NativeContext* context, IValue* registers, uint32_t number);
// The same for OP.
bool nativeCallOperator(NativeContext* context, IValue* registers, uint32_t instruction);
// Whether the guard at BAIL_OUT holds; otherwise the interpreter is to bail out there.
bool nativeGuardsHold(NativeContext* context, IValue* registers, uint32_t instruction);

// Makes machine code. Thread-safe.
class NativeCompiler {
 public:
  virtual ~NativeCompiler() = default;
  // Code whose heat has reached `heatThreshold()`: calls setNative() now, later or never.
  virtual void request(const Code& code) = 0;
  // Heat is the number of calls plus the steps of loops, roughly.
  virtual uint64_t heatThreshold() const = 0;
};
// Null when none is linked. Set once, before anything runs; must live forever.
NativeCompiler* nativeCompiler();
void setNativeCompiler(NativeCompiler* compiler);

}  // namespace wick
