#include "capture/evaluate/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "capture/bytecode/paths.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/frame.h"
#include "capture/values/array.h"
#include "capture/values/constant.h"
#include "capture/values/iterators.h"
#include "capture/values/number.h"
#include "capture/values/sequence.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr const char* kReason = "a branch on the value of a tensor";

// The contents of a frame.
struct FrameContents {
  std::vector<Variable*> slots, stack;
  Variable* value = nullptr;
  bool returned = false;
};

FrameContents contentsOf(const EvalFrame& frame) {
  return {frame.slots, frame.stack, frame.value, frame.status == EvalFrame::Status::kReturned};
}

// Returns whether locals can be seen by other names than their own.
bool showsLocals(const DecodedCode& code) {
  static constexpr const char* kNames[] = {"locals", "vars", "dir", "eval", "exec", "_getframe"};
  return std::ranges::any_of(code.names, [](const Object& name) {
    return std::ranges::any_of(kNames, [&](const char* each) { return is(name.get(), each); });
  });
}

// Returns the iterator of the innermost loop over something, null if there is none. Each iteration within
// a side of a branch has another one.
const Variable* iteratorOn(const EvalFrame& frame) {
  const auto found = std::find_if(frame.stack.rbegin(), frame.stack.rend(), [](Variable* each) {
    return dynamic_cast<IteratorVariable*>(each) != nullptr;
  });
  return found == frame.stack.rend() ? nullptr : *found;
}

bool isInt(const Variable* v) {
  const auto* const constant = dynamic_cast<const ConstantVariable*>(v);
  return constant && PyLong_CheckExact(constant->constant());
}

// Returns whether an iteration of a loop changed a local that is an int, so that the loop may end without a tensor.
bool countsOn(const std::vector<Variable*>& before, const std::vector<Variable*>& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    if (!isInt(before[i]) || !isInt(now[i])) continue;
    const int same = PyObject_RichCompareBool(before[i]->constant(), now[i]->constant(), Py_EQ);
    if (same < 0) throw PythonError();
    if (same == 0) return true;
  }
  return false;
}

// Returns whether the body of a loop takes an int from one iteration to the next.
bool countsInBody(const EvalFrame& frame, int begin, const std::vector<int>& body) {
  return std::ranges::any_of(body, [&](int at) {
    const Instruction& each = frame.code->instructions[static_cast<size_t>(at)];
    return each.op == Op::STORE_FAST && isInt(frame.slots[each.arg]) &&
           readsLocal(*frame.code, begin, static_cast<int>(each.arg));
  });
}

// Evaluates parts of a frame whose effects nobody may see, apart from the tensors that they compute.
class Sides {
 public:
  explicit Sides(EvalFrame& frame)
      : frame_(frame),
        capture_(frame.capture),
        branch_(frame.at),
        handled_(capture_.handled),
        grad_mode_(capture_.recording->gradMode()),
        autocast_(capture_.recording->autocast()),
        last_(capture_.sides_since) {
    constexpr int kMaxDepth = 32, kMostBranches = 512;
    if (capture_.open_branches.size() >= kMaxDepth) breakGraph("branches are nested too deeply");
    if (++capture_.num_branches > kMostBranches) breakGraph("too many branches");
    OpenBranch own{&frame, branch_, iteratorOn(frame), frame.slots};
    const auto before = std::find_if(capture_.open_branches.rbegin(), capture_.open_branches.rend(),
                                     [&](const OpenBranch& o) { return o.isSameAs(own); });
    if (before != capture_.open_branches.rend() && !countsOn(before->slots, own.slots)) {
      breakGraph("a loop that the value of a tensor ends from within");
    }
    capture_.open_branches.push_back(std::move(own));
    capture_.sides_since = capture_.numVariables();
  }
  ~Sides() {
    if (std::uncaught_exceptions() > 0) capture_.left_branch = true;
    capture_.open_branches.pop_back();
    capture_.sides_since = last_;
  }
  Sides(const Sides&) = delete;

