#include "capture/resume/continuation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "capture/bytecode/decode.h"
#include "capture/bytecode/prefix.h"
#include "capture/resume/entry.h"

namespace wick::capture {
namespace {

using Kind = ContinuationInfo::Kind;

// ---- data about code objects that were made here, as their "extra"

Py_ssize_t extra_index = -1;
PyInterpreterState* extra_owner = nullptr;

void deleteInfo(void* info) {
  delete static_cast<ContinuationInfo*>(info);
}

void attach(const Object& code, std::unique_ptr<ContinuationInfo> info) {
  if (extra_index < 0) {
    extra_index = _PyEval_RequestCodeExtraIndex(deleteInfo);
    extra_owner = PyInterpreterState_Get();
    if (extra_index < 0) throw BytecodeError("no more data can be attached to code objects");
  }
  if (PyInterpreterState_Get() != extra_owner) {
    throw BytecodeError("continuations are made in one interpreter of a process only");
  }
  if (_PyCode_SetExtra(code.get(), extra_index, info.get()) < 0) throw PythonError();
  info.release();
}

// ---- checks

[[noreturn]] void refuse(const DecodedCode& code, int index, const std::string& why) {
  throw BytecodeError(describe(code, index) + ": " + why);
}

void checkFlags(const DecodedCode& root) {
  if (root.flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)) {
    throw BytecodeError("a generator or a coroutine has no continuations");
  }
  constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  if ((root.flags & kFunction) != kFunction) {
    throw BytecodeError("a class body or a module has no continuations");
  }
}

void checkPrefix(const DecodedCode& root, const Prefix& prefix) {
  std::vector<int> cells;
  for (size_t i = 0; i < root.slots.size(); ++i) {
    if (root.slots[i].kind & kCellSlot) cells.push_back(static_cast<int>(i));
  }
  std::vector<int> made = prefix.cells;
  std::sort(made.begin(), made.end());
  if (!prefix.resumes || made != cells || prefix.copies_free != (freeCount(root) > 0)) {
    throw BytecodeError("the code does not begin by setting up its variables");
  }
}

bool withinGroup(const DecodedCode& code, int index) {
  return Continuations::groupStart(code, index) != index;
}

void checkInstruction(const DecodedCode& root, int index, int prefix_length) {
  const Instruction& at = root.instructions[index];
  switch (at.op) {
    case Op::COPY_FREE_VARS:
    case Op::MAKE_CELL:
    case Op::RESUME:
    case Op::RETURN_GENERATOR:
    case Op::YIELD_VALUE:
    case Op::SEND:
    case Op::ASYNC_GEN_WRAP:
      refuse(root, index, "no compiler writes it here");
    case Op::KW_NAMES:
      if (index + 1 >= root.size() || root.instructions[index + 1].op != Op::PRECALL) {
        refuse(root, index, "PRECALL must follow at once");
      }
      break;
    default:
      break;
  }
  // A cell or a free variable is never used as a value.
  if (has(at.op, kTakesLocal) && root.slots[at.arg].kind != kLocalSlot) {
    refuse(root, index, "the variable is a cell");
  }
  if (!isJump(at.op)) return;
  if (at.target < prefix_length) refuse(root, index, "leads into the setup of variables");
  if (withinGroup(root, at.target)) refuse(root, index, "leads into a call");
}

bool fits(const StackEntry& entry, StackKind found) {
  switch (found) {
    case StackKind::kValue:
    case StackKind::kException:
      return entry.kind == StackKind::kValue || entry.kind == StackKind::kException;
    case StackKind::kNullOrValue:
      return entry.kind == StackKind::kNull || entry.kind == StackKind::kValue;
    case StackKind::kNull:
    case StackKind::kPrevious:
    case StackKind::kOffset:
      return entry.kind == found;
  }
  return false;
}

size_t mixed(size_t hash, size_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29);
}

}  // namespace

// ---- layouts

size_t LayoutHash::operator()(const Layout& layout) const {
  size_t hash = layout.stack.size();
  for (const StackEntry& entry : layout.stack) {
    hash = mixed(hash, static_cast<size_t>(entry.kind));
    hash = mixed(hash, static_cast<size_t>(entry.instruction + 1));
  }
  return mixed(hash, std::hash<std::vector<bool>>()(layout.bound));
}

