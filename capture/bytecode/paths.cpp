#include "capture/bytecode/paths.h"

#include <algorithm>

namespace wick::capture {
namespace {

// Calls the function with each instruction that may follow, and with `end` behind the last one.
template <class F>
void forEachNext(const DecodedCode& code, int index, F&& f) {
  const Instruction& instruction = code.instructions[static_cast<size_t>(index)];
  const int end = static_cast<int>(code.instructions.size());
  if (isJump(instruction.op)) f(instruction.target);
  if (!has(instruction.op, kEndsPath)) {
    f(std::min(index + 1, end));
  } else if (!isJump(instruction.op)) {
    f(end);
  }
}

// Immediate postdominators, by the iteration of Cooper, Harvey and Kennedy on the reversed graph.
class Postdominators {
 public:
  explicit Postdominators(const DecodedCode& code)
      : end_(static_cast<int>(code.instructions.size())),
        before_(code.instructions.size() + 1),
        number_(code.instructions.size() + 1, -1),
        of_(code.instructions.size() + 1, -1) {
    for (int i = 0; i < end_; ++i) {
      forEachNext(code, i, [&](int next) { before_[static_cast<size_t>(next)].push_back(i); });
    }
    number();
    of_[static_cast<size_t>(end_)] = end_;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto each = order_.rbegin(); each != order_.rend(); ++each) {
        if (*each == end_) continue;
        int meeting = -1;
        forEachNext(code, *each, [&](int next) {
          if (of_[static_cast<size_t>(next)] < 0) return;
          meeting = meeting < 0 ? next : meet(meeting, next);
        });
        int& known = of_[static_cast<size_t>(*each)];
        if (known == meeting) continue;
        known = meeting;
        changed = true;
      }
    }
  }

  int of(int index) const { return of_[static_cast<size_t>(index)]; }

 private:
  // Numbers the instructions that lead to the end, in postorder of the reversed graph.
  void number() {
    struct Open {
      int at;
      size_t next = 0;
    };
    std::vector<bool> seen(before_.size());
    std::vector<Open> open{{end_}};
    seen[static_cast<size_t>(end_)] = true;
    while (!open.empty()) {
      Open& top = open.back();
      const std::vector<int>& before = before_[static_cast<size_t>(top.at)];
      if (top.next < before.size()) {
        const int other = before[top.next++];
        if (seen[static_cast<size_t>(other)]) continue;
        seen[static_cast<size_t>(other)] = true;
        open.push_back({other});
        continue;
      }
      number_[static_cast<size_t>(top.at)] = static_cast<int>(order_.size());
      order_.push_back(top.at);
      open.pop_back();
    }
  }

  int meet(int a, int b) const {
    while (a != b) {
      int& lower = number_[static_cast<size_t>(a)] < number_[static_cast<size_t>(b)] ? a : b;
      lower = of_[static_cast<size_t>(lower)];
    }
    return a;
  }

  const int end_;
  std::vector<std::vector<int>> before_;  // the other way around
  std::vector<int> order_, number_;
  std::vector<int> of_;
};

}  // namespace

int meetingPoint(const DecodedCode& code, int branch) {
  return Postdominators(code).of(branch);
}

bool alwaysRaises(const DecodedCode& code, int from) {
  const int end = static_cast<int>(code.instructions.size());
  std::vector<bool> seen(code.instructions.size());
  std::vector<int> open{from};
  bool raises = false;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (at >= end || seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    const Instruction& instruction = code.instructions[static_cast<size_t>(at)];
    if (instruction.op == Op::RETURN_VALUE || instruction.op == Op::YIELD_VALUE) return false;
    raises |= instruction.op == Op::RAISE_VARARGS || instruction.op == Op::RERAISE;
    forEachNext(code, at, [&](int next) { open.push_back(next); });
  }
  return raises;
}

std::vector<int> instructionsBetween(const DecodedCode& code, int from, int to, int except) {
  const int end = static_cast<int>(code.instructions.size());
  std::vector<bool> seen(code.instructions.size());
  std::vector<int> open{from}, found;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (at == except || at >= end) return {};
    if (at == to || seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    found.push_back(at);
    forEachNext(code, at, [&](int next) { open.push_back(next); });
  }
  return found;
}

bool readsLocal(const DecodedCode& code, int from, int slot) {
  const int end = static_cast<int>(code.instructions.size());
  std::vector<bool> seen(code.instructions.size());
  std::vector<int> open{from};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (at >= end || seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    for (const ExceptionRange& range : code.exception_ranges) {
      if (at >= range.start && at < range.end) open.push_back(range.target);
    }
    const Instruction& instruction = code.instructions[static_cast<size_t>(at)];
    if (has(instruction.op, kTakesLocal) && instruction.arg == static_cast<uint32_t>(slot)) {
      if (instruction.op != Op::STORE_FAST) return true;
      continue;
    }
    forEachNext(code, at, [&](int next) { open.push_back(next); });
  }
  return false;
}

}  // namespace wick::capture