  // Evaluates from the instruction to the first time at `end`.
  FrameContents run(const FrameContents& start, BranchSide from, int end) {
    frame_.slots = start.slots;
    frame_.stack = start.stack;
    if (from.pops) frame_.pop();
    frame_.at = from.at;
    frame_.status = EvalFrame::Status::kRunning;
    try {
      while (frame_.at != end && frame_.status == EvalFrame::Status::kRunning) frame_.step();
    } catch (const Raised&) {
      breakGraph(fmt::format("{}: a side raises an exception", kReason));
    }
    if (frame_.status == EvalFrame::Status::kYielded) {
      breakGraph(fmt::format("{}: a side yields", kReason));
    }
    if (capture_.handled != handled_ || capture_.recording->gradMode() != grad_mode_ ||
        capture_.recording->autocast() != autocast_) {
      breakGraph(fmt::format("{}: the sides end in different states", kReason));
    }
    return contentsOf(frame_);
  }

  // The instruction runs again: errors belong to it.
  void goBack() {
    frame_.at = branch_;
    frame_.status = EvalFrame::Status::kRunning;
  }

 private:
  EvalFrame& frame_;
  Capture& capture_;
  const int branch_;
  Variable* const handled_;
  const bool grad_mode_;
  const int64_t autocast_;
  const int64_t last_;
};

// Returns the variable for a result of a branch or loop that stands for `before`, a tensor or a number.
Variable* joinedResult(Capture& capture, const Object& fake, const Variable* before = nullptr) {
  auto& made = dynamic_cast<TensorVariable&>(*capture.result(fake));
  made.joined = true;
  const auto* const number = dynamic_cast<const NumberVariable*>(before);
  if (!number) return &made;
  return capture.make<NumberVariable>(made, *number->type());
}

bool isBool(const Variable* v) {
  const auto* const constant = dynamic_cast<const ConstantVariable*>(v);
  return constant && PyBool_Check(constant->constant());
}

// True and False as tensors, for locals that branches set to one or the other. They are made before a branch, because each
// side may hand them out.
class Flags {
 public:
  Flags() = default;
  Flags(Capture& capture, TensorVariable& condition, const FrameContents& contents) {
    const bool wanted = std::ranges::any_of(contents.slots, [](const Variable* each) {
      const auto* const number = dynamic_cast<const NumberVariable*>(each);
      return isBool(each) || (number && !number->isFloat());
    });
    if (!wanted) return;
    auto* const known = dynamic_cast<NumberVariable*>(truthIn(capture, &condition));
    if (!known) return;
    PyObject* const fake = known->tensor().fake();
    const auto made = [&](const char* name) {
      return capture.make<NumberVariable>(
          dynamic_cast<TensorVariable&>(*capture.computed(name, {fake, fake})), PyBool_Type);
    };
    no_ = made("__ne__");
    yes_ = made("__eq__");
  }

  // Returns the tensor that is a variable, or that holds the number; null for others.
  TensorVariable* tensorOf(Variable* v) const {
    if (isBool(v)) v = v->constant() == Py_True ? yes_ : no_;
    if (!v) return nullptr;
    auto* const number = dynamic_cast<NumberVariable*>(v);
    return number ? &number->tensor() : dynamic_cast<TensorVariable*>(v);
  }
  // Returns the number that stands for a bool.
  NumberVariable* number() const { return yes_; }

 private:
  NumberVariable *no_ = nullptr, *yes_ = nullptr;
};

// Finds what the two sides leave different.
class Joining {
 public:
  explicit Joining(Capture& capture, const Flags& flags = {}) : capture_(capture), flags_(flags) {}