Layout layoutOf(const DecodedCode& root, const FrameState& state) {
  Layout layout;
  for (size_t i = 0; i < state.stack.size(); ++i) {
    const StackEntry& entry = state.stack[i];
    if (entry.kind == StackKind::kNullOrValue) {
      throw BytecodeError(fmt::format("stack entry {} may be NULL or a value", i));
    }
    if (entry.kind == StackKind::kOffset && entry.instruction < 0) {
      throw BytecodeError(fmt::format("stack entry {} may be one of several offsets", i));
    }
    layout.stack.push_back(entry);
  }
  for (size_t i = 0; i < root.slots.size(); ++i) {
    const bool local = root.slots[i].kind == kLocalSlot;
    const Binding binding = state.locals.at(i);
    if (local && binding == Binding::kUnknown) {
      throw BytecodeError(fmt::format("variable {} may be bound or not", i));
    }
    layout.bound.push_back(local && binding == Binding::kBound);
  }
  return layout;
}

std::vector<Parameter> parametersOf(const DecodedCode& root, const Layout& layout) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < layout.stack.size(); ++i) {
    const StackKind kind = layout.stack[i].kind;
    if (kind == StackKind::kValue || kind == StackKind::kPrevious) {
      parameters.push_back({static_cast<int>(i), -1});
    }
  }
  for (size_t i = 0; i < root.slots.size(); ++i) {
    if (root.slots[i].kind == kLocalSlot && layout.bound.at(i)) {
      parameters.push_back({-1, static_cast<int>(i)});
    }
  }
  return parameters;
}

// ---- continuations

struct Continuations::Implementation {
  struct Key {
    Kind kind;
    int instruction;
    Layout layout;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      const size_t hash =
          mixed(static_cast<size_t>(key.kind), static_cast<size_t>(key.instruction));
      return mixed(hash, LayoutHash()(key.layout));
    }
  };

  Implementation(PyCodeObject* code, DecodedCode decoded)
      : root_code(Object::share(reinterpret_cast<PyObject*>(code))),
        root(std::move(decoded)),
        prefix(readPrefix(root)),
        kinds(root) {}

  // Returns the layout in the form that is compared: without bits of cells, and without offsets
  // of entries that have none.
  Layout checked(int instruction, Layout layout) const;
  // Returns whether the handler of the instruction can begin with the layout. It can if the
  // instruction may fail; before PUSH_EXC_INFO, for example, which never fails, it cannot.
  bool covered(int instruction, const Layout& layout) const;
  // Returns the state that the layout describes.
  FrameState stateOf(const Layout& layout) const;
  Object find(const Key& key) const {
    const auto found = made.find(key);
    return found == made.end() ? Object() : found->second;
  }
  Object add(const Key& key, EntryCode entry);

  Object root_code;
  const DecodedCode root;
  const Prefix prefix;
  const StackKinds kinds;
  std::unordered_map<Key, Object, KeyHash> made;
};

Layout Continuations::Implementation::checked(int instruction, Layout layout) const {
  if (instruction < prefix.length || instruction >= root.size()) {
    refuse(root, instruction, "no continuation can begin here");
  }
  const std::optional<FrameState> state = kinds.before(instruction);
  if (!state) refuse(root, instruction, "no path leads here");
  if (layout.stack.size() != state->stack.size() || layout.bound.size() != root.slots.size()) {
    refuse(root, instruction, "the layout has another number of entries or variables");
  }
  for (size_t i = 0; i < layout.stack.size(); ++i) {
    StackEntry& entry = layout.stack[i];
    if (!fits(entry, state->stack[i].kind)) {
      refuse(root, instruction, fmt::format("stack entry {} cannot be of this kind", i));
    }
    if (entry.kind == StackKind::kException &&
        (i == 0 || layout.stack[i - 1].kind != StackKind::kPrevious)) {
      entry.kind = StackKind::kValue;
    }
    if (entry.kind != StackKind::kOffset) {
      entry.instruction = -1;
    } else if (entry.instruction < prefix.length || entry.instruction >= root.size()) {
      refuse(root, instruction, fmt::format("stack entry {} names no instruction", i));
    }
  }
  for (size_t i = 0; i < layout.bound.size(); ++i) {
    if (root.slots[i].kind != kLocalSlot) {
      layout.bound[i] = false;
    } else if (state->locals[i] == (layout.bound[i] ? Binding::kUnbound : Binding::kBound)) {
      refuse(root, instruction,
             fmt::format("variable {} cannot be {}", i, layout.bound[i] ? "bound" : "unbound"));
    }
  }
  return layout;
}

FrameState Continuations::Implementation::stateOf(const Layout& layout) const {
  FrameState state;
  state.stack = layout.stack;
  for (size_t i = 0; i < root.slots.size(); ++i) {
    const bool bound = layout.bound[i] || root.slots[i].kind != kLocalSlot;
    state.locals.push_back(bound ? Binding::kBound : Binding::kUnbound);
  }
  return state;
}

