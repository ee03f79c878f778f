#include "runtime/interpreter/register_allocation.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <queue>
#include <utility>

#include "core/budget.h"

namespace wick {
namespace {

bool isMove(OpCode op) {
  return op == OpCode::COPY || op == OpCode::SMOVE;
}

// Instructions that do nothing but write their destination.
bool isPure(OpCode op) {
  if (isMove(op) || op == OpCode::LOADK || op == OpCode::SLOADK || op == OpCode::UNBOX) return true;
  if (op < OpCode::ADD_INT || op > OpCode::FLOAT_TO_BOOL) return false;
  return op != OpCode::FLOORDIV_INT && op != OpCode::MOD_INT;
}

bool endsFlow(OpCode op) {
  return op == OpCode::JUMP || op == OpCode::RETURN || op == OpCode::RAISE;
}

// Makes a conditional jump jump when it did not; false when there is no such instruction.
bool invertCondition(Instruction& jump) {
  auto become = [&](OpCode op, bool swap = false) {
    jump.op = op;
    if (swap) std::swap(jump.a, jump.b);
    return true;
  };
  switch (jump.op) {
    case OpCode::JUMP_IF:
      return become(OpCode::JUMP_UNLESS);
    case OpCode::JUMP_UNLESS:
      return become(OpCode::JUMP_IF);
    case OpCode::JUMP_IF_LT_INT:
      return become(OpCode::JUMP_IF_LE_INT, true);
    case OpCode::JUMP_IF_LE_INT:
      return become(OpCode::JUMP_IF_LT_INT, true);
    case OpCode::JUMP_IF_EQ_INT:
      return become(OpCode::JUMP_IF_NE_INT);
    case OpCode::JUMP_IF_NE_INT:
      return become(OpCode::JUMP_IF_EQ_INT);
    case OpCode::JUMP_IF_LT_FLOAT:
      return become(OpCode::JUMP_UNLESS_LT_FLOAT);
    case OpCode::JUMP_IF_LE_FLOAT:
      return become(OpCode::JUMP_UNLESS_LE_FLOAT);
    case OpCode::JUMP_IF_EQ_FLOAT:
      return become(OpCode::JUMP_UNLESS_EQ_FLOAT);
    case OpCode::JUMP_UNLESS_LT_FLOAT:
      return become(OpCode::JUMP_IF_LT_FLOAT);
    case OpCode::JUMP_UNLESS_LE_FLOAT:
      return become(OpCode::JUMP_IF_LE_FLOAT);
    case OpCode::JUMP_UNLESS_EQ_FLOAT:
      return become(OpCode::JUMP_IF_EQ_FLOAT);
    default:
      return false;
  }
}

// `blocks` are all for which `isOne`. Mostly they stand side by side, and then a walk is faster.
template <class IsOne>
void sortBlocks(std::vector<uint32_t>& blocks, IsOne isOne) {
  constexpr size_t kSparse = 4;
  if (blocks.empty()) return;
  const auto [first, last] = std::ranges::minmax(blocks);
  if ((last - first) / kSparse > blocks.size()) {
    std::ranges::sort(blocks);
    return;
  }
  size_t next = 0;
  for (uint32_t b = first; b <= last; ++b) {
    if (isOne(b)) blocks[next++] = b;
  }
}

// Scalar registers are numbered from here until the number of object registers is known.
constexpr uint32_t kScalarBase = 1u << 30;

}  // namespace

// Calls read(field, is_list_entry) in the reverse of the order of evaluation, and write(field).
template <class Read, class Write>
void RegisterAllocation::forEachRegister(Instruction& instruction, Read&& read, Write&& write) {
  std::string_view format = opCodeFormat(instruction.op);
  uint32_t* fields[] = {&instruction.a, &instruction.b, &instruction.c};
  for (size_t i = 3; i-- > 0;) {
    uint32_t& field = *fields[i];
    switch (format[i]) {
      case 'd':
        if (field != kNoIndex) write(field);
        break;
      case 'D':
        for (uint32_t k = in_.operands[field]; k > 0; --k) {
          if (operandIndex(in_.operands[field + k]) != kNoDestination) {
            write(in_.operands[field + k]);
          }
        }
        break;
      default:
        break;
    }
  }
  for (size_t i = 3; i-- > 0;) {
    uint32_t& field = *fields[i];
    switch (format[i]) {
      case 'x':
      case 'u':
        read(field, false);
        break;
      case 'o':
        for (uint32_t k = in_.operands[field]; k > 0; --k) {
          if (operandKind(in_.operands[field + k]) != OperandKind::Constant) {
            read(in_.operands[field + k], true);
          }
        }
        break;
      default:
        break;
    }
  }
}

void RegisterAllocation::findBlocks() {
  auto count = static_cast<uint32_t>(in_.instructions.size());
  std::vector<uint8_t> leader(count + 1, 0);
  leader[0] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    Instruction& instruction = in_.instructions[i];
    bool jumps = false;
    forEachField(instruction, [&](char role, uint32_t& field) {
      if (role != 'j') return;
      jumps = true;
      leader[in_.labels[field]] = 1;
    });
    if (jumps || endsFlow(instruction.op)) leader[i + 1] = 1;
  }
  block_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (leader[i]) {
      blocks_.emplace_back();
      blocks_.back().begin = i;
    }
    block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
    blocks_.back().end = i + 1;
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    Instruction& last = in_.instructions[blocks_[b].end - 1];
    forEachField(last, [&](char role, uint32_t& field) {
      if (role == 'j') blocks_[b].successors.push_back(block_of_[in_.labels[field]]);
    });
    if (!endsFlow(last.op)) blocks_[b].successors.push_back(b + 1);
  }
  std::vector<uint32_t> pending{0};
  blocks_[0].reachable = true;
  while (!pending.empty()) {
    uint32_t b = pending.back();
    pending.pop_back();
    for (uint32_t s : blocks_[b].successors) {
      blocks_[s].predecessors.push_back(b);
      if (blocks_[s].reachable) continue;
      blocks_[s].reachable = true;
      pending.push_back(s);
    }
  }
}

