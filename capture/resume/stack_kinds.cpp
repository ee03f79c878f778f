// States are kept at the begin of blocks only, so that code with many locals stays small; those
// between are found by going through the block again.
#include "capture/resume/stack_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "capture/bytecode/opcodes.h"

namespace wick::capture {
namespace {

// States times locals, and instructions visited, beyond which code is refused.
constexpr size_t kMostBindings = size_t{1} << 26;
constexpr size_t kMostVisits = size_t{1} << 24;

const char* nameOfKind(StackKind kind) {
  switch (kind) {
    case StackKind::kValue:
      return "a value";
    case StackKind::kNull:
      return "NULL";
    case StackKind::kNullOrValue:
      return "NULL or a value";
    case StackKind::kPrevious:
      return "a saved exception";
    case StackKind::kException:
      return "a handled exception";
    case StackKind::kOffset:
      return "an offset";
  }
  return "";
}

// Returns how many entries from the top on the instruction takes away or replaces.
int64_t popsOf(Op op, int64_t arg, bool jumps) {
  switch (op) {
    case Op::POP_TOP:
    case Op::UNARY_POSITIVE:
    case Op::UNARY_NEGATIVE:
    case Op::UNARY_NOT:
    case Op::UNARY_INVERT:
    case Op::CHECK_EXC_MATCH:
    case Op::GET_AITER:
    case Op::BEFORE_ASYNC_WITH:
    case Op::BEFORE_WITH:
    case Op::GET_ITER:
    case Op::GET_YIELD_FROM_ITER:
    case Op::GET_AWAITABLE:
    case Op::PRINT_EXPR:
    case Op::LIST_TO_TUPLE:
    case Op::RETURN_VALUE:
    case Op::IMPORT_STAR:
    case Op::YIELD_VALUE:
    case Op::ASYNC_GEN_WRAP:
    case Op::STORE_NAME:
    case Op::STORE_GLOBAL:
    case Op::STORE_FAST:
    case Op::STORE_DEREF:
    case Op::DELETE_ATTR:
    case Op::LOAD_ATTR:
    case Op::LOAD_METHOD:
    case Op::UNPACK_SEQUENCE:
    case Op::UNPACK_EX:
    case Op::LIST_APPEND:
    case Op::SET_ADD:
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE:
    case Op::DICT_MERGE:
    case Op::DICT_UPDATE:
    case Op::RERAISE:
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      return 1;
    case Op::BINARY_SUBSCR:
    case Op::BINARY_OP:
    case Op::COMPARE_OP:
    case Op::IS_OP:
    case Op::CONTAINS_OP:
    case Op::CHECK_EG_MATCH:
    case Op::DELETE_SUBSCR:
    case Op::STORE_ATTR:
    case Op::IMPORT_NAME:
    case Op::PREP_RERAISE_STAR:
    case Op::MAP_ADD:
    case Op::END_ASYNC_FOR:
      return 2;
    case Op::STORE_SUBSCR:
    case Op::MATCH_CLASS:
      return 3;
    case Op::FOR_ITER:
      return jumps ? 1 : 0;
    case Op::SEND:
      return jumps ? 2 : 1;
    case Op::JUMP_IF_FALSE_OR_POP:
    case Op::JUMP_IF_TRUE_OR_POP:
      return jumps ? 0 : 1;
    case Op::BUILD_TUPLE:
    case Op::BUILD_LIST:
    case Op::BUILD_SET:
    case Op::BUILD_STRING:
    case Op::RAISE_VARARGS:
      return arg;
    case Op::BUILD_MAP:
      return 2 * arg;
    case Op::BUILD_CONST_KEY_MAP:
      return arg + 1;
    case Op::BUILD_SLICE:
      return arg == 3 ? 3 : 2;
    case Op::FORMAT_VALUE:
      return (arg & 4) != 0 ? 2 : 1;
    case Op::MAKE_FUNCTION:
      return 1 + std::popcount(static_cast<uint64_t>(arg & 15));
    case Op::CALL:
      return arg + 2;
    case Op::CALL_FUNCTION_EX:
      return 3 + (arg & 1);
    default:
      return 0;
  }
}

// Changes one state by one instruction.
class Step {
 public:
  Step(const DecodedCode& code, int index, FrameState& state)
      : code_(code),
        index_(index),
        op_(code.instructions[index].op),
        arg_(code.instructions[index].arg),
        state_(state),
        stack_(state.stack) {}

