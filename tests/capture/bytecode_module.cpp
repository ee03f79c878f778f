// The module `bytecode_module`: capture/bytecode/ for tests in Python.
#include <fmt/format.h>

#include <utility>

#include "capture/bytecode/assemble.h"
#include "capture/bytecode/edit.h"
#include "capture/bytecode/prefix.h"
#include "capture/bytecode/stack_depth.h"
#include "tests/capture/module_helpers.h"

namespace wick::capture {
namespace bytecode_module {
namespace {

// opcodes() -> [(name, number, caches, facts)]
PyObject* opcodes(PyObject*, PyObject*) {
  return guarded([] {
    Object list = Object::checked(PyList_New(0));
    for (int number = 0; number < 256; ++number) {
      if (number != 0 && !isOpcode(static_cast<uint8_t>(number))) continue;
      const Op op = static_cast<Op>(number);
      append(list, built("(siii)", std::string(nameOf(op)).c_str(), number, cacheEntries(op),
                         static_cast<int>(factsOf(op))));
    }
    return list;
  });
}

// general_form(number) -> number or None
PyObject* generalFormOf(PyObject*, PyObject* args) {
  return guarded([&] {
    int number = 0;
    parse(args, "i", &number);
    const auto op = generalForm(static_cast<uint8_t>(number));
    return op ? built("i", static_cast<int>(*op)) : Object::share(Py_None);
  });
}

// other_direction(number) -> number or None
PyObject* otherDirectionOf(PyObject*, PyObject* args) {
  return guarded([&] {
    int number = 0;
    parse(args, "i", &number);
    const auto op = otherDirection(static_cast<Op>(number));
    return op ? built("i", static_cast<int>(*op)) : Object::share(Py_None);
  });
}

// stack_effect(number, arg, jumps) -> int
PyObject* stackEffectOf(PyObject*, PyObject* args) {
  return guarded([&] {
    int number = 0, jumps = 0;
    unsigned int arg = 0;
    parse(args, "iIp", &number, &arg, &jumps);
    return built("L", static_cast<long long>(stackEffect(static_cast<Op>(number), arg, jumps)));
  });
}

// decode(code) -> ([(number, arg, target, unit, location)], [range])
PyObject* decodeCode(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    const DecodedCode result = decoded(code);
    Object instructions = Object::checked(PyList_New(0));
    for (const Instruction& at : result.instructions) {
      const Location& place = at.location;
      append(instructions,
             built("(iIii(iiii))", static_cast<int>(at.op), at.arg, at.target, at.unit, place.line,
                   place.end_line, place.column, place.end_column));
    }
    Object ranges = Object::checked(PyList_New(0));
    for (const ExceptionRange& range : result.exception_ranges) {
      append(ranges, built("(iiiii)", range.start, range.end, range.target, range.depth,
                           static_cast<int>(range.lasti)));
    }
    return built("(OO)", instructions.get(), ranges.get());
  });
}

// assemble(code, instructions=None, ranges=None) -> code; the lists replace those of the code, as
// decode() returns them, without units and locations.
PyObject* assembleCode(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *instructions = nullptr, *ranges = nullptr;
    parse(args, "O!|O!O!", &PyCode_Type, &code, &PyList_Type, &instructions, &PyList_Type, &ranges);
    DecodedCode result = decoded(code);
    if (instructions) {
      result.instructions.clear();
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(instructions); ++i) {
        int number = 0;
        Instruction at;
        parse(PyList_GET_ITEM(instructions, i), "iIi", &number, &at.arg, &at.target);
        at.op = static_cast<Op>(number);
        result.instructions.push_back(at);
      }
    }
    if (ranges) {
      result.exception_ranges.clear();
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(ranges); ++i) {
        ExceptionRange range;
        int lasti = 0;
        parse(PyList_GET_ITEM(ranges, i), "iiiii", &range.start, &range.end, &range.target,
              &range.depth, &lasti);
        range.lasti = lasti != 0;
        result.exception_ranges.push_back(range);
      }
    }
    return assemble(result);
  });
}

// depths(code) -> ([depth], deepest)
PyObject* depths(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    const StackDepths found = stackDepths(decoded(code));
    Object list = Object::checked(PyList_New(0));
    for (int depth : found.before) append(list, built("i", depth));
    return built("(Oi)", list.get(), found.deepest);
  });
}