// A register that is mentioned in one block only is not live anywhere else.
void RegisterAllocation::findGlobals() {
  constexpr uint32_t kMany = kNoIndex - 1;
  std::vector<uint32_t> home(in_.registers.size(), kNoIndex);
  for (size_t r = 0; r < in_.num_inputs; ++r) home[r] = kMany;
  for (uint32_t i = 0; i < in_.instructions.size(); ++i) {
    auto note = [&](uint32_t field) {
      uint32_t& h = home[operandIndex(field)];
      if (h == kNoIndex) {
        h = block_of_[i];
      } else if (h != block_of_[i]) {
        h = kMany;
      }
    };
    forEachRegister(
        in_.instructions[i], [&](uint32_t& field, bool) { note(field); },
        [&](uint32_t& field) { note(field); });
  }
  global_.assign(in_.registers.size(), kNoIndex);
  for (uint32_t r = 0; r < home.size(); ++r) {
    if (home[r] != kMany) continue;
    global_[r] = static_cast<uint32_t>(global_registers_.size());
    global_registers_.push_back(r);
  }
}

// Backwards from the blocks that read a register to those that write it. One register after the
// other, so that what is kept, and the time, is in proportion to the live ranges; bit sets for all
// registers in all blocks would be the product of both numbers.
void RegisterAllocation::solveLiveness() {
  const size_t num_globals = global_registers_.size();
  std::vector<std::vector<uint32_t>> readers(num_globals), writers(num_globals);
  auto note = [](std::vector<uint32_t>& list, uint32_t b) {
    if (list.empty() || list.back() != b) list.push_back(b);
  };
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (!blocks_[b].reachable) continue;
    for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
      forEachRegister(
          in_.instructions[i],
          [&](uint32_t& field, bool) {
            const uint32_t g = global_[operandIndex(field)];
            if (g == kNoIndex || (!writers[g].empty() && writers[g].back() == b)) return;
            note(readers[g], b);
          },
          [](uint32_t&) {});
      forEachRegister(
          in_.instructions[i], [](uint32_t&, bool) {},
          [&](uint32_t& field) {
            const uint32_t g = global_[operandIndex(field)];
            if (g != kNoIndex) note(writers[g], b);
          });
    }
  }
  findLoops();
  marks_.assign(blocks_.size(), {});
  live_in_.resize(num_globals);
  drops_.resize(blocks_.size());
  visits_left_ = (size_t{1} << 22) + 64 * in_.instructions.size();
  drops_left_ = (size_t{1} << 16) + 4 * in_.instructions.size();
  for (uint32_t g = 0; g < num_globals; ++g) {
    checkBudget();
    // n values that are live in n blocks each would take n * n steps.
    if (visits_left_ != 0) {
      solveExactly(g, readers[g], writers[g]);
    } else {
      solveRoughly(g, readers[g], writers[g]);
    }
  }
  if (!blocks_[0].predecessors.empty()) return;
  // Arguments that nobody reads on any path.
  for (uint32_t r = 0; r < in_.num_inputs; ++r) {
    if (!isScalar(r) && !isKept(r) && !isLiveIn(0, global_[r])) drops_[0].push_back(r);
  }
}