  void run(bool jumps) {
    switch (op_) {
      case Op::PUSH_NULL:
        push(StackKind::kNull);
        break;
      case Op::LOAD_GLOBAL:
        if (arg_ & 1) push(StackKind::kNull);
        push(StackKind::kValue);
        break;
      case Op::LOAD_METHOD:
        popValue();
        push(StackKind::kNullOrValue);
        push(StackKind::kValue);
        break;
      case Op::PUSH_EXC_INFO:
        popValue();
        push(StackKind::kPrevious);
        push(StackKind::kException);
        break;
      case Op::POP_EXCEPT:
        if (pop().kind != StackKind::kPrevious) refuse("no saved exception on top of the stack");
        break;
      case Op::COPY:
        copy();
        break;
      case Op::SWAP:
        swap();
        break;
      case Op::CHECK_EG_MATCH:
        general(jumps);
        forgetHandled();
        break;
      case Op::CALL:
      case Op::CALL_FUNCTION_EX:
        call();
        break;
      case Op::RERAISE:
        reraise();
        break;
      default:
        general(jumps);
    }
    bind();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw BytecodeError(describe(code_, index_) + ": " + why);
  }
  void require(int64_t count) const {
    if (count > static_cast<int64_t>(stack_.size())) refuse("the stack has too few values");
  }
  // The entry that lies `distance` below the end of the stack, beginning with 1.
  StackEntry& peek(int64_t distance) {
    require(distance);
    return stack_[stack_.size() - static_cast<size_t>(distance)];
  }
  void push(StackKind kind) { stack_.push_back({kind, -1}); }
  StackEntry pop() {
    const StackEntry entry = peek(1);
    stack_.pop_back();
    return entry;
  }
  void checkValue(const StackEntry& entry) const {
    if (entry.kind == StackKind::kValue || entry.kind == StackKind::kException ||
        entry.kind == StackKind::kOffset) {
      return;
    }
    refuse(fmt::format("{} where a value is expected", nameOfKind(entry.kind)));
  }
  void popValue() { checkValue(pop()); }

  void general(bool jumps) {
    const int64_t pops = popsOf(op_, arg_, jumps);
    require(pops);
    for (int64_t i = 0; i < pops; ++i) popValue();
    const int64_t pushes = pops + stackEffect(op_, arg_, jumps);
    // UNPACK_SEQUENCE may claim to push more than memory can hold.
    if (pushes > (1 << 24)) refuse("the stack is too deep");
    for (int64_t i = 0; i < pushes; ++i) push(StackKind::kValue);
  }

  // The function stands above a NULL or below `self`: either the first entry is a NULL and the
  // second the function, or the first is the function and the second its first argument.
  void call() {
    const int64_t pops = popsOf(op_, arg_, false);
    require(pops);
    for (int64_t i = 1; i < pops; ++i) popValue();
    const StackKind first = pop().kind;
    const bool may_be_value = first == StackKind::kNullOrValue || first == StackKind::kValue;
    if (first != StackKind::kNull && (op_ == Op::CALL_FUNCTION_EX || !may_be_value)) {
      refuse(fmt::format("{} where NULL is expected", nameOfKind(first)));
    }
    push(StackKind::kValue);
  }