bool Continuations::Implementation::covered(int instruction, const Layout& layout) const {
  const ExceptionRange* range = rangeAt(root, instruction);
  if (!range) return false;
  const std::optional<FrameState> handler = kinds.before(range->target);
  if (!handler) return false;
  const auto depth = static_cast<size_t>(range->depth);
  for (size_t i = 0; i < layout.stack.size(); ++i) {
    const StackEntry& entry = layout.stack[i];
    if (i < depth ? !fits(entry, handler->stack[i].kind) : entry.kind == StackKind::kPrevious) {
      return false;
    }
  }
  return layout.stack.size() >= depth;
}

Object Continuations::Implementation::add(const Key& key, EntryCode entry) {
  auto info = std::make_unique<ContinuationInfo>();
  info->root = root_code;
  info->kind = key.kind;
  info->instruction = key.instruction;
  info->layout = key.layout;
  info->instructions = std::move(entry.instructions);
  info->slots = std::move(entry.slots);
  attach(entry.code, std::move(info));
  // Another call may have come in between: Python runs finalizers when it allocates.
  return made.emplace(key, std::move(entry.code)).first->second;
}

Continuations::Continuations(PyCodeObject* code) {
  if (find(code)) throw BytecodeError("a continuation has no continuations of its own");
  DecodedCode root = decode(code);
  checkFlags(root);
  const Prefix prefix = readPrefix(root);
  checkPrefix(root, prefix);
  for (int i = prefix.length; i < root.size(); ++i) checkInstruction(root, i, prefix.length);
  for (const ExceptionRange& range : root.exception_ranges) {
    if (range.target < prefix.length || withinGroup(root, range.target)) {
      throw BytecodeError("a handler begins in the setup of variables or in a call");
    }
  }
  implementation_ = std::make_unique<Implementation>(code, std::move(root));
}

Continuations::~Continuations() = default;

Object Continuations::resumeAt(int instruction, const Layout& layout) {
  Implementation& self = *implementation_;
  const Implementation::Key key{Kind::kResume, instruction, self.checked(instruction, layout)};
  if (withinGroup(self.root, instruction)) refuse(self.root, instruction, "is a part of a call");
  if (Object known = self.find(key)) return known;
  return self.add(key, writeEntry({self.root,
                                   self.prefix.length,
                                   instruction,
                                   key.layout,
                                   instruction,
                                   {},
                                   self.covered(instruction, key.layout)}));
}

Object Continuations::breakAt(int instruction, const Layout& layout) {
  Implementation& self = *implementation_;
  const DecodedCode& root = self.root;
  if (instruction >= 0 && instruction < root.size()) {
    instruction = groupStart(root, instruction);
  }
  const Implementation::Key key{Kind::kBreak, instruction, self.checked(instruction, layout)};
  if (Object known = self.find(key)) return known;
  EntryPlan plan{root, self.prefix.length, instruction, key.layout, instruction + 1, {}, false};
  plan.covered = self.covered(instruction, key.layout);
  while (plan.copied_end < root.size() && withinGroup(root, plan.copied_end)) ++plan.copied_end;
  const int last = plan.copied_end - 1;
  const Op op = root.instructions[last].op;
  for (const bool jumps : {false, true}) {
    if (jumps ? !isJump(op) : has(op, kEndsPath)) continue;
    FrameState state = self.stateOf(key.layout);
    for (int i = instruction; i <= last; ++i) applyInstruction(root, i, jumps, state);
    for (StackEntry& entry : state.stack) {
      // The copy of LOAD_METHOD pushes NULL and the bound method.
      if (entry.kind == StackKind::kNullOrValue) entry.kind = StackKind::kNull;
    }
    Exit exit{jumps, layoutOf(root, state), {}};
    exit.continuation = resumeAt(jumps ? root.instructions[last].target : last + 1, exit.layout);
    plan.exits.push_back(std::move(exit));
  }
  return self.add(key, writeEntry(plan));
}

const DecodedCode& Continuations::root() const {
  return implementation_->root;
}

std::optional<FrameState> Continuations::stateBefore(int instruction) const {
  return implementation_->kinds.before(instruction);
}

int Continuations::groupStart(const DecodedCode& code, int instruction) {
  const auto is = [&](int index, Op op) {
    return index >= 0 && index < code.size() && code.instructions[index].op == op;
  };
  if (is(instruction, Op::CALL) && is(instruction - 1, Op::PRECALL)) --instruction;
  if (is(instruction, Op::PRECALL) && is(instruction - 1, Op::KW_NAMES)) --instruction;
  return instruction;
}

const ContinuationInfo* Continuations::find(PyCodeObject* code) {
  if (extra_index < 0 || PyInterpreterState_Get() != extra_owner) return nullptr;
  void* extra = nullptr;
  if (_PyCode_GetExtra(reinterpret_cast<PyObject*>(code), extra_index, &extra) < 0) {
    throw PythonError();
  }
  return static_cast<const ContinuationInfo*>(extra);
}

}  // namespace wick::capture
