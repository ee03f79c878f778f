#include "runtime/native/code_analysis.h"

#include <algorithm>
#include <bit>
#include <set>

#include "runtime/interpreter/scalar_semantics.h"

namespace wick::native {
namespace {

// Facts of all blocks together; more would take seconds.
constexpr size_t kMaxFacts = size_t{1} << 22;
// Visits of a block before its bounds are widened.
constexpr size_t kVisitsBeforeWidening = 3;

bool endsFlow(OpCode op) {
  return op == OpCode::JUMP || op == OpCode::RETURN || op == OpCode::RAISE;
}
bool testBit(const CodeAnalysis::BitSet& bits, uint32_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}
void setBit(CodeAnalysis::BitSet& bits, uint32_t i) {
  bits[i / 64] |= uint64_t{1} << (i % 64);
}
void clearBit(CodeAnalysis::BitSet& bits, uint32_t i) {
  bits[i / 64] &= ~(uint64_t{1} << (i % 64));
}

template <class F>
void forEachTarget(const Instruction& instruction, F&& f) {
  forEachField(instruction, [&](char role, uint32_t field) {
    if (role == 'j') f(field);
  });
}

Fact join(const Fact& a, const Fact& b) {
  if (a.kind == Fact::Kind::Nothing) return b;
  if (b.kind == Fact::Kind::Nothing) return a;
  if (a.kind != b.kind) return {Fact::Kind::Mixed};
  if (a.kind == Fact::Kind::Float) return a == b ? a : Fact::floating();
  return {a.kind, std::min(a.low, b.low), std::max(a.high, b.high)};
}

// Bounds that grow go to the next of a few values at once, so that loops end soon. One below the
// most lets a counter that is compared before it is used stay a natural number.
Fact widen(const Fact& before, const Fact& after) {
  if (after.kind != Fact::Kind::Int || before.kind != Fact::Kind::Int) return after;
  Fact wide = after;
  if (after.low < before.low) {
    wide.low = after.low >= 0 ? 0 : after.low >= -1 ? -1 : Fact::kLeast;
  }
  if (after.high > before.high) {
    constexpr int64_t k32 = std::numeric_limits<uint32_t>::max();
    wide.high = after.high < k32           ? k32 - 1
                : after.high < Fact::kMost ? Fact::kMost - 1
                                           : after.high;
  }
  return wide;
}

Fact sum(const Fact& a, const Fact& b) {
  Fact r = Fact::integer();
  if (__builtin_add_overflow(a.low, b.low, &r.low) ||
      __builtin_add_overflow(a.high, b.high, &r.high)) {
    return Fact::integer();
  }
  return r;
}

Fact difference(const Fact& a, const Fact& b) {
  Fact r = Fact::integer();
  if (__builtin_sub_overflow(a.low, b.high, &r.low) ||
      __builtin_sub_overflow(a.high, b.low, &r.high)) {
    return Fact::integer();
  }
  return r;
}

Fact product(const Fact& a, const Fact& b) {
  int64_t corners[4];
  if (__builtin_mul_overflow(a.low, b.low, &corners[0]) ||
      __builtin_mul_overflow(a.low, b.high, &corners[1]) ||
      __builtin_mul_overflow(a.high, b.low, &corners[2]) ||
      __builtin_mul_overflow(a.high, b.high, &corners[3])) {
    return Fact::integer();
  }
  return Fact::integer(*std::min_element(corners, corners + 4),
                       *std::max_element(corners, corners + 4));
}

Fact quotient(const Fact& a, const Fact& b) {
  if (b.low <= 0) return Fact::integer();
  int64_t corners[] = {scalar::floorDivide(a.low, b.low), scalar::floorDivide(a.low, b.high),
                       scalar::floorDivide(a.high, b.low), scalar::floorDivide(a.high, b.high)};
  return Fact::integer(*std::min_element(corners, corners + 4),
                       *std::max_element(corners, corners + 4));
}

Fact remainder(const Fact& a, const Fact& b) {
  if (b.low <= 0) return Fact::integer();
  if (a.isNatural()) return Fact::integer(0, std::min(a.high, b.high - 1));
  return Fact::integer(0, b.high - 1);
}

Fact bitwise(OpCode op, const Fact& a, const Fact& b) {
  if (op == OpCode::AND_INT) {
    if (a.isNatural() && b.isNatural()) return Fact::integer(0, std::min(a.high, b.high));
    if (a.isNatural()) return Fact::integer(0, a.high);
    if (b.isNatural()) return Fact::integer(0, b.high);
    return Fact::integer();
  }
  if (!a.isNatural() || !b.isNatural()) return Fact::integer();
  auto bits = static_cast<uint64_t>(a.high | b.high);
  if (bits == 0) return Fact::integer(0, 0);
  return Fact::integer(0, static_cast<int64_t>(~uint64_t{0} >> std::countl_zero(bits)));
}

}  // namespace

Treatment treatmentOf(OpCode op) {
  switch (op) {
#define WICK_SCALAR(name, result, expression) case OpCode::name:
    WICK_FORALL_SCALAR_SEMANTICS(WICK_SCALAR)
#undef WICK_SCALAR
#define WICK_COMPARE_JUMP(name, condition) case OpCode::name:
    WICK_FORALL_COMPARE_JUMPS(WICK_COMPARE_JUMP)
#undef WICK_COMPARE_JUMP
    case OpCode::MOVE:
    case OpCode::COPY:
    case OpCode::SMOVE:
    case OpCode::LOADK:
    case OpCode::SLOADK:
    case OpCode::UNBOX:
    case OpCode::DROP:
    case OpCode::JUMP:
    case OpCode::JUMP_IF:
    case OpCode::JUMP_UNLESS:
    case OpCode::FOR_STEP:
    case OpCode::BAIL_OUT:
      return Treatment::Inline;
    case OpCode::OP:
    case OpCode::OP_MULTI:
    case OpCode::FUSION:
    case OpCode::PRINT:
#define WICK_INSTRUCTION(name, format, effect) case OpCode::name:
      WICK_FORALL_DATA_INSTRUCTIONS(WICK_INSTRUCTION)
#undef WICK_INSTRUCTION
      return Treatment::Execute;
    default:
      return Treatment::Interpret;
  }
}

Fact Fact::ofTag(uint16_t extra) {
  switch (static_cast<IValue::Tag>(extra - 1)) {
    case IValue::Tag::Int:
      return integer();
    case IValue::Tag::Double:
      return floating();
    case IValue::Tag::Bool:
      return boolean();
    default:
      return {Kind::Mixed};
  }
}

Fact Fact::ofConstant(const IValue& value) {
  Fact fact = ofTag(static_cast<uint16_t>(static_cast<uint16_t>(value.tag()) + 1));
  if (fact.kind != Kind::Mixed) fact.low = fact.high = value.rawInt();
  return fact;
}

CodeAnalysis::CodeAnalysis(const Code& code) : code_(code) {
  findScalars();
  findBlocks();
  WICK_CHECK(blocks_.size() * std::max<size_t>(1, registers_.size()) <= kMaxFacts,
             "{}: too large for machine code: {} blocks, {} scalar registers", code.name(),
             blocks_.size(), registers_.size());
  countInstructions();
  solveLiveness();
  solveFacts();
}

void CodeAnalysis::findScalars() {
  scalar_of_.assign(code_.numRegisters(), kNoIndex);
  for (uint32_t r = 0; r < code_.numRegisters(); ++r) {
    bool is_argument = r < code_.numInputs() && extraFor(*code_.graph()->inputs()[r]->type()) != 0;
    if (r < code_.numObjectRegisters() && !is_argument) continue;
    scalar_of_[r] = static_cast<uint32_t>(registers_.size());
    registers_.push_back(r);
  }
}

void CodeAnalysis::findBlocks() {
  const auto& code = code_.instructions();
  auto count = static_cast<uint32_t>(code.size());
  std::vector<uint8_t> leader(count + 1, 0);
  std::set<uint32_t> entries{0};
  leader[0] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    bool interpreted = treatmentOf(code[i].op) == Treatment::Interpret;
    bool jumps = false;
    forEachTarget(code[i], [&](uint32_t target) {
      leader[target] = 1;
      jumps = true;
      if (target <= i || interpreted) entries.insert(target);
    });
    if (jumps || interpreted || endsFlow(code[i].op)) leader[i + 1] = 1;
    if (interpreted && !endsFlow(code[i].op)) entries.insert(i + 1);
  }
  block_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (leader[i]) blocks_.push_back({i, count, {}, false, {}, {}, {}});
    block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
  }
  for (size_t b = 0; b + 1 < blocks_.size(); ++b) blocks_[b].end = blocks_[b + 1].begin;
  for (Block& block : blocks_) {
    const Instruction& last = code[block.end - 1];
    forEachTarget(last, [&](uint32_t target) { block.successors.push_back(block_of_[target]); });
    if (!endsFlow(last.op)) block.successors.push_back(block_of_[block.end]);
  }
  entries_.assign(entries.begin(), entries.end());
}

