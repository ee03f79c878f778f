// A plan in which repetitions of records are loops, so that it is small, and so that the number of
// trips is handed over like other numbers: what runs the same block more or less often is the same
// program.
//
// A rolled plan is an ordinary plan of another graph. A loop is a record there. Values that a block
// makes and somebody else reads are lists of the loop's record; what reads one of them gets it by
// operators on lists, which are records too.
#pragma once

#include <memory>
#include <vector>

#include "lazy/graph.h"

namespace wick::lazy {

// The block and what goes in and out. The record's operands are the number of trips, and then one
// for each parameter.
struct Loop {
  struct Parameter {
    enum class Role : uint8_t {
      Same,     // the operand, a value or a number
      Carried,  // the operand in the first trip, then the value `next` of the trip before
      Each,     // an element of the operand, a list: number `start` + `step` * trip
    };
    Role role = Role::Same;
    ValueId next = kNoValue;
    int64_t start = 0, step = 1;
    bool is_number = false;
  };
  // The record's values in their order.
  struct Result {
    // Of all trips, as a list, this value of the block. Or kNoValue: what the parameter is behind the
    // last trip.
    ValueId value = kNoValue;
    uint32_t parameter = 0;
  };
  std::vector<Parameter> parameters;  // in the block they are the values 0, 1, …
  std::vector<Record> block;
  uint32_t values = 0;  // that there are in the block
  std::vector<Result> results;
};

struct Rolled {
  Graph graph;
  Graph::Plan plan;
  size_t loops = 0;
  // Of each output of the plan that was rolled where it is: which of the new plan's outputs, and
  // which element when that is a list.
  struct Output {
    static constexpr size_t kWhole = SIZE_MAX;
    size_t output = 0, element = kWhole;
  };
  std::vector<Output> outputs;
  // Bases of the graph that was rolled, by values of this one.
  Targets targets;

  // Null when nothing repeats itself often enough.
  static std::unique_ptr<Rolled> roll(const Graph& graph, const Graph::Plan& plan);
  // What the plan's outputs were before it was rolled.
  static std::vector<IValue> unpack(const std::vector<IValue>& results,
                                    const std::vector<Output>& outputs);
};

// What setRolling() said.
bool rolls();

}  // namespace wick::lazy
