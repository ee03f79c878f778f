// The module `resume_module`: capture/resume/ for tests in Python.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "capture/bytecode/assemble.h"
#include "capture/bytecode/code_chain.h"
#include "capture/bytecode/edit.h"
#include "capture/bytecode/frame_hook.h"
#include "capture/bytecode/prefix.h"
#include "capture/resume/continuation.h"
#include "capture/resume/state_call.h"
#include "tests/capture/module_helpers.h"

namespace wick::capture {
namespace resume_module {
namespace {

constexpr const char* kKinds[] = {"value",    "null",      "null or value",
                                  "previous", "exception", "offset"};
constexpr char kBindings[] = {'-', '+', '?'};

PyCodeObject* codeOf(PyObject* object) {
  return reinterpret_cast<PyCodeObject*>(object);
}

Object listOf(const std::vector<int>& numbers) {
  Object list = Object::checked(PyList_New(0));
  for (int number : numbers) append(list, built("i", number));
  return list;
}

Object stackOf(const std::vector<StackEntry>& stack) {
  Object list = Object::checked(PyList_New(0));
  for (const StackEntry& entry : stack) {
    append(list, built("(si)", kKinds[static_cast<int>(entry.kind)], entry.instruction));
  }
  return list;
}

// kinds(code) -> [None or ([(kind, instruction)], bindings)]
PyObject* kinds(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    const DecodedCode root = decoded(code);
    const StackKinds found(root);
    Object list = Object::checked(PyList_New(0));
    for (int i = 0; i < root.size(); ++i) {
      const std::optional<FrameState> state = found.before(i);
      if (!state) {
        append(list, Object::share(Py_None));
        continue;
      }
      std::string bindings;
      for (Binding binding : state->locals) bindings += kBindings[static_cast<int>(binding)];
      append(list, built("(Os)", stackOf(state->stack).get(), bindings.c_str()));
    }
    return list;
  });
}

Layout readLayout(PyObject* stack, const char* bound) {
  Layout layout;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stack); ++i) {
    const char* name = nullptr;
    StackEntry entry;
    parse(PyList_GET_ITEM(stack, i), "si", &name, &entry.instruction);
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const char* each) { return std::string(name) == each; });
    if (kind == std::end(kKinds)) throw BytecodeError("no such kind");
    entry.kind = static_cast<StackKind>(kind - std::begin(kKinds));
    layout.stack.push_back(entry);
  }
  for (; *bound; ++bound) layout.bound.push_back(*bound == kBindings[1]);
  return layout;
}

// make(code, index, breaks, stack, bindings) -> (code, code made once more)
PyObject* make(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *stack = nullptr;
    int index = 0, breaks = 0;
    const char* bound = nullptr;
    parse(args, "O!ipO!s", &PyCode_Type, &code, &index, &breaks, &PyList_Type, &stack, &bound);
    Continuations continuations(codeOf(code));
    const Layout layout = readLayout(stack, bound);
    const auto get = [&] {
      return breaks ? continuations.breakAt(index, layout) : continuations.resumeAt(index, layout);
    };
    const Object first = get();
    return built("(OO)", first.get(), get().get());
  });
}

// The layout of a state. Methods are NULL or values, as the caller knows, and an offset that may be
// one of several is that of the first instruction that such a handler is for: nobody sees which.
Layout chosenLayout(const DecodedCode& root, FrameState state, bool methods) {
  int offset = readPrefix(root).length;
  for (auto range = root.exception_ranges.rbegin(); range != root.exception_ranges.rend();
       ++range) {
    if (range->lasti) offset = range->start;
  }
  for (StackEntry& entry : state.stack) {
    if (entry.kind == StackKind::kNullOrValue) {
      entry.kind = methods ? StackKind::kValue : StackKind::kNull;
    }
    if (entry.kind == StackKind::kOffset && entry.instruction < 0) entry.instruction = offset;
  }
  return layoutOf(root, state);
}

// LOAD_METHOD as instructions that always push NULL and a bound method.
void bindMethods(Editor& editor, const DecodedCode& code) {
  for (int i = 0; i < code.size(); ++i) {
    if (code.instructions[i].op != Op::LOAD_METHOD) continue;
    Sequence sequence;
    sequence.setLocation(code.instructions[i].location);
    sequence.emit(Op::LOAD_ATTR, code.instructions[i].arg);
    sequence.emit(Op::PUSH_NULL);
    sequence.emit(Op::SWAP, 2);
    editor.insert(i, std::move(sequence));
    editor.erase(i, i + 1);
  }
}

// Adds locals; returns their slots, and moves those of the root.
std::vector<int> addTemporaries(DecodedCode& code, int count, std::vector<int>& slots) {
  std::vector<int> added;
  for (int i = 0; i < count; ++i) {
    const Object name = built("s", fmt::format(".split{}", code.slots.size()).c_str());
    const int slot = static_cast<int>(addSlot(code, name.get(), kLocalSlot));
    for (int& other : slots) other += other >= slot;
    added.push_back(slot);
  }
  return added;
}