// A stretch between the target of a jump backwards and the jump is a loop.
void CodeAnalysis::countInstructions() {
  const auto& code = code_.instructions();
  std::vector<int> depth_change(code.size() + 1, 0);
  bool loops = false;
  for (uint32_t i = 0; i < code.size(); ++i) {
    forEachTarget(code[i], [&](uint32_t target) {
      if (target > i) return;
      ++depth_change[target];
      --depth_change[i + 1];
      loops = true;
    });
  }
  int depth = 0;
  for (uint32_t i = 0; i < code.size(); ++i) {
    depth += depth_change[i];
    if (loops && depth == 0) continue;
    ++(treatmentOf(code[i].op) == Treatment::Inline ? num_inline_ : num_other_);
  }
}

void CodeAnalysis::stepBack(const Instruction& instruction, BitSet& live) const {
  forEachRegister(
      code_, instruction, [](uint32_t) {},
      [&](uint32_t r, uint16_t) {
        if (isScalar(r)) clearBit(live, scalar(r));
      });
  forEachRegister(
      code_, instruction,
      [&](uint32_t r) {
        if (isScalar(r)) setBit(live, scalar(r));
      },
      [](uint32_t, uint16_t) {});
}

void CodeAnalysis::solveLiveness() {
  size_t words = (registers_.size() + 63) / 64;
  for (Block& block : blocks_) {
    block.live_in.assign(words, 0);
    block.live_out.assign(words, 0);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks_.size(); b-- > 0;) {
      Block& block = blocks_[b];
      for (uint32_t s : block.successors) {
        for (size_t w = 0; w < words; ++w) block.live_out[w] |= blocks_[s].live_in[w];
      }
      BitSet live = block.live_out;
      for (uint32_t i = block.end; i-- > block.begin;) stepBack(code_.instructions()[i], live);
      if (live == block.live_in) continue;
      block.live_in = std::move(live);
      changed = true;
    }
  }
}