// Walks from the readers to the writers.
void RegisterAllocation::solveExactly(uint32_t g, const std::vector<uint32_t>& readers,
                                      const std::vector<uint32_t>& writers) {
  std::vector<uint32_t> pending, live_in, live_out;
  for (uint32_t b : readers) marks_[b].mentioned = g;
  for (uint32_t b : writers) marks_[b].mentioned = marks_[b].written = g;
  auto enter = [&](uint32_t b) {
    if (marks_[b].in == g) return;
    marks_[b].in = g;
    live_in.push_back(b);
    pending.push_back(b);
  };
  for (uint32_t b : readers) enter(b);
  while (!pending.empty()) {
    const uint32_t b = pending.back();
    pending.pop_back();
    for (uint32_t p : blocks_[b].predecessors) {
      if (marks_[p].out == g) continue;
      marks_[p].out = g;
      live_out.push_back(p);
      if (marks_[p].written != g) enter(p);
    }
  }
  visits_left_ -= std::min(visits_left_, live_in.size() + live_out.size());
  sortBlocks(live_in, [&](uint32_t b) { return marks_[b].in == g; });
  const uint32_t r = global_registers_[g];
  for (uint32_t b : live_in) {
    CountedVector<BlockRun>& runs = live_in_[g];
    if (runs.empty() || runs.back().end != b) runs.push_back({b, b});
    runs.back().end = b + 1;
    if (marks_[b].mentioned == g) {
      blocks_[b].live_in.push_back(g);
    } else {
      // A register may be live in very many blocks without being mentioned there, so these do not
      // note it.
      passThrough(r, b, b + 1);
    }
  }
  for (uint32_t b : live_out) {
    if (marks_[b].mentioned == g) blocks_[b].live_out.push_back(g);
  }
  if (isScalar(r) || isKept(r)) return;
  // A value that is live behind every predecessor of a block, but not in the block, ended with the
  // choice of the path. Each of n branches may be the end of n values: where there are very many,
  // some keep their memory for as long as the function runs.
  for (uint32_t p : live_out) {
    for (uint32_t b : blocks_[p].successors) {
      if (marks_[b].in == g || marks_[b].asked == g) continue;
      marks_[b].asked = g;
      const bool live_before = std::ranges::all_of(
          blocks_[b].predecessors, [&](uint32_t from) { return marks_[from].out == g; });
      if (!live_before || drops_left_ == 0) continue;
      drops_[b].push_back(r);
      --drops_left_;
    }
  }
}

// Takes the register for live from the first block that mentions it to the last one, and in all of
// the loops that these are in. So it shares its place with fewer others, and nothing drops it early.
void RegisterAllocation::solveRoughly(uint32_t g, const std::vector<uint32_t>& readers,
                                      const std::vector<uint32_t>& writers) {
  std::vector<uint32_t> mentions;
  std::ranges::set_union(readers, writers, std::back_inserter(mentions));
  if (mentions.empty()) return;
  const uint32_t r = global_registers_[g];
  const bool is_input = r < in_.num_inputs;
  const uint32_t first = is_input ? 0 : loops_[mentions.front()].begin;
  const uint32_t end = std::max(loops_[first].end, loops_[mentions.back()].end);
  const BasicBlock& last = blocks_[mentions.back()];
  const bool in_loop = loops_[mentions.back()].begin + 1 != end ||
                       std::ranges::count(last.successors, mentions.back()) != 0;
  live_in_[g].push_back({first, end});
  uint32_t next = first;
  for (uint32_t b : mentions) {
    passThrough(r, next, b);
    blocks_[b].live_in.push_back(g);
    if (b != mentions.back() || in_loop) blocks_[b].live_out.push_back(g);
    next = b + 1;
  }
  passThrough(r, next, end);
}

