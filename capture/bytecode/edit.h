// Changes of decoded code: inserting and erasing instructions, writing new ones with labels, adding
// constants, names and variables.
#pragma once

#include <utility>
#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// Writes a sequence of instructions whose jumps lead to labels.
//
//   Sequence sequence;
//   const auto done = sequence.label();
//   sequence.emit(Op::LOAD_FAST, 0);
//   sequence.jump(Op::POP_JUMP_FORWARD_IF_NONE, done);
//   ...
//   sequence.bind(done);
//
class Sequence {
 public:
  struct Label {
    int number;
  };

  // Instructions that follow get this location.
  void setLocation(const Location& location) { location_ = location; }
  void emit(Op op, uint32_t arg = 0);
  Label label();
  // Puts the label before the next instruction; at the end of the sequence, before that which will
  // stand behind it.
  void bind(Label label);
  void jump(Op op, Label label);
  // Jumps to an instruction of the code that the sequence is inserted into, by its old index, as
  // the jumps of that code do: to instructions that are inserted before it, if these take jumps.
  void jumpToOld(Op op, int old_index);
  int size() const { return static_cast<int>(instructions_.size()); }
  // Returns how many instructions of the sequence stand before the label, -1 before bind().
  int position(Label label) const { return positions_.at(label.number); }

  // Returns the instructions as a whole code: no jump may lead to the old code, no label may stand
  // at the end. Jumps get the direction in which they lead. Throws BytecodeError for a label that
  // was never bound.
  std::vector<Instruction> finish() const;

 private:
  friend class Editor;
  std::vector<Instruction> instructions_;  // a jump to a label has the target -2 - label
  std::vector<int> positions_;             // of labels, -1 before bind()
  Location location_;
};

// Collects changes of a code, all in the old indices, and makes them at once. Nothing may be
// inserted between PRECALL and CALL, or within SEND, YIELD_VALUE and RESUME: the interpreter counts
// on these neighbours, and assemble() refuses other code.
class Editor {
 public:
  // How jumps and handlers that led to the old instruction lead on.
  enum class Jumps {
    kToInserted,  // to the inserted instructions
    kPast,        // past them, to the old instruction
  };
  // The handler of errors in inserted instructions.
  enum class Handler {
    kOfNext,      // that of the old instruction that they stand before
    kOfPrevious,  // that of the old instruction that they stand behind
    kNone,        // an error leaves the function; a range around them is cut in two
  };

  explicit Editor(DecodedCode& code);

  // Inserts before the instruction `index`, or at the end if it is the number of instructions.
  // Sequences that are inserted at the same index stand in the order of the calls. Returns the
  // number of the insertion: they count from zero.
  int insert(int index, Sequence sequence, Jumps jumps = Jumps::kToInserted,
             Handler handler = Handler::kOfNext);
  // Erases the instructions from `first` to before `last`. Jumps that led to one lead to the next
  // instruction that is left.
  void erase(int first, int last);

  // The new indices of everything.
  struct Moves {
    std::vector<int> of_old;        // each old instruction or, if it was erased, the next; the end
    std::vector<int> of_insertion;  // the first instruction of each insertion
  };

  // Makes the changes. Jumps get the direction in which they lead. Throws BytecodeError, and
  // changes nothing, for labels that were never bound and for jumps that have no such direction.
  Moves finish();

 private:
  struct Insertion {
    int number;
    int index;
    Sequence sequence;
    Jumps jumps;
    Handler handler;
  };
  struct Rebuilt;

  void checkIndex(int index) const;
  void append(Rebuilt& rebuilt, const Insertion& insertion) const;
  int rangeFor(const Insertion& insertion) const;
  void resolve(Rebuilt& rebuilt) const;

  DecodedCode& code_;
  std::vector<int> range_of_;
  std::vector<bool> erased_;
  std::vector<Insertion> insertions_;
};

// Gives each jump the opcode of the direction in which it leads. Throws BytecodeError for one that
// exists in one direction only (FOR_ITER, SEND, JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP).
void orientJumps(DecodedCode& code);

// Returns the index of a constant that is this very object; adds it if there is none.
uint32_t addConstant(DecodedCode& code, PyObject* constant);
// Returns the index of a name in `names`; adds it if it is not there.
uint32_t addName(DecodedCode& code, PyObject* name);
// Adds a variable behind the others of its kind, and returns its slot. Arguments of instructions
// that name later slots follow. A new cell or free variable is set up by the prefix (prefix.h).
// `kind` is kLocalSlot, kCellSlot or kFreeSlot.
uint32_t addSlot(DecodedCode& code, PyObject* name, SlotKind kind);
// Returns the slot of the variable with this name that has one of the kinds (bits), or -1.
int findSlot(const DecodedCode& code, PyObject* name, int kinds);

}  // namespace wick::capture