  // Returns whether both are the same, or tensors or tuples of tensors that can be joined.
  bool canJoin(Variable* a, Variable* b) {
    if (a == b) return true;
    if (!a || !b) return false;
    capture_.use(a);
    capture_.use(b);
    auto *const first = dynamic_cast<TensorVariable*>(a), *const second =
                                                              dynamic_cast<TensorVariable*>(b);
    if (first && second) {
      if (!capture_.recording->canJoin(first->fake(), second->fake())) return false;
      add(first, second);
      return true;
    }
    auto *const one = dynamic_cast<ArrayVariable*>(a), *const other =
                                                           dynamic_cast<ArrayVariable*>(b);
    if (one && other) {
      return one->canJoin(capture_, *other) && canJoin(&one->tensor(), &other->tensor());
    }
    if (areNumbers(a, b)) {
      if (a->type() != b->type()) return false;
      auto *const left = flags_.tensorOf(a), *const right = flags_.tensorOf(b);
      if (!left || !right || !capture_.recording->canJoin(left->fake(), right->fake()))
        return false;
      add(left, right);
      return true;
    }
    if (a->constant() && b->constant()) return isSameConstant(a->constant(), b->constant());
    auto *const left = dynamic_cast<TupleVariable*>(a), *const right =
                                                            dynamic_cast<TupleVariable*>(b);
    if (!left || !right || !capture_.isMadeInSide(*left) || !capture_.isMadeInSide(*right) ||
        left->size() != right->size() || left->type() != &PyTuple_Type ||
        right->type() != &PyTuple_Type) {
      return false;
    }
    for (int64_t i = 0; i < left->size(); ++i) {
      if (!canJoin(left->at(capture_, i), right->at(capture_, i))) return false;
    }
    return true;
  }

  // Returns the pairs of tensors that differ.
  const std::vector<std::pair<PyObject*, PyObject*>>& pairs() const { return pairs_; }
  void setResults(const std::vector<Object>& results) {
    for (const Object& each : results) results_.push_back(joinedResult(capture_, each));
  }

  // Returns the variable that stands for both; canJoin() is true for them.
  Variable* joined(Variable* a, Variable* b) {
    if (a == b) return a;
    if (auto* const first = dynamic_cast<TensorVariable*>(a)) {
      return resultOf(first, dynamic_cast<TensorVariable*>(b));
    }
    if (auto* const array = dynamic_cast<ArrayVariable*>(a)) {
      Variable* const tensor = joined(&array->tensor(), &dynamic_cast<ArrayVariable*>(b)->tensor());
      return capture_.make<ArrayVariable>(dynamic_cast<TensorVariable&>(*tensor),
                                          Object::share(array->shadow()));
    }
    if (areNumbers(a, b)) {
      auto& result =
          dynamic_cast<TensorVariable&>(*resultOf(flags_.tensorOf(a), flags_.tensorOf(b)));
      return capture_.make<NumberVariable>(result, *a->type());
    }
    auto* const left = dynamic_cast<TupleVariable*>(a);
    if (!left || a->constant()) return a;
    std::vector<Variable*> elements;
    for (int64_t i = 0; i < left->size(); ++i) {
      elements.push_back(
          joined(left->at(capture_, i), dynamic_cast<TupleVariable&>(*b).at(capture_, i)));
    }
    return capture_.make<TupleVariable>(std::move(elements), &PyTuple_Type);
  }

 private:
  // Returns whether a tensor decides one of them, or the branch decides between True and False.
  static bool areNumbers(const Variable* a, const Variable* b) {
    return dynamic_cast<const NumberVariable*>(a) || dynamic_cast<const NumberVariable*>(b) ||
           (isBool(a) && isBool(b) && a->constant() != b->constant());
  }
  Variable* resultOf(const TensorVariable* first, const TensorVariable* second) {
    return results_[index_.at({first->fake(), second->fake()})];
  }
  void add(const TensorVariable* first, const TensorVariable* second) {
    if (index_.emplace(std::pair{first->fake(), second->fake()}, pairs_.size()).second) {
      pairs_.emplace_back(first->fake(), second->fake());
    }
  }

