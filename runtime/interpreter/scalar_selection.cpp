#include "runtime/interpreter/scalar_selection.h"

#include <unordered_map>

namespace wick {
namespace {

// The instructions of an operator for ints, floats and bools; kNone marks one that does not exist.
constexpr OpCode kNone = OpCode::RETURN;
struct Family {
  OpCode on_int = kNone;
  OpCode on_float = kNone;
  OpCode on_bool = kNone;
  TypeKind result_on_int = TypeKind::Int;
  TypeKind result_on_float = TypeKind::Float;
  bool swap = false;
  bool is_compare = false;
};

Family arithmetic(OpCode on_int, OpCode on_float) {
  return {on_int, on_float};
}
Family compare(OpCode on_int, OpCode on_float, bool on_bool, bool swap = false) {
  return {on_int, on_float, on_bool ? on_int : kNone, TypeKind::Bool, TypeKind::Bool, swap, true};
}
Family bits(OpCode on_int, OpCode on_bool) {
  return {on_int, kNone, on_bool};
}

const std::unordered_map<Symbol, Family>& binaryFamilies() {
  static const std::unordered_map<Symbol, Family> families = {
      {aten::add, arithmetic(OpCode::ADD_INT, OpCode::ADD_FLOAT)},
      {aten::sub, arithmetic(OpCode::SUB_INT, OpCode::SUB_FLOAT)},
      {aten::mul, arithmetic(OpCode::MUL_INT, OpCode::MUL_FLOAT)},
      {aten::div, {OpCode::DIV_INT, OpCode::DIV_FLOAT, kNone, TypeKind::Float}},
      {Symbol::aten("floordiv"), arithmetic(OpCode::FLOORDIV_INT, OpCode::FLOORDIV_FLOAT)},
      {Symbol::aten("remainder"), arithmetic(OpCode::MOD_INT, OpCode::MOD_FLOAT)},
      {Symbol::aten("__and__"), bits(OpCode::AND_INT, OpCode::AND_BOOL)},
      {Symbol::aten("__or__"), bits(OpCode::OR_INT, OpCode::OR_BOOL)},
      {Symbol::aten("__xor__"), bits(OpCode::XOR_INT, OpCode::XOR_BOOL)},
      {aten::lt, compare(OpCode::LT_INT, OpCode::LT_FLOAT, false)},
      {aten::le, compare(OpCode::LE_INT, OpCode::LE_FLOAT, false)},
      {aten::gt, compare(OpCode::LT_INT, OpCode::LT_FLOAT, false, true)},
      {aten::ge, compare(OpCode::LE_INT, OpCode::LE_FLOAT, false, true)},
      {aten::eq, compare(OpCode::EQ_INT, OpCode::EQ_FLOAT, true)},
      {aten::ne, compare(OpCode::NE_INT, OpCode::NE_FLOAT, true)},
  };
  return families;
}

std::optional<ScalarSelection> selectUnary(Symbol kind, TypeKind in, TypeKind out) {
  auto is = [&](Symbol symbol, TypeKind from, TypeKind to) {
    return kind == symbol && in == from && out == to;
  };
  using K = TypeKind;
  if (is(aten::neg, K::Int, K::Int)) return ScalarSelection{OpCode::NEG_INT};
  if (is(aten::neg, K::Float, K::Float)) return ScalarSelection{OpCode::NEG_FLOAT};
  if (is(aten::__not__, K::Bool, K::Bool)) return ScalarSelection{OpCode::NOT};
  if (is(aten::Float, K::Int, K::Float)) return ScalarSelection{OpCode::INT_TO_FLOAT};
  if (is(aten::Float, K::Bool, K::Float)) return ScalarSelection{OpCode::INT_TO_FLOAT};
  if (is(aten::Int, K::Float, K::Int)) return ScalarSelection{OpCode::FLOAT_TO_INT};
  if (is(aten::Int, K::Bool, K::Int)) return ScalarSelection{OpCode::BOOL_TO_INT};
  if (is(aten::Bool, K::Int, K::Bool)) return ScalarSelection{OpCode::INT_TO_BOOL};
  if (is(aten::Bool, K::Float, K::Bool)) return ScalarSelection{OpCode::FLOAT_TO_BOOL};
  return std::nullopt;
}

}  // namespace

std::optional<ScalarSelection> selectScalar(const Node* node) {
  if (node->outputs().size() != 1) return std::nullopt;
  TypeKind out = node->output()->type()->kind();
  if (out != TypeKind::Int && out != TypeKind::Float && out != TypeKind::Bool) return std::nullopt;
  if (node->inputs().size() == 1) {
    return selectUnary(node->kind(), node->input(0)->type()->kind(), out);
  }
  if (node->inputs().size() != 2) return std::nullopt;
  auto found = binaryFamilies().find(node->kind());
  if (found == binaryFamilies().end()) return std::nullopt;
  const Family& family = found->second;
  TypeKind a = node->input(0)->type()->kind();
  TypeKind b = node->input(1)->type()->kind();
  ScalarSelection selection{kNone, false, family.swap, family.is_compare};
  TypeKind result = TypeKind::Bool;
  if (a == TypeKind::Int && b == TypeKind::Int) {
    selection.op = family.on_int;
    result = family.result_on_int;
  } else if (a == TypeKind::Bool && b == TypeKind::Bool) {
    selection.op = family.on_bool;
  } else if ((a == TypeKind::Int || a == TypeKind::Float) &&
             (b == TypeKind::Int || b == TypeKind::Float)) {
    selection.op = family.on_float;
    selection.as_float = a != b;
    result = family.result_on_float;
  }
  if (selection.op == kNone || result != out) return std::nullopt;
  return selection;
}

CompareJump jumpForCompare(OpCode compare, bool when) {
  switch (compare) {
    // Integers have a total order: not a < b is b <= a.
    case OpCode::LT_INT:
      return when ? CompareJump{OpCode::JUMP_IF_LT_INT} : CompareJump{OpCode::JUMP_IF_LE_INT, true};
    case OpCode::LE_INT:
      return when ? CompareJump{OpCode::JUMP_IF_LE_INT} : CompareJump{OpCode::JUMP_IF_LT_INT, true};
    case OpCode::EQ_INT:
      return {when ? OpCode::JUMP_IF_EQ_INT : OpCode::JUMP_IF_NE_INT};
    case OpCode::NE_INT:
      return {when ? OpCode::JUMP_IF_NE_INT : OpCode::JUMP_IF_EQ_INT};
    case OpCode::LT_FLOAT:
      return {when ? OpCode::JUMP_IF_LT_FLOAT : OpCode::JUMP_UNLESS_LT_FLOAT};
    case OpCode::LE_FLOAT:
      return {when ? OpCode::JUMP_IF_LE_FLOAT : OpCode::JUMP_UNLESS_LE_FLOAT};
    case OpCode::EQ_FLOAT:
      return {when ? OpCode::JUMP_IF_EQ_FLOAT : OpCode::JUMP_UNLESS_EQ_FLOAT};
    case OpCode::NE_FLOAT:
      return {when ? OpCode::JUMP_UNLESS_EQ_FLOAT : OpCode::JUMP_IF_EQ_FLOAT};
    default:
      WICK_ASSERT(false, "{} is no comparison", opCodeName(compare));
  }
}

}  // namespace wick
