// The code is written in two steps. The first puts the entry before the root's instructions:
//
//   COPY_FREE_VARS, MAKE_CELL...           as the slots ask for
//   parameters to the stack, handlers entered, locals to their slots, cells to theirs
//   RESUME
//   resume: JUMP_FORWARD to the instruction
//   break:  a copy of the instruction; for each way behind it the state is handed over
//
// The second erases all instructions that no path leads to.
#include "capture/resume/entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/bytecode/assemble.h"
#include "capture/bytecode/edit.h"
#include "capture/bytecode/stack_depth.h"
#include "capture/resume/state_call.h"

namespace wick::capture {
namespace {

bool isCell(const Slot& slot) {
  return (slot.kind & kCellSlot) != 0;
}

class EntryWriter {
 public:
  explicit EntryWriter(const EntryPlan& plan)
      : plan_(plan),
        root_(plan.root),
        code_(plan.root),
        parameters_(parametersOf(plan.root, plan.layout)) {}

  EntryCode run() {
    setSlots();
    setHead();
    Sequence sequence;
    sequence.setLocation(entryLocation());
    appendSetup(sequence);
    appendParameters(sequence);
    appendCells(sequence);
    const int resume = sequence.size();
    sequence.emit(Op::RESUME);
    if (plan_.copied_end == plan_.instruction) {
      sequence.jumpToOld(Op::JUMP_FORWARD, plan_.instruction);
    } else {
      appendCopy(sequence);
    }
    const int covered_end = std::max(copy_end_, resume + 1);
    if (plan_.copied_end != plan_.instruction) appendExits(sequence);
    place(std::move(sequence), resume, covered_end);
    prune();
    writeOffsets();
    return {assemble(code_), std::move(root_of_), std::move(slots_)};
  }

 private:
  // The copy of an offset on the stack: a constant that is known when all is written.
  struct Offset {
    uint32_t constant;
    int root_index;
    int index = -1;
  };

  // Locals of the root; additional ones for parameters and temporaries; cells; for each cell a free
  // variable; free variables of the root.
  void setSlots() {
    size_t locals = 0, cells = 0;
    for (const Slot& slot : root_.slots) {
      locals += (slot.kind & kLocalSlot) != 0;
      cells += isCell(slot);
    }
    size_t added = parameters_.size() - std::min(parameters_.size(), locals);
    for (const Exit& exit : plan_.exits) {
      added = std::max(added, static_cast<size_t>(temporariesFor(exit.layout)));
    }
    first_added_ = static_cast<int>(locals);
    std::vector<Slot> slots;
    std::vector<Slot> free;
    for (size_t i = 0; i < root_.slots.size(); ++i) {
      const Slot& slot = root_.slots[i];
      if (slots.size() == locals) addLocals(slots, added);
      if (slot.kind & kFreeSlot) {
        slots_.push_back(static_cast<int>(locals + added + free.size()) + plainCells() +
                         static_cast<int>(cells));
        free.push_back(slot);
      } else {
        slots_.push_back(static_cast<int>(slots.size()));
        slots.push_back(slot);
      }
    }
    if (slots.size() == locals) addLocals(slots, added);
    first_alias_ = static_cast<int>(slots.size());
    for (const Slot& slot : root_.slots) {
      if (isCell(slot)) slots.push_back({slot.name, kFreeSlot});
    }
    slots.insert(slots.end(), free.begin(), free.end());
    code_.slots = std::move(slots);
    for (Instruction& at : code_.instructions) {
      if (has(at.op, kTakesLocal | kTakesCell)) at.arg = static_cast<uint32_t>(slots_[at.arg]);
    }
  }

  int plainCells() const {
    return static_cast<int>(std::count_if(root_.slots.begin(), root_.slots.end(),
                                          [](const Slot& slot) { return slot.kind == kCellSlot; }));
  }

  // Adds locals whose names the root does not use: locals() would mix them up.
  void addLocals(std::vector<Slot>& slots, size_t count) const {
    for (size_t number = 0; count > 0; ++number) {
      Object name = Object::checked(PyUnicode_FromFormat(".stack%zu", static_cast<size_t>(number)));
      if (findSlot(root_, name.get(), kLocalSlot | kCellSlot | kFreeSlot) >= 0) continue;
      slots.push_back({std::move(name), kLocalSlot});
      --count;
    }
  }