  static bool isSameConstant(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyBytes_CheckExact(a)) return false;
    const int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0) throw PythonError();
    return same == 1;
  }

  Capture& capture_;
  const Flags flags_;
  std::map<std::pair<PyObject*, PyObject*>, size_t> index_;
  std::vector<std::pair<PyObject*, PyObject*>> pairs_;
  std::vector<Variable*> results_;
};

[[noreturn]] void refuse(const EvalFrame& frame, size_t slot) {
  breakGraph(fmt::format("{}: '{}' is of one kind or another then", kReason,
                         PyUnicode_AsUTF8(frame.code->slots[slot].name.get())));
}

// Goes the way that does not end in an exception, where the other one does. Returns whether it went.
bool supposesNoException(EvalFrame& frame, TensorVariable& condition, BranchSide if_true,
                         BranchSide if_false) {
  if (!frame.capture.mayExpect()) return false;
  const bool true_raises = alwaysRaises(*frame.code, if_true.at);
  if (true_raises == alwaysRaises(*frame.code, if_false.at)) return false;
  frame.capture.expect(condition, !true_raises);
  const BranchSide way = true_raises ? if_false : if_true;
  if (way.pops) frame.pop();
  frame.next = way.at;
  return true;
}

// A loop. One instruction decides whether it goes on.
struct TensorLoop {
  int begin = 0, behind = 0;  // instructions that follow if it goes on, and if not
  std::vector<int> body;      // instructions from `begin` to that one, without it
};

// Evaluates the body once more, for all iterations. It runs while the condition is `again`.
void loopOnTensor(EvalFrame& frame, TensorVariable& condition, bool again, const TensorLoop& loop) {
  Capture& capture = frame.capture;
  const int jump = frame.at;
  const FrameContents start = contentsOf(frame);
  const Flags flags(capture, condition, start);
  Sides sides(frame);
  // Locals that the body sets are tensors, and change with each iteration.
  std::vector<size_t> carried;
  std::vector<PyObject*> fakes;
  std::vector<const Variable*> kinds;
  for (const int i : loop.body) {
    const Instruction& each = frame.code->instructions[static_cast<size_t>(i)];
    if (each.op != Op::STORE_FAST || std::ranges::find(carried, each.arg) != carried.end())
      continue;
    Variable* const held = start.slots[each.arg];
    auto* const tensor = held ? flags.tensorOf(capture.use(held)) : nullptr;
    // A bool that each iteration sets before it reads it stays one.
    if (!tensor ||
        (isBool(held) && !readsLocal(*frame.code, loop.begin, static_cast<int>(each.arg))))
      continue;
    carried.push_back(each.arg);
    fakes.push_back(tensor->fake());
    kinds.push_back(isBool(held) ? flags.number() : held);
  }
  FrameContents inside = start;
  const std::vector<Object> current =
      capture.recording->beginLoop(condition.fake(), again, fakes, capture.root_step);
  for (size_t i = 0; i < carried.size(); ++i) {
    inside.slots[carried[i]] = joinedResult(capture, current[i], kinds[i]);
  }
  FrameContents after = sides.run(inside, {loop.begin, false}, jump);
  sides.goBack();
  if (after.returned || after.stack.size() != start.stack.size() + 1) {
    breakGraph("a loop that the value of a tensor ends from within");
  }
  auto* const next = flags.tensorOf(capture.use(after.stack.back()));
  after.stack.pop_back();
  if (!next || after.stack != start.stack) breakGraph(kReason);
  std::vector<PyObject*> results;
  for (size_t i = 0; i < after.slots.size(); ++i) {
    const auto at = std::ranges::find(carried, i);
    if (at == carried.end()) {
      if (after.slots[i] == start.slots[i]) continue;
      Joining same(capture);
      if (same.canJoin(after.slots[i], start.slots[i]) && same.pairs().empty()) continue;
      // Set anew by each iteration before it is read, and not read after the loop.
      if (showsLocals(*frame.code) || readsLocal(*frame.code, jump, static_cast<int>(i))) {
        breakGraph(
            fmt::format("a loop on the value of a tensor that changes '{}', which is no tensor",
                        PyUnicode_AsUTF8(frame.code->slots[i].name.get())));
      }
      after.slots[i] = nullptr;
    }
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    Variable* const held = after.slots[carried[i]];
    auto* const tensor = held ? flags.tensorOf(capture.use(held)) : nullptr;
    if (!tensor || held->type() != kinds[i]->type()) refuse(frame, carried[i]);
    results.push_back(tensor->fake());
  }
  const std::vector<Object> ends = capture.recording->endLoop(next->fake(), results);
  frame.slots = after.slots;
  for (size_t i = 0; i < carried.size(); ++i)
    frame.slots[carried[i]] = joinedResult(capture, ends[i], kinds[i]);
  frame.stack = start.stack;
  frame.next = loop.behind;
}

}  // namespace

