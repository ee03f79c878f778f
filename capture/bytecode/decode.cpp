// Decoding goes over the code units once and notes where each instruction begins; jumps are
// resolved by these notes, so that one into the middle of an instruction is found.
#include "capture/bytecode/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "capture/bytecode/exception_table.h"
#include "capture/bytecode/line_table.h"

namespace wick::capture {
namespace {

[[noreturn]] void failAt(size_t unit, const std::string& why) {
  throw BytecodeError(fmt::format("code unit {}: {}", unit, why));
}

void require(bool condition, const char* why) {
  if (!condition) throw BytecodeError(why);
}

// Throws if the CACHE entries of an instruction would lie behind the end of the code.
// PyCode_GetCode() writes zeros over them without looking.
void checkCacheRoom(PyCodeObject* code) {
  const auto* units = reinterpret_cast<const uint8_t*>(code->co_code_adaptive);
  const size_t count = static_cast<size_t>(Py_SIZE(code));
  for (size_t at = 0; at < count; ++at) {
    const std::optional<Op> op = generalForm(units[2 * at]);
    const size_t caches = op ? cacheEntries(*op) : 0;
    if (caches >= count - at) failAt(at, "its CACHE entries are cut off");
    at += caches;
  }
}

std::string_view viewOf(PyObject* object, const char* error) {
  require(object && PyBytes_Check(object), error);
  return {PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object))};
}

std::vector<Object> elementsOf(PyObject* tuple, const char* error) {
  require(tuple && PyTuple_Check(tuple), error);
  std::vector<Object> elements;
  elements.reserve(PyTuple_GET_SIZE(tuple));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    elements.push_back(Object::share(PyTuple_GET_ITEM(tuple, i)));
  }
  return elements;
}

Object textOf(PyObject* object, const char* error) {
  require(object && PyUnicode_Check(object), error);
  return Object::share(object);
}

class UnitReader {
 public:
  UnitReader(std::string_view units, DecodedCode& code)
      : units_(reinterpret_cast<const uint8_t*>(units.data())),
        count_(units.size() / 2),
        code_(code),
        index_at_(count_ + 1, -1) {}

  void read() {
    for (size_t at = 0; at < count_;) at = readInstruction(at);
    index_at_[count_] = code_.size();
    for (size_t i = 0; i < code_.instructions.size(); ++i) {
      Instruction& instruction = code_.instructions[i];
      if (isJump(instruction.op)) resolve(instruction);
    }
  }
  std::span<const int> indexAt() const { return index_at_; }

 private:
  // Reads an instruction with its EXTENDED_ARG and CACHE; returns where the next begins.
  size_t readInstruction(size_t at) {
    index_at_[at] = code_.size();
    uint64_t arg = 0;
    while (units_[2 * at] == static_cast<uint8_t>(Op::EXTENDED_ARG)) {
      arg = (arg | units_[2 * at + 1]) << 8;
      if (arg > INT_MAX) failAt(at, "an argument is too large");
      if (++at == count_) failAt(at, "EXTENDED_ARG without an instruction");
    }
    const uint8_t number = units_[2 * at];
    if (!isOpcode(number)) failAt(at, fmt::format("no instruction has the number {}", number));
    Instruction instruction;
    instruction.op = static_cast<Op>(number);
    instruction.arg = static_cast<uint32_t>(arg | units_[2 * at + 1]);
    instruction.unit = static_cast<int>(at);
    code_.instructions.push_back(instruction);
    return skipCaches(at + 1, cacheEntries(code_.instructions.back().op));
  }

  size_t skipCaches(size_t at, size_t caches) {
    if (caches > count_ - at) failAt(at, "CACHE entries are cut off");
    for (const size_t end = at + caches; at < end; ++at) {
      if (units_[2 * at] != static_cast<uint8_t>(Op::CACHE)) failAt(at, "CACHE is missing");
    }
    return at;
  }

  void resolve(Instruction& jump) {
    const int64_t next = int64_t{jump.unit} + 1 + cacheEntries(jump.op);
    const int64_t distance = jump.arg;
    const int64_t target = has(jump.op, kJumpsBackward) ? next - distance : next + distance;
    if (target < 0 || target >= static_cast<int64_t>(count_) || index_at_[target] < 0) {
      failAt(jump.unit, fmt::format("{} leads to code unit {}, where no instruction begins",
                                    nameOf(jump.op), target));
    }
    jump.target = index_at_[target];
    jump.arg = 0;
  }

  const uint8_t* units_;
  size_t count_;
  DecodedCode& code_;
  std::vector<int> index_at_;
};

void readSlots(PyCodeObject* code, DecodedCode& result) {
  std::vector<Object> names = elementsOf(code->co_localsplusnames, "names of variables: no tuple");
  const std::string_view kinds = viewOf(code->co_localspluskinds, "kinds of variables: no bytes");
  require(names.size() == kinds.size(), "variables have more names than kinds, or fewer");
  for (size_t i = 0; i < names.size(); ++i) {
    require(PyUnicode_Check(names[i].get()), "a variable's name is no string");
    const uint8_t kind = static_cast<uint8_t>(kinds[i]);
    require(kind == kLocalSlot || kind == kCellSlot || kind == kFreeSlot ||
                kind == (kLocalSlot | kCellSlot),
            "a variable is of no known kind");
    result.slots.push_back({std::move(names[i]), kind});
  }
}

void readHead(PyCodeObject* code, DecodedCode& result) {
  result.flags = code->co_flags;
  result.argument_count = code->co_argcount;
  result.positional_only_count = code->co_posonlyargcount;
  result.keyword_only_count = code->co_kwonlyargcount;
  result.first_line = code->co_firstlineno;
  result.stack_size = code->co_stacksize;
  result.filename = textOf(code->co_filename, "the file name is no string");
  result.name = textOf(code->co_name, "the name is no string");
  result.qualified_name = textOf(code->co_qualname, "the qualified name is no string");
  result.constants = elementsOf(code->co_consts, "constants: no tuple");
  result.names = elementsOf(code->co_names, "names: no tuple");
  for (const Object& name : result.names) {
    require(PyUnicode_Check(name.get()), "a name is no string");
  }
}

}  // namespace

DecodedCode decode(PyCodeObject* code) {
  DecodedCode result;
  readHead(code, result);
  readSlots(code, result);
  if (!code->_co_code) checkCacheRoom(code);
  const Object units = Object::checked(PyCode_GetCode(code));
  const std::string_view bytes = viewOf(units.get(), "the code is no bytes");
  require(bytes.size() % 2 == 0, "the code has an odd number of bytes");
  UnitReader reader(bytes, result);
  reader.read();
  const std::vector<Location> locations = decodeLineTable(
      viewOf(code->co_linetable, "line table: no bytes"), result.first_line, bytes.size() / 2);
  for (Instruction& instruction : result.instructions) {
    instruction.location = locations[instruction.unit];
  }
  result.exception_ranges = decodeExceptionTable(
      viewOf(code->co_exceptiontable, "exception table: no bytes"), reader.indexAt());
  checkOperands(result);
  return result;
}

int indexOfUnit(const DecodedCode& code, int unit) {
  for (int i = 0; i < code.size(); ++i) {
    if (unit >= 0 && code.instructions[i].unit == unit) return i;
  }
  return -1;
}

}  // namespace wick::capture