// The register is live in these blocks, which do not mention it.
void RegisterAllocation::passThrough(uint32_t r, uint32_t first, uint32_t end) {
  if (first == end) return;
  std::vector<Segment>& segments = segments_[r];
  const uint32_t begin = 2 * blocks_[first].begin;
  if (segments.empty() || segments.back().end != begin) segments.push_back({begin, begin});
  segments.back().end = 2 * blocks_[end - 1].end;
}

// For each block the outermost loop that it is in, or the block alone.
void RegisterAllocation::findLoops() {
  loops_.resize(blocks_.size());
  for (uint32_t b = 0; b < blocks_.size(); ++b) loops_[b] = {b, b + 1};
  // From the back: a jump back encloses all from its target to itself.
  uint32_t begin = kNoIndex;
  uint32_t end = 0;
  for (uint32_t b = static_cast<uint32_t>(blocks_.size()); b-- > 0;) {
    for (uint32_t s : blocks_[b].successors) {
      if (s > b) continue;
      if (begin > b) end = b + 1;
      begin = std::min(begin, s);
    }
    if (begin > b) continue;
    loops_[b].end = end;
    if (begin < b) continue;
    for (uint32_t inner = begin; inner < end; ++inner) loops_[inner].begin = begin;
    begin = kNoIndex;
  }
}

bool RegisterAllocation::isLiveIn(uint32_t block, uint32_t g) const {
  const CountedVector<BlockRun>& runs = live_in_[g];
  const auto next = std::ranges::upper_bound(runs, block, {}, &BlockRun::end);
  return next != runs.end() && next->begin <= block;
}

// Behind a FUSION stands the jump that is taken when its kernels ran.
bool RegisterAllocation::isReadAfterKernels(uint32_t fusion, uint32_t r) const {
  const Instruction& jump = in_.instructions[fusion + 1];
  WICK_ASSERT(jump.op == OpCode::JUMP_IF, "{} behind a FUSION", opCodeName(jump.op));
  const uint32_t block = block_of_[in_.labels[jump.b]];
  return global_[r] == kNoIndex || isLiveIn(block, global_[r]);
}

void RegisterAllocation::scanInstruction(uint32_t i) {
  Instruction& instruction = in_.instructions[i];
  if (isPure(instruction.op)) {
    bool dead = true;
    forEachRegister(
        instruction, [](uint32_t&, bool) {},
        [&](uint32_t& field) { dead = dead && open_end_[operandIndex(field)] == 0; });
    if (dead) {
      deleted_[i] = 1;
      return;
    }
  }
  forEachRegister(
      instruction, [](uint32_t&, bool) {},
      [&](uint32_t& field) {
        uint32_t r = operandIndex(field);
        uint32_t end = open_end_[r] != 0 ? open_end_[r] : 2 * i + 2;
        segments_[r].push_back({2 * i + 1, end});
        open_end_[r] = 0;
      });
  bool several = opCodeFormat(instruction.op).find('o') != std::string_view::npos;
  forEachRegister(
      instruction,
      [&](uint32_t& field, bool in_list) {
        uint32_t r = operandIndex(field);
        if (instruction.op == OpCode::FUSION && !isScalar(r) && !isKept(r) &&
            !isReadAfterKernels(i, r)) {
          field = makeOperand(OperandKind::Yielded, r);
        }
        if (open_end_[r] != 0) return;
        open_end_[r] = 2 * i + 1;
        if (isScalar(r) || isKept(r)) return;
        if (in_list) {
          field = makeOperand(OperandKind::Move, r);
        } else if (instruction.op == OpCode::COPY) {
          instruction.op = OpCode::MOVE;
        } else if (instruction.op != OpCode::DROP && !several) {
          instruction.extra |= kLastUse;
        }
      },
      [](uint32_t&) {});
  if (instruction.op == OpCode::OP || instruction.op == OpCode::OP_MULTI ||
      instruction.op == OpCode::FUSION) {
    holdTwiceRead(instruction);
  }
}

