// Sizes of instructions depend on the distances of jumps, and these on sizes. All instructions
// begin as short as they can be and only grow, until no jump needs more: the smallest solution.
#include "capture/bytecode/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "capture/bytecode/exception_table.h"
#include "capture/bytecode/line_table.h"
#include "capture/bytecode/stack_depth.h"

namespace wick::capture {
namespace {

int extensionsFor(uint32_t arg) {
  return arg < 1u << 8 ? 0 : arg < 1u << 16 ? 1 : arg < 1u << 24 ? 2 : 3;
}

class Encoder {
 public:
  explicit Encoder(const DecodedCode& code) : code_(code) {}

  EncodedCode run() {
    checkDirections();
    args_.reserve(code_.instructions.size());
    for (const Instruction& at : code_.instructions) {
      if (at.arg > INT_MAX) throw BytecodeError("an argument is too large");
      args_.push_back(isJump(at.op) ? 0 : at.arg);
    }
    extensions_.resize(args_.size());
    for (size_t i = 0; i < args_.size(); ++i) extensions_[i] = extensionsFor(args_[i]);
    do {
      place();
    } while (lengthenJumps());
    writeUnits();
    return std::move(result_);
  }
  // Sizes of the instructions in code units.
  std::vector<int> sizes() const {
    std::vector<int> sizes;
    for (int i = 0; i < code_.size(); ++i) sizes.push_back(sizeOf(i));
    return sizes;
  }

 private:
  void checkDirections() const {
    for (int i = 0; i < code_.size(); ++i) {
      const Instruction& at = code_.instructions[i];
      if (!isJump(at.op) || has(at.op, kJumpsBackward) == (at.target <= i)) continue;
      throw BytecodeError(
          fmt::format("{} cannot lead to instruction {}", describe(code_, i), at.target));
    }
  }

  int sizeOf(int i) const { return extensions_[i] + 1 + cacheEntries(code_.instructions[i].op); }

  void place() {
    int64_t end = 0;
    result_.starts.clear();
    result_.units_of.clear();
    for (int i = 0; i < code_.size(); ++i) {
      result_.starts.push_back(static_cast<int>(end));
      result_.units_of.push_back(static_cast<int>(end + extensions_[i]));
      end += sizeOf(i);
      if (end > INT_MAX / 2) throw BytecodeError("the code is too long");
    }
    result_.starts.push_back(static_cast<int>(end));
  }

  // Computes the distances of jumps; returns whether one needs more EXTENDED_ARG than before.
  bool lengthenJumps() {
    bool grown = false;
    for (int i = 0; i < code_.size(); ++i) {
      const Instruction& at = code_.instructions[i];
      if (!isJump(at.op)) continue;
      const int next = result_.starts[i + 1];
      const int target = result_.starts[at.target];
      args_[i] = static_cast<uint32_t>(has(at.op, kJumpsBackward) ? next - target : target - next);
      const int needed = extensionsFor(args_[i]);
      if (needed <= extensions_[i]) continue;
      // throw() reads its lowest byte only.
      if (at.op == Op::SEND) throw BytecodeError(describe(code_, i) + " leads too far");
      extensions_[i] = needed;
      grown = true;
    }
    return grown;
  }

  void writeUnits() {
    result_.units.reserve(2 * static_cast<size_t>(result_.starts.back()));
    for (int i = 0; i < code_.size(); ++i) {
      for (int e = extensions_[i]; e > 0; --e) write(Op::EXTENDED_ARG, args_[i] >> (8 * e));
      write(code_.instructions[i].op, args_[i]);
      for (int c = cacheEntries(code_.instructions[i].op); c > 0; --c) write(Op::CACHE, 0);
    }
  }
  void write(Op op, uint32_t arg) {
    result_.units += static_cast<char>(op);
    result_.units += static_cast<char>(arg & 255);
  }

  const DecodedCode& code_;
  EncodedCode result_;
  std::vector<uint32_t> args_;
  std::vector<int> extensions_;  // EXTENDED_ARG before each instruction
};

Object tupleOf(const std::vector<PyObject*>& elements) {
  Object tuple = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(elements.size())));
  for (size_t i = 0; i < elements.size(); ++i) {
    Py_INCREF(elements[i]);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), elements[i]);
  }
  return tuple;
}