// The positions of a code's root in it.
struct Root {
  Object code;
  std::vector<int> instructions;
  std::vector<int> slots;
};

Root rootOf(PyObject* code, const DecodedCode& decoded_code) {
  if (const ContinuationInfo* info = Continuations::find(codeOf(code))) {
    return {info->root, info->instructions, info->slots};
  }
  Root root{Object::share(code), {}, {}};
  for (int i = 0; i < decoded_code.size(); ++i) root.instructions.push_back(i);
  for (size_t i = 0; i < decoded_code.slots.size(); ++i) root.slots.push_back(static_cast<int>(i));
  return root;
}

// Calls `probe` with the variables whose binding is not known, and whether they are expected to be
// bound; jumps to the label if it returns false.
void appendProbe(Sequence& sequence, DecodedCode& code, const DecodedCode& root,
                 const FrameState& state, PyObject* probe, bool expected, Sequence::Label label) {
  const Object names = Object::checked(PyDict_New());
  for (size_t i = 0; i < state.locals.size(); ++i) {
    if (state.locals[i] != Binding::kUnknown) continue;
    PyObject* bound = expected ? Py_True : Py_False;
    if (PyDict_SetItem(names.get(), root.slots[i].name.get(), bound) < 0) throw PythonError();
  }
  sequence.emit(Op::PUSH_NULL);
  sequence.emit(Op::LOAD_CONST, addConstant(code, probe));
  sequence.emit(Op::LOAD_CONST, addConstant(code, names.get()));
  sequence.emit(Op::PRECALL, 1);
  sequence.emit(Op::CALL, 1);
  sequence.jump(Op::POP_JUMP_FORWARD_IF_FALSE, label);
}

// split(code, index, breaks, methods, probe, expected) -> (code, continuation), or None if no path
// leads there. The code calls the continuation of its root when it comes to the instruction with
// this index in the root. `methods` tells that LOAD_METHOD will find a method each time; else it is
// rewritten. Variables that may be bound or not are taken to be as expected; the probe, if it is not
// None, tells at run time whether they are, and if not the code goes on without the call.
PyObject* split(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *probe = nullptr;
    int index = 0, breaks = 0, methods = 0, expected = 0;
    parse(args, "O!ippOp", &PyCode_Type, &code, &index, &breaks, &methods, &probe, &expected);
    DecodedCode result = decoded(code);
    Root root = rootOf(code, result);
    Continuations continuations(codeOf(root.code.get()));
    const DecodedCode& root_code = continuations.root();
    index = Continuations::groupStart(root_code, index);
    const std::optional<FrameState> found = continuations.stateBefore(index);
    const auto position = std::find(root.instructions.rbegin(), root.instructions.rend(), index);
    if (!found || position == root.instructions.rend() || index < readPrefix(root_code).length) {
      return Object::share(Py_None);
    }
    FrameState state = *found;
    const Binding taken = expected ? Binding::kBound : Binding::kUnbound;
    std::replace(state.locals.begin(), state.locals.end(), Binding::kUnknown, taken);
    const Layout layout = chosenLayout(root_code, state, methods != 0);
    const Object continuation =
        breaks ? continuations.breakAt(index, layout) : continuations.resumeAt(index, layout);
    StatePositions positions;
    positions.temporaries = addTemporaries(result, temporariesFor(layout), root.slots);
    positions.slots = root.slots;
    Editor editor(result);
    const int at = static_cast<int>(root.instructions.rend() - position) - 1;
    Sequence sequence;
    sequence.setLocation(result.instructions[at].location);
    const Sequence::Label go_on = sequence.label();
    if (probe != Py_None) {
      appendProbe(sequence, result, root_code, *found, probe, expected != 0, go_on);
    }
    appendHandOver(sequence, result, root_code, positions, layout, continuation.get());
    sequence.bind(go_on);
    editor.insert(at, std::move(sequence), Editor::Jumps::kToInserted, Editor::Handler::kNone);
    if (!methods) bindMethods(editor, result);
    editor.finish();
    return built("(OO)", assemble(result).get(), continuation.get());
  });
}

// ---- calls that are driven

// The frames that drive() changes, and how often it did.
struct Driver {
  PyObject* codes;              // a dict; borrowed
  bool every = false;           // a continuation breaks at its first instruction
  PyObject* plainly = nullptr;  // the code whose next frame runs as it is
  std::map<PyObject*, std::unique_ptr<Continuations>> roots;
  long chains = 0;
  long handed = 0;
  long breaks = 0;
};

bool takesPositionalOnly(PyCodeObject* code) {
  return !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR)) &&
         code->co_kwonlyargcount == 0;
}

