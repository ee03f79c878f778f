// Runs of filters as functions of their own.
#pragma once

#include <memory>
#include <vector>

#include "ir/function.h"
#include "streams/stream_graph.h"

namespace wick::streams {

// The values that are alive before each filter and behind the last: made by filters before it, or
// arguments, and read by it or those behind it, or results. The first list holds all arguments.
// Constants are never among them. Of a graph made by fromMethod().
std::vector<std::vector<Value*>> aliveValues(const StreamGraph& graph);

// Some of the filters, [first, last), as one function, which the executor compiles and runs as any.
struct StageCode {
  std::shared_ptr<GraphFunction> function;
  // What it takes, in the order of its arguments: positions among the values alive before it, and
  // whether nobody reads them behind it.
  struct Argument {
    size_t position;
    bool last;
  };
  std::vector<Argument> arguments;
  // Where each value that is alive behind it comes from: a result of the function, or a value that
  // was alive before it.
  struct Source {
    bool is_result;
    size_t position;
  };
  std::vector<Source> sources;
  // Whether the function gives a tuple of its results; otherwise it has one result.
  bool gives_tuple = false;
};

// `alive` as aliveValues() gives it. The function keeps the graph's program alive.
StageCode stageCode(const StreamGraph& graph, const std::vector<std::vector<Value*>>& alive,
                    size_t first, size_t last, const std::string& name);

// Constants of the code that are on another device of that type, and the names of such, become ones of
// this device: copies, one of each tensor.
void moveStageConstants(const StageCode& code, Device device);

// The values that are alive between two stages, of one item.
using Packet = std::vector<IValue>;

// Runs the code on a packet, which becomes that of the values alive behind it. Errors as
// callFunction().
void runStage(const StageCode& code, Packet& packet);

// The program's result from the values alive behind the last filter.
IValue resultOf(const StreamGraph& graph, const std::vector<std::vector<Value*>>& alive,
                Packet packet);

}  // namespace wick::streams
