// The interpreter's side of machine code.
#include "runtime/interpreter/native_code.h"

#include "runtime/interpreter/frame_operations.h"
#include "runtime/interpreter/interpreter_state.h"

namespace wick {
namespace {

std::atomic<NativeCompiler*> compiler{nullptr};
// Steps that machine code may take in one go when the run has no limits.
constexpr int64_t kUnlimitedSlice = 1 << 20;

}  // namespace

NativeCompiler* nativeCompiler() {
  return compiler.load(std::memory_order_acquire);
}
void setNativeCompiler(NativeCompiler* c) {
  compiler.store(c, std::memory_order_release);
}

uint32_t InterpreterState::runNative(const NativeCode& native, uint32_t entry, IValue* registers) {
  native_.fuel += std::exchange(reserve_, 0);
  uint32_t left_at = native.function(registers, &native_, entry);
  reserve_ = std::exchange(native_.fuel, 0);
  // Without limits only the number of steps between two looks for an entry matters.
  if (!context_->limited) reserve_ = std::min<int64_t>(reserve_, 1);
  return left_at;
}

bool nativeRefuel(NativeContext* context) {
  InterpreterState& state = *context->state;
  try {
    state.refuel();
    if (!state.context_->limited && !state.attended_) context->fuel = kUnlimitedSlice;
    return true;
  } catch (...) {
    state.native_error_ = std::current_exception();
    context->fuel = 0;
    return false;
  }
}

bool nativeCallOperator(NativeContext* context, IValue* registers, uint32_t instruction) {
  InterpreterState& state = *context->state;
  const Code& code = *state.frames_.back().code;
  try {
    state.call(code, code.instructions()[instruction], registers);
    return true;
  } catch (...) {
    state.native_error_ = std::current_exception();
    return false;
  }
}

bool nativeGuardsHold(NativeContext* context, IValue* registers, uint32_t instruction) {
  const Code& code = *context->state->frames_.back().code;
  return guardsHold(code, code.instructions()[instruction], registers);
}

bool nativeExecute(NativeContext* context, IValue* r, uint32_t number) {
  InterpreterState& state = *context->state;
  const Code& code = *state.frames_.back().code;
  const Instruction& instruction = code.instructions()[number];
  const auto& [op, extra, a, b, c] = instruction;
  try {
    switch (op) {
      case OpCode::MOVE:
        r[a] = std::move(r[b]);
        break;
      case OpCode::COPY:
        r[a] = r[b];
        break;
      case OpCode::LOADK:
        r[a] = code.constants()[b];
        break;
      case OpCode::DROP:
        r[a] = IValue();
        break;
      case OpCode::OP_MULTI:
      case OpCode::FUSION:
        state.call(code, instruction, r);
        break;
      case OpCode::PRINT:
        state.step();
        printValues(state.gatherVector(code, code.operands().data() + a, r));
        break;
      default:
        state.executeData(code, instruction, r);
    }
    return true;
  } catch (...) {
    state.native_error_ = std::current_exception();
    return false;
  }
}

}  // namespace wick