  void setHead() {
    code_.flags &= ~(CO_VARARGS | CO_VARKEYWORDS);
    code_.argument_count = code_.positional_only_count = static_cast<int>(parameters_.size());
    code_.keyword_only_count = 0;
  }

  // The location of the first instruction or, if it has none, of one before it.
  Location entryLocation() const {
    for (int at = plan_.instruction; at >= 0; --at) {
      if (root_.instructions[at].location.line >= 0) return root_.instructions[at].location;
    }
    return {root_.first_line, root_.first_line, -1, -1};
  }

  void appendSetup(Sequence& sequence) const {
    if (const int free = freeCount(code_)) {
      sequence.emit(Op::COPY_FREE_VARS, static_cast<uint32_t>(free));
    }
    for (size_t i = 0; i < code_.slots.size(); ++i) {
      if (isCell(code_.slots[i])) sequence.emit(Op::MAKE_CELL, static_cast<uint32_t>(i));
    }
  }

  bool boundLocal(size_t slot) const {
    return slot < root_.slots.size() && root_.slots[slot].kind == kLocalSlot &&
           plan_.layout.bound[slot];
  }

  // Pushes the parameter and gives up the frame's reference, unless a local will be stored there.
  void push(Sequence& sequence, size_t parameter) const {
    const auto slot = static_cast<uint32_t>(parameter);
    if (isCell(code_.slots[slot])) {
      sequence.emit(Op::LOAD_DEREF, slot);  // MAKE_CELL has wrapped it; appendCells() drops it
      return;
    }
    sequence.emit(Op::LOAD_FAST, slot);
    if (!boundLocal(parameter)) sequence.emit(Op::DELETE_FAST, slot);
  }

  void appendParameters(Sequence& sequence) {
    size_t next = 0;
    const std::vector<StackEntry>& stack = plan_.layout.stack;
    for (size_t i = 0; i < stack.size(); ++i) {
      switch (stack[i].kind) {
        case StackKind::kValue:
          push(sequence, next++);
          break;
        case StackKind::kNull:
          sequence.emit(Op::PUSH_NULL);
          break;
        case StackKind::kPrevious: {
          push(sequence, next++);
          sequence.emit(Op::PUSH_EXC_INFO);
          const bool shown = i + 1 < stack.size() && stack[i + 1].kind == StackKind::kException;
          if (!shown) sequence.emit(Op::POP_TOP);
          break;
        }
        case StackKind::kException:
          break;  // the entry below has pushed it
        case StackKind::kOffset:
          offsets_.push_back({static_cast<uint32_t>(code_.constants.size()), stack[i].instruction});
          code_.constants.push_back(Object::share(Py_None));
          sequence.emit(Op::LOAD_CONST, offsets_.back().constant);
          break;
        case StackKind::kNullOrValue:
          throw BytecodeError("a layout must tell a value from NULL");
      }
    }
    std::vector<int> moved;
    for (; next < parameters_.size(); ++next) {
      if (parameters_[next].slot == static_cast<int>(next)) continue;
      push(sequence, next);
      moved.push_back(parameters_[next].slot);
    }
    for (; !moved.empty(); moved.pop_back()) {
      sequence.emit(Op::STORE_FAST, static_cast<uint32_t>(slots_[moved.back()]));
    }
  }

  void appendCells(Sequence& sequence) const {
    uint32_t alias = static_cast<uint32_t>(first_alias_);
    for (size_t i = 0; i < root_.slots.size(); ++i) {
      if (!isCell(root_.slots[i])) continue;
      sequence.emit(Op::LOAD_CLOSURE, alias++);
      sequence.emit(Op::STORE_FAST, static_cast<uint32_t>(slots_[i]));
    }
  }

  void appendCopy(Sequence& sequence) {
    taken_ = sequence.label();
    for (int i = plan_.instruction; i < plan_.copied_end; ++i) {
      const Instruction& at = code_.instructions[i];
      const int first = sequence.size();
      sequence.setLocation(at.location);
      if (at.op == Op::LOAD_METHOD) {
        sequence.emit(Op::LOAD_ATTR, at.arg);
        sequence.emit(Op::PUSH_NULL);
        sequence.emit(Op::SWAP, 2);
      } else if (isJump(at.op) && !has(at.op, kEndsPath)) {
        sequence.jump(at.op, taken_);
      } else if (isJump(at.op)) {
        sequence.emit(Op::NOP);
      } else {
        sequence.emit(at.op, at.arg);
      }
      copied_.insert(copied_.end(), static_cast<size_t>(sequence.size() - first), i);
    }
    copy_end_ = sequence.size();
  }