void branchOnTensor(EvalFrame& frame, TensorVariable& condition, BranchSide if_true,
                    BranchSide if_false) {
  if (supposesNoException(frame, condition, if_true, if_false)) return;
  Capture& capture = frame.capture;
  const int end = static_cast<int>(frame.code->instructions.size());
  const int meeting = meetingPoint(*frame.code, frame.at);
  if (meeting < 0) breakGraph(kReason);
  for (const bool again : {true, false}) {
    const BranchSide body = again ? if_true : if_false, behind = again ? if_false : if_true;
    if (body.pops || behind.pops) break;
    const std::vector<int> inside = instructionsBetween(*frame.code, body.at, frame.at, meeting);
    if (inside.empty() || countsInBody(frame, body.at, inside)) continue;
    return loopOnTensor(frame, condition, again, {body.at, behind.at, inside});
  }
  const FrameContents start = contentsOf(frame);
  const Flags flags(capture, condition, start);
  Sides sides(frame);
  capture.recording->beginBranch(condition.fake(), capture.root_step);
  FrameContents first = sides.run(start, if_true, meeting);
  capture.recording->beginOtherSide();
  FrameContents second = sides.run(start, if_false, meeting);
  sides.goBack();

  if (first.returned != second.returned || (first.returned && meeting != end) ||
      first.stack.size() != second.stack.size()) {
    breakGraph(fmt::format("{}: one side returns", kReason));
  }
  Joining joining(capture, flags);
  if (first.returned) {
    if (!joining.canJoin(first.value, second.value)) {
      breakGraph(fmt::format("{}: the sides return different kinds of values", kReason));
    }
    first.slots = second.slots = start.slots;
    first.stack = second.stack = {};
  }
  for (size_t i = 0; i < first.stack.size(); ++i) {
    if (joining.canJoin(first.stack[i], second.stack[i])) continue;
    breakGraph(fmt::format("{}: the sides give different kinds of values", kReason));
  }
  const bool shows = showsLocals(*frame.code);
  for (size_t i = 0; i < first.slots.size(); ++i) {
    if (joining.canJoin(first.slots[i], second.slots[i])) continue;
    if (shows || readsLocal(*frame.code, meeting, static_cast<int>(i))) refuse(frame, i);
    first.slots[i] = second.slots[i] = nullptr;
  }
  joining.setResults(capture.recording->endBranch(joining.pairs()));
  for (size_t i = 0; i < first.slots.size(); ++i) {
    frame.slots[i] = joining.joined(first.slots[i], second.slots[i]);
  }
  frame.stack.clear();
  for (size_t i = 0; i < first.stack.size(); ++i) {
    frame.stack.push_back(joining.joined(first.stack[i], second.stack[i]));
  }
  frame.next = meeting;
  if (!first.returned) return;
  frame.value = joining.joined(first.value, second.value);
  frame.status = EvalFrame::Status::kReturned;
}

}  // namespace wick::capture