std::vector<CodeAnalysis::BitSet> CodeAnalysis::liveWithin(uint32_t block) const {
  const Block& b = blocks_[block];
  std::vector<BitSet> before(b.end - b.begin);
  BitSet live = b.live_out;
  for (uint32_t i = b.end; i-- > b.begin;) {
    stepBack(code_.instructions()[i], live);
    before[i - b.begin] = live;
  }
  return before;
}

Fact CodeAnalysis::scalarResult(const Instruction& instruction, const Facts& facts) const {
  const auto& [op, extra, a, b, c] = instruction;
  // Operands of bool count as ints here.
  auto in = [&](uint32_t r) { return facts[scalar(r)]; };
  switch (op) {
    case OpCode::ADD_INT:
      return sum(in(b), in(c));
    case OpCode::SUB_INT:
      return difference(in(b), in(c));
    case OpCode::MUL_INT:
      return product(in(b), in(c));
    case OpCode::FLOORDIV_INT:
      return quotient(in(b), in(c));
    case OpCode::MOD_INT:
      return remainder(in(b), in(c));
    case OpCode::AND_INT:
    case OpCode::OR_INT:
    case OpCode::XOR_INT:
      return bitwise(op, in(b), in(c));
    case OpCode::NEG_INT:
      return difference(Fact::integer(0, 0), in(b));
    case OpCode::BOOL_TO_INT:
      return Fact::integer(in(b).low, in(b).high);
    default:
      break;
  }
  switch (op) {
#define WICK_SCALAR(name, result, expression)                   \
  case OpCode::name:                                            \
    return std::is_same_v<result, double>    ? Fact::floating() \
           : std::is_same_v<result, int64_t> ? Fact::integer()  \
                                             : Fact::boolean();
    WICK_FORALL_SCALAR_SEMANTICS(WICK_SCALAR)
#undef WICK_SCALAR
    default:
      return {Fact::Kind::Mixed};
  }
}

