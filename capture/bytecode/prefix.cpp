#include "capture/bytecode/prefix.h"

#include "capture/bytecode/edit.h"

namespace wick::capture {
namespace {

constexpr int kGeneratorFlags = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

Location locationOf(const DecodedCode& code, int length, Op op, const Location& otherwise) {
  for (int i = 0; i < length; ++i) {
    if (code.instructions[i].op == op) return code.instructions[i].location;
  }
  return otherwise;
}

}  // namespace

Prefix readPrefix(const DecodedCode& code) {
  Prefix prefix;
  int at = 0;
  const auto is = [&](int index, Op op) {
    return index < code.size() && code.instructions[index].op == op;
  };
  if (is(at, Op::COPY_FREE_VARS)) {
    prefix.copies_free = true;
    ++at;
  }
  for (; is(at, Op::MAKE_CELL); ++at) {
    prefix.cells.push_back(static_cast<int>(code.instructions[at].arg));
  }
  if (is(at, Op::RETURN_GENERATOR) && is(at + 1, Op::POP_TOP)) {
    prefix.generator = true;
    at += 2;
  }
  if (is(at, Op::RESUME)) {
    prefix.resumes = true;
    ++at;
  }
  prefix.length = at;
  return prefix;
}

int writePrefix(DecodedCode& code) {
  const int old_length = readPrefix(code).length;
  const Location start{code.first_line, code.first_line, 0, 0};
  const Location line{code.first_line, code.first_line, -1, -1};
  Sequence sequence;
  const auto emit = [&](Op op, uint32_t arg, const Location& otherwise) {
    sequence.setLocation(locationOf(code, old_length, op, otherwise));
    sequence.emit(op, arg);
  };
  if (const int count = freeCount(code)) {
    emit(Op::COPY_FREE_VARS, static_cast<uint32_t>(count), Location{});
  }
  for (size_t i = 0; i < code.slots.size(); ++i) {
    if (code.slots[i].kind & kCellSlot) {
      emit(Op::MAKE_CELL, static_cast<uint32_t>(i), Location{});
    }
  }
  if (code.flags & kGeneratorFlags) {
    emit(Op::RETURN_GENERATOR, 0, line);
    emit(Op::POP_TOP, 0, line);
  }
  emit(Op::RESUME, 0, start);
  const int length = sequence.size();
  Editor editor(code);
  editor.erase(0, old_length);
  // A loop may lead back to the first instruction behind the prefix.
  editor.insert(0, std::move(sequence), Editor::Jumps::kPast, Editor::Handler::kNone);
  editor.finish();
  return length;
}

}  // namespace wick::capture
