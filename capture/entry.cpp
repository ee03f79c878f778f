#include "capture/entry.h"

#include <fmt/format.h>

#include "capture/bytecode/code_chain.h"

namespace wick::capture {

FrameRoots rootsOf(FrameView frame) {
  return {frame.slots(), reinterpret_cast<PyObject*>(frame.function()), frame.globals(),
          frame.builtins()};
}

bool Entry::matches(const FrameRoots& roots, std::vector<Object>& registers) const {
  if (world->state() != state) return false;
  if (autocast && world->autocast() != *autocast) return false;
  registers.assign(static_cast<size_t>(guards.numRegisters()), Object());
  return guards.matches(roots, registers.data());
}

std::vector<Object> Entry::tensorsFrom(const std::vector<Object>& registers) const {
  std::vector<Object> tensors;
  for (const int input : inputs) {
    const Object& each = registers[static_cast<size_t>(input)];
    tensors.push_back(arrays.count(input) == 0 ? each : world->tensorOn(each.get()));
  }
  return tensors;
}

std::optional<PyObject*> Entry::run(FrameView frame, std::vector<Object>& registers) const {
  if (plain) return std::nullopt;
  if (graph) {
    std::vector<Object> outputs;
    bool touched = false;
    try {
      graph->run(tensorsFrom(registers), outputs, touched);
    } catch (const PythonError&) {
      // Nothing has happened yet that the program could see: it raises the error itself.
      if (touched || !PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
      PyErr_Clear();
      return std::nullopt;
    }
    for (Object& output : outputs) registers.push_back(std::move(output));
  }
  try {
    recipe.run(registers, *world);
    if (value >= 0) return registers[static_cast<size_t>(value)].leak();
    CodeCall next{continuation, {}, {}};
    if (!cells.empty()) {
      next.closure = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(cells.size())));
      for (size_t i = 0; i < cells.size(); ++i) {
        PyTuple_SET_ITEM(next.closure.get(), static_cast<Py_ssize_t>(i),
                         Py_NewRef(registers[static_cast<size_t>(cells[i])].get()));
      }
    }
    next.arguments.reserve(arguments.size());
    for (const int argument : arguments) {
      next.arguments.push_back(registers[static_cast<size_t>(argument)]);
    }
    registers.clear();
    frame.clearSlots();
    // A continuation that breaks again leaves the call to the entry of the original function.
    if (handOver(frame, next)) return Py_NewRef(Py_None);
    return callChain(frame.globals(), frame.builtins(), std::move(next)).leak();
  } catch (const PythonError&) {
    return nullptr;
  }
}

std::string Entry::text() const {
  std::string all;
  for (const std::string& line : guards.lines()) all += "  guard   " + line + "\n";
  if (graph) all += graph->text();
  for (const std::string& line : recipe.lines()) all += "  replay  " + line + "\n";
  if (plain) {
    all += "  runs plainly\n";
  } else if (value >= 0) {
    all += fmt::format("  return r{}\n", value);
  } else {
    all += fmt::format("  break   {} ({}:{})\n", break_reason, break_file, break_line);
  }
  return all;
}

}  // namespace wick::capture