  void appendExits(Sequence& sequence) {
    sequence.setLocation(entryLocation());
    StatePositions positions;
    positions.slots = slots_;
    for (int i = first_added_; i < static_cast<int>(code_.slots.size()); ++i) {
      if (code_.slots[i].kind == kLocalSlot) positions.temporaries.push_back(i);
    }
    const bool jump_only = has(root_.instructions[plan_.copied_end - 1].op, kEndsPath);
    for (const bool jumps : {false, true}) {
      for (const Exit& exit : plan_.exits) {
        if (exit.jumps != jumps) continue;
        if (jumps && !jump_only) sequence.bind(taken_);
        appendHandOver(sequence, code_, root_, positions, exit.layout, exit.continuation.get());
      }
    }
  }

  // Replaces the prefix by the entry.
  void place(Sequence sequence, int resume, int covered_end) {
    const int copy_begin = copy_end_ - static_cast<int>(copied_.size());
    Editor editor(code_);
    editor.erase(0, plan_.prefix_length);
    editor.insert(0, std::move(sequence), Editor::Jumps::kPast, Editor::Handler::kNone);
    const Editor::Moves moves = editor.finish();
    const int base = moves.of_insertion[0];
    root_of_.assign(code_.instructions.size(), -1);
    for (int i = plan_.prefix_length; i < root_.size(); ++i) root_of_[moves.of_old[i]] = i;
    for (size_t i = 0; i < copied_.size(); ++i) root_of_[base + copy_begin + i] = copied_[i];
    for (Offset& offset : offsets_) offset.index = moves.of_old[offset.root_index];
    const ExceptionRange* range = rangeAt(root_, plan_.instruction);
    if (!range || !plan_.covered) return;
    ExceptionRange added = *range;
    added.start = base + resume;
    added.end = base + covered_end;
    added.target = moves.of_old[range->target];
    code_.exception_ranges.insert(code_.exception_ranges.begin(), added);
  }

  void prune() {
    checkOperands(code_);
    const StackDepths depths = stackDepths(code_);
    Editor editor(code_);
    // An offset needs an instruction with its location, though it never runs here.
    std::vector<std::pair<Offset*, int>> kept;
    for (Offset& offset : offsets_) {
      if (depths.before[offset.index] >= 0) continue;
      Sequence nop;
      nop.setLocation(code_.instructions[offset.index].location);
      nop.emit(Op::NOP);
      kept.emplace_back(&offset, editor.insert(offset.index, std::move(nop), Editor::Jumps::kPast,
                                               Editor::Handler::kNone));
    }
    for (int i = 0; i < code_.size(); ++i) {
      if (depths.before[i] < 0) editor.erase(i, i + 1);
    }
    const std::vector<int> old_root_of = std::move(root_of_);
    const Editor::Moves moves = editor.finish();
    root_of_.assign(code_.instructions.size(), -1);
    for (size_t i = 0; i < old_root_of.size(); ++i) {
      if (depths.before[i] >= 0) root_of_[moves.of_old[i]] = old_root_of[i];
    }
    for (Offset& offset : offsets_) {
      if (depths.before[offset.index] >= 0) offset.index = moves.of_old[offset.index];
    }
    for (const auto& [offset, insertion] : kept) {
      offset->index = moves.of_insertion[insertion];
      root_of_[offset->index] = offset->root_index;
    }
  }

  void writeOffsets() {
    if (offsets_.empty()) return;
    const EncodedCode encoded = encode(code_);
    for (const Offset& offset : offsets_) {
      code_.constants[offset.constant] =
          Object::checked(PyLong_FromLong(encoded.units_of[offset.index]));
    }
  }

  const EntryPlan& plan_;
  const DecodedCode& root_;
  DecodedCode code_;
  std::vector<Parameter> parameters_;
  std::vector<int> slots_;  // for each slot of the root that of the code
  int first_added_ = 0;     // the first slot that the root does not have
  int first_alias_ = 0;     // the first free variable
  std::vector<Offset> offsets_;
  Sequence::Label taken_{0};
  std::vector<int> copied_;  // for each copied instruction that of the root
  int copy_end_ = 0;         // in the sequence
  std::vector<int> root_of_;
};

}  // namespace

EntryCode writeEntry(const EntryPlan& plan) {
  return EntryWriter(plan).run();
}

}  // namespace wick::capture