  void copy() {
    StackEntry& original = peek(arg_);
    const StackEntry entry = original;
    if (entry.kind == StackKind::kPrevious) {
      for (int64_t above = 1; above < static_cast<int64_t>(arg_); ++above) {
        if (peek(above).kind == StackKind::kPrevious) refuse("copies an outer saved exception");
      }
      original.kind = StackKind::kValue;
      settle();
    }
    // The copy of a handled exception is a value.
    stack_.push_back(entry.kind == StackKind::kException ? StackEntry{} : entry);
  }

  void swap() {
    StackEntry &low = peek(arg_), &high = peek(1);
    for (const StackEntry* moved : {&low, &high}) {
      if (moved->kind != StackKind::kPrevious) continue;
      for (int64_t other = 1; other <= static_cast<int64_t>(arg_); ++other) {
        if (&peek(other) != moved && peek(other).kind == StackKind::kPrevious) {
          refuse("changes the order of saved exceptions");
        }
      }
    }
    std::swap(low, high);
    settle();
  }

  // The thread may handle a part of the exception from now on.
  void forgetHandled() {
    for (auto entry = stack_.rbegin(); entry != stack_.rend(); ++entry) {
      if (entry->kind == StackKind::kException) entry->kind = StackKind::kValue;
      if (entry->kind == StackKind::kPrevious) return;
    }
  }

  void reraise() {
    if (arg_ > 0) {
      const StackEntry& offset = peek(int64_t{arg_} + 1);
      if (offset.kind != StackKind::kOffset) refuse("no offset of an instruction on the stack");
    }
    popValue();
  }

  void bind() {
    if (!has(op_, kTakesLocal) || code_.slots[arg_].kind != kLocalSlot) return;
    // An instruction that goes on has found the local bound.
    state_.locals[arg_] = op_ == Op::DELETE_FAST ? Binding::kUnbound : Binding::kBound;
  }

  // Makes handled exceptions values unless they lie immediately above the saved one. Looks at the
  // entries that the instruction may have moved or changed.
  void settle() {
    const size_t lowest = stack_.size() - std::min<size_t>(stack_.size(), size_t{arg_} + 1);
    for (size_t i = lowest; i < stack_.size(); ++i) {
      if (stack_[i].kind != StackKind::kException) continue;
      if (i == 0 || stack_[i - 1].kind != StackKind::kPrevious) stack_[i].kind = StackKind::kValue;
    }
  }

