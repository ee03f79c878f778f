// What filters cost: measured, with one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "streams/stream_graph.h"

namespace wick::streams {

struct Costs {
  std::vector<double> milliseconds;  // of a firing of each filter
  // Of the tensors that are alive before each filter and behind the last.
  std::vector<int64_t> bytes;
  double whole_milliseconds = 0;  // of a call of the program as one function
};

struct MeasureOptions {
  double seconds = 1;  // for the timed calls of all filters together, roughly
  int warm_up = 4;     // calls of each before, which compile
  // Where calls only queue work on a device: waits for that.
  std::function<void()> finish{};
};

// Runs each filter as a function of its own on what the filters before it gave for `arguments`, and
// takes the fastest of its calls: others on the machine make calls slower, never faster. Waits for
// machine code. The many calls leave behind what calls leave behind: of a program with state a copy is
// measured. Sets the number of threads within an operator to one meanwhile. Errors as
// callFunction(), with the filter's name in front.
Costs measureCosts(const StreamGraph& graph, const std::vector<IValue>& arguments,
                   const MeasureOptions& options = {});

// Sets the number of threads within an operator for a scope.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads);
  ~ThreadsScope();
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int before_;
};

}  // namespace wick::streams
