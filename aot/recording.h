// Recording: what a call of a function computes, as a Program.
//
// The function runs once, on tensors of the device "ahead" (aot/device.h), whose elements
// nobody knows: sizes, lists, numbers and conditions that depend on them are computed as always, and
// what would compute elements is noted instead. It arrives by the ways that computations for other
// devices take: kernels of fusion groups and of single operators (runtime/fusion/group_backend.h),
// products, convolutions and pooling (runtime/kernels/device_layers.h), copies
// (core/device_backend.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aot/program.h"
#include "core/error_types.h"
#include "core/ivalue.h"
#include "runtime/fusion/walk.h"

namespace wick::aot {

// Something cannot be compiled ahead of time. The name of its class stands in front of messages that people read.
class NotAhead : public RuntimeError {
 public:
  static constexpr const char* kName = "cannot be compiled ahead of time";
  explicit NotAhead(const std::string& message) : RuntimeError(message, kName) {}
};
// Whether the error is one. A program that it goes through makes a RuntimeError of it, which keeps the class's name.
inline bool isNotAhead(const RuntimeError& e) {
  return e.className() == NotAhead::kName;
}

// A loop cannot stay one.
class KeptLoopError : public NotAhead {
 public:
  KeptLoopError(const std::string& message, int64_t ordinal)
      : NotAhead(message), ordinal_(ordinal) {}
  int64_t ordinal() const { return ordinal_; }  // as aot/kept_loops.h counts them

 private:
  int64_t ordinal_;
};

// One at a time on a thread, which is the current one while it lives.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The calling thread's; NotAhead when there is none.
  static Recording& current();