  const DecodedCode& code_;
  int index_;
  Op op_;
  uint32_t arg_;
  FrameState& state_;
  std::vector<StackEntry>& stack_;
};

// Returns the entry that describes both, or nothing.
std::optional<StackEntry> merged(const StackEntry& a, const StackEntry& b) {
  if (a == b) return a;
  const auto both = [&](StackKind first, StackKind second) {
    return (a.kind == first && b.kind == second) || (a.kind == second && b.kind == first);
  };
  if (a.kind == b.kind) return StackEntry{a.kind, -1};
  if (both(StackKind::kException, StackKind::kValue)) return StackEntry{};
  if (both(StackKind::kNull, StackKind::kValue) ||
      both(StackKind::kNullOrValue, StackKind::kValue) ||
      both(StackKind::kNullOrValue, StackKind::kNull)) {
    return StackEntry{StackKind::kNullOrValue, -1};
  }
  return std::nullopt;
}

}  // namespace

bool canRaise(Op op) {
  switch (op) {
    case Op::NOP:
    case Op::PUSH_NULL:
    case Op::PUSH_EXC_INFO:
    case Op::POP_EXCEPT:
    case Op::POP_TOP:
    case Op::COPY:
    case Op::SWAP:
    case Op::LOAD_CONST:
    case Op::STORE_FAST:
    case Op::IS_OP:
    case Op::LOAD_ASSERTION_ERROR:
    case Op::KW_NAMES:
    case Op::PRECALL:
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::RETURN_VALUE:
      return false;
    default:
      return true;
  }
}

const ExceptionRange* rangeAt(const DecodedCode& code, int index) {
  const auto after =
      std::upper_bound(code.exception_ranges.begin(), code.exception_ranges.end(), index,
                       [](int at, const ExceptionRange& range) { return at < range.start; });
  if (after == code.exception_ranges.begin()) return nullptr;
  const ExceptionRange& range = *(after - 1);
  return index < range.end ? &range : nullptr;
}

FrameState firstState(const DecodedCode& code) {
  FrameState state;
  size_t arguments =
      static_cast<size_t>(code.argument_count) + static_cast<size_t>(code.keyword_only_count);
  arguments += (code.flags & CO_VARARGS) != 0;
  arguments += (code.flags & CO_VARKEYWORDS) != 0;
  if (arguments > code.slots.size()) throw BytecodeError("there are more arguments than variables");
  for (size_t i = 0; i < code.slots.size(); ++i) {
    const bool bound = i < arguments || code.slots[i].kind != kLocalSlot;
    state.locals.push_back(bound ? Binding::kBound : Binding::kUnbound);
  }
  return state;
}

void applyInstruction(const DecodedCode& code, int index, bool jumps, FrameState& state) {
  Step(code, index, state).run(jumps);
}

FrameState stateInHandler(const DecodedCode& code, int index, const ExceptionRange& range,
                          const FrameState& before) {
  FrameState state;
  const size_t depth = static_cast<size_t>(range.depth);
  if (depth > before.stack.size()) {
    throw BytecodeError(fmt::format("{}: the stack is {} deep, its handler expects {}",
                                    describe(code, index), before.stack.size(), range.depth));
  }
  for (size_t i = depth; i < before.stack.size(); ++i) {
    if (before.stack[i].kind == StackKind::kPrevious) {
      throw BytecodeError(describe(code, index) + ": its handler drops a saved exception");
    }
  }
  state.locals = before.locals;
  state.stack.assign(before.stack.begin(), before.stack.begin() + range.depth);
  if (range.lasti) state.stack.push_back({StackKind::kOffset, index});
  state.stack.push_back({});
  return state;
}

// ---- all paths

class StackKinds::Walk {
 public:
  explicit Walk(StackKinds& kinds) : kinds_(kinds), code_(kinds.code_) {
    waits_.assign(code_.instructions.size(), false);
  }

  void run() {
    if (code_.instructions.empty()) throw BytecodeError("code without instructions");
    reach(0, 0, firstState(code_));
    while (!open_.empty()) {
      const int at = open_.back();
      open_.pop_back();
      waits_[at] = false;
      visit(at);
    }
  }

 private:
  // Notes that control comes from an instruction to the begin of a block.
  void reach(int from, int to, const FrameState& state) {
    if (to >= code_.size()) {
      throw BytecodeError(describe(code_, from) + ": control leads behind the last instruction");
    }
    std::optional<FrameState>& known = kinds_.at_start_[to];
    bool changed = !known;
    if (changed) {
      bindings_ += state.locals.size() + state.stack.size() + 1;
      if (bindings_ > kMostBindings) throw BytecodeError("the code is too large to be followed");
      known = state;
    } else {
      changed = mergeStack(from, to, state.stack, known->stack);
      for (size_t i = 0; i < state.locals.size(); ++i) changed |= mergeLocal(state, i, *known);
    }
    if (changed) open(to);
  }

  void open(int at) {
    if (!waits_[at]) open_.push_back(at);
    waits_[at] = true;
  }

  static bool mergeLocal(const FrameState& from, size_t slot, FrameState& known) {
    if (from.locals[slot] == known.locals[slot] || known.locals[slot] == Binding::kUnknown) {
      return false;
    }
    known.locals[slot] = Binding::kUnknown;
    return true;
  }

