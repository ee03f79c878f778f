// InterpreterState: one execution of a Code, with its frames and registers. It can be suspended at
// a wait and resumed on another thread.
#pragma once

#include <span>

#include "runtime/interpreter/interpreter.h"
#include "runtime/interpreter/register_stack.h"
#include "runtime/interpreter/run_context.h"

namespace wick {

class InterpreterState : public std::enable_shared_from_this<InterpreterState> {
 public:
  // Moves out of the arguments unless it throws. `lent`: the first one is borrowed
  // (runCodeWithLentModule).
  InterpreterState(const Code& code, std::span<IValue> arguments,
                   std::shared_ptr<RunContext> context, size_t depth, bool lent = false);
  ~InterpreterState();

  // Runs to the end; a wait for an unfinished future runs tasks of the pool meanwhile.
  IValue runToEnd();
  // Runs on the pool; the result or error goes to the future. The state must be held by a
  // shared_ptr.
  FutureRef launch(TypePtr result_type);

  // For the RunContext, of a state that was launched.
  const std::shared_ptr<RunContext>& context() const { return context_; }
  void submitRest();  // to the pool; a run that it discards fails
  // Ends a state that waits for what never comes.
  void failForever();

 private:
  struct Frame {
    const Code* code;
    size_t base;           // first register
    uint32_t pc;           // where to go on; behind the instruction that calls or failed
    uint32_t destination;  // register of the caller for the result
    uint16_t extra;        // as in Instruction
  };
  struct Entered {
    size_t depth;  // number of frames
    IValue object;
  };
  enum class Status { Finished, Suspended };

  // Until the end, or a wait of an asynchronous state.
  Status execute();
  void continueOnPool();
  void step() {
    if (--native_.fuel < 0) refuel();
  }
  void refuel();
  // The entry of machine code at an instruction, or kNoEntry. `heat` is what the Code gains by
  // coming by.
  uint32_t nativeEntry(const Code& code, uint32_t pc, uint64_t heat) {
    if (!compiler_) return kNoEntry;
    const NativeCode* native = code.native();
    if (!native && heat != 0) {
      code.addHeat(heat, *compiler_);
      native = code.native();
    }
    return native ? native->entries[pc] : kNoEntry;
  }
  // Returns what the function returns.
  uint32_t runNative(const NativeCode& native, uint32_t entry, IValue* registers);
  friend bool nativeRefuel(NativeContext* context);
  friend bool nativeExecute(NativeContext* context, IValue* registers, uint32_t number);
  friend bool nativeGuardsHold(NativeContext* context, IValue* registers, uint32_t instruction);
  friend bool nativeCallOperator(NativeContext* context, IValue* registers, uint32_t instruction);
  void pushFrame(const Code& code, uint32_t destination, uint16_t extra);
  void initializeRegisters(const Frame& frame);
  void destroyRegisters(const Frame& frame);
  const ClassTypePtr& typeOfNew(const ClassType& type);
  void reserve(size_t registers);
  // Adds the script's frames to the error in flight, leaves entered objects, releases registers.
  [[noreturn]] void unwindAndRethrow();
  void unwind(RuntimeError* error);

  // Slower instructions. They may move the register stack.
  void callFunction(GraphExecutor& executor, const uint32_t* operands, uint32_t destination,
                    uint16_t extra);
  void callMethod(const IValue& object, const char* name, size_t num_nones, uint32_t destination,
                  uint16_t extra);
  GraphExecutor& findMethod(const Code& code, const Instruction& instruction);
  bool returnFromFrame(const uint32_t* operands);
  // Lets the frame go on in another Code.
  void bailOut(const Code& code, const Instruction& instruction);
  void fork(const Code& code, const Instruction& instruction, const Node* node);
  // Runs what is forked at once, on this thread, where a device wants that; null elsewhere.
  FutureRef forkOnThread(const Code& code, ForkSite& site, const Code& body,
                         std::vector<IValue>& arguments, size_t depth);
  bool waitForFuture(const Instruction& instruction, IValue* registers);
  // OP, OP_MULTI and FUSION.
  void call(const Code& code, const Instruction& instruction, IValue* registers);
  // For a run that has limits, forks or is watched, or where somebody asks where calls come from.
  void callAttended(const Code& code, const Instruction& instruction, IValue* registers);
  template <class Prepare>
  void callObserved(const Code& code, const Instruction& instruction, IValue* registers,
                    Prepare&& prepare);
  void executeData(const Code& code, const Instruction& instruction, IValue* registers);
  void enter(const Instruction& instruction);
  void exit(const Instruction& instruction);
  IValue objectOf(const Instruction& instruction);  // of ENTER and EXIT
  std::vector<IValue> gatherVector(const Code& code, const uint32_t* operands, IValue* registers);

  RegisterStack stack_;
  std::vector<Frame> frames_;
  std::vector<Entered> entered_;
  std::shared_ptr<RunContext> context_;
  OperatorObserver* observer_;
  bool attended_;             // calls of operators go by callAttended()
  NativeCompiler* compiler_;  // null: this run stays in the interpreter
  NativeContext native_;
  // Steps that machine code did not use. The interpreter takes them one by one, so that its next
  // jump backwards looks for an entry.
  int64_t reserve_ = 0;
  std::exception_ptr native_error_;
  size_t depth_;  // calls around this state
  bool lent_;     // the first register of the first frame holds no reference
  bool asynchronous_ = false;
  ThreadContext thread_context_;  // of an asynchronous state that does not run
  // Of the objects made here: counted here too, not where all runs count.
  std::vector<ClassTypePtr> types_of_new_;
  FutureRef result_future_;
  FutureRef waits_for_;
  IValue result_;
};

}  // namespace wick
