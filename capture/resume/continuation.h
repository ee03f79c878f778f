// Code that goes on in the middle of a function: the code of the function (the root), entered at
// one of its instructions with the state that its frame has there.
#pragma once

#include <memory>
#include <vector>

#include "capture/bytecode/instruction.h"
#include "capture/resume/stack_kinds.h"

namespace wick::capture {

// The state of a frame of the root before an instruction, as far as code depends on it.
struct Layout {
  // The kinds are those that StackKinds finds for the instruction, with two exceptions: for
  // kNullOrValue it says kNull or kValue, and kException may be passed as kValue. kOffset needs its
  // instruction.
  std::vector<StackEntry> stack;
  // For each slot of the root whether it is bound. Cells and free variables do not count.
  std::vector<bool> bound;

  bool operator==(const Layout&) const = default;
};

struct LayoutHash {
  size_t operator()(const Layout& layout) const;
};

// Returns the layout of a state. Throws BytecodeError if the state leaves something open: NULL or a
// value, bound or not, one of several offsets.
Layout layoutOf(const DecodedCode& root, const FrameState& state);

// A parameter of a continuation: an entry of the stack or a local, by its index; the other is -1.
struct Parameter {
  int stack = -1;
  int slot = -1;
};

// Returns the parameters: the stack's entries from the bottom on, then the bound locals in the
// order of their slots. NULL is not passed, and an offset is a constant of the code. kPrevious
// passes the exception that is handled while it is on the stack, not the saved one; the kException
// above it is the same exception and is not passed.
std::vector<Parameter> parametersOf(const DecodedCode& root, const Layout& layout);

// A code object that Continuations made.
struct ContinuationInfo {
  enum class Kind { kResume, kBreak };

  Object root;
  Kind kind = Kind::kResume;
  int instruction = 0;  // of the root
  Layout layout;
  // For each instruction of the code the index of that of the root; -1 for new ones. The copy of
  // the instructions that a break runs stands for them, too.
  std::vector<int> instructions;
  // For each slot of the root the slot of the code that holds it.
  std::vector<int> slots;
};

// The continuations of one root code object. The caller holds the GIL in all calls.
//
// The code of a continuation has the name, the qualified name, the file and the lines of the root,
// and its own positional parameters (parametersOf). The caller makes a function of it with the
// root's globals and a closure: the cells of all of the root's cell variables in the order of their
// slots, arguments among them, then those of its free variables.
//
// Variables of the root keep their order and their kind, so `locals()`, errors of unbound variables
// and super() without arguments work as in the root; a cell variable is in addition a free one. The
// code begins with a prologue, which CPython takes for the setup of the frame, as it does MAKE_CELL:
// it moves the parameters to the stack and to locals, and enters handlers. RESUME follows. It fails
// (a signal has arrived) as the instruction would that is to run.
// One difference is left: in a root without positional parameters super() fails always, in its
// continuations with parameters it may not.
class Continuations {
 public:
  // Keeps the code. Throws BytecodeError for generators, coroutines, class bodies and modules, for
  // continuations, and for code that no compiler writes.
  explicit Continuations(PyCodeObject* root);
  ~Continuations();
  Continuations(const Continuations&) = delete;
  Continuations& operator=(const Continuations&) = delete;

  // Returns the code that goes on with the instruction. The same object each time. Throws
  // BytecodeError for an instruction that no path leads to, or that stands in the prefix or within
  // a group (groupStart), and for a layout that is not possible there.
  Object resumeAt(int instruction, const Layout& layout);

  // Returns the code that runs the instruction alone, the whole group if it belongs to one, and then
  // hands over to the resumeAt of the next (code_chain.h): callChain() calls it. If the instruction
  // fails within a `try` of the root, the handler and what follows it run in this code. The state is
  // handed over outside of all handlers, and moved out of the frame. A branch or a loop hands over
  // to one of two. Throws as resumeAt does. LOAD_METHOD finds bound methods, so that the state behind
  // it is known.
  Object breakAt(int instruction, const Layout& layout);

  const DecodedCode& root() const;
  // Returns the state before an instruction of the root, or nothing if no path leads there.
  std::optional<FrameState> stateBefore(int instruction) const;

  // Returns the first instruction of the group that must run as a whole: KW_NAMES, PRECALL, CALL.
  // Others are a group of their own.
  static int groupStart(const DecodedCode& code, int instruction);

  // Returns the data about a code object that was made here, or null. They live as long as the
  // code object.
  static const ContinuationInfo* find(PyCodeObject* code);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace wick::capture