// insert_nops(code, [index], count, past=False, handler=0) -> code
PyObject* insertNops(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *indices = nullptr;
    int count = 0, past = 0, handler = 0;
    parse(args, "O!O!i|pi", &PyCode_Type, &code, &PyList_Type, &indices, &count, &past, &handler);
    DecodedCode result = decoded(code);
    Editor editor(result);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices); ++i) {
      Sequence nops;
      for (int k = 0; k < count; ++k) nops.emit(Op::NOP);
      editor.insert(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(indices, i))), std::move(nops),
                    past ? Editor::Jumps::kPast : Editor::Jumps::kToInserted,
                    static_cast<Editor::Handler>(handler));
    }
    const Editor::Moves moves = editor.finish();
    for (int start : moves.of_insertion) {
      if (result.instructions[start].op != Op::NOP) throw BytecodeError("where are the NOPs?");
    }
    return assemble(result);
  });
}

// erase_nops(code) -> code
PyObject* eraseNops(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    DecodedCode result = decoded(code);
    Editor editor(result);
    for (int i = 0; i < result.size(); ++i) {
      if (result.instructions[i].op == Op::NOP) editor.erase(i, i + 1);
    }
    editor.finish();
    return assemble(result);
  });
}

// return_early(code, constant) -> code that returns the constant at once if its first argument is
// None, and begins anew with True as the argument if it is False.
PyObject* returnEarly(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *constant = nullptr;
    parse(args, "O!O", &PyCode_Type, &code, &constant);
    DecodedCode result = decoded(code);
    const int start = readPrefix(result).length;
    Sequence sequence;
    const Sequence::Label begin = sequence.label(), given = sequence.label();
    const Sequence::Label go_on = sequence.label();
    sequence.bind(begin);
    sequence.emit(Op::LOAD_FAST, 0);
    sequence.jump(Op::POP_JUMP_FORWARD_IF_NOT_NONE, given);
    sequence.emit(Op::LOAD_CONST, addConstant(result, constant));
    sequence.emit(Op::RETURN_VALUE);
    sequence.bind(given);
    sequence.emit(Op::LOAD_FAST, 0);
    sequence.emit(Op::LOAD_CONST, addConstant(result, Py_False));
    sequence.emit(Op::IS_OP);
    sequence.jump(Op::POP_JUMP_FORWARD_IF_FALSE, go_on);
    sequence.emit(Op::LOAD_CONST, addConstant(result, Py_True));
    sequence.emit(Op::STORE_FAST, 0);
    sequence.jump(Op::JUMP_FORWARD, begin);
    sequence.bind(go_on);
    Editor editor(result);
    editor.insert(start, std::move(sequence), Editor::Jumps::kPast, Editor::Handler::kNone);
    editor.finish();
    return assemble(result);
  });
}

// write_prefix(code) -> code
PyObject* writePrefixOf(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    DecodedCode result = decoded(code);
    writePrefix(result);
    return assemble(result);
  });
}

// read_prefix(code) -> (copies_free, [cell], generator, resumes, length)
PyObject* readPrefixOf(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject* code = nullptr;
    parse(args, "O!", &PyCode_Type, &code);
    const Prefix prefix = readPrefix(decoded(code));
    Object cells = Object::checked(PyList_New(0));
    for (int cell : prefix.cells) append(cells, built("i", cell));
    return built("(iOiii)", prefix.copies_free, cells.get(), prefix.generator, prefix.resumes,
                 prefix.length);
  });
}

// add_slot(code, name, kind) -> code with one more variable
PyObject* addSlotTo(PyObject*, PyObject* args) {
  return guarded([&] {
    PyObject *code = nullptr, *name = nullptr;
    int kind = 0;
    parse(args, "O!Ui", &PyCode_Type, &code, &name, &kind);
    DecodedCode result = decoded(code);
    addSlot(result, name, static_cast<SlotKind>(kind));
    writePrefix(result);
    return assemble(result);
  });
}

PyMethodDef methods[] = {
    {"opcodes", opcodes, METH_NOARGS, nullptr},
    {"general_form", generalFormOf, METH_VARARGS, nullptr},
    {"other_direction", otherDirectionOf, METH_VARARGS, nullptr},
    {"stack_effect", stackEffectOf, METH_VARARGS, nullptr},
    {"decode", decodeCode, METH_VARARGS, nullptr},
    {"assemble", assembleCode, METH_VARARGS, nullptr},
    {"depths", depths, METH_VARARGS, nullptr},
    {"insert_nops", insertNops, METH_VARARGS, nullptr},
    {"erase_nops", eraseNops, METH_VARARGS, nullptr},
    {"return_early", returnEarly, METH_VARARGS, nullptr},
    {"write_prefix", writePrefixOf, METH_VARARGS, nullptr},
    {"read_prefix", readPrefixOf, METH_VARARGS, nullptr},
    {"add_slot", addSlotTo, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "bytecode_module",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace bytecode_module
}  // namespace wick::capture

PyMODINIT_FUNC PyInit_bytecode_module() {
  return wick::capture::makeModule(wick::capture::bytecode_module::definition,
                                   "bytecode_module.BytecodeError");
}