void CodeAnalysis::transfer(const Instruction& instruction, Facts& facts) const {
  const auto& [op, extra, a, b, c] = instruction;
  switch (op) {
#define WICK_SCALAR(name, result, expression) case OpCode::name:
    WICK_FORALL_SCALAR_SEMANTICS(WICK_SCALAR)
#undef WICK_SCALAR
    facts[scalar(a)] = scalarResult(instruction, facts);
    return;
    case OpCode::SMOVE:
      facts[scalar(a)] = facts[scalar(b)];
      return;
    case OpCode::SLOADK:
      facts[scalar(a)] = Fact::ofConstant(code_.constants()[b]);
      return;
    case OpCode::FOR_STEP:
      facts[scalar(a)] = sum(facts[scalar(a)], Fact::integer(1, 1));
      return;
    case OpCode::LIST_LEN:
      // What fits in memory.
      facts[scalar(a)] = Fact::integer(0, int64_t{1} << 60);
      return;
    default:
      forEachRegister(
          code_, instruction, [](uint32_t) {},
          [&](uint32_t r, uint16_t e) {
            if (isScalar(r)) facts[scalar(r)] = Fact::ofTag(e);
          });
  }
}

void CodeAnalysis::refine(const Instruction& instruction, bool jumps, Facts& facts) const {
  const auto& [op, extra, first, second, target] = instruction;
  bool ordered = op == OpCode::JUMP_IF_LT_INT || op == OpCode::JUMP_IF_LE_INT;
  bool equal = (op == OpCode::JUMP_IF_EQ_INT && jumps) || (op == OpCode::JUMP_IF_NE_INT && !jumps);
  if (op != OpCode::FOR_STEP && !ordered && !equal) return;
  Fact* a = &facts[scalar(first)];
  Fact* b = &facts[scalar(second)];
  if (a->kind != Fact::Kind::Int || b->kind != Fact::Kind::Int) return;
  Fact refined_a = *a;
  Fact refined_b = *b;
  if (equal) {
    refined_a.low = refined_b.low = std::max(a->low, b->low);
    refined_a.high = refined_b.high = std::min(a->high, b->high);
  } else {
    // Not a < b is b <= a, and not a <= b is b < a.
    bool strict = op != OpCode::JUMP_IF_LE_INT;
    if (!jumps) {
      std::swap(a, b);
      std::swap(refined_a, refined_b);
      strict = !strict;
    }
    int64_t gap = strict ? 1 : 0;
    if (strict && (b->high == Fact::kLeast || a->low == Fact::kMost)) return;
    refined_a.high = std::min(a->high, b->high - gap);
    refined_b.low = std::max(b->low, a->low + gap);
  }
  // Bounds that exclude each other: this way is never taken.
  if (refined_a.low > refined_a.high || refined_b.low > refined_b.high) return;
  *a = refined_a;
  *b = refined_b;
}

bool CodeAnalysis::merge(uint32_t block, const Facts& facts, size_t visits) {
  Block& b = blocks_[block];
  if (!b.reachable) {
    b.reachable = true;
    b.facts = facts;
    return true;
  }
  bool changed = false;
  for (size_t s = 0; s < facts.size(); ++s) {
    if (!testBit(b.live_in, static_cast<uint32_t>(s))) continue;
    Fact joined = join(b.facts[s], facts[s]);
    if (visits >= kVisitsBeforeWidening) joined = widen(b.facts[s], joined);
    if (joined == b.facts[s]) continue;
    b.facts[s] = joined;
    changed = true;
  }
  return changed;
}

void CodeAnalysis::solveFacts() {
  const auto& code = code_.instructions();
  Facts start(registers_.size());
  for (uint32_t s = 0; s < registers_.size(); ++s) {
    if (registers_[s] < code_.numInputs()) {
      const uint16_t extra = extraFor(*code_.graph()->inputs()[registers_[s]]->type());
      if (extra != 0) start[s] = Fact::ofTag(extra);
    }
  }
  std::vector<size_t> visits(blocks_.size(), 0);
  std::set<uint32_t> pending{0};
  merge(0, start, 0);
  while (!pending.empty()) {
    uint32_t b = *pending.begin();
    pending.erase(pending.begin());
    const Block& block = blocks_[b];
    Facts facts = block.facts;
    for (uint32_t i = block.begin; i < block.end; ++i) transfer(code[i], facts);
    const Instruction& last = code[block.end - 1];
    auto flow = [&](uint32_t to, bool jumps) {
      Facts refined = facts;
      refine(last, jumps, refined);
      if (!merge(to, refined, visits[to])) return;
      ++visits[to];
      pending.insert(to);
    };
    forEachTarget(last, [&](uint32_t target) { flow(block_of_[target], true); });
    if (!endsFlow(last.op)) flow(block_of_[block.end], false);
  }
}

}  // namespace wick::native