// What an operator borrows must not be moved away by another of its operands.
void RegisterAllocation::holdTwiceRead(const Instruction& instruction) {
  const uint32_t list = instruction.b;
  for (uint32_t k = in_.operands[list]; k > 1; --k) {
    const uint32_t last = in_.operands[list + k];
    if (operandKind(last) != OperandKind::Move && operandKind(last) != OperandKind::Yielded) {
      continue;
    }
    for (uint32_t j = 1; j < k && j <= kMostBorrowed; ++j) {
      uint32_t& other = in_.operands[list + j];
      if (operandKind(other) == OperandKind::Constant) continue;
      if (operandIndex(other) == operandIndex(last)) {
        other = makeOperand(OperandKind::Held, operandIndex(other));
      }
    }
  }
}

void RegisterAllocation::scanBlock(uint32_t b) {
  const BasicBlock& block = blocks_[b];
  for (uint32_t g : block.live_out) open_end_[global_registers_[g]] = 2 * block.end;
  for (uint32_t i = block.end; i-- > block.begin;) scanInstruction(i);
  for (uint32_t g : block.live_in) {
    const uint32_t r = global_registers_[g];
    if (open_end_[r] == 0) continue;  // its readers were deleted
    segments_[r].push_back({2 * block.begin, open_end_[r]});
    open_end_[r] = 0;
  }
}

uint32_t RegisterAllocation::find(uint32_t r) {
  while (parent_[r] != r) {
    parent_[r] = parent_[parent_[r]];
    r = parent_[r];
  }
  return r;
}

// Both lists in one. Segments that touch become one, so that the registers of many branches, whose
// segments follow one another, do not make long lists.
std::vector<RegisterAllocation::Segment> RegisterAllocation::joined(std::vector<Segment> a,
                                                                    std::vector<Segment> b) {
  if (a.size() < b.size()) a.swap(b);
  if (!b.empty() && isMuchLonger(a, b)) {
    // The result of thousands of early returns takes in one after the other.
    for (const Segment& s : b) {
      const auto first = std::ranges::lower_bound(a, s.start, {}, &Segment::end);
      const auto last = std::ranges::upper_bound(first, a.end(), s.end, {}, &Segment::start);
      if (first == last) {
        a.insert(first, s);
        continue;
      }
      first->start = std::min(first->start, s.start);
      first->end = std::max(s.end, (last - 1)->end);
      a.erase(first + 1, last);
    }
    return a;
  }
  std::vector<Segment> out;
  out.reserve(a.size() + b.size());
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const bool first = j == b.size() || (i < a.size() && a[i].start < b[j].start);
    const Segment& next = first ? a[i++] : b[j++];
    if (!out.empty() && next.start <= out.back().end) {
      out.back().end = std::max(out.back().end, next.end);
    } else {
      out.push_back(next);
    }
  }
  return out;
}

bool RegisterAllocation::isMuchLonger(const std::vector<Segment>& a,
                                      const std::vector<Segment>& b) {
  constexpr size_t kTimes = 16;
  return a.size() / kTimes > b.size();
}

bool RegisterAllocation::overlap(const std::vector<Segment>& a, const std::vector<Segment>& b) {
  const auto anyIn = [](const std::vector<Segment>& few, const std::vector<Segment>& many) {
    return std::ranges::any_of(few, [&](const Segment& s) {
      const auto next = std::ranges::upper_bound(many, s.start, {}, &Segment::end);
      return next != many.end() && next->start < s.end;
    });
  };
  if (isMuchLonger(a, b)) return anyIn(b, a);
  if (isMuchLonger(b, a)) return anyIn(a, b);
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].start < b[j].end && b[j].start < a[i].end) return true;
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return false;
}