  bool mergeStack(int from, int to, const std::vector<StackEntry>& stack,
                  std::vector<StackEntry>& known) const {
    if (stack.size() != known.size()) {
      throw BytecodeError(
          fmt::format("{}: the stack is {} deep here, but {} when control comes from {}",
                      describe(code_, to), known.size(), stack.size(), describe(code_, from)));
    }
    bool changed = false;
    for (size_t i = 0; i < stack.size(); ++i) {
      const std::optional<StackEntry> both = merged(known[i], stack[i]);
      if (!both) {
        throw BytecodeError(fmt::format(
            "{}: stack entry {} is {} here, but {} when control comes from {}", describe(code_, to),
            i, nameOfKind(known[i].kind), nameOfKind(stack[i].kind), describe(code_, from)));
      }
      changed |= *both != known[i];
      known[i] = *both;
    }
    return changed;
  }

  // Goes through a block.
  void visit(int start) {
    FrameState state = *kinds_.at_start_[start];
    const ExceptionRange* last_range = nullptr;
    int changed_local = -1;  // by the instruction before
    for (int at = start;; ++at) {
      if (++visits_ > kMostVisits) throw BytecodeError("the code is too large to be followed");
      const Instruction& instruction = code_.instructions[at];
      if (const ExceptionRange* range = rangeAt(code_, at); range && canRaise(instruction.op)) {
        reachHandler(at, *range, state, range == last_range ? &changed_local : nullptr);
        last_range = range;
        changed_local = -1;
      }
      const bool local = has(instruction.op, kTakesLocal);
      const Binding old = local ? state.locals[instruction.arg] : Binding::kUnknown;
      if (isJump(instruction.op)) {
        FrameState jumped = state;
        applyInstruction(code_, at, true, jumped);
        reach(at, instruction.target, jumped);
      }
      applyInstruction(code_, at, false, state);
      if (has(instruction.op, kEndsPath)) return;
      if (at + 1 >= code_.size() || kinds_.block_start_[at + 1] == at + 1) {
        reach(at, at + 1, state);
        return;
      }
      if (local && old != state.locals[instruction.arg]) {
        // Two changes between instructions that can fail: compare everything.
        if (changed_local >= 0) last_range = nullptr;
        changed_local = static_cast<int>(instruction.arg);
      }
    }
  }

  // `changed_local` tells that only this local (or none, -1) has changed since the handler was
  // reached last from this block; null if anything may have.
  void reachHandler(int at, const ExceptionRange& range, const FrameState& state,
                    const int* changed_local) {
    if (!changed_local) {
      reach(at, range.target, stateInHandler(code_, at, range, state));
      return;
    }
    FrameState part;
    part.stack = state.stack;
    FrameState& known = *kinds_.at_start_[range.target];
    bool changed =
        mergeStack(at, range.target, stateInHandler(code_, at, range, part).stack, known.stack);
    if (*changed_local >= 0) changed |= mergeLocal(state, *changed_local, known);
    if (changed) open(range.target);
  }

  StackKinds& kinds_;
  const DecodedCode& code_;
  std::vector<int> open_;
  std::vector<bool> waits_;  // whether it is in open_
  size_t bindings_ = 0;
  size_t visits_ = 0;
};

StackKinds::StackKinds(const DecodedCode& code) : code_(code) {
  const size_t count = code.instructions.size();
  std::vector<bool> starts(count + 1, false);
  starts[0] = true;
  for (size_t i = 0; i < count; ++i) {
    const Instruction& at = code.instructions[i];
    if (isJump(at.op)) starts[at.target] = true;
    if (isJump(at.op) || has(at.op, kEndsPath)) starts[i + 1] = true;
  }
  for (const ExceptionRange& range : code.exception_ranges) starts[range.target] = true;
  int start = 0;
  for (size_t i = 0; i < count; ++i) {
    if (starts[i]) start = static_cast<int>(i);
    block_start_.push_back(start);
  }
  at_start_.resize(count);
  Walk(*this).run();
}

std::optional<FrameState> StackKinds::before(int index) const {
  if (index < 0 || index >= code_.size()) return std::nullopt;
  const int start = block_start_[index];
  std::optional<FrameState> state = at_start_[start];
  for (int at = start; state && at < index; ++at) applyInstruction(code_, at, false, *state);
  return state;
}

}  // namespace wick::capture
