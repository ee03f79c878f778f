#include "capture/bytecode/edit.h"

#include <fmt/format.h>

#include <algorithm>

namespace wick::capture {
namespace {

// For each instruction the index of the exception range that it lies in, or -1.
std::vector<int> rangesOf(const DecodedCode& code) {
  std::vector<int> range_of(code.instructions.size(), -1);
  for (size_t i = 0; i < code.exception_ranges.size(); ++i) {
    const ExceptionRange& range = code.exception_ranges[i];
    for (int at = range.start; at < range.end; ++at) range_of[at] = static_cast<int>(i);
  }
  return range_of;
}

bool sameText(PyObject* a, PyObject* b) {
  return a == b || (PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0);
}

void orient(std::vector<Instruction>& instructions) {
  for (size_t i = 0; i < instructions.size(); ++i) {
    Instruction& at = instructions[i];
    if (!isJump(at.op) || has(at.op, kJumpsBackward) == (at.target <= static_cast<int>(i)))
      continue;
    const std::optional<Op> other = otherDirection(at.op);
    if (!other) {
      throw BytecodeError(fmt::format("instruction {} ({}) cannot lead back to instruction {}", i,
                                      nameOf(at.op), at.target));
    }
    at.op = *other;
  }
}

}  // namespace

// ---- sequences

void Sequence::emit(Op op, uint32_t arg) {
  if (isJump(op)) throw BytecodeError(fmt::format("{} needs a label", nameOf(op)));
  instructions_.push_back(makeInstruction(op, arg));
  instructions_.back().location = location_;
}

Sequence::Label Sequence::label() {
  positions_.push_back(-1);
  return {static_cast<int>(positions_.size()) - 1};
}

void Sequence::bind(Label label) {
  positions_.at(label.number) = size();
}

void Sequence::jump(Op op, Label label) {
  jumpToOld(op, -2 - label.number);
}

void Sequence::jumpToOld(Op op, int old_index) {
  if (!isJump(op)) throw BytecodeError(fmt::format("{} is no jump", nameOf(op)));
  instructions_.push_back(makeInstruction(op));
  instructions_.back().target = old_index;
  instructions_.back().location = location_;
}

std::vector<Instruction> Sequence::finish() const {
  std::vector<Instruction> result = instructions_;
  for (Instruction& at : result) {
    if (!isJump(at.op)) continue;
    at.target = at.target <= -2 ? positions_.at(-2 - at.target) : -1;
    if (at.target < 0 || at.target >= size()) {
      throw BytecodeError("a jump of a sequence leads out of it, or to a label that was not bound");
    }
  }
  orient(result);
  return result;
}

// ---- editing

// The code as it becomes.
struct Editor::Rebuilt {
  std::vector<Instruction> instructions;
  std::vector<int> range_of;  // old exception range of each new instruction
  std::vector<int> entry;     // for each old index, where jumps to it lead
  Moves moves;
  std::vector<bool> settled;  // whether `entry` is that of inserted or kept instructions
  // Labels of sequences: the begin of each new instruction's sequence, and which one it is.
  std::vector<int> base;
  std::vector<const Sequence*> sequence;
};

Editor::Editor(DecodedCode& code)
    : code_(code), range_of_(rangesOf(code)), erased_(code.instructions.size(), false) {}

void Editor::checkIndex(int index) const {
  if (index < 0 || index > code_.size()) {
    throw BytecodeError(fmt::format("edit at instruction {} of {}", index, code_.size()));
  }
}

int Editor::insert(int index, Sequence sequence, Jumps jumps, Handler handler) {
  checkIndex(index);
  const int number = static_cast<int>(insertions_.size());
  insertions_.push_back({number, index, std::move(sequence), jumps, handler});
  return number;
}

void Editor::erase(int first, int last) {
  checkIndex(first);
  checkIndex(last);
  for (int i = first; i < last; ++i) erased_[i] = true;
}

int Editor::rangeFor(const Insertion& insertion) const {
  const int like = insertion.handler == Handler::kOfNext ? insertion.index : insertion.index - 1;
  if (insertion.handler == Handler::kNone || like < 0 || like >= code_.size()) return -1;
  return range_of_[like];
}

void Editor::append(Rebuilt& rebuilt, const Insertion& insertion) const {
  const int base = static_cast<int>(rebuilt.instructions.size());
  const int range = rangeFor(insertion);
  for (const Instruction& each : insertion.sequence.instructions_) {
    rebuilt.instructions.push_back(each);
    rebuilt.range_of.push_back(range);
    rebuilt.base.push_back(base);
    rebuilt.sequence.push_back(&insertion.sequence);
  }
}

void Editor::resolve(Rebuilt& rebuilt) const {
  for (size_t i = 0; i < rebuilt.instructions.size(); ++i) {
    Instruction& at = rebuilt.instructions[i];
    if (!isJump(at.op)) continue;
    if (at.target >= 0) {
      if (at.target > code_.size()) {
        throw BytecodeError(
            fmt::format("a jump leads to instruction {} of {}", at.target, code_.size()));
      }
      at.target = rebuilt.entry[at.target];
      continue;
    }
    const int label = -2 - at.target;
    const Sequence* sequence = rebuilt.sequence[i];
    const int position = sequence && label >= 0 ? sequence->positions_.at(label) : -1;
    if (position < 0) throw BytecodeError("a jump leads to a label that was not bound");
    at.target = rebuilt.base[i] + position;
  }
}

Editor::Moves Editor::finish() {
  std::stable_sort(insertions_.begin(), insertions_.end(),
                   [](const Insertion& a, const Insertion& b) { return a.index < b.index; });
  Rebuilt rebuilt;
  rebuilt.moves.of_insertion.resize(insertions_.size());
  const int count = code_.size();
  auto next = insertions_.begin();
  for (int i = 0; i <= count; ++i) {
    bool entered = false;
    int entry = -1;
    for (; next != insertions_.end() && next->index == i; ++next) {
      if (!entered && next->jumps == Jumps::kToInserted && next->sequence.size() > 0) {
        entered = true;
        entry = static_cast<int>(rebuilt.instructions.size());
      }
      rebuilt.moves.of_insertion[next->number] = static_cast<int>(rebuilt.instructions.size());
      append(rebuilt, *next);
    }
    const int here = static_cast<int>(rebuilt.instructions.size());
    const bool kept = i < count && !erased_[i];
    rebuilt.entry.push_back(entered ? entry : here);
    rebuilt.moves.of_old.push_back(here);
    rebuilt.settled.push_back(entered || kept || i == count);
    if (!kept) continue;
    rebuilt.instructions.push_back(code_.instructions[i]);
    rebuilt.range_of.push_back(range_of_[i]);
    rebuilt.base.push_back(0);
    rebuilt.sequence.push_back(nullptr);
  }
  for (int i = count - 1; i >= 0; --i) {
    if (!rebuilt.settled[i]) rebuilt.entry[i] = rebuilt.entry[i + 1];
    if (erased_[i]) rebuilt.moves.of_old[i] = rebuilt.moves.of_old[i + 1];
  }
  resolve(rebuilt);
  orient(rebuilt.instructions);
  std::vector<ExceptionRange> ranges;
  const int size = static_cast<int>(rebuilt.instructions.size());
  for (int begin = 0, end; begin < size; begin = end) {
    for (end = begin + 1; end < size && rebuilt.range_of[end] == rebuilt.range_of[begin];) ++end;
    if (rebuilt.range_of[begin] < 0) continue;
    ExceptionRange range = code_.exception_ranges[rebuilt.range_of[begin]];
    range.start = begin;
    range.end = end;
    range.target = rebuilt.entry[range.target];
    ranges.push_back(range);
  }
  code_.instructions = std::move(rebuilt.instructions);
  code_.exception_ranges = std::move(ranges);
  insertions_.clear();
  range_of_ = rangesOf(code_);
  erased_.assign(code_.instructions.size(), false);
  return std::move(rebuilt.moves);
}

void orientJumps(DecodedCode& code) {
  orient(code.instructions);
}

// ---- tables

uint32_t addConstant(DecodedCode& code, PyObject* constant) {
  for (size_t i = 0; i < code.constants.size(); ++i) {
    if (code.constants[i].get() == constant) return static_cast<uint32_t>(i);
  }
  code.constants.push_back(Object::share(constant));
  return static_cast<uint32_t>(code.constants.size() - 1);
}

uint32_t addName(DecodedCode& code, PyObject* name) {
  for (size_t i = 0; i < code.names.size(); ++i) {
    if (sameText(code.names[i].get(), name)) return static_cast<uint32_t>(i);
  }
  code.names.push_back(Object::share(name));
  return static_cast<uint32_t>(code.names.size() - 1);
}

uint32_t addSlot(DecodedCode& code, PyObject* name, SlotKind kind) {
  // Kinds grow in the order of the slots; an argument that is a cell counts as a local.
  const auto order = [](int kinds) { return kinds & kLocalSlot ? 0 : kinds & kCellSlot ? 1 : 2; };
  const auto place = std::find_if(code.slots.begin(), code.slots.end(),
                                  [&](const Slot& slot) { return order(slot.kind) > order(kind); });
  const auto added = static_cast<uint32_t>(place - code.slots.begin());
  code.slots.insert(place, Slot{Object::share(name), static_cast<uint8_t>(kind)});
  for (Instruction& at : code.instructions) {
    if (has(at.op, kTakesLocal | kTakesCell) && at.arg >= added) ++at.arg;
  }
  return added;
}

int findSlot(const DecodedCode& code, PyObject* name, int kinds) {
  for (size_t i = 0; i < code.slots.size(); ++i) {
    if ((code.slots[i].kind & kinds) && sameText(code.slots[i].name.get(), name)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace wick::capture