  // A tensor that stands for argument number `inputs()`, with the sizes, dtype and strides of
  // `example`, which must be dense.
  Tensor addInput(const std::string& name, const Tensor& example);
  // The tensor with the same elements on the device; equal ones share a buffer.
  Tensor constant(const Tensor& on_cpu);
  void addOutput(const std::string& name, const Tensor& result);
  // Copies into a tensor of the device, whose contents other steps may write as well.
  void assign(const Tensor& to, const Tensor& from);
  // Forgets arguments and results, and keeps constants, for another call. Of the steps those are kept
  // that compute what optimized graphs hold as constants. Where the program
  // asks for an element of a boolean tensor, it gets these answers, and then true.
  void restart(std::vector<bool> assumed = {});
  // What the program asked for, and was told, in order.
  struct Decision {
    size_t position;  // the number of steps before
    Place place;
    bool value;
    // Of a size, which is a decision, too.
    std::optional<int64_t> size{};
    int64_t most = 0;
    std::string by{};
  };
  static constexpr size_t kMostDecisions = 64;
  static constexpr size_t kMostSteps = size_t{1} << 17;
  // What it takes sizes that elements decide for.
  void assumeSizes(DecidedSizes sizes) { sizes_ = std::move(sizes); }
  // A size that the int64 `count` tells when the compiled model runs, which raises when it is not from 0 to `most`. What is
  // recorded from here on is for one of these sizes.
  int64_t size(const Tensor& count, int64_t most, const std::string& by);
  // Whether a size that is assumed cannot be on the way through the program since restart().
  bool isImpossible() const { return impossible_; }
  // The bound of a size for which the program tells none.
  int64_t mostElse() const { return sizes_.most; }
  // The result of a computation on a tensor that was noted before, and is the same still; undefined when there is none.
  Tensor findComputed(const std::string& what, const Tensor& from) const;
  void noteComputed(const std::string& what, const Tensor& from, const Tensor& result);
  // All that were needed, with their largest bounds on any way through the program.
  const std::vector<SizeAsk>& asks() const { return asks_; }
  // A further buffer for the contents of a result.
  void addAlternate(size_t output, const Tensor& result);
  // The largest sizes of a result, and which of them elements decide.
  void noteSizes(size_t output, const DimVector& most, uint32_t decided);
  // The compiled model raises the message where an element of a boolean tensor is false.
  void require(const Tensor& holds, const std::string& message);
  // Whether the program has asked for an element that is not a boolean one.
  bool askedForNumber() const { return asked_for_number_; }
  // Whether it ended because the program has too many steps.
  bool isFull() const { return program_.steps.size() >= kMostSteps; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  // The steps since restart(), which the recording has no longer.
  std::vector<Step> takeSteps() { return std::exchange(program_.steps, {}); }
  void setSteps(std::vector<Step> steps) { program_.steps = std::move(steps); }
  // What was recorded. The recording is empty then.
  Program take();

  // For the seams.
  void* allocate(size_t bytes);
  void clear(const void* memory);
  void copy(const Tensor& to, const Tensor& from);
  void kernel(const std::string& name, const std::shared_ptr<const loop::Kernel>& kernel,
              codegen::CppWalk walk, const std::vector<int64_t>& addresses,
              std::vector<uint64_t> numbers, std::string complaint = "");
  void add(const std::string& name, decltype(Step::what) what);
  Place placeOf(const Tensor& t) const;
  // Notes that the memory is read or written from now on.
  void touch(const Place& place, bool writes);
  // The contents of a tensor whose buffer is constant; undefined for others.
  Tensor known(const Tensor& t) const;

  // ---- loops and conditions that stay what they are (aot/kept_loops.h) ----
  // Undefined tensors stand for values that no path reads.

  // A value that the next loop carries, with what it is before the first round.
  void carry(const Tensor& value);
  // The steps up to endLoop() are those of a round; `ordinal` tells which loop of the program it is. With
  // `conditional` the last value that is carried is a bool, and tells whether there is a further round.
  void beginLoop(const Tensor& rounds, bool conditional, int64_t ordinal);
  // The elements of a list of tensors are carried by the next loop. They are what it carries from now on; setNextOf() takes
  // what they are at the end of the round, and takeResultsInto() puts the results into the list.
  void carryList(const IValue& list);
  void setNextOf(const IValue& list);
  void takeResultsInto(const IValue& list);
  // The number of the round, an int64.
  Tensor round() const;
  Tensor carried(size_t number) const;
  // What the value is in the next round.
  void setNext(size_t number, const Tensor& value);
  // Adds the tensor to the list, once a round. The number of rounds is known.
  void appendEachRound(const IValue& list, const Tensor& value);
  void endLoop();

  // The steps up to beginElse() run when the condition is true, those from there to endBranch() when it is false.
  // Whether the first ones, and the others, are recorded.
  bool beginBranch(const Tensor& condition);
  bool beginElse();
  // A value of the side that is recorded now.
  void setResult(size_t number, const Tensor& value);
  void endBranch();
  // The sides of the condition that began last set elements of a list; it has so many results beside them. Each side begins
  // with the same ones, restoreList() in front of the second; setResultsOf() takes those at the end of a side, and
  // takeResultsInto() puts the results into the list.
  void branchList(const IValue& list, size_t results);
  void restoreList(const IValue& list);
  void setResultsOf(const IValue& list);
  // Of the loop or condition that ended last.
  Tensor result(size_t number) const;
  void raise(const std::string& message);

  // A view of `from`, which has one dimension less: at a position of this dimension that an int64 tells.
  Tensor select(const Tensor& from, int64_t dim, const Tensor& index);

  // The loop within which something was refused.
  std::optional<int64_t> openLoop() const;
  // Rounds of loops that were run one after the other, by ordinal.
  void noteRounds(int64_t ordinal, int64_t rounds);
  const std::map<int64_t, int64_t>& roundsOfLoops() const { return rounds_; }

 private:
  struct Appended {
    IValue list;
    Tensor all;  // of all rounds
  };
  // A list whose elements are values from number `first` on.
  struct KeptList {
    IValue list;
    size_t first = 0;
    std::vector<IValue> elements{};  // in front of the loop or condition
  };
  struct Frame {
    bool loop = false;
    int64_t ordinal = 0;
    uint32_t number = 0;        // of a loop
    size_t step = 0;            // where it begins
    uint32_t first_buffer = 0;  // of those that are made in it
    std::optional<int64_t> rounds{};
    std::optional<bool> known{};  // of a condition
    Tensor round{};
    std::vector<Tensor> values{}, next{};
    bool conditional = false;
    std::vector<Appended> appended{};
    std::vector<KeptList> lists{};
  };
  // Two buffers that the program takes for one.
  struct Pair {
    uint32_t buffers[2];
    bool touched[2]{}, written[2]{};
  };
  Frame& loopFrame();
  static KeptList* findList(std::vector<KeptList>& lists, const IValue& list);
  static void checkLength(const KeptList& kept);
  Tensor ownCarried(const Tensor& value);
  Tensor memoryLike(const Tensor& t);
  void assignOwn(const Tensor& to, const Tensor& from);
  void pair(uint32_t a, uint32_t b);
  void notePairs(const std::vector<Use>& uses);
  uint32_t wholeOf(uint32_t buffer) const;
  bool exchanges(const Frame& frame, size_t number) const;
  uint32_t bufferAt(int64_t address) const;
  bool decide(const Place& place);
  void repeatWindows();
  Recording* const before_;
  Program program_;
  std::vector<Step> earlier_;  // of the calls before
  std::vector<bool> assumed_;
  std::vector<Decision> decisions_;
  DecidedSizes sizes_;
  std::vector<SizeAsk> asks_;
  struct Computed {
    std::string what;
    Tensor from, result;
    size_t step;  // how many were in front of it
  };
  std::vector<Computed> computed_;
  std::map<const void*, Tensor> constants_;  // by storage on the CPU
  std::vector<Tensor> held_;
  bool asked_for_number_ = false, impossible_ = false;
  std::vector<Frame> frames_;
  std::vector<Tensor> pending_, results_;  // of the next loop, and of the last
  std::vector<KeptList> pending_lists_, result_lists_;
  std::vector<Pair> pairs_;
  std::map<uint32_t, uint32_t> windows_;  // what each is a part of
  std::map<int64_t, int64_t> rounds_;
  uint32_t loops_ = 0;  // so many numbers are taken
  uint32_t in_loop_ = 0;
  bool own_steps_ = false;  // whether what is added is not the program's
};

// How a kernel goes over memory, as its text wants to know it.
codegen::CppWalk wayOf(const loop::Kernel& kernel, const Walk& walk);

// An argument of an operator on the device: constants on the CPU may stand among them. Undefined stays undefined.
Tensor here(const Tensor& t);

}  // namespace wick::aot
