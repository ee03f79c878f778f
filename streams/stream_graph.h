// Stream graphs: a program as filters that hand each other values through channels, in the manner of
// StreamIt. A filter fires when its channels hold enough: it pops and peeks at its inputs and pushes
// to its outputs. Pipelines, split-joins and feedback loops are how the filters are arranged.
//
// In the graph of a method (streams/from_method.h) an element is a value of one call, of any type,
// handed on by reference; each filter fires once a call, and many calls may be under way. In graphs
// over time (streams/time/) an element is one time step of a tensor.
//
// Values, not synchronized; a graph that nobody changes may be read by any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ivalue.h"
#include "ir/graph.h"

namespace wick::streams {

// One end of a channel. Channels are named by the values that flow through them; each has one
// producer (a filter or the outside) and any number of readers, each of which sees every element.
struct Port {
  std::string value;
  std::string type;   // as annotations say it: "Tensor", "Tuple[int, Tensor]"
  int64_t rate = 1;   // elements that a firing pops or pushes
  int64_t peek = 1;   // of inputs: how many must be there, at least `rate`
  int64_t delay = 0;  // of inputs: how many are there before the first firing (feedback)
};

// What the filter computes, unless the graph was read from text: nodes of StreamGraph::program.
using Nodes = std::vector<const Node*>;

struct Filter {
  std::string name;  // unique in the graph: the module's path, "layer1.0.conv1"
  std::string kind;  // "conv2d"
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  // Whether a firing depends on those before it: it writes what outlives a call, draws random
  // numbers, prints. Such a filter has one copy, and sees the elements in their order.
  bool stateful = false;
  int64_t most_replicas = 0;  // copies that a plan may make; 0: any number, unless stateful
  std::vector<std::pair<std::string, std::string>> options;  // constants, as text
  std::vector<std::pair<std::string, std::string>> state;    // tensors of the module, described
  Nodes nodes;
};

// How filters are arranged.
struct Part {
  enum class Kind {
    Filter,
    Identity,   // a branch that hands `value` on
    Pipeline,   // one behind the other
    SplitJoin,  // branches beside each other
    Feedback,   // a recurrence: the values `carried` go back to the beginning
    Network,    // filters wired by the names of values alone, where no other form fits
  };
  Kind kind = Kind::Pipeline;
  size_t filter = 0;                 // of a Filter: its index
  std::string value;                 // of an Identity
  std::vector<Part> parts;           // of all others
  std::vector<int64_t> split;        // round-robin weights of a SplitJoin; empty: duplicate
  std::vector<int64_t> join;         // how many elements of each branch the join takes
  std::vector<std::string> carried;  // of a Feedback
};

struct StreamGraph {
  std::string name;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  // In an order in which one firing of each, one after the other, computes a call.
  std::vector<Filter> filters;
  Part root;
  // What the nodes of the filters belong to, and what that keeps alive; null when read from text.
  std::shared_ptr<const Graph> program;
  std::shared_ptr<void> owner;
};

// Throws UsageError unless names are unique, every input has a producer which comes before it (or a
// delay), and every filter occurs once in the arrangement.
void validate(const StreamGraph& graph);

// Pipelines and split-joins as far as the filters' channels have that form, networks for the rest.
// `loops` says which filters are recurrences, by their index, and what they carry.
Part arrange(const StreamGraph& graph,
             const std::vector<std::pair<size_t, std::vector<std::string>>>& loops = {});

}  // namespace wick::streams
