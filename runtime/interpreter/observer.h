// Watching a run from outside: what a profiler needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "ir/graph.h"

namespace wick {

// One finished call of an operator, or of a kernel that computes a group of them.
struct OperatorCall {
  const Node& node;    // names the operator and its place in the source
  const Operator* op;  // null: the node is a prim::FusionGroup, whose body has the operators
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  int64_t bytes;  // tensor memory allocated meanwhile less what was freed, by all threads
  bool failed;    // it raised
};

// Told after every operator call of a run (RunOptions::observer). Forks call it from their threads,
// so it synchronizes itself. Must not throw.
class OperatorObserver {
 public:
  virtual ~OperatorObserver() = default;
  // Told before a call of its arguments, on the thread that makes it; the time that this takes is not the
  // call's. A group that did not run after all is not told to called().
  virtual void calling(std::span<const IValue> /*arguments*/) {}
  virtual void called(const OperatorCall& call) = 0;
};

}  // namespace wick