Object tupleOf(const std::vector<Object>& elements) {
  std::vector<PyObject*> pointers;
  for (const Object& element : elements) pointers.push_back(element.get());
  return tupleOf(pointers);
}

Object newBytes(const std::string& text) {
  return Object::checked(
      PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

// The names of the slots that have this kind.
Object slotNames(const DecodedCode& code, SlotKind kind) {
  std::vector<PyObject*> names;
  for (const Slot& slot : code.slots) {
    if (slot.kind & kind) names.push_back(slot.name.get());
  }
  return tupleOf(names);
}

void checkObjects(const DecodedCode& code) {
  const auto require = [](bool condition, const char* why) {
    if (!condition) throw BytecodeError(why);
  };
  const auto isText = [](const Object& object) { return object && PyUnicode_Check(object.get()); };
  require(isText(code.filename) && isText(code.name) && isText(code.qualified_name),
          "a code object needs a file name, a name and a qualified name");
  for (const Object& name : code.names) require(isText(name), "a name is no string");
  for (const Slot& slot : code.slots) require(isText(slot.name), "a variable's name is no string");
  for (const Object& constant : code.constants)
    require(static_cast<bool>(constant), "a constant is null");
  require(code.argument_count >= 0 && code.positional_only_count >= 0 &&
              code.keyword_only_count >= 0 && code.first_line >= 0 &&
              code.positional_only_count <= code.argument_count,
          "a count of arguments or the first line is not possible");
}

// CPython makes slots of names alone, and takes a cell for the local of the same name.
void checkSlots(const DecodedCode& code, PyCodeObject* made) {
  bool same = static_cast<size_t>(made->co_nlocalsplus) == code.slots.size();
  const char* kinds = PyBytes_AS_STRING(made->co_localspluskinds);
  for (size_t i = 0; same && i < code.slots.size(); ++i) {
    same = static_cast<uint8_t>(kinds[i]) == code.slots[i].kind &&
           PyUnicode_Compare(PyTuple_GET_ITEM(made->co_localsplusnames, i),
                             code.slots[i].name.get()) == 0;
  }
  if (!same) {
    throw BytecodeError(
        "variables must be locals, cells and free ones in this order, and a cell needs a name that "
        "no other local has");
  }
}

}  // namespace

EncodedCode encode(const DecodedCode& code) {
  const std::vector<ExceptionRange>& ranges = code.exception_ranges;
  const auto before = [](const ExceptionRange& a, const ExceptionRange& b) {
    return a.start < b.start;
  };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before)) {
    DecodedCode sorted = code;
    std::stable_sort(sorted.exception_ranges.begin(), sorted.exception_ranges.end(), before);
    return encode(sorted);
  }
  if (code.instructions.empty()) throw BytecodeError("code without instructions");
  checkOperands(code);
  const int stack_size = stackDepths(code).deepest;
  Encoder encoder(code);
  EncodedCode result = encoder.run();
  result.line_table = encodeLineTable(code.instructions, encoder.sizes(), code.first_line);
  result.exception_table = encodeExceptionTable(ranges, result.starts);
  result.stack_size = stack_size;
  return result;
}

Object assemble(const DecodedCode& code) {
  checkObjects(code);
  const EncodedCode encoded = encode(code);
  const Object units = newBytes(encoded.units);
  const Object line_table = newBytes(encoded.line_table);
  const Object exception_table = newBytes(encoded.exception_table);
  const Object constants = tupleOf(code.constants);
  const Object names = tupleOf(code.names);
  const Object locals = slotNames(code, kLocalSlot);
  const Object cells = slotNames(code, kCellSlot);
  const Object free = slotNames(code, kFreeSlot);
  Object made = Object::checked(reinterpret_cast<PyObject*>(PyCode_NewWithPosOnlyArgs(
      code.argument_count, code.positional_only_count, code.keyword_only_count,
      static_cast<int>(PyTuple_GET_SIZE(locals.get())), encoded.stack_size, code.flags, units.get(),
      constants.get(), names.get(), locals.get(), free.get(), cells.get(), code.filename.get(),
      code.name.get(), code.qualified_name.get(), code.first_line, line_table.get(),
      exception_table.get())));
  checkSlots(code, reinterpret_cast<PyCodeObject*>(made.get()));
  return made;
}

}  // namespace wick::capture
