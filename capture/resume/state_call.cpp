#include "capture/resume/state_call.h"

#include "capture/bytecode/code_chain.h"

namespace wick::capture {
namespace {

bool hasHandledAbove(const Layout& layout, size_t index) {
  return index + 1 < layout.stack.size() && layout.stack[index + 1].kind == StackKind::kException;
}

// Moves the stack's entries to temporaries, top first. The first temporary takes everything that is
// dropped: STORE_FAST is the only instruction that may take NULL.
void emptyStack(Sequence& sequence, DecodedCode& code, const StatePositions& positions,
                const Layout& layout) {
  const auto temporary = [&](size_t index) {
    return static_cast<uint32_t>(positions.temporaries.at(index));
  };
  size_t left = static_cast<size_t>(temporariesFor(layout));
  for (size_t i = layout.stack.size(); i-- > 0;) {
    switch (layout.stack[i].kind) {
      case StackKind::kValue:
        sequence.emit(Op::STORE_FAST, temporary(--left));
        break;
      case StackKind::kNull:
        sequence.emit(Op::STORE_FAST, temporary(0));
        break;
      case StackKind::kOffset:
        sequence.emit(Op::POP_TOP);
        break;
      case StackKind::kPrevious:
        if (!hasHandledAbove(layout, i)) {
          // Entering a handler brings the exception that is handled to the stack: any will do.
          const Object any = Object::checked(PyObject_CallNoArgs(PyExc_BaseException));
          sequence.emit(Op::LOAD_CONST, addConstant(code, any.get()));
          sequence.emit(Op::PUSH_EXC_INFO);
          sequence.emit(Op::POP_TOP);
        }
        sequence.emit(Op::STORE_FAST, temporary(--left));
        sequence.emit(Op::POP_EXCEPT);
        break;
      case StackKind::kException:
        break;  // the next entry takes it
      case StackKind::kNullOrValue:
        throw BytecodeError("a layout must tell a value from NULL");
    }
  }
}

void move(Sequence& sequence, int slot) {
  sequence.emit(Op::LOAD_FAST, static_cast<uint32_t>(slot));
  sequence.emit(Op::DELETE_FAST, static_cast<uint32_t>(slot));
}

}  // namespace

int temporariesFor(const Layout& layout) {
  int count = 1;
  for (const StackEntry& entry : layout.stack) {
    count += entry.kind == StackKind::kValue || entry.kind == StackKind::kPrevious;
  }
  return count;
}

void appendHandOver(Sequence& sequence, DecodedCode& code, const DecodedCode& root,
                    const StatePositions& positions, const Layout& layout, PyObject* continuation) {
  emptyStack(sequence, code, positions, layout);
  const Object object = handOverObject();
  sequence.emit(Op::LOAD_CONST, addConstant(code, object.get()));
  sequence.emit(Op::LOAD_CONST, addConstant(code, continuation));
  uint32_t items = 1;
  uint32_t cells = 0;
  for (const uint8_t kind : {kCellSlot, kFreeSlot}) {
    for (size_t i = 0; i < root.slots.size(); ++i) {
      if ((root.slots[i].kind & kind) == 0) continue;
      sequence.emit(Op::LOAD_CLOSURE, static_cast<uint32_t>(positions.slots.at(i)));
      ++cells;
    }
  }
  if (cells > 0) {
    sequence.emit(Op::BUILD_TUPLE, cells);
    ++items;
  }
  size_t temporary = 1;
  for (const Parameter& parameter : parametersOf(root, layout)) {
    move(sequence, parameter.slot >= 0 ? positions.slots.at(parameter.slot)
                                       : positions.temporaries.at(temporary++));
    ++items;
  }
  sequence.emit(Op::BUILD_TUPLE, items);
  sequence.emit(Op::BINARY_SUBSCR);
  sequence.emit(Op::RETURN_VALUE);
}

}  // namespace wick::capture