void RegisterAllocation::coalesce() {
  parent_.resize(in_.registers.size());
  std::iota(parent_.begin(), parent_.end(), 0);
  for (auto& list : segments_) {
    std::sort(list.begin(), list.end(),
              [](const Segment& a, const Segment& b) { return a.start < b.start; });
    list = joined({}, std::move(list));
  }
  for (uint32_t i = 0; i < in_.instructions.size(); ++i) {
    const Instruction& move = in_.instructions[i];
    if (deleted_[i] || !(isMove(move.op) || move.op == OpCode::MOVE)) continue;
    uint32_t to = find(move.a);
    uint32_t from = find(move.b);
    if (to == from) {
      deleted_[i] = 1;
      continue;
    }
    if (isScalar(to) != isScalar(from) || isKept(to) || isKept(from)) continue;
    if (from < in_.num_inputs && to < in_.num_inputs) continue;
    if (overlap(segments_[to], segments_[from])) continue;
    // The representative of an argument's class is the argument.
    if (from < in_.num_inputs) std::swap(to, from);
    segments_[to] = joined(std::exchange(segments_[to], {}), std::exchange(segments_[from], {}));
    parent_[from] = to;
    deleted_[i] = 1;
  }
}

void RegisterAllocation::assign() {
  struct Interval {
    uint32_t start, end, r;
  };
  assigned_.assign(in_.registers.size(), kNoIndex);
  std::vector<Interval> intervals;
  using Release = std::pair<uint32_t, uint32_t>;  // end, assigned register
  using LowestFirst = std::greater<>;
  std::priority_queue<Release, std::vector<Release>, LowestFirst> active[2];
  std::priority_queue<uint32_t, std::vector<uint32_t>, LowestFirst> free[2];
  auto hullEnd = [&](uint32_t r) {
    uint32_t end = 0;
    for (const Segment& s : segments_[r]) end = std::max(end, s.end);
    return end;
  };
  for (uint32_t r = 0; r < in_.registers.size(); ++r) {
    if (r < in_.num_inputs) {
      assigned_[r] = r;
      active[isScalar(r)].push({isKept(r) ? kNoIndex : std::max(1u, hullEnd(r)), r});
    } else if (find(r) == r && !segments_[r].empty()) {
      intervals.push_back({segments_[r].front().start, hullEnd(r), r});
    }
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  uint32_t next[2] = {static_cast<uint32_t>(in_.num_inputs), kScalarBase};
  for (const Interval& interval : intervals) {
    bool scalar = isScalar(interval.r);
    auto& pool = free[scalar];
    while (!active[scalar].empty() && active[scalar].top().first <= interval.start) {
      pool.push(active[scalar].top().second);
      active[scalar].pop();
    }
    uint32_t chosen;
    if (pool.empty()) {
      chosen = next[scalar]++;
    } else {
      chosen = pool.top();
      pool.pop();
    }
    assigned_[interval.r] = chosen;
    active[scalar].push({interval.end, chosen});
  }
  uint32_t num_objects = next[0];
  for (uint32_t& a : assigned_) {
    if (a != kNoIndex && a >= kScalarBase) a = a - kScalarBase + num_objects;
  }
  code_.num_object_registers_ = num_objects;
  code_.num_registers_ = num_objects + (next[1] - kScalarBase);
}

// An object stored as such in a scalar register would free what the register held before, which is
// nothing valid.
void RegisterAllocation::checkTag(Instruction& instruction) {
  if (instruction.op < OpCode::OP) return;
  forEachField(instruction, [&](char role, uint32_t& field) {
    if (role != 'd' || field == kNoIndex) return;
    WICK_ASSERT(isScalar(field) == ((instruction.extra & kTagMask) != 0),
                "{} writes a scalar register without its tag", opCodeName(instruction.op));
  });
}

void RegisterAllocation::rewrite(Instruction& instruction) {
  auto replace = [&](uint32_t& field) {
    uint32_t r = assigned_[find(operandIndex(field))];
    WICK_ASSERT(r != kNoIndex, "register allocation lost v{}", operandIndex(field));
    field = (field & ~kMaxOperandIndex) | r;
  };
  forEachRegister(
      instruction, [&](uint32_t& field, bool) { replace(field); },
      [&](uint32_t& field) { replace(field); });
}

void RegisterAllocation::emit() {
  std::vector<uint32_t> position(in_.instructions.size() + 1);
  auto& out = code_.instructions_;
  for (uint32_t i = 0; i < in_.instructions.size(); ++i) {
    position[i] = static_cast<uint32_t>(out.size());
    const BasicBlock& block = blocks_[block_of_[i]];
    if (!block.reachable) continue;
    if (i == block.begin) {
      for (uint32_t r : drops_[block_of_[i]]) {
        uint32_t a = assigned_[find(r)];
        if (a == kNoIndex) continue;
        out.push_back({OpCode::DROP, 0, a, 0, 0});
        code_.nodes_.push_back(in_.nodes[i]);
      }
    }
    if (deleted_[i]) continue;
    Instruction instruction = in_.instructions[i];
    checkTag(instruction);
    rewrite(instruction);
    bool moves = isMove(instruction.op) || instruction.op == OpCode::MOVE;
    if (moves && instruction.a == instruction.b) continue;
    out.push_back(instruction);
    code_.nodes_.push_back(in_.nodes[i]);
  }
  position.back() = static_cast<uint32_t>(out.size());
  code_.operands_ = in_.operands;
  for (Instruction& instruction : out) {
    forEachField(instruction, [&](char role, uint32_t& field) {
      if (role == 'j') field = position[in_.labels[field]];
    });
    size_t needed = 0;
    forEachField(instruction, [&](char role, uint32_t& field) {
      if (role == 'o' || role == 'D') needed += code_.operands_[field];
    });
    code_.scratch_size_ = std::max(code_.scratch_size_, needed + 1);
  }
}

// A conditional jump over an unconditional one becomes one jump on the opposite condition.
void RegisterAllocation::invertJumps() {
  auto& code = code_.instructions_;
  std::vector<uint8_t> is_target(code.size(), 0);
  for (Instruction& instruction : code) {
    forEachField(instruction, [&](char role, uint32_t& field) {
      if (role == 'j') is_target[field] = 1;
    });
  }
  for (uint32_t i = 0; i + 2 < code.size(); ++i) {
    if (code[i + 1].op != OpCode::JUMP || is_target[i + 1]) continue;
    forEachField(code[i], [&](char role, uint32_t& field) {
      if (role != 'j' || field != i + 2 || !invertCondition(code[i])) return;
      // To the next instruction: goes away below.
      field = std::exchange(code[i + 1].a, i + 2);
    });
  }
}

// A jump to an unconditional jump goes where that one goes, and one to the next instruction goes
// away.
void RegisterAllocation::threadJumps() {
  auto& code = code_.instructions_;
  auto count = static_cast<uint32_t>(code.size());
  for (uint32_t i = 0; i < count; ++i) {
    forEachField(code[i], [&](char role, uint32_t& field) {
      // Only forwards, so that each iteration of a loop still takes its counted jump.
      if (role != 'j' || field <= i) return;
      for (int hops = 0; hops < 16 && code[field].op == OpCode::JUMP; ++hops) {
        if (code[field].a <= field) break;
        field = code[field].a;
      }
    });
  }
  invertJumps();
  std::vector<uint8_t> reached(count, 0);
  reached[0] = 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (i + 1 < count && !endsFlow(code[i].op)) reached[i + 1] = 1;
    forEachField(code[i], [&](char role, uint32_t& field) {
      if (role == 'j') reached[field] = 1;
    });
  }
  std::vector<uint32_t> position(count + 1);
  uint32_t kept = 0;
  std::vector<const Node*> nodes;
  std::vector<Instruction> out;
  for (uint32_t i = 0; i < count; ++i) {
    position[i] = kept;
    bool next_falls_through = i + 1 < count && code[i].op == OpCode::JUMP && code[i].a == i + 1;
    if (next_falls_through || !reached[i]) continue;
    out.push_back(code[i]);
    nodes.push_back(code_.nodes_[i]);
    ++kept;
  }
  position[count] = kept;
  for (Instruction& instruction : out) {
    forEachField(instruction, [&](char role, uint32_t& field) {
      if (role == 'j') field = position[field];
    });
  }
  code = std::move(out);
  code_.nodes_ = std::move(nodes);
}

void RegisterAllocation::run() {
  code_.num_inputs_ = in_.num_inputs;
  code_.keeps_first_ = in_.num_inputs > 0 && isKept(0);
  findBlocks();
  findGlobals();
  segments_.resize(in_.registers.size());
  solveLiveness();
  open_end_.assign(in_.registers.size(), 0);
  deleted_.assign(in_.instructions.size(), 0);
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].reachable) scanBlock(b);
  }
  coalesce();
  assign();
  emit();
  threadJumps();
}

}  // namespace wick
