// Frames of the program while they are evaluated symbolically.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "capture/bytecode/instruction.h"
#include "capture/values/variable.h"

namespace wick::capture {

class Capture;
class DictVariable;
class FunctionVariable;

// Returns the decoded code; decoded once for each code object. Throws GraphBreak for code that makes
// no sense.
std::shared_ptr<const DecodedCode> decodedCode(PyCodeObject* code);

class EvalFrame {
 public:
  enum class Status : uint8_t { kRunning, kReturned, kYielded };

  EvalFrame(Capture& capture, FunctionVariable* function, EvalFrame* caller);

  // Evaluates until the frame returns or yields. Throws Raised, GraphBreak.
  void run();
  // Evaluates one instruction, with the handlers of the frame for exceptions.
  void step();

  // Sets the locals that are parameters.
  void bind(const Arguments& given);

  // ---- for instructions ----

  Variable* pop();
  void push(Variable* value) { stack.push_back(value); }
  // Returns the entry `depth` below the top, 1 for the top.
  Variable*& peek(int depth);
  std::vector<Variable*> popMany(size_t count);
  const Instruction& instruction() const { return code->instructions[static_cast<size_t>(at)]; }
  PyObject* name(uint32_t index) const { return code->names[index].get(); }
  PyObject* constant(uint32_t index) const { return code->constants[index].get(); }
  void jump() { next = instruction().target; }
  // The class that a method without arguments to super() belongs to, and its first argument.
  PyTypeObject* classOfMethod(Capture& capture);
  Variable* firstArgument(Capture& capture);

  Capture& capture;
  const std::shared_ptr<const DecodedCode> code;
  FunctionVariable* const function;
  EvalFrame* const caller;
  DictVariable* globals = nullptr;
  DictVariable* builtins = nullptr;
  std::vector<Variable*> slots;  // null: not bound
  std::vector<Variable*> stack;
  int at = 0;    // the instruction that runs
  int next = 0;  // the one that runs next
  // Questions about numbers that elements decide, by the instruction that asked.
  struct Asked {
    int count = 0;
    int64_t first_step = 0;  // of the root frame
  };
  std::map<int, Asked> asked;
  Object keyword_names;
  Status status = Status::kRunning;
  Variable* value = nullptr;  // returned or yielded
  // An exception that is raised where the frame goes on.
  Variable* raise_first = nullptr;

 private:
  // Goes on in the handler of the instruction. False if it has none.
  bool handle(Variable* exception);
};

// Evaluates the instruction of the frame.
void execute(EvalFrame& frame);

}  // namespace wick::capture