// Returns the code to call in place of a frame's, or null.
Object replacement(Driver& driver, PyCodeObject* code) {
  const Object address = Object::checked(PyLong_FromVoidPtr(code));
  PyObject* const found = PyDict_GetItemWithError(driver.codes, address.get());
  if (found) return Object::share(found);
  if (PyErr_Occurred()) throw PythonError();
  const ContinuationInfo* const info = driver.every ? Continuations::find(code) : nullptr;
  if (!info || info->kind != ContinuationInfo::Kind::kResume) return {};
  auto& root = driver.roots[info->root.get()];
  if (!root) root = std::make_unique<Continuations>(codeOf(info->root.get()));
  ++driver.breaks;
  return root->breakAt(info->instruction, info->layout);
}

std::optional<PyObject*> onDrivenFrame(void* context, FrameView frame, CodeData*) {
  Driver& driver = *static_cast<Driver*>(context);
  PyObject* const code = reinterpret_cast<PyObject*>(frame.code());
  if (std::exchange(driver.plainly, nullptr) == code) return std::nullopt;
  CodeCall next{replacement(driver, frame.code()),
                frame.closure() ? Object::share(frame.closure()) : Object(),
                {}};
  if (!next.code || !takesPositionalOnly(frame.code())) return std::nullopt;
  for (int i = 0; i < frame.code()->co_argcount; ++i) next.arguments.push_back(frame.takeSlot(i));
  frame.clearSlots();
  if (next.code.get() == code) driver.plainly = code;
  if (handOver(frame, next)) {
    ++driver.handed;
    return Py_NewRef(Py_None);
  }
  ++driver.chains;
  return callChain(frame.globals(), frame.builtins(), std::move(next)).leak();
}

// drive(codes, every, function, args) -> (value, chains, calls handed over by frames that did not
// start, breaks). Calls the function. When a frame of a code starts whose id() is in the dict, the
// code in the dict is called with its arguments: by the chain that called the frame, or else by a new one. `every`
// does so for each continuation, and calls the code that breaks at its first instruction.
PyObject* drive(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *codes, *function, *arguments;
    int every = 0;
    parse(args, "O!pOO!", &PyDict_Type, &codes, &every, &function, &PyTuple_Type, &arguments);
    Driver driver;
    driver.codes = codes;
    driver.every = every != 0;
    const HookScope scope(onDrivenFrame, &driver);
    const Object value = Object::checked(PyObject_CallObject(function, arguments));
    return built("(Olll)", value.get(), driver.chains, driver.handed, driver.breaks);
  });
}

// run_paused(function, args) -> value. The hook is paused until the call returns.
PyObject* runPaused(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *function, *arguments;
    parse(args, "OO!", &function, &PyTuple_Type, &arguments);
    const PauseHook pause;
    return Object::checked(PyObject_CallObject(function, arguments));
  });
}

// stack_address() -> an address on the C stack
PyObject* stackAddress(PyObject*, PyObject*) {
  return PyLong_FromVoidPtr(__builtin_frame_address(0));
}

// info(code) -> (root, breaks, instruction, stack, bindings, [root's instruction], [slot]) or None
PyObject* info(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    const ContinuationInfo* found = Continuations::find(codeOf(code));
    if (!found) return Object::share(Py_None);
    std::string bindings;
    for (bool bound : found->layout.bound) bindings += kBindings[bound];
    return built("(OiiOsOO)", found->root.get(),
                 static_cast<int>(found->kind == ContinuationInfo::Kind::kBreak),
                 found->instruction, stackOf(found->layout.stack).get(), bindings.c_str(),
                 listOf(found->instructions).get(), listOf(found->slots).get());
  });
}

// group_start(code, index) -> index
PyObject* groupStart(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    int index = 0;
    parse(args, "O!i", &PyCode_Type, &code, &index);
    return built("i", Continuations::groupStart(decoded(code), index));
  });
}

// names(code) -> [(name of the operation, argument, target, line, code unit)]
PyObject* names(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    Object list = Object::checked(PyList_New(0));
    for (const Instruction& at : decoded(code).instructions) {
      append(list, built("(sIiii)", std::string(nameOf(at.op)).c_str(), at.arg, at.target,
                         at.location.line, at.unit));
    }
    return list;
  });
}

PyMethodDef methods[] = {
    {"kinds", kinds, METH_VARARGS, nullptr},
    {"make", make, METH_VARARGS, nullptr},
    {"split", split, METH_VARARGS, nullptr},
    {"drive", drive, METH_VARARGS, nullptr},
    {"run_paused", runPaused, METH_VARARGS, nullptr},
    {"stack_address", stackAddress, METH_NOARGS, nullptr},
    {"info", info, METH_VARARGS, nullptr},
    {"group_start", groupStart, METH_VARARGS, nullptr},
    {"names", names, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "resume_module",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace resume_module
}  // namespace wick::capture

PyMODINIT_FUNC PyInit_resume_module() {
  return wick::capture::makeModule(wick::capture::resume_module::definition,
                                   "resume_module.BytecodeError");
}
