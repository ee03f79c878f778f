#include "capture/bytecode/opcodes.h"

#include <array>
#include <bit>
#include <initializer_list>

namespace wick::capture {
namespace {

struct Entry {
  std::string_view name;
  uint8_t caches = 0;
  uint16_t facts = 0;
};

constexpr std::array<Entry, 256> makeEntries() {
  std::array<Entry, 256> entries{};
#define WICK_OPCODE(name, number, caches, facts) entries[number] = {#name, caches, facts};
  WICK_OPCODES(WICK_OPCODE)
#undef WICK_OPCODE
  return entries;
}

constexpr std::array<Entry, 256> kEntries = makeEntries();

// The numbers that the interpreter writes over an instruction, by its general form.
struct Specialised {
  Op general;
  std::initializer_list<uint8_t> numbers;
};

constexpr std::array<uint8_t, 256> makeGeneralForms() {
  std::array<uint8_t, 256> forms{};
  for (int number = 0; number < 256; ++number) {
    if (!kEntries[number].name.empty()) forms[number] = static_cast<uint8_t>(number);
  }
  const Specialised all[] = {
      {Op::BINARY_OP, {3, 4, 5, 6, 7, 8, 13, 14, 16}},
      {Op::BINARY_SUBSCR, {17, 18, 19, 20, 21}},
      {Op::CALL, {22, 23, 24}},
      {Op::COMPARE_OP, {26, 27, 28, 29}},
      {Op::EXTENDED_ARG, {34}},
      {Op::JUMP_BACKWARD, {38}},
      {Op::LOAD_ATTR, {39, 40, 41, 42, 43}},
      {Op::LOAD_CONST, {44}},
      {Op::LOAD_FAST, {45, 46}},
      {Op::LOAD_GLOBAL, {47, 48, 55}},
      {Op::LOAD_METHOD, {56, 57, 58, 59, 62, 63}},
      {Op::PRECALL, {64, 65, 66, 67, 72, 73, 76, 77, 78, 79, 80, 81, 113, 121, 127, 141, 143}},
      {Op::RESUME, {150}},
      {Op::STORE_ATTR, {153, 154, 158, 159}},
      {Op::STORE_FAST, {161, 167}},
      {Op::STORE_SUBSCR, {168, 169, 170}},
      {Op::UNPACK_SEQUENCE, {177, 178, 179, 180}},
  };
  for (const Specialised& each : all) {
    for (uint8_t number : each.numbers) forms[number] = static_cast<uint8_t>(each.general);
  }
  return forms;
}

// Zero, the number of CACHE, for numbers that CPython does not assign.
constexpr std::array<uint8_t, 256> kGeneralForms = makeGeneralForms();

const Entry& entryOf(Op op) {
  return kEntries[static_cast<uint8_t>(op)];
}

// Instructions that build, take apart or call: the effect depends on the argument.
int64_t countedEffect(Op op, int64_t arg) {
  switch (op) {
    case Op::UNPACK_SEQUENCE:
      return arg - 1;
    case Op::UNPACK_EX:
      return (arg & 0xFF) + (arg >> 8);
    case Op::BUILD_TUPLE:
    case Op::BUILD_LIST:
    case Op::BUILD_SET:
    case Op::BUILD_STRING:
      return 1 - arg;
    case Op::BUILD_MAP:
      return 1 - 2 * arg;
    case Op::BUILD_CONST_KEY_MAP:
      return -arg;
    case Op::BUILD_SLICE:
      return arg == 3 ? -2 : -1;
    case Op::FORMAT_VALUE:
      return (arg & 4) != 0 ? -1 : 0;
    case Op::MAKE_FUNCTION:
      return -std::popcount(static_cast<uint64_t>(arg & 15));
    case Op::CALL:
      return -arg - 1;
    case Op::CALL_FUNCTION_EX:
      return -2 - (arg & 1);
    case Op::RAISE_VARARGS:
      return -arg;
    case Op::LOAD_GLOBAL:
      return 1 + (arg & 1);
    default:
      return 0;
  }
}

}  // namespace

bool isOpcode(uint8_t number) {
  return !kEntries[number].name.empty() && number != static_cast<uint8_t>(Op::CACHE);
}

std::optional<Op> generalForm(uint8_t number) {
  const uint8_t form = kGeneralForms[number];
  if (form == 0 && number != 0) return std::nullopt;
  return static_cast<Op>(form);
}

std::string_view nameOf(Op op) {
  return entryOf(op).name;
}
int cacheEntries(Op op) {
  return entryOf(op).caches;
}
uint16_t factsOf(Op op) {
  return entryOf(op).facts;
}

std::optional<Op> otherDirection(Op op) {
  switch (op) {
    case Op::JUMP_FORWARD:
      return Op::JUMP_BACKWARD;
    case Op::JUMP_BACKWARD:
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
      return Op::JUMP_FORWARD;
    case Op::POP_JUMP_FORWARD_IF_FALSE:
      return Op::POP_JUMP_BACKWARD_IF_FALSE;
    case Op::POP_JUMP_FORWARD_IF_TRUE:
      return Op::POP_JUMP_BACKWARD_IF_TRUE;
    case Op::POP_JUMP_FORWARD_IF_NONE:
      return Op::POP_JUMP_BACKWARD_IF_NONE;
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
      return Op::POP_JUMP_BACKWARD_IF_NOT_NONE;
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
      return Op::POP_JUMP_FORWARD_IF_FALSE;
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
      return Op::POP_JUMP_FORWARD_IF_TRUE;
    case Op::POP_JUMP_BACKWARD_IF_NONE:
      return Op::POP_JUMP_FORWARD_IF_NONE;
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      return Op::POP_JUMP_FORWARD_IF_NOT_NONE;
    default:
      return std::nullopt;
  }
}

int64_t stackEffect(Op op, uint32_t arg, bool jumps) {
  switch (op) {
    case Op::PUSH_NULL:
    case Op::GET_LEN:
    case Op::MATCH_MAPPING:
    case Op::MATCH_SEQUENCE:
    case Op::MATCH_KEYS:
    case Op::PUSH_EXC_INFO:
    case Op::WITH_EXCEPT_START:
    case Op::GET_ANEXT:
    case Op::BEFORE_ASYNC_WITH:
    case Op::BEFORE_WITH:
    case Op::LOAD_BUILD_CLASS:
    case Op::LOAD_ASSERTION_ERROR:
    case Op::RETURN_GENERATOR:
    case Op::LOAD_CONST:
    case Op::LOAD_NAME:
    case Op::LOAD_FAST:
    case Op::LOAD_CLOSURE:
    case Op::LOAD_DEREF:
    case Op::LOAD_CLASSDEREF:
    case Op::LOAD_METHOD:
    case Op::IMPORT_FROM:
    case Op::COPY:
      return 1;
    case Op::POP_TOP:
    case Op::BINARY_SUBSCR:
    case Op::BINARY_OP:
    case Op::COMPARE_OP:
    case Op::IS_OP:
    case Op::CONTAINS_OP:
    case Op::IMPORT_NAME:
    case Op::IMPORT_STAR:
    case Op::PRINT_EXPR:
    case Op::RETURN_VALUE:
    case Op::PREP_RERAISE_STAR:
    case Op::POP_EXCEPT:
    case Op::RERAISE:
    case Op::STORE_NAME:
    case Op::STORE_GLOBAL:
    case Op::STORE_FAST:
    case Op::STORE_DEREF:
    case Op::DELETE_ATTR:
    case Op::LIST_APPEND:
    case Op::SET_ADD:
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE:
    case Op::DICT_MERGE:
    case Op::DICT_UPDATE:
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      return -1;
    case Op::DELETE_SUBSCR:
    case Op::STORE_ATTR:
    case Op::MAP_ADD:
    case Op::MATCH_CLASS:
    case Op::END_ASYNC_FOR:
      return -2;
    case Op::STORE_SUBSCR:
      return -3;
    case Op::FOR_ITER:
      return jumps ? -1 : 1;
    case Op::SEND:
      return jumps ? -1 : 0;
    case Op::JUMP_IF_FALSE_OR_POP:
    case Op::JUMP_IF_TRUE_OR_POP:
      return jumps ? 0 : -1;
    default:
      return countedEffect(op, arg);
  }
}

}  // namespace wick::capture
