// How often filters fire for each other: balance equations, a steady state, bounded buffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "streams/stream_graph.h"

namespace wick::streams {

struct Balance {
  // Firings of each filter in one round of the steady state, after which every channel holds as
  // much as before.
  std::vector<int64_t> firings;
  // Firings before the first round: they fill the windows that filters peek into.
  std::vector<int64_t> first_firings;
  // How often the outside gives what `inputs` of the graph say, in a round and before the first.
  int64_t input_rounds = 1;
  int64_t first_input_rounds = 0;
  struct Buffer {
    std::string value;
    size_t reader;     // index of the filter that reads
    int64_t capacity;  // elements that a schedule needs which fires the readers first
  };
  std::vector<Buffer> buffers;
};

// Solves the equations: for each channel, what the producer pushes in a round is what each reader
// pops. UsageError that names the channel, both filters and their rates when there is no solution,
// and that names what waits for what when a round cannot be run (a feedback without enough delay);
// also when numbers become too large to count.
Balance balance(const StreamGraph& graph);

}  // namespace wick::streams
